"""What boosted models predict beside one value: quantiles, intervals and sets of classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from morforest import _losses as losses
from morforest import _parameters as check
from morforest import _validation as validation
from morforest._boosting_base import BaseBoosting
from morforest._calibration import (
    ClassCalibration,
    CrossFit,
    ErrorCalibration,
    finite_quantile,
    fit_rounds,
)
from morforest._estimator import ClassLabels
from morforest._rounds import Boosting
from morforest._training import BoostingSettings, TrainingData, prepare_boosting
from morforest.dictionary._base import ResolvedDictionary


class CalibratedClasses(ClassLabels, BaseBoosting):
    """Boosted models of classes, with sets of them."""

    def _calibrate(
        self,
        left_out: CrossFit,
        task: Boosting,
        folds: list[np.ndarray],
        data: TrainingData,
        resolved: ResolvedDictionary,
        settings: BoostingSettings,
    ) -> None:
        probability = self._probabilities(left_out.scores)
        true = probability[np.arange(len(probability)), data.target]
        of_row = np.empty(len(true), dtype=np.int64)
        for number, rows in enumerate(folds):
            of_row[rows] = number
        self._calibration = ClassCalibration(
            true, data.sample_weights(), of_row, left_out.forests, left_out.baselines
        )

    def _probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Turn scores into the probabilities of the classes."""
        if scores.shape[1] > 1:
            return losses.softmax(scores)
        return losses.softmax(np.hstack([np.zeros_like(scores), scores]))

    def predict_set(self, X: Any, level: float = 0.9, *, allow_empty: bool = False) -> np.ndarray:
        """Predict sets of classes that hold the true class as often as `level` says.

        A class is in the set of a sample unless it is less probable than nearly all true classes
        of training samples. Its probability by the model without a fold is compared with those that
        this model gives to the true classes of the fold, and what remains outside is a share of
        ``1 - level`` of the samples of all folds. The parameter `calibration_folds` must have been
        given. The models of the folds are asked, so that this takes as many times longer than
        `predict` as there are folds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.
        level : float, default=0.9
            Share of samples like those of training whose set is to hold the true class. This holds
            on average over all samples, and not for each class or each kind of sample.
        allow_empty : bool, default=False
            Whether a set may be empty. Where the classifier is right more often than `level` says,
            only empty sets bring the coverage down to it; otherwise the most probable class is in
            every set, and the coverage exceeds the level there.

        Returns
        -------
        sets : ndarray of bool, of shape (n_samples, n_classes)
            Columns follow ``classes_``. If there are too few training samples for the level, sets
            hold all classes.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from morforest import MorfBoostingClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = MorfBoostingClassifier(calibration_folds=5, random_state=0).fit(X, y)
        >>> clf.predict_set(X[:1], level=0.95)
        array([[ True, False, False]])
        """
        self._fitted()
        if not isinstance(self._calibration, ClassCalibration):
            raise self._explain_missing("predict_set")
        check_level(level)
        check.check_flag("allow_empty", allow_empty)
        rows, _ = validation.check_samples(self, X, fitting=False)
        sets = self._calibration.sets(rows, float(level), self._probabilities, self.n_jobs)
        if not allow_empty:
            best = np.searchsorted(self.classes_, self.predict(X))
            sets[np.arange(len(sets)), best] = True
        return sets


class CalibratedNumbers(BaseBoosting):
    """Boosted models of numbers, with quantiles and intervals."""

    loss: str
    quantile: float
    _folds_may_be_chosen = True

    def _calibrate(
        self,
        left_out: CrossFit,
        task: Boosting,
        folds: list[np.ndarray],
        data: TrainingData,
        resolved: ResolvedDictionary,
        settings: BoostingSettings,
    ) -> None:
        predicted = left_out.scores[:, 0]
        error = data.target - (losses.exp(predicted) if self.loss == "poisson" else predicted)
        weight = data.sample_weights()
        if self.loss == "quantile":
            self._correction = finite_quantile(error, weight, float(self.quantile))
            self._baseline = task.baseline + self._correction
            return
        size = np.abs(error)
        if any(not np.delete(size, rows).any() for rows in folds):  # nothing to learn a scale from
            self._calibration = ErrorCalibration(error, weight, exponent=self._exponent)
            return
        # A mean near one, beside which l2_regularization is what it is for counts.
        exponent = int(np.frexp(losses.mean(size, weight))[1])
        settings = replace(settings, loss="poisson")
        sizes = replace(data, target=np.ldexp(size, -exponent))
        scale_task = prepare_boosting(sizes, resolved, settings)
        scale = self._cross_fit(scale_task, folds, settings, early=True)
        self._calibration = ErrorCalibration(
            error / np.ldexp(losses.exp(scale.scores[:, 0]), exponent),
            weight,
            fit_rounds(scale_task, scale.rounds),
            float(scale_task.baseline[0]),
            exponent + self._exponent,
        )

    @property
    def quantile_correction_(self) -> float:
        """Constant that calibration added to predictions of a quantile; else 0."""
        self._fitted()
        return float(np.ldexp(self._correction, self._exponent))

    def _errors(self, method: str) -> ErrorCalibration:
        """Return the errors of samples that were left out, for a method that needs them."""
        self._fitted()
        if not isinstance(self._calibration, ErrorCalibration):
            raise self._explain_missing(method)
        return self._calibration

    def _values(self, scores: np.ndarray) -> np.ndarray:
        """Turn scores into predictions."""
        if self._fitted_loss == ("poisson",):
            return losses.exp(scores[:, 0])
        values: np.ndarray = np.ldexp(scores[:, 0], self._exponent)
        return values

    def predict_quantiles(self, X: Any, q: Any) -> np.ndarray:
        """Predict quantiles of the target.

        A quantile is the prediction plus a scale of the sample times a quantile of the errors of
        samples that the models of the folds left out, each divided by its own scale. The parameter
        `calibration_folds` must have been given, and the loss must not be "quantile".

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.
        q : array-like of shape (n_quantiles,)
            Quantiles to predict, between 0 and 1.

        Returns
        -------
        quantiles : ndarray of shape (n_samples, n_quantiles)
            Columns follow `q`. Quantiles below ``1 / (n + 1)`` and above ``n / (n + 1)``, where n
            is the number of training samples, are infinite.

        Examples
        --------
        >>> import numpy as np
        >>> from morforest import MorfBoostingRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 2))
        >>> y = X[:, 0] + np.random.default_rng(1).normal(size=500)
        >>> reg = MorfBoostingRegressor(calibration_folds=5, random_state=0).fit(X[:250], y[:250])
        >>> low, high = reg.predict_quantiles(X[250:], [0.1, 0.9]).T
        >>> bool(np.mean(y[250:] <= low) < 0.2), bool(np.mean(y[250:] <= high) > 0.8)
        (True, True)
        """
        calibration = self._errors("predict_quantiles")
        levels = np.atleast_1d(np.asarray(q))
        known = levels.ndim == 1 and levels.size > 0 and levels.dtype.kind == "f"
        if not known or not ((levels > 0) & (levels < 1)).all():
            raise ValueError(f"q must be a number or a list of numbers between 0 and 1, got {q!r}.")
        rows, _ = validation.check_samples(self, X, fitting=False)
        scale = calibration.scales(rows, self.n_jobs)[:, np.newaxis]
        found: np.ndarray = self.predict(X)[:, np.newaxis] + scale * calibration.quantiles(levels)
        if self._fitted_loss == ("poisson",):  # counts are never negative
            np.maximum(found, 0.0, out=found)
        return found

    def predict_interval(self, X: Any, level: float = 0.9) -> np.ndarray:
        """Predict intervals that hold the target as often as `level` says.

        Their ends are the quantiles ``(1 - level) / 2`` and ``(1 + level) / 2`` of
        `predict_quantiles`, which says how they are found.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.
        level : float, default=0.9
            Share of samples like those of training whose interval is to hold the target. This holds
            on average over all samples, and not for each kind of sample.

        Returns
        -------
        intervals : ndarray of shape (n_samples, 2)
            Lower and upper ends, which are infinite if there are too few training samples for the
            level.

        Examples
        --------
        >>> import numpy as np
        >>> from morforest import MorfBoostingRegressor
        >>> X = np.random.default_rng(0).uniform(size=(600, 1))
        >>> y = X[:, 0] * np.random.default_rng(1).normal(size=600)
        >>> reg = MorfBoostingRegressor(calibration_folds=5, random_state=0).fit(X, y)
        >>> low, high = reg.predict_interval([[0.1], [0.9]], level=0.8).T
        >>> bool(high[1] - low[1] > 2 * (high[0] - low[0]))
        True
        """
        self._errors("predict_interval")
        check_level(level)
        return self.predict_quantiles(X, [(1.0 - level) / 2, (1.0 + level) / 2])

    def predict(self, X: Any) -> np.ndarray:
        """Predict numbers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        values : ndarray of shape (n_samples,)
            Predictions.
        """
        return self._values(self._raw(X))


def check_level(level: Any) -> None:
    """Raise unless a level is a share between none and all."""
    if not check.is_number(level) or not 0 < level < 1:
        raise ValueError(f"level must be a number between 0 and 1, such as 0.9, got {level!r}.")
