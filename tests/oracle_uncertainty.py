"""Intervals, sets and deviations by their definitions, one tree and one training row at a time."""

import math

import numpy as np


def tree_predictions(model, X):
    """What each tree predicts for each sample, (trees, n, outputs): each tree as a forest."""
    forest = model._forest
    return np.stack([forest.tree(number).predict(X) for number in range(forest.n_trees)])


def leave_out(predictions, drawn, row):
    """The mean of the trees that did not use a training row; None if there are none."""
    some = [p for p, used in zip(predictions, drawn[:, row], strict=True) if not used]
    return np.mean(some, axis=0) if some else None


def conformal_quantile(values, level, weights=None):
    """The smallest value that values of the weight level * (W + 1) do not exceed."""
    weights = [1.0] * len(values) if weights is None else weights
    needed, total = level * (sum(weights) + 1) - 1e-9, 0.0
    for value, weight in sorted(zip(values, weights, strict=True)):
        total += weight
        if total >= needed:
            return value
    return math.inf


def interval(train, targets, new, drawn, level, weights=None):
    """The jackknife+-after-bootstrap of one sample, of predictions (trees, rows) and (trees,)."""
    low, high, kept = [], [], []
    for row, target in enumerate(targets):
        of_row = leave_out(train[:, row], drawn, row)
        if of_row is None:
            continue
        residual = abs(target - of_row)
        prediction = leave_out(new, drawn, row)
        low.append(-(prediction - residual))
        high.append(prediction + residual)
        kept.append(1.0 if weights is None else weights[row])
    return -conformal_quantile(low, level, kept), conformal_quantile(high, level, kept)


def prediction_set(train, targets, new, drawn, level):
    """The conformal set of one sample, of posteriors (trees, rows, classes), (trees, classes)."""
    sets = []
    for label in range(new.shape[1]):
        scores, own = [], []
        for row, target in enumerate(targets):
            of_row = leave_out(train[:, row, target], drawn, row)
            if of_row is not None:
                own.append(1 - of_row)
                scores.append(1 - leave_out(new[:, label], drawn, row))
        beaten = sum(mine < score - 1e-12 for mine, score in zip(own, scores, strict=True))
        sets.append(beaten < level * (len(own) + 1) - 1e-9)
    return sets


def standard_deviation(new, drawn):
    """The jackknife after bootstrap of one sample, of predictions (trees,)."""
    trees, rows = drawn.shape
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
