"""Is predict_std the standard deviation of predictions over training sets?

Forests are fitted to many training sets from one source. The variance of their predictions at fixed
points is compared with the mean of the variances that predict_std estimates: by the jackknife after
bootstrap, its default, and by the infinitesimal jackknife.
"""

import warnings
from pathlib import Path

import numpy as np

from experiments.coverage import EQUAL, make
from experiments.store import Task, read
from measuring import tables
from measuring.files import write_whole

STUDY = Path(__file__).stem
POINTS = 50
FIRST_SEED = 40_000  # far from those of the other studies
# Training samples, share of them per tree (1 is a bootstrap sample), samples per leaf, trees.
SETTINGS = (
    (100, 1.0, 1, 200),
    (100, 1.0, 1, 1000),
    (100, 1.0, 5, 1000),
    (100, 0.2, 1, 200),
    (100, 0.2, 1, 1000),
    (1000, 1.0, 1, 1000),
    (1000, 0.2, 1, 1000),
)
REPEATS = {100: 60, 1000: 30}
QUICK_REPEATS = 4


def tasks(quick):
    return [
        Task(
            STUDY,
            {"n": n, "share": share, "leaf": leaf, "trees": trees, "repeats": repeats},
            round(repeats * trees * n * 2e-6, 2),
        )
        for n, share, leaf, trees in SETTINGS
        if not quick or n < 1000
        for repeats in [QUICK_REPEATS if quick else REPEATS[n]]
    ]


def run(task):
    from morforest import Axis, MorfRegressor

    n, repeats = int(task.key["n"]), int(task.key["repeats"])
    points, _ = make(EQUAL, POINTS, FIRST_SEED)
    predicted, jackknife, infinitesimal, negative = [], [], [], []
    for seed in range(FIRST_SEED + 1, FIRST_SEED + 1 + repeats):
        X, y = make(EQUAL, n, seed)
        model = MorfRegressor(
            Axis(),
            n_estimators=int(task.key["trees"]),
            min_samples_leaf=int(task.key["leaf"]),
            max_samples=float(task.key["share"]),
            bootstrap=True,
            keep_samples=True,
            random_state=seed,
        ).fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            variance = model.predict_std(points) ** 2
            other = model.predict_std(points, method="infinitesimal") ** 2
        of_trees = tree_predictions(model, points)
        noise = of_trees.var(axis=1, ddof=1) / of_trees.shape[1]
        predicted.append(model.predict(points))
        jackknife.append(variance)
        infinitesimal.append(other)
        negative.append(np.mean(variance <= noise * (1 + 1e-9)))
    return {
        "variance": float(np.var(predicted, axis=0, ddof=1).mean()),
        "jackknife": float(np.mean(jackknife)),
        "infinitesimal": float(np.mean(infinitesimal)),
        "spread": float(np.std(jackknife, axis=0).mean() / np.mean(jackknife)),
        "negative": float(np.mean(negative)),
    }


def tree_predictions(model, X):
    """Return what each tree predicts (n, trees)."""
    forest = model._forest
    node = model.apply(X) + forest.tree_begin.astype(np.int64)[:-1]
    return forest.leaf_value[-1 - forest.next[node].astype(np.int64)]


def figures(csvs, pngs):
    rows = read(csvs, STUDY)
    if not rows:
        return
    header = ["n", "samples per tree", "samples per leaf", "trees"]
    header += ["standard deviation", "jackknife / it", "infinitesimal jackknife / it"]
    header += ["negative before", "spread of the variances"]
    lines = []
    for row in rows:
        bags = "bootstrap" if row["share"] == 1 else f"{row['share']:.0%}"
        true = row["variance"]
        lines.append(
            [
                f"{row['n']:,}",
                bags,
                row["leaf"],
                f"{row['trees']:,}",
                f"{np.sqrt(true):.3f}",
                *(f"{np.sqrt(row[name] / true):.2f}" for name in ("jackknife", "infinitesimal")),
                f"{row['negative']:.0%}",
                f"{row['spread']:.0%}",
            ]
        )
    write_whole(Path(csvs) / "deviations.md", tables.markdown(header, lines))
