"""Calibration of boosted models by cross-validation.

Models that leave one fold out predict its samples, and how far they are off says how far the model
of all samples will be off. See "Calibration" in docs/design.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from morforest._arrays import refusing, widen
from morforest._groups import deal_groups
from morforest._grown_trees import GrownTrees
from morforest._loading import LARGEST_EXPONENT, is_finite, require
from morforest._losses import exp
from morforest._model import Forest
from morforest._native import core
from morforest._rounds import Boosting
from morforest._states import stored
from morforest._training import BoostingSettings, without


@dataclass(frozen=True)
class CrossFit:
    """What the models that leave one fold out say of the samples."""

    scores: np.ndarray  # of each sample, by the model that left it out (n, outputs)
    rounds: int  # made by each model
    losses: np.ndarray  # mean over all samples after each round that was tried
    forests: list[Forest]  # of the models, where they are to be kept
    baselines: np.ndarray  # of the models (folds, outputs)


def deal_folds(
    order: np.ndarray, classes: np.ndarray | None, folds: int, groups: np.ndarray | None = None
) -> list[np.ndarray]:
    """Deal rows out to folds in turn: class by class, in canonical order within each.

    Rows of one group are not parted; see `deal_groups`.
    """
    if groups is not None:
        return deal_groups(groups, classes, folds)
    if classes is not None:
        order = order[np.argsort(classes[order], kind="stable")]
    return [np.sort(order[fold::folds]).astype(np.int64) for fold in range(folds)]


def cross_fit(
    task: Boosting,
    folds: list[np.ndarray],
    settings: BoostingSettings,
    patience: int | None,
    tol: float,
    tell: Callable[[float], None],
    keep: bool = False,
) -> CrossFit:
    """Fit one model without each fold, all of them round by round.

    They stop together when the mean loss of what they left out has not decreased for `patience`
    rounds; None makes all rounds.
    """
    models = [without(task, rows, settings) for rows in folds]
    for model in models:
        model.training_table = task.training_table.sibling()
    stop = core.StopFlag()
    running = [model.rounds(range(int(settings.max_iter)), stop) for model in models]
    rows = np.arange(len(task.count))
    weight = task.count * task.weight
    scores = np.empty((len(rows), task.loss.outputs))
    best, best_scores, best_round = np.inf, scores, 0
    losses: list[float] = []
    grown: list[list[GrownTrees]] = [[] for _ in models]
    try:
        for _ in range(int(settings.max_iter)):
            for model, fold, rounds, trees in zip(models, folds, running, grown, strict=True):
                trees.append(next(rounds))
                scores[fold] = model.scores[fold]
                if not keep:
                    trees.clear()
            losses.append(task.loss.average(scores, rows, weight))
            tell(losses[-1])
            if patience is None:
                best_scores, best_round = scores, len(losses)
            elif losses[-1] < best - tol:
                best, best_scores, best_round = losses[-1], scores.copy(), len(losses)
            elif len(losses) - best_round >= patience:
                break
    except BaseException:
        stop.set()
        raise
    if not best_round:  # the losses are not numbers, or infinite
        best_scores, best_round = scores, len(losses)
    forests = [
        model.assemble(trees[:best_round])
        for model, trees in zip(models, grown, strict=True)
        if keep
    ]
    baselines = np.array([model.baseline for model in models])
    return CrossFit(best_scores, best_round, np.array(losses), forests, baselines)


def fit_rounds(task: Boosting, rounds: int) -> Forest:
    """Make the rounds of a task, and return the trees."""
    stop = core.StopFlag()
    try:
        grown = list(task.rounds(range(rounds), stop))
    except BaseException:
        stop.set()
        raise
    return task.assemble(grown)


def conformal_quantiles(values: np.ndarray, weights: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return quantiles below which one more value of the same kind falls with probability `q`.

    Of n values that count the same, the i-th lowest is the quantile i / (n + 1); between two of
    them quantiles are interpolated. What is beyond the lowest and the highest is infinite, since
    the next value may be anywhere there.
    """
    order = np.lexsort((weights, values))  # cumulated weights must not depend on the order of rows
    cumulated = np.cumsum(weights[order])
    one_more = cumulated[-1] + cumulated[-1] / len(order)  # of the mean weight
    found: np.ndarray = np.interp(q * one_more, cumulated, values[order], -np.inf, np.inf)
    return found


def finite_quantile(values: np.ndarray, weights: np.ndarray, q: float) -> float:
    """Return the same, but the lowest or the highest value instead of infinity."""
    found = float(conformal_quantiles(values, weights, np.array([q]))[0])
    return min(max(found, float(values.min())), float(values.max()))


class Calibration:
    """Numbers of samples that were left out: how far predictions were off."""

    scores: np.ndarray
    weights: np.ndarray  # what each score counts for

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def __setstate__(self, state: Any) -> None:
        with refusing("model"):
            names = self.__dataclass_fields__  # type: ignore[attr-defined]
            self.__init__(**{name: state[name] for name in names})  # type: ignore[misc]

    def check(self, model: Forest) -> None:
        """Refuse a damaged calibration of a model."""
        for name in ("scores", "weights"):
            found = widen(name, getattr(self, name), np.float64, 1, "model")
            setattr(self, name, found)
            require(0 < len(found) == len(self.scores), "scores and weights of a calibration")
            require(bool(np.isfinite(found).all()), "a calibration with infinite scores")
        require(bool((self.weights > 0).all()), "weights of a calibration that are not positive")


@stored
@dataclass(eq=False)
class ErrorCalibration(Calibration):
    """Errors in multiples of a scale, which is a boosted model of its own, or one."""

    scores: np.ndarray
    weights: np.ndarray
    forest: Forest | None = None  # of the logarithm of the scale
    baseline: float = 0.0
    exponent: int = 0  # scales are to be multiplied by two to this power

    def check(self, model: Forest) -> None:
        """Refuse a damaged calibration of a model."""
        super().check(model)
        require(is_finite(self.baseline), "the baseline of a scale")
        require(
            type(self.exponent) is int and abs(self.exponent) <= 2 * LARGEST_EXPONENT,
            "the exponent of a scale",
        )
        if self.forest is not None:
            _check_forest(self.forest, model, 1)

    def quantiles(self, q: np.ndarray) -> np.ndarray:
        """Return the quantiles of the scores."""
        return conformal_quantiles(self.scores, self.weights, q)

    def scales(self, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
        """Return the scale of each sample."""
        if self.forest is None:
            return np.ldexp(np.ones(len(X)), self.exponent)
        scale = exp(self.baseline + self.forest.predict_sum(X, n_jobs)[:, 0])
        found: np.ndarray = np.ldexp(scale, self.exponent)
        return found


@stored
@dataclass(eq=False)
class ClassCalibration(Calibration):
    """Probabilities of true classes, with the models of the folds that they come from."""

    scores: np.ndarray
    weights: np.ndarray
    fold: np.ndarray  # of each score
    forests: list[Forest]
    baselines: np.ndarray  # (folds, outputs)

    def check(self, model: Forest) -> None:
        """Refuse a damaged calibration of a model."""
        super().check(model)
        self.fold = widen("fold", self.fold, np.int64, 1, "model")
        self.baselines = widen("baselines", self.baselines, np.float64, 2, "model")
        require(isinstance(self.forests, list), "the models of the folds are not a list")
        require(len(self.fold) == len(self.scores), "folds of a calibration")
        known = (self.fold >= 0) & (self.fold < len(self.forests))
        require(bool(known.all()), "folds of a calibration")
        shape = (len(self.forests), model.values)
        require(self.baselines.shape == shape, "the first guesses of the folds")
        require(bool(np.isfinite(self.baselines).all()), "the first guesses of the folds")
        for forest in self.forests:
            _check_forest(forest, model, model.values)

    def sets(
        self,
        X: np.ndarray,
        level: float,
        probabilities: Callable[[np.ndarray], np.ndarray],
        n_jobs: int | None,
    ) -> np.ndarray:
        """Mark the classes that are not less probable than the true ones of most samples."""
        total = float(np.cumsum(np.sort(self.weights))[-1])
        mean = total / len(self.scores)
        below: np.ndarray = np.array(mean)  # of the sample itself
        for number, forest in enumerate(self.forests):
            probability = probabilities(self.baselines[number] + forest.predict_sum(X, n_jobs))
            own = self.fold == number
            scores, weights = self.scores[own], self.weights[own]
            order = np.lexsort((weights, scores))
            cumulated = np.append(0.0, np.cumsum(weights[order]))
            below = below + cumulated[np.searchsorted(scores[order], probability, side="right")]
        sets: np.ndarray = below > (1.0 - level) * (total + mean)
        return sets


def _check_forest(forest: Any, model: Forest, values: int) -> None:
    require(isinstance(forest, Forest), "a part of a calibration is not a forest")
    fits = forest.sample_shape == model.sample_shape and forest.class_count == 0
    require(fits and forest.values == values, "a part of a calibration does not fit the model")
