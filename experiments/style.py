"""One look for all figures of the experiments."""

import statistics

import numpy as np

from measuring.figures import log_x, plt
from measuring.tables import group, standard_error

# Forests have full lines, and methods that use neighbourhoods have thick ones. Colours also differ
# in lightness, and no two names of one figure share both their line and their mark, so that the
# figures can be read without colour vision. What the text does not speak of is grey.
CLASSIFIERS = {
    # Beyond the paper.
    "forest patch": {"color": "#e38b97", "linewidth": 1.6, "marker": "D", "zorder": 5},
    "forest image": {"color": "#e07a1f", "linewidth": 2.2, "marker": "h", "zorder": 6},
    "forest series": {"color": "#b85c0e", "linewidth": 2.2, "marker": ">", "zorder": 6},
    "forest series-pooled": {"color": "#f2b36b", "linewidth": 1.8, "marker": "P", "zorder": 6},
    "forest auto": {"color": "#8a4b08", "linewidth": 1.4, "linestyle": "--", "marker": "X"},
    "forest wrapping": {"color": "#c9a227", "linewidth": 1.6, "linestyle": "-.", "marker": "p"},
    "boosting": {"color": "#14746f", "linewidth": 2.4, "marker": "s", "zorder": 7},
    "boosting image": {"color": "#14746f", "linewidth": 2.4, "marker": "s", "zorder": 7},
    "boosting image + copies": {
        "color": "#0b3d3a",
        "linewidth": 2.4,
        "linestyle": (0, (5, 1, 1, 1)),
        "marker": "D",
        "zorder": 7,
    },
    "boosting series": {"color": "#0f5b57", "linewidth": 2.4, "marker": "v", "zorder": 7},
    "boosting auto": {
        "color": "#57b8b0",
        "linewidth": 2.0,
        "linestyle": "--",
        "marker": "<",
        "zorder": 8,
    },
    "ridge": {"color": "#3a5ba0", "linewidth": 2.0, "marker": "s", "zorder": 7},
    # The paper's, and other peers.
    "MORF": {"color": "#d1495b", "linewidth": 2.8, "marker": "o", "zorder": 5},
    "MORF (wrapping patches)": {
        "color": "#e58a98",
        "linewidth": 1.8,
        "linestyle": (0, (2, 1)),
        "marker": "o",
        "markerfacecolor": "w",
        "zorder": 4,
    },
    "MORF (short patches)": {
        "color": "#e58a98",
        "linewidth": 1.8,
        "linestyle": (0, (2, 1)),
        "marker": "d",
        "markerfacecolor": "w",
        "zorder": 4,
    },
    "SPORF": {"color": "#00798c", "linewidth": 1.8, "marker": "s", "zorder": 4},
    "RF": {"color": "#edae49", "linewidth": 1.8, "marker": "^", "zorder": 4},
    "RF (scikit-learn)": {"color": "0.62", "linewidth": 1.0, "linestyle": ":", "marker": "^"},
    "XGBoost": {"color": "#2b6a2f", "linewidth": 1.4, "linestyle": "-.", "marker": "D"},
    "logistic regression": {"color": "0.68", "linewidth": 1.2, "linestyle": "--", "marker": "v"},
    "linear SVM": {"color": "0.76", "linewidth": 1.2, "linestyle": "--", "marker": "<"},
    "RBF SVM": {"color": "#7b5ea7", "linewidth": 1.2, "linestyle": "--", "marker": ">"},
    "kNN": {"color": "0.58", "linewidth": 1.2, "linestyle": "--", "marker": "P"},
    "MLP": {"color": "0.48", "linewidth": 1.4, "linestyle": "--", "marker": "X"},
    "HistGradientBoosting": {"color": "#386641", "linewidth": 1.4, "marker": "D"},
    "MiniRocket": {"color": "#343a40", "linewidth": 1.6, "marker": "*"},
    "ConvNet": {"color": "#1d2d44", "linewidth": 2.2, "linestyle": (0, (4, 1)), "marker": "*"},
    # Of EEG.
    "forest eeg": {"color": "#e07a1f", "linewidth": 2.2, "marker": "h"},
    "boosting eeg": {"color": "#14746f", "linewidth": 2.4, "marker": "s"},
    "ridge eeg": {"color": "#d1495b", "linewidth": 2.8, "marker": "o"},
    "sLDA": {"color": "0.68", "marker": "v"},
    "Xdawn + sLDA": {"color": "0.45", "marker": "<"},
    "CSP + LDA": {"color": "0.76", "marker": ">"},
    "tangent space + LR": {"color": "#7b5ea7", "marker": "^"},
    "tangent space + LR, evoked": {"color": "#4a2f7d", "marker": "^"},
    "MDM": {"color": "#9fb8d8", "marker": "d"},
    "MDM, evoked": {"color": "#5b86b8", "marker": "d"},
    "MDM, frequencies told": {"color": "#2d5382", "marker": "d"},
    "TRCA, one band": {"color": "#8fb996", "marker": "P"},
    "TRCA, filter bank": {"color": "#386641", "marker": "P"},
    "EEGNet": {"color": "#1d2d44", "marker": "X"},
}
PUBLISHED = {"color": "#7d1128", "linestyle": ":", "linewidth": 1.4, "marker": "x", "zorder": 6}
FORESTS = ("MORF", "SPORF", "RF")
MARK = ("color", "marker", "markerfacecolor")
WIDEST = 9.5  # inches: on a page of seven, letters of nine points have six and a half
ENTRY = 2.3  # inches of width that an entry of a legend needs
LEAST = 1e-4  # below this, an axis of errors is linear down to zero
SETTINGS = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.markersize": 4,
    "legend.frameon": False,
}
plt.rcParams.update(SETTINGS)


# --- figures --------------------------------------------------------------------------------------


def curve(rows, x, y):
    """Return sorted places, and means and standard errors of y at each."""
    at = {place: [row[y] for row in found] for (place,), found in group(rows, x).items()}
    places = sorted(at)
    means = [statistics.mean(at[place]) for place in places]
    return places, means, [standard_error(at[place]) for place in places]


def draw_curves(axes, rows, x, y, names=tuple(CLASSIFIERS)):
    """Draw a line per classifier, with a band of one standard error where there are repeats."""
    for name in names:
        places, means, errors = curve([row for row in rows if row["classifier"] == name], x, y)
        if not places:
            continue
        axes.plot(places, means, label=name, **CLASSIFIERS[name])
        middle, spread = np.array(means), np.nan_to_num(errors)
        colour = CLASSIFIERS[name]["color"]
        axes.fill_between(
            places, middle - spread, middle + spread, color=colour, alpha=0.15, linewidth=0
        )
    ticks = sorted({row[x] for row in rows})
    log_x(axes, ticks, short, rotation=45 if len(ticks) > 6 else 0)
    axes.grid(alpha=0.25)


def draw_dots(axes, rows, x, y, names=tuple(CLASSIFIERS)):
    """Draw a mark per classifier beside each other, with a bar of one standard error.

    This is for few values of x, between which a line would say more than is known.
    """
    ticks = sorted({row[x] for row in rows})
    present = [name for name in names if any(row["classifier"] == name for row in rows)]
    for place, name in enumerate(present):
        found, means, errors = curve([row for row in rows if row["classifier"] == name], x, y)
        shift = 0.8 * ((place + 0.5) / len(present) - 0.5)
        look = {key: value for key, value in CLASSIFIERS[name].items() if key != "linestyle"}
        axes.errorbar(
            [ticks.index(tick) + shift for tick in found],
            means,
            yerr=np.nan_to_num(errors),
            label=name,
            linestyle="",
            elinewidth=1,
            markersize=6,
            **{key: look[key] for key in MARK if key in look},
        )
    axes.set_xticks(range(len(ticks)), map(short, ticks))
    axes.set_xlim(-0.5, len(ticks) - 0.5)
    for boundary in range(len(ticks) - 1):
        axes.axvline(boundary + 0.5, color="0.85", linewidth=1)
    axes.grid(alpha=0.25, axis="y")


def log_errors(axes, highest=0.6):
    """Draw errors on a logarithmic axis that reaches zero: below LEAST it is linear."""
    axes.set_yscale("symlog", linthresh=LEAST, linscale=0.4)
    ticks = [0, *(tick for tick in (1e-4, 1e-3, 0.01, 0.1, 0.5) if tick <= highest)]
    axes.set_yticks(ticks, [f"{tick:g}" if tick else "0" for tick in ticks])
    axes.set_yticks([], minor=True)
    axes.set_ylim(-LEAST / 8, highest)


def short(number):
    return f"{number / 1000:g}k" if number >= 1000 else f"{number:g}"


def legend(figure, axes):
    """Draw one legend for all panels, below them."""
    entries = {}
    for panel in axes:
        entries |= dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))
    order = [*CLASSIFIERS, *(label for label in entries if label not in CLASSIFIERS)]
    labels = [label for label in order if label in entries]
    columns = min(len(labels), int(figure.get_figwidth() / ENTRY))
    handles = [entries[label] for label in labels]
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def plain_image(axes):
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color("0.7")
