"""A ridge classifier over atoms."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifierCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from morforest import AtomFeatures, AtomRidgeClassifier, Haar, Patch
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


@parametrize_with_checks([AtomRidgeClassifier(n_atoms=100)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


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
        ({"dictionary": "auto"}, "auto"),
        ({"dictionary": 3}, "dictionary"),
        ({"channel_axis": 9}, "channel_axis"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"data_shape": (3, 3)}, "data_shape"),
        ({"class_weight": "heavy"}, "class_weight"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    X, y = bumps(12)
    with pytest.raises((ValueError, TypeError), match=message):
        AtomRidgeClassifier(**{"n_atoms": 10, **parameters}).fit(X, y)


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
