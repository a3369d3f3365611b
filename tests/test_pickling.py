"""A pickle leaves out what follows from the rest, and loads as what it was."""

import copy
import pickle
from pathlib import Path

import joblib
import numpy as np
import pytest
from common import assert_same_forest

from morforest import (
    Atoms,
    Axis,
    Gradient,
    Haar,
    Kernel,
    Magnitude,
    Mixture,
    MorfClassifier,
    MorfRegressor,
    Pair,
    Patch,
    Raw,
    SparseOblique,
)


def samples(shape, n=200):
    random = np.random.default_rng(0)
    X = random.integers(0, 40, size=(n, *shape)).astype(np.uint8)
    return X, random.integers(0, 3, size=n)


CASES = {
    "patches": ((6, 7), Patch((1, 1), (3, 4)), {}),
    "patches inside": ((6, 7), Patch((2, 2), (3, 4), boundary="inside"), {}),
    "large patches": ((20, 15), Patch((1, 1), (20, 15)), {}),
    "series": ((30,), Patch(2, 8), {}),
    "channels": ((3, 30), Patch((1, 2), (1, 8)), {}),
    "volumes": ((3, 4, 5), Patch(1, 3), {}),
    "wrapping patches": ((6, 7), Patch(2, 3, boundary="wrap"), {}),
    "single features": ((12,), Axis(), {}),
    "signed sums": ((12,), SparseOblique(), {}),
    "weighted sums": ((4,), Atoms([[1, 2, 0, 0], [0, 1, -3, 1]]), {}),
    "fractions": ((4,), Atoms([[1, 0.5, 0, 0], [0, 1, -0.3, 1]]), {}),
    "mixture": ((6, 7), Mixture([Patch(1, 3), Axis()]), {}),
    "haar": ((6, 7), Haar(), {}),
    "pairs": ((6, 7), Pair(views=[Raw(), Magnitude()]), {}),
    "gradients": ((6, 7), Patch(1, 3, views=Gradient()), {}),
    "one channel": ((6, 7), Patch(1, 3, views=Magnitude()), {}),
    "kernels": ((6, 7), Kernel("sign", dilation="log"), {}),
    "best first": ((6, 7), Patch(1, 3), {"max_leaf_nodes": 20}),
    "impure leaves": ((6, 7), Patch(1, 3), {"min_samples_leaf": 5}),
    "only roots": ((6, 7), Patch(1, 3), {"min_samples_leaf": 150}),
}
# What these leave out; the others write terms as they are.
BOXES = {"patches", "patches inside", "large patches", "series", "channels", "best first"}


@pytest.mark.parametrize("estimator", [MorfClassifier, MorfRegressor])
@pytest.mark.parametrize("case", CASES)
def test_copies_are_the_same_forest(case, estimator, tmp_path):
    shape, dictionary, parameters = CASES[case]
    X, y = samples(shape)
    model = estimator(dictionary, n_estimators=4, random_state=0, **parameters).fit(X, y)
    joblib.dump(model, tmp_path / "forest")
    for other in (
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
        joblib.load(tmp_path / "forest"),
        joblib.load(tmp_path / "forest", mmap_mode="r"),
    ):
        assert_same_forest(model, other)
        np.testing.assert_array_equal(model.predict(X), other.predict(X))


@pytest.mark.parametrize("case", CASES)
def test_what_follows_is_left_out(case):
    shape, dictionary, parameters = CASES[case]
    X, y = samples(shape)
    model = MorfClassifier(dictionary, n_estimators=4, random_state=0, **parameters).fit(X, y)
    state = model._forest.__getstate__()
    assert (len(state["next"]) > 0) == (case == "best first")
    assert len(state["threshold"]) == len(state["gain"]) == model._forest.is_split().sum()
    if case in BOXES:
        assert "term_cell" not in state
    elif case in ("single features", "signed sums"):
        assert "term_weight" not in state


def test_heavy_leaves_keep_their_weight():
    X = np.repeat(np.arange(4), [1, 254, 255, 70_000])[:, np.newaxis]
    model = MorfClassifier(Axis(), n_estimators=2, bootstrap=False).fit(X, X[:, 0])
    loaded = pickle.loads(pickle.dumps(model))
    assert sorted(loaded._forest.weight[~loaded._forest.is_split()][:4]) == [1, 254, 255, 70_000]
    assert_same_forest(model, loaded)


def test_an_added_forest_loads():
    X, y = samples((6, 7))
    model = MorfClassifier(Patch(1, 3), n_estimators=2, warm_start=True, random_state=0).fit(X, y)
    model = pickle.loads(pickle.dumps(model)).set_params(n_estimators=5).fit(X, y)
    at_once = MorfClassifier(Patch(1, 3), n_estimators=5, random_state=0).fit(X, y)
    assert_same_forest(pickle.loads(pickle.dumps(model)), at_once)


def test_a_model_saved_before_the_first_release_says_so():
    saved = Path(__file__).with_name("format_1.pickle").read_bytes()
    with pytest.raises(ModuleNotFoundError, match=r"saved by an earlier morforest.*fit it again"):
        pickle.loads(saved)
