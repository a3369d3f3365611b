"""What the estimators share: fit, predict, and questions about the fitted forest."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from morforest import _combination as direction
from morforest import _parameters as check
from morforest import _validation as validation
from morforest._attribution import Attributions, attribute, shaped
from morforest._auto import best_name, try_dictionaries
from morforest._bagging import make_bagging
from morforest._fixed_point import (
    WEIGHT_LIMIT,
    TargetFormat,
    blocks,
    choose_target_format,
    whole_weights,
)
from morforest._grow import GrowthTask, grow_trees, sum_out_of_bag
from morforest._model import Forest, assemble
from morforest._table import make_table
from morforest.augment import make_copier
from morforest.dictionary._base import ResolvedDictionary, resolve, seed_from
from morforest.dictionary._presets import choose_dictionary

UNLIMITED = 2**64 - 1
PROBABILITIES = 1 << 24  # predicted at a time where only the largest are wanted
EMPTY_CLASSES = np.empty(0, dtype=np.uint32)
EMPTY_VALUES = np.empty(0, dtype=np.int64)


def limit(value: int | None) -> int:
    """Return a limit as the core takes it; no tree reaches 2^32 of anything."""
    return UNLIMITED if value is None else min(int(value), 2**32)


class BaseMorf(BaseEstimator):
    """Everything that classification and regression share."""

    # What a single tree does not let its users choose.
    n_estimators: int = 1
    bootstrap: bool | str = False
    max_samples: int | float | None = None
    oob_score: Any = False
    class_weight: Any = None
    augment: Any = None
    warm_start: bool = False
    n_jobs: int | None = None
    verbose: int = 0
    _forest: Forest | None = None
    _saw_all: bool = False  # some trees had no bags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BaseMorf:
        """Grow the forest.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples of any rank, or flat rows.
        y : array-like of shape (n_samples,)
            Class labels, or numbers for regression.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            What each sample counts for. Whole numbers mean repeated samples, exactly; fractions
            are relative. With bootstrap, samples are drawn in proportion.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        state = self.__dict__.copy()
        try:
            return self._fit(X, y, sample_weight)
        except BaseException as error:
            # A failed fit leaves the estimator as it was. Only interrupted trees in hand are kept,
            # for those who said with warm_start that they would add to them.
            grown = self._forest is not state.get("_forest")
            if not (isinstance(error, KeyboardInterrupt) and self.warm_start and grown):
                self.__dict__ = state
            raise

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> BaseMorf:
        self._check_parameters()
        X, shape = validation.check_samples(self, X, fitting=True)
        n_samples = len(X)
        target = self._read_target(y, n_samples)
        weights = validation.check_weights(sample_weight, n_samples)
        kept = None
        if weights is not None and not weights.all():  # such rows are as if they were not there
            kept = np.flatnonzero(weights)
            X, target, weights = X[kept], target[kept], weights[kept]
        chosen = self._choose_dictionary(X, target, weights, shape)
        plan = resolve(chosen, shape, self.channel_axis)
        plan = replace(plan, dictionary=clone(plan.dictionary))  # later changes must not reach it

        before = self._earlier_forest(shape)
        first = before.n_trees if before else 0
        if not first:
            self._seed = seed_from(self.random_state)
        if self.n_estimators == first:
            warnings.warn(
                "warm_start with the same n_estimators grows no new trees.", UserWarning, 3
            )
            return self
        task, target_format = self._prepare(X, target, weights, plan, before)
        grown: list[dict[str, np.ndarray]] = []
        try:
            numbers = range(first, int(self.n_estimators))
            for some in grow_trees(task, numbers, self.n_jobs, self.verbose):
                grown.append(some)
            task.table.release()  # before the trees are put together, which takes memory too
        finally:
            if grown:
                self._forest = self._assemble(grown, task, target_format, before)
                self._saw_all = not task.bagging.draws or (first > 0 and self._saw_all)
                self.data_shape_ = shape
                self.dictionary_ = plan.dictionary
        for name in ("oob_score_", "oob_decision_function_", "oob_prediction_"):
            self.__dict__.pop(name, None)  # of an earlier forest
        if self.oob_score:
            self._score_out_of_bag(task, target, kept, n_samples)
        return self

    def _assemble(
        self,
        grown: list[dict[str, np.ndarray]],
        task: GrowthTask,
        target_format: TargetFormat | None,
        before: Forest | None,
    ) -> Forest:
        return assemble(grown, task.table, task.targets["class_count"], target_format, before)

    def _choose_dictionary(
        self,
        X: np.ndarray,
        target: np.ndarray,
        weights: np.ndarray | None,
        shape: tuple[int, ...],
    ) -> Any:
        """Return the dictionary that the parameter means; may try several."""
        if not isinstance(self.dictionary, str) or self.dictionary != "auto":
            self.__dict__.pop("dictionary_scores_", None)
            return choose_dictionary(self.dictionary, shape, self.channel_axis)
        if self.warm_start and self._forest is not None:
            return self.dictionary_
        self.dictionary_scores_ = try_dictionaries(
            X, target, weights, shape, self.channel_axis, isinstance(self, ClassifierMixin), self
        )
        best = best_name(self.dictionary_scores_)
        return choose_dictionary(best, shape, self.channel_axis)

    def _prepare(
        self,
        X: np.ndarray,
        target: np.ndarray,
        weights: np.ndarray | None,
        plan: ResolvedDictionary,
        before: Forest | None,
    ) -> tuple[GrowthTask, TargetFormat | None]:
        """Turn samples, targets, weights and parameters into what the trees share."""
        whole = None if weights is None else whole_weights(weights)
        fractional = weights if whole is None else None
        total = len(X) if whole is None else int(whole.sum())
        learns = direction.learns_directions(self.direction, plan)
        draws = self._bag_size(total, learns)
        rule = self._rule(X.shape[1], draws or total, learns, plan.dictionary._columns())
        class_factors = self._class_factors(target, weights)
        copier = make_copier(self.augment, plan.shape, plan.channel_axis, X)

        # Nothing above takes long, so that mistakes show at once.
        earlier = getattr(self, "dictionary_", None)
        table = make_table(X, plan, self._seed, self.n_jobs, before, earlier, learns)
        tree_weight = WEIGHT_LIMIT if fractional is not None and not draws else draws or total
        tree_weight *= 1 + (copier.copies if copier else 0)
        targets, target_format = self._encode_target(target, tree_weight)
        if target_format is not None:
            decrease = np.ldexp(rule["min_impurity_decrease"], -target_format.gain_exponent)
            rule["min_impurity_decrease"] = float(decrease)
        classes = self._classes()
        bagging = make_bagging(
            table.hash,
            target,
            whole,
            fractional,
            draws,
            class_factors,
            classes,
            target if classes.size else EMPTY_CLASSES,
            times=1 + (copier.copies if copier else 0),
        )
        return GrowthTask(table, bagging, self._seed, targets, rule, copier), target_format

    def _earlier_forest(self, shape: tuple[int, ...]) -> Forest | None:
        before = self._forest
        if not self.warm_start or before is None:
            return None
        if before.sample_shape != shape or before.class_count != len(self._classes()):
            raise ValueError(
                f"warm_start needs the samples' shape and classes of the first fit: got shape "
                f"{shape} and {len(self._classes())} classes, had {before.sample_shape} and "
                f"{before.class_count}."
            )
        if self.oob_score and self._saw_all:
            raise ValueError(
                "oob_score needs trees that did not see every row, but some of an earlier fit did: "
                "fit a new model with bootstrap=True, or add trees without oob_score."
            )
        if self.n_estimators < before.n_trees:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be at least the {before.n_trees} trees "
                "already grown when warm_start=True."
            )
        return before

    def _check_parameters(self) -> None:
        check.check_integer("n_estimators", self.n_estimators, 1)
        check.check_choice("splitter", self.splitter, ("histogram", "exact", "random"))
        check.check_choice("criterion", self.criterion, tuple(self._criteria))
        check.check_choice("direction", self.direction, ("auto", "ridge"), none=True)
        check.check_integer("max_depth", self.max_depth, 1, none=True)
        check.check_fraction("min_weight_fraction_leaf", self.min_weight_fraction_leaf, 0.0, 0.5)
        check.check_fraction("min_impurity_decrease", self.min_impurity_decrease, 0.0, np.inf)
        check.check_integer("max_leaf_nodes", self.max_leaf_nodes, 2, none=True)
        if check.is_integer(self.min_samples_split) and self.min_samples_split < 2:
            raise ValueError(
                "min_samples_split must be an integer of at least 2 or a float in (0, 1], got "
                f"{self.min_samples_split!r}."
            )
        check.check_jobs(self.n_jobs)
        check.check_random_state("random_state", self.random_state)
        if not isinstance(self.verbose, bool):
            check.check_integer("verbose", self.verbose, 0)
        if not isinstance(self.bootstrap, (bool, np.bool_)) and not (
            isinstance(self.bootstrap, str) and self.bootstrap == "auto"
        ):
            raise ValueError(f'bootstrap must be True, False or "auto", got {self.bootstrap!r}.')
        check.check_flag("warm_start", self.warm_start)
        if not callable(self.oob_score):
            check.check_flag("oob_score", self.oob_score)
        if self.oob_score and not self.bootstrap:
            raise ValueError("oob_score needs bootstrap=True: without it every tree sees all rows.")
        if self.max_samples is not None and not self.bootstrap:
            raise ValueError(
                f"max_samples={self.max_samples!r} needs bootstrap=True, or leave it None."
            )

    def _rule(self, features: int, samples: int, learns: bool, atoms: int) -> dict[str, Any]:
        """Gather the growth rule as the core takes it."""
        max_features = self.max_features
        if isinstance(max_features, str) and max_features == "auto":
            max_features = direction.CANDIDATES if learns else self._max_features
        candidates = validation.candidate_count(max_features, features)
        if learns and min(candidates, atoms or candidates) > direction.MOST_CANDIDATES:
            raise ValueError(
                f"max_features={max_features!r} asks for {candidates} candidates at each node, "
                f'direction="ridge" combines {direction.MOST_CANDIDATES} at most: give a smaller '
                "one."
            )
        return {
            "criterion": self._criteria[self.criterion],
            "splitter": self.splitter,
            "candidates": candidates,
            "penalties": list(direction.PENALTIES) if learns else [],
            "max_depth": limit(self.max_depth),
            "min_samples_split": limit(
                max(
                    2, check.count_or_fraction("min_samples_split", self.min_samples_split, samples)
                )
            ),
            "min_samples_leaf": limit(
                check.count_or_fraction("min_samples_leaf", self.min_samples_leaf, samples)
            ),
            "min_weight_fraction_leaf": float(self.min_weight_fraction_leaf),
            "min_impurity_decrease": float(self.min_impurity_decrease),
            "max_leaf_nodes": limit(self.max_leaf_nodes),
        }

    def _bag_size(self, total: int, learns: bool) -> int:
        free = isinstance(self.bootstrap, str) and not self.oob_score and self.max_samples is None
        if not self.bootstrap or (free and learns):
            return 0
        if self.max_samples is None:
            return total
        size = check.count_or_fraction("max_samples", self.max_samples, total)
        if size > total:
            raise ValueError(
                f"max_samples={self.max_samples!r} must not exceed the {total} samples."
            )
        return size

    def _score_out_of_bag(
        self, task: GrowthTask, target: np.ndarray, kept: np.ndarray | None, n_samples: int
    ) -> None:
        """Let each tree predict the rows that its bag left out."""
        means, votes = sum_out_of_bag(task, self._fitted(), self.n_jobs)
        if not votes.all():
            warnings.warn(
                f"{int((votes == 0).sum())} samples are in every tree's bag and have no "
                "out-of-bag prediction: use more trees.",
                UserWarning,
                4,
            )
        # Samples without a prediction, and those of weight zero, get NaN.
        with np.errstate(invalid="ignore"):
            means /= votes[:, np.newaxis]
        seen = np.flatnonzero(votes)
        target = target[seen]
        if kept is not None:
            everyone = np.full((n_samples, means.shape[1]), np.nan)
            everyone[kept] = means
            means, seen = everyone, kept[seen]
        self._store_out_of_bag(means, seen, target)

    def _predict_mean(self, X: Any) -> np.ndarray:
        forest = self._fitted()
        X, _ = validation.check_samples(self, X, fitting=False)
        return forest.predict(X, self.n_jobs)

    def apply(self, X: Any) -> np.ndarray:
        """Find the leaf of each sample in each tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        leaves : ndarray of shape (n_samples, n_trees)
            Node numbers within each tree.
        """
        forest = self._fitted()
        X, _ = validation.check_samples(self, X, fitting=False)
        return forest.apply(X, self.n_jobs)

    def decision_path(self, X: Any) -> tuple[sp.csr_matrix, np.ndarray]:
        """Mark the nodes that each sample passes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        indicator : sparse matrix of shape (n_samples, n_nodes)
            One where a sample passes a node.
        n_nodes_ptr : ndarray of shape (n_trees + 1,)
            Columns from ``n_nodes_ptr[i]`` to ``n_nodes_ptr[i + 1]`` belong to tree `i`.
        """
        forest = self._fitted()
        X, _ = validation.check_samples(self, X, fitting=False)
        return forest.decision_path(X, self.n_jobs), forest.tree_begin.astype(np.int64)

    def attributions(self, X: Any) -> Attributions:
        """Say what each feature of each sample contributes to its prediction.

        On a sample's way down a tree each split changes the expected prediction: the mean of the
        leaves below, by their training weight. The features of the split's atom share that
        change in proportion to the size of their weights, as they share importances. Changes of a
        feature are added over the path and averaged over the trees.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        values : ndarray of shape (n_samples, ...) or (n_samples, ..., n_classes)
            Contributions in the shape of the samples (that of ``data_shape_``); for classes they
            are to each probability, the last axis following ``classes_``.
        baseline : float or ndarray of shape (n_classes,)
            Mean expectation of the trees' roots. The baseline and the sum of a sample's values are
            its prediction: what `predict_proba` says, or `predict` in regression.

        Notes
        -----
        A named tuple, whose parts can also be had as ``.values`` and ``.baseline``. These are not
        Shapley values, and the shares of linear combinations depend on the features' units.

        Examples
        --------
        >>> from morforest import MorfTreeRegressor
        >>> tree = MorfTreeRegressor(random_state=0).fit([[0], [1]], [0.0, 8.0])
        >>> values, baseline = tree.attributions([[0], [1]])
        >>> values.tolist(), baseline
        ([[-4.0], [4.0]], 4.0)
        """
        forest = self._fitted()
        X, _ = validation.check_samples(self, X, fitting=False)
        values, baseline = attribute(forest, X, self.n_jobs, mean=True)
        return shaped(values, baseline, forest.sample_shape, bool(forest.class_count))

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of the decrease in impurity, in the shape of a sample, adding up to one.

        Each split's decrease is spread over its atom's features, in proportion to the size of
        their weights. Measured on training data: it says what the forest uses, favours features
        that offer many thresholds, and tests nothing.
        """
        return self._fitted().impurity_decrease()

    @property
    def split_shares_(self) -> np.ndarray:
        """Share of the forest's splits whose atom uses a feature, in the shape of a sample.

        The importance of the paper. Shares add up to the mean number of features an atom uses.
        """
        return self._fitted().split_shares()

    def get_depths(self) -> np.ndarray:
        """Return the depth of each tree; a single leaf has depth 0."""
        forest = self._fitted()
        return np.maximum.reduceat(forest.depths(), forest.tree_begin.astype(np.int64)[:-1])

    def get_mean_leaf_depths(self) -> np.ndarray:
        """Return the mean depth of each tree's leaves."""
        forest = self._fitted()
        leaf = ~forest.is_split()
        begin = forest.tree_begin.astype(np.int64)[:-1]
        return np.add.reduceat(forest.depths() * leaf, begin) / self.get_n_leaves()

    def get_n_leaves(self) -> np.ndarray:
        """Return the number of leaves of each tree."""
        forest = self._fitted()
        begin = forest.tree_begin.astype(np.int64)[:-1]
        return np.add.reduceat(~forest.is_split(), begin, dtype=np.int64)

    def _fitted(self) -> Forest:
        if self._forest is None:
            check_is_fitted(self)
        assert self._forest is not None
        return self._forest

    def __sklearn_is_fitted__(self) -> bool:
        return self._forest is not None


class Classification(ClassifierMixin, BaseMorf):
    """Targets are classes."""

    classes_: np.ndarray

    _max_features = "sqrt"  # what "auto" means
    _criteria = {"gini": "gini", "entropy": "entropy", "log_loss": "entropy"}  # noqa: RUF012

    def _read_target(self, y: Any, n_samples: int) -> np.ndarray:
        before = self._forest if self.warm_start else None
        classes, codes = validation.check_classes(y, n_samples)
        if before is not None:
            classes, codes = validation.earlier_classes(self.classes_, classes, codes)
        self.classes_ = classes
        self.n_classes_ = len(classes)
        return codes

    def _classes(self) -> np.ndarray:
        return self.classes_

    def _encode_target(self, target: np.ndarray, tree_weight: int) -> tuple[dict[str, Any], None]:
        targets = {
            "classes": target,
            "class_count": len(self.classes_),
            "values": EMPTY_VALUES,
            "bits": 0,
        }
        return targets, None

    def _class_factors(self, target: np.ndarray, weights: np.ndarray | None) -> Any:
        if self.class_weight is None:
            return None
        if weights is None:
            weights = np.ones(len(target))
        factors = validation.class_factors(self.class_weight, self.classes_, target, weights)
        # Without bags a subsample is the whole.
        return self.class_weight if self.class_weight == "balanced_subsample" else factors

    def _store_out_of_bag(self, means: np.ndarray, seen: np.ndarray, target: np.ndarray) -> None:
        self.oob_decision_function_ = means
        score = self.oob_score if callable(self.oob_score) else accuracy_score
        predicted = self.classes_[np.argmax(means[seen], axis=1)]
        self.oob_score_ = float(score(self.classes_[target], predicted)) if len(seen) else np.nan

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict class probabilities: the mean of the trees' leaf frequencies.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Columns follow ``classes_``.
        """
        return self._predict_mean(X)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Predict logarithms of class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            Minus infinity where a probability is zero.
        """
        with np.errstate(divide="ignore"):
            return np.log(self._predict_mean(X))

    def predict(self, X: Any) -> np.ndarray:
        """Predict the most probable class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Class labels; of equally probable ones, the first in ``classes_``.
        """
        forest = self._fitted()
        X, _ = validation.check_samples(self, X, fitting=False)
        # The probabilities of all rows at once may be far larger than X.
        best = [
            np.argmax(forest.predict(X[part], self.n_jobs), axis=1)
            for part in blocks((len(X), len(self.classes_)), PROBABILITIES)
        ]
        return self.classes_[np.concatenate(best)]


class Regression(RegressorMixin, BaseMorf):
    """Targets are numbers."""

    _max_features = 1 / 3
    _criteria = {  # noqa: RUF012
        "squared_error": "squared_error",
        "absolute_error": "absolute_error",
        "poisson": "poisson",
    }

    def _read_target(self, y: Any, n_samples: int) -> np.ndarray:
        return validation.check_targets(y, n_samples, self.criterion)

    def _classes(self) -> np.ndarray:
        return np.empty(0)

    def _encode_target(
        self, target: np.ndarray, tree_weight: int
    ) -> tuple[dict[str, Any], TargetFormat]:
        chosen = choose_target_format(target, tree_weight, self.criterion)
        targets = {
            "classes": EMPTY_CLASSES,
            "class_count": 0,
            "values": chosen.encode(target),
            "bits": chosen.bits + chosen.scale,
        }
        return targets, chosen

    def _class_factors(self, target: np.ndarray, weights: np.ndarray | None) -> None:
        return None

    def _store_out_of_bag(self, means: np.ndarray, seen: np.ndarray, target: np.ndarray) -> None:
        self.oob_prediction_ = means[:, 0]
        score = self.oob_score if callable(self.oob_score) else r2_score
        predicted = self.oob_prediction_[seen]
        self.oob_score_ = float(score(target, predicted)) if len(seen) else np.nan

    def predict(self, X: Any) -> np.ndarray:
        """Predict the mean of the trees' leaf values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        values : ndarray of shape (n_samples,)
            Predictions.
        """
        return self._predict_mean(X)[:, 0]
