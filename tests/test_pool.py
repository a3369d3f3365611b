"""Pooled atoms and variances: their laws, their values, and that forests of them are forests."""

import copy
import pickle

import numpy as np
import pytest
from common import MINIROCKET, assert_same_forest, differ
from golden_cases import whole_numbers
from hypothesis import given
from hypothesis import strategies as st
from problems import (
    CLASSIFICATION,
    REGRESSION,
    SHARED_ALONE,
    assert_same_trees,
    patches,
    problems,
)
from scipy import stats
from test_oracle import examples

from morforest import (
    AtomFeatures,
    Atoms,
    Axis,
    Difference,
    Gradient,
    Haar,
    Kernel,
    Mixture,
    MorfClassifier,
    MorfRegressor,
    Pair,
    Patch,
    Raw,
    Square,
    Subset,
    Variance,
)
from morforest._atoms import OPERATIONS, AtomList
from morforest._fixed_point import choose_format
from morforest._native import core
from morforest._table import TrainingTable
from morforest.dictionary._base import resolve

LEVEL = 1e-3
N_DRAWS = 20_000


def series(n=90, channels=2, length=20, height=40, width=4):
    """Whole numbers with a bump at a random place in one of the classes."""
    X = whole_numbers(n * channels * length, 50).reshape(n, channels, length)
    y = whole_numbers(n, 2, 1)
    place = whole_numbers(n, length - width, 2)
    for i in np.flatnonzero(y):
        X[i, 0, place[i] : place[i] + width] += height
    return X, y


def forest(dictionary, **parameters):
    common = {"n_estimators": 4, "random_state": 0, "channel_axis": 1}
    return MorfClassifier(dictionary, **common | parameters)


NONLINEAR = {
    "max": Patch(2, 5, pool="max"),
    "min": Haar(1, 5, pool="min", window=3),
    "mean": Haar(1, 5, pool="mean", window=0.5),
    "proportion": Haar(1, 5, size_distribution="log", pool="proportion"),
    "wrap": Patch(2, 5, boundary="wrap", pool=["proportion", "max"]),
    "sensors": Patch((1, 2), (2, 4), contiguous=(False, True), pool="proportion"),
    "variance": Variance(2, 8, views=[Raw(), Difference()]),
    "views": Haar(1, 3, pool="proportion", views=[Difference(), Square()]),
    "pair": Pair(1, 5, reach=(1, 6), size_distribution="log", pool=["proportion", "max"]),
    "pair of views": Pair(1, 3, views=[Raw(), Difference()], pool="proportion"),
    "mixture": Mixture([Patch(1, 4), Haar(1, 5, pool="proportion"), Variance(2, 8), Axis()]),
    "competing": Kernel("triple", dilation="log", views=[Raw(), Difference()], pool="win"),
    "competing signs": Kernel("sign", (1, 3), (1, 3), pool=["win", "proportion", "lose"], rivals=2),
}


# --- laws ------------------------------------------------------------------------------------


def drawn_atoms(dictionary, X, n=N_DRAWS, key=1):
    """Atoms as the core draws them."""
    plan = resolve(dictionary, X.shape[1:])
    X = X.reshape(len(X), -1)
    table = TrainingTable(X, plan, *choose_format(X, plan.bounds, plan.has_order))
    order = np.arange(len(X), dtype=np.uint32)
    drawn = core.draw_atoms(table.table, table.dictionary, order, key, n)
    return AtomList.from_core(table.layout, drawn)


def log_uniform(low, high):
    sizes = np.arange(low, high + 1)
    return np.log((sizes + 1) / sizes) / np.log((high + 1) / low)


def fits(counts, probabilities):
    expected = np.asarray(probabilities) * np.sum(counts)
    return stats.chisquare(counts, expected).pvalue > LEVEL


def test_windows_are_whole_or_log_uniform():
    X = whole_numbers(5 * 12, 9).reshape(5, 12)
    atoms = drawn_atoms(Patch(3, 3, pool="max"), X)  # ten places
    count = atoms.window[:, 1, 0]
    law = np.zeros(11)
    law[10] += 0.5
    law[2:] += 0.5 * log_uniform(2, 10)
    assert fits(np.bincount(count, minlength=11)[2:], law[2:])
    # A wrong law is noticed: windows of all sizes alike.
    assert not fits(np.bincount(count, minlength=11)[2:10], np.full(8, 1 / 8))


@pytest.mark.parametrize("boundary", ["inside", "wrap"])
def test_windows_of_a_given_size_lie_anywhere(boundary):
    X = whole_numbers(5 * 12, 9).reshape(5, 12)
    dictionary = Patch(3, 3, pool="max", window=4, boundary=boundary)
    assert set(drawn_atoms(dictionary, X).window[:, 1, 0]) == {4}
    atoms = dictionary.sample(12, N_DRAWS, random_state=0).toarray()
    first = np.argmax((atoms == 1) & (np.roll(atoms, 1, axis=1) == 0), axis=1)
    places = 12 if boundary == "wrap" else 7  # ten places of the patch, four of them in a window
    assert fits(np.bincount(first, minlength=places), np.full(places, 1 / places))


def test_a_fraction_of_the_axis_is_so_many_positions():
    X = whole_numbers(5 * 12, 9).reshape(5, 12)
    for window, positions in ((0.5, 6), (0.01, 1), (1.0, 10), (12, 10)):
        atoms = drawn_atoms(Patch(3, 3, pool="max", window=window), X, 50)
        assert set(atoms.window[:, 1, 0]) == {positions}


def test_ways_to_pool_are_drawn_equally_often():
    X = whole_numbers(5 * 12, 9).reshape(5, 12)
    op = drawn_atoms(Patch(2, 3, pool=["max", "mean", "proportion"]), X).operation
    counts = np.bincount(op, minlength=len(OPERATIONS))
    assert np.flatnonzero(counts).tolist() == [
        OPERATIONS.index(op) for op in ("max", "mean", "proportion")
    ]
    assert fits(counts[counts > 0], np.full(3, 1 / 3))


def test_biases_come_from_all_rows_and_positions():
    X = np.arange(60).reshape(5, 12) ** 2  # no response twice
    atoms = drawn_atoms(Patch(1, 1, pool="proportion", window=1.0), X)
    values, counts = np.unique(atoms.bias, return_counts=True)
    np.testing.assert_array_equal(values, X.ravel())
    assert fits(counts, np.full(60, 1 / 60))


def test_rivals_are_other_kernels_drawn_equally_often():
    X = whole_numbers(5 * 9, 9).reshape(5, 9)
    own = [np.array([k + 1, -1]) for k in range(5)]
    atoms = drawn_atoms(Kernel(own, pool="win", window=1.0, rivals=2), X)
    assert set(atoms.count) == {6}
    assert set(atoms.bias) == {2}
    chosen = atoms.weight.reshape(-1, 3, 2)[:, :, 0].astype(int) - 1
    assert all(len(set(row)) == 3 for row in chosen.tolist())
    ordered = chosen @ [25, 5, 1]
    counts = np.unique(ordered, return_counts=True)[1]
    assert len(counts) == 60
    assert fits(counts, np.full(60, 1 / 60))


def test_what_kernels_have_in_common_does_not_decide():
    X = whole_numbers(40 * 30, 99).reshape(40, 30)
    values = [
        AtomFeatures(Kernel(name, dilation="log", pool=["win", "lose"]), 60, random_state=0)
        .fit(X)
        .transform(X)
        for name in (MINIROCKET, "triple")
    ]
    np.testing.assert_array_equal(*values)
    assert 0 < values[0].mean() < 1 / 6  # ties have no winner


def test_the_one_that_wins_is_shown_without_its_rivals():
    atoms = Kernel(MINIROCKET, pool="lose", window=1.0).sample(9 + 3, 20, random_state=0).toarray()
    assert all(sorted(row[row != 0]) == [-2, -2, -2, 1, 1, 1, 1, 1, 1] for row in atoms)
    X, y = whole_numbers(60 * 14, 9).reshape(60, 1, 14), np.arange(60) % 2
    model = forest(Kernel(MINIROCKET, pool="win", window=1.0)).fit(X, y)
    shown = model._forest.matrix().toarray()[model._forest.is_split()]
    assert len(shown) > 10
    assert all(sorted(set(row[row != 0].tolist())) == [-1, 2] for row in shown)
    names = AtomFeatures(Kernel(MINIROCKET, pool="win"), 5, random_state=0, channel_axis=1).fit(X)
    assert all("win of 6" in name for name in names.get_feature_names_out())


def test_images_move_along_both_axes_and_channels_along_none():
    X = whole_numbers(4 * 5 * 6 * 3, 9).reshape(4, 5, 6, 3)
    y = np.arange(4)
    model = forest(Patch(2, 2, pool="max", window=1.0), channel_axis=-1).fit(X, y)
    split = model._forest.is_split()
    counts = model._forest.atoms.windows()[split]
    assert {tuple(row) for row in counts.tolist()} == {(4, 5, 1)}


# --- the core against the oracle -------------------------------------------------------------


@st.composite
def nonlinear_dictionaries(draw, rng, shape, mixed=True):
    """Pooled atoms and variances, alone or beside linear ones."""
    pool = draw(
        st.lists(st.sampled_from(["max", "min", "mean", "proportion", "proportion"]), min_size=1)
    )
    window = draw(st.sampled_from([None, None, 1, 2, 1.0]))
    if window == 2 and min(shape[-2:]) < 2:
        window = None
    kinds = ["patch", "haar", "haar", "pair", "variance", "kernel"] + ["mixture"] * mixed
    match draw(st.sampled_from(kinds)):
        case "patch":
            found = draw(patches(shape))
            found.set_params(pool=pool, window=window)
        case "haar":
            sizes = [draw(st.integers(1, length)) for length in shape]
            found = Haar(1, tuple(sizes), pool=draw(st.sampled_from([pool, None])), window=window)
            if found.pool is None:
                found.window = None
            found.lobes = draw(st.lists(st.sampled_from(["two", "three"]), min_size=1))
        case "pair":
            sizes = [draw(st.integers(1, length)) for length in shape]
            reach = [draw(st.integers(0, length - 1)) for length in shape]
            found = Pair(1, tuple(sizes), reach=tuple(reach), pool=pool, window=window)
            found.views = draw(st.sampled_from([None, [Raw(), Difference()]]))
        case "kernel":
            size = tuple(draw(st.integers(1, length)) for length in shape)
            ways = draw(st.lists(st.sampled_from(["win", "lose", "max", "proportion"]), min_size=1))
            given = {"pool": ways, "window": window, "dilation": draw(st.sampled_from([1, "log"]))}
            found = Kernel("sign", size, size, **given, rivals=draw(st.integers(1, 3)))
            if draw(st.booleans()):
                count = draw(st.integers(2, 5))
                own = [rng.integers(-2, 3, size) for _ in range(count)]
                for kernel in own:
                    kernel.flat[0] = 1
                found = Kernel(own, **given, rivals=draw(st.integers(1, count - 1)))
            found.views = draw(st.sampled_from([None, [Raw(), Difference()]]))
        case "variance":
            sizes = [draw(st.integers(1, length)) for length in shape]
            found = Variance(1, tuple(sizes))
            if draw(st.booleans()):
                found.views = [Raw(), Difference()]
        case "mixture":
            parts = [draw(patches(shape)), draw(nonlinear_dictionaries(rng, shape, mixed=False))]
            parts.append(draw(nonlinear_dictionaries(rng, shape, mixed=False)))
            if not any(isinstance(part, Variance) for part in parts):
                return Mixture(parts, weights=(0.05 + rng.random(len(parts))).tolist())
            found = Mixture([parts[0], Variance(1, shape)], weights=[1, 2])
    try:
        resolve(found, shape)
    except ValueError:  # no room to move, or for so many lobes
        return Patch(1, 1, pool="max", window=1) if max(shape[-2:]) > 1 else Patch(1, 1)
    if mixed and draw(st.integers(0, 3)) == 0:
        kind = draw(st.sampled_from([Subset, SHARED_ALONE]))
        return kind(found, draw(st.sampled_from([2, 20])))
    return found


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@examples(400)
@given(problems(CLASSIFICATION + REGRESSION, of=nonlinear_dictionaries, exact=True))
def test_nonlinear_atoms_equal_the_oracle(problem):
    assert_same_trees(problem)


# --- values ----------------------------------------------------------------------------------


def test_pooled_atoms_find_what_moves():
    X, y = series(400, length=100, height=18, width=10)
    train, test = slice(0, 100), slice(100, 400)
    plain, pooled = (
        forest(d, n_estimators=30).fit(X[train], y[train]).score(X[test], y[test])
        for d in (Patch(10, 10), Patch(10, 10, pool="max"))
    )
    assert pooled > plain + 0.1


def test_thresholds_are_in_the_units_of_the_data():
    X, y = series()
    for op, low, high in (("proportion", 0, 1), ("mean", 50, 150), ("max", 100, 400)):
        dictionary = Patch((1, 4), (1, 4), pool=op, window=1.0)
        for scale in (1, 0.37):
            model = forest(dictionary).fit(X * scale, y)
            thresholds = model._forest.thresholds()
            thresholds = thresholds[np.isfinite(thresholds)] / (1 if op == "proportion" else scale)
            assert low < thresholds.min() <= thresholds.max() < high, op
    noise = (
        np.random.default_rng(0).normal(size=(200, 30)) * (1 + 2 * (np.arange(200) % 2))[:, None]
    )
    model = forest(Variance(30, 30), channel_axis=None).fit(noise, np.arange(200) % 2)
    root = model._forest.thresholds()[0]
    assert 1 < root < 9


def test_a_shifted_sample_has_the_same_global_value():
    X, y = series(channels=1)
    model = forest(
        Patch(2, 5, boundary="wrap", pool=["max", "proportion", "mean"], window=1.0)
    ).fit(X, y)
    np.testing.assert_array_equal(model.apply(X), model.apply(np.roll(X, 7, axis=2)))


def test_importances_fall_on_what_windows_cover():
    X, y = series()
    # One atom: four cells that move over all of an axis of twenty.
    one = Patch((1, 4), (1, 4), pool="max", window=1.0)
    model = forest(one, max_depth=1, n_estimators=30, max_features=30).fit(X, y)
    importances = model.feature_importances_
    assert importances.sum() == pytest.approx(1)
    assert importances[0].sum() > 0.8  # the channel with the bump
    covered = np.convolve(np.ones(17), np.ones(4))
    np.testing.assert_allclose(importances[0] / importances[0].sum(), covered / covered.sum())
    np.testing.assert_allclose(model.split_shares_.sum(axis=0), 1.0)


# --- a forest of them is a function of the multiset of samples --------------------------------


@pytest.mark.parametrize("name", NONLINEAR)
def test_neither_order_nor_threads_nor_repetition_matter(name):
    X, y = series()
    dictionary = NONLINEAR[name]
    model = forest(dictionary).fit(X, y)
    order = np.argsort(whole_numbers(len(X), 2**30, 3), kind="stable")
    assert_same_forest(model, forest(dictionary).fit(X[order], y[order]))
    assert_same_forest(model, forest(dictionary, n_jobs=3).fit(X, y))
    for parameters in ({}, {"bootstrap": False}, {"max_leaf_nodes": 9}):
        times = whole_numbers(len(X), 4, 6)
        rows = np.repeat(np.arange(len(X)), times)
        weighted = forest(dictionary, **parameters).fit(X, y, sample_weight=times)
        assert_same_forest(weighted, forest(dictionary, **parameters).fit(X[rows], y[rows]))


@pytest.mark.parametrize("name", NONLINEAR)
def test_batches_and_types_do_not_matter(name):
    X, y = series()
    model = forest(NONLINEAR[name], oob_score=True, n_estimators=20).fit(X, y)
    whole = model.predict_proba(X)
    parts = [model.predict_proba(X[i : i + 7].astype(np.float32)) for i in range(0, len(X), 7)]
    assert np.concatenate(parts).tobytes() == whole.tobytes()
    large = model.predict_proba(np.concatenate([X, X * 10**6]))  # other cells, same values
    assert large[: len(X)].tobytes() == whole.tobytes()
    assert np.isfinite(model.oob_decision_function_[model.oob_decision_function_.sum(1) > 0]).all()


@pytest.mark.parametrize("name", NONLINEAR)
@pytest.mark.parametrize("estimator", [MorfClassifier, MorfRegressor])
def test_copies_are_the_same_forest(name, estimator):
    X, y = series()
    model = estimator(NONLINEAR[name], n_estimators=3, random_state=0, channel_axis=1).fit(X, y)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert_same_forest(model, other)
        np.testing.assert_array_equal(model.predict(X), other.predict(X))
    assert (name == "variance") != any(p.pooled for p in model._forest.atoms.layout.planes)


def test_warm_start_adds_to_pooled_trees():
    X, y = series()
    few = forest(NONLINEAR["mixture"], n_estimators=2, warm_start=True).fit(X, y)
    assert_same_forest(few.set_params(n_estimators=4).fit(X, y), forest(few.dictionary).fit(X, y))


def test_linear_forests_have_no_operations():
    X, y = series()
    model = forest(Haar(1, 3)).fit(X, y)
    assert model._forest.atoms.linear
    assert "operation" not in model._forest.__getstate__()
    assert differ(model, forest(Haar(1, 3), random_state=1).fit(X, y))


# --- damaged states --------------------------------------------------------------------------


def loaded(model, **changes):
    state = copy.deepcopy(model._forest.__getstate__())
    found = object.__new__(type(model._forest))
    found.__setstate__({**state, **changes})
    return found


DAMAGE = {
    "unknown operation": ("operation", lambda v: np.where(v > 0, 6, v)),
    "no operation for an atom with a window": ("operation", lambda v: v * 0),
    "variance of a pooled atom": ("operation", lambda v: np.where(v > 0, 5, v)),
    "a bias without proportion": ("operation", lambda v: np.where(v > 0, 1, v)),
    "too far": ("window", lambda v: v.astype(np.int64) * 2),
    "far too far": ("window", lambda v: np.where(v > 0, 2**32 - 1, v.astype(np.int64))),
    "empty windows": ("window", lambda v: v * 0),
    "negative windows": ("window", lambda v: v.astype(np.int64) - 2),
    "short windows": ("window", lambda v: v[:-1]),
    "fewer operations": ("operation", lambda v: v[:-1]),
    "fewer biases": ("bias", lambda v: v[:-1]),
    "a huge bias": ("bias", lambda v: v.astype(np.int64) - 2**62),
    "not a bias": ("bias", lambda v: v.astype(float) + 0.5),
    "another shape": ("layout", lambda v: ((3, 3), v[1])),
    "half a layout": ("layout", lambda v: v[:1]),
    "no layout": ("layout", lambda v: None),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_operations_are_refused(name):
    X, y = series()
    model = forest(Haar(1, 5, pool="proportion")).fit(X, y)
    part, change = DAMAGE[name]
    state = model._forest.__getstate__()
    with pytest.raises(ValueError, match=r"damaged|impossible"):
        loaded(model, **{part: change(state[part])})
    loaded(model)


# --- errors ----------------------------------------------------------------------------------

BAD = [
    (Patch(pool="median"), r"pool must be .*'proportion'.*got 'median'"),
    (Patch(pool=[]), r"pool must be .*got \[\]"),
    (Patch(pool=["max", 3]), r"pool must be .*got \['max', 3\]"),
    (Patch(pool=2), "pool must be .*got 2"),
    (Haar(pool="none"), "pool must be .*got 'none'"),
    (Pair(pool="sum"), "pool must be .*got 'sum'"),
    (Patch(pool="win"), "pool must be .*'proportion', or a.*got 'win'"),
    (Kernel("sign", pool="wins"), "pool must be .*'lose'.*got 'wins'"),
    (Kernel("sign", 2, 2, pool="win", rivals=0), "rivals must be .*1 to 1000, got 0"),
    (Kernel("sign", 2, 2, pool="win", rivals=2.5), r"rivals must be .*got 2\.5"),
    (Kernel("sign", 2, 2, rivals=None), "rivals must be .*got None"),
    (Kernel("sign", 1, 3, pool="win"), "needs kernels of one shape.*'sign' has 3.*max_size"),
    (Kernel([1, 2], pool="lose"), "rivals=5 must be less than .* 1 of kernel.*fewer rivals"),
    (Pair(window=2), "window=2 is for pooled atoms"),
    (Haar(pool="max", window=0), "window must be .*got 0 for an axis of length 6"),
    (Haar(pool="max", window=-1), "window must be .*got -1"),
    (Haar(pool="max", window=7), "window must be .*1 to 6.*got 7"),
    (Haar(pool="max", window=1.5), r"window must be .*got 1\.5"),
    (Haar(pool="max", window=0.0), r"window must be .*got 0\.0"),
    (Haar(pool="max", window="all"), "window must be .*got 'all'"),
    (Haar(pool="max", window=True), "window must be .*got True"),
    (Haar(pool="max", window=(2, 2)), r"window must be .*got \(2, 2\)"),
    (Patch(window=3), "window=3 is for pooled atoms: give pool"),
    (Patch(6, 6, pool="max"), "pool='max' needs room for atoms to move.*smaller min_size"),
    (Haar(3, 3, lobes="two", pool="proportion"), "pool='proportion' needs room for atoms to move"),
    (Patch(pool="max", contiguous=False), "pool='max' needs an axis along which"),
    (Variance(7, 7), "min_size=7"),
    (Variance(size_distribution="linear"), "size_distribution must be"),
    (Variance(views=Square()), r"views of Variance must be .*got Square\(\)"),
    (Variance(views="raw"), "views must be"),
]


@pytest.mark.parametrize("rivals", [1, 126, 127, 128, 254, 255, 256])
def test_atoms_of_many_rivals_are_their_own(rivals):
    # Forests keep numbers in the narrowest type that holds them.
    X = whole_numbers(60 * 14, 19).reshape(60, 1, 14) - 9
    competing = Kernel("sign", (1, 9), (1, 9), pool="win", window=1.0, rivals=rivals)
    dictionary = Mixture(
        [competing, Patch(1, (1, 3), pool="proportion", window=1.0)], weights=[3, 1]
    )
    model = forest(dictionary).fit(X, np.arange(60) % 2)
    split = model._forest.is_split()
    won = model._forest.atoms.operation[split] == OPERATIONS.index("win")
    assert won.any()
    terms = model._forest.matrix()[np.flatnonzero(split)].getnnz(axis=1)
    assert set(terms[won]) == {9}
    assert model.feature_importances_.sum() == pytest.approx(1)


def test_signs_have_other_signs_as_rivals():
    X = whole_numbers(30 * 12, 9).reshape(30, 12) - 4
    values = AtomFeatures(Kernel("sign", 2, 2, pool="win"), 200, random_state=0).fit_transform(X)
    assert (values.max(axis=0) > 0).mean() > 0.9  # else they would tie with themselves


def test_plain_patches_beside_pooled_atoms_are_pickled():
    X = whole_numbers(80 * 24, 61).reshape(80, 24)
    y = (X[:, 3] > X[:, 9]).astype(int)
    competing = Kernel([np.array([-1, 0]), np.array([0, 1])], pool="win", rivals=1)
    for pooled in (Patch(1, 3, pool="max"), competing):
        for seed in range(5):
            mixture = Mixture([Patch(1, 3), pooled], weights=[1, 2])
            model = MorfClassifier(mixture, n_estimators=8, max_depth=2, random_state=seed)
            model.fit(X, y)
            again = pickle.loads(pickle.dumps(model))
            np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("rivals", [0, -1, 3, 4, 2**40])
def test_rivals_that_do_not_share_the_terms_are_refused(rivals):
    X, y = series()
    model = forest(Kernel("triple", pool="win")).fit(X, y)
    state = model._forest.__getstate__()
    bias = np.where(state["operation"] == OPERATIONS.index("win"), rivals, 0)
    with pytest.raises(ValueError, match="damaged atoms: rivals do not share the terms"):
        loaded(model, bias=bias.astype(np.int64))
    loaded(model)


@pytest.mark.parametrize(("dictionary", "message"), BAD, ids=[m for _, m in BAD])
def test_bad_parameters_are_named(dictionary, message):
    X = whole_numbers(10 * 6, 9).reshape(10, 6)
    with pytest.raises(ValueError, match=message):
        MorfClassifier(dictionary).fit(X, np.arange(10) % 2)


def test_gradients_have_no_variance():
    X = whole_numbers(10 * 36, 9).reshape(10, 6, 6)
    with pytest.raises(ValueError, match="views of Variance must be"):
        MorfClassifier(Variance(views=Gradient())).fit(X, np.arange(10) % 2)


@pytest.mark.parametrize("dictionary", [Patch(pool="max"), Variance()], ids=str)
def test_nonlinear_atoms_are_rounded_to_integers(dictionary):
    X = np.exp(12 * np.random.default_rng(0).standard_normal((30, 8)))
    X[:, 0] *= 1e9
    with pytest.warns(UserWarning, match="pooled atoms its values are rounded to"):
        model = MorfClassifier(dictionary, n_estimators=3).fit(X, np.arange(30) % 2)
    assert model._forest.is_split().any()
    mixture = Mixture([dictionary, Atoms(np.eye(8) * 0.3)])
    with pytest.raises(ValueError, match="fractional or huge weights"):
        MorfClassifier(mixture).fit(X, np.arange(30) % 2)


def test_fractions_are_rounded_by_a_pooled_forest_of_integers():
    # A linear forest would look closer; counts of positions cannot.
    X, y = series()
    model = forest(Haar(1, 5, pool="proportion")).fit(X, y)
    np.testing.assert_array_equal(model.apply(X + 0.3), model.apply(X))
