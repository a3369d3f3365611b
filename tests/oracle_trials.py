"""What the blocks of "eeg" should hold, and how they are stacked, in slow NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import oracle_ridge


def whitening(X, weights, shrinkage=0.05):
    """The symmetric inverse root of the weighted mean covariance of trials, shrunk."""
    total = np.zeros((X.shape[1], X.shape[1]))
    for trial, weight in zip(X, weights, strict=True):
        centred = trial - trial.mean(axis=1, keepdims=True)
        total += weight * (centred @ centred.T) / X.shape[2]
    total /= weights.sum()
    level = np.trace(total) / len(total)
    values, vectors = np.linalg.eigh(
        (1 - shrinkage) * total + shrinkage * level * np.eye(len(total))
    )
    return vectors @ np.diag(values**-0.5) @ vectors.T


def products(trial):
    """Logarithms of powers and correlations of the channels of one trial, band by band."""
    channels, steps = trial.shape
    trial = trial - trial.mean(axis=1, keepdims=True)
    bands, width = [trial], 1
    while 4 * width <= steps:
        band = []
        for first in range(steps - 2 * width + 1):
            long = trial[:, first : first + 2 * width].mean(axis=1)
            start = first + width - width // 2
            band.append(trial[:, start : start + width].mean(axis=1) - long)
        bands.append(np.array(band).T)
        width *= 2
    found = []
    for band in bands:
        power = (band**2).mean(axis=1) + 1e-9
        found.extend(np.log(power))
        for one, other in itertools.combinations(range(channels), 2):
            found.append(np.sqrt(2 / power[one] / power[other]) * (band[one] * band[other]).mean())
    return np.array(found)


def equal_mass(Z, deviation, groups):
    """Columns of which each group has the same variance in total, and all together one."""
    out = Z.copy()
    for group in np.unique(groups):
        mine = groups == group
        mass = (deviation[mine] ** 2).sum() * len(np.unique(groups))
        out[:, mine] *= deviation[mine] / np.sqrt(mass)
    return out


def stack(blocks, Y, weights, alphas, groups=None):
    """The fit of each block, the shares, and the leave-one-out predictions of the sum."""
    fits = [oracle_ridge.choose(Z, Y, weights, alphas, groups) for Z in blocks]
    mean = weights @ Y / weights.sum()
    columns = [left_out - mean for *_, left_out in fits]
    best = {}
    for kept in itertools.chain.from_iterable(
        itertools.combinations(range(len(blocks)), size) for size in range(1, len(blocks) + 1)
    ):
        best[kept] = _least_squares([columns[i] for i in kept], Y - mean, weights)
    # Of all blocks with a share, one after another is dropped where that costs below a hundredth.
    _, shares = min(best.values(), key=lambda found: found[0])
    kept = min(best, key=lambda kept: best[kept][0])
    while len(kept) > 1:
        fewer = min((tuple(i for i in kept if i != out) for out in kept), key=lambda k: best[k][0])
        if best[fewer][0] > 1.01 * best[kept][0]:
            break
        kept = fewer
    shares = np.zeros(len(blocks))
    shares[list(kept)] = best[kept][1]
    left_out = mean + sum(share * column for share, column in zip(shares, columns, strict=True))
    return fits, shares, left_out


def _least_squares(columns, target, weights):
    """Shares without signs of their own that are positive, or an error without bounds."""
    root = np.sqrt(weights)[:, None]
    A = np.column_stack([(column * root).ravel() for column in columns])
    b = (target * root).ravel()
    shares = np.linalg.lstsq(A, b, rcond=None)[0]
    loss = ((A @ shares - b) ** 2).sum() if (shares > 0).all() else np.inf
    return loss, shares
