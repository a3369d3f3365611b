"""How large saved models are, and how long they take to save and load, beside pickles.

    python -m benchmarks.files [--mnist mnist.npz | --stand-in] [--quick]

Each model is written to disk and read again many times, in turns, as a model file and as a pickle
of protocol 5. CPU-milliseconds are medians, of the process, user and system, in one thread.
"""

import pickle
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import sklearn

import morforest
from benchmarks import options
from benchmarks.results import Sheet, run_facts
from measuring import arrays
from measuring.files import write_whole
from measuring.machine import commit
from measuring.tables import markdown
from morforest import AtomRidgeClassifier, MorfBoostingClassifier, MorfClassifier, Patch

NOTE = """\
*file* is what `save` writes, *pickle* is protocol 5. Both are written to disk and read again, in
turns; CPU-milliseconds are medians, with the factor to the pickle's. Loading checks every array of
both, and the checksum of the file."""
KINDS = ("file", "pickle")


def models(sizes):
    """Yield a name, a model to fit, and the number of images."""
    forest = {"n_estimators": 100, "n_jobs": 1, "random_state": 0}
    for n in sizes:
        yield f"forest, {n:,} images", MorfClassifier(Patch((2, 2), (2, 5)), **forest), n
    n = sizes[0]
    kept = MorfClassifier(Patch((2, 2), (2, 5)), keep_samples=True, **forest)
    yield f"forest that keeps samples, {n:,} images", kept, n
    boosting = MorfBoostingClassifier("patch", max_iter=100, n_jobs=1, random_state=0)
    yield f"boosting, {n:,} images", boosting, n
    ridge = AtomRidgeClassifier("patch", n_atoms=2000, n_jobs=1, random_state=0)
    yield f"ridge, {n:,} images", ridge, n


def save(kind, model, path):
    if kind == "file":
        model.save(path)
        return
    with open(path, "wb") as file:
        pickle.dump(model, file, protocol=5)


def load(kind, path):
    if kind == "file":
        return morforest.load(path)
    with open(path, "rb") as file:
        return pickle.load(file)


def measure(model, folder, repeats):
    """Return bytes and the seconds of saving and loading, by kind."""
    seconds = {kind: {"save": [], "load": []} for kind in KINDS}
    size = {}
    for repeat in range(repeats + 1):  # the first round is not counted
        for kind in KINDS if repeat % 2 else KINDS[::-1]:
            path = folder / kind
            begin = time.process_time()
            save(kind, model, path)
            middle = time.process_time()
            load(kind, path)
            end = time.process_time()
            size[kind] = path.stat().st_size
            if repeat:
                seconds[kind]["save"].append(middle - begin)
                seconds[kind]["load"].append(end - middle)
    return size, seconds


def main():
    quick, output, name, path = options.read(__doc__)
    X, y, X_test, _ = arrays.load(path)
    X, X_test = X.reshape(-1, 28, 28), X_test.reshape(-1, 28, 28)
    run = {**run_facts(), "commit": commit()}
    sheet, lines = Sheet(output, "files", run), []
    for words, model, n in models((500,) if quick else (1000, 5000, 60_000)):
        model.fit(X[:n], y[:n])
        with tempfile.TemporaryDirectory() as folder:
            size, seconds = measure(model, Path(folder), 3 if quick else 30)
            same = load("file", Path(folder) / "file")
        assert np.array_equal(same.predict(X_test[:100]), model.predict(X_test[:100]))
        for kind in KINDS:
            times = {what: statistics.median(found) for what, found in seconds[kind].items()}
            sheet.add(
                data=name,
                model=words,
                kind=kind,
                bytes=size[kind],
                save_cpu_seconds=times["save"],
                load_cpu_seconds=times["load"],
            )
            base = {w: statistics.median(f) for w, f in seconds["pickle"].items()}
            lines.append(
                [
                    words,
                    kind,
                    f"{size[kind]:,} ({size[kind] / size['pickle']:.2f})",
                    *(f"{1000 * times[w]:.1f} ({times[w] / base[w]:.2f})" for w in times),
                ]
            )
        print(f"{words}: measured", flush=True)
    table = markdown(("model", "saved as", "bytes", "save, CPU-ms", "load, CPU-ms"), lines)
    facts = (
        f"{name}. `{{command}}`, {{date}}, commit {{commit}}, {{cpu_model}}, {{cores}} cores, load "
        f"{{load_at_start}} at the start; morforest {morforest.__version__}, "
        f"NumPy {np.__version__}, scikit-learn {sklearn.__version__}."
    ).format_map(run)
    text = f"# Model files beside pickles\n\n{NOTE}\n\nThe images are {facts}\n\n{table}"
    write_whole(output / "files.md", text)
    print(text)


if __name__ == "__main__":
    main()
