"""Samples whose features have places: on a scalp, a sphere, a map, in molecules, and out of order.

Each function returns the splits of one repeat: training and test samples, in each version that a
method may look at. Where the places are is fixed; what is drawn anew says the seed.
"""

import functools
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.ndimage import map_coordinates
from scipy.spatial import KDTree
from sklearn.model_selection import StratifiedKFold, train_test_split

from experiments import convert, realdata
from morforest import GraphFeatures
from morforest.datasets import load_mnist

PLAIN = "plain"  # the version that every set has
GRID = "grid"  # resampled, so that patches can be used
UNLABELLED = "unlabelled"


class Split(NamedTuple):
    train: dict[str, np.ndarray]  # by version
    y_train: np.ndarray
    test: dict[str, np.ndarray]
    y_test: np.ndarray


# --- scalp ----------------------------------------------------------------------------------------

# Degrees from the vertex along the midline, front first, and around the head to the left end.
ROWS = {"F": (45.0, 54.0), "FC": (22.5, 72.0), "C": (0.0, 90.0), "CP": (-22.5, 108.0)}
ELECTRODES = (  # in the order of the recordings
    *("F3", "F1", "Fz", "F2", "F4", "FC5", "FC3", "FC1", "FCz", "FC2", "FC4", "FC6"),
    *("C5", "C3", "C1", "Cz", "C2", "C4", "C6"),
    *("CP5", "CP3", "CP1", "CPz", "CP2", "CP4", "CP6", "O1", "O2"),
)
TESTED_TRIALS = 100


def electrode(name):
    """Return the place of an electrode on a unit sphere: right, front, up.

    This is the extended 10-20 system on an ideal head: a row of electrodes lies on the circle
    through its place on the midline and its two ends, and parts each half into four.
    """
    row, number = name.rstrip("z0123456789"), name.lstrip("FCPOTA")
    if row == "O":  # these are on the lowest circle, ten per cent of it from the midline
        return on_circle(162.0, left=int(number) % 2 == 1)
    front, around = ROWS[row]
    middle = np.array([0.0, np.sin(np.deg2rad(front)), np.cos(np.deg2rad(front))])
    if number == "z":
        return middle
    steps = (int(number) + 1) // 2  # of four, from the midline
    end = on_circle(around, left=int(number) % 2 == 1)
    across = np.cross(middle - end, middle - end * [-1, 1, 1])
    across /= np.linalg.norm(across)
    centre = across * (across @ middle)
    a, b = middle - centre, end - centre
    angle = np.arccos(a @ b / (a @ a))
    part = steps / 4 * angle
    return centre + (np.sin(angle - part) * a + np.sin(part) * b) / np.sin(angle)


def on_circle(degrees, left):
    """Return a place on the lowest circle, so far around the head from its front."""
    angle = np.deg2rad(degrees)
    return np.array([-np.sin(angle) if left else np.sin(angle), np.cos(angle), 0.0])


def electrodes():
    """Return the places of all electrodes, in the order of the recordings."""
    return np.array([electrode(name) for name in ELECTRODES])


def scalp(seed):
    data = realdata.load("finger")
    rows = np.arange(len(data.y))
    train, test = train_test_split(
        rows, test_size=TESTED_TRIALS, stratify=data.y, random_state=seed
    )
    return [Split({PLAIN: data.X[train]}, data.y[train], {PLAIN: data.X[test]}, data.y[test])]


# --- sphere ---------------------------------------------------------------------------------------

VERTICES = 1200
MAP = (36, 72)  # latitudes and longitudes in steps of five degrees
DEGREES_PER_PIXEL = 3.6
TILT = 15.0  # degrees, at most
DIGITS, TESTED_DIGITS = 1000, 2000


@functools.cache
def images():
    X, y, X_test, y_test = load_mnist()
    return X, y, X_test, y_test


def drawn_digits(random):
    X, y, X_test, y_test = images()
    train = random.permutation(len(y))[:DIGITS]
    test = random.permutation(len(y_test))[:TESTED_DIGITS]
    return X[train], y[train], X_test[test], y_test[test]


def vertices(n=VERTICES):
    """Return directions that cover the sphere evenly: a spiral of golden angles."""
    up = 1 - (2 * np.arange(n) + 1) / n
    angle = np.pi * (3 - np.sqrt(5)) * np.arange(n)
    around = np.sqrt(1 - up**2)
    return np.stack([around * np.cos(angle), around * np.sin(angle), up], axis=1)


def map_directions():
    """Return the directions of the cells of a map of latitudes and longitudes."""
    latitude = np.pi * ((np.arange(MAP[0]) + 0.5) / MAP[0] - 0.5)[:, np.newaxis]
    longitude = 2 * np.pi * (np.arange(MAP[1]) / MAP[1])
    x, y = np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude)
    return np.stack([x, y, np.broadcast_to(np.sin(latitude), MAP)], axis=-1).reshape(-1, 3)


def rotation(random):
    """Return a rotation about a random axis, by at most TILT."""
    axis = random.normal(size=3)
    x, y, z = axis / np.linalg.norm(axis)
    turn = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    angle = np.deg2rad(TILT) * random.random()
    return np.eye(3) + np.sin(angle) * turn + (1 - np.cos(angle)) * turn @ turn


def seen(image, directions):
    """Return what an image shows in these directions, if its middle is at 45 degrees north.

    Distances from the middle are true, and so are directions there.
    """
    middle = np.array([1.0, 0.0, 1.0]) / np.sqrt(2)
    north = np.array([-1.0, 0.0, 1.0]) / np.sqrt(2)
    east = np.array([0.0, 1.0, 0.0])
    distance = np.degrees(np.arccos(np.clip(directions @ middle, -1, 1)))
    aside = np.stack([-directions @ north, directions @ east])  # rows go down
    aside /= np.maximum(np.linalg.norm(aside, axis=0), 1e-12)
    return map_coordinates(image, 13.5 + aside * distance / DEGREES_PER_PIXEL, order=1)


def on_sphere(image, turn):
    """Return an image on the vertices and on the map, after a rotation."""
    both = np.concatenate([vertices(), map_directions()]) @ turn
    values = seen(image.astype(np.float64), both).round().astype(np.uint8)
    return values[:VERTICES], values[VERTICES:].reshape(MAP)


@functools.lru_cache(5)
def sphere(seed):
    random = np.random.default_rng(seed)
    X, y, X_test, y_test = drawn_digits(random)
    parts = []
    for some in (X, X_test):
        both = [on_sphere(image, rotation(random)) for image in some]
        parts.append({PLAIN: np.stack([a for a, _ in both]), GRID: np.stack([b for _, b in both])})
    return [Split(parts[0], y, parts[1], y_test)]


# --- stations -------------------------------------------------------------------------------------

STATIONS = 120
LAYOUT = 7  # seed of the places
CATCHMENT = (0.62, 0.4, 0.14)  # where, and its radius; the map is 1 wide
SCALE = 0.15  # of the weather
NOISE = 1.5  # standard deviation of what is local to a station; that of the weather is 1
DAYS, TESTED_DAYS = 500, 2000
RASTER = 20


def stations():
    """Return the places of stations: half anywhere, half around five towns."""
    random = np.random.default_rng(LAYOUT)
    towns = random.uniform(0.15, 0.85, size=(5, 2))
    near = towns[random.integers(5, size=STATIONS // 2)]
    near = near + random.normal(scale=0.06, size=near.shape)
    return np.concatenate([random.uniform(size=(STATIONS // 2, 2)), near]).clip(0, 1)


def weather(places, days, random, waves=60):
    """Return smooth random fields at places, one per day: sums of waves in random directions."""
    numbers = random.normal(scale=1 / SCALE, size=(days, waves, 2))
    phases = random.uniform(0, 2 * np.pi, size=(days, waves, 1))
    return np.cos(numbers @ places.T + phases).sum(axis=1) * np.sqrt(2 / waves)


def catchment(n=40):
    """Return points that fill the catchment evenly."""
    x, y, radius = CATCHMENT
    out = radius * np.sqrt((np.arange(n) + 0.5) / n)
    angle = np.pi * (3 - np.sqrt(5)) * np.arange(n)
    return np.stack([x + out * np.cos(angle), y + out * np.sin(angle)], axis=1)


def raster():
    """Return the nearest station of each cell of a grid."""
    middles = (np.arange(RASTER) + 0.5) / RASTER
    cells = np.stack(np.meshgrid(middles, middles, indexing="ij"), axis=-1)
    return KDTree(stations()).query(cells)[1]


def map_of_stations(seed):
    random = np.random.default_rng(seed)
    both = np.concatenate([stations(), catchment()])
    field = weather(both, DAYS + TESTED_DAYS, random)
    y = (field[:, STATIONS:].mean(axis=1) > 0).astype(int)
    X = field[:, :STATIONS] + NOISE * random.normal(size=(len(y), STATIONS))
    versions = {PLAIN: X, GRID: X[:, raster()]}
    train, test = (
        {name: x[some] for name, x in versions.items()} for some in (slice(DAYS), slice(DAYS, None))
    )
    return [Split(train, y[:DAYS], test, y[DAYS:])]


# --- molecules ------------------------------------------------------------------------------------

ELEMENTS = ("C", "N", "O", "F", "I", "Cl", "Br")
FOLDS = 10


@functools.cache
def molecules():
    """Return the graphs of MUTAG and whether each is mutagenic."""
    known = convert.CONVERTERS["MUTAG"]
    given = os.environ.get(realdata.VARIABLE)
    places = [Path(place).expanduser() / known.file for place in (given, realdata.KEPT) if place]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise realdata.Unavailable(
            f"MUTAG is not among {', '.join(map(str, places))}: python -m experiments.convert "
            "makes it from a package."
        )
    with np.load(path, allow_pickle=False) as stored:
        found = {name: stored[name] for name in known.arrays}
    if realdata.checksum(found.values()) != known.checksum:
        raise realdata.Unavailable(f"{path} does not hold the values of our results.")
    graphs = []
    for i in range(len(found["y"])):
        nodes = np.flatnonzero(found["graph_indicator"] == i)
        edges = found["edges"][np.isin(found["edges"][:, 0], nodes)] - nodes[0]
        ones = np.ones(len(edges))
        adjacency = sp.csr_array((ones, edges.T), shape=(len(nodes),) * 2)
        graphs.append((adjacency, np.array(ELEMENTS)[found["node_label"][nodes]]))
    return graphs, (found["y"] > 0).astype(int)


def molecule_folds(seed):
    _, y = molecules()
    return list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(y, y))


def molecule_tables(seed):
    """Return ten folds; tables are made of the training samples of each."""
    graphs, y = molecules()
    splits = []
    for train, test in molecule_folds(seed):
        features = GraphFeatures().fit([graphs[i] for i in train])
        parts = [{PLAIN: features.transform([graphs[i] for i in some])} for some in (train, test)]
        splits.append(Split(parts[0], y[train], parts[1], y[test]))
    return splits


# --- shuffled pixels ------------------------------------------------------------------------------

MORE_DIGITS = 10_000


def order_of_pixels(seed):
    """Return which pixel each feature of the shuffled images is."""
    return np.random.default_rng(1000 + seed).permutation(784)


def shuffled(seed):
    random = np.random.default_rng(seed)
    X, y, X_test, y_test = drawn_digits(random)
    order = order_of_pixels(seed)
    parts = [{PLAIN: x.reshape(-1, 784)[:, order], GRID: x} for x in (X, X_test)]
    more = images()[0][random.permutation(len(images()[1]))[:MORE_DIGITS]]
    parts[0][UNLABELLED] = more.reshape(-1, 784)[:, order]
    return [Split(parts[0], y, parts[1], y_test)]
