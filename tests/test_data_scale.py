"""Samples to predict whose numbers are far larger or smaller than those of training."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_linnerud,
    load_wine,
)

from morforest import (
    AtomFeatures,
    AtomRidgeClassifier,
    AtomRidgeRegressor,
    DataScaleWarning,
    MorfBoostingClassifier,
    MorfBoostingRegressor,
    MorfClassifier,
    MorfRegressor,
    MorfTreeClassifier,
    MorfTreeRegressor,
    Patch,
)
from morforest._data_scale import FACTOR, TRAINING_ROWS, find_sizes
from morforest.datasets import make_bars, make_circle, make_dynamics, make_impulse

ESTIMATORS = {
    "forest": lambda: MorfClassifier(n_estimators=2, random_state=0),
    "regression": lambda: MorfRegressor(n_estimators=2, random_state=0),
    "tree": lambda: MorfTreeClassifier(random_state=0),
    "regression tree": lambda: MorfTreeRegressor(random_state=0),
    "boosting": lambda: MorfBoostingClassifier(max_iter=2, random_state=0),
    "boosted regression": lambda: MorfBoostingRegressor(max_iter=2, random_state=0),
    "ridge": lambda: AtomRidgeClassifier(Patch(1, 4), 20, random_state=0),
    "ridge regression": lambda: AtomRidgeRegressor(Patch(1, 4), 20, random_state=0),
    "atoms": lambda: AtomFeatures(Patch(1, 4), 20, random_state=0),
}


def images(n=60):
    """Pictures of bytes, half of whose pixels are black."""
    random = np.random.default_rng(0)
    X = random.integers(0, 256, (n, 12, 12)).astype(np.uint8)
    X[random.random(X.shape) < 0.5] = 0
    return X, np.arange(n) % 2


def ask(model, X):
    return (model.transform if hasattr(model, "transform") else model.predict)(X)


def silent(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataScaleWarning)
        ask(model, X)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("rows", [1, 2, 60])
def test_bytes_and_fractions_are_told_apart(name, rows):
    X, y = images()
    model = ESTIMATORS[name]().fit(X, y)
    with pytest.warns(DataScaleWarning, match=r"smaller than those of training.*X / 255"):
        ask(model, X[:rows] / 255)
    silent(model, X[:rows])
    model = ESTIMATORS[name]().fit(X / 255, y)
    with pytest.warns(DataScaleWarning, match="larger than those of training"):
        ask(model, X[:rows])
    silent(model, X[:rows] / 255)
    silent(model, (X[:rows] / 255).astype(np.float32))


def test_the_warning_is_told_once_where_the_call_is():
    X, y = images()
    model = MorfBoostingClassifier(max_iter=2, calibration_folds=2, random_state=0).fit(X, y)
    with pytest.warns(DataScaleWarning) as found:
        model.predict(X / 255)
    assert len(found) == 1
    assert found[0].filename == __file__
    with pytest.warns(DataScaleWarning) as found:
        model.predict_set(X / 255)
    assert {warning.filename for warning in found} == {__file__}


@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_constant_samples_never_warn(dtype):
    X, y = images()
    model = MorfClassifier(n_estimators=2, random_state=0).fit(X.astype(dtype), y)
    for value in (0, 1, 255):
        for rows in (1, 5):
            silent(model, np.full((rows, 12, 12), value, dtype=dtype))
    model = MorfClassifier(n_estimators=2, random_state=0).fit(X / 255, y)
    silent(model, np.full((1, 12, 12), 255.0))


def test_constant_features_and_zeros_never_warn():
    X, y = images()
    model = MorfClassifier(n_estimators=2, random_state=0).fit(np.zeros_like(X), y)
    silent(model, X)
    X = X.astype(float)
    X[:, :6] = 7.0
    model = MorfClassifier(n_estimators=2, random_state=0).fit(X, y)
    silent(model, X[:3])


def test_one_sample_of_the_usual_size_silences_the_warning():
    X, y = images()
    model = MorfClassifier(n_estimators=2, random_state=0).fit(X, y)
    batch = X / 255
    batch[40] = X[40]
    silent(model, batch)


def test_few_values_never_warn():
    model = MorfClassifier(n_estimators=2, random_state=0).fit([[1.0, 2], [3, 4]] * 20, [0, 1] * 20)
    for value in (1e-30, 1e30):
        silent(model, [[value, 2 * value]])
        with pytest.warns(DataScaleWarning):
            ask(model, [[value, 2 * value]] * 4)


@pytest.mark.parametrize(
    "load", [load_breast_cancer, load_diabetes, load_digits, load_iris, load_linnerud, load_wine]
)
def test_tables_never_warn_on_their_own_scale(load):
    X = load().data
    halves = np.arange(len(X)) % 2 == 0
    model = MorfClassifier(n_estimators=1, random_state=0).fit(X[halves], np.arange(halves.sum()))
    silent(model, X[~halves])
    for row in X[~halves]:
        silent(model, row[None])
    with pytest.warns(DataScaleWarning):
        ask(model, X[~halves] / 1000)
    with pytest.warns(DataScaleWarning):
        ask(model, X[~halves] * 1000)


@pytest.mark.parametrize("make", [make_bars, make_circle, make_dynamics, make_impulse])
def test_simulations_never_warn_on_their_own_scale(make):
    X, y = make(100, random_state=0)[:2]
    model = MorfClassifier(n_estimators=1, random_state=0).fit(X[:50], y[:50])
    silent(model, X[50:])
    for sample in X[50:]:
        silent(model, sample[None])


@pytest.mark.parametrize("width", [1, 3, 30])
@pytest.mark.parametrize("tail", ["cauchy", "lognormal", "exponential", "normal"])
def test_heavy_tails_rarely_warn(width, tail):
    random = np.random.default_rng(0)
    draw = {
        "cauchy": lambda n: random.standard_cauchy((n, width)),
        "lognormal": lambda n: random.lognormal(0, 3, (n, width)),
        "exponential": lambda n: random.exponential(size=(n, width)),
        "normal": lambda n: random.normal(size=(n, width)),
    }[tail]
    X = draw(400)
    model = MorfClassifier(n_estimators=1, random_state=0).fit(X, np.arange(400) % 2)
    for _ in range(200):
        silent(model, draw(1))
        silent(model, draw(20))


def test_sizes_do_not_depend_on_order_or_repetition():
    X = np.random.default_rng(0).lognormal(size=(3 * TRAINING_ROWS, 5))
    found = find_sizes(X)
    order = np.random.default_rng(1).permutation(len(X))
    assert find_sizes(X[order]) == found
    assert find_sizes(np.repeat(X, 3, axis=0)) == found
    assert find_sizes(np.asfortranarray(X)) == found
    typical = np.median(np.abs(X), axis=1)
    assert typical.min() <= found[0] < found[1] <= typical.max()
    assert X.max(axis=1).min() <= found[2] < found[3] <= X.max()
    assert find_sizes(np.zeros((3, 2))) is None
    assert find_sizes(np.array([[0, -4, 0], [0, 0, 0], [9, 2, 3]])) == (3.0, 4.0, 4.0, 9.0)
    assert find_sizes(np.array([[np.nan, -4.0], [np.nan, np.nan]])) == (4.0, 4.0, 4.0, 4.0)


def test_the_factor_is_what_the_guide_says():
    X = np.tile(np.arange(1.0, 10.0), (30, 1))
    model = MorfClassifier(n_estimators=1, random_state=0).fit(X, np.arange(30) % 2)
    assert model._sizes == (5.0, 5.0, 9.0, 9.0)
    silent(model, X * FACTOR)
    silent(model, X / FACTOR)
    with pytest.warns(DataScaleWarning, match=r"median size of 50, .* from 5 to 5"):
        ask(model, X * 10)
    with pytest.warns(DataScaleWarning, match=r"median size of 0\.5"):
        ask(model, X / 10)


def test_sizes_are_pickled_and_checked():
    X, y = images()
    for make in ESTIMATORS.values():
        model = make().fit(X, y)
        loaded = pickle.loads(pickle.dumps(model))
        assert loaded._sizes == model._sizes
        with pytest.warns(DataScaleWarning):
            ask(loaded, X / 255)
        for damaged in (
            3,
            (1.0,),
            (2.0, 1.0, 2.0, 2.0),
            (0.0, 1.0, 2.0, 2.0),
            (1.0, np.nan, 2.0, 2.0),
            (1.0, 2.0, 3.0, 1.5),
            ("a", "b", "c", "d"),
            [1.0, 2.0, 1.0, 2.0],
        ):
            model._sizes = damaged
            data = pickle.dumps(model)
            with pytest.raises(ValueError, match="damaged model: the sizes of samples"):
                pickle.loads(data)


def test_filters_turn_it_off():
    X, y = images()
    model = MorfClassifier(n_estimators=2, random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DataScaleWarning)
        model.predict(X / 255)
