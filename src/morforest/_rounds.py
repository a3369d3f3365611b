"""The rounds of boosting: gradients, a tree, its leaves, new scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from morforest._atoms import AtomList
from morforest._fixed_point import to_core_dtype
from morforest._grown_trees import GrownTrees, assemble
from morforest._losses import Loss, leaf_quantiles
from morforest._model import Forest
from morforest._native import core
from morforest._parallel import count_jobs, over_blocks, over_rows
from morforest._table import TrainingTable
from morforest.augment import Copier

GENERATIONS = 16  # of copies per fit
LARGEST_STEP = 2.0**900  # of gradients and curvatures; those of sensible fits are far smaller
ATOMS_PER_CALL = 16  # that one thread computes
ROWS_WORTH_THREADS = 4096  # fewer are left to a single thread
ROUNDS_PER_SUBSET = 5  # rounds that share atoms, where the dictionary is a subset
UNGUIDED = 0.1  # share of the features of guided sums that are drawn uniformly


@dataclass
class Boosting:
    """Everything that the rounds of one fit share.

    With a `copier` the rows are followed by copies of them, which are drawn anew a few times.
    """

    training_table: TrainingTable
    loss: Loss
    baseline: np.ndarray
    order: np.ndarray  # rows in canonical order
    count: np.ndarray  # how often each row counts in training; 0 if it is held out
    weight: np.ndarray  # what a row counts for each time
    held_out: np.ndarray  # rows that judge when to stop
    held_out_weight: np.ndarray  # what each of them counts for
    share: float  # of the training samples that each round sees
    seed: int
    rule: core.GrowthRule
    l2_regularization: float
    learning_rate: float
    before: Forest | None = None  # rounds of an earlier fit
    copier: Copier | None = None
    period: int = 1  # rounds per generation of copies
    n_jobs: int | None = 1
    guided: bool = False  # sparse sums draw features by what the rounds so far gained from them

    def __post_init__(self) -> None:
        self.rows = len(self.order)
        self.trees: list[Tree] = []
        self._table = self.training_table.table
        self._layout = self.training_table.layout
        self._subset: core.Subset | None = None
        self.scores = np.empty((0, self.loss.outputs))  # of all rows, once rounds begin
        self._gains = np.zeros(self.training_table.samples.shape[1])

    def assemble(self, grown: list[GrownTrees]) -> Forest:
        """Make a forest of the rounds, following those of an earlier fit."""
        table, outputs = self.training_table, self.loss.outputs
        return assemble(grown, table.cell_format, table.columns, 0, None, self.before, outputs)

    def rounds(self, numbers: range, stop: core.StopFlag) -> Iterator[GrownTrees]:
        """Grow the trees of some numbers one after another, each on what the last left over."""
        self.scores = self._first_scores(self.training_table.samples)
        if self.guided and self.before is not None:
            self._add_gains(self.before.atoms, self.before.gain)
        for number in numbers:
            first = number == numbers.start
            copied = self.copier is not None and (first or number % self.period == 0)
            if copied:
                self._draw_copies(number // self.period)
            if self.training_table.resolved.atoms_per_tree and (
                first or copied or number % ROUNDS_PER_SUBSET == 0
            ):
                self._draw_subset(number // ROUNDS_PER_SUBSET)
            if self.guided:
                self._guide()
            yield self._round(number, stop)

    def _round(self, number: int, stop: core.StopFlag) -> GrownTrees:
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
        targets = core.Targets.of_gradients(
            gradients, self.l2_regularization, self.learning_rate, self.loss.largest_step
        )
        key = core.tree_key(self.seed, number)
        count = self.count
        if self.share < 1:
            draws = max(1, round(self.share * int(count.sum())))
            count = core.draw_rows(key, draws, self.order, self.count, stop)
        of_tree = count[np.newaxis]
        bags = core.Bags(of_tree, of_tree, self.order)
        self.rule.threads = count_jobs(self.n_jobs)
        keys, dictionary = np.array([key], dtype=np.uint64), self.training_table.dictionary
        if self._subset is None:
            trees = core.grow_trees(
                self._table, dictionary, keys, bags, None, targets, self.rule, stop
            )
        else:
            trees = core.grow_on_subset(self._subset, keys, bags, targets, self.rule, stop)
        grown = GrownTrees.from_core(self._layout, trees)
        tree = Tree(grown, outputs, self.training_table.cell_format.real)
        if self._subset is None:
            leaf = tree.leaves(self._table)
        else:
            leaf = tree.leaves_in_subset(self._subset, trees.picked)
        if not np.isnan(self.loss.quantile):
            grown.leaf_value = self.learning_rate * leaf_quantiles(
                self.loss.target - self.scores[:, 0],
                count * self.weight,
                leaf,
                len(grown.leaf_value),
                self.loss.quantile,
            )
            tree.values = grown.leaf_value.reshape(-1, outputs)
        self.scores += tree.values[leaf]
        self.trees.append(tree)
        if self.guided:
            self._add_gains(tree.atoms, grown.gain)
        return grown

    def _add_gains(self, atoms: AtomList, gain: np.ndarray) -> None:
        """Share the gain of each split among the features of its atom.

        Gains are added one by one, so that a continued fit adds them in the same order.
        """
        share = gain.astype(np.float64) / np.maximum(atoms.count, 1)
        np.add.at(self._gains, atoms.cell, np.repeat(share, atoms.count))

    def _guide(self) -> None:
        """Let sparse sums draw features in proportion to their gains, and a few uniformly."""
        cumulated = np.cumsum(self._gains)
        if not 0 < cumulated[-1] < np.inf:
            return
        uniform = np.arange(1, len(cumulated) + 1) / len(cumulated)
        shares = (1.0 - UNGUIDED) * (cumulated / cumulated[-1]) + UNGUIDED * uniform
        fractions = np.ldexp(np.minimum(shares, 1.0 - 2.0**-53), 64).astype(np.uint64)
        fractions[-1] = 2**64 - 1
        self.training_table.dictionary.guide(fractions)

    def _first_scores(self, X: np.ndarray) -> np.ndarray:
        """Return the scores of some samples before the first of these rounds."""
        scores = np.tile(self.baseline, (len(X), 1))
        if self.before is not None:
            scores += self.before.predict_sum(to_core_dtype(X))
        return scores

    def _draw_subset(self, number: int) -> None:
        """Draw the atoms of the next rounds, and compute them for every row."""
        key = core.derive(core.tree_key(self.seed, core.Purpose.ROUND_SUBSETS), number)
        if self._subset is None:
            self._subset = core.Subset(self._table, self.training_table.dictionary)
        subset = self._subset
        atoms = subset.draw(key, self.count, self.order)

        if len(self.order) < ROWS_WORTH_THREADS or count_jobs(self.n_jobs) == 1:
            subset.fill(0, atoms)
        else:
            over_rows(
                lambda some: subset.fill(some.start, some.stop - some.start),
                atoms,
                ATOMS_PER_CALL,
                self.n_jobs,
            )

    def _make_room_for_copies(self) -> None:
        """Make room behind all rows for copies of the training rows; those held out have none."""
        assert self.copier is not None
        n, times = self.rows, self.copier.copies
        train = np.flatnonzero(self.count)
        of = np.concatenate([np.arange(n), np.tile(train, times)])
        # One table for all generations, and no other beside it: it may be most of the memory.
        del self._table
        self.training_table.release()
        self._table = self.training_table.room(len(of))
        over_blocks(
            lambda part: self.training_table.fill(
                self._table, part.start, self.training_table.X[part]
            ),
            self.training_table.X.shape,
            self.n_jobs,
        )
        self.loss = self.loss.of(of)
        self.count, self.weight = self.count[of], self.weight[of]
        self._ranks = np.empty(n, dtype=np.uint32)
        self._ranks[self.order] = np.arange(n)
        # Copies in the canonical order of their originals.
        among = np.argsort(self._ranks[train]).astype(np.uint32)
        later = [n + c * len(train) + among for c in range(times)]
        self.order = np.concatenate([self.order, *later]).astype(np.uint32)
        self.scores = np.concatenate([self.scores, np.empty((len(of) - n, self.scores.shape[1]))])

    def _draw_copies(self, generation: int) -> None:
        """Draw new copies, and compute their scores under the model so far."""
        assert self.copier is not None
        copier, n = self.copier, self.rows
        if len(self.order) == n:
            self._make_room_for_copies()
        train = np.flatnonzero(self.count[:n])
        key = core.derive(core.tree_key(self.seed, core.Purpose.ROUND_COPIES), generation)
        forest = make_forest(self.trees) if self.trees else None
        for c in range(copier.copies):
            begin, of_copy = n + c * len(train), core.derive(key, c)

            def draw(part: slice, begin: int = begin, of_copy: int = of_copy) -> None:
                rows, first = train[part], begin + part.start
                X = copier(self.training_table.samples[rows], self._ranks[rows], of_copy)
                self.training_table.fill(self._table, first, self.training_table.read(X))
                # In the order in which rounds add them, so that sums agree to the last bit.
                scores = self._first_scores(X)
                if forest is not None:
                    forest.add_trees(self._table, first, scores)
                self.scores[first : first + len(rows)] = scores

            over_blocks(draw, (len(train), *self.training_table.samples.shape[1:]), self.n_jobs)


class Tree:
    """A tree of one round, as the core finds leaves in it."""

    def __init__(self, grown: GrownTrees, outputs: int, real: bool):
        self.atoms = grown.atoms
        self.next = grown.next.astype(np.int32)
        self.threshold: np.ndarray = grown.threshold.astype(np.float64 if real else np.int64)
        self.values = grown.leaf_value.reshape(-1, outputs)
        self.side = grown.side

    def leaves(self, table: core.Table) -> np.ndarray:
        """Return the number of the leaf that each row of a table falls into."""
        node = make_forest([self]).find_leaves(0, table)
        leaf: np.ndarray = -1 - self.next[node]
        return leaf

    def leaves_in_subset(self, subset: core.Subset, picked: np.ndarray) -> np.ndarray:
        """Return the same from the values of a subset, of which each split has picked an atom."""
        leaf: np.ndarray = (
            -1 - self.next[subset.find_leaves(self.next, self.threshold, picked, self.side)]
        )
        return leaf


def make_forest(trees: list[Tree]) -> core.Forest:
    """Return the trees of some rounds as one forest of the core."""
    leaves = np.cumsum([0, *(len(tree.values) for tree in trees)])
    following = [
        np.where(tree.next < 0, tree.next - before, tree.next)
        for tree, before in zip(trees, leaves[:-1], strict=True)
    ]
    values = np.concatenate([tree.values for tree in trees])
    atoms = AtomList.concatenate([tree.atoms for tree in trees])
    return core.Forest(
        atoms.layout.to_core(),
        atoms.to_core(),
        np.cumsum([0, *(len(tree.next) for tree in trees)], dtype=np.int64),
        np.concatenate(following).astype(np.int32),
        np.concatenate([tree.threshold for tree in trees]),
        core.Leaves.of_values(values.ravel(), values.shape[1]),
        np.concatenate([tree.side for tree in trees]),
    )
