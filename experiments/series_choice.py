"""How the pooled atoms of series were chosen: the ridge classifier with several dictionaries.

    python -m experiments.series_choice [--repeats 4]

Errors come from cross-validation on the training parts of the archive sets, and from new splits of
sets that aeon includes. No test part that another table here shows is used.
"""

import argparse
import itertools
from datetime import date
from pathlib import Path

import numpy as np
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments import realdata
from measuring import tables
from measuring.files import write_whole
from measuring.machine import machine, versions
from morforest import AtomRidgeClassifier, Difference, Kernel, Mixture, Raw
from morforest.dictionary._presets import choose_dictionary

RESULT = Path(__file__).parent / "results" / "series-choice.md"
SOLVED = ("BasicMotions", "CBF", "Coffee")  # hardly any error, whatever the atoms
OTHERS = ("OSULeaf", "ACSF1", "JapaneseVowels", "PickupGestureWiimoteZ")
LENGTHS = {"ACSF1": 486, "JapaneseVowels": 25, "PickupGestureWiimoteZ": 150}  # resampled to these
FOLDS = 5
# MiniRocket's kernels: nine cells, three of them with weight 2 and the others with -1.
MINIROCKET = [3 * np.isin(np.arange(9), cells) - 1 for cells in itertools.combinations(range(9), 3)]


def resampled(series, length):
    """Return all series with the same length, by linear interpolation."""
    places = np.linspace(0, 1, length)
    return np.array(
        [[np.interp(places, np.linspace(0, 1, len(c)), c) for c in one] for one in series]
    )


def with_counts(counts, kernels):
    """Return a function that makes pooled atoms with other shares of proportions and kernels."""

    def make(shape):
        found = choose_dictionary("series-pooled", shape, 1).dictionary
        pool = ["proportion"] * counts + ["max", "min"] * (counts < 10)
        parts = [part.set_params(pool=pool) for part in found.dictionaries[:3]]
        weights = list(found.weights)
        if kernels == "rocket":
            where = {"views": [Raw(), Difference(1)], "pool": pool, "window": 1.0}
            parts.append(Kernel(MINIROCKET, dilation="log", **where))
        elif kernels == "competing":
            parts.append(found.dictionaries[3])
        return Mixture(parts, weights=weights[: len(parts)])

    return make


OURS = {
    "no kernels": with_counts(8, None),
    "MiniRocket's kernels, 3 of 5 count": with_counts(3, "rocket"),
    "MiniRocket's kernels, 8 of 10 count": with_counts(8, "rocket"),
    "competing kernels, all count": with_counts(10, "competing"),
    "competing kernels, 8 of 10 count": with_counts(8, "competing"),
}
PEER = "MiniRocket (aeon)"


def splits(repeats):
    """Yield the name of a set, a number, and rows for training and for testing."""
    for name in realdata.CHECKSUMS:
        if name in SOLVED:
            continue
        data = realdata.load(name)
        train = data.folds[0][0]
        X, y = data.X[train], data.y[train]
        for repeat in range(repeats):
            dealt = StratifiedKFold(FOLDS, shuffle=True, random_state=500 + repeat).split(X, y)
            for known, unknown in dealt:
                yield name, repeat, (X[known], y[known], X[unknown], y[unknown])
    from aeon import datasets

    for name in OTHERS:
        X, y = datasets.load_classification(name)
        X = resampled(X, LENGTHS.get(name, X[0].shape[1]))
        _, y = np.unique(y, return_inverse=True)
        dealt = StratifiedShuffleSplit(repeats, train_size=0.4, random_state=0).split(X, y)
        for repeat, (known, unknown) in enumerate(dealt):
            yield name, repeat, (X[known], y[known], X[unknown], y[unknown])


def errors(X, y, X_test, y_test, seed):
    from aeon.transformations.collection.convolution_based import MiniRocket

    for name, make in OURS.items():
        model = AtomRidgeClassifier(make(X.shape[1:]), channel_axis=1, random_state=seed)
        yield name, np.mean(model.fit(X, y).predict(X_test) != y_test)
    peer = make_pipeline(
        MiniRocket(random_state=seed),
        StandardScaler(with_mean=False),
        RidgeClassifierCV(np.logspace(-3, 3, 10)),
    )
    peer.fit(X.astype(np.float32), y)
    yield PEER, np.mean(peer.predict(X_test.astype(np.float32)) != y_test)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=4)
    found = {}
    for name, repeat, parts in splits(parser.parse_args().repeats):
        for model, error in errors(*parts, repeat):
            found.setdefault(name, {}).setdefault(model, []).append(error)
        print(name, repeat, flush=True)
    models = [*OURS, PEER]
    lines = [
        [name, *(f"{np.mean(row[model]):.4f}" for model in models)] for name, row in found.items()
    ]
    means = [np.mean([np.mean(row[model]) for row in found.values()]) for model in models]
    lines.append(["mean", *(f"{mean:.4f}" for mean in means)])
    now = np.array([np.mean(row[models[-2]]) for row in found.values()])
    apart = [np.array([np.mean(row[m]) for row in found.values()]) - now for m in models]
    lines.append(
        [
            "more than the last of ours",
            *(f"{d.mean():+.4f} ± {d.std(ddof=1) / len(d) ** 0.5:.4f}" for d in apart),
        ]
    )
    table = tables.markdown(["error", *models], lines)
    write_whole(RESULT, f"{table}\n{versions()}; {machine()}; {date.today()}\n")
    print(table)


if __name__ == "__main__":
    main()
