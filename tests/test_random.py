"""The random numbers, and that trees do not share them.

Trees whose streams are shifted copies of one another look random each for itself, and cost the
forest a point of accuracy. Here they are compared with each other, at lags.
"""

import itertools

import numpy as np
import oracle_atoms as oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import bag_counts
from scipy import stats

from morforest import MorfClassifier, Patch
from morforest._native import core

LEVEL = 1e-3
NUMBERS = st.integers(0, 2**64 - 1)


# --- the generator, as the design page writes it ---------------------------------------------


def test_a_stream_gives_the_published_numbers_of_its_generator():
    # stream(key) is SplitMix64 seeded with the key; these are its first outputs for 1234567.
    stream = oracle.Stream(1234567)
    assert [stream.next() for _ in range(5)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@pytest.mark.parametrize("n", [2, 3, 10, 784, 3 * 2**61])
def test_below_is_uniform(n):
    stream = oracle.Stream(n)
    draws = [stream.below(n) for _ in range(20_000)]
    assert min(draws) >= 0
    assert max(draws) < n
    n_bins = min(n, 100)
    counts = np.bincount([draw * n_bins // n for draw in draws], minlength=n_bins)
    edges = [-(-b * n // n_bins) for b in range(n_bins + 1)]
    share = np.diff(np.array(edges, dtype=float)) / n
    assert stats.chisquare(counts, share * len(draws)).pvalue > LEVEL


def test_a_draw_without_choice_consumes_nothing():
    stream, other = oracle.Stream(5), oracle.Stream(5)
    assert stream.below(1) == 0
    assert stream.below(1000) == other.below(1000)


def test_keys_differ_in_half_of_their_bits():
    seeds = [*range(10), *np.random.default_rng(0).integers(0, 2**63, 10).tolist()]
    keys = [oracle.tree_key(seed, tree) for seed in seeds for tree in range(50)]
    keys += [oracle.derive(key, child) for key in keys[:200] for child in range(1, 6)]
    assert len(set(keys)) == len(keys)
    flips = [(a ^ b).bit_count() for a, b in itertools.pairwise(keys)]
    assert abs(np.mean(flips) - 32) < 0.5


# --- the core's generator --------------------------------------------------------------------


@settings(deadline=None, derandomize=True, database=None)
@given(NUMBERS, NUMBERS)
def test_the_core_derives_the_same_keys(key, index):
    assert core.derive(key, index) == oracle.derive(key, index)
    assert core.tree_key(key, index) == oracle.tree_key(key, index)


@settings(deadline=None, derandomize=True, database=None)
@given(NUMBERS)
def test_the_core_draws_the_same_numbers(key):
    stream = oracle.Stream(key)
    assert core.stream(key, 5).tolist() == [stream.next() for _ in range(5)]


def draw_bags(*arguments):
    return core.draw_bags(*arguments, core.StopFlag())


@settings(deadline=None, derandomize=True, database=None)
@given(NUMBERS, st.lists(st.integers(1, 2**40), min_size=1, max_size=20), st.randoms())
def test_the_core_draws_the_same_bags(key, weights, shuffler):
    order = list(range(len(weights)))
    shuffler.shuffle(order)
    expected = bag_counts(key, weights, order, 30)
    cumulated = np.cumsum([weights[row] for row in order], dtype=np.uint64)
    order = np.array(order, dtype=np.uint32)
    keys = np.array([key], dtype=np.uint64)
    np.testing.assert_array_equal(draw_bags(keys, 30, order, cumulated)[0], expected)
    # Without weights the core needs no table.
    expected = bag_counts(key, [1] * len(weights), order, 30)
    none = np.empty(0, dtype=np.uint64)
    np.testing.assert_array_equal(draw_bags(keys, 30, order, none)[0], expected)


@pytest.mark.parametrize("length", [3, 10, 784])
def test_positions_are_uniform(length):
    atoms = Patch(max_size=1).sample((length,), 50_000, random_state=length)
    counts = np.bincount(atoms.indices, minlength=length)
    assert stats.chisquare(counts).pvalue > LEVEL


# --- streams that are shifted copies of one another ------------------------------------------

N_TREES = 12
LAGS = range(-40, 41)


def largest_overlap(sequences):
    """The largest share of equal entries over pairs of sequences and lags."""
    largest = 0.0
    for a, b in itertools.combinations(sequences, 2):
        for lag in LAGS:
            early, late = (a[lag:], b) if lag >= 0 else (b[-lag:], a)
            early = np.asarray(early)
            late = np.asarray(late)[: len(early)]
            largest = max(largest, float(np.mean(early == late)))
    return largest


def positions(key, n=400):
    """Where the patches of one node lie; 1000 places, so that chance makes few of them equal."""
    stream = oracle.Stream(key)
    return [stream.below(1000) for _ in range(n)]


def test_the_overlap_finds_shifted_streams():
    shifted = [positions((7 + tree * oracle.GOLDEN) & oracle.MASK) for tree in range(N_TREES)]
    assert largest_overlap(shifted) == 1.0
    # The keys that tempt: a constant for each tree, which is the stream's own step.
    tempting = [positions(tree * oracle.GOLDEN & oracle.MASK) for tree in range(N_TREES)]
    assert largest_overlap(tempting) == 1.0


def test_streams_of_trees_and_of_their_nodes_are_not_shifted():
    keys = []
    for tree in range(6):
        root = oracle.derive(oracle.tree_key(3, tree), oracle.ROOT)
        keys += [root, oracle.derive(root, oracle.LEFT), oracle.derive(root, oracle.RIGHT)]
    assert largest_overlap([positions(key) for key in keys]) < 0.03


def test_samples_of_neighbouring_seeds_are_not_shifted():
    dictionary = Patch(max_size=1)
    sequences = [dictionary.sample((1000,), 400, random_state=seed).indices for seed in range(12)]
    assert largest_overlap(sequences) < 0.03


def root_features(n_trees, seed, n_candidates=50, n_features=4000):
    """The feature that wins at the root of each tree, where all trees see the same data."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, n_features)).astype(np.float32)
    y = np.arange(60) % 2
    model = MorfClassifier(
        Patch(max_size=1),
        n_estimators=n_trees,
        bootstrap=False,
        max_depth=1,
        max_features=n_candidates,
        random_state=seed,
    ).fit(X, y)
    forest = model._forest
    return forest.matrix()[forest.tree_begin[:-1]].indices


def test_trees_do_not_share_their_candidates():
    # The best of 50 candidates out of 4000. Streams shifted by a draw share 49 of them, and then
    # mostly the winner too; independent ones share it once in some hundred pairs.
    winners = root_features(60, seed=1)
    assert len(winners) == 60
    for lag in range(1, 30):
        assert np.mean(winners[lag:] == winners[:-lag]) < 0.15
    # Nor does a tree of one forest repeat one of the next seed's.
    others = root_features(60, seed=2)
    for lag in range(30):
        assert np.mean(winners[lag:] == others[: len(others) - lag]) < 0.15


def bag_matrix(n_trees=30, n_rows=2000, seed=5):
    order, none = np.arange(n_rows, dtype=np.uint32), np.empty(0, dtype=np.uint64)
    keys = [core.tree_key(seed, tree) for tree in range(n_trees)]
    return draw_bags(np.asarray(keys, dtype=np.uint64), n_rows, order, none)


def test_bags_are_independent():
    bags = bag_matrix()
    assert (bags.sum(axis=1) == 2000).all()
    # Off the diagonal a correlation of 435 pairs is normal with deviation 1 / sqrt(2000).
    correlations = np.corrcoef(bags)[np.triu_indices(len(bags), 1)]
    assert abs(correlations).max() < 4.5 / np.sqrt(2000)
    assert abs(correlations.mean()) < 4.5 / np.sqrt(2000 * len(correlations))
    # Multiplicities are Poisson(1) almost exactly.
    counts = np.bincount(np.minimum(bags.ravel(), 5), minlength=6)
    shares = stats.poisson.pmf(np.arange(6), 1.0)
    shares[5] = stats.poisson.sf(4, 1.0)
    np.testing.assert_allclose(counts / bags.size, shares, atol=0.01)


def test_a_bag_is_not_the_same_draws_as_the_root():
    # Bags and candidates of a tree come from different keys: equal ones would tie the rows that
    # a tree sees to the features that it tries.
    key = oracle.tree_key(0, 0)
    streams = [positions(oracle.derive(key, part)) for part in (oracle.BAG, oracle.ROOT)]
    assert largest_overlap(streams) < 0.03
