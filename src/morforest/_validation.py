"""Checks of data: samples, targets and weights, from what users pass to what the core takes."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from morforest._data_scale import find_sizes, warn_of_scale
from morforest._fixed_point import (
    class_sums,
    sum_once,
    to_core_dtype,
    to_training_dtype,
    without_overflow,
)
from morforest._inputs import explain_values, read_samples
from morforest._parameters import check_choice, is_integer, is_number
from morforest._sparse import SparseRows

MAX_CLASSES = 65_536
MAX_TARGET = 1e300  # sums over trees stay finite
DATES = (datetime.date, datetime.timedelta, np.datetime64, np.timedelta64)  # and their subclasses
MAX_CANDIDATES = 10_000_000
COMBINED_CANDIDATES = 100  # which a node combines where max_features="auto"
MAX_COMBINED_CANDIDATES = 2**14  # beyond, the core's sums might overflow


def check_samples(estimator: Any, X: Any, *, fitting: bool) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return X as flat rows of numbers, and the shape of one sample.

    Rows to predict are C-contiguous in a core type. Training data are left as they are, because
    their table is filled from pieces of them.
    """
    shape: tuple[int, ...] | None = None
    refuse_masked("X", X)
    X = X.csr if isinstance(X, SparseRows) else read_samples(X, type(estimator).__name__)
    if not fitting:
        _refuse_one_sample(estimator, X)
    if len(X.shape) > 2:
        shape = X.shape[1:]
        if 0 in X.shape:
            raise ValueError(
                f"Found array with shape {X.shape}: X needs at least one sample and no empty axis."
            )
        if sp.issparse(X):
            raise ValueError(
                f"X is sparse and has shape {X.shape}: pass flat rows, a sparse matrix of two "
                f"axes, with data_shape={shape}."
            )
        X = X.reshape(len(X), -1)
    if not fitting and shape is not None and shape != estimator.data_shape_:
        raise ValueError(_explain_shape(shape, estimator.data_shape_))
    # validate_data sees flat rows, so that n_features_in_ is the number of features.
    if fitting or not _is_plain(estimator, X):
        X = _validated(estimator, X, fitting)
    if fitting:
        X = to_training_dtype(X)
        estimator._sizes = find_sizes(X)
        return X, _sample_shape(estimator.data_shape, shape, X.shape[1])
    warn_of_scale(X, estimator._sizes)
    return to_core_dtype(X), estimator.data_shape_


def _validated(estimator: Any, X: Any, fitting: bool) -> Any:
    """Return flat rows as scikit-learn checks them, or an error that says more than its own."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "mM":
        raise ValueError(
            f"X holds dates or time spans (dtype {X.dtype}): turn them into numbers, such as "
            '(X - X.min()) / np.timedelta64(1, "D").'
        )
    try:
        X = validate_data(estimator, X, reset=fitting, dtype="numeric", accept_sparse="csr")
        if X.dtype == object:  # of a data frame that is neither pandas nor polars
            raise ValueError("X has dtype object, which is not a kind of number: convert it first.")
        return SparseRows(X) if sp.issparse(X) else X
    except (TypeError, ValueError):
        table = np.asarray(X) if hasattr(X, "column_names") else X
        message = explain_values(table, type(estimator).__name__)
        if message is None:
            raise
        raise ValueError(message) from None


def _refuse_one_sample(estimator: Any, X: Any) -> None:
    """Raise if samples to predict are a single one, without the axis that counts samples."""
    known, features = estimator.data_shape_, estimator.n_features_in_
    flat = X.shape == (features,)
    if not flat and (X.shape != known or (len(known) == 2 and known[1] == features)):
        return
    what = "Expected 2D array, got 1D array instead. Reshape your data" if flat else "Add an axis"
    raise ValueError(
        f"X has shape {X.shape}, that of a single sample, but its first axis must count samples. "
        f"{what}: pass X[None], a batch of one."
    )


def _explain_shape(given: tuple[int, ...], known: tuple[int, ...]) -> str:
    """Say what to do about samples of another shape than those of training."""
    features = math.prod(known)
    message = (
        f"X has samples of shape {given}, but the model was fitted on samples of shape {known}"
    )
    longer, other = (given, known) if len(given) > len(known) else (known, given)
    if [k for k in longer if k != 1] == [k for k in other if k != 1]:
        shape = ", ".join(map(str, ("len(X)", *known)))
        return f"{message}, which differ in axes of length one: pass X.reshape({shape})."
    if math.prod(given) != features:
        return f"{message}: pass such samples, or flat rows of {features} features."
    if len(known) == 1:
        return (
            f"{message}: pass flat rows as in training, X.reshape(len(X), -1), or fit again on "
            f"samples of shape {given}, so that the forest knows which features are neighbours."
        )
    return (
        f"{message}. Both have {features} features, but in another arrangement: pass samples as in "
        f"training. X.reshape(len(X), -1) is taken as flat rows in the order of shape {known}, "
        "which is right only if these numbers are in that order."
    )


def refuse_masked(name: str, values: Any) -> None:
    """Raise if some values of a masked array, or of a list of these, are masked.

    NumPy would drop the mask in silence, and what it hides would be taken for data.
    """
    parts = values if isinstance(values, (list, tuple)) else [values]
    masked = sum(
        int(np.ma.getmaskarray(part).sum())
        for part in parts
        if isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part)
    )
    if not masked:
        return
    raise ValueError(
        f"{name} has {masked} masked values, and missing values are not supported: fill them in, "
        f"for example with {name}.filled(0), or drop these samples."
    )


def _is_plain(estimator: Any, X: Any) -> bool:
    """Say whether validate_data would return rows to predict as they are.

    It takes several times longer than the prediction of one sample.
    """
    if type(X) is not np.ndarray or X.dtype.kind not in "uif" or X.dtype.itemsize > 8:
        return False
    if X.ndim != 2 or not len(X) or X.shape[1] != estimator.n_features_in_:
        return False
    if hasattr(estimator, "feature_names_in_"):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return X.dtype.kind != "f" or bool(np.isfinite(X.sum()))


def _sample_shape(data_shape: Any, shape: tuple[int, ...] | None, features: int) -> tuple[int, ...]:
    if data_shape is None:
        return (features,) if shape is None else shape
    given = tuple(data_shape) if isinstance(data_shape, Iterable) else (data_shape,)
    if not given or not all(is_integer(k) and k >= 1 for k in given):
        raise ValueError(
            "data_shape must be a tuple of positive integers, such as (28, 28), "
            f"got {data_shape!r}."
        )
    given = tuple(int(k) for k in given)
    if math.prod(given) != features:
        raise ValueError(
            f"data_shape={data_shape!r} describes samples of {math.prod(given)} features, but X "
            f"has {features}."
        )
    if shape is not None and shape != given:
        raise ValueError(
            f"data_shape={data_shape!r} contradicts X, whose samples have shape {shape}: leave "
            "data_shape out, or pass flat rows."
        )
    return given


def check_classes(y: Any, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted class labels and the class number of each sample."""
    y = _one_column(y, n_samples)
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) > MAX_CLASSES:
        raise ValueError(
            f"y has {len(classes)} classes, more than the {MAX_CLASSES} allowed. If y is a "
            "quantity rather than a label, use MorfRegressor."
        )
    return classes, codes.astype(np.uint32)


def earlier_classes(
    earlier: np.ndarray, classes: np.ndarray, codes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Give the classes of further samples the numbers that they had in an earlier fit."""
    if np.array_equal(classes, earlier):
        return classes, codes
    if not np.isin(classes, earlier).all():
        raise ValueError(
            f"warm_start needs the classes of the first fit, {earlier}; y has {classes}."
        )
    return earlier, np.searchsorted(earlier, classes)[codes].astype(np.uint32)


def check_targets(y: Any, n_samples: int, criterion: str) -> np.ndarray:
    """Return the targets of a regression as float64."""
    given = _one_column(y, n_samples)
    try:
        y = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold numbers for regression: {error}") from None
    if not np.isfinite(y).all():
        raise ValueError(
            "Input y contains NaN or infinity: drop those samples or fill in their targets."
        )
    if np.abs(y).max() > MAX_TARGET:
        raise ValueError(
            f"y has values beyond {MAX_TARGET:g} in size, up to {np.abs(y).max()}: scale it down."
        )
    if criterion == "poisson" and ((y < 0).any() or not y.sum() > 0):
        raise ValueError(
            'criterion="poisson" needs targets that are not negative and not all zero; '
            f"y ranges from {y.min()} to {y.max()}."
        )
    targets: np.ndarray = y
    return targets


def _one_column(y: Any, n_samples: int) -> np.ndarray:
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    refuse_masked("y", y)
    y = np.asarray(y)
    if y.dtype.kind in "mM" or (y.dtype == object and any(isinstance(v, DATES) for v in y.flat)):
        raise ValueError(
            f"y holds dates or time spans (dtype {y.dtype}): turn them into numbers for "
            'regression, such as (y - y.min()) / np.timedelta64(1, "D"), or into strings for '
            "classification, y.astype(str)."
        )
    if y.ndim == 2 and y.shape[1] > 1:
        raise ValueError(
            f"y has shape {y.shape}, but several outputs at once are not supported: fit one "
            "estimator per output, for example with sklearn.multioutput."
        )
    y = column_or_1d(y, warn=True)
    if len(y) != n_samples:
        raise ValueError(f"X has {n_samples} samples but y has {len(y)}: they must match.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(
            "Input y contains NaN or infinity: drop those samples or fill in their targets."
        )
    column: np.ndarray = y
    return column


def check_weights(sample_weight: Any, n_samples: int) -> np.ndarray | None:
    """Return sample weights as float64, or None if there are none."""
    if sample_weight is None:
        return None
    refuse_masked("sample_weight", sample_weight)
    kind = np.asarray(sample_weight).dtype
    if kind.kind in "cmM":
        raise ValueError(f"sample_weight must hold real numbers, got dtype {kind}.")
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must hold numbers: {error}") from None
    if weights.ndim == 0:
        weights = np.full(n_samples, float(weights))
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, expected ({n_samples},): one weight per "
            "sample."
        )
    if not np.isfinite(weights).all():
        raise ValueError("sample_weight contains NaN or infinity.")
    if (weights < 0).any():
        raise ValueError(
            f"sample_weight has negative values, the smallest {weights.min()}: weights must be "
            "zero or positive."
        )
    if not (weights > 0).any():
        raise ValueError("sample_weight is zero everywhere: at least one must be positive.")
    return without_overflow(weights)


def check_groups(groups: Any, n_samples: int) -> np.ndarray | None:
    """Return the number of the group of each sample, in the order of their labels, or None."""
    if groups is None:
        return None
    refuse_masked("groups", groups)
    labels = np.asarray(groups)
    if labels.shape != (n_samples,):
        raise ValueError(
            f"groups has shape {labels.shape}, expected ({n_samples},): one label per sample."
        )
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ValueError(
            "groups contains NaN: give each sample a group, if need be one of its own."
        )
    try:
        found: np.ndarray = np.unique(labels, return_inverse=True)[1]
    except TypeError as error:
        raise ValueError(f"groups must be labels of one kind that can be sorted: {error}") from None
    if len(found) and found.max() == 0:
        raise ValueError(
            f"groups has a single label, {labels[0]!r}: at least two groups are needed, so that "
            "some can be held out."
        )
    return found


def candidate_count(max_features: Any, features: int) -> int:
    """Resolve `max_features` to the number of atoms drawn at each node."""
    if isinstance(max_features, str) and max_features in ("sqrt", "log2"):
        count = math.sqrt(features) if max_features == "sqrt" else math.log2(features)
    elif max_features is None:
        count = features
    elif is_integer(max_features) and max_features >= 1:
        count = max_features
    elif is_number(max_features) and not is_integer(max_features) and 0 < max_features < math.inf:
        count = max_features * features
    else:
        raise ValueError(
            'max_features must be "auto", "sqrt", "log2", None, an integer of at least 1 or a '
            "positive float (a share of the number of features, which may exceed 1), "
            f"got {max_features!r}."
        )
    if count > MAX_CANDIDATES:
        raise ValueError(
            f"max_features={max_features!r} asks for more than {MAX_CANDIDATES} candidates at each "
            "node: give a smaller one."
        )
    return max(1, int(count))


def class_factors(
    class_weight: Any, classes: np.ndarray, codes: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return the factor by which the weights of each class are multiplied."""
    if isinstance(class_weight, str):
        check_choice("class_weight", class_weight, ("balanced", "balanced_subsample"))
        totals = class_sums(codes, weights, len(classes))
        present = totals > 0
        factors = np.ones(len(classes))
        factors[present] = sum_once(totals) / (present.sum() * totals[present])
        return factors
    if not isinstance(class_weight, dict):
        raise ValueError(
            'class_weight must be None, a name such as "balanced" or a dict from class to weight, '
            f"got {class_weight!r}."
        )
    factors = np.ones(len(classes))
    positions = {label: i for i, label in enumerate(classes.tolist())}
    named: set[Any] = set()
    unknown = []
    for label, weight in class_weight.items():
        key = label.item() if isinstance(label, np.generic) else label
        if not is_number(weight) or not 0 <= weight < math.inf:
            raise ValueError(f"class_weight of {label!r} must be zero or positive, got {weight!r}.")
        if key in positions:
            factors[positions[key]] = weight
            named.add(key)
        else:
            unknown.append(label)
    # As in scikit-learn, a label may be missing in y, or a class in the dict, but not both at once,
    # which is how a label looks that is written in another way than in y.
    if unknown and len(named) < len(classes):
        raise ValueError(
            f"class_weight has labels that are not in y, {unknown}, and lacks some that are, "
            f"{[label for label in positions if label not in named]}: name the classes as y does."
        )
    if not factors[codes].any():
        raise ValueError(
            f"class_weight={class_weight!r} is zero for every class in y: one must be positive."
        )
    return without_overflow(factors)
