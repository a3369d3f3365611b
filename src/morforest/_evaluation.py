"""Cross-validation for the command line: scores by fold, a table, a report."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    confusion_matrix,
    log_loss,
    mean_absolute_error,
    r2_score,
    root_mean_squared_error,
)
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

from morforest._data_files import Samples
from morforest._version import __version__

MOST_SHOWN = 20  # classes of a confusion matrix


@dataclass(frozen=True)
class Evaluation:
    """Scores of a model, one row per fold, and its predictions of samples that it had not seen."""

    model: Any
    rows: list[dict[str, float]]
    truth: np.ndarray
    predicted: np.ndarray
    how: str

    def means(self) -> dict[str, float]:
        """Return the mean of each column over the folds."""
        return {name: float(np.mean([row[name] for row in self.rows])) for name in self.rows[0]}

    def deviations(self) -> dict[str, float]:
        """Return the standard deviation of each column over the folds; NaN for one fold."""
        several = len(self.rows) > 1
        return {
            name: float(np.std([row[name] for row in self.rows], ddof=1)) if several else np.nan
            for name in self.rows[0]
        }

    def facts(self) -> dict[str, Any]:
        """Return all scores."""
        deviations = self.deviations()
        return {
            "estimator": type(self.model).__name__,
            "samples": len(self.truth),
            "how": self.how,
            "folds": self.rows,
            "mean": self.means(),
            "standard_deviation": deviations if len(self.rows) > 1 else None,
        }

    def table(self, edge: str = "") -> str:
        """Return the scores as lines of text, or of Markdown if `edge` is a bar."""
        header = ["fold", *(name.replace("_", " ") for name in self.rows[0])]
        lines = [[str(i + 1), *map(_words, row.values())] for i, row in enumerate(self.rows)]
        if len(self.rows) > 1:
            lines.append(["mean", *map(_words, self.means().values())])
            lines.append(["deviation", *map(_words, self.deviations().values())])
        widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
        text = [_line(cells, widths, edge) for cells in (header, *lines)]
        if edge:
            text.insert(1, _line(["-" * width for width in widths], widths, edge))
        return "\n".join(text)

    def report(self, data: str) -> str:
        """Return a page in Markdown."""
        parts = [
            f"# {type(self.model).__name__} on {data}",
            f"{self.how}, {len(self.truth)} samples. morforest {__version__}, scikit-learn "
            f"{sklearn.__version__}, NumPy {np.__version__}, Python {platform.python_version()}.",
            f"    {self.model!r}".replace("\n", "\n    "),
            "## Scores",
            self.table("|"),
            NOTES[is_classifier(self.model)],
        ]
        labels = np.unique(np.concatenate([self.truth, self.predicted]))
        if is_classifier(self.model) and len(labels) <= MOST_SHOWN:
            counts = confusion_matrix(self.truth, self.predicted, labels=labels)
            words = [str(label) for label in labels.tolist()]
            header = _line(["true \\ predicted", *words], [0] * (len(words) + 1), "|")
            rule = _line(["---"] * (len(words) + 1), [0] * (len(words) + 1), "|")
            lines = [
                _line([word, *map(str, row)], [0] * (len(row) + 1), "|")
                for word, row in zip(words, counts.tolist(), strict=True)
            ]
            parts += ["## Which classes are taken for which", "\n".join([header, rule, *lines])]
        return "\n\n".join(parts) + "\n"


NOTES = {
    True: "*baseline* is the accuracy of the most frequent class in training.",
    False: "*baseline* is the root mean squared error of the mean target in training.",
}


def _words(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.4f}"


def _line(cells: list[str], widths: list[int], edge: str) -> str:
    padded = [f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)]
    return f"| {' | '.join(padded)} |" if edge else "  ".join(padded)


def cross_validate(
    model: Any, samples: Samples, folds: int, seed: int, *, quiet: bool
) -> Evaluation:
    """Fit a model without each fold, and judge it on the fold."""
    y = samples.y
    assert y is not None
    rows, truth, predicted = [], [], []
    for number, (train, test) in enumerate(_folds(model, samples, folds, seed), 1):
        begin = time.monotonic()
        fitted = clone(model).fit(_rows(samples.X, train), y[train])
        seconds = time.monotonic() - begin
        row, found = _scores(fitted, _rows(samples.X, test), y[test], y[train])
        rows.append({**row, "fit_seconds": seconds})
        truth.append(y[test])
        predicted.append(found)
        if not quiet:
            name, value = next(iter(row.items()))
            words = f"fold {number}/{folds}: {name} {value:.4f}, fitted in {seconds:.1f} s"
            print(words, file=sys.stderr, flush=True)
    kind = "in which groups stay together" if samples.groups is not None else "with shuffled rows"
    how = f"cross-validation of {folds} folds {kind}, seed {seed}"
    return Evaluation(model, rows, np.concatenate(truth), np.concatenate(predicted), how)


def judge(model: Any, samples: Samples) -> Evaluation:
    """Judge a fitted model on samples that it has not seen."""
    assert samples.y is not None
    row, found = _scores(model, samples.X, samples.y, None)
    return Evaluation(model, [row], samples.y, found, "a fitted model on test data")


def _folds(
    model: Any, samples: Samples, folds: int, seed: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    y = np.asarray(samples.y)
    if not 2 <= folds <= len(y):
        raise ValueError(f"--folds must be from 2 to the number of samples, {len(y)}; got {folds}.")
    kind: Any
    if samples.groups is not None:
        if len(np.unique(samples.groups)) < folds:
            raise ValueError(
                f"--folds {folds}: there are only {len(np.unique(samples.groups))} groups."
            )
        classes = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
        kind = classes if is_classifier(model) else GroupKFold(folds)
    elif is_classifier(model):
        fewest = int(np.unique(y, return_counts=True)[1].min())
        if fewest < folds:
            raise ValueError(
                f"--folds {folds}: the rarest class has {fewest} samples. Use at most so many "
                "folds, or leave the class out."
            )
        kind = StratifiedKFold(folds, shuffle=True, random_state=seed)
    else:
        kind = KFold(folds, shuffle=True, random_state=seed)
    found: Iterator[tuple[np.ndarray, np.ndarray]] = kind.split(
        np.zeros(len(y)), y, groups=samples.groups
    )
    return found


def _rows(X: Any, some: np.ndarray) -> Any:
    if isinstance(X, list):
        return [X[i] for i in some]
    return X.iloc[some] if hasattr(X, "iloc") else X[some]


def _scores(
    model: Any, X: Any, y: np.ndarray, training: np.ndarray | None
) -> tuple[dict[str, float], np.ndarray]:
    """Return scores, with that of a constant prediction if training targets are given."""
    predicted = np.asarray(model.predict(X))
    if not is_classifier(model):
        row = {
            "r2": r2_score(y, predicted) if len(y) > 1 else np.nan,
            "rmse": root_mean_squared_error(y, predicted),
            "mae": mean_absolute_error(y, predicted),
        }
        if training is not None:
            row["baseline"] = root_mean_squared_error(y, np.full(len(y), training.mean()))
        return row, predicted
    row = {
        "accuracy": accuracy_score(y, predicted),
        "balanced_accuracy": balanced_accuracy_score(y, predicted),
    }
    if hasattr(model, "predict_proba") and np.isin(y, model.classes_).all():
        row["log_loss"] = log_loss(y, model.predict_proba(X), labels=model.classes_)
    if training is not None:
        labels, counts = np.unique(training, return_counts=True)
        row["baseline"] = float((y == labels[counts.argmax()]).mean())
    return {name: float(value) for name, value in row.items()}, predicted
