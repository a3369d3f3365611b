"""Small data and small forests that several test files share."""

import functools

import numpy as np
from sklearn.datasets import load_digits, make_friedman1

from morforest import (
    MorfClassifier,
    MorfRegressor,
    MorfTreeClassifier,
    MorfTreeRegressor,
)
from morforest.dictionary._kernels import triple_kernels
from morforest.dictionary._views import KINDS

N_TREES = 5


@functools.cache
def digits():
    X, y = load_digits(return_X_y=True)
    return X.reshape(-1, 8, 8)[:400].astype(np.uint8), y[:400]


@functools.cache
def friedman(n=250):
    return make_friedman1(n, n_features=8, noise=0.5, random_state=3)


MINIROCKET = [3 * kernel - 1 for kernel in triple_kernels()]  # as a user would give them


def classifier(dictionary=None, **parameters):
    parameters = {"n_estimators": N_TREES, "random_state": 0, **parameters}
    return MorfClassifier(dictionary, **parameters)


def regressor(dictionary=None, **parameters):
    parameters = {"n_estimators": N_TREES, "random_state": 0, **parameters}
    return MorfRegressor(dictionary, **parameters)


def fit_digits(dictionary=None, sample_weight=None, **parameters):
    X, y = digits()
    return classifier(dictionary, **parameters).fit(X, y, sample_weight=sample_weight)


def fit_friedman(dictionary=None, sample_weight=None, **parameters):
    X, y = friedman()
    return regressor(dictionary, **parameters).fit(X, y, sample_weight=sample_weight)


def arrays(model):
    """All arrays of a fitted forest: those of its nodes, their atoms and the columns' atoms."""
    forest = model._forest
    holders = {"": forest, "atoms ": forest.atoms}
    if forest.columns is not None:
        holders |= {"columns ": forest.columns, "columns' atoms ": forest.columns.atoms}
    return {
        prefix + name: value
        for prefix, holder in holders.items()
        for name, value in vars(holder).items()
        if isinstance(value, np.ndarray)
    }


def missing_codes(forest):
    """Where each node sends samples whose values are missing, as a code; 0 in leaves.

    Only this function knows what the package calls that array, which forests may lack.
    """
    codes = forest.side
    if not len(codes):
        return np.zeros(len(forest.next), dtype=np.uint8)
    return codes


GAP_KINDS = ("random", "blocks", "samples", "columns", "trailing", "ends", "mixed")


def with_gaps(X, kind="mixed", rate=0.3, seed=0):
    """Floats of which about the share `rate` is missing: the same for the same arguments.

    Blocks are intervals of one line along the last axis; trailing values are missing from all lines
    of a sample, as in series of unequal length, and `ends` are missing on both sides of them.
    """
    rng = np.random.default_rng(seed)
    X = np.array(X, dtype=X.dtype if X.dtype.kind == "f" else np.float64)
    if kind == "mixed":
        for number, one in enumerate(GAP_KINDS[:-1]):
            X = with_gaps(X, one, rate / 5, seed + 1 + number)
        return X
    length = X.shape[-1]
    for sample in X:
        lines = sample.reshape(-1, length)
        if kind == "random":
            lines[rng.random(lines.shape) < rate] = np.nan
        elif kind == "blocks":
            for line in lines:
                start = rng.integers(0, length)
                line[start : start + round(2 * rate * rng.random() * length)] = np.nan
        elif kind == "samples":
            lines[:] = np.nan if rng.random() < rate else lines
        elif kind in ("trailing", "ends"):
            stop = length - round(2 * rate * rng.random() * length)
            start = rng.integers(0, length - stop + 1) if kind == "ends" else 0
            lines[:, max(stop, 0) :] = np.nan
            lines[:, :start] = np.nan
    if kind == "columns":
        X[:, rng.random(X.shape[1:]) < rate] = np.nan
    return X


# What golden.json calls each array of a fitted forest: name there, attribute in the package.
FROZEN_NODES = {
    "tree offsets": "tree_begin",  # where the nodes of each tree begin, and their number
    "children": "next",  # the left child within the tree, or what the leaf holds
    "thresholds": "threshold",  # as the core compares them
    "node weights": "weight",
    "gains": "gain",
    "leaf sizes": "distribution_size",  # classes per mixed leaf
    "leaf classes": "distribution_class",
    "leaf class weights": "distribution_weight",
    "leaf values": "leaf_value",
}
FROZEN_COLUMNS = {"column means": "mean", "column deviations": "deviation"}


def frozen_layout(layout):
    """The planes of a row as numbers: masks of axes, and the numbers of the views they show."""

    def mask(axes):
        return sum(1 << axis for axis in axes)

    def numbers(view):
        return (KINDS.index(view.kind), view.axis, view.other_axis, view.cosine, view.sine)

    plain = [plane for plane in layout.planes if not plane.pooled]
    pooled = [plane for plane in layout.planes if plane.pooled]
    views = [numbers(plane.view) for plane in plain]
    masks = [
        (mask(plane.prefixed_axes), mask(plane.circular_axes), *numbers(plane.view))
        for plane in pooled
    ]
    return {
        "plane axes": np.array([mask(plane.prefixed_axes) for plane in plain]),
        # Planes that all show raw values are the rule, and left out.
        "plane views": np.ravel(views if any(row[0] for row in views) else []),
        "pooled planes": np.ravel(masks),
    }


def frozen_arrays(model):
    """Return the arrays that define a fitted forest, by their names in golden.json.

    Only this function and what stands above know what the package calls these arrays: when an
    attribute is renamed, change them, and leave golden.json as it is. Empty arrays are left out.
    """

    def nonlinear(atoms, idle):
        # The windows of linear atoms have one position where they are shared, none in nodes.
        window = atoms.window.astype(np.int64).reshape(len(atoms.operation), 2, 2)
        window[atoms.operation == 0, :, 0] = idle
        return {
            "atom operations": atoms.operation,
            "atom biases": atoms.bias,
            "atom windows": window.ravel(),
        }

    forest, atoms = model._forest, model._forest.atoms
    found = {name: getattr(forest, attribute) for name, attribute in FROZEN_NODES.items()}
    found |= {"atom sizes": atoms.count, "atom cells": atoms.cell, "atom weights": atoms.weight}
    found |= nonlinear(atoms, 0) | frozen_layout(atoms.layout)
    codes = missing_codes(forest)
    found["missing sides"] = codes[: len(codes) * bool(codes.any())]
    if forest.columns is not None:
        atoms = forest.columns.atoms
        shared = {name: getattr(forest.columns, a) for name, a in FROZEN_COLUMNS.items()}
        shared |= {
            "atom offsets": atoms.begins(),
            "atom cells": atoms.cell,
            "atom weights": atoms.weight,
        }
        shared |= nonlinear(atoms, 1) | frozen_layout(atoms.layout)
        found |= {f"shared {name}": values for name, values in shared.items()}
    return {name: values for name, values in found.items() if values.size}


def assert_same_forest(a, b):
    ours, theirs = arrays(a), arrays(b)
    assert a._forest.atoms.layout == b._forest.atoms.layout
    assert ours.keys() == theirs.keys()
    for name, values in ours.items():
        assert values.dtype == theirs[name].dtype
        np.testing.assert_array_equal(values, theirs[name], err_msg=name)


def differ(a, b):
    return any(not np.array_equal(v, arrays(b)[name]) for name, v in arrays(a).items())


def roots(forest):
    return forest.tree_begin[:-1].astype(int)


def split_paths(forest, tree=0):
    """Gain of each split of a tree, by its path from the root: a string of L and R."""
    begin = int(forest.tree_begin[tree])
    gains = forest.gains()
    found, open_nodes = {}, [("", begin)]
    while open_nodes:
        path, node = open_nodes.pop()
        if forest.next[node] >= 0:
            found[path] = float(gains[node])
            left = begin + int(forest.next[node])
            open_nodes += [(path + "L", left), (path + "R", left + 1)]
    return found


@functools.cache
def samples():
    """Whole numbers from 0 to 99, and classes by a contrast of two of them."""
    X = np.random.default_rng(0).integers(0, 100, (120, 6))
    return X, (X[:, 0] > X[:, 1]).astype(int)


def walk(model, X):
    """Leaves by hand, in exact arithmetic of Python: atoms and thresholds, node by node."""
    forest = model._forest
    atoms, thresholds = forest.matrix(), forest.thresholds()
    leaves = np.empty((len(X), forest.n_trees), dtype=int)
    for i, row in enumerate(np.asarray(X, dtype=object).reshape(len(X), -1).tolist()):
        for tree in range(forest.n_trees):
            begin = node = int(forest.tree_begin[tree])
            while forest.next[node] >= 0:
                atom = atoms[[node]]
                terms = zip(atom.indices.tolist(), atom.data.tolist(), strict=True)
                value = sum(int(weight) * as_exact(row[cell]) for cell, weight in terms)
                node = begin + int(forest.next[node]) + (value > as_exact(thresholds[node]))
            leaves[i, tree] = node - begin
    return leaves


def as_exact(value):
    """A float as a whole number of steps of 2^-1074."""
    if isinstance(value, int):
        return value << 1074
    numerator, denominator = float(value).as_integer_ratio()
    return numerator * ((1 << 1074) // denominator)


ALL = [MorfClassifier, MorfRegressor, MorfTreeClassifier, MorfTreeRegressor]


def small(estimator, **parameters):
    forest = estimator in (MorfClassifier, MorfRegressor)
    return estimator(random_state=0, **({"n_estimators": 3} if forest else {}), **parameters)
