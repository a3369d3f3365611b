"""Unusual data that must work, and wrong data and parameters that must be named."""

import functools
import pickle
import re
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from morforest import (
    Atoms,
    Axis,
    Mixture,
    MorfClassifier,
    MorfRegressor,
    MorfTreeClassifier,
    MorfTreeRegressor,
    Patch,
    SparseOblique,
)

N_TREES = 5


def classifier(dictionary=None, **parameters):
    parameters = {"n_estimators": N_TREES, "random_state": 0, **parameters}
    return MorfClassifier(dictionary, **parameters)


def regressor(dictionary=None, **parameters):
    parameters = {"n_estimators": N_TREES, "random_state": 0, **parameters}
    return MorfRegressor(dictionary, **parameters)


@functools.cache
def samples():
    """Whole numbers from 0 to 99, and classes by a contrast of two of them."""
    X = np.random.default_rng(0).integers(0, 100, (120, 6))
    return X, (X[:, 0] > X[:, 1]).astype(int)


def assert_same_forest(a, b):
    for name, value in vars(a._forest).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, vars(b._forest)[name], err_msg=name)


def walk(model, X):
    """Leaves by hand, in exact arithmetic of Python: atoms and thresholds, node by node."""
    forest = model._forest
    atoms, thresholds = forest.atoms(), forest.thresholds()
    leaves = np.empty((len(X), forest.n_trees), dtype=int)
    for i, row in enumerate(np.asarray(X, dtype=object).reshape(len(X), -1).tolist()):
        for tree in range(forest.n_trees):
            begin = node = int(forest.tree_begin[tree])
            while forest.next[node] >= 0:
                atom = atoms[[node]]
                terms = zip(atom.indices.tolist(), atom.data.tolist(), strict=True)
                value = sum(int(weight) * as_exact(row[cell]) for cell, weight in terms)
                node = begin + int(forest.next[node]) + (value > as_exact(thresholds[node]))
            leaves[i, tree] = node - begin
    return leaves


def as_exact(value):
    """A float as a whole number of steps of 2^-1074."""
    if isinstance(value, int):
        return value << 1074
    numerator, denominator = float(value).as_integer_ratio()
    return numerator * ((1 << 1074) // denominator)


# --- small data ------------------------------------------------------------------------------

ALL = [MorfClassifier, MorfRegressor, MorfTreeClassifier, MorfTreeRegressor]


def small(estimator, **parameters):
    forest = estimator in (MorfClassifier, MorfRegressor)
    return estimator(random_state=0, **({"n_estimators": 3} if forest else {}), **parameters)


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


# --- errors: data ----------------------------------------------------------------------------


def with_value(value):
    X = samples()[0].astype(float)
    X[3, 2] = value
    return X


BAD_X = {
    "NaN": (with_value(np.nan), ValueError, "NaN"),
    "infinity": (with_value(np.inf), ValueError, "infinity"),
    "minus infinity": (with_value(-np.inf), ValueError, "infinity"),
    "NaN in an image": (with_value(np.nan).reshape(-1, 2, 3), ValueError, "NaN"),
    "NaN in objects": (with_value(np.nan).astype(object), ValueError, "NaN"),
    "half precision": (with_value(np.nan).astype(np.float16), ValueError, "NaN"),
    "a vector": (np.arange(120), ValueError, "1D array"),
    "a number": (5, ValueError, "scalar"),
    "None": (None, (ValueError, TypeError), "2D|scalar|None"),
    "words": (np.full((120, 2), "word"), ValueError, "numeric|string"),
    "complex": (np.ones((120, 2)) * 1j, ValueError, "[Cc]omplex"),
    "complex images": (np.ones((120, 2, 2)) * 1j, ValueError, "[Cc]omplex"),
    "ragged": ([[1, 2], [3]] * 60, ValueError, "inhomogeneous"),
    "no rows": (np.empty((0, 3)), ValueError, r"0 sample.*\(0, 3\)"),
    "no columns": (np.empty((120, 0)), ValueError, r"0 feature.*\(120, 0\)"),
    "no images": (np.empty((0, 3, 3)), ValueError, r"\(0, 3, 3\)"),
    "empty images": (np.empty((120, 3, 0)), ValueError, r"\(120, 3, 0\)"),
    "sparse": (sp.csr_matrix(np.eye(120)), TypeError, "[Ss]parse"),
    "seventeen axes": (np.zeros((120, *[1] * 17)), ValueError, "16 axes"),
    "dates": (np.full((120, 2), "2020-01-01", dtype="M8[s]"), (ValueError, TypeError), "X|dtype"),
    "spans of time": (np.ones((120, 2), dtype="m8[s]"), (ValueError, TypeError), "X|dtype"),
}


@pytest.mark.parametrize("name", BAD_X)
@pytest.mark.parametrize("estimator", [MorfClassifier, MorfRegressor])
def test_bad_samples_are_refused(name, estimator):
    X, error, message = BAD_X[name]
    with pytest.raises(error, match=message):
        estimator(n_estimators=2).fit(X, np.arange(120) % 2)


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(float).max, reason="no wider float")
def test_numbers_beyond_float64_are_refused():
    # In a process of its own: infinity has been seen to make trees grow without end.
    script = """if True:
        import numpy as np
        from morforest import MorfClassifier
        X = np.full((20, 2), np.longdouble("1e400"))
        try:
            MorfClassifier(n_estimators=2).fit(X, np.arange(20) % 2)
        except ValueError as error:
            print(error)
    """
    child = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True
    )
    assert re.search("infinity|too large", child.stdout)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((3, 5)), "5 features.*6 features"),
        (np.zeros((3, 3, 2)), r"\(3, 2\).*\(2, 3\)"),
        (np.zeros((3, 6, 1)), r"\(6, 1\).*\(2, 3\)"),
        (np.zeros((3, 2, 4)), r"8 features.*6 features|\(2, 4\).*\(2, 3\)"),
        (np.zeros(6), "1D array"),
        (np.full((3, 6), np.nan), "NaN"),
        (np.full((3, 2, 3), np.inf), "infinity"),
        (np.zeros((0, 6)), "0 sample"),
    ],
)
@pytest.mark.parametrize("method", ["predict", "predict_proba", "apply", "decision_path"])
def test_predictions_of_another_shape_are_refused(X, message, method):
    model = fitted_on_images()
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(X)


@functools.cache
def fitted_on_images():
    X, y = samples()
    return classifier().fit(X.reshape(-1, 2, 3), y)


@pytest.mark.parametrize("estimator", ALL)
def test_nothing_works_before_fit(estimator):
    model = estimator()
    X = np.zeros((2, 3))
    for method in ("predict", "apply", "decision_path"):
        with pytest.raises(NotFittedError, match=estimator.__name__):
            getattr(model, method)(X)
    for method in ("get_depths", "get_n_leaves", "get_mean_leaf_depths"):
        with pytest.raises(NotFittedError):
            getattr(model, method)()
    for attribute in ("feature_importances_", "split_shares_"):
        with pytest.raises(NotFittedError):
            getattr(model, attribute)


BAD_Y = {
    "none": (None, ValueError, "y"),
    "too short": (np.zeros(5), ValueError, "120 samples.*y has 5"),
    "two columns": (np.zeros((120, 2)), ValueError, r"\(120, 2\).*several outputs"),
    "three axes": (np.zeros((120, 2, 2)), ValueError, "y|shape"),
    "NaN": (np.full(120, np.nan), ValueError, "y contains NaN"),
    "infinity": (np.full(120, np.inf), ValueError, "y contains NaN or infinity"),
    "complex": (np.full(120, 1j), ValueError, "[Cc]omplex"),
}


@pytest.mark.parametrize("name", BAD_Y)
@pytest.mark.parametrize("estimator", ALL)
def test_bad_targets_are_refused(name, estimator):
    y, error, message = BAD_Y[name]
    with pytest.raises(error, match=message):
        small(estimator).fit(samples()[0], y)


def test_targets_of_the_wrong_task_are_refused():
    X, _ = samples()
    with pytest.raises(ValueError, match="continuous"):
        classifier().fit(X, np.linspace(0, 1, 120))
    with pytest.raises(ValueError, match=r"y must hold numbers.*word"):
        regressor().fit(X, ["word"] * 120)
    with pytest.raises(ValueError, match="y"):
        classifier().fit(X, np.array([None] * 120))


def test_too_many_classes_are_refused_before_long_work():
    X = np.zeros((65_537, 1))
    start = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match=r"y has 65537 classes.*65536.*MorfRegressor"):
            MorfClassifier().fit(X, np.arange(65_537))
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (-np.ones(120), r"poisson.*-1\.0 to -1\.0"),
        (np.zeros(120), r"poisson.*0\.0 to 0\.0"),
        (np.linspace(-1e-9, 1, 120), "poisson.*-1e-09"),
    ],
)
def test_poisson_refuses_negative_and_vanishing_targets(y, message):
    with pytest.raises(ValueError, match=message):
        regressor(criterion="poisson").fit(samples()[0], y)


BAD_WEIGHTS = {
    "negative": (np.full(120, -2.5), r"sample_weight.*negative.*-2\.5"),
    "one negative": (np.where(np.arange(120) == 7, -1e-9, 1.0), "sample_weight.*-1e-09"),
    "zero": (np.zeros(120), "sample_weight is zero everywhere"),
    "NaN": (np.full(120, np.nan), "sample_weight contains NaN"),
    "infinite": (np.full(120, np.inf), "sample_weight contains NaN or infinity"),
    "too short": (np.ones(7), r"sample_weight has shape \(7,\), expected \(120,\)"),
    "a matrix": (np.ones((120, 2)), r"sample_weight has shape \(120, 2\)"),
    "words": (["heavy"] * 120, "sample_weight.*heavy"),
    "complex": (np.full(120, 1j), "sample_weight"),
}


@pytest.mark.parametrize("name", BAD_WEIGHTS)
@pytest.mark.parametrize("estimator", ALL)
def test_bad_weights_are_refused(name, estimator):
    weights, message = BAD_WEIGHTS[name]
    X, y = samples()
    with pytest.raises((ValueError, TypeError), match=message):
        small(estimator).fit(X, y, sample_weight=weights)


def test_class_weights_that_leave_nothing_are_refused():
    X, y = samples()
    with pytest.raises(ValueError, match="class_weight"):
        classifier(class_weight={0: 0, 1: 0}).fit(X, y)
    with pytest.raises(ValueError, match="class_weight"):
        classifier(class_weight={0: 0}).fit(X, y, sample_weight=(y == 0).astype(float))


# --- errors: parameters ----------------------------------------------------------------------

BAD_PARAMETERS = {
    "n_estimators": [0, -3, 2.5, "many", None, True],
    "data_shape": [3.5, "abc", (2, 2), (0, 6), (), -6, (6.0,), (-2, -3)],
    "channel_axis": [1, -2, "red", 0.5, True],
    "max_features": [0, -1, 0.0, -0.5, "all", True, np.nan, np.inf, [3]],
    "splitter": ["best", None, 3],
    "criterion": ["mse", None, 3],
    "max_depth": [0, -1, 2.5, "deep", True],
    "min_samples_split": [0, -1, 1.5, 0.0, "two", None, True, np.nan],
    "min_samples_leaf": [0, -1, 1.5, 0.0, "one", None, True, np.nan],
    "min_weight_fraction_leaf": [-0.1, 0.6, "half", None, np.nan, True],
    "min_impurity_decrease": [-0.1, "some", None, np.nan, True],
    "max_leaf_nodes": [1, 0, -1, 2.5, "few", True],
    "bootstrap": [1, "yes", None],
    "max_samples": [0, -1, 1.5, 0.0, 121, "all", True, np.nan],
    "oob_score": ["yes", 1, None],
    "class_weight": ["even", 3, [1, 2], {0: -1}, {0: np.nan}, {0: np.inf}, {0: "x"}],
    "warm_start": [1, "yes", None],
    "n_jobs": [0, "all", 1.5],
    "random_state": ["seed", -1, 1.5, 2**40],
    "verbose": ["loud"],
}
CASES = [(name, value) for name, values in BAD_PARAMETERS.items() for value in values]


def shown(value):
    """How an error may write a value: the parameter's, or the offending part's."""
    parts = [value, *(value.values() if isinstance(value, dict) else [])]
    return "|".join(re.escape(repr(part)) for part in parts)


@pytest.mark.parametrize(("name", "value"), CASES, ids=[f"{n}={v!r}" for n, v in CASES])
def test_bad_parameters_are_named_with_their_value(name, value):
    X, y = samples()
    for estimator in ALL:
        if name not in estimator().get_params():
            continue
        with pytest.raises((ValueError, TypeError)) as caught:
            small(estimator).set_params(**{name: value}).fit(X, y)
        message = str(caught.value)
        assert name in message
        assert re.search(shown(value), message)
        assert len(message) < 400


def test_every_parameter_has_a_bad_value_here():
    names = {name for estimator in ALL for name in estimator().get_params(deep=False)}
    assert names == {*BAD_PARAMETERS, "dictionary"}


@pytest.mark.parametrize(
    "name", ["max_depth", "max_leaf_nodes", "min_samples_split", "min_samples_leaf"]
)
def test_parameters_without_an_upper_limit_take_any_integer(name):
    X, y = samples()
    for value in (10**6, 2**63, 2**64, 10**30):
        model = classifier(**{name: value}).fit(X, y)
        if name.startswith("min"):
            assert model.get_depths().max() == 0
        else:
            assert_same_forest(model, classifier(**{name: 10**6}).fit(X, y))


def test_more_candidates_than_a_finite_dictionary_has_cost_no_time():
    X, y = samples()
    expected = classifier(Axis(), max_features=None).fit(X, y)
    for value in (10**6, 10**7):
        start = time.monotonic()
        assert_same_forest(classifier(Axis(), max_features=value).fit(X, y), expected)
        assert time.monotonic() - start < 1


@pytest.mark.parametrize("value", [10**12, 1e12])
def test_absurd_numbers_of_candidates_are_refused(value):
    X, y = samples()
    with pytest.raises(ValueError, match=r"max_features=.* more than 10000000 candidates"):
        classifier(max_features=value).fit(X, y)


def test_parameters_that_contradict_each_other_are_refused():
    X, y = samples()
    with pytest.raises(ValueError, match=r"max_samples=0\.5 needs bootstrap=True"):
        classifier(max_samples=0.5, bootstrap=False).fit(X, y)
    with pytest.raises(ValueError, match="oob_score needs bootstrap=True"):
        classifier(oob_score=True, bootstrap=False).fit(X, y)
    with pytest.raises(ValueError, match=r"data_shape=\(3, 2\) contradicts.*\(2, 3\)"):
        classifier(data_shape=(3, 2)).fit(X.reshape(-1, 2, 3), y)
    with pytest.raises(ValueError, match=r"data_shape=\(2, 2\).*4 features.*has 6"):
        classifier(data_shape=(2, 2)).fit(X, y)


ONES = np.ones((2, 6))
BAD_DICTIONARIES = [
    (3, TypeError, r"dictionary must be.*got 3\."),
    ("Patch", TypeError, "dictionary must be.*got 'Patch'"),
    (Patch, TypeError, r"dictionary must be.*Patch"),
    (Patch(0), ValueError, r"min_size=0 .*1 to 2"),
    (Patch(3), ValueError, r"min_size=3 along axis 0 .*length 2"),
    (Patch(1, 4), ValueError, r"max_size=4 along axis 0 .*length 2"),
    (Patch(1, (2, 4)), ValueError, r"max_size=4 along axis 1 .*length 3"),
    (Patch(2, 1), ValueError, r"min_size=2 must not exceed max_size=1"),
    (Patch((1, 3), (2, 2)), ValueError, r"min_size is 3 and max_size is 2 along axis 1"),
    (Patch(-1), ValueError, "min_size=-1"),
    (Patch(True), ValueError, "min_size .*got True"),
    (Patch(1, 1.5), ValueError, r"max_size .*got 1\.5"),
    (Patch(1, 0.0), ValueError, r"max_size .*got 0\.0"),
    (Patch(1, np.nan), ValueError, r"max_size .*got nan"),
    (Patch("two"), ValueError, "min_size .*got 'two'"),
    (Patch(None), ValueError, "min_size .*got None"),
    (Patch((1, 1, 1)), ValueError, r"min_size=\(1, 1, 1\) has 3 entries.*2 axes"),
    (Patch(1, (2,)), ValueError, r"max_size=\(2,\) has 1 entries"),
    (Patch(boundary="mirror"), ValueError, "boundary .*got 'mirror'"),
    (Patch(boundary=("zero", 3)), ValueError, r"boundary .*got \('zero', 3\)"),
    (Patch(boundary=("zero",)), ValueError, r"boundary=\('zero',\) has 1 entries"),
    (Patch(contiguous=1), ValueError, "contiguous .*got 1"),
    (Patch(contiguous=("no", True)), ValueError, "contiguous .*got"),
    (SparseOblique(0), ValueError, "rate .*got 0"),
    (SparseOblique(-1.5), ValueError, r"rate .*got -1\.5"),
    (SparseOblique("three"), ValueError, "rate .*got 'three'"),
    (SparseOblique(np.nan), ValueError, "rate .*got nan"),
    (SparseOblique(np.inf), ValueError, "rate .*got inf"),
    (SparseOblique(density=0), ValueError, "density .*got 0"),
    (SparseOblique(density=1.1), ValueError, r"density .*got 1\.1"),
    (SparseOblique(density="half"), ValueError, "density .*got 'half'"),
    (Atoms(np.ones((2, 5))), ValueError, r"matrix has 5 columns.*\(2, 3\) have 6"),
    (Atoms(np.zeros((1, 6))), ValueError, "matrix row 0 is zero"),
    (Atoms(np.empty((0, 6))), ValueError, "matrix has no rows"),
    (Atoms(np.full((1, 6), np.nan)), ValueError, "matrix contains NaN"),
    (Atoms(np.full((1, 6), 1e200)), ValueError, "matrix has weights beyond 1e100"),
    (Atoms("atoms"), ValueError, "matrix must be"),
    (Atoms(None), (ValueError, TypeError), "matrix"),
    (Atoms(np.ones((2, 6, 1))), ValueError, "matrix"),
    (Atoms(ONES, [1]), ValueError, r"probabilities has shape \(1,\), expected \(2,\)"),
    (Atoms(ONES, [1, -1]), ValueError, "probabilities must be finite and not negative"),
    (Atoms(ONES, [0, 0]), ValueError, "probabilities are all zero"),
    (Atoms(ONES, [1, np.nan]), ValueError, "probabilities must be finite"),
    (Atoms(ONES, ["a", "b"]), ValueError, "probabilities"),
    (Mixture([]), ValueError, r"dictionaries must be .*got \[\]"),
    (Mixture(None), ValueError, "dictionaries must be .*got None"),
    (Mixture([3]), TypeError, "dictionaries must hold .*got 3"),
    (Mixture([Axis()], [1, 2]), ValueError, r"weights=\[1, 2\] must have one entry"),
    (Mixture([Axis()], [0]), ValueError, r"weights=\[0\] must be"),
    (Mixture([Axis()], [-1]), ValueError, r"weights=\[-1\] must be"),
    (Mixture([Axis()], [np.nan]), ValueError, r"weights=\[nan\] must be"),
    (Mixture([Axis()], ["a"]), ValueError, "weights"),
    (Mixture([Mixture([Patch(9)])]), ValueError, "min_size=9"),
]


@pytest.mark.parametrize("case", BAD_DICTIONARIES, ids=lambda case: str(case[2]))
def test_bad_dictionaries_are_refused(case):
    dictionary, error, message = case
    X, y = samples()
    with pytest.raises(error, match=message):
        classifier(dictionary).fit(X.reshape(-1, 2, 3), y)


def test_errors_come_before_long_work():
    # What needs no look at the samples, or a short one, is refused before trees are grown or
    # the samples are copied.
    X = np.random.default_rng(0).random((20_000, 100))
    y = np.arange(20_000) % 2
    wrong = [
        {"class_weight": "even"},
        {"random_state": "seed"},
        {"n_jobs": "all"},
        {"max_features": 0},
        {"min_samples_leaf": 0},
        {"max_samples": 1.5},
        {"dictionary": Patch(101)},
        {"channel_axis": 3},
    ]
    for parameters in wrong:
        start = time.monotonic()
        with pytest.raises((ValueError, TypeError)):
            MorfClassifier(**parameters).fit(X, y)
        assert time.monotonic() - start < 1, parameters


def test_an_unknown_part_of_a_mixture_is_named():
    model = MorfClassifier(Mixture([Patch(), Axis()]))
    with pytest.raises(ValueError, match=r"'2__max_size'.*2 dictionaries"):
        model.set_params(dictionary__2__max_size=3)
    with pytest.raises(ValueError, match="'first'"):
        model.set_params(dictionary__first=Axis())


@pytest.mark.parametrize("n", [-1, 1.5, "many", True])
def test_sampling_refuses_bad_numbers(n):
    with pytest.raises(ValueError, match=f"n must be .*{n!r}"):
        Axis().sample((3,), n)


@pytest.mark.parametrize("shape", [(), (0, 3), (2.5,), -1, "ab"])
def test_sampling_refuses_bad_shapes(shape):
    with pytest.raises((ValueError, TypeError), match="shape"):
        Axis().sample(shape)


def test_messages_survive_pickling_of_the_estimator():
    model = pickle.loads(pickle.dumps(classifier(max_depth=0)))
    with pytest.raises(ValueError, match=r"max_depth .*got 0"):
        model.fit(*samples())
