"""``dictionary="auto"``: the choice among dictionaries by out-of-bag score."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from morforest._fixed_point import to_core_dtype
from morforest._grow import grow_trees, sum_out_of_bag
from morforest._native import core
from morforest.dictionary import Subset
from morforest.dictionary._base import ResolvedDictionary, resolve
from morforest.dictionary._presets import choose_dictionary, names_for

FEW_ROWS, MOST_ROWS, FEWEST_TREES = 500, 5000, 20  # with which "auto" tries names
FEW_ATOMS, FEW_CANDIDATES = 200, 20  # the same where all trees share atoms
LEAD = 0.01  # by which "series" is to be ahead: what is tried is not quite what will be fitted


def try_dictionaries(
    X: np.ndarray,
    target: np.ndarray,
    weights: np.ndarray | None,
    shape: tuple[int, ...],
    channel_axis: int | None,
    classes: bool,
    like: Any,
) -> dict[str, float]:
    """Score small forests of each name by the samples that their trees did not see.

    On at most half of the samples, but for small data, with a part of the trees, and with few of
    the atoms that trees share: trying costs about as much as the fit itself. Two halves of a
    forest judge the samples that both left out, and the product of their errors stands for a
    square: in it the chance of single trees cancels, so that few trees say what many would.
    Classes are scored by one minus half their Brier score, which is 1 for sure and right and 0 for
    sure and wrong; numbers by R squared.
    """
    rows = _some_rows(X, target if classes else np.zeros(len(X), dtype=int))
    trees = max(FEWEST_TREES, int(getattr(like, "n_estimators", 0)) // 25)
    X, target = X[rows], target[rows]
    weights = None if weights is None else weights[rows]
    truth = target.astype(np.float64)[:, np.newaxis]
    if classes:
        present, target = np.unique(target, return_inverse=True)
        target = target.astype(np.uint32)
        truth = (target[:, np.newaxis] == np.arange(len(present))).astype(np.float64)
    scores = {}
    for name in names_for(shape, channel_axis):
        chosen = choose_dictionary(name, shape, channel_axis)
        if isinstance(chosen, Subset) and chosen.per == "forest":
            chosen = Subset(chosen.dictionary, FEW_ATOMS, per="forest")
        plan = resolve(chosen, shape, channel_axis)
        first, second = _errors_out_of_bag(plan, X, target, weights, truth, classes, trees, like)
        seen = np.isfinite(first[:, 0]) & np.isfinite(second[:, 0])
        products = (first * second)[seen].sum(axis=1)
        mean = math.fsum(products) / max(len(products), 1)
        if not classes:
            centre = math.fsum(truth[seen, 0]) / max(len(products), 1)
            spread = math.fsum((truth[seen, 0] - centre) ** 2)
            mean = 2.0 * mean * len(products) / spread if spread > 0 else 0.0
        scores[name] = 1.0 - 0.5 * mean if seen.any() else 0.0
    return scores


def best_name(scores: dict[str, float]) -> str:
    """Return the name of the highest score; "series" needs a lead over the others."""
    found: str = max(scores, key=lambda name: scores[name] - LEAD * (name == "series"))
    return found


def _errors_out_of_bag(
    plan: ResolvedDictionary,
    X: np.ndarray,
    target: np.ndarray,
    weights: np.ndarray | None,
    truth: np.ndarray,
    classes: bool,
    trees: int,
    like: Any,
) -> list[np.ndarray]:
    """Return what each half of a small forest gets wrong of the samples it did not see; else NaN.

    As `fit` does it, without the checks that the samples have passed.
    """
    from morforest.forest import MorfClassifier, MorfRegressor

    model: Any = (MorfClassifier if classes else MorfRegressor)(bootstrap=True, n_jobs=like.n_jobs)
    if plan.dictionary._columns():
        model.max_features = FEW_CANDIDATES
    model._seed = 0
    if classes:
        model.classes_ = np.arange(truth.shape[1])
    with warnings.catch_warnings():  # of a range of values: for the one that is chosen
        warnings.filterwarnings("ignore", "X spans many orders of magnitude", UserWarning)
        task, target_format = model._prepare(X, target, weights, plan, None)
    grown = list(grow_trees(task, range(trees), like.n_jobs, 0))
    forest = model._assemble(grown, task, target_format, None)
    errors = []
    for half in (range(trees // 2), range(trees // 2, trees)):
        sums, votes = sum_out_of_bag(task, forest, like.n_jobs, half)
        with np.errstate(invalid="ignore"):
            errors.append(sums / votes[:, np.newaxis] - truth)
    return errors


def _some_rows(X: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return up to half of the rows, by content and not by order, of each class alike."""
    if len(X) <= FEW_ROWS:
        return np.arange(len(X))
    wanted = min(max(FEW_ROWS, len(X) // 2), MOST_ROWS)
    share = wanted / len(X)
    order = np.argsort(core.hash_rows(to_core_dtype(X)))
    chosen = []
    for k in np.unique(classes):
        of_class = order[classes[order] == k]
        chosen.append(of_class[: max(1, round(share * len(of_class)))])
    return np.sort(np.concatenate(chosen))
