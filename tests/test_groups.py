"""Groups of samples that boosting holds out together."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.model_selection import GroupKFold, cross_validate

from morforest import (
    AtomRidgeClassifier,
    AtomRidgeRegressor,
    MorfBoostingClassifier,
    MorfBoostingRegressor,
    Patch,
)
from morforest._calibration import deal_folds
from morforest._groups import deal_groups, hold_out_groups

RANDOM = np.random.default_rng(0)


def patients(n=240, people=24, seed=0):
    """Each patient has a signature that tells nothing about others, and labels of their own."""
    random = np.random.default_rng(seed)
    groups = np.arange(n) % people
    signature = random.normal(size=(people, 12))
    label = np.arange(people) % 2
    X = signature[groups] + 0.05 * random.normal(size=(n, 12))
    return X, label[groups], groups


# --- by definition ---------------------------------------------------------------------------


def deal_slowly(groups, classes, folds):
    """The rule of the docstring, in plain Python."""
    labels = sorted(set(groups.tolist()))
    kinds = sorted(set(classes.tolist()))
    counts = {g: [int(((groups == g) & (classes == k)).sum()) for k in kinds] for g in labels}
    totals = [int((classes == k).sum()) for k in kinds]
    dealt = [[0] * len(kinds) for _ in range(folds)]
    found = {}
    for group in sorted(labels, key=lambda g: (-sum(counts[g]), g)):

        def load(fold, group=group):
            terms = zip(counts[group], dealt[fold], totals, strict=True)
            return sum(n * (there / total) for n, there, total in terms)

        fold = min(range(folds), key=lambda f: (round(load(f), 9), sum(dealt[f]), f))
        found[group] = fold
        dealt[fold] = [a + b for a, b in zip(dealt[fold], counts[group], strict=True)]
    return [np.flatnonzero([found[g] == fold for g in groups.tolist()]) for fold in range(folds)]


@pytest.mark.parametrize("seed", range(20))
def test_groups_are_dealt_by_the_rule(seed):
    random = np.random.default_rng(seed)
    groups, classes = random.integers(0, 15, 100), random.integers(0, 3, 100)
    for found, expected in zip(
        deal_groups(groups, classes, 4), deal_slowly(groups, classes, 4), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    none = np.zeros(100, dtype=int)
    for found, expected in zip(
        deal_groups(groups, None, 4), deal_slowly(groups, none, 4), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("classes", [2, 5, None])
def test_no_group_is_in_two_folds_and_folds_are_alike(classes):
    groups = RANDOM.integers(0, 60, 900)
    y = None if classes is None else RANDOM.integers(0, classes, 900)
    folds = deal_folds(np.arange(900), y, 5, groups)
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.arange(900))
    assert sum(len(set(groups[rows])) for rows in folds) == len(set(groups))
    for k in range(classes or 1):
        shares = [np.sum(y[rows] == k) if classes else len(rows) for rows in folds]
        assert max(shares) < 1.3 * min(shares)


@pytest.mark.parametrize("fraction", [0.1, 0.25, 0.5])
def test_whole_groups_of_each_class_are_held_out(fraction):
    _, y, groups = patients(people=40, n=400)
    held_out = hold_out_groups(groups, y, fraction, seed=3)
    assert not set(groups[held_out]) & set(groups[~held_out])
    for k in (0, 1):
        assert len(set(groups[held_out & (y == k)])) == round(fraction * 20)
    assert (hold_out_groups(groups, y, fraction, seed=4) != held_out).any()
    np.testing.assert_array_equal(held_out, hold_out_groups(7 * groups - 3, y, fraction, seed=3))


# --- estimators ------------------------------------------------------------------------------


def fold_of(model):
    return model._calibration.fold


def test_calibration_keeps_groups_together():
    X, y, groups = patients()
    model = MorfBoostingClassifier(max_iter=5, calibration_folds=4, random_state=0)
    model.fit(X, y, groups=groups)
    for group in range(24):
        assert len(set(fold_of(model)[groups == group])) == 1
    with_leaks = model.fit(X, y)
    assert any(len(set(fold_of(with_leaks)[groups == group])) > 1 for group in range(24))


def test_losses_of_held_out_groups_are_honest():
    # What is known of a patient says nothing about another: without groups the loss seems low.
    X, y, groups = patients()
    for options in ({"early_stopping": True, "validation_fraction": 0.3}, {"calibration_folds": 4}):
        model = MorfBoostingClassifier(max_iter=60, random_state=0, **options)
        leaking = model.fit(X, y).validation_score_.min()
        honest = model.fit(X, y, groups=groups).validation_score_.min()
        assert leaking < 0.3
        assert honest > 0.6


def test_intervals_cover_samples_of_other_groups():
    random = np.random.default_rng(0)
    offset = random.normal(size=200)
    signature = random.normal(size=(200, 8))
    groups = np.repeat(np.arange(200), 5)
    X, y = signature[groups] + 0.01 * random.normal(size=(1000, 8)), offset[groups]
    model = MorfBoostingRegressor(max_iter=60, calibration_folds=5, random_state=0)
    train, test = groups < 100, groups >= 100

    def coverage(groups):
        low, high = model.fit(X[train], y[train], groups=groups).predict_interval(X[test], 0.9).T
        return np.mean((low <= y[test]) & (y[test] <= high))

    assert coverage(None) < 0.7
    assert coverage(groups[train]) > 0.8


def test_auto_tries_dictionaries_on_other_groups():
    X, y, groups = patients()
    model = MorfBoostingClassifier("auto", max_iter=2, random_state=0)
    leaking = max(model.fit(X, y).dictionary_scores_.values())
    honest = max(model.fit(X, y, groups=groups).dictionary_scores_.values())
    assert leaking > 0.85
    assert honest < 0.8  # 0.75 is chance
    order = np.random.default_rng(0).permutation(len(X))
    again = model.fit(X[order], y[order], groups=groups[order]).dictionary_scores_
    assert max(again.values()) == honest


@pytest.mark.parametrize("labels", ["numbers", "words", "from the end"])
def test_rows_may_come_in_any_order_and_labels_be_of_any_kind(labels):
    X, y, groups = patients()
    named = {
        "numbers": groups,
        "words": np.array([f"patient {g:02}" for g in range(24)])[groups],
        "from the end": groups - 100,
    }[labels]
    model = MorfBoostingClassifier(Patch(1, 3), max_iter=8, calibration_folds=3, random_state=0)
    expected = model.fit(X, y, groups=groups).predict_proba(X)
    order = np.random.default_rng(1).permutation(len(X))
    model.fit(X[order], y[order], groups=named[order])
    np.testing.assert_array_equal(model.predict_proba(X), expected)


def test_weights_of_zero_leave_groups_out():
    X, y, groups = patients()
    model = MorfBoostingClassifier(max_iter=5, calibration_folds=3, random_state=0)
    weights = np.where(groups < 18, 1, 0)
    expected = model.fit(X[groups < 18], y[groups < 18], groups=groups[groups < 18])
    expected = expected.predict_proba(X)
    np.testing.assert_array_equal(model.fit(X, y, weights, groups).predict_proba(X), expected)


def test_groups_of_one_sample_each_are_as_good_as_none():
    X, y, _ = patients()
    model = MorfBoostingClassifier(max_iter=20, calibration_folds=4, random_state=0)
    alone = model.fit(X, y, groups=RANDOM.permutation(len(X))).validation_score_.min()
    none = model.fit(X, y).validation_score_.min()
    assert abs(alone - none) < 0.1


def test_groups_change_nothing_where_nothing_is_held_out():
    X, y, groups = patients()
    model = MorfBoostingClassifier(max_iter=5, random_state=0)
    expected = model.fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(model.fit(X, y, groups=groups).predict_proba(X), expected)


def test_groups_are_routed_as_metadata():
    X, y, groups = patients()
    with config_context(enable_metadata_routing=True):
        model = MorfBoostingClassifier(max_iter=5, calibration_folds=3, random_state=0)
        model.set_fit_request(groups=True, sample_weight=True)
        model.set_score_request(sample_weight=False)
        found = cross_validate(
            model,
            X,
            y,
            cv=GroupKFold(3),
            params={"groups": groups, "sample_weight": np.ones(len(X))},
            return_estimator=True,
            return_indices=True,
        )
    for fitted, rows in zip(found["estimator"], found["indices"]["train"], strict=True):
        for group in set(groups[rows]):
            assert len(set(fold_of(fitted)[groups[rows] == group])) == 1


BAD = {
    "too short": (np.zeros(3), r"groups has shape \(3,\), expected \(240,\)"),
    "two columns": (np.zeros((240, 2)), r"groups has shape \(240, 2\)"),
    "one group": (np.full(240, 7), "single label, .*7.*two groups"),
    "NaN": (np.where(np.arange(240) == 3, np.nan, 1.0), "groups contains NaN"),
    "mixed": (np.array(["a", 1] * 120, dtype=object), "groups must be labels of one kind"),
    "masked": (np.ma.masked_equal(np.arange(240), 3), "groups has 1 masked"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize(
    "model",
    [
        MorfBoostingClassifier(max_iter=2),
        MorfBoostingRegressor(max_iter=2),
        AtomRidgeClassifier("sporf", 20),
        AtomRidgeRegressor("sporf", 20),
    ],
    ids=lambda model: type(model).__name__,
)
def test_bad_groups_are_refused(name, model):
    X, y, _ = patients()
    groups, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, groups=groups)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("kind", [AtomRidgeClassifier, AtomRidgeRegressor])
def test_ridge_leaves_whole_groups_out(kind):
    X, y, groups = patients()
    model = kind("sporf", 200, random_state=0)
    score = "loo_decision_function_" if kind is AtomRidgeClassifier else "loo_prediction_"
    leaking, honest = (getattr(model.fit(X, y, groups=g), score) for g in (None, groups))
    middle = 0 if kind is AtomRidgeClassifier else 0.5
    assert np.mean((leaking > middle) == y) > 0.8
    assert np.mean((honest > middle) == y) < 0.65
    assert model.alpha_ > 1


def test_ridge_merges_equal_samples_of_a_group_only():
    X, y, groups = patients()
    twice = np.repeat(np.arange(240), 2)
    model = AtomRidgeClassifier("sporf", 50, random_state=0)
    expected = model.fit(X, y, np.full(240, 2), groups).loo_decision_function_
    found = model.fit(X[twice], y[twice], groups=groups[twice]).loo_decision_function_
    np.testing.assert_allclose(found, expected[twice], atol=1e-8)
    other = np.concatenate([groups, groups + 24])
    model.fit(np.tile(X, (2, 1)), np.tile(y, 2), groups=other)
    assert np.mean((model.loo_decision_function_ > 0) == np.tile(y, 2)) > 0.6  # copies tell


def test_ridge_needs_two_groups_of_positive_weight():
    X, y, groups = patients()
    with pytest.raises(ValueError, match="single label among the samples of positive weight"):
        AtomRidgeRegressor("sporf", 20).fit(X, y, np.where(groups == 3, 1, 0), groups)


def test_too_few_groups_are_told():
    X, y, _ = patients()
    two = np.arange(len(X)) % 2
    with pytest.raises(ValueError, match="calibration_folds=5 must not exceed the 2 groups"):
        MorfBoostingClassifier(max_iter=2, calibration_folds=5).fit(X, y, groups=two)
    with pytest.raises(ValueError, match=r"validation_fraction=0\.1 holds no group out of 2"):
        MorfBoostingClassifier(max_iter=2, early_stopping=True).fit(X, y, groups=two)
