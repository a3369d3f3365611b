"""Boosted trees over dictionaries."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from morforest import _losses as losses
from morforest import _parameters as check
from morforest import _validation as validation
from morforest._attribution import Attributions, attribute, shaped
from morforest._bagging import canonical_order
from morforest._estimator import BaseMorf, limit
from morforest._fixed_point import whole_weights
from morforest._model import Forest, assemble
from morforest._native import core
from morforest._progress import Progress
from morforest._rounds import GENERATIONS, Boosting
from morforest._table import make_table
from morforest.augment import make_copier
from morforest.dictionary import Axis, Mixture
from morforest.dictionary._base import ResolvedDictionary, resolve, seed_from

__all__ = ["MorfBoostingClassifier", "MorfBoostingRegressor"]

VALIDATION = 2**63  # numbers the draw of the rows that are held out; no round has that number
LARGEST_COUNT = 1e15  # of a Poisson target
MOST_REPEATED = 64  # mean of whole-number weights that mean repeated samples
SMALL_DATA = 5000  # training samples up to which a round sees most of them
LEAF = 20  # samples of a leaf, where a round has enough

_PARAMETERS = """dictionary : dictionary object, name or None, default=None
        Where split candidates come from, as in :class:`MorfClassifier`. None chooses by the shape
        of a sample: ``Patch()`` for samples with axes; for flat rows single features and sparse
        sums, half each, where sums prefer features that earlier rounds gained from.
    {loss}learning_rate : float, default=0.05
        Factor of each tree's leaves. Smaller ones need more rounds, and are often a little better.
    max_iter : int, default=500
        Number of rounds, of one tree each, whatever the number of classes.
    data_shape : tuple of int or None, default=None
        Shape of one sample where X has flat rows, such as ``(28, 28)``. None takes it from X.
    channel_axis : int or None, default=None
        Axis of one sample that holds channels (sensors, colours).
    max_features : {{"auto", "sqrt", "log2"}}, int, float or None, default="auto"
        How many candidates are drawn at each node, as in :class:`MorfClassifier`. "auto" is the
        number of features for flat rows, and its square root for samples with more axes.
    splitter : {{"histogram", "exact", "random"}}, default="histogram"
        How thresholds are found, as in :class:`MorfClassifier`.
    subsample : float or "auto", default="auto"
        Share of the samples that a round sees, drawn anew for each. "auto" is 0.8 of up to 5,000
        training samples, and 0.5 of more.
    max_depth : int or None, default=6
        Largest depth of a tree; None does not limit it.
    min_samples_leaf : int, float or "auto", default="auto"
        Both sides of a split need as many samples. A float is a share of those of a round. "auto"
        is 20, or a third of a round's samples where that is less.
    max_leaf_nodes : int or None, default=None
        Largest number of leaves of a tree; the splits with the largest gain come first.
    l2 : float, default=0.3
        Added to the curvature of a leaf: larger values make leaves of few samples smaller.
    early_stopping : bool, default=False
        Whether to hold samples out, and to stop when their loss no longer falls.
    validation_fraction : float, default=0.1
        Share of the samples, of each class, that is held out.
    n_iter_no_change : int, default=20
        Rounds without a lower held-out loss after which fitting stops; the model keeps the rounds
        up to the lowest.
    tol : float, default=1e-7
        By how much a loss must be lower to count as such.
    augment : ImageCopies, SeriesCopies or None, default=None
        Copies of the samples to learn from too, drawn anew 16 times in a fit. Samples that are
        held out have none.{class_weight}
    warm_start : bool, default=False
        Whether a further fit goes on from the present model.
    n_jobs : int or None, default=None
        Number of threads; -1 for one a processor. In a round they share the candidates of large
        nodes. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of all draws: the same seed and samples give the same model everywhere.
    verbose : int, default=0
        Whether to show rounds, losses and the time left while fitting."""

_CLASS_WEIGHT = """
    class_weight : {"balanced"}, dict or None, default=None
        What each class' samples count for: a dict from label to weight, or in inverse proportion
        to the classes' frequencies."""

_LOSS = """loss : {"squared_error", "absolute_error", "poisson", "quantile"}
        What is minimised; by default the squared error. "poisson" fits the logarithm of a mean,
        "quantile" the quantile below.
    quantile : float, default=0.5
        Which quantile, if that is the loss.
    """

_ATTRIBUTES = """n_iter_ : int
        Number of rounds of the model.
    train_score_ : ndarray of shape (rounds,)
        Mean loss of the training samples after each round that was made.
    validation_score_ : ndarray of shape (rounds,)
        That of the samples held out; empty without `early_stopping`.
    data_shape_ : tuple of int
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
        Share of the gain of the splits.
    split_shares_ : ndarray of the shape of a sample
        Share of splits that use a feature."""


def share_of_round(subsample: Any, samples: int) -> float:
    """Return the share of the training samples that a round sees."""
    if isinstance(subsample, str) and subsample == "auto":
        return 0.8 if samples <= SMALL_DATA else 0.5
    if not check.is_number(subsample) or not 0 < subsample <= 1:
        raise ValueError(f'subsample must be a number in (0, 1] or "auto", got {subsample!r}.')
    return float(subsample)


def samples_of_leaf(min_samples_leaf: Any, samples: int) -> int:
    """Return how many samples a leaf needs at least, where a round has as many as given."""
    if isinstance(min_samples_leaf, str) and min_samples_leaf == "auto":
        return min(LEAF, max(1, samples // 3))
    if isinstance(min_samples_leaf, str):
        raise ValueError(
            'min_samples_leaf must be an integer of at least 1, a float in (0, 1] or "auto", got '
            f"{min_samples_leaf!r}."
        )
    return check.count_or_fraction("min_samples_leaf", min_samples_leaf, samples)


class BaseBoosting(BaseMorf):
    """Everything that boosted classification and regression share."""

    loss: str = "log_loss"
    quantile: float = 0.5
    _exponent: int = 0  # targets were divided by two to this power
    train_score_: np.ndarray
    validation_score_: np.ndarray
    classes_: np.ndarray

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BaseBoosting:
        """Fit the rounds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples of any rank, or flat rows.
        y : array-like of shape (n_samples,)
            Class labels, or numbers for regression.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            What each sample counts for. Whole numbers mean repeated samples.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        super().fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> BaseBoosting:
        self._check_parameters()
        X, shape = validation.check_samples(self, X, fitting=True)
        target = self._read_target(y, len(X))
        weights = validation.check_weights(sample_weight, len(X))
        if weights is not None and not weights.all():
            kept = np.flatnonzero(weights)
            X, target, weights = X[kept], target[kept], weights[kept]
        chosen = self._choose_dictionary(X, target, weights, shape)
        if self.dictionary is None and len(shape) == 1:
            chosen = Mixture([Axis(), chosen])
        plan = resolve(chosen, shape, self.channel_axis)
        plan = replace(plan, dictionary=clone(plan.dictionary))

        before = self._forest if self.warm_start else None
        first = 0
        if before is None:
            self._seed = seed_from(self.random_state)
        else:
            first = self._check_earlier(before, shape)
        if first == self.max_iter:
            warnings.warn("warm_start with the same max_iter adds no rounds.", UserWarning, 3)
            return self
        task, held_out, judged = self._prepare_rounds(X, target, weights, plan, before)
        self._fitted_loss = self._loss_name()
        self._run_rounds(task, held_out, judged, first, plan, before)
        return self

    def _prepare_rounds(
        self,
        X: np.ndarray,
        target: np.ndarray,
        weights: np.ndarray | None,
        plan: ResolvedDictionary,
        before: Forest | None,
    ) -> tuple[Boosting, np.ndarray, np.ndarray]:
        """Turn samples, targets, weights and parameters into what the rounds share."""
        whole = None if weights is None else whole_weights(weights)
        if whole is not None and whole.sum() > MOST_REPEATED * len(X):
            whole = None  # as many samples would take long: a weight then multiplies instead
        copies = np.ones(len(X), dtype=np.uint32) if whole is None else whole
        weight = np.ones(len(X)) if weights is None or whole is not None else weights
        weight = weight * self._class_factors_of(target, weight * copies)
        copier = make_copier(self.augment, plan.shape, plan.channel_axis, X)
        max_features = self.max_features
        if isinstance(max_features, str) and max_features == "auto":
            max_features = None if len(plan.shape) == 1 else "sqrt"
        rule = {
            "splitter": self.splitter,
            "candidates": validation.candidate_count(max_features, X.shape[1]),
            "max_depth": limit(self.max_depth),
            "min_samples_split": 2,
            "min_weight_fraction_leaf": 0.0,
            "min_impurity_decrease": 0.0,
            "max_leaf_nodes": limit(self.max_leaf_nodes),
        }
        earlier = getattr(self, "dictionary_", None)
        table = make_table(X, plan, self._seed, self.n_jobs, before, earlier)
        order = canonical_order(table.hash, target, weights)
        held_out = self._hold_out(target, order)
        judged = (copies * weight)[held_out]
        copies = np.where(held_out, 0, copies).astype(np.uint32)
        share = share_of_round(self.subsample, int(copies.sum()))
        samples = max(1, round(share * int(copies.sum())))
        rule["min_samples_leaf"] = limit(samples_of_leaf(self.min_samples_leaf, samples))
        loss = self._make_loss(target, weight)
        if before is None:
            trained = loss.of(np.flatnonzero(copies))
            trained.weight = trained.weight * copies[copies > 0]
            self._baseline = trained.baseline()
        task = Boosting(
            table=table,
            loss=loss,
            baseline=self._baseline,
            order=order,
            copies=copies,
            weight=weight,
            share=share,
            seed=self._seed,
            rule=rule,
            l2=float(self.l2),
            learning_rate=float(self.learning_rate),
            before=before,
            copier=copier,
            period=max(1, -(-int(self.max_iter) // GENERATIONS)),
            n_jobs=self.n_jobs,
            guided=self.dictionary is None and len(plan.shape) == 1,
        )
        return task, np.flatnonzero(held_out), judged

    def _run_rounds(
        self,
        task: Boosting,
        held_out: np.ndarray,
        judged: np.ndarray,
        first: int,
        plan: ResolvedDictionary,
        before: Forest | None,
    ) -> None:
        """Make the rounds, and keep them even if they are interrupted."""
        train = np.flatnonzero(task.copies)
        counted = task.copies[train] * task.weight[train]
        train_scores = list(self.train_score_[:first]) if first else []
        validation_scores = list(self.validation_score_[:first]) if first else []
        grown: list[dict[str, np.ndarray]] = []
        best = min(validation_scores, default=np.inf)
        best_round = first
        progress = Progress(int(self.max_iter) - first, self.verbose, "rounds")
        stop = core.StopFlag()
        try:
            for some in task.rounds(range(first, int(self.max_iter)), stop):
                grown.append(some)
                found = {"training": task.loss.average(task.scores, train, counted)}
                train_scores.append(found["training"])
                if len(held_out):
                    found["validation"] = task.loss.average(task.scores, held_out, judged)
                    validation_scores.append(found["validation"])
                told = (f", {name} loss {value:.5g}" for name, value in found.items())
                progress.advance(1, "".join(told))
                if len(held_out):
                    if found["validation"] < best - self.tol:
                        best, best_round = found["validation"], first + len(grown)
                    elif first + len(grown) - best_round >= self.n_iter_no_change:
                        break
        except BaseException:
            stop.set()
            raise
        finally:
            progress.close()
            tried = bool(grown)
            if len(held_out) and best < np.inf:
                del grown[best_round - first :]
            if tried and not grown:  # none was better than those of the first fit
                self.train_score_ = np.array(train_scores)
                self.validation_score_ = np.array(validation_scores)
            if grown:
                self._forest = assemble(grown, task.table, 0, None, before, task.loss.outputs)
                self.n_iter_ = self._forest.n_trees
                self.train_score_ = np.array(train_scores)
                self.validation_score_ = np.array(validation_scores)
                self.data_shape_ = plan.shape
                self.dictionary_ = plan.dictionary

    def _check_earlier(self, before: Forest, shape: tuple[int, ...]) -> int:
        if before.sample_shape != shape or before.values != len(self._baseline):
            raise ValueError(
                f"warm_start needs the samples' shape and classes of the first fit: got shape "
                f"{shape}, had {before.sample_shape}."
            )
        if self._fitted_loss != self._loss_name():
            raise ValueError(
                f"warm_start needs the loss of the first fit, {self._fitted_loss!r}, got "
                f"{self._loss_name()!r}: set it back, or fit a new model."
            )
        if bool(self.early_stopping) != bool(len(self.validation_score_)):
            raise ValueError(
                "warm_start needs early_stopping as in the first fit, got "
                f"early_stopping={self.early_stopping!r}: the samples held out would have been "
                "trained on. Fit a new model instead."
            )
        if self.max_iter < before.n_trees:
            raise ValueError(
                f"max_iter={self.max_iter} must be at least the {before.n_trees} rounds already "
                "made when warm_start=True."
            )
        return before.n_trees

    def _hold_out(self, target: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Mark the rows that are held out: the same share of each class."""
        held_out = np.zeros(len(target), dtype=bool)
        if not self.early_stopping:
            return held_out
        key = np.array([core.tree_key(self._seed, VALIDATION)], dtype=np.uint64)
        for rows in self._strata(target):
            copies = np.zeros(len(target), dtype=np.uint32)
            copies[rows] = 1
            draws = min(round(self.validation_fraction * len(rows)), len(rows) - 1)
            held_out |= core.draw_subsets(key, max(draws, 0), order, copies) > 0
        if not held_out.any():
            raise ValueError(
                f"early_stopping=True with validation_fraction={self.validation_fraction} holds no "
                f"sample out of {len(target)}: give a larger fraction, or no early_stopping."
            )
        return held_out

    def _check_parameters(self) -> None:
        check.check_integer("max_iter", self.max_iter, 1)
        if not check.is_number(self.learning_rate) or not 0 < self.learning_rate <= 1e6:
            raise ValueError(f"learning_rate must be positive, got {self.learning_rate!r}.")
        share_of_round(self.subsample, 1)
        check.check_choice("splitter", self.splitter, ("histogram", "exact", "random"))
        if isinstance(self.max_features, str):
            check.check_choice("max_features", self.max_features, ("auto", "sqrt", "log2"))
        check.check_integer("max_depth", self.max_depth, 1, none=True)
        check.check_integer("max_leaf_nodes", self.max_leaf_nodes, 2, none=True)
        check.check_fraction("l2", self.l2, 0.0, 1e30)
        check.check_flag("early_stopping", self.early_stopping)
        fraction = self.validation_fraction
        if not check.is_number(fraction) or not 0 < fraction < 1:
            raise ValueError(f"validation_fraction must be in (0, 1), got {fraction!r}.")
        check.check_integer("n_iter_no_change", self.n_iter_no_change, 1)
        check.check_fraction("tol", self.tol, 0.0, 1e30)
        samples_of_leaf(self.min_samples_leaf, 1)
        check.check_jobs(self.n_jobs)
        check.check_random_state("random_state", self.random_state)
        if not isinstance(self.verbose, bool):
            check.check_integer("verbose", self.verbose, 0)
        check.check_flag("warm_start", self.warm_start)

    def _raw(self, X: Any) -> np.ndarray:
        """Return scores before the link function (n, outputs)."""
        forest = self._fitted()
        X, _ = validation.check_samples(self, X, fitting=False)
        return self._baseline + forest.predict_sum(X, self.n_jobs)

    def attributions(self, X: Any) -> Attributions:
        """Say what each feature of each sample contributes to its score.

        On a sample's way down a tree each split changes the expected score: the mean of the
        leaves below, by the number of their training samples in the round. The features of the
        split's atom share that change in proportion to the size of their weights, as they share
        importances. Changes of a feature are added over the path and over the rounds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        values : ndarray of shape (n_samples, ...) or (n_samples, ..., n_classes)
            Contributions in the shape of the samples (that of ``data_shape_``). Those of three
            classes or more have a last axis that follows ``classes_``.
        baseline : float or ndarray of shape (n_classes,)
            The first guess and the expectations of all rounds. The baseline and the sum of a
            sample's values are its score: what `decision_function` says of classes (log-odds of the
            second of two), what `predict` says in regression, and for ``loss="poisson"`` the
            logarithm of that.

        Notes
        -----
        A named tuple, whose parts can also be had as ``.values`` and ``.baseline``. These are not
        Shapley values, and the shares of linear combinations depend on the features' units.
        """
        forest = self._fitted()
        X, _ = validation.check_samples(self, X, fitting=False)
        values, baseline = attribute(forest, X, self.n_jobs, mean=False)
        baseline = self._baseline + baseline
        if self._exponent:
            values, baseline = np.ldexp(values, self._exponent), np.ldexp(baseline, self._exponent)
        return shaped(values, baseline, forest.sample_shape, classes=False)

    def _staged_raw(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the scores after each round."""
        forest = self._fitted()
        X, _ = validation.check_samples(self, X, fitting=False)
        leaf = forest.apply(X, self.n_jobs).astype(np.int64)
        values = forest.leaf_value.reshape(-1, forest.values)
        scores = np.tile(self._baseline, (len(X), 1))
        for tree in range(forest.n_trees):
            payload = -1 - forest.next[forest.tree_begin[tree] + leaf[:, tree]].astype(np.int64)
            scores = scores + values[payload]
            yield scores

    def _make_loss(self, target: np.ndarray, weight: np.ndarray) -> losses.Loss:
        raise NotImplementedError

    def _read_target(self, y: Any, n_samples: int) -> np.ndarray:
        raise NotImplementedError

    def _strata(self, target: np.ndarray) -> list[np.ndarray]:
        return [np.arange(len(target))]

    def _class_factors_of(self, target: np.ndarray, weight: np.ndarray) -> Any:
        return 1.0


class MorfBoostingClassifier(ClassifierMixin, BaseBoosting):
    """Boosted trees that classify data with shape.

    Each round fits one tree to what the rounds before left unexplained. Its leaves hold a number a
    class, so a round costs one tree whatever the number of classes.

    Parameters
    ----------
    <parameters>

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    n_classes_ : int
        Their number.
    <attributes>

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
        max_features: Any = "auto",
        splitter: str = "histogram",
        subsample: float | str = "auto",
        max_depth: int | None = 6,
        min_samples_leaf: int | float | str = "auto",
        max_leaf_nodes: int | None = None,
        l2: float = 0.3,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 20,
        tol: float = 1e-7,
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
        self.max_features = max_features
        self.splitter = splitter
        self.subsample = subsample
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.max_leaf_nodes = max_leaf_nodes
        self.l2 = l2
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
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
        before = self._forest if self.warm_start else None
        classes, codes = validation.check_classes(y, n_samples)
        if len(classes) < 2 and before is None:
            raise ValueError(
                f"y has one class only, {classes[0]!r}: boosting needs samples of two classes."
            )
        if before is not None:
            classes, codes = validation.earlier_classes(self.classes_, classes, codes)
        self.classes_ = classes
        self.n_classes_ = len(classes)
        return codes

    def _loss_name(self) -> tuple[Any, ...]:
        return ("log_loss",)

    def _make_loss(self, target: np.ndarray, weight: np.ndarray) -> losses.Loss:
        return losses.make_loss("log_loss", target, weight, classes=len(self.classes_))

    def _strata(self, target: np.ndarray) -> list[np.ndarray]:
        return [np.flatnonzero(target == k) for k in range(len(self.classes_))]

    def _class_factors_of(self, target: np.ndarray, weight: np.ndarray) -> Any:
        if self.class_weight is None:
            return 1.0
        return validation.class_factors(self.class_weight, self.classes_, target, weight)[target]

    def _probabilities(self, scores: np.ndarray) -> np.ndarray:
        if scores.shape[1] > 1:
            return losses.softmax(scores)
        return losses.softmax(np.hstack([np.zeros_like(scores), scores]))

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores before they are made probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes) or (n_samples,)
            Of two classes, the log-odds of the second.
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
        check_is_fitted(self)
        return self._probabilities(self._raw(X))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Predict logarithms of class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            Columns follow ``classes_``.
        """
        return np.log(self.predict_proba(X))

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

    def _labels(self, scores: np.ndarray) -> np.ndarray:
        if scores.shape[1] > 1:
            return self.classes_[np.argmax(scores, axis=1)]
        return self.classes_[(scores[:, 0] > 0).astype(int)]

    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the probabilities after each round."""
        return map(self._probabilities, self._staged_raw(X))

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the most probable classes after each round."""
        return map(self._labels, self._staged_raw(X))


class MorfBoostingRegressor(RegressorMixin, BaseBoosting):
    """Boosted trees that predict numbers from data with shape.

    Parameters
    ----------
    <parameters>

    Attributes
    ----------
    <attributes>

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
        max_features: Any = "auto",
        splitter: str = "histogram",
        subsample: float | str = "auto",
        max_depth: int | None = 6,
        min_samples_leaf: int | float | str = "auto",
        max_leaf_nodes: int | None = None,
        l2: float = 0.3,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 20,
        tol: float = 1e-7,
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
        self.max_features = max_features
        self.splitter = splitter
        self.subsample = subsample
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.max_leaf_nodes = max_leaf_nodes
        self.l2 = l2
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
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
        return np.ldexp(target, -self._exponent)

    def _loss_name(self) -> tuple[Any, ...]:
        return (self.loss, self.quantile) if self.loss == "quantile" else (self.loss,)

    def _make_loss(self, target: np.ndarray, weight: np.ndarray) -> losses.Loss:
        return losses.make_loss(self.loss, target, weight, quantile=float(self.quantile))

    def _values(self, scores: np.ndarray) -> np.ndarray:
        if self._fitted_loss == ("poisson",):
            return losses.exp(scores[:, 0])
        values: np.ndarray = np.ldexp(scores[:, 0], self._exponent)
        return values

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
        check_is_fitted(self)
        return self._values(self._raw(X))

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the predictions after each round."""
        return map(self._values, self._staged_raw(X))


for _cls, _loss, _weights in (
    (MorfBoostingClassifier, "", _CLASS_WEIGHT),
    (MorfBoostingRegressor, _LOSS, ""),
):
    _text = _PARAMETERS.format(loss=_loss, class_weight=_weights)
    _doc = (_cls.__doc__ or "").replace("<parameters>", _text)
    _cls.__doc__ = _doc.replace("<attributes>", _ATTRIBUTES)
