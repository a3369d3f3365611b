"""Pictures of five manifolds: where forests look on each, in the samples of the first repeat.

A row holds one map: a value for each electrode, vertex, station, pixel or node, and the edges
between them where the samples or their drawing decide about these.
"""

from pathlib import Path

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.patches import Circle
from scipy.optimize import minimize
from scipy.sparse.csgraph import shortest_path
from sklearn.neighbors import kneighbors_graph

from experiments import manifold_data as data
from experiments import manifolds as study
from experiments import style
from experiments.store import Task, read
from measuring.figures import plt, save
from morforest import GraphFeatures, MorfClassifier, Patch, Similarity

STUDY = Path(__file__).stem
SEED = study.FIRST_SEED
SAMPLE = "sample"
# Of which methods importances are shown, and the titles of their maps.
SHOWN = {
    study.SCALP: {"RF": "RF", study.ALONG: study.ALONG},
    study.SPHERE: {"RF": "RF", "Neighbours": "Neighbours"},
    study.STATIONS: {"RF": "RF", "Neighbours": "Neighbours"},
    study.PIXELS: {
        study.IN_PLACE: "MORF, pixels in place",
        "RF": "RF",
        "Similarity.from_data": "Similarity.from_data",
    },
}
CLASS_SHOWN = {study.STATIONS: 1}  # of digits, a three
MOLECULES_SHOWN = 3
LINE = {"colors": "0.6", "linewidths": 0.6, "zorder": 1, "rasterized": True}
COLOURS = "magma_r"


def tasks(quick):
    study.tasks(quick)  # fails before any work if data are missing
    return [Task(STUDY, {"data": name}, 3 * study.COSTS[name]) for name in study.SETS]


def run(task):
    name = task.key["data"]
    if name == study.MOLECULES:
        return molecule_rows()
    split = study.SETS[name](SEED)[0]
    rows = [row(title, importances(name, method, split)) for method, title in SHOWN[name].items()]
    if name == study.PIXELS:
        order = data.order_of_pixels(SEED)
        learned = Similarity.from_data(split.train[data.PLAIN], random_state=0).matrix.tocoo()
        pairs = np.stack([order[learned.coords[0]], order[learned.coords[1]]], axis=1)
        rows.append(row("edges", pairs[pairs[:, 0] < pairs[:, 1]]))
    if name != study.SCALP:
        first = int(np.flatnonzero(split.y_train == CLASS_SHOWN.get(name, 3))[0])
        rows.append(row(SAMPLE, split.train[data.PLAIN][first]))
    return rows


def row(title, values, more=()):
    """Return numbers as words of one cell."""
    texts = [" ".join(f"{v:.5g}" for v in np.ravel(part)) for part in (values, *more)]
    return {"map": title, "values": " | ".join(texts)}


def numbers(cell):
    """Return the arrays of a cell."""
    return [np.array(part.split(), dtype=float) for part in str(cell).split("|")]


def importances(name, method, split):
    """Return importances in the order of the places, in units of the mean place."""
    model, version = study.fit(name, method, split, SEED)
    values = model.feature_importances_
    if name == study.SCALP:
        values = values.sum(axis=1)  # over time
    if name == study.PIXELS and version == data.PLAIN:
        values = in_place(values)
    return values / values.mean()


def in_place(values):
    """Bring the pixels of a shuffled image back to where they were."""
    image = np.empty(784)
    image[data.order_of_pixels(SEED)] = np.ravel(values)
    return image


def molecule_rows():
    """Return maps of molecules that the forest has not seen: places, edges, attributions.

    They are the largest mutagenic ones of the first fold that the forest recognises.
    """
    graphs, y = data.molecules()
    train, test = data.molecule_folds(SEED)[0]
    features = GraphFeatures().fit([graphs[i] for i in train])
    forest = MorfClassifier(
        Patch(contiguous=(True, False, False)),
        n_estimators=study.TREES,
        n_jobs=1,
        random_state=SEED,
    ).fit(features.transform([graphs[i] for i in train]), y[train])
    tables = features.transform([graphs[i] for i in test])
    found = [i for i in np.flatnonzero(y[test]) if forest.predict(tables[i : i + 1])[0] == 1]
    found.sort(key=lambda i: -len(graphs[test[i]][1]))
    rows = []
    for i in found[:MOLECULES_SHOWN]:
        adjacency, labels = graphs[test[i]]
        values = forest.attributions(tables[i : i + 1])[0][0][..., 1]
        nodes = features.node_values(graphs[test[i]], values)
        elements = [data.ELEMENTS.index(label) for label in labels]
        pairs = np.stack(adjacency.nonzero(), axis=1)
        pairs = pairs[pairs[:, 0] < pairs[:, 1]]
        rows.append(row(f"molecule {test[i]}", nodes, (elements, pairs, layout(adjacency))))
    return rows


def layout(adjacency):
    """Return places whose distances are about the numbers of bonds in between.

    Relative errors count: near nodes are as important as those far apart.
    """
    bonds = shortest_path(adjacency, unweighted=True)
    np.fill_diagonal(bonds, 1)

    def stress(flat):
        steps = flat.reshape(-1, 1, 2) - flat.reshape(1, -1, 2)
        distances = np.sqrt((steps**2).sum(axis=2)) + np.eye(len(bonds))
        wrong = distances / bonds - 1
        slope = 4 * (wrong / bonds / distances)[..., np.newaxis] * steps
        return (wrong**2).sum(), slope.sum(axis=1).ravel()

    random = np.random.default_rng(0)
    starts = random.normal(scale=3, size=(20, 2 * len(bonds)))
    found = [minimize(stress, start, jac=True, method="L-BFGS-B") for start in starts]
    places = min(found, key=lambda result: result.fun).x.reshape(-1, 2)
    return places @ np.linalg.svd(places - places.mean(axis=0))[2].T  # the longer side lies


# --- pictures -------------------------------------------------------------------------------------


def figures(csvs, pngs):
    maps = {name: {} for name in study.SETS}
    for found in read(csvs, STUDY):
        maps[found["data"]][found["map"]] = numbers(found["values"])
    for name, draw in DRAWN.items():
        if maps[name]:
            save(draw(maps[name]), Path(pngs) / f"manifold-{name}.png")


def dots(axes, places, values, highest, size, **look):
    look = {"edgecolors": "0.4", "linewidths": 0.3, "zorder": 3, **look}
    return axes.scatter(*places.T, c=values, s=size, cmap=COLOURS, vmin=0, vmax=highest, **look)


def lines(axes, places, pairs, **look):
    axes.add_collection(LineCollection(places[pairs], **{**LINE, **look}))


def near(places, k=8):
    """Return the two ends of each edge between a place and its nearest ones."""
    graph = kneighbors_graph(places, k)
    ends = np.stack(graph.maximum(graph.T).nonzero(), axis=1)
    return ends[ends[:, 0] < ends[:, 1]]


def plain(axes, title):
    axes.set(aspect="equal", xticks=[], yticks=[], title=title)
    axes.spines[:].set_visible(False)


def bar(figure, picture, axes):
    figure.colorbar(picture, ax=axes, shrink=0.75, label="importance, 1 = the mean place")


def shown(name, maps):
    """Return titles and importances."""
    return {title: maps[title][0] for title in SHOWN[name].values() if title in maps}


def scalp(maps):
    seen_from_above = flat_head(data.electrodes())
    pairs = near(data.electrodes(), study.NEAR)
    found = shown(study.SCALP, maps)
    figure, axes = plt.subplots(1, 1 + len(found), figsize=(9.5, 3.4), layout="constrained")
    highest = max(values.max() for values in found.values())
    for panel, title in zip(axes, ("electrodes and edges", *found), strict=True):
        panel.add_patch(Circle((0, 0), 1.08, fill=False, color="0.5"))
        panel.plot([-0.12, 0, 0.12], [1.075, 1.22, 1.075], color="0.5", linewidth=1)
        lines(panel, seen_from_above, pairs)
        plain(panel, title)
        panel.set(xlim=(-1.25, 1.25), ylim=(-1.2, 1.3))
    axes[0].scatter(*seen_from_above.T, s=250, color="white", edgecolors="0.4", zorder=3)
    for name, (x, y) in zip(data.ELECTRODES, seen_from_above, strict=True):
        axes[0].text(x, y, name, size=6.5, ha="center", va="center", zorder=4)
    for panel, values in zip(axes[1:], found.values(), strict=True):
        picture = dots(panel, seen_from_above, values, highest, 130)
    bar(figure, picture, axes[1:])
    return figure


def flat_head(places):
    """Return places seen from above, at their true distance from the vertex; 1 is the rim."""
    angle = np.arccos(places[:, 2])
    return (
        places[:, :2] / np.maximum(np.sin(angle), 1e-9)[:, np.newaxis] * angle[:, None] * 2 / np.pi
    )


def sphere(maps):
    found = shown(study.SPHERE, maps)
    places = data.vertices()
    pairs = near(places)
    # Seen from where the digits are: 45 degrees north.
    east, north = np.array([0, 1, 0]), np.array([-1, 0, 1]) / np.sqrt(2)
    front = places @ (np.array([1, 0, 1]) / np.sqrt(2)) > 0.1
    seen = np.stack([places @ east, places @ north], axis=1)
    figure, axes = plt.subplots(1, 1 + len(found), figsize=(9.5, 3.3), layout="constrained")
    highest = max(values.max() for values in found.values())
    for panel, title in zip(axes, ("a digit on the vertices", *found), strict=True):
        panel.add_patch(Circle((0, 0), 1.0, fill=False, color="0.5"))
        plain(panel, title)
        panel.set(xlim=(-1.03, 1.03), ylim=(-1.03, 1.03))
    both = front[pairs].all(axis=1)
    lines(axes[0], seen, pairs[both], linewidths=0.3, colors="0.8")
    axes[0].scatter(
        *seen[front].T,
        c=maps[SAMPLE][0][front],
        s=12,
        cmap="gray_r",
        edgecolors="0.6",
        linewidths=0.2,
        zorder=3,
        clip_on=False,
    )
    for panel, values in zip(axes[1:], found.values(), strict=True):
        # A thousand places in each panel: without edges the file is light.
        picture = dots(
            panel, seen[front], values[front], highest, 14, edgecolors="none", clip_on=False
        )
    bar(figure, picture, axes[1:])
    return figure


def stations(maps):
    found = shown(study.STATIONS, maps)
    places = data.stations()
    pairs = near(places)
    figure, axes = plt.subplots(1, 1 + len(found), figsize=(9.5, 3.2), layout="constrained")
    highest = max(values.max() for values in found.values())
    for panel, title in zip(axes, ("a day at the stations", *found), strict=True):
        lines(panel, places, pairs, linewidths=0.4)
        x, y, radius = data.CATCHMENT
        panel.add_patch(Circle((x, y), radius, color="#cfe3f5", zorder=0))
        plain(panel, title)
    day = maps[SAMPLE][0]
    limit = np.abs(day).max()
    picture = axes[0].scatter(
        *places.T,
        c=day,
        s=26,
        cmap="PuOr",
        vmin=-limit,
        vmax=limit,
        edgecolors="0.4",
        linewidths=0.3,
        zorder=3,
    )
    figure.colorbar(picture, ax=axes[0], shrink=0.75, label="measured")
    for panel, values in zip(axes[1:], found.values(), strict=True):
        picture = dots(panel, places, values, highest, 26)
    bar(figure, picture, axes[1:])
    return figure


def molecules(maps):
    figure, axes = plt.subplots(1, len(maps), figsize=(9.5, 3.6), layout="constrained")
    limit = max(np.abs(parts[0]).max() for parts in maps.values())
    for panel, (title, (values, elements, pairs, places)) in zip(
        np.atleast_1d(axes), maps.items(), strict=True
    ):
        places = places.reshape(-1, 2)
        lines(panel, places, pairs.reshape(-1, 2).astype(int), linewidths=1.2)
        picture = panel.scatter(
            *places.T,
            c=values,
            s=120,
            cmap="PuOr_r",
            vmin=-limit,
            vmax=limit,
            edgecolors="0.4",
            linewidths=0.5,
            zorder=3,
        )
        for element, value, (x, y) in zip(elements, values, places, strict=True):
            colour = "white" if abs(value) > 0.6 * limit else "black"
            text = data.ELEMENTS[int(element)]
            panel.text(x, y, text, size=7, ha="center", va="center", zorder=4, color=colour)
        plain(panel, title)
        panel.set_adjustable("datalim")
        panel.margins(0.12)
    label = "attribution: + speaks for mutagenic"
    figure.colorbar(picture, ax=axes, shrink=0.75, label=label)
    return figure


def pixels(maps):
    found = shown(study.PIXELS, maps)
    figure, axes = plt.subplots(2, 3, figsize=(9.5, 6.2), layout="constrained")
    image = maps[SAMPLE][0]
    both = {"what the forest sees": image, "the same, put back": in_place(image)}
    for panel, (title, values) in zip(axes[0], both.items(), strict=False):
        panel.imshow(values.reshape(28, 28), cmap="gray_r")
        panel.set_title(title)
        style.plain_image(panel)
    pairs = maps["edges"][0].astype(int).reshape(-1, 2)
    places = np.stack([np.arange(784) % 28, np.arange(784) // 28], axis=1)
    lines(axes[0, 2], places, pairs, linewidths=0.5, colors="#3a5ba0")
    axes[0, 2].set(xlim=(-0.5, 27.5), ylim=(27.5, -0.5), aspect="equal")
    axes[0, 2].set_title("edges that were learned, put back")
    style.plain_image(axes[0, 2])
    highest = max(values.max() for values in found.values())
    for panel, (title, values) in zip(axes[1], found.items(), strict=True):
        picture = panel.imshow(values.reshape(28, 28), cmap=COLOURS, vmin=0, vmax=highest)
        panel.set_title(title)
        style.plain_image(panel)
    bar(figure, picture, axes[1])
    return figure


DRAWN = {
    study.SCALP: scalp,
    study.SPHERE: sphere,
    study.STATIONS: stations,
    study.MOLECULES: molecules,
    study.PIXELS: pixels,
}
