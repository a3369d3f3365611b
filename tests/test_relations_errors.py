"""Relations that are refused, each with what is wrong."""

import numpy as np
import pytest
import scipy.sparse as sp

from morforest import Graph, MorfClassifier, Neighbours, Similarity

PATH = np.eye(5, k=1) + np.eye(5, k=-1)

damaged = sp.csr_array(np.eye(5))
damaged.indices = damaged.indices + 3

BAD = {
    "not square": (Graph(np.ones((5, 4))), r"adjacency must be square and not empty.*\(5, 4\)"),
    "empty": (Graph(np.empty((0, 0))), "adjacency must be square and not empty"),
    "sparse, not square": (Graph(sp.csr_array((5, 4))), r"must be square.*\(5, 4\)"),
    "a vector": (Graph(np.ones(5)), r"must be square and not empty, got the shape \(5,\)"),
    "words": (Graph([["a"]]), "adjacency must hold numbers"),
    "None": (Graph(None), "adjacency must"),
    "complex": (
        Graph(sp.csr_array(np.eye(5) * 1j)),
        "must hold numbers, got a sparse matrix of complex",
    ),
    "negative": (Graph(-PATH), "adjacency has negative entries, such as -1.*absolute values"),
    "NaN": (Similarity(np.full((5, 5), np.nan)), "matrix contains NaN or infinity: give 0"),
    "infinite": (Graph(sp.csr_array(PATH) * np.inf), "adjacency contains NaN or infinity"),
    "huge": (Graph([[0, 10**400], [0, 0]]), "adjacency must hold numbers"),
    "damaged": (Graph(damaged), "adjacency is a damaged sparse matrix"),
    "other features": (
        Graph(np.ones((4, 4))),
        r"Graph has 4 nodes, but samples of shape \(5,\) have 5",
    ),
    "min_size": (Graph(PATH, 0), "min_size must be an integer from 1 to 5, got 0"),
    "max_size": (Graph(PATH, max_size=6), "max_size must be an integer from 1 to 5 or None, got 6"),
    "sizes": (Graph(PATH, 3, 2), "min_size=3 must not exceed max_size=2"),
    "a bool": (Graph(PATH, True), "min_size must be an integer from 1 to 5, got True"),
    "a float": (Graph(PATH, max_size=2.0), "max_size must be an integer .*got 2.0"),
    "method": (Graph(PATH, method="jump"), "method must be one of 'grow', 'walk', got 'jump'"),
    "hops": (Graph(PATH, hops=-1), "hops must be None, a number of steps.*got -1"),
    "hops down": (Graph(PATH, hops=(2, 1)), r"hops must be .*got \(2, 1\)"),
    "huge hops": (Graph(PATH, hops=2**70), "hops must be"),
    "hops and method": (Graph(PATH, hops=1, method="walk"), "give one of the two"),
    "hops and sizes": (Graph(PATH, 2, hops=1), "leave min_size and size_distribution"),
    "a distribution": (Graph(PATH, size_distribution="flat"), "size_distribution must be one of"),
    "probabilities": (
        Graph(PATH, 1, 3, size_distribution=[1, 2]),
        "3 probabilities, one for each size from 1 to 3, got 2",
    ),
    "negative odds": (
        Graph(PATH, 1, 2, size_distribution=[1, -2]),
        "not negative and not all zero",
    ),
    "no odds": (Graph(PATH, 1, 2, size_distribution=[0, 0]), "not all zero"),
    "waves": (Graph(PATH, weights="gabor"), 'weights="gabor" needs axes in order'),
    "weights": (Graph(PATH, weights="cauchy"), "weights must be None, one of"),
    "k": (
        Neighbours(np.ones((5, 2)), k=5),
        "k=5 neighbours need at least 6 points, but coordinates has 5",
    ),
    "k by default": (Neighbours(np.ones((5, 2))), "k=8 neighbours need at least 9 points"),
    "k = 0": (Neighbours(np.ones((5, 2)), k=0), "k must be an integer of at least 1, got 0"),
    "k and radius": (Neighbours(np.ones((5, 2)), k=1, radius=1.0), "k=1 and radius=1.0: give one"),
    "radius": (
        Neighbours(np.ones((5, 2)), radius=0),
        "radius must be None or a positive number, got 0",
    ),
    "radius NaN": (Neighbours(np.ones((5, 2)), radius=np.nan), "radius must be"),
    "metric": (Neighbours(np.ones((5, 2)), metric="taxi"), "metric must be one of"),
    "no place": (Neighbours(np.full((5, 2), np.nan), 1), "coordinates contain NaN or infinity"),
    "a line": (
        Neighbours(np.ones(5), 1),
        r"coordinates must have the shape .*got the shape \(5,\)",
    ),
    "far": (Neighbours(np.full((5, 2), 1e200), 1), "beyond 1e100"),
    "no points": (Neighbours(np.empty((0, 2)), 1), "coordinates must have the shape"),
    "latitude": (
        Neighbours(np.full((5, 2), 91), 1, metric="great_circle"),
        "latitudes from -90 to 90",
    ),
    "directions": (
        Neighbours(np.zeros((5, 3)), 1, metric="great_circle"),
        "direction of length zero",
    ),
    "four columns": (
        Neighbours(np.ones((5, 4)), 1, metric="great_circle"),
        "two columns, latitude",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_relations_are_refused(name):
    dictionary, message = BAD[name]
    X = np.arange(50.0).reshape(10, 5)
    with pytest.raises(ValueError, match=message):
        MorfClassifier(dictionary, n_estimators=2).fit(X, np.arange(10) % 2)


def test_positions_are_counted_without_channels():
    with pytest.raises(
        ValueError,
        match=r"5 nodes, but samples of shape .3, 4. have 4 features in each of 3 channels",
    ):
        Graph(PATH).sample((3, 4), channel_axis=1)
