"""Several outputs: targets of shape (n, k), and what is said of each output.

Inside the package a single output has targets (n,), and several have (n, k) with k of at least two.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from morforest._fixed_point import TargetFormat, choose_target_format, without_overflow
from morforest._validation import class_factors, refuse_masked

T = TypeVar("T")
MAX_UNIFORM = 2**32  # a common multiple of the numbers of classes that uniform leaves can hold


def columns_of(y: Any, n_samples: int) -> list[np.ndarray] | None:
    """Return the columns of targets of several outputs; None if there is one output."""
    if y is None or hasattr(y, "toarray"):
        if y is None:
            return None
        raise ValueError(f"y is a sparse {type(y).__name__} of shape {y.shape}: pass y.toarray().")
    refuse_masked("y", y)
    try:
        found = np.asarray(y)
    except ValueError as error:  # lists of unequal lengths
        raise ValueError(
            f"y must have the same number of outputs for each sample: {error}"
        ) from None
    if found.ndim < 2 or found.shape[1:] == (1,):
        return None
    if found.ndim > 2 or found.shape[1] == 0:
        raise ValueError(
            f"y has shape {found.shape}: pass one value per sample, of shape (n_samples,), or one "
            "column per output, of shape (n_samples, n_outputs)."
        )
    if len(found) != n_samples:
        raise ValueError(f"X has {n_samples} samples but y has {len(found)}: they must match.")
    if hasattr(y, "iloc"):  # columns of a data frame have types of their own
        return [_own_type(np.asarray(y.iloc[:, k])) for k in range(found.shape[1])]
    if hasattr(y, "get_columns"):
        return [_own_type(np.asarray(column)) for column in y.get_columns()]
    return [_own_type(column) for column in found.T]


def check_output(check: Callable[..., T], k: int, column: np.ndarray, *more: Any) -> T:
    """Check the targets of one of several outputs, and say in an error which one it is."""
    try:
        return check(column, *more)
    except ValueError as error:
        raise ValueError(f"Output {k} of y (its column {k}): {error}") from None


def _own_type(column: np.ndarray) -> np.ndarray:
    """Return objects of one type as an array of it."""
    values = column.tolist()
    if column.dtype != object or len({type(value) for value in values}) != 1:
        return column
    found = np.array(values)
    return found if found.dtype.kind in "biufU" and found.ndim == 1 else column


def join_labels(columns: list[np.ndarray]) -> np.ndarray:
    """Put labels of several outputs side by side, in a type that changes none of them."""
    kinds = {column.dtype.kind for column in columns}
    dtype = np.result_type(*columns) if len(kinds) == 1 else np.dtype(object)
    joined = np.empty((len(columns[0]), len(columns)), dtype=dtype)
    for k, column in enumerate(columns):
        joined[:, k] = column
    return joined


def slices_of(classes_of: tuple[int, ...]) -> list[slice]:
    """Return which of the classes of all outputs, one output after the other, belong to each."""
    ends = np.cumsum(classes_of).tolist()
    return [slice(end - count, end) for end, count in zip(ends, classes_of, strict=True)]


def check_uniform(classes_of: tuple[int, ...], priors: set[str]) -> None:
    """Raise where uniform leaves of all outputs cannot be written in whole numbers."""
    if "uniform" in priors and math.lcm(*classes_of) >= MAX_UNIFORM:
        raise ValueError(
            f'honest_prior="uniform" cannot be used with outputs of {list(classes_of)} classes, '
            "whose smallest common multiple exceeds 2^32: use another honest_prior."
        )


# --- class weights -------------------------------------------------------------------------------


def output_factors(
    class_weight: Any, classes: list[np.ndarray], codes: np.ndarray, weights: np.ndarray
) -> list[np.ndarray]:
    """Return for each output the factor by which the weights of each class are multiplied."""
    each = class_weight
    if isinstance(class_weight, str):
        each = [class_weight] * len(classes)
    elif not isinstance(class_weight, (list, tuple)) or len(class_weight) != len(classes):
        raise ValueError(
            f"class_weight must be None, a name such as "
            f'"balanced", or a list with a dict for each of the {len(classes)} outputs, got '
            f"{class_weight!r}."
        )
    factors = [
        np.ones(len(labels)) if found is None else class_factors(found, labels, column, weights)
        for found, labels, column in zip(each, classes, codes.T, strict=True)
    ]
    if not _products(factors, codes).any():
        raise ValueError(
            f"class_weight={class_weight!r} is zero for some output of every sample in y: one "
            "sample must have positive weights for all of its outputs."
        )
    return factors


def _products(factors: list[np.ndarray], codes: np.ndarray) -> np.ndarray:
    product = np.ones(len(codes))
    for of_class, column in zip(factors, codes.T, strict=True):
        product = product * of_class[column]
    return product


def row_factors(
    class_weight: Any, classes: Any, codes: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return the factor of each row: that of its class, or the product over its outputs.

    Factors may be named, and then follow from the weights of the rows.
    """
    if codes.ndim == 1:
        if isinstance(class_weight, str):
            class_weight = class_factors(class_weight, classes, codes, weights)
        factors: np.ndarray = class_weight[codes]
        return factors
    if isinstance(class_weight, str):
        class_weight = output_factors(class_weight, classes, codes, weights)
    product = _products(class_weight, codes)
    return without_overflow(product) if product.any() else product


# --- numbers -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OutputFormats:
    """How the targets of several regressions became integers: each output has a format of its own.

    `scale` is the exponent of the largest of all targets, which the core takes to be about one; see
    `TargetFormat`.
    """

    formats: tuple[TargetFormat, ...]
    scale: int
    gain_exponent: int

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Make the core's integers, one output after the other."""
        columns = zip(self.formats, y.T, strict=True)
        return np.concatenate([found.encode(column) for found, column in columns])

    def decode(self, values: np.ndarray) -> np.ndarray:
        """Turn leaf values, in groups of one number for each output, back into the user's units."""
        columns = zip(self.formats, values.reshape(-1, len(self.formats)).T, strict=True)
        return np.stack([found.decode(column) for found, column in columns], axis=1).ravel()

    def bits_of(self) -> list[int]:
        """Return the bits of each output as the core takes them; constants have the fewest."""
        bits = [found.bits + self.scale for found in self.formats if found.bits or found.scale]
        least = min(bits, default=0)
        return [
            found.bits + self.scale if found.bits or found.scale else least
            for found in self.formats
        ]


def choose_output_formats(y: np.ndarray, total_weight: int, criterion: str) -> OutputFormats:
    """Choose the finest format of each output in which no weighted sum overflows."""
    formats = tuple(choose_target_format(column, total_weight, criterion) for column in y.T)
    scale = max((found.scale for found in formats if found.bits or found.scale), default=0)
    return OutputFormats(formats, scale, 2 * scale if criterion == "squared_error" else scale)
