"""predict_interval, predict_set and predict_std: definitions, coverage, determinism, bad input."""

import pickle

import numpy as np
import oracle_uncertainty as oracle
import pytest
from common import digits, friedman

from morforest import (
    Axis,
    ImageCopies,
    Kernel,
    MorfClassifier,
    MorfRegressor,
    MorfTreeRegressor,
    Patch,
    SharedAtoms,
    Subset,
    _uncertainty,
)
from morforest._uncertainty import Answers, LeftOut, OutOfBag

pytestmark = pytest.mark.filterwarnings("ignore:.*variances were negative:UserWarning")


def regressor(**parameters):
    return MorfRegressor(
        **{"n_estimators": 60, "keep_samples": True, "random_state": 0} | parameters
    )


def classifier(**parameters):
    return MorfClassifier(
        **{"n_estimators": 60, "keep_samples": True, "random_state": 0} | parameters
    )


def noisy(n, seed, varying=False):
    """A sine with noise, whose deviation is one on average."""
    random = np.random.default_rng(seed)
    X = random.uniform(-1, 1, (n, 3))
    deviation = 2 * np.abs(X[:, 0]) if varying else 1.0
    return X, 3 * np.sin(2 * X[:, 0]) + deviation * random.normal(size=n)


def blobs(n, seed):
    """Three classes that overlap; the best classifier is right in about three cases of four."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 3, n)
    return np.array([[0, 0], [2, 0], [0, 2]])[y] + random.normal(size=(n, 2)), y


# --- definitions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("leaf", [1, 7])
def test_intervals_are_those_of_the_oracle(level, leaf):
    X, y = friedman(60)
    model = regressor(n_estimators=25, min_samples_leaf=leaf).fit(X[:45], y[:45])
    drawn = model._leaf_samples.drawn
    train, new = (oracle.tree_predictions(model, some)[:, :, 0] for some in (X[:45], X[45:]))
    expected = [oracle.interval(train, y[:45], new[:, i], drawn, level) for i in range(15)]
    np.testing.assert_allclose(model.predict_interval(X[45:], level), expected, rtol=1e-11)


@pytest.mark.parametrize("weights", ["whole", "fractional"])
def test_weighted_intervals_are_those_of_the_oracle(weights):
    X, y = friedman(60)
    weight = np.random.default_rng(0).integers(1, 4, 45) * (1.0 if weights == "whole" else 0.3)
    model = regressor(n_estimators=25).fit(X[:45], y[:45], sample_weight=weight)
    drawn = model._leaf_samples.drawn
    train, new = (oracle.tree_predictions(model, some)[:, :, 0] for some in (X[:45], X[45:]))
    counted = weight if weights == "whole" else weight / weight.mean()
    expected = [
        oracle.interval(train, y[:45], new[:, i], drawn, 0.8, list(counted)) for i in range(15)
    ]
    np.testing.assert_allclose(model.predict_interval(X[45:], 0.8), expected, rtol=1e-11)


@pytest.mark.parametrize("parameters", [{}, {"max_depth": 2, "class_weight": "balanced"}])
def test_sets_are_those_of_the_oracle(parameters):
    X, y = blobs(70, 0)
    model = classifier(n_estimators=25, **parameters).fit(X[:50], y[:50])
    drawn = model._leaf_samples.drawn
    train, new = (oracle.tree_predictions(model, some) for some in (X[:50], X[50:]))
    for level in (0.6, 0.9):
        expected = [
            oracle.prediction_set(train, y[:50], new[:, i], drawn, level) for i in range(20)
        ]
        found = model.predict_set(X[50:], level, allow_empty=True)
        np.testing.assert_array_equal(found, expected)


def test_deviations_are_those_of_the_oracle():
    X, y = friedman(60)
    model = regressor(n_estimators=25, min_samples_leaf=3).fit(X[:45], y[:45])
    new = oracle.tree_predictions(model, X[45:])[:, :, 0]
    drawn = model._leaf_samples.drawn
    expected = [oracle.standard_deviation(new[:, i], drawn) for i in range(15)]
    np.testing.assert_allclose(model.predict_std(X[45:]), expected, rtol=1e-9)
    X, y = blobs(60, 0)
    model = classifier(n_estimators=25, max_depth=3).fit(X[:45], y[:45])
    new = oracle.tree_predictions(model, X[45:])
    drawn = model._leaf_samples.drawn
    expected = [
        [oracle.standard_deviation(new[:, i, k], drawn) for k in range(3)] for i in range(15)
    ]
    np.testing.assert_allclose(model.predict_std(X[45:]), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("parameters", "unused"),
    [({}, 1.0), ({"max_samples": 0.4}, 1.0), ({"max_samples": 18, "bootstrap": False}, 27 / 45)],
    ids=str,
)
def test_infinitesimal_deviations_are_those_of_the_oracle(parameters, unused):
    X, y = friedman(60)
    model = regressor(n_estimators=25, min_samples_leaf=3, **parameters).fit(X[:45], y[:45])
    new = oracle.tree_predictions(model, X[45:])[:, :, 0]
    drawn = model._leaf_samples.drawn
    expected = [oracle.infinitesimal_deviation(new[:, i], drawn, unused) for i in range(15)]
    found = model.predict_std(X[45:], method="infinitesimal")
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert (found != model.predict_std(X[45:])).any()


@pytest.mark.parametrize("method", ["bootstrap", None, 1, "Jackknife"])
def test_methods_of_deviations_are_named(method):
    X, y = friedman(60)
    with pytest.raises(ValueError, match="method must be one of 'jackknife', 'infinitesimal'"):
        regressor(n_estimators=5).fit(X, y).predict_std(X, method)


@pytest.mark.parametrize("method", ["jackknife", "infinitesimal"])
def test_deviations_do_not_depend_on_the_order_of_rows(method):
    X, y = friedman()
    order = np.random.default_rng(0).permutation(250)
    one, other = regressor().fit(X, y), regressor().fit(X[order], y[order])
    np.testing.assert_array_equal(one.predict_std(X, method), other.predict_std(X, method))


def left_out_of(rows, weight=None):
    """One tree that left out all of so many rows."""
    weight = None if weight is None else np.asarray(weight, dtype=float)
    return LeftOut.of(np.zeros((1, rows), dtype=np.uint8), weight)


@pytest.mark.parametrize(
    ("rows", "level", "rank"),
    [(9, 0.9, 9), (9, 0.7, 7), (10, 0.9, 10), (19, 0.95, 19), (99, 0.8, 80), (100, 0.8, 81)],
)
def test_ranks(rows, level, rank):
    values = np.random.default_rng(0).permutation(np.arange(1.0, rows + 1))[np.newaxis]
    assert _uncertainty.upper_quantile(values.copy(), left_out_of(rows), level) == rank
    ones = left_out_of(rows, np.ones(rows))
    assert _uncertainty.upper_quantile(values.copy(), ones, level) == rank


def test_a_weight_of_two_is_the_value_twice():
    random = np.random.default_rng(0)
    for _ in range(30):
        values, weight = random.normal(size=(1, 12)), random.integers(1, 4, 12)
        level = random.uniform(0.1, 0.99)
        weighted = _uncertainty.upper_quantile(values.copy(), left_out_of(12, weight), level)
        repeated = np.repeat(values, weight, axis=1)
        rows = left_out_of(repeated.shape[1])
        assert weighted == _uncertainty.upper_quantile(repeated, rows, level)


def test_rows_that_all_trees_used_are_left_out():
    drawn = np.array([[1, 0, 1], [2, 1, 0]], dtype=np.uint8)
    left_out = LeftOut.of(drawn, np.array([5.0, 6.0, 7.0]))
    assert left_out.row.tolist() == [1, 2]
    assert left_out.weight.tolist() == [6.0, 7.0]
    said = Answers(np.array([[10.0, 20.0]]), None)
    assert left_out.means(said, None).tolist() == [[10.0, 20.0]]


def variances(method, said, drawn, repeats, unused=1.0):
    if method == "jackknife":
        return _uncertainty.jackknife_variance(said, LeftOut.of(drawn, None), repeats)
    return _uncertainty.infinitesimal_variance(said, _uncertainty.Draws(drawn, repeats, unused))


@pytest.mark.parametrize("method", ["jackknife", "infinitesimal"])
@pytest.mark.parametrize("replaced", [True, False])
@pytest.mark.parametrize("size", [10, 40])
def test_the_deviation_of_a_mean_is_the_known_one(method, replaced, size):
    # Trees that are single leaves predict the means of their samples, and the forest the mean of
    # all: its deviation is that of the targets, divided by the root of their number.
    random = np.random.default_rng(0)
    target = random.normal(size=50)
    drawn = np.zeros((20_000, 50), dtype=np.uint8)
    for counts in drawn:
        np.add.at(counts, random.choice(50, size, replace=replaced), 1)
    values = (drawn @ target / size)[np.newaxis]
    unused = 1.0 if replaced else 1.0 - size / 50
    variance, of_seeds = variances(method, Answers(values, None), drawn, np.ones(50), unused)
    expected = target.var(ddof=1) / 50
    if replaced and method == "infinitesimal":
        expected *= 49 / 50  # it divides by n twice
    assert variance[0] == pytest.approx(expected, rel=0.04)
    assert of_seeds[0] == pytest.approx(values.var(ddof=1) / 20_000)


@pytest.mark.parametrize("method", ["jackknife", "infinitesimal"])
def test_a_weight_of_two_halves_what_a_row_says_of_the_variance(method):
    # Ten samples twice each are no more than ten: a weight says that they are twenty.
    random = np.random.default_rng(1)
    target = np.repeat(random.normal(size=25), 2)
    drawn = random.multinomial(50, np.full(50, 1 / 50), size=20_000)
    values = (drawn @ target / 50)[np.newaxis]
    said = Answers(values, None)
    each, _ = variances(method, said, drawn, np.ones(50))
    merged = drawn.reshape(-1, 25, 2).sum(axis=2)
    together, _ = variances(method, said, merged, np.full(25, 2.0))
    assert together[0] == pytest.approx(each[0], rel=0.1)


def test_deviations_of_a_forest_without_splits():
    y = np.random.default_rng(0).normal(size=80)
    X = np.arange(80.0)[:, np.newaxis]
    model = regressor(n_estimators=2000, min_samples_leaf=80).fit(X, y)
    np.testing.assert_allclose(model.predict_std(X[:3]), y.std(ddof=1) / 80**0.5, rtol=0.1)


def test_the_deviation_meets_the_spread_over_training_samples():
    at = np.linspace(-0.9, 0.9, 15)[:, np.newaxis]
    found, estimated = [], []
    for seed in range(40):
        X, y = noisy(60, seed)
        model = regressor(n_estimators=400, max_samples=0.3, random_state=seed)
        model.fit(X[:, :1], y)
        found.append(model.predict(at))
        estimated.append(model.predict_std(at) ** 2)
    ratio = np.mean(estimated) / np.var(found, axis=0, ddof=1).mean()
    assert 0.8 < ratio < 1.3


# --- coverage ------------------------------------------------------------------------------------


def coverage(level, varying, seeds=range(100, 130), n=80):
    held = []
    for seed in seeds:
        X, y = noisy(n + 400, seed, varying)
        model = regressor(random_state=seed, n_estimators=300).fit(X[:n], y[:n])
        low, high = model.predict_interval(X[n:], level).T
        held.append(np.mean((low <= y[n:]) & (y[n:] <= high)))
    return np.mean(held)


@pytest.mark.parametrize("varying", [False, True], ids=["equal noise", "varying noise"])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_intervals_cover(level, varying):
    # Seeds are fixed. A standard error is about a point at 80 %, and half a point at 95 %.
    assert abs(coverage(level, varying) - level) < 0.025


def test_a_leak_would_show(monkeypatch):
    # The same with all trees, also those that used the row: residuals are too small.
    monkeypatch.setattr(OutOfBag, "of", staticmethod(lambda *_: None))

    def leaking(self, task, data, earlier):
        keep(self, task, data, earlier)
        everyone = self._fitted().predict(data.X)[:, 0]
        self._out_of_bag = OutOfBag(everyone, None, True)

    keep = MorfRegressor._keep_samples
    monkeypatch.setattr(MorfRegressor, "_keep_samples", leaking)
    assert coverage(0.8, False, range(3)) < 0.7


@pytest.mark.parametrize("level", [0.8, 0.9])
def test_sets_cover(level):
    held, sizes = [], []
    for seed in range(25):
        X, y = blobs(480, seed)
        model = classifier(random_state=seed, n_estimators=200).fit(X[:80], y[:80])
        sets = model.predict_set(X[80:], level)
        held.append(np.mean(sets[np.arange(400), y[80:]]))
        sizes.append(sets.sum(axis=1).mean())
    assert abs(np.mean(held) - level) < 0.02
    assert np.mean(sizes) < 2.0


def test_sets_are_empty_only_if_asked():
    X, y = blobs(300, 0)
    X = X + 6.0 * np.eye(3)[y][:, :2]  # nearly always right
    model = classifier().fit(X[:200], y[:200])
    some = model.predict_set(X[200:], 0.7, allow_empty=True)
    assert (some.sum(axis=1) == 0).any()
    full = model.predict_set(X[200:], 0.7)
    assert (full.sum(axis=1) >= 1).all()
    assert (full | some == full).all()
    empty = some.sum(axis=1) == 0
    np.testing.assert_array_equal(full[empty].argmax(axis=1), model.predict(X[200:])[empty])


def test_higher_levels_hold_lower_ones():
    X, y = friedman()
    model = regressor().fit(X[:200], y[:200])
    inner, outer = (model.predict_interval(X[200:], level) for level in (0.7, 0.9))
    assert (outer[:, 0] <= inner[:, 0]).all()
    assert (outer[:, 1] >= inner[:, 1]).all()
    assert (inner[:, 0] < inner[:, 1]).all()


# --- the same whatever the call ------------------------------------------------------------------


def answers(model, X):
    if isinstance(model, MorfRegressor):
        return model.predict_interval(X, 0.8), model.predict_std(X)
    return model.predict_set(X, 0.8), model.predict_std(X)


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_neither_threads_nor_batches_nor_pickles_show(kind, monkeypatch):
    X, y = friedman()
    if kind == "numbers":
        model = regressor().fit(X, y)
    else:
        model = classifier().fit(X, np.digitize(y, [10, 15]))
    expected = answers(model, X)
    others = [pickle.loads(pickle.dumps(model)), model.set_params(n_jobs=2)]
    for other in others:
        for found, known in zip(answers(other, X), expected, strict=True):
            np.testing.assert_array_equal(found, known)
    model.set_params(n_jobs=None)
    alone = answers(model, X[7:8])
    monkeypatch.setattr(_uncertainty, "HELD_VALUES", 5000)
    monkeypatch.setattr(_uncertainty, "TRAINING_ROWS", 13)
    for found, known, one in zip(answers(model, X), expected, alone, strict=True):
        np.testing.assert_allclose(found, known, rtol=1e-13)
        np.testing.assert_array_equal(known[7:8], one)


def test_shapes_and_classes():
    X, y = digits()
    model = classifier().fit(X[:200], y[:200])
    sets, deviations = answers(model, X[200:])
    assert sets.shape == deviations.shape == (200, 10)
    assert sets.dtype == bool
    assert (deviations >= 0).all()
    X, y = friedman()
    intervals, deviations = answers(regressor().fit(X, y), X)
    assert intervals.shape == (250, 2)
    assert deviations.shape == (250,)
    assert not hasattr(MorfTreeRegressor(), "predict_interval")
    assert not hasattr(classifier(), "predict_interval")
    assert not hasattr(regressor(), "predict_set")


@pytest.mark.parametrize(
    "dictionary",
    [Patch(max_size=3), Subset(Patch(max_size=3), 30), SharedAtoms(Kernel("sign", pool="max"), 30)],
    ids=lambda dictionary: type(dictionary).__name__,
)
@pytest.mark.parametrize("augment", [None, ImageCopies(copies=1)])
def test_every_dictionary(dictionary, augment):
    X, y = digits()
    model = classifier(dictionary=dictionary, augment=augment, bootstrap=True, n_estimators=20)
    sets = model.fit(X[:150], y[:150]).predict_set(X[150:], 0.9)
    assert sets[np.arange(250), y[150:]].mean() > 0.8
    assert sets.mean() < 0.9
    assert model.predict_std(X[:3]).shape == (3, 10)


def test_a_warm_start_is_one_fit():
    X, y = friedman()
    whole = regressor(n_estimators=40).fit(X, y)
    later = regressor(n_estimators=15, warm_start=True).fit(X, y)
    later.set_params(n_estimators=40).fit(X, y)
    for found, known in zip(answers(later, X), answers(whole, X), strict=True):
        np.testing.assert_array_equal(found, known)


def test_out_of_bag_predictions_are_those_of_the_score():
    X, y = friedman()
    weight = np.where(np.arange(250) % 5, 1.0, 0.0)
    model = regressor(oob_score=True).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(model._out_of_bag.prediction, model.oob_prediction_[weight > 0])
    without = regressor().fit(X[weight > 0], y[weight > 0])
    for found, known in zip(answers(model, X), answers(without, X), strict=True):
        np.testing.assert_array_equal(found, known)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e290])
def test_any_scale_and_offset(scale):
    X, y = friedman()
    plain, scaled = regressor().fit(X, y), regressor().fit(X, np.ldexp(y, int(np.log2(scale))))
    factor = 2.0 ** int(np.log2(scale))
    for found, known in zip(answers(scaled, X), answers(plain, X), strict=True):
        np.testing.assert_allclose(found / factor, known, rtol=1e-9)
    moved = regressor().fit(X, y + 2.0**30)
    expected = plain.predict_interval(X, 0.8) + 2.0**30
    np.testing.assert_allclose(moved.predict_interval(X, 0.8), expected, rtol=1e-12)


def test_weights_of_any_size():
    X, y = friedman()
    weight = np.where(np.arange(250) % 2, 1e-300, 1e300)
    model = regressor().fit(X, y, sample_weight=weight)
    expected = regressor().fit(X[::2], y[::2]).predict_interval(X, 0.8)
    found = pickle.loads(pickle.dumps(model)).predict_interval(X, 0.8)
    np.testing.assert_array_equal(found, model.predict_interval(X, 0.8))
    # Rows of hardly any weight are hardly ever drawn, and count for nothing.
    assert np.median(np.abs(found - expected)) < 0.3 * y.std()


def test_equal_targets():
    X, _ = friedman()
    model = regressor().fit(X, np.full(250, 3.0))
    assert (model.predict_interval(X, 0.9) == 3.0).all()
    assert (model.predict_std(X) == 0.0).all()


# --- bad input -----------------------------------------------------------------------------------

METHODS = [
    ("predict_interval", regressor, (0.9,)),
    ("predict_std", regressor, ()),
    ("predict_set", classifier, (0.9,)),
    ("predict_std", classifier, ()),
]


@pytest.mark.parametrize(("method", "make", "more"), METHODS)
def test_what_a_forest_must_have(method, make, more):
    X, y = blobs(60, 0)
    with pytest.raises(ValueError, match="fit with keep_samples=True"):
        getattr(make(keep_samples=False).fit(X, y), method)(X, *more)
    with pytest.raises(ValueError, match=f"{method} needs training samples .* bootstrap=True"):
        getattr(make(bootstrap=False).fit(X, y), method)(X, *more)
    with pytest.raises(ValueError, match="features"):
        getattr(make().fit(X, y), method)(X[:, :1], *more)
    with pytest.raises(ValueError, match="not fitted"):
        getattr(make(), method)(X, *more)


@pytest.mark.parametrize("level", [0, 1, 0.0, 1.0, 90, -0.1, np.nan, "0.9", None, True, [0.9]])
def test_levels(level):
    X, y = blobs(60, 0)
    with pytest.raises(ValueError, match=r"level must be a number between 0 and 1, .* got"):
        regressor(n_estimators=20).fit(X, y).predict_interval(X, level)
    with pytest.raises(ValueError, match=r"level must be a number between 0 and 1, .* got"):
        classifier(n_estimators=20).fit(X, y).predict_set(X, level)


def test_too_few_samples_or_trees():
    X, y = blobs(12, 0)
    with pytest.warns(UserWarning, match="level=0.95 needs at least 19 training samples"):
        found = regressor().fit(X, y).predict_interval(X, 0.95)
    assert np.isinf(found).all()
    with pytest.warns(UserWarning, match="level=0.95 needs"):
        assert classifier().fit(X, y).predict_set(X, 0.95).all()
    with pytest.warns(UserWarning, match="were used by all trees .* use more trees than 3"):
        regressor(n_estimators=3).fit(X, y).predict_interval(X, 0.5)
    model = regressor(n_estimators=1).fit(X, y)
    with pytest.raises(ValueError, match="at least two trees"):
        model.predict_std(X)
    with pytest.raises(ValueError, match="allow_empty must be True or False"):
        classifier().fit(X, y).predict_set(X, 0.8, allow_empty="yes")


def test_many_negative_variances_are_told():
    X, y = noisy(150, 0)
    with pytest.warns(UserWarning, match="variances were negative .* use more trees"):
        deviations = regressor(n_estimators=20).fit(X, y).predict_std(X)
    assert (deviations > 0).all()


@pytest.mark.parametrize(
    "change",
    [
        {"prediction": np.zeros(3)},
        {"prediction": None},
        {"prediction": np.full(60, -np.inf)},
        {"weight": -np.ones(60)},
        {"whole": 1},
        {"more": 1},
    ],
    ids=str,
)
def test_damaged_records_are_refused(change):
    X, y = blobs(60, 0)
    model = regressor(dictionary=Axis()).fit(X, y)
    record = model._out_of_bag
    for name, value in change.items():
        setattr(record, name, value)
    with pytest.raises(ValueError, match=r"^damaged model"):
        pickle.loads(pickle.dumps(model))
    model._out_of_bag = None
    with pytest.raises(ValueError, match=r"^damaged model"):
        pickle.loads(pickle.dumps(model))
