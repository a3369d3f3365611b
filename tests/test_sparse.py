"""Sparse samples give the models of dense ones, bit by bit, and are never dense as a whole."""

import pickle
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from common import assert_same_forest

from morforest import (
    AtomFeatures,
    AtomRidgeClassifier,
    AtomRidgeRegressor,
    Axis,
    Haar,
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
)
from morforest import _fixed_point as fixed_point
from morforest._sparse import SparseRows

KINDS = [
    sp.csr_matrix,
    sp.csc_matrix,
    sp.csr_array,
    sp.csc_array,
    sp.coo_array,
    sp.lil_matrix,
    sp.dok_array,
    sp.bsr_array,
]
DICTIONARIES = {
    "axis": Axis(),
    "sparse sums": SparseOblique(),
    "mixture": Mixture([Axis(), SparseOblique(3.0)]),
    "patch": Patch(1, 4),
    "subset": Subset(SparseOblique(), 40),
    "shared": SharedAtoms(SparseOblique(), 40),
    "pooled": Haar(1, 3, pool=["max", "proportion"]),
    "combined": SharedAtoms(Patch(1, 3, pool="max"), 30, combine="ridge"),
}


def counts(n=150, p=24, dtype=np.int64):
    """Mostly zeros, as counts of words are."""
    random = np.random.default_rng(0)
    X = random.poisson(0.3, (n, p)).astype(dtype)
    if np.dtype(dtype).kind == "f":
        X *= random.normal(size=(n, p)).astype(dtype)
    return X, (X[:, 3] + X[:, 5] > X[:, 7]).astype(int)


OF_KEPT_SAMPLES = ("weights", "nearest", "predict_std", "predict_set", "predict_interval")


def assert_same_answers(model, expected, sparse, dense):
    for name in (
        "predict",
        "predict_proba",
        "apply",
        "transform",
        "decision_function",
        "weights",
        "nearest",
        "proximity",
        "predict_std",
        "predict_set",
        "predict_interval",
        "attributions",
        "decision_path",
        "staged_predict",
    ):
        kept = getattr(model, "keep_samples", True)
        if not hasattr(model, name) or (name in OF_KEPT_SAMPLES and not kept):
            continue
        more = (2,) if name == "nearest" else ()
        found, given = (getattr(m, name)(X, *more) for m, X in ((model, sparse), (expected, dense)))
        if name == "staged_predict":
            found, given = np.array(list(found)), np.array(list(given))
        if not isinstance(found, tuple):
            found, given = (found,), (given,)
        for one, other in zip(found, given, strict=True):
            one, other = (x.toarray() if sp.issparse(x) else x for x in (one, other))
            np.testing.assert_array_equal(one, other, err_msg=name)
    for name in ("feature_importances_", "split_shares_"):
        if hasattr(model, name):
            np.testing.assert_array_equal(getattr(model, name), getattr(expected, name))


@pytest.mark.parametrize("name", DICTIONARIES)
@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.float32, np.uint8, bool])
def test_forests_are_those_of_dense_samples(name, dtype):
    X, y = counts(dtype=dtype)
    weights = np.random.default_rng(1).integers(0, 3, len(X))
    bootstrap = name != "combined"

    def fit(X):
        model = MorfClassifier(
            DICTIONARIES[name],
            n_estimators=4,
            oob_score=bootstrap,
            keep_samples=bootstrap,
            random_state=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(X, y, sample_weight=weights)

    sparse = sp.csr_matrix(X)
    model, expected = fit(sparse), fit(X)
    assert_same_forest(model, expected)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_same_answers(model, expected, sparse, X)
        if bootstrap:
            np.testing.assert_array_equal(
                model.oob_decision_function_, expected.oob_decision_function_
            )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_of_sparse_matrix_is_read(kind):
    X, y = counts()
    expected = MorfClassifier(n_estimators=3, random_state=0).fit(X, y)
    sparse = kind(X)
    model = MorfClassifier(n_estimators=3, random_state=0).fit(sparse, y)
    assert_same_forest(model, expected)
    np.testing.assert_array_equal(model.predict_proba(sparse), expected.predict_proba(X))
    np.testing.assert_array_equal(expected.predict_proba(sparse), model.predict_proba(X))


ESTIMATORS = {
    "regression": MorfRegressor(n_estimators=3, keep_samples=True, random_state=0),
    "tree": MorfTreeClassifier(random_state=0),
    "regression tree": MorfTreeRegressor(random_state=0),
    "boosting": MorfBoostingClassifier(max_iter=4, calibration_folds=2, random_state=0),
    "boosted regression": MorfBoostingRegressor(max_iter=4, calibration_folds=2, random_state=0),
    "auto": MorfClassifier("auto", n_estimators=3, random_state=0),
    "balanced": MorfClassifier(n_estimators=3, class_weight="balanced", random_state=0),
    "honest": MorfClassifier(n_estimators=3, honest=True, random_state=0),
    "threads": MorfClassifier(n_estimators=3, n_jobs=2, random_state=0),
    "data_shape": MorfClassifier(Patch(1, 2), n_estimators=3, data_shape=(4, 6), random_state=0),
    "atoms": AtomFeatures(Haar(1, 3, pool="proportion"), 40, random_state=0),
    "ridge": AtomRidgeClassifier(n_atoms=40, random_state=0),
    "ridge regression": AtomRidgeRegressor("sporf", n_atoms=40, random_state=0),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_takes_sparse_samples(name, monkeypatch):
    monkeypatch.setattr(fixed_point, "BLOCK_CELLS", 1000)
    X, y = counts()
    model = ESTIMATORS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = pickle.loads(pickle.dumps(model.fit(X, y)))
        model.fit(sp.csc_array(X), y)
        assert_same_answers(model, expected, sp.csr_array(X), X)
    assert model.n_features_in_ == 24


def test_warm_starts_may_change_between_sparse_and_dense():
    X, y = counts()
    sparse = sp.csr_matrix(X)
    for kind, size in ((MorfClassifier, "n_estimators"), (MorfBoostingClassifier, "max_iter")):
        expected = kind(**{size: 6}, random_state=0).fit(X, y)
        model = kind(**{size: 3}, random_state=0, warm_start=True).fit(sparse, y)
        model.set_params(**{size: 6}).fit(X, y)
        np.testing.assert_array_equal(model.apply(sparse), expected.apply(X))
        model = kind(**{size: 3}, random_state=0, warm_start=True).fit(X, y)
        model.set_params(**{size: 6}).fit(sparse, y)
        np.testing.assert_array_equal(model.apply(sparse), expected.apply(X))


def test_users_matrices_are_not_changed():
    # Duplicates, explicit zeros and columns out of order.
    data, columns, begin = [1, 2, 0, 5, 3, 1], [1, 1, 0, 2, 0, 1], [0, 3, 5, 6]
    sparse = sp.csr_matrix((data, columns, begin), shape=(3, 3))
    before = [part.copy() for part in (sparse.data, sparse.indices, sparse.indptr)]
    model = MorfTreeClassifier(Axis(), max_features=None, random_state=0).fit(sparse, [0, 1, 2])
    np.testing.assert_array_equal(model.predict(sparse), [0, 1, 2])
    expected = MorfTreeClassifier(Axis(), max_features=None, random_state=0)
    expected.fit([[0, 3, 0], [3, 0, 5], [0, 1, 0]], [0, 1, 2])
    assert_same_forest(model, expected)
    for part, old in zip((sparse.data, sparse.indices, sparse.indptr), before, strict=True):
        np.testing.assert_array_equal(part, old)


def test_samples_are_never_dense_as_a_whole():
    n, p = 4000, 3000
    random = np.random.default_rng(0)
    X = sp.random_array((n, p), density=0.002, rng=random, format="csr")
    X.data = np.ceil(20 * X.data)
    y = np.asarray(X[:, :500].sum(axis=1)).ravel() > 10
    model = MorfClassifier(Axis(), n_estimators=2, max_depth=4, random_state=0)
    tracemalloc.start()
    model.fit(X, y).predict(X)
    largest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert largest < n * p * 8 / 2  # of float64; the table of cells has one byte for each


def test_rows_answer_as_an_array_does():
    X = counts(40)[0][:, 2:9]
    rows = SparseRows(sp.csr_matrix(X))
    assert (rows.shape, rows.ndim, rows.size, len(rows), rows.dtype) == (
        X.shape,
        X.ndim,
        X.size,
        len(X),
        X.dtype,
    )
    assert (rows.min(), rows.max()) == (X.min(), X.max())
    some = np.array([3, 9, 3])
    for index in (slice(3, 9), some, X[:, 0] > 0, slice(None, None, 3)):
        np.testing.assert_array_equal(np.asarray(rows[index]), X[index])
    for index in (
        np.ix_(some, some % 7),
        (some, slice(1, 3)),
        (4, some % 7),
        (slice(2, 5), some % 7),
    ):
        np.testing.assert_array_equal(rows[index], X[index])
    np.testing.assert_array_equal(rows[5], X[5])


def test_frames_of_sparse_columns_are_read():
    X, y = counts()
    frame = pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X)).add_prefix("word ")
    model = MorfClassifier(n_estimators=3, random_state=0).fit(frame, y)
    assert_same_forest(model, MorfClassifier(n_estimators=3, random_state=0).fit(X, y))
    assert model.feature_names_in_[0] == "word 0"
    np.testing.assert_array_equal(model.predict(frame), model.predict(frame.sparse.to_dense()))


def test_what_sparse_samples_cannot_do_is_told():
    X, y = counts()
    sparse = sp.csr_matrix(X.astype(float))
    with pytest.raises(ValueError, match=r"copies of dense samples alone: pass X\.toarray"):
        MorfClassifier(Patch(1, 3), augment=SeriesCopies(), n_estimators=2).fit(sparse, y)
    with pytest.raises(ValueError, match=r"23 features.*24 features"):
        MorfClassifier(n_estimators=2).fit(sparse, y).predict(sparse[:, :23])
    sparse.data[3] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        MorfClassifier(n_estimators=2).fit(sparse, y)
    with pytest.raises(ValueError, match=r"[Cc]omplex"):
        MorfClassifier(n_estimators=2).fit(sp.csr_matrix(X * 1j), y)


def test_sparse_arrays_of_three_axes_ask_for_rows():
    try:
        X = sp.coo_array(np.ones((10, 4, 6)))
    except (TypeError, ValueError):
        pytest.skip("this SciPy has sparse arrays of two axes only")
    with pytest.raises(ValueError, match=r"flat rows.*data_shape=\(4, 6\)"):
        MorfClassifier(n_estimators=2).fit(X, np.arange(10) % 2)
