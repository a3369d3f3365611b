"""Growing the trees of a forest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from morforest._arrays import narrow
from morforest._bagging import Bagging, TreeBags
from morforest._fixed_point import TargetFormat
from morforest._grown_trees import GrownTrees, assemble
from morforest._leaf_samples import LeafSamples, digest_of, join_entries, pack_entries
from morforest._model import Forest
from morforest._native import core
from morforest._outputs import OutputFormats
from morforest._parallel import Shared, count_jobs, map_in_order, over_blocks
from morforest._progress import Progress
from morforest._table import TrainingTable
from morforest.augment import Copier

# Few enough calls to cost nothing, small enough ones for a smooth progress bar and even loads.
CALLS_PER_JOB = 16
CALL_ROWS = 1 << 14  # rows of all trees of one call
BAG_BYTES = 1 << 28  # memory for what is held of all rows, for some trees at a time


@dataclass(frozen=True)
class GrowthTask:
    """Everything that the trees of one fit share."""

    training_table: TrainingTable
    bagging: Bagging
    seed: int
    targets: core.Targets
    rule: core.GrowthRule
    copier: Copier | None = None
    target_format: TargetFormat | OutputFormats | None = None  # of numbers; None for classes

    def keys(self, trees: range) -> np.ndarray:
        """Return the keys of the trees' random numbers."""
        return np.array([core.tree_key(self.seed, tree) for tree in trees], dtype=np.uint64)

    def grow(self, trees: range, stop: core.StopFlag) -> list[GrownTrees]:
        """Grow the trees of some numbers, by one call of the core or by several."""
        keys, table = self.keys(trees), self.training_table
        if self.copier is not None:
            return [self._grow_on_copies(key, stop) for key in keys]
        bags = _bags_of_core(self.bagging.bags(keys, stop), self.bagging.order)
        grown = core.grow_trees(
            table.table, table.dictionary, keys, *bags, self.targets, self.rule, stop
        )
        return [GrownTrees.from_core(table.layout, grown)]

    def _grow_on_copies(self, key: np.uint64, stop: core.StopFlag) -> GrownTrees:
        """Grow a tree on the rows of its bag and on copies of them, made for it alone.

        Rows that the bag leaves out have no copies either, so that they may judge the tree.
        """
        assert self.copier is not None
        drawn = self.bagging.bags(np.array([key]), stop)
        rows = np.flatnonzero(drawn.used[0])
        times = 1 + self.copier.copies
        among = np.argsort(self._ranks(rows))
        bags = _bags_of_core(
            drawn.tiled(rows, times),
            np.concatenate([c * len(rows) + among for c in range(times)]).astype(np.uint32),
        )
        grown = core.grow_trees(
            self.beside_copies(rows, key),
            self.training_table.dictionary,
            np.array([key]),
            *bags,
            self.targets.take(np.tile(rows, times).astype(np.uint32)),
            self.rule,
            stop,
        )
        return GrownTrees.from_core(self.training_table.layout, grown)

    def _ranks(self, rows: np.ndarray) -> np.ndarray:
        """Return the places of rows in canonical order."""
        ranks = np.empty(len(self.bagging.order), dtype=np.uint32)
        ranks[self.bagging.order] = np.arange(len(ranks))
        found: np.ndarray = ranks[rows]
        return found

    def beside_copies(self, rows: np.ndarray, key: np.uint64) -> core.Table:
        """Return a table of some rows, followed by the copies of them that a tree has."""
        assert self.copier is not None
        samples = self.training_table.samples[rows]
        copies = self.copier.copies_of(samples, self._ranks(rows), int(key))
        return self.training_table.beside(rows, copies)

    def assemble(self, grown: list[GrownTrees], before: Forest | None) -> Forest:
        """Make a forest of trees that were grown, following those of a forest grown before."""
        return assemble(
            grown,
            self.training_table.cell_format,
            self.training_table.columns,
            self.targets.class_count,
            self.target_format,
            before,
            1 if self.targets.class_count else self.targets.outputs,
            tuple(self.targets.classes_of),
        )


def _bags_of_core(drawn: TreeBags, order: np.ndarray) -> tuple[core.Bags, core.Bags | None]:
    """Return the bags of trees as the core takes them; those of leaves only if they differ."""
    bags = core.Bags(drawn.count, drawn.weight, order)
    if drawn.leaf_count is drawn.count:
        return bags, None
    return bags, core.Bags(drawn.leaf_count, drawn.leaf_weight, order)


def sum_out_of_bag(
    task: GrowthTask, forest: Forest, n_jobs: int | None, among: range | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Sum the posteriors of the trees whose bags left a row out, and count these trees.

    All trees take part, or those `among`. Threads take different rows, and the trees of each row
    come in order, so that the sums are the same for any number of threads.
    """
    shape = task.training_table.X.shape
    sums = np.zeros((shape[0], forest.outputs))
    votes = np.zeros(shape[0], dtype=np.uint32)
    size = max(1, BAG_BYTES // shape[0])
    among = range(forest.n_trees) if among is None else among
    for first in range(0, len(among), size):
        trees = among[first : first + size]
        left_out = np.empty((len(trees), shape[0]), dtype=bool)
        for i, key in enumerate(task.keys(trees)):
            drawn = task.bagging.bags(np.array([key]), core.StopFlag())
            np.logical_not(drawn.used[0], out=left_out[i])

        def add(part: slice, trees: range = trees, left_out: np.ndarray = left_out) -> None:
            table = task.training_table.part(part)
            for tree, out in zip(trees, left_out[:, part], strict=True):
                rows = np.flatnonzero(out).astype(np.uint32)
                forest.add_tree(tree, table, rows, sums[part], votes[part])

        over_blocks(add, shape, n_jobs)
    return sums, votes


def collect_leaf_samples(
    task: GrowthTask,
    forest: Forest,
    trees: range,
    target: np.ndarray,
    kept: np.ndarray | None,
    n_given: int,
    n_jobs: int | None,
) -> LeafSamples:
    """Find the training samples in the leaves of some trees of a forest; see `LeafSamples`."""
    size = max(1, BAG_BYTES // (4 * len(target)))
    lists, drawn = [], []
    for first in range(0, len(trees), size):
        some = trees[first : first + size]
        leaf = _leaves_of_rows(task, forest, some, n_jobs)
        for tree, key, leaves in zip(some, task.keys(some), leaf, strict=True):
            bags = task.bagging.bags(np.array([key]), core.StopFlag())
            lists.append(_lists_of_tree(task, forest, tree, key, leaves, bags))
            drawn.append(narrow(bags.times_used[0]))
    begin, entries = zip(*lists, strict=True)
    nodes = forest.tree_begin.astype(np.int64)[trees.start : trees.stop + 1]
    return LeafSamples(
        nodes - nodes[0],
        np.concatenate(begin),
        join_entries(list(entries)),
        np.stack(drawn),
        target,
        n_given,
        kept,
        digest_of(task.training_table.samples),
    )


def _leaves_of_rows(
    task: GrowthTask, forest: Forest, trees: range, n_jobs: int | None
) -> np.ndarray:
    """Return the leaf of each row in some trees (trees, rows); none where trees have copies."""
    shape = task.training_table.X.shape
    leaf = np.zeros((len(trees), shape[0] if task.copier is None else 0), dtype=np.int32)

    def find(part: slice) -> None:
        table = task.training_table.part(part)
        for i, tree in enumerate(trees):
            leaf[i, part] = forest.find_leaves(tree, table)

    if task.copier is None:
        over_blocks(find, shape, n_jobs)
    return leaf


def _lists_of_tree(
    task: GrowthTask, forest: Forest, tree: int, key: np.uint64, leaf: np.ndarray, bags: TreeBags
) -> tuple[np.ndarray, np.ndarray]:
    """Return where the list of each node of a tree begins, and the entries of the lists."""
    nodes = int(forest.tree_begin[tree + 1]) - int(forest.tree_begin[tree])
    row = np.flatnonzero(bags.leaf_count[0]).astype(np.uint32)
    leaf, weight = leaf[row] if task.copier is None else leaf, bags.leaf_weight[0][row]
    if task.copier is not None:
        leaf = forest.find_leaves(tree, task.beside_copies(row, key))
        # The core takes rows in increasing order, and each copy with its sample.
        times = 1 + task.copier.copies
        leaf = np.ascontiguousarray(leaf.reshape(times, -1).T).ravel()
        row, weight = np.repeat(row, times), np.repeat(weight, times)
    begin, row, weight = core.group_by_leaf(leaf, row, weight, nodes)
    return begin, pack_entries(row, weight)


class Stop:
    """A flag that asks growing threads to give up; in another process it stays unset."""

    def __init__(self) -> None:
        self.flag = core.StopFlag()

    def __reduce__(self) -> tuple[Any, ...]:
        return (Stop, ())


def _grow_chunk(work: tuple[GrowthTask, Stop], trees: range) -> list[GrownTrees]:
    task, stop = work
    task.training_table.make_ready()
    return task.grow(trees, stop.flag)


def grow_trees(
    task: GrowthTask, trees: range, n_jobs: int | None, verbose: int
) -> Iterator[GrownTrees]:
    """Grow the trees of some numbers, and yield a few at a time, in order, as they are ready."""
    progress = Progress(len(trees), verbose)
    stop = Stop()
    jobs = count_jobs(n_jobs, len(trees))
    size = min(CALL_ROWS // len(task.training_table.X), len(trees) // (jobs * CALLS_PER_JOB))
    chunks = [trees[i : i + max(size, 1)] for i in range(0, len(trees), max(size, 1))]
    try:
        shared = Shared((task, stop), task.training_table.X.nbytes)
        for some in map_in_order(_grow_chunk, shared, chunks, jobs):
            n_trees = sum(len(call.tree_size) for call in some)
            yield from some
            progress.advance(n_trees)
    except BaseException:
        stop.flag.set()
        raise
    finally:
        progress.close()
