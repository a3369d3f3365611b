"""The rounds of boosting: gradients, a tree, its leaves, new scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from morforest._grow import TrainingTable
from morforest._kernel import core
from morforest._losses import Loss, leaf_quantiles
from morforest._model import Forest
from morforest._numbers import to_core_dtype
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
        self.scores = self._scores(self.table.samples, self._cells)
        self._gains = np.zeros(self.table.samples.shape[1])
        if self.guided and self.before is not None:
            self._add_gains(self.before.term_count, self.before.term_cell, self.before.gain)

    def rounds(self, numbers: range, stop: Any) -> Iterator[dict[str, np.ndarray]]:
        """Grow the trees of some numbers one after another, each on what the last left over."""
        for number in numbers:
            if self.copier is not None and (number % self.period == 0 or number == numbers.start):
                self._draw_copies(number // self.period)
                self._subset = None
            if self.table.plan.dictionary._subset() and (
                self._subset is None or number % ROUNDS_A_SUBSET == 0
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

    def _scores(self, X: np.ndarray, cells: Any) -> np.ndarray:
        """Return what the model so far says of some samples."""
        scores = np.tile(self.baseline, (len(X), 1))
        if self.before is not None:
            scores += self.before.predict_sum(to_core_dtype(X))
        for tree in self.trees:
            scores += tree.values[tree.leaves(cells)]
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

    def _draw_copies(self, generation: int) -> None:
        """Draw copies of the rows that are trained on; those held out have none."""
        assert self.copier is not None
        n = self.rows
        train = np.flatnonzero(self.copies[:n])
        ranks = np.empty(n, dtype=np.uint32)
        ranks[self.order[:n]] = np.arange(n)
        key = core.derive(core.tree_key(self.seed, COPIES), generation)
        made = self.copier.copies_of(self.table.samples[train], ranks[train], key)
        X = np.concatenate([self.table.samples, *made])
        of = np.concatenate([np.arange(n), np.tile(train, self.copier.copies)])
        self._cells = self.table.beside(slice(None), made, self.n_jobs)
        self.loss = self.loss.of(of)
        self.copies, self.weight = self.copies[of], self.weight[of]
        # Copies in the canonical order of their originals.
        among = np.argsort(ranks[train]).astype(np.uint32)
        later = [n + c * len(train) + among for c in range(self.copier.copies)]
        self.order = np.concatenate([self.order[:n], *later]).astype(np.uint32)
        self.scores = self._scores(X, self._cells)


class Tree:
    """A tree of one round, as the core finds leaves in it."""

    def __init__(self, table: TrainingTable, grown: dict[str, np.ndarray], outputs: int):
        self.next = grown["next"].astype(np.int64)
        self.values = grown["leaf_value"].reshape(-1, outputs)
        self._outputs = outputs
        real = table.cell_format.real
        threshold = np.asarray(grown["threshold"], dtype=np.float64 if real else np.int64)
        self._thresholds = {
            "threshold": np.empty(0, np.int64) if real else threshold,
            "real_threshold": threshold if real else np.empty(0),
        }
        dictionary = table.dictionary
        self._core = self._make(
            shape=list(table.plan.shape),
            views=dictionary.views,
            sources=dictionary.view_sources,
            pooled_views=dictionary.pooled_views,
            term_count=grown["term_count"].astype(np.uint32, copy=False),
            term_cell=grown["term_cell"].astype(np.uint32, copy=False),
            term_weight=grown["term_weight"].astype(np.float64, copy=False),
            form_op=grown["form_op"].astype(np.uint8, copy=False),
            form_bias=grown["form_bias"].astype(np.int64, copy=False),
            form_window=grown["form_window"].astype(np.uint32, copy=False),
        )

    def _make(self, **atoms: Any) -> Any:
        return core.Forest(
            tree_begin=np.array([0, len(self.next)], dtype=np.int64),
            next=self.next.astype(np.int32),
            class_count=0,
            distribution_size=np.empty(0, np.uint32),
            distribution_class=np.empty(0, np.uint32),
            distribution_weight=np.empty(0, np.uint32),
            leaf_value=self.values.ravel(),
            values=self._outputs,
            **self._thresholds,
            **atoms,
        )

    def leaves(self, cells: Any) -> np.ndarray:
        """Return the number of the leaf that each row of a table falls into."""
        return -1 - self.next[self._core.find_leaves(0, cells)]

    def leaves_in_subset(self, subset: Any, picked: np.ndarray) -> np.ndarray:
        """Return the same from the values of a subset, of which each split has picked an atom."""
        next_node = self.next.astype(np.int32)
        return -1 - self.next[subset.find_leaves(next_node, **self._thresholds, picked=picked)]
