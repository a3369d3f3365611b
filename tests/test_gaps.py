"""Missing values: the core grows and walks the trees of the oracle."""

import numpy as np
import pytest
import test_boosting
from common import GAP_KINDS, missing_codes, with_gaps
from hypothesis import given, reject
from hypothesis import strategies as st
from problems import (
    CLASSIFICATION,
    MANY_ROWS,
    REGRESSION,
    OracleForest,
    assert_same_trees,
    problems,
)
from test_honesty import FEW_ROWS, honest_problems
from test_oracle import EACH_DICTIONARY, clear_problem, examples
from test_pool import nonlinear_dictionaries

from morforest import (
    Atoms,
    Axis,
    Patch,
    SparseOblique,
)

NAN = np.nan
pytestmark = [
    pytest.mark.filterwarnings("ignore:The number of unique classes"),
    pytest.mark.filterwarnings("ignore:X spans many orders of magnitude"),
    pytest.mark.filterwarnings("ignore:.*in the bags of all trees"),
]

# --- the core against the oracle -------------------------------------------------------------


@st.composite
def gappy(draw, base):
    """A problem of which some values are missing."""
    problem = draw(base)
    kind = draw(st.sampled_from([*GAP_KINDS, "random"]))
    rate = draw(st.sampled_from([0.05, 0.2, 0.6]))
    problem.X = with_gaps(problem.X, kind, rate, draw(st.integers(0, 2**16)))
    if not np.isnan(problem.X).any():
        problem.X.flat[draw(st.integers(0, problem.X.size - 1))] = np.nan
    return problem


def assert_same_or_inexact(problem, check=assert_same_trees):
    try:
        check(problem)
    except ValueError as error:  # squares of nearly equal floats
        if "need exact integers" not in str(error):
            raise
        reject()


@examples(300)
@given(gappy(problems(CLASSIFICATION)))
def test_classification_trees_equal_the_oracle(problem):
    assert_same_trees(problem)


@examples(300)
@given(gappy(problems(REGRESSION)))
def test_regression_trees_equal_the_oracle(problem):
    assert_same_trees(problem)


@examples(100)
@given(gappy(problems(CLASSIFICATION + REGRESSION, rows=MANY_ROWS)))
def test_large_nodes_equal_the_oracle(problem):
    problem.parameters |= {"max_depth": 2, "n_estimators": 1}
    assert_same_trees(problem)


@examples(250)
@given(gappy(problems(CLASSIFICATION + REGRESSION, derived=True)))
def test_derived_views_equal_the_oracle(problem):
    assert_same_or_inexact(problem)


@examples(300)
@given(gappy(problems(CLASSIFICATION + REGRESSION, of=nonlinear_dictionaries, exact=True)))
def test_nonlinear_atoms_equal_the_oracle(problem):
    assert_same_or_inexact(problem)


@examples(150)
@given(gappy(honest_problems(FEW_ROWS)))
def test_honest_trees_equal_the_oracle(problem):
    assert_same_trees(problem)


@examples(150)
@given(gappy(test_boosting.problems(st.integers(2, 30))))
def test_rounds_equal_the_oracle(problem):
    test_boosting.assert_same_rounds(problem)


@examples(30)
@given(gappy(test_boosting.problems(st.integers(65, 120))))
def test_rounds_of_many_rows_equal_the_oracle(problem):
    problem.parameters["max_iter"] = 2
    test_boosting.assert_same_rounds(problem)


def gappy_problem(dictionary, kind="mixed", rate=0.5, seed=0, **parameters):
    problem = clear_problem(dictionary, **parameters)
    problem.X = with_gaps(problem.X / 2, kind, rate, seed)
    return problem


@pytest.mark.parametrize("kind", GAP_KINDS)
@pytest.mark.parametrize("name", [name for name in EACH_DICTIONARY if name != "rocket"])
def test_each_dictionary_equals_the_oracle(name, kind):
    problem = gappy_problem(EACH_DICTIONARY[name], kind)
    forest = assert_same_trees(problem)
    assert name == "atoms" or any(len(nodes) > 2 for nodes in forest.trees)


@pytest.mark.parametrize("splitter", ["exact", "histogram"])
@pytest.mark.parametrize("criterion", CLASSIFICATION + REGRESSION)
@pytest.mark.parametrize("limits", [{}, {"max_leaf_nodes": 9}, {"honest": "oob"}], ids=str)
def test_each_criterion_equals_the_oracle(criterion, splitter, limits):
    limits = {"splitter": splitter, "n_rows": 90, **limits}
    problem = gappy_problem(EACH_DICTIONARY["mixture"], criterion=criterion, **limits)
    forest = assert_same_trees(problem)
    codes = {node.split.code for nodes in forest.trees for node in nodes if not node.is_leaf}
    assert len(codes) > 1


AXES = [((24,), None), ((1, 24), None), ((1, 24), 1), ((12, 2), -1), ((2, 12), 1), ((2, 12), None)]
AXES += [((2, 3, 4), None), ((2, 3, 4), 1), ((2, 3, 4), -1)]


@pytest.mark.parametrize(("shape", "channel_axis"), AXES, ids=str)
@pytest.mark.parametrize("name", ["patch", "pooled"])
def test_axes_of_every_kind_equal_the_oracle(shape, channel_axis, name):
    dictionary = Patch()
    if name == "pooled":
        sizes = tuple(min(2, length) for length in shape)
        dictionary = Patch(1, sizes, pool=["max", "mean", "proportion"])
    problem = clear_problem(dictionary, n_rows=50)
    X = np.random.default_rng(3).normal(size=(50, *shape))
    problem.X, problem.shape = with_gaps(X, "mixed", 0.5), shape
    problem.parameters["channel_axis"] = channel_axis
    assert_same_trees(problem)


@pytest.mark.parametrize(
    ("dictionary", "real"),
    [
        (Axis(), False),  # integers stay what they are
        (SparseOblique(), False),
        (Atoms(np.eye(12) - 0.7 * np.eye(12)[::-1]), True),
        (Patch(), False),
    ],
    ids=["axis", "sparse", "fractions", "patch"],
)
def test_integers_with_gaps_equal_the_oracle(dictionary, real):
    problem = clear_problem(dictionary)
    problem.X = with_gaps(problem.X, "random", 0.3)
    forest = assert_same_trees(problem)
    assert forest.format.real == real
    # Along an ordered axis, values between integers are fractions.
    assert forest.format.integers == (not real and not isinstance(dictionary, Patch))


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(("trained", "criterion"), [("complete", "gini"), ("gaps", "poisson")])
@pytest.mark.parametrize("name", [name for name in EACH_DICTIONARY if name != "rocket"])
def test_missing_values_at_prediction_equal_the_oracle(name, trained, whole, criterion):
    problem = clear_problem(EACH_DICTIONARY[name], criterion, n_rows=40, n_estimators=3)
    problem.X = problem.X if whole else problem.X / 3
    if trained == "gaps":
        problem.X = with_gaps(problem.X, "random", 0.2)
    model = problem.fit()
    expected = OracleForest(problem, model)
    assert missing_codes(model._forest).any() == (trained == "gaps")
    rng = np.random.default_rng(9)
    for kind in GAP_KINDS:
        X = with_gaps(rng.integers(0, 9, (30, 4, 3)) / (1 if whole else 3), kind, 0.5)
        if problem.classifies:
            found = model.predict_proba(X)
            np.testing.assert_allclose(found, expected.posterior(X), rtol=0, atol=1e-15)
        else:
            np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-12)
