"""Linear models over the atoms of a dictionary: a ridge classifier and a ridge regressor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from morforest import _parameters as check
from morforest._leave_one_out import fit_slope, log_probabilities
from morforest._ridge_base import AtomRidge
from morforest._states import stored
from morforest._validation import (
    check_classes,
    check_groups,
    check_samples,
    check_targets,
    check_weights,
    class_factors,
)

__all__ = ["AtomRidgeClassifier", "AtomRidgeRegressor"]


@stored
class AtomRidgeClassifier(ClassifierMixin, AtomRidge):
    """A ridge classifier over thousands of random atoms, as MiniRocket is for series.

    :class:`AtomFeatures` draws the atoms. Each atom is standardised by its weighted mean and
    standard deviation over the training samples, and clipped at eight standard deviations. Ridge
    regression with an intercept then fits targets of 1 for the samples of a class and -1 for all
    others: once for two classes, and once per class for more. The penalty is the one of the lowest
    squared leave-one-out error, which is known in closed form.

    Parameters
    ----------
    dictionary : dictionary, name or None, default=None
        Where atoms are drawn from. None means "series-pooled", or "sporf" where samples are too
        short for series. "eeg" is for trials of channels by time, and stacks ridge regressions on
        several blocks of columns, see Notes.
    n_atoms : int, default=10_000
        Number of atoms; for "eeg", each of the two blocks of pooled atoms has a fifth as many.
    data_shape : tuple of int or None, default=None
        Shape of one sample, where `X` has flat rows.
    channel_axis : int or None, default=None
        Axis of X that holds channels, such as 1 or -1; see :class:`MorfClassifier`.
    align : {"left", "right", "stretch"}, default="left"
        How series of unequal length are brought to one, where X is a list of arrays; see
        :class:`MorfClassifier`.
    alphas : array-like of float or None, default=None
        Penalties to choose from. None means fifteen from 0.001 to 10,000; for "eeg", whose blocks
        are scaled to a total variance of one, nineteen from 0.00001 to 10,000.
    class_weight : dict, "balanced" or None, default=None
        Factors of the sample weights per class. "balanced" gives all classes the same total
        weight. Classes that a dict does not list have a factor of 1; labels that do not occur in
        `y` are accepted only if the dict lists all classes of `y` too.
    n_jobs : int or None, default=None
        Number of threads that compute atoms; -1 for all processors.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted; only those of samples with positive weight.
    features_ : AtomFeatures
        The atoms; for "eeg", the columns of the blocks that were kept.
    alpha_ : float or ndarray
        The penalty that was chosen; for "eeg", that of each block that was kept.
    blocks_ : list of named tuples, or None
        For "eeg", each block that was tried: its `name`, `n_columns`, `alpha`, `loo_error` (the
        squared leave-one-out error of this block alone, to that of the mean of the targets) and
        `share` (what its predictions are multiplied by in the sum; zero if it was dropped).
    coef_ : ndarray of shape (1 or n_classes, n_atoms)
        Weights of the standardised atoms; columns follow ``features_.get_feature_names_out()``.
    intercept_ : ndarray of shape (1 or n_classes,)
        The intercepts.
    loo_decision_function_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        The scores of each training sample by the fit without it, or without its group.
        Atoms, standardisation and penalty are those of all samples.
    temperature_ : float
        What `predict_proba` divides scores by.
    data_shape_ : tuple of int
        Shape of one sample.
    n_features_in_ : int
        Number of features of a sample.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X was a data frame with string names.

    See Also
    --------
    AtomRidgeRegressor : The same for numbers to predict.
    AtomFeatures : The atoms as columns, for any other estimator.

    Notes
    -----
    Equal training samples of the same class are merged into one of their total weight. So weights
    that are whole numbers are exactly the same as samples repeated (where they add up to more than
    16 million, biases of pooled atoms may be others), and leaving out a sample leaves out its
    copies: they would give its class away. As in :class:`sklearn.linear_model.Ridge` the scale of
    the weights matters: weights twice as large are a penalty of half the size.

    **EEG.** ``dictionary="eeg"`` makes five blocks of columns. "raw" are the values in place, and
    "white" those of channels that are whitened by the mean covariance of the trials, with 5 %
    shrinkage, which undoes some of what mixes sources over electrodes. "products" are the
    logarithms of powers and the correlations of whitened channels, for all frequencies and within
    octave bands. "pooled" and "white pooled" are atoms of "series-pooled". Each block has a ridge
    regression and a penalty of its own. The model is a sum of these, with shares that are not
    negative and fit the targets best by leave-one-out predictions; blocks that would lower the
    squared error by less than a hundredth are dropped. With `groups`, such as runs or persons, all
    these predictions leave out the whole group. :meth:`block_maps` shows what the model looks at.
    The whitening does not see targets, but it sees all training samples: leave-one-out predictions
    take it, like penalties and shares, as given. In cross-validation everything is fitted anew.

    Results are the same for any `n_jobs`. The atoms are the same on every machine, but sums of
    the linear algebra are rounded as the machine's BLAS adds them up: between machines, or numbers
    of BLAS threads, scores differ in their last digits.

    Examples
    --------
    >>> import numpy as np
    >>> from morforest import AtomRidgeClassifier
    >>> random = np.random.default_rng(0)
    >>> y = np.arange(200) % 2
    >>> X = random.normal(size=(200, 50))
    >>> X[y == 1, 1:] += X[y == 1, :-1]  # neighbours are alike in one of the classes
    >>> model = AtomRidgeClassifier(n_atoms=1000, random_state=0)
    >>> model.fit(X[:100], y[:100]).score(X[100:], y[100:]) > 0.9
    True
    >>> model.predict_proba(X[100:]).shape
    (100, 2)
    """

    def __init__(
        self,
        dictionary: Any = None,
        n_atoms: int = 10_000,
        *,
        data_shape: Any = None,
        channel_axis: int | None = None,
        align: str = "left",
        alphas: Any = None,
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.dictionary = dictionary
        self.n_atoms = n_atoms
        self.data_shape = data_shape
        self.channel_axis = channel_axis
        self.align = align
        self.alphas = alphas
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> AtomRidgeClassifier:
        """Draw the atoms, fit their weights, and calibrate the probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples of any rank, or flat rows, which may be a sparse matrix; a list of
            arrays where series have unequal lengths, see `align`.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights. A whole number counts as the sample repeated that often, and zero as the
            sample left out.
        groups : array-like of shape (n_samples,) or None, default=None
            Label of the group of each sample, such as the patient. The errors that choose the
            penalty are then those of fits without the whole group of a sample, and equal samples of
            different groups are not merged. Large groups take time: for each, and each penalty, a
            system of as many equations as it has samples is solved.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        state = self.__dict__.copy()
        try:
            return self._fit(X, y, sample_weight, groups)
        except BaseException:
            self.__dict__ = state  # a failed fit leaves the estimator as it was
            raise

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> AtomRidgeClassifier:
        self._penalties()
        check.check_jobs(self.n_jobs)
        X, shape = check_samples(self, X, fitting=True)
        classes, codes = check_classes(y, len(X))
        weights = check_weights(sample_weight, len(X))
        weights = self._class_weighted(classes, codes, weights)
        present, codes_present = np.unique(codes[weights > 0], return_inverse=True)
        if len(present) < 2:
            where = "" if (weights > 0).all() else " among the samples of positive weight"
            raise ValueError(
                f"y has one class only{where}, {classes[present[0]]!r}: samples of two classes are "
                "needed."
            )
        # Samples without weight may be of other classes; their targets play no part.
        targets = np.where(codes[:, None] == present, 1.0, -1.0)
        targets = targets[:, 1:] if len(present) == 2 else targets
        numbers = check_groups(groups, len(X))
        scores = self._fit_rows(X, shape, targets, codes, weights, numbers)
        slope = fit_slope(scores[weights > 0], codes_present, weights[weights > 0])
        self.classes_ = classes[present]
        self.loo_decision_function_ = scores[:, 0] if len(present) == 2 else scores
        self.temperature_ = 1 / slope
        return self

    def _class_weighted(
        self, classes: np.ndarray, codes: np.ndarray, weights: np.ndarray | None
    ) -> np.ndarray:
        weights = np.ones(len(codes)) if weights is None else weights
        if self.class_weight is None:
            return weights
        if isinstance(self.class_weight, str) and self.class_weight != "balanced":
            raise ValueError(
                'class_weight must be None, "balanced" or a dict from class to weight, got '
                f"{self.class_weight!r}."
            )
        factors = class_factors(self.class_weight, classes, codes, weights)
        found: np.ndarray = weights * factors[codes]
        if not (found > 0).any():
            raise ValueError(
                f"class_weight={self.class_weight!r} leaves no sample of positive weight."
            )
        return found

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes the score of the second: positive where it is predicted.
        """
        scores = self._predicted(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of the highest score, which is the most probable one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Class labels.
        """
        scores = self.decision_function(X)
        index = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: np.ndarray = self.classes_[index]
        return labels

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes.

        They are the softmax of the scores divided by `temperature_`; for two classes, the logistic
        function of the score divided by it. The temperature is that of the lowest log loss of the
        leave-one-out scores of the training samples. As in Platt's calibration, the targets are
        (m + 1) / (m + 2) in place of one for a total weight of m, so that probabilities stay
        moderate where few samples are separated perfectly. The most probable class is always the
        one that `predict` returns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Columns are in the order of `classes_`.
        """
        probabilities: np.ndarray = np.exp(self.predict_log_proba(X))
        return probabilities

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            Columns are in the order of `classes_`.
        """
        return log_probabilities(self._predicted(X), 1 / self.temperature_)


@stored
class AtomRidgeRegressor(RegressorMixin, AtomRidge):
    """A ridge regressor over thousands of random atoms.

    :class:`AtomFeatures` draws the atoms. Each atom is standardised by its weighted mean and
    standard deviation over the training samples, and clipped at eight standard deviations. Ridge
    regression with an intercept then fits the targets. The penalty is the one of the lowest
    squared leave-one-out error, which is known in closed form.

    Parameters
    ----------
    dictionary : dictionary, name or None, default=None
        Where atoms are drawn from. None means "series-pooled", or "sporf" where samples are too
        short for series. "eeg" is for trials of channels by time, and stacks ridge regressions on
        several blocks of columns, see Notes.
    n_atoms : int, default=10_000
        Number of atoms; for "eeg", each of the two blocks of pooled atoms has a fifth as many.
    data_shape : tuple of int or None, default=None
        Shape of one sample, where `X` has flat rows.
    channel_axis : int or None, default=None
        Axis of X that holds channels, such as 1 or -1; see :class:`MorfRegressor`.
    align : {"left", "right", "stretch"}, default="left"
        How series of unequal length are brought to one, where X is a list of arrays; see
        :class:`MorfRegressor`.
    alphas : array-like of float or None, default=None
        Penalties to choose from. None means fifteen from 0.001 to 10,000; for "eeg", whose blocks
        are scaled to a total variance of one, nineteen from 0.00001 to 10,000.
    n_jobs : int or None, default=None
        Number of threads that compute atoms; -1 for all processors.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Attributes
    ----------
    features_ : AtomFeatures
        The atoms; for "eeg", the columns of the blocks that were kept.
    alpha_ : float or ndarray
        The penalty that was chosen; for "eeg", that of each block that was kept.
    blocks_ : list of named tuples, or None
        For "eeg", each block that was tried: its `name`, `n_columns`, `alpha`, `loo_error` (the
        squared leave-one-out error of this block alone, to that of the mean of the targets) and
        `share` (what its predictions are multiplied by in the sum; zero if it was dropped).
    coef_ : ndarray of shape (n_atoms,)
        Weights of the standardised atoms, in the units of the targets; they follow
        ``features_.get_feature_names_out()``.
    intercept_ : float
        The intercept.
    loo_prediction_ : ndarray of shape (n_samples,)
        The prediction for each training sample by the fit without it, or without its group. Atoms,
        standardisation and penalty are those of all samples. NaN if all samples are copies of one.
    data_shape_ : tuple of int
        Shape of one sample.
    n_features_in_ : int
        Number of features of a sample.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X was a data frame with string names.

    See Also
    --------
    AtomRidgeClassifier : The same for classes, where weights and precision are explained.
    AtomFeatures : The atoms as columns, for any other estimator.

    Notes
    -----
    Equal training samples of the same target are merged into one of their total weight, and left
    out together. This, and ``dictionary="eeg"``, are explained under :class:`AtomRidgeClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from morforest import AtomRidgeRegressor
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(300, 50))
    >>> y = np.abs(np.diff(X)).mean(axis=1)  # how rough a series is
    >>> model = AtomRidgeRegressor(n_atoms=1000, random_state=0)
    >>> model.fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.8
    True
    """

    def __init__(
        self,
        dictionary: Any = None,
        n_atoms: int = 10_000,
        *,
        data_shape: Any = None,
        channel_axis: int | None = None,
        align: str = "left",
        alphas: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.dictionary = dictionary
        self.n_atoms = n_atoms
        self.data_shape = data_shape
        self.channel_axis = channel_axis
        self.align = align
        self.alphas = alphas
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> AtomRidgeRegressor:
        """Draw the atoms and fit their weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples of any rank, or flat rows, which may be a sparse matrix; a list of
            arrays where series have unequal lengths, see `align`.
        y : array-like of shape (n_samples,)
            Numbers to predict.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights. A whole number counts as the sample repeated that often, and zero as the
            sample left out.
        groups : array-like of shape (n_samples,) or None, default=None
            Label of the group of each sample, such as the patient. The errors that choose the
            penalty are then those of fits without the whole group of a sample, and equal samples of
            different groups are not merged. Large groups take time: for each, and each penalty, a
            system of as many equations as it has samples is solved.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        state = self.__dict__.copy()
        try:
            return self._fit(X, y, sample_weight, groups)
        except BaseException:
            self.__dict__ = state  # a failed fit leaves the estimator as it was
            raise

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> AtomRidgeRegressor:
        self._penalties()
        check.check_jobs(self.n_jobs)
        X, shape = check_samples(self, X, fitting=True)
        y = check_targets(y, len(X), "squared_error")
        weights = check_weights(sample_weight, len(X))
        weights = np.ones(len(X)) if weights is None else weights
        # Errors are squared: targets of about one neither overflow nor vanish.
        low, high = y[weights > 0].min(), y[weights > 0].max()
        centre = low / 2 + high / 2
        exponent = math.frexp(high - centre)[1]
        targets = np.ldexp(y - centre, -exponent)
        numbers = check_groups(groups, len(X))
        left_out = self._fit_rows(X, shape, targets[:, None], y, weights, numbers)
        self.coef_ = np.ldexp(self.coef_[0], exponent)
        self.intercept_ = float(np.ldexp(self.intercept_[0], exponent) + centre)
        self.loo_prediction_ = np.ldexp(left_out[:, 0], exponent) + centre
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict numbers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predictions.
        """
        return self._predicted(X)[:, 0]
