"""Copies of samples: what they are, and that they leak nowhere."""

import numpy as np
import pytest
from scipy import ndimage
from sklearn.datasets import load_digits

from morforest import (
    Axis,
    ImageCopies,
    MorfBoostingClassifier,
    MorfBoostingRegressor,
    MorfClassifier,
    MorfRegressor,
    Patch,
    SeriesCopies,
)
from morforest._native import core
from morforest.augment import make_copier

STILL = {"rotation": 0, "scale": 0, "shear": 0, "shift": 0}
FROZEN = {"shift": 0, "stretch": 0, "warp": 0, "amplitude": 0}


def digits(n=200):
    X, y = load_digits(return_X_y=True)
    return X[:n].reshape(-1, 8, 8), y[:n]


def warped(image, angle=0.0, scale=1.0, shear=0.0, down=0.0, right=0.0):
    out = np.empty((1, image.size))
    parameters = np.array([[angle, scale, shear, down, right]])
    core.warp_images(image.reshape(1, -1).astype(float), *image.shape, 1, parameters, out)
    return out.reshape(image.shape)


def test_sines_are_right():
    # A pixel far from the centre shows sine and cosine.
    image = np.random.default_rng(0).normal(size=(9, 9))
    np.testing.assert_allclose(warped(image, np.pi), image[::-1, ::-1], atol=1e-10)
    np.testing.assert_allclose(warped(image, np.pi / 2), np.rot90(image, -1), atol=1e-10)


@pytest.mark.parametrize("seed", range(8))
def test_images_are_warped_as_scipy_does(seed):
    rng = np.random.default_rng(seed)
    image = rng.normal(size=(7, 10))
    angle, scale, shear = rng.uniform(-3, 3), rng.uniform(0.5, 2), rng.uniform(-1, 1)
    down, right = rng.uniform(-3, 3, 2)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) * scale
    matrix = np.array([[1, 0], [shear, 1]]) @ turn
    centre = (np.array(image.shape) - 1) / 2
    offset = centre - matrix @ centre + [down, right]
    wide = np.pad(image, 2)  # scipy does not interpolate towards the outside
    expected = ndimage.affine_transform(
        wide, matrix, offset + 2 - matrix @ [2, 2], order=1, mode="constant"
    )[2:-2, 2:-2]
    np.testing.assert_allclose(warped(image, angle, scale, shear, down, right), expected, atol=1e-9)


def test_nothing_moves_where_nothing_may():
    X, _ = digits(20)
    np.testing.assert_allclose(ImageCopies(**STILL).sample(X, 0), X, atol=1e-9)
    np.testing.assert_allclose(SeriesCopies(**FROZEN).sample(X, 0), X, atol=1e-9)


def test_copies_stay_within_their_limits():
    line = np.zeros((500, 41))
    line[:, 20] = 1.0
    moved = SeriesCopies(**{**FROZEN, "shift": 0.1}).sample(line, 0)
    place = moved @ np.arange(41.0) / moved.sum(axis=1) - 20
    assert np.abs(place).max() <= 4.1
    assert place.min() < -3.5
    assert place.max() > 3.5
    louder = SeriesCopies(**{**FROZEN, "amplitude": 0.5}).sample(line + 1, 0)[:, 0]
    assert 0.5 <= louder.min() < 0.55
    assert 1.45 < louder.max() <= 1.5
    bent = SeriesCopies(**{**FROZEN, "warp": 0.1}).sample(np.tile(np.arange(41.0), (500, 1)), 0)
    np.testing.assert_allclose(bent[:, [0, -1]], [[0, 40]] * 500, atol=1e-9)
    assert 3.5 < np.abs(bent[:, 20] - 20).max() <= 4.1
    fast = SeriesCopies(**{**FROZEN, "stretch": 0.2}).sample(np.tile(np.arange(41.0), (500, 1)), 0)
    np.testing.assert_allclose(fast[:, 20], 20, atol=1e-9)
    speed = fast[:, 21] - fast[:, 20]
    assert 0.8 <= speed.min() < 0.83
    assert 1.17 < speed.max() <= 1.2


def test_wrapped_series_are_rotated():
    X = np.random.default_rng(0).normal(size=(1, 12))
    out = np.empty_like(X)
    core.warp_series(X, 12, 1, np.array([[1.0, 0.0, 5.0, 1.0]]), True, out)
    np.testing.assert_allclose(out[0], np.roll(X[0], -5), atol=1e-12)
    core.warp_series(X, 12, 1, np.array([[1.0, 0.0, 5.0, 1.0]]), False, out)
    np.testing.assert_allclose(out[0], X[0, np.minimum(np.arange(12) + 5, 11)], atol=1e-12)


@pytest.mark.parametrize("axis", [1, 2, 3, -1])
def test_channels_move_alike(axis):
    X = np.random.default_rng(0).normal(size=(6, 5, 7))
    colours = np.stack([X, 2 * X, -X], axis=axis)
    for augment in (ImageCopies(), SeriesCopies()):
        copies = augment.sample(colours, 3, channel_axis=axis)
        first, second, third = np.moveaxis(copies, axis, 0)
        np.testing.assert_allclose(second, 2 * first, atol=1e-9)
        np.testing.assert_allclose(third, -first, atol=1e-9)
        if isinstance(augment, ImageCopies):
            np.testing.assert_allclose(first, augment.sample(X, 3), atol=1e-9)


def test_a_copy_depends_on_its_number_alone():
    X, _ = digits(30)
    rows = X.reshape(30, -1)
    copier = make_copier(ImageCopies(), (8, 8), None, rows)
    whole = copier(rows, np.arange(30), 7)
    np.testing.assert_array_equal(copier(rows[10:12], np.array([10, 11]), 7), whole[10:12])
    assert not np.array_equal(copier(rows, np.arange(30), 8), whole)


def test_whole_numbers_stay_whole_and_in_range():
    X, _ = digits(50)
    rows = X.reshape(50, -1).astype(np.uint8)
    copies = make_copier(ImageCopies(), (8, 8), None, rows)(rows, np.arange(50), 1)
    assert copies.dtype == np.uint8
    assert copies.max() <= rows.max()
    loud = make_copier(SeriesCopies(amplitude=1.0), (64,), None, rows)(rows, np.arange(50), 1)
    assert loud.max() == rows.max()


@pytest.mark.parametrize("kind", [MorfClassifier, MorfRegressor])
def test_trees_learn_from_copies(kind):
    X, y = digits(400)
    count = {"n_estimators": 8, "random_state": 0}
    plain = kind(Patch(max_size=3), **count).fit(X, y)
    copied = kind(Patch(max_size=3), augment=ImageCopies(copies=3), **count).fit(X, y)
    again = kind(Patch(max_size=3), augment=ImageCopies(copies=3), n_jobs=2, **count).fit(X, y)
    assert not np.array_equal(plain._forest.threshold, copied._forest.threshold)
    np.testing.assert_array_equal(copied._forest.threshold, again._forest.threshold)
    np.testing.assert_array_equal(copied.predict(X), again.predict(X))
    # Four rows for each of a bag: the weight of a root says so.
    roots = copied._forest.weight[copied._forest.tree_begin[:-1].astype(int)]
    assert (roots == 4 * 400).all()


def test_copies_that_are_the_sample_change_no_leaf_frequency():
    # Exact splits of samples counted twice are those of the samples.
    X, y = digits(100)
    for kind in (MorfClassifier, MorfRegressor):
        model = kind(Axis(), n_estimators=3, splitter="exact", random_state=0)
        plain = model.fit(X, y).predict(X)
        model.set_params(augment=ImageCopies(**STILL, copies=1))
        np.testing.assert_allclose(model.fit(X, y).predict(X), plain)


def test_no_copy_leaks_into_the_out_of_bag_score():
    # Labels without meaning: a row's own copies would give it away.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 6, 6)), rng.integers(0, 2, 300)
    model = MorfClassifier(
        Patch(max_size=2),
        n_estimators=60,
        oob_score=True,
        random_state=0,
        augment=ImageCopies(rotation=1, scale=0.01, shear=0.01, shift=0.05, copies=4),
    ).fit(X, y)
    assert model.oob_score_ < 0.6
    assert model.score(X, y) > 0.9


def test_no_copy_leaks_into_the_validation_score():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 6, 6)), rng.integers(0, 2, 300)
    model = MorfBoostingClassifier(
        Patch(max_size=2),
        early_stopping=True,
        validation_fraction=0.3,
        n_iter_no_change=50,
        max_iter=40,
        learning_rate=0.3,
        random_state=0,
        augment=ImageCopies(rotation=1, scale=0.01, shear=0.01, shift=0.05, copies=4),
    ).fit(X, y)
    assert model.train_score_[-1] < 0.3
    assert min(model.validation_score_) > 0.6


@pytest.mark.parametrize("kind", [MorfBoostingClassifier, MorfBoostingRegressor])
def test_boosting_learns_from_copies(kind):
    X, y = digits(150)
    model = kind(max_iter=20, augment=ImageCopies(), random_state=0)
    first = model.fit(X, y)._raw(X)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_array_equal(model.fit(X[order], y[order])._raw(X), first)
    assert not np.array_equal(model.set_params(augment=None).fit(X, y)._raw(X), first)


def test_scores_of_copies_are_those_of_the_model():
    X, y = digits(120)
    from morforest import _rounds

    seen = []
    draw = _rounds.Boosting._draw_copies

    def watched(self, generation):
        draw(self, generation)
        seen.append((self.scores.copy(), self._table, list(self.trees), self.baseline))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_rounds.Boosting, "_draw_copies", watched)
        MorfBoostingClassifier(max_iter=32, augment=ImageCopies(), random_state=0).fit(X, y)
    assert len(seen) == 16
    scores, cells, trees, baseline = seen[-1]
    assert len(trees) == 30
    expected = np.tile(baseline, (cells.rows, 1))
    for tree in trees:
        expected += tree.values[tree.leaves(cells)]
    np.testing.assert_allclose(scores, expected, atol=1e-12)


def test_warm_start_goes_on_with_copies():
    X, y = digits(120)
    model = MorfBoostingClassifier(
        max_iter=8, augment=ImageCopies(), warm_start=True, random_state=0
    ).fit(X, y)
    assert model.set_params(max_iter=12).fit(X, y).n_iter_ == 12
    assert (np.diff(model.train_score_) < 0).mean() > 0.8


BAD = [
    (ImageCopies(rotation=200), (8, 8), "rotation"),
    (ImageCopies(scale=-0.1), (8, 8), "scale"),
    (ImageCopies(scale="big"), (8, 8), "scale"),
    (ImageCopies(shear=np.nan), (8, 8), "shear"),
    (ImageCopies(shift=9), (8, 8), "shift"),
    (ImageCopies(copies=0), (8, 8), "copies"),
    (ImageCopies(copies=1.5), (8, 8), "copies"),
    (ImageCopies(copies=10**9), (8, 8), "copies must be an integer from 1 to 1000"),
    (SeriesCopies(copies=10**9), (64,), "copies must be an integer from 1 to 1000"),
    (ImageCopies(), (64,), "two axes"),
    (ImageCopies(), (4, 4, 4), "two axes"),
    (SeriesCopies(shift=1.5), (64,), "shift"),
    (SeriesCopies(stretch=1), (64,), "stretch"),
    (SeriesCopies(warp=0.6), (64,), "warp"),
    (SeriesCopies(amplitude=-1), (64,), "amplitude"),
    (SeriesCopies(boundary="zero"), (64,), "boundary"),
    ("rotate", (8, 8), "augment"),
    (Patch(), (8, 8), "augment"),
]


@pytest.mark.parametrize(("augment", "shape", "name"), BAD)
@pytest.mark.parametrize("kind", [MorfClassifier, MorfBoostingClassifier])
def test_a_bad_parameter_is_named(kind, augment, shape, name):
    X, y = digits(40)
    with pytest.raises((ValueError, TypeError), match=name):
        kind(augment=augment).fit(X.reshape(-1, *shape), y)


def test_more_copies_than_rows_can_be_counted_are_refused():
    X = np.broadcast_to(np.zeros((1, 4), dtype=np.uint8), (5_000_000, 4))
    with pytest.raises(ValueError, match=r"copies=900 of 5000000 samples .* fewer copies"):
        make_copier(SeriesCopies(copies=900), (4,), None, X)


def test_samples_must_be_numbers():
    with pytest.raises(ValueError, match="samples of numbers"):
        ImageCopies().sample(np.array([["a"]]))
    with pytest.raises(ValueError, match="samples of numbers"):
        SeriesCopies().sample(np.empty((0, 3)))
