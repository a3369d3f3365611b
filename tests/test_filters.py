"""Filters over channels: `Filter`, and `White`, which is fitted to the samples."""

import pickle

import numpy as np
import oracle
import oracle_trials
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from morforest import (
    AtomFeatures,
    Filter,
    MorfBoostingClassifier,
    MorfClassifier,
    MorfRegressor,
    Patch,
    Product,
    Raw,
    SharedAtoms,
    Variance,
    White,
    load,
)
from morforest._native import core
from morforest._spatial import fit_views
from morforest.dictionary._base import resolve
from morforest.dictionary._presets import choose_dictionary, names_for
from morforest.dictionary._views import View

CHANNELS, STEPS = 4, 24


def mixed(n, seed=0, strength=30):
    """Trials of electrodes that see a strong source that says nothing, and a weak one that does."""
    random = np.random.default_rng(seed)
    mixing = np.random.default_rng(9).normal(size=(CHANNELS, CHANNELS)) + np.eye(CHANNELS)
    mixing[:, 0] = 1 + 0.1 * mixing[:, 0]  # all electrodes see the strong source alike
    y = np.arange(n) % 2
    sources = random.normal(size=(n, CHANNELS, STEPS))
    sources[:, 0] *= strength
    sources[y == 1, 1, 8:16] += 1.0
    return mixing @ sources, y


def fitted(X, weights=None, shrinkage=0.05, axis=0):
    plan = resolve(Patch(views=White(shrinkage, axis=axis)), X.shape[1:])
    (view,) = fit_views(plan, X.reshape(len(X), -1), weights).views()
    return np.reshape(view.filters, (X.shape[1 + axis],) * 2) * 2.0**-20


@pytest.mark.parametrize("shrinkage", [0.001, 0.05, 1.0])
def test_filters_are_the_inverse_root_of_the_mean_covariance(shrinkage):
    X, _ = mixed(30, strength=2)
    weights = np.arange(30) % 4 * 0.37
    found = fitted(X, weights, shrinkage)
    used = weights > 0
    expected = oracle_trials.whitening(X[used], weights[used], shrinkage)
    centred = X - X.mean(axis=2, keepdims=True)
    level = np.average((centred**2).mean(axis=(1, 2)), weights=weights)
    np.testing.assert_allclose(found, expected * np.sqrt(level), rtol=1e-3, atol=1e-5)
    if shrinkage == 0.001:
        white = found @ centred[used]
        covariance = np.average(white @ white.transpose(0, 2, 1), axis=0, weights=weights[used])
        np.testing.assert_allclose(covariance / STEPS / level, np.eye(CHANNELS), atol=0.03)


def test_filters_do_not_depend_on_the_order_of_samples():
    X, _ = mixed(50)
    order = np.random.default_rng(0).permutation(50)
    np.testing.assert_array_equal(fitted(X), fitted(X[order]))
    weights = np.arange(50) % 3
    repeated = np.repeat(X, weights, axis=0)
    np.testing.assert_array_equal(fitted(X, weights.astype(float)), fitted(repeated))
    np.testing.assert_array_equal(fitted(X), fitted(X * 2.0**-40))
    np.testing.assert_array_equal(fitted(X.transpose(0, 2, 1), axis=1), fitted(X))


def test_the_inverse_root_is_that_of_the_definition():
    random = np.random.default_rng(0)
    for size in (1, 2, 7, 30):
        factors = random.normal(size=(size, size + 2))
        matrix = factors @ factors.T
        root = core.inverse_root(matrix, 1e-12).reshape(size, size)
        np.testing.assert_allclose(root @ matrix @ root, np.eye(size), atol=1e-8)
        np.testing.assert_allclose(root, root.T, atol=1e-9)
    singular = core.inverse_root(np.diag([4.0, 0.0]), 0.25)
    np.testing.assert_allclose(singular, [0.5, 0, 0, 2])
    np.testing.assert_array_equal(core.inverse_root(np.zeros((2, 2)), 1.0), [1, 0, 0, 1])


def test_values_are_sums_over_the_axis():
    X, _ = mixed(10)
    matrix = np.random.default_rng(0).normal(size=(CHANNELS, CHANNELS))
    one = Patch(1, 1, views=Filter(matrix), boundary="inside")
    features = AtomFeatures(one, 40, channel_axis=1, dtype="float64", random_state=0).fit(X)
    values = features.transform(X)
    seen = matrix @ X
    names = features.get_feature_names_out()
    assert all("filter" in name for name in names)
    atoms = features._atoms.matrix()
    expected = seen.reshape(10, -1) @ atoms.T.toarray()
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-3)
    average = np.eye(CHANNELS) - 1 / CHANNELS
    whole = (X * 1000).astype(np.int64)
    q = oracle.derive_view(
        whole, "filter", 0, filters=tuple(np.rint(average * 2**20).astype(int).ravel())
    )
    np.testing.assert_allclose(q, whole - whole.mean(axis=1, keepdims=True), atol=1)


@pytest.mark.parametrize("estimator", [MorfClassifier, MorfBoostingClassifier])
def test_whitened_channels_show_what_raw_ones_hide(estimator):
    X, y = mixed(150)
    Xt, yt = mixed(200, seed=1)
    size = {"n_estimators": 40} if estimator is MorfClassifier else {"max_iter": 40}

    def score(views):
        dictionary = Patch(1, (1, 10), boundary="inside", views=views)
        model = estimator(dictionary, channel_axis=1, random_state=0, **size)
        return model.fit(X, y).score(Xt, yt)

    assert score([Raw(), White()]) > score(None) + 0.1


def test_models_name_eeg():
    X, y = mixed(80)
    forest = MorfClassifier("eeg", n_estimators=10, channel_axis=1, random_state=0).fit(X, y)
    assert forest.score(X, y) > 0.8
    assert forest.feature_importances_.shape == (CHANNELS, STEPS)
    boosting = MorfBoostingClassifier("eeg", max_iter=5, channel_axis=1, random_state=0).fit(X, y)
    assert boosting.score(X, y) > 0.6
    with pytest.raises(ValueError, match='dictionary="eeg" needs samples'):
        MorfClassifier("eeg").fit(X[:, 0], y)
    with pytest.raises(ValueError, match="two axes, channels and time"):
        MorfClassifier("eeg").fit(X.reshape(80, 2, 2, STEPS), y)


def test_auto_compares_raw_with_whitened_channels():
    X, y = mixed(120)
    model = MorfClassifier("auto", n_estimators=5, channel_axis=1, random_state=0).fit(X, y)
    scores = model.dictionary_scores_
    assert scores["eeg"] > 0.02 + max(score for name, score in scores.items() if name != "eeg")
    assert model.dictionary_ == choose_dictionary("eeg", X.shape[1:], 1)
    assert "eeg" not in names_for((STEPS,), None)  # of one channel
    assert "eeg" not in names_for((2, 3, STEPS), 1)


def test_importances_are_those_of_electrodes():
    """A filter that reads one channel alone gives its importance to that channel."""
    X, y = mixed(60)
    shift = np.roll(np.eye(CHANNELS), 1, axis=0)  # filter i reads channel i - 1
    shared = SharedAtoms(Patch(1, (1, 5), boundary="inside", views=Filter(shift)), 60)
    same = {"n_estimators": 10, "bootstrap": False, "channel_axis": 1, "random_state": 0}
    model = MorfClassifier(shared, **same).fit(X, y)
    plain = SharedAtoms(Patch(1, (1, 5), boundary="inside"), 60)
    moved = MorfClassifier(plain, **same).fit(np.roll(X, 1, axis=1), y)
    np.testing.assert_allclose(
        model.feature_importances_, np.roll(moved.feature_importances_, -1, axis=0), atol=1e-9
    )
    found, plain = model.attributions(X[:5]), moved.attributions(np.roll(X, 1, axis=1)[:5])
    np.testing.assert_allclose(found.values, np.roll(plain.values, -1, axis=1), atol=1e-9)
    total = found.values.sum(axis=(1, 2)) + found.baseline
    np.testing.assert_allclose(total, model.predict_proba(X[:5]), atol=1e-9)


def test_products_are_covariances_of_bands():
    X, _ = mixed(20)
    whole = Patch(1, (1, STEPS), boundary="inside", views=Product(lags=9))
    assert len(resolve(whole, X.shape[1:], 1).views()) == 3 * 4
    one = Patch((1, STEPS), (1, STEPS), boundary="inside", views=Product(Filter(np.eye(4)), lags=3))
    features = AtomFeatures(one, 300, channel_axis=1, dtype="float64", random_state=0).fit(X)
    values = features.transform(X) / STEPS
    covariances = X @ X.transpose(0, 2, 1) / STEPS
    views, matrix = features._atoms.layout.views, features._atoms.matrix()
    seen = set()
    for atom in range(0, 300, 7):
        start = matrix.indices[matrix.indptr[atom]]
        view, channel = views[start // (CHANNELS * STEPS)], start // STEPS % CHANNELS
        other = (channel + view.lag) % CHANNELS
        seen.add((view.lag, view.width))
        if view.width == 0:
            expected = covariances[:, channel, other]
            np.testing.assert_allclose(values[:, atom], expected, rtol=1e-3, atol=0.01)
    assert len(seen) > 6


def test_powers_and_phases_are_learnt():
    """Two channels are in step in one class only: no channel's own power tells."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(240, 3, 32)), np.arange(240) % 2
    X[y == 1, 1] = 0.8 * X[y == 1, 0] + 0.6 * X[y == 1, 1]
    pairs = Patch(1, (1, 32), boundary="inside", views=Product(White(1.0), bands=1))
    powers = Patch(1, (1, 32), boundary="inside", views=Product(White(1.0), lags=1, bands=1))
    scores = [
        MorfClassifier(part, n_estimators=30, channel_axis=1, random_state=0)
        .fit(X[:160], y[:160])
        .score(X[160:], y[160:])
        for part in (pairs, powers)
    ]
    assert scores[0] > 0.9 > 0.7 > scores[1]


def test_cross_validation_fits_filters_anew():
    X, y = mixed(60)
    model = MorfClassifier(Patch(views=White()), n_estimators=5, channel_axis=1, random_state=0)
    assert cross_val_score(model, X, y, cv=3).shape == (3,)
    views = [
        clone(model).fit(X[part], y[part])._forest.atoms.layout.views[0]
        for part in (slice(0, 30), slice(30, 60))
    ]
    assert views[0].filters != views[1].filters


def test_pickles_and_files_hold_the_filters(tmp_path):
    X, y = mixed(60)
    power = Variance((1, 4), (2, 12), views=[Raw(), White()])
    for dictionary in (Patch(views=[White(), Raw()]), power, "eeg"):
        model = MorfRegressor(dictionary, n_estimators=5, channel_axis=1, random_state=0).fit(X, y)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.dictionary_ == model.dictionary_
        model.save(tmp_path / "model.safetensors")
        loaded = load(tmp_path / "model.safetensors")
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    layout = model._forest.columns.atoms.layout
    view = next(view for view in layout.views if view.filters)
    kind, axis, *rest, filters, _, _ = pickle.loads(pickle.dumps(layout.dump()))[1][-1][0]
    assert (kind, axis) == ("filter", 0)
    assert filters == view.filters
    for damaged in (
        ("raw", 0, *rest, filters, 0, 0),
        (kind, 0, *rest, (1 << 60,), 0, 0),
        (kind, 0, *rest, 3, 0, 0),
        (kind, 0, *rest, filters, 0),
        (kind, 0, *rest, filters, -1, 0),
    ):
        planes = ((damaged, (), (), False),)
        with pytest.raises(ValueError, match="damaged atoms"):
            type(layout).load((layout.shape, planes, ()))
    for damaged, message in (
        ((kind, 0, *rest, (1, 2), 0, 0), "other filters"),
        (("product", 0, 1, 1.0, 0.0, filters, CHANNELS, 0), "channels that do not exist"),
        (("product", 0, 1, 1.0, 0.0, filters, 0, 3), "no such band"),
        (("product", 0, 0, 1.0, 0.0, filters, 0, 2), "no such band"),
        (("product", 0, 1, 1.0, 0.0, filters, 0, 32), "no such band"),
    ):
        planes = ((damaged, (), (), False),)
        with pytest.raises(ValueError, match=message):
            type(layout).load((layout.shape, planes, ())).to_core()


def test_missing_values_touch_all_filters_of_their_step():
    X, y = mixed(60)
    X[::3, 1, 5:9] = np.nan
    model = MorfClassifier(Patch(views=White()), n_estimators=10, channel_axis=1, random_state=0)
    assert model.fit(X, y).predict_proba(X).shape == (60, 2)


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (Filter(np.eye(3)), "matrix of Filter must have 4 rows"),
        (Filter("a"), "matrix of Filter must have 4 rows"),
        (Filter(np.full((4, 4), np.nan)), "numbers from -1000 to 1000"),
        (Filter(np.eye(4) * 2000), "scale it"),
        (Filter(np.eye(4), axis=5), "axis must be an integer"),
        (White(0), "shrinkage must be a number from 0.0001 to 1"),
        (White("a"), "shrinkage must be a number"),
        (Product(Raw()), "of must be None, White"),
        (Product(lags=0), "lags must be an integer of at least 1"),
        (Product(bands=1.5), "bands must be an integer of at least 1"),
        (White(axis="a"), "axis must be an integer"),
    ],
    ids=str,
)
def test_wrong_filters_are_explained(view, message):
    X, y = mixed(10)
    with pytest.raises(ValueError, match=message):
        MorfClassifier(Patch(views=view), channel_axis=1).fit(X, y)


def test_filters_need_an_axis():
    X = np.random.default_rng(0).normal(size=(10, 3, 4, 5))
    with pytest.raises(ValueError, match="White needs to know the axis of channels"):
        MorfClassifier(Patch(views=White())).fit(X, np.arange(10) % 2)
    model = MorfClassifier(Patch(views=White(axis=0)), n_estimators=3, random_state=0)
    assert model.fit(X, np.arange(10) % 2).predict(X).shape == (10,)


def test_views_are_compared_by_what_they_are():
    assert Filter(np.eye(2)) == Filter([[1, 0], [0, 1]]) != Filter(np.ones((2, 2)))
    assert Filter(np.eye(2)) != Raw()
    assert White() == White(0.05) != White(0.1)
    assert len({White(), White(0.1), Filter(np.eye(2))}) == 3
    assert View("filter", 0, filters=(1 << 20,)).gain == 1
    before_fitting = Patch(1, 1, views=White()).sample((2, 3), 4, channel_axis=1, random_state=0)
    assert before_fitting.shape == (4, 6)
