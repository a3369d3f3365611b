"""A second writing of `docs/design.md`: slow, obvious, and independent of the core.

Every function here follows that page and nothing else, so that a difference between the two is
a mistake in one of them or a gap in the page. Speed is of no interest: a split is scored from its
rows anew, an atom is a dense vector, and counters are Python integers, which cannot overflow.

The page in the order of this file: random numbers and dictionaries (in `oracle_atoms.py`), numbers,
criteria, splits, trees, forests.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial

import numpy as np
import oracle_gaps
from oracle_atoms import (
    BAG,
    LEFT,
    RIGHT,
    ROOT,
    SUBSET,
    Dictionary,
    Stream,
    Subset,
    derive,
)
from oracle_combination import COMBINATION, learn
from oracle_honesty import prune
from oracle_nonlinear import PooledAtom, VarianceAtom

RANDOM_SPLIT = 11

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


def octave_band(q: np.ndarray, width: int) -> np.ndarray:
    """Means of so many steps of the last axis less those of twice as many, rounded half up."""
    steps = np.arange(q.shape[-1])

    def sums(first, count):
        places = np.clip(steps[:, None] + first + np.arange(count), 0, len(steps) - 1)
        return q[..., places].sum(axis=-1)

    short, long = sums(-(width // 2), width), sums(-width, 2 * width)
    return (2 * short - long + width) // (2 * width)


def derive_view(
    q: np.ndarray, kind: str, axis=0, other_axis=0, cosine=1.0, sine=0.0, filters=(), lag=0, width=0
):
    """A view of integer samples (n, *shape); axes are those of a sample."""
    if kind == "raw":
        return q
    if kind == "square":
        return q * q
    if kind == "squared_difference":
        return derive_view(q, "difference", axis) ** 2
    if kind == "squared_filter":
        return derive_view(q, "filter", axis, filters=filters) ** 2
    if kind == "filter":
        matrix = np.reshape(filters, (q.shape[axis + 1], q.shape[axis + 1]))
        along = np.moveaxis(q, axis + 1, -1)
        return np.moveaxis((along @ matrix.T + 2**19) >> 20, -1, axis + 1)
    if kind == "product":
        factors = derive_view(q, "filter", axis, filters=filters)
        if width:
            factors = octave_band(np.moveaxis(factors, other_axis + 1, -1), width)
            factors = np.moveaxis(factors, -1, other_axis + 1)
        return factors * np.roll(factors, -lag, axis=axis + 1)
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


def project(cells: np.ndarray, atom: np.ndarray, marks: np.ndarray | None = None) -> np.ndarray:
    """The value of each row. Float cells are summed one by one in feature order."""
    if isinstance(atom, PooledAtom) and marks is not None:
        return oracle_gaps.pooled_values(atom, cells, marks)
    if isinstance(atom, (PooledAtom, VarianceAtom)):
        return atom.values(cells)
    if hasattr(atom, "values"):  # columns and their combinations
        return atom.values(cells, marks)
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

    `target` is a class number, or the fixed-point target of regression; with several outputs it
    has a column for each, and `n_classes` a number for each. `marks` say what was missing in the
    cells, if anything was in the table.
    """

    cells: np.ndarray
    target: np.ndarray
    counts: np.ndarray
    weights: np.ndarray
    n_classes: int | tuple[int, ...] = 0
    marks: np.ndarray | None = None

    def __getitem__(self, keep: np.ndarray) -> Rows:
        arrays = ["cells", "target", "counts", "weights"] + ["marks"] * (self.marks is not None)
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

    @property
    def outputs(self) -> list[Rows]:
        """The same rows with the targets of each output alone."""
        if self.target.ndim == 1:
            return [self]
        counts = self.n_classes or itertools.repeat(0)
        return [
            replace(self, target=target, n_classes=count)
            for target, count in zip(self.target.T, counts, strict=False)
        ]

    @property
    def sums_per_bin(self) -> int:
        """How many numbers a bin holds: the weight of each class, or of targets and rows."""
        return sum(len(np.unique(of.target)) if of.n_classes else 2 for of in self.outputs)

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
}


def factors(growth: Growth, outputs: int) -> list[float]:
    """What brings the scores of the outputs to the unit of the one with the fewest bits."""
    if isinstance(growth.bits, int):
        return [1.0] * outputs
    power = 2 if growth.criterion == "squared_error" else 1
    return [math.ldexp(1.0, power * (min(growth.bits) - bits)) for bits in growth.bits]


def gain_of(growth: Growth, score: float, rows: Rows, tree_weight: int) -> float:
    """The weighted decrease in impurity of a split, in units of the target: the mean of outputs."""
    criterion = growth.criterion
    if criterion == "gradient":
        return rows.in_units(score - rows.worth()) / tree_weight
    bits = growth.bits if isinstance(growth.bits, int) else min(growth.bits)
    outputs = rows.outputs
    before = 0.0
    for factor, of in zip(factors(growth, len(outputs)), outputs, strict=True):
        before += factor * CRITERIA[criterion](of)
    return in_units(criterion, score - before, tree_weight, bits) / len(outputs)


def in_units(criterion: str, difference: float, tree_weight: int, bits: int) -> float:
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
    int64_cells: bool = False  # where bins are computed in float64
    max_depth: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_weight_leaf: int = 0
    min_impurity_decrease: float = 0.0
    max_leaf_nodes: int | None = None
    min_child_fraction: float = 0.0
    random_split_rate: float = 0.0
    honest_prior: str = "ignore"
    bits: int | tuple[int, ...] = 0  # of each of several outputs of numbers
    penalties: tuple = ()  # of the combination that nodes learn; empty: none
    gaps: bool = False  # whether the table that trees split on has marks


@dataclass
class Split:
    """`threshold` is where values (integer cells: twice the values) stop to go left.

    `code` says where rows go whose values are missing; 0: to the child of more weight.
    """

    atom: np.ndarray
    threshold: int | float
    score: float
    goes_left: np.ndarray
    gain: float = 0.0
    code: int = 0


def min_weight_leaf(fraction: float, tree_weight: int) -> int:
    return math.ceil(fraction * tree_weight)


def least_weight(rows: Rows, growth: Growth) -> int:
    """What each side of a split of these rows weighs at least."""
    return max(growth.min_weight_leaf, math.ceil(growth.min_child_fraction * rows.weight))


def score_of(rows: Rows, goes_left: np.ndarray, growth: Growth) -> float | None:
    """The score of a split, or None if it may not stand."""
    sides = rows[goes_left], rows[~goes_left]
    for side in sides:
        if side.count < growth.min_samples_leaf or side.weight < least_weight(rows, growth):
            return None
    if growth.criterion == "gradient":
        left, right = (side.worth() for side in sides)
        return float(left + right)
    total = 0.0
    outputs = [side.outputs for side in sides]
    weights = factors(growth, len(outputs[0]))
    for factor, *of_output in zip(weights, *outputs, strict=True):
        left, right = (CRITERIA[growth.criterion](side) for side in of_output)
        if left is None or right is None:
            return None
        total += factor * float(left + right)
    return total


def midpoint(a: int | float, b: int | float) -> int | float:
    """The threshold between neighbours `a < b`; integers are not halved, so it is exact."""
    if isinstance(a, int):
        return a + b
    middle = a / 2 + b / 2
    return a if middle == b else middle


def below_threshold(values: np.ndarray, threshold: int | float) -> np.ndarray:
    return 2 * values <= threshold if isinstance(threshold, int) else values <= threshold


def goes_left(
    cells: np.ndarray, marks: np.ndarray | None, split: Split, code: int, bits: int = 0
) -> np.ndarray:
    """Which rows a split sends left; integer cells may be finer than the threshold by some bits."""
    threshold = split.threshold * 2**bits if bits else split.threshold
    left = below_threshold(project(cells, split.atom, marks), threshold)
    return left if marks is None else oracle_gaps.follow(code, split.atom, marks, left)


def exact_thresholds(values: np.ndarray) -> list[int | float]:
    """Every place between distinct neighbours, from the lowest."""
    distinct = np.unique(values).tolist()
    return [midpoint(a, b) for a, b in itertools.pairwise(distinct)]


BINS, SMALL_NODE = 64, 64


def has_bins(rows: Rows, growth: Growth) -> bool:
    """Whether the candidates of a node are searched by bins, as far as the node decides that."""
    if growth.splitter != "histogram" or growth.criterion == "absolute_error":
        return False
    return rows.count > SMALL_NODE and BINS * rows.sums_per_bin <= 16 * rows.count


def bins_of(values: np.ndarray, int64_cells: bool) -> np.ndarray:
    """The bin of each value, among equal ones between the lowest and the highest value."""
    low, high = values.min().item(), values.max().item()
    offsets = [value - low for value in values.tolist()]
    if isinstance(low, int) and not int64_cells:
        distinct = high - low + 1
        if distinct <= BINS:
            return np.array(offsets)
        factor = BINS * 2**32 // distinct
        return np.array([offset * factor >> 32 for offset in offsets])
    span = float(high - low)
    factor = BINS / span
    if math.isinf(factor):  # a range near the smallest float
        places = [offset / span * BINS for offset in offsets]
    else:
        places = [float(offset) * factor for offset in offsets]
    return np.array([min(int(place), BINS - 1) for place in places])


def is_crowded(values: np.ndarray, bins: np.ndarray, weights: np.ndarray) -> bool:
    """Whether the heaviest bin holds much besides one of its extremes: the mark of heavy tails."""
    totals = [int(weights[bins == b].sum()) for b in range(BINS)]
    heaviest = totals.index(max(totals))
    inside = values[bins == heaviest]
    extremes = [int(weights[values == end].sum()) for end in (inside.min(), inside.max())]
    return max(totals) - max(extremes) > int(weights.sum()) // 4


def thresholds_between_bins(values: np.ndarray, bins: np.ndarray) -> list[int | float]:
    """Every place between neighbouring bins that hold a value, from the lowest."""
    inside = [values[bins == b] for b in np.unique(bins)]
    return [midpoint(a.max().item(), b.min().item()) for a, b in itertools.pairwise(inside)]


def best_split(rows: Rows, atoms: list[np.ndarray], growth: Growth, sides: Stream | None = None):
    """The best split over these candidates: of equals the first candidate, then threshold.

    In boosting it must be better than none. Where values are missing, `sides` draws what atoms make
    of that.
    """
    best, floor = None, -math.inf
    if growth.criterion == "gradient":
        floor = rows.worth()
    found = [
        (atom, *candidate)
        for atom in atoms
        for candidate in oracle_gaps.candidates(
            rows, atom, project(rows.cells, atom, rows.marks), sides
        )
    ]
    for atom, values, code in found:
        places = exact_thresholds(values)
        if places and has_bins(rows, growth):
            bins = bins_of(values, growth.int64_cells)
            if not is_crowded(values, bins, rows.weights):
                places = thresholds_between_bins(values, bins)
        for threshold in places:
            goes_left = below_threshold(values, threshold)
            score = score_of(rows, goes_left, growth)
            if score is not None and score > (floor if best is None else best.score):
                best = Split(atom, threshold, score, goes_left, code=code)
    if best is not None and sides is not None and best.code == 0:
        weights = (rows[side].weight for side in (best.goes_left, ~best.goes_left))
        best.code = oracle_gaps.heavier_side(*weights)
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
    leaf_rows: Rows | None = field(default=None, repr=False)  # of an honest tree
    weight: int = 0

    def __post_init__(self) -> None:
        self.weight = self.rows.weight

    @property
    def says(self) -> Rows:
        """The rows that a leaf's value comes from."""
        return self.rows if self.leaf_rows is None else self.leaf_rows

    @property
    def is_leaf(self) -> bool:
        return self.left < 0


def must_be_leaf(node: Node, growth: Growth) -> bool:
    rows = node.rows
    return (
        rows.pure
        or rows.count < growth.min_samples_split
        or rows.count < 2 * growth.min_samples_leaf
        or rows.weight < 2 * least_weight(rows, growth)
        or node.depth == growth.max_depth
        or (node.leaf_rows is not None and len(node.leaf_rows) == 0)
    )


def find_split(node: Node, dictionary: Dictionary, growth: Growth, tree_weight: int):
    """The split of a node, or None if it is to be a leaf."""
    if must_be_leaf(node, growth):
        return None
    combinations = Stream(derive(node.key, COMBINATION))
    sides = Stream(derive(node.key, oracle_gaps.MISSING_SIDES)) if growth.gaps else None
    n_candidates = growth.n_candidates
    if growth.random_split_rate > 0:
        at_random = Stream(derive(node.key, RANDOM_SPLIT)).fraction() < growth.random_split_rate
        n_candidates = 1 if at_random else n_candidates
    for atoms in dictionary.rounds(Stream(node.key), n_candidates):
        atoms = [
            atom.with_bias(node.rows) if isinstance(atom, PooledAtom) else atom for atom in atoms
        ]
        if growth.penalties:
            read = partial(project, marks=node.rows.marks)
            learned = learn(node.rows, atoms, growth.penalties, combinations, read)
            atoms = atoms if learned is None else [*atoms, learned]
        split = best_split(node.rows, atoms, growth, sides)
        if split is not None:
            break
        if growth.criterion == "gradient":  # no second try
            return None
    else:
        return None
    split.gain = gain_of(growth, split.score, node.rows, tree_weight)
    if growth.min_impurity_decrease > 0 and split.gain < growth.min_impurity_decrease:
        return None
    return split


def divide(nodes: list[Node], node: Node, split: Split) -> tuple[Node, Node]:
    """Append the two children of a node."""
    node.split, node.left = split, len(nodes)
    left = Node(node.rows[split.goes_left], derive(node.key, LEFT), node.depth + 1)
    right = Node(node.rows[~split.goes_left], derive(node.key, RIGHT), node.depth + 1)
    if node.leaf_rows is not None:
        rows = node.leaf_rows
        to_left = goes_left(rows.cells, rows.marks, split, split.code)
        left.leaf_rows, right.leaf_rows = rows[to_left], rows[~to_left]
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


def grow_tree(
    rows: Rows,
    dictionary: Dictionary | Subset,
    growth: Growth,
    key: int,
    leaf_rows: Rows | None = None,
) -> list[Node]:
    """The nodes of one tree, in order. `key` is the tree's; rows are in canonical order.

    That order matters where atoms have biases, and only there. Honest trees have rows of their own
    for their leaves.
    """
    rows = rows[rows.counts > 0]
    if leaf_rows is not None:
        leaf_rows = leaf_rows[leaf_rows.counts > 0]
    root = Node(rows, derive(key, ROOT), depth=0, leaf_rows=leaf_rows)
    if isinstance(dictionary, Subset):
        dictionary = dictionary.drawn(rows, derive(root.key, SUBSET))

    def find(node: Node) -> Split | None:
        return find_split(node, dictionary, growth, rows.weight)

    if growth.max_leaf_nodes is None:
        nodes = grow_depth_first(root, find)
    else:
        nodes = grow_best_first(root, find, growth.max_leaf_nodes)
    if leaf_rows is None:
        return nodes
    if growth.honest_prior == "prune":
        return prune(nodes)
    for node in nodes:
        if growth.honest_prior == "empirical" and node.is_leaf and not len(node.leaf_rows):
            node.leaf_rows = leaf_rows
    return nodes


def leaf_of(
    nodes: list[Node], cells: np.ndarray, marks: np.ndarray | None = None, bits: int = 0
) -> Node:
    """The leaf of one row."""
    node = nodes[0]
    marks = None if marks is None else marks[None, :]
    while not node.is_leaf:
        children = nodes[node.left : node.left + 2]
        code = node.split.code or oracle_gaps.heavier_side(*(child.weight for child in children))
        left = goes_left(cells[None, :], marks, node.split, code, bits)[0]
        node = children[0] if left else children[1]
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


def mean_of_votes(
    trees: list[list[Node]], cells: np.ndarray, say, marks=None, bits=0
) -> np.ndarray:
    """The mean of what the leaf of each row says, over the trees whose leaf is filled.

    Where none is, it is the mean over all leaves that are.
    """
    found = []
    for number, row in enumerate(cells):
        missing = None if marks is None else marks[number]
        leaves = [leaf_of(nodes, row, missing, bits) for nodes in trees]
        if not any(len(leaf.says) for leaf in leaves):
            leaves = [node for nodes in trees for node in nodes if node.is_leaf]
        found.append(np.mean([say(leaf) for leaf in leaves if len(leaf.says)], axis=0))
    return np.array(found)


def posterior(
    trees: list[list[Node]], cells: np.ndarray, marks: np.ndarray | None = None, bits: int = 0
) -> np.ndarray:
    """The mean over trees of the class frequencies in each row's leaf, output after output."""

    def say(leaf: Node) -> np.ndarray:
        weights = np.concatenate([of.class_weights() for of in leaf.says.outputs])
        return weights.astype(np.float64) / leaf.says.weight

    return mean_of_votes(trees, cells, say, marks, bits)
