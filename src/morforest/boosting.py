"""Boosted trees for data with shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from morforest import _parameters as check
from morforest import _validation as validation
from morforest._calibrated import CalibratedClasses, CalibratedNumbers
from morforest._states import stored

__all__ = ["MorfBoostingClassifier", "MorfBoostingRegressor"]

LARGEST_COUNT = 1e15  # of a Poisson target


@stored
class MorfBoostingClassifier(ClassifierMixin, CalibratedClasses):
    """Boosted trees that classify data with shape.

    Each round fits one tree to what the earlier rounds left unexplained. The leaves of a tree hold
    one number per class, so that a round costs one tree, whatever the number of classes.

    Parameters
    ----------
    dictionary : dictionary object, str or None, default=None
        Where split candidates come from, as in :class:`MorfClassifier`. None chooses by the shape
        of a sample: ``Patch()`` for samples with two axes or more. For flat rows it takes single
        features and sparse sums, half each, and the sums prefer features that earlier rounds gained
        from.
    learning_rate : float, default=0.05
        Factor of the leaves of each tree. Smaller ones need more rounds, and are often a little
        better.
    max_iter : int, default=500
        Number of rounds, at most 1,000,000. A round grows one tree, whatever the number of classes.
    data_shape : tuple of int or None, default=None
        Shape of one sample where X has flat rows, such as ``(28, 28)``. None takes the shape from
        X.
    channel_axis : int or None, default=None
        Axis of X that holds channels (sensors, colours), counted as NumPy does: 1 for X of shape
        (n, channels, time), -1 for (n, height, width, 3). Where X has flat rows, it counts the axes
        of (n, *data_shape). Patches stay within one channel, unless a tuple of sizes names that
        axis.
    align : {"left", "right", "stretch"}, default="left"
        How series of unequal length are brought to that of the longest one in training, where X is
        a list of arrays (time,) or (channels, time). "left" lets all begin at the same step and
        "right" lets all end there; steps that a series does not have are missing values. "stretch"
        interpolates each series linearly in time. Series to predict that are longer are cut off,
        with a warning, or stretched.
    max_features : {"auto", "sqrt", "log2"}, int, float or None, default="auto"
        Number of candidates that each node draws. "sqrt" and "log2" take the square root and the
        binary logarithm of the number of features, a float is a fraction of it (and may exceed 1),
        None takes the number itself, and an integer is used as it is. "auto" means None for flat
        rows and "sqrt" for samples with two axes or more.
    splitter : {"histogram", "exact"}, default="histogram"
        How thresholds are found. "exact" tries every midpoint between neighbouring values.
        "histogram" does so in small nodes, and tries 64 equally spaced thresholds in large ones.
    subsample : float or "auto", default="auto"
        Share of the training samples that each round draws. "auto" is 0.8 for up to 5,000 training
        samples, and 0.5 for more.
    max_depth : int or None, default=6
        Largest depth of a tree; None sets no limit.
    min_samples_leaf : int, float or "auto", default="auto"
        Each side of a split needs at least so many samples. A float is a fraction of the samples of
        a round. "auto" is 20, or a third of the samples of a round where that is less.
    max_leaf_nodes : int or None, default=None
        Largest number of leaves per tree; splits with the largest gain come first. None sets no
        limit.
    l2_regularization : float, default=0.3
        Number added to the curvature of each leaf, which makes leaves of few samples smaller.
    early_stopping : bool or "auto", default="auto"
        Whether to hold samples out, and to stop when their loss no longer decreases. With
        `calibration_folds`, the samples held out are those of the folds. "auto" stops early with
        `calibration_folds`, and not without.
    validation_fraction : float, default=0.1
        Share of the samples, of each class alike, that is held out, where there are no
        `calibration_folds`.
    n_iter_no_change : int, default=20
        Number of rounds without a lower held-out loss after which the fit stops. The model keeps
        the rounds up to the lowest loss.
    tol : float, default=1e-07
        Smallest decrease of the held-out loss that counts as one.
    calibration_folds : int or None, default=None
        Number of cross-validation folds from which `predict_set` learns how large sets of classes
        have to be. A model is fitted without each fold, round by round, up to the number of rounds
        with the lowest mean loss on what they left out; the model itself is then fitted to all
        samples with this number of rounds. The fit takes about as many times longer as there are
        folds, plus one, but with fewer rounds. None makes no such models.
    augment : ImageCopies, SeriesCopies or None, default=None
        Copies of the training samples to learn from as well, drawn anew 16 times per fit. Samples
        that are held out have no copies.
    class_weight : {"balanced"}, dict or None, default=None
        Weights of the classes, none of them negative: a dict from label to weight, or "balanced"
        for weights in inverse proportion to the frequencies of the classes.
    warm_start : bool, default=False
        Whether a further fit keeps the rounds and adds new ones until there are `max_iter`. Not
        with `calibration_folds`.
    n_jobs : int or None, default=None
        Number of threads, at most 4,096; -1 uses all processors. They share the candidates of large
        nodes, because rounds follow one another. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of all random numbers. The same seed and samples give the same model on every platform.
    verbose : int, default=0
        Whether to show the rounds, their losses and the time left while fitting.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    n_classes_ : int
        Number of classes.
    n_iter_ : int
        Number of rounds that the model keeps.
    train_score_ : ndarray of shape (n_rounds,)
        Mean loss of the training samples after each round that was made.
    validation_score_ : ndarray of shape (n_rounds,)
        Mean loss of the samples that were held out, after each round that was tried; empty without
        `early_stopping` and `calibration_folds`.
    data_shape_ : tuple of int
        Shape of one sample.
    dictionary_ : dictionary object
        The dictionary in use: a copy of the one given, or the one that None, a name or "auto"
        stands for.
    dictionary_scores_ : dict from str to float
        Out-of-bag score of each name that ``dictionary="auto"`` tried; only set by "auto".
    max_features_ : int
        Number of candidates that each node draws. A dictionary with fewer atoms offers all of them.
    subsample_ : float
        Share of the training samples that each round of the latest fit drew.
    min_samples_leaf_ : int
        Number of samples that each side of a split needed in the latest fit.
    calibration_folds_ : int or None
        Number of folds of the latest fit.
    n_features_in_ : int
        Number of features of a sample.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns; only set if X was a data frame with string names.
    feature_importances_ : ndarray in the shape of a sample
        Share of each feature in the total gain of the splits.
    split_shares_ : ndarray in the shape of a sample
        Share of the splits whose atom uses a feature.
    splits_ : Splits
        Splits of each tree: nodes, atoms, and thresholds in the units of the data.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from morforest import MorfBoostingClassifier, Patch
    >>> X, y = load_digits(return_X_y=True)
    >>> X = X.reshape(-1, 8, 8)
    >>> clf = MorfBoostingClassifier(Patch(max_size=3), max_iter=50, random_state=0)
    >>> clf.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.9
    True
    """

    def __init__(
        self,
        dictionary: Any = None,
        *,
        learning_rate: float = 0.05,
        max_iter: int = 500,
        data_shape: Any = None,
        channel_axis: int | None = None,
        align: str = "left",
        max_features: Any = "auto",
        splitter: str = "histogram",
        subsample: float | str = "auto",
        max_depth: int | None = 6,
        min_samples_leaf: int | float | str = "auto",
        max_leaf_nodes: int | None = None,
        l2_regularization: float = 0.3,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 20,
        tol: float = 1e-7,
        calibration_folds: int | None = None,
        augment: Any = None,
        class_weight: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.dictionary = dictionary
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.data_shape = data_shape
        self.channel_axis = channel_axis
        self.align = align
        self.max_features = max_features
        self.splitter = splitter
        self.subsample = subsample
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.max_leaf_nodes = max_leaf_nodes
        self.l2_regularization = l2_regularization
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.calibration_folds = calibration_folds
        self.augment = augment
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.class_weight, str):
            check.check_choice("class_weight", self.class_weight, ("balanced",))

    def _read_target(self, y: Any, n_samples: int) -> np.ndarray:
        codes = super()._read_target(y, n_samples)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class only, {self.classes_[0]!r}: boosting needs samples of two "
                "classes."
            )
        return codes

    def _loss_name(self) -> tuple[Any, ...]:
        return ("log_loss",)

    def _labels(self, scores: np.ndarray) -> np.ndarray:
        best = np.argmax(scores, axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
        labels: np.ndarray = self.classes_[best]
        return labels

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores before they are turned into probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes) or (n_samples,)
            Scores of the classes; of two classes, the log-odds of the second.
        """
        scores = self._raw(X)
        return scores if scores.shape[1] > 1 else scores[:, 0]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Columns follow ``classes_``.
        """
        return self._probabilities(self._raw(X))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Predict the logarithms of class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            Columns follow ``classes_``.
        """
        logarithms: np.ndarray = np.log(self.predict_proba(X))
        return logarithms

    def predict(self, X: Any) -> np.ndarray:
        """Predict the most probable class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Class labels.
        """
        return self._labels(self._raw(X))

    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the class probabilities after each round."""
        return map(self._probabilities, self._staged_raw(X))

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the most probable classes after each round."""
        return map(self._labels, self._staged_raw(X))


@stored
class MorfBoostingRegressor(RegressorMixin, CalibratedNumbers):
    """Boosted trees that predict numbers from data with shape.

    Each round fits one tree to what the earlier rounds left unexplained.

    Parameters
    ----------
    dictionary : dictionary object, str or None, default=None
        Where split candidates come from, as in :class:`MorfClassifier`. None chooses by the shape
        of a sample: ``Patch()`` for samples with two axes or more. For flat rows it takes single
        features and sparse sums, half each, and the sums prefer features that earlier rounds gained
        from.
    loss : {"squared_error", "absolute_error", "poisson", "quantile"}, default="squared_error"
        Loss to minimise. "poisson" fits the logarithm of a mean, and "quantile" the quantile given
        by the next parameter.
    quantile : float, default=0.5
        Quantile to predict with ``loss="quantile"``. See `calibration_folds` for how new targets
        come to be below it as often as it says.
    learning_rate : float, default=0.05
        Factor of the leaves of each tree. Smaller ones need more rounds, and are often a little
        better.
    max_iter : int, default=500
        Number of rounds, at most 1,000,000. A round grows one tree, whatever the number of classes.
    data_shape : tuple of int or None, default=None
        Shape of one sample where X has flat rows, such as ``(28, 28)``. None takes the shape from
        X.
    channel_axis : int or None, default=None
        Axis of X that holds channels (sensors, colours), counted as NumPy does: 1 for X of shape
        (n, channels, time), -1 for (n, height, width, 3). Where X has flat rows, it counts the axes
        of (n, *data_shape). Patches stay within one channel, unless a tuple of sizes names that
        axis.
    align : {"left", "right", "stretch"}, default="left"
        How series of unequal length are brought to that of the longest one in training, where X is
        a list of arrays (time,) or (channels, time). "left" lets all begin at the same step and
        "right" lets all end there; steps that a series does not have are missing values. "stretch"
        interpolates each series linearly in time. Series to predict that are longer are cut off,
        with a warning, or stretched.
    max_features : {"auto", "sqrt", "log2"}, int, float or None, default="auto"
        Number of candidates that each node draws. "sqrt" and "log2" take the square root and the
        binary logarithm of the number of features, a float is a fraction of it (and may exceed 1),
        None takes the number itself, and an integer is used as it is. "auto" means None for flat
        rows and "sqrt" for samples with two axes or more.
    splitter : {"histogram", "exact"}, default="histogram"
        How thresholds are found. "exact" tries every midpoint between neighbouring values.
        "histogram" does so in small nodes, and tries 64 equally spaced thresholds in large ones.
    subsample : float or "auto", default="auto"
        Share of the training samples that each round draws. "auto" is 0.8 for up to 5,000 training
        samples, and 0.5 for more.
    max_depth : int or None, default=6
        Largest depth of a tree; None sets no limit.
    min_samples_leaf : int, float or "auto", default="auto"
        Each side of a split needs at least so many samples. A float is a fraction of the samples of
        a round. "auto" is 20, or a third of the samples of a round where that is less.
    max_leaf_nodes : int or None, default=None
        Largest number of leaves per tree; splits with the largest gain come first. None sets no
        limit.
    l2_regularization : float, default=0.3
        Number added to the curvature of each leaf, which makes leaves of few samples smaller.
    early_stopping : bool or "auto", default="auto"
        Whether to hold samples out, and to stop when their loss no longer decreases. With
        `calibration_folds`, the samples held out are those of the folds. "auto" stops early with
        `calibration_folds`, and not without.
    validation_fraction : float, default=0.1
        Share of the samples, of each class alike, that is held out, where there are no
        `calibration_folds`.
    n_iter_no_change : int, default=20
        Number of rounds without a lower held-out loss after which the fit stops. The model keeps
        the rounds up to the lowest loss.
    tol : float, default=1e-07
        Smallest decrease of the held-out loss that counts as one.
    calibration_folds : int, "auto" or None, default="auto"
        Number of cross-validation folds that calibrate the model. A model is fitted without each
        fold, round by round, up to the number of rounds with the lowest mean loss on what they left
        out; the model itself is then fitted to all samples with this number of rounds. With
        ``loss="quantile"``, predictions are moved by the constant with which the samples left out
        are below their predictions as often as `quantile` says. With other losses, the errors of
        the samples left out are what `predict_quantiles` and `predict_interval` are made of, and
        as many models again learn how large errors are for which samples. A fit takes about as
        many times longer as there are models, but with fewer rounds. "auto" is 5 with
        ``loss="quantile"``, and None otherwise. None makes no such models.
    augment : ImageCopies, SeriesCopies or None, default=None
        Copies of the training samples to learn from as well, drawn anew 16 times per fit. Samples
        that are held out have no copies.
    warm_start : bool, default=False
        Whether a further fit keeps the rounds and adds new ones until there are `max_iter`. Not
        with `calibration_folds`.
    n_jobs : int or None, default=None
        Number of threads, at most 4,096; -1 uses all processors. They share the candidates of large
        nodes, because rounds follow one another. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of all random numbers. The same seed and samples give the same model on every platform.
    verbose : int, default=0
        Whether to show the rounds, their losses and the time left while fitting.

    Attributes
    ----------
    n_iter_ : int
        Number of rounds that the model keeps.
    train_score_ : ndarray of shape (n_rounds,)
        Mean loss of the training samples after each round that was made.
    validation_score_ : ndarray of shape (n_rounds,)
        Mean loss of the samples that were held out, after each round that was tried; empty without
        `early_stopping` and `calibration_folds`.
    data_shape_ : tuple of int
        Shape of one sample.
    dictionary_ : dictionary object
        The dictionary in use: a copy of the one given, or the one that None, a name or "auto"
        stands for.
    dictionary_scores_ : dict from str to float
        Out-of-bag score of each name that ``dictionary="auto"`` tried; only set by "auto".
    max_features_ : int
        Number of candidates that each node draws. A dictionary with fewer atoms offers all of them.
    subsample_ : float
        Share of the training samples that each round of the latest fit drew.
    min_samples_leaf_ : int
        Number of samples that each side of a split needed in the latest fit.
    calibration_folds_ : int or None
        Number of folds of the latest fit.
    quantile_correction_ : float
        Constant that calibration added to the predictions of ``loss="quantile"``; else 0.
    n_features_in_ : int
        Number of features of a sample.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns; only set if X was a data frame with string names.
    feature_importances_ : ndarray in the shape of a sample
        Share of each feature in the total gain of the splits.
    split_shares_ : ndarray in the shape of a sample
        Share of the splits whose atom uses a feature.
    splits_ : Splits
        Splits of each tree: nodes, atoms, and thresholds in the units of the data.

    Examples
    --------
    >>> import numpy as np
    >>> from morforest import MorfBoostingRegressor, Patch
    >>> X = np.random.default_rng(0).normal(size=(200, 30))
    >>> y = X[:, 10:20].sum(axis=1)
    >>> reg = MorfBoostingRegressor(Patch(min_size=5, max_size=12), max_iter=100, random_state=0)
    >>> reg.fit(X[:150], y[:150]).score(X[150:], y[150:]) > 0.6
    True
    """

    def __init__(
        self,
        dictionary: Any = None,
        *,
        loss: str = "squared_error",
        quantile: float = 0.5,
        learning_rate: float = 0.05,
        max_iter: int = 500,
        data_shape: Any = None,
        channel_axis: int | None = None,
        align: str = "left",
        max_features: Any = "auto",
        splitter: str = "histogram",
        subsample: float | str = "auto",
        max_depth: int | None = 6,
        min_samples_leaf: int | float | str = "auto",
        max_leaf_nodes: int | None = None,
        l2_regularization: float = 0.3,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 20,
        tol: float = 1e-7,
        calibration_folds: int | str | None = "auto",
        augment: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.dictionary = dictionary
        self.loss = loss
        self.quantile = quantile
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.data_shape = data_shape
        self.channel_axis = channel_axis
        self.align = align
        self.max_features = max_features
        self.splitter = splitter
        self.subsample = subsample
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.max_leaf_nodes = max_leaf_nodes
        self.l2_regularization = l2_regularization
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.calibration_folds = calibration_folds
        self.augment = augment
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        names = ("squared_error", "absolute_error", "poisson", "quantile")
        check.check_choice("loss", self.loss, names)
        if not check.is_number(self.quantile) or not 0 < self.quantile < 1:
            raise ValueError(f"quantile must be in (0, 1), got {self.quantile!r}.")

    def _read_target(self, y: Any, n_samples: int) -> np.ndarray:
        target = validation.check_targets(y, n_samples, self.loss)
        if self.loss == "poisson" and target.max() > LARGEST_COUNT:
            raise ValueError(
                f'loss="poisson" takes targets up to {LARGEST_COUNT:g}, got {target.max()}: scale '
                "them down."
            )
        if not (self.warm_start and self._forest is not None):
            # Gains are squares of residuals, which must not overflow. Poisson's are as they are.
            self._exponent = 0 if self.loss == "poisson" else int(np.frexp(np.abs(target).max())[1])
        scaled: np.ndarray = np.ldexp(target, -self._exponent)
        return scaled

    def _loss_name(self) -> tuple[Any, ...]:
        return (self.loss, self.quantile) if self.loss == "quantile" else (self.loss,)

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the predictions after each round."""
        return map(self._values, self._staged_raw(X))
