"""The fitted forest in a file: nothing that follows from the rest, the rest in narrow types.

Children follow from which nodes are split, because growth goes depth first; weights of splits are
sums of those of their leaves; corners follow from patches. What does not follow (best-first growth,
atoms that are no boxes) is written as it is.
"""

from __future__ import annotations

import importlib.abc
import operator
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from morforest._arrays import OLD, narrow, read_numbers, widen
from morforest._atoms import AtomList, RowLayout, read_atoms
from morforest._fixed_point import CellFormat
from morforest._native import core

if TYPE_CHECKING:
    from morforest._model import Forest

FORMAT = 5
LEAF_TYPES: dict[str, Any] = {
    "distribution_size": np.uint32,
    "distribution_class": np.uint32,
    "distribution_weight": np.uint32,
    "leaf_value": np.float64,
}
LARGE = 255  # marks leaf weights of at least this, which stand apart
CORNER_SIGNS = np.array([1, -1, -1, 1], dtype=np.int8)  # above left, above, left, last
# Modules that pickles from before the first release name.
_NAMES = (
    "_numbers",
    "_dictionary",
    "_forms",
    "boxes",
    "kernels",
    "channels",
)
RETIRED = {f"morforest.{name}" for name in _NAMES}


class _Retired(importlib.abc.MetaPathFinder):
    """Says what is wrong with a pickle that names a module of long ago."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        """Raise for retired modules; find nothing else."""
        if name in RETIRED:
            raise ModuleNotFoundError(
                f"No module named {name!r}: this model was saved by an earlier morforest whose "
                "pickles this version does not read; fit it again.",
                name=name,
            )


sys.meta_path.append(_Retired())  # at the end: asked only for what no other finder has


def pack(forest: Forest) -> dict[str, Any]:
    """Return what has to be written."""
    split = forest.is_split()
    begin, following = forest.tree_begin.astype(np.int64), forest.next.astype(np.int32)
    classes = forest.class_count
    # Of payloads that count up only the kind is kept.
    kind = np.minimum(-1 - following[~split].astype(np.int64), classes)
    same = np.array_equal(_follow(begin, split, kind, classes), following)
    leaf_weight = forest.weight[~split]
    return {
        "format": FORMAT,
        "layout": forest.atoms.layout.dump(),
        "cell_format": forest.cell_format.dump(),
        "columns": forest.columns,
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
        **(_pack_patches(forest.atoms, split) or _pack_terms(forest.atoms, split)),
        **_pack_operations(forest.atoms, split),
        "distribution_size": forest.distribution_size,
        "distribution_class": forest.distribution_class,
        "distribution_weight": forest.distribution_weight,
        "leaf_value": forest.leaf_value,
        "values": forest.values,
        "side": forest.side[split] if len(forest.side) else forest.side,
        **({"classes_of": forest.classes_of} if forest.classes_of else {}),
    }


def unpack(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the forest."""
    found = state.get("format") if isinstance(state, Mapping) else None
    if type(found) is not int or found != FORMAT:
        raise ValueError(
            f"{OLD} {found!r}, this version of morforest reads format "
            f"{FORMAT}: load it with the version that saved it, or fit it again."
        )
    begin = widen("tree_begin", state["tree_begin"], np.int64)
    bits = widen("split", state["split"], np.uint8)
    nodes = int(begin[-1]) if len(begin) else 0
    if (begin[:1] != 0).any() or (np.diff(begin) < 1).any() or len(bits) != -(-nodes // 8):
        raise ValueError("damaged forest: tree offsets do not fit the nodes")
    split = np.unpackbits(bits, count=nodes).astype(bool)
    class_count = operator.index(state["class_count"])
    following = widen("next", state["next"], np.int32)
    if not len(following):
        kind = state["leaf_kind"]
        if not class_count:  # there is but one kind
            kind = np.zeros(nodes - int(split.sum()), dtype=np.uint8)
        following = _follow(begin, split, kind, class_count)
    weight = widen("leaf_weight", state["leaf_weight"], np.uint32).copy()
    large = weight == LARGE
    weight[large] = widen(
        "large_leaf_weight",
        _as_many("large_leaf_weight", state["large_leaf_weight"], int(large.sum())),
        np.uint32,
    )
    return {
        **{name: read_numbers(name, state[name], dtype) for name, dtype in LEAF_TYPES.items()},
        "columns": state["columns"],
        "tree_begin": narrow(begin),
        "cell_format": CellFormat.load(state["cell_format"]),
        "class_count": class_count,
        "gain_exponent": operator.index(state["gain_exponent"]),
        "values": operator.index(state["values"]),
        "classes_of": state.get("classes_of", ()),
        "next": following,
        "threshold": _at_splits("threshold", split, state["threshold"]),
        "weight": core.node_weights(begin, following, weight),
        "gain": _at_splits("gain", split, state["gain"]),
        "side": _unpack_sides(split, state["side"]),
        "atoms": _unpack_atoms(RowLayout.load(state["layout"]), state, split),
    }


def _follow(begin: np.ndarray, split: np.ndarray, kind: Any, class_count: int) -> np.ndarray:
    following: np.ndarray = core.depth_first_next(
        begin, split.astype(np.uint8), widen("leaf_kind", kind, np.uint32), class_count
    )
    return following


def _as_many(name: str, values: Any, count: int, each: tuple[int, ...] = ()) -> np.ndarray:
    found: np.ndarray = np.asarray(values)
    if found.shape != (count, *each) or found.dtype.kind not in "iuf":
        raise ValueError(f"damaged forest: {name} does not fit the nodes")
    return found


def _at_splits(name: str, split: np.ndarray, values: Any, each: tuple[int, ...] = ()) -> np.ndarray:
    values = _as_many(name, values, int(split.sum()), each)
    everywhere = np.zeros((len(split), *each), dtype=values.dtype)
    everywhere[split] = values
    return everywhere


def _unpack_sides(split: np.ndarray, side: Any) -> np.ndarray:
    found = widen("side", side, np.uint8)
    return _at_splits("side", split, found) if len(found) else found


def _pack_terms(atoms: AtomList, split: np.ndarray) -> dict[str, np.ndarray]:
    weight = atoms.weight
    terms = {"term_count": narrow(atoms.count[split]), "term_cell": atoms.cell}
    if len(weight) and (np.abs(weight) == 1).all():
        return {**terms, "term_minus": np.packbits(weight < 0)}
    return {**terms, "term_weight": weight}


def _pack_operations(atoms: AtomList, split: np.ndarray) -> dict[str, np.ndarray]:
    if atoms.linear:
        return {}
    return {name: getattr(atoms, name)[split] for name in ("operation", "bias", "window")}


def _unpack_atoms(layout: RowLayout, state: Mapping[str, Any], split: np.ndarray) -> AtomList:
    patches = "patch_last" in state
    count, cell, weight = (_unpack_patches if patches else _unpack_terms)(layout, state)
    arrays = {"count": _at_splits("term_count", split, count), "cell": cell, "weight": weight}
    if "operation" in state:
        for name in ("operation", "bias", "window"):
            each = (2, 2) if name == "window" else ()
            arrays[name] = _at_splits(name, split, state[name], each)
    return AtomList(layout, **read_atoms(arrays))


def _unpack_terms(
    layout: RowLayout, state: Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    cell = widen("term_cell", state["term_cell"], np.uint32)
    if "term_weight" in state:
        return state["term_count"], cell, np.asarray(state["term_weight"])
    bits = widen("term_minus", state["term_minus"], np.uint8)
    if len(bits) != -(-cell.size // 8):
        raise ValueError("damaged forest: term_minus does not fit the terms")
    minus = np.unpackbits(bits, count=cell.size)
    return state["term_count"], cell, 1 - 2 * minus.astype(np.int8)


def _grid(layout: RowLayout) -> tuple[int, int] | None:
    """Return the rows and columns over which the only plane is summed, if it is these alone."""
    shape, rank = layout.shape, len(layout.shape)
    if not layout.only_raw or len(layout.planes) > 1:
        return None
    axes = layout.planes[0].prefixed_axes
    if axes == (rank - 1,):
        return 1, shape[-1]
    if rank > 1 and axes == (rank - 2, rank - 1):
        return shape[-2], shape[-1]
    return None


def _pack_patches(atoms: AtomList, split: np.ndarray) -> dict[str, Any] | None:
    """Write boxes as their last cell and their size; None if not all atoms are such."""
    grid = _grid(atoms.layout)
    count = atoms.count[split].astype(np.int64)
    if not atoms.linear or grid is None or not len(count) or not np.isin(count, (1, 2, 4)).all():
        return None
    columns = grid[1]
    cell = atoms.cell.astype(np.int64)
    end = np.cumsum(count)
    first, last, beside = cell[end - count], cell[end - 1], cell[end - np.minimum(count, 2)]
    height = last // columns - first // columns
    height = np.where(height == 0, last // columns % grid[0] + 1, height)
    width = last - beside
    in_row = (width > 0) & (beside // columns == last // columns)
    width = np.where(in_row, width, last % columns + 1)
    corners = _corners(last, height, width, grid)
    theirs = (count, cell, atoms.weight)
    if not all(np.array_equal(a, b) for a, b in zip(corners, theirs, strict=True)):
        return None
    widest = int(width.max())
    size = (height - 1) * widest + width - 1
    return {"patch_last": narrow(last), "patch_size": narrow(size), "widest_patch": widest}


def _unpack_patches(
    layout: RowLayout, state: Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    grid = _grid(layout)
    last = widen("patch_last", state["patch_last"], np.int64)
    size = widen("patch_size", _as_many("patch_size", state["patch_size"], len(last)), np.int64)
    widest = operator.index(state["widest_patch"])
    if grid is None or not 1 <= widest <= grid[1]:
        raise ValueError("damaged forest: patches do not fit the samples")
    height, width = size // widest + 1, size % widest + 1
    possible = (last >= 0) & (last < layout.features) & (size >= 0)
    possible &= (height <= last // grid[1] % grid[0] + 1) & (width <= last % grid[1] + 1)
    if not possible.all():
        raise ValueError("damaged forest: patches do not fit the samples")
    return _corners(last, height, width, grid)


def _corners(
    last: np.ndarray, height: np.ndarray, width: np.ndarray, grid: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the number, the cells and the weights of the corners of boxes."""
    rows, columns = grid
    above = height <= last // columns % rows
    beside = width <= last % columns
    top = last - height * columns
    cell = np.stack([top - width, top, last - width, last], axis=1)
    there = np.stack([above & beside, above, beside, np.ones(len(last), dtype=bool)], axis=1)
    signs = np.broadcast_to(CORNER_SIGNS, cell.shape)
    return there.sum(axis=1), cell[there], signs[there]
