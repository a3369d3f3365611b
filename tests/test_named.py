"""Dictionaries by name."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

from morforest import (
    AtomFeatures,
    Axis,
    Mixture,
    MorfBoostingClassifier,
    MorfClassifier,
    MorfRegressor,
    Patch,
    SparseOblique,
)
from morforest._auto import best_name
from morforest.dictionary._base import resolve
from morforest.dictionary._presets import NAMES, choose_dictionary


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
        ((3, 32, 20), 0),
        ((9, 5, 2), -1),
        ((6, 7, 8), None),
    ],
    "series": [
        ((6,), None),
        ((150,), None),
        ((4, 40), 0),
        ((40, 4), 1),
        ((1, 12), -2),
        ((3, 2, 50), 0),
    ],
}
SHAPES["series-pooled"] = SHAPES["series"]


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
        per_channel = np.moveaxis(used, 1 + channel_axis % len(shape), 1)
        touched = (per_channel.reshape(300, shape[channel_axis], -1) > 0).any(axis=2).sum(axis=1)
        most = 1 if name == "image" else min(2, shape[channel_axis])
        assert set(touched) == set(range(1, most + 1))


@pytest.mark.parametrize(
    ("name", "shape", "channel_axis"),
    [
        ("image", (64,), None),
        ("image", (2, 8), None),
        ("image", (8, 8), 0),
        ("series", (5,), None),
        ("series", (40, 4), None),
        ("series-pooled", (40, 4), 0),
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
    with pytest.raises(ValueError, match='"auto" needs targets'):
        AtomFeatures("auto").fit(np.zeros((5, 4, 4)))
