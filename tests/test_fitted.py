"""What a fitted forest says of itself, and how it works with scikit-learn's tools."""

import dataclasses
import itertools
import pickle
import warnings

import numpy as np
import oracle
import pandas as pd
import polars as pl
import pytest
from common import (
    N_TREES,
    assert_same_forest,
    classifier,
    differ,
    digits,
    fit_digits,
    fit_friedman,
    friedman,
    regressor,
    roots,
)
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from morforest import (
    Atoms,
    Axis,
    Difference,
    Gradient,
    Haar,
    Kernel,
    Magnitude,
    Mixture,
    MorfClassifier,
    MorfRegressor,
    MorfTreeClassifier,
    MorfTreeRegressor,
    Pair,
    Patch,
    Raw,
    SparseOblique,
    Square,
)

# --- what a fitted forest says of itself -----------------------------------------------------

MODELS = {
    "patches": lambda: fit_digits(Patch(max_size=3)),
    "features": lambda: fit_digits(Axis(), max_depth=4),
    "sparse": lambda: fit_digits(SparseOblique(), bootstrap=False),
    "wrapping": lambda: fit_digits(Patch(2, 5, boundary="wrap", contiguous=(False, True))),
    "mixture": lambda: fit_digits(Mixture([Patch(2, 4), SparseOblique(), Axis()])),
    "stumps": lambda: fit_digits(max_depth=1),
    "haar": lambda: fit_digits(Haar()),
    "pairs": lambda: fit_digits(Mixture([Pair(2, 5, reach=3), Patch(contiguous=(False, True))])),
    "kernels": lambda: fit_digits(Mixture([Kernel(), Kernel("sign", dilation="log"), Patch()])),
    "gradients": lambda: fit_digits(Patch(1, 4, views=Gradient())),
    "channels": lambda: fit_digits(
        Mixture([Pair(2, 5, views=[Raw(), Difference(), Magnitude(), Square()]), Axis()])
    ),
    "kernels of channels": lambda: fit_digits(Kernel("gabor", views=[Difference(), Raw()])),
    "leaves": lambda: fit_digits(min_samples_split=10_000),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param]()


def cells(model, X):
    """What the columns of `atoms` stand for: the features of each channel."""
    planes = [
        oracle.derive_view(X.astype(np.int64), *dataclasses.astuple(view))
        for view in model._forest.atoms.layout.views
    ]
    return np.concatenate([plane.reshape(len(X), -1) for plane in planes], axis=1)


def sizes_on_features(model):
    """Absolute weights of all atoms, those of a feature in several channels added."""
    atoms = abs(model._forest.matrix()).toarray()
    return atoms.reshape(len(atoms), -1, 64).sum(axis=1)


def test_samples_walk_to_the_leaves_that_apply_names(model):
    # By hand: atoms and thresholds of the fitted forest, node by node.
    X, _ = digits()
    forest = model._forest
    values = np.asarray((forest.matrix() @ cells(model, X).T).T)
    left = values <= forest.thresholds()
    leaves = model.apply(X)
    begin, child = roots(forest), forest.next.astype(int)
    for tree in range(model.n_estimators):
        node = np.full(len(X), begin[tree])
        while (child[node] >= 0).any():
            inner = child[node] >= 0
            rows = np.flatnonzero(inner)
            node[rows] = begin[tree] + child[node[rows]] + ~left[rows, node[rows]]
        np.testing.assert_array_equal(leaves[:, tree], node - begin[tree])


def test_paths_leaves_and_depths_agree(model):
    X, _ = digits()
    path, begin = model.decision_path(X)
    leaves = model.apply(X)
    depths, n_leaves = model.get_depths(), model.get_n_leaves()
    assert path.shape == (len(X), begin[-1])
    assert set(path.data.tolist()) == {1}
    assert (np.diff(begin) == 2 * n_leaves - 1).all()
    for tree, (first, last) in enumerate(itertools.pairwise(begin)):
        mine = path[:, first:last]
        assert mine[:, [0]].sum() == len(X)  # all pass the root
        assert (mine[np.arange(len(X)), leaves[:, tree]] == 1).all()
        passed = np.asarray(mine.sum(axis=1)).ravel()
        assert passed.max() <= depths[tree] + 1
        child = model._forest.next[first:last].astype(int)
        assert (child[leaves[:, tree]] < 0).all()
        assert (child < 0).sum() == n_leaves[tree]
        depth = np.zeros(last - first, dtype=int)
        for node in range(last - first):  # children come after their parent
            if child[node] >= 0:
                depth[child[node]] = depth[child[node] + 1] = depth[node] + 1
        assert depth.max() == depths[tree]
        np.testing.assert_array_equal(passed, depth[leaves[:, tree]] + 1)
        assert model.get_mean_leaf_depths()[tree] == pytest.approx(depth[child < 0].mean())


def test_weights_of_children_add_up(model):
    forest = model._forest
    left = forest.children()
    split = np.flatnonzero(left >= 0)
    weight = forest.weight.astype(int)
    np.testing.assert_array_equal(weight[split], weight[left[split]] + weight[left[split] + 1])


def test_probabilities_are_probabilities(model):
    X, y = digits()
    p = model.predict_proba(X)
    assert p.shape == (len(X), 10)
    assert p.min() >= 0
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(model.predict_log_proba(X), np.log(p))
    assert model.score(X, y) == (model.predict(X) == y).mean()


def test_probabilities_are_the_mean_of_leaf_frequencies():
    X, y = digits()
    model = fit_digits(bootstrap=False, min_samples_leaf=10)
    each = np.zeros((N_TREES, len(X), 10))
    for i, tree in enumerate(model.apply(X).T):
        for node in np.unique(tree):
            each[i, tree == node] = np.bincount(y[tree == node], minlength=10)
    each /= each.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), each.mean(axis=0), atol=1e-12)


def test_predict_log_proba_is_minus_infinity_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logs = fit_digits(bootstrap=False).predict_log_proba(digits()[0])
    assert np.isneginf(logs).any()


def test_scores_are_those_of_scikit_learn():
    X, y = friedman()
    model = fit_friedman(min_samples_leaf=10)
    assert model.score(X, y) == r2_score(y, model.predict(X))
    weights = np.arange(len(y))
    expected = r2_score(y, model.predict(X), sample_weight=weights)
    assert model.score(X, y, sample_weight=weights) == expected


def test_ties_go_to_the_first_class():
    model = classifier(bootstrap=False).fit([[0], [0]], ["b", "a"])
    np.testing.assert_array_equal(model.predict_proba([[0]]), [[0.5, 0.5]])
    assert model.predict([[0]])[0] == "a"


# --- importances -----------------------------------------------------------------------------


def test_split_shares_are_the_share_of_splits_that_use_a_feature(model):
    forest = model._forest
    atoms = forest.matrix()
    assert (np.diff(atoms.indptr) > 0).tolist() == forest.is_split().tolist()
    uses = (sizes_on_features(model) > 0).sum(axis=0)
    expected = uses / max(forest.is_split().sum(), 1)
    assert model.split_shares_.shape == (8, 8)
    np.testing.assert_allclose(model.split_shares_.ravel(), expected, atol=1e-12)


def test_importances_spread_each_gain_over_its_atom(model):
    forest = model._forest
    total = np.zeros(64)
    sizes, gains = sizes_on_features(model), forest.gains()
    for node in np.flatnonzero(forest.is_split()):
        total += gains[node] * sizes[node] / sizes[node].sum()
    assert model.feature_importances_.shape == (8, 8)
    if not forest.is_split().any():
        assert (model.feature_importances_ == 0).all()
        return
    np.testing.assert_allclose(model.feature_importances_.ravel(), total / total.sum(), atol=1e-7)
    assert model.feature_importances_.sum() == pytest.approx(1, abs=1e-12)
    assert model.feature_importances_.min() >= 0


def test_importances_of_own_atoms_follow_the_size_of_their_weights():
    X, y = friedman(80)
    model = regressor(Atoms([[1, 0, 0, 0, -3, 0, 0, 0]]), max_features=1).fit(X, y)
    np.testing.assert_allclose(model.feature_importances_, [0.25, 0, 0, 0, 0.75, 0, 0, 0])
    np.testing.assert_allclose(model.split_shares_, [1, 0, 0, 0, 1, 0, 0, 0])


def test_importances_find_the_place_of_the_signal():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6, 30))
    y = (X[:, 2, 10:16].sum(axis=1) > 0).astype(int)
    model = classifier(Patch((1, 4), (1, 8)), n_estimators=40).fit(X, y)
    for importances in (model.feature_importances_, model.split_shares_):
        assert importances.shape == (6, 30)
        assert importances[2, 10:16].mean() > 1.5 * importances.mean()
        assert importances[2].argmax() in range(9, 17)


# --- samples of any rank ---------------------------------------------------------------------

SHAPES = [(12,), (3, 4), (2, 2, 3), (1, 2, 3, 2)]


@pytest.mark.parametrize("shape", SHAPES)
def test_samples_of_any_rank(shape):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (80, *shape))
    y = (X.reshape(80, -1)[:, 0] > 4).astype(int)
    model = classifier(n_estimators=20).fit(X, y)
    assert model.data_shape_ == shape
    assert model.n_features_in_ == 12
    assert model.feature_importances_.shape == model.split_shares_.shape == shape
    assert model.score(X, y) > 0.95
    flat = classifier(data_shape=shape, n_estimators=20).fit(X.reshape(80, 12), y)
    assert_same_forest(model, flat)
    assert flat.feature_importances_.shape == shape
    # Both take both forms.
    np.testing.assert_array_equal(model.predict_proba(X.reshape(80, 12)), flat.predict_proba(X))


def test_a_default_dictionary_is_chosen_by_rank():
    X, y = digits()
    assert fit_digits().dictionary_ == Patch()
    assert classifier().fit(X.reshape(-1, 64), y).dictionary_ == SparseOblique()
    assert classifier(data_shape=(8, 8)).fit(X.reshape(-1, 64), y).dictionary_ == Patch()
    assert classifier(data_shape=64).fit(X.reshape(-1, 64), y).dictionary_ == SparseOblique()
    assert classifier(Axis()).fit(X, y).dictionary_ == Axis()
    assert classifier().fit(X, y).dictionary is None


def test_default_patches_reach_to_the_square_root_of_each_axis():
    X = np.random.default_rng(0).integers(0, 50, (200, 5, 17))
    model = classifier(n_estimators=30).fit(X, X[:, 2, 8] % 2)
    atoms = model._forest.matrix().toarray().reshape(-1, 5, 17)
    heights, widths = (atoms.any(axis=axis).sum(axis=1) for axis in (2, 1))
    assert set(heights) == {0, 1, 2}
    assert set(widths) == {0, 1, 2, 3, 4}


def test_the_dictionary_in_use_does_not_change_with_the_parameter():
    model = fit_digits(Patch(max_size=2))
    model.set_params(dictionary__max_size=5)
    assert model.dictionary_ == Patch(max_size=2)


def crossed_channels(model, axis):
    atoms = model._forest.matrix()
    atoms = atoms[np.diff(atoms.indptr) > 0].toarray().reshape(-1, *model.data_shape_)
    others = tuple(i for i in range(1, atoms.ndim) if i != axis + 1)
    return (atoms != 0).any(axis=others).sum(axis=1)


@pytest.mark.parametrize(("axis", "shape"), [(1, (4, 9)), (-1, (5, 5, 3)), (2, (5, 4, 5))])
def test_patches_stay_within_a_channel_unless_asked(axis, shape):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, (150, *shape))
    y = rng.integers(0, 2, 150)
    place = axis % (1 + len(shape)) - 1
    patch = Patch(2, 3)
    within = classifier(patch, channel_axis=axis).fit(X, y)
    assert (crossed_channels(within, place) == 1).all()
    assert (within._forest.matrix().getnnz(axis=1).max()) > 3 - (len(shape) == 2)
    across = classifier(patch).fit(X, y)
    assert crossed_channels(across, place).max() > 1
    sizes = [3] * len(shape)
    sizes[place] = 2
    asked = classifier(Patch(2, tuple(sizes)), channel_axis=axis)
    asked.set_params(dictionary__min_size=tuple(1 if i == place else 2 for i in range(len(shape))))
    asked.fit(X, y)
    assert set(crossed_channels(asked, place)) == {1, 2}
    without = tuple(s for i, s in enumerate(sizes) if i != place)
    left_out = classifier(Patch(2, without), channel_axis=axis).fit(X, y)
    assert_same_forest(left_out, within)


def test_every_channel_is_used():
    X = np.random.default_rng(0).integers(0, 30, (150, 4, 9))
    model = classifier(Patch(2, 3), channel_axis=1).fit(X, np.arange(150) % 2)
    assert (model.split_shares_.sum(axis=1) > 0).all()


# --- scikit-learn's tools --------------------------------------------------------------------


def test_cross_validation_of_images():
    X, y = digits()
    scores = cross_val_score(classifier(Patch(max_size=3), n_estimators=20), X, y, cv=3)
    assert scores.min() > 0.8


def test_grid_search_over_the_parameters_of_a_dictionary():
    X, y = digits()
    search = GridSearchCV(
        classifier(Patch(), data_shape=(8, 8)),
        {"dictionary__max_size": [2, (1, 8), None], "max_features": [4]},
        cv=2,
    ).fit(X.reshape(-1, 64), y)
    assert len(search.cv_results_["params"]) == 3
    best = search.best_estimator_
    assert best.dictionary.max_size == search.best_params_["dictionary__max_size"]
    assert best.dictionary_ == best.dictionary
    assert len(set(search.cv_results_["mean_test_score"])) > 1


def test_grid_search_over_the_parts_of_a_mixture():
    X, y = digits()
    mixture = Mixture([Patch(max_size=2), Axis()], weights=[0.9, 0.1])
    grid = {"dictionary__0__max_size": [1, 4], "dictionary__weights": [[1, 1], [3, 1]]}
    search = GridSearchCV(classifier(mixture), grid, cv=2).fit(X, y)
    sizes = [p["dictionary__0__max_size"] for p in search.cv_results_["params"]]
    assert sorted(set(sizes)) == [1, 4]
    assert len(set(search.cv_results_["mean_test_score"])) > 1
    found = search.best_estimator_.dictionary.dictionaries[0].max_size
    assert found == search.best_params_["dictionary__0__max_size"]
    assert mixture.dictionaries[0].max_size == 2  # the search works on clones


def test_a_pipeline_with_a_scaler():
    X, y = digits()
    flat = X.reshape(-1, 64).astype(float)
    pipe = make_pipeline(
        StandardScaler(), classifier(Patch(max_size=3), data_shape=(8, 8), n_estimators=20)
    )
    pipe.fit(flat[:300], y[:300])
    assert pipe.score(flat[300:], y[300:]) > 0.8
    assert pipe[-1].feature_importances_.shape == (8, 8)


@pytest.mark.parametrize(
    "estimator",
    [
        MorfClassifier(Mixture([Patch((1, 2), (3, 4)), Atoms(np.eye(4))], [1, 2]), n_jobs=2),
        MorfRegressor(SparseOblique(2.0), criterion="poisson", max_features=0.7),
        MorfTreeClassifier(Patch(boundary="wrap"), class_weight="balanced"),
        MorfTreeRegressor(max_depth=3),
    ],
)
def test_clones_have_equal_parameters_and_nothing_fitted(estimator):
    copy = clone(estimator)
    assert copy is not estimator
    ours = estimator.get_params(deep=False)
    theirs = copy.get_params(deep=False)
    assert ours == theirs
    if estimator.dictionary is not None:
        assert copy.dictionary is not estimator.dictionary
    with pytest.raises(NotFittedError):
        copy.predict(np.zeros((1, 4)))


@pytest.mark.parametrize("fit", [fit_digits, fit_friedman])
def test_pickles_predict_bit_by_bit_the_same(fit):
    X, _ = digits() if fit is fit_digits else friedman()
    model = fit(Mixture([Axis(), SparseOblique()]))
    loaded = pickle.loads(pickle.dumps(model))
    assert_same_forest(model, loaded)
    method = "predict_proba" if fit is fit_digits else "predict"
    np.testing.assert_array_equal(getattr(model, method)(X), getattr(loaded, method)(X))
    np.testing.assert_array_equal(model.feature_importances_, loaded.feature_importances_)
    assert loaded.dictionary_ == model.dictionary_


def test_permutation_importance_of_flat_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 12))
    y = (X[:, 5] > 0).astype(int)
    model = classifier(Patch(), data_shape=(3, 4), n_estimators=30).fit(X, y)
    result = permutation_importance(model, X, y, n_repeats=3, random_state=0)
    means = result.importances_mean.reshape(3, 4)
    assert np.unravel_index(means.argmax(), (3, 4)) == (1, 1)
    assert means.max() > 0.2


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_keep_their_names(frame):
    X, y = friedman()
    names = [f"x{i}" for i in range(8)]
    table = frame({name: X[:, i] for i, name in enumerate(names)})
    if not hasattr(LinearRegression().fit(table, y), "feature_names_in_"):
        pytest.skip("this scikit-learn does not know the names of these frames")
    model = regressor().fit(table, y)
    assert list(model.feature_names_in_) == names
    assert_same_forest(model, fit_friedman())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.predict(table), fit_friedman().predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table[names[::-1]])
    assert not hasattr(fit_friedman(), "feature_names_in_")


def test_data_frames_of_whole_numbers_and_a_shape():
    X, y = digits()
    table = pd.DataFrame(X.reshape(-1, 64), columns=[f"p{i}" for i in range(64)])
    model = classifier(data_shape=(8, 8)).fit(table, pd.Series(y))
    assert_same_forest(model, fit_digits())
    assert len(model.feature_names_in_) == 64


# --- trees, and accuracy ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tree", "forest", "data"),
    [(MorfTreeClassifier, MorfClassifier, digits), (MorfTreeRegressor, MorfRegressor, friedman)],
)
def test_a_tree_is_a_forest_of_one_without_a_bag(tree, forest, data):
    X, y = data()
    one = tree(random_state=3).fit(X, y)
    same = forest(n_estimators=1, bootstrap=False, splitter="exact", random_state=3).fit(X, y)
    assert_same_forest(one, same)
    assert one.get_depths().shape == (1,)
    np.testing.assert_allclose(one.predict(X), y, rtol=1e-9)


def test_random_state_decides():
    assert_same_forest(fit_digits(random_state=1), fit_digits(random_state=1))
    assert differ(fit_digits(random_state=1), fit_digits(random_state=2))
    assert differ(fit_digits(random_state=None), fit_digits(random_state=None))
    generators = [np.random.RandomState(7) for _ in range(2)]
    assert_same_forest(*(fit_digits(random_state=g) for g in generators))
    assert differ(*(fit_digits(random_state=g) for g in [generators[0]] * 2))


def test_regression_is_as_accurate_as_scikit_learn():
    X, y = make_friedman1(700, n_features=10, noise=1.0, random_state=0)
    train, test = slice(300), slice(300, None)
    common = {"n_estimators": 60, "max_features": 1 / 3, "random_state": 0}
    theirs = RandomForestRegressor(**common).fit(X[train], y[train]).score(X[test], y[test])
    for splitter in ("exact", "histogram"):
        ours = MorfRegressor(Axis(), splitter=splitter, **common).fit(X[train], y[train])
        assert ours.score(X[test], y[test]) == pytest.approx(theirs, abs=0.03)


def test_sample_weights_pull_predictions():
    X = np.zeros((10, 1))
    y = np.arange(10.0)
    weights = np.linspace(0.1, 2.3, 10)
    model = MorfTreeRegressor().fit(X, y, sample_weight=weights)
    assert model.predict([[0]])[0] == pytest.approx(np.average(y, weights=weights), rel=1e-6)
    model = MorfTreeClassifier().fit(X, y > 6, sample_weight=weights)
    share = weights[y > 6].sum() / weights.sum()
    np.testing.assert_allclose(model.predict_proba([[0]]), [[1 - share, share]], atol=1e-6)


def test_rows_of_larger_weight_are_drawn_more_often():
    X = np.zeros((20, 1))
    y = np.repeat([0, 1], 10)
    weights = np.where(y == 1, 3.5, 0.5)
    model = classifier(n_estimators=400).fit(X, y, sample_weight=weights)
    # Without splits the posterior is the mean of the bags' frequencies: 400 bags of 20 draws.
    assert model.predict_proba([[0]])[0, 1] == pytest.approx(3.5 / 4, abs=4 * 0.33 / 8000**0.5)
