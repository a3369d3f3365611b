"""Parameters of the estimators: each does what it says."""

import heapq
import pickle
import warnings

import numpy as np
import pytest
from common import (
    N_TREES,
    arrays,
    assert_same_forest,
    classifier,
    differ,
    digits,
    fit_digits,
    fit_friedman,
    friedman,
    regressor,
    roots,
    split_paths,
)
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import balanced_accuracy_score, mean_absolute_error, r2_score

from morforest import (
    Axis,
    MorfBoostingClassifier,
    MorfTreeClassifier,
    MorfTreeRegressor,
    Patch,
    SharedAtoms,
)
from morforest._bagging import make_bagging
from morforest._fixed_point import choose_format, to_core_dtype
from morforest._native import core
from morforest._table import TrainingTable
from morforest.dictionary._base import resolve

# --- the size of trees -----------------------------------------------------------------------


FOREST_ONLY = {"n_estimators", "bootstrap", "max_samples", "oob_score", "warm_start", "verbose"}


@pytest.mark.parametrize("estimator", [MorfTreeClassifier, MorfTreeRegressor])
def test_a_single_tree_has_no_parameters_of_forests(estimator):
    for name in {*FOREST_ONLY, "augment", "n_jobs"}:
        with pytest.raises(AttributeError, match=name):
            getattr(estimator(), name)


@pytest.mark.parametrize(
    ("parameters", "bootstrap"),
    [
        ({}, True),
        ({"bootstrap": False}, False),
        ({"dictionary": SharedAtoms(Patch(pool="max"), 20)}, False),
        ({"dictionary": SharedAtoms(Patch(pool="max"), 20), "bootstrap": True}, True),
        ({"dictionary": SharedAtoms(Patch(pool="max"), 20), "max_samples": 0.5}, True),
        ({"dictionary": SharedAtoms(Patch(pool="max"), 20, combine=None)}, True),
    ],
)
def test_a_fit_says_whether_it_drew_bootstrap_samples(parameters, bootstrap):
    assert fit_digits(**parameters).bootstrap_ is bootstrap


@pytest.mark.parametrize(
    ("max_features", "of_classes", "of_numbers"),
    [("auto", 8, 21), ("sqrt", 8, 8), ("log2", 6, 6), (None, 64, 64), (0.1, 6, 6), (5, 5, 5)],
)
def test_a_fit_says_how_many_candidates_nodes_draw(max_features, of_classes, of_numbers):
    X, y = digits()
    assert classifier(max_features=max_features).fit(X, y).max_features_ == of_classes
    assert regressor(max_features=max_features).fit(X, y).max_features_ == of_numbers
    tree = MorfTreeClassifier(max_features=max_features).fit(X, y)
    assert tree.max_features_ == of_classes
    assert tree.bootstrap_ is False


def test_combinations_are_of_a_hundred_candidates():
    model = fit_digits(SharedAtoms(Patch(pool="max"), 200))
    assert model.max_features_ == 100


def test_n_estimators_is_the_number_of_trees():
    model = fit_digits(n_estimators=7)
    assert model.apply(digits()[0]).shape == (400, 7)
    assert len(model.get_depths()) == len(model.get_n_leaves()) == 7


@pytest.mark.parametrize("fit", [fit_digits, fit_friedman])
@pytest.mark.parametrize("depth", [1, 3])
def test_max_depth_limits_depth_and_nothing_above_it(fit, depth):
    limited, free = fit(max_depth=depth), fit()
    assert (limited.get_depths() == depth).all()
    assert (free.get_depths() > depth).all()
    for tree in range(N_TREES):
        above = {p: g for p, g in split_paths(free._forest, tree).items() if len(p) < depth}
        assert split_paths(limited._forest, tree) == above


@pytest.mark.parametrize(("value", "count"), [(30, 30), (0.1, 40)])
def test_min_samples_split_makes_leaves_of_smaller_nodes(value, count):
    model = fit_digits(min_samples_split=value, bootstrap=False)
    path, _ = model.decision_path(digits()[0])
    rows = np.asarray(path.sum(axis=0)).ravel()
    split = model._forest.is_split()
    assert rows[split].min() >= count
    assert fit_digits(bootstrap=False).get_n_leaves().sum() > model.get_n_leaves().sum()


@pytest.mark.parametrize(("value", "count"), [(12, 12), (0.05, 20)])
@pytest.mark.parametrize("fit", [fit_digits, fit_friedman])
def test_min_samples_leaf_holds_for_every_leaf(fit, value, count):
    if fit is fit_friedman and value == 0.05:
        count = 13  # of 250, rounded up
    model = fit(min_samples_leaf=value)
    assert model._forest.weight[~model._forest.is_split()].min() >= count
    assert fit()._forest.weight.min() < count


def test_min_samples_look_at_counts_and_not_at_weights():
    weights = np.full(400, 0.25)
    weights[:200] = 1.5
    model = fit_digits(sample_weight=weights, bootstrap=False, min_samples_leaf=15)
    leaves = model.apply(digits()[0])
    for tree in leaves.T:
        assert np.unique(tree, return_counts=True)[1].min() >= 15


def test_min_weight_fraction_leaf_is_a_share_of_a_trees_weight():
    weights = np.random.default_rng(0).uniform(0.1, 4.0, size=400)
    model = fit_digits(sample_weight=weights, bootstrap=False, min_weight_fraction_leaf=0.06)
    for tree in model.apply(digits()[0]).T:
        share = np.bincount(tree, weights) / weights.sum()
        assert share[share > 0].min() >= 0.06 - 1e-6
    free = fit_digits(sample_weight=weights, bootstrap=False)
    assert free.get_n_leaves().min() > model.get_n_leaves().max()


@pytest.mark.parametrize("fit", [fit_digits, fit_friedman])
def test_min_impurity_decrease_cuts_where_the_gain_is_smaller(fit):
    free = fit()
    gains = np.unique(free._forest.gains()[free._forest.is_split()])
    limit = gains[len(gains) // 2 : len(gains) // 2 + 2].mean()  # between two of them
    limited = fit(min_impurity_decrease=limit)
    for tree in range(N_TREES):
        gains = split_paths(free._forest, tree)
        kept = {p for p in gains if all(gains[p[:i]] >= limit for i in range(len(p) + 1))}
        assert set(split_paths(limited._forest, tree)) == kept
        assert len(kept) < len(gains)


def test_max_leaf_nodes_takes_the_splits_of_largest_gain_first():
    limit = 9
    free, limited = fit_friedman(), fit_friedman(max_leaf_nodes=limit)
    assert (limited.get_n_leaves() == limit).all()
    for tree in range(N_TREES):
        gains = split_paths(free._forest, tree)
        chosen, heap = set(), [(-gains[""], "")]
        while len(chosen) < limit - 1:
            _, path = heapq.heappop(heap)
            chosen.add(path)
            for child in (path + "L", path + "R"):
                if child in gains:
                    heapq.heappush(heap, (-gains[child], child))
        assert set(split_paths(limited._forest, tree)) == chosen


def test_max_leaf_nodes_beyond_the_need_changes_no_prediction():
    X, _ = digits()
    wide = fit_digits(max_leaf_nodes=10**6).predict_proba(X)
    np.testing.assert_array_equal(wide, fit_digits().predict_proba(X))


# --- candidates ------------------------------------------------------------------------------


def test_max_features_is_the_number_of_candidates():
    X, y = friedman(80)

    def fit(value):
        return regressor(Axis(), max_features=value, n_estimators=2).fit(X, y)

    for equal in (["sqrt", 2], ["log2", 3], [None, 8, 1.0, 2.0], [0.5, 4], [0.01, 1]):
        models = [fit(value) for value in equal]
        for other in models[1:]:
            assert_same_forest(models[0], other)
    assert differ(fit(1), fit(2))
    assert differ(fit("log2"), fit("sqrt"))


def test_max_features_may_exceed_the_number_of_features():
    # A dictionary of patches has more atoms than there are features, so more are drawn.
    assert differ(fit_digits(max_features=64), fit_digits(max_features=2.0))
    assert_same_forest(fit_digits(max_features=128), fit_digits(max_features=2.0))


def test_all_features_are_tried_where_max_features_says_so():
    # One column tells the classes apart; with all columns as candidates it is the only split.
    X = np.random.default_rng(0).normal(size=(60, 9))
    y = (X[:, 7] > 0).astype(int)
    model = classifier(Axis(), max_features=None, n_estimators=20).fit(X, y)
    assert (model.get_n_leaves() == 2).all()
    assert set(model._forest.matrix().indices) == {7}


@pytest.mark.parametrize("splitter", ["histogram", "exact"])
def test_a_single_useful_feature_is_found_with_one_candidate_a_node(splitter):
    # Constant columns offer no split: another candidate is drawn until one does.
    X = np.zeros((40, 20))
    X[:, 13] = np.arange(40)
    y = (X[:, 13] >= 20).astype(int)
    model = classifier(Axis(), max_features=1, splitter=splitter).fit(X, y)
    assert model.score(X, y) == 1.0
    assert set(model._forest.matrix().indices) == {13}


# --- splitters and criteria ------------------------------------------------------------------


def test_histogram_and_exact_are_the_same_in_small_nodes():
    X, y = friedman()
    small = [regressor(splitter=s).fit(X[:64], y[:64]) for s in ("histogram", "exact")]
    assert_same_forest(*small)
    assert differ(fit_friedman(splitter="histogram"), fit_friedman(splitter="exact"))


def test_the_exact_splitter_finds_the_threshold_between_classes():
    X = np.arange(200).reshape(-1, 1)
    y = (X[:, 0] >= 100).astype(int)
    model = classifier(Axis(), splitter="exact", bootstrap=False).fit(X, y)
    assert set(model._forest.thresholds()[roots(model._forest)]) == {99.5}


@pytest.mark.parametrize("splitter", ["histogram", "exact"])
def test_every_splitter_learns(splitter):
    X, y = digits()
    model = classifier(Patch(max_size=3), splitter=splitter, n_estimators=30).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > 0.85


def test_log_loss_is_entropy_and_not_gini():
    entropy, log_loss, gini = (fit_digits(criterion=c) for c in ("entropy", "log_loss", "gini"))
    assert_same_forest(entropy, log_loss)
    assert differ(entropy, gini)


@pytest.mark.parametrize(
    ("criterion", "leaf"),
    [("squared_error", np.mean), ("poisson", np.mean), ("absolute_error", np.median)],
)
def test_regression_leaves_hold_the_best_constant(criterion, leaf):
    X, y = friedman(101)
    y = y - y.min()
    model = regressor(criterion=criterion, bootstrap=False, min_samples_leaf=20).fit(X, y)
    each = np.empty((len(X), N_TREES))
    for i, tree in enumerate(model.apply(X).T):
        for node in np.unique(tree):
            each[tree == node, i] = leaf(y[tree == node])
    np.testing.assert_allclose(model.predict(X), each.mean(axis=1), rtol=1e-9)


def test_regression_criteria_choose_different_splits():
    X, y = friedman()
    models = [
        regressor(criterion=c).fit(X, np.exp(y / 5))
        for c in ("squared_error", "poisson", "absolute_error")
    ]
    assert differ(models[0], models[1])
    assert differ(models[1], models[2])


def test_first_splits_are_the_best_of_their_criterion():
    # One column, all thresholds by hand.
    rng = np.random.default_rng(5)
    x = rng.permutation(40).astype(float)
    y = np.where(x > 24, 9.0, 2.0) + rng.exponential(size=40)
    impurities = {
        "squared_error": lambda v: ((v - v.mean()) ** 2).sum(),
        "absolute_error": lambda v: np.abs(v - np.median(v)).sum(),
        "poisson": lambda v: -v.sum() * np.log(v.mean()),
    }
    for criterion, impurity in impurities.items():
        loss = {t + 0.5: impurity(y[x <= t]) + impurity(y[x > t]) for t in range(39)}
        tree = MorfTreeRegressor(Axis(), criterion=criterion, max_depth=1, max_features=None)
        tree.fit(x.reshape(-1, 1), y)
        assert tree._forest.thresholds()[0] == min(loss, key=loss.get)
        gain = impurity(y) - min(loss.values())
        assert tree._forest.gains()[0] == pytest.approx(gain / 40, rel=1e-5)


def test_the_gain_of_a_classification_split_is_the_decrease_of_impurity():
    rng = np.random.default_rng(6)
    x = np.arange(60)
    y = (rng.random(60) < np.where(x < 25, 0.1, 0.8)).astype(int)

    def gini(v):
        share = np.bincount(v, minlength=2) / len(v)
        return 1 - (share**2).sum()

    def entropy(v):
        share = np.bincount(v, minlength=2) / len(v)
        return -(share[share > 0] * np.log2(share[share > 0])).sum()

    for criterion, impurity in (("gini", gini), ("entropy", entropy)):
        tree = MorfTreeClassifier(Axis(), criterion=criterion, max_depth=1)
        tree.fit(x.reshape(-1, 1), y)
        left = x <= tree._forest.thresholds()[0]
        after = left.mean() * impurity(y[left]) + (~left).mean() * impurity(y[~left])
        assert tree._forest.gains()[0] == pytest.approx(impurity(y) - after, rel=1e-5)


# --- bags ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "draws"), [(None, 400), (50, 50), (0.1, 40), (1.0, 400)])
def test_max_samples_is_the_size_of_a_bag(value, draws):
    model = fit_digits(max_samples=value)
    assert (model._forest.weight[roots(model._forest)] == draws).all()


def test_whole_weights_are_repeated_rows_up_to_a_mean_of_64():
    X, y = digits()[0][:60], digits()[1][:60]
    model = classifier(n_estimators=3)

    def posteriors(weight):
        return clone(model).fit(X, y, sample_weight=np.full(len(X), weight)).predict_proba(X)

    repeated = clone(model).fit(np.repeat(X, 64, axis=0), np.repeat(y, 64)).predict_proba(X)
    np.testing.assert_array_equal(posteriors(64), repeated)
    # Beyond, only ratios matter, as for fractions: a bag has as many draws as there are rows.
    np.testing.assert_array_equal(posteriors(65), posteriors(0.5))
    np.testing.assert_array_equal(posteriors(100_000), posteriors(0.5))
    assert (posteriors(65) != posteriors(64)).any()
    # Trees that see all rows count them, whatever the sum.
    whole = clone(model).set_params(bootstrap=False, min_samples_leaf=200)
    leaves = whole.fit(X, y, sample_weight=np.full(len(X), 100)).get_n_leaves()
    assert (leaves > 1).all()


def test_drawing_stops_when_it_is_asked_to():
    stop = core.StopFlag()
    stop.set()
    keys, order = np.array([1], dtype=np.uint64), np.arange(2, dtype=np.uint32)
    with pytest.raises(KeyboardInterrupt):
        core.draw_bags(keys, 2**40, order, np.empty(0, dtype=np.uint64), stop)


def test_max_samples_with_weights_is_a_share_of_their_sum():
    weights = np.arange(400) % 3
    model = fit_digits(sample_weight=weights, max_samples=0.5)
    assert (model._forest.weight[roots(model._forest)] == np.ceil(weights.sum() / 2)).all()


def test_without_bootstrap_every_tree_knows_every_sample():
    X, y = digits()
    model = fit_digits(bootstrap=False)
    assert (model._forest.weight[roots(model._forest)] == 400).all()
    np.testing.assert_array_equal(model.predict_proba(X), np.eye(10)[y])
    bagged = fit_digits(bootstrap=True)
    assert (bagged.predict_proba(X)[np.arange(400), y] < 1).any()


def test_a_bag_holds_about_sixty_three_percent_of_the_samples():
    # Trees are grown until leaves are pure, so a tree that knows a sample gets it right.
    X = np.arange(2000).reshape(-1, 1)
    y = np.random.default_rng(0).permutation(2000) % 50
    model = classifier(Axis(), n_estimators=1).fit(X, y)
    known = (model.predict(X) == y).mean()
    assert 0.61 < known < 0.66  # 1 - 1/e is 0.632; guessing a neighbour's class adds 0.007


def test_trees_see_different_bags():
    X = np.arange(300).reshape(-1, 1)
    y = np.arange(300) % 7
    model = classifier(Axis(), n_estimators=10).fit(X, y)
    thresholds = np.split(model._forest.thresholds(), roots(model._forest)[1:])
    assert len({tuple(t.tolist()) for t in thresholds}) == 10


# --- out of bag ------------------------------------------------------------------------------


def bags_of(model, X, target):
    """How often each tree drew each row, by a hand-made bagging over the same samples."""
    rows = to_core_dtype(X.reshape(len(X), -1))
    plan = resolve(model.dictionary_, model.data_shape_)
    table = TrainingTable(rows, plan, *choose_format(rows, plan.bounds, plan.has_order))
    nothing = np.empty(0)
    bagging = make_bagging(
        table.table.hash, target, None, None, len(X), True, None, nothing, nothing.astype(np.uint32)
    )
    seed = model._seed
    keys = [core.tree_key(seed, tree) for tree in range(model._forest.n_trees)]
    return bagging.bags(np.array(keys, dtype=np.uint64), core.StopFlag()).count


def single_trees(model, X, y):
    """Posterior of each tree: the difference between forests of n and of n - 1 trees."""
    sums = np.zeros(())
    for n in range(1, model.n_estimators + 1):
        forest = clone(model).set_params(n_estimators=n, oob_score=False)
        forest.fit(X, y)
        prediction = (
            forest.predict_proba(X) if hasattr(forest, "predict_proba") else forest.predict(X)
        )
        total = prediction * n
        yield total - sums
        sums = total


@pytest.mark.parametrize("fit", [fit_digits, fit_friedman])
def test_out_of_bag_predictions_come_from_trees_that_did_not_see_the_sample(fit):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fit(oob_score=True, n_estimators=8)
    X, y = digits() if fit is fit_digits else friedman()
    target = np.searchsorted(model.classes_, y) if fit is fit_digits else y
    outputs = 10 if fit is fit_digits else 1
    sums, votes = np.zeros((len(X), outputs)), np.zeros(len(X))
    bags = bags_of(model, X, target)
    for bag, posterior in zip(bags, single_trees(model, X, y), strict=True):
        assert bag.sum() == len(X)
        out = bag == 0
        sums[out] += posterior.reshape(len(X), -1)[out]
        votes += out
        # The bags are the right ones: a fully grown tree knows what is in its bag.
        if fit is fit_digits:
            assert (posterior[~out].argmax(axis=1) == target[~out]).all()
    seen = votes > 0
    assert not seen.all()  # eight trees leave some rows in every bag
    expected = sums[seen] / votes[seen, None]
    if fit is fit_digits:
        np.testing.assert_allclose(model.oob_decision_function_[seen], expected, atol=1e-12)
        assert np.isnan(model.oob_decision_function_[~seen]).all()
        predicted = model.oob_decision_function_[seen].argmax(axis=1)
        assert model.oob_score_ == (predicted == target[seen]).mean()
    else:
        np.testing.assert_allclose(model.oob_prediction_[seen], expected[:, 0], rtol=1e-9)
        assert np.isnan(model.oob_prediction_[~seen]).all()
        assert model.oob_score_ == pytest.approx(r2_score(y[seen], model.oob_prediction_[seen]))


def test_out_of_bag_accuracy_on_noise_is_chance():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 5)), rng.integers(0, 2, 400)
    model = classifier(n_estimators=40, oob_score=True).fit(X, y)
    assert model.score(X, y) > 0.99
    assert 0.4 < model.oob_score_ < 0.6


def test_oob_score_takes_a_function():
    model = fit_digits(n_estimators=30, oob_score=balanced_accuracy_score)
    predicted = model.classes_[model.oob_decision_function_.argmax(axis=1)]
    assert model.oob_score_ == balanced_accuracy_score(digits()[1], predicted)
    model = fit_friedman(n_estimators=30, oob_score=mean_absolute_error)
    assert model.oob_score_ == mean_absolute_error(friedman()[1], model.oob_prediction_)


def test_out_of_bag_warns_where_trees_are_too_few():
    with pytest.warns(UserWarning, match="no out-of-bag prediction: use more trees"):
        fit_digits(n_estimators=2, oob_score=True)


def test_out_of_bag_predictions_keep_the_rows_of_weight_zero_in_place():
    weights = np.ones(400)
    weights[::4] = 0
    model = fit_digits(sample_weight=weights, n_estimators=30, oob_score=True)
    assert model.oob_decision_function_.shape == (400, 10)
    assert np.isnan(model.oob_decision_function_[::4]).all()
    X, y = digits()
    kept = classifier(n_estimators=30, oob_score=True).fit(X[weights > 0], y[weights > 0])
    np.testing.assert_array_equal(
        model.oob_decision_function_[weights > 0], kept.oob_decision_function_
    )
    assert model.oob_score_ == kept.oob_score_


def test_out_of_bag_after_warm_start_counts_all_trees():
    X, y = digits()
    model = classifier(n_estimators=15, warm_start=True).fit(X, y)
    model.set_params(n_estimators=30, oob_score=True).fit(X, y)
    at_once = fit_digits(n_estimators=30, oob_score=True)
    np.testing.assert_array_equal(model.oob_decision_function_, at_once.oob_decision_function_)


# --- class weights ---------------------------------------------------------------------------


def unbalanced():
    X, y = digits()
    keep = (y < 3) & ((y != 1) | (np.arange(len(y)) % 4 == 0))
    return X[keep], y[keep]


def test_class_weights_are_sample_weights_where_all_samples_are_in_the_tree():
    X, y = unbalanced()
    by_class = classifier(bootstrap=False, class_weight={0: 3, 1: 2}).fit(X, y)
    weights = np.array([3, 2, 1])[y]
    by_sample = classifier(bootstrap=False).fit(X, y, sample_weight=weights)
    assert_same_forest(by_class, by_sample)
    assert differ(by_class, classifier(bootstrap=False).fit(X, y))


def test_balanced_is_the_dict_of_inverse_frequencies():
    X, y = unbalanced()
    factors = dict(enumerate(len(y) / (3 * np.bincount(y))))
    balanced = classifier(class_weight="balanced").fit(X, y)
    assert_same_forest(balanced, classifier(class_weight=factors).fit(X, y))
    assert differ(balanced, classifier().fit(X, y))
    assert differ(balanced, classifier(class_weight="balanced_subsample").fit(X, y))


def test_balanced_subsample_without_bags_is_balanced():
    X, y = unbalanced()
    models = [
        classifier(class_weight=name, bootstrap=False).fit(X, y)
        for name in ("balanced", "balanced_subsample")
    ]
    assert_same_forest(*models)


def test_class_weights_set_the_priors_of_a_root():
    X, y = unbalanced()

    def priors(class_weight, **parameters):
        # Trees that are a single leaf predict the frequencies of their bag.
        model = classifier(class_weight=class_weight, min_samples_split=10_000, **parameters)
        return model.fit(X, y).predict_proba(X[:1])[0]

    frequencies = np.bincount(y) / len(y)
    np.testing.assert_allclose(priors(None, bootstrap=False), frequencies, atol=1e-12)
    np.testing.assert_allclose(priors("balanced", bootstrap=False), [1 / 3] * 3, atol=1e-6)
    np.testing.assert_allclose(priors("balanced_subsample"), [1 / 3] * 3, atol=1e-6)
    assert np.abs(priors("balanced") - 1 / 3).max() > 1e-4  # bags differ from all samples
    weighted = frequencies * [1, 10, 0.5]
    np.testing.assert_allclose(
        priors({1: 10, 2: 0.5}, bootstrap=False), weighted / weighted.sum(), atol=1e-6
    )


def test_a_class_of_weight_zero_is_never_predicted():
    X, y = unbalanced()
    model = classifier(class_weight={0: 0.0}, n_estimators=20).fit(X, y)
    assert list(model.classes_) == [0, 1, 2]
    assert (model.predict_proba(X)[:, 0] == 0).all()


def test_class_weights_take_string_labels():
    X, y = unbalanced()
    names = np.array(["apple", "pear", "plum"])[y]
    expected = classifier(class_weight={0: 3}).fit(X, y)
    for class_weight in ({"apple": 3}, {"apple": 3, "pear": 1, "plum": 1, "nothing": 7}):
        strings = classifier(class_weight=class_weight).fit(X, names)
        assert_same_forest(strings, expected)


def test_class_weights_for_other_labels_than_those_of_y_are_refused():
    """As in scikit-learn: most likely the labels are written in another way than in y."""
    X, y = unbalanced()
    message = r"labels that are not in y, \['0'\], and lacks some that are, \[0, 2\]"
    for make in (classifier, MorfBoostingClassifier):
        with pytest.raises(ValueError, match=message):
            make(class_weight={"0": 3, 1: 2}).fit(X, y)


def test_balancing_helps_the_rare_class():
    rng = np.random.default_rng(1)
    y = (np.arange(600) < 30).astype(int)
    X = rng.normal(size=(600, 4)) + 0.9 * y[:, None]
    test_y = np.repeat([0, 1], 300)
    test_X = rng.normal(size=(600, 4)) + 0.9 * test_y[:, None]
    scores = [
        balanced_accuracy_score(
            test_y,
            classifier(class_weight=w, n_estimators=50, min_samples_leaf=5)
            .fit(X, y)
            .predict(test_X),
        )
        for w in (None, "balanced")
    ]
    assert scores[1] > scores[0] + 0.1


# --- warm start ------------------------------------------------------------------------------


@pytest.mark.parametrize("fit", [fit_digits, fit_friedman])
@pytest.mark.parametrize("pickled", [False, True])
def test_warm_start_gives_the_forest_of_one_fit(fit, pickled):
    X, y = digits() if fit is fit_digits else friedman()
    model = fit(n_estimators=2, warm_start=True)
    for n_trees in (3, 9):
        if pickled:
            model = pickle.loads(pickle.dumps(model))
        model.set_params(n_estimators=n_trees).fit(X, y)
    at_once = fit(n_estimators=9)
    assert_same_forest(model, at_once)
    np.testing.assert_array_equal(model.predict(X), at_once.predict(X))


def test_warm_start_keeps_its_seed_where_random_state_is_a_generator():
    X, y = digits()
    model = classifier(n_estimators=3, warm_start=True, random_state=np.random.RandomState(4))
    model.fit(X, y).set_params(n_estimators=6).fit(X, y)
    at_once = classifier(n_estimators=6, random_state=np.random.RandomState(4)).fit(X, y)
    assert_same_forest(model, at_once)


def test_without_warm_start_a_fit_begins_anew():
    X, y = digits()
    model = classifier().fit(X[:100], y[:100] % 2).fit(X, y)
    assert_same_forest(model, fit_digits())
    assert len(model.classes_) == 10


def test_warm_start_with_nothing_to_do_says_so_and_changes_nothing():
    X, y = digits()
    model = fit_digits(warm_start=True)
    before = arrays(model)
    with pytest.warns(UserWarning, match="grows no new trees"):
        model.fit(X, y)
    assert all(value is before[name] for name, value in arrays(model).items())


def test_warm_start_refuses_what_does_not_fit():
    X, y = digits()
    model = fit_digits(warm_start=True)
    with pytest.raises(ValueError, match=r"n_estimators=2 must be at least the 5 trees"):
        clone_with_forest(model, n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match=r"shape.*\(64,\).*\(8, 8\)"):
        clone_with_forest(model, n_estimators=9).fit(X.reshape(-1, 64), y)
    with pytest.raises(ValueError, match="classes of the first fit"):
        clone_with_forest(model, n_estimators=9).fit(X, y + 1)
    with pytest.raises(ValueError, match="range or kind of numbers"):
        clone_with_forest(model, n_estimators=9).fit(X / 3.0, y)


def clone_with_forest(model, **parameters):
    return pickle.loads(pickle.dumps(model)).set_params(**parameters)


def test_warm_start_takes_samples_of_some_of_the_classes():
    X, y = digits()
    model = fit_digits(warm_start=True).set_params(n_estimators=2 * N_TREES)
    model.fit(X[y < 5], y[y < 5])
    assert len(model.classes_) == 10
    first = fit_digits().predict_proba(X)
    later = 2 * model.predict_proba(X) - first
    np.testing.assert_allclose(later[:, 5:], 0, atol=1e-12)


# --- a fit that fails ------------------------------------------------------------------------


def test_a_failed_fit_leaves_the_estimator_as_it_was():
    X, y = digits()
    model = fit_digits()
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X[:, :4], np.repeat(["a", "b"], 200), sample_weight=np.full(400, -1.0))
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert model.n_features_in_ == 64
    fresh = classifier()
    with pytest.raises(ValueError, match="sample_weight"):
        fresh.fit(X, y, sample_weight=np.full(400, -1.0))
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    assert not [name for name in vars(fresh) if name.endswith("_")]
