"""The study of time series and EEG: every classifier on every set of realdata.py.

A fold is the split that the data come with, or a resample of it: rows are dealt anew, with as many
of each class in training as there were. SSVEP is split by block, the fragility data by subject.
"""

import functools
import time
from pathlib import Path

import models
import numpy as np
import realdata
import series_figures
import series_tables
import stats
from store import Task

STUDY = "series"
FOLDS = 10  # of a set that may be resampled
CURVES = ("finger", "fragility")  # sets whose ROC curves are kept: they stand in for the paper's
QUICK_SETS = ("GunPoint", "ItalyPowerDemand", "BasicMotions", "finger", "fragility")
QUICK_FOLDS = 2

# CPU-seconds of a fit and its prediction, by 1,000 rows and 1,000 features: rough, for the order
# of the tasks and the time left.
SECONDS = {"ConvNet": 40.0, "MLP": 10.0, "XGBoost": 20.0, "RBF SVM": 6.0, "MORF": 5.0}
OTHERS = 3.0


def tasks(quick):
    """What is to be done. Sets that cannot be had are named on screen, and left out."""
    found = []
    for name in QUICK_SETS if quick else realdata.SOURCES:
        try:
            data = load(name)
        except realdata.Unavailable as reason:
            print(f"series: left out: {reason}", flush=True)
            continue
        size = data.X[0].size * len(data.X) / 1e6
        folds = range(min(QUICK_FOLDS, folds_of(data)) if quick else folds_of(data))
        found += [
            Task(
                STUDY,
                {"set": name, "classifier": classifier, "fold": fold},
                round(0.2 + SECONDS.get(classifier, OTHERS) * size, 2),
            )
            for fold in folds
            for classifier in models.NAMES
        ]
    return found


@functools.lru_cache(maxsize=2)
def load(name):
    return realdata.load(name)


def folds_of(data):
    """Splits by block or subject are all that there are; others can be resampled."""
    return len(data.folds) if len(data.folds) > 1 else FOLDS


def split(data, fold):
    """Rows for training and for testing."""
    if fold < len(data.folds):
        return data.folds[fold]
    train, _ = data.folds[0]
    random = np.random.RandomState(fold)
    chosen = np.zeros(len(data.y), dtype=bool)
    for label, count in zip(*np.unique(data.y[train], return_counts=True), strict=True):
        chosen[random.permutation(np.flatnonzero(data.y == label))[:count]] = True
    return np.flatnonzero(chosen), np.flatnonzero(~chosen)


def run(task):
    """Train and test one classifier on one fold of one set."""
    data, fold = load(task.key["set"]), int(task.key["fold"])
    train, test = split(data, fold)
    classes = len(np.unique(data.y))
    model = models.make(
        task.key["classifier"],
        data=data.name,
        shape=data.X.shape[1:],
        classes=classes,
        rows=len(train),
        seed=fold,
        threads=1,
    )
    wall, start = time.perf_counter(), time.process_time()
    model.fit(data.X[train], data.y[train])
    trained = time.process_time()
    predicted = model.predict(data.X[test])
    tested = time.process_time()
    wall = time.perf_counter() - wall
    labels, probabilities = data.y[test], model.predict_proba(data.X[test])
    if data.groups is not None:  # a subject counts once, however many recordings there are
        labels, probabilities = stats.by_group(labels, probabilities, data.groups[test])
        predicted = probabilities.argmax(axis=1)
    curve = stats.roc(labels, probabilities[:, 1]) if data.name in CURVES else ()
    return {
        **task.key,
        "seed": fold,
        "channels": data.X.shape[1],
        "time": data.X.shape[2],
        "classes": classes,
        "train_rows": len(train),
        "test_rows": len(test),
        "scored": len(labels),
        "accuracy": round(float(np.mean(predicted == labels)), 6),
        "kappa": round(stats.kappa(labels, predicted), 6),
        "auc": round(stats.auc(labels, probabilities), 6),
        "train_seconds": round(trained - start, 4),
        "test_seconds": round(tested - trained, 4),
        "wall_seconds": round(wall, 4),
        "roc": " ".join(f"{rate:.4g}" for rate in curve),
    }


def figures(csvs, pngs):
    """Draw the figures and write the tables from the rows there are."""
    path = Path(csvs) / f"{STUDY}.csv"
    rows = series_tables.read(path)
    if rows:
        series_figures.draw(rows, Path(pngs))
        series_tables.write(rows, path.with_suffix(".md"))
