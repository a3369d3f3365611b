"""Linear models over the atoms of a dictionary: a ridge classifier and a ridge regressor."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from morforest import _parameters as check
from morforest._data_scale import Sizes
from morforest._fixed_point import blocks, whole_weights
from morforest._leave_one_out import fit_ridge, fit_slope, log_probabilities
from morforest._loading import (
    check_labels,
    check_left_out,
    check_numbers,
    check_samples_seen,
    is_finite,
    require,
    restore,
)
from morforest._model_file import Saved
from morforest._parallel import over_rows
from morforest._states import stored
from morforest._validation import (
    check_classes,
    check_groups,
    check_samples,
    check_targets,
    check_weights,
    class_factors,
)
from morforest.dictionary import Axis
from morforest.dictionary._base import resolve
from morforest.dictionary._presets import SHORTEST_SERIES
from morforest.features import MOST_REPEATED, AtomFeatures

__all__ = ["AtomRidgeClassifier", "AtomRidgeRegressor"]

LARGEST = 8.0  # standard deviations: standardised atoms are clipped there
LEAST_PENALTY, MOST_PENALTY = 1e-50, 1e50  # squares of either are far from overflow
PENALTIES = tuple(np.logspace(-3, 4, 15))
HELD_VALUES = 1 << 24  # of atoms of all training samples, held in float64 before they are scaled
BLOCK_VALUES = 1 << 22  # of atoms of samples to predict, held in float64 at a time
CALL_VALUES = 1 << 17  # computed per call of the core


def check_ridge(estimator: Any) -> None:
    """Check a linear model over drawn atoms; `features_` checks itself."""
    features = estimator.features_
    require(
        isinstance(features, AtomFeatures) and hasattr(features, "_core"),
        "features_ are not drawn atoms",
    )
    check_samples_seen(estimator, features.data_shape_)
    check.check_jobs(estimator.n_jobs)
    size = len(features._atoms)
    for name in ("_origin", "_mean", "_deviation"):
        check_numbers(name, getattr(estimator, name), (size,))
    require(bool((estimator._deviation >= 0).all()), "negative deviations")
    alpha = estimator.alpha_
    require(
        is_finite(alpha) and LEAST_PENALTY <= alpha <= MOST_PENALTY,
        f"alpha_ is not a penalty from {LEAST_PENALTY} to {MOST_PENALTY}",
    )
    if not isinstance(estimator, ClassifierMixin):
        check_numbers("coef_", estimator.coef_, (size,))
        require(is_finite(estimator.intercept_), "intercept_ is not a number")
        check_left_out(estimator, "loo_prediction_", ())
        return
    classes = check_labels(estimator.classes_)
    outputs = classes if classes > 2 else 1
    require(classes > 1, "one class only")
    check_numbers("coef_", estimator.coef_, (outputs, size))
    check_numbers("intercept_", estimator.intercept_, (outputs,))
    with np.errstate(over="ignore"):
        largest = LARGEST * np.abs(estimator.coef_, dtype=np.float64).sum(axis=1)
        largest += np.abs(estimator.intercept_, dtype=np.float64)
    require(bool(np.isfinite(largest).all()), "coef_ has weights whose scores overflow")
    temperature = estimator.temperature_
    require(
        is_finite(temperature) and temperature > 0 and math.isfinite(1 / float(temperature)),
        "temperature_ is not a positive number that scores can be divided by",
    )
    check_left_out(estimator, "loo_decision_function_", (classes,) if classes > 2 else ())


class _AtomRidge(Saved, BaseEstimator):
    """What both estimators share: drawing, standardising and weighting atoms."""

    dictionary: Any
    n_atoms: int
    data_shape: Any
    channel_axis: int | None
    align: str
    alphas: Any
    n_jobs: int | None
    random_state: Any
    coef_: Any
    _sizes: Sizes | None = None  # of the training samples
    intercept_: Any
    _aligned: tuple[str, int] | None = None  # how series of unequal length were brought to one

    def _fit_rows(
        self,
        X: np.ndarray,
        shape: tuple[int, ...],
        targets: np.ndarray,
        labels: np.ndarray,
        weights: np.ndarray,
        groups: np.ndarray | None = None,
    ) -> np.ndarray:
        """Fit columns of targets, and return the leave-one-out predictions of all rows.

        Rows that are equal in X and in `labels` count as one row of their total weight: a whole
        weight is then the same as the row repeated, and a row is not predicted by its own copies.
        Those of different groups stay apart, and rows are left out with their group.
        """
        alphas = self._penalties()
        used = np.flatnonzero(weights > 0)
        if groups is not None and len(np.unique(groups[used])) < 2:
            raise ValueError(
                "groups has a single label among the samples of positive weight: at least two "
                "groups are needed, so that one can be left out."
            )
        first, group = _distinct(X, labels, used, groups)
        chosen = used[first]
        weight = np.bincount(group, weights[used])
        rows = X if len(chosen) == len(X) else X[chosen]
        features = AtomFeatures(
            self._dictionary(shape),
            self.n_atoms,
            data_shape=shape,
            channel_axis=self.channel_axis,
            align=self.align,
            dtype="float64",
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )
        self.features_ = features._fit(rows, _counts(weight, group))
        if hasattr(self, "feature_names_in_"):
            self.features_.feature_names_in_ = self.feature_names_in_
        self.features_._aligned = self._aligned
        atoms = self._standardise(rows, weight)
        together = None if groups is None else groups[chosen]
        fitted = fit_ridge(atoms, targets[chosen], weight, alphas, together)
        self.coef_, self.intercept_ = fitted.coef.T, fitted.intercept
        self.alpha_ = fitted.alpha
        self.data_shape_ = shape
        left_out = np.empty(targets.shape)
        left_out[used] = fitted.left_out[group]
        unused = np.flatnonzero(weights == 0)
        if len(unused):
            left_out[unused] = self._scores(X[unused])
        return left_out

    def _penalties(self) -> np.ndarray:
        try:
            alphas = np.asarray(PENALTIES if self.alphas is None else self.alphas, dtype=np.float64)
            good = alphas.ndim == 1 and len(alphas) and (alphas >= LEAST_PENALTY).all()
        except (TypeError, ValueError):
            good = False
        if not good or not (alphas <= MOST_PENALTY).all():
            raise ValueError(
                "alphas must be None or a list of positive numbers, such as [0.1, 1, 10], from "
                f"{LEAST_PENALTY} to {MOST_PENALTY}, got {self.alphas!r}."
            )
        return alphas

    def _dictionary(self, shape: tuple[int, ...]) -> Any:
        if self.dictionary is not None:
            return self.dictionary
        axes = list(shape)
        channel = resolve(Axis(), shape, self.channel_axis).channel_axis
        if channel is not None and len(axes) > 1:
            del axes[channel]
        return "series-pooled" if axes[-1] >= SHORTEST_SERIES else "sporf"

    def _standardise(self, X: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the standardised atoms of the training rows, and keep what standardises them.

        Values are centred and scaled in float64, some columns after others, and only then stored
        in float32: an offset of the data costs no precision.
        """
        size = len(self.features_._atoms)
        out = np.empty((len(X), size), dtype=np.float32)
        self._origin, self._mean, self._deviation = np.zeros((3, size))
        width = max(1, HELD_VALUES // len(X))
        for start in range(0, size, width):
            some = slice(start, min(start + width, size))
            values = np.empty((len(X), some.stop - some.start))
            read = self.features_._reader(X, some)

            def work(part: slice, read: Any = read, values: np.ndarray = values) -> None:
                values[part] = read(part)

            over_rows(work, len(X), max(1, CALL_VALUES // values.shape[1]), self.n_jobs)
            step = max(1, CALL_VALUES // len(X))
            for begin in range(0, values.shape[1], step):
                block = values[:, begin : begin + step]
                place = slice(start + begin, start + begin + block.shape[1])
                self._origin[place], self._mean[place], self._deviation[place] = _moments(
                    block, weights
                )
                out[:, place] = self._standardised(block, place)
        return out

    def _standardised(self, values: np.ndarray, some: slice) -> np.ndarray:
        """Standardise and clip the values of some atoms, which are overwritten."""
        deviation = self._deviation[some]
        with np.errstate(over="ignore", invalid="ignore"):
            values -= self._origin[some]
            values -= self._mean[some]
            values /= np.where(deviation > 0, deviation, math.inf)
            # Atoms that look at nothing but missing values, or sums that overflow.
            values[np.isnan(values)] = 0
        return np.clip(values, -LARGEST, LARGEST, out=values)

    def _scores(self, X: np.ndarray) -> np.ndarray:
        """Return the scores of flat rows, a column per column of targets."""
        size = len(self._mean)
        coef = np.reshape(self.coef_, (-1, size)).T
        out = np.empty((len(X), coef.shape[1]))
        read = self.features_._reader(X)
        rows = max(1, BLOCK_VALUES // size)
        for start in range(0, len(X), rows):  # the same blocks for any number of threads
            block = slice(start, min(start + rows, len(X)))
            atoms = np.empty((block.stop - block.start, size))

            def work(part: slice, start: int = start, atoms: np.ndarray = atoms) -> None:
                values = read(slice(start + part.start, start + part.stop))
                atoms[part] = self._standardised(values, slice(0, size))

            over_rows(work, len(atoms), max(1, CALL_VALUES // size), self.n_jobs)
            out[block] = atoms @ coef + self.intercept_
        return out

    def _predicted(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "alpha_")
        X, _ = check_samples(self, X, fitting=False)
        return self._scores(X)

    def __setstate__(self, state: Any) -> None:
        restore(self, state, "features_", check_ridge)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


def _distinct(
    X: np.ndarray, labels: np.ndarray, used: np.ndarray, groups: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return, of the rows that are used, the first of each kind, and the kind of each row."""
    found: dict[tuple[bytes, Any, Any], int] = {}
    apart = np.zeros(len(labels), dtype=np.int64) if groups is None else groups
    first: list[int] = []
    group = np.empty(len(used), dtype=np.intp)
    for part in blocks((len(used), X.shape[1])):
        rows = np.ascontiguousarray(X[used[part]])
        for place, row, label, of in zip(
            range(part.start, part.stop),
            rows,
            labels[used[part]].tolist(),
            apart[used[part]].tolist(),
            strict=True,
        ):
            key = (hashlib.blake2b(row, digest_size=16).digest(), label, of)
            group[place] = found.setdefault(key, len(found))
            if len(found) > len(first):
                first.append(place)
    return np.array(first, dtype=np.intp), group


def _counts(weights: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return how often each distinct row counts for the draw of atoms.

    Whole weights count as repeated rows; for others each row of X counts once.
    """
    whole = whole_weights(weights)
    if whole is None or weights.sum() > MOST_REPEATED:
        whole = np.bincount(group).astype(np.uint32)
    return whole


def _moments(values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the lowest value of each column, and the mean above it and the standard deviation.

    Deviations below the rounding of float64 are zero: such columns are constant. Rows without a
    value, NaN, do not count.
    """
    low, high = values.min(axis=0), values.max(axis=0)
    missing = np.isnan(values) if np.isnan(low).any() else None
    if missing is not None:
        low, high = (np.nan_to_num(some.reduce(values, axis=0)) for some in (np.fmin, np.fmax))
        values = np.where(missing, low, values)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = high - low
        exponent = np.frexp(spread)[1]
        above = np.ldexp(values - low, -exponent)
    if not np.isfinite(spread).all():
        raise ValueError(
            "X has values so large that atoms exceed what float64 holds: scale X down."
        )
    total = weights.sum() if missing is None else np.maximum(weights @ ~missing, weights.min())
    mean = weights @ above / total
    above -= mean
    if missing is not None:
        above[missing] = 0
    np.multiply(above, above, out=above)
    deviation = np.ldexp(np.sqrt(weights @ above / total), exponent)
    rounding = np.finfo(np.float64).eps * np.maximum(np.abs(low), np.abs(high))
    return low, np.ldexp(mean, exponent), np.where(deviation > rounding, deviation, 0.0)


@stored
class AtomRidgeClassifier(ClassifierMixin, _AtomRidge):
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
        short for series.
    n_atoms : int, default=10_000
        Number of atoms.
    data_shape : tuple of int or None, default=None
        Shape of one sample, where `X` has flat rows.
    channel_axis : int or None, default=None
        Axis of X that holds channels, such as 1 or -1; see :class:`MorfClassifier`.
    align : {"left", "right", "stretch"}, default="left"
        How series of unequal length are brought to one, where X is a list of arrays; see
        :class:`MorfClassifier`.
    alphas : array-like of float or None, default=None
        Penalties to choose from. None means fifteen from 0.001 to 10,000.
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
        The atoms.
    alpha_ : float
        The penalty that was chosen.
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
class AtomRidgeRegressor(RegressorMixin, _AtomRidge):
    """A ridge regressor over thousands of random atoms.

    :class:`AtomFeatures` draws the atoms. Each atom is standardised by its weighted mean and
    standard deviation over the training samples, and clipped at eight standard deviations. Ridge
    regression with an intercept then fits the targets. The penalty is the one of the lowest
    squared leave-one-out error, which is known in closed form.

    Parameters
    ----------
    dictionary : dictionary, name or None, default=None
        Where atoms are drawn from. None means "series-pooled", or "sporf" where samples are too
        short for series.
    n_atoms : int, default=10_000
        Number of atoms.
    data_shape : tuple of int or None, default=None
        Shape of one sample, where `X` has flat rows.
    channel_axis : int or None, default=None
        Axis of X that holds channels, such as 1 or -1; see :class:`MorfRegressor`.
    align : {"left", "right", "stretch"}, default="left"
        How series of unequal length are brought to one, where X is a list of arrays; see
        :class:`MorfRegressor`.
    alphas : array-like of float or None, default=None
        Penalties to choose from. None means fifteen from 0.001 to 10,000.
    n_jobs : int or None, default=None
        Number of threads that compute atoms; -1 for all processors.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Attributes
    ----------
    features_ : AtomFeatures
        The atoms.
    alpha_ : float
        The penalty that was chosen.
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
    out together; see :class:`AtomRidgeClassifier`.

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
