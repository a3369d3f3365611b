"""What boosting means, slowly: the losses, the fixed point of their gradients, and the rounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import oracle
import oracle_atoms

SUBSETS, ROUNDS_A_SUBSET = 2**63 + 2, 5  # a number of no round; rounds that share atoms
COARSE, FINE = 14, 30  # bits of the gradients that find splits, and of those that make leaves


def exp(x: float) -> float:
    """The core's own exponential: these operations in this order, on any machine."""
    x = min(max(x, -708.0), 709.0)
    magic = float.fromhex("0x1.8p52")
    n = (x * 1.4426950408889634 + magic) - magic
    r = (x - n * float.fromhex("0x1.62e42feep-1")) - n * float.fromhex("0x1.a39ef35793c76p-33")
    total = 1.0 / math.factorial(13)
    for k in range(12, -1, -1):
        total = total * r + 1.0 / math.factorial(k)
    return math.ldexp(total, int(n))


def softmax(scores: Sequence[float]) -> list[float]:
    powers = [exp(score - max(scores)) for score in scores]
    total = 0.0
    for power in powers:
        total += power
    return [power / total for power in powers]


def logistic(score: float) -> float:
    e = exp(-abs(score))
    return (e if score < 0 else 1.0) / (1.0 + e)


# Of one sample: the negative gradient and the curvature of its loss, for each output.


def softmax_steps(y: int, scores: Sequence[float]):
    p = softmax(scores)
    return [(k == y) - p[k] for k in range(len(p))], [q * (1.0 - q) for q in p]


def logistic_steps(y: int, scores: Sequence[float]):
    p = logistic(scores[0])
    return [y - p], [p * (1.0 - p)]


def squared_steps(y: float, scores: Sequence[float]):
    return [y - scores[0]], [1.0]


def poisson_steps(y: float, scores: Sequence[float]):
    mean = exp(scores[0])
    return [y - mean], [mean]


def quantile_steps(quantile: float):
    def steps(y: float, scores: Sequence[float]):
        residual = y - scores[0]
        return [quantile if residual > 0 else quantile - 1.0 if residual < 0 else 0.0], [1.0]

    return steps


def quantile_of(values: Sequence[float], weights: Sequence[float], quantile: float) -> float:
    """The lowest value with at least that share of the weight at or below it.

    If the share is met exactly, the middle between it and the next.
    """
    pairs = sorted(zip(values, weights, strict=True), key=lambda pair: pair[0])
    wanted, below = quantile * sum(weight for _, weight in pairs), 0.0
    for number, (value, weight) in enumerate(pairs):
        below += weight
        if below == wanted and number + 1 < len(pairs):
            return value / 2 + pairs[number + 1][0] / 2
        if below >= wanted:
            return value
    raise AssertionError("no weight")


def exponent(values: np.ndarray) -> int:
    """Of the power of two that all values stay below."""
    return max(math.frexp(float(np.abs(values).max()))[1], -900)


def rounded(value: int) -> int:
    """From fine to coarse, half up."""
    shift = FINE - COARSE
    return (value + (1 << (shift - 1))) >> shift


@dataclass
class Steps(oracle.Rows):
    """The rows of a tree, whose target is the number of a row in the gradients of the round."""

    gradient: np.ndarray = field(default=None)  # fine integers (n, outputs)
    curvature: np.ndarray = field(default=None)
    gradient_exponent: int = 0
    curvature_exponent: int = 0
    l2: float = 1.0

    pure = False

    @property
    def sums_per_bin(self) -> int:
        """How many numbers a bin holds: a gradient per output and a curvature, padded."""
        numbers = self.gradient.shape[1] + 1
        if numbers > 8:
            return -(-numbers // 8) * 8
        return next(power for power in (2, 4, 8) if numbers <= power)

    def worth(self) -> float:
        """The squares of the sums of the coarse gradients over the sum of the curvatures."""
        outputs = self.gradient.shape[1]
        sums, curvature = [0] * outputs, 0
        for row, count in zip(self.target.tolist(), self.counts.tolist(), strict=True):
            for k in range(outputs):
                sums[k] += count * rounded(int(self.gradient[row, k]))
            # Curvatures are positive, so that cutting is rounding down.
            curvature += count * rounded(int(self.curvature[row].sum()) // outputs)
        parts = [0.0] * 4
        for k, g in enumerate(sums):
            parts[k % 4] += float(g) * float(g)
        squares = (parts[0] + parts[1]) + (parts[2] + parts[3])
        unit = math.ldexp(1.0, self.curvature_exponent - COARSE)
        below = float(curvature) + self.l2 / unit
        return squares / below if below > 0 else 0.0

    def in_units(self, difference: float) -> float:
        return math.ldexp(
            difference, 2 * (self.gradient_exponent - COARSE) - self.curvature_exponent + COARSE
        )

    def newton_step(self, largest: float) -> list[float]:
        """The sum of the gradients over that of the curvatures, for each output."""
        values = []
        for k in range(self.gradient.shape[1]):
            fine = [0, 0]
            for row, count in zip(self.target.tolist(), self.counts.tolist(), strict=True):
                fine[0] += count * int(self.gradient[row, k])
                fine[1] += count * int(self.curvature[row, k])
            g = math.ldexp(float(fine[0]), self.gradient_exponent - FINE)
            h = math.ldexp(float(fine[1]), self.curvature_exponent - FINE) + self.l2
            values.append(min(max(g / h if h > 0 else 0.0, -largest), largest))
        return values


def subset_counts(key: int, order: Sequence[int], copies: Sequence[int], draws: int) -> np.ndarray:
    """How often each row is in a round: so many of all copies, in canonical order."""
    stream = oracle_atoms.Stream(oracle_atoms.derive(key, oracle_atoms.BAG))
    counts, left, wanted = np.zeros(len(copies), dtype=np.int64), int(sum(copies)), draws
    for row in order:
        for _ in range(copies[row]):
            if wanted and stream.below(left) < wanted:
                counts[row] += 1
                wanted -= 1
            left -= 1
    return counts


@dataclass
class Boosting:
    """The rounds of a fit; `scores` are those of the model so far."""

    cells: np.ndarray
    y: Sequence
    scores: np.ndarray
    steps: Callable
    dictionary: oracle_atoms.Dictionary
    growth: oracle.Growth
    seed: int
    order: Sequence[int]
    copies: Sequence[int]
    weights: Sequence[float]
    draws: int
    l2: float
    learning_rate: float
    largest_step: float = math.inf
    quantile: float | None = None
    guided: bool = False
    gains: np.ndarray | None = None  # of each feature
    marks: np.ndarray | None = None  # of what was missing in the cells

    def round(self, number: int):
        """Grow a tree, and add to the scores; returns its nodes and the values of its leaves."""
        key = oracle_atoms.tree_key(self.seed, number)
        copies = np.array(self.copies)
        counts = subset_counts(key, self.order, copies, self.draws) if self.draws else copies
        found = [self.steps(y, s) for y, s in zip(self.y, self.scores.tolist(), strict=True)]
        weights = np.array(self.weights)[:, None]
        gradient = np.array([g for g, _ in found], dtype=np.float64) * weights
        curvature = np.array([h for _, h in found], dtype=np.float64) * weights
        bits = exponent(gradient), exponent(curvature)
        rows = Steps(
            self.cells,
            np.arange(len(self.cells)),
            counts,
            counts,
            gradient=oracle.fixed_point(gradient, FINE - bits[0]),
            curvature=oracle.fixed_point(curvature, FINE - bits[1]),
            gradient_exponent=bits[0],
            curvature_exponent=bits[1],
            l2=self.l2,
            marks=self.marks,
        )
        dictionary = self.dictionary
        if isinstance(dictionary, oracle_atoms.Subset):
            trained = replace(rows, counts=copies)[np.array(self.order)]
            among = oracle_atoms.derive(
                oracle_atoms.tree_key(self.seed, SUBSETS), number // ROUNDS_A_SUBSET
            )
            dictionary = dictionary.drawn(trained[trained.counts > 0], among)
        if self.guided:
            self._guide()
        nodes = oracle.grow_tree(rows, dictionary, self.growth, key)
        if self.guided:
            self._add_gains(nodes)
        values = {
            number: self._leaf(node.rows) for number, node in enumerate(nodes) if node.is_leaf
        }
        for row, cells in enumerate(self.cells):
            marks = None if self.marks is None else self.marks[row]
            leaf = oracle.leaf_of(nodes, cells, marks)
            self.scores[row] += values[next(n for n, node in enumerate(nodes) if node is leaf)]
        return nodes, values

    def _guide(self) -> None:
        """Sums draw nine in ten of their features in proportion to gains."""
        if self.gains is None or not self.gains.any():
            return
        total, so_far, guide = sum(self.gains.tolist()), 0.0, []
        for i, gain in enumerate(self.gains.tolist()):
            so_far += gain
            share = 0.9 * (so_far / total) + 0.1 * ((i + 1) / len(self.gains))
            guide.append(int(min(share, 1 - 2**-53) * 2**64))
        for component in self.dictionary.components:
            if isinstance(component, oracle_atoms.SparseAtoms):
                component.guide = [*guide[:-1], 2**64 - 1]

    def _add_gains(self, nodes) -> None:
        if self.gains is None:
            self.gains = np.zeros(self.cells.shape[1])
        for node in nodes:
            if not node.is_leaf:
                features = np.flatnonzero(node.split.atom)
                self.gains[features] += float(np.float32(node.split.gain)) / len(features)

    def _leaf(self, rows: Steps) -> np.ndarray:
        if self.quantile is None:
            return self.learning_rate * np.array(rows.newton_step(self.largest_step))
        residuals = [self.y[row] - self.scores[row, 0] for row in rows.target]
        weights = [
            count * self.weights[row] for row, count in zip(rows.target, rows.counts, strict=True)
        ]
        return self.learning_rate * np.array([quantile_of(residuals, weights, self.quantile)])


# Calibration: models that leave one fold out, and what is learned from them.


def deal(order: Sequence[int], classes: Sequence[int] | None, folds: int) -> list[list[int]]:
    """Rows in canonical order, class after class, dealt out like cards."""
    rows = sorted(order, key=lambda row: 0 if classes is None else classes[row])
    return [[row for place, row in enumerate(rows) if place % folds == k] for k in range(folds)]


@dataclass
class CrossFit:
    """Models without one fold each, in step, until what they leave out is no longer better."""

    models: Sequence[Boosting]
    folds: Sequence[Sequence[int]]
    loss: Callable  # of all scores

    def run(self, rounds: int, patience: int | None, tol: float) -> tuple[np.ndarray, list[float]]:
        """The scores of each row by the model without it, in the best round, and all losses."""
        losses, kept, best, best_round = [], None, math.inf, 0
        for number in range(rounds):
            scores = np.empty_like(self.models[0].scores)
            for model, fold in zip(self.models, self.folds, strict=True):
                model.round(number)
                scores[fold] = model.scores[fold]
            losses.append(self.loss(scores))
            if patience is None or losses[-1] < best - tol:
                kept, best, best_round = scores, losses[-1], number + 1
            elif number + 1 - best_round >= patience:
                break
        return kept, losses


def conformal_quantile(values: Sequence[float], weights: Sequence[float], q: float) -> float:
    """Where the next value is below with probability q, if it is as likely in any gap of them."""
    pairs = sorted(zip(values, weights, strict=True))
    total = 0.0
    for _, weight in pairs:
        total += weight
    wanted, below, last = q * (total + total / len(pairs)), 0.0, None
    for value, weight in pairs:
        below += weight
        if wanted <= below:
            if last is None:
                return value if wanted == below else -math.inf
            share = (wanted - (below - weight)) / weight
            return last + share * (value - last)
        last = value
    return math.inf


def class_set(
    probabilities: Sequence[Sequence[float]],
    true: Sequence[float],
    weights: Sequence[float],
    folds: Sequence[Sequence[int]],
    level: float,
) -> list[bool]:
    """Classes of one sample, whose probabilities the model without each fold has given."""
    mean = sum(weights) / len(weights)
    found = []
    for k in range(len(probabilities[0])):
        below = mean
        for number, fold in enumerate(folds):
            below += sum(weights[row] for row in fold if true[row] <= probabilities[number][k])
        found.append(below > (1 - level) * (sum(weights) + mean))
    return found
