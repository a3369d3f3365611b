"""Which training samples fill each leaf of a forest: what forest weights are made of."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from morforest._arrays import narrow, refusing, widen
from morforest._fixed_point import blocks, core_dtype
from morforest._model import Forest
from morforest._native import core
from morforest._states import stored
from morforest._validation import MAX_TARGET

DIGEST_BYTES = 8
NARROW_ROW, WIDE_ROW = 24, 32  # bits of the row in an entry of 32 and of 64 bits


@stored
@dataclass(eq=False)
class LeafSamples:
    """The training samples in the leaves of all trees, one list per node, and their targets.

    Rows are those that were trained on: where samples of weight zero were given to fit, `kept` says
    which sample each row is. A list holds each row once, in increasing order, with its weight in
    the leaf; copies of a sample count for the sample. Lists of splits are empty. An empty list of a
    leaf, which only honest trees have, stands for all leaf samples of its tree.
    """

    tree_begin: np.ndarray  # the first node of each tree, and the number of all nodes, as in Forest
    begin: np.ndarray  # per tree, where the list of each node begins, and the end of the last one
    entries: np.ndarray  # rows and weights as `pack_entries` does; lists stand behind one another
    drawn: np.ndarray  # (trees, rows): how often a tree used a row, for its splits or its leaves
    target: np.ndarray  # class numbers, or float64 numbers, of the rows; (n, k) of several outputs
    n_given: int  # samples given to fit
    kept: np.ndarray | None  # which of these the rows are; None for all
    digest: int  # of the rows

    def __post_init__(self) -> None:
        self.tree_begin = np.ascontiguousarray(self.tree_begin, dtype=np.int64)
        self.begin = np.ascontiguousarray(self.begin, dtype=np.uint32)
        self.drawn = narrow(self.drawn)

    @cached_property
    def core(self) -> core.LeafSamples:
        """The same as the core reads it, checked when it is made."""
        return core.LeafSamples(self.tree_begin, self.begin, self.entries, self.n_rows)

    @cached_property
    def ranked_targets(self) -> tuple[np.ndarray, np.ndarray]:
        """The distinct targets in increasing order, and the place of each row's among them."""
        value, rank = np.unique(self.target.astype(np.float64), return_inverse=True)
        return value, rank.astype(np.uint32)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.tree_begin) - 1

    @property
    def n_rows(self) -> int:
        """Number of rows that were trained on."""
        return len(self.target)

    @property
    def row(self) -> np.ndarray:
        """The row of each entry."""
        return unpack_entries(self.entries)[0]

    @property
    def weight(self) -> np.ndarray:
        """The weight of each entry."""
        return unpack_entries(self.entries)[1]

    def given(self) -> np.ndarray:
        """Return the number, among the samples given to fit, of each row."""
        return np.arange(self.n_rows) if self.kept is None else self.kept.astype(np.int64)

    def tree_first(self) -> np.ndarray:
        """Return where the lists of each tree begin in `entries`, and their end."""
        ends = self.begin[self.tree_begin[1:] + np.arange(self.n_trees)]
        return np.append(0, np.cumsum(ends, dtype=np.int64))

    def of_tree(self, tree: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return where the list of each node of a tree begins and ends, its rows and weights."""
        nodes = slice(int(self.tree_begin[tree]) + tree, int(self.tree_begin[tree + 1]) + tree + 1)
        first = self.tree_first()
        entries = slice(int(first[tree]), int(first[tree + 1]))
        return self.begin[nodes], *unpack_entries(self.entries[entries])

    def followed_by(self, later: LeafSamples) -> LeafSamples:
        """Return the lists of all trees, where later ones were grown on the same samples."""

        def both(name: str) -> np.ndarray:
            return np.concatenate([getattr(self, name), getattr(later, name)])

        return replace(
            later,
            tree_begin=np.append(self.tree_begin[:-1], later.tree_begin + self.tree_begin[-1]),
            begin=both("begin"),
            entries=join_entries([self.entries, later.entries]),
            drawn=both("drawn"),
        )

    def are_of(
        self, X: np.ndarray, target: np.ndarray, kept: np.ndarray | None, n_given: int
    ) -> bool:
        """Say whether a fit has the same samples, in the same order, and the same targets."""
        given = np.arange(len(target)) if kept is None else kept
        return (
            self.n_given == n_given
            and np.array_equal(self.given(), given)
            and np.array_equal(self.target, target)
            and self.digest == digest_of(X)
        )

    def of_output(self, k: int) -> LeafSamples:
        """Return the same with the targets of one of several outputs."""
        return replace(self, target=np.ascontiguousarray(self.target[:, k]))

    # -- files

    def check(self, forest: Forest) -> None:
        """Raise unless the lists are those of the leaves of a forest."""
        _ = self.core  # checks rows and weights
        if not np.array_equal(self.tree_begin, forest.tree_begin):
            raise ValueError("damaged model: the kept samples are those of other trees")
        if self._sizes()[forest.is_split()].any():
            raise ValueError("damaged model: samples are kept for nodes that are no leaves")
        outputs = () if forest.targets == 1 else (forest.targets,)
        if self.target.shape[1:] != outputs:
            raise ValueError("damaged model: the kept targets do not fit the outputs")
        if forest.class_count and (
            self.target.dtype.kind not in "iu"
            or (self.target.max(axis=0) >= (forest.classes_of or forest.class_count)).any()
        ):
            raise ValueError("damaged model: the kept targets do not fit the classes")

    def has_empty_leaves(self, forest: Forest) -> bool:
        """Say whether no sample fills some leaf of a forest, which may be so if it is honest."""
        return bool((self._sizes()[~forest.is_split()] == 0).any())

    def most_weights(self, forest: Forest) -> int:
        """Return a number of weights that no sample exceeds."""
        if self.has_empty_leaves(forest):
            return self.n_rows
        largest = np.maximum.reduceat(self._sizes(), self.tree_begin[:-1])
        return min(self.n_rows, int(largest.sum(dtype=np.int64)))

    def _sizes(self) -> np.ndarray:
        """Return the length of each node's list."""
        ends = self.tree_begin[1:-1] + np.arange(1, self.n_trees)  # from one tree to the next
        return np.delete(np.diff(self.begin), ends - 1)

    def _drawn_for_leaves(self) -> np.ndarray:
        """Return `drawn` as it is where weights are counts, and trees not honest."""
        drawn = []
        for tree in range(self.n_trees):
            _, row, weight = self.of_tree(tree)
            drawn.append(narrow(np.bincount(row, weight, self.n_rows).astype(np.uint32)))
        return np.stack(drawn)

    def __getstate__(self) -> dict[str, Any]:
        follows = np.array_equal(self.drawn, self._drawn_for_leaves())
        return {
            "tree_begin": narrow(self.tree_begin),
            "size": narrow(self._sizes()),
            "row": narrow(self.row),
            "weight": narrow(self.weight),
            "drawn": self.drawn[:0] if follows else self.drawn,
            "target": narrow(self.target),
            "classes": self.target.dtype.kind != "f",
            "n_given": self.n_given,
            "kept": None if self.kept is None else narrow(self.kept),
            "digest": self.digest,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        with refusing("model"):
            _unpack(self, state)


def _unpack(samples: LeafSamples, state: dict[str, Any]) -> None:
    """Set what a pickle holds, and check it."""

    def read(name: str, dtype: Any, ndim: int = 1) -> np.ndarray:
        return widen(name, state[name], dtype, ndim, "model")

    def require(condition: bool, what: str) -> None:
        if not condition:
            raise ValueError(f"damaged model: {what} of the kept samples")

    nodes, size = read("tree_begin", np.int64), read("size", np.uint32)
    row, weight = read("row", np.uint32), read("weight", np.uint32)
    fits = len(nodes) > 1 and nodes[0] == 0 and bool((np.diff(nodes) > 0).all())
    require(fits and nodes[-1] == len(size), "the trees")
    require(int(size.sum(dtype=np.uint64)) == len(row) == len(weight), "the sizes of leaves")
    n_given, digest, classes = state["n_given"], state["digest"], state["classes"]
    require(type(digest) is int and 0 <= digest < 1 << (8 * DIGEST_BYTES), "the digest")
    several = np.ndim(state["target"]) == 2
    target = read("target", np.uint32 if classes else np.float64, 2 if several else 1)
    require(type(classes) is bool and len(target) > 0, "the targets")
    require(bool((np.abs(target.astype(np.float64)) <= MAX_TARGET).all()), "the targets")
    kept = None if state["kept"] is None else read("kept", np.int64)
    numbers = np.arange(len(target)) if kept is None else kept
    fits = type(n_given) is int and len(numbers) == len(target) and bool((numbers >= 0).all())
    fits = fits and bool((np.diff(numbers) > 0).all()) and numbers[-1] < n_given < 2**31
    require(fits and (kept is not None or n_given == len(target)), "the numbers")
    total = np.append(0, np.cumsum(size, dtype=np.int64))
    begin = np.insert(total, nodes[1:-1], total[nodes[1:-1]])  # the end of each tree but the last
    begin -= np.repeat(total[nodes[:-1]], np.diff(nodes) + 1)
    bags = read("drawn", np.uint32, 2)
    samples.__init__(  # type: ignore[misc]
        nodes, begin, pack_entries(row, weight), bags, target, n_given, kept, digest
    )
    _ = samples.core
    if not len(bags):
        samples.drawn = narrow(samples._drawn_for_leaves())
    require(samples.drawn.shape == (len(nodes) - 1, len(target)), "the bags")
    for tree, drawn in enumerate(samples.drawn):
        require(bool(drawn[samples.of_tree(tree)[1]].all()), "the bags")


def pack_entries(row: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return rows and their weights in one number each: 24 and 8 bits, or 32 and 32."""
    fits = row.max(initial=0) < 1 << NARROW_ROW and weight.max(initial=0) < 1 << 32 - NARROW_ROW
    if not fits:
        return _pack_wide(row, weight)
    packed: np.ndarray = row.astype(np.uint32) | weight.astype(np.uint32) << np.uint32(NARROW_ROW)
    return packed


def _pack_wide(row: np.ndarray, weight: np.ndarray) -> np.ndarray:
    packed: np.ndarray = row.astype(np.uint64) | weight.astype(np.uint64) << np.uint64(WIDE_ROW)
    return packed


def unpack_entries(entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and weights of entries."""
    shift = entries.dtype.type(NARROW_ROW if entries.dtype == np.uint32 else WIDE_ROW)
    mask = (entries.dtype.type(1) << shift) - entries.dtype.type(1)
    return (entries & mask).astype(np.uint32), (entries >> shift).astype(np.uint32)


def join_entries(parts: list[np.ndarray]) -> np.ndarray:
    """Put entries behind one another, in the wider form if some of them need it."""
    if len({part.dtype for part in parts}) > 1:
        parts = [_pack_wide(*unpack_entries(part)) for part in parts]
    return np.concatenate(parts)


def digest_of(X: np.ndarray) -> int:
    """Return a number that tells samples from others, whatever type they are given in."""
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    dtype = core_dtype(X)
    for part in blocks(X.shape):
        digest.update(core.hash_rows(np.ascontiguousarray(X[part], dtype=dtype)).tobytes())
    return int.from_bytes(digest.digest(), "little")
