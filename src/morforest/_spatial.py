"""Spatial whitening: filters over channels that are uncorrelated and of variance one on average.

The mean covariance of trials is a sum of whole numbers, so that it does not depend on the order of
the trials; targets play no part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from morforest._native import core
from morforest.dictionary._base import ResolvedDictionary
from morforest.dictionary._views import filters_of

SHRINKAGE = 0.05
MOST_BITS = 24  # of values whose products are added up
WEIGHT_BITS = 20  # of weights that are fractions
BLOCK_VALUES = 1 << 22  # of trials that are held at a time
LOW_BITS = 26
MOST_TRIALS = 1 << 14  # whose halves of sums stay below 2^62

Trials = Callable[[slice], np.ndarray]  # returns some trials (n, channels, steps) in float64


def fit_views(
    resolved: ResolvedDictionary, X: np.ndarray, weights: np.ndarray | None
) -> ResolvedDictionary:
    """Fit the filters of a dictionary's views to flat rows."""
    unfitted = resolved.unfitted()
    if not unfitted:
        return resolved
    weights = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
    used = np.flatnonzero(weights)
    rows, weights = X if len(used) == len(X) else X[used], weights[used]
    found: dict[tuple[int, float], tuple[int, ...]] = {}
    for view in unfitted:
        key = view.axis, view.shrinkage
        if key not in found:
            found[key] = _fit_filters(resolved.shape, rows, weights, *key)
    fitted = ((view, view.fitted(found[view.axis, view.shrinkage])) for view in unfitted)
    return replace(resolved, fitted=tuple(fitted))


def _fit_filters(
    shape: tuple[int, ...], rows: np.ndarray, weights: np.ndarray, axis: int, shrinkage: float
) -> tuple[int, ...]:
    """Return filters along an axis, for whitened channels as large as the channels are on average.

    The other axes are one axis of steps.
    """

    def trials(part: slice) -> np.ndarray:
        return as_trials(rows[part], shape, axis)

    covariance, _ = mean_covariance(trials, len(rows), weights)
    channels = shape[axis]
    level = max(float(np.trace(covariance)) / channels, 0.0)
    root = inverse_root(covariance, shrinkage, channels)
    return filters_of(root * (np.sqrt(level) if level > 0 else 1.0))


def as_trials(rows: np.ndarray, shape: tuple[int, ...], axis: int) -> np.ndarray:
    """Return flat rows as trials (n, channels, steps) in float64, with missing values filled in.

    They are filled in along the steps; channels without any value are zero.
    """
    x = np.asarray(rows, dtype=np.float64).reshape(-1, *shape)
    x = np.ascontiguousarray(np.moveaxis(x, 1 + axis, 1)).reshape(len(x), shape[axis], -1)
    missing = np.isnan(x).any(axis=2)
    if not missing.any():
        return x
    x, steps = x.copy(), np.arange(x.shape[2])
    for trial, channel in np.argwhere(missing):
        line = x[trial, channel]
        known = ~np.isnan(line)
        line[~known] = np.interp(steps[~known], steps[known], line[known]) if known.any() else 0.0
    return x


def fit_whitening(
    trials: Trials, count: int, weights: np.ndarray, shrinkage: float = SHRINKAGE, most: int = 64
) -> np.ndarray:
    """Return filters (number, channels) that whiten trials: one per channel, but at most `most`.

    The filters of no more than `most` channels are the symmetric inverse root of the covariance,
    so that each resembles its channel; otherwise they are its leading eigenvectors.
    """
    covariance, exponent = mean_covariance(trials, count, weights)
    filters: np.ndarray = np.ldexp(inverse_root(covariance, shrinkage, most), -exponent)
    return filters


def mean_covariance(trials: Trials, count: int, weights: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the weighted mean of the covariances of trials, over 4^exponent, and the exponent."""
    parts = list(_slices(trials, count))
    largest = max(float(np.abs(_centred(trials(part))).max()) for part in parts)
    if not np.isfinite(largest):
        raise ValueError("X has values so large that their sums overflow: scale X down.")
    exponent = int(np.frexp(largest)[1])
    steps = trials(slice(0, 1)).shape[2]
    bits = min(MOST_BITS, (52 - int(steps).bit_length()) // 2)  # so that products are exact
    whole = _whole(weights)
    total: Any = 0  # of Python's integers, which have no bounds
    for part in parts:
        x = np.rint(np.ldexp(_centred(trials(part)), bits - exponent))
        products = (x @ x.transpose(0, 2, 1)).astype(np.int64)
        of = whole[part, None, None]
        high = ((products >> LOW_BITS) * of).sum(axis=0).astype(object)
        low = ((products & ((1 << LOW_BITS) - 1)) * of).sum(axis=0).astype(object)
        total = total + high * (1 << LOW_BITS) + low
    scale = int(whole.sum()) * steps << (2 * bits)
    found = np.array([[value / scale for value in row] for row in total])
    return found, exponent


def inverse_root(covariance: np.ndarray, shrinkage: float, most: int) -> np.ndarray:
    """Return filters that whiten what has this covariance, shrunk towards a multiple of one."""
    channels = len(covariance)
    level = float(np.trace(covariance)) / channels
    if not level > 0:
        return np.eye(min(channels, most), channels)
    shrunk = (1 - shrinkage) * covariance + shrinkage * level * np.eye(channels)
    least = level * float(np.finfo(np.float64).eps)
    if channels <= most:
        root: np.ndarray = core.inverse_root(shrunk, least).reshape(channels, channels)
        return root
    values, vectors = np.linalg.eigh(shrunk)
    values = np.maximum(values, least)
    leading = vectors[:, -most:]
    leading = leading * np.sign(leading[np.abs(leading).argmax(axis=0), range(most)])
    filters: np.ndarray = (leading / np.sqrt(values[-most:])).T
    return filters


def _slices(trials: Trials, count: int) -> Iterator[slice]:
    step = max(1, min(MOST_TRIALS, BLOCK_VALUES // trials(slice(0, 1)).size))
    return (slice(first, min(first + step, count)) for first in range(0, count, step))


def _centred(x: np.ndarray) -> np.ndarray:
    found: np.ndarray = x - x.mean(axis=2, keepdims=True)
    return found


def _whole(weights: np.ndarray) -> np.ndarray:
    """Return whole numbers in the proportions of the weights, or close to these."""
    largest = float(weights.max())
    if largest < 2.0**WEIGHT_BITS and (weights == np.rint(weights)).all():
        return weights.astype(np.int64)
    scaled = np.rint(np.ldexp(weights, WEIGHT_BITS - int(np.frexp(largest)[1])))
    found: np.ndarray = np.maximum(scaled, 1).astype(np.int64)
    return found
