"""How well calibrated are the probabilities of plain and honest forests, on images and EEG?

MNIST has 1,000 training images per repeat and all 10,000 test images; EEG has the sets and folds of
the study `series`. Confidence is the largest probability; the reliability diagram and the expected
calibration error (ECE) compare it with the share of correct predictions, bin by bin.
"""

import sys
import time
from pathlib import Path

import numpy as np

from experiments import beyond, mnist, models, realdata, series, stats, style, theory
from experiments.store import Task, read
from measuring import tables
from measuring.figures import plt, save
from measuring.files import write_whole
from measuring.machine import commit
from morforest import consistent

STUDY = Path(__file__).stem
MNIST = "MNIST"
SETS = ("finger", realdata.CONTRAST, "fragility")
IMAGES = 1000  # for training
REPEATS = 5
QUICK_REPEATS = 2
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
NAMES = (PLAIN, *HONEST, theory.ALL, BOOSTING, PEER)
SECONDS = {BOOSTING: 1.5, PEER: 2.5}
LOOKS = {
    PLAIN: style.CLASSIFIERS[PLAIN],
    "honest, prune": {"color": "#00798c", "marker": "s", "linewidth": 1.8},
    "honest by oob, prune": {"color": "#00798c", "marker": "D", "linestyle": "-."},
    "honest, uniform": {"color": "#7b5ea7", "marker": "v", "linestyle": ":"},
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


def make(name, data, shape, classes, rows, seed):
    """Return a classifier for samples in their shape; forests have the paper's patches."""
    if name == BOOSTING:
        return beyond.make("boosting", seed, channel_axis=None if data == MNIST else 1)
    known = name if name in (PLAIN, PEER) else PLAIN
    settings = "finger" if data == realdata.CONTRAST else data
    model = models.make(known, settings, shape, classes, rows, seed=seed, threads=1)
    if name == theory.ALL:
        model.model = consistent(model.model)
    if name in HONEST:
        model.model.set_params(**HONEST[name])
    return model


def run(task):
    data, repeat = task.key["data"], int(task.key["repeat"])
    groups = None
    if data == MNIST:
        X, y, X_test, labels = mnist.images()
        train = mnist.chosen(y, IMAGES, repeat)
        X, y = X[train], y[train]
    else:
        found = series.load(data)
        train, test = series.split(found, repeat)
        X, y, X_test, labels = found.X[train], found.y[train], found.X[test], found.y[test]
        groups = None if found.groups is None else found.groups[test]
    classes = int(labels.max()) + 1
    model = make(task.key["classifier"], data, X.shape[1:], classes, len(X), repeat)
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
        "commit": commit(),
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
    write_whole(Path(csvs) / "theory-calibration.md", table(rows))


def draw(rows):
    data = [name for name in (MNIST, *SETS) if any(row["data"] == name for row in rows)]
    figure, panels = plt.subplots(
        1, len(data), figsize=(4 * len(data) + 2.2, 4.2), layout="constrained", squeeze=False
    )
    for axes, name in zip(panels[0], data, strict=True):
        of_data = [row for row in rows if row["data"] == name]
        lowest = 0.1 if name == MNIST else 0.5
        axes.plot([lowest, 1], [lowest, 1], color="0.6", linewidth=1)
        for classifier, look in LOOKS.items():
            found = [row for row in of_data if row["classifier"] == classifier]
            if not found:
                continue
            count, confidence, correct = pooled(found)
            full = count >= max(10, count.sum() / 200)  # a few samples say little
            with np.errstate(invalid="ignore"):
                axes.plot(
                    (confidence / count)[full], (correct / count)[full], label=classifier, **look
                )
        axes.set(xlabel="confidence", xlim=(lowest, 1.01), ylim=(lowest - 0.1, 1.01))
        axes.set_title(name, weight="bold")
        axes.grid(alpha=0.25)
    panels[0, 0].set_ylabel("share of correct predictions")
    style.legend(figure, panels[0])
    return figure


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
