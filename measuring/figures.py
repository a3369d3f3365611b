"""Axes, legends and files of all figures; nothing is shown on a screen."""

import re
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

__all__ = ["light", "log_x", "log_y", "plain", "plt", "save", "tidy"]

DOTS = 110  # per inch, of PNG files and of dense layers in SVG files


def log_x(axes, ticks, text, rotation=0):
    """Draw x on a logarithmic scale with these ticks alone, each labelled by `text(tick)`."""
    axes.set_xscale("log")
    axes.set_xticks(ticks, [text(tick) for tick in ticks], rotation=rotation)
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.minorticks_off()


def log_y(axes, dense=False):
    """Draw y on a logarithmic scale; `dense` adds ticks where powers of ten would be too few."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if dense and high < 100 * low:
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(plain))
    axes.yaxis.set_minor_formatter(NullFormatter())


def plain(value, _):
    return f"{value:,.10g}"


def tidy(axes):
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def light(svg):
    """Return an SVG file with hundredths of points for all places, and without indents."""
    svg = re.sub(r"\n *", "\n", svg)
    return re.sub(
        r'(?<= )(?:d|x|y|transform)="[^"]*"',
        lambda part: re.sub(
            r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", part[0]
        ).replace("\n", " "),
        svg,
    )


def save(figure, path):
    """Write a figure as PNG, and beside it as SVG, whose letters stay letters."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # No date or version in the files, and no random names: the same rows give the same bytes.
    facts = {"png": {"Software": None}, "svg": {"Creator": None, "Date": None}}
    with plt.rc_context({"svg.hashsalt": path.stem, "svg.fonttype": "none"}):
        for kind, metadata in facts.items():
            file = path.with_suffix(f".{kind}")
            unfinished = file.with_name(file.name + ".unfinished")
            figure.savefig(unfinished, dpi=DOTS, format=kind, metadata=metadata)
            if kind == "svg":
                unfinished.write_text(light(unfinished.read_text()))
            unfinished.replace(file)
    plt.close(figure)
