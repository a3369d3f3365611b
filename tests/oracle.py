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

import numpy as np
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
from oracle_nonlinear import PooledAtom

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


def derive_view(q: np.ndarray, kind: str, axis=0, other_axis=0, cosine=1.0, sine=0.0):
    """A view of integer samples (n, *shape); axes are those of a sample."""
    if kind == "raw":
        return q
    if kind == "square":
        return q * q
    if kind == "squared_difference":
        return derive_view(q, "difference", axis) ** 2
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
    if hasattr(atom, "values"):  # pooled atoms, variances and columns
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

    @property
    def sums_per_bin(self) -> int:
        """How many numbers a bin holds: the weight of each class, or of targets and rows."""
        return len(np.unique(self.target)) if self.n_classes else 2

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
    bits: int = 0
    penalties: tuple = ()  # of the combination that nodes learn; empty: none


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


def least_weight(rows: Rows, growth: Growth) -> int:
    """What each side of a split of these rows weighs at least."""
    return max(growth.min_weight_leaf, math.ceil(growth.min_child_fraction * rows.weight))


def score_of(rows: Rows, goes_left: np.ndarray, growth: Growth) -> float | None:
    """The score of a split, or None if it may not stand."""
    sides = rows[goes_left], rows[~goes_left]
    for side in sides:
        if side.count < growth.min_samples_leaf or side.weight < least_weight(rows, growth):
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


def best_split(rows: Rows, atoms: list[np.ndarray], growth: Growth):
    """The best split over these candidates: of equals the first candidate, then threshold.

    In boosting it must be better than none.
    """
    best, floor = None, -math.inf
    if growth.criterion == "gradient":
        floor = rows.worth()
    for atom in atoms:
        values = project(rows.cells, atom)
        places = exact_thresholds(values)
        if places and has_bins(rows, growth):
            bins = bins_of(values, growth.int64_cells)
            if not is_crowded(values, bins, rows.weights):
                places = thresholds_between_bins(values, bins)
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
    n_candidates = growth.n_candidates
    if growth.random_split_rate > 0:
        at_random = Stream(derive(node.key, RANDOM_SPLIT)).fraction() < growth.random_split_rate
        n_candidates = 1 if at_random else n_candidates
    for atoms in dictionary.rounds(Stream(node.key), n_candidates):
        atoms = [
            atom.with_bias(node.rows) if isinstance(atom, PooledAtom) else atom for atom in atoms
        ]
        if growth.penalties:
            learned = learn(node.rows, atoms, growth.penalties, combinations, project)
            atoms = atoms if learned is None else [*atoms, learned]
        split = best_split(node.rows, atoms, growth)
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
    if node.leaf_rows is not None:
        values = project(node.leaf_rows.cells, split.atom)
        goes_left = below_threshold(values, split.threshold)
        left.leaf_rows, right.leaf_rows = node.leaf_rows[goes_left], node.leaf_rows[~goes_left]
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


def mean_of_votes(trees: list[list[Node]], cells: np.ndarray, say) -> np.ndarray:
    """The mean of what the leaf of each row says, over the trees whose leaf is filled.

    Where none is, it is the mean over all leaves that are.
    """
    found = []
    for row in cells:
        leaves = [leaf_of(nodes, row) for nodes in trees]
        if not any(len(leaf.says) for leaf in leaves):
            leaves = [node for nodes in trees for node in nodes if node.is_leaf]
        found.append(np.mean([say(leaf) for leaf in leaves if len(leaf.says)], axis=0))
    return np.array(found)


def posterior(trees: list[list[Node]], cells: np.ndarray) -> np.ndarray:
    """The mean over trees of the class frequencies in each row's leaf."""
    return mean_of_votes(
        trees, cells, lambda leaf: np.array(leaf.says.class_weights(), float) / leaf.says.weight
    )
