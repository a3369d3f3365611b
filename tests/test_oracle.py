"""The core grows the trees of `oracle.py`, node by node.

`problems.py` makes the problems. Set MORFOREST_EXAMPLES to a factor to search that many times
longer, at random.
"""

import os
import sys

import numpy as np
import oracle
import oracle_atoms
import pytest
from common import MINIROCKET
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from problems import (
    CLASSIFICATION,
    MANY_ROWS,
    REGRESSION,
    OracleForest,
    Problem,
    as_oracle,
    assert_same_trees,
    bumps,
    problems,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from morforest import (
    Atoms,
    Axis,
    Difference,
    Gradient,
    Graph,
    Haar,
    Kernel,
    Magnitude,
    Mixture,
    Neighbours,
    Pair,
    Patch,
    Raw,
    Similarity,
    SparseOblique,
    Square,
    Variance,
    _core,
)
from morforest._fixed_point import choose_target_format, fixed_weights
from morforest._native import core
from morforest.dictionary._base import resolve

FACTOR = int(os.environ.get("MORFOREST_EXAMPLES", "1"))


def examples(number):
    return settings(
        max_examples=number * FACTOR,
        deadline=None,
        database=None,
        derandomize=FACTOR == 1,
        suppress_health_check=[HealthCheck.too_slow],
    )


# --- the core against the oracle -------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@examples(500)
@given(problems(CLASSIFICATION))
def test_classification_trees_equal_the_oracle(problem):
    assert_same_trees(problem)


@examples(500)
@given(problems(REGRESSION))
def test_regression_trees_equal_the_oracle(problem):
    assert_same_trees(problem)


@examples(150)
@given(problems(CLASSIFICATION + REGRESSION, rows=MANY_ROWS))
def test_large_nodes_equal_the_oracle(problem):
    # The core searches small and large nodes in different ways.
    problem.parameters |= {"max_depth": 2, "n_estimators": 1}
    assert_same_trees(problem)


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@examples(400)
@given(problems(CLASSIFICATION + REGRESSION, derived=True))
def test_derived_views_equal_the_oracle(problem):
    try:
        assert_same_trees(problem)
    except ValueError as error:  # squares of nearly equal floats
        if problem.X.dtype.kind != "f" or "need exact integers" not in str(error):
            raise
        reject()


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@examples(80)
@given(problems(CLASSIFICATION + REGRESSION))
def test_the_portable_build_equals_the_oracle(problem):
    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("morforest.") and getattr(module, "core", None) is core:
                patch.setattr(module, "core", _core)
        assert_same_trees(problem)


PATCH = Patch(min_size=1, max_size=(3, 2), boundary=("zero", "wrap"), contiguous=(True, False))
RING = np.roll(np.eye(12), 1, axis=1) + np.eye(12, k=5)
POINTS = [[i % 4 + i / 50, i // 4] for i in range(12)]
EACH_DICTIONARY = {
    "axis": Axis(),
    "rate": SparseOblique(rate=2.0),
    "density": SparseOblique(density=0.2),
    "patch": PATCH,
    "atoms": Atoms(np.array([[1, 2, 0, 0, -1, 0] * 2, [0, 1] * 6, [1, 1, 1] * 4])),
    "weighted": Atoms(np.eye(12)[:8], probabilities=np.arange(8.0)),
    "fractions": Atoms(np.eye(12) - 0.7 * np.eye(12)[::-1]),
    "mixture": Mixture([PATCH, SparseOblique(), Axis()], weights=[5, 3, 2]),
    "log": Patch(1, 3, size_distribution="log"),
    "signs": Patch(1, 3, boundary=("zero", "wrap"), contiguous=(True, False), weights="sign"),
    "uniform weights": Patch(1, 3, boundary="wrap", weights="uniform"),
    "normal weights": Patch(1, 2, weights="gaussian", views=[Raw(), Square()]),
    "weighted waves": Patch(2, 3, weights="gabor"),
    "pooled weights": Patch(1, (3, 2), weights="sign", boundary="wrap", pool=["max", "mean"]),
    "graph": Graph(RING, 1, 6, weights=bumps),
    "walk": Graph(RING, 2, 5, method="walk", views=[Raw(), Square()], weights="sign"),
    "hops": Graph(RING, hops=2, max_size=4),
    "neighbours": Neighbours(POINTS, k=2, size_distribution="log"),
    "similarity": Similarity(1 / (1 + np.arange(144.0).reshape(12, 12)), 1, 4, weights="gaussian"),
    "along": Patch(1, (None, 3), along={0: Graph(np.eye(4, k=1))}),
    "along both": Patch(along={-2: Graph(np.eye(4, k=2), hops=2), 1: Similarity(np.ones((3, 3)))}),
    "weighted along": Patch(
        (None, 2), (None, 3), boundary="wrap", along={0: Graph(np.eye(4, k=1), 2, 3)}, weights=bumps
    ),
    "pooled along": Patch(
        (1, None), (3, None), along={1: Graph(np.eye(3, k=1))}, pool=["max", "proportion"]
    ),
    "haar": Haar(),
    "pair": Pair(1, 2, reach=2),
    "gaussian": Kernel("gaussian", 2, 3),
    "gabor": Kernel("gabor", (2, 1), 3),
    "sign": Kernel("sign", 1, 3, dilation="log"),
    "rocket": Kernel(MINIROCKET, dilation=1),
    "own": Kernel([np.array([1, -2]), np.array([[1, 0], [-1, 3]])], dilation="log"),
    "gradient": Patch(1, 2, views=Gradient(4)),
    "one view": Patch(1, 2, views=Magnitude()),
    "views": Haar(views=[Raw(), Square(), Difference(0), Magnitude((1, 0))]),
    "across": Pair(1, 2, reach=1, views=[Gradient(3), Raw()]),
    "waves": Kernel("gabor", 2, 3, views=[Raw(), Difference()]),
    "image": Mixture(
        [Patch(1, 3, views=Gradient(8)), Axis(), Pair(views=[Raw(), Magnitude()])], [2, 1, 2]
    ),
    "max": Patch(1, (3, 2), pool="max"),
    "min": Haar(1, (2, 1), pool="min", window=2),
    "mean": Patch(1, (3, 2), boundary="wrap", pool="mean"),
    "proportion": Haar(1, (2, 1), pool="proportion"),
    "ppv of a column": Patch(1, (3, 2), contiguous=(True, False), pool="proportion", window=1.0),
    "variance": Variance(1, 3, views=[Raw(), Difference()]),
    "pooled kernels": Kernel([np.array([1, -2]), np.array([[1], [3]])], pool=["proportion", "max"]),
    "pooled signs": Kernel("sign", 1, 2, dilation="log", pool="mean", window=2),
    "competing": Kernel([np.array(k) for k in ([1, 0], [1, 2], [0, 3])], pool="win", rivals=2),
    "competing signs": Kernel("sign", 2, 2, pool=["win", "lose", "proportion"], rivals=3),
    "pooled views": Haar(
        1, 1, views=[Raw(), Difference(), Magnitude()], pool=["proportion", "min"]
    ),
    "nonlinear": Mixture(
        [Patch(1, 2), Haar(1, 1, pool=["proportion", "max"]), Variance(1, 2)], weights=[1, 2, 1]
    ),
}


def clear_problem(dictionary, criterion="gini", splitter="exact", n_rows=60, **limits):
    """A problem in which every tree has much to split, for tests of one thing at a time."""
    rng = np.random.default_rng(7)
    X = rng.integers(0, 9, (n_rows, 4, 3))
    y = X[:, 0].sum(axis=1) + rng.integers(0, 3, n_rows)
    parameters = {
        "criterion": criterion,
        "splitter": splitter,
        "max_features": 3,
        "n_estimators": 2,
        "bootstrap": True,
        "random_state": 1,
    } | limits
    target = y // 7 if criterion in CLASSIFICATION else y.astype(float)
    return Problem(X, target, dictionary, parameters)


@pytest.mark.parametrize("name", EACH_DICTIONARY)
def test_each_dictionary_equals_the_oracle(name):
    problem = clear_problem(EACH_DICTIONARY[name])
    if name == "rocket":
        problem = Problem(
            problem.X.reshape(-1, 12), problem.y, Kernel(MINIROCKET), problem.parameters
        )
    forest = assert_same_trees(problem)
    assert all(len(nodes) > 15 for nodes in forest.trees)


@pytest.mark.parametrize("name", ["haar", "pair", "sign", "views", "across", "image"])
@pytest.mark.parametrize("kind", ["floats", "wide", "large"])
def test_dictionaries_equal_the_oracle_in_other_numbers(name, kind):
    problem = clear_problem(EACH_DICTIONARY[name])
    if kind == "floats":
        problem.X = problem.X + np.random.default_rng(0).random(problem.X.shape)
    elif kind == "large":  # beyond what squares and gradients of integers could hold
        problem.X = problem.X * 2**52 + 1
    else:  # float64 cells without prefix sums
        problem.X = problem.X * 100.0 ** np.arange(12).reshape(4, 3)
        if name not in ("haar", "pair", "sign"):
            with pytest.warns(UserWarning, match=r"X spans many orders of magnitude.*scale"):
                forest = assert_same_trees(problem)
            assert not forest.format.real
            return
    forest = assert_same_trees(problem)
    assert forest.format.real == (kind == "wide")
    assert all(len(nodes) > 15 for nodes in forest.trees)


@pytest.mark.parametrize("criterion", CLASSIFICATION + REGRESSION)
def test_each_criterion_equals_the_oracle(criterion):
    forest = assert_same_trees(clear_problem(PATCH, criterion))
    assert all(len(nodes) > 15 for nodes in forest.trees)


@pytest.mark.parametrize(
    "limit",
    [
        {"max_depth": 3},
        {"min_samples_split": 15},
        {"min_samples_leaf": 6},
        {"min_weight_fraction_leaf": 0.1},
        {"min_impurity_decrease": 0.03},
        {"max_leaf_nodes": 7},
    ],
    ids=lambda limit: next(iter(limit)),
)
@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_each_limit_bites_and_equals_the_oracle(criterion, limit):
    if criterion == "squared_error" and "min_impurity_decrease" in limit:
        limit = {"min_impurity_decrease": 0.5}
    free = assert_same_trees(clear_problem(PATCH, criterion))
    limited = assert_same_trees(clear_problem(PATCH, criterion, **limit))
    assert 1 < len(limited.trees[0]) < len(free.trees[0])


@pytest.mark.parametrize(
    ("criterion", "seed"),
    [("gini", 14), ("gini", 29), ("squared_error", 19), ("squared_error", 20), ("poisson", 0)],
)
def test_near_ties_are_decided_by_the_same_rounding(criterion, seed):
    # Seeds for which two splits of nearly the same worth differ in the last bit, so that a score
    # written in another way (S / w for S * (1 / w)) chooses the other one.
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (40, 12)), rng.integers(0, 3, 40)
    parameters = {
        "criterion": criterion,
        "splitter": "exact",
        "max_features": 6,
        "n_estimators": 4,
        "bootstrap": False,
        "random_state": seed,
    }
    target = y if criterion in CLASSIFICATION else y.astype(float)
    assert_same_trees(Problem(X, target, Axis(), parameters))


def test_equal_gains_are_split_in_the_order_of_nodes():
    # The first feature halves the samples; each half gains as much by the second.
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    parameters = {
        "criterion": "squared_error",
        "splitter": "exact",
        "max_features": 2,
        "n_estimators": 3,
        "bootstrap": False,
        "random_state": 0,
        "max_leaf_nodes": 3,
    }
    problem = Problem(X, np.array([0.0, 1.0, 10.0, 11.0]), Axis(), parameters)
    forest = assert_same_trees(problem)
    for root, left, right, *_ in forest.trees:
        assert (root.left, left.left, right.left) == (1, 3, -1)
        assert left.best.gain == right.best.gain


# --- drawing again ---------------------------------------------------------------------------


def one_useful_feature(dictionary, n_features, **parameters):
    X = np.zeros((8, n_features), dtype=np.uint8)
    X[:, -1] = np.arange(8)
    defaults = {"criterion": "gini", "splitter": "exact", "max_features": 1}
    forest = {"n_estimators": 40, "bootstrap": False, "random_state": 3}
    return Problem(X, np.arange(8) % 2, dictionary, defaults | forest | parameters)


def test_a_finite_dictionary_is_drawn_to_its_end():
    forest = assert_same_trees(one_useful_feature(Axis(), 50))
    assert {len(nodes) for nodes in forest.trees} == {15}


def test_other_dictionaries_are_drawn_for_sixteen_rounds():
    # A draw hits the useful feature once in 16 times, so trees end where the last round does.
    forest = assert_same_trees(one_useful_feature(Patch(max_size=1), 16))
    sizes = {len(nodes) for nodes in forest.trees}
    assert len(sizes) > 3


def test_a_mixture_is_drawn_again_when_one_of_its_parts_is_exhausted():
    # The first part has one useless atom. A round that draws it once more brings no candidate,
    # but is not the last.
    useless = Atoms(np.eye(6)[:1])
    mixture = Mixture([useless, Axis()], weights=[0.9, 0.1])
    assert_same_trees(one_useful_feature(mixture, 6))


# --- both ways of growing, and prediction ----------------------------------------------------


def test_best_first_growth_splits_the_same_nodes():
    problem = clear_problem(PATCH)
    depth_first = problem.fit().predict_proba(problem.X)
    problem.parameters["max_leaf_nodes"] = 10**6
    np.testing.assert_array_equal(problem.fit().predict_proba(problem.X), depth_first)


@pytest.mark.parametrize("criterion", CLASSIFICATION + REGRESSION)
def test_the_default_splitter_is_exact_in_small_nodes(criterion):
    exact = clear_problem(PATCH, criterion, n_rows=64).fit()
    default = clear_problem(PATCH, criterion, n_rows=64, splitter="histogram").fit()
    for name in ("next", "threshold", "weight", "gain", "leaf_value", "distribution_weight"):
        np.testing.assert_array_equal(getattr(exact._forest, name), getattr(default._forest, name))
    assert (exact._forest.matrix() != default._forest.matrix()).nnz == 0


@pytest.mark.parametrize("criterion", ["gini", "poisson"])
@pytest.mark.parametrize("name", ["patch", "rate", "haar", "image", "waves"])
def test_predictions_of_new_samples_equal_the_oracle(name, criterion):
    problem = clear_problem(EACH_DICTIONARY[name], criterion)
    model = problem.fit()
    expected = OracleForest(problem, model)
    X = np.random.default_rng(0).integers(-30, 300, (100, 4, 3))
    if problem.classifies:
        posterior = oracle.posterior(expected.trees, expected.cells(X))
        np.testing.assert_allclose(model.predict_proba(X), posterior, rtol=0, atol=1e-15)
    else:
        np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-12)


# --- the number formats that the oracle takes from the package -------------------------------


@examples(100)
@given(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=30))
def test_fixed_weights_keep_proportions_and_sum_below_the_limit(weights):
    weights = np.array(weights)
    fixed = fixed_weights(weights, np.ones(len(weights), np.uint32)).astype(np.int64)
    assert (fixed > 0).all()
    assert fixed.sum() < 2**31
    scale = fixed.sum() / weights.sum()
    assert abs(fixed - weights * scale).max() <= len(weights) + 1
    if not (weights == np.rint(weights)).all():
        assert fixed.sum() > 2**29 - 1


@examples(100)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30),
    st.integers(1, 2**31),
    st.booleans(),
)
def test_target_sums_stay_below_the_limit(y, total_weight, centred):
    y = np.array(y)
    criterion = "squared_error" if centred else "poisson"
    found = choose_target_format(y, total_weight, criterion)
    assert found.centre == ((y.min() + y.max()) / 2 if centred else 0.0)
    largest = int(abs(oracle.fixed_point(y - found.centre, found.bits)).max())
    assert largest * total_weight < 2**62
    # Not finer by choice: a few bits more would not fit.
    assert largest == 0 or largest * total_weight > 2**58 or found.bits == 1000


BOUNDED = {
    "patch": Patch(1, 4),
    "haar": Haar(1, 3),
    "pair": Pair(1, 4),
    "kernel": Kernel([np.array([[1, -3], [2, 1]])]),
    "sign": Kernel("sign", 2, 3),
    "mixture": Mixture([Patch(1, 2), Pair(1, 3), Axis()], [1, 1, 1]),
}


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("low", [0, -7])
@pytest.mark.parametrize(
    "views", [None, Raw(), Difference(), Square(), Magnitude(), Gradient(8)], ids=repr
)
def test_no_value_exceeds_its_bound(name, views, low):
    dictionary, shape = BOUNDED[name], (8, 8)
    for part in getattr(dictionary, "dictionaries", [dictionary]):
        if not isinstance(part, Axis):
            part.set_params(views=views)
    # Extreme values, as noise, and in blocks of two by two, where every gradient is the largest.
    rng = np.random.default_rng(0)
    blocks = np.indices(shape).sum(axis=0) // 2 % 2
    q = np.concatenate([rng.random((300, *shape)) < 0.5, [blocks, 1 - blocks, blocks * 0 + 1]])
    q = np.where(q, 7, low)
    _, sources = as_oracle(dictionary, shape)
    cells = [oracle.derive_view(q, *source).reshape(len(q), -1) for source in sources]
    atoms = dictionary.sample(shape, 2000, random_state=0)
    largest = abs(atoms @ np.concatenate(cells, axis=1).T).max()
    bounds = resolve(dictionary, shape).bounds
    assert largest <= bounds.value_within(low, 7) <= bounds.value(7)
    if low == 0 and not isinstance(views, Difference):  # whose sums telescope
        assert bounds.value_within(low, 7) < 3 * largest  # or the cells are wider than need be
    limit = bounds.limit()
    assert bounds.fits(limit * (1 - 1e-9) - 1, 61)
    assert not bounds.fits(limit * (1 + 1e-9) + 1, 61)
    assert bounds.value(limit) <= 2.0**61 * (1 + 1e-9)


# --- the oracle itself -----------------------------------------------------------------------


def test_the_logarithm_is_right():
    values = np.concatenate([np.arange(1, 3000), np.geomspace(1e-9, 1e18, 500)]).tolist()
    own = np.array([oracle.log2(value) for value in values])
    np.testing.assert_allclose(own, np.log2(values), rtol=1e-15, atol=1e-15)
    # Powers of two are exact, so that pure halves tie.
    assert [oracle.log2(2.0**k) for k in range(-60, 61)] == list(range(-60, 61))


@pytest.mark.parametrize("criterion", CLASSIFICATION + REGRESSION)
def test_the_oracle_finds_the_gain_of_another_library(criterion):
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 20, (40, 5)), rng.integers(0, 4, 40)
    weights = rng.integers(1, 4, 40)
    peer = DecisionTreeClassifier if criterion in CLASSIFICATION else DecisionTreeRegressor
    tree = peer(criterion=criterion, max_depth=1).fit(X, y, sample_weight=weights).tree_
    share = tree.weighted_n_node_samples / tree.weighted_n_node_samples[0]
    decrease = tree.impurity[0] - share[1:] @ tree.impurity[1:]
    rows = oracle.Rows(X, y, weights, weights, n_classes=4)
    growth = oracle.Growth(n_candidates=5, criterion=criterion, max_depth=1)
    root, left, right = oracle.grow_tree(
        rows, oracle_atoms.Dictionary([oracle_atoms.axis_atoms(5)]), growth, 0
    )
    assert root.split.gain == pytest.approx(decrease, rel=1e-6)
    if criterion in REGRESSION:
        values = [oracle.leaf_value(node.rows, criterion) for node in (left, right)]
        assert sorted(values) == pytest.approx(sorted(tree.value[1:, 0, 0]))
