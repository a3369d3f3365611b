"""The paper's experiments: rows that survive a kill, workers that may die, studies, claims."""

import math
import os
import re

import numpy as np
import pytest

from experiments import (
    beyond_images,
    beyond_series,
    beyond_simulations,
    claims,
    complexity,
    durations,
    importance,
    misspecification,
    mnist,
    models,
    page,
    paper,
    published,
    runner,
    simulations,
    style,
)
from experiments.progress import Progress, duration
from experiments.store import Store, Task, read
from measuring import tables
from measuring.figures import light, save


def task(**key):
    return Task("study", key, cost=1.0)


# --- store ----------------------------------------------------------------------------------------


def test_rows_carry_their_key_and_where_they_come_from(tmp_path):
    store = Store(tmp_path)
    store.append(task(data="A", n=10), {"error": 0.25, "seed": 3}, seconds=1.5)
    (row,) = read(tmp_path, "study")
    assert {name: row[name] for name in ("data", "n", "error", "seed", "seconds")} == {
        "data": "A",
        "n": 10,
        "error": 0.25,
        "seed": 3,
        "seconds": 1.5,
    }
    assert "morforest" in row["versions"]
    assert "numpy" in row["versions"]
    assert row["date"].startswith("20")


def test_what_is_done_is_not_done_again(tmp_path):
    store = Store(tmp_path)
    tasks = [task(data="A", n=n) for n in (10, 50, 100)]
    assert store.pending(tasks) == tasks
    store.append(tasks[1], [{"fold": 0}, {"fold": 1}], 1.0)
    assert Store(tmp_path).pending(tasks) == [tasks[0], tasks[2]]


def test_a_torn_line_is_as_good_as_none(tmp_path):
    store = Store(tmp_path)
    first, second = task(n=1), task(n=2)
    store.append(first, {"error": 0.1}, 1.0)
    whole = store.path("study").read_text()
    store.append(second, {"error": 0.2}, 1.0)
    store.path("study").write_text(store.path("study").read_text()[:-30])
    assert len(read(tmp_path, "study")) == 1
    assert store.pending([first, second]) == [second]
    store.append(second, {"error": 0.2}, 1.0)
    assert [row["error"] for row in read(tmp_path, "study")] == [0.1, 0.2]
    assert store.path("study").read_text().startswith(whole)


def test_a_torn_header_is_written_again(tmp_path):
    store = Store(tmp_path)
    store.path("study").write_text("n,err")
    store.append(task(n=1), {"error": 0.1}, 1.0)
    assert [row["error"] for row in read(tmp_path, "study")] == [0.1]


def test_rows_of_another_form_are_refused(tmp_path):
    store = Store(tmp_path)
    store.append(task(n=1), {"error": 0.1}, 1.0)
    with pytest.raises(ValueError, match="move the file away"):
        store.append(task(n=2), {"loss": 0.1}, 1.0)
    with pytest.raises(SystemExit, match="no column 'data'"):
        store.pending([task(n=1, data="A")])


# --- runner ---------------------------------------------------------------------------------------

STUDY = """
import os
import signal

def run(task):
    if task.key["n"] == 1:
        raise RuntimeError("one is too few")
    if task.key["n"] == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"threads": os.environ["OMP_NUM_THREADS"], "process": os.getpid()}
"""


@pytest.fixture
def study(tmp_path, monkeypatch):
    folder = tmp_path / "studies"
    folder.mkdir()
    (folder / "study.py").write_text(STUDY)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_outlives_its_workers(study, jobs):
    finished, failed = {}, {}
    runner.run(
        [task(n=n) for n in range(6)],
        jobs,
        lambda task, rows, seconds: finished.update({task.key["n"]: (rows, seconds)}),
        lambda task, reason: failed.update({task.key["n"]: reason}),
        package="studies",
    )
    assert sorted(finished) == [0, 3, 4, 5]
    assert {rows["threads"] for rows, _ in finished.values()} == {"1"}
    assert os.getpid() not in {rows["process"] for rows, _ in finished.values()}
    assert all(seconds >= 0 for _, seconds in finished.values())
    assert failed[1].startswith("RuntimeError: one is too few (study.py:")
    assert "process died (exit code -9)" in failed[2]


# --- progress -------------------------------------------------------------------------------------


class Lines(list):
    def write(self, text):
        self.append(text)

    def flush(self):
        pass

    def isatty(self):
        return False


def test_time_left_learns_from_what_was_measured():
    tasks = [Task("study", {"classifier": name, "n": n}, 100.0) for n in range(4) for name in "ab"]
    progress = Progress(tasks, jobs=2, stream=Lines())
    assert progress.seconds_left() == pytest.approx(400)
    for finished in tasks[:4]:  # a takes twice as long as was thought, b half as long
        progress.finish(finished, 200.0 if finished.key["classifier"] == "a" else 50.0)
    left = progress.seconds_left()
    assert left == pytest.approx((2 * 200 + 2 * 50) / 2, rel=0.1)
    for finished in tasks[4:]:
        progress.finish(finished)
    assert progress.seconds_left() == 0


def test_progress_says_what_and_how_long():
    lines = Lines()
    first = task(n=1)
    progress = Progress([first, task(n=2)], jobs=1, stream=lines)
    progress.finish(first, 1.0)
    assert "1/2" in lines[0]
    assert "left" in lines[0]
    assert str(first) in lines[0]
    assert [duration(s) for s in (20, 600, 7200)] == ["20 s", "10 min", "2.0 h"]


# --- versions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lock", "studies"),
    [
        ("paper", ("simulations", "mnist", "series")),
        ("theory", ("coverage", "deviations")),
        ("eeg", ("eeg",)),
    ],
)
def test_locked_are_the_versions_that_results_come_from(lock, studies):
    lines = (page.ROOT / "experiments" / f"{lock}.lock").read_text().splitlines()
    locked = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert list(locked) == sorted(locked)
    for study in studies:
        for text in {row["versions"] for row in read(page.FOLDER, study)}:
            found = dict(item.split() for item in text.split("; "))
            for library in found.keys() - {"python", "morforest"}:
                assert locked[library] == found[library].partition("+")[0], (study, library)


# --- the whole ------------------------------------------------------------------------------------


def test_a_run_goes_on_where_it_was(tmp_path, capsys):
    words = ["--only", "projections", "--jobs", "1", "--out", str(tmp_path)]
    assert paper.main([*words, "--match", "dictionary=RF: Axis()"]) == 0
    assert "1 tasks to do" in capsys.readouterr().err
    assert paper.main([*words, "--list"]) == 0
    assert "5 tasks to do" in capsys.readouterr().err
    assert (tmp_path / "projections.png").stat().st_size > 10_000


def test_wrong_options():
    with pytest.raises(SystemExit):
        paper.arguments(["--jobs", "0"])
    with pytest.raises(SystemExit):
        paper.arguments(["--match", "data"])
    with pytest.raises(SystemExit):
        paper.arguments(["--only", "nothing"])


# --- studies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("quick", [True, False])
def test_simulations_cover_the_paper(quick):
    tasks = simulations.tasks(quick)
    keys = [tuple(task.key.values()) for task in tasks]
    assert len(set(keys)) == len(keys)
    assert {task.key["data"] for task in tasks} == {"A", "A-line", "B", "C", "D", "E"}
    classifiers = {task.key["classifier"] for task in tasks}
    assert classifiers <= set(style.CLASSIFIERS)
    assert len(classifiers) == 13  # the eleven of the paper, and MORF with two other patches
    if not quick:
        assert {task.key["n"] for task in tasks if task.key["data"] == "A-line"} == set(
            published.errors("A-line")["MORF"]
        )
        assert {task.key["repeat"] for task in tasks} == set(range(5))
        assert {task.key["test_samples"] for task in tasks} == {10_000}


def test_a_simulation_from_data_to_row():
    key = {"data": "C", "n": 50, "classifier": "RF", "repeat": 1, "test_samples": 400}
    row = simulations.run(Task("simulations", key))
    assert 0.1 < row["error"] < 0.5
    assert row["seed"] == 1
    assert 1 < row["leaf_depth"] <= row["height"] < row["leaves"] <= 50
    assert simulations.run(Task("simulations", key))["error"] == row["error"]


def test_patches_wrap_where_the_name_says_so():
    key = {"data": "A", "n": 200, "repeat": 0, "test_samples": 500}
    errors = [
        simulations.run(Task("simulations", {**key, "classifier": name}))["error"]
        for name in ("MORF", simulations.WRAPPING)
    ]
    assert errors[1] < errors[0] < 0.4


def test_patches_are_short_where_the_name_says_so():
    key = {"data": "D", "n": 1000, "repeat": 0, "test_samples": 1000}
    errors = [
        simulations.run(Task("simulations", {**key, "classifier": name}))["error"]
        for name in ("MORF", simulations.SHORT)
    ]
    assert errors[1] < errors[0] < 0.2


def test_training_images_are_nested_and_have_every_class():
    y = np.random.RandomState(0).randint(10, size=2000)
    for repeat in range(3):
        rows = mnist.chosen(y, 500, repeat)
        assert len(set(rows)) == 500
        np.testing.assert_array_equal(mnist.chosen(y, 20, repeat), rows[:20])
        assert len(set(y[rows[:10]])) == 10
    assert not np.array_equal(mnist.chosen(y, 50, 0), mnist.chosen(y, 50, 1))


def test_slow_methods_are_repeated_less_often():
    assert mnist.repeats("RBF SVM", 5000) == 5
    assert mnist.repeats("RBF SVM", 10_000) == 3
    assert mnist.repeats("RBF SVM", 60_000) == 1
    assert mnist.repeats("MORF", 60_000) == 5
    assert mnist.repeats("ConvNet", 10_000) == 5
    assert mnist.repeats("ConvNet", 60_000) == 5


def test_misspecification_is_told_in_deviations_of_the_optimum():
    reference = np.array([0.8, 0.9, 1.0])
    np.testing.assert_allclose(
        misspecification.z_scores(np.array([0.9, 0.7]), reference), [0, -2], atol=1e-12
    )
    rows = [
        {
            **dict(zip(misspecification.SETTING, (1, 1, 1, width), strict=True)),
            **{"data": "C", "stage": stage, "fold": fold, "accuracy": 0.5 + width * sign / 10},
        }
        for width in (1, 2)
        for stage, sign in (("grid", 1), ("folds", -1))
        for fold in (0, 1)
    ]
    # The grid decides, whatever the folds say.
    assert misspecification.optimum(rows, "C") == [(1, 1, 1, 2)]
    # Half a grid may not hold the optimum.
    begun = [row for row in rows if row["stage"] == "folds" or row["max_columns"] == 1]
    assert misspecification.optimum(begun, "C") == []


def test_misspecification_counts_both_sides_and_tells_ties():
    accuracies = {  # by largest width: the grid, and the folds at the smaller size
        1: ((1.0, 1.0), (0.4, 0.6)),
        2: ((0.9, 0.9), (0.9, 0.9)),
        4: ((0.9, 0.9), (0.5, 0.6)),
        8: ((0.8, 0.8), (0.1, 0.2)),
    }

    def rows(data, values):
        return [
            {
                **dict(zip(misspecification.SETTING, (1, 1, 1, width), strict=True)),
                **{"data": data, "stage": stage, "fold": fold, "accuracy": accuracy},
            }
            for width, stages in values.items()
            for stage, folds in zip(("grid", "folds"), stages, strict=True)
            for fold, accuracy in enumerate(folds)
        ]

    found = misspecification.compare(rows("C", accuracies), "C")
    assert found[1:8] == ["1,600 / 450", "width 1", "3 of 4", "0.500 ± 0.141", 1, 2, 1]
    assert found[9:] == ["width 1-2", "0.900", "width 1-8", "0.150"]
    tied = {width: ((1.0, 1.0), folds[1]) for width, folds in accuracies.items()}
    found = misspecification.compare(rows("C", tied), "C")
    assert found[2:8] == [
        "a tie of 4 at 1.000",
        "from 1 to 4 of 4",
        "0.150 to 0.900",
        *["", "", ""],
    ]


def test_few_bars_are_trained_on_one_fold_at_a_time(monkeypatch):
    small = {"grid": (40, 4, 1), "folds": (24, 4, 2)}
    monkeypatch.setattr(misspecification, "FEW_STAGES", small)
    assert misspecification.trained("B-few", "grid") == 10
    assert misspecification.trained("B", "grid") == 1600
    sizes = dict(zip(misspecification.SETTING, (2, 2, 2, 9), strict=True))
    key = {"data": "B-few", "stage": "folds", **sizes}
    rows = misspecification.run(Task("misspecification", key))
    assert [row["fold"] for row in rows] == [0, 1, 2, 3]
    # Eighteen samples test each forest of six.
    assert all((18 * row["accuracy"]) == pytest.approx(round(18 * row["accuracy"])) for row in rows)


def test_roughness_of_a_map():
    assert importance.roughness(np.full((28, 28), 0.3)) == 0
    board = np.indices((28, 28)).sum(axis=0) % 2
    assert importance.roughness(board) == pytest.approx(2)


# --- claims and pages -----------------------------------------------------------------------------


def test_published_rates():
    assert published.errors("MNIST")["MORF"][60_000] == 0.0276
    assert published.errors("A-line")["MORF"][10] == 0.504
    assert published.errors("A") == {}  # what the authors ran never wrapped
    assert pytest.approx(0.1201, abs=5e-5) == published.BEST_OF_C


def test_verdicts():
    assert claims.verdict(np.array([-0.1, 0.1])) == claims.YES
    assert claims.verdict(np.array([-0.1, 0.2])) == claims.NEAR  # 0.05, standard error 0.15
    assert claims.verdict(np.array([0.1, 0.2])) == claims.NO
    assert claims.verdict(np.array([0.1])) == claims.NO
    assert math.isnan(tables.standard_error([0.1]))


def row(data, n, classifier, repeat, error, leaves=""):
    names = ("data", "n", "classifier", "repeat", "error", "leaves")
    return dict(zip(names, (data, n, classifier, repeat, error, leaves), strict=True))


def test_claims_compare_what_they_say():
    rows = [
        *(row("C", 10, "MORF", r, 0.18, 5) for r in range(3)),
        *(row("C", 10, "SPORF", r, 0.30, 8) for r in range(3)),
        *(row("C", 10, "RF", r, 0.35, 4) for r in range(3)),
        *(row("C", 10, "kNN", r, 0.17) for r in range(3)),
        *(row("C", 10, "ConvNet", r, 0.05) for r in range(3)),
        *(row("B", 2000, "MORF", r, 0.1, 2) for r in range(3)),
        *(row("B", 2000, "RF", r, 0.0, 2) for r in range(3)),
    ]
    _, lines = claims.against_published(rows)
    assert [(line[0], line[-1]) for line in lines] == [("B", claims.NO), ("C", claims.YES)]
    _, lines = claims.smaller("leaves")(rows)
    assert [(line[0], line[-1]) for line in lines] == [("C", claims.NO)]
    # kNN is better; a ConvNet would not count, nor bars where everyone is right.
    _, ((data, _, _, best, gap, met),) = claims.contests(rows)
    assert (data, best, gap, met) == ("C", "kNN .1700", "+0.0100 ± 0.0000", claims.NO)


def test_contests_are_tested_in_pairs():
    gaps = {"SPORF": (0.11, 0.1, 0.12, 0.1), "kNN": (-0.01, 0.02, -0.02, 0.02), "MLP": (0.3,)}
    rows = [row("C", 10, "MORF", r, 0.2 + r / 100) for r in range(4)]
    for name, values in gaps.items():
        rows += [row("C", 10, name, r, 0.2 + r / 100 + gap) for r, gap in enumerate(values)]
    rows.append(row("C", 10, "ConvNet", 0, 0.01))
    header, (line,) = claims.tests(rows)
    found = dict(zip(header, line, strict=True))
    assert found["best other"] == "kNN"
    assert found["MORF less it [95 %]"] == "-0.0025 [-0.0353, +0.0303]"
    assert [found[key] for key in ("lower than", "undecided", "higher than")] == [1, 1, 0]
    assert (found["not tested"], found["MORF is lowest"]) == (1, claims.OPEN)
    _, lines = claims.tests_summary([line])
    assert lines == [["C", "", "10", ""]]


@pytest.mark.parametrize(
    ("seconds", "met"), [(1.2, claims.YES), (0.9, claims.NO), (1.7, claims.NO)]
)
def test_slightly_longer_is_neither_shorter_nor_much_longer(seconds, met):
    times = {"MORF": seconds, "SPORF": 1.0}
    rows = [
        {**row("C", 10, name, r, 0.1), "train_seconds": s + r, "test_seconds": s * (1 + r)}
        for name, s in times.items()
        for r in range(2)
    ]
    compare = claims.longer("MORF", "SPORF", 1, claims.SLIGHTLY)
    _, (training, testing) = compare(rows)
    assert training[0] == "C, training"
    assert testing == ["C, testing", "10", f"{seconds:.2f}", met]
    said = claims.times_verdict({"slightly": compare(rows)}).splitlines()
    less = int(seconds < 1)
    assert said[1] == (
        f"- In testing, MORF takes {seconds:.2f} to {seconds:.2f} times the CPU-seconds of SPORF, "
        f"and less at {less} of 1 sizes."
    )


def test_growth_is_told_beside_the_formula():
    rows = [
        {
            **row("B", n, name, r, 0.1),
            "train_seconds": 1e-3 * n * (2 if name == "RF" else 1),
            "leaf_depth": 3.0,
        }
        for n in (100, 200, 2000)
        for name in style.FORESTS
        for r in range(2)
    ]
    ((data, span, formula, *found),) = complexity.growth(rows)
    assert (data, span, formula) == ("B", "200 to 2,000", "x 21")  # 10 (log 2000 / log 200)^2
    assert found == ["x 10"] * 3 + ["1.00"] * 3 + ["x 10"] * 3
    # As many candidates as RF; patches have up to 2 x 9 pixels.
    assert complexity.per_candidate(rows) == [["B", "2,000", "1.0", "2 x 9", "x 18", "x 0.50"]]


def test_figures_come_as_pixels_and_as_lines(tmp_path):
    rows = [
        row("B", n, name, r, r * 0.01) for n in (50, 200) for name in ("RF", "MORF") for r in (0, 1)
    ]
    figure, panels = style.plt.subplots(1, 2, layout="constrained")
    style.draw_curves(panels[0], rows, "n", "error")
    style.draw_dots(panels[1], rows, "n", "error")
    for axes in panels:
        style.log_errors(axes)
    style.legend(figure, panels)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["MORF", "RF"]
    save(figure, tmp_path / "figure.png")
    first = (tmp_path / "figure.svg").read_text()
    assert ">MORF</text>" in first
    assert ">0.0001</text>" in first
    assert "<dc:date>" not in first
    assert (tmp_path / "figure.png").stat().st_size > 5000


def test_no_two_lines_of_a_figure_differ_in_colour_alone():
    """Names that one figure may show, by their line and their mark."""
    for names in (
        models.NAMES,
        ("MORF", simulations.WRAPPING, simulations.SHORT, "SPORF", "RF"),
        (*beyond_images.DRAWN,),
        *((*found, *beyond_simulations.PEERS) for found in beyond_simulations.CLASSIFIERS.values()),
    ):
        looks = [style.CLASSIFIERS[name] for name in dict.fromkeys(names)]
        marks = {(str(look.get("linestyle", "-")), *mark(look)) for look in looks}
        assert len(marks) == len(looks), names


def mark(look):
    return look["marker"], look.get("markerfacecolor")


def test_dots_differ_in_their_marks():
    series = (*beyond_series.OURS, *beyond_series.PEERS)
    simulated = {name for names in beyond_simulations.CLASSIFIERS.values() for name in names}
    for names in (series, (*simulated, *beyond_simulations.PEERS)):
        looks = [style.CLASSIFIERS[name] for name in dict.fromkeys(names)]
        assert len({mark(look) for look in looks}) == len(looks), names


def test_svg_files_are_light():
    heavy = [p.name for p in page.FOLDER.glob("*.svg") if p.stat().st_size > 300_000]
    assert heavy == []


def test_places_of_an_svg_are_rounded_and_its_text_is_not():
    given = '<g>\n  <path d="M 1.23456 -2 \nL 3.5 0.00049 "/>\n  <text x="1.0049">0.00012</text>'
    expected = '<g>\n<path d="M 1.23 -2  L 3.5 0.00 "/>\n<text x="1.00">0.00012</text>'
    assert light(given) == expected


def test_tables_go_to_their_places(tmp_path):
    (tmp_path / "known.md").write_text("| a |\n")
    other = "<!-- table other -->\nold\n<!-- end -->\n"
    text = "x\n<!-- table known -->\nold\n<!-- end -->\n" + other
    expected = "x\n<!-- table known -->\n\n| a |\n\n<!-- end -->\n" + other
    assert page.filled(text, tmp_path) == expected
    assert page.filled(expected, tmp_path) == expected
    (tmp_path / "docs").mkdir()
    pages = [tmp_path / "README.md", tmp_path / "docs" / "page.md"]
    for path in pages:
        path.write_text(text)
    assert page.fill(tmp_path, tmp_path) == ["other", "other"]
    assert [path.read_text() for path in pages] == [expected, expected]


def test_durations_go_to_their_places_within_a_sentence(tmp_path):
    (tmp_path / "duration-paper.md").write_text("about 2 hours\n")
    text = (
        "It takes <!-- duration paper -->a day<!-- end -->, or <!--\nduration x -->one<!-- end -->."
    )
    expected = text.replace("a day", "about 2 hours")
    assert page.filled(text, tmp_path) == expected
    assert page.names(text) == ["duration-paper", "duration-x"]


def test_pages_show_what_the_results_say():
    for path in page.pages():
        text = path.read_text()
        assert page.filled(text, page.FOLDER) == text, f"{path.name} is out of date: make figures"
        missing = [name for name in page.names(text) if not (page.FOLDER / f"{name}.md").exists()]
        assert missing == [], path.name


def test_a_duration_counts_a_task_once_and_cpu_time_where_rows_have_it():
    def rows(*seconds, **more):
        return [{"seconds": s, "date": f"day {s}", **more} for s in seconds]

    assert durations.elapsed(rows(5.0, 5.0, 7.0)) == 12.0
    assert durations.work(rows(5.0, 5.0)) == 5.0
    assert durations.work(rows(5.0, 5.0, train_seconds=1.0, test_seconds=0.5)) == 3.0
    assert durations.text(2 * 3600 * 3.4) == "about 3.5 hours"
    assert durations.text(2 * 60 * 41) == "about 40 minutes"


NUMBER = r"(\d[\d.]*|an?|one|two|three|four|five|ten|half)"
DURATION_WORDS = re.compile(rf"\b{NUMBER}( (and a half|or \w+|to \w+))? (hours?|minutes?)\b")


@pytest.mark.parametrize("command", paper.COMMANDS)
def test_no_page_says_by_itself_how_long_a_command_takes(command):
    """Durations stand in marked places, which are generated."""
    typed = []
    for path in (*page.pages(), page.ROOT / "Makefile"):
        text = page.DURATION.sub("", page.TABLE.sub("", path.read_text()))
        typed += [
            f"{path.name}: {line}"
            for line in text.splitlines()
            if re.search(rf"(make |^){command}\b", line) and DURATION_WORDS.search(line)
        ]
    assert typed == []


def test_the_smallest_run_has_one_task_of_each_classifier():
    tasks = [
        Task("study", {"classifier": name, "n": n}, float(n)) for name in "ab" for n in (3, 1, 2)
    ]
    assert paper.cheapest(tasks) == [tasks[1], tasks[4]]
    plain = [Task("study", {"n": n}, float(n)) for n in (3, 1)]
    assert paper.cheapest(plain) == [plain[1]]
