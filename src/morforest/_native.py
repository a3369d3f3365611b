"""The compiled core, in the best build that this processor runs.

Type checkers read the stub ``_core.pyi``, which the build makes; see CONTRIBUTING.md.
"""

from __future__ import annotations

import copyreg
from importlib import import_module
from typing import TYPE_CHECKING, Any


def _load() -> Any:
    baseline = import_module("morforest._core")
    if baseline.instruction_set() == "avx2":
        try:
            return import_module("morforest._core_avx2")
        except ImportError:  # not every platform has it
            pass
    return baseline


if TYPE_CHECKING:
    from morforest import _core as core
else:
    core = _load()

__all__ = ["core"]


def _make(name: str, state: Any) -> Any:
    kind = getattr(core, name)
    made = kind.__new__(kind)
    made.__setstate__(state)
    return made


def _reduce(made: Any) -> tuple[Any, ...]:
    return _make, (type(made).__name__, made.__getstate__())


# Another process may load another build of the core.
copyreg.pickle(core.GrowthRule, _reduce)
copyreg.pickle(core.Targets, _reduce)
