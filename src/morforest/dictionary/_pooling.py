"""Pooling: what dictionaries share whose atoms move over windows of positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from morforest._parameters import is_integer, is_number
from morforest.dictionary._base import NO_WINDOWS, Bounds
from morforest.dictionary._shape import SampleShape

Pooling: TypeAlias = str | Sequence[str] | None  # of the parameter `pool`

OPS = ("max", "min", "mean", "proportion")
SHORT = {"ppv": "proportion"}  # short names that are accepted too
COMPETING = ("win", "lose")  # for kernels that compete with others
STAYS, DRAWN = -1, 0  # along an axis, atoms do not move, or the sizes of windows are drawn


def log_uniform(low: int, high: int) -> np.ndarray:
    """Return the probabilities of low..high, whose logarithm is uniform if k means [k, k + 1)."""
    sizes = np.arange(low, high + 1)
    return np.rint(np.log1p(1.0 / sizes) * 2.0**40)  # because libraries differ in the last bit


class Pooled:
    """Behaviour of a dictionary with the parameters `pool` and `window`.

    A subclass says how far its smallest atom reaches along each axis, and which axes have an order.
    """

    pool: Pooling = None
    window: float | None = None
    _known_ops: tuple[str, ...] = OPS

    def _smallest_extents(self, shape: SampleShape) -> list[int]:
        raise NotImplementedError

    def _ordered(self, shape: SampleShape) -> list[bool]:
        return [axis != shape.channel_axis for axis in range(shape.rank)]

    def _circular(self, shape: SampleShape) -> list[bool]:
        return [False] * shape.rank

    def _ops(self) -> list[str]:
        if self.pool is None:
            return []
        ops: Any = [self.pool] if isinstance(self.pool, str) else self.pool
        if isinstance(ops, (list, tuple)):
            ops = [SHORT.get(op, op) if isinstance(op, str) else op for op in ops]
        known = isinstance(ops, list) and all(
            isinstance(op, str) and op in self._known_ops for op in ops
        )
        if not known or not ops:
            names = ", ".join(map(repr, self._known_ops))
            raise ValueError(
                f"pool must be None, one of {names}, or a non-empty list of these, "
                f"got {self.pool!r}."
            )
        return list(ops)

    def _windows(self, shape: SampleShape) -> list[int]:
        """Return the number of positions of a window along each axis, or `STAYS` or `DRAWN`."""
        ordered = self._ordered(shape)
        moved = [axis for axis in range(shape.rank) if ordered[axis]][-2:]
        return [
            self._window(length) if axis in moved else STAYS
            for axis, length in enumerate(shape.lengths)
        ]

    def _window(self, length: int) -> int:
        if self.window is None:
            return DRAWN
        if is_integer(self.window) and 1 <= self.window <= length:
            return int(self.window)
        if is_number(self.window) and not is_integer(self.window) and 0 < self.window <= 1:
            return max(1, int(self.window * length))
        raise ValueError(
            f"window must be None, a number of positions from 1 to {length}, or a fraction of the "
            f"axis in (0, 1], 1.0 for all positions, got {self.window!r} for an axis of length "
            f"{length}."
        )

    def _places(self, shape: SampleShape) -> list[int]:
        """Return the largest number of positions of an atom along each axis; 1 where it stays."""
        windows = self._windows(shape)
        circular = self._circular(shape)
        extents = self._smallest_extents(shape)
        places = [
            length if circular[axis] else length - extents[axis] + 1
            for axis, length in enumerate(shape.lengths)
        ]
        return [1 if w == STAYS else count for w, count in zip(windows, places, strict=True)]

    def _positions(self, shape: SampleShape) -> int:
        """Return the largest number of positions of a window."""
        places = self._places(shape)
        windows = self._windows(shape)
        return math.prod(min(w, n) if w > 0 else n for w, n in zip(windows, places, strict=True))

    def _check_pool(self, shape: SampleShape) -> None:
        if not self._ops():
            if self.window is not None:
                raise ValueError(
                    f"window={self.window!r} is for pooled atoms: give pool too, one of "
                    f"{', '.join(map(repr, self._known_ops))}."
                )
            return
        windows = self._windows(shape)
        if all(window == STAYS for window in windows):
            raise ValueError(
                f"pool={self.pool!r} needs an axis along which atoms can move, but samples of "
                f"shape {shape} have none in order: the channel axis and axes with "
                "contiguous=False have no order."
            )
        if math.prod(self._places(shape)) == 1:
            raise ValueError(
                f"pool={self.pool!r} needs room for atoms to move, but in samples of shape {shape} "
                "even the smallest atom has only one position: choose a smaller min_size or "
                "pool=None."
            )

    def _pooling(self, shape: SampleShape) -> tuple[list[str], list[int], np.ndarray]:
        ops = self._ops()
        if not ops:
            return [], [], NO_WINDOWS
        sizes = np.cumsum(log_uniform(2, max(*shape.lengths, 2))).astype(np.uint64)
        return ops, self._windows(shape), sizes

    def _pooled_bounds(self, bounds: Bounds, shape: SampleShape) -> Bounds:
        """Return the bounds of the pooled atoms, from those of the linear ones."""
        ops = self._ops()
        if not ops:
            return bounds
        positions = self._positions(shape)
        return Bounds(
            mass=bounds.mass * (positions if "mean" in ops else 1),
            nonnegative=False,
            integral=bounds.integral,
            nonlinear=True,
            positions=float(positions) if {"proportion", *COMPETING} & set(ops) else 0.0,
        )
