"""GraphFeatures: pairs of nodes counted, beside a count by hand."""

import pickle
import types
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from morforest import GraphFeatures, MorfClassifier, Patch

CHAIN = np.eye(4, k=1) + np.eye(4, k=-1)


def by_hand(adjacency, labels, classes, longest):
    """Walk from each node, level by level."""
    n = len(labels)
    table = np.zeros((longest + 1, len(classes), len(classes)), dtype=int)
    for start in range(n):
        depth, waiting = {start: 0}, deque([start])
        while waiting:
            node = waiting.popleft()
            for other in range(n):
                if adjacency[node][other] and other not in depth:
                    depth[other] = depth[node] + 1
                    waiting.append(other)
        for end, distance in depth.items():
            if labels[start] in classes and labels[end] in classes and distance <= longest:
                table[distance, classes.index(labels[start]), classes.index(labels[end])] += 1
    return table


@st.composite
def graphs(draw):
    n = draw(st.integers(0, 6))
    bits = draw(st.lists(st.booleans(), min_size=n * n, max_size=n * n))
    adjacency = np.array(bits, dtype=float).reshape(n, n)
    if draw(st.booleans()):
        adjacency = adjacency + adjacency.T
    return adjacency, draw(st.lists(st.sampled_from("CNO"), min_size=n, max_size=n))


@given(st.lists(graphs(), min_size=1, max_size=4), graphs(), st.integers(0, 4))
@settings(max_examples=60, deadline=None)
def test_tables_are_those_counted_by_hand(training, other, longest):
    if not any(labels for _, labels in training):
        return
    features = GraphFeatures(longest).fit(training)
    classes = sorted({label for _, labels in training for label in labels})
    assert features.classes_.tolist() == classes
    X = [*training, other]
    expected = [by_hand(*graph, classes, longest) for graph in X]
    np.testing.assert_array_equal(features.transform(X), expected)
    whole = GraphFeatures().fit(training)
    reached = whole.transform(training)
    assert reached[:, -1].any() or whole.max_distance_ == 0
    np.testing.assert_array_equal(
        reached, [by_hand(*graph, classes, whole.max_distance_) for graph in training]
    )
    for graph, table in zip(training, reached, strict=True):
        values = np.random.default_rng(0).normal(size=table.shape)
        shares = whole.node_values(graph, values)
        assert shares.shape == (len(graph[1]),)
        assert shares.sum() == pytest.approx(values[table > 0].sum())


def test_every_form_of_a_graph_has_one_table():
    labels = ["C", "N", "C", "O"]
    dense = (CHAIN, labels)
    weighted = (csr_array(CHAIN * 0.5), np.array(labels))
    stored_zero = coo_array(
        (np.append(np.ones(6), 0.0), ([0, 1, 1, 2, 2, 3, 0], [1, 0, 2, 1, 3, 2, 3]))
    )
    loops = (CHAIN.astype(bool) | np.eye(4, dtype=bool), labels)
    nodes = {name: {"label": label} for name, label in zip("wxyz", labels, strict=True)}
    networkx = types.SimpleNamespace(
        nodes=nodes, edges=[("w", "x"), ("y", "x"), ("y", "z")], is_directed=lambda: False
    )
    tables = GraphFeatures().fit_transform(
        [dense, weighted, (stored_zero, labels), loops, networkx]
    )
    assert tables.shape == (5, 4, 3, 3)
    for table in tables:
        np.testing.assert_array_equal(table, tables[0])
    np.testing.assert_array_equal(np.diagonal(tables[0, 0]), [2, 1, 1])
    assert tables[0, 3, 0, 2] == tables[0, 3, 2, 0] == 1  # from C at one end to O at the other


def test_networkx_itself():
    networkx = pytest.importorskip("networkx")
    graph = networkx.path_graph(4)
    networkx.set_node_attributes(graph, dict(enumerate("CNCO")), "element")
    features = GraphFeatures(label="element")
    np.testing.assert_array_equal(
        features.fit_transform([graph]), features.transform([(CHAIN, list("CNCO"))])
    )
    with pytest.raises(ValueError, match="'label' at node 0; label= names"):
        GraphFeatures().fit([graph])


def test_labels_may_be_objects_and_graphs_empty():
    objects = np.array(list("CNCO"), dtype=object)
    features = GraphFeatures().fit([(CHAIN, objects), (np.empty((0, 0)), [])])
    assert features.classes_.tolist() == ["C", "N", "O"]
    assert not features.transform([(np.empty((0, 0)), [])]).any()
    assert features.node_values((np.empty((0, 0)), []), np.ones((4, 3, 3))).shape == (0,)


def test_directions_of_edges_count():
    table = GraphFeatures().fit_transform([(np.eye(3, k=1), [0, 1, 2])])[0]
    assert table[2, 0, 2] == 1
    assert table[2, 2, 0] == 0


def test_unknown_labels_lie_on_paths_and_are_not_counted():
    features = GraphFeatures().fit([(CHAIN, list("CCNO"))])
    table = features.transform([(CHAIN, ["C", "X", "N", "Zn"])])[0]
    assert table.sum() == 4
    assert table[2, 0, 1] == 1
    shares = features.node_values((CHAIN, ["C", "X", "N", "Zn"]), np.ones((4, 3, 3)))
    np.testing.assert_allclose(shares[[1, 3]], 0)


def test_parts_of_a_graph_without_a_path_are_not_paired():
    apart = np.kron(np.eye(2), CHAIN[:2, :2])
    assert GraphFeatures().fit_transform([(apart, [0, 0, 0, 0])])[0].ravel().tolist() == [4, 4]


def test_in_a_pipeline_and_in_a_pickle():
    X = [(CHAIN, [*"CCN", end]) for end in "CN" * 20]
    y = list("CN" * 20)
    patch = Patch(contiguous=(True, False, False))
    model = make_pipeline(GraphFeatures(), MorfClassifier(patch, n_estimators=5, random_state=0))
    assert clone(model).fit(X, y).score(X, y) == 1
    features = GraphFeatures(2).fit(X)
    again = pickle.loads(pickle.dumps(features))
    np.testing.assert_array_equal(again.transform(X), features.transform(X))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([], "at least one graph"),
        ("CCO", "list of graphs, got str"),
        (3, "list of graphs, got int"),
        ([CHAIN], r"X\[0\] must be a graph of networkx or a pair \(adjacency, labels\)"),
        ([(CHAIN, [0, 1])], r"one label per node, 4; got labels of the shape \(2,\)"),
        ([(CHAIN[:3], [0, 1, 2])], r"square adjacency matrix, got the shape \(3, 4\)"),
        ([(CHAIN.astype(str), [0] * 4)], "adjacency of numbers"),
        ([(CHAIN * np.nan, [0] * 4)], "without NaN"),
        ([(CHAIN, [0] * 4), (np.empty((0, 0)), ["C"])], r"X\[1\] must have one label per node, 0"),
        ([(np.empty((0, 0)), [])], "at least one node"),
        (
            [(CHAIN, np.array([0, None, 1, 2], dtype=object))],
            r"X\[0\] must have labels that are all",
        ),
        ([(CHAIN, [0, 1, 2, np.nan])], "all numbers, and not NaN"),
        ([(CHAIN, [[0], [1, 2], 3, 4])], "all words or all numbers"),
        ([(CHAIN, [0] * 4), (CHAIN, ["C"] * 4)], "got 'C' and 0"),
    ],
)
def test_bad_graphs(X, message):
    with pytest.raises(ValueError, match=message):
        GraphFeatures().fit(X)


def test_bad_parameters():
    with pytest.raises(ValueError, match="max_distance must be an integer from 0 to"):
        GraphFeatures(-1).fit([(CHAIN, [0] * 4)])
    with pytest.raises(NotFittedError):
        GraphFeatures().transform([(CHAIN, [0] * 4)])
    features = GraphFeatures().fit([(CHAIN, [0] * 4)])
    with pytest.raises(ValueError, match="got 'C' and 0"):
        features.transform([(CHAIN, ["C"] * 4)])
    with pytest.raises(ValueError, match=r"values must have the shape \(4, 1, 1\)"):
        features.node_values((CHAIN, [0] * 4), np.ones(3))
