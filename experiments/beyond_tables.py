"""Tables of many kinds: boosting with its defaults beside other boosting and a random forest.

Generated tables are drawn anew for each repeat. The real ones, all of which are part of
scikit-learn, are split anew.
"""

import importlib.util
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.model_selection import train_test_split

from experiments import beyond, style
from experiments.store import Task, read
from measuring import tables
from measuring.figures import plt, save
from measuring.files import write_whole
from morforest import MorfBoostingClassifier, MorfBoostingRegressor

STUDY = Path(__file__).stem
TRAIN, TEST = 2000, 5000  # generated samples
QUICK_TRAIN, QUICK_TEST = 500, 1000
HELD_OUT = 1 / 3  # of the real ones
REPEATS = 5
QUICK_REPEATS = 1
OURS, RIVAL, XGBOOST = "boosting", "HistGradientBoosting", "XGBoost"
CLASSIFIERS = (OURS, RIVAL, XGBOOST, beyond.PEER)
MARGIN = 0.5  # points by which we may be behind the rival
TICKS = (-50, -20, -10, -5, -2, -1, 0, 1, 2, 5, 10, 20)
ACCURACY, R2 = "accuracy", "R²"
COSTS = {OURS: 6.0, RIVAL: 1.5, XGBOOST: 1.5, beyond.PEER: 6.0}  # rough CPU-seconds


@dataclass(frozen=True)
class Kind:
    make: Callable  # (n, seed) -> X, y; real data ignore n and are split by the seed
    measure: str = ACCURACY
    real: bool = False


def with_noise_features(make, count):
    def made(n, seed):
        X, y = make(n, random_state=seed)
        return np.column_stack([X, np.random.RandomState(seed).normal(size=(n, count))]), y

    return made


def additive(n, seed):
    """Return a sum of functions of one column each."""
    random = np.random.RandomState(seed)
    X = random.uniform(-2, 2, (n, 10))
    y = np.sin(2 * X[:, 0]) + np.abs(X[:, 1]) + (X[:, 2] > 0.5) + X[:, 3] ** 2 / 2
    return X, y + random.normal(scale=0.3, size=n)


def interactions(n, seed):
    """Return a sum of functions of two columns each, none of which is informative alone."""
    random = np.random.RandomState(seed)
    X = random.uniform(-2, 2, (n, 10))
    y = X[:, 0] * X[:, 1] + np.sign(X[:, 2]) * X[:, 3] + np.sin(X[:, 4] * X[:, 5])
    return X, y + random.normal(scale=0.3, size=n)


def codes(n, seed):
    """Return columns of whole numbers that encode unordered categories, among numeric columns."""
    random = np.random.RandomState(seed)
    levels = (2, 3, 5, 8, 12, 20)
    categories = np.column_stack([random.randint(count, size=n) for count in levels])
    effects = [random.normal(size=count) for count in levels]
    together = random.normal(size=levels[:3])  # the first three also act together
    measured = random.normal(size=(n, 4))
    logit = sum(effect[categories[:, j]] for j, effect in enumerate(effects))
    logit = logit + together[tuple(categories[:, :3].T)] + measured[:, 0] - measured[:, 1]
    chance = 1 / (1 + np.exp(-1.5 * logit))
    return np.column_stack([categories, measured]), (random.uniform(size=n) < chance).astype(int)


def sampled(make, **given):
    return lambda n, seed: make(n_samples=n, random_state=seed, **given)


def loaded(load):
    return lambda n, seed: load(return_X_y=True)


classes = partial(sampled, datasets.make_classification)
KINDS = {
    "few informative": Kind(classes(n_features=20, n_informative=4, n_redundant=2)),
    "few informative among 100": Kind(classes(n_features=100, n_informative=5, n_redundant=0)),
    "many informative": Kind(classes(n_features=40, n_informative=30, n_redundant=0)),
    "six classes": Kind(classes(n_features=20, n_informative=10, n_classes=6)),
    "noisy labels": Kind(classes(n_features=20, n_informative=8, flip_y=0.3)),
    "sphere (Hastie)": Kind(sampled(datasets.make_hastie_10_2)),
    "Gaussian shells": Kind(sampled(datasets.make_gaussian_quantiles, n_features=8, n_classes=3)),
    "moons among noise": Kind(with_noise_features(partial(datasets.make_moons, noise=0.3), 18)),
    "codes of categories": Kind(codes),
    "Friedman 1": Kind(sampled(datasets.make_friedman1, noise=1.0), R2),
    "Friedman 2": Kind(sampled(datasets.make_friedman2, noise=125.0), R2),
    "Friedman 3": Kind(sampled(datasets.make_friedman3, noise=0.1), R2),
    "additive": Kind(additive, R2),
    "interactions": Kind(interactions, R2),
    "breast cancer": Kind(loaded(datasets.load_breast_cancer), real=True),
    "digits": Kind(loaded(datasets.load_digits), real=True),
    "wine": Kind(loaded(datasets.load_wine), real=True),
    "diabetes": Kind(loaded(datasets.load_diabetes), R2, real=True),
}


def tasks(quick):
    names = CLASSIFIERS
    if importlib.util.find_spec("xgboost") is None:
        print(f"LEFT OUT {XGBOOST} of {STUDY}: it is not installed", file=sys.stderr)
        names = tuple(name for name in names if name != XGBOOST)
    sizes = (QUICK_TRAIN, QUICK_TEST) if quick else (TRAIN, TEST)
    return [
        Task(
            STUDY,
            {
                "data": data,
                "classifier": classifier,
                "repeat": repeat,
                "generated": "" if kind.real else sizes[0],
                "tested": "" if kind.real else sizes[1],
            },
            COSTS[classifier],
        )
        for data, kind in KINDS.items()
        for classifier in names
        for repeat in range(QUICK_REPEATS if quick else REPEATS)
    ]


def samples(data, repeat, trained, tested):
    """Return X, X_test, y, y_test."""
    kind = KINDS[data]
    if kind.real:
        X, y = kind.make(None, repeat)
        labels = y if kind.measure == ACCURACY else None
        return train_test_split(X, y, test_size=HELD_OUT, random_state=repeat, stratify=labels)
    X, y = kind.make(trained + tested, repeat)
    return X[:trained], X[trained:], y[:trained], y[trained:]


def make(classifier, measure, seed):
    """Return a classifier or a regressor with its own defaults; forests have 500 trees."""
    numbers = measure == R2
    match classifier:
        case "boosting":
            model = MorfBoostingRegressor if numbers else MorfBoostingClassifier
            return model(n_jobs=1, random_state=seed)
        case "HistGradientBoosting":
            model = HistGradientBoostingRegressor if numbers else HistGradientBoostingClassifier
            return model(random_state=seed)
        case "XGBoost":
            import xgboost

            model = xgboost.XGBRegressor if numbers else xgboost.XGBClassifier
            return model(n_jobs=1, random_state=seed)
        case "RF (scikit-learn)":
            model = RandomForestRegressor if numbers else RandomForestClassifier
            return model(n_estimators=500, n_jobs=1, random_state=seed)
    raise ValueError(f"classifier must be one of {', '.join(CLASSIFIERS)}, got {classifier!r}.")


def run(task):
    key = task.key
    repeat, kind = int(key["repeat"]), KINDS[key["data"]]
    sizes = [int(key[name] or 0) for name in ("generated", "tested")]
    X, X_test, y, y_test = samples(key["data"], repeat, *sizes)
    if kind.measure == ACCURACY:
        numbers = np.unique(np.concatenate([y, y_test]), return_inverse=True)[1]
        y, y_test = numbers[: len(y)], numbers[len(y) :]  # XGBoost needs 0, 1, ...
    model = make(key["classifier"], kind.measure, repeat)
    start = time.process_time()
    model.fit(X, y)
    fitted = time.process_time()
    score = model.score(X_test, y_test)
    return {
        "n": len(X),
        "features": X.shape[1],
        "test_samples": len(X_test),
        "seed": repeat,
        "measure": kind.measure,
        "score": round(float(score), 6),
        "train_seconds": round(fitted - start, 4),
        "test_seconds": round(time.process_time() - fitted, 4),
    }


# --- figures and tables ---------------------------------------------------------------------------


def rows(csvs):
    return beyond.with_loss(read(csvs, STUDY), lambda row: 1 - row["score"])


def points(found, data, classifier):
    """Return by repeat the accuracy or R² in hundredths."""
    return {
        row["repeat"]: 100 * row["score"]
        for row in found
        if (row["data"], row["classifier"]) == (data, classifier)
    }


def ahead(found, data, classifier=OURS, other=RIVAL):
    """Return the points by which one is ahead of another, for each repeat that both have."""
    a, b = points(found, data, classifier), points(found, data, other)
    return np.array([a[repeat] - b[repeat] for repeat in sorted(a.keys() & b.keys())])


def figures(csvs, pngs):
    found = rows(csvs)
    if found:
        write_whole(Path(csvs) / "beyond-tables.md", table(found))
        save(draw(found), Path(pngs) / "beyond-tables.png")


def present(found):
    return [data for data in KINDS if any(row["data"] == data for row in found)]


def table(found):
    """Return a table of kinds by estimators in points, the highest in bold."""
    names = [name for name in CLASSIFIERS if any(row["classifier"] == name for row in found)]
    lines = []
    for data in present(found):
        cells = [list(points(found, data, name).values()) for name in names]
        best = max(np.mean(values) for values in cells if values)
        texts = [
            f"**{points_text(values)}**"
            if values and np.mean(values) == best
            else points_text(values)
            for values in cells
        ]
        n = next(row["n"] for row in found if row["data"] == data)
        difference = points_text(ahead(found, data), "+")
        lines.append([data, f"{n:,}", KINDS[data].measure, *texts, difference])
    return tables.markdown(["", "n", "points of", *names, f"{OURS} less {RIVAL}"], lines)


def points_text(values, sign=""):
    if not len(values):
        return ""
    mean = f"{np.mean(values):{sign}.2f}"
    return f"{mean} ± {tables.standard_error(list(values)):.2f}" if len(values) > 1 else mean


def draw(found):
    """Draw how far each estimator is ahead of the rival, kind by kind."""
    kinds = present(found)
    figure, axes = plt.subplots(figsize=(7.5, 0.33 * len(kinds) + 1.5), layout="constrained")
    axes.axvspan(-MARGIN, MARGIN, color="0.93", linewidth=0)
    axes.axvline(0, color="0.4", linewidth=1)
    for classifier in (name for name in CLASSIFIERS if name != RIVAL):
        gaps = {place: ahead(found, data, classifier) for place, data in enumerate(kinds)}
        gaps = {place: gap for place, gap in gaps.items() if len(gap)}
        look = style.CLASSIFIERS[classifier]
        axes.errorbar(
            [np.mean(gap) for gap in gaps.values()],
            list(gaps),
            xerr=[np.nan_to_num(tables.standard_error(list(gap))) for gap in gaps.values()],
            label=classifier,
            color=look["color"],
            marker=look["marker"],
            linestyle="",
            markersize=6,
        )
    axes.set_yticks(range(len(kinds)), kinds)
    axes.invert_yaxis()
    axes.set_xscale("symlog", linthresh=2)
    low, high = axes.get_xlim()
    ticks = [tick for tick in TICKS if low <= tick <= high]
    axes.set_xticks(ticks, [f"{tick:+g}" if tick else "0" for tick in ticks])
    axes.set(xlabel=f"points ahead of {RIVAL}, mean ± standard error")
    axes.grid(alpha=0.25)
    style.legend(figure, [axes])
    return figure
