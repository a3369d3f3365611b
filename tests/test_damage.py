"""Damaged states are refused when they are loaded, or are models that work; see damage.py."""

import numpy as np
import pytest
from damage import MODELS, damaged_pickle, model, run, samples, try_state, use

from morforest._native import core

STATES = 3000


@pytest.mark.parametrize("name", MODELS)
def test_undamaged_models_can_be_asked_everything(name):
    use(model(name))


@pytest.mark.xfail(
    not hasattr(core, "AtomList"), reason="windows are checked by the core's record", strict=False
)
def test_damaged_states_are_refused_or_work():
    counts, failures = run(STATES, seed=11)
    assert not failures, "\n".join(f"state {n}, {name}: {text}" for n, name, text in failures)
    for name, found in counts.items():
        assert found["refused"] > 20, name
        assert found["works"] > 20, name


def test_the_same_number_is_the_same_damage():
    states = {number: damaged_pickle("patches", 0, number) for number in range(20)}
    assert all(damaged_pickle("patches", 0, n) == state for n, state in states.items())
    assert len(set(states.values())) == len(states)


def test_a_failure_is_seen(monkeypatch):
    # A model that loads and then raises is a failure, and so is a refusal in other words.
    monkeypatch.setattr("damage.damaged_pickle", lambda *_: _pickled(Unusable()))
    outcome, text = try_state("patches", 0, 0)
    assert (outcome, "ZeroDivisionError" in text) == ("exception", True)
    monkeypatch.setattr("damage.damaged_pickle", lambda *_: _pickled(Refusing()))
    assert try_state("patches", 0, 0)[0] == "exception"


class Unusable:
    def predict(self, X):
        return np.ones(len(samples())) / (1 // 0)


class Refusing:
    def __setstate__(self, state):
        raise ValueError("something else")

    def __getstate__(self):
        return {"some": "state"}


def _pickled(thing):
    import pickle

    return pickle.dumps(thing)
