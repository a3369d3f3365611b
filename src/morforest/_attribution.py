"""What the features of a sample contribute to its prediction."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from morforest._arrays import widen
from morforest._fixed_point import blocks
from morforest._model import ROWS_PER_JOB, Forest
from morforest._parallel import count_jobs, over_even_parts

AMOUNT_BITS = 61  # that sums of amounts may take; one is their sign
LARGEST_SHIFT = 1000  # of amounts, whose powers of two must be numbers
HELD_VALUES = 1 << 22  # contributions of columns, before they go on to features


class _Attributions(NamedTuple):
    values: np.ndarray
    baseline: float | np.ndarray


class Attributions(_Attributions):
    """Contributions of features, and what they are added to.

    A named tuple of the values and the baseline.

    Attributes
    ----------
    values : ndarray of shape (n_samples, ...) or (n_samples, ..., n_classes)
        What each feature adds to a sample's prediction, in the shape of the samples; the classes
        come last.
    baseline : float or ndarray of shape (n_classes,)
        What the model expects of a sample that it knows nothing about. With the sum of a sample's
        values it is the prediction.
    feature_names : ndarray of str or None
        Names of the columns, in the order of the second axis of the values, if the model was fitted
        on a data frame.
    """

    feature_names: np.ndarray | None = None


def attribute(
    forest: Forest, X: np.ndarray, n_jobs: int | None, mean: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return contributions (n, features, outputs) to the trees' mean or sum, and its baseline.

    Amounts are added in fixed point, so that neither threads nor blocks of rows show.
    """
    weight = widen("weight", forest.weight, np.uint32)
    baseline, largest = forest._core.expect_roots(weight, mean)
    # As many sums of changes as there are trees must fit.
    bits = AMOUNT_BITS - math.frexp(largest)[1] - forest.n_trees.bit_length()
    bits = min(bits, LARGEST_SHIFT)
    leaf = forest.apply(X, n_jobs)

    def contributions(leaf: np.ndarray) -> np.ndarray:
        """Return those of the features that the trees split on."""
        out = np.zeros((len(leaf), math.prod(forest.shape), forest.outputs))
        over_even_parts(
            lambda part: forest._core.attribute(
                leaf[part], weight, baseline, bits, mean, out[part]
            ),
            len(leaf),
            count_jobs(n_jobs, len(leaf) // ROWS_PER_JOB),
        )
        return out

    if forest.columns is None:
        return contributions(leaf), baseline
    on_features = forest.columns.footprints.T.tocsr()
    values = np.empty((len(X), on_features.shape[0], forest.outputs))
    for part in blocks((len(X), forest.columns.size * forest.outputs), HELD_VALUES):
        of_columns = contributions(leaf[part])
        for k in range(forest.outputs):
            values[part, :, k] = (on_features @ of_columns[:, :, k].T).T
    return values, baseline


def shaped(
    values: np.ndarray,
    baseline: np.ndarray,
    shape: tuple[int, ...],
    classes: bool,
    feature_names: np.ndarray | None = None,
) -> Attributions:
    """Give flat contributions (n, features, outputs) the shape of the samples.

    A single output has no axis, unless it is a class.
    """
    if values.shape[2] == 1 and not classes:
        found = Attributions(values.reshape(-1, *shape), float(baseline[0]))
    else:
        found = Attributions(values.reshape(-1, *shape, values.shape[2]), baseline)
    if len(shape) == 1:
        found.feature_names = feature_names
    return found
