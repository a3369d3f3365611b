"""The usual course of samples: what it is, that long gaps follow it, and that files keep it."""

import math
import pickle

import numpy as np
import oracle_gaps
import pytest
from common import GAP_KINDS, with_gaps

from morforest import (
    AtomFeatures,
    Axis,
    MorfBoostingClassifier,
    MorfClassifier,
    MorfRegressor,
    Patch,
    SharedAtoms,
)
from morforest._course import UNKNOWN, Course, fill_gaps, usual_course
from morforest.blocks import fit_blocks

NAN = math.nan


def recordings(n=40, length=30, seed=0):
    """Series of a common course and of deviations that change slowly."""
    random = np.random.default_rng(seed)
    usual = 5 * np.sin(np.arange(length) / 4)
    slow = random.normal(size=(n, 1, length)).cumsum(axis=-1) / 4
    return usual + slow, (slow[:, 0, length // 2] > 0).astype(int)


def course_of(model):
    looked_at = model._forest if model._forest.columns is None else model._forest.columns
    return looked_at.atoms.layout.course


# --- what it is ------------------------------------------------------------------------------


def assert_is_that_of_the_oracle(X, shape, ordered, weights=None):
    flat = X.reshape(len(X), -1)
    found = usual_course(flat, weights, shape, ordered)
    ones = np.ones(len(X)) if weights is None else weights
    expected = oracle_gaps.usual_course(X.reshape(-1, *shape), ones, ordered)
    if expected is None:
        assert found == UNKNOWN
        return
    assert list(found.mean) == expected.mean.ravel().tolist()
    assert {axis: found.correlation[axis] for axis in ordered} == expected.correlation
    filled = fill_gaps(flat, shape, ordered, found)
    wanted = oracle_gaps.fill(X.reshape(-1, *shape), ordered, expected)[0]
    np.testing.assert_array_equal(filled, wanted.reshape(filled.shape))


@pytest.mark.parametrize("kind", GAP_KINDS)
@pytest.mark.parametrize(
    ("shape", "ordered"), [((12,), [0]), ((2, 9), [1]), ((9, 2), [0]), ((4, 5), [0, 1])], ids=str
)
def test_courses_are_those_of_the_oracle(shape, ordered, kind):
    random = np.random.default_rng(1)
    for scale, rate in ((1.0, 0.2), (1e-7, 0.6), (1e12, 0.4)):
        X = with_gaps(scale * random.normal(size=(14, *shape)).cumsum(axis=-1), kind, rate)
        for weights in (None, random.integers(1, 9, 14).astype(float), random.random(14) + 0.1):
            assert_is_that_of_the_oracle(X, shape, ordered, weights)


def test_a_course_by_hand():
    X = np.array([[1.0, 3.0, 5.0], [3.0, 3.0, 1.0], [NAN, NAN, NAN], [2.0, NAN, 3.0]])
    found = usual_course(X, None, (3,), [0])
    # The gap is filled with a value between 2.5, on the line, and 3, as usual.
    assert found.mean[0] == pytest.approx(2, abs=1e-12)
    assert found.mean[2] == pytest.approx(3, abs=1e-12)
    assert 2.8 < found.mean[1] < 3
    assert found.correlation[0] < 0.01


def test_a_weight_of_two_is_the_row_twice_in_any_order():
    X = with_gaps(recordings()[0].reshape(40, 30), "random", 0.4)
    weights = np.random.default_rng(0).integers(1, 4, 40)
    expected = usual_course(np.repeat(X, weights, axis=0)[::-1], None, (30,), [0])
    assert usual_course(X, weights.astype(float), (30,), [0]) == expected
    assert usual_course(X, None, (30,), [0]) != expected


def test_neighbours_that_are_alike_lie_on_lines_and_others_at_the_mean():
    random = np.random.default_rng(2)
    X = np.broadcast_to(random.normal(size=(50, 1)), (50, 20)) + np.arange(20.0) ** 2
    X = with_gaps(X.copy(), "random", 0.3)
    course = usual_course(X, None, (20,), [0])
    assert course.correlation[0] > 0.99
    noise = with_gaps(random.normal(size=(400, 20)) + np.arange(20), "random", 0.3)
    course = usual_course(noise, None, (20,), [0])
    assert course.correlation[0] < 0.1
    series = noise[0].copy()
    series[5:15] = NAN
    middle = fill_gaps(series[np.newaxis], (20,), [0], course)[0, 8:12]
    np.testing.assert_allclose(middle, course.mean[8:12], atol=1e-3)


def test_long_gaps_follow_the_usual_course():
    X, _ = recordings(200)
    X = X.reshape(200, 30)
    gappy = X.copy()
    for i, first in enumerate(np.random.default_rng(3).integers(0, 20, 200)):
        gappy[i, first : first + 12] = NAN
    course = usual_course(gappy, None, (30,), [0])
    missing = np.isnan(gappy)

    def error(*how):
        return np.abs(fill_gaps(gappy, (30,), [0], *how) - X)[missing].mean()

    assert error(course) < 0.5 * error()


@pytest.mark.parametrize(
    "X",
    [
        np.full((3, 4), NAN),
        np.array([[NAN, 1e308, NAN, -1e308], [1e308, NAN, -1e308, 0.0]]),
        np.array([[1e-320, NAN, 1e-320, 0.0]]),
        np.array([[0.0, NAN, 0.0, NAN], [0.0, 0.0, NAN, 0.0]]),
        np.array([[NAN, 2.0, NAN, 5.0], [NAN, 2.0, NAN, 5.0]]),
    ],
    ids=["nothing", "huge", "tiny", "zeros", "every other"],
)
def test_odd_samples_have_a_course_all_the_same(X):
    assert_is_that_of_the_oracle(X, (4,), [0])
    course = usual_course(X, None, (4,), [0])
    assert not np.isnan(fill_gaps(X, (4,), [0], course)).any()


# --- when it is known ------------------------------------------------------------------------


def test_series_of_unequal_length_have_none():
    X = recordings()[0].reshape(40, 30)
    ends = X.copy()
    for i, end in enumerate(np.random.default_rng(4).integers(15, 30, 40)):
        ends[i, end:] = NAN
    assert usual_course(ends, None, (30,), [0]) == UNKNOWN
    missing = int(np.isnan(ends).sum())
    few, many = missing // 9 - 1, missing // 9 + 1  # about a tenth of all that is then missing
    for within, known in ((few, False), (many, True)):
        some = ends.copy()
        rows, columns = np.unravel_index(np.arange(within), (40, 13))
        some[rows, 1 + columns] = NAN
        assert (usual_course(some, None, (30,), [0]) != UNKNOWN) == known


MODELS = {
    "patch": MorfClassifier(Patch(), n_estimators=3),
    "columns": MorfClassifier(SharedAtoms(Patch(), 30), n_estimators=3),
    "numbers": MorfRegressor("series", n_estimators=3),
    "boosted": MorfBoostingClassifier("series", max_iter=3),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_keep_the_course_of_their_training_samples(name):
    X, y = recordings()
    gappy = with_gaps(X, "random", 0.3)
    model = MODELS[name].set_params(channel_axis=1, random_state=0)
    assert course_of(model.fit(X, y)) == UNKNOWN
    expected = usual_course(gappy.reshape(40, -1), None, (1, 30), [1])
    assert course_of(model.fit(gappy, y)) == expected
    again = pickle.loads(pickle.dumps(model))
    assert course_of(again) == expected
    np.testing.assert_array_equal(again.predict(gappy), model.predict(gappy))
    # What is predicted depends neither on the course of the other samples nor on their number.
    np.testing.assert_array_equal(model.predict(gappy[5:6]), model.predict(gappy)[5:6])


def test_a_model_that_goes_on_keeps_its_course():
    X, y = recordings()
    X *= 1.4  # so that all three have cells of one format
    gappy = with_gaps(X, "random", 0.3)
    other = gappy.copy()
    other[:5, :, 10:13] = NAN
    for first, then in ((gappy, other), (gappy, X), (X, other)):
        model = MorfClassifier(Patch(), n_estimators=2, channel_axis=1, random_state=0)
        course = course_of(model.fit(first, y))
        model.set_params(n_estimators=4, warm_start=True).fit(then, y)
        assert course_of(model) == course
        assert len(model.predict(other)) == 40


def test_tables_and_features_have_none_without_order():
    X, y = recordings()
    flat = with_gaps(X.reshape(40, 30), "random", 0.3)
    assert course_of(MorfClassifier(Axis(), n_estimators=2).fit(flat, y)) == UNKNOWN
    features = AtomFeatures(Patch(), 20, random_state=0).fit(flat)
    assert features._atoms.layout.course == usual_course(flat, None, (30,), [0])


def test_samples_in_blocks_have_the_course_of_their_sample():
    X, y = recordings()
    gappy = with_gaps(X, "random", 0.3)
    model = MorfClassifier(Patch(), n_estimators=2, channel_axis=1, random_state=0)
    fit_blocks(model, [(gappy[:25], y[:25]), (gappy[25:], y[25:])])
    assert course_of(model) == usual_course(gappy.reshape(40, -1), None, (1, 30), [1])
    assert len(model.predict(gappy)) == 40


# --- files -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "state",
    [
        None,
        ((), (), ()),
        ((0.0,) * 6, ()),
        ((), (1.0,)),
        ((0.0,) * 5, (1.0, 1.0)),
        ((0.0,) * 6, (1.0,)),
        ((NAN,) * 6, (1.0, 1.0)),
        ((0,) * 6, (1.0, 1.0)),
        ((0.0,) * 6, (1.0, 1.5)),
        ((0.0,) * 6, (1.0, NAN)),
        ([0.0] * 6, (1.0, 1.0)),
    ],
    ids=str,
)
def test_damaged_courses_are_refused(state):
    X, y = recordings()
    model = MorfClassifier(Patch(), n_estimators=2, channel_axis=1, random_state=0)
    layout = model.fit(with_gaps(X, "random", 0.3), y)._forest.atoms.layout
    assert type(layout).load(layout.dump()) == layout
    with pytest.raises(ValueError, match="damaged atoms"):
        type(layout).load((*layout.dump()[:3], state))
    assert Course.load(((0.0,) * 6, (1.0, 0.5)), (2, 3)).correlation == (1.0, 0.5)
    with pytest.raises(ValueError, match="damaged atoms"):
        Course.load(state, (2, 3))
