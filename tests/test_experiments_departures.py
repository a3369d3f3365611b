"""What departs from the paper, undone alone: empty positions, votes, nodes that draw again."""

import numpy as np
import pytest

from experiments import departures
from experiments.store import Task
from morforest import Axis, MorfClassifier, Patch
from morforest.datasets import make_impulse


def row(data, n, forest, variant, repeat, error, votes=None):
    names = ("data", "n", "forest", "variant", "repeat", "error", "votes_error")
    return dict(zip(names, (data, n, forest, variant, repeat, error, votes), strict=True))


def test_each_axis_has_one_position_more_at_which_a_patch_is_empty():
    # Sizes 1 and 2 on an axis of three cells: 1 of 4 positions is empty, and 1 of 5.
    atoms = departures.one_more_position(Patch((1,), (2,)), (3,))
    found = dict(
        zip(map(tuple, atoms.matrix.toarray().astype(int)), atoms.probabilities, strict=True)
    )
    assert found == pytest.approx(
        {
            (0, 0, 0, 1): 1 / 8 + 1 / 10,  # the cell that is always zero
            (1, 0, 0, 0): 1 / 8 + 1 / 10,
            (0, 1, 0, 0): 1 / 8,
            (0, 0, 1, 0): 1 / 8 + 1 / 10,
            (1, 1, 0, 0): 1 / 10,
            (0, 1, 1, 0): 1 / 10,
        }
    )
    atoms = departures.one_more_position(Patch((2, 1), (2, 1)), (3, 2))
    assert sum(atoms.probabilities) == pytest.approx(1)
    empty = atoms.matrix.toarray()[:, -1] == 1
    assert np.array(atoms.probabilities)[empty].sum() == pytest.approx(1 - 4 / 5 * 2 / 3)


def test_votes_are_those_of_the_trees():
    X, y = make_impulse(300, random_state=0)
    y = np.array(["a", "b"])[y]
    trees = [
        MorfClassifier(Axis(), n_estimators=k, max_depth=3, random_state=0).fit(X, y)
        for k in range(1, 6)
    ]
    # With the same seed, a forest of k trees has one tree more than that of k - 1.
    sums = [k * model.predict_proba(X) for k, model in enumerate(trees, 1)]
    of_b = np.diff([np.zeros_like(sums[0]), *sums], axis=0).argmax(axis=2).sum(axis=0)
    found = departures.by_votes(trees[-1], X)
    assert (found == np.where(of_b >= 3, "b", "a")).all()
    assert (found != trees[-1].predict(X)).any()


def test_nodes_draw_again_where_hardly_a_feature_varies():
    random = np.random.RandomState(0)
    X = np.zeros((60, 20))
    X[:, 3] = random.normal(size=60)
    y = (X[:, 3] > 0).astype(int)
    model = MorfClassifier(
        Patch(1, 1), n_estimators=20, max_features=0.05, keep_samples=True, random_state=0
    )
    assert 0.8 < departures.redrawn(model.fit(X, y), X) <= 1
    assert departures.redrawn(model.fit(X[:, [3]], y), X[:, [3]]) == 0


def test_a_departure_from_data_to_row():
    def run(variant, forest="MORF"):
        key = {"data": "B", "n": 50, "forest": forest, "variant": variant, "repeat": 1}
        return departures.run(Task("departures", {**key, "test_samples": 500}))

    as_it_is, other = run(departures.AS_IS), run(departures.EMPTY)
    assert as_it_is["votes_error"] == as_it_is["error"] != other["error"] < 0.2
    assert run(departures.REDRAWN)["error"] == ""


def test_rates_have_the_means_that_they_are_named_after():
    for (name, rate), mean in zip(departures.RATES.items(), (1.5, 1.93), strict=True):
        assert str(mean) in name
        assert rate / -np.expm1(-rate) == pytest.approx(mean, abs=0.005)


def test_changes_are_compared_in_pairs():
    rows = [row("MNIST", 2500, "MORF", departures.AS_IS, r, 0.06 + r / 100, 0.06) for r in range(3)]
    rows += [row("MNIST", 2500, "MORF", departures.EXACT, r, 0.07 + r / 100) for r in range(3)]
    rows += [row("MNIST", 2500, "MORF", departures.ALL, r, 0.08, 0.09) for r in range(3)]
    header, (line,) = departures.compare(rows)
    found = dict(zip(header, line, strict=True))
    assert found[departures.EXACT] == "**+0.0100 ± 0.0000**"
    assert found["votes"] == "-0.0100 ± 0.0248"
    _, (line,) = departures.beside_published(rows)
    assert line == ["2,500", ".0670", ".0700 ± .0058", ".0900 ± .0000"]
