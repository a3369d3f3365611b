"""Weighted boxes: bells, waves, random signs, three of nine elements, and users' own."""

from __future__ import annotations

import itertools
import math
from functools import cache, lru_cache
from typing import Any

import numpy as np

from morforest._native import core
from morforest._parameters import is_integer
from morforest._states import stored
from morforest.dictionary._base import Bounds, cumulative_fractions
from morforest.dictionary._boxes import Boxes, Sizes
from morforest.dictionary._pooling import COMPETING, OPS, Pooled, Pooling, log_uniform
from morforest.dictionary._shape import SampleShape
from morforest.dictionary._views import Views
from morforest.dictionary._weights import (
    MAX_CELLS,
    MAX_WEIGHT,
    ORIENTATIONS,
    bell,
    gabor_kernels,
    in_units,
)

SIZED = ("gaussian", "gabor", "sign")  # kernels that exist in every size
MAX_RIVALS = 1000
MAX_DILATION = 2**31 - 1
TRIPLE_LENGTH = 9  # elements of "triple" kernels


@stored
class Kernel(Pooled, Boxes):
    """Weighted boxes, which may be dilated: convolution kernels at random positions.

    An atom is one kernel at one position, within the data. Its weights are whole numbers.

    Parameters
    ----------
    kernel : str, array or list of arrays, default="gaussian"
        - "gaussian" is a bell, whose standard deviation is a quarter of its size. Weights are whole
          numbers, and the largest is 64.
        - "gabor" is such a bell times a wave of one or two periods, in one of two phases, and in
          one of eight directions along the last two axes besides the channel axis.
        - "sign" has weights of 1 and -1, drawn for each atom.
        - "triple" has the weight 1 in three of nine elements along the last axis besides the
          channel axis: the 84 kernels of MiniRocket [1]_ without what these have in common, which
          does not matter among competing kernels.
        - An array of whole numbers, or a list of arrays that are drawn equally often, gives kernels
          of your own. (A list of lists is one array.) An array with fewer axes than a sample lies
          along the last axes besides the channel axis.
    min_size, max_size : int, float, tuple or None, default=None
        Smallest and largest size along each axis of "gaussian", "gabor" and "sign", as in
        :class:`Patch`; every combination is drawn equally often. Other kernels have a size of their
        own. ``min_size=None`` is 3, or the axis' length if that is less.
    dilation : int or "log", default=1
        Distance between neighbouring weights, the same along all axes. "log" draws it for each
        atom, as far as the kernel fits, so that each doubling is as likely as any other.
    views : view, list of views or None, default=None
        Versions of a sample that atoms look at, as in :class:`Patch`.
    pool : {"max", "min", "mean", "proportion", "win", "lose"}, list of these or None, default=None
        Pooling over the positions of a window, as in :class:`Patch`. With "win" and "lose" kernels
        compete, as in Hydra [2]_: "win" is the proportion of positions at which the kernel responds
        more than each of its rivals, and "lose" the proportion at which it responds less.
    window : int, float or None, default=None
        Size of a window, as in :class:`Patch`.
    rivals : int, default=5
        Number of other kernels of the same shape that a kernel competes with, drawn for each atom.
        The rivals of a "sign" kernel have other signs.

    References
    ----------
    .. [1] A. Dempster, D. F. Schmidt, G. I. Webb: MiniRocket: a very fast (almost) deterministic
       transform for time series classification. KDD 2021, pages 248-257.
    .. [2] A. Dempster, D. F. Schmidt, G. I. Webb: Hydra: competing convolutional kernels for fast
       and accurate time series classification. Data Mining and Knowledge Discovery 37, 2023.

    Examples
    --------
    >>> from morforest import Kernel
    >>> Kernel([-1, 2, -1], dilation=2).sample(6, 1, random_state=0).toarray()
    array([[-1.,  0.,  2.,  0., -1.,  0.]])
    """

    _known_ops = (*OPS, *COMPETING)

    def __init__(
        self,
        kernel: Any = "gaussian",
        min_size: Sizes = None,
        max_size: Sizes = None,
        *,
        dilation: int | str = 1,
        views: Views = None,
        pool: Pooling = None,
        window: float | None = None,
        rivals: int = 5,
    ):
        self.kernel = kernel
        self.min_size = min_size
        self.max_size = max_size
        self.dilation = dilation
        self.views = views
        self.pool = pool
        self.window = window
        self.rivals = rivals

    def _axis_values(self, name: str, shape: SampleShape, for_channels: Any) -> list[Any]:
        values = super()._axis_values(name, shape, for_channels)
        if name != "min_size":
            return values
        return [
            min(3, length) if value is None else value
            for value, length in zip(values, shape.lengths, strict=True)
        ]

    def _kernels(self, shape: SampleShape) -> list[np.ndarray]:
        """Return all kernels, with as many axes as a sample."""
        if isinstance(self.kernel, str) and self.kernel in SIZED:
            return self._sized_kernels(shape)
        if self.min_size is not None or self.max_size is not None:
            raise ValueError(
                f"min_size={self.min_size!r} and max_size={self.max_size!r} are for the kernels "
                f"{', '.join(map(repr, SIZED))}; others have their own size: leave them out."
            )
        if isinstance(self.kernel, str):
            if self.kernel != "triple":
                names = ", ".join(map(repr, (*SIZED, "triple")))
                raise ValueError(
                    f"kernel must be one of {names}, an array or a list of arrays, "
                    f"got {self.kernel!r}."
                )
            return triples_of(shape)
        return [_along_last_axes(a, shape) for a in _own_kernels(self.kernel)]

    def _sized_kernels(self, shape: SampleShape) -> list[np.ndarray]:
        smallest, largest = self._sizes(shape)
        ranges = [range(low, high + 1) for low, high in zip(smallest, largest, strict=True)]
        # This is the sum, over all combinations of sizes, of their products.
        cells = math.prod(sum(sizes) for sizes in ranges)
        waves = 4 * ORIENTATIONS if self.kernel == "gabor" else 1
        if cells * waves > MAX_CELLS:
            raise ValueError(
                f"min_size={self.min_size!r} and max_size={self.max_size!r} make {cells * waves} "
                f"weights of kernels for samples of shape {shape}, more than {MAX_CELLS}: choose "
                "fewer or smaller sizes."
            )
        found = []
        for size in itertools.product(*ranges):
            if self._signs():
                found.append(np.ones(size, dtype=np.int64))
            elif self.kernel == "gaussian":
                found.append(in_units(bell(size)))
            else:
                plane = shape.free_axes[-2:]
                found += gabor_kernels(size, plane)
        return found

    def _dilations(self, kernels: list[np.ndarray], shape: SampleShape) -> list[list[int]]:
        """Return the cumulated probabilities of each kernel's dilations; empty if it is fixed."""
        draws = isinstance(self.dilation, str) and self.dilation == "log"
        if not draws and (not is_integer(self.dilation) or not 1 <= self.dilation <= MAX_DILATION):
            raise ValueError(
                f'dilation must be an integer from 1 to {MAX_DILATION} or "log", got '
                f"{self.dilation!r}."
            )
        fixed = self._fixed_dilation()
        tables: dict[tuple[int, ...], list[int]] = {}
        for extent in dict.fromkeys(kernel.shape for kernel in kernels):
            steps = [
                (length - 1) // (size - 1)
                for length, size in zip(shape.lengths, extent, strict=True)
                if size > 1
            ]
            most = min(steps, default=fixed)
            if most < fixed:
                raise ValueError(
                    f"kernel={self.kernel!r} has a kernel of shape {extent}, which does not "
                    f"fit samples of shape {shape} with dilation={self.dilation!r}: choose "
                    "smaller kernels."
                )
            tables[extent] = log_steps(most) if draws and most > 1 else []
        return [tables[kernel.shape] for kernel in kernels]

    def _fixed_dilation(self) -> int:
        """Return the smallest dilation, which is that of all atoms unless it is drawn."""
        return 1 if self.dilation == "log" else int(self.dilation)

    def _check(self, shape: SampleShape) -> None:
        kernels = self._kernels(shape)
        self._dilations(kernels, shape)
        self._check_pool(shape)
        self._check_rivals(kernels)

    def _competes(self) -> bool:
        return any(op in COMPETING for op in self._ops())

    def _check_rivals(self, kernels: list[np.ndarray]) -> None:
        if not is_integer(self.rivals) or not 1 <= self.rivals <= MAX_RIVALS:
            raise ValueError(
                f"rivals must be an integer from 1 to {MAX_RIVALS}, got {self.rivals!r}."
            )
        if not self._competes():
            return
        shapes = {kernel.shape for kernel in kernels}
        if len(shapes) > 1:
            raise ValueError(
                f"pool={self.pool!r} needs kernels of one shape, but kernel={self.kernel!r} has "
                f"{len(shapes)}: give max_size equal to min_size, or arrays of one shape."
            )
        if len(kernels) <= self.rivals and not self._signs():
            raise ValueError(
                f"rivals={self.rivals} must be less than the number of kernels that compete, which "
                f"is {len(kernels)} of kernel={self.kernel!r}: choose fewer rivals."
            )

    def _smallest_extents(self, shape: SampleShape) -> list[int]:
        rate = self._fixed_dilation()
        sizes = [kernel.shape for kernel in self._kernels(shape)]
        return [(min(size[axis] for size in sizes) - 1) * rate + 1 for axis in range(shape.rank)]

    def _bounds(self, shape: SampleShape) -> Bounds:
        kernels = self._kernels(shape)
        taps = np.concatenate([kernel.ravel() for kernel in kernels])
        begin = np.cumsum([0, *(kernel.size for kernel in kernels[:-1])])
        parts = (
            abs(taps),
            taps.clip(0),
            -taps.clip(None, 0),
        )  # all weights, and by sign
        sums = [np.add.reduceat(part, begin).max() for part in parts]
        mass, signs = float(sums[0]), self._signs()
        bounds = Bounds(
            mass=mass,
            nonnegative=not signs and bool((taps >= 0).all()),
            integral=True,
            side=mass if signs else float(max(sums[1:])),
        )
        return self._pooled_bounds(bounds, shape)

    def _add_to(self, built: core.Dictionary, shape: SampleShape) -> None:
        kernels = self._kernels(shape)
        strides = np.cumprod([1, *shape.lengths[:0:-1]])[::-1]  # in features
        used = [kernel != 0 for kernel in kernels]
        if self._competes() and len({int(cells.sum()) for cells in used}) > 1:
            used = [np.logical_or.reduce(used)] * len(kernels)  # rivals need as many terms
        shapes = {kernel.shape for kernel in kernels}
        place = {s: np.tensordot(np.indices(s), strides, axes=(0, 0)) for s in shapes}
        dilations, fixed = self._dilations(kernels, shape), self._fixed_dilation()
        made = [
            core.Kernel(
                kernel.shape,
                place[cells.shape][cells].tolist(),
                kernel[cells].tolist(),
                dilations_of_kernel,
                fixed,
            )
            for kernel, cells, dilations_of_kernel in zip(kernels, used, dilations, strict=True)
        ]
        built.add_kernels(made, self._signs(), int(self.rivals))

    def _signs(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "sign"


@cache
def log_steps(most: int) -> list[int]:
    """Return the cumulated probabilities of dilations up to the largest."""
    steps: list[int] = cumulative_fractions(log_uniform(1, most)).tolist()
    return steps


@cache
def triple_kernels() -> list[np.ndarray]:
    """Return each choice of three among nine elements."""
    chosen = itertools.combinations(range(TRIPLE_LENGTH), 3)
    return [np.isin(np.arange(TRIPLE_LENGTH), cells).astype(np.int64) for cells in chosen]


@lru_cache(maxsize=16)
def triples_of(shape: SampleShape) -> list[np.ndarray]:
    """Return the same with the axes of a sample."""
    return [_along_last_axes(kernel, shape) for kernel in triple_kernels()]


def _own_kernels(given: Any) -> list[np.ndarray]:
    several = isinstance(given, (list, tuple)) and any(np.ndim(part) > 0 for part in given)
    flat = several and all(isinstance(part, (list, tuple)) for part in given)
    found = []
    for part in [given] if not several or flat else given:
        try:
            kernel = np.asarray(part, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"kernel must hold numbers, got {part!r}: {error}") from None
        if kernel.ndim == 0 or not kernel.size:
            raise ValueError(f"kernel must be an array of at least one weight, got {part!r}.")
        if not (np.abs(kernel) <= MAX_WEIGHT).all() or (kernel != np.rint(kernel)).any():
            raise ValueError(
                f"kernel must hold whole numbers of at most {MAX_WEIGHT} in size, got {part!r}: "
                "scale and round it, or list its shifts with Atoms."
            )
        if not kernel.any():
            raise ValueError(f"kernel must have a weight that is not zero, got {part!r}.")
        found.append(kernel.astype(np.int64))
    if not found:
        raise ValueError(f"kernel must be an array or a non-empty list of arrays, got {given!r}.")
    return found


def _along_last_axes(kernel: np.ndarray, shape: SampleShape) -> np.ndarray:
    """Give a kernel the axes of a sample."""
    if kernel.ndim == shape.rank:
        return kernel
    if kernel.ndim > shape.rank:
        raise ValueError(
            f"kernel has an array of {kernel.ndim} axes, but samples of shape {shape} have "
            f"{shape.rank}: give arrays with at most as many axes as a sample."
        )
    free = shape.free_axes
    size = [1] * shape.rank
    for axis, length in zip(free[-kernel.ndim :], kernel.shape, strict=True):
        size[axis] = length
    return kernel.reshape(size)
