"""Series of unequal length: lists of arrays, which become one array with missing values."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from morforest._parameters import check_choice, is_integer

ALIGNMENTS = ("left", "right", "stretch")


def arrays_in(X: Any) -> list[Any] | None:
    """Return the arrays of a list, tuple or column of arrays; None if X is anything else.

    Rows of Python's own numbers stay what they are: rows of a table.
    """
    if isinstance(X, (list, tuple)):
        parts = list(X)
    elif hasattr(X, "columns") or len(getattr(X, "shape", ())) != 1:
        return None
    else:
        column = np.asarray(X)
        parts = list(column) if column.dtype == object else []
    each = all(len(getattr(part, "shape", ())) for part in parts)
    return parts if parts and each else None


def to_array(estimator: Any, X: Any, parts: list[Any], *, fitting: bool) -> Any:
    """Return an array of the samples of a list; lists that are arrays already stay as they are.

    A fit remembers in `_aligned` that it was to a list, and how: then shorter series are known to
    be series, and not samples of a wrong shape.
    """
    shapes = {tuple(part.shape) for part in parts}
    rank = len(parts[0].shape)
    if fitting:
        align, time = estimator.align, time_axis(rank, estimator.channel_axis)
        if rank <= 2:
            estimator._aligned = align, time
        if len(shapes) == 1:
            return X
        series = _as_series(parts, rank, time)
        _refuse_flat(estimator.data_shape, rank)
        return _aligned(series, align, time, max(x.shape[time] for x in series))
    shape = estimator.data_shape_
    known = estimator._aligned
    if len(shapes) == 1 and (known is None or rank != len(shape) or shapes == {shape}):
        return X
    align, time = known or (estimator.align, time_axis(len(shape), estimator.channel_axis))
    series = _as_series(parts, len(shape), time, shape)
    if align != "stretch":
        series = _cut(series, align, time, shape[time])
    return _aligned(series, align, time, shape[time])


def check_align(align: Any) -> None:
    """Require one of the ways to align series."""
    check_choice("align", align, ALIGNMENTS)


def time_axis(rank: int, channel_axis: Any) -> int:
    """Return the axis of time in arrays of one or two axes: the last, unless that has channels."""
    channels_last = is_integer(channel_axis) and channel_axis in (2, -1)
    return 0 if rank == 1 or channels_last else 1


def _as_series(
    parts: list[Any], rank: int, time: int, shape: tuple[int, ...] | None = None
) -> list[np.ndarray]:
    """Check the arrays of a list against each other, or against the shape seen in training."""
    if rank > 2:
        raise ValueError(
            "X is a list of arrays of unequal shapes, which is for series: arrays (time,) or "
            f"(channels, time). These have {rank} axes: bring them to one shape."
        )
    series = [_numbers(i, part, rank, time) for i, part in enumerate(parts)]
    if rank == 2:
        wanted = series[0].shape[1 - time] if shape is None else shape[1 - time]
        for i, x in enumerate(series):
            if x.shape[1 - time] != wanted:
                source = "X[0] has" if shape is None else "those of training had"
                form = "(channels, time)" if time else "(time, channels)"
                other = "-1, where time comes first" if time else "1, where channels come first"
                raise ValueError(
                    f"X[{i}] has shape {x.shape}, which as {form} means {x.shape[1 - time]} "
                    f"channels, but {source} {wanted}: all series need the same channels. Pass "
                    f"channel_axis={other}."
                )
    return series


def _numbers(i: int, part: Any, rank: int, time: int) -> np.ndarray:
    """Return one series as an array of numbers."""
    if hasattr(part, "columns") and time == 1:
        raise ValueError(
            f"X[{i}] is a data frame, whose rows are usually time steps, but arrays are read as "
            "(channels, time): pass channel_axis=-1 for (time, channels), or arrays."
        )
    x = np.asarray(part)
    if x.dtype.kind not in "buif":
        raise ValueError(
            f"X[{i}] has dtype {x.dtype}, which is not a kind of number: convert it first."
        )
    if x.dtype.kind == "f" and np.isinf(x).any():
        raise ValueError(f"X[{i}] contains infinity: write NaN for what is missing.")
    if x.ndim != rank:
        raise ValueError(
            f"X[{i}] has shape {x.shape}, but series of {rank} "
            f"{'axis' if rank == 1 else 'axes'} are needed: all arrays of a list, in training and "
            "later, must be (time,), or all (channels, time)."
        )
    if 0 in x.shape:
        raise ValueError(f"X[{i}] has shape {x.shape}, and is empty: leave this sample out.")
    return x


def _refuse_flat(data_shape: Any, rank: int) -> None:
    """Raise if rows of unequal length are meant to have a shape."""
    if data_shape is not None and rank == 1 and np.size(data_shape) != 1:
        raise ValueError(
            f"data_shape={data_shape!r} does not go with flat rows of unequal length: leave it "
            "out, and pass arrays (channels, time)."
        )


def _cut(series: list[np.ndarray], align: str, time: int, length: int) -> list[np.ndarray]:
    """Cut off what lies beyond the longest series of training, with a warning.

    An error would end every cross-validation, because some fold holds the longest series back.
    """
    longer = [i for i, x in enumerate(series) if x.shape[time] > length]
    if not longer:
        return series
    warnings.warn(
        f"{len(longer)} of {len(series)} series, X[{longer[0]}] first, have more time steps than "
        f"the {length} of the longest one in training: the "
        f"{'last' if align == 'left' else 'first'} ones are cut off. align='stretch' would use "
        "them all.",
        UserWarning,
        5,
    )
    kept = slice(0, length) if align == "left" else slice(-length, None)
    return [x[(slice(None),) * time + (kept,)] for x in series]


def _aligned(series: Sequence[np.ndarray], align: str, time: int, length: int) -> np.ndarray:
    """Return series of one length, in one array."""
    shape = tuple(length if axis == time else n for axis, n in enumerate(series[0].shape))
    # float32 holds what float32 and short integers hold; interpolation is in float64.
    kinds = {x.dtype for x in series}
    dtype = np.float64 if align == "stretch" else np.result_type(np.float32, *kinds)
    out = np.full((len(series), *shape), np.nan, dtype=dtype)
    for x, row in zip(series, out, strict=True):
        along = np.moveaxis(row, time, -1)
        values = np.moveaxis(x, time, -1)
        n = values.shape[-1]
        if align == "stretch":
            along[:] = stretched(values, length)
        else:
            along[..., slice(0, n) if align == "left" else slice(length - n, length)] = values
    return out


def stretched(x: np.ndarray, length: int) -> np.ndarray:
    """Interpolate linearly along the last axis, from its first step to its last one.

    Where a step meets one of the series, its value is taken as it is; between two steps, one that
    is missing makes the result missing.
    """
    x = x.astype(np.float64)
    n = x.shape[-1]
    if n == length:
        return x
    # Step j lies at j * (n - 1) / (length - 1), of which the whole part is exact.
    whole, rest = np.divmod(np.arange(length) * (n - 1), max(length - 1, 1))
    before, after = x[..., whole], x[..., np.minimum(whole + 1, n - 1)]
    with np.errstate(over="ignore"):  # infinity is refused later
        between = before + (after - before) * (rest / max(length - 1, 1))
    return np.where(rest == 0, before, between)
