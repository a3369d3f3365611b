"""What exported models cost: bytes of the files, and CPU time of predictions beside Python's.

    python -m benchmarks.export [--mnist mnist.npz | --stand-in] [--quick]

Models are fitted to images, written as ONNX, C and JavaScript, and predict test images in one
thread: all in batches of 1,000, and one image at a time. Times are the least of three. It needs the
packages onnx and onnxruntime; C and JavaScript are left out where there is no gcc or node.
"""

import json
import resource
import shutil
import subprocess
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import onnxruntime

from benchmarks import options
from benchmarks.results import Sheet, run_facts
from measuring import arrays
from measuring.files import write_whole
from measuring.machine import commit
from measuring.tables import markdown
from morforest import MorfBoostingClassifier, MorfClassifier, Patch, SparseOblique

BATCH, REPEATS, ONES = 1000, 3, 300  # `ONES` images are predicted one at a time

PROGRAM = """
#include <stdio.h>
#include "model.h"
int main(void) {
  static morf_scratch scratch;
  static double sample[MORF_FEATURES], result[1 + MORF_RESULTS];
  while (fread(sample, sizeof(double), MORF_FEATURES, stdin) == MORF_FEATURES) {
    result[0] = morf_predict(sample, &scratch, result + 1);
    fwrite(result, sizeof(double), 1 + MORF_RESULTS, stdout);
  }
  return 0;
}
"""
SCRIPT = """
import { readFileSync, writeSync } from "node:fs";
import * as model from "./model.mjs";
const bytes = new Uint8Array(readFileSync(0));
const x = new Float64Array(bytes.buffer), rows = x.length / %d, size = x.length / rows;
const predict = () => {
  for (let i = 0; i < rows; ++i) model.probabilities(x.subarray(i * size, (i + 1) * size));
};
predict();
const start = process.cpuUsage();
predict();
const { user, system } = process.cpuUsage(start);
const found = [];
for (let i = 0; i < rows; ++i)
  found.push([...model.probabilities(x.subarray(i * size, (i + 1) * size))]);
console.log(JSON.stringify([(user + system) / 1e6, found]));
"""


def models(trees):
    """Return the models by name."""
    common = {"n_jobs": 1, "random_state": 0}
    return {
        "forest, Patch": MorfClassifier(Patch((2, 2), (2, 5)), n_estimators=trees, **common),
        "forest, SparseOblique": MorfClassifier(SparseOblique(), n_estimators=trees, **common),
        'forest, "image"': MorfClassifier("image", n_estimators=trees, **common),
        "boosting, Patch": MorfBoostingClassifier(Patch(), max_iter=trees, **common),
    }


def least(work):
    """Return the least CPU-seconds of some repeats."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def in_python(model, X):
    found = model.predict_proba(X)
    batches = least(
        lambda: [model.predict_proba(X[i : i + BATCH]) for i in range(0, len(X), BATCH)]
    )
    ones = least(lambda: [model.predict_proba(X[i : i + 1]) for i in range(min(ONES, len(X)))])
    return found, batches / len(X), ones / min(ONES, len(X))


def in_onnx(model, X, folder):
    path = folder / "model.onnx"
    model.to_onnx(path, dtype="uint8")
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])

    def run(rows):
        return session.run(["probabilities"], {"X": rows})[0]

    found = np.concatenate([run(X[i : i + BATCH]) for i in range(0, len(X), BATCH)])
    batches = least(lambda: [run(X[i : i + BATCH]) for i in range(0, len(X), BATCH)])
    ones = least(lambda: [run(X[i : i + 1]) for i in range(min(ONES, len(X)))])
    return found, batches / len(X), ones / min(ONES, len(X)), path.stat().st_size


def in_c(model, X, folder):
    """Time a program, its start and the passing of samples included."""
    path = folder / "model.h"
    model.to_c(path)
    (folder / "main.c").write_text(PROGRAM)
    program = folder / "main"
    command = ["gcc", "-std=c99", "-O2", folder / "main.c", "-o", program, "-lm"]
    subprocess.run(command, check=True)
    given = X.astype(np.float64).tobytes()
    times = []
    for _ in range(REPEATS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        out = subprocess.run([program], input=given, capture_output=True, check=True).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    found = np.frombuffer(out).reshape(len(X), -1)[:, 1:]
    return found, min(times) / len(X), "", path.stat().st_size


def in_js(model, X, folder):
    path = folder / "model.mjs"
    model.to_js(path)
    (folder / "main.mjs").write_text(SCRIPT % X[0].size)
    given = X.astype(np.float64).tobytes()
    command = ["node", folder / "main.mjs"]
    found = []
    for _ in range(REPEATS):
        out = subprocess.run(command, input=given, capture_output=True, check=True).stdout
        found.append(json.loads(out))
    return np.array(found[-1][1]), min(cpu for cpu, _ in found) / len(X), "", path.stat().st_size


def measure(fitted, X, sheet, facts):
    """Measure all formats of one model; return the lines of the table."""
    name, model = fitted
    writers = {"ONNX": in_onnx}
    writers |= {"C": in_c} if shutil.which("gcc") else {}
    writers |= {"JavaScript": in_js} if shutil.which("node") else {}
    expected, batches, ones = in_python(model, X)
    lines = [[name, "Python", "", f"{1e3 * batches:.3f}", f"{1e3 * ones:.2f}", "", ""]]
    none = {"format": "Python", "bytes": "", "labels": "", "largest_difference": ""}
    sheet.add(**facts, model=name, **none, cpu_per_row=batches, cpu_of_one=ones)
    for kind, write in writers.items():
        with tempfile.TemporaryDirectory() as folder:
            found, batches, ones, size = write(model, X, Path(folder))
        equal = int((found.argmax(axis=1) == expected.argmax(axis=1)).sum())
        largest = float(np.abs(found - expected).max())
        sheet.add(
            **facts,
            model=name,
            format=kind,
            bytes=size,
            labels=equal,
            largest_difference=largest,
            cpu_per_row=batches,
            cpu_of_one=ones,
        )
        one = f"{1e3 * ones:.2f}" if ones else ""
        times = [f"{size / 1e6:.2f}", f"{1e3 * batches:.3f}", one]
        lines.append([name, kind, *times, f"{equal:,} of {len(X):,}", f"{largest:.1g}"])
    return lines


def main():
    quick, output, name, path = options.read(__doc__)
    X, y, X_test, _ = arrays.load(path)
    rows, trees, tests = (500, 10, 500) if quick else (5000, 100, 2000)
    X, X_test = (np.asarray(part).reshape(-1, 28, 28).astype(np.uint8) for part in (X, X_test))
    X, y, X_test = X[:rows], y[:rows], X_test[:tests]
    run = {**run_facts(), "commit": commit()}
    sheet = Sheet(output, "export", run)
    versions = {name: version(name) for name in ("morforest", "onnx", "onnxruntime")}
    facts = {"data": name, "rows": rows, "trees": trees, **versions}
    lines = []
    for fitted in models(trees).items():
        fitted[1].fit(X, y)
        lines += measure(fitted, X_test, sheet, facts)
    heads = (
        "model",
        "format",
        "MB",
        "CPU-ms per image, batches",
        "CPU-ms, one image",
        "equal labels",
        "largest difference",
    )
    text = "\n\n".join(
        [
            "# Exported models",
            f"{trees} trees or rounds, fitted to {rows:,} images of {name}, predict "
            f"{len(X_test):,} images in one thread, in batches of {BATCH:,} and one at a time. C "
            "includes the start of the program and reading the images; JavaScript does not. "
            "Differences are those of probabilities from `predict_proba`.",
            "`{command}`, {date}, commit {commit}, {cpu_model}, {cores} cores, load "
            "{load_at_start} at the start.".format_map(run)
            + " "
            + ", ".join(f"{name} {found}" for name, found in versions.items())
            + ".",
            markdown(heads, lines).rstrip(),
        ]
    )
    write_whole(output / "export.md", text + "\n")
    print(text)


if __name__ == "__main__":
    main()
