"""Series of unequal length: lists of arrays become one array with NaN, aligned or stretched."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from morforest import (
    AtomFeatures,
    AtomRidgeClassifier,
    AtomRidgeRegressor,
    Axis,
    MorfBoostingClassifier,
    MorfBoostingRegressor,
    MorfClassifier,
    MorfRegressor,
    MorfTreeClassifier,
    MorfTreeRegressor,
    Patch,
)
from morforest._lengths import stretched
from morforest._validation import check_samples

FEW = {
    AtomFeatures: {"n_atoms": 20},
    AtomRidgeClassifier: {"n_atoms": 50},
    AtomRidgeRegressor: {"n_atoms": 50},
    MorfBoostingClassifier: {"max_iter": 5},
    MorfBoostingRegressor: {"max_iter": 5},
    MorfClassifier: {"n_estimators": 5},
    MorfRegressor: {"n_estimators": 5},
    MorfTreeClassifier: {},
    MorfTreeRegressor: {},
}
ALIGNMENTS = ("left", "right", "stretch")


def small(estimator, **parameters):
    return estimator(Patch(), random_state=0, **FEW[estimator], **parameters)


def recordings(n=40, channels=2, shortest=12, longest=20):
    """Series whose first channel is higher in one of the classes."""
    random = np.random.default_rng(0)
    y = np.arange(n) % 2
    lengths = random.integers(shortest, longest + 1, n)
    lengths[:2] = longest, shortest
    X = [random.normal(size=(channels, length)) for length in lengths]
    for x, label in zip(X, y, strict=True):
        x[0] += 2 * label
    return X, y


def padded(X, align, length, time=-1):
    """What lists must become, as slow as it is plain."""
    out = []
    for x in X:
        x = np.moveaxis(np.asarray(x, dtype=float), time, 0)
        row = np.full((length, *x.shape[1:]), np.nan)
        for j in range(length):
            if align == "left" and j < len(x):
                row[j] = x[j]
            elif align == "right" and j >= length - len(x):
                row[j] = x[j - (length - len(x))]
            elif align == "stretch":
                whole, rest = divmod(j * (len(x) - 1), max(length - 1, 1))
                row[j] = x[whole]
                if rest:
                    row[j] = x[whole] + (x[whole + 1] - x[whole]) * (rest / (length - 1))
        out.append(np.moveaxis(row, 0, time))
    return np.array(out)


def accepts_gaps():
    try:
        MorfTreeClassifier().fit([[np.nan], [1.0]], [0, 1])
    except ValueError:
        return False
    return True


@pytest.fixture
def dense(monkeypatch):
    """Arrays as they are before missing values are looked at."""

    def seen(estimator, X, *, reset, **given):
        estimator.n_features_in_ = X.shape[1]
        return X

    monkeypatch.setattr("morforest._validation.validate_data", seen)

    def read(X, fitted_to=None, **parameters):
        model = MorfClassifier(**parameters)
        first = X if fitted_to is None else fitted_to
        rows, model.data_shape_ = check_samples(model, first, fitting=True)
        if fitted_to is not None:
            rows, _ = check_samples(model, X, fitting=False)
        return rows.reshape(len(rows), *model.data_shape_)

    return read


# --- what lists become ----------------------------------------------------------------------------


@pytest.mark.parametrize("align", ALIGNMENTS)
def test_lists_are_brought_to_the_longest(align, dense):
    X, _ = recordings()
    np.testing.assert_array_equal(dense(X, align=align), padded(X, align, 20))
    np.testing.assert_array_equal(dense(tuple(X), align=align), padded(X, align, 20))
    flat = [x[0] for x in X]
    np.testing.assert_array_equal(dense(flat, align=align), padded(flat, align, 20))


@pytest.mark.parametrize("align", ALIGNMENTS)
@pytest.mark.parametrize("channel_axis", [2, -1])
def test_time_may_come_first(channel_axis, align, dense):
    X = [x.T for x in recordings()[0]]
    found = dense(X, align=align, channel_axis=channel_axis)
    np.testing.assert_array_equal(found, padded(X, align, 20, time=0))
    frames = [pd.DataFrame(x, columns=["a", "b"]) for x in X]
    np.testing.assert_array_equal(dense(frames, align=align, channel_axis=channel_axis), found)


def test_columns_of_arrays(dense):
    X, _ = recordings()
    column = np.empty(len(X), dtype=object)
    column[:] = X
    wanted = padded(X, "left", 20)
    np.testing.assert_array_equal(dense(column), wanted)
    np.testing.assert_array_equal(dense(pd.Series(X)), wanted)
    rows = [x[0] for x in X]
    np.testing.assert_array_equal(dense(pl.Series(rows)), wanted[:, 0])
    np.testing.assert_array_equal(dense([pd.Series(row) for row in rows]), wanted[:, 0])


@pytest.mark.parametrize("align", ALIGNMENTS)
def test_series_to_predict_get_the_length_of_training(align, dense):
    X, _ = recordings()
    for shorter in (X[1:4], X[1:2], [x[:, :9] for x in X]):  # unequal, one, and all equal
        wanted = padded(shorter, align, 20)
        np.testing.assert_array_equal(dense(shorter, fitted_to=X, align=align), wanted)


def test_longer_series_to_predict(dense):
    X, _ = recordings()
    long = [*X[:3], np.arange(46.0).reshape(2, 23)]
    for align, kept, end in (("left", slice(20), "last"), ("right", slice(-20, None), "first")):
        wanted = padded([x[:, kept] for x in long], align, 20)
        with pytest.warns(UserWarning, match=rf"1 of 4 series, X\[3\] first.*20.*{end} ones.*cut"):
            found = dense(long, fitted_to=X, align=align)
        np.testing.assert_array_equal(found, wanted)
    found = dense(long, fitted_to=X, align="stretch")
    np.testing.assert_array_equal(found, padded(long, "stretch", 20))


def test_lists_of_one_length_are_arrays(dense):
    X = np.arange(24).reshape(4, 2, 3)
    for given in (list(X), X.tolist(), tuple(X)):
        for align in ALIGNMENTS:
            found = dense(given, align=align)
            assert found.dtype.kind == "i"
            np.testing.assert_array_equal(found, X)
    assert dense([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert dense(list(np.eye(3))).tolist() == np.eye(3).tolist()
    volumes = np.arange(48).reshape(2, 2, 3, 4)
    np.testing.assert_array_equal(dense(list(volumes)), volumes)


def test_a_model_of_arrays_takes_lists_of_unequal_length(dense):
    X = np.arange(24.0).reshape(4, 2, 3)
    some = [X[0], X[1][:, :2]]
    np.testing.assert_array_equal(dense(some, fitted_to=X), padded(some, "left", 3))
    right = dense(some, fitted_to=X, align="right")
    np.testing.assert_array_equal(right, padded(some, "right", 3))
    with pytest.raises(ValueError, match=r"samples of shape \(2, 2\).*fitted.*\(2, 3\)"):
        dense([X[0][:, :2]], fitted_to=X)  # perhaps samples of a wrong shape


def test_gaps_inside_stay(dense):
    X, _ = recordings()
    X[1][0, 5] = np.nan
    X[2][:] = np.nan
    for align in ALIGNMENTS:
        np.testing.assert_array_equal(dense(X, align=align), padded(X, align, 20))


def test_types_of_numbers(dense):
    for kind, wanted in [("u1", "f4"), ("i2", "f4"), ("f4", "f4"), ("i4", "f8"), ("f8", "f8")]:
        X = [np.ones(4, dtype=kind), np.ones(3, dtype=kind)]
        assert dense(X).dtype == wanted
        assert dense(X, align="stretch").dtype == "f8"


def test_stretching():
    x = np.array([[0.0, 1.0, 4.0]])
    assert stretched(x, 5).tolist() == [[0.0, 0.5, 1.0, 2.5, 4.0]]
    assert stretched(x, 2).tolist() == [[0.0, 4.0]]
    assert stretched(x, 1).tolist() == [[0.0]]
    assert stretched(x[:, :1], 3).tolist() == [[0.0, 0.0, 0.0]]
    assert stretched(np.array([1, np.nan, 3, 5]), 7).tolist()[3:] == [
        pytest.approx(np.nan, nan_ok=True),
        3,
        4,
        5,
    ]
    random = np.random.default_rng(0)
    for n, length in random.integers(2, 60, (30, 2)):
        x = random.normal(size=n)
        known = np.interp(np.linspace(0, n - 1, length), np.arange(n), x)
        np.testing.assert_allclose(stretched(x, length), known, atol=1e-12)
        assert stretched(x, length)[[0, -1]].tolist() == x[[0, -1]].tolist()


# --- what is refused ------------------------------------------------------------------------------

A, B = np.zeros((2, 5)), np.zeros((2, 4))
BAD = {
    "channels": ([A, np.zeros((3, 4))], {}, r"X\[1\] has shape \(3, 4\).*3 channels.*X\[0\] has 2"),
    "time first": ([A.T, B.T], {}, r"5|4.*channel_axis=-1"),
    "channels first": ([A, B], {"channel_axis": -1}, "channel_axis=1, where channels come first"),
    "no steps": ([A, B[:, :0]], {}, r"X\[1\] has shape \(2, 0\), and is empty"),
    "no channels": ([A[:0], B[:0]], {}, r"X\[0\] has shape \(0, 5\), and is empty"),
    "images": ([np.zeros((2, 3, 4)), np.zeros((2, 3, 5))], {}, "unequal shapes.*3 axes"),
    "axes": ([A, np.zeros(4)], {}, r"X\[1\] has shape \(4,\), but series of 2 axes"),
    "words": ([A, B.astype(str)], {}, r"X\[1\] has dtype <U32.*convert"),
    "objects": ([A, B.astype(object)], {}, r"X\[1\] has dtype object"),
    "complex": ([A, B * 1j], {}, r"X\[1\] has dtype complex128"),
    "infinity": ([A, B + np.inf], {}, r"X\[1\] contains infinity"),
    "a mask": ([A, np.ma.masked_equal(B, 0)], {}, "X has 8 masked values"),
    "frames": ([pd.DataFrame(A.T), pd.DataFrame(B.T)], {}, r"X\[0\] is a data frame.*=-1"),
    "flat rows": ([A[0], B[0]], {"data_shape": (1, 5)}, "data_shape=.*flat rows of unequal length"),
    "align": ([A, B], {"align": "centre"}, "align must be one of 'left', 'right', 'stretch'"),
    "rows": ([[1, 2], [1, 2], [3]], {}, r"X\[0\] has 2 values and X\[2\] has 1.*list of arrays"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_lists_are_refused(name):
    X, parameters, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        MorfClassifier(**parameters).fit(X, [0, 1, 0][: len(X)])


def test_masks_in_columns_are_found():
    column = np.empty(2, dtype=object)
    column[:] = [A, np.ma.masked_equal(B, 0)]
    with pytest.raises(ValueError, match="X has 8 masked values"):
        MorfClassifier().fit(column, [0, 1])


@pytest.mark.parametrize("estimator", FEW)
def test_align_is_checked_where_it_plays_no_part(estimator):
    with pytest.raises(ValueError, match="align must be one of"):
        small(estimator, align=None).fit(np.zeros((4, 6)), [0, 1, 0, 1])


def test_other_channels_to_predict_are_refused():
    X, y = recordings()
    model = small(MorfClassifier, align="stretch", channel_axis=1).fit(X, y)
    with pytest.raises(ValueError, match=r"X\[0\] has shape \(1, 12\).*those of training had 2"):
        model.predict([X[1][:1]])
    with pytest.raises(ValueError, match=r"X\[1\] has shape \(12,\), but series of 2 axes"):
        model.predict([X[0], X[1][0]])


# --- estimators -----------------------------------------------------------------------------------


def answer(model, X):
    return model.transform(X) if isinstance(model, AtomFeatures) else model.predict(X)


@pytest.mark.parametrize("align", ALIGNMENTS)
@pytest.mark.parametrize("estimator", FEW)
def test_a_list_is_the_array_that_it_becomes(estimator, align):
    if align != "stretch" and not accepts_gaps():
        pytest.skip("needs missing values")
    X, y = recordings()
    array = padded(X, align, 20)
    model = small(estimator, channel_axis=1, align=align).fit(X, y)
    same = small(estimator, channel_axis=1).fit(array, y)
    assert model.data_shape_ == (2, 20)
    np.testing.assert_array_equal(answer(model, X), answer(same, array))
    np.testing.assert_array_equal(answer(model, X[1:2]), answer(same, array[1:2]))
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(answer(loaded, X[1:2]), answer(same, array[1:2]))
    assert clone(model).get_params()["align"] == align


@pytest.mark.filterwarnings("ignore:.*are cut off:UserWarning")  # the longest is held back once
@pytest.mark.parametrize("align", ALIGNMENTS)
def test_model_selection_takes_lists(align):
    if align != "stretch" and not accepts_gaps():
        pytest.skip("needs missing values")
    X, y = recordings()
    model = small(MorfClassifier, channel_axis=1, align=align)
    assert np.mean(cross_val_score(model, X, y, cv=4)) > 0.8
    assert np.mean(cross_val_score(model, pd.Series(X), y, cv=4)) > 0.8
    search = GridSearchCV(model, {"align": [align], "dictionary": [Patch(), Axis()]}, cv=2)
    assert search.fit(X, y).best_score_ > 0.8


def test_the_way_of_the_fit_is_kept():
    X, y = recordings()
    model = small(MorfClassifier, channel_axis=1, align="stretch").fit(X, y)
    before = model.predict_proba(X)
    model.set_params(align="left")
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_columns_of_ridges_are_aligned_alike():
    X, y = recordings()
    model = small(AtomRidgeClassifier, channel_axis=1, align="stretch").fit(X, y)
    array = padded(X, "stretch", 20)
    wanted = model.features_.transform(array)
    np.testing.assert_array_equal(model.features_.transform(X), wanted)
    np.testing.assert_array_equal(model.features_.transform(X[1:2]), wanted[1:2])


@pytest.mark.parametrize(
    "aligned", ["left", (), ("left",), ("centre", 1), ("left", 2), ("left", True)]
)
def test_damage_is_refused(aligned):
    X, y = recordings()
    model = small(MorfTreeClassifier, channel_axis=1, align="stretch").fit(X, y)
    model._aligned = aligned
    with pytest.raises(ValueError, match="damaged model: how series"):
        pickle.loads(pickle.dumps(model))
