"""Draw partition.png, a picture of docs/explanations.md: python docs/images/partition.py.

One tree per dictionary cuts the plane of two features into polytopes, one per leaf. The picture is
a function of this file: the same trees grow on every machine.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

from morforest import Atoms, Axis, MorfTreeClassifier, SparseOblique

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import Polygon

OUTPUT = Path(__file__).resolve().parent / "partition.png"
SIDE = 3.0  # the picture shows this much to each side of the origin
COLOURS = np.array([[0.82, 0.29, 0.36], [0.0, 0.47, 0.55]])  # of the two classes


def samples(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Two bands at an angle that is no feature's and no sum's, with some overlap."""
    random = np.random.default_rng(4)
    X = random.uniform(-SIDE, SIDE, size=(n, 2))
    across = np.cos(0.35) * X[:, 0] + np.sin(0.35) * X[:, 1] + random.normal(scale=0.2, size=n)
    return X, (np.sin(1.6 * across) > 0).astype(int)


def directions(count: int = 60) -> Atoms:
    """Weighted sums of both features in many directions: an oblique forest."""
    angle = np.pi * np.arange(count) / count
    return Atoms(np.column_stack([np.cos(angle), np.sin(angle)]))


def cut(corners: np.ndarray, a: np.ndarray, b: float) -> np.ndarray:
    """Return the part of a convex polygon in which a @ x <= b."""
    height = corners @ a - b
    kept = []
    for i, corner in enumerate(corners):
        before, now = height[i - 1], height[i]
        if (before <= 0) != (now <= 0):  # the side from the corner before crosses the line
            kept.append(corners[i - 1] + before / (before - now) * (corner - corners[i - 1]))
        if now <= 0:
            kept.append(corner)
    return np.array(kept).reshape(-1, 2)


def draw(axis, dictionary, title: str) -> None:
    """Draw the leaves of one tree as polygons, and the samples on top of them."""
    X, y = samples()
    tree = MorfTreeClassifier(dictionary, max_features=20, min_samples_leaf=5, random_state=0)
    tree.fit(X, y)
    square = SIDE * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    for leaf in np.unique(tree.apply(X)).tolist():
        polytope = tree.polytope(0, leaf)
        polygon = square
        for a, b in zip(polytope.A.toarray(), polytope.b, strict=True):
            polygon = cut(polygon, a, b)
        share = tree.predict_proba(X[polytope.contains(X)][:1])[0]
        fill = 1 - 0.45 * (1 - share @ COLOURS)  # as the class, but pale
        axis.add_patch(Polygon(polygon, facecolor=fill, edgecolor="#333", linewidth=0.7))
    axis.scatter(*X.T, c=COLOURS[y], s=9, edgecolor="white", linewidth=0.3, zorder=2)
    leaves = int(tree.get_n_leaves()[0])
    axis.set_title(f"{title}\n{leaves} leaves")
    axis.set(xlim=(-SIDE, SIDE), ylim=(-SIDE, SIDE), aspect="equal", xticks=[], yticks=[])
    axis.set_xlabel("first feature")
    axis.set_ylabel("second feature")


def main() -> None:
    """Draw the three trees side by side."""
    plt.rcParams.update({"font.size": 10.5, "axes.titlesize": 11})
    figure, axes = plt.subplots(1, 3, figsize=(11, 4.1), layout="constrained")
    draw(axes[0], Axis(), "RF: Axis()")
    draw(axes[1], SparseOblique(), "SPORF: SparseOblique()")
    draw(axes[2], directions(), "oblique: Atoms(...), 60 directions")
    figure.savefig(OUTPUT, dpi=100, metadata={"Software": None})
    print(f"wrote docs/images/{OUTPUT.name}")


if __name__ == "__main__":
    main()
