"""How large the numbers of samples are, and a warning if they are far from those of training.

The size of a sample is the median of the absolute values of its features that are not zero, and its
peak is the largest of them. Four numbers are kept of the training samples: the smallest and the
largest size, and the same of peaks. A batch is suspicious only if the size of every sample that was
looked at is `FACTOR` times smaller than the smallest, or larger than the largest, and the peak of
the first one as well. So a single sample of the usual scale silences the warning.
"""

from __future__ import annotations

import math
import sys
import warnings
from types import FrameType

import numpy as np

from morforest._fixed_point import blocks, core_dtype
from morforest._native import core

FACTOR = 8.0  # beyond the sizes of all training samples
TRAINING_ROWS, BATCH_ROWS = 1024, 64  # that are looked at
FEWEST_VALUES = 8  # a batch of fewer says nothing
SMALL, USUAL, LARGE, UNKNOWN = -1, 0, 1, 2  # what a sample is beside those of training

Sizes = tuple[float, float, float, float]


class DataScaleWarning(UserWarning):
    """The numbers of samples to predict are far larger or smaller than those of training.

    This happens where images of 0 to 255 are fitted and images of 0 to 1 are predicted, or
    volts and then millivolts.

    Examples
    --------
    To turn the warning off:

    >>> import warnings
    >>> from morforest import DataScaleWarning
    >>> warnings.simplefilter("ignore", DataScaleWarning)
    """


def find_sizes(X: np.ndarray) -> Sizes | None:
    """Return the least and the largest size, and peak, of training samples; None if all are zero.

    Many samples are represented by those of lowest hash, so that neither their order nor their
    repetition matters.
    """
    rows = np.arange(len(X))
    if len(X) > TRAINING_ROWS:
        dtype = core_dtype(X)
        hashes = np.empty(len(X), dtype=np.uint64)
        for part in blocks(X.shape):
            hashes[part] = core.hash_rows(np.ascontiguousarray(X[part], dtype=dtype))
        rows = np.sort(np.unique(hashes, return_index=True)[1][:TRAINING_ROWS])
    found = []
    for part in blocks((len(rows), X.shape[1])):
        with np.errstate(invalid="ignore", over="ignore"):
            size = np.abs(np.asarray(X[rows[part]], dtype=np.float64))
        size[~(size < math.inf)] = 0  # missing values
        size.sort(axis=1)
        nonzero = (size > 0).sum(axis=1)
        middle = X.shape[1] - nonzero + nonzero // 2
        known = np.flatnonzero(nonzero)
        found.append(np.stack([size[known, middle[known]], size[known, -1]]))
    both = np.concatenate(found, axis=1)
    if not both.size:
        return None
    (small, low), (large, high) = both.min(axis=1).tolist(), both.max(axis=1).tolist()
    return small, large, low, high


def warn_of_scale(X: np.ndarray, trained: Sizes | None) -> None:
    """Warn if samples to predict are far larger or smaller than those of training."""
    if trained is None:
        return
    # The peak of the first sample nearly always ends the matter, which costs a tenth of the
    # prediction of a single sample.
    if trained[2] / FACTOR <= np.maximum.reduce(np.abs(X[0])) <= trained[3] * FACTOR:
        return
    some = np.asarray(X[:: max(1, len(X) // BATCH_ROWS)], dtype=np.float64)
    sides = _sides(some, trained)
    judged = sides != UNKNOWN
    if not judged.any() or (sides[judged] != sides[judged][0]).any() or USUAL in sides:
        return
    values = np.abs(some[judged])
    values = values[values > 0]
    if len(values) < FEWEST_VALUES or (some == some.flat[0]).all():
        return
    warnings.warn(
        f"The numbers of X are far {'larger' if LARGE in sides else 'smaller'} than those of "
        f"training: its values but zeros have a median size of {np.median(values):.3g}, those of "
        f"a training sample one from {trained[0]:.3g} to {trained[1]:.3g}. Scale X as in training: "
        "a model fitted on images of 0 to 255, for example, needs such images, and not X / 255.",
        DataScaleWarning,
        _frames_inside(),
    )


def _sides(X: np.ndarray, trained: Sizes) -> np.ndarray:
    """Say of each sample on which side of the sizes of training it is far away.

    Nothing is known of a sample of zeros or of one value throughout.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.abs(np.asarray(X), dtype=np.float64)
    nonzero = np.count_nonzero(size > 0, axis=1)
    large = np.count_nonzero(size > trained[1] * FACTOR, axis=1)
    small = nonzero - np.count_nonzero(size >= trained[0] / FACTOR, axis=1)
    sides = np.where(2 * large > nonzero, LARGE, np.where(2 * small > nonzero, SMALL, USUAL))
    far = np.flatnonzero((sides != USUAL) | (nonzero == 0))
    if len(far):
        constant = size.shape[1] > 1 and (size[far] == size[far, :1]).all(axis=1)
        sides[far[constant | (nonzero[far] == 0)]] = UNKNOWN
    return sides


def _frames_inside() -> int:
    """Return the stack level of the user's call."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith("morforest"):
        frame, level = frame.f_back, level + 1
    return level
