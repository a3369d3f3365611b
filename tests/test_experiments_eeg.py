"""The study of EEG: sets, splits, the field's classifiers, rows and tables."""

import importlib.util
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import signal

from experiments import eeg, eeg_models, eeg_tables, paper, realdata
from experiments.store import Store, Task

ABOUT = eeg.Set("flicker", eeg.ACCURACY, 100.0, (8.0, 11.0, 14.0))
FOLDS = ((np.arange(30), np.arange(30, 45)),)


def flicker(noise=1.0, seed=0):
    """Return trials of three classes, each a frequency that one mixture of four channels has."""
    random = np.random.RandomState(seed)
    y = np.arange(45) % 3
    time = np.arange(200) / ABOUT.sfreq
    waves = np.sin(2 * np.pi * np.array(ABOUT.frequencies)[y, None] * time)
    mixing = np.array([1.0, -1.0, 0.5, 0.0])
    X = mixing[:, None] * waves[:, None] + noise * random.normal(size=(45, 4, 200))
    return X.astype(np.float32), y


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """One small set in place of the files."""
    X, y = flicker()
    monkeypatch.setattr(eeg, "load", lambda name: realdata.DataSet(name, X, y, FOLDS))
    monkeypatch.setattr(eeg, "SETS", {"ssvep": ABOUT})


# --- splits ---------------------------------------------------------------------------------------


def test_runs_are_left_out_one_by_one():
    found = {"y": np.zeros(6), "block": np.array([0, 0, 1, 1, 2, 2])}
    folds = realdata.folds_of(found, "block")
    assert [test.tolist() for _, test in folds] == [[0, 1], [2, 3], [4, 5]]
    assert all(sorted([*train, *test]) == list(range(6)) for train, test in folds)


def test_of_each_person_the_last_blocks_are_for_testing():
    found = {
        "y": np.zeros(9),
        "subject": np.array([1, 1, 1, 1, 1, 2, 2, 2, 2]),
        "block": np.array([0, 1, 2, 3, 4, 0, 0, 1, 1]),
    }
    folds = realdata.folds_of(found, "subject")
    assert [(a.tolist(), b.tolist()) for a, b in folds] == [
        ([0, 1, 2], [3, 4]),  # two of five
        ([5, 6], [7, 8]),
    ]


def test_without_runs_each_trial_is_tested_twice():
    y = np.array([0, 1] * 20)
    folds = realdata.folds_of({"y": y}, "")
    assert len(folds) == 10
    tested = np.bincount(np.concatenate([test for _, test in folds]))
    assert tested.tolist() == [2] * 40
    assert all(y[test].mean() == 0.5 for _, test in folds)


def test_the_outline_sees_values_and_order_but_no_last_bit():
    X = np.random.RandomState(0).normal(size=(50, 3, 8)).astype(np.float32)
    same = realdata.outline(X).tolist()
    assert realdata.outline(np.nextafter(X, np.float32(9))).tolist() == same
    assert realdata.outline(X[::-1]).tolist() != same
    assert realdata.outline(X[:, ::-1]).tolist() != same
    assert realdata.outline(1.01 * X).tolist() != same


# --- classifiers ----------------------------------------------------------------------------------


def test_means_are_those_of_windows():
    X = np.arange(2 * 3 * 40, dtype=float).reshape(2, 3, 40)
    found = eeg_models.Means().fit(X).transform(X)
    assert found.shape == (2, 60)
    assert found[1, 20] == X[1, 1, :2].mean()
    assert eeg_models.Means().transform(X[:, :, :7]).shape == (2, 21)  # fewer steps than windows


def test_a_band_keeps_its_frequency_alone():
    time = np.arange(400) / 100
    X = np.sin(2 * np.pi * np.array([8.0, 14.0])[:, None] * time)[None]
    found = eeg_models.Bands((8.0, 14.0), 100.0).fit(X).transform(X)
    power = (found[0, :, 100:-100] ** 2).mean(axis=1)
    assert found.shape == (1, 4, 400)
    assert power[[0, 3]].min() > 0.3  # channel 0 in the first band, channel 1 in the second
    assert power[[1, 2]].max() < 0.02


def test_the_reproducible_channel_gets_the_weight():
    """The filter maximises the covariance between trials over that within them."""
    random = np.random.RandomState(1)
    wave = np.sin(np.arange(100))
    trials = random.normal(size=(12, 3, 100))
    trials[:, 1] += wave
    weights = eeg_models.reproducible(trials)
    assert abs(weights[1]) > 5 * max(abs(weights[[0, 2]]))

    def ratio(w):
        sums = (trials - trials.mean(axis=2, keepdims=True)).transpose(0, 2, 1) @ w
        gram = sums @ sums.T
        return (gram.sum() - np.trace(gram)) / np.trace(gram)

    assert all(ratio(weights) >= ratio(w) for w in random.normal(size=(50, 3)))


def test_trca_tells_frequencies_apart():
    X, y = flicker(noise=2.0)
    model = eeg_models.make(eeg_models.TRCA, ABOUT, 0).fit(X[:30], y[:30])
    assert np.mean(model.predict(X[30:]) == y[30:]) > 0.9
    assert model.predict_proba(X[30:]).shape == (15, 3)
    bands = list(eeg_models.Trca(100.0, 8.0)._bands(X))
    assert len(bands) == 5  # above 6, 14, 22, 30 and 38 Hz, of 45 at most
    frequencies, power = signal.periodogram(bands[1].mean(axis=(0, 1)), fs=100)
    assert power[frequencies < 10].sum() < 0.05 * power.sum()


@pytest.mark.parametrize("name", eeg_models.PEERS)
def test_every_peer_learns(name):
    """Those whose library is here: shrinkage LDA and TRCA need none."""
    needed = {
        eeg_models.XDAWN: "mne",
        eeg_models.CSP: "mne",
        eeg_models.EEGNET: "torch",
        eeg_models.MINIROCKET: "aeon",
        eeg_models.SLDA: None,
        eeg_models.TRCA: None,
        eeg_models.TRCA_PLAIN: None,
    }.get(name, "pyriemann")
    if needed and importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    random = np.random.RandomState(0)
    X, y = flicker()
    sources = random.normal(size=X.shape)
    sources[:, 0] *= 1 + y[:, None]  # power, which covariances see
    X = X + sources + 0.5 * y[:, None, None]
    model = eeg_models.make(name, ABOUT, 0).fit(X[:30], y[:30])
    assert np.mean(model.predict(X[30:]) == y[30:]) > 0.5
    np.testing.assert_allclose(model.predict_proba(X[30:]).sum(axis=1), 1, atol=1e-6)


def test_other_names_are_refused():
    pytest.importorskip("pyriemann")
    with pytest.raises(ValueError, match="name must be one of sLDA"):
        eeg_models.make("LDA", ABOUT, 0)


# --- rows and tables ------------------------------------------------------------------------------


def test_a_task_becomes_a_row(tmp_path):
    task = Task("eeg", {"set": "ssvep", "classifier": eeg_models.SLDA, "fold": 0})
    row = eeg.run(task)
    assert (row["train_rows"], row["test_rows"], row["classes"]) == (30, 15, 3)
    assert 0 <= row["accuracy"] <= 1
    assert row["trial_ms"] > 0
    Store(tmp_path).append(task, row, 1.0)
    (stored,) = eeg.rows(tmp_path)
    assert stored["score"] == stored["accuracy"]  # as the set says
    eeg.figures(tmp_path, tmp_path)
    assert "| sLDA |" in (tmp_path / "eeg-scores.md").read_text()
    assert (tmp_path / "eeg-scores.png").exists()


@pytest.mark.parametrize("quick", [True, False])
def test_tasks_leave_out_what_makes_no_sense(quick, monkeypatch):
    about = eeg.Set("words", eeg.AUC, 50, leaves_out=eeg.NO_STIMULI)
    monkeypatch.setattr(eeg, "SETS", {"ssvep": ABOUT, "n400": about})
    monkeypatch.setattr(eeg, "QUICK_SETS", ("ssvep", "n400"))
    keys = [tuple(task.key.values()) for task in eeg.tasks(quick)]
    assert len(keys) == len(set(keys))
    assert ("ssvep", eeg_models.TRCA, 0) in keys
    assert ("n400", eeg_models.TRCA, 0) not in keys
    assert paper.COMMANDS["eeg"] == ("eeg",)


SETS = {name: eeg.Set(name, eeg.AUC, 1.0) for name in ("finger", "n400", "ssvep")}


def scores(values, sets=SETS, main=("finger", "n400", "ssvep")):
    """Return the tables of {classifier: (score of each set)}, with two folds around each."""
    rows = [
        {
            "set": data,
            "classifier": name,
            "fold": fold,
            "score": score + (0.01 if fold else -0.01),
            "train_seconds": 4.0 if name == eeg_tables.DEFAULT else 1.0,
            "trial_ms": 1.5,
        }
        for name, of_sets in values.items()
        for data, score in zip(sets, of_sets, strict=True)
        if score is not None
        for fold in (0, 1)
    ]
    return eeg_tables.Scores(rows, sets, main)


def targets(**changed):
    values = {
        eeg_models.SLDA: (0.8, 0.7, 0.3),
        eeg_models.TANGENT: (0.88, 0.6, 0.4),
        eeg_models.TRCA_PLAIN: (None, None, 0.95),
        eeg_models.TRCA: (None, None, 0.98),
        eeg_models.EEGNET: (0.89, 0.6, 0.5),
        eeg_tables.DEFAULT: (0.89, 0.68, 0.97),
    } | changed
    lines = scores(values).targets().split("\n")[2:-1]
    return [line.split(" | ")[-1].strip(" |") for line in lines]


def test_targets_are_judged_one_by_one():
    yes, no = eeg_tables.YES, eeg_tables.NO
    assert targets() == [yes, yes, yes, yes, no, yes, yes, yes]
    found = targets(**{eeg_tables.DEFAULT: (0.87, 0.66, 0.94)})
    assert found == [yes, yes, no, no, no, no, yes, yes]
    assert targets(**{eeg_tables.DEFAULT: (0.9, 0.7, None)})[0] == ""  # not measured on all


def test_of_the_field_the_better_of_a_family_counts():
    first, second = eeg_models.TANGENT, eeg_models.TANGENT_EVOKED
    table = scores({first: (0.9, 0.6, 0.4), second: (0.8, 0.7, None), "ridge": (0.8, 0.8, 0.8)})
    assert np.isclose(table.overall(first, second), (0.9 + 0.7 + 0.4) / 3)
    assert table.overall(second) is None
    assert "the best of the field (tangent space) | .667 |" in table.targets()


def test_differences_name_the_strongest_peer():
    text = scores({"sLDA": (0.8, 0.7, 0.3), "MDM": (0.7, 0.8, 0.3), "ridge": (0.8, 0.7, 0.4)})
    lines = text.differences().split("\n")
    assert "| finger | ridge | .800 | sLDA | .800 |" in lines[2]
    assert "| n400 | ridge | .700 | MDM | .800 | -10.0" in lines[3]
    assert "+10.0 ± 0.0, better" in lines[4]
    strongest = text.strongest()
    assert "(sLDA)" in strongest
    assert "(ridge)" in strongest


def test_only_those_with_all_folds_can_be_strongest():
    table = scores({"sLDA": (0.8, 0.7, 0.3), eeg_tables.DEFAULT: (0.7, 0.7, 0.4)})
    rows = [*table.rows, {**table.rows[0], "classifier": "MDM", "score": 0.99}]
    again = eeg_tables.Scores(rows, SETS, tuple(SETS))
    assert again.best("finger", ("sLDA", "MDM")) == "sLDA"
    line = again.strongest().split("\n")[2]
    assert line == "| finger, AUC | .800 ± .127 (sLDA) | .700 ± .127 |  |"


def test_the_highest_score_of_each_column_is_bold():
    table = scores({"sLDA": (0.8, 0.7, 0.3), "ridge": (0.9, 0.6, None)}).scores()
    lines = {line.split(" | ")[0].strip("| "): line for line in table.split("\n")}
    assert lines["sLDA"].count("**") == 6  # two sets, and the only mean
    assert "**.900 ± " in lines["ridge"]
    facts = {"machine": "m", "versions": "v", "commit": "c", "date": "2026-01-01T00:00"}
    assert "commit c" in eeg_tables.facts([facts])


def test_the_time_of_one_trial_is_that_of_the_model_alone():
    calls = []
    inner = SimpleNamespace(predict=lambda X: calls.append(X.shape))
    model = SimpleNamespace(model_=inner, ready=lambda X: X)
    assert eeg.seconds_of_one(model, np.zeros((20, 4, 7))) >= 0
    assert calls == [(1, 4, 7)] * eeg.SINGLE_TRIALS
