"""How sure a forest is, from the predictions of its trees and the rows that each of them used.

Sums over trees are sums of whole numbers, which float64 holds exactly: neither threads, nor the
linear algebra library, nor the other samples of a call show in a result. See "Uncertainty" in
docs/design.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from morforest._arrays import refusing, widen
from morforest._fixed_point import exact_sum
from morforest._model import Forest
from morforest._validation import MAX_TARGET

EXACT_BITS = 52  # of sums; float64 holds whole numbers of 53 bits
HELD_MEANS = 1 << 22  # leave-out means of all training rows that are held at once
HELD_VALUES = 1 << 22  # predictions of single trees that are held at once
TRAINING_ROWS = 2048  # whose trees are marked in float64 at a time
FEWEST_ROWS = 32  # of samples at a time, for which marking is worth it
SMALLEST_EXPONENT = -1000  # of units, whose inverse is a number
LARGEST_WEIGHT = 2.0**40  # of sample weights whose mean is one, or that are counts
SLACK = 1e-9  # of ranks: 0.7 * 10 must be 7, whatever its last bit


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


@dataclass(frozen=True, eq=False)
class TreeValues:
    """Predictions of single trees as whole numbers: value = centre + whole number * unit."""

    forest: Forest
    centre: float
    unit: float

    @classmethod
    def of(cls, forest: Forest) -> TreeValues:
        """Choose the finest unit of which sums over all trees are exact."""
        if forest.class_count:
            low, high, centre = 0.0, 1.0, 0.0
        else:
            low, high = (float(end) for end in (forest.leaf_value.min(), forest.leaf_value.max()))
            centre = low / 2 + high / 2
        exponent = math.frexp(max(high - centre, centre - low))[1]
        bits = EXACT_BITS - forest.n_trees.bit_length()
        return cls(forest, centre, math.ldexp(1.0, max(exponent - bits, SMALLEST_EXPONENT)))

    def rows_at_once(self) -> int:
        """Return for how many samples the predictions of all trees may be held."""
        return max(1, HELD_VALUES // (self.forest.n_trees * self.forest.outputs))

    @property
    def complete(self) -> bool:
        """Whether every leaf predicts something; empty leaves of honest trees may not."""
        if self.forest.class_count:
            return bool((self.forest.distribution_size > 0).all())
        return not np.isnan(self.forest.leaf_value).any()

    def at(self, leaf: np.ndarray) -> np.ndarray:
        """Return whole numbers (outputs, n, trees) for the leaves (n, trees) of samples."""
        forest = self.forest
        node = leaf + forest.tree_begin.astype(np.int64)[:-1]
        payload = -1 - forest.next[node].astype(np.int64)
        if forest.class_count:
            values = self._posteriors(payload)
        else:
            values = forest.leaf_value[payload].astype(np.float64)[np.newaxis]
        return np.rint((values - self.centre) / self.unit)

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
        values[:, mixed] /= values[:, mixed].sum(axis=0)
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

    def means(self, values: np.ndarray) -> np.ndarray:
        """Return what the trees that left a row out predict, of values (n, trees) (n, rows)."""
        means = np.empty((len(values), len(self.row)))
        for part in _training_rows(len(self.row)):
            np.matmul(values, self.trees[:, part].astype(np.float64), out=means[:, part])
        means /= self.votes
        return means

    def bound(self, level: float) -> float:
        """Return the weight of rows that a conformal quantile has below or at it.

        This is the rank ceil(level * (n + 1)) where all rows count as one: the new sample is one
        of n + 1 that could be the worst.
        """
        if self.weight is None:
            return float(math.ceil(level * (len(self.row) + 1) - SLACK))
        return level * (float(self.weight.sum()) + 1.0) * (1.0 - SLACK)


def _training_rows(rows: int) -> list[slice]:
    return [slice(i, min(i + TRAINING_ROWS, rows)) for i in range(0, rows, TRAINING_ROWS)]


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
    values: np.ndarray, unit: float, residual: np.ndarray, left_out: LeftOut, level: float
) -> np.ndarray:
    """Return jackknife+-after-bootstrap intervals (n, 2), relative to the centre of the values.

    For each training row, the trees that left it out predict a sample, and miss by the residual of
    the row on either side: ends are conformal quantiles of these.
    """
    means = left_out.means(values)
    means *= unit
    upper = upper_quantile(means + residual, left_out, level)
    np.subtract(residual, means, out=means)
    return np.stack([-upper_quantile(means, left_out, level), upper], axis=1)


def conforms(values: np.ndarray, own: np.ndarray, left_out: LeftOut, level: float) -> np.ndarray:
    """Say (n,) whether a class belongs to the prediction set, by the trees' posteriors of it.

    It does unless too many training rows have a higher posterior of their own class (`own`, in the
    units of the values) than the same trees give to this class.
    """
    # Less than a unit apart is a tie: the two were rounded in different ways.
    worse = left_out.means(values) < own - 1.0
    if left_out.weight is None:
        below = worse.sum(axis=1).astype(np.float64)
    else:
        below = np.where(worse, left_out.weight, 0.0).sum(axis=1)
    conforming: np.ndarray = below < left_out.bound(level)
    return conforming


def sampling_variance(
    values: np.ndarray, left_out: LeftOut, repeats: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the variance (n,) of the forest's mean over training samples, and over seeds.

    The first is the jackknife after bootstrap, corrected for the finite number of trees, and may be
    negative; the second is what a finite number of trees adds. Both are in squared units of the
    values. `repeats` says how many samples each row stands for.
    """
    trees, rows = values.shape[1], float(repeats.sum())
    share = repeats[left_out.row]
    mean = values.sum(axis=1) / trees
    of_trees = np.square(values - mean[:, np.newaxis]).sum(axis=1) / (trees - 1)
    change = left_out.means(values)
    change -= mean[:, np.newaxis]
    change *= change
    change /= share
    noise = ((1.0 / left_out.votes - 1.0 / trees) / share).sum()
    # Rows that all trees used say nothing, and are taken to be like the others.
    factor = (rows - 1) / rows * (rows / float(share.sum()))
    return factor * (change.sum(axis=1) - noise * of_trees), of_trees / trees
