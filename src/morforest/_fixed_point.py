"""Fixed point: how feature values, weights and targets become exact integers.

See "Numbers" in docs/design.md for the rules and their reasons.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from morforest._native import core
from morforest._sparse import SparseRows
from morforest.dictionary._base import Bounds
from morforest.dictionary._views import RAW, View

RESOLUTION = 2.0**-20  # of a column's spread, the coarsest step that float data may get
POOLED_RESOLUTION = 2.0**-12  # the same where atoms are pooled, which takes longer in int64
COARSE = 2.0**-6  # where no type of cells gives that, a coarser step than this one is told
SAMPLE_CELLS = 1 << 22  # at most about this many values are looked at to estimate spreads
BLOCK_CELLS = 1 << 20  # data are converted and looked at in pieces of about so many values
WEIGHT_LIMIT = 2**31  # counts and weights of a tree sum to less
LARGEST_SHIFT = 1100  # beyond the exponents of all floats
EXTRA_BITS = 24  # finer steps for non-integers met by a forest that was trained on integers


@dataclass(frozen=True)
class CellFormat:
    """How a training table's cells were made; prediction must follow."""

    shift: int  # cells are round(x * 2^shift)
    real: bool  # float64 cells without prefix sums
    integers: bool  # the training data were integers, with shift 0
    bound: float  # largest possible size of an atom's value in training
    bounds: Bounds

    def dump(self) -> tuple[Any, ...]:
        """Return what a pickle holds: tuples of numbers and words."""
        return astuple(self)

    @classmethod
    def load(cls, state: Any) -> CellFormat:
        """Make a format from what a pickle holds; see `require_format` for the checks."""
        shift, real, integers, bound, bounds = state
        mass, nonnegative, integral, derived, nonlinear, positions, side = bounds
        views = tuple((View(*view), float(size)) for view, size in derived)
        found = Bounds(mass, nonnegative, integral, views, nonlinear, positions, side)
        return cls(shift, real, integers, bound, found)


def require_format(found: CellFormat, views: Iterable[View], linear: bool) -> None:
    """Raise unless a format from a file is one that rows of these views may have."""
    if not isinstance(found, CellFormat):
        raise ValueError("damaged model: no format of cells")
    bounds = found.bounds
    flags = (found.real, found.integers, bounds.nonnegative, bounds.integral, bounds.nonlinear)
    if not all(type(flag) is bool for flag in flags) or type(found.shift) is not int:
        raise ValueError("damaged model: the format of cells has values of wrong types")
    finite = (bounds.mass, bounds.positions, *(mass for _, mass in bounds.derived))
    if not all(type(x) is float and 0 <= x < math.inf for x in finite) or not all(
        type(x) is float and x >= 0 for x in (found.bound, bounds.side)
    ):
        raise ValueError("damaged model: the bounds of cells are no bounds")
    if (
        abs(found.shift) > LARGEST_SHIFT
        or (found.integers and (found.real or found.shift))
        or found.real != math.isinf(found.bound)
        or (found.real and not linear)
    ):
        raise ValueError("damaged model: a format of cells that no data have")
    # What is linear, and which views there are, the atoms say too.
    if bounds.nonlinear == linear or {view for view, _ in bounds.derived} != {*views} - {RAW}:
        raise ValueError("damaged model: the bounds of cells do not fit the atoms")


@dataclass(frozen=True)
class Cells:
    """Arguments of the core for one batch of samples."""

    cell_type: str
    shift: int
    limit: float
    extra_bits: int = 0
    fit_bytes: bool = False  # all values are integers from 0 to 255


def blocks(shape: tuple[int, ...], cells: int = BLOCK_CELLS) -> Iterator[slice]:
    """Cut the rows of an array of two axes into slices of about so many cells."""
    rows = max(1, cells // max(1, shape[1]))
    return (slice(first, min(first + rows, shape[0])) for first in range(0, shape[0], rows))


def core_dtype(X: np.ndarray) -> type:
    """Return the core's input type that holds X without loss."""
    kind, size = X.dtype.kind, X.dtype.itemsize
    if kind == "b" or X.dtype == np.uint8:
        return np.uint8
    if kind == "i" or (kind == "u" and size < 8):
        return np.int64
    if kind == "u":
        return np.int64 if X.size == 0 or X.max() < 2**63 else np.float64
    if kind == "f":
        return np.float32 if size <= 4 else np.float64
    raise ValueError(f"X has dtype {X.dtype}, which is not a kind of number: convert it first.")


def to_core_dtype(X: np.ndarray) -> np.ndarray:
    """Convert to the nearest of the core's input types, C-contiguous."""
    dtype = core_dtype(X)
    if isinstance(X, SparseRows):  # whose parts are converted when they are needed
        return X
    with np.errstate(over="ignore"):
        converted: np.ndarray = np.ascontiguousarray(X, dtype=dtype)
    if X.dtype.itemsize > 8 and not np.isfinite(converted).all():
        raise ValueError("X contains numbers beyond the range of float64 (infinity): scale it.")
    return converted


def to_training_dtype(X: np.ndarray) -> np.ndarray:
    """Leave X as it is: tables are filled from converted pieces. Only long floats are rounded."""
    core_dtype(X)  # refuses what is not a kind of number
    return to_core_dtype(X) if X.dtype.itemsize > 8 else X


def choose_format(X: np.ndarray, bounds: Bounds) -> tuple[CellFormat, Cells]:
    """Choose the number format of a training table."""
    low, high = float(X.min()), float(X.max())
    largest = max(abs(low), abs(high))
    if bounds.integral and bounds.fits(largest, 61) and _holds_integers(X):
        found = CellFormat(0, False, True, bounds.value(largest), bounds)
    else:
        found = _choose_float_format(X, largest, bounds)
    return found, _cells(found, low, high, 0)


def cells_for(X: np.ndarray, trained: CellFormat, takes_bytes: bool) -> Cells:
    """Choose the cells of a batch to predict; its values may be anything finite.

    `takes_bytes` says that the forest walks over raw bytes where the values are such.
    """
    if takes_bytes and trained.integers and X.dtype == np.uint8:
        return Cells("bytes", 0, 255.0)
    low, high = float(X.min()), float(X.max())
    finer = extra_bits(trained)
    if finer and _holds_integers(X):
        finer = 0
    if takes_bytes and trained.integers and not finer and low >= 0 and high <= 255:
        return Cells("bytes", 0, 255.0)
    return _cells(trained, low, high, finer)


def extra_bits(trained: CellFormat) -> int:
    """Return by how many bits fractions are finer than the cells of training.

    By the training data alone: a prediction must not depend on the rest of the batch.
    """
    if not trained.integers or trained.bounds.derived or trained.bounds.nonlinear:
        return 0
    return max(0, min(EXTRA_BITS, 60 - math.frexp(max(trained.bound, 1.0))[1]))


def _cells(chosen: CellFormat, low: float, high: float, extra_bits: int) -> Cells:
    limit = chosen.bounds.limit()
    if chosen.real:
        return Cells("float64", chosen.shift, limit)
    if extra_bits:
        return Cells("int64", chosen.shift + extra_bits, limit, extra_bits)
    # Half a unit more for rounding; a value too large for a float is too large for int32 as well.
    scale = math.ldexp(1.0, chosen.shift)
    bound = chosen.bounds.value_within(low * scale - 0.5 * (low < 0), high * scale + 0.5)
    nonnegative = chosen.bounds.nonnegative and low >= 0
    if chosen.bound >= 2.0**30:  # thresholds need the wide type whatever the batch holds
        cell_type = "int64"
    elif nonnegative and bound < 2.0**8:
        cell_type = "uint8"
    elif nonnegative and bound < 2.0**16:
        cell_type = "uint16"
    elif bound < 2.0**15:
        cell_type = "int16"
    elif bound < 2.0**30:
        cell_type = "int32"
    else:
        cell_type = "int64"
    fit_bytes = chosen.integers and low >= 0 and high <= 255
    return Cells(cell_type, chosen.shift, limit, fit_bytes=fit_bytes)


def _holds_integers(X: np.ndarray) -> bool:
    if X.dtype.kind != "f":
        return True
    # By pieces: most float data says no at the first, and no large array is made for the others.
    return all(bool((X[part] == np.rint(X[part])).all()) for part in blocks(X.shape))


def _choose_float_format(X: np.ndarray, largest: float, bounds: Bounds) -> CellFormat:
    # Sums stay finite in float64 cells: scale down where max|x| * mass would overflow.
    exponent = math.frexp(largest)[1] + math.frexp(bounds.mass)[1]
    real = CellFormat(-max(0, exponent - 1000), True, False, math.inf, bounds)
    if largest == 0 and bounds.integral:
        return CellFormat(0, False, True, 0.0, bounds)
    if not bounds.integral:
        return _if_linear(real)
    spread = _smallest_spread(X)
    resolution = POOLED_RESOLUTION if bounds.nonlinear else RESOLUTION
    finest = None
    for bits in (30, 61):
        if not bounds.fits(0.5, bits):
            continue
        # Derived views may be larger than what they are derived from.
        while bounds.derived and not bounds.fits(math.ldexp(largest, bits - exponent) + 0.5, bits):
            exponent += 1
        # Exponents promise too much by up to two bits, which are used where they are needed.
        for shift in range(bits - exponent, bits - exponent + 3):
            shift = min(shift, 1000)
            # largest * 2^shift * mass < 2^bits, with one unit per cell to spare for rounding
            size = math.ldexp(largest, shift) + 0.5
            if bounds.fits(size, bits):
                finest = CellFormat(shift, False, False, bounds.value(size), bounds)
                if math.ldexp(1.0, -shift) <= resolution * spread:
                    return finest
    if finest is None or not (bounds.derived or bounds.nonlinear):
        return _if_linear(real)
    step = math.ldexp(1.0, -finest.shift)
    if step > COARSE * spread:
        warnings.warn(
            "X spans many orders of magnitude (or all of it is tiny): for derived views and "
            f"pooled atoms its values are rounded to multiples of {step:.2g}, and what varies by "
            "less is lost. If that matters, scale the columns alike.",
            stacklevel=3,
        )
    return finest


def _if_linear(real: CellFormat) -> CellFormat:
    if real.bounds.derived or real.bounds.nonlinear:
        raise ValueError(
            "Derived views and pooled atoms need exact integers, but an atom has fractional "
            "or huge weights: use a dictionary without views, pool and Variance."
        )
    return real


def _smallest_spread(X: np.ndarray) -> float:
    """Return the smallest over columns of the interquartile range of the distinct values.

    Columns of fewer than four distinct values count with their smallest gap, constant ones not at
    all. Up to `SAMPLE_CELLS` values are looked at, in whole rows, chosen by a hash of their values
    so that neither their order nor their repetition matters.
    """
    rows = max(64, min(1024, SAMPLE_CELLS // X.shape[1]))
    sample, complete = _distinct_rows(X, rows)
    smallest = math.inf
    constant = []
    for columns in blocks((X.shape[1], len(sample))):
        values = np.sort(X[sample, columns].T.astype(np.float64))
        smallest = min(smallest, float(_spreads(values).min()))
        constant.append(columns.start + np.flatnonzero(values[:, 0] == values[:, -1]))
    if not complete:  # columns that vary, but not in the sample
        smallest = min(smallest, _smallest_distance(X, np.concatenate(constant), sample[0]))
    return smallest


def _distinct_rows(X: np.ndarray, limit: int) -> tuple[np.ndarray, bool]:
    """Return one of each of the `limit` kinds of rows of lowest hash; True if there are no more."""
    dtype = core_dtype(X)
    hashes = np.empty(len(X), dtype=np.uint64)
    for part in blocks(X.shape):
        hashes[part] = core.hash_rows(np.ascontiguousarray(X[part], dtype=dtype))
    count = 2 * limit  # enough of the lowest hashes, unless rows repeat
    while True:
        low = np.arange(len(X))
        if count < len(X):
            low = np.argpartition(hashes, count)[:count]
        _, first = np.unique(hashes[low], return_index=True)
        if len(first) > limit or len(low) == len(X):
            return low[first[:limit]], len(first) <= limit
        count *= 16


def _spreads(values: np.ndarray) -> np.ndarray:
    """Return the spread of each row of sorted values; infinity where all are equal."""
    with np.errstate(over="ignore"):
        steps = np.diff(values)
        rank = np.zeros(values.shape, dtype=np.int32)  # of a value among the distinct ones
        np.cumsum(steps > 0, axis=1, dtype=np.int32, out=rank[:, 1:])
        count = rank[:, -1:] + 1
        low = np.argmax(rank == count // 4, axis=1, keepdims=True)
        high = np.argmax(rank == 3 * count // 4, axis=1, keepdims=True)
        middle = np.take_along_axis(values, high, 1) - np.take_along_axis(values, low, 1)
    gap = steps.min(axis=1, initial=math.inf, where=steps > 0, keepdims=True)
    spreads: np.ndarray = np.where(count < 4, gap, middle)
    return spreads


def _smallest_distance(X: np.ndarray, columns: np.ndarray, row: int) -> float:
    """Return the smallest distance, but zero, of values in some columns to those of one row."""
    smallest = math.inf
    if len(columns):
        origin = X[row, columns].astype(np.float64)
        for part in blocks((len(X), len(columns))):
            distance = np.abs(X[part, columns].astype(np.float64) - origin)
            smallest = min(smallest, float(distance.min(initial=math.inf, where=distance > 0)))
    return smallest


@dataclass(frozen=True)
class TargetFormat:
    """How regression targets became integers: round((y - centre) * 2^bits).

    `scale` is the exponent of the largest |y - centre|. The core measures gains as if that were
    about one, because the square of a large or small unit may leave the range of floats:
    `gain_exponent` is the power of two by which they differ from the user's units.
    """

    centre: float
    bits: int
    scale: int
    gain_exponent: int

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Make the core's integers."""
        return np.rint(np.ldexp(y - self.centre, self.bits)).astype(np.int64)

    def decode(self, values: np.ndarray) -> np.ndarray:
        """Turn leaf values, which may be fractions, back into the user's units."""
        decoded: np.ndarray = np.ldexp(values, -self.bits) + self.centre
        return decoded


def choose_target_format(y: np.ndarray, total_weight: int, criterion: str) -> TargetFormat:
    """Choose the finest format in which no weighted sum overflows."""
    low, high = float(y.min()), float(y.max())
    centre = 0.0 if criterion == "poisson" else low / 2 + high / 2
    largest = max(abs(low - centre), abs(high - centre))
    if largest == 0:
        return TargetFormat(centre, 0, 0, 0)
    scale = math.frexp(largest)[1]
    bits = 61 - scale - int(total_weight).bit_length()
    gain_exponent = 2 * scale if criterion == "squared_error" else scale
    return TargetFormat(centre, min(bits, 1000), scale, gain_exponent)


def whole_weights(weights: np.ndarray) -> np.ndarray | None:
    """Return the weights as 32-bit counts if they are whole numbers with a small enough sum."""
    if (weights == np.rint(weights)).all() and weights.sum() < WEIGHT_LIMIT:
        return weights.astype(np.uint32)
    return None


def fixed_weights(unit: np.ndarray, count: np.ndarray, times: int = 1) -> np.ndarray:
    """Make 32-bit weights of rows that count `count` times `unit`; all are there `times` times.

    Whole units stay as they are, others become fixed point, at least one. The unit is rounded and
    then multiplied, so that a count of two is the same as the row twice.
    """
    total = times * exact_sum(unit * count)
    if total < WEIGHT_LIMIT and (unit == np.rint(unit)).all():
        whole: np.ndarray = (unit * count).astype(np.uint32)
        return whole
    exponent = math.frexp(total)[1]
    # Rows that do not count may have any unit.
    fixed = np.clip(np.rint(np.ldexp(unit, 30 - exponent)), 1, WEIGHT_LIMIT).astype(np.uint32)
    weights: np.ndarray = fixed * count
    return weights


def exact_sum(values: np.ndarray) -> float:
    """Return the sum, rounded once, as `math.fsum` does, but by array operations."""
    total = Fraction(0)
    for first in range(0, len(values), BLOCK_CELLS):
        mantissas, exponents = np.frexp(values[first : first + BLOCK_CELLS])
        lowest = int(exponents.min())
        # In halves of the 53-bit mantissas, whose sums are exact in float64.
        halves = np.divmod((mantissas * 2.0**53).astype(np.int64), 2**27)
        for half, unit in zip(halves, (2**27, 1), strict=True):
            sums = np.bincount(exponents - lowest, half)
            whole = sum(int(x) << place for place, x in enumerate(sums.tolist()))
            total += whole * unit * Fraction(2) ** (lowest - 53)
    return float(total)


def sum_once(values: np.ndarray) -> float:
    """Return the same of any numbers: infinite where they or their sum are."""
    try:
        return math.fsum(values.tolist())
    except OverflowError:
        return math.inf


def class_sums(codes: np.ndarray, values: np.ndarray, classes: int) -> np.ndarray:
    """Return the sum of the values of each class, whatever their order."""
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(1, classes))
    return np.array([sum_once(some) for some in np.split(values[order], ends)])


def without_overflow(weights: np.ndarray) -> np.ndarray:
    """Scale weights of unusual size by a power of two: only their ratios matter then."""
    exponent = math.frexp(float(weights.max()))[1]
    if abs(exponent) <= 64:
        return weights
    scaled: np.ndarray = np.ldexp(weights, -exponent)
    return scaled
