"""Scores of one fold, and what may be concluded from scores of several.

Scores: accuracy and `kappa` of predicted labels, `auc` and `roc` of predicted probabilities.
Comparisons take scores in pairs, one pair per data set (or fold): `signed_rank` with `holm` for the
p-values, `effect` for Cohen's d, `ranks`, `friedman` and `cliques` for the critical difference
diagram. All tests are two-sided.
"""

import itertools
import math
import warnings
from dataclasses import dataclass

import numpy as np
from scipy import stats
from sklearn.metrics import cohen_kappa_score, roc_auc_score, roc_curve

LEVEL = 0.05
GRID = np.linspace(0, 1, 51)  # false positive rates at which ROC curves are kept
BOOTSTRAPS = 9999
DIGITS = 9  # beyond which scores are equal: .3 - .2 and .2 - .1 are a tie


# --- scores of one fold ---------------------------------------------------------------------------


def kappa(labels, predicted):
    """Return Cohen's kappa, the agreement beyond chance; 1 if there is one class only."""
    if len(set(labels) | set(predicted)) == 1:
        return 1.0  # scikit-learn has 0 / 0 here
    return float(cohen_kappa_score(labels, predicted))


def auc(labels, probabilities):
    """Return the area under the ROC curve; of several classes the mean of each against the rest.

    Labels are 0, 1, ..., the columns of `probabilities`. A class that no label, or every label,
    belongs to has no curve and is left out of the mean.
    """
    labels, probabilities = np.asarray(labels), np.asarray(probabilities)
    classes = [1] if probabilities.shape[1] == 2 else range(probabilities.shape[1])
    areas = [
        roc_auc_score(labels == c, probabilities[:, c])
        for c in classes
        if 0 < np.count_nonzero(labels == c) < len(labels)
    ]
    return float(np.mean(areas)) if areas else math.nan


def roc(labels, scores):
    """Return the true positive rates at the false positive rates of GRID.

    Between its corners the curve is linear, as the area under it assumes; where it rises straight
    up, the upper end counts.
    """
    false_rates, true_rates, _ = roc_curve(labels, scores, drop_intermediate=False)
    left = np.searchsorted(false_rates, GRID, side="right") - 1  # the upper end of a rise
    right = np.minimum(left + 1, len(false_rates) - 1)
    width = np.maximum(false_rates[right] - false_rates[left], np.finfo(float).tiny)
    share = np.minimum((GRID - false_rates[left]) / width, 1)
    return true_rates[left] + share * (true_rates[right] - true_rates[left])


def by_group(labels, probabilities, groups):
    """Return one label and the mean probabilities of each group of dependent samples."""
    names, where = np.unique(groups, return_inverse=True)
    first = np.array([np.flatnonzero(where == i)[0] for i in range(len(names))])
    if not np.array_equal(np.asarray(labels)[first][where], labels):
        raise ValueError("labels differ within a group; a group must have one label")
    sums = np.zeros((len(names), np.shape(probabilities)[1]))
    np.add.at(sums, where, probabilities)
    return np.asarray(labels)[first], sums / np.bincount(where)[:, None]


# --- pairs of scores ------------------------------------------------------------------------------


def signed_rank(a, b):
    """Return the two-sided p-value of Wilcoxon's signed-rank test, exact also with ties.

    Zeros are ranked with the rest and then left out (Pratt). Given the ranks, every pattern of
    signs is equally likely under the hypothesis, so the distribution of the statistic is counted
    out, where tables and normal approximations need distinct ranks or many pairs.
    """
    differences = differences_of(a, b)
    doubled = np.rint(2 * stats.rankdata(np.abs(differences))).astype(
        int
    )  # middle ranks are halves
    doubled, positive = doubled[differences != 0], (differences > 0)[differences != 0]
    counts = [1]  # of the sign patterns, by the doubled rank sum; whole numbers, so nothing rounds
    for rank in doubled:
        low, high = counts + [0] * rank, [0] * rank + counts
        counts = [i + j for i, j in zip(low, high, strict=True)]
    found = int(doubled[positive].sum())
    tail = min(sum(counts[: found + 1]), sum(counts[found:]))
    return min(1.0, 2 * tail / 2 ** len(doubled))


def holm(p_values):
    """Return Holm's adjusted p-values, which control the family-wise error rate."""
    p_values = np.asarray(p_values, dtype=float)
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(factors * p_values[order]))
    return adjusted


def cohens_d(a, b, axis=-1):
    """Return the difference of the means in units of the pooled standard deviation.

    It is NaN where neither varies.
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    pooled = np.sqrt((a.var(axis=axis, ddof=1) + b.var(axis=axis, ddof=1)) / 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = (a.mean(axis=axis) - b.mean(axis=axis)) / pooled
    return np.where(pooled > 0, ratio, math.nan)[()]


@dataclass(frozen=True)
class Effect:
    d: float
    low: float
    high: float


def effect(a, b, seed=0):
    """Return Cohen's d with a 95 % BCa bootstrap interval of pairs.

    The ends are NaN where the scores are too few, or vary too little, for an interval.
    """
    differences_of(a, b)
    d = float(cohens_d(a, b))
    if math.isnan(d) or len(a) < 3:  # of two pairs, leaving one out leaves no deviation to measure
        return Effect(d, math.nan, math.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)  # the ends say it
        interval = stats.bootstrap(
            (a, b),
            cohens_d,
            paired=True,
            n_resamples=BOOTSTRAPS,
            method="BCa",
            random_state=np.random.RandomState(seed),
        ).confidence_interval
    return Effect(d, float(interval.low), float(interval.high))


def differences_of(a, b):
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if a.shape != b.shape or a.ndim != 1 or not len(a):
        raise ValueError(f"scores of shapes {a.shape} and {b.shape}; paired scores need one length")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("scores hold a value that is not finite; leave out its pair")
    return np.round(a - b, DIGITS)


# --- several classifiers on several data sets -----------------------------------------------------


def ranks(scores):
    """Return the mean rank of each column over rows (data sets); 1 is best, ties share a rank."""
    return np.mean(stats.rankdata(-np.round(scores, DIGITS), axis=1), axis=0)


def friedman(scores):
    """Return the p-value of Friedman's test that all columns are alike."""
    scores = np.round(scores, DIGITS)
    if scores.shape[0] < 2 or scores.shape[1] < 3 or not np.ptp(scores, axis=1).any():
        return 1.0
    return float(stats.friedmanchisquare(*scores.T).pvalue)


def critical_difference(classifiers, sets):
    """Return Nemenyi's difference: mean ranks at least this far apart differ at LEVEL."""
    quantile = stats.studentized_range.ppf(1 - LEVEL, classifiers, np.inf) / math.sqrt(2)
    return float(quantile * math.sqrt(classifiers * (classifiers + 1) / (6 * sets)))


def pairwise(scores):
    """Return the matrix of Holm-adjusted signed-rank p-values between all columns."""
    scores = np.asarray(scores)
    pairs = list(itertools.combinations(range(scores.shape[1]), 2))
    adjusted = holm([signed_rank(scores[:, i], scores[:, j]) for i, j in pairs])
    matrix = np.ones((scores.shape[1],) * 2)
    for (i, j), p in zip(pairs, adjusted, strict=True):
        matrix[i, j] = matrix[j, i] = p
    return matrix


def cliques(order, p_values):
    """Return the longest runs of `order` (columns, best first) in which no two columns differ.

    Runs of one, and runs inside others, are left out.
    """
    found = []
    end = 0  # of the latest run: a later one that does not reach beyond lies inside it
    for start in range(len(order)):
        stop = start + 1
        while stop < len(order) and all(
            p_values[order[stop], i] > LEVEL for i in order[start:stop]
        ):
            stop += 1
        if stop - start > 1 and stop > end:
            found.append(tuple(order[start:stop]))
            end = stop
    return found
