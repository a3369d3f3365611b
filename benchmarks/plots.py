"""Pictures of the sections."""

import statistics

from matplotlib.ticker import FuncFormatter, NullFormatter

from benchmarks.plan import OURS
from measuring.figures import log_x, log_y, plain, plt, save, tidy

# Each library has a colour, each kind a dash, and our lines are thick: they are readable without
# colour vision.
COLOURS = {
    "morforest": "#d1495b",
    "treeple": "#00798c",
    "scikit-learn": "#edae49",
    "ydf": "#2e4057",
    "xgboost": "#6a994e",
    "lightgbm": "#a98bc9",
}
DASHES = {"RF": "--", "ET": ":", "HGB": "-."}


def style(model):
    library, _, kind = model.partition(" ")
    return {
        "color": COLOURS.get(library, "gray"),
        "linestyle": DASHES.get(kind, "-"),
        "linewidth": 2.6 if model in OURS else 1.5,
        "marker": "o",
        "markersize": 5 if model in OURS else 3.5,
        "zorder": 3 if model in OURS else 2,
    }


def curves(rows, x, y):
    """Yield for each model the sorted points (x, median of y)."""
    values = {}
    for row in rows:
        values.setdefault(row["model"], {}).setdefault(position(row, x), []).append(row[y])
    for model, at in values.items():
        places = sorted(at)
        yield model, places, [statistics.median(at[place]) for place in places]


def position(row, x):
    return int(row["patches"].split("x")[-1]) if x == "side" else row[x]


def sweep(x, label):
    """Return a function that plots CPU seconds, and the score below, against a column."""

    def plot(rows, path, title):
        rows = [row for row in rows if row["threads"] == 1]
        figure, (above, below) = plt.subplots(
            2, sharex=True, figsize=(8, 7), height_ratios=(2, 1), layout="constrained"
        )
        for axes, y in ((above, "cpu_seconds"), (below, "score")):
            for model, places, values in curves(rows, x, y):
                axes.plot(places, values, label=model, **style(model))
            log_x(axes, sorted({position(row, x) for row in rows}), tick_text)
            tidy(axes)
        log_y(above, dense=True)
        above.set(ylabel="fit, CPU-seconds, one thread", title=title)
        below.set(ylabel="accuracy", xlabel=label)
        finish(figure, above, path)

    return plot


def throughput(rows, path, title):
    rows = [{**row, "speed": row["batch"] / row["wall_seconds"]} for row in rows]
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    for model, places, values in curves(rows, "batch", "speed"):
        axes.plot(places, values, label=model, **style(model))
    log_x(axes, sorted({row["batch"] for row in rows}), tick_text)
    log_y(axes, dense=True)
    tidy(axes)
    axes.set(xlabel="rows per call", ylabel="rows per second, one thread", title=title)
    finish(figure, axes, path)


def targets(lines, path):
    """Draw bars of how much of each target was reached; lines are (label, share, holds, text)."""
    figure, axes = plt.subplots(figsize=(8, 0.8 + 0.32 * len(lines)), layout="constrained")
    labels, shares, holds, texts = zip(*reversed(lines), strict=True)
    colours = ["#6a994e" if good else "#d1495b" for good in holds]
    axes.barh(labels, [share - 1 for share in shares], left=1, color=colours, height=0.6)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    for place, (share, text) in enumerate(zip(shares, texts, strict=True)):
        outside = {"va": "center", "ha": "left" if share >= 1 else "right", "fontsize": 8}
        shift = (4 if share >= 1 else -4, 0)
        axes.annotate(text, (share, place), shift, textcoords="offset points", **outside)
    low, high = min(*shares, 1), max(*shares, 1)
    axes.set_xlim(low / 3.5, high * 3.5)
    axes.xaxis.set_major_formatter(FuncFormatter(plain))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set(
        xlabel="reached / required (the target holds from 1 on)",
        title="Targets: reached (required)",
    )
    axes.margins(y=0.02)
    tidy(axes)
    finish(figure, None, path)


def tick_text(tick):
    return f"{tick:,}" if tick < 10_000 else f"{tick // 1000}k"


def finish(figure, labelled, path):
    if labelled is not None:
        handles, labels = labelled.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", frameon=False)
    save(figure, path)
