"""Subsets: a few atoms of a dictionary for a tree, or for some rounds of boosting."""

import numpy as np
import pytest
from common import assert_same_forest
from golden_cases import digits, images
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from test_boosting import Problem, assert_same_rounds

from morforest import (
    Atoms,
    Axis,
    Haar,
    ImageCopies,
    Mixture,
    MorfBoostingClassifier,
    MorfClassifier,
    MorfRegressor,
    Pair,
    Patch,
    SharedAtoms,
    Subset,
    _parallel,
    _rounds,
)


def fitted(dictionary, X, y, **parameters):
    return MorfClassifier(dictionary, n_estimators=6, random_state=0, **parameters).fit(X, y)


def test_a_tree_has_no_more_atoms_than_its_subset():
    X, y = digits(300)
    atoms = fitted(Subset(Patch(1, 4), 7), X, y)._forest.matrix()
    for begin, end in ((0, 1), (1, 2), (5, 6)):
        forest = fitted(Subset(Patch(1, 4), 7), X, y)._forest
        nodes = slice(*forest.tree_begin[[begin, end]].astype(int))
        splits = atoms[nodes].toarray()[forest.next[nodes] >= 0]
        assert 1 < len(np.unique(splits, axis=0)) <= 7 < len(splits)
    assert len(np.unique(atoms.toarray(), axis=0)) > 8  # trees have their own


def test_a_subset_of_everything_sees_everything():
    X, y = digits(300)
    forest = fitted(Subset(Axis(), 1000), X, y, max_features=None, bootstrap=False)
    plain = fitted(Axis(), X, y, max_features=None, bootstrap=False)
    np.testing.assert_array_equal(forest.predict(X), plain.predict(X))
    whole = fitted(Subset(Atoms(np.eye(64)), 1000), X.reshape(-1, 64), y, max_features=None)
    assert whole.score(X.reshape(-1, 64), y) > 0.95


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_jobs_and_the_order_of_rows_do_not_matter(n_jobs):
    X, y = digits(300)
    dictionary = Subset(Mixture([Patch(1, 4), Haar(1, 2, pool="proportion")]), 40)
    order = np.random.default_rng(0).permutation(len(X))
    model = fitted(dictionary, X, y)
    assert_same_forest(model, fitted(dictionary, X[order], y[order], n_jobs=n_jobs))
    boost = MorfBoostingClassifier(dictionary, max_iter=12, random_state=0).fit(X, y)
    again = clone(boost).set_params(n_jobs=n_jobs).fit(X[order], y[order])
    assert_same_forest(boost, again)


PAIRS = Mixture([Axis(), Pair(1, 2)], [1, 2])


@pytest.mark.parametrize("dictionary", [Patch(1, 2), PAIRS], ids=str)
def test_atoms_of_boosting_change_after_five_rounds(dictionary):
    X, y = images(40)
    parameters = {
        "max_iter": 7,
        "max_depth": 2,
        "max_features": 4,
        "subsample": 0.7,
        "splitter": "exact",
        "min_samples_leaf": 2,
        "l2_regularization": 0.5,
        "learning_rate": 0.3,
        "random_state": 3,
    }
    assert_same_rounds(Problem(X, y, Subset(dictionary, 9), parameters, None))


def test_copies_and_early_stopping_go_with_subsets():
    X, y = digits(300)
    model = MorfBoostingClassifier(
        Subset(Patch(1, 4), 50),
        max_iter=40,
        augment=ImageCopies(rotation=2),
        early_stopping=True,
        n_iter_no_change=5,
        random_state=0,
    ).fit(X, y)
    assert model.score(X, y) > 0.8
    assert len(model.validation_score_) >= model.n_iter_


def test_warm_starts_go_on_as_if_they_had_not_stopped():
    X, y = digits(200)
    whole = MorfBoostingClassifier(Subset(Patch(1, 3), 40), max_iter=13, random_state=0)
    parts = clone(whole).set_params(max_iter=7, warm_start=True).fit(X, y)
    assert_same_forest(whole.fit(X, y), parts.set_params(max_iter=13).fit(X, y))


@pytest.mark.parametrize("augment", [None, ImageCopies()])
def test_threads_compute_the_same_columns(augment, monkeypatch):
    X, y = digits(300)
    model = MorfBoostingClassifier(
        Subset(Patch(1, 4), 40), max_iter=12, augment=augment, random_state=0, n_jobs=1
    )
    alone = clone(model).fit(X, y)
    monkeypatch.setattr(_rounds, "ROWS_WORTH_THREADS", 1)
    monkeypatch.setattr(_rounds, "ATOMS_PER_CALL", 7)
    pieces = [slice(i, i + 21) for i in range(0, 300, 21)]  # tiles of sixteen rows are shared
    monkeypatch.setattr(
        _parallel, "blocks", lambda shape: [slice(p.start, min(p.stop, shape[0])) for p in pieces]
    )
    assert_same_forest(alone, model.set_params(n_jobs=3).fit(X, y))


def test_parameters_are_searched_by_name():
    X, y = digits(120)
    search = GridSearchCV(
        MorfRegressor(Subset(Patch()), n_estimators=3, random_state=0),
        {"dictionary__n_atoms": [5, 50], "dictionary__dictionary__max_size": [2, 3]},
        cv=2,
    ).fit(X, y)
    assert search.best_estimator_.dictionary.n_atoms in (5, 50)


@pytest.mark.parametrize("n_atoms", [0, -1, 2.5, "many", True, 10**9])
def test_bad_numbers_of_atoms_are_refused(n_atoms):
    X, y = digits(40)
    with pytest.raises(ValueError, match="n_atoms must be an integer from 1"):
        fitted(Subset(Patch(), n_atoms), X, y)


def test_subsets_stand_outermost():
    X, y = digits(40)
    with pytest.raises(ValueError, match=r"write Subset\(Mixture\("):
        fitted(Mixture([Subset(Patch()), Axis()]), X, y)
    with pytest.raises(ValueError, match=r"write SharedAtoms\(Mixture\("):
        fitted(Mixture([SharedAtoms(Patch()), Axis()]), X, y)
    for outer in (Subset, SharedAtoms):
        for inner in (Subset, SharedAtoms):
            with pytest.raises(ValueError, match=f"must not be a {inner.__name__} itself: write "):
                fitted(outer(inner(Patch())), X, y)
    with pytest.raises(TypeError, match="dictionary must be a dictionary such as"):
        fitted(Subset("patch"), X, y)
