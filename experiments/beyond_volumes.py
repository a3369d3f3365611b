"""Volumes: shapes of adrenal glands, 28 x 28 x 28, normal or with a mass (AdrenalMNIST3D).

Models are trained on the training part alone. Nothing is chosen, so the validation part is not
used.
"""

import functools
import time
from pathlib import Path

import numpy as np

from experiments import beyond, models, realdata, stats
from experiments.store import Task, read
from measuring import tables
from measuring.files import write_whole

STUDY = Path(__file__).stem
CLASSIFIERS = ("forest patch", "forest image", beyond.PEER)
REPEATS = 5
QUICK_REPEATS = 1
COSTS = {"forest patch": 15.0, "forest image": 60.0, beyond.PEER: 30.0}  # rough CPU-seconds


def tasks(quick):
    volumes()  # fails before any work if data are missing
    return [
        Task(
            STUDY,
            {"data": realdata.ADRENAL, "classifier": classifier, "repeat": repeat},
            COSTS[classifier],
        )
        for classifier in CLASSIFIERS
        for repeat in range(QUICK_REPEATS if quick else REPEATS)
    ]


@functools.cache
def volumes():
    return realdata.load(realdata.ADRENAL)


def run(task):
    classifier, repeat = task.key["classifier"], int(task.key["repeat"])
    data = volumes()
    train, test = data.folds[0]
    model = make(classifier, data.X.shape[1:], len(train), repeat)
    start = time.process_time()
    model.fit(data.X[train], data.y[train])
    fitted = time.process_time()
    probabilities = model.predict_proba(data.X[test])
    done = time.process_time()
    return {
        "n": len(train),
        "test_samples": len(test),
        "seed": repeat,
        "auc": round(stats.auc(data.y[test], probabilities), 6),
        "error": round(float(np.mean(probabilities.argmax(axis=1) != data.y[test])), 6),
        "train_seconds": round(fitted - start, 4),
        "test_seconds": round(done - fitted, 4),
    }


def make(classifier, shape, n, seed):
    if beyond.ours(classifier):
        return beyond.make(classifier, seed)
    given = dict(models.table()["every"][classifier])
    return models.Classifier(models.model(classifier, given, shape, n, seed, 1), flat=True)


def rows(csvs):
    return beyond.with_loss(read(csvs, STUDY), lambda row: 1 - row["auc"])


def figures(csvs, pngs):
    found = rows(csvs)
    if found:
        write_whole(Path(csvs) / "beyond-volumes.md", table(found))


def table(found):
    lines = []
    for classifier in CLASSIFIERS:
        of = [row for row in found if row["classifier"] == classifier]
        if of:
            scores = [tables.rate_and_error([row[name] for row in of]) for name in ("auc", "error")]
            seconds = np.median([row["train_seconds"] for row in of])
            lines.append([classifier, *scores, f"{seconds:.3g}"])
    return tables.markdown(["", "AUC", "error", "CPU-seconds of a fit"], lines)
