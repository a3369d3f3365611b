"""How cost and memory grow with rows, features, classes and trees; each case has a fresh process.

    python -m benchmarks.scale [--mnist mnist.npz] [--only table wide ...] [--quick]

`table` needs 4 GB of disk for a file in a temporary folder, which is removed (TMPDIR moves it).
Peaks are the kernel's high-water mark of resident memory (VmHWM, reset just before the timing
starts; Linux only). It includes the pages of a mapped file. Anonymous memory does not, and is
sampled twenty times per second. Without MNIST, a stand-in is used.
"""

import argparse
import csv
import ctypes
import gc
import importlib.metadata
import json
import pickle
import platform
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from benchmarks import data
from benchmarks.results import FOLDER, run_facts
from measuring import arrays
from measuring.files import write_whole
from measuring.tables import markdown
from morforest import Axis, MorfClassifier, Patch, SparseOblique

DICTIONARIES = {
    "Axis": Axis(),
    "SparseOblique": SparseOblique(),
    "Patch": Patch(2, 1000),
    "Patch, 2 x 2 to 2 x 5": Patch((2, 2), (2, 5)),
}
IMAGE_PATCH = "Patch, 2 x 2 to 2 x 5"
SETTING = {
    "library": "morforest",
    "dictionary": "SparseOblique",
    "data": "normal",
    "rows": 0,
    "features": 784,
    "classes": 2,
    "trees": 100,
    "candidates": None,
    "n_jobs": 1,
}
ROOT = Path(__file__).resolve().parent.parent
MEASURED = (
    "fit_cpu_s",
    "fit_wall_s",
    "peak_mib",
    "peak_above_input_mib",
    "peak_anonymous_mib",
    "predicted_rows",
    "predict_wall_s",
    "predict_above_mib",
    "pickle_mib",
    "pickle_there_and_back_s",
)

# --- in the fresh process ------------------------------------------------------------------------


def memory(field):
    """Return a field of /proc/self/status in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    raise KeyError(field)


class Meter:
    """Measures seconds and peaks of memory from entering to leaving."""

    def __enter__(self):
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # free memory must not hide what is taken next
        Path("/proc/self/clear_refs").write_text("5")  # VmHWM starts again from what is held now
        self.before, self.anonymous = memory("VmRSS"), memory("RssAnon")
        self.done = threading.Event()
        self.watch = threading.Thread(target=self._look)
        self.watch.start()
        self.wall, self.cpu = time.perf_counter(), time.process_time()
        return self

    def _look(self):
        while not self.done.wait(0.05):
            self.anonymous = max(self.anonymous, memory("RssAnon"))

    def __exit__(self, *_):
        self.wall, self.cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        self.peak = memory("VmHWM")
        self.done.set()
        self.watch.join()


def fill_normal(X, y, classes):
    """Fill X with normal values, by blocks of rows; some features depend on the class."""
    random = np.random.default_rng(0)
    centres = random.standard_normal((classes, min(10, X.shape[1]))) * (1 if classes == 2 else 4)
    size = max(1, 10_000_000 // X.shape[1])
    for first in range(0, len(X), size):
        part = X[first : first + size]
        labels = random.integers(0, classes, len(part))
        part[:] = random.standard_normal(part.shape, dtype=np.float32)
        part[:, : centres.shape[1]] += centres[labels]
        y[first : first + size] = labels


def make_images(rows, path):
    """Return the training images, repeated as often as needed."""
    X, y, _, _ = arrays.load(path)
    images = np.empty((rows, 28, 28), dtype=np.uint8)
    for first in range(0, rows, len(X)):
        images[first : first + len(X)] = X[: rows - first]
    return images, np.resize(y, rows).astype(np.int64)


def make_data(setting, path, folder):
    shape = (setting["rows"], setting["features"])
    if setting["data"] == "images":
        X, y = make_images(setting["rows"], path)
        if setting["library"] == "scikit-learn":
            X = X.reshape(shape).astype(np.float32)
        return X, y
    y = np.empty(shape[0], dtype=np.int64)
    if setting["data"] == "memmap":
        file = Path(folder) / "table"
        X = np.memmap(file, np.float32, "w+", shape=shape)
        fill_normal(X, y, setting["classes"])
        X.flush()
        return np.memmap(file, np.float32, "r", shape=shape), y
    X = np.empty(shape, dtype=np.float32)
    fill_normal(X, y, setting["classes"])
    return X, y


def make_forest(setting, trees):
    options = {"n_estimators": trees, "n_jobs": setting["n_jobs"], "random_state": 0}
    if setting["candidates"]:
        options["max_features"] = setting["candidates"]
    if setting["data"] == "memmap":
        options["max_samples"] = 0.1
    if setting["library"] == "scikit-learn":
        return RandomForestClassifier(**options)
    return MorfClassifier(DICTIONARIES[setting["dictionary"]], **options)


def measure(setting, path, folder):
    X, y = make_data(setting, path, folder)
    make_forest(setting, 2).fit(X[:20], y[:20])  # the cost of a first call is not counted
    forest = make_forest(setting, setting["trees"])
    with Meter() as fit:
        forest.fit(X, y)
    sample = X[: 1 if len(X) < 100 else 10_000]
    with Meter() as predict:
        forest.predict(sample)
    with Meter() as pickling:
        text = pickle.dumps(forest)
        again = pickle.loads(text)
    if not np.array_equal(again.predict_proba(X[:10]), forest.predict_proba(X[:10])):
        raise AssertionError("a pickled forest predicts otherwise")
    values = (
        fit.cpu,
        fit.wall,
        fit.peak,
        fit.peak - fit.before,
        fit.anonymous,
        len(sample),
        predict.wall,
        predict.peak - predict.before,
        len(text) / 2**20,
        pickling.wall,
    )
    return {name: round(value, 4) for name, value in zip(MEASURED, values, strict=True)}


# --- the cases ----------------------------------------------------------------------------------


def cases(quick):
    """Return settings by section. Those that are compared follow one another in time."""
    small = 20 if quick else 1
    images = {"data": "images", "dictionary": IMAGE_PATCH, "candidates": 28, "classes": 10}
    table = {"data": "memmap", "rows": 10_000_000 // small, "features": 100, "trees": 10}
    wide = {"rows": 50, "features": 1_000_000 // small, "trees": 20}
    many = {"rows": 50_000 // small, "features": 20, "classes": 10_000 // small, "trees": 20}
    mnist_images = {**images, "rows": 60_000 // small, "trees": 100}
    powers = range(0, 3 if quick else 6)
    return {
        "table": [{**table, "dictionary": name, "n_jobs": 2} for name in ("Axis", "SparseOblique")],
        "images": [{**images, "rows": 1_000_000 // small, "trees": 20, "n_jobs": 2}],
        "wide": [{**wide, "dictionary": d} for d in ("Axis", "SparseOblique", "Patch")],
        "classes": [{**many, "dictionary": name} for name in ("Axis", "SparseOblique")],
        "trees": [{"rows": 1000, "features": 20, "trees": 5000 // small}],
        "memory": [
            {**mnist_images, "library": "scikit-learn", "dictionary": ""},
            mnist_images,
            {**mnist_images, "n_jobs": 2},
        ],
        "growth in rows": [{**images, "rows": 1875 << k, "trees": 20} for k in powers],
        "growth in trees": [{**images, "rows": 5000, "trees": 10 << k} for k in powers],
        "growth in candidates": [
            {**images, "rows": 5000, "trees": 20, "candidates": 8 << k} for k in powers
        ],
    }


def exponent(section, rows):
    """Return the slope of log CPU-seconds against the logarithm of what grows."""
    x = growing(section, rows)
    return np.polyfit(np.log(x), np.log([row["fit_cpu_s"] for row in rows]), 1)[0]


def growing(section, rows):
    x = np.array([row[section.removeprefix("growth in ")] for row in rows], dtype=float)
    return x * np.log(x) if section == "growth in rows" else x


# --- the report ---------------------------------------------------------------------------------


def append(path, row):
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, row, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)


def read(path):
    """Return the latest run of each setting, by section."""
    latest = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            for name in ("rows", "features", "trees", "n_jobs", "classes"):
                row[name] = int(row[name])
            row["candidates"] = int(row["candidates"] or 0)
            row.update({name: float(row[name]) for name in MEASURED})
            latest[row["section"], *(row[name] for name in SETTING)] = row
    sections = {}
    for (section, *_), row in latest.items():
        sections.setdefault(section, []).append(row)
    return sections


def publish(folder):
    sections = read(folder / "scale.csv")
    columns = (
        "case | library | dictionary | rows | features | classes | trees | candidates | jobs | "
        "fit CPU s | fit wall s | peak MiB | above the input | anonymous | rows predicted | "
        "predict s | pickle MiB | there and back s"
    )
    header = columns.split(" | ")
    lines = []
    facts = {}
    for section, rows in sections.items():
        for row in rows:
            facts[
                "{date:.10}, {cpu_model}, {cores} cores, morforest {morforest}, scikit-learn "
                "{scikit_learn}, NumPy {numpy}, Python {python}".format_map(row)
            ] = None
            lines.append(
                [
                    section,
                    row["library"],
                    row["dictionary"],
                    *(f"{row[k]:,}" for k in ("rows", "features", "classes", "trees")),
                    row["candidates"] or "default",
                    row["n_jobs"],
                    f"{row['fit_cpu_s']:.2f}",
                    f"{row['fit_wall_s']:.2f}",
                    *(f"{row[k]:,.0f}" for k in MEASURED[2:6]),
                    f"{row['predict_wall_s']:.3f}",
                    f"{row['pickle_mib']:.1f}",
                    f"{row['pickle_there_and_back_s']:.2f}",
                ]
            )
    table = markdown(header, lines)
    slopes = "\n".join(
        f"- {section}: CPU-seconds grow as the power {exponent(section, rows):.2f} of "
        + ("n log n" if section == "growth in rows" else section.removeprefix("growth in "))
        for section, rows in sections.items()
        if section.startswith("growth") and len(rows) > 1
    )
    slopes += "\n\nMore candidates make smaller trees, so their power is below one."
    text = f"# Scale\n\n{'; '.join(facts)}.\n\n{table}\n{slopes}\n\n![growth](scale.png)\n"
    write_whole(folder / "scale.md", text)
    print(text)
    draw(folder, {s: rows for s, rows in sections.items() if s.startswith("growth")})


def draw(folder, sections):
    from measuring.figures import plt, save

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.5), layout="constrained")
    for axis, (section, rows) in zip(axes, sections.items(), strict=False):
        rows = sorted(rows, key=lambda row: growing(section, [row])[0])
        x, seconds = growing(section, rows), np.array([row["fit_cpu_s"] for row in rows])
        axis.loglog(x, seconds, "o-", label=f"measured, power {exponent(section, rows):.2f}")
        middle = len(x) // 2
        axis.loglog(x, seconds[middle] * x / x[middle], "--", color="grey", label="power 1")
        axis.set_xlabel("n log n" if section == "growth in rows" else section.split()[-1])
        axis.xaxis.set_minor_formatter("")
        axis.legend()
    axes[0].set_ylabel("CPU-seconds of fit")
    save(figure, folder / "scale.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mnist", help="an .npz file; without it, see benchmarks/README.md")
    parser.add_argument("--only", nargs="+", choices=cases(False), metavar="SECTION")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the size")
    parser.add_argument("--output", type=Path, default=FOLDER)
    parser.add_argument("--setting", help=argparse.SUPPRESS)  # in the fresh process
    options = parser.parse_args()
    if options.setting:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measure(json.loads(options.setting), options.mnist, folder)))
        return
    _, path = data.images(options.mnist)
    options.output.mkdir(parents=True, exist_ok=True)
    versions = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit_learn": importlib.metadata.version("scikit-learn"),
        "morforest": importlib.metadata.version("morforest"),
    }
    for section, settings in cases(options.quick).items():
        if options.only and section not in options.only:
            continue
        for setting in settings:
            setting = {**SETTING, **setting}
            command = [sys.executable, "-m", "benchmarks.scale", "--setting", json.dumps(setting)]
            command += ["--mnist", str(path)]
            facts = {**run_facts(), **versions}
            done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
            if done.returncode:
                raise SystemExit(f"{section}, {setting}:\n{done.stderr}")
            found = json.loads(done.stdout.splitlines()[-1])
            print(section, setting, found, flush=True)
            append(options.output / "scale.csv", {**facts, "section": section, **setting, **found})
    publish(options.output)


if __name__ == "__main__":
    main()
