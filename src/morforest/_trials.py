"""Trials of several channels, such as EEG epochs, as columns of several kinds: *blocks*.

"raw" and "white" are the values in place, of channels and of whitened channels. "products" are the
logarithms of powers and the correlations of whitened channels, within octave bands. "pooled" and
"white pooled" are atoms of the dictionary "series-pooled".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from morforest._arrays import refusing
from morforest._loading import check_numbers, require
from morforest._spatial import as_trials, fit_whitening
from morforest._states import stored
from morforest.dictionary._presets import SHORTEST_SERIES
from morforest.dictionary._shape import SampleShape
from morforest.features import AtomFeatures

BLOCKS = ("raw", "white", "products", "pooled", "white pooled")
MOST_PLACES = 20_000  # columns of values in place: longer trials are averaged over some steps
MOST_FILTERS = 64  # whitened channels
FLOOR = 1e-9  # of powers, where whitened channels have powers of about one
TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, eq=False)
class InPlace:
    """Means of a few steps of each channel: of one step, unless trials are long."""

    channels: int
    steps: int

    @property
    def width(self) -> int:
        """Number of steps that a mean is of."""
        width = 1
        while self.channels * -(-self.steps // width) > MOST_PLACES and width < self.steps:
            width += 1
        return width

    @property
    def size(self) -> int:
        """Number of columns."""
        return self.channels * len(self._starts)

    @property
    def _starts(self) -> np.ndarray:
        return np.arange(0, self.steps, self.width)

    @property
    def _lengths(self) -> np.ndarray:
        return np.diff(np.append(self._starts, self.steps))

    def groups(self) -> np.ndarray:
        """Return the number of the scale of each column: one for all."""
        return np.zeros(self.size, dtype=np.intp)

    def read(self, x: np.ndarray) -> np.ndarray:
        """Return the columns of trials."""
        if self.width > 1:
            x = np.add.reduceat(x, self._starts, axis=2) / self._lengths
        return x.reshape(len(x), -1)

    def names(self) -> Iterator[str]:
        """Yield a description of each column."""
        for channel in range(self.channels):
            for start, length in zip(self._starts, self._lengths, strict=True):
                steps = f"step {start}" if length == 1 else f"steps {start}-{start + length - 1}"
                yield f"channel {channel} {steps}"

    def map(self, weights: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """Return what a unit of each channel at each step adds (outputs, channels, steps)."""
        each = weights.reshape(len(weights), self.channels, -1) / self._lengths
        return np.repeat(each, self._lengths, axis=2)


@dataclass(frozen=True, eq=False)
class Products:
    """Means over time of the products of two whitened channels, in octave bands.

    A band is the mean of w steps less that of 2 w around them; the first band is the trial less
    its mean. Columns are logarithms of powers, and correlations times the root of two, by which a
    sum of their squares counts each of the two equal entries of a matrix.
    """

    channels: int
    steps: int

    @property
    def widths(self) -> list[int]:
        """Width of each band; zero for all frequencies."""
        found, width = [0], 1
        while 4 * width <= self.steps:
            found.append(width)
            width *= 2
        return found

    @property
    def size(self) -> int:
        """Number of columns."""
        return len(self.widths) * self._per_band

    @property
    def _per_band(self) -> int:
        return self.channels * (self.channels + 1) // 2

    def groups(self) -> np.ndarray:
        """Return the number of the scale of each column: one per band."""
        return np.repeat(np.arange(len(self.widths)), self._per_band)

    def read(self, x: np.ndarray) -> np.ndarray:
        """Return the columns of trials."""
        x = x - x.mean(axis=2, keepdims=True)
        sums = np.zeros((*x.shape[:2], self.steps + 1))
        np.cumsum(x, axis=2, out=sums[:, :, 1:])
        upper = np.triu_indices(self.channels, 1)
        diagonal = np.arange(self.channels)
        out = np.empty((len(x), len(self.widths), self._per_band))
        for number, width in enumerate(self.widths):
            band = _band(x, sums, width) if width else x
            products = band @ band.transpose(0, 2, 1)
            products /= band.shape[2]
            power = products[:, diagonal, diagonal] + FLOOR
            out[:, number, : self.channels] = np.log(power)
            root = np.sqrt(power)
            found = products[:, upper[0], upper[1]] / root[:, upper[0]]
            found /= root[:, upper[1]]
            out[:, number, self.channels :] = np.sqrt(2) * found
        return out.reshape(len(x), -1)

    def names(self) -> Iterator[str]:
        """Yield a description of each column."""
        for width in self.widths:
            band = f"band {width}-{2 * width}" if width else "all frequencies"
            for channel in range(self.channels):
                yield f"power {channel} {band}"
            for one, other in zip(*np.triu_indices(self.channels, 1), strict=True):
                yield f"correlation {one} {other} {band}"

    def map(self, weights: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """Return what a unit of each covariance adds (outputs, bands, channels, channels).

        Powers and correlations are not linear in covariances: these are derivatives, at the mean of
        the columns.
        """
        k, bands = self.channels, len(self.widths)
        mean = mean.reshape(bands, -1)
        power, relation = np.exp(mean[:, :k]), mean[:, k:] / np.sqrt(2)
        each = weights.reshape(len(weights), bands, -1)
        one, other = np.triu_indices(k, 1)
        found = np.zeros((len(weights), bands, k, k))
        root = np.sqrt(power)
        pairs = each[:, :, k:] / np.sqrt(2)
        found[:, :, one, other] = pairs / root[:, one] / root[:, other]
        found += found.transpose(0, 1, 3, 2)
        diagonal = each[:, :, :k].copy()
        share = pairs * relation
        for axis in (one, other):
            for channel in range(k):
                diagonal[:, :, channel] -= share[:, :, axis == channel].sum(axis=2)
        found[:, :, range(k), range(k)] = diagonal / power
        return found


def _band(x: np.ndarray, sums: np.ndarray, width: int) -> np.ndarray:
    """Return the means of `width` steps less those of twice as many around them."""
    wide = (sums[:, :, 2 * width :] - sums[:, :, : -2 * width]) / (2 * width)
    first = width - width // 2  # the short box stands in the middle of the long one
    narrow = (sums[:, :, width:] - sums[:, :, :-width]) / width
    found: np.ndarray = narrow[:, :, first : first + wide.shape[2]] - wide
    return found


@stored
class TrialFeatures:
    """The blocks of columns of trials, and the filters and atoms that some of them need."""

    _aligned: tuple[str, int] | None = None  # how series of unequal length were brought to one

    def __init__(self, shape: tuple[int, ...], channel_axis: int | None):
        samples = SampleShape.of(shape, channel_axis)
        axis = 0 if samples.channel_axis is None else samples.channel_axis
        if len(shape) != 2 or shape[1 - axis] < SHORTEST_SERIES:
            raise ValueError(
                'dictionary="eeg" needs samples of two axes, channels and time, with at least '
                f"{SHORTEST_SERIES} steps of time, got shape {samples}: pass X of shape "
                "(n_samples, n_channels, n_steps), or another channel_axis or dictionary."
            )
        self.data_shape_ = shape
        self._axis = axis
        self.blocks: tuple[str, ...] = BLOCKS
        self._atoms: dict[str, AtomFeatures] = {}

    def fit(
        self,
        X: np.ndarray,
        weights: np.ndarray,
        counts: np.ndarray,
        n_atoms: int,
        n_jobs: int | None,
        random_state: np.random.RandomState,
    ) -> TrialFeatures:
        """Fit the filters to flat rows, and draw atoms of both pooled blocks."""
        self._filters = fit_whitening(
            lambda part: self._trials(X[part]), len(X), weights, most=MOST_FILTERS
        )
        for name in BLOCKS[3:]:
            found = AtomFeatures(
                "series-pooled",
                n_atoms,
                data_shape=self._shape_of(name),
                channel_axis=1,
                dtype="float64",
                n_jobs=n_jobs,
                random_state=random_state.randint(2**32, dtype=np.int64),
            )
            x = self._views(self._trials(X[:]), (name,))[name]
            self._atoms[name] = found._fit(x.reshape(len(X), -1), counts)
        return self

    def keep(self, names: list[str]) -> None:
        """Drop all blocks but these."""
        self.blocks = tuple(name for name in BLOCKS if name in names)
        self._atoms = {name: atoms for name, atoms in self._atoms.items() if name in names}

    @property
    def _size(self) -> int:
        return sum(self.sizes())

    def sizes(self) -> list[int]:
        """Return the number of columns of each block."""
        return [
            self._atoms[name]._size if name in self._atoms else self._block(name).size
            for name in self.blocks
        ]

    def places(self) -> dict[str, slice]:
        """Return where the columns of each block are."""
        end = np.cumsum(self.sizes()).tolist()
        return {
            name: slice(last - size, last)
            for name, size, last in zip(self.blocks, self.sizes(), end, strict=True)
        }

    def groups(self, name: str) -> np.ndarray:
        """Return the number of the scale of each column of a block."""
        if name in self._atoms:
            return np.arange(self._atoms[name]._size)
        return self._block(name).groups()

    def _reader(self, X: np.ndarray, some: slice | None = None) -> Callable[[slice], np.ndarray]:
        """Return what computes all or some columns of a part of the rows of X."""
        first, end, _ = (some or slice(None)).indices(self._size)
        wanted = {
            name: slice(max(first - place.start, 0), min(end, place.stop) - place.start)
            for name, place in self.places().items()
            if place.start < end and place.stop > first
        }

        def read(part: slice) -> np.ndarray:
            x = self._trials(X[part])
            views = self._views(x, tuple(wanted))
            with np.errstate(over="ignore", invalid="ignore"):
                return np.concatenate(
                    [self._read(name, views[name], of) for name, of in wanted.items()], axis=1
                )

        return read

    def _read(self, name: str, x: np.ndarray, some: slice) -> np.ndarray:
        if name in self._atoms:
            atoms = self._atoms[name]
            every = some == slice(0, atoms._size)  # whose atoms the core has at hand
            read = atoms._reader(x.reshape(len(x), -1), None if every else some)
            return read(slice(0, len(x)))
        return self._block(name).read(x)[:, some]

    def _block(self, name: str) -> InPlace | Products:
        channels, steps = self._shape_of(name)
        return Products(channels, steps) if name == "products" else InPlace(channels, steps)

    def _shape_of(self, name: str) -> tuple[int, int]:
        channels, steps = self.data_shape_[self._axis], self.data_shape_[1 - self._axis]
        return (channels if name in ("raw", "pooled") else len(self._filters)), steps

    def _views(self, x: np.ndarray, names: tuple[str, ...]) -> dict[str, np.ndarray]:
        """Return what each block looks at: the channels, or the whitened channels."""
        white = x
        if not set(names) <= {"raw", "pooled"}:
            white = self._filters @ x
        return {name: x if name in ("raw", "pooled") else white for name in names}

    def _trials(self, rows: np.ndarray) -> np.ndarray:
        return as_trials(rows, self.data_shape_, self._axis)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Say what each column is."""
        names: list[str] = []
        for name in self.blocks:
            atoms = self._atoms.get(name)
            own = self._block(name).names() if atoms is None else atoms.get_feature_names_out()
            names.extend(f"{name}: {one}" for one in own)
        return np.array(names, dtype=object)

    def maps(
        self, weights: np.ndarray, mean: np.ndarray, deviation: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return what the weights of standardised columns are on channels, see `block_maps`."""
        found = {}
        for name, place in self.places().items():
            own, spread = weights[:, place], deviation[place]
            if name in self._atoms:
                size = np.abs(own) @ self._atoms[name]._atoms.footprints()
                size = size.reshape(len(own), *self._shape_of(name))
                if name == "white pooled":
                    share = np.abs(self._filters).T
                    size = share / np.maximum(share.sum(axis=0), TINY) @ size
                found[name] = size
                continue
            units = np.divide(own, spread, out=np.zeros_like(own), where=spread > 0)
            found[name] = self._block(name).map(units, mean[place])
            if name == "white":
                found[name] = self._filters.T @ found[name]
            if name == "products":
                found[name] = self._filters.T @ found[name] @ self._filters
        return found

    def __setstate__(self, state: Any) -> None:
        with refusing("model"):
            require(isinstance(state, dict), "the state of blocks is not a dict")
            self.__dict__.update(state)
            self._check()

    def _check(self) -> None:
        """Refuse damaged blocks."""
        shape, axis, names = self.data_shape_, self._axis, self.blocks
        require(
            type(shape) is tuple
            and len(shape) == 2
            and all(type(length) is int and length > 0 for length in shape)
            and type(axis) is int
            and axis in (0, 1)
            and shape[1 - axis] >= SHORTEST_SERIES,
            "trials of another shape than channels and time",
        )
        require(
            type(names) is tuple
            and len(names) > 0
            and names == tuple(name for name in BLOCKS if name in names),
            "unknown blocks",
        )
        channels = shape[axis]
        check_numbers("_filters", self._filters, (min(channels, MOST_FILTERS), channels))
        pooled = [name for name in names if name in BLOCKS[3:]]
        require(type(self._atoms) is dict and list(self._atoms) == pooled, "atoms of other blocks")
        for name, atoms in self._atoms.items():
            require(
                isinstance(atoms, AtomFeatures)
                and hasattr(atoms, "_core")
                and atoms.data_shape_ == self._shape_of(name),
                f"the atoms of the block {name}",
            )
