"""How sure a forest is, from the predictions of its trees and the rows that each of them used.

Sums over trees are sums of whole numbers, which float64 holds exactly: neither threads, nor the
linear algebra library, nor the other samples of a call show in a result. See "Uncertainty" in
docs/design.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from morforest._arrays import refusing, widen
from morforest._fixed_point import exact_sum
from morforest._model import Forest
from morforest._states import stored
from morforest._validation import MAX_TARGET

EXACT_BITS = 52  # of sums; float64 holds whole numbers of 53 bits
HELD_MEANS = 1 << 22  # leave-out means of all training rows that are held at once
HELD_VALUES = 1 << 22  # predictions of single trees that are held at once
TRAINING_ROWS = 2048  # whose trees are marked in float64 at a time
FEWEST_ROWS = 32  # of samples at a time, for which marking is worth it
SMALLEST_EXPONENT = -1000  # of units, whose inverse is a number
LARGEST_WEIGHT = 2.0**40  # of sample weights whose mean is one, or that are counts
SLACK = 1e-9  # of ranks: 0.7 * 10 must be 7, whatever its last bit


@stored
@dataclass(eq=False)
class OutOfBag:
    """What the trees that left a training row out say of it, and what the row counts for."""

    # Mean number, or mean posterior of the row's own class, (n, k) of several outputs; NaN without.
    prediction: np.ndarray
    weight: np.ndarray | None  # sample weights; None where all rows count as one
    whole: bool  # weights are numbers of repetitions; otherwise their mean is one

    @classmethod
    def of(
        cls, sums: np.ndarray, votes: np.ndarray, count: np.ndarray, weight: np.ndarray | None
    ) -> OutOfBag:
        """Divide sums by votes, and read weights: `count` has those that are repetitions."""
        with np.errstate(invalid="ignore"):
            prediction = (sums.T / votes).T
        if (count > 1).any():
            return cls(prediction, count.astype(np.float64), True)
        if weight is None or (weight == weight[0]).all():
            return cls(prediction, None, True)
        return cls(prediction, weight * (len(weight) / exact_sum(weight)), False)

    def __setstate__(self, state: Any) -> None:
        with refusing("model"):
            self.__init__(**state)  # type: ignore[misc]

    def of_output(self, k: int) -> OutOfBag:
        """Return what is said of one of several outputs."""
        return replace(self, prediction=np.ascontiguousarray(self.prediction[:, k]))

    def check(self, drawn: np.ndarray, targets: int = 1) -> None:
        """Raise unless a loaded record fits the rows that trees used, and the outputs."""
        left_out = ~drawn.all(axis=0)
        ndim = 1 if targets == 1 else 2
        self.prediction = widen("prediction", self.prediction, np.float64, ndim, "model")
        if self.prediction.shape != (*left_out.shape, targets)[:ndim]:
            raise ValueError("damaged model: out-of-bag predictions of other samples")
        # NaN stands for rows without a vote, if leaves may be without a prediction.
        if (np.abs(self.prediction[left_out]) > MAX_TARGET).any():
            raise ValueError("damaged model: out-of-bag predictions beyond those of any forest")
        if self.weight is not None:
            self.weight = widen("weight", self.weight, np.float64, 1, "model")
            inside = (self.weight >= 0) & (self.weight < LARGEST_WEIGHT)
            if inside.shape != left_out.shape or not inside.all():
                raise ValueError("damaged model: sample weights that no samples have")
        if type(self.whole) is not bool:
            raise ValueError("damaged model: the kind of the sample weights")

    @property
    def repeats(self) -> np.ndarray:
        """How many samples each row stands for."""
        if self.weight is None or not self.whole:
            return np.ones(len(self.prediction))
        return self.weight


class Answers(NamedTuple):
    """What trees say of samples, in whole numbers: zero where they do not vote."""

    values: np.ndarray  # (outputs, n, trees)
    votes: np.ndarray | None  # (n, trees); None where all vote

    def output(self, k: int) -> Answers:
        """Return what is said of one output (n, trees)."""
        return Answers(self.values[k], self.votes)

    def counts(self) -> np.ndarray:
        """Return how many trees vote on each sample, whatever the output."""
        if self.votes is None:
            return np.full(self.values.shape[-2], self.values.shape[-1])
        found: np.ndarray = self.votes.sum(axis=-1)
        return found

    def spread(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean (n,) of the trees that vote, and the sum of their squared distances."""
        count = self.counts()
        with np.errstate(invalid="ignore"):
            mean = self.values.sum(axis=1) / count
        distance = self.values - mean[:, np.newaxis]
        if self.votes is not None:
            distance[~self.votes] = 0.0
        return mean, np.square(distance).sum(axis=1)


@dataclass(frozen=True, eq=False)
class TreeValues:
    """Predictions of single trees as whole numbers: value = centre + whole number * unit."""

    forest: Forest
    centre: float
    unit: float

    @classmethod
    def of(cls, forest: Forest, times: int = 1) -> TreeValues:
        """Choose the finest unit of which sums over all trees, `times` each, are exact."""
        if forest.class_count:
            low, high, centre = 0.0, 1.0, 0.0
        else:
            low, high = float(np.nanmin(forest.leaf_value)), float(np.nanmax(forest.leaf_value))
            centre = low / 2 + high / 2
        exponent = math.frexp(max(high - centre, centre - low))[1]
        bits = EXACT_BITS - (forest.n_trees * times).bit_length()
        return cls(forest, centre, math.ldexp(1.0, max(exponent - bits, SMALLEST_EXPONENT)))

    def rows_at_once(self) -> int:
        """Return for how many samples the predictions of all trees may be held."""
        return max(1, HELD_VALUES // (self.forest.n_trees * self.forest.outputs))

    @cached_property
    def some_silent(self) -> bool:
        """Whether trees do not vote on some samples."""
        return bool(self.forest.silent_trees.any())

    def at(self, leaf: np.ndarray) -> Answers:
        """Return what the leaves (n, trees) of samples say."""
        node = leaf + self.forest.tree_begin.astype(np.int64)[:-1]
        return self._say(-1 - self.forest.next[node].astype(np.int64))

    def _say(self, payload: np.ndarray) -> Answers:
        """Return what leaves say, by what these point to."""
        forest = self.forest
        if forest.class_count:
            values = self._posteriors(payload)
        else:
            values = forest.leaf_value[payload].astype(np.float64)[np.newaxis]
        values = np.rint((values - self.centre) / self.unit)
        if not self.some_silent:
            return Answers(values, None)
        votes = ~forest.is_silent(payload)
        values[:, ~votes] = 0.0
        return Answers(values, votes)

    def of_nobody(self, left_out: LeftOut) -> np.ndarray:
        """Return what is predicted (outputs, rows) where no tree that left a row out votes.

        That is the mean of all leaves of these trees, as for a forest of them alone.
        """
        forest = self.forest
        total, number = np.zeros((forest.outputs, len(left_out.row))), np.zeros(len(left_out.row))
        for tree, of_tree in enumerate(left_out.trees):
            nodes = forest.next[int(forest.tree_begin[tree]) : int(forest.tree_begin[tree + 1])]
            said = self._say(-1 - nodes[nodes < 0].astype(np.int64))
            total[:, of_tree] += said.values.sum(axis=1)[:, np.newaxis]
            number[of_tree] += said.counts()
        return total / number

    def _posteriors(self, payload: np.ndarray) -> np.ndarray:
        """Return class frequencies (classes, n, trees) of leaves by what these point to."""
        classes = self.forest.class_count
        flat = payload.ravel()
        values = np.zeros((classes, len(flat)))
        pure = np.flatnonzero(flat < classes)
        values[flat[pure], pure] = 1.0
        mixed = np.flatnonzero(flat >= classes)
        sizes = self.forest.distribution_size.astype(np.int64)
        chosen = flat[mixed] - classes
        length, first = sizes[chosen], (np.cumsum(sizes) - sizes)[chosen]
        place = np.repeat(mixed, length)
        begin = np.cumsum(length) - length
        entry = np.arange(len(place)) + np.repeat(first - begin, length)
        values[self.forest.distribution_class[entry], place] = self.forest.distribution_weight[
            entry
        ]
        values[:, mixed] /= np.maximum(values[:, mixed].sum(axis=0), 1.0)  # nothing is said by some
        return values.reshape(classes, *payload.shape)


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The training rows that some trees did not use, and these trees."""

    row: np.ndarray  # numbers of the rows
    trees: np.ndarray  # (trees, rows): whether a tree left a row out
    votes: np.ndarray  # number of trees that did
    weight: np.ndarray | None

    @classmethod
    def of(cls, drawn: np.ndarray, weight: np.ndarray | None) -> LeftOut:
        """Find the rows that not every tree used."""
        left_out = drawn == 0
        votes = left_out.sum(axis=0)
        row = np.flatnonzero(votes)
        if len(row) < len(votes):
            left_out = left_out[:, row]
        return cls(row, left_out, votes[row], None if weight is None else weight[row])

    def rows_at_once(self) -> int:
        """Return for how many samples the leave-out means of all rows may be held."""
        return max(FEWEST_ROWS, HELD_MEANS // len(self.row))

    def means(self, said: Answers, nobody: np.ndarray | None) -> np.ndarray:
        """Return what the trees that left a row out predict, of answers (n, trees): (n, rows).

        `nobody` (rows,) takes the place of those that are all silent.
        """
        means = self._over_trees(said.values)
        if said.votes is None:
            means /= self.votes
            return means
        count = self.votes_on(said)
        silent = count == 0
        np.divide(means, count, out=means, where=~silent)
        assert nobody is not None
        np.copyto(means, nobody, where=silent)
        return means

    def votes_on(self, said: Answers) -> np.ndarray:
        """Return how many of the trees that left a row out vote on a sample (n or 1, rows)."""
        if said.votes is None:
            return self.votes[np.newaxis]
        return self._over_trees(said.votes.astype(np.float64))

    def _over_trees(self, values: np.ndarray) -> np.ndarray:
        """Add up the values (n, trees) of the trees that left a row out (n, rows)."""
        return product(values, self.trees)

    def bound(self, level: float) -> float:
        """Return the weight of rows that a conformal quantile has below or at it.

        This is the rank ceil(level * (n + 1)) where all rows count as one: the new sample is one
        of n + 1 that could be the worst.
        """
        if self.weight is None:
            return float(math.ceil(level * (len(self.row) + 1) - SLACK))
        return level * (float(self.weight.sum()) + 1.0) * (1.0 - SLACK)


def product(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the matrix product (n, rows) of values (n, trees) and counts (trees, rows)."""
    found = np.empty((len(values), counts.shape[1]))
    for first in range(0, counts.shape[1], TRAINING_ROWS):
        part = slice(first, first + TRAINING_ROWS)
        np.matmul(values, counts[:, part].astype(np.float64), out=found[:, part])
    return found


def sum_rows(terms: np.ndarray) -> np.ndarray:
    """Return the sums (n,) of terms (n, rows), which do not depend on the order of the rows.

    Terms are rounded to fixed point first, so that the sums are exact. They are overwritten.
    """
    largest = np.abs(terms).max(axis=1)
    bits = EXACT_BITS - terms.shape[1].bit_length()
    unit = np.ldexp(1.0, np.maximum(np.frexp(largest)[1] - bits, SMALLEST_EXPONENT))
    terms /= unit[:, np.newaxis]
    found: np.ndarray = np.rint(terms, out=terms).sum(axis=1) * unit
    return found


def upper_quantile(values: np.ndarray, left_out: LeftOut, level: float) -> np.ndarray:
    """Return the smallest values (n,) that rows of the weight of the level do not exceed.

    Of values (n, rows), which are overwritten; infinity where all rows together weigh less.
    """
    bound = left_out.bound(level)
    if left_out.weight is None:
        rank = int(bound)
        if rank > values.shape[1]:
            return np.full(len(values), np.inf)
        values.partition(rank - 1, axis=1)
        return values[:, rank - 1].copy()
    order = np.argsort(values, axis=1)
    summed = np.cumsum(left_out.weight[order], axis=1)
    place = (summed < bound).sum(axis=1)
    found = np.full(len(values), np.inf)
    enough = np.flatnonzero(place < values.shape[1])
    found[enough] = values[enough, order[enough, place[enough]]]
    return found


def interval(
    said: Answers,
    nobody: np.ndarray | None,
    unit: float,
    residual: np.ndarray,
    left_out: LeftOut,
    level: float,
) -> np.ndarray:
    """Return jackknife+-after-bootstrap intervals (n, 2), relative to the centre of the values.

    For each training row, the trees that left it out predict a sample, and miss by the residual of
    the row on either side: ends are conformal quantiles of these.
    """
    means = left_out.means(said, nobody)
    means *= unit
    upper = upper_quantile(means + residual, left_out, level)
    np.subtract(residual, means, out=means)
    return np.stack([-upper_quantile(means, left_out, level), upper], axis=1)


def conforms(
    said: Answers, nobody: np.ndarray | None, own: np.ndarray, left_out: LeftOut, level: float
) -> np.ndarray:
    """Say (n,) whether a class belongs to the prediction set, by the trees' posteriors of it.

    It does unless too many training rows have a higher posterior of their own class (`own`, in the
    units of the values) than the same trees give to this class.
    """
    # Less than a unit apart is a tie: the two were rounded in different ways.
    worse = left_out.means(said, nobody) < own - 1.0
    if left_out.weight is None:
        below = worse.sum(axis=1).astype(np.float64)
    else:
        below = np.where(worse, left_out.weight, 0.0).sum(axis=1)
    conforming: np.ndarray = below < left_out.bound(level)
    return conforming


def jackknife_variance(
    said: Answers, left_out: LeftOut, repeats: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the variance (n,) of the forest's mean over training samples, and over seeds.

    The first is the jackknife after bootstrap, corrected for the finite number of trees, and may be
    negative; the second is what a finite number of trees adds. Both are in squared units of the
    values, and NaN where fewer than two trees vote. `repeats` says how many samples each row stands
    for.
    """
    rows, share = float(repeats.sum()), repeats[left_out.row]
    trees = said.counts().astype(np.float64)
    mean, of_trees = said.spread()
    votes = left_out.votes_on(said)
    part = np.broadcast_to(share, votes.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        of_trees /= np.where(trees > 1, trees - 1.0, np.nan)
        change = left_out.means(said, np.zeros(len(share)))
        change -= mean[:, np.newaxis]
        change *= change
        change /= share
        noise = (1.0 / votes - 1.0 / trees[: len(votes), np.newaxis]) / share
        if said.votes is not None:  # rows that no tree says anything of take no part
            there = votes > 0
            change[~there] = noise[~there] = 0.0
            part = np.where(there, share, 0.0)
        # Rows that all trees used say nothing, and are taken to be like the others.
        factor = (rows - 1) / rows * (rows / part.sum(axis=1))
        return factor * (sum_rows(change) - sum_rows(noise) * of_trees), of_trees / trees


@dataclass(frozen=True, eq=False)
class Draws:
    """How often trees drew each training row."""

    counts: np.ndarray  # (trees, rows)
    repeats: np.ndarray  # how many samples each row stands for
    unused: float  # share of the samples that a tree leaves out; one if it may draw them twice

    @cached_property
    def mean(self) -> np.ndarray:
        """Return the mean count of each row."""
        found: np.ndarray = self.counts.mean(axis=0)
        return found

    @cached_property
    def chance(self) -> float:
        """Return the variance of the counts over trees, added up over all samples."""
        spread = np.square(self.counts, dtype=np.float64).mean(axis=0) - np.square(self.mean)
        return float(sum_rows((spread / self.repeats)[np.newaxis])[0])


def infinitesimal_variance(said: Answers, draws: Draws) -> tuple[np.ndarray, np.ndarray]:
    """Return the same variances, the first by the infinitesimal jackknife.

    A row counts as much as the predictions of trees depend on how often they have drawn it.
    """
    rows = float(draws.repeats.sum())
    trees = said.counts().astype(np.float64)
    mean, of_trees = said.spread()
    with np.errstate(divide="ignore", invalid="ignore"):
        count = draws.mean[np.newaxis]
        if said.votes is not None:
            votes = said.votes.astype(np.float64)
            count = product(votes, draws.counts) / trees[:, np.newaxis]
        dependence = product(said.values, draws.counts) / trees[:, np.newaxis]
        dependence -= mean[:, np.newaxis] * count
        dependence *= dependence
        dependence /= draws.repeats
        # What the covariances of so few trees add to their squares by chance.
        noise = draws.chance * of_trees / np.square(trees)
        factor = 1.0 if draws.unused == 1.0 else (rows - 1) / rows / draws.unused**2
        of_trees /= np.where(trees > 1, trees - 1.0, np.nan)
        return factor * (sum_rows(dependence) - noise), of_trees / trees
