"""Views: versions of a sample that atoms look at, such as its gradients.

A dictionary such as :class:`~morforest.Patch` takes ``views=``: one of the objects below or a
list of them. Each atom then looks at one of these views, drawn at random. The core computes views
in the same way for training and for prediction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sklearn.base import BaseEstimator

from morforest._native import core
from morforest._parameters import is_integer, restore_parameters
from morforest._states import stored
from morforest.dictionary._shape import SampleShape

__all__ = ["Difference", "Gradient", "Magnitude", "Raw", "Square"]

KINDS = ("raw", "difference", "square", "magnitude", "orientation", "squared_difference")
SQUARES = (KINDS.index("square"), KINDS.index("squared_difference"))
ANGLE_BITS = 40  # cosines are rounded to these bits, because C libraries differ in the last one
MAX_ORIENTATIONS = 64


@dataclass(frozen=True)
class View:
    """One view as the core takes it; it has the shape of the sample."""

    kind: str
    axis: int = 0
    other_axis: int = 0
    cosine: float = 1.0
    sine: float = 0.0

    def to_core(self) -> core.View:
        """Return the view as the core takes it."""
        return core.View(self.kind, self.axis, self.other_axis, self.cosine, self.sine)

    @classmethod
    def from_core(cls, view: core.View) -> View:
        """Read a view of the core."""
        return cls(view.kind, view.axis, view.other_axis, view.cosine, view.sine)

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
        return math.sqrt(8) * raw + 1

    def largest_of_nonnegative(self, raw: float) -> tuple[float, bool]:
        """Return the bound if no raw value is negative, and whether values of the view may be."""
        if self.kind == "difference":
            return raw, True
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
        if self.squares:
            return math.sqrt(room / self.largest(1.0))
        # A float64 between 2^52 and 2^53 rounds gradients to whole numbers.
        return min(room, 2.0**50) / 4

    @property
    def squares(self) -> bool:
        """Whether values are squares of raw values or of their differences."""
        return self.kind in ("square", "squared_difference")

    def squared(self) -> View | None:
        """Return the view of the squares of the values, if there is one."""
        if self.kind == "raw":
            return View("square")
        return View("squared_difference", self.axis) if self.kind == "difference" else None


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
