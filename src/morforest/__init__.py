"""Random forests for data with shape: images, time series, EEG, volumes."""

from morforest._attribution import Attributions
from morforest._data_scale import DataScaleWarning
from morforest._polytope import Polytope
from morforest._splits import Splits, TreeSplits
from morforest._version import __version__ as __version__
from morforest.augment import ImageCopies, SeriesCopies
from morforest.blocks import fit_blocks
from morforest.boosting import MorfBoostingClassifier, MorfBoostingRegressor
from morforest.consistency import (
    ConsistencyReport,
    check_consistency_conditions,
    consistent,
)
from morforest.dictionary import (
    Atoms,
    Axis,
    Graph,
    Haar,
    Kernel,
    Mixture,
    Neighbours,
    Pair,
    Patch,
    SharedAtoms,
    Similarity,
    SparseOblique,
    Subset,
    Variance,
)
from morforest.dictionary._views import (
    Difference,
    Filter,
    Gradient,
    Magnitude,
    Product,
    Raw,
    Square,
    White,
)
from morforest.features import AtomFeatures
from morforest.files import ModelFile, inspect, load
from morforest.forest import MorfClassifier, MorfRegressor
from morforest.graphs import GraphFeatures
from morforest.ridge import AtomRidgeClassifier, AtomRidgeRegressor
from morforest.tree import MorfTreeClassifier, MorfTreeRegressor

__all__ = [
    "AtomFeatures",
    "AtomRidgeClassifier",
    "AtomRidgeRegressor",
    "Atoms",
    "Attributions",
    "Axis",
    "ConsistencyReport",
    "DataScaleWarning",
    "Difference",
    "Filter",
    "Gradient",
    "Graph",
    "GraphFeatures",
    "Haar",
    "ImageCopies",
    "Kernel",
    "Magnitude",
    "Mixture",
    "ModelFile",
    "MorfBoostingClassifier",
    "MorfBoostingRegressor",
    "MorfClassifier",
    "MorfRegressor",
    "MorfTreeClassifier",
    "MorfTreeRegressor",
    "Neighbours",
    "Pair",
    "Patch",
    "Polytope",
    "Product",
    "Raw",
    "SeriesCopies",
    "SharedAtoms",
    "Similarity",
    "SparseOblique",
    "Splits",
    "Square",
    "Subset",
    "TreeSplits",
    "Variance",
    "White",
    "check_consistency_conditions",
    "consistent",
    "fit_blocks",
    "inspect",
    "load",
]
