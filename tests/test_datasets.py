"""The simulations against their definitions."""

import hashlib
import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from scipy import stats

from morforest import datasets
from morforest.datasets import load_mnist, make_bars, make_circle, make_dynamics, make_impulse

MAKERS = [make_circle, make_bars, make_impulse, make_dynamics]

# A test of a distribution is run on fixed seeds; it fails if the data are this unlikely.
UNLIKELY = 1e-4


def circle_without_wrap(n_samples=200, *, random_state=None):
    return make_circle(n_samples, wrap=False, random_state=random_state)


def dynamics_with_noise_channels(n_samples=200, *, random_state=None):
    return make_dynamics(n_samples, noise_channels=True, random_state=random_state)


ALL_MAKERS = [*MAKERS, circle_without_wrap, dynamics_with_noise_channels]


def runs_of_ones(row, cyclic):
    """The (start, length) of each maximal run of ones."""
    # A walk round the circle that begins at a zero cuts no run.
    origin = int(np.argmin(row)) if cyclic else 0
    padded = np.concatenate([[0], np.roll(row, -origin), [0]]).astype(int)
    starts = np.flatnonzero(np.diff(padded) == 1)
    ends = np.flatnonzero(np.diff(padded) == -1)
    return [
        ((int(start) + origin) % len(row), int(end - start))
        for start, end in zip(starts, ends, strict=True)
    ]


@pytest.mark.parametrize(
    ("make", "shape", "dtype"),
    [
        (make_circle, (100,), np.uint8),
        (make_bars, (28, 28), np.uint8),
        (make_impulse, (100,), np.float64),
        (make_dynamics, (3, 100), np.float64),
        (dynamics_with_noise_channels, (6, 100), np.float64),
    ],
)
def test_shapes_and_types(make, shape, dtype):
    X, y = make(random_state=0)
    assert X.shape == (200, *shape)
    assert X.dtype == dtype
    assert X.flags.c_contiguous
    assert y.shape == (200,)
    assert np.issubdtype(y.dtype, np.integer)


@pytest.mark.parametrize("make", ALL_MAKERS)
def test_every_even_prefix_is_balanced(make):
    _, y = make(101, random_state=0)
    ones = np.cumsum(y)
    assert all(ones[n - 1] == n // 2 for n in range(2, 102, 2))


@pytest.mark.parametrize("make", ALL_MAKERS)
def test_a_small_sample_is_a_prefix_of_a_large_one(make):
    X, y = make(100, random_state=7)
    X_small, y_small = make(31, random_state=7)
    np.testing.assert_array_equal(X_small, X[:31])
    np.testing.assert_array_equal(y_small, y[:31])


@pytest.mark.parametrize("make", ALL_MAKERS)
def test_the_seed_decides(make):
    X, _ = make(50, random_state=3)
    np.testing.assert_array_equal(X, make(50, random_state=3)[0])
    np.testing.assert_array_equal(X, make(50, random_state=np.random.RandomState(3))[0])
    assert not np.array_equal(X, make(50, random_state=4)[0])


@pytest.mark.parametrize("make", ALL_MAKERS)
def test_one_random_state_gives_fresh_data_each_time(make):
    state = np.random.RandomState(0)
    assert not np.array_equal(make(50, random_state=state)[0], make(50, random_state=state)[0])


def test_circle_has_the_segments_of_its_class():
    X, y = make_circle(4000, random_state=0)
    assert set(np.unique(X)) == {0, 1}
    for row, label in zip(X, y, strict=True):
        # Two maximal runs: without a zero on both sides between them, they would be one.
        lengths = sorted(length for _, length in runs_of_ones(row, cyclic=True))
        assert lengths == ([5, 5] if label == 0 else [4, 6])


def test_circle_wraps():
    X, _ = make_circle(4000, random_state=0)
    broken = [
        any(start + length > 100 for start, length in runs_of_ones(row, cyclic=True)) for row in X
    ]
    # A segment of length l crosses the end from l - 1 of its 100 starts; two cannot do so at once.
    # So 8 in 100 rows of either class have a segment that crosses.
    assert stats.binomtest(sum(broken), len(X), 0.08).pvalue > UNLIKELY


def test_circle_without_wrap_never_crosses_the_end():
    X, y = make_circle(4000, wrap=False, random_state=0)
    for row, label in zip(X, y, strict=True):
        # A segment that crossed the end would be cut in two here.
        lengths = sorted(length for _, length in runs_of_ones(row, cyclic=False))
        assert lengths == ([5, 5] if label == 0 else [4, 6])
    # Segments do reach both ends, and sometimes in the same row: the ends are not neighbours.
    assert (X[:, 0] & X[:, -1]).any()


@pytest.mark.parametrize("label", [0, 1])
def test_circle_covers_every_cell_equally(label):
    X, y = make_circle(20_000, random_state=1)
    share = X[y == label].mean(axis=0)
    # 10,000 rows at probability 0.1: standard deviation 0.003, 100 cells.
    assert np.abs(share - 0.1).max() < 4.5 * 0.003


@pytest.mark.parametrize("wrap", [True, False])
@pytest.mark.parametrize("label", [0, 1])
def test_circle_placements_are_equally_likely(wrap, label):
    X, y = make_circle(100_000, wrap=wrap, random_state=2)
    observed = Counter(row.tobytes() for row in np.packbits(X[y == label], axis=1))
    possible = set()
    for first, second in product(range(100), repeat=2):
        row = np.zeros(100, dtype=np.uint8)
        for start, length in zip((first, second), (5, 5) if label == 0 else (4, 6), strict=True):
            row[np.arange(start, start + length) % 100] += 1
            if not wrap and start + length > 100:
                row[:] = 9
        if row.max() == 1 and len(runs_of_ones(row, cyclic=wrap)) == 2:
            possible.add(np.packbits(row).tobytes())
    placements = 100 * 89 if wrap else 2 * math.comb(91, 2)
    assert len(possible) == (placements // 2 if label == 0 else placements)
    assert set(observed) <= possible
    # Six to twelve of each are expected.
    assert stats.chisquare([observed[row] for row in possible]).pvalue > UNLIKELY


def test_bars_are_whole_rows_or_columns():
    X, y = make_bars(500, random_state=0)
    assert set(np.unique(X)) == {0, 1}
    assert (X[y == 0] == X[y == 0][:, :, :1]).all()
    assert (X[y == 1] == X[y == 1][:, :1, :]).all()


@pytest.mark.parametrize("label", [0, 1])
def test_number_of_distinct_bars(label):
    X, y = make_bars(12_000, random_state=0)
    images = X[y == label]
    distinct = (images[:, :, 0] if label == 0 else images[:, 0, :]).sum(axis=1)

    # Poisson(10) draws with replacement: average the distribution of the places hit over the
    # number of draws.
    draws = np.arange(60)
    probability = np.array(
        [np.sum(stats.poisson.pmf(draws, 10.0) * occupancy(draws, j)) for j in range(29)]
    )
    assert probability.sum() == pytest.approx(1.0, abs=1e-9)
    assert distinct.mean() == pytest.approx(28 * (1 - math.exp(-10 / 28)), abs=0.15)

    observed = np.bincount(distinct, minlength=29)
    expected = len(images) * probability
    # Pool the tails, where fewer than five images are expected.
    common = expected >= 5
    observed = np.append(observed[common], observed[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > UNLIKELY


def occupancy(draws, hit, places=28):
    """Probability that `draws` draws with replacement hit exactly `hit` of `places` places."""
    # By inclusion and exclusion over the hit places; exact integers, or the terms cancel badly.
    return np.array(
        [
            math.comb(places, hit)
            * sum((-1) ** i * math.comb(hit, i) * (hit - i) ** int(k) for i in range(hit + 1))
            / places ** int(k)
            for k in draws
        ]
    )


@pytest.mark.parametrize("label", [0, 1])
def test_bars_fall_on_every_place_equally(label):
    X, y = make_bars(12_000, random_state=1)
    images = X[y == label]
    share = (images[:, :, 0] if label == 0 else images[:, 0, :]).mean(axis=0)
    probability = 1 - math.exp(-10 / 28)
    deviation = math.sqrt(probability * (1 - probability) / len(images))
    assert np.abs(share - probability).max() < 4.5 * deviation


def test_impulse_is_the_difference_of_the_class_means():
    X, y = make_impulse(20_000, random_state=0)
    impulse = [0.0 if t < 20 else math.exp(-0.1 * (t - 20)) for t in range(100)]
    np.testing.assert_allclose(X[y == 0].mean(axis=0), 0.0, atol=4.5 * 0.01)
    np.testing.assert_allclose(X[y == 1].mean(axis=0), impulse, atol=4.5 * 0.01)


def test_impulse_noise_is_white_and_standard_normal():
    X, y = make_impulse(4000, random_state=1)
    assert stats.kstest(X[y == 0].ravel(), "norm").pvalue > UNLIKELY
    noise = X[y == 1] - X[y == 1].mean(axis=0)
    neighbours = np.mean(noise[:, 1:] * noise[:, :-1])
    assert abs(neighbours) < 4.5 / math.sqrt(noise[:, 1:].size)
    assert np.var(noise) == pytest.approx(1.0, abs=0.015)


def test_bayes_error_of_impulse():
    # Phi(-|s| / 2), where |s|^2 is a geometric series of 80 terms.
    squared_norm = (1 - math.exp(-16)) / (1 - math.exp(-0.2))
    bayes_error = stats.norm.cdf(-math.sqrt(squared_norm) / 2)
    assert bayes_error == pytest.approx(0.120, abs=0.0005)

    # The likelihood-ratio rule attains it: class 1 if x . s > |s|^2 / 2.
    X, y = make_impulse(40_000, random_state=2)
    impulse = np.array([0.0 if t < 20 else math.exp(-0.1 * (t - 20)) for t in range(100)])
    errors = int(np.sum((X @ impulse > squared_norm / 2) != (y == 1)))
    assert stats.binomtest(errors, len(y), bayes_error).pvalue > UNLIKELY


# The system of simulations D and E, as the paper has it.
STATE = np.array([[1, 0.7, 0.6], [-0.5, 0.9, 0.5], [-0.6, -0.7, 0.8]]) / 1.548
INPUT = (
    np.array([[0.5, 0, 0], [0, 0.5, 0], [0, 0, 0.5]]),
    np.array([[0.5, 0.1, 0.1], [0.1, 0.5, 0.1], [0.1, 0.1, 0.5]]),
)


def trajectory(start, onset, label):
    """The states of one sample, (3, 100): x(t + 1) = A x(t) + B u(t)."""
    x, states = np.asarray(start, dtype=float), []
    for t in range(100):
        states.append(x)
        u = np.full(3, 1.0 if onset <= t < onset + 5 else 0.0)
        x = STATE @ x + INPUT[label] @ u
    return np.transpose(states)


def test_dynamics_follow_the_system():
    random = np.random.RandomState(0)
    starts, onsets, labels = random.random_sample((20, 3)), np.arange(20, 40), np.arange(20) % 2
    push = datasets.DYNAMICS_PUSH[labels]
    for states, *sample in zip(
        datasets._trajectories(starts, onsets, push), starts, onsets, labels, strict=True
    ):
        np.testing.assert_allclose(states, trajectory(*sample), rtol=1e-12, atol=1e-12)


def test_dynamics_are_stable_and_controllable():
    assert np.abs(np.linalg.eigvals(STATE)).max() < 1
    for matrix in INPUT:
        reach = np.hstack([np.linalg.matrix_power(STATE, i) @ matrix for i in range(3)])
        assert np.linalg.matrix_rank(reach) == 3


@pytest.mark.parametrize("label", [0, 1])
def test_means_of_dynamics(label):
    X, y = make_dynamics(20_000, random_state=0)
    X = X[y == label]
    # The system is linear: the mean state is that of the mean start, averaged over the onsets.
    expected = np.mean([trajectory([0.5] * 3, onset, label) for onset in range(20, 40)], axis=0)
    z = (X.mean(axis=0) - expected) / (X.std(axis=0) / math.sqrt(len(X)))
    assert np.abs(z).max() < 4.9
    # The test can tell the classes apart.
    other = np.mean([trajectory([0.5] * 3, onset, 1 - label) for onset in range(20, 40)], axis=0)
    assert np.abs(other - expected).max() > 20 * X.std() / math.sqrt(len(X))


def test_covariances_of_dynamics():
    X, _ = make_dynamics(40_000, random_state=1)
    for t, s in product(range(6), repeat=2):
        # Starts are uniform, of variance 1 / 12; noise of variance 0.25 is new at each step.
        power = [np.linalg.matrix_power(STATE, i) for i in (t, s)]
        expected = power[0] @ power[1].T / 12 + (t == s) * 0.25 * np.eye(3)
        centred = [X[:, :, i] - X[:, :, i].mean(axis=0) for i in (t, s)]
        found = centred[0].T @ centred[1] / len(X)
        np.testing.assert_allclose(found, expected, atol=5 * 0.35 / math.sqrt(len(X)))


def test_onsets_and_noise_of_dynamics():
    X, y = make_dynamics(2000, random_state=2)
    # Given an onset and a class, the start is a regression on three columns; the best onset of all
    # is then as likely as the data make it.
    free = np.stack([trajectory(unit, 1000, 0).ravel() for unit in np.eye(3)], axis=1)
    project, _ = np.linalg.qr(free)
    onsets = np.arange(10, 50)
    left = np.empty((len(X), len(onsets)))
    for i, onset in enumerate(onsets):
        pushed = np.stack([trajectory([0] * 3, onset, label).ravel() for label in (0, 1)])[y]
        rest = X.reshape(len(X), -1) - pushed
        rest -= rest @ project @ project.T
        left[:, i] = np.sum(rest**2, axis=1)
    best = onsets[np.argmin(left, axis=1)]
    assert np.mean((best < 19) | (best > 40)) < 0.02
    counts = np.bincount(best, minlength=50)[20:40]
    assert stats.chisquare(counts[1:-1]).pvalue > UNLIKELY
    # 300 squared normal numbers less three for the start, and a little for the choice of the onset.
    residuals = left.min(axis=1) / 0.25
    assert 295.0 < residuals.mean() < 297.5
    assert residuals.std() == pytest.approx(math.sqrt(2 * 297), rel=0.1)


def test_noise_channels_are_uniform_and_follow_those_of_the_system():
    X, y = make_dynamics(1000, noise_channels=True, random_state=3)
    np.testing.assert_array_equal(X[:, 0::2], make_dynamics(1000, random_state=3)[0])
    idle = X[:, 1::2]
    assert idle.min() >= 0
    assert idle.max() < 1
    assert stats.kstest(idle.ravel(), "uniform").pvalue > UNLIKELY
    assert stats.ks_2samp(idle[y == 0].ravel(), idle[y == 1].ravel()).pvalue > UNLIKELY
    # Neither over time nor beside the system does anything repeat.
    together = np.corrcoef(X.transpose(1, 0, 2).reshape(6, -1))
    assert np.abs(together[1::2, 0::2]).max() < 4.9 / math.sqrt(100_000)
    products = (idle[:, :, 1:] - 0.5) * (idle[:, :, :-1] - 0.5)
    assert abs(products.mean()) < 4.9 / 12 / math.sqrt(products.size)


@pytest.mark.parametrize("noise_channels", [3, "yes", None])
def test_wrong_noise_channels(noise_channels):
    with pytest.raises(ValueError, match=f"noise_channels must be .* got {noise_channels!r}"):
        make_dynamics(noise_channels=noise_channels)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("n_samples", [0, -2])
def test_too_few_samples(make, n_samples):
    with pytest.raises(ValueError, match=f"n_samples must be .*, got {n_samples}; pass"):
        make(n_samples)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("n_samples", [10.0, "10", None, True])
def test_samples_must_be_a_whole_number(make, n_samples):
    with pytest.raises(TypeError, match=f"n_samples must be .* got {n_samples!r} of type"):
        make(n_samples)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("random_state", ["seed", -1, 0.5])
def test_wrong_random_state(make, random_state):
    with pytest.raises(ValueError, match=f"random_state must be .* got {random_state!r}"):
        make(random_state=random_state)


@pytest.mark.parametrize("wrap", [1, "no", None])
def test_wrong_wrap(wrap):
    with pytest.raises(TypeError, match=f"wrap must be True or False, got {wrap!r}"):
        make_circle(wrap=wrap)


@pytest.mark.parametrize("make", ALL_MAKERS)
def test_one_sample(make):
    X, y = make(1, random_state=0)
    assert len(X) == 1
    assert y.tolist() == [0]


@pytest.mark.parametrize("n_samples", [np.int64(5), np.uint8(5)])
def test_numpy_integers_are_whole_numbers(n_samples):
    assert len(make_circle(n_samples)[0]) == 5


# --- MNIST ----------------------------------------------------------------------------------------


@pytest.fixture
def small_mnist(monkeypatch):
    """Let a few random images pass for MNIST."""
    random = np.random.RandomState(0)
    arrays = [
        random.randint(256, size=(6, 28, 28)).astype(np.uint8),
        np.arange(6),
        random.randint(256, size=(2, 28, 28)).astype(np.uint8),
        np.arange(2),
    ]
    digest = hashlib.sha256(b"".join(array.astype(np.uint8).tobytes() for array in arrays))
    monkeypatch.setattr(datasets, "MNIST_SHAPES", tuple(array.shape for array in arrays))
    monkeypatch.setattr(datasets, "MNIST_SHA256", digest.hexdigest())
    monkeypatch.delenv("MORFOREST_MNIST", raising=False)
    return dict(zip(datasets.MNIST_ARRAYS, arrays, strict=True))


def assert_is_mnist(loaded, arrays):
    for found, expected in zip(loaded, arrays.values(), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert [found.dtype for found in loaded] == [np.uint8, np.int64, np.uint8, np.int64]


def test_mnist_from_a_path(small_mnist, tmp_path):
    np.savez(tmp_path / "ours.npz", **small_mnist)
    assert_is_mnist(load_mnist(tmp_path / "ours.npz"), small_mnist)
    keras = {name.replace("X", "x"): array for name, array in small_mnist.items()}
    np.savez(tmp_path / "keras.npz", **keras)
    assert_is_mnist(load_mnist(str(tmp_path / "keras.npz")), small_mnist)


def test_mnist_from_the_environment(small_mnist, tmp_path, monkeypatch):
    np.savez(tmp_path / "ours.npz", **small_mnist)
    monkeypatch.setenv("MORFOREST_MNIST", str(tmp_path / "ours.npz"))
    assert_is_mnist(load_mnist(), small_mnist)
    monkeypatch.setenv("MORFOREST_MNIST", str(tmp_path / "no.npz"))
    with pytest.raises(FileNotFoundError, match=r"MORFOREST_MNIST must name .* no file at"):
        load_mnist()
    assert_is_mnist(load_mnist(tmp_path / "ours.npz"), small_mnist)  # a path goes first


def test_mnist_that_is_not(small_mnist, tmp_path):
    with pytest.raises(FileNotFoundError, match="path must name"):
        load_mnist(tmp_path / "no.npz")
    np.savez(tmp_path / "few.npz", X_train=small_mnist["X_train"])
    with pytest.raises(ValueError, match="lacks y_train, X_test, y_test"):
        load_mnist(tmp_path / "few.npz")
    np.savez(tmp_path / "short.npz", **{**small_mnist, "y_test": np.arange(1)})
    with pytest.raises(ValueError, match=r"shapes .* MNIST has"):
        load_mnist(tmp_path / "short.npz")
    small_mnist["X_train"][3, 5, 7] ^= 1
    np.savez(tmp_path / "changed.npz", **small_mnist)
    with pytest.raises(ValueError, match=r"changed.npz.* is not MNIST, .* SHA-256"):
        load_mnist(tmp_path / "changed.npz")


def test_mnist_from_openml_is_fetched_once(small_mnist, tmp_path, monkeypatch):
    calls = []

    def fetch_openml(name, **options):
        calls.append((name, options["version"]))
        X = np.concatenate([small_mnist["X_train"], small_mnist["X_test"]])
        y = np.concatenate([small_mnist["y_train"], small_mnist["y_test"]])
        return X.reshape(len(X), -1).astype(float), y.astype(str)

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    monkeypatch.setattr(datasets, "MNIST_TRAINING", 6)
    for _ in range(2):
        assert_is_mnist(load_mnist(data_home=str(tmp_path)), small_mnist)
    assert calls == [("mnist_784", 1)]


def test_mnist_without_a_network(small_mnist, tmp_path, monkeypatch):
    def fetch_openml(name, **options):
        raise TimeoutError("nobody is there")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    with pytest.raises(ConnectionError, match=r"nobody is there.*variable MORFOREST_MNIST"):
        load_mnist(data_home=str(tmp_path))
    assert not list(tmp_path.iterdir())
