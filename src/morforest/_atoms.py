"""The record of atoms: which cells of a row they add up, and what they make of the sums.

A row of a table is a sequence of *planes* and one last cell that is always zero. A plane shows one
view of the sample, summed cumulatively along some axes. A :class:`RowLayout` says what stands in a
row, and an :class:`AtomList` lists atoms over one layout. The fitted forest holds one atom per
node, shared atoms one per column, `AtomFeatures` one per feature; whatever is asked of atoms
(units, features, windows, names) is a method here. See "The atom record" in docs/design.md.

The core has the same two records under the same names; `from_core` and `to_core` turn one into the
other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from morforest._arrays import narrow, no_numbers, read_numbers, refusing, widen
from morforest._atom_names import MOST_NAMED, in_columns, name_of
from morforest._course import UNKNOWN, Course
from morforest._fixed_point import CellFormat, require_format
from morforest._native import core
from morforest._states import stored
from morforest.dictionary._views import KINDS, RAW, View

OPERATIONS = ("none", "max", "min", "mean", "proportion", "variance", "win")  # as the core counts
NONE, MAX, MIN, MEAN, PROPORTION, VARIANCE, WIN = range(len(OPERATIONS))
COUNTS = (PROPORTION, WIN)  # of positions
TURNS = 3  # how often a circular axis stands in a pooled plane
MAX_RANK = 32
FILTERED = ("filter", "squared_filter", "product")  # kinds of views
LARGEST_FILTER = 1 << 40  # weight of filters
MAX_CELLS = 2**31
LARGEST_EXPONENT = 1000  # of scales, which must be numbers
CHUNK = 1024  # atoms that are spread over the features at once

# The core's types. In memory each array is kept in the narrowest type that holds it.
TYPES: dict[str, Any] = {
    "count": np.uint32,
    "cell": np.uint32,
    "weight": np.float64,
    "operation": np.uint8,
    "bias": np.int64,
    "window": np.uint32,
}
AXES = {"window": 3}  # of the arrays that have more than one


@dataclass(frozen=True)
class Plane:
    """One view of the sample in a row, summed cumulatively along some axes.

    In a plane that is not pooled, sums begin anew at each end of an axis, so that a box at the
    border has fewer corners than its neighbour. Those of a pooled plane go on: zeros lead it, each
    cell is added to the one a stride before it, and circular axes stand there three times. An atom
    can then be moved by adding to its cells.
    """

    view: View = RAW
    prefixed_axes: tuple[int, ...] = ()
    circular_axes: tuple[int, ...] = ()
    pooled: bool = False

    def lengths(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the length of each axis in the plane."""
        return tuple(
            length * (TURNS if axis in self.circular_axes else 1)
            for axis, length in enumerate(shape)
        )

    def strides(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the cells between neighbours along each axis."""
        lengths = self.lengths(shape)
        return tuple(math.prod(lengths[axis + 1 :]) for axis in range(len(lengths)))

    def lead(self, shape: tuple[int, ...]) -> int:
        """Return the number of zeros ahead."""
        if not self.pooled:
            return 0
        strides = self.strides(shape)
        return sum(strides[axis] for axis in self.prefixed_axes)

    def cells(self, shape: tuple[int, ...]) -> int:
        """Return the number of cells."""
        return self.lead(shape) + math.prod(self.lengths(shape))


@dataclass(frozen=True)
class RowLayout:
    """What stands in a row: the shape of a sample and its planes, pooled ones last.

    Along an ordered axis, missing values are filled in from their neighbours and the usual course.
    """

    shape: tuple[int, ...]
    planes: tuple[Plane, ...]
    ordered_axes: tuple[int, ...] = ()
    course: Course = UNKNOWN

    @property
    def features(self) -> int:
        """Number of features of a sample."""
        return math.prod(self.shape)

    @cached_property
    def begins(self) -> np.ndarray:
        """Where each plane begins, and where the last one ends."""
        sizes = [plane.cells(self.shape) for plane in self.planes]
        return np.cumsum([0, *sizes])

    @property
    def cells(self) -> int:
        """Number of cells of a row."""
        return int(self.begins[-1]) + 1

    @cached_property
    def views(self) -> tuple[View, ...]:
        """The views that planes show, each once, in the order in which they appear."""
        return tuple(dict.fromkeys(plane.view for plane in self.planes))

    @property
    def only_raw(self) -> bool:
        """Whether planes show the raw values alone, and none is pooled."""
        return self.views == (RAW,) and not any(plane.pooled for plane in self.planes)

    def plane_of(self, cell: np.ndarray) -> np.ndarray:
        """Return the number of the plane that holds each cell."""
        return np.searchsorted(self.begins[1:-1], cell, side="right")

    def power_of(self, cell: np.ndarray) -> np.ndarray:
        """Return 2 for cells of squares, whose units are those of the data squared, else 1."""
        powers = np.array([2 if plane.view.squares else 1 for plane in self.planes])
        found: np.ndarray = powers[self.plane_of(cell)]
        return found

    @cached_property
    def volumes(self) -> np.ndarray:
        """The value of each cell for a sample of ones, if every view showed the raw values."""
        parts = [np.zeros(1)]
        for plane in reversed(self.planes):
            ones = np.ones((1, *plane.lengths(self.shape)))
            if plane.pooled:
                values = np.append(np.zeros(plane.lead(self.shape)), ones)[np.newaxis]
                strides = plane.strides(self.shape)
                for axis in plane.prefixed_axes:
                    values = _sum_strides(values, strides[axis], backwards=False)
            else:
                values = ones
                for axis in plane.prefixed_axes:
                    values = np.cumsum(values, axis=axis + 1)
            parts.append(values.ravel())
        return np.concatenate(parts[::-1])

    def on_features(
        self, number: int, atom: np.ndarray, cell: np.ndarray, weight: np.ndarray, atoms: int
    ) -> sp.csr_matrix:
        """Turn weights on the cells of one plane into weights on features (atoms, features)."""
        plane, cell = self.planes[number], cell - self.begins[number]
        if not plane.prefixed_axes and not plane.pooled:
            return sp.csr_matrix((weight, (atom, cell)), shape=(atoms, self.features))
        dense = np.zeros((atoms, plane.cells(self.shape)))
        np.add.at(dense, (atom, cell), weight)
        if not plane.pooled:
            # A sum adds the features up to it, so a feature gets the weights at and after it.
            return sp.csr_matrix(self.unaccumulate(dense, plane))
        for axis, stride in enumerate(plane.strides(self.shape)):
            if axis in plane.prefixed_axes:
                dense = _sum_strides(dense, stride, backwards=True)
        turns = dense[:, plane.lead(self.shape) :].reshape(atoms, *plane.lengths(self.shape))
        for axis in plane.circular_axes:
            length = self.shape[axis]
            turns = np.sum(
                np.split(turns, range(length, TURNS * length, length), axis=axis + 1), axis=0
            )
        return sp.csr_matrix(turns.reshape(atoms, -1))

    def unaccumulate(self, weights: np.ndarray, plane: Plane) -> np.ndarray:
        """Turn weights on cumulative sums (rows, features) into weights on features."""
        rows = len(weights)
        weights = weights.reshape(-1, *self.shape)
        for axis in plane.prefixed_axes:
            weights = np.flip(np.cumsum(np.flip(weights, axis + 1), axis=axis + 1), axis + 1)
        return weights.reshape(rows, -1)

    # -- the core's form, and that of pickles

    @classmethod
    def from_core(cls, layout: core.RowLayout) -> RowLayout:
        """Read a layout of the core."""
        planes = [
            Plane(
                View.from_core(plane.view),
                tuple(plane.prefixed_axes),
                tuple(plane.circular_axes),
                plane.pooled,
            )
            for plane in layout.planes
        ]
        course = Course(tuple(layout.mean), tuple(layout.correlation))
        return cls(tuple(layout.shape), tuple(planes), tuple(layout.ordered_axes), course)

    def to_core(self) -> core.RowLayout:
        """Return the layout as the core takes it."""
        planes = [
            core.Plane(plane.view.to_core(), plane.prefixed_axes, plane.circular_axes, plane.pooled)
            for plane in self.planes
        ]
        usual = self.course.mean, self.course.correlation
        return core.RowLayout(self.shape, planes, self.ordered_axes, *usual)

    def dump(self) -> tuple[Any, ...]:
        """Return what a pickle holds: tuples of numbers and words."""
        state = astuple(self)
        return state if self.course != UNKNOWN else state[:3]

    @classmethod
    def load(cls, state: Any) -> RowLayout:
        """Make a layout from what a pickle holds, refusing what makes no sense."""
        if not isinstance(state, tuple) or len(state) not in (3, 4):
            raise ValueError("damaged atoms: no layout")
        shape, planes, ordered, course = state if len(state) == 4 else (*state, ((), ()))
        lengths = _whole_numbers("shape", shape, 1, MAX_CELLS)
        if not 0 < len(lengths) <= MAX_RANK or math.prod(lengths) > MAX_CELLS:
            raise ValueError(f"damaged atoms: samples of shape {lengths}")
        if not isinstance(planes, tuple):
            raise ValueError(f"damaged atoms: planes are {planes!r}")
        axes = _whole_numbers("ordered axes", ordered, 0, len(lengths))
        if list(axes) != sorted(set(axes)):
            raise ValueError(f"damaged atoms: ordered axes are {ordered!r}")
        found = cls(
            lengths,
            tuple(_load_plane(plane, len(lengths)) for plane in planes),
            axes,
            Course.load(course, lengths),
        )
        pooled = [plane.pooled for plane in found.planes]
        if not pooled or pooled != sorted(pooled) or found.cells > MAX_CELLS:
            raise ValueError(f"damaged atoms: {len(pooled)} planes")
        if len(set(found.planes)) < len(pooled):
            raise ValueError("damaged atoms: a plane appears twice")
        return found


def _no_windows() -> np.ndarray:
    return np.empty((0, 2, 2), dtype=np.uint8)


@stored
@dataclass(eq=False)
class AtomList:
    """Atoms over one layout.

    An atom is a sum of weighted cells. Where some atoms of a list are not linear, each has an
    operation. A *pooled* atom is moved over a window of positions, and the operation is what it
    makes of the responses there: their maximum, minimum or mean, the proportion above the bias,
    or that of the positions at which it responds more than each of its rivals, whose terms follow
    its own; the bias is then their number. A variance is that of one box: terms of its values,
    then as many terms of their squares, weighted by the box's size.
    """

    layout: RowLayout
    count: np.ndarray  # terms of each atom
    cell: np.ndarray
    weight: np.ndarray
    operation: np.ndarray = field(default_factory=no_numbers)  # empty if all atoms are linear
    bias: np.ndarray = field(default_factory=no_numbers)
    # Positions and cells between them, along an earlier and a later axis; zeros where the
    # operation is none.
    window: np.ndarray = field(default_factory=_no_windows)

    def __post_init__(self) -> None:
        for name in TYPES:
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                setattr(self, name, narrow(value))
        if isinstance(self.operation, np.ndarray) and not self.operation.size:
            # Those of linear atoms, whatever type they came in.
            self.operation, self.bias, self.window = no_numbers(), no_numbers(), _no_windows()

    def __len__(self) -> int:
        return len(self.count)

    @property
    def linear(self) -> bool:
        """Whether all atoms are linear."""
        return not len(self.operation)

    def begins(self) -> np.ndarray:
        """Return where the terms of each atom begin, and where the last ones end."""
        return np.append(0, np.cumsum(self.count, dtype=np.int64))

    def atom_of_term(self) -> np.ndarray:
        """Return the number of the atom that each term belongs to."""
        return np.repeat(np.arange(len(self)), self.count)

    def operations(self) -> np.ndarray:
        """Return the operation of each atom."""
        return np.zeros(len(self), dtype=np.uint8) if self.linear else self.operation

    # -- lists of atoms

    def __getitem__(self, some: slice) -> AtomList:
        first, _, step = some.indices(len(self))
        if step != 1:
            raise ValueError(f"atoms are cut in steps of one, got {step}")
        begin = int(self.count[:first].sum(dtype=np.int64))
        terms = slice(begin, begin + int(self.count[some].sum(dtype=np.int64)))
        return AtomList(
            self.layout,
            self.count[some],
            self.cell[terms],
            self.weight[terms],
            *(() if self.linear else (self.operation[some], self.bias[some], self.window[some])),
        )

    @classmethod
    def concatenate(cls, lists: Sequence[AtomList]) -> AtomList:
        """Put lists of one layout behind one another."""
        return cls(
            lists[0].layout,
            **{name: np.concatenate([getattr(some, name) for some in lists]) for name in TYPES},
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AtomList):
            return NotImplemented
        return self.layout == other.layout and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in TYPES
        )

    __hash__ = None  # type: ignore[assignment]

    def require_same_kind(self, layout: RowLayout, linear: bool) -> None:
        """Raise unless atoms of another dictionary look at the same cells in the same way."""
        if self.layout != layout or self.linear != linear:
            raise ValueError(
                "warm_start needs a dictionary that looks at the same views with the same kinds of "
                "atoms as that of the first fit: set dictionary back, or fit a new model."
            )

    # -- units

    def in_units(self, values: np.ndarray, shift: int) -> np.ndarray:
        """Turn a value of each atom, in the core's numbers, into the units of the data.

        Sums, maxima, minima and means are in the units themselves, variances and atoms of squares
        in their squares; "proportion" and "win" are proportions. Cells are `2^shift` to the unit.
        """
        exponent, parts = self._units(shift)
        found: np.ndarray = np.ldexp(values, exponent) / parts
        return found

    def scales(self, shift: int) -> np.ndarray:
        """Return what the same values are to be multiplied by: numbers, however large `shift`."""
        exponent, parts = self._units(shift)
        exponent = np.clip(exponent, -LARGEST_EXPONENT, LARGEST_EXPONENT)
        with np.errstate(divide="ignore"):  # damaged atoms are refused by the core
            scale: np.ndarray = np.ldexp(1.0, exponent) / parts
        return scale

    def bias_in_units(self, shift: int) -> np.ndarray:
        """Return the biases of proportions, which are responses, in the units of the data."""
        found: np.ndarray = np.ldexp(self.bias.astype(np.float64), -shift * self._powers())
        return found

    def weight_in_units(self, shift: int) -> np.ndarray:
        """Return weights over the values of views in the units of the data.

        They differ from the core's only where an atom compares values with squares.
        """
        power = self._powers()[self.atom_of_term()] - self.layout.power_of(self.cell)
        found: np.ndarray = np.ldexp(self.weight.astype(np.float64), -shift * power)
        return found

    def require_format(self, cell_format: CellFormat) -> None:
        """Raise unless a format from a file is one of the cells that these atoms add up."""
        require_format(cell_format, self.layout.views, self.linear)
        if not self.linear:
            counted = np.isin(self.operation, COUNTS)
            positions = self.window[counted, :, 0].astype(np.float64).prod(axis=1)
            if positions.max(initial=0) > cell_format.bounds.positions:
                raise ValueError("damaged model: the bounds of cells do not fit the windows")

    def _units(self, shift: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the exponents of each atom's values, and what they are divided by."""
        operation = self.operations()
        counts = np.isin(operation, COUNTS)
        parts = np.ones(len(self))
        if not self.linear:
            pooled = counts | (operation == MEAN)
            parts[pooled] = self.window[pooled, :, 0].astype(np.float64).prod(axis=1)
            variance = operation == VARIANCE  # the weight of its last corner is its area
            parts[variance] = self.weight[self.begins()[1:][variance] - 1].astype(np.float64) ** 2
        return np.where(counts, 0, -shift * self._powers()), parts

    def _powers(self) -> np.ndarray:
        """Return 2 for atoms that look at squares, else 1."""
        powers = np.ones(len(self), dtype=np.int64)
        some = np.flatnonzero(self.count)
        if len(some) and any(view.squares for view in self.layout.views):
            powers[some] = np.maximum.reduceat(
                self.layout.power_of(self.cell), self.begins()[:-1][some]
            )
        return powers

    # -- features

    def own_terms(self) -> np.ndarray:
        """Say of each term whether it is its atom's own, and not a rival's."""
        own = self.count.astype(np.int64)
        if not self.linear:
            won = self.operation == WIN
            own[won] //= self.bias[won].astype(np.int64) + 1
        first = self.begins()[:-1]
        found: np.ndarray = np.arange(len(self.cell)) - np.repeat(first, self.count) < np.repeat(
            own, self.count
        )
        return found

    def matrix(self, weights: np.ndarray | None = None) -> sp.csr_matrix:
        """Return the atoms over the features of one view after the other.

        Pooled atoms stand at the first position of their window, without rivals. `weights` are
        used instead of those of the terms.
        """
        layout = self.layout
        features, width = layout.features, layout.features * len(layout.views)
        weights = np.where(self.own_terms(), self.weight if weights is None else weights, 0)
        begins, atom_of_term = self.begins(), self.atom_of_term()
        parts = [sp.csr_matrix((0, width))]
        for first in range(0, len(self), CHUNK):
            size = min(CHUNK, len(self) - first)
            terms = slice(begins[first], begins[first + size])
            cell = self.cell[terms].astype(np.int64)
            weight = weights[terms].astype(np.float64)
            atom = atom_of_term[terms] - first
            plane_of = layout.plane_of(cell)
            total = sp.csr_matrix((size, width))
            for number in np.unique(plane_of).tolist():
                here = plane_of == number
                found = layout.on_features(number, atom[here], cell[here], weight[here], size)
                found = found.tocoo()
                offset = features * layout.views.index(layout.planes[number].view)
                place = (found.row, found.col + offset)
                total = total + sp.csr_matrix((found.data, place), shape=(size, width))
            parts.append(total)
        matrix = sp.vstack(parts, format="csr")
        matrix.eliminate_zeros()
        return matrix

    def windows(self, some: slice = slice(None)) -> np.ndarray:
        """Return the positions of each atom's window along each axis (atoms, axes)."""
        counts = np.ones((len(self.count[some]), len(self.layout.shape)), dtype=np.int64)
        if self.linear:
            return counts
        first = np.full(len(self), -1, dtype=np.int64)
        there = self.count > 0
        first[there] = self.cell[self.begins()[:-1][there]]
        first, window = first[some], self.window[some].astype(np.int64)
        plane_of = np.where(first >= 0, self.layout.plane_of(first), -1)
        for number, plane in enumerate(self.layout.planes):
            if not plane.pooled:
                continue
            here = plane_of == number
            for axis, stride in enumerate(plane.strides(self.layout.shape)):
                # Axes of length one have the stride of the one behind them: nothing moves there.
                if self.layout.shape[axis] > 1:
                    along = here[:, np.newaxis] & (window[:, :, 1] == stride)
                    along &= window[:, :, 0] > 1
                    found = np.where(along, window[:, :, 0], 1).max(axis=1)
                    counts[:, axis] = np.maximum(counts[:, axis], found)
        return counts

    def sizes(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the sizes of weights on features, (atoms, features), of some atoms after others.

        Weights of one feature in several views are added; those of pooled atoms are means over
        the positions of their windows.
        """
        matrix = self.matrix()
        views = len(self.layout.views)
        for first in range(0, len(self), CHUNK):
            some = slice(first, min(first + CHUNK, len(self)))
            sizes = self._over_windows(abs(matrix[some]).toarray(), some)
            sizes = sizes.reshape(len(sizes), views, -1)
            for number, view in enumerate(self.layout.views):
                if view.filters:
                    sizes[:, number] = self._through_filters(sizes[:, number], view)
            yield some, sizes.sum(axis=1)

    def _through_filters(self, sizes: np.ndarray, view: View) -> np.ndarray:
        """Share sizes on filters out to the features that these add up, by absolute weights."""
        length = self.layout.shape[view.axis]
        weights = np.abs(np.reshape(view.filters, (length, length)).astype(np.float64))
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1.0)
        along = np.moveaxis(sizes.reshape(len(sizes), *self.layout.shape), view.axis + 1, -1)
        shared: np.ndarray = np.moveaxis(along @ weights, -1, view.axis + 1)
        return shared.reshape(len(sizes), -1)

    def _over_windows(self, sizes: np.ndarray, some: slice) -> np.ndarray:
        """Return the mean of sizes of weights (atoms, views and features) over windows."""
        if not any(plane.pooled for plane in self.layout.planes):
            return sizes
        counts, rows = self.windows(some), len(sizes)
        sizes = sizes.reshape(rows, -1, *self.layout.shape)
        for axis, length in enumerate(self.layout.shape):
            count = counts[:, axis]
            # Sums over so many places up to each, round the axis: only windows of circular axes
            # reach past its end. They are whole numbers, and exact.
            along = np.moveaxis(sizes, axis + 2, -1)
            sums = np.cumsum(np.concatenate([along, along], axis=-1), axis=-1)
            below = np.arange(length, 2 * length) - count[:, np.newaxis]
            below = below.reshape(rows, *[1] * (sums.ndim - 2), length)
            below = np.broadcast_to(below, along.shape)
            along = sums[..., length:] - np.take_along_axis(sums, below, axis=-1)
            sizes = np.moveaxis(along, -1, axis + 2)
        means: np.ndarray = sizes.reshape(rows, -1) / counts.prod(axis=1)[:, np.newaxis]
        return means

    def footprints(self) -> sp.csr_matrix:
        """Return the share of each feature in each atom, adding up to one (atoms, features)."""
        parts = []
        for _, sizes in self.sizes():
            mass = sizes.sum(axis=1, keepdims=True)
            parts.append(sp.csr_matrix(sizes / np.where(mass > 0, mass, 1.0)))
        return sp.vstack(parts, format="csr")

    # -- names

    def names(
        self, shift: int, channel_axis: int | None, columns: np.ndarray | None = None
    ) -> Iterator[str]:
        """Yield a description of each atom, such as "haar(1,-1) width 4 channel 2 max".

        A plain sum of a few features is written with the names of the columns, if these are given.
        """
        layout = self.layout
        matrix, moved, operation = self.matrix(), self.windows(), self.operations()
        matrix.sort_indices()
        bias = np.zeros(len(self)) if self.linear else self.bias_in_units(shift)
        for atom in range(len(self)):
            terms = slice(matrix.indptr[atom], matrix.indptr[atom + 1])
            index = np.unravel_index(matrix.indices[terms], (len(layout.views), *layout.shape))
            values = matrix.data[terms]
            plain_sum = operation[atom] == NONE and not index[0].any() and layout.views[0] == RAW
            if columns is not None and plain_sum and 0 < len(values) <= MOST_NAMED:
                yield in_columns(values, columns[matrix.indices[terms]].tolist())
                continue
            if operation[atom] == VARIANCE:  # the others are squares
                plain = np.array([not view.squares for view in layout.views])[index[0]]
                index, values = tuple(i[plain] for i in index), values[plain]
            words = name_of(
                values,
                [layout.views[i].kind for i in index[0]],
                index[1:],
                layout.shape,
                moved[atom],
                channel_axis,
                OPERATIONS[operation[atom]],
            )
            if operation[atom] == PROPORTION:
                words += f">{bias[atom]:.4g}"
            elif operation[atom] == WIN:
                words += f" of {int(self.bias[atom]) + 1}"
            yield words

    # -- the core's form, and that of pickles

    @classmethod
    def from_core(cls, layout: RowLayout, atoms: core.AtomList) -> AtomList:
        """Read atoms of the core."""
        return cls(
            layout,
            atoms.count,
            atoms.cell,
            atoms.weight,
            atoms.operation,
            atoms.bias,
            atoms.window.reshape(-1, 2, 2),
        )

    def to_core(self) -> core.AtomList:
        """Return the atoms as the core takes them; their types and sizes are checked."""
        wide = {
            name: widen(name, getattr(self, name), dtype, AXES.get(name, 1), "atoms")
            for name, dtype in TYPES.items()
        }
        terms = int(wide["count"].sum(dtype=np.uint64))
        if not terms == len(wide["cell"]) == len(wide["weight"]) or terms >= 2**32:
            raise ValueError("damaged atoms: terms do not fit the atoms")
        sizes = {len(wide[name]) for name in ("operation", "bias", "window")}
        if sizes not in ({0}, {len(self)}) or wide["window"].shape[1:] != (2, 2):
            raise ValueError("damaged atoms: operations do not fit the atoms")
        return core.AtomList(**wide)

    def values(self, scale: np.ndarray, cell_format: CellFormat) -> core.AtomValues:
        """Make what computes the atoms' values in the core, which checks the atoms whole."""
        return core.AtomValues(self.layout.to_core(), self.to_core(), scale, cell_format.real)

    def __getstate__(self) -> dict[str, Any]:
        return {"layout": self.layout.dump(), **{name: getattr(self, name) for name in TYPES}}

    def __setstate__(self, state: Any) -> None:
        with refusing("atoms"):
            arrays = read_atoms({name: state[name] for name in TYPES})
            self.__init__(RowLayout.load(state["layout"]), **arrays)  # type: ignore[misc]
            self.to_core()


def read_atoms(arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays of atoms from a file if they hold values of the right kind."""
    return {
        name: read_numbers(name, array, TYPES[name], AXES.get(name, 1), "atoms")
        for name, array in arrays.items()
    }


def _sum_strides(values: np.ndarray, stride: int, backwards: bool) -> np.ndarray:
    """Add to each number of a row all those that are whole strides before it, or behind it."""
    rows, size = values.shape
    steps = -(-size // stride)
    padded = np.zeros((rows, steps * stride))
    padded[:, :size] = values
    order = slice(None, None, -1 if backwards else 1)
    summed = np.cumsum(padded.reshape(rows, steps, stride)[:, order], axis=1)[:, order]
    found: np.ndarray = summed.reshape(rows, -1)[:, :size]
    return found


def _whole_numbers(name: str, values: Any, low: int, high: int) -> tuple[int, ...]:
    if not isinstance(values, tuple) or not all(
        isinstance(value, int) and low <= value < high for value in values
    ):
        raise ValueError(f"damaged atoms: {name} is {values!r}")
    return values


def _load_plane(state: Any, rank: int) -> Plane:
    if not isinstance(state, tuple) or len(state) != 4:
        raise ValueError("damaged atoms: a plane is not one")
    view, prefixed, circular, pooled = state
    if not isinstance(view, tuple) or len(view) not in (5, 8):  # files of old have no filters
        raise ValueError("damaged atoms: a view is not one")
    view = (*view, (), 0, 0) if len(view) == 5 else view
    kind, axis, other_axis, cosine, sine, filters, *rest = view
    lag, width = _whole_numbers("a product", tuple(rest), 0, MAX_CELLS)
    _whole_numbers("a filter", filters, -LARGEST_FILTER, LARGEST_FILTER + 1)
    if filters and (kind not in FILTERED or len(filters) > MAX_CELLS):
        raise ValueError("damaged atoms: filters of another view")
    _whole_numbers("a view", (axis, other_axis), 0, rank)
    for name, axes in (("prefixed_axes", prefixed), ("circular_axes", circular)):
        found = _whole_numbers(name, axes, 0, rank)
        if list(found) != sorted(set(found)):
            raise ValueError(f"damaged atoms: {name} is {axes!r}")
    turn = all(isinstance(x, float) and math.isfinite(x) for x in (cosine, sine))
    if (
        type(kind) is not str
        or kind not in KINDS
        or not turn
        or not isinstance(pooled, bool)
        or (circular and not pooled)
    ):
        raise ValueError("damaged atoms: a plane is not one")
    return Plane(
        View(kind, axis, other_axis, cosine, sine, filters, lag, width), prefixed, circular, pooled
    )
