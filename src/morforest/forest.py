"""The estimators and their parameters."""

from __future__ import annotations

from typing import Any

from morforest._estimator import Classification, Regression

__all__ = ["MorfClassifier", "MorfRegressor", "MorfTreeClassifier", "MorfTreeRegressor"]

_DESCRIPTION = """Splits compare sums over the features of random atoms with a threshold; the
    `dictionary` says which atoms there are. Samples may have any rank: rows of a table, series,
    images, volumes."""

_CLASS_ATTRIBUTES = """classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    n_classes_ : int
        Their number.
    """

_PARAMETERS = """dictionary : dictionary object, name or None, default=None
        Where split candidates come from: :class:`Axis`, :class:`SparseOblique`, :class:`Patch`,
        :class:`Haar`, :class:`Pair`, :class:`Kernel`, :class:`Variance`, :class:`Atoms`, a
        :class:`Mixture` or a :class:`Subset`; or one of the names "axis", "sporf", "patch",
        "image", "series" and "series-pooled", which stand for dictionaries fitted to the samples'
        shape, or "auto", which tries those that fit (but for the last) and keeps the one with the
        best out-of-bag score ("series" if it leads by 0.01). None chooses by the shape of a sample:
        ``SparseOblique()`` for flat rows, ``Patch()`` (sizes from 1 to the square root of each
        axis) for samples with two axes or more.
    {forest}data_shape : tuple of int or None, default=None
        Shape of one sample where X has flat rows, such as ``(28, 28)``. None takes it from X.
    channel_axis : int or None, default=None
        Axis of one sample that holds channels (sensors, colours). Patches stay within one
        channel unless a tuple of sizes names that axis.
    max_features : {{"auto", "sqrt", "log2"}}, int, float or None, default="auto"
        How many candidates are drawn at each node, from the number of features: its square root,
        its logarithm, a share (floats may exceed 1), itself (None), or the integer given. "auto"
        is {max_features}; where nodes combine candidates, 100 or as many as there are atoms (see
        :class:`SharedAtoms`).
    splitter : {{"histogram", "exact", "random"}}, default={splitter}
        How thresholds are found. "exact" tries every midpoint. "histogram" does so in small nodes
        and tries 64 equal steps in large ones. "random" draws one threshold a candidate, as
        extremely randomised trees do.
    criterion : {criterion}
    max_depth : int or None, default=None
        Largest depth of a tree; None does not limit it.
    min_samples_split : int or float, default=2
        Nodes with fewer samples become leaves. A float is a share of the number of samples.
    min_samples_leaf : int or float, default=1
        Both sides of a split need as many samples. A float is a share of the number of samples.
    min_weight_fraction_leaf : float, default=0.0
        Both sides of a split need this share of a tree's weight.
    min_impurity_decrease : float, default=0.0
        Nodes whose best split decreases the impurity less, weighted by the node's share of the
        tree's weight, become leaves.
    max_leaf_nodes : int or None, default=None
        Largest number of leaves of a tree; the splits with the largest decrease come first."""

_FOREST_SIZE = """n_estimators : int, default=500
        Number of trees.
    """

_FOREST_PARAMETERS = """
    bootstrap : bool or "auto", default="auto"
        Whether each tree sees a bootstrap sample, or all samples. "auto" draws a sample, but not
        where nodes learn combinations of atoms: such trees differ enough, and all samples teach
        them more.
        With `oob_score` or `max_samples` it always draws.
    max_samples : int, float or None, default=None
        Size of a bootstrap sample: None for as many as there are samples, else a number, or a
        share in (0, 1].
    oob_score : bool or callable, default=False
        Whether to score the forest on the samples that each tree did not see: True for
        {score}, or a function of (y_true, y_pred).
    augment : ImageCopies, SeriesCopies or None, default=None
        Copies of its samples that each tree draws and learns from too. Out-of-bag scores stay
        honest: a tree has copies of its own samples only."""

_CLASS_WEIGHT = """
    class_weight : {"balanced", "balanced_subsample"}, dict or None, default=None
        What each class' samples count for: a dict from label to weight, or in inverse proportion
        to the classes' frequencies, in all samples or in each tree's bootstrap sample."""

_RUN_PARAMETERS = """
    warm_start : bool, default=False
        Whether a further fit keeps the trees and adds those that `n_estimators` asks for more.
    n_jobs : int or None, default=None
        Number of threads; -1 for one a processor. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of all draws: the same seed and samples give the same forest everywhere.
    verbose : int, default=0
        Whether to show a progress bar while fitting."""

_TREE_RANDOM_STATE = """
    random_state : int, RandomState instance or None, default=None
        Seed of all draws."""

_ATTRIBUTES = """data_shape_ : tuple of int
        Shape of one sample.
    dictionary_ : dictionary object
        The dictionary in use.
    dictionary_scores_ : dict from str to float
        What ``dictionary="auto"`` found for each name it tried.
    n_features_in_ : int
        Number of features of a sample.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X was a data frame with string names.
    feature_importances_ : ndarray of the shape of a sample
        Share of the decrease in impurity.
    split_shares_ : ndarray of the shape of a sample
        Share of splits that use a feature.{oob}"""

_OOB = """
    oob_score_ : float
        Score on out-of-bag samples, if `oob_score`."""

_CLASSIFICATION = (
    '{"gini", "entropy", "log_loss"}, default="gini"\n        What makes a split good.'
)
_REGRESSION = (
    '{"squared_error", "absolute_error", "poisson"}, default="squared_error"\n'
    '        What makes a split good. "absolute_error" has median leaves and always searches '
    "exactly."
)


class MorfClassifier(Classification):
    """A forest that classifies data with shape.

    <description>

    Parameters
    ----------
    <parameters>

    Attributes
    ----------
    <attributes>

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
        max_features: Any = "auto",
        splitter: str = "histogram",
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        max_leaf_nodes: int | None = None,
        bootstrap: bool | str = "auto",
        max_samples: int | float | None = None,
        oob_score: Any = False,
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
        self.max_features = max_features
        self.splitter = splitter
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_impurity_decrease = min_impurity_decrease
        self.max_leaf_nodes = max_leaf_nodes
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.oob_score = oob_score
        self.augment = augment
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose


class MorfRegressor(Regression):
    """A forest that predicts numbers from data with shape.

    <description>

    Parameters
    ----------
    <parameters>

    Attributes
    ----------
    <attributes>

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
        max_features: Any = "auto",
        splitter: str = "histogram",
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        max_leaf_nodes: int | None = None,
        bootstrap: bool | str = "auto",
        max_samples: int | float | None = None,
        oob_score: Any = False,
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
        self.max_features = max_features
        self.splitter = splitter
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_impurity_decrease = min_impurity_decrease
        self.max_leaf_nodes = max_leaf_nodes
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.oob_score = oob_score
        self.augment = augment
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose


class MorfTreeClassifier(Classification):
    """One tree that classifies: a forest of one, grown on all samples.

    <description>

    Parameters
    ----------
    <parameters>

    Attributes
    ----------
    <attributes>

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
        max_features: Any = "auto",
        splitter: str = "exact",
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        max_leaf_nodes: int | None = None,
        class_weight: Any = None,
        random_state: Any = None,
    ):
        self.dictionary = dictionary
        self.data_shape = data_shape
        self.channel_axis = channel_axis
        self.max_features = max_features
        self.splitter = splitter
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_impurity_decrease = min_impurity_decrease
        self.max_leaf_nodes = max_leaf_nodes
        self.class_weight = class_weight
        self.random_state = random_state


class MorfTreeRegressor(Regression):
    """One tree that predicts numbers: a forest of one, grown on all samples.

    <description>

    Parameters
    ----------
    <parameters>

    Attributes
    ----------
    <attributes>

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
        max_features: Any = "auto",
        splitter: str = "exact",
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        max_leaf_nodes: int | None = None,
        random_state: Any = None,
    ):
        self.dictionary = dictionary
        self.data_shape = data_shape
        self.channel_axis = channel_axis
        self.max_features = max_features
        self.splitter = splitter
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_impurity_decrease = min_impurity_decrease
        self.max_leaf_nodes = max_leaf_nodes
        self.random_state = random_state


def _document(cls: type, *, forest: bool, classification: bool) -> None:
    """Fill the sections that the estimators' docstrings share."""
    parameters = _PARAMETERS.format(
        forest=_FOREST_SIZE if forest else "",
        max_features='"sqrt"' if classification else "a third",
        splitter='"histogram"' if forest else '"exact"',
        criterion=_CLASSIFICATION if classification else _REGRESSION,
    )
    if forest:
        score = "accuracy" if classification else "R squared"
        parameters += _FOREST_PARAMETERS.format(score=score)
    parameters += _CLASS_WEIGHT if classification else ""
    parameters += _RUN_PARAMETERS if forest else _TREE_RANDOM_STATE
    attributes = _CLASS_ATTRIBUTES if classification else ""
    attributes += _ATTRIBUTES.format(oob=_OOB if forest else "")
    sections = {"description": _DESCRIPTION, "parameters": parameters, "attributes": attributes}
    for name, text in sections.items():
        cls.__doc__ = (cls.__doc__ or "").replace(f"<{name}>", text)


_document(MorfClassifier, forest=True, classification=True)
_document(MorfRegressor, forest=True, classification=False)
_document(MorfTreeClassifier, forest=False, classification=True)
_document(MorfTreeRegressor, forest=False, classification=False)
