"""Honest trees: the samples that choose splits are not those that fill leaves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from morforest._native import core


@dataclass(frozen=True)
class Honesty:
    """How the samples of an honest tree are parted.

    Samples that are equal, targets included, form a group and stay together, so that a repeated
    sample, or one with a whole-number weight, is never on both sides.
    """

    share: float | None  # of the groups drawn that fill leaves; None: those that were not drawn
    order: np.ndarray  # rows in canonical order
    group: np.ndarray  # number of the group of each row, in that order
    # Of the rows, which are parted class by class; empty for regression and several outputs.
    classes: np.ndarray

    def part(
        self, tree_keys: np.ndarray, drawn: np.ndarray, count: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return how often rows count for splits, and how often for leaves (trees, rows).

        `drawn` are the bags of the trees, and `count` says how often each row is there.
        """
        if self.share is None:
            splits, leaves = drawn.copy(), self._not_drawn(drawn) * count
        else:
            chosen = core.choose_leaf_rows(
                tree_keys, self.share, self.order, self.group, self.classes, drawn
            )
            leaves = drawn * chosen
            splits = drawn - leaves
        # A tree whose samples cannot be parted is a single leaf, which says what all of them say:
        # it sees one group when it looks for splits.
        for tree in np.flatnonzero(~splits.any(axis=1) | ~leaves.any(axis=1)):
            in_order = drawn[tree, self.order]
            first = self.group == self.group[np.flatnonzero(in_order)[0]]
            splits[tree] = 0
            splits[tree, self.order[first]] = in_order[first]
            leaves[tree] = drawn[tree]
        return splits.astype(np.uint32), leaves.astype(np.uint32)

    def _not_drawn(self, drawn: np.ndarray) -> np.ndarray:
        """Mark the rows of groups of which no row was drawn."""
        begin = np.flatnonzero(np.diff(self.group, prepend=-1))
        of_group = np.add.reduceat(drawn[:, self.order] > 0, begin, axis=1, dtype=np.int64)
        left_out = np.empty(drawn.shape, dtype=bool)
        left_out[:, self.order] = of_group[:, self.group] == 0
        return left_out


def make_honesty(
    share: float | None,
    hashes: np.ndarray,
    target: np.ndarray,
    order: np.ndarray,
    classes: np.ndarray,
) -> Honesty:
    """Find the groups of equal samples."""
    ordered, targets = hashes[order], target[order].reshape(len(order), -1)
    differs = (ordered[1:] != ordered[:-1]) | (targets[1:] != targets[:-1]).any(axis=1)
    group = np.append(0, np.cumsum(differs)).astype(np.uint32)
    return Honesty(share, order, group, np.ascontiguousarray(classes, dtype=np.uint32))
