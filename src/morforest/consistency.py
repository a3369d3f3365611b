"""Forests that meet the conditions of the consistency theorem, and which conditions a forest meets.

The paper proves that the posteriors of an oblique forest converge to the true ones if its trees are
symmetric, balanced, honest and grown on subsamples, and if every single feature has a chance at
every split (Specifications 1 and 2).
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from morforest import _parameters as check
from morforest._forest_base import BaseForest
from morforest._training import SAMPLE_POWER
from morforest.dictionary import Axis, Mixture, Patch, SharedAtoms, SparseOblique, Subset
from morforest.dictionary._base import Dictionary

__all__ = ["Condition", "ConsistencyReport", "check_consistency_conditions", "consistent"]

NAMED = {"axis": Axis, "sporf": SparseOblique, "patch": Patch}
DRAWN_ATOMS = 4000  # from which the share of single features is estimated
LARGER = (1, 10, 100, 1000)  # times the samples for which a callable is asked how many trees draw


def consistent(
    estimator: Any,
    *,
    power: float = 0.7,
    single_features: float = 0.2,
    random_split_rate: float = 0.2,
    min_child_fraction: float = 0.1,
    honest_fraction: float = 0.5,
) -> Any:
    """Return a forest like a given one that meets the conditions of the consistency theorem.

    The forest that is returned is honest, its trees draw ``n**power`` samples without replacement,
    each child has a share of the weight of its node, and a share of the candidates are single
    features, which are the only candidate of some nodes. All other parameters stay as they are.

    Parameters
    ----------
    estimator : MorfClassifier or MorfRegressor
        The forest; it is not changed. Its dictionary must be given as an object, or be one of the
        names "axis", "sporf" and "patch": what a name such as "image" or "auto" stands for depends
        on the samples, and "auto" looks at all targets.
    power : float, default=0.7
        Each tree draws ``n**power`` of n samples, so that the share of samples per tree goes to
        zero while their number grows; between 0 and 1.
    single_features : float, default=0.2
        Share of the candidates that are single features, in (0, 1].
    random_split_rate : float, default=0.2
        Probability that a node draws one candidate only, in (0, 1]. Without it, no feature would
        have a fixed chance: a feature that never looks best would never be split on.
    min_child_fraction : float, default=0.1
        Share of the weight of a node that each of its children has, in (0, 0.5].
    honest_fraction : float, default=0.5
        Share of the samples of each tree that fill leaves.

    Returns
    -------
    forest : object of the same class
        A new, unfitted forest.

    Examples
    --------
    >>> from morforest import MorfClassifier, Patch, consistent
    >>> forest = consistent(MorfClassifier(Patch(2, 5)))
    >>> forest.honest, forest.bootstrap, forest.max_samples
    (True, False, 'n**0.7')
    >>> forest.dictionary.weights
    [0.8, 0.2]
    """
    if not isinstance(estimator, BaseForest):
        raise TypeError(
            f"estimator must be a MorfClassifier or a MorfRegressor, got {estimator!r}."
        )
    for name, value, high in (
        ("power", power, 1.0),
        ("single_features", single_features, 1.0),
        ("random_split_rate", random_split_rate, 1.0),
        ("min_child_fraction", min_child_fraction, 0.5),
    ):
        below = name == "power"
        if not check.is_number(value) or not 0 < value <= high or (below and value == high):
            limits = "between 0 and 1" if below else f"in (0, {high}]"
            raise ValueError(f"{name} must be a number {limits}, got {value!r}.")
    forest = clone(estimator)
    forest.set_params(
        dictionary=_with_single_features(estimator.dictionary, float(single_features)),
        bootstrap=False,
        max_samples=f"n**{float(power)}",
        honest=True,
        honest_fraction=honest_fraction,
        honest_prior="prune",
        min_child_fraction=min_child_fraction,
        random_split_rate=random_split_rate,
    )
    return forest


def _with_single_features(dictionary: Any, share: float) -> Dictionary:
    """Return a dictionary that draws single features with a probability of at least `share`."""
    if isinstance(dictionary, str) and dictionary in NAMED:
        dictionary = NAMED[dictionary]()
    if not isinstance(dictionary, Dictionary):
        raise ValueError(
            f"dictionary={dictionary!r} depends on the samples, so that single features cannot be "
            "added to it: give a dictionary such as Patch(2, 5) or SparseOblique()."
        )
    if isinstance(dictionary, (Subset, SharedAtoms)):
        raise ValueError(
            f"dictionary={dictionary!r} draws atoms once for many nodes, but the theorem needs "
            f"every node to draw its own: give {dictionary.dictionary!r} itself."
        )
    single = sum(p for part, p in dictionary._flatten() if isinstance(part, Axis))
    mine: Dictionary = clone(dictionary)
    if single >= share:
        return mine
    return Axis() if share == 1 else Mixture([mine, Axis()], [round(1 - share, 12), share])


class Condition(NamedTuple):
    """One condition of the theorem, and whether a forest meets it."""

    name: str
    holds: bool | None  # None: it cannot be seen from a forest
    found: str


class ConsistencyReport(tuple[Condition, ...]):
    """The conditions of the consistency theorem, one :class:`Condition` after the other."""

    __slots__ = ()

    @property
    def holds(self) -> bool:
        """Whether all conditions hold that can be seen from a forest."""
        return all(condition.holds is not False for condition in self)

    def __repr__(self) -> str:
        words = {True: "yes", False: "NO", None: "?"}
        width = max(len(condition.name) for condition in self)
        lines = [f"{c.name:<{width}}  {words[c.holds]:<3}  {c.found}" for c in self]
        return "\n".join(lines)


def check_consistency_conditions(forest: Any) -> ConsistencyReport:
    """Report which conditions of the consistency theorem a fitted forest meets.

    Parameters
    ----------
    forest : MorfClassifier or MorfRegressor
        A fitted forest.

    Returns
    -------
    report : ConsistencyReport
        A tuple of named tuples with the fields ``name``, ``holds`` and ``found``; ``holds`` is None
        for assumptions about the distribution of the samples, which no forest can show. It prints
        as a table, and ``report.holds`` says whether all others hold.

    Examples
    --------
    >>> import numpy as np
    >>> from morforest import MorfClassifier, SparseOblique
    >>> from morforest import check_consistency_conditions, consistent
    >>> X = np.random.default_rng(0).random((300, 3))
    >>> y = X[:, 0] > X[:, 1]
    >>> forest = MorfClassifier(SparseOblique(), n_estimators=20, random_state=0)
    >>> report = check_consistency_conditions(forest.fit(X, y))
    >>> [condition.name for condition in report if condition.holds is False]
    ['balanced', 'random splits', 'honest', 'subsamples']
    >>> check_consistency_conditions(consistent(forest).fit(X, y)).holds
    True
    """
    if not isinstance(forest, BaseForest):
        raise TypeError(f"forest must be a MorfClassifier or a MorfRegressor, got {forest!r}.")
    forest._fitted()
    return ConsistencyReport(
        (
            _symmetric(forest),
            _balanced(forest),
            *_single_features(forest),
            _honest(forest),
            _subsampled(forest),
            _linear(forest),
            Condition("density", None, "features need a density bounded away from 0 and infinity"),
            Condition("smoothness", None, "probabilities must be Lipschitz continuous in X"),
        )
    )


def _symmetric(forest: Any) -> Condition:
    if forest.augment is not None:
        return Condition("symmetric", False, f"augment={forest.augment!r} copies given rows")
    return Condition("symmetric", True, "the order of the samples does not matter")


def _balanced(forest: Any) -> Condition:
    """Find the least share that a child has of the weight of its parent."""
    trees = forest._fitted()
    splits = np.flatnonzero(trees.is_split())
    share = forest._rules[1]
    needed = f"min_child_fraction={share}"
    if not len(splits):
        return Condition("balanced", share > 0, f"no splits; {needed}")
    left, weight = trees.children()[splits], trees.weight.astype(np.int64)
    least = float((np.minimum(weight[left], weight[left + 1]) / weight[splits]).min())
    pruned = ", after pruning" if "prune" in forest._fitted_priors else ""
    return Condition(
        "balanced",
        share > 0,
        f"least share of a child {least:.3g}{pruned}; {needed}",
    )


def _single_features(forest: Any) -> tuple[Condition, Condition]:
    """Estimate how often a candidate is a single feature, and bound how often splits are."""
    share, few = 0.0, isinstance(forest.dictionary_, (Subset, SharedAtoms))
    if not few:
        for part, probability in forest.dictionary_._flatten():
            share += probability * _single_share(part, forest)
    single = forest.splits_
    counts = [np.diff(tree.atoms.indptr) == 1 for tree in single]
    of_splits = float(np.mean(np.concatenate(counts))) if counts else 0.0
    rate = forest._rules[2]
    bound = rate * share / math.prod(forest.data_shape_)
    return (
        Condition(
            "single features",
            share > 0,
            "atoms are drawn once for many nodes"
            if few
            else f"{share:.3g} of the candidates and {of_splits:.3g} of the splits",
        ),
        Condition(
            "random splits",
            rate > 0 and share > 0,
            f"random_split_rate={rate}; a node splits on a given feature with a probability of at "
            f"least {bound:.2g}",
        ),
    )


def _single_share(part: Dictionary, forest: Any) -> float:
    """Return the probability that an atom is a single feature, where it is known, or estimate it.

    Every feature has to be among those that are drawn.
    """
    if isinstance(part, Axis):
        return 1.0
    shape = forest.data_shape_
    drawn = part.sample(shape, DRAWN_ATOMS, random_state=0, channel_axis=forest.channel_axis)
    alone = np.diff(drawn.indptr) == 1
    if drawn.shape[1] != math.prod(shape) or not alone.any():
        return 0.0
    features = len(np.unique(drawn[alone].indices))
    expected = math.prod(shape) * (1 - (1 - 1 / math.prod(shape)) ** int(alone.sum()))
    return float(alone.mean()) if features > 0.5 * expected else 0.0


def _honest(forest: Any) -> Condition:
    if not forest._rules[0]:
        return Condition("honest", False, "the same samples choose splits and fill leaves")
    if isinstance(forest.dictionary, str) and forest.dictionary == "auto":
        return Condition("honest", False, 'dictionary="auto" was chosen by all targets')
    share = "those not drawn" if forest.honest == "oob" else f"{forest.honest_fraction} of them"
    return Condition("honest", True, f"samples that fill leaves: {share}")


def _subsampled(forest: Any) -> Condition:
    drawn, given = forest.max_samples_, forest._n_samples
    found = f"{drawn} of {given} samples per tree, a share of {drawn / given:.3g}"
    if forest.bootstrap_:
        return Condition("subsamples", False, f"{found}, with replacement")
    max_samples, vanishing = forest.max_samples, False
    if isinstance(max_samples, str):
        power = SAMPLE_POWER.fullmatch(max_samples.replace(" ", ""))
        vanishing = power is not None and float(power[1]) < 1
    elif callable(max_samples):
        numbers = [given * times for times in LARGER]
        sizes = [float(max_samples(n)) for n in numbers]
        shares = [size / n for size, n in zip(sizes, numbers, strict=True)]
        vanishing = all(b < a for a, b in pairwise(shares)) and sizes[-1] > sizes[0]
    note = "" if vanishing else '; the share must go to zero, as with "n**0.7"'
    return Condition("subsamples", vanishing, found + note)


def _linear(forest: Any) -> Condition:
    atoms = forest._fitted().atoms
    linear = bool(atoms.linear) and atoms.layout.only_raw and forest._fitted().columns is None
    found = "all atoms are weighted sums of features" if linear else "some atoms are nonlinear"
    return Condition("linear atoms", linear, found)
