"""The study of time series: its splits, its rows, its tables and its figures."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from experiments import realdata, series, series_choice, series_figures, series_tables, stats
from experiments.store import Task
from morforest import AtomFeatures


class Flat(GaussianNB):
    """A quick classifier for samples of any shape."""

    def fit(self, X, y):
        return super().fit(X.reshape(len(X), -1), y)

    def predict(self, X):
        return super().predict(X.reshape(len(X), -1))

    def predict_proba(self, X):
        return super().predict_proba(X.reshape(len(X), -1))


def data_set(name="finger", groups=None, folds=None):
    random = np.random.RandomState(0)
    y = np.array([0, 0, 1] * 20)
    X = random.normal(size=(60, 2, 5)) + y[:, None, None]
    rows = np.arange(60)
    return realdata.DataSet(name, X, y, folds or ((rows[:24], rows[24:]),), groups)


@pytest.fixture
def made(monkeypatch):
    """The arguments of the models that were made."""
    calls = []

    def make(name, **arguments):
        calls.append({"name": name, **arguments})
        return Flat()

    monkeypatch.setattr(series, "models", SimpleNamespace(NAMES=("MORF", "kNN"), make=make))
    return calls


def use(monkeypatch, data):
    monkeypatch.setattr(series, "load", lambda name: data)


# --- splits ---------------------------------------------------------------------------------------


def test_the_first_fold_is_the_one_given():
    data = data_set()
    assert series.split(data, 0) is data.folds[0]


def test_resamples_keep_the_number_of_each_class_and_use_every_row_once():
    data = data_set()
    seen = set()
    for fold in range(1, series.FOLDS):
        train, test = series.split(data, fold)
        assert np.array_equal(np.bincount(data.y[train]), np.bincount(data.y[:24]))
        assert sorted([*train, *test]) == list(range(60))
        assert np.array_equal(train, series.split(data, fold)[0])  # the same each time
        seen.add(tuple(train))
    assert len(seen) == series.FOLDS - 1


def test_blocks_and_subjects_are_not_resampled():
    rows = np.arange(60)
    data = data_set(folds=((rows[:30], rows[30:]), (rows[30:], rows[:30])))
    assert series.folds_of(data) == 2
    assert series.folds_of(data_set()) == series.FOLDS


# --- rows -----------------------------------------------------------------------------------------


def test_a_row_has_the_scores_of_its_fold(made, monkeypatch):
    data = data_set()
    use(monkeypatch, data)
    row = series.run(Task("series", {"set": "finger", "classifier": "kNN", "fold": 3}, 1.0))
    train, test = series.split(data, 3)
    model = Flat().fit(data.X[train], data.y[train])
    probabilities = model.predict_proba(data.X[test])
    assert row["accuracy"] == pytest.approx(np.mean(model.predict(data.X[test]) == data.y[test]))
    assert row["kappa"] == pytest.approx(stats.kappa(data.y[test], model.predict(data.X[test])))
    assert row["auc"] == pytest.approx(stats.auc(data.y[test], probabilities), abs=1e-6)
    assert np.array(row["roc"].split(), float) == pytest.approx(
        stats.roc(data.y[test], probabilities[:, 1]), abs=1e-4
    )
    assert (row["train_rows"], row["test_rows"], row["scored"]) == (24, 36, 36)
    assert made[0] | {"shape": None} == {
        "name": "kNN",
        "data": "finger",
        "shape": None,
        "classes": 2,
        "rows": 24,
        "seed": 3,
        "threads": 1,
    }
    assert made[0]["shape"] == (2, 5)


def test_subjects_are_scored_once_each(made, monkeypatch):
    data = data_set("fragility", groups=np.array([f"s{i % 6}" for i in range(60)]))
    data = realdata.DataSet(data.name, data.X, np.arange(60) % 2, data.folds, data.groups)
    use(monkeypatch, data)
    row = series.run(Task("series", {"set": "fragility", "classifier": "kNN", "fold": 0}, 1.0))
    assert row["test_rows"] == 36
    assert row["scored"] == 6
    assert row["accuracy"] in [round(i / 6, 6) for i in range(7)]


def test_curves_are_kept_for_the_stand_ins_alone(made, monkeypatch):
    use(monkeypatch, data_set("GunPoint"))
    row = series.run(Task("series", {"set": "GunPoint", "classifier": "kNN", "fold": 0}, 1.0))
    assert row["roc"] == ""


def test_another_form_of_the_finger_data_has_the_same_hyperparameters(made, monkeypatch):
    use(monkeypatch, data_set(realdata.CONTRAST))
    series.run(Task("series", {"set": realdata.CONTRAST, "classifier": "kNN", "fold": 0}, 1.0))
    assert made[0]["data"] == "finger"


def test_tasks_leave_out_what_cannot_be_had(made, monkeypatch, capsys):
    def load(name):
        if name == "ssvep":
            raise realdata.Unavailable("ssvep is not here")
        return data_set(name)

    monkeypatch.setattr(series, "load", load)
    found = series.tasks(quick=False)
    assert {task.key["set"] for task in found} == set(realdata.RECORDINGS) - {"ssvep"}
    assert "LEFT OUT ssvep is not here" in capsys.readouterr().err
    assert len({tuple(task.key.values()) for task in found}) == len(found)
    quick = series.tasks(quick=True)
    assert {task.key["set"] for task in quick} == set(series.QUICK_SETS)
    assert len(quick) < len(found)


def test_tasks_without_any_data_say_why(made, monkeypatch):
    def load(name):
        raise realdata.Unavailable(f"{name} is not here")

    monkeypatch.setattr(series, "load", load)
    with pytest.raises(realdata.Unavailable, match="is not here"):
        series.tasks(quick=True)


# --- tables and figures ---------------------------------------------------------------------------


def rows_of(sets, classifiers, folds=4, seed=0):
    """Rows as they are read from the file: later classifiers are better by .05."""
    random = np.random.RandomState(seed)
    rows = []
    for name in sets:
        for fold in range(folds):
            hard = random.uniform(0, 0.2)
            for step, classifier in enumerate(classifiers):
                score = 0.6 + 0.05 * step - hard + random.uniform(0, 0.01)
                curve = np.minimum(1, stats.GRID**0.5 + 0.01 * fold)
                rows.append(
                    {
                        "set": name,
                        "classifier": classifier,
                        "fold": fold,
                        "accuracy": score,
                        "kappa": 2 * score - 1,
                        "auc": score,
                        "train_seconds": 0.1,
                        "roc": " ".join(f"{rate:.4g}" for rate in curve)
                        if name in series.CURVES
                        else "",
                    }
                )
    return rows


CLASSIFIERS = ["RF", "kNN", "SPORF", "MORF"]


def test_means_are_over_the_folds_that_all_have():
    rows = rows_of(["A"], ["MORF", "RF"])
    rows = [row for row in rows if (row["classifier"], row["fold"]) != ("RF", 2)]
    scores = series_tables.by_fold(rows, "accuracy")["A"]
    expected = [r["accuracy"] for r in rows if r["classifier"] == "MORF" and r["fold"] != 2]
    assert scores["MORF"].tolist() == expected


def test_comparisons_over_sets_take_complete_sets_of_their_own():
    rows = rows_of(["A", "B", realdata.CONTRAST], CLASSIFIERS)
    rows = [row for row in rows if (row["set"], row["classifier"]) != ("B", "kNN")]
    sets, classifiers, means = series_tables.complete(series_tables.by_fold(rows, "accuracy"))
    assert sets == ["A"]
    assert classifiers == sorted(CLASSIFIERS)
    assert means.shape == (1, 4)


def test_the_best_classifier_comes_first():
    scores = series_tables.by_fold(rows_of(["A", "B"], CLASSIFIERS), "accuracy")
    assert series_tables.ordered(scores) == CLASSIFIERS[::-1]


def test_the_table_over_sets_says_how_often_morf_is_better():
    table = series_tables.sets_table(rows_of("ABCDEF", CLASSIFIERS))
    lines = {line.split(" | ")[0].strip("| "): line for line in table.splitlines()}
    # Six wins of six: p = 2 / 64, three times in Holm's correction.
    assert "6 / 0 / 0" in lines["kNN"]
    assert "0.031" in lines["kNN"]
    assert "0.094" in lines["kNN"]


def test_figures_and_tables_are_made_from_rows_alone(tmp_path):
    rows = rows_of([*series_figures.TITLES, "GunPoint"], CLASSIFIERS)
    series_figures.draw(rows, tmp_path)
    names = ("roc-finger", "roc-fragility", "auc", "ranks", "effects", "scores")
    assert {path.name for path in tmp_path.iterdir()} == {
        f"series-{name}.{kind}" for name in names for kind in ("png", "svg")
    }


def test_the_page_of_the_docs_has_a_place_for_tables_that_are_written(tmp_path):
    series_tables.write(rows_of([*series_figures.TITLES, "GunPoint"], CLASSIFIERS), tmp_path)
    written = {path.stem for path in tmp_path.iterdir()}
    page = (Path(__file__).parent.parent / "docs" / "paper-series.md").read_text()
    shown = set(re.findall(r"<!-- table (series-[\w-]+) -->", page))
    linked = set(re.findall(r"results/(series-\w+)\.md", page))
    assert shown | linked == written


def test_the_summary_says_who_differs_and_how():
    text = series_tables.summary(rows_of("ABCDEFGHIJ", CLASSIFIERS))
    # Ten wins of ten: p = 2 / 1024 for each of three.
    assert "MORF has the mean rank 1.00, place 1 of 4" in text
    assert "better than RF, SPORF, kNN, worse than none, undecided against 0" in text
    text = series_tables.summary(rows_of("ABCDEFGHIJ", CLASSIFIERS[::-1]))
    assert "MORF has the mean rank 4.00, place 4 of 4" in text
    assert "better than none, worse than RF, SPORF, kNN, undecided against 0" in text


@pytest.mark.parametrize(
    "rows",
    [
        rows_of(["GunPoint"], ["RF"], folds=1),
        rows_of(["finger"], ["MORF"], folds=1),
        rows_of(["finger", "ssvep"], ["RF", "MORF"], folds=2),
        # Two classifiers without a fold in common.
        [
            row
            for row in rows_of(["fragility"], ["RF", "MORF"], folds=2)
            if (row["classifier"] == "RF") == (row["fold"] == 0)
        ],
    ],
)
def test_the_first_rows_of_a_run_are_enough_to_draw(rows, tmp_path):
    series_figures.draw(rows, tmp_path)
    series_tables.write(rows, tmp_path)
    assert (tmp_path / "series-summary.md").is_file()


@pytest.mark.parametrize("shape", [(1, 30), (3, 40)])
def test_choices_for_series_are_dictionaries_of_their_own(shape):
    X = np.random.default_rng(0).normal(size=(20, *shape))
    chosen = {
        name: AtomFeatures(make(shape), 200, random_state=0, channel_axis=1).fit(X).transform(X)
        for name, make in series_choice.OURS.items()
    }
    assert len({values.tobytes() for values in chosen.values()}) == len(chosen)
    now = AtomFeatures("series-pooled", 200, random_state=0, channel_axis=1).fit(X).transform(X)
    np.testing.assert_array_equal(chosen["competing kernels, 8 of 10 count"], now)


def test_series_of_several_lengths_get_one():
    ramps = [np.linspace(0, 1, n)[np.newaxis] for n in (5, 9, 17)]
    np.testing.assert_allclose(series_choice.resampled(ramps, 9), [ramps[1]] * 3)
