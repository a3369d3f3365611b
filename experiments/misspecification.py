"""How much the sizes of the patches matter: simulations A, B and C with other sizes than the best.

The optimum comes from a grid on 2,000 samples (5-fold cross-validation). Each setting is then
scored on 500 other samples by 10-fold stratified cross-validation and compared with the optimum, as
the difference of accuracies in units of the standard deviation of the optimum's folds.

On B nearly all settings are right about everything at these sizes. So B is measured again with few
samples: each fold is trained on in turn, and the others test.
"""

from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold

from experiments import models, style
from experiments.simulations import SIMULATIONS
from experiments.store import Task, read
from measuring import tables
from measuring.figures import plt, save
from measuring.files import write_whole

STUDY = Path(__file__).stem
# stage -> samples, folds, seed of the data
STAGES = {"grid": (2000, 5, 1000), "folds": (500, 10, 1001)}
FEW = "B-few"
# Twenty forests of 40 samples each, and then as many of 20.
FEW_STAGES = {"grid": (800, 20, 1002), "folds": (400, 20, 1003)}


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
GRIDS[FEW] = GRIDS["B"]
QUICK_GRIDS = {
    "A-line": (LINE, [(1, 3), (3, 12), (8, 24)]),
    "B": (((2, 2), (4, 4)), [(2, 9)]),
    "C": (LINE, [(1, 1), (2, 12), (12, 48)]),
}
QUICK_GRIDS[FEW] = QUICK_GRIDS["B"]


def stages(data):
    return FEW_STAGES if data == FEW else STAGES


def trained(data, stage):
    """Return the number of samples that each forest is trained on."""
    samples, folds, _ = stages(data)[stage]
    return samples // folds if data == FEW else samples - samples // folds


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
            cost=trained(data, stage) * stages(data)[stage][1] / 2000 + 1,
        )
        for data, (heights, widths) in (QUICK_GRIDS if quick else GRIDS).items()
        for stage in stages(data)
        for rows in heights
        for columns in widths
    ]


def source(data):
    return data.removesuffix("-few")


def run(task):
    """Return a row per fold."""
    key = task.key
    simulation = SIMULATIONS[source(key["data"])]
    samples, folds, seed = stages(key["data"])[key["stage"]]
    X, y = simulation.make(samples, random_state=seed)
    shape, sizes = simulation.shape, {}
    for bound in ("min", "max"):
        size = (int(key[f"{bound}_rows"]), int(key[f"{bound}_columns"]))
        sizes[f"model__dictionary__{bound}_size"] = size[-len(shape) :]
    found = []
    for fold, (train, test) in enumerate(
        StratifiedKFold(folds, shuffle=True, random_state=0).split(X, y)
    ):
        if key["data"] == FEW:
            train, test = test, train
        model = models.make("MORF", source(key["data"]), shape, 2, len(train), seed=fold, threads=1)
        model.set_params(**sizes).fit(X[train], y[train])
        accuracy = float(np.mean(model.predict(X[test]) == y[test]))
        found.append({"fold": fold, "seed": fold, "data_seed": seed, "accuracy": accuracy})
    return found


# --- figures and tables ---------------------------------------------------------------------------

SETTING = ("min_rows", "max_rows", "min_columns", "max_columns")
TITLES = {
    "A-line": "A: circle that never wraps",
    "B": "B: bars",
    FEW: "B: bars, few samples",
    "C": "C: impulse",
}
DRAWN = ("A-line", FEW, "C")
HIGHEST = 4  # of the z-scores that colours tell apart


def scores(rows, data, stage):
    """Return the accuracies of the folds by setting."""
    rows = [row for row in rows if row["data"] == data and row["stage"] == stage]
    return {
        setting: np.array([row["accuracy"] for row in sorted(found, key=lambda row: row["fold"])])
        for setting, found in tables.group(rows, *SETTING).items()
    }


def best(accuracies):
    """Return the settings with the highest mean: several if they tie."""
    means = {setting: round(values.mean(), 9) for setting, values in accuracies.items()}
    highest = max(means.values(), default=None)
    return [setting for setting, mean in means.items() if mean == highest]


def optimum(rows, data):
    """Return the best settings of the grid, or none while a setting lacks one of its stages."""
    grid, folds = scores(rows, data, "grid"), scores(rows, data, "folds")
    return best(grid) if grid.keys() == folds.keys() else []


def z_scores(accuracies, reference):
    """Return differences from the optimum in units of the spread of its folds."""
    return (accuracies - reference.mean()) / reference.std(ddof=1)


def rank(accuracies, setting):
    """Return the place of a setting by its mean, and the last place of those that tie with it."""
    means = np.round([values.mean() for values in accuracies.values()], 9)
    own = round(accuracies[setting].mean(), 9)
    return int((means > own).sum()) + 1, int((means >= own).sum())


def figures(csvs, pngs):
    rows = read(csvs, STUDY)
    names = [data for data in TITLES if optimum(rows, data)]
    if not names:
        return
    lines = [compare(rows, data) for data in names]
    header = [
        *("", "samples", "optimum of the grid", "its rank at the smaller size"),
        *(
            "accuracy there",
            "above by more than one deviation",
            "within",
            "below",
            "paper's choice",
        ),
        *("best there", "accuracy", "worst there", "accuracy"),
    ]
    # One column per simulation is easier to read than a dozen columns.
    turned = [list(cells) for cells in zip(header, *lines, strict=True)]
    table = tables.markdown(turned[0], turned[1:])
    write_whole(Path(csvs) / "misspecification.md", table)
    drawn = [data for data in DRAWN if data in names]
    if drawn:
        save(draw(rows, drawn), Path(pngs) / "misspecification.png")


def compare(rows, data):
    """Tell where the optimum of the grid lies at the smaller size, and the others beside it."""
    folds, winners = scores(rows, data, "folds"), optimum(rows, data)
    ranks = [place(*rank(folds, setting), len(folds)) for setting in winners[:1]]
    counts = ["", "", ""]
    reference = folds[winners[0]]
    accuracy = f"{reference.mean():.3f} ± {reference.std(ddof=1):.3f}"
    if len(winners) == 1:
        z = [z_scores(values, reference).mean() for values in folds.values()]
        counts = [sum(v > 1 for v in z), sum(abs(v) <= 1 for v in z), sum(v < -1 for v in z)]
        shown = name(winners[0])
    else:  # none of them can be said to be the optimum
        firsts = [rank(folds, setting)[0] for setting in winners]
        ranks = [f"from {min(firsts)} to {max(firsts)} of {len(folds)}"]
        means = [folds[setting].mean() for setting in winners]
        accuracy = f"{min(means):.3f} to {max(means):.3f}"
        top = scores(rows, data, "grid")[winners[0]].mean()
        shown = f"a tie of {len(winners)} at {top:.3f}"
    choice = papers_choice(data)
    chosen = ""
    if choice in folds:
        chosen = f"{name(choice)}: rank {place(*rank(folds, choice), len(folds))}"
    ends = []
    for settings in (best(folds), best({key: -values for key, values in folds.items()})):
        tie = f", and {len(settings) - 1} others" if len(settings) > 1 else ""
        ends += [name(settings[0]) + tie, f"{folds[settings[0]].mean():.3f}"]
    sizes = " / ".join(f"{trained(data, stage):,}" for stage in stages(data))
    return [TITLES[data], sizes, shown, *ranks, accuracy, *counts, chosen, *ends]


def place(first, last, of):
    return f"{first} of {of}" if first == last else f"{first}-{last} of {of}"


def papers_choice(data):
    sizes = models.settings("MORF", source(data))["patch"]
    return tuple(sizes[bound][axis] for axis in (0, 1) for bound in ("min_size", "max_size"))


def draw(rows, names):
    figure, panels = plt.subplots(
        1,
        len(names),
        figsize=(style.WIDEST * len(names) / 3, 3.9),
        layout="constrained",
        squeeze=False,
    )
    for axes, data in zip(panels[0], names, strict=True):
        folds, winners = scores(rows, data, "folds"), optimum(rows, data)
        means = {
            setting: z_scores(values, folds[winners[0]]).mean() for setting, values in folds.items()
        }
        picture = draw_map(axes, means, {winners[0]: "-", papers_choice(data): ":"})
        axes.set_title(TITLES[data], fontsize=9, weight="bold")
    figure.colorbar(
        picture,
        ax=panels,
        extend="both",
        shrink=0.8,
        label="accuracy less that of the grid's optimum,\nin deviations of its folds",
    )
    return figure


def draw_map(axes, means, frames):
    """Draw settings as cells: smallest against largest size, or heights against widths."""
    one_axis = all(setting[:2] == (1, 1) for setting in means)

    def place(setting):
        return (setting[2], setting[3]) if one_axis else (setting[:2], setting[2:])

    down = sorted({place(setting)[0] for setting in means})
    across = sorted({place(setting)[1] for setting in means})
    values = np.full((len(down), len(across)), np.nan)
    for setting, mean in means.items():
        values[down.index(place(setting)[0]), across.index(place(setting)[1])] = mean
    picture = axes.imshow(values, cmap="RdBu", vmin=-HIGHEST, vmax=HIGHEST, aspect="auto")
    for (i, j), value in np.ndenumerate(values):
        if not np.isnan(value):
            dark = abs(value) > 0.65 * HIGHEST
            text = f"{round(value, 1) + 0.0:.1f}"
            axes.text(j, i, text, ha="center", va="center", fontsize=7, color="w" if dark else "k")
    for setting, line in frames.items():
        if setting in means:
            i, j = down.index(place(setting)[0]), across.index(place(setting)[1])
            frame = {"fill": False, "edgecolor": "k", "linewidth": 2.2, "linestyle": line}
            axes.add_patch(plt.Rectangle((j - 0.5, i - 0.5), 1, 1, **frame))
    if one_axis:
        axes.set(xlabel="largest width", ylabel="smallest width")
    else:
        axes.set(xlabel="widths", ylabel="heights")
    label = str if one_axis else span
    axes.set_xticks(range(len(across)), map(label, across), rotation=0 if one_axis else 45)
    axes.set_yticks(range(len(down)), map(label, down))
    axes.spines[:].set_visible(False)
    return picture


def span(pair):
    return f"{pair[0]}-{pair[1]}" if pair[0] != pair[1] else f"{pair[0]}"


def name(setting):
    height, width = span(setting[:2]), span(setting[2:])
    return f"width {width}" if height == "1" else f"height {height}, width {width}"
