"""The training samples as the core holds them."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np

from morforest._atoms import RowLayout
from morforest._columns import COLUMN_CELLS, COMBINED_CELLS, LARGEST, Columns
from morforest._fixed_point import CellFormat, Cells, blocks, choose_format, core_dtype
from morforest._model import Forest
from morforest._native import core
from morforest._parallel import over_blocks
from morforest.dictionary import Axis
from morforest.dictionary._base import ResolvedDictionary, resolve

_building = threading.Lock()


class TrainingTable:
    """The training samples, and the `table` in which the core holds them.

    Threads share one table; other processes get the samples, and build their own when they are
    first asked to be ready.
    """

    columns: Columns | None = None

    def __init__(
        self,
        X: np.ndarray,
        resolved: ResolvedDictionary,
        cell_format: CellFormat,
        cells: Cells,
        n_jobs: int | None = 1,
    ):
        self.X = X
        self.resolved = resolved
        self.cell_format = cell_format
        self.cells = cells
        self.dtype = core_dtype(X)
        self._build(n_jobs)

    def _build(self, n_jobs: int | None) -> None:
        self.dictionary = self.resolved.build(direct=self.cell_format.real)
        cell_type = self.cells.cell_type
        if self.dictionary.narrow_patches and self.cells.fit_bytes:
            cell_type = "bytes"  # the same forest from half the memory
        tiles = self._tiles and cell_type != "bytes"
        table = core.Table(len(self.X), self.dictionary.layout, cell_type, tiles, self.cells.gaps)
        over_blocks(lambda part: self.fill(table, part.start, self.X[part]), self.X.shape, n_jobs)
        self.table = table

    @property
    def _tiles(self) -> bool:
        """Whether atoms are computed for all rows at once, which rows in tiles make fast."""
        return bool(self.resolved.atoms_per_tree) and not self.dictionary.has_operations

    @property
    def layout(self) -> RowLayout:
        """What stands in a row of the table."""
        return RowLayout.from_core(self.dictionary.layout)

    def fill(self, table: core.Table, first: int, X: np.ndarray) -> None:
        """Write samples to the rows of a table from `first` on."""
        x: np.ndarray = np.ascontiguousarray(X, dtype=self.dtype)
        table.fill(x, first, self.cells.shift, self.cells.limit)

    def _plain(self, rows: int) -> core.Table:
        return core.Table(rows, self.dictionary.layout, self.cells.cell_type, gaps=self.cells.gaps)

    def room(self, rows: int) -> core.Table:
        """Return an empty table for so many samples, with the same kind of cells."""
        return core.Table(
            rows, self.dictionary.layout, self.cells.cell_type, self._tiles, self.cells.gaps
        )

    def part(self, rows: slice) -> core.Table:
        """Return a table of some of the rows, with all views that the dictionary looks at."""
        table = self._plain(rows.stop - rows.start)
        self.fill(table, 0, self.X[rows])
        return table

    @property
    def samples(self) -> np.ndarray:
        """What the cells were made from: one row per sample."""
        return self.X

    @property
    def hash(self) -> np.ndarray:
        """A hash of the cells of each sample."""
        return self.table.hash

    def read(self, X: np.ndarray) -> np.ndarray:
        """Return what cells are made from, for other samples."""
        return X

    def beside(self, rows: np.ndarray, copies: list[np.ndarray]) -> core.Table:
        """Return a table of some of the rows, followed by copies of samples."""
        return self.of(np.concatenate([self.X[rows], *map(self.read, copies)]))

    def of(self, X: np.ndarray) -> core.Table:
        """Return a table of other samples with the same kind of cells."""
        table = self._plain(len(X))
        for part in blocks(X.shape):
            self.fill(table, part.start, X[part])
        return table

    def sibling(self) -> TrainingTable:
        """Return the same table with a dictionary of its own, which rounds may guide."""
        found = object.__new__(type(self))
        found.__dict__.update(self.__dict__)
        found.dictionary = self.resolved.build(direct=self.cell_format.real)
        return found

    def release(self) -> None:
        """Give back the memory of the cells."""
        del self.table

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("dictionary", "table")}

    def make_ready(self) -> None:
        """Build the table if this one came from another process."""
        with _building:
            if not hasattr(self, "table"):
                self._build(1)


def column_format(columns: Columns) -> CellFormat:
    """Return the format of the cells that hold columns."""
    return CellFormat(0, False, True, float(LARGEST), resolve(Axis(), columns.size).bounds)


class ColumnTable(TrainingTable):
    """Shared atoms of the training samples as columns, for trees that split on these."""

    def __init__(
        self,
        training_table: TrainingTable,
        columns: Columns,
        values: np.ndarray,
        combines: bool,
        n_jobs: int | None,
    ):
        self.columns = columns
        self._samples = training_table.samples
        self._hash = training_table.hash  # of the samples, because copies are made from these
        resolved = resolve(Axis(), columns.size)
        cells = COMBINED_CELLS if combines else COLUMN_CELLS
        super().__init__(values, resolved, column_format(columns), cells, n_jobs)

    @property
    def samples(self) -> np.ndarray:
        """What the columns were made from: one row per sample."""
        return self._samples

    @property
    def hash(self) -> np.ndarray:
        """A hash of the cells of each sample, not of its columns."""
        return self._hash

    def read(self, X: np.ndarray) -> np.ndarray:
        """Return the columns of other samples."""
        assert self.columns is not None
        return self.columns.of(X)


def make_table(
    X: np.ndarray,
    resolved: ResolvedDictionary,
    seed: int,
    n_jobs: int | None,
    before: Forest | None = None,
    earlier: Any = None,
    combines: bool = False,
    weights: np.ndarray | None = None,
) -> TrainingTable:
    """Make the table that trees are grown on.

    New trees may follow those of a forest grown `before` with the dictionary `earlier`.

    Trees that learn combinations of columns need cells with room for their sums.
    """
    n_atoms = resolved.n_shared_atoms
    cell_format, cells = choose_format(X, resolved.bounds, resolved.has_order)
    if combines and not n_atoms and cells.cell_type != "int32":
        raise ValueError(
            f"combinations of given columns need whole numbers from -{LARGEST} to {LARGEST}: "
            "scale and round X."
        )
    if before is not None:
        resolved = replace(resolved, course=_looked_at(before).atoms.layout.course)
        require_same_kind(before, resolved, cell_format, earlier)
    elif cells.gaps:
        resolved = resolved.for_gaps_of(X, weights)
    training_table = TrainingTable(X, resolved, cell_format, cells, n_jobs)
    if not n_atoms:
        return training_table
    if before is None:
        key = core.tree_key(seed, core.Purpose.SHARED_ATOMS)
        columns, values = Columns.fit(training_table, key, n_atoms, n_jobs)
    else:
        assert before.columns is not None
        columns = before.columns
        values = columns.of(X, n_jobs)
        combines |= before.combines  # these are asked about rows of the table, too
    return ColumnTable(training_table, columns, values, combines, n_jobs)


def _looked_at(forest: Forest) -> Forest | Columns:
    """Return what holds the atoms over samples."""
    return forest if forest.columns is None else forest.columns


def require_same_kind(
    before: Forest, resolved: ResolvedDictionary, cell_format: CellFormat, earlier: Any
) -> None:
    """Raise unless trees of this dictionary and cell format may follow those of an earlier fit."""
    shared = bool(resolved.n_shared_atoms)
    if shared != (before.columns is not None) or (shared and not resolved.has_atoms_of(earlier)):
        raise ValueError(
            f"warm_start needs the dictionary of the first fit where all trees share its atoms: "
            f"had {earlier!r}, got {resolved.dictionary!r}. Set it back, or fit a new model."
        )
    looked_at = _looked_at(before)
    then = looked_at.cell_format
    if (cell_format.shift, cell_format.real) != (then.shift, then.real):
        raise ValueError(
            "warm_start needs data like those of the first fit: their range or kind of "
            "numbers differs too much. Fit a new model instead."
        )
    built = resolved.build(direct=cell_format.real)
    layout = RowLayout.from_core(built.layout)
    looked_at.atoms.require_same_kind(layout, linear=not built.has_operations)
