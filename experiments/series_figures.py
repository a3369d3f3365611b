"""Figures of the study of time series and EEG, from its rows."""

import math

import numpy as np

from experiments import published_auc, realdata, series_tables, stats, style
from experiments.series_tables import OURS, STAND_INS
from measuring.figures import plt, save

OUR_COLOUR = style.CLASSIFIERS[OURS]["color"]
OTHER_COLOUR, MARK_COLOUR = "#2e4057", "#edae49"
TITLES = {
    "finger": "Finger movement, EEG (stands in for the paper's private movement data)",
    realdata.CONTRAST: "Finger movement, left less right electrodes (the same recording)",
    "ssvep": "SSVEP, EEG, 40 classes: mean AUC of each against the rest",
    "fragility": "Fragility, by subject (the public remains of the surgical outcome data)",
}


def draw(rows, folder):
    """Draw every figure that these rows allow."""
    for figure, name in (
        *((roc_curves(rows, name), f"roc-{name}") for name in STAND_INS),
        (auc_strips(rows), "auc"),
        (critical_difference(rows), "ranks"),
        (effects(rows), "effects"),
        (score_table(rows), "scores"),
    ):
        if figure is not None:
            save(figure, folder / f"series-{name}.png")


def colour(classifier):
    return OUR_COLOUR if classifier == OURS else OTHER_COLOUR


def by_mean(columns):
    """Return the classifiers of one set, the best mean score first."""
    return sorted(columns, key=lambda c: -np.mean(columns[c]))


# --- ROC curves -----------------------------------------------------------------------------------


def roc_curves(rows, name):
    """Draw a panel per classifier: its mean curve with the band of its folds, and MORF's mean."""
    rows = [
        {**row, "curve": np.array(row["roc"].split(), dtype=float)}
        for row in rows
        if row["set"] == name and row["roc"]
    ]
    curves = series_tables.by_fold(rows, "curve").get(name)
    if not curves:
        return None
    areas = series_tables.by_fold(rows, "auc")[name]
    order = by_mean(areas)
    across = 4
    down = math.ceil(len(order) / across)
    figure, panels = plt.subplots(
        down,
        across,
        figsize=(10, 2.5 * down + 0.6),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for panel in panels.flat[len(order) :]:
        panel.set_visible(False)
    for panel, classifier in zip(panels.flat, order, strict=False):
        panel.plot([0, 1], [0, 1], color="gray", linewidth=0.8, linestyle=":")
        if OURS in curves and classifier != OURS:
            line(panel, curves[OURS].mean(axis=0), OUR_COLOUR, 1.0)
        folds = curves[classifier]
        middle, spread = folds.mean(axis=0), folds.std(axis=0, ddof=1) if len(folds) > 1 else 0
        low, high = np.clip(middle - spread, 0, 1), np.clip(middle + spread, 0, 1)
        panel.fill_between(stats.GRID, low, high, color=colour(classifier), alpha=0.2, linewidth=0)
        line(panel, middle, colour(classifier), 2.0)
        panel.set_title(f"{classifier}: {spread_text(areas[classifier])}", fontsize=9)
        panel.set_aspect("equal")
        tidy(panel)
    figure.suptitle(
        f"{TITLES[name]}\nmean ROC curve ± one standard deviation over {len(folds)} folds; AUC; "
        f"thin red: {OURS}",
        fontsize=10,
    )
    figure.supxlabel("false positive rate", fontsize=9)
    figure.supylabel("true positive rate", fontsize=9)
    return figure


def line(panel, curve, shade, width):
    """Draw a mean curve, from the corner where nothing is predicted positive."""
    panel.plot([0, *stats.GRID], [0, *curve], color=shade, linewidth=width)


def spread_text(values):
    mean = f"{np.mean(values):.3f}"
    return f"{mean} ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else mean


# --- AUC strips -----------------------------------------------------------------------------------


def auc_strips(rows):
    """Draw a dot per fold and a line at the median, for the EEG sets."""
    scores = series_tables.by_fold(rows, "auc")
    names = [name for name in TITLES if name in scores]
    if not names:
        return None
    authors = published_auc.areas()  # on 20 x 105 maps that are not public
    figure, panels = plt.subplots(
        len(names), figsize=(9, 3.1 * len(names)), squeeze=False, layout="constrained"
    )
    for panel, name in zip(panels.flat, names, strict=True):
        columns = scores[name]
        order = sorted(columns, key=lambda c: -np.median(columns[c]))
        panel.axhline(0.5, color="gray", linewidth=0.8, linestyle=":")
        for place, classifier in enumerate(order):
            strip(panel, place, columns[classifier], colour(classifier))
            if name == "fragility" and classifier in authors:
                published(panel, place, authors[classifier])
        panel.set_xticks(range(len(order)), order, rotation=25, ha="right", fontsize=8)
        panel.set_title(TITLES[name], fontsize=10)
        panel.set_ylabel("AUC")
        panel.set_xlim(-0.6, len(order) - 0.4)
        tidy(panel)
    style.legend(figure, panels.flat)
    return figure


def strip(panel, place, values, shade):
    # Folds keep their place from column to column, so that pairs can be followed.
    at = place + np.linspace(-0.22, 0.22, len(values)) if len(values) > 1 else [place]
    panel.scatter(at, values, s=16, color=shade, alpha=0.65, linewidths=0)
    middle = np.median(values)
    panel.plot([place - 0.3, place + 0.3], [middle, middle], color="black", linewidth=2)


def published(panel, place, areas):
    label = "published, other data: mean ± standard deviation over folds"
    box = [place + 0.38]
    mean, spread = np.mean(areas), np.std(areas, ddof=1)
    panel.errorbar(box, [mean], [spread], color=MARK_COLOUR, marker="D", markersize=4, label=label)


# --- critical difference diagram ------------------------------------------------------------------


def critical_difference(rows):
    """Draw mean ranks of accuracy on a line; bars join classifiers of which no two differ."""
    sets, classifiers, means = series_tables.complete(series_tables.by_fold(rows, "accuracy"))
    if len(sets) < 2 or len(classifiers) < 3:
        return None
    places = stats.ranks(means)
    order = list(np.argsort(places, kind="stable"))
    bars = stats.cliques(order, stats.pairwise(means))
    half = math.ceil(len(order) / 2)
    top = 0.35 + 0.2 * len(bars)  # of the labels, below the bars
    depth = top + 0.4 * half
    figure, axes = plt.subplots(figsize=(9, 1.4 + 0.62 * depth), layout="constrained")
    low, high = 1, len(order)
    axes.plot([low, high], [0, 0], color="black", linewidth=1.2)
    for rank in range(low, high + 1):
        axes.plot([rank, rank], [0, -0.12], color="black", linewidth=1)
        axes.annotate(str(rank), (rank, -0.2), ha="center", va="bottom", fontsize=9)
    margin = 0.25 + 0.02 * high
    for position, column in enumerate(order):
        best = position < half
        level = top + 0.4 * (position if best else len(order) - 1 - position)
        side = low - margin if best else high + margin
        shade = colour(classifiers[column])
        axes.plot(
            [places[column], places[column], side], [0, level, level], color=shade, linewidth=1.2
        )
        name = f"{classifiers[column]}  {places[column]:.2f}"
        axes.annotate(
            name,
            (side, level),
            (-4 if best else 4, 0),
            textcoords="offset points",
            ha="right" if best else "left",
            va="center",
            fontsize=10,
            color=shade,
            fontweight="bold" if classifiers[column] == OURS else "normal",
        )
    for step, clique in enumerate(bars):
        ends = [places[clique[0]] - 0.05, places[clique[-1]] + 0.05]
        height = 0.2 + 0.2 * step
        axes.plot(ends, [height, height], color="black", linewidth=4, solid_capstyle="butt")
    axes.set_ylim(depth, -0.6)
    axes.set_xlim(low - margin - 0.3 * high, high + margin + 0.3 * high)
    axes.axis("off")
    gap = stats.critical_difference(len(order), len(sets))
    axes.set_title(
        f"Mean rank of accuracy over {len(sets)} data sets (1 is best). Bars join those of which "
        "no two differ:\nWilcoxon's signed-rank test with Holm's correction over all pairs, 5 %. "
        f"Friedman p = {series_tables.p_text(stats.friedman(means))}; Nemenyi's critical "
        f"difference {gap:.2f}",
        fontsize=9,
    )
    return figure


# --- Cohen's d ------------------------------------------------------------------------------------


def effects(rows):
    """Draw Cohen's d of MORF over each other classifier, with 95 % intervals."""
    panels_of = {}
    for name, measure in STAND_INS.items():
        columns = series_tables.by_fold(rows, measure).get(name, {})
        if OURS in columns and len(columns) > 1 and len(columns[OURS]) > 1:
            panels_of[name] = series_tables.over_folds(columns)
    if not panels_of:
        return None
    longest = max(len(lines) for lines in panels_of.values())
    figure, panels = plt.subplots(
        1,
        len(panels_of),
        figsize=(5.2 * len(panels_of), 1.4 + 0.33 * longest),
        squeeze=False,
        layout="constrained",
    )
    for panel, (name, lines) in zip(panels.flat, panels_of.items(), strict=True):
        lines = sorted(lines, key=lambda entry: -np.nan_to_num(entry[4].d, nan=-np.inf))
        panel.axvline(0, color="black", linewidth=1)
        for place, (_, _, adjusted, _, size) in enumerate(lines):
            differs = adjusted <= stats.LEVEL
            panel.plot([size.low, size.high], [place, place], color=OTHER_COLOUR, linewidth=1.6)
            fill = OTHER_COLOUR if differs else "white"
            panel.plot(size.d, place, "o", color=OTHER_COLOUR, markerfacecolor=fill, zorder=3)
        panel.set_yticks(range(len(lines)), [entry[0] for entry in lines], fontsize=9)
        panel.set_ylim(len(lines) - 0.5, -0.5)
        panel.set_xlabel(f"Cohen's d of {series_tables.SHORT[STAND_INS[name]]}, 95 % interval")
        panel.set_title(TITLES[name].replace(" (", "\n("), fontsize=9)
        tidy(panel)
    figure.suptitle(
        f"Right of zero, {OURS} is better. Filled: differs over folds (Wilcoxon, Holm, 5 %)",
        fontsize=10,
    )
    return figure


# --- accuracy and kappa of every set --------------------------------------------------------------


def score_table(rows):
    """Draw sets by classifiers: accuracy above kappa, shaded by the rank within the set."""
    accuracy = series_tables.by_fold(rows, "accuracy")
    kappa = series_tables.by_fold(rows, "kappa")
    order = series_tables.ordered(accuracy)
    if not accuracy:
        return None
    figure, axes = plt.subplots(
        figsize=(1.6 + 0.82 * len(order), 1.5 + 0.42 * len(accuracy)), layout="constrained"
    )
    places = np.full((len(accuracy), len(order)), np.nan)
    for i, (name, columns) in enumerate(accuracy.items()):
        means = np.array([columns[c].mean() if c in columns else np.nan for c in order])
        there = np.isfinite(means)
        places[i, there] = stats.ranks([means[there]])
        for j in np.flatnonzero(there):
            text = f"{means[j]:.3f}\n({kappa[name][order[j]].mean():.2f})"
            weight = "bold" if means[j] == means[there].max() else "normal"
            axes.text(j, i, text, ha="center", va="center", fontsize=8, fontweight=weight)
    axes.imshow(places, cmap="YlGnBu_r", vmin=1 - len(order), vmax=len(order), aspect="auto")
    axes.set_xticks(range(len(order)), order, rotation=25, ha="left", fontsize=9)
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(accuracy)), list(accuracy), fontsize=9)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    if OURS in order:
        axes.get_xticklabels()[order.index(OURS)].set(color=OUR_COLOUR, fontweight="bold")
    axes.set_xlabel("accuracy, (Cohen's kappa); means over folds; darker is better within the set")
    return figure


def tidy(axes):
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
