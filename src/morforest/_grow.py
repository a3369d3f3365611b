"""Growing the trees of a forest: bags, weights, and the only parallelism of a fit."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from morforest._columns import (
    COLUMN_CELLS,
    COMBINED_CELLS,
    DRAW,
    LARGEST,
    Columns,
    over_parts,
)
from morforest._dictionary import Plan, resolve
from morforest._direction import check_columns, combined
from morforest._kernel import core
from morforest._model import Forest, require_same_cells
from morforest._numbers import (
    CellFormat,
    Cells,
    blocks,
    choose_format,
    core_dtype,
    exact_sum,
    fixed_weights,
)
from morforest._validation import class_factors
from morforest.augment import Copier
from morforest.dictionary import Axis

# Few enough calls to cost nothing, small enough ones for a smooth progress bar and even loads.
CALLS_PER_JOB = 16
CALL_ROWS = 1 << 14  # of all trees of a call
BLOCKS_PER_JOB = 4  # fewer blocks of rows are not worth a thread
BAG_BYTES = 1 << 28  # memory for the bags of the trees that are scored at a time


class TrainingTable:
    """The training samples as the core holds them.

    Threads share one; other processes get the samples and build their own.
    """

    columns: Columns | None = None

    def __init__(
        self,
        X: np.ndarray,
        plan: Plan,
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
    plan: Plan,
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


def require_same_kind(before: Forest, plan: Plan, cell_format: CellFormat, earlier: Any) -> None:
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


def run_over_rows(work: Any, shape: tuple[int, ...], n_jobs: int | None) -> None:
    """Call `work` with slices of the rows of an array, in threads if there is enough to do."""
    parts = list(blocks(shape))
    over_parts(work, parts, min(effective_n_jobs(n_jobs), len(parts) // BLOCKS_PER_JOB))


@dataclass(frozen=True)
class Bagging:
    """Which samples each tree sees, and what they count for.

    A forest is a function of the multiset of samples: bags are drawn from the rows in canonical
    order, which is by content, so neither the order of the rows nor the way a sample's
    multiplicity is written (repeated rows or a whole-number weight) matters.
    """

    order: np.ndarray  # rows in canonical order
    cumulative: np.ndarray  # cumulated whole-number weights in that order; empty if all are one
    draws: int  # 0: no bootstrap, every row as often as `count` says
    count: np.ndarray  # whole-number weight of each row, or ones
    extra: np.ndarray | None  # fractional sample weights, where not used for drawing
    class_weight: Any
    classes: np.ndarray
    codes: np.ndarray
    times: int = 1  # how often a tree has each row: once, and its copies

    def bags(self, tree_keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return counts and weights of the rows in each tree (trees, rows); one array if equal."""
        if self.draws:
            drawn = core.draw_bags(tree_keys, self.draws, self.order, self.cumulative)
            count = drawn.reshape(len(tree_keys), len(self.order))
        else:
            count = np.tile(self.count, (len(tree_keys), 1))
        if self.extra is None and self.class_weight is None:
            return count, count
        weighted = [self._weigh(of_tree) for of_tree in count]
        return np.stack([c for c, _ in weighted]), np.stack([w for _, w in weighted])

    def _weigh(self, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        unit = np.ones(len(count)) if self.extra is None else self.extra
        if self.class_weight is not None:
            factors = self.class_weight
            if isinstance(factors, str):
                factors = class_factors(factors, self.classes, self.codes, unit * count)
            if factors[self.codes][count > 0].any():  # else only classes of weight zero were drawn
                unit = unit * factors[self.codes]
        count = np.where(unit > 0, count, 0).astype(np.uint32)
        return count, fixed_weights(unit, count, self.times)


def make_bagging(
    hashes: np.ndarray,
    target: np.ndarray,
    whole: np.ndarray | None,
    fractional: np.ndarray | None,
    draws: int,
    class_weight: Any,
    classes: np.ndarray,
    codes: np.ndarray,
    times: int = 1,
) -> Bagging:
    """Put the rows into canonical order and cumulate their weights."""
    order = canonical_order(hashes, target, fractional if whole is None else whole)
    cumulative = np.empty(0, dtype=np.uint64)
    count = np.ones(len(hashes), dtype=np.uint32)
    extra = None
    if whole is not None:
        count = whole
        if (whole != 1).any():
            cumulative = np.cumsum(whole[order], dtype=np.uint64)
    elif fractional is not None:
        if draws:
            # 2^52 / sum keeps float64's precision, and the sum of roundings below 2^64.
            fixed = np.rint(fractional[order] * (2.0**52 / exact_sum(fractional)))
            cumulative = np.cumsum(np.maximum(fixed, 1), dtype=np.uint64)
        else:
            extra = fractional
    return Bagging(order, cumulative, draws, count, extra, class_weight, classes, codes, times)


def canonical_order(
    hashes: np.ndarray, target: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Sort rows by hash, then target, then weight if given, then number."""
    order = np.argsort(hashes).astype(np.uint32)
    ordered = hashes[order]
    equal = ordered[1:] == ordered[:-1]
    if equal.any():  # few rows as a rule: a whole sort by all keys takes several times as long
        tied = np.append(equal, False) | np.append(False, equal)
        rows = np.sort(order[tied])
        last = () if weights is None else (weights[rows],)
        order[tied] = rows[np.lexsort((*last, target[rows], hashes[rows]))]
    return order


@dataclass(frozen=True)
class GrowthTask:
    """Everything that the trees of one fit share."""

    table: TrainingTable
    bagging: Bagging
    seed: int
    targets: dict[str, Any]  # classes and class_count, or values and bits
    rule: dict[str, Any]
    copier: Copier | None = None

    def keys(self, trees: range) -> np.ndarray:
        """Return the keys of the trees' random numbers."""
        return np.array([core.tree_key(self.seed, tree) for tree in trees], dtype=np.uint64)

    def grow(self, trees: range, stop: Any) -> dict[str, np.ndarray]:
        """Grow the trees of some numbers, behind one another."""
        keys = self.keys(trees)
        if self.copier is not None:
            return self._grow_on_copies(keys, stop)
        count, weight = self.bagging.bags(keys)
        grown: dict[str, np.ndarray] = core.grow_trees(
            self.table.core,
            self.table.dictionary,
            keys,
            count.ravel(),
            weight.ravel(),
            self.bagging.order,
            stop=stop,
            **self.targets,
            **self.rule,
        )
        return grown

    def _grow_on_copies(self, keys: np.ndarray, stop: Any) -> dict[str, np.ndarray]:
        """Grow each tree on the rows of its bag and on copies of them, made for it alone.

        Rows that the bag leaves out have no copies either, so that they may judge the tree.
        """
        assert self.copier is not None
        ranks = np.empty(len(self.bagging.order), dtype=np.uint32)
        ranks[self.bagging.order] = np.arange(len(ranks))
        trees = []
        for key in keys:
            count, weight = self.bagging.bags(key[np.newaxis])
            rows = np.flatnonzero(count[0])
            copies = self.copier.copies_of(self.table.samples[rows], ranks[rows], int(key))
            times = 1 + self.copier.copies
            among = np.argsort(ranks[rows])
            targets = dict(self.targets)
            for name in ("classes", "values"):
                if len(targets[name]):
                    targets[name] = np.tile(targets[name][rows], times)
            trees.append(
                core.grow_trees(
                    self.table.beside(rows, copies),
                    self.table.dictionary,
                    key[np.newaxis],
                    np.tile(count[0][rows], times),
                    np.tile(weight[0][rows], times),
                    np.concatenate([c * len(rows) + among for c in range(times)]).astype(np.uint32),
                    stop=stop,
                    **targets,
                    **self.rule,
                )
            )
        return join(trees, self.targets["class_count"])


def join(trees: list[dict[str, np.ndarray]], class_count: int) -> dict[str, np.ndarray]:
    """Put what calls of the core have grown behind one another, as one call would."""
    payloads = "distribution_size" if class_count else "leaf_value"
    skipped = 0
    for some in trees:
        following = some["next"].astype(np.int64)
        following[following < -class_count] -= skipped
        some["next"] = following
        skipped += len(some[payloads])
    return {name: np.concatenate([some[name] for some in trees]) for name in trees[0]}


def sum_out_of_bag(
    task: GrowthTask, forest: Forest, n_jobs: int | None, among: range | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Sum the posteriors of the trees whose bags left a row out, and count these trees.

    All trees take part, or those `among`. Threads take different rows, and each row's trees come in
    order, so that the sums are the same for any number of them.
    """
    shape = task.table.X.shape
    sums = np.zeros((shape[0], forest.outputs))
    votes = np.zeros(shape[0], dtype=np.uint32)
    size = max(1, BAG_BYTES // shape[0])
    among = range(forest.n_trees) if among is None else among
    for first in range(0, len(among), size):
        trees = among[first : first + size]
        left_out = np.empty((len(trees), shape[0]), dtype=bool)
        for i, key in enumerate(task.keys(trees)):
            count, _ = task.bagging.bags(key[np.newaxis])
            np.equal(count[0], 0, out=left_out[i])

        def add(part: slice, trees: range = trees, left_out: np.ndarray = left_out) -> None:
            table = task.table.part(part)
            for tree, out in zip(trees, left_out[:, part], strict=True):
                rows = np.flatnonzero(out).astype(np.uint32)
                forest.add_tree(tree, table, rows, sums[part])
                votes[part][rows] += 1

        run_over_rows(add, shape, n_jobs)
    return sums, votes


class _Stop:
    """Asks growing threads to give up; in another process nobody asks."""

    def __init__(self) -> None:
        self.flag = core.StopFlag()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_Stop, ())


def _grow_chunk(task: GrowthTask, trees: range, stop: _Stop) -> dict[str, np.ndarray]:
    return task.grow(trees, stop.flag)


def grow_trees(task: GrowthTask, trees: range, n_jobs: int | None, verbose: int) -> Iterator[dict]:
    """Grow the trees of the given numbers, in order, a few at a time, as they become ready."""
    progress = Progress(len(trees), verbose)
    stop = _Stop()
    jobs = min(effective_n_jobs(n_jobs), len(trees))
    size = min(CALL_ROWS // len(task.table.X), len(trees) // (jobs * CALLS_PER_JOB))
    chunks = [trees[i : i + max(size, 1)] for i in range(0, len(trees), max(size, 1))]
    try:
        if jobs == 1:
            grown: Iterator[dict] = (task.grow(chunk, stop.flag) for chunk in chunks)
        else:
            run = Parallel(n_jobs=jobs, prefer="threads", return_as="generator")
            grown = run(delayed(_grow_chunk)(task, chunk, stop) for chunk in chunks)
        for some in grown:
            yield some
            progress.advance(len(some["tree_size"]))
    except BaseException:
        stop.flag.set()
        raise
    finally:
        progress.close()


class Progress:
    """A progress bar on standard error, with the time left."""

    def __init__(self, total: int, verbose: int, what: str = "trees"):
        self.total = total
        self.what = what
        self.done = 0
        self.active = bool(verbose) and total > 0
        self.start = time.monotonic()
        self.shown = 0.0
        self.terminal = self.active and sys.stderr.isatty()

    def advance(self, count: int, more: str = "") -> None:
        """Count work as done, and redraw a few times a second; `more` is shown behind."""
        self.done += count
        now = time.monotonic()
        interval = 0.1 if self.terminal else 5.0
        if self.active and (self.done == self.total or now - self.shown > interval):
            self.shown = now
            elapsed = now - self.start
            left = elapsed / self.done * (self.total - self.done)
            filled = 30 * self.done // self.total
            bar = "#" * filled + "-" * (30 - filled)
            text = (
                f"{self.what} {self.done}/{self.total} [{bar}] {elapsed:.1f} s, {left:.1f} s left"
            )
            text += more
            sys.stderr.write(f"\r{text}  " if self.terminal else f"{text}\n")
            sys.stderr.flush()

    def close(self) -> None:
        """End the line."""
        if self.terminal and self.done:
            sys.stderr.write("\n")
            sys.stderr.flush()
