"""What boosted classification and regression share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin

from morforest import _parameters as check
from morforest import _validation as validation
from morforest._attribution import Attributions, attribute, shaped
from morforest._calibration import (
    Calibration,
    ClassCalibration,
    CrossFit,
    ErrorCalibration,
    cross_fit,
    deal_folds,
)
from morforest._estimator import BaseEnsemble
from morforest._grown_trees import GrownTrees
from morforest._loading import check_trees, is_finite, require, restore
from morforest._model import Forest
from morforest._native import core
from morforest._parallel import runs_elsewhere
from morforest._portable import Head
from morforest._progress import Progress
from morforest._rounds import Boosting
from morforest._training import (
    BoostingSettings,
    TrainingData,
    prepare_boosting,
    resolve_for,
    samples_of_leaf,
    share_of_round,
)
from morforest.dictionary import Axis, Mixture
from morforest.dictionary._base import ResolvedDictionary, seed_from

DEFAULT_FOLDS = 5  # of quantile losses


class BaseBoosting(BaseEnsemble):
    """Rounds of boosting, each of which grows one tree."""

    learning_rate: float
    max_iter: int
    subsample: float | str
    min_samples_leaf: int | float | str
    l2_regularization: float
    early_stopping: bool | str
    validation_fraction: float
    n_iter_no_change: int
    tol: float
    calibration_folds: int | str | None
    n_iter_: int
    train_score_: np.ndarray
    validation_score_: np.ndarray
    subsample_: float
    min_samples_leaf_: int
    calibration_folds_: int | None
    _baseline: np.ndarray  # scores before the first round
    _fitted_loss: tuple[Any, ...]
    _exponent: int = 0  # targets were divided by two to this power
    _calibration: Calibration | None = None
    _folds_may_be_chosen = False  # by calibration_folds="auto"
    _correction: float = 0.0  # added to the baseline, so that a quantile covers what it says

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the rounds to training samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Training samples of any rank, or flat rows, which may be a sparse matrix; a list of
            arrays where series have unequal lengths, see `align`.
        y : array-like of shape (n_samples,)
            Class labels, or numbers for regression.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of each sample. Whole numbers of a mean up to 64 mean that samples are repeated
            so many times; other weights multiply the loss of a sample.
        groups : array-like of shape (n_samples,) or None, default=None
            Label of the group of each sample, such as the patient. Samples of one group are held
            out together, by `early_stopping`, by `calibration_folds`, and where
            ``dictionary="auto"`` tries dictionaries. None makes each sample a group of its own.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._keep_if_failed(lambda: self._fit(X, y, sample_weight, groups))

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> None:
        self._check_parameters()
        self._warn_of_backend()
        data = self._read(X, y, sample_weight, groups)
        chosen = self._choose_dictionary(data)
        guided = self.dictionary is None and len(data.shape) == 1
        if guided:
            chosen = Mixture([Axis(), chosen])
        resolved = resolve_for(chosen, data)
        before = self._forest if self.warm_start else None
        if before is None:
            self._seed = seed_from(self.random_state)
        else:
            self._check_earlier(before, data.shape)
        folds = self._count_folds(data)
        first = before.n_trees if before else 0
        if first == self.max_iter:
            warnings.warn("warm_start with the same max_iter adds no rounds.", UserWarning, 3)
            return
        settings = self._settings(guided, folds)
        task = prepare_boosting(
            data,
            resolved,
            settings,
            before,
            None if before is None else self.dictionary_,
            None if before is None else self._baseline,
        )
        self._baseline = task.baseline
        self._fitted_loss = self._loss_name()
        self._calibration, self.calibration_folds_ = None, folds
        self._correction = 0.0
        if folds is None:
            self._run_rounds(task, first, resolved, int(self.max_iter))
            return
        dealt = deal_folds(task.order, data.target if data.n_classes else None, folds, data.groups)
        left_out = self._cross_fit(
            task, dealt, settings, self._stops_early(), keep=bool(data.n_classes)
        )
        self._calibrate(left_out, task, dealt, data, resolved, settings)
        self._run_rounds(task, first, resolved, left_out.rounds)
        self.validation_score_ = left_out.losses

    def _warn_of_backend(self) -> None:
        """Say that rounds follow one another, where joblib was asked to use a cluster."""
        backend = runs_elsewhere()
        if backend is not None:
            warnings.warn(
                f"joblib was asked to work with {backend}, but boosting adds one tree after the "
                "other, and runs in the threads of this process. Forests use the cluster.",
                UserWarning,
                5,
            )

    def _stops_early(self) -> bool:
        """Say whether samples that were left out decide on the number of rounds."""
        if isinstance(self.early_stopping, str):
            return self._asks_for_folds()
        return bool(self.early_stopping)

    def _asks_for_folds(self) -> bool:
        if isinstance(self.calibration_folds, str):
            return bool(self._loss_name()[0] == "quantile")
        return self.calibration_folds is not None

    def _count_folds(self, data: TrainingData) -> int | None:
        """Return the number of folds, or None."""
        if not self._asks_for_folds():
            return None
        if self.warm_start:
            raise ValueError(
                f"calibration_folds={self.calibration_folds!r} does not go with warm_start=True: "
                "added rounds would need new models of the folds. Set one of them to None or "
                "False."
            )
        samples = len(data.X) if data.groups is None else len(np.unique(data.groups))
        if isinstance(self.calibration_folds, str):
            return min(DEFAULT_FOLDS, samples) if samples > 1 else None
        assert self.calibration_folds is not None
        if self.calibration_folds > samples:
            what = "samples" if data.groups is None else "groups"
            raise ValueError(
                f"calibration_folds={self.calibration_folds} must not exceed the {samples} {what}."
            )
        return int(self.calibration_folds)

    def _cross_fit(
        self,
        task: Boosting,
        folds: list[np.ndarray],
        settings: BoostingSettings,
        early: bool,
        keep: bool = False,
    ) -> CrossFit:
        """Fit one model without each fold, and show the rounds."""
        progress = Progress(
            int(settings.max_iter), self.verbose, f"rounds of {len(folds)} folds ({settings.loss})"
        )
        patience = int(self.n_iter_no_change) if early else None
        try:
            return cross_fit(
                task,
                folds,
                settings,
                patience,
                float(self.tol),
                lambda loss: progress.advance(1, f", validation loss {loss:.5g}"),
                keep,
            )
        finally:
            progress.close()

    def _calibrate(
        self,
        left_out: CrossFit,
        task: Boosting,
        folds: list[np.ndarray],
        data: TrainingData,
        resolved: ResolvedDictionary,
        settings: BoostingSettings,
    ) -> None:
        """Learn from the scores of samples that were left out how far predictions are off."""
        raise NotImplementedError

    def _explain_missing(self, method: str) -> ValueError:
        """Return an error that says why there is no calibration."""
        if self._fitted_loss[:1] == ("quantile",):
            return ValueError(
                f'{method} needs a model of the centre, but loss="quantile" fits one quantile: use '
                'loss="squared_error" or "absolute_error", with calibration_folds=5.'
            )
        return ValueError(
            f"{method} needs a fit with calibration_folds, such as calibration_folds=5; this one "
            "had none."
        )

    def _settings(self, guided: bool, folds: int | None) -> BoostingSettings:
        """Gather the parameters that a training task needs."""
        loss, *quantile = self._loss_name()
        stops = not isinstance(self.early_stopping, str) and bool(self.early_stopping)
        return BoostingSettings(
            loss=loss,
            quantile=float(quantile[0]) if quantile else 0.5,
            learning_rate=self.learning_rate,
            max_iter=self.max_iter,
            max_features=self.max_features,
            splitter=self.splitter,
            subsample=self.subsample,
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
            max_leaf_nodes=self.max_leaf_nodes,
            l2_regularization=self.l2_regularization,
            validation_fraction=self.validation_fraction if folds is None and stops else None,
            augment=self.augment,
            class_weight=self._class_weight(),
            seed=self._seed,
            n_jobs=self.n_jobs,
            guided=guided,
        )

    def _run_rounds(
        self, task: Boosting, first: int, resolved: ResolvedDictionary, last: int
    ) -> None:
        """Make the rounds, and keep them even if they are interrupted."""
        train = np.flatnonzero(task.count)
        weight = task.count[train] * task.weight[train]
        train_scores = list(self.train_score_[:first]) if first else []
        validation_scores = list(self.validation_score_[:first]) if first else []
        grown: list[GrownTrees] = []
        best = min(validation_scores, default=np.inf)
        best_round = first
        progress = Progress(last - first, self.verbose, "rounds")
        stop = core.StopFlag()
        try:
            for some in task.rounds(range(first, last), stop):
                grown.append(some)
                found = {"training": task.loss.average(task.scores, train, weight)}
                train_scores.append(found["training"])
                if len(task.held_out):
                    found["validation"] = task.loss.average(
                        task.scores, task.held_out, task.held_out_weight
                    )
                    validation_scores.append(found["validation"])
                told = (f", {name} loss {value:.5g}" for name, value in found.items())
                progress.advance(1, "".join(told))
                if len(task.held_out):
                    if found["validation"] < best - self.tol:
                        best, best_round = found["validation"], first + len(grown)
                    elif first + len(grown) - best_round >= self.n_iter_no_change:
                        break
        except BaseException:
            stop.set()
            raise
        finally:
            progress.close()
            if grown:  # rounds in hand at an interrupt, too
                self.train_score_ = np.array(train_scores)
                self.validation_score_ = np.array(validation_scores)
            if len(task.held_out) and best < np.inf:
                del grown[best_round - first :]
            if grown:  # else none was better than those of the first fit
                self._forest = task.assemble(grown)
                self.n_iter_ = self._forest.n_trees
                self.data_shape_ = resolved.shape
                self.dictionary_ = resolved.dictionary
                self.max_features_ = task.rule.candidates
                self.min_samples_leaf_ = task.rule.min_samples_leaf
                self.subsample_ = task.share

    def _check_earlier(self, before: Forest, shape: tuple[int, ...]) -> None:
        """Raise unless new rounds may follow those of an earlier fit."""
        if before.sample_shape != shape or before.values != len(self._baseline):
            raise ValueError(
                f"warm_start needs the samples' shape and classes of the first fit: got shape "
                f"{shape}, had {before.sample_shape}."
            )
        if self._fitted_loss != self._loss_name():
            raise ValueError(
                f"warm_start needs the loss of the first fit, {self._fitted_loss!r}, got "
                f"{self._loss_name()!r}: set it back, or fit a new model."
            )
        if self.calibration_folds_ is not None:
            raise ValueError(
                f"warm_start cannot continue a fit with calibration_folds={self.calibration_folds_}"
                ": added rounds would need new models of the folds. Fit a new model instead."
            )
        if self._stops_early() != bool(len(self.validation_score_)):
            raise ValueError(
                "warm_start needs early_stopping as in the first fit, got "
                f"early_stopping={self.early_stopping!r}: the samples held out would have been "
                "trained on. Fit a new model instead."
            )
        if self.max_iter < before.n_trees:
            raise ValueError(
                f"max_iter={self.max_iter} must be at least the {before.n_trees} rounds already "
                "made when warm_start=True."
            )

    def _check_parameters(self) -> None:
        check.check_integer("max_iter", self.max_iter, 1, check.MAX_TREES)
        super()._check_parameters()
        if not check.is_number(self.learning_rate) or not 0 < self.learning_rate <= 1e6:
            raise ValueError(
                f"learning_rate must be a positive number up to 1e6, got {self.learning_rate!r}."
            )
        share_of_round(self.subsample, 1)
        samples_of_leaf(self.min_samples_leaf, 1)
        if isinstance(self.max_features, str):
            check.check_choice("max_features", self.max_features, ("auto", "sqrt", "log2"))
        check.check_fraction("l2_regularization", self.l2_regularization, 0.0, 1e30)
        if self.early_stopping != "auto":
            check.check_flag("early_stopping", self.early_stopping)
        self._check_folds()
        fraction = self.validation_fraction
        if not check.is_number(fraction) or not 0 < fraction < 1:
            raise ValueError(f"validation_fraction must be in (0, 1), got {fraction!r}.")
        check.check_integer("n_iter_no_change", self.n_iter_no_change, 1)
        check.check_fraction("tol", self.tol, 0.0, 1e30)

    def _check_folds(self) -> None:
        folds = self.calibration_folds
        if folds is None or (self._folds_may_be_chosen and isinstance(folds, str)):
            check.check_choice("calibration_folds", folds, ("auto",), none=True)
            return
        if not check.is_integer(folds) or folds < 2:
            also = ' or "auto"' if self._folds_may_be_chosen else ""
            raise ValueError(
                f"calibration_folds must be an integer of at least 2{also}, or None for no "
                f"calibration, got {folds!r}."
            )

    def _loss_name(self) -> tuple[Any, ...]:
        """Return the name of the loss, and its quantile if it has one."""
        raise NotImplementedError

    def __setstate__(self, state: Any) -> None:
        restore(self, state, "_forest", check_boosting)

    def _head(self) -> Head:
        classes = self._classes()
        if classes is not None:
            link = "softmax" if len(self._baseline) > 1 else "logistic"
        else:
            link = "exponential" if self._fitted_loss == ("poisson",) else "identity"
        return Head(link, self._baseline, self._exponent, classes)

    def _raw(self, X: Any) -> np.ndarray:
        """Return scores before the link function (n, outputs)."""
        forest = self._fitted()
        X, _ = validation.check_samples(self, X, fitting=False)
        scores: np.ndarray = self._baseline + forest.predict_sum(X, self.n_jobs)
        return scores

    def _staged_raw(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the scores after each round."""
        forest = self._fitted()
        X, _ = validation.check_samples(self, X, fitting=False)
        leaf = forest.apply(X, self.n_jobs).astype(np.int64)
        values = forest.leaf_value.reshape(-1, forest.values)
        scores = np.tile(self._baseline, (len(X), 1))
        for tree in range(forest.n_trees):
            payload = -1 - forest.next[forest.tree_begin[tree] + leaf[:, tree]].astype(np.int64)
            scores = scores + values[payload]
            yield scores

    def attributions(self, X: Any) -> Attributions:
        """Compute what each feature of each sample contributes to its score.

        On the way of a sample down a tree, each split changes the expected score, which is the mean
        of the leaves below, weighted by the number of their training samples in the round. The
        features of the split's atom share that change in proportion to the absolute values of their
        weights, as they share importances. The changes of each feature are added over the path and
        over the rounds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        values : ndarray of shape (n_samples, ...) or (n_samples, ..., n_classes)
            Contributions in the shape of the samples (that of ``data_shape_``). Those of three
            classes or more have a last axis that follows ``classes_``.
        baseline : float or ndarray of shape (n_classes,)
            The first guess plus the expectations of all rounds. The baseline plus the sum of a
            sample's values is its score: that of `decision_function` for classes (log-odds of the
            second of two), that of `predict` in regression, and for ``loss="poisson"`` the
            logarithm of the prediction.

        Notes
        -----
        The result is a named tuple with the fields ``values`` and ``baseline``. Attributions are
        not Shapley values, and how a linear combination is shared depends on the units of its
        features.
        """
        forest = self._fitted()
        X, _ = validation.check_samples(self, X, fitting=False)
        values, baseline = attribute(forest, X, self.n_jobs, mean=False)
        baseline = self._baseline + baseline
        if self._exponent:
            values, baseline = np.ldexp(values, self._exponent), np.ldexp(baseline, self._exponent)
        names = getattr(self, "feature_names_in_", None)
        return shaped(values, baseline, forest.sample_shape, classes=False, feature_names=names)


def check_boosting(model: BaseBoosting) -> None:
    """Check a boosted model that was loaded."""
    check_trees(model)
    folds = model.calibration_folds_
    require(folds is None or (type(folds) is int and folds > 1), "the number of folds")
    require(is_finite(model._correction), "the correction of a quantile")
    if model._calibration is not None:
        kind = ClassCalibration if isinstance(model, ClassifierMixin) else ErrorCalibration
        require(isinstance(model._calibration, kind), "_calibration is not one")
        model._calibration.check(model._fitted())
