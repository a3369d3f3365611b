"""The rounds of boosting: gradients, a tree, its leaves, new scores."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from morforest._grow import TrainingTable
from morforest._kernel import core
from morforest._losses import Loss, leaf_quantiles
from morforest.channels import to_core


@dataclass
class Boosting:
    """Everything that the rounds of one fit share."""

    table: TrainingTable
    loss: Loss
    scores: np.ndarray  # of the model so far (n, outputs); rounds add to them
    order: np.ndarray  # rows in canonical order
    copies: np.ndarray  # how often each row counts in training; 0: held out
    weight: np.ndarray  # what a copy counts for
    draws: int  # samples of a round; 0: all
    seed: int
    rule: dict[str, Any]
    l2: float
    learning_rate: float

    def rounds(self, numbers: range, stop: Any) -> Iterator[dict[str, np.ndarray]]:
        """Grow the trees of some numbers one after another, each on what the last left over."""
        rows, outputs = self.scores.shape
        gradients = core.Gradients(rows, outputs)
        weight = self.weight[:, np.newaxis]
        weighted = bool((self.weight != 1).any())
        for number in numbers:
            gradient, curvature = self.loss.steps(self.scores)
            if weighted:
                gradient, curvature = gradient * weight, curvature * weight
            gradients.set(gradient, curvature)
            key = np.array([core.tree_key(self.seed, number)], dtype=np.uint64)
            count = self.copies
            if self.draws:
                count = core.draw_subsets(key, self.draws, self.order, self.copies)
            grown: dict[str, np.ndarray] = core.grow_trees(
                self.table.core,
                self.table.dictionary,
                key,
                count,
                count,
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
                **self.rule,
            )
            leaf = self._leaves(grown, outputs)
            if not np.isnan(self.loss.quantile):
                grown["leaf_value"] = self.learning_rate * leaf_quantiles(
                    self.loss.target - self.scores[:, 0],
                    count * self.weight,
                    leaf,
                    len(grown["leaf_value"]),
                    self.loss.quantile,
                )
            self.scores += grown["leaf_value"].reshape(-1, outputs)[leaf]
            yield grown

    def _leaves(self, grown: dict[str, np.ndarray], outputs: int) -> np.ndarray:
        """Return the number of the leaf that each row falls into."""
        nodes = len(grown["next"])
        real = self.table.cell_format.real
        threshold = np.asarray(grown["threshold"], dtype=np.float64 if real else np.int64)
        tree = core.Forest(
            shape=list(self.table.plan.shape),
            views=self.table.dictionary.views,
            sources=to_core(self.table.plan.sources()),
            tree_begin=np.array([0, nodes], dtype=np.int64),
            next=grown["next"].astype(np.int32, copy=False),
            threshold=np.empty(0, np.int64) if real else threshold,
            real_threshold=threshold if real else np.empty(0),
            term_count=grown["term_count"].astype(np.uint32, copy=False),
            term_cell=grown["term_cell"].astype(np.uint32, copy=False),
            term_weight=grown["term_weight"].astype(np.float64, copy=False),
            class_count=0,
            distribution_size=np.empty(0, np.uint32),
            distribution_class=np.empty(0, np.uint32),
            distribution_weight=np.empty(0, np.uint32),
            leaf_value=grown["leaf_value"],
            values=outputs,
        )
        following: np.ndarray = grown["next"].astype(np.int64)
        return -1 - following[tree.find_leaves(0, self.table.core)]


class RoundProgress:
    """A line on standard error with round, losses and the time left."""

    def __init__(self, total: int, verbose: int):
        self.total = total
        self.done = 0
        self.active = bool(verbose) and total > 0
        self.start = time.monotonic()
        self.shown = 0.0
        self.terminal = self.active and sys.stderr.isatty()

    def advance(self, losses: dict[str, float]) -> None:
        """Count a round as done, and redraw a few times a second."""
        self.done += 1
        now = time.monotonic()
        interval = 0.1 if self.terminal else 5.0
        if self.active and (self.done == self.total or now - self.shown > interval):
            self.shown = now
            elapsed = now - self.start
            left = elapsed / self.done * (self.total - self.done)
            scores = ", ".join(f"{name} loss {value:.5g}" for name, value in losses.items())
            text = f"round {self.done}/{self.total}, {scores}, {elapsed:.1f} s, {left:.1f} s left"
            sys.stderr.write(f"\r\033[K{text}" if self.terminal else f"{text}\n")
            sys.stderr.flush()

    def close(self) -> None:
        """End the line."""
        if self.terminal and self.done:
            sys.stderr.write("\n")
            sys.stderr.flush()
