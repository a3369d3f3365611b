"""Names of columns in what is read from a fitted model."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from morforest import (
    AtomFeatures,
    AtomRidgeRegressor,
    Atoms,
    Axis,
    Difference,
    MorfBoostingClassifier,
    MorfBoostingRegressor,
    MorfClassifier,
    MorfRegressor,
    MorfTreeClassifier,
    MorfTreeRegressor,
    Patch,
    Raw,
    SharedAtoms,
    SparseOblique,
    Variance,
)

COLUMNS = ["age", "children", "income", "rent"]
ESTIMATORS = [
    MorfClassifier(n_estimators=3, random_state=0),
    MorfRegressor(n_estimators=3, random_state=0),
    MorfTreeClassifier(random_state=0),
    MorfTreeRegressor(random_state=0),
    MorfBoostingClassifier(max_iter=3, random_state=0),
    MorfBoostingRegressor(max_iter=3, random_state=0),
]


def table():
    X = np.random.default_rng(0).normal(size=(80, 4))
    return pd.DataFrame(X, columns=COLUMNS), (X[:, 2] > X[:, 3]).astype(int)


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_splits_name_the_columns_of_their_atoms(model, library):
    X, y = table()
    if library == "polars":
        X = pl.DataFrame(X.to_dict("list"))
    splits = model.fit(X, y).splits_
    for tree in (*splits, splits[-1], splits[:1][0]):
        np.testing.assert_array_equal(tree.feature_names, COLUMNS)
        assert len(tree.names) == len(tree)
        for name, atom in zip(tree.names, tree.atoms.toarray(), strict=True):
            used = {word for word in name.split() if word in COLUMNS or word[1:] in COLUMNS}
            assert {word.lstrip("-") for word in used} == {
                column for column, weight in zip(COLUMNS, atom, strict=True) if weight
            }


def test_atoms_are_written_as_sums():
    X, y = table()
    matrix = np.array([[1, -1, 0, 0], [0, 0, -1, 2.5], [0, 0, 0, 0.5]])
    model = MorfTreeClassifier(Atoms(matrix), max_features=None, random_state=0).fit(X, y)
    names = set(model.splits_[0].names)
    assert names <= {"age - children", "-income + 2.5 rent", "0.5 rent"}
    assert "-income + 2.5 rent" in names
    assert set(model.fit(X.to_numpy(), y).splits_[0].names) <= {"x0 - x1", "-x2 + 2.5 x3", "0.5 x3"}
    assert model.splits_[0].feature_names is None


@pytest.mark.parametrize(
    ("dictionary", "start"),
    [
        (Patch(2, 3, pool="max"), ("max(",)),
        (Variance(2, 3), ("variance(",)),
        (Patch(1, 2, views=Difference()), ("difference along axis 0(",)),
        (SharedAtoms(SparseOblique(), 20), ("-", *COLUMNS)),
        (SharedAtoms(Patch(1, 2, pool=["max", "min"]), 20, combine="ridge"), ("",)),
        (Patch(1, 2, views=[Raw(), Difference()]), (*COLUMNS, "difference along axis 0(")),
    ],
    ids=repr,
)
def test_views_and_operations_stand_before_names(dictionary, start):
    X, y = table()
    model = MorfClassifier(dictionary, n_estimators=3, random_state=0).fit(X, y)
    names = np.concatenate([tree.names for tree in model.splits_])
    assert all(name.startswith(start) for name in names)
    assert any(column in name for name in names for column in COLUMNS)


def test_long_sums_are_cut_short():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 20))).add_prefix("t")
    y = (X.sum(axis=1) > 0).astype(int)
    model = MorfTreeClassifier(Patch(20, 20, boundary="inside"), random_state=0).fit(X, y)
    assert model.splits_[0].names[0] == "sum of 20 features from t0 to t19"


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
def test_importances_and_attributions_follow_the_names(model):
    X, _ = table()
    y = (X["income"] > 0).astype(int)
    model.fit(X, y)
    names = model.feature_names_in_
    assert pd.Series(model.feature_importances_, names).idxmax() == "income"
    assert pd.Series(model.split_shares_, names).index.tolist() == COLUMNS
    found = model.attributions(X)
    values, baseline = found
    assert found.values is values
    assert found.baseline is baseline
    np.testing.assert_array_equal(found.feature_names, COLUMNS)
    assert pickle.loads(pickle.dumps(found)).feature_names.tolist() == COLUMNS
    assert model.fit(X.to_numpy(), y).attributions(X.to_numpy()).feature_names is None


def test_features_of_atoms_name_their_columns():
    X, _ = table()
    X = X.rename(columns={"age": "how old"})
    model = AtomFeatures(SparseOblique(), 10, random_state=0).fit(X)
    names = model.get_feature_names_out()
    matrix = model._atoms.matrix().toarray()
    singles = np.flatnonzero((matrix != 0).sum(axis=1) == 1)
    for atom in singles:
        column = X.columns[np.flatnonzero(matrix[atom])[0]]
        assert names[atom].removeprefix("-").split(" (")[0] == column
    assert model.set_output(transform="pandas").transform(X).columns.tolist() == names.tolist()
    pooled = AtomFeatures(Patch(1, 2, pool="max"), 10, random_state=0).fit(X)
    assert all("max" in name for name in pooled.get_feature_names_out())
    ridge = AtomRidgeRegressor(Axis(), 8, random_state=0).fit(X, np.arange(80.0))
    weights = pd.Series(ridge.coef_, ridge.features_.get_feature_names_out())
    assert {name.split(" (")[0] for name in weights.index} <= set(X.columns)
