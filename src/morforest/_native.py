"""The compiled core, in the best build that this processor runs."""

from __future__ import annotations

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
