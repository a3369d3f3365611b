"""Intervals, sets and deviations by their definitions, one tree and one training row at a time."""

import itertools
import math

import numpy as np
from oracle_attribution import leaf_values


def tree_predictions(model, X):
    """What each tree predicts for each sample, (trees, n, outputs); NaN where it does not vote."""
    forest = model._forest
    leaf, found = model.apply(X), np.full((forest.n_trees, len(X), forest.outputs), np.nan)
    for tree in range(forest.n_trees):
        for row in range(len(X)):
            said = leaf_values(forest, int(forest.tree_begin[tree]) + int(leaf[row, tree]))
            if said is not None:
                found[tree, row] = said
    return found


def tree_leaves(model):
    """What the leaves of each tree say, as many as say something: arrays (leaves, outputs)."""
    forest, found = model._forest, []
    for begin, end in itertools.pairwise(forest.tree_begin.astype(int)):
        said = [leaf_values(forest, n) for n in range(begin, end) if forest.next[n] < 0]
        found.append(np.array([values for values in said if values is not None]))
    return found


def leave_out(predictions, drawn, row, leaves=None):
    """The mean of the trees that did not use a training row; None if there are none.

    If none of them votes, it is the mean of all their `leaves`, of the same output.
    """
    trees = [tree for tree, used in enumerate(drawn[:, row]) if not used]
    if not trees:
        return None
    some = [predictions[tree] for tree in trees if not np.isnan(predictions[tree]).any()]
    return np.mean(some or np.concatenate([leaves[tree] for tree in trees]), axis=0)


def conformal_quantile(values, level, weights=None):
    """The smallest value that values of the weight level * (W + 1) do not exceed."""
    weights = [1.0] * len(values) if weights is None else weights
    needed, total = level * (sum(weights) + 1) - 1e-9, 0.0
    for value, weight in sorted(zip(values, weights, strict=True)):
        total += weight
        if total >= needed:
            return value
    return math.inf


def interval(train, targets, new, drawn, level, weights=None, leaves=None):
    """The jackknife+-after-bootstrap of one sample, of predictions (trees, rows) and (trees,)."""
    low, high, kept = [], [], []
    for row, target in enumerate(targets):
        of_row = leave_out(train[:, row], drawn, row, leaves)
        if of_row is None:
            continue
        residual = abs(target - of_row)
        prediction = leave_out(new, drawn, row, leaves)
        low.append(-(prediction - residual))
        high.append(prediction + residual)
        kept.append(1.0 if weights is None else weights[row])
    return -conformal_quantile(low, level, kept), conformal_quantile(high, level, kept)


def prediction_set(train, targets, new, drawn, level, leaves=None):
    """The conformal set of one sample, of posteriors (trees, rows, classes), (trees, classes)."""
    sets = []
    for label in range(new.shape[1]):
        scores, own = [], []
        for row, target in enumerate(targets):
            of_row = leave_out(train[:, row], drawn, row, leaves)
            if of_row is not None:
                own.append(1 - of_row[target])
                scores.append(1 - leave_out(new, drawn, row, leaves)[label])
        beaten = sum(mine < score - 1e-12 for mine, score in zip(own, scores, strict=True))
        sets.append(beaten < level * (len(own) + 1) - 1e-9)
    return sets


def standard_deviation(new, drawn):
    """The jackknife after bootstrap of one sample, of predictions (trees,)."""
    rows, votes = drawn.shape[1], ~np.isnan(new)
    new, drawn = new[votes], drawn[votes]
    trees = len(new)
    if trees < 2:
        return math.nan
    mean = np.mean(new)
    between = np.var(new, ddof=1)
    total, terms = 0.0, 0
    for row in range(rows):
        prediction = leave_out(new, drawn, row)
        if prediction is not None:
            votes = int((drawn[:, row] == 0).sum())
            total += (prediction - mean) ** 2 - between * (1 / votes - 1 / trees)
            terms += 1
    variance = (rows - 1) / rows * (rows / terms) * total
    return math.sqrt(max(variance, 0.0) + between / trees)


def infinitesimal_deviation(new, drawn, unused=1.0):
    """The infinitesimal jackknife of one sample, of predictions (trees,).

    `unused` is one less the share of the samples that trees draw without replacement.
    """
    chance = drawn.var(axis=0).sum()  # of the counts, over all trees
    votes = ~np.isnan(new)
    new, drawn = new[votes], drawn[votes].astype(float)
    trees, rows = drawn.shape
    if trees < 2:
        return math.nan
    total = 0.0
    for row in range(rows):
        total += np.mean((drawn[:, row] - drawn[:, row].mean()) * (new - new.mean())) ** 2
    total -= chance * np.var(new) / trees
    if unused != 1.0:
        total *= (rows - 1) / rows / unused**2
    return math.sqrt(max(total, 0.0) + np.var(new, ddof=1) / trees)
