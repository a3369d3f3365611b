"""What all tree estimators share: validation, and questions about the fitted model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from morforest import _parameters as check
from morforest import _validation as validation
from morforest._attribution import attribute, shaped
from morforest._auto import best_name, try_dictionaries
from morforest._data_scale import Sizes
from morforest._export import Exported
from morforest._importance import impurity_decrease, split_shares
from morforest._loading import check_trees, restore
from morforest._model import Forest
from morforest._model_file import Saved
from morforest._outputs import slices_of
from morforest._polytope import Polytope, polytope_of
from morforest._splits import Splits
from morforest._training import TrainingData
from morforest.dictionary._presets import choose_dictionary, looks_like_series


class BaseMorf(Exported, Saved, BaseEstimator):
    """What forests, single trees and boosted trees share.

    A subclass has the parameters `dictionary`, `data_shape`, `channel_axis`, `align` and
    `random_state`, and says with `_fit` how a model comes about.
    """

    dictionary: Any
    data_shape: Any
    channel_axis: int | None
    align: str
    max_features: Any
    splitter: str
    max_depth: int | None
    max_leaf_nodes: int | None
    random_state: Any
    data_shape_: tuple[int, ...]
    dictionary_: Any
    max_features_: int
    dictionary_scores_: dict[str, float]
    _forest: Forest | None = None
    _sizes: Sizes | None = None  # of the training samples
    _aligned: tuple[str, int] | None = None  # how series of unequal length were brought to one
    _seed: int

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to training samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Training samples of any rank, or flat rows, which may be a sparse matrix; a list of
            arrays where series have unequal lengths, see `align`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Class labels, or numbers for regression. Forests and single trees take several outputs.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of each sample. A whole number means that the sample is repeated so many times,
            exactly; fractions are relative weights. Bootstrap samples are drawn in proportion to
            the weights.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._keep_if_failed(lambda: self._fit(X, y, sample_weight))

    def _keep_if_failed(self, fit: Callable[[], None]) -> Self:
        """Fit; if that fails, leave the estimator as it was.

        Only trees in hand at an interrupt are kept, for those who said with warm_start that they
        would add to them.
        """
        state = self.__dict__.copy()
        try:
            fit()
        except BaseException as error:
            grown = self._forest is not state.get("_forest")
            if not (isinstance(error, KeyboardInterrupt) and self._continues() and grown):
                self.__dict__ = state
            raise
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        raise NotImplementedError

    def _continues(self) -> bool:
        """Say whether a further fit adds to the model, as warm_start asks."""
        return False

    def _jobs(self) -> int | None:
        """Return `n_jobs`, which single trees do not have."""
        return None

    def _class_weight(self) -> Any:
        """Return `class_weight`, which regressors do not have."""
        return None

    def _check_parameters(self) -> None:
        """Check the parameters that all tree estimators have."""
        check.check_choice("splitter", self.splitter, ("histogram", "exact"))
        check.check_integer("max_depth", self.max_depth, 1, none=True)
        check.check_integer("max_leaf_nodes", self.max_leaf_nodes, 2, none=True)
        check.check_random_state("random_state", self.random_state)

    def _read(self, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> TrainingData:
        """Check training samples, and leave out those of weight zero."""
        X, shape = validation.check_samples(self, X, fitting=True)
        target = self._read_target(y, len(X))
        weights = validation.check_weights(sample_weight, len(X))
        data = TrainingData(
            X,
            target,
            weights,
            shape,
            self.channel_axis,
            self._classes(),
            n_given=len(X),
            groups=validation.check_groups(groups, len(X)),
        )
        if weights is not None and not weights.all():  # these rows are as if they were not there
            data = data.of(np.flatnonzero(weights))
        return data

    def _read_target(self, y: Any, n_samples: int) -> np.ndarray:
        """Return class numbers, or numbers for regression."""
        raise NotImplementedError

    def _classes(self) -> Any:
        """Return the class labels, in a list of several outputs, or None for regression."""
        return None

    def _choose_dictionary(self, data: TrainingData, n_trees: int = 0) -> Any:
        """Return the dictionary that the parameter means; "auto" tries several.

        `n_trees` is the size of the forest that the chosen dictionary will grow.
        """
        if not isinstance(self.dictionary, str) or self.dictionary != "auto":
            self.__dict__.pop("dictionary_scores_", None)
            if self.dictionary is None and len(data.shape) == 1:
                self._hint_at_series(data.X)
            return choose_dictionary(self.dictionary, data.shape, data.channel_axis)
        if self._continues() and self._forest is not None:
            return self.dictionary_
        self.dictionary_scores_ = try_dictionaries(data, n_trees, self._jobs())
        best = best_name(self.dictionary_scores_)
        return choose_dictionary(best, data.shape, data.channel_axis)

    def _hint_at_series(self, X: np.ndarray) -> None:
        """Warn if flat rows look like series, for which a dictionary by name would do better."""
        if hasattr(self, "feature_names_in_") or not looks_like_series(X):
            return
        warnings.warn(
            "Neighbouring columns of X are alike, as in time series, but without a dictionary X is "
            'taken for a table. Try dictionary="series" or "auto". If X is a table, ignore this '
            "warning, or pass a data frame with column names.",
            UserWarning,
            5,
        )

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
        return forest.apply(X, self._jobs())

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
        return forest.decision_path(X, self._jobs()), forest.tree_begin.astype(np.int64)

    def attributions(self, X: Any) -> Any:
        """Compute what each feature of each sample contributes to its prediction.

        On the way of a sample down a tree, each split changes the expected prediction, which is the
        mean of the leaves below, weighted by their training samples. The features of the split's
        atom share that change in proportion to the absolute values of their weights, as they share
        importances. The changes of each feature are added over the path and averaged over the
        trees.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        values : ndarray of shape (n_samples, ...) or (n_samples, ..., n_classes)
            Contributions in the shape of the samples (that of ``data_shape_``). For classes they
            are contributions to each probability, and the last axis follows ``classes_``. For
            several numbers the last axis follows the outputs.
        baseline : float or ndarray of shape (n_classes,)
            Mean expectation at the roots of the trees. The baseline plus the sum of a sample's
            values is its prediction: that of `predict_proba`, or of `predict` in regression.

        Notes
        -----
        The result is a named tuple with the fields ``values`` and ``baseline``, and after a fit on
        a data frame it knows the names of its columns, ``feature_names``. A classifier with several
        outputs returns a list with one for each. Attributions are not Shapley values, and how a
        linear combination is shared depends on the units of its features. Where trees do not vote
        on a sample (``honest_prior="ignore"``), the average is over those that do, and the split
        that silences a tree changes its expectation to the baseline.

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
        values, baseline = attribute(forest, X, self._jobs(), mean=True)
        names = getattr(self, "feature_names_in_", None)
        if forest.classes_of:
            return [
                shaped(values[:, :, own], baseline[own], forest.sample_shape, True, names)
                for own in slices_of(forest.classes_of)
            ]
        return shaped(values, baseline, forest.sample_shape, bool(forest.class_count), names)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of the total decrease in impurity, in the shape of a sample; shares add up to one.

        The decrease of each split is spread over the features of its atom, in proportion to the
        absolute values of their weights. It is measured on training data: it shows what the model
        uses, favours features that offer many thresholds, and is no test of significance. After a
        fit on a data frame, shares are in the order of ``feature_names_in_``.
        """
        return impurity_decrease(self._fitted())

    @property
    def split_shares_(self) -> np.ndarray:
        """Share of all splits whose atom uses a feature, in the shape of a sample.

        This is the importance that the paper defines. Shares add up to the mean number of features
        per atom.
        """
        return split_shares(self._fitted())

    @property
    def splits_(self) -> Splits:
        """Splits of each tree: nodes, children, atoms, thresholds in the units of the data, gains.

        A sequence with one :class:`TreeSplits` per tree, whose attributes are arrays with one
        entry per split.

        Examples
        --------
        >>> from morforest import Axis, MorfRegressor
        >>> model = MorfRegressor(Axis(), n_estimators=2, bootstrap=False, random_state=0)
        >>> model.fit([[5, 0], [5, 2], [5, 2]], [0.0, 9.0, 9.0]).splits_
        Splits(2 trees, 2 splits)
        >>> model.splits_[0].threshold, model.splits_[0].weight
        (array([1.]), array([3]))
        >>> model.splits_[0].atoms.toarray()
        array([[0., 1.]])
        """
        return Splits(self._fitted(), getattr(self, "feature_names_in_", None))

    def polytope(self, tree: int, leaf: int, *, simplify: bool = True) -> Polytope:
        """Return the linear inequalities that the samples of a leaf satisfy, and no others.

        Splits on linear atoms cut the space of the features into polytopes, one per leaf of a tree.
        Pooled atoms, variances, views other than differences and learned combinations are not
        linear; they raise an error if they are among the splits above the leaf.

        Parameters
        ----------
        tree : int
            Number of the tree, which is the column of `apply`; of the round in boosting.
        leaf : int
            Number of the leaf, as `apply` returns it.
        simplify : bool, default=True
            Whether to keep only the tightest of the rows that have the same coefficients. False
            keeps one row per split.

        Returns
        -------
        polytope : Polytope
            The system ``A @ x <= b``, with a note of the rows that are strict, and the method
            `contains`.

        Examples
        --------
        >>> from morforest import Axis, MorfTreeRegressor
        >>> model = MorfTreeRegressor(Axis(), random_state=0).fit([[0], [2], [4]], [1.0, 2.0, 3.0])
        >>> polytope = model.polytope(0, model.apply([[2]])[0, 0])
        >>> polytope.A.toarray().tolist(), polytope.b.tolist(), polytope.strict.tolist()
        ([[-1.0], [1.0]], [-1.0, 3.0], [True, False])
        """
        forest = self._fitted()
        check.check_flag("simplify", simplify)
        return polytope_of(forest, tree, leaf, bool(simplify))

    def get_depths(self) -> np.ndarray:
        """Return the depth of each tree; a single leaf has depth 0."""
        forest = self._fitted()
        return np.maximum.reduceat(forest.depths(), forest.tree_begin.astype(np.int64)[:-1])

    def get_mean_leaf_depths(self) -> np.ndarray:
        """Return the mean depth of the leaves of each tree."""
        forest = self._fitted()
        leaf = ~forest.is_split()
        begin = forest.tree_begin.astype(np.int64)[:-1]
        means: np.ndarray = np.add.reduceat(forest.depths() * leaf, begin) / self.get_n_leaves()
        return means

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

    def __setstate__(self, state: Any) -> None:
        restore(self, state, "_forest", check_trees)

    def __sklearn_is_fitted__(self) -> bool:
        return self._forest is not None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


class BaseEnsemble(BaseMorf):
    """What estimators with many trees share: copies, warm starts, threads, progress bars."""

    augment: Any
    warm_start: bool
    n_jobs: int | None
    verbose: int

    def _continues(self) -> bool:
        return bool(self.warm_start)

    def _jobs(self) -> int | None:
        return self.n_jobs

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check.check_flag("warm_start", self.warm_start)
        check.check_jobs(self.n_jobs)
        if not isinstance(self.verbose, bool):
            check.check_integer("verbose", self.verbose, 0)


class ClassLabels(BaseMorf):
    """What classifiers share."""

    class_weight: Any
    classes_: Any  # labels, and in trees of several outputs a list of them
    n_classes_: Any

    def _class_weight(self) -> Any:
        return self.class_weight

    def _classes(self) -> Any:
        return self.classes_

    def _read_target(self, y: Any, n_samples: int) -> np.ndarray:
        classes, codes = validation.check_classes(y, n_samples)
        if self._continues() and self._forest is not None:
            classes, codes = validation.earlier_classes(self.classes_, classes, codes)
        self.classes_ = classes
        self.n_classes_ = len(classes)
        return codes
