"""The usual course of samples, from which missing values are filled in.

See "Missing values" in docs/design.md for the rules and their reasons.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from morforest._native import core

ROUNDS = 4  # of filling in by the course so far, and finding it anew
BITS = 16  # of the integers whose products are summed
WITHIN = 0.1  # of the missing values; where fewer lie between observed ones, samples end
STRAIGHT = 1 - 2.0**-20  # neighbours that are more alike lie on straight lines
LARGEST = 2.0**1000  # of values whose deviations are numbers
BLOCK_CELLS = 1 << 20  # looked at in pieces of about so many values


@dataclass(frozen=True)
class Course:
    """What is usual: the mean of each feature, and how alike the deviations of neighbours are.

    Both are empty if this is unknown. Then the lines between neighbours are straight.
    """

    mean: tuple[float, ...] = ()
    correlation: tuple[float, ...] = ()  # along each axis, from 0 to 1

    @classmethod
    def load(cls, state: Any, shape: tuple[int, ...]) -> Course:
        """Make a course from what a pickle holds, refusing what does not fit the samples."""
        if not isinstance(state, tuple) or [type(part) for part in state] != [tuple, tuple]:
            raise ValueError("damaged atoms: no usual course")
        mean, correlation = state
        wanted = (math.prod(shape), len(shape)) if mean else (0, 0)
        if (
            (len(mean), len(correlation)) != wanted
            or not all(type(x) is float and math.isfinite(x) for x in mean)
            or not all(type(x) is float and 0 <= x <= 1 for x in correlation)
        ):
            raise ValueError("damaged atoms: a usual course that no samples have")
        return cls(mean, correlation)


UNKNOWN = Course()


def usual_course(
    X: np.ndarray, weights: np.ndarray | None, shape: tuple[int, ...], ordered: Sequence[int]
) -> Course:
    """Find the usual course of training samples (n, features) along the ordered axes.

    The first means are those of samples whose gaps are filled along straight lines; then gaps are
    filled by the course so far. Sums are exact, so that the order of the rows does not matter.
    """
    counts = _counts(weights, len(X))
    largest = max(_largest(x) for x, _ in _pieces(X, counts))
    ends = len(ordered) == 1 and _ends(X, counts, shape, ordered[0])
    if not ordered or ends or not largest < LARGEST:
        return UNKNOWN
    found = UNKNOWN
    for _ in range(1 + ROUNDS):
        mean = _means(X, counts, largest, found, shape, ordered)
        found = Course(tuple(mean.tolist()), _correlations(X, counts, mean, shape, ordered))
    return found


def _ends(X: np.ndarray, counts: np.ndarray, shape: tuple[int, ...], axis: int) -> bool:
    """Say whether samples are of unequal length: most of what is missing lies beyond their ends."""
    within = missing = 0
    for x, count in _pieces(X, counts):
        unknown = np.moveaxis(np.isnan(x).reshape(-1, *shape), axis + 1, -1)
        unknown = unknown.reshape(len(x), -1, shape[axis])
        seen = ~unknown.all(axis=1)
        begun = np.logical_or.accumulate(seen, axis=1)
        goes_on = np.logical_or.accumulate(seen[:, ::-1], axis=1)[:, ::-1]
        lacks = np.where(seen.any(axis=1)[:, np.newaxis], unknown.sum(axis=1), 0)
        within += int(count @ np.where(begun & goes_on, lacks, 0).sum(axis=1))
        missing += int(count @ lacks.sum(axis=1))
    return within < WITHIN * missing


def fill_gaps(
    X: np.ndarray,
    shape: tuple[int, ...],
    ordered: Sequence[int],
    course: Course = UNKNOWN,
    rest: float = 0.0,
) -> np.ndarray:
    """Return samples, float64, whose missing values are filled in by the course."""
    filled: np.ndarray = core.fill_gaps(
        np.ascontiguousarray(X, dtype=np.float64),
        shape,
        ordered,
        course.mean,
        course.correlation,
        rest,
    )
    return filled


def _counts(weights: np.ndarray | None, rows: int) -> np.ndarray:
    """Return whole numbers in proportion to the weights; whole weights stay as they are."""
    if weights is None:
        return np.ones(rows, dtype=np.int64)
    if (weights == np.rint(weights)).all() and weights.sum() < 2.0**31:
        return weights.astype(np.int64)
    scaled: np.ndarray = np.rint(weights * (2.0**20 / weights.max())).astype(np.int64)
    return scaled


def _pieces(X: np.ndarray, counts: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    rows = max(1, BLOCK_CELLS // X.shape[1])
    for first in range(0, len(X), rows):
        some = slice(first, first + rows)
        yield X[some].astype(np.float64), counts[some]


def _largest(x: np.ndarray) -> float:
    """Return the largest absolute value of those that are there."""
    return float(np.fmax.reduce(np.abs(x), axis=None, initial=0.0))


def _means(
    X: np.ndarray,
    counts: np.ndarray,
    largest: float,
    course: Course,
    shape: tuple[int, ...],
    ordered: Sequence[int],
) -> np.ndarray:
    """Return the mean of each feature of the filled samples; 0 where nothing is known."""
    # What is filled in is at most four times as large as what was observed.
    shift = 60 - int(counts.sum()).bit_length() - math.frexp(largest)[1]
    total, weight = np.zeros((2, X.shape[1]), dtype=np.int64)
    for x, count in _pieces(X, counts):
        filled = fill_gaps(x, shape, ordered, course, rest=math.nan)
        known = ~np.isnan(filled)
        fixed = np.rint(np.ldexp(np.where(known, filled, 0.0), shift)).astype(np.int64)
        total += count @ fixed
        weight += count @ known.astype(np.int64)
    mean: np.ndarray = np.ldexp(total / np.maximum(weight, 1), -shift)
    return mean


def _correlations(
    X: np.ndarray,
    counts: np.ndarray,
    mean: np.ndarray,
    shape: tuple[int, ...],
    ordered: Sequence[int],
) -> tuple[float, ...]:
    """Return how alike the deviations of observed neighbours are along each axis."""
    largest = max(_largest(x - mean) for x, _ in _pieces(X, counts))
    shift = BITS - math.frexp(largest)[1]
    products, squares = [0] * len(shape), [0] * len(shape)
    for x, count in _pieces(X, counts):
        deviation = (x - mean).reshape(-1, *shape)
        known = ~np.isnan(deviation)
        fixed = np.rint(np.ldexp(np.where(known, deviation, 0.0), shift)).astype(np.int64)
        for axis in ordered:
            (a, b), (here, there) = (_neighbours(part, axis + 1) for part in (fixed, known))
            both = here & there
            some = tuple(range(1, deviation.ndim))
            product = np.where(both, a * b, 0).sum(axis=some)
            square = np.where(both, a * a + b * b, 0).sum(axis=some)
            # Python's integers have no bounds.
            products[axis] += sum(map(int.__mul__, count.tolist(), product.tolist()))
            squares[axis] += sum(map(int.__mul__, count.tolist(), square.tolist()))
    pairs = zip(products, squares, strict=True)
    found = [max(2 * p / s, 0.0) if s else 1.0 for p, s in pairs]
    return tuple(1.0 if r > STRAIGHT else r for r in found)


def _neighbours(values: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all values but the last along an axis, and all but the first."""
    along = np.moveaxis(values, axis, -1)
    return along[..., :-1], along[..., 1:]
