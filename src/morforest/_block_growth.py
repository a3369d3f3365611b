"""Growing forests on samples that come in blocks: each tree sees only the rows that it draws."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.base import is_classifier

from morforest import _validation as validation
from morforest._bagging import make_bagging
from morforest._block_data import Summary, sample_size
from morforest._columns import Columns
from morforest._estimator import ClassLabels
from morforest._fixed_point import (
    CellFormat,
    Cells,
    TargetFormat,
    choose_format,
    choose_target_format,
)
from morforest._forest_base import BaseForest
from morforest._grow import GrowthTask
from morforest._grown_trees import GrownTrees, assemble
from morforest._native import core
from morforest._progress import Progress
from morforest._table import ColumnTable, TrainingTable, column_format
from morforest._training import (
    TrainingData,
    growth_rule,
    resolve_for,
    samples_of_tree,
    scale_decrease,
)
from morforest.augment import Copier, make_copier
from morforest.dictionary._base import ResolvedDictionary, seed_from

SAMPLE_POWER = 0.7  # of the number of samples: what a tree draws where max_samples is None
FEWEST_DRAWS = 10_000
UNSUPPORTED = (
    ("oob_score", "scores of the samples that trees left out"),
    ("keep_samples", "the samples of each leaf"),
    ("warm_start", "trees added to those of an earlier fit"),
)


class BlockSource(Protocol):
    """Where blocks are: in this process, or on the workers of a cluster."""

    rows: int
    shape: tuple[int, ...]

    def summarise(self, wanted: np.ndarray, classes: bool) -> Summary:
        """Summarise all blocks."""

    def grow(self, plan: GrowthPlan, trees: range) -> Iterator[list[GrownTrees]]:
        """Grow trees on the rows that they draw, and yield them in order."""


@dataclass(frozen=True)
class GrowthPlan:
    """What all trees share, wherever they grow."""

    resolved: ResolvedDictionary
    cell_format: CellFormat
    cells: Cells
    columns: Columns | None
    rows: int  # of all blocks
    draws: int  # of each tree
    replace: bool
    seed: int
    rule: core.GrowthRule
    classes: np.ndarray | None  # None for regression
    target_format: TargetFormat | None
    class_weight: Any
    copier: Copier | None
    honest: bool
    honest_fraction: float
    dtype: np.dtype[Any]  # of the samples

    @property
    def forest_format(self) -> CellFormat:
        """The format of the cells that splits compare: those of samples, or of columns."""
        return self.cell_format if self.columns is None else column_format(self.columns)

    def draw(self, tree: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that a tree draws, in increasing order, and how often each."""
        key = core.tree_key(self.seed, tree)
        return core.draw_few_rows(key, self.draws, self.rows, self.replace, core.StopFlag())

    def grow(
        self, tree: int, X: np.ndarray, y: np.ndarray, stop: core.StopFlag
    ) -> list[GrownTrees]:
        """Grow a tree on the rows that it draws, which are given in increasing order."""
        X = X.astype(self.dtype, copy=False)
        table = TrainingTable(X, self.resolved, self.cell_format, self.cells)
        if self.columns is not None:
            values = self.columns.of(X)
            table = ColumnTable(table, self.columns, values, self.resolved.combines, 1)
        targets, target = self._encode(y)
        bagging = make_bagging(
            table.hash,
            target,
            self.draw(tree)[1],
            None,
            0,
            False,
            self.class_weight,
            np.empty(0) if self.classes is None else self.classes,
            np.empty(0, dtype=np.uint32) if self.classes is None else target,
            1 + (self.copier.copies if self.copier else 0),
            self.honest,
            self.honest_fraction,
        )
        task = GrowthTask(
            table, bagging, self.seed, targets, self.rule, self.copier, self.target_format
        )
        return task.grow(range(tree, tree + 1), stop)

    def _encode(self, y: np.ndarray) -> tuple[core.Targets, np.ndarray]:
        """Return targets as the core takes them, and as class numbers or float64."""
        if self.classes is not None:
            codes = np.searchsorted(self.classes, y).astype(np.uint32)
            return core.Targets.of_classes(codes, len(self.classes)), codes
        assert self.target_format is not None
        numbers = np.asarray(y, dtype=np.float64)
        bits = self.target_format.bits + self.target_format.scale
        return core.Targets.of_values(self.target_format.encode(numbers), bits), numbers


def fit_from(estimator: BaseForest, source: BlockSource) -> None:
    """Fit a forest to blocks; if that fails, the estimator stays as it was."""
    estimator._keep_if_failed(lambda: _fit(estimator, source))


def check_forest(estimator: Any) -> None:
    """Raise unless an estimator can be fitted to blocks with its parameters."""
    if not isinstance(estimator, BaseForest):
        raise TypeError(
            "estimator must be a MorfClassifier or MorfRegressor, whose trees see only some of the "
            f"samples; got {type(estimator).__name__}."
        )
    estimator._check_parameters()
    for name, what in UNSUPPORTED:
        if getattr(estimator, name):
            raise ValueError(
                f"{name}={getattr(estimator, name)!r} asks for {what}, which a fit to blocks does "
                f"not offer: use {name}=False."
            )
    if estimator.honest == "oob":
        raise ValueError(
            'honest="oob" fills leaves with all samples that a tree did not draw, which do not fit '
            "into memory: use honest=True."
        )


def draws_of_tree(max_samples: Any, rows: int) -> int:
    """Return how many samples each tree draws of so many."""
    if max_samples is None:
        return min(rows, max(FEWEST_DRAWS, int(np.rint(rows**SAMPLE_POWER))))
    return samples_of_tree(max_samples, rows)


def _fit(estimator: BaseForest, source: BlockSource) -> None:
    plan = _make_plan(estimator, source)
    grown: list[GrownTrees] = []
    trees = range(int(estimator.n_estimators))
    progress = Progress(len(trees), estimator.verbose)
    try:
        for some in source.grow(plan, trees):
            grown += some
            progress.advance(1)
    finally:
        progress.close()
    classes = 0 if plan.classes is None else len(plan.classes)
    estimator._forest = assemble(
        grown, plan.forest_format, plan.columns, classes, plan.target_format
    )
    estimator._note_fit(plan.resolved, plan.replace, plan.rule.candidates, None)
    estimator._note_blocks(plan.rows, plan.draws)


def _make_plan(estimator: BaseForest, source: BlockSource) -> GrowthPlan:
    """Look at all blocks once, and decide everything that trees share."""
    estimator._seed = seed_from(estimator.random_state)
    wanted = min(source.rows, sample_size(math.prod(source.shape)))
    key = core.tree_key(estimator._seed, core.Purpose.SAMPLE_OF_BLOCKS)
    rows, _ = core.draw_few_rows(key, wanted, source.rows, False, core.StopFlag())
    found = source.summarise(rows, is_classifier(estimator))
    data = _read(estimator, found, source.shape)
    draws = draws_of_tree(estimator.max_samples, source.rows)
    resolved = resolve_for(estimator._choose_dictionary(data, int(estimator.n_estimators)), data)
    settings = estimator._settings()
    bootstrap = settings.bagging.bootstrap
    rule = growth_rule(settings.growth, data, draws, resolved)
    cell_format, cells = choose_format(found.typical_rows, resolved.bounds, resolved.has_order)
    if cells.gaps:
        resolved = resolved.for_gaps_of(data.X, None)
    copier = make_copier(settings.augment, resolved.shape, resolved.channel_axis, data.X)
    target_format = None
    if data.classes is None:
        weight = draws * (1 + (copier.copies if copier else 0))
        target_format = choose_target_format(found.labels, weight, settings.growth.criterion)
    scale_decrease(rule, target_format)
    return GrowthPlan(
        resolved=resolved,
        cell_format=cell_format,
        cells=cells,
        columns=_shared_columns(estimator, data, resolved, cell_format, cells),
        rows=source.rows,
        draws=draws,
        replace=bool(bootstrap) and not (isinstance(bootstrap, str) and resolved.combines),
        seed=estimator._seed,
        rule=rule,
        classes=data.classes,
        target_format=target_format,
        class_weight=_class_weight(settings.bagging.class_weight, data, found.counts),
        copier=copier,
        honest=bool(estimator.honest),
        honest_fraction=float(estimator.honest_fraction),
        dtype=found.dtype,
    )


def _read(estimator: BaseForest, found: Summary, shape: tuple[int, ...]) -> TrainingData:
    """Check the sample of all rows, and the targets, and return the sample."""
    X, sample_shape = validation.check_samples(
        estimator, found.sample.reshape(-1, *shape), fitting=True
    )
    axis = estimator.channel_axis
    if not isinstance(estimator, ClassLabels):
        target = validation.check_targets(found.sample_y, len(X), "squared_error")
        validation.check_targets(found.labels, len(found.labels), estimator.criterion)
        return TrainingData(X, target, None, sample_shape, axis, n_given=len(X))
    classes, _ = validation.check_classes(found.labels, len(found.labels))
    estimator.classes_, estimator.n_classes_ = classes, len(classes)
    codes = np.searchsorted(classes, found.sample_y).astype(np.uint32)
    return TrainingData(X, codes, None, sample_shape, axis, classes, n_given=len(X))


def _shared_columns(
    estimator: BaseForest,
    data: TrainingData,
    resolved: ResolvedDictionary,
    cell_format: CellFormat,
    cells: Cells,
) -> Columns | None:
    """Draw the atoms that all trees share, and standardise them by the sample of all rows."""
    if not resolved.n_shared_atoms:
        return None
    table = TrainingTable(data.X, resolved, cell_format, cells, estimator.n_jobs)
    key = core.tree_key(estimator._seed, core.Purpose.SHARED_ATOMS)
    return Columns.fit(table, key, resolved.n_shared_atoms, estimator.n_jobs)[0]


def _class_weight(class_weight: Any, data: TrainingData, counts: np.ndarray) -> Any:
    """Return a factor for each class, by its share of all samples, or what each bag decides."""
    if class_weight is None or data.classes is None:
        return None
    codes = np.arange(len(data.classes), dtype=np.uint32)
    factors = validation.class_factors(class_weight, data.classes, codes, counts.astype(float))
    named = isinstance(class_weight, str) and class_weight == "balanced_subsample"
    return class_weight if named else factors
