"""EEG: the classifiers of this library beside those that people who record it use.

Splits are honest: of a set with several runs of one person, each run in turn is for testing; of a
set with several persons, each person is a fold, trained on earlier blocks or sessions and tested on
later ones. Words are split by chance, as there is one run of one person. Finger movements have the
split of the competition; five resamples of it, which are no new recordings, tell how much it
matters.
"""

import functools
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments import eeg_models, eeg_tables, realdata, series, stats
from experiments.store import Task, read

STUDY = Path(__file__).stem
AUC, ACCURACY = "AUC", "accuracy"
RESAMPLED = "finger, resampled"
RESAMPLES = 5
OURS = (
    "ridge",
    "ridge eeg",
    "boosting series",
    "boosting eeg",
    "forest patch",
    "forest eeg",
    "forest auto",
)
QUICK_SETS, QUICK_FOLDS = ("finger", "n400", "ssvep-exo"), 1
SINGLE_TRIALS = 15  # that are predicted one by one, for the time that one takes


@dataclass(frozen=True)
class Set:
    """What a peer may know of a set, and how it is scored."""

    title: str
    score: str
    sfreq: float
    frequencies: tuple[float, ...] = ()  # of the stimuli
    leaves_out: tuple[str, ...] = ()  # classifiers that make no sense, or take hours


NO_STIMULI = (eeg_models.MDM_TOLD, eeg_models.TRCA_PLAIN, eeg_models.TRCA)
SETS = {
    "finger": Set("finger movement", AUC, 100, leaves_out=NO_STIMULI),
    "n400": Set("words (N400)", AUC, 50, leaves_out=NO_STIMULI),
    "p300": Set("P300 speller", AUC, 50, leaves_out=NO_STIMULI),
    "left-right": Set("left or right, 4 electrodes", AUC, 128, leaves_out=NO_STIMULI),
    "ssvep-exo": Set("SSVEP, 4 classes", ACCURACY, 128, (13, 21, 17)),
    "ssvep": Set(
        "SSVEP, 40 classes",
        ACCURACY,
        250,
        tuple(np.round(np.arange(8, 16, 0.2), 1)),
        # Covariances of 360 channels, or of 320: more than there are trials. Xdawn has 160
        # components, and windows that are longer than half a period.
        (
            eeg_models.MDM_TOLD,
            eeg_models.TANGENT_EVOKED,
            eeg_models.MDM_EVOKED,
            eeg_models.XDAWN,
        ),
    ),
    RESAMPLED: Set("finger movement, resampled", AUC, 100, leaves_out=NO_STIMULI),
}
MAIN = tuple(name for name in SETS if name != RESAMPLED)  # means are over these
# Rough CPU-seconds of a task: a constant, and a slope per million training values.
SECONDS = {
    eeg_models.EEGNET: (10.0, 15.0),
    eeg_models.MINIROCKET: (1.0, 2.0),
    "boosting series": (1.0, 10.0),
    "forest auto": (1.0, 10.0),
}
OTHERS = (0.3, 2.0)


def tasks(quick):
    """Return what is to be done. Sets that are not available are named on screen and left out."""
    return [
        Task(STUDY, {"set": name, "classifier": classifier, "fold": fold}, cost(classifier, data))
        for name, data in realdata.available(QUICK_SETS if quick else SETS, load).items()
        for classifier in (*OURS, *eeg_models.PEERS)
        if classifier not in SETS[name].leaves_out
        for fold in range(QUICK_FOLDS if quick else len(data.folds))
    ]


def cost(classifier, data):
    fixed, slope = SECONDS.get(classifier, OTHERS)
    return round(fixed + slope * len(data.folds[0][0]) * data.X[0].size / 1e6, 2)


@functools.lru_cache(maxsize=2)
def load(name):
    """Return a set with its folds; the resamples are those of the study `series`."""
    if name != RESAMPLED:
        return realdata.load(name)
    data = realdata.load("finger")
    folds = tuple(series.split(data, fold) for fold in range(1, RESAMPLES + 1))
    return realdata.DataSet(name, data.X, data.y, folds)


def run(task):
    """Train and test one classifier on one fold of one set."""
    name, classifier = task.key["set"], task.key["classifier"]
    data, fold = load(name), int(task.key["fold"])
    train, test = data.folds[fold]
    X, y, X_test, y_test = data.X[train], data.y[train], data.X[test], data.y[test]
    model = eeg_models.make(classifier, SETS[name], fold)
    if classifier == series.COMPILED:
        series.compile_for(model, data, train, test)
    wall, start = time.perf_counter(), time.process_time()
    model.fit(X, y)
    trained = time.process_time()
    predicted = model.predict(X_test)
    tested = time.process_time()
    wall = time.perf_counter() - wall
    return {
        "seed": fold,
        "classes": len(np.unique(y)),
        "train_rows": len(train),
        "test_rows": len(test),
        "accuracy": round(float(np.mean(predicted == y_test)), 6),
        "auc": round(stats.auc(y_test, model.predict_proba(X_test)), 6),
        "train_seconds": round(trained - start, 4),
        "test_seconds": round(tested - trained, 4),
        "trial_ms": round(1e3 * seconds_of_one(model, X_test), 4),
        "wall_seconds": round(wall, 4),
    }


def seconds_of_one(model, X):
    """Return the median CPU-seconds that the prediction of a single trial takes.

    This is without the wrapper, which asks all libraries for their threads each time.
    """
    taken = []
    for trial in X[:SINGLE_TRIALS, None]:
        start = time.process_time()
        model.model_.predict(model.ready(trial))
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def rows(csvs):
    """Return the stored rows with the score by which the set is judged."""
    found = read(csvs, STUDY)
    columns = {AUC: "auc", ACCURACY: "accuracy"}
    return [{**row, "score": row[columns[SETS[row["set"]].score]]} for row in found]


def figures(csvs, pngs):
    found = rows(csvs)
    if found:
        eeg_tables.write(found, SETS, MAIN, Path(csvs), Path(pngs))
