"""The study of time series and EEG: every classifier on every set of realdata.py.

A fold is the split that the data come with, or a resample of it, in which rows are assigned anew
with as many of each class in training as before. SSVEP is split by block, fragility by subject.
"""

import functools
import time
from pathlib import Path

import numpy as np
from sklearn.base import clone

from experiments import models, realdata, series_figures, series_tables, stats
from experiments.store import Task, read

STUDY = "series"
FOLDS = 10  # of a set that may be resampled
CURVES = ("finger", "fragility")  # sets whose ROC curves are kept: they stand in for the paper's
QUICK_SETS = ("GunPoint", "ItalyPowerDemand", "BasicMotions", "finger", "fragility")
QUICK_FOLDS = 2

# Rough CPU-seconds of a task: a constant, and a slope per million training values. They were
# measured once, and serve the order of the tasks and the time left.
SECONDS = {
    "MORF": (0.1, 2.0),
    "RF (scikit-learn)": (1.0, 10.0),
    "XGBoost": (0.1, 4.0),  # times the number of classes
    "MLP": (0.2, 2.0),
    "ConvNet": (6.0, 50.0),
    "MiniRocket": (0.3, 1.5),
}
OTHERS = (0.1, 1.5)

# aeon compiles at the first fit of a process, one function for series of one channel and another
# for more. This is not part of the seconds.
COMPILED = "MiniRocket"
compiled: set[bool] = set()


def tasks(quick):
    """Return what is to be done. Sets that are not available are named on screen and left out."""
    return [
        Task(
            STUDY,
            {"set": name, "classifier": classifier, "fold": fold},
            cost(classifier, data),
        )
        for name, data in realdata.available(
            QUICK_SETS if quick else realdata.RECORDINGS, load
        ).items()
        for fold in range(min(QUICK_FOLDS, folds_of(data)) if quick else folds_of(data))
        for classifier in models.NAMES
    ]


def cost(classifier, data):
    fixed, slope = SECONDS.get(classifier, OTHERS)
    if classifier == "XGBoost":
        slope *= len(np.unique(data.y))
    return round(fixed + slope * len(data.folds[0][0]) * data.X[0].size / 1e6, 2)


@functools.lru_cache(maxsize=2)
def load(name):
    return realdata.load(name)


def folds_of(data):
    """Return the number of folds: splits by block or subject are fixed, others are resampled."""
    return len(data.folds) if len(data.folds) > 1 else FOLDS


def split(data, fold):
    """Return rows for training and for testing."""
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
        data="finger" if data.name == realdata.CONTRAST else data.name,
        shape=data.X.shape[1:],
        classes=classes,
        rows=len(train),
        seed=fold,
        threads=1,
    )
    if task.key["classifier"] == COMPILED:
        compile_for(model, data, train, test)
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


def compile_for(model, data, train, test):
    """Let aeon compile before anything is timed, once per process and function."""
    several = data.X.shape[1] > 1
    if several not in compiled:
        clone(model).fit(data.X[train], data.y[train]).predict(data.X[test])
        compiled.add(several)


def figures(csvs, pngs):
    """Draw the figures and write the tables from the stored rows."""
    rows = read(csvs, STUDY)
    if rows:
        series_figures.draw(rows, Path(pngs))
        series_tables.write(rows, Path(csvs))
