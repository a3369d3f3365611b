"""One look for all figures, and one form for all tables."""

import math
import statistics
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter, NullFormatter

# Forests have full lines and the methods that know of neighbours thick ones; colours and marks
# differ in lightness too, so that the figures can be read without colour vision.
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


# --- numbers --------------------------------------------------------------------------------------


def group(rows, *names):
    """The rows by their values in some columns."""
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def standard_error(values):
    """Of the mean of independent repeats; nan for a single one."""
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def curve(rows, x, y):
    """Sorted places, means and standard errors of y at each."""
    at = {place: [row[y] for row in found] for (place,), found in group(rows, x).items()}
    places = sorted(at)
    means = [statistics.mean(at[place]) for place in places]
    return places, means, [standard_error(at[place]) for place in places]


# --- figures --------------------------------------------------------------------------------------


def draw_curves(axes, rows, x, y, names=tuple(CLASSIFIERS)):
    """A line for each classifier, with a band of one standard error where there are repeats."""
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
    log_x(axes, sorted({row[x] for row in rows}))
    axes.grid(alpha=0.25)


def log_x(axes, ticks):
    axes.set_xscale("log")
    axes.set_xticks(ticks, [short(tick) for tick in ticks], rotation=45 if len(ticks) > 7 else 0)
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.minorticks_off()


def log_y(axes):
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def short(number):
    return f"{number / 1000:g}k" if number >= 1000 else f"{number:g}"


def legend(figure, axes):
    """One legend for all panels, to the right."""
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


def save(figure, path):
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".unfinished")
    # No date or version in the file: the same rows give the same bytes.
    figure.savefig(unfinished, dpi=110, format="png", metadata={"Software": None})
    unfinished.replace(path)
    plt.close(figure)


# --- tables ---------------------------------------------------------------------------------------


def markdown(header, lines):
    table = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(map(str, cells)) + " |" for cells in table) + "\n"


def rate(value):
    """An error rate as the paper writes it: .0276."""
    return f"{value:.4f}".replace("0.", ".", 1) if value < 1 else f"{value:.3f}"


def rate_and_error(values):
    """Mean and standard error of repeats; the mean alone of one."""
    mean = rate(statistics.mean(values))
    return f"{mean} ± {rate(standard_error(values))}" if len(values) > 1 else mean
