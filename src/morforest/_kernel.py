"""The compiled core, in the best build that this processor runs."""

from __future__ import annotations

import importlib
from typing import Any

from morforest import _core


def _load() -> Any:
    if _core.instruction_set() == "avx2":
        try:
            return importlib.import_module("morforest._core_avx2")
        except ImportError:  # not every platform builds it
            pass
    return _core


core = _load()
