"""The fitted forest in a file: nothing that follows from the rest, the rest in narrow types.

Children follow from which nodes are split, because growth goes depth first; weights of splits are
sums of those of their leaves; corners follow from patches. What does not follow (best-first growth,
atoms that are no rectangles) is written as it is.
"""

from __future__ import annotations

import importlib.abc
import math
import operator
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from morforest._native import core

FORMAT = 2
COLUMNS_FORMAT = 3  # of forests that have columns, which readers of the other would ignore
READABLE = (1, FORMAT, COLUMNS_FORMAT)  # 1: without sources
RAW_SOURCE = np.array([0.0, 0.0, 0.0, 1.0, 0.0])  # as the core takes it
FORM_WINDOW = 4  # numbers a node: counts and strides of two windows
LARGE = 255  # marks leaf weights of at least this, which stand apart
CORNER_SIGNS = np.array([1, -1, -1, 1], dtype=np.int8)  # above left, above, left, last
# Modules that pickles from before the first release name.
_NAMES = ("_numbers", "_dictionary", "boxes", "kernels", "channels")
RETIRED = {f"morforest.{name}" for name in _NAMES}


class _Retired(importlib.abc.MetaPathFinder):
    """Says what is wrong with a pickle that names a module of long ago."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> None:
        """Raise for retired modules; find nothing else."""
        if name in RETIRED:
            raise ModuleNotFoundError(
                f"No module named {name!r}: this model was saved by an earlier morforest whose "
                "pickles this version does not read; fit it again.",
                name=name,
            )


sys.meta_path.append(_Retired())  # at the end: asked only for what no other finder has


def raw_sources(views: int) -> np.ndarray:
    """Return the sources of views that all look at the raw values."""
    return np.tile(RAW_SOURCE, views)


def narrow(values: np.ndarray) -> np.ndarray:
    """Store whole numbers in the narrowest integer type that holds them."""
    if values.dtype == np.float32 or values.dtype.kind not in "iuf" or not values.size:
        return values
    whole = values.dtype.kind != "f" or ((np.abs(values) < 128) & (values == np.rint(values))).all()
    if not whole:
        return values
    low, high = int(values.min()), int(values.max())
    types = (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.int64)
    for dtype in types:
        limits = np.iinfo(dtype)
        if limits.min <= low and high <= limits.max:
            return values.astype(dtype, copy=False)
    return values


def widen(name: str, values: Any, dtype: Any) -> np.ndarray:
    """Convert to a type of the core, refusing values that it does not hold."""
    values, dtype = np.asarray(values), np.dtype(dtype)
    if values.dtype.kind not in "iuf" or values.ndim != 1:
        raise ValueError(f"damaged forest: {name} is not a row of numbers")
    if dtype.kind != "f" and values.dtype != dtype and values.size:
        limits = np.iinfo(dtype)
        whole = values.dtype.kind != "f" or (
            np.isfinite(values).all() and (values == np.rint(values)).all()
        )
        if not whole or values.min() < limits.min or values.max() > limits.max:
            raise ValueError(f"damaged forest: {name} has impossible values")
    return np.ascontiguousarray(values, dtype=dtype)


def pack(forest: Any) -> dict[str, Any]:
    """Return what has to be written."""
    split = forest.is_split()
    begin, following = forest.tree_begin.astype(np.int64), forest.next.astype(np.int32)
    classes = forest.class_count
    # Of payloads that count up only the kind is kept.
    kind = np.minimum(-1 - following[~split].astype(np.int64), classes)
    same = np.array_equal(_follow(begin, split, kind, classes), following)
    leaf_weight = forest.weight[~split]
    return {
        **({"format": FORMAT} if forest.columns is None else _pack_columns(forest)),
        "shape": forest.shape,
        "sources": forest.sources,
        "views": forest.views,
        "cell_format": forest.cell_format,
        "class_count": classes,
        "gain_exponent": forest.gain_exponent,
        "tree_begin": forest.tree_begin,
        "split": np.packbits(split),
        "leaf_kind": narrow(kind if classes else kind[:0]),
        "next": forest.next[:0] if same else forest.next,
        "threshold": narrow(forest.threshold[split]),
        "gain": forest.gain[split],
        "leaf_weight": np.minimum(leaf_weight, LARGE).astype(np.uint8),
        "large_leaf_weight": leaf_weight[leaf_weight >= LARGE],
        **(_pack_patches(forest, split) or _pack_terms(forest, split)),
        **_pack_forms(forest, split),
        "distribution_size": forest.distribution_size,
        "distribution_class": forest.distribution_class,
        "distribution_weight": forest.distribution_weight,
        "leaf_value": forest.leaf_value,
        "values": forest.values,
    }


def unpack(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the forest."""
    if not isinstance(state, Mapping) or state.get("format") not in READABLE:
        found = state.get("format") if isinstance(state, Mapping) else None
        raise ValueError(
            f"the forest was saved in format {found!r}, this version of morforest reads formats "
            f"{READABLE[0]} to {READABLE[-1]}: load it with the version that saved it, or fit it "
            "again."
        )
    try:
        return _unpack(state)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"damaged forest: {type(error).__name__}: {error}") from None


def _unpack(state: Mapping[str, Any]) -> dict[str, Any]:
    begin = widen("tree_begin", state["tree_begin"], np.int64)
    bits = widen("split", state["split"], np.uint8)
    nodes = int(begin[-1]) if len(begin) else 0
    if (begin[:1] != 0).any() or (np.diff(begin) < 1).any() or len(bits) != -(-nodes // 8):
        raise ValueError("damaged forest: tree offsets do not fit the nodes")
    split = np.unpackbits(bits, count=nodes).astype(bool)
    following = widen("next", state["next"], np.int32)
    if not len(following):
        kind = state["leaf_kind"]
        if not state["class_count"]:  # there is but one kind
            kind = np.zeros(nodes - int(split.sum()), dtype=np.uint8)
        following = _follow(begin, split, kind, state["class_count"])
    weight = widen("leaf_weight", state["leaf_weight"], np.uint32).copy()
    large = weight == LARGE
    weight[large] = _as_many("large_leaf_weight", state["large_leaf_weight"], int(large.sum()))
    if state.get("patch_last") is not None:
        count, cell, term_weight = _unpack_patches(state)
    else:
        count, cell, term_weight = _unpack_terms(state)
    columns = state["columns"] if state["format"] == COLUMNS_FORMAT else None
    if (columns is None) != (state["format"] != COLUMNS_FORMAT):
        raise ValueError("damaged forest: no columns")
    kept = ("shape", "views", "cell_format", "class_count", "gain_exponent", "tree_begin")
    leaf_data = ("distribution_size", "distribution_class", "distribution_weight", "leaf_value")
    return {
        **{name: state[name] for name in (*kept, *leaf_data)},
        "values": operator.index(state["values"]) if state["format"] > 1 else 1,
        "columns": columns,
        "sources": state["sources"] if state["format"] > 1 else raw_sources(len(state["views"])),
        "next": following,
        "threshold": _at_splits("threshold", split, state["threshold"]),
        "weight": core.node_weights(begin, following, weight),
        "gain": _at_splits("gain", split, state["gain"]),
        "term_count": _at_splits("term_count", split, count),
        "term_cell": cell,
        "term_weight": term_weight,
        **_unpack_forms(state, split),
    }


def _follow(begin: np.ndarray, split: np.ndarray, kind: Any, class_count: int) -> np.ndarray:
    following: np.ndarray = core.depth_first_next(
        begin, split.astype(np.uint8), widen("leaf_kind", kind, np.uint32), class_count
    )
    return following


def _as_many(name: str, values: Any, count: int) -> np.ndarray:
    values = np.asarray(values)
    if values.shape != (count,) or values.dtype.kind not in "iuf":
        raise ValueError(f"damaged forest: {name} does not fit the nodes")
    return values


def _at_splits(name: str, split: np.ndarray, values: Any) -> np.ndarray:
    values = _as_many(name, values, int(split.sum()))
    everywhere = np.zeros(len(split), dtype=values.dtype)
    everywhere[split] = values
    return everywhere


def _pack_terms(forest: Any, split: np.ndarray) -> dict[str, np.ndarray]:
    weight = forest.term_weight
    terms = {"term_count": narrow(forest.term_count[split]), "term_cell": forest.term_cell}
    if len(weight) and (np.abs(weight) == 1).all():
        return {**terms, "term_minus": np.packbits(weight < 0)}
    return {**terms, "term_weight": weight}


def _pack_columns(forest: Any) -> dict[str, Any]:
    return {"format": COLUMNS_FORMAT, "columns": forest.columns}


def _unpack_terms(state: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    cell = np.asarray(state["term_cell"])
    if "term_weight" in state:
        return state["term_count"], cell, state["term_weight"]
    bits = widen("term_minus", state["term_minus"], np.uint8)
    if len(bits) != -(-cell.size // 8):
        raise ValueError("damaged forest: term_minus does not fit the terms")
    minus = np.unpackbits(bits, count=cell.size)
    return state["term_count"], cell, 1 - 2 * minus.astype(np.int8)


def _pack_forms(forest: Any, split: np.ndarray) -> dict[str, np.ndarray]:
    if not len(forest.form_op) and not len(forest.pooled_views):
        return {}
    return {
        "pooled_views": forest.pooled_views,
        "form_op": forest.form_op[split],
        "form_bias": forest.form_bias[split],
        "form_window": forest.form_window[np.repeat(split, FORM_WINDOW)],
    }


def _unpack_forms(state: Mapping[str, Any], split: np.ndarray) -> dict[str, np.ndarray]:
    if "form_op" not in state:
        return {}
    return {
        "pooled_views": state["pooled_views"],
        "form_op": _at_splits("form_op", split, state["form_op"]),
        "form_bias": _at_splits("form_bias", split, state["form_bias"]),
        "form_window": _at_splits(
            "form_window", np.repeat(split, FORM_WINDOW), state["form_window"]
        ),
    }


def _plane(shape: tuple[int, ...], views: np.ndarray) -> tuple[int, int] | None:
    """Return the rows and columns over which prefix sums run, if it is these alone."""
    last = 1 << (len(shape) - 1)
    if len(views) == 1 and int(views[0]) == last:
        return 1, shape[-1]
    if len(views) == 1 and len(shape) > 1 and int(views[0]) == last | last >> 1:
        return shape[-2], shape[-1]
    return None


def _pack_patches(forest: Any, split: np.ndarray) -> dict[str, Any] | None:
    """Write rectangles as their last cell and their size; None if not all atoms are such."""
    plane = _plane(forest.shape, forest.views)
    if len(forest.form_op) or not np.array_equal(forest.sources, raw_sources(len(forest.views))):
        return None
    count = forest.term_count[split].astype(np.int64)
    if plane is None or not len(count) or not np.isin(count, (1, 2, 4)).all():
        return None
    columns = plane[1]
    cell = forest.term_cell.astype(np.int64)
    end = np.cumsum(count)
    first, last, beside = cell[end - count], cell[end - 1], cell[end - np.minimum(count, 2)]
    height = last // columns - first // columns
    height = np.where(height == 0, last // columns % plane[0] + 1, height)
    width = last - beside
    in_row = (width > 0) & (beside // columns == last // columns)
    width = np.where(in_row, width, last % columns + 1)
    corners = _corners(last, height, width, plane)
    theirs = (count, cell, forest.term_weight)
    if not all(np.array_equal(a, b) for a, b in zip(corners, theirs, strict=True)):
        return None
    widest = int(width.max())
    size = (height - 1) * widest + width - 1
    return {"patch_last": narrow(last), "patch_size": narrow(size), "widest_patch": widest}


def _unpack_patches(state: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    plane = _plane(state["shape"], state["views"])
    last = widen("patch_last", state["patch_last"], np.int64)
    size = widen("patch_size", _as_many("patch_size", state["patch_size"], len(last)), np.int64)
    widest = operator.index(state["widest_patch"])
    if plane is None or widest < 1:
        raise ValueError("damaged forest: patches do not fit the samples")
    height, width = size // widest + 1, size % widest + 1
    possible = (last >= 0) & (last < math.prod(state["shape"])) & (size >= 0)
    possible &= (height <= last // plane[1] % plane[0] + 1) & (width <= last % plane[1] + 1)
    if not possible.all():
        raise ValueError("damaged forest: patches do not fit the samples")
    return _corners(last, height, width, plane)


def _corners(
    last: np.ndarray, height: np.ndarray, width: np.ndarray, plane: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the number, the cells and the weights of the corners of rectangles."""
    rows, columns = plane
    above = height <= last // columns % rows
    beside = width <= last % columns
    top = last - height * columns
    cell = np.stack([top - width, top, last - width, last], axis=1)
    there = np.stack([above & beside, above, beside, np.ones(len(last), dtype=bool)], axis=1)
    signs = np.broadcast_to(CORNER_SIGNS, cell.shape)
    return there.sum(axis=1), cell[there], signs[there]
