"""Honest trees, samples without replacement, balanced and random splits."""

import pickle
from collections import Counter

import numpy as np
import oracle
import oracle_atoms
import pytest
from common import arrays, assert_same_forest, classifier, differ, digits, friedman, regressor
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from problems import (
    CLASSIFICATION,
    FEW_ROWS,
    MANY_ROWS,
    REGRESSION,
    OracleForest,
    Problem,
    assert_same_trees,
    problems,
)

from morforest import (
    Axis,
    Haar,
    ImageCopies,
    MorfClassifier,
    MorfRegressor,
    MorfTreeClassifier,
    MorfTreeRegressor,
    Patch,
    SharedAtoms,
    SparseOblique,
    Subset,
)

PATCH = Patch(1, 3)


def some_digits(number):
    X, y = digits()
    return X[:number], y[:number]


def examples(number):
    return settings(
        max_examples=number,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )


def honest_problem(criterion="gini", n_rows=80, **parameters):
    """A problem in which honest trees have much to split."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 9, (n_rows, 4, 3))
    y = X[:, 0].sum(axis=1) + rng.integers(0, 3, n_rows)
    defaults = {
        "criterion": criterion,
        "splitter": "exact",
        "max_features": 3,
        "n_estimators": 3,
        "bootstrap": True,
        "random_state": 1,
        "honest": True,
    }
    target = y // 7 if criterion in CLASSIFICATION else y.astype(float)
    return Problem(X, target, PATCH, defaults | parameters)


# --- the core against the oracle -------------------------------------------------------------


@st.composite
def honest_problems(draw, rows):
    problem = draw(problems(CLASSIFICATION + REGRESSION, rows=rows))
    more = {
        "honest": draw(st.sampled_from([True, True, "oob"])),
        "honest_fraction": draw(st.sampled_from([0.5, 0.2, 0.7])),
        "honest_prior": draw(st.sampled_from(["prune", "ignore", "empirical"])),
    }
    if draw(st.booleans()):
        more["min_child_fraction"] = draw(st.sampled_from([0.05, 0.2, 0.5]))
    if draw(st.booleans()):
        more["random_split_rate"] = draw(st.sampled_from([0.3, 1.0]))
    if more["honest"] == "oob":
        more["bootstrap"] = True
    elif draw(st.booleans()):
        weights = problem.sample_weight
        kept = len(problem.y) if weights is None else np.count_nonzero(weights)
        more |= {"bootstrap": False, "max_samples": draw(st.integers(1, kept))}
    problem.parameters |= more
    return problem


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@examples(300)
@given(honest_problems(FEW_ROWS))
def test_honest_trees_equal_the_oracle(problem):
    assert_same_trees(problem)


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@examples(60)
@given(honest_problems(MANY_ROWS))
def test_large_honest_trees_equal_the_oracle(problem):
    problem.parameters["n_estimators"] = 1
    assert_same_trees(problem)


@pytest.mark.parametrize("criterion", CLASSIFICATION + REGRESSION)
@pytest.mark.parametrize("honest", [True, "oob"])
def test_each_criterion_equals_the_oracle(criterion, honest):
    forest = assert_same_trees(honest_problem(criterion, honest=honest))
    assert all(len(nodes) > 7 for nodes in forest.trees)


@pytest.mark.parametrize("prior", ["prune", "ignore", "empirical"])
@pytest.mark.parametrize("limit", [{}, {"max_leaf_nodes": 9}, {"max_depth": 4}], ids=str)
def test_each_rule_for_empty_leaves_equals_the_oracle(prior, limit):
    # Rare values beyond a split leave some leaves without a sample.
    problem = honest_problem(n_rows=40, honest_prior=prior, honest_fraction=0.2, **limit)
    assert_same_trees(problem)


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_trees_do_not_vote_from_leaves_that_are_ignored(criterion):
    problem = honest_problem(criterion, n_rows=40, honest_fraction=0.15, honest_prior="ignore")
    model = problem.fit()
    assert_same_trees(problem)
    assert model._forest.silent_trees.any()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.apply(problem.X), model.apply(problem.X))
    np.testing.assert_array_equal(again._predict_mean(problem.X), model._predict_mean(problem.X))


def test_samples_that_no_tree_votes_on_get_the_mean_of_all_leaves():
    X = np.arange(12.0)[:, None]
    model = MorfTreeRegressor(
        Axis(), honest=True, honest_prior="ignore", honest_fraction=0.1, random_state=0
    ).fit(X, X[:, 0])
    predicted = model.predict(X)
    leaf = model.apply(X)[:, 0]
    silent = np.isnan(model._forest.leaf_value[-1 - model._forest.next[leaf].astype(int)])
    assert silent.any()
    assert not silent.all()
    (value,) = {predicted[i] for i in np.flatnonzero(~silent)}
    assert (predicted == value).all()


def test_uniform_leaves():
    problem = honest_problem(
        n_rows=40, honest_fraction=0.15, honest_prior="uniform", n_estimators=1
    )
    model = problem.fit()
    (nodes,) = OracleForest(problem, model).trees
    uniform = np.full(model.n_classes_, 1 / model.n_classes_)
    cells = OracleForest(problem, model).cells(problem.X)
    expected = []
    for row in cells:
        rows = oracle.leaf_of(nodes, row).says
        expected.append(np.array(rows.class_weights()) / rows.weight if len(rows) else uniform)
    assert any((row == uniform).all() for row in expected)
    np.testing.assert_allclose(model.predict_proba(problem.X), expected, atol=1e-15)


# --- what honesty means ----------------------------------------------------------------------


def structure(model):
    forest = model._forest
    return [forest.tree_begin, np.maximum(forest.next, -1), forest.threshold, forest.atoms.cell]


@pytest.mark.parametrize("honest", [True, "oob"])
def test_targets_of_leaf_samples_do_not_change_splits(honest):
    problem = honest_problem(
        "squared_error", honest=honest, n_estimators=1, honest_prior="empirical"
    )
    rng = np.random.default_rng(0)
    problem.X = rng.permutation(80 * 12).reshape(80, 4, 3)  # no sample twice
    model = problem.fit()
    key = oracle_atoms.tree_key(model._seed, 0)
    (splits, _), (leaves, _) = OracleForest(problem, model).bags(key)
    assert not ((splits > 0) & (leaves > 0)).any()
    low, high = problem.y.min(), problem.y.max()
    before = [array.copy() for array in structure(model)]
    values = model._forest.leaf_value.copy()
    free = (splits == 0) & (problem.y > low) & (problem.y < high)  # the range scales the targets
    problem.y = np.where(free, rng.permutation(problem.y), problem.y)
    after = problem.fit()
    for a, b in zip(before, structure(after), strict=True):
        np.testing.assert_array_equal(a, b)
    assert (values != after._forest.leaf_value).any()


@pytest.mark.parametrize("fraction", [0.2, 0.5, 0.8])
def test_each_class_is_in_both_parts(fraction):
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 2)), np.repeat([0, 1, 2], [50, 8, 2])
    parameters = {"honest": True, "honest_fraction": fraction, "bootstrap": False}
    problem = honest_problem(n_rows=60, **parameters)
    problem.X, problem.y, problem.shape, problem.dictionary = X, y, (2,), Axis()
    model = problem.fit()
    expected = OracleForest(problem, model)
    for tree in range(3):
        (splits, _), (leaves, _) = expected.bags(oracle_atoms.tree_key(model._seed, tree))
        assert Counter(y[splits > 0]).keys() == Counter(y[leaves > 0]).keys() == {0, 1, 2}
        assert (
            abs((leaves > 0).sum() - 60 * fraction) <= 1
        )  # where a class is rounded up, others pay
        assert ((leaves > 0) ^ (splits > 0)).all()


@pytest.mark.parametrize("honest", [True, "oob"])
@pytest.mark.parametrize("make", [classifier, regressor], ids=["classes", "numbers"])
def test_a_weight_of_two_is_the_sample_twice(make, honest):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 4, (50, 5))
    y = X.sum(axis=1) % 3
    weights = rng.integers(0, 4, 50)
    weights[:5] = 1
    model = make(Axis(), honest=honest, n_estimators=5)
    weighted = model.fit(X, y, sample_weight=weights)
    repeated = make(Axis(), honest=honest, n_estimators=5)
    repeated.fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert_same_forest(weighted, repeated)


def test_neither_threads_nor_the_order_of_rows_matter():
    X, y = some_digits(150)
    order = np.random.default_rng(0).permutation(150)
    parameters = {"honest": True, "min_child_fraction": 0.1, "random_split_rate": 0.2}
    model = classifier(PATCH, n_estimators=6, **parameters).fit(X, y)
    other = classifier(PATCH, n_estimators=6, n_jobs=3, **parameters).fit(X[order], y[order])
    assert_same_forest(model, other)


def test_samples_that_cannot_be_parted_give_a_single_leaf():
    for X, y in (([[1.0]], [2.0]), ([[1.0], [1.0]], [2.0, 2.0])):
        model = MorfRegressor(honest=True, n_estimators=3, random_state=0).fit(X, y)
        assert (model.get_n_leaves() == 1).all()
        assert model.predict([[0.0]]) == [2.0]
    # Both samples drawn: none is left for the leaves.
    model = MorfRegressor(Axis(), honest="oob", n_estimators=20, random_state=0)
    model.fit([[0.0], [1.0]], [0.0, 1.0])
    assert (model.get_n_leaves() == 1).all()
    assert set(model._forest.leaf_value) == {0.0, 0.5, 1.0}


# --- the other parts of the library ----------------------------------------------------------


@pytest.mark.parametrize(
    "dictionary",
    [Subset(PATCH, 40), SharedAtoms(Haar(pool="max"), 30), SharedAtoms(PATCH, 30, combine=None)],
    ids=repr,
)
@pytest.mark.parametrize("honest", [True, "oob"])
def test_honest_trees_of_drawn_atoms(dictionary, honest):
    X, y = some_digits(200)
    model = MorfClassifier(
        dictionary, honest=honest, n_estimators=10, bootstrap=True, random_state=0
    )
    model.fit(X[:150], y[:150])
    assert model.score(X[150:], y[150:]) > 0.4
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("honest", [True, "oob"])
def test_attributions_add_up_and_importances_are_shares(honest):
    X, y = some_digits(120)
    model = classifier(PATCH, honest=honest, n_estimators=5).fit(X, y)
    values, baseline = model.attributions(X[:20])
    total = values.sum(axis=(1, 2)) + baseline
    np.testing.assert_allclose(total, model.predict_proba(X[:20]), atol=1e-9)
    assert model.feature_importances_.sum() == pytest.approx(1)


def test_a_warm_start_adds_honest_trees():
    X, y = some_digits(100)
    whole = classifier(PATCH, honest=True, n_estimators=6).fit(X, y)
    grown = classifier(PATCH, honest=True, n_estimators=2, warm_start=True).fit(X, y)
    grown.set_params(n_estimators=6).fit(X, y)
    assert_same_forest(whole, grown)


def test_copies_of_leaf_samples_fill_leaves():
    X, y = some_digits(80)
    model = classifier(PATCH, honest=True, n_estimators=3, augment=ImageCopies(copies=2)).fit(X, y)
    plain = classifier(PATCH, honest=True, n_estimators=3).fit(X, y)
    assert differ(model, plain)
    assert model._forest.distribution_weight.max() >= 3


@pytest.mark.parametrize("parameters", [{}, {"bootstrap": False, "max_samples": 0.6}], ids=str)
def test_out_of_bag_scores_use_only_trees_that_have_not_used_a_sample(parameters):
    X, y = friedman(60)
    model = regressor(Axis(), honest=True, oob_score=True, n_estimators=40, **parameters).fit(X, y)
    problem = Problem(X, y, Axis(), {"criterion": "squared_error", "bootstrap": True} | parameters)
    problem.parameters |= {"honest": True}
    if "max_samples" in parameters:
        problem.parameters["max_samples"] = 36
    expected = OracleForest.__new__(OracleForest)
    expected.problem, expected.parameters = problem, problem.parameters
    expected.X, expected.given_weights, expected.whole = X, np.ones(60), True
    expected.n_draws = problem.parameters.get("max_samples", 60)
    expected.format = model._forest.cell_format
    expected._set_target(y, model)
    expected.sources = [("raw",)]
    leaf = model.apply(X)
    forest = model._forest
    sums, votes = np.zeros(60), np.zeros(60)
    for tree in range(40):
        (splits, _), (leaves, _) = expected.bags(oracle_atoms.tree_key(model._seed, tree))
        out = (splits == 0) & (leaves == 0)
        node = int(forest.tree_begin[tree]) + leaf[:, tree]
        said = forest.leaf_value[-1 - forest.next[node].astype(int)]
        out &= ~np.isnan(said)
        sums[out] += said[out]
        votes += out
    assert votes.min() > 0
    np.testing.assert_allclose(model.oob_prediction_, sums / votes, rtol=1e-12)


def test_out_of_bag_scores_of_noise_are_those_of_guessing():
    rng = np.random.default_rng(0)
    X, y = rng.random((400, 4)), rng.integers(0, 2, 400)
    for parameters in ({"honest": True}, {"bootstrap": False, "max_samples": "n**0.8"}):
        model = classifier(Axis(), oob_score=True, n_estimators=60, **parameters).fit(X, y)
        assert abs(model.oob_score_ - 0.5) < 0.08


# --- samples without replacement -------------------------------------------------------------


@pytest.mark.parametrize(
    ("max_samples", "number"),
    [(30, 30), (0.25, 25), ("n**0.7", 25), ("n ** .5", 10), (lambda n: n / 3, 33), (1.0, 100)],
)
def test_sizes_of_samples(max_samples, number):
    X, y = friedman(100)
    model = regressor(Axis(), bootstrap=False, max_samples=max_samples).fit(X, y)
    assert model.max_samples_ == number
    assert not model.bootstrap_
    roots = model._forest.tree_begin[:-1].astype(int)
    assert (model._forest.weight[roots] == number).all()
    with_replacement = regressor(Axis(), max_samples=max_samples).fit(X, y)
    assert with_replacement.max_samples_ == number
    assert with_replacement.bootstrap_


def test_samples_are_drawn_without_replacement():
    X, y = friedman(100)
    model = regressor(Axis(), bootstrap=False, max_samples=60, n_estimators=50).fit(X, y)
    # No leaf of fully grown trees holds a sample twice.
    assert model._forest.weight[~model._forest.is_split()].max() == 1
    with_replacement = regressor(Axis(), max_samples=60, n_estimators=50).fit(X, y)
    assert with_replacement._forest.weight[~with_replacement._forest.is_split()].max() > 1


def test_all_samples_without_replacement_are_all_samples():
    X, y = friedman(80)
    everything = regressor(Axis(), bootstrap=False).fit(X, y)
    assert_same_forest(everything, regressor(Axis(), bootstrap=False, max_samples=1.0).fit(X, y))


@pytest.mark.parametrize(
    ("max_samples", "message"),
    [
        ("n**2", r'max_samples as a string.*"n\*\*0\.7", got .n\*\*2'),
        ("sqrt", "max_samples as a string"),
        ("n**0", "max_samples as a string"),
        (101, "max_samples=101 must not exceed the 100 samples"),
        (0, "max_samples must be at least 1"),
        (1.5, "max_samples must be an integer"),
        (lambda n: 2 * n, r"must return a number from 1 to 100 for n=100, got 200"),
        (lambda n: None, "must return a number"),
        (lambda n: 0.5, "must return a number from 1"),
        ([3], "max_samples must be an integer"),
    ],
)
def test_bad_sizes_of_samples(max_samples, message):
    X, y = friedman(100)
    with pytest.raises(ValueError, match=message):
        regressor(Axis(), bootstrap=False, max_samples=max_samples).fit(X, y)


# --- balanced and random splits --------------------------------------------------------------


@pytest.mark.parametrize("splitter", ["histogram", "exact"])
@pytest.mark.parametrize("fraction", [0.1, 0.3, 0.4])
def test_each_child_has_its_share_of_the_weight(fraction, splitter):
    X, y = friedman(300)
    model = regressor(SparseOblique(), min_child_fraction=fraction, splitter=splitter).fit(X, y)
    forest = model._forest
    splits = np.flatnonzero(forest.is_split())
    assert len(splits) > 100
    left = forest.children()[splits]
    weight = forest.weight.astype(int)
    smaller = np.minimum(weight[left], weight[left + 1])
    assert (smaller >= fraction * weight[splits]).all()
    free = regressor(SparseOblique(), splitter=splitter).fit(X, y)
    assert free.get_depths().max() > model.get_depths().max()


def test_random_splits_use_useless_features():
    rng = np.random.default_rng(0)
    X = rng.random((300, 5))
    y = X[:, 0]
    shallow = regressor(Axis(), max_features=None, min_samples_leaf=20)
    shares = [
        shallow.set_params(random_split_rate=rate).fit(X, y).split_shares_[0]
        for rate in (0.0, 0.5, 1.0)
    ]
    assert shares[0] > 0.99 > shares[1] > shares[2] + 0.1


# --- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"honest": "yes"}, r'honest must be True, False or "oob", got .yes'),
        ({"honest": 1}, "honest must be"),
        (
            {"honest": True, "honest_fraction": 0},
            "honest_fraction must be a number between 0 and 1",
        ),
        ({"honest_fraction": 1.0}, "honest_fraction must be"),
        ({"honest_fraction": "half"}, "honest_fraction must be"),
        ({"honest_prior": "none"}, "honest_prior must be one of 'ignore', 'prune'"),
        ({"min_child_fraction": 0.6}, "min_child_fraction must be a number from 0.0 to 0.5"),
        ({"random_split_rate": -1}, "random_split_rate must be a number from 0.0 to 1.0"),
        ({"honest": "oob", "oob_score": True}, "oob_score needs samples that a tree has not used"),
        ({"honest": "oob", "bootstrap": False}, 'honest="oob" needs samples that a tree has not'),
        ({"oob_score": True, "bootstrap": False}, "oob_score needs bootstrap=True, or max_samples"),
    ],
)
def test_bad_parameters(parameters, message):
    for estimator in (MorfClassifier, MorfRegressor):
        with pytest.raises(ValueError, match=message):
            estimator(**parameters).fit([[0.0], [1.0]], [0, 1])


def test_numbers_have_no_uniform_distribution():
    for estimator in (MorfRegressor, MorfTreeRegressor):
        with pytest.raises(ValueError, match="honest_prior must be one of"):
            estimator(honest_prior="uniform").fit([[0.0], [1.0]], [0.0, 1.0])


def test_single_trees_have_no_samples_left_out():
    for estimator in (MorfTreeClassifier, MorfTreeRegressor):
        with pytest.raises(ValueError, match="honest must be True or False"):
            estimator(honest="oob").fit([[0.0], [1.0]], [0, 1])
        tree = estimator(Axis(), honest=True, random_state=0).fit(
            np.arange(40.0)[:, None], [0, 1] * 20
        )
        assert tree.get_n_leaves() > 1


def test_forests_without_these_parameters_are_as_before():
    X, y = some_digits(100)
    plain = classifier(PATCH).fit(X, y)
    for parameters in ({"honest_fraction": 0.3}, {"honest_prior": "ignore"}, {"honest": False}):
        assert_same_forest(plain, classifier(PATCH, **parameters).fit(X, y))
    assert arrays(plain)


# --- forest weights --------------------------------------------------------------------------


@pytest.mark.parametrize("honest", [True, "oob"])
@pytest.mark.parametrize("prior", ["prune", "ignore", "empirical"])
@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_weights_of_honest_forests_give_their_predictions(criterion, prior, honest):
    problem = honest_problem(
        criterion, n_rows=60, honest=honest, honest_prior=prior, keep_samples=True
    )
    problem.sample_weight = np.random.default_rng(0).integers(0, 4, 60).astype(float)
    model = problem.fit()
    weights = model.weights(problem.X)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    if criterion == "gini":
        marks = problem.y[:, None] == model.classes_
        np.testing.assert_allclose(weights @ marks, model.predict_proba(problem.X), atol=1e-12)
    else:
        np.testing.assert_allclose(weights @ problem.y, model.predict(problem.X), rtol=1e-12)
        median = model.predict_quantiles(problem.X, [0.5])
        assert np.isin(median, problem.y).all()


def test_uniform_leaves_have_no_weights():
    prior = {"honest_prior": "uniform", "keep_samples": True}
    problem = honest_problem(n_rows=40, honest_fraction=0.15, **prior)
    model = problem.fit()
    for question in (model.weights, lambda X: model.nearest(X, 3)):
        with pytest.raises(ValueError, match=r"honest_prior=.uniform. .*no training sample says"):
            question(problem.X)


# --- warm starts -----------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [{"oob_score": True}, {"keep_samples": True}], ids=str)
@pytest.mark.parametrize(
    "changed",
    [{"honest": False}, {"honest_fraction": 0.3}, {"max_samples": 0.4}, {"bootstrap": True}],
    ids=str,
)
def test_samples_left_out_by_other_rules_are_not_asked_for(changed, asked):
    X, y = friedman(60)
    parameters = {"honest": True, "honest_fraction": 0.5, "bootstrap": False, "max_samples": 0.8}
    parameters |= asked
    model = regressor(Axis(), warm_start=True, **parameters).fit(X, y)
    before = model.n_estimators
    model.set_params(n_estimators=before + 5, **changed)
    with pytest.raises(ValueError, match="with warm_start, all fits must have the same X, y"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="with warm_start, all fits must have the same X, y"):
        model.set_params(**parameters).fit(X, y, sample_weight=np.arange(60) + 1)
    assert len(model.fit(X, y).splits_) == before + 5
    model.set_params(n_estimators=before + 6, oob_score=False, keep_samples=False, **changed)
    model.fit(X, y)  # nobody asks
    model.set_params(n_estimators=before + 7, oob_score=True)
    with pytest.raises(ValueError, match="with warm_start, all fits must have the same X, y"):
        model.fit(X, y)


@pytest.mark.parametrize("parameters", [{"honest": "oob"}, {"oob_score": True}], ids=str)
@pytest.mark.parametrize("max_samples", [1.0, "n**1", 60])
def test_all_samples_leave_none_out(parameters, max_samples):
    X, y = friedman(60)
    with pytest.raises(ValueError, match=r"draws all 60 samples.*use a smaller max_samples"):
        regressor(Axis(), bootstrap=False, max_samples=max_samples, **parameters).fit(X, y)


def test_twins_of_used_samples_are_no_left_out_samples():
    X, y = friedman(60)
    X, y = np.concatenate([X, X[:9]]), np.concatenate([y, y[:9]])
    model = regressor(Axis(), honest="oob", keep_samples=True).fit(X, y)
    with pytest.raises(ValueError, match="predict_interval needs training samples"):
        model.predict_interval(X, 0.8)
