"""The oracle of missing values against examples by hand, and against itself."""

import numpy as np
import oracle
import oracle_atoms
import oracle_gaps as gaps
import pytest
from common import GAP_KINDS, with_gaps
from oracle_columns import has_value, shared
from oracle_nonlinear import PooledAtom, VarianceAtom
from problems import CLASSIFICATION, REGRESSION, as_oracle, cells_of
from test_oracle import EACH_DICTIONARY

from morforest import (
    Axis,
    Difference,
    Haar,
    Kernel,
    Mixture,
    Pair,
    Patch,
    SharedAtoms,
    SparseOblique,
    Subset,
    Variance,
)

NAN = np.nan

# --- fill and marks --------------------------------------------------------------------------

FILLS = {
    "a table": ([], [1, NAN, 3], [1, 0, 3], [0, 2, 0]),
    "a series": ([0], [NAN, 1, NAN, NAN, 4, NAN], [1, 1, 2, 3, 4, 4], [2, 0, 1, 1, 0, 2]),
    "nothing": ([0], [NAN, NAN], [0, 0], [2, 2]),
    "channels of one series": (
        [1],
        [[1, NAN, 3, NAN], [NAN, 5, NAN, NAN], [NAN, NAN, NAN, NAN]],
        [[1, 2, 3, 3], [5, 5, 5, 5], [0, 0, 0, 0]],
        [[0, 1, 0, 2], [1, 0, 1, 2], [2, 2, 2, 2]],
    ),
    "channels last": ([0], [[NAN, 2], [3, NAN], [5, 6]], [[3, 2], [3, 4], [5, 6]], None),
    "an image": (
        [0, 1],
        [[NAN, 2, NAN, 6], [NAN] * 4, [10, NAN, NAN, NAN]],
        [[2, 2, 4, 6], [6, 6, 7, 8], [10, 10, 10, 10]],
        [[1, 0, 1, 0], [1, 1, 1, 1], [0, 1, 1, 1]],
    ),
    "an image of nothing": ([0, 1], [[NAN] * 2] * 2, [[0, 0]] * 2, [[2, 2]] * 2),
    # Lines along the last axis come first, and what they fill counts as known to the others.
    "an image, later": ([0, 1], [[1, NAN], [NAN, 9]], [[1, 1], [9, 9]], [[0, 1], [1, 0]]),
}


@pytest.mark.parametrize("name", FILLS)
def test_values_are_filled_in_by_hand(name):
    ordered, sample, expected, marks = FILLS[name]
    values, found = gaps.fill(np.array([sample], dtype=np.float32), ordered)
    assert values.dtype == np.float64
    np.testing.assert_array_equal(values[0], expected)
    if marks is not None:
        np.testing.assert_array_equal(found[0], marks)


def test_deviations_fade_by_hand():
    course = gaps.Course(np.array([10.0, 20, 30, 40, 50, 60]), {0: 0.5})
    X = np.array([[NAN, 24, NAN, 44, NAN, NAN], [NAN] * 6])
    values, marks = gaps.fill(X, [0], course)
    np.testing.assert_allclose(values, [[12, 24, 33.2, 44, 52, 61], course.mean])
    assert marks.tolist() == [[1, 0, 1, 0, 1, 1], [2] * 6]


def test_a_course_by_hand():
    X = np.array([[1.0, 3, 5], [3, 3, 1], [2, NAN, 3]])
    found = gaps.usual_course(X, np.ones(3), [0])
    # Deviations are (-1, 0, 2) and (1, 0, -2) but for a little of the middle one, so that the
    # gap is filled with what its neighbours say: nothing much.
    np.testing.assert_allclose(found.mean, [2, 3, 3], atol=0.2)
    twice = gaps.usual_course(np.concatenate([X, X[:1]]), np.ones(4), [0])
    again = gaps.usual_course(X, np.array([2.0, 1, 1]), [0])
    np.testing.assert_array_equal(twice.mean, again.mean)
    assert twice.correlation == again.correlation
    early = np.array([[1.0, 2, NAN, NAN], [1, 2, 3, NAN]])  # which only end
    assert gaps.usual_course(early, np.ones(2), [0]) is None
    assert gaps.usual_course(np.nan_to_num(X), np.ones(3), [0]) is None
    assert gaps.usual_course(X, np.ones(3), []) is None


def test_values_between_are_rounded_as_written():
    a, b = 0.1, 0.7
    line = gaps.fill(np.array([[a, NAN, NAN, b]]), [0])[0][0]
    assert line.tolist() == [a, a + (b - a) * (1 / 3), a + (b - a) * (2 / 3), b]


def test_marks_of_views_by_hand():
    marks = np.array([[[0, 2, 0], [1, 0, 0]]], dtype=np.uint8)
    expected = {
        ("raw",): marks[0],
        ("square",): marks[0],
        ("difference", 1): [[2, 2, 0], [1, 0, 0]],
        ("squared_difference", 0): [[1, 2, 0], [1, 0, 0]],
        # Left and right: 2 0 2 / 1 1 0; above and below, the border counting itself: 1 2 0 twice.
        ("magnitude", 0, 1): [[2, 2, 2], [1, 2, 0]],
        ("orientation", 0, 1, 0.5, 0.5): [[2, 2, 2], [1, 2, 0]],
    }
    for source, view in expected.items():
        np.testing.assert_array_equal(gaps.marks_of_view(marks, *source)[0], view, err_msg=source)


ORDERS = [
    (Axis(), (4, 9), None, []),
    (SparseOblique(), (9,), None, []),
    (Patch(1, 1), (4, 9), None, []),
    (Patch(1, 1, views=Difference()), (4, 9), None, []),
    (Patch(), (4, 9), None, [0, 1]),
    (Patch(), (3, 9), None, [1]),  # the square root of three is one
    (Patch(), (4, 9), 1, [1]),
    (Patch(1, (2, 2)), (4, 9), 1, [1]),
    (Patch(1, 3, contiguous=(False, True)), (4, 9), None, [1]),
    (Patch(1, (1, 3)), (1, 9), None, [1]),
    (Patch(1, 1, pool="max"), (2, 4, 9), None, [1, 2]),
    (Patch(1, 1, pool="max"), (1, 9), None, [1]),
    (Patch(1, 1, pool="max", window=1), (4, 9), None, []),
    (Haar(1, 1, axes=(0,)), (4, 9), None, [0]),
    (Pair(1, 1, reach=(0, 2)), (4, 9), None, [1]),
    (Variance(1, (1, 3)), (4, 9), None, [1]),
    (Kernel([np.array([1, -1])]), (4, 9), None, [1]),
    (Kernel([np.array([1, -1])]), (4, 9), 2, [0]),
    (Mixture([Axis(), Variance(1, (1, 3))], [1, 1]), (4, 9), None, [1]),
    (Subset(Patch(), 5), (4, 9), 1, [1]),
    (SharedAtoms(Patch(1, (2, 1)), 5), (4, 9), None, [0]),
]


@pytest.mark.parametrize(("dictionary", "shape", "channel_axis", "expected"), ORDERS, ids=str)
def test_axes_are_ordered_where_neighbours_matter(dictionary, shape, channel_axis, expected):
    channels = None if channel_axis is None else channel_axis - 1
    found, _ = as_oracle(dictionary, shape, channels)
    assert gaps.ordered_axes(found, shape, channels) == expected


# --- touching and values ---------------------------------------------------------------------


def test_only_weights_that_remain_touch():
    marks = np.array([[0, 1, 2, 0], [0, 0, 1, 0], [2, 0, 0, 0]])
    first, second = np.array([0, 1, 1, 0]), np.array([0, 0, 1, 1])
    assert gaps.touches(first, marks, 1).tolist() == [True, True, False]
    assert gaps.touches(first, marks, 2).tolist() == [True, False, False]
    assert gaps.touches(first - second, marks, 2).tolist() == [False] * 3


def test_variances_touch_their_box():
    box = VarianceAtom(np.array([[0, 1], [0, 1]]), 0, 1)
    marks = np.zeros((3, 8), dtype=int)
    marks[0, 0], marks[1, 3], marks[2, 5] = 2, 1, 2
    assert gaps.touches(box, marks, 1).tolist() == [False, True, True]
    assert gaps.touches(box, marks, 2).tolist() == [False, False, True]


def pooled(op, values, marks, bias=0, rivals=()):
    """The value of the sum of two neighbours at four positions of five cells."""
    atom = PooledAtom(np.array([1, 1, 0, 0, 0]), (5,), op, [4], bias=bias, rivals=rivals)
    cells, marks = np.array([values]), np.array([marks])
    return gaps.pooled_values(atom, cells, marks)[0], gaps.touches(atom, marks, 2)[0]


@pytest.mark.parametrize(
    ("op", "expected"),
    # Responses 3 5 7 9; without the last one, or with the first two alone.
    [("max", (9, 7, 5)), ("min", (3, 3, 3)), ("mean", (24, 20, 16)), ("proportion", (3, 3, 2))],
)
def test_pooled_values_by_hand(op, expected):
    marks = [0, 0, 0, 0, 0], [0, 0, 0, 0, 2], [0, 0, 0, 2, 0]
    assert [pooled(op, [1, 2, 3, 4, 5], m, bias=4)[0] for m in marks] == list(expected)
    # Gaps count as filled, and no position is no value.
    assert pooled(op, [1, 2, 3, 4, 5], [1, 1, 1, 1, 1], bias=4) == (expected[0], False)
    assert pooled(op, [1, 2, 3, 4, 5], [0, 2, 0, 2, 0]) == (0, True)


def test_rivals_must_exist_too():
    rival = np.array([0, 0, 1, 0, 0])  # two cells on
    marks = [0, 0, 0, 0, 2]
    atom = PooledAtom(np.array([1, 0, 0, 0, 0]), (5,), "win", [3], bias=1, rivals=[rival])
    assert gaps.existing(atom, np.array([marks])).tolist() == [[True, True, False]]
    cells = np.array([[9, 1, 2, 3, 0]])
    # 9 > 2, 1 < 3, and the third does not exist: one of two, of three.
    assert gaps.pooled_values(atom, cells, np.array([marks])).tolist() == [round(3 / 2)]


def test_columns_hold_the_mean_where_there_is_no_value():
    cells = np.array([[1, 0], [3, 0], [0, 0], [5, 0]])
    marks = np.array([[0, 2], [0, 2], [2, 2], [1, 2]])
    subset = oracle_atoms.Subset(oracle_atoms.Dictionary([oracle_atoms.axis_atoms(2)]), 2)
    columns = shared(subset, cells, [0, 1, 2, 3], 0, marks).components[0].matrix
    by_feature = {int(np.flatnonzero(c.atom)[0]): c for c in columns}
    assert has_value(by_feature[0].atom, cells, marks).tolist() == [True, True, False, True]
    assert by_feature[0].mean == pytest.approx(3)
    assert by_feature[0].deviation == pytest.approx(np.std([1, 3, 5]))
    values = by_feature[0].values(cells, marks).tolist()
    assert values[1:3] == [0, 0]
    assert values[0] == -values[3] == -round(2 * 1024 / np.std([1, 3, 5]))
    assert (by_feature[1].mean, by_feature[1].deviation) == (0.0, 0.0)
    assert not by_feature[1].values(cells, marks).any()


# --- growth ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([3, 3], (2, 4)),
        ([0, 127], (-1, 128)),
        ([0, 128], (-2, 130)),
        ([-300, 84], (-304, 88)),
        ([0.0, 64.0], (-0.5, 64.5)),
        ([7.0, 7.0], (6.0, 8.0)),
        ([1e300, 1e300], (np.nextafter(1e300, 0), np.nextafter(1e300, np.inf))),
        ([0.0, 5e-324], (-1.0, 1.0)),  # a 128th of it is zero
    ],
)
def test_values_are_sent_beyond_the_others(others, expected):
    assert tuple(gaps.sent_to_the_side(np.array(others), left) for left in (True, False)) == (
        expected
    )


def rows_of(cells, y, marks, weights=None):
    weights = np.ones(len(y), dtype=np.int64) if weights is None else np.array(weights)
    return oracle.Rows(
        np.array(cells), np.array(y), weights, weights, int(max(y)) + 1, np.array(marks)
    )


def axis_tree(cells, y, marks, key=0, n_features=1, weights=None, **limits):
    growth = oracle.Growth(n_candidates=n_features, gaps=True, **limits)
    dictionary = oracle_atoms.Dictionary([oracle_atoms.axis_atoms(n_features)])
    return oracle.grow_tree(rows_of(cells, y, marks, weights), dictionary, growth, key)


def test_a_side_is_learned_by_hand():
    # What is missing is of a class of its own, so left is tried first and is as good as right.
    nodes = axis_tree([[1], [2], [0], [0]], [0, 0, 1, 1], [[0], [0], [2], [2]])
    assert len(nodes) == 3
    split = nodes[0].split
    # A gap's candidate and that of an absent value are the same here, but for the code.
    assert split.code in (gaps.GAP_LEFT, gaps.ABSENT_LEFT)
    assert split.threshold == 0 + 1  # between 1 - 1 and 1, twice
    for cells, marks, leaf in (
        ([0], [2], 1),
        ([5], [0], 2),
        ([-5], [0], 1),
        ([5], [1], 1 if split.code == gaps.GAP_LEFT else 2),
    ):
        assert oracle.leaf_of(nodes, np.array(cells), np.array(marks)) is nodes[leaf]
    # With a class that is on the right, right is better.
    nodes = axis_tree([[1], [2], [0], [0]], [0, 1, 1, 1], [[0], [0], [2], [2]])
    assert nodes[0].split.code in (gaps.GAP_RIGHT, gaps.ABSENT_RIGHT)
    assert nodes[0].split.threshold == 1 + 2


def test_one_in_four_atoms_splits_off_gaps():
    marks = [[0], [0], [1], [1]]
    codes = [
        axis_tree([[1], [3], [2], [2]], [0, 0, 1, 1], marks, key)[0].split.code
        for key in range(400)
    ]
    of_gaps = sum(code == gaps.GAP_LEFT for code in codes)
    assert 70 < of_gaps < 130
    # The others see no absent value, and compare what was filled in.
    assert of_gaps + sum(code in (gaps.ABSENT_LEFT, gaps.ABSENT_RIGHT) for code in codes) == 400


@pytest.mark.parametrize(
    ("weights", "code"), [([3, 1], gaps.ABSENT_LEFT), ([1, 3], gaps.ABSENT_RIGHT), ([2, 2], 3)]
)
def test_splits_that_nothing_touches_send_to_the_heavier_side(weights, code):
    nodes = axis_tree([[1], [2], [9]], [0, 1, 0], [[0], [0], [2]], weights=[*weights, 0])
    assert nodes[0].split.code == code
    # So do those of tables without marks, at prediction.
    nodes[0].split.code = 0
    leaf = oracle.leaf_of(nodes, np.array([0]), np.array([2]))
    assert leaf is nodes[1 if code == gaps.ABSENT_LEFT else 2]


def test_what_all_rows_miss_splits_nothing():
    nodes = axis_tree([[0], [0], [0]], [0, 1, 0], [[2], [2], [2]])
    assert len(nodes) == 1
    nodes = axis_tree([[0, 3], [0, 4]], [0, 1], [[2, 0], [2, 0]], n_features=2)
    assert np.flatnonzero(nodes[0].split.atom).tolist() == [1]


def test_marks_that_nothing_touches_change_no_more_than_codes():
    rng = np.random.default_rng(0)
    cells, y = rng.integers(0, 9, (60, 3)), rng.integers(0, 3, 60)
    ones, marks = np.ones(60, dtype=np.int64), np.zeros((60, 3), dtype=int)
    dictionary = oracle_atoms.Dictionary([oracle_atoms.axis_atoms(3)])
    plain, marked = (
        oracle.grow_tree(
            oracle.Rows(cells, y, ones, ones, 3, some), dictionary, oracle.Growth(2, gaps=gap), 5
        )
        for some, gap in ((None, False), (marks, True))
    )
    assert [node.left for node in plain] == [node.left for node in marked]
    assert len(plain) > 20
    for a, b in zip(plain, marked, strict=True):
        if a.is_leaf:
            continue
        assert a.split.threshold == b.split.threshold
        assert a.split.code == 0
        left, right = (marked[b.left + side].weight for side in (0, 1))
        assert b.split.code == (gaps.ABSENT_LEFT if left >= right else gaps.ABSENT_RIGHT)


# --- all of it -------------------------------------------------------------------------------


class Whole:
    """Cells of eighths, as a fitted model would choose them."""

    real, shift = False, 3


class Real:
    real, shift = True, 0


@pytest.mark.parametrize("kind", GAP_KINDS)
@pytest.mark.parametrize("name", EACH_DICTIONARY)
def test_training_rows_walk_to_where_they_were_grown(name, kind):
    if name == "rocket":
        return  # its samples are flat, and other kernels are here
    shape = (4, 3)
    dictionary, sources = as_oracle(EACH_DICTIONARY[name], shape)
    form = Real if name == "fractions" else Whole
    rng = np.random.default_rng(4)
    X = with_gaps(rng.integers(0, 9, (45, *shape)) / 2, kind, 0.4)
    ordered = gaps.ordered_axes(dictionary, shape, None)
    cells, marks = cells_of(X, form, sources, ordered)
    assert marks is not None
    assert marks.shape == cells.shape
    for number, criterion in enumerate([CLASSIFICATION[0], REGRESSION[0]]):
        target = rng.integers(0, 3, len(X))
        ones = np.ones(len(X), dtype=np.int64)
        rows = oracle.Rows(cells, target, ones, ones, 0 if number else 3, marks)
        leaf_rows = rows[np.arange(0, 45, 3)] if number else None
        growth = oracle.Growth(4, criterion, "histogram", max_depth=4, gaps=True)
        nodes = oracle.grow_tree(rows, dictionary, growth, number, leaf_rows)
        leaves = [oracle.leaf_of(nodes, *row) for row in zip(cells, marks, strict=True)]
        codes = {node.split.code for node in nodes if not node.is_leaf}
        assert not codes & {0}
        if leaf_rows is not None:
            counts = [sum(leaf is node for leaf in leaves[::3]) for node in nodes if node.is_leaf]
            assert counts == [len(node.leaf_rows) for node in nodes if node.is_leaf]
            continue
        counts = [sum(leaf is node for leaf in leaves) for node in nodes if node.is_leaf]
        assert counts == [len(node.rows) for node in nodes if node.is_leaf]
        assert len(nodes) > 5 or (name, kind) == ("atoms", "columns")  # which all touch


def test_each_kind_of_gaps_leaves_the_share_that_it_should():
    X = np.ones((500, 3, 20))
    for kind in GAP_KINDS:
        found = np.isnan(with_gaps(X, kind, 0.3)).mean()
        assert 0.15 < found < 0.5, kind
        np.testing.assert_array_equal(with_gaps(X, kind), with_gaps(X, kind))
    assert with_gaps(X.astype(np.float32)).dtype == np.float32
    assert with_gaps(X.astype(int)).dtype == np.float64
