"""Dictionaries: where a forest draws its split candidates from.

A forest splits a node by comparing ``a @ x`` with a threshold. The vectors ``a``, called atoms,
are drawn at random from a dictionary, and the dictionary says what the data's manifold looks like:
single features (:class:`Axis`, a random forest), sparse signed combinations
(:class:`SparseOblique`, SPORF), sums over patches of neighbours (:class:`Patch`, MORF), differences
of such sums (:class:`Haar`, :class:`Pair`), weighted patches (:class:`Kernel`), or atoms of your
own (:class:`Atoms`). :class:`Mixture` combines them, and :class:`Subset` has each tree, or the
forest, draw a few of them for all nodes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from morforest._checks import check_choice, is_integer, is_number
from morforest._dictionary import Bounds, Dictionary, cumulative_fractions, resolve, to_numbers
from morforest.boxes import Haar, Pair, Patch, Variance
from morforest.kernels import Kernel

__all__ = [
    "Atoms",
    "Axis",
    "Haar",
    "Kernel",
    "Mixture",
    "Pair",
    "Patch",
    "SparseOblique",
    "Subset",
    "Variance",
    "resolve",
]


MOST_ATOMS = 1_000_000  # of a subset
USUAL_ATOMS = {"tree": 300, "forest": 3000}


class Axis(Dictionary):
    """Single features: the dictionary of a random forest.

    At each node the candidates are distinct features, drawn without replacement.

    Examples
    --------
    >>> from morforest import Axis
    >>> Axis().sample(3, 2, random_state=0).toarray().sum(axis=1)
    array([1., 1.])
    """

    def _bounds(self, shape: tuple[int, ...], channel_axis: int | None) -> Bounds:
        return Bounds(mass=1.0, nonnegative=True, integral=True)

    def _add_to(self, built: Any, shape: tuple[int, ...], channel_axis: int | None) -> None:
        built.add_axis()


class SparseOblique(Dictionary):
    """Sparse combinations of features with weights +1 and -1: the dictionary of SPORF.

    Parameters
    ----------
    rate : float, default=2.0
        The number of nonzero weights is Poisson distributed with this rate, conditioned on being
        at least one and at most the number of features.
    density : float or None, default=None
        If given, `rate` is not used: each weight is +1 or -1 with probability ``density / 2`` each,
        and 0 otherwise, conditioned on at least one nonzero. The literature writes ``density`` as
        1/s.

    Examples
    --------
    >>> from morforest import SparseOblique
    >>> atoms = SparseOblique(rate=2.0).sample(10, 1000, random_state=0)
    >>> sorted(set(atoms.data.tolist()))
    [-1.0, 1.0]
    """

    def __init__(self, rate: float = 2.0, density: float | None = None):
        self.rate = rate
        self.density = density

    def _check(self, shape: tuple[int, ...], channel_axis: int | None) -> None:
        if self.density is None:
            if not is_number(self.rate) or not 0 < self.rate <= 1e9:
                raise ValueError(f"rate must be a positive number, got {self.rate!r}.")
        elif not is_number(self.density) or not 0 < self.density <= 1:
            raise ValueError(f"density must be in (0, 1], got {self.density!r}.")

    def _cumulative(self, shape: tuple[int, ...]) -> np.ndarray:
        """Cumulate the probabilities of 1, 2, ... nonzeros; a tail that rounds to one is cut."""
        p = math.prod(shape)
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

    def _bounds(self, shape: tuple[int, ...], channel_axis: int | None) -> Bounds:
        return Bounds(mass=float(len(self._cumulative(shape))), nonnegative=False, integral=True)

    def _add_to(self, built: Any, shape: tuple[int, ...], channel_axis: int | None) -> None:
        built.add_sparse(self._cumulative(shape))


class Atoms(Dictionary):
    """A finite dictionary of your own atoms.

    Parameters
    ----------
    matrix : scipy sparse matrix or array of shape (n_atoms, n_features)
        One atom a row, over the features of a sample in C order. Whole-number weights keep the
        engine's exact integer arithmetic; other weights use float64.
    probabilities : array of shape (n_atoms,) or None, default=None
        How often each atom is drawn, in proportion. None draws all atoms equally often, and
        without replacement within a node.

    Examples
    --------
    >>> from morforest import Atoms
    >>> Atoms([[1, -1, 0], [0, 1, -1]], probabilities=[1, 0]).sample(3, 2).toarray()
    array([[ 1., -1.,  0.],
           [ 1., -1.,  0.]])
    """

    def __init__(self, matrix: Any, probabilities: Any = None):
        self.matrix = matrix
        self.probabilities = probabilities

    def _csr(self) -> sp.csr_matrix:
        try:
            matrix = sp.csr_matrix(self.matrix, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"matrix must be a sparse matrix or a 2-D array of numbers: {error}"
            ) from None
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        matrix.sort_indices()
        return matrix

    def _check(self, shape: tuple[int, ...], channel_axis: int | None) -> None:
        matrix = self._csr()
        size = math.prod(shape)
        if matrix.shape[1] != size:
            raise ValueError(
                f"matrix has {matrix.shape[1]} columns, but samples of shape {shape} have {size} "
                "features: give one column a feature."
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
                "one entry an atom."
            )
        if not np.isfinite(probabilities).all() or (probabilities < 0).any():
            raise ValueError("probabilities must be finite and not negative.")
        if not probabilities.sum() > 0:
            raise ValueError("probabilities are all zero: at least one must be positive.")

    def _bounds(self, shape: tuple[int, ...], channel_axis: int | None) -> Bounds:
        matrix = self._csr()
        return Bounds(
            mass=float(abs(matrix).sum(axis=1).max()),
            nonnegative=bool((matrix.data >= 0).all()),
            integral=bool((matrix.data == np.rint(matrix.data)).all()),
        )

    def _add_to(self, built: Any, shape: tuple[int, ...], channel_axis: int | None) -> None:
        matrix = self._csr()
        if self.probabilities is None:
            cumulative = np.empty(0, dtype=np.uint64)
        else:
            cumulative = cumulative_fractions(np.asarray(self.probabilities, dtype=np.float64))
        built.add_finite(
            matrix.indptr.astype(np.uint32),
            matrix.indices.astype(np.uint32),
            np.ascontiguousarray(matrix.data),
            cumulative,
        )


class Mixture(Dictionary):
    """Several dictionaries: each candidate comes from one of them, drawn at random.

    A small share of :class:`Axis` gives every single feature a fixed chance at every node, which
    the paper's consistency theorem asks for.

    Parameters
    ----------
    dictionaries : list of dictionaries
        What to draw from. In a grid search they are named by position, as in
        ``dictionary__0__max_size``.
    weights : list of float or None, default=None
        How often each is drawn from, in proportion. None means equally often.

    Examples
    --------
    >>> from morforest import Axis, Mixture, Patch
    >>> Mixture([Patch(max_size=4), Axis()], weights=[0.9, 0.1])
    Mixture(dictionaries=[Patch(max_size=4), Axis()], weights=[0.9, 0.1])
    """

    def __init__(self, dictionaries: Any, weights: Any = None):
        self.dictionaries = dictionaries
        self.weights = weights

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get parameters; with `deep`, those of the dictionaries too, prefixed by position."""
        params = super().get_params(deep=False)
        if deep:
            for i, part in enumerate(self.dictionaries):
                params[str(i)] = part
                params.update({f"{i}__{k}": v for k, v in part.get_params(deep=True).items()})
        return params

    def set_params(self, **params: Any) -> Mixture:
        """Set parameters; ``0__max_size`` is `max_size` of the first dictionary, ``0`` itself."""
        own = {k: v for k, v in params.items() if k in ("dictionaries", "weights")}
        super().set_params(**own)
        replaced = list(self.dictionaries)
        for name, value in params.items():
            position, _, rest = name.partition("__")
            if name in own:
                continue
            if not position.isdigit() or int(position) >= len(replaced):
                raise ValueError(
                    f"Invalid parameter {name!r} for a Mixture of {len(replaced)} dictionaries: "
                    "use dictionaries, weights, or a position such as '0__max_size'."
                )
            if rest:
                replaced[int(position)].set_params(**{rest: value})
            else:
                replaced[int(position)] = value
        self.dictionaries = replaced
        return self

    def _flatten(self) -> list[tuple[Dictionary, float]]:
        parts = self.dictionaries
        if not isinstance(parts, (list, tuple)) or not parts:
            raise ValueError(
                f"dictionaries must be a non-empty list of dictionaries, got {parts!r}."
            )
        for part in parts:
            if not isinstance(part, Dictionary):
                raise TypeError(
                    f"dictionaries must hold dictionaries such as Patch() or Axis(), got {part!r}."
                )
            if isinstance(part, Subset):
                raise ValueError(
                    "dictionaries must not hold a Subset: make a Subset of the Mixture instead."
                )
        shares = np.ones(len(parts))
        if self.weights is not None:
            shares = to_numbers("weights", self.weights)
        if shares.shape != (len(parts),):
            raise ValueError(
                f"weights={self.weights!r} must have one entry for each of the {len(parts)} "
                "dictionaries."
            )
        if not np.isfinite(shares).all() or (shares < 0).any() or not shares.sum() > 0:
            raise ValueError(
                f"weights={self.weights!r} must be finite, not negative and not all zero."
            )
        shares = shares / shares.sum()
        flat = []
        for part, share in zip(parts, shares, strict=True):
            inner = part._flatten()
            total = sum(probability for _, probability in inner)
            flat += [(leaf, share * probability / total) for leaf, probability in inner]
        return [(leaf, probability) for leaf, probability in flat if probability > 0]


class Subset(Dictionary):
    """A few atoms of a dictionary, drawn once for a tree or for a whole forest.

    The nodes of a tree choose among them. Their values are computed once for each sample, and a
    node looks them up. This is worth it where atoms are costly (many cells, derived channels,
    pooling) and samples many. Trees differ more from each other, and their nodes less, than with
    new atoms at each node.

    Atoms of a forest are computed once for each sample to predict too, and not at every node that
    it passes, which saves time where many deep trees look at costly atoms. Trees then differ by
    their bags and candidates alone.

    Parameters
    ----------
    dictionary : dictionary
        Where the atoms come from; a :class:`Mixture` for several kinds.
    n_atoms : int or None, default=None
        How many of them a tree, or the forest, has; None is 300 for a tree and 3,000 for a forest.
        Each node draws its candidates among these without replacement.
    per : {"tree", "forest"}, default="tree"
        Whether each tree draws atoms of its own, in boosting every five rounds, or all trees share
        those drawn first. Values of atoms of a forest are rounded to a 1024th of their standard
        deviation among the training samples, and cut at eight of them.

    Examples
    --------
    >>> import numpy as np
    >>> from morforest import Haar, MorfClassifier, Subset
    >>> random = np.random.default_rng(0)
    >>> y = np.arange(200) % 2
    >>> X = random.normal(size=(200, 50))
    >>> X[y == 1, 1:] += X[y == 1, :-1]  # neighbours are alike in one of the classes
    >>> atoms = Subset(Haar(max_size=4, pool="max"), n_atoms=200, per="forest")
    >>> clf = MorfClassifier(atoms, n_estimators=50, random_state=0)
    >>> clf.fit(X[:100], y[:100]).score(X[100:], y[100:]) > 0.9
    True
    """

    def __init__(self, dictionary: Any, n_atoms: int | None = None, per: str = "tree"):
        self.dictionary = dictionary
        self.n_atoms = n_atoms
        self.per = per

    def _flatten(self) -> list[tuple[Dictionary, float]]:
        if not isinstance(self.dictionary, Dictionary):
            raise TypeError(
                f"dictionary must be a dictionary such as Patch(), got {self.dictionary!r}."
            )
        if isinstance(self.dictionary, Subset):
            raise ValueError("dictionary must not be a Subset itself: give what it is a subset of.")
        if self.n_atoms is not None and not (
            is_integer(self.n_atoms) and 1 <= self.n_atoms <= MOST_ATOMS
        ):
            raise ValueError(
                f"n_atoms must be an integer from 1 to {MOST_ATOMS}, or None, got {self.n_atoms!r}."
            )
        check_choice("per", self.per, tuple(USUAL_ATOMS))
        return self.dictionary._flatten()

    def _subset(self) -> int:
        return self._size() if self.per == "tree" else 0

    def _columns(self) -> int:
        return self._size() if self.per == "forest" else 0

    def _size(self) -> int:
        self._flatten()
        return USUAL_ATOMS[self.per] if self.n_atoms is None else int(self.n_atoms)


def _unimodal(size: int, mode: int, ratio: Any) -> np.ndarray:
    """Probabilities of 1..size, up to a factor, from ratio(k) = P(k) / P(k - 1).

    Starts at the mode, where nothing overflows, and uses basic operations only, which are equal
    on every platform. Stops where terms vanish beside the mode.
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
