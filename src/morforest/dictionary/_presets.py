"""Dictionaries by name, fitted to the shape of a sample."""

from __future__ import annotations

from typing import Any

from morforest.dictionary._base import Dictionary, resolve
from morforest.dictionary._boxes import Haar, Pair, Patch, Variance
from morforest.dictionary._compose import Mixture, Subset
from morforest.dictionary._features import Axis, SparseOblique
from morforest.dictionary._kernels import ROCKET_LENGTH, Kernel
from morforest.dictionary._views import Difference, Gradient, Magnitude, Raw

NAMES = ("axis", "sporf", "patch", "image", "series", "series-pooled")
SHORTEST_SERIES, SMALLEST_IMAGE = 6, 3  # of which the names make sense


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
    for views in ([Gradient(8)], [Raw(), Magnitude()]):
        parts.append(Patch(smallest, largest, views=views))
        parts.append(Pair(1, largest, reach=0.35, views=views))
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
    views = [Raw(), Difference(axes[-1])]
    sizes = _sizes(shape, axes, max(2, length // 2))
    halves = _sizes(shape, axes, max(1, length // 3))
    time = axes[-1]
    return Mixture(
        [
            Patch(1, sizes, boundary="inside", size_distribution="log", views=views),
            Haar(1, halves, axes=time, lobes=["two", "three"], size_distribution="log"),
            Variance(_sizes(shape, axes, 2), sizes, size_distribution="log", views=views),
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
    pooled = {"pool": ["proportion"] * counts + ["max", "min"], "window": 1.0}
    differences = Difference(time)
    sizes = _sizes(shape, axes, third)
    # Shares by cross-validation: see docs/design.md. Without the third, levels would not be seen.
    parts: list[Dictionary] = [
        Pair(1, sizes, reach, size_distribution="log", **pooled),
        Pair(1, sizes, reach, size_distribution="log", views=differences, **pooled),
        Patch(1, sizes, boundary="inside", size_distribution="log", **pooled),
    ]
    if length < ROCKET_LENGTH + 3:
        return Mixture(parts, weights=[4, 2, 1])
    views = [Raw(), differences]
    competing = {"pool": ["win", "lose"], "window": 1.0}
    parts.append(Kernel("triple", dilation="log", views=views, **competing))
    return Mixture(parts, weights=[4, 2, 1, 3])
