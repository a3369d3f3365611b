"""One look for all figures of the experiments."""

import statistics

import numpy as np

from measuring.figures import log_x, plt
from measuring.tables import group, standard_error

# Forests have full lines, and methods that use neighbourhoods have thick ones. Colours also differ
# in lightness, so that the figures can be read without colour vision.
CLASSIFIERS = {
    # Beyond the paper.
    "forest patch": {"color": "#e38b97", "linewidth": 1.6, "marker": "o", "zorder": 5},
    "forest image": {"color": "#e07a1f", "linewidth": 2.2, "marker": "h", "zorder": 6},
    "forest series": {"color": "#e07a1f", "linewidth": 2.2, "marker": "h", "zorder": 6},
    "forest series-pooled": {"color": "#f2b36b", "linewidth": 1.8, "marker": "p", "zorder": 6},
    "forest auto": {"color": "#8a4b08", "linewidth": 1.4, "linestyle": "--", "marker": "H"},
    "forest wrapping": {"color": "#c9a227", "linewidth": 1.6, "linestyle": "-.", "marker": "o"},
    "boosting": {"color": "#14746f", "linewidth": 2.4, "marker": "s", "zorder": 7},
    "boosting image": {"color": "#14746f", "linewidth": 2.4, "marker": "s", "zorder": 7},
    "boosting image + copies": {"color": "#0b3d3a", "linewidth": 2.4, "marker": "D", "zorder": 7},
    "boosting series": {"color": "#14746f", "linewidth": 2.4, "marker": "s", "zorder": 7},
    "boosting auto": {"color": "#14746f", "linewidth": 2.0, "marker": "s", "zorder": 7},
    "ridge": {"color": "#3a5ba0", "linewidth": 2.0, "marker": "X", "zorder": 7},
    # The paper's, and other peers.
    "MORF": {"color": "#d1495b", "linewidth": 2.8, "marker": "o", "zorder": 5},
    "MORF (wrapping patches)": {"color": "#f0a3ae", "linewidth": 2.2, "marker": "o", "zorder": 4},
    "MORF (short patches)": {
        "color": "#f0a3ae",
        "linewidth": 2.2,
        "marker": "d",
        "zorder": 4,
    },
    "SPORF": {"color": "#00798c", "linewidth": 1.8, "marker": "s", "zorder": 4},
    "RF": {"color": "#edae49", "linewidth": 1.8, "marker": "^", "zorder": 4},
    "RF (scikit-learn)": {"color": "#b07d1c", "linewidth": 1.2, "linestyle": ":", "marker": "^"},
    "XGBoost": {"color": "#6a994e", "linewidth": 1.4, "linestyle": "-.", "marker": "D"},
    "logistic regression": {"color": "#a98bc9", "linewidth": 1.2, "linestyle": "--", "marker": "v"},
    "linear SVM": {"color": "#c77dba", "linewidth": 1.2, "linestyle": "--", "marker": "<"},
    "RBF SVM": {"color": "#7b5ea7", "linewidth": 1.2, "linestyle": "--", "marker": ">"},
    "kNN": {"color": "#8d99ae", "linewidth": 1.2, "linestyle": "--", "marker": "P"},
    "MLP": {"color": "#5c6b73", "linewidth": 1.4, "linestyle": "--", "marker": "X"},
    "HistGradientBoosting": {"color": "#386641", "linewidth": 1.4, "marker": "D"},
    "MiniRocket": {"color": "#343a40", "linewidth": 1.6, "marker": "*"},
    "ConvNet": {"color": "#1d2d44", "linewidth": 2.2, "linestyle": (0, (4, 1)), "marker": "*"},
}
PUBLISHED = {"color": "#d1495b", "linestyle": ":", "linewidth": 1.4, "marker": "x", "zorder": 6}
FORESTS = ("MORF", "SPORF", "RF")
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
    log_x(axes, ticks, short, rotation=45 if len(ticks) > 7 else 0)
    axes.grid(alpha=0.25)


def short(number):
    return f"{number / 1000:g}k" if number >= 1000 else f"{number:g}"


def legend(figure, axes):
    """Draw one legend for all panels, to the right."""
    entries = {}
    for panel in axes:
        entries |= dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))
    order = [*CLASSIFIERS, *(label for label in entries if label not in CLASSIFIERS)]
    labels = [label for label in order if label in entries]
    figure.legend([entries[label] for label in labels], labels, loc="outside right upper")


def plain_image(axes):
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color("0.7")
