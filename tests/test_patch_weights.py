"""What the features of a patch weigh, against the formulae of `docs/design.md`."""

from itertools import product

import numpy as np
import pytest
from scipy import stats
from test_dictionary_sampling import LEVEL, chi_square, draw, fit_of

from morforest import AtomFeatures, Kernel, MorfClassifier, Patch, Subset
from morforest.dictionary._weights import gabor_kernels

FIXED = {"boundary": "inside"}


def test_signs_are_fair_and_independent():
    atoms = draw(Patch(3, 3, weights="sign", **FIXED), (4,))
    law = {}
    for start in range(2):
        for signs in product([1.0, -1.0], repeat=3):
            law[tuple(np.concatenate([np.zeros(start), signs, np.zeros(1 - start)]))] = 1 / 16
    assert fit_of(atoms, law) > LEVEL


def drawn_weights(weights):
    atoms = draw(Patch((2, 3), (2, 3), weights=weights, **FIXED), (2, 3), 20_000)
    return atoms.reshape(len(atoms), -1)


def test_uniform_weights():
    weights = drawn_weights("uniform")
    assert weights.min() == 1
    assert weights.max() == 256
    assert chi_square(np.bincount(weights.ravel().astype(int))[1:], np.full(256, 1 / 256)) > LEVEL
    assert abs(np.corrcoef(weights.T) - np.eye(6)).max() < 0.03


def test_normal_weights():
    weights = drawn_weights("gaussian")
    assert abs(weights).max() <= 256
    assert (weights != 0).all()
    values, counts = np.unique(weights, return_counts=True)
    density = stats.norm.pdf(values / 64)
    assert chi_square(counts, density / density.sum()) > LEVEL
    assert abs(np.corrcoef(weights.T) - np.eye(6)).max() < 0.03
    # The steps are too small to be seen as such.
    assert abs(weights.std() / 64 - 1) < 0.01


def test_waves_are_those_of_the_kernels():
    size = (4, 3)
    law = {}
    kernels = gabor_kernels(size, [0, 1])
    for kernel in kernels:
        law[tuple(kernel.ravel())] = law.get(tuple(kernel.ravel()), 0) + 1 / len(kernels)
    assert fit_of(draw(Patch(size, size, weights="gabor", **FIXED), size), law) > LEVEL
    # Along an axis without order, waves do not vary.
    loose = draw(Patch(size, size, weights="gabor", contiguous=(False, True)), (4, 5), 50)
    assert (np.ptp(loose, axis=1) == 0).all()
    assert (np.ptp(loose, axis=2) > 0).any()
    one = Kernel("gabor", size, size).sample(size, 1000, random_state=1).toarray()
    assert set(map(tuple, one)) == set(law)


def numbered(size):
    """Weights that tell the place of each feature."""
    return np.arange(1, np.prod(size) + 1).reshape(size)


@pytest.mark.parametrize("boundary", ["zero", "inside", "wrap"])
def test_an_array_lies_where_its_box_lies(boundary):
    atoms = draw(Patch(3, 3, boundary=boundary, weights=numbered), (5,))
    law = {}
    starts = {"zero": range(-2, 5), "inside": range(3), "wrap": range(5)}[boundary]
    for start in starts:
        atom = np.zeros(5)
        for place in range(3):
            index = (start + place) % 5 if boundary == "wrap" else start + place
            if 0 <= index < 5:
                atom[index] = place + 1
        law[tuple(atom)] = 1 / len(starts)
    assert fit_of(atoms, law) > LEVEL


def test_arrays_of_a_list_are_equally_likely_and_fit_each_size():
    def several(size):
        return [numbered(size), -numbered(size), np.ones(size)]

    atoms = draw(Patch((1, 2), (2, 3), boundary="inside", weights=several), (2, 3))
    law = {}
    for rows, columns in product([1, 2], [2, 3]):
        for array in several((rows, columns)):
            places = list(product(range(3 - rows), range(4 - columns)))
            for i, j in places:
                atom = np.zeros((2, 3))
                atom[i : i + rows, j : j + columns] = array
                key = tuple(atom.ravel())
                law[key] = law.get(key, 0) + 1 / 4 / 3 / len(places)
    assert fit_of(atoms, law) > LEVEL


def test_fractions_become_whole_numbers_of_at_most_256():
    def fractions(size):
        return np.linspace(-0.3, 0.7, size[0])

    atom = draw(Patch(5, 5, boundary="inside", weights=fractions), (5,), 1)[0]
    np.testing.assert_array_equal(atom, np.rint(np.linspace(-0.3, 0.7, 5) / 0.7 * 256))


def test_pooled_patches_with_weights_are_convolutions():
    random = np.random.default_rng(0)
    X = random.integers(-9, 10, (40, 12))
    patches = Patch(3, 3, weights=weigh_three, pool="max", window=1.0)
    features = AtomFeatures(patches, 5, random_state=0)
    values = features.fit_transform(X)
    expected = np.array([np.convolve(row, [2, -3, 1], mode="valid").max() for row in X])
    np.testing.assert_array_equal(values, np.repeat(expected[:, np.newaxis], 5, axis=1))


def weigh_three(size):
    return np.array([1, -3, 2])


def test_weights_that_are_all_zero_where_the_data_are_do_no_harm():
    X = np.random.default_rng(0).integers(0, 5, (60, 4))
    y = X[:, 0] > X[:, 3]

    def edge(size):  # only the first place has weight
        return np.eye(1, size[0])[0]

    for dictionary in (Patch(3, 4, weights=edge), Subset(Patch(3, 4, weights=edge), 30)):
        forest = MorfClassifier(dictionary, n_estimators=10, random_state=0).fit(X, y)
        assert forest.score(X, y) > 0.9
        assert all((tree.atoms.data == 1).all() for tree in forest.splits_)


@pytest.mark.parametrize(
    ("weights", "accuracy"),
    [("sign", 0.7), ("uniform", 0.7), ("gaussian", 0.7), ("gabor", 0.6), (numbered, 0.7)],
)
def test_forests_of_weighted_patches_learn(weights, accuracy):
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 8, 8))
    y = X[:, 2:4, 3:6].sum(axis=(1, 2)) > 0
    model = MorfClassifier(Patch(2, 3, weights=weights), n_estimators=40, random_state=0)
    assert model.fit(X[:200], y[:200]).score(X[200:], y[200:]) > accuracy
    assert model.feature_importances_.shape == (8, 8)
    assert model.feature_importances_[2:4, 3:6].mean() > 1.2 * model.feature_importances_.mean()


WRONG = [
    ("cauchy", r"weights must be None, one of 'sign', .*got 'cauchy'"),
    (3, "weights must be .*got 3"),
    ([1, 2], r"weights must be .*got \[1, 2\]"),
    (lambda size: np.ones(7), r"called with the size \(1,\) must return an array.*shape \(7,\)"),
    (lambda size: "no", "must return an array of this shape"),
    (lambda size: np.full(size, np.nan), "NaN or infinity"),
    (lambda size: np.zeros(size), "only zeros"),
    (lambda size: [], "must return an array of this shape"),
]


@pytest.mark.parametrize(("weights", "message"), WRONG)
def test_wrong_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        Patch(1, 3, weights=weights).sample(9, 1)


def test_too_many_sizes_are_refused():
    with pytest.raises(ValueError, match="choose fewer or smaller sizes"):
        Patch(1, 300, weights="gabor").sample((300, 300), 1)
