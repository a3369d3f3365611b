"""How sure a forest is of its predictions: standard deviations, intervals, sets."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from morforest import _parameters as check
from morforest import _validation as validation
from morforest._forest_weights import ForestWeights
from morforest._parallel import over_rows
from morforest._uncertainty import (
    Answers,
    Draws,
    LeftOut,
    OutOfBag,
    TreeValues,
    conforms,
    infinitesimal_variance,
    interval,
    jackknife_variance,
)

MANY_MISSING = 0.05  # of the training samples: so many without a prediction are told
MANY_NEGATIVE = 0.1  # of the variances: the same


class ForestUncertainty(ForestWeights):
    """Questions about predictions that trees answer for the samples that they did not use."""

    bootstrap_: bool
    max_samples_: int
    _n_samples: int
    _out_of_bag: OutOfBag | None = None

    def predict_std(self, X: Any, method: str = "jackknife") -> Any:
        """Estimate the standard deviation of predictions over training samples.

        This says how far the prediction would move if the forest were fitted to other samples from
        the same source, and with another seed: the uncertainty of the mean, or of the class
        probability, and not the spread of the targets around it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.
        method : {"jackknife", "infinitesimal"}, default="jackknife"
            "jackknife" is the jackknife after bootstrap, which compares the whole forest with the
            trees that did not use a training sample. "infinitesimal" is the infinitesimal
            jackknife, which asks how the predictions of the trees depend on how often they drew a
            sample. Both correct for the finite number of trees. In simulations the first was 1.0 to
            1.3 times what was to be estimated, and the second 0.7 to 1.0 times.

        Returns
        -------
        deviations : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Standard deviations of `predict` in regression, and of each column of `predict_proba`
            in classification. With several outputs, an array of shape (n_samples, n_outputs) in
            regression, and in classification a list with one array for each. NaN where fewer than
            two trees vote, which may be so if they are honest.

        Notes
        -----
        The forest must have been fitted with ``keep_samples=True``, and its trees must have left
        samples out (``bootstrap=True``, or `max_samples`). The estimate needs many more trees than
        a prediction: for bootstrap samples about ten times as many as there are training samples,
        for a small `max_samples`, such as 0.2, a few times as many. With fewer, the correction
        often exceeds what it corrects, and results are too large on average. A variance that is
        negative after the correction is set to zero; what a finite number of trees adds (the
        variance between the trees, divided by their number) is then added to all of them, so that
        no result is zero unless all trees agree. A warning says so if more than a tenth of the
        variances were negative.

        Examples
        --------
        >>> import numpy as np
        >>> from morforest import MorfRegressor
        >>> X = np.arange(40.0).reshape(-1, 1)
        >>> y = np.where(X[:, 0] < 20, 0.0, np.tile([-5.0, 5.0], 20))
        >>> model = MorfRegressor(n_estimators=400, keep_samples=True, random_state=0).fit(X, y)
        >>> quiet, noisy = model.predict_std([[9], [30]])
        >>> bool(quiet < noisy)
        True
        """
        check.check_choice("method", method, ("jackknife", "infinitesimal"))
        if self.n_outputs_ > 1:
            each = [of.predict_std(X, method) for of in self._each_output()]
            return each if self._fitted().class_count else np.stack(each, axis=1)
        values, left_out, known = self._left_out_samples("predict_std")
        forest = self._fitted()
        if forest.n_trees < 2:
            raise ValueError(
                "predict_std needs at least two trees: fit with a larger n_estimators."
            )
        X, _ = validation.check_samples(self, X, fitting=False)
        draws = Draws(self._kept_samples().drawn, known.repeats, self._share_unused())
        if method == "infinitesimal":
            values = TreeValues.of(forest, int(draws.counts.max()))
        found = np.empty((2, len(X), forest.outputs))

        def estimate(part: slice, said: Answers) -> None:
            for k in range(forest.outputs):
                of_output = said.output(k)
                if method == "jackknife":
                    found[:, part, k] = jackknife_variance(of_output, left_out, known.repeats)
                else:
                    found[:, part, k] = infinitesimal_variance(of_output, draws)

        self._over_samples(X, values, left_out, estimate)
        negative = float(np.mean(found[0] < 0))
        if negative > MANY_NEGATIVE:
            warnings.warn(
                f"{negative:.0%} of the variances were negative after the correction for "
                f"{forest.n_trees} trees and {len(draws.repeats)} training samples, and are set "
                "to zero: use more trees, a smaller max_samples or a larger min_samples_leaf.",
                UserWarning,
                2,
            )
        deviations: np.ndarray = np.sqrt(np.maximum(found[0], 0.0) + found[1]) * values.unit
        return deviations if forest.class_count else deviations[:, 0]

    def _share_unused(self) -> float:
        """Return the share of samples that a tree does not draw, one if it may draw them twice."""
        return 1.0 if self.bootstrap_ else 1.0 - self.max_samples_ / self._n_samples

    def _left_out_samples(self, method: str) -> tuple[TreeValues, LeftOut, OutOfBag]:
        """Return what trees predict, and what is known of the training samples they left out."""
        samples, known = self._kept_samples(), self._out_of_bag
        if known is None:
            raise ValueError(
                f"{method} needs training samples that some trees did not use, but every tree of "
                f"this {type(self).__name__} used all of them: fit with bootstrap=True or a "
                'smaller max_samples, and without honest="oob".'
            )
        values = TreeValues.of(self._fitted())
        left_out = LeftOut.of(samples.drawn, known.weight)
        missing = samples.n_rows - len(left_out.row)
        if missing > MANY_MISSING * samples.n_rows:
            warnings.warn(
                f"{missing} of {samples.n_rows} training samples were used by all trees and say "
                f"nothing about new samples: use more trees than {len(samples.drawn)}.",
                UserWarning,
                3,
            )
        return values, left_out, known

    def _said_by_nobody(self, values: TreeValues, left_out: LeftOut) -> np.ndarray | None:
        """Return what is predicted where all trees that left a row out are silent."""
        return values.of_nobody(left_out) if values.some_silent else None

    def _over_samples(
        self,
        X: np.ndarray,
        values: TreeValues,
        left_out: LeftOut,
        work: Callable[[slice, Answers], None],
    ) -> None:
        """Call `work` with parts of the samples and what each tree predicts for these."""
        forest = self._fitted()
        size = max(1, min(values.rows_at_once(), left_out.rows_at_once()))
        over_rows(
            lambda part: work(part, values.at(forest.apply(X[part]))), len(X), size, self._jobs()
        )


class IntervalPrediction(ForestUncertainty):
    """Intervals for numbers."""

    def predict_interval(self, X: Any, level: float = 0.9) -> np.ndarray:
        """Predict intervals that hold the target of a new sample with a given probability.

        Intervals are those of the jackknife+-after-bootstrap. For each training sample, the trees
        that did not use it predict the new one; how far the same trees miss the training sample is
        added on either side. No data are held out, and nothing is assumed about the distribution of
        the targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.
        level : float, default=0.9
            Share of the new samples whose target the interval shall hold, between 0 and 1, such as
            0.9.

        Returns
        -------
        intervals : ndarray of shape (n_samples, 2)
            Lower and upper ends; (n_samples, n_outputs, 2) with several outputs, of which each has
            the level by itself.

        Notes
        -----
        The forest must have been fitted with ``keep_samples=True``, and its trees must have left
        samples out (``bootstrap=True``, or `max_samples`). The level is the coverage on average
        over new samples from the source of the training samples. What is proven is a coverage of at
        least ``1 - 2 * (1 - level)``; in simulations it was within a point of `level`. It holds for
        all samples together, not for each: where the noise varies, intervals are about equally wide
        and cover more where it is low; `predict_quantiles` follows the noise, without a guarantee.
        With fewer than ``level / (1 - level)`` training samples, ends are infinite.

        Sample weights say how often a training sample counts: for whole numbers, as if it were
        given so often, and left out as often; for fractions, in proportion, with a new sample of
        mean weight.

        Examples
        --------
        >>> import numpy as np
        >>> from morforest import MorfRegressor
        >>> X, noise = np.random.default_rng(0).normal(size=(2, 300, 1))
        >>> y = X[:, 0] + noise[:, 0]
        >>> model = MorfRegressor(n_estimators=100, keep_samples=True, random_state=0)
        >>> low, high = model.fit(X[:200], y[:200]).predict_interval(X[200:], 0.9).T
        >>> float(np.mean((low <= y[200:]) & (y[200:] <= high)))
        0.88
        """
        if self.n_outputs_ > 1:
            return np.stack([of.predict_interval(X, level) for of in self._each_output()], axis=1)
        values, left_out, known = self._left_out_samples("predict_interval")
        check_level(level, left_out)
        X, _ = validation.check_samples(self, X, fitting=False)
        nobody = self._said_by_nobody(values, left_out)
        own = known.prediction[left_out.row]
        if nobody is not None:
            own = np.where(np.isnan(own), nobody[0] * values.unit + values.centre, own)
        residual = np.abs(self._kept_samples().target[left_out.row] - own)
        found = np.empty((len(X), 2))

        def find(part: slice, said: Answers) -> None:
            found[part] = interval(
                said.output(0),
                None if nobody is None else nobody[0],
                values.unit,
                residual,
                left_out,
                level,
            )

        self._over_samples(X, values, left_out, find)
        found += values.centre
        return found


class SetPrediction(ForestUncertainty):
    """Sets of classes."""

    classes_: Any

    def predict_set(self, X: Any, level: float = 0.9, *, allow_empty: bool = False) -> Any:
        """Predict sets of classes that hold the class of a new sample with a given probability.

        These are conformal prediction sets by the jackknife+-after-bootstrap. A class belongs to
        the set unless nearly all training samples are more typical of their own class: for each
        training sample, the trees that did not use it compare the probability that they give to its
        class with the one that they give to the class in question of the new sample. No data are
        held out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.
        level : float, default=0.9
            Share of the new samples whose class the set shall hold, between 0 and 1, such as 0.9.
        allow_empty : bool, default=False
            Whether a set may be empty. Where the forest is right more often than `level` says, only
            empty sets bring the coverage down to it; otherwise the most probable class is in every
            set, and the coverage exceeds the level there.

        Returns
        -------
        sets : ndarray of bool of shape (n_samples, n_classes)
            Whether each class belongs to the set of each sample; columns follow ``classes_``. With
            several outputs, a list with one array for each, which has the level by itself.

        Notes
        -----
        The forest must have been fitted with ``keep_samples=True``, and its trees must have left
        samples out (``bootstrap=True``, or `max_samples`). The level is the coverage on average
        over new samples from the source of the training samples, and not for each class or sample.
        What is proven is a coverage of at least ``1 - 2 * (1 - level)``; in simulations it was
        within a point of `level`. Sample weights count as for `MorfRegressor.predict_interval`.
        Class weights change the probabilities, but not how training samples count here.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from morforest import MorfClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = MorfClassifier(n_estimators=100, keep_samples=True, random_state=0).fit(X, y)
        >>> model.predict_set([[5, 3, 1.5, 0.2], [6, 2.7, 5, 1.7]], 0.99)
        array([[ True, False, False],
               [False,  True,  True]])
        """
        if self.n_outputs_ > 1:
            return [of.predict_set(X, level, allow_empty=allow_empty) for of in self._each_output()]
        values, left_out, known = self._left_out_samples("predict_set")
        check_level(level, left_out)
        check.check_flag("allow_empty", allow_empty)
        X, _ = validation.check_samples(self, X, fitting=False)
        forest = self._fitted()
        nobody = self._said_by_nobody(values, left_out)
        own = known.prediction[left_out.row] / values.unit
        if nobody is not None:
            of_own = nobody[self._kept_samples().target[left_out.row], np.arange(len(own))]
            own = np.where(np.isnan(own), of_own, own)
        found = np.zeros((len(X), len(self.classes_)), dtype=bool)
        # Many classes get nothing from any tree, which is the same for all samples.
        nothing = conforms(
            Answers(np.zeros((1, forest.n_trees)), None), None, own, left_out, level
        )[0]

        def find(part: slice, said: Answers) -> None:
            for k in range(forest.outputs):
                if nobody is not None:
                    found[part, k] = conforms(said.output(k), nobody[k], own, left_out, level)
                    continue
                some = np.flatnonzero(said.values[k].any(axis=1))
                of_some = Answers(said.values[k][some], None)
                found[part, k] = nothing
                found[part.start + some, k] = conforms(of_some, None, own, left_out, level)
            if not allow_empty:
                best = np.argmax(forest.predict(X[part]), axis=1)
                found[np.arange(part.start, part.stop), best] = True

        self._over_samples(X, values, left_out, find)
        return found


def check_level(level: Any, left_out: LeftOut) -> None:
    """Require a number between 0 and 1, and warn if the training samples are too few for it."""
    if not check.is_number(level) or not 0 < level < 1:
        raise ValueError(
            f"level must be a number between 0 and 1, such as 0.9 for 90 %, got {level!r}."
        )
    total = len(left_out.row) if left_out.weight is None else float(left_out.weight.sum())
    if left_out.bound(level) > total:
        warnings.warn(
            f"level={level!r} needs at least {int(np.ceil(level / (1 - level) - 1e-9))} training "
            f"samples that some trees left out, and there are {total:g}: intervals are infinite "
            "and sets hold all classes. Lower the level, or fit to more samples.",
            UserWarning,
            3,
        )
