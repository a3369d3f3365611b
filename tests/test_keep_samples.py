"""What keep_samples keeps: with warm starts, refits, interrupts and pickles."""

import pickle

import numpy as np
import pytest
from common import classifier, digits, friedman, regressor
from sklearn.exceptions import NotFittedError
from test_forest_weights import FORESTS, SAMPLE_WEIGHTS, answers, assert_same_answers

from morforest import MorfClassifier, MorfRegressor, MorfTreeRegressor
from morforest._leaf_samples import join_entries, pack_entries, unpack_entries


def drawn_weights(model):
    """Weights of the rows in each tree, from the kept lists."""
    samples = model._leaf_samples
    found = np.zeros((samples.n_trees, samples.n_rows), dtype=np.int64)
    for tree in range(samples.n_trees):
        _, row, weight = samples.of_tree(tree)
        np.add.at(found[tree], row, weight)
    return found


@pytest.mark.parametrize("estimator", [MorfClassifier, MorfRegressor])
def test_without_kept_samples_the_remedy_is_named(estimator):
    X, y = digits()
    model = estimator(n_estimators=2, random_state=0).fit(X, y)
    questions = {"weights": (), "nearest": (3,), "predict_quantiles": ([0.5],)}
    for name, more in questions.items():
        if hasattr(model, name):
            with pytest.raises(ValueError, match="fit with keep_samples=True"):
                getattr(model, name)(X, *more)
            with pytest.raises(NotFittedError):
                getattr(estimator(), name)(X, *more)
    with pytest.raises(NotFittedError):
        estimator().proximity(X)
    assert model.proximity(X).shape == (400, 400)


def test_single_trees_have_no_weights():
    assert not hasattr(MorfTreeRegressor, "weights")
    assert not hasattr(MorfClassifier, "predict_quantiles")


@pytest.mark.parametrize("value", [1, "yes", None])
def test_the_parameter_is_a_flag(value):
    with pytest.raises(ValueError, match="keep_samples must be True or False"):
        regressor(keep_samples=value).fit([[0], [1]], [0.0, 1.0])


@pytest.mark.parametrize("question", ["weights", "nearest", "proximity", "predict_quantiles"])
def test_samples_are_checked(question):
    X, y = friedman()
    model = regressor(keep_samples=True, n_estimators=2).fit(X, y)
    more = {"nearest": (2,), "predict_quantiles": ([0.5],)}.get(question, ())
    for bad, message in (
        (X[:, :3], "features"),
        ([[np.inf] * 8], "infinity"),
        ([["a"] * 8], "numeric"),
        (X[:0], "sample"),
    ):
        with pytest.raises(ValueError, match=message):
            getattr(model, question)(bad, *more)
    with pytest.raises(ValueError, match="features"):
        model.proximity(X, X[:, :3])


@pytest.mark.parametrize("name", ["plain", "shared", "copies"])
def test_a_warm_start_continues(name):
    X, y = digits()
    parameters = {"keep_samples": True, **FORESTS[name]}
    weights = SAMPLE_WEIGHTS["whole"]
    grown = regressor(warm_start=True, **parameters).fit(X, y, weights)
    grown.set_params(n_estimators=9).fit(X.astype(float), y, weights)
    fresh = regressor(n_estimators=9, **parameters).fit(X, y, weights)
    assert_same_answers(answers(fresh, X), answers(grown, X))
    np.testing.assert_array_equal(grown._leaf_samples.drawn, fresh._leaf_samples.drawn)


def test_a_warm_start_needs_the_same_samples():
    X, y = friedman()
    ones = np.ones(len(y))
    none = np.where(np.arange(len(y)) < 3, 0.0, ones)
    for more_X, more_y, weights in (
        (X[::-1], y, None),
        (X, y[::-1], None),
        (X + 1e-3, y, None),
        (X[:-1], y[:-1], None),
        (X, y, none),
    ):
        model = regressor(keep_samples=True, warm_start=True).fit(X, y)
        before = answers(model, X)
        model.set_params(n_estimators=8)
        with pytest.raises(ValueError, match="keep_samples=True needs the same X and y"):
            model.fit(more_X, more_y, weights)
        assert_same_answers(before, answers(model, X))
        model.set_params(keep_samples=False).fit(more_X, more_y, weights)
        with pytest.raises(ValueError, match="fit with keep_samples=True"):
            model.weights(X)
        model.set_params(n_estimators=9, keep_samples=True)
        with pytest.raises(ValueError, match="those of an earlier fit were not kept"):
            model.fit(X, y)


def test_an_interrupt_while_samples_are_collected_leaves_a_forest(monkeypatch):
    X, y = friedman()
    model = regressor(keep_samples=True, warm_start=True).fit(X, y)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("morforest._forest_base.collect_leaf_samples", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(n_estimators=8).fit(X, y)
    assert model.predict(X).shape == (len(X),)
    with pytest.raises(ValueError, match="fit with keep_samples=True"):
        model.weights(X)


def test_a_refit_keeps_its_own_samples():
    X, y = friedman()
    model = regressor(keep_samples=True).fit(X, y).fit(X[:100], y[:100])
    assert model.weights(X).shape == (len(X), 100)
    model.set_params(keep_samples=False).fit(X, y)
    with pytest.raises(ValueError, match="keep_samples"):
        model.weights(X)


@pytest.mark.parametrize("kind", SAMPLE_WEIGHTS)
@pytest.mark.parametrize("name", FORESTS)
def test_pickles_hold_the_samples(name, kind):
    X, y = digits()
    model = regressor(keep_samples=True, **FORESTS[name]).fit(X, y, SAMPLE_WEIGHTS[kind])
    loaded = pickle.loads(pickle.dumps(model))
    assert_same_answers(answers(model, X), answers(loaded, X))
    for attribute in ("tree_begin", "begin", "entries", "drawn", "target"):
        ours, theirs = (getattr(m._leaf_samples, attribute) for m in (model, loaded))
        assert ours.dtype == theirs.dtype, attribute
        np.testing.assert_array_equal(ours, theirs, err_msg=attribute)


@pytest.mark.filterwarnings("ignore:.*in the bags of all trees")
def test_what_trees_have_drawn_is_kept():
    X, y = digits()
    model = classifier(keep_samples=True, oob_score=True).fit(X, y)
    assert model._leaf_samples.drawn.sum(axis=1).tolist() == [len(X)] * model.n_estimators
    np.testing.assert_array_equal(model._leaf_samples.drawn, drawn_weights(model))
    left_out = np.isnan(model.oob_decision_function_[:, 0])
    np.testing.assert_array_equal((model._leaf_samples.drawn > 0).all(axis=0), left_out)


def test_rows_and_weights_share_an_entry():
    small = pack_entries(np.array([0, 2**24 - 1]), np.array([255, 1]))
    assert small.dtype == np.uint32
    for row, weight in (([3, 2**24], [1, 1]), ([3, 4], [256, 1]), ([2**31], [2**32 - 1])):
        large = pack_entries(np.array(row), np.array(weight))
        assert large.dtype == np.uint64
        both = unpack_entries(join_entries([small, large]))
        assert both[0].tolist() == [0, 2**24 - 1, *row]
        assert both[1].tolist() == [255, 1, *weight]
    assert join_entries([small, small]).dtype == np.uint32
