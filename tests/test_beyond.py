"""The studies beyond the paper: what they run, and what their tables conclude."""

import importlib
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from experiments import (
    beyond,
    beyond_claims,
    beyond_series,
    beyond_simulations,
    beyond_tables,
    beyond_volumes,
    eeg,
    mechanisms,
    mnist,
    page,
    paper,
    realdata,
    series,
    store,
    style,
)
from experiments.claims import NO, YES
from experiments.mechanism_comparisons import COMPARISONS, REMOVED
from experiments.store import Task
from measuring import tables
from morforest import AtomRidgeClassifier, ImageCopies, MorfBoostingClassifier, MorfClassifier


def small_set(name):
    random = np.random.RandomState(0)
    y = np.array([0, 1] * 15)
    X = random.normal(size=(30, 2, 12)) + y[:, None, None]
    rows = np.arange(30)
    return realdata.DataSet(name, X, y, ((rows[:20], rows[20:]),))


@pytest.fixture
def data(monkeypatch):
    """The studies without files."""
    monkeypatch.setattr(series, "load", small_set)
    monkeypatch.setattr(mnist, "images", lambda: None)
    monkeypatch.setattr(mechanisms, "reason_against", lambda name: None)
    monkeypatch.setattr(beyond_volumes, "volumes", lambda: None)


# --- estimators -----------------------------------------------------------------------------------


def test_a_name_says_what_an_estimator_is():
    forest = beyond.make("forest series-pooled", seed=3, channel_axis=1).model
    assert type(forest) is MorfClassifier
    assert (forest.dictionary, forest.channel_axis, forest.random_state) == ("series-pooled", 1, 3)
    assert forest.n_estimators == 500  # as for all forests of the paper
    boosting = beyond.make("boosting image + copies", seed=0).model
    assert type(boosting) is MorfBoostingClassifier
    assert boosting.dictionary == "image"
    assert type(boosting.augment) is ImageCopies
    assert beyond.make("boosting image", seed=0).model.augment is None
    ridge = beyond.make("ridge", seed=0).model
    assert type(ridge) is AtomRidgeClassifier
    assert ridge.dictionary is None
    for name in ("tree image", "boosting image + more"):
        with pytest.raises(ValueError, match="name must be"):
            beyond.make(name, seed=0)


def test_peers_are_all_others():
    assert all(map(beyond.ours, ("forest auto", "boosting", "ridge", beyond.WRAPPING)))
    assert not any(map(beyond.ours, ("MORF", "RF (scikit-learn)", "ConvNet", "MiniRocket")))


# --- tasks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("name", paper.BEYOND)
def test_every_task_is_another_and_has_a_look(data, name, quick):
    tasks = importlib.import_module(f"experiments.{name}").tasks(quick)
    keys = [tuple(task.key.values()) for task in tasks]
    assert len(set(keys)) == len(keys) > 0
    assert {task.study for task in tasks} == {name}
    assert all(task.cost > 0 for task in tasks)
    shown = {task.key["classifier"] for task in tasks if "classifier" in task.key}
    assert shown <= set(style.CLASSIFIERS)
    assert bool(shown) == (name != "mechanisms")


def test_quick_studies_are_smaller(data):
    for name in paper.BEYOND:
        study = importlib.import_module(f"experiments.{name}")
        costs = [sum(task.cost for task in study.tasks(quick)) for quick in (True, False)]
        assert costs[0] < costs[1] / 3


def test_sets_that_are_not_there_are_named(data, monkeypatch, capsys):
    def load(name):
        if name != "Coffee":
            raise realdata.Unavailable(f"{name} is not here")
        return small_set(name)

    monkeypatch.setattr(series, "load", load)
    assert {task.key["data"] for task in beyond_series.tasks(False)} == {"Coffee"}
    assert "LEFT OUT NATOPS is not here" in capsys.readouterr().err
    monkeypatch.setattr(beyond_series, "SETS", ("NATOPS",))
    with pytest.raises(realdata.Unavailable, match="NATOPS"):
        beyond_series.tasks(False)


def test_the_studies_are_chosen_by_one_word():
    assert paper.arguments([]).only == paper.STUDIES
    assert paper.arguments(["--beyond"]).only == paper.BEYOND
    assert paper.arguments(["--beyond", "--only", "beyond_series"]).only == ["beyond_series"]


# --- runs -----------------------------------------------------------------------------------------


def test_a_simulation_from_data_to_row():
    key = {"data": "D", "n": 50, "classifier": "forest patch", "repeat": 1, "test_samples": 200}
    row = beyond_simulations.run(Task("beyond_simulations", key))
    assert 0 < row["error"] < 0.6
    assert row["seed"] == 1
    assert row["leaves"] > 1


@pytest.mark.parametrize("classifier", ["ridge", "RF (scikit-learn)"])
def test_a_set_of_series_from_data_to_row(data, classifier):
    key = {"data": "GunPoint", "classifier": classifier, "repeat": 0}
    row = beyond_series.run(Task("beyond_series", key))
    assert row["error"] < 0.3
    assert (row["n"], row["test_samples"]) == (20, 10)


def test_volumes_from_data_to_row(monkeypatch):
    random = np.random.RandomState(0)
    y = np.array([0, 1] * 20)
    X = random.randint(100, size=(40, 4, 5, 6)) + 80 * y[:, None, None, None]
    rows = np.arange(40)
    made = realdata.DataSet("adrenal", X, y, ((rows[:30], rows[30:]),))
    monkeypatch.setattr(beyond_volumes, "volumes", lambda: made)
    for classifier in beyond_volumes.CLASSIFIERS:
        key = {"data": "adrenal", "classifier": classifier, "repeat": 0}
        row = beyond_volumes.run(Task("beyond_volumes", key))
        assert row["auc"] > 0.9
        assert row["n"] == 30


@pytest.mark.parametrize("name", beyond_tables.KINDS)
def test_kinds_of_tables(name):
    X, X_test, y, y_test = beyond_tables.samples(name, 0, 300, 200)
    again = beyond_tables.samples(name, 0, 300, 200)
    other = beyond_tables.samples(name, 1, 300, 200)
    np.testing.assert_array_equal(X, again[0])
    assert not np.array_equal(X_test, other[1])
    assert X.shape[1] == X_test.shape[1]
    kind = beyond_tables.KINDS[name]
    if not kind.real:
        assert (len(X), len(X_test)) == (300, 200)
    classes = kind.measure == beyond_tables.ACCURACY
    assert (len(np.unique(y)) <= 10) == classes
    if classes:
        assert set(np.unique(y)) == set(np.unique(y_test))


@pytest.mark.parametrize("data", ["wine", "diabetes", "sphere (Hastie)"])
def test_a_table_from_data_to_row(data):
    real = beyond_tables.KINDS[data].real
    sizes = {"generated": "" if real else 100, "tested": "" if real else 50}
    key = {"data": data, "classifier": beyond_tables.RIVAL, "repeat": 0, **sizes}
    row = beyond_tables.run(Task("beyond_tables", key))
    assert row["score"] > 0.2
    assert row["measure"] == beyond_tables.KINDS[data].measure


def test_estimators_of_tables_fit_the_targets():
    for classifier in (beyond_tables.OURS, beyond_tables.RIVAL, beyond.PEER):
        for measure, end in (
            (beyond_tables.R2, "Regressor"),
            (beyond_tables.ACCURACY, "Classifier"),
        ):
            assert type(beyond_tables.make(classifier, measure, 0)).__name__.endswith(end)
    with pytest.raises(ValueError, match="classifier must be one of"):
        beyond_tables.make("kNN", beyond_tables.R2, 0)


# --- tables ---------------------------------------------------------------------------------------


def rows(data, n, classifier, *losses, **more):
    return [
        {
            "data": data,
            "n": n,
            "classifier": classifier,
            "repeat": repeat,
            "error": loss,
            "loss": loss,
            "auc": 1 - loss,
            "score": 1 - loss,
            "train_seconds": 1.0,
            **more,
        }
        for repeat, loss in enumerate(losses)
    ]


def studies(**found):
    return {name: found.get(name, []) for name in beyond_claims.STUDIES}


def verdicts(found):
    return {line[0]: line[-1] for line in beyond_claims.claims(found) if line[-1]}


def test_nothing_is_claimed_without_rows(tmp_path):
    lines = beyond_claims.claims(studies())
    assert len(lines) >= len(beyond_claims.TARGETS) + 5
    assert {line[2] for line in lines} == {beyond_claims.NOT_MEASURED}
    beyond_claims.write(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_claims_on_images_compare_the_same_images():
    found = [
        *rows("MNIST", 1000, "boosting image", 0.036, 0.038),
        *rows("MNIST", 1000, "boosting image + copies", 0.03),
        *rows("MNIST", 1000, "ConvNet", 0.031, 0.01),  # on the first images it is worse
        *rows("MNIST", 10_000, "forest image", 0.03, 0.03),
        *rows("MNIST", 10_000, "ConvNet", 0.02, 0.02),
    ]
    met = verdicts(studies(images=found))
    assert met == {
        "MNIST, n = 1,000: error of *boosting image*": YES,
        "MNIST, n = 1,000: error of *boosting image + copies*": NO,
        "MNIST, n = 1,000: error of the best of ours, *boosting image + copies*": YES,
        "MNIST, n = 10,000: error of the best of ours, *forest image*": NO,
    }


def test_claims_on_series_are_over_all_sets():
    def all_sets(sets):
        found = []
        for name in sets:
            found += rows(name, 20, "ridge", 0.1, 0.1)
            found += rows(name, 20, "forest series", 0.14, 0.15)
            found += rows(name, 20, "MiniRocket", 0.12, 0.12)
        return found

    assert verdicts(studies(series=all_sets(beyond_series.SETS[1:]))) == {}
    met = verdicts(studies(series=all_sets(beyond_series.SETS)))
    assert list(met.values()) == [YES, NO]  # .145 is more than .015 above .12
    text = beyond_series.table(all_sets(beyond_series.SETS))
    assert "| *mean of the 11 above* | .1450 ± .0050 | **.1000 ± .0000** | .1200 ± .0000 |" in text


def test_claims_on_volumes_and_tables():
    volumes = [
        *rows("adrenal", 9, "forest patch", 0.10, 0.12),
        *rows("adrenal", 9, "forest image", 0.16, 0.16),
        *rows("adrenal", 9, "RF (scikit-learn)", 0.15, 0.17),
    ]
    tables = [
        *rows("additive", 9, "boosting", 0.104, 0.104),
        *rows("additive", 9, "HistGradientBoosting", 0.1, 0.1),
    ]
    met = verdicts(studies(volumes=volumes, tables=tables))
    assert list(met.values()) == [YES, NO, YES]  # four tenths of a point behind
    tables += [
        *rows("wine", 9, "boosting", 0.11, 0.11),
        *rows("wine", 9, "HistGradientBoosting", 0.1, 0.1),
    ]
    line = beyond_claims.behind_rival(tables)
    assert line[2:] == ["1 of 2: wine (-1.00)", NO]


def test_losses_are_written_down():
    found = studies(
        simulations=[
            *rows("A", 50, "forest series", 0.2, 0.2),
            *rows("A", 50, "forest auto", 0.3, 0.3),
            *rows("A", 50, "MORF", 0.25, 0.25),
            *rows("A", 200, "forest series", 0.2, 0.2),
            *rows("A", 200, "ConvNet", 0.1, 0.1),
            *rows("A", 200, "MORF", 0.15, 0.15),
        ]
    )
    _, lines = beyond_claims.lost(found)
    assert [line[1:3] for line in lines] == [["A", "200"]]
    assert lines[0][-2:] == ["ConvNet .1000 ± .0000", "+0.1000 ± 0.0000"]
    _, lines = beyond_claims.contests(found)
    assert lines == [
        ["simulations", "forest auto", 1, 0, 1, "A 50"],
        ["simulations", "forest series", 2, 1, 1, "A 200"],
    ]
    assert beyond_claims.lost(studies())[1][0][0] == "none"


def test_the_table_to_choose_by():
    found = studies(
        simulations=[
            *rows("C", 200, "forest series", 0.2, 0.3),
            *rows("C", 200, "forest patch", 0.15),
            *rows("C", 200, "MORF", 0.14),
            *rows("C", 200, "RF (scikit-learn)", 0.4),
            *rows("C", 50, "forest series", 0.9),
        ],
        series=rows("finger", 20, "ridge", 0.5),
    )
    header, lines = beyond_claims.choice(found, "loss", tables.rate)
    texts = {line[0]: dict(zip(header[1:], line[1:], strict=True)) for line in lines}
    assert len(texts) == 2
    line = texts["an impulse in one place: C, n = 200"]
    assert line["forest, patches"] == ".1500"
    assert line["MORF, the paper's setting"] == "**.1400**"
    assert line['forest, "image" or "series"'] == ".2500"
    assert line["random forest"] == ".4000"
    assert line["best other"] == ""
    assert texts["EEG: finger movements"]["ridge"] == "**.5000**"


def test_on_finger_movements_the_methods_of_eeg_are_peers_too(monkeypatch, tmp_path):
    def row(data, classifier, accuracy):
        return {
            "set": data,
            "classifier": classifier,
            "fold": 0,
            "train_rows": 20,
            "accuracy": accuracy,
        }

    measured = [
        row("finger", "tangent space + LR", 0.9),
        row("finger", "ridge", 0.8),  # which the series have measured themselves
        row("n400", "sLDA", 1.0),
    ]
    monkeypatch.setattr(eeg, "rows", lambda csvs: measured)
    found = studies(series=rows("finger", 20, "ridge", 0.5))
    wider = beyond_claims.with_eeg(found, tmp_path)
    assert [(row["classifier"], round(row["loss"], 9)) for row in wider["series"]] == [
        ("ridge", 0.5),
        ("tangent space + LR", 0.1),
    ]
    (line,) = beyond_claims.lost(wider)[1]
    assert line[3:5] == ["ridge .5000", "tangent space + LR .1000"]
    assert beyond_claims.with_eeg(studies(), tmp_path) == studies()


def test_the_table_of_the_best_says_which_setting_patches_have():
    found = studies(
        images=[
            *rows("MNIST", 100, "boosting image", 0.1),
            *rows("MNIST", 100, "MORF", 0.2),
            *rows("MNIST", 100, "ConvNet", 0.15),
        ],
        simulations=[
            *rows("A", 200, "forest series", 0.01),
            *rows("A", 200, "forest patch", 0.35),
            *rows("A", 200, "MORF", 0.17),
        ],
    )
    header, lines = beyond_claims.plain_and_best(found)
    assert header[2:4] == ["MORF, the paper's setting", "MORF, all defaults"]
    assert [line[2:] for line in lines] == [
        [".2000", "", ".1000 (boosting image)", ".1500 (ConvNet)"],
        [".1700", ".3500", ".0100 (forest series)", ""],
    ]


def test_every_table_of_the_pages_is_written(tmp_path, monkeypatch):
    found = SimpleNamespace(
        beyond_images=rows("MNIST", 100, "forest image", 0.1, 0.2),
        beyond_simulations=[
            row for name in "ABCD" for row in rows(name, 50, "forest patch", 0.1, 0.2)
        ],
        beyond_series=rows("Coffee", 28, "ridge", 0.1, 0.0),
        beyond_volumes=rows("adrenal", 9, "forest patch", 0.1, 0.2),
        beyond_tables=rows("wine", 9, "boosting", 0.1, 0.2),
        mechanisms=[
            {**row, "group": "tables", "setting": name, "data": "noisy labels", "repeat": 0}
            for name in ("guided sums", "sums")
            for row in rows("noisy labels", 9, name, 0.1)
        ],
    )
    for name in paper.BEYOND:
        study = importlib.import_module(f"experiments.{name}")
        monkeypatch.setattr(study, "read", lambda _, what: getattr(found, what, []))
        study.figures(tmp_path, tmp_path)
    beyond_claims.write(tmp_path)
    for name in ("docs/beyond", "docs/choose"):
        text = (page.ROOT / f"{name}.md").read_text()
        wanted = [table for table in page.names(text) if not table.startswith("duration-")]
        assert wanted
        assert [table for table in wanted if not (tmp_path / f"{table}.md").exists()] == []
    pictures = {path.name for path in tmp_path.glob("*.png")}
    assert pictures == {
        f"beyond-{name}.png" for name in ("images", "simulations", "series", "tables")
    }


# --- mechanisms -----------------------------------------------------------------------------------


def test_every_comparison_names_settings_of_its_group():
    for comparison in COMPARISONS:
        group = mechanisms.GROUPS[comparison.group]
        assert comparison.on != comparison.off
        assert {comparison.on, comparison.off} <= {*group.settings, *REMOVED}
        assert comparison.off in group.settings
        assert set(comparison.data) <= set(group.data)


def test_every_setting_is_compared_or_is_compared_with():
    for name, group in mechanisms.GROUPS.items():
        used = {
            setting
            for comparison in COMPARISONS
            if mechanisms.GROUPS[comparison.group].settings is group.settings
            for setting in (comparison.on, comparison.off)
        }
        assert set(group.settings) <= used - set(REMOVED), name


def test_the_table_shows_mechanisms_that_were_removed(tmp_path):
    shutil.copy(store.FOLDER / "mechanisms.csv", tmp_path)
    mechanisms.figures(tmp_path, tmp_path)
    table = (tmp_path / "mechanisms.md").read_text()
    assert table == (store.FOLDER / "mechanisms.md").read_text()
    assert all(f"| {setting} |" in table for setting in REMOVED)


@pytest.mark.parametrize("group", ["patches", "sensors", "tables"])
def test_settings_of_mechanisms_fit(group):
    key = {"group": group, "data": mechanisms.GROUPS[group].data[0], "repeat": 0}
    found = mechanisms.run(Task("mechanisms", key))
    assert [row["setting"] for row in found] == list(mechanisms.GROUPS[group].settings)
    assert all(row["error"] < 0.6 for row in found)


def mechanism_rows(on, off):
    """Errors by data set: one list of repeats with the mechanism, one without it."""
    return [
        {
            "group": "tables",
            "data": data,
            "repeat": repeat,
            "setting": setting,
            "error": error,
            "train_seconds": 1.0 if setting == "sums" else 3.0,
        }
        for setting, by_data in (("guided sums", on), ("sums", off))
        for data, errors in by_data.items()
        for repeat, error in enumerate(errors)
    ]


def test_a_mechanism_gains_if_its_difference_exceeds_two_standard_errors():
    comparison = next(c for c in COMPARISONS if (c.on, c.off) == ("guided sums", "sums"))
    a, b = mechanisms.GROUPS["tables"].data[:2]
    found = mechanism_rows({a: [0.1, 0.1], b: [0.3, 0.3]}, {a: [0.12, 0.11], b: [0.31, 0.32]})
    line = mechanisms.compared(found, comparison)
    assert line[4:8] == [".2000", ".2150", "-0.0150 ± 0.0035", "3.00"]
    assert line[-1] == mechanisms.GAIN
    assert mechanisms.verdict(0.02, 0.005) == mechanisms.LOSS
    assert mechanisms.verdict(0.009, 0.005) == mechanisms.NEITHER
    assert mechanisms.verdict(0.009, float("nan")) == mechanisms.NEITHER
    assert mechanisms.compared(found[:4], comparison) is None
