"""Which rows each tree sees, and what they count for."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from morforest._fixed_point import exact_sum, fixed_weights
from morforest._honesty import Honesty, make_honesty
from morforest._native import core
from morforest._outputs import row_factors


@dataclass(frozen=True)
class TreeBags:
    """The rows of some trees (trees, rows): those that splits are chosen by, and those of leaves.

    Counts say how often a row was drawn, weights what it counts for; a row without a count is not
    used. The two parts are the same arrays unless trees are honest.
    """

    count: np.ndarray
    weight: np.ndarray
    leaf_count: np.ndarray
    leaf_weight: np.ndarray

    @property
    def used(self) -> np.ndarray:
        """Whether a tree has used a row for its splits or its leaves."""
        used: np.ndarray = self.count > 0
        return used if self.leaf_count is self.count else used | (self.leaf_count > 0)

    def tiled(self, rows: np.ndarray, times: int) -> TreeBags:
        """Return the bags of some rows, so many times one after the other."""

        def tile(array: np.ndarray) -> np.ndarray:
            return np.tile(array[:, rows], times)

        count, weight = tile(self.count), tile(self.weight)
        if self.leaf_count is self.count:
            return TreeBags(count, weight, count, weight)
        return TreeBags(count, weight, tile(self.leaf_count), tile(self.leaf_weight))

    @property
    def times_used(self) -> np.ndarray:
        """How often a tree has used a row for its splits or its leaves."""
        return self.count if self.leaf_count is self.count else self.count + self.leaf_count


@dataclass(frozen=True)
class Bagging:
    """Which training rows each tree sees, and what they count for.

    A forest is a function of the multiset of samples. Bags are drawn from the rows in canonical
    order, which depends on their content alone, so that neither the order of the rows matters nor
    whether a sample is repeated or has a whole-number weight.
    """

    order: np.ndarray  # rows in canonical order
    cumulative: np.ndarray  # cumulated whole-number weights in that order; empty if all are one
    draws: int  # samples that each tree draws; 0 if it has each row as often as `count` says
    replace: bool  # rows are drawn with replacement
    count: np.ndarray  # how often each row counts: its whole-number weight, or one
    extra: np.ndarray | None  # fractional sample weights, unless rows are drawn by them
    leaf_extra: np.ndarray | None  # the same for rows that were not drawn but fill leaves
    class_weight: Any
    classes: Any  # labels, in a list of several outputs
    codes: np.ndarray
    times: int = 1  # how often a tree has each row: once, and once per copy of augment=
    honesty: Honesty | None = None

    def fingerprint(self) -> str:
        """Return what tells these bags from those of other samples, weights or parameters."""
        digest = hashlib.blake2b(digest_size=16)
        parts = [self.order, self.cumulative, self.count, self.extra, self.leaf_extra]
        if self.honesty is not None:
            parts += [self.honesty.group, self.honesty.classes]
        class_weight = self.class_weight
        if class_weight is not None and not isinstance(class_weight, str):
            parts += [class_weight] if self.codes.ndim == 1 else class_weight
            class_weight = None
        share = None if self.honesty is None else (self.honesty.share,)
        digest.update(repr((self.draws, self.replace, class_weight, share)).encode())
        for part in parts:
            digest.update(b"" if part is None else np.ascontiguousarray(part).tobytes())
        if self.class_weight is not None:
            digest.update(self.codes.tobytes())
        return digest.hexdigest()

    def bags(self, tree_keys: np.ndarray, stop: core.StopFlag) -> TreeBags:
        """Return counts and weights of the rows of each tree; weights are the counts if equal."""
        drawn = self._draw(tree_keys, stop)
        if self.honesty is None:
            count, weight = self._weigh(drawn, self.extra)
            return TreeBags(count, weight, count, weight)
        splits, leaves = self.honesty.part(tree_keys, drawn, self.count)
        return TreeBags(*self._weigh(splits, self.extra), *self._weigh(leaves, self.leaf_extra))

    def _draw(self, tree_keys: np.ndarray, stop: core.StopFlag) -> np.ndarray:
        """Return how often each tree has each row."""
        if not self.draws:
            return np.tile(self.count, (len(tree_keys), 1))
        if self.replace:
            return core.draw_bags(tree_keys, self.draws, self.order, self.cumulative, stop)
        draws = [
            core.draw_rows(int(k), self.draws, self.order, self.count, stop) for k in tree_keys
        ]
        return np.stack(draws)

    def _weigh(self, count: np.ndarray, extra: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        if extra is None and self.class_weight is None:
            return count, count
        weighted = [self._weigh_tree(of_tree, extra) for of_tree in count]
        return np.stack([c for c, _ in weighted]), np.stack([w for _, w in weighted])

    def _weigh_tree(
        self, count: np.ndarray, extra: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        unit = np.ones(len(count)) if extra is None else extra
        if self.class_weight is not None:
            factors = row_factors(self.class_weight, self.classes, self.codes, unit * count)
            if factors[count > 0].any():  # else only classes of weight zero were drawn
                unit = unit * factors
        count = np.where(unit > 0, count, 0).astype(np.uint32)
        return count, fixed_weights(unit, count, self.times)


def make_bagging(
    hashes: np.ndarray,
    target: np.ndarray,
    whole: np.ndarray | None,
    fractional: np.ndarray | None,
    draws: int,
    replace: bool,
    class_weight: Any,
    classes: Any,
    codes: np.ndarray,
    times: int = 1,
    honest: bool | str = False,
    honest_fraction: float = 0.5,
) -> Bagging:
    """Put the rows into canonical order, and cumulate their weights for drawing.

    `classes` and `codes` are labels and class numbers, of all outputs.
    """
    order = canonical_order(hashes, target, fractional if whole is None else whole)
    cumulative = np.empty(0, dtype=np.uint64)
    count = np.ones(len(hashes), dtype=np.uint32)
    extra = None
    if whole is not None:
        count = whole
        if (whole != 1).any():
            cumulative = np.cumsum(whole[order], dtype=np.uint64)
    elif fractional is not None:
        if draws and replace:
            # 2^52 / sum keeps float64's precision, and the sum of roundings below 2^64.
            fixed = np.rint(fractional[order] * (2.0**52 / exact_sum(fractional)))
            cumulative = np.cumsum(np.maximum(fixed, 1), dtype=np.uint64)
        else:
            extra = fractional
    honesty, leaf_extra = None, extra
    if honest:
        share = None if honest == "oob" else float(honest_fraction)
        strata = codes if codes.ndim == 1 else codes[:0, 0]
        honesty = make_honesty(share, hashes, target, order, strata)
        leaf_extra = fractional if share is None else extra
    return Bagging(
        order,
        cumulative,
        draws,
        replace,
        count,
        extra,
        leaf_extra,
        class_weight,
        classes,
        codes,
        times,
        honesty,
    )


def canonical_order(
    hashes: np.ndarray, target: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Sort rows by hash, then target, then weight if given, then number."""
    order = np.argsort(hashes).astype(np.uint32)
    ordered = hashes[order]
    equal = ordered[1:] == ordered[:-1]
    if (
        equal.any()
    ):  # these are few as a rule, and sorting all rows by all keys takes several times as long
        tied = np.append(equal, False) | np.append(False, equal)
        rows = np.sort(order[tied])
        last = () if weights is None else (weights[rows],)
        targets = (
            target[rows].reshape(len(rows), -1).T[::-1]
        )  # the last key of lexsort is the first
        order[tied] = rows[np.lexsort((*last, *targets, hashes[rows]))]
    return order
