"""What a forest says by its training samples: weights, neighbours, proximities, quantiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp

from morforest import _parameters as check
from morforest import _validation as validation
from morforest._estimator import BaseEnsemble
from morforest._fixed_point import blocks
from morforest._leaf_samples import LeafSamples
from morforest._model import Forest
from morforest._native import core
from morforest._parallel import count_jobs, over_even_parts, over_rows
from morforest._uncertainty import OutOfBag

LEAVES = 1 << 24  # of samples in trees that are held at a time
SAMPLES_AT_ONCE = 512  # of a call of the core
MAX_WEIGHTS = 1 << 29  # of one call: six gigabytes, and as much again while they are put together
MAX_PROXIMITIES = 1 << 30  # of one call: eight gigabytes


class ForestWeights(BaseEnsemble):
    """Questions about a forest that its training samples answer."""

    n_outputs_: int
    _fitted_priors: tuple[str, ...]
    _leaf_samples: LeafSamples | None = None
    _out_of_bag: OutOfBag | None = None

    def weights(self, X: Any) -> sp.csr_matrix:
        """Compute what each training sample counts for in the prediction of each sample.

        In each tree, the training samples in the leaf of a sample share a weight of one in
        proportion to their weights there; the result is the mean over the trees. It turns a forest
        into a method for any weighted estimate: quantiles, survival curves, local regressions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        weights : sparse matrix of shape (n_samples, n_training_samples)
            Each row sums to one. Columns follow the samples given to `fit`; those of weight zero
            have empty columns.

        Notes
        -----
        The forest must have been fitted with ``keep_samples=True``. ``weights(X)`` times the
        training targets is the prediction, and times a matrix that marks the class of each training
        sample the class probabilities, up to rounding. With ``criterion="absolute_error"`` leaves
        predict medians, so that this does not hold. Copies of a sample made by `augment` count for
        the sample. Trees that do not vote on a sample (``honest_prior="ignore"``) take no part;
        where none votes, all leaves of the forest count alike.

        Examples
        --------
        >>> from morforest import MorfRegressor
        >>> model = MorfRegressor(n_estimators=2, bootstrap=False, min_samples_leaf=2,
        ...                       keep_samples=True, random_state=0)
        >>> model.fit([[0], [1], [8], [9]], [0.0, 2.0, 4.0, 6.0]).weights([[0], [9]]).toarray()
        array([[0.5, 0.5, 0. , 0. ],
               [0. , 0. , 0.5, 0.5]])
        >>> model.predict([[0], [9]])
        array([1., 5.])
        """
        samples, silent = self._samples_with_weights()
        parts: dict[int, Any] = {}
        X, _ = validation.check_samples(self, X, fitting=False)
        self._check_size(X, samples, silent)

        def weigh(leaf: np.ndarray, part: slice) -> None:
            parts[part.start] = samples.core.weigh(leaf, silent)

        over_leaves(self._fitted(), X, self._jobs(), weigh)
        found = [parts.pop(start) for start in sorted(parts)]
        size, column, value = (np.concatenate(some) for some in zip(*found, strict=True))
        found.clear()
        if samples.kept is not None:
            column = samples.given()[column]
        index_type = np.int32 if len(column) < 2**31 else np.int64
        begin = np.append(0, np.cumsum(size)).astype(index_type)
        shape = (len(X), samples.n_given)
        return sp.csr_matrix((value, column.astype(index_type, copy=False), begin), shape=shape)

    def nearest(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Find the training samples with the largest weights in the prediction of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.
        k : int
            Number of training samples to find for each sample.

        Returns
        -------
        indices : ndarray of shape (n_samples, k)
            Numbers of training samples, as given to `fit`. The largest weight comes first, and the
            lower number among equal weights. Where fewer than `k` training samples have a weight,
            the rest of the row is -1.
        weights : ndarray of shape (n_samples, k)
            Their weights; see `weights`. They are 0 where the number is -1.

        Notes
        -----
        The forest must have been fitted with ``keep_samples=True``.

        Examples
        --------
        >>> from morforest import MorfClassifier
        >>> model = MorfClassifier(n_estimators=2, bootstrap=False, keep_samples=True,
        ...                        random_state=0)
        >>> indices, weights = model.fit([[0], [1], [9]], ["a", "a", "b"]).nearest([[7]], k=2)
        >>> indices.tolist(), weights.tolist()
        ([[2, -1]], [[1.0, 0.0]])
        """
        samples, silent = self._samples_with_weights()
        check.check_integer("k", k, 1, samples.n_given)
        X, _ = validation.check_samples(self, X, fitting=False)
        row = np.empty((len(X), int(k)), dtype=np.int64)
        weight = np.empty(row.shape)

        def find(leaf: np.ndarray, part: slice) -> None:
            samples.core.nearest(leaf, silent, row[part], weight[part])

        over_leaves(self._fitted(), X, self._jobs(), find)
        if samples.kept is not None:
            row = np.where(row < 0, -1, samples.given()[row])
        return row, weight

    def proximity(self, X: Any, Y: Any = None) -> np.ndarray:
        """Compute the share of trees in which two samples fall into the same leaf.

        The result is a kernel: with ``Y=None`` it is symmetric and positive semi-definite, with
        ones on the diagonal. ``1 - proximity(X)`` is a distance, and its square root one that can
        be embedded.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.
        Y : array-like of shape (n_others, n_features) or (n_others, ...) or None, default=None
            Samples to compare with. None compares `X` with itself.

        Returns
        -------
        proximities : ndarray of shape (n_samples, n_others)
            Shares from 0 to 1.

        Notes
        -----
        Training samples are not needed, so that ``keep_samples`` does not matter here. The result
        is dense, as ``SVC(kernel="precomputed")`` and ``TSNE(metric="precomputed")`` need it: for
        many samples call the method with a part of X at a time. `weights` is sparse.

        Examples
        --------
        >>> from morforest import MorfClassifier
        >>> model = MorfClassifier(n_estimators=2, bootstrap=False, random_state=0)
        >>> model.fit([[0], [1], [9]], ["a", "a", "b"]).proximity([[0], [1], [8]])
        array([[1., 1., 0.],
               [1., 1., 0.],
               [0., 0., 1.]])
        """
        forest = self._fitted()
        X, _ = validation.check_samples(self, X, fitting=False)
        others = X if Y is None else validation.check_samples(self, Y, fitting=False)[0]
        if len(X) * len(others) > MAX_PROXIMITIES:
            raise ValueError(
                f"proximity of {len(X)} with {len(others)} samples would need "
                f"{len(X) * len(others) * 8 / 2**30:.0f} GB: call it with fewer samples at a time, "
                "or use weights(), which is sparse."
            )
        leaf = forest.apply(X, self._jobs())
        other_leaf = leaf if Y is None else forest.apply(others, self._jobs())
        shares = np.empty((len(X), len(others)))
        over_even_parts(
            lambda part: core.share_leaves(leaf[part], other_leaf, shares[part]),
            len(X),
            count_jobs(self._jobs(), -(-len(X) // SAMPLES_AT_ONCE)),
        )
        return shares

    def _each_output(self) -> Iterator[Any]:
        """Yield a model of each of several outputs alone, which has the same trees."""
        samples, known = self._leaf_samples, self._out_of_bag
        for k in range(self.n_outputs_):
            model: Any = copy(self)
            model._forest = self._fitted().of_output(k)
            model._leaf_samples = None if samples is None else samples.of_output(k)
            model._out_of_bag = None if known is None else known.of_output(k)
            if hasattr(self, "classes_"):
                model.classes_, model.n_classes_ = self.classes_[k], self.n_classes_[k]
            yield model

    def _kept_samples(self) -> LeafSamples:
        """Return the training samples of the leaves, which a parameter of the fit asks for."""
        forest, samples = self._fitted(), self._leaf_samples
        if samples is None or samples.n_trees != forest.n_trees:
            raise ValueError(
                f"this {type(self).__name__} has not kept the training samples of its leaves, "
                "because it was fitted with keep_samples=False: fit with keep_samples=True."
            )
        return samples

    def _samples_with_weights(self) -> tuple[LeafSamples, np.ndarray]:
        """Return the same where predictions are weighted means of samples, and the silent trees."""
        samples, forest = self._kept_samples(), self._fitted()
        if "uniform" in self._fitted_priors and samples.has_empty_leaves(forest):
            raise ValueError(
                'with honest_prior="uniform" some leaves predict what no training sample says: fit '
                'with honest_prior="ignore", "prune" or "empirical".'
            )
        return samples, forest.silent_trees

    def _check_size(self, X: np.ndarray, samples: LeafSamples, silent: np.ndarray) -> None:
        """Raise if there are more weights than fit, before they are computed."""
        if len(X) * samples.most_weights(self._fitted()) <= MAX_WEIGHTS:
            return
        found: list[int] = []
        over_leaves(
            self._fitted(),
            X,
            self._jobs(),
            lambda leaf, _: found.append(samples.core.count(leaf, silent)),
        )
        if sum(found) > MAX_WEIGHTS:
            raise ValueError(
                f"weights of {len(X)} samples would be {sum(found):,} numbers, which need "
                f"{sum(found) * 12 / 2**30:.0f} GB and as much again to compute: call it with "
                "fewer samples at a time, or use nearest() or predict_quantiles(), which hold "
                "few of them."
            )


class QuantilePrediction(ForestWeights):
    """Quantiles of the targets, weighted by the forest."""

    def predict_quantiles(self, X: Any, q: Any) -> np.ndarray:
        """Predict quantiles: those of the training targets, weighted by the forest.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.
        q : array-like of shape (n_quantiles,) or float
            Levels of the quantiles, from 0 to 1, in any order.

        Returns
        -------
        quantiles : ndarray of shape (n_samples, n_quantiles)
            The quantile of level `q` is the smallest training target whose weight, together with
            the weights of all smaller ones, is at least `q`; see `weights`. Columns follow `q`. The
            shape is (n_samples, n_outputs, n_quantiles) with several outputs.

        Notes
        -----
        The forest must have been fitted with ``keep_samples=True``. Leaves of one sample leave
        little to take quantiles of: a larger `min_samples_leaf`, such as 5 or 10, usually gives
        better ones. Quantiles are always training targets, and are not interpolated. A cumulated
        weight counts as `q` if it is less by at most 1.5e-11, so that rounding does not decide
        between two targets.

        Examples
        --------
        >>> from morforest import MorfRegressor
        >>> model = MorfRegressor(n_estimators=2, bootstrap=False, max_depth=1, keep_samples=True,
        ...                       random_state=0)
        >>> model.fit([[0], [0], [0], [9]], [1.0, 2.0, 3.0, 9.0])
        MorfRegressor(bootstrap=False, keep_samples=True, max_depth=1, n_estimators=2,
                      random_state=0)
        >>> model.predict_quantiles([[0], [9]], [0.1, 0.5, 0.9])
        array([[1., 2., 3.],
               [9., 9., 9.]])
        """
        if self.n_outputs_ > 1:
            return np.stack([of.predict_quantiles(X, q) for of in self._each_output()], axis=1)
        samples, silent = self._samples_with_weights()
        levels = check_levels(q)
        X, _ = validation.check_samples(self, X, fitting=False)
        order = np.argsort(levels, kind="stable")
        value, rank = samples.ranked_targets
        found = np.empty((len(X), len(levels)))

        def cumulate(leaf: np.ndarray, part: slice) -> None:
            samples.core.quantiles(leaf, silent, value, rank, levels[order], found[part])

        over_leaves(self._fitted(), X, self._jobs(), cumulate)
        quantiles = np.empty(found.shape)
        quantiles[:, order] = found
        return quantiles


def over_leaves(
    forest: Forest, X: np.ndarray, n_jobs: int | None, work: Callable[[np.ndarray, slice], None]
) -> None:
    """Call `work` with the leaves of some samples in all trees, and where these samples stand."""
    for some in blocks((len(X), forest.n_trees), LEAVES):
        leaf = forest.apply(X[some], n_jobs)
        first = some.start

        def of_part(part: slice, leaf: np.ndarray = leaf, first: int = first) -> None:
            work(leaf[part], slice(first + part.start, first + part.stop))

        over_rows(of_part, len(leaf), SAMPLES_AT_ONCE, n_jobs)


def check_levels(q: Any) -> np.ndarray:
    """Return the levels of quantiles, which must be numbers from 0 to 1."""
    found = np.asarray(q)
    if found.ndim > 1 or not found.size or found.dtype.kind not in "iuf":
        raise ValueError(f"q must be a number or a list of numbers from 0 to 1, got {q!r}.")
    levels = np.atleast_1d(found).astype(np.float64)
    if not ((levels >= 0) & (levels <= 1)).all():
        raise ValueError(f"q must be numbers from 0 to 1, got {q!r}.")
    return levels
