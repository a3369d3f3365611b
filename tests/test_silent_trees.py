"""What forests answer where some of their trees, or all, do not vote (honest_prior="ignore")."""

import pickle

import numpy as np
import oracle_attribution
import oracle_uncertainty
import oracle_weights
import pytest
from common import friedman
from sklearn.base import clone

from morforest import (
    Axis,
    MorfClassifier,
    MorfRegressor,
    MorfTreeClassifier,
    MorfTreeRegressor,
    Patch,
    SharedAtoms,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*variances were negative:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*were used by all trees:UserWarning"),
]
LEVELS = [0.0, 0.1, 0.5, 0.9, 1.0]
TRAINED = 60


def samples():
    """Images of 4 x 3, whose first row counts; trees see too few of them to fill all leaves."""
    random = np.random.default_rng(3)
    X = random.integers(0, 9, (100, 4, 3))
    return X, X[:, 0].sum(axis=1) + random.integers(0, 3, 100).astype(float)


def fitted(make, **parameters):
    """A forest, and the targets of its training samples."""
    X, y = samples()
    defaults = {
        "dictionary": Patch(1, 3),
        "n_estimators": 8,
        "honest": True,
        "honest_fraction": 0.12,
        "honest_prior": "ignore",
        "keep_samples": True,
        "random_state": 1,
    }
    if make is MorfClassifier:
        y = y // 7
    model = make(**defaults | parameters).fit(X[:TRAINED], y[:TRAINED])
    assert model._forest.silent_trees.any()
    return model, y[:TRAINED]


MAKE = [MorfClassifier, MorfRegressor]
PARAMETERS = [{}, {"n_estimators": 1}, {"n_estimators": 2}, {"n_estimators": 40}]


def predicted(model, X):
    found = model._predict_mean(X)
    return found if isinstance(model, MorfClassifier) else found[:, 0]


def votes(model, X):
    """How many trees vote on each sample."""
    return (~np.isnan(oracle_uncertainty.tree_predictions(model, X)).any(axis=2)).sum(axis=0)


def test_all_numbers_of_votes_occur():
    X, _ = samples()
    assert 0 in votes(fitted(MorfRegressor, n_estimators=2)[0], X)
    few = votes(fitted(MorfRegressor)[0], X)
    assert 1 < len(np.unique(few)) < 9
    assert few.max() < 8 or few.min() < 8


# --- attributions --------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
@pytest.mark.parametrize("make", MAKE)
def test_attributions_are_those_of_the_oracle_and_add_up(make, parameters):
    X, _ = samples()
    model, _ = fitted(make, **parameters)
    values, baseline = model.attributions(X)
    total = values.reshape(100, 12, -1).sum(axis=1) + baseline
    np.testing.assert_allclose(total, model._predict_mean(X), atol=1e-11)
    by_hand, roots = oracle_attribution.attributions_of_votes(model._forest, X.reshape(100, 12))
    np.testing.assert_allclose(values.reshape(by_hand.shape), by_hand, atol=1e-11)
    np.testing.assert_allclose(np.atleast_1d(baseline), roots, atol=1e-12)


@pytest.mark.parametrize(
    "dictionary",
    [Patch(1, 3, pool="max"), SharedAtoms(Patch(1, 3), 30), SharedAtoms(Patch(1, 2), 20)],
    ids=repr,
)
def test_attributions_of_other_atoms_add_up(dictionary):
    X, _ = samples()
    for make in MAKE:
        model, _ = fitted(make, dictionary=dictionary)
        values, baseline = model.attributions(X)
        total = values.reshape(100, 12, -1).sum(axis=1) + baseline
        np.testing.assert_allclose(total, model._predict_mean(X), atol=1e-9)


@pytest.mark.parametrize("make", [MorfTreeClassifier, MorfTreeRegressor])
def test_attributions_of_a_single_tree_add_up(make):
    X, y = samples()
    model = make(Axis(), honest=True, honest_prior="ignore", honest_fraction=0.1, random_state=0)
    values, baseline = model.fit(X, y // 7).attributions(X)
    total = values.reshape(100, 12, -1).sum(axis=1) + baseline
    np.testing.assert_allclose(total, model._predict_mean(X), atol=1e-11)


# --- weights -------------------------------------------------------------------------------------


def leaves_of(model, X):
    """What the oracle asks for: the leaves of rows, their weights, and the leaves of samples."""
    samples = model._leaf_samples
    train_leaf = np.full((samples.n_trees, samples.n_rows), -1)
    weight = np.zeros((samples.n_trees, samples.n_rows), dtype=np.int64)
    for tree in range(samples.n_trees):
        begin, row, of_row = samples.of_tree(tree)
        node = np.repeat(np.arange(len(begin) - 1), np.diff(begin.astype(int)))
        train_leaf[tree, row], weight[tree, row] = node, of_row
    return train_leaf, weight, model.apply(X)


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
@pytest.mark.parametrize("make", MAKE)
def test_weights_are_those_of_the_oracle_and_give_predictions(make, parameters):
    X, _ = samples()
    model, y = fitted(make, **parameters)
    weights, known = model.weights(X), leaves_of(model, X)
    expected = oracle_weights.forest_weights(*known, silent=True)
    np.testing.assert_array_equal(weights.toarray(), expected)
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-13)
    marks = y[:, np.newaxis] == model.classes_ if make is MorfClassifier else y
    np.testing.assert_allclose(weights @ marks, predicted(model, X), atol=1e-12)
    for ours, theirs in zip(model.nearest(X, 4), oracle_weights.nearest(expected, 4), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    if make is MorfRegressor:
        ranked = oracle_weights.quantiles(*known, y, LEVELS, silent=True)
        np.testing.assert_array_equal(model.predict_quantiles(X, LEVELS), ranked)


def test_a_warm_start_with_another_prior_keeps_both_rules():
    X, y = samples()
    model = MorfRegressor(
        Patch(1, 3), n_estimators=4, honest=True, honest_fraction=0.12, warm_start=True
    ).set_params(honest_prior="empirical", keep_samples=True, random_state=1)
    model.fit(X[:TRAINED], y[:TRAINED])
    model.set_params(n_estimators=8, honest_prior="ignore").fit(X[:TRAINED], y[:TRAINED])
    silent = model._forest.silent_trees
    assert not silent[:4].any()
    assert silent[4:].any()
    np.testing.assert_allclose(model.weights(X) @ y[:TRAINED], model.predict(X), rtol=1e-12)


# --- uncertainty ---------------------------------------------------------------------------------


def out_of_tree(model, X):
    """What the oracle asks: predictions of training rows and samples, bags, and leaves."""
    trained = samples()[0][:TRAINED]
    train, new = (oracle_uncertainty.tree_predictions(model, some) for some in (trained, X))
    return train, new, model._leaf_samples.drawn, oracle_uncertainty.tree_leaves(model)


@pytest.mark.parametrize("number", [3, 8, 30])
def test_intervals_are_those_of_the_oracle(number):
    X = samples()[0][:70]
    model, y = fitted(MorfRegressor, n_estimators=number, max_samples=0.6)
    train, new, drawn, leaves = out_of_tree(model, X)
    leaves = [of_tree[:, 0] for of_tree in leaves]
    expected = [
        oracle_uncertainty.interval(train[:, :, 0], y, new[:, i, 0], drawn, 0.7, leaves=leaves)
        for i in range(70)
    ]
    np.testing.assert_allclose(model.predict_interval(X, 0.7), expected, rtol=1e-11)


@pytest.mark.parametrize("number", [3, 8, 30])
def test_sets_are_those_of_the_oracle(number):
    X = samples()[0][:70]
    model, y = fitted(MorfClassifier, n_estimators=number, max_samples=0.6)
    codes = np.searchsorted(model.classes_, y)
    train, new, drawn, leaves = out_of_tree(model, X)
    expected = [
        oracle_uncertainty.prediction_set(train, codes, new[:, i], drawn, 0.7, leaves)
        for i in range(70)
    ]
    found = model.predict_set(X, 0.7, allow_empty=True)
    np.testing.assert_array_equal(found, expected)
    full = model.predict_set(X, 0.7)
    assert full[np.arange(70), np.searchsorted(model.classes_, model.predict(X))].all()


@pytest.mark.parametrize("number", [2, 8, 30])
@pytest.mark.parametrize("make", MAKE)
def test_deviations_are_those_of_the_oracle(make, number):
    X = samples()[0][:70]
    model, _ = fitted(make, n_estimators=number, max_samples=0.6)
    _, new, drawn, _ = out_of_tree(model, X)
    for method, oracle in (
        ("jackknife", oracle_uncertainty.standard_deviation),
        ("infinitesimal", oracle_uncertainty.infinitesimal_deviation),
    ):
        expected = [[oracle(new[:, i, k], drawn) for k in range(new.shape[2])] for i in range(70)]
        found = model.predict_std(X, method).reshape(70, -1)
        np.testing.assert_allclose(found, expected, rtol=1e-8)
        assert (np.isnan(found[:, 0]) == (votes(model, X) < 2)).all()


def test_intervals_cover():
    held = []
    for seed in range(15):
        random = np.random.default_rng(seed)
        X = random.uniform(-1, 1, (500, 3))
        y = 3 * np.sin(2 * X[:, 0]) + random.normal(size=500)
        model = MorfRegressor(honest=True, n_estimators=200, keep_samples=True, random_state=seed)
        low, high = model.fit(X[:100], y[:100]).predict_interval(X[100:], 0.8).T
        held.append(np.mean((low <= y[100:]) & (y[100:] <= high)))
    assert abs(np.mean(held) - 0.8) < 0.025


# --- the same whatever the call ------------------------------------------------------------------


@pytest.mark.parametrize("make", MAKE)
def test_neither_threads_nor_batches_nor_pickles_nor_rows_show(make):
    X, y = friedman()
    y = np.digitize(y, [10, 15]) if make is MorfClassifier else y
    model = make(honest=True, n_estimators=20, keep_samples=True, random_state=0)

    def answers(model, X):
        found = [model.attributions(X).values, model.weights(X).toarray(), model.predict_std(X)]
        if make is MorfClassifier:
            return [*found, model.predict_set(X, 0.8)]
        return [*found, model.predict_interval(X, 0.8), model.predict_quantiles(X, LEVELS)]

    expected = answers(model.fit(X, y), X)
    assert model._forest.silent_trees.any()
    threaded = clone(model).set_params(n_jobs=2).fit(X, y)
    for other in (pickle.loads(pickle.dumps(model)), threaded):
        for found, known in zip(answers(other, X), expected, strict=True):
            np.testing.assert_array_equal(found, known)
    for found, known in zip(answers(model, X[40:60]), expected, strict=True):
        np.testing.assert_array_equal(found, known[40:60])
    order = np.random.default_rng(0).permutation(250)
    moved = answers(clone(model).fit(X[order], y[order]), X)
    moved[1] = moved[1][:, np.argsort(order)]
    for found, known in zip(moved, expected, strict=True):
        np.testing.assert_array_equal(found, known)
