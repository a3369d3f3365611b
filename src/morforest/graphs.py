"""Samples that are graphs of their own, such as molecules, as tables of one shape."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.sparse.csgraph import shortest_path
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from morforest import _parameters as check
from morforest._loading import check_labels, require, restore
from morforest._model_file import Saved
from morforest._states import stored

__all__ = ["GraphFeatures"]

MAX_DISTANCE = 1_000_000


@stored
class GraphFeatures(TransformerMixin, Saved, BaseEstimator):
    """Count pairs of nodes by their distance and their labels, in graphs of any size.

    Graphs of different sizes have no features in common. This transformer gives each the same
    table: how many ordered pairs of nodes are `d` edges apart, the first labelled `a` and the
    second `b`. Its first axis, the distance, is ordered, and its labels are not, which a dictionary
    can make use of: ``Patch(contiguous=(True, False, False))`` adds neighbouring distances and any
    labels.

    Parameters
    ----------
    max_distance : int or None, default=None
        The longest distance that is counted. None: the longest in the graphs of `fit`.
    label : str, default="label"
        The attribute of nodes that holds their label, in graphs of networkx.

    Attributes
    ----------
    classes_ : ndarray of shape (labels,)
        The labels in the graphs of `fit`, sorted.
    max_distance_ : int
        The longest distance that is counted.

    Notes
    -----
    A graph is a pair `(adjacency, labels)` or a graph of networkx. `adjacency` is a square matrix,
    sparse or dense, whose entries other than zero are edges, and `labels` has one entry per node.
    Distances are numbers of edges on a shortest path, along the direction of edges where the matrix
    is not symmetric. At distance 0 each node is a pair with itself, so that the diagonal there
    counts labels.

    These are not counted: pairs without a path, pairs farther apart than `max_distance_`, and nodes
    whose label is not in `classes_`, which still may lie on the path between others. Labels and
    weights of edges play no part, and graphs that differ can have the same table.

    Examples
    --------
    Are the two ends of a chain of nodes alike?

    >>> import numpy as np
    >>> from morforest import GraphFeatures, MorfClassifier, Patch
    >>> random = np.random.default_rng(0)
    >>> graphs, alike = [], []
    >>> for _ in range(200):
    ...     n = random.integers(5, 9)
    ...     labels = ["C"] * n
    ...     labels[0], labels[-1] = random.choice(["N", "O"], size=2)
    ...     graphs.append((np.eye(n, k=1) + np.eye(n, k=-1), labels))
    ...     alike.append(labels[0] == labels[-1])
    >>> tables = GraphFeatures().fit_transform(graphs)
    >>> tables.shape  # (graphs, distances 0 to 7, labels, labels)
    (200, 8, 3, 3)
    >>> forest = MorfClassifier(Patch(contiguous=(True, False, False)), random_state=0)
    >>> forest.fit(tables[:100], alike[:100]).score(tables[100:], alike[100:])
    1.0
    """

    def __init__(self, max_distance: int | None = None, *, label: str = "label"):
        self.max_distance = max_distance
        self.label = label

    def fit(self, X: Iterable[Any], y: Any = None) -> GraphFeatures:
        """Find the labels and, unless `max_distance` says it, the longest distance.

        Parameters
        ----------
        X : list of graphs
            Graphs of networkx, or pairs of adjacency and labels.
        y : None
            Ignored.

        Returns
        -------
        GraphFeatures
            The transformer itself.
        """
        check.check_integer("max_distance", self.max_distance, 0, MAX_DISTANCE, none=True)
        graphs = self._read(X)
        labels = [labels for _, labels in graphs if len(labels)]
        if not labels:
            raise ValueError("X must have a graph with at least one node; all graphs are empty.")
        for found in labels:
            _check_kind(found, labels[0])
        self.classes_ = np.unique(np.concatenate(labels))
        if self.max_distance is None:
            self.max_distance_ = max(
                (int(d.max(initial=0)) for d in map(_distances, graphs)), default=0
            )
        else:
            self.max_distance_ = int(self.max_distance)
        return self

    def transform(self, X: Iterable[Any]) -> np.ndarray:
        """Count the pairs of each graph.

        Parameters
        ----------
        X : list of graphs
            Graphs of networkx, or pairs of adjacency and labels.

        Returns
        -------
        ndarray of shape (graphs, max_distance_ + 1, labels, labels)
            Numbers of ordered pairs, int64.
        """
        check_is_fitted(self)
        return np.stack([self._count(graph)[0] for graph in self._read(X)])

    def __setstate__(self, state: Any) -> None:
        restore(self, state, "classes_", _check_labels)

    def node_values(self, graph: Any, values: Any) -> np.ndarray:
        """Spread values of a table, such as attributions, over the nodes of a graph.

        The value of an entry is shared equally by the pairs that it counts, and by the two nodes of
        a pair. Entries that count no pair of this graph belong to no node and are left out.

        Parameters
        ----------
        graph : graph
            A graph of networkx, or a pair of adjacency and labels.
        values : array-like of shape (max_distance_ + 1, labels, labels)
            One value per entry of the table.

        Returns
        -------
        ndarray of shape (nodes,)
            Values of the nodes, in their order in the graph.
        """
        check_is_fitted(self)
        values = np.asarray(values, dtype=np.float64)
        shape = (self.max_distance_ + 1, len(self.classes_), len(self.classes_))
        if values.shape != shape:
            raise ValueError(
                f"values must have the shape {shape} of one table, got {values.shape}."
            )
        (read,) = self._read([graph])
        table, (d, a, b, first, second) = self._count(read)
        each = values[d, a, b] / table[d, a, b] / 2
        nodes = len(read[1])
        return np.bincount(first, each, nodes) + np.bincount(second, each, nodes)

    def _count(
        self, graph: tuple[csr_array, np.ndarray]
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """Return the table of a graph, and all pairs: distance, labels, nodes."""
        _, labels = graph
        if len(labels):
            _check_kind(labels, self.classes_)
        distances = _distances(graph)
        place = np.searchsorted(self.classes_, labels)
        place[place == len(self.classes_)] = 0
        known = self.classes_[place] == labels
        counted = (distances >= 0) & (distances <= self.max_distance_)
        first, second = np.nonzero(counted & known[:, None] & known)
        pairs = distances[first, second], place[first], place[second]
        kinds = len(self.classes_)
        table = np.zeros((self.max_distance_ + 1, kinds, kinds), dtype=np.int64)
        np.add.at(table, pairs, 1)
        return table, (*pairs, first, second)

    def _read(self, X: Iterable[Any]) -> list[tuple[csr_array, np.ndarray]]:
        if isinstance(X, (str, bytes)) or not isinstance(X, Iterable) or _is_networkx(X):
            raise ValueError(f"X must be a list of graphs, got {type(X).__name__}.")
        graphs = [_read_graph(graph, i, self.label) for i, graph in enumerate(X)]
        if not graphs:
            raise ValueError("X must have at least one graph, got none.")
        return graphs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags


def _distances(graph: tuple[csr_array, np.ndarray]) -> np.ndarray:
    """Return numbers of edges between all nodes; -1 where there is no path."""
    adjacency, labels = graph
    if not len(labels):
        return np.empty((0, 0), dtype=np.int64)
    found = shortest_path(adjacency, unweighted=True)
    return np.where(np.isfinite(found), found, -1).astype(np.int64)


def _is_networkx(graph: Any) -> bool:
    return all(hasattr(graph, name) for name in ("nodes", "edges", "is_directed"))


def _read_graph(graph: Any, i: int, label: str) -> tuple[csr_array, np.ndarray]:
    """Return adjacency of ones and labels of the graph at place i of X."""
    if _is_networkx(graph):
        return _from_networkx(graph, i, label)
    if not isinstance(graph, (tuple, list)) or len(graph) != 2:
        raise ValueError(
            f"X[{i}] must be a graph of networkx or a pair (adjacency, labels), got "
            f"{type(graph).__name__}."
        )
    adjacency, labels = graph
    if not issparse(adjacency):
        adjacency = np.asarray(adjacency)
    if len(adjacency.shape) != 2 or adjacency.shape[0] != adjacency.shape[1]:
        raise ValueError(
            f"X[{i}] must have a square adjacency matrix, got the shape {adjacency.shape}."
        )
    if adjacency.dtype.kind not in "biuf":
        raise ValueError(f"X[{i}] must have an adjacency of numbers, got {adjacency.dtype}.")
    labels = _read_labels(labels, i)
    if labels.shape != adjacency.shape[:1]:
        raise ValueError(
            f"X[{i}] must have one label per node, {adjacency.shape[0]}; got labels of the shape "
            f"{labels.shape}."
        )
    edges = csr_array(adjacency)
    if np.isnan(edges.data).any():
        raise ValueError(f"X[{i}] must have an adjacency without NaN.")
    return csr_array(edges != 0, dtype=np.float64), labels


def _from_networkx(graph: Any, i: int, label: str) -> tuple[csr_array, np.ndarray]:
    nodes = list(graph.nodes)
    missing = [node for node in nodes if label not in graph.nodes[node]]
    if missing:
        raise ValueError(
            f"X[{i}] has no attribute {label!r} at node {missing[0]!r}; label= names the attribute "
            "that holds the labels."
        )
    place = {node: k for k, node in enumerate(nodes)}
    ends = np.array([(place[edge[0]], place[edge[1]]) for edge in graph.edges], dtype=np.int64)
    ends = ends.reshape(-1, 2)
    if not graph.is_directed():
        ends = np.concatenate([ends, ends[:, ::-1]])
    shape = (len(nodes), len(nodes))
    adjacency = csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=shape)
    labels = _read_labels([graph.nodes[node][label] for node in nodes], i)
    return csr_array(adjacency != 0, dtype=np.float64), labels


def _read_labels(labels: Any, i: int) -> np.ndarray:
    try:
        found = np.asarray(labels)
        if found.dtype.kind == "O":
            found = np.array(found.tolist())
    except ValueError:  # lists of several lengths
        found = np.array(None)
    if found.dtype.kind not in "biufU" or (found.dtype.kind == "f" and np.isnan(found).any()):
        raise ValueError(f"X[{i}] must have labels that are all words or all numbers, and not NaN.")
    return found


def _check_kind(labels: np.ndarray, others: np.ndarray) -> None:
    if (labels.dtype.kind == "U") != (others.dtype.kind == "U"):
        raise ValueError(
            f"X must have labels that are all words or all numbers, got {labels[0].item()!r} and "
            f"{others[0].item()!r}."
        )


def _check_labels(features: GraphFeatures) -> None:
    """Check the state of a transformer that was loaded."""
    check_labels(features.classes_)
    longest = features.max_distance_
    require(type(longest) is int and 0 <= longest <= MAX_DISTANCE, "the longest distance")
