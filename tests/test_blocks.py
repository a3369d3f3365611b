"""Forests on samples that come in blocks: fit_blocks, and morforest.dask."""

from dataclasses import fields

import numpy as np
import oracle
import pytest

from morforest import (
    AtomRidgeClassifier,
    Axis,
    Haar,
    ImageCopies,
    MorfBoostingClassifier,
    MorfClassifier,
    MorfRegressor,
    Patch,
    SharedAtoms,
    SparseOblique,
    fit_blocks,
)
from morforest._block_data import read_block, summarise
from morforest._native import core

da = pytest.importorskip("dask.array")
import morforest.dask  # noqa: E402

ARRAYS = ("next", "threshold", "gain", "distribution_weight", "distribution_class", "leaf_value")


def assert_same(a, b):
    for name in ARRAYS:
        assert getattr(a._forest, name).tobytes() == getattr(b._forest, name).tobytes(), name
    assert a._forest.atoms == b._forest.atoms


def data(n=1500, kind="f", seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6, 8)).astype(np.float32)
    if kind == "i":
        X = rng.integers(0, 200, size=(n, 6, 8), dtype=np.uint8)
    total = X[:, 2:4, 3:6].astype(float).sum(axis=(1, 2))
    return X, np.array(["low", "highest"])[(total > np.median(total)).astype(int)]


def forest(dictionary=None, **parameters):
    parameters = {"n_estimators": 6, "max_samples": 200, "random_state": 3, **parameters}
    return MorfClassifier(Patch() if dictionary is None else dictionary, **parameters)


def cut(X, y, size):
    return [(X[i : i + size], y[i : i + size]) for i in range(0, len(X), size)]


# --- the same forest for any blocks ----------------------------------------------------------


@pytest.mark.parametrize("size", [1, 17, 700, 1500])
def test_blocks_do_not_matter(size):
    X, y = data(300 if size == 1 else 1500)
    whole = fit_blocks(forest(), X, y)
    assert_same(fit_blocks(forest(n_jobs=2), cut(X, y, size), memory=1 << 20), whole)
    assert_same(fit_blocks(forest(), lambda: iter(cut(X, y, size))), whole)


def test_memory_maps_are_read_in_pieces(tmp_path):
    X, y = data()
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert_same(fit_blocks(forest(), mapped, y), fit_blocks(forest(), X, y))


@pytest.mark.parametrize("chunks", [(1500, 6, 8), (211, 2, 8), ((1, 1000, 499), 6, 4)])
def test_dask_arrays_grow_the_same_forest(chunks):
    X, y = data()
    found = morforest.dask.fit(
        forest(), da.from_array(X, chunks=chunks), da.from_array(y, chunks=400)
    )
    assert_same(found, fit_blocks(forest(), X, y))


def test_a_cluster_grows_the_same_forest_and_predicts():
    distributed = pytest.importorskip("distributed")
    X, y = data()
    expected = fit_blocks(forest(), X, y)
    options = {"dashboard_address": None, "threads_per_worker": 1, "n_workers": 2}
    arrays = da.from_array(X, chunks=(300, 6, 8)), da.from_array(y, chunks=300)
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
        found = morforest.dask.fit(forest(), *arrays, memory=1 << 20)
        labels = morforest.dask.predict(found, arrays[0]).compute()
        probabilities = morforest.dask.predict_proba(found, arrays[0]).compute()
    assert_same(found, expected)
    np.testing.assert_array_equal(labels, expected.predict(X))
    np.testing.assert_array_equal(probabilities, expected.predict_proba(X))


@pytest.mark.parametrize(
    "dictionary",
    [Axis(), SparseOblique(), SharedAtoms(Haar(pool="max"), n_atoms=40), "series-pooled"],
)
def test_all_dictionaries_work(dictionary):
    X, y = data(kind="i")
    rows = X.reshape(len(X), 48)
    a = fit_blocks(forest(dictionary), rows, y)
    b = fit_blocks(forest(dictionary), cut(rows, y, 333))
    assert_same(a, b)
    assert a.score(rows, y) > 0.6


@pytest.mark.parametrize(
    "parameters",
    [
        {"honest": True},
        {"bootstrap": False},
        {"class_weight": "balanced"},
        {"class_weight": "balanced_subsample"},
        {"augment": ImageCopies(copies=2)},
        {"max_samples": 0.1, "min_impurity_decrease": 0.001},
        {"dictionary": "auto", "n_estimators": 3},
    ],
)
def test_parameters_of_forests_work(parameters):
    X, y = data()
    a = fit_blocks(forest(**parameters), X, y)
    assert_same(a, fit_blocks(forest(**parameters), cut(X, y, 400)))
    assert a.score(X, y) > 0.6


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "poisson"])
def test_regression(criterion):
    X, _ = data()
    y = np.exp(X[:, 2:4, 3:6].sum(axis=(1, 2)) / 3)
    model = MorfRegressor(Patch(), n_estimators=20, max_samples=400, random_state=0)
    model.set_params(criterion=criterion)
    found = fit_blocks(model, cut(X, y, 400))
    assert found.score(X, y) > 0.4
    assert found.predict(X).max() <= y.max()


def test_missing_values():
    X, y = data()
    X[5, 2, 3] = X[1400, 0, 0] = np.nan
    a, b = fit_blocks(forest(), X, y), fit_blocks(forest(), cut(X, y, 100))
    assert_same(a, b)
    assert np.isfinite(b.predict_proba(X)).all()


# --- what each tree sees ---------------------------------------------------------------------


def drawn_rows(key, draws, rows, replace):
    """The rule of docs/design.md: how often each row is drawn."""
    stream = oracle.Stream(oracle.derive(key, oracle.BAG))
    count = np.zeros(rows, dtype=np.uint32)
    for i in range(draws):
        last = rows - draws + i
        row = stream.below(rows if replace else last + 1)
        count[last if count[row] and not replace else row] += 1
    return count


@pytest.mark.parametrize("replace", [False, True])
def test_rows_are_drawn_as_specified(replace):
    for key in range(30):
        row, count = core.draw_few_rows(key, 20, 40, replace, core.StopFlag())
        expected = drawn_rows(key, 20, 40, replace)
        np.testing.assert_array_equal(row, np.flatnonzero(expected))
        np.testing.assert_array_equal(count, expected[expected > 0])


@pytest.mark.parametrize("bootstrap", [False, True])
def test_a_tree_is_that_of_the_rows_that_it_draws(bootstrap):
    X, y = data(kind="i")  # whole numbers, whose format does not depend on the rows
    found = fit_blocks(forest(n_estimators=1, bootstrap=bootstrap), X, y)
    key = core.tree_key(found._seed, 0)
    row, count = core.draw_few_rows(key, 200, len(X), bootstrap, core.StopFlag())
    assert count.sum() == 200
    plain = forest(n_estimators=1, bootstrap=False, max_samples=None)
    plain.fit(X[row], y[row], sample_weight=count)
    assert_same(found, plain)


def test_numbers_of_samples():
    X, y = data()
    assert fit_blocks(forest(max_samples=None), X, y).max_samples_ == 1500
    assert fit_blocks(forest(max_samples="n**0.5"), X, y).max_samples_ == 39
    rows = np.zeros((60_000, 1), dtype=np.uint8)
    model = forest(Axis(), max_samples=None, n_estimators=1)
    assert fit_blocks(model, rows, np.arange(60_000) % 2).max_samples_ == 10_000


def test_classes_that_one_block_holds_alone():
    X, y = data()
    y = y.astype(object)
    y[-30:] = "rare"
    found = fit_blocks(forest(max_samples=1500), cut(X, y, 500))
    assert found.classes_.tolist() == ["highest", "low", "rare"]
    assert found.predict_proba(X[-30:])[:, 2].mean() > 0.2


def test_a_summary_keeps_no_block_alive():
    X, y = data()
    found = summarise(read_block(0, X, y, X.shape[1:]), np.arange(5, dtype=np.uint64), True)
    for field in fields(found):
        part = getattr(found, field.name)
        assert not (isinstance(part, np.ndarray) and np.may_share_memory(part, X)), field.name
    assert found.gap.base is None
    assert found.gap.shape == (0, 48)


# --- mistakes --------------------------------------------------------------------------------


def broken_blocks(X, y):
    yield X[:100], y[:100]
    yield X[100:200, :, :4], y[100:200]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X, y[:-1]), "1500 samples but y has 1499"),
        (lambda X, y: (iter(cut(X, y, 100)), None), "read once"),
        (lambda X, y: (X, None), "without y, X must be an iterable of blocks"),
        (lambda X, y: ("blocks.npy", None), "without y, X must be"),
        (lambda X, y: ([X, X, X], None), r"each block must be a pair \(X, y\)"),
        (lambda X, y: ([], None), "no samples"),
        (lambda X, y: (lambda: broken_blocks(X, y), None), "samples of shape"),
        (lambda X, y: (np.where(X[7, 0, 0] == X, np.inf, X), y), "infinity in the block"),
        (lambda X, y: (X.astype(str), y), "not a kind of number"),
        (lambda X, y: (X, np.stack([y, y], axis=1)), "Several outputs"),
        (lambda X, y: (np.ma.masked_greater(X, 2), y), "masked"),
        (lambda X, y: (X, np.where(y == "low", 0.5, 1.5)), "Unknown label type"),
        (lambda X, y: (np.full((3, 2), 2**63, dtype=np.uint64), [0, 1, 0]), "2\\^63"),
        (lambda X, y: (X[:, 0, 0], y), "at least one of features"),
    ],
)
def test_bad_data_is_refused(change, message):
    X, y = data()
    model = forest()
    with pytest.raises((TypeError, ValueError), match=message):
        fit_blocks(model, *change(X, y))
    assert not model.__sklearn_is_fitted__()
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (forest(oob_score=True), "oob_score=True"),
        (forest(keep_samples=True), "keep_samples=True"),
        (forest(warm_start=True), "warm_start=True"),
        (forest(honest="oob"), 'honest="oob"'),
        (forest(max_samples=5000), "must not exceed"),
        (forest(max_samples=-1), "max_samples"),
        (MorfBoostingClassifier(), "must be a MorfClassifier or MorfRegressor"),
        (AtomRidgeClassifier(), "must be a MorfClassifier or MorfRegressor"),
    ],
)
def test_bad_estimators_are_refused(estimator, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fit_blocks(estimator, *data())


def test_other_bad_arguments_are_refused():
    X, y = data()
    with pytest.raises(ValueError, match="memory"):
        fit_blocks(forest(), X, y, memory=10)
    with pytest.raises(TypeError, match="X must be a dask array, got ndarray"):
        morforest.dask.fit(forest(), X, y)
    dask_X, dask_y = da.from_array(X), da.from_array(y)
    with pytest.raises(TypeError, match="y must be a dask array, got ndarray"):
        morforest.dask.fit(forest(), dask_X, y)
    with pytest.raises(ValueError, match="1500 samples and y has shape"):
        morforest.dask.fit(forest(), dask_X, dask_y[:-1])
    fitted = fit_blocks(forest(), X, y)
    with pytest.raises(TypeError, match="X must be a dask array"):
        morforest.dask.predict(fitted, X)
    with pytest.raises(TypeError, match="has no method predict_proba"):
        morforest.dask.predict_proba(MorfRegressor(), dask_X)


def test_a_failed_fit_leaves_the_model_as_it_was():
    X, y = data()
    model = fit_blocks(forest(), X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="infinity"):
        fit_blocks(model, [(X, y), (np.full_like(X, np.inf), y)])
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_blocks_must_stay_the_same():
    X, y = data()
    calls = []

    def shrinking():
        calls.append(1)
        yield from cut(X, y, 500)[: 3 if len(calls) < 2 else 2]

    with pytest.raises(ValueError, match="blocks must be the same each time"):
        fit_blocks(forest(), shrinking)
