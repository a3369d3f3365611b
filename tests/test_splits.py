"""Splits are told in the units of the data, whatever the atoms, the views and the numbers.

Samples are walked down the trees by hand, with views and atoms computed in plain NumPy from what
`splits_` says, and must arrive where `apply` says.
"""

import numpy as np
import pytest
from common import fit_digits, fit_friedman
from oracle import with_border

import morforest
from morforest import (
    Atoms,
    Axis,
    Difference,
    Gradient,
    Haar,
    Kernel,
    Magnitude,
    Mixture,
    MorfBoostingClassifier,
    MorfBoostingRegressor,
    MorfClassifier,
    MorfRegressor,
    MorfTreeRegressor,
    Pair,
    Patch,
    Raw,
    SharedAtoms,
    SparseOblique,
    Square,
    Subset,
    Variance,
)

SHAPE = (5, 6)
STEPS = 8  # of float samples to the unit, so that sums in NumPy are exact
OPERATIONS = ["max", "min", "mean", "proportion"]

DICTIONARIES = {
    "axis": Axis(),
    "sparse sums": SparseOblique(),
    "given": Atoms(np.eye(30)[:20] - 2 * np.eye(30)[5:25]),
    "fractions": Atoms(np.eye(30)[:20] - 0.3 * np.eye(30)[5:25]),
    "patch": Patch(1, 4),
    "patch wrapped": Patch(2, 4, boundary="wrap"),
    "patch raw and square": Patch(1, 3, views=[Raw(), Square()]),
    "patch square": Patch(1, 1, views=Square()),
    "patch difference": Patch(1, 3, views=[Difference(), Difference(0)]),
    "patch magnitude": Patch(1, 3, views=Magnitude()),
    "patch gradient": Patch(1, 3, views=Gradient(4)),
    "haar": Haar(1, 2),
    "haar square": Haar(1, 2, views=[Square(), Difference()]),
    "pair": Pair(1, 3),
    "pair across views": Pair(1, 2, views=[Square(), Raw(), Difference(), Magnitude()]),
    "kernel": Kernel("sign"),
    "kernel square": Kernel("gabor", views=[Square(), Raw()]),
    "variance": Variance(2, 4, views=[Raw(), Difference()]),
    "pooled": Patch(1, 3, pool=OPERATIONS),
    "pooled square": Patch(1, 3, pool=OPERATIONS, views=[Square(), Raw()]),
    "pooled difference": Haar(1, 2, pool=OPERATIONS, views=Difference()),
    "pooled gradient": Patch(1, 3, pool=["max", "min", "mean"], views=[Gradient(4), Magnitude()]),
    "pooled wrapped": Patch(1, 3, pool=OPERATIONS, boundary="wrap"),
    "pooled kernel": Kernel("sign", pool=OPERATIONS),
    "mixture": Mixture([Patch(1, 3, pool="max"), Variance(2, 3), Axis(), Pair(1, 2)]),
}
DTYPES = ["uint8", "int64", "float32", "float64"]


def samples(dtype, n=80):
    rng = np.random.default_rng(7)
    X = rng.integers(0 if dtype == "uint8" else -60, 60, (n, *SHAPE))
    if dtype.startswith("float"):
        return (X / STEPS).astype(dtype)
    return X.astype(dtype)


def targets(X):
    return X[:, 1:3, 2:4].astype(float).sum(axis=(1, 2)) + X[:, 4, 0].astype(float) ** 2


def central_difference(x, axis):
    step = np.diff(with_border(x, axis + 1), axis=axis + 1)
    return sum(step.take(range(k, k + x.shape[axis + 1]), axis + 1) for k in (0, 1))


def view_of(name, x, whole):
    """A view by the name that splits give it; gradients of whole numbers are rounded to such."""
    kind, *rest = name.split()
    if kind == "raw":
        return x
    if kind == "square":
        return x**2
    if kind in ("difference", "squared_difference"):
        axis = int(rest[-1]) + 1
        found = np.diff(x, axis=axis, append=x.take([-1], axis))
        return found if kind == "difference" else found**2
    down, right = (central_difference(x, axis) for axis in (0, 1))
    length = np.hypot(down, right)
    if kind == "gradient":
        angle = np.radians(float(rest[1]))
        along = np.divide(
            right * np.cos(angle) + down * np.sin(angle),
            length,
            np.zeros(x.shape),
            where=length > 0,
        )
        length = length * np.maximum(along, 0.0) ** 9
    return np.rint(length) if whole else length


def values_of(splits, X):
    """The values of a tree's atoms (samples, splits)."""
    x = X.astype(np.float64)
    views = np.stack([view_of(name, x, X.dtype.kind != "f") for name in splits.views], axis=1)
    found = np.empty((len(X), len(splits)))
    dense = splits.atoms.toarray().reshape(len(splits), len(splits.views), *SHAPE)
    for i, (atom, operation) in enumerate(zip(dense, splits.operation, strict=True)):
        if operation == "variance":
            plain = next(
                v for v, name in enumerate(splits.views) if "square" not in name and atom[v].any()
            )
            found[:, i] = views[:, plain][:, atom[plain] != 0].var(axis=1)
            continue
        rows, columns = splits.window[i]
        responses = np.stack(
            [
                np.einsum("nvij,vij->n", views, np.roll(atom, (a, b), (1, 2)))
                for a in range(rows)
                for b in range(columns)
            ]
        )
        reduce = {"max": np.max, "min": np.min}.get(operation, np.mean)
        if operation == "proportion":
            responses = responses > splits.bias[i]
        found[:, i] = reduce(responses, axis=0)
    return found


def assert_walks(model, X, tolerance):
    """Samples by hand arrive in the leaves that `apply` names.

    Where a value and its threshold differ by less than the tolerance, relative to the largest
    value, rounding decides and the walk follows the model.
    """
    leaves, paths = model.apply(X), model.decision_path(X)
    known = 0
    for tree, splits in enumerate(model.splits_):
        passes = paths[0][:, paths[1][tree] : paths[1][tree + 1]].toarray() == 1
        values = values_of(splits, X)
        place = {node: i for i, node in enumerate(splits.node.tolist())}
        for row in range(len(X)):
            node = 0
            while node in place:
                i = place[node]
                value, threshold = values[row, i], splits.threshold[i]
                left = value <= threshold
                if abs(value - threshold) <= tolerance * np.abs(values[:, i]).max():
                    left = passes[row, splits.left[i]]
                else:
                    known += 1
                node = int(splits.left[i] if left else splits.right[i])
            assert node == leaves[row, tree]
    return known


ESTIMATORS = {
    "forest": lambda d: MorfClassifier(d, n_estimators=2, random_state=0),
    "regression": lambda d: MorfRegressor(d, n_estimators=2, max_depth=5, random_state=0),
    "boosting": lambda d: MorfBoostingRegressor(d, max_iter=2, max_depth=4, random_state=0),
    "boosted classes": lambda d: MorfBoostingClassifier(d, max_iter=2, random_state=0),
}


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DICTIONARIES)
def test_thresholds_are_in_the_units_of_the_data(name, dtype, estimator):
    X = samples(dtype)
    y = targets(X)
    if estimator in ("forest", "boosted classes"):
        y = np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))
    dictionary = DICTIONARIES[name]
    rounded = dtype.startswith("float") or "fractions" in name
    for drawn, tolerance in (
        (dictionary, 1e-5 if rounded else 1e-12),
        (Subset(dictionary, 60), 1e-5 if rounded else 1e-12),
        (SharedAtoms(dictionary, 60, combine=None), 5e-3),  # columns are rounded
    ):
        model = ESTIMATORS[estimator](drawn).fit(X, y)
        known = assert_walks(model, X, tolerance)
        passed = sum(model.decision_path(X)[0].sum(axis=1) - len(model.splits_))
        assert known > 0.7 * passed > 0


def test_combinations_are_in_the_units_of_the_data():
    X = samples("float64")
    y = np.digitize(targets(X), [0, 40])
    dictionary = SharedAtoms(Patch(1, 3, views=[Raw(), Square()]), 60, combine="ridge")
    model = MorfClassifier(dictionary, n_estimators=3, random_state=0).fit(X, y)
    assert "combination" in np.concatenate([tree.operation for tree in model.splits_])
    assert assert_walks(model, X, 2e-2) > 100


def test_thresholds_of_squares_are_as_large_as_squares():
    X = np.random.default_rng(0).normal(size=(300, 8, 8))
    y = (X**2)[:, 2:4, 3:5].sum(axis=(1, 2)) > 4
    model = MorfClassifier(Patch(1, 1, views=Square()), n_estimators=5, random_state=0).fit(X, y)
    thresholds = np.concatenate([tree.threshold for tree in model.splits_])
    assert 0 < thresholds.min() < 1 < thresholds.max() < (X**2).max()


def test_proportions_of_wins_are_proportions():
    X = samples("float32").reshape(-1, 30)
    competing = Kernel("sign", 3, 3, pool="win", window=1.0, rivals=2)
    for dictionary in (competing, SharedAtoms(competing, 50, combine=None)):
        model = MorfRegressor(dictionary, n_estimators=2, random_state=0)
        for tree in model.fit(X, X[:, 3]).splits_:
            assert set(tree.operation) == {"win"}
            assert (tree.threshold > 0).all()
            assert (tree.threshold < 1).all()


# --- the object ------------------------------------------------------------------------------


def test_a_sequence_of_trees():
    model = fit_digits(Patch(1, 3))
    splits = model.splits_
    assert isinstance(splits, morforest.Splits)
    assert len(splits) == len(list(splits)) == model.n_estimators
    inner = model.get_n_leaves() - 1
    assert [len(tree) for tree in splits] == inner.tolist()
    assert repr(splits) == f"Splits(5 trees, {inner.sum()} splits)"
    assert repr(splits[0]) == f"TreeSplits({inner[0]} splits over raw)"
    np.testing.assert_array_equal(splits[-1].threshold, splits[4].threshold)
    assert [len(tree) for tree in splits[1:3]] == inner[1:3].tolist()
    for wrong in (5, -6):
        with pytest.raises(IndexError, match="no tree"):
            splits[wrong]


@pytest.mark.parametrize("fit", [fit_digits, fit_friedman])
def test_splits_say_what_the_forest_holds(fit):
    model = fit(Mixture([SparseOblique(), Axis()]))
    forest, begin = model._forest, model._forest.tree_begin.astype(int)
    for number, tree in enumerate(model.splits_):
        nodes = slice(begin[number], begin[number + 1])
        inner = np.flatnonzero(forest.next[nodes] >= 0)
        np.testing.assert_array_equal(tree.node, inner)
        np.testing.assert_array_equal(tree.left, forest.next[nodes][inner])
        np.testing.assert_array_equal(tree.right, tree.left + 1)
        np.testing.assert_array_equal(tree.gain, forest.gains()[nodes][inner])
        np.testing.assert_array_equal(tree.weight, forest.weight[nodes][inner])
        assert (tree.atoms != forest.matrix()[nodes][inner]).nnz == 0
        assert (tree.gain > 0).all()
        assert set(tree.operation) == {"none"}
        assert np.isnan(tree.bias).all()
        assert (tree.window == 1).all()


def test_a_leaf_has_no_splits():
    tree = MorfTreeRegressor().fit([[1.0], [2.0]], [3.0, 3.0])
    assert repr(tree.splits_) == "Splits(1 tree, 0 splits)"
    assert len(tree.splits_[0]) == 0
    assert tree.splits_[0].atoms.shape == (0, 1)
