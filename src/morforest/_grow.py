"""Growing the trees of a forest: bags, weights, and the only parallelism of a fit."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from morforest._kernel import core
from morforest._numbers import CellFormat, Cells, fits_bytes, fixed_weights
from morforest._validation import class_factors
from morforest.dictionary import Plan

# Few enough tasks to cost nothing, small enough ones for a smooth progress bar and even loads.
CHUNKS_PER_JOB = 16
TREES_PER_CHUNK = 8


class TrainingTable:
    """The training samples as the core holds them.

    Threads share one; other processes get the samples and build their own.
    """

    def __init__(self, X: np.ndarray, plan: Plan, cell_format: CellFormat, cells: Cells):
        self.X = X
        self.plan = plan
        self.cell_format = cell_format
        self.cells = cells
        self._build()

    def _build(self) -> None:
        self.dictionary = self.plan.build(direct=self.cell_format.real)
        cell_type = self.cells.cell_type
        if self.dictionary.narrow_patches and fits_bytes(self.X, self.cell_format):
            cell_type = "bytes"  # the same forest from half the memory
        self.core = core.Table(
            self.X, self.dictionary, cell_type, self.cells.shift, self.cells.limit
        )

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("dictionary", "core")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._build()


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

    def bag(self, tree_key: int) -> tuple[np.ndarray, np.ndarray]:
        """Return counts and weights of the rows in a tree."""
        count = self.count
        if self.draws:
            count = core.draw_bag(tree_key, self.draws, self.order, self.cumulative)
        if self.extra is None and self.class_weight is None:
            return count, count
        unit = np.ones(len(count)) if self.extra is None else self.extra
        if self.class_weight is not None:
            factors = self.class_weight
            if isinstance(factors, str):
                factors = class_factors(factors, self.classes, self.codes, unit * count)
            if factors[self.codes][count > 0].any():  # else only classes of weight zero were drawn
                unit = unit * factors[self.codes]
        count = np.where(unit > 0, count, 0).astype(np.uint32)
        return count, fixed_weights(unit, count)


def make_bagging(
    hashes: np.ndarray,
    target: np.ndarray,
    whole: np.ndarray | None,
    fractional: np.ndarray | None,
    draws: int,
    class_weight: Any,
    classes: np.ndarray,
    codes: np.ndarray,
) -> Bagging:
    """Put the rows into canonical order and cumulate their weights."""
    rows = len(hashes)
    order = np.lexsort((target, hashes)).astype(np.uint32)
    cumulative = np.empty(0, dtype=np.uint64)
    count = np.ones(rows, dtype=np.uint32)
    extra = None
    if whole is not None:
        count = whole
        if (whole != 1).any():
            cumulative = np.cumsum(whole[order], dtype=np.uint64)
    elif fractional is not None:
        if draws:
            # 2^52 / sum keeps float64's precision, and the sum of roundings below 2^64.
            fixed = np.rint(fractional[order] * (2.0**52 / fractional.sum()))
            cumulative = np.cumsum(np.maximum(fixed, 1), dtype=np.uint64)
        else:
            extra = fractional
    return Bagging(order, cumulative, draws, count, extra, class_weight, classes, codes)


@dataclass(frozen=True)
class GrowthTask:
    """Everything that the trees of one fit share."""

    table: TrainingTable
    bagging: Bagging
    seed: int
    targets: dict[str, Any]  # classes and class_count, or values and bits
    rule: dict[str, Any]

    def grow(self, tree: int, stop: Any) -> dict[str, np.ndarray]:
        """Grow the tree of a number."""
        key = core.tree_key(self.seed, tree)
        count, weight = self.bagging.bag(key)
        grown: dict[str, np.ndarray] = core.grow_tree(
            self.table.core,
            self.table.dictionary,
            key,
            count,
            weight,
            stop=stop,
            **self.targets,
            **self.rule,
        )
        return grown


class _Stop:
    """Asks growing threads to give up; in another process nobody asks."""

    def __init__(self) -> None:
        self.flag = core.StopFlag()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_Stop, ())


def _grow_chunk(task: GrowthTask, trees: range, stop: _Stop) -> list[dict[str, np.ndarray]]:
    return [task.grow(tree, stop.flag) for tree in trees]


def grow_trees(task: GrowthTask, trees: range, n_jobs: int | None, verbose: int) -> Iterator[dict]:
    """Grow the trees of the given numbers, in order, as they become ready."""
    progress = Progress(len(trees), verbose)
    stop = _Stop()
    jobs = min(effective_n_jobs(n_jobs), len(trees))
    try:
        if jobs == 1:
            for tree in trees:
                yield task.grow(tree, stop.flag)
                progress.advance(1)
        else:
            size = max(1, min(len(trees) // (jobs * CHUNKS_PER_JOB), TREES_PER_CHUNK))
            chunks = [trees[i : i + size] for i in range(0, len(trees), size)]
            run = Parallel(n_jobs=jobs, prefer="threads", return_as="generator")
            for chunk in run(delayed(_grow_chunk)(task, chunk, stop) for chunk in chunks):
                yield from chunk
                progress.advance(len(chunk))
    except BaseException:
        stop.flag.set()
        raise
    finally:
        progress.close()


class Progress:
    """A progress bar on standard error, with the time left."""

    def __init__(self, total: int, verbose: int):
        self.total = total
        self.done = 0
        self.active = bool(verbose) and total > 0
        self.start = time.monotonic()
        self.shown = 0.0
        self.terminal = self.active and sys.stderr.isatty()

    def advance(self, trees: int) -> None:
        """Count trees as done, and redraw a few times a second."""
        self.done += trees
        now = time.monotonic()
        interval = 0.1 if self.terminal else 5.0
        if self.active and (self.done == self.total or now - self.shown > interval):
            self.shown = now
            elapsed = now - self.start
            left = elapsed / self.done * (self.total - self.done)
            filled = 30 * self.done // self.total
            bar = "#" * filled + "-" * (30 - filled)
            text = f"trees {self.done}/{self.total} [{bar}] {elapsed:.1f} s, {left:.1f} s left"
            sys.stderr.write(f"\r{text}  " if self.terminal else f"{text}\n")
            sys.stderr.flush()

    def close(self) -> None:
        """End the line."""
        if self.terminal and self.done:
            sys.stderr.write("\n")
            sys.stderr.flush()
