"""Data that people pass by mistake, and what every door says about it."""

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from morforest import (
    AtomFeatures,
    AtomRidgeClassifier,
    AtomRidgeRegressor,
    Haar,
    MorfBoostingClassifier,
    MorfBoostingRegressor,
    MorfClassifier,
    MorfRegressor,
    MorfTreeClassifier,
    MorfTreeRegressor,
    Patch,
)

ESTIMATORS = {
    "forest": MorfClassifier(n_estimators=2, keep_samples=True, random_state=0),
    "regression": MorfRegressor(n_estimators=2, keep_samples=True, random_state=0),
    "tree": MorfTreeClassifier(random_state=0),
    "regression tree": MorfTreeRegressor(random_state=0),
    "boosting": MorfBoostingClassifier(max_iter=2, calibration_folds=2, random_state=0),
    "boosted regression": MorfBoostingRegressor(max_iter=2, calibration_folds=2, random_state=0),
    "ridge": AtomRidgeClassifier("sporf", 20, random_state=0),
    "ridge regression": AtomRidgeRegressor("sporf", 20, random_state=0),
    "atoms": AtomFeatures("sporf", 20, random_state=0),
}
METHODS = (  # that take samples
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "transform",
    "apply",
    "decision_path",
    "attributions",
    "weights",
    "proximity",
    "predict_interval",
    "predict_set",
    "predict_std",
    "staged_predict",
)


def table(n=60):
    X = pd.DataFrame({"age": np.arange(n) % 40 + 20.0, "children": np.arange(n) % 4})
    return X, np.arange(n) % 2


def doors(model):
    """Every method of a model that takes samples."""
    for name in METHODS:
        if hasattr(model, name):
            found = getattr(model, name)
            yield (lambda X, ask=found: list(ask(X))) if name.startswith("staged") else found


def refuse_everywhere(estimator, good, bad, message, error=ValueError):
    """Check that neither the fit nor any question takes bad samples."""
    X, y = good
    with pytest.raises(error, match=message) as caught:
        estimator.fit(bad, y)
    assert type(estimator).__name__ in str(caught.value) or "ColumnTransformer" not in message
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(X, y)
    for ask in doors(estimator):
        with pytest.raises(error, match=message):
            ask(bad)


# --- categories ------------------------------------------------------------------------------

CATEGORIES = {
    "category": lambda n: pd.Categorical(["red", "blue"] * (n // 2)),
    "object": lambda n: ["red", 7] * (n // 2),
    "string": lambda n: pd.array(["red", "blue"] * (n // 2), dtype="string"),
    "datetime64": lambda n: pd.date_range("2026-01-01", periods=n),
    "timedelta64": lambda n: pd.timedelta_range("1s", periods=n),
}


@pytest.mark.parametrize("kind", CATEGORIES)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_columns_of_pandas_that_are_not_numbers_are_named(name, kind):
    X, y = table()
    bad = X.assign(colour=CATEGORIES[kind](len(X)))
    message = (
        rf"(?s)not numeric: 'colour' \({kind}.*ColumnTransformer.*OrdinalEncoder\(\), \['colour'"
    )
    refuse_everywhere(ESTIMATORS[name], (X.assign(colour=1), y), bad, message)


POLARS = {
    "Categorical": lambda n: pl.Series(["red", "blue"] * (n // 2), dtype=pl.Categorical),
    "Enum": lambda n: pl.Series(["red", "blue"] * (n // 2), dtype=pl.Enum(["red", "blue"])),
    "String": lambda n: pl.Series(["red", None] * (n // 2)),
    "Date": lambda n: pl.Series(pd.date_range("2026-01-01", periods=n)).cast(pl.Date),
    "Duration": lambda n: pl.Series(pd.timedelta_range("1s", periods=n)),
    "List": lambda n: pl.Series([[1, 2]] * n),
    "Object": lambda n: pl.Series([object()] * n, dtype=pl.Object),
}


@pytest.mark.parametrize("kind", POLARS)
@pytest.mark.parametrize("name", ["forest", "boosted regression", "ridge", "atoms"])
def test_columns_of_polars_that_are_not_numbers_are_named(name, kind):
    X, y = table()
    good = pl.DataFrame(X.assign(colour=1).to_dict("list"))
    bad = good.with_columns(POLARS[kind](len(X)).alias("colour"))
    refuse_everywhere(ESTIMATORS[name], (good, y), bad, rf"not numeric: 'colour' \({kind}")


def test_many_columns_are_cut_short():
    X, y = table()
    bad = X.assign(**{f"word {k}": "red" for k in range(8)})
    with pytest.raises(ValueError, match=r"'word 4' \([^)]*\) and 3 more.*") as caught:
        MorfClassifier(n_estimators=2).fit(bad, y)
    assert "'word 5'" not in str(caught.value)
    assert len(str(caught.value)) < 700


def test_the_remedy_works():
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    X, y = table()
    bad = X.assign(colour=pd.Categorical(np.where(y, "red", "blue")))
    with pytest.raises(ValueError, match="not numeric") as caught:
        MorfClassifier().fit(bad, y)
    names = {
        "ColumnTransformer": ColumnTransformer,
        "OrdinalEncoder": OrdinalEncoder,
        "make_pipeline": make_pipeline,
        "MorfClassifier": MorfClassifier,
    }
    for line in str(caught.value).splitlines()[1:]:
        exec(line.strip(), names)
    assert names["model"].fit(bad, y).score(bad, y) == 1.0


def test_arrays_of_words_name_their_columns():
    y = np.arange(60) % 2
    objects = np.array([[1.5, "red", None]] * 60, dtype=object)
    with pytest.raises(ValueError, match=r"not numeric: 1 \(such as 'red'\)"):
        MorfClassifier(n_estimators=2).fit(objects, y)
    with pytest.raises(ValueError, match=r"not numeric: 0 \(such as 'red'\)"):
        MorfClassifier(n_estimators=2).fit(np.array([["red", "2"]] * 60), y)
    with pytest.raises(ValueError, match=r"numbers as strings .*X\.astype\(float\)"):
        MorfClassifier(n_estimators=2).fit(np.array([["1", "2"]] * 60), y)
    with pytest.raises(ValueError, match=r"X holds dates.*timedelta64\(1, \"D\"\)"):
        MorfClassifier(n_estimators=2).fit(np.full((60, 2), "2026-01-01", dtype="M8[s]"), y)


# --- numbers of other kinds ------------------------------------------------------------------

NUMBERS = {
    "Int64": [3, 1, 2],
    "UInt8": [3, 1, 2],
    "boolean": [True, False, True],
    "Float64": [0.5, 1.5, -2.0],
    "bool": [True, False, True],
    "object": [3, 1, 2],
    "float32": [0.5, 1.5, -2.0],
    "category": [3, 1, 2],
    "Int64 beyond float64": [2**60, 2**60 + 1, 5],
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_of_any_kind_of_pandas_are_numbers(kind):
    X, y = table()
    values = NUMBERS[kind] * 20
    given = X.assign(more=pd.Series(values).astype(kind.split(" ")[0]))
    plain = np.array(values)
    expected = MorfClassifier(n_estimators=3, random_state=0).fit(X.assign(more=plain), y)
    model = MorfClassifier(n_estimators=3, random_state=0).fit(given, y)
    assert list(model.feature_names_in_) == ["age", "children", "more"]
    np.testing.assert_array_equal(model.predict_proba(given), expected.predict_proba(given))
    np.testing.assert_array_equal(model.apply(given), expected.apply(X.assign(more=plain)))


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "Float64", "object"])
def test_missing_numbers_of_pandas_are_nan(dtype):
    from morforest._inputs import read_samples

    X, _ = table(6)
    given = X.assign(more=pd.Series([1, None, 0, 1, pd.NA, 0], dtype=dtype))
    before = given.copy()
    found = read_samples(given, "MorfClassifier")
    np.testing.assert_array_equal(found["more"], [1, np.nan, 0, 1, np.nan, 0])
    assert found["more"].dtype == np.float64
    assert list(found.columns) == ["age", "children", "more"]
    pd.testing.assert_frame_equal(given, before)


def test_missing_numbers_of_polars_are_nan():
    from morforest._inputs import read_samples

    given = pl.DataFrame(
        {
            "whole": [1, None, 2],
            "flag": [True, None, False],
            "real": [0.5, None, 1.5],
            "nothing": [None, None, None],
            "plain": [1, 2, 3],
        }
    )
    found = read_samples(given, "MorfClassifier")
    expected = [[1, 1, 0.5, np.nan, 1], [np.nan] * 4 + [2], [2, 0, 1.5, np.nan, 3]]
    np.testing.assert_array_equal(found.to_numpy(), expected)
    assert found.columns == given.columns


def test_columns_of_the_same_name_are_kept_apart():
    from morforest._inputs import read_samples

    X = pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]).astype("Int64")
    np.testing.assert_array_equal(read_samples(X, "MorfClassifier").to_numpy(), [[1, 2], [3, 4]])


def test_plain_frames_are_left_alone():
    from morforest._inputs import read_samples

    X, _ = table()
    assert read_samples(X, "MorfClassifier") is X
    frame = pl.DataFrame(X.to_dict("list"))
    assert read_samples(frame, "MorfClassifier") is frame


# --- lazy frames and tensors -----------------------------------------------------------------


@pytest.mark.parametrize("name", ESTIMATORS)
def test_lazy_frames_ask_to_be_collected(name):
    X, y = table()
    frame = pl.DataFrame(X.to_dict("list"))
    refuse_everywhere(ESTIMATORS[name], (frame, y), frame.lazy(), r"X\.collect\(\)", TypeError)


class Tensor:
    """What torch shows of a tensor, without torch."""

    def __init__(self, values, requires_grad=False, device="cpu", dtype="torch.float32"):
        self.values = np.asarray(values)
        self.requires_grad, self.device, self.dtype = requires_grad, device, dtype
        self.shape = self.values.shape

    def __array__(self, dtype=None, copy=None):
        if self.requires_grad or self.device != "cpu" or self.dtype == "torch.bfloat16":
            raise RuntimeError("raw")
        return self.values


TENSORS = {
    "requires grad": ({"requires_grad": True}, r"requires grad: pass X\.detach\(\)\.numpy\(\)"),
    "bfloat16": ({"dtype": "torch.bfloat16"}, r"torch\.bfloat16.*pass X\.float\(\)\.numpy\(\)"),
    "elsewhere": ({"device": "cuda:0"}, r"cuda:0: pass X\.cpu\(\)\.numpy\(\)"),
    "all": (
        {"requires_grad": True, "dtype": "torch.bfloat16", "device": "cuda:0"},
        r"X\.detach\(\)\.cpu\(\)\.float\(\)\.numpy\(\)",
    ),
}


@pytest.mark.parametrize("kind", TENSORS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_tensors_that_numpy_cannot_read_say_what_to_do(name, kind):
    options, message = TENSORS[kind]
    X, y = np.arange(120.0).reshape(60, 2), np.arange(60) % 2
    refuse_everywhere(ESTIMATORS[name], (X, y), Tensor(X, **options), message, TypeError)


def test_plain_tensors_are_arrays():
    X, y = np.arange(120.0).reshape(60, 2), np.arange(60) % 2
    model = MorfClassifier(n_estimators=2, random_state=0).fit(Tensor(X), y)
    np.testing.assert_array_equal(model.predict(Tensor(X)), model.predict(X))


# --- shapes ----------------------------------------------------------------------------------


def images(n=20):
    return np.random.default_rng(0).integers(0, 9, (n, 6, 10)), np.arange(n) % 2


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_sample_without_its_axis_says_how_to_add_it(name):
    X, y = images()
    model = ESTIMATORS[name]
    for samples in (X, X.reshape(20, 60), X.reshape(20, 3, 2, 10)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(samples, y)
        for ask in doors(model):
            with pytest.raises(ValueError, match=r"single sample.*pass X\[None\]"):
                ask(samples[0])
            with pytest.raises(ValueError, match=r"single sample.*pass X\[None\]"):
                ask(samples[0].ravel())
            ask(samples[0][None])


def test_a_row_of_flat_features_is_a_batch_of_one():
    X, y = images()
    model = MorfClassifier(n_estimators=2, random_state=0).fit(X.reshape(20, 1, 60), y)
    assert model.predict(X[0].reshape(1, 60)).shape == (1,)  # the shape of a sample, too


SHAPES = {
    "a channel more": (
        (6, 10),
        (1, 6, 10),
        r"axes of length one: pass X\.reshape\(len\(X\), 6, 10\)",
    ),
    "a channel less": ((1, 6, 10), (6, 10), r"pass X\.reshape\(len\(X\), 1, 6, 10\)"),
    "a channel behind": (
        (6, 10),
        (6, 10, 1),
        r"axes of length one: pass X\.reshape\(len\(X\), 6, 10\)",
    ),
    "turned": ((6, 10), (10, 6), r"\(10, 6\).*\(6, 10\).*60 features.*another arrangement"),
    "other sizes": ((6, 10), (3, 20), r"\(3, 20\).*\(6, 10\).*60 features.*another arrangement"),
    "images to rows": (
        (60,),
        (6, 10),
        r"\(6, 10\).*\(60,\).*flat rows.*X\.reshape\(len\(X\), -1\)",
    ),
    "too small": ((6, 10), (6, 9), r"\(6, 9\).*\(6, 10\): pass such samples, or flat rows of 60"),
    "rows too short": ((6, 10), (54,), "54 features.*60 features"),
}


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("name", ["forest", "regression tree", "boosting", "ridge", "atoms"])
def test_samples_of_another_shape_say_what_to_do(name, kind):
    fitted, given, message = SHAPES[kind]
    X, y = images()
    model = ESTIMATORS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X.reshape(20, *fitted), y)
    for ask in doors(model):
        with pytest.raises(ValueError, match=message):
            ask(np.zeros((5, *given)))


@pytest.mark.parametrize("dictionary", [Patch((2, 2), (3, 3)), Patch(2, 3), Haar((2, 2), (3, 3))])
def test_channels_that_were_not_named_are_asked_for(dictionary):
    X, y = images()
    with pytest.raises(ValueError, match=r"holds channels, name it.*channel_axis=1"):
        MorfClassifier(dictionary, n_estimators=2).fit(X[:, None], y)
    MorfClassifier(dictionary, n_estimators=2, channel_axis=1).fit(X[:, None], y)


def test_polytopes_read_what_models_read():
    X, y = images()
    model = MorfTreeClassifier(Patch(1, 2), random_state=0).fit(X, y)
    polytope = model.polytope(0, model.apply(X)[0, 0])
    inside = polytope.contains(X)
    np.testing.assert_array_equal(polytope.contains(sp.csr_matrix(X.reshape(20, 60))), inside)
    np.testing.assert_array_equal(polytope.contains(pd.DataFrame(X.reshape(20, 60))), inside)
    with pytest.raises(ValueError, match=r"single sample.*pass X\[None\]"):
        polytope.contains(X[0])
    with pytest.raises(TypeError, match=r"X\.collect\(\)"):
        polytope.contains(pl.DataFrame(X.reshape(20, 60)).lazy())
    with pytest.raises(ValueError, match="shape"):
        polytope.contains(sp.csr_matrix(np.zeros((3, 7))))


@pytest.mark.parametrize("X", [{"age": [1, 2]}, (row for row in [[1], [2]]), object()], ids=repr)
def test_what_is_no_array_is_told(X):
    with pytest.raises(TypeError, match=rf"X is a {type(X).__name__}, which is no array.*pass a"):
        MorfClassifier(n_estimators=2).fit(X, [0, 1])


def test_arrays_of_dates_name_their_columns():
    X = np.array([[1, datetime.date(2026, 1, 1)]] * 20, dtype=object)
    with pytest.raises(ValueError, match=r"not numeric: 1 \(such as '2026-01-01'\)"):
        MorfClassifier(n_estimators=2).fit(X, np.arange(20) % 2)


def test_tables_of_arrow_name_their_columns_by_number():
    arrow = pytest.importorskip("pyarrow")
    y = np.arange(20) % 2
    with pytest.raises(ValueError, match=r"not numeric: 1 \(such as 'red'\)"):
        MorfClassifier(n_estimators=2).fit(arrow.table({"a": y, "b": ["red"] * 20}), y)
    model = MorfClassifier(n_estimators=2, random_state=0).fit(arrow.table({"a": y, "b": y}), y)
    assert model.predict(arrow.table({"a": y, "b": y})).tolist() == y.tolist()
