"""Slightly transformed copies of training samples, for estimators to learn from.

Pass :class:`ImageCopies` or :class:`SeriesCopies` as `augment=`. Each tree of a forest draws copies
of its own, and boosting draws new ones every few rounds, so that no copies are held longer than
needed. Copies hurt where position or direction carries meaning: a 6 turned upside down is a 9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from morforest._course import fill_gaps
from morforest._native import core
from morforest._parameters import (
    MAX_COPIES,
    check_choice,
    check_integer,
    is_number,
    restore_parameters,
)
from morforest._states import stored
from morforest.dictionary._base import seed_from
from morforest.dictionary._shape import SampleShape

__all__ = ["ImageCopies", "SeriesCopies"]

MAX_ROWS = 2**32  # rows have numbers of 32 bits


@dataclass(frozen=True)
class Copier:
    """Makes copies of samples of one shape."""

    augment: _Copies
    shape: tuple[int, ...]
    channel_axis: int | None
    low: float = -math.inf  # copies stay within the range of the samples and zero
    high: float = math.inf

    @property
    def copies(self) -> int:
        """Number of copies of each sample."""
        return int(self.augment.copies)

    def __call__(self, X: np.ndarray, ranks: np.ndarray, key: int) -> np.ndarray:
        """Return a copy of each row; `ranks` number the rows independently of their order."""
        numbers = np.empty((len(X), self.augment._draws))
        core.uniforms(key, np.ascontiguousarray(ranks, dtype=np.uint32), numbers)
        x = np.ascontiguousarray(X, dtype=np.float64)
        if np.isnan(x).any():  # copies are whole
            ordered = [axis for axis in range(len(self.shape)) if axis != self.channel_axis]
            x = fill_gaps(x, self.shape, ordered)
        out = np.empty_like(x)
        self.augment._copy(x, self.shape, self.channel_axis, numbers, out)
        np.clip(out, min(self.low, 0.0), max(self.high, 0.0), out=out)
        if X.dtype.kind == "f":
            return out.astype(X.dtype, copy=False)
        return np.rint(out).astype(X.dtype)

    def copies_of(self, X: np.ndarray, ranks: np.ndarray, key: int) -> list[np.ndarray]:
        """Return all copies of the rows, as one array for each copy."""
        return [self(X, ranks, core.derive(key, c)) for c in range(self.copies)]


class _Copies(BaseEstimator):
    """What image and series copies share."""

    copies: int
    _draws = 0

    def __setstate__(self, state: Any) -> None:
        restore_parameters(self, state)

    def _check_shape(self, shape: tuple[int, ...], channel_axis: int | None) -> None:
        raise NotImplementedError

    def _copy(
        self,
        x: np.ndarray,
        shape: tuple[int, ...],
        channel_axis: int | None,
        numbers: np.ndarray,
        out: np.ndarray,
    ) -> None:
        raise NotImplementedError

    def _check_number(self, name: str, high: float) -> float:
        value = getattr(self, name)
        if not is_number(value) or not 0 <= value <= high:
            raise ValueError(f"{name} must be a number from 0 to {high:g}, got {value!r}.")
        return float(value)


def make_copier(
    augment: Any,
    shape: tuple[int, ...],
    channel_axis: int | None,
    X: np.ndarray | None = None,
) -> Copier | None:
    """Check `augment` against the shape of a sample; copies will stay within the range of X."""
    if augment is None:
        return None
    if not isinstance(augment, _Copies):
        raise TypeError(f"augment must be None, ImageCopies() or SeriesCopies(), got {augment!r}.")
    check_integer("copies", augment.copies, 1, MAX_COPIES)
    augment._check_shape(shape, channel_axis)
    if X is None:
        return Copier(augment, shape, channel_axis)
    if not isinstance(X, np.ndarray):
        raise ValueError("augment makes copies of dense samples alone: pass X.toarray().")
    rows = len(X) * (1 + int(augment.copies))
    if rows >= MAX_ROWS:
        raise ValueError(
            f"copies={augment.copies} of {len(X)} samples make {rows} rows, more than the "
            f"{MAX_ROWS - 1} that the core can count: use fewer copies."
        )
    low, high = (float(extreme.reduce(X, axis=None)) for extreme in (np.fmin, np.fmax))
    if math.isnan(low):
        low = high = 0.0  # all values are missing
    return Copier(augment, shape, channel_axis, low, high)


@stored
class ImageCopies(_Copies):
    """Copies of images that are rotated, scaled, sheared and shifted.

    Values between pixels are interpolated, and values from outside the image are zero. Copies of
    whole-number images are whole numbers.

    Parameters
    ----------
    rotation : float, default=12.0
        Largest angle in degrees, in both directions.
    scale : float, default=0.1
        Largest change of size: 0.1 means from a tenth smaller to a tenth larger.
    shear : float, default=0.15
        Largest slant, as the shift of each row relative to the next.
    shift : float, default=1.5
        Largest shift in pixels along each axis, in both directions.
    copies : int, default=2
        Number of copies of each sample that a tree, or a generation of boosting, sees besides the
        sample itself; at most 1,000.

    Examples
    --------
    >>> import numpy as np
    >>> from morforest import ImageCopies
    >>> image = np.zeros((1, 5, 5))
    >>> image[0, 2, 1:4] = 4
    >>> ImageCopies(rotation=90).sample(image, random_state=3).round(1).shape
    (1, 5, 5)
    """

    _draws = 5

    def __init__(
        self,
        *,
        rotation: float = 12.0,
        scale: float = 0.1,
        shear: float = 0.15,
        shift: float = 1.5,
        copies: int = 2,
    ):
        self.rotation = rotation
        self.scale = scale
        self.shear = shear
        self.shift = shift
        self.copies = copies

    def sample(self, X: Any, random_state: Any = None, channel_axis: int | None = None) -> Any:
        """Return one copy of each sample, to look at; `channel_axis` is an axis of X."""
        return sample_copies(self, X, random_state, channel_axis)

    def _check_shape(self, shape: tuple[int, ...], channel_axis: int | None) -> None:
        axes = len(shape) - (channel_axis is not None)
        if axes != 2:
            raise ValueError(
                f"augment=ImageCopies() needs samples of two axes beside the channels, got shape "
                f"{shape} with channel_axis={channel_axis}."
            )
        self._check_number("rotation", 180.0)
        self._check_number("scale", 0.9)
        self._check_number("shear", 10.0)
        self._check_number("shift", float(max(shape)))

    def _copy(
        self,
        x: np.ndarray,
        shape: tuple[int, ...],
        channel_axis: int | None,
        numbers: np.ndarray,
        out: np.ndarray,
    ) -> None:
        # Each channel must be an image of its own, whose pixels are contiguous.
        x, out, undo = _channels_first(x, out, shape, channel_axis)
        height, width = [n for axis, n in enumerate(shape) if axis != channel_axis]
        both = 2.0 * numbers - 1.0
        # 1 + s is undone by 1 / (1 + s): sizes and their inverses are equally likely.
        factor = np.where(
            both[:, 1] < 0, 1.0 / (1.0 - self.scale * both[:, 1]), 1.0 + self.scale * both[:, 1]
        )
        parameters = np.column_stack(
            [
                both[:, 0] * math.radians(self.rotation),
                factor,
                both[:, 2] * self.shear,
                both[:, 3] * self.shift,
                both[:, 4] * self.shift,
            ]
        )
        core.warp_images(x, height, width, 1, parameters, out)
        undo()


@stored
class SeriesCopies(_Copies):
    """Copies of series that are shifted, stretched, warped in time, and scaled.

    All channels of a sample are transformed alike. Values between time steps are interpolated.

    Parameters
    ----------
    shift : float, default=0.05
        Largest shift in time as a fraction of the length, in both directions.
    stretch : float, default=0.1
        Largest change of speed.
    warp : float, default=0.05
        Largest shift of the middle relative to the ends, as a fraction of the length.
    amplitude : float, default=0.1
        Largest relative change of the values.
    boundary : {"edge", "wrap"}, default="edge"
        What lies beyond the ends: the first or last value repeated, or the other end of the series.
        With "wrap", a `shift` of 0.5 allows any circular rotation.
    copies : int, default=2
        Number of copies of each sample that a tree, or a generation of boosting, sees besides the
        sample itself; at most 1,000.

    Examples
    --------
    >>> import numpy as np
    >>> from morforest import SeriesCopies
    >>> still = SeriesCopies(shift=0, stretch=0, warp=0, amplitude=0)
    >>> still.sample(np.arange(4.0).reshape(1, 4), random_state=0)
    array([[0., 1., 2., 3.]])
    """

    _draws = 4

    def __init__(
        self,
        *,
        shift: float = 0.05,
        stretch: float = 0.1,
        warp: float = 0.05,
        amplitude: float = 0.1,
        boundary: str = "edge",
        copies: int = 2,
    ):
        self.shift = shift
        self.stretch = stretch
        self.warp = warp
        self.amplitude = amplitude
        self.boundary = boundary
        self.copies = copies

    def sample(self, X: Any, random_state: Any = None, channel_axis: int | None = None) -> Any:
        """Return one copy of each sample, to look at; `channel_axis` is an axis of X."""
        return sample_copies(self, X, random_state, channel_axis)

    def _check_shape(self, shape: tuple[int, ...], channel_axis: int | None) -> None:
        if channel_axis is not None and len(shape) == 1:
            raise ValueError(
                f"augment=SeriesCopies() needs an axis of time beside channel_axis={channel_axis}."
            )
        self._check_number("shift", 1.0)
        self._check_number("stretch", 0.9)
        self._check_number("warp", 0.5)
        self._check_number("amplitude", 1.0)
        check_choice("boundary", self.boundary, ("edge", "wrap"))

    def _copy(
        self,
        x: np.ndarray,
        shape: tuple[int, ...],
        channel_axis: int | None,
        numbers: np.ndarray,
        out: np.ndarray,
    ) -> None:
        # Time is the last axis that holds no channels.
        axis = max(k for k in range(len(shape)) if k != channel_axis)
        length, stride = shape[axis], math.prod(shape[axis + 1 :])
        both = 2.0 * numbers - 1.0
        parameters = np.column_stack(
            [
                1.0 + self.stretch * both[:, 0],
                self.warp * length * both[:, 1],
                self.shift * length * both[:, 2],
                1.0 + self.amplitude * both[:, 3],
            ]
        )
        core.warp_series(x, length, stride, parameters, self.boundary == "wrap", out)


def sample_copies(augment: Any, X: Any, random_state: Any, channel_axis: int | None) -> np.ndarray:
    """Return one copy of each sample of X (n, ...), as float64; `channel_axis` is one of X."""
    X = np.asarray(X)
    if X.ndim < 2 or X.dtype.kind not in "buif" or not X.size:
        raise ValueError(f"X must hold samples of numbers, got shape {X.shape} of {X.dtype}.")
    samples = SampleShape.of(X.shape[1:], channel_axis)
    copier = make_copier(augment, samples.lengths, samples.channel_axis)
    assert copier is not None
    rows = X.reshape(len(X), -1).astype(np.float64)
    made = copier(rows, np.arange(len(X)), seed_from(random_state))
    return made.reshape(X.shape)


def _channels_first(
    x: np.ndarray, out: np.ndarray, shape: tuple[int, ...], channel_axis: int | None
) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return arrays whose images are contiguous, and a function that writes them to `out`."""
    if channel_axis is None or channel_axis == 0:
        return x, out, lambda: None
    moved = np.moveaxis(x.reshape(len(x), *shape), channel_axis + 1, 1)
    planes = np.empty_like(x)

    def undo() -> None:
        back = np.moveaxis(planes.reshape(moved.shape), 1, channel_axis + 1)
        out.reshape(len(x), *shape)[:] = back

    return np.ascontiguousarray(moved).reshape(len(x), -1), planes, undo
