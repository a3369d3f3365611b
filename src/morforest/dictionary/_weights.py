"""What the features of a box weigh: signs, uniform and normal numbers, waves, own functions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from functools import cache, lru_cache
from typing import Any, TypeAlias

import numpy as np

from morforest._native import core
from morforest.dictionary._base import Bounds, cumulative_fractions

Weights: TypeAlias = str | Callable[[tuple[int, ...]], Any] | None  # of the parameter `weights`

UNIT = 64  # the largest weight of a bell or a wave
FINE_UNIT = 256  # the largest weight that is drawn, or that is made of a user's fractions
DEVIATION = 64  # of normal weights, which are whole numbers up to `FINE_UNIT` in size
MAX_WEIGHT = 2**20
MAX_CELLS = 2**22  # weights of all arrays together
MAX_ARRAYS = 2**16  # of one size
ORIENTATIONS = 8
DRAWN = ("sign", "uniform", "gaussian")
NAMED = (*DRAWN, "gabor")


@dataclass(frozen=True)
class Weighting:
    """How the features of a box get their weights, all of them whole numbers.

    Either each feature draws one of the numbers `drawn`, or the box draws one of the arrays that
    `listed` has for its sizes: an entry for each combination, later axes fastest.
    """

    drawn: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    cumulative: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    listed: tuple[tuple[np.ndarray, ...], ...] = ()

    def bounds(self, volume: float) -> Bounds:
        """Return the bounds of the atoms of boxes of at most so many features."""
        if self.listed:
            arrays = [array for some in self.listed for array in some]
            mass = float(max(np.abs(array).sum() for array in arrays))
            nonnegative = all(bool((array >= 0).all()) for array in arrays)
        else:
            mass = volume * (float(np.abs(self.drawn).max()) if len(self.drawn) else 1.0)
            nonnegative = bool((self.drawn >= 0).all())
        return Bounds(mass=mass, nonnegative=nonnegative, integral=True)

    def to_core(self) -> core.Weights:
        """Return the weights as the core takes them."""
        arrays = [array.ravel() for some in self.listed for array in some]
        flat = np.concatenate(arrays) if arrays else np.empty(0)
        return core.Weights(
            self.drawn,
            self.cumulative,
            np.array([len(some) for some in self.listed], dtype=np.uint32),
            flat.astype(np.int32),
        )


def weighting_of(
    weights: Any, smallest: Sequence[int], largest: Sequence[int], ordered: Sequence[int]
) -> Weighting:
    """Read the parameter `weights` for boxes of some sizes.

    Waves run along the last two of the axes in order. Along axes without order they do not vary.
    """
    if weights is None:
        return Weighting()
    if isinstance(weights, str) and weights in DRAWN:
        return _drawn(weights)
    if not callable(weights) and weights != "gabor":
        names = ", ".join(map(repr, NAMED))
        raise ValueError(
            f"weights must be None, one of {names}, or a function of the size of a box that "
            f"returns an array of this shape, or a list of such arrays, got {weights!r}."
        )
    ranges = [range(low, high + 1) for low, high in zip(smallest, largest, strict=True)]
    cells = math.prod(sum(sizes) for sizes in ranges)
    if weights == "gabor":
        cells *= 4 * ORIENTATIONS
    if cells > MAX_CELLS:
        raise ValueError(
            f"weights={weights!r} makes {cells} weights for sizes from {tuple(smallest)} to "
            f"{tuple(largest)}, more than {MAX_CELLS}: choose fewer or smaller sizes."
        )
    if weights == "gabor":
        return _waves(tuple(smallest), tuple(largest), tuple(ordered))
    return _called(weights, tuple(smallest), tuple(largest))


def in_units(weights: np.ndarray, unit: int = UNIT) -> np.ndarray:
    """Scale the largest weight to `unit` and round to whole numbers.

    Weights are rounded to 2^-40 before, because libraries differ in the last bit.
    """
    largest = np.abs(weights).max()
    if largest < 2.0**-40:
        return np.zeros(weights.shape, dtype=np.int64)
    scaled = np.rint(weights / largest * 2.0**40) * 2.0**-40
    found: np.ndarray = np.rint(scaled * unit).astype(np.int64)
    return found


def bell(size: tuple[int, ...]) -> np.ndarray:
    """Return a bell whose standard deviation is a quarter of its size along each axis."""
    found: np.ndarray = np.exp(-8.0 * sum(place * place for place in _places(size)))
    return found


def gabor_kernels(size: tuple[int, ...], plane: Sequence[int]) -> list[np.ndarray]:
    """Return the waves under a bell of one size; they run along the axes `plane`."""
    plane = [axis for axis in plane if size[axis] > 1]
    count = ORIENTATIONS if len(plane) == 2 else 1
    places = _places(size)
    found = []
    for turn in range(count):
        angle = math.pi * turn / count
        along = sum(
            part * places[axis]
            for part, axis in zip((math.cos(angle), math.sin(angle)), plane[::-1], strict=False)
        )
        for periods in (1, 2):
            if plane and min(size[axis] for axis in plane) < 2 * periods:
                continue  # the wave is too fast for the cells
            for wave in (np.cos, np.sin):
                kernel = in_units(bell(size) * wave(2 * math.pi * periods * along))
                if kernel.any():
                    found.append(kernel)
    return found


def _places(size: tuple[int, ...]) -> list[np.ndarray]:
    """Return each cell's distance from the middle along each axis, in sizes of the kernel."""
    return list(np.meshgrid(*[(np.arange(k) - (k - 1) / 2) / k for k in size], indexing="ij"))


@cache
def _drawn(name: str) -> Weighting:
    if name == "sign":
        return Weighting(np.array([1, -1], dtype=np.int32))
    if name == "uniform":
        return Weighting(np.arange(1, FINE_UNIT + 1, dtype=np.int32))
    # Decimal's exponential is rounded correctly, so that the table is the same everywhere.
    context = Context(prec=30)
    sizes = [k for k in range(-FINE_UNIT, FINE_UNIT + 1) if k]  # a weight of zero is none
    exponents = [context.divide(Decimal(-k * k), Decimal(2 * DEVIATION**2)) for k in sizes]
    density = np.array([float(context.exp(exponent)) for exponent in exponents])
    return Weighting(np.array(sizes, dtype=np.int32), cumulative_fractions(density))


@lru_cache(maxsize=16)
def _waves(
    smallest: tuple[int, ...], largest: tuple[int, ...], ordered: tuple[int, ...]
) -> Weighting:
    listed = []
    for size in _sizes(smallest, largest):
        varied = tuple(n if axis in ordered else 1 for axis, n in enumerate(size))
        waves = gabor_kernels(varied, ordered[-2:])
        listed.append(tuple(np.broadcast_to(wave, size) for wave in waves))
    return Weighting(listed=tuple(listed))


@lru_cache(maxsize=16)
def _called(
    weights: Callable[[tuple[int, ...]], Any], smallest: tuple[int, ...], largest: tuple[int, ...]
) -> Weighting:
    return Weighting(listed=tuple(_arrays_of(weights, size) for size in _sizes(smallest, largest)))


def _sizes(smallest: tuple[int, ...], largest: tuple[int, ...]) -> list[tuple[int, ...]]:
    ranges = [range(low, high + 1) for low, high in zip(smallest, largest, strict=True)]
    return list(itertools.product(*ranges))


def _arrays_of(weights: Callable[[tuple[int, ...]], Any], size: tuple[int, ...]) -> Any:
    """Call a user's function, and make whole numbers of what it returns."""
    try:
        given = np.asarray(weights(size), dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"weights={weights!r} called with the size {size} must return an array of this shape, "
            f"or a list of such arrays: {error}"
        ) from None
    if given.shape == size:
        given = given[np.newaxis]
    if given.shape[1:] != size or not 1 <= len(given) <= MAX_ARRAYS:
        raise ValueError(
            f"weights={weights!r} called with the size {size} must return an array of this shape, "
            f"or a list of up to {MAX_ARRAYS} such arrays, got the shape {given.shape}."
        )
    if not np.isfinite(given).all():
        raise ValueError(f"weights={weights!r} returned NaN or infinity for the size {size}.")
    found = []
    for array in given:
        whole = (array == np.rint(array)).all() and np.abs(array).max() <= MAX_WEIGHT
        found.append(array.astype(np.int64) if whole else in_units(array, FINE_UNIT))
        if not found[-1].any():
            raise ValueError(f"weights={weights!r} returned only zeros for the size {size}.")
    return tuple(found)
