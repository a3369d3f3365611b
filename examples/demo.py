"""Random forest, SPORF and MORF side by side on four data sets; `make demo` runs this.

One engine grows all three. They differ only in the dictionary from which their splits are drawn:
single features (RF), sparse random sums and differences of features (SPORF), and sums over patches
(MORF). A fourth line per data set shows what lies beyond the paper: boosting, gradients, pooling,
or a dictionary that the forest chooses by itself.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from morforest import Axis, MorfBoostingClassifier, MorfClassifier, Patch, SparseOblique
from morforest.datasets import make_bars, make_circle, make_impulse

mpl.use("Agg")
import matplotlib.pyplot as plt

OUTPUT = Path("demo_output")
N_TREES, FEW_TREES = 500, 20
N_TEST = 2000
NAMES = ("RF", "SPORF", "MORF")
BEYOND = "beyond"


@dataclass(frozen=True)
class Task:
    """A data set, the training sizes to try, and the paper's settings for it."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    sizes: tuple[int, int]
    patch: Patch
    max_features: float | str
    beyond: MorfClassifier | MorfBoostingClassifier
    beyond_name: str

    def estimators(self, trees: int) -> dict[str, MorfClassifier | MorfBoostingClassifier]:
        """Return unfitted estimators by name: three dictionaries, and what lies beyond."""
        forest = MorfClassifier(n_estimators=trees, max_features=self.max_features)
        found = {
            name: clone(forest).set_params(dictionary=dictionary)
            for name, dictionary in zip(NAMES, (Axis(), SparseOblique(), self.patch), strict=True)
        }
        rounds = "max_iter" if isinstance(self.beyond, MorfBoostingClassifier) else "n_estimators"
        found[BEYOND] = clone(self.beyond).set_params(**{rounds: trees})
        for estimator in found.values():
            estimator.set_params(n_jobs=2, random_state=0)
        return found


@dataclass(frozen=True)
class Result:
    """One line of the table, and the forest behind it."""

    task: Task
    n: int
    name: str
    forest: MorfClassifier | MorfBoostingClassifier
    accuracy: float
    fit_seconds: float
    predict_seconds: float


def tasks() -> list[Task]:
    digits = load_digits()
    X, X_test, y, y_test = train_test_split(
        digits.images, digits.target, train_size=1000, stratify=digits.target, random_state=0
    )
    boosting = MorfBoostingClassifier("image"), "image, boosted"
    anywhere = Patch(max_size=0.5, boundary="wrap", pool="max", window=1.0)
    return [
        Task("digits", X, y, X_test, y_test, (100, 1000), Patch((1, 1), (3, 3)), "sqrt", *boosting),
        simulation(
            "circle",
            make_circle,
            (200, 1000),
            Patch(3, 12, boundary="wrap"),
            0.5,
            MorfClassifier(anywhere),
            "Patch, pooled",
        ),
        simulation(
            "bars",
            make_bars,
            (10, 50),
            Patch((2, 2), (2, 9)),
            "sqrt",
            MorfClassifier("image"),
            "image",
        ),
        simulation(
            "impulse", make_impulse, (50, 400), Patch(2, 12), 0.3, MorfClassifier("auto"), "auto"
        ),
    ]


def simulation(name, make, sizes, *settings) -> Task:
    train, test = make(max(sizes), random_state=0), make(N_TEST, random_state=1)
    return Task(name, *train, *test, sizes, *settings)


def run(task: Task, n: int, name: str, trees: int) -> Result:
    forest = task.estimators(trees)[name]
    start = time.perf_counter()
    forest.fit(task.X[:n], task.y[:n])
    fitted = time.perf_counter()
    predicted = forest.predict(task.X_test)
    done = time.perf_counter()
    return Result(
        task,
        n,
        name,
        forest,
        accuracy=float(np.mean(predicted == task.y_test)),
        fit_seconds=fitted - start,
        predict_seconds=done - fitted,
    )


def run_all(all_tasks: list[Task], trees: int) -> Iterator[Result]:
    """Fit everything, with a line of progress per fit: on a terminal, one line is rewritten."""
    names = (*NAMES, BEYOND)
    jobs = [(task, n, name) for task in all_tasks for n in task.sizes for name in names]
    terminal = sys.stdout.isatty()
    for count, (task, n, name) in enumerate(jobs, start=1):
        line = f"[{count:{len(str(len(jobs)))}}/{len(jobs)}] {task.name:<8} n = {n:<5} {name:<6}"
        if terminal:
            print(f"\r\033[K{line} fitting ...", end="", flush=True)
        result = run(task, n, name, trees)
        if not terminal:
            print(f"{line} accuracy {result.accuracy:.3f}", flush=True)
        yield result
    print("\r\033[K" if terminal else "", end="" if terminal else "\n", flush=True)


# --- the table ------------------------------------------------------------------------------------

COLUMNS = ("data", "n", "dictionary", "accuracy", "fit s", "predict s", "mean depth", "leaves")


def describe(result: Result) -> str:
    if result.name == BEYOND:
        return result.task.beyond_name
    return type(result.forest.dictionary).__name__


def table(results: list[Result]) -> str:
    """Return aligned columns, with a blank line between groups."""
    rows = [
        (
            result.task.name,
            str(result.n),
            f"{result.name:<6}  {describe(result)}",
            f"{result.accuracy:.3f}",
            f"{result.fit_seconds:.2f}",
            f"{result.predict_seconds:.2f}",
            f"{result.forest.get_mean_leaf_depths().mean():.1f}",
            f"{result.forest.get_n_leaves().mean():.1f}",
        )
        for result in results
    ]
    widths = [max(map(len, column)) for column in zip(COLUMNS, *rows, strict=True)]
    words = {0, 2}  # columns of words are aligned to the left, numbers to the right

    def line(cells: tuple[str, ...]) -> str:
        return "  ".join(
            cell.ljust(width) if index in words else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ).rstrip()

    lines = [line(COLUMNS), line(tuple("-" * width for width in widths)), line(rows[0])]
    for before, row in pairwise(rows):
        if row[:2] != before[:2]:
            lines.append("")
        lines.append(line(row))
    return "\n".join(lines)


# --- the pictures ---------------------------------------------------------------------------------

STYLE = {
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.dpi": 150,
}
COLOURS = {"RF": "#7a7a7a", "SPORF": "#c7762b", "MORF": "#2c6fad"}
CLASS_COLOURS = ("#2c6fad", "#c0392b")
MEASURES = {
    "share of splits\nthat use the feature": "split_shares_",
    "decrease of impurity": "feature_importances_",
}
CAPTIONS = {
    "digits": "Pixels that never change cannot split: RF skips them, sums may include them. "
    "Patches stay on the strokes.",
    "circle": "All cells are equally important. The classes differ in the lengths of segments, "
    "which only sums over neighbours see.",
    "bars": "A patch of height 2 that reaches over the upper or lower edge sees only one row: "
    "the clearest view of a bar.",
    "impulse": "The impulse begins at time 20 and decays. Patches of 2 to 12 steps collect it, "
    "and blur where it begins.",
}


def relative(importance: np.ndarray) -> np.ndarray:
    """Return an importance as a multiple of the average feature's.

    A patch uses many features at once and a random forest's split uses one, so plain shares of
    splits have different totals. In units of their mean, the maps of the three can be compared.
    """
    return importance / importance.mean()


def picture(task: Task, forests: dict[str, MorfClassifier], accuracies: dict[str, float]) -> Path:
    """Draw the data on the left, importances of RF, SPORF and MORF on the right, and save."""
    with plt.rc_context(STYLE):
        images = task.X.ndim == 3
        figure = plt.figure(figsize=(13, 5.7), layout="constrained")
        left, right = figure.subfigures(1, 2, width_ratios=(1, 2.1), wspace=0.04)
        {
            "digits": draw_mean_digits,
            "bars": draw_example_bars,
            "circle": draw_example_circles,
            "impulse": draw_example_impulses,
        }[task.name](left, task)
        axes = right.subplots(len(MEASURES), len(NAMES), sharex=True, sharey="row", squeeze=False)
        draw = draw_maps if images else draw_curves
        for row, attribute in zip(axes, MEASURES.values(), strict=True):
            draw(row, {name: relative(getattr(forests[name], attribute)) for name in NAMES})
        for axis, name in zip(axes[0], NAMES, strict=True):
            dictionary = type(forests[name].dictionary).__name__
            axis.set_title(f"{name}: {dictionary}\naccuracy {accuracies[name]:.3f}")
        for axis, measure in zip(axes[:, 0], MEASURES, strict=True):
            axis.set_ylabel(measure)
        if not images:
            for axis in axes[-1]:
                axis.set_xlabel("time" if task.name == "impulse" else "cell")
        right.suptitle("what the forests look at (1 = the average feature)", weight="bold")
        figure.supxlabel(CAPTIONS[task.name], size=10.5, style="italic")
        path = OUTPUT / f"{task.name}.png"
        figure.savefig(path)
        plt.close(figure)
    return path


def draw_maps(row: np.ndarray, maps: dict[str, np.ndarray]) -> None:
    highest = max(values.max() for values in maps.values())
    for axis, values in zip(row, maps.values(), strict=True):
        shown = axis.imshow(values, cmap="magma", vmin=0, vmax=highest)
        without_ticks(axis)
    row[0].figure.colorbar(shown, ax=row, shrink=0.85, aspect=18)


def draw_curves(row: np.ndarray, curves: dict[str, np.ndarray]) -> None:
    for axis, (name, values) in zip(row, curves.items(), strict=True):
        axis.fill_between(np.arange(len(values)), values, color=COLOURS[name], alpha=0.25, lw=0)
        axis.plot(values, color=COLOURS[name], lw=1.4)
        axis.axhline(1, color="0.55", lw=0.8, ls=":")
        axis.set(xlim=(0, len(values) - 1), ylim=(0, None))


def draw_mean_digits(figure, task: Task) -> None:
    means = {str(digit): task.X[task.y == digit].mean(axis=0) for digit in range(10)}
    means["all"] = task.X.mean(axis=0)
    means["deviation"] = task.X.std(axis=0)
    for axis, (title, image) in zip(figure.subplots(4, 3).flat, means.items(), strict=True):
        axis.imshow(image, cmap="gray_r", vmin=0, vmax=16)
        axis.set_title(title)
        without_ticks(axis)
    figure.suptitle("digits: the mean image of each class", weight="bold")


def draw_example_bars(figure, task: Task) -> None:
    for row, label in zip(figure.subplots(2, 2), (0, 1), strict=True):
        for axis, image in zip(row, task.X[task.y == label][:2], strict=True):
            axis.imshow(image, cmap="gray_r")
            without_ticks(axis)
        row[0].set_ylabel(f"class {label}: {('rows', 'columns')[label]}")
    figure.suptitle("bars: two examples of each class", weight="bold")


def draw_example_circles(figure, task: Task) -> None:
    axes = figure.subplots(2, 1, sharex=True)
    for axis, label, lengths in zip(axes, (0, 1), ("5 and 5", "4 and 6"), strict=True):
        axis.imshow(
            task.X[task.y == label][:20], cmap="gray_r", aspect="auto", interpolation="nearest"
        )
        axis.set(title=f"class {label}: segments of {lengths}", yticks=[], ylabel="20 samples")
    axes[-1].set_xlabel("cell; the last is a neighbour of the first")
    figure.suptitle("circle", weight="bold")


def draw_example_impulses(figure, task: Task) -> None:
    axes = figure.subplots(2, 1, sharex=True, sharey=True)
    for axis, label in zip(axes, (0, 1), strict=True):
        signals = task.X[task.y == label]
        axis.plot(signals[0], color="0.7", lw=0.9, label="one sample")
        axis.plot(signals.mean(axis=0), color=CLASS_COLOURS[label], lw=1.8, label="mean")
        axis.set(title=f"class {label}: {('noise', 'noise and an impulse')[label]}")
        axis.set_xlim(0, task.X.shape[1] - 1)
    axes[0].legend(loc="lower right", frameon=False, ncols=2)
    axes[-1].set_xlabel("time")
    figure.suptitle("impulse", weight="bold")


def without_ticks(axis) -> None:
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(True)
    axis.spines[:].set_color("0.7")


# --- the whole ------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help=f"grow {FEW_TREES} trees only")
    trees = FEW_TREES if parser.parse_args().small else N_TREES
    start = time.perf_counter()
    print(
        f"Forests of {trees} trees from three dictionaries, and what lies beyond the paper, "
        "on four data sets.\n"
    )
    all_tasks = tasks()
    results = list(run_all(all_tasks, trees))
    print(table(results))
    print(
        "\nmean depth: mean depth of the leaves. leaves: mean number per tree. "
        "impulse: the best possible accuracy is 0.880."
    )

    OUTPUT.mkdir(exist_ok=True)
    paths = []
    for task in all_tasks:
        largest = [r for r in results if r.task is task and r.n == max(task.sizes)]
        forests = {result.name: result.forest for result in largest}
        accuracies = {result.name: result.accuracy for result in largest}
        paths.append(picture(task, forests, accuracies))
    print("\nPictures that show what each forest looks at:")
    for path in paths:
        print(f"  {path.resolve()}")
    print(
        f"\nThe demo took {time.perf_counter() - start:.0f} s. What to try next:\n"
        "  - fit your own data: MorfClassifier(Patch()).fit(X, y), with X of shape (n, time),\n"
        "    (n, channels, time), (n, height, width), ...\n"
        "  - try another dictionary here, such as Mixture([Patch((1, 1), (3, 3)), Axis()])\n"
        "  - read docs/choose.md, which says what to choose for which data\n"
        "  - run make bench, which measures speed and accuracy beside other forests"
    )


if __name__ == "__main__":
    main()
