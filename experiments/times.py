"""Seconds of training and of testing against n, from the rows of the simulations and of MNIST."""

from pathlib import Path

import numpy as np

from experiments import style
from experiments.simulations import SIMULATIONS
from experiments.store import read
from measuring import tables
from measuring.figures import log_y, plt, save
from measuring.files import write_whole

NAMES = ("A-line", "B", "C", "MNIST")
MEASURES = {"train_seconds": "training", "test_seconds": "testing 10,000 samples"}
LEAST = 1e-3  # shorter CPU times are not measurable


def figures(csvs, pngs):
    rows = [
        {**row, **{name: max(LEAST, row[name]) for name in MEASURES}}
        for study in ("simulations", "mnist")
        for row in read(csvs, study)
    ]
    names = [name for name in NAMES if any(row["data"] == name for row in rows)]
    if not names:
        return
    figure, panels = plt.subplots(
        2,
        len(names),
        figsize=(style.WIDEST * len(names) / 4, 6.2),
        layout="constrained",
        sharex="col",
        sharey="row",
        squeeze=False,
    )
    for column, name in enumerate(names):
        found = [row for row in rows if row["data"] == name]
        for axes, measure in zip(panels[:, column], MEASURES, strict=True):
            style.draw_curves(axes, found, "n", measure)
            log_y(axes)
        title = SIMULATIONS[name].title if name in SIMULATIONS else name
        panels[0, column].set_title(title, weight="bold", fontsize=9)
        panels[-1, column].set_xlabel("training samples")
    for axes, label in zip(panels[:, 0], MEASURES.values(), strict=True):
        axes.set_ylabel(f"{label}, CPU-seconds")
    style.legend(figure, panels.flat)
    save(figure, Path(pngs) / "times.png")
    write_whole(Path(csvs) / "times.md", table(rows, names))


def table(rows, names):
    """Return median CPU-seconds of training and testing at the largest size of each data set."""
    largest = {name: max(row["n"] for row in rows if row["data"] == name) for name in names}
    lines = []
    for classifier in style.CLASSIFIERS:
        cells = []
        for name in names:
            found = [
                row
                for row in rows
                if (row["data"], row["n"], row["classifier"]) == (name, largest[name], classifier)
            ]
            medians = [np.median([row[measure] for row in found]) for measure in MEASURES if found]
            cells.append(" / ".join(f"{seconds:.3g}" for seconds in medians))
        if any(cells):
            lines.append([classifier, *cells])
    return tables.markdown(["", *(f"{name}, n = {largest[name]:,}" for name in names)], lines)
