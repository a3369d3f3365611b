"""Missing values: what every estimator promises of them."""

import itertools
import pickle

import numpy as np
import oracle_attribution
import oracle_gaps
import pytest
from common import GAP_KINDS, assert_same_forest, missing_codes, with_gaps
from golden_cases import whole_numbers
from oracle_columns import has_value
from problems import (
    as_oracle,
    cells_of,
)
from sklearn.base import clone
from sklearn.linear_model import RidgeCV
from test_determinism import assert_same

from morforest import (
    AtomFeatures,
    AtomRidgeClassifier,
    AtomRidgeRegressor,
    Axis,
    Haar,
    ImageCopies,
    Mixture,
    MorfBoostingClassifier,
    MorfBoostingRegressor,
    MorfClassifier,
    MorfRegressor,
    MorfTreeClassifier,
    MorfTreeRegressor,
    Patch,
    SeriesCopies,
    SharedAtoms,
    SparseOblique,
    Subset,
    Variance,
)

NAN = np.nan
pytestmark = [
    pytest.mark.filterwarnings("ignore:The number of unique classes"),
    pytest.mark.filterwarnings("ignore:X spans many orders of magnitude"),
    pytest.mark.filterwarnings("ignore:.*in the bags of all trees"),
]

# --- what does not matter --------------------------------------------------------------------


def series(n=120, kind="mixed", rate=0.4):
    """Series of two channels with a bump in one of the classes, of which parts are missing."""
    X = whole_numbers(n * 40, 50).reshape(n, 2, 20) / 4
    y = whole_numbers(n, 3, 1)
    for i in np.flatnonzero(y):
        X[i, 0, 4 * y[i] : 4 * y[i] + 5] += 8
    return with_gaps(X, kind, rate), y


POOLED = Haar(1, (1, 4), axes=(1,), pool=["max", "min", "mean", "proportion"])
MIXED = Mixture([Patch((1, 1), (2, 6)), POOLED, Variance(2, (2, 5)), Axis()], [2, 2, 1, 1])
FORESTS = {
    "default": MorfClassifier(),
    "axis": MorfClassifier(Axis()),
    "sparse": MorfRegressor(SparseOblique()),
    "mixed": MorfClassifier(MIXED, oob_score=True, n_estimators=12),
    "best first": MorfClassifier(MIXED, max_leaf_nodes=7),
    "honest": MorfClassifier(Patch(), honest=True),
    "honest, not drawn": MorfRegressor(Patch(), honest="oob"),
    "by median": MorfRegressor(Patch(), criterion="absolute_error"),
    "tree": MorfTreeClassifier(MIXED),
    "regression tree": MorfTreeRegressor(MIXED),
    "subset": MorfClassifier(Subset(MIXED, 40)),
    "columns": MorfClassifier(SharedAtoms(MIXED, 60, combine=None)),
    "combined": MorfClassifier(SharedAtoms(MIXED, 60)),
    "boosted": MorfBoostingClassifier(MIXED, max_iter=5),
    "boosted numbers": MorfBoostingRegressor(Patch(), max_iter=5),
    "boosted subset": MorfBoostingClassifier(Subset(MIXED, 40), max_iter=7),
    "boosted columns": MorfBoostingRegressor(SharedAtoms(MIXED, 60), max_iter=5),
}


def estimator(name, **parameters):
    model = clone(FORESTS[name]).set_params(random_state=0, channel_axis=1)
    if "n_estimators" in model.get_params() and model.n_estimators > 12:
        model.set_params(n_estimators=5)
    return model.set_params(**parameters)


def answers(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


@pytest.mark.parametrize("name", FORESTS)
def test_rows_are_predicted_alone(name):
    X, y = series()
    complete = series(kind="random", rate=0)[0]
    for train in (X, complete, np.rint(complete)):
        model = estimator(name).fit(train, y)
        for test in (X, complete, np.rint(complete)):
            batch = np.concatenate([test, X])
            together = answers(model, batch)
            np.testing.assert_array_equal(together[: len(test)], answers(model, test))
            alone = [answers(model, batch[i : i + 1]) for i in range(0, len(batch), 9)]
            np.testing.assert_array_equal(together[::9], np.concatenate(alone))


@pytest.mark.parametrize("name", FORESTS)
def test_neither_order_nor_jobs_matter(name):
    X, y = series()
    model = estimator(name).fit(X, y)
    order = np.argsort(whole_numbers(len(X), 2**30, 3), kind="stable")
    other = estimator(name).fit(X[order], y[order])
    assert_same(model, other, X)
    many = np.concatenate([X] * 20)
    for n_jobs in (2, 3) if "n_jobs" in model.get_params() else ():
        assert_same(model, estimator(name, n_jobs=n_jobs).fit(X, y), many)
    if hasattr(model, "oob_decision_function_"):
        seen = ~np.isnan(X[order]).all(axis=(1, 2))  # others are equal, and bags take either
        found = model.oob_decision_function_[order][seen]
        np.testing.assert_array_equal(found, other.oob_decision_function_[seen])


@pytest.mark.parametrize("name", [n for n in FORESTS if "columns" not in n and n != "combined"])
def test_a_weight_of_two_is_the_row_twice(name):
    X, y = series()
    twice = np.arange(len(X)) % 3 == 0
    weighted = estimator(name).fit(X, y, sample_weight=1.0 + twice)
    repeated = estimator(name).fit(np.concatenate([X, X[twice]]), np.concatenate([y, y[twice]]))
    assert_same(weighted, repeated, X)


@pytest.mark.parametrize("name", FORESTS)
def test_rows_of_weight_zero_are_not_there(name):
    X, y = series()
    X[::2] = series(kind="random", rate=0)[0][::2]
    kept = ~np.isnan(X).any(axis=(1, 2))
    assert 40 < kept.sum() < 80
    model = estimator(name).fit(X, y, sample_weight=kept * 1.0)
    assert_same(model, estimator(name).fit(X[kept], y[kept]), X)
    assert not missing_codes(model._forest).any()


@pytest.mark.parametrize("name", FORESTS)
def test_single_and_double_precision_are_the_same(name):
    X, y = series()
    model = estimator(name).fit(X, y)
    single = X.astype(np.float32)
    np.testing.assert_array_equal(single, X)  # eighths
    assert_same(model, estimator(name).fit(single, y), X, single)


@pytest.mark.parametrize("name", FORESTS)
def test_copies_predict_alike(name):
    X, y = series()
    model = estimator(name).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert_same_forest(model, again)
    np.testing.assert_array_equal(missing_codes(model._forest), missing_codes(again._forest))
    np.testing.assert_array_equal(answers(model, X), answers(again, X))
    np.testing.assert_array_equal(model.apply(X), again.apply(X))


@pytest.mark.parametrize("name", FORESTS)
def test_nan_of_any_sign_and_flat_rows_are_the_same(name):
    X, y = series()
    model = estimator(name).fit(X, y)
    other = np.where(np.isnan(X), -NAN, X)
    flat = estimator(name, data_shape=(2, 20)).fit(other.reshape(len(X), -1), y)
    assert_same(model, flat, X, X.reshape(len(X), -1))


def test_codes_are_kept_only_where_something_was_missing():
    X, y = series()
    assert set(missing_codes(estimator("mixed").fit(X, y)._forest)) == {0, 1, 2, 3, 4}
    complete = series(kind="random", rate=0)[0]
    model = estimator("mixed").fit(complete, y)
    assert not missing_codes(model._forest).any()
    assert not len(getattr(model._forest.atoms, "missing", ()))
    columns = estimator("columns").fit(X, y)
    assert not missing_codes(columns._forest).any()


# --- data as they come -----------------------------------------------------------------------


@pytest.mark.parametrize("name", FORESTS)
def test_missing_samples_and_columns_do_no_harm(name):
    X, y = series()
    X[7] = NAN
    X[:, 1, 3] = NAN
    model = estimator(name).fit(X, y)
    assert np.isfinite(answers(model, X)).all()
    assert np.isfinite(model.feature_importances_).all()
    new = np.full((2, 2, 20), NAN)
    new[1, 0, 5] = 3.0
    assert np.isfinite(answers(model, new)).all()
    # With nothing at all, there is nothing to split.
    found = answers(estimator(name).fit(np.full((30, 2, 20), NAN), y[:30]), X)
    np.testing.assert_array_equal(found, np.broadcast_to(found[:1], found.shape))


@pytest.mark.parametrize("name", FORESTS)
def test_what_is_missing_tells(name):
    # A class of which a value is missing, and nothing else.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2, 20)), np.arange(200) % 2
    X[y == 1, :, 12:] = NAN
    model = estimator(name).fit(X, y)
    if "column" not in name and name != "combined":  # which only see the mean there
        found = answers(model, X)
        found = found[:, 1] if found.ndim > 1 else found
        assert found[y == 1].mean() > found[y == 0].mean() + 0.15


def test_other_inputs_with_gaps_are_accepted():
    import pandas as pd

    rng = np.random.default_rng(0)
    X = with_gaps(rng.integers(0, 9, (60, 6)) / 2, "random", 0.3)
    y = np.arange(60) % 2
    expected = MorfClassifier(n_estimators=5, random_state=0).fit(X, y).predict_proba(X)
    given = pd.DataFrame(X, columns=list("abcdef")), X.tolist(), X.astype(object), X.astype("f2")
    for one in given:
        model = MorfClassifier(n_estimators=5, random_state=0).fit(one, y)
        np.testing.assert_array_equal(model.predict_proba(one), expected)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("name", ["default", "columns", "boosted"])
def test_infinity_is_refused_beside_gaps(name, value):
    X, y = series()
    model = estimator(name).fit(X, y)
    X[3, 0, 0] = value
    for call in (lambda: model.predict(X), lambda: estimator(name).fit(X, y)):
        with pytest.raises(ValueError, match="infinity"):
            call()


@pytest.mark.parametrize("dictionary", ["auto", "axis", "sporf", "patch", "series", None])
def test_names_of_dictionaries_take_gaps(dictionary):
    X, y = series()
    for model in (
        MorfClassifier(dictionary, n_estimators=5),
        MorfBoostingClassifier(dictionary, max_iter=5),
    ):
        model.set_params(channel_axis=1, random_state=0)
        assert model.fit(X, y).score(X, y) > 0.5


def test_images_take_gaps_and_copies():
    X = with_gaps(whole_numbers(60 * 64, 99).reshape(60, 8, 8), "mixed", 0.4)
    y = np.arange(60) % 2
    for model in (
        MorfClassifier("image", n_estimators=3, random_state=0),
        MorfClassifier(Patch(), augment=ImageCopies(), n_estimators=3, random_state=0),
        MorfBoostingClassifier(Patch(), augment=ImageCopies(), max_iter=3, random_state=0),
    ):
        assert_same(model.fit(X, y), clone(model).set_params(n_jobs=2).fit(X, y), X)


def test_copies_are_made_of_filled_samples():
    X, y = series(kind="blocks")
    dictionary = Patch((1, 2), (1, 6))
    model = MorfClassifier(
        dictionary, augment=SeriesCopies(), channel_axis=1, n_estimators=3, random_state=0
    )
    X[5, :, 15:] = NAN
    assert np.isfinite(model.fit(X, y).predict_proba(X)).all()
    copies = SeriesCopies(shift=0, stretch=0, warp=0, amplitude=0)
    copy = copies.sample(np.array([[1.0, NAN, 3.0, NAN], [NAN, NAN, NAN, NAN]]), random_state=0)
    np.testing.assert_array_equal(copy, [[1, 2, 3, 3], [0, 0, 0, 0]])


# --- all that can be asked -------------------------------------------------------------------


@pytest.mark.parametrize("name", FORESTS)
def test_attributions_add_up_and_importances_are_shares(name):
    X, y = series()
    model = estimator(name).fit(X, y)
    importances = model.feature_importances_
    assert importances.shape == (2, 20)
    assert np.isfinite(importances).all()
    assert importances.sum() == pytest.approx(1)
    new, _ = series(60, "random", 0.6)
    if not name.startswith("honest"):  # whose leaves the nodes above do not know
        values, baseline = model.attributions(new)
        total = baseline + values.sum(axis=(1, 2))
        if "boosted" not in name:
            np.testing.assert_allclose(total, answers(model, new), atol=1e-9)
        assert np.isfinite(total).all()
    begin = model._forest.tree_begin
    path, offset = model.decision_path(new)
    leaves = model.apply(new)
    assert path[np.arange(len(new)), offset[0] + leaves[:, 0]].all()
    assert offset[-1] == begin[-1]


def test_attributions_equal_the_oracle():
    X, y = series()
    model = MorfRegressor(MIXED, n_estimators=3, channel_axis=1, random_state=0).fit(X, y)
    values, baseline = model.attributions(X)
    expected, roots = oracle_attribution.attributions(model._forest, X.reshape(len(X), -1))
    np.testing.assert_allclose(values.reshape(len(X), -1), expected[:, :, 0] / 3, atol=1e-9)
    assert baseline == pytest.approx(roots[0] / 3)


@pytest.mark.parametrize("honest", [False, "oob"])
def test_weights_of_samples_are_predictions(honest):
    X, y = series()
    model = MorfRegressor(
        MIXED, keep_samples=True, n_estimators=8, channel_axis=1, random_state=0, honest=honest
    ).fit(X, y)
    new, _ = series(40, "random", 0.6)
    weights = model.weights(new)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    np.testing.assert_allclose(weights @ y, model.predict(new), atol=1e-9)
    q = model.predict_quantiles(new, [0.1, 0.9])
    assert (q[:, 0] <= q[:, 1]).all()
    assert model.proximity(new, new).diagonal().min() == 1
    if not honest:
        assert np.isfinite(model.predict_std(new)).all()
        low, high = np.moveaxis(np.asarray(model.predict_interval(new, 0.8)), -1, 0)
        assert (low <= high).all()


def test_boosted_models_calibrate_stop_and_go_on():
    X, y = series(200)
    model = MorfBoostingRegressor(
        MIXED, max_iter=6, calibration_folds=3, channel_axis=1, random_state=0
    ).fit(X, y)
    assert np.isfinite(model.predict_interval(X, 0.8)).all()
    stopping = MorfBoostingClassifier(
        MIXED, max_iter=12, early_stopping=True, channel_axis=1, random_state=0
    ).fit(X, y)
    assert stopping.score(X, y) > 0.5
    whole = MorfBoostingClassifier(MIXED, max_iter=6, channel_axis=1, random_state=0)
    parts = clone(whole).set_params(max_iter=3, warm_start=True).fit(X, y)
    assert_same(whole.fit(X, y), parts.set_params(max_iter=6).fit(X, y), X)


def test_forests_go_on_after_a_warm_start():
    X, y = series()
    whole = estimator("mixed", n_estimators=10)
    parts = clone(whole).set_params(n_estimators=4, warm_start=True).fit(X, y)
    assert_same(whole.fit(X, y), parts.set_params(n_estimators=10).fit(X, y), X)


# --- atoms as features -----------------------------------------------------------------------


@pytest.mark.parametrize("dictionary", [Axis(), SparseOblique(2.0), Patch(), MIXED], ids=str)
@pytest.mark.parametrize("kind", GAP_KINDS)
def test_atoms_have_no_value_where_something_is_absent(dictionary, kind):
    complete = series(kind="random", rate=0)[0]
    X = with_gaps(complete, kind, 0.5)
    features = AtomFeatures(dictionary, 60, channel_axis=1, random_state=0, dtype="float64")
    features.fit(complete)
    # The atoms as the oracle draws them: as one node would, with biases from the given rows.
    found, sources = as_oracle(dictionary, (2, 20), 0)
    ordered = oracle_gaps.ordered_axes(found, (2, 20), 0)
    _, marks = cells_of(X, features._format, sources, ordered)
    filled, _ = oracle_gaps.fill(X, ordered)
    values = features.transform(X)
    of_filled = features.transform(filled)
    linear = np.asarray(features._atoms.operations()) == 0
    matrix = features._atoms.matrix()[linear]
    touched = np.stack([oracle_gaps.touches(row, marks, 2) for row in matrix.toarray()], axis=1)
    np.testing.assert_array_equal(np.isnan(values[:, linear]), touched)
    seen = ~np.isnan(values)
    np.testing.assert_allclose(values[:, linear][~touched], of_filled[:, linear][~touched])
    rows = ~(marks == 2).any(axis=1)  # gaps alone are filled in
    np.testing.assert_allclose(values[rows], of_filled[rows])
    assert seen[rows].all()
    again = clone(features).set_params(n_jobs=2).fit(complete)
    np.testing.assert_array_equal(again.transform(X), values)


def test_atoms_are_drawn_from_samples_with_gaps():
    X, _ = series()
    features = AtomFeatures(MIXED, 80, channel_axis=1, random_state=0)
    order = np.random.default_rng(0).permutation(len(X))
    values = features.fit_transform(X)
    np.testing.assert_array_equal(clone(features).fit(X[order]).transform(X), values)
    assert np.isnan(features.transform(np.full((1, 2, 20), NAN))).all()
    again = pickle.loads(pickle.dumps(features))
    np.testing.assert_array_equal(again.transform(X), values)


@pytest.mark.parametrize("dictionary", [Axis(), Patch(), MIXED], ids=str)
def test_ridges_take_the_mean_of_what_has_no_value(dictionary):
    X, y = series(150)
    model = AtomRidgeRegressor(dictionary, 100, channel_axis=1, random_state=0).fit(X, y)
    features = AtomFeatures(dictionary, 100, channel_axis=1, random_state=0)
    values = features.fit_transform(X).astype(float)
    some = ~np.isnan(values).all(axis=0)
    mean, deviation = np.zeros((2, values.shape[1]))
    mean[some], deviation[some] = np.nanmean(values[:, some], 0), np.nanstd(values[:, some], 0)
    scaled = np.nan_to_num((values - mean) / np.where(deviation, deviation, np.inf))
    ridge = RidgeCV([model.alpha_]).fit(np.clip(scaled, -8, 8), y)
    np.testing.assert_allclose(model.predict(X), ridge.predict(np.clip(scaled, -8, 8)), atol=1e-4)
    nothing = model.predict(np.full((1, 2, 20), NAN))
    np.testing.assert_allclose(nothing, model.intercept_, atol=1e-9)


def test_ridges_of_classes_take_gaps():
    X, y = series(150)
    model = AtomRidgeClassifier(n_atoms=300, channel_axis=1, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.6
    X[:, :, :] = np.where(np.arange(150)[:, None, None] % 9 == 0, NAN, X)
    assert np.isfinite(model.predict_proba(X)).all()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_columns_of_a_forest_hold_the_mean_where_they_have_no_value():
    X, y = series()
    model = estimator("columns", dictionary=SharedAtoms(Axis(), 40, combine=None)).fit(X, y)
    columns = model._forest.columns
    found = columns.of(X.reshape(len(X), -1))
    missing = np.isnan(X.reshape(len(X), -1))[:, columns.atoms.cell]
    assert not found[missing].any()
    for number, gaps in enumerate(missing.T):
        atom = np.eye(40, dtype=int)[int(columns.atoms.cell[number])]
        marks = 2 * np.isnan(X.reshape(len(X), -1))
        np.testing.assert_array_equal(has_value(atom, marks, marks), ~gaps)
        if (~gaps).sum() > 1 and columns.deviation[number] > 0:
            assert abs(found[~gaps, number].mean()) < 2


def test_every_kind_of_estimator_is_here():
    kinds = {type(model).__name__ for model in FORESTS.values()}
    every = itertools.product(["Boosting", "Tree", ""], ["Classifier", "Regressor"])
    assert kinds == {f"Morf{kind}{task}" for kind, task in every}


def test_splits_say_where_missing_values_go():
    X, y = series(kind="mixed")
    model = estimator("mixed").fit(X, y)
    said = np.concatenate([tree.missing for tree in model.splits_])
    assert set(said.tolist()) <= {"gap left", "gap right", "absent left", "absent right"}
    side = model._forest.side[model._forest.is_split()]
    assert [word.endswith("left") for word in said] == np.isin(side, (1, 3)).tolist()
    complete = estimator("mixed").fit(np.nan_to_num(X), y)
    assert set(complete.splits_[0].missing.tolist()) == {"none"}


def test_leaves_are_no_polytopes_where_values_are_missing():
    X, y = (
        with_gaps(np.random.default_rng(0).normal(size=(60, 4)), "random", 0.3),
        np.arange(60) % 2,
    )
    model = MorfClassifier(Axis(), n_estimators=2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="missing values were seen in training"):
        model.polytope(0, model.apply(X)[0, 0])
