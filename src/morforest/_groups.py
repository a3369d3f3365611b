"""Groups of samples that are held out together: those of one patient, machine or day."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from morforest._bagging import Bagging
from morforest._native import core

SHARE = 0.632  # of the groups that a tree sees, as many as a bootstrap sample has of samples


def hold_out_groups(
    groups: np.ndarray, classes: np.ndarray | None, fraction: float, seed: int
) -> np.ndarray:
    """Mark the rows of groups that judge when to stop: the same share of the groups of each class.

    A group belongs to the class that most of its samples have. One group per class at least remains
    for training.
    """
    labels = np.unique(groups)
    number = np.searchsorted(labels, groups)
    stratum = _counts(number, classes).argmax(axis=1)
    key = core.tree_key(seed, core.Purpose.HELD_OUT_ROWS)
    order = np.arange(len(labels), dtype=np.uint32)
    chosen = np.zeros(len(labels), dtype=bool)
    for one in np.unique(stratum):
        count = (stratum == one).astype(np.uint32)
        draws = min(round(fraction * int(count.sum())), int(count.sum()) - 1)
        if draws > 0:
            chosen |= core.draw_rows(key, draws, order, count, core.StopFlag()) > 0
    if not chosen.any():
        raise ValueError(
            f"early_stopping=True with validation_fraction={fraction} holds no group out of "
            f"{len(labels)}: give a larger fraction, or no early_stopping."
        )
    held_out: np.ndarray = chosen[number]
    return held_out


def deal_groups(groups: np.ndarray, classes: np.ndarray | None, folds: int) -> list[np.ndarray]:
    """Deal groups out to folds, so that each fold has about the same share of each class.

    Large groups come first, and among equal ones those of earlier labels. Each goes to the fold
    that has the least of its classes so far; among equal ones to the smallest, and to the first.
    """
    labels = np.unique(groups)
    number = np.searchsorted(labels, groups)
    counts = _counts(number, classes)
    totals = counts.sum(axis=0)
    fold_of = np.empty(len(labels), dtype=np.int64)
    dealt = np.zeros((folds, counts.shape[1]), dtype=np.int64)
    for group in np.argsort(-counts.sum(axis=1), kind="stable"):
        used = np.flatnonzero(counts[group])
        load = [
            math.fsum(counts[group, used] * (dealt[fold, used] / totals[used]))
            for fold in range(folds)
        ]
        best = min(range(folds), key=lambda fold: (load[fold], dealt[fold].sum(), fold))
        fold_of[group] = best
        dealt[best] += counts[group]
    return [np.flatnonzero(fold_of[number] == fold) for fold in range(folds)]


def _counts(number: np.ndarray, classes: np.ndarray | None) -> np.ndarray:
    """Count the samples of each group and class."""
    columns = np.zeros(len(number), dtype=np.int64) if classes is None else classes.astype(np.int64)
    counts = np.zeros((int(number.max()) + 1, int(columns.max()) + 1), dtype=np.int64)
    np.add.at(counts, (number, columns), 1)
    return counts


@dataclass(frozen=True)
class GroupBagging(Bagging):
    """Bags of whole groups: each tree has all rows of some groups, and none of the others."""

    number: np.ndarray | None = None  # of the group of each row

    @classmethod
    def of(cls, bagging: Bagging, groups: np.ndarray) -> GroupBagging:
        """Return bags of the same rows."""
        same = {field.name: getattr(bagging, field.name) for field in fields(bagging)}
        return cls(**same, number=np.unique(groups, return_inverse=True)[1])

    def _draw(self, tree_keys: np.ndarray, stop: core.StopFlag) -> np.ndarray:
        assert self.number is not None
        count = np.ones(int(self.number.max()) + 1, dtype=np.uint32)
        order = np.arange(len(count), dtype=np.uint32)
        draws = max(1, min(round(SHARE * len(count)), len(count) - 1))
        chosen = [core.draw_rows(int(key), draws, order, count, stop) for key in tree_keys]
        return np.where(np.stack(chosen)[:, self.number] > 0, self.count, 0).astype(np.uint32)
