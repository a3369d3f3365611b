"""Dictionaries of connected sets: features that a graph, points in space or a similarity relate."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree

from morforest._native import core
from morforest._parameters import check_choice, check_integer, is_integer, is_number
from morforest._states import stored
from morforest.dictionary._base import Bounds, Dictionary, cumulative_fractions, to_numbers
from morforest.dictionary._correlation import kept_in_both_halves
from morforest.dictionary._edges import both_ways, cumulated_weights, edges_of, on_sphere
from morforest.dictionary._pooling import log_uniform
from morforest.dictionary._shape import SampleShape
from morforest.dictionary._views import Views
from morforest.dictionary._weights import Weighting, Weights, weighting_of

Probabilities: TypeAlias = str | Sequence[float] | np.ndarray

LARGEST_SET = 8  # of sets of so many features, unless max_size says otherwise
LARGEST_NEIGHBOURHOOD = 64
MAX_HOPS = 2**31
TIES = 1e-9  # relative differences of distances that are rounding


class Related(Dictionary):
    """What dictionaries of connected sets share. A subclass says what the edges are."""

    min_size: int = 1
    max_size: int | None = None
    method: str = "grow"
    hops: int | Sequence[int] | None = None
    size_distribution: Probabilities = "uniform"
    weights: Weights = None
    views: Views = None

    _edges_have_weights = False
    _nodes = "nodes"  # what a message counts

    def _edges(self) -> sp.csr_array:
        """Return the edges: symmetric, positive, in order, and none from a feature to itself."""
        raise NotImplementedError

    def _rule(self) -> tuple[str, int, int]:
        """Return how sets are drawn, and the smallest and largest number of hops."""
        if self.hops is None:
            check_choice("method", self.method, ("grow", "walk"))
            return self.method, 0, 0
        if self.method != "grow":
            raise ValueError(
                f"method={self.method!r} is for sets of so many features, and hops={self.hops!r} "
                "for whole neighbourhoods: give one of the two."
            )
        several = isinstance(self.hops, (tuple, list))
        given: Any = list(self.hops) if several else [0, self.hops]  # type: ignore[arg-type]
        known = len(given) == 2 and all(is_integer(h) and 0 <= h <= MAX_HOPS for h in given)
        if not known or given[0] > given[1]:
            raise ValueError(
                "hops must be None, a number of steps of at least 0, or a pair of these, the "
                f"smallest and the largest, got {self.hops!r}."
            )
        if self.min_size != 1 or not _is(self.size_distribution, "uniform"):
            raise ValueError(
                f"hops={self.hops!r} says how large neighbourhoods are: leave min_size and "
                "size_distribution as they are. max_size still limits their size."
            )
        return "hops", int(given[0]), int(given[1])

    def _sizes(self, n: int) -> tuple[int, int]:
        """Return the smallest and largest number of features of a set, of n features."""
        check_integer("min_size", self.min_size, 1, n)
        check_integer("max_size", self.max_size, 1, n, none=True)
        smallest = int(self.min_size)
        if self.max_size is not None:
            largest = int(self.max_size)
        else:
            largest = max(
                min(n, LARGEST_SET if self.hops is None else LARGEST_NEIGHBOURHOOD), smallest
            )
        if smallest > largest:
            raise ValueError(
                f"min_size={self.min_size!r} must not exceed max_size={self.max_size!r}."
            )
        return smallest, largest

    def _table(self, smallest: int, largest: int) -> np.ndarray:
        """Return the cumulated probabilities of the sizes; empty if all are equal."""
        given = self.size_distribution
        if isinstance(given, str):
            check_choice("size_distribution", given, ("uniform", "log"))
            if given == "uniform" or smallest == largest:
                return np.empty(0, dtype=np.uint64)
            return cumulative_fractions(log_uniform(smallest, largest))
        odds = to_numbers("size_distribution", given)
        if odds.shape != (largest - smallest + 1,):
            raise ValueError(
                f'size_distribution must be "uniform", "log" or {largest - smallest + 1} '
                f"probabilities, one for each size from {smallest} to {largest}, got "
                f"{odds.shape[0] if odds.ndim else 0}."
            )
        with np.errstate(over="ignore"):
            total = odds.sum()
        if not (odds >= 0).all() or not 0 < total < np.inf:
            raise ValueError(
                "size_distribution must have finite probabilities, not negative and not all zero, "
                f"got {given!r}."
            )
        return cumulative_fractions(odds)

    def _check(self, shape: SampleShape) -> None:
        self._check_nodes(self._edges().shape[0], shape)
        self._rule()
        self._weighting(shape)

    def _check_stored(self) -> None:
        self._edges()

    def _check_along(self, axis: int, shape: SampleShape) -> None:
        """Raise if this makes no sense along one axis of a patch."""
        kind, n, length = type(self).__name__, self._edges().shape[0], shape.lengths[axis]
        for name in ("weights", "views"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"along[{axis}] has {name}={getattr(self, name)!r}, which all axes share: give "
                    "them to the Patch."
                )
        if n != length:
            raise ValueError(
                f"along[{axis}]: {kind} has {n} {self._nodes}, but samples of shape {shape} have "
                f"{length} elements along axis {axis}: give one for each."
            )
        self._rule()

    def _check_nodes(self, n: int, shape: SampleShape) -> None:
        positions = _positions(shape)
        if n == positions:
            return
        channels = ""
        if shape.channel_axis is not None:
            channels = (
                f" in each of {shape.lengths[shape.channel_axis]} channels, and a set lies in one "
                "channel"
            )
        raise ValueError(
            f"{type(self).__name__} has {n} {self._nodes}, but samples of shape {shape} have "
            f"{positions} features{channels}: give one for each, in C order, or use it along one "
            "axis, as in Patch(along={axis: ...})."
        )

    def _weighting(self, shape: SampleShape) -> Weighting:
        smallest, largest = self._sizes(_positions(shape))
        self._table(smallest, largest)
        if isinstance(self.weights, str) and self.weights == "gabor":
            raise ValueError(
                'weights="gabor" needs axes in order, and sets of features have none: give None, '
                '"sign", "uniform", "gaussian" or a function.'
            )
        return weighting_of(self.weights, [smallest], [largest], [])

    def _bounds(self, shape: SampleShape) -> Bounds:
        return self._weighting(shape).bounds(float(self._sizes(_positions(shape))[1]))

    def _add_to(self, built: core.Dictionary, shape: SampleShape) -> None:
        edges = self._edges()
        if edges.nnz == 0 and self.weights is None and len(self._views(shape)) == 1:
            built.add_axis()  # single features, without replacement within a node
            return
        smallest, largest = self._sizes(_positions(shape))
        weights = self._weighting(shape).to_core()
        sizes = self._table(smallest, largest)
        built.add_related(self._relation(edges), smallest, largest, sizes, weights)

    def _relation(self, edges: sp.csr_array) -> core.Relation:
        """Return the edges as the core takes them."""
        cumulative = np.empty(0, dtype=np.uint64)
        if self._edges_have_weights and edges.nnz:
            cumulative = cumulated_weights(edges)
        return core.Relation(
            self._rule()[0],
            edges.indptr.astype(np.uint64),
            edges.indices.astype(np.uint32),
            cumulative,
            *self._rule()[1:],
        )


@stored
class Graph(Related):
    """Sums over connected sets of features: an edge permits an atom with both features.

    The features of a sample are the nodes of a graph, such as the sensors of a network, the
    vertices of a mesh or the genes of a pathway. An atom adds up a connected set of them.

    Parameters
    ----------
    adjacency : array or scipy sparse matrix of shape (n_features, n_features)
        Entries other than zero are edges, whatever their size, such as those of
        :func:`sklearn.neighbors.kneighbors_graph`. Row i is feature i of a sample, in C order; with
        a channel axis, it is position i in any channel. An edge in one direction counts as one in
        both, and the diagonal does not matter.
    min_size, max_size : int, default=1 and None
        Smallest and largest number of features of an atom. None: 8, or 64 for neighbourhoods (see
        `hops`), but at most the number of features. A set that has no further neighbours remains
        smaller.
    method : {"grow", "walk"}, default="grow"
        How a set is drawn, from a random feature on. "grow" adds a random neighbour of a random
        member, until the size is reached. "walk" adds what a random walk visits, so that sets are
        longer and thinner.
    hops : int, tuple of two int or None, default=None
        If given, atoms are neighbourhoods instead: all features within so many steps of a random
        feature. The number of steps is drawn from 0 to `hops`, or between the two numbers. If these
        are more than `max_size` features, some of the farthest are left out at random.
    size_distribution : {"uniform", "log"} or array, default="uniform"
        Distribution of the sizes between `min_size` and `max_size`: all equally likely; each
        doubling as likely as any other; or one probability for each size.
    weights : {"sign", "uniform", "gaussian"}, callable or None, default=None
        What the features of an atom weigh, as in :class:`Patch`. A function is called with each
        possible size, such as ``(3,)``, and returns weights in the order in which features join,
        the centre first.
    views : view, list of views or None, default=None
        Versions of a sample that atoms look at, as in :class:`Patch`.

    Notes
    -----
    Without edges, this is :class:`Axis`. With all edges and random signs it is
    :class:`SparseOblique`, up to the distribution of the sizes. On a ring, a grown set is a patch
    with ``boundary="wrap"``. Drawing takes time in proportion to the size of a set, and not to the
    graph.

    Examples
    --------
    >>> from morforest import Graph
    >>> path = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    >>> Graph(path, min_size=2, max_size=2).sample(3, 4, random_state=0).toarray()
    array([[1., 1., 0.],
           [1., 1., 0.],
           [1., 1., 0.],
           [0., 1., 1.]])
    """

    def __init__(
        self,
        adjacency: Any,
        min_size: int = 1,
        max_size: int | None = None,
        *,
        method: str = "grow",
        hops: int | Sequence[int] | None = None,
        size_distribution: Probabilities = "uniform",
        weights: Weights = None,
        views: Views = None,
    ):
        self.adjacency = adjacency
        self.min_size = min_size
        self.max_size = max_size
        self.method = method
        self.hops = hops
        self.size_distribution = size_distribution
        self.weights = weights
        self.views = views

    @classmethod
    def from_networkx(
        cls, graph: Any, *, nodelist: Sequence[Any] | None = None, **parameters: Any
    ) -> Graph:
        """Make a dictionary of a graph of networkx.

        Parameters
        ----------
        graph : networkx.Graph
            A graph with one node per feature. Directed edges count as undirected ones.
        nodelist : list of nodes or None, default=None
            The nodes in the order of the features. None: the order in which the graph has them.
        **parameters : dict
            Other parameters of :class:`Graph`.

        Returns
        -------
        Graph
            The dictionary.

        Examples
        --------
        >>> import networkx
        >>> from morforest import Graph
        >>> Graph.from_networkx(networkx.path_graph(3), max_size=2).sample(3).shape
        (1, 3)
        """
        if not all(hasattr(graph, name) for name in ("nodes", "edges", "is_directed")):
            raise TypeError(f"graph must be a graph of networkx, got {type(graph).__name__}.")
        nodes = list(graph.nodes if nodelist is None else nodelist)
        place = {node: i for i, node in enumerate(nodes)}
        if len(place) != len(nodes) or set(place) != set(graph.nodes):
            raise ValueError(
                f"nodelist must have each of the {len(graph.nodes)} nodes of the graph once, got "
                f"{len(nodes)} nodes, of which {len(set(place) & set(graph.nodes))} are known."
            )
        ends = np.array([(place[edge[0]], place[edge[1]]) for edge in graph.edges], dtype=np.int64)
        ends = ends.reshape(-1, 2)
        shape = (len(nodes), len(nodes))
        ones = np.ones(len(ends))
        return cls(sp.csr_array((ones, (ends[:, 0], ends[:, 1])), shape=shape), **parameters)

    def _edges(self) -> sp.csr_array:
        return edges_of("adjacency", self.adjacency)


@stored
class Neighbours(Related):
    """Sums over connected sets of features that lie at points in space.

    The points are joined with their nearest neighbours, and atoms are connected sets of this graph,
    as those of :class:`Graph`. Points may be sensors on a scalp, stations on a map, or vertices of
    a mesh.

    Parameters
    ----------
    coordinates : array of shape (n_features, n_dimensions)
        Where the features of a sample lie, in C order; with a channel axis, its positions. Points
        on a sphere are directions from its centre, of three numbers and any length, or pairs of
        latitude and longitude in degrees.
    k : int or None, default=None
        Number of nearest neighbours that a point is joined with. None: 8, or what `radius` says.
        Points at the same distance as the last one belong to them too, up to twice as many.
    radius : float or None, default=None
        If given, points are joined with all others at this distance or nearer instead; in degrees
        on a sphere.
    metric : {"euclidean", "great_circle"}, default="euclidean"
        Straight distances, or distances along the surface of a sphere.
    min_size, max_size, method, hops, size_distribution, weights, views : default as in Graph
        Sizes, weights and views of sets, and how these are drawn, as in :class:`Graph`.

    Examples
    --------
    >>> from morforest import Neighbours
    >>> line = [[0.0], [1.0], [5.0], [6.0]]
    >>> Neighbours(line, k=1, min_size=2, max_size=2).sample(4, 2, random_state=3).toarray()
    array([[0., 0., 1., 1.],
           [1., 1., 0., 0.]])
    """

    _nodes = "points"

    def __init__(
        self,
        coordinates: Any,
        k: int | None = None,
        *,
        radius: float | None = None,
        metric: str = "euclidean",
        min_size: int = 1,
        max_size: int | None = None,
        method: str = "grow",
        hops: int | Sequence[int] | None = None,
        size_distribution: Probabilities = "uniform",
        weights: Weights = None,
        views: Views = None,
    ):
        self.coordinates = coordinates
        self.k = k
        self.radius = radius
        self.metric = metric
        self.min_size = min_size
        self.max_size = max_size
        self.method = method
        self.hops = hops
        self.size_distribution = size_distribution
        self.weights = weights
        self.views = views

    def _points(self) -> np.ndarray:
        check_choice("metric", self.metric, ("euclidean", "great_circle"))
        points = to_numbers("coordinates", self.coordinates)
        if points.ndim != 2 or not points.size:
            raise ValueError(
                "coordinates must have the shape (n_features, n_dimensions), one row per feature, "
                f"got the shape {points.shape}."
            )
        if not np.isfinite(points).all():
            raise ValueError("coordinates contain NaN or infinity: every feature needs a place.")
        if self.metric == "euclidean":
            if np.abs(points).max() > 1e100:
                raise ValueError("coordinates go beyond 1e100 in size: choose another unit.")
            return points
        return on_sphere(points)

    def _check_stored(self) -> None:
        self._points()

    def _edges(self) -> sp.csr_array:
        points = self._points()
        n = len(points)
        if self.radius is not None:
            return self._within(points)
        k = 8 if self.k is None else self.k
        check_integer("k", k, 1)
        if k >= n:
            raise ValueError(
                f"k={k} neighbours need at least {k + 1} points, but coordinates has {n}: give a "
                "smaller k."
            )
        # Ties would depend on how points are searched, so that all of them are taken.
        distance, found = KDTree(points).query(points, k=min(2 * int(k) + 1, n))
        ends = np.repeat(np.arange(n), found.shape[1]), found.ravel()
        near = (distance <= distance[:, k, np.newaxis] * (1 + TIES)).ravel()
        ones = np.ones(np.count_nonzero(near))
        return both_ways(sp.csr_array((ones, (ends[0][near], ends[1][near])), shape=(n, n)))

    def _within(self, points: np.ndarray) -> sp.csr_array:
        if self.k is not None:
            raise ValueError(f"k={self.k!r} and radius={self.radius!r}: give one of the two.")
        radius = self.radius
        if not is_number(radius) or not 0 < radius < np.inf:
            raise ValueError(f"radius must be None or a positive number, got {radius!r}.")
        if self.metric == "great_circle":
            radius = 2 * np.sin(np.deg2rad(min(float(radius), 180.0)) / 2)
        n = len(points)
        pairs = KDTree(points).query_pairs(float(radius) * (1 + TIES), output_type="ndarray")
        edges = sp.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
        return both_ways(edges)


@stored
class Similarity(Related):
    """Sums over sets of similar features: neighbours are drawn with probability by similarity.

    Parameters
    ----------
    matrix : array or scipy sparse matrix of shape (n_features, n_features)
        How similar two features are: zero for those that never follow each other in a set, and
        otherwise positive. A set takes the next feature from a member with a probability in
        proportion to their similarity. Where the two directions differ, the larger entry counts.
        Row i is feature i of a sample, as in :class:`Graph`.
    min_size, max_size, method, size_distribution, weights, views : default as in Graph
        Sizes, weights and views of sets, and how these are drawn, as in :class:`Graph`.

    Examples
    --------
    >>> from morforest import Similarity
    >>> alike = [[0, 1000, 1], [1000, 0, 0], [1, 0, 0]]
    >>> atoms = Similarity(alike, min_size=2, max_size=2).sample(3, 3000, random_state=0)
    >>> atoms.mean(axis=0).round(1)  # 0 and 1, unless the first feature is 2
    array([[1. , 0.7, 0.3]])
    """

    _edges_have_weights = True

    def __init__(
        self,
        matrix: Any,
        min_size: int = 1,
        max_size: int | None = None,
        *,
        method: str = "grow",
        size_distribution: Probabilities = "uniform",
        weights: Weights = None,
        views: Views = None,
    ):
        self.matrix = matrix
        self.min_size = min_size
        self.max_size = max_size
        self.method = method
        self.size_distribution = size_distribution
        self.weights = weights
        self.views = views

    @classmethod
    def from_data(
        cls,
        X: Any,
        *,
        k: int = 8,
        axis: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        **parameters: Any,
    ) -> Similarity:
        """Learn from samples which features are similar: those that rise and fall together.

        The samples are parted into two halves at random. Two features are similar if, in each half
        by itself, one of them is among the `k` that the other is most correlated with, and their
        correlation is so large that, if all features were independent, no pair would reach it in
        both halves in 19 cases of 20. The smaller of the two correlations is their
        similarity. Targets play no part, so that samples without targets may take part.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples. Missing values (NaN) count as the mean of their feature.
        k : int, default=8
            Number of features that each one may be similar to, from its own side.
        axis : int or None, default=None
            Axis of a sample, not of X, whose elements are compared, for ``Patch(along=...)``. The
            values along the other axes count as further samples, in the same half; but since they
            depend on each other, only the number of samples says how large a correlation must be.
            None compares all features.
        random_state : int, RandomState instance or None, default=None
            Seed of the halves.
        **parameters : dict
            Other parameters of :class:`Similarity`.

        Returns
        -------
        Similarity
            The dictionary. Its `matrix` is sparse.

        Examples
        --------
        >>> import numpy as np
        >>> from morforest import Similarity
        >>> wave = np.random.default_rng(0).normal(size=(200, 6))
        >>> X = np.repeat(wave, 3, axis=1) + np.random.default_rng(1).normal(size=(200, 18)) / 2
        >>> found = Similarity.from_data(X, random_state=0).matrix
        >>> found.nnz, found.toarray()[:3, :3].round(1)
        (36, array([[0. , 0.8, 0.8],
               [0.8, 0. , 0.8],
               [0.8, 0.8, 0. ]]))
        """
        matrix = kept_in_both_halves(X, k, axis, random_state)
        if matrix.nnz == 0:
            warnings.warn(
                "no two features are correlated in both halves of X: atoms will be single features",
                UserWarning,
                stacklevel=2,
            )
        return cls(matrix, **parameters)

    def _edges(self) -> sp.csr_array:
        return edges_of("matrix", self.matrix)


def _positions(shape: SampleShape) -> int:
    """Return the number of features of one channel."""
    channels = 1 if shape.channel_axis is None else shape.lengths[shape.channel_axis]
    return shape.size // channels


def _is(value: Any, name: str) -> bool:
    return isinstance(value, str) and value == name
