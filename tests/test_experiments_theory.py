"""The studies of the theory: distributions that are known, forests by name, conclusions."""

import importlib
import math

import numpy as np
import pytest

from experiments import (
    mnist,
    paper,
    realdata,
    series,
    theory,
    theory_calibration,
    theory_claims,
    theory_conditions,
    theory_rates,
)
from experiments.store import Store, Task
from morforest import (
    Axis,
    Mixture,
    MorfBoostingClassifier,
    MorfClassifier,
    MorfRegressor,
    Patch,
    check_consistency_conditions,
)

STUDIES = (theory_rates, theory_conditions, theory_calibration)


def small_set(name):
    random = np.random.RandomState(0)
    y = np.array([0, 1] * 20)
    X = random.normal(size=(40, 2, 12)) + y[:, None, None]
    rows = np.arange(40)
    return realdata.DataSet(name, X, y, ((rows[:30], rows[30:]),))


@pytest.fixture
def data(monkeypatch):
    """The studies without files."""
    monkeypatch.setattr(series, "load", small_set)
    monkeypatch.setattr(mnist, "images", lambda: None)


# --- distributions --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", theory.distributions())
def test_the_lowest_error_is_that_of_the_best_rule(name):
    distribution = theory.distributions()[name]
    X, y = distribution.draw(20_000, seed=3)
    assert X.shape == (20_000, *distribution.shape)
    assert X.min() >= 0
    assert X.max() <= 1
    truth = distribution.posterior(X)
    if distribution.regression:
        assert abs(np.mean(y - truth)) < 0.02
        assert np.abs(y - truth).max() <= 1
        return
    errors = np.minimum(truth, 1 - truth)
    assert errors.mean() == pytest.approx(distribution.best, abs=0.004)
    assert np.mean((truth > 0.5) != y) == pytest.approx(distribution.best, abs=0.015)
    assert truth.mean() == pytest.approx(y.mean(), abs=0.015)


def test_how_far_the_best_constant_estimate_is():
    for distribution in theory.distributions().values():
        X, _ = distribution.draw(20_000, seed=5)
        truth = distribution.posterior(X)
        distance = np.mean(np.abs(truth - np.median(truth)))
        assert distance == pytest.approx(distribution.constant, abs=0.01)


def test_the_patch_is_an_atom_of_its_forests():
    X, _ = theory.distributions()[theory.PATCH].draw(50, seed=0)
    truth = theory.distributions()[theory.PATCH].posterior(X)
    forest = theory_rates.make(theory.PATCH, "MORF", theory.ALL, seed=0)
    assert forest.max_features == X[0].size
    atoms = Patch(4, 4).sample((28, 28), 5000, random_state=0)
    assert forest.dictionary.dictionaries[0].get_params() == Patch(4, 4).get_params()
    orders = np.argsort(atoms @ X.reshape(50, -1).T, axis=1)
    assert (orders == np.argsort(truth)).all(axis=1).any()


def test_posteriors_are_lipschitz():
    for distribution in theory.distributions().values():
        X, _ = distribution.draw(2000, seed=1)
        step = np.random.default_rng(0).uniform(-1e-3, 1e-3, X.shape)
        moved = np.abs(distribution.posterior(X + step) - distribution.posterior(X))
        distance = np.sqrt(np.square(step).reshape(len(X), -1).sum(axis=1))
        assert (moved / distance).max() < 10


def test_stripes_are_invisible_to_boxes_of_two_rows_inside():
    weights = theory.stripes(theory.SIDE, 3).ravel()
    shape = (theory.SIDE, theory.SIDE)

    def seen(dictionary):
        return np.abs(dictionary.sample(shape, 3000, random_state=0) @ weights).max()

    assert seen(theory_conditions.INSIDE) == 0
    assert seen(theory_conditions.PATCHES["2 rows"]) == 1  # boxes that the border cuts
    assert seen(theory_conditions.PATCHES["2 to 5 rows, inside"]) == 1  # boxes of three rows
    assert seen(Axis()) == 1


@pytest.mark.parametrize("name", [*theory_conditions.PATCHES, theory_conditions.NO_SINGLE])
def test_which_patches_span_the_images(name):
    """What no sum of atoms can form, no number of splits can separate."""
    dictionary = theory_conditions.PATCHES.get(name, theory_conditions.INSIDE)
    atoms = dictionary.sample((theory.SIDE, theory.SIDE), 4000, random_state=0).toarray()
    missing = theory.SIDE**2 - np.linalg.matrix_rank(atoms)
    # Alternating signs along each of the columns.
    assert missing == (theory.SIDE if name == theory_conditions.NO_SINGLE else 0)


# --- forests --------------------------------------------------------------------------------------


def test_names_say_what_the_forests_are():
    plain = theory.forest("plain, s = n", Axis(), seed=4)
    assert type(plain) is MorfClassifier
    assert (plain.honest, plain.random_state, plain.n_jobs) == (False, 4, 1)
    half = theory.forest("honest, s = n/2", Axis(), seed=0, regression=True)
    assert type(half) is MorfRegressor
    assert (half.honest, half.bootstrap, half.max_samples) == (True, False, 0.5)
    single = theory.forest(theory.SINGLE, theory.DICTIONARIES["MORF"], seed=0)
    assert type(single.dictionary) is Mixture
    assert (single.honest, single.random_split_rate) == (True, 0)


@pytest.mark.parametrize("data", ["1-D", "stripes"])
def test_each_forest_lacks_the_condition_that_its_name_says(data):
    lacking = {
        theory.ALL: [],
        "not honest": ["honest"],
        "s = n/2": ["subsamples"],
        "not balanced": ["balanced"],
        "no random splits": ["random splits"],
        "no single features": ["single features", "random splits"],
    }
    X, y = theory.distributions()[data].draw(200, seed=0)
    for name in theory_conditions.classifiers(data):
        if name in theory_conditions.PATCHES:
            continue
        forest = theory_conditions.make(data, name, seed=0).set_params(n_estimators=5).fit(X, y)
        report = check_consistency_conditions(forest)
        assert [c.name for c in report if c.holds is False] == lacking[name]


def test_forests_of_the_calibration():
    def make(name):
        return theory_calibration.make(name, "MNIST", (28, 28), 10, 1000, seed=2).model

    assert make("MORF").honest is False
    for name, given in theory_calibration.HONEST.items():
        forest = make(name)
        assert {key: getattr(forest, key) for key in given} == given
    assert len(theory_calibration.HONEST) == 8
    assert make(theory.ALL).max_samples == "n**0.7"
    assert make("honest, 1/5 for leaves").honest_fraction == 0.2
    assert type(make("boosting")) is MorfBoostingClassifier
    assert type(make("RF (scikit-learn)")).__module__.startswith("sklearn")


# --- studies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("study", STUDIES)
def test_every_task_is_another_and_is_known(data, study, quick):
    tasks = study.tasks(quick)
    keys = [tuple(task.key.values()) for task in tasks]
    assert len(set(keys)) == len(keys) > 0
    assert {task.study for task in tasks} == {study.STUDY}
    assert study.STUDY in paper.THEORY
    assert all(task.cost > 0 for task in tasks)


def test_quick_studies_are_smaller(data):
    for study in STUDIES:
        costs = [sum(task.cost for task in study.tasks(quick)) for quick in (True, False)]
        assert costs[0] < costs[1] / 2


def test_sizes_and_repeats():
    for data in theory_rates.DICTIONARIES:
        sizes = theory_rates.sizes(data, theory.ALL, quick=False)
        assert (sizes[0], sizes[-1]) == (100, 100_000)
    # Nodes with a candidate per pixel take too long where trees draw all samples.
    assert theory_rates.sizes(theory.PATCH, "plain, s = n", quick=False)[-1] == 3000

    def repeats(data, dictionary, kind):
        sizes = (10_000, 30_000, 100_000)
        return [theory_rates.repeats(data, dictionary, kind, n, quick=False) for n in sizes]

    assert repeats("1-D", "RF", theory.ALL) == [5, 5, 5]  # the claims rest on these
    assert repeats("2-D", "RF", theory.ALL) == [5, 3, 3]
    assert repeats("1-D", "RF", "plain, s = n") == [5, 3, 3]
    assert repeats("28 x 28", "MORF", theory.ALL) == [5, 5, 3]
    assert repeats("28 x 28", "MORF", "plain, s = n") == [5, 3, 1]


def test_sets_that_are_not_there_are_named(data, monkeypatch, capsys):
    def load(name):
        raise realdata.Unavailable(f"{name} is not here")

    monkeypatch.setattr(series, "load", load)
    assert {task.key["data"] for task in theory_calibration.tasks(False)} == {"MNIST"}
    assert "LEFT OUT finger is not here" in capsys.readouterr().err
    monkeypatch.setattr(mnist, "images", lambda: load("MNIST"))
    with pytest.raises(realdata.Unavailable, match="MNIST"):
        theory_calibration.tasks(False)


def small_task(study, monkeypatch, **key):
    monkeypatch.setattr(theory, "TREES", 20)
    monkeypatch.setattr(theory, "SMALL_TREES", 40)
    monkeypatch.setattr(theory_conditions, "TREES", 40)
    monkeypatch.setattr(theory_rates, "PATCH_TREES", {True: 20, False: 10})
    return Task(study.STUDY, {**key, "repeat": 0, "test_samples": 300})


def test_subsamples_bring_posteriors_closer(monkeypatch):
    distances = []
    for kind in ("plain, s = n", theory.ALL):
        key = {"data": "1-D", "n": 1000, "classifier": f"RF: {kind}"}
        row = theory_rates.run(small_task(theory_rates, monkeypatch, **key))
        assert 0 <= row["excess"] < 0.5
        distances.append(row["distance"])
    assert distances[1] < distances[0] / 2


def test_patches_that_see_nothing_learn_nothing(monkeypatch):
    excess = {}
    for name in ("no single features", "single features only"):
        key = {"data": "stripes", "n": 2000, "classifier": name}
        row = theory_conditions.run(small_task(theory_conditions, monkeypatch, **key))
        excess[name] = row["excess"]
    guessing = 0.5 - theory.distributions()["stripes"].best
    assert excess["no single features"] > 0.8 * guessing
    assert excess["single features only"] < 0.5 * guessing


def test_excess_risk_counts_what_a_wrong_class_costs():
    truth = np.array([0.9, 0.2, 0.5, 0.6])
    assert theory.excess_risk(truth, truth) == 0
    found = np.array([0.4, 0.3, 0.9, 0.1])  # wrong on the first and the last; the third is free
    assert theory.excess_risk(found, truth) == pytest.approx((0.8 + 0 + 0.2) / 4)


def test_rates_are_slopes_of_logarithms():
    sizes = [100, 1000, 3000, 10_000]
    rate = theory.fit_rate(sizes, [99.0, *(3 * n**-0.4 for n in sizes[1:])])
    assert rate.slope == pytest.approx(-0.4)
    assert rate.error == pytest.approx(0, abs=1e-9)
    assert str(theory.Rate(-0.25, 0.031)) == "-0.25 ± 0.03"
    two = theory.fit_rate([1000, 10_000], [0.1, 0.01])
    assert two.slope == pytest.approx(-1)
    assert math.isnan(two.error)
    assert theory.fit_rate([1000, 10_000], [0.1, 0.0]) is None


# --- calibration ----------------------------------------------------------------------------------


def test_calibration_of_one_who_knows_and_one_who_boasts():
    random = np.random.default_rng(0)
    truth = random.uniform(0.5, 1, 40_000)
    labels = (random.uniform(size=40_000) < truth).astype(int)
    knows = theory_calibration.scores(labels, np.column_stack([1 - truth, truth]))
    assert knows["ece"] < 0.01
    assert abs(knows["over"]) < 0.01
    boasts = theory_calibration.scores(labels, np.tile([0.0, 1.0], (40_000, 1)))
    assert boasts["ece"] == pytest.approx(0.25, abs=0.01)
    assert boasts["over"] == pytest.approx(0.25, abs=0.01)
    assert boasts["error"] == pytest.approx(0.25, abs=0.01)
    assert boasts["brier"] == pytest.approx(2 * 0.25, abs=0.02)
    assert boasts["log_loss"] == pytest.approx(-0.25 * math.log(1e-3), abs=0.1)
    assert knows["brier"] < boasts["brier"]


def test_bins_of_several_repeats_are_added(tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.store.commit", lambda: "1e5")
    labels = np.array([0, 1, 1, 0])
    probabilities = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.95, 0.05]])
    store = Store(tmp_path)
    for repeat in range(2):
        key = {"data": "MNIST", "classifier": "MORF", "repeat": repeat}
        row = theory_calibration.scores(labels, probabilities)
        store.append(Task(theory_calibration.STUDY, key), row, 1.0)
    rows = theory_calibration.read(tmp_path, theory_calibration.STUDY)
    count, confidence, correct = theory_calibration.pooled(rows)
    assert (count.sum(), correct.sum()) == (8, 6)
    assert confidence.sum() == pytest.approx(2 * (0.9 + 0.8 + 0.7 + 0.95))
    theory_calibration.figures(tmp_path, tmp_path)
    text = (tmp_path / "theory-calibration.md").read_text()
    assert "| MNIST | MORF |" in text
    assert "commit 1e5;" in text  # a commit is no number
    assert (tmp_path / "theory-calibration.png").stat().st_size > 5000


@pytest.mark.parametrize("name", ["honest, ignore", "honest, temperature"])
def test_a_recording_from_data_to_row(data, name):
    key = {"data": "finger", "classifier": name, "repeat": 0}
    row = theory_calibration.run(Task(theory_calibration.STUDY, key))
    assert row["scored"] == 10
    assert row["error"] < 0.4


# --- conclusions ----------------------------------------------------------------------------------


def rows_of(values, spread=0.01, **more):
    """Return rows at several sizes, each with three repeats that differ a little."""
    return [
        {
            "n": n,
            "repeat": repeat,
            **dict.fromkeys(("excess", "distance", "bias"), value * (1 + spread * (repeat - 1))),
            **more,
        }
        for n, value in values.items()
        for repeat in range(3)
    ]


SIZES = (100, 1000, 10_000, 100_000)


@pytest.mark.parametrize(
    ("values", "spread", "verdict"),
    [
        ([n**-0.4 for n in SIZES], 0.01, theory_claims.HOLDS),
        ([n**-0.05 for n in SIZES], 0.01, theory_claims.OPEN),  # it falls, but too little
        ([0.3, 0.1, 0.101, 0.1], 0.01, theory_claims.FAILS),
        ([0.3, 0.1, 0.05, 0.07], 0.01, theory_claims.OPEN),  # the rate may be anything
        ([0.3, 0.001, 0.003, 0.002], 0.01, theory_claims.REACHED),  # noise, below the tolerance
        ([0.3, 0.002, 0.002, 0.002], 0.01, theory_claims.REACHED),  # level, but at zero
        ([0.3, 0.002, 0.002, 0.002], 0.99, theory_claims.OPEN),  # the mean may be above it
        ([0.3, 0.0003, 0.001, 0.003], 0.01, theory_claims.OPEN),  # it rises
        ([0.3, 0.01, 0.001, 0.0], 0.01, theory_claims.REACHED),  # no logarithm
    ],
)
def test_a_measure_goes_to_zero_or_not(values, spread, verdict):
    rows = rows_of(dict(zip(SIZES, values, strict=True)), spread)
    assert theory_claims.outcome(rows, "distance", constant=0.25) == verdict


def test_few_sizes_or_repeats_show_nothing():
    short = rows_of({100: 0.3, 1000: 0.1, 10_000: 0.01})  # two sizes have no standard error
    assert theory_claims.outcome(short, "distance", constant=0.25) == theory_claims.OPEN
    rows = rows_of(dict.fromkeys(SIZES, 0.001))
    single = [row for row in rows if row["n"] < SIZES[-1] or row["repeat"] == 0]
    assert theory_claims.outcome(rows, "distance", constant=0.25) == theory_claims.REACHED
    assert theory_claims.outcome(single, "distance", constant=0.25) == theory_claims.OPEN


def test_intervals_are_students():
    low, high = theory.interval([0.1, 0.2, 0.3])
    assert (low, high) == pytest.approx(
        (0, 0.2 + 4.3027 * 0.1 / 3**0.5), abs=1e-4
    )  # not below zero
    assert theory.interval([0.25, 0.25]) == (0.25, 0.25)
    assert all(math.isnan(end) for end in theory.interval([0.2]))
    rate = theory.Rate(-0.5, 0.1, freedom=3)
    assert (rate.low, rate.high) == pytest.approx((-0.8182, -0.1818), abs=1e-3)


@pytest.mark.parametrize(
    ("without", "verdict"),
    [
        ((0.3, 0.3, 0.3), theory_claims.NEEDED),
        ((0.9, 0.3, 0.1), theory_claims.CLOSER),
        ((0.3, 0.1, 0.04), theory_claims.NOT_NEEDED),
        ((0.3, 0.1, 0.01), theory_claims.NOT_NEEDED),
    ],
)
def test_a_condition_is_needed_or_not(without, verdict):
    full = dict(zip(SIZES[1:], (0.3, 0.1, 0.03), strict=True))
    rows = [
        *rows_of(full, data="box", classifier=theory.ALL),
        *rows_of(dict(zip(SIZES[1:], without, strict=True)), data="box", classifier="not honest"),
    ]
    line = theory_claims.condition("honest", rows, "box", "not honest", "excess")
    assert line[-1] == verdict
    assert theory_claims.condition("honest", rows, "pixel", "not honest", "excess") is None


def test_gaps_are_those_of_the_same_samples():
    rows = [
        {"data": "box", "n": 300, "repeat": repeat, "classifier": name, "bias": bias}
        for repeat, (full, other) in enumerate([(0.1, 0.3), (-0.2, 0.1)])
        for name, bias in ((theory.ALL, full), ("not honest", other))
    ]
    found = theory_claims.with_gaps(rows)
    assert [row["gap"] for row in found] == pytest.approx([0, 0.2, 0, 0.3])
    assert theory_claims.with_gaps(rows[1:2])[0]["gap"] == ""


def test_figures_and_tables_from_rows(tmp_path, monkeypatch):
    store = Store(tmp_path)
    for n in (300, 1000):
        for data, name in (("1-D", "RF"), ("2-D", "SPORF"), (theory.PATCH, "MORF")):
            for kind in ("plain, s = n", theory.ALL):
                key = {"data": data, "n": n, "classifier": f"{name}: {kind}"}
                task = small_task(theory_rates, monkeypatch, **key)
                store.append(task, theory_rates.run(task), 1.0)
        for data in theory_conditions.DATA:
            for name in (theory.ALL, "not honest"):
                task = small_task(theory_conditions, monkeypatch, data=data, n=n, classifier=name)
                store.append(task, theory_conditions.run(task), 1.0)
    for name in ("theory_rates", "theory_conditions"):
        importlib.import_module(f"experiments.{name}").figures(tmp_path, tmp_path)
    theory_claims.write(tmp_path)
    for name in ("rates", "dictionaries", "conditions", "patches"):
        assert (tmp_path / f"theory-{name}.png").stat().st_size > 10_000
        assert "| --- |" in (tmp_path / f"theory-{name}.md").read_text()
    claims = (tmp_path / "theory-claims.md").read_text()
    assert claims.count("Theorem 2") == 3
    assert "Theorem 1" not in claims  # it has no rows
