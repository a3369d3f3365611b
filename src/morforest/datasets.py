"""The three simulations of the MORF paper: circle segments, bars, and an impulse in noise.

Each generator returns ``(X, y)`` with the classes in turn, 0, 1, 0, 1, ..., so every prefix of even
length is balanced. With the same integer seed a smaller sample is a prefix of a larger one: a
learning curve may take nested training sets from one call, or make them one by one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from morforest._checks import check_random_state, is_integer

__all__ = ["make_bars", "make_circle", "make_impulse"]

RandomState = int | np.random.RandomState | None

CIRCLE_LENGTH = 100
# The two segments of each class: ten ones in either, so that only their lengths tell.
SEGMENTS = ((5, 5), (4, 6))

BARS_SIDE = 28
BARS_RATE = 10.0

IMPULSE_LENGTH = 100
IMPULSE_ONSET = 20
IMPULSE_DECAY = 0.1


def make_circle(
    n_samples: int = 200, *, wrap: bool = True, random_state: RandomState = None
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Two segments of ones on a circle of 100 cells (simulation A).

    Class 0 has two segments of length five, class 1 one of four and one of six. The segments never
    touch, and all placements are equally likely. No single cell tells the classes apart: only sums
    over neighbours do.

    Parameters
    ----------
    n_samples : int, default=200
        Number of samples.
    wrap : bool, default=True
        Whether the last cell is a neighbour of the first. If so, a segment may continue from the
        one to the other, and at least one zero lies between the segments both ways round. If not,
        both segments lie inside the row, with at least one zero between them.
    random_state : int, RandomState instance or None, default=None
        Seed, or source of random numbers. The same integer gives the same data.

    Returns
    -------
    X : ndarray of shape (n_samples, 100), dtype uint8
        Zeros and ones, ten ones in each row.
    y : ndarray of shape (n_samples,), dtype int64
        The classes, 0 and 1 in turn.

    Examples
    --------
    >>> from morforest.datasets import make_circle
    >>> X, y = make_circle(6, random_state=0)
    >>> X.shape, y.tolist()
    ((6, 100), [0, 1, 0, 1, 0, 1])
    >>> X.sum(axis=1).tolist()
    [10, 10, 10, 10, 10, 10]
    """
    n_samples = _check_n_samples(n_samples)
    if not isinstance(wrap, (bool, np.bool_)):
        raise TypeError(f"wrap must be True or False, got {wrap!r}.")
    y = _labels(n_samples)
    lengths = np.asarray(SEGMENTS)[y]
    uniform = _check_random_state(random_state).random_sample((n_samples, 3))

    # Which of its two lengths comes first matters on a line only, and is drawn in both cases.
    swap = uniform[:, 0] < 0.5
    lengths[swap] = lengths[swap, ::-1]
    free = CIRCLE_LENGTH - lengths.sum(axis=1)
    if wrap:
        # A start and a gap of 1 .. free - 1 cells: the gap on the other side is then positive too.
        first = _below(uniform[:, 1], CIRCLE_LENGTH)
        second = first + lengths[:, 0] + 1 + _below(uniform[:, 2], free - 1)
    else:
        # Stars and bars: shrink each segment to a point of its own. What remains is an unordered
        # pair of distinct places among free + 1, and all pairs are equally likely.
        a = _below(uniform[:, 1], free + 1)
        b = _below(uniform[:, 2], free)
        b += b >= a
        first = np.minimum(a, b)
        second = np.maximum(a, b) + lengths[:, 0]

    cells = np.arange(CIRCLE_LENGTH)
    X = np.zeros((n_samples, CIRCLE_LENGTH), dtype=np.uint8)
    for start, length in ((first, lengths[:, 0]), (second, lengths[:, 1])):
        X |= (cells - start[:, np.newaxis]) % CIRCLE_LENGTH < length[:, np.newaxis]
    return X, y


def make_bars(
    n_samples: int = 200, *, random_state: RandomState = None
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Horizontal or vertical bars in images of 28 x 28 pixels (simulation B).

    The number of bars is Poisson with mean 10. Their places are drawn with replacement from the 28
    rows (class 0) or columns (class 1), and each is one pixel thick. An image without bars (about
    1 in 22,000) may belong to either class.

    Parameters
    ----------
    n_samples : int, default=200
        Number of samples.
    random_state : int, RandomState instance or None, default=None
        Seed, or source of random numbers. The same integer gives the same data.

    Returns
    -------
    X : ndarray of shape (n_samples, 28, 28), dtype uint8
        Images of zeros and ones.
    y : ndarray of shape (n_samples,), dtype int64
        The classes, 0 (horizontal) and 1 (vertical) in turn.

    Examples
    --------
    >>> from morforest.datasets import make_bars
    >>> X, y = make_bars(4, random_state=0)
    >>> X.shape, y.tolist()
    ((4, 28, 28), [0, 1, 0, 1])
    >>> bool((X[0] == X[0][:, :1]).all()), bool((X[1] == X[1][:1]).all())
    (True, True)
    """
    n_samples = _check_n_samples(n_samples)
    y = _labels(n_samples)
    uniform = _check_random_state(random_state).random_sample((n_samples, BARS_SIDE))
    # A Poisson number of bars over 28 equally likely places is an independent Poisson(10 / 28)
    # number at each place; a place shows a bar unless its number is zero.
    bars = uniform < -np.expm1(-BARS_RATE / BARS_SIDE)
    X = np.empty((n_samples, BARS_SIDE, BARS_SIDE), dtype=np.uint8)
    X[y == 0] = bars[y == 0][:, :, np.newaxis]
    X[y == 1] = bars[y == 1][:, np.newaxis, :]
    return X, y


def make_impulse(
    n_samples: int = 200, *, random_state: RandomState = None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """White noise, with or without a decaying impulse (simulation C).

    Both classes are 100 steps of independent standard normal noise. Class 1 adds
    ``exp(-0.1 * (t - 20))`` from ``t = 20`` on, counting from zero. No classifier has an expected
    error below 0.120.

    Parameters
    ----------
    n_samples : int, default=200
        Number of samples.
    random_state : int, RandomState instance or None, default=None
        Seed, or source of random numbers. The same integer gives the same data.

    Returns
    -------
    X : ndarray of shape (n_samples, 100), dtype float64
        The signals.
    y : ndarray of shape (n_samples,), dtype int64
        The classes, 0 (noise) and 1 (impulse) in turn.

    Examples
    --------
    >>> from morforest.datasets import make_impulse
    >>> X, y = make_impulse(4, random_state=0)
    >>> X.shape, y.tolist()
    ((4, 100), [0, 1, 0, 1])
    """
    # Two normal distributions that differ by a shift s have Bayes error Phi(-|s| / 2). Here
    # |s|^2 = sum of exp(-0.2 k), k = 0 .. 79, = (1 - exp(-16)) / (1 - exp(-0.2)) = 5.517,
    # so the error is Phi(-1.1744) = 0.1201.
    n_samples = _check_n_samples(n_samples)
    y = _labels(n_samples)
    X = _check_random_state(random_state).standard_normal((n_samples, IMPULSE_LENGTH))
    X[y == 1] += _impulse()
    return X, y


def _impulse() -> NDArray[np.float64]:
    time = np.arange(IMPULSE_LENGTH)
    return np.where(time >= IMPULSE_ONSET, np.exp(-IMPULSE_DECAY * (time - IMPULSE_ONSET)), 0.0)


def _labels(n_samples: int) -> NDArray[np.int64]:
    return np.arange(n_samples, dtype=np.int64) % 2


def _below(uniform: NDArray[np.float64], bound: int | NDArray[np.int64]) -> NDArray[np.int64]:
    """Turn numbers of [0, 1) into integers of 0 .. bound - 1."""
    return (uniform * bound).astype(np.int64)


def _check_n_samples(n_samples: int) -> int:
    if not is_integer(n_samples):
        raise TypeError(
            f"n_samples must be a whole number of at least 1, got {n_samples!r} of type "
            f"{type(n_samples).__name__}; pass an int, such as n_samples=200."
        )
    if n_samples < 1:
        raise ValueError(
            f"n_samples must be a whole number of at least 1, got {n_samples}; "
            "pass a larger one, such as n_samples=200."
        )
    return int(n_samples)


def _check_random_state(random_state: RandomState) -> np.random.RandomState:
    # NumPy promises that the streams of RandomState never change, so the data do not either.
    return check_random_state("random_state", random_state)
