"""Refits that fail, and messages of boosting, ridge and atoms as features."""

import numpy as np
import pytest

from morforest import (
    AtomFeatures,
    AtomRidgeClassifier,
    Difference,
    MorfBoostingClassifier,
    MorfBoostingRegressor,
    Pair,
    Raw,
)

X = np.random.default_rng(0).normal(size=(40, 12))
Y = np.arange(40) % 2


@pytest.mark.parametrize("bad", [{"dictionary": "nothing"}, {"n_atoms": 0}, {"random_state": "x"}])
@pytest.mark.parametrize("estimator", [AtomFeatures, AtomRidgeClassifier])
def test_a_failed_refit_leaves_what_was_fitted(estimator, bad):
    model = estimator(n_atoms=30, random_state=0).fit(X, Y)
    use = model.transform if estimator is AtomFeatures else model.decision_function
    before = use(X)
    model.set_params(**bad)
    with pytest.raises(ValueError, match=next(iter(bad))):
        model.fit(X[:, :7], Y)
    assert model.n_features_in_ == 12
    np.testing.assert_array_equal(use(X), before)


def test_pairs_across_channels_name_both():
    features = AtomFeatures(Pair(2, 2, views=[Raw(), Difference()]), 60, random_state=0).fit(X)
    names = " | ".join(features.get_feature_names_out())
    assert "of raw and difference" in names
    assert "of difference and raw" in names
    assert "of difference at" in names


def test_boosting_names_all_choices_of_max_features():
    with pytest.raises(ValueError, match=r"max_features must be one of 'auto'.*got 'all'"):
        MorfBoostingClassifier(max_features="all").fit(X, Y)


@pytest.mark.parametrize("alphas", ["x", [1, -1], 3.0, [], ["a"], object(), [np.nan]])
def test_ridge_names_bad_alphas(alphas):
    with pytest.raises(ValueError, match=r"alphas must be None or a list of positive numbers.*got"):
        AtomRidgeClassifier(n_atoms=20, alphas=alphas).fit(X, Y)


@pytest.mark.parametrize("axis", [0, 5, "a", 1.5])
def test_ridge_names_a_bad_channel_axis(axis):
    with pytest.raises((TypeError, ValueError), match=r"channel_axis.*(got|give)"):
        AtomRidgeClassifier(n_atoms=20, channel_axis=axis).fit(X.reshape(40, 3, 4), Y)


def test_poisson_boosting_needs_a_positive_target_that_counts():
    y = np.zeros(40)
    y[0] = 3
    weight = np.ones(40)
    weight[0] = 0
    with pytest.raises(ValueError, match=r"poisson.*needs a positive target.*all are zero"):
        MorfBoostingRegressor(loss="poisson", max_iter=3).fit(X, y, weight)
