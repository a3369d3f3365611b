"""The splits of a fitted model, tree by tree, in the units of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import scipy.sparse as sp

from morforest._atom_names import in_columns
from morforest._atoms import OPERATIONS, PROPORTION
from morforest._model import SIDES, Forest
from morforest.dictionary._views import View

COMBINATION = "combination"  # of several shared atoms


@dataclass(frozen=True, eq=False, repr=False)
class TreeSplits:
    """The splits of one tree, one entry of each array per split.

    A sample goes to the left child where the value of the split's atom is at most the threshold.

    Attributes
    ----------
    node : ndarray of shape (n_splits,)
        Number of the node within the tree, as in `apply` and `decision_path`; the root is 0.
    left, right : ndarray of shape (n_splits,)
        Numbers of the children.
    threshold : ndarray of shape (n_splits,)
        Threshold in the units of the data: in their squares for variances and views of squares,
        a proportion of positions for the operations "proportion" and "win".
    gain : ndarray of shape (n_splits,)
        Decrease in impurity, weighted by the node's share of the tree's weight; in boosting, the
        decrease in the loss.
    weight : ndarray of shape (n_splits,)
        Weight of the training samples in the node: their number, unless weights are fractions.
    atoms : scipy.sparse.csr_matrix of shape (n_splits, n_views * n_features)
        Weights of the atom over the features of a sample in C order, those of one view after the
        other. A pooled atom stands at the first position of its window, without its rivals. A
        variance has its box in one view, and the box times its size in that of the squares.
    operation : ndarray of str
        What a pooled atom makes of its responses: "max", "min", "mean", "proportion" or "win";
        "variance" for the variance of a box; "none" for a plain sum; "combination" for a linear
        combination of several shared atoms, each of which may be pooled.
    bias : ndarray of shape (n_splits,)
        What responses must exceed to be counted by "proportion"; NaN for other operations.
    window : ndarray of shape (n_splits, n_axes)
        Number of positions along each axis at which a pooled atom responds; 1 for others.
    missing : ndarray of str
        Which samples go to one side because the atom touches their missing values, and where:
        "gap left", "gap right", "absent left" or "absent right". Absent values are among the
        gaps. "none" where training samples had no missing values: absent values then go to the
        child of more weight.
    views : tuple of str
        Names of the views that the blocks of `atoms` belong to.
    feature_names : ndarray of str or None
        Names of the columns of a sample, if the model was fitted on a data frame.
    names : ndarray of str
        The atom of each split in words, with the names of the columns, such as "age - children".
        Features without names are x0, x1 and so on. Views and operations stand before what they
        are taken of.
    """

    node: np.ndarray
    left: np.ndarray
    right: np.ndarray
    threshold: np.ndarray
    gain: np.ndarray
    weight: np.ndarray
    atoms: sp.csr_matrix
    operation: np.ndarray
    bias: np.ndarray
    window: np.ndarray
    missing: np.ndarray
    views: tuple[str, ...]
    feature_names: np.ndarray | None = None

    @property
    def names(self) -> np.ndarray:
        """The atom of each split in words."""
        features = self.atoms.shape[1] // len(self.views)
        columns = self.feature_names
        matrix = self.atoms.sorted_indices()
        names = []
        for split, operation in enumerate(self.operation.tolist()):
            terms = slice(matrix.indptr[split], matrix.indptr[split + 1])
            used = []
            for view, feature in zip(*divmod(matrix.indices[terms], features), strict=True):
                name = f"x{feature}" if columns is None else str(columns[feature])
                used.append(name if self.views[view] == "raw" else f"{self.views[view]}({name})")
            words = in_columns(matrix.data[terms], used)
            plain = operation in ("none", COMBINATION)
            names.append(words if plain else f"{operation}({words})")
        return np.array(names, dtype=object)

    def __len__(self) -> int:
        return len(self.node)

    def __repr__(self) -> str:
        return f"TreeSplits({_count(len(self), 'split')} over {', '.join(self.views)})"


class Splits(Sequence[TreeSplits]):
    """The splits of a fitted model: a sequence with one :class:`TreeSplits` per tree.

    Examples
    --------
    >>> from morforest import Axis, MorfTreeClassifier
    >>> model = MorfTreeClassifier(Axis(), random_state=0).fit([[0, 1], [4, 1]], ["a", "b"])
    >>> model.splits_
    Splits(1 tree, 1 split)
    >>> tree = model.splits_[0]
    >>> tree.threshold, tree.atoms.toarray()
    (array([2.]), array([[1., 0.]]))
    """

    def __init__(self, forest: Forest, feature_names: np.ndarray | None = None):
        self._forest = forest
        self._feature_names = feature_names

    def __len__(self) -> int:
        return self._forest.n_trees

    @overload
    def __getitem__(self, number: int) -> TreeSplits: ...
    @overload
    def __getitem__(self, number: slice) -> list[TreeSplits]: ...
    def __getitem__(self, number: int | slice) -> TreeSplits | list[TreeSplits]:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(f"there is no tree {number} among {len(self)}")
        return _splits_of(self._forest.tree(number % len(self)), self._feature_names)

    def __repr__(self) -> str:
        splits = int(self._forest.is_split().sum())
        return f"Splits({_count(len(self), 'tree')}, {_count(splits, 'split')})"


def _splits_of(tree: Forest, feature_names: np.ndarray | None) -> TreeSplits:
    split = np.flatnonzero(tree.is_split())
    left = tree.next[split].astype(np.int64)
    if tree.columns is None:
        atoms, shift, of_split = tree.atoms, tree.cell_format.shift, split
    else:
        atoms, shift = tree.columns.atoms, tree.columns.cell_format.shift
        of_split = tree.columns_of_nodes()[0][split]
    code = atoms.operations()[of_split]
    window = atoms.windows()[of_split]
    bias = np.full(len(split), np.nan)
    if not atoms.linear:
        bias = np.where(code == PROPORTION, atoms.bias_in_units(shift)[of_split], np.nan)
    operation = np.array(OPERATIONS)[code].astype(object)
    if tree.columns is not None:
        several = tree.atoms.count[split] > 1
        operation[several], bias[several], window[several] = COMBINATION, np.nan, 1
    return TreeSplits(
        node=split,
        left=left,
        right=left + 1,
        threshold=tree.thresholds()[split],
        gain=tree.gains()[split],
        weight=tree.weight[split].astype(np.int64),
        atoms=tree.matrix_in_units()[split],
        operation=operation,
        bias=bias,
        window=window,
        missing=np.array(SIDES)[tree.side[split] if len(tree.side) else np.zeros_like(split)],
        views=tuple(map(_name, atoms.layout.views)),
        feature_names=feature_names,
    )


def _name(view: View) -> str:
    """Describe a view, with its axes where it has any."""
    if view.kind in ("difference", "squared_difference"):
        return f"{view.kind} along axis {view.axis}"
    if view.kind == "orientation":
        degrees = np.degrees(np.arctan2(view.sine, view.cosine)) % 360
        return f"gradient at {degrees:.4g} degrees"
    return view.kind


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
