"""What boosting minimises: each loss has gradients, a first guess and leaf values.

Scores have shape (n, outputs) and come before the link function. All numbers come from basic
operations, or from functions of the core that use these alone, so that a model is the same on every
platform. Sums over samples are rounded once, so that the order of the samples does not matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morforest._fixed_point import class_sums, sum_once
from morforest._native import core

LARGEST_STEP = 4.0  # of leaves that hold log-odds, before the learning rate


class Loss:
    """A loss with a constant curvature of one, and leaves that are Newton steps."""

    outputs = 1
    largest_step = np.inf
    quantile: float = np.nan  # of the residuals; where it is given, leaves hold it

    def __init__(self, target: np.ndarray, weight: np.ndarray):
        self.target = target
        self.weight = weight  # of each sample

    def baseline(self) -> np.ndarray:
        """Return the best constant scores."""
        raise NotImplementedError

    def steps(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return negative gradients and curvatures."""
        raise NotImplementedError

    def values(self, scores: np.ndarray) -> np.ndarray:
        """Return the loss of each sample."""
        raise NotImplementedError

    def average(self, scores: np.ndarray, rows: np.ndarray, weight: np.ndarray) -> float:
        """Return the mean of the losses of some rows, weighted as given."""
        return mean(self.of(rows).values(scores[rows]), weight)

    def of(self, rows: np.ndarray) -> Loss:
        """Return the loss of some rows, which may be repeated."""
        part = object.__new__(type(self))
        part.__dict__.update(self.__dict__)
        part.target, part.weight = self.target[rows], self.weight[rows]
        return part

    def _ones(self) -> np.ndarray:
        return np.ones((len(self.target), 1))


class SoftmaxLoss(Loss):
    """The log loss of three classes or more: minus the logarithm of the true class' probability."""

    largest_step = LARGEST_STEP

    def __init__(self, target: np.ndarray, weight: np.ndarray, classes: int):
        super().__init__(target, weight)
        self.outputs = classes

    def baseline(self) -> np.ndarray:
        totals = class_sums(self.target, self.weight, self.outputs)
        return log(np.maximum(totals / sum_once(self.weight), 1e-12))

    def steps(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        probability = softmax(scores)
        curvature = probability * (1.0 - probability)
        gradient = np.negative(probability, out=probability)
        gradient[np.arange(len(gradient)), self.target] += 1.0
        return gradient, curvature

    def values(self, scores: np.ndarray) -> np.ndarray:
        # The probability of the largest score reveals the sum by which all were divided.
        below = scores.max(axis=1) - scores[np.arange(len(scores)), self.target]
        values: np.ndarray = below - log(softmax(scores).max(axis=1))
        return values


class LogisticLoss(Loss):
    """The log loss of two classes, with one score: the log-odds of the second."""

    largest_step = LARGEST_STEP

    def baseline(self) -> np.ndarray:
        share = mean(self.target, self.weight)
        share = min(max(share, 1e-12), 1.0 - 1e-12)
        return log(np.array([share / (1.0 - share)]))

    def steps(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        probability = logistic(scores)
        return self.target[:, np.newaxis] - probability, probability * (1.0 - probability)

    def values(self, scores: np.ndarray) -> np.ndarray:
        against = np.where(self.target == 1, -scores[:, 0], scores[:, 0])
        values: np.ndarray = np.maximum(against, 0.0) - log(logistic(np.abs(scores))[:, 0])
        return values


class SquaredLoss(Loss):
    """Half the squared residual; leaves are means."""

    def baseline(self) -> np.ndarray:
        return np.array([mean(self.target, self.weight)])

    def steps(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.target[:, np.newaxis] - scores, self._ones()

    def values(self, scores: np.ndarray) -> np.ndarray:
        values: np.ndarray = 0.5 * (self.target - scores[:, 0]) ** 2
        return values


class PoissonLoss(Loss):
    """Half the Poisson deviance, but for a constant; scores are logarithms of means."""

    largest_step = LARGEST_STEP

    def baseline(self) -> np.ndarray:
        if not self.target.any():
            raise ValueError(
                'loss="poisson" needs a positive target among the samples to train on, those of '
                "positive sample_weight that early_stopping or calibration_folds do not hold out; "
                "all are zero."
            )
        return log(np.array([mean(self.target, self.weight)]))

    def steps(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean = exp(scores)
        return self.target[:, np.newaxis] - mean, mean

    def values(self, scores: np.ndarray) -> np.ndarray:
        values: np.ndarray = exp(scores[:, 0]) - self.target * scores[:, 0]
        return values


class QuantileLoss(Loss):
    """The residual times `quantile` where it is positive, and times `quantile` - 1 elsewhere."""

    def __init__(self, target: np.ndarray, weight: np.ndarray, quantile: float):
        super().__init__(target, weight)
        self.quantile = quantile

    def baseline(self) -> np.ndarray:
        return np.array([weighted_quantile(self.target, self.weight, self.quantile)])

    def steps(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        above = self.target[:, np.newaxis] - scores
        sign = (above > 0) * self.quantile - (above < 0) * (1.0 - self.quantile)
        return sign, self._ones()

    def values(self, scores: np.ndarray) -> np.ndarray:
        residual = self.target - scores[:, 0]
        values: np.ndarray = np.maximum(self.quantile * residual, (self.quantile - 1.0) * residual)
        return values


def make_loss(name: str, target: np.ndarray, weight: np.ndarray, **more: Any) -> Loss:
    """Return the loss of this name."""
    match name:
        case "log_loss" if more["classes"] > 2:
            return SoftmaxLoss(target, weight, more["classes"])
        case "log_loss":
            return LogisticLoss(target, weight)
        case "squared_error":
            return SquaredLoss(target, weight)
        case "poisson":
            return PoissonLoss(target, weight)
        case "absolute_error":
            return QuantileLoss(target, weight, 0.5)
        case _:
            return QuantileLoss(target, weight, more["quantile"])


def softmax(scores: np.ndarray) -> np.ndarray:
    """Turn scores into probabilities."""
    out = np.empty(scores.shape)
    core.softmax(scores, out)
    return out


def logistic(scores: np.ndarray) -> np.ndarray:
    """Turn log-odds into probabilities."""
    out = np.empty(scores.shape)
    core.logistic(scores, out)
    return out


def exp(x: np.ndarray) -> np.ndarray:
    """Return the exponential."""
    powers: np.ndarray = core.exp(np.ascontiguousarray(x).ravel())
    return powers.reshape(x.shape)


def log(x: np.ndarray) -> np.ndarray:
    """Return the natural logarithm of positive numbers."""
    logarithms: np.ndarray = core.log(np.ascontiguousarray(x, dtype=np.float64).ravel())
    return logarithms.reshape(x.shape)


def mean(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the weighted mean, which does not depend on the order of the values."""
    return sum_once(values * weights) / sum_once(weights)


def weighted_quantile(values: np.ndarray, weights: np.ndarray, quantile: float) -> float:
    """Return the lowest value up to which there is at least this share of the weight.

    Where the share is met exactly, it is the mean of this value and the next.
    """
    order = np.lexsort((weights, values))  # cumulated weights must not depend on the order of rows
    cumulated = np.cumsum(weights[order])
    wanted = quantile * cumulated[-1]
    at = int(np.searchsorted(cumulated, wanted))
    if cumulated[at] == wanted and at + 1 < len(order):
        return float(values[order[at]] / 2 + values[order[at + 1]] / 2)
    return float(values[order[at]])


def leaf_quantiles(
    residual: np.ndarray, weight: np.ndarray, leaf: np.ndarray, leaves: int, quantile: float
) -> np.ndarray:
    """Return the weighted quantile of the residuals in each leaf; 0 where a leaf has no weight."""
    found = np.zeros(leaves)
    rows = np.flatnonzero(weight > 0)
    rows = rows[np.argsort(leaf[rows], kind="stable")]
    begin = np.searchsorted(leaf[rows], np.arange(leaves + 1))
    for i in range(leaves):
        some = rows[begin[i] : begin[i + 1]]
        if len(some):
            found[i] = weighted_quantile(residual[some], weight[some], quantile)
    return found
