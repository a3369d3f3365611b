"""The fitted forest: flat arrays, and what can be asked of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from morforest._arrays import narrow, no_numbers, read_numbers, refusing, widen
from morforest._atoms import AtomList
from morforest._columns import COLUMN_CELLS, COMBINED_CELLS, Columns
from morforest._fixed_point import CellFormat, cells_for, core_dtype
from morforest._native import core
from morforest._outputs import slices_of
from morforest._parallel import count_jobs, over_blocks, over_even_parts, over_rows
from morforest._pickling import LEAF_TYPES, pack, unpack
from morforest._sparse import SparseRows
from morforest._states import stored
from morforest._validation import MAX_CLASSES, MAX_TARGET

ROWS_PER_JOB = 256  # below this a call is not worth a thread
COLUMN_VALUES = 1 << 22  # of columns that are held at once to walk the trees
PATH_ROWS = 256  # whose decision paths are followed at once
# Samples whose missing values a split minds, gaps or absent ones, go left or right.
SIDES = ("none", "gap left", "gap right", "absent left", "absent right")
ABSENT_LEFT, ABSENT_RIGHT = 3, 4
LARGEST_EXPONENT = 4400  # of gains: twice that of any float

# The core's types. In memory each array is kept in the narrowest type that holds it; see
# _pickling.py for pickles.
CORE_TYPES: dict[str, Any] = {
    "tree_begin": np.int64,
    "next": np.int32,
    **LEAF_TYPES,
}


@stored
@dataclass
class Forest:
    """All trees' nodes in parallel arrays.

    ``next`` of a split is its left child, counted within the tree; the right child follows it. Of
    a leaf it is ``-1 - payload``: a payload below ``class_count`` says that the leaf holds that
    class alone, ``class_count + i`` points to distribution `i`; in regression payload `i` points
    to ``leaf_value[i]``, in boosting and with several outputs to the `i`-th group of `values`
    numbers there. Thresholds are twice the midpoint, in cells, for integer cells. The classes of
    several outputs are numbered one output after the other.
    """

    atoms: AtomList  # one per node; those of leaves are empty
    cell_format: CellFormat
    class_count: int
    gain_exponent: int  # gains are stored divided by two to this power
    tree_begin: np.ndarray
    next: np.ndarray
    threshold: np.ndarray
    weight: np.ndarray
    gain: np.ndarray
    distribution_size: np.ndarray
    distribution_class: np.ndarray
    distribution_weight: np.ndarray
    leaf_value: np.ndarray
    values: int = 1  # of a leaf, where there are no classes
    classes_of: tuple[int, ...] = ()  # number of classes of each of several outputs
    columns: Columns | None = None  # what features are made of, if not the samples' own
    # Where splits send missing values, see SIDES; 0 for leaves, and of trees grown on data without
    # missing values. Empty if all are 0.
    side: np.ndarray = field(default_factory=no_numbers)

    def __post_init__(self) -> None:
        for name in [found.name for found in fields(self)]:
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                setattr(self, name, narrow(value))

    @cached_property
    def _core(self) -> core.Forest:
        """The forest as the core predicts with it, made and checked when it is first needed."""
        return self._build(widen("side", self.side, np.uint8)[:0])

    @cached_property
    def _core_with_sides(self) -> core.Forest:
        """The same for samples with missing values: each split knows where they go."""
        side = np.zeros(len(self.next), dtype=np.uint8)
        if len(self.side):
            side[:] = widen("side", self.side, np.uint8)
        left = self.children()
        unseen = np.flatnonzero((left >= 0) & (side == 0))
        weight = widen("weight", self.weight, np.uint32)
        heavier = weight[left[unseen] + 1] > weight[left[unseen]]
        side[unseen] = np.where(heavier, ABSENT_RIGHT, ABSENT_LEFT)
        return self._build(side)

    def _core_for(self, gaps: bool) -> core.Forest:
        return self._core_with_sides if gaps else self._core

    def _build(self, side: np.ndarray) -> core.Forest:
        """Make the forest of the core, which checks it."""
        arrays = {name: widen(name, getattr(self, name), t) for name, t in CORE_TYPES.items()}
        weight = widen("weight", self.weight, np.uint32)
        gain = widen("gain", self.gain, np.float32)
        if not len(weight) == len(gain) == len(self.next) or not np.isfinite(gain).all():
            raise ValueError("damaged forest: weights or gains do not fit the nodes")
        if len(self.atoms) != len(self.next):
            raise ValueError("damaged forest: atoms do not fit the nodes")
        if not 0 <= self.class_count <= MAX_CLASSES:
            raise ValueError(f"damaged forest: {self.class_count} classes")
        several = self.classes_of
        if not isinstance(several, tuple) or any(type(k) is not int or k < 1 for k in several):
            raise ValueError("damaged forest: the classes of the outputs")
        if several and (len(several) == 1 or sum(several) != self.class_count):
            raise ValueError("damaged forest: the outputs do not fit the classes")
        if not 1 <= self.values <= MAX_CLASSES:
            raise ValueError(f"damaged forest: {self.values} values per leaf")
        if abs(self.gain_exponent) > LARGEST_EXPONENT:
            raise ValueError(f"damaged forest: gains times 2^{self.gain_exponent}")
        if np.abs(arrays["leaf_value"]).max(initial=0) > MAX_TARGET:
            raise ValueError("damaged forest: leaf values beyond those of any target")
        self._check_cells()
        real = self.cell_format.real
        threshold = widen("threshold", self.threshold, np.float64 if real else np.int64)
        built = core.Forest(
            self.atoms.layout.to_core(),
            self.atoms.to_core(),
            arrays["tree_begin"],
            arrays["next"],
            threshold,
            self._leaves(arrays),
            side,
        )
        # What a pickle leaves out must follow from the rest.
        leaf = ~self.is_split()
        self._check_sides(leaf)
        if any(((values != 0) & leaf).any() for values in (threshold, gain, self.atoms.count)):
            raise ValueError("damaged forest: a leaf has a threshold, a gain or an atom")
        summed = core.node_weights(arrays["tree_begin"], arrays["next"], weight[leaf])
        if not np.array_equal(summed, weight):
            raise ValueError("damaged forest: the weights of children are not their parent's")
        return built

    def _leaves(self, arrays: dict[str, np.ndarray]) -> core.Leaves:
        """Return what the leaves say, as the core takes it."""
        if not self.class_count:
            return core.Leaves.of_values(arrays["leaf_value"], self.values)
        if len(arrays["leaf_value"]):
            raise ValueError("damaged forest: leaves have classes and values")
        return core.Leaves.of_classes(
            self.class_count,
            arrays["distribution_size"],
            arrays["distribution_class"],
            arrays["distribution_weight"],
            list(self.classes_of),
        )

    def _check_sides(self, leaf: np.ndarray) -> None:
        side = widen("side", self.side, np.uint8)
        if len(side) and (
            len(side) != len(leaf) or (side[leaf] != 0).any() or side.max() >= len(SIDES)
        ):
            raise ValueError("damaged forest: the sides of missing values do not fit the splits")

    def _check_cells(self) -> None:
        """Raise unless cells are those that the atoms look at."""
        self.atoms.require_format(self.cell_format)
        if self.cell_format.real and not self.atoms.layout.only_raw:
            raise ValueError("damaged forest: float64 cells of derived views")
        if self.columns is None:
            return
        if not isinstance(self.columns, Columns) or self.shape != (self.columns.size,):
            raise ValueError("damaged forest: columns do not fit the features")
        if self.cell_format.real or self.cell_format.shift or not self.atoms.layout.only_raw:
            raise ValueError("damaged forest: columns are plain integers")

    def check(self) -> Forest:
        """Refuse a damaged forest now, and not when it is first needed."""
        _ = self._core
        return self

    def __getstate__(self) -> dict[str, Any]:
        return pack(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        with refusing("forest"):
            found = unpack(state)
            number = np.float64 if found["cell_format"].real else np.int64
            found["threshold"] = read_numbers("threshold", found["threshold"], number)
            self.__init__(**found)  # type: ignore[misc]
            self.check()

    # -- prediction

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.tree_begin) - 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of what the trees look at: one sample, or its columns."""
        return self.atoms.layout.shape

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return self.shape if self.columns is None else self.columns.shape

    @property
    def combines(self) -> bool:
        """Whether a split is by several columns."""
        return self.columns is not None and bool((self.atoms.count > 1).any())

    @property
    def outputs(self) -> int:
        """Number of values that a tree predicts for a sample."""
        return self.class_count or self.values

    @property
    def targets(self) -> int:
        """Number of outputs that a forest, but not boosting, predicts."""
        return len(self.classes_of) or (1 if self.class_count else self.values)

    def of_output(self, k: int) -> Forest:
        """Return the forest of one of several outputs."""
        if not self.classes_of:
            of_leaves = self.leaf_value.reshape(-1, self.values)[:, k]
            return replace(self, leaf_value=np.ascontiguousarray(of_leaves), values=1)
        own = slices_of(self.classes_of)[k]
        label = self.distribution_class.astype(np.int64)
        kept = (own.start <= label) & (label < own.stop)
        size = self.distribution_size.astype(np.int64)
        before = np.append(0, np.cumsum(kept))[np.append(0, np.cumsum(size))]
        following = self.next.astype(np.int64)
        classes = self.classes_of[k]
        return replace(
            self,
            class_count=classes,
            classes_of=(),
            next=np.where(following < 0, following + self.class_count - classes, following),
            distribution_size=np.diff(before),
            distribution_class=label[kept] - own.start,
            distribution_weight=self.distribution_weight[kept],
        )

    def predict(self, X: np.ndarray, n_jobs: int | None = 1) -> np.ndarray:
        """Return mean posteriors (n, classes), or mean values (n, 1)."""
        return self._predict(X, n_jobs, mean=True)

    def predict_sum(self, X: np.ndarray, n_jobs: int | None = 1) -> np.ndarray:
        """Return sums of the trees' values (n, values)."""
        return self._predict(X, n_jobs, mean=False)

    def _predict(self, X: np.ndarray, n_jobs: int | None, mean: bool) -> np.ndarray:
        out = np.zeros((len(X), self.outputs))
        self._run("predict", X, out, n_jobs, mean)
        return out

    def apply(self, X: np.ndarray, n_jobs: int | None = 1) -> np.ndarray:
        """Return the leaf of each sample in each tree (n, trees)."""
        out = np.zeros((len(X), self.n_trees), dtype=np.int32)
        self._run("apply", X, out, n_jobs)
        return out

    def _run(
        self,
        name: str,
        X: np.ndarray,
        out: np.ndarray,
        n_jobs: int | None,
        *more: bool,
    ) -> None:
        if self.columns is not None:
            self._run_on_columns(getattr(self._core, name), X, out, n_jobs, *more)
            return
        cells = cells_for(X, self.cell_format, self._core.takes_bytes)
        arguments = (
            cells.cell_type,
            cells.shift,
            cells.limit,
            cells.extra_bits,
            cells.gaps,
            *more,
        )
        method = getattr(self._core_for(cells.gaps), name)
        if isinstance(X, SparseRows):
            dtype = core_dtype(X)
            over_blocks(
                lambda part: method(
                    np.ascontiguousarray(X[part], dtype=dtype), *arguments, out[part]
                ),
                X.shape,
                n_jobs,
            )
            return
        jobs = 1
        if len(X) >= 2 * ROWS_PER_JOB:
            jobs = count_jobs(n_jobs, len(X) // ROWS_PER_JOB)
        if jobs == 1:
            method(X, *arguments, out)
            return
        over_even_parts(lambda part: method(X[part], *arguments, out[part]), len(X), jobs)

    def _run_on_columns(
        self,
        method: Callable[..., None],
        X: np.ndarray,
        out: np.ndarray,
        n_jobs: int | None,
        *more: bool,
    ) -> None:
        """Compute the columns of some rows after others, and walk the trees with these."""
        assert self.columns is not None
        cells = COMBINED_CELLS if self.combines else COLUMN_CELLS
        arguments = (cells.cell_type, cells.shift, cells.limit, cells.extra_bits, False, *more)
        read, some = self.columns.reader(X), self.columns.rows_at_once()

        def work(part: slice) -> None:
            # Trees are walked by many rows at once, of which atoms are computed in smaller parts.
            parts = [
                read(slice(first, min(first + some, part.stop)))
                for first in range(part.start, part.stop, some)
            ]
            method(np.concatenate(parts, dtype=np.float32), *arguments, out[part])

        jobs = count_jobs(n_jobs, -(-len(X) // some))
        most = max(some, COLUMN_VALUES // self.columns.size)
        over_rows(work, len(X), max(1, min(most, -(-len(X) // jobs))), n_jobs)

    def add_tree(
        self, tree: int, table: core.Table, rows: np.ndarray, out: np.ndarray, votes: np.ndarray
    ) -> None:
        """Add one tree's posterior for some rows of a training table to `out`, and its votes."""
        self._core_for(table.has_gaps).add_tree(tree, table, rows, out, votes)

    def find_leaves(self, tree: int, table: core.Table) -> np.ndarray:
        """Return the leaf of each row of a training table in one tree."""
        leaves: np.ndarray = self._core_for(table.has_gaps).find_leaves(tree, table)
        return leaves

    # -- structure

    def is_split(self) -> np.ndarray:
        """Say of each node whether it is a split."""
        split: np.ndarray = self.next >= 0
        return split

    @cached_property
    def silent_trees(self) -> np.ndarray:
        """Mark the trees that do not vote on some samples; empty if all vote on all."""
        if not self._core.has_silent_leaves:
            return np.empty(0, dtype=np.uint8)
        leaf = np.flatnonzero(~self.is_split())
        silent = np.zeros(len(self.next), dtype=np.uint8)
        silent[leaf] = self.is_silent(-1 - self.next[leaf].astype(np.int64))
        found: np.ndarray = np.maximum.reduceat(silent, self.tree_begin.astype(np.int64)[:-1])
        return found

    def is_silent(self, payload: np.ndarray) -> np.ndarray:
        """Say of payloads whether they say nothing."""
        if not self.class_count:
            silent = np.isnan(self.leaf_value)
        else:
            of_class = np.zeros(self.class_count, dtype=bool)
            silent = np.append(of_class, self.distribution_size == 0)
        found: np.ndarray = silent[payload]
        return found

    def tree_sizes(self) -> np.ndarray:
        """Return the number of nodes of each tree."""
        begin = self.tree_begin.astype(np.int64)
        sizes: np.ndarray = begin[1:] - begin[:-1]
        return sizes

    def tree(self, number: int) -> Forest:
        """Return one tree, to ask for its splits; payloads of its leaves stay those of all."""
        begin, end = (int(self.tree_begin[number + i]) for i in range(2))
        nodes = slice(begin, end)
        of_nodes = ("next", "threshold", "weight", "gain")
        arrays = {name: getattr(self, name)[nodes] for name in of_nodes}
        arrays["side"] = self.side[nodes]
        return replace(
            self, atoms=self.atoms[nodes], tree_begin=np.array([0, end - begin]), **arrays
        )

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
        if self.columns is None:
            value = self.atoms.in_units(value, self.cell_format.shift)
        else:
            column, one = self.columns_of_nodes()
            cell = self.atoms.cell
            mean = self.columns.in_units(cell, np.zeros(len(cell)))
            shift = np.bincount(
                self.atoms.atom_of_term(), self._column_weights() * mean, minlength=len(value)
            )
            value = np.where(one, self.columns.in_units(column, value), value + shift)
        return np.where(self.is_split(), value, np.nan)

    def gains(self) -> np.ndarray:
        """Return each split's decrease in impurity, times its share of the tree's weight."""
        with np.errstate(over="ignore"):  # squares of huge targets are beyond all floats
            gains: np.ndarray = np.ldexp(self.gain.astype(np.float64), self.gain_exponent)
        return gains

    def matrix(self) -> sp.csr_matrix:
        """Return each node's atom over the features; empty for leaves. See `AtomList.matrix`.

        Of several columns it is the combination of their atoms, each divided by its deviation, in
        steps of a column.
        """
        if self.columns is None:
            return self.atoms.matrix()
        return self._over_columns() @ self.columns.atoms.matrix()

    def matrix_in_units(self) -> sp.csr_matrix:
        """Return the same over the values of views in the units of the data."""
        if self.columns is None:
            return self.atoms.matrix(self.atoms.weight_in_units(self.cell_format.shift))
        return self._over_columns() @ self.columns.matrix_in_units

    def _over_columns(self) -> sp.csr_matrix:
        """Return the weights of columns in each node (nodes, columns)."""
        place = (self.atoms.atom_of_term(), self.atoms.cell)
        shape = (len(self.atoms), *self.shape)
        return sp.csr_matrix((self._column_weights(), place), shape=shape)

    def _column_weights(self) -> np.ndarray:
        """Return the weights of columns, where a node has several, over their atoms' values."""
        assert self.columns is not None
        atoms = self.atoms
        alone = atoms.count[atoms.atom_of_term()] == 1
        step = np.where(alone, 1.0, self.columns.steps()[atoms.cell])
        weights: np.ndarray = np.zeros(len(step))
        np.divide(atoms.weight, step, out=weights, where=step > 0)
        return weights

    def columns_of_nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return a column of each node's atom, and whether it is the only one."""
        count = self.atoms.count.astype(np.int64)
        column = np.zeros(len(count), dtype=np.int64)
        column[count > 0] = self.atoms.cell[self.atoms.begins()[:-1][count > 0]]
        return column, count == 1
