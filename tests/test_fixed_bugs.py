"""Awkward uses that once went wrong."""

import warnings

import numpy as np
import pytest
from golden_cases import digits, table
from sklearn.base import clone

from morforest import (
    AtomFeatures,
    Axis,
    Difference,
    ImageCopies,
    Magnitude,
    MorfBoostingClassifier,
    MorfBoostingRegressor,
    MorfClassifier,
    Pair,
    Patch,
    SharedAtoms,
)
from morforest._bagging import make_bagging
from morforest._fixed_point import choose_format
from morforest._table import TrainingTable
from morforest.dictionary._base import resolve


@pytest.mark.parametrize("kind", [MorfClassifier, MorfBoostingClassifier])
@pytest.mark.parametrize("other", [Axis(), Patch(views=Magnitude()), Patch(pool="max")])
def test_another_dictionary_cannot_go_on_from_old_trees(kind, other):
    X, y = digits(60)
    trees = "max_iter" if kind is MorfBoostingClassifier else "n_estimators"
    model = kind(Patch(), warm_start=True, random_state=0, **{trees: 3}).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="set dictionary back"):
        model.set_params(dictionary=other, **{trees: 4}).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), before)
    # Other sizes of the same kind look at the same cells.
    model.set_params(dictionary=Patch(1, 4), **{trees: 4}).fit(X, y)


def test_another_loss_cannot_go_on_from_old_rounds():
    X, _, y = table(80)
    model = MorfBoostingRegressor(max_iter=3, warm_start=True, random_state=0).fit(X, y)
    before = model.predict(X)
    model.set_params(loss="poisson", max_iter=4)
    np.testing.assert_array_equal(model.predict(X), before)
    with pytest.raises(ValueError, match="needs the loss of the first fit"):
        model.fit(X, y)


def test_copies_take_weights_that_are_not_whole():
    X, y = digits(80)
    for parameters in ({"class_weight": "balanced"}, {"class_weight": {0: 1, 1: 2.5}}):
        copies = MorfClassifier(
            Patch(), augment=ImageCopies(), n_estimators=4, random_state=0, **parameters
        )
        assert copies.fit(X, y).score(X, y) > 0.6
    weights = np.linspace(0.5, 2, len(y))
    copies = MorfClassifier(Patch(), augment=ImageCopies(), n_estimators=4, bootstrap=False)
    assert copies.fit(X, y, sample_weight=weights).score(X, y) > 0.9


def test_pairs_across_a_signed_channel_do_not_overflow():
    X = np.zeros((4, 64, 8))
    X[0, :, 3:] = X[1, :, :4] = 255
    X[2, ::2] = 255
    channels = [Difference(-1), Magnitude()]
    dictionary = Pair((64, 1), (64, 1), reach=(0, 7), views=channels)
    plan = resolve(dictionary, (64, 8))
    flat = X.reshape(4, -1)
    cells = choose_format(flat, plan.bounds, plan.has_order)[1]
    values = []
    for source in plan.views():
        found = source.largest_of_nonnegative(255.0)
        values.append(found[0] * 64)
    assert sum(values) < 2.0 ** (8 * np.dtype(cells.cell_type).itemsize - 1)
    TrainingTable(flat, plan, *choose_format(flat, plan.bounds, plan.has_order))


def test_early_stopping_goes_on_where_it_was():
    X, y, _ = table(300)
    flip = np.random.default_rng(0).random(300) < 0.3
    y = np.where(flip, 1 - y, y)
    model = MorfBoostingClassifier(
        max_iter=200, early_stopping=True, n_iter_no_change=5, warm_start=True, random_state=0
    ).fit(X, y)
    rounds, scores = model.n_iter_, model.validation_score_
    assert rounds == np.argmin(scores) + 1 < len(scores)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)
    assert model.n_iter_ == rounds
    assert model.n_iter_ == len(model._forest.tree_begin) - 1
    np.testing.assert_allclose(model.validation_score_[: len(scores)], scores, rtol=1e-12)
    with pytest.raises(ValueError, match="early_stopping as in the first fit"):
        model.set_params(early_stopping=False, max_iter=300).fit(X, y)


def test_held_out_samples_count_what_they_weigh():
    X, y, _ = table(200)
    weights = np.where(np.arange(200) % 2, 1.0, 9.0)
    models = [
        MorfBoostingClassifier(max_iter=4, early_stopping=True, random_state=0).fit(X, y, w)
        for w in (weights, weights + 1e-9 * (np.arange(200) == 0))
    ]
    a, b = (model.validation_score_ for model in models)
    assert np.abs(a - b).max() < 0.05


def test_huge_whole_weights_take_no_time():
    X, y, _ = table(40)
    model = MorfBoostingClassifier(max_iter=50, random_state=0)
    assert model.fit(X, y, np.full(40, 1e7)).score(X, y) > 0.8


def test_auto_tries_names_that_round_the_samples_and_keeps_still():
    X, y, _ = table(60)
    X = np.hstack([X, X])
    X[:, 1] *= 1e12
    X[:, 2] *= 1e-9
    model = MorfClassifier("auto", n_estimators=10, random_state=0).fit(X, y)
    assert model.dictionary_scores_.keys() >= {"axis", "series"}
    assert max(model.dictionary_scores_, key=model.dictionary_scores_.get) != "series"
    with pytest.warns(UserWarning, match="many orders of magnitude"):
        MorfClassifier("series", n_estimators=2, random_state=0).fit(X, y)


def test_samples_of_weight_zero_do_not_judge_dictionaries():
    X, y = digits(120)
    weights = np.repeat([1.0, 0.0], 60)
    noise = np.concatenate([y[:60], y[60:][::-1]])
    auto = MorfClassifier("auto", n_estimators=10, random_state=0)
    alone = auto.fit(X[:60], y[:60]).dictionary_scores_
    assert auto.fit(X, noise, weights).dictionary_scores_ == alone


def test_many_threads_are_no_more_than_there_is_to_share():
    X, y = digits(300)
    few, many = (
        MorfBoostingClassifier(Patch(), max_iter=2, random_state=0, n_jobs=n).fit(X, y)
        for n in (1, 400)
    )
    np.testing.assert_array_equal(few.predict_proba(X), many.predict_proba(X))


def test_atoms_beyond_float32_are_refused():
    X = np.random.default_rng(0).standard_normal((20, 8)) * 1e100
    with pytest.raises(ValueError, match="scale X down"):
        AtomFeatures(Patch(), n_atoms=10, random_state=0).fit_transform(X)


@pytest.mark.filterwarnings("ignore:overflow")
def test_steps_that_overflow_name_the_learning_rate():
    X, _, y = table(60)
    model = MorfBoostingRegressor(learning_rate=1e6, max_iter=500, random_state=0)
    with pytest.raises(ValueError, match="learning_rate=1e\\+06 is too large"):
        model.fit(X, y)


def test_bags_of_fractional_weights_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(0)
    n = 3000
    hashes = rng.integers(0, 2**63, size=n).astype(np.uint64)
    weights, target = rng.random(n), np.zeros(n, dtype=np.uint32)
    weights[0] = n  # so large that the last bit of the sum shows
    sums, found = set(), set()
    for _ in range(20):
        order = rng.permutation(n)
        sums.add(weights[order].sum())
        bagging = make_bagging(
            hashes[order], target, None, weights[order], 10, True, None, np.empty(0), target
        )
        found.add(bagging.cumulative.tobytes())
    assert len(sums) > 1
    assert len(found) == 1


@pytest.mark.parametrize("scale", [3, 2.5])
def test_copies_of_equal_rows_of_other_weight_do_not_depend_on_the_order(scale):
    X, y = digits(30)
    X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    weights = np.tile([scale, 2 * scale], 30)
    order = np.random.default_rng(0).permutation(60)
    model = MorfClassifier(
        Patch(), augment=ImageCopies(), n_estimators=5, bootstrap=False, max_depth=4, random_state=0
    )
    expected = model.fit(X, y, weights).predict_proba(X)
    np.testing.assert_array_equal(
        model.fit(X[order], y[order], weights[order]).predict_proba(X), expected
    )


SHARED = SharedAtoms(Patch(max_size=4), 30, combine="ridge")


def test_trees_that_saw_every_row_have_no_out_of_bag_score():
    X = np.random.default_rng(0).normal(size=(60, 8, 8))
    y = np.random.default_rng(1).integers(0, 2, size=60)
    model = MorfClassifier(clone(SHARED), n_estimators=5, warm_start=True, random_state=0).fit(X, y)
    before = model.predict_proba(X)
    model.set_params(n_estimators=30, oob_score=True)
    for n_trees in (31, 32):
        with pytest.raises(ValueError, match="did not see every row, but some of an earlier fit"):
            model.fit(X, y)
        np.testing.assert_array_equal(model.predict_proba(X), before)
        model.set_params(n_estimators=n_trees, oob_score=False).fit(X, y)
        before = model.predict_proba(X)
        model.set_params(n_estimators=60, oob_score=True, bootstrap=True)
    assert model.set_params(warm_start=False).fit(X, y).oob_score_ < 0.8


def test_out_of_bag_scores_of_combinations_stay_when_plain_trees_follow():
    X, y = digits(200)
    model = MorfClassifier(
        clone(SHARED), n_estimators=20, oob_score=True, warm_start=True, random_state=0
    )
    few = model.fit(X, y).oob_decision_function_
    many = model.set_params(n_estimators=21, dictionary__combine=None).fit(X, y)
    many = many.oob_decision_function_
    again = model.set_params(n_estimators=22, dictionary__combine="ridge").fit(X, y)
    again = again.oob_decision_function_
    # About seven trees judge a row, and each of the others moves their mean a little.
    assert np.nanmean(np.abs(few - many).max(axis=1)) < 0.05
    assert np.nanmean(np.abs(again - many).max(axis=1)) < 0.05


def test_one_class_has_attributions_of_one_class():
    X, _ = digits(20)
    model = MorfClassifier(Patch(), n_estimators=2, random_state=0).fit(X, np.ones(20))
    values, baseline = model.attributions(X)
    assert values.shape == (20, 8, 8, 1)
    np.testing.assert_array_equal(baseline, [1.0])


def test_candidates_are_no_more_than_the_atoms_that_are_shared():
    X, y = digits(60)
    model = MorfClassifier(SHARED, n_estimators=2, random_state=0)
    all_of_them = model.set_params(max_features=30).fit(X, y).predict_proba(X)
    more = model.set_params(max_features=20_000).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(more, all_of_them)
    many = SharedAtoms(Patch(), 20_000, combine="ridge")
    with pytest.raises(ValueError, match=r"max_features=20000 .* at most 16384 can be combined"):
        model.set_params(dictionary=many).fit(X, y)


@pytest.mark.parametrize("bad", [0, -1, [3], np.nan])
def test_boosting_names_auto_among_the_choices_of_max_features(bad):
    X, y, _ = table(40)
    with pytest.raises(ValueError, match=r'max_features must be "auto".*got'):
        MorfBoostingClassifier(max_features=bad, max_iter=2).fit(X, y)


@pytest.mark.parametrize("bad", ["yes", None, 1])
def test_every_choice_of_bootstrap_is_named(bad):
    X, y, _ = table(40)
    with pytest.raises(ValueError, match='bootstrap must be True, False or "auto", got'):
        MorfClassifier(bootstrap=bad).fit(X, y)
