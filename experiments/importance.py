"""Importance maps for 3 against 5: where the forests look, beside the mean images.

Each repeat draws 100 threes and 100 fives of MNIST anew. A map shows the share of a forest's splits
that use each pixel, which is the paper's measure.
"""

import functools
from pathlib import Path

import numpy as np

from experiments import models, style
from experiments.store import Task, read
from measuring import tables
from measuring.figures import plt, save
from measuring.files import write_whole
from morforest.datasets import load_mnist

STUDY = Path(__file__).stem
DIGITS = (3, 5)
EACH = 100
REPEATS = 5
MAPS = ("RF", "SPORF", "MORF")
MEANS = tuple(f"mean {digit}" for digit in DIGITS)
# A pixel that is this dark on average, of 255, is background.
DARK = 2.55


def tasks(quick):
    images()  # fails before any work if data are missing
    repeats = 1 if quick else REPEATS
    wanted = [(name, 0) for name in MEANS]
    wanted += [(name, repeat) for name in MAPS for repeat in range(repeats)]
    return [Task(STUDY, {"map": name, "repeat": repeat}, 0.5) for name, repeat in wanted]


@functools.cache
def images():
    X, y, _, _ = load_mnist()
    return {digit: X[y == digit] for digit in DIGITS}


def run(task):
    """Return 28 rows, one per row of the map."""
    name, repeat = task.key["map"], int(task.key["repeat"])
    if name in MEANS:
        values = images()[DIGITS[MEANS.index(name)]].mean(axis=0)
    else:
        random = np.random.RandomState(repeat)
        parts = [x[random.permutation(len(x))[:EACH]] for x in images().values()]
        model = models.make(name, "MNIST", (28, 28), 2, 2 * EACH, seed=repeat, threads=1)
        values = model.fit(np.concatenate(parts), np.repeat(DIGITS, EACH)).model_.split_shares_
    return [
        {
            "row": i,
            "seed": repeat if name in MAPS else "",
            **{f"column_{j}": f"{value:.6g}" for j, value in enumerate(line)},
        }
        for i, line in enumerate(values)
    ]


def maps(rows):
    """Return arrays of 28 x 28 by name and repeat."""
    found = {}
    for key, lines in tables.group(rows, "map", "repeat").items():
        lines = sorted(lines, key=lambda row: row["row"])
        found[key] = np.array([[row[f"column_{j}"] for j in range(28)] for row in lines])
    return found


def figures(csvs, pngs):
    found = maps(read(csvs, STUDY))
    if any((name, 0) not in found for name in (*MEANS, *MAPS)):
        return
    three, five = (found[name, 0] for name in MEANS)
    figure, axes = plt.subplots(2, 3, figsize=(9, 6.3), layout="constrained")
    for panel, values, title in zip(
        axes[0], (three, five, np.abs(three - five)), (*MEANS, "difference, absolute"), strict=True
    ):
        panel.imshow(values, cmap="gray_r")
        panel.set_title(title)
        style.plain_image(panel)
    # A patch uses many pixels and a random forest's split uses one, so maps are compared in units
    # of the mean pixel.
    shown = [found[name, 0] / found[name, 0].mean() for name in MAPS]
    highest = max(values.max() for values in shown)
    for panel, values, name in zip(axes[1], shown, MAPS, strict=True):
        picture = panel.imshow(values, cmap="magma", vmin=0, vmax=highest)
        panel.set_title(name)
        style.plain_image(panel)
    figure.colorbar(picture, ax=axes[1], shrink=0.85, label="share of splits, 1 = the mean pixel")
    title = f"{DIGITS[0]} against {DIGITS[1]}; forests of {EACH} images each"
    figure.suptitle(title, weight="bold")
    save(figure, Path(pngs) / "importance.png")
    write_whole(Path(csvs) / "importance.md", table(found))


def table(found):
    """Tell how much of a map falls on the background, and how rough it is."""
    background = np.maximum(*(found[name, 0] for name in MEANS)) < DARK
    lines = []
    for name in MAPS:
        repeats = [values for (other, _), values in found.items() if other == name]
        dark = [values[background].sum() / values.sum() for values in repeats]
        rough = [roughness(values) for values in repeats]
        lines.append([name, *(f"{np.mean(v):.3f} ± {np.std(v):.3f}" for v in (dark, rough))])
    share = f"share on the background ({background.mean():.0%} of the pixels)"
    return tables.markdown(["", share, "roughness"], lines)


def roughness(values):
    """Return the mean difference between neighbouring pixels as a multiple of the mean pixel."""
    steps = [np.abs(np.diff(values, axis=axis)).mean() for axis in (0, 1)]
    return float(np.mean(steps) / values.mean())
