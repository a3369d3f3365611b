"""How far a single draw of the data may fall from the mean: MORF on many draws of small size.

The authors' repeats reused one draw of the data, so a published rate is one draw as well. Five of
our repeats cannot tell whether a rate below our mean is better or lucky; a hundred can.
"""

from pathlib import Path

import numpy as np

from experiments import models, published, style
from experiments.simulations import SIMULATIONS
from experiments.store import Task, read
from measuring import tables
from measuring.figures import plt, save
from measuring.files import write_whole

STUDY = Path(__file__).stem
NAMES = ("A-line", "B", "C")
SIZES = (10, 50, 100, 200)
DRAWS = 100
QUICK_DRAWS = 5
TEST_SAMPLES = 2000  # the authors'
FIRST_SEED = 10_000  # far from those of the other studies
AT_ONCE = 20  # draws per task


def tasks(quick):
    draws = QUICK_DRAWS if quick else DRAWS
    at_once = min(draws, AT_ONCE)
    return [
        Task(
            STUDY,
            {"data": data, "n": n, "first": first, "draws": at_once},
            round(at_once * (0.15 + 0.001 * n), 2),
        )
        for data in NAMES
        for n in SIZES
        for first in range(0, draws, at_once)
    ]


def run(task):
    """Return a row per draw."""
    data, n = task.key["data"], int(task.key["n"])
    simulation = SIMULATIONS[data]
    rows = []
    for draw in range(int(task.key["draws"])):
        seed = FIRST_SEED + int(task.key["first"]) + draw
        X, y = simulation.make(n, random_state=2 * seed)
        X_test, y_test = simulation.make(TEST_SAMPLES, random_state=2 * seed + 1)
        model = models.make("MORF", data, simulation.shape, 2, n, seed=seed, threads=1)
        error = float(np.mean(model.fit(X, y).predict(X_test) != y_test))
        rows.append({"seed": seed, "error": error})
    return rows


def figures(csvs, pngs):
    rows = read(csvs, STUDY)
    names = [name for name in NAMES if any(row["data"] == name for row in rows)]
    if not names:
        return
    figure, panels = plt.subplots(
        1,
        len(names),
        figsize=(style.WIDEST * len(names) / 3, 3.9),
        layout="constrained",
        squeeze=False,
    )
    random = np.random.RandomState(0)
    lines = []
    for axes, data in zip(panels[0], names, strict=True):
        for place, n in enumerate(SIZES):
            errors = np.array(
                [row["error"] for row in rows if (row["data"], row["n"]) == (data, n)]
            )
            if not len(errors):
                continue
            rate = published.errors(data)["MORF"][n]
            jitter = place + random.uniform(-0.25, 0.25, len(errors))
            axes.scatter(
                jitter, errors, s=9, color="#d1495b", alpha=0.5, linewidths=0, label="one draw"
            )
            axes.hlines(errors.mean(), place - 0.35, place + 0.35, color="#2e4057", label="mean")
            axes.scatter(place, rate, marker="x", s=45, color="k", zorder=4, label="published")
            lines.append(line(data, n, errors, rate))
        axes.set_xticks(range(len(SIZES)), SIZES)
        axes.set(xlabel="training samples", ylim=(0, None))
        axes.set_title(SIMULATIONS[data].title, weight="bold")
        if 0 in [row["error"] for row in rows if row["data"] == data]:
            style.log_errors(axes)
    panels[0, 0].set_ylabel("test error of MORF")
    style.legend(figure, panels[0])
    save(figure, Path(pngs) / "draws.png")
    header = [
        "data",
        "n",
        "draws",
        "mean",
        "spread of one draw",
        "published",
        "draws at or below it",
    ]
    write_whole(Path(csvs) / "draws.md", tables.markdown(header, lines))


def line(data, n, errors, rate):
    below = f"{np.mean(errors <= rate):.0%}"
    mean = tables.rate_and_error(list(errors))
    return [data, n, len(errors), mean, tables.rate(errors.std(ddof=1)), tables.rate(rate), below]
