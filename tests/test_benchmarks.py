"""The benchmarks: workers without morforest, schedules and tables; and the smoke runs of make."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import client, data, plan, reports, results, sections, targets
from measuring import arrays, machine, smoke, tables
from measuring.files import read_rows, write_whole

ROOT = Path(__file__).resolve().parent.parent
# The environments of other libraries have no morforest; None makes its import fail here too.
WITHOUT_US = "import sys; sys.modules['morforest'] = None; "


@pytest.fixture
def small_set(tmp_path):
    random = np.random.RandomState(0)
    y = np.arange(80) % 2
    X = (random.normal(size=(80, 4, 5)) + 2 * y[:, None, None]).astype(np.float32)
    path = tmp_path / "set.npz"
    arrays.save(path, X[:40], y[:40], X[40:], y[40:])
    return path


WORK = {
    "task": "classification",
    "trees": 5,
    "candidates": 4,
    "shape": (4, 5),
    "smallest": (1, 1),
    "largest": (2, 2),
    "boundary": "zero",
}


def test_workers_of_other_libraries_need_no_morforest(small_set):
    program = WITHOUT_US + (
        "sys.argv = ['worker', 'scikit-learn']; from benchmarks import worker; worker.main()"
    )
    requests = [
        {"command": "versions", "arguments": {}},
        {
            "command": "fit",
            "arguments": {
                "model": "scikit-learn RF",
                "path": str(small_set),
                "rows": 40,
                "work": WORK,
                "threads": 1,
                "seed": 0,
            },
        },
    ]
    done = subprocess.run(
        [sys.executable, "-c", program],
        input="".join(json.dumps(request) + "\n" for request in requests),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    versions, fitted = (json.loads(line) for line in done.stdout.splitlines())
    assert versions["result"]["library"] == "scikit-learn"
    assert fitted["result"]["score"] > 0.8


def test_the_near_end_runs_our_models_in_a_worker(small_set):
    with client.Clients({"morforest": sys.executable}) as clients:
        worker = clients.get("morforest", 1)
        request = {"path": str(small_set), "rows": 40, "work": WORK, "threads": 1, "seed": 0}
        assert worker("fit", model=plan.MORF, **request)["score"] > 0.8
        key = worker("fit_unless_held", model=plan.RF, **request)
        assert worker("size", key=key) > 100
        with pytest.raises(client.WorkerError, match="KeyError"):
            worker("fit", model="nothing", **request)


def test_arrays_come_back_as_they_were(small_set):
    X, y, X_test, y_test = arrays.load(small_set)
    assert X.shape == X_test.shape == (40, 4, 5)
    assert X.dtype == np.float32
    np.testing.assert_array_equal(y, np.arange(40) % 2)
    assert len(y_test) == 40
    assert [path.name for path in small_set.parent.iterdir()] == ["set.npz"]


@pytest.mark.parametrize("name", ["table-200x10-2", "friedman-200x10", "impulse-50"])
def test_generated_sets_depend_on_their_name_alone(name, tmp_path, monkeypatch):
    monkeypatch.setattr(data, "TEST_ROWS", 100)
    made = []
    for folder in ("a", "b"):
        monkeypatch.setattr(data, "FOLDER", tmp_path / folder)
        made.append(arrays.load(data.make(name)))
    for first, second in zip(*made, strict=True):
        np.testing.assert_array_equal(first, second)
    assert len(made[0][2]) == 100


def test_repeats_take_turns():
    found = list(sections.schedule({"a": 3, "b": 1}))
    assert [what for _, what in found].count("a") == 3
    assert [what for _, what in found].count("b") == 1
    assert [repeat for repeat, _ in found] == sorted(repeat for repeat, _ in found)


def test_every_section_has_a_report():
    assert set(reports.REPORTS) == set(sections.SECTIONS)
    assert {target.section for target in targets.TARGETS} <= set(sections.SECTIONS)


def test_reports_of_the_stored_results_are_written_again_alike(tmp_path):
    """Tables come from the CSV files alone."""
    for name in sections.SECTIONS:
        stored = results.FOLDER / f"{name}.csv"
        (tmp_path / stored.name).write_bytes(stored.read_bytes())
        reports.write(tmp_path, name)
        old, new = ((folder / f"{name}.md").read_text() for folder in (results.FOLDER, tmp_path))
        table = [line for line in new.splitlines() if line.startswith("| ")]
        assert table == [line for line in old.splitlines() if line.startswith("| ")], name


def test_rows_of_a_sheet_come_back(tmp_path):
    sheet = results.Sheet(tmp_path, "section", results.run_facts())
    sheet.add(library_version="0.10", score=0.5, rows=3)
    (row,) = results.read(tmp_path / "section.csv")
    assert (row["library_version"], row["score"], row["rows"]) == ("0.10", 0.5, 3)
    assert row["cpu_model"] == machine.cpu_model()
    with pytest.raises(ValueError, match="do not fit"):
        sheet.add(score=1.0)


def test_files_are_whole_and_torn_lines_are_left_out(tmp_path):
    path = tmp_path / "new" / "rows.csv"
    write_whole(path, "name,value\na,1\nb,2.5\nc")
    assert read_rows(path) == [{"name": "a", "value": 1}, {"name": "b", "value": 2.5}]
    assert read_rows(path, texts=("value",))[0]["value"] == "1"
    assert read_rows(tmp_path / "nothing.csv") == []


def test_numbers_as_text():
    assert tables.rate(0.0276) == ".0276"
    assert tables.rate_and_error([0.1, 0.3]) == ".2000 ± .1000"
    assert tables.mean_and_error([0.5]) == "0.5000"
    assert tables.median_and_range([3, 1, 2], 1) == "2.0 (1.0 - 3.0)"
    assert tables.markdown(["a"], [[1]]) == "| a |\n| --- |\n| 1 |\n"


def test_every_target_that_help_lists_has_a_smoke_run():
    listed = smoke.listed((ROOT / "Makefile").read_text())
    assert "bench" in listed
    assert set(smoke.TARGETS) == set(listed)
    assert list(smoke.TARGETS)[-1] == "clean"  # it removes what the others need


def test_smoke_runs_are_small():
    assert smoke.command("bench") == ["make", "bench", "BENCH=--tiny --stand-in"]
    for target in ("paper", "paper-quick", "beyond", "beyond-quick", "bench-quick"):
        assert "--tiny" in smoke.command(target)[-1]
    assert smoke.arguments(["--only", "demo"]).only == ["demo"]
    with pytest.raises(SystemExit):
        smoke.arguments(["--only", "nothing"])


def test_a_smoke_run_fails_if_its_target_or_its_check_does(tmp_path, monkeypatch):
    (tmp_path / "Makefile").write_text("good:\n\ttrue\nbad:\n\tfalse\n")
    monkeypatch.setattr(smoke, "TARGETS", {"good": {}, "bad": {}})
    monkeypatch.setattr(smoke, "UNCHANGED", {})
    assert smoke.run("good", tmp_path)
    assert not smoke.run("bad", tmp_path)
    monkeypatch.setattr(smoke, "UNCHANGED", {"good": ["false"]})
    assert not smoke.run("good", tmp_path)
