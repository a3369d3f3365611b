"""What the ridge estimators should compute, in slow NumPy: one refit per row that is left out."""

from __future__ import annotations

import numpy as np


def ridge(Z, y, weights, alpha):
    """Coefficients and intercept: least squares with rows for the penalty below the data."""
    p = Z.shape[1]
    root = np.sqrt(weights)
    rows = np.column_stack([Z, np.ones(len(Z))]) * root[:, None]
    penalty = np.sqrt(alpha) * np.eye(p, p + 1)
    targets = np.concatenate([y * root, np.zeros(p)])
    solution = np.linalg.lstsq(np.vstack([rows, penalty]), targets, rcond=None)[0]
    return solution[:p], solution[p]


def left_out(Z, y, weights, alpha, groups=None):
    """The prediction for each row by the fit to all others, or to those of other groups."""
    found = np.empty(len(Z))
    groups = np.arange(len(Z)) if groups is None else groups
    for i in range(len(Z)):
        others = groups != groups[i]
        coef, intercept = ridge(Z[others], y[others], weights[others], alpha)
        found[i] = Z[i] @ coef + intercept
    return found


def choose(Z, Y, weights, alphas, groups=None):
    """The penalty of the lowest weighted mean of squared leave-one-out errors, and the fit."""
    predictions = [
        np.column_stack([left_out(Z, y, weights, a, groups) for y in Y.T]) for a in alphas
    ]
    losses = [weights @ ((Y - p) ** 2).sum(axis=1) for p in predictions]
    best = next(i for i, loss in enumerate(losses) if loss <= min(losses) * (1 + 1e-9))
    fits = [ridge(Z, y, weights, alphas[best]) for y in Y.T]
    coef = np.column_stack([coef for coef, _ in fits])
    return alphas[best], coef, np.array([b for _, b in fits]), predictions[best]


def standardised(values, weights):
    """Weighted means of zero and deviations of one, clipped at eight."""
    mean = np.average(values, axis=0, weights=weights)
    deviation = np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weights))
    return np.clip((values - mean) / np.where(deviation > 0, deviation, np.inf), -8, 8)


def log_loss(slope, scores, codes, weights):
    """The weighted log loss of the softmax of slope times scores, with Platt's targets."""
    total = weights.sum()
    n, k = scores.shape
    targets = np.full((n, k), 1 / (total + 2) / (k - 1))
    targets[np.arange(n), codes] = (total + 1) / (total + 2)
    logits = slope * (scores - scores.max(axis=1, keepdims=True))
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return -(weights @ (targets * logs).sum(axis=1)) / total
