"""Series beyond the paper: dictionaries by name, boosting, a ridge classifier; and MiniRocket.

All use the split that the sets come with, so the spread over repeats is that of the seed alone.
"""

from pathlib import Path

import numpy as np

from experiments import beyond, models, realdata, series, style
from experiments.simulations import fit_and_test
from experiments.store import Task, read
from measuring import tables
from measuring.figures import plt, save
from measuring.files import write_whole

STUDY = Path(__file__).stem
SETS = tuple(realdata.CHECKSUMS)  # those of the archives: means and claims are over these
EEG = ("finger", realdata.CONTRAST)
REPEATS = 5
QUICK_SETS = ("GunPoint", "ItalyPowerDemand", "BasicMotions")
QUICK_REPEATS = 1
OURS = (
    "forest patch",
    "forest series",
    "forest series-pooled",
    "forest auto",
    "boosting series",
    "ridge",
)
MINIROCKET = "MiniRocket"
PEERS = (beyond.PEER, MINIROCKET)
CHANNEL_AXIS = 1  # X is (n, channels, time)
# Rough CPU-seconds of a task: a constant, and a slope per million training values.
SECONDS = {
    "forest patch": (0.1, 0.5),
    "forest series": (0.2, 5.0),
    "forest series-pooled": (0.2, 4.0),
    "forest auto": (0.3, 6.0),
    "boosting series": (0.3, 5.0),
    "ridge": (0.3, 2.0),
}


def tasks(quick):
    """Return what is to be done. Sets that are not available are named on screen and left out."""
    names = QUICK_SETS if quick else (*SETS, *EEG)
    return [
        Task(
            STUDY,
            {"data": name, "classifier": classifier, "repeat": repeat},
            cost(classifier, data),
        )
        for name, data in realdata.available(names, series.load).items()
        for classifier in (*OURS, *PEERS)
        for repeat in range(QUICK_REPEATS if quick else REPEATS)
    ]


def cost(classifier, data):
    if classifier in PEERS:
        return series.cost(classifier, data)
    fixed, slope = SECONDS[classifier]
    return round(fixed + slope * len(data.folds[0][0]) * data.X[0].size / 1e6, 2)


def run(task):
    data, classifier = series.load(task.key["data"]), task.key["classifier"]
    repeat = int(task.key["repeat"])
    train, test = data.folds[0]
    samples = (data.X[train], data.y[train], data.X[test], data.y[test])
    row = {"n": len(train), "test_samples": len(test)}
    if beyond.ours(classifier):
        return {**row, **beyond.measure(classifier, repeat, *samples, channel_axis=CHANNEL_AXIS)}
    model = models.make(
        classifier,
        data="finger" if data.name == realdata.CONTRAST else data.name,
        shape=data.X.shape[1:],
        classes=len(np.unique(data.y)),
        rows=len(train),
        seed=repeat,
        threads=1,
    )
    if classifier == MINIROCKET:
        series.compile_for(model, data, train, test)
    return {**row, "seed": repeat, **fit_and_test(model, *samples)}


def rows(csvs):
    return beyond.with_loss(read(csvs, STUDY))


def means(found, classifier):
    """Return by repeat the mean error over the archive sets, if all classifiers have finished."""
    cells = tables.group(found, "data", "classifier", "repeat")
    classifiers = {classifier, *(row["classifier"] for row in found)}
    repeats = sorted({row["repeat"] for row in found})
    return {
        repeat: float(np.mean([cells[name, classifier, repeat][0]["error"] for name in SETS]))
        for repeat in repeats
        if all((name, other, repeat) in cells for name in SETS for other in classifiers)
    }


def figures(csvs, pngs):
    found = rows(csvs)
    if not found:
        return
    write_whole(Path(csvs) / "beyond-series.md", table(found))
    save(draw(found), Path(pngs) / "beyond-series.png")


def table(found):
    """Return a table of sets by classifiers: mean error ± standard error, the lowest in bold."""
    cells = {
        key: [row["error"] for row in of_cell]
        for key, of_cell in tables.group(found, "data", "classifier").items()
    }
    names = [name for name in (*OURS, *PEERS) if any(key[1] == name for key in cells)]
    sets = [name for name in (*SETS, *EEG) if any(key[0] == name for key in cells)]
    lines = [line(name, [cells.get((name, other)) for other in names]) for name in sets]
    overall = [list(means(found, name).values()) for name in names]
    if all(overall):
        place = len([name for name in sets if name in SETS])
        lines.insert(place, line(f"*mean of the {len(SETS)} above*", overall))
    return tables.markdown(["", *names], lines)


def line(title, cells):
    best = min(np.mean(values) for values in cells if values)
    texts = [tables.rate_and_error(values) if values else "" for values in cells]
    return [
        title,
        *(
            f"**{text}**" if values and np.mean(values) == best else text
            for text, values in zip(texts, cells, strict=True)
        ),
    ]


def draw(found):
    """Draw a row of points per set: the mean errors of all classifiers."""
    sets = [name for name in (*SETS, *EEG) if any(row["data"] == name for row in found)]
    figure, axes = plt.subplots(figsize=(7.5, 0.45 * len(sets) + 1.5), layout="constrained")
    for i, classifier in enumerate((*OURS, *PEERS)):
        lower = 0.09 * (i - len(OURS) / 2)  # shifted, so that equal ones do not hide each other
        places, errors, spreads = [], [], []
        for place, name in enumerate(sets):
            values = [
                row["error"]
                for row in found
                if (row["data"], row["classifier"]) == (name, classifier)
            ]
            if values:
                places.append(place + lower)
                errors.append(np.mean(values))
                spreads.append(np.nan_to_num(tables.standard_error(values)))
        look = style.CLASSIFIERS[classifier]
        axes.errorbar(
            errors,
            places,
            xerr=spreads,
            label=classifier,
            color=look["color"],
            marker=look["marker"],
            linestyle="",
            markersize=6,
            alpha=0.85,
        )
    axes.set_yticks(range(len(sets)), sets)
    axes.invert_yaxis()
    axes.set(xlabel="test error, mean ± standard error over seeds", xlim=(-0.005, None))
    axes.grid(alpha=0.25)
    style.legend(figure, [axes])
    return figure
