"""Which features are correlated, found in one half of the samples and confirmed in the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import norm

from morforest._parameters import check_integer, check_random_state, is_integer

CHANCE = 0.05  # that some pair of independent features is taken to be similar
BLOCK = 2**22  # correlations that are held at a time


def kept_in_both_halves(X: Any, k: int, axis: int | None, random_state: Any) -> sp.csr_array:
    """Return the smaller of the correlations in two halves where an edge holds in both of them."""
    check_integer("k", k, 1)
    X = _as_samples(X, axis)
    n, p = len(X), X.shape[2]
    state = check_random_state("random_state", random_state)
    order = state.permutation(n)
    # Of p^2 / 2 pairs of independent features, `CHANCE` are expected beyond this in both halves.
    level = float(norm.isf(np.sqrt(2 * CHANCE) / max(p, 2)))
    halves = []
    for rows in (order[: n // 2], order[n // 2 :]):
        least = np.tanh(level / np.sqrt(max(len(rows) - 3, 1)))
        halves.append(
            _strongest(X[rows].reshape(-1, p), min(k, p - 1), round(least * 2**20) / 2**20)
        )
    first, second = (sp.csr_array(half.maximum(half.T)) for half in halves)
    return sp.csr_array(first.minimum(second))


def _as_samples(X: Any, axis: Any) -> np.ndarray:
    """Return X as (samples, values of a feature in a sample, features)."""
    try:
        found = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"X must be an array of numbers: {error}") from None
    if found.ndim < 2 or not found.size:
        raise ValueError(
            f"X must have the shape (n_samples, n_features) or (n_samples, ...), got {found.shape}."
        )
    if len(found) < 8:
        raise ValueError(f"X has {len(found)} samples, too few for two halves: give at least 8.")
    if np.isinf(found).any():
        raise ValueError("X contains infinity: give finite numbers, or NaN where one is missing.")
    if axis is None:
        return found.reshape(len(found), 1, -1)
    rank = found.ndim - 1
    if not is_integer(axis) or not -rank <= axis < rank:
        raise ValueError(
            f"axis must be None or an axis of a sample, from {-rank} to {rank - 1}, got {axis!r}."
        )
    moved = np.moveaxis(found, 1 + axis % rank, -1)
    return moved.reshape(len(found), -1, moved.shape[-1])


def _strongest(X: np.ndarray, k: int, least: float) -> sp.csr_array:
    """Return the k largest correlations of each feature, of those that exceed a level."""
    n, p = X.shape
    cells, scale = _whole(X)
    found = []
    rows = max(BLOCK // p, 1)
    for begin in range(0, p, rows):
        part = cells[:, begin : begin + rows]
        correlation = (part.T @ cells) / n / np.outer(scale[begin : begin + rows], scale)
        here = np.arange(len(correlation))
        correlation[here, begin + here] = 0.0
        nearest = np.argsort(-correlation, axis=1, kind="stable")[:, :k]
        value = np.take_along_axis(correlation, nearest, axis=1)
        kept = value > least
        found.append((np.nonzero(kept)[0] + begin, nearest[kept], value[kept]))
    first, second, value = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return sp.csr_array((value, (first, second)), shape=(p, p))


def _whole(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return features as whole numbers about their mean, and the standard deviation of these.

    Sums of products of whole numbers are exact, and the same in any order and on any machine.
    """
    n = len(X)
    low, high = (np.nan_to_num(f(X, axis=0)) for f in (np.fmin.reduce, np.fmax.reduce))
    middle = low / 2 + high / 2
    half = high / 2 - low / 2
    bits = min(15, (50 - n.bit_length()) // 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        cells = np.rint((X - middle) / half * 2.0**bits)
    missing = ~np.isfinite(cells)
    cells[missing] = 0.0
    mean = np.rint(cells.sum(axis=0) / np.maximum(n - missing.sum(axis=0), 1))
    cells = np.where(missing, 0.0, cells - mean)
    scale = np.sqrt((cells * cells).sum(axis=0) / n)
    return cells, np.where(scale > 0, scale, np.inf)
