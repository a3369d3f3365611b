"""Calibration of boosted models: quantiles, intervals and sets that hold what they promise."""

import math
import pickle
import re

import numpy as np
import oracle_boosting
import pytest
from common import assert_same_forest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_classification
from sklearn.model_selection import train_test_split
from test_boosting import digits, problems, the_oracle
from test_oracle import examples

from morforest import (
    Axis,
    ImageCopies,
    MorfBoostingClassifier,
    MorfBoostingRegressor,
    Patch,
    SharedAtoms,
    Subset,
    _calibrated,
    _losses,
)
from morforest._calibration import conformal_quantiles, deal_folds
from morforest._fixed_point import to_core_dtype
from morforest._training import prepare_boosting

# --- against the oracle ----------------------------------------------------------------------


@examples(200)
@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 4)), min_size=1, max_size=12),
    st.integers(1, 19),
)
def test_quantiles_of_errors_equal_the_oracle(pairs, twentieth):
    values, weights = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    (found,) = conformal_quantiles(values, weights, np.array([twentieth / 20]))
    expected = oracle_boosting.conformal_quantile(values, weights, twentieth / 20)
    assert found == pytest.approx(expected, abs=1e-9)


def test_a_quantile_of_errors_is_that_of_the_next_one():
    # Of nine values, one more is below the i-th with probability i / 10.
    values = np.arange(1.0, 10.0)
    q = np.arange(1, 10) / 10
    np.testing.assert_allclose(conformal_quantiles(values, np.ones(9), q), values)
    beyond = conformal_quantiles(values, np.ones(9), np.array([0.05, 0.95]))
    assert beyond.tolist() == [-math.inf, math.inf]


@pytest.mark.parametrize("folds", [2, 3, 5])
def test_folds_share_rows_and_classes_evenly(folds):
    rng = np.random.default_rng(0)
    order, classes = rng.permutation(47).astype(np.uint32), rng.integers(0, 4, 47)
    found = deal_folds(order, classes, folds)
    assert sorted(np.concatenate(found).tolist()) == list(range(47))
    for rows in (np.arange(47), *(np.flatnonzero(classes == k) for k in range(4))):
        sizes = [len(np.intersect1d(fold, rows)) for fold in found]
        assert max(sizes) - min(sizes) <= 1
    expected = oracle_boosting.deal(order.tolist(), classes.tolist(), folds)
    assert [fold.tolist() for fold in found] == [sorted(fold) for fold in expected]


@examples(60)
@given(problems(st.integers(6, 20)), st.integers(2, 4), st.booleans())
def test_calibration_equals_the_oracle(problem, folds, early):
    problem.parameters |= {
        "calibration_folds": folds,
        "early_stopping": early,
        "n_iter_no_change": 1,
    }
    if problem.parameters.get("loss") == "poisson":
        problem.y = problem.y + 1.0  # some of them must be positive without each fold
    model = problem.fit()
    plain, _ = the_oracle(problem, model)
    classes = len(getattr(model, "classes_", ()))
    target = np.array(plain.y)
    weights = np.array(plain.copies) * np.array(plain.weights)
    loss = _losses.make_loss(
        problem.parameters.get("loss", "log_loss"),
        target,
        np.ones(len(target)),
        classes=classes,
        quantile=problem.parameters.get("quantile"),
    )
    dealt = oracle_boosting.deal(plain.order, plain.y if classes else None, folds)
    models = []
    for fold in dealt:
        trained = loss.of(np.setdiff1d(np.arange(len(target)), fold))
        trained.weight = weights[np.setdiff1d(np.arange(len(target)), fold)]
        models.append(the_oracle(problem, model, fold, trained.baseline())[0])
    cross = oracle_boosting.CrossFit(
        models, dealt, lambda scores: loss.average(scores, np.arange(len(target)), weights)
    )
    scores, losses = cross.run(problem.parameters["max_iter"], 1 if early else None, model.tol)
    np.testing.assert_allclose(model.validation_score_, losses, rtol=1e-9, atol=1e-12)
    assert model.n_iter_ == (int(np.argmin(losses)) + 1 if early else len(losses))
    given_weights = np.ones(len(target)) if problem.sample_weight is None else problem.sample_weight
    if classes:
        scores = scores if classes > 2 else np.hstack([np.zeros_like(scores), scores])
        true = _losses.softmax(scores)[np.arange(len(target)), target]
        np.testing.assert_allclose(model._calibration.scores, true, rtol=1e-9)
        rows = to_core_dtype(problem.X.reshape(len(target), -1))
        calibration = model._calibration
        by_fold = [
            model._probabilities(baseline + forest.predict_sum(rows))
            for forest, baseline in zip(calibration.forests, calibration.baselines, strict=True)
        ]
        for number, fold in enumerate(dealt):  # the models that are kept are those that were judged
            np.testing.assert_allclose(by_fold[number][fold, target[fold]], true[fold], rtol=1e-9)
            calibration.scores[fold] = by_fold[number][fold, target[fold]]  # ties to the last bit
        sets = model.predict_set(problem.X, 0.63, allow_empty=True)
        for row in range(len(target)):
            found = oracle_boosting.class_set(
                [of[row] for of in by_fold], calibration.scores, given_weights, dealt, 0.63
            )
            assert sets[row].tolist() == found
        return
    poisson = problem.parameters["loss"] == "poisson"
    error = target - (_losses.exp(scores[:, 0]) if poisson else scores[:, 0])
    if problem.parameters["loss"] == "quantile":
        q = problem.parameters["quantile"]
        found = oracle_boosting.conformal_quantile(error, given_weights, q)
        found = min(max(found, error.min()), error.max())
        assert model.quantile_correction_ == pytest.approx(
            math.ldexp(found, model._exponent), rel=1e-9, abs=1e-9 * np.abs(problem.y).max()
        )
        return
    if not error.any():
        return
    rows = to_core_dtype(problem.X.reshape(len(target), -1))
    scale = model._calibration.scales(rows, None)
    interval = model.predict_interval(problem.X, 0.6)
    ends = [
        oracle_boosting.conformal_quantile(model._calibration.scores, given_weights, q)
        for q in ((1 - 0.6) / 2, (1 + 0.6) / 2)
    ]
    expected = model.predict(problem.X)[:, None] + scale[:, None] * ends
    expected = np.maximum(expected, 0.0) if poisson else expected
    np.testing.assert_allclose(interval, expected, rtol=1e-9, atol=1e-9 * np.abs(problem.y).max())


def test_scales_are_those_of_a_boosted_model_of_errors(monkeypatch):
    # The scale is what boosting with the Poisson loss makes of the sizes of left-out errors.
    seen = []

    def prepare(data, *more):
        seen.append(data.target)
        return prepare_boosting(data, *more)

    monkeypatch.setattr(_calibrated, "prepare_boosting", prepare)
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 2))
    y = X[:, 0] * rng.normal(size=300)
    model = MorfBoostingRegressor(Axis(), calibration_folds=3, random_state=0, max_iter=60)
    calibration = model.fit(X, y)._calibration
    (sizes,) = seen
    assert 0.5 <= sizes.mean() < 1
    of_sizes = clone(model).set_params(loss="poisson").fit(X, sizes)
    assert 1 < calibration.forest.n_trees == of_sizes.n_iter_ < 60
    expected = np.ldexp(of_sizes.predict(X), calibration.exponent)
    np.testing.assert_array_equal(calibration.scales(X, None), expected)
    assert np.corrcoef(expected, X[:, 0])[0, 1] > 0.8
    # Scores are errors in multiples of scales that did not see them either.
    left_out = sizes / np.abs(calibration.scores)
    assert np.corrcoef(left_out, expected)[0, 1] > 0.9
    assert not np.array_equal(left_out, of_sizes.predict(X))


# --- coverage --------------------------------------------------------------------------------


def noisy(n, kind, rng):
    X = rng.uniform(-1, 1, size=(n, 4))
    noise = rng.exponential(size=n) - 1 if kind == "skewed" else rng.normal(size=n)
    scale = 0.3 + 1.5 * np.abs(X[:, 0]) if kind == "heteroscedastic" else 1.0
    return X, 3 * np.sin(3 * X[:, 0]) + X[:, 1] + scale * noise


@pytest.mark.parametrize("kind", ["even", "heteroscedastic", "skewed"])
def test_intervals_and_quantiles_cover_what_they_say(kind):
    covered, below = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = noisy(500, kind, rng)
        new, truth = noisy(2000, kind, rng)
        model = MorfBoostingRegressor(Axis(), calibration_folds=5, random_state=seed).fit(X, y)
        for level in (0.8, 0.9, 0.95):
            low, high = model.predict_interval(new, level).T
            covered.append(np.mean((low <= truth) & (truth <= high)) - level)
        q = [0.1, 0.5, 0.9]
        quantiles = model.predict_quantiles(new, q)
        assert quantiles.shape == (2000, 3)
        below.append(np.mean(truth[:, None] <= quantiles, axis=0) - q)
    assert abs(np.mean(covered)) < 0.015
    np.testing.assert_allclose(np.mean(below, axis=0), 0, atol=0.025)


def test_the_width_follows_the_noise():
    rng = np.random.default_rng(0)
    X, y = noisy(1000, "heteroscedastic", rng)
    model = MorfBoostingRegressor(Axis(), calibration_folds=5, random_state=0).fit(X, y)
    X, y = noisy(4000, "heteroscedastic", rng)
    low, high = model.predict_interval(X, 0.9).T
    quiet = np.abs(X[:, 0]) < 0.3
    assert np.mean((high - low)[~quiet]) > 1.7 * np.mean((high - low)[quiet])
    for part in (quiet, ~quiet):
        assert np.mean(((low <= y) & (y <= high))[part]) == pytest.approx(0.9, abs=0.07)


@pytest.mark.parametrize("q", [0.1, 0.9])
def test_quantile_losses_cover_by_default_and_lose_nothing(q):
    X, y = load_diabetes(return_X_y=True)
    covered, losses = [], []
    for seed in range(4):
        train, test, target, truth = train_test_split(X, y, random_state=seed)
        for folds in (None, "auto"):
            model = MorfBoostingRegressor(
                loss="quantile", quantile=q, calibration_folds=folds, random_state=0
            ).fit(train, target)
            residual = truth - model.predict(test)
            covered.append(np.mean(residual <= 0))
            losses.append(np.mean(np.maximum(q * residual, (q - 1) * residual)))
    plain, calibrated = np.reshape(covered, (4, 2)).mean(axis=0)
    assert abs(plain - q) > 0.08
    assert calibrated == pytest.approx(q, abs=0.035)
    plain, calibrated = np.reshape(losses, (4, 2)).mean(axis=0)
    assert calibrated < plain


def test_sets_hold_the_class_as_often_as_they_say():
    found = []
    for seed in range(4):
        X, y = make_classification(
            3000, 8, n_informative=5, n_classes=4, flip_y=0.1, random_state=seed
        )
        model = MorfBoostingClassifier(
            Axis(), max_iter=100, calibration_folds=5, random_state=0
        ).fit(X[:500], y[:500])
        for level in (0.8, 0.9, 0.95):
            sets = model.predict_set(X[500:], level, allow_empty=True)
            assert sets.shape == (2500, 4)
            assert sets.dtype == bool
            found.append(sets[np.arange(2500), y[500:]].mean() - level)
        sizes = [
            model.predict_set(X[500:], level, allow_empty=True).sum() for level in (0.5, 0.8, 0.95)
        ]
        assert sizes == sorted(sizes)
    assert -0.01 < np.mean(found) < 0.03


def test_class_weights_do_not_change_what_sets_promise():
    X, y = make_classification(3000, 6, weights=[0.85], flip_y=0.1, random_state=0)
    model = MorfBoostingClassifier(
        Axis(), max_iter=60, class_weight="balanced", calibration_folds=5, random_state=0
    ).fit(X[:800], y[:800])
    sets = model.predict_set(X[800:], 0.9, allow_empty=True)
    assert sets[np.arange(2200), y[800:]].mean() == pytest.approx(0.91, abs=0.03)


# --- promises --------------------------------------------------------------------------------


def answers(model, X):
    if hasattr(model, "classes_"):
        return model.predict_set(X, 0.8, allow_empty=True)
    return model.predict(X) if model.loss == "quantile" else model.predict_interval(X, 0.8)


MODELS = {
    "intervals": MorfBoostingRegressor(calibration_folds=3),
    "counts": MorfBoostingRegressor(calibration_folds=3, loss="poisson"),
    "medians": MorfBoostingRegressor(calibration_folds=3, loss="absolute_error"),
    "quantile": MorfBoostingRegressor(loss="quantile", quantile=0.8),
    "sets": MorfBoostingClassifier(calibration_folds=3),
    "copies": MorfBoostingRegressor(calibration_folds=2, augment=ImageCopies()),
    "subset": MorfBoostingRegressor(Subset(Patch(), 20), calibration_folds=2),
    "columns": MorfBoostingClassifier(SharedAtoms(Patch(), 20), calibration_folds=2),
}


@pytest.mark.parametrize("weighting", [None, "whole", "fractional"])
@pytest.mark.parametrize("name", MODELS)
def test_the_order_of_rows_and_threads_do_not_matter(name, weighting):
    X, y = digits(150)
    X = np.concatenate([X, X[:20]])  # some rows repeat, with other targets
    y = np.concatenate([y, (y[:20] + 1) % 10])
    rng = np.random.default_rng(0)
    weights = None
    if weighting is not None:
        weights = rng.integers(1, 4, len(y)) + (0.25 if weighting == "fractional" else 0.0)
    model = clone(MODELS[name]).set_params(max_iter=6, random_state=0)
    one = clone(model).fit(X, y, weights)
    order = rng.permutation(len(y))
    other = clone(model).set_params(n_jobs=3)
    other.fit(X[order], y[order], None if weights is None else weights[order])
    assert_same_forest(one, other)
    np.testing.assert_array_equal(one.validation_score_, other.validation_score_)
    np.testing.assert_array_equal(answers(one, X), answers(other, X))
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(answers(one, X), answers(again, X))


def test_the_model_is_the_one_of_as_many_rounds():
    X, y = load_diabetes(return_X_y=True)
    model = MorfBoostingRegressor(calibration_folds=4, random_state=0).fit(X, y)
    assert model.n_iter_ == np.argmin(model.validation_score_) + 1
    assert len(model.validation_score_) == model.n_iter_ + 20
    assert len(model.train_score_) == model.n_iter_
    plain = MorfBoostingRegressor(max_iter=model.n_iter_, random_state=0).fit(X, y)
    assert_same_forest(model, plain)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    assert (model.calibration_folds_, plain.calibration_folds_) == (4, None)
    assert model.quantile_correction_ == 0.0


def test_early_stopping_and_folds():
    X, y = load_diabetes(return_X_y=True)
    common = {"calibration_folds": 2, "max_iter": 40, "n_iter_no_change": 2, "random_state": 0}
    every = MorfBoostingRegressor(early_stopping=False, learning_rate=0.5, **common).fit(X, y)
    assert every.n_iter_ == len(every.validation_score_) == 40
    few = MorfBoostingRegressor(early_stopping=True, learning_rate=0.5, **common).fit(X, y)
    assert few.n_iter_ < 40
    plain = MorfBoostingRegressor(max_iter=3, random_state=0).fit(X, y)
    assert len(plain.validation_score_) == 0


def test_the_correction_is_part_of_every_prediction():
    X, y = load_diabetes(return_X_y=True)
    model = MorfBoostingRegressor(loss="quantile", quantile=0.9, max_iter=30, random_state=0)
    plain = clone(model).set_params(calibration_folds=None, early_stopping=False)
    model.fit(X, y)
    plain.set_params(max_iter=model.n_iter_).fit(X, y)
    assert model.calibration_folds_ == 5
    assert model.quantile_correction_ != 0.0
    moved = plain.predict(X) + model.quantile_correction_
    np.testing.assert_allclose(model.predict(X), moved, rtol=1e-9)
    np.testing.assert_allclose(list(model.staged_predict(X))[-1], moved, rtol=1e-9)
    values, baseline = model.attributions(X)
    np.testing.assert_allclose(baseline + values.sum(axis=1), moved, rtol=1e-9)


@pytest.mark.parametrize("power", [-990, -20, 500, 996])
def test_targets_of_any_size(power):
    X, y = noisy(60, "even", np.random.default_rng(0))
    y = y / np.abs(y).max()
    for loss in ("squared_error", "quantile"):
        model = MorfBoostingRegressor(
            Axis(), loss=loss, quantile=0.3, calibration_folds=3, max_iter=8, random_state=0
        )
        plain = answers(model.fit(X, y), X)
        scaled = answers(model.fit(X, np.ldexp(y, power)), X)
        np.testing.assert_array_equal(np.ldexp(scaled, -power), plain)


def test_intervals_without_errors():
    X = np.arange(60.0)[:, None]
    model = MorfBoostingRegressor(calibration_folds=3, max_iter=3).fit(X, np.full(60, 7.0))
    np.testing.assert_array_equal(model.predict_interval(X), 7.0)


def test_too_few_samples_for_a_level():
    X, y = noisy(30, "even", np.random.default_rng(0))
    model = MorfBoostingRegressor(calibration_folds=3, max_iter=3, random_state=0).fit(X, y)
    assert np.isfinite(model.predict_interval(X, 0.9)).all()
    assert np.isinf(model.predict_interval(X, 0.95)).all()
    classifier = MorfBoostingClassifier(calibration_folds=3, max_iter=3, random_state=0)
    assert classifier.fit(X, y > 0).predict_set(X, 0.99).all()


def test_few_samples_have_as_many_folds():
    X = [[0.0], [1.0], [2.0]]
    model = MorfBoostingRegressor(loss="quantile", max_iter=2, random_state=0)
    assert model.fit(X, [0.0, 1.0, 2.0]).calibration_folds_ == 3
    assert model.fit(X[:1], [0.0]).calibration_folds_ is None
    with pytest.raises(ValueError, match="calibration_folds=4 must not exceed the 3 samples"):
        model.set_params(calibration_folds=4).fit(X, [0.0, 1.0, 2.0])


def test_what_is_missing_is_explained():
    X, y = noisy(60, "even", np.random.default_rng(0))
    common = {"max_iter": 2, "random_state": 0}
    plain = MorfBoostingRegressor(**common).fit(X, y)
    for ask in (lambda: plain.predict_interval(X), lambda: plain.predict_quantiles(X, [0.5])):
        with pytest.raises(ValueError, match="needs a fit with calibration_folds"):
            ask()
    with pytest.raises(ValueError, match="needs a fit with calibration_folds"):
        MorfBoostingClassifier(**common).fit(X, y > 0).predict_set(X)
    quantile = MorfBoostingRegressor(loss="quantile", **common).fit(X, y)
    with pytest.raises(ValueError, match='loss="quantile" fits one quantile'):
        quantile.predict_interval(X)
    assert not hasattr(plain, "predict_std")
    with pytest.raises(ValueError, match=re.escape("does not go with warm_start=True")):
        MorfBoostingRegressor(loss="quantile", warm_start=True, **common).fit(X, y)
    quantile.set_params(warm_start=True, calibration_folds=None, max_iter=4)
    with pytest.raises(ValueError, match="cannot continue a fit with calibration_folds=5"):
        quantile.fit(X, y)
    with pytest.raises(ValueError, match="calibration_folds must be one of 'auto'"):
        MorfBoostingRegressor(calibration_folds="many").fit(X, y)


@pytest.mark.parametrize("level", [0, 1, -0.1, 90, "0.9", None, math.nan])
def test_bad_levels_are_explained(level):
    X, y = noisy(40, "even", np.random.default_rng(0))
    model = MorfBoostingRegressor(calibration_folds=2, max_iter=2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="level must be a number between 0 and 1"):
        model.predict_interval(X, level)
    with pytest.raises(ValueError, match="q must be a number or a list of numbers between 0 and 1"):
        model.predict_quantiles(X, [level])
    with pytest.raises(ValueError, match="q must be a number or a list"):
        model.predict_quantiles(X, [])
    assert model.predict_quantiles(X, 0.5).shape == (40, 1)


def test_damaged_calibrations_are_refused():
    X, y = noisy(40, "even", np.random.default_rng(0))
    model = MorfBoostingRegressor(calibration_folds=2, max_iter=2, random_state=0).fit(X, y)
    other = MorfBoostingRegressor(calibration_folds=2, max_iter=2, random_state=0)
    other.fit(X[:, :2], y)
    good = model._calibration
    for name, value in {
        "scores": good.scores[:-1],
        "weights": -good.weights,
        "forest": other._calibration.forest,
        "baseline": math.nan,
        "exponent": 10**6,
    }.items():
        damaged = pickle.loads(pickle.dumps(model))
        setattr(damaged._calibration, name, value)
        with pytest.raises(ValueError, match="damaged model"):
            pickle.loads(pickle.dumps(damaged))
    damaged = pickle.loads(pickle.dumps(model))
    damaged._calibration = "no"
    with pytest.raises(ValueError, match="damaged model"):
        pickle.loads(pickle.dumps(damaged))


def test_folds_are_told(capsys):
    X, y = noisy(60, "even", np.random.default_rng(0))
    MorfBoostingRegressor(calibration_folds=2, max_iter=2, random_state=0, verbose=1).fit(X, y)
    told = capsys.readouterr().err
    assert "rounds of 2 folds" in told
    assert "validation loss" in told


def test_no_set_is_empty_unless_that_is_allowed():
    X = np.random.default_rng(0).normal(size=(120, 2))
    y = (X[:, 0] > 0).astype(int)
    model = MorfBoostingClassifier(calibration_folds=4, max_iter=60, random_state=0).fit(X, y)
    sets = model.predict_set(X, 0.5)
    free = model.predict_set(X, 0.5, allow_empty=True)
    empty = ~free.any(axis=1)
    assert empty.any()
    np.testing.assert_array_equal(sets[~empty], free[~empty] | marks(model, X)[~empty])
    np.testing.assert_array_equal(sets[empty], marks(model, X)[empty])
    with pytest.raises(ValueError, match="allow_empty must be True or False"):
        model.predict_set(X, 0.5, allow_empty="yes")


def marks(model, X):
    return model.predict(X)[:, None] == model.classes_


def test_targets_that_are_nearly_all_alike_have_intervals():
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.zeros(60)
    y[3] = 5.0
    for loss in ("absolute_error", "squared_error"):
        model = MorfBoostingRegressor(loss=loss, calibration_folds=5, max_iter=20, random_state=0)
        low, high = model.fit(X, y).predict_interval(X, 0.8).T
        assert (low <= high).all()


@pytest.mark.parametrize("folds", [0, 1, -3, 2.5, True])
def test_numbers_of_folds_are_named(folds):
    X, y = np.zeros((9, 2)), np.arange(9) % 2
    message = r"calibration_folds must be an integer of at least 2, or None for no calibration"
    with pytest.raises(ValueError, match=message):
        MorfBoostingClassifier(calibration_folds=folds).fit(X, y)
    message = r'calibration_folds must be an integer of at least 2 or "auto", or None for no'
    with pytest.raises(ValueError, match=message):
        MorfBoostingRegressor(calibration_folds=folds).fit(X, y)
