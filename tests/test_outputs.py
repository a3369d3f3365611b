"""Forests and trees with several outputs."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from common import digits, friedman
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from problems import CLASSIFICATION, MANY_ROWS, REGRESSION, Problem, assert_same_trees, problems
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import accuracy_score, r2_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import get_tags

from morforest import (
    AtomRidgeRegressor,
    Axis,
    ImageCopies,
    MorfBoostingClassifier,
    MorfBoostingRegressor,
    MorfClassifier,
    MorfRegressor,
    MorfTreeClassifier,
    MorfTreeRegressor,
    Patch,
    SharedAtoms,
    Subset,
)
from morforest.dictionary._tabular import GivenColumns


def examples(number):
    return settings(
        max_examples=number,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )


def labels(n=150, seed=0):
    """Samples with three outputs: of two, three and two classes."""
    X = np.random.default_rng(seed).normal(size=(n, 5))
    y = [X[:, 0] > 0, (X[:, 1] + X[:, 2] > 0) + 1 * (X[:, 0] > 1), X[:, 3] > 1]
    return X, np.stack(y, axis=1).astype(int)


def numbers(n=150, seed=0):
    """Samples with three outputs in different units."""
    X = np.random.default_rng(seed).normal(size=(n, 5))
    y = [X[:, 0] * 1e4, X[:, 1] + X[:, 2], 1e-3 * np.abs(X[:, 3]) + 7]
    return X, np.stack(y, axis=1)


def classifier(dictionary=None, **parameters):
    defaults = {"n_estimators": 10, "random_state": 0}
    return MorfClassifier(Axis() if dictionary is None else dictionary, **defaults | parameters)


def regressor(dictionary=None, **parameters):
    defaults = {"n_estimators": 10, "random_state": 0}
    return MorfRegressor(Axis() if dictionary is None else dictionary, **defaults | parameters)


def assert_same_outputs(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


# --- the core against the oracle -------------------------------------------------------------

EACH_CRITERION = CLASSIFICATION + REGRESSION


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@examples(400)
@given(problems(EACH_CRITERION, several=True))
def test_trees_equal_the_oracle(problem):
    assert_same_trees(problem)


@examples(100)
@given(problems(EACH_CRITERION, rows=MANY_ROWS, several=True))
def test_large_nodes_equal_the_oracle(problem):
    problem.parameters |= {"max_depth": 2, "n_estimators": 1}
    assert_same_trees(problem)


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@examples(150)
@given(
    problems(EACH_CRITERION, several=True),
    st.sampled_from([True, "oob"]),
    st.sampled_from(["prune", "empirical"]),
)
def test_honest_trees_equal_the_oracle(problem, honest, prior):
    problem.parameters |= {"honest": honest, "honest_prior": prior, "bootstrap": True}
    assert_same_trees(problem)


@pytest.mark.parametrize("criterion", EACH_CRITERION)
@pytest.mark.parametrize("splitter", ["exact", "histogram"])
@pytest.mark.parametrize("rows", [60, 700])
def test_each_criterion_equals_the_oracle(criterion, splitter, rows):
    X = np.random.default_rng(7).integers(0, 900, (rows, 4, 3))
    totals = [X[:, k].sum(axis=1) for k in range(3)]
    y = np.stack(totals, axis=1)
    target = y // 700 if criterion in CLASSIFICATION else y * [1.0, 1e-3, 1e6]
    parameters = {
        "criterion": criterion,
        "splitter": splitter,
        "max_features": 3,
        "n_estimators": 1,
        "bootstrap": True,
        "random_state": 1,
        "max_leaf_nodes": 30,
    }
    forest = assert_same_trees(Problem(X, target, Patch(1, 2), parameters))
    assert len(forest.trees[0]) > 20


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_nodes_that_learn_combinations_equal_the_oracle(criterion):
    rng = np.random.default_rng(0)
    X = rng.integers(-999, 999, (60, 5)).astype(np.int16)
    y = np.stack([X[:, 0] + X[:, 1], X[:, 2] - X[:, 3], np.full(60, 5)], axis=1)
    y = (y > 0) * 1 if criterion == "gini" else y.astype(float)
    parameters = {
        "criterion": criterion,
        "max_features": 4,
        "n_estimators": 3,
        "bootstrap": True,
        "splitter": "exact",
        "random_state": 0,
    }
    forest = assert_same_trees(Problem(X, y, GivenColumns(), parameters))
    splits = [node.split for nodes in forest.trees for node in nodes if not node.is_leaf]
    assert sum(np.count_nonzero(split.atom) > 1 for split in splits) > 5


# --- scikit-learn's trees and forests --------------------------------------------------------


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_a_tree_of_classes_is_scikit_learns(criterion):
    X, y = labels()
    ours = MorfTreeClassifier(Axis(), criterion=criterion, max_features=None, max_depth=1)
    theirs = DecisionTreeClassifier(criterion=criterion, max_depth=1).fit(X, y)
    ours.set_params(random_state=0).fit(X, y)
    # The mean decrease over outputs, as in scikit-learn.
    impurity, weight = theirs.tree_.impurity, theirs.tree_.weighted_n_node_samples
    decrease = impurity[0] - (impurity[1:] * weight[1:]).sum() / weight[0]
    if criterion == "entropy":
        decrease *= 1.0  # both are in bits
    assert ours.splits_[0].gain[0] == pytest.approx(decrease)
    for mine, other in zip(ours.predict_proba(X), theirs.predict_proba(X), strict=True):
        np.testing.assert_allclose(mine, other)


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "poisson"])
def test_a_tree_of_numbers_is_scikit_learns(criterion):
    X, y = numbers(81)
    y = np.abs(y)
    ours = MorfTreeRegressor(Axis(), criterion=criterion, max_features=None, max_depth=2)
    theirs = DecisionTreeRegressor(criterion=criterion, max_depth=2, random_state=0).fit(X, y)
    np.testing.assert_allclose(
        ours.set_params(random_state=0).fit(X, y).predict(X), theirs.predict(X)
    )


def test_forests_are_as_accurate_as_scikit_learns():
    X, y = make_multilabel_classification(700, 10, n_classes=4, random_state=0)
    ours = classifier(n_estimators=100).fit(X[:400], y[:400])
    theirs = RandomForestClassifier(100, random_state=0).fit(X[:400], y[:400])
    hits, wanted = ((model.predict(X[400:]) == y[400:]).mean() for model in (ours, theirs))
    assert hits > wanted - 0.02
    X, y = numbers(600)
    ours = regressor(n_estimators=100).fit(X[:400], y[:400])
    theirs = RandomForestRegressor(100, max_features=1 / 3, random_state=0).fit(X[:400], y[:400])
    assert ours.score(X[400:], y[400:]) > theirs.score(X[400:], y[400:]) - 0.03


def test_attributes_and_answers_have_the_form_of_scikit_learns():
    X, y = labels()
    ours = classifier().fit(X, y)
    theirs = RandomForestClassifier(10, random_state=0).fit(X, y)
    assert ours.n_outputs_ == theirs.n_outputs_ == 3
    assert ours.n_classes_ == theirs.n_classes_ == [2, 3, 2]
    assert type(ours.classes_) is type(theirs.classes_) is list
    assert_same_outputs(ours.classes_, theirs.classes_)
    for question in ("predict_proba", "predict_log_proba"):
        with np.errstate(divide="ignore"):
            found, wanted = (getattr(model, question)(X) for model in (ours, theirs))
        assert type(found) is list
        assert [of.shape for of in found] == [of.shape for of in wanted]
    assert ours.predict(X).shape == y.shape
    assert ours.predict(X).dtype == y.dtype
    assert ours.feature_importances_.shape == (5,)
    for model in (ours, MorfTreeRegressor()):
        assert get_tags(model).target_tags.multi_output
    assert not get_tags(MorfBoostingRegressor()).target_tags.multi_output
    X, y = numbers()
    ours = regressor().fit(X, y)
    assert ours.n_outputs_ == 3
    assert ours.predict(X).shape == y.shape
    assert ours.score(X, y) == pytest.approx(r2_score(y, ours.predict(X)))


def test_one_column_is_one_output():
    X, y = labels()
    with pytest.warns(DataConversionWarning, match="column-vector"):
        model = classifier().fit(X, y[:, [1]])
    assert model.n_outputs_ == 1
    assert model.predict(X).shape == (len(X),)
    np.testing.assert_array_equal(model.predict(X), classifier().fit(X, y[:, 1]).predict(X))


@pytest.mark.parametrize("criterion", EACH_CRITERION)
def test_an_output_given_twice_is_that_output(criterion):
    # Scores are doubled exactly, so that the same splits are found.
    X, y = digits()
    X, target = X[:200].reshape(200, -1), y[:200]
    make = classifier if criterion in CLASSIFICATION else regressor
    target = target if criterion in CLASSIFICATION else target.astype(float)
    model = make(criterion=criterion, min_impurity_decrease=1e-3)
    once, twice = (clone(model).fit(X, of) for of in (target, np.stack([target] * 2, axis=1)))
    np.testing.assert_array_equal(once._forest.threshold, twice._forest.threshold)
    np.testing.assert_allclose(once._forest.gains(), twice._forest.gains())
    np.testing.assert_array_equal(np.stack([once.predict(X)] * 2, axis=1), twice.predict(X))


def test_small_units_keep_their_digits():
    X, y = numbers()
    tree = MorfTreeRegressor(Axis(), random_state=0).fit(X, y * [1e12, 1.0, 1e-12])
    np.testing.assert_allclose(tree.predict(X), y * [1e12, 1.0, 1e-12], rtol=1e-9)


@pytest.mark.parametrize("unit", [1e-290, 1e290])
def test_extreme_units(unit):
    X, y = numbers()
    for scale in ([unit, 1.0, 1.0], [unit, unit, 1 / unit]):
        tree = MorfTreeRegressor(Axis(), random_state=0).fit(X, y * scale)
        np.testing.assert_allclose(tree.predict(X), y * scale, rtol=1e-9)


# --- labels ----------------------------------------------------------------------------------


def test_labels_of_each_output_keep_their_kind():
    X, y = labels(60)
    words = np.array(["no", "perhaps", "certainly"])
    frame = pd.DataFrame({"a": words[y[:, 1]], "b": y[:, 0] == 1, "c": y[:, 2] * 2.0})
    for given_y in (frame, pl.from_pandas(frame), frame.to_numpy(dtype=object)):
        model = classifier(bootstrap=False).fit(X, given_y)
        assert [of.dtype.kind for of in model.classes_] == ["U", "b", "f"]
        predicted = model.predict(X)
        assert predicted.dtype == object
        assert predicted.tolist() == frame.to_numpy(dtype=object).tolist()
        assert model.score(X, given_y) == 1.0


def test_words_of_unequal_lengths_are_not_cut():
    X, y = labels(60)
    words = np.stack([np.array(["a", "b"])[y[:, 0]], np.array(["long one", "x"])[y[:, 2]]], axis=1)
    frame = pd.DataFrame(words, columns=["first", "second"])
    for given_y in (words, words.tolist(), frame):
        model = classifier(bootstrap=False).fit(X, given_y)
        assert model.predict(X).tolist() == words.tolist()


def test_an_output_may_have_one_class():
    X, y = labels(80)
    y[:, 1] = 5
    model = classifier(honest=True, honest_prior="uniform").fit(X, y)
    assert model.n_classes_ == [2, 1, 2]
    assert (model.predict_proba(X)[1] == 1.0).all()
    assert (model.predict(X)[:, 1] == 5).all()
    alone = classifier().fit(X, np.full((80, 2), 3))
    assert alone.get_n_leaves().tolist() == [1] * 10
    assert (alone.predict(X) == 3).all()


# --- weights ---------------------------------------------------------------------------------


def test_class_weights_multiply_over_outputs():
    X, y = labels(90)
    given_weights = [{0: 1, 1: 3}, {0: 2, 1: 1, 2: 1}, None]
    factors = np.array([1, 3])[y[:, 0]] * np.array([2, 1, 1])[y[:, 1]]
    weighted = classifier(class_weight=given_weights, bootstrap=False).fit(X, y)
    by_hand = classifier(bootstrap=False).fit(X, y, sample_weight=factors)
    assert_same_outputs(weighted.predict_proba(X), by_hand.predict_proba(X))
    weighted = classifier(class_weight="balanced", bootstrap=False).fit(X, y)
    counts = [np.bincount(column)[column] * (column.max() + 1) for column in y.T]
    by_hand = classifier(bootstrap=False).fit(X, y, sample_weight=1e6 / np.prod(counts, axis=0))
    for found, wanted in zip(weighted.predict_proba(X), by_hand.predict_proba(X), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6)
    by_bag = classifier(class_weight="balanced_subsample").fit(X, y)
    assert by_bag.score(X, y) > 0.9


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({0: 1, 1: 2}, "list with a dict for each of the 3 outputs"),
        ([{0: 1, 1: 2}], "list with a dict for each of the 3 outputs"),
        ("all", "class_weight must be one of"),
        ([{0: -1}, None, None], "zero or positive"),
        ([{0: 0, 1: 0}, None, None], "zero for every class"),
        ([{0: 0, 1: 1}, None, {0: 1, 1: 0}], "zero for some output of every sample"),
    ],
)
def test_wrong_class_weights_are_refused(class_weight, message):
    X = np.arange(4.0).reshape(-1, 1)
    y = np.array([[0, 0, 0], [0, 1, 1], [1, 2, 1], [1, 0, 1]])
    with pytest.raises(ValueError, match=message):
        classifier(class_weight=class_weight).fit(X, y)


@pytest.mark.parametrize("make", [classifier, regressor])
def test_whole_weights_are_repetitions(make):
    X, y = labels(60)
    weight = np.arange(60) % 4
    weighted = make(keep_samples=True).fit(X, y, sample_weight=weight)
    repeated = make().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight, axis=0))
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))
    np.testing.assert_array_equal(weighted._forest.threshold, repeated._forest.threshold)


@pytest.mark.parametrize("make", [classifier, regressor])
def test_the_order_of_the_rows_does_not_matter(make):
    X, y = labels(80)
    X = np.round(X)  # equal rows with different targets
    order = np.random.default_rng(1).permutation(80)
    one, other = make(honest=True).fit(X, y), make(honest=True, n_jobs=2).fit(X[order], y[order])
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    np.testing.assert_array_equal(one._forest.threshold, other._forest.threshold)


# --- what forests can be asked ---------------------------------------------------------------


def test_weights_times_targets_are_predictions():
    X, y = numbers()
    for parameters in ({}, {"honest": True}, {"honest": "oob", "honest_prior": "empirical"}):
        model = regressor(keep_samples=True, **parameters).fit(X, y)
        np.testing.assert_allclose(model.weights(X) @ y, model.predict(X), rtol=1e-9)
    X, y = labels()
    model = classifier(keep_samples=True, class_weight="balanced").fit(X, y)
    weights = model.weights(X)
    for k, found in enumerate(model.predict_proba(X)):
        marks = y[:, [k]] == model.classes_[k]
        np.testing.assert_allclose(weights @ marks, found, atol=1e-12)
    rows, largest = model.nearest(X, 2)
    assert rows.shape == largest.shape == (len(X), 2)


@pytest.mark.filterwarnings(r"ignore:.*variances were negative")
def test_uncertainty_of_each_output():
    X, y = numbers()
    model = regressor(keep_samples=True, n_estimators=40, min_samples_leaf=5).fit(X, y)
    assert model.predict_std(X).shape == (len(X), 3)
    assert (model.predict_std(X).mean(axis=0) * [1e-4, 1, 1e3] > 0.01).all()
    low, high = np.moveaxis(model.predict_interval(X, 0.8), 2, 0)
    assert low.shape == (len(X), 3)
    assert (((low <= y) & (y <= high)).mean(axis=0) >= 0.8).all()
    quantiles = model.predict_quantiles(X, [0.9, 0.1])
    assert quantiles.shape == (len(X), 3, 2)
    assert (quantiles[..., 1] <= quantiles[..., 0]).all()
    X, y = labels()
    model = classifier(keep_samples=True, n_estimators=40).fit(X, y)
    assert [of.shape for of in model.predict_std(X)] == [(len(X), k) for k in (2, 3, 2)]
    for k, sets in enumerate(model.predict_set(X, 0.8)):
        assert sets[np.arange(len(X)), y[:, k]].mean() >= 0.8


def test_an_outputs_uncertainty_is_that_of_the_same_forest():
    X, y = friedman(120)
    model = regressor(keep_samples=True, n_estimators=40)
    alone, twice = (clone(model).fit(X, of) for of in (y, np.stack([y, y], axis=1)))
    np.testing.assert_allclose(twice.predict_interval(X)[:, 1], alone.predict_interval(X))
    np.testing.assert_array_equal(
        twice.predict_quantiles(X, [0.1, 0.9])[:, 1], alone.predict_quantiles(X, [0.1, 0.9])
    )


def test_attributions_add_up_to_predictions():
    X, y = labels()
    model = classifier().fit(X, y)
    found = model.attributions(X)
    for of, probabilities in zip(found, model.predict_proba(X), strict=True):
        np.testing.assert_allclose(of.values.sum(axis=1) + of.baseline, probabilities, atol=1e-9)
    X, y = numbers()
    model = regressor().fit(X, y)
    values, baseline = model.attributions(X)
    np.testing.assert_allclose(values.sum(axis=1) + baseline, model.predict(X), rtol=1e-6)


def test_out_of_bag_scores():
    X, y = labels()
    model = classifier(n_estimators=40, oob_score=True).fit(X, y, sample_weight=np.arange(150) > 9)
    assert [of.shape for of in model.oob_decision_function_] == [(150, k) for k in (2, 3, 2)]
    assert all(np.isnan(of[:10]).all() for of in model.oob_decision_function_)
    best = [np.argmax(of[10:], axis=1) for of in model.oob_decision_function_]
    assert model.oob_score_ == (np.stack(best, axis=1) == y[10:]).all(axis=1).mean()
    custom = classifier(n_estimators=40, oob_score=lambda a, b: (a == b).mean()).fit(X, y)
    assert custom.oob_score_ > model.oob_score_
    X, y = numbers()
    model = regressor(n_estimators=40, oob_score=True).fit(X, y)
    assert model.oob_prediction_.shape == y.shape
    assert model.oob_score_ == pytest.approx(r2_score(y, model.oob_prediction_))


def test_a_sample_is_right_if_all_of_its_labels_are():
    X, y = labels()
    model = classifier(max_depth=2).fit(X, y)
    hits = (model.predict(X) == y).all(axis=1)
    assert model.score(X, y) == hits.mean()
    weight = np.arange(150)
    assert model.score(X, y, weight) == pytest.approx((hits * weight).sum() / weight.sum())
    two = model.fit(X, y[:, [0, 2]])  # scikit-learn's accuracy, where that is defined
    assert two.score(X, y[:, [0, 2]]) == accuracy_score(y[:, [0, 2]], two.predict(X))


@pytest.mark.parametrize("make", [classifier, regressor])
@pytest.mark.parametrize(
    "dictionary",
    [Patch(1, 2), Subset(Patch(1, 2), 20), SharedAtoms(Patch(1, 2, pool="max"), 30), "auto"],
    ids=["patch", "subset", "shared", "auto"],
)
def test_dictionaries_copies_and_pickles(make, dictionary):
    X, y = digits()
    X, y = X[:150], np.stack([y[:150] > 4, y[:150] % 2 == 0], axis=1)
    model = make(dictionary, n_estimators=5, augment=ImageCopies(copies=1)).fit(X, y * 1)
    loaded = pickle.loads(pickle.dumps(model))
    assert loaded.n_outputs_ == 2
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert model.score(X, y * 1) > 0.5
    assert model.splits_[0].weight.max() > 0


def test_auto_scores_are_means_over_outputs():
    X, y = digits()
    X, target = X[:120], y[:120].astype(float)
    one = regressor("auto").fit(X, target).dictionary_scores_
    two = regressor("auto").fit(X, np.stack([target, target], axis=1)).dictionary_scores_
    assert one == pytest.approx(two)


@pytest.mark.parametrize("make", [classifier, regressor])
def test_warm_starts(make):
    X, y = labels()
    model = make(warm_start=True, keep_samples=True, n_estimators=4).fit(X, y)
    model.set_params(n_estimators=10).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), make().fit(X, y).predict(X))
    assert model.weights(X).shape == (150, 150)
    model.set_params(n_estimators=12)
    for other in (y[:, 0], y[:, :2]):
        with pytest.raises(ValueError, match="warm_start needs the outputs of the first fit"):
            model.fit(X, other)
    if make is classifier:
        with pytest.raises(ValueError, match="warm_start needs the classes of the first fit"):
            model.fit(X, y + 1)


@pytest.mark.parametrize("prior", ["prune", "ignore", "uniform", "empirical"])
def test_honest_trees(prior):
    X, y = labels(400)
    model = classifier(honest=True, honest_prior=prior, n_estimators=30).fit(X, y)
    assert all(np.allclose(of.sum(axis=1), 1.0) for of in model.predict_proba(X))
    assert (model.predict(X) == y).mean() > 0.85
    if prior != "uniform":
        X, y = numbers(400)
        model = regressor(honest=True, honest_prior=prior, n_estimators=30).fit(X, y)
        assert model.score(X, y) > 0.5


def test_uniform_leaves_need_a_common_multiple():
    rng = np.random.default_rng(0)
    y = np.stack([np.arange(200) % prime for prime in (47, 43, 41, 37, 31, 29, 23)], axis=1)
    X = rng.normal(size=(200, 3))
    model = classifier(honest=True, honest_prior="uniform")
    with pytest.raises(ValueError, match="smallest common multiple"):
        model.fit(X, y)
    assert model.set_params(honest_prior="empirical").fit(X, y).n_outputs_ == 7


# --- mistakes --------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [classifier, regressor, MorfTreeClassifier, MorfTreeRegressor])
def test_wrong_targets_are_refused(make):
    X, y = labels(20)
    model = make()
    with pytest.raises(ValueError, match="X has 20 samples but y has 19"):
        model.fit(X, y[:19])
    with pytest.raises(ValueError, match=r"y has shape \(20, 3, 1\): pass one value per sample"):
        model.fit(X, y[:, :, np.newaxis])
    with pytest.raises(ValueError, match=r"y has shape \(20, 0\)"):
        model.fit(X, y[:, :0])
    missing = y.astype(float)
    missing[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"Output 1 of y.*contains NaN"):
        model.fit(X, missing)
    with pytest.raises(ValueError, match="same number of outputs for each sample"):
        model.fit(X, [[0, 1]] * 19 + [[0, 1, 2]])
    with pytest.raises(ValueError, match="masked"):
        model.fit(X, np.ma.masked_equal(y, 1))


def test_other_wrong_targets_are_refused():
    from scipy.sparse import csr_matrix

    X, y = labels(20)
    with pytest.raises(ValueError, match=r"y is a sparse csr_matrix.*toarray"):
        classifier().fit(X, csr_matrix(y))
    with pytest.raises(ValueError, match=r"Output 0 of y.*Unknown label type: continuous"):
        classifier().fit(X, y + 0.5)
    with pytest.raises(ValueError, match=r"Output 1 of y.*poisson.*not negative"):
        regressor(criterion="poisson").fit(X, np.stack([y[:, 0] + 1, y[:, 0] - 2], axis=1))
    with pytest.raises(ValueError, match=r"Output 1 of y.*not all zero"):
        regressor(criterion="poisson").fit(X, np.stack([y[:, 0] + 1, y[:, 0] * 0], axis=1))
    with pytest.raises(ValueError, match=r"Output 0 of y.*must hold numbers"):
        regressor().fit(X, np.full((20, 2), "a"))
    model = classifier().fit(X, y)
    with pytest.raises(ValueError, match=r"y has shape \(20, 2\), but predictions have"):
        model.score(X, y[:, :2])


@pytest.mark.parametrize(
    "model", [MorfBoostingClassifier(), MorfBoostingRegressor(), AtomRidgeRegressor()]
)
def test_others_say_that_forests_take_several_outputs(model):
    X, y = labels(20)
    with pytest.raises(ValueError, match=r"several outputs.*use a forest.*sklearn.multioutput"):
        model.fit(X, y)
