"""Atoms as features: a dictionary's atoms, drawn once, for any estimator to learn from."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from morforest import _parameters as check
from morforest import _validation as validation
from morforest._columns import pooled_views_of, unit_scales
from morforest._fixed_point import cells_for, choose_format
from morforest._forms import OPS, PROPORTION, VARIANCE, WIN, PooledView, windows
from morforest._native import core
from morforest._table import TrainingTable
from morforest.dictionary._base import resolve, seed_from
from morforest.dictionary._presets import choose_dictionary

__all__ = ["AtomFeatures"]

VALUES_PER_JOB = 1 << 16  # fewer are not worth a thread
MAX_ATOMS = 10_000_000
MOST_NAMED = 12  # cells that a name lists


class AtomFeatures(TransformerMixin, BaseEstimator):
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
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.
    channel_axis : int or None, default=None
        Axis of X that holds channels, such as 1 or -1; see :class:`MorfClassifier`.
    n_jobs : int or None, default=None
        Number of threads of `transform`; -1 for all processors.
    data_shape : tuple of int or None, default=None
        Shape of one sample, where `X` has flat rows.

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

    def __init__(
        self,
        dictionary: Any = None,
        n_atoms: int = 10_000,
        random_state: Any = None,
        channel_axis: int | None = None,
        n_jobs: int | None = None,
        data_shape: Any = None,
    ):
        self.dictionary = dictionary
        self.n_atoms = n_atoms
        self.random_state = random_state
        self.channel_axis = channel_axis
        self.n_jobs = n_jobs
        self.data_shape = data_shape

    def fit(self, X: Any, y: Any = None) -> AtomFeatures:
        """Draw the atoms.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples of any rank, or flat rows.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        state = self.__dict__.copy()
        try:
            return self._fit(X)
        except BaseException:
            self.__dict__ = state  # a failed fit leaves the transformer as it was
            raise

    def _fit(self, X: Any) -> AtomFeatures:
        check.check_integer("n_atoms", self.n_atoms, 1)
        if self.n_atoms > MAX_ATOMS:
            raise ValueError(f"n_atoms must be at most {MAX_ATOMS}, got {self.n_atoms!r}.")
        check.check_jobs(self.n_jobs)
        X, shape = validation.check_samples(self, X, fitting=True)
        chosen = choose_dictionary(self.dictionary, shape, self.channel_axis)
        plan = resolve(chosen, shape, self.channel_axis)
        plan = replace(plan, dictionary=clone(plan.dictionary))  # later changes must not reach it
        key = seed_from(self.random_state)
        cell_format, cells = choose_format(X, plan.bounds)
        table = TrainingTable(X, plan, cell_format, cells, self.n_jobs)
        order = np.argsort(table.table.hash).astype(np.uint32)
        built = table.dictionary
        drawn = core.draw_atoms(table.table, built, order, key, int(self.n_atoms))
        self._atoms = drawn
        self._views = (built.views, built.view_sources, built.pooled_views)
        self._plan, self._key, self._format = plan, key, cell_format
        self._scale = unit_scales(self._arrays(), shape, cell_format.shift)
        self._core = self._build()
        self.data_shape_ = shape
        self.dictionary_ = plan.dictionary
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Compute the atoms of samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.

        Returns
        -------
        values : ndarray of shape (n_samples, n_atoms), float32
            The value of each atom.
        """
        check_is_fitted(self, "data_shape_")
        X, _ = validation.check_samples(self, X, fitting=False)
        cells = cells_for(X, self._format, takes_bytes=False)
        n_atoms = len(self._scale)
        out = np.empty((len(X), n_atoms), dtype=np.float32)
        run = self._core.transform
        arguments = (cells.cell_type, cells.shift, cells.limit)
        jobs = min(effective_n_jobs(self.n_jobs), len(X) * n_atoms // VALUES_PER_JOB, len(X))
        if jobs <= 1:
            run(X, *arguments, out)
        else:
            parts = np.linspace(0, len(X), jobs + 1).astype(int)
            Parallel(n_jobs=jobs, prefer="threads", require="sharedmem")(
                delayed(run)(X[a:b], *arguments, out[a:b]) for a, b in itertools.pairwise(parts)
            )
        if cells.extra_bits:  # cells are so much finer than those of training
            np.ldexp(out, -cells.extra_bits, out=out)
        if not (np.isfinite(out.min(initial=0)) and np.isfinite(out.max(initial=0))):
            raise ValueError(
                "X has values so large that atoms exceed what float32 holds: scale X down."
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
            pair across views both are named, such as "of raw and difference".
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
        for name in self._describe():
            seen[name] = seen.get(name, 0) + 1
            names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
        return np.array(names, dtype=object)

    def _describe(self) -> Iterator[str]:
        """Yield a name for each atom.

        The same draws from a dictionary without prefix sums give the atoms over the features.
        """
        plan, drawn = self._plan, self._atoms
        count, rank = len(self._scale), len(plan.shape)
        begin, cell, weight = plan.build(direct=True).sample(self._key, count, False)
        sources = plan.views()
        op = drawn["form_op"] if len(drawn["form_op"]) else np.zeros(count, dtype=np.uint8)
        moved = np.ones((count, rank), dtype=np.int64)
        views = self._pooled_views()
        if views:
            moved = windows(drawn["cell"][drawn["begin"][:-1]], drawn["form_window"], views)
        axes = [axis for axis in range(rank) if axis != plan.channel_axis]
        for number in range(count):
            terms = slice(int(begin[number]), int(begin[number + 1]))
            # Of a variance the other half are squares.
            if op[number] == VARIANCE:
                terms = slice(terms.start, (terms.start + terms.stop) // 2)
            index = np.unravel_index(cell[terms], (len(sources), *plan.shape))
            source = sources[int(index[0][0])]
            words = [_shape_of(weight[terms], index[1:], axes)]
            if op[number] == VARIANCE:
                words[0] = words[0].replace("patch", "variance")
            # Of a pair across channels that of the rectangle that is added comes first.
            added_first = np.argsort(-weight[terms], kind="stable")
            kinds = [sources[i].kind for i in dict.fromkeys(index[0][added_first].tolist())]
            if kinds != ["raw"]:
                words.append(f"of {' and '.join(kinds)}")
            if plan.channel_axis is not None:
                channel = index[1 + plan.channel_axis]
                sides = [np.unique(channel)]
                if words[0].startswith("pair"):  # which less which
                    more, less = (np.unique(channel[weight[terms] * s > 0]) for s in (1, -1))
                    sides = [more] if np.array_equal(more, less) else [more, less]
                words.append(f"channel {'-'.join('+'.join(map(str, side)) for side in sides)}")
            first = [int(i.min()) for i in index[1:]]
            extent = [int(i.max() - i.min()) + 1 for i in index[1:]]
            places = [n - e + 1 for n, e in zip(plan.shape, extent, strict=True)]
            if any(moved[number, axis] < places[axis] for axis in axes):
                words.append(f"at {','.join(str(first[axis]) for axis in axes)}")
                if op[number] and op[number] != VARIANCE:
                    words.append(f"over {'x'.join(str(moved[number, axis]) for axis in axes)}")
            if op[number] == PROPORTION:
                shift = self._format.shift * (2 if source.squares else 1)
                words.append(
                    f"proportion>{np.ldexp(float(drawn['form_bias'][number]), -shift):.4g}"
                )
            elif op[number] == WIN:
                words.append(f"win of {drawn['form_bias'][number] + 1}")
            elif op[number] and op[number] != VARIANCE:
                words.append(OPS[op[number]])
            yield " ".join(words)

    def _build(self) -> Any:
        """Make the core's features, which checks the atoms."""
        views, sources, pooled_views = self._views
        return core.AtomFeatures(
            shape=list(self._plan.shape),
            views=views,
            sources=sources,
            pooled_views=pooled_views,
            scale=self._scale,
            **self._atoms,
        )

    def _arrays(self) -> SimpleNamespace:
        views, sources, pooled_views = self._views
        return SimpleNamespace(
            views=views, sources=sources, pooled_views=pooled_views, **self._atoms
        )

    def _pooled_views(self) -> list[PooledView]:
        return pooled_views_of(self._arrays(), self._plan.shape)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_core"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_atoms" in state:
            self._core = self._build()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # always float32
        tags.input_tags.three_d_array = True
        return tags


def _shape_of(values: np.ndarray, index: tuple[np.ndarray, ...], places: list[int]) -> str:
    """Say what an atom looks like: a feature, a patch, rectangles side by side or apart, a sum."""
    low = [int(i.min()) for i in index]
    size = [int(i.max()) - first + 1 for i, first in zip(index, low, strict=True)]
    if len(values) != np.prod(size):
        return _pair_of(values, index, places) or _sum_of(values, index, places)
    box = values.reshape(size)
    for axis in range(box.ndim):  # one entry a lobe along each axis
        steps = np.diff(box, axis=axis) != 0
        change = steps.any(axis=tuple(a for a in range(box.ndim) if a != axis))
        edges = np.append(0, np.flatnonzero(change) + 1)
        if len(np.unique(np.diff(np.append(edges, box.shape[axis])))) > 1:
            return _sum_of(values, index, places)
        size[axis] //= len(edges)
        box = box.take(edges, axis=axis)
    width = "x".join(str(size[axis]) for axis in places) or "1"
    lobes = ",".join(f"{value:g}" for value in box.ravel())
    if box.size > 1:
        return f"haar({lobes}) width {width}"
    name = "patch" if lobes == "1" else f"{lobes} x patch"
    return f"{name} width {width}"


def _sum_of(values: np.ndarray, index: tuple[np.ndarray, ...], places: list[int]) -> str:
    """Name a few cells along one axis by their weights and places, and others by their number."""
    along = [axis for axis in range(len(index)) if index[axis].min() < index[axis].max()]
    if len(along) != 1 or along[0] not in places or len(values) > MOST_NAMED:
        return f"sum of {len(values)} features"
    place = index[along[0]] - index[along[0]].min()
    cells = ",".join(f"{value:g}@{at}" for at, value in zip(place, values, strict=True))
    return f"kernel({cells})"


def _pair_of(values: np.ndarray, index: tuple[np.ndarray, ...], places: list[int]) -> str | None:
    """Name two equal rectangles that weigh 1 and -1, by their size and how far apart they are."""
    low, size = [], []
    for sign in (1, -1):
        inside = [i[values == sign] for i in index]
        if 2 * len(inside[0]) != len(values):
            return None
        low.append([int(i.min()) for i in inside])
        size.append([int(i.max() - i.min()) + 1 for i in inside])
    if size[0] != size[1] or 2 * math.prod(size[0]) != len(values):
        return None
    width = "x".join(str(size[0][axis]) for axis in places) or "1"
    apart = ",".join(str(low[1][axis] - low[0][axis]) for axis in places) or "0"
    return f"pair width {width} apart {apart}"
