"""Data sets as one file each, so that every library reads the same numbers.

A file holds the arrays X_train, y_train, X_test and y_test in NumPy's .npz format.
"""

from pathlib import Path

import numpy as np

ARRAYS = ("X_train", "y_train", "X_test", "y_test")


def load(path):
    """Return training samples and targets, then test samples and targets."""
    with np.load(path, allow_pickle=False) as stored:
        return tuple(stored[name] for name in ARRAYS)


def save(path, *arrays, compressed=False):
    """Write the four arrays; a reader finds the whole file or none."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"unfinished-{path.name}")
    write = np.savez_compressed if compressed else np.savez
    write(unfinished, **dict(zip(ARRAYS, arrays, strict=True)))
    unfinished.replace(path)
