"""Atoms as features: a dictionary's atoms, drawn once, for any estimator to learn from."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from morforest import _parameters as check
from morforest import _validation as validation
from morforest._atoms import AtomList
from morforest._data_scale import Sizes
from morforest._fixed_point import COARSE, cells_for, choose_format, core_dtype, whole_weights
from morforest._loading import check_features, restore
from morforest._model_file import Saved
from morforest._native import core
from morforest._parallel import count_jobs, over_blocks, over_even_parts
from morforest._sparse import SparseRows
from morforest._spatial import fit_views
from morforest._states import stored
from morforest._table import TrainingTable
from morforest.dictionary._base import resolve, seed_from
from morforest.dictionary._presets import choose_dictionary

__all__ = ["AtomFeatures"]

VALUES_PER_JOB = 1 << 16  # fewer are not worth a thread
SAMPLE_ROWS = 256  # at most so many training samples tell whether float32 is too coarse
SAMPLE_VALUES = 1 << 22  # and about so many values of atoms
MAX_ATOMS = 10_000_000
MOST_REPEATED = 1 << 24  # rows that the draw of atoms chooses from


@stored
class AtomFeatures(TransformerMixin, Saved, BaseEstimator):
    """Random atoms of a dictionary as features, for a linear model or any other.

    `fit` draws the atoms, and takes the biases of those pooled by "proportion" from random
    positions of random training samples; targets play no part. `transform` computes them in the
    core.

    Parameters
    ----------
    dictionary : dictionary, name or None, default=None
        Where atoms are drawn from, such as ``Haar(pool="proportion")``. None: as for
        :class:`MorfClassifier`.
    n_atoms : int, default=10_000
        How many.
    data_shape : tuple of int or None, default=None
        Shape of one sample, where `X` has flat rows.
    channel_axis : int or None, default=None
        Axis of X that holds channels, such as 1 or -1; see :class:`MorfClassifier`.
    align : {"left", "right", "stretch"}, default="left"
        How series of unequal length are brought to one, where X is a list of arrays; see
        :class:`MorfClassifier`.
    dtype : {"float32", "float64"}, default="float32"
        Type of the columns. float32 takes half of the memory and has 24 significant bits:
        `transform` warns if that rounds away what varies, as for data with a large offset.
    n_jobs : int or None, default=None
        Number of threads of `transform`; -1 for all processors.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Attributes
    ----------
    data_shape_ : tuple of int
        Shape of one sample.
    dictionary_ : dictionary
        The dictionary that was drawn from.
    n_features_in_ : int
        Number of features of a sample.

    Notes
    -----
    Sums, maxima, minima, means and biases are in the units of `X`, variances in their squares, and
    "proportion", "win" and "lose" are proportions from 0 to 1. `X` is rounded as it is for a
    forest.
    Linear models want features of one scale: put a scaler between.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import RidgeClassifierCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from morforest import AtomFeatures, Haar
    >>> random = np.random.default_rng(0)
    >>> y = np.arange(200) % 2
    >>> X = random.normal(size=(200, 50))
    >>> X[y == 1, 1:] += X[y == 1, :-1]  # neighbours are alike in one of the classes
    >>> haar = Haar(max_size=25, size_distribution="log", pool="proportion")
    >>> atoms = AtomFeatures(haar, 500, random_state=0)
    >>> model = make_pipeline(atoms, StandardScaler(), RidgeClassifierCV(np.logspace(-3, 3, 10)))
    >>> model.fit(X[:100], y[:100]).score(X[100:], y[100:]) > 0.95
    True
    """

    _sizes: Sizes | None = None  # of the training samples
    _aligned: tuple[str, int] | None = None  # how series of unequal length were brought to one

    def __init__(
        self,
        dictionary: Any = None,
        n_atoms: int = 10_000,
        *,
        data_shape: Any = None,
        channel_axis: int | None = None,
        align: str = "left",
        dtype: Any = "float32",
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.dictionary = dictionary
        self.n_atoms = n_atoms
        self.data_shape = data_shape
        self.channel_axis = channel_axis
        self.align = align
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> AtomFeatures:
        """Draw the atoms.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples of any rank, or flat rows, which may be a sparse matrix; a list of
            arrays where series have unequal lengths, see `align`.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights, which count where biases are drawn. A whole number means that the sample is
            repeated so many times, and zero that it is left out. If some are fractions, or they add
            up to more than 16 million, all samples of positive weight count the same.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        state = self.__dict__.copy()
        try:
            return self._fit(X, sample_weight=sample_weight)
        except BaseException:
            self.__dict__ = state  # a failed fit leaves the transformer as it was
            raise

    def _fit(
        self, X: Any, counts: np.ndarray | None = None, sample_weight: Any = None
    ) -> AtomFeatures:
        """Draw the atoms; biases are drawn as if each sample were there so many times."""
        check.check_integer("n_atoms", self.n_atoms, 1)
        if self.n_atoms > MAX_ATOMS:
            raise ValueError(f"n_atoms must be at most {MAX_ATOMS}, got {self.n_atoms!r}.")
        check.check_jobs(self.n_jobs)
        dtype = self._column_type()
        X, shape = validation.check_samples(self, X, fitting=True)
        weights = validation.check_weights(sample_weight, len(X))
        if weights is not None:
            used = np.flatnonzero(weights)
            X, weights = X[used], weights[used]
            counts = whole_weights(weights) if weights.sum() <= MOST_REPEATED else None
        chosen = choose_dictionary(self.dictionary, shape, self.channel_axis)
        plan = fit_views(resolve(chosen, shape, self.channel_axis), X, counts)
        plan = replace(plan, dictionary=clone(plan.dictionary))  # later changes must not reach it
        key = seed_from(self.random_state)
        cell_format, cells = choose_format(X, plan.bounds, plan.has_order)
        if cells.gaps:
            plan = plan.for_gaps_of(X, counts)
        table = TrainingTable(X, plan, cell_format, cells, self.n_jobs)
        order = np.argsort(table.table.hash).astype(np.uint32)
        source = order if counts is None else np.repeat(order, counts[order])
        drawn = core.draw_atoms(table.table, table.dictionary, source, key, int(self.n_atoms))
        self._atoms = AtomList.from_core(table.layout, drawn)
        self._format, self._channel_axis = cell_format, plan.channel_axis
        self._core = self._build()
        most = max(2, min(SAMPLE_ROWS, SAMPLE_VALUES // len(self._atoms), len(X)))
        rows = order[np.linspace(0, len(X) - 1, most).astype(int)]
        self._coarse = 0 if dtype == np.float64 else self._count_coarse(X[rows])
        self.data_shape_ = shape
        self.dictionary_ = plan.dictionary
        return self

    @property
    def _size(self) -> int:
        return len(self._atoms)

    def _column_type(self) -> np.dtype[Any]:
        try:
            found: np.dtype[Any] | None = np.dtype(self.dtype)
        except (TypeError, ValueError, OverflowError, SyntaxError):  # as of "f8,,"
            found = None
        if self.dtype is None or found not in (np.float32, np.float64):
            raise ValueError(f'dtype must be "float32" or "float64", got {self.dtype!r}.')
        return found

    def _count_coarse(self, X: np.ndarray) -> int:
        """Count the atoms whose values in float32 are coarse beside their spread over samples."""
        values = self._reader(X)(slice(0, len(X)))
        with np.errstate(over="ignore", invalid="ignore"):
            step = np.spacing(np.fmax.reduce(np.abs(values), axis=0).astype(np.float32))
            deviation = np.nan_to_num(values - np.fmin.reduce(values, axis=0)).std(axis=0)
            return int(((deviation > 0) & (step > COARSE * deviation)).sum())

    def _reader(self, X: np.ndarray, some: slice | None = None) -> Callable[[slice], np.ndarray]:
        """Return what computes all or some atoms of a part of the rows of X, in float64."""
        atoms = self._core if some is None else self._build(some)
        size = len(range(len(self._atoms))[some or slice(None)])
        cells = cells_for(X, self._format, takes_bytes=False)
        dtype = core_dtype(X)

        def read(part: slice) -> np.ndarray:
            x: np.ndarray = np.ascontiguousarray(X[part], dtype=dtype)
            out = np.empty((len(x), size))
            atoms.transform(x, cells.cell_type, cells.shift, cells.limit, cells.gaps, out)
            if cells.extra_bits:  # cells are so much finer than those of training
                np.ldexp(out, -cells.extra_bits, out=out)
            return out

        return read

    def transform(self, X: Any) -> np.ndarray:
        """Compute the atoms of samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        values : ndarray of shape (n_samples, n_atoms)
            The value of each atom.
        """
        check_is_fitted(self, "data_shape_")
        dtype = self._column_type()
        if self._coarse and dtype == np.float32:
            warnings.warn(
                f"{self._coarse} of {len(self._atoms)} atoms vary so little beside their size that "
                "float32 columns lose much of what varies: subtract an offset from X, or set "
                'dtype="float64".',
                stacklevel=2,
            )
        X, _ = validation.check_samples(self, X, fitting=False)
        cells = cells_for(X, self._format, takes_bytes=False)
        n_atoms = len(self._atoms)
        out = np.empty((len(X), n_atoms), dtype=dtype)
        run = self._core.transform
        arguments = (cells.cell_type, cells.shift, cells.limit, cells.gaps)
        jobs = count_jobs(self.n_jobs, min(len(X) * n_atoms // VALUES_PER_JOB, len(X)))
        held = core_dtype(X)
        if isinstance(X, SparseRows):
            over_blocks(
                lambda part: run(np.ascontiguousarray(X[part], dtype=held), *arguments, out[part]),
                X.shape,
                jobs,
            )
        else:
            over_even_parts(lambda part: run(X[part], *arguments, out[part]), len(X), jobs)
        if cells.extra_bits:  # cells are so much finer than those of training
            np.ldexp(out, -cells.extra_bits, out=out)
        lowest, highest = np.fmin.reduce(out, axis=None), np.fmax.reduce(out, axis=None)
        if np.isinf(lowest) or np.isinf(highest):
            raise ValueError(
                f"X has values so large that atoms exceed what {dtype} holds: scale X down."
            )
        return out

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Say which atom each column is.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Only checked against the names seen in `fit`.

        Returns
        -------
        names : ndarray of str
            Such as "haar(1,-1) width 4 channel 2 proportion>0.31". Windows of fewer than all
            positions are named by those of the atom's first cell; equal names are numbered. Of a
            pair across views both are named, such as "of raw and difference". If `fit` saw a data
            frame, sums of up to 12 columns are written with the names of these, such as
            "age - children".
        """
        check_is_fitted(self, "data_shape_")
        if input_features is not None:
            given = np.asarray(input_features, dtype=object)
            known = getattr(self, "feature_names_in_", None)
            if known is not None and not np.array_equal(known, given):
                raise ValueError("input_features is not equal to feature_names_in_")
            if len(given) != self.n_features_in_:
                raise ValueError(
                    "input_features should have length equal to number of features "
                    f"({self.n_features_in_}), got {len(given)}"
                )
        seen: dict[str, int] = {}
        names = []
        for name in self._atoms.names(
            self._format.shift, self._channel_axis, getattr(self, "feature_names_in_", None)
        ):
            seen[name] = seen.get(name, 0) + 1
            names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
        return np.array(names, dtype=object)

    def _build(self, some: slice | None = None) -> core.AtomValues:
        """Make what computes all atoms or some in the core, which checks them."""
        atoms = self._atoms if some is None else self._atoms[some]
        return atoms.values(atoms.scales(self._format.shift), self._format)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if "_format" in state:
            state = {**state, "_format": self._format.dump()}
        return {name: value for name, value in state.items() if name != "_core"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        restore(self, state, "_atoms", check_features)
        if hasattr(self, "_atoms"):
            self._core = self._build()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # the columns have the type that `dtype` says
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags
