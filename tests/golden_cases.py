"""The models whose arrays golden.json freezes, and the samples that they are fitted to."""

import functools

import numpy as np
from common import (
    MINIROCKET,
)
from sklearn.base import clone
from sklearn.datasets import load_digits

from morforest import (
    Atoms,
    Axis,
    Difference,
    Filter,
    Gradient,
    Graph,
    Haar,
    ImageCopies,
    Kernel,
    Magnitude,
    Mixture,
    MorfBoostingClassifier,
    MorfBoostingRegressor,
    MorfClassifier,
    MorfRegressor,
    Neighbours,
    Pair,
    Patch,
    Product,
    Raw,
    SeriesCopies,
    SharedAtoms,
    Similarity,
    SparseOblique,
    Square,
    Subset,
    Variance,
    White,
    consistent,
)
from morforest.dictionary._tabular import GivenColumns


def whole_numbers(n, high, seed=0):
    """Pseudo-random integers from 0 to high - 1, by integer arithmetic alone."""
    state = np.arange(1 + seed * n, 1 + (seed + 1) * n, dtype=np.uint64)
    for _ in range(3):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        state ^= state >> np.uint64(29)
    return (state >> np.uint64(33)).astype(np.int64) % high


@functools.cache
def digits(n=300):
    X, y = load_digits(return_X_y=True)
    return X[:n].reshape(-1, 8, 8).astype(np.uint8), y[:n]


@functools.cache
def table(n=300):
    """Floats with a class and a positive number that depend on them."""
    X = whole_numbers(n * 6, 4001).reshape(n, 6) / 1000 - 2
    score = X[:, 0] * 2 + X[:, 1] - X[:, 2] + whole_numbers(n, 100, 1) / 50
    return X, (score > 1).astype(int), score - score.min() + 0.5


@functools.cache
def images(n=120):
    """Samples of 28 by 28 whole numbers, with the brighter half as class."""
    X = whole_numbers(n * 784, 256).reshape(n, 28, 28)
    y = whole_numbers(n, 2, 5)
    X[y == 1, 5:12, 8:20] //= 2
    return X.astype(np.uint8), y


def with_holes(X, one_in=5, seed=11):
    """Floats without one in so many values, and beyond the ends of some samples without any."""
    X = X.astype(float)
    X[whole_numbers(X.size, one_in, seed).reshape(X.shape) == 0] = np.nan
    length = X.shape[-1]
    for sample, missing in zip(X, whole_numbers(len(X), length, seed + 1), strict=True):
        sample[..., length - max(0, missing - length // 2) :] = np.nan
    X[5::50] = np.nan  # and of some, nothing is there
    return X


def classifier(dictionary=None, **parameters):
    return MorfClassifier(dictionary, **{"n_estimators": 6, "random_state": 0, **parameters})


def regressor(dictionary=None, **parameters):
    return MorfRegressor(dictionary, **{"n_estimators": 6, "random_state": 0, **parameters})


HAAR = [[1, 1, -1, -1, 0, 0], [1, -1, 0, 0, 0, 0], [0, 0, 1, 1, -1, -1], [0, 0, 0, 0, 1, 2]]

DICTIONARIES = {
    "axis": Axis(),
    "sparse": SparseOblique(2.5),
    "dense": SparseOblique(density=0.1),
    "patch zero": Patch((1, 2), (3, 4)),
    "patch inside": Patch(2, 4, boundary="inside"),
    "patch wrap": Patch(2, (4, 5), boundary="wrap"),
    "patch loose": Patch(1, 3, contiguous=(False, True)),
    "patch fractions": Patch(0.25, 0.5, boundary=("zero", "wrap"), contiguous=False),
    "mixture": Mixture([Patch(max_size=3), Axis(), SparseOblique()], weights=[0.6, 0.3, 0.1]),
}
IMAGE_VIEWS = [Raw(), Magnitude(), Gradient(8)]
BEYOND = {
    "patch log": Patch(1, 6, size_distribution="log"),
    "signs": Patch(1, 4, weights="sign"),
    "uniform weights": Patch(1, 4, weights="uniform", boundary="wrap"),
    "normal weights": Patch(1, 4, weights="gaussian", contiguous=(False, True)),
    "weighted waves": Patch(3, 5, weights="gabor"),
    "haar": Haar(),
    "pair": Pair(1, 4, reach=3),
    "gaussian": Kernel("gaussian"),
    "gabor": Kernel("gabor", 3, 4),
    "sign": Kernel("sign", 2, 3, dilation="log"),
    "own kernels": Kernel([np.array([1, -2, 1]), np.array([[1, 2], [0, -3]])], dilation=2),
    "magnitude": Patch(1, 3, views=Magnitude()),
    "white": Patch(1, 4, views=[Raw(), White(axis=0)]),
    "products": Patch(1, (1, 5), boundary="inside", views=Product(White(axis=0), bands=2)),
    "filters": Mixture(
        [
            Patch(2, 4, views=Filter(np.eye(8) - 1 / 8, axis=1)),
            Variance(2, 5, views=[White(0.5, axis=1), Raw()]),
        ]
    ),
    "image": Mixture([Patch(2, 5, views=IMAGE_VIEWS), Pair(1, 5, views=IMAGE_VIEWS), Axis()]),
}


def grid(side):
    """Which pixels of a square image are next to each other."""
    step = np.eye(side, k=1) + np.eye(side, k=-1)
    return np.kron(step, np.eye(side)) + np.kron(np.eye(side), step)


PIXELS = [[row, column] for row in range(8) for column in range(8)]
WHOLE = np.abs(np.subtract.outer(np.arange(64), np.arange(64)))
RELATED = {
    "graph": Graph(grid(8)),
    "walk": Graph(grid(8), 2, 9, method="walk", weights="sign", size_distribution="log"),
    "hops": Graph(grid(8), hops=(1, 3), max_size=12, weights="gaussian"),
    "neighbours": Neighbours(PIXELS, k=4, min_size=3, max_size=5, size_distribution=[1, 2, 1]),
    "radius": Neighbours(PIXELS, radius=1.5, hops=2, views=[Raw(), Square()]),
    "similarity": Similarity(np.where(WHOLE < 9, 9 - WHOLE, 0), max_size=8, weights="uniform"),
}

ROWS = Patch((None, 1), (None, 4), along={0: Graph(np.eye(8, k=3), 1, 3)}, weights="sign")
POOLED_ROWS = Patch(1, (None, 3), along={0: Graph(np.eye(8, k=3), 1, 3)}, pool=["max", "mean"])


NONLINEAR = Mixture(
    [
        Patch(1, 3),
        Haar(1, 2, pool=["proportion", "max"]),
        Variance(1, 4, views=[Raw(), Difference()]),
    ]
)


HALVES = Mixture([Axis(), SparseOblique()])
SPLITTERS = ("histogram", "exact")
BOOSTED = {"max_iter": 4, "subsample": 0.5, "min_samples_leaf": 5, "random_state": 0}
COLUMNS = SharedAtoms(Haar(1, 2, pool=["proportion", "mean"], views=[Raw(), Difference()]), 50)


def boosted(dictionary=None, **parameters):
    return MorfBoostingClassifier(dictionary, **BOOSTED | parameters)


def boosted_numbers(**parameters):
    return MorfBoostingRegressor(HALVES, **BOOSTED | parameters)


LARGE_LEAVES = {"min_samples_leaf": 4, "max_leaf_nodes": 25}


def golden_cases():
    """Each frozen forest: estimator, samples, targets, sample weights."""
    X, y = digits(200)
    flat, labels, target = table(200)
    weights = whole_numbers(200, 4, 8)
    cases = {}
    for name, dictionary in DICTIONARIES.items():
        for criterion in ("gini", "entropy"):
            model = classifier(dictionary, criterion=criterion, n_estimators=3)
            cases[f"digits, {name}, {criterion}"] = (model, X, y, None)
    for name, dictionary in BEYOND.items():
        cases[f"digits, {name}"] = (classifier(dictionary, n_estimators=3), X, y, None)
    for name, dictionary in RELATED.items():
        cases[f"digits, {name}"] = (classifier(dictionary, n_estimators=3), X, y, None)
    cases["digits, along"] = (classifier(ROWS, n_estimators=3), X, y, None)
    cases["digits, pooled along"] = (classifier(POOLED_ROWS, n_estimators=3), X, y, None)
    channels = classifier(Graph(grid(4), max_size=4), channel_axis=2, n_estimators=3)
    cases["volumes, graph"] = (channels, X.reshape(-1, 4, 4, 4), y, None)
    series = X.reshape(-1, 64)
    rocket = Kernel(MINIROCKET, dilation="log", views=[Raw(), Difference()])
    cases["series, rocket"] = (classifier(rocket), series, y, None)
    competing = Kernel("triple", dilation="log", views=[Raw(), Difference()], pool="win")
    cases["series, competing"] = (classifier(competing), series, y, None)
    signs = Kernel("sign", 5, 5, pool=["lose", "proportion"], rivals=3)
    cases["series, competing signs"] = (classifier(signs), series, y, None)
    for name, dictionary in {
        "haar": Haar(1, 2),
        "pair": Pair(1, 3),
        "channels": Patch(1, 3, views=[Raw(), Difference(), Square()]),
    }.items():
        cases[f"table, {name}"] = (regressor(dictionary), flat, target, None)
    cases["volumes, channels"] = (
        classifier(Haar(views=[Gradient(4), Square()]), channel_axis=1),
        X.reshape(-1, 4, 4, 4),
        y,
        None,
    )
    for name, dictionary in {
        "axis": Axis(),
        "sparse": SparseOblique(2.5),
        "patch": Patch(1, 3),
        "whole atoms": Atoms(HAAR),
        "fractional atoms": Atoms(np.array(HAAR) * 0.75 + 0.0625, probabilities=[4, 3, 2, 1]),
    }.items():
        for criterion in ("squared_error", "absolute_error", "poisson"):
            model = regressor(dictionary, criterion=criterion, n_estimators=3)
            cases[f"table, {name}, {criterion}"] = (model, flat, target, None)
        cases[f"table, {name}, gini"] = (classifier(dictionary), flat, labels, None)
    for splitter in SPLITTERS:
        for bootstrap in (True, False):
            parameters = {"splitter": splitter, "bootstrap": bootstrap, "n_estimators": 3}
            name = f"{splitter}, {'bags' if bootstrap else 'all rows'}"
            cases[f"classes, {name}"] = (classifier(**parameters), flat, labels, None)
            cases[f"numbers, {name}"] = (regressor(**parameters), flat, target, None)
    small = X.reshape(len(X), -1)
    ridge = {"max_features": 30, "bootstrap": True}
    wide = flat * [1, 1, 1, 1e-7, 1e9, 1]
    for name, model, samples, truth, weight in (
        ("whole weights", classifier(), X, y, weights),
        ("fractional weights", classifier(), X, y, weights / 3 + 0.5),
        ("fractional weights of all", regressor(bootstrap=False), flat, target, weights / 3 + 0.5),
        ("class weights", classifier(class_weight="balanced"), flat, labels, None),
        ("class weights by bag", classifier(class_weight="balanced_subsample"), flat, labels, None),
        ("kept samples of classes", classifier(keep_samples=True, **LARGE_LEAVES), X, y, weights),
        (
            "kept samples of numbers",
            regressor(keep_samples=True, bootstrap=False, **LARGE_LEAVES),
            flat,
            np.floor(target),
            weights / 3 + 0.5,
        ),
        ("best first", classifier(max_leaf_nodes=15), X, y, None),
        ("limits", regressor(min_samples_leaf=4, max_depth=6, max_samples=0.7), flat, target, None),
        ("cut", classifier(min_impurity_decrease=0.01, min_weight_fraction_leaf=0.02), X, y, None),
        ("wide range", classifier(Axis()), wide, labels, None),
        ("honest", classifier(honest=True, honest_prior="prune"), X, y, None),
        ("honest, not drawn", classifier(honest="oob", honest_prior="ignore"), X, y, weights),
        ("honest, uniform", classifier(honest=True, honest_prior="uniform"), X, y, None),
        (
            "honest numbers",
            regressor(honest=True, honest_fraction=0.3, honest_prior="prune"),
            flat,
            target,
            None,
        ),
        ("honest by default", classifier(honest=True), X, y, weights),
        ("honest numbers by default", regressor(honest=True), flat, target, None),
        (
            "honest numbers, empirical",
            regressor(honest="oob", honest_prior="empirical"),
            flat,
            target,
            weights / 3 + 0.5,
        ),
        ("without replacement", regressor(bootstrap=False, max_samples=0.6), flat, target, weights),
        (
            "consistent",
            consistent(classifier(Patch(2, 3), n_estimators=20), power=0.9),
            X,
            y,
            None,
        ),
        ("wide range of sums", classifier(), wide, labels, None),
        ("large integers", classifier(), (flat * 1000).astype(np.int64) * 2**40, labels, None),
        ("channels", classifier(Patch(2, 3), channel_axis=1), X, y, None),
        ("volumes", classifier(), X.reshape(-1, 4, 4, 4), y, None),
        ("copies", classifier(Patch(max_size=3), augment=ImageCopies()), X, y, None),
        ("copies of series", classifier(Axis(), augment=SeriesCopies()), X, y, None),
        ("boosted digits", boosted(Patch(max_size=3)), X, y, None),
        ("boosted in halves", boosted(Haar(), max_leaf_nodes=6), X, y, weights),
        ("boosted copies", boosted(Patch(max_size=3), augment=ImageCopies()), X, y, None),
        ("boosted table", boosted(HALVES), flat, labels > 0, weights / 3 + 0.5),
        ("boosted numbers", boosted_numbers(), flat, target, None),
        (
            "boosted, guided",
            MorfBoostingClassifier(max_iter=20, random_state=0),
            flat,
            labels,
            None,
        ),
        ("boosted by default", MorfBoostingClassifier(max_iter=4, random_state=0), X, y, None),
        (
            "boosted quantile",
            boosted_numbers(loss="quantile", quantile=0.3, calibration_folds=None),
            flat,
            target,
            None,
        ),
        (
            "boosted quantile, calibrated",
            boosted_numbers(loss="quantile", quantile=0.3),
            flat,
            target,
            weights,
        ),
        ("boosted intervals", boosted_numbers(calibration_folds=3), flat, target, None),
        ("boosted sets", boosted(HALVES, calibration_folds=3), flat, labels, weights / 3 + 0.5),
        ("boosted counts", boosted_numbers(loss="poisson"), flat, np.abs(target), None),
        ("pooled max", classifier(Patch(1, 4, pool="max")), X, y, None),
        ("pooled min, wrap", classifier(Patch(1, 4, boundary="wrap", pool="min")), X, y, None),
        ("pooled mean", classifier(Haar(1, 2, pool="mean", window=3)), X, y, weights),
        ("pooled ppv", classifier(Haar(1, 2, pool="proportion")), X, y, None),
        (
            "pooled ppv of floats",
            regressor(Haar(1, 2, size_distribution="log", pool="proportion")),
            flat,
            target,
            None,
        ),
        ("pooled pairs", classifier(Pair(1, 3, pool=["proportion", "max"])), X, y, None),
        (
            "series by name",
            classifier("series", channel_axis=1),
            X.reshape(-1, 4, 16),
            y,
            None,
        ),
        ("variance", regressor(Variance(2, 4)), flat, target, None),
        ("subset", classifier(Subset(Patch(2, 4), 30)), X, y, weights),
        ("subset of pooled", classifier(Subset(Haar(1, 2, pool="proportion"), 30)), X, y, None),
        ("boosted subset", boosted(Subset(Pair(1, 3), 30), max_iter=12), X, y, None),
        (
            "columns of pooled",
            classifier(SharedAtoms(NONLINEAR, 90, combine=None)),
            X,
            y,
            weights / 3 + 0.5,
        ),
        (
            "columns, copies",
            classifier(clone(COLUMNS).set_params(combine=None), augment=ImageCopies(copies=1)),
            X,
            y,
            None,
        ),
        (
            "columns of floats",
            regressor(
                SharedAtoms(
                    Haar(1, 2, size_distribution="log", pool=["proportion", "max"]),
                    60,
                    combine=None,
                ),
            ),
            flat,
            target,
            None,
        ),
        (
            "columns of a wide range",
            regressor(SharedAtoms(Patch(1, 3), 60)),
            wide,
            target,
            None,
        ),
        ("boosted columns", boosted(COLUMNS, max_iter=12), X, y, None),
        ("columns combined", classifier(COLUMNS), X, y, weights),
        ("combination of classes", classifier(GivenColumns(), **ridge), small, y, None),
        (
            "combination, best first",
            classifier(GivenColumns(), max_leaf_nodes=9, **ridge),
            small,
            y,
            weights,
        ),
        (
            "combination of numbers",
            regressor(GivenColumns(), **ridge),
            small,
            small[:, 20] * 3.5,
            None,
        ),
        ("nonlinear", classifier(NONLINEAR, max_leaf_nodes=20), X, y, weights / 3 + 0.5),
    ):
        cases[name] = (model, samples, truth, weight)
    return cases | several_outputs(X, y, weights) | cases_with_holes()


def cases_with_holes():
    """The same where values are missing."""
    X, y = digits(200)
    flat, labels, target = table(200)
    weights = whole_numbers(200, 4, 8)
    series = with_holes(X.reshape(-1, 2, 32))
    X, flat = with_holes(X), with_holes(flat)
    cases = {
        "images": (classifier(), X, y, None),
        "views": (classifier(Patch(1, 3, views=[Gradient(4), Square(), Raw()])), X, y, None),
        "series": (classifier(Patch(1, 6), channel_axis=1), series, y, weights),
        "series, pooled": (classifier(NONLINEAR, channel_axis=1), series, y, None),
        "series, competing": (
            classifier(Kernel("sign", (1, 5), (1, 5), pool="win"), channel_axis=1),
            series,
            y,
            None,
        ),
        "series, columns": (
            classifier(SharedAtoms(NONLINEAR, 90), channel_axis=1),
            series,
            y,
            None,
        ),
        "features": (classifier(Axis(), splitter="exact"), flat, labels, None),
        "sums": (regressor(max_leaf_nodes=15), flat, target, weights / 3 + 0.5),
        "medians": (regressor(Patch(1, 3), criterion="absolute_error"), flat, target, None),
        "fractional atoms": (regressor(Atoms(np.array(HAAR) * 0.75)), flat, target, None),
        "honest": (classifier(honest=True), X, y, None),
        "honest, not drawn": (regressor(Axis(), honest="oob"), flat, target, weights),
        "kept samples": (regressor(keep_samples=True, **LARGE_LEAVES), flat, target, None),
        "copies": (classifier(Patch(max_size=3), augment=ImageCopies()), X, y, None),
        "boosted": (boosted(Patch(max_size=3)), X, y, None),
        "boosted by default": (boosted(), flat, labels, weights),
        "boosted subset": (boosted(Subset(Pair(1, 3), 30), max_iter=12), X, y, None),
    }
    return {f"gaps, {name}": case for name, case in cases.items()}


def several_outputs(X, y, weights):
    """Frozen forests of two and three outputs, of unlike numbers of classes and units."""
    classes = np.stack([y, y % 2, X[:, 3, 2] // 6], axis=1)
    flat, labels, target = table(200)
    numbers = np.stack([target, flat[:, 1] * 1000 + target, labels * 1e-3], axis=1)
    few = {"n_estimators": 3}
    return {
        "outputs, gini": (classifier(Patch(1, 3), **few), X, classes, None),
        "outputs, entropy": (classifier(criterion="entropy", **few), X, classes[:, :2], weights),
        "outputs, class weights": (
            classifier(class_weight="balanced_subsample", splitter="exact", **few),
            flat,
            np.stack([labels, flat[:, 2] > 1], axis=1),
            weights / 3 + 0.5,
        ),
        "outputs, honest": (
            classifier(honest=True, honest_prior="uniform", augment=ImageCopies(copies=1), **few),
            X,
            classes,
            None,
        ),
        "outputs, squared error": (
            regressor(keep_samples=True, **LARGE_LEAVES, **few),
            flat,
            numbers,
            weights / 3 + 0.5,
        ),
        "outputs, two, squared error": (regressor(**few), flat, numbers[:, :2], weights),
        "outputs, absolute error": (
            regressor(criterion="absolute_error", **few),
            flat,
            numbers,
            None,
        ),
        "outputs, poisson": (
            regressor(Subset(SparseOblique(), 40), criterion="poisson", **few),
            flat,
            np.abs(numbers),
            None,
        ),
        "outputs, combination": (
            classifier(GivenColumns(), max_features=20, bootstrap=True, **few),
            X.reshape(len(X), -1),
            classes,
            None,
        ),
    }
