"""Forests on samples that do not fit into the memory of one machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from morforest import _parameters as check
from morforest._block_data import LocalBlocks, groups_of
from morforest._block_growth import GrowthPlan, check_forest, fit_from
from morforest._grow import Stop
from morforest._grown_trees import GrownTrees
from morforest._parallel import Shared, count_jobs, map_in_order

__all__ = ["fit_blocks"]

SMALLEST_MEMORY = 1 << 20
Rows = tuple[int, np.ndarray, np.ndarray]  # number of a tree, its samples, their targets


class _Source(LocalBlocks):
    """Blocks of this process, and the trees that grow on them, some per reading."""

    def __init__(self, X: Any, y: Any, memory: int, n_jobs: int | None):
        super().__init__(X, y)
        self.memory, self.n_jobs = memory, n_jobs

    def grow(self, plan: GrowthPlan, trees: range) -> Iterator[list[GrownTrees]]:
        """Grow trees on the rows that they draw, and yield them in order."""
        stop = Stop()
        bytes_of_tree = plan.draws * int(np.prod(self.shape)) * plan.dtype.itemsize
        try:
            for some in groups_of(trees, self.memory // max(1, bytes_of_tree)):
                rows = self.gather([plan.draw(tree)[0] for tree in some])
                work = [(tree, *of_tree) for tree, of_tree in zip(some, rows, strict=True)]
                del rows
                jobs = count_jobs(self.n_jobs, len(some))
                yield from map_in_order(_grow, Shared((plan, stop), 0), work, jobs)
        except BaseException:
            stop.flag.set()
            raise


def _grow(shared: tuple[GrowthPlan, Stop], rows: Rows) -> list[GrownTrees]:
    plan, stop = shared
    return plan.grow(*rows, stop.flag)


def fit_blocks(estimator: Any, X: Any, y: Any = None, *, memory: int = 1 << 30) -> Any:
    """Fit a forest to samples that are read in blocks, so that they need not fit into memory.

    Each tree sees only the rows that it draws. The blocks are read once for what all trees share,
    such as the classes and the range of the numbers, and then once for every few trees, as many as
    `memory` allows. The forest does not depend on the blocks, on `memory`, or on the number of
    threads, but on the order of the samples. :func:`morforest.dask.fit` grows the same forest on a
    cluster.

    Parameters
    ----------
    estimator : MorfClassifier or MorfRegressor
        The forest to fit. Its `max_samples` says how many samples each tree draws; None means the
        0.7th power of their number, but at least 10,000. Trees draw with replacement unless
        ``bootstrap=False``. `oob_score`, `keep_samples`, `warm_start` and ``honest="oob"`` are not
        available.
    X : array-like, iterable or callable
        With `y`, an array of shape (n_samples, ...) that is read in slices, such as a
        `numpy.memmap` or a dataset of h5py or zarr. Without `y`, an iterable of blocks (X, y) that
        can be read several times, such as a list, or a function that returns a new iterator.
    y : array-like of shape (n_samples,) or None, default=None
        Class labels or numbers.
    memory : int, default=1073741824
        Number of bytes that the samples of the trees of one reading may take. Growing takes a few
        times the samples of a single tree in addition, per thread.

    Returns
    -------
    estimator : MorfClassifier or MorfRegressor
        The given estimator, fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from morforest import MorfClassifier, Patch, fit_blocks
    >>> def blocks():
    ...     for number in range(4):
    ...         X = np.random.default_rng(number).normal(size=(500, 12))
    ...         yield X, X[:, 3:6].sum(axis=1) > 0
    >>> forest = MorfClassifier(Patch(), n_estimators=20, max_samples=200, random_state=0)
    >>> fit_blocks(forest, blocks).max_samples_
    200
    """
    check_forest(estimator)
    check.check_integer("memory", memory, SMALLEST_MEMORY)
    fit_from(estimator, _Source(X, y, int(memory), estimator.n_jobs))
    return estimator
