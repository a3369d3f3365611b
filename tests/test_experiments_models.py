"""The classifiers of the experiments: hyperparameters, one interface, and the networks.

Classifiers whose library is not installed are skipped: only `make paper` installs all of them.
"""

import importlib
import importlib.util
import math
import sys

import numpy as np
import pytest

from experiments import models
from morforest.datasets import make_bars, make_circle, make_impulse

LIBRARIES = {"XGBoost": "xgboost", "ConvNet": "torch", "MiniRocket": "aeon"}
CLASSIFIERS = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            name in LIBRARIES and importlib.util.find_spec(LIBRARIES[name]) is None,
            reason=f"{LIBRARIES.get(name)} is not installed",
        ),
    )
    for name in models.NAMES
]
SECTIONS = [key for key in models.table() if key != "every"]


@pytest.fixture(scope="module")
def networks():
    pytest.importorskip("torch")
    return importlib.import_module("experiments.networks")


def easy(shape, classes, rows, seed=0):
    """Samples of noise, each with a plateau whose height tells the class; labels are words."""
    random = np.random.RandomState(seed)
    labels = np.arange(rows) % classes
    X = random.normal(size=(rows, *shape))
    X[..., shape[-1] // 2 :] += 4 * labels.reshape(-1, *(1,) * len(shape))
    return X, np.array([f"class {label:02}" for label in labels])


def small(name, data, shape, classes=2, rows=40, seed=0):
    """The classifier as the experiments make it, but quick to fit."""
    model = models.make(name, data, shape, classes, rows, seed, threads=1)
    less = {
        "MORF": {"n_estimators": 20},
        "SPORF": {"n_estimators": 20},
        "RF": {"n_estimators": 20},
        "RF (scikit-learn)": {"n_estimators": 20},
        "XGBoost": {"n_estimators": 10},
        "ConvNet": {"max_updates": 100, "blind_updates": 60},
        "MiniRocket": {"minirocket__n_kernels": 168},
    }
    model.model.set_params(**less.get(name, {}))
    return model


# --- hyperparameters ------------------------------------------------------------------------------


def test_every_classifier_has_settings_for_every_data_set():
    names = [name for key in SECTIONS for name in (key, *models.table()[key]["names"])]
    assert len(names) == len(set(names))
    for data in names:
        for name in models.names_for(data):
            assert isinstance(models.settings(name, data), dict)
    assert set(models.table()["every"]) == set(models.NAMES)


@pytest.mark.parametrize(
    ("data", "shape", "min_size", "max_size", "max_features"),
    [
        ("A", (100,), (3,), (12,), 0.5),
        ("B", (28, 28), (2, 2), (2, 9), "sqrt"),
        ("C", (100,), (2,), (12,), 0.3),
        ("D", (3, 100), (2, 5), (2, 10), "sqrt"),
        ("E", (6, 100), (1, 5), (2, 20), "sqrt"),
        ("MNIST", (28, 28), (2, 2), (2, 5), "sqrt"),
    ],
)
def test_patches_are_those_of_the_paper(data, shape, min_size, max_size, max_features):
    forest = models.make("MORF", data, shape, 2, 100, 7, 1).model
    assert (forest.dictionary.min_size, forest.dictionary.max_size) == (min_size, max_size)
    assert forest.max_features == max_features
    assert (forest.n_estimators, forest.random_state, forest.n_jobs) == (500, 7, 1)


# Filters and windows of the convolutions, dropout, hidden layer: the paper's table.
NETWORKS = {
    "A": ((100,), 2, [(32, 6), (64, 10)], 0.5, 500),
    "B": ((28, 28), 2, [(32, 5), (64, 5)], 0.5, 200),
    "C": ((100,), 2, [(32, 10), (64, 5)], 0.5, 200),
    "D": ((3, 100), 2, [(32, 2), (32, 5), (64, 5)], None, 64),
    "E": ((6, 100), 2, [(32, 2), (32, 5), (64, 5)], None, 64),
    "MNIST": ((28, 28), 10, [(32, 5), (64, 5)], 0.5, 200),
    "surgical": ((20, 105), 2, [(32, 2), (32, 5), (64, 5)], None, 64),
    "movement": ((80, 500), 4, [(32, 3), (64, 3), (64, 3)], None, 64),
}


@pytest.mark.parametrize("data", NETWORKS)
def test_networks_are_those_of_the_paper(networks, data):
    import torch
    from torch import nn

    shape, classes, convolutions, dropout, hidden = NETWORKS[data]
    given = models.settings("ConvNet", data)
    network = networks.build(given["layers"], given["dims"], shape, classes)
    kinds = [nn.Conv1d, nn.MaxPool1d] if len(shape) == 1 else [nn.Conv2d, nn.MaxPool2d]
    found = [layer for layer in network if isinstance(layer, kinds[0])]
    assert [(layer.out_channels, layer.kernel_size[0]) for layer in found] == convolutions
    assert all(set(layer.stride) == {1} for layer in found)
    assert sum(isinstance(layer, kinds[1]) for layer in network) == len(convolutions)
    assert [layer.p for layer in network if isinstance(layer, nn.Dropout)] == [dropout] * (
        dropout is not None
    )
    linear = [layer for layer in network if isinstance(layer, nn.Linear)]
    assert [layer.out_features for layer in linear] == [hidden, classes]
    # Sizes stay, and are halved by each pool, down to one.
    sizes = shape
    for _ in convolutions:
        sizes = [max(size // 2, 1) for size in sizes]
    assert linear[0].in_features == 64 * math.prod(sizes)
    samples = torch.zeros(3, *networks.input_shape(shape, given["dims"]))
    assert network(samples).shape == (3, classes)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("LDA", "A", "name must be one of MORF, .* got 'LDA'"),
        ("MORF", "F", "data must be one of .* got 'F'"),
        ("MiniRocket", "MNIST", "name must be one of .* got 'MiniRocket'"),
    ],
)
def test_unknown_names_are_refused(name, data, message):
    with pytest.raises(ValueError, match=message):
        models.make(name, data, (28, 28), 2, 100, 0, 1)


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_missing_library_is_named(name, monkeypatch):
    for module in list(sys.modules):
        if module.split(".")[0] in (LIBRARIES[name], "networks"):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, LIBRARIES[name], None)
    with pytest.raises(ModuleNotFoundError, match=rf"needs {LIBRARIES[name]}.*morforest\[paper\]"):
        models.make(name, "A", (100,), 2, 100, 0, 1)


# --- the interface --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize(
    ("data", "shape"), [("A", (20,)), ("movement", (1, 20)), ("D", (3, 20)), ("B", (12, 12))]
)
def test_samples_of_every_shape_are_learnt(name, data, shape):
    if name not in models.names_for(data):
        pytest.skip("for series alone")
    X, y = easy(shape, 2, 60)
    X_test, y_test = easy(shape, 2, 30, seed=1)
    model = small(name, data, shape, rows=60).fit(X, y)
    found = model.predict(X_test)
    assert np.mean(found == y_test) > 0.9
    probabilities = model.predict_proba(X_test)
    assert probabilities.shape == (30, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], found)
    # A row's answer depends on that row and the training rows alone.
    np.testing.assert_allclose(model.predict_proba(X_test[:1]), probabilities[:1], atol=1e-5)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_the_same_seed_gives_the_same_predictions(name):
    X, y = easy((3, 20), 3, 60)
    X_test = easy((3, 20), 3, 50, seed=1)[0]
    model = small(name, "D", (3, 20), classes=3, rows=60, seed=5)
    first = model.fit(X, y).predict_proba(X_test)
    # A second fit starts afresh, whatever came between.
    model.fit(X[::-1] * 3, y)
    np.testing.assert_array_equal(model.fit(X, y).predict_proba(X_test), first)
    again = small(name, "D", (3, 20), classes=3, rows=60, seed=5)
    np.testing.assert_array_equal(again.fit(X, y).predict_proba(X_test), first)


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize(("classes", "rows"), [(2, 10), (10, 10), (40, 200)])
def test_few_rows_and_many_classes(name, classes, rows):
    X, y = easy((2, 20), classes, rows)
    model = small(name, "ssvep", (2, 20), classes=classes, rows=rows).fit(X, y)
    assert model.predict_proba(X).shape == (rows, classes)
    assert set(model.predict(X)) <= set(y)


@pytest.mark.parametrize("name", ["kNN", "RBF SVM", "MORF"])
def test_the_unit_of_a_channel_does_not_matter(name):
    X, y = easy((3, 20), 2, 60)
    X_test = easy((3, 20), 2, 50, seed=1)[0]
    units = np.array([1.0, 1024.0, 0.125]).reshape(3, 1)
    found = small(name, "movement", (3, 20), rows=60).fit(X, y).predict_proba(X_test)
    other = small(name, "movement", (3, 20), rows=60).fit(X * units, y)
    other = other.predict_proba(X_test * units)
    np.testing.assert_allclose(other, found, atol=1e-6)


def test_one_scale_serves_all_pixels():
    X, y = easy((12, 12), 2, 60)
    model = small("kNN", "B", (12, 12), rows=60).fit(X, y)
    assert model.mean_.size == model.spread_.size == 1
    np.testing.assert_allclose([model.mean_.item(), model.spread_.item()], [X.mean(), X.std()])


def test_constant_data_are_no_reason_to_fail():
    X, y = np.ones((20, 1, 20)), np.arange(20) % 2
    assert set(small("kNN", "movement", (1, 20), rows=20).fit(X, y).predict(X)) <= {0, 1}


def test_samples_of_another_shape_are_refused():
    X, y = easy((20,), 2, 40)
    model = small("kNN", "A", (20,)).fit(X, y)
    with pytest.raises(ValueError, match=r"shape \(19,\), fitted were \(20,\)"):
        model.predict(X[:, 1:])


# --- the networks ---------------------------------------------------------------------------------


def test_the_network_computes_what_its_layers_say(networks):
    import torch
    from torch.nn import functional

    layers = [{"conv": 4, "window": 6}, {"pool": 2}, {"dropout": 0.5}, {"linear": 5}]
    network = networks.build(layers, 1, (21,), 3).eval()
    x = torch.randn(7, 1, 21)
    (filters, bias), (hidden, hidden_bias), (last, last_bias) = (
        (layer.weight, layer.bias) for layer in network if hasattr(layer, "weight")
    )
    # Two zeros before and three after a window of six: the size stays.
    signal = functional.conv1d(functional.pad(x, (2, 3)), filters, bias).relu()
    pooled = signal[..., :20].reshape(7, 4, 10, 2).amax(dim=3).reshape(7, 40)
    expected = (pooled @ hidden.T + hidden_bias).relu() @ last.T + last_bias
    torch.testing.assert_close(network(x), expected)


@pytest.mark.parametrize(
    ("counts", "held_out"),
    [((50, 50), 10), ((1000, 3000), 400), ((5,) * 40, 40), ((20, 20), 10)],
)
def test_the_held_out_rows_are_stratified(networks, counts, held_out):
    y = np.repeat(np.arange(len(counts)), counts)
    train, others = networks.hold_out(y, 0.1, seed=0)
    assert len(others) == held_out
    assert sorted([*train, *others]) == list(range(len(y)))
    np.testing.assert_allclose(
        np.bincount(y[others]), held_out * np.array(counts) / sum(counts), atol=1
    )


@pytest.mark.parametrize("counts", [(5, 5), (19, 20), (99, 1), (3,) * 40])
def test_few_rows_are_all_trained_on(networks, counts):
    y = np.repeat(np.arange(len(counts)), counts)
    train, others = networks.hold_out(y, 0.1, seed=0)
    np.testing.assert_array_equal(train, np.arange(len(y)))
    assert len(others) == 0


def test_the_best_weights_are_kept_and_patience_ends(networks):
    # Noise: the held-out loss rises as soon as the network learns the training rows by heart.
    random = np.random.RandomState(0)
    X, y = random.normal(size=(200, 30)), np.arange(200) % 2
    model = networks.ConvNet(
        ({"conv": 8, "window": 3}, {"dropout": 0.5}, {"linear": 50}),
        dims=1,
        patience=3,
        least_gain=0.0,
    ).fit(X, y)
    _, others = networks.hold_out(y, 0.1, seed=0)
    probabilities = model.predict_proba(X[others])[np.arange(len(others)), y[others]]
    best = int(np.argmin(model.losses_))
    assert -np.log(probabilities).mean() == pytest.approx(model.losses_[best], rel=1e-4)
    assert len(model.losses_) == best + 1 + 3
    assert model.updates_ == 25 * len(model.losses_)


def test_a_gain_that_is_too_small_does_not_count(networks):
    X, y = easy((20,), 2, 100)
    layers = ({"conv": 4, "window": 3}, {"linear": 5})
    model = networks.ConvNet(layers, dims=1, patience=3, least_gain=100.0).fit(X, y)
    assert len(model.losses_) == 1 + 3  # any first loss is a gain


def test_updates_are_bounded(networks):
    X, y = easy((20,), 2, 100)
    layers = ({"conv": 4, "window": 3}, {"linear": 5})
    model = networks.ConvNet(layers, dims=1, max_updates=60, patience=100).fit(X, y)
    assert (model.updates_, len(model.losses_)) == (60, 3)
    model = networks.ConvNet(layers, dims=1, blind_updates=40).fit(X[:10], y[:10])
    assert (model.updates_, model.losses_) == (40, [])


def test_a_fit_leaves_torch_as_it_was(networks):
    import torch

    X, y = easy((20,), 2, 100)
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    model = networks.ConvNet(
        ({"conv": 4, "window": 3}, {"dropout": 0.5}, {"linear": 5}), dims=1, max_updates=30
    ).fit(X, y)
    assert not model.network_.training
    np.testing.assert_array_equal(model.predict_proba(X), model.predict_proba(X))
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


def test_values_that_are_no_numbers_are_refused(networks):
    X, y = easy((20,), 2, 40)
    X[3, 4] = np.nan
    with pytest.raises(ValueError, match="X must be finite"):
        networks.ConvNet(({"linear": 5},), dims=1).fit(X, y)


@pytest.mark.parametrize(
    ("data", "make", "rows", "updates", "at_most"),
    [
        ("A", make_circle, 400, 600, 0.25),
        ("B", make_bars, 60, 75, 0.1),
        ("C", make_impulse, 200, 100, 0.22),
    ],
)
def test_networks_learn_the_simulations(networks, data, make, rows, updates, at_most):
    X, y = make(rows, random_state=0)
    X_test, y_test = make(1000, random_state=1)
    model = models.make("ConvNet", data, X.shape[1:], 2, rows, 0, 1)
    model.model.set_params(max_updates=updates)
    assert np.mean(model.fit(X, y).predict(X_test) != y_test) <= at_most
