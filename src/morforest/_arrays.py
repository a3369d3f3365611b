"""Arrays in the narrowest type that holds them, and what refuses those of a damaged file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

OLD = "the forest was saved in format"
# What Python raises about objects of a wrong kind.
SURPRISES = (TypeError, AttributeError, KeyError, IndexError, OverflowError, ValueError)
NARROW_TYPES = (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.int64)


def no_numbers() -> np.ndarray:
    """Return an empty array, in the narrowest type."""
    return np.empty(0, dtype=np.uint8)


def narrow(values: np.ndarray) -> np.ndarray:
    """Store whole numbers in the narrowest integer type that holds them."""
    if values.dtype == np.float32 or values.dtype.kind not in "iuf" or not values.size:
        return values
    whole = values.dtype.kind != "f" or ((np.abs(values) < 128) & (values == np.rint(values))).all()
    if not whole:
        return values
    low, high = int(values.min()), int(values.max())
    for dtype in NARROW_TYPES:
        limits = np.iinfo(dtype)
        if limits.min <= low and high <= limits.max:
            return values.astype(dtype, copy=False)
    return values


def read_numbers(
    name: str, values: Any, dtype: Any, ndim: int = 1, what: str = "forest"
) -> np.ndarray:
    """Return an array of a file if a type of the core holds its values, in integers if that does.

    Integers stay as narrow as they are.
    """
    found, wanted = np.asarray(values), np.dtype(dtype)
    if found.dtype.kind not in "iuf" or found.dtype.itemsize > 8 or found.ndim != ndim:
        raise ValueError(f"damaged {what}: {name} is not an array of numbers with {ndim} axes")
    if wanted.kind == "f" or found.dtype == wanted:
        return found
    if found.size:
        limits = np.iinfo(wanted)
        whole = found.dtype.kind != "f" or (
            np.isfinite(found).all() and (found == np.rint(found)).all()
        )
        if not whole or int(found.min()) < limits.min or int(found.max()) > limits.max:
            raise ValueError(f"damaged {what}: {name} has impossible values")
    return found.astype(wanted) if found.dtype.kind == "f" else found


def widen(name: str, values: Any, dtype: Any, ndim: int = 1, what: str = "forest") -> np.ndarray:
    """Convert to a type of the core, refusing values that it does not hold."""
    found = read_numbers(name, values, dtype, ndim, what)
    with np.errstate(over="ignore", invalid="ignore"):
        converted: np.ndarray = np.ascontiguousarray(found, dtype=dtype)
    return converted


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Turn whatever goes wrong with parts of a damaged file into a ValueError that says so."""
    try:
        yield
    except SURPRISES as error:
        if type(error) is ValueError and str(error).startswith(("damaged", OLD)):
            raise
        raise ValueError(f"damaged {what}: {type(error).__name__}: {error}") from None
