"""A second writing of `docs/design.md`: slow, obvious, and independent of the core.

Every function here follows that page and nothing else, so that a difference between the two is
a mistake in one of them or a gap in the page. Speed is of no interest: a split is scored from its
rows anew, an atom is a dense vector, and counters are Python integers, which cannot overflow.

The page in the order of this file: random numbers, dictionaries, numbers, criteria, splits, trees,
forests.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from oracle_forms import Pool, PooledAtom, VarianceAtom

# --- random numbers --------------------------------------------------------------------------

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15

BAG, ROOT, LEFT, RIGHT, THRESHOLDS = 1, 2, 3, 4, 5


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

    def below(self, n: int) -> int:
        """A number in 0..n-1. A draw without choice consumes nothing."""
        return 0 if n == 1 else (self.next() * n) >> 64

    def fraction(self) -> float:
        """A number in [0, 1) of 53 bits."""
        return (self.next() >> 11) / 2.0**53


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
    """Rows of a matrix, drawn without replacement within a node."""

    def __init__(self, matrix: np.ndarray):
        self.matrix = np.asarray(matrix)
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

    def draw(self, stream: Stream) -> np.ndarray:
        nonzeros = 1 + first_at_least(self.table, stream.next())
        atom = np.zeros(self.n_features, dtype=np.int64)
        for feature, sign in floyd(stream, self.n_features, nonzeros, sign=True).items():
            atom[feature] = sign
        return atom


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
        length = self.length
        size = self.draw_size(stream)
        if not self.contiguous:
            return list(floyd(stream, length, size))
        if self.boundary == "zero":
            start = stream.below(length + size - 1) - (size - 1)
            return [index for index in range(start, start + size) if 0 <= index < length]
        if self.boundary == "inside":
            start = stream.below(length - size + 1)
            return list(range(start, start + size))
        start = stream.below(length)
        return [index % length for index in range(start, start + size)]


class Boxes(Component):
    """What components of rectangles share: axes, the channels of an atom, and pooling."""

    def __init__(
        self,
        axes: Sequence[PatchAxis],
        channels: Sequence[int] = (0,),
        planes: int = 1,
        pool: Pool | None = None,
    ):
        self.axes = axes
        self.channels = channels
        self.planes = planes
        self.pool = pool

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.length for axis in self.axes)

    def channel(self, stream: Stream) -> int:
        return self.channels[stream.below(len(self.channels))]

    def blank(self) -> np.ndarray:
        return np.zeros([self.planes, *[axis.length for axis in self.axes]], dtype=np.int64)


class PatchAtoms(Boxes):
    """Indicators of a product of index sets, one set an axis."""

    def draw(self, stream: Stream) -> np.ndarray:
        atom = self.blank()
        channel = self.channel(stream)
        if self.pool is None:
            atom[channel][np.ix_(*[axis.draw(stream) for axis in self.axes])] = 1
            return atom.ravel()
        self.pool.begin(stream)
        sides = []
        for number, axis in enumerate(self.axes):
            if not axis.contiguous:
                sides.append(axis.draw(stream))
                continue
            size = axis.draw_size(stream)
            circular = axis.boundary == "wrap"
            start = self.pool.place(stream, number, axis.length, size, circular)
            sides.append([index % axis.length for index in range(start, start + size)])
        atom[channel][np.ix_(*sides)] = 1
        return self.pool.end(stream, atom.ravel(), self.shape)


LOBES = {"two": (1, -1), "three": (1, -2, 1), "square": (1, -1)}


class HaarAtoms(Boxes):
    """Equal rectangles side by side; `lobed` are the numbers of the axes along which they stand."""

    def __init__(self, axes, lobed: Sequence[int], lobes: Sequence[str], **channels):
        super().__init__(axes, **channels)
        self.lobed = lobed
        self.lobes = lobes

    def draw(self, stream: Stream) -> np.ndarray:
        channel = self.channel(stream)
        kind = self.lobes[stream.below(len(self.lobes))]
        if self.pool is not None:
            self.pool.begin(stream)
        one = stream.below(len(self.lobed))
        chosen = {self.lobed[one]}
        if kind == "square":
            other = (one + 1 + stream.below(len(self.lobed) - 1)) % len(self.lobed)
            chosen.add(self.lobed[other])
        factors = []
        for number, axis in enumerate(self.axes):
            weights = LOBES[kind] if number in chosen else (1,)
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
        atom[channel] = functools.reduce(np.multiply.outer, factors)
        if self.pool is None:
            return atom.ravel()
        return self.pool.end(stream, atom.ravel(), self.shape)


class PairAtoms(Boxes):
    """Two equal rectangles, the second `reach` away at most and with weight -1."""

    def __init__(self, axes, reach: Sequence[int], **channels):
        super().__init__(axes, **channels)
        self.reach = reach

    def draw(self, stream: Stream) -> np.ndarray:
        first = second = self.channel(stream)
        if len(self.channels) > 1 and stream.next() >> 63:
            second = self.channel(stream)
        here, there = [], []
        for axis, reach in zip(self.axes, self.reach, strict=True):
            size = axis.draw_size(stream)
            last = axis.length - size
            start = stream.below(last + 1)
            moved = min(max(start + stream.below(2 * reach + 1) - reach, 0), last)
            here.append(slice(start, start + size))
            there.append(slice(moved, moved + size))
        atom = self.blank()
        atom[(first, *here)] = 1
        if (first, here) != (second, there):
            atom[(second, *there)] -= 1
        return atom.ravel()


class KernelAtoms(Boxes):
    """Weighted patches; `dilations` are the odds of 1, 2, ... for each kernel, or one dilation."""

    def __init__(self, axes, kernels: Sequence[np.ndarray], dilations, signs=False, **channels):
        super().__init__(axes, **channels)
        self.kernels = kernels
        self.dilations = dilations
        self.signs = signs

    def draw(self, stream: Stream) -> np.ndarray:
        channel = self.channel(stream)
        number = stream.below(len(self.kernels))
        kernel, rate = self.kernels[number], self.dilations
        if not isinstance(rate, int):
            odds = rate[number]
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
        atom = self.blank()
        for place in np.argwhere(kernel):
            sign = -1 if self.signs and stream.next() >> 63 else 1
            atom[(channel, *(starts + place * rate))] = sign * kernel[tuple(place)]
        return (
            atom.ravel() if self.pool is None else self.pool.end(stream, atom.ravel(), self.shape)
        )


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


def sample(dictionary: Dictionary, n_atoms: int, key: int) -> np.ndarray:
    """Atoms as rows, drawn as by one node of this key."""
    dictionary.start_node()
    stream = Stream(key)
    draws = [dictionary.draw(stream) for _ in range(n_atoms)]
    return np.array([atom for atom in draws if atom is not None])


# --- numbers ---------------------------------------------------------------------------------


def fixed_point(values: np.ndarray, bits: int) -> np.ndarray:
    """round_half_even(value * 2^bits) as int64; values are float64, unless integers stay whole."""
    values = np.asarray(values)
    if values.dtype.kind != "f" and bits == 0:
        return values.astype(np.int64)
    return np.rint(np.ldexp(values.astype(np.float64), bits)).astype(np.int64)


def with_border(q: np.ndarray, axis: int) -> np.ndarray:
    """Samples (n, ...) with the values at both ends of an axis once more."""
    return np.pad(q, [(1, 1) if k == axis else (0, 0) for k in range(q.ndim)], mode="edge")


def derive_channel(q: np.ndarray, kind: str, axis=0, other_axis=0, cosine=1.0, sine=0.0):
    """A channel of integer samples (n, *shape); axes are those of a sample."""
    if kind == "raw":
        return q
    if kind == "square":
        return q * q
    if kind == "squared_difference":
        return derive_channel(q, "difference", axis) ** 2
    if kind == "difference":
        wide = with_border(q, axis + 1)
        return np.diff(wide, axis=axis + 1).take(range(1, q.shape[axis + 1] + 1), axis + 1)
    down, right = (
        np.diff(with_border(q, a + 1), axis=a + 1).astype(np.float64) for a in (axis, other_axis)
    )
    down, right = (
        sum(d.take(range(k, k + q.shape[a + 1]), a + 1) for k in (0, 1))
        for d, a in ((down, axis), (right, other_axis))
    )
    length = np.sqrt(down * down + right * right)
    if kind == "magnitude":
        return np.rint(length).astype(np.int64)
    down, right = (d / np.where(length > 0, length, 1) for d in (down, right))
    c = np.maximum(right * cosine + down * sine, 0.0)
    fourth = (c * c) * (c * c)
    return np.rint(length * (fourth * fourth * c)).astype(np.int64)


def project(cells: np.ndarray, atom: np.ndarray) -> np.ndarray:
    """The value of each row. Float cells are summed one by one in feature order."""
    if isinstance(atom, (PooledAtom, VarianceAtom)):
        return atom.values(cells)
    if np.issubdtype(cells.dtype, np.integer):
        return cells.astype(np.int64) @ atom
    values = np.zeros(len(cells))
    for feature in np.flatnonzero(atom):
        values += cells[:, feature] * float(atom[feature])
    return values


def bag_counts(key: int, row_weights: Sequence[int], canonical: Sequence[int], n_draws: int):
    """How often each row is drawn. `canonical` lists the rows in canonical order."""
    ends = np.cumsum([int(row_weights[row]) for row in canonical])
    stream = Stream(derive(key, BAG))
    counts = np.zeros(len(row_weights), dtype=np.int64)
    for _ in range(n_draws):
        position = np.searchsorted(ends, stream.below(int(ends[-1])), side="right")
        counts[canonical[position]] += 1
    return counts


def log2(x: float) -> float:
    """The core's own logarithm: these operations in this order, on any machine."""
    mantissa, exponent = math.frexp(x)
    if mantissa < 0.7071067811865476:
        mantissa *= 2
        exponent -= 1
    s = (mantissa - 1.0) / (mantissa + 1.0)
    z = s * s
    total = 0.0
    for k in range(21, 0, -2):
        total = total * z + 1.0 / k
    return exponent + (2.0 * s * total) * 1.4426950408889634


# --- criteria --------------------------------------------------------------------------------


@dataclass
class Rows:
    """The rows of a tree: integers, parallel arrays.

    `target` is a class number, or the fixed-point target of regression.
    """

    cells: np.ndarray
    target: np.ndarray
    counts: np.ndarray
    weights: np.ndarray
    n_classes: int = 0

    def __getitem__(self, keep: np.ndarray) -> Rows:
        arrays = ("cells", "target", "counts", "weights")
        return replace(self, **{name: getattr(self, name)[keep] for name in arrays})

    def __len__(self) -> int:
        return len(self.target)

    @property
    def count(self) -> int:
        return int(self.counts.sum())

    @property
    def weight(self) -> int:
        return int(self.weights.sum())

    @property
    def pure(self) -> bool:
        return bool((self.target == self.target[0]).all())

    def class_weights(self) -> list[int]:
        totals = [0] * self.n_classes
        for label, weight in zip(self.target.tolist(), self.weights.tolist(), strict=True):
            totals[label] += weight
        return totals

    def target_sum(self) -> int:
        return sum(map(int.__mul__, self.target.tolist(), self.weights.tolist()))


def reciprocal(weight: int) -> float:
    return 1.0 / weight


def gini(rows: Rows) -> float:
    return float(sum(w * w for w in rows.class_weights())) * reciprocal(rows.weight)


def scaled_entropy(weight: int) -> int:
    return 0 if weight == 0 else round(weight * log2(weight) * 2.0**24)


def entropy(rows: Rows) -> int:
    return sum(map(scaled_entropy, rows.class_weights())) - scaled_entropy(rows.weight)


def squared_error(rows: Rows) -> float:
    s = float(rows.target_sum())
    return s * s * reciprocal(rows.weight)


def poisson(rows: Rows) -> float | None:
    s = rows.target_sum()
    return s * (log2(s) - log2(rows.weight)) if s > 0 else None


def medians(rows: Rows) -> tuple[int, int]:
    """The lowest and the highest target that halve the weight."""
    order = np.argsort(rows.target, kind="stable")
    ends = np.cumsum(rows.weights[order])
    low = np.searchsorted(2 * ends, ends[-1], side="left")
    high = np.searchsorted(2 * ends, ends[-1], side="right")
    return int(rows.target[order[low]]), int(rows.target[order[high]])


def absolute_error(rows: Rows) -> int:
    median, _ = medians(rows)
    return -sum(
        weight * abs(target - median)
        for target, weight in zip(rows.target.tolist(), rows.weights.tolist(), strict=True)
    )


# Each criterion is a function of a set of rows, and the score of a split is the sum over its two
# sides. None: these rows cannot stand alone.
CRITERIA: dict[str, Callable[[Rows], float | int | None]] = {
    "gini": gini,
    "entropy": entropy,
    "log_loss": entropy,
    "squared_error": squared_error,
    "poisson": poisson,
    "absolute_error": absolute_error,
    "gradient": lambda rows: rows.worth(),
}


def gain_of(criterion: str, score: float, rows: Rows, tree_weight: int, bits: int) -> float:
    """The weighted decrease in impurity of a split of these rows, in units of the target."""
    difference = score - CRITERIA[criterion](rows)
    if criterion == "gradient":
        return rows.in_units(difference) / tree_weight
    if criterion in ("entropy", "log_loss"):
        return difference / 2.0**24 / tree_weight
    if criterion == "squared_error":
        return math.ldexp(difference / tree_weight, -2 * bits)
    if criterion == "poisson":
        return math.ldexp(difference * math.log(2.0) / tree_weight, -bits)
    if criterion == "absolute_error":
        return math.ldexp(difference / tree_weight, -bits)
    return difference / tree_weight


# --- splits ----------------------------------------------------------------------------------


@dataclass
class Growth:
    """The growing rule: everything about a forest that is not its dictionary."""

    n_candidates: int
    criterion: str = "gini"
    splitter: str = "exact"
    max_depth: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_weight_leaf: int = 0
    min_impurity_decrease: float = 0.0
    max_leaf_nodes: int | None = None
    bits: int = 0


@dataclass
class Split:
    """`threshold` is where values (integer cells: twice the values) stop to go left."""

    atom: np.ndarray
    threshold: int | float
    score: float
    goes_left: np.ndarray
    gain: float = 0.0


def min_weight_leaf(fraction: float, tree_weight: int) -> int:
    return math.ceil(fraction * tree_weight)


def score_of(rows: Rows, goes_left: np.ndarray, growth: Growth) -> float | None:
    """The score of a split, or None if it may not stand."""
    sides = rows[goes_left], rows[~goes_left]
    for side in sides:
        if side.count < growth.min_samples_leaf or side.weight < growth.min_weight_leaf:
            return None
    left, right = (CRITERIA[growth.criterion](side) for side in sides)
    return None if left is None or right is None else float(left + right)


def midpoint(a: int | float, b: int | float) -> int | float:
    """The threshold between neighbours `a < b`; integers are not halved, so it is exact."""
    if isinstance(a, int):
        return a + b
    middle = a / 2 + b / 2
    return a if middle == b else middle


def below_threshold(values: np.ndarray, threshold: int | float) -> np.ndarray:
    return 2 * values <= threshold if isinstance(threshold, int) else values <= threshold


def exact_thresholds(values: np.ndarray) -> list[int | float]:
    """Every place between distinct neighbours, from the lowest."""
    distinct = np.unique(values).tolist()
    return [midpoint(a, b) for a, b in itertools.pairwise(distinct)]


def random_threshold(values: np.ndarray, stream: Stream) -> list[int | float]:
    """One place between minimum and maximum; of integers, the midpoint between t and t + 1."""
    low, high = values.min().item(), values.max().item()
    if low == high:
        return []
    if isinstance(low, int):
        t = low + stream.below(high - low)
        return [midpoint(t, t + 1)]
    t = low + stream.fraction() * (high - low)
    return [t if t < high else low]


def best_split(rows: Rows, atoms: list[np.ndarray], growth: Growth, thresholds: Stream):
    """The best split over these candidates: of equals the first candidate, then threshold.

    In boosting it must be better than none.
    """
    best, floor = None, -math.inf
    if growth.criterion == "gradient":
        floor = rows.worth()
    for atom in atoms:
        values = project(rows.cells, atom)
        if growth.splitter == "random":
            places = random_threshold(values, thresholds)
        else:
            places = exact_thresholds(values)
        for threshold in places:
            goes_left = below_threshold(values, threshold)
            score = score_of(rows, goes_left, growth)
            if score is not None and score > (floor if best is None else best.score):
                best = Split(atom, threshold, score, goes_left)
    return best


# --- trees -----------------------------------------------------------------------------------


@dataclass
class Node:
    """`left` is -1 in a leaf; the right child stands behind the left one."""

    rows: Rows = field(repr=False)
    key: int
    depth: int
    left: int = -1
    split: Split | None = None
    best: Split | None = None

    @property
    def is_leaf(self) -> bool:
        return self.left < 0


def must_be_leaf(node: Node, growth: Growth) -> bool:
    rows = node.rows
    return (
        rows.pure
        or rows.count < growth.min_samples_split
        or rows.count < 2 * growth.min_samples_leaf
        or rows.weight < 2 * growth.min_weight_leaf
        or node.depth == growth.max_depth
    )


def find_split(node: Node, dictionary: Dictionary, growth: Growth, tree_weight: int):
    """The split of a node, or None if it is to be a leaf."""
    if must_be_leaf(node, growth):
        return None
    thresholds = Stream(derive(node.key, THRESHOLDS))
    for atoms in dictionary.rounds(Stream(node.key), growth.n_candidates):
        atoms = [
            atom.with_bias(node.rows) if isinstance(atom, PooledAtom) else atom for atom in atoms
        ]
        split = best_split(node.rows, atoms, growth, thresholds)
        if split is not None:
            break
        if growth.criterion == "gradient":  # no second try
            return None
    else:
        return None
    split.gain = gain_of(growth.criterion, split.score, node.rows, tree_weight, growth.bits)
    if growth.min_impurity_decrease > 0 and split.gain < growth.min_impurity_decrease:
        return None
    return split


def divide(nodes: list[Node], node: Node, split: Split) -> tuple[Node, Node]:
    """Append the two children of a node."""
    node.split, node.left = split, len(nodes)
    left = Node(node.rows[split.goes_left], derive(node.key, LEFT), node.depth + 1)
    right = Node(node.rows[~split.goes_left], derive(node.key, RIGHT), node.depth + 1)
    nodes += [left, right]
    return left, right


def grow_depth_first(root: Node, find: Callable[[Node], Split | None]) -> list[Node]:
    nodes, stack = [root], [root]
    while stack:
        node = stack.pop()
        split = find(node)
        if split is not None:
            left, right = divide(nodes, node, split)
            stack += [right, left]
    return nodes


def grow_best_first(root: Node, find: Callable[[Node], Split | None], max_leaf_nodes: int):
    nodes, n_leaves = [root], 1
    root.best = find(root)
    while n_leaves < max_leaf_nodes:
        open_nodes = [node for node in nodes if node.is_leaf and node.best is not None]
        if not open_nodes:
            break
        # max() takes the first of equals, which is the node of lowest index.
        node = max(open_nodes, key=lambda node: node.best.gain)
        for child in divide(nodes, node, node.best):
            child.best = find(child)
        n_leaves += 1
    return nodes


def grow_tree(rows: Rows, dictionary: Dictionary, growth: Growth, key: int) -> list[Node]:
    """The nodes of one tree, in order. `key` is the tree's; rows are in canonical order.

    That order matters where atoms have biases, and only there.
    """
    rows = rows[rows.counts > 0]
    root = Node(rows, derive(key, ROOT), depth=0)

    def find(node: Node) -> Split | None:
        return find_split(node, dictionary, growth, rows.weight)

    if growth.max_leaf_nodes is None:
        return grow_depth_first(root, find)
    return grow_best_first(root, find, growth.max_leaf_nodes)


def leaf_of(nodes: list[Node], cells: np.ndarray) -> Node:
    """The leaf of one row."""
    node = nodes[0]
    while not node.is_leaf:
        values = project(cells[None, :], node.split.atom)
        right = not below_threshold(values, node.split.threshold)[0]
        node = nodes[node.left + right]
    return node


def leaf_value(rows: Rows, criterion: str, centre: float = 0.0, bits: int = 0) -> float:
    """What a regression leaf predicts."""
    if criterion == "absolute_error":
        low, high = medians(rows)
        value = Fraction(low + high, 2)
    else:
        value = Fraction(rows.target_sum(), rows.weight)
    return centre + float(value / Fraction(2) ** bits)


# --- forests ---------------------------------------------------------------------------------


def posterior(trees: list[list[Node]], cells: np.ndarray) -> np.ndarray:
    """The mean over trees of the class frequencies in each row's leaf."""
    n_classes = trees[0][0].rows.n_classes
    total = np.zeros((len(cells), n_classes))
    for nodes in trees:
        for row, values in enumerate(cells):
            rows = leaf_of(nodes, values).rows
            total[row] += np.array(rows.class_weights(), dtype=np.float64) / rows.weight
    return total / len(trees)
