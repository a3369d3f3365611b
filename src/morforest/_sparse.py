"""Sparse samples, which are made dense some rows at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


class SparseRows:
    """Rows of a sparse matrix that answer as an array of two axes does, as far as a fit asks.

    Parts of the rows are sparse too, until NumPy makes an array of them. What asks for single
    columns gets an array at once. The samples are never dense as a whole, unless someone makes an
    array of all of them.
    """

    ndim = 2

    def __init__(self, matrix: Any):
        csr = sp.csr_array(matrix)
        if not csr.has_canonical_format:  # the user's matrix stays as it is
            csr = csr.copy()
            csr.sum_duplicates()
        self.csr = csr

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        shape: tuple[int, int] = self.csr.shape
        return shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        dtype: np.dtype[Any] = self.csr.dtype
        return dtype

    @property
    def size(self) -> int:
        """Number of values, zeros included."""
        return self.shape[0] * self.shape[1]

    @property
    def nbytes(self) -> int:
        """Memory of the values that are stored, and of their places."""
        csr = self.csr
        return int(csr.data.nbytes + csr.indices.nbytes + csr.indptr.nbytes)

    def __len__(self) -> int:
        return self.shape[0]

    def min(self) -> Any:
        """Return the smallest value, which may be zero."""
        return self.csr.min()

    def max(self) -> Any:
        """Return the largest value, which may be zero."""
        return self.csr.max()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, tuple):
            rows, columns = (np.ravel(i) if isinstance(i, np.ndarray) else i for i in index)
            if isinstance(rows, (int, np.integer)):
                return self.csr[[int(rows)]][:, columns].toarray()[0]
            return self.csr[rows][:, columns].toarray()
        if isinstance(index, (int, np.integer)):
            return self.csr[[int(index)]].toarray()[0]
        return SparseRows(self.csr[index])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        dense = self.csr.toarray()
        return np.asarray(dense if dtype is None else dense.astype(dtype, copy=False))
