"""The nonlinear atoms of `oracle.py`: pooled ones, and variances of boxes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from oracle import Rows
    from oracle_atoms import PatchAxis, Stream


@dataclass
class PooledAtom:
    """A linear atom that moves over a window; `atom` is it at the first position.

    `counts` has the positions along each axis. `draw` and `position` say which response of which
    row becomes the bias. `rivals` are what it has to respond more than, at its first position too.
    """

    atom: np.ndarray
    shape: tuple[int, ...]
    op: str
    counts: list[int]
    draw: int | None = 0  # None: the bias stays
    position: int = 0
    bias: int = 0
    rivals: Sequence[np.ndarray] = ()

    def responses(self, cells: np.ndarray, atom: np.ndarray | None = None) -> np.ndarray:
        """The response of each row at each position, the last axis fastest."""
        planes = (self.atom if atom is None else atom).reshape(-1, *self.shape)
        places = itertools.product(*map(range, self.counts))
        axes = range(1, planes.ndim)
        # Only circular axes let an atom reach their end, and there it goes round.
        moved = np.array([np.roll(planes, place, axes).ravel() for place in places])
        return cells.astype(np.int64) @ moved.T

    def with_bias(self, rows: Rows, for_good: bool = False) -> PooledAtom:
        """The same with the bias that it gets in a node; rows are in canonical order."""
        if self.op != "proportion" or self.draw is None:
            return self
        ends = np.cumsum(rows.counts)
        row = np.searchsorted(ends, self.draw * int(ends[-1]) >> 64, side="right")
        bias = int(self.responses(rows.cells[row : row + 1])[0, self.position])
        return replace(self, bias=bias, draw=None if for_good else self.draw)

    def values(self, cells: np.ndarray) -> np.ndarray:
        responses = self.responses(cells)
        if self.op == "proportion":
            return (responses > self.bias).sum(axis=1)
        if self.op == "win":
            rivals = [self.responses(cells, rival) for rival in self.rivals]
            return (responses > np.max(rivals, axis=0)).sum(axis=1)
        return {"max": np.max, "min": np.min, "mean": np.sum}[self.op](responses, axis=1)


@dataclass
class Pool:
    """How atoms are pooled.

    `windows` along each axis: None (atoms stay), 0 (drawn), or a number of positions.
    """

    ops: Sequence[str]
    windows: Sequence[int | None]

    def begin(self, stream: Stream) -> None:
        self.op = self.ops[stream.below(len(self.ops))]
        self.whole = 0 in self.windows and bool(stream.next() >> 63)
        self.counts = [1] * len(self.windows)

    def place(self, stream: Stream, axis: int, length: int, extent: int, circular: bool) -> int:
        """The first position along an axis of an atom that spans `extent` of it."""
        places = length if circular else length - extent + 1
        window = self.windows[axis]
        if window is None:
            return stream.below(places)
        count = min(window or places, places)
        if window == 0 and not self.whole and places > 1:
            odds = [round(math.log1p(1 / k) * 2**40) for k in range(2, places + 1)]
            x = stream.below(sum(odds))
            count = 2 + next(i for i, end in enumerate(itertools.accumulate(odds)) if x < end)
        self.counts[axis] = count
        if count == places:
            return 0
        return stream.below(places if circular else places - count + 1)

    def end(self, stream: Stream, atom: np.ndarray, shape: tuple[int, ...]) -> PooledAtom:
        found = PooledAtom(atom, shape, self.op, self.counts)
        if self.op == "proportion":
            found.draw = stream.next()
            found.position = stream.below(math.prod(self.counts))
        return found


@dataclass
class VarianceAtom:
    """The area times the sum of squares, less the square of the sum, over a box."""

    inside: np.ndarray  # 1 in the box, 0 elsewhere, in the sample's shape
    plane: int  # of the view among those of a row
    squares: int  # and of its squares, which the core adds up

    def values(self, cells: np.ndarray) -> np.ndarray:
        planes = cells.reshape(len(cells), -1, self.inside.size)
        values = planes[:, self.plane, self.inside.ravel() > 0]
        return values.shape[1] * (values * values).sum(axis=1) - values.sum(axis=1) ** 2


class VarianceAtoms:
    """Variances of boxes within the data, of one of several views."""

    def __init__(self, axes: Sequence[PatchAxis], planes: Sequence[int]):
        self.axes = axes
        self.planes = planes  # of the views, then of their squares

    def start_node(self) -> None:
        """Draws do not depend on those before them."""

    def draw(self, stream: Stream) -> VarianceAtom:
        view = stream.below(len(self.planes) // 2)
        inside = np.zeros([axis.length for axis in self.axes], dtype=np.int64)
        inside[np.ix_(*[axis.draw(stream) for axis in self.axes])] = 1
        squares = self.planes[len(self.planes) // 2 + view]
        return VarianceAtom(inside, self.planes[view], squares)
