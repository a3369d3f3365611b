"""Wrong data and parameters that must be named."""

import datetime
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
from common import (
    ALL,
    assert_same_forest,
    classifier,
    regressor,
    samples,
    small,
)
from sklearn.exceptions import NotFittedError

from morforest import (
    Atoms,
    Axis,
    Difference,
    Gradient,
    Haar,
    Kernel,
    Magnitude,
    Mixture,
    MorfClassifier,
    MorfRegressor,
    Pair,
    Patch,
    Raw,
    SharedAtoms,
    SparseOblique,
    Square,
    Subset,
)

# --- errors: data ----------------------------------------------------------------------------


def with_value(value):
    X = samples()[0].astype(float)
    X[3, 2] = value
    return X


BAD_X = {
    "infinity": (with_value(np.inf), ValueError, "infinity"),
    "minus infinity": (with_value(-np.inf), ValueError, "infinity"),
    "infinity in an image": (with_value(np.inf).reshape(-1, 2, 3), ValueError, "infinity"),
    "infinity in objects": (with_value(np.inf).astype(object), ValueError, "infinity"),
    "half precision": (with_value(np.inf).astype(np.float16), ValueError, "infinity"),
    "a vector": (np.arange(120), ValueError, "1D array"),
    "a number": (5, ValueError, "scalar"),
    "None": (None, (ValueError, TypeError), "2D|scalar|None"),
    "words": (np.full((120, 2), "word"), ValueError, "numeric|string"),
    "complex": (np.ones((120, 2)) * 1j, ValueError, "[Cc]omplex"),
    "complex images": (np.ones((120, 2, 2)) * 1j, ValueError, "[Cc]omplex"),
    "ragged": ([[1, 2], [3]] * 60, ValueError, "rows of unequal length.*list of arrays"),
    "no rows": (np.empty((0, 3)), ValueError, r"0 sample.*\(0, 3\)"),
    "no columns": (np.empty((120, 0)), ValueError, r"0 feature.*\(120, 0\)"),
    "no images": (np.empty((0, 3, 3)), ValueError, r"\(0, 3, 3\)"),
    "empty images": (np.empty((120, 3, 0)), ValueError, r"\(120, 3, 0\)"),
    "sparse and complex": (sp.csr_matrix(np.eye(120) * 1j), ValueError, "[Cc]omplex"),
    "seventeen axes": (np.zeros((120, *[1] * 17)), ValueError, "16 axes"),
    "dates": (np.full((120, 2), "2020-01-01", dtype="M8[s]"), (ValueError, TypeError), "X|dtype"),
    "a mask": (np.ma.masked_greater(samples()[0], 98), ValueError, "X has .* masked values.*fill"),
    "masked images": (
        np.ma.masked_greater(samples()[0].reshape(-1, 2, 3), 98),
        ValueError,
        "X has .* masked values.*fill",
    ),
    "a list of masked rows": (
        [np.ma.masked_greater(row, 98) for row in samples()[0]],
        ValueError,
        "X has .* masked values.*fill",
    ),
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
        (np.full((3, 6), -np.inf), "infinity"),
        (np.full((3, 2, 3), np.inf), "infinity"),
        (np.zeros((0, 6)), "0 sample"),
        (np.ma.masked_equal(np.eye(3, 6), 1), "X has 3 masked values"),
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
    for method in ("predict", "apply", "decision_path", "attributions"):
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
    "three axes": (np.zeros((120, 2, 2)), ValueError, "y|shape"),
    "NaN": (np.full(120, np.nan), ValueError, "y contains NaN"),
    "infinity": (np.full(120, np.inf), ValueError, "y contains NaN or infinity"),
    "complex": (np.full(120, 1j), ValueError, "[Cc]omplex"),
    "dates": (np.full(120, "2020-01-01", dtype="M8[D]"), ValueError, r"y holds dates.*astype"),
    "time spans": (np.ones(120, dtype="m8[s]"), ValueError, r"time spans.*timedelta64\[s\]"),
    "date objects": ([datetime.date(2020, 1, 1)] * 120, ValueError, r"y holds dates.*dtype object"),
    "masked": (np.ma.masked_equal(np.arange(120) % 3, 2), ValueError, r"y has 40 masked.*filled"),
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
    "time spans": (np.ones(120, dtype="m8[s]"), "sample_weight.*timedelta64"),
    "masked": (np.ma.masked_less(np.arange(120.0), 3), "sample_weight has 3 masked values"),
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
    "n_estimators": [0, -3, 2.5, "many", None, True, 10**9, 10**30],
    "data_shape": [3.5, "abc", (2, 2), (0, 6), (), -6, (6.0,), (-2, -3)],
    "channel_axis": [0, 2, -2, "red", 0.5, True],
    "align": ["top", None, 1, True, ("left",)],
    "max_features": [0, -1, 0.0, -0.5, "all", True, np.nan, np.inf, [3]],
    "splitter": ["best", "random", None, 3],
    "criterion": ["mse", None, 3],
    "max_depth": [0, -1, 2.5, "deep", True],
    "min_samples_split": [0, -1, 1.5, 0.0, "two", None, True, np.nan],
    "min_samples_leaf": [0, -1, 1.5, 0.0, "one", None, True, np.nan],
    "min_weight_fraction_leaf": [-0.1, 0.6, "half", None, np.nan, True],
    "min_impurity_decrease": [-0.1, "some", None, np.nan, True],
    "max_leaf_nodes": [1, 0, -1, 2.5, "few", True],
    "min_child_fraction": [-0.1, 0.6, "half", None, np.nan, True],
    "random_split_rate": [-0.1, 1.1, "some", None, np.nan, True],
    "honest": [1, "yes", None],
    "honest_fraction": [0, 1, 1.5, "half", None, np.nan, True],
    "honest_prior": ["none", None, 3],
    "bootstrap": [1, "yes", None],
    "max_samples": [0, -1, 1.5, 0.0, 121, "all", "n**2", True, np.nan],
    "oob_score": ["yes", 1, None],
    "keep_samples": ["yes", 1, None],
    "augment": ["rotate", 3, True],
    "class_weight": ["even", 3, [1, 2], {0: -1}, {0: np.nan}, {0: np.inf}, {0: "x"}],
    "warm_start": [1, "yes", None],
    "n_jobs": [0, "all", 1.5, 10**30, -(10**30)],
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
    with pytest.raises(ValueError, match=r"honest=.oob. needs samples that a tree has not drawn"):
        classifier(honest="oob", bootstrap=False).fit(X, y)
    with pytest.raises(ValueError, match="oob_score needs bootstrap=True"):
        classifier(oob_score=True, bootstrap=False).fit(X, y)
    with pytest.raises(ValueError, match=r"data_shape=\(3, 2\) contradicts.*\(2, 3\)"):
        classifier(data_shape=(3, 2)).fit(X.reshape(-1, 2, 3), y)
    with pytest.raises(ValueError, match=r"data_shape=\(2, 2\).*4 features.*has 6"):
        classifier(data_shape=(2, 2)).fit(X, y)


ONES = np.ones((2, 6))
BAD_DICTIONARIES = [
    (3, TypeError, r"dictionary must be.*got 3\."),
    ("Patch", ValueError, "dictionary must be.*got 'Patch'"),
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
    (
        Patch(size_distribution="linear"),
        ValueError,
        "size_distribution must be one of .*got 'linear'",
    ),
    (Patch(size_distribution=["log"]), ValueError, r"size_distribution .*got \['log'\]"),
    (Patch(views="raw"), ValueError, r"views must be .*Gradient\(\).*got 'raw'"),
    (Patch(views=[]), ValueError, r"views .*got \[\]"),
    (Patch(views=[Raw(), None]), ValueError, r"views .*got \[Raw\(\), None\]"),
    (Patch(views=Raw), ValueError, r"views .*got <class"),
    (Haar(0), ValueError, "min_size=0 "),
    (Haar(1, 5), ValueError, "max_size=5 along axis 0 "),
    (Haar(size_distribution=2), ValueError, "size_distribution .*got 2"),
    (Haar(lobes="square"), ValueError, 'lobes must be "two", "three" or a list.*square'),
    (Haar(lobes=[]), ValueError, r"lobes .*got \[\]"),
    (Haar(lobes=["two", 3]), ValueError, r"lobes .*got \['two', 3\]"),
    (Haar(lobes=None), ValueError, "lobes .*got None"),
    (Haar(lobes="two", axes=2), ValueError, r"axes .*from -2 to 1, got 2"),
    (Haar(lobes="two", axes=()), ValueError, r"axes .*got \(\)"),
    (Haar(lobes="two", axes=(0, "x")), ValueError, r"axes .*got \(0, 'x'\)"),
    (Haar(lobes="two", axes=True), ValueError, "axes .*got True"),
    (Haar(), ValueError, "3 boxes of min_size=1 do not fit .*axis 0 of length 2"),
    (
        Haar((1, 2), (1, 2), lobes="two"),
        ValueError,
        "2 boxes of min_size=2 .*axis 1 of length 3",
    ),
    (Haar(lobes="two", views=3), ValueError, "views .*got 3"),
    (Pair(3), ValueError, "min_size=3 along axis 0"),
    (Pair(1, (1, 1, 1)), ValueError, r"max_size=\(1, 1, 1\) has 3 entries"),
    (Pair(reach=2), ValueError, r"reach .*from 0 to 1 .*got 2 for axis 0 of length 2"),
    (Pair(reach=-1), ValueError, "reach .*got -1"),
    (Pair(reach=1.5), ValueError, r"reach .*got 1\.5"),
    (Pair(reach=np.nan), ValueError, "reach .*got nan"),
    (Pair(reach="far"), ValueError, "reach .*got 'far'"),
    (Pair(reach=True), ValueError, "reach .*got True"),
    (Pair(reach=(1,)), ValueError, r"reach=\(1,\) has 1 entries"),
    (Pair(size_distribution=None), ValueError, "size_distribution .*got None"),
    (Pair(views=Patch()), ValueError, r"views .*got Patch\(\)"),
    (Kernel("round"), ValueError, "kernel must be one of 'gaussian'.*got 'round'"),
    (Kernel(None), ValueError, "kernel .*got None"),
    (Kernel(3), ValueError, "kernel .*got 3"),
    (Kernel([]), ValueError, r"kernel .*got \[\]"),
    (Kernel(["a"]), ValueError, r"kernel must hold numbers, got \['a'\]"),
    (Kernel([[1, 2], [3]]), ValueError, "kernel must hold numbers"),
    (Patch(10**30), ValueError, "min_size=1000+ along axis 0 is impossible.*give 1 to 2"),
    (Patch(np.array(1)), ValueError, r"min_size must be made of .*got array\(1\)"),
    (Patch(1, np.nan), ValueError, "max_size must be made of .*got nan"),
    (Pair(reach=10**30), ValueError, "reach must be made of integers from 0 to 1 .*got 1000+"),
    (Pair(reach=np.nan), ValueError, "reach must be made of .*got nan"),
    (Kernel("sign", dilation=10**30), ValueError, "dilation must be an integer from 1 to 2147"),
    (Kernel([1], dilation=2**31), ValueError, "dilation must be an integer from 1 to 2147483647"),
    (Kernel([10**400]), ValueError, "kernel must hold numbers"),
    (Kernel(rivals=10**30), ValueError, "rivals must be an integer from 1 to 1000, got 1000+"),
    (Patch(1, 1, pool="max", window=10**30), ValueError, "window must be None, .*got 1000+"),
    (Patch(views=Gradient(10**30)), ValueError, "orientations must be an integer from 1 to 64"),
    (SparseOblique(np.nan), ValueError, "rate must be a positive number up to 1e9, got nan"),
    (SparseOblique(density=np.nan), ValueError, r"density must be in \(0, 1\], got nan"),
    (Atoms([[10**400] * 6]), ValueError, "matrix must be a sparse matrix"),
    (Atoms(np.eye(6), probabilities=[1e308] * 6), ValueError, "probabilities .*their sum"),
    (Mixture([Axis(), Patch()], [1e308, 1e308]), ValueError, "weights=.* must be finite"),
    (Mixture([Axis(), Patch()], [10**400, 1]), ValueError, "weights must hold numbers"),
    (Subset(Axis(), 10**30), ValueError, "n_atoms must be an integer from 1 to 1000000, got 10+"),
    (SharedAtoms(Axis(), np.nan), ValueError, "n_atoms must be an integer from 1 to 1000000"),
    (Subset(SharedAtoms(Axis())), ValueError, r"must not be a SharedAtoms itself: .*Subset\(Axis"),
    (SharedAtoms(Subset(Axis())), ValueError, r"must not be a Subset itself: .*SharedAtoms\(Axis"),
    (Kernel([0, 0]), ValueError, r"kernel .*not zero, got \[0, 0\]"),
    (Kernel([0.5, 1]), ValueError, r"kernel must hold whole numbers.*got \[0\.5, 1\].*Atoms"),
    (Kernel([1, np.nan]), ValueError, r"kernel must hold whole numbers"),
    (Kernel([1, 2**21]), ValueError, r"kernel must hold whole numbers of at most 1048576"),
    (Kernel([np.ones(2), np.empty(0)]), ValueError, r"kernel .*at least one weight"),
    (Kernel([1, 2, 3, 4]), ValueError, r"shape \(1, 4\), which does not fit.*\(2, 3\)"),
    (Kernel(np.ones((1, 1, 1))), ValueError, "kernel has an array of 3 axes.* have 2"),
    (Kernel("triple"), ValueError, r"kernel='triple' .*shape \(1, 9\), which does not fit"),
    (Kernel("triple", min_size=3), ValueError, "min_size=3 .*leave them out"),
    (Kernel([1, 1], max_size=3), ValueError, "max_size=3 .*leave them out"),
    (Kernel(min_size=4), ValueError, "min_size=4 along axis 0"),
    (Kernel("sign", max_size=0), ValueError, "max_size=0 along axis 0"),
    (Kernel([1, 1], dilation=3), ValueError, "does not fit .* with dilation=3"),
    (Kernel([1, 1], dilation=0), ValueError, "dilation .*got 0"),
    (Kernel([1, 1], dilation=1.5), ValueError, r"dilation .*got 1\.5"),
    (Kernel([1, 1], dilation="exp"), ValueError, "dilation .*got 'exp'"),
    (Kernel([1, 1], dilation=True), ValueError, "dilation .*got True"),
    (Kernel([1, 1], views=0), ValueError, "views .*got 0"),
    (Patch(views=Difference(2)), ValueError, r"axis must be .*from -2 to 1 .*got 2"),
    (Patch(views=Difference("x")), ValueError, "axis .*got 'x'"),
    (Patch(views=Magnitude(1)), ValueError, r"axes must be two axes of a sample, .*got 1"),
    (Patch(views=Magnitude((0, 5))), ValueError, "axes must be an integer from -2 to 1.*got 5"),
    (Patch(views=Gradient(axes=(1, -1))), ValueError, r"two different axes, got \(1, -1\)"),
    (Patch(views=Gradient(axes=(1,))), ValueError, r"axes .*got \(1,\)"),
    (Patch(views=Gradient(0)), ValueError, "orientations .*from 1 to 64, got 0"),
    (Patch(views=Gradient(65)), ValueError, "orientations .*got 65"),
    (Patch(views=Gradient(2.0)), ValueError, r"orientations .*got 2\.0"),
    (Mixture([Axis(), Patch(views=1)]), ValueError, "views .*got 1"),
    (
        Mixture([Atoms(np.ones((1, 6)) / 3), Patch(views=Square())]),
        ValueError,
        "Derived views and pooled atoms need exact integers.*fractional or huge weights",
    ),
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
    (
        Atoms(ONES, probabilities=[1]),
        ValueError,
        r"probabilities has shape \(1,\), expected \(2,\)",
    ),
    (
        Atoms(ONES, probabilities=[1, -1]),
        ValueError,
        "probabilities must be finite and not negative",
    ),
    (Atoms(ONES, probabilities=[0, 0]), ValueError, "probabilities are all zero"),
    (Atoms(ONES, probabilities=[1, np.nan]), ValueError, "probabilities must be finite"),
    (Atoms(ONES, probabilities=["a", "b"]), ValueError, "probabilities"),
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


def test_images_and_series_need_their_own_channels():
    X, y = samples()
    for views in (Gradient(), Magnitude()):
        with pytest.raises(ValueError, match=r"two axes.*\(6,\).*Difference\(\)"):
            classifier(Patch(views=views)).fit(X, y)
        with pytest.raises(ValueError, match=r"two axes.*one axis of which holds channels"):
            classifier(Patch(views=views), channel_axis=1).fit(X.reshape(-1, 2, 3), y)
    with pytest.raises(ValueError, match=r"axes=None leaves no axis.*\(6,\)"):
        classifier(Haar(), channel_axis=1).fit(X, y)
    with pytest.raises(ValueError, match=r"make \d+ weights of kernels .*fewer or smaller"):
        Kernel("gabor", 1, 100).sample((100, 100))


def test_channels_of_too_wide_a_range_are_rounded_with_a_warning():
    X, y = samples()
    with pytest.warns(UserWarning, match=r"X spans many orders of magnitude.*scale the columns"):
        classifier(Patch(views=Square())).fit(X * [1, 1, 1, 1, 1e-12, 1e12], y)


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


@pytest.mark.parametrize("dictionaries", ["patch", Axis(), None, ["patch", Axis()], [None]])
def test_parameters_of_a_wrong_mixture_can_be_read_and_set(dictionaries):
    """A search, and the repr, read them before a fit says what is wrong."""
    model = MorfClassifier(Mixture(dictionaries))
    assert model.get_params()["dictionary__dictionaries"] is dictionaries
    model.set_params(dictionary__weights=[1.0])
    with pytest.raises((ValueError, TypeError), match="dictionaries must"):
        model.fit(np.zeros((4, 3)), [0, 1, 0, 1])
    model.set_params(dictionary__dictionaries=[Axis(), Patch()], dictionary__1__max_size=2)
    assert model.get_params()["dictionary__1__max_size"] == 2


def test_parameters_of_what_is_no_dictionary_are_refused():
    with pytest.raises(ValueError, match="'0__max_size': 'patch' is no dictionary"):
        Mixture(["patch", Axis()]).set_params(**{"0__max_size": 3})


def test_huge_and_tiny_targets_give_no_warnings():
    X = np.random.default_rng(0).normal(size=(40, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny = MorfRegressor(n_estimators=2, min_impurity_decrease=0.01).fit(X, X[:, 0] * 1e-300)
        huge = MorfRegressor(n_estimators=2).fit(X, X[:, 0] * 1e200)
        assert [len(tree) for tree in tiny.splits_] == [0, 0]  # 0.01 is more than all variance
        assert np.isinf(huge.splits_[0].gain[0])  # the square of 1e200


@pytest.mark.parametrize("n", [-1, 1.5, "many", True, 10**30])
def test_sampling_refuses_bad_numbers(n):
    with pytest.raises(ValueError, match=f"n must be .*{n!r}"):
        Axis().sample((3,), n)


@pytest.mark.parametrize("shape", [(), (0, 3), (2.5,), -1, "ab", None, 1e308, 10**30, (2**20,) * 2])
def test_sampling_refuses_bad_shapes(shape):
    with pytest.raises((ValueError, TypeError), match="shape"):
        Axis().sample(shape)


def test_messages_survive_pickling_of_the_estimator():
    model = pickle.loads(pickle.dumps(classifier(max_depth=0)))
    with pytest.raises(ValueError, match=r"max_depth .*got 0"):
        model.fit(*samples())
