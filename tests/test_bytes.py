"""Sums over bytes and prefix sums are two ways to the same values, so to the same forest."""

from dataclasses import replace

import numpy as np
import pytest

from morforest import MorfClassifier, Patch, _table
from morforest._fixed_point import choose_format
from morforest.dictionary._base import resolve

CASES = {
    "image": ((9, 11), Patch((1, 1), (4, 8))),
    "image, inside": ((9, 11), Patch((2, 2), (3, 8), boundary="inside")),
    "one row": ((1, 30), Patch((1, 2), (1, 8))),
    "series": ((30,), Patch(2, 8)),
    "stack of images": ((3, 8, 9), Patch((1, 2, 2), (1, 2, 5))),
    "full height": ((4, 12), Patch((4, 3), (4, 3), boundary="inside")),
    "single rows of an image": ((6, 10), Patch((1, 2), (1, 6))),
}


def forest_of(X, y, dictionary):
    clf = MorfClassifier(
        dictionary, n_estimators=8, max_features=12, random_state=3, oob_score=True
    )
    with pytest.warns(UserWarning, match="out-of-bag"):
        return clf.fit(X, y)


@pytest.mark.parametrize("case", CASES)
def test_bytes_and_prefix_sums_grow_the_same_forest(case, monkeypatch):
    shape, dictionary = CASES[case]
    if not resolve(dictionary, shape).build(direct=False).narrow_patches:
        pytest.skip("this processor has no kernel for bytes")
    random = np.random.default_rng(0)
    X = random.integers(0, 256, size=(300, *shape)).astype(np.uint8)
    X[random.random(X.shape) < 0.5] = 0
    y = random.integers(0, 4, size=300)
    fast = forest_of(X, y, dictionary)

    def without_bytes(*arguments):
        chosen, cells = choose_format(*arguments)
        return chosen, replace(cells, fit_bytes=False)

    monkeypatch.setattr(_table, "choose_format", without_bytes)
    plain = forest_of(X, y, dictionary)
    for name in ("next", "threshold", "weight", "gain"):
        np.testing.assert_array_equal(
            getattr(fast._forest, name), getattr(plain._forest, name), err_msg=name
        )
    assert fast._forest.atoms == plain._forest.atoms
    np.testing.assert_array_equal(fast.oob_decision_function_, plain.oob_decision_function_)


@pytest.mark.parametrize("case", CASES)
def test_bytes_and_prefix_sums_predict_the_same(case):
    shape, dictionary = CASES[case]
    random = np.random.default_rng(1)
    X = random.integers(0, 256, size=(700, *shape)).astype(np.uint8)
    y = random.integers(0, 4, size=700)
    model = MorfClassifier(dictionary, n_estimators=8, random_state=3, min_samples_leaf=2)
    model.fit(X[:200], y[:200])
    rows = model.predict_proba(X)
    leaves = model.apply(X)
    larger = np.concatenate([X.astype(np.int64), np.full((1, *shape), 300)])
    for other in (X.astype(np.int64), X.astype(np.float32), larger):
        np.testing.assert_array_equal(model.predict_proba(other)[:700], rows)
        np.testing.assert_array_equal(model.apply(other)[:700], leaves)
    for size in (1, 3, 100, 600):
        np.testing.assert_array_equal(model.predict_proba(X[:size]), rows[:size])


@pytest.mark.parametrize(
    ("shape", "dictionary"),
    [
        ((9, 11), Patch((1, 1), (5, 8))),
        ((9, 11), Patch((1, 1), (2, 9))),
        ((9, 11), Patch(1, 3, boundary="wrap")),
        ((9, 11), Patch(1, 3, contiguous=(False, True))),
        ((3, 9, 11), Patch(1, 2)),
    ],
    ids=["high", "wide", "wrap", "not contiguous", "deep"],
)
def test_only_narrow_patches_are_summed_over_bytes(shape, dictionary):
    assert not resolve(dictionary, shape).build(direct=False).narrow_patches
