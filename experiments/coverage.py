"""Do intervals and prediction sets cover as often as they say, and how wide are they?

Targets with noise of equal and of varying spread, and four classes that overlap; intervals and sets
of this library beside those of MAPIE and quantile-forest. All forests have 500 trees and the same
leaves and candidates per split, so that the methods differ and not the forests. Jackknife intervals
of MAPIE are those of 500 trees of scikit-learn, which is the same method; quantiles that it
calibrates are those of quantile-forest, fitted to one half of the samples, by the other half.
Boosting is calibrated by five folds. This library is also asked about skewed noise, and about
classes in clusters, of which boosting learns more from more samples.
"""

import time
import warnings
from pathlib import Path

import numpy as np

from experiments.store import Task, origin, read
from measuring import tables
from measuring.files import write_whole

STUDY = Path(__file__).stem
LEVELS = (0.8, 0.9, 0.95)
# Training samples, and how often each is repeated: with this library, and with the slower peers.
SIZES = {100: (100, 20), 1000: (30, 8), 10_000: (6, 3)}
QUICK_SIZES = {100: (4, 2), 1000: (2, 1)}
TEST_SAMPLES = 2000
FIRST_SEED = 30_000  # far from those of the other studies
TREES, LEAF, CANDIDATES = 500, 5, 1 / 3
EQUAL, VARYING, SKEWED = "equal noise", "varying noise", "skewed noise"
CLASSES, CLUSTERS = "four classes", "clusters"
OF_CLASSES = (CLASSES, CLUSTERS)
HELD_OUT = 2  # one of so many samples calibrates, where some must be held out

OURS = ("predict_interval", "predict_quantiles")
PEERS = ("MAPIE, jackknife+", "MAPIE, conformal quantiles", "quantile-forest")
OUR_SETS = ("predict_set",)
BOOSTED, BOOSTED_SET = "boosting, predict_interval", "boosting, predict_set"
PEER_SETS = ("MAPIE, cross-conformal", "MAPIE, split conformal")
COSTS = {100: 1.0, 1000: 3.0, 10_000: 40.0}  # seconds per method, more or less


def tasks(quick):
    return [
        Task(STUDY, {"data": data, "n": n, "method": method, "repeat": repeat}, COSTS.get(n, 1.0))
        for n, repeats in (QUICK_SIZES if quick else SIZES).items()
        for data, methods in methods_of().items()
        for method in methods
        for repeat in range(repeats[method in (*PEERS, *PEER_SETS)])
    ]


def methods_of():
    """Return the methods to be asked about each kind of data."""
    numbers = (*OURS, *PEERS, BOOSTED)
    return {
        EQUAL: numbers,
        VARYING: numbers,
        CLASSES: (*OUR_SETS, *PEER_SETS, BOOSTED_SET),
        SKEWED: ("predict_interval", BOOSTED),
        CLUSTERS: (*OUR_SETS, BOOSTED_SET),
    }


def make(data, n, seed):
    random = np.random.default_rng(seed)
    if data == CLASSES:
        y = random.integers(0, 4, n)
        centres = np.array([[1, 1, 0, 0], [1, -1, 0, 0], [-1, 1, 0, 0], [-1, -1, 0, 0]])
        return centres[y] + random.normal(size=(n, 4)), y
    if data == CLUSTERS:
        return clusters(n, seed)
    X = random.uniform(-1, 1, (n, 5))
    spread = 0.2 + 1.6 * np.abs(X[:, 0]) if data == VARYING else 1.0
    noise = random.exponential(size=n) - 1 if data == SKEWED else random.normal(size=n)
    return X, 2 * np.sin(2 * X[:, 0]) + 2 * X[:, 1] * X[:, 2] + spread * noise


def clusters(n, seed):
    """Return samples of the problem of a seed's pair: of even ones to train, odd ones to test."""
    from sklearn.datasets import make_classification

    X, y = make_classification(
        10_000 + TEST_SAMPLES, 8, n_informative=5, n_classes=4, flip_y=0.1, random_state=seed // 2
    )
    return (X[10_000:][:n], y[10_000:][:n]) if seed % 2 else (X[:n], y[:n])


def run(task):
    """Return coverage and width of each level."""
    data, n, method = task.key["data"], int(task.key["n"]), task.key["method"]
    seed = FIRST_SEED + int(task.key["repeat"])
    X, y = make(data, n, 2 * seed)
    X_test, y_test = make(data, TEST_SAMPLES, 2 * seed + 1)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = METHODS[method](X, y, X_test, seed)
    used = time.process_time() - start
    row = {"seed": seed, "cpu_seconds": round(used, 3)}
    for level, answer in zip(LEVELS, found, strict=True):
        if data in OF_CLASSES:
            held = answer[np.arange(len(y_test)), y_test]
            width = answer.sum(axis=1)
        else:
            held = (answer[:, 0] <= y_test) & (y_test <= answer[:, 1])
            width = answer[:, 1] - answer[:, 0]
        row[column("coverage", level)] = round(float(held.mean()), 6)
        row[column("width", level)] = round(float(width.mean()), 6)
    return row


def column(name, level):
    return f"{name} {level:.0%}"


# --- methods: each returns intervals (n, 2) or sets (n, classes) for every level -----------------


def forest(seed, **parameters):
    from morforest import Axis, MorfRegressor

    return MorfRegressor(
        Axis(),
        n_estimators=TREES,
        min_samples_leaf=LEAF,
        max_features=CANDIDATES,
        keep_samples=True,
        random_state=seed,
        **parameters,
    )


def our_intervals(X, y, X_test, seed):
    model = forest(seed).fit(X, y)
    return [model.predict_interval(X_test, level) for level in LEVELS]


def our_quantiles(X, y, X_test, seed):
    model = forest(seed).fit(X, y)
    return [model.predict_quantiles(X_test, tails(level)) for level in LEVELS]


def our_sets(X, y, X_test, seed):
    from morforest import Axis, MorfClassifier

    model = MorfClassifier(Axis(), n_estimators=TREES, keep_samples=True, random_state=seed)
    model.fit(X, y)
    return [model.predict_set(X_test, level, allow_empty=True) for level in LEVELS]


def boosted_intervals(X, y, X_test, seed):
    from morforest import MorfBoostingRegressor

    model = MorfBoostingRegressor(calibration_folds=5, random_state=seed).fit(X, y)
    return [model.predict_interval(X_test, level) for level in LEVELS]


def boosted_sets(X, y, X_test, seed):
    from morforest import MorfBoostingClassifier

    model = MorfBoostingClassifier(calibration_folds=5, random_state=seed).fit(X, y)
    return [model.predict_set(X_test, level, allow_empty=True) for level in LEVELS]


def tails(level):
    return [(1 - level) / 2, (1 + level) / 2]


def mapie_jackknife(X, y, X_test, seed):
    from mapie.regression import JackknifeAfterBootstrapRegressor
    from sklearn.tree import DecisionTreeRegressor

    # Copies of a tree with a seed would all draw the same candidates.
    np.random.seed(seed)  # noqa: NPY002
    tree = DecisionTreeRegressor(max_features=CANDIDATES, min_samples_leaf=LEAF)
    model = JackknifeAfterBootstrapRegressor(
        tree, confidence_level=list(LEVELS), resampling=TREES, random_state=seed
    )
    return list(np.moveaxis(model.fit_conformalize(X, y).predict_interval(X_test)[1], 2, 0))


def quantile_forest(X, y, seed):
    from quantile_forest import RandomForestQuantileRegressor

    return RandomForestQuantileRegressor(
        n_estimators=TREES, min_samples_leaf=LEAF, max_features=CANDIDATES, random_state=seed
    ).fit(X, y)


def peer_quantiles(X, y, X_test, seed):
    model = quantile_forest(X, y, seed)
    return [model.predict(X_test, quantiles=tails(level)) for level in LEVELS]


def mapie_quantiles(X, y, X_test, seed):
    from mapie.regression import ConformalizedQuantileRegressor

    held_out = np.arange(len(X)) % HELD_OUT == 0
    model = quantile_forest(X[~held_out], y[~held_out], seed)
    found = []
    for level in LEVELS:
        parts = [one_quantile(model, q) for q in (*tails(level), 0.5)]
        calibrated = ConformalizedQuantileRegressor(parts, confidence_level=level, prefit=True)
        calibrated.conformalize(X[held_out], y[held_out])
        found.append(calibrated.predict_interval(X_test)[1][:, :, 0])
    return found


def one_quantile(model, quantile):
    """Return a regressor that predicts one quantile of a fitted quantile forest."""
    from sklearn.base import BaseEstimator, RegressorMixin

    class Quantile(RegressorMixin, BaseEstimator):
        def __init__(self):
            self.n_features_in_ = model.n_features_in_

        def fit(self, X, y):
            return self

        def predict(self, X):
            return model.predict(X, quantiles=[quantile]).ravel()

    return Quantile()


def mapie_cross(X, y, X_test, seed):
    from mapie.classification import CrossConformalClassifier

    model = CrossConformalClassifier(
        classes_forest(seed), confidence_level=list(LEVELS), cv=5, random_state=seed
    )
    return list(np.moveaxis(model.fit_conformalize(X, y).predict_set(X_test)[1], 2, 0))


def mapie_split(X, y, X_test, seed):
    from mapie.classification import SplitConformalClassifier

    held_out = np.arange(len(X)) % HELD_OUT == 0
    model = SplitConformalClassifier(
        classes_forest(seed), confidence_level=list(LEVELS), prefit=False, random_state=seed
    )
    model.fit(X[~held_out], y[~held_out]).conformalize(X[held_out], y[held_out])
    return list(np.moveaxis(model.predict_set(X_test)[1], 2, 0))


def classes_forest(seed):
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=TREES, random_state=seed)


METHODS = {
    "predict_interval": our_intervals,
    "predict_quantiles": our_quantiles,
    "predict_set": our_sets,
    BOOSTED: boosted_intervals,
    BOOSTED_SET: boosted_sets,
    "MAPIE, jackknife+": mapie_jackknife,
    "MAPIE, conformal quantiles": mapie_quantiles,
    "quantile-forest": peer_quantiles,
    "MAPIE, cross-conformal": mapie_cross,
    "MAPIE, split conformal": mapie_split,
}


# --- tables --------------------------------------------------------------------------------------


def figures(csvs, pngs):
    rows = read(csvs, STUDY)
    if not rows:
        return
    calibrated = ("predict_interval", *OUR_SETS, BOOSTED, BOOSTED_SET)
    ours = sorted(
        (row for row in rows if row["method"] in calibrated),
        key=lambda row: (row["n"], calibrated.index(row["method"])),
    )
    compared = (*OURS, *PEERS, *OUR_SETS, *PEER_SETS)
    of_both = [row for row in rows if row["method"] in compared]
    shared = on_shared_repeats(row for row in of_both if row["data"] not in (SKEWED, CLUSTERS))
    numbers = [row for row in shared if row["data"] != CLASSES]
    classes = [row for row in shared if row["data"] == CLASSES]
    named = (
        ("levels", ours, "width"),
        ("intervals", numbers, "width"),
        ("sets", classes, "classes"),
    )
    for name, some, size in named:
        if some:
            write_whole(Path(csvs) / f"coverage-{name}.md", table(some, size) + facts(some))


def on_shared_repeats(rows):
    """Return the rows of the training sets that all methods have seen.

    This library's methods are repeated more often. The mean over other training sets differs by
    more than the methods do, so that a comparison needs the same ones.
    """
    kept = []
    for some in tables.group(rows, "data", "n").values():
        of_method = tables.group(some, "method").values()
        shared = set.intersection(*({row["repeat"] for row in found} for found in of_method))
        kept += [row for row in some if row["repeat"] in shared]
    return kept


def table(rows, size):
    """Return coverage with its standard error, and the mean width, for each level."""
    header = ["data", "n", "method", "repeats"]
    header += [f"{level:.0%}: {word}" for level in LEVELS for word in ("coverage", size)]
    lines = []
    for (data, n, method), some in tables.group(rows, "data", "n", "method").items():
        cells = []
        for level in LEVELS:
            cells.append(percent([row[column("coverage", level)] for row in some]))
            cells.append(f"{np.mean([row[column('width', level)] for row in some]):.2f}")
        repeats = len({row["repeat"] for row in some})
        lines.append([data, f"{n:,}", method, repeats, *cells, seconds(some)])
    return tables.markdown([*header, "CPU seconds"], lines)


def percent(values):
    """Return the mean and its standard error, in per cent."""
    mean = f"{100 * np.mean(values):.1f}"
    return f"{mean} ± {100 * tables.standard_error(values):.1f}" if len(values) > 1 else mean


def seconds(rows):
    return f"{np.median([row['cpu_seconds'] for row in rows]):.1f}"


def facts(rows):
    """Return what the rows say of their run."""
    return f"\nMeans ± standard errors over repeats; 2,000 test samples each. {origin(rows)}\n"
