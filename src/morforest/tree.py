"""Single trees for data with shape."""

from __future__ import annotations

from typing import Any

from morforest._forest_base import Classification, Regression
from morforest._states import stored

__all__ = ["MorfTreeClassifier", "MorfTreeRegressor"]


@stored
class MorfTreeClassifier(Classification):
    """A decision tree that classifies data with shape; it is grown on all samples.

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
    splitter : {"histogram", "exact"}, default="exact"
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
    honest : bool, default=False
        Whether the tree chooses its splits by one part of the samples and fills its leaves with the
        other.
    honest_fraction : float, default=0.5
        Share of the samples of each tree that fill leaves where ``honest=True``. It is the same in
        each class, unless there are several outputs.
    honest_prior : {"ignore", "prune", "uniform", "empirical"}, default="ignore"
        What an honest tree does about leaves that no sample fills. With "ignore" the tree does not
        vote on samples that reach such a leaf; where no tree votes, the mean of all other leaves
        is predicted. "prune" removes the split, so that its other side takes its place. "uniform"
        predicts the same probability for each class, and "empirical" what all samples that fill
        leaves of the tree predict together.
    class_weight : {"balanced", "balanced_subsample"}, dict, list of dict or None, default=None
        Weights of the classes, none of them negative: a dict from label to weight, or "balanced"
        for weights in inverse proportion to the frequencies of the classes. "balanced_subsample"
        takes the frequencies in the samples that each tree sees. With several outputs, a name or a
        list with a dict (or None) for each; the weights of the outputs are multiplied.
    random_state : int, RandomState instance or None, default=None
        Seed of all random numbers. The same seed and samples give the same model on every platform.

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
        Always False: a single tree is grown on all samples.
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

    Examples
    --------
    >>> from morforest import MorfTreeClassifier
    >>> tree = MorfTreeClassifier(max_depth=2, random_state=0).fit([[0], [1], [2]], [0, 0, 1])
    >>> tree.predict([[3]])
    array([1])
    """

    def __init__(
        self,
        dictionary: Any = None,
        *,
        data_shape: Any = None,
        channel_axis: int | None = None,
        align: str = "left",
        max_features: Any = "auto",
        splitter: str = "exact",
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        max_leaf_nodes: int | None = None,
        min_child_fraction: float = 0.0,
        random_split_rate: float = 0.0,
        honest: bool = False,
        honest_fraction: float = 0.5,
        honest_prior: str = "ignore",
        class_weight: Any = None,
        random_state: Any = None,
    ):
        self.dictionary = dictionary
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
        self.class_weight = class_weight
        self.random_state = random_state


@stored
class MorfTreeRegressor(Regression):
    """A decision tree that predicts numbers from data with shape; it is grown on all samples.

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
    splitter : {"histogram", "exact"}, default="exact"
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
    honest : bool, default=False
        Whether the tree chooses its splits by one part of the samples and fills its leaves with the
        other.
    honest_fraction : float, default=0.5
        Share of the samples of each tree that fill leaves where ``honest=True``. It is the same in
        each class, unless there are several outputs.
    honest_prior : {"ignore", "prune", "empirical"}, default="ignore"
        What an honest tree does about leaves that no sample fills. With "ignore" the tree does not
        vote on samples that reach such a leaf; where no tree votes, the mean of all other leaves
        is predicted. "prune" removes the split, so that its other side takes its place, and
        "empirical" predicts what all samples that fill leaves of the tree predict together.
    random_state : int, RandomState instance or None, default=None
        Seed of all random numbers. The same seed and samples give the same model on every platform.

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
        Always False: a single tree is grown on all samples.
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

    Examples
    --------
    >>> from morforest import MorfTreeRegressor
    >>> tree = MorfTreeRegressor(random_state=0).fit([[0], [1], [2]], [0.0, 0.5, 2.0])
    >>> tree.predict([[3]])
    array([2.])
    """

    def __init__(
        self,
        dictionary: Any = None,
        *,
        data_shape: Any = None,
        channel_axis: int | None = None,
        align: str = "left",
        max_features: Any = "auto",
        splitter: str = "exact",
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        max_leaf_nodes: int | None = None,
        min_child_fraction: float = 0.0,
        random_split_rate: float = 0.0,
        honest: bool = False,
        honest_fraction: float = 0.5,
        honest_prior: str = "ignore",
        random_state: Any = None,
    ):
        self.dictionary = dictionary
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
        self.random_state = random_state
