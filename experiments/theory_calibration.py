"""How well calibrated are the probabilities of plain and honest forests, on images and EEG?

MNIST has 1,000 training images per repeat and all 10,000 test images; EEG has the sets and folds of
the study `series`. Confidence is the largest probability; the reliability diagram and the expected
calibration error (ECE) compare it with the share of correct predictions, bin by bin.
"""

import math
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedGroupKFold

from experiments import beyond, mnist, models, realdata, series, stats, style, theory
from experiments.claims import difference
from experiments.store import Task, origin, read
from measuring import tables
from measuring.figures import plt, save
from measuring.files import write_whole
from morforest import consistent

STUDY = Path(__file__).stem
MNIST = "MNIST"
SETS = ("finger", realdata.CONTRAST, "fragility")
IMAGES = 1000  # for training
REPEATS = 10
QUICK_REPEATS = 2
FOLDS = 5  # that a calibrated forest learns its temperature from
BINS = 15  # of equal width
LOWEST = 1e-3  # probabilities below count as this much in the log loss, which else is infinite
PRIORS = ("prune", "ignore", "uniform", "empirical")
PLAIN, BOOSTING, PEER = "MORF", "boosting", beyond.PEER
HONEST = {
    f"honest{'' if honest is True else ' by oob'}, {prior}": {
        "honest": honest,
        "honest_prior": prior,
    }
    for honest in (True, "oob")
    for prior in PRIORS
}
# What may be done about honest forests that are too unsure: larger trees, or a calibration.
BASE = {"honest": True, "honest_prior": "ignore"}
MORE = {
    "honest, s = n, without replacement": {**BASE, "bootstrap": False, "max_samples": None},
    "honest, 1/5 for leaves": {**BASE, "honest_fraction": 0.2},
}
SCALED = {f"{PLAIN}, temperature": {}, "honest, temperature": BASE}
NAMES = (PLAIN, *HONEST, *MORE, *SCALED, theory.ALL, BOOSTING, PEER)
SECONDS = {BOOSTING: 1.5, PEER: 2.5, **dict.fromkeys(SCALED, 2.5)}
LOOKS = {
    PLAIN: style.CLASSIFIERS[PLAIN],
    "honest, prune": {"color": "#00798c", "marker": "s", "linewidth": 1.8},
    "honest, ignore": {"color": "#7b5ea7", "marker": "v", "linestyle": ":", "linewidth": 1.8},
    "honest, temperature": {"color": "#3a5ba0", "marker": "D", "linestyle": "-."},
    theory.ALL: {"color": "#6a994e", "marker": "*", "linestyle": "--"},
    BOOSTING: {"color": "#343a40", "marker": "P", "linewidth": 1.6},
    PEER: style.CLASSIFIERS[PEER],
}
SCORES = {"error": "error", "brier": "Brier score", "log_loss": "log loss"}


def tasks(quick):
    """Return what is to be done. Sets that are not available are named on screen and left out."""
    found, reasons = [], []
    for name in (MNIST, *SETS):
        try:
            folds = range(REPEATS) if name == MNIST else range(series.folds_of(series.load(name)))
            if name == MNIST:
                mnist.images()
        except (OSError, ValueError, LookupError) as reason:
            reasons.append(reason)
            continue
        found += [
            Task(
                STUDY,
                {"data": name, "classifier": classifier, "repeat": repeat},
                SECONDS.get(classifier, 0.5),
            )
            for repeat in (folds[:QUICK_REPEATS] if quick else folds)
            for classifier in NAMES
        ]
    if not found:
        raise reasons[0]
    for reason in reasons:
        print(f"LEFT OUT {reason}", file=sys.stderr)
    return found


def make(name, data, shape, classes, rows, seed, splits=FOLDS):
    """Return a classifier for samples in their shape; forests have the paper's patches.

    Calibrated forests learn one temperature from forests of the other folds of `splits`.
    """
    if name == BOOSTING:
        return beyond.make("boosting", seed, channel_axis=None if data == MNIST else 1)
    known = name if name in (PLAIN, PEER) else PLAIN
    settings = "finger" if data == realdata.CONTRAST else data
    model = models.make(known, settings, shape, classes, rows, seed=seed, threads=1)
    if name == theory.ALL:
        model.model = consistent(model.model)
    model.model.set_params(**{**HONEST, **MORE, **SCALED}.get(name, {}))
    if name in SCALED:
        return CalibratedClassifierCV(model, method="temperature", cv=splits, ensemble=False)
    return model


def run(task):
    data, repeat = task.key["data"], int(task.key["repeat"])
    groups, splits = None, FOLDS
    if data == MNIST:
        X, y, X_test, labels = mnist.images()
        train = mnist.chosen(y, IMAGES, repeat)
        X, y = X[train], y[train]
    else:
        found = series.load(data)
        train, test = series.split(found, repeat)
        X, y, X_test, labels = found.X[train], found.y[train], found.X[test], found.y[test]
        if found.groups is not None:  # no subject may be in two folds
            groups = found.groups[test]
            splits = list(StratifiedGroupKFold(FOLDS).split(X, y, found.groups[train]))
    classes = int(labels.max()) + 1
    model = make(task.key["classifier"], data, X.shape[1:], classes, len(X), repeat, splits)
    start = time.process_time()
    model.fit(X, y)
    fitted = time.process_time()
    probabilities = model.predict_proba(X_test)
    tested = time.process_time()
    if groups is not None:  # a subject counts once, however many recordings there are
        labels, probabilities = stats.by_group(labels, probabilities, groups)
    return {
        "seed": repeat,
        "scored": len(labels),
        **scores(labels, probabilities),
        "train_seconds": round(fitted - start, 4),
        "test_seconds": round(tested - fitted, 4),
    }


def scores(labels, probabilities):
    """Return scores of probabilities, and how many, how sure and how right they are in each bin."""
    truth = np.zeros_like(probabilities)
    truth[np.arange(len(labels)), labels] = 1
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    sums = [
        np.bincount(place, values, BINS) for values in (np.ones(len(labels)), confidence, right)
    ]
    own = probabilities[np.arange(len(labels)), labels]
    return {
        "error": float(1 - right.mean()),
        "ece": calibration_error(*sums),
        "over": float(confidence.mean() - right.mean()),
        "brier": float(((probabilities - truth) ** 2).sum(axis=1).mean()),
        "log_loss": float(-np.log(np.maximum(own, LOWEST)).mean()),
        "count": joined(sums[0]),
        "confidence": joined(sums[1]),
        "correct": joined(sums[2]),
    }


def calibration_error(count, confidence, correct):
    """Return the expected calibration error: the gaps of the bins, weighted by their samples."""
    return float(np.abs(confidence - correct).sum() / count.sum())


def joined(values):
    return " ".join(f"{value:.6g}" for value in values)


def pooled(rows):
    """Return the sums of each bin over all repeats."""
    return [
        np.sum([np.array(row[name].split(), dtype=float) for row in rows], axis=0)
        for name in ("count", "confidence", "correct")
    ]


# --- figures and tables ---------------------------------------------------------------------------


def figures(csvs, pngs):
    rows = read(csvs, STUDY)
    if not rows:
        return
    save(draw(rows), Path(pngs) / "theory-calibration.png")
    write_whole(Path(csvs) / "theory-calibration.md", table(rows) + facts(rows))
    write_whole(Path(csvs) / "theory-priors.md", prior_table(rows) + facts(rows))


def facts(rows):
    return f"\nMeans ± standard errors over repeats or folds. {origin(rows)}\n"


def draw(rows):
    data = [name for name in (MNIST, *SETS) if any(row["data"] == name for row in rows)]
    down = math.ceil(len(data) / 2)
    figure, grid = plt.subplots(
        down, 2, figsize=(style.WIDEST, 3.5 * down), layout="constrained", squeeze=False
    )
    panels = grid.ravel()
    for axes, name in zip(panels, data, strict=False):
        draw_reliability(axes, [row for row in rows if row["data"] == name])
        axes.set_title(name, weight="bold")
    for axes in panels[len(data) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel("share of correct predictions")
    for axes in grid[-1]:
        axes.set_xlabel("confidence")
    style.legend(figure, panels)
    return figure


def draw_reliability(axes, rows):
    lowest = 0.1 if rows[0]["data"] == MNIST else 0.5  # one over the number of classes
    axes.plot([lowest, 1], [lowest, 1], color="0.6", linewidth=1)
    for classifier, look in LOOKS.items():
        found = [row for row in rows if row["classifier"] == classifier]
        if not found:
            continue
        count, confidence, correct = pooled(found)
        full = count >= max(10, count.sum() / 50)  # a few samples say little
        count, confidence, correct = count[full], confidence[full], correct[full]
        axes.plot(confidence / count, correct / count, label=classifier, **look)
    axes.set(xlim=(lowest, 1.01), ylim=(lowest - 0.1, 1.02))
    axes.grid(alpha=0.25)


def table(rows):
    """Return scores of all classifiers on all sets; the best of each column of a set is bold."""
    lines = []
    for (data,), of_data in tables.group(rows, "data").items():
        groups = tables.group(of_data, "classifier")
        cells = {}
        for name in (name for name in NAMES if (name,) in groups):
            found = groups[(name,)]
            values = {score: [row[score] for row in found] for score in SCORES}
            cells[name] = [
                (calibration_error(*pooled(found)), None),
                (float(np.mean([row["over"] for row in found])), None),
                *((float(np.mean(v)), v) for v in values.values()),
            ]
        best = [min(abs(column[i][0]) for column in cells.values()) for i in range(5)]
        for name, column in cells.items():
            texts = []
            for i, (mean, found) in enumerate(column):
                text = f"{mean:+.4f}" if i == 1 else f"{mean:.4f}"
                if found is not None:
                    text = tables.mean_and_error(found)
                texts.append(f"**{text}**" if abs(mean) == best[i] else text)
            lines.append([data, name, *texts])
    heads = ["data", "classifier", "ECE", "confidence less accuracy", *SCORES.values()]
    return tables.markdown(heads, lines)


def prior_table(rows):
    """Compare what honest trees may do about empty leaves: Brier scores less that of the first."""
    briers = {
        (row["data"], row["classifier"], row["repeat"]): row["brier"]
        for row in rows
        if row["classifier"] in HONEST
    }
    data = list(dict.fromkeys(name for name, _, _ in briers))
    lines = []
    for name, given in HONEST.items():
        base = next(n for n, other in HONEST.items() if other["honest"] == given["honest"])
        cells = []
        for one in data:
            pairs = [
                (brier, briers.get((one, base, repeat)))
                for (where, who, repeat), brier in briers.items()
                if (where, who) == (one, name)
            ]
            if name == base:
                cells.append(tables.mean_and_error([a for a, _ in pairs]) if pairs else "")
            else:
                gaps = [a - b for a, b in pairs if b is not None]
                cells.append(difference(np.array(gaps)) if gaps else "")
        lines.append([name, *cells])
    return tables.markdown(["Brier score", *data], lines)
