"""What both ridge estimators share: drawing, standardising and weighting atoms."""

from __future__ import annotations

import hashlib
import math
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from morforest import _parameters as check
from morforest._data_scale import Sizes
from morforest._fixed_point import blocks, whole_weights
from morforest._leave_one_out import fit_ridge, stack_ridges
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
from morforest._trials import TrialFeatures
from morforest._validation import check_samples
from morforest.dictionary import Axis
from morforest.dictionary._base import resolve
from morforest.dictionary._presets import SHORTEST_SERIES
from morforest.features import MAX_ATOMS, MOST_REPEATED, AtomFeatures

LARGEST = 8.0  # standard deviations: standardised atoms are clipped there
LEAST_PENALTY, MOST_PENALTY = 1e-50, 1e50  # squares of either are far from overflow
PENALTIES = tuple(np.logspace(-3, 4, 15))
BLOCK_PENALTIES = tuple(np.logspace(-5, 4, 19))  # of blocks, whose columns have a mass of one
POOLED_SHARE = 5  # a block of pooled atoms has n_atoms over this number
LEAST = float(np.finfo(np.float64).tiny)
HELD_VALUES = 1 << 24  # of atoms of all training samples, held in float64 before they are scaled
BLOCK_VALUES = 1 << 22  # of atoms of samples to predict, held in float64 at a time
CALL_VALUES = 1 << 17  # computed per call of the core


@stored
class RidgeBlock(NamedTuple):
    """A block of columns that a ridge estimator tried."""

    name: str
    n_columns: int
    alpha: float  # the penalty that leave-one-out errors chose
    loo_error: float  # squared leave-one-out error of this block alone, to that of the mean
    share: float  # what its predictions are multiplied by in the sum; zero: it was dropped


def check_ridge(estimator: Any) -> None:
    """Check a linear model over drawn atoms; `features_` checks itself."""
    features = estimator.features_
    drawn = isinstance(features, AtomFeatures) and hasattr(features, "_core")
    require(drawn or isinstance(features, TrialFeatures), "features_ are not drawn atoms")
    check_samples_seen(estimator, features.data_shape_)
    check.check_jobs(estimator.n_jobs)
    size = features._size
    for name in ("_origin", "_mean", "_deviation"):
        check_numbers(name, getattr(estimator, name), (size,))
    require(bool((estimator._deviation >= 0).all()), "negative deviations")
    _check_penalties(estimator)
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


def _check_penalties(estimator: Any) -> None:
    """Check the penalty, or those of the blocks that were kept."""
    alpha, features = estimator.alpha_, estimator.features_
    penalties = [alpha]
    if isinstance(features, TrialFeatures):
        check_numbers("alpha_", alpha, (len(features.blocks),))
        penalties = alpha.tolist()
        tried = estimator.blocks_
        require(
            type(tried) is list and all(isinstance(block, RidgeBlock) for block in tried),
            "blocks_ are not blocks",
        )
        kept = tuple(block.name for block in tried if block.share > 0)
        require(kept == features.blocks, "blocks_ do not fit the columns")
    require(
        all(is_finite(value) and LEAST_PENALTY <= value <= MOST_PENALTY for value in penalties),
        f"alpha_ is not a penalty from {LEAST_PENALTY} to {MOST_PENALTY}",
    )


class AtomRidge(Saved, BaseEstimator):
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
    features_: Any
    alpha_: Any
    blocks_: Any
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
        together = None if groups is None else groups[chosen]
        fit = self._fit_blocks if self._by_blocks() else self._fit_atoms
        left_out = np.empty(targets.shape)
        fitted = fit(rows, shape, targets[chosen], weight, _counts(weight, group), together)
        left_out[used] = fitted[group]
        self.data_shape_ = shape
        unused = np.flatnonzero(weights == 0)
        if len(unused):
            left_out[unused] = self._scores(X[unused])
        return left_out

    def _by_blocks(self) -> bool:
        return isinstance(self.dictionary, str) and self.dictionary == "eeg"

    def _fit_atoms(
        self,
        rows: np.ndarray,
        shape: tuple[int, ...],
        targets: np.ndarray,
        weights: np.ndarray,
        counts: np.ndarray,
        groups: np.ndarray | None,
    ) -> np.ndarray:
        """Fit one ridge regression to drawn atoms, and return leave-one-out predictions."""
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
        self.features_ = features._fit(rows, counts)
        if hasattr(self, "feature_names_in_"):
            self.features_.feature_names_in_ = self.feature_names_in_
        self.features_._aligned = self._aligned
        atoms = self._standardise(rows, weights)
        fitted = fit_ridge(atoms, targets, weights, self._penalties(), groups)
        self.coef_, self.intercept_ = fitted.coef.T, fitted.intercept
        self.alpha_ = fitted.alpha
        self.blocks_ = None
        return fitted.left_out

    def _fit_blocks(
        self,
        rows: np.ndarray,
        shape: tuple[int, ...],
        targets: np.ndarray,
        weights: np.ndarray,
        counts: np.ndarray,
        groups: np.ndarray | None,
    ) -> np.ndarray:
        """Fit a ridge regression to each block, stack them, and return what they leave out."""
        check.check_integer("n_atoms", self.n_atoms, 1, MAX_ATOMS)
        features = TrialFeatures(shape, self.channel_axis)
        random = check.check_random_state("random_state", self.random_state)
        pooled = max(1, self.n_atoms // POOLED_SHARE)
        features.fit(rows, weights, counts, pooled, self.n_jobs, random)
        self.features_ = features
        columns = self._standardise(rows, weights)
        places, factors = features.places(), {}
        for name, place in places.items():
            factors[name] = _equal_mass(self._deviation[place], features.groups(name))
        scaled = (columns[:, place] * factors[name] for name, place in places.items())
        stack = stack_ridges(scaled, targets, weights, self._penalties(), groups)
        self.blocks_ = [
            RidgeBlock(name, place.stop - place.start, fit.alpha, error, float(share))
            for (name, place), fit, error, share in zip(
                places.items(), stack.fits, stack.errors, stack.shares, strict=True
            )
        ]
        kept = [block.name for block in self.blocks_ if block.share > 0]
        coef = {
            block.name: fit.coef * (factors[block.name][:, None] * block.share)
            for block, fit in zip(self.blocks_, stack.fits, strict=True)
        }
        self.coef_ = np.concatenate([coef[name] for name in kept]).T
        some = np.concatenate([np.arange(features._size)[places[name]] for name in kept])
        for name in ("_origin", "_mean", "_deviation"):
            setattr(self, name, getattr(self, name)[some])
        features.keep(kept)
        self.intercept_ = stack.intercept
        self.alpha_ = np.array([block.alpha for block in self.blocks_ if block.share > 0])
        return stack.left_out

    def _penalties(self) -> np.ndarray:
        try:
            default = BLOCK_PENALTIES if self._by_blocks() else PENALTIES
            alphas = np.asarray(default if self.alphas is None else self.alphas, dtype=np.float64)
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
        size = self.features_._size
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

    def block_maps(self) -> dict[str, np.ndarray]:
        """Return what the model looks at, block by block, for `dictionary="eeg"`.

        Maps of all blocks are on the channels of X, also those of blocks of whitened channels.

        Returns
        -------
        maps : dict from str to ndarray
            One entry per block that was kept; the first axis counts rows of `coef_`. "raw" and
            "white" (outputs, channels, steps): what a unit of X at this place adds to the score.
            "products" (outputs, bands, channels, channels): what a unit of covariance of two
            channels within the band adds, at the mean of the training samples; the first band is
            all frequencies, and each further one is an octave below the one before. "pooled" and
            "white pooled" (outputs, channels, steps): sums of absolute weights of atoms, each
            spread over what the atom looks at.
        """
        check_is_fitted(self, "alpha_")
        if not isinstance(self.features_, TrialFeatures):
            raise ValueError(
                'block_maps() needs a model of blocks, fitted with dictionary="eeg", got '
                f"dictionary={self.dictionary!r}."
            )
        size = len(self._mean)
        mean = self._origin + self._mean
        coef = np.reshape(self.coef_, (-1, size))
        maps: dict[str, np.ndarray] = self.features_.maps(coef, mean, self._deviation)
        return maps

    def __setstate__(self, state: Any) -> None:
        restore(self, state, "features_", check_ridge)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


def _equal_mass(deviation: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return what standardised columns are multiplied by, so that a block has a mass of one.

    The mass is the sum of the variances of its columns. Columns of one group keep their variances
    in proportion, and each group has the same mass.
    """
    relative = deviation / max(float(deviation.max()), LEAST)
    mass = np.maximum(np.bincount(groups, relative**2), LEAST)
    factors: np.ndarray = relative / np.sqrt(mass[groups] * len(mass))
    return factors.astype(np.float32)


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
