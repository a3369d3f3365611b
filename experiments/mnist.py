"""MNIST at nine sizes: test error on the 10,000 test images, for all classifiers.

A repeat draws its training images anew from the 60,000, smaller sets being prefixes of larger ones.
The test images are always the same, so the spread over repeats is that of training alone.
"""

import functools
import statistics
from pathlib import Path

import numpy as np

from experiments import models, published, style
from experiments.simulations import ABSENT, error_table, fit_and_test
from experiments.store import Task, read
from measuring import tables
from measuring.figures import log_y, plt, save
from measuring.files import write_whole
from morforest.datasets import load_mnist

STUDY = Path(__file__).stem
DATA = "MNIST"
SIZES = (100, 200, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000)
REPEATS = 5
# What takes minutes is repeated less often: at most this many repeats from a size on.
FEWER = {10_000: 3, 30_000: 1}
OFTEN = {"MORF": {}, "SPORF": {}, "RF": {}, "ConvNet": {}}  # fast, or the one to beat
QUICK_SIZES = (100, 1000)
QUICK_REPEATS = 1
TICKS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)  # of errors

# Rough CPU-seconds of a fit to 10,000 images and of predicting 10,000, and the power of n by which
# the time of the fit grows.
COSTS = {
    "MORF": (5.0, 0.6, 1.1),
    "SPORF": (5.0, 1.0, 1.1),
    "RF": (5.0, 0.6, 1.1),
    "RF (scikit-learn)": (25.0, 2.0, 1.1),
    "logistic regression": (8.0, 0.1, 1.0),
    "linear SVM": (40.0, 0.1, 1.0),
    "RBF SVM": (15.0, 15.0, 1.5),
    "kNN": (0.1, 5.0, 1.0),
    "MLP": (40.0, 0.1, 1.0),
    "XGBoost": (40.0, 0.2, 0.6),
    "ConvNet": (100.0, 8.0, 0.45),
}


def tasks(quick):
    images()  # fails before any work if data are missing
    return [
        Task(
            STUDY,
            {"data": DATA, "n": n, "classifier": classifier, "repeat": repeat},
            cost(classifier, n),
        )
        for n in (QUICK_SIZES if quick else SIZES)
        for classifier in models.NAMES
        if classifier not in ABSENT
        for repeat in range(QUICK_REPEATS if quick else repeats(classifier, n))
    ]


def repeats(classifier, n):
    fewer = OFTEN.get(classifier, FEWER)
    return min([REPEATS, *(count for size, count in fewer.items() if n >= size)])


def cost(classifier, n):
    fit, predict, power = COSTS[classifier]
    growth = max(n / 10_000, 1.0) if classifier in ("kNN", "RBF SVM") else 1.0
    return round(0.5 + fit * (n / 10_000) ** power + predict * growth, 3)


@functools.cache
def images():
    return load_mnist()


def run(task):
    n, repeat = int(task.key["n"]), int(task.key["repeat"])
    X, y, X_test, y_test = images()
    rows = chosen(y, n, repeat)
    model = models.make(task.key["classifier"], DATA, (28, 28), 10, n, seed=repeat, threads=1)
    return {"seed": repeat, **fit_and_test(model, X[rows], y[rows], X_test, y_test)}


def chosen(y, n, repeat):
    """Return the training images of a repeat, with each class, which 100 at random may lack."""
    order = np.random.RandomState(repeat).permutation(len(y))
    first = np.unique(y[order], return_index=True)[1]
    return np.concatenate([order[np.sort(first)], np.delete(order, first)])[:n]


def figures(csvs, pngs):
    rows = read(csvs, STUDY)
    if not rows:
        return
    authors = published.errors(DATA)
    figure, axes = plt.subplots(figsize=(7.5, 6.4), layout="constrained")
    style.draw_curves(axes, rows, "n", "error")
    sizes = {row["n"] for row in rows}
    line = {n: error for n, error in authors["MORF"].items() if n in sizes}
    axes.plot(line.keys(), line.values(), label=published.LABEL, **style.PUBLISHED)
    log_y(axes)
    axes.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
    axes.minorticks_off()
    axes.set(xlabel="training images", ylabel="test error, mean ± standard error")
    axes.set_title("MNIST", weight="bold")
    style.legend(figure, [axes])
    save(figure, Path(pngs) / "mnist.png")
    write_whole(Path(csvs) / "mnist.md", error_table(rows, authors))
    write_whole(Path(csvs) / "mnist-published.md", published_table(rows, authors["MORF"]))


def published_table(rows, authors):
    """Tell where the authors' single fit lies among ours."""
    lines = []
    for n, rate in authors.items():
        ours = [row["error"] for row in rows if (row["n"], row["classifier"]) == (n, "MORF")]
        if len(ours) < 2:
            continue
        spread = statistics.stdev(ours)
        lines.append(
            [
                f"{n:,}",
                tables.rate_and_error(ours),
                tables.rate(spread),
                tables.rate(rate),
                f"{(statistics.mean(ours) - rate) / spread:+.1f}",
            ]
        )
    heads = ["n", "ours", "spread of one fit", "published", "ours less published, in spreads"]
    return tables.markdown(heads, lines)
