"""The statistics of experiments/: against hand-computed values, published tables and SciPy."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats as scipy_stats
from sklearn.metrics import auc as area
from sklearn.metrics import roc_auc_score

from experiments import stats

# Demsar, Statistical comparisons of classifiers over multiple data sets (JMLR 7, 2006): AUC of four
# variants of C4.5 on 14 data sets.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],  # both .975 in print, with the ranks 2 and 3
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def random(seed):
    return np.random.RandomState(seed)


# --- scores of one fold ---------------------------------------------------------------------------


def test_kappa_of_a_table_worked_by_hand():
    labels = [0] * 25 + [1] * 25
    predicted = [0] * 20 + [1] * 5 + [0] * 10 + [1] * 15
    # 35 of 50 agree; by chance .5 * .6 + .5 * .4 = .5 would.
    assert stats.kappa(labels, predicted) == pytest.approx((0.7 - 0.5) / (1 - 0.5))


def test_kappa_is_one_where_only_one_class_is_there_and_found():
    assert stats.kappa([1, 1, 1], [1, 1, 1]) == 1.0


def test_auc_counts_pairs_in_the_right_order():
    labels = np.array([0, 0, 1, 1, 1])
    scores = np.array([0.1, 0.6, 0.6, 0.7, 0.2])
    pairs = itertools.product(scores[labels == 1], scores[labels == 0])
    expected = np.mean([1.0 if p > n else 0.5 if p == n else 0.0 for p, n in pairs])
    assert stats.auc(labels, np.column_stack([1 - scores, scores])) == pytest.approx(expected)


def test_auc_of_several_classes_is_the_mean_of_one_against_the_rest():
    labels = random(0).randint(4, size=60)
    probabilities = random(1).dirichlet(np.ones(4), size=60)
    expected = roc_auc_score(labels, probabilities, multi_class="ovr", average="macro")
    assert stats.auc(labels, probabilities) == pytest.approx(expected)


def test_auc_leaves_out_a_class_that_is_not_there():
    labels = np.array([0, 1, 0, 1, 1])
    probabilities = random(2).dirichlet(np.ones(3), size=5)
    expected = np.mean([roc_auc_score(labels == c, probabilities[:, c]) for c in (0, 1)])
    assert stats.auc(labels, probabilities) == pytest.approx(expected)
    assert math.isnan(stats.auc(np.zeros(5, int), probabilities[:, :2]))


def test_roc_of_a_curve_drawn_by_hand():
    # Thresholds from above meet 1, 0, 1, 0: the corners are (0, .5), (.5, .5), (.5, 1), (1, 1).
    curve = stats.roc([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6])
    at = dict(zip(np.round(stats.GRID, 2), curve, strict=True))
    assert [at[0.0], at[0.24], at[0.48], at[0.5], at[1.0]] == [0.5, 0.5, 0.5, 1.0, 1.0]


def test_area_under_the_kept_curve_is_near_the_auc():
    labels = random(3).randint(2, size=2000)
    scores = random(4).normal(size=2000) + labels
    assert area(stats.GRID, stats.roc(labels, scores)) == pytest.approx(
        roc_auc_score(labels, scores), abs=0.002
    )


def test_a_group_has_the_mean_of_its_rows():
    labels, probabilities = stats.by_group(
        [1, 0, 1, 1],
        np.array([[0.2, 0.8], [0.9, 0.1], [0.4, 0.6], [0.3, 0.7]]),
        np.array(["b", "a", "b", "c"]),
    )
    assert labels.tolist() == [0, 1, 1]
    assert probabilities == pytest.approx(np.array([[0.9, 0.1], [0.3, 0.7], [0.3, 0.7]]))


def test_a_group_with_two_labels_is_refused():
    with pytest.raises(ValueError, match="one label"):
        stats.by_group([0, 1], np.full((2, 2), 0.5), np.array(["a", "a"]))


# --- pairs of scores ------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 4, 9, 14, 30])
def test_signed_rank_is_scipys_exact_test_without_ties(n):
    differences = random(n).permutation(np.arange(1, n + 1)) * random(n + 1).choice([-1, 1], n)
    expected = scipy_stats.wilcoxon(differences, method="exact").pvalue
    assert stats.signed_rank(differences, np.zeros(n)) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(6))
def test_signed_rank_with_ties_and_zeros_counts_all_signs(seed):
    differences = random(seed).randint(-3, 4, size=9)
    ranks = scipy_stats.rankdata(np.abs(differences))  # Pratt: zeros are ranked, and have no sign
    ranks, signs = ranks[differences != 0], np.sign(differences[differences != 0])
    found = ranks[signs > 0].sum()
    sums = np.array(
        [ranks[np.array(s) > 0].sum() for s in itertools.product([-1, 1], repeat=len(ranks))]
    )
    expected = min(1.0, 2 * min(np.mean(sums <= found), np.mean(sums >= found)))
    assert stats.signed_rank(differences, np.zeros(9)) == pytest.approx(expected)


def test_signed_rank_sees_ties_through_rounding():
    # +.1 three times and -.1 once: 5 of 16 patterns have three positive signs or more.
    a, b = [0.3, 0.2, 0.9, 0.7], [0.2, 0.1, 0.8, 0.8]
    assert stats.signed_rank(a, b) == 2 * 5 / 16
    assert stats.ranks([[0.1 + 0.2, 0.3]]).tolist() == [1.5, 1.5]


def test_signed_rank_of_six_wins_is_two_in_64():
    assert stats.signed_rank([2, 3, 4, 5, 6, 7], [1, 1, 1, 1, 1, 1]) == 2 / 64


def test_signed_rank_of_equal_scores_is_one():
    assert stats.signed_rank([0.5, 0.7], [0.5, 0.7]) == 1.0


def test_signed_rank_holds_its_level():
    draws = random(5).normal(size=(2000, 12))
    rejected = np.mean([stats.signed_rank(row, np.zeros(12)) <= 0.05 for row in draws])
    assert 0.03 < rejected <= 0.06


def test_signed_rank_finds_demsars_difference():
    # His T is 12 and the critical value for 14 pairs 21: the first two differ at 5 %.
    assert stats.signed_rank(DEMSAR[:, 1], DEMSAR[:, 0]) < 0.05


def test_holm_by_hand():
    # In order .005 .01 .03 .04, times 4 3 2 1 is .02 .03 .06 .04, and none may sink below the last.
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert stats.holm([0.6, 0.9]).tolist() == [1.0, 1.0]
    assert stats.holm([]).tolist() == []


def test_cohens_d_by_hand():
    # Means 3 and 5, variances 2.5 and 10.
    assert stats.cohens_d([1, 2, 3, 4, 5], [1, 3, 5, 7, 9]) == pytest.approx(-2 / math.sqrt(6.25))
    assert math.isnan(stats.cohens_d([1, 1], [0, 0]))


def test_effect_is_signed_and_its_interval_is_around_it():
    a, b = random(6).normal(1.0, 1, 40), random(7).normal(0, 1, 40)
    forth, back = stats.effect(a, b), stats.effect(b, a)
    assert forth.low < forth.d < forth.high
    assert forth.d == -back.d
    assert forth == stats.effect(a, b)  # the same seed, the same interval


def test_effect_covers_the_truth_nineteen_times_in_twenty(monkeypatch):
    monkeypatch.setattr(stats, "BOOTSTRAPS", 499)
    draws = random(8)
    hits = 0
    for _ in range(200):
        shared = draws.normal(size=40)  # pairs that move together, as folds do
        effect = stats.effect(shared + draws.normal(0.8, 1, 40), shared + draws.normal(size=40))
        hits += effect.low <= 0.8 / math.sqrt(2) <= effect.high
    assert 180 <= hits <= 199


@pytest.mark.parametrize(("a", "b"), [([0.5, 0.6], [0.4, 0.5]), ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0])])
def test_effect_without_enough_to_vary_has_no_interval(a, b):
    effect = stats.effect(a, b)
    assert math.isnan(effect.low)
    assert math.isnan(effect.high)


@pytest.mark.parametrize("test", [stats.signed_rank, stats.effect])
def test_pairs_must_be_pairs(test):
    with pytest.raises(ValueError, match="one length"):
        test([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="finite"):
        test([1.0, math.nan, 2.0], [1.0, 1.0, 1.0])


# --- several classifiers on several data sets -----------------------------------------------------


def test_ranks_are_demsars():
    assert stats.ranks(DEMSAR) == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=0.0005)


def test_friedman_is_the_formula_where_nothing_ties():
    scores = np.array([random(seed).permutation(5) for seed in range(8)])
    mean = stats.ranks(scores)
    statistic = 12 * 8 / (5 * 6) * (np.sum(mean**2) - 5 * 6**2 / 4)
    assert stats.friedman(scores) == pytest.approx(scipy_stats.chi2.sf(statistic, 4))


def test_friedman_of_demsars_table():
    # His statistic is 9.28 without a correction for ties; the correction makes it larger.
    assert stats.friedman(DEMSAR) < scipy_stats.chi2.sf(9.28, 3) < 0.05


def test_friedman_of_equal_scores_is_one():
    assert stats.friedman(np.ones((5, 4))) == 1.0


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (4, 2.569), (7, 2.949), (10, 3.164)])
def test_critical_difference_has_the_quantiles_of_demsars_table(k, q):
    expected = q * math.sqrt(k * (k + 1) / (6 * 14))
    assert stats.critical_difference(k, 14) == pytest.approx(expected, rel=5e-4)


def test_pairwise_corrects_over_all_pairs():
    scores = random(10).normal([0, 0.5, 2.0], size=(12, 3))
    raw = [stats.signed_rank(scores[:, i], scores[:, j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    matrix = stats.pairwise(scores)
    assert matrix[[0, 0, 1], [1, 2, 2]] == pytest.approx(stats.holm(raw))
    assert np.array_equal(matrix, matrix.T)


def test_cliques_are_the_longest_runs_without_a_difference():
    p = np.ones((5, 5))
    for i, j in ((0, 2), (0, 3), (0, 4), (1, 3), (1, 4), (2, 4), (3, 4)):
        p[i, j] = p[j, i] = 0.01
    # 0-1, 1-2 and 2-3 belong together; 4 to nobody.
    assert stats.cliques([0, 1, 2, 3, 4], p) == [(0, 1), (1, 2), (2, 3)]
    assert stats.cliques([0, 1, 2, 3, 4], np.ones((5, 5))) == [(0, 1, 2, 3, 4)]
    assert stats.cliques([0, 1, 2, 3, 4], np.zeros((5, 5))) == []


def test_a_clique_follows_the_order_of_the_ranks():
    p = np.ones((3, 3))
    p[0, 1] = p[1, 0] = 0.01
    assert stats.cliques([1, 2, 0], p) == [(1, 2), (2, 0)]
