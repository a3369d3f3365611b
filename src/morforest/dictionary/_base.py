"""What dictionaries share: parameters, comparison, sampling, and how a fit uses them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from morforest._native import core
from morforest._parameters import check_random_state, is_integer
from morforest.dictionary._views import RAW, View, to_core, views_of

MAX_AXES = 16
NO_WINDOWS = np.empty(0, dtype=np.uint64)


@dataclass(frozen=True)
class Bounds:
    """What the choice of number types must know of a dictionary's atoms."""

    mass: float  # the largest sum of absolute weights
    nonnegative: bool
    integral: bool
    derived: tuple[tuple[View, float], ...] = ()  # derived views, with the mass of their atoms
    forms: bool = False  # some atoms are not linear
    positions: float = 0.0  # the largest number of positions that are counted
    side: float = math.inf  # the largest sum of weights of one sign, in any channel

    def value(self, largest: float) -> float:
        """Return how large an atom's value may be where raw values are at most so large."""
        values = [view.largest(largest) * mass for view, mass in self.derived]
        return max(self.mass * largest, *values, self.positions)

    def value_within(self, low: float, high: float) -> float:
        """Return the same for raw values from `low` to `high`: less, if none are negative."""
        largest = self.value(max(abs(low), abs(high)))
        if low < 0:
            return largest
        # What is not negative adds up on one side of an atom at a time.
        values = [self.side * high]
        for view, mass in self.derived:
            value, signed = view.largest_of_nonnegative(high)
            values.append(value * (mass if signed else self.side))
        return min(largest, max(values))

    def limit(self) -> float:
        """Return the largest size of raw values for which those of atoms stay below 2^61."""
        limits = [2.0**61 / max(self.mass, 1.0)]
        for view, mass in self.derived:
            limits.append(view.limit(2.0**61 / max(mass, 1.0)))
        return min(limits)

    def fits(self, largest: float, bits: int) -> bool:
        """Say whether values of atoms stay below 2^bits where raw ones are at most so large."""
        return self.value(largest) < 2.0**bits and largest <= self.limit()


@dataclass(frozen=True)
class ResolvedDictionary:
    """A dictionary resolved for a sample shape: what a fit passes around and pickles."""

    dictionary: Dictionary
    shape: tuple[int, ...]
    channel_axis: int | None

    @cached_property
    def bounds(self) -> Bounds:
        """Bounds over all components."""
        mass, nonnegative, integral, side = 1.0, True, True, 0.0
        forms, positions = False, 0.0
        derived: dict[View, float] = {}
        for part in self._components():
            bounds = part._bounds(self.shape, self.channel_axis)
            nonnegative &= bounds.nonnegative
            integral &= bounds.integral
            forms |= bounds.forms
            positions = max(positions, bounds.positions)
            crossing = part._crosses_views and any(
                view.largest_of_nonnegative(1.0)[1] for view in self._views_of(part)
            )
            one_side = math.inf if bounds.forms or crossing else min(bounds.side, bounds.mass)
            side = max(side, one_side)
            for view in self._views_of(part):
                if view == RAW:
                    mass = max(mass, bounds.mass)
                else:
                    found = part._view_mass(view, bounds)
                    derived[view] = max(derived.get(view, 0.0), found)
                    nonnegative &= view.kind != "difference"
        views = tuple(derived.items())
        return Bounds(mass, nonnegative, integral, views, forms, positions, side)

    def views(self) -> tuple[View, ...]:
        """Return the views that atoms look at, each once."""
        found = [view for part in self._components() for view in self._views_of(part)]
        return tuple(dict.fromkeys(found))

    def build(self, direct: bool) -> Any:
        """Make the core's dictionary; `direct` ones use no prefix sums."""
        views = self.views()
        built = core.Dictionary(list(self.shape), direct, to_core(views))
        for part in self._components():
            built.set_sources([views.index(view) for view in self._views_of(part)])
            built.set_pool(*part._pooling(self.shape, self.channel_axis))
            part._add_to(built, self.shape, self.channel_axis)
        probabilities = [probability for _, probability in self.dictionary._flatten()]
        if len(probabilities) > 1:
            built.set_cumulative(cumulative_fractions(np.asarray(probabilities)))
        built.set_subset(self.dictionary._subset())
        return built

    def _components(self) -> list[Dictionary]:
        return [part for part, _ in self.dictionary._flatten()]

    def _views_of(self, part: Dictionary) -> tuple[View, ...]:
        return part._views(self.shape, self.channel_axis)


def cumulative_fractions(probabilities: np.ndarray) -> np.ndarray:
    """Cumulate probabilities into 64-bit fractions, the last of them 2^64 - 1.

    The core compares random 64-bit integers with these, so that draws are equal on every platform.
    """
    cumulated = np.cumsum(probabilities / probabilities.sum())
    fractions = [min(round(float(c) * 2.0**64), 2**64 - 1) for c in cumulated]
    fractions[-1] = 2**64 - 1
    return np.asarray(fractions, dtype=np.uint64)


class Dictionary(BaseEstimator):
    """Shared behaviour: parameters, comparison and sampling."""

    _crosses_views = False  # whether an atom may look at two views

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
            the other where the dictionary has several. A pooled atom stands at the first position
            of its window, without its rivals.

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
        size = math.prod(plan.shape) * len(plan.views())
        return sp.csr_matrix((weight, cell, begin.astype(np.int64)), shape=(int(n), size))

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = self.get_params(deep=False), other.get_params(deep=False)
        return all(_same(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        return hash(type(self))

    def _flatten(self) -> list[tuple[Dictionary, float]]:
        return [(self, 1.0)]

    def _subset(self) -> int:
        """Return how many atoms a tree draws for all of its nodes; 0: nodes draw their own."""
        return 0

    def _columns(self) -> int:
        """Return how many atoms are drawn for all trees; 0: trees draw their own."""
        return 0

    def _check(self, shape: tuple[int, ...], channel_axis: int | None) -> None:
        """Raise if the parameters make no sense for samples of this shape."""

    def _views(self, shape: tuple[int, ...], channel_axis: int | None) -> tuple[View, ...]:
        """Return the views that atoms look at."""
        return views_of(getattr(self, "views", None), shape, channel_axis)

    def _view_mass(self, view: View, bounds: Bounds) -> float:
        """Return the mass of atoms that look at a channel."""
        return bounds.mass

    def _pooling(
        self, shape: tuple[int, ...], channel_axis: int | None
    ) -> tuple[list[str], list[int], np.ndarray]:
        """Return how atoms are pooled, as the core takes it; here not at all."""
        return [], [], NO_WINDOWS

    def _bounds(self, shape: tuple[int, ...], channel_axis: int | None) -> Bounds:
        raise NotImplementedError

    def _add_to(self, built: Any, shape: tuple[int, ...], channel_axis: int | None) -> None:
        raise NotImplementedError


def resolve(
    dictionary: Dictionary, shape: int | Sequence[int], channel_axis: int | None = None
) -> ResolvedDictionary:
    """Check a dictionary against a sample shape."""
    if not isinstance(dictionary, Dictionary):
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
        part._views(lengths, channel_axis)
        part._check(lengths, channel_axis)
    return ResolvedDictionary(dictionary, lengths, channel_axis)


def seed_from(random_state: Any) -> int:
    """Draw a 63-bit seed."""
    state = check_random_state("random_state", random_state)
    return int(state.randint(0, 2**63 - 1, dtype=np.int64))


def to_numbers(name: str, values: Any) -> np.ndarray:
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
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)
