"""Checks of single parameters, each with an error that names parameter, value and remedy."""

from __future__ import annotations

import math
from functools import cache
from numbers import Integral, Real
from typing import Any, TypeGuard

import numpy as np
from sklearn.utils import check_random_state as to_random_state

# Limits that no sensible call reaches. Beyond them the work would take days, or more memory than
# there is, so that the number is more likely a slip than a wish.
MAX_TREES = 1_000_000  # trees of a forest, or rounds of boosting
MAX_COPIES = 1_000  # copies of each sample that augment= makes
MAX_JOBS = 4_096  # threads or processes


def is_integer(value: Any) -> TypeGuard[int]:
    """Say whether a value is an integer, Python's or NumPy's, and not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: Any) -> TypeGuard[float]:
    """Say whether a value is a real number, and not a bool."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_integer(
    name: str, value: Any, low: int, high: int | None = None, *, none: bool = False
) -> None:
    """Require an integer of at least `low` and at most `high`, or None where that is allowed."""
    if none and value is None:
        return
    if not is_integer(value) or value < low or (high is not None and value > high):
        limits = f"of at least {low}" if high is None else f"from {low} to {high}"
        also = " or None" if none else ""
        raise ValueError(f"{name} must be an integer {limits}{also}, got {value!r}.")


def check_choice(name: str, value: Any, choices: tuple[str, ...], *, none: bool = False) -> None:
    """Require one of a few names, or None where that is allowed."""
    if none and value is None:
        return
    if not isinstance(value, str) or value not in choices:
        also = " or None" if none else ""
        names = ", ".join(map(repr, choices))
        raise ValueError(f"{name} must be one of {names}{also}, got {value!r}.")


def check_fraction(name: str, value: Any, low: float, high: float) -> None:
    """Require a number in [low, high]."""
    if not is_number(value) or not low <= value <= high:
        raise ValueError(f"{name} must be a number from {low} to {high}, got {value!r}.")


def check_flag(name: str, value: Any) -> None:
    """Require True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {value!r}.")


def count_or_fraction(name: str, value: Any, total: int) -> int:
    """Turn an integer, or a fraction of `total` in (0, 1], into a count of at least one."""
    if is_integer(value):
        if value < 1:
            raise ValueError(f"{name} must be at least 1 as an integer, got {value!r}.")
        return int(value)
    if is_number(value) and 0 < value <= 1:
        return max(1, math.ceil(value * total))
    raise ValueError(
        f"{name} must be an integer of at least 1 or a float in (0, 1], got {value!r}."
    )


def check_jobs(n_jobs: Any) -> None:
    """Require None or a non-zero integer that a machine could have processors for."""
    if n_jobs is None:
        return
    if not is_integer(n_jobs) or n_jobs == 0 or abs(n_jobs) > MAX_JOBS:
        raise ValueError(
            f"n_jobs must be None, an integer from 1 to {MAX_JOBS}, or a negative one to count "
            f"back from the number of processors (-1 for all), got {n_jobs!r}."
        )


def check_random_state(name: str, value: Any) -> np.random.RandomState:
    """Require a seed, a RandomState or None, and return a RandomState."""
    try:
        state: np.random.RandomState = to_random_state(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be None, an integer from 0 to 2**32 - 1 or a numpy.random.RandomState, "
            f"got {value!r}."
        ) from None
    return state


@cache
def parameter_names(kind: Any) -> frozenset[str]:
    """Return the names of the parameters of an estimator's or a dictionary's class."""
    return frozenset(kind._get_param_names())


def restore_parameters(holder: Any, state: Any) -> None:
    """Set the parameters of a dictionary, a view or copies from what a pickle or a file holds."""
    kind: Any = type(holder)
    if not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
        raise ValueError(f"damaged model: the state of {kind.__name__} is not a dict")
    for name in state.keys() - parameter_names(kind):
        raise ValueError(f"damaged model: {kind.__name__} has no parameter {name!r}")
    holder.__dict__.update(state)
