"""What large data need: no copies of the samples, work in pieces, the same forest from them."""

import math
import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
from common import assert_same_forest, classifier, digits, fit_digits, fit_friedman

from morforest import Axis, Patch, SparseOblique, _fixed_point, _grow, _parallel, _table
from morforest._bagging import canonical_order
from morforest._fixed_point import _smallest_spread, blocks, exact_sum
from morforest._parallel import over_blocks


@pytest.fixture
def small_pieces(monkeypatch):
    """As if memory were small: pieces of a few rows, and bags of a few trees."""

    def few_rows(shape, cells=0):
        return blocks(shape, 3 * shape[1])

    monkeypatch.setattr(_fixed_point, "blocks", few_rows)
    for module in (_parallel, _table):
        monkeypatch.setattr(module, "blocks", few_rows)
    monkeypatch.setattr(_grow, "BAG_BYTES", 4 * 400)


def peak_of(call):
    """The most that Python and NumPy held at once during a call, in bytes."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# --- in pieces -------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("dictionary", [Axis(), SparseOblique(), Patch((1, 2), (3, 4))])
def test_pieces_make_the_same_forest(dictionary, n_jobs, small_pieces, monkeypatch):
    X, y = digits()
    X = X + np.linspace(0, 1, X.size).reshape(X.shape) if n_jobs == 3 else X
    options = {"dictionary": dictionary, "n_jobs": n_jobs, "n_estimators": 12, "oob_score": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # some rows are in every bag
        in_pieces = classifier(**options).fit(X, y)
        monkeypatch.undo()
        at_once = classifier(**options).fit(X, y)
    assert_same_forest(in_pieces, at_once)
    np.testing.assert_array_equal(in_pieces.oob_decision_function_, at_once.oob_decision_function_)


@pytest.mark.parametrize("rows", [0, 1, 7, 100])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_each_row_is_in_one_piece(rows, n_jobs, small_pieces):
    seen = []
    over_blocks(lambda part: seen.extend(range(part.start, part.stop)), (rows, 5), n_jobs)
    assert sorted(seen) == list(range(rows))


@pytest.mark.parametrize("shape", [(0, 4), (10, 0), (10, 3), (5, 10**9)])
def test_blocks_cover_the_rows_in_order(shape):
    parts = list(blocks(shape, 12))
    assert [i for part in parts for i in range(part.start, part.stop)] == list(range(shape[0]))
    assert all((part.stop - part.start) * shape[1] <= max(12, shape[1]) for part in parts)


def test_labels_come_in_pieces_and_probabilities_at_once(monkeypatch):
    X = digits()[0]
    model = fit_digits()
    expected = model.classes_[model.predict_proba(X).argmax(axis=1)]
    monkeypatch.setattr("morforest._forest_base.PROBABILITIES", 70)  # seven rows of ten classes
    np.testing.assert_array_equal(model.predict(X), expected)


# --- memory ----------------------------------------------------------------------------------


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_fit_makes_no_array_as_large_as_the_samples(whole, order):
    random = np.random.default_rng(0)
    X = random.normal(size=(100_000, 64)).astype(np.float32)
    X = np.asarray(np.rint(X) if whole else X, order=order)
    y = random.integers(0, 2, len(X))
    model = classifier(Axis(), n_estimators=1, max_depth=1)
    assert peak_of(lambda: model.fit(X, y)) < X.nbytes * 0.75


def test_integers_of_any_type_are_not_copied():
    X = np.random.default_rng(0).integers(0, 1000, size=(100_000, 64)).astype(np.int16)
    model = classifier(Axis(), n_estimators=1, max_depth=1)
    assert peak_of(lambda: model.fit(X, X[:, 0] > 500)) < X.nbytes


def test_labels_of_many_classes_do_not_take_all_probabilities():
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    model = classifier(Axis(), n_estimators=1).fit(X[:4000], np.arange(4000))
    probabilities = 20_000 * 4000 * 8
    assert peak_of(lambda: model.predict(X)) < probabilities / 3


# --- the plain definitions -------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_exact_sum_rounds_once(seed):
    random = np.random.default_rng(seed)
    values = random.random(random.integers(1, 2000)) * 2.0 ** random.integers(-300, 300)
    if seed % 2:
        values *= 2.0 ** random.integers(-80, 80, len(values))
    if seed % 4 == 0:
        values = np.concatenate([values, values * 2.0**-53, values * 2.0**-54, [0.0]])
    assert exact_sum(values) == math.fsum(values)


def test_exact_sum_of_the_smallest_and_largest_numbers():
    values = np.array([5e-324, 2.0**64, 1e-300, 5e-324])
    assert exact_sum(values) == math.fsum(values)


@pytest.mark.parametrize("kinds", [1, 3, 50, 10**6])
def test_canonical_order_is_by_hash_then_target_then_row(kinds):
    random = np.random.default_rng(kinds)
    hashes = random.integers(0, 2**64, kinds, dtype=np.uint64)[random.integers(0, kinds, 500)]
    target = random.integers(0, 3, 500)
    np.testing.assert_array_equal(canonical_order(hashes, target), np.lexsort((target, hashes)))


def plain_spread(X):
    """The definition, column by column; of all rows."""
    smallest = math.inf
    for column in X.T.astype(float):
        distinct = np.unique(column)
        if len(distinct) >= 4:
            spread = distinct[(3 * len(distinct)) // 4] - distinct[len(distinct) // 4]
        else:
            spread = np.diff(distinct).min(initial=math.inf)
        smallest = min(smallest, spread)
    return smallest


@pytest.mark.parametrize("values", [1, 2, 3, 4, 5, 8, 1000])
@pytest.mark.parametrize("rows", [1, 2, 5, 40, 700])
def test_spreads_follow_their_definition(values, rows):
    random = np.random.default_rng(rows)
    for _ in range(5):
        X = random.normal(size=values)[random.integers(0, values, size=(rows, 9))]
        X[:, 3] = 1.5  # a constant column counts for nothing
        assert _smallest_spread(X) == plain_spread(X)


def test_spreads_see_columns_that_vary_outside_the_sample():
    random = np.random.default_rng(0)
    X = random.normal(size=(5000, 3)) * 100
    X[:, 1] = 7.0
    X[1234, 1] = 7.0 + 1e-6
    assert _smallest_spread(X) == pytest.approx(1e-6)


def test_spreads_do_not_depend_on_order_or_repetition():
    X = np.random.default_rng(0).normal(size=(3000, 4))
    again = np.concatenate([X, X[:2000], np.repeat(X[:1], 4000, axis=0)])
    again = np.random.default_rng(1).permutation(again)
    assert _smallest_spread(X) == _smallest_spread(again)


# --- mistakes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_features", "many"),
        ("max_samples", 401),
        ("min_samples_leaf", 0),
        ("class_weight", "heavy"),
        ("class_weight", {0: -1}),
    ],
)
def test_mistakes_show_before_the_samples_are_worked_on(name, value, monkeypatch):
    def long_work(*_):
        raise AssertionError("long work has begun")

    monkeypatch.setattr("morforest._table.choose_format", long_work)
    with pytest.raises(ValueError, match=name):
        fit_digits(**{name: value})


# --- out of bag ------------------------------------------------------------------------------


@pytest.mark.parametrize("fit", [fit_digits, fit_friedman])
def test_a_fit_without_out_of_bag_scores_leaves_none_of_an_earlier_one(fit):
    model = fit(n_estimators=30, oob_score=True)
    names = {name for name in vars(model) if name.startswith("oob_") and name.endswith("_")}
    assert len(names) == 2
    X, y = digits()
    model.set_params(oob_score=False).fit(X, y)
    assert not names & set(vars(model))


def test_a_failed_fit_keeps_the_out_of_bag_scores():
    model = fit_digits(n_estimators=30, oob_score=True)
    score = model.oob_score_
    with pytest.raises(ValueError, match="X has 400 samples but y has 3"):
        model.set_params(oob_score=False).fit(digits()[0], [1, 2, 3])
    assert model.oob_score_ == score


# --- extents ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dictionary", [Axis(), SparseOblique(), Patch(2, 500)])
def test_few_rows_of_very_many_features(dictionary):
    X = np.random.default_rng(0).normal(size=(12, 200_000)).astype(np.float32)
    y = np.arange(12) % 2
    model = classifier(dictionary, n_estimators=3, bootstrap=False).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)
    assert model.predict(X[:1]) == y[:1]


def test_very_many_classes():
    y = np.random.default_rng(0).permutation(np.repeat(np.arange(5000), 2))
    X = y[:, np.newaxis] * [1.0, 0.5] + 0.25
    model = classifier(Axis(), n_estimators=2, bootstrap=False).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)


def test_very_many_trees():
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 3
    model = classifier(n_estimators=2000, n_jobs=2, oob_score=True).fit(X, y)
    assert len(model.get_depths()) == 2000
    assert len(np.unique(model.get_n_leaves())) > 3  # they differ
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
