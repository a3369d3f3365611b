"""Model files that run no code: load them, and see what they hold."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from morforest import _container as container
from morforest._model_file import describe, load_text

__all__ = ["ModelFile", "inspect", "load"]

LONGEST_LINE = 100


def load(path: str | os.PathLike[str]) -> Any:
    """Load a fitted estimator that its method ``save`` has saved.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    estimator : object
        The estimator, of the class that was saved, with the same predictions.

    Raises
    ------
    ValueError
        If the file is damaged, is no model file, or is of a later format than this version reads.

    Notes
    -----
    Loading runs no code that the file names. The checksum of the file is compared, and every array
    is checked against every other, before the estimator is returned.

    Examples
    --------
    >>> import os, tempfile
    >>> import morforest
    >>> model = morforest.MorfTreeRegressor(random_state=0).fit([[0], [1]], [0.0, 8.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "tree.safetensors")
    ...     model.save(path)
    ...     morforest.load(path)
    MorfTreeRegressor(random_state=0)
    """
    text, _, arrays = container.read(path)
    return load_text(path, text, arrays)


@dataclass(frozen=True, repr=False)
class ModelFile:
    """What a model file holds, as :func:`inspect` returns it.

    Attributes
    ----------
    path : str
        The file.
    size : int
        Its number of bytes.
    format_version : int
        Version of the file format.
    library_version : str
        Version of morforest that saved it.
    estimator : str
        Class of the estimator.
    parameters : dict of str
        Parameters that are not at their defaults, as Python writes them.
    fitted : dict
        What was learned, where it is short: shape of a sample, labels, numbers of trees and nodes,
        dictionary, names of features, scores.
    arrays : dict of (str, tuple of int)
        Type and shape of each array.
    """

    path: str
    size: int
    format_version: int
    library_version: str
    estimator: str
    parameters: dict[str, str]
    fitted: dict[str, Any]
    arrays: dict[str, tuple[str, tuple[int, ...]]]

    def __repr__(self) -> str:
        names = {name: _shortened(value) for name, value in self.fitted.items()}
        width = max(map(len, [*names, *self.parameters, "arrays"]))
        lines = [
            f"{self.estimator} in {self.path}",
            f"  {self.size:,} bytes, format {self.format_version}, saved by morforest "
            f"{self.library_version}; the checksum fits",
            *(f"  {name:{width}}  {value}" for name, value in names.items()),
        ]
        if self.parameters:
            lines.append("Parameters that are not at their defaults:")
            lines += [f"  {name:{width}}  {value}" for name, value in self.parameters.items()]
        lines.append("Arrays:")
        width = max(map(len, self.arrays), default=0)
        lines += [
            f"  {name:{width}}  {dtype:7} {' x '.join(map(str, shape)) or 'one number'}"
            for name, (dtype, shape) in self.arrays.items()
        ]
        return "\n".join(lines)


def inspect(path: str | os.PathLike[str]) -> ModelFile:
    """Say what a model file holds, without loading the model.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    contents : ModelFile
        Class, parameters, labels and so on, which print as a page.

    Raises
    ------
    ValueError
        If the file is damaged, is no model file, or is of a later format than this version reads.

    Notes
    -----
    The whole file is read, to compare its checksum, but its arrays are not kept.

    Examples
    --------
    >>> import os, tempfile
    >>> import morforest
    >>> model = morforest.MorfTreeRegressor(random_state=0).fit([[0], [1]], [0.0, 8.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "tree.safetensors")
    ...     model.save(path)
    ...     contents = morforest.inspect(path)
    >>> contents.estimator, contents.parameters, contents.fitted["trees"]
    ('MorfTreeRegressor', {'random_state': '0'}, 1)
    """
    text, version, arrays = container.read(path, keep=False)
    library, estimator, parameters, fitted = describe(path, text, arrays)
    return ModelFile(
        os.fspath(path),
        os.path.getsize(path),
        version,
        library,
        estimator,
        parameters,
        fitted,
        {name: (str(array.dtype), array.shape) for name, array in arrays.items()},
    )


def _shortened(value: Any) -> str:
    words = str(value)
    return words if len(words) <= LONGEST_LINE else f"{words[: LONGEST_LINE - 3]}..."
