"""Training samples that come in blocks, because all of them do not fit into memory.

A summary of each block says what a fit must know of all samples before the first tree grows. Each
tree then sees the few rows that it draws. Nothing depends on where one block ends and the next
begins: rows are known by their number among all samples.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from morforest import _validation as validation
from morforest._fixed_point import blocks, to_core_dtype

SAMPLE_ROWS = 20_000  # a sample of all rows, from which number formats and shared atoms are chosen
SAMPLE_VALUES = 1 << 24
FEWEST_ROWS = 1024
READ_VALUES = 1 << 23  # of an array, in one block


@dataclass(frozen=True)
class Block:
    """Some consecutive samples, as flat rows, and their targets."""

    first: int  # number of the first among all samples
    X: np.ndarray
    y: np.ndarray

    @property
    def end(self) -> int:
        """Number of the first sample behind the block."""
        return self.first + len(self.X)


@dataclass(frozen=True)
class Summary:
    """What a fit must know of a block, or of several that follow each other."""

    rows: int
    dtype: np.dtype[Any]
    low: np.ndarray  # of each feature; missing values do not count
    high: np.ndarray
    fraction: np.ndarray  # the first row with a number that is not whole; empty if there is none
    gap: np.ndarray  # the first row with a missing value
    labels: np.ndarray  # the different targets, or the lowest and the highest number
    counts: np.ndarray  # how often each of these occurs
    sample: np.ndarray  # the wanted rows
    sample_y: np.ndarray

    @property
    def typical_rows(self) -> np.ndarray:
        """Rows that show all that a number format depends on."""
        parts = [self.sample, self.low[None], self.high[None], self.fraction, self.gap]
        return np.concatenate([part.astype(self.dtype, copy=False) for part in parts])


def read_block(first: int, X: Any, y: Any, shape: tuple[int, ...]) -> Block:
    """Check samples and targets, and return them as flat rows."""
    validation.refuse_masked("X", X)
    validation.refuse_masked("y", y)
    X, y = np.asarray(X), np.asarray(y)
    place = f"the block that begins at sample {first}"
    if X.shape[1:] != shape:
        raise ValueError(
            f"X has samples of shape {X.shape[1:]} in {place}, but of shape {shape} before: all "
            "blocks need samples of one shape."
        )
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.shape != (len(X),):
        raise ValueError(
            f"y has shape {y.shape} in {place}, which has {len(X)} samples: give one target per "
            "sample. Several outputs are not supported for data in blocks."
        )
    if X.dtype.kind not in "buif":
        raise ValueError(
            f"X has dtype {X.dtype} in {place}, which is not a kind of number: convert it first."
        )
    if X.dtype == np.uint64:
        if X.size and X.max() >= 2**63:
            raise ValueError(
                f"X has integers of 2^63 or more in {place}: convert X to float64 first."
            )
        X = X.astype(np.int64)
    rows = X.reshape(len(X), -1)
    if X.dtype.kind == "f":
        rows = to_core_dtype(rows) if X.dtype.itemsize > 8 else rows
        if any(np.isinf(rows[part]).any() for part in blocks(rows.shape)):
            raise ValueError(f"X contains infinity in {place}: drop those samples or clip them.")
    return Block(first, rows, y)


def summarise(block: Block, wanted: np.ndarray, classes: bool) -> Summary:
    """Say what a fit must know of a block; `wanted` are numbers of rows, of all samples."""
    X, y = block.X, block.y
    pieces = [X[part] for part in blocks(X.shape)]
    low = np.stack([np.fmin.reduce(piece, axis=0) for piece in pieces])
    high = np.stack([np.fmax.reduce(piece, axis=0) for piece in pieces])
    none = np.empty((0, X.shape[1]), dtype=X.dtype)  # no part of X, which it would keep alive
    fraction = gap = none
    if X.dtype.kind == "f":
        fraction = _first_row(pieces, lambda x: (x != np.rint(x)) & ~np.isnan(x), none)
        gap = _first_row(pieces, np.isnan, none)
    if classes:
        labels, counts = np.unique(y, return_counts=True)
    else:
        numbers = validation.check_targets(y, len(y), "squared_error")
        labels, counts = np.array([numbers.min(), numbers.max()]), np.array([len(y), 0])
    mine = _within(wanted, block)
    return Summary(
        len(X),
        X.dtype,
        np.fmin.reduce(low, axis=0),
        np.fmax.reduce(high, axis=0),
        fraction,
        gap,
        labels,
        counts,
        np.ascontiguousarray(X[mine]),
        y[mine],
    )


def _first_row(
    pieces: list[np.ndarray], test: Callable[[np.ndarray], np.ndarray], none: np.ndarray
) -> np.ndarray:
    for piece in pieces:
        found = np.flatnonzero(test(piece).any(axis=1))
        if len(found):
            return piece[found[:1]]
    return none


def _within(rows: np.ndarray, block: Block) -> np.ndarray:
    """Return which of some rows, in increasing order, lie in a block, counted from its first."""
    begin, end = np.searchsorted(rows, [block.first, block.end])
    return (rows[begin:end] - np.uint64(block.first)).astype(np.int64)


def merge(summaries: Sequence[Summary], classes: bool) -> Summary:
    """Summarise blocks that follow each other."""
    dtype = np.result_type(*(some.dtype for some in summaries))

    def first_of(name: str) -> np.ndarray:
        found = [rows for rows in (getattr(some, name) for some in summaries) if len(rows)]
        none: np.ndarray = getattr(summaries[0], name)
        return found[0] if found else none

    labels = np.concatenate([some.labels for some in summaries])
    counts = np.concatenate([some.counts for some in summaries])
    if classes:
        labels, which = np.unique(labels, return_inverse=True)
        counts = np.bincount(which, counts).astype(np.int64)
    else:
        labels, counts = np.array([labels.min(), labels.max()]), np.array([counts.sum(), 0])
    return Summary(
        sum(some.rows for some in summaries),
        dtype,
        np.fmin.reduce([some.low for some in summaries]),
        np.fmax.reduce([some.high for some in summaries]),
        first_of("fraction"),
        first_of("gap"),
        labels,
        counts,
        np.concatenate([some.sample for some in summaries]),
        np.concatenate([some.sample_y for some in summaries]),
    )


def take(block: Block, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return those of some rows that lie in a block, and their targets."""
    mine = _within(rows, block)
    return np.ascontiguousarray(block.X[mine]), block.y[mine]


class LocalBlocks:
    """Blocks of this process: an array that is read piece by piece, or any iterable of blocks."""

    def __init__(self, X: Any, y: Any):
        self.X, self.y = X, y
        self.whole = y is not None
        if self.whole:
            self.rows, self.shape = self._size_of_array()
        else:
            self.rows, self.shape = self._size_of_iterable()
        if not self.rows:
            raise ValueError("X has no samples.")
        if not self.shape:
            raise ValueError(
                "X must have an axis of samples and at least one of features, such as "
                "(n_samples, n_features)."
            )

    def _size_of_array(self) -> tuple[int, tuple[int, ...]]:
        if not hasattr(self.X, "shape") or not hasattr(self.X, "__getitem__"):
            raise TypeError(
                "X must be an array that can be read in slices, such as numpy.memmap, or, without "
                f"y, an iterable of blocks (X, y); got {type(self.X).__name__}."
            )
        rows = int(self.X.shape[0]) if self.X.shape else 0
        if len(self.y) != rows:
            raise ValueError(f"X has {rows} samples but y has {len(self.y)}: they must match.")
        return rows, tuple(int(k) for k in self.X.shape[1:])

    def _size_of_iterable(self) -> tuple[int, tuple[int, ...]]:
        if not callable(self.X) and (
            not isinstance(self.X, Iterable) or isinstance(self.X, (str, bytes, np.ndarray))
        ):
            raise TypeError(
                "without y, X must be an iterable of blocks (X, y), or a function that returns "
                f"one; got {type(self.X).__name__}."
            )
        if isinstance(self.X, Iterator):
            raise TypeError(
                "X is an iterator, which can be read once, but a fit reads the blocks several "
                "times: pass a list of blocks, or a function that returns a new iterator."
            )
        rows, shape = 0, None
        for X, _ in self._pairs():
            shape = np.shape(X)[1:] if shape is None else shape
            rows += len(X)
        return rows, shape or ()

    def _pairs(self) -> Iterator[tuple[Any, Any]]:
        for pair in self.X() if callable(self.X) else self.X:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise ValueError(
                    f"each block must be a pair (X, y), got {type(pair).__name__}: yield samples "
                    "together with their targets."
                )
            yield pair[0], pair[1]

    def __iter__(self) -> Iterator[Block]:
        first = 0
        if self.whole:
            size = max(1, READ_VALUES // math.prod(self.shape))
            for first in range(0, self.rows, size):
                some = slice(first, min(first + size, self.rows))
                yield read_block(first, self.X[some], self.y[some], self.shape)
            return
        for X, y in self._pairs():
            if len(X):
                yield read_block(first, X, y, self.shape)
            first += len(X)
        if first != self.rows:
            raise ValueError(
                f"X had {self.rows} samples when it was read first, and {first} now: blocks must "
                "be the same each time."
            )

    def summarise(self, wanted: np.ndarray, classes: bool) -> Summary:
        """Summarise all blocks."""
        return merge([summarise(block, wanted, classes) for block in self], classes)

    def gather(self, rows: Sequence[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return some rows and their targets, for each of several trees, in one reading."""
        found: list[tuple[np.ndarray, np.ndarray]] = []
        filled = [0] * len(rows)
        for block in self:
            if not found:  # room for all, so that nothing is held twice
                found = [
                    (
                        np.empty((len(some), block.X.shape[1]), dtype=block.X.dtype),
                        np.empty(len(some), dtype=block.y.dtype),
                    )
                    for some in rows
                ]
            for i, some in enumerate(rows):
                X, y = take(block, some)
                found[i] = room, targets = _widened(found[i], X, y)
                place = slice(filled[i], filled[i] + len(X))
                room[place], targets[place] = X, y
                filled[i] += len(X)
        return found


def _widened(
    room: tuple[np.ndarray, np.ndarray], X: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return room for samples and targets of types that also hold those of another block."""
    return (
        room[0].astype(np.result_type(room[0], X), copy=False),
        room[1].astype(np.result_type(room[1], y), copy=False),
    )


def groups_of(items: range, size: int) -> Iterator[range]:
    """Cut a range into parts of so many numbers."""
    bounds = [*range(items.start, items.stop, max(1, size)), items.stop]
    return (range(a, b) for a, b in itertools.pairwise(bounds))


def sample_size(features: int) -> int:
    """Return how many rows represent all samples."""
    return max(FEWEST_ROWS, min(SAMPLE_ROWS, SAMPLE_VALUES // features))
