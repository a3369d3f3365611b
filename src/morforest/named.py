"""Dictionaries by name, fitted to the shape of a sample."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from morforest._dictionary import Dictionary, Plan, resolve
from morforest._grow import grow_trees, sum_out_of_bag
from morforest._kernel import core
from morforest._numbers import to_core_dtype
from morforest.boxes import Haar, Pair, Patch, Variance
from morforest.channels import Difference, Gradient, Magnitude, Raw
from morforest.dictionary import Axis, Mixture, SparseOblique, Subset
from morforest.kernels import ROCKET_LENGTH, Kernel

NAMES = ("axis", "sporf", "patch", "image", "series", "series-pooled")
SHORTEST_SERIES, SMALLEST_IMAGE = 6, 3  # of which the names make sense
FEW_ROWS, MOST_ROWS, FEWEST_TREES = 500, 5000, 20  # with which "auto" tries names
FEW_ATOMS, FEW_CANDIDATES = 200, 20  # the same where all trees share atoms
LEAD = 0.01  # by which "series" is to be ahead: what is tried is not quite what will be fitted


def choose_dictionary(
    dictionary: Any, shape: tuple[int, ...], channel_axis: int | None
) -> Dictionary:
    """Return the dictionary that an estimator's parameter means for samples of a shape."""
    if dictionary is None:
        return SparseOblique() if len(shape) == 1 else Patch()
    if not isinstance(dictionary, str):
        return dictionary  # resolve() says what is wrong with it
    channel = resolve(Axis(), shape, channel_axis).channel_axis
    axes = [axis for axis in range(len(shape)) if axis != channel]
    match dictionary:
        case "axis":
            return Axis()
        case "sporf":
            return SparseOblique()
        case "patch":
            return Patch()
        case "image":
            return _image(shape, axes)
        case "series":
            return Subset(_series(shape, axes), per="forest")
        case "series-pooled":
            return Subset(_pooled(shape, axes, counts=8), per="forest")
    names = ", ".join(map(repr, NAMES))
    if dictionary == "auto":
        raise ValueError(
            f'dictionary="auto" needs targets to choose by; here give one of {names}, or a '
            "dictionary object."
        )
    raise ValueError(
        f'dictionary must be None, one of {names}, "auto", or a dictionary object such as Patch(), '
        f"got {dictionary!r}."
    )


def names_for(shape: tuple[int, ...], channel_axis: int | None) -> list[str]:
    """Return the names worth a try for samples of a shape, the simplest first."""
    channel = resolve(Axis(), shape, channel_axis).channel_axis
    axes = [axis for axis in range(len(shape)) if axis != channel]
    names = ["axis", "sporf", "patch"]
    if len(axes) == 1 and shape[axes[0]] >= SHORTEST_SERIES:
        names.append("series")
    elif len(axes) >= 2:
        names.remove("axis")
        if min(shape[axis] for axis in axes[-2:]) >= SMALLEST_IMAGE:
            names.append("image")
        if shape[axes[-1]] >= SHORTEST_SERIES and shape[axes[-1]] >= 4 * shape[axes[-2]]:
            names.append("series")
    return names


def try_dictionaries(
    X: np.ndarray,
    target: np.ndarray,
    weights: np.ndarray | None,
    shape: tuple[int, ...],
    channel_axis: int | None,
    classes: bool,
    like: Any,
) -> dict[str, float]:
    """Score small forests of each name by the samples that their trees did not see.

    On at most half of the samples, but for small data, with a part of the trees, and with few of
    the atoms that trees share: trying costs about as much as the fit itself. Two halves of a
    forest judge the samples that both left out, and the product of their errors stands for a
    square: in it the chance of single trees cancels, so that few trees say what many would.
    Classes are scored by one minus half their Brier score, which is 1 for sure and right and 0 for
    sure and wrong; numbers by R squared.
    """
    rows = _some_rows(X, target if classes else np.zeros(len(X), dtype=int))
    trees = max(FEWEST_TREES, int(getattr(like, "n_estimators", 0)) // 25)
    X, target = X[rows], target[rows]
    weights = None if weights is None else weights[rows]
    truth = target.astype(np.float64)[:, np.newaxis]
    if classes:
        present, target = np.unique(target, return_inverse=True)
        target = target.astype(np.uint32)
        truth = (target[:, np.newaxis] == np.arange(len(present))).astype(np.float64)
    scores = {}
    for name in names_for(shape, channel_axis):
        chosen = choose_dictionary(name, shape, channel_axis)
        if isinstance(chosen, Subset) and chosen.per == "forest":
            chosen = Subset(chosen.dictionary, FEW_ATOMS, per="forest")
        plan = resolve(chosen, shape, channel_axis)
        first, second = _errors_out_of_bag(plan, X, target, weights, truth, classes, trees, like)
        seen = np.isfinite(first[:, 0]) & np.isfinite(second[:, 0])
        products = (first * second)[seen].sum(axis=1)
        mean = math.fsum(products) / max(len(products), 1)
        if not classes:
            centre = math.fsum(truth[seen, 0]) / max(len(products), 1)
            spread = math.fsum((truth[seen, 0] - centre) ** 2)
            mean = 2.0 * mean * len(products) / spread if spread > 0 else 0.0
        scores[name] = 1.0 - 0.5 * mean if seen.any() else 0.0
    return scores


def best_name(scores: dict[str, float]) -> str:
    """Return the name of the highest score; "series" needs a lead over the others."""
    found: str = max(scores, key=lambda name: scores[name] - LEAD * (name == "series"))
    return found


def _errors_out_of_bag(
    plan: Plan,
    X: np.ndarray,
    target: np.ndarray,
    weights: np.ndarray | None,
    truth: np.ndarray,
    classes: bool,
    trees: int,
    like: Any,
) -> list[np.ndarray]:
    """Return what each half of a small forest gets wrong of the samples it did not see; else NaN.

    As `fit` does it, without the checks that the samples have passed.
    """
    from morforest.forest import MorfClassifier, MorfRegressor

    model: Any = (MorfClassifier if classes else MorfRegressor)(bootstrap=True, n_jobs=like.n_jobs)
    if plan.dictionary._columns():
        model.max_features = FEW_CANDIDATES
    model._seed = 0
    if classes:
        model.classes_ = np.arange(truth.shape[1])
    with warnings.catch_warnings():  # of a range of values: for the one that is chosen
        warnings.filterwarnings("ignore", "X spans many orders of magnitude", UserWarning)
        task, target_format = model._prepare(X, target, weights, plan, None)
    grown = list(grow_trees(task, range(trees), like.n_jobs, 0))
    forest = model._assemble(grown, task, target_format, None)
    errors = []
    for half in (range(trees // 2), range(trees // 2, trees)):
        sums, votes = sum_out_of_bag(task, forest, like.n_jobs, half)
        with np.errstate(invalid="ignore"):
            errors.append(sums / votes[:, np.newaxis] - truth)
    return errors


def _some_rows(X: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return up to half of the rows, by content and not by order, of each class alike."""
    if len(X) <= FEW_ROWS:
        return np.arange(len(X))
    wanted = min(max(FEW_ROWS, len(X) // 2), MOST_ROWS)
    share = wanted / len(X)
    order = np.argsort(core.hash_rows(to_core_dtype(X)))
    chosen = []
    for k in np.unique(classes):
        of_class = order[classes[order] == k]
        chosen.append(of_class[: max(1, round(share * len(of_class)))])
    return np.sort(np.concatenate(chosen))


def _image(shape: tuple[int, ...], axes: list[int]) -> Dictionary:
    """Return patches and pairs of them, on the image and its gradients in eight directions."""
    if len(axes) < 2 or min(shape[axis] for axis in axes[-2:]) < SMALLEST_IMAGE:
        raise ValueError(
            'dictionary="image" needs samples with two axes of at least three pixels beside the '
            f'channels, got shape {shape}: give images, or use "series", "patch" or "axis".'
        )
    largest = tuple(
        max(2, round(shape[axis] / 2)) if axis in axes else 1 for axis in range(len(shape))
    )
    smallest = tuple(2 if axis in axes else 1 for axis in range(len(shape)))
    parts: list[Dictionary] = []
    for channels in ([Gradient(8)], [Raw(), Magnitude()]):
        parts.append(Patch(smallest, largest, channels=channels))
        parts.append(Pair(1, largest, reach=0.35, channels=channels))
    # Edges say most about things, and little about light and dark: see docs/design.md.
    return Subset(Mixture(parts, weights=[0.45, 0.45, 0.05, 0.05]))


def _length(name: str, shape: tuple[int, ...], axes: list[int]) -> int:
    if not axes or shape[axes[-1]] < SHORTEST_SERIES:
        raise ValueError(
            f'dictionary="{name}" needs samples whose last axis (but for the channels) is time, '
            f'with at least six steps, got shape {shape}: use "patch", "sporf" or "axis".'
        )
    return shape[axes[-1]]


def _sizes(shape: tuple[int, ...], axes: list[int], size: int) -> tuple[int, ...]:
    """Return the largest size along each axis: along time as given, one along others."""
    return tuple(size if axis == axes[-1] else 1 for axis in range(len(shape)))


def _series(shape: tuple[int, ...], axes: list[int]) -> Dictionary:
    """Return sums, contrasts and variances of intervals in place, and contrasts anywhere."""
    length = _length("series", shape, axes)
    channels = [Raw(), Difference(axes[-1])]
    sizes = _sizes(shape, axes, max(2, length // 2))
    halves = _sizes(shape, axes, max(1, length // 3))
    time = axes[-1]
    return Mixture(
        [
            Patch(1, sizes, boundary="inside", scale="log", channels=channels),
            Haar(1, halves, axes=time, lobes=["two", "three"], scale="log"),
            Variance(_sizes(shape, axes, 2), sizes, scale="log", channels=channels),
            _pooled(shape, axes, counts=3),
        ],
        weights=[0.1, 0.05, 0.05, 0.8],
    )


def _pooled(shape: tuple[int, ...], axes: list[int], counts: int) -> Dictionary:
    """Return intervals, differences within and across sensors, and kernels, over all of time.

    Of `counts` + 2 atoms that do not compete so many count, and two take an extreme.
    """
    length = _length("series-pooled", shape, axes)
    time = axes[-1]
    third = max(1, length // 3)
    reach = tuple(third if axis == time else size - 1 for axis, size in enumerate(shape))
    pooled = {"pool": ["ppv"] * counts + ["max", "min"], "window": 1.0}
    differences = Difference(time)
    sizes = _sizes(shape, axes, third)
    # Shares by cross-validation: see docs/design.md. Without the third, levels would not be seen.
    parts: list[Dictionary] = [
        Pair(1, sizes, reach, scale="log", **pooled),
        Pair(1, sizes, reach, scale="log", channels=differences, **pooled),
        Patch(1, sizes, boundary="inside", scale="log", **pooled),
    ]
    if length < ROCKET_LENGTH + 3:
        return Mixture(parts, weights=[4, 2, 1])
    channels = [Raw(), differences]
    competing = {"pool": ["win", "lose"], "window": 1.0}
    parts.append(Kernel("triple", dilation="log", channels=channels, **competing))
    return Mixture(parts, weights=[4, 2, 1, 3])
