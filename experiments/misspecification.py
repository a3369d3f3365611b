"""How much the sizes of the patches matter: simulations A, B and C with other sizes than the best.

The optimum comes from a grid on 2,000 samples (5-fold cross-validation). Each setting is then
scored on 500 other samples by 10-fold stratified cross-validation and compared with the optimum, as
the difference of accuracies in units of the standard deviation of the optimum's folds.
"""

from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold

from experiments import models
from experiments.simulations import SIMULATIONS
from experiments.store import Task, read
from measuring import tables
from measuring.figures import plt, save
from measuring.files import write_whole

STUDY = Path(__file__).stem
# stage -> samples, folds, seed of the data
STAGES = {"grid": (2000, 5, 1000), "folds": (500, 10, 1001)}


def spans(smallest, largest):
    return [(low, high) for low in smallest for high in largest if low <= high]


# Heights and widths of patches: (smallest, largest).
LINE = ((1, 1),)
GRIDS = {
    "A-line": (LINE, spans((1, 2, 3, 4, 5, 6, 8), (3, 4, 5, 6, 8, 10, 12, 16, 24))),
    "B": (
        ((1, 1), (1, 2), (2, 2), (1, 4), (2, 4), (4, 4)),
        [(1, 1), (1, 2), (2, 5), (2, 9), (5, 9), (2, 14), (9, 14), (14, 28)],
    ),
    "C": (LINE, spans((1, 2, 4, 8, 12), (1, 2, 4, 8, 12, 16, 24, 32, 48))),
}
QUICK_GRIDS = {
    "A-line": (LINE, [(1, 3), (3, 12), (8, 24)]),
    "B": (((2, 2), (4, 4)), [(2, 9)]),
    "C": (LINE, [(1, 1), (2, 12), (12, 48)]),
}


def tasks(quick):
    return [
        Task(
            STUDY,
            {
                "data": data,
                "stage": stage,
                "min_rows": rows[0],
                "max_rows": rows[1],
                "min_columns": columns[0],
                "max_columns": columns[1],
            },
            cost=STAGES[stage][0] * STAGES[stage][1] / 2000 * 0.8,
        )
        for data, (heights, widths) in (QUICK_GRIDS if quick else GRIDS).items()
        for stage in STAGES
        for rows in heights
        for columns in widths
    ]


def run(task):
    """Return a row per fold."""
    key = task.key
    simulation = SIMULATIONS[key["data"]]
    samples, folds, seed = STAGES[key["stage"]]
    X, y = simulation.make(samples, random_state=seed)
    shape, sizes = simulation.shape, {}
    for bound in ("min", "max"):
        size = (int(key[f"{bound}_rows"]), int(key[f"{bound}_columns"]))
        sizes[f"model__dictionary__{bound}_size"] = size[-len(shape) :]
    found = []
    for fold, (train, test) in enumerate(
        StratifiedKFold(folds, shuffle=True, random_state=0).split(X, y)
    ):
        model = models.make("MORF", key["data"], shape, 2, len(train), seed=fold, threads=1)
        model.set_params(**sizes).fit(X[train], y[train])
        accuracy = float(np.mean(model.predict(X[test]) == y[test]))
        found.append({"fold": fold, "seed": fold, "data_seed": seed, "accuracy": accuracy})
    return found


# --- figures and tables ---------------------------------------------------------------------------

SETTING = ("min_rows", "max_rows", "min_columns", "max_columns")


def scores(rows, data, stage):
    """Return the accuracies of the folds by setting."""
    rows = [row for row in rows if row["data"] == data and row["stage"] == stage]
    return {
        setting: np.array([row["accuracy"] for row in sorted(found, key=lambda row: row["fold"])])
        for setting, found in tables.group(rows, *SETTING).items()
    }


def optimum(rows, data):
    """Return the best setting of the grid, or None while a setting lacks one of its stages."""
    grid, folds = scores(rows, data, "grid"), scores(rows, data, "folds")
    if grid.keys() != folds.keys():
        return None
    return max(grid, key=lambda setting: grid[setting].mean(), default=None)


def z_scores(accuracies, reference):
    """Return differences from the optimum in units of the spread of its folds."""
    return (accuracies - reference.mean()) / reference.std(ddof=1)


def figures(csvs, pngs):
    rows = read(csvs, STUDY)
    names = [data for data in GRIDS if optimum(rows, data)]
    if not names:
        return
    figure, panels = plt.subplots(
        1, len(names), figsize=(4.6 * len(names), 4.6), layout="constrained", squeeze=False
    )
    lines = []
    for axes, data in zip(panels[0], names, strict=True):
        folds, best = scores(rows, data, "folds"), optimum(rows, data)
        # The folds of B hardly differ and z-scores would say nothing, so it shows accuracy as the
        # paper does.
        plain = data == "B"
        means = {
            setting: (values if plain else z_scores(values, folds[best])).mean()
            for setting, values in folds.items()
        }
        draw_map(axes, means, {best: "-", papers_choice(data): ":"}, plain)
        unit = "accuracy" if plain else "z-score"
        axes.set_title(f"{SIMULATIONS[data].title}\n{unit}", fontsize=9)
        worst = min(folds, key=lambda setting: folds[setting].mean())
        limit = folds[best].mean() - folds[best].std(ddof=1)
        near = sum(values.mean() >= limit for values in folds.values())
        lines.append(
            [
                SIMULATIONS[data].title,
                name(best),
                f"{folds[best].mean():.3f} ± {folds[best].std(ddof=1):.3f}",
                name(worst),
                f"{folds[worst].mean():.3f}",
                f"{near} of {len(folds)}",
            ]
        )
    save(figure, Path(pngs) / "misspecification.png")
    header = ["", "optimum", "accuracy", "worst", "accuracy", "within one deviation"]
    write_whole(Path(csvs) / "misspecification.md", tables.markdown(header, lines))


def papers_choice(data):
    sizes = models.settings("MORF", data)["patch"]
    return tuple(sizes[bound][axis] for axis in (0, 1) for bound in ("min_size", "max_size"))


def draw_map(axes, means, frames, plain):
    """Draw settings as cells: smallest against largest size, or heights against widths."""
    one_axis = all(setting[:2] == (1, 1) for setting in means)

    def place(setting):
        return (setting[2], setting[3]) if one_axis else (setting[:2], setting[2:])

    down = sorted({place(setting)[0] for setting in means})
    across = sorted({place(setting)[1] for setting in means})
    values = np.full((len(down), len(across)), np.nan)
    for setting, mean in means.items():
        values[down.index(place(setting)[0]), across.index(place(setting)[1])] = mean
    low, high = (min(means.values()), 1.0) if plain else (-4.0, 0.0)
    axes.imshow(values, cmap="viridis", vmin=low, vmax=high, aspect="auto")
    for (i, j), value in np.ndenumerate(values):
        if not np.isnan(value):
            text = f"{value:.3f}".lstrip("0") if plain else f"{round(value, 1) + 0.0:.1f}"
            dark = value < (low + high) / 2
            axes.text(j, i, text, ha="center", va="center", fontsize=7, color="w" if dark else "k")
    for setting, line in frames.items():
        if setting in means:
            i, j = down.index(place(setting)[0]), across.index(place(setting)[1])
            frame = {"fill": False, "edgecolor": "#d1495b", "linewidth": 2.5, "linestyle": line}
            axes.add_patch(plt.Rectangle((j - 0.5, i - 0.5), 1, 1, **frame))
    if one_axis:
        axes.set(xlabel="largest width", ylabel="smallest width")
    else:
        axes.set(xlabel="widths", ylabel="heights")
    label = str if one_axis else span
    axes.set_xticks(range(len(across)), map(label, across), rotation=0 if one_axis else 45)
    axes.set_yticks(range(len(down)), map(label, down))
    axes.spines[:].set_visible(False)


def span(pair):
    return f"{pair[0]}-{pair[1]}" if pair[0] != pair[1] else f"{pair[0]}"


def name(setting):
    height, width = span(setting[:2]), span(setting[2:])
    return f"width {width}" if height == "1" else f"height {height}, width {width}"
