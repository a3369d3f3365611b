"""The fitted forest: flat arrays, and what can be asked of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed, effective_n_jobs

from morforest._columns import COLUMN_CELLS, COMBINED_CELLS, Columns
from morforest._fixed_point import CellFormat, TargetFormat, cells_for
from morforest._forms import PooledView, over_windows, own_terms, read_views, values_of
from morforest._native import core
from morforest._parallel import over_rows
from morforest._pickling import narrow, pack, raw_sources, unpack, widen
from morforest._validation import MAX_CLASSES

SOURCE_NUMBERS, POOLED_VIEW_NUMBERS = 5, 7  # of the core: a view's masks of axes, its source
ROWS_PER_JOB = 256  # below this a call is not worth a thread
COLUMN_VALUES = 1 << 22  # of columns that are held at once to walk the trees
PATH_ROWS = 256  # whose decision paths are followed at once
USED_BYTES = 1 << 24  # of sets of features that are held at once

# The core's types. In memory each array is kept in the narrowest type that holds it; see _pack.py
# for pickles.
CORE_TYPES: dict[str, Any] = {
    "views": np.uint32,
    "tree_begin": np.int64,
    "next": np.int32,
    "term_count": np.uint32,
    "term_cell": np.uint32,
    "term_weight": np.float64,
    "distribution_size": np.uint32,
    "distribution_class": np.uint32,
    "distribution_weight": np.uint32,
    "leaf_value": np.float64,
    "pooled_views": np.float64,
    "form_op": np.uint8,
    "form_bias": np.int64,
    "form_window": np.uint32,
}
FORM_ARRAYS = ("pooled_views", "form_op", "form_bias", "form_window")


def _none() -> np.ndarray:
    return np.empty(0, dtype=np.uint8)


@dataclass
class Forest:
    """All trees' nodes in parallel arrays.

    ``next`` of a split is its left child, counted within the tree; the right child follows it. Of
    a leaf it is ``-1 - payload``: a payload below ``class_count`` says that the leaf holds that
    class alone, ``class_count + i`` points to distribution `i`; in regression payload `i` points
    to ``leaf_value[i]``, in boosting to the `i`-th group of `values` numbers there. Thresholds
    are twice the midpoint, in cells, for integer cells.
    """

    shape: tuple[int, ...]
    sources: np.ndarray  # the channel that each view looks at, as the core takes it
    views: np.ndarray  # bit masks of the axes along which each view holds prefix sums
    cell_format: CellFormat
    class_count: int
    gain_exponent: int  # gains are stored divided by two to this power
    tree_begin: np.ndarray
    next: np.ndarray
    threshold: np.ndarray
    weight: np.ndarray
    gain: np.ndarray
    term_count: np.ndarray
    term_cell: np.ndarray
    term_weight: np.ndarray
    distribution_size: np.ndarray
    distribution_class: np.ndarray
    distribution_weight: np.ndarray
    leaf_value: np.ndarray
    values: int = 1  # of a leaf, where there are no classes
    pooled_views: np.ndarray = field(default_factory=_none)  # as the core takes them
    form_op: np.ndarray = field(default_factory=_none)  # a node; empty if all atoms are linear
    form_bias: np.ndarray = field(default_factory=_none)
    form_window: np.ndarray = field(default_factory=_none)  # two counts and strides a node
    columns: Columns | None = None  # what features are made of, if not the samples' own

    def __post_init__(self) -> None:
        for name in [found.name for found in fields(self)]:
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                setattr(self, name, narrow(value))
        for name in FORM_ARRAYS:
            if not len(getattr(self, name)):  # of linear forests, whatever type they came in
                setattr(self, name, _none())

    @cached_property
    def _core(self) -> Any:
        """The forest as the core predicts with it, made and checked when it is first needed."""
        arrays = {name: widen(name, getattr(self, name), t) for name, t in CORE_TYPES.items()}
        weight = widen("weight", self.weight, np.uint32)
        gain = widen("gain", self.gain, np.float32)
        if not len(weight) == len(gain) == len(self.next) or not np.isfinite(gain).all():
            raise ValueError("damaged forest: weights or gains do not fit the nodes")
        if not 0 <= self.class_count <= MAX_CLASSES:
            raise ValueError(f"damaged forest: {self.class_count} classes")
        if not 1 <= self.values <= MAX_CLASSES:
            raise ValueError(f"damaged forest: {self.values} values a leaf")
        if self.columns is not None:
            self._check_columns()
        real = self.cell_format.real
        sources = widen("sources", self.sources, np.float64)
        if len(sources) != len(raw_sources(len(arrays["views"]))):
            raise ValueError("damaged forest: sources do not fit the views")
        if real and not np.array_equal(sources, raw_sources(len(arrays["views"]))):
            raise ValueError("damaged forest: float64 cells of derived channels")
        threshold = widen("threshold", self.threshold, np.float64 if real else np.int64)
        built = core.Forest(
            shape=list(self.shape),
            sources=sources,
            threshold=np.empty(0, np.int64) if real else threshold,
            real_threshold=threshold if real else np.empty(0),
            class_count=self.class_count,
            values=self.values,
            **arrays,
        )
        # What a pickle leaves out must follow from the rest.
        leaf = ~self.is_split()
        if any(((values != 0) & leaf).any() for values in (threshold, gain, arrays["term_count"])):
            raise ValueError("damaged forest: a leaf has a threshold, a gain or an atom")
        summed = core.node_weights(arrays["tree_begin"], arrays["next"], weight[leaf])
        if not np.array_equal(summed, weight):
            raise ValueError("damaged forest: the weights of children are not their parent's")
        return built

    def _check_columns(self) -> None:
        if not isinstance(self.columns, Columns) or self.shape != (self.columns.size,):
            raise ValueError("damaged forest: columns do not fit the features")
        if self.cell_format.real or self.cell_format.shift or len(self.pooled_views):
            raise ValueError("damaged forest: columns are plain integers")

    def check(self) -> Forest:
        """Refuse a damaged forest now, and not when it is first needed."""
        _ = self._core
        return self

    def __getstate__(self) -> dict[str, Any]:
        return pack(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**unpack(state))  # type: ignore[misc]
        self.check()

    # -- prediction

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.tree_begin) - 1

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return self.shape if self.columns is None else self.columns.shape

    @property
    def combines(self) -> bool:
        """Whether a split is by several columns."""
        return self.columns is not None and bool((self.term_count > 1).any())

    @property
    def outputs(self) -> int:
        """Numbers that a tree says of a sample."""
        return self.class_count or self.values

    def predict(self, X: np.ndarray, n_jobs: int | None = 1) -> np.ndarray:
        """Return mean posteriors (n, classes), or mean values (n, 1)."""
        return self._predict(X, n_jobs, mean=True)

    def predict_sum(self, X: np.ndarray, n_jobs: int | None = 1) -> np.ndarray:
        """Return sums of the trees' values (n, values)."""
        return self._predict(X, n_jobs, mean=False)

    def _predict(self, X: np.ndarray, n_jobs: int | None, mean: bool) -> np.ndarray:
        out = np.zeros((len(X), self.outputs))
        self._run(self._core.predict, X, out, n_jobs, mean)
        return out

    def apply(self, X: np.ndarray, n_jobs: int | None = 1) -> np.ndarray:
        """Return the leaf of each sample in each tree (n, trees)."""
        out = np.zeros((len(X), self.n_trees), dtype=np.int32)
        self._run(self._core.apply, X, out, n_jobs)
        return out

    def _run(
        self, method: Any, X: np.ndarray, out: np.ndarray, n_jobs: int | None, *more: bool
    ) -> None:
        if self.columns is not None:
            self._run_on_columns(method, X, out, n_jobs, *more)
            return
        cells = cells_for(X, self.cell_format, self._core.takes_bytes)
        arguments = (cells.cell_type, cells.shift, cells.limit, cells.extra_bits, *more)
        jobs = 1
        if len(X) >= 2 * ROWS_PER_JOB:
            jobs = min(effective_n_jobs(n_jobs), len(X) // ROWS_PER_JOB)
        if jobs == 1:
            method(X, *arguments, out)
            return
        parts = np.linspace(0, len(X), jobs + 1).astype(int)
        Parallel(n_jobs=jobs, prefer="threads", require="sharedmem")(
            delayed(method)(X[a:b], *arguments, out[a:b]) for a, b in itertools.pairwise(parts)
        )

    def _run_on_columns(
        self, method: Any, X: np.ndarray, out: np.ndarray, n_jobs: int | None, *more: bool
    ) -> None:
        """Compute the columns of some rows after others, and walk the trees with these."""
        assert self.columns is not None
        cells = COMBINED_CELLS if self.combines else COLUMN_CELLS
        arguments = (cells.cell_type, cells.shift, cells.limit, cells.extra_bits, *more)
        read, some = self.columns.reader(X), self.columns.rows_at_once()

        def work(part: slice) -> None:
            # Trees are walked by many rows at once, of which atoms are computed in smaller parts.
            parts = [
                read(slice(first, min(first + some, part.stop)))
                for first in range(part.start, part.stop, some)
            ]
            method(np.concatenate(parts, dtype=np.float32), *arguments, out[part])

        jobs = min(effective_n_jobs(n_jobs), -(-len(X) // some))
        most = max(some, COLUMN_VALUES // self.columns.size)
        over_rows(work, len(X), max(1, min(most, -(-len(X) // jobs))), n_jobs)

    def add_tree(self, tree: int, table: Any, rows: np.ndarray, out: np.ndarray) -> None:
        """Add one tree's posterior for some rows of a training table to `out`."""
        self._core.add_tree(tree, table, rows, out)

    # -- structure

    def is_split(self) -> np.ndarray:
        """Say of each node whether it is a split."""
        split: np.ndarray = self.next >= 0
        return split

    def tree_sizes(self) -> np.ndarray:
        """Return the number of nodes of each tree."""
        begin = self.tree_begin.astype(np.int64)
        sizes: np.ndarray = begin[1:] - begin[:-1]
        return sizes

    def tree_of_node(self) -> np.ndarray:
        """Return the tree number of each node."""
        return np.repeat(np.arange(self.n_trees), self.tree_sizes())

    def children(self) -> np.ndarray:
        """Return the left child of each split within the forest, -1 for leaves."""
        begin = self.tree_begin.astype(np.int64)[:-1][self.tree_of_node()]
        return np.where(self.is_split(), begin + self.next, -1)

    def depths(self) -> np.ndarray:
        """Return the depth of each node; roots have depth 0."""
        left = self.children()
        depth = np.zeros(len(left), dtype=np.int64)
        level = self.tree_begin[:-1].astype(np.int64)
        for d in range(1, len(left) + 1):
            level = level[left[level] >= 0]
            if not len(level):
                break
            level = np.concatenate([left[level], left[level] + 1])
            depth[level] = d
        return depth

    def parents(self) -> np.ndarray:
        """Return the parent of each node within the forest, -1 for roots."""
        left = self.children()
        parent = np.full(len(left), -1, dtype=np.int64)
        splits = np.flatnonzero(left >= 0)
        parent[left[splits]] = splits
        parent[left[splits] + 1] = splits
        return parent

    def decision_path(self, X: np.ndarray, n_jobs: int | None = 1) -> sp.csr_matrix:
        """Mark the nodes that each sample passes (n, nodes)."""
        leaf, begin = self.apply(X, n_jobs), self.tree_begin.astype(np.int64)[:-1]
        depth, parent = self.depths(), self.parents()
        row_length = np.zeros(len(X), dtype=np.int64)
        chunks = [slice(i, i + PATH_ROWS) for i in range(0, len(X), PATH_ROWS)]
        for rows in chunks:
            row_length[rows] = (depth[leaf[rows] + begin] + 1).sum(axis=1)
        row_begin = np.concatenate([[0], np.cumsum(row_length)])
        small = max(int(row_begin[-1]), len(self.next)) < 2**31
        index_type = np.int32 if small else np.int64
        passed = np.empty(row_begin[-1], dtype=index_type)
        for rows in chunks:
            # Paths stand behind one another in the order of the trees, each from root to leaf.
            node = leaf[rows] + begin
            path_end = np.cumsum(depth[node] + 1, axis=1) + row_begin[:-1][rows, np.newaxis]
            node, place = node.ravel(), path_end.ravel() - 1
            while len(node):
                passed[place] = node
                node = parent[node]
                inner = node >= 0
                node, place = node[inner], place[inner] - 1
        marks = np.ones(len(passed), dtype=np.int64)
        shape = (len(X), len(self.next))
        return sp.csr_matrix((marks, passed, row_begin.astype(index_type)), shape=shape)

    def thresholds(self) -> np.ndarray:
        """Return thresholds in the user's units; NaN for leaves.

        Of splits by several columns, those of the combinations of their atoms in `atoms`.
        """
        value = self.threshold.astype(np.float64)
        if not self.cell_format.real:
            value = value / 2
        if self.columns is not None:
            column, one = self._columns_of_nodes()
            mean = self.columns.in_units(self.term_cell, np.zeros(len(self.term_cell)))
            shift = np.bincount(
                self._node_of_term(), self._weights_in_units() * mean, minlength=len(value)
            )
            value = np.where(one, self.columns.in_units(column, value), value + shift)
        elif len(self.form_op):
            value = values_of(value, self, self.cell_format.shift)
        else:
            value = np.ldexp(value, -self.cell_format.shift)
        return np.where(self.is_split(), value, np.nan)

    def gains(self) -> np.ndarray:
        """Return each split's decrease in impurity, times its share of the tree's weight."""
        gains: np.ndarray = np.ldexp(self.gain.astype(np.float64), self.gain_exponent)
        return gains

    def atoms(self, chunk: int = 1024) -> sp.csr_matrix:
        """Return the atom of each node; empty for leaves.

        Over the features of one channel after the other where there are several. Pooled atoms
        stand at the first position of their window, without rivals. Of several columns it is the
        combination of their atoms, each divided by its deviation, in steps of a column.
        """
        if self.columns is not None:
            place = (self._node_of_term(), self.term_cell)
            shape = (len(self.term_count), *self.shape)
            weights = sp.csr_matrix((self._weights_in_units(), place), shape=shape)
            return weights @ self._of_columns().atoms()
        features = math.prod(self.shape)
        channel, pooled_views = self._channels(), self._pooled_views()
        columns = features * self._n_channels()
        count = self.term_count.astype(np.int64)
        node_of_term = self._node_of_term()
        weights = np.where(own_terms(count, self), self.term_weight, 0)
        parts = []
        for first in range(0, len(count), chunk):
            size = min(chunk, len(count) - first)
            low, high = np.searchsorted(node_of_term, [first, first + size])
            cell = self.term_cell[low:high].astype(np.int64)
            weight = weights[low:high].astype(np.float64)
            node = node_of_term[low:high] - first
            total = sp.csr_matrix((size, columns))
            for view in range(len(self.views)):
                here = cell // features == view
                if not here.any():
                    continue
                entries = (weight[here], (node[here], cell[here] % features))
                matrix = sp.csr_matrix(entries, shape=(size, features))
                if self.views[view]:
                    dense = self._unaccumulate(matrix.toarray(), int(self.views[view]))
                    matrix = sp.csr_matrix(dense)
                matrix = matrix.tocoo()
                place = (matrix.row, matrix.col + features * channel[view])
                total = total + sp.csr_matrix((matrix.data, place), shape=(size, columns))
            for pooled, at in zip(pooled_views, channel[len(self.views) :], strict=True):
                here = pooled.holds(cell)
                if here.any():
                    dense = pooled.on_features(node[here], cell[here], weight[here], size)
                    matrix = sp.coo_matrix(dense)
                    place = (matrix.row, matrix.col + features * at)
                    total = total + sp.csr_matrix((matrix.data, place), shape=(size, columns))
            parts.append(total)
        atoms = sp.vstack(parts, format="csr")
        atoms.eliminate_zeros()
        return atoms

    def _unaccumulate(self, weights: np.ndarray, prefixed_axes: int) -> np.ndarray:
        """Turn weights on prefix sums into weights on features, over the last axis.

        A prefix sum adds the features up to it, so a feature gets the weights at and after it.
        """
        rows = len(weights)
        weights = weights.reshape(-1, *self.shape)
        for axis in range(len(self.shape)):
            if prefixed_axes >> axis & 1:
                weights = np.flip(np.cumsum(np.flip(weights, axis + 1), axis=axis + 1), axis + 1)
        return weights.reshape(rows, -1)

    def _channels(self) -> np.ndarray:
        """Return the number of the channel that each view looks at, counted as they appear.

        Pooled views follow the others.
        """
        order = {source: number for number, source in enumerate(self.channel_sources())}
        return np.array([order[row] for row in self._view_sources()])

    def channel_sources(self) -> list[tuple[float, ...]]:
        """Return the channels in the order in which `atoms` has them, as the core takes them."""
        return list(dict.fromkeys(self._view_sources()))

    def _view_sources(self) -> list[tuple[float, ...]]:
        rows = self.sources.reshape(-1, SOURCE_NUMBERS).tolist()
        rows += self.pooled_views.reshape(-1, POOLED_VIEW_NUMBERS)[:, 2:].tolist()
        return [tuple(row) for row in rows]

    def _n_channels(self) -> int:
        return 1 + int(self._channels().max())

    def _pooled_views(self) -> list[PooledView]:
        begin = len(self.views) * math.prod(self.shape)
        return read_views(self.pooled_views, self.shape, begin)

    # -- importances

    def split_shares(self) -> np.ndarray:
        """Return the share of splits whose atom uses each feature: the paper's importance."""
        if self.columns is not None:
            total = self._users_of_columns()
        elif len(self.form_op):
            total = np.zeros(math.prod(self.shape))
            for _, sizes in self._each_atoms():
                total += (self._on_features(abs(sizes)) > 0).sum(axis=0)
        elif self._signed():
            total = self._core.importances(np.zeros(len(self.next)))[1]
        else:
            total = self._spread(np.ones(len(self.next)), absolute=False)
        return total.reshape(self.sample_shape) / max(int(self.is_split().sum()), 1)

    def impurity_decrease(self) -> np.ndarray:
        """Return each feature's part of the decrease in impurity, adding up to one.

        A split's decrease goes to its atom's features in proportion to their absolute weights,
        those of one feature in several channels added.
        """
        gain = np.where(self.is_split(), self.gain.astype(np.float64), 0.0)
        if self.columns is not None:
            total = self._shared_of_columns(gain)
        elif len(self.form_op):
            total = self._shared_over_windows(gain)
        else:
            total = self._core.importances(gain)[0] if self._signed() else self._shared(gain)
        sum_of_all = total.sum()
        return (total / sum_of_all if sum_of_all > 0 else total).reshape(self.sample_shape)

    def _shared_of_columns(self, amount: np.ndarray) -> np.ndarray:
        """Share out what nodes have among the columns of their atoms, and on to the features."""
        node_of_term = self._node_of_term()
        size = np.abs(self.term_weight).astype(np.float64)
        mass = np.bincount(node_of_term, size, minlength=len(self.term_count))
        of_term = amount[node_of_term] * size / mass[node_of_term]
        of_column = np.bincount(self.term_cell, of_term, minlength=self.shape[0])
        shared: np.ndarray = self.footprints.T @ of_column
        return shared

    def _users_of_columns(self) -> np.ndarray:
        """Count the splits that use each feature, in one of their columns or in several."""
        features = self.footprints.shape[1]
        rows = max(1, USED_BYTES // features)
        used = self.footprints > 0
        # Sets of features in bits, of which a split has the union of those of its columns.
        parts = (used[i : i + rows].toarray() for i in range(0, self.shape[0], rows))
        sets = np.concatenate([np.packbits(part, axis=1) for part in parts])
        count = self.term_count[self.is_split()].astype(np.int64)
        end, first = np.cumsum(count), 0
        total = np.zeros(features)
        while first < len(count):
            begin = end[first] - count[first]
            last = max(first + 1, int(np.searchsorted(end, begin + rows, "right")))
            of_terms = sets[self.term_cell[begin : end[last - 1]]]
            union = np.bitwise_or.reduceat(of_terms, (end - count)[first:last] - begin)
            total += np.unpackbits(union, axis=1, count=features).sum(axis=0, dtype=np.int64)
            first = last
        return total

    @cached_property
    def footprints(self) -> sp.csr_matrix:
        """What each column's atom weighs on each feature, adding up to one (columns, features)."""
        nodes = self._of_columns()
        parts = []
        for _, atoms in nodes._each_atoms():
            sizes = nodes._on_features(abs(atoms))
            mass = sizes.sum(axis=1, keepdims=True)
            parts.append(sp.csr_matrix(sizes / np.where(mass > 0, mass, 1.0)))
        return sp.vstack(parts, format="csr")

    def _of_columns(self) -> Forest:
        """Return nodes with the atoms of the columns, to ask of them what is asked of nodes."""
        columns = self.columns
        assert columns is not None
        blank = np.zeros(columns.size, dtype=np.uint8)
        return Forest(
            shape=columns.shape,
            sources=columns.sources,
            views=columns.views,
            cell_format=columns.cell_format,
            class_count=0,
            gain_exponent=0,
            tree_begin=np.arange(columns.size + 1),
            next=blank,
            threshold=blank,
            weight=blank,
            gain=blank,
            term_count=np.diff(columns.begin),
            term_cell=columns.cell,
            term_weight=columns.weight,
            distribution_size=_none(),
            distribution_class=_none(),
            distribution_weight=_none(),
            leaf_value=_none(),
            pooled_views=columns.pooled_views,
            form_op=columns.form_op,
            form_bias=columns.form_bias,
            form_window=columns.form_window,
        )

    def _node_of_term(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.term_count)), self.term_count)

    def _weights_in_units(self) -> np.ndarray:
        """Return the weights of columns, where a node has several, over their atoms' values."""
        assert self.columns is not None
        alone = self.term_count[self._node_of_term()] == 1
        step = np.where(alone, 1.0, self.columns.steps()[self.term_cell])
        weights = np.zeros(len(step))
        return np.divide(self.term_weight, step, out=weights, where=step > 0)

    def _columns_of_nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return a column of each node's atom, and whether it is the only one."""
        count = self.term_count.astype(np.int64)
        column = np.zeros(len(count), dtype=np.int64)
        first = (np.cumsum(count) - count)[count > 0]
        column[count > 0] = self.term_cell[first]
        return column, count == 1

    def _shared(self, gain: np.ndarray) -> np.ndarray:
        """Share out gains where all atoms are plain: over prefix sums, patches of raw values."""
        count = self.term_count.astype(np.int64)
        node_of_term = np.repeat(np.arange(len(count)), count)
        # An atom's mass is what it makes of a sample of ones: of prefix sums, volumes.
        mass = np.bincount(
            node_of_term, self.term_weight * self._volumes()[self.term_cell], minlength=len(count)
        )
        raw = self.views[self.term_cell.astype(np.int64) // math.prod(self.shape)] == 0
        absolute = np.bincount(
            node_of_term[raw], np.abs(self.term_weight[raw]).astype(float), minlength=len(count)
        )
        mass = np.where(absolute > 0, absolute, mass)
        factor = np.divide(gain, mass, out=np.zeros(len(count)), where=mass > 0)
        return self._spread(factor, absolute=True)

    def _shared_over_windows(self, gain: np.ndarray) -> np.ndarray:
        """Share out gains where atoms may be pooled."""
        total = np.zeros(math.prod(self.shape))
        for nodes, atoms in self._each_atoms():
            sizes = self._on_features(abs(atoms))
            mass = sizes.sum(axis=1)
            share = np.divide(gain[nodes], mass, out=np.zeros(len(mass)), where=mass > 0)
            # Row by row: the bits of a matrix product depend on the processor.
            total += (share[:, np.newaxis] * sizes).sum(axis=0)
        return total

    def _signed(self) -> bool:
        """Say whether some atom is over other channels, or over prefix sums and not a patch."""
        if not np.array_equal(self.sources, raw_sources(len(self.views))):
            return True
        # What an atom over prefix sums makes of a sample of ones: of a patch its volume, of
        # rectangles with opposite signs nothing.
        prefixed = self.views[self.term_cell.astype(np.int64) // math.prod(self.shape)] != 0
        node_of_term = np.repeat(np.arange(len(self.term_count)), self.term_count)[prefixed]
        values = self.term_weight[prefixed] * self._volumes()[self.term_cell[prefixed]]
        found = np.bincount(node_of_term, values, minlength=len(self.term_count))
        return bool((found[np.unique(node_of_term)] <= 0).any())

    def _each_atoms(self, chunk: int = 1024) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield dense atoms (nodes, cells of a view) of some nodes after others.

        Pooled atoms yield the mean of their sizes over the positions of their windows.
        """
        atoms = self.atoms()
        for first in range(0, atoms.shape[0], chunk):
            nodes = slice(first, min(first + chunk, atoms.shape[0]))
            dense = atoms[nodes].toarray()
            yield nodes, over_windows(dense, self, nodes) if len(self.form_op) else dense

    def _on_features(self, sizes: np.ndarray) -> np.ndarray:
        """Add up what falls on the same feature in different channels."""
        return sizes.reshape(len(sizes), self._n_channels(), -1).sum(axis=1)

    def _volumes(self) -> np.ndarray:
        """Return the value of each cell of a sample of ones."""
        volumes = []
        for view in self.views:
            ones = np.ones((1, *self.shape))
            for axis in range(len(self.shape)):
                if int(view) >> axis & 1:
                    ones = np.cumsum(ones, axis=axis + 1)
            volumes.append(ones.ravel())
        return np.concatenate([*volumes, [0.0]])

    def _spread(self, factor: np.ndarray, absolute: bool) -> np.ndarray:
        """Sum over nodes factor times the node's atom: |weight| if `absolute`, else 1 if used.

        Views with prefix sums hold indicators of patches, so that their sums can be taken before
        the weights are turned back to features.
        """
        features = math.prod(self.shape)
        count = self.term_count.astype(np.int64)
        factor = np.repeat(factor, count)
        cell = self.term_cell.astype(np.int64)
        weight = self.term_weight.astype(np.float64)
        total = np.zeros(features)
        for view in range(len(self.views)):
            here = cell // features == view
            if self.views[view]:
                sums = np.bincount(
                    cell[here] % features, factor[here] * weight[here], minlength=features
                )
                # Rounding may leave traces of cancelled corners.
                sums = self._unaccumulate(sums[np.newaxis], int(self.views[view]))[0]
                total += np.maximum(sums, 0.0)
            else:
                size = np.abs(weight[here]) if absolute else weight[here] != 0
                total += np.bincount(cell[here] % features, factor[here] * size, minlength=features)
        return total


def require_same_cells(before: Forest | Columns, built: Any) -> None:
    """Raise if the trees of an earlier fit look at other cells than those of a new dictionary."""
    pairs = (
        (before.views, built.views),
        (before.sources, built.view_sources),
        (before.pooled_views, built.pooled_views),
    )
    same = all(np.array_equal(a, b) for a, b in pairs)
    if not same or bool(len(before.form_op)) != built.has_forms:
        raise ValueError(
            "warm_start needs a dictionary that looks at the same channels with the same kinds of "
            "atoms as that of the first fit: set dictionary back, or fit a new model."
        )


def assemble(
    grown: list[dict[str, np.ndarray]],
    table: Any,
    class_count: int,
    target_format: TargetFormat | None,
    before: Forest | None = None,
    values: int = 1,
) -> Forest:
    """Put what calls of the core have grown on a table behind one another, after earlier trees.

    The list is emptied, and each column goes once it is joined, to hold little at once.
    """
    gain_exponent = 0 if target_format is None else target_format.gain_exponent
    payload_column = "distribution_size" if class_count else "leaf_value"
    sizes = np.array([len(some["next"]) for some in grown], dtype=np.int64)
    payloads = np.array([len(some[payload_column]) // values for some in grown], dtype=np.int64)
    arrays = {}
    for name in list(grown[0]):
        arrays[name] = np.concatenate([some.pop(name) for some in grown])
    grown.clear()
    begin = np.append(0, np.cumsum(arrays.pop("tree_size"), dtype=np.int64))
    skipped = np.append(0, np.cumsum(payloads))
    if target_format is not None:
        arrays["leaf_value"] = target_format.decode(arrays["leaf_value"])
    if before is not None:
        begin = np.append(before.tree_begin[:-1].astype(np.int64), begin + len(before.next))
        skipped += len(getattr(before, payload_column)) // values
    # Payloads count within a call; those that point to a pure class stay.
    dtype = np.int32 if skipped[-1] + class_count < 2**31 else np.int64
    following: np.ndarray = arrays["next"].astype(dtype)
    moved = following < -class_count
    following[moved] -= np.repeat(skipped[:-1].astype(dtype), sizes)[moved]
    arrays["next"] = following
    if before is not None:
        gain = np.ldexp(before.gain, before.gain_exponent - gain_exponent)
        for name, added in arrays.items():
            earlier = gain if name == "gain" else getattr(before, name)
            arrays[name] = np.concatenate([earlier, added])
    built = table.dictionary
    return Forest(
        shape=table.resolved.shape,
        sources=built.view_sources,
        views=built.views,
        pooled_views=built.pooled_views,
        cell_format=table.cell_format,
        columns=table.columns,
        class_count=class_count,
        gain_exponent=gain_exponent,
        tree_begin=begin,
        values=values,
        **arrays,
    )
