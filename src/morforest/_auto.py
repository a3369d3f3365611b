"""``dictionary="auto"``: the choice among dictionaries by out-of-bag score."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np

from morforest._fixed_point import blocks, core_dtype
from morforest._groups import GroupBagging
from morforest._grow import grow_trees, sum_out_of_bag
from morforest._native import core
from morforest._training import (
    BaggingSettings,
    ForestSettings,
    GrowthSettings,
    TrainingData,
    prepare_forest,
    resolve_for,
)
from morforest.dictionary import SharedAtoms
from morforest.dictionary._base import ResolvedDictionary
from morforest.dictionary._presets import choose_dictionary, names_for

FEW_ROWS, MOST_ROWS = 500, 5000  # as many are tried, or half of the rows in between
FEWEST_TREES, TREES_PER_TRIAL = 20, 25  # one tree is tried for so many that will be grown
FEW_ATOMS, FEW_CANDIDATES = 200, 20  # the same where all trees share atoms
LEAD = 0.01  # by which names with shared atoms must be ahead, which are tried with few of these


def try_dictionaries(
    data: TrainingData, n_trees: int, n_jobs: int | None = None
) -> dict[str, float]:
    """Score a small forest of each name by the samples that its trees did not see.

    Each trial takes at most half of the samples unless there are few, some of the trees that will
    be grown (`n_trees`, or 0 if these are no forest) and few shared atoms, so that all trials
    together cost about as much as the fit itself. Two halves of a forest judge the samples that
    both left out, and the product of their errors stands for a square: the chance of single trees
    cancels in it, so that few trees say what many would. Classes are scored by one minus half their
    Brier score, which is 1 for certain and right and 0 for certain and wrong; numbers by R squared.
    Where samples have groups, each tree leaves whole groups out.
    """
    data = _merge_equal_rows(data)
    data = data.of(_some_rows(data))
    trees = max(FEWEST_TREES, n_trees // TREES_PER_TRIAL)
    data, truths = _present(data)
    truth = np.concatenate(truths, axis=1)
    ends = np.cumsum([of.shape[1] for of in truths])[:-1]
    scores = {}
    for name in names_for(data.shape, data.channel_axis):
        chosen = choose_dictionary(name, data.shape, data.channel_axis)
        if isinstance(chosen, SharedAtoms):
            chosen = SharedAtoms(chosen.dictionary, FEW_ATOMS)
        first, second = _errors_out_of_bag(resolve_for(chosen, data), data, truth, trees, n_jobs)
        seen = np.isfinite(first[:, 0]) & np.isfinite(second[:, 0])
        products = np.split((first * second)[seen], ends, axis=1)
        losses = [
            _loss(of.sum(axis=1), None if data.n_classes else truth[seen, k])
            for k, of in enumerate(products)
        ]
        mean = sum(losses) / len(losses)
        scores[name] = 1.0 - 0.5 * mean if seen.any() else 0.0
    return scores


def _present(data: TrainingData) -> tuple[TrainingData, list[np.ndarray]]:
    """Leave out classes that no sample has, and return what each output should be predicted."""
    columns = data.target.reshape(len(data.target), -1).T
    if not data.n_classes:
        return data, [column[:, np.newaxis].astype(np.float64) for column in columns]
    found = [np.unique(column, return_inverse=True) for column in columns]
    codes = np.stack([code for _, code in found], axis=1).astype(np.uint32)
    labels = [np.arange(len(present)) for present, _ in found]
    truths = [
        (code[:, np.newaxis] == label).astype(np.float64)
        for code, label in zip(codes.T, labels, strict=True)
    ]
    several = data.target.ndim > 1
    target, classes = (codes, labels) if several else (codes[:, 0], labels[0])
    return replace(data, target=target, classes=classes), truths


def _loss(products: np.ndarray, target: np.ndarray | None) -> float:
    """Return the mean product of errors, of numbers as a share of half of their variance."""
    mean = math.fsum(products) / max(len(products), 1)
    if target is None:
        return mean
    centre = math.fsum(target) / max(len(products), 1)
    spread = math.fsum((target - centre) ** 2)
    return 2.0 * mean * len(products) / spread if spread > 0 else 0.0


def best_name(scores: dict[str, float]) -> str:
    """Return the name of the highest score; "series" and "eeg" need a lead over the others."""
    return max(scores, key=lambda name: scores[name] - LEAD * (name in ("series", "eeg")))


def _errors_out_of_bag(
    resolved: ResolvedDictionary,
    data: TrainingData,
    truth: np.ndarray,
    trees: int,
    n_jobs: int | None,
) -> list[np.ndarray]:
    """Return the errors of each half of a small forest on samples it did not see; else NaN."""
    settings = ForestSettings(
        growth=GrowthSettings(
            criterion="gini" if data.n_classes else "squared_error",
            max_features=FEW_CANDIDATES if resolved.n_shared_atoms else "auto",
        ),
        bagging=BaggingSettings(bootstrap=data.groups is None),
        n_jobs=n_jobs,
    )
    with warnings.catch_warnings():  # the dictionary that is chosen will warn again
        warnings.filterwarnings("ignore", "X spans many orders of magnitude", UserWarning)
        task = prepare_forest(data, resolved, settings)
    if data.groups is not None:
        task = replace(task, bagging=GroupBagging.of(task.bagging, data.groups))
    forest = task.assemble(list(grow_trees(task, range(trees), n_jobs, verbose=0)), before=None)
    errors = []
    for half in (range(trees // 2), range(trees // 2, trees)):
        sums, votes = sum_out_of_bag(task, forest, n_jobs, half)
        with np.errstate(invalid="ignore"):
            errors.append(sums / votes[:, np.newaxis] - truth)
    return errors


def _hashes(X: np.ndarray) -> np.ndarray:
    """Return a hash of each row; sparse rows are made dense some at a time."""
    dtype = core_dtype(X)
    found = np.empty(len(X), dtype=np.uint64)
    for part in blocks(X.shape):
        found[part] = core.hash_rows(np.ascontiguousarray(X[part], dtype=dtype))
    return found


def _merge_equal_rows(data: TrainingData) -> TrainingData:
    """Let one row stand for all that are equal, with the sum of their weights.

    Of equal rows some would be in the bag of nearly every tree, which would then know the answer
    for the others: the score would say how well a dictionary remembers.
    """
    hashes = _hashes(data.X)
    # Those of different groups may be on both sides.
    groups = np.zeros(len(hashes), dtype=np.int64) if data.groups is None else data.groups
    targets = data.target.reshape(len(hashes), -1)
    order = np.lexsort((*targets.T, hashes, groups))
    new = (np.diff(hashes[order]) != 0) | (np.diff(targets[order], axis=0) != 0).any(axis=1)
    new |= np.diff(groups[order]) != 0
    if new.all():
        return data
    begin = np.flatnonzero(np.concatenate([[True], new]))
    weights = np.ones(len(data.X)) if data.weights is None else data.weights
    # Equal rows are added in order of their weights, so that the order of the rows does not matter.
    order = np.lexsort((weights, *targets.T, hashes, groups))
    merged = data.of(order[begin])
    return replace(merged, weights=np.add.reduceat(weights[order], begin))


def _some_rows(data: TrainingData) -> np.ndarray:
    """Return up to half of the rows, by content and not by order, of each class alike."""
    rows = len(data.X)
    if rows <= FEW_ROWS:
        return np.arange(rows)
    one_output = data.target.ndim == 1
    classes = data.target if data.n_classes and one_output else np.zeros(rows, dtype=int)
    share = min(max(FEW_ROWS, rows // 2), MOST_ROWS) / rows
    order = np.argsort(_hashes(data.X))
    chosen = []
    for k in np.unique(classes):
        of_class = order[classes[order] == k]
        chosen.append(of_class[: max(1, round(share * len(of_class)))])
    return np.sort(np.concatenate(chosen))
