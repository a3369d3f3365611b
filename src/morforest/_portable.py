"""What a fitted model is to other programs: flat arrays of splits and leaves, and what they need.

The writers of ONNX, C and JavaScript read this one form, and refuse the same models. A program
makes the cells of a sample (see `RowLayout`), walks down each tree from its root, adds up what the
leaves say, in the order of the trees, and makes the prediction from the sum, as `Head` says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from morforest._arrays import widen
from morforest._atoms import OPERATIONS, RowLayout
from morforest._fixed_point import extra_bits
from morforest._model import Forest

# Kinds of views that the writers know.
VIEWS = ("raw", "difference", "square", "magnitude", "orientation", "squared_difference")
LONGEST_WORDS = 80  # of a dictionary in an error


@dataclass(frozen=True)
class Head:
    """What becomes of the sums of the trees' values.

    A "mean" is the sum over the number of trees. In boosting the baseline is added to the sum, and
    the link gives probabilities or, in regression, numbers in steps of `2^exponent`.
    """

    link: str
    baseline: np.ndarray  # one per output
    exponent: int = 0
    classes: Any = None  # labels, None for regression, a list for several outputs

    @property
    def unit(self) -> float:
        """What predicted numbers are multiplied by."""
        return float(np.ldexp(1.0, self.exponent))


@dataclass(frozen=True)
class PortableForest:
    """The arrays of a model.

    Splits of all trees are numbered from zero. A *place* is the number of a split, or ``-1 -
    payload`` for a leaf. Terms of split `s` are those from ``begin[s]`` to ``begin[s + 1]``; a
    sample goes right if their sum is above ``threshold[s]``. Of classes, a payload below the number
    of classes is a leaf of that class alone, others are distributions in turn; in regression and
    boosting the payload is a row of `value`.
    """

    name: str  # of the estimator's class
    layout: RowLayout
    real: bool  # cells are float64, without prefix sums
    shift: int  # cells are round(x * 2^shift)
    limit: float  # cells are cut at this size
    largest: float  # bound of the cells of training
    head: Head
    root: np.ndarray  # places
    left: np.ndarray
    right: np.ndarray
    begin: np.ndarray
    cell: np.ndarray
    weight: np.ndarray
    threshold: np.ndarray
    class_count: int
    distribution_begin: np.ndarray
    distribution_class: np.ndarray
    distribution_weight: np.ndarray
    value: np.ndarray  # (leaves, outputs)

    @property
    def features(self) -> int:
        """Number of features of a sample."""
        return self.layout.features

    @property
    def scale(self) -> float:
        """What numbers are multiplied by to become cells."""
        return float(np.ldexp(1.0, self.shift))

    @property
    def trees(self) -> int:
        """Number of trees."""
        return len(self.root)

    @property
    def outputs(self) -> int:
        """Number of values that a tree adds for a sample."""
        return self.class_count or self.value.shape[1]

    @property
    def labels(self) -> np.ndarray | None:
        """Labels of the classes: int64, float64, bool or strings. None for regression."""
        found: np.ndarray | None = self.head.classes
        return found

    @property
    def results(self) -> int:
        """Number of probabilities, or of numbers that are predicted."""
        return self.outputs if self.labels is None else len(self.labels)

    @cached_property
    def distribution_scale(self) -> np.ndarray:
        """What the weights of each distribution are multiplied by."""
        total = np.add.reduceat(
            np.append(self.distribution_weight, 0).astype(np.int64), self.distribution_begin[:-1]
        )
        scale: np.ndarray = 1.0 / total[: len(self.distribution_begin) - 1]
        return scale

    def largest_sum(self) -> float:
        """Return how large a sum over an atom's cells may be, in any order, for cells of one."""
        largest = np.array([plane.view.largest(1.0) + 1.0 for plane in self.layout.planes] or [1.0])
        size = np.abs(self.weight) * self.layout.volumes[self.cell]
        size = size * np.append(largest, 0.0)[self._planes_of_terms()]
        sums = np.add.reduceat(np.append(size, 0.0), self.begin[:-1].astype(np.int64))
        widest = float((self.layout.volumes.max(initial=1.0)) * largest.max())
        return max(float(sums.max(initial=0.0)), widest)

    def _planes_of_terms(self) -> np.ndarray:
        zero = self.cell == self.layout.cells - 1
        return np.where(zero, len(self.layout.planes), self.layout.plane_of(self.cell))


def portable(
    estimator: Any, forest: Forest, head: Head, method: str, fractions: bool = True
) -> PortableForest:
    """Return the arrays of a fitted model, or refuse it.

    `method` is named in errors. Without `fractions`, samples will be whole numbers.
    """
    _require_linear(estimator, forest, method)
    _require_votes(estimator, forest, method)
    labels = _labels_of(estimator, head.classes, method)
    cells = forest.cell_format
    finer = extra_bits(cells) if fractions else 0
    split = forest.is_split()
    number = np.cumsum(split, dtype=np.int64) - 1  # of each split
    following = widen("next", forest.next, np.int32).astype(np.int64)
    place = np.where(split, number, following)
    children = forest.children()[split]
    begins = forest.atoms.begins()
    real = cells.real
    of_splits = widen("threshold", forest.threshold, np.float64 if real else np.int64)[split]
    if not real:
        of_splits = of_splits >> 1 if not finer else of_splits << (finer - 1)
    weight = widen("weight", forest.atoms.weight, np.float64)
    sizes = forest.distribution_size.astype(np.int64)
    return PortableForest(
        name=type(estimator).__name__,
        layout=forest.atoms.layout,
        real=real,
        shift=cells.shift + finer,
        limit=cells.bounds.limit(),
        largest=float(np.ldexp(cells.bound / max(cells.bounds.mass, 1.0), finer)),
        head=Head(head.link, head.baseline, head.exponent, labels),
        root=place[forest.tree_begin.astype(np.int64)[:-1]],
        left=place[children],
        right=place[children + 1],
        # Leaves have no terms, so that those of the next split follow at once.
        begin=np.append(begins[:-1][split], begins[-1]),
        cell=widen("cell", forest.atoms.cell, np.uint32).astype(np.int64),
        weight=weight if real else weight.astype(np.int64),
        threshold=of_splits,
        class_count=forest.class_count,
        distribution_begin=np.append(0, np.cumsum(sizes)),
        distribution_class=forest.distribution_class.astype(np.int64),
        distribution_weight=forest.distribution_weight.astype(np.int64),
        value=widen("leaf_value", forest.leaf_value, np.float64).reshape(-1, forest.values),
    )


def _require_linear(estimator: Any, forest: Forest, method: str) -> None:
    """Raise unless each split compares a weighted sum of features of the sample or its views."""
    dictionary = _words(estimator)
    if forest.columns is not None:
        raise _refusal(
            estimator,
            method,
            f"its dictionary {dictionary} shares atoms among all trees, which split on columns "
            "made of them",
            "fit with a dictionary without SharedAtoms, such as Haar() or Patch()",
        )
    if any(view.filters or view.kind not in VIEWS for view in forest.atoms.layout.views):
        raise _refusal(
            estimator,
            method,
            f"atoms of its dictionary {dictionary} look at filtered channels",
            "fit with a dictionary without White, Filter and Product, such as Haar() or Patch()",
        )
    if not forest.atoms.linear:
        found = np.unique(forest.atoms.operation[forest.atoms.operation > 0]).tolist()
        kinds = ", ".join(OPERATIONS[number] for number in found)
        raise _refusal(
            estimator,
            method,
            f"atoms of its dictionary {dictionary} are not weighted sums (but {kinds})",
            "fit with a dictionary without pool and Variance, such as Haar() or Kernel()",
        )


def _words(estimator: Any) -> str:
    """Return the dictionary as the user gave it, or as the fit chose it, in one line."""
    given = estimator.dictionary
    chosen = given is None or (isinstance(given, str) and given == "auto")
    words = " ".join(repr(estimator.dictionary_ if chosen else given).split())
    return words if len(words) <= LONGEST_WORDS else f"{words[:LONGEST_WORDS]}..."


def _require_votes(estimator: Any, forest: Forest, method: str) -> None:
    """Raise where a prediction needs more than a number or one label from each tree."""
    if forest.side.any():
        raise _refusal(
            estimator,
            method,
            "it was fitted to samples with missing values, which are filled in from their "
            "neighbours",
            "fill them in before fit and before prediction, for instance by SimpleImputer",
        )
    if forest.classes_of:
        raise _refusal(
            estimator,
            method,
            f"it has {len(forest.classes_of)} outputs of classes",
            "fit one classifier for each output",
        )
    if len(forest.silent_trees):
        raise _refusal(
            estimator,
            method,
            "some of its honest trees do not vote on some samples",
            'fit with honest_prior="empirical" or "prune"',
        )


def _labels_of(estimator: Any, classes: Any, method: str) -> np.ndarray | None:
    if classes is None:
        return None
    labels = np.asarray(classes)
    kind = labels.dtype.kind
    if kind == "U" or (kind == "O" and all(type(label) is str for label in labels.tolist())):
        return labels.astype(str)
    if kind == "b":
        return labels
    if kind == "f" and labels.dtype.itemsize <= 8:
        return labels.astype(np.float64)
    if kind == "i" or (kind == "u" and labels.max() < 2**63):
        return labels.astype(np.int64)
    raise _refusal(
        estimator,
        method,
        f"its labels have dtype {labels.dtype} (such as {labels[0]!r})",
        "fit with labels that are strings or integers",
    )


def _refusal(estimator: Any, method: str, reason: str, remedy: str) -> ValueError:
    name = type(estimator).__name__
    return ValueError(f"{method} cannot write this {name}: {reason}. To export a model, {remedy}.")


def along(axis: int, shape: tuple[int, ...]) -> str:
    """Return in words of C how an axis runs through a flat sample: its length and its stride."""
    return f"{shape[axis]}, {math.prod(shape[axis + 1 :])}"


def narrow(values: np.ndarray) -> np.ndarray:
    """Return whole numbers in the narrowest type that holds them; floats as they are."""
    if values.dtype.kind == "f":
        return values
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    for name in ("uint8", "int8", "uint16", "int16", "int32"):
        if np.iinfo(name).min <= low and high <= np.iinfo(name).max:
            return values.astype(name)
    return values.astype(np.int64)
