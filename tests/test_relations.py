"""Connected sets of features: their laws, their edges, and that they work wherever patches do."""

import pickle
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from common import assert_same_forest
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import kneighbors_graph, radius_neighbors_graph
from test_dictionary_sampling import LEVEL, draw, fit_of, patch_law, side_law

from morforest import (
    AtomFeatures,
    AtomRidgeClassifier,
    Axis,
    Graph,
    Mixture,
    MorfBoostingClassifier,
    MorfClassifier,
    MorfRegressor,
    Neighbours,
    Patch,
    SharedAtoms,
    Similarity,
    SparseOblique,
    Subset,
)

PATH = np.eye(5, k=1) + np.eye(5, k=-1)
RING = PATH + np.eye(5, k=4) + np.eye(5, k=-4)
FULL = np.ones((5, 5))
STAR = np.zeros((5, 5))
STAR[0, 1:] = 1


def indicator(members, n=5):
    return tuple(float(i in members) for i in range(n))


def set_law(matrix, size, by_weight=False):
    """The law of grown sets: each member chooses one of its neighbours, and one choice counts."""
    n = len(matrix)
    matrix = np.maximum(matrix, np.transpose(matrix)) * (1 - np.eye(n))
    step = matrix if by_weight else (matrix > 0).astype(float)
    step = step / np.maximum(step.sum(axis=1, keepdims=True), 1e-300)
    law = {frozenset([i]): 1 / n for i in range(n)}
    for _ in range(size - 1):
        grown = {}
        for members, probability in law.items():
            inside = sorted(members)
            joins = {j: step[inside, j].sum() for j in range(n) if j not in members}
            total = sum(joins.values())
            for j, share in joins.items() if total else [(inside[0], 0)]:
                key = members | {j}
                part = probability * (share / total if total else 1)
                grown[key] = grown.get(key, 0) + part
        law = grown
    return {indicator(members, n): p for members, p in law.items() if p > 0}


# --- laws ------------------------------------------------------------------------------------


@pytest.mark.parametrize("matrix", [PATH, RING, STAR], ids=["path", "ring", "star"])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_grown_sets_follow_their_law(matrix, size):
    law = set_law(matrix, size)
    assert fit_of(draw(Graph(matrix, size, size), (5,)), law) > LEVEL
    if matrix is STAR and size > 2:  # and so this can fail
        wrong = {atom: 1 / len(law) for atom in set_law(PATH + STAR, size)}
        with pytest.raises(AssertionError):
            fit_of(draw(Graph(matrix, size, size), (5,)), wrong)


def test_similar_features_are_drawn_more_often():
    matrix = np.triu(np.arange(25.0).reshape(5, 5), 1)
    matrix[0, 3] = 0
    law = set_law(matrix, 3, by_weight=True)
    assert fit_of(draw(Similarity(matrix, 3, 3), (5,)), law) > LEVEL
    assert fit_of(draw(Graph(matrix, 3, 3), (5,)), set_law(matrix, 3)) > LEVEL
    assert fit_of(draw(Graph(matrix, 3, 3), (5,)), law) < LEVEL


def test_random_walks_follow_their_law():
    # On a path, a walk that has visited [a, b] leaves it at either end with the odds of a gambler.
    law, n = {}, 5
    for start in range(n):
        for first in {max(start - 1, 0), min(start + 1, n - 1)} - {start}:
            one = 1 / n / (1 if start in (0, n - 1) else 2)
            low, high = min(start, first), max(start, first)
            up = 2 / 3 if first == high else 1 / 3
            up = 1.0 if low == 0 else 0.0 if high == n - 1 else up
            for end, share in ((high + 1, up), (low - 1, 1 - up)):
                if share:
                    key = indicator({low, high, end})
                    law[key] = law.get(key, 0) + one * share
    walks = draw(Graph(PATH, 3, 3, method="walk"), (5,))
    assert fit_of(walks, law) > LEVEL
    # A walk goes on from where it is, which makes a difference on a star with a tail.
    tail = STAR.copy()
    tail[1, 2] = tail[2, 3] = 1
    grown = draw(Graph(tail, 3, 3), (5,))
    walked = draw(Graph(tail, 3, 3, method="walk"), (5,))
    assert fit_of(grown, set_law(tail, 3)) > LEVEL
    assert fit_of(walked, set_law(tail, 3)) < LEVEL


def test_neighbourhoods_are_whole_up_to_max_size():
    atoms = draw(Graph(PATH, hops=(1, 2)), (5,))
    law = {}
    for centre in range(5):
        for steps in (1, 2):
            key = indicator(range(centre - steps, centre + steps + 1))
            law[key] = law.get(key, 0) + 1 / 10
    assert fit_of(atoms, law) > LEVEL
    # Of the four leaves of the hub, two are drawn.
    law = {indicator({0, *pair}): 1 / 5 / 6 for pair in combinations(range(1, 5), 2)}
    law |= {indicator({0, leaf}): 1 / 5 for leaf in range(1, 5)}
    assert fit_of(draw(Graph(STAR, hops=(1, 1), max_size=3), (5,)), law) > LEVEL
    assert (draw(Graph(STAR, hops=0), (5,), 50).sum(axis=1) == 1).all()
    assert (draw(Graph(STAR, hops=2), (5,), 500).sum(axis=1) > 4).any()


def test_sizes_follow_their_distribution():
    sizes = draw(Graph(FULL, 2, 4, size_distribution=[5, 1, 2]), (5,)).sum(axis=1)
    assert (
        stats.chisquare(np.bincount(sizes.astype(int))[2:], N * np.array([5, 1, 2]) / 8).pvalue
        > LEVEL
    )
    log = draw(Graph(FULL, 1, 4, size_distribution="log"), (5,)).sum(axis=1)
    odds = np.log1p(1 / np.arange(1, 5))
    assert stats.chisquare(np.bincount(log.astype(int))[1:], N * odds / odds.sum()).pvalue > LEVEL


N = 20_000


def test_with_all_edges_and_signs_it_is_sparse_oblique():
    # The same law of atoms: the number of features, which ones, and their signs.
    sizes = stats.poisson.pmf(np.arange(1, 5), 2.0)
    graph = Graph(np.ones((4, 4)), 1, 4, size_distribution=sizes, weights="sign")
    law = {}
    for size, odds in zip(range(1, 5), sizes / sizes.sum(), strict=True):
        sets = list(combinations(range(4), size))
        for members in sets:
            for signs in np.ndindex(*[2] * size):
                atom = np.zeros(4)
                atom[list(members)] = 1 - 2 * np.array(signs)
                law[tuple(atom)] = odds / len(sets) / 2**size
    assert fit_of(draw(graph, (4,)), law) > LEVEL
    assert fit_of(draw(SparseOblique(2.0), (4,)), law) > LEVEL
    assert fit_of(draw(SparseOblique(1.7), (4,)), law) < LEVEL


def test_on_a_ring_it_is_a_patch_that_wraps():
    law = patch_law(side_law(5, 1, 3, "wrap"))
    assert fit_of(draw(Graph(RING, 1, 3), (5,)), law) > LEVEL
    assert fit_of(draw(Patch(1, 3, boundary="wrap"), (5,)), law) > LEVEL


def problem(n=150, p=8, seed=0):
    random = np.random.default_rng(seed)
    X = random.integers(-50, 50, (n, p))
    return X, (X[:, 1:4].sum(axis=1) + random.integers(-20, 20, n) > 0).astype(int)


@pytest.mark.parametrize("make", [Graph, Similarity, lambda none: Graph(sp.csr_array(none), 1, 3)])
def test_without_edges_it_is_axis(make):
    X, y = problem()
    parameters = {"n_estimators": 8, "random_state": 3}
    related = MorfClassifier(make(np.zeros((8, 8))), **parameters).fit(X, y)
    assert_same_forest(related, MorfClassifier(Axis(), **parameters).fit(X, y))
    alone = Neighbours(np.arange(8.0)[:, np.newaxis], radius=0.5)
    assert_same_forest(MorfClassifier(alone, **parameters).fit(X, y), related)
    # And so it is with channels and in a mixture.
    X = X.reshape(-1, 2, 4)
    for wrap in (lambda part: part, lambda part: Mixture([part, SparseOblique()])):
        forests = [
            MorfClassifier(wrap(part), channel_axis=1, **parameters).fit(X, y)
            for part in (make(np.zeros((4, 4))), Axis())
        ]
        assert_same_forest(*forests)


def test_a_set_of_all_features_is_that_of_other_dictionaries():
    # There is one atom, however it is drawn.
    X, y = problem()
    parameters = {"n_estimators": 4, "random_state": 3, "max_features": 1, "min_samples_leaf": 5}
    one = MorfClassifier(Graph(np.ones((8, 8)), 8, 8), **parameters).fit(X, y)
    other = MorfClassifier(Patch(8, 8, boundary="inside"), **parameters).fit(X, y)
    for name in ("threshold", "weight", "next"):
        np.testing.assert_array_equal(getattr(one._forest, name), getattr(other._forest, name))


def test_atoms_are_connected_and_within_one_channel():
    random = np.random.default_rng(0)
    matrix = np.triu(random.random((30, 30)) < 0.05, 1)
    for parameters in ({}, {"method": "walk"}, {"hops": 2, "max_size": 4}):
        atoms = Graph(matrix, **parameters).sample((5, 3, 6), 300, random_state=0, channel_axis=2)
        atoms = np.moveaxis(atoms.toarray().reshape(-1, 5, 3, 6), 2, 1)
        channels = atoms.any(axis=(2, 3))
        np.testing.assert_array_equal(channels.sum(axis=1), 1)
        for atom in atoms.sum(axis=1).reshape(-1, 30):
            inside = np.flatnonzero(atom)
            parts, _ = sp.csgraph.connected_components(
                matrix[np.ix_(inside, inside)], directed=False
            )
            assert parts == 1
        assert (atoms.sum(axis=(1, 2, 3)) > 1).any()


def test_a_set_ends_where_its_part_of_the_graph_does():
    two = np.kron(np.eye(2), np.ones((2, 2)))  # two pairs
    atoms = draw(Graph(two, 3, 4), (4,), 200)
    assert set(map(tuple, atoms)) == {(1, 1, 0, 0), (0, 0, 1, 1)}
    # A bridge that is almost never taken does not make draws endless.
    matrix = np.array([[0, 1, 0], [1, 0, 1e-300], [0, 1e-300, 0]])
    assert draw(Similarity(matrix, 3, 3), (3,), 500).sum(axis=1).max() == 3
    weights = draw(Graph(two, 3, 4, weights=lambda size: np.arange(1, size[0] + 1)), (4,), 200)
    assert {tuple(sorted(set(atom) - {0})) for atom in weights} == {(1, 2)}


def test_weights_follow_the_order_in_which_features_join():
    atoms = draw(Graph(STAR, 1, 4, weights=lambda size: 10 * size[0] + np.arange(size[0])), (5,))
    for atom in atoms[:500]:
        size = np.count_nonzero(atom)
        assert sorted(atom[atom > 0]) == [10 * size + place for place in range(size)]
        if size > 2:  # a leaf is followed by the hub
            assert atom[0] in (10 * size, 10 * size + 1)
    hops = draw(
        Graph(PATH, hops=(1, 1), weights=lambda size: [size[0], *[-1] * (size[0] - 1)]), (5,)
    )
    assert {tuple(atom) for atom in hops if atom[2] > 0} == {(0, -1, 3, -1, 0)}


# --- edges -----------------------------------------------------------------------------------


def edges(dictionary):
    return dictionary._edges().toarray()


@pytest.mark.parametrize(
    "kind",
    [
        np.asarray,
        sp.csr_matrix,
        sp.csc_array,
        sp.coo_matrix,
        sp.lil_array,
        sp.dok_array,
        sp.dia_array,
        np.ndarray.tolist,
    ],
)
@pytest.mark.parametrize("number", [bool, np.int8, np.uint64, np.float32])
def test_any_matrix_is_the_same_graph(kind, number):
    matrix = np.array([[1, 1, 0], [0, 0, 1], [0, 0, 0]]).astype(number)
    np.testing.assert_array_equal(edges(Graph(kind(matrix))), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])


def test_the_larger_of_two_directions_counts():
    matrix = [[9, 2, 0], [3, 0, 0], [2**70, 0, 0]]
    expected = [[0, 3, 2**70], [3, 0, 0], [2**70, 0, 0]]
    np.testing.assert_array_equal(edges(Similarity(matrix)), expected)
    stored_zero = sp.csr_array((np.array([0.0, 1]), ([0, 1], [2, 2])), shape=(3, 3))
    assert edges(Graph(stored_zero)).tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize("mode", ["connectivity", "distance"])
def test_graphs_of_scikit_learn(mode):
    points = np.random.default_rng(0).normal(size=(40, 3))
    nearest = kneighbors_graph(points, 5, mode=mode)
    expected = (nearest + nearest.T).toarray() > 0
    np.testing.assert_array_equal(edges(Graph(nearest)) > 0, expected)
    np.testing.assert_array_equal(edges(Neighbours(points, 5)) > 0, expected)
    near = radius_neighbors_graph(points, 0.8, mode=mode).toarray() > 0
    np.testing.assert_array_equal(edges(Neighbours(points, radius=0.8)) > 0, near)
    assert edges(Neighbours(points)).sum() == edges(Neighbours(points, k=8)).sum()


def test_graphs_of_networkx():
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph([("c", "a"), ("a", "b")])
    assert edges(Graph.from_networkx(graph, nodelist=["a", "b", "c"])).tolist() == [
        [0, 1, 1],
        [1, 0, 0],
        [1, 0, 0],
    ]
    assert Graph.from_networkx(graph, max_size=2, weights="sign").get_params()["max_size"] == 2
    several = networkx.MultiDiGraph([(0, 1), (0, 1), (2, 2)])
    assert edges(Graph.from_networkx(several)).tolist() == [[0, 2, 0], [2, 0, 0], [0, 0, 0]]
    with pytest.raises(ValueError, match=r"nodelist must have each of the 3 nodes .* got 2 nodes"):
        Graph.from_networkx(graph, nodelist=["a", "b"])
    with pytest.raises(TypeError, match="graph must be a graph of networkx, got ndarray"):
        Graph.from_networkx(PATH)


def test_neighbours_on_a_sphere():
    random = np.random.default_rng(0)
    points = np.stack([random.uniform(-90, 90, 60), random.uniform(-180, 540, 60)], axis=1)
    phi, theta = np.deg2rad(points).T
    cosine = np.sin(phi) * np.sin(phi[:, np.newaxis])
    cosine += np.cos(phi) * np.cos(phi[:, np.newaxis]) * np.cos(theta - theta[:, np.newaxis])
    angle = np.rad2deg(np.arccos(np.clip(cosine, -1, 1)))
    near = (angle < 30) & ~np.eye(60, dtype=bool)
    sphere = {"metric": "great_circle"}
    np.testing.assert_array_equal(edges(Neighbours(points, radius=30, **sphere)) > 0, near)
    rays = np.stack([np.cos(phi) * np.cos(theta), np.cos(phi) * np.sin(theta), np.sin(phi)], axis=1)
    rays *= random.uniform(0.1, 1e3, (60, 1))  # only directions matter
    np.testing.assert_array_equal(edges(Neighbours(rays, radius=30, **sphere)) > 0, near)
    order = np.argsort(angle, axis=1)[:, 1:5]
    nearest = np.zeros((60, 60), dtype=bool)
    np.put_along_axis(nearest, order, True, axis=1)
    np.testing.assert_array_equal(edges(Neighbours(points, 4, **sphere)) > 0, nearest | nearest.T)
    assert (edges(Neighbours(points, radius=180, **sphere)) + np.eye(60) == 1).all()


def test_ties_and_points_at_one_place():
    grid = np.stack(np.meshgrid(range(4), range(4)), axis=-1).reshape(-1, 2)
    four = edges(Neighbours(grid, k=2))  # a corner has two neighbours, a side three
    expected = np.abs(grid[:, np.newaxis] - grid).sum(axis=-1) == 1
    np.testing.assert_array_equal(four > 0, expected)
    assert edges(Neighbours(np.zeros((4, 2)), k=2)).sum() == 12
    assert Neighbours(np.zeros((50, 2)), k=2).sample(50, 3).shape == (3, 50)


# --- learned similarity ----------------------------------------------------------------------


def test_independent_features_have_hardly_any_edges():
    random = np.random.default_rng(0)
    with pytest.warns(UserWarning, match="no two features are correlated"):
        counts = [
            Similarity.from_data(random.normal(size=(100, 100)), random_state=i).matrix.nnz
            for i in range(30)
        ]
    assert np.mean(counts) / 2 < 0.2


def waves(n=300, p=24, seed=0):
    """Features along a circle, of which neighbours share what they show."""
    random = np.random.default_rng(seed)
    source = random.normal(size=(n, p))
    return source + np.roll(source, 1, axis=1) + random.normal(size=(n, p)) / 3


def test_similarity_finds_the_circle_in_any_order():
    X = waves()
    order = np.random.default_rng(1).permutation(24)
    found = Similarity.from_data(X[:, order], k=2, random_state=0, max_size=3)
    expected = np.zeros((24, 24))
    place = np.argsort(order)
    expected[place, place[(np.arange(24) + 1) % 24]] = 1
    np.testing.assert_array_equal(found.matrix.toarray() > 0, expected + expected.T > 0)
    assert found.max_size == 3
    again = Similarity.from_data(X[:, order].tolist(), k=2, random_state=0, max_size=3)
    assert again == found
    # Along one axis, the other axes are further samples.
    moved = X[:, order].reshape(100, 3, 24).transpose(0, 2, 1)
    along = Similarity.from_data(moved, k=2, axis=0, random_state=0)
    np.testing.assert_array_equal(along.matrix.toarray() > 0, found.matrix.toarray() > 0)


def test_similarity_is_the_smaller_correlation_of_two_halves():
    X = waves()
    X[5:9, 3] = np.nan
    X[:, 7] = 4.0
    matrix = Similarity.from_data(X, k=3, random_state=5).matrix
    order = np.random.RandomState(5).permutation(300)
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    with np.errstate(invalid="ignore"):
        halves = [np.corrcoef(filled[rows].T) for rows in (order[:150], order[150:])]
    smaller = np.minimum(*halves)
    found = sp.coo_array(matrix)
    assert found.nnz > 30
    np.testing.assert_allclose(found.data, smaller[found.row, found.col], atol=0.01)
    assert 7 not in found.row


BAD_DATA = [
    (np.ones(9), "X must have the shape"),
    (np.ones((7, 3)), "too few"),
    (np.full((9, 3), np.inf), "infinity"),
    ([["a"]], "array of numbers"),
    (np.empty((9, 0)), "X must have the shape"),
]


@pytest.mark.parametrize(("X", "message"), BAD_DATA)
def test_bad_data_to_learn_from(X, message):
    with pytest.raises(ValueError, match=message):
        Similarity.from_data(X)


def test_bad_parameters_to_learn_with():
    with pytest.raises(ValueError, match="k must be an integer of at least 1, got 0"):
        Similarity.from_data(waves(), k=0)
    with pytest.raises(
        ValueError, match="axis must be None or an axis of a sample, from -1 to 0, got 1"
    ):
        Similarity.from_data(waves(), axis=1)
    with pytest.raises(TypeError, match="hops"):
        Similarity.from_data(waves(), hops=2)


# --- wherever patches work -------------------------------------------------------------------

EVERYWHERE = {
    "graph": Graph(np.eye(8, k=1), 2, 4, weights="sign"),
    "neighbours": Neighbours(np.arange(8.0)[:, np.newaxis], k=2),
    "similarity": Similarity(np.exp(-np.abs(np.subtract.outer(range(8), range(8)))), max_size=4),
}


@pytest.mark.parametrize("name", EVERYWHERE)
def test_estimators_take_sets(name):
    X, y = problem(300)
    dictionary = EVERYWHERE[name]
    fast = {"random_state": 0, "n_estimators": 20}
    holes = X.astype(float)
    holes[::7, 2] = np.nan
    models = [
        MorfClassifier(dictionary, **fast),
        MorfClassifier(Mixture([dictionary, Axis()]), honest=True, **fast),
        MorfClassifier(Subset(dictionary, 30), **fast),
        MorfClassifier(SharedAtoms(dictionary, 50), **fast),
        MorfBoostingClassifier(dictionary, max_iter=20, random_state=0),
        AtomRidgeClassifier(dictionary, n_atoms=100, random_state=0),
    ]
    for model in models:
        for samples in (X, holes):
            fitted = clone(model).fit(samples[:200], y[:200])
            assert fitted.score(samples[200:], y[200:]) > 0.75
            loaded = pickle.loads(pickle.dumps(fitted))
            np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    forest = models[0].fit(X, y)
    values, baseline = forest.attributions(X[:20])
    np.testing.assert_allclose(
        values.sum(axis=1) + baseline, forest.predict_proba(X[:20]), atol=1e-9
    )
    loaded = pickle.loads(pickle.dumps(forest)).dictionary_
    assert loaded == dictionary
    assert loaded != clone(dictionary).set_params(max_size=3)
    assert forest.feature_importances_[1:4].sum() > 0.4
    values = AtomFeatures(dictionary, 40, random_state=0).fit(X)
    weights = values.transform(np.eye(8, dtype=int))
    np.testing.assert_array_equal(values.transform(X), X @ weights)
    assert len(values.get_feature_names_out()) == 40


def test_parameters_are_those_of_scikit_learn():
    X, y = problem()
    forest = MorfClassifier(Graph(np.eye(8, k=1)), n_estimators=3, random_state=0)
    copy = clone(forest)
    assert copy.dictionary == forest.dictionary
    assert copy.dictionary is not forest.dictionary
    assert forest.dictionary != Graph(np.eye(8, k=2))
    search = GridSearchCV(forest, {"dictionary__max_size": [1, 3]}, cv=2).fit(X, y)
    assert set(search.cv_results_["param_dictionary__max_size"]) == {1, 3}
    sparse = Graph(sp.csr_array(np.eye(8, k=1)))
    assert sparse.set_params(hops=2) is sparse
    assert "hops=2" in repr(sparse)
    assert_same_forest(
        clone(forest).fit(X, y),
        clone(forest).set_params(dictionary=Graph(sp.csr_array(np.eye(8, k=1)))).fit(X, y),
    )


def test_later_changes_do_not_reach_a_model():
    X, y = problem()
    matrix = np.eye(8, k=1)
    forest = MorfRegressor(Graph(matrix), n_estimators=3, random_state=0).fit(X, y)
    matrix[:] = np.nan
    assert np.isfinite(forest.dictionary_.adjacency).all()
    assert forest.dictionary_.sample(8, 3).shape == (3, 8)


@pytest.mark.parametrize("wrap", [lambda part: part, lambda part: Mixture([part, Axis()])])
def test_damaged_edges_are_refused_when_a_model_is_loaded(wrap):
    X, y = problem()
    for dictionary in (
        Graph(sp.csr_array(np.eye(8, k=1))),
        Neighbours(np.arange(8.0)[:, np.newaxis], k=1),
        Patch(along={0: Similarity(sp.csr_array(np.eye(8, k=1)))}),
    ):
        model = MorfClassifier(wrap(dictionary), n_estimators=2, random_state=0).fit(X, y)
        assert pickle.loads(pickle.dumps(model)).dictionary_ == model.dictionary_
        ((part, _), *_) = model.dictionary_._flatten()
        part = part.along[0] if isinstance(part, Patch) else part
        if isinstance(part, Neighbours):
            part.coordinates = np.full((8, 1), np.nan)
        else:
            stored = part.adjacency if isinstance(part, Graph) else part.matrix
            stored.indices = stored.indices + 10**6
        with pytest.raises(ValueError, match=r"damaged model: .*(sparse|NaN)"):
            pickle.loads(pickle.dumps(model))


def test_a_large_graph_is_quick():
    n, m = 100_000, 1_000_000
    random = np.random.default_rng(0)
    ends = random.integers(0, n, (2, m))
    graph = Graph(sp.coo_array((np.ones(m), tuple(ends)), shape=(n, n)), 2, 8)
    atoms = graph.sample(n, 50_000, random_state=0)
    assert atoms.shape == (50_000, n)
    sizes = np.diff(atoms.indptr)
    assert sizes.min() == 2
    assert sizes.max() == 8
    hub = sp.coo_array(
        (np.ones(n - 1), (np.zeros(n - 1, dtype=int), np.arange(1, n))), shape=(n, n)
    )
    for parameters in ({"max_size": 8}, {"hops": 1}, {"method": "walk"}):
        assert Graph(hub, **parameters).sample(n, 50_000, random_state=0).nnz <= 50_000 * 64
