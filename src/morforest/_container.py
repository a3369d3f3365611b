"""Safetensors files with a checksum, written whole or not at all.

The format is public: eight bytes with the length of a header, the header in JSON, and arrays one
behind the other. Its `__metadata__` maps words to words; ours has a checksum over all bytes.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from morforest._writing import check_path, replacing

KIND = "morforest model"
VERSION = 1  # of the format; files of all versions up to this one are read
ALIGNMENT = 8
LARGEST = 1 << 40  # lengths of headers and of axes
DTYPES = {
    "BOOL": "|b1",
    "U8": "|u1",
    "I8": "|i1",
    "U16": "<u2",
    "I16": "<i2",
    "U32": "<u4",
    "I32": "<i4",
    "U64": "<u8",
    "I64": "<i8",
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
}
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
NO_DIGEST = "0" * 64

Arrays = dict[str, np.ndarray]


def holds(dtype: np.dtype[Any]) -> bool:
    """Say whether a file can hold arrays of a type."""
    return dtype.newbyteorder("<") in NAMES


def write(path: str | os.PathLike[str], text: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays and a text about them; a file that was there is replaced at the very end."""
    check_path(path)
    little = {
        name: np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
        for name, array in arrays.items()
    }
    # Large items first, so that each array begins at a multiple of the size of its items.
    ordered = dict(sorted(little.items(), key=lambda item: -item[1].itemsize))
    blank = _header(text, ordered, NO_DIGEST)
    digest = hashlib.sha256(blank)
    for array in ordered.values():
        digest.update(_bytes_of(array))
    header = _header(text, ordered, digest.hexdigest())
    assert len(header) == len(blank)
    with replacing(path) as file:
        file.write(header)
        for array in ordered.values():
            file.write(_bytes_of(array))


def _bytes_of(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _header(text: str, arrays: Mapping[str, np.ndarray], digest: str) -> bytes:
    about = {"format": KIND, "format_version": str(VERSION), "sha256": digest, "model": text}
    entries: dict[str, Any] = {"__metadata__": about}
    begin = 0
    for name, array in arrays.items():
        end = begin + array.nbytes
        entries[name] = {
            "dtype": NAMES[array.dtype],
            "shape": array.shape,
            "data_offsets": (begin, end),
        }
        begin = end
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % ALIGNMENT)
    return len(header).to_bytes(8, "little") + header


def read(path: str | os.PathLike[str], *, keep: bool = True) -> tuple[str, int, Arrays]:
    """Return the text, the format and the arrays of a file, all bytes of which were checked.

    Without `keep`, arrays have their types and shapes, but one number takes the place of all.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        raw, header = _read_header(file, size, path)
        about = _about(header, path)
        digest = about.get("sha256")
        if not isinstance(digest, str) or raw.count(digest.encode()) != 1:
            raise damaged(path, "its checksum is missing")
        entries = _entries(header, size - len(raw), path)
        found = hashlib.sha256(raw.replace(digest.encode(), NO_DIGEST.encode()))
        arrays: Arrays = {}
        for name, (dtype, shape, length) in entries.items():
            if keep:
                arrays[name] = _read_array(file, dtype, shape, found)
            else:
                arrays[name] = np.broadcast_to(np.zeros((), dtype), shape)
                _skip(file, length, found)
    if found.hexdigest() != digest:
        raise damaged(path, "its contents do not match its checksum")
    for name, array in arrays.items():
        if keep and array.dtype == bool and (array.view(np.uint8) > 1).any():
            raise damaged(path, f"{name} has values other than true and false")
    return str(about.get("model")), int(about["format_version"]), arrays


def damaged(path: Any, why: str) -> ValueError:
    """Return the error of a file that is not as it was written."""
    return ValueError(f"{os.fspath(path)} is damaged: {why}. Copy or save it again.")


def _foreign(path: Any, why: str) -> ValueError:
    return ValueError(
        f"{os.fspath(path)} is no model file of morforest: {why}. Such files are written by the "
        "method save of an estimator."
    )


def _read_header(file: IO[bytes], size: int, path: Any) -> tuple[bytes, dict[str, Any]]:
    """Return the first bytes of a file, up to its arrays, and the header that they hold."""
    length, first = file.read(8), file.read(1)
    count = int.from_bytes(length, "little")
    if not length:
        raise damaged(path, "it is empty")
    if first != b"{" or not 2 <= count <= LARGEST:
        if length[:1] == b"\x80" and length[1:2] < b"\x10":
            raise _foreign(path, "it looks like a pickle, which pickle.load or joblib.load reads")
        raise _foreign(path, "it does not begin as safetensors files do")
    if count > size - 8:
        raise damaged(path, f"it ends within its header, after {size} bytes")
    text = first + file.read(count - 1)
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"its header cannot be read ({error})") from None
    if not isinstance(header, dict):
        raise _foreign(path, "it does not begin as safetensors files do")
    return length + text, header


def _about(header: dict[str, Any], path: Any) -> dict[str, Any]:
    about = header.pop("__metadata__", None)
    if not isinstance(about, dict) or about.get("format") != KIND:
        raise _foreign(path, "it is a safetensors file of something else")
    version = about.get("format_version")
    if not isinstance(version, str) or not version.isdecimal() or len(version) > 9:
        raise damaged(path, f"the version of its format is {version!r}")
    if int(version) > VERSION:
        raise ValueError(
            f"{os.fspath(path)} is a model file of format {version}, and this version of morforest "
            f"reads formats up to {VERSION}: install a later one."
        )
    return about


def _entries(
    header: dict[str, Any], room: int, path: Any
) -> dict[str, tuple[np.dtype[Any], tuple[int, ...], int]]:
    """Return type, shape and number of bytes of each array, in the order of the file."""
    found = {}
    for name, entry in header.items():
        try:
            shape, (begin, end) = tuple(entry["shape"]), entry["data_offsets"]
            dtype = np.dtype(DTYPES[entry["dtype"]])
        except (TypeError, KeyError, ValueError):
            raise damaged(path, f"its header says nothing sensible of {name}") from None
        numbers = all(type(n) is int and 0 <= n < LARGEST for n in (*shape, begin, end))
        if not numbers or len(shape) > 32 or end - begin != math.prod(shape) * dtype.itemsize:
            raise damaged(path, f"its header says nothing sensible of {name}")
        found[name] = (begin, end, dtype, shape)
    ordered = dict(sorted(found.items(), key=lambda item: item[1][:2]))
    last = 0
    for name, (begin, end, _, _) in ordered.items():
        if begin != last:
            raise damaged(path, f"{name} does not begin where the array before it ends")
        last = end
    if last != room:
        raise damaged(path, f"its arrays take {last} bytes, and it has {room} for them")
    return {
        name: (dtype, shape, end - begin) for name, (begin, end, dtype, shape) in ordered.items()
    }


def _read_array(
    file: IO[bytes], dtype: np.dtype[Any], shape: tuple[int, ...], digest: Any
) -> np.ndarray:
    array: np.ndarray = np.empty(shape, dtype=dtype)
    if array.size:
        file.readinto(_bytes_of(array))  # type: ignore[attr-defined]
        digest.update(_bytes_of(array))
    return array


def _skip(file: IO[bytes], length: int, digest: Any) -> None:
    while length:
        part = file.read(min(length, 1 << 20))
        if not part:
            return  # shorter than it was a moment ago: the checksum says so
        digest.update(part)
        length -= len(part)
