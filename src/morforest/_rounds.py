"""The rounds of boosting: gradients, a tree, its leaves, new scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from morforest._fixed_point import to_core_dtype
from morforest._losses import Loss, leaf_quantiles
from morforest._model import Forest
from morforest._native import core
from morforest._parallel import run_over_rows
from morforest._table import TrainingTable
from morforest.augment import Copier

COPIES, SUBSETS = 2**63 + 1, 2**63 + 2  # number draws of copies and of atoms; no round has these
GENERATIONS = 16  # of copies in a fit
LARGEST_STEP = 2.0**900  # of a gradient or curvature; those of sensible fits are far smaller
ATOMS_A_CALL = 16  # of a thread
ROWS_WORTH_THREADS = 4096  # fewer are computed by one
ROUNDS_A_SUBSET = 5  # that share atoms, where the dictionary is a subset
UNGUIDED = 0.1  # share of the features of guided sums that are drawn all alike


@dataclass
class Boosting:
    """Everything that the rounds of one fit share.

    With a `copier` the rows are followed by copies of them, which are drawn anew a few times.
    """

    table: TrainingTable
    loss: Loss
    baseline: np.ndarray
    order: np.ndarray  # rows in canonical order
    copies: np.ndarray  # how often each row counts in training; 0: held out
    weight: np.ndarray  # what a copy counts for
    share: float  # of the samples that a round sees
    seed: int
    rule: dict[str, Any]
    l2: float
    learning_rate: float
    before: Forest | None = None  # rounds of an earlier fit
    copier: Copier | None = None
    period: int = 1  # rounds of a generation of copies
    n_jobs: int | None = 1
    guided: bool = False  # sparse sums draw features by what the rounds so far gained from them

    def __post_init__(self) -> None:
        self.rows = len(self.order)
        self.trees: list[Tree] = []
        self._cells = self.table.core
        self._subset: Any = None
        self.scores = self._first_scores(self.table.samples)
        self._gains = np.zeros(self.table.samples.shape[1])
        if self.guided and self.before is not None:
            self._add_gains(self.before.term_count, self.before.term_cell, self.before.gain)

    def rounds(self, numbers: range, stop: Any) -> Iterator[dict[str, np.ndarray]]:
        """Grow the trees of some numbers one after another, each on what the last left over."""
        for number in numbers:
            first = number == numbers.start
            copied = self.copier is not None and (first or number % self.period == 0)
            if copied:
                self._draw_copies(number // self.period)
            if self.table.plan.dictionary._subset() and (
                first or copied or number % ROUNDS_A_SUBSET == 0
            ):
                self._draw_subset(number // ROUNDS_A_SUBSET)
            if self.guided:
                self._guide()
            yield self._round(number, stop)

    def _round(self, number: int, stop: Any) -> dict[str, np.ndarray]:
        rows, outputs = self.scores.shape
        gradient, curvature = self.loss.steps(self.scores)
        if (self.weight != 1).any():
            weight = self.weight[:, np.newaxis]
            gradient, curvature = gradient * weight, curvature * weight
        largest = max(np.abs(gradient).max(), curvature.max())
        if not largest < LARGEST_STEP:
            raise ValueError(
                f"The loss overflows in round {number + 1}: learning_rate={self.learning_rate:g} "
                "is too large for these targets; use a smaller one."
            )
        gradients = core.Gradients(rows, outputs)
        gradients.set(gradient, curvature)
        key = np.array([core.tree_key(self.seed, number)], dtype=np.uint64)
        count = self.copies
        if self.share < 1:
            draws = max(1, round(self.share * int(count.sum())))
            count = core.draw_subsets(key, draws, self.order, self.copies)
        grown: dict[str, np.ndarray] = core.grow_trees(
            self._cells,
            self.table.dictionary,
            key,
            count,
            count,
            self.order,
            stop=stop,
            criterion="gradient",
            classes=np.empty(0, dtype=np.uint32),
            class_count=0,
            values=np.empty(0, dtype=np.int64),
            bits=0,
            gradients=gradients,
            l2=self.l2,
            learning_rate=self.learning_rate,
            largest_leaf=self.loss.largest_step,
            subset=self._subset,
            threads=effective_n_jobs(self.n_jobs),
            **self.rule,
        )
        tree = Tree(self.table, grown, outputs)
        if self._subset is None:
            leaf = tree.leaves(self._cells)
        else:
            leaf = tree.leaves_in_subset(self._subset, grown.pop("picked"))
        if not np.isnan(self.loss.quantile):
            grown["leaf_value"] = self.learning_rate * leaf_quantiles(
                self.loss.target - self.scores[:, 0],
                count * self.weight,
                leaf,
                len(grown["leaf_value"]),
                self.loss.quantile,
            )
            tree.values = grown["leaf_value"].reshape(-1, outputs)
        self.scores += tree.values[leaf]
        self.trees.append(tree)
        if self.guided:
            self._add_gains(grown["term_count"], grown["term_cell"], grown["gain"])
        return grown

    def _add_gains(self, count: np.ndarray, feature: np.ndarray, gain: np.ndarray) -> None:
        """Share the gain of each split among the features of its atom.

        One after the other, so that a fit that goes on from another adds them in the same order.
        """
        count = count.astype(np.int64)
        share = gain.astype(np.float64) / np.maximum(count, 1)
        np.add.at(self._gains, feature.astype(np.int64), np.repeat(share, count))

    def _guide(self) -> None:
        """Let sparse sums draw features in proportion to their gains, and a few all alike."""
        cumulated = np.cumsum(self._gains)
        if not 0 < cumulated[-1] < np.inf:
            return
        alike = np.arange(1, len(cumulated) + 1) / len(cumulated)
        shares = (1.0 - UNGUIDED) * (cumulated / cumulated[-1]) + UNGUIDED * alike
        fractions = np.ldexp(np.minimum(shares, 1.0 - 2.0**-53), 64).astype(np.uint64)
        fractions[-1] = 2**64 - 1
        self.table.dictionary.guide(fractions)

    def _first_scores(self, X: np.ndarray) -> np.ndarray:
        """Return what is said of some samples before the first of these rounds."""
        scores = np.tile(self.baseline, (len(X), 1))
        if self.before is not None:
            scores += self.before.predict_sum(to_core_dtype(X))
        return scores

    def _draw_subset(self, number: int) -> None:
        """Draw atoms for some rounds, and compute them for every row."""
        key = core.derive(core.tree_key(self.seed, SUBSETS), number)
        if self._subset is None:
            self._subset = core.Subset(self._cells, self.table.dictionary)
        subset = self._subset
        atoms = subset.draw(key, self.copies, self.order)

        def fill(first: int) -> None:
            subset.fill(first, min(ATOMS_A_CALL, atoms - first))

        jobs = effective_n_jobs(self.n_jobs) if len(self.order) >= ROWS_WORTH_THREADS else 1
        if jobs == 1:
            subset.fill(0, atoms)
        else:
            firsts = range(0, atoms, ATOMS_A_CALL)
            Parallel(n_jobs=jobs, require="sharedmem")(delayed(fill)(first) for first in firsts)

    def _make_room_for_copies(self) -> None:
        """Put copies of the rows that are trained on behind all rows; those held out have none."""
        assert self.copier is not None
        n, times = self.rows, self.copier.copies
        train = np.flatnonzero(self.copies)
        of = np.concatenate([np.arange(n), np.tile(train, times)])
        # One table for all generations, and no other beside it: it may be most of the memory.
        self._cells = None
        self.table.release()
        self._cells = self.table.room(len(of))
        run_over_rows(
            lambda part: self.table.fill(self._cells, part.start, self.table.X[part]),
            self.table.X.shape,
            self.n_jobs,
        )
        self.loss = self.loss.of(of)
        self.copies, self.weight = self.copies[of], self.weight[of]
        self._ranks = np.empty(n, dtype=np.uint32)
        self._ranks[self.order] = np.arange(n)
        # Copies in the canonical order of their originals.
        among = np.argsort(self._ranks[train]).astype(np.uint32)
        later = [n + c * len(train) + among for c in range(times)]
        self.order = np.concatenate([self.order, *later]).astype(np.uint32)
        self.scores = np.concatenate([self.scores, np.empty((len(of) - n, self.scores.shape[1]))])

    def _draw_copies(self, generation: int) -> None:
        """Draw copies anew, and find out what the model so far says of them."""
        assert self.copier is not None
        copier, n = self.copier, self.rows
        if len(self.order) == n:
            self._make_room_for_copies()
        train = np.flatnonzero(self.copies[:n])
        key = core.derive(core.tree_key(self.seed, COPIES), generation)
        forest = make_forest(self.table, self.trees) if self.trees else None
        for c in range(copier.copies):
            begin, of_copy = n + c * len(train), core.derive(key, c)

            def draw(part: slice, begin: int = begin, of_copy: int = of_copy) -> None:
                rows, first = train[part], begin + part.start
                X = copier(self.table.samples[rows], self._ranks[rows], of_copy)
                self.table.fill(self._cells, first, self.table.read(X))
                # As rounds would have added them: the same sums to the last bit.
                scores = self._first_scores(X)
                if forest is not None:
                    forest.add_trees(self._cells, first, scores)
                self.scores[first : first + len(rows)] = scores

            run_over_rows(draw, (len(train), *self.table.samples.shape[1:]), self.n_jobs)


class Tree:
    """A tree of one round, as the core finds leaves in it."""

    def __init__(self, table: TrainingTable, grown: dict[str, np.ndarray], outputs: int):
        self.next = grown["next"].astype(np.int64)
        self.values = grown["leaf_value"].reshape(-1, outputs)
        real = table.cell_format.real
        threshold = np.asarray(grown["threshold"], dtype=np.float64 if real else np.int64)
        self.arrays = {
            "threshold": np.empty(0, np.int64) if real else threshold,
            "real_threshold": threshold if real else np.empty(0),
            "term_count": grown["term_count"].astype(np.uint32, copy=False),
            "term_cell": grown["term_cell"].astype(np.uint32, copy=False),
            "term_weight": grown["term_weight"].astype(np.float64, copy=False),
            "form_op": grown["form_op"].astype(np.uint8, copy=False),
            "form_bias": grown["form_bias"].astype(np.int64, copy=False),
            "form_window": grown["form_window"].astype(np.uint32, copy=False),
        }
        self._table = table

    def leaves(self, cells: Any) -> np.ndarray:
        """Return the number of the leaf that each row of a table falls into."""
        return -1 - self.next[make_forest(self._table, [self]).find_leaves(0, cells)]

    def leaves_in_subset(self, subset: Any, picked: np.ndarray) -> np.ndarray:
        """Return the same from the values of a subset, of which each split has picked an atom."""
        found = subset.find_leaves(
            self.next.astype(np.int32),
            self.arrays["threshold"],
            self.arrays["real_threshold"],
            picked,
        )
        return -1 - self.next[found]


def make_forest(table: TrainingTable, trees: list[Tree]) -> Any:
    """Return the trees of some rounds as one forest of the core."""
    leaves = np.cumsum([0, *(len(tree.values) for tree in trees)])
    following = [
        np.where(tree.next < 0, tree.next - before, tree.next)
        for tree, before in zip(trees, leaves[:-1], strict=True)
    ]
    values = np.concatenate([tree.values for tree in trees])
    return core.Forest(
        shape=list(table.plan.shape),
        views=table.dictionary.views,
        sources=table.dictionary.view_sources,
        pooled_views=table.dictionary.pooled_views,
        tree_begin=np.cumsum([0, *(len(tree.next) for tree in trees)], dtype=np.int64),
        next=np.concatenate(following).astype(np.int32),
        class_count=0,
        distribution_size=np.empty(0, np.uint32),
        distribution_class=np.empty(0, np.uint32),
        distribution_weight=np.empty(0, np.uint32),
        leaf_value=values.ravel(),
        values=values.shape[1],
        **{name: np.concatenate([t.arrays[name] for t in trees]) for name in trees[0].arrays},
    )
