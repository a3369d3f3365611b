"""What each mechanism gains: models with and without it, on the same samples.

Small data and small forests, so that all of it takes minutes. A setting is one model; a comparison
sets two of them side by side (mechanism_comparisons.py). Settings that several comparisons need are
run once.
"""

import functools
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from experiments import beyond_tables, mechanism_settings, mnist, realdata, series, simulations
from experiments.mechanism_comparisons import COMPARISONS
from experiments.store import Task, read
from measuring import tables
from measuring.files import write_whole

STUDY = Path(__file__).stem
REPEATS = 5
QUICK_REPEATS = 1
SIMULATED = {"n": 200, "tested": 2000, "first": 300}  # repeats far from those of other studies
DIGITS, DIGITS_TRAINED = "digits", 300
MNIST_TRAINED, MNIST_TESTED = 1000, 2000
TABLE_TRAINED, TABLE_TESTED = 1000, 2000
# Sets that any atoms solve cannot tell settings apart.
SOLVED = ("BasicMotions", "CBF", "Coffee")
SETS = (*(name for name in realdata.CHECKSUMS if name not in SOLVED), "finger")
CHANNELS = ("D", "E", "Epilepsy", "Libras", "NATOPS", "RacketSports")
TABLES = tuple(
    name
    for name, kind in beyond_tables.KINDS.items()
    if kind.measure == beyond_tables.ACCURACY and not kind.real
)
# Means over this many data sets or more have the standard error over sets, others over repeats.
MANY = 5


@dataclass(frozen=True)
class Group:
    """Data and the settings that are tried on them."""

    whole: str  # what its tables call the model without a change
    data: tuple[str, ...]
    settings: dict[str, Callable]  # name -> (shape of a sample) -> estimator
    repeats: int = REPEATS


GROUPS = {
    "series, ridge": Group("`AtomRidgeClassifier()`", SETS, mechanism_settings.RIDGE, 3),
    "series, forest": Group('`MorfClassifier("series")`', SETS, mechanism_settings.SERIES),
    "simulations": Group(
        '`MorfClassifier("series")`', ("A", "C", "D"), mechanism_settings.SERIES, 3
    ),
    "images": Group(
        '`MorfClassifier("image")`', (DIGITS, mnist.DATA), mechanism_settings.IMAGES, 3
    ),
    "patches": Group("`Patch(3, 12)`", ("A", "C", "D"), mechanism_settings.PATCHES, 10),
    "sensors": Group("", CHANNELS, mechanism_settings.SENSORS),
    "tables": Group("", TABLES, mechanism_settings.TABLES),
}


# --- samples --------------------------------------------------------------------------------------


def samples(data, repeat):
    """Return training samples and labels of a repeat, then those for testing."""
    if data in simulations.SIMULATIONS:
        return simulations.samples(
            data, SIMULATED["n"], SIMULATED["first"] + repeat, SIMULATED["tested"]
        )
    if data == DIGITS:
        X, y = load_digits(return_X_y=True)
        parts = train_test_split(
            X.reshape(-1, 8, 8), y, train_size=DIGITS_TRAINED, stratify=y, random_state=repeat
        )
        return parts[0], parts[2], parts[1], parts[3]
    if data == mnist.DATA:
        X, y, X_test, y_test = mnist.images()
        rows = mnist.chosen(y, MNIST_TRAINED, repeat)
        return X[rows], y[rows], X_test[:MNIST_TESTED], y_test[:MNIST_TESTED]
    if data in beyond_tables.KINDS:
        parts = beyond_tables.samples(data, repeat, TABLE_TRAINED, TABLE_TESTED)
        return parts[0], parts[2], parts[1], parts[3]
    found = series.load(data)
    train, test = series.split(found, 1 + repeat)  # a new split, which no other table shows
    return found.X[train], found.y[train], found.X[test], found.y[test]


@functools.cache
def reason_against(data):
    """Return why a data set is not available; None if it is."""
    try:
        samples(data, 0)
    except (OSError, ValueError, LookupError) as error:
        return str(error)
    return None


# --- the study ------------------------------------------------------------------------------------


def tasks(quick):
    """Return the tasks; each runs all settings of a group on one repeat of one data set."""
    found = []
    for name, group in GROUPS.items():
        for data in group.data[:1] if quick else group.data:
            if reason_against(data):
                print(f"LEFT OUT {data} of {STUDY}: {reason_against(data)}", file=sys.stderr)
                continue
            for repeat in range(QUICK_REPEATS if quick else group.repeats):
                key = {"group": name, "data": data, "repeat": repeat}
                found.append(Task(STUDY, key, 0.5 * len(group.settings)))
    return found


def run(task):
    """Return a row per setting."""
    group, repeat = GROUPS[task.key["group"]], int(task.key["repeat"])
    X, y, X_test, y_test = samples(task.key["data"], repeat)
    rows = []
    for name, make in group.settings.items():
        model = clone(make(X.shape[1:])).set_params(random_state=repeat)
        start = time.process_time()
        model.fit(X, y)
        fitted = time.process_time()
        error = float(np.mean(model.predict(X_test) != y_test))
        rows.append(
            {
                "setting": name,
                "seed": repeat,
                "error": round(error, 6),
                "train_seconds": round(fitted - start, 4),
                "test_seconds": round(time.process_time() - fitted, 4),
            }
        )
    return rows


# --- the table ------------------------------------------------------------------------------------


def figures(csvs, pngs):
    found = read(csvs, STUDY)
    if found:
        lines = [line for comparison in COMPARISONS if (line := compared(found, comparison))]
        write_whole(Path(csvs) / f"{STUDY}.md", tables.markdown(HEADER, lines))


HEADER = [
    "mechanism",
    "with it",
    "in its place",
    "on",
    "error with",
    "error without",
    "difference",
    "time of a fit, ratio",
    "result",
]
GAIN, LOSS, NEITHER = "gains", "loses", "no measurable difference"


def compared(found, comparison):
    """Return a line of the table; None while one of the settings lacks rows."""
    cells = {
        (row["data"], row["repeat"], row["setting"]): row
        for row in found
        if row["group"] == comparison.group
    }
    data = comparison.data or GROUPS[comparison.group].data
    pairs = {}
    for name, repeat, setting in cells:
        both = [cells.get((name, repeat, s)) for s in (comparison.on, comparison.off)]
        if setting == comparison.on and name in data and all(both):
            pairs.setdefault(name, []).append(both)
    if not pairs:
        return None
    difference, error = mean_difference(pairs)
    means = [
        np.mean([np.mean([p[i]["error"] for p in of]) for of in pairs.values()]) for i in (0, 1)
    ]
    seconds = [sum(p[i]["train_seconds"] for of in pairs.values() for p in of) for i in (0, 1)]
    return [
        comparison.mechanism,
        *(named(comparison.group, setting) for setting in (comparison.on, comparison.off)),
        where(comparison.group, list(pairs)),
        *map(tables.rate, means),
        f"{difference:+.4f} ± {error:.4f}",
        f"{seconds[0] / seconds[1]:.2f}",
        verdict(difference, error),
    ]


def mean_difference(pairs):
    """Return the mean error with the mechanism less that without it, and its standard error."""
    by_data = [np.mean([on["error"] - off["error"] for on, off in of]) for of in pairs.values()]
    if len(pairs) >= MANY:
        return float(np.mean(by_data)), tables.standard_error(by_data)
    # Within each data set: differences between sets are no noise of a mean over these very sets.
    each = [np.array([on["error"] - off["error"] for on, off in of]) for of in pairs.values()]
    squares = [tables.standard_error(list(values)) ** 2 for values in each]
    return float(np.mean(by_data)), float(np.sqrt(sum(squares)) / len(each))


def verdict(difference, error):
    if not abs(difference) > 2 * error:  # a single repeat has no error, and shows nothing
        return NEITHER
    return GAIN if difference < 0 else LOSS


def named(group, setting):
    return GROUPS[group].whole if setting == mechanism_settings.AS_IS else setting


def where(group, data):
    kinds = {"series, ridge": "series", "series, forest": "series", "tables": "tables"}
    return (
        f"{len(data)} sets of {kinds[group]}"
        if group in kinds and len(data) > 1
        else ", ".join(data)
    )
