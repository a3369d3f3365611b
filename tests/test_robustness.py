"""Interrupts, memory, progress, and damaged files."""

import copy
import dataclasses
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import morforest._forest_base
from morforest import Atoms, Axis, Mixture, MorfClassifier, MorfRegressor, Patch
from morforest._model import CORE_TYPES

N_TREES = 4


def data(n=150):
    X = np.random.default_rng(0).integers(0, 30, (n, 4, 5))
    return X, (X[:, 0, 0] + X[:, 1, 1] > 29).astype(int)


def run(script, *arguments, timeout=60, **options):
    """Run a script in a process of its own; fail with its output if it fails."""
    child = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        **options,
    )
    assert child.returncode == 0, f"exit {child.returncode}\n{child.stdout}\n{child.stderr}"
    return child


# --- Ctrl-C ----------------------------------------------------------------------------------

INTERRUPTED = """
import sys, threading, time
import numpy as np, psutil
from sklearn.exceptions import NotFittedError
from morforest import MorfClassifier, Patch

kind, jobs, warm = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "warm"
rng = np.random.default_rng(0)
if kind == "few long trees":
    X, parameters = rng.integers(0, 256, (6000, 40, 40), dtype=np.uint8), {"max_features": 4.0}
else:
    X, parameters = rng.normal(size=(300, 10)), {"max_features": 3}
y = rng.integers(0, 2, len(X))
MorfClassifier(n_estimators=4, n_jobs=jobs).fit(X[:50], y[:50])  # what starts threads has started
before = psutil.Process().num_threads()
model = MorfClassifier(
    n_estimators=10**6, n_jobs=jobs, warm_start=warm, random_state=0, **parameters
)
print("ready", flush=True)
try:
    model.fit(X, y)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        python = threading.active_count()
        native = psutil.Process().num_threads()
        if python == 1 and native <= before:
            break
        time.sleep(0.05)
    start = time.process_time()
    time.sleep(0.3)
    busy = time.process_time() - start
    try:
        trees = model.apply(X[:1]).shape[1]
        smaller = MorfClassifier(n_estimators=trees, random_state=0, **parameters)
        same = trees > 200 or np.array_equal(
            smaller.fit(X, y).predict_proba(X[:50]), model.predict_proba(X[:50])
        )
    except NotFittedError:
        trees, same = 0, True
    print(python, native - before, busy < 0.15, trees, same, flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    ("kind", "warm"), [("few long trees", "cold"), ("many short trees", "warm")]
)
def test_an_interrupt_ends_a_fit_at_once(kind, n_jobs, warm):
    arguments = [sys.executable, "-c", INTERRUPTED, kind, str(n_jobs), warm]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as child:
        watchdog = threading.Timer(60, child.kill)
        watchdog.start()
        try:
            assert child.stdout.readline() == "ready\n"
            time.sleep(0.7)
            start = time.monotonic()
            child.send_signal(signal.SIGINT)
            line = child.stdout.readline()
            took = time.monotonic() - start
            report = child.stdout.readline().split()
            assert child.wait() == 0
        finally:
            child.kill()
            watchdog.cancel()
    assert line == "interrupted\n"
    assert took < 2.5  # a second, and more where other tests want the processor
    python_threads, new_threads, idle, trees, same = report
    assert python_threads == "1"
    assert int(new_threads) <= 0
    assert idle == "True"
    assert same == "True"
    if warm == "cold":
        assert trees == "0"
    elif kind == "many short trees":
        assert 0 < int(trees) < 10**6


def interrupt_after(monkeypatch, n_trees):
    """Let growing raise KeyboardInterrupt after some trees."""
    grow_trees = morforest._forest_base.grow_trees

    def interrupted(*arguments):
        for i, tree in enumerate(grow_trees(*arguments)):
            if i == n_trees:
                raise KeyboardInterrupt
            yield tree

    monkeypatch.setattr(morforest._forest_base, "grow_trees", interrupted)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupted_warm_start_goes_on_where_it_stopped(monkeypatch, n_jobs):
    X, y = data()
    model = MorfClassifier(n_estimators=9, warm_start=True, random_state=0, n_jobs=n_jobs)
    with monkeypatch.context() as patch:
        interrupt_after(patch, 5)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    assert model.apply(X).shape == (len(X), 5)
    model.fit(X, y)
    at_once = MorfClassifier(n_estimators=9, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.apply(X), at_once.apply(X))
    np.testing.assert_array_equal(model.predict_proba(X), at_once.predict_proba(X))


@pytest.mark.parametrize("warm_start", [False, True])
def test_an_interrupt_before_the_first_tree_leaves_the_estimator_unfitted(monkeypatch, warm_start):
    X, y = data()
    model = MorfClassifier(n_estimators=9, warm_start=warm_start)
    interrupt_after(monkeypatch, 0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not [name for name in vars(model) if name.endswith("_")]
    assert not model.__sklearn_is_fitted__()


def test_an_interrupted_second_fit_leaves_the_first(monkeypatch):
    X, y = data()
    model = MorfClassifier(n_estimators=N_TREES, random_state=0).fit(X, y)
    before = model.predict_proba(X)
    interrupt_after(monkeypatch, 2)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :2], np.array(["a", "b", "c"])[y + 1])
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert list(model.classes_) == [0, 1]
    assert model.data_shape_ == (4, 5)


def test_threads_end_with_a_fit():
    X, y = data()
    before = set(threading.enumerate())
    MorfClassifier(n_estimators=40, n_jobs=4, random_state=0).fit(X, y).predict(X)
    deadline = time.monotonic() + 5
    while set(threading.enumerate()) - before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not set(threading.enumerate()) - before


# --- memory and files ------------------------------------------------------------------------


def test_repeated_fits_do_not_grow_memory():
    # A table that stayed behind at each fit would cost 40 megabytes or more; the heaps of threads
    # alone come to twenty.
    script = """
        import gc, pickle
        import numpy as np, psutil
        from morforest import MorfClassifier, MorfRegressor, Patch

        rng = np.random.default_rng(0)
        X = rng.integers(0, 256, (1000, 30, 30), dtype=np.uint8)
        y = rng.integers(0, 2, 1000)

        def work(n_jobs):
            for estimator in (MorfClassifier, MorfRegressor):
                model = estimator(Patch(max_size=5), n_estimators=4, max_features=4, n_jobs=n_jobs)
                model.fit(X, y).predict(X)
                model.fit(X / 7, y)
                pickle.loads(pickle.dumps(model)).apply(X)
                model.feature_importances_
                try:
                    model.set_params(max_features="wrong").fit(X, y)
                except ValueError:
                    pass

        def resident():
            gc.collect()
            return psutil.Process().memory_info().rss / 2**20

        for n_jobs in (1, 2):
            for _ in range(3):
                work(n_jobs)
        before = resident()
        for i in range(12):
            work(1 + i % 2)
        print(resident() - before)
    """
    assert float(run(script).stdout) < 30


def test_no_files_are_left(tmp_path):
    script = """
        import joblib, numpy as np
        from morforest import MorfClassifier
        X = np.random.default_rng(0).random((400, 20, 20))
        for backend in ("threading", "loky"):
            with joblib.parallel_config(backend=backend):
                model = MorfClassifier(n_estimators=4, n_jobs=2, verbose=1)
                model.fit(X, np.arange(400) % 2).predict(X)
    """
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    home.mkdir()
    temporary.mkdir()
    places = {"TMPDIR": temporary, "TEMP": temporary, "TMP": temporary, "HOME": home}
    places["JOBLIB_TEMP_FOLDER"] = temporary
    environment = {**os.environ, **{name: str(path) for name, path in places.items()}}
    run(script, cwd=home, env=environment)
    assert list(home.iterdir()) == []
    assert list(temporary.iterdir()) == []


# --- progress --------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_goes_to_standard_error(capfd, n_jobs):
    X, y = data()
    MorfClassifier(n_estimators=7, verbose=1, n_jobs=n_jobs).fit(X, y).predict(X)
    out, err = capfd.readouterr()
    assert out == ""
    assert "trees 7/7" in err
    assert "left" in err


def test_nothing_is_printed_unless_asked(capfd):
    X, y = data()
    MorfClassifier(n_estimators=7, n_jobs=2, oob_score=False).fit(X, y).predict(X)
    assert capfd.readouterr() == ("", "")


def test_progress_of_a_warm_start_counts_new_trees(capfd):
    X, y = data()
    model = MorfClassifier(n_estimators=3, warm_start=True).fit(X, y)
    model.set_params(n_estimators=8, verbose=1).fit(X, y)
    assert "trees 5/5" in capfd.readouterr().err


# --- damaged files ---------------------------------------------------------------------------


def forest_of(kind):
    X, y = data()
    common = {"n_estimators": N_TREES, "random_state": 0}
    if kind == "classes":
        model = MorfClassifier(Mixture([Patch(max_size=2), Axis()]), min_samples_leaf=5, **common)
        return model.fit(X, y)
    if kind == "numbers":
        return MorfRegressor(Patch(max_size=2), min_samples_leaf=5, **common).fit(X, y * 0.37)
    rng = np.random.default_rng(1)  # fractional atoms make float64 cells
    atoms = Atoms(rng.normal(size=(12, 20)))
    return MorfClassifier(atoms, min_samples_leaf=5, **common).fit(X, y)


@pytest.fixture(scope="module", params=["classes", "numbers", "reals"])
def forest(request):
    return forest_of(request.param)._forest


def contents(forest):
    """Copy the fields of a forest."""
    return {f.name: copy.deepcopy(getattr(forest, f.name)) for f in dataclasses.fields(forest)}


def damaged(forest, **changes):
    """Make a forest with some fields replaced, checked as after loading.

    Fields of its atoms are named `term_count`, `term_cell` and so on.
    """
    found = contents(forest)
    atoms = {k.removeprefix("term_"): v for k, v in changes.items() if k in TERMS}
    found |= {k: v for k, v in changes.items() if k not in TERMS}
    found["atoms"] = dataclasses.replace(found["atoms"], **atoms)
    return type(forest)(**found).check()


TERMS = ("term_count", "term_cell", "term_weight", "layout")


def field(forest, name):
    """Return an array of a forest or of its atoms."""
    return getattr(forest.atoms if name in TERMS else forest, name.removeprefix("term_"))


def load(forest, **changes):
    """Load a forest from a pickled state with some parts replaced."""
    loaded = object.__new__(type(forest))
    loaded.__setstate__({**copy.deepcopy(forest.__getstate__()), **changes})
    return loaded


def put(array, place, value):
    """Replace one element, in a type that holds the new value."""
    wide = array.astype(np.float64 if isinstance(value, float) else np.int64)
    wide[place] = value
    return wide


def plane(
    kind="raw",
    axis=0,
    other_axis=0,
    cosine=1.0,
    sine=0.0,
    prefixed_axes=(),
    circular_axes=(),
    pooled=False,
):
    """A plane as pickles hold it."""
    return (kind, axis, other_axis, cosine, sine), prefixed_axes, circular_axes, pooled


def first(mask):
    return int(np.flatnonzero(mask)[0])


def test_an_undamaged_state_loads(forest):
    X = data()[0].reshape(-1, 20)
    for same in (damaged(forest), load(forest)):
        np.testing.assert_array_equal(same.predict(X), forest.predict(X))
        for name, value in contents(same).items():
            expected = getattr(forest, name)
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(value, expected)
            else:
                assert value == expected


ARRAYS = [*CORE_TYPES, "threshold", "weight", "gain", *TERMS[:3]]


@pytest.mark.parametrize("name", ARRAYS)
def test_missing_or_additional_entries_are_refused(forest, name):
    array = field(forest, name)
    if not array.size:
        pytest.skip("not used by this forest")
    for other in (array[:-1], array[:0], np.concatenate([array, array[-1:]])):
        if name == "leaf_value" and len(other) > len(array):
            continue  # a value that no leaf points to does no harm
        with pytest.raises(ValueError, match="damaged"):
            damaged(forest, **{name: other})


@pytest.mark.parametrize("value", [0, 10**6, 2**31 - 1, 2**31, 2**40, 2**62])
def test_children_out_of_range_are_refused(forest, value):
    split = forest.is_split()
    for node in (first(split), len(split) - 1 - first(split[::-1])):
        with pytest.raises(ValueError, match="damaged forest"):
            damaged(forest, next=put(forest.next, node, value))


def test_children_before_their_parent_are_refused(forest):
    # Such a walk would never end.
    inner = first(forest.is_split() & (np.arange(len(forest.next)) > 0))
    for value in (0, inner, inner - 1):
        with pytest.raises(ValueError, match="damaged forest: child"):
            damaged(forest, next=put(forest.next, inner, value))


@pytest.mark.parametrize("value", [-(10**6), -(2**31), -(2**31) - 1, -(2**40)])
def test_payloads_out_of_range_are_refused(forest, value):
    with pytest.raises(ValueError, match="damaged forest"):
        damaged(forest, next=put(forest.next, first(~forest.is_split()), value))


@pytest.mark.parametrize("value", [-1, 10**6, 2**32 - 1, 2**32, 2**40])
def test_cells_out_of_range_are_refused(forest, value):
    with pytest.raises(ValueError, match="damaged"):
        damaged(forest, term_cell=put(forest.atoms.cell, -1, value))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["threshold", "term_weight", "leaf_value", "gain", "weight"])
def test_numbers_that_are_none_are_refused(forest, name, value):
    array = field(forest, name)
    if not array.size:
        pytest.skip("not used by this forest")
    if name == "leaf_value" and np.isnan(value):
        pytest.skip("such a leaf of an honest tree does not vote")
    with pytest.raises(ValueError, match="damaged"):
        damaged(forest, **{name: put(array, 0, value)})


def test_leaves_without_a_vote_are_refused_unless_trees_are_honest():
    model = forest_of("numbers")
    state = model.__getstate__()
    state["_forest"] = dataclasses.replace(
        model._forest, leaf_value=put(model._forest.leaf_value, 0, np.nan)
    )
    with pytest.raises(ValueError, match="damaged model: leaves that say nothing"):
        MorfRegressor.__new__(MorfRegressor).__setstate__(state)


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63)])
def test_thresholds_beyond_any_atom_are_refused(value):
    forest = forest_of("classes")._forest
    with pytest.raises(ValueError, match="damaged forest: threshold"):
        damaged(forest, threshold=put(forest.threshold, 0, value))


def test_term_counts_that_do_not_fit_are_refused(forest):
    for value in (0, 10**6, 2**32 - 1, 2**32, -1):
        with pytest.raises(ValueError, match="damaged"):
            damaged(forest, term_count=put(forest.atoms.count, 0, value))


def test_damaged_distributions_are_refused():
    forest = forest_of("classes")._forest
    for name, value in [
        ("distribution_size", 0),
        ("distribution_size", 10**6),
        ("distribution_size", 2**32),
        ("distribution_class", 2),
        ("distribution_class", 2**32),
        ("distribution_class", -1),
        ("distribution_weight", 0),
        ("distribution_weight", -1),
        ("distribution_weight", 2**32),
    ]:
        with pytest.raises(ValueError, match="damaged forest"):
            damaged(forest, **{name: put(getattr(forest, name), 0, value)})


@pytest.mark.parametrize(
    "change",
    [
        lambda begin: begin[::-1],
        lambda begin: np.concatenate([[1], begin[1:]]),
        lambda begin: np.concatenate([[-1], begin[1:]]),
        lambda begin: put(begin, 1, 0),
        lambda begin: put(begin, 1, -(2**40)),
        lambda begin: put(begin, 1, 2**62),
        lambda begin: put(begin, -1, 2**31),
        lambda begin: begin[:1],
    ],
)
def test_tree_offsets_out_of_order_are_refused(forest, change):
    begin = forest.tree_begin.astype(np.int64)
    with pytest.raises(ValueError, match="damaged forest"):
        damaged(forest, tree_begin=change(begin))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("shape", ()),
        ("shape", (0, 20)),
        ("shape", (-4, -5)),
        ("shape", (4, 2)),
        ("shape", (2**20, 2**20)),
        ("shape", (10**30, 1)),
        ("shape", [4, 5]),
        ("shape", (4.0, 5.0)),
        ("shape", None),
        ("planes", ()),
        ("planes", None),
        ("planes", ((),)),
        ("planes", (plane(),) * 3),
        ("planes", (plane(kind="derived"),)),
        ("planes", (plane(kind=None),)),
        ("planes", (plane(kind="squared_difference", axis=-1),)),
        ("planes", (plane(kind="difference", axis=2),)),
        ("planes", (plane(kind="magnitude", axis=1, other_axis=1),)),
        ("planes", (plane(kind="orientation", other_axis=1, cosine=np.nan),)),
        ("planes", (plane(kind="orientation", other_axis=1, cosine="1"),)),
        ("planes", (plane(prefixed_axes=(31,)),)),
        ("planes", (plane(prefixed_axes=(1, 0)),)),
        ("planes", (plane(prefixed_axes=0),)),
        ("planes", (plane(circular_axes=(0,)),)),
        ("planes", (plane(pooled=1),)),
        ("planes", (plane(pooled=True), plane())),
        ("ordered_axes", (2,)),
        ("ordered_axes", (1, 0)),
        ("ordered_axes", (0, 0)),
        ("ordered_axes", (0.0,)),
        ("ordered_axes", None),
    ],
)
def test_impossible_layouts_are_refused(name, value):
    forest = forest_of("classes")._forest
    layout = forest.atoms.layout
    parts = dict(zip(("shape", "planes", "ordered_axes"), layout.dump(), strict=True))
    assert type(layout).load(tuple(parts.values())) == layout
    state = parts | {name: value}
    with pytest.raises(ValueError, match="damaged"):
        load(forest, layout=tuple(state.values()))


@pytest.mark.parametrize("value", [-1, 2**40])
def test_impossible_numbers_of_classes_are_refused(value):
    with pytest.raises(ValueError, match="damaged forest"):
        damaged(forest_of("classes")._forest, class_count=value)


def test_fewer_classes_than_leaves_hold_are_refused():
    forest = forest_of("classes")._forest
    with pytest.raises(ValueError, match="damaged forest"):
        damaged(forest, class_count=1)


def test_leaves_have_nothing_but_their_payload(forest):
    leaf = first(~forest.is_split())
    for name in ("threshold", "gain"):
        with pytest.raises(ValueError, match="damaged forest: a leaf"):
            damaged(forest, **{name: put(getattr(forest, name), leaf, 1)})


def test_weights_that_do_not_add_up_are_refused(forest):
    for node in (0, first(~forest.is_split())):
        with pytest.raises(ValueError, match="damaged forest: the weights"):
            damaged(forest, weight=put(forest.weight, node, int(forest.weight[node]) + 1))


@pytest.mark.parametrize("found", [0, 1, 4, 6, None, "5", True, 5.0])
def test_other_formats_are_refused(forest, found):
    with pytest.raises(ValueError, match=r"saved in format .* reads format 5: load it with"):
        load(forest, format=found)


def test_states_with_missing_parts_are_refused(forest):
    for name, value in forest.__getstate__().items():
        state = {k: v for k, v in forest.__getstate__().items() if k != name}
        with pytest.raises(ValueError, match=r"damaged|saved in format"):
            object.__new__(type(forest)).__setstate__(state)
        if isinstance(value, np.ndarray) and value.size and name != "leaf_value":
            for other in (value[:-1], np.concatenate([value, value[-1:]]), value.astype(object)):
                with pytest.raises(ValueError, match="damaged"):
                    load(forest, **{name: other})


def test_patches_beyond_the_sample_are_refused():
    X, y = data()
    forest = MorfClassifier(Patch(max_size=2), n_estimators=2, random_state=0).fit(X, y)._forest
    state = forest.__getstate__()
    for name, value in [
        ("patch_last", -1),
        ("patch_last", 20),
        ("patch_last", 2**40),
        ("patch_size", -1),
        ("patch_size", 200),
        ("patch_size", 2**62),
    ]:
        with pytest.raises(ValueError, match="damaged forest"):
            load(forest, **{name: put(state[name], 0, value)})
    for widest in (0, -1, 10**30, "2"):
        with pytest.raises(ValueError, match="damaged forest"):
            load(forest, widest_patch=widest)


def test_cut_pickles_are_refused():
    whole = pickle.dumps(forest_of("classes"))
    for size in range(0, len(whole) - 1, max(1, len(whole) // 40)):
        with pytest.raises((pickle.UnpicklingError, EOFError, ValueError)):
            pickle.loads(whole[:size])
