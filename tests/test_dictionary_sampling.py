"""What each dictionary samples, against the formulae of `docs/design.md`.

Seeds are fixed, so a test passes always or never; the level only says how surprising the sample
may be. `law` in a name is a table from atom to probability, written down from the formula.
"""

from functools import reduce
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from morforest import (
    Atoms,
    Axis,
    Difference,
    Gradient,
    Haar,
    Kernel,
    Magnitude,
    Mixture,
    Pair,
    Patch,
    Raw,
    SparseOblique,
    Square,
)
from morforest.dictionary._base import resolve
from morforest.dictionary._kernels import gabor_kernels, triple_kernels
from morforest.dictionary._shape import SampleShape

LEVEL = 1e-3
N_DRAWS = 20_000


def draw(dictionary, shape, n_atoms=N_DRAWS, seed=0):
    """Atoms as an array of shape (n, *shape)."""
    atoms = dictionary.sample(shape, n_atoms, random_state=seed)
    assert atoms.shape[1] == np.prod(shape)
    return atoms.toarray().reshape(-1, *shape)


def draw_in_node(dictionary, shape, n_atoms, key=0):
    """Atoms as one node draws them: finite dictionaries run out. Not public, so from the core."""
    plan = resolve(dictionary, shape)
    drawn = plan.build(direct=True).sample(key, n_atoms, True)
    atoms = np.zeros((len(drawn), int(np.prod(shape))))
    atoms[np.repeat(np.arange(len(atoms)), drawn.count), drawn.cell] = drawn.weight
    return atoms.reshape(-1, *shape)


def chi_square(counts, probabilities):
    """The p-value of counts under a law; cells expected less than five times are merged."""
    expected = np.asarray(probabilities, dtype=float) * np.sum(counts)
    counts = np.asarray(counts, dtype=float)
    rare = expected < 5
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    assert len(counts) > 1
    return stats.chisquare(counts, expected).pvalue


def fit_of(atoms, law):
    """The p-value of sampled atoms under a law; an atom outside of it fails at once."""
    counts = dict.fromkeys(law, 0)
    rows, repeats = np.unique(atoms.reshape(len(atoms), -1), axis=0, return_counts=True)
    for atom, repeat in zip(rows, repeats, strict=True):
        assert tuple(atom) in law
        counts[tuple(atom)] += repeat
    assert sum(law.values()) == pytest.approx(1.0)
    return chi_square(list(counts.values()), list(law.values()))


# --- patches ---------------------------------------------------------------------------------


def side_law(length, min_size, max_size, boundary="zero", contiguous=True):
    """The probability of each index set of one axis."""
    sizes = range(min_size, max_size + 1)
    law = {}
    for size in sizes:
        if not contiguous:
            places = list(combinations(range(length), size))
        else:
            first, last = {
                "zero": (1 - size, length - 1),
                "inside": (0, length - size),
                "wrap": (0, length - 1),
            }[boundary]
            places = [range(start, start + size) for start in range(first, last + 1)]
        for place in places:
            if boundary == "wrap":
                place = [index % length for index in place]
            indices = frozenset(index for index in place if 0 <= index < length)
            law[indices] = law.get(indices, 0.0) + 1 / len(sizes) / len(places)
    return law


def patch_law(*sides):
    """The probability of each indicator of a product of sides."""
    law = {}
    for choice in product(*(side.items() for side in sides)):
        atom = np.ones(1)
        for (indices, _), side in zip(choice, sides, strict=True):
            length = 1 + max(max(other) for other in side)
            atom = np.outer(atom, [index in indices for index in range(length)]).ravel()
        law[tuple(atom)] = np.prod([probability for _, probability in choice])
    return law


@pytest.mark.parametrize("boundary", ["zero", "inside", "wrap"])
@pytest.mark.parametrize(
    ("shape", "min_size", "max_size"),
    [((7,), 1, 4), ((5,), 3, 3), ((4,), 4, 4), ((4, 5), (1, 2), (3, 2)), ((2, 3, 2), 1, (1, 2, 2))],
)
def test_contiguous_patches_follow_their_law(shape, min_size, max_size, boundary):
    dictionary = Patch(min_size=min_size, max_size=max_size, boundary=boundary)
    lows = np.broadcast_to(min_size, len(shape)).tolist()
    highs = np.broadcast_to(max_size, len(shape)).tolist()
    sides = [side_law(*limits, boundary) for limits in zip(shape, lows, highs, strict=True)]
    law = patch_law(*sides)
    atoms = draw(dictionary, shape)
    if len(law) == 1:
        np.testing.assert_array_equal(atoms, 1)
    else:
        assert fit_of(atoms, law) > LEVEL


def test_a_wrong_law_is_noticed():
    # The power of the test above: the paper's rule, whose start may reach W, differs by one
    # position in 19.
    atoms = draw(Patch(min_size=3, max_size=3), (16,))
    law = patch_law(side_law(16, 3, 3))
    assert fit_of(atoms, law) > LEVEL
    counts = atoms.sum(axis=0)
    assert abs(counts / N_DRAWS - 3 / 18).max() < 0.01
    assert abs(counts / N_DRAWS - 3 / 19).max() > 0.01
    shifted = {atom: 0.5 if not any(atom[3:]) else 1.0 for atom in law}
    total = sum(shifted.values())
    assert fit_of(atoms, {atom: value / total for atom, value in shifted.items()}) < 1e-9


def deviations(counts, probabilities):
    """How many standard deviations each count is off; cells of one atom depend on each other."""
    probabilities = np.asarray(probabilities)
    return (counts - N_DRAWS * probabilities) / np.sqrt(
        N_DRAWS * probabilities * (1 - probabilities)
    )


def coverage(length, size, boundary):
    """The probability that a patch of this size covers each index of an axis."""
    if boundary == "zero":
        return np.full(length, size / (length + size - 1))
    if boundary == "wrap":
        return np.full(length, size / length)
    starts = np.arange(length - size + 1)
    covered = [((starts <= index) & (index < starts + size)).mean() for index in range(length)]
    return np.array(covered)


@pytest.mark.parametrize("boundary", ["zero", "inside", "wrap"])
def test_coverage_of_each_cell(boundary):
    shape, size = (9, 6), (4, 3)
    atoms = draw(Patch(min_size=size, max_size=size, boundary=boundary), shape)
    expected = np.multiply.outer(*map(coverage, shape, size, [boundary] * 2))
    off = deviations(atoms.sum(axis=0), expected)
    assert abs(off).max() < 4.5
    if boundary == "inside":
        assert expected[0, 0] < expected[4, 2] / 4
    else:
        # The border is seen as often as the centre.
        assert np.ptp(expected) < 1e-12


def test_patch_sizes_are_uniform_and_independent():
    # Inside the axes nothing is clipped, so that a patch shows its size.
    atoms = draw(Patch(min_size=(2, 1), max_size=(6, 4), boundary="inside"), (10, 8))
    heights = atoms.any(axis=2).sum(axis=1)
    widths = atoms.any(axis=1).sum(axis=1)
    table = np.zeros((5, 4))
    np.add.at(table, (heights - 2, widths - 1), 1)
    assert chi_square(table.ravel(), np.full(20, 1 / 20)) > LEVEL


def test_patches_are_indicators_and_never_empty():
    atoms = draw(Patch(min_size=1, max_size=5), (5, 5), 3000)
    assert set(np.unique(atoms)) == {0, 1}
    assert (atoms.sum(axis=(1, 2)) > 0).all()


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_rows_that_need_not_touch_are_distinct_and_uniform(size):
    dictionary = Patch(min_size=(size, 2), max_size=(size, 2), contiguous=(False, True))
    atoms = draw(dictionary, (5, 4))
    rows = atoms.any(axis=2)
    # Distinct rows: a row drawn twice would leave fewer than `size`.
    assert (rows.sum(axis=1) == size).all()
    law = patch_law(side_law(5, size, size, contiguous=False), side_law(4, 2, 2))
    assert fit_of(atoms, law) > LEVEL


def test_no_axis_need_be_contiguous():
    dictionary = Patch(min_size=(1, 2), max_size=(2, 3), contiguous=False)
    law = patch_law(side_law(4, 1, 2, contiguous=False), side_law(3, 2, 3, contiguous=False))
    assert fit_of(draw(dictionary, (4, 3)), law) > LEVEL


def log_uniform(low, high):
    """The law of a whole number k whose logarithm is uniform: log(k + 1) - log(k)."""
    odds = np.log(np.arange(low, high + 1) + 1.0) - np.log(np.arange(low, high + 1))
    return odds / odds.sum()


def test_sizes_on_a_logarithmic_scale():
    atoms = draw(
        Patch(min_size=(1, 2), max_size=(1, 9), boundary="inside", size_distribution="log"), (2, 12)
    )
    widths = atoms.any(axis=1).sum(axis=1).astype(int)
    counts = np.bincount(widths, minlength=10)
    assert counts[:2].sum() == 0
    assert chi_square(counts[2:], log_uniform(2, 9)) > LEVEL
    assert chi_square(counts[2:], np.full(8, 1 / 8)) < 1e-9


# --- boxes side by side ----------------------------------------------------------------------

LOBES = {"two": (1, -1), "three": (1, -2, 1)}


def add_to(law, key, probability):
    key = tuple(np.ravel(key))
    law[key] = law.get(key, 0.0) + probability


def lobes_law(length, low, high, weights):
    """The probability of each factor of an atom along one axis."""
    law = {}
    for size in range(low, high + 1):
        cut = min(size, length // len(weights))
        places = length - cut * len(weights) + 1
        for start in range(places):
            factor = np.zeros(length)
            factor[start : start + cut * len(weights)] = np.repeat(weights, cut)
            add_to(law, factor, 1 / (high - low + 1) / places)
    return law


def haar_law(shape, low, high, kinds, lobed):
    law = {}
    for kind in kinds:
        for chosen in lobed:
            factors = [
                lobes_law(length, low, high, LOBES[kind] if axis == chosen else (1,)).items()
                for axis, length in enumerate(shape)
            ]
            for parts in product(*factors):
                atom = reduce(np.multiply.outer, [np.array(factor) for factor, _ in parts])
                add_to(law, atom, np.prod([p for _, p in parts]) / len(kinds) / len(lobed))
    return law


@pytest.mark.parametrize(
    ("shape", "low", "high", "kinds", "lobed"),
    [
        ((8,), 1, 3, ["two"], [0]),
        ((7,), 1, 3, ["three"], [0]),  # the largest are cut
        ((7,), 2, 2, ["two", "three"], [0]),
        ((3, 4), 1, 2, ["two"], [0, 1]),
        ((3, 6), 1, 2, ["three", "two"], [1]),
        ((2, 2, 3), 1, 1, ["two"], [0, 1, 2]),
    ],
)
def test_haar_atoms_follow_their_law(shape, low, high, kinds, lobed):
    dictionary = Haar(low, high, lobes=kinds, axes=lobed)
    law = haar_law(shape, low, high, kinds, lobed)
    assert fit_of(draw(dictionary, shape), law) > LEVEL
    assert all(sum(atom) == 0 for atom in law)


def test_haar_atoms_stand_along_all_axes_but_that_of_channels():
    atoms = Haar(1, 1, lobes="two").sample((3, 4), 500, channel_axis=1).toarray().reshape(-1, 3, 4)
    assert ((atoms != 0).any(axis=2).sum(axis=1) == 1).all()
    atoms = Haar(1, 1, lobes="two").sample((3, 4), 500).toarray().reshape(-1, 3, 4)
    assert set((atoms != 0).any(axis=2).sum(axis=1)) == {1, 2}


# --- pairs -----------------------------------------------------------------------------------


def pair_law(shape, low, high, reach, views=1):
    sides = []
    for length, far in zip(shape, reach, strict=True):
        side = {}
        for size in range(low, high + 1):
            for start, step in product(range(length - size + 1), range(-far, far + 1)):
                moved = min(max(start + step, 0), length - size)
                share = 1 / (high - low + 1) / (length - size + 1) / (2 * far + 1)
                add_to(side, (size, start, moved), share)
        sides.append(side.items())
    again = 0.5 / views if views > 1 else 0.0
    law = {}
    for first, second in product(range(views), repeat=2):
        of_views = (again + 0.5 * (first == second) if views > 1 else 1.0) / views
        for parts in product(*sides):
            boxes = [tuple(slice(p[k], p[k] + p[0]) for p, _ in parts) for k in (1, 2)]
            atom = np.zeros((views, *shape))
            atom[(first, *boxes[0])] = 1
            if (first, boxes[0]) != (second, boxes[1]):
                atom[(second, *boxes[1])] -= 1
            add_to(law, atom, of_views * np.prod([p for _, p in parts]))
    return law


@pytest.mark.parametrize(
    ("shape", "low", "high", "reach"),
    [((7,), 1, 3, [2]), ((5,), 2, 2, [4]), ((3, 4), 1, 2, [1, 0]), ((2, 3), 1, 1, [1, 2])],
)
def test_pairs_follow_their_law(shape, low, high, reach):
    atoms = draw(Pair(low, high, reach=tuple(reach)), shape)
    assert fit_of(atoms, pair_law(shape, low, high, reach)) > LEVEL


def test_pairs_across_views_follow_their_law():
    dictionary = Pair(1, 2, reach=1, views=[Raw(), Difference()])
    atoms = dictionary.sample(4, N_DRAWS, random_state=0).toarray()
    assert fit_of(atoms, pair_law((4,), 1, 2, [1], views=2)) > LEVEL


def test_samples_of_pairs_hold_each_feature_once():
    atoms = Pair(2, 3, reach=2).sample((4, 5), 300, random_state=0)
    assert atoms.has_canonical_format
    assert (atoms.data != 0).all()


# --- views -----------------------------------------------------------------------------------


def test_views_are_drawn_equally_often_and_listed_in_order():
    views = [Square(), Gradient(3), Raw(), Magnitude(), Raw()]  # six, for one is there twice
    atoms = Patch(1, 1, views=views).sample((2, 2), N_DRAWS, random_state=0)
    assert atoms.shape[1] == 6 * 4
    assert fit_of(atoms.toarray(), {tuple(unit): 1 / 24 for unit in np.eye(24)}) > LEVEL


def test_parts_of_a_mixture_share_views():
    parts = [Haar(views=[Square(), Raw()]), Axis(), Patch(1, 1, views=Difference())]
    atoms = Mixture(parts).sample(5, 3000, random_state=0).toarray().reshape(-1, 3, 5)
    signed = (atoms < 0).any(axis=(1, 2))
    assert not atoms[signed, 2].any()
    plain = atoms[~signed]
    assert not plain[:, 0].any()
    assert plain[:, 1].any()
    assert plain[:, 2].any()


# --- kernels ---------------------------------------------------------------------------------


def kernel_law(kernels, shape, dilations=(1.0,)):
    """Kernels with as many axes as a sample; probabilities of dilations 1, 2, ..."""
    law = {}
    for kernel, (index, share) in product(kernels, enumerate(dilations)):
        if share == 0:
            continue
        rate = index + 1
        sizes = [(k - 1) * rate + 1 for k in kernel.shape]
        starts = [range(w - size + 1) for w, size in zip(shape, sizes, strict=True)]
        for start in product(*starts):
            atom = np.zeros(shape)
            box = tuple(slice(s, s + k, rate) for s, k in zip(start, sizes, strict=True))
            atom[box] = kernel
            add_to(law, atom, share / len(kernels) / np.prod([len(places) for places in starts]))
    return law


def test_kernels_follow_their_law():
    own = [np.array([[1, 0, -2]]), np.array([[1], [3]])]
    atoms = draw(Kernel([own[0][0], own[1]]), (2, 5))
    assert fit_of(atoms, kernel_law(own, (2, 5))) > LEVEL


def test_dilations_follow_their_law():
    kernel = np.array([1, 2, -1])
    atoms = draw(Kernel(kernel, dilation="log"), (12,))
    assert fit_of(atoms, kernel_law([kernel], (12,), log_uniform(1, 5))) > LEVEL
    atoms = draw(Kernel(kernel, dilation=4), (12,))
    assert fit_of(atoms, kernel_law([kernel], (12,), [0, 0, 0, 1])) > LEVEL


def test_signs_are_fair():
    atoms = draw(Kernel("sign", 2, (3, 2)), (3, 2))
    law = {}
    for height, width in ((2, 2), (3, 2)):
        starts = 3 - height + 1
        for signs in product([-1, 1], repeat=height * width):
            for start in range(starts):
                atom = np.zeros((3, 2))
                atom[start : start + height] = np.reshape(signs, (height, width))
                add_to(law, atom, 0.5 / starts / 2 ** (height * width))
    assert fit_of(atoms, law) > LEVEL


def test_kernels_of_three_among_nine_cells():
    kernels = triple_kernels()
    assert len({tuple(kernel) for kernel in kernels}) == len(kernels) == 84
    for kernel in kernels:
        assert sorted(kernel) == [0] * 6 + [1] * 3
    dictionary = Kernel("triple", dilation="log")
    atoms = draw(dictionary, (11,))
    assert fit_of(atoms, kernel_law(kernels, (11,))) > LEVEL
    # Along the last axis but for that of the channels.
    atoms = dictionary.sample((9, 2), 500, channel_axis=2).toarray().reshape(-1, 9, 2)
    assert ((atoms != 0).any(axis=1).sum(axis=1) == 1).all()
    assert ((atoms != 0).sum(axis=(1, 2)) == 3).all()


def test_a_gaussian_kernel_is_a_bell():
    (kernel,) = Kernel("gaussian", (5, 8), (5, 8))._kernels(SampleShape((20, 20)))
    y, x = np.mgrid[-2:2:5j, -3.5:3.5:8j]
    bell = np.exp(-0.5 * ((y / (5 / 4)) ** 2 + (x / (8 / 4)) ** 2))
    np.testing.assert_allclose(kernel, 64 * bell / bell.max(), atol=0.5)
    assert kernel.max() == 64


def test_gabor_kernels_are_waves_under_a_bell():
    y, x = np.mgrid[-4:4:9j, -4:4:9j] / 9
    expected = []
    for angle in np.pi * np.arange(8) / 8:
        for periods, phase in product((1, 2), (0, np.pi / 2)):
            along = x * np.cos(angle) + y * np.sin(angle)
            wave = np.exp(-8 * (x * x + y * y)) * np.cos(2 * np.pi * periods * along - phase)
            expected.append(64 * wave / abs(wave).max())
    np.testing.assert_allclose(gabor_kernels((9, 9), [0, 1]), expected, atol=0.5 + 1e-9)
    # Series have one direction, and short kernels no fast waves.
    assert len(gabor_kernels((9,), [0])) == 4
    assert len(gabor_kernels((3,), [0])) == 2
    atoms = Kernel("gabor", 3, 5).sample((3, 20, 20), 50, channel_axis=1).toarray()
    assert ((atoms.reshape(-1, 3, 400) != 0).any(axis=2).sum(axis=1) == 1).all()


# --- sparse oblique --------------------------------------------------------------------------


def conditioned(probabilities):
    return probabilities / probabilities.sum()


@pytest.mark.parametrize(("rate", "n_features"), [(3.0, 40), (0.2, 10), (8.0, 6), (1.5, 1)])
def test_poisson_number_of_nonzeros(rate, n_features):
    atoms = draw(SparseOblique(rate=rate), (n_features,))
    counts = np.bincount((atoms != 0).sum(axis=1), minlength=n_features + 1)
    assert counts[0] == 0
    law = conditioned(stats.poisson.pmf(np.arange(1, n_features + 1), rate))
    assert n_features == 1 or chi_square(counts[1:], law) > LEVEL


@pytest.mark.parametrize(("density", "n_features"), [(0.1, 40), (0.02, 10), (0.7, 6), (0.3, 1)])
def test_binomial_number_of_nonzeros(density, n_features):
    atoms = draw(SparseOblique(density=density), (n_features,))
    counts = np.bincount((atoms != 0).sum(axis=1), minlength=n_features + 1)
    assert counts[0] == 0
    law = conditioned(stats.binom.pmf(np.arange(1, n_features + 1), n_features, density))
    assert n_features == 1 or chi_square(counts[1:], law) > LEVEL


@pytest.mark.parametrize("dictionary", [SparseOblique(rate=2.0), SparseOblique(density=0.3)])
def test_signs_are_fair_and_features_uniform(dictionary):
    atoms = draw(dictionary, (4, 2))
    assert set(np.unique(atoms)) == {-1, 0, 1}
    flat = atoms.reshape(len(atoms), -1)
    positive, negative = (flat == 1).sum(axis=0), (flat == -1).sum(axis=0)
    assert chi_square(np.concatenate([positive, negative]), np.full(16, 1 / 16)) > LEVEL
    # Pairs, with their signs: neither may depend on the other.
    pairs = flat[(flat != 0).sum(axis=1) == 2]
    law = {}
    for places in combinations(range(8), 2):
        for signs in product([-1, 1], repeat=2):
            atom = np.zeros(8)
            atom[list(places)] = signs
            law[tuple(atom)] = 1 / (28 * 4)
    assert fit_of(pairs, law) > LEVEL


# --- finite dictionaries ---------------------------------------------------------------------

MATRIX = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [0, -2, 0, 1], [1, 1, 1, 1], [0, 0, 0, 3]])


def test_a_node_draws_each_feature_once():
    atoms = draw_in_node(Axis(), (3, 4), 12)
    np.testing.assert_array_equal(atoms.sum(axis=0), 1)
    assert (atoms.reshape(12, -1).sum(axis=1) == 1).all()
    # An exhausted dictionary gives no atom.
    np.testing.assert_array_equal(draw_in_node(Axis(), (3, 4), 100), atoms)


def test_orders_of_features_are_uniform():
    orders = [draw_in_node(Axis(), (4,), 4, key).argmax(axis=1) for key in range(2400)]
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 24
    assert chi_square(counts, np.full(24, 1 / 24)) > LEVEL


def test_a_node_draws_each_atom_without_probability_once():
    firsts = np.zeros(5)
    for key in range(2000):
        atoms = draw_in_node(Atoms(MATRIX), (4,), 9, key)
        assert sorted(map(tuple, atoms)) == sorted(map(tuple, MATRIX))
        firsts[(atoms[0] == MATRIX).all(axis=1).argmax()] += 1
    assert chi_square(firsts, np.full(5, 1 / 5)) > LEVEL


@pytest.mark.parametrize("dictionary", [Axis(), Atoms(np.eye(12))], ids=["axis", "atoms"])
def test_a_sample_outside_of_a_node_is_with_replacement(dictionary):
    atoms = draw(dictionary, (3, 4))
    assert len(atoms) == N_DRAWS
    assert fit_of(atoms, {tuple(unit): 1 / 12 for unit in np.eye(12)}) > LEVEL


def test_atoms_follow_their_probabilities():
    probabilities = np.array([0.5, 0.25, 0.15, 0.0, 0.1])
    atoms = draw(Atoms(MATRIX, probabilities=probabilities), (4,))
    law = {
        tuple(atom): probability
        for atom, probability in zip(MATRIX, probabilities, strict=True)
        if probability > 0
    }
    assert fit_of(atoms, law) > LEVEL


# --- mixtures --------------------------------------------------------------------------------


def labelled(value):
    """A dictionary whose atoms carry their component's label."""
    return Atoms(np.diag([value, value, value]), probabilities=[0.2, 0.3, 0.5])


def test_mixture_shares_follow_the_weights():
    mixture = Mixture([labelled(1), labelled(2), labelled(3)], weights=[0.6, 0.3, 0.1])
    law = {}
    for label, share in [(1, 0.6), (2, 0.3), (3, 0.1)]:
        for place, probability in enumerate([0.2, 0.3, 0.5]):
            law[tuple(label * np.eye(3)[place])] = share * probability
    assert fit_of(draw(mixture, (3,)), law) > LEVEL


def test_exhausted_parts_of_a_mixture_give_no_atom():
    mixture = Mixture(
        [Patch(min_size=2, max_size=2, boundary="wrap"), Axis()],
        weights=[0.9, 0.1],
    )
    n_draws = 2000
    atoms = draw_in_node(mixture, (8,), n_draws)
    single = atoms.sum(axis=1) == 1
    assert single.sum() == 8
    np.testing.assert_array_equal(atoms[single].sum(axis=0), 1)
    assert stats.binomtest(int((~single).sum()), n_draws, 0.9).pvalue > LEVEL
    # Outside of a node nothing is exhausted.
    single = draw(mixture, (8,), n_draws).sum(axis=1) == 1
    assert len(single) == n_draws
    assert stats.binomtest(int(single.sum()), n_draws, 0.1).pvalue > LEVEL


# --- the sample itself -----------------------------------------------------------------------

DICTIONARIES = [
    Axis(),
    SparseOblique(rate=3.0),
    SparseOblique(density=0.1),
    Patch(min_size=1, max_size=3),
    Mixture([Patch(min_size=1, max_size=2), Axis()], weights=[0.9, 0.1]),
    Haar(),
    Pair(),
    Kernel("sign", dilation="log"),
]


@pytest.mark.parametrize("dictionary", DICTIONARIES, ids=repr)
def test_a_sample_is_a_function_of_its_seed(dictionary):
    shape = (6, 7)
    first = draw(dictionary, shape, 30, seed=1)
    np.testing.assert_array_equal(first, draw(dictionary, shape, 30, seed=1))
    other = draw(dictionary, shape, 30, seed=2)
    assert first.shape != other.shape or (first != other).any()
    # A shorter sample is the beginning of a longer one.
    np.testing.assert_array_equal(first[:10], draw(dictionary, shape, 10, seed=1)[:10])
