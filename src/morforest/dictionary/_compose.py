"""Dictionaries made of others: mixtures, atoms of a tree, and atoms that all trees share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from morforest._parameters import check_choice, is_integer
from morforest._states import stored
from morforest.dictionary._base import Dictionary, to_numbers

MOST_ATOMS = 1_000_000  # of a tree, or of all trees


@stored
class Mixture(Dictionary):
    """Several dictionaries: each candidate comes from one of them, drawn at random.

    A small share of :class:`Axis` gives every single feature a fixed chance at every node, as the
    paper's consistency theorem requires.

    Parameters
    ----------
    dictionaries : list of dictionaries
        Where atoms come from. A grid search names them by position, as in
        ``dictionary__0__max_size``.
    weights : list of float or None, default=None
        Relative frequencies of the dictionaries. None means that all are equally frequent.

    Examples
    --------
    >>> from morforest import Axis, Mixture, Patch
    >>> Mixture([Patch(max_size=4), Axis()], weights=[0.9, 0.1])
    Mixture(dictionaries=[Patch(max_size=4), Axis()], weights=[0.9, 0.1])
    """

    def __init__(self, dictionaries: Sequence[Dictionary], weights: Sequence[float] | None = None):
        self.dictionaries = dictionaries
        self.weights = weights

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get parameters; with `deep`, those of the dictionaries too, prefixed by position."""
        params: dict[str, Any] = super().get_params(deep=False)
        # A fit says what is wrong with anything but a list of dictionaries.
        if deep and isinstance(self.dictionaries, (list, tuple)):
            for i, part in enumerate(self.dictionaries):
                params[str(i)] = part
                if isinstance(part, Dictionary):
                    params.update({f"{i}__{k}": v for k, v in part.get_params(deep=True).items()})
        return params

    def set_params(self, **params: Any) -> Mixture:
        """Set parameters; ``0__max_size`` is `max_size` of the first dictionary, ``0`` itself."""
        own = {k: v for k, v in params.items() if k in ("dictionaries", "weights")}
        super().set_params(**own)
        if len(own) == len(params):
            return self
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
                part = replaced[int(position)]
                if not isinstance(part, Dictionary):
                    raise ValueError(f"Invalid parameter {name!r}: {part!r} is no dictionary.")
                part.set_params(**{rest: value})
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
            if isinstance(part, FewAtoms):
                kind = type(part).__name__
                raise ValueError(
                    f"dictionaries must not hold {part!r}: write {kind}(Mixture([...]), ...)."
                )
        shares = np.ones(len(parts))
        if self.weights is not None:
            shares = to_numbers("weights", self.weights)
        if shares.shape != (len(parts),):
            raise ValueError(
                f"weights={self.weights!r} must have one entry for each of the {len(parts)} "
                "dictionaries."
            )
        with np.errstate(over="ignore"):
            total = shares.sum()
        if not (shares >= 0).all() or not 0 < total < np.inf:
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


class FewAtoms(Dictionary):
    """What :class:`Subset` and :class:`SharedAtoms` share: a dictionary and a number of atoms."""

    dictionary: Dictionary
    n_atoms: int

    def _flatten(self) -> list[tuple[Dictionary, float]]:
        if not isinstance(self.dictionary, Dictionary):
            raise TypeError(
                f"dictionary must be a dictionary such as Patch(), got {self.dictionary!r}."
            )
        if isinstance(self.dictionary, FewAtoms):
            mine, inner = type(self).__name__, type(self.dictionary).__name__
            raise ValueError(
                f"dictionary={self.dictionary!r} must not be a {inner} itself: write "
                f"{mine}({self.dictionary.dictionary!r}, ...)."
            )
        if not is_integer(self.n_atoms) or not 1 <= self.n_atoms <= MOST_ATOMS:
            raise ValueError(
                f"n_atoms must be an integer from 1 to {MOST_ATOMS}, got {self.n_atoms!r}."
            )
        return self.dictionary._flatten()


@stored
class Subset(FewAtoms):
    """A few atoms of a dictionary for each tree, drawn before the tree grows.

    The nodes of the tree choose among these atoms. Each atom is computed once for each sample, and
    nodes look the values up. This saves time where atoms are costly (many cells, derived views,
    pooling) and samples are many. The trees differ more from each other, and the nodes of a tree
    less, than with new atoms at each node. Boosting draws new atoms every five rounds.

    Parameters
    ----------
    dictionary : dictionary
        Where the atoms come from; a :class:`Mixture` for several kinds.
    n_atoms : int, default=300
        Number of atoms per tree. Each node draws its candidates among these without replacement.

    See Also
    --------
    SharedAtoms : Atoms that all trees of a forest share.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from morforest import MorfClassifier, Patch, Subset
    >>> X, y = load_digits(return_X_y=True)
    >>> X = X.reshape(-1, 8, 8)
    >>> atoms = Subset(Patch(max_size=3), n_atoms=100)
    >>> clf = MorfClassifier(atoms, n_estimators=50, random_state=0)
    >>> clf.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.9
    True
    """

    def __init__(self, dictionary: Dictionary, n_atoms: int = 300):
        self.dictionary = dictionary
        self.n_atoms = n_atoms

    def _atoms_per_tree(self) -> int:
        self._flatten()
        return int(self.n_atoms)


@stored
class SharedAtoms(FewAtoms):
    """Atoms that all trees of a forest share, drawn before the first tree grows.

    Each atom is computed once for each sample, when fitting and when predicting, and not at every
    node that a sample passes. This saves time where many deep trees look at costly atoms. The trees
    then differ only by their bootstrap samples and by the candidates that their nodes draw.

    Values of shared atoms are rounded to a 1024th of their standard deviation among the training
    samples, and clipped at eight standard deviations.

    Parameters
    ----------
    dictionary : dictionary
        Where the atoms come from; a :class:`Mixture` for several kinds.
    n_atoms : int, default=3000
        Number of atoms. Each node draws its candidates among these without replacement.
    combine : {"auto", "ridge"} or None, default="auto"
        Whether each node of a forest is offered, besides its candidates, one linear combination of
        them. Ridge regression learns its weights from the node's training rows; the response is the
        target, or a split of the classes into two random groups. "auto" combines where some atoms
        are not linear in the features, because they are pooled or variances. Boosting never
        combines atoms.

    See Also
    --------
    Subset : Atoms of a single tree.

    Examples
    --------
    >>> import numpy as np
    >>> from morforest import Haar, MorfClassifier, SharedAtoms
    >>> random = np.random.default_rng(0)
    >>> y = np.arange(200) % 2
    >>> X = random.normal(size=(200, 50))
    >>> X[y == 1, 1:] += X[y == 1, :-1]  # neighbours are alike in one of the classes
    >>> atoms = SharedAtoms(Haar(max_size=4, pool="max"), n_atoms=200)
    >>> clf = MorfClassifier(atoms, n_estimators=50, random_state=0)
    >>> clf.fit(X[:100], y[:100]).score(X[100:], y[100:]) > 0.9
    True
    """

    def __init__(
        self, dictionary: Dictionary, n_atoms: int = 3000, *, combine: str | None = "auto"
    ):
        self.dictionary = dictionary
        self.n_atoms = n_atoms
        self.combine = combine

    def _flatten(self) -> list[tuple[Dictionary, float]]:
        check_choice("combine", self.combine, ("auto", "ridge"), none=True)
        return super()._flatten()

    def _shared_atoms(self) -> int:
        self._flatten()
        return int(self.n_atoms)

    def _combine(self) -> str | None:
        return self.combine

    def _same_atoms(self, other: Dictionary) -> bool:
        return (
            isinstance(other, SharedAtoms)
            and self.n_atoms == other.n_atoms
            and self.dictionary == other.dictionary
        )
