"""Dictionaries of boxes: sums over patches of neighbours, and differences of such sums."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from morforest._native import core
from morforest._parameters import check_choice, is_integer, is_number
from morforest._states import stored
from morforest.dictionary._along import Along
from morforest.dictionary._base import Bounds, Dictionary, cumulative_fractions
from morforest.dictionary._pooling import Pooled, Pooling, log_uniform
from morforest.dictionary._relations import Related
from morforest.dictionary._shape import SampleShape
from morforest.dictionary._views import View, Views
from morforest.dictionary._weights import Weighting, Weights, weighting_of

Sizes: TypeAlias = float | Sequence[float | None] | None  # for all axes, or for each


class Boxes(Dictionary):
    """What dictionaries of boxes share: sizes along each axis, and views."""

    min_size: Sizes
    max_size: Sizes
    size_distribution: str = "uniform"
    views: Views = None

    def _axis_values(self, name: str, shape: SampleShape, for_channels: Any) -> list[Any]:
        """Spread a parameter over the axes; `for_channels` is a scalar's value on channels."""
        value = getattr(self, name)
        rank = shape.rank
        if not _is_several(value):
            return [for_channels if axis == shape.channel_axis else value for axis in range(rank)]
        values = list(value)
        if len(values) == rank:
            return values
        if shape.channel_axis is not None and len(values) == rank - 1:
            values.insert(shape.channel_axis, for_channels)
            return values
        channels = ""
        if shape.channel_axis is None and len(values) == rank - 1:
            channels = (
                " If one of the axes holds channels, name it, such as channel_axis=1 for X of "
                "shape (n, channels, height, width), or drop it if its length is one."
            )
        raise ValueError(
            f"{name}={value!r} has {len(values)} entries, but samples of shape {shape} have "
            f"{rank} axes: give one value for all axes, or a tuple with one value per axis of a "
            f"sample.{channels}"
        )

    def _sizes(self, shape: SampleShape) -> tuple[list[int], list[int]]:
        smallest = [
            _size("min_size", value, length, axis)
            for axis, (value, length) in enumerate(
                zip(self._axis_values("min_size", shape, 1), shape.lengths, strict=True)
            )
        ]
        largest = [
            max(math.isqrt(length), low)
            if value is None
            else _size("max_size", value, length, axis)
            for axis, (value, length, low) in enumerate(
                zip(
                    self._axis_values("max_size", shape, 1),
                    shape.lengths,
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

    def _extent(self, shape: SampleShape) -> core.Extent:
        """Return the sizes as the core takes them."""
        return core.Extent(*self._sizes(shape), self._tables(shape))

    def _tables(self, shape: SampleShape) -> list[list[int]]:
        """Return the cumulated probabilities of the sizes of each axis; empty if all are equal."""
        check_choice("size_distribution", self.size_distribution, ("uniform", "log"))
        if self.size_distribution == "uniform":
            return []
        smallest, largest = self._sizes(shape)
        return [
            [] if low == high else cumulative_fractions(log_uniform(low, high)).tolist()
            for low, high in zip(smallest, largest, strict=True)
        ]


@stored
class Patch(Along, Pooled, Boxes):
    """Sums over random patches of neighbouring features: the dictionary of MORF.

    Along each axis the size of a patch is drawn between `min_size` and `max_size`, and then its
    position. A patch is an interval of a series, a rectangle of an image, or a box of a volume. The
    cost of a patch hardly grows with its size.

    Parameters
    ----------
    min_size, max_size : int, float or tuple, default=1 and None
        Smallest and largest size along each axis: an integer, or a float in (0, 1] for a fraction
        of the axis (rounded down, at least 1). One value serves all axes; a tuple has one value per
        axis of a sample, without the axis that counts the samples. ``max_size=None``, for all axes
        or as an entry of the tuple, is the square root of the axis' length, rounded down, but at
        least `min_size`. A channel axis (see :class:`MorfClassifier`) has size 1 unless a tuple
        says otherwise; tuples may leave it out.
    boundary : {"zero", "inside", "wrap"} or tuple of these, default="zero"
        With "zero", patches may reach over the border, where the data count as zero, so that each
        feature is covered equally often (as in the paper, without its empty position). With
        "inside", patches lie within the data. With "wrap", patches continue at the other end, which
        is right for circular axes.
    contiguous : bool or tuple of bool, default=True
        False is for axes without order, such as sensors: a patch then sums distinct random elements
        of that axis instead of neighbours.
    size_distribution : {"uniform", "log"}, default="uniform"
        Distribution of the sizes. With "uniform", all sizes are equally likely; with "log", each
        doubling of the size is as likely as any other.
    views : view, list of views or None, default=None
        Versions of a sample that patches look at, such as ``Gradient()``; see :class:`Raw`. Each
        patch looks at one of them. None means the raw values.
    pool : {"max", "min", "mean", "proportion"}, list of these or None, default=None
        Pooling makes atoms nonlinear: a patch moves over a window of positions, and its value is
        the largest, smallest or mean response there, or the proportion of responses above a bias.
        The bias is the response of a random training row of the node at a random position. If this
        is a list, each atom draws an entry. Windows run along the last two axes, not counting the
        channel axis and axes without order. Pooled atoms lie within the data, or continue at the
        other end with ``boundary="wrap"``.
    window : int, float or None, default=None
        Size of a window along each such axis: a number of positions, or a fraction of the axis (1.0
        for all positions), but at most the number of positions that the atom has. None means that
        half of the atoms take all positions, and the others a number of at least 2 whose logarithm
        is uniform.
    weights : {"sign", "uniform", "gaussian", "gabor"}, callable or None, default=None
        What the features of a patch weigh. None means 1. Other weights cost one cell per feature,
        since prefix sums cannot serve them. They are whole numbers, so that sums stay exact; only
        their ratios matter.

        - "sign": 1 or -1, drawn for each feature.
        - "uniform": numbers that are uniform on (0, 1], in steps of 1/256, drawn for each feature.
        - "gaussian": normal numbers in steps of 1/64, cut at 4 standard deviations and without
          zero, drawn for each feature.
        - "gabor": a wave under a bell, in one of eight directions, as in :class:`Kernel`.
        - A function that is called with each possible size, a tuple with one number per axis, and
          returns an array of this shape, or a list of such arrays, of which each atom draws one.
          Fractions are scaled to whole numbers of at most 256 in size. Random weights are made of a
          list that the function draws from a generator with a fixed seed.

    along : dict or None, default=None
        Axes whose elements are related in another way than by their order: an axis of a sample, not
        of X, and a :class:`Graph`, :class:`Neighbours` or :class:`Similarity` of its elements. The
        axis may also be that of the channels. A patch then holds a connected set of these elements,
        of the sizes that the relation names; `boundary` and `contiguous` mean nothing there, tuples
        of `min_size` and `max_size` have None, and windows do not run along such an axis. For
        samples of shape (electrodes, time), ``along={0: Neighbours(positions)}`` adds up intervals
        of time over electrodes that are close to each other.

    Examples
    --------
    >>> from morforest import Patch
    >>> Patch(max_size=(1, 3), boundary="wrap").sample((2, 5), 1, random_state=1).toarray()
    array([[0., 0., 0., 0., 0., 0., 1., 1., 0., 0.]])
    """

    def __init__(
        self,
        min_size: Sizes = 1,
        max_size: Sizes = None,
        *,
        boundary: str | Sequence[str] = "zero",
        contiguous: bool | Sequence[bool] = True,
        size_distribution: str = "uniform",
        views: Views = None,
        pool: Pooling = None,
        window: float | None = None,
        weights: Weights = None,
        along: Mapping[int, Related] | None = None,
    ):
        self.min_size = min_size
        self.max_size = max_size
        self.boundary = boundary
        self.contiguous = contiguous
        self.size_distribution = size_distribution
        self.views = views
        self.pool = pool
        self.window = window
        self.weights = weights
        self.along = along

    def _sizes(self, shape: SampleShape) -> tuple[list[int], list[int]]:
        related = self._relations(shape)
        smallest, largest = super()._sizes(shape)
        for axis, relation in related.items():
            smallest[axis], largest[axis] = relation._sizes(shape.lengths[axis])
        return smallest, largest

    def _axis_values(self, name: str, shape: SampleShape, for_channels: Any) -> list[Any]:
        values = super()._axis_values(name, shape, for_channels)
        given = getattr(self, name)
        named = name.endswith("size") and _is_several(given) and len(given) == shape.rank
        for axis in self._relations(shape):
            if named and values[axis] is not None:
                raise ValueError(
                    f"{name}={given!r} has a size for axis {axis}, whose sizes are those of "
                    f"along[{axis}]: give None there."
                )
            values[axis] = {"min_size": 1, "max_size": 1, "contiguous": False}.get(name, "zero")
        return values

    def _tables(self, shape: SampleShape) -> list[list[int]]:
        related = self._relations(shape)
        tables = super()._tables(shape)
        if not related:
            return tables
        tables = tables or [[] for _ in shape.lengths]
        for axis, relation in related.items():
            tables[axis] = relation._table(*relation._sizes(shape.lengths[axis])).tolist()
        return tables

    def _flags(self, shape: SampleShape) -> list[bool]:
        flags = self._axis_values("contiguous", shape, True)
        for flag in flags:
            if not isinstance(flag, (bool, np.bool_)):
                raise ValueError(
                    f"contiguous must be True, False or a tuple of these, got {self.contiguous!r}."
                )
        return [bool(flag) for flag in flags]

    def _boundaries(self, shape: SampleShape) -> list[str]:
        names = self._axis_values("boundary", shape, "zero")
        for name in names:
            if name not in ("zero", "inside", "wrap"):
                raise ValueError(
                    'boundary must be "zero", "inside", "wrap" or a tuple of these, '
                    f"got {self.boundary!r}."
                )
        return [str(name) for name in names]

    def _check(self, shape: SampleShape) -> None:
        for axis, relation in self._relations(shape).items():
            relation._check_along(axis, shape)
        self._sizes(shape)
        self._flags(shape)
        self._boundaries(shape)
        self._tables(shape)
        self._check_pool(shape)
        self._weighting(shape)

    def _smallest_extents(self, shape: SampleShape) -> list[int]:
        return self._sizes(shape)[0]

    def _ordered(self, shape: SampleShape) -> list[bool]:
        flags = self._flags(shape)
        return [flag and axis != shape.channel_axis for axis, flag in enumerate(flags)]

    def _circular(self, shape: SampleShape) -> list[bool]:
        return [name == "wrap" for name in self._boundaries(shape)]

    def _bounds(self, shape: SampleShape) -> Bounds:
        _, largest = self._sizes(shape)
        bounds = self._weighting(shape).bounds(float(math.prod(largest)))
        return self._pooled_bounds(bounds, shape)

    def _weighting(self, shape: SampleShape) -> Weighting:
        in_order = [axis for axis, ordered in enumerate(self._ordered(shape)) if ordered]
        return weighting_of(self.weights, *self._sizes(shape), in_order)

    def _add_to(self, built: core.Dictionary, shape: SampleShape) -> None:
        weights = self._weighting(shape).to_core()
        related = self._relations(shape).items()
        along = [(axis, relation._relation(relation._edges())) for axis, relation in related]
        rules = self._boundaries(shape), self._flags(shape)
        built.add_patch(self._extent(shape), *rules, weights, along)


@stored
class Haar(Pooled, Boxes):
    """Equal boxes side by side with weights of opposite sign: edges and lines.

    Two boxes in a row have the weights 1 and -1, three have 1, -2 and 1. All boxes lie within the
    data. In series, they find steps and bumps.

    Parameters
    ----------
    min_size, max_size : int, float or tuple, default=1 and None
        Smallest and largest size of one box, as in :class:`Patch`. Boxes that do not fit side by
        side are made smaller.
    lobes : str or list of str, default=("two", "three")
        How many boxes stand in a row: "two" or "three", or both, drawn equally often.
    axes : int, tuple of int or None, default=None
        Axes of a sample, not of X, along which boxes may stand side by side. None means all axes
        except the channel axis.
    size_distribution : {"uniform", "log"}, default="uniform"
        Distribution of the sizes, as in :class:`Patch`.
    views : view, list of views or None, default=None
        Versions of a sample that atoms look at, as in :class:`Patch`.
    pool, window : default=None
        Pooling of the atoms, as in :class:`Patch`.

    Examples
    --------
    >>> from morforest import Haar
    >>> Haar(min_size=2, max_size=2, lobes="two").sample(4, 1).toarray()
    array([[ 1.,  1., -1., -1.]])
    """

    def __init__(
        self,
        min_size: Sizes = 1,
        max_size: Sizes = None,
        *,
        lobes: str | Sequence[str] = ("two", "three"),
        axes: int | Sequence[int] | None = None,
        size_distribution: str = "uniform",
        views: Views = None,
        pool: Pooling = None,
        window: float | None = None,
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
        kinds: list[Any] = list(self.lobes) if several else [self.lobes]
        known = ("two", "three")
        if not kinds or not all(isinstance(kind, str) and kind in known for kind in kinds):
            raise ValueError(
                f'lobes must be "two", "three" or a list of these, got {self.lobes!r}.'
            )
        return kinds

    def _lobed(self, shape: SampleShape) -> list[bool]:
        rank = shape.rank
        if self.axes is None:
            return [axis != shape.channel_axis for axis in range(rank)]
        several = isinstance(self.axes, (list, tuple))
        axes: list[Any] = list(self.axes) if several else [self.axes]  # type: ignore[arg-type]
        if not axes or not all(is_integer(axis) and -rank <= axis < rank for axis in axes):
            raise ValueError(
                f"axes must be axes of samples of shape {shape}, integers from {-rank} to "
                f"{rank - 1}, got {self.axes!r}."
            )
        chosen = {int(axis) % rank for axis in axes}
        return [axis in chosen for axis in range(rank)]

    def _check(self, shape: SampleShape) -> None:
        smallest, _ = self._sizes(shape)
        self._tables(shape)
        kinds, lobed = self._kinds(), self._lobed(shape)
        if not any(lobed):
            raise ValueError(
                f"axes={self.axes!r} leaves no axis to samples of shape {shape}, whose only axis "
                "holds channels: name an axis."
            )
        most = 3 if "three" in kinds else 2
        for axis, (low, length) in enumerate(zip(smallest, shape.lengths, strict=True)):
            if lobed[axis] and most * low > length:
                raise ValueError(
                    f"{most} boxes of min_size={low} do not fit side by side along axis "
                    f"{axis} of length {length}: choose a smaller min_size, other lobes, or axes "
                    "without it."
                )
        self._check_pool(shape)

    def _smallest_extents(self, shape: SampleShape) -> list[int]:
        # Boxes stand side by side along one axis; along the others an atom has the size of one box.
        smallest, _ = self._sizes(shape)
        lobed = self._lobed(shape)
        lobes = 3 if set(self._kinds()) == {"three"} else 2
        one = sum(lobed) == 1  # no choice of axes
        return [low * lobes if one and on else low for low, on in zip(smallest, lobed, strict=True)]

    def _bounds(self, shape: SampleShape) -> Bounds:
        _, largest = self._sizes(shape)
        lobed = self._lobed(shape)
        mass = 0.0
        for kind in self._kinds():
            lobes, weight = (3, 4) if kind == "three" else (2, 2)
            area = math.prod(largest)
            cut = [
                min(size, length // lobes) / size
                for size, length, on in zip(largest, shape.lengths, lobed, strict=True)
                if on
            ]
            mass = max(mass, weight * area * max(cut))
        bounds = Bounds(mass=float(mass), nonnegative=False, integral=True, side=mass / 2)
        return self._pooled_bounds(bounds, shape)

    def _add_to(self, built: core.Dictionary, shape: SampleShape) -> None:
        built.add_haar(self._extent(shape), self._lobed(shape), self._kinds())


@stored
class Pair(Pooled, Boxes):
    """The difference of two equal boxes, at a distance or on different views.

    Parameters
    ----------
    min_size, max_size : int, float or tuple, default=1 and None
        Smallest and largest size along each axis, as in :class:`Patch`.
    reach : int, float or tuple, default=0.35
        Largest distance between the two boxes along each axis, in both directions: an
        integer, or a fraction of the axis. Both boxes lie within the data. Along a channel
        axis the distance is 0 unless a tuple, with one value per axis of a sample, says otherwise.
    size_distribution : {"uniform", "log"}, default="uniform"
        Distribution of the sizes, as in :class:`Patch`.
    views : view, list of views or None, default=None
        Versions of a sample that the boxes look at, as in :class:`Patch`. If there are
        several, half of the pairs draw a view for each box.
    pool, window : default=None
        Pooling of the atoms, as in :class:`Patch`. Both boxes move together.

    Examples
    --------
    >>> from morforest import Pair
    >>> Pair(min_size=1, max_size=1, reach=2).sample(4, 1, random_state=3).toarray()
    array([[ 0., -1.,  0.,  1.]])
    """

    _crosses_views = True

    def __init__(
        self,
        min_size: Sizes = 1,
        max_size: Sizes = None,
        *,
        reach: float | Sequence[float] = 0.35,
        size_distribution: str = "uniform",
        views: Views = None,
        pool: Pooling = None,
        window: float | None = None,
    ):
        self.min_size = min_size
        self.max_size = max_size
        self.reach = reach
        self.size_distribution = size_distribution
        self.views = views
        self.pool = pool
        self.window = window

    def _reaches(self, shape: SampleShape) -> list[int]:
        found = []
        values = self._axis_values("reach", shape, 0)
        for axis, (value, length) in enumerate(zip(values, shape.lengths, strict=True)):
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

    def _check(self, shape: SampleShape) -> None:
        self._sizes(shape)
        self._tables(shape)
        self._reaches(shape)
        self._check_pool(shape)

    def _smallest_extents(self, shape: SampleShape) -> list[int]:
        return self._sizes(shape)[0]

    def _bounds(self, shape: SampleShape) -> Bounds:
        _, largest = self._sizes(shape)
        area = float(math.prod(largest))
        bounds = Bounds(mass=2.0 * area, nonnegative=False, integral=True, side=area)
        return self._pooled_bounds(bounds, shape)

    def _add_to(self, built: core.Dictionary, shape: SampleShape) -> None:
        built.add_pair(self._extent(shape), self._reaches(shape))


@stored
class Variance(Boxes):
    """The variance of the values in a random box: how much a series varies there.

    Variances are not linear in the features. Boxes lie within the data. A variance is computed
    from the sum of the values and the sum of their squares, at a cost that hardly grows with the
    size.

    Parameters
    ----------
    min_size, max_size : int, float or tuple, default=2 and None
        Smallest and largest size along each axis, as in :class:`Patch`.
    size_distribution : {"uniform", "log"}, default="uniform"
        Distribution of the sizes, as in :class:`Patch`.
    views : view, list of views or None, default=None
        ``Raw()``, ``Difference()`` or a list of these. None means the raw values.

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
        min_size: Sizes = 2,
        max_size: Sizes = None,
        *,
        size_distribution: str = "uniform",
        views: Views = None,
    ):
        self.min_size = min_size
        self.max_size = max_size
        self.size_distribution = size_distribution
        self.views = views

    def _views(self, shape: SampleShape) -> tuple[View, ...]:
        views = super()._views(shape)
        squares = [view.squared() for view in views]
        if None in squares:
            raise ValueError(
                "views of Variance must be Raw(), Difference(), White(), Filter() or a list of "
                f"these, got {self.views!r}."
            )
        return (*views, *[square for square in squares if square is not None])

    def _view_mass(self, view: View, bounds: Bounds) -> float:
        return bounds.mass**2 if view.squares else bounds.mass

    def _check(self, shape: SampleShape) -> None:
        self._sizes(shape)
        self._tables(shape)

    def _bounds(self, shape: SampleShape) -> Bounds:
        _, largest = self._sizes(shape)
        mass = float(math.prod(largest))
        return Bounds(mass=mass, nonnegative=False, integral=True, nonlinear=True)

    def _add_to(self, built: core.Dictionary, shape: SampleShape) -> None:
        built.add_variance(self._extent(shape))


def _is_several(value: Any) -> bool:
    """Say whether a parameter has one value per axis."""
    return isinstance(value, (tuple, list)) or bool(isinstance(value, np.ndarray) and value.ndim)


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
            f"give 1 to {length}, or a tuple with one size per axis. If it holds channels, name "
            f"it: channel_axis={axis + 1}."
        )
    return size
