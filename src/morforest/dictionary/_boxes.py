"""Dictionaries of rectangles: sums over patches of neighbours, and differences of such sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from morforest._parameters import check_choice, is_integer, is_number
from morforest.dictionary._base import Bounds, Dictionary, cumulative_fractions
from morforest.dictionary._pooling import Pooled, log_uniform
from morforest.dictionary._views import View


class Boxes(Dictionary):
    """What dictionaries of rectangles share: sizes along each axis, and views."""

    min_size: Any
    max_size: Any
    size_distribution: str = "uniform"
    views: Any = None

    def _axis_values(
        self, name: str, shape: tuple[int, ...], channel_axis: int | None, for_channels: Any
    ) -> list[Any]:
        """Spread a parameter over the axes; `for_channels` is a scalar's value on channels."""
        value = getattr(self, name)
        rank = len(shape)
        if not isinstance(value, (tuple, list, np.ndarray)):
            return [for_channels if axis == channel_axis else value for axis in range(rank)]
        values = list(value)
        if len(values) == rank:
            return values
        if channel_axis is not None and len(values) == rank - 1:
            return [*values[:channel_axis], for_channels, *values[channel_axis:]]
        raise ValueError(
            f"{name}={value!r} has {len(values)} entries, but samples of shape {shape} have "
            f"{rank} axes: give one value for all axes or a tuple with one an axis."
        )

    def _sizes(
        self, shape: tuple[int, ...], channel_axis: int | None
    ) -> tuple[list[int], list[int]]:
        smallest = [
            _size("min_size", value, length, axis)
            for axis, (value, length) in enumerate(
                zip(self._axis_values("min_size", shape, channel_axis, 1), shape, strict=True)
            )
        ]
        largest = [
            max(math.isqrt(length), low)
            if value is None
            else _size("max_size", value, length, axis)
            for axis, (value, length, low) in enumerate(
                zip(
                    self._axis_values("max_size", shape, channel_axis, 1),
                    shape,
                    smallest,
                    strict=True,
                )
            )
        ]
        for axis, (low, high) in enumerate(zip(smallest, largest, strict=True)):
            if low > high:
                raise ValueError(
                    f"min_size is {low} and max_size is {high} along axis {axis} of samples of "
                    f"shape {shape}: min_size={self.min_size!r} must not exceed "
                    f"max_size={self.max_size!r} there."
                )
        return smallest, largest

    def _tables(self, shape: tuple[int, ...], channel_axis: int | None) -> list[list[int]]:
        """Return the probabilities of the sizes of each axis; empty where all are alike."""
        check_choice("size_distribution", self.size_distribution, ("uniform", "log"))
        if self.size_distribution == "uniform":
            return []
        smallest, largest = self._sizes(shape, channel_axis)
        return [
            [] if low == high else cumulative_fractions(log_uniform(low, high)).tolist()
            for low, high in zip(smallest, largest, strict=True)
        ]


class Patch(Pooled, Boxes):
    """Sums over random patches of neighbouring features: the dictionary of MORF.

    Along each axis the size of a patch is drawn uniformly from `min_size` to `max_size`, then its
    position. A patch of images is a rectangle, of series an interval, of volumes a box. The cost
    of a patch does not depend on its size.

    Parameters
    ----------
    min_size, max_size : int, float or tuple, default=1 and None
        Smallest and largest size along each axis: an integer, or a float in (0, 1] for a fraction
        of the axis (rounded down, at least 1). One value serves all axes, a tuple names one an
        axis. ``max_size=None``, for all axes or as an entry of the tuple, is the square root of
        the axis' length, rounded down, but at least `min_size`. A channel axis (see
        :class:`MorfClassifier`) has size 1 unless a tuple says otherwise; tuples may leave it out.
    boundary : {"zero", "inside", "wrap"} or tuple of these, default="zero"
        "zero": patches may reach over the border, where the data counts as zero, so that each
        feature is covered equally often (the paper's rule). "inside": patches lie within the data.
        "wrap": patches continue at the other end, for circular axes.
    contiguous : bool or tuple of bool, default=True
        False for an axis without order, such as sensors: instead of neighbours, distinct random
        elements of that axis are summed.
    size_distribution : {"uniform", "log"}, default="uniform"
        How sizes are drawn: all alike, or as the logarithm is, so that each doubling of the size
        is as likely as any other.
    views : view, list of views or None, default=None
        What patches look at, such as ``Gradient()``; see :class:`Raw`. Each patch
        takes one of the views. None: the raw values.
    pool : {"max", "min", "mean", "proportion"}, list of these or None, default=None
        Make atoms nonlinear: a patch moves over a window of positions, and its value is the
        largest, smallest or mean response there, or the proportion of responses above a bias (the
        bias is the response of a random sample of the node at a random position). Of a list,
        each atom takes one. Windows run along the last two axes but for the channel axis and
        those without order. Pooled atoms lie within the data, or go round with boundary="wrap".
    window : int, float or None, default=None
        Positions of a window along each such axis: a number, or a fraction of the axis (1.0: all
        positions), cut to the places that the atom has. None: half of the atoms take all places,
        the others a number from 2 on whose logarithm is uniform.

    Examples
    --------
    >>> from morforest import Patch
    >>> Patch(max_size=(1, 3), boundary="wrap").sample((2, 5), 1, random_state=1).toarray()
    array([[0., 0., 0., 0., 0., 0., 1., 1., 0., 0.]])
    """

    def __init__(
        self,
        min_size: Any = 1,
        max_size: Any = None,
        boundary: Any = "zero",
        contiguous: Any = True,
        size_distribution: str = "uniform",
        views: Any = None,
        pool: Any = None,
        window: Any = None,
    ):
        self.min_size = min_size
        self.max_size = max_size
        self.boundary = boundary
        self.contiguous = contiguous
        self.size_distribution = size_distribution
        self.views = views
        self.pool = pool
        self.window = window

    def _flags(self, shape: tuple[int, ...], channel_axis: int | None) -> list[bool]:
        flags = self._axis_values("contiguous", shape, channel_axis, True)
        for flag in flags:
            if not isinstance(flag, (bool, np.bool_)):
                raise ValueError(
                    f"contiguous must be True, False or a tuple of these, got {self.contiguous!r}."
                )
        return [bool(flag) for flag in flags]

    def _boundaries(self, shape: tuple[int, ...], channel_axis: int | None) -> list[str]:
        names = self._axis_values("boundary", shape, channel_axis, "zero")
        for name in names:
            if name not in ("zero", "inside", "wrap"):
                raise ValueError(
                    'boundary must be "zero", "inside", "wrap" or a tuple of these, '
                    f"got {self.boundary!r}."
                )
        return [str(name) for name in names]

    def _check(self, shape: tuple[int, ...], channel_axis: int | None) -> None:
        self._sizes(shape, channel_axis)
        self._flags(shape, channel_axis)
        self._boundaries(shape, channel_axis)
        self._tables(shape, channel_axis)
        self._check_pool(shape, channel_axis)

    def _smallest_extents(self, shape: tuple[int, ...], channel_axis: int | None) -> list[int]:
        return self._sizes(shape, channel_axis)[0]

    def _ordered(self, shape: tuple[int, ...], channel_axis: int | None) -> list[bool]:
        flags = self._flags(shape, channel_axis)
        return [flag and axis != channel_axis for axis, flag in enumerate(flags)]

    def _circular(self, shape: tuple[int, ...], channel_axis: int | None) -> list[bool]:
        return [name == "wrap" for name in self._boundaries(shape, channel_axis)]

    def _bounds(self, shape: tuple[int, ...], channel_axis: int | None) -> Bounds:
        _, largest = self._sizes(shape, channel_axis)
        bounds = Bounds(mass=float(math.prod(largest)), nonnegative=True, integral=True)
        return self._pooled_bounds(bounds, shape, channel_axis)

    def _add_to(self, built: Any, shape: tuple[int, ...], channel_axis: int | None) -> None:
        smallest, largest = self._sizes(shape, channel_axis)
        built.add_patch(
            smallest,
            largest,
            self._tables(shape, channel_axis),
            self._boundaries(shape, channel_axis),
            self._flags(shape, channel_axis),
        )


class Haar(Pooled, Boxes):
    """Equal rectangles side by side with weights of opposite sign: edges, lines and corners.

    Two in a row weigh 1 and -1, three 1, -2 and 1, and four in a square 1, -1, -1 and 1. All lie
    within the data. Along series, they are steps and bumps.

    Parameters
    ----------
    min_size, max_size : int, float or tuple, default=1 and None
        Smallest and largest size of one rectangle, as in :class:`Patch`. Larger ones than fit
        side by side are cut to size.
    lobes : str or list of str, default=("two", "three")
        Any of "two", "three" and "square", drawn equally often.
    axes : int, tuple of int or None, default=None
        Axes along which rectangles may stand side by side. None: all but the channel axis.
    size_distribution : {"uniform", "log"}, default="uniform"
        How sizes are drawn, as in :class:`Patch`.
    views : view, list of views or None, default=None
        What atoms look at, as in :class:`Patch`.
    pool, window : default=None
        Make atoms nonlinear, as in :class:`Patch`.

    Examples
    --------
    >>> from morforest import Haar
    >>> Haar(min_size=2, max_size=2, lobes="two").sample(4, 1).toarray()
    array([[ 1.,  1., -1., -1.]])
    """

    def __init__(
        self,
        min_size: Any = 1,
        max_size: Any = None,
        lobes: Any = ("two", "three"),
        axes: Any = None,
        size_distribution: str = "uniform",
        views: Any = None,
        pool: Any = None,
        window: Any = None,
    ):
        self.min_size = min_size
        self.max_size = max_size
        self.lobes = lobes
        self.axes = axes
        self.size_distribution = size_distribution
        self.views = views
        self.pool = pool
        self.window = window

    def _kinds(self) -> list[str]:
        several = isinstance(self.lobes, (list, tuple))
        kinds = list(self.lobes) if several else [self.lobes]
        known = ("two", "three", "square")
        if not kinds or not all(isinstance(kind, str) and kind in known for kind in kinds):
            raise ValueError(
                f'lobes must be "two", "three", "square" or a list of these, got {self.lobes!r}.'
            )
        return kinds

    def _lobed(self, shape: tuple[int, ...], channel_axis: int | None) -> list[bool]:
        rank = len(shape)
        if self.axes is None:
            return [axis != channel_axis for axis in range(rank)]
        axes = list(self.axes) if isinstance(self.axes, (list, tuple)) else [self.axes]
        if not axes or not all(is_integer(axis) and -rank <= axis < rank for axis in axes):
            raise ValueError(
                f"axes must be axes of samples of shape {shape}, integers from {-rank} to "
                f"{rank - 1}, got {self.axes!r}."
            )
        chosen = {int(axis) % rank for axis in axes}
        return [axis in chosen for axis in range(rank)]

    def _check(self, shape: tuple[int, ...], channel_axis: int | None) -> None:
        smallest, _ = self._sizes(shape, channel_axis)
        self._tables(shape, channel_axis)
        kinds, lobed = self._kinds(), self._lobed(shape, channel_axis)
        if not any(lobed):
            raise ValueError(
                f"axes={self.axes!r} leaves no axis to samples of shape {shape}, whose only axis "
                "holds channels: name one."
            )
        if "square" in kinds and sum(lobed) < 2:
            raise ValueError(
                f'lobes={self.lobes!r} has "square", which needs two axes; samples of shape '
                f"{shape} have {sum(lobed)} here."
            )
        most = 3 if "three" in kinds else 2
        for axis, (low, length) in enumerate(zip(smallest, shape, strict=True)):
            if lobed[axis] and most * low > length:
                raise ValueError(
                    f"{most} rectangles of min_size={low} do not fit side by side along axis "
                    f"{axis} of length {length}: choose a smaller min_size, other lobes, or axes "
                    "without it."
                )
        self._check_pool(shape, channel_axis)

    def _smallest_extents(self, shape: tuple[int, ...], channel_axis: int | None) -> list[int]:
        # Lobes stand along one axis or two; along the others an atom is one rectangle wide.
        smallest, _ = self._sizes(shape, channel_axis)
        lobed = self._lobed(shape, channel_axis)
        kinds = self._kinds()
        sides = 2 if kinds == ["square"] and sum(lobed) == 2 else 1
        lobes = 3 if set(kinds) == {"three"} else 2
        one = sum(lobed) == sides  # no choice of axes
        return [low * lobes if one and on else low for low, on in zip(smallest, lobed, strict=True)]

    def _bounds(self, shape: tuple[int, ...], channel_axis: int | None) -> Bounds:
        _, largest = self._sizes(shape, channel_axis)
        lobed = self._lobed(shape, channel_axis)
        mass = 0.0
        for kind in self._kinds():
            lobes = 3 if kind == "three" else 2
            weight = 4 if kind != "two" else 2
            area = math.prod(largest)
            cut = [
                min(size, length // lobes) / size
                for size, length, on in zip(largest, shape, lobed, strict=True)
                if on
            ]
            mass = max(mass, weight * area * max(cut))
        bounds = Bounds(mass=float(mass), nonnegative=False, integral=True, side=mass / 2)
        return self._pooled_bounds(bounds, shape, channel_axis)

    def _add_to(self, built: Any, shape: tuple[int, ...], channel_axis: int | None) -> None:
        smallest, largest = self._sizes(shape, channel_axis)
        tables = self._tables(shape, channel_axis)
        built.add_haar(smallest, largest, tables, self._lobed(shape, channel_axis), self._kinds())


class Pair(Pooled, Boxes):
    """The difference of two equal rectangles, at a distance and across channels.

    Parameters
    ----------
    min_size, max_size : int, float or tuple, default=1 and None
        Smallest and largest size along each axis, as in :class:`Patch`.
    reach : int, float or tuple, default=0.35
        How far the second rectangle may lie from the first along each axis, in both directions: an
        integer, or a fraction of the axis. Both lie within the data. 0 on a channel axis unless a
        tuple says otherwise.
    size_distribution : {"uniform", "log"}, default="uniform"
        How sizes are drawn, as in :class:`Patch`.
    views : view, list of views or None, default=None
        What the rectangles look at, as in :class:`Patch`. With several, half of the pairs draw a
        view for each rectangle.
    pool, window : default=None
        Make atoms nonlinear, as in :class:`Patch`: both rectangles move together.

    Examples
    --------
    >>> from morforest import Pair
    >>> Pair(min_size=1, max_size=1, reach=2).sample(4, 1, random_state=3).toarray()
    array([[ 0., -1.,  0.,  1.]])
    """

    _crosses_views = True

    def __init__(
        self,
        min_size: Any = 1,
        max_size: Any = None,
        reach: Any = 0.35,
        size_distribution: str = "uniform",
        views: Any = None,
        pool: Any = None,
        window: Any = None,
    ):
        self.min_size = min_size
        self.max_size = max_size
        self.reach = reach
        self.size_distribution = size_distribution
        self.views = views
        self.pool = pool
        self.window = window

    def _reaches(self, shape: tuple[int, ...], channel_axis: int | None) -> list[int]:
        found = []
        values = self._axis_values("reach", shape, channel_axis, 0)
        for axis, (value, length) in enumerate(zip(values, shape, strict=True)):
            if is_integer(value) and 0 <= value < length:
                found.append(int(value))
            elif is_number(value) and not is_integer(value) and 0 <= value <= 1:
                found.append(min(int(value * length), length - 1))
            else:
                raise ValueError(
                    f"reach must be made of integers from 0 to {length - 1} or fractions of the "
                    f"axis in [0, 1], got {value!r} for axis {axis} of length {length}."
                )
        return found

    def _check(self, shape: tuple[int, ...], channel_axis: int | None) -> None:
        self._sizes(shape, channel_axis)
        self._tables(shape, channel_axis)
        self._reaches(shape, channel_axis)
        self._check_pool(shape, channel_axis)

    def _smallest_extents(self, shape: tuple[int, ...], channel_axis: int | None) -> list[int]:
        return self._sizes(shape, channel_axis)[0]

    def _bounds(self, shape: tuple[int, ...], channel_axis: int | None) -> Bounds:
        _, largest = self._sizes(shape, channel_axis)
        area = float(math.prod(largest))
        bounds = Bounds(mass=2.0 * area, nonnegative=False, integral=True, side=area)
        return self._pooled_bounds(bounds, shape, channel_axis)

    def _add_to(self, built: Any, shape: tuple[int, ...], channel_axis: int | None) -> None:
        smallest, largest = self._sizes(shape, channel_axis)
        tables = self._tables(shape, channel_axis)
        built.add_pair(smallest, largest, tables, self._reaches(shape, channel_axis))


class Variance(Boxes):
    """The variance of the values in a random rectangle: how much a series moves there.

    Not linear. Rectangles lie within the data. Computed from the sums of the values and of their
    squares, at a cost that does not depend on the size.

    Parameters
    ----------
    min_size, max_size : int, float or tuple, default=2 and None
        Smallest and largest size along each axis, as in :class:`Patch`.
    size_distribution : {"uniform", "log"}, default="uniform"
        How sizes are drawn, as in :class:`Patch`.
    views : view, list of views or None, default=None
        ``Raw()``, ``Difference()`` or a list of these. None: the raw values.

    Examples
    --------
    >>> import numpy as np
    >>> from morforest import MorfClassifier, Variance
    >>> random = np.random.default_rng(0)
    >>> y = random.integers(0, 2, 200)
    >>> X = random.normal(scale=1 + y[:, np.newaxis], size=(200, 50))
    >>> forest = MorfClassifier(Variance(max_size=50), random_state=0).fit(X[:100], y[:100])
    >>> forest.score(X[100:], y[100:]) > 0.95
    True
    """

    def __init__(
        self,
        min_size: Any = 2,
        max_size: Any = None,
        size_distribution: str = "uniform",
        views: Any = None,
    ):
        self.min_size = min_size
        self.max_size = max_size
        self.size_distribution = size_distribution
        self.views = views

    def _views(self, shape: tuple[int, ...], channel_axis: int | None) -> tuple[View, ...]:
        views = super()._views(shape, channel_axis)
        squares = [view.squared() for view in views]
        if None in squares:
            raise ValueError(
                "views of Variance must be Raw(), Difference() or a list of these, got "
                f"{self.views!r}."
            )
        return (*views, *[square for square in squares if square is not None])

    def _view_mass(self, view: View, bounds: Bounds) -> float:
        return bounds.mass**2 if view.squares else bounds.mass

    def _check(self, shape: tuple[int, ...], channel_axis: int | None) -> None:
        self._sizes(shape, channel_axis)
        self._tables(shape, channel_axis)

    def _bounds(self, shape: tuple[int, ...], channel_axis: int | None) -> Bounds:
        _, largest = self._sizes(shape, channel_axis)
        mass = float(math.prod(largest))
        return Bounds(mass=mass, nonnegative=False, integral=True, forms=True)

    def _add_to(self, built: Any, shape: tuple[int, ...], channel_axis: int | None) -> None:
        smallest, largest = self._sizes(shape, channel_axis)
        built.add_variance(smallest, largest, self._tables(shape, channel_axis))


def _size(name: str, value: Any, length: int, axis: int) -> int:
    if is_integer(value):
        size = int(value)
    elif is_number(value) and 0 < value <= 1:
        size = max(1, int(value * length))
    else:
        raise ValueError(
            f"{name} must be made of positive integers, or fractions of the axis in (0, 1], "
            f"got {value!r} for axis {axis}."
        )
    if not 1 <= size <= length:
        raise ValueError(
            f"{name}={size} along axis {axis} is impossible: the axis has length {length}, so "
            f"give 1 to {length}, or a tuple with one size an axis."
        )
    return size
