"""The data of the MORF paper: its simulations A to E, and MNIST.

Each generator returns ``(X, y)`` with the classes in turn, 0, 1, 0, 1, ..., so every prefix of even
length is balanced. With the same integer seed a smaller sample is a prefix of a larger one: a
learning curve may take nested training sets from one call, or make them one by one.
"""

from __future__ import annotations

import hashlib
import os
import socket
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morforest._parameters import check_flag, check_random_state, is_integer

__all__ = ["load_mnist", "make_bars", "make_circle", "make_dynamics", "make_impulse"]

RandomState = int | np.random.RandomState | None

CIRCLE_LENGTH = 100
# The two segments of each class: ten ones in either, so that only their lengths tell.
SEGMENTS = ((5, 5), (4, 6))

BARS_SIDE = 28
BARS_RATE = 10.0

IMPULSE_LENGTH = 100
IMPULSE_ONSET = 20
IMPULSE_DECAY = 0.1

DYNAMICS_LENGTH = 100
# The state matrix. Its largest eigenvalues are 0.88 in size: what the input did fades, turning.
DYNAMICS_STATE = np.array([[1.0, 0.7, 0.6], [-0.5, 0.9, 0.5], [-0.6, -0.7, 0.8]]) / 1.548
# What the input adds to each channel at a step, by class: the row sums of the paper's B_0 and B_1,
# as all channels of the input are one.
DYNAMICS_PUSH = np.array([0.5, 0.5 + 0.1 + 0.1])
DYNAMICS_ONSETS = (20, 40)  # the input sets in at 20 .. 39
DYNAMICS_DURATION = 5
DYNAMICS_NOISE = 0.5

MNIST_VARIABLE = "MORFOREST_MNIST"
MNIST_ARRAYS = ("X_train", "y_train", "X_test", "y_test")
MNIST_TRAINING = 60_000
MNIST_SHAPES = ((60_000, 28, 28), (60_000,), (10_000, 28, 28), (10_000,))
# Of the bytes of the four arrays, one after the other, all as unsigned bytes.
MNIST_SHA256 = "06b0d1f124c4e5fa796686ade41a9b778edacc8622f2195a352ef479ad44fc16"
NETWORK_PATIENCE = 20.0  # seconds


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


def make_dynamics(
    n_samples: int = 200, *, noise_channels: bool = False, random_state: RandomState = None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Three channels of a linear dynamical system with an input (simulations D and E).

    The state starts uniformly in the unit cube and follows ``x(t + 1) = A x(t) + B u(t)`` for 100
    steps. The input ``u`` is one on all channels for five steps, from a step drawn from 20 to 39,
    and zero otherwise. ``A`` is the same for both classes, ``B`` is not: a step of the input adds
    0.5 to each channel in class 0, and 0.7 in class 1. What is measured is the state and
    independent normal noise of standard deviation 0.5.

    Parameters
    ----------
    n_samples : int, default=200
        Number of samples.
    noise_channels : bool, default=False
        Whether a channel of uniform noise from [0, 1) follows each channel of the system
        (simulation E). With the same seed, the channels of the system are those of simulation D.
    random_state : int, RandomState instance or None, default=None
        Seed, or source of random numbers. The same integer gives the same data.

    Returns
    -------
    X : ndarray of shape (n_samples, 3, 100) or (n_samples, 6, 100), dtype float64
        The measurements, channel by channel.
    y : ndarray of shape (n_samples,), dtype int64
        The classes, 0 and 1 in turn.

    Examples
    --------
    >>> from morforest.datasets import make_dynamics
    >>> X, y = make_dynamics(4, random_state=0)
    >>> X.shape, y.tolist()
    ((4, 3, 100), [0, 1, 0, 1])
    >>> X_noisy, _ = make_dynamics(4, noise_channels=True, random_state=0)
    >>> X_noisy.shape, bool((X_noisy[:, ::2] == X).all())
    ((4, 6, 100), True)
    """
    n_samples = _check_n_samples(n_samples)
    check_flag("noise_channels", noise_channels)
    y = _labels(n_samples)
    # Numbers of several kinds: a stream for each, so that a small sample stays a prefix of a
    # large one.
    seeds = _check_random_state(random_state).randint(2**32, size=3, dtype=np.uint64)
    beginnings, errors, idle = (np.random.RandomState(seed) for seed in seeds)
    channels = len(DYNAMICS_STATE)
    uniform = beginnings.random_sample((n_samples, channels + 1))
    first, last = DYNAMICS_ONSETS
    onset = first + _below(uniform[:, -1], last - first)
    states = _trajectories(uniform[:, :-1], onset, DYNAMICS_PUSH[y])
    X = states + DYNAMICS_NOISE * errors.standard_normal(states.shape)
    if noise_channels:
        X = np.stack([X, idle.random_sample(X.shape)], axis=2).reshape(n_samples, -1, X.shape[-1])
    return X, y


def load_mnist(
    path: str | os.PathLike[str] | None = None, *, data_home: str | None = None
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]:
    """Load MNIST, 70,000 handwritten digits of 28 x 28 pixels.

    The images come from the file ``path``; else from the file that the environment variable
    ``MORFOREST_MNIST`` names; else from openml.org through scikit-learn, once: a copy stays in
    scikit-learn's data folder. Whatever the source, the arrays are checked against the SHA-256 sum
    of the original ones in their original order.

    Parameters
    ----------
    path : str or path-like, default=None
        An ``.npz`` file with the arrays ``X_train``, ``y_train``, ``X_test`` and ``y_test``.
        Keras's ``mnist.npz``, which writes a small ``x``, will do.
    data_home : str, default=None
        Folder for the copy from openml.org; default: scikit-learn's, see
        :func:`sklearn.datasets.get_data_home`.

    Returns
    -------
    X_train : ndarray of shape (60000, 28, 28), dtype uint8
    y_train : ndarray of shape (60000,), dtype int64
    X_test : ndarray of shape (10000, 28, 28), dtype uint8
    y_test : ndarray of shape (10000,), dtype int64

    Raises
    ------
    FileNotFoundError
        If there is no file at ``path``.
    ValueError
        If a file does not hold the original arrays.
    ConnectionError
        If openml.org cannot be reached.

    Examples
    --------
    >>> from morforest.datasets import load_mnist
    >>> X, y, X_test, y_test = load_mnist()  # doctest: +SKIP
    """
    source, given = "path", path
    if given is None:
        source, given = MNIST_VARIABLE, os.environ.get(MNIST_VARIABLE) or None
    if given is not None:
        file = Path(given).expanduser()
        if not file.is_file():
            raise FileNotFoundError(
                f"{source} must name an .npz file with the arrays {', '.join(MNIST_ARRAYS)}; "
                f"there is no file at {str(file)!r}."
            )
        return _checked_mnist(_read_mnist(file), f"{source}={str(given)!r}")

    from sklearn.datasets import get_data_home

    copy = Path(get_data_home(data_home)) / "morforest-mnist.npz"
    if copy.is_file():
        return _checked_mnist(_read_mnist(copy), f"The copy {str(copy)!r}")
    arrays = _checked_mnist(_fetch_mnist(data_home), "What openml.org sent")
    unfinished = copy.with_name("unfinished-" + copy.name)
    named: dict[str, NDArray[Any]] = dict(zip(MNIST_ARRAYS, arrays, strict=True))
    np.savez_compressed(unfinished, allow_pickle=False, **named)
    unfinished.replace(copy)
    return arrays


def _read_mnist(file: Path) -> list[NDArray[Any]]:
    with np.load(file, allow_pickle=False) as arrays:
        found = {name.replace("x_", "X_"): name for name in arrays}
        missing = [name for name in MNIST_ARRAYS if name not in found]
        if missing:
            raise ValueError(
                f"{str(file)!r} lacks {', '.join(missing)}; "
                f"it must hold the arrays {', '.join(MNIST_ARRAYS)}."
            )
        return [arrays[found[name]] for name in MNIST_ARRAYS]


def _fetch_mnist(data_home: str | None) -> list[NDArray[Any]]:
    from sklearn.datasets import fetch_openml

    patience = socket.getdefaulttimeout()
    socket.setdefaulttimeout(NETWORK_PATIENCE)
    try:
        X, y = fetch_openml(
            "mnist_784",
            version=1,
            return_X_y=True,
            as_frame=False,
            parser="liac-arff",
            data_home=data_home,
            n_retries=1,
        )
    except (OSError, HTTPException, ValueError) as error:
        raise ConnectionError(
            f"MNIST cannot be had from openml.org ({type(error).__name__}: {error}). Without a "
            f"network, name an .npz file with the arrays {', '.join(MNIST_ARRAYS)} by path or by "
            f"the environment variable {MNIST_VARIABLE}."
        ) from error
    finally:
        socket.setdefaulttimeout(patience)
    X, y = X.astype(np.uint8).reshape(-1, 28, 28), y.astype(np.int64)
    n = MNIST_TRAINING
    return [X[:n], y[:n], X[n:], y[n:]]


def _checked_mnist(
    arrays: list[NDArray[Any]], source: str
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]:
    shapes = tuple(array.shape for array in arrays)
    if shapes != MNIST_SHAPES:
        raise ValueError(f"{source} has arrays of the shapes {shapes}; MNIST has {MNIST_SHAPES}.")
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.astype(np.uint8).tobytes())
    if digest.hexdigest() != MNIST_SHA256:
        raise ValueError(
            f"{source} is not MNIST, or not in its order: the SHA-256 sum of its arrays as bytes "
            f"is {digest.hexdigest()}, expected {MNIST_SHA256}."
        )
    X, y, X_test, y_test = arrays
    return (
        X.astype(np.uint8, copy=False),
        y.astype(np.int64),
        X_test.astype(np.uint8, copy=False),
        y_test.astype(np.int64),
    )


def _impulse() -> NDArray[np.float64]:
    time = np.arange(IMPULSE_LENGTH)
    return np.where(time >= IMPULSE_ONSET, np.exp(-IMPULSE_DECAY * (time - IMPULSE_ONSET)), 0.0)


def _trajectories(
    state: NDArray[np.float64], onset: NDArray[np.int64], push: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Follow each sample's system from its first state; the result is (n, channels, time)."""
    states = np.empty((*state.shape, DYNAMICS_LENGTH))
    for time in range(DYNAMICS_LENGTH):
        states[:, :, time] = state
        pushed = (onset <= time) & (time < onset + DYNAMICS_DURATION)
        # Products and sums one by one: a matrix product may round by the number of its rows.
        following = np.multiply.outer(push * pushed, np.ones(len(DYNAMICS_STATE)))
        for column, x in zip(DYNAMICS_STATE.T, state.T, strict=True):
            following += np.multiply.outer(x, column)
        state = following
    return states


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
