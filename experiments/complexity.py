"""The size of the trees of RF, SPORF and MORF against n, and how the time of a fit grows.

Both come from the rows of the simulations and of MNIST. The growth is that of the CPU-seconds
beside the paper's formula, O(T d H W n log^2 n) for T trees, d candidates per node, and patches of
at most H x W; d is worked out as the forests do.
"""

from pathlib import Path

import numpy as np

from experiments import models, style
from experiments.simulations import SIMULATIONS
from experiments.store import read
from measuring import tables
from measuring.figures import log_y, plt, save
from measuring.files import write_whole

MEASURES = {"height": "height", "leaf_depth": "mean depth of a leaf", "leaves": "leaves"}
NAMES = ("A-line", "B", "C", "D", "E")
LARGEST = {"MNIST": (28, 28), **{name: found.shape for name, found in SIMULATIONS.items()}}
FROM = 200  # below it a fit takes so little that the fixed part of its time counts


def figures(csvs, pngs):
    rows = [row for row in read(csvs, "simulations") if row["classifier"] in style.FORESTS]
    names = [name for name in NAMES if any(row["data"] == name for row in rows)]
    if names:
        save(draw(rows, names), Path(pngs) / "complexity.png")
        write_whole(Path(csvs) / "complexity.md", table(rows))
    rows += [row for row in read(csvs, "mnist") if row["classifier"] in style.FORESTS]
    lines = growth(rows)
    if lines:
        write_whole(Path(csvs) / "growth.md", tables.markdown(GROWTH_HEADER, lines))
    lines = per_candidate(rows)
    if lines:
        write_whole(Path(csvs) / "growth-patches.md", tables.markdown(PATCH_HEADER, lines))


def draw(rows, names):
    figure, panels = plt.subplots(
        len(MEASURES),
        len(names),
        figsize=(style.WIDEST * len(names) / 5, 6.8),
        layout="constrained",
        sharex="col",
        squeeze=False,
    )
    for column, name in enumerate(names):
        found = [row for row in rows if row["data"] == name]
        for axes, measure in zip(panels[:, column], MEASURES, strict=True):
            style.draw_curves(axes, found, "n", measure, style.FORESTS)
            if measure == "leaves":
                log_y(axes, dense=True)
            else:
                axes.set_ylim(0, None)
        words = SIMULATIONS[name].title.replace(" that", "\nthat").replace(" among", "\namong")
        panels[0, column].set_title(words, weight="bold", fontsize=9)
        panels[-1, column].set_xlabel("training samples")
        panels[-1, column].tick_params(axis="x", rotation=45)
    for axes, label in zip(panels[:, 0], MEASURES.values(), strict=True):
        axes.set_ylabel(label)
    figure.suptitle("Size of the trees, means over 500")
    style.legend(figure, panels.flat)
    return figure


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


# --- the paper's formula --------------------------------------------------------------------------

GROWTH_HEADER = [
    *("", "n", "n log² n"),
    *(f"seconds of {name}" for name in style.FORESTS),
    *(f"power of n, {name}" for name in style.FORESTS),
    *(f"n x depth, {name}" for name in style.FORESTS),
]
PATCH_HEADER = ["", "n", "d, MORF / RF", "H x W", "by the formula", "measured"]


def medians(rows, data, name, measure="train_seconds"):
    """Return the median of a measure over repeats by size, from FROM samples on."""
    found = {
        n: [row[measure] for row in group]
        for (n,), group in tables.group(
            [row for row in rows if (row["data"], row["classifier"]) == (data, name)], "n"
        ).items()
    }
    return {n: float(np.median(found[n])) for n in sorted(found) if n >= FROM}


def growth(rows):
    """Compare by what factor times grow, from FROM samples to the most, with the formula."""
    lines = []
    for data in LARGEST:
        seconds = {name: medians(rows, data, name) for name in style.FORESTS}
        sizes = sorted(set.intersection(*(set(found) for found in seconds.values())))
        if len(sizes) < 2:
            continue
        first, last = sizes[0], sizes[-1]
        formula = last / first * (np.log(last) / np.log(first)) ** 2
        cells = [f"{found[last] / found[first]:.0f}" for found in seconds.values()]
        powers = [
            np.polyfit(np.log(sizes), np.log([found[n] for n in sizes]), 1)[0]
            for found in seconds.values()
        ]
        depths = [medians(rows, data, name, "leaf_depth") for name in style.FORESTS]
        visited = [f"{last * d[last] / (first * d[first]):.0f}" for d in depths]
        span = f"{first:,} to {last:,}"
        lines.append(
            [data, span, f"x {formula:.0f}", *(f"x {cell}" for cell in cells)]
            + [f"{power:.2f}" for power in powers]
            + [f"x {cell}" for cell in visited]
        )
    return lines


def per_candidate(rows):
    """Compare MORF's time with RF's at the largest size: by the formula and as measured."""
    lines = []
    for data, shape in LARGEST.items():
        ours, theirs = (medians(rows, data, name) for name in ("MORF", "RF"))
        sizes = sorted(ours.keys() & theirs.keys())
        if not sizes:
            continue
        n = sizes[-1]
        features = int(np.prod(shape))
        given = models.settings("MORF", data)
        d = candidates(given["max_features"], features) / candidates("sqrt", features)
        height, width = given["patch"]["max_size"]
        ratios = [f"x {d * height * width:.0f}", f"x {ours[n] / theirs[n]:.2f}"]
        lines.append([data, f"{n:,}", f"{d:.1f}", f"{height} x {width}", *ratios])
    return lines


def candidates(share, features):
    """Return the number of candidates per node, as the forests work it out."""
    return max(1, int(np.sqrt(features) if share == "sqrt" else share * features))
