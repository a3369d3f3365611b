"""Samples and targets from files: arrays, tables, series, folders of images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from morforest._series_files import read_arff, read_ts

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
TABLES = (".csv", ".tsv", ".parquet")
KINDS = (".npz", ".npy", *TABLES, ".ts", ".arff", "folders of images")


@dataclass(frozen=True)
class DataOptions:
    """What a reader may need to know of a file."""

    target: str | None = None  # name of a column or an array, or another file
    data: str | None = None  # name of the array that holds the samples
    groups: str | None = None  # name of a column or an array
    size: tuple[int, int] | None = None  # height and width to bring images to
    grey: bool = False  # images without colours


@dataclass(frozen=True)
class Samples:
    """Samples as estimators take them."""

    X: Any
    y: np.ndarray | None = None
    groups: np.ndarray | None = None
    channel_axis: int | None = None  # of X, if the file says


def read_data(path: str, options: DataOptions) -> Samples:
    """Read a file or a folder of images, by the suffix of its name."""
    place = Path(path)
    if not place.exists():
        raise FileNotFoundError(f"there is no file {path!r}.")
    if place.is_dir():
        return _with_target(_read_images(place, options), options)
    reader = READERS.get(place.suffix.lower())
    if reader is None:
        raise ValueError(
            f"{path!r} has the suffix {place.suffix!r}, which is none of {', '.join(KINDS)}."
        )
    try:
        return _with_target(reader(place, options), options)
    except (EOFError, UnicodeDecodeError, OverflowError, BadZipFile) as error:
        raise ValueError(f"{path!r} cannot be read: {error}") from None


def _with_target(samples: Samples, options: DataOptions) -> Samples:
    """Add targets from another file, and check that there are as many as samples."""
    y = samples.y
    if y is None and options.target is not None:
        if not Path(options.target).is_file():
            raise ValueError(
                f"--target {options.target}: the data have no such column or array, and there is "
                "no such file."
            )
        y = np.load(options.target, allow_pickle=False)
    if y is not None and len(y) != len(samples.X):
        raise ValueError(f"there are {len(samples.X)} samples and {len(y)} targets.")
    if options.groups is not None and samples.groups is None:
        raise ValueError(f"--groups {options.groups}: the data have no such column or array.")
    return replace(samples, y=y)


def _read_npz(path: Path, options: DataOptions) -> Samples:
    with np.load(path, allow_pickle=False) as file:
        names = list(file)
        target = options.target if options.target in names else None
        others = [name for name in names if name not in (target, options.groups)]
        data = options.data or ("X" if "X" in others else None)
        if data is None and len(others) == 1:
            data = others[0]
        if data not in names:
            known = ", ".join(names) or "none"
            what = "say with --samples which array holds the samples"
            if options.data is not None:
                what = f"--samples {options.data}: there is no such array"
            raise ValueError(f"{path}: {what}. Its arrays are {known}.")
        groups = file[options.groups] if options.groups in names else None
        return Samples(file[data], None if target is None else file[target], groups)


def _read_npy(path: Path, options: DataOptions) -> Samples:
    return Samples(np.load(path, allow_pickle=False))


def _read_table(path: Path, options: DataOptions) -> Samples:
    try:
        import pandas as pd
    except ImportError:
        raise ValueError(
            f"{path}: tables need pandas (and .parquet pyarrow): pip install 'morforest[tables]'."
        ) from None
    try:
        if path.suffix.lower() == ".parquet":
            table = pd.read_parquet(path)
        else:
            table = pd.read_csv(path, sep="\t" if path.suffix.lower() == ".tsv" else ",")
    except ImportError as error:
        raise ValueError(f"{path}: {error}: pip install 'morforest[tables]'.") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, OSError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    table.columns = table.columns.astype(str)
    return _split_table(table, options)


def _split_table(table: Any, options: DataOptions) -> Samples:
    groups = None
    if options.groups in table.columns:
        groups, table = table[options.groups].to_numpy(), table.drop(columns=options.groups)
    if options.target not in table.columns:
        return Samples(table, None, groups)
    y = table[options.target]
    if y.isna().any():
        raise ValueError(
            f"--target {options.target}: {int(y.isna().sum())} values are missing: leave these "
            "rows out."
        )
    return Samples(table.drop(columns=options.target), y.to_numpy(), groups)


def _read_ts(path: Path, options: DataOptions) -> Samples:
    X, y = read_ts(path)
    return Samples(X, y, channel_axis=1 if np.ndim(X[0]) == 2 else None)


def _read_arff(path: Path, options: DataOptions) -> Samples:
    X, y = read_arff(path)
    return Samples(X, y, channel_axis=1 if np.ndim(X[0]) == 2 else None)


def _read_images(folder: Path, options: DataOptions) -> Samples:
    """Read the images of a folder, or of its folders, whose names are then the labels."""
    try:
        from PIL import Image
    except ImportError:
        raise ValueError(
            f"{folder}: images need Pillow: pip install 'morforest[images]'."
        ) from None
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in IMAGES)
    if not files:
        raise ValueError(f"{folder} holds no images ({', '.join(IMAGES)}).")
    arrays = []
    for path in files:
        try:
            with Image.open(path) as image:
                found = image.convert("L" if options.grey or image.mode in ("1", "L") else "RGB")
                if options.size is not None:
                    found = found.resize(options.size[::-1])
                arrays.append(np.asarray(found))
        except (OSError, ValueError) as error:
            raise ValueError(f"{path} cannot be read: {error}") from None
        if arrays[-1].shape != arrays[0].shape:
            raise ValueError(
                f"{path} has the shape {arrays[-1].shape}, and {files[0]} has {arrays[0].shape}: "
                "bring all to one with --size HEIGHT,WIDTH, and --grey."
            )
    X = np.stack(arrays)
    labels = [path.parent.relative_to(folder).as_posix() for path in files]
    y = np.array(labels) if all(label != "." for label in labels) else None
    return Samples(X, y, channel_axis=-1 if X.ndim == 4 else None)


READERS: dict[str, Callable[[Path, DataOptions], Samples]] = {
    ".npz": _read_npz,
    ".npy": _read_npy,
    **dict.fromkeys(TABLES, _read_table),
    ".ts": _read_ts,
    ".arff": _read_arff,
}
