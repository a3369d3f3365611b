"""Dictionaries by name."""

import warnings

import numpy as np
import pandas as pd
import pytest
from common import assert_same_forest, differ
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)

from morforest import (
    AtomFeatures,
    Axis,
    Mixture,
    MorfBoostingClassifier,
    MorfBoostingRegressor,
    MorfClassifier,
    MorfRegressor,
    MorfTreeRegressor,
    Patch,
    SparseOblique,
)
from morforest._auto import best_name
from morforest.dictionary._base import resolve
from morforest.dictionary._presets import NAMES, choose_dictionary, looks_like_series, names_for
from morforest.dictionary._shape import SampleShape


def test_simple_names_are_the_dictionaries_of_the_paper():
    assert choose_dictionary("axis", (4, 4), None) == Axis()
    assert choose_dictionary("sporf", (4, 4), None) == SparseOblique()
    assert choose_dictionary("patch", (4, 4), None) == Patch()
    assert choose_dictionary(None, (16,), None) == SparseOblique()
    assert choose_dictionary(None, (4, 4), None) == Patch()
    own = Mixture([Axis(), Patch()])
    assert choose_dictionary(own, (4, 4), None) is own


SHAPES = {
    "image": [
        ((28, 28), None),
        ((3, 3), None),
        ((3, 32, 20), 1),
        ((9, 5, 2), -1),
        ((6, 7, 8), None),
    ],
    "series": [
        ((6,), None),
        ((150,), None),
        ((4, 40), 1),
        ((40, 4), 2),
        ((1, 12), -2),
        ((3, 2, 50), 1),
    ],
}
SHAPES["series-pooled"] = SHAPES["series"]
SHAPES["eeg"] = [((4, 40), 1), ((40, 4), 2), ((2, 6), None), ((1, 12), -2)]


@pytest.mark.parametrize(
    ("name", "shape", "channel_axis"),
    [(name, *case) for name, cases in SHAPES.items() for case in cases],
)
def test_names_fit_every_shape_of_their_kind(name, shape, channel_axis):
    dictionary = choose_dictionary(name, shape, channel_axis)
    assert clone(dictionary) == dictionary
    atoms = dictionary.sample(shape, 300, random_state=0, channel_axis=channel_axis).toarray()
    assert np.abs(atoms).sum(axis=1).all()
    if channel_axis is not None:  # atoms stay within one of the data's channels, pairs within two
        planes = len(resolve(dictionary, shape, channel_axis).views())
        used = np.abs(atoms).reshape(300, planes, *shape).sum(axis=1)
        per_channel = np.moveaxis(used, channel_axis, 1)
        channels = per_channel.shape[1]
        touched = (per_channel.reshape(300, channels, -1) > 0).any(axis=2).sum(axis=1)
        most = 1 if name in ("image", "eeg") else min(2, channels)
        assert set(touched) == set(range(1, most + 1))


@pytest.mark.parametrize(
    ("name", "shape", "channel_axis"),
    [
        ("image", (64,), None),
        ("image", (2, 8), None),
        ("image", (8, 8), 1),
        ("series", (5,), None),
        ("series", (40, 4), None),
        ("series-pooled", (40, 4), 1),
        ("eeg", (40, 4), 1),
        ("eeg", (12,), None),
        ("eeg", (3, 2, 50), 1),
    ],
)
def test_samples_of_another_kind_are_refused(name, shape, channel_axis):
    with pytest.raises(ValueError, match=f'dictionary="{name}" needs samples'):
        choose_dictionary(name, shape, channel_axis)


def test_bad_names_and_axes_are_explained():
    X, y = load_digits(return_X_y=True)
    with pytest.raises(ValueError, match="one of 'axis', 'sporf'"):
        MorfClassifier("images").fit(X[:50], y[:50])
    with pytest.raises(TypeError, match="dictionary must be None"):
        MorfClassifier(3).fit(X[:50], y[:50])
    with pytest.raises(ValueError, match="channel_axis=5"):
        MorfClassifier("image", data_shape=(8, 8), channel_axis=5).fit(X[:50], y[:50])
    with pytest.raises(TypeError, match="channel_axis must be None or an integer"):
        MorfClassifier("image", data_shape=(8, 8), channel_axis="last").fit(X[:50], y[:50])


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((8, 9, 3), -1), ((8, 9, 1), -1), ((8, 9, 4), -1), ((3, 8, 9), 1), ((1, 8, 9), 1)],
)
def test_images_ask_for_their_colours(shape, axis):
    remedy = "or drop the axis of length one" if 1 in shape else 'if.*"patch"'
    message = rf'"image" needs to know the channel axis.*Pass channel_axis={axis},? {remedy}'
    with pytest.raises(ValueError, match=message):
        choose_dictionary("image", shape, None)
    choose_dictionary("image", shape, axis)
    with pytest.warns(UserWarning, match=f'leaves out "image".*channel_axis={axis}'):
        assert "image" not in names_for(shape, None)
    assert "image" in names_for(shape, axis)


def test_deep_images_are_images():
    choose_dictionary("image", (2, 8, 9), None)  # no number of colours, ahead of an image
    assert "image" in names_for((5, 8, 9), None)


def test_channel_axes_count_the_axes_of_x():
    assert SampleShape.of((4, 40), 1).channel_axis == 0
    assert SampleShape.of((4, 40), 2).channel_axis == 1
    assert SampleShape.of((4, 40), -1).channel_axis == 1
    assert SampleShape.of((4, 40), -2).channel_axis == 0
    for axis in (0, -3):
        message = rf"channel_axis={axis} is the axis that counts the samples.*\(n, 4, 40\).*1 to 2"
        with pytest.raises(ValueError, match=message):
            SampleShape.of((4, 40), axis)
    for axis in (3, -4):
        message = rf"={axis} does not exist in X of shape \(n, 4, 40\).*1 to 2, or from -2 to -1"
        with pytest.raises(ValueError, match=message):
            SampleShape.of((4, 40), axis)
    with pytest.raises(ValueError, match="give 1 or -1"):
        SampleShape.of(40, 2)


def test_flat_rows_have_the_channels_of_their_shape():
    X, y = load_digits(return_X_y=True)
    X, y = X[:100], y[:100]
    common = {"n_estimators": 3, "random_state": 0, "channel_axis": 1}
    images = MorfClassifier(Patch(), **common).fit(X.reshape(-1, 8, 8), y)
    rows = MorfClassifier(Patch(), data_shape=(8, 8), **common).fit(X, y)
    assert_same_forest(images, rows)
    last = MorfClassifier(Patch(), data_shape=(8, 8), **common | {"channel_axis": 2}).fit(X, y)
    assert differ(images, last)


# --- hints at series -------------------------------------------------------------------------


def walks(n=60, length=50):
    return np.random.default_rng(0).normal(size=(n, length)).cumsum(axis=1)


def waves(n=60, length=50):
    rng = np.random.default_rng(0)
    phase = rng.uniform(0, 2 * np.pi, size=(n, 1))
    return np.sin(np.arange(length) / 8 + phase) + 0.2 * rng.normal(size=(n, length))


HINTED = [MorfClassifier(n_estimators=2), MorfTreeRegressor(), MorfBoostingRegressor(max_iter=2)]


@pytest.mark.parametrize("model", HINTED, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("make", [walks, waves])
def test_series_given_as_a_table_get_a_hint(make, model):
    X, y = make(), np.arange(60) % 2
    with pytest.warns(UserWarning, match='Try dictionary="series"') as found:
        model.fit(X, y)
    assert len(found) == 1
    named = pd.DataFrame(X, columns=[f"column {k}" for k in range(50)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(model).fit(named, y)
        clone(model).fit(X.reshape(60, 10, 5), y)
        for dictionary in ("sporf", "series", Patch()):
            clone(model).set_params(dictionary=dictionary).fit(X, y)


@pytest.mark.parametrize("length", [30, 100, 300])
def test_random_walks_always_get_a_hint(length):
    for seed in range(20):
        X = np.random.default_rng(seed).normal(size=(60, length)).cumsum(axis=1)
        assert looks_like_series(X)
        assert not looks_like_series(X[:, np.random.default_rng(0).permutation(length)])


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer, load_diabetes])
def test_tables_get_no_hint(load):
    assert not looks_like_series(load().data)


def test_other_flat_rows_get_no_hint():
    rng = np.random.default_rng(0)
    assert not looks_like_series(load_digits().data)
    assert not looks_like_series(make_classification(300, 60, n_redundant=30, random_state=0)[0])
    assert not looks_like_series(rng.normal(size=(300, 1)) + rng.normal(size=(300, 60)) / 9)
    assert not looks_like_series(walks()[:, rng.permutation(50)])
    assert not looks_like_series(np.zeros((60, 50)))
    assert not looks_like_series(walks(10))
    assert not looks_like_series(walks(60, 15))


# --- estimators ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_estimators_take_names(name):
    X, y = load_digits(return_X_y=True)
    X, y = X[:120].reshape(-1, 8, 8), y[:120]
    for model in (
        MorfClassifier(name, n_estimators=5, random_state=0),
        MorfRegressor(name, n_estimators=5, random_state=0),
        MorfBoostingClassifier(name, max_iter=20, random_state=0),
    ):
        model.fit(X, y)
        assert model.dictionary == name
        assert model.dictionary_ == choose_dictionary(name, (8, 8), None)
        assert model.feature_importances_.shape == (8, 8)
        assert model.score(X, y) > 0.5
    assert AtomFeatures(name, n_atoms=50, random_state=0).fit_transform(X).shape == (120, 50)


def test_auto_keeps_the_best_of_its_trials():
    from morforest.datasets import make_bars, make_circle, make_impulse

    for make, best, kind in (
        (make_circle, {"series"}, MorfClassifier),
        (make_bars, {"image", "patch"}, MorfClassifier),
        (make_impulse, {"patch"}, MorfClassifier),
        (make_bars, {"image", "patch"}, MorfBoostingClassifier),
    ):
        X, y = make(150, random_state=0)
        size = {"max_iter": 5} if kind is MorfBoostingClassifier else {"n_estimators": 20}
        model = kind("auto", random_state=0, **size).fit(X, y)
        scores = model.dictionary_scores_
        chosen = best_name(scores)
        assert chosen in best
        assert model.dictionary_ == choose_dictionary(chosen, X.shape[1:], None)
        order = np.random.default_rng(0).permutation(len(X))
        assert clone(model).fit(X[order], y[order]).dictionary_scores_ == scores


@pytest.mark.parametrize("kind", [MorfClassifier, MorfRegressor, MorfBoostingClassifier])
@pytest.mark.parametrize("n", [120, 700])
def test_auto_takes_equal_rows_for_one_sample_with_a_weight(kind, n):
    X, y = load_digits(return_X_y=True)
    X, y = X[:n].reshape(-1, 8, 8), y[:n]
    size = {"max_iter": 2} if kind is MorfBoostingClassifier else {"n_estimators": 3}

    def scores(X, y, weight=None):
        return kind("auto", random_state=0, **size).fit(X, y, weight).dictionary_scores_

    some = np.random.default_rng(0).integers(0, 3, n)  # from no row to three of each
    rows = np.random.default_rng(1).permutation(np.repeat(np.arange(n), some))
    assert scores(X[rows], y[rows]) == scores(X, y, some)
    assert scores(np.repeat(X, 2, 0), np.repeat(y, 2)) == scores(X, y, np.full(n, 2))
    assert scores(X, y, np.full(n, 2)) != scores(X, y, some)
    halves = np.concatenate([some + 0.25, some + 0.25])
    assert scores(np.tile(X, (2, 1, 1)), np.tile(y, 2), halves) == scores(X, y, 2 * some + 0.5)


def test_auto_keeps_apart_equal_rows_with_different_targets():
    X, y = load_digits(return_X_y=True)
    X, y = np.concatenate([X[:60], X[:60]]), np.concatenate([y[:60], (y[:60] + 1) % 10])
    # Half of the twins have the other label, so that no dictionary can be better than chance.
    scores = MorfClassifier("auto", n_estimators=3, random_state=0).fit(X, y).dictionary_scores_
    assert max(scores.values()) < 0.6


def test_series_need_a_lead():
    assert best_name({"axis": 0.7, "patch": 0.8, "series": 0.805}) == "patch"
    assert best_name({"axis": 0.7, "patch": 0.8, "series": 0.815}) == "series"
    assert best_name({"sporf": 0.7, "patch": 0.8, "image": 0.805}) == "image"
    assert best_name({"axis": 0.8, "sporf": 0.8}) == "axis"


def test_auto_scores_numbers_and_few_rows():
    X, y = load_digits(return_X_y=True)
    model = MorfRegressor("auto", n_estimators=5, data_shape=(8, 8), random_state=0)
    scores = model.fit(X[:700], y[:700]).dictionary_scores_
    assert set(scores) == {"sporf", "patch", "image"}
    assert max(scores.values()) < 1
    assert not hasattr(model.set_params(dictionary=None).fit(X[:50], y[:50]), "dictionary_scores_")
    tiny = MorfClassifier("auto", n_estimators=5).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    assert set(tiny.dictionary_scores_) == {"axis", "sporf", "patch"}


def test_auto_needs_targets():
    with pytest.raises(ValueError, match='"auto" chooses by the targets'):
        AtomFeatures("auto").fit(np.zeros((5, 4, 4)))
