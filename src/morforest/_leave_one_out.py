"""Ridge regression whose penalty is chosen by leave-one-out errors, and probabilities from them.

With weights w, standardised atoms Z (n rows, p columns) and targets Y, the fit minimises

    sum_i w_i (y_i - b - z_i beta)^2 + alpha |beta|^2

for each column of Y. The prediction for a row by the fit without that row is known in closed form:
its residual is r_i / d_i, where r = (I - H) y is the residual of the whole fit, H the matrix that
turns targets into fitted values, and d the diagonal of I - H, all in coordinates in which row i is
multiplied by sqrt(w_i). One eigendecomposition, of a matrix of min(n - 1, p) rows, serves all
penalties and all columns of Y. Where rows are left out in groups, the residuals of a group are
D^-1 r, where D is the block of I - H of its rows.

Several ridge regressions, each on columns of its own, are *stacked*: the sum of their predictions,
each times a share, is fitted to the targets by leave-one-out predictions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

BLOCK_VALUES = 1 << 22  # of the atoms that are held in float64 at a time
TIE = 1e-10  # relative difference of losses that are equal but for rounding
WORTH = 0.01  # the least relative gain in squared error for which a block is worth its time
SLOPES = (2.0**-7, 2.0**20)  # the calibration's slope stays between


@dataclass(frozen=True)
class RidgeFit:
    """A fitted ridge regression."""

    alpha: float
    coef: np.ndarray  # (p, targets)
    intercept: np.ndarray  # (targets,)
    # (n, targets): for each row, the prediction of the fit without that row, or without its group
    left_out: np.ndarray


def fit_ridge(
    Z: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray,
    alphas: np.ndarray,
    groups: np.ndarray | None = None,
) -> RidgeFit:
    """Fit the penalty of the lowest weighted mean of squared leave-one-out errors.

    With `groups`, of which there are two or more, rows are left out with all others of their group.

    Weights are positive. Of penalties with equal errors the first wins. A single row leaves
    nothing to predict it from: its leave-one-out prediction is NaN, and the largest penalty wins.
    """
    mean = weights @ Y / weights.sum()
    if len(Z) == 1:
        nothing = np.zeros((Z.shape[1], Y.shape[1]))
        return RidgeFit(float(alphas.max()), nothing, mean, np.full(Y.shape, math.nan))
    solve = _by_rows if len(Z) - 1 <= Z.shape[1] else _by_columns
    together = None
    if groups is not None:
        together = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    best, coef, errors = solve(Z, Y - mean, weights, alphas, together)
    intercept = mean - _column_means(Z, weights) @ coef
    return RidgeFit(float(alphas[best]), coef, intercept, Y - errors)


@dataclass(frozen=True)
class Stack:
    """Ridge regressions on blocks of columns, added up."""

    fits: list[RidgeFit]
    errors: list[float]  # squared leave-one-out errors of each, to those of the mean
    shares: np.ndarray  # what the predictions of each, less the mean, are multiplied by
    mean: np.ndarray  # (targets,)

    @property
    def left_out(self) -> np.ndarray:
        """The leave-one-out predictions (n, targets)."""
        parts = zip(self.shares, self.fits, strict=True)
        found: np.ndarray = self.mean + sum(s * (fit.left_out - self.mean) for s, fit in parts)
        return found

    @property
    def intercept(self) -> np.ndarray:
        """The intercept (targets,)."""
        parts = zip(self.shares, self.fits, strict=True)
        found: np.ndarray = self.mean + sum(s * (fit.intercept - self.mean) for s, fit in parts)
        return found


def stack_ridges(
    blocks: Iterable[np.ndarray],
    Y: np.ndarray,
    weights: np.ndarray,
    alphas: np.ndarray,
    groups: np.ndarray | None = None,
) -> Stack:
    """Fit a ridge regression to each block of columns, and the shares of their predictions.

    The shares are not negative, and those of the lowest squared error of the sum of leave-one-out
    predictions. Where all would be zero, the block of the lowest error alone has a share, of one.
    """
    mean = weights @ Y / weights.sum()
    fits = [fit_ridge(Z, Y, weights, alphas, groups) for Z in blocks]
    root = np.sqrt(weights)[:, None]
    target = ((Y - mean) * root).ravel()
    shares = np.zeros(len(fits))
    if np.isnan(fits[0].left_out).any():  # of a single row nothing is known
        shares[0] = 1.0
        return Stack(fits, [math.nan] * len(fits), shares, mean)
    columns = np.column_stack([((fit.left_out - mean) * root).ravel() for fit in fits])
    total = float(target @ target)
    losses = ((columns - target[:, None]) ** 2).sum(axis=0)
    if total > 0:
        shares = _shares(columns, target)
    if not shares.any():
        shares[_first_lowest(losses)] = 1.0
    errors = [float(loss) / total if total > 0 else math.nan for loss in losses]
    return Stack(fits, errors, shares, mean)


def _shares(columns: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return shares that are not negative, of as few columns as the target needs.

    A column is dropped, one after another, if the squared error of the others is hardly larger.
    """
    from scipy.optimize import nnls

    shares: np.ndarray = nnls(columns, target)[0]
    while (used := np.flatnonzero(shares)).size > 1:
        least = float(((columns @ shares - target) ** 2).sum())
        without = []
        for dropped in used:
            fewer = np.zeros(len(shares))
            others = used[used != dropped]
            fewer[others], _ = nnls(columns[:, others], target)
            without.append((float(((columns @ fewer - target) ** 2).sum()), fewer))
        loss, fewer = min(without, key=lambda found: found[0])
        if loss > least * (1 + WORTH):
            break
        shares = fewer
    return shares


Groups = list[np.ndarray] | None  # the rows of each group, which are left out together
Solution = tuple[int, np.ndarray, np.ndarray]  # number of the penalty, coef, left-out residuals


def _by_rows(
    Z: np.ndarray, Y: np.ndarray, weights: np.ndarray, alphas: np.ndarray, groups: Groups
) -> Solution:
    """Solve by the Gram matrix of the rows, for no more rows than columns.

    The intercept is removed by a reflection that maps sqrt(w) to one axis, whose row and column are
    left out. Then I - H = Q diag(alpha / (lambda + alpha)) Q', whose diagonal is a sum of positive
    terms, so that nothing cancels.
    """
    from scipy.linalg import eigh
    from scipy.linalg.blas import dsyrk

    n, root = len(Z), np.sqrt(weights)
    pivot = int(np.argmax(weights))
    axis = root / np.linalg.norm(root)
    axis[pivot] += 1.0
    axis *= math.sqrt(2) / np.linalg.norm(axis)  # the reflection is I - axis axis'
    others = np.arange(n) != pivot
    gram = np.zeros((n - 1, n - 1), order="F")
    for columns in _slices(Z.shape[1], n):
        block = Z[:, columns] * root[:, None]
        block -= np.outer(axis, axis @ block)
        gram = dsyrk(1.0, block[others].T, beta=1.0, c=gram, trans=1, lower=1, overwrite_c=1)
    values, vectors = eigh(gram, overwrite_a=True, driver="evd", check_finite=False)
    del gram
    values = np.maximum(values, 0)
    Q = np.zeros((n, n - 1))
    Q[others] = vectors
    del vectors
    Q -= np.outer(axis, axis @ Q)
    shrinkage = 1.0 / (values[:, None] + alphas)
    diagonal = np.empty((n, len(alphas)))
    for rows in _slices(n, n):
        diagonal[rows] = Q[rows] ** 2 @ shrinkage
    turned = Q.T @ (Y * root[:, None])
    losses = np.empty(len(alphas))
    for i in range(len(alphas)):  # residuals over alpha, as is the diagonal
        residual = Q @ (turned * shrinkage[:, i, None])
        if groups is None:
            losses[i] = ((residual / diagonal[:, i, None]) ** 2).sum()
        else:
            losses[i] = (_of_groups(Q, shrinkage[:, i], residual, groups) ** 2).sum()
    best = _first_lowest(losses)
    residual = Q @ (turned * shrinkage[:, best, None])
    if groups is None:
        errors = residual / (diagonal[:, best] * root)[:, None]
    else:
        errors = _of_groups(Q, shrinkage[:, best], residual, groups) / root[:, None]
    dual = residual * root[:, None]
    coef = np.empty((Z.shape[1], Y.shape[1]))
    for columns in _slices(Z.shape[1], n):
        coef[columns] = Z[:, columns].T.astype(np.float64) @ dual
    return best, coef, errors


def _of_groups(
    Q: np.ndarray, shrinkage: np.ndarray, residual: np.ndarray, groups: list[np.ndarray]
) -> np.ndarray:
    """Return the residuals of each group by the fit without it, where I - H = Q shrinkage Q'."""
    found = np.empty_like(residual)
    for rows in groups:
        part = Q[rows]
        found[rows] = np.linalg.solve((part * shrinkage) @ part.T, residual[rows])
    return found


def _by_columns(
    Z: np.ndarray, Y: np.ndarray, weights: np.ndarray, alphas: np.ndarray, groups: Groups
) -> Solution:
    """Solve by the covariance of the columns, for more rows than columns.

    Rows come in blocks, twice: what is kept of each row is its residual and diagonal alone.
    """
    from scipy.linalg import eigh
    from scipy.linalg.blas import dsyrk

    (n, p), root, means = Z.shape, np.sqrt(weights), _column_means(Z, weights)
    scaled = Y * root[:, None]
    covariance, products = np.zeros((p, p), order="F"), np.zeros((p, Y.shape[1]))
    for rows in _slices(n, p):
        block = (Z[rows] - means) * root[rows, None]
        covariance = dsyrk(1.0, block.T, beta=1.0, c=covariance, lower=1, overwrite_c=1)
        products += block.T @ scaled[rows]
    values, vectors = eigh(covariance, overwrite_a=True, driver="evd", check_finite=False)
    del covariance
    values = np.maximum(values, 0)
    shrinkage = 1.0 / (values[:, None] + alphas)
    turned = vectors.T @ products
    # Without the intercept's share; the floor is what remains if all of a row lies along the
    # direction that is shrunk least.
    total = weights.sum()
    rest = np.maximum(total - weights, weights.min()) / total
    if groups is not None:
        best, errors = _groups_by_columns(
            ((Z[rows] - means) * root[rows, None] @ vectors for rows in groups),
            scaled,
            root,
            (values, alphas),
            turned,
            groups,
        )
        return best, vectors @ (turned * shrinkage[:, best, None]), errors
    diagonal = np.empty((n, len(alphas)))
    losses = np.zeros(len(alphas))
    for rows in _slices(n, p):
        block = (Z[rows] - means) * root[rows, None] @ vectors
        floor = np.outer(rest[rows], alphas / (values[-1] + alphas))
        diagonal[rows] = np.maximum(rest[rows, None] - block**2 @ shrinkage, floor)
        for i in range(len(alphas)):
            residual = scaled[rows] - block @ (turned * shrinkage[:, i, None])
            losses[i] += ((residual / diagonal[rows, i, None]) ** 2).sum()
    best = _first_lowest(losses)
    coef = vectors @ (turned * shrinkage[:, best, None])
    errors = np.empty_like(Y)
    for rows in _slices(n, p):
        errors[rows] = Y[rows] - (Z[rows] - means) @ coef
    errors /= diagonal[:, best, None]
    return best, coef, errors


def _groups_by_columns(
    blocks: Iterator[np.ndarray],
    scaled: np.ndarray,
    root: np.ndarray,
    spectrum: tuple[np.ndarray, np.ndarray],
    turned: np.ndarray,
    groups: list[np.ndarray],
) -> tuple[int, np.ndarray]:
    """Return the best penalty, and the residuals of each group by the fit without it.

    Eigenvalues of a block of I - H are at least those of a group along the direction that is shrunk
    least; rounding must not make them smaller.
    """
    values, alphas = spectrum
    total = float((root**2).sum())
    losses = np.zeros(len(alphas))
    found = np.empty((len(alphas), *scaled.shape))
    for rows, block in zip(groups, blocks, strict=True):
        share = root[rows] ** 2
        rest = max(total - share.sum(), share.min()) / total
        for i, alpha in enumerate(alphas):
            shrinkage = 1.0 / (values + alpha)
            system = np.eye(len(rows)) - np.outer(root[rows], root[rows]) / total
            system -= (block * shrinkage) @ block.T
            size, turn = np.linalg.eigh(system)
            size = np.maximum(size, rest * alpha / (values[-1] + alpha))
            residual = scaled[rows] - block @ (turned * shrinkage[:, None])
            found[i, rows] = turn @ ((turn.T @ residual) / size[:, None])
            losses[i] += (found[i, rows] ** 2).sum()
    best = _first_lowest(losses)
    return best, found[best] / root[:, None]


def _first_lowest(losses: np.ndarray) -> int:
    """Return the first of the lowest losses; what differs by rounding alone is equal."""
    return int(np.argmax(losses <= losses.min() * (1 + TIE)))


def _column_means(Z: np.ndarray, weights: np.ndarray) -> np.ndarray:
    means = np.empty(Z.shape[1])
    for columns in _slices(Z.shape[1], len(Z)):
        means[columns] = weights @ Z[:, columns].astype(np.float64)
    means /= weights.sum()
    return means


def _slices(count: int, size: int) -> Iterator[slice]:
    """Cut `count` rows or columns of so many values each into blocks of bounded memory."""
    step = max(1, BLOCK_VALUES // size)
    return (slice(first, min(first + step, count)) for first in range(0, count, step))


def log_probabilities(scores: np.ndarray, slope: float) -> np.ndarray:
    """Turn scores into the logarithms of probabilities, the softmax of slope times scores.

    A single column scores the second of two classes, and the first scores zero.
    """
    if scores.shape[1] == 1:
        scores = scores * np.array([0.0, 1.0])
    found: np.ndarray = slope * (scores - scores.max(axis=1, keepdims=True))
    found -= np.log(np.exp(found).sum(axis=1, keepdims=True))
    return found


def probabilities(scores: np.ndarray, slope: float) -> np.ndarray:
    """Turn scores into probabilities."""
    found: np.ndarray = np.exp(log_probabilities(scores, slope))
    return found


def fit_slope(scores: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> float:
    """Find the slope of the lowest log loss of the probabilities of left-out rows.

    As in Platt's calibration the targets are not zeros and ones: with a total weight of m, the
    class of a row has probability (m + 1) / (m + 2), and the others share the rest. So the slope
    is finite for perfectly separated classes. The loss is convex in the slope, and its derivative
    has one root, if any.
    """
    from scipy.optimize import brentq

    if scores.shape[1] == 1:
        scores = scores * np.array([0.0, 1.0])
    classes = scores.shape[1]
    total = float(weights.sum())
    own = (total + 1) / (total + 2)
    of_class = scores[np.arange(len(scores)), codes]
    others = (scores.sum(axis=1) - of_class) / (classes - 1)
    target = own * of_class + (1 - own) * others
    weights = weights / total

    def derivative(exponent: float) -> float:
        expected = (probabilities(scores, 2.0**exponent) * scores).sum(axis=1)
        return float(weights @ (expected - target))

    low, high = (math.log2(slope) for slope in SLOPES)
    if derivative(low) >= 0:  # the scores of left-out rows say nothing, or the opposite
        return SLOPES[0]
    if derivative(high) <= 0:
        return SLOPES[1]
    return float(2.0 ** brentq(derivative, low, high, xtol=1e-10))
