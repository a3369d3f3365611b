"""Model files: what is saved is loaded, damage is refused, and nothing that a file says is run."""

import json
import os
import pickle
import pickletools
import sys
from pathlib import Path

import damage
import numpy as np
import pytest
import scipy.sparse as sp
from damage import MODELS, model
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import morforest
from morforest import (
    AtomFeatures,
    AtomRidgeClassifier,
    Atoms,
    Axis,
    Filter,
    Graph,
    GraphFeatures,
    ImageCopies,
    Kernel,
    Mixture,
    MorfBoostingRegressor,
    MorfClassifier,
    MorfRegressor,
    MorfTreeClassifier,
    Patch,
    SeriesCopies,
    Similarity,
    White,
)
from morforest import _container as container
from morforest._model_file import decode
from morforest._states import STORED, to_plain
from morforest.dictionary._base import Dictionary
from morforest.dictionary._views import BaseView

# Files of earlier formats and versions, with what their models predict. They stay as they are; to
# add one: python tests/test_files.py NAME, for the name of a model in damage.py.
FOLDER = Path(__file__).parent / "frozen"
FROZEN = sorted(FOLDER.glob("*.safetensors"))


def assert_same_state(a, b, where=""):
    """Compare two plain states, types of numbers and arrays included."""
    assert type(a) is type(b), where
    if isinstance(a, dict):
        assert list(a) == list(b), where
        for key in a:
            assert_same_state(a[key], b[key], f"{where}.{key}")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same_state(x, y, f"{where}.{i}")
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype, where
        np.testing.assert_array_equal(a, b, where)
    elif sp.issparse(a):
        assert (a != b).nnz == 0, where
    elif isinstance(a, np.random.RandomState):
        assert a.randint(1 << 30, size=5).tolist() == b.randint(1 << 30, size=5).tolist()
    else:
        assert a == b or (a != a and b != b), where


def there_and_back(estimator, folder):
    path = folder / "model.safetensors"
    estimator.save(path)
    loaded = morforest.load(path)
    assert type(loaded) is type(estimator)
    assert_same_state(loaded.__getstate__(), estimator.__getstate__())
    return loaded


# --- what is saved is loaded --------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_models_are_loaded_as_they_were_saved(name, tmp_path):
    loaded = there_and_back(model(name), tmp_path)
    np.testing.assert_array_equal(answers(loaded), answers(model(name)))
    contents = morforest.inspect(tmp_path / "model.safetensors")
    assert contents.estimator == type(loaded).__name__
    assert contents.fitted["data_shape_"] == loaded.data_shape_
    assert contents.size == (tmp_path / "model.safetensors").stat().st_size
    assert contents.estimator in str(contents)


X, Y = damage.samples().reshape(damage.ROWS, -1), np.arange(damage.ROWS) % 3
IMAGES = damage.samples()


def labelled(labels):
    y = np.asarray(labels)[Y]
    return MorfClassifier(Axis(), n_estimators=2, random_state=0).fit(X, y)


ODD = {
    "words": lambda: labelled(["one", "\N{GREEK SMALL LETTER PI}", "three"]),
    "objects": lambda: labelled(np.array(["a", "b", "c"], dtype=object)),
    "large numbers": lambda: labelled(np.array([1, 2, 2**63 + 5], dtype=np.uint64)),
    "flags": lambda: MorfTreeClassifier(random_state=0).fit(X, Y > 1),
    "numpy numbers": lambda: MorfRegressor(
        Axis(), n_estimators=np.int64(2), min_samples_leaf=np.float32(0.25), random_state=0
    ).fit(X, Y),
    "random state": lambda: MorfRegressor(
        Axis(), n_estimators=2, random_state=np.random.RandomState(3)
    ).fit(X, Y),
    "weights of classes": lambda: MorfClassifier(
        Axis(), n_estimators=2, class_weight={0: 1.0, 1: np.float64(2.0)}, random_state=0
    ).fit(X, Y),
    "odd words": lambda: MorfClassifier(
        Axis(), n_estimators=2, class_weight={"@a": 1.0, "morforest:Axis": 2.0}, random_state=0
    ).fit(X, np.array(["@a", "morforest:Axis"])[Y % 2]),
    "sparse atoms": lambda: MorfClassifier(
        Atoms(sp.csc_matrix(np.eye(24)[:9]), probabilities=np.arange(1.0, 10)),
        n_estimators=2,
        random_state=0,
    ).fit(X, Y),
    "kernels of arrays": lambda: MorfClassifier(
        Kernel([np.ones((2, 2)), [[1, -2, 1]]]), n_estimators=2, random_state=0
    ).fit(IMAGES, Y),
    "one kernel": lambda: MorfClassifier(
        Kernel(np.array([[1.0, -1.0]])), n_estimators=2, random_state=0
    ).fit(IMAGES, Y),
    "mixture": lambda: MorfClassifier(
        Mixture([Patch((1, 2), (2, 3)), Axis()], weights=np.array([1, 2])),
        n_estimators=2,
        random_state=0,
    ).fit(IMAGES, Y),
    "copies": lambda: MorfClassifier(
        Patch(1, 2), n_estimators=2, augment=ImageCopies(copies=1), random_state=0
    ).fit(IMAGES, Y),
    "copies of series": lambda: MorfBoostingRegressor(
        Axis(), max_iter=2, augment=SeriesCopies(copies=1), random_state=0
    ).fit(X, Y),
    "trials": lambda: AtomRidgeClassifier("eeg", 50, random_state=0).fit(IMAGES, Y),
    "graph": lambda: MorfClassifier(
        Graph(sp.csr_array(np.eye(24, k=1))), n_estimators=2, random_state=0
    ).fit(X, Y),
    "similarity": lambda: MorfClassifier(
        Similarity(np.eye(24, k=1) + np.eye(24, k=-1)), n_estimators=2, random_state=0
    ).fit(X, Y),
    "filters": lambda: MorfClassifier(
        Patch(1, 2, views=[White(), Filter(np.eye(4)[::-1])]),
        n_estimators=2,
        channel_axis=1,
        random_state=0,
    ).fit(IMAGES, Y),
    "auto": lambda: MorfClassifier("auto", n_estimators=2, random_state=0).fit(IMAGES, Y),
    "honest": lambda: MorfClassifier(
        Axis(), n_estimators=2, honest=True, keep_samples=True, oob_score=True, random_state=0
    ).fit(X, Y),
    "unequal lengths": lambda: MorfClassifier("series", n_estimators=2, random_state=0).fit(
        [np.arange(10.0 + i % 3) * (i % 2) for i in range(20)], np.arange(20) % 2
    ),
    "type of columns": lambda: AtomFeatures(Axis(), 5, dtype=np.float64, random_state=0).fit(X),
    "graphs": lambda: GraphFeatures().fit(
        [(np.eye(4, k=1), list("abca")), (np.eye(2), list("ab"))]
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_values_are_loaded_as_they_were_saved(name, tmp_path):
    estimator = ODD[name]()
    path = tmp_path / "model"
    estimator.save(path)
    loaded = morforest.load(path)
    assert_same_state(
        to_plain(loaded.get_params(deep=False)),
        _with_plain_numbers(to_plain(estimator.get_params(deep=False))),
    )
    for attribute in ("classes_", "dictionary_", "max_distance_"):
        if hasattr(estimator, attribute):
            assert_same_state(
                to_plain(getattr(loaded, attribute)),
                _with_plain_numbers(to_plain(getattr(estimator, attribute))),
            )
    if name == "graphs":
        graph = [(np.eye(3, k=1), list("aba"))]
        np.testing.assert_array_equal(loaded.transform(graph), estimator.transform(graph))
        return
    given = [np.arange(9.0)] * 3
    if name != "unequal lengths":
        given = IMAGES.reshape(40, *loaded.data_shape_)
    question = "transform" if name == "type of columns" else "predict"
    expected = getattr(estimator, question)(given)
    np.testing.assert_array_equal(getattr(loaded, question)(given), expected)
    str(morforest.inspect(path))


def _with_plain_numbers(value):
    """NumPy's numbers are saved as Python's, and sparse matrices by rows."""
    if isinstance(value, dict):
        return {key: _with_plain_numbers(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_with_plain_numbers, value))
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, type):
        return np.dtype(value)
    if sp.issparse(value):
        return sp.csr_array(value) if isinstance(value, sp.sparray) else sp.csr_matrix(value)
    return value


def test_a_loaded_forest_can_be_fitted_further(tmp_path):
    first = MorfRegressor(Axis(), n_estimators=2, warm_start=True, random_state=0).fit(X, Y)
    loaded = there_and_back(first, tmp_path)
    expected = first.set_params(n_estimators=4).fit(X, Y).predict(X)
    np.testing.assert_array_equal(loaded.set_params(n_estimators=4).fit(X, Y).predict(X), expected)


def test_every_public_class_of_models_can_be_stored():
    for name in morforest.__all__:
        kind = getattr(morforest, name)
        if isinstance(kind, type) and (
            hasattr(kind, "save") or issubclass(kind, (Dictionary, BaseView))
        ):
            assert STORED[name] is kind
    assert STORED["ImageCopies"] is ImageCopies
    assert {kind.__module__.split(".")[0] for kind in STORED.values()} == {"morforest"}


def test_small_numbers_of_a_forest_share_bytes(tmp_path):
    random = np.random.default_rng(0)
    forest = MorfClassifier(Axis(), n_estimators=10, random_state=0)
    forest.fit(random.normal(size=(1000, 3)), random.integers(0, 3, 1000))
    there_and_back(forest, tmp_path)
    packed = morforest.inspect(tmp_path / "model.safetensors").arrays["forest.leaf_kind"]
    leaves = forest.get_n_leaves().sum()
    assert packed == (
        "uint8",
        (-(-leaves // 4),),
    )  # two bits each: one of three classes, or several
    assert (tmp_path / "model.safetensors").stat().st_size < len(pickle.dumps(forest))


# --- the format --------------------------------------------------------------------------------


def test_other_libraries_read_the_arrays(tmp_path):
    safetensors = pytest.importorskip("safetensors")
    forest, path = model("features, named"), tmp_path / "model"
    forest.save(path)
    with safetensors.safe_open(path, "np") as file:
        about = file.metadata()
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    assert about["format"] == "morforest model"
    assert json.loads(about["model"])["class"] == "MorfClassifier"
    own = container.read(path)[2]
    assert arrays.keys() == own.keys()
    for name in own:
        np.testing.assert_array_equal(arrays[name], own[name], name)
        assert arrays[name].dtype == own[name].dtype


@pytest.mark.parametrize("path", FROZEN, ids=lambda path: path.stem)
def test_files_of_earlier_versions_are_read(path):
    loaded = morforest.load(path)
    contents = morforest.inspect(path)
    expected = json.loads(path.with_suffix(".json").read_text())
    assert contents.library_version == expected["version"]
    assert type(loaded).__name__ == contents.estimator == expected["class"]
    assert set(loaded.get_params(deep=False)) >= set(expected["parameters"])
    found = answers(loaded)
    if found.dtype.kind == "f":  # a matrix product may be rounded otherwise elsewhere
        np.testing.assert_allclose(found.ravel()[:100], expected["answers"], rtol=1e-6)
    else:
        assert found.ravel()[:100].tolist() == expected["answers"]


def answers(estimator):
    X = damage.samples().reshape(damage.ROWS, *estimator.data_shape_)
    if hasattr(estimator, "transform"):
        return estimator.transform(X)
    probabilities = hasattr(estimator, "predict_proba") and not isinstance(estimator.classes_, list)
    return estimator.predict_proba(X) if probabilities else estimator.predict(X)


def freeze(name):
    """Write a file that all later versions have to read."""
    words = name.replace(",", "").replace(" ", "_")
    path = FOLDER / f"{morforest.__version__}_{words}.safetensors"
    assert not path.exists(), f"{path} is frozen"
    FOLDER.mkdir(exist_ok=True)
    model(name).save(path)
    expected = {
        "class": type(model(name)).__name__,
        "version": morforest.__version__,
        "parameters": sorted(model(name).get_params(deep=False)),
        "answers": answers(model(name)).ravel()[:100].tolist(),
    }
    path.with_suffix(".json").write_text(json.dumps(expected) + "\n")


def test_there_are_frozen_files():
    assert len(FROZEN) >= 6
    assert sum(path.stat().st_size for path in FROZEN) < 60_000


def test_parameters_that_a_file_does_not_know_have_their_defaults(tmp_path):
    path = tmp_path / "model"
    model("patches").save(path)
    changed(path, lambda tree: [tree["state"].pop("verbose"), *_patch_of(tree).popitem()])
    loaded = morforest.load(path)
    assert loaded.verbose == 0
    assert loaded.dictionary.weights is None


def _patch_of(tree):
    return tree["state"]["dictionary"]["morforest:Patch"]


def changed(path, change):
    """Change the description of the model in a file, and its checksum with it."""
    text, _, arrays = container.read(path)
    tree = json.loads(text)
    change(tree)
    container.write(path, json.dumps(tree), arrays)


# --- what cannot be saved ------------------------------------------------------------------------


def two_thirds(n):
    return 2 * n // 3


def ones(size):
    return np.ones(size)


def test_functions_are_refused_by_name(tmp_path):
    forest = MorfClassifier(Axis(), n_estimators=2, max_samples=two_thirds, random_state=0)
    forest.fit(X, Y)
    path = tmp_path / "model"
    with pytest.raises(TypeError, match=r"max_samples is the function two_thirds.*max_samples=26"):
        forest.save(path)
    assert not list(tmp_path.iterdir())
    loaded = there_and_back(forest.set_params(max_samples=26), tmp_path)
    np.testing.assert_array_equal(loaded.predict(X), forest.predict(X))
    forest = MorfClassifier(Patch(1, 2, weights=ones), n_estimators=2).fit(IMAGES, Y)
    with pytest.raises(TypeError, match=r"dictionary\.weights is the function ones.*[Pp]ickle"):
        forest.save(path)


class Child(MorfTreeClassifier):
    pass


def test_other_classes_are_refused(tmp_path):
    with pytest.raises(TypeError, match=r"Child cannot be saved.*alone"):
        Child().fit(X, Y).save(tmp_path / "model")
    odd = MorfTreeClassifier(Axis(), random_state=0).fit(X, Y)
    odd.n_jobs = {1, 2}
    with pytest.raises(TypeError, match=r"MorfTreeClassifier cannot be saved: n_jobs is a set"):
        odd.save(tmp_path / "model")
    odd.n_jobs = np.ones(3, dtype=complex)
    with pytest.raises(TypeError, match="n_jobs is an array of complex128"):
        odd.save(tmp_path / "model")


@pytest.mark.parametrize(
    ("path", "error"),
    [
        (3.5, TypeError),
        ("", IsADirectoryError),
        (".", IsADirectoryError),
        ("no such folder/model", FileNotFoundError),
        (os.devnull, ValueError),
    ],
)
def test_paths_that_cannot_be_written(path, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match="path"):
        model("patches").save(path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [MorfClassifier, AtomFeatures, GraphFeatures])
def test_only_fitted_estimators_are_saved(kind, tmp_path):
    with pytest.raises(NotFittedError):
        kind().save(tmp_path / "model")


# --- pickles of the same record ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["features, named", "shared, pooled, combined", "ridge"])
def test_pickles_name_no_class_but_the_estimator(name):
    names, strings = set(), []
    for opcode, value, _ in pickletools.genops(pickle.dumps(model(name), 4)):
        if opcode.name == "STACK_GLOBAL":
            names.add(".".join(strings[-2:]))
        elif isinstance(value, str):
            strings.append(value)
    own = {found for found in names if found.startswith("morforest")}
    kind = type(model(name))
    assert own == {f"{kind.__module__}.{kind.__name__}"}


@pytest.mark.parametrize("name", MODELS)
def test_skops_trusts_one_type(name, tmp_path):
    skops = pytest.importorskip("skops.io")
    estimator, path = model(name), tmp_path / "model.skops"
    skops.dump(estimator, path)
    kind = type(estimator)
    assert skops.get_untrusted_types(file=path) == [f"{kind.__module__}.{kind.__name__}"]
    loaded = skops.load(path, trusted=skops.get_untrusted_types(file=path))
    assert_same_state(loaded.__getstate__(), estimator.__getstate__())


def test_skops_trusts_two_types_of_a_pipeline(tmp_path):
    skops = pytest.importorskip("skops.io")
    pipeline = make_pipeline(AtomFeatures(Patch(1, 2), 10), MorfClassifier(n_estimators=2))
    path = tmp_path / "model.skops"
    skops.dump(pipeline.fit(IMAGES, Y), path)
    trusted = ["morforest.features.AtomFeatures", "morforest.forest.MorfClassifier"]
    assert sorted(skops.get_untrusted_types(file=path)) == trusted
    loaded = skops.load(path, trusted=trusted)
    np.testing.assert_array_equal(loaded.predict(IMAGES), pipeline.predict(IMAGES))


def test_decoding_makes_no_objects():
    value = {"a": {"@tuple": [1, {"@float": "nan"}]}, "b": {"morforest:Axis": {}}}
    found = decode(value, {})
    assert found["b"] == {"morforest:Axis": {}}
    assert found["a"][0] == 1
    assert np.isnan(found["a"][1])


if __name__ == "__main__":
    for given in sys.argv[1:]:
        freeze(given)
