"""Draw docs/images/readme.png: what splits look at, and what a fitted forest says.

One row for images (scikit-learn's digits) and one for series (a simulation of the paper). The
picture is a function of this file: the same forests grow on every machine.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_digits

from morforest import MorfClassifier, Patch
from morforest.datasets import make_impulse

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

OUTPUT = Path(__file__).resolve().parent.parent / "docs" / "images" / "readme.png"
COLOURS = ("#d1495b", "#edae49", "#00798c", "#6a4c93")
N_TRAIN = 1000


def images(axes) -> None:
    digits = load_digits()
    dictionary = Patch(min_size=2, max_size=4)
    forest = MorfClassifier(dictionary, n_estimators=300, random_state=0, n_jobs=2)
    forest.fit(digits.images[:N_TRAIN], digits.target[:N_TRAIN])
    new = digits.images[N_TRAIN:]
    probability = forest.predict_proba(new)
    right = forest.classes_[probability.argmax(axis=1)] == digits.target[N_TRAIN:]
    # A 3 of which the forest is sure, so that there is something to explain.
    shown = int(np.argmax(probability[:, 3] * right))
    explained = forest.attributions(new[[shown]])

    for axis in axes[:2]:
        axis.imshow(new[shown], cmap="gray_r")
    for atom, colour in zip(dictionary.sample((8, 8), 4, random_state=3), COLOURS, strict=True):
        rows, columns = np.nonzero(atom.toarray().reshape(8, 8))
        corner = (columns.min() - 0.42, rows.min() - 0.42)
        size = (np.ptp(columns) + 0.84, np.ptp(rows) + 0.84)
        axes[1].add_patch(Rectangle(corner, *size, fill=False, edgecolor=colour, linewidth=2.5))
    axes[2].imshow(forest.split_shares_, cmap="viridis", vmin=0)
    of_three = explained.values[0, ..., 3]
    largest = np.abs(of_three).max()
    axes[3].imshow(of_three, cmap="RdBu_r", vmin=-largest, vmax=largest)
    axes[0].set_title("a sample")
    axes[1].set_title("what splits look at:\nsums over random patches")
    axes[2].set_title("where the forest looks:\nsplit_shares_")
    axes[3].set_title(f"why it says 3, p = {probability[shown, 3]:.2f}:\nattributions(X)")
    for axis in axes:
        axis.set_xticks([])
        axis.set_yticks([])


def series(axes) -> None:
    X, y = make_impulse(N_TRAIN, random_state=0)
    new, labels = make_impulse(200, random_state=1)
    dictionary = Patch(min_size=2, max_size=20)
    forest = MorfClassifier(dictionary, n_estimators=300, random_state=0, n_jobs=2).fit(X, y)
    probability = forest.predict_proba(new)[:, 1]
    shown = int(np.argmax(probability * (labels == 1)))
    values = forest.attributions(new[[shown]]).values[0, :, 1]
    time = np.arange(X.shape[1])

    for axis in axes[:2]:
        axis.plot(time, new[shown], color="#333", linewidth=1.2)
    low = new[shown].min()
    atoms = dictionary.sample(X.shape[1], 4, random_state=5)
    for i, (atom, colour) in enumerate(zip(atoms, COLOURS, strict=True)):
        where = np.flatnonzero(atom.toarray().ravel())
        axes[1].axvspan(where.min() - 0.5, where.max() + 0.5, color=colour, alpha=0.3, linewidth=0)
        axes[1].plot(where[[0, -1]], [low - 0.5 - 0.35 * i] * 2, color=colour, linewidth=4)
    axes[2].fill_between(time, forest.split_shares_, color="#00798c", step="mid")
    axes[2].set_ylim(0)
    axes[3].bar(time, values, width=1.0, color=np.where(values > 0, "#b2182b", "#2166ac"))
    axes[3].axhline(0, color="#333", linewidth=0.8)
    axes[3].set_xlabel(f"why it says impulse, p = {probability[shown]:.2f}")
    axes[0].set_xlabel("a series with an impulse")
    axes[1].set_xlabel("sums over random intervals")
    axes[2].set_xlabel("where the forest looks")
    for axis in axes:
        axis.set_yticks([])
        axis.set_xticks([])


def main() -> None:
    plt.rcParams.update({"font.size": 10.5, "axes.titlesize": 11})
    figure, axes = plt.subplots(
        2, 4, figsize=(11, 4.9), height_ratios=(1.55, 1), layout="constrained"
    )
    images(axes[0])
    series(axes[1])
    OUTPUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUTPUT, dpi=100, metadata={"Software": None})
    print(f"wrote {OUTPUT.relative_to(OUTPUT.parent.parent.parent)}")


if __name__ == "__main__":
    main()
