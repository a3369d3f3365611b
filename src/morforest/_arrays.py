"""Arrays of numbers in the narrowest type that holds them, and back in those of the core."""

from __future__ import annotations

from typing import Any

import numpy as np

NARROW_TYPES = (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.int64)


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


def widen(name: str, values: Any, dtype: Any, ndim: int = 1, what: str = "forest") -> np.ndarray:
    """Convert to a type of the core, refusing values that it does not hold."""
    values, wanted = np.asarray(values), np.dtype(dtype)
    if values.dtype.kind not in "iuf" or values.dtype.itemsize > 8 or values.ndim != ndim:
        raise ValueError(f"damaged {what}: {name} is not an array of numbers with {ndim} axes")
    if wanted.kind != "f" and values.dtype != wanted and values.size:
        limits = np.iinfo(wanted)
        whole = values.dtype.kind != "f" or (
            np.isfinite(values).all() and (values == np.rint(values)).all()
        )
        if not whole or int(values.min()) < limits.min or int(values.max()) > limits.max:
            raise ValueError(f"damaged {what}: {name} has impossible values")
    with np.errstate(over="ignore", invalid="ignore"):
        converted: np.ndarray = np.ascontiguousarray(values, dtype=wanted)
    return converted
