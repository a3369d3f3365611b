"""Missing values taken as they are, beside filling them in before the fit, and beside peers.

Values are removed from four sets of series and two tables, at random or in blocks, in training and
test samples alike. Each repeat splits a set anew and removes other values; all methods of a repeat
see the same ones. Nothing is tuned: forests have 500 trees, boosting 500 rounds, and all else is a
default.
"""

import functools
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.model_selection import train_test_split

from experiments import realdata, verdicts
from experiments.store import Task, origin, read
from measuring import tables
from measuring.files import write_whole
from morforest import Axis, MorfBoostingClassifier, MorfClassifier, Patch, SparseOblique

STUDY = Path(__file__).stem
# By their size alone: short, few, one of several channels.
SERIES = ("GunPoint", "ECG200", "ItalyPowerDemand", "BasicMotions")
TABLES = {"breast cancer": datasets.load_breast_cancer, "wine": datasets.load_wine}
RANDOM, BLOCKS = "at random", "in blocks"
SHARES = (0.1, 0.3, 0.5)
QUICK_SHARES = (0.3,)
REPEATS, QUICK_REPEATS = 5, 2
FIRST_SEED = 40_000  # far from those of the other studies
TREES = 500
HELD_OUT = 1 / 3  # of tables; of series, as many are for training as the archive says
MOST_TESTED = 300

# "NaN" would be read back as a number.
AS_THEY_ARE, MEAN, LINE, KNN, ITERATIVE = "none", "mean", "line", "neighbours", "iterative"
FILLS = {True: (MEAN, LINE), False: (MEAN, KNN, ITERATIVE)}  # of series, and of tables
FOREST, HISTOGRAMS = "RF (scikit-learn)", "HistGradientBoosting"
PEERS = (FOREST, HISTOGRAMS)
OURS = {
    True: ("forest patch", "forest series", "boosting"),
    False: ("forest axis", "forest sporf", "boosting"),
}
COSTS = {"forest series": 0.8, "boosting": 0.6, FOREST: 1.4}  # rough CPU-seconds


def tasks(quick):
    for name in SERIES:
        load(name)  # fails before any work if data are missing
    return [
        Task(
            STUDY,
            {
                "data": data,
                "removed": removed,
                "share": share,
                "classifier": classifier,
                "repeat": repeat,
            },
            COSTS.get(classifier, 0.4),
        )
        for data in (*SERIES, *TABLES)
        for removed in (RANDOM, BLOCKS)
        for share in (QUICK_SHARES if quick else SHARES)
        for classifier in (*OURS[data in SERIES], *PEERS)
        for repeat in range(QUICK_REPEATS if quick else REPEATS)
    ]


# --- data ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Samples:
    X: np.ndarray
    y: np.ndarray
    train: int | float  # how many, or which share


@functools.cache
def load(name):
    if name in TABLES:
        X, y = TABLES[name](return_X_y=True)
        return Samples(X, y, 1 - HELD_OUT)
    data = realdata.load(name)
    return Samples(data.X.astype(np.float64), data.y, len(data.folds[0][0]))


def split(data, seed):
    """Return the rows for training and for testing, each class in proportion."""
    rows = np.arange(len(data.y))
    train, test = train_test_split(rows, train_size=data.train, stratify=data.y, random_state=seed)
    return train, test[:MOST_TESTED]


def remove(X, removed, share, seed):
    """Return X with NaN for a share of its values.

    A block is that share of the last axis: of each channel of each sample, from a place of its own,
    and continued at the beginning where it reaches the end. All positions are missing as often.
    """
    random = np.random.default_rng(seed)
    if removed == RANDOM:
        missing = random.random(X.shape) < share
    else:
        length = X.shape[-1]
        first = random.integers(length, size=(*X.shape[:-1], 1))
        missing = (np.arange(length) - first) % length < round(share * length)
    return np.where(missing, np.nan, X)


def fill(how, train, test, seed):
    """Fill in missing values, learning from training samples alone."""
    if how == AS_THEY_ARE:
        return train, test
    if how == LINE:  # channels of which nothing is left get the mean
        return fill(MEAN, *(interpolated(X) for X in (train, test)), seed)
    keep = {"keep_empty_features": True}
    imputer = {
        MEAN: SimpleImputer(**keep),
        KNN: KNNImputer(**keep),
        ITERATIVE: IterativeImputer(random_state=seed, **keep),
    }[how].fit(flat(train))
    return tuple(imputer.transform(flat(X)).reshape(X.shape) for X in (train, test))


def interpolated(X):
    """Draw a line between the neighbours of each gap; the first and the last value go on."""
    out, steps = X.copy(), np.arange(X.shape[-1])
    for line in out.reshape(-1, X.shape[-1]):
        known = ~np.isnan(line)
        if known.any():
            line[:] = np.interp(steps, steps[known], line[known])
    return out


def flat(X):
    return X.reshape(len(X), -1)


# --- one task ------------------------------------------------------------------------------------


def make(classifier, seed, channel_axis=None):
    """Return an unfitted model; its name says what is chosen."""
    if classifier == FOREST:
        return RandomForestClassifier(TREES, random_state=seed)
    if classifier == HISTOGRAMS:
        return HistGradientBoostingClassifier(random_state=seed)
    shape = {"channel_axis": channel_axis, "random_state": seed}
    if classifier == "boosting":
        return MorfBoostingClassifier(max_iter=TREES, **shape)
    dictionary = {
        "patch": Patch(),
        "series": "series",
        "axis": Axis(),
        "sporf": SparseOblique(),
    }[classifier.split()[1]]
    return MorfClassifier(dictionary, n_estimators=TREES, **shape)


def run(task):
    """Return a row per way to treat missing values."""
    name, classifier = task.key["data"], task.key["classifier"]
    seed = FIRST_SEED + int(task.key["repeat"])
    data = load(name)
    train, test = split(data, seed)
    X = remove(data.X, task.key["removed"], float(task.key["share"]), seed)
    rows = []
    for how in (AS_THEY_ARE, *FILLS[name in SERIES]):
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # imputers that have not converged
            X_train, X_test = fill(how, X[train], X[test], seed)
        if classifier in PEERS:
            X_train, X_test = flat(X_train), flat(X_test)
        model = make(classifier, seed, 1 if name in SERIES else None).fit(X_train, data.y[train])
        right = model.predict(X_test) == data.y[test]
        rows.append(
            {
                "filled": how,
                "seed": seed,
                "n": len(train),
                "accuracy": round(float(right.mean()), 6),
                "used": round(time.process_time() - start, 3),
            }
        )
    total = round(sum(row["used"] for row in rows), 3)
    return [{**row, "cpu_seconds": total} for row in rows]


# --- tables --------------------------------------------------------------------------------------


def figures(csvs, pngs):
    rows = read(csvs, STUDY)
    if not rows:
        return
    scores = scores_of(rows, "filled")
    for series, kind in ((True, "series"), (False, "tables")):
        cells = sorted_cells(scores, series)
        if not cells:
            continue
        write_whole(Path(csvs) / f"missing-{kind}.md", cell_table(scores, cells, series))
        write_whole(Path(csvs) / f"missing-{kind}-accuracy.md", means_table(scores, cells, series))
    text = summary_table(scores)
    write_whole(Path(csvs) / "missing-summary.md", f"{text}\n{facts(rows)}\n")


def scores_of(rows, column):
    """Return accuracies by repeat, of each cell and method: {(cell): {(method): {repeat: score}}}.

    A cell is a set with some of its values removed in one way; a method, a classifier and what was
    done about them.
    """
    names = ("data", *(name for name in ("removed", "share", "cut") if name in rows[0]))
    found = {}
    for row in rows:
        cell = found.setdefault(tuple(row[name] for name in names), {})
        cell.setdefault((row["classifier"], row[column]), {})[row["repeat"]] = row["accuracy"]
    return found


def pairs(scores, cells, ours, theirs):
    """Return the scores of two methods in each cell, on the repeats that all of it share.

    Without such repeats, as in the middle of a run, there is nothing to compare.
    """
    both = [(scores[cell].get(ours), scores[cell].get(theirs)) for cell in cells]
    if not both or not all(a and b for a, b in both):
        return []
    shared = sorted(set.intersection(*({*a} & {*b} for a, b in both)))
    return [tuple([x[i] for i in shared] for x in pair) for pair in both] if shared else []


def sorted_cells(scores, series):
    names = SERIES if series else tuple(TABLES)
    cells = [cell for cell in scores if cell[0] in names]
    return sorted(cells, key=lambda cell: (names.index(cell[0]), cell[1], cell[2]))


def against(series, classifier):
    """Return the methods that a classifier, with missing values as they are, is compared with."""
    filled = [(classifier, how) for how in FILLS[series]]
    return [*filled, *((peer, AS_THEY_ARE) for peer in PEERS)]


def word(method):
    """Name a method beside one of the same classifier."""
    classifier, how = method
    return f"{classifier}, NaN" if classifier in PEERS else f"filled: {how}"


def cell_table(scores, cells, series):
    """Return the differences to each peer in each cell, in points of accuracy."""
    header = ["data", "removed", "", "classifier"]
    header += [word(method) for method in against(series, "")]
    lines = []
    for cell in cells:
        for classifier in OURS[series]:
            texts = []
            for method in against(series, classifier):
                both = pairs(scores, [cell], (classifier, AS_THEY_ARE), method)
                texts.append(verdicts.difference(*both[0]).text() if both else "")
            lines.append([cell[0], cell[1], f"{cell[2]:.0%}", classifier, *texts])
    return tables.markdown(header, lines)


def means_table(scores, cells, series):
    """Return the mean accuracy of each method over sets, by the share of values that is missing."""
    header = ["classifier", "missing values"]
    kinds = sorted({cell[1:] for cell in cells})
    header += [f"{share:.0%} {removed}" for removed, share in kinds]
    lines = []
    for classifier in (*OURS[series], *PEERS):
        for how in (AS_THEY_ARE, *FILLS[series]):
            texts = []
            for kind in kinds:
                some = [cell for cell in cells if cell[1:] == kind]
                known = [scores[cell].get((classifier, how)) for cell in some]
                means = [np.mean(list(found.values())) for found in known if found]
                texts.append(f"{100 * np.mean(means):.1f}" if len(means) == len(some) else "")
            if any(texts):
                filled = "as they are" if how == AS_THEY_ARE else f"filled: {how}"
                lines.append([classifier, filled, *texts])
    return tables.markdown(header, lines)


def summary_table(scores):
    """Return how many cells are better and worse, and the difference over all of them."""
    lines = []
    for series, kind in ((True, "series"), (False, "tables")):
        cells = sorted_cells(scores, series)
        for classifier in OURS[series]:
            for method in against(series, classifier):
                both = pairs(scores, cells, (classifier, AS_THEY_ARE), method)
                if both:
                    lines.append([kind, classifier, word(method), *summary_cells(both)])
    return tables.markdown(["data", "classifier", "against", *SUMMARY], lines)


SUMMARY = ("cells", "better", "within noise", "worse", "worse, all at once", "mean of all cells")


def summary_cells(both):
    found = verdicts.summary(both)
    words = (verdicts.BETTER, verdicts.NOISE, verdicts.WORSE)
    counts = [found.counts[word] for word in words]
    return [len(both), *counts, found.firm[verdicts.WORSE], found.overall.text()]


def facts(rows):
    """Return what the rows say of their run."""
    repeats = len({row["repeat"] for row in rows})
    return (
        f"Differences of accuracy in points, with 95 % intervals of {repeats} paired repeats. "
        f"{origin(rows)}"
    )
