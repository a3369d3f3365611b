"""Polytopes of leaves: their samples satisfy the inequalities, and no others do."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from morforest import (
    Atoms,
    Axis,
    Difference,
    Haar,
    Mixture,
    MorfBoostingClassifier,
    MorfBoostingRegressor,
    MorfClassifier,
    MorfRegressor,
    MorfTreeClassifier,
    MorfTreeRegressor,
    Pair,
    Patch,
    Polytope,
    Raw,
    SharedAtoms,
    SparseOblique,
    Square,
    Subset,
    Variance,
)

SHAPE = (4, 5)
FRACTIONS = sp.csr_matrix(np.random.default_rng(1).normal(size=(30, 20)))
DICTIONARIES = {
    "axis": Axis(),
    "sparse": SparseOblique(rate=3.0),
    "patch": Patch(max_size=3),
    "wrap": Patch(max_size=3, boundary="wrap"),
    "pair": Pair(1, 2, reach=2),
    "differences": Patch(max_size=3, views=[Raw(), Difference(), Difference(0)]),
    "fractions": Atoms(FRACTIONS),
    "subset": Subset(Haar(max_size=2), 20),
    "columns": SharedAtoms(Patch(max_size=3), 40),
    "several": Mixture([Axis(), Haar()], [1, 2]),
}
KINDS = {
    "bytes": lambda rng, n: rng.integers(0, 256, (n, *SHAPE)).astype(np.uint8),
    "integers": lambda rng, n: rng.integers(-9, 10, (n, *SHAPE)),
    "floats": lambda rng, n: rng.normal(size=(n, *SHAPE)),
    "units": lambda rng, n: rng.normal(size=(n, *SHAPE)) * 1e-9 + 1e-7,
}
MODELS = [
    MorfClassifier(n_estimators=3),
    MorfRegressor(n_estimators=3, max_leaf_nodes=12),
    MorfTreeClassifier(),
    MorfTreeRegressor(honest=True),
    MorfBoostingClassifier(max_iter=3, min_samples_leaf=5),
    MorfBoostingRegressor(max_iter=3, min_samples_leaf=5),
]


def fitted(model, dictionary, kind, rng):
    X, new = KINDS[kind](rng, 150), KINDS[kind](rng, 200)
    y = X.reshape(150, -1).astype(float) @ rng.normal(size=20)
    if isinstance(model, (MorfClassifier, MorfTreeClassifier, MorfBoostingClassifier)):
        y = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    return model.set_params(dictionary=dictionary, random_state=0).fit(X, y), X, new


def satisfied(polytope, X):
    """Which samples satisfy the system in float64, and whether the tolerance leaves a doubt."""
    values = np.asarray(polytope.A @ X.reshape(len(X), -1).astype(np.float64).T)
    b = polytope.b[:, np.newaxis]
    holds = np.where(polytope.strict[:, np.newaxis], values < b, values <= b)
    largest = np.abs(polytope.A) @ np.abs(X.reshape(len(X), -1).astype(np.float64)).T
    doubt = np.abs(values - b) <= polytope.tolerance[:, np.newaxis] + 1e-13 * largest
    return holds.all(axis=0), doubt.any(axis=0)


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name in DICTIONARIES for kind in KINDS]
)
def test_the_samples_of_a_leaf_satisfy_its_system_and_no_others_do(name, kind):
    # Each dictionary meets two kinds of models with each kind of data, and all kinds in all.
    first = [*DICTIONARIES].index(name) + 2 * [*KINDS].index(kind)
    rng = np.random.default_rng(first)
    for model in (MODELS[first % 6], MODELS[(first + 3) % 6]):
        check_leaves(*fitted(clone(model), DICTIONARIES[name], kind, rng), name, kind, rng)


def check_leaves(model, X, new, name, kind, rng):
    for samples in (X, new):
        leaves = model.apply(samples)
        doubts = 0
        for tree in range(leaves.shape[1]):
            reached = np.unique(leaves[:, tree])
            for leaf in rng.permutation(reached)[:6].tolist():
                expected = leaves[:, tree] == leaf
                polytope = model.polytope(tree, leaf)
                np.testing.assert_array_equal(polytope.contains(samples), expected)
                found, doubt = satisfied(polytope, samples)
                if kind in ("bytes", "integers") and name not in ("fractions", "columns"):
                    doubt[:] = False  # whole numbers are exact
                np.testing.assert_array_equal(found[~doubt], expected[~doubt])
                doubts = max(doubts, doubt.mean())
        # Doubts are rare where features are fine beside the distances of samples.
        assert doubts < 0.05 or name == "fractions"


@pytest.mark.parametrize("name", ["axis", "patch", "columns"])
def test_fractions_met_by_a_forest_of_whole_numbers(name):
    rng = np.random.default_rng(0)
    model, X, _ = fitted(MorfClassifier(n_estimators=2), DICTIONARIES[name], "integers", rng)
    new = X + rng.uniform(-1, 1, X.shape)
    leaves = model.apply(new)
    for leaf in np.unique(leaves[:, 0]).tolist():
        polytope = model.polytope(0, leaf)
        np.testing.assert_array_equal(polytope.contains(new), leaves[:, 0] == leaf)
        found, doubt = satisfied(polytope, new)
        np.testing.assert_array_equal(found[~doubt], (leaves[:, 0] == leaf)[~doubt])
        assert doubt.mean() < 0.01


def test_the_leaves_of_a_tree_share_the_samples():
    model, _, new = fitted(
        MorfTreeClassifier(), SparseOblique(), "floats", np.random.default_rng(0)
    )
    leaves = np.flatnonzero(~model._forest.is_split()).tolist()
    inside = np.array([model.polytope(0, leaf).contains(new) for leaf in leaves])
    np.testing.assert_array_equal(inside.sum(axis=0), 1)


def test_rows_say_which_split_they_come_from():
    model, X, _ = fitted(MorfTreeRegressor(), Axis(), "integers", np.random.default_rng(3))
    splits = model.splits_[0]
    leaf = int(model.apply(X[:1])[0, 0])
    whole = model.polytope(0, leaf, simplify=False)
    path = model.decision_path(X[:1])[0].indices
    np.testing.assert_array_equal(whole.node, np.sort(path)[:-1])
    of_split = np.searchsorted(splits.node, whole.node)
    sign = np.where(whole.strict, -1.0, 1.0)
    np.testing.assert_array_equal(sign * whole.b, splits.threshold[of_split])
    assert (sp.diags(sign) @ whole.A != splits.atoms[of_split]).nnz == 0
    # Fewer rows say the same: for each feature at most one from below and one from above.
    simple = model.polytope(0, leaf)
    assert len(simple) < len(whole)
    assert len({tuple(row) for row in simple.A.toarray().tolist()}) == len(simple)
    assert set(simple.node.tolist()) <= set(whole.node.tolist())
    grid = np.random.default_rng(0).integers(-9, 10, (2000, 20))
    np.testing.assert_array_equal(satisfied(simple, grid)[0], satisfied(whole, grid)[0])


def test_a_tree_of_one_leaf_has_all_samples():
    model = MorfTreeRegressor().fit([[1.0, 2.0], [3.0, 4.0]], [5.0, 5.0])
    polytope = model.polytope(0, 0)
    assert polytope.A.shape == (0, 2)
    assert len(polytope) == 0
    assert polytope.contains([[9.0, 9.0]]).all()


def test_polytopes_survive_pickling():
    model, X, _ = fitted(
        MorfClassifier(n_estimators=2), Patch(), "floats", np.random.default_rng(0)
    )
    leaf = int(model.apply(X[:1])[0, 1])
    polytope = model.polytope(1, leaf)
    again = pickle.loads(pickle.dumps(polytope))
    assert isinstance(again, Polytope)
    np.testing.assert_array_equal(again.contains(X), polytope.contains(X))
    assert repr(again) == repr(polytope)
    np.testing.assert_array_equal(polytope.contains(X), polytope.contains(X.reshape(len(X), -1)))


NONLINEAR = {
    "max": Patch(max_size=3, pool="max"),
    "proportion": Haar(max_size=2, pool="proportion"),
    "variance": Variance(2, 3),
    "square": Patch(max_size=3, views=Square()),
    "magnitude": "image",
    "combines": SharedAtoms(Patch(max_size=3), 40, combine="ridge"),
}


@pytest.mark.parametrize("what", NONLINEAR)
def test_what_is_not_linear_is_refused(what):
    rng = np.random.default_rng(0)
    model, X, _ = fitted(MorfClassifier(n_estimators=2), NONLINEAR[what], "floats", rng)
    # Not the rule: a split of a mixture may be linear, as some above a leaf of "image" are.
    leaves = np.unique(model.apply(X)[:, 0]).tolist()
    with pytest.raises(ValueError, match=r"no polytope: the split at node .* not linear"):
        _ = [model.polytope(0, leaf) for leaf in leaves]


def test_bad_numbers_are_explained():
    model, X, _ = fitted(MorfClassifier(n_estimators=2), Axis(), "floats", np.random.default_rng(0))
    leaf = int(model.apply(X[:1])[0, 0])
    for tree in (2, -1, 1.5, None, "0", True):
        with pytest.raises(ValueError, match="tree must be an integer from 0 to 1"):
            model.polytope(tree, leaf)
    for bad in (10**6, -1, 0.5, None):
        with pytest.raises(ValueError, match="leaf must be an integer from 0 to"):
            model.polytope(0, bad)
    with pytest.raises(ValueError, match="leaf=0 is a split of tree 0"):
        model.polytope(0, 0)
    with pytest.raises(ValueError, match="simplify must be True or False"):
        model.polytope(0, leaf, simplify="yes")
    polytope = model.polytope(0, leaf)
    with pytest.raises(ValueError, match=r"samples of shape \(3,\)"):
        polytope.contains(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="NaN"):
        polytope.contains(np.full((2, 20), np.nan))
    with pytest.raises(ValueError, match="masked"):
        polytope.contains(np.ma.masked_equal(X, X[0, 0, 0]))
