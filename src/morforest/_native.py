"""The compiled core, in the best build that this processor runs."""

from __future__ import annotations

from enum import IntEnum
from importlib import import_module
from typing import Any


def _load() -> Any:
    baseline = import_module("morforest._core")
    if baseline.instruction_set() == "avx2":
        try:
            return import_module("morforest._core_avx2")
        except ImportError:  # not every platform builds it
            pass
    return baseline


core = _load()


class Purpose(IntEnum):
    """What random numbers are for that belong to no single tree.

    Trees and rounds have numbers of their own, from 0 on; these are numbers that no tree has, so
    that ``core.tree_key(seed, purpose)`` begins a stream of its own.
    """

    HELD_OUT = 2**63  # rows of boosting that judge when to stop
    COPIES = 2**63 + 1  # copies that a generation of boosting learns from
    SUBSETS = 2**63 + 2  # atoms that some rounds of boosting share
    SHARED_ATOMS = 2**63 + 3  # atoms that all trees share
