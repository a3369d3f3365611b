"""Models as files for other programs, which predict what the estimators do."""

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from common import friedman

from morforest import (
    Axis,
    DataScaleWarning,
    Difference,
    Filter,
    Gradient,
    Graph,
    Haar,
    Kernel,
    Magnitude,
    Mixture,
    MorfBoostingClassifier,
    MorfBoostingRegressor,
    MorfClassifier,
    MorfRegressor,
    MorfTreeClassifier,
    MorfTreeRegressor,
    Pair,
    Patch,
    Raw,
    SharedAtoms,
    SparseOblique,
    Square,
    Subset,
    Variance,
)


@pytest.fixture(scope="module")
def images():
    """Training samples, samples to predict, and labels: whole numbers, with many ties."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 20, (300, 9, 7))
    return X, rng.permutation(X.ravel()).reshape(X.shape), rng.integers(0, 3, 300)


@pytest.fixture(scope="module")
def waves():
    """The same with numbers that have fractions."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 9, 7))
    return X, rng.permutation(X.ravel()).reshape(X.shape), rng.integers(0, 3, 300)


def far_apart(X):
    """Scale values so unlike each other that a fit takes float64 cells."""
    return X * 10.0 ** np.random.default_rng(2).integers(-30, 30, X.shape)


def forest(dictionary=None, kind=MorfClassifier, **parameters):
    return kind(dictionary, n_estimators=6, random_state=0, n_jobs=1, **parameters)


def run_onnx(path, X, **options):
    """Predict with a file: the label, if there is one, and the numbers."""
    onnxruntime = pytest.importorskip("onnxruntime")
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    types = {"float": np.float32, "double": np.float64, "uint8": np.uint8, "int64": np.int64}
    wanted = session.get_inputs()[0].type.removeprefix("tensor(").removesuffix(")")
    found = session.run(None, {"X": X.astype(types[wanted])})
    names = [output.name for output in session.get_outputs()]
    assert names in (["label", "probabilities"], ["variable"])
    return found if len(found) == 2 else (None, found[0])


def run_c(path, X, folder):
    """The same with a C header: the number of the label in place of the label."""
    main = folder / "main.c"
    main.write_text(MAIN % path.name)
    options = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]
    program = folder / "main"
    subprocess.run([COMPILER, *options, main, "-o", program, "-lm"], check=True)
    given = np.ascontiguousarray(X, dtype=np.float64).tobytes()
    out = subprocess.run([program], input=given, check=True, capture_output=True).stdout
    found = np.frombuffer(out).reshape(len(X), -1)
    return found[:, 0].astype(int), found[:, 1:]


MAIN = """
#include <stdio.h>
#include "%s"

int main(void) {
  static morf_scratch scratch;
  static double sample[MORF_FEATURES], result[1 + MORF_RESULTS];
  while (fread(sample, sizeof(double), MORF_FEATURES, stdin) == MORF_FEATURES) {
    result[0] = morf_predict(sample, &scratch, result + 1);
    if (fwrite(result, sizeof(double), 1 + MORF_RESULTS, stdout) != 1 + MORF_RESULTS) return 1;
  }
  return 0;
}
"""
COMPILER = shutil.which("cc") or shutil.which("gcc")


def run_js(path, X, folder):
    """The same with a JavaScript module: labels, or None."""
    script = folder / "main.mjs"
    script.write_text(SCRIPT % (path.name, X[0].size))
    (folder / "samples").write_bytes(np.ascontiguousarray(X, dtype=np.float64).tobytes())
    found = subprocess.run([NODE, script], check=True, capture_output=True, cwd=folder)
    labels, numbers = json.loads(found.stdout)
    return labels, np.array(numbers)


SCRIPT = """
import { readFileSync } from "node:fs";
import * as model from "./%s";

const values = new Float64Array(new Uint8Array(readFileSync("samples")).buffer);
const labels = [], numbers = [];
for (let i = 0; i < values.length; i += %d) {
  const sample = values.subarray(i, i + model.shape.reduce((a, b) => a * b));
  const found = model.predict(sample);
  labels.push(typeof found === "bigint" ? String(found) : found);
  numbers.push(model.probabilities ? model.probabilities(sample) : [found].flat());
}
console.log(JSON.stringify([model.labels ? labels : null, numbers]));
"""
NODE = shutil.which("node")


def assert_equals(model, label, found, X, rtol=0.0):
    """The same labels, and the same numbers but for what exponentials round."""
    if label is None:
        expected = model.predict(X).reshape(len(X), -1)
    else:
        assert np.array_equal(label, model.predict(X))
        expected = model.predict_proba(X)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


def assert_exported(model, X, folder, rtol=0.0, js=True):
    """All files predict what the model does."""
    model.to_onnx(folder / "model.onnx")
    assert_equals(model, *run_onnx(folder / "model.onnx", X), X, rtol)
    if COMPILER:
        model.to_c(folder / "model.h")
        best, found = run_c(folder / "model.h", X, folder)
        classes = getattr(model, "classes_", None)
        assert_equals(model, None if classes is None else classes[best], found, X, rtol)
    if NODE and js:
        model.to_js(folder / "model.mjs")
        assert_equals(model, *run_js(folder / "model.mjs", X, folder), X, rtol)


# --- equal predictions --------------------------------------------------------------------------

LINEAR = {
    "axis": Axis(),
    "sparse": SparseOblique(),
    "dense": SparseOblique(density=0.4),
    "patch": Patch(),
    "weights": Patch(weights="gaussian"),
    "haar": Haar(),
    "pair": Pair(),
    "kernel": Kernel(),
    "views": Patch(views=[Raw(), Difference(), Square(), Magnitude()]),
    "gradients": Haar(views=Gradient(orientations=3)),
    "mixture": Mixture([Axis(), Haar()]),
    "subset": Subset(Patch(), 40),
    "image": "image",
}


@pytest.mark.parametrize("name", LINEAR)
def test_forests_of_linear_dictionaries_predict_the_same(name, images, waves, tmp_path):
    for X, new, y in (images, waves):
        assert_exported(forest(LINEAR[name]).fit(X, y), new, tmp_path)


def test_so_do_forests_of_connected_sets(waves, tmp_path):
    X, new, y = (part.reshape(len(part), -1) for part in waves)
    ring = np.roll(np.eye(X.shape[1]), 1, axis=1)
    assert_exported(forest(Graph(ring + ring.T)).fit(X, y.ravel()), new, tmp_path)


@pytest.mark.parametrize("dictionary", [Axis(), SparseOblique(), Patch()], ids=str)
def test_so_do_forests_of_float64_cells(dictionary, waves, tmp_path):
    X, new, y = waves
    model = forest(dictionary).fit(far_apart(X), y)
    assert model._forest.cell_format.real
    assert_exported(model, far_apart(new), tmp_path)


def test_sums_that_leave_the_range_of_float64_go_right(tmp_path):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 30)) * 10.0 ** rng.integers(-30, 30, 30)
    model = forest(SparseOblique(density=0.5)).fit(X, rng.integers(0, 3, 200))
    assert model._forest.cell_format.real
    assert_exported(model, rng.choice([1e308, -1.0, 2.0], (200, 30)), tmp_path)


def test_so_do_forests_of_cells_of_64_bits(waves, tmp_path):
    X, new, y = waves
    scale = np.ones(X.shape[1:])
    scale[0] = 2.0**-20
    model = forest(Patch()).fit(X * scale, y)
    assert not model._forest.cell_format.real
    assert model._forest.cell_format.bound > 2.0**30
    assert_exported(model, new * scale, tmp_path)


CLASSIFIERS = {
    "words": (MorfTreeClassifier(random_state=0), ["a", "morf_ü", 'model_"\\\n?']),
    "two words": (MorfBoostingClassifier(max_iter=4, random_state=0), ["yes", "no"]),
    "integers": (MorfBoostingClassifier(max_iter=4, random_state=0), [0, 1, 7]),
    "large integers": (MorfTreeClassifier(random_state=0), [-(2**62), 0, 5]),
    "truths": (MorfTreeClassifier(random_state=0, max_leaf_nodes=5), [False, True]),
    "floats": (MorfClassifier(n_estimators=4, random_state=0, max_leaf_nodes=9), [-1.0, 2.0, 3.0]),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_return_their_labels(name, images, tmp_path):
    X, new, y = images
    model, labels = CLASSIFIERS[name]
    model.fit(X, np.array(labels)[y % len(labels)])
    assert_exported(model, new, tmp_path, rtol=1e-12, js=name != "large integers")


REGRESSORS = {
    "tree": MorfTreeRegressor(random_state=0),
    "one leaf": MorfTreeRegressor(random_state=0, min_samples_leaf=200),
    "forest": MorfRegressor(n_estimators=5, random_state=0, max_leaf_nodes=9),
    "squared": MorfBoostingRegressor(max_iter=9, random_state=0),
    "poisson": MorfBoostingRegressor(max_iter=9, loss="poisson", random_state=0),
    "quantile": MorfBoostingRegressor(max_iter=9, loss="quantile", quantile=0.9, random_state=0),
}


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_predict_the_same(name, tmp_path):
    X, y = friedman()
    model = REGRESSORS[name].fit(X, 1e4 * y if name == "squared" else abs(y))
    assert_exported(model, X[::-1] + 0.1, tmp_path, rtol=1e-12)


def test_so_do_regressors_of_several_outputs(tmp_path):
    X, y = friedman()
    model = forest(kind=MorfRegressor).fit(X, np.stack([y, -y, y**2], axis=1))
    assert_exported(model, X[::-1] + 0.1, tmp_path)


def test_of_ten_thousand_samples_with_ties_all_labels_are_equal(tmp_path):
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 2, (400, 5, 5)), rng.integers(0, 3, 400)
    new = rng.integers(0, 2, (10_000, 5, 5))
    model = forest(Patch()).fit(X, y)
    best = np.sort(model.predict_proba(new), axis=1)[:, -2:]
    assert (best[:, 0] == best[:, 1]).sum() > 1000  # ties
    assert_exported(model, new, tmp_path)


def test_fractions_and_large_values_are_cut_as_the_core_cuts_them(images, tmp_path):
    X, new, y = images
    model = forest(Haar()).fit(X, y)
    noise = np.random.default_rng(4).normal(size=new.shape).astype(np.float32)
    assert_exported(model, (new + noise).astype(np.float32).astype(float), tmp_path)
    with pytest.warns(DataScaleWarning):
        assert_exported(model, 2**20 * new, tmp_path, js=False)
    with pytest.warns(DataScaleWarning):
        assert_exported(model, 2.0**70 * (new - 9.5), tmp_path, js=False)


# --- ONNX ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float64"])
def test_onnx_files_take_samples_of_several_types_and_shapes(dtype, images, tmp_path):
    X, new, y = images
    path = tmp_path / "model.onnx"
    model = forest(Haar(views=[Raw(), Difference()])).fit(X, y)
    model.to_onnx(path, dtype=dtype)
    assert_equals(model, *run_onnx(path, new), new)
    model.to_onnx(path, dtype=dtype, flat=True)
    assert_equals(model, *run_onnx(path, new.reshape(len(new), -1)), new)
    assert_equals(model, *run_onnx(path, new[:1].reshape(1, -1)), new[:1])


def test_whole_numbers_beyond_53_bits_are_exact_in_int64(tmp_path):
    X = 2**58 + np.arange(40).reshape(-1, 1)
    model = forest(Axis()).fit(X, np.arange(40) % 2)
    model.to_onnx(tmp_path / "model.onnx", dtype="int64")
    assert_equals(model, *run_onnx(tmp_path / "model.onnx", X), X)


def test_onnx_files_pass_the_checker(images, waves, tmp_path):
    onnx = pytest.importorskip("onnx")
    for X, _, y in (images, waves):
        for kind in (MorfTreeClassifier, MorfBoostingRegressor):
            kind("image", random_state=0).fit(X, y).to_onnx(tmp_path / "model.onnx")
            onnx.checker.check_model(onnx.load(tmp_path / "model.onnx"), full_check=True)


def test_the_same_model_gives_the_same_onnx_file(images, tmp_path):
    X, _, y = images
    for name in "ab":
        forest(Haar()).fit(X, y).to_onnx(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_onnx_files_do_not_predict_samples_without_numbers(value, waves, tmp_path):
    X, new, y = waves
    new = new.copy()
    new[3, 2, 1] = value
    forest(Patch()).fit(X, y).to_onnx(tmp_path / "model.onnx")
    _, found = run_onnx(tmp_path / "model.onnx", new)
    missing = np.isnan(found).all(axis=1)
    assert missing[3]
    assert missing.sum() == 1


def test_models_larger_than_an_onnx_file_may_be_are_refused(images, tmp_path, monkeypatch):
    pytest.importorskip("onnx")
    X, _, y = images
    monkeypatch.setattr("morforest._onnx.LARGEST_FILE", 1000)
    with pytest.raises(ValueError, match=r"would have \d+ bytes, more than the 2 GiB.*fewer"):
        forest().fit(X, y).to_onnx(tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_without_the_package_to_onnx_says_how_to_get_it(images, tmp_path, monkeypatch):
    X, _, y = images
    model = forest(Patch()).fit(X, y)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"to_onnx needs the package onnx.*morforest\[onnx\]"):
        model.to_onnx(tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


# --- C and JavaScript ---------------------------------------------------------------------------


@pytest.mark.skipif(not COMPILER, reason="no C compiler")
def test_a_program_may_hold_several_c_headers(images, waves, tmp_path):
    found = []
    for name, (X, new, y) in (("whole", images), ("Real_2", waves)):
        model = forest(Haar()).fit(X, np.array(["no?", "yes\n", '"ü\\'])[y])
        model.to_c(tmp_path / f"{name}.h", prefix=name)
        found.append((model, new))
    (model, new), (other, _) = found
    (tmp_path / "main.c").write_text(
        """
        #include <stdio.h>
        #include "whole.h"
        #include "Real_2.h"
        #include "whole.h"
        int main(void) {
          static whole_scratch scratch;
          static Real_2_scratch other;
          double sample[WHOLE_FEATURES] = {0.0}, result[WHOLE_RESULTS] = {5.0, 5.0, 5.0};
          printf("%s|", whole_labels[whole_predict(sample, &scratch, result)]);
          printf("%s|", Real_2_labels[Real_2_predict(sample, &other, result)]);
          result[0] = 5.0;
          sample[3] = 0.0 / sample[0];
          printf("%d %d %g", whole_predict(sample, &scratch, result), REAL_2_RESULTS, result[0]);
          return 0;
        }"""
    )
    options = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-lm"]
    command = [COMPILER, tmp_path / "main.c", *options, "-o", tmp_path / "main"]
    subprocess.run(command, check=True)
    said = subprocess.run([tmp_path / "main"], check=True, capture_output=True).stdout.decode()
    nought = np.zeros((1, *new.shape[1:]))
    assert said == f"{model.predict(nought)[0]}|{other.predict(nought)[0]}|-1 3 5"


@pytest.mark.skipif(not NODE, reason="no node")
def test_javascript_modules_read_nested_samples_and_refuse_others(images, tmp_path):
    X, new, y = images
    model = forest(Haar()).fit(X, [2**60 + label for label in y.tolist()])
    model.to_js(tmp_path / "model.mjs")
    (tmp_path / "main.mjs").write_text(
        f"""
        import {{ predict, probabilities, labels, shape }} from "./model.mjs";
        const sample = {json.dumps(new[0].tolist())};
        const wrong = [[], [1, 2], sample.flat().with(3, NaN), sample.flat().with(3, "5"),
                       sample.flat().with(3, null), sample.flat().with(3, 1e9), undefined];
        const said = wrong.map((value) => {{
          try {{ return predict(value); }} catch (error) {{ return `${{error}}`; }}
        }});
        said.push(String(predict(sample)), shape, probabilities(Int8Array.from(sample.flat())));
        console.log(JSON.stringify(said));
        """
    )
    out = subprocess.run([NODE, tmp_path / "main.mjs"], check=True, capture_output=True).stdout
    *refused, label, shape, probabilities = json.loads(out)
    few = "RangeError: a sample has 63 numbers, got"
    assert refused[:2] == [f"{few} 0", f"{few} 2"]
    numbers = "RangeError: a sample has finite numbers, got"
    assert refused[2:5] == [f"{numbers} NaN", f"{numbers} 5", f"{numbers} null"]
    assert re.fullmatch(r"RangeError: a sample has numbers of up to \d.* in size.*", refused[5])
    assert refused[6] == f"{few} 1"
    assert label == str(model.predict(new[:1])[0])
    assert shape == list(new.shape[1:])
    assert probabilities == model.predict_proba(new[:1])[0].tolist()


@pytest.mark.parametrize("prefix", ["", "2nd", "a-b", "a b", "ü", "_x", 5, None, "x" * 99])
def test_wrong_prefixes_are_named(prefix, images, tmp_path):
    X, _, y = images
    with pytest.raises(ValueError, match=r"prefix must be a name in C.*got"):
        forest().fit(X, y).to_c(tmp_path / "model.h", prefix=prefix)
    assert list(tmp_path.iterdir()) == []


# --- refusals -----------------------------------------------------------------------------------

METHODS = ["to_onnx", "to_c", "to_js"]


def with_gaps(X):
    X = X.astype(float)
    X[5, 2, 2] = np.nan
    return X


def honest():
    return forest(honest=True, honest_prior="ignore", min_samples_leaf=1)


REFUSED = {
    "pool": (lambda X, y: forest(Patch(pool="max")).fit(X, y), r"Patch\(pool='max'\).*max.*pool"),
    "variance": (lambda X, y: forest(Variance()).fit(X, y), "Variance.*not weighted sums.*Haar"),
    "series": (
        lambda X, y: forest("series").fit(X[:, 0], y),
        "'series' shares.*without SharedAtoms",
    ),
    "shared": (
        lambda X, y: forest(SharedAtoms(Haar(), 50)).fit(X, y),
        r"SharedAtoms\(.* shares.*such as Haar",
    ),
    "filters": (
        lambda X, y: forest(Patch(views=Filter(np.eye(9), axis=0))).fit(X, y),
        r"Patch\(views=Filter\(.*filtered channels.*such as Haar",
    ),
    "gaps": (lambda X, y: forest().fit(with_gaps(X), y), "missing values.*SimpleImputer"),
    "outputs": (lambda X, y: forest().fit(X, np.stack([y, y], 1)), "2 outputs.*one classifier"),
    "silent": (lambda X, y: honest().fit(X, y), "do not vote.*honest_prior"),
    "labels": (
        lambda X, y: forest().fit(X, np.uint64(2**63) + y.astype(np.uint64)),
        "labels have dtype uint64.*strings or integers",
    ),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", REFUSED)
def test_models_that_cannot_be_written_are_refused(name, method, images, tmp_path):
    X, _, y = images
    fit, message = REFUSED[name]
    model = fit(X, y)
    with pytest.raises(ValueError, match=rf"(?s)^{method} cannot write this Morf.*: .*{message}"):
        getattr(model, method)(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("method", METHODS)
def test_so_are_models_without_a_fit(method, tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        getattr(MorfClassifier(), method)(tmp_path / "model")


@pytest.mark.parametrize("method", METHODS)
def test_wrong_paths_are_named(method, images, tmp_path):
    X, _, y = images
    write = getattr(forest().fit(X, y), method)
    with pytest.raises(IsADirectoryError, match="name of a file"):
        write(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no folder.*make it first"):
        write(tmp_path / "nowhere" / "model")
    with pytest.raises(TypeError, match=r"path must be the name of a file.*got 5.5"):
        write(5.5)


def test_wrong_parameters_are_named(images, tmp_path):
    X, _, y = images
    model = forest().fit(X, y)
    with pytest.raises(ValueError, match=r"dtype must be.*'float16'"):
        model.to_onnx(tmp_path / "model", dtype="float16")
    with pytest.raises(ValueError, match="flat must be"):
        model.to_onnx(tmp_path / "model", flat="yes")


@pytest.mark.parametrize("method", METHODS)
def test_a_file_that_cannot_be_written_leaves_the_old_one(method, images, tmp_path, monkeypatch):
    X, _, y = images
    model = forest().fit(X, y)
    path = tmp_path / "model"
    path.write_text("old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        getattr(model, method)(path)
    monkeypatch.undo()
    assert [file.name for file in tmp_path.iterdir()] == ["model"]
    assert path.read_text() == "old"
    getattr(model, method)(path)
    assert len(path.read_bytes()) > 100
