"""Boosted trees: equal to the oracle round by round, and what the estimators promise."""

import math
import pickle
from dataclasses import dataclass

import numpy as np
import oracle
import oracle_boosting
import oracle_gaps
import pytest
from common import assert_same_forest, missing_codes
from hypothesis import given
from hypothesis import strategies as st
from oracle_columns import shared
from problems import (
    AXIS_LENGTHS,
    SELDOM,
    as_oracle,
    assert_same_atom,
    cell_format_of,
    cells_of,
    dictionaries,
    samples,
    splits_on_int64,
    training_table,
)
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification, make_regression
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_oracle import examples

from morforest import (
    Axis,
    Haar,
    ImageCopies,
    Mixture,
    MorfBoostingClassifier,
    MorfBoostingRegressor,
    Patch,
    SharedAtoms,
    SparseOblique,
    Subset,
    _losses,
)
from morforest._native import core

BY_DEFAULT = Mixture([Axis(), SparseOblique()], [1, 1])  # of flat rows
LOSSES = ("squared_error", "absolute_error", "poisson", "quantile")

# --- the core against the oracle -------------------------------------------------------------


@dataclass
class Problem:
    X: np.ndarray
    y: np.ndarray
    dictionary: object
    parameters: dict
    sample_weight: np.ndarray | None

    def fit(self):
        kind = MorfBoostingRegressor if "loss" in self.parameters else MorfBoostingClassifier
        model = kind(self.dictionary, **self.parameters)
        return model.fit(self.X, self.y, sample_weight=self.sample_weight)


@st.composite
def problems(draw, rows):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_rows = draw(rows)
    shape = tuple(draw(st.lists(AXIS_LENGTHS, min_size=1, max_size=3)))
    parameters = {
        "splitter": draw(st.sampled_from(["histogram", "exact"])),
        "max_features": draw(st.sampled_from([1, 3, 8])),
        "max_iter": draw(st.integers(1, 3)),
        "max_depth": draw(st.sampled_from([1, 3, None])),
        "min_samples_leaf": draw(st.sampled_from([1, 1, 3])),
        "subsample": draw(st.sampled_from([0.5, 0.8, 1.0])),
        "l2_regularization": draw(st.sampled_from([0.0, 0.3, 1.0])),
        "learning_rate": draw(st.sampled_from([0.1, 1.0])),
        "random_state": draw(st.integers(0, 1000)),
        "calibration_folds": None,
    }
    if draw(SELDOM):
        parameters["max_leaf_nodes"] = draw(st.integers(2, 5))
    loss = draw(st.sampled_from(["log_loss", "log_loss", *LOSSES]))
    if loss == "log_loss":
        y = rng.integers(0, draw(st.integers(2, 12)), n_rows)
        y[:2] = 0, 1
    else:
        parameters["loss"] = loss
        parameters["quantile"] = draw(st.sampled_from([0.5, 0.2]))
        y = rng.poisson(3.0, n_rows) + (np.arange(n_rows) == 0) + 0.0
        if loss != "poisson" and draw(st.booleans()):
            y = rng.standard_normal(n_rows) * 10.0 ** draw(st.integers(-6, 6))
    weights = None
    match draw(st.sampled_from([None, None, "whole", "fractional"])):
        case "whole":
            weights = rng.integers(1, 4, n_rows).astype(float)
        case "fractional":
            weights = rng.integers(1, 8, n_rows) / 4 + 0.125
    X = draw(samples(rng, shape, n_rows))
    return Problem(X, y, draw(dictionaries(rng, shape)), parameters, weights)


def steps_of(parameters, classes):
    match parameters.get("loss"):
        case None if classes > 2:
            return oracle_boosting.softmax_steps
        case None:
            return oracle_boosting.logistic_steps
        case "squared_error":
            return oracle_boosting.squared_steps
        case "poisson":
            return oracle_boosting.poisson_steps
        case "absolute_error":
            return oracle_boosting.quantile_steps(0.5)
        case _:
            return oracle_boosting.quantile_steps(parameters["quantile"])


def the_oracle(problem, model, held_out=(), scores=None):
    """The rounds that a problem must give, with the formats that the model chose.

    Some rows may be held out, and scores may start elsewhere than the model's.
    """
    n_rows, parameters = len(problem.X), problem.parameters
    form = cell_format_of(model._forest)
    shape = problem.X.shape[1:]
    given = BY_DEFAULT if problem.dictionary is None else problem.dictionary
    dictionary, sources = as_oracle(given, shape, None)
    ordered = oracle_gaps.ordered_axes(dictionary, shape, None)
    weights = np.ones(n_rows) if problem.sample_weight is None else problem.sample_weight
    course = oracle_gaps.usual_course(problem.X, weights, ordered)
    cells, marks = cells_of(problem.X, form, sources, ordered, course=course)
    loss = parameters.get("loss")
    if loss is None:
        y = np.searchsorted(model.classes_, problem.y).tolist()
    else:
        y = np.ldexp(problem.y, -model._exponent).tolist()
    whole = bool((weights == np.rint(weights)).all())
    copies = weights.astype(int) if whole else np.ones(n_rows, dtype=int)
    copies[list(held_out)] = 0
    table = training_table(problem.X, given, shape, weights=weights)
    order = np.lexsort((weights, y, table.table.hash))
    if isinstance(problem.dictionary, SharedAtoms):
        dictionary = shared(dictionary, cells, order, model._seed, marks)
    subsample = parameters["subsample"]
    quantile = {"absolute_error": 0.5, "quantile": parameters.get("quantile")}.get(loss)
    rounds = oracle_boosting.Boosting(
        cells=cells,
        y=y,
        scores=np.tile(model._baseline if scores is None else scores, (n_rows, 1)),
        steps=steps_of(parameters, len(getattr(model, "classes_", ()))),
        dictionary=dictionary,
        growth=oracle.Growth(
            n_candidates=parameters["max_features"],
            criterion="gradient",
            splitter=parameters["splitter"],
            int64_cells=splits_on_int64(given, table),
            max_depth=parameters["max_depth"],
            min_samples_leaf=parameters["min_samples_leaf"],
            max_leaf_nodes=parameters.get("max_leaf_nodes"),
            gaps=marks is not None and not isinstance(problem.dictionary, SharedAtoms),
        ),
        marks=marks,
        seed=model._seed,
        order=order,
        copies=copies.tolist(),
        weights=(np.ones(n_rows) if whole else weights).tolist(),
        draws=max(1, round(subsample * int(copies.sum()))) if subsample < 1 else 0,
        l2=parameters["l2_regularization"],
        learning_rate=parameters["learning_rate"],
        largest_step=4.0 if loss in (None, "poisson") else math.inf,
        quantile=quantile,
        guided=problem.dictionary is None,
    )
    return rounds, sources


def assert_same_rounds(problem):
    model = problem.fit()
    expected, sources = the_oracle(problem, model)
    forest = model._forest
    atoms, gains, codes = forest.matrix(), forest.gains(), missing_codes(forest)
    leaf_values = forest.leaf_value.reshape(-1, forest.values)
    for tree in range(forest.n_trees):
        nodes, values = expected.round(tree)
        begin, end = (int(forest.tree_begin[tree + i]) for i in range(2))
        lefts = np.maximum(forest.next[begin:end].astype(int), -1)
        np.testing.assert_array_equal(lefts, [node.left for node in nodes])
        for number, node in enumerate(nodes):
            at = begin + number
            assert codes[at] == (0 if node.is_leaf else node.split.code)
            if node.is_leaf:
                found = leaf_values[-1 - int(forest.next[at])]
                np.testing.assert_allclose(found, values[number], rtol=1e-12, atol=1e-300)
                continue
            assert_same_atom(forest, atoms, at, node.split.atom, sources)
            assert forest.threshold[at] == node.split.threshold
            assert gains[at] == pytest.approx(node.split.gain, rel=1e-6, abs=1e-30)
    # The forest adds its trees before the first guess.
    np.testing.assert_allclose(model._raw(problem.X), expected.scores, rtol=1e-9, atol=1e-9)


@examples(250)
@given(problems(st.integers(2, 30)))
def test_rounds_equal_the_oracle(problem):
    assert_same_rounds(problem)


@examples(40)
@given(problems(st.sampled_from([70, 150])))
def test_large_nodes_equal_the_oracle(problem):
    problem.parameters |= {"max_depth": 2, "max_iter": 2}
    problem.parameters.pop("max_leaf_nodes", None)
    assert_same_rounds(problem)


@examples(40)
@given(problems(st.integers(5, 40)))
def test_guided_sums_equal_the_oracle(problem):
    problem.X = problem.X.reshape(len(problem.X), -1)
    problem.dictionary = None
    problem.parameters |= {"max_iter": 6}
    assert_same_rounds(problem)


def test_sums_are_guided_by_default_alone():
    X, y = make_classification(600, 60, n_informative=4, n_redundant=0, random_state=0)
    common = {"max_iter": 60, "random_state": 0}
    guided = MorfBoostingClassifier(**common).fit(X, y)
    given = MorfBoostingClassifier(BY_DEFAULT, **common).fit(X, y)

    def useful(model):
        atoms = model._forest.matrix()
        sums = atoms[np.diff(atoms.indptr) > 1]
        informative = np.argsort(-model.feature_importances_)[:4]
        return np.isin(sums.indices, informative).mean()

    assert useful(guided) > useful(given) + 0.1
    assert guided.dictionary_ == Mixture([Axis(), SparseOblique()])


def test_guided_rounds_go_on_where_they_were():
    X, y = make_classification(300, 30, random_state=0)
    whole = MorfBoostingClassifier(max_iter=20, random_state=0).fit(X, y)
    parts = MorfBoostingClassifier(max_iter=8, random_state=0, warm_start=True).fit(X, y)
    parts = pickle.loads(pickle.dumps(parts)).set_params(max_iter=20).fit(X, y)
    np.testing.assert_array_equal(parts._forest.atoms.cell, whole._forest.atoms.cell)


@pytest.mark.parametrize("dictionary", [Patch(max_size=4), Haar(pool="max"), Subset(Patch(), 50)])
@pytest.mark.parametrize("splitter", ["histogram", "exact"])
def test_threads_that_share_a_node_do_not_matter(dictionary, splitter):
    X, y = load_digits(return_X_y=True)
    X = X.reshape(-1, 8, 8)
    alone, together, many = (
        MorfBoostingClassifier(
            dictionary,
            max_iter=2,
            max_features=20,
            splitter=splitter,
            random_state=0,
            n_jobs=n_jobs,
        ).fit(X, y)
        for n_jobs in (1, 2, 7)
    )
    assert_same_forest(alone, together)
    assert_same_forest(alone, many)


def test_the_exponential_is_right():
    x = np.concatenate([np.linspace(-708, 709, 20_001), np.linspace(-1, 1, 2001), [0.0]])
    np.testing.assert_allclose(core.exp(x), np.exp(x), rtol=1e-15)
    assert core.exp(np.array([0.0]))[0] == 1.0
    np.testing.assert_array_equal(
        core.exp(np.array([-1e9, 1e9])), core.exp(np.array([-708.0, 709.0]))
    )
    assert [oracle_boosting.exp(v) for v in x[::97]] == core.exp(x[::97]).tolist()


def test_probabilities_are_right():
    scores = np.random.default_rng(0).normal(size=(50, 4)) * 20
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(_losses.softmax(scores), expected, rtol=1e-13)
    np.testing.assert_allclose(_losses.logistic(scores), 1 / (1 + np.exp(-scores)), rtol=1e-13)


def test_losses_are_right_even_of_extreme_scores():
    rng = np.random.default_rng(0)
    for size in (1.0, 30.0, 600.0):
        scores, y = rng.normal(size=(200, 4)) * size, rng.integers(0, 4, 200)
        found = _losses.make_loss("log_loss", y, np.ones(200), classes=4).values(scores)
        expected = np.logaddexp.reduce(scores, axis=1) - scores[np.arange(200), y]
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-12)
        found = _losses.make_loss("log_loss", y % 2, np.ones(200), classes=2).values(scores[:, :1])
        expected = np.logaddexp(0, np.where(y % 2, -1, 1) * scores[:, 0])
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-12)


def test_means_of_losses_are_rounded_once():
    # Numbers of many sizes, of which a plain sum depends on the order.
    rng = np.random.default_rng(0)
    values, weights = np.exp(rng.normal(size=1000) * 20), rng.random(1000)
    found = {_losses.mean(values[o], weights[o]) for o in map(rng.permutation, [1000] * 20)}
    assert found == {math.fsum(values * weights) / math.fsum(weights)}
    assert _losses.mean(np.full(9, 1e308), np.ones(9)) == math.inf


def test_weighted_quantiles_do_not_depend_on_the_order():
    rng = np.random.default_rng(0)
    values, weights = rng.integers(0, 3, 60).astype(float), rng.random(60)
    orders = [rng.permutation(60) for _ in range(20)]
    cumulated = {float(np.cumsum(weights[o][np.argsort(values[o])])[-1]) for o in orders}
    assert len(cumulated) > 1  # the order of ties would tell
    # A share that the lower values reach exactly, in the order of their weights.
    lower = np.cumsum(np.sort(weights[values == 0]))[-1]
    total = np.cumsum(weights[np.lexsort((weights, values))])[-1]
    found = {_losses.weighted_quantile(values[o], weights[o], lower / total) for o in orders}
    assert len(found) == 1


@pytest.mark.parametrize("name", ["log_loss", "two classes", *LOSSES])
def test_steps_are_derivatives_of_the_loss(name):
    rng = np.random.default_rng(0)
    outputs = 3 if name == "log_loss" else 1
    y = rng.integers(0, {"log_loss": 3, "two classes": 2}.get(name, 5), 40)
    more = {"classes": 3 if name == "log_loss" else 2, "quantile": 0.3}
    loss = _losses.make_loss("log_loss" if name == "two classes" else name, y, np.ones(40), **more)
    scores = rng.normal(size=(40, outputs))
    gradient, curvature = loss.steps(scores)
    for k in range(outputs):
        step = np.zeros((40, outputs))
        step[:, k] = 1e-5
        slope = (loss.values(scores + step) - loss.values(scores - step)) / 2e-5
        np.testing.assert_allclose(-gradient[:, k], slope, atol=1e-8)
        if name not in ("absolute_error", "quantile"):
            ahead, behind = loss.steps(scores + step)[0], loss.steps(scores - step)[0]
            np.testing.assert_allclose(
                curvature[:, k], -(ahead - behind)[:, k] / 2e-5, rtol=1e-6, atol=1e-8
            )


@pytest.mark.parametrize("name", ["log_loss", *LOSSES])
def test_the_first_guess_is_the_best_constant(name):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 31) if name == "log_loss" else rng.poisson(4.0, 31).astype(float)
    weight = rng.integers(1, 4, 31).astype(float)
    loss = _losses.make_loss(name, y, weight, classes=3, quantile=0.3)
    first = loss.baseline()

    def average(scores):
        return loss.average(np.tile(scores, (31, 1)), np.arange(31), loss.weight)

    best = average(first)
    for _ in range(200):
        assert average(first + rng.normal(size=first.shape) * 0.05) >= best - 1e-12


# --- estimators ------------------------------------------------------------------------------


def digits(n=400):
    X, y = load_digits(return_X_y=True)
    return X[:n].reshape(-1, 8, 8), y[:n]


@parametrize_with_checks([MorfBoostingClassifier(max_iter=20), MorfBoostingRegressor(max_iter=100)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_images_are_learnt():
    X, y = load_digits(return_X_y=True)
    X = X.reshape(-1, 8, 8)
    model = MorfBoostingClassifier(Patch(max_size=4), max_iter=100, random_state=0)
    assert model.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.9


@pytest.mark.parametrize("loss", LOSSES)
def test_numbers_are_learnt(loss):
    X, y = make_regression(600, 6, noise=5.0, random_state=0)
    y = np.exp(y / 150) if loss == "poisson" else y
    model = MorfBoostingRegressor(
        Axis(), loss=loss, max_iter=150, max_features=None, random_state=0
    )
    assert model.fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.75


def test_a_quantile_is_met():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(4000, 1))
    y = X[:, 0] + rng.normal(size=4000)
    model = MorfBoostingRegressor(
        Axis(), loss="quantile", quantile=0.9, max_iter=50, max_depth=2, min_samples_leaf=50
    )
    model.fit(X[:2000], y[:2000])
    assert np.mean(y[2000:] <= model.predict(X[2000:])) == pytest.approx(0.9, abs=0.03)


def test_the_last_stage_is_the_model():
    X, y = digits()
    model = MorfBoostingClassifier(max_iter=7, random_state=0).fit(X, y)
    stages = list(model.staged_predict_proba(X))
    assert len(stages) == 7
    np.testing.assert_allclose(stages[-1], model.predict_proba(X), rtol=1e-12)
    np.testing.assert_array_equal(list(model.staged_predict(X))[-1], model.predict(X))
    earlier = MorfBoostingClassifier(max_iter=3, random_state=0).fit(X, y)
    np.testing.assert_allclose(stages[2], earlier.predict_proba(X), rtol=1e-12)
    regressor = MorfBoostingRegressor(max_iter=4, random_state=0).fit(X, y)
    np.testing.assert_allclose(list(regressor.staged_predict(X))[-1], regressor.predict(X))


def test_training_scores_are_the_losses_of_the_stages():
    X, y = digits()
    model = MorfBoostingClassifier(max_iter=5, random_state=0).fit(X, y)
    losses = [-np.log(p[np.arange(len(y)), y]).mean() for p in model.staged_predict_proba(X)]
    np.testing.assert_allclose(model.train_score_, losses, rtol=1e-9)
    assert len(model.validation_score_) == 0
    assert model.n_iter_ == 5


def test_early_stopping_keeps_the_best_round():
    X, y = make_classification(300, 8, flip_y=0.3, random_state=0)
    parameters = {"max_iter": 300, "learning_rate": 0.5, "random_state": 0}
    model = MorfBoostingClassifier(Axis(), early_stopping=True, n_iter_no_change=5, **parameters)
    model.fit(X, y)
    scores = model.validation_score_
    assert model.n_iter_ == np.argmin(scores) + 1
    assert len(scores) == model.n_iter_ + 5 < 300
    assert len(list(model.staged_predict(X))) == model.n_iter_


def test_held_out_rows_are_not_trained_on():
    # Labels that say nothing are learnt by heart, but for those of the rows held out.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), rng.integers(0, 2, 200)
    model = MorfBoostingClassifier(
        Axis(),
        early_stopping=True,
        validation_fraction=0.25,
        max_iter=60,
        n_iter_no_change=100,
        min_samples_leaf=1,
        learning_rate=0.5,
        subsample=1.0,
        random_state=0,
        tol=0.0,
    ).fit(X, y)
    assert model.train_score_[-1] < 0.1
    assert min(model.validation_score_) > 0.5


def test_warm_start_equals_one_fit():
    X, y = digits()
    for kind in (MorfBoostingClassifier, MorfBoostingRegressor):
        whole = kind(max_iter=6, random_state=0).fit(X, y)
        parts = kind(max_iter=2, random_state=0, warm_start=True).fit(X, y)
        parts.set_params(max_iter=6).fit(X, y)
        assert parts.n_iter_ == 6
        assert len(parts.train_score_) == 6
        np.testing.assert_allclose(parts._raw(X), whole._raw(X), rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("error")
def test_warm_start_says_what_is_wrong():
    X, y = digits()
    model = MorfBoostingClassifier(max_iter=3, warm_start=True, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="max_iter=2 must be at least the 3 rounds"):
        model.set_params(max_iter=2).fit(X, y)
    with pytest.raises(UserWarning, match="adds no rounds"):
        model.set_params(max_iter=3).fit(X, y)
    with pytest.raises(ValueError, match="shape"):
        model.set_params(max_iter=4).fit(X[:, :4], y)
    assert model.n_iter_ == 3


@pytest.mark.parametrize("kind", [MorfBoostingClassifier, MorfBoostingRegressor])
def test_the_order_of_rows_does_not_matter(kind):
    X, y = digits(200)
    order = np.random.default_rng(0).permutation(len(X))
    one = kind(max_iter=5, random_state=0).fit(X, y)
    other = kind(max_iter=5, random_state=0).fit(X[order], y[order])
    np.testing.assert_array_equal(one._raw(X), other._raw(X))


@pytest.mark.parametrize("weighting", [None, "whole", "fractional", "balanced"])
@pytest.mark.parametrize("loss", ["two classes", "log_loss", *LOSSES])
def test_losses_and_stopping_do_not_depend_on_the_order_of_rows(loss, weighting):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(300, 4))  # many rows repeat, with other targets and weights
    kind, more = MorfBoostingClassifier, {}
    if loss in LOSSES:
        kind, more = MorfBoostingRegressor, {"loss": loss, "quantile": 0.3}
        y = X[:, 0] + rng.poisson(1.0, 300) + (0.0 if loss == "poisson" else rng.normal(size=300))
    else:
        y = (X[:, 0] + rng.integers(0, 3, 300)) // (1 if loss == "log_loss" else 3)
    weights = None
    if weighting is not None:
        weights = rng.integers(1, 4, 300) + (rng.random(300) if weighting != "whole" else 0.0)
    if weighting == "balanced" and kind is MorfBoostingClassifier:
        more["class_weight"] = "balanced"
    model = kind(
        max_iter=80, learning_rate=0.2, early_stopping=True, n_iter_no_change=5, random_state=0
    ).set_params(**more)
    one = model.fit(X, y, weights)
    raw = one._raw(X)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(300)
        other = clone(model).fit(X[order], y[order], None if weights is None else weights[order])
        assert other.n_iter_ == one.n_iter_
        np.testing.assert_array_equal(other.train_score_, one.train_score_)
        np.testing.assert_array_equal(other.validation_score_, one.validation_score_)
        np.testing.assert_array_equal(other._baseline, one._baseline)
        np.testing.assert_array_equal(other._raw(X), raw)


def test_stopping_with_copies_does_not_depend_on_the_order_of_rows():
    X, y = digits(150)
    model = MorfBoostingClassifier(
        max_iter=20, early_stopping=True, n_iter_no_change=3, augment=ImageCopies(), random_state=0
    )
    one = clone(model).fit(X, y)
    order = np.random.default_rng(0).permutation(len(X))
    other = clone(model).fit(X[order], y[order])
    np.testing.assert_array_equal(other.train_score_, one.train_score_)
    np.testing.assert_array_equal(other.validation_score_, one.validation_score_)
    np.testing.assert_array_equal(other._raw(X), one._raw(X))


@pytest.mark.parametrize("subsample", [0.5, 1.0])
def test_a_whole_weight_is_a_repeated_row(subsample):
    X, y = digits(150)
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    for kind in (MorfBoostingClassifier, MorfBoostingRegressor):
        model = kind(max_iter=5, subsample=subsample, random_state=0)
        one = model.fit(X, y, sample_weight=weights)._raw(X)
        other = model.fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))._raw(X)
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("samples", "share", "leaf"), [(12, 0.8, 3), (60, 0.8, 16), (100, 0.8, 20), (5001, 0.5, 20)]
)
def test_defaults_follow_the_number_of_samples(samples, share, leaf):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(samples, 3))
    for kind, y in (
        (MorfBoostingClassifier, (X[:, 0] > 0).astype(int)),
        (MorfBoostingRegressor, X[:, 0]),
    ):
        by_default = kind(Axis(), max_iter=3, random_state=0).fit(X, y)
        named = kind(
            Axis(), max_iter=3, subsample=share, min_samples_leaf=leaf, random_state=0
        ).fit(X, y)
        assert_same_forest(by_default, named)
        assert by_default.get_n_leaves().max() > 1


def test_defaults_count_the_samples_that_are_trained_on():
    # 5,500 rows of which a tenth is held out; 1,300 rows, each four times.
    X = np.random.default_rng(0).normal(size=(5500, 2))
    y = (X[:, 0] > 0).astype(int)
    model = MorfBoostingClassifier(Axis(), max_iter=2, random_state=0, early_stopping=True)
    named = MorfBoostingClassifier(**model.get_params() | {"subsample": 0.8})
    assert_same_forest(model.fit(X, y), named.fit(X, y))
    X, y, weights = X[:1300], y[:1300], np.full(1300, 4)
    model = MorfBoostingClassifier(Axis(), max_iter=2, random_state=0)
    named = MorfBoostingClassifier(**model.get_params() | {"subsample": 0.5})
    assert_same_forest(model.fit(X, y, weights), named.fit(X, y, weights))


def test_class_weights_shift_the_decision():
    X, y = make_classification(400, 6, weights=[0.9], random_state=0)
    plain = MorfBoostingClassifier(Axis(), max_iter=30, random_state=0).fit(X, y)
    balanced = MorfBoostingClassifier(
        Axis(), max_iter=30, class_weight="balanced", random_state=0
    ).fit(X, y)
    factors = len(y) / (2 * np.bincount(y))
    weighted = MorfBoostingClassifier(Axis(), max_iter=30, random_state=0)
    weighted.fit(X, y, sample_weight=factors[y])
    assert balanced.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean()
    np.testing.assert_allclose(balanced._raw(X), weighted._raw(X), rtol=1e-9)


def test_pickled_models_predict_the_same():
    X, y = digits()
    for kind in (MorfBoostingClassifier, MorfBoostingRegressor):
        model = kind(max_iter=4, random_state=0).fit(X, y)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again._raw(X), model._raw(X))


def test_an_interrupt_keeps_rounds_for_warm_start(monkeypatch):
    X, y = digits()
    calls = []

    def interrupted(*args, **kwargs):
        calls.append(None)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return grow(*args, **kwargs)

    grow = core.grow_trees
    monkeypatch.setattr(core, "grow_trees", interrupted)
    cold = MorfBoostingClassifier(max_iter=5, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        cold.fit(X, y)
    assert not hasattr(cold, "n_iter_")
    calls.clear()
    warm = MorfBoostingClassifier(max_iter=5, random_state=0, warm_start=True)
    with pytest.raises(KeyboardInterrupt):
        warm.fit(X, y)
    assert warm.n_iter_ == 2
    monkeypatch.setattr(core, "grow_trees", grow)
    whole = MorfBoostingClassifier(max_iter=5, random_state=0).fit(X, y)
    np.testing.assert_allclose(warm.fit(X, y)._raw(X), whole._raw(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("power", [-990, -20, 500, 996])
def test_targets_of_any_size(power):
    X, y = make_regression(100, 4, random_state=0)
    y = y / np.abs(y).max()
    model = MorfBoostingRegressor(Axis(), max_iter=20, random_state=0)
    plain = model.fit(X, y).predict(X)
    scaled = model.fit(X, np.ldexp(y, power)).predict(X)
    np.testing.assert_array_equal(np.ldexp(scaled, -power), plain)


def test_a_constant_target():
    X, _ = digits(60)
    for loss in LOSSES:
        model = MorfBoostingRegressor(loss=loss, max_iter=3).fit(X, np.full(60, 7.0))
        np.testing.assert_allclose(model.predict(X), 7.0, rtol=1e-9)
        assert (model.get_n_leaves() == 1).all()


BAD = {
    "max_iter": [0, 1.5, "many", 10**9],
    "learning_rate": [0, -1, "fast", math.nan],
    "subsample": [0, 1.5, None, "half"],
    "splitter": ["random", 1],
    "max_depth": [0, "deep"],
    "max_leaf_nodes": [1],
    "min_samples_leaf": [0, 1.5, None, "few"],
    "l2_regularization": [-1, math.nan, "much"],
    "early_stopping": ["always", 1],
    "calibration_folds": [1, 2.5, "auto", True],
    "validation_fraction": [0, 1, "some"],
    "n_iter_no_change": [0],
    "tol": [-1],
    "max_features": ["all", 0],
    "n_jobs": [0, 10**30],
    "random_state": ["seed"],
    "warm_start": ["yes"],
    "verbose": [-1],
    "loss": ["gini", None],
    "quantile": [0, 1, "half"],
    "class_weight": ["balanced_subsample", 3, {0: -1}],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in BAD.items() for v in values])
def test_a_bad_parameter_is_named(name, value):
    X, y = digits(50)
    kind = MorfBoostingRegressor if name in ("loss", "quantile") else MorfBoostingClassifier
    with pytest.raises((ValueError, TypeError), match=name):
        kind(**{name: value}).fit(X, y)


@pytest.mark.parametrize("kind", [MorfBoostingClassifier, MorfBoostingRegressor])
def test_boosting_has_no_parameters_of_forests(kind):
    for name in ("n_estimators", "bootstrap", "max_samples", "oob_score", "criterion"):
        with pytest.raises(AttributeError, match=name):
            getattr(kind(), name)


def test_a_fit_says_what_auto_was_resolved_to():
    X, y = digits(300)
    model = MorfBoostingClassifier(max_iter=2).fit(X, y)
    assert (model.max_features_, model.subsample_, model.min_samples_leaf_) == (8, 0.8, 20)
    assert isinstance(model.dictionary_, Patch)
    flat = MorfBoostingRegressor(max_iter=2).fit(X[:40].reshape(40, -1), y[:40])
    assert (flat.max_features_, flat.subsample_, flat.min_samples_leaf_) == (64, 0.8, 10)
    assert isinstance(flat.dictionary_, Mixture)
    given = MorfBoostingClassifier(max_iter=2, subsample=0.5, min_samples_leaf=0.1, max_features=3)
    given.fit(X, y)
    assert (given.max_features_, given.subsample_, given.min_samples_leaf_) == (3, 0.5, 15)


def test_bad_targets_are_explained():
    X, y = digits(50)
    with pytest.raises(ValueError, match="one class only"):
        MorfBoostingClassifier().fit(X, np.zeros(50))
    with pytest.raises(ValueError, match="poisson"):
        MorfBoostingRegressor(loss="poisson").fit(X, y - 1.0)
    with pytest.raises(ValueError, match="scale them down"):
        MorfBoostingRegressor(loss="poisson").fit(X, y * 1e20)
    with pytest.raises(ValueError, match="holds no sample out"):
        MorfBoostingClassifier(early_stopping=True, validation_fraction=0.01).fit(X, y)


def test_rounds_are_told(capsys):
    X, y = digits(60)
    MorfBoostingClassifier(max_iter=3, verbose=1, early_stopping=True, validation_fraction=0.3).fit(
        X, y
    )
    told = capsys.readouterr().err
    assert "rounds 3/3" in told
    assert "validation loss" in told
