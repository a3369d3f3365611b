"""The study of manifolds: places, made-up samples, and the way from data to tables and pictures."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial import KDTree

pytest.importorskip("matplotlib", reason="the experiments draw")

from experiments import manifold_data as data
from experiments import manifold_maps as maps
from experiments import manifolds as study
from experiments import paper
from experiments.store import Store, Task


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Few trees, and images that are bright in one of ten places, by their class."""
    random = np.random.default_rng(0)
    y = np.arange(120) % 10
    X = random.integers(0, 60, size=(120, 28, 28)).astype(np.uint8)
    for image, digit in zip(X, y, strict=True):
        image[8 + digit : 12 + digit, 8:20] += 150
    X = np.minimum(X, np.roll(X, 1, axis=2))  # neighbours are alike
    monkeypatch.setattr(data, "images", lambda: (X, y, X, y))
    monkeypatch.setattr(study, "TREES", 5)
    monkeypatch.setattr(data, "TESTED_DAYS", 100)


def test_the_command_has_these_studies():
    assert paper.arguments(["--manifolds"]).only == ("manifolds", "manifold_maps")


def test_electrodes_are_where_the_system_has_them():
    at = dict(zip(data.ELECTRODES, data.electrodes(), strict=True))
    for name, place in at.items():
        assert np.linalg.norm(place) == pytest.approx(1)
        number = name.lstrip("FCPO")
        if number == "z":
            assert place[0] == 0
        elif int(number) % 2:  # odd numbers are on the left, and even ones mirror them
            mirror = f"{name.rstrip(number)}{int(number) + 1}"
            np.testing.assert_allclose(at[mirror], place * [-1, 1, 1], atol=1e-12)
            assert place[0] < 0
    np.testing.assert_allclose(at["Cz"], [0, 0, 1], atol=1e-12)
    for name, degrees in (("C1", 22.5), ("C3", 45), ("C5", 67.5), ("Fz", 45), ("O1", 90)):
        assert np.degrees(np.arccos(at[name][2])) == pytest.approx(degrees)
    rows = [at[name] for name in ("F3", "F1", "Fz", "F2", "F4")]
    steps = np.linalg.norm(np.diff(rows, axis=0), axis=1)
    np.testing.assert_allclose(steps, steps[0])
    assert at["F3"][1] > at["FC3"][1] > at["C3"][1] > at["CP3"][1] > at["O1"][1]
    assert at["C3"][1] == pytest.approx(0)


def test_vertices_cover_the_sphere_evenly():
    places = data.vertices()
    np.testing.assert_allclose(np.linalg.norm(places, axis=1), 1)
    np.testing.assert_allclose(places.mean(axis=0), 0, atol=1e-3)
    nearest = KDTree(places).query(places, k=2)[0][:, 1]
    assert nearest.min() > 0.7 * np.sqrt(4 * np.pi / len(places))


def test_rotations_are_small_and_rigid():
    random = np.random.default_rng(0)
    for _ in range(20):
        turn = data.rotation(random)
        np.testing.assert_allclose(turn @ turn.T, np.eye(3), atol=1e-12)
        angle = np.degrees(np.arccos((np.trace(turn) - 1) / 2))
        assert 0 <= angle <= data.TILT


def test_an_image_on_the_sphere_is_upright_around_its_middle():
    image = np.zeros((28, 28))
    image[4, 14] = image[20, 22] = 1  # above the middle, and below it on the right
    up = np.deg2rad(45 + 9.5 * data.DEGREES_PER_PIXEL)
    above = np.array([[np.cos(up), 0, np.sin(up)]])
    assert data.seen(image, above)[0] > 0.4
    seen = data.seen(image, data.map_directions()).reshape(data.MAP)
    south = seen[:27]  # of the middle
    row, column = np.unravel_index(south.argmax(), south.shape)
    assert south[row, column] > 0.1
    assert 3 < column < 12  # eastwards
    assert seen[:, 45:60].max() == 0  # nothing behind


def test_weather_is_smooth_and_has_one_scale():
    places = np.array([[0.5, 0.5], [0.51, 0.5], [0.5, 0.95]])
    field = data.weather(places, 4000, np.random.default_rng(0))
    assert field.std() == pytest.approx(1, abs=0.05)
    together = np.corrcoef(field.T)
    assert together[0, 1] > 0.98
    assert abs(together[0, 2]) < 0.1


def test_pixels_are_put_back():
    split = data.shuffled(maps.SEED)[0]
    first = split.train[data.PLAIN][0]
    np.testing.assert_array_equal(maps.in_place(first).reshape(28, 28), split.train[data.GRID][0])
    assert (first != split.train[data.GRID][0].ravel()).any()


def test_a_layout_has_the_distances_of_the_graph():
    path = sp.csr_array(np.eye(5, k=1) + np.eye(5, k=-1))
    places = maps.layout(path)
    distances = np.linalg.norm(places[:, np.newaxis] - places, axis=2)
    np.testing.assert_allclose(distances, np.abs(np.subtract.outer(range(5), range(5))), atol=1e-3)


@pytest.mark.parametrize("name", [study.SPHERE, study.STATIONS, study.PIXELS])
def test_from_data_to_tables_and_pictures(name, tmp_path):
    store = Store(tmp_path)
    for classifier in study.METHODS[name]:
        for repeat in (0, 1):
            key = {"data": name, "classifier": classifier, "repeat": repeat}
            task = Task(study.STUDY, key)
            row = study.run(task)
            assert 0 <= row["error"] <= 0.8
            store.append(task, row, 1.0)
    study.figures(tmp_path, tmp_path)
    table = (tmp_path / f"manifold-{name}.md").read_text()
    for classifier in study.METHODS[name]:
        assert f"| {classifier} | " in table
    task = Task(maps.STUDY, {"data": name})
    store.append(task, maps.run(task), 1.0)
    maps.figures(tmp_path, tmp_path)
    assert {path.suffix for path in tmp_path.glob(f"manifold-{name}.*")} == {".md", ".png", ".svg"}


def test_differences_are_of_shared_repeats():
    assert study.difference({0: 0.1, 1: 0.1}, {1: 0.3}) == "+20.0"
    assert study.difference({0: 0.1}, {1: 0.3}) == ""
    assert study.difference({0: 0.1, 1: 0.2}, {0: 0.3, 1: 0.4}) == "+20.0 ± 0.0, better"
