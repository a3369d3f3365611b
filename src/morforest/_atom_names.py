"""What an atom looks like, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

MOST_NAMED = 12  # cells that a name lists

Index = tuple[np.ndarray, ...]


def name_of(
    values: np.ndarray,
    kinds: list[str],
    index: Index,
    shape: tuple[int, ...],
    moved: np.ndarray,
    channel_axis: int | None,
    operation: str,
) -> str:
    """Describe an atom by its weights, the views and positions of these, and its window."""
    axes = [axis for axis in range(len(shape)) if axis != channel_axis]
    if not len(values):
        return "nothing"
    in_place = np.lexsort(index[::-1])
    values, kinds = values[in_place], [kinds[i] for i in in_place]
    index = tuple(i[in_place] for i in index)
    if len(set(kinds)) == 1:
        words = [_shape_of(values, index, axes)]
    else:  # boxes in different views may overlap
        words = [_pair_of(values, index, axes) or _sum_of(values, index, axes)]
    if operation == "variance":
        words[0] = words[0].replace("patch", "variance")
    # Of a pair across views, that of the box that is added comes first.
    added_first = np.argsort(-values, kind="stable")
    seen = list(dict.fromkeys(kinds[i] for i in added_first))
    if seen != ["raw"]:
        words.append(f"of {' and '.join(seen)}")
    if channel_axis is not None:
        channel = index[channel_axis]
        sides = [np.unique(channel)]
        if words[0].startswith("pair"):  # which less which
            more, less = (np.unique(channel[values * sign > 0]) for sign in (1, -1))
            sides = [more] if np.array_equal(more, less) else [more, less]
        words.append(f"channel {'-'.join('+'.join(map(str, side)) for side in sides)}")
    first = [int(i.min()) for i in index]
    extent = [int(i.max() - i.min()) + 1 for i in index]
    places = [n - e + 1 for n, e in zip(shape, extent, strict=True)]
    if any(moved[axis] < places[axis] for axis in axes):
        words.append(f"at {','.join(str(first[axis]) for axis in axes)}")
        if operation not in ("none", "variance"):
            words.append(f"over {'x'.join(str(moved[axis]) for axis in axes)}")
    if operation not in ("none", "variance"):
        words.append(operation)
    return " ".join(words)


def in_columns(weights: np.ndarray, names: Sequence[str]) -> str:
    """Write a weighted sum of named columns, such as "age - 2 children"."""
    if not len(weights):
        return "nothing"
    if len(weights) > MOST_NAMED:
        return f"sum of {len(weights)} features from {names[0]} to {names[-1]}"
    words = ""
    for weight, name in zip(weights.tolist(), names, strict=True):
        size = "" if abs(weight) == 1 else f"{abs(weight):.4g} "
        if words:
            words += f" {'-' if weight < 0 else '+'} {size}{name}"
        else:
            words = f"{'-' if weight < 0 else ''}{size}{name}"
    return words


def _shape_of(values: np.ndarray, index: Index, places: Sequence[int]) -> str:
    """Say what an atom looks like: a feature, a patch, boxes side by side or apart, a sum."""
    low = [int(i.min()) for i in index]
    size = [int(i.max()) - first + 1 for i, first in zip(index, low, strict=True)]
    if len(values) != math.prod(size):
        return _pair_of(values, index, places) or _sum_of(values, index, places)
    box = values.reshape(size)
    for axis in range(box.ndim):  # one entry per lobe along each axis
        steps = np.diff(box, axis=axis) != 0
        change = steps.any(axis=tuple(a for a in range(box.ndim) if a != axis))
        edges = np.append(0, np.flatnonzero(change) + 1)
        if len(np.unique(np.diff(np.append(edges, box.shape[axis])))) > 1:
            return _sum_of(values, index, places)
        size[axis] //= len(edges)
        box = box.take(edges, axis=axis)
    width = "x".join(str(size[axis]) for axis in places) or "1"
    lobes = ",".join(f"{value:g}" for value in box.ravel())
    if box.size > 1:
        return f"haar({lobes}) width {width}"
    name = "patch" if lobes == "1" else f"{lobes} x patch"
    return f"{name} width {width}"


def _sum_of(values: np.ndarray, index: Index, places: Sequence[int]) -> str:
    """Name a few cells along one axis by their weights and positions, others by their number."""
    along = [axis for axis in range(len(index)) if index[axis].min() < index[axis].max()]
    if len(along) != 1 or along[0] not in places or len(values) > MOST_NAMED:
        return f"sum of {len(values)} features"
    place = index[along[0]] - index[along[0]].min()
    cells = ",".join(f"{value:g}@{at}" for at, value in zip(place, values, strict=True))
    return f"kernel({cells})"


def _pair_of(values: np.ndarray, index: Index, places: Sequence[int]) -> str | None:
    """Name two equal boxes that weigh 1 and -1, by their size and how far apart they are."""
    low, size = [], []
    for sign in (1, -1):
        inside = [i[values == sign] for i in index]
        if 2 * len(inside[0]) != len(values):
            return None
        low.append([int(i.min()) for i in inside])
        size.append([int(i.max() - i.min()) + 1 for i in inside])
    if size[0] != size[1] or 2 * math.prod(size[0]) != len(values):
        return None
    width = "x".join(str(size[0][axis]) for axis in places) or "1"
    apart = ",".join(str(low[1][axis] - low[0][axis]) for axis in places) or "0"
    return f"pair width {width} apart {apart}"
