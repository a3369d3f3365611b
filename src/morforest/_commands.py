"""What the commands of the command line do."""

from __future__ import annotations

import ast
import csv
import dataclasses
import difflib
import io
import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from morforest._data_files import DataOptions, Samples, read_data
from morforest._evaluation import cross_validate, judge
from morforest._states import STORED
from morforest._writing import check_path, write_file
from morforest.boosting import MorfBoostingClassifier, MorfBoostingRegressor
from morforest.dictionary import Axis, Patch, SparseOblique
from morforest.dictionary._base import Dictionary
from morforest.dictionary._presets import NAMES as PRESETS
from morforest.dictionary._views import BaseView
from morforest.files import inspect as inspect_file
from morforest.files import load
from morforest.forest import MorfClassifier, MorfRegressor
from morforest.ridge import AtomRidgeClassifier, AtomRidgeRegressor
from morforest.tree import MorfTreeClassifier, MorfTreeRegressor

ESTIMATORS = {  # for classes and for numbers
    "forest": (MorfClassifier, MorfRegressor),
    "tree": (MorfTreeClassifier, MorfTreeRegressor),
    "boosting": (MorfBoostingClassifier, MorfBoostingRegressor),
    "ridge": (AtomRidgeClassifier, AtomRidgeRegressor),
}
KINDS = tuple(ESTIMATORS)
NAMES = (*PRESETS, "auto")
WRITERS = {".onnx": "to_onnx", ".h": "to_c", ".js": "to_js", ".mjs": "to_js"}
# Whole numbers with more values than both, the latter as a share of the samples, are asked about.
MOST_CLASSES, MOST_SHARE = 20, 0.1


class UsageError(Exception):
    """Something on the command line makes no sense."""


# --- the commands --------------------------------------------------------------------------------


def fit(options: Any) -> None:
    """Fit a model and save it."""
    check_path(options.output)
    samples = _with_targets(options)
    model = make_estimator(options, samples)
    begin = time.monotonic()
    model.fit(samples.X, samples.y)
    seconds = time.monotonic() - begin
    if "verbose" in model.get_params(deep=False):
        model.set_params(verbose=0)
    model.save(options.output)
    size = Path(options.output).stat().st_size
    facts = {
        "estimator": type(model).__name__,
        "samples": len(samples.X),
        "shape": model.data_shape_,
        **({"classes": model.classes_.tolist()} if is_classifier(model) else {}),
        "seconds": round(seconds, 3),
        "output": options.output,
        "bytes": size,
    }
    labels = f", {len(model.classes_)} classes" if is_classifier(model) else ""
    _say(
        options,
        facts,
        f"{facts['estimator']} of {facts['samples']} samples of shape {model.data_shape_}{labels}, "
        f"fitted in {seconds:.1f} s\nsaved to {options.output} ({size:,} bytes)",
    )


def predict(options: Any) -> None:
    """Predict samples with a saved model."""
    suffix = None if options.output is None else Path(options.output).suffix.lower()
    if suffix not in (None, ".csv", ".npy"):
        raise UsageError(f"--output {options.output}: the suffix must be .csv or .npy")
    if options.output is not None:
        check_path(options.output)
    model = _load(options.model, "predict")
    samples = _for_model(model, read_data(options.data, _data_options(options)))
    if options.proba and not hasattr(model, "predict_proba"):
        raise ValueError(f"{options.model} holds a {type(model).__name__}: no probabilities.")
    header, columns = _predictions(model, samples.X, options.proba)
    if suffix == ".npy":
        found = columns if options.proba else model.predict(samples.X)
        content = io.BytesIO()
        np.save(content, np.asarray(found, dtype=str if found.dtype == object else None))
        write_file(options.output, content.getvalue())
    elif options.output is not None or not options.json:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(columns.tolist())
        if options.output is None:
            sys.stdout.write(text.getvalue())
            return
        write_file(options.output, text.getvalue().encode())
    facts: dict[str, Any] = {"samples": len(columns), "output": options.output}
    if options.output is None:
        facts = {"columns": header, "predictions": columns.tolist()}
    _say(options, facts, f"{len(columns)} predictions in {options.output}")


def evaluate(options: Any) -> None:
    """Judge a model by cross-validation, or a saved one on test data."""
    if options.report is not None:
        check_path(options.report)
    samples = _with_targets(options)
    if options.using is not None:
        model = _load(options.using, "predict")
        samples = _for_model(model, samples)
        found = judge(model, samples)
    else:
        model = make_estimator(options, samples)
        found = cross_validate(
            model, samples, options.folds, options.seed, quiet=options.quiet or options.json
        )
    if options.report is not None:
        write_file(options.report, found.report(options.data).encode())
    text = found.table()
    if options.report is not None:
        text += f"\nreport in {options.report}"
    _say(options, found.facts(), text)


def inspect(options: Any) -> None:
    """Say what a model file holds."""
    contents = inspect_file(options.model)
    _say(options, dataclasses.asdict(contents), str(contents))


def convert(options: Any) -> None:
    """Write a model for other languages."""
    writer = WRITERS.get(Path(options.output).suffix.lower())
    if writer is None:
        raise UsageError(f"{options.output}: the suffix must be one of {', '.join(WRITERS)}")
    model = _load(options.model, writer)
    getattr(model, writer)(options.output)
    size = Path(options.output).stat().st_size
    _say(
        options,
        {"output": options.output, "bytes": size},
        f"{type(model).__name__} written to {options.output} ({size:,} bytes)",
    )


def demo(options: Any) -> None:
    """Compare three dictionaries on images of digits."""
    from sklearn.datasets import load_digits

    images, digits = load_digits().images, load_digits().target
    train, test = slice(0, 1000), slice(1000, None)
    lines, facts = [], {}
    for name, dictionary in (
        ("random forest", Axis()),
        ("SPORF", SparseOblique()),
        ("MORF", Patch(max_size=3)),
        ("with edges", "image"),
    ):
        begin = time.monotonic()
        model = MorfClassifier(dictionary, n_estimators=200, n_jobs=-1, random_state=0)
        model.fit(images[train], digits[train])
        accuracy = model.score(images[test], digits[test])
        seconds = time.monotonic() - begin
        facts[name] = {"accuracy": accuracy, "seconds": round(seconds, 3)}
        lines.append(f"{name:14} {dictionary!r:20} {accuracy:.4f}   {seconds:.2f} s")
    head = f"{'forest':14} {'dictionary':20} accuracy on 797 images of digits"
    _say(options, facts, "\n".join([head, *lines]))


# --- what they share -----------------------------------------------------------------------------


def _say(options: Any, facts: dict[str, Any], text: str) -> None:
    print(json.dumps(_in_json(facts), default=str) if options.json else text)


def _in_json(value: Any) -> Any:
    """Replace what JSON lacks: NaN and infinities become null."""
    if isinstance(value, dict):
        return {str(key): _in_json(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_in_json(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _data_options(options: Any) -> DataOptions:
    return DataOptions(
        options.target,
        options.samples,
        getattr(options, "groups", None),
        options.size,
        options.grey,
    )


def _with_targets(options: Any) -> Samples:
    samples = read_data(options.data, _data_options(options))
    if samples.y is None:
        raise UsageError("--target NAME is needed: which column, array or file holds the targets?")
    return samples


def _load(path: str, method: str) -> Any:
    model = load(path)
    if not hasattr(model, method):
        raise ValueError(f"{path} holds a {type(model).__name__}, which has no {method}.")
    return model


def _for_model(model: Any, samples: Samples) -> Samples:
    """Take the columns of a table that the model knows."""
    if not hasattr(samples.X, "columns"):
        return samples
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return dataclasses.replace(samples, X=samples.X.to_numpy())
    missing = [name for name in names if name not in samples.X.columns]
    if missing:
        some = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
        known = ", ".join(map(str, samples.X.columns[:5]))
        raise ValueError(
            f"the data lack {len(missing)} of the {len(names)} columns that the model was fitted "
            f"to ({some}); they have {known} and so on."
        )
    return dataclasses.replace(samples, X=samples.X[list(names)])


def _predictions(model: Any, X: Any, proba: bool) -> tuple[list[str], np.ndarray]:
    """Return the names of columns and their values."""
    if proba:
        found = model.predict_proba(X)
        if isinstance(found, list):
            raise ValueError("--proba is for models of one output; this one has several.")
        return [f"probability {label}" for label in model.classes_.tolist()], found
    found = np.asarray(model.predict(X))
    if found.ndim == 1:
        return ["prediction"], found[:, np.newaxis]
    return [f"prediction {k}" for k in range(found.shape[1])], found


def make_estimator(options: Any, samples: Samples) -> Any:
    """Return the estimator that the options ask for."""
    y = np.asarray(samples.y)
    task = options.task or _task_of(y)
    if task == "regression":
        _check_numbers(y, options.target)
    kind: Any = ESTIMATORS[options.kind][task == "regression"]
    known = kind._get_param_names()
    channel_axis = options.channel_axis
    if channel_axis is None and options.shape is None:
        channel_axis = samples.channel_axis
    trees = "max_iter" if "max_iter" in known else "n_estimators"
    if options.trees is not None and trees not in known:
        raise UsageError(f"--trees: {kind.__name__} has no number of trees")
    parameters = {
        "dictionary": None if options.dictionary is None else read_dictionary(options.dictionary),
        "data_shape": options.shape,
        "channel_axis": channel_axis,
        trees: options.trees,
        "n_jobs": options.jobs,
        "random_state": options.seed,
        "verbose": int(options.command == "fit" and not (options.quiet or options.json)),
    }
    given = {n: value for n, value in parameters.items() if n in known and value is not None}
    return kind(**{**given, **_settings(options.set, kind)})


def _settings(texts: Sequence[str], kind: Any) -> dict[str, Any]:
    """Read NAME=VALUE; a value is a literal of Python, or else a word."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set {text}: write NAME=VALUE")
        known = kind._get_param_names()
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f": do you mean {near[0]}?" if near else ""
            raise UsageError(f"--set {text}: {kind.__name__} has no parameter {name}{hint}")
        try:
            found[name] = _literal(ast.parse(value, mode="eval").body)
        except (SyntaxError, ValueError):
            found[name] = value
    return found


def read_dictionary(text: str) -> Any:
    """Return the name of a dictionary, or make one from a text such as Patch(max_size=5)."""
    if text in NAMES:
        return text
    problem = ""
    try:
        found = _literal(ast.parse(text, mode="eval").body)
        if isinstance(found, Dictionary):
            return found
    except TypeError as error:  # an argument that the dictionary does not have
        problem = f"{error}; "
    except (SyntaxError, ValueError):
        pass
    raise UsageError(
        f"--dictionary {text}: {problem}give one of {', '.join(NAMES)}, or a dictionary such as "
        '"Patch(max_size=5)"'
    )


def _literal(node: ast.expr) -> Any:
    """Evaluate literals of Python and the dictionaries and views of this library, and no code."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        kind: Any = STORED.get(node.func.id)
        if kind is None or not issubclass(kind, (Dictionary, BaseView)):
            raise ValueError(f"{node.func.id} is no dictionary")
        named = {word.arg: _literal(word.value) for word in node.keywords if word.arg}
        return kind(*map(_literal, node.args), **named)
    if isinstance(node, (ast.List, ast.Tuple)):
        found = [_literal(entry) for entry in node.elts]
        return found if isinstance(node, ast.List) else tuple(found)
    return ast.literal_eval(node)


def _task_of(y: np.ndarray) -> str:
    """Guess what targets are: fractions are numbers to predict, and others classes."""
    if y.dtype.kind == "f" and not (y == np.rint(y)).all():
        return "regression"
    distinct = len(np.unique(y)) if y.dtype.kind in "iuf" else 0
    if distinct > max(MOST_CLASSES, MOST_SHARE * len(y)):
        raise UsageError(
            f"the targets are whole numbers with {distinct} values in {len(y)} samples: "
            "say with --task whether they are classes or numbers to predict"
        )
    return "classification"


def _check_numbers(y: np.ndarray, name: str | None) -> None:
    if y.dtype.kind not in "buif":
        raise ValueError(f"--task regression: the targets {name or ''} are no numbers: {y[0]!r}.")
