"""Checks of models that come from a file: every part against every other.

A damaged file is refused when it is loaded, with a ValueError that says what is wrong, and not by
whatever goes wrong when the model is first used. The forest, its atoms and its columns check
themselves; what an estimator holds beside them is checked here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from morforest._arrays import refusing, widen
from morforest._atoms import AtomList
from morforest._fixed_point import CellFormat
from morforest._leaf_samples import LeafSamples
from morforest._lengths import ALIGNMENTS
from morforest._model import Forest
from morforest._parameters import check_jobs, parameter_names
from morforest._states import from_plain
from morforest._uncertainty import OutOfBag
from morforest.dictionary._base import Dictionary

LARGEST_EXPONENT = 1100  # of targets: beyond those of all floats
LARGEST_SEED = 2**63


def restore(estimator: Any, state: Any, fitted: str, check: Callable[[Any], None]) -> None:
    """Set what a pickle holds, and check it if the attribute `fitted` says that there is a model.

    A state without that attribute is one of parameters alone.
    """
    if not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
        raise ValueError("damaged model: the state is not a dict of attributes")
    with refusing("model"):
        state = {name: from_plain(value) for name, value in state.items()}
    kind: Any = type(estimator)
    for name in state:
        require(not callable(getattr(kind, name, None)), f"{name} is a method")
    BaseEstimator.__setstate__(estimator, state)
    if state.get(fitted) is None:
        learned = [name for name in state if name.endswith("_") and not name.startswith("_")]
        if learned:
            raise ValueError(f"damaged model: there is {learned[0]}, but no {fitted}")
        return
    with refusing("model"):
        for name in sorted(parameter_names(kind)):
            require(name in state, f"the parameter {name} is missing")
        check(estimator)


def require(condition: bool, what: str) -> None:
    """Raise unless a loaded model is as it must be."""
    if not condition:
        raise ValueError(f"damaged model: {what}")


def check_trees(estimator: Any) -> None:
    """Check a forest, a tree or a boosted model."""
    forest = estimator._forest
    require(isinstance(forest, Forest), "_forest is not a forest")
    check_samples_seen(estimator, forest.sample_shape)
    check_jobs(getattr(estimator, "n_jobs", None))
    require(type(estimator._seed) is int and 0 <= estimator._seed < LARGEST_SEED, "the seed")
    check_dictionary(estimator.dictionary_)
    classes = 0
    if isinstance(estimator, ClassifierMixin):
        classes = _check_classes(estimator.classes_, estimator.n_classes_, forest.classes_of)
    if "max_iter" not in estimator._get_param_names():  # trees of a forest, and not rounds
        require(forest.class_count == classes, "the leaves do not fit the classes")
        require(classes == 0 or forest.values == 1, "leaves of classes and of several values")
        priors = estimator._fitted_priors
        require(isinstance(priors, tuple) and set(priors) <= set(estimator._priors), "the priors")
        rules = estimator._rules
        require(isinstance(rules, tuple) and len(rules) == 3, "the rules of growth")
        require(isinstance(estimator.bootstrap_, (bool, np.bool_)), "how samples were drawn")
        silent = forest._core.has_silent_leaves
        require(not silent or "ignore" in priors, "leaves that say nothing")
        check_leaf_samples(estimator, forest)
        if hasattr(estimator, "max_samples_"):
            drawn, given = estimator.max_samples_, estimator._n_samples
            require(
                type(drawn) is int and type(given) is int and min(drawn, given) > 0,
                "the number of samples",
            )
        return
    require(forest.class_count == 0, "leaves of boosting hold no classes")
    outputs = classes if classes > 2 else 1
    require(forest.values == outputs, "the leaves do not fit the classes")
    require(not forest._core.has_silent_leaves, "leaves of boosting that say nothing")
    check_numbers("_baseline", estimator._baseline, (outputs,))
    require(
        type(estimator._exponent) is int and abs(estimator._exponent) <= LARGEST_EXPONENT,
        "the exponent of the targets",
    )
    loss = estimator._fitted_loss
    require(isinstance(loss, tuple) and all(isinstance(x, str | Real) for x in loss), "the loss")
    require(
        type(estimator.n_iter_) is int and estimator.n_iter_ == forest.n_trees,
        "n_iter_ is not the number of trees",
    )


def check_dictionary(dictionary: Any) -> None:
    """Check what a model says of its dictionary, and the arrays in it."""
    require(isinstance(dictionary, Dictionary), "dictionary_ is not a dictionary")
    for part, _ in dictionary._flatten():
        part._check_stored()


def check_leaf_samples(estimator: Any, forest: Forest) -> None:
    """Check the training samples of leaves and what was predicted of them, if these are kept."""
    samples = getattr(estimator, "_leaf_samples", None)
    known = getattr(estimator, "_out_of_bag", None)
    if samples is None:
        require(known is None, "there is _out_of_bag, but no _leaf_samples")
        return
    require(isinstance(samples, LeafSamples), "_leaf_samples are no samples of leaves")
    samples.check(forest)
    require((known is None) == bool(samples.drawn.all()), "_out_of_bag does not fit the bags")
    if known is not None:
        require(isinstance(known, OutOfBag), "_out_of_bag is no record of samples")
        known.check(samples.drawn, forest.targets)


def check_features(estimator: Any) -> None:
    """Check drawn atoms."""
    atoms = estimator._atoms
    require(isinstance(atoms, AtomList) and len(atoms) > 0, "_atoms are not atoms")
    require(bool((atoms.count > 0).all()), "atoms without terms")
    estimator._format = CellFormat.load(estimator._format)
    atoms.require_format(estimator._format)
    shape = atoms.layout.shape
    require(not estimator._format.real or atoms.layout.only_raw, "float64 cells of derived views")
    check_samples_seen(estimator, shape)
    check_jobs(estimator.n_jobs)
    estimator._column_type()  # checks its parameter
    coarse = estimator._coarse
    require(type(coarse) is int and 0 <= coarse <= len(atoms), "the number of coarse atoms")
    axis = estimator._channel_axis
    require(axis is None or (type(axis) is int and 0 <= axis < len(shape)), "the channel axis")
    atoms.values(np.ones(len(atoms)), estimator._format)  # checks the atoms themselves
    check_dictionary(estimator.dictionary_)


def check_left_out(estimator: Any, name: str, columns: tuple[int, ...]) -> None:
    """Check what was predicted of training samples that were left out.

    Nothing is computed from it, so that users may delete it to save space, and extreme targets may
    overflow.
    """
    if not hasattr(estimator, name):
        return
    found = widen(name, getattr(estimator, name), np.float64, 1 + len(columns), "model")
    require(
        isinstance(getattr(estimator, name), np.ndarray)
        and len(found) > 0
        and found.shape[1:] == columns,
        f"{name} does not fit the model",
    )


def is_finite(value: Any) -> bool:
    """Say whether a value is a float, and finite."""
    return isinstance(value, float) and math.isfinite(value)


def check_samples_seen(estimator: Any, shape: tuple[int, ...]) -> None:
    """Check what an estimator says of the samples that it was fitted on."""
    given = estimator.data_shape_
    require(
        type(given) is tuple and given == shape and all(type(length) is int for length in given),
        f"samples of shape {given!r}, but atoms over {shape}",
    )
    features = estimator.n_features_in_
    require(
        type(features) is int and features == math.prod(shape), f"samples of {features!r} features"
    )
    require(estimator._sizes is None or _are_sizes(estimator._sizes), "the sizes of samples")
    aligned = estimator._aligned
    require(
        aligned is None
        or (
            type(aligned) is tuple
            and [type(value) for value in aligned] == [str, int]
            and aligned[0] in ALIGNMENTS
            and 0 <= aligned[1] < len(given) <= 2
        ),
        "how series of unequal length were brought to one",
    )
    if hasattr(estimator, "feature_names_in_"):
        names = estimator.feature_names_in_
        require(
            isinstance(names, np.ndarray)
            and names.shape == (features,)
            and all(isinstance(name, str) for name in names.tolist()),
            "feature_names_in_ do not fit the features",
        )


def _are_sizes(sizes: Any) -> bool:
    """Say whether these are sizes and peaks of training samples."""
    if type(sizes) is not tuple or len(sizes) != 4 or not all(map(is_finite, sizes)):
        return False
    small, large, low, high = sizes
    return bool(0 < small <= large <= high and small <= low <= high)


def check_labels(classes: Any) -> int:
    """Check sorted class labels, and return their number."""
    require(isinstance(classes, np.ndarray) and classes.ndim == 1, "classes_ is not a list")
    labels = classes.tolist()  # refuses strings of no characters
    require(bool((classes[1:] > classes[:-1]).all()), "classes_ are not sorted")
    require(len(labels) > 0 and all(label == label for label in labels), "classes_ are not labels")
    return len(labels)


def _check_classes(classes: Any, counts: Any, classes_of: tuple[int, ...]) -> int:
    """Check the labels of an output, or of a list of them, and return the number of all classes."""
    if not classes_of:
        found = check_labels(classes)
        require(type(counts) is int and counts == found, "n_classes_ is not the number of classes")
        return found
    several = type(classes) is list and len(classes) == len(classes_of)
    require(several, "classes_ does not fit the outputs")
    each = [check_labels(labels) for labels in classes]
    require(tuple(each) == classes_of, "classes_ does not fit the outputs")
    whole = type(counts) is list and all(type(count) is int for count in counts)
    require(whole and counts == each, "n_classes_ is not the number of classes")
    return sum(each)


def check_numbers(name: str, values: Any, shape: tuple[int, ...]) -> None:
    """Check an array of finite floats."""
    found = widen(name, values, np.float64, len(shape), "model")
    require(
        isinstance(values, np.ndarray) and found.shape == shape and bool(np.isfinite(found).all()),
        f"{name} has other numbers than the model needs",
    )
