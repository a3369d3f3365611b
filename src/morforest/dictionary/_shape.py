"""The shape of a sample, and the one place where users' `channel_axis` is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from morforest._parameters import is_integer

MAX_AXES = 16
MAX_FEATURES = 2**29  # of one sample


@dataclass(frozen=True)
class SampleShape:
    """The lengths of a sample's axes, and which of these axes holds channels."""

    lengths: tuple[int, ...]
    channel_axis: int | None = None  # counts the axes of a sample, from 0

    @classmethod
    def of(cls, shape: int | Sequence[int], channel_axis: Any = None) -> SampleShape:
        """Check what users pass; their `channel_axis` counts the axes of X, (n, *shape)."""
        given: list[Any] = list(shape) if isinstance(shape, (tuple, list)) else [shape]
        if not given or not all(is_integer(length) and length >= 1 for length in given):
            raise ValueError(
                "shape must be a positive integer, or a tuple of positive integers with one per "
                f"axis of a sample, got {shape!r}."
            )
        if len(given) > MAX_AXES:
            raise ValueError(f"shape may have at most {MAX_AXES} axes, got {len(given)}.")
        lengths = tuple(int(length) for length in given)
        if math.prod(lengths) > MAX_FEATURES:
            raise ValueError(f"shape={shape!r} has more than {MAX_FEATURES} features.")
        return cls(lengths, _within_sample(channel_axis, lengths))

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.lengths)

    @property
    def size(self) -> int:
        """Number of features."""
        return math.prod(self.lengths)

    @property
    def free_axes(self) -> list[int]:
        """The axes that do not hold channels."""
        return [axis for axis in range(self.rank) if axis != self.channel_axis]

    def __str__(self) -> str:
        return str(self.lengths)


def _within_sample(channel_axis: Any, lengths: tuple[int, ...]) -> int | None:
    """Turn an axis of X into one of a sample."""
    if channel_axis is None:
        return None
    rank = len(lengths)
    if not is_integer(channel_axis):
        raise TypeError(
            f"channel_axis must be None or an integer, which counts the axes of X, got "
            f"{channel_axis!r}."
        )
    if channel_axis in (0, -rank - 1):
        raise ValueError(
            f"channel_axis={channel_axis} is the axis that counts the samples: channel_axis counts "
            f"the axes of X, {_shape_of_x(lengths)} here, so give {_allowed(rank)}."
        )
    if not -rank <= channel_axis <= rank:
        raise ValueError(
            f"channel_axis={channel_axis} does not exist in X of shape {_shape_of_x(lengths)}: "
            f"give {_allowed(rank)}."
        )
    return int(channel_axis) - 1 if channel_axis > 0 else int(channel_axis) + rank


def _shape_of_x(lengths: tuple[int, ...]) -> str:
    return f"(n, {', '.join(map(str, lengths))})"


def _allowed(rank: int) -> str:
    if rank == 1:
        return "1 or -1"
    return f"an integer from 1 to {rank}, or from {-rank} to -1"
