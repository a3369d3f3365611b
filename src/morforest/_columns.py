"""Columns: atoms that a whole forest shares, as standardised integers for its trees to split on.

See "Columns" in docs/design.md for the rules and their reasons.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from morforest._fixed_point import CellFormat, Cells, cells_for, core_dtype
from morforest._forms import COUNTS, MEAN, VARIANCE, PooledView, read_views
from morforest._native import core
from morforest._parallel import over_rows
from morforest._pickling import narrow, widen
from morforest.dictionary._views import SQUARES

UNIT = 1024.0  # of a column, to a standard deviation
LARGEST = 8191  # of a column: sums of several stay within 16 bits
MOMENT_BITS = 20  # of the integers whose sums are means and deviations
LARGEST_EXPONENT = 1000
HELD_VALUES = 1 << 24  # of training samples that are held at a time before they are standardised
BLOCK_VALUES = 1 << 17  # computed at a time
COLUMN_CELLS = Cells("int16", 0, float(LARGEST))
COMBINED_CELLS = Cells("int32", 0, float(LARGEST))  # where nodes combine columns
# Penalties of a node's ridge regression, relative to the mean sum of squares of its columns, the
# largest first: among equals the earlier wins. In this unit the eigenvalues of d columns add up to
# d and a few large ones carry most, so that the grid reaches from nearly no shrinkage to that of
# all but the largest.
PENALTIES = (10.0, 1.0, 0.1, 0.01)

TYPES: dict[str, Any] = {
    "views": np.uint32,
    "sources": np.float64,
    "pooled_views": np.float64,
    "begin": np.uint32,
    "cell": np.uint32,
    "weight": np.float64,
    "form_op": np.uint8,
    "form_bias": np.int64,
    "form_window": np.uint32,
    "mean": np.float64,
    "deviation": np.float64,
}


@dataclass(eq=False)
class Columns:
    """Atoms drawn once, and what standardises their values."""

    shape: tuple[int, ...]  # of a sample
    cell_format: CellFormat  # of the samples' cells
    views: np.ndarray  # which the atoms look at, as the core takes them
    sources: np.ndarray
    pooled_views: np.ndarray
    begin: np.ndarray  # of each atom's terms
    cell: np.ndarray
    weight: np.ndarray
    form_op: np.ndarray  # empty if all atoms are linear
    form_bias: np.ndarray
    form_window: np.ndarray
    mean: np.ndarray  # of the training samples, in the core's numbers
    deviation: np.ndarray  # zero of constant columns

    @classmethod
    def fit(cls, table: Any, key: int, n_atoms: int, n_jobs: int | None) -> tuple[Columns, Any]:
        """Draw atoms for a training table; return them, and the columns of its samples."""
        built = table.dictionary
        order = np.argsort(table.table.hash).astype(np.uint32)
        drawn = core.draw_atoms(table.table, built, order, key, n_atoms, True)
        found = len(drawn["begin"]) - 1
        columns = cls(
            shape=table.resolved.shape,
            cell_format=table.cell_format,
            views=built.views,
            sources=built.view_sources,
            pooled_views=built.pooled_views,
            **drawn,
            mean=np.zeros(found),
            deviation=np.zeros(found),
        )
        return columns, columns._standardise(table.X, n_jobs)

    @property
    def size(self) -> int:
        """Number of columns."""
        return len(self.begin) - 1

    def of(self, X: np.ndarray, n_jobs: int | None = 1) -> np.ndarray:
        """Return the columns of some samples (n, size)."""
        out = np.empty((len(X), self.size), dtype=np.int16)
        read = self.reader(X)

        def work(part: slice) -> None:
            out[part] = read(part)

        over_rows(work, len(X), self.rows_at_once(), n_jobs)
        return out

    def reader(self, X: np.ndarray) -> Callable[[slice], np.ndarray]:
        """Return what computes the columns of a part of the rows."""
        values = self._values_of(X, self._core, self.size)

        def read(part: slice) -> np.ndarray:
            return standardised(values(part), self.mean, self.deviation)

        return read

    def rows_at_once(self) -> int:
        """Return how many samples are worth a call."""
        return max(1, BLOCK_VALUES // self.size)

    def _values_of(self, X: np.ndarray, atoms: Any, size: int) -> Callable[[slice], np.ndarray]:
        """Return what computes the values of atoms for a part of the rows, in float64."""
        cells = cells_for(X, self.cell_format, takes_bytes=False)
        dtype = core_dtype(X)

        def values(part: slice) -> np.ndarray:
            x: np.ndarray = np.ascontiguousarray(X[part], dtype=dtype)
            out = np.empty((len(x), size))
            atoms.transform(x, cells.cell_type, cells.shift, cells.limit, out)
            if cells.extra_bits:  # cells are so much finer than those of training
                np.ldexp(out, -cells.extra_bits, out=out)
            return out

        return values

    def _standardise(self, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
        """Find means and deviations, some columns after others, and return the columns of X."""
        out = np.empty((len(X), self.size), dtype=np.int16)
        width = max(1, HELD_VALUES // len(X))
        for first in range(0, self.size, width):
            some = slice(first, min(first + width, self.size))
            held = np.empty((len(X), some.stop - some.start))
            values = self._values_of(X, self._build(some), held.shape[1])

            def work(part: slice, values: Any = values, held: np.ndarray = held) -> None:
                held[part] = values(part)

            over_rows(work, len(X), max(1, BLOCK_VALUES // held.shape[1]), n_jobs)
            self.mean[some], self.deviation[some] = moments(held)
            out[:, some] = standardised(held, self.mean[some], self.deviation[some])
        return out

    @cached_property
    def _core(self) -> Any:
        return self._build(slice(0, self.size))

    def _build(self, some: slice) -> Any:
        """Make some atoms as the core computes them, which checks them."""
        begin = self.begin[some.start : some.stop + 1]
        terms = slice(int(begin[0]), int(begin[-1]))
        return core.AtomFeatures(
            shape=list(self.shape),
            views=self.views,
            sources=self.sources,
            pooled_views=self.pooled_views,
            begin=begin - begin[0],
            cell=self.cell[terms],
            weight=self.weight[terms],
            form_op=self.form_op[some],
            form_bias=self.form_bias[some],
            form_window=self.form_window[4 * some.start : 4 * some.stop],
            scale=np.ones(len(begin) - 1),
        )

    def in_units(self, column: np.ndarray, value: np.ndarray) -> np.ndarray:
        """Turn values of some columns into those of their atoms, in the units of the data."""
        raw = value * self.deviation[column] / UNIT + self.mean[column]
        found: np.ndarray = raw * self._scales()[column]
        return found

    def steps(self) -> np.ndarray:
        """Return what a step of each column is in the units of its atom."""
        steps: np.ndarray = self.deviation / UNIT * self._scales()
        return steps

    def _scales(self) -> np.ndarray:
        return unit_scales(self, self.shape, self.cell_format.shift)

    def check(self) -> Columns:
        """Refuse damaged columns."""
        numbers = (self.mean, self.deviation)
        if not isinstance(self.cell_format, CellFormat) or any(
            len(values) != self.size or not np.isfinite(values).all() for values in numbers
        ):
            raise ValueError("damaged forest: means and deviations do not fit the columns")
        if (self.deviation < 0).any():
            raise ValueError("damaged forest: negative deviations")
        sizes = (4 * len(self.form_op), 4 * len(self.form_bias), len(self.form_window))
        if self.size < 1 or sizes not in ((0, 0, 0), (4 * self.size,) * 3):
            raise ValueError("damaged forest: forms do not fit the columns")
        if self.begin[0] != 0 or not len(self.cell) == len(self.weight) == self.begin[-1]:
            raise ValueError("damaged forest: terms do not fit the columns")
        try:
            _ = self._core
        except ValueError as error:
            raise ValueError(f"damaged forest: {error}") from None
        return self

    def __getstate__(self) -> dict[str, Any]:
        state = {found.name: getattr(self, found.name) for found in fields(self)}
        return {name: narrow(v) if name in TYPES else v for name, v in state.items()}

    def __setstate__(self, state: Any) -> None:
        try:
            for found in fields(self):
                value = state[found.name]
                if found.name in TYPES:
                    value = widen(found.name, value, TYPES[found.name]).copy()
                setattr(self, found.name, value)
            self.check()
        except (KeyError, TypeError, AttributeError, OverflowError, IndexError) as error:
            raise ValueError(f"damaged forest: {type(error).__name__}: {error}") from None


def moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the standard deviation of each column, by exact sums of integers.

    Neither the order of the rows nor the machine matters, as they would for sums of floats.
    """
    n = len(values)
    low, high = values.min(axis=0), values.max(axis=0)
    bits = min(MOMENT_BITS, (62 - n.bit_length()) // 2)
    shift = bits - np.frexp(high - low)[1]
    fixed = np.rint(np.ldexp(values - low, shift)).astype(np.int64)
    total = fixed.sum(axis=0).tolist()
    np.multiply(fixed, fixed, out=fixed)
    squares = fixed.sum(axis=0).tolist()
    mean = np.array([s / n for s in total])
    # Python's integers have no bounds, and one rounding each.
    both = zip(total, squares, strict=True)
    deviation = np.array([math.sqrt(n * q - s * s) / n for s, q in both])
    return low + np.ldexp(mean, -shift), np.ldexp(deviation, -shift)


def standardised(values: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Return columns of 16-bit integers; `values` are overwritten."""
    with np.errstate(over="ignore", invalid="ignore"):
        values -= mean
        values *= UNIT
        values /= np.where(deviation > 0, deviation, math.inf)
        np.rint(values, out=values)
        np.clip(values, -LARGEST, LARGEST, out=values)
        values[np.isnan(values)] = 0  # infinite sums of samples far outside those of training
    return values.astype(np.int16)


def unit_scales(atoms: Any, shape: tuple[int, ...], shift: int) -> np.ndarray:
    """Return what turns the core's numbers of each atom into the units of the data.

    Sums, maxima, minima and means are in the units themselves, variances and atoms of squares in
    their squares, and "proportion" and "win" are proportions. `atoms` has the arrays of
    :class:`Columns`.
    """
    count = len(atoms.begin) - 1
    op = atoms.form_op if len(atoms.form_op) else np.zeros(count, dtype=np.uint8)
    positions = np.ones(count)
    if len(atoms.form_op):
        positions = atoms.form_window.astype(np.float64).reshape(-1, 4)[:, ::2].prod(axis=1)
    last = atoms.begin[1:].astype(np.int64) - 1
    area = np.where(op == VARIANCE, atoms.weight[last], 1.0)
    power = np.where(of_squares(atoms, shape), 2, 1)
    counts = np.isin(op, COUNTS)
    exponent = np.where(counts, 0, -shift * power)
    exponent = np.clip(exponent, -LARGEST_EXPONENT, LARGEST_EXPONENT)
    parts = np.where((op == MEAN) | counts, positions, area * area)
    scale: np.ndarray = np.ldexp(1.0, exponent) / parts
    return scale


def of_squares(atoms: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Say of each atom whether it looks at squares; of a variance, its last term does."""
    last = np.maximum.reduceat(atoms.cell.astype(np.int64), atoms.begin[:-1].astype(np.int64))
    kinds = atoms.sources.reshape(-1, 5)[:, 0]
    number = np.minimum(last // math.prod(shape), len(atoms.views) - 1)
    kind = kinds[number] if len(atoms.views) else np.zeros(len(last))
    numbers = atoms.pooled_views.reshape(-1, 7)
    for view, row in zip(pooled_views_of(atoms, shape), numbers, strict=True):
        kind = np.where(view.holds(last), row[2], kind)
    return np.isin(kind, SQUARES)


def pooled_views_of(atoms: Any, shape: tuple[int, ...]) -> list[PooledView]:
    """Return the pooled views that atoms look at."""
    return read_views(atoms.pooled_views, shape, len(atoms.views) * math.prod(shape))
