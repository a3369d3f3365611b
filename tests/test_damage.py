"""Damaged states are refused when they are loaded, or are models that work; see damage.py."""

from collections import Counter
from inspect import signature
from types import SimpleNamespace

import damage
import numpy as np
import pytest
from common import missing_codes
from damage import MODELS, QUESTIONS, damaged_pickle, model, run, samples, try_state, use
from sklearn.exceptions import NotFittedError

from morforest import AtomFeatures

STATES = 4300


@pytest.mark.parametrize("name", MODELS)
def test_undamaged_models_can_be_asked_everything(name):
    use(model(name))


def test_damaged_states_are_refused_or_work():
    counts, failures = run(STATES, seed=11)
    assert not failures, "\n".join(f"state {n}, {name}: {text}" for n, name, text in failures)
    for name, found in counts.items():
        assert found["refused"] > 10, name
        assert found["works"] > 10, name


def test_the_same_number_is_the_same_damage():
    states = {number: damaged_pickle("patches", 0, number) for number in range(20)}
    assert all(damaged_pickle("patches", 0, n) == state for n, state in states.items())
    assert len(set(states.values())) == len(states)


def test_a_failure_is_seen(monkeypatch):
    # A model that loads and then raises is a failure, and so is a refusal in other words.
    monkeypatch.setattr("damage.damaged_pickle", lambda *_: _pickled(Unusable()))
    outcome, text = try_state("patches", 0, 0)
    assert (outcome, "ZeroDivisionError" in text) == ("exception", True)
    monkeypatch.setattr("damage.damaged_pickle", lambda *_: _pickled(Refusing()))
    assert try_state("patches", 0, 0)[0] == "exception"


def test_only_models_without_attributes_are_unfitted(monkeypatch):
    monkeypatch.setattr("damage.damaged_pickle", lambda *_: _pickled(AtomFeatures()))
    assert try_state("patches", 0, 0)[0] == "unfitted"
    monkeypatch.setattr("damage.damaged_pickle", lambda *_: _pickled(HalfFitted()))
    outcome, text = try_state("patches", 0, 0)
    assert (outcome, "NotFittedError" in text) == ("exception", True)


class HalfFitted:
    def __init__(self):
        self.classes_ = 3

    def predict(self, X):
        raise NotFittedError


class Unusable:
    def predict(self, X):
        return np.ones(len(samples())) / (1 // 0)


class Refusing:
    def __setstate__(self, state):
        raise ValueError("something else")

    def __getstate__(self):
        return {"some": "state"}


def _pickled(thing):
    import pickle

    return pickle.dumps(thing)


# --- what is said ----------------------------------------------------------------------------


def changed(name, **changes):
    """Load a model with some attributes replaced; those set to ... are left out."""
    found = model(name)
    state = {**found.__getstate__(), **changes}
    loaded = object.__new__(type(found))
    loaded.__setstate__({k: v for k, v in state.items() if v is not ...})
    return loaded


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("patches", {"classes_": np.arange(2), "n_classes_": 2}, "leaves do not fit the classes"),
        ("patches", {"classes_": np.array([0, 2, 1])}, "classes_ are not sorted"),
        ("patches", {"classes_": np.array([0.0, 1.0, np.nan])}, "classes_ are not sorted"),
        ("patches", {"classes_": np.zeros((3, 1))}, "classes_ is not a list"),
        ("patches", {"classes_": [0, 1, 2]}, "classes_ is not a list"),
        ("patches", {"classes_": np.array([0, "a", None], dtype=object)}, "TypeError"),
        ("patches", {"classes_": ...}, "AttributeError.*classes_"),
        ("patches", {"n_classes_": 4}, "n_classes_ is not the number"),
        ("patches", {"data_shape_": (6, 4)}, r"samples of shape \(6, 4\), but atoms over \(4, 6\)"),
        ("patches", {"data_shape_": [4, 6]}, "samples of shape"),
        ("patches", {"data_shape_": (2**20, 2**20)}, "samples of shape"),
        ("patches", {"n_features_in_": 25}, "samples of 25 features"),
        ("patches", {"n_jobs": ...}, "the parameter n_jobs is missing"),
        ("patches", {"n_jobs": "two"}, "n_jobs must be"),
        ("patches", {"dictionary_": 3}, "dictionary_ is not a dictionary"),
        ("patches", {"_seed": -1}, "the seed"),
        ("patches", {"_forest": None}, "but no _forest"),
        ("patches", {"_forest": 3}, "_forest is not a forest"),
        ("features, named", {"feature_names_in_": np.array(["x"])}, "feature_names_in_"),
        ("features, named", {"feature_names_in_": np.arange(24)}, "feature_names_in_"),
        ("boosting", {"_baseline": np.zeros(2)}, "_baseline"),
        ("boosting", {"_baseline": np.array([0, np.inf, 0])}, "_baseline"),
        ("boosting", {"_baseline": ...}, "AttributeError"),
        ("boosting", {"n_iter_": 4}, "n_iter_ is not the number of trees"),
        ("boosting", {"classes_": np.arange(2)}, "n_classes_"),
        ("boosting of numbers", {"_exponent": 10**6}, "the exponent of the targets"),
        ("atom features", {"_format": 3}, "TypeError"),
        ("atom features", {"_atoms": None}, "but no _atoms"),
        ("atom features", {"_channel_axis": 2}, "the channel axis"),
        ("atom features", {"data_shape_": (24,)}, "samples of shape"),
        ("atom features", {"_coarse": 31}, "the number of coarse atoms"),
        ("atom features", {"_coarse": -1}, "the number of coarse atoms"),
        ("atom features", {"dtype": "float16"}, "dtype must be"),
        ("atom features", {"dtype": ">f8"}, "dtype must be"),
        ("atom features", {"dtype": "f8,,"}, "dtype must be"),  # a SyntaxError of NumPy
        ("atom features", {"dtype": ("f8", -1)}, "dtype must be"),
        ("atom features", {"dtype": {"a": ("f8", 10**30)}}, "dtype must be"),
        ("atom features", {"dtype": None}, "dtype must be"),
        ("atom features", {"dtype": ...}, "the parameter dtype is missing"),
        ("ridge", {"coef_": np.zeros((3, 29))}, "coef_"),
        ("ridge", {"coef_": np.full((3, 30), np.nan)}, "coef_"),
        ("ridge", {"intercept_": 0.0}, "intercept_"),
        ("ridge", {"_mean": np.zeros(29)}, "_mean"),
        ("ridge", {"_deviation": np.full(30, -1.0)}, "negative deviations"),
        ("ridge", {"_origin": np.full(30, np.inf)}, "_origin"),
        ("ridge", {"coef_": ...}, "AttributeError.*coef_"),
        ("ridge", {"coef_": np.full((3, 30), 1e306)}, "coef_ has weights whose scores overflow"),
        ("ridge", {"coef_": np.zeros((3, 30)).tolist()}, "coef_"),
        ("ridge", {"intercept_": np.array([0, np.nan, 0])}, "intercept_"),
        ("ridge", {"classes_": np.arange(4)}, "coef_"),
        ("ridge", {"classes_": np.arange(2)}, "coef_"),
        ("ridge", {"classes_": np.arange(1)}, "one class only"),
        ("ridge", {"classes_": np.array([0, 2, 1])}, "classes_ are not sorted"),
        ("ridge", {"temperature_": 0.0}, "temperature_"),
        ("ridge", {"temperature_": np.nan}, "temperature_"),
        ("ridge", {"temperature_": np.inf}, "temperature_"),
        ("ridge", {"temperature_": 5e-324}, "temperature_"),  # its inverse overflows
        ("ridge", {"temperature_": None}, "temperature_"),
        ("ridge", {"alpha_": "1"}, "alpha_"),
        ("ridge", {"alpha_": 0.0}, "alpha_ is not a penalty from 1e-50 to 1e"),
        ("ridge", {"alpha_": 1e60}, "alpha_ is not a penalty from 1e-50 to 1e"),
        ("ridge", {"alpha_": np.nan}, "alpha_ is not a penalty"),
        ("ridge", {"alphas": ...}, "the parameter alphas is missing"),
        ("ridge", {"features_": 3}, "features_ are not drawn atoms"),
        ("ridge", {"features_": AtomFeatures()}, "features_ are not drawn atoms"),
        ("ridge", {"features_": SimpleNamespace(_core=3)}, "features_ are not drawn atoms"),
        ("ridge", {"features_": None}, "but no features_"),
        ("ridge", {"data_shape_": (6, 4)}, "samples of shape"),
        ("ridge", {"n_jobs": 0}, "n_jobs must be"),
        ("ridge", {"loo_decision_function_": np.zeros(40)}, "loo_decision_function_"),
        ("ridge", {"loo_decision_function_": np.zeros((40, 2))}, "loo_decision_function_"),
        ("ridge", {"loo_decision_function_": None}, "loo_decision_function_"),
        ("ridge of two classes", {"coef_": np.zeros((2, 30))}, "coef_"),
        ("ridge of two classes", {"loo_decision_function_": np.zeros((40, 1))}, "loo_decision"),
        ("ridge of numbers", {"coef_": np.zeros((1, 30))}, "coef_"),
        ("ridge of numbers", {"intercept_": np.zeros(1)}, "intercept_"),
        ("ridge of numbers", {"loo_prediction_": np.zeros(0)}, "loo_prediction_"),
    ],
)
def test_what_is_wrong_is_named(name, changes, message):
    changed(name)
    with pytest.raises(ValueError, match=f"^damaged model: .*{message}"):
        changed(name, **changes)


@pytest.mark.parametrize("name", ["ridge", "ridge of two classes", "ridge of numbers"])
def test_what_no_prediction_needs_may_be_deleted(name):
    use(changed(name, loo_decision_function_=..., loo_prediction_=...))


def test_the_largest_scores_that_load_make_probabilities():
    # Eight standard deviations in each of thirty atoms are short of an overflow.
    loaded = changed("ridge", coef_=np.full((3, 30), 7e305) * [[1], [-1], [0]])
    found = loaded.predict_proba(samples().reshape(-1, 24))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_models_with_other_names_of_features_are_used_with_these():
    names = np.array([f"y{i}" for i in range(24)], dtype=object)
    use(changed("features, named", feature_names_in_=names))


def test_everything_of_samples_is_asked():
    # A new method that takes samples must be in the list, or be left out for a reason.
    other = {"fit", "fit_transform", "score", "predict_quantiles"}  # intervals are made of these
    for name in MODELS:
        kind = type(model(name))
        methods = [getattr(kind, m) for m in dir(kind) if not m.startswith("_")]
        taking = {m.__name__ for m in methods if callable(m) and "X" in signature(m).parameters}
        assert taking <= other | set(QUESTIONS), name


def test_the_report_says_what_was_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(damage, "sanitizers", lambda: ["AddressSanitizer"])
    path = tmp_path / "damage.md"
    counts = {"patches": Counter(refused=3, works=2, crash=1)}
    damage.write_report(path, counts, "python tests/damage.py --states 6")
    text = path.read_text()
    assert "| model | states | refused | unfitted | works | exception | crash |" in text
    assert "| patches | 6 | 3 | 0 | 2 | 0 | 1 |" in text
    assert "`python tests/damage.py --states 6`" in text
    assert "built with AddressSanitizer." in text


def forest_changed(name, **changes):
    state = {**model(name)._forest.__getstate__(), **changes}
    forest = object.__new__(type(model(name)._forest))
    forest.__setstate__(state)
    return changed(name, _forest=forest)


def format_with(name, **changes):
    """The pickled form of a format of cells with some fields replaced."""
    fields = ["shift", "real", "integers", "bound"]
    bounds = ["mass", "nonnegative", "integral", "derived", "nonlinear", "positions", "side"]
    *first, rest = model(name)._forest.cell_format.dump()
    first = {**dict(zip(fields, first, strict=True))}
    rest = {**dict(zip(bounds, rest, strict=True))}
    for key, value in changes.items():
        (first if key in first else rest)[key] = value
    return (*first.values(), tuple(rest.values()))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("patches", {"shift": 10**6}),
        ("patches", {"shift": 3}),  # of integers
        ("patches", {"shift": 0.0}),
        ("patches", {"real": True}),
        ("patches", {"integers": 1}),
        ("patches", {"bound": np.nan}),
        ("patches", {"bound": -1.0}),
        ("patches", {"bound": np.inf}),
        ("patches", {"mass": np.inf}),
        ("patches", {"mass": None}),
        ("patches", {"side": np.nan}),
        ("patches", {"nonlinear": True}),
        ("patches", {"derived": ((("square", 0, 0, 1.0, 0.0), 9.0),)}),
        ("gradients", {"derived": ()}),
        ("pooled", {"nonlinear": False}),
        ("pooled", {"positions": 1.0}),
        ("fractional weights", {"real": False}),
    ],
)
def test_formats_of_cells_that_no_data_have_are_refused(name, changes):
    forest_changed(name, cell_format=format_with(name))
    with pytest.raises(ValueError, match=r"^damaged"):
        forest_changed(name, cell_format=format_with(name, **changes))


def test_columns_cannot_be_left_out():
    with pytest.raises(ValueError, match="damaged model: samples of shape"):
        forest_changed("shared", columns=None)


def test_leaf_values_beyond_any_target_are_refused():
    values = model("kernels")._forest.leaf_value.astype(float)
    values[0] = 1e301
    with pytest.raises(ValueError, match="damaged forest: leaf values"):
        forest_changed("kernels", leaf_value=values)


CODES = "side"  # the name in the state of a forest, with a code per split


@pytest.mark.parametrize("name", ["gaps", "gaps, pooled", "gaps, boosting"])
def test_codes_of_missing_values_must_be_such(name):
    forest = model(name)._forest
    codes = missing_codes(forest)[forest.is_split()]
    assert codes.all()
    np.testing.assert_array_equal(forest.__getstate__()[CODES], codes)
    forest_changed(name, **{CODES: codes})
    too_large = np.append(codes[:-1], 5)
    for damaged in (codes + 4, too_large, codes[:-1], np.append(codes, 1), codes[None], None):
        with pytest.raises(ValueError, match=r"^damaged"):
            forest_changed(name, **{CODES: damaged})
