"""A ridge classifier and a ridge regressor over atoms."""

import inspect
import pickle
import warnings

import numpy as np
import oracle_ridge as oracle
import pytest
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.preprocessing import StandardScaler

from morforest import (
    AtomFeatures,
    AtomRidgeClassifier,
    AtomRidgeRegressor,
    Axis,
    Haar,
    Mixture,
    Patch,
    SparseOblique,
)
from morforest import _ridge_base as module
from morforest.dictionary._presets import choose_dictionary


def bumps(n, seed=0, length=40, sensors=2):
    """Series with a bump at a random place in one class, and two of half its height in another."""
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(n, sensors, length)), np.arange(n) % 3
    for i in range(n):
        for _ in range(y[i]):
            start = random.integers(0, length - 8)
            X[i, 0, start : start + 8] += 4.0 / y[i]
    return X, y


def test_series_are_learnt_wherever_things_happen():
    X, y = bumps(300)
    Xt, yt = bumps(300, seed=1)
    model = AtomRidgeClassifier(n_atoms=2000, channel_axis=1, random_state=0).fit(X, y)
    assert model.score(Xt, yt) > 0.85
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(Xt), model.decision_function(Xt))
    threads = AtomRidgeClassifier(n_atoms=2000, channel_axis=1, random_state=0, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(threads.coef_, model.coef_)
    assert model.coef_.shape == (3, len(model.features_.get_feature_names_out()))


def test_it_is_the_pipeline_that_it_says():
    X, y = bumps(90)
    dictionary = Haar(1, (1, 10), pool="proportion")
    model = AtomRidgeClassifier(dictionary, 300, channel_axis=1, random_state=3).fit(X, y)
    values = AtomFeatures(dictionary, 300, channel_axis=1, random_state=3).fit_transform(X)
    deviation = values.std(axis=0, dtype=np.float64)
    scaled = (values - values.mean(axis=0, dtype=np.float64)) / np.where(deviation, deviation, 1)
    ridge = RidgeClassifierCV(np.logspace(-3, 4, 15)).fit(np.clip(scaled, -8, 8), y)
    assert model.alpha_ == ridge.alpha_
    np.testing.assert_allclose(model.coef_, ridge.coef_, atol=1e-6)


def test_dictionaries_by_default():
    random = np.random.default_rng(0)
    y = np.arange(30) % 2
    long = AtomRidgeClassifier(n_atoms=20).fit(random.normal(size=(30, 12)), y)
    short = AtomRidgeClassifier(n_atoms=20).fit(random.normal(size=(30, 3)), y)
    assert long.features_.dictionary_ == choose_dictionary("series-pooled", (12,), None)
    assert "SparseOblique" in repr(short.features_.dictionary_)
    image = AtomRidgeClassifier(Patch(), n_atoms=20).fit(random.normal(size=(30, 5, 5)), y)
    assert image.data_shape_ == (5, 5)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_atoms": 0}, "n_atoms"),
        ({"alphas": []}, "alphas"),
        ({"alphas": [0.0]}, "alphas"),
        ({"alphas": [1e-308]}, "alphas must be.*1e-50 to 1e\\+50"),
        ({"alphas": [1.0, 1e308]}, "alphas must be.*1e-50 to 1e\\+50"),
        ({"dictionary": "auto"}, "auto"),
        ({"dictionary": 3}, "dictionary"),
        ({"channel_axis": 9}, "channel_axis"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"data_shape": (3, 3)}, "data_shape"),
        ({"class_weight": "heavy"}, 'class_weight must be None, "balanced" or a dict.*heavy'),
        ({"class_weight": "balanced_subsample"}, "class_weight must be.*balanced_subsample"),
        ({"class_weight": [1, 2, 3]}, "class_weight must be"),
        ({"class_weight": {0: -1.0}}, r"class_weight of 0 must be zero or positive, got -1\.0"),
        ({"class_weight": {0: np.nan}}, "class_weight of 0 must be zero or positive, got nan"),
        ({"class_weight": {"a": 2}}, r"labels that are not in y, \['a'\], .*\[0, 1, 2\]"),
        ({"class_weight": {0: 0, 1: 0, 2: 0}}, "class_weight=.* is zero for every class"),
        ({"class_weight": {0: 0, 1: 0}}, "one class only among the samples of positive weight"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    X, y = bumps(12)
    with pytest.raises((ValueError, TypeError), match=message):
        AtomRidgeClassifier(**{"n_atoms": 10, **parameters}).fit(X, y)


@pytest.mark.parametrize("n", [8, 60])  # fewer rows than atoms, and more
@pytest.mark.parametrize("alphas", [[1e-50], [1e50], [1e-50, 1.0, 1e50]])
def test_extreme_penalties_give_finite_probabilities(n, alphas):
    X, y = bumps(n)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = AtomRidgeClassifier(Axis(), 20, alphas=alphas, random_state=0).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("n_jobs", [0, "many", 10**30])
def test_numbers_of_jobs_are_checked_again_after_the_fit(n_jobs):
    X, y = bumps(12)
    model = AtomRidgeClassifier(Axis(), 10).fit(X, y).set_params(n_jobs=n_jobs)
    features = AtomFeatures(Axis(), 10).fit(X).set_params(n_jobs=n_jobs)
    for call in (model.predict, features.transform):
        with pytest.raises(ValueError, match="n_jobs must be"):
            call(X)


def test_bad_targets_are_explained():
    X, y = bumps(12)
    model = AtomRidgeClassifier(n_atoms=10)
    with pytest.raises(ValueError, match="one class only"):
        model.fit(X, np.zeros(12))
    with pytest.raises(ValueError, match="they must match"):
        model.fit(X, y[:5])
    with pytest.raises(ValueError, match="requires y"):
        model.fit(X, None)
    with pytest.raises(ValueError, match="several outputs"):
        model.fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="several outputs"):
        AtomRidgeRegressor(n_atoms=10).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="y must hold numbers"):
        AtomRidgeRegressor(n_atoms=10).fit(X, np.array(["a"] * 12))
    with pytest.raises(ValueError, match="NaN or infinity"):
        AtomRidgeRegressor(n_atoms=10).fit(X, np.where(y == 1, np.inf, y))


@pytest.mark.parametrize("estimator", [AtomRidgeClassifier, AtomRidgeRegressor])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(5), "sample_weight has shape"),
        (-np.ones(12), "sample_weight has negative"),
        (np.zeros(12), "sample_weight is zero everywhere"),
        (np.full(12, np.nan), "sample_weight contains NaN"),
        (["a"] * 12, "sample_weight must hold numbers"),
    ],
    ids=str,
)
def test_bad_weights_are_explained_and_change_nothing(estimator, weights, message):
    X, y = bumps(12)
    model = estimator(n_atoms=10, random_state=0).fit(X, y)
    before = model.__dict__.copy()
    with pytest.raises(ValueError, match=message):
        model.fit(X[:, :, :20], y, weights)
    assert model.__dict__.keys() == before.keys()
    assert all(value is before[name] for name, value in model.__dict__.items())


def test_parameters_are_in_one_order():
    """Those that two estimators have in common follow each other alike."""
    orders = [list(inspect.signature(c).parameters) for c in (AtomFeatures, AtomRidgeClassifier)]
    orders.append(list(inspect.signature(AtomRidgeRegressor).parameters))
    common = ["dictionary", "n_atoms", "data_shape", "channel_axis", "n_jobs", "random_state"]
    for order in orders:
        assert [name for name in order if name in common] == common
    for estimator in (AtomFeatures, AtomRidgeClassifier, AtomRidgeRegressor):
        with pytest.raises(TypeError):
            estimator(None, 10, None)


MIXED = Mixture([SparseOblique(), Patch(pool=["max", "proportion"])])


def numbers(n, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 20))
    return X, 3 * np.abs(np.diff(X)).mean(axis=1) + X[:, 0] + 5


def test_the_regressor_is_the_pipeline_that_it_says():
    X, y = numbers(60)
    for n_atoms in (30, 200):
        model = AtomRidgeRegressor(MIXED, n_atoms, random_state=3).fit(X, y)
        values = AtomFeatures(MIXED, n_atoms, dtype="float64", random_state=3).fit_transform(X)
        scaled = np.clip(StandardScaler().fit_transform(values), -8, 8)
        ridge = RidgeCV(np.logspace(-3, 4, 15)).fit(scaled, y)
        assert model.alpha_ == ridge.alpha_
        np.testing.assert_allclose(model.coef_, ridge.coef_, atol=1e-6)
        np.testing.assert_allclose(model.intercept_, ridge.intercept_, atol=1e-6)
        np.testing.assert_allclose(model.predict(X), ridge.predict(scaled), atol=1e-5)
    Xt, yt = numbers(200, 1)
    assert AtomRidgeRegressor(MIXED, 500, random_state=0).fit(*numbers(200)).score(Xt, yt) > 0.7


@pytest.mark.parametrize("held", [module.HELD_VALUES, 200])
def test_left_out_predictions_are_those_of_refits(held, monkeypatch):
    monkeypatch.setattr(module, "HELD_VALUES", held)
    monkeypatch.setattr(module, "BLOCK_VALUES", held)
    X, y = numbers(25)
    weights = np.random.default_rng(0).gamma(1.0, size=25)
    weights[:3] = 0
    used = weights > 0
    alphas = [0.1, 10.0]
    model = AtomRidgeRegressor(MIXED, 40, alphas=alphas, random_state=0).fit(X, y, weights)
    values = model.features_.transform(X)
    Z = oracle.standardised(values[used], weights[used])
    alpha, coef, _, left_out = oracle.choose(Z, y[used, None], weights[used], alphas)
    assert model.alpha_ == alpha
    np.testing.assert_allclose(model.coef_, coef[:, 0], atol=1e-5)
    np.testing.assert_allclose(model.loo_prediction_[used], left_out[:, 0], atol=1e-4)
    np.testing.assert_allclose(model.loo_prediction_[~used], model.predict(X[~used]), rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_left_out_scores_of_classes_are_those_of_refits(classes):
    X, y = bumps(30)
    y = y % classes
    model = AtomRidgeClassifier(MIXED, 50, class_weight={0: 2.5}, random_state=0).fit(X, y)
    weights = np.where(y == 0, 2.5, 1.0)
    Z = oracle.standardised(model.features_.transform(X), weights)
    Y = np.where(y[:, None] == np.arange(classes), 1.0, -1.0)[:, classes == 2 :]
    _, coef, intercept, left_out = oracle.choose(Z, Y, weights, [model.alpha_])
    np.testing.assert_allclose(model.coef_, coef.T, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, intercept, atol=1e-5)
    found = model.loo_decision_function_.reshape(30, -1)
    np.testing.assert_allclose(found, left_out, atol=1e-4)
    scores = np.column_stack([-found, found]) / 2 if classes == 2 else found
    losses = [
        oracle.log_loss(factor / model.temperature_, scores, y, weights)
        for factor in (1, 0.97, 1.03)
    ]
    assert losses[0] == min(losses)


@pytest.mark.parametrize("estimator", [AtomRidgeClassifier, AtomRidgeRegressor])
def test_a_whole_weight_is_the_row_repeated(estimator):
    X, y = bumps(40)
    weights = np.random.default_rng(1).integers(0, 4, 40)
    weights[0] = 3
    weighted = estimator(MIXED, 120, random_state=0).fit(X, y, weights)
    repeated = estimator(MIXED, 120, random_state=0).fit(
        np.repeat(X, weights, axis=0), np.repeat(y, weights)
    )
    np.testing.assert_array_equal(weighted.coef_, repeated.coef_)
    assert weighted.alpha_ == repeated.alpha_
    for name in ("loo_decision_function_", "loo_prediction_"):
        if hasattr(weighted, name):
            left_out = np.repeat(getattr(weighted, name), weights, axis=0)
            np.testing.assert_array_equal(left_out, getattr(repeated, name))
    if estimator is AtomRidgeClassifier:
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-8)
    plain = clone(weighted).fit(X, y)
    np.testing.assert_array_equal(plain.coef_, clone(plain).fit(X, y, np.ones(40)).coef_)
    assert (plain.coef_ != weighted.coef_).any()


def test_class_weights_multiply_sample_weights():
    X, y = bumps(40)
    weights = np.random.default_rng(1).integers(1, 4, 40)
    both = AtomRidgeClassifier(MIXED, 60, class_weight={1: 3, 2: 0.5}, random_state=0)
    one = AtomRidgeClassifier(MIXED, 60, random_state=0)
    both.fit(X, y, weights)
    one.fit(X, y, weights * np.array([1, 3, 0.5])[y])
    np.testing.assert_array_equal(both.coef_, one.coef_)
    assert both.temperature_ == one.temperature_
    totals = np.bincount(y, weights)
    balanced = AtomRidgeClassifier(MIXED, 60, class_weight="balanced", random_state=0)
    balanced.fit(X, y, weights)
    one.fit(X, y, weights * (weights.sum() / (3 * totals))[y])
    np.testing.assert_allclose(balanced.coef_, one.coef_, atol=1e-10)
    # As in scikit-learn a dict may list labels that a fold lacks, if it lists all of the fold's.
    full = AtomRidgeClassifier(MIXED, 60, class_weight={0: 1, 1: 1, 2: 1, 7: 2}, random_state=0)
    full.fit(X, y)
    np.testing.assert_array_equal(full.coef_, one.fit(X, y).coef_)


def test_samples_without_weight_are_left_out():
    X, y = bumps(40)
    weights = (np.arange(40) % 4 > 0) * 1.0
    weights[y == 2] = 0
    some = weights > 0
    dropped = AtomRidgeClassifier(MIXED, 60, random_state=0).fit(X[some], y[some])
    X[0] *= 1e6  # has no weight
    zero = AtomRidgeClassifier(MIXED, 60, random_state=0).fit(X, y, weights)
    np.testing.assert_array_equal(zero.classes_, [0, 1])
    np.testing.assert_array_equal(zero.coef_, dropped.coef_)
    assert zero.temperature_ == dropped.temperature_
    assert zero.loo_decision_function_.shape == (40,)
    np.testing.assert_array_equal(zero.loo_decision_function_[some], dropped.loo_decision_function_)


def test_labels_repeated_in_other_classes_are_not_merged():
    X, _ = bumps(20)
    X = np.concatenate([X, X])
    y = np.repeat([0, 1], 20)  # each sample once per class: nothing to learn
    model = AtomRidgeClassifier(MIXED, 60, random_state=0).fit(X, y)
    assert model.loo_decision_function_.shape == (40,)
    assert (model.loo_decision_function_ * np.where(y == 1, 1, -1) < 0.2).all()


def test_probabilities_of_overlapping_classes_are_calibrated():
    random = np.random.default_rng(0)
    X = random.normal(size=(4000, 12))
    chance = 1 / (1 + np.exp(-2 * X[:, 0] - X[:, 1]))
    y = np.array(["no", "yes"])[(random.random(4000) < chance).astype(int)]
    model = AtomRidgeClassifier(SparseOblique(), 100, random_state=0).fit(X[:1000], y[:1000])
    found = model.predict_proba(X[1000:])
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert np.abs(found[:, 1] - chance[1000:]).mean() < 0.06
    assert log_loss(y[1000:], found) < log_loss(y[1000:], np.c_[1 - chance, chance][1000:]) + 0.02
    scores = model.decision_function(X[1000:])
    assert (np.diff(found[np.argsort(scores), 1]) >= 0).all()
    assert roc_auc_score(y[1000:], found[:, 1]) == roc_auc_score(y[1000:], scores)
    np.testing.assert_allclose(found[:, 1], 1 / (1 + np.exp(-scores / model.temperature_)))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X[1000:])), found)


@pytest.mark.parametrize(
    ("n", "classes"), [(2, 2), (3, 3), (4, 2), (10, 2), (10, 10), (60, 30), (300, 3)]
)
def test_the_most_probable_class_is_predicted(n, classes):
    X, _ = bumps(n)
    y = np.arange(n) % classes
    model = AtomRidgeClassifier(MIXED, 100, random_state=0).fit(X, y)
    for samples in (X, bumps(200, seed=5)[0], 1e9 * X):
        found = model.predict_proba(samples)
        assert np.isfinite(found).all()
        assert (found >= 0).all()
        np.testing.assert_allclose(found.sum(axis=1), 1)
        np.testing.assert_array_equal(model.classes_[found.argmax(axis=1)], model.predict(samples))
        assert np.isfinite(model.predict_log_proba(samples)).all()
    assert np.isfinite(model.loo_decision_function_).all()


def test_perfectly_separated_classes_are_not_certain():
    X = np.random.default_rng(0).normal(size=(40, 20))
    y = np.arange(40) % 2
    X[y == 1] += 100
    model = AtomRidgeClassifier(SparseOblique(), 100, random_state=0).fit(X, y)
    highest = model.predict_proba(X).max(axis=1)
    assert 0.95 < highest.mean() < 0.999


@pytest.mark.parametrize("offset", [1e4, 1e6, 1e8, 1e10, 1e12])
@pytest.mark.parametrize("dictionary", [SparseOblique(), Patch(1, 5, pool=["max", "mean", "min"])])
def test_offsets_lose_nothing(offset, dictionary):
    """As far as X itself holds what varies, in float64 and in the cells of pooled atoms."""
    random = np.random.default_rng(0)
    step = 2.0**-8  # such numbers are exact with any of the offsets
    X = np.round(random.normal(size=(300, 20)) / step) * step
    y = (X[:, :5].mean(axis=1) + 0.2 * random.normal(size=300) > 0).astype(int)
    target = X[:, :5].mean(axis=1)
    for estimator, targets in ((AtomRidgeClassifier, y), (AtomRidgeRegressor, target)):
        model = estimator(dictionary, 300, random_state=0)
        plain = model.fit(X[:200], targets[:200]).predict(X[200:])
        assert model.score(X[200:], targets[200:]) > 0.75
        moved = model.fit(X[:200] + offset, targets[:200]).predict(X[200:] + offset)
        np.testing.assert_allclose(moved, plain, atol=5e-3)


def test_offsets_and_scales_of_targets_are_carried_through():
    X, y = numbers(60)
    plain = AtomRidgeRegressor(MIXED, 100, random_state=0).fit(X, y)
    for factor, offset in ((1e200, 0), (1e-200, 0), (1.0, 1e9), (-1e6, 1e6)):
        model = AtomRidgeRegressor(MIXED, 100, random_state=0).fit(X, y * factor + offset)
        for found, expected in (
            (model.predict(X), plain.predict(X)),
            (model.loo_prediction_, plain.loo_prediction_),
        ):
            np.testing.assert_allclose((found - offset) / factor, expected, rtol=1e-6)
        assert model.alpha_ == plain.alpha_
    constant = AtomRidgeRegressor(MIXED, 100, random_state=0).fit(X, np.full(60, 7.5))
    np.testing.assert_array_equal(constant.predict(X), 7.5)


def test_a_regressor_of_copies_of_one_sample_predicts_its_target():
    X, _ = numbers(1)
    for n in (1, 5):
        model = AtomRidgeRegressor(MIXED, 20, random_state=0)
        model.fit(np.repeat(X, n, axis=0), np.full(n, 3.0))
        assert np.isnan(model.loo_prediction_).all()
        np.testing.assert_array_equal(model.predict(numbers(4)[0]), 3.0)


@pytest.mark.filterwarnings("ignore:invalid value encountered in reduce")  # scikit-learn's check
def test_atoms_beyond_float64_are_refused_in_training_and_clipped_in_prediction():
    X, y = numbers(30)
    with pytest.raises(ValueError, match="exceed what float64 holds: scale X down"):
        AtomRidgeRegressor(SparseOblique(), 50, random_state=0).fit(
            X / np.abs(X).max() * 1.7e308, y
        )
    model = AtomRidgeRegressor(SparseOblique(), 50, random_state=0).fit(X, y)
    assert np.isfinite(model.predict(X * 1e307)).all()


@pytest.mark.parametrize("estimator", [AtomRidgeClassifier, AtomRidgeRegressor])
def test_threads_and_pickles_change_nothing(estimator, monkeypatch):
    monkeypatch.setattr(module, "CALL_VALUES", 300)
    X, y = bumps(50)
    models = [estimator(MIXED, 100, n_jobs=n, random_state=0).fit(X, y) for n in (None, 2, 5)]
    models.append(pickle.loads(pickle.dumps(models[0])))
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
        np.testing.assert_array_equal(model.predict(X), models[0].predict(X))


def test_huge_weights_cost_nothing():
    X, y = bumps(30)
    weights = np.where(np.arange(30) % 2, 1e6, 3e9)
    model = AtomRidgeClassifier(MIXED, 50, random_state=0).fit(X, y, weights)
    assert np.isfinite(model.loo_decision_function_).all()
    assert np.isfinite(model.predict_proba(X)).all()
