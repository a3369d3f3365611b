"""Which forests learn a linear combination of their candidates at each node; see core/ridge.hpp."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from morforest._columns import LARGEST
from morforest.dictionary import Axis
from morforest.dictionary._base import Bounds, ResolvedDictionary

MASS = 2.0**17  # of a combination's weights
CANDIDATES = 100  # that are combined, unless the user says how many
MOST_CANDIDATES = 2**14  # beyond, the core's sums might overflow
# Relative to the mean sum of squares of the columns, the largest first: the earlier wins among
# equals. Eigenvalues of d columns add up to d in this unit and the few large ones carry most, so
# that the grid goes from nearly no shrinkage to that of all but the largest.
PENALTIES = (10.0, 1.0, 0.1, 0.01)


class GivenColumns(Axis):
    """Features that are columns already: whole numbers of at most 8191 in size."""


def learns_directions(direction: Any, plan: ResolvedDictionary) -> bool:
    """Resolve the parameter for a dictionary."""
    if direction is None:
        return False
    dictionary = plan.dictionary
    shared = bool(dictionary._columns())
    if direction == "auto":
        return shared and plan.bounds.forms
    if not shared and not isinstance(dictionary, GivenColumns):
        raise ValueError(
            'direction="ridge" needs atoms that all trees share, but the dictionary is '
            f'{dictionary!r}: use Subset(..., per="forest"), or direction=None.'
        )
    return True


def combined(bounds: Bounds) -> Bounds:
    """Return the bounds of combinations of columns."""
    return replace(bounds, mass=MASS, nonnegative=False, side=MASS)


def check_columns(cell_type: str) -> None:
    """Raise if combinations of the samples' columns do not fit the core's 32 bits."""
    if cell_type != "int32":
        raise ValueError(
            f'direction="ridge" needs columns of whole numbers from -{LARGEST} to {LARGEST}: '
            "scale and round X, or use direction=None."
        )
