"""Forests on dask arrays, which may be larger than the memory of any worker.

``pip install morforest[dask]`` installs what this module needs. Without a
:class:`distributed.Client`, work runs in the threads of this process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from morforest import _parameters as check
from morforest._block_data import Summary, groups_of, merge, read_block, summarise, take
from morforest._block_growth import GrowthPlan, check_forest, fit_from
from morforest._grown_trees import GrownTrees
from morforest._native import core
from morforest.blocks import SMALLEST_MEMORY

try:
    import dask
    import dask.array as da
    from distributed import default_client
except ImportError as error:
    raise ImportError(
        'morforest.dask needs dask: install it with pip install "morforest[dask]".'
    ) from error

__all__ = ["fit", "predict", "predict_proba"]

SHARE_OF_MEMORY = 8  # the samples of one round of trees take an eighth of the workers' memory


class _Source:
    """The blocks of dask arrays, and the trees that grow where these are."""

    def __init__(self, X: Any, y: Any, memory: int | None):
        X, y = _aligned(X, y)
        self.rows, self.shape = int(X.shape[0]), tuple(int(k) for k in X.shape[1:])
        sizes = X.chunks[0]
        self.firsts = np.append(0, np.cumsum(sizes, dtype=np.int64))
        self.blocks = [
            (int(first), samples, targets, self.shape)
            for first, samples, targets in zip(
                self.firsts[:-1], X.to_delayed().ravel(), y.to_delayed().ravel(), strict=True
            )
            if self.rows
        ]
        self.client = _client()
        self.memory = _memory_of_workers(self.client) if memory is None else memory

    def summarise(self, wanted: np.ndarray, classes: bool) -> Summary:
        """Summarise all blocks, each where it is."""
        parts = self._rows_of_blocks(wanted)
        tasks = [
            dask.delayed(_summarise)(*block, rows, classes)
            for block, rows in zip(self.blocks, parts, strict=True)
        ]
        return merge(list(self._compute(tasks)), classes)

    def grow(self, plan: GrowthPlan, trees: range) -> Iterator[list[GrownTrees]]:
        """Grow trees where their rows have been brought together, and yield them in order."""
        bytes_of_tree = plan.draws * int(np.prod(self.shape)) * plan.dtype.itemsize
        shared = dask.delayed(plan, traverse=False)
        for some in groups_of(trees, self.memory // max(1, bytes_of_tree)):
            of_trees = [self._rows_of_blocks(plan.draw(tree)[0]) for tree in some]
            taken = [
                dask.delayed(_take_for_trees, nout=len(some))(*block, list(rows))
                for block, rows in zip(self.blocks, zip(*of_trees, strict=True), strict=True)
            ]
            yield from self._compute(
                [
                    dask.delayed(_grow)(shared, tree, [pieces[place] for pieces in taken])
                    for place, tree in enumerate(some)
                ]
            )

    def _rows_of_blocks(self, rows: np.ndarray) -> list[np.ndarray]:
        """Cut rows, in increasing order, into those of each block."""
        return np.split(rows, np.searchsorted(rows, self.firsts[1:-1].astype(np.uint64)))

    def _compute(self, tasks: Sequence[Any]) -> Iterator[Any]:
        """Yield the results of tasks in order."""
        if self.client is None:
            yield from dask.compute(*tasks)
            return
        futures = self.client.compute(list(tasks))
        try:
            while futures:
                yield futures[0].result()
                futures.pop(0).release()
        finally:
            self.client.cancel(futures)


def _aligned(X: Any, y: Any) -> tuple[Any, Any]:
    """Return arrays whose blocks hold the same whole samples."""
    for name, values in (("X", X), ("y", y)):
        if not isinstance(values, da.Array):
            raise TypeError(
                f"{name} must be a dask array, got {type(values).__name__}: use "
                "dask.array.from_array, or to_dask_array(lengths=True) of a dask data frame. "
                "morforest.fit_blocks reads other arrays piece by piece."
            )
    if any(np.isnan(size) for size in (*X.shape, *y.shape)):
        X, y = X.compute_chunk_sizes(), y.compute_chunk_sizes()
    if X.ndim < 2 or not all(X.shape):
        raise ValueError(
            f"X has shape {X.shape}: it needs an axis of samples and at least one of features, and "
            "none of them empty."
        )
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1 or len(y) != len(X):
        raise ValueError(
            f"X has {len(X)} samples and y has shape {y.shape}: give one target per sample. "
            "Several outputs are not supported for data in blocks."
        )
    X = X.rechunk(dict.fromkeys(range(1, X.ndim), -1))
    return X, y.rechunk((X.chunks[0],))


def _client() -> Any:
    """Return the client of a cluster, if there is one."""
    try:
        return default_client()
    except ValueError:
        return None


def _memory_of_workers(client: Any) -> int:
    """Return how many bytes of samples are brought together at a time."""
    if client is None:
        return 1 << 30
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    limits = [int(worker["memory_limit"] or 1 << 30) for worker in workers]
    return max(SMALLEST_MEMORY, sum(limits) // SHARE_OF_MEMORY)


# Blocks are read and used in one task: between two tasks, dask may move a whole block.
def _summarise(
    first: int, X: Any, y: Any, shape: tuple[int, ...], wanted: np.ndarray, classes: bool
) -> Summary:
    return summarise(read_block(first, X, y, shape), wanted, classes)


def _take_for_trees(
    first: int, X: Any, y: Any, shape: tuple[int, ...], rows: list[np.ndarray]
) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    block = read_block(first, X, y, shape)
    return tuple(take(block, of_tree) for of_tree in rows)


def _grow(
    plan: GrowthPlan, tree: int, pieces: list[tuple[np.ndarray, np.ndarray]]
) -> list[GrownTrees]:
    X, y = zip(*pieces, strict=True)
    pieces.clear()
    return plan.grow(tree, np.concatenate(X), np.concatenate(y), core.StopFlag())


def fit(estimator: Any, X: Any, y: Any, *, memory: int | None = None) -> Any:
    """Fit a forest to dask arrays.

    Each tree draws a few rows of all blocks, which are brought together on one worker, and grows
    there. The forest depends neither on the blocks nor on the workers: it is the one that
    :func:`morforest.fit_blocks` grows on the same samples in one process. A worker that is lost
    does not change it.

    Parameters
    ----------
    estimator : MorfClassifier or MorfRegressor
        The forest to fit; see :func:`morforest.fit_blocks` for what its parameters mean. `n_jobs`
        does not matter on a cluster.
    X : dask array of shape (n_samples, ...)
        Training samples. A few blocks should fit into the memory of a worker at a time.
    y : dask array of shape (n_samples,)
        Class labels or numbers.
    memory : int or None, default=None
        Number of bytes that samples on their way to trees may take on all workers together. More of
        it means that the blocks are read less often. None means an eighth of the memory of the
        workers.

    Returns
    -------
    estimator : MorfClassifier or MorfRegressor
        The given estimator, fitted. It predicts arrays of this process as always.

    Examples
    --------
    >>> import dask.array as da
    >>> import morforest.dask
    >>> from morforest import MorfClassifier
    >>> X = da.random.default_rng(0).normal(size=(2000, 10), chunks=(500, 10))
    >>> y = X[:, 0] > 0
    >>> forest = MorfClassifier(n_estimators=10, max_samples=200, random_state=0)
    >>> forest = morforest.dask.fit(forest, X, y)
    >>> morforest.dask.predict(forest, X).shape
    (2000,)
    """
    check_forest(estimator)
    if memory is not None:
        check.check_integer("memory", memory, SMALLEST_MEMORY)
    fit_from(estimator, _Source(X, y, memory))
    return estimator


def predict(estimator: Any, X: Any) -> Any:
    """Predict the samples of a dask array, block by block.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator of this library, with the method `predict`.
    X : dask array of shape (n_samples, ...)
        Samples.

    Returns
    -------
    y : dask array of shape (n_samples,)
        What `predict` returns for each sample. Nothing is computed before it is asked for.
    """
    return _map_blocks(estimator, "predict", X)


def predict_proba(estimator: Any, X: Any) -> Any:
    """Predict the class probabilities of the samples of a dask array, block by block.

    Parameters
    ----------
    estimator : estimator
        A fitted classifier of this library.
    X : dask array of shape (n_samples, ...)
        Samples.

    Returns
    -------
    probabilities : dask array of shape (n_samples, n_classes)
        What `predict_proba` returns for each sample. Nothing is computed before it is asked for.
    """
    return _map_blocks(estimator, "predict_proba", X)


def _map_blocks(estimator: Any, method: str, X: Any) -> Any:
    if not hasattr(estimator, method):
        raise TypeError(f"{type(estimator).__name__} has no method {method}.")
    if not isinstance(X, da.Array):
        raise TypeError(
            f"X must be a dask array, got {type(X).__name__}: pass other arrays to "
            f"estimator.{method}."
        )
    X = X.rechunk(dict.fromkeys(range(1, X.ndim), -1))
    example = getattr(estimator, method)(np.zeros((1, *X.shape[1:]), dtype=X.dtype))
    if isinstance(example, list):
        raise ValueError("several outputs are not supported for data in blocks.")
    return X.map_blocks(
        _predict,
        model=dask.delayed(estimator, traverse=False),
        method=method,
        dtype=example.dtype,
        drop_axis=list(range(1, X.ndim)),
        new_axis=[1] if example.ndim == 2 else None,
        chunks=(X.chunks[0], *((size,) for size in example.shape[1:])),
        meta=example[:0],
    )


def _predict(X: np.ndarray, model: Any, method: str) -> np.ndarray:
    found: np.ndarray = getattr(model, method)(X)
    return found
