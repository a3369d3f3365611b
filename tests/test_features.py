"""`AtomFeatures`: columns are values of atoms, in the user's units, under names that say so."""

import copy
import pickle
import re
import warnings

import numpy as np
import pytest
from common import MINIROCKET
from golden_cases import whole_numbers
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from morforest import (
    AtomFeatures,
    Atoms,
    Axis,
    Difference,
    Haar,
    Kernel,
    Mixture,
    Pair,
    Patch,
    Raw,
    SparseOblique,
    Square,
    Variance,
)
from morforest._atoms import OPERATIONS
from morforest.dictionary._base import resolve, seed_from

DICTIONARIES = {
    "linear": Mixture([Patch(1, 3), SparseOblique(), Axis()]),
    "fractions": Atoms(np.linspace(-1, 1, 6 * 24).reshape(6, 24)),
    "haar": Haar(1, (1, 3), lobes="two"),
    "pooled": Haar(1, (1, 3), lobes="two", pool=["max", "min", "mean", "proportion"]),
    "image": Patch(1, 2, pool=["max", "proportion", "mean"]),
    "squares": Patch(1, 2, pool=["max", "mean"], views=[Raw(), Square(), Difference()]),
    "wrap": Patch(1, (2, 4), boundary="wrap", pool=["max", "proportion"]),
    "variance": Variance(1, (2, 5), views=[Raw(), Difference()]),
    "mixture": Mixture([Patch(), Variance(1, 3), Haar(1, (1, 3), lobes="two", pool="proportion")]),
}
SHAPE = (3, 8)


def samples(n=40, kind="whole"):
    X = whole_numbers(n * 24, 100).reshape(n, *SHAPE)
    floats = X / 7 - 5 + np.random.default_rng(0).random(X.shape)  # no ties with biases
    return {"whole": X, "floats": floats, "bytes": X.astype(np.uint8)}[kind]


def channel_of(X, kind):
    if kind == "difference":
        return np.diff(X, axis=-1, append=X[..., -1:])
    return X**2 if kind == "square" else X


def by_hand(features, X):
    """The columns from atoms over the features, in plain NumPy."""
    atoms = features._atoms
    # The same draws from a dictionary without cumulative sums give the atoms over the features.
    plan = resolve(features.dictionary_, SHAPE)
    key = seed_from(features.random_state)
    drawn = plan.build(direct=True).sample(key, len(atoms), False)
    begin, cell, weight = np.append(0, np.cumsum(drawn.count, dtype=int)), drawn.cell, drawn.weight
    X = np.asarray(X, dtype=float).reshape(-1, *SHAPE)
    channels = [channel_of(X, source.kind) for source in plan.views()]
    planes = np.stack(channels, axis=1)
    moved = atoms.windows()
    columns = []
    for i in range(len(atoms)):
        op = OPERATIONS[atoms.operations()[i]]
        atom = np.zeros((len(channels), *SHAPE))
        terms = slice(begin[i], begin[i + 1])
        atom[np.unravel_index(cell[terms], atom.shape)] = weight[terms]
        if op == "variance":
            source = next(s for s in range(len(atom)) if atom[s].any())
            columns.append(planes[:, source][:, atom[source] != 0].var(axis=1))
            continue
        places = [(a, b) for a in range(moved[i, 0]) for b in range(moved[i, 1])]
        responses = np.stack(
            [np.einsum("nsij,sij->n", planes, np.roll(atom, p, (1, 2))) for p in places], axis=1
        )
        if op == "proportion":
            bias = np.ldexp(float(atoms.bias[i]), -features._format.shift)
            columns.append((responses > bias + 1e-9).mean(axis=1))
        else:
            reduced = {"max": np.max, "min": np.min}.get(op, np.mean)
            columns.append(reduced(responses, axis=1))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("kind", ["whole", "bytes", "floats"])
@pytest.mark.parametrize("name", DICTIONARIES)
def test_columns_are_values_in_the_units_of_the_data(name, kind):
    X = samples(kind=kind)
    features = AtomFeatures(DICTIONARIES[name], 200, random_state=0).fit(X)
    found = features.transform(X)
    assert found.dtype == np.float32
    assert found.shape == (40, 200)
    expected = by_hand(features, X)
    # Floats are rounded to a fraction of their spread; proportions may then miss by a position.
    close = np.isclose(found, expected, rtol=1e-4, atol=2e-2 if kind == "floats" else 1e-4)
    assert close.mean() > (0.98 if kind == "floats" else 0.9999)


@pytest.mark.parametrize("name", DICTIONARIES)
def test_neither_order_nor_threads_nor_batches_matter(name):
    X = samples(3000)
    order = np.argsort(whole_numbers(3000, 2**30, 3), kind="stable")
    features = AtomFeatures(DICTIONARIES[name], 100, random_state=0)
    whole = features.fit_transform(X)
    assert clone(features).fit(X[order]).transform(X).tobytes() == whole.tobytes()
    assert clone(features).set_params(n_jobs=2).fit(X).transform(X).tobytes() == whole.tobytes()
    parts = [features.transform(X[i : i + 999]) for i in range(0, 3000, 999)]
    assert np.concatenate(parts).tobytes() == whole.tobytes()
    flat = clone(features).set_params(data_shape=SHAPE).fit(X.reshape(3000, -1))
    assert flat.transform(X.reshape(3000, -1)).tobytes() == whole.tobytes()
    assert (clone(features).set_params(random_state=1).fit_transform(X) != whole).any()


def test_copies_transform_alike_and_damaged_ones_are_refused():
    X = samples()
    features = AtomFeatures(DICTIONARIES["pooled"], 50, random_state=0).fit(X)
    loaded = pickle.loads(pickle.dumps(features))
    assert loaded.transform(X).tobytes() == features.transform(X).tobytes()
    for name, value in (
        ("cell", np.uint32(2**31)),
        ("operation", np.uint8(9)),
        ("window", np.uint32(1000)),
        ("window", np.uint32(0)),
        ("weight", np.inf),
    ):
        state = features.__getstate__()
        atoms = copy.copy(features._atoms)
        setattr(atoms, name, np.full_like(getattr(atoms, name), value, dtype=type(value)))
        with pytest.raises(ValueError, match="damaged"):
            AtomFeatures().__setstate__({**state, "_atoms": atoms})


def test_names_say_which_atom():
    X = whole_numbers(20 * 3 * 30, 100).reshape(20, 3, 30)
    names = {}
    for op in ("proportion", "max"):
        haar = Haar(4, 4, lobes="two", pool=op, window=1.0)
        features = AtomFeatures(haar, 50, channel_axis=1, random_state=0)
        names[op] = features.fit(X).get_feature_names_out()
    pattern = r"haar\(1,-1\) width 4 channel [012] proportion>-?[\d.]+( \(\d\))?"
    assert all(re.fullmatch(pattern, name) for name in names["proportion"])
    assert {n.split(" (")[0] for n in names["max"]} == {
        f"haar(1,-1) width 4 channel {c} max" for c in range(3)
    }
    for dictionary, pattern in (
        (Patch(3, 3, pool="min", window=5), r"patch width 3 channel \d at \d+ over 5 min"),
        (Patch(3, 3, boundary="inside"), r"patch width 3 channel \d at \d+"),
        (Haar(2, 2, lobes="three"), r"haar\(1,-2,1\) width 2 channel \d at \d+"),
        (
            Pair(2, 2, reach=(2, 5), pool="max", window=1.0),
            r"(pair width [12] apart -?\d channel \d(-\d)?|(patch|haar\S+) width 2 .*) max",
        ),
        (Variance(9, 9), r"variance width 9 channel \d at \d+"),
        (Patch(3, 3, views=Difference(), boundary="inside"), r"patch .* of difference .*"),
        (SparseOblique(density=1.0), r"sum of 90 features channel 0\+1\+2"),
        (Kernel([1, 0, -2, 3], pool="max", window=1.0), r"kernel\(1@0,-2@2,3@3\) channel \d max"),
        (
            Kernel(MINIROCKET, dilation=2, pool="lose", window=1.0),
            r"kernel\((1@\d+,|-2@\d+,){8}(1|-2)@16\) channel \d win of 6",
        ),
    ):
        made = AtomFeatures(dictionary, 30, random_state=0, channel_axis=1).fit(X)
        for name in made.get_feature_names_out():
            assert re.fullmatch(pattern + r"( \(\d+\))?", name), name


def test_names_are_as_many_as_columns_and_differ():
    X = samples()
    for dictionary in DICTIONARIES.values():
        features = AtomFeatures(dictionary, 300, random_state=0).fit(X)
        names = features.get_feature_names_out()
        assert len(set(names)) == len(names) == features.transform(X).shape[1]
    with pytest.raises(ValueError, match="input_features should have length equal"):
        features.get_feature_names_out(["one"])


def test_values_beyond_those_of_training_are_right():
    X = samples()
    features = AtomFeatures(DICTIONARIES["pooled"], 100, random_state=0).fit(X)
    found = features.transform(np.concatenate([X, X * 10**5]))
    np.testing.assert_array_equal(found[:40], features.transform(X))
    np.testing.assert_allclose(found[40:], by_hand(features, X * 10**5), rtol=1e-6)


def test_linear_atoms_of_whole_numbers_take_fractions():
    X = samples()
    features = AtomFeatures(Patch(1, 3), 100, random_state=0).fit(X)
    np.testing.assert_allclose(features.transform(X + 0.25), by_hand(features, X + 0.25), rtol=1e-6)


def test_a_ridge_learns_from_them():
    n = 300
    X = np.random.default_rng(0).normal(size=(n, 60))
    y = np.arange(n) % 2
    X[y == 1, 1:] += X[y == 1, :-1]
    features = AtomFeatures(
        Haar(1, 0.5, size_distribution="log", pool="proportion"), 1000, random_state=0
    )
    model = make_pipeline(features, StandardScaler(), RidgeClassifierCV(np.logspace(-3, 3, 10)))
    assert model.fit(X[:150], y[:150]).score(X[150:], y[150:]) > 0.95


def test_doubles_are_what_float32_rounds():
    X = samples(kind="floats")
    wide = AtomFeatures(DICTIONARIES["mixture"], 100, dtype=np.float64, random_state=0)
    found = wide.fit_transform(X)
    assert found.dtype == np.float64
    narrow = wide.set_params(dtype="float32").transform(X)
    np.testing.assert_array_equal(found.astype(np.float32), narrow)
    with pytest.raises(ValueError, match="dtype must be"):
        wide.set_params(dtype="int8").transform(X)


@pytest.mark.parametrize("offset", [0, 1e4, 1e8, 1e12])
def test_coarse_columns_are_told(offset):
    X = samples(kind="floats") + offset
    features = AtomFeatures(Patch(1, 3, pool="max"), 50, random_state=0)
    for repeats in (1, 1000):  # copies of few samples hide nothing
        features.fit(np.tile(X, (repeats, 1, 1)))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = features.transform(X)
        told = [str(w.message) for w in caught]
        assert len(told) == (offset >= 1e8)
        if told:
            assert re.match(r"50 of 50 atoms .*subtract an offset.*dtype=\"float64\"", told[0])
            assert len(np.unique(found[:, 0])) < 10
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wide = features.set_params(dtype="float64").fit(X).transform(X)
    assert len(np.unique(wide[:, 0])) > 30


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"dtype": "float16"}, "dtype must be .*got 'float16'"),
        ({"dtype": None}, "dtype must be .*got None"),
        ({"dtype": "numbers"}, "dtype must be .*got 'numbers'"),
        ({"n_atoms": 0}, "n_atoms must be an integer of at least 1, got 0"),
        ({"n_atoms": 1.5}, r"n_atoms must be .*got 1\.5"),
        ({"n_atoms": 10**9}, "n_atoms must be at most"),
        ({"n_jobs": 0}, "n_jobs must be .*got 0"),
        ({"random_state": "seed"}, "random_state must be .*got 'seed'"),
        ({"dictionary": "serious"}, "dictionary must be"),
        ({"channel_axis": 5}, "channel_axis=5"),
        ({"data_shape": (5, 5)}, "data_shape"),
        ({"dictionary": Patch(pool="sum")}, "pool must be"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        AtomFeatures(**parameters).fit(samples())


def test_weights_count_where_biases_are_drawn():
    X = np.random.default_rng(0).normal(size=(40, 30))
    weights = np.random.default_rng(1).integers(0, 4, 40)
    features = AtomFeatures(Haar(1, 5, pool="proportion"), 100, random_state=0)
    repeated = features.fit(np.repeat(X, weights, axis=0)).transform(X)
    np.testing.assert_array_equal(features.fit(X, sample_weight=weights).transform(X), repeated)
    np.testing.assert_array_equal(
        features.fit(X, None, weights / 2).transform(X), (features.fit(X[weights > 0]).transform(X))
    )
    assert (features.fit(X).transform(X) != repeated).any()
    with pytest.raises(ValueError, match="sample_weight has negative values"):
        features.fit(X, sample_weight=-weights)
