"""A second writing of "Missing values" of `docs/design.md`: fills, marks, sides and codes.

A value of a sample is observed (mark 0), a gap (1) or absent (2). Marks are arrays of the shape of
the cells, so that an atom meets the same features in both.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from oracle_atoms import (
    Dictionary,
    HaarAtoms,
    KernelAtoms,
    PairAtoms,
    PatchAtoms,
    Stream,
    Subset,
)
from oracle_nonlinear import PooledAtom, VarianceAtom, VarianceAtoms

if TYPE_CHECKING:
    from oracle import Rows

MISSING_SIDES = 12
GAP, ABSENT = 1, 2
NAN = math.nan
GAP_LEFT, GAP_RIGHT, ABSENT_LEFT, ABSENT_RIGHT = 1, 2, 3, 4

# --- fill and marks --------------------------------------------------------------------------


def reaches(part, axis: int) -> bool:
    """Whether atoms of a component may be longer than one along an axis, or move along it."""
    if isinstance(part, (PatchAtoms, HaarAtoms, PairAtoms, KernelAtoms)):
        window = None if part.pool is None else part.pool.windows[axis]
        if window not in (None, 1) and part.axes[axis].contiguous:  # 0: its length is drawn
            return True
    match part:
        case PatchAtoms() | VarianceAtoms():
            return part.axes[axis].contiguous and part.axes[axis].max_size > 1
        case HaarAtoms():  # lobes stand side by side
            return part.axes[axis].max_size > 1 or axis in part.lobed
        case PairAtoms():  # from the first box to the end of the second
            return part.axes[axis].max_size > 1 or part.reach[axis] > 0
        case KernelAtoms():
            return any(kernel.shape[axis] > 1 for kernel in part.kernels)
    return False


def ordered_axes(
    dictionary: Dictionary | Subset, shape: tuple[int, ...], channel_axis: int | None
) -> list[int]:
    """The axes of a sample along which values are filled in. Channels have no order."""
    if isinstance(dictionary, Subset):
        return ordered_axes(dictionary.dictionary, shape, channel_axis)
    return [
        axis
        for axis, length in enumerate(shape)
        if length > 1
        and axis != channel_axis
        and any(reaches(part, axis) for part in dictionary.components)
    ]


@dataclass
class Course:
    """The means of features, and by axis how alike the deviations of neighbours are."""

    mean: np.ndarray
    correlation: dict[int, float]


def fill_line(line: np.ndarray, known: np.ndarray, correlation: float = 1.0) -> None:
    """Fill in the unknown values of a line that has a known one, between its nearest neighbours."""
    powers = [1.0]
    for _ in line:
        powers.append(powers[-1] * correlation)
    places = np.flatnonzero(known).tolist()
    for t in np.flatnonzero(~known).tolist():
        before = [i for i in places if i < t]
        behind = [j for j in places if j > t]
        if not before or not behind:
            i = behind[0] if behind else before[-1]
            line[t] = line[i] * powers[abs(t - i)]
            continue
        i, j = before[-1], behind[0]
        a, b = line[i], line[j]
        if correlation == 1:
            line[t] = a + (b - a) * ((t - i) / (j - i))
        else:
            r, s, both = powers[t - i], powers[j - t], powers[j - i]
            line[t] = (a * (r - both * s) + b * (s - both * r)) / (1 - both * both)


def fill_sample(
    values: np.ndarray, ordered: list[int], course: Course | None = None, rest: float = 0.0
) -> np.ndarray:
    """Fill in a sample in place, and return its marks. What is still unknown becomes `rest`."""
    observed = ~np.isnan(values)
    given = values.copy()
    if course is not None:
        values -= course.mean
    marks = np.zeros(values.shape, dtype=np.uint8)
    known = observed.copy()
    for axis in reversed(ordered):
        lines = np.moveaxis(values, axis, -1)
        found = np.moveaxis(known.copy(), axis, -1)  # as it is at the start of the step
        for place in np.ndindex(lines.shape[:-1]):
            if found[place].any():
                correlation = 1.0 if course is None else course.correlation[axis]
                fill_line(lines[place], found[place], correlation)
        filled = ~known & ~np.isnan(values)
        marks[filled] = GAP
        known |= filled
    values[~known] = rest
    marks[~known] = ABSENT
    if course is not None:
        values[:] = np.where(observed, given, values + course.mean)
    elif len(ordered) == 1:  # nothing is observed beyond the ends
        rest = tuple(axis for axis in range(values.ndim) if axis != ordered[0])
        places = np.flatnonzero(observed.any(axis=rest))
        along = np.moveaxis(marks, ordered[0], 0)
        if len(places):
            along[: places[0]] = ABSENT
            along[places[-1] + 1 :] = ABSENT
    return marks


def fill(
    X: np.ndarray, ordered: list[int], course: Course | None = None, rest: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Samples (n, *shape) without NaN, in float64, and the marks of their values."""
    values = np.array(X, dtype=np.float64)
    return values, np.stack([fill_sample(sample, ordered, course, rest) for sample in values])


def usual_course(X: np.ndarray, weights: np.ndarray, ordered: list[int]) -> Course | None:
    """The course of training samples (n, *shape) some of whose values are missing."""
    if not ordered or not np.isnan(X).any():
        return None
    X = X.astype(np.float64)
    if (weights != np.rint(weights)).any() or weights.sum() >= 2**31:
        weights = np.rint(weights * (2**20 / weights.max()))
    counts = [int(w) for w in weights.tolist()]
    observed = np.abs(X[~np.isnan(X)]).tolist()
    largest = max(observed, default=0.0)
    if largest >= 2**1000 or (len(ordered) == 1 and end(X, counts, ordered[0])):
        return None
    course = None
    for _ in range(5):
        mean = means(fill(X, ordered, course, rest=NAN)[0], counts, largest)
        course = Course(mean, {axis: alike(X - mean, counts, axis) for axis in ordered})
    return course


def end(X: np.ndarray, counts: list[int], axis: int) -> bool:
    """Whether less than a tenth of what samples lack lies between their ends."""
    within = beyond = 0
    for w, sample in zip(counts, X, strict=True):
        places = np.moveaxis(np.isnan(sample), axis, 0).reshape(sample.shape[axis], -1)
        seen = np.flatnonzero(~places.all(axis=1)).tolist()
        for t, missing in enumerate(places.sum(axis=1).tolist() if seen else []):
            if seen[0] <= t <= seen[-1]:
                within += w * missing
            else:
                beyond += w * missing
    return within < 0.1 * (within + beyond)


def means(filled: np.ndarray, counts: list[int], largest: float) -> np.ndarray:
    """The mean of each feature over the samples where it is known."""
    shift = 60 - sum(counts).bit_length() - math.frexp(largest)[1]
    found = np.zeros(filled.shape[1:])
    for place in np.ndindex(found.shape):
        column = filled[(slice(None), *place)].tolist()
        known = [(w, v) for w, v in zip(counts, column, strict=True) if not math.isnan(v)]
        total = sum(w * round(math.ldexp(v, shift)) for w, v in known)
        weight = sum(w for w, _ in known)
        found[place] = math.ldexp(float(total) / max(weight, 1), -shift)
    return found


def alike(deviations: np.ndarray, counts: list[int], axis: int) -> float:
    """The correlation of neighbours along an axis that are both observed."""
    known = np.abs(deviations[~np.isnan(deviations)]).tolist()
    shift = 16 - math.frexp(max(known, default=0.0))[1]
    products = squares = 0
    for w, sample in zip(counts, deviations, strict=True):
        along = np.moveaxis(sample, axis, -1)
        pairs = zip(along[..., :-1].ravel().tolist(), along[..., 1:].ravel().tolist(), strict=True)
        for a, b in pairs:
            if not math.isnan(a) and not math.isnan(b):
                p, q = (round(math.ldexp(x, shift)) for x in (a, b))
                products += w * p * q
                squares += w * (p * p + q * q)
    found = max(2 * products / squares, 0.0) if squares else 1.0
    return 1.0 if found > 1 - 2**-20 else found


def marks_of_view(marks: np.ndarray, kind: str, axis=0, other_axis=0, *rest) -> np.ndarray:
    """The marks of a view of samples (n, *shape); axes are those of a sample."""

    def moved(step: int, along: int) -> np.ndarray:
        """The mark of a neighbour; the border counts itself."""
        length = marks.shape[along + 1]
        return marks.take(np.clip(np.arange(length) + step, 0, length - 1), axis=along + 1)

    if kind in ("raw", "square"):
        return marks
    if kind in ("filter", "squared_filter", "product"):
        shared = np.maximum(marks, marks.max(axis=axis + 1, keepdims=True))
        width = rest[-1] if kind == "product" else 0
        if width:
            length = marks.shape[other_axis + 1]
            reached = [np.arange(length) + step for step in range(-width, width)]
            shared = np.maximum.reduce(
                [shared.take(np.clip(at, 0, length - 1), axis=other_axis + 1) for at in reached]
            )
        return shared
    if kind in ("difference", "squared_difference"):
        return np.maximum(marks, moved(1, axis))
    around = [moved(step, along) for along in (axis, other_axis) for step in (-1, 1)]
    return np.maximum.reduce(around)


# --- values ----------------------------------------------------------------------------------


def existing(atom: PooledAtom, marks: np.ndarray) -> np.ndarray:
    """Whether each position of each row exists: no response there touches what is absent."""
    places = list(itertools.product(*map(range, atom.counts)))
    found = np.full((len(marks), len(places)), True)
    for one in [atom.atom, *atom.rivals]:
        planes = one.reshape(-1, *atom.shape)
        for number, place in enumerate(places):
            moved = np.roll(planes, place, range(1, planes.ndim)).ravel()
            found[:, number] &= ~(marks[:, moved != 0] >= ABSENT).any(axis=1)
    return found


def touches(atom, marks: np.ndarray, mark: int) -> np.ndarray:
    """Whether the atom touches a mark in each row."""
    match atom:
        case PooledAtom():
            assert mark == ABSENT
            return ~existing(atom, marks).any(axis=1)
        case VarianceAtom():  # squares have the marks of what they are squares of
            planes = marks.reshape(len(marks), -1, atom.inside.size)
            planes = planes[:, [atom.plane, atom.squares]]
            return (planes[:, :, atom.inside.ravel() > 0] >= mark).any(axis=(1, 2))
        case np.ndarray():
            return (marks[:, atom != 0] >= mark).any(axis=1)
    return np.full(len(marks), False)  # columns have a value always


def pooled_values(atom: PooledAtom, cells: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """The values of a pooled atom over the positions that exist; 0 where there are none."""
    values = atom.values(cells)
    responses, exists = atom.responses(cells), existing(atom, marks)
    if atom.op == "win":
        rivals = np.max([atom.responses(cells, rival) for rival in atom.rivals], axis=0)
    for row in np.flatnonzero((marks == ABSENT).any(axis=1)).tolist():
        here = exists[row]
        n, k = len(here), int(here.sum())
        if k == n:
            continue
        if k == 0:
            values[row] = 0
        elif atom.op in ("max", "min"):
            values[row] = {"max": np.max, "min": np.min}[atom.op](responses[row, here])
        else:
            if atom.op == "mean":
                total = sum(responses[row, here].tolist())
            elif atom.op == "win":
                total = int((responses[row] > rivals[row])[here].sum())
            else:
                total = int((responses[row, here] > atom.bias).sum())
            values[row] = round((float(total) * float(n)) / float(k))
    return values


# --- growth and prediction -------------------------------------------------------------------


def sent_to_the_side(others: np.ndarray, left: bool) -> int | float:
    """The value of rows that touch, beyond the values of the other rows."""
    low, high = others.min().item(), others.max().item()
    if isinstance(low, int):
        step = (high - low) // 128 + 1
        return low - step if left else high + step
    step = (high - low) / 128 or 1.0
    end, value = (low, low - step) if left else (high, high + step)
    return math.nextafter(end, -math.inf if left else math.inf) if value == end else value


def candidates(
    rows: Rows, atom, values: np.ndarray, sides: Stream | None
) -> list[tuple[np.ndarray, int]]:
    """The candidates that an atom gives: values of the rows, and a code, 0 if no row touches."""
    if sides is None:
        return [(values, 0)]
    mark = ABSENT
    if not isinstance(atom, PooledAtom) and sides.next() >> 62 == 0:
        mark = GAP
    touching = touches(atom, rows.marks, mark)
    if not touching.any():
        return [(values, 0)]
    found = []
    for left in (True, False) if not touching.all() else ():
        sent = values.copy()
        sent[touching] = sent_to_the_side(values[~touching], left)
        found.append((sent, code_of(mark, left)))
    return found


def code_of(mark: int, left: bool) -> int:
    if mark == GAP:
        return GAP_LEFT if left else GAP_RIGHT
    return ABSENT_LEFT if left else ABSENT_RIGHT


def heavier_side(left_weight: int, right_weight: int) -> int:
    """The code of a split that no row touches."""
    return ABSENT_LEFT if left_weight >= right_weight else ABSENT_RIGHT


def follow(code: int, atom, marks: np.ndarray, goes_left: np.ndarray) -> np.ndarray:
    """Which rows go left: those that touch as the code says, the others as their values say."""
    touching = touches(atom, marks, GAP if code in (GAP_LEFT, GAP_RIGHT) else ABSENT)
    return np.where(touching, code in (GAP_LEFT, ABSENT_LEFT), goes_left)
