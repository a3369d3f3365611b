"""A second writing of "Missing values" of `docs/design.md`: fills, marks, sides and codes.

A value of a sample is observed (mark 0), a gap (1) or absent (2). Marks are arrays of the shape of
the cells, so that an atom meets the same features in both.
"""

from __future__ import annotations

import itertools
import math
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


def fill_line(line: np.ndarray, known: np.ndarray) -> None:
    """Fill in the unknown values of a line that has a known one, between its nearest neighbours."""
    places = np.flatnonzero(known).tolist()
    for t in np.flatnonzero(~known).tolist():
        before = [i for i in places if i < t]
        behind = [j for j in places if j > t]
        if not before or not behind:
            line[t] = line[behind[0] if behind else before[-1]]
            continue
        i, j = before[-1], behind[0]
        a, b = line[i], line[j]
        line[t] = a + (b - a) * ((t - i) / (j - i))


def fill_sample(values: np.ndarray, ordered: list[int]) -> np.ndarray:
    """Fill in a sample in place, and return its marks."""
    observed = ~np.isnan(values)
    marks = np.zeros(values.shape, dtype=np.uint8)
    known = observed.copy()
    for axis in reversed(ordered):
        lines = np.moveaxis(values, axis, -1)
        found = np.moveaxis(known.copy(), axis, -1)  # as it is at the start of the step
        for place in np.ndindex(lines.shape[:-1]):
            if found[place].any():
                fill_line(lines[place], found[place])
        filled = ~known & ~np.isnan(values)
        marks[filled] = GAP
        known |= filled
    values[~known] = 0.0
    marks[~known] = ABSENT
    if len(ordered) == 1:  # nothing is observed beyond the ends
        rest = tuple(axis for axis in range(values.ndim) if axis != ordered[0])
        places = np.flatnonzero(observed.any(axis=rest))
        along = np.moveaxis(marks, ordered[0], 0)
        if len(places):
            along[: places[0]] = ABSENT
            along[places[-1] + 1 :] = ABSENT
    return marks


def fill(X: np.ndarray, ordered: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Samples (n, *shape) without NaN, in float64, and the marks of their values."""
    values = np.array(X, dtype=np.float64)
    return values, np.stack([fill_sample(sample, ordered) for sample in values])


def marks_of_view(marks: np.ndarray, kind: str, axis=0, other_axis=0, *_) -> np.ndarray:
    """The marks of a view of samples (n, *shape); axes are those of a sample."""

    def moved(step: int, along: int) -> np.ndarray:
        """The mark of a neighbour; the border counts itself."""
        length = marks.shape[along + 1]
        return marks.take(np.clip(np.arange(length) + step, 0, length - 1), axis=along + 1)

    if kind in ("raw", "square"):
        return marks
    if kind in ("filter", "squared_filter"):
        return np.maximum(marks, marks.max(axis=axis + 1, keepdims=True))
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
