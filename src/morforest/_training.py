"""From parameters and data to a training task.

Forests, boosting and ``dictionary="auto"`` prepare their fits here, by plain functions that take
settings and know no estimator.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from morforest import _parameters as check
from morforest import _validation as validation
from morforest._bagging import canonical_order, make_bagging
from morforest._columns import PENALTIES
from morforest._fixed_point import (
    WEIGHT_LIMIT,
    TargetFormat,
    choose_target_format,
    whole_weights,
)
from morforest._groups import hold_out_groups
from morforest._grow import GrowthTask
from morforest._losses import make_loss
from morforest._model import Forest
from morforest._native import core
from morforest._outputs import OutputFormats, choose_output_formats, output_factors
from morforest._rounds import GENERATIONS, Boosting
from morforest._spatial import fit_views
from morforest._table import make_table
from morforest.augment import make_copier
from morforest.dictionary._base import ResolvedDictionary, resolve

UNLIMITED = 2**64 - 1
SAMPLE_POWER = re.compile(r"n\*\*(\d+\.?\d*|\.\d+)")
EMPTY_CLASSES = np.empty(0, dtype=np.uint32)
# Criteria by the names that users give them; the core knows each under one name only.
CRITERIA = {
    "gini": "gini",
    "entropy": "entropy",
    "log_loss": "entropy",
    "squared_error": "squared_error",
    "absolute_error": "absolute_error",
    "poisson": "poisson",
}
MAX_MEAN_COUNT = 64  # whole-number weights are repeated samples up to this mean
SMALL_DATA = 5000  # training samples up to which a round of boosting sees most of them
LEAF_SAMPLES = 20  # of a leaf of boosting, where a round has enough


@dataclass(frozen=True)
class TrainingData:
    """Checked training samples; those of weight zero are left out."""

    X: np.ndarray  # flat rows
    target: np.ndarray  # class numbers, or numbers for regression; (n, k) of several outputs
    weights: np.ndarray | None
    shape: tuple[int, ...]  # of one sample
    channel_axis: int | None  # as users give it: an axis of X
    # Labels in the order of their numbers, in a list of several outputs; None for regression.
    classes: Any = None
    kept: np.ndarray | None = None  # rows that were kept of those given; None for all
    n_given: int = 0  # number of rows before those of weight zero were left out
    groups: np.ndarray | None = None  # numbers; samples of a group are held out together

    @property
    def n_classes(self) -> int:
        """Number of classes of all outputs, 0 for regression."""
        if self.classes is None:
            return 0
        return sum(self.classes_of) or len(self.classes)

    @property
    def classes_of(self) -> tuple[int, ...]:
        """Number of classes of each of several outputs; empty if there is one, or no classes."""
        if self.classes is None or self.target.ndim == 1:
            return ()
        return tuple(map(len, self.classes))

    def sample_weights(self) -> np.ndarray:
        """Return the weight of each sample, one where none are given."""
        return np.ones(len(self.X)) if self.weights is None else self.weights

    def of(self, rows: np.ndarray) -> TrainingData:
        """Return some of the samples."""
        weights = None if self.weights is None else self.weights[rows]
        groups = None if self.groups is None else self.groups[rows]
        return replace(
            self,
            X=self.X[rows],
            target=self.target[rows],
            weights=weights,
            kept=rows,
            groups=groups,
        )


@dataclass(frozen=True)
class GrowthSettings:
    """When nodes are split, and by what: the parameters as users give them."""

    criterion: str
    splitter: str = "histogram"
    max_features: Any = "auto"
    max_depth: int | None = None
    min_samples_split: int | float = 2
    min_samples_leaf: int | float = 1
    min_weight_fraction_leaf: float = 0.0
    min_impurity_decrease: float = 0.0
    max_leaf_nodes: int | None = None
    min_child_fraction: float = 0.0
    random_split_rate: float = 0.0
    honest_prior: str = "ignore"


@dataclass(frozen=True)
class BaggingSettings:
    """Which samples each tree sees, and what they count for."""

    bootstrap: bool | str = "auto"
    max_samples: Any = None
    out_of_bag: bool = False  # rows that bags leave out will be asked for
    class_weight: Any = None
    honest: bool | str = False
    honest_fraction: float = 0.5


@dataclass(frozen=True)
class ForestSettings:
    """Everything about the training of a forest but the data and the number of trees."""

    growth: GrowthSettings
    bagging: BaggingSettings = field(default_factory=BaggingSettings)
    augment: Any = None
    seed: int = 0
    n_jobs: int | None = None


@dataclass(frozen=True)
class BoostingSettings:
    """Everything about the training of boosted trees but the data."""

    loss: str
    quantile: float
    learning_rate: float
    max_iter: int
    max_features: Any
    splitter: str
    subsample: float | str
    max_depth: int | None
    min_samples_leaf: int | float | str
    max_leaf_nodes: int | None
    l2_regularization: float
    validation_fraction: float | None  # None holds no samples out
    augment: Any
    class_weight: Any
    seed: int
    n_jobs: int | None
    guided: bool  # sparse sums prefer features that earlier rounds gained from


def resolve_for(dictionary: Any, data: TrainingData) -> ResolvedDictionary:
    """Resolve a dictionary for samples; what its owner changes later does not reach the result."""
    resolved = resolve(dictionary, data.shape, data.channel_axis)
    resolved = fit_views(resolved, data.X, data.weights)
    return replace(resolved, dictionary=clone(resolved.dictionary))


def prepare_forest(
    data: TrainingData,
    resolved: ResolvedDictionary,
    settings: ForestSettings,
    before: Forest | None = None,
    earlier: Any = None,
) -> GrowthTask:
    """Turn samples and settings into what the trees of a forest share.

    The new trees may follow those of a forest grown `before` with the dictionary `earlier`.
    """
    whole = None if data.weights is None else whole_weights(data.weights)
    with_replacement = _draws_with_replacement(settings.bagging, resolved.combines)
    drawn = with_replacement or settings.bagging.max_samples is not None
    if whole is not None and drawn and whole.sum() > MAX_MEAN_COUNT * len(data.X):
        whole = None  # so many draws would take long: each tree draws one per row, by weight
    fractional = data.weights if whole is None else None
    total = len(data.X) if whole is None else int(whole.sum())
    draws = samples_of_tree(settings.bagging.max_samples, total) if drawn else 0
    if draws == total and not with_replacement:
        draws = 0  # each tree sees all samples
        if settings.bagging.out_of_bag:
            raise ValueError(
                f"max_samples={settings.bagging.max_samples!r} draws all {total} samples, but "
                'oob_score and honest="oob" need some that a tree has not drawn: use a smaller '
                "max_samples, or bootstrap=True."
            )
    by_weight = draws > 0 and with_replacement  # samples are drawn in proportion to their weights
    from_all = settings.bagging.honest == "oob"  # samples that a tree did not draw have weights too
    rule = growth_rule(settings.growth, data, draws or total, resolved)
    class_weight = _class_weight(settings.bagging.class_weight, data)
    copier = make_copier(settings.augment, resolved.shape, resolved.channel_axis, data.X)
    times = 1 + (copier.copies if copier else 0)

    # Nothing above takes long, so that mistakes show at once.
    training_table = make_table(
        data.X,
        resolved,
        settings.seed,
        settings.n_jobs,
        before,
        earlier,
        resolved.combines,
        weights=data.weights,
    )
    tree_weight = max(draws, total) if from_all else draws or total
    if fractional is not None and (from_all or not by_weight):
        tree_weight = WEIGHT_LIMIT
    targets, target_format = _encode_target(data, tree_weight * times, settings.growth.criterion)
    scale_decrease(rule, target_format)
    bagging = make_bagging(
        training_table.hash,
        data.target,
        whole,
        fractional,
        draws,
        with_replacement,
        class_weight,
        np.empty(0) if data.classes is None else data.classes,
        EMPTY_CLASSES if data.classes is None else data.target,
        times,
        settings.bagging.honest,
        settings.bagging.honest_fraction,
    )
    return GrowthTask(training_table, bagging, settings.seed, targets, rule, copier, target_format)


def _draws_with_replacement(settings: BaggingSettings, combines: bool) -> bool:
    """Say whether each tree draws a bootstrap sample."""
    free = isinstance(settings.bootstrap, str) and not settings.out_of_bag
    return bool(settings.bootstrap) and not (free and settings.max_samples is None and combines)


def samples_of_tree(max_samples: Any, total: int) -> int:
    """Return how many samples each tree draws."""
    if max_samples is None:
        return total
    if isinstance(max_samples, str):
        found = SAMPLE_POWER.fullmatch(max_samples.replace(" ", ""))
        if found is None or not 0 < float(found[1]) <= 1:
            raise ValueError(
                "max_samples as a string must be a power of n with an exponent in (0, 1], such as "
                f'"n**0.7", got {max_samples!r}.'
            )
        return max(1, int(np.rint(total ** float(found[1]))))
    if callable(max_samples):
        size = max_samples(total)
        if not check.is_number(size) or not 1 <= size <= total:
            raise ValueError(
                f"max_samples={max_samples!r} must return a number from 1 to {total} for "
                f"n={total}, got {size!r}."
            )
        return round(size)
    size = check.count_or_fraction("max_samples", max_samples, total)
    if size > total:
        raise ValueError(f"max_samples={max_samples!r} must not exceed the {total} samples.")
    return size


def scale_decrease(
    rule: core.GrowthRule, target_format: TargetFormat | OutputFormats | None
) -> None:
    """Turn the least decrease of a split into the units of fixed-point targets."""
    if target_format is None:
        return
    with np.errstate(over="ignore"):  # beside tiny targets, no split decreases so much
        decrease = np.ldexp(rule.min_impurity_decrease, -target_format.gain_exponent)
    rule.min_impurity_decrease = float(decrease)


def growth_rule(
    settings: GrowthSettings, data: TrainingData, samples: int, resolved: ResolvedDictionary
) -> core.GrowthRule:
    """Gather the growth rule as the core takes it, for trees of so many samples."""
    split = check.count_or_fraction("min_samples_split", settings.min_samples_split, samples)
    leaf = check.count_or_fraction("min_samples_leaf", settings.min_samples_leaf, samples)
    candidates = _candidates(settings.max_features, data, resolved)
    rule = core.GrowthRule(CRITERIA[settings.criterion], settings.splitter, candidates)
    rule.penalties = PENALTIES if resolved.combines else ()
    rule.max_depth = limit(settings.max_depth)
    rule.min_samples_split = limit(max(2, split))
    rule.min_samples_leaf = limit(leaf)
    rule.min_weight_fraction_leaf = float(settings.min_weight_fraction_leaf)
    rule.min_impurity_decrease = float(settings.min_impurity_decrease)
    rule.max_leaf_nodes = limit(settings.max_leaf_nodes)
    rule.min_child_fraction = float(settings.min_child_fraction)
    rule.random_split_rate = float(settings.random_split_rate)
    rule.empty_leaf = settings.honest_prior
    return rule


def _candidates(max_features: Any, data: TrainingData, resolved: ResolvedDictionary) -> int:
    """Return how many candidates each node of a forest draws."""
    if isinstance(max_features, str) and max_features == "auto":
        max_features = "sqrt" if data.n_classes else 1 / 3
        if resolved.combines:
            max_features = validation.COMBINED_CANDIDATES
    candidates = validation.candidate_count(max_features, data.X.shape[1])
    most = validation.MAX_COMBINED_CANDIDATES
    if resolved.combines and min(candidates, resolved.n_shared_atoms or candidates) > most:
        raise ValueError(
            f"max_features={max_features!r} asks for {candidates} candidates at each node, but "
            f"at most {most} can be combined: give a smaller max_features, or combine=None."
        )
    return candidates


def limit(value: int | None) -> int:
    """Return a limit as the core takes it; no tree reaches 2^32 of anything."""
    return UNLIMITED if value is None else min(int(value), 2**32)


def _class_weight(class_weight: Any, data: TrainingData) -> Any:
    """Return a factor for each class, or "balanced_subsample", which each bag decides itself."""
    if class_weight is None or data.classes is None:
        return None
    weights = np.ones(len(data.X)) if data.weights is None else data.weights
    factors_of = output_factors if data.classes_of else validation.class_factors
    factors = factors_of(class_weight, data.classes, data.target, weights)
    named = isinstance(class_weight, str) and class_weight == "balanced_subsample"
    return class_weight if named else factors


def _encode_target(
    data: TrainingData, tree_weight: int, criterion: str
) -> tuple[core.Targets, TargetFormat | OutputFormats | None]:
    """Return targets as the core takes them: class numbers, or numbers in fixed point."""
    if data.classes_of:
        codes = np.ascontiguousarray(data.target.T, dtype=np.uint32).ravel()
        return core.Targets.of_class_outputs(codes, list(data.classes_of)), None
    if data.n_classes:
        return core.Targets.of_classes(data.target, data.n_classes), None
    if data.target.ndim > 1:
        formats = choose_output_formats(data.target, tree_weight, criterion)
        return core.Targets.of_value_outputs(
            formats.encode(data.target), formats.bits_of()
        ), formats
    chosen = choose_target_format(data.target, tree_weight, criterion)
    values = chosen.encode(data.target)
    return core.Targets.of_values(values, chosen.bits + chosen.scale), chosen


def prepare_boosting(
    data: TrainingData,
    resolved: ResolvedDictionary,
    settings: BoostingSettings,
    before: Forest | None = None,
    earlier: Any = None,
    baseline: np.ndarray | None = None,
) -> Boosting:
    """Turn samples and settings into what the rounds of boosting share.

    The new rounds may follow those of a model fitted `before` with the dictionary `earlier`, which
    began at a `baseline`.
    """
    if resolved.combine == "ridge":
        raise ValueError(
            f"dictionary={resolved.dictionary!r} asks for learned combinations of atoms, which "
            'boosting does not offer: use combine="auto" or combine=None.'
        )
    count, weight = _count_and_weight(data, settings.class_weight)
    copier = make_copier(settings.augment, resolved.shape, resolved.channel_axis, data.X)
    max_features = settings.max_features
    if isinstance(max_features, str) and max_features == "auto":
        max_features = None if len(resolved.shape) == 1 else "sqrt"
    candidates = validation.candidate_count(max_features, data.X.shape[1])

    training_table = make_table(
        data.X,
        resolved,
        settings.seed,
        settings.n_jobs,
        before,
        earlier,
        weights=data.weights,
    )
    order = canonical_order(training_table.hash, data.target, data.weights)
    held_out = _hold_out(data, order, settings.validation_fraction, settings.seed)
    loss = make_loss(
        settings.loss, data.target, weight, classes=data.n_classes, quantile=settings.quantile
    )
    rule = core.GrowthRule("gradient", settings.splitter, candidates)
    rule.max_depth = limit(settings.max_depth)
    rule.max_leaf_nodes = limit(settings.max_leaf_nodes)
    task = Boosting(
        training_table=training_table,
        loss=loss,
        baseline=np.zeros(loss.outputs) if baseline is None else baseline,
        order=order,
        count=count,
        weight=weight,
        held_out=np.empty(0, dtype=np.int64),
        held_out_weight=np.empty(0),
        share=1.0,
        seed=settings.seed,
        rule=rule,
        l2_regularization=float(settings.l2_regularization),
        learning_rate=float(settings.learning_rate),
        before=before,
        copier=copier,
        period=max(1, -(-int(settings.max_iter) // GENERATIONS)),
        n_jobs=settings.n_jobs,
        guided=settings.guided,
    )
    return without(task, np.flatnonzero(held_out), settings, baseline)


def without(
    task: Boosting, rows: np.ndarray, settings: BoostingSettings, baseline: np.ndarray | None = None
) -> Boosting:
    """Return a task that holds some rows out; `baseline` is that of an earlier fit."""
    held_out_weight = (task.count * task.weight)[rows]
    count = task.count.copy()
    count[rows] = 0
    share = share_of_round(settings.subsample, int(count.sum()))
    leaf = samples_of_leaf(settings.min_samples_leaf, max(1, round(share * int(count.sum()))))
    if baseline is None:
        trained = task.loss.of(np.flatnonzero(count))
        trained.weight = trained.weight * count[count > 0]
        baseline = trained.baseline()
    rule = core.GrowthRule(task.rule.criterion, task.rule.splitter, task.rule.candidates)
    rule.max_depth = task.rule.max_depth
    rule.max_leaf_nodes = task.rule.max_leaf_nodes
    rule.min_samples_leaf = limit(leaf)
    return replace(
        task,
        baseline=baseline,
        count=count,
        held_out=rows,
        held_out_weight=held_out_weight,
        share=share,
        rule=rule,
    )


def _count_and_weight(data: TrainingData, class_weight: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return how often each row counts in boosting, and by what its loss is multiplied."""
    whole = None if data.weights is None else whole_weights(data.weights)
    if whole is not None and whole.sum() > MAX_MEAN_COUNT * len(data.X):
        whole = None  # so many samples would take long: weights then multiply the loss instead
    count = np.ones(len(data.X), dtype=np.uint32) if whole is None else whole
    weight = np.ones(len(data.X)) if data.weights is None or whole is not None else data.weights
    if class_weight is not None and data.classes is not None:
        factors = validation.class_factors(class_weight, data.classes, data.target, weight * count)
        weight = weight * factors[data.target]
    return count, weight


def _hold_out(
    data: TrainingData, order: np.ndarray, fraction: float | None, seed: int
) -> np.ndarray:
    """Mark the rows that judge when to stop: the same share of each class."""
    held_out = np.zeros(len(data.X), dtype=bool)
    if fraction is None:
        return held_out
    if data.groups is not None:
        return hold_out_groups(data.groups, data.target if data.n_classes else None, fraction, seed)
    strata = [np.arange(len(data.X))]
    if data.n_classes:
        strata = [np.flatnonzero(data.target == k) for k in range(data.n_classes)]
    key = core.tree_key(seed, core.Purpose.HELD_OUT_ROWS)
    for rows in strata:
        count = np.zeros(len(data.X), dtype=np.uint32)
        count[rows] = 1
        draws = min(round(fraction * len(rows)), len(rows) - 1)
        held_out |= core.draw_rows(key, max(draws, 0), order, count, core.StopFlag()) > 0
    if not held_out.any():
        raise ValueError(
            f"early_stopping=True with validation_fraction={fraction} holds no sample out of "
            f"{len(data.X)}: give a larger fraction, or no early_stopping."
        )
    return held_out


def share_of_round(subsample: Any, samples: int) -> float:
    """Return the share of the training samples that each round of boosting sees."""
    if isinstance(subsample, str) and subsample == "auto":
        return 0.8 if samples <= SMALL_DATA else 0.5
    if not check.is_number(subsample) or not 0 < subsample <= 1:
        raise ValueError(f'subsample must be a number in (0, 1] or "auto", got {subsample!r}.')
    return float(subsample)


def samples_of_leaf(min_samples_leaf: Any, samples: int) -> int:
    """Return how many samples each leaf needs, where a round of boosting has so many."""
    if isinstance(min_samples_leaf, str) and min_samples_leaf == "auto":
        return min(LEAF_SAMPLES, max(1, samples // 3))
    if isinstance(min_samples_leaf, str):
        raise ValueError(
            'min_samples_leaf must be an integer of at least 1, a float in (0, 1] or "auto", got '
            f"{min_samples_leaf!r}."
        )
    return check.count_or_fraction("min_samples_leaf", min_samples_leaf, samples)
