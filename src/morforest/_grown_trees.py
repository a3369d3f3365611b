"""Trees as the core has grown them, and the forest that they make."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from morforest._arrays import no_numbers
from morforest._atoms import AtomList, RowLayout
from morforest._columns import Columns
from morforest._fixed_point import CellFormat, TargetFormat
from morforest._model import Forest
from morforest._native import core
from morforest._outputs import OutputFormats

# The arrays that trees bring into a forest, beside their sizes and atoms.
ARRAYS = (
    "next",
    "threshold",
    "weight",
    "gain",
    "distribution_size",
    "distribution_class",
    "distribution_weight",
    "leaf_value",
)


@dataclass(eq=False)
class GrownTrees:
    """The trees of one call of the core; see `Forest` for the arrays.

    Payloads of leaves count within the call.
    """

    atoms: AtomList
    tree_size: np.ndarray
    next: np.ndarray
    threshold: np.ndarray
    weight: np.ndarray
    gain: np.ndarray
    distribution_size: np.ndarray
    distribution_class: np.ndarray
    distribution_weight: np.ndarray
    leaf_value: np.ndarray
    side: np.ndarray  # of missing values; empty if none were

    @classmethod
    def from_core(cls, layout: RowLayout, trees: core.Trees) -> GrownTrees:
        """Read trees of the core."""
        leaves = trees.leaves
        return cls(
            AtomList.from_core(layout, trees.atoms),
            trees.tree_size,
            trees.next,
            trees.threshold,
            trees.weight,
            trees.gain,
            leaves.distribution_size,
            leaves.distribution_class,
            leaves.distribution_weight,
            leaves.value,
            trees.side,
        )


def assemble(
    grown: list[GrownTrees],
    cell_format: CellFormat,
    columns: Columns | None,
    class_count: int,
    target_format: TargetFormat | OutputFormats | None,
    before: Forest | None = None,
    values: int = 1,
    classes_of: tuple[int, ...] = (),
) -> Forest:
    """Put what calls of the core have grown behind one another, after earlier trees.

    The list is emptied, and each array goes once it is joined, to hold little at once.
    """
    gain_exponent = 0 if target_format is None else target_format.gain_exponent
    payload_array = "distribution_size" if class_count else "leaf_value"
    sizes = np.array([len(some.next) for some in grown], dtype=np.int64)
    payloads = np.array([len(getattr(some, payload_array)) // values for some in grown])
    atoms = AtomList.concatenate(
        [
            *([] if before is None else [before.atoms]),
            *(some.__dict__.pop("atoms") for some in grown),
        ]
    )
    arrays = {
        name: np.concatenate([some.__dict__.pop(name) for some in grown])
        for name in ("tree_size", *ARRAYS)
    }
    sides = [(some.side, int(size)) for some, size in zip(grown, sizes, strict=True)]
    grown.clear()
    begin = np.append(0, np.cumsum(arrays.pop("tree_size"), dtype=np.int64))
    skipped = np.append(0, np.cumsum(payloads))
    if target_format is not None:
        arrays["leaf_value"] = target_format.decode(arrays["leaf_value"])
    if before is not None:
        begin = np.append(before.tree_begin[:-1].astype(np.int64), begin + len(before.next))
        skipped += len(getattr(before, payload_array)) // values
    if before is not None:
        sides.insert(0, (before.side, len(before.next)))
    # Payloads count within a call; those that point to a pure class stay.
    dtype = np.int32 if skipped[-1] + class_count < 2**31 else np.int64
    following: np.ndarray = arrays["next"].astype(dtype)
    moved = following < -class_count
    following[moved] -= np.repeat(skipped[:-1].astype(dtype), sizes)[moved]
    arrays["next"] = following
    if before is not None:
        gain = np.ldexp(before.gain, before.gain_exponent - gain_exponent)
        for name, added in arrays.items():
            earlier = gain if name == "gain" else getattr(before, name)
            arrays[name] = np.concatenate([earlier, added])
    return Forest(
        atoms=atoms,
        cell_format=cell_format,
        columns=columns,
        class_count=class_count,
        gain_exponent=gain_exponent,
        tree_begin=begin,
        values=values,
        side=_join_sides(sides),
        classes_of=classes_of,
        **arrays,
    )


def _join_sides(parts: list[tuple[np.ndarray, int]]) -> np.ndarray:
    """Join the sides of some numbers of nodes; those that have none are zeros."""
    if not any(len(side) for side, _ in parts):
        return no_numbers()
    return np.concatenate(
        [side if len(side) else np.zeros(nodes, dtype=np.uint8) for side, nodes in parts]
    )
