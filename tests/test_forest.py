"""Parameters and methods of the estimators: each does what it says."""

import functools
import heapq
import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression
from sklearn.metrics import balanced_accuracy_score, mean_absolute_error, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from morforest import (
    Atoms,
    Axis,
    Mixture,
    MorfClassifier,
    MorfRegressor,
    MorfTreeClassifier,
    MorfTreeRegressor,
    Patch,
    SparseOblique,
)
from morforest._grow import TrainingTable, make_bagging
from morforest._kernel import core
from morforest._numbers import choose_format, to_core_dtype
from morforest.dictionary import resolve

N_TREES = 5


@functools.cache
def digits():
    X, y = load_digits(return_X_y=True)
    return X.reshape(-1, 8, 8)[:400].astype(np.uint8), y[:400]


@functools.cache
def friedman(n=250):
    return make_friedman1(n, n_features=8, noise=0.5, random_state=3)


def classifier(dictionary=None, **parameters):
    parameters = {"n_estimators": N_TREES, "random_state": 0, **parameters}
    return MorfClassifier(dictionary, **parameters)


def regressor(dictionary=None, **parameters):
    parameters = {"n_estimators": N_TREES, "random_state": 0, **parameters}
    return MorfRegressor(dictionary, **parameters)


def fit_digits(dictionary=None, sample_weight=None, **parameters):
    X, y = digits()
    return classifier(dictionary, **parameters).fit(X, y, sample_weight=sample_weight)


def fit_friedman(dictionary=None, sample_weight=None, **parameters):
    X, y = friedman()
    return regressor(dictionary, **parameters).fit(X, y, sample_weight=sample_weight)


def arrays(model):
    return {k: v for k, v in vars(model._forest).items() if isinstance(v, np.ndarray)}


def assert_same_forest(a, b):
    ours, theirs = arrays(a), arrays(b)
    assert ours.keys() == theirs.keys()
    for name, values in ours.items():
        assert values.dtype == theirs[name].dtype
        np.testing.assert_array_equal(values, theirs[name], err_msg=name)


def differ(a, b):
    return any(not np.array_equal(v, arrays(b)[name]) for name, v in arrays(a).items())


def roots(forest):
    return forest.tree_begin[:-1].astype(int)


def split_paths(forest, tree=0):
    """Gain of each split of a tree, by its path from the root: a string of L and R."""
    begin = int(forest.tree_begin[tree])
    gains = forest.gains()
    found, open_nodes = {}, [("", begin)]
    while open_nodes:
        path, node = open_nodes.pop()
        if forest.next[node] >= 0:
            found[path] = float(gains[node])
            left = begin + int(forest.next[node])
            open_nodes += [(path + "L", left), (path + "R", left + 1)]
    return found


# --- the size of trees -----------------------------------------------------------------------


def test_n_estimators_is_the_number_of_trees():
    model = fit_digits(n_estimators=7)
    assert model.apply(digits()[0]).shape == (400, 7)
    assert len(model.get_depths()) == len(model.get_n_leaves()) == 7


@pytest.mark.parametrize("fit", [fit_digits, fit_friedman])
@pytest.mark.parametrize("depth", [1, 3])
def test_max_depth_limits_depth_and_nothing_above_it(fit, depth):
    limited, free = fit(max_depth=depth), fit()
    assert (limited.get_depths() == depth).all()
    assert (free.get_depths() > depth).all()
    for tree in range(N_TREES):
        above = {p: g for p, g in split_paths(free._forest, tree).items() if len(p) < depth}
        assert split_paths(limited._forest, tree) == above


@pytest.mark.parametrize(("value", "count"), [(30, 30), (0.1, 40)])
def test_min_samples_split_makes_leaves_of_smaller_nodes(value, count):
    model = fit_digits(min_samples_split=value, bootstrap=False)
    path, _ = model.decision_path(digits()[0])
    rows = np.asarray(path.sum(axis=0)).ravel()
    split = model._forest.is_split()
    assert rows[split].min() >= count
    assert fit_digits(bootstrap=False).get_n_leaves().sum() > model.get_n_leaves().sum()


@pytest.mark.parametrize(("value", "count"), [(12, 12), (0.05, 20)])
@pytest.mark.parametrize("fit", [fit_digits, fit_friedman])
def test_min_samples_leaf_holds_for_every_leaf(fit, value, count):
    if fit is fit_friedman and value == 0.05:
        count = 13  # of 250, rounded up
    model = fit(min_samples_leaf=value)
    assert model._forest.weight[~model._forest.is_split()].min() >= count
    assert fit()._forest.weight.min() < count


def test_min_samples_look_at_counts_and_not_at_weights():
    weights = np.full(400, 0.25)
    weights[:200] = 1.5
    model = fit_digits(sample_weight=weights, bootstrap=False, min_samples_leaf=15)
    leaves = model.apply(digits()[0])
    for tree in leaves.T:
        assert np.unique(tree, return_counts=True)[1].min() >= 15


def test_min_weight_fraction_leaf_is_a_share_of_a_trees_weight():
    weights = np.random.default_rng(0).uniform(0.1, 4.0, size=400)
    model = fit_digits(sample_weight=weights, bootstrap=False, min_weight_fraction_leaf=0.06)
    for tree in model.apply(digits()[0]).T:
        share = np.bincount(tree, weights) / weights.sum()
        assert share[share > 0].min() >= 0.06 - 1e-6
    free = fit_digits(sample_weight=weights, bootstrap=False)
    assert free.get_n_leaves().min() > model.get_n_leaves().max()


@pytest.mark.parametrize("fit", [fit_digits, fit_friedman])
def test_min_impurity_decrease_cuts_where_the_gain_is_smaller(fit):
    free = fit()
    gains = np.unique(free._forest.gains()[free._forest.is_split()])
    limit = gains[len(gains) // 2 : len(gains) // 2 + 2].mean()  # between two of them
    limited = fit(min_impurity_decrease=limit)
    for tree in range(N_TREES):
        gains = split_paths(free._forest, tree)
        kept = {p for p in gains if all(gains[p[:i]] >= limit for i in range(len(p) + 1))}
        assert set(split_paths(limited._forest, tree)) == kept
        assert len(kept) < len(gains)


def test_max_leaf_nodes_takes_the_splits_of_largest_gain_first():
    limit = 9
    free, limited = fit_friedman(), fit_friedman(max_leaf_nodes=limit)
    assert (limited.get_n_leaves() == limit).all()
    for tree in range(N_TREES):
        gains = split_paths(free._forest, tree)
        chosen, heap = set(), [(-gains[""], "")]
        while len(chosen) < limit - 1:
            _, path = heapq.heappop(heap)
            chosen.add(path)
            for child in (path + "L", path + "R"):
                if child in gains:
                    heapq.heappush(heap, (-gains[child], child))
        assert set(split_paths(limited._forest, tree)) == chosen


def test_max_leaf_nodes_beyond_the_need_changes_no_prediction():
    X, _ = digits()
    wide = fit_digits(max_leaf_nodes=10**6).predict_proba(X)
    np.testing.assert_array_equal(wide, fit_digits().predict_proba(X))


# --- candidates ------------------------------------------------------------------------------


def test_max_features_is_the_number_of_candidates():
    X, y = friedman(80)

    def fit(value):
        return regressor(Axis(), max_features=value, n_estimators=2).fit(X, y)

    for equal in (["sqrt", 2], ["log2", 3], [None, 8, 1.0, 2.0], [0.5, 4], [0.01, 1]):
        models = [fit(value) for value in equal]
        for other in models[1:]:
            assert_same_forest(models[0], other)
    assert differ(fit(1), fit(2))
    assert differ(fit("log2"), fit("sqrt"))


def test_max_features_may_exceed_the_number_of_features():
    # A dictionary of patches has more atoms than there are features, so more are drawn.
    assert differ(fit_digits(max_features=64), fit_digits(max_features=2.0))
    assert_same_forest(fit_digits(max_features=128), fit_digits(max_features=2.0))


def test_all_features_are_tried_where_max_features_says_so():
    # One column tells the classes apart; with all columns as candidates it is the only split.
    X = np.random.default_rng(0).normal(size=(60, 9))
    y = (X[:, 7] > 0).astype(int)
    model = classifier(Axis(), max_features=None, n_estimators=20).fit(X, y)
    assert (model.get_n_leaves() == 2).all()
    assert set(model._forest.atoms().indices) == {7}


@pytest.mark.parametrize("splitter", ["histogram", "exact", "random"])
def test_a_single_useful_feature_is_found_with_one_candidate_a_node(splitter):
    # Constant columns offer no split: another candidate is drawn until one does.
    X = np.zeros((40, 20))
    X[:, 13] = np.arange(40)
    y = (X[:, 13] >= 20).astype(int)
    model = classifier(Axis(), max_features=1, splitter=splitter).fit(X, y)
    assert model.score(X, y) == 1.0 or splitter == "random"
    assert set(model._forest.atoms().indices) == {13}


# --- splitters and criteria ------------------------------------------------------------------


def test_histogram_and_exact_are_the_same_in_small_nodes():
    X, y = friedman()
    small = [regressor(splitter=s).fit(X[:64], y[:64]) for s in ("histogram", "exact")]
    assert_same_forest(*small)
    assert differ(fit_friedman(splitter="histogram"), fit_friedman(splitter="exact"))


def test_the_random_splitter_draws_thresholds():
    X = np.arange(200).reshape(-1, 1)
    y = (X[:, 0] >= 100).astype(int)
    model = classifier(Axis(), splitter="random", bootstrap=False, n_estimators=50).fit(X, y)
    first = model._forest.thresholds()[roots(model._forest)]
    assert len(set(first.tolist())) > 25
    assert first.min() < 40
    assert first.max() > 160
    assert model.score(X, y) == 1.0
    exact = classifier(Axis(), splitter="exact", bootstrap=False, n_estimators=50).fit(X, y)
    assert set(exact._forest.thresholds()[roots(exact._forest)]) == {99.5}


@pytest.mark.parametrize("splitter", ["histogram", "exact", "random"])
def test_every_splitter_learns(splitter):
    X, y = digits()
    model = classifier(Patch(max_size=3), splitter=splitter, n_estimators=30).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > 0.85


def test_log_loss_is_entropy_and_not_gini():
    entropy, log_loss, gini = (fit_digits(criterion=c) for c in ("entropy", "log_loss", "gini"))
    assert_same_forest(entropy, log_loss)
    assert differ(entropy, gini)


@pytest.mark.parametrize(
    ("criterion", "leaf"),
    [("squared_error", np.mean), ("poisson", np.mean), ("absolute_error", np.median)],
)
def test_regression_leaves_hold_the_best_constant(criterion, leaf):
    X, y = friedman(101)
    y = y - y.min()
    model = regressor(criterion=criterion, bootstrap=False, min_samples_leaf=20).fit(X, y)
    each = np.empty((len(X), N_TREES))
    for i, tree in enumerate(model.apply(X).T):
        for node in np.unique(tree):
            each[tree == node, i] = leaf(y[tree == node])
    np.testing.assert_allclose(model.predict(X), each.mean(axis=1), rtol=1e-9)


def test_regression_criteria_choose_different_splits():
    X, y = friedman()
    models = [
        regressor(criterion=c).fit(X, np.exp(y / 5))
        for c in ("squared_error", "poisson", "absolute_error")
    ]
    assert differ(models[0], models[1])
    assert differ(models[1], models[2])


def test_first_splits_are_the_best_of_their_criterion():
    # One column, all thresholds by hand.
    rng = np.random.default_rng(5)
    x = rng.permutation(40).astype(float)
    y = np.where(x > 24, 9.0, 2.0) + rng.exponential(size=40)
    impurities = {
        "squared_error": lambda v: ((v - v.mean()) ** 2).sum(),
        "absolute_error": lambda v: np.abs(v - np.median(v)).sum(),
        "poisson": lambda v: -v.sum() * np.log(v.mean()),
    }
    for criterion, impurity in impurities.items():
        loss = {t + 0.5: impurity(y[x <= t]) + impurity(y[x > t]) for t in range(39)}
        tree = MorfTreeRegressor(Axis(), criterion=criterion, max_depth=1, max_features=None)
        tree.fit(x.reshape(-1, 1), y)
        assert tree._forest.thresholds()[0] == min(loss, key=loss.get)
        gain = impurity(y) - min(loss.values())
        assert tree._forest.gains()[0] == pytest.approx(gain / 40, rel=1e-5)


def test_the_gain_of_a_classification_split_is_the_decrease_of_impurity():
    rng = np.random.default_rng(6)
    x = np.arange(60)
    y = (rng.random(60) < np.where(x < 25, 0.1, 0.8)).astype(int)

    def gini(v):
        share = np.bincount(v, minlength=2) / len(v)
        return 1 - (share**2).sum()

    def entropy(v):
        share = np.bincount(v, minlength=2) / len(v)
        return -(share[share > 0] * np.log2(share[share > 0])).sum()

    for criterion, impurity in (("gini", gini), ("entropy", entropy)):
        tree = MorfTreeClassifier(Axis(), criterion=criterion, max_depth=1)
        tree.fit(x.reshape(-1, 1), y)
        left = x <= tree._forest.thresholds()[0]
        after = left.mean() * impurity(y[left]) + (~left).mean() * impurity(y[~left])
        assert tree._forest.gains()[0] == pytest.approx(impurity(y) - after, rel=1e-5)


# --- bags ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "draws"), [(None, 400), (50, 50), (0.1, 40), (1.0, 400)])
def test_max_samples_is_the_size_of_a_bag(value, draws):
    model = fit_digits(max_samples=value)
    assert (model._forest.weight[roots(model._forest)] == draws).all()


def test_max_samples_with_weights_is_a_share_of_their_sum():
    weights = np.arange(400) % 3
    model = fit_digits(sample_weight=weights, max_samples=0.5)
    assert (model._forest.weight[roots(model._forest)] == np.ceil(weights.sum() / 2)).all()


def test_without_bootstrap_every_tree_knows_every_sample():
    X, y = digits()
    model = fit_digits(bootstrap=False)
    assert (model._forest.weight[roots(model._forest)] == 400).all()
    np.testing.assert_array_equal(model.predict_proba(X), np.eye(10)[y])
    bagged = fit_digits(bootstrap=True)
    assert (bagged.predict_proba(X)[np.arange(400), y] < 1).any()


def test_a_bag_holds_about_sixty_three_percent_of_the_samples():
    # Trees are grown until leaves are pure, so a tree that knows a sample gets it right.
    X = np.arange(2000).reshape(-1, 1)
    y = np.random.default_rng(0).permutation(2000) % 50
    model = classifier(Axis(), n_estimators=1).fit(X, y)
    known = (model.predict(X) == y).mean()
    assert 0.61 < known < 0.66  # 1 - 1/e is 0.632; guessing a neighbour's class adds 0.007


def test_trees_see_different_bags():
    X = np.arange(300).reshape(-1, 1)
    y = np.arange(300) % 7
    model = classifier(Axis(), n_estimators=10).fit(X, y)
    thresholds = np.split(model._forest.thresholds(), roots(model._forest)[1:])
    assert len({tuple(t.tolist()) for t in thresholds}) == 10


# --- out of bag ------------------------------------------------------------------------------


def bags_of(model, X, target):
    """How often each tree drew each row, by a hand-made bagging over the same samples."""
    rows = to_core_dtype(X.reshape(len(X), -1))
    plan = resolve(model.dictionary_, model.data_shape_)
    table = TrainingTable(rows, plan, *choose_format(rows, plan.bounds()))
    nothing = np.empty(0)
    bagging = make_bagging(
        table.core.hash, target, None, None, len(X), None, nothing, nothing.astype(np.uint32)
    )
    seed = model._seed
    return [bagging.bag(core.tree_key(seed, t))[0] for t in range(model._forest.n_trees)]


def single_trees(model, X, y):
    """Posterior of each tree: the difference between forests of n and of n - 1 trees."""
    sums = np.zeros(())
    for n in range(1, model.n_estimators + 1):
        forest = clone(model).set_params(n_estimators=n, oob_score=False)
        forest.fit(X, y)
        prediction = (
            forest.predict_proba(X) if hasattr(forest, "predict_proba") else forest.predict(X)
        )
        total = prediction * n
        yield total - sums
        sums = total


@pytest.mark.parametrize("fit", [fit_digits, fit_friedman])
def test_out_of_bag_predictions_come_from_trees_that_did_not_see_the_sample(fit):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fit(oob_score=True, n_estimators=8)
    X, y = digits() if fit is fit_digits else friedman()
    target = np.searchsorted(model.classes_, y) if fit is fit_digits else y
    outputs = 10 if fit is fit_digits else 1
    sums, votes = np.zeros((len(X), outputs)), np.zeros(len(X))
    bags = bags_of(model, X, target)
    for bag, posterior in zip(bags, single_trees(model, X, y), strict=True):
        assert bag.sum() == len(X)
        out = bag == 0
        sums[out] += posterior.reshape(len(X), -1)[out]
        votes += out
        # The bags are the right ones: a fully grown tree knows what is in its bag.
        if fit is fit_digits:
            assert (posterior[~out].argmax(axis=1) == target[~out]).all()
    seen = votes > 0
    assert not seen.all()  # eight trees leave some rows in every bag
    expected = sums[seen] / votes[seen, None]
    if fit is fit_digits:
        np.testing.assert_allclose(model.oob_decision_function_[seen], expected, atol=1e-12)
        assert np.isnan(model.oob_decision_function_[~seen]).all()
        predicted = model.oob_decision_function_[seen].argmax(axis=1)
        assert model.oob_score_ == (predicted == target[seen]).mean()
    else:
        np.testing.assert_allclose(model.oob_prediction_[seen], expected[:, 0], rtol=1e-9)
        assert np.isnan(model.oob_prediction_[~seen]).all()
        assert model.oob_score_ == pytest.approx(r2_score(y[seen], model.oob_prediction_[seen]))


def test_out_of_bag_accuracy_on_noise_is_chance():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 5)), rng.integers(0, 2, 400)
    model = classifier(n_estimators=40, oob_score=True).fit(X, y)
    assert model.score(X, y) > 0.99
    assert 0.4 < model.oob_score_ < 0.6


def test_oob_score_takes_a_function():
    model = fit_digits(n_estimators=30, oob_score=balanced_accuracy_score)
    predicted = model.classes_[model.oob_decision_function_.argmax(axis=1)]
    assert model.oob_score_ == balanced_accuracy_score(digits()[1], predicted)
    model = fit_friedman(n_estimators=30, oob_score=mean_absolute_error)
    assert model.oob_score_ == mean_absolute_error(friedman()[1], model.oob_prediction_)


def test_out_of_bag_warns_where_trees_are_too_few():
    with pytest.warns(UserWarning, match="no out-of-bag prediction: use more trees"):
        fit_digits(n_estimators=2, oob_score=True)


def test_out_of_bag_predictions_keep_the_rows_of_weight_zero_in_place():
    weights = np.ones(400)
    weights[::4] = 0
    model = fit_digits(sample_weight=weights, n_estimators=30, oob_score=True)
    assert model.oob_decision_function_.shape == (400, 10)
    assert np.isnan(model.oob_decision_function_[::4]).all()
    X, y = digits()
    kept = classifier(n_estimators=30, oob_score=True).fit(X[weights > 0], y[weights > 0])
    np.testing.assert_array_equal(
        model.oob_decision_function_[weights > 0], kept.oob_decision_function_
    )
    assert model.oob_score_ == kept.oob_score_


def test_out_of_bag_after_warm_start_counts_all_trees():
    X, y = digits()
    model = classifier(n_estimators=15, warm_start=True).fit(X, y)
    model.set_params(n_estimators=30, oob_score=True).fit(X, y)
    at_once = fit_digits(n_estimators=30, oob_score=True)
    np.testing.assert_array_equal(model.oob_decision_function_, at_once.oob_decision_function_)


# --- class weights ---------------------------------------------------------------------------


def unbalanced():
    X, y = digits()
    keep = (y < 3) & ((y != 1) | (np.arange(len(y)) % 4 == 0))
    return X[keep], y[keep]


def test_class_weights_are_sample_weights_where_all_samples_are_in_the_tree():
    X, y = unbalanced()
    by_class = classifier(bootstrap=False, class_weight={0: 3, 1: 2}).fit(X, y)
    weights = np.array([3, 2, 1])[y]
    by_sample = classifier(bootstrap=False).fit(X, y, sample_weight=weights)
    assert_same_forest(by_class, by_sample)
    assert differ(by_class, classifier(bootstrap=False).fit(X, y))


def test_balanced_is_the_dict_of_inverse_frequencies():
    X, y = unbalanced()
    factors = dict(enumerate(len(y) / (3 * np.bincount(y))))
    balanced = classifier(class_weight="balanced").fit(X, y)
    assert_same_forest(balanced, classifier(class_weight=factors).fit(X, y))
    assert differ(balanced, classifier().fit(X, y))
    assert differ(balanced, classifier(class_weight="balanced_subsample").fit(X, y))


def test_balanced_subsample_without_bags_is_balanced():
    X, y = unbalanced()
    models = [
        classifier(class_weight=name, bootstrap=False).fit(X, y)
        for name in ("balanced", "balanced_subsample")
    ]
    assert_same_forest(*models)


def test_class_weights_set_the_priors_of_a_root():
    X, y = unbalanced()

    def priors(class_weight, **parameters):
        # Trees that are a single leaf predict the frequencies of their bag.
        model = classifier(class_weight=class_weight, min_samples_split=10_000, **parameters)
        return model.fit(X, y).predict_proba(X[:1])[0]

    frequencies = np.bincount(y) / len(y)
    np.testing.assert_allclose(priors(None, bootstrap=False), frequencies, atol=1e-12)
    np.testing.assert_allclose(priors("balanced", bootstrap=False), [1 / 3] * 3, atol=1e-6)
    np.testing.assert_allclose(priors("balanced_subsample"), [1 / 3] * 3, atol=1e-6)
    assert np.abs(priors("balanced") - 1 / 3).max() > 1e-4  # bags differ from all samples
    weighted = frequencies * [1, 10, 0.5]
    np.testing.assert_allclose(
        priors({1: 10, 2: 0.5}, bootstrap=False), weighted / weighted.sum(), atol=1e-6
    )


def test_a_class_of_weight_zero_is_never_predicted():
    X, y = unbalanced()
    model = classifier(class_weight={0: 0.0}, n_estimators=20).fit(X, y)
    assert list(model.classes_) == [0, 1, 2]
    assert (model.predict_proba(X)[:, 0] == 0).all()


def test_class_weights_take_string_labels():
    X, y = unbalanced()
    names = np.array(["apple", "pear", "plum"])[y]
    strings = classifier(class_weight={"apple": 3, "nothing": 7}).fit(X, names)
    assert_same_forest(strings, classifier(class_weight={0: 3}).fit(X, y))


def test_balancing_helps_the_rare_class():
    rng = np.random.default_rng(1)
    y = (np.arange(600) < 30).astype(int)
    X = rng.normal(size=(600, 4)) + 0.9 * y[:, None]
    test_y = np.repeat([0, 1], 300)
    test_X = rng.normal(size=(600, 4)) + 0.9 * test_y[:, None]
    scores = [
        balanced_accuracy_score(
            test_y,
            classifier(class_weight=w, n_estimators=50, min_samples_leaf=5)
            .fit(X, y)
            .predict(test_X),
        )
        for w in (None, "balanced")
    ]
    assert scores[1] > scores[0] + 0.1


# --- warm start ------------------------------------------------------------------------------


@pytest.mark.parametrize("fit", [fit_digits, fit_friedman])
@pytest.mark.parametrize("pickled", [False, True])
def test_warm_start_gives_the_forest_of_one_fit(fit, pickled):
    X, y = digits() if fit is fit_digits else friedman()
    model = fit(n_estimators=2, warm_start=True)
    for n_trees in (3, 9):
        if pickled:
            model = pickle.loads(pickle.dumps(model))
        model.set_params(n_estimators=n_trees).fit(X, y)
    at_once = fit(n_estimators=9)
    assert_same_forest(model, at_once)
    np.testing.assert_array_equal(model.predict(X), at_once.predict(X))


def test_warm_start_keeps_its_seed_where_random_state_is_a_generator():
    X, y = digits()
    model = classifier(n_estimators=3, warm_start=True, random_state=np.random.RandomState(4))
    model.fit(X, y).set_params(n_estimators=6).fit(X, y)
    at_once = classifier(n_estimators=6, random_state=np.random.RandomState(4)).fit(X, y)
    assert_same_forest(model, at_once)


def test_without_warm_start_a_fit_begins_anew():
    X, y = digits()
    model = classifier().fit(X[:100], y[:100] % 2).fit(X, y)
    assert_same_forest(model, fit_digits())
    assert len(model.classes_) == 10


def test_warm_start_with_nothing_to_do_says_so_and_changes_nothing():
    X, y = digits()
    model = fit_digits(warm_start=True)
    before = arrays(model)
    with pytest.warns(UserWarning, match="grows no new trees"):
        model.fit(X, y)
    assert all(value is before[name] for name, value in arrays(model).items())


def test_warm_start_refuses_what_does_not_fit():
    X, y = digits()
    model = fit_digits(warm_start=True)
    with pytest.raises(ValueError, match=r"n_estimators=2 must be at least the 5 trees"):
        clone_with_forest(model, n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match=r"shape.*\(64,\).*\(8, 8\)"):
        clone_with_forest(model, n_estimators=9).fit(X.reshape(-1, 64), y)
    with pytest.raises(ValueError, match="classes of the first fit"):
        clone_with_forest(model, n_estimators=9).fit(X, y + 1)
    with pytest.raises(ValueError, match="range or kind of numbers"):
        clone_with_forest(model, n_estimators=9).fit(X / 3.0, y)


def clone_with_forest(model, **parameters):
    return pickle.loads(pickle.dumps(model)).set_params(**parameters)


def test_warm_start_takes_samples_of_some_of_the_classes():
    X, y = digits()
    model = fit_digits(warm_start=True).set_params(n_estimators=2 * N_TREES)
    model.fit(X[y < 5], y[y < 5])
    assert len(model.classes_) == 10
    first = fit_digits().predict_proba(X)
    later = 2 * model.predict_proba(X) - first
    np.testing.assert_allclose(later[:, 5:], 0, atol=1e-12)


# --- a fit that fails ------------------------------------------------------------------------


def test_a_failed_fit_leaves_the_estimator_as_it_was():
    X, y = digits()
    model = fit_digits()
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X[:, :4], np.repeat(["a", "b"], 200), sample_weight=np.full(400, -1.0))
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert model.n_features_in_ == 64
    fresh = classifier()
    with pytest.raises(ValueError, match="sample_weight"):
        fresh.fit(X, y, sample_weight=np.full(400, -1.0))
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    assert not [name for name in vars(fresh) if name.endswith("_")]


# --- what a fitted forest says of itself -----------------------------------------------------

MODELS = {
    "patches": lambda: fit_digits(Patch(max_size=3)),
    "features": lambda: fit_digits(Axis(), max_depth=4),
    "sparse": lambda: fit_digits(SparseOblique(), bootstrap=False),
    "wrapping": lambda: fit_digits(Patch(2, 5, boundary="wrap", contiguous=(False, True))),
    "mixture": lambda: fit_digits(Mixture([Patch(2, 4), SparseOblique(), Axis()])),
    "stumps": lambda: fit_digits(max_depth=1),
    "leaves": lambda: fit_digits(min_samples_split=10_000),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param]()


def test_samples_walk_to_the_leaves_that_apply_names(model):
    # By hand: atoms and thresholds of the fitted forest, node by node.
    X, _ = digits()
    forest = model._forest
    values = np.asarray((forest.atoms() @ X.reshape(len(X), -1).T).T)
    left = values <= forest.thresholds()
    leaves = model.apply(X)
    begin, child = roots(forest), forest.next.astype(int)
    for tree in range(model.n_estimators):
        node = np.full(len(X), begin[tree])
        while (child[node] >= 0).any():
            inner = child[node] >= 0
            rows = np.flatnonzero(inner)
            node[rows] = begin[tree] + child[node[rows]] + ~left[rows, node[rows]]
        np.testing.assert_array_equal(leaves[:, tree], node - begin[tree])


def test_paths_leaves_and_depths_agree(model):
    X, _ = digits()
    path, begin = model.decision_path(X)
    leaves = model.apply(X)
    depths, n_leaves = model.get_depths(), model.get_n_leaves()
    assert path.shape == (len(X), begin[-1])
    assert set(path.data.tolist()) == {1}
    assert (np.diff(begin) == 2 * n_leaves - 1).all()
    for tree, (first, last) in enumerate(itertools.pairwise(begin)):
        mine = path[:, first:last]
        assert mine[:, [0]].sum() == len(X)  # all pass the root
        assert (mine[np.arange(len(X)), leaves[:, tree]] == 1).all()
        passed = np.asarray(mine.sum(axis=1)).ravel()
        assert passed.max() <= depths[tree] + 1
        child = model._forest.next[first:last].astype(int)
        assert (child[leaves[:, tree]] < 0).all()
        assert (child < 0).sum() == n_leaves[tree]
        depth = np.zeros(last - first, dtype=int)
        for node in range(last - first):  # children come after their parent
            if child[node] >= 0:
                depth[child[node]] = depth[child[node] + 1] = depth[node] + 1
        assert depth.max() == depths[tree]
        np.testing.assert_array_equal(passed, depth[leaves[:, tree]] + 1)
        assert model.get_mean_leaf_depths()[tree] == pytest.approx(depth[child < 0].mean())


def test_weights_of_children_add_up(model):
    forest = model._forest
    left = forest.children()
    split = np.flatnonzero(left >= 0)
    weight = forest.weight.astype(int)
    np.testing.assert_array_equal(weight[split], weight[left[split]] + weight[left[split] + 1])


def test_probabilities_are_probabilities(model):
    X, y = digits()
    p = model.predict_proba(X)
    assert p.shape == (len(X), 10)
    assert p.min() >= 0
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(model.predict_log_proba(X), np.log(p))
    assert model.score(X, y) == (model.predict(X) == y).mean()


def test_probabilities_are_the_mean_of_leaf_frequencies():
    X, y = digits()
    model = fit_digits(bootstrap=False, min_samples_leaf=10)
    each = np.zeros((N_TREES, len(X), 10))
    for i, tree in enumerate(model.apply(X).T):
        for node in np.unique(tree):
            each[i, tree == node] = np.bincount(y[tree == node], minlength=10)
    each /= each.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), each.mean(axis=0), atol=1e-12)


def test_predict_log_proba_is_minus_infinity_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logs = fit_digits(bootstrap=False).predict_log_proba(digits()[0])
    assert np.isneginf(logs).any()


def test_scores_are_those_of_scikit_learn():
    X, y = friedman()
    model = fit_friedman(min_samples_leaf=10)
    assert model.score(X, y) == r2_score(y, model.predict(X))
    weights = np.arange(len(y))
    expected = r2_score(y, model.predict(X), sample_weight=weights)
    assert model.score(X, y, sample_weight=weights) == expected


def test_ties_go_to_the_first_class():
    model = classifier(bootstrap=False).fit([[0], [0]], ["b", "a"])
    np.testing.assert_array_equal(model.predict_proba([[0]]), [[0.5, 0.5]])
    assert model.predict([[0]])[0] == "a"


# --- importances -----------------------------------------------------------------------------


def test_split_shares_are_the_share_of_splits_that_use_a_feature(model):
    forest = model._forest
    atoms = forest.atoms()
    assert (np.diff(atoms.indptr) > 0).tolist() == forest.is_split().tolist()
    uses = np.asarray((atoms != 0).sum(axis=0)).ravel()
    expected = uses / max(forest.is_split().sum(), 1)
    assert model.split_shares_.shape == (8, 8)
    np.testing.assert_allclose(model.split_shares_.ravel(), expected, atol=1e-12)


def test_importances_spread_each_gain_over_its_atom(model):
    forest = model._forest
    total = np.zeros(64)
    atoms, gains = forest.atoms(), forest.gains()
    for node in np.flatnonzero(forest.is_split()):
        size = np.abs(atoms[[node]].toarray()[0])
        total += gains[node] * size / size.sum()
    assert model.feature_importances_.shape == (8, 8)
    if not forest.is_split().any():
        assert (model.feature_importances_ == 0).all()
        return
    np.testing.assert_allclose(model.feature_importances_.ravel(), total / total.sum(), atol=1e-7)
    assert model.feature_importances_.sum() == pytest.approx(1, abs=1e-12)
    assert model.feature_importances_.min() >= 0


def test_importances_of_own_atoms_follow_the_size_of_their_weights():
    X, y = friedman(80)
    model = regressor(Atoms([[1, 0, 0, 0, -3, 0, 0, 0]]), max_features=1).fit(X, y)
    np.testing.assert_allclose(model.feature_importances_, [0.25, 0, 0, 0, 0.75, 0, 0, 0])
    np.testing.assert_allclose(model.split_shares_, [1, 0, 0, 0, 1, 0, 0, 0])


def test_importances_find_the_place_of_the_signal():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6, 30))
    y = (X[:, 2, 10:16].sum(axis=1) > 0).astype(int)
    model = classifier(Patch((1, 4), (1, 8)), n_estimators=40).fit(X, y)
    for importances in (model.feature_importances_, model.split_shares_):
        assert importances.shape == (6, 30)
        assert importances[2, 10:16].mean() > 1.5 * importances.mean()
        assert importances[2].argmax() in range(9, 17)


# --- samples of any rank ---------------------------------------------------------------------

SHAPES = [(12,), (3, 4), (2, 2, 3), (1, 2, 3, 2)]


@pytest.mark.parametrize("shape", SHAPES)
def test_samples_of_any_rank(shape):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (80, *shape))
    y = (X.reshape(80, -1)[:, 0] > 4).astype(int)
    model = classifier(n_estimators=20).fit(X, y)
    assert model.data_shape_ == shape
    assert model.n_features_in_ == 12
    assert model.feature_importances_.shape == model.split_shares_.shape == shape
    assert model.score(X, y) > 0.95
    flat = classifier(data_shape=shape, n_estimators=20).fit(X.reshape(80, 12), y)
    assert_same_forest(model, flat)
    assert flat.feature_importances_.shape == shape
    # Both take both forms.
    np.testing.assert_array_equal(model.predict_proba(X.reshape(80, 12)), flat.predict_proba(X))


def test_a_default_dictionary_is_chosen_by_rank():
    X, y = digits()
    assert fit_digits().dictionary_ == Patch()
    assert classifier().fit(X.reshape(-1, 64), y).dictionary_ == SparseOblique()
    assert classifier(data_shape=(8, 8)).fit(X.reshape(-1, 64), y).dictionary_ == Patch()
    assert classifier(data_shape=64).fit(X.reshape(-1, 64), y).dictionary_ == SparseOblique()
    assert classifier(Axis()).fit(X, y).dictionary_ == Axis()
    assert classifier().fit(X, y).dictionary is None


def test_default_patches_reach_to_the_square_root_of_each_axis():
    X = np.random.default_rng(0).integers(0, 50, (200, 5, 17))
    model = classifier(n_estimators=30).fit(X, X[:, 2, 8] % 2)
    atoms = model._forest.atoms().toarray().reshape(-1, 5, 17)
    heights, widths = (atoms.any(axis=axis).sum(axis=1) for axis in (2, 1))
    assert set(heights) == {0, 1, 2}
    assert set(widths) == {0, 1, 2, 3, 4}


def test_the_dictionary_in_use_does_not_change_with_the_parameter():
    model = fit_digits(Patch(max_size=2))
    model.set_params(dictionary__max_size=5)
    assert model.dictionary_ == Patch(max_size=2)


def crossed_channels(model, axis):
    atoms = model._forest.atoms()
    atoms = atoms[np.diff(atoms.indptr) > 0].toarray().reshape(-1, *model.data_shape_)
    others = tuple(i for i in range(1, atoms.ndim) if i != axis + 1)
    return (atoms != 0).any(axis=others).sum(axis=1)


@pytest.mark.parametrize(("axis", "shape"), [(0, (4, 9)), (-1, (5, 5, 3)), (1, (5, 4, 5))])
def test_patches_stay_within_a_channel_unless_asked(axis, shape):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, (150, *shape))
    y = rng.integers(0, 2, 150)
    place = axis % len(shape)
    patch = Patch(2, 3)
    within = classifier(patch, channel_axis=axis).fit(X, y)
    assert (crossed_channels(within, place) == 1).all()
    assert (within._forest.atoms().getnnz(axis=1).max()) > 3 - (len(shape) == 2)
    across = classifier(patch).fit(X, y)
    assert crossed_channels(across, place).max() > 1
    sizes = [3] * len(shape)
    sizes[place] = 2
    asked = classifier(Patch(2, tuple(sizes)), channel_axis=axis)
    asked.set_params(dictionary__min_size=tuple(1 if i == place else 2 for i in range(len(shape))))
    asked.fit(X, y)
    assert set(crossed_channels(asked, place)) == {1, 2}
    without = tuple(s for i, s in enumerate(sizes) if i != place)
    left_out = classifier(Patch(2, without), channel_axis=axis).fit(X, y)
    assert_same_forest(left_out, within)


def test_every_channel_is_used():
    X = np.random.default_rng(0).integers(0, 30, (150, 4, 9))
    model = classifier(Patch(2, 3), channel_axis=0).fit(X, np.arange(150) % 2)
    assert (model.split_shares_.sum(axis=1) > 0).all()


# --- scikit-learn's tools --------------------------------------------------------------------


def test_cross_validation_of_images():
    X, y = digits()
    scores = cross_val_score(classifier(Patch(max_size=3), n_estimators=20), X, y, cv=3)
    assert scores.min() > 0.8


def test_grid_search_over_the_parameters_of_a_dictionary():
    X, y = digits()
    search = GridSearchCV(
        classifier(Patch(), data_shape=(8, 8)),
        {"dictionary__max_size": [2, (1, 8), None], "max_features": [4]},
        cv=2,
    ).fit(X.reshape(-1, 64), y)
    assert len(search.cv_results_["params"]) == 3
    best = search.best_estimator_
    assert best.dictionary.max_size == search.best_params_["dictionary__max_size"]
    assert best.dictionary_ == best.dictionary
    assert len(set(search.cv_results_["mean_test_score"])) > 1


def test_grid_search_over_the_parts_of_a_mixture():
    X, y = digits()
    mixture = Mixture([Patch(max_size=2), Axis()], weights=[0.9, 0.1])
    grid = {"dictionary__0__max_size": [1, 4], "dictionary__weights": [[1, 1], [3, 1]]}
    search = GridSearchCV(classifier(mixture), grid, cv=2).fit(X, y)
    sizes = [p["dictionary__0__max_size"] for p in search.cv_results_["params"]]
    assert sorted(set(sizes)) == [1, 4]
    assert len(set(search.cv_results_["mean_test_score"])) > 1
    found = search.best_estimator_.dictionary.dictionaries[0].max_size
    assert found == search.best_params_["dictionary__0__max_size"]
    assert mixture.dictionaries[0].max_size == 2  # the search works on clones


def test_a_pipeline_with_a_scaler():
    X, y = digits()
    flat = X.reshape(-1, 64).astype(float)
    pipe = make_pipeline(
        StandardScaler(), classifier(Patch(max_size=3), data_shape=(8, 8), n_estimators=20)
    )
    pipe.fit(flat[:300], y[:300])
    assert pipe.score(flat[300:], y[300:]) > 0.8
    assert pipe[-1].feature_importances_.shape == (8, 8)


@pytest.mark.parametrize(
    "estimator",
    [
        MorfClassifier(Mixture([Patch((1, 2), (3, 4)), Atoms(np.eye(4))], [1, 2]), n_jobs=2),
        MorfRegressor(SparseOblique(2.0), criterion="poisson", max_features=0.7),
        MorfTreeClassifier(Patch(boundary="wrap"), class_weight="balanced"),
        MorfTreeRegressor(max_depth=3),
    ],
)
def test_clones_have_equal_parameters_and_nothing_fitted(estimator):
    copy = clone(estimator)
    assert copy is not estimator
    ours = estimator.get_params(deep=False)
    theirs = copy.get_params(deep=False)
    assert ours == theirs
    if estimator.dictionary is not None:
        assert copy.dictionary is not estimator.dictionary
    with pytest.raises(NotFittedError):
        copy.predict(np.zeros((1, 4)))


@pytest.mark.parametrize("fit", [fit_digits, fit_friedman])
def test_pickles_predict_bit_by_bit_the_same(fit):
    X, _ = digits() if fit is fit_digits else friedman()
    model = fit(Mixture([Axis(), SparseOblique()]))
    loaded = pickle.loads(pickle.dumps(model))
    assert_same_forest(model, loaded)
    method = "predict_proba" if fit is fit_digits else "predict"
    np.testing.assert_array_equal(getattr(model, method)(X), getattr(loaded, method)(X))
    np.testing.assert_array_equal(model.feature_importances_, loaded.feature_importances_)
    assert loaded.dictionary_ == model.dictionary_


def test_permutation_importance_of_flat_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 12))
    y = (X[:, 5] > 0).astype(int)
    model = classifier(Patch(), data_shape=(3, 4), n_estimators=30).fit(X, y)
    result = permutation_importance(model, X, y, n_repeats=3, random_state=0)
    means = result.importances_mean.reshape(3, 4)
    assert np.unravel_index(means.argmax(), (3, 4)) == (1, 1)
    assert means.max() > 0.2


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_keep_their_names(frame):
    X, y = friedman()
    names = [f"x{i}" for i in range(8)]
    table = frame({name: X[:, i] for i, name in enumerate(names)})
    if not hasattr(LinearRegression().fit(table, y), "feature_names_in_"):
        pytest.skip("this scikit-learn does not know the names of these frames")
    model = regressor().fit(table, y)
    assert list(model.feature_names_in_) == names
    assert_same_forest(model, fit_friedman())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.predict(table), fit_friedman().predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table[names[::-1]])
    assert not hasattr(fit_friedman(), "feature_names_in_")


def test_data_frames_of_whole_numbers_and_a_shape():
    X, y = digits()
    table = pd.DataFrame(X.reshape(-1, 64), columns=[f"p{i}" for i in range(64)])
    model = classifier(data_shape=(8, 8)).fit(table, pd.Series(y))
    assert_same_forest(model, fit_digits())
    assert len(model.feature_names_in_) == 64


# --- trees, and accuracy ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tree", "forest", "data"),
    [(MorfTreeClassifier, MorfClassifier, digits), (MorfTreeRegressor, MorfRegressor, friedman)],
)
def test_a_tree_is_a_forest_of_one_without_a_bag(tree, forest, data):
    X, y = data()
    one = tree(random_state=3).fit(X, y)
    same = forest(n_estimators=1, bootstrap=False, splitter="exact", random_state=3).fit(X, y)
    assert_same_forest(one, same)
    assert one.get_depths().shape == (1,)
    np.testing.assert_allclose(one.predict(X), y, rtol=1e-9)


def test_random_state_decides():
    assert_same_forest(fit_digits(random_state=1), fit_digits(random_state=1))
    assert differ(fit_digits(random_state=1), fit_digits(random_state=2))
    assert differ(fit_digits(random_state=None), fit_digits(random_state=None))
    generators = [np.random.RandomState(7) for _ in range(2)]
    assert_same_forest(*(fit_digits(random_state=g) for g in generators))
    assert differ(*(fit_digits(random_state=g) for g in [generators[0]] * 2))


def test_regression_is_as_accurate_as_scikit_learn():
    X, y = make_friedman1(700, n_features=10, noise=1.0, random_state=0)
    train, test = slice(300), slice(300, None)
    common = {"n_estimators": 60, "max_features": 1 / 3, "random_state": 0}
    theirs = RandomForestRegressor(**common).fit(X[train], y[train]).score(X[test], y[test])
    for splitter in ("exact", "histogram"):
        ours = MorfRegressor(Axis(), splitter=splitter, **common).fit(X[train], y[train])
        assert ours.score(X[test], y[test]) == pytest.approx(theirs, abs=0.03)


def test_sample_weights_pull_predictions():
    X = np.zeros((10, 1))
    y = np.arange(10.0)
    weights = np.linspace(0.1, 2.3, 10)
    model = MorfTreeRegressor().fit(X, y, sample_weight=weights)
    assert model.predict([[0]])[0] == pytest.approx(np.average(y, weights=weights), rel=1e-6)
    model = MorfTreeClassifier().fit(X, y > 6, sample_weight=weights)
    share = weights[y > 6].sum() / weights.sum()
    np.testing.assert_allclose(model.predict_proba([[0]]), [[1 - share, share]], atol=1e-6)


def test_rows_of_larger_weight_are_drawn_more_often():
    X = np.zeros((20, 1))
    y = np.repeat([0, 1], 10)
    weights = np.where(y == 1, 3.5, 0.5)
    model = classifier(n_estimators=400).fit(X, y, sample_weight=weights)
    # Without splits the posterior is the mean of the bags' frequencies: 400 bags of 20 draws.
    assert model.predict_proba([[0]])[0, 1] == pytest.approx(3.5 / 4, abs=4 * 0.33 / 8000**0.5)
