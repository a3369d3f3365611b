"""MNIST, from a file that the reader of the benchmark brings."""

import os
from pathlib import Path

import numpy as np

VARIABLE = "MORFOREST_MNIST"
ARRAYS = ("X_train", "y_train", "X_test", "y_test")


def locate(path=None):
    """The path of the file: the one given, else that in the environment."""
    path = path or os.environ.get(VARIABLE)
    wanted = f"an .npz file with the arrays {', '.join(ARRAYS)}; X_* are images, (n, 28, 28)"
    if not path:
        raise SystemExit(f"MNIST is needed: pass --mnist PATH or set {VARIABLE} to {wanted}.")
    path = Path(path).expanduser().resolve()
    if not path.is_file():
        raise SystemExit(f"No file at {path}; --mnist or {VARIABLE} must name {wanted}.")
    with np.load(path, allow_pickle=False) as arrays:
        missing = [name for name in ARRAYS if name not in arrays]
        if missing:
            raise SystemExit(f"{path} lacks {', '.join(missing)}; expected {wanted}.")
        shape = arrays["X_test"].shape
    if shape[1:] != (28, 28):
        raise SystemExit(f"X_test of {path} has shape {shape}; expected {wanted}.")
    return path


def load(path):
    """Training images and labels, test images and labels."""
    with np.load(path, allow_pickle=False) as arrays:
        return tuple(arrays[name] for name in ARRAYS)
