"""Dictionaries: where a forest draws its split candidates from.

A forest splits a node by comparing ``a @ x`` with a threshold. The vectors ``a``, called atoms,
are drawn at random from a dictionary, which describes the manifold of the data: single features
(:class:`Axis`, a random forest), sparse signed combinations (:class:`SparseOblique`, SPORF), sums
over patches of neighbours (:class:`Patch`, MORF), over connected sets of a graph (:class:`Graph`),
of points in space (:class:`Neighbours`) or of similar features (:class:`Similarity`), differences
of such sums (:class:`Haar`, :class:`Pair`), variances (:class:`Variance`), weighted boxes
(:class:`Kernel`), or atoms of your own (:class:`Atoms`). :class:`Mixture` combines dictionaries,
:class:`Subset` restricts each tree to a few atoms, and :class:`SharedAtoms` restricts a whole
forest.
"""

from morforest.dictionary._boxes import Haar, Pair, Patch, Variance
from morforest.dictionary._compose import Mixture, SharedAtoms, Subset
from morforest.dictionary._kernels import Kernel
from morforest.dictionary._relations import Graph, Neighbours, Similarity
from morforest.dictionary._tabular import Atoms, Axis, SparseOblique
from morforest.dictionary._views import (
    Difference,
    Filter,
    Gradient,
    Magnitude,
    Product,
    Raw,
    Square,
    White,
)

__all__ = [
    "Atoms",
    "Axis",
    "Difference",
    "Filter",
    "Gradient",
    "Graph",
    "Haar",
    "Kernel",
    "Magnitude",
    "Mixture",
    "Neighbours",
    "Pair",
    "Patch",
    "Product",
    "Raw",
    "SharedAtoms",
    "Similarity",
    "SparseOblique",
    "Square",
    "Subset",
    "Variance",
    "White",
]
