"""What estimators with trees share that write themselves for other programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from morforest import _parameters as check
from morforest._c import LONGEST_PREFIX, PREFIX, c_header
from morforest._js import js_module
from morforest._model import Forest
from morforest._onnx import DTYPES, onnx_file
from morforest._portable import Head, portable
from morforest._writing import check_path, write_file


class Exported:
    """Estimators of weighted sums, written as files of other languages."""

    def _fitted(self) -> Forest:
        raise NotImplementedError

    def _head(self) -> Head:
        """Return what becomes of the sums of the trees' values."""
        raise NotImplementedError

    def to_onnx(self, path: Any, *, dtype: str | None = None, flat: bool = False) -> None:
        """Write the model as an ONNX file, which runtimes of many languages predict with.

        The graph walks the trees in the arithmetic of the library: 64-bit integers, or float64
        where the fit chose it. Its input ``X`` has the samples, its outputs are ``label`` and
        ``probabilities``, whose columns follow ``classes_``; for regression ``variable`` with one
        column per output. Samples with missing or infinite values get probabilities of NaN, and
        their label means nothing. The file needs the package onnx, to predict with it onnxruntime:
        ``pip install 'morforest[onnx]'``.

        Parameters
        ----------
        path : str or path-like
            Name of the file. It is written whole or not at all.
        dtype : {"float32", "float64", "uint8", "int64"} or None, default=None
            Type of the samples. None means "float32" for a model that was fitted to whole numbers,
            and "float64" for any other: float32 would round the numbers that it was fitted to.
        flat : bool, default=False
            Whether samples will be flat rows (n_samples, n_features). False means
            (n_samples, ...), as in ``data_shape_``.

        See Also
        --------
        to_c : Write a C header.
        to_js : Write a JavaScript module.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from morforest import MorfClassifier
        >>> clf = MorfClassifier(n_estimators=5, random_state=0)
        >>> clf = clf.fit([[0, 1], [1, 0], [5, 6], [6, 5]], ["low", "low", "high", "high"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     clf.to_onnx(Path(folder) / "model.onnx")
        """
        forest = self._fitted()
        check.check_choice("dtype", dtype, DTYPES, none=True)
        check.check_flag("flat", flat)
        check_path(path)
        if dtype is None:
            dtype = "float32" if forest.cell_format.integers else "float64"
        fractions = np.dtype(dtype).kind == "f"
        found = portable(self, forest, self._head(), "to_onnx", fractions)
        write_file(path, onnx_file(found, dtype, bool(flat)))

    def to_c(self, path: Any, *, prefix: str = "morf") -> None:
        """Write the model as one header of C99, which predicts without any library.

        The header has the arrays of the model and a function that walks down its trees. It
        allocates no memory and keeps nothing between calls, and its comment says how it is used.

        Parameters
        ----------
        path : str or path-like
            Name of the file. It is written whole or not at all.
        prefix : str, default="morf"
            What the names in the header begin with, so that a program can hold several models: a
            letter, then letters, digits and underscores.

        See Also
        --------
        to_js : Write a JavaScript module.
        to_onnx : Write an ONNX file.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from morforest import MorfRegressor
        >>> reg = MorfRegressor(n_estimators=5, random_state=0)
        >>> reg = reg.fit([[0, 1], [1, 0], [5, 6], [6, 5]], [0.0, 1.0, 5.0, 6.0])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     reg.to_c(Path(folder) / "model.h", prefix="height")
        ...     print((Path(folder) / "model.h").read_text()[:74])
        /* MorfRegressor of morforest, for samples of shape (2): 2 numbers in C or
        """
        forest = self._fitted()
        if (
            not isinstance(prefix, str)
            or len(prefix) > LONGEST_PREFIX
            or not PREFIX.fullmatch(prefix)
        ):
            raise ValueError(
                f"prefix must be a name in C of up to {LONGEST_PREFIX} letters, digits and "
                f"underscores that begins with a letter, such as 'morf', got {prefix!r}."
            )
        check_path(path)
        found = portable(self, forest, self._head(), "to_c")
        write_file(path, c_header(found, prefix))

    def to_js(self, path: Any) -> None:
        """Write the model as one JavaScript module, for pages and for Node.

        The module has the arrays of the model in base64 and the functions ``predict`` and, of
        classes, ``probabilities``. It imports nothing.

        Parameters
        ----------
        path : str or path-like
            Name of the file, such as "model.js", or "model.mjs" for Node. It is written whole or
            not at all.

        See Also
        --------
        to_c : Write a C header.
        to_onnx : Write an ONNX file.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from morforest import MorfClassifier
        >>> clf = MorfClassifier(n_estimators=5, random_state=0)
        >>> clf = clf.fit([[0, 1], [1, 0], [5, 6], [6, 5]], ["low", "low", "high", "high"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     clf.to_js(Path(folder) / "model.js")
        """
        forest = self._fitted()
        check_path(path)
        write_file(path, js_module(portable(self, forest, self._head(), "to_js")))
