"""Dictionaries that ignore the shape of a sample: single features, sparse sums, listed atoms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from morforest._native import core
from morforest._parameters import is_number
from morforest._states import stored
from morforest.dictionary._base import Bounds, Dictionary, cumulative_fractions, to_numbers
from morforest.dictionary._shape import SampleShape

COMBINATION_MASS = 2.0**17  # bounds the sum of the absolute weights of a learned combination


@stored
class Axis(Dictionary):
    """Single features: the dictionary of a random forest.

    The candidates of a node are distinct features, drawn without replacement.

    Examples
    --------
    >>> from morforest import Axis
    >>> Axis().sample(3, 2, random_state=0).toarray().sum(axis=1)
    array([1., 1.])
    """

    def _bounds(self, shape: SampleShape) -> Bounds:
        return Bounds(mass=1.0, nonnegative=True, integral=True)

    def _add_to(self, built: core.Dictionary, shape: SampleShape) -> None:
        built.add_axis()


class GivenColumns(Axis):
    """Features that are columns of shared atoms already, whose combinations nodes may learn.

    This class is internal. Tests use it to compare learned combinations of columns that they choose
    themselves with the oracle. The features are whole numbers of at most 8191 in size.
    """

    def __init__(self, combine: str | None = "ridge"):
        self.combine = combine

    def _combine(self) -> str | None:
        return self.combine

    def _bounds(self, shape: SampleShape) -> Bounds:
        if self.combine is None:
            return super()._bounds(shape)
        mass = COMBINATION_MASS
        return Bounds(mass=mass, nonnegative=False, integral=True, side=mass)


@stored
class SparseOblique(Dictionary):
    """Sparse combinations of features with weights +1 and -1: the dictionary of SPORF.

    Parameters
    ----------
    rate : float, default=2.0
        The number of nonzero weights has a Poisson distribution with this rate, conditioned on
        being at least one and at most the number of features.
    density : float or None, default=None
        If given, `rate` is not used: each weight is +1 or -1, with probability ``density / 2``
        each, or else 0, conditioned on at least one nonzero weight. The literature writes
        ``density`` as 1/s.

    Examples
    --------
    >>> from morforest import SparseOblique
    >>> atoms = SparseOblique(rate=2.0).sample(10, 1000, random_state=0)
    >>> sorted(set(atoms.data.tolist()))
    [-1.0, 1.0]
    """

    def __init__(self, rate: float = 2.0, *, density: float | None = None):
        self.rate = rate
        self.density = density

    def _check(self, shape: SampleShape) -> None:
        if self.density is None:
            if not is_number(self.rate) or not 0 < self.rate <= 1e9:
                raise ValueError(f"rate must be a positive number up to 1e9, got {self.rate!r}.")
        elif not is_number(self.density) or not 0 < self.density <= 1:
            raise ValueError(f"density must be in (0, 1], got {self.density!r}.")

    def _cumulative(self, shape: SampleShape) -> np.ndarray:
        """Cumulate the probabilities of 1, 2, ... nonzero weights, and cut the tail of ones."""
        p = shape.size
        if self.density is None:
            mode = min(max(int(self.rate), 1), p)
            probabilities = _unimodal(p, mode, lambda k: self.rate / k)
        else:
            q = float(self.density)
            if q == 1.0:
                probabilities = np.zeros(p)
                probabilities[-1] = 1.0
            else:
                mode = min(max(int((p + 1) * q), 1), p)
                odds = q / (1.0 - q)
                probabilities = _unimodal(p, mode, lambda k: (p - k + 1) / k * odds)
        fractions = cumulative_fractions(probabilities)
        end = int(np.argmax(fractions == np.uint64(2**64 - 1))) + 1
        return fractions[:end]

    def _bounds(self, shape: SampleShape) -> Bounds:
        return Bounds(mass=float(len(self._cumulative(shape))), nonnegative=False, integral=True)

    def _add_to(self, built: core.Dictionary, shape: SampleShape) -> None:
        built.add_sparse(self._cumulative(shape))


@stored
class Atoms(Dictionary):
    """A finite dictionary of your own atoms.

    Parameters
    ----------
    matrix : scipy sparse matrix or array of shape (n_atoms, n_features)
        Each row holds one atom, over the features of a sample in C order. Whole-number weights keep
        the exact integer arithmetic of the core; other weights use float64.
    probabilities : array of shape (n_atoms,) or None, default=None
        Relative frequencies of the atoms. None draws all atoms equally often, and without
        replacement within a node.

    Examples
    --------
    >>> from morforest import Atoms
    >>> Atoms([[1, -1, 0], [0, 1, -1]], probabilities=[1, 0]).sample(3, 2).toarray()
    array([[ 1., -1.,  0.],
           [ 1., -1.,  0.]])
    """

    def __init__(self, matrix: Any, *, probabilities: Sequence[float] | np.ndarray | None = None):
        self.matrix = matrix
        self.probabilities = probabilities

    def _csr(self) -> sp.csr_matrix:
        try:
            matrix = sp.csr_matrix(self.matrix, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(
                f"matrix must be a sparse matrix or a 2-D array of numbers: {error}"
            ) from None
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        matrix.sort_indices()
        return matrix

    def _check(self, shape: SampleShape) -> None:
        matrix = self._csr()
        size = shape.size
        if matrix.shape[1] != size:
            raise ValueError(
                f"matrix has {matrix.shape[1]} columns, but samples of shape {shape} have {size} "
                "features: give one column per feature."
            )
        if matrix.shape[0] == 0:
            raise ValueError("matrix has no rows: give at least one atom.")
        if not np.isfinite(matrix.data).all():
            raise ValueError("matrix contains NaN or infinity: atoms need finite weights.")
        if matrix.nnz and np.abs(matrix.data).max() > 1e100:
            raise ValueError("matrix has weights beyond 1e100 in size: scale the atoms down.")
        empty = np.flatnonzero(np.diff(matrix.indptr) == 0)
        if empty.size:
            raise ValueError(
                f"matrix row {empty[0]} is zero ({empty.size} such rows): every atom needs at "
                "least one nonzero weight."
            )
        if self.probabilities is None:
            return
        probabilities = to_numbers("probabilities", self.probabilities)
        if probabilities.shape != (matrix.shape[0],):
            raise ValueError(
                f"probabilities has shape {probabilities.shape}, expected ({matrix.shape[0]},): "
                "give one entry per atom."
            )
        with np.errstate(over="ignore"):
            total = probabilities.sum()
        if not (probabilities >= 0).all() or not total < np.inf:
            raise ValueError("probabilities must be finite and not negative, and their sum too.")
        if total == 0:
            raise ValueError("probabilities are all zero: at least one must be positive.")

    def _bounds(self, shape: SampleShape) -> Bounds:
        matrix = self._csr()
        return Bounds(
            mass=float(abs(matrix).sum(axis=1).max()),
            nonnegative=bool((matrix.data >= 0).all()),
            integral=bool((matrix.data == np.rint(matrix.data)).all()),
        )

    def _add_to(self, built: core.Dictionary, shape: SampleShape) -> None:
        matrix = self._csr()
        if self.probabilities is None:
            cumulative = np.empty(0, dtype=np.uint64)
        else:
            cumulative = cumulative_fractions(np.asarray(self.probabilities, dtype=np.float64))
        atoms = core.AtomList(
            np.diff(matrix.indptr).astype(np.uint32),
            matrix.indices.astype(np.uint32),
            np.ascontiguousarray(matrix.data, dtype=np.float64),
            np.empty(0, dtype=np.uint8),
            np.empty(0, dtype=np.int64),
            np.empty((0, 2, 2), dtype=np.uint32),
        )
        built.add_finite(atoms, cumulative)


def _unimodal(size: int, mode: int, ratio: Callable[[int], float]) -> np.ndarray:
    """Return the probabilities of 1..size, up to a factor, from ratio(k) = P(k) / P(k - 1).

    The terms start at the mode, where nothing overflows, and stop where they vanish beside it.
    Only basic operations are used, which are equal on every platform.
    """
    values = [1.0]
    for k in range(mode, 1, -1):
        value = values[-1] / ratio(k)
        if value < 1e-300:
            break
        values.append(value)
    down = np.zeros(mode)
    down[mode - len(values) :] = values[::-1]
    up = []
    value = 1.0
    for k in range(mode + 1, size + 1):
        value *= ratio(k)
        if value < 1e-30:
            break
        up.append(value)
    return np.concatenate([down, up])
