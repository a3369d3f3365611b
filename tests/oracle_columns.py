"""The columns of `oracle.py`: atoms that all trees share, standardised."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import oracle
import oracle_atoms
import oracle_gaps

DRAW = 2**63 + 3


@dataclass
class ColumnAtom:
    """An atom whose values are counted in 1024ths of their standard deviation.

    What touches an absent value has the mean.
    """

    number: int
    atom: object
    mean: float
    deviation: float

    def values(self, cells: np.ndarray, marks: np.ndarray | None = None) -> np.ndarray:
        found = oracle.project(cells, self.atom, marks).tolist()
        whole = np.array([self._standardised(float(value)) for value in found], dtype=np.int64)
        return np.where(has_value(self.atom, cells, marks), whole, 0)

    def _standardised(self, value: float) -> int:
        if self.deviation == 0.0:
            return 0
        scaled = (value - self.mean) * 1024.0 / self.deviation
        return round(min(max(scaled, -8191.0), 8191.0))


def has_value(atom, cells: np.ndarray, marks: np.ndarray | None) -> np.ndarray:
    """Whether the atom touches nothing that is absent, for each row."""
    if marks is None:
        return np.full(len(cells), True)
    return ~oracle_gaps.touches(atom, marks, oracle_gaps.ABSENT)


def moments(values: list[float]) -> tuple[float, float]:
    """Mean and standard deviation by whole numbers; their order does not matter."""
    if not values:
        return 0.0, 0.0
    n, low = len(values), min(values)
    bits = min(20, (62 - n.bit_length()) // 2)
    shift = bits - math.frexp(max(values) - low)[1]
    whole = [round(math.ldexp(value - low, shift)) for value in values]
    total, squares = sum(whole), sum(y * y for y in whole)
    deviation = math.sqrt(n * squares - total * total) / n
    return low + math.ldexp(total / n, -shift), math.ldexp(deviation, -shift)


def shared(
    subset: oracle_atoms.Subset, cells: np.ndarray, order, seed: int, marks=None
) -> oracle_atoms.Dictionary:
    """The columns of a forest, for nodes to choose from. All rows count once."""
    ones = np.ones(len(cells), dtype=np.int64)
    rows = oracle.Rows(cells, ones, ones, ones)[np.asarray(order)]
    drawn = subset.drawn(rows, oracle_atoms.tree_key(seed, DRAW)).components[0].matrix
    columns = []
    for number, atom in enumerate(drawn):
        kept = oracle.project(cells, atom, marks)[has_value(atom, cells, marks)]
        values = [float(value) for value in kept.tolist()]
        columns.append(ColumnAtom(number, atom, *moments(values)))
    return oracle_atoms.Dictionary([oracle_atoms.UniformAtoms(columns)])
