"""Dictionaries by name, made for the shape of a sample, and hints at names that fit the data."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from morforest.dictionary._base import Dictionary
from morforest.dictionary._boxes import Haar, Pair, Patch, Variance
from morforest.dictionary._compose import Mixture, SharedAtoms, Subset
from morforest.dictionary._kernels import TRIPLE_LENGTH, Kernel
from morforest.dictionary._shape import SampleShape
from morforest.dictionary._tabular import Axis, SparseOblique
from morforest.dictionary._views import Difference, Gradient, Magnitude, Product, Raw, White

NAMES = ("axis", "sporf", "patch", "image", "series", "series-pooled", "eeg")
SHORTEST_SERIES, SMALLEST_IMAGE = 6, 3  # the least lengths for which these names make sense
BANDS = 5  # of "eeg": all frequencies, and four octaves
MOST_COLOURS = 4  # red, green, blue and transparency
# A hint at "series" takes so many rows and columns, and looks at so many of each.
FEWEST_ROWS, FEWEST_COLUMNS, HINT_ROWS, HINT_COLUMNS = 20, 20, 200, 300


def choose_dictionary(
    dictionary: Any, shape: tuple[int, ...], channel_axis: int | None
) -> Dictionary:
    """Return the dictionary that an estimator's parameter means for samples of a shape.

    As in the estimators, `channel_axis` counts the axes of X.
    """
    if dictionary is None:
        return SparseOblique() if len(shape) == 1 else Patch()
    if not isinstance(dictionary, str):
        found: Dictionary = dictionary  # resolve() says what is wrong with it
        return found
    samples = SampleShape.of(shape, channel_axis)
    match dictionary:
        case "axis":
            return Axis()
        case "sporf":
            return SparseOblique()
        case "patch":
            return Patch()
        case "image":
            return _image(samples)
        case "series":
            return SharedAtoms(_series(samples))
        case "series-pooled":
            return SharedAtoms(_pooled(samples, "series-pooled", counts=8))
        case "eeg":
            return SharedAtoms(_eeg(samples))
    names = ", ".join(map(repr, NAMES))
    if dictionary == "auto":
        raise ValueError(
            'dictionary="auto" chooses by the targets, which are not known here: give one of '
            f"{names}, or a dictionary object."
        )
    raise ValueError(
        f'dictionary must be None, one of {names}, "auto", or a dictionary object such as Patch(), '
        f"got {dictionary!r}."
    )


def names_for(shape: tuple[int, ...], channel_axis: int | None) -> list[str]:
    """Return the names that "auto" tries for samples of a shape, the simplest first."""
    samples = SampleShape.of(shape, channel_axis)
    lengths = [shape[axis] for axis in samples.free_axes]
    if len(lengths) < 2:
        names = ["axis", "sporf", "patch"]
        if lengths and lengths[0] >= SHORTEST_SERIES:
            names.append("series")
            if samples.rank == 2 and samples.size > lengths[0]:  # several channels
                names.append("eeg")
        return names
    names = ["sporf", "patch"]
    if _colour_axis(samples) is not None:
        warnings.warn(f'dictionary="auto" leaves out "image": {_ask(samples)}', UserWarning, 6)
    elif min(lengths[-2:]) >= SMALLEST_IMAGE:
        names.append("image")
    if lengths[-1] >= SHORTEST_SERIES and lengths[-1] >= 4 * lengths[-2]:
        names.append("series")
    return names


def looks_like_series(X: np.ndarray) -> bool:
    """Say whether neighbouring columns of flat rows are far more alike than random ones.

    Nearly all neighbours must be correlated clearly and positively, which is rare in tables. The
    ends of its rows keep a flattened image from looking like a series.
    """
    n, p = X.shape
    if n < FEWEST_ROWS or p < FEWEST_COLUMNS:
        return False
    rows = np.linspace(0, n - 1, min(n, HINT_ROWS)).astype(int)
    first = np.linspace(0, p - 2, min(p - 1, HINT_COLUMNS)).astype(int)
    other = np.random.default_rng(0).permutation(first)
    near = _correlations(X, rows, first, first + 1)
    if len(near) < FEWEST_COLUMNS // 2:
        return False
    anywhere = np.abs(_correlations(X, rows, first, other))
    typical, background = np.median(near), np.median(anywhere)
    # All columns of a random walk are alike, but neighbours explain nearly all of each other.
    closer = typical > background + 0.2 or 1 - typical < (1 - background) / 5
    return bool(np.quantile(near, 0.1) > 0.5 and closer)


def _correlations(
    X: np.ndarray, rows: np.ndarray, first: np.ndarray, second: np.ndarray
) -> np.ndarray:
    """Return the correlation of each pair of columns; constant and equal columns are left out."""
    with np.errstate(over="ignore", invalid="ignore"):
        a, b = (X[np.ix_(rows, columns)].astype(np.float64) for columns in (first, second))
        a, b = a - a.mean(axis=0), b - b.mean(axis=0)
        product = np.sqrt((a * a).sum(axis=0) * (b * b).sum(axis=0))
        known = np.isfinite(product) & (product > 0) & (first != second)
        found: np.ndarray = (a * b).sum(axis=0)[known] / product[known]
    return found


def _colour_axis(shape: SampleShape) -> int | None:
    """Return the axis of X that probably holds colours, of which the user did not tell."""
    if shape.channel_axis is not None or shape.rank < 3:
        return None
    if shape.lengths[-1] <= MOST_COLOURS:
        return -1
    return 1 if shape.rank == 3 and shape.lengths[0] in (1, 3) else None


def _ask(shape: SampleShape) -> str:
    """Ask for the channel axis of samples that look like colour images."""
    axis = _colour_axis(shape)
    length = shape.lengths[0 if axis == 1 else -1]
    if length == 1:
        return (
            f"samples of shape {shape} look like images with one colour channel. Pass "
            f"channel_axis={axis}, or drop the axis of length one."
        )
    return (
        f"samples of shape {shape} look like images with {length} colour channels. Pass "
        f"channel_axis={axis} if they are; if that axis is depth and not colour, use "
        'dictionary="patch" or a dictionary object such as Patch(views=Gradient()).'
    )


def _image(shape: SampleShape) -> Dictionary:
    """Return patches and pairs of patches, on the image and its gradients in eight directions."""
    if _colour_axis(shape) is not None:
        raise ValueError(f'dictionary="image" needs to know the channel axis: {_ask(shape)}')
    axes = shape.free_axes
    if len(axes) < 2 or min(shape.lengths[axis] for axis in axes[-2:]) < SMALLEST_IMAGE:
        raise ValueError(
            'dictionary="image" needs samples with two axes of at least three pixels besides the '
            f'channels, got shape {shape}: give images, or use "series", "patch" or "axis".'
        )
    smallest = tuple(2 if axis in axes else 1 for axis in range(shape.rank))
    largest = tuple(
        max(2, round(length / 2)) if axis in axes else 1
        for axis, length in enumerate(shape.lengths)
    )
    parts: list[Dictionary] = []
    for views in ([Gradient(8)], [Raw(), Magnitude()]):
        parts.append(Patch(smallest, largest, views=views))
        parts.append(Pair(1, largest, reach=0.35, views=views))
    # Objects differ most by their edges, and little by light and dark: see docs/design.md.
    return Subset(Mixture(parts, weights=[0.45, 0.45, 0.05, 0.05]))


def _time_axis(name: str, shape: SampleShape) -> int:
    """Return the axis of time, which is the last one that holds no channels."""
    axes = shape.free_axes
    if not axes or shape.lengths[axes[-1]] < SHORTEST_SERIES:
        raise ValueError(
            f'dictionary="{name}" needs samples whose last axis besides the channels is time, with '
            f"at least {SHORTEST_SERIES} steps, got shape {shape}"
            f"{_channel_note(shape)}: use "
            '"patch", "sporf" or "axis".'
        )
    return axes[-1]


def _channel_note(shape: SampleShape) -> str:
    return "" if shape.channel_axis is None else f" with channel_axis={shape.channel_axis + 1}"


def _sizes(shape: SampleShape, time: int, size: int) -> tuple[int, ...]:
    """Return the size along each axis: as given along time, and one along the others."""
    return tuple(size if axis == time else 1 for axis in range(shape.rank))


def _series(shape: SampleShape) -> Dictionary:
    """Return sums, contrasts and variances of intervals in place, and pooled contrasts."""
    time = _time_axis("series", shape)
    length = shape.lengths[time]
    views = [Raw(), Difference(time)]
    sizes = _sizes(shape, time, max(2, length // 2))
    thirds = _sizes(shape, time, max(1, length // 3))
    return Mixture(
        [
            Patch(1, sizes, boundary="inside", size_distribution="log", views=views),
            Haar(1, thirds, axes=time, lobes=["two", "three"], size_distribution="log"),
            Variance(_sizes(shape, time, 2), sizes, size_distribution="log", views=views),
            _pooled(shape, "series", counts=3),
        ],
        weights=[0.1, 0.05, 0.05, 0.8],
    )


def _eeg(shape: SampleShape) -> Dictionary:
    """Return intervals in place, raw and whitened, powers and products in bands, and pooled atoms.

    Of all products, powers are of one channel, and drawn more often than pairs of channels.
    """
    time = _time_axis("eeg", shape)
    if shape.rank != 2:
        raise ValueError(
            f'dictionary="eeg" needs samples of two axes, channels and time, got shape {shape}'
            f'{_channel_note(shape)}: use "series" or "patch".'
        )
    white = White(axis=1 - time)
    length = shape.lengths[time]
    parts = [
        Patch(1, _sizes(shape, time, max(2, length // 2)), views=[Raw(), white]),
        Patch(1, _sizes(shape, time, length), views=Product(white, lags=1, bands=BANDS)),
        Patch(1, _sizes(shape, time, length), views=Product(white, lags=4, bands=BANDS)),
        Patch(1, _sizes(shape, time, max(1, length // 3)), views=[Raw(), white]),
    ]
    for part in parts:
        part.set_params(boundary="inside", size_distribution="log")
    parts[3].set_params(pool=["proportion", "max", "min"], window=1.0)
    return Mixture(parts, weights=[0.5, 0.2, 0.15, 0.15])


def _pooled(shape: SampleShape, name: str, counts: int) -> Dictionary:
    """Return intervals, differences within and across sensors, and kernels, pooled over time.

    Of each `counts` + 2 atoms that do not compete, `counts` are pooled by their proportion, and two
    by an extreme.
    """
    time = _time_axis(name, shape)
    length = shape.lengths[time]
    third = max(1, length // 3)
    reach = tuple(third if axis == time else n - 1 for axis, n in enumerate(shape.lengths))
    pool = ["proportion"] * counts + ["max", "min"]
    differences = Difference(time)
    sizes = _sizes(shape, time, third)
    # Cross-validation chose the weights: see docs/design.md. Only the third part sees levels.
    parts: list[Dictionary] = [
        Pair(1, sizes, reach=reach, pool=pool),
        Pair(1, sizes, reach=reach, views=differences, pool=pool),
        Patch(1, sizes, boundary="inside", pool=pool),
    ]
    for part in parts:
        part.set_params(size_distribution="log", window=1.0)
    if length < TRIPLE_LENGTH + 3:
        return Mixture(parts, weights=[4, 2, 1])
    kernels = Kernel(
        "triple", dilation="log", views=[Raw(), differences], pool=["win", "lose"], window=1.0
    )
    parts.append(kernels)
    return Mixture(parts, weights=[4, 2, 1, 3])
