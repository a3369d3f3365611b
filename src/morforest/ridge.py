"""A linear classifier over the atoms of a dictionary."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from morforest._validation import check_classes, check_samples
from morforest.dictionary import Axis
from morforest.dictionary._base import resolve
from morforest.dictionary._presets import SHORTEST_SERIES
from morforest.features import AtomFeatures

__all__ = ["AtomRidgeClassifier"]

LARGEST = 8.0  # standard deviations: features beyond are cut
PENALTIES = tuple(np.logspace(-3, 4, 15))


class AtomRidgeClassifier(ClassifierMixin, BaseEstimator):
    """A ridge classifier over thousands of random atoms: for series, what MiniRocket does.

    :class:`AtomFeatures` draws the atoms, each is standardised and cut at eight standard
    deviations, and a ridge classifier chooses its penalty by leave-one-out errors, in closed form.

    Parameters
    ----------
    dictionary : dictionary, name or None, default=None
        Where atoms are drawn from. None: "series-pooled", or ``SparseOblique()`` where samples are
        too short for series.
    n_atoms : int, default=10_000
        How many.
    alphas : array-like of float or None, default=None
        Penalties to choose from; None: fifteen from 0.001 to 10,000.
    data_shape : tuple of int or None, default=None
        Shape of one sample, where `X` has flat rows.
    channel_axis : int or None, default=None
        Axis of X that holds channels, such as 1 or -1; see :class:`MorfClassifier`.
    class_weight : dict, "balanced" or None, default=None
        What each class' samples count for.
    n_jobs : int or None, default=None
        Number of threads that compute atoms.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    features_ : AtomFeatures
        The atoms.
    alpha_ : float
        The penalty that was chosen.
    coef_ : ndarray of shape (1 or n_classes, n_atoms)
        Weights of the standardised atoms; columns follow ``features_.get_feature_names_out()``.
    data_shape_ : tuple of int
        Shape of one sample.
    n_features_in_ : int
        Number of features of a sample.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X was a data frame with string names.

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
    """

    def __init__(
        self,
        dictionary: Any = None,
        n_atoms: int = 10_000,
        *,
        alphas: Any = None,
        data_shape: Any = None,
        channel_axis: int | None = None,
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.dictionary = dictionary
        self.n_atoms = n_atoms
        self.alphas = alphas
        self.data_shape = data_shape
        self.channel_axis = channel_axis
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> AtomRidgeClassifier:
        """Draw the atoms and fit their weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples of any rank, or flat rows.
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        state = self.__dict__.copy()
        try:
            return self._fit(X, y)
        except BaseException:
            self.__dict__ = state  # a failed fit leaves the estimator as it was
            raise

    def _fit(self, X: Any, y: Any) -> AtomRidgeClassifier:
        from sklearn.linear_model import RidgeClassifierCV  # takes long to import

        alphas = self._penalties()
        X, shape = check_samples(self, X, fitting=True)
        classes, codes = check_classes(y, len(X))
        if len(classes) < 2:
            raise ValueError(
                f"y has one class only, {classes[0]!r}: samples of two classes are needed."
            )
        features = AtomFeatures(
            self._dictionary(shape),
            self.n_atoms,
            random_state=self.random_state,
            channel_axis=self.channel_axis,
            n_jobs=self.n_jobs,
            data_shape=shape,
        )
        values = features.fit_transform(X)
        self.features_ = features
        self._mean = values.mean(axis=0, dtype=np.float64)
        deviation = values.std(axis=0, dtype=np.float64)
        self._scale = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
        ridge = RidgeClassifierCV(alphas, class_weight=self.class_weight)
        ridge.fit(self._standardised(values), classes[codes])
        self.ridge_ = ridge
        self.classes_ = ridge.classes_
        self.alpha_ = float(ridge.alpha_)
        self.coef_ = ridge.coef_
        self.data_shape_ = shape
        return self

    def _penalties(self) -> np.ndarray:
        try:
            alphas = np.asarray(PENALTIES if self.alphas is None else self.alphas, dtype=np.float64)
            good = alphas.ndim == 1 and len(alphas) and np.isfinite(alphas).all()
        except (TypeError, ValueError):
            good = False
        if not good or not (alphas > 0).all():
            raise ValueError(
                "alphas must be None or a list of positive numbers, such as [0.1, 1, 10], got "
                f"{self.alphas!r}."
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

    def _standardised(self, values: np.ndarray) -> np.ndarray:
        scaled = (values - self._mean) * self._scale
        return np.clip(scaled, -LARGEST, LARGEST, out=scaled)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Of two classes, that of the second: positive where it is predicted.
        """
        check_is_fitted(self, "ridge_")
        X, _ = check_samples(self, X, fitting=False)
        scores: np.ndarray = self.ridge_.decision_function(
            self._standardised(self.features_.transform(X))
        )
        return scores

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of the highest score.

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
        return self.classes_[index]
