"""The random numbers and dictionaries of `oracle.py`: what atoms a node draws."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from oracle_nonlinear import Pool, PooledAtom

# --- random numbers --------------------------------------------------------------------------

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15

BAG, ROOT, LEFT, RIGHT, SUBSET = 1, 2, 3, 4, 8


def mix(z: int) -> int:
    """Scramble 64 bits; a bijection."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def derive(key: int, index: int) -> int:
    """The key of child `index` of `key`."""
    return mix(key ^ mix((index + GOLDEN) & MASK))


def tree_key(seed: int, tree: int) -> int:
    return derive(mix(seed), tree)


class Stream:
    """The numbers of one key, in order."""

    def __init__(self, key: int):
        self.state = key

    def next(self) -> int:
        self.state = (self.state + GOLDEN) & MASK
        return mix(self.state)

    def fraction(self) -> float:
        """Uniform on [0, 1): the top 53 bits of the next number."""
        return (self.next() >> 11) * 2.0**-53

    def below(self, n: int) -> int:
        """A number in 0..n-1. A draw without choice consumes nothing."""
        return 0 if n == 1 else (self.next() * n) >> 64


# --- dictionaries ----------------------------------------------------------------------------


def cumulative_fractions(probabilities: Sequence[float]) -> list[int]:
    """Probabilities, up to a factor, as a rising table of 64-bit fractions that ends at one."""
    total = sum(map(Fraction, probabilities))
    running, table = Fraction(0), []
    for probability in probabilities:
        running += Fraction(probability)
        table.append(min(round(running / total * 2**64), MASK))
    table[-1] = MASK
    return table


def first_at_least(table: Sequence[int], x: int) -> int:
    return next(index for index, value in enumerate(table) if x <= value)


def floyd(stream: Stream, total: int, size: int, sign: bool = False) -> dict[int, int]:
    """`size` distinct numbers below `total`, each with its weight: 1, or a fair sign."""
    taken: dict[int, int] = {}
    for j in range(total - size, total):
        t = stream.below(j + 1)
        index = j if t in taken else t
        taken[index] = -1 if sign and stream.next() >> 63 else 1
    return taken


class UniformAtoms:
    """Rows of a matrix, or atoms of a list, drawn without replacement within a node."""

    def __init__(self, matrix: np.ndarray | list):
        self.matrix = matrix if isinstance(matrix, list) else np.asarray(matrix)
        self.start_node()

    def start_node(self) -> None:
        self.permutation = list(range(len(self.matrix)))
        self.drawn = 0

    def draw(self, stream: Stream) -> np.ndarray | None:
        if self.drawn == len(self.matrix):
            return None
        i = self.drawn
        j = i + stream.below(len(self.matrix) - i)
        entries = self.permutation
        entries[i], entries[j] = entries[j], entries[i]
        self.drawn += 1
        return self.matrix[entries[i]]


def axis_atoms(n_features: int) -> UniformAtoms:
    return UniformAtoms(np.eye(n_features, dtype=np.int64))


class Component:
    """A component that can be drawn from for ever."""

    def start_node(self) -> None:
        """Draws do not depend on those before them, so a node has nothing to reset."""


class WeightedAtoms(Component):
    """Rows of a matrix, drawn with replacement by their probabilities."""

    def __init__(self, matrix: np.ndarray, probabilities: Sequence[float]):
        self.matrix = np.asarray(matrix)
        self.table = cumulative_fractions(probabilities)

    def draw(self, stream: Stream) -> np.ndarray:
        return self.matrix[first_at_least(self.table, stream.next())]


def poisson_sizes(rate: float, n_features: int) -> list[float]:
    """Poisson(rate) on 1..p, up to a factor."""
    sizes = range(1, n_features + 1)
    logs = [size * math.log(rate) - math.lgamma(size + 1) for size in sizes]
    return [math.exp(value - max(logs)) for value in logs]


def binomial_sizes(density: float, n_features: int) -> list[float]:
    """Binomial(p, density) on 1..p, up to a factor."""
    if density == 1.0:
        return [0.0] * (n_features - 1) + [1.0]
    odds = math.log(density) - math.log1p(-density)
    logs = [
        size * odds - math.lgamma(size + 1) - math.lgamma(n_features - size + 1)
        for size in range(1, n_features + 1)
    ]
    return [math.exp(value - max(logs)) for value in logs]


class SparseAtoms(Component):
    """Random features with random signs; `sizes` are the odds of 1, 2, ... nonzeros."""

    def __init__(self, n_features: int, sizes: Sequence[float]):
        self.n_features = n_features
        self.table = cumulative_fractions(sizes)
        self.guide: Sequence[int] = ()  # cumulative probabilities of the features; empty: all alike

    def draw(self, stream: Stream) -> np.ndarray:
        nonzeros = 1 + first_at_least(self.table, stream.next())
        atom = np.zeros(self.n_features, dtype=np.int64)
        while len(self.guide) and np.count_nonzero(atom) < nonzeros:
            feature = first_at_least(self.guide, stream.next())
            if atom[feature] == 0:
                atom[feature] = -1 if stream.next() >> 63 else 1
        if len(self.guide):
            return atom
        for feature, sign in floyd(stream, self.n_features, nonzeros, sign=True).items():
            atom[feature] = sign
        return atom


@dataclass
class Side:
    """The size that one side of a patch has drawn, and its indices in the order of the draws.

    Each index has its place in a box of that size.
    """

    size: int
    places: dict[int, int]


@dataclass
class DrawnWeights:
    """A number for each feature; `odds` are those of the numbers, empty if all are alike."""

    numbers: Sequence[int]
    odds: Sequence[float] = ()

    def begin(self, stream: Stream, sizes: tuple[int, ...]) -> None:
        self.table = cumulative_fractions(self.odds) if len(self.odds) else None

    def weight(self, stream: Stream, place: tuple[int, ...]) -> int:
        if self.table is None:
            return self.numbers[stream.below(len(self.numbers))]
        return self.numbers[first_at_least(self.table, stream.next())]


@dataclass
class ListedWeights:
    """Some arrays for each combination of sizes, of which an atom draws one."""

    arrays: Callable[[tuple[int, ...]], Sequence[np.ndarray]]

    def begin(self, stream: Stream, sizes: tuple[int, ...]) -> None:
        some = self.arrays(sizes)
        self.chosen = some[stream.below(len(some))]

    def weight(self, stream: Stream, place: tuple[int, ...]) -> int:
        return int(self.chosen[place])


@dataclass
class PatchAxis:
    length: int
    min_size: int
    max_size: int
    boundary: str = "zero"
    contiguous: bool = True
    sizes: Sequence[float] = ()  # their odds; empty: all alike

    def draw_size(self, stream: Stream) -> int:
        if len(self.sizes):
            return self.min_size + first_at_least(cumulative_fractions(self.sizes), stream.next())
        return self.min_size + stream.below(self.max_size - self.min_size + 1)

    def draw(self, stream: Stream) -> list[int]:
        """The indices of one side of a patch."""
        return list(self.draw_side(stream).places)

    def draw_side(self, stream: Stream) -> Side:
        length = self.length
        size = self.draw_size(stream)
        if not self.contiguous:
            return Side(size, {index: k for k, index in enumerate(floyd(stream, length, size))})
        if self.boundary == "zero":
            start = stream.below(length + size - 1) - (size - 1)
        elif self.boundary == "inside":
            start = stream.below(length - size + 1)
        else:
            start = stream.below(length)
        return self.interval(start, size)

    def interval(self, start: int, size: int) -> Side:
        """So many indices from a start on; circular axes continue at their beginning."""
        places = {start + k: k for k in range(size)}
        if self.boundary == "wrap":
            return Side(size, {index % self.length: k for index, k in places.items()})
        return Side(size, {index: k for index, k in places.items() if 0 <= index < self.length})


class Boxes(Component):
    """What components of boxes share: axes, the views of an atom, and pooling."""

    def __init__(
        self,
        axes: Sequence[PatchAxis],
        views: Sequence[int] = (0,),
        planes: int = 1,
        pool: Pool | None = None,
    ):
        self.axes = axes
        self.views = views
        self.planes = planes
        self.pool = pool

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.length for axis in self.axes)

    def view(self, stream: Stream) -> int:
        return self.views[stream.below(len(self.views))]

    def blank(self) -> np.ndarray:
        return np.zeros([self.planes, *[axis.length for axis in self.axes]], dtype=np.int64)


class PatchAtoms(Boxes):
    """Products of index sets, one set per axis, of features that weigh one or have weights."""

    def __init__(self, axes, weights: DrawnWeights | ListedWeights | None = None, **views):
        super().__init__(axes, **views)
        self.weights = weights

    def draw(self, stream: Stream) -> np.ndarray:
        view = self.view(stream)
        if self.pool is None:
            return self.atom_of([axis.draw_side(stream) for axis in self.axes], view, stream)
        self.pool.begin(stream)
        sides = []
        for number, axis in enumerate(self.axes):
            if not axis.contiguous:
                sides.append(axis.draw_side(stream))
                continue
            size = axis.draw_size(stream)
            circular = axis.boundary == "wrap"
            start = self.pool.place(stream, number, axis.length, size, circular)
            sides.append(axis.interval(start, size))
        return self.pool.end(stream, self.atom_of(sides, view, stream), self.shape)

    def atom_of(self, sides: Sequence[Side], view: int, stream: Stream) -> np.ndarray:
        atom = self.blank()
        if self.weights is None:
            atom[view][np.ix_(*[list(side.places) for side in sides])] = 1
            return atom.ravel()
        self.weights.begin(stream, tuple(side.size for side in sides))
        for index in itertools.product(*[side.places for side in sides]):
            place = tuple(side.places[i] for side, i in zip(sides, index, strict=True))
            atom[(view, *index)] = self.weights.weight(stream, place)
        return atom.ravel()


LOBES = {"two": (1, -1), "three": (1, -2, 1)}


class HaarAtoms(Boxes):
    """Equal boxes side by side; `lobed` are the numbers of the axes along which they stand."""

    def __init__(self, axes, lobed: Sequence[int], lobes: Sequence[str], **views):
        super().__init__(axes, **views)
        self.lobed = lobed
        self.lobes = lobes

    def draw(self, stream: Stream) -> np.ndarray:
        view = self.view(stream)
        kind = self.lobes[stream.below(len(self.lobes))]
        if self.pool is not None:
            self.pool.begin(stream)
        chosen = self.lobed[stream.below(len(self.lobed))]
        factors = []
        for number, axis in enumerate(self.axes):
            weights = LOBES[kind] if number == chosen else (1,)
            size = min(axis.draw_size(stream), axis.length // len(weights))
            extent = len(weights) * size
            if self.pool is None:
                start = stream.below(axis.length - extent + 1)
            else:
                start = self.pool.place(stream, number, axis.length, extent, circular=False)
            factor = np.zeros(axis.length, dtype=np.int64)
            factor[start : start + extent] = np.repeat(weights, size)
            factors.append(factor)
        atom = self.blank()
        atom[view] = functools.reduce(np.multiply.outer, factors)
        if self.pool is None:
            return atom.ravel()
        return self.pool.end(stream, atom.ravel(), self.shape)


class PairAtoms(Boxes):
    """Two equal boxes, the second `reach` away at most and with weight -1."""

    def __init__(self, axes, reach: Sequence[int], **views):
        super().__init__(axes, **views)
        self.reach = reach

    def draw(self, stream: Stream) -> np.ndarray:
        first = second = self.view(stream)
        if len(self.views) > 1 and stream.next() >> 63:
            second = self.view(stream)
        if self.pool is not None:
            self.pool.begin(stream)
        here, there = [], []
        for number, (axis, reach) in enumerate(zip(self.axes, self.reach, strict=True)):
            size = axis.draw_size(stream)
            last = axis.length - size
            if self.pool is None:
                start = stream.below(last + 1)
                moved = min(max(start + stream.below(2 * reach + 1) - reach, 0), last)
            else:  # how far apart, then the place of both
                step = min(max(stream.below(2 * reach + 1) - reach, -last), last)
                extent = size + abs(step)
                start = self.pool.place(stream, number, axis.length, extent, circular=False)
                start += max(-step, 0)
                moved = start + step
            here.append(slice(start, start + size))
            there.append(slice(moved, moved + size))
        atom = self.blank()
        atom[(first, *here)] = 1
        if (first, here) != (second, there):
            atom[(second, *there)] -= 1
        return (
            atom.ravel() if self.pool is None else self.pool.end(stream, atom.ravel(), self.shape)
        )


class KernelAtoms(Boxes):
    """Weighted patches; `dilations` are the odds of 1, 2, ... for each kernel, or one dilation."""

    def __init__(
        self, axes, kernels: Sequence[np.ndarray], dilations, signs=False, rivals=5, **views
    ):
        super().__init__(axes, **views)
        self.rivals = rivals
        self.kernels = kernels
        self.dilations = dilations
        self.signs = signs

    def draw(self, stream: Stream) -> np.ndarray:
        view = self.view(stream)
        chosen = stream.below(len(self.kernels))
        kernel, rate = self.kernels[chosen], self.dilations
        if not isinstance(rate, int):
            odds = rate[chosen]
            rate = 1
            if len(odds) > 1:
                rate += first_at_least(cumulative_fractions(odds), stream.next())
        if self.pool is not None:
            self.pool.begin(stream)
        starts = []
        for number, (axis, size) in enumerate(zip(self.axes, kernel.shape, strict=True)):
            extent = (size - 1) * rate + 1
            if self.pool is None:
                starts.append(stream.below(axis.length - extent + 1))
            else:
                starts.append(self.pool.place(stream, number, axis.length, extent, circular=False))
        atom = self.place(stream, kernel, view, starts, rate)
        if self.pool is None:
            return atom
        if self.pool.op not in ("win", "lose"):
            return self.pool.end(stream, atom, self.shape)
        others = list(range(len(self.kernels)))
        others.remove(chosen)
        rivals = []
        while len(rivals) < self.rivals:
            other = kernel if self.signs else self.kernels[others.pop(stream.below(len(others)))]
            rival = self.place(stream, other, view, starts, rate)
            if not self.signs or (rival != atom).any():
                rivals.append(rival)
        side = 1 if self.pool.op == "win" else -1
        found = PooledAtom(side * atom, self.shape, "win", self.pool.counts)
        return replace(found, bias=len(rivals), rivals=[side * rival for rival in rivals])

    def place(self, stream: Stream, kernel: np.ndarray, view, starts, rate: int) -> np.ndarray:
        atom = self.blank()
        for place in np.argwhere(kernel):
            sign = -1 if self.signs and stream.next() >> 63 else 1
            atom[(view, *(starts + place * rate))] = sign * kernel[tuple(place)]
        return atom.ravel()


MAX_ROUNDS = 16


class Dictionary:
    """Components with probabilities."""

    def __init__(self, components: Sequence, probabilities: Sequence[float] = (1.0,)):
        self.components = components
        self.table = cumulative_fractions(probabilities)

    def start_node(self) -> None:
        for component in self.components:
            component.start_node()

    def draw(self, stream: Stream) -> np.ndarray | None:
        """One atom, or None where the chosen component is exhausted."""
        choice = first_at_least(self.table, stream.next()) if len(self.components) > 1 else 0
        return self.components[choice].draw(stream)

    def rounds(self, stream: Stream, n_candidates: int) -> Iterator[list[np.ndarray]]:
        """The candidates of one node, round after round, for as long as it may ask again."""
        self.start_node()
        first = self.components[0]
        finite = len(self.components) == 1 and isinstance(first, UniformAtoms)
        for _ in range(len(first.matrix) if finite else MAX_ROUNDS):
            draws = [self.draw(stream) for _ in range(n_candidates)]
            yield [atom for atom in draws if atom is not None]


class Subset:
    """A few atoms of a dictionary, drawn once: nodes choose among them without replacement."""

    def __init__(self, dictionary: Dictionary, n_atoms: int):
        self.dictionary, self.n_atoms = dictionary, n_atoms

    def drawn(self, rows, key: int) -> Dictionary:
        """The atoms of this key; biases come from the rows, which are in canonical order."""
        self.dictionary.start_node()
        stream = Stream(key)
        draws = [self.dictionary.draw(stream) for _ in range(self.n_atoms)]
        atoms = [
            atom.with_bias(rows, for_good=True) if isinstance(atom, PooledAtom) else atom
            for atom in draws
            if atom is not None
        ]
        return Dictionary([UniformAtoms(atoms)])


def sample(dictionary: Dictionary, n_atoms: int, key: int) -> np.ndarray:
    """Atoms as rows, drawn as by one node of this key."""
    dictionary.start_node()
    stream = Stream(key)
    draws = [dictionary.draw(stream) for _ in range(n_atoms)]
    return np.array([atom for atom in draws if atom is not None])
