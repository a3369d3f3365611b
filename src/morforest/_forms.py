"""Forms of the atoms of a fitted forest: from the core's cells and windows back to features."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

NONE, MAX, MIN, MEAN, PROPORTION, VARIANCE, WIN = range(7)  # the core's numbers
OPS = ("none", "max", "min", "mean", "proportion", "variance", "win")
COUNTS = (PROPORTION, WIN)  # of positions
TURNS = 3  # how often a circular axis stands in a pooled view


@dataclass(frozen=True)
class PooledView:
    """Where the cells of a pooled view stand; see core/form.hpp."""

    shape: tuple[int, ...]
    prefixed: int
    circular: int
    begin: int

    def lengths(self) -> list[int]:
        """Return the length of each axis in the view."""
        return [
            length * (TURNS if self.circular >> axis & 1 else 1)
            for axis, length in enumerate(self.shape)
        ]

    def strides(self) -> list[int]:
        """Return the cells between neighbours along each axis."""
        lengths = self.lengths()
        return [math.prod(lengths[axis + 1 :]) for axis in range(len(lengths))]

    def lead(self) -> int:
        """Return the number of zeros ahead."""
        return sum(s for axis, s in enumerate(self.strides()) if self.prefixed >> axis & 1)

    def cells(self) -> int:
        """Return the number of cells."""
        return self.lead() + math.prod(self.lengths())

    def holds(self, cell: np.ndarray) -> np.ndarray:
        """Say which cells of a row belong to the view."""
        return (cell >= self.begin) & (cell < self.begin + self.cells())

    def on_features(
        self, node: np.ndarray, cell: np.ndarray, weight: np.ndarray, nodes: int
    ) -> np.ndarray:
        """Turn weighted cells into dense weights of features (nodes, features)."""
        dense = np.zeros((nodes, self.cells()))
        np.add.at(dense, (node, cell - self.begin), weight)
        for axis, stride in enumerate(self.strides()):
            if self.prefixed >> axis & 1:
                # A sum adds all cells at and before it by whole strides.
                rows = -(-dense.shape[1] // stride)
                padded = np.zeros((nodes, rows * stride))
                padded[:, : dense.shape[1]] = dense
                steps = padded.reshape(nodes, rows, stride)[:, ::-1]
                summed = np.cumsum(steps, axis=1)[:, ::-1].reshape(nodes, -1)
                dense = summed[:, : dense.shape[1]]
        planes = dense[:, self.lead() :].reshape(nodes, *self.lengths())
        for axis, length in enumerate(self.shape):
            if self.circular >> axis & 1:
                turns = np.split(planes, range(length, TURNS * length, length), axis=axis + 1)
                planes = np.sum(turns, axis=0)
        return planes.reshape(nodes, -1)


def read_views(numbers: np.ndarray, shape: tuple[int, ...], begin: int) -> list[PooledView]:
    """Return the pooled views of a row, which stand from cell `begin` on."""
    views = []
    for prefixed, circular, *_ in numbers.reshape(-1, 7).tolist():
        views.append(PooledView(shape, int(prefixed), int(circular), begin))
        begin += views[-1].cells()
    return views


def windows(first: np.ndarray, form_window: np.ndarray, views: list[PooledView]) -> np.ndarray:
    """Return the positions of each atom's window along each axis (atoms, axes).

    `first` is a cell of each atom, -1 where there is none, `form_window` what the core holds.
    """
    counts = np.ones((len(first), len(views[0].shape) if views else 1), dtype=np.int64)
    stored = form_window.astype(np.int64).reshape(-1, 2, 2)
    for view in views:
        here = view.holds(first)
        for axis, stride in enumerate(view.strides()):
            # Axes of length one have the stride of the one behind them, and nothing moves there.
            if view.shape[axis] > 1:
                along = here[:, np.newaxis] & (stored[:, :, 1] == stride) & (stored[:, :, 0] > 1)
                found = np.where(along, stored[:, :, 0], 1).max(axis=1)
                counts[:, axis] = np.maximum(counts[:, axis], found)
    return counts


def node_windows(forest: Any, nodes: slice) -> np.ndarray:
    """Return the positions of each node's window along each axis (nodes, axes)."""
    count = forest.term_count.astype(np.int64)
    first = np.full(len(count), -1, dtype=np.int64)
    begin = np.cumsum(count) - count
    first[count > 0] = forest.term_cell[begin[count > 0]]
    stored = forest.form_window.reshape(-1, 4)[nodes]
    return windows(first[nodes], stored, forest._pooled_views())


def over_windows(atoms: np.ndarray, forest: Any, nodes: slice) -> np.ndarray:
    """Return the mean size of the atoms' weights over the positions of their windows."""
    if not len(forest.pooled_views):
        return atoms
    counts = node_windows(forest, nodes)
    rows = len(atoms)
    sizes = np.abs(atoms).reshape(rows, -1, *forest.shape)
    for axis, length in enumerate(forest.shape):
        count = counts[:, axis]
        # Sums over so many places up to each, round the axis: others than circular ones do not
        # reach its end. They are whole numbers, and exact.
        along = np.moveaxis(sizes, axis + 2, -1)
        sums = np.cumsum(np.concatenate([along, along], axis=-1), axis=-1)
        below = np.arange(length, 2 * length) - count[:, np.newaxis]
        below = below.reshape(rows, *[1] * (sums.ndim - 2), length)
        below = np.broadcast_to(below, along.shape)
        along = sums[..., length:] - np.take_along_axis(sums, below, axis=-1)
        sizes = np.moveaxis(along, -1, axis + 2)
    return sizes.reshape(rows, -1) / counts.prod(axis=1)[:, np.newaxis]


def own_terms(count: np.ndarray, forest: Any) -> np.ndarray:
    """Say of each term whether it is its atom's own, and not a rival's.

    `count` has the terms of each atom, and `forest` its forms.
    """
    own = count.astype(np.int64)
    if len(forest.form_op):
        won = forest.form_op == WIN
        own[won] //= forest.form_bias[won].astype(np.int64) + 1
    first = np.cumsum(count, dtype=np.int64) - count
    found: np.ndarray = np.arange(count.sum()) - np.repeat(first, count) < np.repeat(own, count)
    return found


def values_of(values: np.ndarray, forest: Any, shift: int) -> np.ndarray:
    """Turn values of each node's atom, in the core's numbers, into the user's units."""
    op = forest.form_op
    stored = forest.form_window.astype(np.int64).reshape(-1, 2, 2)
    positions = np.maximum(stored[:, 0, 0] * stored[:, 1, 0], 1)
    count = forest.term_count.astype(np.int64)
    area = np.ones(len(op))  # of a variance, the weight of its last corner
    here = op == VARIANCE
    area[here] = forest.term_weight[np.cumsum(count)[here] - 1]
    counts = np.isin(op, COUNTS)
    shifts = np.select([counts, here], [0, 2 * shift], shift)
    parts = np.select([counts | (op == MEAN), here], [positions, area * area], 1.0)
    found: np.ndarray = np.ldexp(values, -shifts) / parts
    return found
