"""Views: versions of a sample that atoms look at, such as its gradients.

A dictionary such as :class:`~morforest.Patch` takes ``views=``: one of the objects below or a
list of them. Each atom then looks at one of these views, drawn at random. The core computes views
in the same way for training and for prediction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator

from morforest._native import core
from morforest._parameters import check_fraction, check_integer, is_integer, restore_parameters
from morforest._states import stored
from morforest.dictionary._shape import SampleShape

__all__ = ["Difference", "Filter", "Gradient", "Magnitude", "Product", "Raw", "Square", "White"]

KINDS = (
    "raw",
    "difference",
    "square",
    "magnitude",
    "orientation",
    "squared_difference",
    "filter",
    "squared_filter",
    "product",
)
ANGLE_BITS = 40  # cosines are rounded to these bits, because C libraries differ in the last one
MAX_ORIENTATIONS = 64
FILTER_BITS = 20  # behind the point of the weights of filters
LARGEST_WEIGHT = 1000.0  # of a filter
LEAST_SHRINKAGE = 1e-4


@dataclass(frozen=True)
class View:
    """One view as the core takes it; it has the shape of the sample."""

    kind: str
    axis: int = 0
    other_axis: int = 0
    cosine: float = 1.0
    sine: float = 0.0
    filters: tuple[int, ...] = ()  # of filters: row after row, in units of 2^-FILTER_BITS
    lag: int = 0  # of products: between the channels that are multiplied
    width: int = 0  # of products: steps of an octave band; zero for all frequencies

    def to_core(self) -> core.View:
        """Return the view as the core takes it."""
        return core.View(
            self.kind,
            self.axis,
            self.other_axis,
            self.cosine,
            self.sine,
            self.filters,
            self.lag,
            self.width,
        )

    @classmethod
    def from_core(cls, view: core.View) -> View:
        """Read a view of the core."""
        return cls(
            view.kind,
            view.axis,
            view.other_axis,
            view.cosine,
            view.sine,
            tuple(view.filters),
            view.lag,
            view.width,
        )

    def largest(self, raw: float) -> float:
        """Return a bound of the values, where raw values are at most `raw` in size."""
        if self.kind == "raw":
            return raw
        if self.kind == "difference":
            return 2 * raw
        if self.kind == "square":
            return raw * raw
        if self.kind == "squared_difference":
            return 4 * raw * raw
        if self.kind == "filter":
            return self.gain * raw + 1
        if self.kind == "squared_filter":
            return (self.gain * raw + 1) ** 2
        if self.kind == "product":  # a band is the difference of two means
            return (2 * self.gain * raw + 3) ** 2
        return math.sqrt(8) * raw + 1

    def largest_of_nonnegative(self, raw: float) -> tuple[float, bool]:
        """Return the bound if no raw value is negative, and whether values of the view may be."""
        if self.kind == "difference":
            return raw, True
        if self.kind in ("filter", "squared_filter", "product"):
            return self.largest(raw), self.kind != "squared_filter"
        if self.kind in ("raw", "square"):
            return self.largest(raw), False
        if self.kind == "squared_difference":
            return raw * raw, False
        return math.sqrt(2) * raw + 1, False

    def limit(self, room: float) -> float:
        """Return how large raw values may be if values of the view must stay below `room`."""
        if self.kind == "raw":
            return room
        if self.kind == "difference":
            return room / 2
        if self.kind in ("filter", "squared_filter", "product"):
            # The core's sums are those of weights in units of 2^-FILTER_BITS.
            most = math.sqrt(room) if self.squares else room
            if self.kind == "product":
                most = (most - 1) / 2
            return min((most - 1) / self.gain, 2.0 ** (61 - FILTER_BITS) / self.gain)
        if self.squares:
            return math.sqrt(room / self.largest(1.0))
        # A float64 between 2^52 and 2^53 rounds gradients to whole numbers.
        return min(room, 2.0**50) / 4

    @property
    def squares(self) -> bool:
        """Whether values are squares or products of those of another view."""
        return self.kind in ("square", "squared_difference", "squared_filter", "product")

    @property
    def gain(self) -> float:
        """How many times as large as the values of a sample those of its filters may be."""
        return _gain(self.filters)

    def squared(self) -> View | None:
        """Return the view of the squares of the values, if there is one."""
        if self.kind == "raw":
            return View("square")
        if self.kind == "filter":
            return replace(self, kind="squared_filter")
        return View("squared_difference", self.axis) if self.kind == "difference" else None


@dataclass(frozen=True)
class Unfitted(View):
    """A view whose filters are still to be fitted to samples."""

    shrinkage: float = 0.05

    def fitted(self, filters: tuple[int, ...]) -> View:
        """Return the view with its filters."""
        return View(self.kind, self.axis, self.other_axis, 1.0, 0.0, filters, self.lag, self.width)


@lru_cache(maxsize=64)
def _gain(filters: tuple[int, ...]) -> float:
    size = math.isqrt(len(filters))
    rows = [filters[i * size : (i + 1) * size] for i in range(size)]
    largest = max((sum(map(abs, row)) for row in rows), default=1 << FILTER_BITS)
    return max(largest / 2.0**FILTER_BITS, 2.0**-FILTER_BITS)


RAW = View("raw")


class BaseView(BaseEstimator):
    """What views share: parameters and comparison."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return bool(self.get_params() == other.get_params())

    def __hash__(self) -> int:
        return hash(type(self))

    def __setstate__(self, state: Any) -> None:
        restore_parameters(self, state)

    def _views(self, shape: SampleShape) -> list[View]:
        raise NotImplementedError


@stored
class Raw(BaseView):
    """The values themselves.

    Examples
    --------
    >>> from morforest import Gradient, Patch, Raw
    >>> Patch(max_size=9, views=[Raw(), Gradient()])
    Patch(max_size=9, views=[Raw(), Gradient()])
    """

    def _views(self, shape: SampleShape) -> list[View]:
        return [RAW]


@stored
class Square(BaseView):
    """The squares of the values."""

    def _views(self, shape: SampleShape) -> list[View]:
        return [View("square")]


@stored
class Difference(BaseView):
    """The differences of neighbours along an axis: the next value minus each value.

    Parameters
    ----------
    axis : int, default=-1
        Axis of a sample, not of X: 0 is the first axis after that of the samples.
    """

    def __init__(self, axis: int = -1):
        self.axis = axis

    def _views(self, shape: SampleShape) -> list[View]:
        return [View("difference", _axis("axis", self.axis, shape))]


@stored
class Magnitude(BaseView):
    """The length of an image's gradient: how sharp an edge is, whatever its direction.

    Parameters
    ----------
    axes : tuple of two int or None, default=None
        The axes of rows and columns, counted within a sample, not within X. None means the last two
        axes besides the channel axis.
    """

    def __init__(self, axes: Sequence[int] | None = None):
        self.axes = axes

    def _views(self, shape: SampleShape) -> list[View]:
        return [View("magnitude", *_plane(self.axes, shape))]


@stored
class Gradient(BaseView):
    """Edges by their direction: one view for each of several orientations.

    A view shows the length of the image's gradient times the ninth power of the cosine of the angle
    between the gradient and the orientation of the view, where that is positive. Gradients are
    central differences.

    Parameters
    ----------
    orientations : int, default=8
        Number of orientations, spread evenly over the circle.
    axes : tuple of two int or None, default=None
        The axes of rows and columns, counted within a sample, not within X. None means the last two
        axes besides the channel axis.
    """

    def __init__(self, orientations: int = 8, *, axes: Sequence[int] | None = None):
        self.orientations = orientations
        self.axes = axes

    def _views(self, shape: SampleShape) -> list[View]:
        count = self.orientations
        if not is_integer(count) or not 1 <= count <= MAX_ORIENTATIONS:
            raise ValueError(
                f"orientations must be an integer from 1 to {MAX_ORIENTATIONS}, got {count!r}."
            )
        axes = _plane(self.axes, shape)
        angles = [2 * math.pi * k / count for k in range(count)]
        return [
            View("orientation", *axes, _rounded(math.cos(a)), _rounded(math.sin(a))) for a in angles
        ]


@stored
class Filter(BaseView):
    """Weighted sums over an axis, such as the channels of a recording: one per place on the axis.

    Electrodes see mixtures of sources, which such sums take apart: those of independent component
    analysis, the common average, a Laplacian, or random ones.

    Parameters
    ----------
    matrix : array-like of shape (n, n)
        The weights, one row per sum; n is the length of the axis. They are rounded to multiples of
        2^-20, and may be as large as 1000.
    axis : int or None, default=None
        Axis of a sample, not of X. None means the channel axis, or the first of two axes.

    Examples
    --------
    >>> import numpy as np
    >>> from morforest import Filter, Patch, Raw
    >>> average = np.eye(4) - 1 / 4  # four channels, referred to their common average
    >>> dictionary = Patch(views=[Raw(), Filter(average)])
    """

    def __init__(self, matrix: Any, *, axis: int | None = None):
        self.matrix = matrix
        self.axis = axis

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        same = np.array_equal(np.asarray(self.matrix), np.asarray(other.matrix))
        return bool(same and self.axis == other.axis)

    def __hash__(self) -> int:
        return hash(type(self))

    def _views(self, shape: SampleShape) -> list[View]:
        axis = _sensor_axis(self, shape)
        length = shape.lengths[axis]
        try:
            matrix = np.asarray(self.matrix, dtype=np.float64)
        except (TypeError, ValueError):
            matrix = np.empty(0)
        if matrix.shape != (length, length):
            raise ValueError(
                f"matrix of Filter must have {length} rows and {length} columns of numbers for "
                f"samples of shape {shape} and axis {axis}, got {self.matrix!r}."
            )
        if not (np.abs(matrix) <= LARGEST_WEIGHT).all():
            raise ValueError(
                f"matrix of Filter must hold numbers from {-LARGEST_WEIGHT:g} to "
                f"{LARGEST_WEIGHT:g}, got {self.matrix!r}: scale it."
            )
        return [View("filter", axis, filters=filters_of(matrix))]


@stored
class White(BaseView):
    """Whitened channels: filters that are fitted to the training samples.

    On average over the samples, and over their other axes, whitened channels are uncorrelated and
    vary alike, as much as the mean of the channels. So what many channels share no longer hides
    what few of them see. The filters are the symmetric inverse root of the mean covariance of the
    samples, so that each resembles its channel. Targets play no part in it. Samples count by
    their weights.

    Parameters
    ----------
    shrinkage : float, default=0.05
        Share of the covariance that is replaced by equal variances without covariances, from
        0.0001 to 1.
    axis : int or None, default=None
        Axis of a sample, not of X. None means the channel axis, or the first of two axes.

    Notes
    -----
    The filters are part of a fitted model. They are those of all of its training samples: of a
    forest's out-of-bag scores, and of samples that boosting holds out, they have seen the values,
    though not the targets. Cross-validation of the estimator fits them anew in each fold.

    Examples
    --------
    >>> from morforest import Patch, Raw, White
    >>> Patch(views=[Raw(), White()])
    Patch(views=[Raw(), White()])
    """

    def __init__(self, shrinkage: float = 0.05, *, axis: int | None = None):
        self.shrinkage = shrinkage
        self.axis = axis

    def _views(self, shape: SampleShape) -> list[View]:
        axis = _sensor_axis(self, shape)
        check_fraction("shrinkage", self.shrinkage, LEAST_SHRINKAGE, 1)
        return [Unfitted("filter", axis, shrinkage=float(self.shrinkage))]


@stored
class Product(BaseView):
    """Products of two channels, step by step: sums over a window are powers and covariances.

    There is one view for each distance between the two channels, counted around the axis, and for
    each octave band. A distance of zero is the power of a channel.

    Parameters
    ----------
    of : White, Filter or None, default=None
        The channels. None means ``White()``.
    lags : int, default=4
        Number of distances, from zero; at most as many as all pairs need.
    bands : int, default=4
        Number of bands: all frequencies, and octaves from the highest one down. A band is the mean
        of w steps less that of 2 w around them, with w = 1, 2, 4, ...; at most as many as fit.

    Notes
    -----
    Time is the last axis besides that of the channels. Each view takes as much memory as the
    samples themselves.

    Examples
    --------
    >>> from morforest import Patch, Product
    >>> dictionary = Patch(1, (1, 50), boundary="inside", views=Product(lags=2, bands=3))
    """

    def __init__(self, of: White | Filter | None = None, *, lags: int = 4, bands: int = 4):
        self.of = of
        self.lags = lags
        self.bands = bands

    def _views(self, shape: SampleShape) -> list[View]:
        of = White() if self.of is None else self.of
        if not isinstance(of, (White, Filter)):
            raise ValueError(f"of must be None, White() or Filter(), got {of!r}.")
        check_integer("lags", self.lags, 1)
        check_integer("bands", self.bands, 1)
        (source,) = of._views(shape)
        times = [axis for axis in range(shape.rank) if axis != source.axis]
        if not times:
            raise ValueError(f"Product needs an axis of time, got samples of shape {shape}.")
        channels, steps = shape.lengths[source.axis], shape.lengths[times[-1]]
        widths = [0, *(1 << k for k in range(steps.bit_length()) if 4 << k <= steps)]
        return [
            replace(source, kind="product", other_axis=times[-1], lag=lag, width=width)
            for width in widths[: self.bands]
            for lag in range(min(self.lags, channels // 2 + 1))
        ]


def filters_of(matrix: np.ndarray) -> tuple[int, ...]:
    """Return the weights of filters in units of 2^-FILTER_BITS, row after row."""
    whole = np.rint(np.ldexp(matrix, FILTER_BITS)).astype(np.int64)
    return tuple(whole.ravel().tolist())


def _sensor_axis(view: Filter | White, shape: SampleShape) -> int:
    if view.axis is not None:
        return _axis("axis", view.axis, shape)
    if shape.channel_axis is not None:
        return shape.channel_axis
    if shape.rank != 2:
        raise ValueError(
            f"{type(view).__name__} needs to know the axis of channels of samples of shape "
            f"{shape}: set channel_axis, or the axis of {type(view).__name__}."
        )
    return 0


Views: TypeAlias = BaseView | Sequence[BaseView] | None


def views_of(views: Views, shape: SampleShape) -> tuple[View, ...]:
    """Return the views of a dictionary's `views`, each once."""
    given: Any = [Raw()] if views is None else views
    listed: list[Any] = list(given) if isinstance(given, (list, tuple)) else [given]
    if not listed or not all(isinstance(view, BaseView) for view in listed):
        raise ValueError(
            "views must be None, a view such as Gradient() or a non-empty list of them, "
            f"got {views!r}."
        )
    found = [found for view in listed for found in view._views(shape)]
    return tuple(dict.fromkeys(found))


def _rounded(x: float) -> float:
    return math.ldexp(round(math.ldexp(x, ANGLE_BITS)), -ANGLE_BITS)


def _axis(name: str, value: Any, shape: SampleShape) -> int:
    rank = shape.rank
    if not is_integer(value) or not -rank <= value < rank:
        raise ValueError(
            f"{name} must be an integer from {-rank} to {rank - 1} for samples of shape {shape}, "
            f"got {value!r}."
        )
    return int(value) % rank


def _plane(axes: Sequence[int] | None, shape: SampleShape) -> tuple[int, int]:
    if axes is None:
        free = shape.free_axes
        if len(free) < 2:
            channels = "" if shape.channel_axis is None else ", one axis of which holds channels"
            raise ValueError(
                f"Gradients need two axes, but samples have shape {shape}{channels}: use "
                "Difference() for series."
            )
        return free[-2], free[-1]
    if not isinstance(axes, (tuple, list)) or len(axes) != 2:
        raise ValueError(f"axes must be two axes of a sample, such as (0, 1), got {axes!r}.")
    rows, columns = (_axis("axes", axis, shape) for axis in axes)
    if rows == columns:
        raise ValueError(f"axes must be two different axes, got {axes!r}.")
    return rows, columns
