"""Random forests for data with shape: images, time series, EEG, volumes."""

from morforest.dictionary import Atoms, Axis, Mixture, Patch, SparseOblique
from morforest.forest import (
    MorfClassifier,
    MorfRegressor,
    MorfTreeClassifier,
    MorfTreeRegressor,
)

__version__ = "0.1.0"

__all__ = [
    "Atoms",
    "Axis",
    "Mixture",
    "MorfClassifier",
    "MorfRegressor",
    "MorfTreeClassifier",
    "MorfTreeRegressor",
    "Patch",
    "SparseOblique",
]
