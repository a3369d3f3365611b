"""The classifiers of the paper, each under one name and with one interface.

`make` looks up the hyperparameters of a classifier for a data set in hyperparameters.toml.
Libraries that only some classifiers need are imported where they are used.
"""

import contextlib
import functools
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from morforest import Axis, MorfClassifier, Patch, SparseOblique

NAMES = (
    "MORF",
    "SPORF",
    "RF",
    "RF (scikit-learn)",
    "logistic regression",
    "linear SVM",
    "RBF SVM",
    "kNN",
    "MLP",
    "XGBoost",
    "ConvNet",
    "MiniRocket",
)
# These take samples in their shape; the others need rows.
SHAPED = ("MORF", "SPORF", "RF", "ConvNet", "MiniRocket")
# Shorter series than this have no room for the kernels of MiniRocket.
SHORTEST_SERIES = 9


class Classifier(ClassifierMixin, BaseEstimator):
    """A model of any library, for samples of shape (n, *shape) and labels of any kind.

    Parameters
    ----------
    model : estimator
        The model. A fit does not change it, and its fitted copy is `model_`, which sees the classes
        as 0, 1, 2, ...
    flat : bool, default=False
        Whether it takes each sample as a row rather than in its shape.
    standardize : bool, default=False
        Whether to subtract the mean and divide by the standard deviation of the training values.
    channels : bool, default=False
        Whether the first axis of a sample holds channels, each with a mean and a standard deviation
        of its own.
    threads : int, default=1
        Threads of the linear algebra beneath the model, besides those that it starts itself.
    """

    def __init__(self, model, *, flat=False, standardize=False, channels=False, threads=1):
        self.model = model
        self.flat = flat
        self.standardize = standardize
        self.channels = channels
        self.threads = threads

    def fit(self, X, y):
        X = np.asarray(X)
        self.shape_ = X.shape[1:]
        self.classes_, y = np.unique(y, return_inverse=True)
        if self.standardize:
            axes = (0, *range(2, X.ndim)) if self.channels else None
            self.mean_ = X.mean(axis=axes, keepdims=True, dtype=np.float64)
            spread = X.std(axis=axes, keepdims=True, dtype=np.float64)
            # Values that are all equal stay zero.
            self.spread_ = np.where(spread > 0, spread, 1.0)
        rows = self.ready(X)
        with threadpool_limits(self.threads), warnings.catch_warnings():
            # The paper's numbers of iterations are part of its hyperparameters.
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model_ = clone(self.model).fit(rows, y)
        return self

    def predict(self, X):
        with threadpool_limits(self.threads):
            return self.classes_[self.model_.predict(self.ready(X))]

    def predict_proba(self, X):
        """Return probabilities, or for models without them scores between 0 and 1 to rank by."""
        rows = self.ready(X)
        with threadpool_limits(self.threads):
            if hasattr(self.model_, "predict_proba"):
                return self.model_.predict_proba(rows)
            scores = self.model_.decision_function(rows)
        if scores.ndim == 1:
            return expit(np.column_stack([-scores, scores]))
        return softmax(scores, axis=1)

    def ready(self, X):
        """Return samples as the model takes them."""
        X = np.asarray(X)
        if X.shape[1:] != self.shape_:
            raise ValueError(f"X has samples of shape {X.shape[1:]}, fitted were {self.shape_}.")
        if self.standardize:
            X = ((X - self.mean_) / self.spread_).astype(np.float32)
        return X.reshape(len(X), -1) if self.flat else X


@contextlib.contextmanager
def needs(library: str, name: str) -> Iterator[None]:
    """Say what to install if an import fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != library:
            raise
        raise ModuleNotFoundError(
            f"{name} needs {library}: pip install 'morforest[paper]', or make paper.",
            name=library,
        ) from error


def patch(shape: tuple[int, ...], **given) -> Patch:
    """Return a patch. Sizes are given for rows and columns; a single series has only columns."""
    return Patch(**{key: tuple(value[-len(shape) :]) for key, value in given.items()})


def forest(dictionary, given: dict, seed: int, threads: int) -> MorfClassifier:
    return MorfClassifier(dictionary, **given, n_jobs=threads, random_state=seed)


@functools.cache
def table() -> dict:
    with (Path(__file__).parent / "hyperparameters.toml").open("rb") as file:
        return tomllib.load(file)


def section(data: str) -> str:
    """Return the name of the part of hyperparameters.toml that holds for a data set."""
    sections = {
        name: key
        for key, content in table().items()
        if key != "every"
        for name in (key, *content["names"])
    }
    if data not in sections:
        raise ValueError(f"data must be one of {', '.join(sections)}, got {data!r}.")
    return sections[data]


def settings(name: str, data: str) -> dict:
    """Return the hyperparameters of a classifier for a data set."""
    if name not in NAMES:
        raise ValueError(f"name must be one of {', '.join(NAMES)}, got {name!r}.")
    found = table()["every"][name] | table()[section(data)].get(name, {})
    if "like" in found:
        found = settings(name, found.pop("like"))
    return found


def names_for(data: str) -> tuple[str, ...]:
    """Return the classifiers for a data set; MiniRocket takes only series."""
    images = table()[section(data)].get("images", False)
    return tuple(name for name in NAMES if not (images and name == "MiniRocket"))


def make(
    name: str,
    data: str,
    shape: tuple[int, ...],
    classes: int,
    rows: int,
    seed: int,
    threads: int,
) -> Classifier:
    """Return an unfitted classifier for samples of a shape, with the hyperparameters of a data set.

    `rows` is the number of training samples and `classes` that of their classes. The forests of
    this library are in `model_` after a fit.
    """
    if classes < 2 or rows < classes:
        raise ValueError(
            f"classes must be at least 2 and rows at least classes, got {classes} and {rows}."
        )
    if name not in names_for(data):
        raise ValueError(f"name must be one of {', '.join(names_for(data))}, got {name!r}.")
    given = settings(name, data)
    images = table()[section(data)].get("images", False)
    return Classifier(
        flat=name not in SHAPED,
        standardize=given.pop("standardize", False),
        channels=len(shape) > 1 and not images,
        threads=threads,
        model=model(name, given, shape, rows, seed, threads),
    )


def model(name: str, given: dict, shape: tuple[int, ...], rows: int, seed: int, threads: int):
    """Return the estimator of that name in its own library; those without a seed are not random."""
    match name:
        case "MORF":
            return forest(patch(shape, **given.pop("patch", {})), given, seed, threads)
        case "SPORF":
            return forest(SparseOblique(), given, seed, threads)
        case "RF":
            return forest(Axis(), given, seed, threads)
        case "RF (scikit-learn)":
            return RandomForestClassifier(**given, n_jobs=threads, random_state=seed)
        case "logistic regression":
            return LogisticRegression(**given)
        case "linear SVM":
            return LinearSVC(**given, random_state=seed)
        case "RBF SVM":
            return SVC(**given)
        case "kNN":
            given["n_neighbors"] = min(given["n_neighbors"], rows)
            return KNeighborsClassifier(**given, n_jobs=threads)
        case "MLP":
            return MLPClassifier(**given, random_state=seed)
        case "XGBoost":
            with needs("xgboost", name):
                from xgboost import XGBClassifier
            return XGBClassifier(**given, n_jobs=threads, random_state=seed)
        case "ConvNet":
            with needs("torch", name):
                from experiments.networks import ConvNet
            return ConvNet(**given, threads=threads, random_state=seed)
        case "MiniRocket":
            if shape[-1] < SHORTEST_SERIES:
                raise ValueError(
                    f"MiniRocket needs series of at least {SHORTEST_SERIES} steps, got {shape[-1]}."
                )
            with needs("aeon", name):
                from aeon.transformations.collection.convolution_based import MiniRocket
            return make_pipeline(
                MiniRocket(**given, n_jobs=threads, random_state=seed),
                StandardScaler(with_mean=False),
                RidgeClassifierCV(alphas=np.logspace(-3, 3, 10)),
            )
    raise AssertionError(name)
