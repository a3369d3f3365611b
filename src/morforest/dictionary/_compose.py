"""Dictionaries made of others: a mixture, and a few atoms of another dictionary."""

from __future__ import annotations

from typing import Any

import numpy as np

from morforest._parameters import check_choice, is_integer
from morforest.dictionary._base import Dictionary, to_numbers

MOST_ATOMS = 1_000_000  # of a subset
USUAL_ATOMS = {"tree": 300, "forest": 3000}


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
    node looks them up. This is worth it where atoms are costly (many cells, derived views,
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
