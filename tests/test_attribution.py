"""Attributions: what each feature of a sample adds to its prediction."""

import hashlib
import pickle

import numpy as np
import oracle_attribution as oracle
import pytest
from common import classifier, digits, fit_digits, fit_friedman, friedman, regressor
from sklearn.exceptions import NotFittedError

from morforest import (
    Atoms,
    Axis,
    Difference,
    Gradient,
    Haar,
    Kernel,
    Mixture,
    MorfBoostingClassifier,
    MorfBoostingRegressor,
    MorfClassifier,
    MorfRegressor,
    MorfTreeClassifier,
    MorfTreeRegressor,
    Pair,
    Patch,
    Raw,
    SeriesCopies,
    SparseOblique,
    Subset,
    Variance,
)

ROWS = slice(0, 25)
OWN = np.array([[1.5] + [0] * 62 + [-0.5], [0] * 20 + [1, 2, 3] + [0] * 41])

DICTIONARIES = {
    "axis": Axis(),
    "sparse": SparseOblique(),
    "own": Atoms(OWN),
    "patch": Patch(1, 4),
    "scattered": Patch(1, 4, contiguous=False),
    "wrap": Patch(2, 6, boundary="wrap"),
    "haar": Haar(1, 3),
    "pair": Pair(1, 3, views=[Raw(), Gradient()]),
    "kernel": Kernel("gabor", 3, 5),
    "dilated": Kernel("sign", 2, 3, dilation="log"),
    "variance": Variance(2, 4, views=[Raw(), Difference()]),
    "gradient": Patch(1, 3, views=[Raw(), Gradient()]),
    "max": Patch(1, 3, pool="max"),
    "round ppv": Patch(2, 4, boundary="wrap", pool="proportion"),
    "some axes": Patch(2, 3, boundary=["wrap", "zero"], pool=["mean", "min"], window=3),
    "pooled haar": Haar(1, 2, pool=["proportion", "max"], views=[Raw(), Difference()]),
    "pooled kernel": Kernel("sign", 2, 3, dilation="log", pool="proportion"),
    "still kernel": Kernel("sign", 2, 3, pool="proportion", window=1),
    "mixture": Mixture([Axis(), Patch(1, 3), Haar(1, 2, pool="max"), Variance(1, 4)]),
    "subset": Subset(Pair(1, 3), 30),
}


def total(found, samples):
    """The baseline and the sum of each sample's values."""
    classes = np.ndim(found.baseline)
    axes = tuple(range(1, found.values.ndim - classes))
    assert len(found.values) == samples
    return found.baseline + found.values.sum(axis=axes)


def flat(values, outputs):
    return values.reshape(len(values), -1, outputs)


@pytest.fixture(scope="module", params=DICTIONARIES)
def model(request):
    return fit_digits(DICTIONARIES[request.param], max_leaf_nodes=25)


def test_attributions_are_those_found_by_hand(model):
    X, _ = digits()
    X = X[ROWS]
    values, baseline = model.attributions(X)
    assert values.shape == (25, 8, 8, 10)
    assert baseline.shape == (10,)
    by_hand, roots = oracle.attributions(model._forest, X.reshape(25, 64))
    assert np.abs(by_hand).max() > 0.05
    np.testing.assert_allclose(flat(values, 10), by_hand / 5, atol=1e-12)
    np.testing.assert_allclose(baseline, roots / 5, atol=1e-12)


def test_features_that_no_atom_uses_get_nothing_at_all(model):
    X, _ = digits()
    values = model.attributions(X[ROWS]).values
    unused = ~oracle.feature_shares(model._forest).any(axis=0)
    assert (values[:, unused.reshape(8, 8)] == 0).all()


def test_attributions_add_up_to_the_probabilities(model):
    X, _ = digits()
    found = model.attributions(X)
    np.testing.assert_allclose(total(found, len(X)), model.predict_proba(X), atol=1e-9)
    # Probabilities add up to one, whatever the sample.
    np.testing.assert_allclose(found.values.sum(axis=-1), 0, atol=1e-9)
    assert found.baseline.sum() == pytest.approx(1)


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "poisson"])
def test_attributions_of_regression_are_in_its_units(criterion):
    X, y = friedman()
    y = 1e6 * np.abs(y)
    model = regressor(criterion=criterion, max_depth=5).fit(X, y, sample_weight=1 + (y > y.mean()))
    values, baseline = found = model.attributions(X)
    assert values.shape == X.shape
    assert isinstance(baseline, float)
    np.testing.assert_allclose(total(found, len(X)), model.predict(X), rtol=1e-12)
    by_hand, roots = oracle.attributions(model._forest, X)
    np.testing.assert_allclose(values, by_hand[:, :, 0] / 5, atol=1e-4)
    assert baseline == pytest.approx(roots[0] / 5)


@pytest.mark.parametrize("estimator", [MorfTreeClassifier, MorfTreeRegressor])
def test_single_trees_have_attributions(estimator):
    X, y = friedman()
    y = y > 14 if estimator is MorfTreeClassifier else y
    model = estimator(random_state=0).fit(X, y)
    said = model.predict_proba(X) if estimator is MorfTreeClassifier else model.predict(X)
    np.testing.assert_allclose(total(model.attributions(X), len(X)), said, atol=1e-9)


def test_a_linear_atom_shares_by_the_size_of_its_weights():
    X = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, -3.0]])
    model = MorfTreeRegressor(Atoms([[1.0, 0.0, -3.0]]), max_features=None).fit(X, [0.0, 8.0])
    values, baseline = model.attributions(X)
    assert baseline == 4.0
    np.testing.assert_array_equal(values, [[-1, 0, -3], [1, 0, 3]])


@pytest.mark.parametrize("classes", [2, 3])
def test_attributions_of_boosted_classes_are_scores(classes):
    X, y = digits()
    model = MorfBoostingClassifier(Haar(1, 3), max_iter=15, random_state=0).fit(X, y % classes)
    values, baseline = found = model.attributions(X[ROWS])
    outputs = 1 if classes == 2 else 3
    assert values.shape == ((25, 8, 8) if classes == 2 else (25, 8, 8, 3))
    np.testing.assert_allclose(total(found, 25), model.decision_function(X[ROWS]), atol=1e-9)
    by_hand, roots = oracle.attributions(model._forest, X[ROWS].reshape(25, 64))
    np.testing.assert_allclose(flat(values, outputs), by_hand, atol=1e-12)
    np.testing.assert_allclose(baseline, np.squeeze(model._baseline + roots), atol=1e-12)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "quantile", "poisson"])
def test_attributions_of_boosted_numbers_are_in_their_units(loss):
    X, y = friedman()
    y = np.round(100 * np.abs(y))
    model = MorfBoostingRegressor(loss=loss, max_iter=20, random_state=0).fit(X, y)
    said = model.predict(X)
    said = np.log(said) if loss == "poisson" else said  # scores are logarithms
    np.testing.assert_allclose(total(model.attributions(X), len(X)), said, rtol=1e-9)


def test_trees_of_one_leaf_attribute_nothing():
    X, _ = friedman()
    model = regressor().fit(X, np.full(len(X), 3.0))
    values, baseline = model.attributions(X)
    assert (values == 0).all()
    assert baseline == 3.0
    one = classifier().fit(X, np.zeros(len(X)))
    values, baseline = one.attributions(X)
    assert values.shape == (*X.shape, 1)
    assert baseline == 1.0


def test_targets_of_any_size_are_attributed():
    X, y = friedman()
    for scale in (1e-280, 1e90):
        model = regressor(max_depth=4).fit(X, y * scale)
        found = model.attributions(X)
        np.testing.assert_allclose(total(found, len(X)), model.predict(X), rtol=1e-9)
        assert np.abs(found.values).max() > 0.1 * scale


@pytest.mark.parametrize("pool", [None, "proportion"])
def test_neither_threads_nor_blocks_of_rows_show(pool):
    X, _ = digits()
    X = np.tile(X, (3, 1, 1))
    model = fit_digits(Patch(1, 3, pool=pool), max_depth=4)
    values = model.attributions(X).values
    model.n_jobs = 2
    np.testing.assert_array_equal(model.attributions(X).values, values)
    for some in (slice(0, 1), slice(7, 300)):
        np.testing.assert_array_equal(model.attributions(X[some]).values, values[some])


def test_the_order_of_training_rows_does_not_show():
    X, y = digits()
    order = np.random.default_rng(0).permutation(len(X))
    one, other = classifier(Haar(1, 3)).fit(X, y), classifier(Haar(1, 3)).fit(X[order], y[order])
    for a, b in zip(one.attributions(X[ROWS]), other.attributions(X[ROWS]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_flat_rows_get_the_shape_of_the_samples():
    X, y = digits()
    shaped = classifier(Patch(1, 3)).fit(X, y)
    rows = classifier(Patch(1, 3), data_shape=(8, 8)).fit(X.reshape(-1, 64), y)
    found = rows.attributions(X[ROWS].reshape(-1, 64)).values
    assert found.shape == (25, 8, 8, 10)
    np.testing.assert_array_equal(found, shaped.attributions(X[ROWS]).values)


def test_weights_warm_starts_and_copies_keep_the_sum():
    X, y = digits()
    weight = 0.3 + np.arange(len(X)) % 3
    model = classifier(Patch(1, 3), warm_start=True, class_weight="balanced").fit(X, y, weight)
    model.set_params(n_estimators=8).fit(X, y, weight)
    np.testing.assert_allclose(
        total(model.attributions(X), len(X)), model.predict_proba(X), atol=1e-9
    )
    rows = X.reshape(-1, 64)
    model = classifier(Patch(1, 9), augment=SeriesCopies()).fit(rows, y)
    np.testing.assert_allclose(
        total(model.attributions(rows), len(rows)), model.predict_proba(rows), atol=1e-9
    )


def test_a_loaded_model_attributes_the_same():
    X, _ = digits()
    model = fit_digits(Haar(1, 2, pool="max"), max_depth=4)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        loaded.attributions(X[ROWS]).values, model.attributions(X[ROWS]).values
    )


@pytest.mark.parametrize(
    "estimator", [MorfClassifier, MorfTreeRegressor, MorfBoostingClassifier, MorfBoostingRegressor]
)
def test_attributions_need_a_fitted_model(estimator):
    with pytest.raises(NotFittedError, match=estimator.__name__):
        estimator().attributions(np.zeros((2, 3)))


def test_samples_that_do_not_fit_are_refused_as_in_predict():
    model = fit_friedman()
    bad = {"has 5 features": np.zeros((3, 5)), "contains infinity": np.full((3, 8), np.inf)}
    for message, X in bad.items():
        for method in (model.predict, model.attributions):
            with pytest.raises(ValueError, match=message):
                method(X)


def test_leaves_that_are_not_there_are_refused():
    forest = fit_friedman()._forest
    weight, baseline = forest.weight.astype(np.uint32), np.zeros(1)
    out, leaf = np.zeros((1, 8, 1)), np.zeros((1, 5), np.int32)
    for number in (-1, 10**6):
        with pytest.raises(ValueError, match="no such leaf"):
            forest._core.attribute(leaf + number, weight, baseline, 40, True, out)
    with pytest.raises(ValueError, match="one entry per node"):
        forest._core.attribute(leaf, weight[:-1], baseline, 40, True, out)
    with pytest.raises(ValueError, match="one entry per output"):
        forest._core.attribute(leaf, weight, np.zeros(2), 40, True, out)
    with pytest.raises(ValueError, match="wrong shape"):
        forest._core.attribute(leaf, weight, baseline, 40, True, out[:, :-1])


FROZEN = {
    "patch": "8ee9c377f15917c2",
    "haar": "081c5c01a2ab959a",
    "round ppv": "2fb4afc93595f5f3",
    "own": "5d6725e00a931d8c",
}


@pytest.mark.parametrize("name", FROZEN)
def test_frozen_attributions_are_found_again(name):
    X, _ = digits()
    found = fit_digits(DICTIONARIES[name], max_leaf_nodes=25).attributions(X[ROWS])
    numbers = np.concatenate([found.values.ravel(), found.baseline])
    whole = np.rint(numbers * 1e9).astype("<i8")
    assert hashlib.sha256(whole.tobytes()).hexdigest()[:16] == FROZEN[name]


def test_regression_of_volumes_has_their_shape():
    X = np.random.default_rng(0).normal(size=(60, 3, 4, 5))
    model = MorfRegressor(Patch(1, 2), n_estimators=4, random_state=0).fit(X, X[:, 1, 1, 1])
    found = model.attributions(X)
    assert found.values.shape == X.shape
    np.testing.assert_allclose(total(found, 60), model.predict(X), atol=1e-9)
    by_hand, _ = oracle.attributions(model._forest, X.reshape(60, -1))
    np.testing.assert_allclose(found.values.reshape(60, -1), by_hand[:, :, 0] / 4, atol=1e-12)
