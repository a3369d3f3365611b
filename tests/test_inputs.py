"""Unusual data that must work."""

import warnings

import numpy as np
import pytest
from common import ALL, N_TREES, assert_same_forest, classifier, regressor, samples, small, walk

from morforest import (
    Atoms,
    Axis,
    Mixture,
    MorfClassifier,
    Patch,
    SparseOblique,
)

# --- small data ------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (1, 3, 4), (7, 1), (7, 1, 1)])
def test_one_row_or_one_feature(estimator, shape):
    X = np.arange(np.prod(shape), dtype=float).reshape(shape)
    y = np.arange(shape[0]) % 2
    model = small(estimator).fit(X, y)
    assert model.predict(X).shape == (shape[0],)
    assert model.feature_importances_.shape == shape[1:]
    if shape[0] == 1:
        assert model.predict(X)[0] == 0
        assert model.get_depths().max() == 0
        assert (model.feature_importances_ == 0).all()
        assert (model.split_shares_ == 0).all()


@pytest.mark.parametrize("mask", [False, np.zeros((120, 6), dtype=bool)])
def test_masked_arrays_without_masked_values_are_plain_data(mask):
    X, y = samples()
    masked = np.ma.masked_array(X, mask=mask)
    model = classifier().fit(masked, np.ma.masked_array(y), np.ma.masked_array(np.ones(120)))
    assert_same_forest(model, classifier().fit(X, y))
    np.testing.assert_array_equal(model.predict_proba(masked), model.predict_proba(X))


def test_one_class():
    X, _ = samples()
    model = classifier().fit(X, np.full(len(X), "only"))
    assert list(model.classes_) == ["only"]
    assert (model.predict(X) == "only").all()
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((len(X), 1)))
    assert model.apply(X).max() == 0
    path, begin = model.decision_path(X)
    assert path.shape == (len(X), N_TREES)
    assert list(begin) == list(range(N_TREES + 1))


def test_constant_target():
    X, _ = samples()
    for value in (0.0, -3.25, 1e-300, 1e300):
        model = regressor().fit(X, np.full(len(X), value))
        np.testing.assert_allclose(model.predict(X), value, rtol=1e-15)
        assert model.get_depths().max() == 0


def test_constant_features():
    X = np.full((30, 4), 7)
    y = np.arange(30) % 3
    model = classifier(bootstrap=False).fit(X, y)
    assert model.get_depths().max() == 0
    np.testing.assert_allclose(model.predict_proba(X), 1 / 3)


def test_equal_rows_of_different_classes_share_a_leaf():
    X = np.repeat(np.arange(4), 5).reshape(-1, 1)
    y = np.tile([0, 0, 0, 0, 1], 4)
    model = classifier(bootstrap=False).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), np.tile([0.8, 0.2], (20, 1)))


# --- labels ----------------------------------------------------------------------------------

LABELS = {
    "strings": ["no", "yes"],
    "unicode": ["нет", "да"],
    "objects": np.array(["b", "a"], dtype=object),
    "bools": [True, False],
    "negative": [-5, 3],
    "huge": [2**62, -(2**62)],
    "unsigned": np.array([2**64 - 1, 2**63], dtype=np.uint64),
    "whole floats": [2.0, 1.0],
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_of_any_kind_come_back(name):
    X, y = samples()
    labels = np.asarray(LABELS[name])[y]
    model = classifier(bootstrap=False).fit(X, labels)
    np.testing.assert_array_equal(model.classes_, np.unique(labels))
    np.testing.assert_array_equal(model.predict(X), labels)
    assert model.predict(X).dtype == labels.dtype


def test_many_classes():
    X = np.arange(3000).reshape(-1, 1)
    y = np.arange(3000)
    model = classifier(Axis(), bootstrap=False, n_estimators=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn asks whether this is regression
        model.fit(X, y)
    np.testing.assert_array_equal(model.predict(X[::100]), y[::100])


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.float32, bool, object])
def test_targets_of_any_number_type(dtype):
    X, _ = samples()
    y = (X[:, 2] % 7).astype(dtype)
    expected = regressor().fit(X, y.astype(float)).predict(X)
    np.testing.assert_array_equal(regressor().fit(X, y).predict(X), expected)


# --- number types and memory layouts ---------------------------------------------------------

INTEGERS = [np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.uint64, np.int64]
FLOATS = [np.float16, np.float32, np.float64, np.longdouble]


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, object], ids=lambda t: np.dtype(t).name)
def test_whole_numbers_of_any_type_are_the_same(dtype):
    X, y = samples()
    expected = classifier().fit(X, y)
    model = classifier().fit(X.astype(dtype), y)
    assert_same_forest(model, expected)
    np.testing.assert_array_equal(model.predict_proba(X.astype(dtype)), expected.predict_proba(X))


@pytest.mark.parametrize("dtype", ["<i4", ">i4", ">f8", ">u2"])
def test_byte_order_does_not_matter(dtype):
    X, y = samples()
    model = classifier().fit(X.astype(dtype), y)
    assert_same_forest(model, classifier().fit(X, y))
    assert model.score(X.astype(dtype), y) == model.score(X, y)


def test_booleans():
    X = np.random.default_rng(0).random((200, 5)) < 0.5
    y = X[:, 0] ^ X[:, 1]
    model = classifier(n_estimators=20).fit(X, y)
    assert model.score(X, y) == 1.0
    assert_same_forest(model, classifier(n_estimators=20).fit(X.astype(np.uint8), y))


def layouts(X, tmp_path):
    """The same samples in other places of memory."""
    wide = np.zeros((2 * len(X), *X.shape[1:], 3), dtype=X.dtype)
    wide[::2, ..., 1] = X
    read_only = X.copy()
    read_only.flags.writeable = False
    mapped = np.memmap(tmp_path / "samples", dtype=X.dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    mapped.flush()
    return {
        "fortran": np.asfortranarray(X),
        "strided": wide[::2, ..., 1],
        "reversed": X[::-1].copy()[::-1],
        "read-only": read_only,
        "memmap": mapped,
        "read-only memmap": np.memmap(tmp_path / "samples", dtype=X.dtype, mode="r", shape=X.shape),
        "list": X.tolist(),
        "objects": X.astype(object),
        "unaligned": np.frombuffer(b"x" + X.tobytes(), dtype=X.dtype, offset=1).reshape(X.shape),
    }


@pytest.mark.parametrize("kind", ["int64", "float64", "uint8"])
@pytest.mark.parametrize("shape", [(120, 6), (120, 2, 3)])
def test_layouts_in_memory_do_not_matter(kind, shape, tmp_path):
    X, y = samples()
    X = (X / 7).astype(kind) if kind == "float64" else X.astype(kind)
    X = X.reshape(shape)
    model = classifier().fit(X, y)
    expected = model.predict_proba(X)
    for name, same in layouts(X, tmp_path).items():
        assert_same_forest(model, classifier().fit(same, y))
        np.testing.assert_array_equal(model.predict_proba(same), expected, err_msg=name)


def test_data_are_not_changed():
    X, y = samples()
    X = X / 3.0
    before, weights = X.copy(), np.linspace(0, 1, len(X))
    classifier().fit(X, y, sample_weight=weights).predict(X)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(weights, np.linspace(0, 1, len(X)))


# --- large and small numbers -----------------------------------------------------------------


def test_whole_numbers_are_exact_up_to_two_to_the_sixty():
    X = (2**60 + np.arange(40)).reshape(-1, 1)
    y = np.arange(40) % 2
    model = classifier(Axis(), bootstrap=False).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.score(-X, y) == 0.5


@pytest.mark.parametrize("dictionary", [Axis(), SparseOblique(), Patch()])
@pytest.mark.parametrize(
    "start", [np.int64(2**62), np.int64(-(2**62)), np.uint64(2**63), np.uint64(2**64 - 2**21)]
)
def test_huge_integers_keep_their_order(dictionary, start):
    steps = (np.arange(64) * 2**14).astype(start.dtype)
    X = np.column_stack([start + steps, start + steps[::-1]])
    y = (np.arange(64) >= 21).astype(int)
    model = classifier(dictionary, bootstrap=False, max_features=8).fit(X, y)
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("dictionary", [Axis(), SparseOblique(), Patch(), Atoms(np.eye(3) * 0.5)])
@pytest.mark.parametrize(
    "scale", [1e308, 1e300, 1e100, 1e-100, 1e-300, 2.0**-1060], ids=lambda s: f"{s:.0e}"
)
def test_floats_of_any_size(dictionary, scale):
    unit = np.random.default_rng(0).uniform(-1, 1, (150, 3))
    y = (unit[:, 1] > 0.1).astype(int)
    X = unit * scale
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "invalid value encountered in reduce")  # scikit-learn's
        model = classifier(dictionary, bootstrap=False, max_features=6).fit(X, y)
        assert model.score(X, y) == 1.0
    assert np.isfinite(model._forest.thresholds()[model._forest.is_split()]).all()


def test_subnormal_numbers_are_told_apart():
    tiny = 5e-324  # the smallest float
    X = (np.arange(10) * tiny).reshape(-1, 1)
    y = np.arange(10) % 2
    assert classifier(Axis(), bootstrap=False).fit(X, y).score(X, y) == 1.0


def test_the_two_zeros_are_one_number():
    X = np.array([[0.0], [-0.0], [1.5], [1.5]])
    model = classifier(bootstrap=False).fit(X, [0, 1, 2, 2])
    np.testing.assert_array_equal(model.predict_proba([[0.0], [-0.0]]), [[0.5, 0.5, 0]] * 2)


@pytest.mark.parametrize("splitter", ["histogram", "exact"])
def test_columns_over_twelve_orders_of_magnitude(splitter):
    # Each column carries a part of the signal; none may be rounded away beside the others.
    rng = np.random.default_rng(0)
    scales = 10.0 ** np.arange(-6, 7, 2)
    unit = rng.normal(size=(700, 7))
    X = unit * scales
    for column in range(7):
        y = (unit[:, column] > 0.3).astype(int)
        model = classifier(Axis(), max_features=None, splitter=splitter, n_estimators=3)
        assert model.fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.97


def test_a_rare_small_value_beside_large_ones_is_seen():
    # A column that is almost always zero decides the class, in units far below another column's.
    rng = np.random.default_rng(0)
    n = 4096
    X = np.column_stack([rng.normal(size=n) * 1e3, np.zeros(n)])
    y = np.zeros(n, dtype=int)
    rare = np.arange(2, 60, 4)
    y[rare], X[rare, 1] = 1, 1e-7
    for shift in range(4):  # wherever these rows stand
        model = classifier(Axis(), max_features=None, bootstrap=False, n_estimators=1)
        model.fit(np.roll(X, shift, axis=0), np.roll(y, shift))
        assert model.get_n_leaves()[0] == 2
        assert model.score(X, y) == 1.0


@pytest.mark.parametrize("tail", ["cauchy", "lognormal"])
def test_heavy_tails_do_not_blind_the_histogram_splitter(tail):
    rng = np.random.default_rng(0)
    draw = {
        "cauchy": lambda: rng.standard_cauchy((900, 6)),
        "lognormal": lambda: rng.lognormal(0, 3, (900, 6)),
    }[tail]
    X = draw()
    ranks = X.argsort(axis=0).argsort(axis=0) / len(X)
    y = (ranks[:, 0] + ranks[:, 1] + ranks[:, 2] > 1.5).astype(int)
    scores = {}
    for splitter in ("exact", "histogram"):
        model = classifier(Axis(), splitter=splitter, n_estimators=40)
        scores[splitter] = model.fit(X[:500], y[:500]).score(X[500:], y[500:])
    # The difference of two such accuracies on 400 samples has a standard error of about 0.02.
    assert scores["exact"] > 0.8
    assert scores["histogram"] > scores["exact"] - 0.04


def test_targets_of_any_size():
    X = np.arange(50).reshape(-1, 1)
    for scale in (1e299, 1e100, 1e-100, 1e-280):
        y = np.linspace(-1, 1, 50) * scale
        for criterion in ("squared_error", "absolute_error"):
            model = regressor(Axis(), bootstrap=False, criterion=criterion).fit(X, y)
            np.testing.assert_allclose(model.predict(X), y, rtol=1e-9, atol=1e-9 * scale)


def test_targets_near_the_largest_float_are_refused():
    # The sum over trees would overflow.
    X = np.arange(20).reshape(-1, 1)
    y = np.where(np.arange(20) < 10, 1.7e308, -1.7e308)
    with pytest.raises(ValueError, match=r"y has values beyond 1e\+300 in size, up to 1.7e\+308"):
        regressor(Axis()).fit(X, y)


def test_targets_with_a_large_offset_keep_their_differences():
    X = np.arange(40).reshape(-1, 1)
    y = 1e12 + np.arange(40) / 16
    model = regressor(Axis(), bootstrap=False).fit(X, y)
    np.testing.assert_allclose(model.predict(X) - 1e12, np.arange(40) / 16, atol=1e-3)


def test_sample_weights_of_any_size_count_by_their_ratios():
    X, y = samples()
    weights = np.random.default_rng(0).random(len(X)) + 0.01
    for bootstrap in (True, False):
        expected = classifier(bootstrap=bootstrap).fit(X, y, sample_weight=weights)
        for exponent in (-1000, -60, 40, 1000, 1022):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                scaled = np.ldexp(weights, exponent)
                model = classifier(bootstrap=bootstrap).fit(X, y, sample_weight=scaled)
            assert_same_forest(model, expected)


def test_weights_over_many_orders_of_magnitude():
    X, y = samples()
    weights = np.where(y == 1, 1e-200, 1e200)
    for bootstrap in (True, False):
        model = classifier(bootstrap=bootstrap).fit(X, y, sample_weight=weights)
        assert model.predict_proba(X)[:, 0].min() > 0.99 or not bootstrap
    model = classifier(class_weight={0: 1e300, 1: 1e-300}).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


# --- predictions outside the training range --------------------------------------------------


def trained_on_bytes(dictionary):
    X = np.random.default_rng(1).integers(0, 256, (200, 6))
    y = (X[:, 0].astype(int) + X[:, 1] > X[:, 2] + 128).astype(int)
    return classifier(dictionary).fit(X.astype(np.uint8), y)


DICTIONARIES = [Axis(), SparseOblique(), Patch(max_size=3), Mixture([Axis(), Patch(2, 6)])]
EXTREMES = np.array(
    [
        [12.5, 130.25, 7.75, 255.5, 0.125, 99.9],
        [1e30, 5, 5, 5, 5, 5],
        [-1e30, 5, 5, 5, 5, 5],
        [5, 1e30, -1e30, 5, 5, 5],
        [1e308, 1e308, 3, 1e308, 1e308, 4],
        [-1e308, -1e308, -1e308, -1e308, -1e308, -1e308],
        [1e-320, 0, 0, 127.5, 127.49999, 127.50001],
        [300, -300, 70_000, -70_000, 2.0**31, -(2.0**31)],
    ]
)


@pytest.mark.parametrize("dictionary", DICTIONARIES, ids=lambda d: type(d).__name__)
def test_a_forest_of_bytes_takes_any_number(dictionary):
    model = trained_on_bytes(dictionary)
    for row in EXTREMES:  # one by one: sizes must not help each other
        np.testing.assert_array_equal(model.apply(row[None]), walk(model, row[None]))


@pytest.mark.parametrize("dictionary", DICTIONARIES, ids=lambda d: type(d).__name__)
def test_a_forest_of_small_floats_takes_any_number(dictionary):
    unit = np.random.default_rng(1).normal(size=(200, 6))
    model = classifier(dictionary).fit(unit, (unit[:, 0] > unit[:, 1]).astype(int))
    rows = np.concatenate([EXTREMES[1:6], EXTREMES[7:]])
    for row in rows:
        np.testing.assert_array_equal(model.apply(row[None]), walk(model, row[None]))


@pytest.mark.parametrize("dictionary", DICTIONARIES, ids=lambda d: type(d).__name__)
def test_differences_of_large_numbers_are_seen(dictionary):
    # Both rows lie far outside the training range, and differ in the order of two features.
    model = trained_on_bytes(dictionary)
    for large in (1e9, 1e15):  # sums are exact up to about 2^61 steps, and saturate beyond
        rows = np.full((2, 6), large)
        rows[0, 0] = rows[1, 2] = 3 * large
        np.testing.assert_array_equal(model.apply(rows), walk(model, rows))


def test_averages_between_whole_numbers_fall_on_the_right_side():
    X = np.array([[10], [13]])
    model = classifier(Axis(), bootstrap=False).fit(X, [0, 1])
    assert list(model.predict([[11.25], [11.5], [11.75], [12], [11.4999], [11.5001]])) == [
        *(0, 0, 1, 1, 0, 1)
    ]


def test_a_prediction_does_not_depend_on_the_rows_beside_it():
    even = np.arange(0, 200, 2)
    model = classifier(Axis(), bootstrap=False).fit(even.reshape(-1, 1), (even > 90).astype(int))
    row = [91.3]
    alone = model.predict_proba([row])
    for neighbour in (0, 0.5, 1e5, 1e12, 1e18, 1e30, -1e300):
        together = model.predict_proba([row, [neighbour]])[:1]
        np.testing.assert_array_equal(together, alone, err_msg=str(neighbour))


def test_a_wide_forest_takes_narrow_numbers():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 3)) * [1e-6, 1, 1e6]
    y = (X[:, 1] > 0).astype(int)
    model = classifier(Axis(), max_features=None).fit(X, y)
    rows = np.array([[0, 1, 0], [0, -1, 0], [0, 100, 90], [1, -100, 120]])
    for dtype in (np.int8, np.uint8, np.int64, np.float32, np.float64):
        if dtype is np.uint8:
            rows = abs(rows)
        expected = (rows[:, 1] > 0).astype(int)
        np.testing.assert_array_equal(model.predict(rows.astype(dtype)), expected)


def test_single_precision_is_not_rounded_again():
    rng = np.random.default_rng(3)
    X = rng.random((300, 4), dtype=np.float32)
    y = (X[:, 0] > X[:, 1]).astype(int)
    single = classifier().fit(X, y)
    assert_same_forest(single, classifier().fit(X.astype(np.float64), y))
    np.testing.assert_array_equal(
        single.predict_proba(X), single.predict_proba(X.astype(np.float64))
    )


def test_floats_take_32_bits_where_the_bound_itself_allows_it():
    # max|x| * 80 is below 2^9, though its exponents say 2^10: a shift of 20 would be too coarse.
    X = np.random.default_rng(0).uniform(-0.7, 0.7, (200, 28, 50)).astype(np.float32)
    X[0, 0, 0] = 5.4
    forest = MorfClassifier(Patch((1, 5), (4, 20)), n_estimators=1, random_state=0)
    chosen = forest.fit(X, np.arange(200) % 2)._forest.cell_format
    assert (chosen.shift, chosen.real) == (21, False)
    assert chosen.bound < 2**30
