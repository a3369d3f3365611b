"""The training samples as the core holds them."""

from __future__ import annotations

from typing import Any

import numpy as np

from morforest._columns import COLUMN_CELLS, COMBINED_CELLS, DRAW, LARGEST, Columns
from morforest._combination import check_columns, combined
from morforest._fixed_point import CellFormat, Cells, blocks, choose_format, core_dtype
from morforest._model import Forest, require_same_cells
from morforest._native import core
from morforest._parallel import run_over_rows
from morforest.dictionary import Axis
from morforest.dictionary._base import ResolvedDictionary, resolve


class TrainingTable:
    """The training samples as the core holds them.

    Threads share one; other processes get the samples and build their own.
    """

    columns: Columns | None = None

    def __init__(
        self,
        X: np.ndarray,
        plan: ResolvedDictionary,
        cell_format: CellFormat,
        cells: Cells,
        n_jobs: int | None = 1,
    ):
        self.X = X
        self.plan = plan
        self.cell_format = cell_format
        self.cells = cells
        self.dtype = core_dtype(X)
        self._build(n_jobs)

    def _build(self, n_jobs: int | None) -> None:
        self.dictionary = self.plan.build(direct=self.cell_format.real)
        cell_type = self.cells.cell_type
        if self.dictionary.narrow_patches and self.cells.fit_bytes:
            cell_type = "bytes"  # the same forest from half the memory
        tiles = self._tiles and cell_type != "bytes"
        table = core.Table(len(self.X), self.dictionary, cell_type, tiles)
        run_over_rows(lambda part: self.fill(table, part.start, self.X[part]), self.X.shape, n_jobs)
        self.core = table

    @property
    def _tiles(self) -> bool:
        """Whether atoms are computed for all rows at once, which rows in tiles make fast."""
        return bool(self.plan.dictionary._subset()) and not self.dictionary.has_forms

    def fill(self, table: Any, first: int, X: np.ndarray) -> None:
        """Write samples to the rows of a table from `first` on."""
        x: np.ndarray = np.ascontiguousarray(X, dtype=self.dtype)
        table.fill(x, first, self.cells.shift, self.cells.limit)

    def room(self, rows: int) -> Any:
        """Return a table for as many samples, to be filled, with the same cells."""
        return core.Table(rows, self.dictionary, self.cells.cell_type, self._tiles)

    def part(self, rows: slice) -> Any:
        """Return a table of some of the rows, with all views that the dictionary looks at."""
        table = core.Table(rows.stop - rows.start, self.dictionary, self.cells.cell_type)
        self.fill(table, 0, self.X[rows])
        return table

    @property
    def samples(self) -> np.ndarray:
        """What the cells were made from, a row a sample."""
        return self.X

    @property
    def hash(self) -> np.ndarray:
        """A hash of the cells of each sample."""
        hashes: np.ndarray = self.core.hash
        return hashes

    def read(self, X: np.ndarray) -> np.ndarray:
        """Return what cells are made from, of other samples."""
        return X

    def beside(self, rows: Any, copies: list[np.ndarray]) -> Any:
        """Return a table of some of the rows and of copies, which are samples, behind them."""
        return self.of(np.concatenate([self.X[rows], *map(self.read, copies)]))

    def of(self, X: np.ndarray) -> Any:
        """Return a table of other samples with the same cells."""
        table = core.Table(len(X), self.dictionary, self.cells.cell_type)
        for part in blocks(X.shape):
            self.fill(table, part.start, X[part])
        return table

    def release(self) -> None:
        """Give back the memory of the cells."""
        del self.core

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("dictionary", "core")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._build(1)


class ColumnTable(TrainingTable):
    """The columns of the training samples, for trees that split on these."""

    def __init__(
        self,
        table: TrainingTable,
        columns: Columns,
        values: np.ndarray,
        learns: bool,
        n_jobs: int | None,
    ):
        self.columns = columns
        self._samples = table.samples
        self._hash = table.hash  # of the samples, because copies are made from these
        plan = resolve(Axis(), columns.size)
        column_format = CellFormat(0, False, True, float(LARGEST), plan.bounds)
        cells = COMBINED_CELLS if learns else COLUMN_CELLS
        super().__init__(values, plan, column_format, cells, n_jobs)

    @property
    def samples(self) -> np.ndarray:
        """What the columns were made from, a row a sample."""
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
    plan: ResolvedDictionary,
    seed: int,
    n_jobs: int | None,
    before: Forest | None = None,
    earlier: Any = None,
    learns: bool = False,
) -> TrainingTable:
    """Make what trees are grown on; `before` has `earlier`, a dictionary, and is to be added to.

    Trees that learn combinations need room for their sums.
    """
    n_atoms = plan.dictionary._columns()
    bounds = combined(plan.bounds) if learns and not n_atoms else plan.bounds
    cell_format, cells = choose_format(X, bounds)
    if learns and not n_atoms:
        check_columns(cells.cell_type)
    if before is not None:
        require_same_kind(before, plan, cell_format, earlier)
    table = TrainingTable(X, plan, cell_format, cells, n_jobs)
    if not n_atoms:
        return table
    if before is None:
        columns, values = Columns.fit(table, core.tree_key(seed, DRAW), n_atoms, n_jobs)
    else:
        assert before.columns is not None
        columns = before.columns
        values = columns.of(X, n_jobs)
        learns |= before.combines  # these are asked about rows of the table, too
    return ColumnTable(table, columns, values, learns, n_jobs)


def require_same_kind(
    before: Forest, plan: ResolvedDictionary, cell_format: CellFormat, earlier: Any
) -> None:
    """Raise unless trees of this plan and format may follow those of an earlier fit."""
    shared = bool(plan.dictionary._columns())
    if shared != (before.columns is not None) or (shared and plan.dictionary != earlier):
        raise ValueError(
            f"warm_start needs the dictionary of the first fit where all trees share its atoms: "
            f"had {earlier!r}, got {plan.dictionary!r}. Set it back, or fit a new model."
        )
    looked_at = before if before.columns is None else before.columns
    then = looked_at.cell_format
    if (cell_format.shift, cell_format.real) != (then.shift, then.real):
        raise ValueError(
            "warm_start needs data like those of the first fit: their range or kind of "
            "numbers differs too much. Fit a new model instead."
        )
    require_same_cells(looked_at, plan.build(direct=cell_format.real))
