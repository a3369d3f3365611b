"""The studies of missing values and of unequal lengths: from data to rows, from rows to tables."""

import importlib.util

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from experiments import lengths, missing, paper, realdata, verdicts
from experiments.store import Store, Task


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Small sets in place of files, and few trees."""

    def small_set(name):
        random = np.random.RandomState(0)
        y = np.array([0, 1] * 20)
        X = random.normal(size=(40, 2, 12)).astype(np.float32) + y[:, None, None]
        rows = np.arange(40)
        return realdata.DataSet(name, X, y, ((rows[:30], rows[30:]),))

    monkeypatch.setattr(realdata, "load", small_set)
    monkeypatch.setattr(missing, "TREES", 10)
    missing.load.cache_clear()
    with threadpool_limits(1):  # as in the workers; more would wait for each other
        yield
    missing.load.cache_clear()


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("study", [missing, lengths])
def test_no_two_tasks_are_the_same(study, quick):
    tasks = study.tasks(quick)
    keys = {tuple(task.key.values()) for task in tasks}
    assert len(keys) == len(tasks) > 0
    names = {task.key["classifier"] for task in tasks}
    assert {task.key["classifier"] for task in paper.cheapest(tasks)} == names


@pytest.mark.parametrize("share", missing.SHARES)
@pytest.mark.parametrize("shape", [(400, 3, 20), (400, 30)])
def test_as_many_values_are_missing_as_said(shape, share):
    X = np.ones(shape)
    gone = {
        how: np.isnan(missing.remove(X, how, share, 1)) for how in (missing.RANDOM, missing.BLOCKS)
    }
    assert gone[missing.RANDOM].mean() == pytest.approx(share, abs=0.02)
    assert (gone[missing.BLOCKS].sum(axis=-1) == round(share * shape[-1])).all()
    changes = (gone[missing.BLOCKS] != np.roll(gone[missing.BLOCKS], 1, axis=-1)).sum(axis=-1)
    assert (changes == 2).all()  # one block, on a circle
    everywhere = gone[missing.BLOCKS].reshape(-1, shape[-1]).mean(axis=0)
    np.testing.assert_allclose(everywhere, share, atol=0.1)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("how", [missing.MEAN, missing.LINE, missing.KNN, missing.ITERATIVE])
def test_what_is_filled_in_comes_from_training_samples(how):
    random = np.random.default_rng(0)
    X = missing.remove(random.normal(size=(40, 2, 6)), missing.RANDOM, 0.4, 2)
    X[3] = np.nan
    X[:, 1, 5] = np.nan
    train, test = missing.fill(how, X[:30], X[30:], 0)
    for before, after in ((X[:30], train), (X[30:], test)):
        assert np.isfinite(after).all()
        known = ~np.isnan(before)
        np.testing.assert_allclose(after[known], before[known])
    again, _ = missing.fill(how, X[:30], X[30:] * 100, 0)
    np.testing.assert_array_equal(again, train)


def test_lines_between_neighbours():
    line = np.array([[[np.nan, 1, np.nan, np.nan, 4, np.nan], [np.nan] * 6]])
    found = missing.interpolated(line)
    assert found[0, 0].tolist() == [1, 1, 2, 3, 4, 4]
    assert np.isnan(found[0, 1]).all()


@pytest.mark.parametrize("cut", lengths.CUTS)
def test_series_are_cut(cut):
    X = np.arange(200 * 2 * 20.0).reshape(200, 2, 20)
    parts = lengths.shortened(X, cut, 3)
    sizes = {part.shape[1] for part in parts}
    assert sizes == set(range(8, 21))
    for whole, part in zip(X, parts, strict=True):
        first = int(part[0, 0] - whole[0, 0])
        np.testing.assert_array_equal(part, whole[:, first : first + part.shape[1]])
        assert cut != lengths.END or first == 0
        assert cut != lengths.START or first + part.shape[1] == 20


def tasks_of(study, classifiers, **key):
    return [
        Task(study.STUDY, {**key, "classifier": name, "repeat": i})
        for name in classifiers
        for i in (0, 1)
    ]


def test_missing_values_from_data_to_tables(tmp_path):
    store = Store(tmp_path)
    for data, series in (("GunPoint", True), ("wine", False)):
        key = {"data": data, "removed": missing.BLOCKS, "share": 0.3}
        for task in tasks_of(missing, missing.PEERS, **key):
            rows = missing.run(task)
            assert [row["filled"] for row in rows] == [missing.AS_THEY_ARE, *missing.FILLS[series]]
            assert all(0 <= row["accuracy"] <= 1 for row in rows)
            store.append(task, rows, 1.0)
    missing.figures(tmp_path, tmp_path)
    text = (tmp_path / "missing-series-accuracy.md").read_text()
    assert f"| {missing.FOREST} | filled: line |" in text
    assert f"| {missing.FOREST} | as they are |" in text
    assert "commit" in (tmp_path / "missing-summary.md").read_text()


def test_differences_in_the_tables():
    scores = {}
    for data in ("GunPoint", "ECG200"):
        cell = scores[data, missing.RANDOM, 0.3] = {}
        for classifier in missing.OURS[True]:
            cell[classifier, missing.AS_THEY_ARE] = {0: 0.9, 1: 0.92, 2: 0.94}
            cell[classifier, missing.MEAN] = {0: 0.8, 1: 0.82, 2: 0.83}
    text = missing.summary_table(scores)
    assert (
        "| series | forest patch | filled: mean | 2 | 2 | 0 | 0 | 0 | +10.3 ± 1.4, better |" in text
    )
    assert "line" not in text  # which nobody measured
    cells = missing.sorted_cells(scores, True)
    assert [cell[0] for cell in cells] == ["GunPoint", "ECG200"]
    assert "| +10.3 ± 1.4, better |" in missing.cell_table(scores, cells, True)


def test_lengths_from_data_to_tables(tmp_path):
    if importlib.util.find_spec("aeon") is None:
        pytest.skip("aeon is not installed")
    store = Store(tmp_path)
    for task in tasks_of(lengths, [missing.FOREST], data="GunPoint", cut=lengths.END):
        rows = lengths.run(task)
        assert [row["lengths"] for row in rows] == list(lengths.BY_AEON)
        store.append(task, rows, 1.0)
    lengths.figures(tmp_path, tmp_path)
    assert "aeon: resized" in (tmp_path / "lengths-accuracy.md").read_text()


def test_our_lists_need_no_padding():
    model = lengths.make("forest patch", "stretch", 0)
    data = missing.load("GunPoint")
    parts = lengths.shortened(data.X, lengths.BOTH, 0)
    assert model.fit(parts, data.y).data_shape_ == (2, 12)
    assert lengths.make("boosting", "right", 0).align == "right"
    assert lengths.make("boosting", lengths.PADDED, 0).align == "left"


# --- verdicts -------------------------------------------------------------------------------------


def test_verdicts():
    found = verdicts.difference([0.9, 0.91, 0.92], [0.8, 0.8, 0.8])
    assert found.mean == pytest.approx(0.11)
    assert found.half == pytest.approx(4.3027 * 0.01 / np.sqrt(3), rel=1e-4)
    assert found.verdict == verdicts.BETTER
    assert found.text() == "+11.0 ± 2.5, better"
    assert verdicts.difference([0.8, 0.9], [0.9, 0.8]).verdict == verdicts.NOISE
    same = verdicts.difference([0.8, 0.9], [0.8, 0.9])
    assert (same.mean, same.half, same.p, same.verdict) == (0.0, 0.0, 1.0, verdicts.NOISE)
    assert verdicts.difference([0.8, 0.9], [0.9, 1.0]).verdict == verdicts.WORSE
    assert verdicts.difference([0.8], [0.9]).text() == "-10.0"
    assert verdicts.difference([0.8], [0.9]).verdict == verdicts.NOISE


def test_intervals_cover():
    random = np.random.default_rng(0)
    found = [verdicts.difference(random.normal(size=10), np.zeros(10)) for _ in range(2000)]
    share = np.mean([difference.verdict == verdicts.NOISE for difference in found])
    assert share == pytest.approx(0.95, abs=0.015)


def test_summaries():
    random = np.random.default_rng(0)
    up = (0.9 + 0.001 * random.normal(size=10), np.full(10, 0.8))
    none = (random.normal(size=10) * 0.01, random.normal(size=10) * 0.01)
    found = verdicts.summary([up, none, up[::-1]])
    assert sum(found.counts.values()) == 3
    assert found.counts[verdicts.BETTER] == found.firm[verdicts.WORSE] == 1
    assert found.overall.mean == pytest.approx(0, abs=0.01)
