"""Patches whose elements along an axis are related by a graph, places or similarity."""

import pickle

import numpy as np
import pytest
from common import assert_same_forest
from scipy import stats
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from test_dictionary_sampling import LEVEL, draw, fit_of, patch_law, side_law
from test_relations import PATH, RING, STAR, N, set_law

import morforest
from morforest import (
    AtomFeatures,
    Graph,
    Kernel,
    MorfBoostingClassifier,
    MorfClassifier,
    Neighbours,
    Patch,
    SharedAtoms,
    Similarity,
    Subset,
)


def sides(law):
    """A law of indicators as one of index sets."""
    return {frozenset(np.flatnonzero(atom).tolist()): odds for atom, odds in law.items()}


@pytest.mark.parametrize("axis", [0, -1])
def test_each_axis_is_drawn_by_its_own_rule(axis):
    # A set of a star, and an interval: independent of each other.
    shape = (5, 4) if axis == 0 else (4, 5)
    parts = [sides(set_law(STAR, 3)), side_law(4, 1, 2, "inside")]
    law = patch_law(*(parts if axis == 0 else parts[::-1]))
    sizes = {"min_size": (None, 1), "max_size": (None, 2)}
    if axis == -1:
        sizes = {name: value[::-1] for name, value in sizes.items()}
    patches = Patch(**sizes, boundary="inside", along={axis: Graph(STAR, 3, 3)})
    assert fit_of(draw(patches, shape), law) > LEVEL


def test_relations_along_both_axes():
    parts = [sides(set_law(PATH, 2)), sides(set_law(np.ones((3, 3)), 2))]
    patches = Patch(along={0: Graph(PATH, 2, 2), 1: Similarity(np.ones((3, 3)), 2, 2)})
    assert fit_of(draw(patches, (5, 3)), patch_law(*parts)) > LEVEL


def test_all_edges_are_an_axis_without_order_and_a_ring_is_one_that_wraps():
    full = Patch(1, (None, 2), along={0: Graph(np.ones((4, 4)), 1, 3)}, boundary="inside")
    law = patch_law(side_law(4, 1, 3, contiguous=False), side_law(3, 1, 2, "inside"))
    assert fit_of(draw(full, (4, 3)), law) > LEVEL
    loose = Patch(1, (3, 2), contiguous=(False, True), boundary="inside")
    assert fit_of(draw(loose, (4, 3)), law) > LEVEL
    ring = Patch(1, (None, 2), along={0: Graph(RING, 1, 3)}, boundary="inside")
    law = patch_law(side_law(5, 1, 3, "wrap"), side_law(3, 1, 2, "inside"))
    assert fit_of(draw(ring, (5, 3)), law) > LEVEL


def test_a_relation_of_the_only_axis_is_the_relation():
    X = np.random.default_rng(0).integers(0, 9, (90, 5))
    y = X[:, :2].sum(axis=1) > 8
    for relation in (Graph(STAR, 1, 3), Graph(PATH, hops=1), Similarity(RING, 2, 4, method="walk")):
        alone, along = (
            MorfClassifier(dictionary, n_estimators=4, random_state=0).fit(X, y)
            for dictionary in (relation, Patch(along={0: relation}))
        )
        assert_same_forest(alone, along)


def test_sizes_of_the_relation_hold_along_it():
    patches = Patch(1, 1, along={1: Graph(np.ones((5, 5)), 2, 4, size_distribution=[1, 2, 1])})
    sizes = draw(patches, (3, 5)).sum(axis=(1, 2)).astype(int)
    assert stats.chisquare(np.bincount(sizes)[2:], N * np.array([1, 2, 1]) / 4).pvalue > LEVEL


def electrodes(n=200, seed=0):
    """Two places of a ring of electrodes where something lasts for some time."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, n)
    X = random.normal(size=(n, 12, 30))
    for sample, label in zip(X, y, strict=True):
        sample[np.arange(3) + 6 * label, 10:20] += 0.8
    where = random.permutation(12)  # on the ring, of each electrode
    angle = 2 * np.pi * where / 12
    return X[:, where], y, np.stack([np.cos(angle), np.sin(angle)], axis=1)


PLACES = electrodes()[2]
GRAPH = Graph(PATH)
EVERYWHERE = {
    "plain": Patch(along={0: Neighbours(PLACES, k=2, max_size=4)}),
    "weights": Patch(along={0: Neighbours(PLACES, k=2, hops=1)}, weights="uniform"),
    "pooled": Patch(along={0: Neighbours(PLACES, k=2, max_size=4)}, pool="max", window=3),
    "proportion": Patch(along={-2: Neighbours(PLACES, k=2)}, pool="proportion", window=5),
    "subset": Subset(Patch(along={0: Neighbours(PLACES, k=2)}), 100),
    "shared": SharedAtoms(Patch(along={0: Neighbours(PLACES, k=2)}), 200),
}


@pytest.mark.parametrize("name", EVERYWHERE)
def test_estimators_take_relations_along_an_axis(name):
    X, y, _ = electrodes()
    holes = X.copy()
    holes[::5, 3, 5:9] = np.nan
    forest = MorfClassifier(EVERYWHERE[name], n_estimators=20, random_state=0)
    for model in (forest, MorfBoostingClassifier(EVERYWHERE[name], max_iter=10, random_state=0)):
        for channels in (None, 1):
            fitted = clone(model).set_params(channel_axis=channels).fit(X[:150], y[:150])
            assert fitted.score(X[150:], y[150:]) > 0.8
    fitted = clone(forest).fit(holes[:150], y[:150])
    assert fitted.score(holes[150:], y[150:]) > 0.8
    loaded = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    assert loaded.dictionary_ == EVERYWHERE[name]
    values, baseline = fitted.attributions(X[:9])
    sums = values.sum(axis=(1, 2)) + baseline
    np.testing.assert_allclose(sums, fitted.predict_proba(X[:9]), atol=1e-9)
    assert values.shape == (9, 12, 30, 2)


def test_relations_are_kept_in_files(tmp_path):
    X, y, _ = electrodes(60)
    similar = Similarity(csr_array(np.eye(12, k=1)), max_size=3)
    for relation in (similar, Neighbours(PLACES, k=2), Graph(np.eye(12, k=1), hops=(0, 2))):
        model = MorfClassifier(Patch(along={0: relation}), n_estimators=3, random_state=0)
        model.fit(X, y).save(tmp_path / "model.safetensors")
        loaded = morforest.load(tmp_path / "model.safetensors")
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        assert loaded.dictionary_ == model.dictionary_
        assert_same_forest(clone(loaded).fit(X, y), model)


def test_pooled_atoms_move_over_time_alone():
    X = np.random.default_rng(0).integers(-9, 10, (40, 4, 15))
    relation = Graph(np.eye(4, k=1), 4, 4)  # all electrodes
    patches = Patch((None, 3), (None, 3), along={0: relation}, pool="max", window=1.0)
    values = AtomFeatures(patches, 3, random_state=0).fit_transform(X)
    sums = np.array([np.convolve(row, np.ones(3), mode="valid").max() for row in X.sum(axis=1)])
    np.testing.assert_array_equal(values, np.repeat(sums[:, np.newaxis], 3, axis=1))


def test_parameters_are_those_of_scikit_learn():
    patches = EVERYWHERE["plain"]
    copy = clone(patches)
    assert copy == patches
    assert copy.along[0] is not patches.along[0]
    assert copy != Patch(along={0: Neighbours(PLACES, k=3, max_size=4)})
    assert patches.set_params(max_size=None).get_params()["along"] is patches.along
    assert "along={0: Neighbours(" in repr(patches)
    copy.set_params(along__0__max_size=3, max_size=(None, 7))
    assert copy.get_params()["along__0__max_size"] == copy.along[0].max_size == 3
    assert copy.max_size == (None, 7)
    assert clone(copy) == copy != patches
    copy.set_params(along={-2: GRAPH}).set_params(**{"along__-2": Graph(RING)})
    assert copy.along == {-2: Graph(RING)}
    with pytest.raises(ValueError, match=r"Invalid parameter 'along__1__k': .* axes \[-2\]"):
        copy.set_params(along__1__k=3)
    with pytest.raises(ValueError, match="Invalid parameter 'size'"):
        copy.set_params(size=3)
    X, y, _ = electrodes(80)
    forest = MorfClassifier(patches, n_estimators=3, random_state=0)
    search = GridSearchCV(forest, {"dictionary__along__0__max_size": [1, 3]}, cv=2).fit(X, y)
    assert set(search.cv_results_["param_dictionary__along__0__max_size"]) == {1, 3}


BAD = {
    "no dict": (Patch(along=GRAPH), "along must be None or a dict"),
    "no axis": (Patch(along={2: GRAPH}), r"along has the axis 2, .*\(5, 6\) are -2 to 1"),
    "a word": (Patch(along={"x": GRAPH}), "along has the axis 'x'"),
    "a bool": (Patch(along={False: GRAPH}), "along has the axis False"),
    "twice": (Patch(along={0: GRAPH, -2: GRAPH}), "along names axis 0 twice"),
    "no relation": (
        Patch(along={0: PATH}),
        r"along\[0\] must be a Graph, Neighbours or Similarity",
    ),
    "other length": (
        Patch(along={1: GRAPH}),
        r"Graph has 5 nodes, .* have 6 elements along axis 1",
    ),
    "weights": (
        Patch(along={0: Graph(PATH, weights="sign")}),
        "has weights='sign', which all axes",
    ),
    "bad edges": (Patch(along={0: Graph(-PATH)}), "adjacency has negative entries"),
    "bad sizes": (Patch(along={0: Graph(PATH, 9)}), "min_size must be an integer from 1 to 5"),
    "bad odds": (Patch(along={0: Graph(PATH, size_distribution=[1])}), "5 probabilities"),
    "bad method": (Patch(along={0: Graph(PATH, method="fly")}), "method must be one of"),
    "a size": (Patch((2, 1), along={0: GRAPH}), "min_size=.* has a size for axis 0.*give None"),
    "nothing moves": (
        Patch(along={0: GRAPH, 1: Graph(np.ones((6, 6)))}, pool="max"),
        "needs an axis along which atoms can move",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_relations_along_an_axis_are_refused(name):
    dictionary, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        MorfClassifier(dictionary, n_estimators=2).fit(np.ones((10, 5, 6)), np.arange(10) % 2)


def test_other_boxes_have_no_relations():
    with pytest.raises(TypeError, match="along"):
        Kernel("gaussian", along={0: GRAPH})
