"""Why the RBF SVM is ahead of MORF on D: the energy of a sample, its sum of squares, says much.

The study compares a threshold on the energy at its median, which needs no training, with the RBF
SVM, and with the RBF SVM and MORF after all samples were scaled to the same energy.
"""

from pathlib import Path

import numpy as np

from experiments import models
from experiments.simulations import SIMULATIONS
from experiments.store import Task, read
from measuring import tables
from measuring.files import write_whole

STUDY = Path(__file__).stem
DATA = "D"
SIZES = (50, 100, 200, 1000)
REPEATS = 5
QUICK_SIZES = (100,)
QUICK_REPEATS = 2
TEST_SAMPLES = 5000
FIRST_SEED = 20_000  # far from those of the other studies
CUT, SVM, SCALED, MORF = "energy alone", "RBF SVM", "RBF SVM, same energy", "MORF, same energy"


def tasks(quick):
    return [
        Task(STUDY, {"data": DATA, "n": n, "classifier": classifier, "repeat": repeat}, 1.5)
        for n in (QUICK_SIZES if quick else SIZES)
        for classifier in (CUT, SVM, SCALED, MORF)
        for repeat in range(QUICK_REPEATS if quick else REPEATS)
    ]


def energy(X):
    return (X.reshape(len(X), -1) ** 2).sum(axis=1)


def run(task):
    n, classifier = int(task.key["n"]), task.key["classifier"]
    seed = FIRST_SEED + int(task.key["repeat"])
    simulation = SIMULATIONS[DATA]
    X, y = simulation.make(n, random_state=2 * seed)
    X_test, y_test = simulation.make(TEST_SAMPLES, random_state=2 * seed + 1)
    if classifier == CUT:
        strong = energy(X_test) > np.median(energy(X_test))
        error = float(np.mean(strong != (y_test == y_test.max())))
        return {"seed": seed, "error": error}
    if classifier != SVM:
        X, X_test = (x / np.sqrt(energy(x))[:, None, None] for x in (X, X_test))
    name = classifier.removesuffix(", same energy")
    model = models.make(name, DATA, simulation.shape, 2, n, seed=seed, threads=1)
    return {"seed": seed, "error": float(np.mean(model.fit(X, y).predict(X_test) != y_test))}


def figures(csvs, pngs):
    rows = read(csvs, STUDY)
    sizes = sorted({row["n"] for row in rows})
    names = [
        name for name in (CUT, SVM, SCALED, MORF) if any(r["classifier"] == name for r in rows)
    ]
    if not names:
        return
    lines = []
    for name in names:
        cells = []
        for n in sizes:
            errors = [r["error"] for r in rows if (r["n"], r["classifier"]) == (n, name)]
            cells.append(tables.rate_and_error(errors) if errors else "")
        lines.append([name, *cells])
    header = ["", *(f"n = {n:,}" for n in sizes)]
    write_whole(Path(csvs) / "energy.md", tables.markdown(header, lines))
