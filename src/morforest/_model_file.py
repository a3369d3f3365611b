"""Fitted models in files that run no code: plain values as JSON and arrays.

JSON has words, numbers, lists and dicts; what it lacks is a dict with one key that begins with "@".
Arrays stand behind the header of the file, under the name of the attribute that holds them. Loading
makes objects of the classes that `_states.py` knows, and of no others.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from morforest import _container as container
from morforest._arrays import SURPRISES
from morforest._bits import WIDTHS, pack_bits, packed_size, unpack_bits, width_of
from morforest._container import DTYPES
from morforest._states import MARK, STORED, Plain, defaults, make
from morforest._version import __version__

STATE_WORDS = 624  # of a RandomState
LARGE = ("classes_", "n_classes_", "dictionary_", "features_")  # said otherwise, or too long
FEWEST_PACKED = 1024  # small numbers of an array that are worth it to pack
LONGEST_VALUE = 200  # of a parameter, in words for readers


class Saved(Plain):
    """An estimator that can be saved to a file which is safe to load."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the fitted estimator to a file that runs no code when it is loaded.

        Parameters
        ----------
        path : str or path-like
            Where to save it; the usual suffix is ``.safetensors``. A file that is there is replaced
            once the new one is complete, so that an error or a full disk leaves it as it was.

        See Also
        --------
        morforest.load : Loads the file.
        morforest.inspect : Says what the file holds.

        Notes
        -----
        The file has the safetensors format, with a checksum. It holds numbers, words and arrays
        alone: an estimator with a function among its parameters raises an error.

        Examples
        --------
        >>> import os, tempfile
        >>> import morforest
        >>> model = morforest.MorfTreeRegressor(random_state=0).fit([[0], [1]], [0.0, 8.0])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "tree.safetensors")
        ...     model.save(path)
        ...     morforest.load(path).predict([[1]])
        array([8.])
        """
        check_is_fitted(self)
        _save(self, path)


def _save(estimator: Any, path: str | os.PathLike[str]) -> None:
    name = type(estimator).__name__
    if STORED.get(name) is not type(estimator):
        raise TypeError(
            f"{type(estimator).__module__}.{name} cannot be saved: files hold the estimators of "
            "morforest alone, because they load without running code. Pickle it."
        )
    writer = _Writer(estimator)
    tree = {
        "library": __version__,
        "class": name,
        "about": _about(estimator),
        "state": writer.encode(estimator.__getstate__(), ()),
    }
    text = json.dumps(tree, separators=(",", ":"), allow_nan=False)
    container.write(path, text, writer.arrays)


def _about(estimator: Any) -> dict[str, Any]:
    """Return what readers of a file want to know of a model, and cannot see at a glance."""
    kind: Any = type(estimator)
    usual = defaults(kind)
    found: dict[str, Any] = {
        "parameters": {
            name: _in_words(value)
            for name, value in estimator.get_params(deep=False).items()
            if name not in usual or _in_words(value) != _in_words(usual[name])
        }
    }
    if hasattr(estimator, "dictionary_"):
        found["dictionary"] = _in_words(estimator.dictionary_)
    if hasattr(estimator, "classes_"):
        found["classes"] = _labels(estimator.classes_)
    forest = getattr(estimator, "_forest", None)
    if forest is not None:
        found |= {"trees": forest.n_trees, "nodes": len(forest.next)}
    return found


def _in_words(value: Any) -> str:
    words = " ".join(repr(value).split())
    return words if len(words) <= LONGEST_VALUE else words[: LONGEST_VALUE - 3] + "..."


def _labels(classes: Any) -> list[Any]:
    if isinstance(classes, list):  # of several outputs
        return [_labels(some) for some in classes]
    plain = (str, int, float, bool)
    return [label if isinstance(label, plain) else str(label) for label in classes.tolist()]


class _Writer:
    """Turns plain values into JSON, and lays arrays aside."""

    def __init__(self, estimator: Any):
        self.estimator = estimator
        self.arrays: dict[str, np.ndarray] = {}
        self.met: dict[int, tuple[np.ndarray, dict[str, Any]]] = {}  # arrays, and what they became

    def encode(self, value: Any, path: tuple[str, ...]) -> Any:
        """Return a value in JSON; `path` says where it is found."""
        if value is None or isinstance(value, (str, bool, int)):
            return str(value) if isinstance(value, str) else value
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else {"@float": repr(float(value))}
        if isinstance(value, (np.bool_, np.integer, np.floating)) and value.itemsize <= 8:
            return self.encode(value.item(), path)
        if type(value) is list:
            return self._entries(value, path)
        if type(value) is tuple:
            return {"@tuple": self._entries(value, path)}
        if type(value) is dict:
            return self._dict(value, path)
        if isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray):
            return self._array(value, path)
        return self._other(value, path)

    def _entries(self, values: Any, path: tuple[str, ...]) -> list[Any]:
        return [self.encode(entry, (*path, str(i))) for i, entry in enumerate(values)]

    def _dict(self, value: dict[Any, Any], path: tuple[str, ...]) -> dict[str, Any]:
        if all(type(key) is str and not key.startswith("@") for key in value):
            return {
                key: self.encode(entry, path if key.startswith(MARK) else (*path, key))
                for key, entry in value.items()
            }
        pairs = [
            [self.encode(key, path), self.encode(entry, (*path, str(key)))]
            for key, entry in value.items()
        ]
        return {"@dict": pairs}

    def _array(self, value: np.ndarray, path: tuple[str, ...]) -> dict[str, Any]:
        if id(value) not in self.met:
            self.met[id(value)] = (value, self._new_array(value, path))
        return self.met[id(value)][1]

    def _new_array(self, value: np.ndarray, path: tuple[str, ...]) -> dict[str, Any]:
        dtype = value.dtype.newbyteorder("<")
        if dtype.kind in "UO":
            entries = self._entries(value.ravel().tolist(), path)
            return {"@words" if dtype.kind == "U" else "@objects": entries, "shape": value.shape}
        if not container.holds(dtype):
            raise self._refuse(f"an array of {dtype}", path, "Use numbers of 64 bits.")
        if dtype == np.uint8 and value.size >= FEWEST_PACKED and (width := width_of(value)):
            raw = pack_bits(value.ravel(), width)
            return {"@tensor": self._lay_aside(raw, path), "bits": width, "shape": value.shape}
        return {"@tensor": self._lay_aside(value, path)}

    def _lay_aside(self, value: np.ndarray, path: tuple[str, ...]) -> str:
        name = ".".join(part.strip("_") for part in path)
        while name in self.arrays:
            name += "'"
        self.arrays[name] = value
        return name

    def _other(self, value: Any, path: tuple[str, ...]) -> Any:
        if isinstance(value, (sp.spmatrix, sp.sparray)):
            csr = sp.csr_array(value)
            parts = [csr.data, csr.indices, csr.indptr]
            kind = "matrix" if isinstance(value, sp.spmatrix) else "array"
            return {"@sparse": self._entries(parts, path), "shape": list(csr.shape), "kind": kind}
        if isinstance(value, np.random.RandomState):
            state: Any = value.get_state(legacy=True)
            if state[0] == "MT19937":
                return {"@random_state": self._entries(state[1:], path)}
        if isinstance(value, np.dtype) or (isinstance(value, type) and value is not object):
            dtype = np.dtype(value)
            if dtype.kind == "f":
                return {"@dtype": dtype.str}
        what = f"a {type(value).__name__}"
        if callable(value):
            what = f"the function {getattr(value, '__name__', type(value).__name__)}"
        raise self._refuse(what, path, "")

    def _refuse(self, what: str, path: tuple[str, ...], remedy: str) -> TypeError:
        resolved = getattr(self.estimator, f"{path[0]}_", None) if len(path) == 1 else None
        if isinstance(resolved, (int, float)):
            remedy = f"Call set_params({path[0]}={resolved}), which it came to, before save."
        return TypeError(
            f"{type(self.estimator).__name__} cannot be saved: {'.'.join(path)} is {what}, and "
            "model files, which run no code, hold numbers, words and arrays alone. "
            f"{remedy or 'Pickle the model, and load it only where you trust it.'}"
        )


def describe(
    path: Any, text: str, arrays: Mapping[str, np.ndarray]
) -> tuple[str, str, dict[str, str], dict[str, Any]]:
    """Return version, class, parameters and what was learned, as far as it is short."""
    try:
        tree = json.loads(text)
        about, state = tree["about"], tree["state"]
        fitted = {name: value for name, value in about.items() if name != "parameters"}
        for name in sorted(state):
            if name.endswith("_") and not name.startswith("_") and name not in LARGE:
                value = decode(state[name], arrays)
                if isinstance(value, np.ndarray) and value.dtype.kind in "UO":
                    value = value.tolist()
                if not isinstance(value, np.ndarray):
                    fitted.setdefault(name, value)
        return tree["library"], tree["class"], dict(about["parameters"]), fitted
    except (*SURPRISES, RecursionError) as error:
        raise container.damaged(path, f"{type(error).__name__}: {error}") from None


def load_text(path: Any, text: str, arrays: Mapping[str, np.ndarray]) -> Any:
    """Make the model of a file from its text and its arrays."""
    try:
        tree = json.loads(text)
        return make(tree["class"], decode(tree["state"], arrays))
    except (*SURPRISES, RecursionError, MemoryError) as error:
        surprise = type(error) is not ValueError
        words = f"{type(error).__name__}: {error}" if surprise else str(error)
        raise container.damaged(path, words) from None


def decode(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """Return the plain value that JSON and arrays stand for."""
    if isinstance(value, list):
        return [decode(entry, arrays) for entry in value]
    if not isinstance(value, dict):
        return value
    name = next(iter(value), "")
    if not name.startswith("@"):
        return {key: decode(entry, arrays) for key, entry in value.items()}
    of = value[name]
    match name:
        case "@float":
            return float(of)
        case "@tuple":
            return tuple(decode(entry, arrays) for entry in of)
        case "@dict":
            return {decode(key, arrays): decode(entry, arrays) for key, entry in of}
        case "@tensor":
            return _unpacked(arrays[of], value) if "bits" in value else arrays[of]
        case "@words" | "@objects":
            return _listed(name, [decode(entry, arrays) for entry in of]).reshape(value["shape"])
        case "@sparse":
            return _sparse([decode(entry, arrays) for entry in of], value)
        case "@random_state":
            return _random_state([decode(entry, arrays) for entry in of])
        case "@dtype":
            if of in DTYPES.values():
                return np.dtype(of)
    raise ValueError(f"damaged model: {name!r} is no kind of value")


def _unpacked(raw: np.ndarray, value: Mapping[str, Any]) -> np.ndarray:
    width, shape = value["bits"], tuple(value["shape"])
    count = math.prod(shape)
    if width not in WIDTHS or raw.dtype != np.uint8 or raw.shape != (packed_size(width, count),):
        raise ValueError("damaged model: packed numbers do not fit their shape")
    return unpack_bits(raw, width, count).reshape(shape)


def _listed(name: str, entries: list[Any]) -> np.ndarray:
    if name == "@words":
        if not all(isinstance(entry, str) for entry in entries):
            raise ValueError("damaged model: an array of words is not one")
        return np.array(entries, dtype=np.str_)
    found = np.empty(len(entries), dtype=object)
    for place, entry in enumerate(entries):
        found[place] = entry
    return found


def _sparse(parts: list[Any], value: Mapping[str, Any]) -> Any:
    kind = {"matrix": sp.csr_matrix, "array": sp.csr_array}[value["kind"]]
    data, indices, indptr = parts
    found = kind((data, indices, indptr), shape=tuple(value["shape"]))
    found.check_format(full_check=True)
    return found


def _random_state(parts: list[Any]) -> np.random.RandomState:
    words, place, has_number, number = parts
    fits = (
        isinstance(words, np.ndarray) and words.shape == (STATE_WORDS,) and words.dtype.kind == "u"
    )
    if not fits or type(place) is not int or not 0 <= place <= STATE_WORDS:
        raise ValueError("damaged model: a random state is not one")
    found = np.random.RandomState(0)
    found.set_state(("MT19937", words.astype(np.uint32), place, int(has_number), float(number)))
    return found
