"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def check_path(path: Any) -> Path:
    """Return the path of a file that can be written, before the work on its content."""
    try:
        target = Path(os.fsdecode(path))
    except TypeError:
        raise TypeError(
            f"path must be the name of a file, such as 'model', got {path!r}."
        ) from None
    if target.is_dir() or not target.name:
        raise IsADirectoryError(f"path must be the name of a file, got the folder {str(path)!r}.")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"path={str(path)!r}: there is no folder {str(target.parent)!r}; make it first."
        )
    if target.exists() and not target.is_file():
        raise ValueError(f"path={str(path)!r} is no regular file: give the name of a file.")
    return target


@contextlib.contextmanager
def replacing(path: Any) -> Iterator[IO[bytes]]:
    """Open a new file beside another, and put it in its place when all of it is on the disk.

    Whatever happens before, the old file stays as it is. A link stays one, to the new file.
    """
    target = Path(os.path.realpath(check_path(path)))
    mode = target.stat().st_mode if target.exists() else None
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(os.open(beside, NEW_FILE, 0o666), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            with contextlib.suppress(OSError):
                beside.chmod(stat.S_IMODE(mode))
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    with contextlib.suppress(OSError):  # not every platform opens folders
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def write_file(path: Any, content: bytes) -> None:
    """Write a file of some content."""
    with replacing(path) as file:
        file.write(content)
