"""Forests whose nodes are offered a combination of their candidates, learned by ridge."""

import numpy as np
import oracle_combination
import pytest
from common import assert_same_forest, differ
from problems import Problem, assert_same_trees
from sklearn.model_selection import GridSearchCV

from morforest import (
    Axis,
    Mixture,
    MorfBoostingClassifier,
    MorfBoostingRegressor,
    MorfClassifier,
    MorfRegressor,
    MorfTreeClassifier,
    Patch,
    SharedAtoms,
    Variance,
)
from morforest._columns import LARGEST, PENALTIES
from morforest.dictionary._tabular import GivenColumns


def columns(n, d, seed=0, noise=2000):
    """Columns that share two factors, a class by their contrast, and a number."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(n, 2)) * 1500
    X = factors @ rng.normal(size=(2, d)) + rng.normal(size=(n, d)) * noise
    X = np.clip(np.rint(X), -LARGEST, LARGEST).astype(np.int16)
    score = factors[:, 0] + rng.normal(size=n) * 300
    return X, score


def problem(criterion, n, d, d_node, classes=2, weights=None, **parameters):
    X, score = columns(n, d)
    y = score
    if criterion in ("gini", "entropy"):
        y = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    if criterion == "poisson":
        y = np.exp(score / 1500)
    defaults = {
        "criterion": criterion,
        "max_features": d_node,
        "n_estimators": 2,
        "bootstrap": True,
        "splitter": "exact",
        "random_state": 0,
    }
    return Problem(X, y, GivenColumns(), defaults | parameters, weights)


def combinations(expected):
    """How many splits of the oracle's trees are learned."""
    splits = [node.split for tree in expected.trees for node in tree if not node.is_leaf]
    return sum(np.count_nonzero(split.atom) > 1 for split in splits)


CRITERIA = ["gini", "entropy", "squared_error", "poisson", "absolute_error"]


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(("n", "d"), [(60, 6), (25, 40)], ids=["rows", "columns"])
def test_learned_splits_equal_the_oracle(criterion, n, d):
    assert combinations(assert_same_trees(problem(criterion, n, d, d, classes=5, max_depth=4))) > 0


@pytest.mark.parametrize("splitter", ["histogram", "exact"])
@pytest.mark.parametrize("max_leaf_nodes", [None, 5])
def test_every_way_of_growth_equals_the_oracle(splitter, max_leaf_nodes):
    rule = {"splitter": splitter, "max_leaf_nodes": max_leaf_nodes}
    assert combinations(assert_same_trees(problem("gini", 50, 12, 5, classes=5, **rule))) > 0


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_large_nodes_learn_from_a_sample_as_the_oracle_does(criterion):
    rule = {"bootstrap": False, "splitter": "exact", "max_depth": 2, "n_estimators": 1}
    large = problem(criterion, 1100, 4, 4, classes=3, **rule)
    assert combinations(assert_same_trees(large)) > 0


def test_weights_and_repeated_rows_equal_the_oracle():
    weights = np.random.default_rng(0).integers(1, 4, 40).astype(float)
    assert combinations(assert_same_trees(problem("gini", 40, 8, 8, weights=weights))) > 0


@pytest.mark.parametrize("n", [12, 40], ids=["dual", "primal"])
def test_the_closed_form_is_the_error_of_refits(n):
    """The penalty that the oracle chooses is the best of those that leave one row out, in turn."""
    X, score = columns(n, 20, seed=3)
    target = np.rint(score).astype(int).tolist()
    errors = []
    x, y = X.astype(float), np.array(target, dtype=float)
    unit = ((x - x.mean(0)) ** 2).sum() / x.shape[1]
    for relative in PENALTIES:
        residuals = []
        for i in range(n):
            a, b = np.delete(x, i, 0), np.delete(y, i)
            gram = (a - a.mean(0)).T @ (a - a.mean(0)) + relative * unit * np.eye(x.shape[1])
            w = np.linalg.solve(gram, (a - a.mean(0)).T @ (b - b.mean()))
            residuals.append(y[i] - b.mean() - (x[i] - a.mean(0)) @ w)
        errors.append(np.square(residuals).sum())
    best = PENALTIES[int(np.argmin(errors))]
    centred = x - x.mean(0)
    gram = centred.T @ centred + best * unit * np.eye(x.shape[1])
    expected = np.linalg.solve(gram, centred.T @ (y - y.mean())) * n
    np.testing.assert_allclose(oracle_combination.ridge(X, target, PENALTIES), expected, rtol=1e-8)


def fit(estimator=MorfClassifier, X=None, y=None, weights=None, combine="ridge", **parameters):
    if X is None:
        X, y = columns(80, 30)
        y = y > 0 if estimator is MorfClassifier else y
    parameters = {"n_estimators": 8, "random_state": 0, **parameters}
    return estimator(GivenColumns(combine), **parameters).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("estimator", [MorfClassifier, MorfRegressor])
def test_order_repetition_and_threads_do_not_matter(estimator):
    X, y = columns(80, 30)
    y = y > 0 if estimator is MorfClassifier else y
    model = fit(estimator, X, y)
    order = np.random.default_rng(1).permutation(len(X))
    assert_same_forest(fit(estimator, X[order], y[order]), model)
    assert_same_forest(fit(estimator, X, y, n_jobs=2), model)
    twice = fit(estimator, np.concatenate([X, X[:20]]), np.concatenate([y, y[:20]]))
    weights = np.where(np.arange(len(X)) < 20, 2, 1)
    assert_same_forest(fit(estimator, X, y, weights), twice)


def test_learned_combinations_find_what_single_columns_do_not():
    X, y = columns(300, 30, noise=6000)
    y = y > 0
    scores = [
        fit(X=X[:150], y=y[:150], combine=combine, n_estimators=50).score(X[150:], y[150:])
        for combine in (None, "ridge")
    ]
    assert scores[1] > scores[0]


def test_scores_out_of_bag_and_predictions_far_outside_are_exact():
    model = fit(oob_score=True, n_estimators=30)
    assert model.oob_score_ > 0.7
    X, _ = columns(80, 30)
    assert np.isfinite(model.predict_proba(X.astype(np.int64) * 1000)).all()


@pytest.mark.parametrize(
    ("dictionary", "combines"),
    [(Patch(), False), (Patch(1, 3, pool="max"), True), (Mixture([Axis(), Variance(2)]), True)],
    ids=str,
)
def test_auto_combines_atoms_that_are_not_linear(dictionary, combines):
    X, y = columns(60, 10)
    models = {
        combine: MorfClassifier(
            SharedAtoms(dictionary, 20, combine=combine),
            n_estimators=3,
            bootstrap=True,
            random_state=0,
        )
        .set_params(max_features=10)
        .fit(X, y > 0)
        for combine in ("auto", "ridge", None)
    }
    assert_same_forest(models["auto"], models["ridge" if combines else None])
    assert differ(models["ridge"], models[None])


def test_whether_to_combine_is_searched_by_name():
    X, y = columns(60, 10)
    search = GridSearchCV(
        MorfRegressor(SharedAtoms(Axis(), 10), n_estimators=3, random_state=0),
        {"dictionary__combine": [None, "ridge"]},
        cv=2,
    ).fit(X, y)
    assert len(set(search.cv_results_["mean_test_score"])) == 2


@pytest.mark.parametrize("estimator", [MorfBoostingClassifier, MorfBoostingRegressor])
def test_boosting_combines_no_atoms(estimator):
    X, y = columns(60, 10)
    y = y > 0 if estimator is MorfBoostingClassifier else y
    dictionary = SharedAtoms(Variance(2), 20, combine="ridge")
    with pytest.raises(ValueError, match=r'combine=.ridge.*boosting does not.*use combine="auto"'):
        estimator(dictionary, max_iter=3).fit(X, y)
    auto, none = (
        estimator(SharedAtoms(Variance(2), 20, combine=combine), max_iter=3, random_state=0).fit(
            X, y
        )
        for combine in ("auto", None)
    )
    assert_same_forest(auto, none)


def test_auto_candidates_are_a_hundred():
    X, y = columns(60, 130)
    auto = fit(X=X, y=y > 0)
    assert_same_forest(auto, fit(X=X, y=y > 0, max_features=100))
    assert differ(auto, fit(X=X, y=y > 0, max_features="sqrt"))


@pytest.mark.parametrize("scale", [4.0, 1 / 1024])
def test_columns_must_be_small_whole_numbers(scale):
    X, y = columns(30, 10)
    with pytest.raises(ValueError, match="whole numbers from -8191 to 8191"):
        fit(X=X * scale, y=y > 0)


@pytest.mark.parametrize("value", ["lasso", 1, True, ["ridge"]])
def test_unknown_combinations_are_refused(value):
    X, y = columns(30, 10)
    with pytest.raises(ValueError, match="combine must be one of 'auto', 'ridge' or None"):
        MorfTreeClassifier(SharedAtoms(Axis(), 5, combine=value)).fit(X, y > 0)
