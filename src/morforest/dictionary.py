"""Dictionaries: where a forest draws its split candidates from.

A forest splits a node by comparing ``a @ x`` with a threshold. The vectors ``a``, called atoms,
are drawn at random from a dictionary, and the dictionary says what the data's manifold looks like:
single features (:class:`Axis`, a random forest), sparse signed combinations
(:class:`SparseOblique`, SPORF), sums over patches of neighbours (:class:`Patch`, MORF), or atoms
of your own (:class:`Atoms`). :class:`Mixture` combines them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from morforest._checks import check_random_state, is_integer, is_number
from morforest._kernel import core
from morforest.channels import RAW, Source, sources_of, to_core

__all__ = ["Atoms", "Axis", "Haar", "Mixture", "Pair", "Patch", "SparseOblique"]

MAX_AXES = 16


@dataclass(frozen=True)
class Bounds:
    """What the choice of number types must know of a dictionary's atoms."""

    mass: float  # the largest sum of absolute weights
    nonnegative: bool
    integral: bool
    derived: tuple[tuple[Source, float], ...] = ()  # derived channels, with the mass of their atoms

    def value(self, largest: float) -> float:
        """Return how large an atom's value may be where raw values are at most so large."""
        values = [source.largest(largest) * mass for source, mass in self.derived]
        return max(self.mass * largest, *values, 0.0)

    def limit(self, bits: int) -> float:
        """Return a size of raw values that keeps those of atoms below 2^bits."""
        limits = [2.0**bits / max(self.mass, 1.0)]
        for source, mass in self.derived:
            room = 2.0**bits / max(mass, 1.0)
            # Gradients are rounded as float64, which holds whole numbers up to 2^53.
            limits.append(math.sqrt(room) if source.kind == "square" else min(room, 2.0**50) / 4)
        return min(limits)


@dataclass(frozen=True)
class Plan:
    """A dictionary resolved for a sample shape: what a fit passes around and pickles."""

    dictionary: _Dictionary
    shape: tuple[int, ...]
    channel_axis: int | None

    def bounds(self) -> Bounds:
        """Bounds over all components."""
        mass, nonnegative, integral = 1.0, True, True
        derived: dict[Source, float] = {}
        for part in self._components():
            bounds = part._bounds(self.shape, self.channel_axis)
            nonnegative &= bounds.nonnegative
            integral &= bounds.integral
            for source in self._sources_of(part):
                if source == RAW:
                    mass = max(mass, bounds.mass)
                else:
                    derived[source] = max(derived.get(source, 0.0), bounds.mass)
                    nonnegative &= source.kind != "difference"
        return Bounds(mass, nonnegative, integral, tuple(derived.items()))

    def sources(self) -> tuple[Source, ...]:
        """Return the channels that atoms look at, each once."""
        found = [source for part in self._components() for source in self._sources_of(part)]
        return tuple(dict.fromkeys(found))

    def build(self, direct: bool) -> Any:
        """Make the core's dictionary; `direct` ones use no prefix sums."""
        sources = self.sources()
        built = core.Dictionary(list(self.shape), direct, to_core(sources))
        for part in self._components():
            built.set_sources([sources.index(source) for source in self._sources_of(part)])
            part._add_to(built, self.shape, self.channel_axis)
        probabilities = [probability for _, probability in self.dictionary._flatten()]
        if len(probabilities) > 1:
            built.set_cumulative(cumulative_fractions(np.asarray(probabilities)))
        return built

    def _components(self) -> list[_Dictionary]:
        return [part for part, _ in self.dictionary._flatten()]

    def _sources_of(self, part: _Dictionary) -> tuple[Source, ...]:
        return sources_of(getattr(part, "channels", None), self.shape, self.channel_axis)


def cumulative_fractions(probabilities: np.ndarray) -> np.ndarray:
    """Cumulate probabilities into 64-bit fractions, the last of them 2^64 - 1.

    The core compares random 64-bit integers with these, so that draws are equal on every platform.
    """
    cumulated = np.cumsum(probabilities / probabilities.sum())
    fractions = [min(round(float(c) * 2.0**64), 2**64 - 1) for c in cumulated]
    fractions[-1] = 2**64 - 1
    return np.asarray(fractions, dtype=np.uint64)


def log_uniform(low: int, high: int) -> np.ndarray:
    """Return the probabilities of low..high whose logarithm is uniform: a size k is [k, k + 1)."""
    sizes = np.arange(low, high + 1)
    return np.rint(np.log1p(1.0 / sizes) * 2.0**40)  # libraries differ in the last bit


class _Dictionary(BaseEstimator):
    """Shared behaviour: parameters, comparison and sampling."""

    def sample(
        self,
        shape: int | Sequence[int],
        n: int = 1,
        random_state: Any = None,
        *,
        channel_axis: int | None = None,
    ) -> sp.csr_matrix:
        """Draw atoms without a forest.

        Parameters
        ----------
        shape : int or tuple of int
            Shape of one sample.
        n : int, default=1
            How many atoms to draw, independently of each other.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws.
        channel_axis : int or None, default=None
            Axis of the sample that holds channels; see :class:`MorfClassifier`.

        Returns
        -------
        atoms : scipy.sparse.csr_matrix of shape (n, product of shape)
            One atom a row, over the features of a sample in C order; those of one channel after
            the other where the dictionary has several.

        Examples
        --------
        >>> from morforest import Patch
        >>> Patch(min_size=2, max_size=2, boundary="inside").sample((2, 2), 1).toarray()
        array([[1., 1., 1., 1.]])
        """
        if not is_integer(n) or n < 0:
            raise ValueError(f"n must be a non-negative integer, got {n!r}.")
        plan = resolve(self, shape, channel_axis)
        key = seed_from(random_state)
        begin, cell, weight = plan.build(direct=True).sample(key, int(n), False)
        size = math.prod(plan.shape) * len(plan.sources())
        return sp.csr_matrix((weight, cell, begin.astype(np.int64)), shape=(int(n), size))

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = self.get_params(deep=False), other.get_params(deep=False)
        return all(_same(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        return hash(type(self))

    def _flatten(self) -> list[tuple[_Dictionary, float]]:
        return [(self, 1.0)]

    def _check(self, shape: tuple[int, ...], channel_axis: int | None) -> None:
        """Raise if the parameters make no sense for samples of this shape."""

    def _bounds(self, shape: tuple[int, ...], channel_axis: int | None) -> Bounds:
        raise NotImplementedError

    def _add_to(self, built: Any, shape: tuple[int, ...], channel_axis: int | None) -> None:
        raise NotImplementedError


def resolve(
    dictionary: _Dictionary, shape: int | Sequence[int], channel_axis: int | None = None
) -> Plan:
    """Check a dictionary against a sample shape."""
    if not isinstance(dictionary, _Dictionary):
        raise TypeError(
            "dictionary must be None or a dictionary object such as Patch() or SparseOblique(), "
            f"got {dictionary!r}."
        )
    lengths: tuple[int, ...] = (shape,) if is_integer(shape) else tuple(shape)  # type: ignore[arg-type]
    if not lengths or not all(is_integer(k) and k >= 1 for k in lengths):
        raise ValueError(f"shape must hold positive integers, one an axis, got {shape!r}.")
    lengths = tuple(int(k) for k in lengths)
    if len(lengths) > MAX_AXES:
        raise ValueError(f"shape may have at most {MAX_AXES} axes, got {len(lengths)}.")
    if channel_axis is not None:
        rank = len(lengths)
        if not is_integer(channel_axis):
            raise TypeError(f"channel_axis must be None or an integer, got {channel_axis!r}.")
        if not -rank <= channel_axis < rank:
            raise ValueError(
                f"channel_axis={channel_axis} does not exist in samples of shape {lengths}: "
                f"give an integer from {-rank} to {rank - 1}."
            )
        channel_axis = int(channel_axis) % rank
    for part, _ in dictionary._flatten():
        sources_of(getattr(part, "channels", None), lengths, channel_axis)
        part._check(lengths, channel_axis)
    return Plan(dictionary, lengths, channel_axis)


def default_dictionary(shape: tuple[int, ...]) -> _Dictionary:
    """Choose a dictionary by the shape of a sample."""
    return SparseOblique() if len(shape) == 1 else Patch()


def seed_from(random_state: Any) -> int:
    """Draw a 63-bit seed."""
    state = check_random_state("random_state", random_state)
    return int(state.randint(0, 2**63 - 1, dtype=np.int64))


class Axis(_Dictionary):
    """Single features: the dictionary of a random forest.

    At each node the candidates are distinct features, drawn without replacement.

    Examples
    --------
    >>> from morforest import Axis
    >>> Axis().sample(3, 2, random_state=0).toarray().sum(axis=1)
    array([1., 1.])
    """

    def _bounds(self, shape: tuple[int, ...], channel_axis: int | None) -> Bounds:
        return Bounds(mass=1.0, nonnegative=True, integral=True)

    def _add_to(self, built: Any, shape: tuple[int, ...], channel_axis: int | None) -> None:
        built.add_axis()


class SparseOblique(_Dictionary):
    """Sparse combinations of features with weights +1 and -1: the dictionary of SPORF.

    Parameters
    ----------
    rate : float, default=2.0
        The number of nonzero weights is Poisson distributed with this rate, conditioned on being
        at least one and at most the number of features.
    density : float or None, default=None
        If given, `rate` is not used: each weight is +1 or -1 with probability ``density / 2`` each,
        and 0 otherwise, conditioned on at least one nonzero. The literature writes ``density`` as
        1/s.

    Examples
    --------
    >>> from morforest import SparseOblique
    >>> atoms = SparseOblique(rate=2.0).sample(10, 1000, random_state=0)
    >>> sorted(set(atoms.data.tolist()))
    [-1.0, 1.0]
    """

    def __init__(self, rate: float = 2.0, density: float | None = None):
        self.rate = rate
        self.density = density

    def _check(self, shape: tuple[int, ...], channel_axis: int | None) -> None:
        if self.density is None:
            if not is_number(self.rate) or not 0 < self.rate <= 1e9:
                raise ValueError(f"rate must be a positive number, got {self.rate!r}.")
        elif not is_number(self.density) or not 0 < self.density <= 1:
            raise ValueError(f"density must be in (0, 1], got {self.density!r}.")

    def _cumulative(self, shape: tuple[int, ...]) -> np.ndarray:
        """Cumulate the probabilities of 1, 2, ... nonzeros; a tail that rounds to one is cut."""
        p = math.prod(shape)
        if self.density is None:
            mode = min(max(int(self.rate), 1), p)
            probabilities = _unimodal(p, mode, lambda k: self.rate / k)
        else:
            q = float(self.density)
            if q == 1.0:
                probabilities = np.zeros(p)
                probabilities[-1] = 1.0
            else:
                mode = min(max(int((p + 1) * q), 1), p)
                odds = q / (1.0 - q)
                probabilities = _unimodal(p, mode, lambda k: (p - k + 1) / k * odds)
        fractions = cumulative_fractions(probabilities)
        end = int(np.argmax(fractions == np.uint64(2**64 - 1))) + 1
        return fractions[:end]

    def _bounds(self, shape: tuple[int, ...], channel_axis: int | None) -> Bounds:
        return Bounds(mass=float(len(self._cumulative(shape))), nonnegative=False, integral=True)

    def _add_to(self, built: Any, shape: tuple[int, ...], channel_axis: int | None) -> None:
        built.add_sparse(self._cumulative(shape))


class _Boxes(_Dictionary):
    """What dictionaries of rectangles share: sizes along each axis, and channels."""

    min_size: Any
    max_size: Any
    scale: str = "uniform"
    channels: Any = None

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
        if self.scale not in ("uniform", "log"):
            raise ValueError(f'scale must be "uniform" or "log", got {self.scale!r}.')
        if self.scale == "uniform":
            return []
        smallest, largest = self._sizes(shape, channel_axis)
        return [
            [] if low == high else cumulative_fractions(log_uniform(low, high)).tolist()
            for low, high in zip(smallest, largest, strict=True)
        ]


class Patch(_Boxes):
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
    scale : {"uniform", "log"}, default="uniform"
        How sizes are drawn: all alike, or as the logarithm is, so that each doubling of the size
        is as likely as any other.
    channels : channel, list of channels or None, default=None
        What patches look at, such as ``Gradient()``; see :mod:`morforest.channels`. Each patch
        takes one of the channels. None: the raw values.

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
        scale: str = "uniform",
        channels: Any = None,
    ):
        self.min_size = min_size
        self.max_size = max_size
        self.boundary = boundary
        self.contiguous = contiguous
        self.scale = scale
        self.channels = channels

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

    def _bounds(self, shape: tuple[int, ...], channel_axis: int | None) -> Bounds:
        _, largest = self._sizes(shape, channel_axis)
        return Bounds(mass=float(math.prod(largest)), nonnegative=True, integral=True)

    def _add_to(self, built: Any, shape: tuple[int, ...], channel_axis: int | None) -> None:
        smallest, largest = self._sizes(shape, channel_axis)
        built.add_patch(
            smallest,
            largest,
            self._tables(shape, channel_axis),
            self._boundaries(shape, channel_axis),
            self._flags(shape, channel_axis),
        )


class Haar(_Boxes):
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
    scale : {"uniform", "log"}, default="uniform"
        How sizes are drawn, as in :class:`Patch`.
    channels : channel, list of channels or None, default=None
        What atoms look at, as in :class:`Patch`.

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
        scale: str = "uniform",
        channels: Any = None,
    ):
        self.min_size = min_size
        self.max_size = max_size
        self.lobes = lobes
        self.axes = axes
        self.scale = scale
        self.channels = channels

    def _kinds(self) -> list[str]:
        kinds = [self.lobes] if isinstance(self.lobes, str) else list(self.lobes)
        if not kinds or not all(kind in ("two", "three", "square") for kind in kinds):
            raise ValueError(
                f'lobes must be "two", "three", "square" or a list of these, got {self.lobes!r}.'
            )
        return kinds

    def _lobed(self, shape: tuple[int, ...], channel_axis: int | None) -> list[bool]:
        rank = len(shape)
        if self.axes is None:
            return [axis != channel_axis for axis in range(rank)]
        axes = [self.axes] if is_integer(self.axes) else list(self.axes)
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
        return Bounds(mass=float(mass), nonnegative=False, integral=True)

    def _add_to(self, built: Any, shape: tuple[int, ...], channel_axis: int | None) -> None:
        smallest, largest = self._sizes(shape, channel_axis)
        tables = self._tables(shape, channel_axis)
        built.add_haar(
            smallest, largest, tables, self._lobed(shape, channel_axis), self._kinds()
        )


class Pair(_Boxes):
    """The difference of two equal rectangles, at a distance and across channels.

    Parameters
    ----------
    min_size, max_size : int, float or tuple, default=1 and None
        Smallest and largest size along each axis, as in :class:`Patch`.
    reach : int, float or tuple, default=0.35
        How far the second rectangle may lie from the first along each axis, in both directions: an
        integer, or a fraction of the axis. Both lie within the data. 0 on a channel axis unless a
        tuple says otherwise.
    scale : {"uniform", "log"}, default="uniform"
        How sizes are drawn, as in :class:`Patch`.
    channels : channel, list of channels or None, default=None
        What the rectangles look at, as in :class:`Patch`. With several, half of the pairs draw a
        channel for each rectangle.

    Examples
    --------
    >>> from morforest import Pair
    >>> Pair(min_size=1, max_size=1, reach=2).sample(3, 1, random_state=0).toarray().sum()
    0.0
    """

    def __init__(
        self,
        min_size: Any = 1,
        max_size: Any = None,
        reach: Any = 0.35,
        scale: str = "uniform",
        channels: Any = None,
    ):
        self.min_size = min_size
        self.max_size = max_size
        self.reach = reach
        self.scale = scale
        self.channels = channels

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

    def _bounds(self, shape: tuple[int, ...], channel_axis: int | None) -> Bounds:
        _, largest = self._sizes(shape, channel_axis)
        return Bounds(mass=2.0 * math.prod(largest), nonnegative=False, integral=True)

    def _add_to(self, built: Any, shape: tuple[int, ...], channel_axis: int | None) -> None:
        smallest, largest = self._sizes(shape, channel_axis)
        tables = self._tables(shape, channel_axis)
        built.add_pair(smallest, largest, tables, self._reaches(shape, channel_axis))


class Atoms(_Dictionary):
    """A finite dictionary of your own atoms.

    Parameters
    ----------
    matrix : scipy sparse matrix or array of shape (n_atoms, n_features)
        One atom a row, over the features of a sample in C order. Whole-number weights keep the
        engine's exact integer arithmetic; other weights use float64.
    probabilities : array of shape (n_atoms,) or None, default=None
        How often each atom is drawn, in proportion. None draws all atoms equally often, and
        without replacement within a node.

    Examples
    --------
    >>> from morforest import Atoms
    >>> Atoms([[1, -1, 0], [0, 1, -1]], probabilities=[1, 0]).sample(3, 2).toarray()
    array([[ 1., -1.,  0.],
           [ 1., -1.,  0.]])
    """

    def __init__(self, matrix: Any, probabilities: Any = None):
        self.matrix = matrix
        self.probabilities = probabilities

    def _csr(self) -> sp.csr_matrix:
        try:
            matrix = sp.csr_matrix(self.matrix, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"matrix must be a sparse matrix or a 2-D array of numbers: {error}"
            ) from None
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        matrix.sort_indices()
        return matrix

    def _check(self, shape: tuple[int, ...], channel_axis: int | None) -> None:
        matrix = self._csr()
        size = math.prod(shape)
        if matrix.shape[1] != size:
            raise ValueError(
                f"matrix has {matrix.shape[1]} columns, but samples of shape {shape} have {size} "
                "features: give one column a feature."
            )
        if matrix.shape[0] == 0:
            raise ValueError("matrix has no rows: give at least one atom.")
        if not np.isfinite(matrix.data).all():
            raise ValueError("matrix contains NaN or infinity: atoms need finite weights.")
        if matrix.nnz and np.abs(matrix.data).max() > 1e100:
            raise ValueError("matrix has weights beyond 1e100 in size: scale the atoms down.")
        empty = np.flatnonzero(np.diff(matrix.indptr) == 0)
        if empty.size:
            raise ValueError(
                f"matrix row {empty[0]} is zero ({empty.size} such rows): every atom needs at "
                "least one nonzero weight."
            )
        if self.probabilities is None:
            return
        probabilities = _numbers("probabilities", self.probabilities)
        if probabilities.shape != (matrix.shape[0],):
            raise ValueError(
                f"probabilities has shape {probabilities.shape}, expected ({matrix.shape[0]},): "
                "one entry an atom."
            )
        if not np.isfinite(probabilities).all() or (probabilities < 0).any():
            raise ValueError("probabilities must be finite and not negative.")
        if not probabilities.sum() > 0:
            raise ValueError("probabilities are all zero: at least one must be positive.")

    def _bounds(self, shape: tuple[int, ...], channel_axis: int | None) -> Bounds:
        matrix = self._csr()
        return Bounds(
            mass=float(abs(matrix).sum(axis=1).max()),
            nonnegative=bool((matrix.data >= 0).all()),
            integral=bool((matrix.data == np.rint(matrix.data)).all()),
        )

    def _add_to(self, built: Any, shape: tuple[int, ...], channel_axis: int | None) -> None:
        matrix = self._csr()
        if self.probabilities is None:
            cumulative = np.empty(0, dtype=np.uint64)
        else:
            cumulative = cumulative_fractions(np.asarray(self.probabilities, dtype=np.float64))
        built.add_finite(
            matrix.indptr.astype(np.uint32),
            matrix.indices.astype(np.uint32),
            np.ascontiguousarray(matrix.data),
            cumulative,
        )


class Mixture(_Dictionary):
    """Several dictionaries: each candidate comes from one of them, drawn at random.

    A small share of :class:`Axis` gives every single feature a fixed chance at every node, which
    the paper's consistency theorem asks for.

    Parameters
    ----------
    dictionaries : list of dictionaries
        What to draw from. In a grid search they are named by position, as in
        ``dictionary__0__max_size``.
    weights : list of float or None, default=None
        How often each is drawn from, in proportion. None means equally often.

    Examples
    --------
    >>> from morforest import Axis, Mixture, Patch
    >>> Mixture([Patch(max_size=4), Axis()], weights=[0.9, 0.1])
    Mixture(dictionaries=[Patch(max_size=4), Axis()], weights=[0.9, 0.1])
    """

    def __init__(self, dictionaries: Any, weights: Any = None):
        self.dictionaries = dictionaries
        self.weights = weights

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get parameters; with `deep`, those of the dictionaries too, prefixed by position."""
        params = super().get_params(deep=False)
        if deep:
            for i, part in enumerate(self.dictionaries):
                params[str(i)] = part
                params.update({f"{i}__{k}": v for k, v in part.get_params(deep=True).items()})
        return params

    def set_params(self, **params: Any) -> Mixture:
        """Set parameters; ``0__max_size`` is `max_size` of the first dictionary, ``0`` itself."""
        own = {k: v for k, v in params.items() if k in ("dictionaries", "weights")}
        super().set_params(**own)
        replaced = list(self.dictionaries)
        for name, value in params.items():
            position, _, rest = name.partition("__")
            if name in own:
                continue
            if not position.isdigit() or int(position) >= len(replaced):
                raise ValueError(
                    f"Invalid parameter {name!r} for a Mixture of {len(replaced)} dictionaries: "
                    "use dictionaries, weights, or a position such as '0__max_size'."
                )
            if rest:
                replaced[int(position)].set_params(**{rest: value})
            else:
                replaced[int(position)] = value
        self.dictionaries = replaced
        return self

    def _flatten(self) -> list[tuple[_Dictionary, float]]:
        parts = self.dictionaries
        if not isinstance(parts, (list, tuple)) or not parts:
            raise ValueError(
                f"dictionaries must be a non-empty list of dictionaries, got {parts!r}."
            )
        for part in parts:
            if not isinstance(part, _Dictionary):
                raise TypeError(
                    f"dictionaries must hold dictionaries such as Patch() or Axis(), got {part!r}."
                )
        shares = np.ones(len(parts))
        if self.weights is not None:
            shares = _numbers("weights", self.weights)
        if shares.shape != (len(parts),):
            raise ValueError(
                f"weights={self.weights!r} must have one entry for each of the {len(parts)} "
                "dictionaries."
            )
        if not np.isfinite(shares).all() or (shares < 0).any() or not shares.sum() > 0:
            raise ValueError(
                f"weights={self.weights!r} must be finite, not negative and not all zero."
            )
        shares = shares / shares.sum()
        flat = []
        for part, share in zip(parts, shares, strict=True):
            inner = part._flatten()
            total = sum(probability for _, probability in inner)
            flat += [(leaf, share * probability / total) for leaf, probability in inner]
        return [(leaf, probability) for leaf, probability in flat if probability > 0]


def _unimodal(size: int, mode: int, ratio: Any) -> np.ndarray:
    """Probabilities of 1..size, up to a factor, from ratio(k) = P(k) / P(k - 1).

    Starts at the mode, where nothing overflows, and uses basic operations only, which are equal
    on every platform. Stops where terms vanish beside the mode.
    """
    values = [1.0]
    for k in range(mode, 1, -1):
        value = values[-1] / ratio(k)
        if value < 1e-300:
            break
        values.append(value)
    down = np.zeros(mode)
    down[mode - len(values) :] = values[::-1]
    up = []
    value = 1.0
    for k in range(mode + 1, size + 1):
        value *= ratio(k)
        if value < 1e-30:
            break
        up.append(value)
    return np.concatenate([down, up])


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


def _numbers(name: str, values: Any) -> np.ndarray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers, got {values!r}: {error}") from None


def _same(a: Any, b: Any) -> bool:
    if sp.issparse(a) or sp.issparse(b):
        if not (sp.issparse(a) and sp.issparse(b)) or a.shape != b.shape:
            return False
        return bool((a != b).nnz == 0)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(np.asarray(a), np.asarray(b))
    return bool(a == b)
