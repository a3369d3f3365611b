"""The studies of coverage and of deviations: from data to rows, and from rows to tables."""

import importlib.util

import numpy as np
import pytest

from experiments import coverage, deviations
from experiments.store import Store, Task

NEEDS = {"MAPIE": "mapie", "quantile-forest": "quantile_forest"}


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("study", [coverage, deviations])
def test_no_two_tasks_are_the_same(study, quick):
    keys = [tuple(task.key.values()) for task in study.tasks(quick)]
    assert len(set(keys)) == len(keys) > 0


def small(method, monkeypatch):
    monkeypatch.setattr(coverage, "TREES", 60)
    monkeypatch.setattr(coverage, "TEST_SAMPLES", 300)
    sets = method in coverage.methods_of()[coverage.CLASSES]
    data = coverage.CLASSES if sets else coverage.VARYING
    key = {"data": data, "n": 200, "method": method, "repeat": 0}
    return Task(coverage.STUDY, key)


@pytest.mark.parametrize("method", coverage.METHODS)
def test_methods_cover(method, monkeypatch):
    for word, module in NEEDS.items():
        # MAPIE calibrates quantiles of the other library.
        needed = word in method or method == "MAPIE, conformal quantiles"
        if needed and importlib.util.find_spec(module) is None:
            pytest.skip(f"{word} is not installed")
    row = coverage.run(small(method, monkeypatch))
    for level in coverage.LEVELS:
        assert abs(row[coverage.column("coverage", level)] - level) < 0.12
    widths = [row[coverage.column("width", level)] for level in coverage.LEVELS]
    assert widths[0] < widths[1] < widths[2]


def test_tables_of_coverage(tmp_path, monkeypatch):
    store = Store(tmp_path)
    for method in ("predict_interval", "predict_set"):
        task = small(method, monkeypatch)
        store.append(task, coverage.run(task), 1.0)
    coverage.figures(tmp_path, tmp_path)
    for name in ("intervals", "sets"):
        text = (tmp_path / f"coverage-{name}.md").read_text()
        assert text.count("| 200 |") == 1
        assert "commit" in text


@pytest.mark.parametrize("data", coverage.methods_of())
def test_data_to_train_and_to_test_are_of_one_kind(data):
    X, y = coverage.make(data, 300, 6)
    other, _ = coverage.make(data, coverage.TEST_SAMPLES, 7)
    assert X.shape == (300, other.shape[1])
    assert len(y) == 300
    assert not np.isin(X[:, 0], other[:, 0]).any()
    np.testing.assert_allclose(X.mean(axis=0), other.mean(axis=0), atol=0.5)


def test_methods_are_compared_on_the_same_training_sets():
    seen = {"predict_interval": [0, 1, 2], "quantile-forest": [0, 2, 5]}
    rows = [
        {"data": coverage.EQUAL, "n": 100, "method": method, "repeat": repeat}
        for method, repeats in seen.items()
        for repeat in repeats
    ]
    kept = coverage.on_shared_repeats(rows)
    assert [row["repeat"] for row in kept] == [0, 2, 0, 2]


def test_a_deviation_from_data_to_table(tmp_path):
    key = {"n": 60, "share": 0.3, "leaf": 1, "trees": 200, "repeats": 12}
    task = Task(deviations.STUDY, key)
    row = deviations.run(task)
    assert 0.5 < row["jackknife"] / row["variance"] < 2
    Store(tmp_path).append(task, row, 1.0)
    deviations.figures(tmp_path, tmp_path)
    assert "| 60 | 30% | 1 | 200 |" in (tmp_path / "deviations.md").read_text()
