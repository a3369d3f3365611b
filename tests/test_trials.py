"""Blocks of columns of trials, dictionary="eeg", and the sum of ridge regressions on them."""

import pickle

import numpy as np
import oracle_trials as oracle
import pytest

from morforest import AtomRidgeClassifier, AtomRidgeRegressor
from morforest._leave_one_out import stack_ridges
from morforest._spatial import inverse_root
from morforest._trials import BLOCKS, InPlace, Products

CHANNELS, STEPS = 4, 40


def trials(n, kind, seed=0):
    """Noise that four electrodes mix, and a source that evokes a wave or changes its power."""
    random = np.random.default_rng(seed)
    mixing = np.random.default_rng(9).normal(size=(CHANNELS, CHANNELS)) + np.eye(CHANNELS)
    y = np.arange(n) % 2
    sources = random.normal(size=(n, CHANNELS, STEPS))
    sources[:, 0] *= 10  # an artefact that all electrodes see
    if kind == "evoked":
        sources[y == 1, 1, 10:20] += 1.0
    else:
        sources[y == 1, 1] *= 1.6
    return mixing @ sources, y


def small(**parameters):
    return AtomRidgeClassifier("eeg", 50, channel_axis=1, random_state=0, **parameters)


@pytest.mark.parametrize("kind", ["evoked", "power"])
def test_mixed_sources_are_told_apart(kind):
    model = small().fit(*trials(120, kind))
    assert model.score(*trials(200, kind, seed=1)) > 0.85
    assert [block.name for block in model.blocks_] == list(BLOCKS)
    kept = [block for block in model.blocks_ if block.share > 0]
    assert {"evoked": "white", "power": "products"}[kind] in [block.name for block in kept]
    best = min(model.blocks_, key=lambda block: block.loo_error)
    assert best.loo_error < 0.6
    assert best.share > 0
    assert model.coef_.shape == (1, sum(block.n_columns for block in kept))
    assert len(model.features_.get_feature_names_out()) == model.coef_.shape[1]
    np.testing.assert_array_equal(model.alpha_, [block.alpha for block in kept])


def test_columns_and_their_sum_are_those_of_the_definition():
    X, y = trials(24, "power")
    weights = np.arange(24) % 3 + 0.5
    model = small(alphas=[0.01, 0.1, 1.0]).fit(X, y, weights)
    model.features_.blocks = BLOCKS  # those of values and products need nothing that was dropped
    filters = oracle.whitening(X, weights)
    np.testing.assert_allclose(model.features_._filters, filters, rtol=1e-5)
    white = filters @ X
    places = {"raw": X, "white": white}
    flat = {name: x.reshape(24, -1) for name, x in places.items()}
    flat["products"] = np.array([oracle.products(trial) for trial in white])
    for name, expected in flat.items():
        block = Products(CHANNELS, STEPS) if name == "products" else InPlace(CHANNELS, STEPS)
        x = X if name == "raw" else white
        np.testing.assert_allclose(block.read(x), expected, rtol=1e-7, atol=1e-9)
        assert block.size == expected.shape[1] == len(list(block.names()))


@pytest.mark.parametrize("grouped", [False, True])
def test_blocks_are_stacked_as_defined(grouped):
    random = np.random.default_rng(0)
    Y = random.normal(size=(18, 2))
    blocks = [random.normal(size=(18, width)) for width in (3, 30, 6, 4)]
    blocks[0][:, :2] += Y
    blocks[1][:, :2] += 2 * Y
    weights = random.uniform(0.5, 2, size=18)
    groups = np.arange(18) // 3 if grouped else None
    alphas = np.array([0.1, 1.0, 10.0])
    found = stack_ridges(blocks, Y, weights, alphas, groups)
    fits, shares, left_out = oracle.stack(blocks, Y, weights, alphas, groups)
    assert [fit.alpha for fit in found.fits] == [alpha for alpha, *_ in fits]
    np.testing.assert_array_equal(found.shares > 0, shares > 0)
    assert 1 < (shares > 0).sum() < 4
    np.testing.assert_allclose(found.shares, shares, atol=1e-7)
    np.testing.assert_allclose(found.left_out, left_out, atol=1e-7)
    mean = weights @ Y / weights.sum()
    for fit, error in zip(found.fits, found.errors, strict=True):
        own = weights @ ((Y - fit.left_out) ** 2).sum(axis=1)
        np.testing.assert_allclose(error, own / (weights @ ((Y - mean) ** 2).sum(axis=1)))


def test_blocks_that_say_nothing_leave_the_best_of_them():
    random = np.random.default_rng(0)
    for seed in range(20):
        y = np.random.default_rng(seed).permutation(np.arange(20) % 2)
        model = AtomRidgeClassifier("eeg", 5, random_state=0)
        model.fit(random.normal(size=(20, 2, 8)), y)
        assert any(block.share > 0 for block in model.blocks_)
        assert np.isfinite(model.decision_function(random.normal(size=(3, 2, 8)))).all()


def test_decisions_are_sums_over_standardised_columns_of_equal_mass():
    X, y = trials(30, "evoked")
    model = small(alphas=[0.1]).fit(X, y)
    x = model.features_._reader(X.reshape(30, -1))(slice(0, 30))
    np.testing.assert_allclose(model._origin + model._mean, x.mean(axis=0), atol=1e-8)
    np.testing.assert_allclose(model._deviation, x.std(axis=0), rtol=1e-6, atol=1e-12)
    Z = np.clip((x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), np.inf), -8, 8)
    expected = Z @ model.coef_[0] + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-6)
    # The same from the blocks themselves.
    place = next(iter(model.features_.places().items()))
    name, columns = place
    deviation, groups = x.std(axis=0)[columns], model.features_.groups(name)
    block = oracle.equal_mass(Z[:, columns], deviation, groups)
    np.testing.assert_allclose((block**2).mean(axis=0).sum(), 1, rtol=0.05)  # clipping takes some
    share = next(block.share for block in model.blocks_ if block.name == name)
    alone = stack_ridges(
        [block], np.where(y == 1, 1.0, -1.0)[:, None], np.ones(30), np.array([0.1])
    )
    scale = np.divide(block, Z[:, columns], out=np.zeros_like(block), where=Z[:, columns] != 0)
    expected = alone.fits[0].coef[:, 0] * scale.max(axis=0) * share
    np.testing.assert_allclose(model.coef_[0, columns], expected, atol=1e-6)


def test_the_order_of_trials_and_weights_as_repetitions():
    X, y = trials(40, "power")
    weights = np.arange(40) % 3
    Xt, _ = trials(10, "power", seed=1)
    model = small().fit(X, y, weights)
    order = np.random.default_rng(0).permutation(40)
    other = small().fit(X[order], y[order], weights[order])
    np.testing.assert_array_equal(model.features_._filters, other.features_._filters)
    np.testing.assert_allclose(model.decision_function(Xt), other.decision_function(Xt), atol=1e-4)
    repeated = small().fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_array_equal(model.features_._filters, repeated.features_._filters)
    np.testing.assert_allclose(
        model.decision_function(Xt), repeated.decision_function(Xt), atol=1e-4
    )
    np.testing.assert_allclose(model.loo_decision_function_.shape, (40,))


def test_groups_are_left_out_together():
    """Copies of trials with a little noise tell their labels, unless their group is left out."""
    random = np.random.default_rng(0)
    X = np.repeat(random.normal(size=(30, 3, 16)), 3, axis=0)
    X += 0.01 * random.normal(size=X.shape)
    y, groups = np.repeat(np.arange(30) % 2, 3), np.repeat(np.arange(30), 3)
    alone = small().fit(X, y)
    together = small().fit(X, y, groups=groups)
    assert ((alone.loo_decision_function_ > 0) == y).mean() > 0.95
    assert ((together.loo_decision_function_ > 0) == y).mean() < 0.8
    assert max(block.loo_error for block in alone.blocks_[:2]) < 0.5
    assert min(block.loo_error for block in together.blocks_) > 0.7


def test_several_classes_weights_of_classes_and_numbers():
    X, y = trials(90, "evoked")
    y = y + (np.arange(90) % 3 == 0)
    X[y == 2] *= 2
    model = small(class_weight="balanced").fit(X, y)
    assert model.score(X, y) > 0.7  # of three classes
    assert model.predict_proba(X).shape == (90, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    power = np.log(X.var(axis=2).sum(axis=1))
    numbers = AtomRidgeRegressor("eeg", 50, channel_axis=1, random_state=0).fit(X[:60], power[:60])
    assert numbers.score(X[60:], power[60:]) > 0.8
    assert numbers.coef_.shape == (sum(b.n_columns for b in numbers.blocks_ if b.share > 0),)
    assert all(len(found) == 1 for found in numbers.block_maps().values())


def test_channels_may_stand_last_and_rows_may_be_flat():
    X, y = trials(40, "evoked")
    scores = small().fit(X, y).decision_function(X)
    last = AtomRidgeClassifier("eeg", 50, channel_axis=-1, random_state=0)
    np.testing.assert_array_equal(
        last.fit(X.transpose(0, 2, 1), y).loo_decision_function_.shape, 40
    )
    np.testing.assert_allclose(last.decision_function(X.transpose(0, 2, 1)), scores)
    flat = small(data_shape=X.shape[1:]).fit(X.reshape(40, -1), y)
    np.testing.assert_array_equal(flat.decision_function(X), scores)
    np.testing.assert_allclose(
        AtomRidgeClassifier("eeg", 50, random_state=0).fit(X, y).decision_function(X), scores
    )


def test_units_do_not_matter():
    """Volts and microvolts are told apart by nothing."""
    X, y = trials(40, "power")
    scores = small().fit(X, y).decision_function(X)
    np.testing.assert_allclose(small().fit(X * 2.0**-20, y).decision_function(X * 2.0**-20), scores)


def test_maps_are_derivatives_of_scores():
    X, y = trials(60, "evoked")
    X[y == 1, 2] *= 1.3
    model = small().fit(X, y)
    maps = model.block_maps()
    assert set(maps) == {block.name for block in model.blocks_ if block.share > 0}
    features, places = model.features_, model.features_.places()
    reader = features._reader
    mean = X.mean(axis=0)
    for name in set(maps) & {"raw", "white"}:
        assert maps[name].shape == (1, CHANNELS, STEPS)

        def score(x, name=name):
            columns = reader(x.reshape(1, -1), places[name])(slice(0, 1))[0]
            centred = columns - (model._origin + model._mean)[places[name]]
            return (centred / model._deviation[places[name]]) @ model.coef_[0, places[name]]

        moved = mean.copy()
        moved[1, 12] += 0.5
        change = score(moved) - score(mean)
        np.testing.assert_allclose(change, 0.5 * maps[name][0, 1, 12], rtol=1e-5)
    for name in set(maps) & {"pooled", "white pooled"}:
        assert maps[name].shape == (1, CHANNELS, STEPS)
        total = np.abs(model.coef_[0, places[name]]).sum()
        np.testing.assert_allclose(maps[name].sum(), total)


def test_maps_of_products_are_derivatives_by_covariances():
    block = Products(3, 16)
    random = np.random.default_rng(0)
    weights = random.normal(size=(1, block.size))
    x = random.normal(size=(1, 3, 16))
    columns = block.read(x)
    found = block.map(weights, columns[0])
    assert found.shape == (1, len(block.widths), 3, 3)
    np.testing.assert_allclose(found, found.transpose(0, 1, 3, 2))
    step = 1e-6
    # Noise that is orthogonal to a channel, all frequencies: covariances change as x moves.
    moved = x.copy()
    moved[0, 1] += step * random.normal(size=16)
    change = (block.read(moved) - columns) @ weights[0]

    def covariances(x):
        x = x[0] - x[0].mean(axis=1, keepdims=True)
        sums = np.concatenate([np.zeros((3, 1)), x.cumsum(axis=1)], axis=1)
        parts = [x]
        for width in block.widths[1:]:
            wide = (sums[:, 2 * width :] - sums[:, : -2 * width]) / (2 * width)
            narrow = (sums[:, width:] - sums[:, :-width]) / width
            first = width - width // 2
            parts.append(narrow[:, first : first + wide.shape[1]] - wide)
        return np.array([part @ part.T / part.shape[1] for part in parts])

    expected = (found[0] * (covariances(moved) - covariances(x))).sum()
    np.testing.assert_allclose(change[0], expected, rtol=1e-3)


def test_missing_values_are_filled_in_along_time():
    X, y = trials(40, "evoked")
    model = small().fit(X, y)
    gaps = X[:3].copy()
    gaps[0, 1, 5:8] = np.nan
    gaps[1, 2, :4] = np.nan
    gaps[2, 3] = np.nan
    filled = gaps.copy()
    filled[0, 1, 5:8] = X[0, 1, 4] + (X[0, 1, 8] - X[0, 1, 4]) * np.array([0.25, 0.5, 0.75])
    filled[1, 2, :4] = X[1, 2, 4]
    filled[2, 3] = 0
    np.testing.assert_allclose(model.decision_function(gaps), model.decision_function(filled))
    assert np.isfinite(small().fit(np.where(np.abs(X) > 15, np.nan, X), y).coef_).all()


def test_silent_and_equal_channels():
    X, y = trials(40, "evoked")
    X[y == 1, 1, 10:20] += 20
    X[:, 3] = 0
    X[:, 2] = X[:, 1]
    model = small().fit(X, y)
    assert model.score(X, y) > 0.7
    assert np.isfinite(model.coef_).all()
    nothing = small().fit(np.zeros((6, 3, 8)), np.arange(6) % 2)
    assert np.isfinite(nothing.decision_function(np.ones((2, 3, 8)))).all()


def test_many_channels_are_whitened_by_leading_directions():
    random = np.random.default_rng(0)
    factors = random.normal(size=(10, 10))
    covariance = factors @ factors.T
    filters = inverse_root(covariance, 0.0, 4)
    np.testing.assert_allclose(filters @ covariance @ filters.T, np.eye(4), atol=1e-9)
    vectors = np.linalg.eigh(covariance)[1]
    leading = vectors[:, -4:] @ vectors[:, -4:].T
    np.testing.assert_allclose(np.linalg.pinv(filters) @ filters, leading, atol=1e-8)


def test_long_trials_are_averaged_in_place():
    block = InPlace(3, 20_001)
    assert block.size <= 20_000
    x = np.random.default_rng(0).normal(size=(1, 3, 20_001))
    found = block.read(x).reshape(3, -1)
    width = block.width
    assert width == 4
    np.testing.assert_allclose(found[1, 7], x[0, 1, 7 * width : 8 * width].mean())
    np.testing.assert_allclose(found[2, -1], x[0, 2, -1:].mean())
    found = block.map(np.ones((1, block.size)), np.zeros(block.size))
    np.testing.assert_allclose(found.sum(axis=2), block.size / 3)


@pytest.mark.parametrize(
    ("shape", "axis"), [((20,), None), ((4, 5), 1), ((2, 3, 20), None), ((5, 20), 2)]
)
def test_other_samples_are_refused(shape, axis):
    X = np.random.default_rng(0).normal(size=(10, *shape))
    with pytest.raises(ValueError, match='dictionary="eeg" needs samples of two axes'):
        AtomRidgeClassifier("eeg", 10, channel_axis=axis).fit(X, np.arange(10) % 2)


def test_wrong_parameters_and_maps_of_other_models():
    X, y = trials(12, "evoked")
    with pytest.raises(ValueError, match="n_atoms must be an integer"):
        AtomRidgeClassifier("eeg", 0).fit(X, y)
    with pytest.raises(ValueError, match="random_state must be"):
        AtomRidgeClassifier("eeg", 10, random_state="a").fit(X, y)
    model = AtomRidgeClassifier("patch", 10).fit(X, y)
    assert model.blocks_ is None
    with pytest.raises(ValueError, match=r"block_maps\(\) needs a model of blocks"):
        model.block_maps()


def test_pickles_and_damage():
    X, y = trials(40, "power")
    model = small().fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    for change in (
        lambda m: setattr(m.features_, "_filters", np.full((4, 4), np.nan)),
        lambda m: setattr(m.features_, "_filters", np.eye(3)),
        lambda m: setattr(m.features_, "blocks", ("other",)),
        lambda m: setattr(m.features_, "data_shape_", (4, -40)),
        lambda m: setattr(m.features_, "_axis", 7),
        lambda m: setattr(m.features_, "_atoms", {"raw": 3}),
        lambda m: setattr(m, "blocks_", [3]),
        lambda m: setattr(m, "blocks_", []),
        lambda m: setattr(m, "alpha_", np.array([0.0] * len(m.features_.blocks))),
        lambda m: setattr(m, "alpha_", 1.0),
        lambda m: delattr(m, "_mean"),
    ):
        damaged = pickle.loads(pickle.dumps(model))
        change(damaged)
        with pytest.raises(ValueError, match="damaged model"):
            pickle.loads(pickle.dumps(damaged))
