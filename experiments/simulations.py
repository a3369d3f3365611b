"""The simulations A to E: test error against the number of training samples, for all classifiers.

Each repeat draws its own training and test samples. Within a repeat all classifiers see the same
samples, and smaller training sets are prefixes of larger ones, as in the paper.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from experiments import models, published, style
from experiments.store import Task, read
from measuring import tables
from measuring.figures import plt, save
from measuring.files import write_whole
from morforest.datasets import make_bars, make_circle, make_dynamics, make_impulse

STUDY = Path(__file__).stem
SIZES = (10, 50, 100, 200, 400, 1000, 2000)
REPEATS = 5
TEST_SAMPLES = 10_000
EXAMPLES = 5  # of a class, in figures
MEAN_COLOUR = "#d1495b"
QUICK_SIZES = (50, 200)
QUICK_REPEATS = 2
QUICK_TEST_SAMPLES = 2000
WRAPPING, SHORT = "MORF (wrapping patches)", "MORF (short patches)"
# MORF with patches other than the paper's.
VARIANTS = {WRAPPING: {"boundary": "wrap"}, SHORT: {"min_size": 1, "max_size": (2, 10)}}
# Where errors come near zero, their axis is logarithmic.
NEAR_ZERO = ("A", "A-line", "B")
# Not in the paper, and only for series; the study `series` has it.
ABSENT = ("MiniRocket",)


@dataclass(frozen=True)
class Simulation:
    title: str
    make: Callable
    shape: tuple[int, ...]
    sizes: tuple[int, ...] = SIZES
    more: tuple[str, ...] = ()  # classifiers beside the paper's


SIMULATIONS = {
    "A": Simulation("A: circle", make_circle, (100,), more=(WRAPPING,)),
    # The text lets segments continue past the end; the authors' code, whose results they published,
    # does not.
    "A-line": Simulation("A: circle that never wraps", partial(make_circle, wrap=False), (100,)),
    "B": Simulation("B: bars", make_bars, (28, 28)),
    "C": Simulation("C: impulse", make_impulse, (100,)),
    "D": Simulation("D: dynamical system", make_dynamics, (3, 100), more=(SHORT,)),
    # The paper gives sizes for each class here: 50 to 2,000.
    "E": Simulation(
        "E: dynamical system among noise",
        partial(make_dynamics, noise_channels=True),
        (6, 100),
        sizes=(100, 200, 400, 800, 2000, 4000),
        more=(SHORT,),
    ),
}


def classifiers(data):
    paper = [name for name in models.NAMES if name not in ABSENT]
    return (*paper, *SIMULATIONS[data].more)


def tasks(quick):
    tested = QUICK_TEST_SAMPLES if quick else TEST_SAMPLES
    return [
        Task(
            STUDY,
            {
                "data": data,
                "n": n,
                "classifier": classifier,
                "repeat": repeat,
                "test_samples": tested,
            },
            cost(classifier, n, int(np.prod(simulation.shape)), tested),
        )
        for data, simulation in SIMULATIONS.items()
        for n in (QUICK_SIZES if quick else simulation.sizes)
        for classifier in classifiers(data)
        for repeat in range(QUICK_REPEATS if quick else REPEATS)
    ]


# Rough CPU-seconds for 100 features: of any fit, per 1,000 rows, and of predicting 10,000.
COSTS = {
    "MORF": (0.1, 0.8, 0.3),
    WRAPPING: (0.1, 0.8, 0.3),
    SHORT: (0.1, 0.8, 0.3),
    "SPORF": (0.1, 0.8, 0.4),
    "RF": (0.1, 0.5, 0.2),
    "RF (scikit-learn)": (1.2, 1.0, 0.7),
    "linear SVM": (0.05, 0.3, 0.05),
    "RBF SVM": (0.0, 0.5, 0.2),
    "kNN": (0.0, 0.0, 0.3),
    "MLP": (0.1, 0.8, 0.05),
    "XGBoost": (0.1, 1.0, 0.1),
    "ConvNet": (4.0, 8.0, 0.6),
}
OTHER_COSTS = (0.05, 0.1, 0.05)


def cost(classifier, n, features, tested):
    fixed, rows, predict = COSTS.get(classifier, OTHER_COSTS)
    wide = (features / 100) ** 0.5
    return round(0.05 + fixed + (rows * n / 1000 + predict * tested / 10_000) * wide, 3)


def run(task):
    data, classifier = task.key["data"], task.key["classifier"]
    n, repeat, tested = (int(task.key[name]) for name in ("n", "repeat", "test_samples"))
    name = "MORF" if classifier in VARIANTS else classifier
    model = models.make(name, data, SIMULATIONS[data].shape, 2, n, seed=repeat, threads=1)
    for parameter, value in VARIANTS.get(classifier, {}).items():
        model.set_params(**{f"model__dictionary__{parameter}": value})
    return {"seed": repeat, **fit_and_test(model, *samples(data, n, repeat, tested))}


def samples(data, n, repeat, tested):
    """Return training samples and labels of a repeat, then those for testing."""
    make = SIMULATIONS[data].make
    return *make(n, random_state=2 * repeat), *make(tested, random_state=2 * repeat + 1)


def fit_and_test(model, X, y, X_test, y_test):
    """Return the test error, times, and for our models the size of the trees."""
    wall, start = time.perf_counter(), time.process_time()
    model.fit(X, y)
    fitted = time.process_time()
    predicted = model.predict(X_test)
    done = time.process_time()
    forest = getattr(model, "model_", None)
    trees = hasattr(forest, "get_mean_leaf_depths")
    return {
        "error": float(np.mean(predicted != y_test)),
        "train_seconds": round(fitted - start, 4),
        "test_seconds": round(done - fitted, 4),
        "wall_seconds": round(time.perf_counter() - wall, 4),
        # Means over the trees.
        "height": float(forest.get_depths().mean()) if trees else "",
        "leaf_depth": round(float(forest.get_mean_leaf_depths().mean()), 4) if trees else "",
        "leaves": float(forest.get_n_leaves().mean()) if trees else "",
    }


# --- figures and tables ---------------------------------------------------------------------------


def figures(csvs, pngs):
    rows = {data: found for (data,), found in tables.group(read(csvs, STUDY), "data").items()}
    for picture, names in (("error-abc", ("A-line", "B", "C")), ("error-ade", ("A", "D", "E"))):
        names = [name for name in names if name in rows]
        if names:
            save(draw(names, rows), Path(pngs) / f"{picture}.png")
    write_whole(Path(csvs) / "simulations-summary.md", summary(rows))
    for data, found in rows.items():
        table = error_table(found, published.errors(data))
        write_whole(Path(csvs) / f"simulations-{data}.md", table)


def summary(rows):
    """Compare the forests of this library with the published rates, at two sizes."""
    lines = []
    for data in ("A-line", "A", "B", "C"):
        for n in (200, 2000):
            cells = []
            for name in style.FORESTS:
                of = [
                    row["error"]
                    for row in rows.get(data, [])
                    if (row["n"], row["classifier"]) == (n, name)
                ]
                cells.append(tables.rate_and_error(of) if of else "")
            authors = published.errors(data).get("MORF", {}).get(n)
            cells.append("" if authors is None else tables.rate(authors))
            if any(cells[:-1]):
                lines.append([SIMULATIONS[data].title, f"{n:,}", *cells])
    return tables.markdown(["", "n", *style.FORESTS, published.LABEL], lines)


def draw(names, rows):
    """Draw samples of both classes above the test error against n."""
    figure = plt.figure(figsize=(style.WIDEST * len(names) / 3, 6.8), layout="constrained")
    grid = figure.add_gridspec(2, len(names), height_ratios=(1, 2.1))
    panels = []
    for i, name in enumerate(names):
        above = grid[0, i].subgridspec(*((1, 2) if name == "B" else (2, 1)))
        for label in (0, 1):
            axes = figure.add_subplot(above[label])
            draw_examples(axes, name, label)
            if label == 0 or name == "B":
                title = SIMULATIONS[name].title if label == 0 else ""
                axes.set_title(title, loc="left", weight="bold")
        axes = figure.add_subplot(grid[1, i])
        style.draw_curves(axes, rows[name], "n", "error")
        line = published.errors(name).get("MORF")
        if line:
            axes.plot(line.keys(), line.values(), label=published.LABEL, **style.PUBLISHED)
        if name == "C":
            axes.axhline(published.BEST_OF_C, color="0.4", linewidth=1, linestyle=(0, (1, 1)))
            axes.text(12, published.BEST_OF_C - 0.006, "best possible", va="top", fontsize=7)
        axes.set(xlabel="training samples", ylim=(0, 0.55))
        if name in NEAR_ZERO:
            style.log_errors(axes)
        panels.append(axes)
    panels[0].set_ylabel("test error, mean ± standard error")
    style.legend(figure, panels)
    return figure


def draw_examples(axes, name, label):
    X, y = SIMULATIONS[name].make(2000, random_state=0)
    X = X[y == label]
    if name.startswith("A"):
        lines = np.repeat(X[:9], 3, axis=0)
        lines[::3] = 0  # space between one sample and the next
        axes.imshow(lines, cmap="gray_r", aspect="auto", interpolation="nearest")
        style.plain_image(axes)
    elif name == "B":
        axes.imshow(X[0], cmap="gray_r")
        style.plain_image(axes)
    else:
        # The mean of the class is drawn over single samples, and on the same scale.
        examples = np.reshape(X[:EXAMPLES], (EXAMPLES, -1, X.shape[-1]))
        axes.set_rasterization_zorder(2)
        for place, mean in enumerate(np.atleast_2d(X.mean(axis=0))):
            axes.plot(examples[:, place].T - 3 * place, color="0.75", linewidth=0.5, zorder=1)
            axes.plot(mean - 3 * place, color=MEAN_COLOUR, linewidth=1.8, zorder=3)
        axes.set(xlim=(0, X.shape[-1] - 1), yticks=[], xticks=[])
        axes.spines[:].set_visible(False)
    axes.set_ylabel(f"class {label}")


def error_table(rows, authors):
    """Return a table of classifiers by sizes: mean test error ± standard error, lowest in bold."""
    cells = {
        key: [row["error"] for row in found]
        for key, found in tables.group(rows, "classifier", "n").items()
    }
    sizes = sorted({n for _, n in cells})
    best = {n: min(np.mean(cells[key]) for key in cells if key[1] == n) for n in sizes}
    present = {name for name, _ in cells}
    lines = []
    for name in [name for name in style.CLASSIFIERS if name in present]:
        line = [name]
        for n in sizes:
            values = cells.get((name, n))
            text = tables.rate_and_error(values) if values else ""
            line.append(f"**{text}**" if values and np.mean(values) == best[n] else text)
        lines.append(line)
    for name, line in authors.items():
        found = [tables.rate(line[n]) if n in line else "" for n in sizes]
        lines.append([f"*{name}, as published*", *found])
    return tables.markdown(["n", *(f"{n:,}" for n in sizes)], lines)
