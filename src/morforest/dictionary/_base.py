"""What dictionaries share: parameters, comparison, sampling, and the form that a fit uses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from morforest._course import UNKNOWN, Course, usual_course
from morforest._native import core
from morforest._parameters import check_random_state, is_integer, restore_parameters
from morforest.dictionary._shape import SampleShape
from morforest.dictionary._views import RAW, Unfitted, View, views_of

MOST_SAMPLED = 10_000_000
NO_WINDOWS = np.empty(0, dtype=np.uint64)


@dataclass(frozen=True)
class Bounds:
    """Bounds of a dictionary's atoms, by which the number types of a fit are chosen."""

    mass: float  # the largest sum of absolute weights
    nonnegative: bool
    integral: bool
    derived: tuple[tuple[View, float], ...] = ()  # derived views, with the mass of their atoms
    nonlinear: bool = False  # whether some atoms are not linear
    positions: float = 0.0  # the largest number of positions that an atom counts
    side: float = math.inf  # the largest sum of weights of one sign, in any view

    def value(self, largest: float) -> float:
        """Return a bound of the atoms' values, where raw values are at most `largest` in size."""
        values = [view.largest(largest) * mass for view, mass in self.derived]
        return max(self.mass * largest, *values, self.positions)

    def value_within(self, low: float, high: float) -> float:
        """Return the bound for raw values from `low` to `high`, smaller if none are negative."""
        largest = self.value(max(abs(low), abs(high)))
        if low < 0:
            return largest
        # Values that are not negative add up only among weights of one sign.
        values = [self.side * high]
        for view, mass in self.derived:
            value, signed = view.largest_of_nonnegative(high)
            values.append(value * (mass if signed else self.side))
        return min(largest, max(values))

    def limit(self) -> float:
        """Return how large raw values may be if values of atoms must stay below 2^61."""
        limits = [2.0**61 / max(self.mass, 1.0)]
        for view, mass in self.derived:
            limits.append(view.limit(2.0**61 / max(mass, 1.0)))
        return min(limits)

    def fits(self, largest: float, bits: int) -> bool:
        """Say whether values of atoms stay below 2^bits for raw values of at most `largest`."""
        return self.value(largest) < 2.0**bits and largest <= self.limit()


@dataclass(frozen=True)
class ResolvedDictionary:
    """A dictionary that was checked against the shape of a sample, as a fit uses and pickles it."""

    dictionary: Dictionary
    samples: SampleShape
    course: Course = UNKNOWN  # of the training samples
    fitted: tuple[tuple[Unfitted, View], ...] = ()  # views with filters that fit training samples

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a sample."""
        return self.samples.lengths

    @property
    def channel_axis(self) -> int | None:
        """The axis of a sample that holds channels, counted from 0."""
        return self.samples.channel_axis

    @cached_property
    def bounds(self) -> Bounds:
        """Bounds over all components."""
        mass, nonnegative, integral, side = 1.0, True, True, 0.0
        nonlinear, positions = False, 0.0
        derived: dict[View, float] = {}
        for part in self._components():
            bounds = part._bounds(self.samples)
            nonnegative &= bounds.nonnegative
            integral &= bounds.integral
            nonlinear |= bounds.nonlinear
            positions = max(positions, bounds.positions)
            crossing = part._crosses_views and any(
                view.largest_of_nonnegative(1.0)[1] for view in self._views_of(part)
            )
            one_side = math.inf if bounds.nonlinear or crossing else min(bounds.side, bounds.mass)
            side = max(side, one_side)
            for view in self._views_of(part):
                if view == RAW:
                    mass = max(mass, bounds.mass)
                else:
                    found = part._view_mass(view, bounds)
                    derived[view] = max(derived.get(view, 0.0), found)
                    nonnegative &= view.kind not in ("difference", "filter", "product")
        views = tuple(derived.items())
        return Bounds(mass, nonnegative, integral, views, nonlinear, positions, side)

    def views(self) -> tuple[View, ...]:
        """Return the views that atoms look at, each once."""
        found = [view for part in self._components() for view in self._views_of(part)]
        return tuple(dict.fromkeys(found))

    def build(self, direct: bool) -> core.Dictionary:
        """Make the core's dictionary; with `direct`, atoms use no prefix sums."""
        views = self.views()
        built = core.Dictionary(self.shape, direct, [view.to_core() for view in views])
        if self.channel_axis is not None:
            built.set_channel_axis(self.channel_axis)
        for part in self._components():
            built.set_views([views.index(view) for view in self._views_of(part)])
            built.set_pool(*part._pooling(self.samples))
            part._add_to(built, self.samples)
        probabilities = [probability for _, probability in self.dictionary._flatten()]
        if len(probabilities) > 1:
            built.set_cumulative(cumulative_fractions(np.asarray(probabilities)))
        built.set_subset(self.atoms_per_tree)
        built.set_course(self.course.mean, self.course.correlation)
        return built

    def has_order(self) -> bool:
        """Whether missing values have neighbours, along some axis, that they are filled in from."""
        return bool(self.ordered_axes)

    @cached_property
    def ordered_axes(self) -> tuple[int, ...]:
        """The axes of a sample along which neighbours say what a missing value may be."""
        return tuple(self.build(direct=True).layout.ordered_axes)

    def for_gaps_of(self, X: np.ndarray, weights: np.ndarray | None) -> ResolvedDictionary:
        """Return the same with the usual course of training samples that lack values."""
        if not self.ordered_axes:
            return self
        return replace(self, course=usual_course(X, weights, self.shape, self.ordered_axes))

    @property
    def atoms_per_tree(self) -> int:
        """Number of atoms that each tree draws for all of its nodes; 0 if nodes draw their own."""
        return self.dictionary._atoms_per_tree()

    @property
    def n_shared_atoms(self) -> int:
        """Number of atoms that all trees share; 0 if trees draw their own."""
        return self.dictionary._shared_atoms()

    @property
    def combine(self) -> str | None:
        """What the user asked for: "ridge", "auto", or None where nodes never combine atoms."""
        return self.dictionary._combine()

    @property
    def combines(self) -> bool:
        """Whether the nodes of a forest learn linear combinations of their candidates."""
        return self.combine == "ridge" or (self.combine == "auto" and self.bounds.nonlinear)

    def has_atoms_of(self, other: Dictionary) -> bool:
        """Say whether a forest of another dictionary shares the atoms that this one would draw."""
        return self.dictionary._same_atoms(other)

    def _components(self) -> list[Dictionary]:
        return [part for part, _ in self.dictionary._flatten()]

    def _views_of(self, part: Dictionary) -> tuple[View, ...]:
        fitted: dict[View, View] = {**dict(self.fitted)}
        return tuple(fitted.get(view, view) for view in part._views(self.samples))

    def unfitted(self) -> tuple[Unfitted, ...]:
        """Return the views that are still to be fitted, each once."""
        return tuple(view for view in self.views() if isinstance(view, Unfitted))


def cumulative_fractions(probabilities: np.ndarray) -> np.ndarray:
    """Cumulate probabilities into 64-bit fractions, the last of them 2^64 - 1.

    The core compares random 64-bit integers with these fractions, so that draws are equal on every
    platform.
    """
    cumulated = np.cumsum(probabilities / probabilities.sum())
    fractions = [min(round(float(c) * 2.0**64), 2**64 - 1) for c in cumulated]
    fractions[-1] = 2**64 - 1
    return np.asarray(fractions, dtype=np.uint64)


class Dictionary(BaseEstimator):
    """What dictionaries share: parameters, comparison and sampling."""

    _crosses_views = False  # whether one atom may look at two views

    def sample(
        self,
        shape: int | Sequence[int],
        n: int = 1,
        *,
        random_state: int | np.random.RandomState | None = None,
        channel_axis: int | None = None,
    ) -> sp.csr_matrix:
        """Draw atoms without a forest.

        Parameters
        ----------
        shape : int or tuple of int
            Shape of one sample, of which X has n: its shape is (n, *shape).
        n : int, default=1
            Number of atoms, which are drawn independently of each other.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws.
        channel_axis : int or None, default=None
            Axis of X, of shape (n, *shape), that holds channels: 1 for the first axis of a
            sample, -1 for the last; see :class:`MorfClassifier`.

        Returns
        -------
        atoms : scipy.sparse.csr_matrix of shape (n, product of shape)
            Each row holds one atom, over the features of a sample in C order. Where atoms look at
            several views, the features of one view follow those of the other. A pooled atom
            stands at the first position of its window, without its rivals.

        Examples
        --------
        >>> from morforest import Patch
        >>> Patch(min_size=2, max_size=2, boundary="inside").sample((2, 2), 1).toarray()
        array([[1., 1., 1., 1.]])
        """
        if not is_integer(n) or not 0 <= n <= MOST_SAMPLED:
            raise ValueError(f"n must be an integer from 0 to {MOST_SAMPLED}, got {n!r}.")
        resolved = resolve(self, shape, channel_axis)
        key = seed_from(random_state)
        atoms = resolved.build(direct=True).sample(key, int(n), one_node=False)
        size = resolved.samples.size * len(resolved.views())
        begin = np.append(0, np.cumsum(atoms.count, dtype=np.int64))
        weight = atoms.weight.astype(np.float64)
        return sp.csr_matrix((weight, atoms.cell, begin), shape=(int(n), size))

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = self.get_params(deep=False), other.get_params(deep=False)
        return all(_same(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        return hash(type(self))

    def __setstate__(self, state: Any) -> None:
        restore_parameters(self, state)

    def _flatten(self) -> list[tuple[Dictionary, float]]:
        """Return the dictionaries that atoms come from, each with its probability."""
        return [(self, 1.0)]

    def _atoms_per_tree(self) -> int:
        """Return how many atoms a tree draws for all of its nodes; 0 if nodes draw their own."""
        return 0

    def _shared_atoms(self) -> int:
        """Return how many atoms are drawn for all trees; 0 if trees draw their own."""
        return 0

    def _combine(self) -> str | None:
        """Return whether nodes combine their candidates: "ridge", "auto" or None."""
        return None

    def _same_atoms(self, other: Dictionary) -> bool:
        """Say whether both draw the same atoms, whatever nodes do with them."""
        return self == other

    def _check(self, shape: SampleShape) -> None:
        """Raise if the parameters make no sense for samples of this shape."""

    def _check_stored(self) -> None:
        """Raise if arrays that came from a file are damaged."""

    def _views(self, shape: SampleShape) -> tuple[View, ...]:
        """Return the views that atoms look at."""
        return views_of(getattr(self, "views", None), shape)

    def _view_mass(self, view: View, bounds: Bounds) -> float:
        """Return the largest sum of absolute weights of atoms on one view."""
        return bounds.mass

    def _pooling(self, shape: SampleShape) -> tuple[list[str], list[int], np.ndarray]:
        """Return how atoms are pooled, as the core takes it; by default they are not."""
        return [], [], NO_WINDOWS

    def _bounds(self, shape: SampleShape) -> Bounds:
        """Return the bounds of the atoms, on raw values."""
        raise NotImplementedError

    def _add_to(self, built: core.Dictionary, shape: SampleShape) -> None:
        """Add the atoms to the core's dictionary."""
        raise NotImplementedError


def resolve(
    dictionary: Dictionary, shape: int | Sequence[int], channel_axis: int | None = None
) -> ResolvedDictionary:
    """Check a dictionary against the shape of a sample; `channel_axis` counts the axes of X."""
    if not isinstance(dictionary, Dictionary):
        raise TypeError(
            "dictionary must be None or a dictionary object such as Patch() or SparseOblique(), "
            f"got {dictionary!r}."
        )
    samples = SampleShape.of(shape, channel_axis)
    for part, _ in dictionary._flatten():
        part._views(samples)
        part._check(samples)
    return ResolvedDictionary(dictionary, samples)


def seed_from(random_state: int | np.random.RandomState | None) -> int:
    """Draw a 63-bit seed."""
    state = check_random_state("random_state", random_state)
    return int(state.randint(0, 2**63 - 1, dtype=np.int64))


def to_numbers(name: str, values: Any) -> np.ndarray:
    """Return a parameter as an array of float64."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
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
