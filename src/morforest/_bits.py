"""Small whole numbers, several of them in a byte.

With 2 bits for each, say, byte i holds the i-th number of each quarter of the numbers, that of the
first quarter in the lowest bits; so the loops below are over whole arrays.
"""

from __future__ import annotations

import numpy as np

WIDTHS = (1, 2, 4)  # bits of a number


def width_of(values: np.ndarray) -> int | None:
    """Return the bits that each of some bytes needs, or None if they need all of them."""
    largest = int(values.max(initial=0))
    return next((width for width in WIDTHS if largest < 1 << width), None)


def packed_size(width: int, count: int) -> int:
    """Return the number of bytes that hold so many numbers."""
    return -(-count * width // 8)


def pack_bits(values: np.ndarray, width: int) -> np.ndarray:
    """Pack numbers of the type uint8 that have so many bits."""
    size = packed_size(width, len(values))
    packed: np.ndarray = np.zeros(size, dtype=np.uint8)
    for place in range(8 // width):
        part = values[place * size : (place + 1) * size]
        packed[: len(part)] |= part << np.uint8(place * width)
    return packed


def unpack_bits(packed: np.ndarray, width: int, count: int) -> np.ndarray:
    """Return the numbers."""
    found: np.ndarray = np.empty(count, dtype=np.uint8)
    for place in range(8 // width):
        into = found[place * len(packed) : (place + 1) * len(packed)]
        np.right_shift(packed[: len(into)], np.uint8(place * width), out=into)
    found &= np.uint8((1 << width) - 1)
    return found
