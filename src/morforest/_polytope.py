"""The polytope of a leaf: the linear inequalities that its samples satisfy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from morforest import _parameters as check
from morforest._atoms import NONE, OPERATIONS, AtomList
from morforest._fixed_point import extra_bits, to_core_dtype
from morforest._inputs import read_samples
from morforest._model import Forest
from morforest._sparse import SparseRows
from morforest._validation import refuse_masked
from morforest.dictionary._views import RAW, View


@dataclass(frozen=True, eq=False, repr=False)
class Polytope:
    """The samples of one leaf: those with ``A @ x <= b``, and ``<`` in the rows that are strict.

    Attributes
    ----------
    A : scipy.sparse.csr_matrix of shape (n_rows, n_features)
        Coefficients of the features of a sample in C order, one row per split above the leaf, from
        the root down. Samples that went left satisfy ``atom @ x <= threshold``, and those that went
        right ``-atom @ x < -threshold``.
    b : ndarray of shape (n_rows,)
        Right-hand sides, in the units of the data.
    strict : ndarray of bool, of shape (n_rows,)
        Rows in which the two sides must differ.
    node : ndarray of shape (n_rows,)
        Number of the split that each row comes from.
    tolerance : ndarray of shape (n_rows,)
        How near to ``b`` a row of ``A @ x`` may come before the rounding of features, described
        below, can decide on the side of a sample.

    Notes
    -----
    `contains` walks down the tree, and always agrees with `apply`. ``A @ x <= b`` in float64 agrees
    with both wherever no row of ``A @ x`` is within ``tolerance`` of ``b``, apart from the rounding
    of the product itself. Near the border the two may differ, because a forest rounds features to
    multiples of a power of two before it adds them. It does not round the whole numbers of a forest
    that was fitted on whole numbers: for these, ``A @ x <= b`` is exact as well.

    Examples
    --------
    >>> from morforest import Axis, MorfTreeClassifier
    >>> X = [[0, 0], [0, 8], [8, 0], [8, 8]]
    >>> tree = MorfTreeClassifier(Axis(), max_features=None, random_state=0)
    >>> tree.fit(X, ["low", "high", "low", "low"])
    MorfTreeClassifier(dictionary=Axis(), max_features=None, random_state=0)
    >>> leaf = tree.apply([[0, 8]])[0, 0]
    >>> polytope = tree.polytope(0, leaf)
    >>> polytope
    Polytope(2 rows over 2 features)
    >>> polytope.contains(X)
    array([False,  True, False, False])
    """

    A: sp.csr_matrix
    b: np.ndarray
    strict: np.ndarray
    node: np.ndarray
    tolerance: np.ndarray
    _path: Forest  # a tree of the splits above the leaf
    _leaf: int  # within that tree

    def contains(self, X: Any) -> np.ndarray:
        """Say which samples reach the leaf.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples, in their shape or as flat rows.

        Returns
        -------
        inside : ndarray of bool, of shape (n_samples,)
            Whether each sample is one of the leaf's.
        """
        refuse_masked("X", X)
        given = read_samples(X, "the model")
        samples = check_array(given, dtype="numeric", allow_nd=True, accept_sparse="csr")
        shape = self._path.sample_shape
        if sp.issparse(samples):
            samples = SparseRows(samples)
        elif samples.shape == shape and samples.shape[1:] != (self.A.shape[1],):
            raise ValueError(
                f"X has shape {shape}, that of a single sample, but its first axis must count "
                "samples: pass X[None], a batch of one."
            )
        if samples.shape[1:] not in (shape, (self.A.shape[1],)):
            raise ValueError(
                f"X has samples of shape {samples.shape[1:]}, but the polytope is one of samples "
                f"of shape {shape}: pass those, or flat rows of {self.A.shape[1]} features."
            )
        if isinstance(samples, np.ndarray):
            samples = samples.reshape(len(samples), -1)
        rows = to_core_dtype(samples)
        inside: np.ndarray = self._path.apply(rows)[:, 0] == self._leaf
        return inside

    def __len__(self) -> int:
        return len(self.b)

    def __repr__(self) -> str:
        rows, features = self.A.shape
        return f"Polytope({rows} row{'s' * (rows != 1)} over {features} features)"


def polytope_of(forest: Forest, tree: Any, leaf: Any, simplify: bool) -> Polytope:
    """Return the polytope of a leaf; `simplify` keeps the tightest of rows that are parallel."""
    check.check_integer("tree", tree, 0, forest.n_trees - 1)
    alone = forest.tree(int(tree))
    nodes = len(alone.next)
    check.check_integer("leaf", leaf, 0, nodes - 1)
    if alone.next[leaf] >= 0:
        raise ValueError(
            f"leaf={leaf!r} is a split of tree {tree}: give a number that apply(X)[:, {tree}] "
            "returns."
        )
    path = [int(leaf)]
    parent = alone.parents()
    while parent[path[-1]] >= 0:
        path.append(int(parent[path[-1]]))
    path.reverse()
    splits = np.array(path[:-1], dtype=np.int64)
    left = alone.next[splits].astype(np.int64) == path[1:]
    A, b, tolerance = _half_spaces(alone, splits)
    sign = np.where(left, 1.0, -1.0)
    A = sp.csr_matrix(sp.diags(sign) @ A) if len(splits) else A
    A.sort_indices()
    b = sign * b
    kept = _tightest(A, b, ~left) if simplify else np.arange(len(splits))
    walk, end = _path_alone(alone, path, left)
    return Polytope(A[kept], b[kept], ~left[kept], splits[kept], tolerance[kept], walk, end)


def _half_spaces(tree: Forest, splits: np.ndarray) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
    """Return the atoms of some splits over features, their thresholds and their tolerances."""
    atoms, cell_format, of_split = tree.atoms, tree.cell_format, splits
    b = tree.thresholds()[splits]
    if tree.columns is not None:
        several = splits[tree.atoms.count[splits] > 1]
        if len(several):
            raise _nonlinear(several[0], "combines several shared atoms, each rounded and cut")
        atoms, cell_format = tree.columns.atoms, tree.columns.cell_format
        of_split = tree.columns_of_nodes()[0][splits]
        # A column is rounded, so that samples up to half a step above a whole one go left with it.
        step = np.floor(tree.threshold[splits] / 2.0) + 0.5
        b = tree.columns.in_units(of_split, step)
    for split, operation in zip(splits, atoms.operations()[of_split], strict=True):
        if operation != NONE:
            raise _nonlinear(split, f"takes the {OPERATIONS[operation]} of a sum")
    A = _on_raw_features(tree.matrix_in_units()[splits], atoms, splits)
    rounding = 0.0  # of a feature
    if not cell_format.real:
        rounding = float(np.ldexp(0.5, -cell_format.shift - extra_bits(cell_format)))
    return A, b, rounding * np.asarray(abs(A).sum(axis=1)).ravel()


def _on_raw_features(matrix: sp.csr_matrix, atoms: AtomList, splits: np.ndarray) -> sp.csr_matrix:
    """Turn atoms over the values of views into atoms over the features themselves."""
    layout = atoms.layout
    features = layout.features
    total = sp.csr_matrix((len(splits), features))
    for number, view in enumerate(layout.views):
        block = matrix[:, number * features : (number + 1) * features]
        used = splits[np.diff(block.indptr) > 0]
        if not len(used):
            continue
        if view == RAW:
            total = total + block
        elif view.kind == "difference":
            total = total + block @ _differences(layout.shape, view)
        else:
            raise _nonlinear(used[0], f"looks at the view {view.kind!r}")
    total = sp.csr_matrix(total)
    total.eliminate_zeros()
    return total


def _differences(shape: tuple[int, ...], view: View) -> sp.csr_matrix:
    """Return what the view of differences does to the features of a sample."""
    number = np.moveaxis(np.arange(int(np.prod(shape))).reshape(shape), view.axis, 0)
    here, there = number[:-1].ravel(), number[1:].ravel()
    ones = np.ones(len(here))
    rows, columns = np.concatenate([here, here]), np.concatenate([there, here])
    size = (number.size, number.size)
    return sp.csr_matrix((np.concatenate([ones, -ones]), (rows, columns)), shape=size)


def _nonlinear(split: int, what: str) -> ValueError:
    return ValueError(
        f"The leaf is no polytope: the split at node {split} above it {what}, which is not linear "
        "in the features. Use a dictionary of linear atoms, such as Patch() without pool."
    )


def _tightest(A: sp.csr_matrix, b: np.ndarray, strict: np.ndarray) -> np.ndarray:
    """Return the numbers of the rows that no other row with the same coefficients implies."""
    best: dict[tuple[bytes, bytes], int] = {}
    for row in range(len(b)):
        terms = slice(A.indptr[row], A.indptr[row + 1])
        key = A.indices[terms].tobytes(), A.data[terms].tobytes()
        other = best.get(key)
        if other is None or (b[row], not strict[row]) < (b[other], not strict[other]):
            best[key] = row
    return np.sort(np.array([*best.values()], dtype=np.int64))


def _path_alone(tree: Forest, path: list[int], left: np.ndarray) -> tuple[Forest, int]:
    """Return a tree of the splits above a leaf alone, and the number of the leaf there."""
    leaf = path[-1]
    nodes, place = [path[0]], 0
    places = [0]
    for above, went_left in zip(path[:-1], left.tolist(), strict=True):
        first = int(tree.next[above])
        place = len(nodes) + (not went_left)
        nodes += [first, first + 1]
        places.append(place)
    is_split = np.zeros(len(nodes), dtype=bool)
    is_split[places[:-1]] = True
    # What stands beside the path becomes a leaf, and leaves have the atom of a leaf: none.
    own = [node if split else leaf for node, split in zip(nodes, is_split, strict=True)]
    following = -np.cumsum(~is_split)
    following[is_split] = 1 + 2 * np.arange(len(path) - 1)
    return replace(
        tree,
        atoms=AtomList.concatenate([tree.atoms[node : node + 1] for node in own]),
        class_count=0,
        values=1,
        tree_begin=np.array([0, len(nodes)]),
        next=following,
        threshold=tree.threshold[own],
        weight=tree.weight[nodes],
        gain=np.zeros(len(nodes), dtype=np.float32),
        gain_exponent=0,
        distribution_size=tree.distribution_size[:0],
        distribution_class=tree.distribution_class[:0],
        distribution_weight=tree.distribution_weight[:0],
        leaf_value=np.zeros(int((~is_split).sum())),
    ), place
