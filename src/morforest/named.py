"""Dictionaries by name, fitted to the shape of a sample."""

from __future__ import annotations

from typing import Any

from morforest._dictionary import Dictionary, resolve
from morforest.boxes import Haar, Pair, Patch, Variance
from morforest.channels import Difference, Gradient, Magnitude, Raw
from morforest.dictionary import Axis, Mixture, SparseOblique
from morforest.kernels import ROCKET_LENGTH, Kernel

NAMES = ("axis", "sporf", "patch", "image", "series", "series-pooled")


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
            return _series(shape, axes)
        case "series-pooled":
            return _pooled(shape, axes)
    names = ", ".join(map(repr, NAMES))
    raise ValueError(
        f"dictionary must be None, one of {names}, or a dictionary object such as Patch(), "
        f"got {dictionary!r}."
    )


def _image(shape: tuple[int, ...], axes: list[int]) -> Dictionary:
    """Return patches and pairs of them, on the image and its gradients in eight directions."""
    if len(axes) < 2 or min(shape[axis] for axis in axes[-2:]) < 3:
        raise ValueError(
            'dictionary="image" needs samples with two axes of at least three pixels beside the '
            f'channels, got shape {shape}: give images, or use "series", "patch" or "axis".'
        )
    channels = [Raw(), Magnitude(), Gradient(8)]
    largest = tuple(
        max(2, round(shape[axis] / 3)) if axis in axes else 1 for axis in range(len(shape))
    )
    smallest = tuple(2 if axis in axes else 1 for axis in range(len(shape)))
    patches = Patch(smallest, largest, channels=channels)
    return Mixture([patches, Pair(1, largest, reach=0.35, channels=channels)])


def _length(name: str, shape: tuple[int, ...], axes: list[int]) -> int:
    if not axes or shape[axes[-1]] < 6:
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
            _pooled(shape, axes),
        ],
        weights=[0.2, 0.1, 0.1, 0.6],
    )


def _pooled(shape: tuple[int, ...], axes: list[int]) -> Dictionary:
    """Return contrasts of intervals over windows of time."""
    length = _length("series-pooled", shape, axes)
    halves = _sizes(shape, axes, max(1, length // 3))
    ops = ["ppv", "ppv", "max", "min"]
    channels = [Raw(), Difference(axes[-1])]
    parts: list[Dictionary] = [
        Haar(1, halves, axes=axes[-1], lobes=["two", "three"], scale="log", pool=ops),
        Patch(1, halves, boundary="inside", scale="log", channels=channels, pool=ops),
    ]
    if length >= ROCKET_LENGTH + 3:
        parts.append(Kernel("rocket", dilation="log", channels=channels, pool=["ppv", "max"]))
    return Mixture(parts)
