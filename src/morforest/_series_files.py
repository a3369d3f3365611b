"""Series in the text formats of aeon and sktime: ``.ts``, and ``.arff`` of tables or series."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

YES = ("true", "yes")
MISSING = ("?", "nan", "")


def read_ts(path: Path) -> tuple[Any, np.ndarray | None]:
    """Return series (n, channels, time) or (n, time), a list if lengths differ, and labels."""
    header: dict[str, list[str]] = {}
    series: list[np.ndarray] = []
    labels: list[str] = []
    lines = _lines(path, "#")
    for number, line in lines:
        if line.startswith("@"):
            name, *words = line[1:].split()
            header[name.lower()] = words
            if name.lower() == "data":
                break
        else:
            raise ValueError(f"{path}, line {number}: expected a line that begins with @.")
    if _says(header, "timestamps"):
        raise ValueError(f"{path} has time stamps: give series of values at equal steps.")
    labelled = _says(header, "classlabel") or _says(header, "targetlabel")
    for number, line in lines:
        parts = line.split(":")
        if labelled:
            labels.append(parts.pop().strip())
        channels = [_numbers(part, path, number) for part in parts]
        if len({len(channel) for channel in channels}) != 1:
            raise ValueError(f"{path}, line {number}: the channels of a series differ in length.")
        series.append(np.array(channels))
    return _together(series, path), _targets(labels, header) if labelled else None


def read_arff(path: Path) -> tuple[Any, np.ndarray | None]:
    """Return values, and the last attribute as labels.

    A relational attribute holds the channels of a series, one per line of its text.
    """
    attributes, relational, inside = 0, False, False
    lines = _lines(path, "%")
    for _, line in lines:
        words = line.replace("\t", " ").split(None, 2)
        what = words[0].lower()
        if what == "@data":
            break
        if what == "@end":
            inside = False
        elif what == "@attribute" and not inside:
            attributes += 1
            if words[-1].lower().endswith("relational"):
                relational = inside = True
    rows, labels = [], []
    for number, line in lines:
        quote = '"' if line.startswith('"') else "'"
        *values, label = next(csv.reader([line], quotechar=quote, skipinitialspace=True))
        if len(values) + 1 != attributes:
            raise ValueError(
                f"{path}, line {number}: there are {len(values) + 1} values and {attributes} "
                "attributes."
            )
        labels.append(label.strip().strip("'\""))
        if relational:
            channels = values[0].replace("\\n", "\n").split("\n")
            rows.append(np.array([_numbers(channel, path, number) for channel in channels]))
        else:
            rows.append(_numbers(",".join(values), path, number))
    return _together(rows, path), _targets(labels, {})


def _lines(path: Path, comment: str) -> Iterator[tuple[int, str]]:
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            text = line.strip()
            if text and not text.startswith(comment):
                yield number, text


def _says(header: dict[str, list[str]], name: str) -> bool:
    return header.get(name, ["false"])[0].lower() in YES


def _numbers(text: str, path: Path, line: int) -> np.ndarray:
    words = [word.strip() for word in text.split(",")]
    try:
        return np.array([np.nan if word.lower() in MISSING else float(word) for word in words])
    except ValueError as error:
        raise ValueError(f"{path}, line {line}: {error}") from None


def _together(series: list[np.ndarray], path: Path) -> Any:
    """Return one array, where all series have the same length; a single channel has no axis."""
    if not series:
        raise ValueError(f"{path} has no samples.")
    if all(len(one) == 1 and one.ndim == 2 for one in series):
        series = [one[0] for one in series]
    if len({one.shape for one in series}) == 1:
        return np.array(series)
    if len({one.shape[:-1] for one in series}) > 1:
        raise ValueError(f"{path}: series have different numbers of channels.")
    return series


def _targets(labels: list[str], header: dict[str, list[str]]) -> np.ndarray:
    """Return labels as words, or as numbers where the file says that they are targets."""
    if _says(header, "targetlabel"):
        return np.array(labels, dtype=np.float64)
    return np.array(labels)
