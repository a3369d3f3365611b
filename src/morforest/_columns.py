"""Columns: atoms that a whole forest shares, as standardised integers for its trees to split on.

See "Columns" in docs/design.md for the rules and their reasons.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from morforest._arrays import refusing, widen
from morforest._atoms import AtomList
from morforest._fixed_point import CellFormat, Cells, cells_for, core_dtype
from morforest._native import core
from morforest._parallel import over_rows
from morforest._states import stored

if TYPE_CHECKING:
    from morforest._table import TrainingTable

UNIT = 1024.0  # of a column, to a standard deviation
LARGEST = 8191  # of a column: sums of several stay within 16 bits
MOMENT_BITS = 20  # of the integers whose sums are means and deviations
HELD_VALUES = 1 << 24  # of training samples that are held at a time before they are standardised
BLOCK_VALUES = 1 << 17  # computed at a time
COLUMN_CELLS = Cells("int16", 0, float(LARGEST))
COMBINED_CELLS = Cells("int32", 0, float(LARGEST))  # where nodes combine columns
# Penalties of a node's ridge regression, relative to the mean sum of squares of its columns, the
# largest first: among equals the earlier wins. In this unit the eigenvalues of d columns add up to
# d and a few large ones carry most, so that the grid reaches from nearly no shrinkage to that of
# all but the largest.
PENALTIES = (10.0, 1.0, 0.1, 0.01)


@stored
@dataclass(eq=False)
class Columns:
    """Atoms drawn once, and what standardises their values."""

    atoms: AtomList
    cell_format: CellFormat  # of the samples' cells
    mean: np.ndarray  # of the training samples, in the core's numbers
    deviation: np.ndarray  # zero for constant columns

    @classmethod
    def fit(
        cls, table: TrainingTable, key: int, n_atoms: int, n_jobs: int | None
    ) -> tuple[Columns, np.ndarray]:
        """Draw atoms for a training table; return them, and the columns of its samples."""
        order = np.argsort(table.table.hash).astype(np.uint32)
        drawn = core.draw_atoms(table.table, table.dictionary, order, key, n_atoms, True)
        atoms = AtomList.from_core(table.layout, drawn)
        columns = cls(atoms, table.cell_format, np.zeros(len(atoms)), np.zeros(len(atoms)))
        return columns, columns._standardise(table.X, n_jobs)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return self.atoms.layout.shape

    @property
    def size(self) -> int:
        """Number of columns."""
        return len(self.atoms)

    def of(self, X: np.ndarray, n_jobs: int | None = 1) -> np.ndarray:
        """Return the columns of some samples (n, size)."""
        out = np.empty((len(X), self.size), dtype=np.int16)
        read = self.reader(X)

        def work(part: slice) -> None:
            out[part] = read(part)

        over_rows(work, len(X), self.rows_at_once(), n_jobs)
        return out

    def reader(self, X: np.ndarray) -> Callable[[slice], np.ndarray]:
        """Return what computes the columns of a part of the rows."""
        values = self._values_of(X, self._core, self.size)

        def read(part: slice) -> np.ndarray:
            return standardised(values(part), self.mean, self.deviation)

        return read

    def rows_at_once(self) -> int:
        """Return how many samples are worth a call."""
        return max(1, BLOCK_VALUES // self.size)

    def _values_of(
        self, X: np.ndarray, atoms: core.AtomValues, size: int
    ) -> Callable[[slice], np.ndarray]:
        """Return what computes the values of atoms for a part of the rows, in float64."""
        cells = cells_for(X, self.cell_format, takes_bytes=False)
        dtype = core_dtype(X)

        def values(part: slice) -> np.ndarray:
            x: np.ndarray = np.ascontiguousarray(X[part], dtype=dtype)
            out = np.empty((len(x), size))
            atoms.transform(x, cells.cell_type, cells.shift, cells.limit, cells.gaps, out)
            if cells.extra_bits:  # cells are so much finer than those of training
                np.ldexp(out, -cells.extra_bits, out=out)
            return out

        return values

    def _standardise(self, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
        """Find means and deviations, some columns after others, and return the columns of X."""
        out = np.empty((len(X), self.size), dtype=np.int16)
        width = max(1, HELD_VALUES // len(X))
        for first in range(0, self.size, width):
            some = slice(first, min(first + width, self.size))
            held = np.empty((len(X), some.stop - some.start))
            values = self._values_of(X, self._build(some), held.shape[1])

            def work(
                part: slice,
                values: Callable[[slice], np.ndarray] = values,
                held: np.ndarray = held,
            ) -> None:
                held[part] = values(part)

            over_rows(work, len(X), max(1, BLOCK_VALUES // held.shape[1]), n_jobs)
            self.mean[some], self.deviation[some] = moments(held)
            out[:, some] = standardised(held, self.mean[some], self.deviation[some])
        return out

    @cached_property
    def _core(self) -> core.AtomValues:
        return self._build(slice(0, self.size))

    def _build(self, some: slice) -> core.AtomValues:
        """Make some atoms as the core computes them, which checks them."""
        atoms = self.atoms[some]
        return atoms.values(np.ones(len(atoms)), self.cell_format)

    @cached_property
    def footprints(self) -> sp.csr_matrix:
        """The share of each feature in each column's atom (columns, features)."""
        return self.atoms.footprints()

    @cached_property
    def matrix_in_units(self) -> sp.csr_matrix:
        """The atoms over the values of views in the units of the data."""
        return self.atoms.matrix(self.atoms.weight_in_units(self.cell_format.shift))

    def in_units(self, column: np.ndarray, value: np.ndarray) -> np.ndarray:
        """Turn values of some columns into those of their atoms, in the units of the data."""
        raw = value * self.deviation[column] / UNIT + self.mean[column]
        found: np.ndarray = raw * self._scales()[column]
        return found

    def steps(self) -> np.ndarray:
        """Return what a step of each column is in the units of its atom."""
        steps: np.ndarray = self.deviation / UNIT * self._scales()
        return steps

    def _scales(self) -> np.ndarray:
        return self.atoms.scales(self.cell_format.shift)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "atoms": self.atoms,
            "cell_format": self.cell_format.dump(),
            "mean": self.mean,
            "deviation": self.deviation,
        }

    def __setstate__(self, state: Any) -> None:
        with refusing("forest"):
            self.atoms = state["atoms"]
            self.cell_format = CellFormat.load(state["cell_format"])
            self.mean, self.deviation = (
                widen(name, state[name], np.float64).copy() for name in ("mean", "deviation")
            )
            self._check()

    def _check(self) -> None:
        """Refuse damaged columns."""
        if not isinstance(self.atoms, AtomList) or not self.size:
            raise ValueError("damaged forest: no columns")
        self.atoms.require_format(self.cell_format)
        for values in (self.mean, self.deviation):
            if len(values) != self.size or not np.isfinite(values).all():
                raise ValueError("damaged forest: means and deviations do not fit the columns")
        if (self.deviation < 0).any():
            raise ValueError("damaged forest: negative deviations")
        _ = self._core


def moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the standard deviation of each column, by exact sums of integers.

    Neither the order of the rows nor the machine matters, as they would for sums of floats. Rows
    without a value, NaN, do not count.
    """
    bits = min(MOMENT_BITS, (62 - len(values).bit_length()) // 2)
    low, high = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
    low, high = np.nan_to_num(low), np.nan_to_num(high)  # no row has a value
    shift = bits - np.frexp(high - low)[1]
    missing = np.isnan(values)
    known = (len(values) - missing.sum(axis=0)).tolist()
    scaled = np.ldexp(np.where(missing, low, values) - low, shift)
    fixed = np.rint(scaled).astype(np.int64)
    total = fixed.sum(axis=0).tolist()
    np.multiply(fixed, fixed, out=fixed)
    squares = fixed.sum(axis=0).tolist()
    mean = np.array([s / max(n, 1) for s, n in zip(total, known, strict=True)])
    # Python's integers have no bounds, and one rounding each.
    both = zip(total, squares, known, strict=True)
    deviation = np.array([math.sqrt(n * q - s * s) / max(n, 1) for s, q, n in both])
    return low + np.ldexp(mean, -shift), np.ldexp(deviation, -shift)


def standardised(values: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Return columns of 16-bit integers; `values` are overwritten."""
    with np.errstate(over="ignore", invalid="ignore"):
        values -= mean
        values *= UNIT
        values /= np.where(deviation > 0, deviation, math.inf)
        np.rint(values, out=values)
        np.clip(values, -LARGEST, LARGEST, out=values)
        # Atoms that look at nothing but missing values, or infinite sums of samples far outside.
        values[np.isnan(values)] = 0
    return values.astype(np.int16)
