"""Forest weights, neighbours, proximities and quantiles."""

import numpy as np
import oracle
import oracle_atoms
import oracle_weights
import pytest
import scipy.sparse as sp
from common import classifier, digits, friedman, regressor
from hypothesis import HealthCheck, given, settings
from problems import CLASSIFICATION, REGRESSION, OracleForest, problems
from sklearn.base import clone
from sklearn.svm import SVC

from morforest import (
    Axis,
    Haar,
    ImageCopies,
    Kernel,
    MorfRegressor,
    Patch,
    SharedAtoms,
    Subset,
)
from morforest._forest_weights import MAX_PROXIMITIES

LEVELS = [0.9, 0.0, 0.25, 0.5, 1.0, 0.1]


def one_hot(model, y):
    return np.asarray(y)[:, np.newaxis] == model.classes_


# --- against the oracle ----------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@settings(
    max_examples=150,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(problems(CLASSIFICATION + REGRESSION))
def test_answers_equal_those_of_the_oracle(problem):
    problem.parameters |= {"keep_samples": True}
    model = problem.fit()
    del problem.parameters["keep_samples"]
    expected = OracleForest(problem, model)
    cells = expected.cells(expected.X)
    number = {id(node): i for nodes in expected.trees for i, node in enumerate(nodes)}
    leaves = [[number[id(oracle.leaf_of(nodes, row))] for row in cells] for nodes in expected.trees]
    keys = [oracle_atoms.tree_key(expected.seed, tree) for tree in range(expected.n_trees)]
    weight = [np.where(counts > 0, weights, 0) for (counts, weights), _ in map(expected.bags, keys)]
    rows = np.arange(len(problem.y))
    if problem.sample_weight is not None:
        rows = np.flatnonzero(problem.sample_weight)

    of_rows = oracle_weights.forest_weights(leaves, weight, np.transpose(leaves))
    everyone = np.zeros((len(expected.X), len(problem.y)))
    everyone[:, rows] = of_rows
    found = model.weights(expected.X)
    assert found.shape == everyone.shape
    assert found.nnz == np.count_nonzero(everyone)
    np.testing.assert_array_equal(found.toarray(), everyone)

    k = min(3, len(problem.y))
    for ours, theirs in zip(
        model.nearest(expected.X, k), oracle_weights.nearest(everyone, k), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(
        model.proximity(expected.X),
        oracle_weights.proximity(np.transpose(leaves), np.transpose(leaves)),
    )
    if not problem.classifies:
        y = np.asarray(problem.y, dtype=float)[rows]
        ranked = oracle_weights.quantiles(leaves, weight, np.transpose(leaves), y, LEVELS)
        np.testing.assert_array_equal(model.predict_quantiles(expected.X, LEVELS), ranked)


FORESTS = {
    "plain": {},
    "all samples": {"bootstrap": False},
    "few draws": {"max_samples": 30},
    "large leaves": {"min_samples_leaf": 9},
    "best first": {"max_leaf_nodes": 12},
    "axis": {"dictionary": Axis()},
    "haar": {"dictionary": Haar(1, 2)},
    "pooled": {"dictionary": Kernel("sign", 2, 3, pool="proportion")},
    "subset": {"dictionary": Subset(Patch(1, 3), 40)},
    "shared": {"dictionary": SharedAtoms(Patch(1, 3), 40)},
    "combined": {"dictionary": SharedAtoms(Patch(1, 3), 40, combine="ridge")},
    "copies": {"dictionary": Patch(1, 3), "augment": ImageCopies(copies=2)},
    "copies, shared": {"dictionary": SharedAtoms(Patch(1, 3), 40), "augment": ImageCopies()},
}
CLASS_WEIGHTS = {
    "balanced": {"class_weight": "balanced"},
    "balanced by bag": {"class_weight": "balanced_subsample"},
    "given": {"class_weight": {3: 2.5, 7: 0.0}},
}
SAMPLE_WEIGHTS = {
    "none": None,
    "whole": np.arange(400) % 4,
    "fractional": (np.arange(400) % 5) / 3,
}


@pytest.mark.parametrize("kind", SAMPLE_WEIGHTS)
@pytest.mark.parametrize("name", [*FORESTS, *CLASS_WEIGHTS])
def test_weights_times_classes_are_the_probabilities(name, kind):
    X, y = digits()
    parameters = FORESTS.get(name) or CLASS_WEIGHTS.get(name) or {}
    model = classifier(keep_samples=True, **parameters)
    model.fit(X[:200], y[:200], sample_weight=given_weights(kind, 200))
    found = model.weights(X)
    assert isinstance(found, sp.csr_matrix)
    assert found.shape == (400, 200)
    assert found.has_sorted_indices
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=0, atol=1e-14)
    probabilities = found @ one_hot(model, y[:200])
    np.testing.assert_allclose(probabilities, model.predict_proba(X), rtol=0, atol=1e-13)
    unused = np.flatnonzero(given_weights(kind, 200) == 0) if kind != "none" else []
    assert found[:, unused].nnz == 0


@pytest.mark.parametrize("kind", SAMPLE_WEIGHTS)
@pytest.mark.parametrize("criterion", ["squared_error", "poisson"])
@pytest.mark.parametrize("name", FORESTS)
def test_weights_times_numbers_are_the_prediction(name, criterion, kind):
    X, y = digits()
    model = regressor(keep_samples=True, criterion=criterion, **FORESTS[name])
    model.fit(X[:200], y[:200] + 0.5, sample_weight=given_weights(kind, 200))
    found = model.weights(X) @ (y[:200] + 0.5)
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-12)


def given_weights(kind, n):
    weights = SAMPLE_WEIGHTS[kind]
    return None if weights is None else weights[:n]


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_sums_of_whole_numbers_are_exact():
    # Leaves of one sample, and a power of two of trees: no share is rounded.
    X = np.random.default_rng(0).integers(0, 1000, (64, 5))
    y = np.arange(64.0)
    model = regressor(Axis(), n_estimators=16, random_split_rate=1.0, bootstrap=False)
    model.set_params(keep_samples=True).fit(X, y)
    others = np.random.default_rng(1).integers(0, 1000, (200, 5))
    np.testing.assert_array_equal(model.weights(others) @ y, model.predict(others))
    labels = classifier(Axis(), n_estimators=16, keep_samples=True, bootstrap=False).fit(X, y)
    found = labels.weights(others) @ one_hot(labels, y)
    np.testing.assert_array_equal(found, labels.predict_proba(others))


def test_medians_are_no_weighted_means():
    X, y = friedman()
    model = regressor(criterion="absolute_error", min_samples_leaf=8, keep_samples=True).fit(X, y)
    assert np.abs(model.weights(X) @ y - model.predict(X)).max() > 1e-3


# --- quantiles -------------------------------------------------------------------------------


def test_quantiles_are_those_of_the_weights():
    X, y = friedman()
    model = regressor(min_samples_leaf=5, keep_samples=True, n_estimators=20).fit(X, np.round(y))
    found = model.predict_quantiles(X[:50], LEVELS)
    assert found.shape == (50, len(LEVELS))
    weights = model.weights(X[:50]).toarray()
    order = np.argsort(np.round(y), kind="stable")
    for sample in range(50):
        up_to = np.cumsum(weights[sample][order])
        for level, quantile in zip(LEVELS, found[sample], strict=True):
            at = up_to[np.round(y)[order] <= quantile][-1]
            assert at >= level - 1e-10
            below = up_to[np.round(y)[order] < quantile]
            assert not len(below) or below[-1] < level or below[-1] == 0
    assert (np.diff(found[:, np.argsort(LEVELS)], axis=1) >= 0).all()


def test_a_level_that_is_reached_exactly_counts():
    # Thirds and sixths sum to halves, though not as floats.
    X = [[0]] * 6
    y = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    model = regressor(Axis(), bootstrap=False, keep_samples=True, n_estimators=3).fit(X, y)
    levels = np.arange(1, 7) / 6
    assert model.predict_quantiles([[0]], levels).tolist() == [y]
    assert model.predict_quantiles([[0]], levels + 1e-9 * (levels < 1)).tolist() == [[*y[1:], 6.0]]


def test_extreme_quantiles_are_the_extremes_of_the_leaves():
    X, y = friedman()
    weights = np.full(len(y), 1e9)
    weights[y == y.max()] = 1e-3  # hardly any weight, but some
    model = regressor(bootstrap=False, max_depth=1, keep_samples=True).fit(X, y, weights)
    used = model.weights(X) > 0
    expected = [(y[row.indices].min(), y[row.indices].max()) for row in used]
    np.testing.assert_array_equal(model.predict_quantiles(X, [0, 1]), expected)
    assert model.predict_quantiles(X, [1]).max() == y.max()


def test_a_single_level_is_a_column():
    X, y = friedman()
    model = regressor(keep_samples=True).fit(X, y)
    one = model.predict_quantiles(X, 0.5)
    assert one.shape == (len(X), 1)
    np.testing.assert_array_equal(one, model.predict_quantiles(X, [0.5]))
    np.testing.assert_array_equal(one.repeat(2, 1), model.predict_quantiles(X, (0.5, 0.5)))


@pytest.mark.parametrize(
    "q", [-0.1, 1.5, [0.5, np.nan], [], [[0.5]], "half", [True], None, ["0.5"], [0.5, np.inf]]
)
def test_bad_levels_are_named(q):
    X, y = friedman()
    model = regressor(keep_samples=True, n_estimators=1).fit(X, y)
    with pytest.raises(ValueError, match="q must be"):
        model.predict_quantiles(X, q)


# --- neighbours and proximities --------------------------------------------------------------


def test_nearest_samples_come_by_weight():
    X, y = digits()
    model = classifier(n_estimators=20, keep_samples=True).fit(X[:300], y[:300])
    rows, weights = model.nearest(X[300:], 10)
    for found, expected in zip(
        (rows, weights), oracle_weights.nearest(model.weights(X[300:]).toarray(), 10), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    assert rows.dtype == np.int64


def test_few_neighbours_are_filled_up():
    X, y = friedman()
    model = regressor(bootstrap=False, n_estimators=1, keep_samples=True).fit(X, y)
    rows, weights = model.nearest(X, 3)
    np.testing.assert_array_equal(rows[:, 0], np.arange(len(X)))
    assert (rows[:, 1:] == -1).all()
    assert (weights == [1, 0, 0]).all()


@pytest.mark.parametrize("k", [0, -1, 2.0, None, "3", True, 251])
def test_bad_numbers_of_neighbours_are_named(k):
    X, y = friedman()
    model = regressor(keep_samples=True, n_estimators=1).fit(X, y)
    with pytest.raises(ValueError, match="k must be an integer from 1 to 250"):
        model.nearest(X, k)


def test_proximities_are_shares_of_trees():
    X, y = digits()
    model = classifier(n_estimators=20).fit(X[:200], y[:200])
    leaves = model.apply(X)
    between = model.proximity(X[:60], X[60:])
    np.testing.assert_array_equal(between, oracle_weights.proximity(leaves[:60], leaves[60:]))
    own = model.proximity(X)
    np.testing.assert_array_equal(own, own.T)
    assert (np.diag(own) == 1).all()
    assert np.linalg.eigvalsh(own).min() > -1e-12
    np.testing.assert_array_equal(own, model.proximity(X, X))


def test_proximities_are_a_kernel_for_other_estimators():
    X, y = digits()
    model = classifier(n_estimators=50).fit(X[:200], y[:200])
    machine = SVC(kernel="precomputed").fit(model.proximity(X[:200]), y[:200])
    assert machine.score(model.proximity(X[200:], X[:200]), y[200:]) > 0.8


def test_proximities_of_very_many_samples_are_refused():
    model = regressor(n_estimators=1).fit([[0], [1]], [0.0, 1.0])
    X = np.zeros((int(MAX_PROXIMITIES**0.5) + 1, 1))
    with pytest.raises(ValueError, match=r"would need 8 GB: call it with fewer samples"):
        model.proximity(X)


def test_more_weights_than_fit_are_counted_and_refused(monkeypatch):
    X, y = digits()
    model = regressor(min_samples_leaf=20, keep_samples=True).fit(X[:200], y[:200])
    found = model.weights(X)
    monkeypatch.setattr("morforest._forest_weights.MAX_WEIGHTS", found.nnz)
    assert (model.weights(X) != found).nnz == 0
    monkeypatch.setattr("morforest._forest_weights.MAX_WEIGHTS", found.nnz - 1)
    message = rf"weights of 400 samples would be {found.nnz:,} numbers.* fewer samples at a time"
    with pytest.raises(ValueError, match=message):
        model.weights(X)
    assert model.weights(X[:200]).shape == (200, 200)


def test_leaves_of_one_sample_need_no_count(monkeypatch):
    X, y = friedman()
    model = regressor(keep_samples=True, n_estimators=4).fit(X, y)
    monkeypatch.setattr("morforest._forest_weights.MAX_WEIGHTS", 4 * len(X))
    monkeypatch.setattr(type(model._leaf_samples.core), "count", None, raising=False)
    assert model.weights(X).nnz <= 4 * len(X)


# --- what does not matter --------------------------------------------------------------------


def answers(model, X, order=slice(None)):
    found = {"weights": model.weights(X).toarray()[:, order], "proximity": model.proximity(X)}
    if isinstance(model, MorfRegressor):
        found["quantiles"] = model.predict_quantiles(X, LEVELS)
    return found


def assert_same_answers(one, other):
    for name, values in one.items():
        assert values.tobytes() == other[name].tobytes(), name


@pytest.mark.parametrize("name", ["plain", "shared", "copies", "large leaves"])
def test_threads_do_not_matter(name, monkeypatch):
    monkeypatch.setattr("morforest._forest_weights.SAMPLES_AT_ONCE", 7)
    monkeypatch.setattr("morforest._forest_weights.LEAVES", 200)
    X, y = digits()
    models = [
        regressor(n_jobs=jobs, keep_samples=True, **FORESTS[name]).fit(X[:150], y[:150])
        for jobs in (1, 2, 5)
    ]
    for model in models[1:]:
        assert_same_answers(answers(models[0], X), answers(model, X))
        for ours, theirs in zip(models[0].nearest(X, 4), model.nearest(X, 4), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_trees_in_parts_are_the_same(monkeypatch):
    X, y = digits()
    model = classifier(keep_samples=True).fit(X, y)
    monkeypatch.setattr("morforest._grow.BAG_BYTES", 1)
    assert_same_answers(answers(model, X), answers(clone(model).fit(X, y), X))


@pytest.mark.parametrize("name", ["plain", "large leaves", "shared", "few draws"])
@pytest.mark.parametrize("kind", SAMPLE_WEIGHTS)
def test_the_order_of_training_samples_does_not_matter(name, kind):
    X, y = digits()
    X, y = np.unique(X.reshape(400, -1), axis=0).reshape(-1, 8, 8)[:200], y[:200]
    order = np.random.default_rng(0).permutation(200)
    weights = given_weights(kind, 200)
    model = regressor(keep_samples=True, **FORESTS[name])
    one = clone(model).fit(X, y, weights)
    other = clone(model).fit(X[order], y[order], None if weights is None else weights[order])
    assert_same_answers(answers(other, X), answers(one, X, order))


def test_a_weight_of_two_is_the_sample_twice():
    X, y = friedman()
    one = regressor(keep_samples=True).fit(X, y, np.full(len(y), 2))
    two = regressor(keep_samples=True).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    np.testing.assert_array_equal(
        one.predict_quantiles(X, LEVELS), two.predict_quantiles(X, LEVELS)
    )
