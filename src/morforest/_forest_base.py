"""What forests and single trees share, and what only forests have."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score

from morforest import _parameters as check
from morforest import _validation as validation
from morforest._estimator import BaseMorf, ClassLabels
from morforest._fixed_point import blocks
from morforest._forest_uncertainty import ForestUncertainty
from morforest._grow import GrowthTask, collect_leaf_samples, grow_trees, sum_out_of_bag
from morforest._grown_trees import GrownTrees
from morforest._leaf_samples import LeafSamples
from morforest._model import Forest
from morforest._outputs import check_output, check_uniform, columns_of, join_labels, slices_of
from morforest._portable import Head
from morforest._training import (
    BaggingSettings,
    ForestSettings,
    GrowthSettings,
    TrainingData,
    prepare_forest,
    resolve_for,
)
from morforest._uncertainty import OutOfBag
from morforest.dictionary._base import ResolvedDictionary, seed_from

PROBABILITIES = 1 << 24  # predicted at a time where only the largest are wanted


class BaseTrees(BaseMorf):
    """Trees that are grown independently of each other: a single one, or those of a forest."""

    criterion: str
    min_samples_split: int | float
    min_samples_leaf: int | float
    min_weight_fraction_leaf: float
    min_impurity_decrease: float
    min_child_fraction: float
    random_split_rate: float
    honest: bool | str
    honest_fraction: float
    honest_prior: str
    bootstrap_: bool
    _criteria: tuple[str, ...]
    _priors: tuple[str, ...]
    _fitted_priors: tuple[str, ...] = ()  # honest_prior of the fits that made honest trees
    # The least of all trees: honest, min_child_fraction, random_split_rate.
    _rules: tuple[bool, float, float] = (False, 0.0, 0.0)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        self._check_parameters()
        data = self._read(X, y, sample_weight)
        chosen = self._choose_dictionary(data, self._n_trees())
        resolved = resolve_for(chosen, data)
        before = self._earlier_forest(data)
        numbers = range(before.n_trees if before else 0, self._n_trees())
        if before is None:
            self._seed = seed_from(self.random_state)
        if not numbers:
            warnings.warn(
                "warm_start with the same n_estimators grows no new trees.", UserWarning, 3
            )
            return
        earlier = None if before is None else self.dictionary_
        task = prepare_forest(data, resolved, self._settings(), before, earlier)
        self._check_bags(task, before)
        grown: list[GrownTrees] = []
        try:
            for some in grow_trees(task, numbers, self._jobs(), self._verbosity()):
                grown.append(some)
            task.training_table.release()  # before trees are put together, which takes memory too
        finally:
            if grown:  # trees in hand at an interrupt, too
                self._forest = task.assemble(grown, before)
                bootstrap = task.bagging.draws > 0 and task.bagging.replace
                self._note_fit(resolved, bootstrap, task.rule.candidates, before)
                self._note_trees(task, data, before)
        self._score(task, data)

    def _note_fit(
        self, resolved: ResolvedDictionary, bootstrap: bool, candidates: int, before: Forest | None
    ) -> None:
        """Say what was resolved for the trees that were grown, after earlier ones."""
        self.data_shape_ = resolved.shape
        self.dictionary_ = resolved.dictionary
        self.bootstrap_ = bootstrap
        self.max_features_ = candidates
        self._note_rules(before)

    def _note_rules(self, before: Forest | None) -> None:
        """Remember what is true of all trees, and what honest ones do about empty leaves."""
        rules = (bool(self.honest), float(self.min_child_fraction), float(self.random_split_rate))
        earlier = set(self._fitted_priors if before is not None else ())
        if before is not None:
            rules = tuple(map(min, rules, self._rules))  # type: ignore[assignment]
        self._rules = rules
        new = {self.honest_prior} if self.honest else set()
        self._fitted_priors = tuple(sorted(earlier | new))

    def _n_trees(self) -> int:
        return 1

    def _verbosity(self) -> int:
        return 0

    def _check_bags(self, task: GrowthTask, before: Forest | None) -> None:
        """Raise if samples that earlier trees left out will be asked for, but are not known."""

    def _earlier_forest(self, data: TrainingData) -> Forest | None:
        """Return the forest that the new trees will follow, if there is one."""
        return None

    def _note_trees(self, task: GrowthTask, data: TrainingData, before: Forest | None) -> None:
        """Remember what later fits need to know about the trees that were grown."""

    def _score(self, task: GrowthTask, data: TrainingData) -> None:
        """Score the trees that were grown."""

    def _settings(self) -> ForestSettings:
        """Gather the parameters that a training task needs."""
        return ForestSettings(
            growth=GrowthSettings(
                criterion=self.criterion,
                splitter=self.splitter,
                max_features=self.max_features,
                max_depth=self.max_depth,
                min_samples_split=self.min_samples_split,
                min_samples_leaf=self.min_samples_leaf,
                min_weight_fraction_leaf=self.min_weight_fraction_leaf,
                min_impurity_decrease=self.min_impurity_decrease,
                max_leaf_nodes=self.max_leaf_nodes,
                min_child_fraction=self.min_child_fraction,
                random_split_rate=self.random_split_rate,
                honest_prior=self.honest_prior,
            ),
            bagging=BaggingSettings(
                bootstrap=False,
                class_weight=self._class_weight(),
                honest=self.honest,
                honest_fraction=self.honest_fraction,
            ),
            seed=self._seed,
            n_jobs=self._jobs(),
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check.check_choice("criterion", self.criterion, self._criteria)
        check.check_fraction("min_weight_fraction_leaf", self.min_weight_fraction_leaf, 0.0, 0.5)
        check.check_fraction("min_impurity_decrease", self.min_impurity_decrease, 0.0, np.inf)
        check.check_fraction("min_child_fraction", self.min_child_fraction, 0.0, 0.5)
        check.check_fraction("random_split_rate", self.random_split_rate, 0.0, 1.0)
        check.check_choice("honest_prior", self.honest_prior, self._priors)
        if not check.is_number(self.honest_fraction) or not 0 < self.honest_fraction < 1:
            raise ValueError(
                "honest_fraction must be a number between 0 and 1, and neither of them, got "
                f"{self.honest_fraction!r}."
            )
        self._check_honest()
        if check.is_integer(self.min_samples_split) and self.min_samples_split < 2:
            raise ValueError(
                "min_samples_split must be an integer of at least 2 or a float in (0, 1], got "
                f"{self.min_samples_split!r}."
            )

    def _check_honest(self) -> None:
        check.check_flag("honest", self.honest)

    @property
    def n_outputs_(self) -> int:
        """Number of outputs, which is that of the columns of `y` in `fit`."""
        return self._fitted().targets

    def _check_outputs(self, outputs: int) -> None:
        """Raise where new trees would have other outputs than earlier ones."""
        if self._continues() and self._forest is not None and self.n_outputs_ != outputs:
            raise ValueError(
                f"warm_start needs the outputs of the first fit: y has {outputs}, and had "
                f"{self.n_outputs_}."
            )

    def _head(self) -> Head:
        return Head("mean", np.zeros(self._fitted().outputs), classes=self._classes())

    def _predict_mean(self, X: Any) -> np.ndarray:
        forest = self._fitted()
        X, _ = validation.check_samples(self, X, fitting=False)
        return forest.predict(X, self._jobs())


class BaseForest(ForestUncertainty, BaseTrees):
    """What only forests have: many trees, bootstrap samples, warm starts, out-of-bag scores."""

    n_estimators: int
    bootstrap: bool | str
    max_samples: Any
    oob_score: Any
    max_samples_: int
    keep_samples: bool
    oob_score_: float
    _some_saw_all: bool = False  # some trees had no bootstrap sample
    _bags: str = ""  # tells the bags of all trees from others; empty if they differ
    _n_samples: int  # of the latest fit, each as often as its whole-number weight

    def _n_trees(self) -> int:
        return int(self.n_estimators)

    def _verbosity(self) -> int:
        return self.verbose

    def _settings(self) -> ForestSettings:
        settings = super()._settings()
        bagging = replace(
            settings.bagging,
            bootstrap=self.bootstrap,
            max_samples=self.max_samples,
            out_of_bag=bool(self.oob_score) or self.honest == "oob",
        )
        return replace(settings, bagging=bagging, augment=self.augment)

    def _check_parameters(self) -> None:
        check.check_integer("n_estimators", self.n_estimators, 1, check.MAX_TREES)
        super()._check_parameters()
        if not isinstance(self.bootstrap, (bool, np.bool_)) and not (
            isinstance(self.bootstrap, str) and self.bootstrap == "auto"
        ):
            raise ValueError(f'bootstrap must be True, False or "auto", got {self.bootstrap!r}.')
        if not callable(self.oob_score):
            check.check_flag("oob_score", self.oob_score)
        check.check_flag("keep_samples", self.keep_samples)
        if self.oob_score and not self.bootstrap and self.max_samples is None:
            raise ValueError(
                "oob_score needs bootstrap=True, or max_samples: otherwise every tree sees all "
                "samples."
            )
        if self.oob_score and self.honest == "oob":
            raise ValueError(
                'oob_score needs samples that a tree has not used, but honest="oob" uses all of '
                "them: use honest=True."
            )
        if self.honest == "oob" and not self.bootstrap and self.max_samples is None:
            raise ValueError(
                'honest="oob" needs samples that a tree has not drawn: use bootstrap=True or '
                "max_samples."
            )

    def _check_honest(self) -> None:
        if not isinstance(self.honest, (bool, np.bool_)) and not (
            isinstance(self.honest, str) and self.honest == "oob"
        ):
            raise ValueError(f'honest must be True, False or "oob", got {self.honest!r}.')

    def _earlier_forest(self, data: TrainingData) -> Forest | None:
        before = self._forest
        if not self.warm_start or before is None:
            return None
        if before.sample_shape != data.shape or before.class_count != data.n_classes:
            raise ValueError(
                f"warm_start needs the samples' shape and classes of the first fit: got shape "
                f"{data.shape} and {data.n_classes} classes, had {before.sample_shape} and "
                f"{before.class_count}."
            )
        if self.oob_score and self._some_saw_all:
            raise ValueError(
                "oob_score needs trees that did not see every row, but some of an earlier fit did: "
                "fit a new model with bootstrap=True, or add trees without oob_score."
            )
        if self.keep_samples:
            self._require_same_samples(data)
        if self.n_estimators < before.n_trees:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be at least the {before.n_trees} trees "
                "already grown when warm_start=True."
            )
        return before

    def _check_bags(self, task: GrowthTask, before: Forest | None) -> None:
        asked = bool(self.oob_score) or self.keep_samples
        if before is not None and asked and self._bags != task.bagging.fingerprint():
            raise ValueError(
                "oob_score and keep_samples need to know which samples each tree has left out: "
                "with warm_start, all fits must have the same X, y, sample_weight, class_weight, "
                "bootstrap, max_samples, honest and honest_fraction. Fit a new model, or add trees "
                "without them."
            )

    def _require_same_samples(self, data: TrainingData) -> None:
        """Raise unless new trees may share the kept samples of those grown before."""
        if self._leaf_samples is None:
            raise ValueError(
                "keep_samples=True needs the samples of all trees, but those of an earlier fit "
                "were not kept: fit a new model, or add trees with keep_samples=False."
            )
        if not self._leaf_samples.are_of(data.X, data.target, data.kept, data.n_given):
            raise ValueError(
                "keep_samples=True needs the same X and y, and weights of zero for the same "
                "samples, in each fit with warm_start: fit a new model to other samples, or add "
                "trees with keep_samples=False."
            )

    def _note_trees(self, task: GrowthTask, data: TrainingData, before: Forest | None) -> None:
        bagging = task.bagging
        self._some_saw_all = not bagging.draws or (before is not None and self._some_saw_all)
        same = before is None or self._bags == bagging.fingerprint()
        self._bags = bagging.fingerprint() if same else ""
        self._n_samples = int(bagging.count.sum())
        self.max_samples_ = bagging.draws or self._n_samples
        earlier, self._leaf_samples, self._out_of_bag = self._leaf_samples, None, None
        if self.keep_samples:
            self._keep_samples(task, data, earlier if before is not None else None)

    def _note_blocks(self, rows: int, draws: int) -> None:
        """Remember how many samples there were in blocks, and how many each tree has drawn."""
        self._some_saw_all, self._bags = False, ""
        self._n_samples, self.max_samples_ = rows, draws
        self._leaf_samples = self._out_of_bag = None
        self._forget_scores()

    def _keep_samples(
        self, task: GrowthTask, data: TrainingData, earlier: LeafSamples | None
    ) -> None:
        """Keep which samples fill the leaves of the trees that were grown, after earlier ones."""
        forest = self._fitted()
        trees = range(earlier.n_trees if earlier else 0, forest.n_trees)
        found = collect_leaf_samples(
            task, forest, trees, data.target, data.kept, data.n_given, self.n_jobs
        )
        self._leaf_samples = found if earlier is None else earlier.followed_by(found)
        # With honest="oob" only twins of samples that a tree has used are left.
        if self.honest != "oob" and not self._leaf_samples.drawn.all():
            sums, votes = sum_out_of_bag(task, forest, self.n_jobs)
            if data.n_classes:  # of the posteriors, those of each row's own classes
                first = [own.start for own in slices_of(forest.classes_of)] or [0]
                own = data.target.reshape(len(votes), -1).astype(np.int64) + first
                sums = np.take_along_axis(sums, own, axis=1)
            self._out_of_bag = OutOfBag.of(
                sums if forest.targets > 1 else sums[:, 0],
                votes,
                task.bagging.count,
                data.weights,
            )

    def _score(self, task: GrowthTask, data: TrainingData) -> None:
        self._forget_scores()
        if self.oob_score:
            self._score_out_of_bag(task, data)

    def _forget_scores(self) -> None:
        """Remove the out-of-bag scores of an earlier fit."""
        for name in ("oob_score_", "oob_decision_function_", "oob_prediction_"):
            self.__dict__.pop(name, None)

    def _score_out_of_bag(self, task: GrowthTask, data: TrainingData) -> None:
        """Let each tree predict the samples that its bag left out."""
        means, votes = sum_out_of_bag(task, self._fitted(), self.n_jobs)
        if not votes.all():
            warnings.warn(
                f"{int((votes == 0).sum())} samples are in the bags of all trees and have no "
                "out-of-bag prediction: use more trees.",
                UserWarning,
                5,
            )
        # Samples without a prediction, and those of weight zero, get NaN.
        with np.errstate(invalid="ignore"):
            means /= votes[:, np.newaxis]
        seen = np.flatnonzero(votes)
        target = data.target[seen]
        if data.kept is not None:
            everyone = np.full((data.n_given, means.shape[1]), np.nan)
            everyone[data.kept] = means
            means, seen = everyone, data.kept[seen]
        self._store_out_of_bag(means, seen, target)

    def _store_out_of_bag(self, means: np.ndarray, seen: np.ndarray, target: np.ndarray) -> None:
        """Keep the mean prediction of each sample, and score those that were predicted."""
        raise NotImplementedError


class Classification(MultiOutputMixin, ClassifierMixin, ClassLabels, BaseTrees):
    """Trees whose leaves hold class frequencies."""

    oob_score: Any
    oob_score_: float
    oob_decision_function_: np.ndarray
    _criteria = ("gini", "entropy", "log_loss")
    _priors = ("ignore", "prune", "uniform", "empirical")

    def _read_target(self, y: Any, n_samples: int) -> np.ndarray:
        columns = columns_of(y, n_samples)
        self._check_outputs(1 if columns is None else len(columns))
        if columns is None:
            return super()._read_target(y, n_samples)
        found = [
            check_output(validation.check_classes, k, y, n_samples) for k, y in enumerate(columns)
        ]
        if self._continues() and self._forest is not None:
            found = [
                validation.earlier_classes(earlier, *new)
                for earlier, new in zip(self.classes_, found, strict=True)
            ]
        self.classes_ = [classes for classes, _ in found]
        self.n_classes_ = [len(classes) for classes in self.classes_]
        if sum(self.n_classes_) > validation.MAX_CLASSES:
            raise ValueError(
                f"y has {sum(self.n_classes_)} classes in {len(columns)} outputs, more than the "
                f"{validation.MAX_CLASSES} allowed. If they are quantities rather than labels, use "
                "MorfRegressor."
            )
        check_uniform(tuple(self.n_classes_), {self.honest_prior} if self.honest else set())
        return np.stack([codes for _, codes in found], axis=1)

    def _store_out_of_bag(self, means: np.ndarray, seen: np.ndarray, target: np.ndarray) -> None:
        self.oob_decision_function_ = self._of_outputs(means)
        score = self.oob_score if callable(self.oob_score) else share_of_hits
        true = self._labels_of(target)
        predicted = self._labels(means[seen])
        self.oob_score_ = float(score(true, predicted)) if len(seen) else np.nan

    def _of_outputs(self, found: np.ndarray) -> Any:
        """Return columns of classes, in a list of several outputs."""
        several = self._fitted().classes_of
        return [found[:, own] for own in slices_of(several)] if several else found

    def _labels(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the most probable labels."""
        found = self._of_outputs(probabilities)
        if self.n_outputs_ == 1:
            return self._labels_of(np.argmax(found, axis=1))
        return self._labels_of(np.stack([np.argmax(of, axis=1) for of in found], axis=1))

    def _labels_of(self, codes: np.ndarray) -> np.ndarray:
        if self.n_outputs_ == 1:
            labels: np.ndarray = self.classes_[codes]
            return labels
        columns = zip(self.classes_, codes.T, strict=True)
        return join_labels([classes[column] for classes, column in columns])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on samples: the share whose label is predicted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            True labels. With several outputs, a sample counts as right if all of its labels are.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of each sample.

        Returns
        -------
        score : float
            Accuracy.
        """
        if self.n_outputs_ == 1:
            return float(super().score(X, y, sample_weight))
        predicted = self.predict(X)
        columns = columns_of(y, len(predicted))
        true = np.asarray(y) if columns is None else join_labels(columns)
        return share_of_hits(true, predicted, sample_weight)

    def predict_proba(self, X: Any) -> Any:
        """Predict class probabilities: the mean of the class frequencies in the trees' leaves.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Columns follow ``classes_``. With several outputs, a list with one array for each.
        """
        return self._of_outputs(self._predict_mean(X))

    def predict_log_proba(self, X: Any) -> Any:
        """Predict the logarithms of class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            Columns follow ``classes_``; minus infinity where a probability is zero. With several
            outputs, a list with one array for each.
        """
        with np.errstate(divide="ignore"):
            return self._of_outputs(np.log(self._predict_mean(X)))

    def predict(self, X: Any) -> np.ndarray:
        """Predict the most probable class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Class labels. Of equally probable classes, the first in ``classes_`` is predicted.
            Outputs whose labels are of different kinds are returned as objects.
        """
        forest = self._fitted()
        X, _ = validation.check_samples(self, X, fitting=False)
        # The probabilities of all rows at once may be far larger than X.
        best = [
            self._labels(forest.predict(X[part], self._jobs()))
            for part in blocks((len(X), forest.class_count), PROBABILITIES)
        ]
        return np.concatenate(best)


class Regression(MultiOutputMixin, RegressorMixin, BaseTrees):
    """Trees whose leaves hold numbers."""

    oob_score: Any
    oob_score_: float
    oob_prediction_: np.ndarray
    _criteria = ("squared_error", "absolute_error", "poisson")
    _priors = ("ignore", "prune", "empirical")

    def _read_target(self, y: Any, n_samples: int) -> np.ndarray:
        columns = columns_of(y, n_samples)
        self._check_outputs(1 if columns is None else len(columns))
        if columns is None:
            return validation.check_targets(y, n_samples, self.criterion)
        if len(columns) > validation.MAX_CLASSES:
            raise ValueError(
                f"y has {len(columns)} outputs, more than the {validation.MAX_CLASSES} allowed."
            )
        found = [
            check_output(validation.check_targets, k, y, n_samples, self.criterion)
            for k, y in enumerate(columns)
        ]
        return np.stack(found, axis=1)

    def _store_out_of_bag(self, means: np.ndarray, seen: np.ndarray, target: np.ndarray) -> None:
        self.oob_prediction_ = _squeezed(means)
        score = self.oob_score if callable(self.oob_score) else r2_score
        predicted = self.oob_prediction_[seen]
        self.oob_score_ = float(score(target, predicted)) if len(seen) else np.nan

    def predict(self, X: Any) -> np.ndarray:
        """Predict numbers: the mean of the values in the trees' leaves.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions.
        """
        return _squeezed(self._predict_mean(X))


def _squeezed(found: np.ndarray) -> np.ndarray:
    return found[:, 0] if found.shape[1] == 1 else found


def share_of_hits(true: np.ndarray, predicted: np.ndarray, sample_weight: Any = None) -> float:
    """Return the share of the samples of which all labels are predicted."""
    if predicted.ndim == 1:
        return float(accuracy_score(true, predicted, sample_weight=sample_weight))
    if true.shape != predicted.shape:
        raise ValueError(f"y has shape {true.shape}, but predictions have {predicted.shape}.")
    hits = (true == predicted).all(axis=1)
    return float(np.average(hits, weights=sample_weight))
