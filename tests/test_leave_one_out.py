"""Ridge regression in closed form: what refits without each row find, and scikit-learn's."""

import numpy as np
import oracle_ridge as oracle
import pytest
from sklearn.linear_model import Ridge, RidgeCV

from morforest import _leave_one_out as module
from morforest._leave_one_out import fit_ridge, fit_slope, log_probabilities, probabilities

ALPHAS = np.array([0.01, 0.3, 10.0, 300.0])


def problem(n, p, targets=2, seed=0):
    random = np.random.default_rng(seed)
    Z = random.normal(size=(n, p)).astype(np.float32)
    Y = Z[:, :1] - Z[:, -1:] + random.normal(size=(n, targets)) + 3
    return Z, Y, random.gamma(1.0, size=n)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("n", "p"), [(2, 1), (2, 9), (3, 2), (12, 30), (12, 11), (13, 12), (30, 7)]
)
@pytest.mark.parametrize("block", [module.BLOCK_VALUES, 20])
def test_it_is_what_refits_find(n, p, weighted, block, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_VALUES", block)
    Z, Y, weights = problem(n, p)
    weights = weights if weighted else np.ones(n)
    for alphas in (ALPHAS, *ALPHAS[:, None]):
        found = fit_ridge(Z, Y, weights, alphas)
        alpha, coef, intercept, left_out = oracle.choose(Z.astype(float), Y, weights, alphas)
        assert found.alpha == alpha
        np.testing.assert_allclose(found.coef, coef, atol=1e-8)
        np.testing.assert_allclose(found.intercept, intercept, atol=1e-8)
        np.testing.assert_allclose(found.left_out, left_out, atol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "p"), [(2, 9), (3, 2), (12, 30), (13, 12), (30, 7), (30, 60)])
@pytest.mark.parametrize("groups", [2, 5, 100])
def test_groups_are_left_out_together(n, p, groups, weighted):
    Z, Y, weights = problem(n, p)
    weights = weights if weighted else np.ones(n)
    label = np.arange(n) % groups * 3 - 1
    for alphas in (ALPHAS, *ALPHAS[:, None]):
        found = fit_ridge(Z, Y, weights, alphas, label)
        alpha, coef, intercept, left_out = oracle.choose(Z.astype(float), Y, weights, alphas, label)
        assert found.alpha == alpha
        np.testing.assert_allclose(found.coef, coef, atol=1e-7)
        np.testing.assert_allclose(found.intercept, intercept, atol=1e-7)
        np.testing.assert_allclose(found.left_out, left_out, atol=1e-6)


@pytest.mark.parametrize(("n", "p"), [(40, 100), (100, 40)])
def test_scikit_learn_finds_the_same(n, p):
    Z, Y, weights = problem(n, p)
    found = fit_ridge(Z, Y, weights, ALPHAS)
    peer = RidgeCV(ALPHAS).fit(Z.astype(float), Y, weights)
    assert found.alpha == peer.alpha_
    np.testing.assert_allclose(found.coef.T, peer.coef_, atol=1e-9)
    plain = Ridge(found.alpha).fit(Z.astype(float), Y, weights)
    np.testing.assert_allclose(found.coef.T, plain.coef_, atol=1e-9)
    np.testing.assert_allclose(found.intercept, plain.intercept_, atol=1e-9)


@pytest.mark.parametrize("p", [3, 30])
def test_constant_columns_equal_rows_and_dominant_weights(p):
    Z, Y, weights = problem(10, p)
    Z[:, 0] = 0
    Z[3] = Z[2]
    weights[5] = 1e9
    found = fit_ridge(Z, Y, weights, np.array([1.0]))
    _, coef, _, left_out = oracle.choose(Z.astype(float), Y, weights, [1.0])
    np.testing.assert_allclose(found.coef, coef, atol=1e-5)
    np.testing.assert_allclose(found.left_out, left_out, atol=1e-5)
    assert np.abs(found.coef[0]).max() < 1e-12


def test_a_dominant_weight_beyond_rounding_stays_finite():
    for p in (3, 30):
        Z, Y, weights = problem(10, p)
        weights[5] = 1e20
        found = fit_ridge(Z, Y, weights, ALPHAS)
        assert np.isfinite(found.left_out).all()
        assert np.isfinite(found.coef).all()


def test_a_single_row_leaves_nothing():
    found = fit_ridge(np.ones((1, 3), np.float32), np.array([[2.0]]), np.ones(1), ALPHAS)
    assert found.alpha == ALPHAS.max()
    assert found.intercept == [2.0]
    assert not found.coef.any()
    assert np.isnan(found.left_out).all()


@pytest.mark.parametrize("classes", [2, 5])
def test_the_slope_has_the_lowest_log_loss(classes):
    random = np.random.default_rng(classes)
    codes = random.integers(0, classes, 80)
    scores = random.normal(size=(80, classes)) + 2 * np.eye(classes)[codes]
    weights = random.gamma(1.0, size=80)
    slope = fit_slope(scores, codes, weights)
    best = oracle.log_loss(slope, scores, codes, weights)
    for factor in (0.5, 0.99, 1.01, 2.0):
        assert oracle.log_loss(slope * factor, scores, codes, weights) > best


def test_one_score_is_that_of_the_second_of_two_classes():
    random = np.random.default_rng(0)
    codes = np.arange(50) % 2
    score = random.normal(size=(50, 1)) + codes[:, None]
    both = np.column_stack([np.zeros(50), score])
    slope = fit_slope(score, codes, np.ones(50))
    assert slope == fit_slope(both, codes, np.ones(50))
    logistic = 1 / (1 + np.exp(-slope * score[:, 0]))
    np.testing.assert_allclose(probabilities(score, slope)[:, 1], logistic, rtol=1e-12)


def test_slopes_stay_within_bounds():
    codes = np.arange(10) % 2
    right = np.where(codes, 1.0, -1.0)[:, None]
    # Separated perfectly: as many pseudo-observations as Platt's bound it.
    slope = fit_slope(right, codes, np.ones(10))
    np.testing.assert_allclose(probabilities(right, slope).max(axis=1), 11 / 12)
    assert fit_slope(-right, codes, np.ones(10)) == module.SLOPES[0]
    assert fit_slope(0 * right, codes, np.ones(10)) == module.SLOPES[0]
    assert fit_slope(right * 1e-12, codes, np.ones(10)) == module.SLOPES[1]


def test_large_scores_do_not_overflow():
    scores = np.array([[1e300, -1e300, 0.0], [0.0, 0.0, 0.0]])
    with np.errstate(over="raise", invalid="raise"):
        np.testing.assert_array_equal(probabilities(scores, 1.0)[0], [1, 0, 0])
        assert np.isfinite(log_probabilities(scores, 1.0)).all()
