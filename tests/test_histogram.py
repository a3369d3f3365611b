"""The histogram search of large nodes, which is the default, against that of `oracle.py`.

`test_oracle.py` and `test_boosting.py` draw such problems at random. Here each kind of numbers,
weights and targets has its turn, and each test also says which way of searching it is about.
"""

import numpy as np
import oracle
import pytest
from problems import CLASSIFICATION, REGRESSION, Problem, assert_same_trees
from test_boosting import Problem as BoostingProblem
from test_boosting import assert_same_rounds

from morforest import Axis, Haar, Patch, SparseOblique, Square, Subset

N_ROWS = 260
CRITERIA = [*CLASSIFICATION, *REGRESSION]


def numbers(kind, shape=(3, 4)):
    rng = np.random.default_rng(5)
    size = (N_ROWS, *shape)
    match kind:
        case "bytes":
            return rng.integers(0, 256, size).astype(np.uint8)
        case "few values":  # one per bin, and many ties
            return rng.integers(-9, 10, size)
        case "64 values":  # one per bin for single features; sums have more
            return rng.integers(0, 64, size)
        case "65 values":
            return rng.integers(0, 65, size)
        case "int32":
            return rng.integers(-(2**21), 2**21, size)
        case "int64":
            return rng.integers(-(2**50), 2**50, size)
        case "fractions":  # int32 cells that are not whole numbers of the user's
            return rng.standard_normal(size).round(4)
        case "float64":  # orders of magnitude between features
            return rng.standard_normal(size) * 1e4 ** np.arange(12.0).reshape(shape)
        case "tiny":  # 64 / (max - min) overflows
            return rng.integers(0, 1000, size) * 2.0**-1074
        case "heavy tails":
            return np.rint(np.exp(3 * rng.standard_normal(size)) * 50)
    raise ValueError(kind)


def target(X, criterion, classes=4):
    rng = np.random.default_rng(6)
    first = X.reshape(len(X), -1)[:, [0, 3, 7]].astype(float)
    ranks = first.argsort(axis=0).argsort(axis=0).sum(axis=1) + rng.normal(0, 80, len(X))
    quantiles = np.quantile(ranks, np.arange(1, classes) / classes)
    if criterion in CLASSIFICATION:
        return np.searchsorted(quantiles, ranks)
    return np.rint(np.maximum(ranks, 0)) / 8 + 1.0


def problem(X, criterion, dictionary=None, classes=4, weights=None, **parameters):
    parameters = {
        "criterion": criterion,
        "splitter": "histogram",
        "max_features": 6,
        "n_estimators": 2,
        "bootstrap": True,
        "random_state": 2,
        "max_depth": 4,
    } | parameters
    y = target(X, criterion, classes)
    return Problem(X, y, SparseOblique() if dictionary is None else dictionary, parameters, weights)


def ways(expected):
    """How the splits of the oracle's trees were searched: by bins, or sorted for which reason."""
    found = []
    growth = oracle.Growth(
        1, expected.parameters["criterion"], splitter="histogram", int64_cells=expected.int64_cells
    )
    for node in (node for nodes in expected.trees for node in nodes if not node.is_leaf):
        rows = node.rows
        if rows.count <= 64:
            found.append("small")
        elif not oracle.has_bins(rows, growth):
            found.append("no bins")
        else:
            values = oracle.project(rows.cells, node.split.atom)
            bins = oracle.bins_of(values, expected.int64_cells)
            crowded = oracle.is_crowded(values, bins, rows.weights)
            found.append("crowded" if crowded else "bins")
    return found


KINDS = ["bytes", "few values", "64 values", "65 values", "int32", "int64", "fractions", "float64"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_large_nodes_equal_the_oracle(criterion, kind):
    expected = assert_same_trees(problem(numbers(kind), criterion))
    assert expected.int64_cells == (kind == "int64")
    assert expected.format.real == (kind == "float64")
    found = ways(expected)
    assert found.count("no bins" if criterion == "absolute_error" else "bins") >= 4


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_bins_miss_thresholds(criterion):
    # Otherwise the tests above would not tell bins from the exact search.
    trees = {
        splitter: assert_same_trees(problem(numbers("int32"), criterion, splitter=splitter)).trees
        for splitter in ("exact", "histogram")
    }
    roots = {name: [nodes[0].split.threshold for nodes in some] for name, some in trees.items()}
    assert roots["exact"] != roots["histogram"]


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("kind", ["whole", "fractional", "class"])
def test_weights_in_large_nodes_equal_the_oracle(criterion, kind):
    rng = np.random.default_rng(8)
    parameters, weights = {"bootstrap": kind == "class"}, None
    if kind == "whole":
        weights = rng.integers(0, 4, N_ROWS).astype(float)
    elif kind == "fractional":
        weights = rng.integers(1, 9, N_ROWS) / 7
    elif criterion in CLASSIFICATION:
        parameters["class_weight"] = {0: 0.3, 2: 5.0}
    expected = assert_same_trees(
        problem(numbers("int32"), criterion, weights=weights, **parameters)
    )
    assert {"bins", "no bins"} & set(ways(expected))


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
@pytest.mark.parametrize("limit", [{"min_samples_leaf": 30}, {"min_weight_fraction_leaf": 0.2}])
def test_limits_of_sides_between_bins_equal_the_oracle(criterion, limit):
    expected = assert_same_trees(problem(numbers("int32"), criterion, **limit))
    assert "bins" in ways(expected)


def test_a_count_of_two_is_a_row_twice():
    # 40 rows and 80 counts make a large node; 64 counts do not.
    X = numbers("int32")[:40]
    for repeats, expected in ((2.0, "bins"), (1.0, "small")):
        weights = np.full(40, repeats)
        found = ways(
            assert_same_trees(
                problem(X, "gini", weights=weights, bootstrap=False, classes=2, max_depth=1)
            )
        )
        assert set(found) == {expected}


# --- the two ways out ------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
@pytest.mark.parametrize("kind", ["heavy tails", "tails of floats", "tails of int64"])
def test_heavy_tails_are_searched_exactly(criterion, kind):
    X = numbers("heavy tails")
    if kind == "tails of floats":
        X = X * 10.0 ** np.arange(0, 36, 3).reshape(X.shape[1:])
    elif kind == "tails of int64":
        X = X.astype(np.int64) * 2**24 + 1
    expected = assert_same_trees(problem(X, criterion))
    assert ways(expected).count("crowded") >= 4


def columns_of_hundreds(share, usual):
    """Columns of 64 bins of 100 values, in which a share of the rows has one of the usual values.

    The others have 20 and 80 within a bin.
    """
    rng = np.random.default_rng(3)
    X = rng.integers(0, 64, (N_ROWS, 8)) * 100 + rng.choice([20, 80], (N_ROWS, 8))
    rare = rng.random(X.shape) < share
    X[rare] = rng.choice(usual, rare.sum())
    X[:4] = [[0], [6399], [3220], [3280]]
    return X


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
@pytest.mark.parametrize(("value", "way"), [(3210, "bins"), (3290, "bins"), (3250, "crowded")])
def test_a_heavy_bin_of_one_value_is_sorted_only_if_others_lie_on_both_sides(criterion, value, way):
    X = columns_of_hundreds(0.6, [value])
    expected = assert_same_trees(problem(X, criterion, Axis(), max_depth=1, bootstrap=False))
    assert set(ways(expected)) == {way}


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
@pytest.mark.parametrize(("together", "way"), [(60, "bins"), (30, "crowded")])
def test_the_heaviest_bin_alone_decides(criterion, together, way):
    # Nine in ten rows lie in two bins: in one all have the same value, in the other fifty.
    X = columns_of_hundreds(0.9, [3210] * together + list(range(5125, 5175)))
    expected = assert_same_trees(problem(X, criterion, Axis(), max_depth=1, bootstrap=False))
    assert set(ways(expected)) == {way}


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_many_classes_are_searched_exactly(criterion):
    # 64 classes > 16 counts: 70 classes need 280 counts, and 30 need 120.
    X = numbers("int32")
    found = {}
    for classes in (30, 70):
        expected = assert_same_trees(problem(X, criterion, classes=classes, bootstrap=False))
        found[classes] = set(ways(expected))
    assert found[70] <= {"no bins", "small"}
    assert {"bins", "no bins"} <= found[30]


@pytest.mark.parametrize("counts", [65, 64])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_size_from_which_nodes_have_bins(criterion, counts):
    X = numbers("int32")[:counts]
    expected = assert_same_trees(problem(X, criterion, bootstrap=False, max_depth=1))
    large = "no bins" if criterion == "absolute_error" else "bins"
    assert set(ways(expected)) == {"small" if counts == 64 else large}


# --- other atoms, other tables ---------------------------------------------------------------


@pytest.mark.parametrize(
    "dictionary",
    [
        Patch(1, 3),
        Patch(1, 2, views=Square()),
        Haar(1, 1, pool=["max", "proportion"]),
        Subset(Patch(1, 3), 20),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["bytes", "fractions", "int64"])
def test_other_atoms_equal_the_oracle(dictionary, kind):
    X = numbers("bytes" if kind == "bytes" else kind)
    if kind == "int64":
        X = X // 2**20  # so that squares fit
    expected = assert_same_trees(problem(X, "gini", dictionary))
    assert "bins" in ways(expected)


def test_ranges_near_the_smallest_float_equal_the_oracle():
    X = numbers("tiny")
    X[0, 0, 0] = 1.0  # float64 cells
    expected = assert_same_trees(problem(X, "gini", Axis(), bootstrap=False))
    assert expected.format.real
    assert "bins" in ways(expected)


# --- boosting --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["few values", "int32", "int64", "float64", "heavy tails"])
@pytest.mark.parametrize("classes", [0, 2, 3, 9, 20])
def test_boosted_trees_equal_the_oracle(kind, classes):
    # With 20 classes a bin holds 24 numbers, so that nodes of fewer than 96 counts are sorted.
    X = numbers(kind)[:150]
    parameters = {
        "splitter": "histogram",
        "max_features": 4,
        "max_iter": 2,
        "max_depth": 3,
        "min_samples_leaf": 5,
        "subsample": 0.8,
        "l2_regularization": 1.0,
        "learning_rate": 0.3,
        "random_state": 0,
    }
    if classes:
        y = target(X, "gini", classes)
    else:
        y = target(X, "squared_error")
        parameters["loss"] = "squared_error"
    assert_same_rounds(BoostingProblem(X, y, SparseOblique(), parameters, None))
