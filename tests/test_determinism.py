"""The same samples and seed give the same forest, bit by bit, however it is computed.

golden.json holds a hash of each array of some forests. ``python tests/test_determinism.py --write``
writes it anew from what is installed. Do so only when a change is meant to change forests, look at
which arrays differ in the diff, and say so in the changelog.
"""

import functools
import hashlib
import itertools
import json
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from common import (
    FROZEN_COLUMNS,
    FROZEN_NODES,
    frozen_arrays,
)
from golden_cases import (
    BEYOND,
    classifier,
    digits,
    golden_cases,
    images,
    regressor,
    table,
    whole_numbers,
)

import morforest
from morforest import (
    Axis,
    Mixture,
    Patch,
    SparseOblique,
)
from morforest._native import core

GOLDEN = Path(__file__).with_name("golden.json")


# --- data that are the same everywhere -------------------------------------------------------


# --- comparison ------------------------------------------------------------------------------


def predictions(model, X):
    found = model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)
    return np.concatenate(found, axis=1) if isinstance(found, list) else found


def assert_same(a, b, X=None, other_X=None):
    """Equal in every bit: the arrays of the forests, and predictions for X."""
    ours, theirs = frozen_arrays(a), frozen_arrays(b)
    assert ours.keys() == theirs.keys()
    for name, values in ours.items():
        assert values.dtype == theirs[name].dtype, name
        assert values.shape == theirs[name].shape, name
        assert values.tobytes() == theirs[name].tobytes(), name
    if X is not None:
        other_X = X if other_X is None else other_X
        assert predictions(a, X).tobytes() == predictions(b, other_X).tobytes()


# --- threads and processes -------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [2, 4, -1])
@pytest.mark.parametrize("n_trees", [1, 3, 70])
def test_the_number_of_jobs_does_not_matter(n_jobs, n_trees):
    X, y = digits()
    one, many = (
        classifier(n_estimators=n_trees, n_jobs=jobs, oob_score=n_trees > 50).fit(X, y)
        for jobs in (1, n_jobs)
    )
    # Enough rows for predictions to be shared among threads.
    assert_same(one, many, np.concatenate([X] * 5))
    if n_trees > 50:
        assert one.oob_decision_function_.tobytes() == many.oob_decision_function_.tobytes()
    many.n_jobs = 1
    assert_same(one, many, X)


def test_the_number_of_jobs_does_not_matter_in_regression():
    X, _, y = table()
    one, many = (regressor(n_jobs=jobs, n_estimators=20).fit(X, y) for jobs in (1, 3))
    assert_same(one, many, np.concatenate([X] * 5))


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing", "sequential"])
def test_the_backend_does_not_matter(backend):
    X, y = digits()
    expected = classifier(Mixture([Patch(max_size=3), Axis()]), n_estimators=8).fit(X, y)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        model = classifier(Mixture([Patch(max_size=3), Axis()]), n_estimators=8).fit(X, y)
        assert_same(model, expected, np.concatenate([X] * 3))


def test_many_trees_begin_with_the_few():
    X, y = digits()
    few, many = (classifier(n_estimators=n).fit(X, y) for n in (3, 7))
    nodes = int(few._forest.tree_begin[-1])
    assert many._forest.tree_begin[3] == nodes
    np.testing.assert_array_equal(few._forest.thresholds(), many._forest.thresholds()[:nodes])
    np.testing.assert_array_equal(few.apply(X), many.apply(X)[:, :3])


# --- the form of the data --------------------------------------------------------------------


@pytest.mark.parametrize("dictionary", [None, Patch((2, 2), (3, 9)), SparseOblique(), Axis()])
def test_images_and_flat_rows_with_a_shape_are_the_same(dictionary):
    X, y = images()
    flat = X.reshape(-1, 784)
    shaped = classifier(dictionary).fit(X, y)
    rows = classifier(dictionary, data_shape=(28, 28)).fit(flat, y)
    assert_same(shaped, rows, X, flat)
    assert shaped.feature_importances_.tobytes() == rows.feature_importances_.tobytes()


def test_memory_order_does_not_matter():
    X, y = images()
    expected = classifier().fit(X, y)
    wide = np.zeros((len(X), 28, 56), dtype=X.dtype)
    wide[:, :, ::2] = X
    for same in (np.asfortranarray(X), wide[:, :, ::2], X[:, ::-1][:, ::-1]):
        assert_same(classifier().fit(same, y), expected, same, X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.int64, np.uint64])
@pytest.mark.parametrize("dictionary", [Patch((1, 1), (5, 5)), SparseOblique()])
def test_the_type_of_whole_numbers_does_not_matter(dtype, dictionary):
    X, y = images()
    expected = classifier(dictionary).fit(X, y)
    assert_same(classifier(dictionary).fit(X.astype(dtype), y), expected, X.astype(dtype), X)


def test_booleans_are_zeros_and_ones():
    X, y = images()
    expected = classifier().fit((X > 99).astype(np.float32), y)
    assert_same(classifier().fit(X > 99, y), expected, X > 99, (X > 99).astype(int))


def test_single_and_double_precision_of_the_same_numbers_are_the_same():
    X, y, _ = table()
    X = X.astype(np.float32)
    assert_same(classifier().fit(X, y), classifier().fit(X.astype(float), y), X)


def test_labels_do_not_matter():
    X, y = digits()
    names = np.array([f"class {i}" for i in range(10)])
    assert_same(classifier().fit(X, y), classifier().fit(X, names[y]), X)


def test_batches_of_predictions_do_not_matter():
    for X, model in (
        (table()[0], classifier().fit(*table()[:2])),
        (digits()[0], classifier().fit(*digits())),
    ):
        whole = model.predict_proba(X)
        parts = [model.predict_proba(X[i : i + 7]) for i in range(0, len(X), 7)]
        assert np.concatenate(parts).tobytes() == whole.tobytes()


# --- a forest is a function of the multiset of samples ---------------------------------------

VARIANTS = {
    "default": {},
    "all rows": {"bootstrap": False},
    "small bags": {"max_samples": 0.4},
    "leaves": {"min_samples_leaf": 0.02, "min_samples_split": 9},
    "best first": {"max_leaf_nodes": 12},
    "exact": {"splitter": "exact"},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_the_order_of_rows_does_not_matter(name):
    order = np.argsort(whole_numbers(300, 2**30, 3), kind="stable")
    X, y = digits()
    model = classifier(**VARIANTS[name]).fit(X, y)
    assert_same(model, classifier(**VARIANTS[name]).fit(X[order], y[order]), X)
    X, labels, y = table()
    for criterion in ("squared_error", "absolute_error", "poisson"):
        model = regressor(criterion=criterion, **VARIANTS[name]).fit(X, y)
        other = regressor(criterion=criterion, **VARIANTS[name]).fit(X[order], y[order])
        assert_same(model, other, X)
    model = classifier(class_weight="balanced_subsample", **VARIANTS[name]).fit(X, labels)
    other = classifier(class_weight="balanced_subsample", **VARIANTS[name])
    assert_same(model, other.fit(X[order], labels[order]), X)


def test_the_order_of_rows_does_not_matter_out_of_bag():
    X, y = digits()
    order = np.argsort(whole_numbers(300, 2**30, 3), kind="stable")
    model = classifier(n_estimators=30, oob_score=True).fit(X, y)
    other = classifier(n_estimators=30, oob_score=True).fit(X[order], y[order])
    np.testing.assert_array_equal(model.oob_decision_function_[order], other.oob_decision_function_)


@pytest.mark.parametrize("bootstrap", [True, False])
def test_the_order_of_weighted_rows_does_not_matter(bootstrap):
    X, y, _ = table()
    order = np.argsort(whole_numbers(300, 2**30, 3), kind="stable")
    weights = (whole_numbers(300, 1000, 4) + 1) / 7
    for class_weight in (None, "balanced", "balanced_subsample"):
        common = {"bootstrap": bootstrap, "class_weight": class_weight}
        model = classifier(**common).fit(X, y, sample_weight=weights)
        other = classifier(**common).fit(X[order], y[order], sample_weight=weights[order])
        assert_same(model, other, X)


def test_the_order_of_many_rows_does_not_matter():
    # The number format is chosen by a look at the data, which must not hang on the order: a few
    # small numbers, here in neighbouring rows, ask for a finer one.
    n = 4096
    X = whole_numbers(n * 2, 10_000).reshape(n, 2) / 7
    X[:, 1] = np.where(np.isin(np.arange(n), np.arange(2, 60, 4)), 3e-8, 0)
    y = X[:, 0] % 3 + (X[:, 1] > 0)
    forests = []
    for shift in range(4):
        rows = np.roll(np.arange(n), shift)
        forests.append(regressor(Axis(), n_estimators=2, max_depth=6).fit(X[rows], y[rows]))
    for a, b in itertools.pairwise(forests):
        assert a._forest.cell_format == b._forest.cell_format
        assert_same(a, b, X)


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("kind", ["images", "floats", "balanced", "regression"])
def test_a_weight_of_two_is_the_row_twice(name, kind):
    common = VARIANTS[name]
    X, labels, target = table()
    make, X, y = {
        "images": (classifier, *digits()),
        "floats": (classifier, X, labels),
        "balanced": (functools.partial(classifier, class_weight="balanced"), X, labels),
        "regression": (regressor, X, target),
    }[kind]
    times = whole_numbers(len(X), 4, 6)
    repeated = np.repeat(np.arange(len(X)), times)
    weighted = make(**common).fit(X, y, sample_weight=times)
    assert_same(weighted, make(**common).fit(X[repeated], y[repeated]), X)
    assert_same(weighted, make(**common).fit(X, y, sample_weight=times.astype(float)), X)


def test_weights_of_one_are_no_weights():
    X, y = digits()
    assert_same(classifier().fit(X, y), classifier().fit(X, y, sample_weight=np.ones(300)), X)


def test_a_weight_of_zero_is_no_row():
    X, y, target = table()
    for weights in (whole_numbers(300, 2, 7), whole_numbers(300, 2, 7) * 0.3):
        keep = weights > 0
        model = classifier().fit(X, y, sample_weight=weights)
        assert_same(model, classifier().fit(X[keep], y[keep], sample_weight=weights[keep]), X)
        model = regressor().fit(X, target, sample_weight=weights)
        other = regressor().fit(X[keep], target[keep], sample_weight=weights[keep])
        assert_same(model, other, X)


# --- derived views ---------------------------------------------------------------------------


def test_views_depend_on_nothing_else_either():
    X, y = digits()
    model = classifier(BEYOND["image"]).fit(X, y)
    order = np.argsort(whole_numbers(300, 2**30, 3), kind="stable")
    assert_same(model, classifier(BEYOND["image"]).fit(X[order], y[order]), X)
    assert_same(model, classifier(BEYOND["image"], n_jobs=3).fit(X, y), np.concatenate([X] * 5))
    for dtype in (np.float32, np.int64):
        other = classifier(BEYOND["image"]).fit(X.astype(dtype), y)
        assert_same(model, other, X, X.astype(dtype))
    weighted = classifier(BEYOND["image"]).fit(X, y, sample_weight=np.full(300, 2))
    assert_same(weighted, classifier(BEYOND["image"]).fit(*(np.repeat(a, 2, 0) for a in (X, y))), X)


# --- both builds of the core -----------------------------------------------------------------


@pytest.fixture
def baseline(monkeypatch):
    """Switch the package to the build for every processor."""
    if core is morforest._core:
        pytest.skip("this is the only build here")

    def switch():
        for name, module in list(sys.modules.items()):
            if name.startswith("morforest.") and getattr(module, "core", None) is core:
                monkeypatch.setattr(module, "core", morforest._core)

    return switch


# --- frozen forests --------------------------------------------------------------------------


def contents(case):
    """Fit, and return all that must stay: the forest's arrays, importances, predictions."""
    model, X, y, weights = case
    model.fit(X, y, sample_weight=weights)
    found = frozen_arrays(model) | {
        "importances": model.feature_importances_,
        "split shares": model.split_shares_,
        "predictions": predictions(model, X),
    }
    if getattr(model, "keep_samples", False):
        found["forest weights"] = model.weights(X).toarray()
        found["proximities"] = model.proximity(X)
    if "forest weights" in found and hasattr(model, "predict_quantiles"):
        found["quantiles"] = model.predict_quantiles(X, [0.0, 0.1, 0.5, 0.9, 1.0])
    if getattr(model, "_calibration", None) is not None:
        numbers = hasattr(model, "predict_interval")
        found["calibration"] = (
            model.predict_interval(X) if numbers else model.predict_set(X, allow_empty=True)
        )
    return found


def array_hash(array):
    """Hash shape and values, in whatever type they are stored: 16 digits of SHA-256."""
    wide = array.astype("<i8" if array.dtype.kind in "biu" else "<f8")
    whole = (np.rint(wide) == wide) & (np.abs(wide) < 2**53) & ~(np.signbit(wide) & (wide == 0))
    if whole.all():
        wide = wide.astype("<i8")
    header = f"{wide.dtype.str} {wide.shape} ".encode()
    return hashlib.sha256(header + wide.tobytes()).hexdigest()[:16]


def hashes(values):
    return {name: array_hash(values[name]) for name in sorted(values)}


def differing(found, frozen):
    """Names of the arrays that are not as they were frozen, or that only one side has."""
    return sorted(name for name in found | frozen if found.get(name) != frozen.get(name))


CASES = golden_cases()


@pytest.fixture(scope="module")
def golden():
    return json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("name", CASES)
def test_a_frozen_forest_is_grown_again(name, golden):
    assert differing(hashes(contents(CASES[name])), golden[name]) == []


@pytest.mark.parametrize("name", CASES)
def test_the_baseline_build_grows_it_too(name, golden, baseline):
    baseline()
    assert differing(hashes(contents(CASES[name])), golden[name]) == []


def test_frozen_forests_differ_and_are_all_there(golden):
    assert golden.keys() == CASES.keys()
    assert len({tuple(frozen.items()) for frozen in golden.values()}) == len(golden)


def test_every_array_of_a_forest_is_frozen(golden):
    # In some case at least: most are empty in some forests.
    seen = {name for frozen in golden.values() for name in frozen}
    of_atoms = {f"atom {part}" for part in ("cells", "weights", "operations", "biases", "windows")}
    of_atoms |= {"plane axes", "plane views", "pooled planes"}
    of_nodes = {"atom sizes", "missing sides"}
    assert seen == {
        *FROZEN_NODES,
        *of_atoms,
        *of_nodes,
        *(f"shared {name}" for name in {*FROZEN_COLUMNS, *of_atoms, "atom offsets"}),
        "importances",
        "split shares",
        "predictions",
        "forest weights",
        "proximities",
        "quantiles",
        "calibration",
    }


def test_a_changed_array_is_named():
    values = contents(CASES["digits, mixture, gini"])
    frozen = hashes(values)
    for name, array in values.items():
        changed = array.copy()
        last = array.flat[-1]
        changed.flat[-1] = np.nextafter(last, 9) if array.dtype.kind == "f" else last ^ 1
        assert differing(hashes({**values, name: changed}), frozen) == [name]
        assert differing(hashes({**values, name: array[..., None]}), frozen) == [name]
        assert differing(hashes({n: v for n, v in values.items() if n != name}), frozen) == [name]


def test_how_numbers_are_stored_does_not_change_a_hash():
    for values in ([0, 1, 127], [-3, 2**40]):
        stored = [np.array(values, dtype=dtype) for dtype in ("i8", "f8", ">i8", ">f8")]
        assert len({array_hash(array) for array in stored}) == 1
    values = [[0.0], [-0.0], [0.5], [1e300], [-1e300], [np.inf], [np.nan], [2.0**53], [2.0**54]]
    assert len({array_hash(np.array(value)) for value in values}) == len(values)


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(f"usage: {sys.argv[0]} --write")
    frozen = {name: hashes(contents(case)) for name, case in CASES.items()}
    GOLDEN.write_text(json.dumps(frozen, indent=2) + "\n")
