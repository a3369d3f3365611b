"""Problems, and the forests that the oracle says they must give.

A problem is all that a fit depends on; strategies of hypothesis make small and awkward ones: ties,
constants, duplicated rows, single features, classes that do not occur.
"""

from dataclasses import dataclass, field
from functools import partial

import numpy as np
import oracle
import oracle_atoms
import oracle_gaps
import oracle_honesty
import oracle_nonlinear
import pytest
from common import missing_codes
from hypothesis import strategies as st
from oracle_columns import ColumnAtom, shared
from oracle_combination import Combination
from translation import as_oracle

from morforest import (
    Atoms,
    Axis,
    Difference,
    Filter,
    Gradient,
    Graph,
    Haar,
    Kernel,
    Magnitude,
    Mixture,
    MorfClassifier,
    MorfRegressor,
    Neighbours,
    Pair,
    Patch,
    Product,
    Raw,
    SharedAtoms,
    Similarity,
    SparseOblique,
    Square,
    Subset,
)
from morforest._atoms import OPERATIONS
from morforest._columns import PENALTIES
from morforest._fixed_point import (
    choose_format,
    choose_target_format,
    extra_bits,
    fixed_weights,
    to_core_dtype,
)
from morforest._table import TrainingTable
from morforest.dictionary._base import resolve
from morforest.dictionary._views import View

CLASSIFICATION = ("gini", "entropy", "log_loss")
REGRESSION = ("squared_error", "absolute_error", "poisson")
SHARED_ALONE = partial(SharedAtoms, combine=None)


@dataclass
class Problem:
    """All that a fit depends on."""

    X: np.ndarray
    y: np.ndarray
    dictionary: object
    parameters: dict
    sample_weight: np.ndarray | None = None
    shape: tuple = field(init=False)

    def __post_init__(self):
        self.shape = self.X.shape[1:]

    @property
    def classifies(self):
        return self.parameters["criterion"] in CLASSIFICATION

    @property
    def channel_axis(self):
        """The axis of a sample that holds channels; the parameter counts the axes of X."""
        axis = self.parameters.get("channel_axis")
        return None if axis is None else axis % self.X.ndim - 1

    def fit(self):
        estimator = MorfClassifier if self.classifies else MorfRegressor
        model = estimator(self.dictionary, **self.parameters)
        return model.fit(self.X, self.y, sample_weight=self.sample_weight)


# --- the oracle's view of a problem ----------------------------------------------------------


def cells_of(X, form, sources, ordered=(), bits=0, course=None):
    """Cells of samples, finer by some bits, and the marks of what is missing: None if nothing is.

    `ordered` are the axes along which values are filled in, by the usual `course` if it is known.
    """
    marks = None
    if X.dtype.kind == "f" and np.isnan(X).any():
        X, marks = oracle_gaps.fill(X, list(ordered), course)
        planes = [oracle_gaps.marks_of_view(marks, *source) for source in sources]
        marks = np.concatenate([plane.reshape(len(X), -1) for plane in planes], axis=1)
    if form.real:
        return np.ldexp(X.reshape(len(X), -1).astype(np.float64), form.shift), marks
    q = oracle.fixed_point(X, form.shift + bits)
    planes = [oracle.derive_view(q, *source) for source in sources]
    return np.concatenate([plane.reshape(len(X), -1) for plane in planes], axis=1), marks


def training_table(X, dictionary, shape, channel_axis=None, weights=None):
    """The package's table, of which the oracle takes the hashes of rows and the type of cells."""
    X = to_core_dtype(X.reshape(len(X), -1))
    plan = resolve(dictionary, shape, channel_axis)
    cell_format, cells = choose_format(X, plan.bounds, plan.has_order)
    if cells.gaps:
        plan = plan.for_gaps_of(X, weights)
    return TrainingTable(X, plan, cell_format, cells)


class OracleForest:
    """The forest that a problem must give, with the formats that a fitted model chose.

    The design page leaves open the hash behind the canonical order, and the scales of fractional
    weights and of targets within their bounds; these come from the package.
    """

    def __init__(self, problem, model):
        self.problem = problem
        self.parameters = problem.parameters
        self.format = cell_format_of(model._forest)
        self.seed = model._seed
        self.n_trees = model._forest.n_trees
        weights = problem.sample_weight
        kept = np.full(len(problem.y), True) if weights is None else weights > 0
        self.X = problem.X[kept]
        self.given_weights = np.ones(len(self.X)) if weights is None else weights[kept]
        self.whole = bool((self.given_weights == np.rint(self.given_weights)).all())
        total = int(self.given_weights.sum()) if self.whole else len(self.X)
        self.n_draws = self.parameters.get("max_samples", total)
        self._set_target(problem.y[kept], model)
        self.dictionary, self.sources = as_oracle(
            problem.dictionary, problem.shape, problem.channel_axis
        )
        self.ordered = oracle_gaps.ordered_axes(
            self.dictionary, problem.shape, problem.channel_axis
        )
        self.course = oracle_gaps.usual_course(self.X, self.given_weights, self.ordered)
        if isinstance(problem.dictionary, SharedAtoms):
            seen = self.cells(self.X), self.canonical_order(), self.seed, self.marks(self.X)
            self.dictionary = shared(self.dictionary, *seen)
        self.int64_cells = splits_on_int64(problem.dictionary, self.table())
        self.trees = [self._grow(tree) for tree in range(self.n_trees)]

    def _set_target(self, y, model):
        self.problem_target = y
        self.bits, self.centre, self.n_classes = 0, 0.0, 0
        if self.problem.classifies:
            several = y.ndim > 1
            self.labels = [of.tolist() for of in (model.classes_ if several else [model.classes_])]
            columns = zip(self.labels, y.reshape(len(y), -1).T, strict=True)
            codes = [np.searchsorted(labels, column) for labels, column in columns]
            counts = tuple(map(len, self.labels))
            self.target = np.stack(codes, axis=1) if several else codes[0]
            self.n_classes = counts if several else counts[0]
            self.problem_target = self.target
            return
        total = self.n_draws
        from_all = self.parameters.get("honest") == "oob"
        if not self.parameters["bootstrap"] or from_all:
            sum_of_all = int(self.given_weights.sum())
            drawn = total if "max_samples" in self.parameters and not from_all else sum_of_all
            total = max(drawn, self.n_draws if from_all else 0) if self.whole else 2**31
        columns = y.reshape(len(y), -1).T
        found = [choose_target_format(y, total, self.parameters["criterion"]) for y in columns]
        self.centre = [of.centre for of in found]
        targets = [
            oracle.fixed_point(y - of.centre, of.bits) for y, of in zip(columns, found, strict=True)
        ]
        assert all(int(abs(target).max()) * total < 2**62 for target in targets)
        self.target, self.bits = targets[0], found[0].bits
        if y.ndim > 1:
            self.target = np.stack(targets, axis=1)
            varies = [bool(target.any()) for target in targets]
            least = min(
                (of.bits for of, some in zip(found, varies, strict=True) if some), default=0
            )
            self.bits = tuple(
                of.bits if some else least for of, some in zip(found, varies, strict=True)
            )

    def cells(self, X, bits=0):
        return cells_of(X, self.format, self.sources, self.ordered, bits, self.course)[0]

    def marks(self, X):
        return cells_of(X, self.format, self.sources, self.ordered, 0, self.course)[1]

    def table(self):
        channel_axis = self.parameters.get("channel_axis")
        return training_table(
            self.X,
            self.problem.dictionary,
            self.problem.shape,
            channel_axis,
            self.given_weights,
        )

    def canonical_order(self):
        targets = self.target.reshape(len(self.X), -1).T[::-1]
        return np.lexsort((self.given_weights, *targets, self.table().table.hash))

    def bags(self, key):
        """Counts and weights of the rows in the tree of this key: for splits, and for leaves."""
        weights = self.given_weights
        all_counts = (
            weights.astype(np.int64) if self.whole else np.ones(len(weights), dtype=np.int64)
        )
        counts, order = all_counts, self.canonical_order()
        if self.parameters["bootstrap"]:
            if not self.whole:
                weights = np.maximum(np.rint(weights * (2.0**52 / weights.sum())), 1)
            counts = oracle.bag_counts(key, weights.astype(np.int64), order, self.n_draws)
        elif "max_samples" in self.parameters:
            bag_key = oracle_atoms.derive(key, oracle_atoms.BAG)
            counts = oracle_honesty.drawn_rows(bag_key, self.n_draws, order, all_counts)
        drawn_by_weight = self.whole or self.parameters["bootstrap"]
        honest = self.parameters.get("honest", False)
        if not honest:
            return self._weigh(counts, drawn_by_weight), None
        share = None if honest == "oob" else self.parameters.get("honest_fraction", 0.5)
        classes = self.target if self.problem.classifies and self.target.ndim == 1 else None
        groups = oracle_honesty.groups(self.table().table.hash, self.problem_target, order)
        parts = oracle_honesty.part(key, share, groups, classes, counts, all_counts)
        leaves_by_weight = drawn_by_weight and (share is not None or self.whole)
        return self._weigh(parts[0], drawn_by_weight), self._weigh(parts[1], leaves_by_weight)

    def _weigh(self, counts, drawn_by_weight):
        unit = np.ones(len(counts)) if drawn_by_weight else self.given_weights
        if "class_weight" in self.parameters:
            given = self.parameters["class_weight"]
            given = given if isinstance(given, list) else [given]
            for of, labels, codes in zip(
                given, self.labels, self.target.reshape(len(counts), -1).T, strict=True
            ):
                unit = unit * np.array([of.get(label, 1.0) for label in labels])[codes]
        return counts, fixed_weights(unit, counts.astype(np.uint32)).astype(np.int64)

    def _rows(self, bag):
        marks = self.marks(self.X)
        rows = oracle.Rows(self.cells(self.X), self.target, *bag, self.n_classes, marks)
        return rows[self.canonical_order()]

    def _grow(self, tree):
        key = oracle_atoms.tree_key(self.seed, tree)
        bag, leaf_bag = self.bags(key)
        rows = self._rows(bag)
        leaf_rows = None if leaf_bag is None else self._rows(leaf_bag)
        limits = (
            "criterion",
            "splitter",
            "max_depth",
            "min_samples_split",
            "min_samples_leaf",
            "min_impurity_decrease",
            "max_leaf_nodes",
            "min_child_fraction",
            "random_split_rate",
            "honest_prior",
        )
        growth = oracle.Growth(
            n_candidates=self.parameters["max_features"],
            bits=self.bits,
            int64_cells=self.int64_cells,
            penalties=PENALTIES if getattr(self.problem.dictionary, "combine", None) else (),
            gaps=rows.marks is not None and not isinstance(self.problem.dictionary, SharedAtoms),
            **{name: self.parameters[name] for name in limits if name in self.parameters},
        )
        fraction = self.parameters.get("min_weight_fraction_leaf", 0.0)
        growth.min_weight_leaf = oracle.min_weight_leaf(fraction, rows.weight)
        return oracle.grow_tree(rows, self.dictionary, growth, key, leaf_rows)

    def leaf_value(self, node):
        criterion = self.parameters["criterion"]
        bits = [self.bits] if isinstance(self.bits, int) else self.bits
        values = [
            oracle.leaf_value(rows, criterion, *how)
            for rows, *how in zip(node.says.outputs, self.centre, bits, strict=True)
        ]
        return values if self.target.ndim > 1 else values[0]

    def seen(self, X):
        """What walks see of samples: cells, marks, and by how many bits the cells are finer.

        A forest of integers sees fractions more finely; rows without fractions go the same way.
        """
        finer = extra_bits(self.format)
        filled = X if self.marks(X) is None else oracle_gaps.fill(X, self.ordered, self.course)[0]
        bits = finer if (filled != np.rint(filled)).any() else 0
        return self.cells(X, bits), self.marks(X), bits

    def posterior(self, X):
        """Mean class frequencies."""
        return oracle.posterior(self.trees, *self.seen(X))

    def predict(self, X):
        """Mean leaf values."""
        cells, marks, bits = self.seen(X)
        return oracle.mean_of_votes(self.trees, cells, self.leaf_value, marks, bits)


def cell_format_of(forest):
    """How samples became cells, whatever the trees split on."""
    return forest.cell_format if forest.columns is None else forest.columns.cell_format


def splits_on_int64(dictionary, table):
    """Whether trees split on int64 cells; columns are narrower, whatever the samples."""
    return table.cells.cell_type == "int64" and not isinstance(dictionary, SharedAtoms)


# --- the core's view -------------------------------------------------------------------------


def class_weights(forest, node):
    """The class weights of a leaf, from the forest's compact form."""
    payload = -1 - int(forest.next[node])
    weights = np.zeros(forest.class_count, dtype=np.int64)
    if payload < forest.class_count:
        weights[payload] = forest.weight[node]
        return weights
    index = payload - forest.class_count
    first = int(forest.distribution_size[:index].sum())
    entries = slice(first, first + int(forest.distribution_size[index]))
    weights[forest.distribution_class[entries]] = forest.distribution_weight[entries]
    return weights


def assert_same_atom(forest, atoms, number, expected, sources):
    """The atom of one node, with its operation."""
    if isinstance(expected, Combination):
        atom = forest.atoms[number : number + 1]
        found = dict(zip(atom.cell, atom.weight, strict=True))
        pairs = zip(expected.atoms, expected.weights, strict=True)
        assert found == {atom.number: weight for atom, weight in pairs if weight}
        return None
    if isinstance(expected, ColumnAtom):
        columns, alone = forest.columns_of_nodes()
        assert alone[number]
        assert columns[number] == expected.number
        assert forest.columns.mean[expected.number] == expected.mean
        assert forest.columns.deviation[expected.number] == expected.deviation
        forest = forest.columns
        matrix = forest.atoms.matrix()
        return assert_same_atom(forest, matrix, expected.number, expected.atom, sources)
    views = [View(*source) for source in sources]
    order = [views.index(view) for view in forest.atoms.layout.views]
    found = np.zeros((len(sources), atoms.shape[1] // len(order)))
    found[order] = atoms[[number]].toarray().reshape(len(order), -1)
    op = OPERATIONS[forest.atoms.operations()[number]]
    dense = np.zeros(found.shape)
    match expected:
        case oracle_nonlinear.PooledAtom():
            assert op == expected.op
            assert forest.atoms.bias[number] == expected.bias
            counts = forest.atoms.windows(slice(number, number + 1))[0]
            assert counts.tolist() == expected.counts
            dense[:] = expected.atom.reshape(dense.shape)
        case oracle_nonlinear.VarianceAtom():
            assert op == "variance"
            dense[expected.plane] = expected.inside.ravel()
            dense[expected.squares] = expected.inside.ravel() * expected.inside.sum()
        case _:
            assert op == "none"
            dense[:] = expected.reshape(dense.shape)
    np.testing.assert_array_equal(found, dense)
    return None


def assert_same_classes(forest, number, rows):
    """The class weights of a leaf; those of a pure one are known to a factor if it is honest."""
    found = class_weights(forest, number)
    expected = np.concatenate([of.class_weights() for of in rows.outputs])
    if np.count_nonzero(expected) == 1:
        found, expected = found > 0, np.array(expected) > 0
    assert list(found) == list(expected)


def assert_same_trees(problem):
    model = problem.fit()
    expected = OracleForest(problem, model)
    forest = model._forest
    atoms, gains, codes = forest.matrix(), forest.gains(), missing_codes(forest)
    for tree, nodes in enumerate(expected.trees):
        begin, end = (int(forest.tree_begin[tree + i]) for i in range(2))
        lefts = np.maximum(forest.next[begin:end].astype(int), -1)
        np.testing.assert_array_equal(lefts, [node.left for node in nodes])
        for number, node in enumerate(nodes, start=begin):
            assert forest.weight[number] == node.weight
            assert codes[number] == (0 if node.is_leaf else node.split.code)
            if not node.is_leaf:
                assert_same_atom(forest, atoms, number, node.split.atom, expected.sources)
                assert forest.threshold[number] == node.split.threshold
                assert gains[number] == pytest.approx(node.split.gain, rel=1e-6, abs=1e-12)
            elif not len(node.says):
                assert forest.is_silent(-1 - forest.next[number : number + 1].astype(int)).all()
            elif problem.classifies:
                assert_same_classes(forest, number, node.says)
            else:
                first = forest.values * (-1 - int(forest.next[number]))
                value = forest.leaf_value[first : first + forest.values]
                wanted = np.atleast_1d(expected.leaf_value(node))
                assert value.tolist() == pytest.approx(wanted.tolist(), rel=1e-12, abs=1e-12)
    if problem.classifies:
        posterior = expected.posterior(expected.X)
        found = model.predict_proba(expected.X)
        found = np.concatenate(found, axis=1) if problem.y.ndim > 1 else found
        np.testing.assert_allclose(found, posterior, rtol=0, atol=1e-15)
    else:
        values = expected.predict(expected.X)
        np.testing.assert_allclose(model.predict(expected.X), values, rtol=1e-12, atol=1e-12)
    return expected


# --- problems --------------------------------------------------------------------------------

SELDOM = st.sampled_from([False, False, False, True])

INTEGER_RANGES = {
    "bool": [(0, 2)],
    "uint8": [(0, 2), (0, 5), (0, 256)],
    "int16": [(-2, 3), (-(2**15), 2**15)],
    "int64": [(-2, 3), (-300, 300), (-(2**40), 2**40), (0, 2**55)],
}


EXTREMES = {"huge": 1e306, "tiny": 1e-306}


def float_values(rng, kind, size):
    if kind == "halves":
        return rng.integers(-4, 5, size) / 2
    if kind == "integers":
        return rng.integers(-4, 5, size).astype(float)
    if kind == "tails":  # too long for fixed point
        return np.exp(12 * rng.standard_normal(size)).round(3)
    if kind in EXTREMES:
        return rng.standard_normal(size) * EXTREMES[kind]
    return rng.standard_normal(size).round(1 if kind == "ties" else 12)


@st.composite
def samples(draw, rng, shape, n_rows, exact=False):
    """Samples; `exact` ones have values for which integer cells suffice."""
    dtype = draw(st.sampled_from([*INTEGER_RANGES, "float32", "float64"]))
    if dtype in INTEGER_RANGES:
        ranges = INTEGER_RANGES[dtype]
        low, high = draw(st.sampled_from([r for r in ranges if not exact or r[1] < 2**16]))
        X = rng.integers(low, high, (n_rows, *shape)).astype(dtype)
    else:
        kinds = ["halves", "integers", "ties", "normal"]
        if not exact:
            kinds += ["tails", *list(EXTREMES) * (dtype == "float64")]
        kind = draw(st.sampled_from(kinds))
        X = float_values(rng, kind, (n_rows, *shape)).astype(dtype)
    if draw(SELDOM):  # constant features
        X[:, rng.random(shape) < 0.5] = X.flat[0]
    if draw(SELDOM):  # duplicated rows
        X = X[rng.integers(0, n_rows, n_rows)]
    return X


def per_axis(lengths, values):
    return st.tuples(*[values for _ in lengths])


@st.composite
def sizes(draw, shape):
    largest = [draw(st.integers(1, length)) for length in shape]
    smallest = [draw(st.integers(1, size)) for size in largest]
    return {"min_size": tuple(smallest), "max_size": tuple(largest)}


def filters(shape):
    """Make filters along an axis, with weights drawn by a seed."""

    def make(axis_and_seed):
        axis, seed = axis_and_seed
        size = (shape[axis], shape[axis])
        return Filter(np.random.default_rng(seed).normal(size=size).round(2), axis=axis)

    return make


@st.composite
def view_lists(draw, shape, channel_axis):
    rank = len(shape)
    kinds = [st.just(Raw()), st.just(Square()), st.integers(-rank, rank - 1).map(Difference)]
    if rank - (channel_axis is not None) > 1:
        planes = st.none() | st.permutations(range(rank)).map(lambda axes: tuple(axes[:2]))
        kinds += [planes.map(Magnitude), st.builds(Gradient, st.integers(1, 8), axes=planes)]
    kinds.append(st.tuples(st.integers(0, rank - 1), st.integers(0, 99)).map(filters(shape)))
    if rank > 1:
        products = st.builds(Product, kinds[-1], lags=st.integers(1, 3), bands=st.integers(1, 3))
        kinds.append(products)
    one = st.one_of(kinds)
    return draw(st.none() | one | st.lists(one, min_size=1, max_size=3))


SCALES = st.sampled_from(["uniform", "log"])


def bumps(size):
    """Two arrays of weights for boxes of a size, one of them of fractions."""
    whole = np.arange(1, np.prod(size) + 1).reshape(size) - 2
    return [whole, whole / 3 + 0.1]


WEIGHTS = st.sampled_from([None, None, None, "sign", "uniform", "gaussian", "gabor", bumps])


@st.composite
def patches(draw, shape, **views):
    given = draw(sizes(shape))
    if draw(SELDOM):
        axis = draw(st.integers(0, len(shape) - 1))
        rng = np.random.default_rng(draw(st.integers(0, 2**32)))
        relation = draw(relations(rng, shape[axis : axis + 1], None, along=True))
        given = {name: (*v[:axis], None, *v[axis + 1 :]) for name, v in given.items()}
        given["along"] = {axis: relation}
    return Patch(
        **given,
        weights=draw(WEIGHTS),
        boundary=draw(per_axis(shape, st.sampled_from(["zero", "inside", "wrap"]))),
        contiguous=draw(per_axis(shape, st.sampled_from([True, True, False]))),
        size_distribution=draw(SCALES),
        **views,
    )


@st.composite
def haars(draw, shape, **views):
    size = draw(sizes(shape))
    names = st.sampled_from(["two", "three"])
    lobes = draw(names | st.lists(names, min_size=1, max_size=3))
    most = 3 if "three" in lobes else 2
    fitting = [a for a, low in enumerate(size["min_size"]) if most * low <= shape[a]]
    if not fitting:
        return draw(patches(shape, **views))
    axes = draw(st.lists(st.sampled_from(fitting), min_size=1, unique=True))
    return Haar(**size, lobes=lobes, axes=axes, size_distribution=draw(SCALES), **views)


@st.composite
def pairs(draw, shape, **views):
    far = tuple(draw(st.integers(0, length - 1)) for length in shape)
    reach = draw(st.sampled_from([far, 0.5, 0, 1.0]))
    return Pair(**draw(sizes(shape)), reach=reach, size_distribution=draw(SCALES), **views)


@st.composite
def kernels(draw, rng, shape, channel_axis, **views):
    rate = draw(st.sampled_from([1, "log"]))
    kind = draw(st.sampled_from(["gaussian", "gabor", "sign", "own"]))
    if kind != "own":
        return Kernel(kind, **draw(sizes(shape)), dilation=rate, **views)
    free = [length for axis, length in enumerate(shape) if axis != channel_axis]
    own = []
    for _ in range(draw(st.integers(1, 3))):
        lengths = shape
        if free:
            lengths = free[draw(st.integers(0, len(free) - 1)) :]
        own.append(rng.integers(-3, 4, [draw(st.integers(1, length)) for length in lengths]))
        own[-1].flat[0] = 1
    return Kernel(own, dilation=rate, **views)


@st.composite
def finite_atoms(draw, rng, n_features, whole):
    matrix = rng.integers(-2, 3, (draw(st.integers(1, 6)), n_features))
    matrix[:, rng.integers(n_features)] = 1  # no atom may be empty
    if draw(SELDOM) and not whole:
        matrix = matrix * 0.3
    weighted = draw(st.booleans())
    return Atoms(matrix, probabilities=rng.random(len(matrix)) if weighted else None)


@st.composite
def relations(draw, rng, shape, channel_axis, along=False, **views):
    n = int(np.prod([length for axis, length in enumerate(shape) if axis != channel_axis]))
    kind = draw(st.sampled_from(["graph", "graph", "neighbours", "similarity"]))
    sets = {"method": draw(st.sampled_from(["grow", "walk"])), "size_distribution": draw(SCALES)}
    if draw(st.booleans()):
        sets["max_size"] = draw(st.integers(1, n))
        sets["min_size"] = draw(st.integers(1, sets["max_size"]))
    if kind != "similarity" and draw(st.booleans()):
        sets = {"hops": draw(st.sampled_from([0, 1, 2, (1, 1), (1, 3)]))}
        sets["max_size"] = draw(st.none() | st.integers(1, n))
    if not along:
        sets["weights"] = draw(st.sampled_from([None, None, "sign", "uniform", "gaussian", bumps]))
    sets |= views
    if kind == "neighbours" and n > 1:
        points = rng.integers(0, 3, (n, 2)).astype(float) + rng.random((n, 2)) / 8
        if draw(st.booleans()):
            return Neighbours(points, radius=draw(st.sampled_from([0.1, 1.0, 9.0])), **sets)
        return Neighbours(points, k=draw(st.integers(1, min(n - 1, 3))), **sets)
    dense = draw(st.sampled_from([0.0, 0.1, 0.3, 1.0]))
    matrix = np.where(rng.random((n, n)) < dense, rng.random((n, n)), 0)
    return (Similarity if kind == "similarity" else Graph)(matrix, **sets)


@st.composite
def dictionaries(draw, rng, shape, channel_axis=None, derived=False, mixed=True):
    kinds = ["axis", "rate", "density", "atoms", "patch", "patch", "haar", "pair", "kernel"]
    kinds += ["related"]
    kinds = kinds[4:] * derived + kinds + (["mixture"] * 3 + ["subset"]) * mixed
    views = {"views": draw(view_lists(shape, channel_axis))} if derived else {}
    one = dictionaries(rng, shape, channel_axis, derived, mixed=False)
    match draw(st.sampled_from(kinds)):
        case "axis":
            return Axis()
        case "subset":
            kind = draw(st.sampled_from([Subset, SHARED_ALONE]))
            return kind(draw(one), draw(st.sampled_from([1, 3, 17, 70])))
        case "rate":
            return SparseOblique(rate=draw(st.sampled_from([0.3, 1.0, 3.0, 9.5])))
        case "density":
            return SparseOblique(density=draw(st.sampled_from([0.01, 0.2, 0.9, 1.0])))
        case "patch":
            return draw(patches(shape, **views))
        case "haar":
            return draw(haars(shape, **views))
        case "pair":
            return draw(pairs(shape, **views))
        case "kernel":
            return draw(kernels(rng, shape, channel_axis, **views))
        case "related":
            return draw(relations(rng, shape, channel_axis, **views))
        case "atoms":
            return draw(finite_atoms(rng, int(np.prod(shape)), whole=derived))
    parts = [draw(one) for _ in range(draw(st.integers(2, 3)))]
    return Mixture(parts, weights=(0.05 + rng.random(len(parts))).tolist())


@st.composite
def several_targets(draw, rng, criterion, n_rows):
    columns = [draw(targets(rng, criterion, n_rows)) for _ in range(draw(st.integers(2, 4)))]
    if draw(SELDOM):
        columns[-1] = np.full(n_rows, columns[-1].max())
    return np.stack(columns, axis=1)


@st.composite
def targets(draw, rng, criterion, n_rows):
    if criterion in CLASSIFICATION:
        return rng.integers(0, draw(st.integers(1, 20)), n_rows)
    if criterion == "poisson":
        y = rng.poisson(draw(st.sampled_from([0.5, 4.0])), n_rows).astype(float)
        y[rng.integers(n_rows)] += 1  # a sum of zero is refused
        return y
    if draw(st.booleans()):
        return rng.integers(-3, 4, n_rows).astype(float)
    return rng.standard_normal(n_rows) * 10.0 ** draw(st.integers(-6, 6))


def whole_or_fractional_weights(rng, kind, n_rows):
    if kind is None:
        return None
    weights = rng.integers(0, 4, n_rows).astype(float)
    if kind == "fractional":
        weights *= rng.random(n_rows)
    weights[rng.integers(n_rows)] = 1.0  # at least one must be positive
    return weights


GROWTH_LIMITS = {
    "max_depth": st.integers(1, 4),
    "min_samples_split": st.integers(2, 12),
    "min_samples_leaf": st.integers(1, 6),
    "max_leaf_nodes": st.integers(2, 12),
    "min_impurity_decrease": st.sampled_from([1e-9, 0.01, 0.1]),
    "min_weight_fraction_leaf": st.sampled_from([0.02, 0.1, 0.3]),
}
# At most two at a time: more of them leave nothing to grow.
LIMIT_NAMES = st.lists(st.sampled_from(list(GROWTH_LIMITS)), max_size=2, unique=True)

FEW_ROWS = st.one_of(st.integers(1, 6), st.integers(15, 40), st.integers(15, 40))
MANY_ROWS = st.integers(65, 150)
AXIS_LENGTHS = st.sampled_from([3, 2, 4, 4, 1])


@st.composite
def problems(draw, criteria, rows=FEW_ROWS, derived=False, of=None, exact=False, several=False):
    # Data come from a seed: hypothesis chooses what kind they are, and shrinks their number.
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_rows = draw(rows)
    shape = tuple(draw(st.lists(AXIS_LENGTHS, min_size=1, max_size=4)))
    criterion = draw(st.sampled_from(criteria))
    parameters = {
        "criterion": criterion,
        "splitter": draw(st.sampled_from(["histogram", "exact"])),
        "max_features": draw(st.sampled_from([1, 2, 3, 5, 20])),
        "n_estimators": draw(st.integers(1, 2)),
        "bootstrap": draw(st.booleans()),
        "random_state": draw(st.integers(0, 1000)),
    }
    parameters |= {name: draw(GROWTH_LIMITS[name]) for name in draw(LIMIT_NAMES)}
    kind = draw(st.sampled_from([None, None, "whole", "fractional"]))
    y = draw((several_targets if several else targets)(rng, criterion, n_rows))
    if criterion in CLASSIFICATION and draw(SELDOM):
        given = {0: 0.3, 1: 2.0, 3: 1.7}
        columns = y.T if several else [y]
        factors = [{label: given[label] for label in given if label in of} for of in columns]
        parameters["class_weight"] = factors if several else factors[0]
    weights = whole_or_fractional_weights(rng, kind, n_rows)
    if criterion == "poisson" and weights is not None:
        weights[y.reshape(n_rows, -1).max(axis=1) > 0] += 1
    if parameters["bootstrap"] and draw(SELDOM):
        n_kept = n_rows if weights is None else np.count_nonzero(weights)
        parameters["max_samples"] = int(rng.integers(1, n_kept + 1))
    X = draw(samples(rng, shape, n_rows, exact or derived))
    if of is not None:
        return Problem(X, y, draw(of(rng, shape)), parameters, weights)
    channel_axis = draw(st.integers(0, len(shape) - 1)) if draw(st.booleans()) else None
    if channel_axis is not None:
        parameters["channel_axis"] = channel_axis + draw(st.sampled_from([1, -len(shape)]))
    dictionary = draw(dictionaries(rng, shape, channel_axis, derived))
    return Problem(X, y, dictionary, parameters, weights)
