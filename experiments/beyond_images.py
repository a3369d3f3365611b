"""MNIST beyond the paper: views and pairs of patches, boosting, copies of the images.

Training images and test images are those of the study `mnist`, whose rows are the peers.
"""

from pathlib import Path

from experiments import beyond, mnist, style
from experiments.simulations import error_table
from experiments.store import Task, read
from measuring.figures import log_y, plt, save
from measuring.files import write_whole

STUDY = Path(__file__).stem
DATA = mnist.DATA
CLASSIFIERS = ("forest image", "boosting image", "boosting image + copies")
REPEATS = 5
QUICK_REPEATS = 1
# Rough CPU-seconds of a fit to 10,000 images and of predicting 10,000, and the power of n by which
# the time of the fit grows.
COSTS = {
    "forest image": (9.0, 2.0, 1.2),
    "boosting image": (10.0, 1.5, 1.0),
    "boosting image + copies": (45.0, 1.5, 1.0),
}
DRAWN = (*CLASSIFIERS, "MORF", "RF", "XGBoost", "RBF SVM", "ConvNet")


def tasks(quick):
    mnist.images()  # fails before any work if data are missing
    return [
        Task(
            STUDY,
            {"data": DATA, "n": n, "classifier": classifier, "repeat": repeat},
            cost(classifier, n),
        )
        for n in (mnist.QUICK_SIZES if quick else mnist.SIZES)
        for classifier in CLASSIFIERS
        for repeat in range(QUICK_REPEATS if quick else REPEATS)
    ]


def cost(classifier, n):
    fit, predict, power = COSTS[classifier]
    return round(0.5 + fit * (n / 10_000) ** power + predict, 3)


def run(task):
    n, repeat = int(task.key["n"]), int(task.key["repeat"])
    X, y, X_test, y_test = mnist.images()
    rows = mnist.chosen(y, n, repeat)
    return beyond.measure(task.key["classifier"], repeat, X[rows], y[rows], X_test, y_test)


def rows(csvs):
    """Return our rows and those of the peers; none without ours."""
    found = read(csvs, STUDY)
    return beyond.with_loss([*found, *read(csvs, mnist.STUDY)]) if found else []


def figures(csvs, pngs):
    found = rows(csvs)
    if not found:
        return
    figure, axes = plt.subplots(figsize=(7.5, 5.6), layout="constrained")
    shown = [row for row in found if row["classifier"] in DRAWN]
    style.draw_curves(axes, shown, "n", "error", DRAWN)
    log_y(axes)
    axes.set_yticks(mnist.TICKS, [f"{tick:g}" for tick in mnist.TICKS])
    axes.minorticks_off()
    axes.set(xlabel="training images", ylabel="test error, mean ± standard error")
    axes.set_title("MNIST", weight="bold")
    style.legend(figure, [axes])
    save(figure, Path(pngs) / "beyond-images.png")
    write_whole(Path(csvs) / "beyond-images.md", error_table(found, {}))
