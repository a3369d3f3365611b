"""Fitted models as plain values: dicts, lists, numbers, words and arrays, and no objects of ours.

Pickles, skops and model files hold a model in this form. An object of this package becomes a dict
with one key, which names its class, and its state. Classes are those that were marked `stored`, and
nothing else is ever made from what a file names.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any, TypeVar

MARK = "morforest:"  # before the name of a class
PAIRS = f"{MARK}dict"  # a dict that could be taken for an object
KEPT = (str, int, float, bool, type(None))

STORED: dict[str, type] = {}
Kind = TypeVar("Kind", bound=type)


def stored(kind: Kind) -> Kind:
    """Let states name a class; it needs no more than what pickle asks of it."""
    STORED[kind.__name__] = kind
    return kind


class Plain:
    """An object whose state, as pickle sees it, is plain already."""

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        known: dict[int, Any] = {}
        return {name: to_plain(value, known) for name, value in state.items()}


def to_plain(value: Any, known: dict[int, Any] | None = None) -> Any:
    """Replace the objects of this package inside a value by plain dicts.

    What is neither of this package nor a container stays as it is. What was met before, which
    `known` remembers, becomes the same object again, so that a pickle holds it once.
    """
    known = {} if known is None else known
    kind = type(value)
    if kind in KEPT:
        return value
    if id(value) not in known:
        known[id(value)] = (value, _plain(value, kind, known))  # kept, so that ids stay its own
    return known[id(value)][1]


def _plain(value: Any, kind: type, known: dict[int, Any]) -> Any:
    if kind is list or kind is tuple:
        return kind(to_plain(entry, known) for entry in value)
    if kind is dict:
        if any(isinstance(key, str) and key.startswith(MARK) for key in value):
            return {PAIRS: [[key, to_plain(entry, known)] for key, entry in value.items()]}
        return {key: to_plain(entry, known) for key, entry in value.items()}
    if STORED.get(kind.__name__) is not kind:
        return value
    if issubclass(kind, tuple):
        return {MARK + kind.__name__: [to_plain(entry, known) for entry in value]}
    state = value.__getstate__()
    return {MARK + kind.__name__: state if isinstance(value, Plain) else to_plain(state, known)}


def from_plain(value: Any) -> Any:
    """Make the objects again that `to_plain` replaced."""
    kind = type(value)
    if kind is list or kind is tuple:
        return kind(map(from_plain, value))
    if kind is not dict:
        return value
    name = next(iter(value), None)
    if len(value) == 1 and isinstance(name, str) and name.startswith(MARK):
        if name == PAIRS:
            return {key: from_plain(entry) for key, entry in value[name]}
        return make(name.removeprefix(MARK), value[name])
    return {key: from_plain(entry) for key, entry in value.items()}


def make(name: str, state: Any) -> Any:
    """Make an object of a class by its name, and let it check its state."""
    kind: Any = STORED.get(name)
    if kind is None:
        raise ValueError(f"damaged model: {name!r} is no class that models consist of")
    if issubclass(kind, tuple):
        return kind(*from_plain(state))
    found = kind.__new__(kind)
    if not issubclass(kind, Plain):
        state = from_plain(state)
    if hasattr(kind, "_get_param_names") and isinstance(state, dict):
        missing = {name: usual for name, usual in defaults(kind).items() if name not in state}
        state = {**state, **missing}
    found.__setstate__(state)
    return found


@cache
def defaults(kind: Any) -> dict[str, Any]:
    """Return the defaults of parameters: a model of an earlier version does not know new ones."""
    parameters = inspect.signature(kind).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}
