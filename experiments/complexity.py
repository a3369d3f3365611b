"""The size of the trees of RF, SPORF and MORF against n, from the rows of the simulations."""

from pathlib import Path

import numpy as np

from experiments import style
from experiments.simulations import SIMULATIONS
from experiments.store import read
from measuring import tables
from measuring.figures import plt, save
from measuring.files import write_whole

MEASURES = {"height": "height", "leaf_depth": "mean depth of a leaf", "leaves": "leaves"}
NAMES = ("A-line", "B", "C")


def figures(csvs, pngs):
    rows = [row for row in read(csvs, "simulations") if row["classifier"] in style.FORESTS]
    names = [name for name in NAMES if any(row["data"] == name for row in rows)]
    if not names:
        return
    figure, panels = plt.subplots(
        len(MEASURES),
        len(names),
        figsize=(3.4 * len(names) + 1.4, 7.5),
        layout="constrained",
        sharex="col",
        squeeze=False,
    )
    for column, name in enumerate(names):
        found = [row for row in rows if row["data"] == name]
        for axes, measure in zip(panels[:, column], MEASURES, strict=True):
            style.draw_curves(axes, found, "n", measure, style.FORESTS)
            axes.set_ylim(0, None)
        panels[0, column].set_title(SIMULATIONS[name].title, weight="bold")
        panels[-1, column].set_xlabel("training samples")
    for axes, label in zip(panels[:, 0], MEASURES.values(), strict=True):
        axes.set_ylabel(label)
    figure.suptitle("Size of the trees, means over 500")
    style.legend(figure, panels.flat)
    save(figure, Path(pngs) / "complexity.png")
    write_whole(Path(csvs) / "complexity.md", table(rows))


def table(rows):
    """Describe the trees at the largest size of each simulation."""
    lines = []
    for data in SIMULATIONS:
        found = [row for row in rows if row["data"] == data]
        largest = max((row["n"] for row in found), default=None)
        for name in style.FORESTS:
            values = [row for row in found if row["n"] == largest and row["classifier"] == name]
            if values:
                means = [np.mean([row[measure] for row in values]) for measure in MEASURES]
                lines.append([data, f"{largest:,}", name, *(f"{mean:.1f}" for mean in means)])
    return tables.markdown(["", "n", "forest", *MEASURES.values()], lines)
