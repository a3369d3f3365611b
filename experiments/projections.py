"""What each dictionary lets a split look at: examples of atoms, and the features they join.

This is the idea of the paper's first figure. Features are the nodes of a graph, and two are joined
if an atom may use both: none in a random forest, any two in SPORF, neighbours in MORF.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments import style
from experiments.store import Task, read
from measuring import tables
from measuring.figures import plt, save
from morforest import Atoms, Axis, Mixture, Patch, SparseOblique

STUDY = Path(__file__).stem
SIDE = 12  # of the images with examples
ATOMS = 5
GRAPH_SIDE = 4  # of the images whose pixels are the nodes
DENSE = 5  # what lies deeper is pixels in SVG files
DRAWS = 20_000


def waves(side):
    """Return filters that look for light beside dark, at four angles and all places."""
    rows, columns = np.mgrid[:side, :side]
    filters = []
    for angle in np.pi * np.arange(4) / 4:
        for top, left in np.ndindex(side, side):
            along = (columns - left) * np.cos(angle) + (rows - top) * np.sin(angle)
            distance = (columns - left) ** 2 + (rows - top) ** 2
            wave = np.sin(2 * np.pi * along / 4) * np.exp(-distance / 4)
            wave[distance > 8] = 0
            filters.append(np.round(wave, 3).ravel())
    return Atoms(np.array(filters))


@dataclass(frozen=True)
class Example:
    words: str
    make: Callable  # side of the image -> dictionary


EXAMPLES = {
    "RF: Axis()": Example("one feature", lambda side: Axis()),
    "SPORF: SparseOblique()": Example(
        "a few features, added and subtracted", lambda side: SparseOblique()
    ),
    "MORF: Patch(min_size, max_size)": Example(
        "a box of neighbours", lambda side: Patch((1, 2), (side // 3 + 1, side // 2))
    ),
    "MORF: Patch(..., contiguous=(False, True))": Example(
        "neighbours in time, in any channels",
        lambda side: Patch((1, 2), (side // 4 + 1, side // 2), contiguous=(False, True)),
    ),
    "Atoms(matrix)": Example("filters of one's own", waves),
    "Mixture([Patch(...), Axis()])": Example(
        "several of them",
        lambda side: Mixture([Patch((2, 2), (side // 2, side // 2)), Axis()]),
    ),
}


def tasks(quick):
    return [Task(STUDY, {"dictionary": name}, 0.2) for name in EXAMPLES]


def run(task):
    """Return rows (atom, row, column, weight) of examples, then (node, node, share) of edges."""
    make = EXAMPLES[task.key["dictionary"]].make
    rows = []
    atoms = make(SIDE).sample((SIDE, SIDE), ATOMS, random_state=2).toarray()
    for number, atom in enumerate(atoms):
        for (i, j), weight in np.ndenumerate(atom.reshape(SIDE, SIDE)):
            if weight:
                rows.append(_row("atom", number, i, j, weight))
    used = make(GRAPH_SIDE).sample((GRAPH_SIDE, GRAPH_SIDE), DRAWS, random_state=0).toarray() != 0
    together = used.T.astype(float) @ used / DRAWS
    for i, j in zip(*np.triu_indices(GRAPH_SIDE**2, 1), strict=True):
        rows.append(_row("edge", "", i, j, together[i, j]))
    return rows


def _row(kind, number, first, second, value):
    return {
        "kind": kind,
        "number": number,
        "first": int(first),
        "second": int(second),
        "value": round(float(value), 6),
        "seed": 2 if kind == "atom" else 0,
    }


def figures(csvs, pngs):
    rows = {key: found for (key,), found in tables.group(read(csvs, STUDY), "dictionary").items()}
    names = [name for name in EXAMPLES if name in rows]
    if not names:
        return
    figure = plt.figure(figsize=(style.WIDEST, 1.45 * len(names)), layout="constrained")
    grid = figure.add_gridspec(len(names), ATOMS + 2, width_ratios=(1.9, 1, *(ATOMS * [1])))
    for line, name in enumerate(names):
        label = figure.add_subplot(grid[line, 0])
        label.axis("off")
        label.text(0, 0.55, name.replace("..., ", "...,\n    "), weight="bold", fontsize=8)
        label.text(0, 0.48, EXAMPLES[name].words, fontsize=8, va="top")
        found = rows[name]
        graph = figure.add_subplot(grid[line, 1])
        draw_graph(graph, [row for row in found if row["kind"] == "edge"])
        if line == 0:
            graph.set_title("features that\nmay be joined", fontsize=8)
        for number in range(ATOMS):
            axes = figure.add_subplot(grid[line, 2 + number])
            image = np.zeros((SIDE, SIDE))
            for row in found:
                if row["kind"] == "atom" and row["number"] == number:
                    image[row["first"], row["second"]] = row["value"]
            axes.set_rasterization_zorder(DENSE)
            axes.imshow(image, cmap="RdBu_r", vmin=-1.4, vmax=1.4)
            axes.set_xticks(np.arange(SIDE) - 0.5, minor=True)
            axes.set_yticks(np.arange(SIDE) - 0.5, minor=True)
            axes.grid(which="minor", color="0.92", linewidth=0.4)
            axes.tick_params(which="minor", length=0)
            style.plain_image(axes)
            if line == 0:
                axes.set_title(f"atom {number + 1}", fontsize=8)
    figure.suptitle("What a split may look at: red is added, blue subtracted", weight="bold")
    save(figure, Path(pngs) / "projections.png")


def draw_graph(axes, edges):
    """Draw nodes on a grid; the darker an edge, the more often an atom uses both ends."""
    highest = max(max(row["value"] for row in edges), 1e-9)
    axes.set_rasterization_zorder(DENSE)
    for row in edges:
        ends = np.array([divmod(row[end], GRAPH_SIDE) for end in ("first", "second")])
        share = row["value"] / highest
        if share > 0:
            # Edges over several nodes are bent, because others would hide them.
            middle = ends.mean(axis=0) + 0.12 * np.array([1, -1]) * (ends[1] - ends[0])[::-1]
            points = bend(ends[0], middle, ends[1])
            axes.plot(points[:, 1], points[:, 0], color="#d1495b", alpha=0.9 * share, linewidth=0.9)
    nodes = np.array([divmod(i, GRAPH_SIDE) for i in range(GRAPH_SIDE**2)])
    axes.scatter(nodes[:, 1], nodes[:, 0], s=14, color="#2e4057", zorder=DENSE + 1)
    axes.set(xlim=(-0.6, GRAPH_SIDE - 0.4), ylim=(GRAPH_SIDE - 0.4, -0.6), aspect="equal")
    axes.axis("off")


def bend(start, middle, end):
    t = np.linspace(0, 1, 12)[:, np.newaxis]
    return (1 - t) ** 2 * start + 2 * t * (1 - t) * middle + t**2 * end
