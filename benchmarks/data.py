"""The data sets: images, which are given, fetched or replaced by a stand-in, and generated sets.

Each set is one file in `.benchmarks` (measuring/arrays.py). Generated sets depend on their name
alone. This module imports morforest, so workers of other libraries must not import it.
"""

import os
import re
from pathlib import Path

import numpy as np

from measuring import arrays
from morforest import datasets

FOLDER = Path(__file__).resolve().parent.parent / ".benchmarks"
VARIABLE = datasets.MNIST_VARIABLE
TEST_ROWS = 10_000


def make(name):
    """Return the file of a generated set, such as "table-5000x50-2", and make it if needed."""
    path = FOLDER / f"{name}.npz"
    if not path.exists():
        kind, *numbers = re.split(r"[-x]", name)
        train_and_test = GENERATORS[kind](*map(int, numbers))
        arrays.save(path, *train_and_test)
    return path


# --- images ---------------------------------------------------------------------------------------


def images(given, stand_in=False):
    """Return name and file of the images: MNIST if available, else a stand-in."""
    if stand_in:
        return "digits28", make("digits28")
    path = FOLDER / "MNIST.npz"  # the same form for all libraries, whatever the source
    asked = given or os.environ.get(VARIABLE)
    if asked or not path.exists():
        if not asked:
            print(f"No --mnist PATH and no {VARIABLE}: asking openml.org for MNIST ...", flush=True)
        try:
            arrays.save(path, *datasets.load_mnist(given))
        except (FileNotFoundError, ValueError) as error:
            raise SystemExit(str(error)) from error
        except ConnectionError as error:
            print(
                f"{error}\nThe images are a stand-in: scikit-learn's digits, "
                "enlarged to 28 x 28, shifted and dimmed at random. Timings and accuracies are "
                "not those of MNIST; the column `data` says digits28.",
                flush=True,
            )
            return "digits28", make("digits28")
    return "MNIST", path


def _digits28():
    """Return digits of 8 x 8 pixels, enlarged to 20 x 20 near the middle of a 28 x 28 image."""
    from scipy.ndimage import zoom
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    large = np.stack([zoom(image, 20 / 8, order=1) for image in X.reshape(-1, 8, 8)])
    random = np.random.RandomState(0)

    def draw(rows, first, last):  # no digit is in both parts
        chosen = random.randint(first, last, rows)
        place = random.randint(2, 7, (rows, 2))
        light = random.uniform(8.0, 15.9, rows)
        images = np.zeros((rows, 28, 28), dtype=np.uint8)
        for image, i, (top, left), factor in zip(images, chosen, place, light, strict=True):
            image[top : top + 20, left : left + 20] = large[i] * factor
        return images, y[chosen].astype(np.int64)

    return *draw(60_000, 0, 1500), *draw(TEST_ROWS, 1500, len(y))


# --- generated ------------------------------------------------------------------------------------


def _split(X, y, rows):
    return X[:rows], y[:rows], X[rows:], y[rows:]


def _table(rows, features, classes):
    """Return a table: a fifth of the features are informative, a fifth mix these, others are noise.

    If possible, at least eight carry them, enough for a hundred classes of two clusters.
    """
    from sklearn.datasets import make_classification

    informative = min(features, max(8, features // 5))
    X, y = make_classification(
        rows + TEST_ROWS,
        features,
        n_informative=informative,
        n_redundant=min(features // 5, features - informative),
        n_classes=classes,
        n_clusters_per_class=2,
        random_state=0,
    )
    return _split(X.astype(np.float32), y.astype(np.int64), rows)


def _friedman(rows, features):
    """Return Friedman's first function of five features with noise, and idle features."""
    from sklearn.datasets import make_friedman1

    X, y = make_friedman1(rows + TEST_ROWS, features, noise=1.0, random_state=0)
    return _split(X.astype(np.float32), y, rows)


def _impulse(rows):
    """Return the paper's simulation C: 100 steps of noise, in one class with a decaying impulse."""
    X, y = datasets.make_impulse(rows + TEST_ROWS, random_state=0)
    return _split(X[:, np.newaxis].astype(np.float32), y, rows)


def _eeg(rows):
    """Return 28 channels of 50 steps: smooth noise, in one class with a wave in some channels."""
    random = np.random.RandomState(0)
    X = _smooth(random.standard_normal((rows + TEST_ROWS, 28, 50)))
    y = random.randint(0, 2, len(X))
    wave = np.sin(np.linspace(0, np.pi, 15))
    X[y == 1, 8:14, 20:35] += 0.5 * wave
    return _split(X.astype(np.float32), y.astype(np.int64), rows)


def _series(rows):
    """Return one channel of 4,000 steps: smooth noise, in one class with a bump of 100 steps."""
    random = np.random.RandomState(0)
    test = 2000  # fewer, because each has 4,000 values
    X = _smooth(random.standard_normal((rows + test, 1, 4000)))
    y = random.randint(0, 2, len(X))
    X[y == 1, :, 1500:1600] += 0.4 * np.hanning(100)
    return _split(X.astype(np.float32), y.astype(np.int64), rows)


def _network(rows, features):
    """Return bytes at the nodes of a network; in one class, a few nodes in a row are higher."""
    random = np.random.RandomState(0)
    test = 500  # fewer, because each has many values
    X = random.randint(0, 200, (rows + test, features), dtype=np.uint8)
    y = random.randint(0, 2, len(X))
    X[y == 1, : features // 20] += 20
    return _split(X, y.astype(np.int64), rows)


def _smooth(noise):
    """Replace each step by a scaled sum of three steps, in place."""
    noise[..., 2:] += noise[..., 1:-1] + noise[..., :-2]
    noise /= np.sqrt(3)
    return noise


GENERATORS = {
    "digits28": _digits28,
    "table": _table,
    "friedman": _friedman,
    "impulse": _impulse,
    "eeg": _eeg,
    "series": _series,
    "network": _network,
}
