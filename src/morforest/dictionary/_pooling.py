"""Pooling: what dictionaries whose atoms move over windows share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from morforest._parameters import is_integer, is_number
from morforest.dictionary._base import NO_WINDOWS, Bounds

OPS = ("max", "min", "mean", "proportion")
CORE_NAMES = {"proportion": "ppv"}
SHORT = {"ppv": "proportion"}  # names that are accepted too
COMPETING = ("win", "lose")  # of kernels
STAYS, DRAWN = -1, 0  # along an axis: atoms do not move; windows are drawn


def log_uniform(low: int, high: int) -> np.ndarray:
    """Return the probabilities of low..high whose logarithm is uniform: a size k is [k, k + 1)."""
    sizes = np.arange(low, high + 1)
    return np.rint(np.log1p(1.0 / sizes) * 2.0**40)  # libraries differ in the last bit


class Pooled:
    """Behaviour of a dictionary with the parameters `pool` and `window`.

    It says how far its smallest atom reaches along each axis, and which axes have an order.
    """

    pool: Any = None
    window: Any = None
    _known_ops: tuple[str, ...] = OPS

    def _smallest_extents(self, shape: tuple[int, ...], channel_axis: int | None) -> list[int]:
        raise NotImplementedError

    def _ordered(self, shape: tuple[int, ...], channel_axis: int | None) -> list[bool]:
        return [axis != channel_axis for axis in range(len(shape))]

    def _circular(self, shape: tuple[int, ...], channel_axis: int | None) -> list[bool]:
        return [False] * len(shape)

    def _ops(self) -> list[str]:
        if self.pool is None:
            return []
        ops = [self.pool] if isinstance(self.pool, str) else self.pool
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

    def _windows(self, shape: tuple[int, ...], channel_axis: int | None) -> list[int]:
        """Return the positions of a window along each axis: `STAYS`, `DRAWN` or their number."""
        ordered = self._ordered(shape, channel_axis)
        moved = [axis for axis in range(len(shape)) if ordered[axis]][-2:]
        return [self._window(shape[axis]) if axis in moved else STAYS for axis in range(len(shape))]

    def _window(self, length: int) -> int:
        if self.window is None:
            return DRAWN
        if is_integer(self.window) and 1 <= self.window <= length:
            return int(self.window)
        if is_number(self.window) and not is_integer(self.window) and 0 < self.window <= 1:
            return max(1, int(self.window * length))
        raise ValueError(
            f"window must be None, a number of positions from 1 to {length}, or a fraction of the "
            f"axis in (0, 1] (1.0: all positions), got {self.window!r} for an axis of length "
            f"{length}."
        )

    def _places(self, shape: tuple[int, ...], channel_axis: int | None) -> list[int]:
        """Return the most places that an atom has along each axis on which it moves, else one."""
        windows = self._windows(shape, channel_axis)
        circular = self._circular(shape, channel_axis)
        extents = self._smallest_extents(shape, channel_axis)
        places = [
            length if circular[axis] else length - extents[axis] + 1
            for axis, length in enumerate(shape)
        ]
        return [1 if w == STAYS else count for w, count in zip(windows, places, strict=True)]

    def _positions(self, shape: tuple[int, ...], channel_axis: int | None) -> int:
        """Return the largest number of positions of a window."""
        places = self._places(shape, channel_axis)
        windows = self._windows(shape, channel_axis)
        return math.prod(min(w, n) if w > 0 else n for w, n in zip(windows, places, strict=True))

    def _check_pool(self, shape: tuple[int, ...], channel_axis: int | None) -> None:
        if not self._ops():
            if self.window is not None:
                raise ValueError(
                    f"window={self.window!r} is for pooled atoms: give pool too, one of "
                    f"{', '.join(map(repr, self._known_ops))}."
                )
            return
        windows = self._windows(shape, channel_axis)
        if all(window == STAYS for window in windows):
            raise ValueError(
                f"pool={self.pool!r} needs an axis along which atoms can move, but samples of "
                f"shape {shape} have none in order: the channel axis and axes with "
                "contiguous=False have no order."
            )
        if math.prod(self._places(shape, channel_axis)) == 1:
            raise ValueError(
                f"pool={self.pool!r} needs room to move, but in samples of shape {shape} even the "
                "smallest atom has one place: choose a smaller min_size, or pool=None."
            )

    def _pooling(
        self, shape: tuple[int, ...], channel_axis: int | None
    ) -> tuple[list[str], list[int], np.ndarray]:
        ops = self._ops()
        if not ops:
            return [], [], NO_WINDOWS
        sizes = np.cumsum(log_uniform(2, max(*shape, 2))).astype(np.uint64)
        return [CORE_NAMES.get(op, op) for op in ops], self._windows(shape, channel_axis), sizes

    def _pooled_bounds(
        self, bounds: Bounds, shape: tuple[int, ...], channel_axis: int | None
    ) -> Bounds:
        """Return the bounds of the pooled atoms, from those of the linear ones."""
        ops = self._ops()
        if not ops:
            return bounds
        positions = self._positions(shape, channel_axis)
        return Bounds(
            mass=bounds.mass * (positions if "mean" in ops else 1),
            nonnegative=False,
            integral=bounds.integral,
            forms=True,
            positions=float(positions) if {"proportion", *COMPETING} & set(ops) else 0.0,
        )
