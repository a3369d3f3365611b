"""Atoms that a whole forest shares: columns of standardised atoms, and trees over these."""

import copy
import dataclasses
import pickle

import joblib
import numpy as np
import pytest
from common import MINIROCKET, assert_same_forest
from golden_cases import digits, images, table, whole_numbers
from hypothesis import given
from oracle_columns import moments
from problems import CLASSIFICATION, REGRESSION, Problem, assert_same_trees, problems
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from test_boosting import Problem as Rounds
from test_boosting import assert_same_rounds
from test_oracle import examples
from test_pool import nonlinear_dictionaries

import morforest._columns
import morforest.dictionary._presets
from morforest import (
    AtomFeatures,
    Atoms,
    Axis,
    Difference,
    Haar,
    ImageCopies,
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
    SharedAtoms,
    SparseOblique,
    Square,
    Subset,
    Variance,
)
from morforest._atoms import TYPES, AtomList
from morforest._importance import impurity_decrease, split_shares

DICTIONARIES = {
    "pooled": Haar(1, 2, pool=["proportion", "max", "mean"]),
    "patches": Patch(1, 4),
    "sparse": SparseOblique(),
    "fractions": Atoms(np.linspace(-1, 1, 64 * 5).reshape(5, 64)),
    "mixture": Mixture(
        [
            Patch(1, 3, views=[Raw(), Difference(), Square()]),
            Haar(1, 2, pool=["proportion", "min"]),
            Variance(1, 4),
            Pair(1, 3),
            Axis(),
        ],
        weights=[3, 3, 2, 2, 1],
    ),
}


def shared(name="mixture", n_atoms=60, combine=None):
    return SharedAtoms(DICTIONARIES[name], n_atoms, combine=combine)


def fitted(dictionary=None, X=None, y=None, sample_weight=None, **parameters):
    if X is None:
        X, y = digits(200)
    model = MorfClassifier(
        shared() if dictionary is None else dictionary,
        **{"n_estimators": 8, "bootstrap": True, "random_state": 0} | parameters,
    )
    return model.fit(X, y, sample_weight=sample_weight)


def assert_same(a, b):
    """Equal forests of equal columns."""
    assert_same_forest(a, b)
    assert a._forest.columns.atoms == b._forest.columns.atoms


# --- what is computed ------------------------------------------------------------------------


def all_shared(rng, shape):
    """Dictionaries of nonlinear atoms, all of them shared by the forest."""
    return nonlinear_dictionaries(rng, shape).map(
        lambda found: SharedAtoms(getattr(found, "dictionary", found), 12, combine=None)
    )


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@examples(100)
@given(problems(CLASSIFICATION + REGRESSION, of=all_shared, exact=True))
def test_forests_over_columns_equal_the_oracle(problem):
    assert_same_trees(problem)


@pytest.mark.parametrize("combine", [None, "ridge"])
@pytest.mark.parametrize("name", DICTIONARIES)
@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_forests_of_images_equal_the_oracle(name, criterion, combine):
    X, y = digits(40)
    parameters = {
        "criterion": criterion,
        "splitter": "exact",
        "max_features": 5,
        "n_estimators": 2,
        "bootstrap": True,
        "random_state": 1,
    }
    weights = whole_numbers(40, 3, 2).astype(float)
    assert_same_trees(Problem(X, y.astype(float), shared(name, 20, combine), parameters, weights))


@pytest.mark.parametrize("name", ["pooled", "mixture"])
def test_rounds_over_columns_equal_the_oracle(name):
    X, y = digits(40)
    parameters = {
        "max_iter": 7,
        "max_depth": 2,
        "max_features": 4,
        "subsample": 0.7,
        "splitter": "exact",
        "min_samples_leaf": 2,
        "l2_regularization": 0.5,
        "learning_rate": 0.3,
        "random_state": 3,
    }
    assert_same_rounds(Rounds(X, y > 4, shared(name, 15), parameters, None))


def test_columns_are_standardised_values_of_atoms():
    X, _ = digits(200)
    forest = fitted()._forest
    columns = forest.columns.of(X.reshape(200, -1))
    assert columns.dtype == np.int16
    assert forest.shape == (60,) == columns.shape[1:]
    varying = forest.columns.deviation > 0
    assert varying.sum() > 40
    uncut = varying & (np.abs(columns).max(axis=0) < 8191)
    assert uncut.sum() > 40
    np.testing.assert_allclose(columns[:, uncut].mean(axis=0), 0, atol=1)
    np.testing.assert_allclose(columns[:, uncut].std(axis=0), 1024, rtol=1e-3)
    assert not columns[:, ~varying].any()
    far = forest.columns.of(np.full((1, 64), 2**40))
    assert np.abs(far).max() == 8191


def test_moments_are_those_of_numpy_and_exact():
    rng = np.random.default_rng(0)
    values = np.stack(
        [
            rng.normal(size=500),
            rng.normal(size=500) * 1e-100,
            1e9 + rng.normal(size=500),
            rng.integers(0, 2, 500) * 2.0**60,
            np.full(500, 0.1),
        ],
        axis=1,
    )
    mean, deviation = morforest._columns.moments(values)
    np.testing.assert_allclose(mean, values.mean(axis=0), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(deviation[:-1], values.std(axis=0)[:-1], rtol=1e-5)
    assert deviation[-1] == 0
    again = morforest._columns.moments(values[rng.permutation(500)])
    np.testing.assert_array_equal(again, (mean, deviation))
    for k in range(5):
        assert moments(values[:, k].tolist()) == (mean[k], deviation[k])


def test_finite_dictionaries_give_each_atom_once():
    X, y = digits(200)
    columns = fitted(SharedAtoms(Axis()))._forest.columns
    assert sorted(columns.atoms.cell) == list(range(64))
    whole = fitted(SharedAtoms(Axis(), 64), max_features=None, bootstrap=False)
    plain = fitted(Axis(), X, y, max_features=None, bootstrap=False)
    assert (whole.predict(X) == plain.predict(X)).mean() > 0.99


def test_numbers_of_atoms_have_defaults():
    pooled = Patch(1, 4, pool="max")
    assert fitted(SharedAtoms(pooled, combine=None), n_estimators=1)._forest.columns.size == 3000
    X, y = digits(200)
    assert_same_forest(fitted(Subset(pooled)), fitted(Subset(pooled, 300), X, y))


# --- what does not matter --------------------------------------------------------------------


@pytest.mark.parametrize("name", DICTIONARIES)
def test_jobs_order_and_batches_do_not_matter(name, monkeypatch):
    X, y = digits(200)
    order = np.random.default_rng(0).permutation(len(X))
    model = fitted(shared(name), oob_score=True, n_estimators=20)
    expected = model.predict_proba(X)
    assert_same(model, fitted(shared(name), X[order], y[order], n_jobs=3, n_estimators=20))
    parts = [model.predict_proba(X[i : i + 7]) for i in range(0, 200, 7)]
    assert np.concatenate(parts).tobytes() == expected.tobytes()
    # Few values at a time: many blocks of rows, and of columns.
    for limit in ("HELD_VALUES", "BLOCK_VALUES"):
        monkeypatch.setattr(morforest._columns, limit, 900)
    monkeypatch.setattr(morforest._model, "COLUMN_VALUES", 2000)
    small = fitted(shared(name), n_jobs=2, oob_score=True, n_estimators=20)
    assert_same(model, small)
    assert small.predict_proba(X).tobytes() == expected.tobytes()
    np.testing.assert_array_equal(small.oob_decision_function_, model.oob_decision_function_)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_the_backend_does_not_matter(backend):
    X, y = digits(200)
    expected = fitted(augment=ImageCopies(copies=1))
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert_same(expected, fitted(None, X, y, augment=ImageCopies(copies=1)))


def test_the_type_of_whole_numbers_does_not_matter():
    X, y = digits(200)
    for dtype in (np.float32, np.int64):
        other = fitted(None, X.astype(dtype), y)
        assert_same(fitted(), other)
        assert other.predict_proba(X).tobytes() == fitted().predict_proba(X).tobytes()


def test_rows_of_weight_zero_are_not_there_and_others_weigh_nothing_in_columns():
    X, y = digits(200)
    weights = whole_numbers(200, 2, 7).astype(float)
    kept = weights > 0
    model = fitted(None, X, y, weights)
    assert_same(model, fitted(None, X[kept], y[kept]))
    heavier = fitted(None, X[kept], y[kept], whole_numbers(int(kept.sum()), 5, 3) + 1.0)
    np.testing.assert_array_equal(model._forest.columns.mean, heavier._forest.columns.mean)


def test_the_order_of_rows_with_equal_columns_does_not_matter_to_copies():
    # Rows that differ where no atom looks have copies that differ where they do.
    X = np.zeros((40, 4, 4))
    X[:, 0, 0] = np.arange(40)
    X[:, 2, 2] = np.arange(40) % 2
    y = np.arange(40) % 4 > 1
    looks = np.zeros((1, 16))
    looks[0, 10] = 1
    dictionary = SharedAtoms(Atoms(looks))
    model = fitted(dictionary, X, y, augment=ImageCopies())
    assert_same(model, fitted(dictionary, X[::-1], y[::-1], augment=ImageCopies()))


# --- all that estimators do ------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [
        MorfClassifier,
        MorfRegressor,
        MorfTreeClassifier,
        MorfTreeRegressor,
        MorfBoostingClassifier,
        MorfBoostingRegressor,
    ],
)
def test_every_estimator_takes_them(estimator):
    X, y = digits(200)
    model = estimator(shared(), random_state=0)
    for name, value in (("n_estimators", 8), ("max_iter", 60)):
        if name in model.get_params():
            model.set_params(**{name: value})
    model.fit(X, y)
    assert model.score(X, y) > 0.7
    again = pickle.loads(pickle.dumps(model))
    assert_same(model, again)
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    np.testing.assert_array_equal(model.predict(X), clone(model).fit(X, y).predict(X))
    indicator, begin = model.decision_path(X)
    leaves = model.apply(X)
    assert indicator[np.arange(200), begin[0] + leaves[:, 0]].all()
    assert model.data_shape_ == (8, 8)
    assert model.dictionary_ == shared()
    for shares in (model.feature_importances_, model.split_shares_):
        assert shares.shape == (8, 8)
    if hasattr(model, "staged_predict"):
        stages = list(model.staged_predict(X))
        np.testing.assert_allclose(stages[-1], model.predict(X), rtol=1e-12)


def test_rounds_share_their_columns_with_copies_early_stopping_and_threads():
    X, y = digits(300)
    model = MorfBoostingClassifier(
        shared("pooled"),
        max_iter=40,
        augment=ImageCopies(rotation=2),
        early_stopping=True,
        n_iter_no_change=5,
        random_state=0,
    ).fit(X, y)
    assert model.score(X, y) > 0.8
    assert len(model.validation_score_) >= model.n_iter_
    assert model._forest.columns.size == 60
    assert_same(model, clone(model).set_params(n_jobs=2).fit(X[::-1], y[::-1]))


@pytest.mark.parametrize("augment", [None, ImageCopies(copies=1)])
def test_warm_starts_go_on_as_if_they_had_not_stopped(augment):
    X, y = digits(200)
    for whole, count in (
        (MorfClassifier(shared(), augment=augment, random_state=0), "n_estimators"),
        (MorfBoostingClassifier(shared(), random_state=0), "max_iter"),
    ):
        whole.set_params(**{count: 13})
        parts = clone(whole).set_params(**{count: 7, "warm_start": True}).fit(X, y)
        columns = parts._forest.columns
        parts.set_params(**{count: 13}).fit(X, y)
        assert parts._forest.columns is columns
        assert_same(whole.fit(X, y), parts)


@pytest.mark.parametrize("model", [MorfClassifier(), MorfBoostingClassifier()], ids=str)
def test_warm_starts_keep_their_dictionary_and_kind_of_data(model):
    X, y = digits(200)
    count = "max_iter" if hasattr(model, "max_iter") else "n_estimators"
    model = clone(model).set_params(**{count: 2, "warm_start": True, "dictionary": shared()})
    model.fit(X, y).set_params(**{count: 4})
    for other in (shared(n_atoms=61), shared("pooled"), Subset(DICTIONARIES["mixture"], 60)):
        with pytest.raises(ValueError, match="warm_start needs the dictionary of the first fit"):
            clone_fitted(model).set_params(dictionary=other).fit(X, y)
    with pytest.raises(ValueError, match="warm_start needs data like those"):
        clone_fitted(model).fit(X / 7, y)
    with pytest.raises(ValueError, match="warm_start needs the samples' shape"):
        clone_fitted(model).fit(X.reshape(-1, 64), y)
    per_tree = clone_fitted(model).set_params(warm_start=False, dictionary=Subset(Patch(), 60))
    per_tree.fit(X, y).set_params(warm_start=True, **{count: 5}, dictionary=shared("patches"))
    with pytest.raises(ValueError, match="warm_start needs the dictionary of the first fit"):
        per_tree.fit(X, y)


def clone_fitted(model):
    return copy.deepcopy(model)


def test_auto_tries_them(monkeypatch):
    X, y = digits(200)
    monkeypatch.setattr(morforest.dictionary._presets, "_image", lambda shape: shared("patches"))
    model = fitted("auto", X, y)
    assert model.dictionary_scores_["image"] > 0.5
    assert (model._forest.columns is None) == (model.dictionary_ != shared("patches"))


def test_parameters_are_searched_by_name():
    X, y = digits(120)
    search = GridSearchCV(
        MorfRegressor(SharedAtoms(Patch()), n_estimators=3, random_state=0),
        {"dictionary__n_atoms": [30, 300], "dictionary__dictionary__max_size": [2, 3]},
        cv=2,
    ).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert len(set(scores)) == 4


# --- in the user's terms ---------------------------------------------------------------------

SERIES = {
    "patches": Patch(1, 4),
    "signed": Mixture([Haar(1, 2), Pair(1, 3), SparseOblique()]),
    "channels": Pair(1, 3, views=[Raw(), Difference(), Square()]),
    "pooled": Haar(1, 2, pool=["max", "proportion"]),
    "wrapped": Patch(1, 4, boundary="wrap", pool=["max", "mean"]),
    "kernels": Kernel(
        MINIROCKET, dilation="log", pool=["proportion", "max"], views=[Raw(), Difference()]
    ),
    "variance": Mixture([Variance(1, 4, views=[Raw(), Difference()]), Patch(1, 2)]),
}


@pytest.mark.parametrize("name", SERIES)
def test_importances_are_those_of_nodes_with_the_same_atoms(name):
    X, y = digits(200)
    if name == "kernels":
        X = X.reshape(-1, 64)
    model = fitted(SharedAtoms(SERIES[name], 40, combine=None), X, y)
    forest, columns = model._forest, model._forest.columns
    column, _ = forest.columns_of_nodes()
    # The same trees, each split with the atom of its column, each leaf with none.
    none = columns.atoms[:1]
    none.count, none.cell, none.weight = none.count * 0, none.cell[:0], none.weight[:0]
    if not none.linear:
        none.operation, none.bias, none.window = (
            getattr(none, name) * 0 for name in ("operation", "bias", "window")
        )
    atoms = AtomList.concatenate(
        [
            columns.atoms[c : c + 1] if s else none
            for c, s in zip(column, forest.is_split(), strict=True)
        ]
    )
    plain = dataclasses.replace(forest, atoms=atoms, cell_format=columns.cell_format, columns=None)
    np.testing.assert_allclose(model.split_shares_, split_shares(plain), rtol=1e-12)
    np.testing.assert_allclose(
        model.feature_importances_, impurity_decrease(plain), rtol=1e-9, atol=1e-15
    )
    assert (forest.matrix() != plain.matrix()).nnz == 0


@pytest.mark.parametrize("scale", [1, 37.5])
def test_combinations_are_in_the_units_of_the_data(scale):
    rng = np.random.default_rng(0)
    X = scale * (5 + rng.normal(size=(300, 6, 10)))
    y = X[:, 2, 3:6].sum(axis=1) > X[:, 3, 3:6].sum(axis=1)
    dictionary = SharedAtoms(Patch(max_size=4), 200, combine="ridge")
    model = MorfClassifier(dictionary, n_estimators=9, random_state=0)
    forest = model.fit(X, y)._forest
    several = np.flatnonzero(forest.atoms.count > 1)
    assert 30 < len(several) < forest.is_split().sum()
    atoms, thresholds, left = forest.matrix(), forest.thresholds(), forest.children()
    paths, values = model.decision_path(X)[0].tocsc(), (atoms @ X.reshape(300, -1).T).T
    for node in several:
        rows = paths[:, [node]].indices
        goes_left = paths[:, [left[node]]].toarray()[rows, 0] == 1
        above = (values[rows, node] - thresholds[node]) * np.where(goes_left, 1, -1)
        assert (above < 1e-2 * values[:, node].std()).all()  # columns are rounded
        assert (above < 0).mean() > 0.95
    used = (abs(atoms) > 0).sum(axis=0) / forest.is_split().sum()
    np.testing.assert_allclose(model.split_shares_.ravel(), np.asarray(used).ravel(), rtol=1e-12)


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.parametrize("scale", [1, 0.37])
def test_thresholds_are_in_the_units_of_the_data(name, scale):
    X, y = digits(200)
    X = X.reshape(-1, 64) * scale
    dictionary = SERIES[name]
    forest = fitted(SharedAtoms(dictionary, 40, combine=None), X, y)._forest
    features = AtomFeatures(dictionary, 40, random_state=0).fit(X)
    columns = forest.columns
    features._atoms = columns.atoms
    features._core = features._build()
    values = features.transform(X).astype(float)
    column, _ = forest.columns_of_nodes()
    q = columns.of(X)
    for node in np.flatnonzero(forest.is_split())[:200]:
        c = column[node]
        left = 2 * q[:, c].astype(int) <= forest.threshold[node]
        step = np.abs(values[:, c]).max() * 2e-3 + 1e-6  # columns are rounded
        assert (values[left, c] <= forest.thresholds()[node] + step).all()
        assert (values[~left, c] >= forest.thresholds()[node] - step).all()


# --- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize("n_atoms", [0, -1, 2.5, "many", True, 10**9])
def test_bad_numbers_of_atoms_are_refused(n_atoms):
    with pytest.raises(ValueError, match="n_atoms must be an integer from 1"):
        fitted(SharedAtoms(Patch(), n_atoms))


def test_pooled_atoms_round_a_range_that_integers_do_not_hold():
    X, y, _ = table(100)
    wide = X * [1, 1, 1, 1e-12, 1e12, 1]
    with pytest.warns(UserWarning, match="many orders of magnitude"):
        fitted(SharedAtoms(Patch(1, 3, pool="max"), 20, combine=None), wide, y)
    model = fitted(SharedAtoms(Patch(1, 3), 20), wide, y)
    assert model._forest.columns.cell_format.real
    assert np.isfinite(model.predict_proba(X * 1e300)).all()


def test_damaged_columns_are_refused():
    X, _ = images(10)
    model = fitted(shared("pooled"), X.astype(np.int64), np.arange(10) % 2)
    state = model._forest.__getstate__()
    whole = state["columns"].__getstate__()
    whole |= whole["atoms"].__getstate__()

    def load(**changes):
        found = {**whole, **changes}
        atoms, columns = object.__new__(AtomList), object.__new__(type(state["columns"]))
        if "atoms" not in changes:
            atoms.__setstate__({name: found.pop(name) for name in ("layout", *TYPES)})
            found["atoms"] = atoms
        columns.__setstate__(found)
        loaded = object.__new__(type(model._forest))
        loaded.__setstate__({**state, "columns": columns})

    load()
    for name, value in whole.items():
        if isinstance(value, np.ndarray) and value.size:
            for other in (value[:-1], np.append(value, value[-1:]), value.astype(object), None):
                with pytest.raises(ValueError, match=r"damaged|impossible"):
                    load(**{name: other})
        with pytest.raises(ValueError, match="damaged"):
            load(**{name: None})
    for of in (state["columns"], state["columns"].atoms):
        parts = of.__getstate__()
        for name in parts:
            missing = {k: v for k, v in parts.items() if k != name}
            with pytest.raises(ValueError, match="damaged"):
                object.__new__(type(of)).__setstate__(missing)
    for changes in (
        {"mean": np.full(60, np.nan)},
        {"deviation": np.full(60, -1.0)},
        {"layout": ((28, 2), whole["layout"][1])},
        {"cell_format": 3},
        {"cell": whole["cell"].astype(np.int64) + 2**31},
        {"operation": np.full(60, 9)},
        {"atoms": 3},
    ):
        with pytest.raises(ValueError, match=r"damaged|impossible"):
            load(**changes)
    for columns in (3, fitted(shared(n_atoms=61))._forest.columns):
        with pytest.raises(ValueError, match="damaged forest"):
            object.__new__(type(model._forest)).__setstate__({**state, "columns": columns})
