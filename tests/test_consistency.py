"""Forests that meet the consistency theorem, and what is said of those that do not."""

import numpy as np
import pytest
from common import classifier, regressor
from sklearn.exceptions import NotFittedError

from morforest import (
    Axis,
    ConsistencyReport,
    Haar,
    ImageCopies,
    Mixture,
    MorfBoostingClassifier,
    MorfClassifier,
    MorfRegressor,
    Patch,
    SharedAtoms,
    SparseOblique,
    Subset,
    check_consistency_conditions,
    consistent,
)


def images(number=300):
    X = np.random.default_rng(0).random((number, 4, 4))
    return X, (X[:, 0, 0] > X[:, 1, 1]).astype(int)


def failing(model):
    X, y = images()
    report = check_consistency_conditions(model.fit(X, y))
    return [condition.name for condition in report if condition.holds is False]


@pytest.mark.parametrize("dictionary", [Patch(2, 3), SparseOblique(), Axis(), "patch"], ids=repr)
@pytest.mark.parametrize("make", [classifier, regressor])
def test_consistent_forests_meet_all_conditions(make, dictionary):
    model = consistent(make(dictionary))
    assert failing(model) == []
    assert check_consistency_conditions(model).holds


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"honest": False}, "honest"),
        ({"min_child_fraction": 0.0}, "balanced"),
        ({"random_split_rate": 0.0}, "random splits"),
        ({"bootstrap": True}, "subsamples"),
        ({"max_samples": 0.5}, "subsamples"),
        ({"max_samples": "n**1.0"}, "subsamples"),
        ({"max_samples": lambda n: n / 2}, "subsamples"),
        ({"max_samples": lambda n: 50}, "subsamples"),
        ({"augment": ImageCopies(copies=1)}, "symmetric"),
    ],
)
def test_each_condition_can_fail_alone(parameters, name):
    model = consistent(classifier(Patch(2, 3))).set_params(**parameters)
    assert failing(model) == [name]
    assert not check_consistency_conditions(model).holds


def test_a_callable_may_draw_a_vanishing_share():
    model = consistent(classifier(Axis())).set_params(max_samples=lambda n: 3 * n**0.5)
    assert failing(model) == []


def test_patches_without_single_features_fail():
    model = consistent(classifier(Patch(2, 3))).set_params(
        dictionary=Patch(2, 3, boundary="inside")
    )
    assert failing(model) == ["single features", "random splits"]
    # At the border, patches are cut, but only there are they single features.
    assert failing(model.set_params(dictionary=Patch(2, 3))) == ["single features", "random splits"]
    assert failing(model.set_params(dictionary=Patch(1, 3))) == []


def test_nonlinear_and_shared_atoms_fail():
    pooled = consistent(classifier(Haar(1, 1, pool="max")))
    assert failing(pooled) == ["linear atoms"]
    few = consistent(classifier(Axis())).set_params(dictionary=Subset(Axis(), 5))
    assert "single features" in failing(few)


def test_a_dictionary_chosen_by_targets_is_not_honest():
    model = classifier("auto", honest=True)
    assert "honest" in failing(model)


def test_the_numbers_of_a_report():
    X, y = images(1000)
    model = consistent(MorfRegressor(Axis(), n_estimators=20, random_state=0), power=0.8)
    report = check_consistency_conditions(model.set_params(honest_prior="empirical").fit(X, y))
    found = {condition.name: condition.found for condition in report}
    assert found["subsamples"].startswith("251 of 1000 samples per tree, a share of 0.251")
    assert found["single features"] == "1 of the candidates and 1 of the splits"
    assert "at least 0.013" in found["random splits"]  # 0.2 over 16 features
    least = float(found["balanced"].split()[5].rstrip(";"))
    assert 0.1 <= least < 0.2
    assert isinstance(report, ConsistencyReport)
    assert repr(report).count("\n") == len(report) - 1
    assert "density" in repr(report)


def test_other_parameters_stay_and_the_given_forest_is_not_changed():
    given = MorfClassifier(Patch(2, 3), n_estimators=7, criterion="entropy", random_state=3)
    before = repr(given.get_params())
    made = consistent(given, power=0.6, single_features=0.3)
    assert (made.n_estimators, made.criterion, made.random_state) == (7, "entropy", 3)
    assert made.max_samples == "n**0.6"
    assert made.dictionary.weights == [0.7, 0.3]
    assert repr(given.get_params()) == before
    enough = Mixture([Patch(2, 3), Axis()], weights=[1, 1])
    assert repr(consistent(MorfClassifier(enough)).dictionary) == repr(enough)
    assert isinstance(consistent(given, single_features=1).dictionary, Axis)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((MorfBoostingClassifier(),), TypeError, "estimator must be a MorfClassifier or"),
        ((MorfClassifier,), TypeError, "estimator must be"),
        ((MorfClassifier(),), ValueError, "dictionary=None depends on the samples"),
        ((MorfClassifier("image"),), ValueError, "dictionary='image' depends on the samples"),
        (
            (MorfClassifier(Subset(Patch())),),
            ValueError,
            "draws atoms once for many.*Patch()",
        ),
        ((MorfClassifier(SharedAtoms(Patch(), 9)),), ValueError, "draws atoms once"),
    ],
)
def test_what_cannot_be_made_consistent(arguments, error, message):
    with pytest.raises(error, match=message):
        consistent(*arguments)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"power": 1.0}, "power must be a number between 0 and 1, got 1.0"),
        ({"power": "n"}, "power must be"),
        ({"single_features": 0}, r"single_features must be a number in \(0, 1.0\], got 0"),
        ({"random_split_rate": 2}, "random_split_rate must be"),
        ({"min_child_fraction": 0.7}, r"min_child_fraction must be a number in \(0, 0.5\]"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        consistent(MorfClassifier(Axis()), **parameters)


def test_only_fitted_forests_are_checked():
    with pytest.raises(NotFittedError):
        check_consistency_conditions(MorfClassifier(Axis()))
    with pytest.raises(TypeError, match="forest must be a MorfClassifier"):
        check_consistency_conditions("forest")


def test_all_trees_count_and_not_what_parameters_say_later():
    X, y = images()
    plain = classifier(Axis(), warm_start=True, n_estimators=3)
    proper = consistent(plain).get_params(deep=False)
    model = plain.fit(X, y).set_params(**(proper | {"n_estimators": 4}))
    report = check_consistency_conditions(model)
    assert {c.name for c in report if c.holds is False} >= {"honest", "balanced", "random splits"}
    report = check_consistency_conditions(model.fit(X, y))
    assert {c.name for c in report if c.holds is False} >= {"honest", "balanced", "random splits"}
