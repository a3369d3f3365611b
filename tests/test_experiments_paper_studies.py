"""Studies beside the paper's own: coupling without energy, iterations, treeple's forest."""

import json
import sys
import types

import numpy as np
import pytest

from experiments import (
    coupling,
    energy,
    iterations,
    models,
    patch_weights,
    peer_forest,
    simulations,
)
from experiments.store import Task
from morforest.datasets import DYNAMICS_STATE

# --- coupling -------------------------------------------------------------------------------------


def test_energy_tells_nothing_of_the_coupling():
    X, y = coupling.make(4000, seed=0)
    assert X.shape == (4000, 3, 100)
    strong = energy.energy(X) > np.median(energy.energy(X))
    assert abs(np.mean(strong == y) - 0.5) < 0.03
    assert np.mean(coupling.by_likelihood(X) != y) < 0.15


def test_answers_follow_the_system_and_have_equal_energy():
    quiet = coupling.follow(np.full(3, 0.5), np.zeros((100, 3)))
    np.testing.assert_allclose(quiet[:, 1], DYNAMICS_STATE @ np.full(3, 0.5))
    pushed = coupling.answers() - quiet
    sizes = (pushed**2).sum(axis=(3, 4))
    np.testing.assert_allclose(sizes[0], sizes[1])
    # Class 0 has an input on one channel alone, which nothing else has felt at the next step.
    assert np.count_nonzero(pushed[0, 0, 0, :, 21]) == 1
    assert np.count_nonzero(pushed[1, 0, 0, :, 21]) == 3
    np.testing.assert_allclose(pushed[0, 0, 0, 0, 21], 0.5 * coupling.STRENGTH)


def test_samples_of_a_larger_set_have_the_same_classes_in_turn():
    _, y = coupling.make(6, seed=1)
    assert y.tolist() == [0, 1, 0, 1, 0, 1]
    first, second = (coupling.make(50, seed=1)[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)


# --- weights --------------------------------------------------------------------------------------


def test_patches_have_the_weights_of_their_name():
    def error(name):
        key = {"data": "C", "n": 50, "weights": name, "repeat": 0, "test_samples": 500}
        return patch_weights.run(Task("patch_weights", key))["error"]

    errors = {name: error(name) for name in patch_weights.WEIGHTS}
    assert len(set(errors.values())) == 4
    key = {"data": "C", "n": 50, "classifier": "MORF", "repeat": 0, "test_samples": 500}
    row = simulations.run(Task("simulations", key))
    assert errors[patch_weights.SUMS] == row["error"]


def test_weights_are_compared_with_sums():
    names = ("data", "n", "weights", "repeat", "error", "train_seconds", "test_seconds")
    rows = [
        dict(zip(names, ("B", 100, name, r, error + r / 100, s, 0.1), strict=True))
        for name, error, s in ((patch_weights.SUMS, 0.1, 1.0), ("Gabor", 0.2, 3.0))
        for r in range(3)
    ]
    _, (sums, gabor) = patch_weights.compare(rows)
    assert sums == ["B, n = 100", "1", ".1100 ± .0058", "", "", ""]
    assert gabor[2:] == [".2100 ± .0058", "**+0.1000 ± 0.0000**", "3.0", "1.0"]


# --- iterations -----------------------------------------------------------------------------------


def test_iterations_are_counted(monkeypatch):
    random = np.random.RandomState(0)
    X, y = random.randint(255, size=(300, 28, 28)).astype(np.uint8), np.arange(300) % 10
    monkeypatch.setattr(iterations.mnist, "images", lambda: (X, y, X[:100], y[:100]))
    key = {"classifier": iterations.LOGISTIC, "n": 100, "limit": 3, "repeat": 0}
    assert iterations.run(Task("iterations", key))["iterations"] == 3


# --- treeple --------------------------------------------------------------------------------------


def test_treeple_is_asked_for_the_papers_patches():
    given = peer_forest.settings("C", (100,))
    assert (given["data_dims"], given["min_patch_dims"], given["max_patch_dims"]) == (
        (1, 100),
        [1, 2],
        [1, 12],
    )
    assert given["max_features"] == 30
    assert peer_forest.settings("B", (28, 28))["max_features"] == 28


def test_the_worker_of_treeple_answers_in_a_line(tmp_path, monkeypatch):
    from experiments import treeple_worker

    class Guess:
        def __init__(self, **settings):
            self.settings = settings

        def fit(self, X, y):
            assert self.settings == {"max_features": 2}
            assert X.shape == (4, 2)

        def predict(self, X):
            return np.zeros(len(X))

    monkeypatch.setitem(
        sys.modules, "treeple", types.SimpleNamespace(PatchObliqueRandomForestClassifier=Guess)
    )
    np.savez(
        tmp_path / "x.npz",
        X=np.ones((4, 2)),
        y=[0, 1, 0, 1],
        X_test=np.ones((4, 2)),
        y_test=[0, 0, 0, 1],
    )
    found = treeple_worker.fit_and_test(str(tmp_path / "x.npz"), {"max_features": 2})
    assert json.loads(json.dumps(found))["error"] == 0.25


def test_patches_inside_from_data_to_row():
    key = {"data": "C", "n": 50, "classifier": peer_forest.INSIDE, "repeat": 0}
    row = peer_forest.run(Task("peer_forest", key))
    assert 0.1 < row["error"] < 0.3
    X, y, X_test, y_test = simulations.samples("C", 50, 0, simulations.TEST_SAMPLES)
    model = models.make("MORF", "C", (100,), 2, 50, seed=0, threads=1)
    assert np.mean(model.fit(X, y).predict(X_test) != y_test) != row["error"]


def test_forests_are_compared_on_the_repeats_that_all_have():
    def row(classifier, repeat, error):
        names = ("data", "n", "classifier", "repeat", "error")
        return dict(zip(names, ("C", 50, classifier, repeat, error), strict=True))

    rows = [row(peer_forest.PEER, r, 0.2 + r / 100) for r in range(3)]
    rows += [row(peer_forest.INSIDE, r, 0.2 + r / 100) for r in range(3)]
    rows += [row(peer_forest.OURS, r, 0.1 + r / 100) for r in range(5)]
    _, (line,) = peer_forest.compare(rows)
    assert line[:3] == ["C", "50", 3]
    assert line[-2:] == ["**-0.1000 [-0.1000, -0.1000]**", "+0.0000 [+0.0000, +0.0000]"]


@pytest.mark.parametrize("study", [coupling, iterations, patch_weights, peer_forest])
def test_small_runs_are_small(study, monkeypatch):
    monkeypatch.setattr(iterations.mnist, "images", lambda: None)
    assert 0 < len(study.tasks(True)) < len(study.tasks(False))
