"""Forests for data with shape."""

from __future__ import annotations

from typing import Any

from morforest._forest_base import BaseForest, Classification, Regression
from morforest._forest_uncertainty import IntervalPrediction, SetPrediction
from morforest._forest_weights import QuantilePrediction
from morforest._states import stored

__all__ = ["MorfClassifier", "MorfRegressor"]


@stored
class MorfClassifier(Classification, SetPrediction, BaseForest):
    """A random forest that classifies data with shape.

    Each split compares the value of an atom, in the simplest case a weighted sum of some features,
    with a threshold. The `dictionary` says which atoms there are. Samples may have any rank: rows
    of a table, series, images, volumes.

    Parameters
    ----------
    dictionary : dictionary object, str or None, default=None
        Where split candidates come from: :class:`Axis`, :class:`SparseOblique`, :class:`Patch`,
        :class:`Graph`, :class:`Neighbours`, :class:`Similarity`, :class:`Haar`, :class:`Pair`,
        :class:`Kernel`, :class:`Variance`, :class:`Atoms`, :class:`Mixture`, :class:`Subset` or
        :class:`SharedAtoms`. The names "axis", "sporf", "patch", "image", "series",
        "series-pooled" and "eeg" stand for dictionaries that suit the shape of the samples. "auto"
        tries those of these names that suit the samples, except for "series-pooled", and keeps the
        one with the best out-of-bag score ("series" and "eeg" must lead by 0.01). None chooses by
        the shape of a sample: ``SparseOblique()`` for flat rows, and ``Patch()``, with sizes from 1
        to the square root of each axis, for samples with two axes or more.
    n_estimators : int, default=500
        Number of trees, at most 1,000,000.
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
        None takes the number itself, and an integer is used as it is. "auto" means "sqrt", but 100
        where nodes learn combinations of shared atoms (see :class:`SharedAtoms`).
    splitter : {"histogram", "exact"}, default="histogram"
        How thresholds are found. "exact" tries every midpoint between neighbouring values.
        "histogram" does so in small nodes, and tries 64 equally spaced thresholds in large ones.
    criterion : {"gini", "entropy", "log_loss"}, default="gini"
        Measure of the quality of a split; of several outputs, the mean over them.
    max_depth : int or None, default=None
        Largest depth of a tree; None sets no limit.
    min_samples_split : int or float, default=2
        Nodes with fewer samples become leaves. A float is a fraction of the number of samples.
    min_samples_leaf : int or float, default=1
        Each side of a split needs at least so many samples. A float is a fraction of the number of
        samples.
    min_weight_fraction_leaf : float, default=0.0
        Each side of a split needs at least this share of the total weight of the tree.
    min_impurity_decrease : float, default=0.0
        A node becomes a leaf if its best split decreases the impurity by less, where the decrease
        is weighted by the node's share of the total weight of the tree.
    max_leaf_nodes : int or None, default=None
        Largest number of leaves per tree; splits with the largest decrease in impurity come first.
        None sets no limit.
    min_child_fraction : float, default=0.0
        Each side of a split needs at least this share of the weight of its node, at most 0.5.
    random_split_rate : float, default=0.0
        Probability that a node draws one candidate only, so that its split is random. The theory
        of consistent forests needs a positive rate, see :func:`consistent`.
    honest : bool or "oob", default=False
        Whether each tree chooses its splits by one part of its samples and fills its leaves with
        the other. "oob" fills the leaves with all samples that the tree did not draw.
    honest_fraction : float, default=0.5
        Share of the samples of each tree that fill leaves where ``honest=True``. It is the same in
        each class, unless there are several outputs.
    honest_prior : {"ignore", "prune", "uniform", "empirical"}, default="ignore"
        What an honest tree does about leaves that no sample fills. With "ignore" the tree does not
        vote on samples that reach such a leaf; where no tree votes, the mean of all other leaves
        is predicted. "prune" removes the split, so that its other side takes its place. "uniform"
        predicts the same probability for each class, and "empirical" what all samples that fill
        leaves of the tree predict together.
    bootstrap : bool or "auto", default="auto"
        Whether each tree is grown on a bootstrap sample or on all samples; if it is False and there
        are `max_samples`, on samples drawn without replacement. "auto" draws bootstrap samples,
        unless nodes learn combinations of shared atoms: such trees differ enough from each other
        and gain more from all samples. With `oob_score`, `max_samples` or ``honest="oob"`` it
        always draws them.
    max_samples : int, float, str, callable or None, default=None
        Number of samples that each tree draws, with replacement if there are bootstrap samples and
        else without. A float is a fraction of the number of samples, in (0, 1]; a string such as
        "n**0.7" is a power of it, and a callable returns the number for a given one. None draws as
        many as there are samples.
    oob_score : bool or callable, default=False
        Whether to score the forest on the samples that each tree did not see. True computes the
        accuracy, for which all outputs of a sample must be right; a callable is called with
        (y_true, y_pred).
    keep_samples : bool, default=False
        Whether the fitted forest keeps which training samples each tree used, and which fill each
        leaf. Forest weights (`weights`, `nearest`) and what says how sure a prediction is, such as
        `predict_std`, need them. This takes four to seven bytes per tree and training sample, and
        up to ten where samples or classes have weights. With `warm_start`, all fits need the same
        samples.
    augment : ImageCopies, SeriesCopies or None, default=None
        Copies of its samples that each tree draws and also learns from. Out-of-bag scores remain
        honest, because a tree sees copies of its own samples only.
    class_weight : {"balanced", "balanced_subsample"}, dict, list of dict or None, default=None
        Weights of the classes, none of them negative: a dict from label to weight, or "balanced"
        for weights in inverse proportion to the frequencies of the classes. "balanced_subsample"
        takes the frequencies in the samples that each tree sees. With several outputs, a name or a
        list with a dict (or None) for each; the weights of the outputs are multiplied.
    warm_start : bool, default=False
        Whether a further fit keeps the trees and adds new ones until there are `n_estimators`.
    n_jobs : int or None, default=None
        Number of threads, at most 4,096; -1 uses all processors. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of all random numbers. The same seed and samples give the same model on every platform.
    verbose : int, default=0
        Whether to show a progress bar while fitting.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or list of ndarray
        Class labels, sorted; a list with those of each output if there are several.
    n_classes_ : int or list of int
        Number of classes; a list with that of each output if there are several.
    n_outputs_ : int
        Number of outputs.
    data_shape_ : tuple of int
        Shape of one sample.
    dictionary_ : dictionary object
        The dictionary in use: a copy of the one given, or the one that None, a name or "auto"
        stands for.
    dictionary_scores_ : dict from str to float
        Out-of-bag score of each name that ``dictionary="auto"`` tried; only set by "auto".
    max_features_ : int
        Number of candidates that each node draws. A dictionary with fewer atoms offers all of them.
    bootstrap_ : bool
        Whether the trees of the latest fit were grown on bootstrap samples.
    max_samples_ : int
        Number of samples that each tree of the latest fit drew, or all of them.
    n_features_in_ : int
        Number of features of a sample.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns; only set if X was a data frame with string names.
    feature_importances_ : ndarray in the shape of a sample
        Share of each feature in the total decrease of impurity.
    split_shares_ : ndarray in the shape of a sample
        Share of the splits whose atom uses a feature.
    splits_ : Splits
        Splits of each tree: nodes, atoms, and thresholds in the units of the data.
    oob_score_ : float
        Score on out-of-bag samples; only set with `oob_score`.
    oob_decision_function_ : ndarray of shape (n_samples, n_classes), or list of ndarray
        Out-of-bag class probabilities of the training samples, NaN for samples that all trees saw;
        a list with those of each output if there are several. Only set with `oob_score`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from morforest import MorfClassifier, Patch
    >>> X, y = load_digits(return_X_y=True)
    >>> X = X.reshape(-1, 8, 8)
    >>> clf = MorfClassifier(Patch(max_size=3), n_estimators=50, random_state=0)
    >>> clf.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.9
    True
    >>> clf.feature_importances_.shape
    (8, 8)
    """

    def __init__(
        self,
        dictionary: Any = None,
        *,
        n_estimators: int = 500,
        data_shape: Any = None,
        channel_axis: int | None = None,
        align: str = "left",
        max_features: Any = "auto",
        splitter: str = "histogram",
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        max_leaf_nodes: int | None = None,
        min_child_fraction: float = 0.0,
        random_split_rate: float = 0.0,
        honest: bool | str = False,
        honest_fraction: float = 0.5,
        honest_prior: str = "ignore",
        bootstrap: bool | str = "auto",
        max_samples: Any = None,
        oob_score: Any = False,
        keep_samples: bool = False,
        augment: Any = None,
        class_weight: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.dictionary = dictionary
        self.n_estimators = n_estimators
        self.data_shape = data_shape
        self.channel_axis = channel_axis
        self.align = align
        self.max_features = max_features
        self.splitter = splitter
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_impurity_decrease = min_impurity_decrease
        self.max_leaf_nodes = max_leaf_nodes
        self.min_child_fraction = min_child_fraction
        self.random_split_rate = random_split_rate
        self.honest = honest
        self.honest_fraction = honest_fraction
        self.honest_prior = honest_prior
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.oob_score = oob_score
        self.keep_samples = keep_samples
        self.augment = augment
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose


@stored
class MorfRegressor(Regression, QuantilePrediction, IntervalPrediction, BaseForest):
    """A random forest that predicts numbers from data with shape.

    Each split compares the value of an atom, in the simplest case a weighted sum of some features,
    with a threshold. The `dictionary` says which atoms there are. Samples may have any rank: rows
    of a table, series, images, volumes.

    Parameters
    ----------
    dictionary : dictionary object, str or None, default=None
        Where split candidates come from: :class:`Axis`, :class:`SparseOblique`, :class:`Patch`,
        :class:`Graph`, :class:`Neighbours`, :class:`Similarity`, :class:`Haar`, :class:`Pair`,
        :class:`Kernel`, :class:`Variance`, :class:`Atoms`, :class:`Mixture`, :class:`Subset` or
        :class:`SharedAtoms`. The names "axis", "sporf", "patch", "image", "series",
        "series-pooled" and "eeg" stand for dictionaries that suit the shape of the samples. "auto"
        tries those of these names that suit the samples, except for "series-pooled", and keeps the
        one with the best out-of-bag score ("series" and "eeg" must lead by 0.01). None chooses by
        the shape of a sample: ``SparseOblique()`` for flat rows, and ``Patch()``, with sizes from 1
        to the square root of each axis, for samples with two axes or more.
    n_estimators : int, default=500
        Number of trees, at most 1,000,000.
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
        None takes the number itself, and an integer is used as it is. "auto" means a third of the
        features, but 100 where nodes learn combinations of shared atoms (see :class:`SharedAtoms`).
    splitter : {"histogram", "exact"}, default="histogram"
        How thresholds are found. "exact" tries every midpoint between neighbouring values.
        "histogram" does so in small nodes, and tries 64 equally spaced thresholds in large ones.
    criterion : {"squared_error", "absolute_error", "poisson"}, default="squared_error"
        Measure of the quality of a split; of several outputs, the mean over them. With
        "absolute_error" leaves hold medians, and the search for thresholds is always exact.
    max_depth : int or None, default=None
        Largest depth of a tree; None sets no limit.
    min_samples_split : int or float, default=2
        Nodes with fewer samples become leaves. A float is a fraction of the number of samples.
    min_samples_leaf : int or float, default=1
        Each side of a split needs at least so many samples. A float is a fraction of the number of
        samples.
    min_weight_fraction_leaf : float, default=0.0
        Each side of a split needs at least this share of the total weight of the tree.
    min_impurity_decrease : float, default=0.0
        A node becomes a leaf if its best split decreases the impurity by less, where the decrease
        is weighted by the node's share of the total weight of the tree.
    max_leaf_nodes : int or None, default=None
        Largest number of leaves per tree; splits with the largest decrease in impurity come first.
        None sets no limit.
    min_child_fraction : float, default=0.0
        Each side of a split needs at least this share of the weight of its node, at most 0.5.
    random_split_rate : float, default=0.0
        Probability that a node draws one candidate only, so that its split is random. The theory
        of consistent forests needs a positive rate, see :func:`consistent`.
    honest : bool or "oob", default=False
        Whether each tree chooses its splits by one part of its samples and fills its leaves with
        the other. "oob" fills the leaves with all samples that the tree did not draw.
    honest_fraction : float, default=0.5
        Share of the samples of each tree that fill leaves where ``honest=True``. It is the same in
        each class, unless there are several outputs.
    honest_prior : {"ignore", "prune", "empirical"}, default="ignore"
        What an honest tree does about leaves that no sample fills. With "ignore" the tree does not
        vote on samples that reach such a leaf; where no tree votes, the mean of all other leaves
        is predicted. "prune" removes the split, so that its other side takes its place, and
        "empirical" predicts what all samples that fill leaves of the tree predict together.
    bootstrap : bool or "auto", default="auto"
        Whether each tree is grown on a bootstrap sample or on all samples; if it is False and there
        are `max_samples`, on samples drawn without replacement. "auto" draws bootstrap samples,
        unless nodes learn combinations of shared atoms: such trees differ enough from each other
        and gain more from all samples. With `oob_score`, `max_samples` or ``honest="oob"`` it
        always draws them.
    max_samples : int, float, str, callable or None, default=None
        Number of samples that each tree draws, with replacement if there are bootstrap samples and
        else without. A float is a fraction of the number of samples, in (0, 1]; a string such as
        "n**0.7" is a power of it, and a callable returns the number for a given one. None draws as
        many as there are samples.
    oob_score : bool or callable, default=False
        Whether to score the forest on the samples that each tree did not see. True computes R
        squared, the mean over outputs; a callable is called with (y_true, y_pred).
    keep_samples : bool, default=False
        Whether the fitted forest keeps which training samples each tree used, and which fill each
        leaf. Forest weights (`weights`, `nearest`) and what says how sure a prediction is, such as
        `predict_std`, need them. This takes four to seven bytes per tree and training sample, and
        up to ten where samples or classes have weights. With `warm_start`, all fits need the same
        samples.
    augment : ImageCopies, SeriesCopies or None, default=None
        Copies of its samples that each tree draws and also learns from. Out-of-bag scores remain
        honest, because a tree sees copies of its own samples only.
    warm_start : bool, default=False
        Whether a further fit keeps the trees and adds new ones until there are `n_estimators`.
    n_jobs : int or None, default=None
        Number of threads, at most 4,096; -1 uses all processors. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of all random numbers. The same seed and samples give the same model on every platform.
    verbose : int, default=0
        Whether to show a progress bar while fitting.

    Attributes
    ----------
    n_outputs_ : int
        Number of outputs.
    data_shape_ : tuple of int
        Shape of one sample.
    dictionary_ : dictionary object
        The dictionary in use: a copy of the one given, or the one that None, a name or "auto"
        stands for.
    dictionary_scores_ : dict from str to float
        Out-of-bag score of each name that ``dictionary="auto"`` tried; only set by "auto".
    max_features_ : int
        Number of candidates that each node draws. A dictionary with fewer atoms offers all of them.
    bootstrap_ : bool
        Whether the trees of the latest fit were grown on bootstrap samples.
    max_samples_ : int
        Number of samples that each tree of the latest fit drew, or all of them.
    n_features_in_ : int
        Number of features of a sample.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns; only set if X was a data frame with string names.
    feature_importances_ : ndarray in the shape of a sample
        Share of each feature in the total decrease of impurity.
    split_shares_ : ndarray in the shape of a sample
        Share of the splits whose atom uses a feature.
    splits_ : Splits
        Splits of each tree: nodes, atoms, and thresholds in the units of the data.
    oob_score_ : float
        Score on out-of-bag samples; only set with `oob_score`.
    oob_prediction_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Out-of-bag predictions of the training samples, NaN for samples that all trees saw; only set
        with `oob_score`.

    Examples
    --------
    >>> import numpy as np
    >>> from morforest import MorfRegressor, Patch
    >>> X = np.random.default_rng(0).normal(size=(200, 30))
    >>> y = X[:, 10:20].sum(axis=1)
    >>> reg = MorfRegressor(Patch(min_size=5, max_size=12), n_estimators=50, random_state=0)
    >>> reg.fit(X[:150], y[:150]).score(X[150:], y[150:]) > 0.6
    True
    """

    def __init__(
        self,
        dictionary: Any = None,
        *,
        n_estimators: int = 500,
        data_shape: Any = None,
        channel_axis: int | None = None,
        align: str = "left",
        max_features: Any = "auto",
        splitter: str = "histogram",
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        max_leaf_nodes: int | None = None,
        min_child_fraction: float = 0.0,
        random_split_rate: float = 0.0,
        honest: bool | str = False,
        honest_fraction: float = 0.5,
        honest_prior: str = "ignore",
        bootstrap: bool | str = "auto",
        max_samples: Any = None,
        oob_score: Any = False,
        keep_samples: bool = False,
        augment: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.dictionary = dictionary
        self.n_estimators = n_estimators
        self.data_shape = data_shape
        self.channel_axis = channel_axis
        self.align = align
        self.max_features = max_features
        self.splitter = splitter
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_impurity_decrease = min_impurity_decrease
        self.max_leaf_nodes = max_leaf_nodes
        self.min_child_fraction = min_child_fraction
        self.random_split_rate = random_split_rate
        self.honest = honest
        self.honest_fraction = honest_fraction
        self.honest_prior = honest_prior
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.oob_score = oob_score
        self.keep_samples = keep_samples
        self.augment = augment
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
