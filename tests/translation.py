"""Dictionaries of the package as those of the oracle."""

import math

import numpy as np
import oracle_atoms
import oracle_nonlinear
import oracle_relations

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
    Variance,
)
from morforest.dictionary._shape import SampleShape
from morforest.dictionary._weights import gabor_kernels


def whole_if_possible(matrix):
    """Whole-number atoms take integer cells, whatever type they came in."""
    return matrix.astype(np.int64) if (matrix == np.rint(matrix)).all() else matrix


def views_of(dictionary, shape, channel_axis):
    """What a dictionary that is no mixture looks at, as the oracle derives it."""
    views = getattr(dictionary, "views", None)
    listed = views if isinstance(views, list) else [views or Raw()]
    found = []
    for view in listed:
        axes = getattr(view, "axes", None)
        plane = axes or tuple(a for a in range(len(shape)) if a != channel_axis)[-2:]
        match view:
            case Raw():
                found.append(("raw",))
            case Square():
                found.append(("square",))
            case Difference():
                found.append(("difference", view.axis % len(shape)))
            case Filter(matrix=matrix, axis=axis):
                known = channel_axis or 0
                axis = known if axis is None else axis % len(shape)
                whole = np.rint(np.asarray(matrix) * 2.0**20).astype(np.int64)
                found.append(("filter", axis, 0, 1.0, 0.0, tuple(whole.ravel().tolist()), 0, 0))
            case Product(of=source, lags=lags, bands=bands):
                (one,) = views_of(Patch(views=source), shape, channel_axis)
                time = [a for a in range(len(shape)) if a != one[1]][-1]
                octaves = [2**k for k in range(20) if 4 * 2**k <= shape[time]]
                for width in [0, *octaves][:bands]:
                    for lag in range(min(lags, shape[one[1]] // 2 + 1)):
                        found.append(("product", one[1], time, *one[3:6], lag, width))
            case Magnitude():
                found.append(("magnitude", *plane))
            case Gradient(orientations=count):
                turns = [2 * math.pi * k / count for k in range(count)]
                parts = [[round(f(a) * 2**40) / 2**40 for f in (math.cos, math.sin)] for a in turns]
                found += [("orientation", *plane, *part) for part in parts]
    if isinstance(dictionary, Variance):
        squares = {
            "raw": "square",
            "difference": "squared_difference",
            "filter": "squared_filter",
        }
        found += [(squares[kind], *rest) for kind, *rest in found]
    return list(dict.fromkeys(found))


def log_odds(low, high):
    return [round(math.log1p(1 / size) * 2**40) for size in range(low, high + 1)]


def weights_of(weights, plane):
    """The oracle's writing of what features weigh; `plane` are the axes in order."""
    match weights:
        case None:
            return None
        case "sign":
            return oracle_atoms.DrawnWeights([1, -1])
        case "uniform":
            return oracle_atoms.DrawnWeights(range(1, 257))
        case "gaussian":
            numbers = [k for k in range(-256, 257) if k]
            odds = [math.exp(-((k / 64) ** 2) / 2) for k in numbers]
            return oracle_atoms.DrawnWeights(numbers, odds)
        case "gabor":
            return oracle_atoms.ListedWeights(lambda size: waves(size, plane))
    return oracle_atoms.ListedWeights(lambda size: whole_arrays(np.array(weights(size)), size))


def waves(size, ordered):
    """Kernels along the axes in order, repeated along the others."""
    found = gabor_kernels(tuple(n if a in ordered else 1 for a, n in enumerate(size)), ordered[-2:])
    return [np.ones(size, dtype=int) * kernel for kernel in found]


def whole_arrays(given, size):
    """Weights of users as whole numbers: as they are, or the largest of an array as 256."""
    arrays = given.reshape(-1, *size)
    whole = [(array == np.rint(array)).all() for array in arrays]
    return [
        (array if flag else np.rint(array * (256 / abs(array).max()))).astype(int)
        for array, flag in zip(arrays, whole, strict=True)
    ]


def boxes(dictionary, shape, channel_axis, views, planes):
    """The oracle's writing of a dictionary of boxes."""

    def spread(name, for_channels):
        value = getattr(dictionary, name)
        if isinstance(value, tuple):
            return value
        return [for_channels if axis == channel_axis else value for axis in range(len(shape))]

    where = {"views": views, "planes": planes}
    if isinstance(dictionary, Kernel):
        axes = [oracle_atoms.PatchAxis(length, 1, 1) for length in shape]
        kernels = dictionary._kernels(SampleShape(shape, channel_axis))
        rates = dictionary.dilation
        if rates == "log":
            fits = [
                [(w - 1) // (k - 1) for w, k in zip(shape, kernel.shape, strict=True) if k > 1]
                for kernel in kernels
            ]
            rates = [log_odds(1, min(most, default=1)) for most in fits]
        signs = isinstance(dictionary.kernel, str) and dictionary.kernel == "sign"
        pool = pool_of(dictionary, shape, [True] * len(shape), channel_axis)
        return oracle_atoms.KernelAtoms(
            axes, kernels, rates, signs, dictionary.rivals, **where, pool=pool
        )
    sizes = list(zip(shape, spread("min_size", 1), spread("max_size", 1), strict=True))
    sizes = [(length, low or 1, high) for length, low, high in sizes]
    axes = [
        oracle_atoms.PatchAxis(length, low, max(math.isqrt(length), low) if high is None else high)
        for length, low, high in sizes
    ]
    if dictionary.size_distribution == "log":
        for axis in axes:
            odds = log_odds(axis.min_size, axis.max_size)
            axis.sizes = odds if len(odds) > 1 else ()
    match dictionary:
        case Variance():
            for axis in axes:
                axis.boundary = "inside"
            return oracle_nonlinear.VarianceAtoms(axes, views)
        case Patch():
            for axis, rule, together in zip(
                axes, spread("boundary", "zero"), spread("contiguous", True), strict=True
            ):
                axis.boundary, axis.contiguous = rule, together
            for axis, relation in (dictionary.along or {}).items():
                axes[axis] = related_sides(relation)
            ordered = [axis.contiguous for axis in axes]
            pool = pool_of(dictionary, shape, ordered, channel_axis)
            free = [a for a, flag in enumerate(ordered) if flag and a != channel_axis]
            weights = weights_of(dictionary.weights, free)
            return oracle_atoms.PatchAtoms(axes, weights, **where, pool=pool)
        case Haar():
            lobed = dictionary.axes or [a for a in range(len(shape)) if a != channel_axis]
            lobes = dictionary.lobes
            lobes = [lobes] if isinstance(lobes, str) else lobes
            pool = pool_of(dictionary, shape, [True] * len(shape), channel_axis)
            return oracle_atoms.HaarAtoms(axes, sorted(lobed), lobes, **where, pool=pool)
        case Pair():
            reach = [
                min(int(value * length), length - 1) if isinstance(value, float) else value
                for value, length in zip(spread("reach", 0), shape, strict=True)
            ]
            pool = pool_of(dictionary, shape, [True] * len(shape), channel_axis)
            return oracle_atoms.PairAtoms(axes, reach, **where, pool=pool)
    raise TypeError(dictionary)


def symmetric(dictionary):
    """The edges of a dictionary of sets, by distances between all points where it has points."""
    match dictionary:
        case Graph():
            matrix = np.array(dictionary.adjacency, dtype=float)
        case Similarity():
            matrix = np.array(dictionary.matrix, dtype=float)
        case Neighbours():
            points = np.array(dictionary.coordinates, dtype=float)
            apart = np.sqrt(((points[:, np.newaxis] - points) ** 2).sum(axis=-1))
            reach = dictionary.radius
            if reach is None:
                reach = np.sort(apart, axis=1)[:, [dictionary.k or 8]]
            matrix = (apart <= reach * (1 + 1e-9)).astype(float)
    matrix = np.maximum(matrix, matrix.T)
    np.fill_diagonal(matrix, 0)
    return matrix


def related_sides(dictionary):
    """The oracle's writing of how sets are drawn."""
    matrix = symmetric(dictionary)
    hops = getattr(dictionary, "hops", None)
    low, high = dictionary.min_size, dictionary.max_size
    if high is None:
        high = max(min(len(matrix), 8 if hops is None else 64), low)
    odds = dictionary.size_distribution
    if isinstance(odds, str):
        odds = log_odds(low, high) if odds == "log" and high > low else ()
    rule = dictionary.method
    if hops is not None:
        rule = hops if isinstance(hops, tuple) else (0, hops)
    by_weight = isinstance(dictionary, Similarity)
    return oracle_relations.RelatedSides(matrix, low, high, rule, odds, by_weight)


def related(dictionary, shape, channel_axis, views, planes):
    """The oracle's writing of a dictionary of connected sets."""
    sides = related_sides(dictionary)
    if not sides.matrix.any() and dictionary.weights is None and len(views) == 1:
        alone = oracle_atoms.axis_atoms(int(np.prod(shape)))
        return alone if planes == 1 else OnOnePlane(alone, *views, planes)
    weights = weights_of(dictionary.weights, [])
    return oracle_relations.RelatedAtoms(sides, shape, channel_axis, weights, views, planes)


class OnOnePlane:
    """A component that looks at one view among several."""

    def __init__(self, component, plane, planes):
        self.component, self.plane, self.planes = component, plane, planes
        self.start_node = component.start_node

    def draw(self, stream):
        atom = self.component.draw(stream)
        if atom is None:
            return None
        wide = np.zeros((self.planes, len(atom)), dtype=atom.dtype)
        wide[self.plane] = atom
        return wide.ravel()


def component(dictionary, shape):
    """The oracle's writing of a dictionary without a notion of neighbours."""
    n_features = int(np.prod(shape))
    match dictionary:
        case Axis():
            return oracle_atoms.axis_atoms(n_features)
        case SparseOblique(density=None):
            return oracle_atoms.SparseAtoms(
                n_features, oracle_atoms.poisson_sizes(dictionary.rate, n_features)
            )
        case SparseOblique():
            sizes = oracle_atoms.binomial_sizes(dictionary.density, n_features)
            return oracle_atoms.SparseAtoms(n_features, sizes)
        case Atoms(probabilities=None):
            return oracle_atoms.UniformAtoms(whole_if_possible(dictionary.matrix))
        case Atoms():
            matrix = whole_if_possible(dictionary.matrix)
            return oracle_atoms.WeightedAtoms(matrix, dictionary.probabilities)
    raise TypeError(dictionary)


def pool_of(dictionary, shape, ordered, channel_axis):
    """Windows run along the last two axes that have an order and hold no channels."""
    if dictionary.pool is None:
        return None
    ops = [dictionary.pool] if isinstance(dictionary.pool, str) else dictionary.pool
    moved = [a for a, flag in enumerate(ordered) if flag and a != channel_axis][-2:]
    whole = isinstance(dictionary.window, float)  # 1.0, in these tests
    lengths = {axis: shape[axis] if whole else dictionary.window or 0 for axis in moved}
    return oracle_nonlinear.Pool(ops, [lengths.get(axis) for axis in range(len(shape))])


def as_oracle(dictionary, shape, channel_axis=None):
    """The oracle's writing of a dictionary, and the views it looks at."""
    if isinstance(dictionary, (Subset, SharedAtoms)):
        found, sources = as_oracle(dictionary.dictionary, shape, channel_axis)
        return oracle_atoms.Subset(found, dictionary.n_atoms), sources
    mixed = isinstance(dictionary, Mixture)
    parts = dictionary.dictionaries if mixed else [dictionary]
    seen = [views_of(part, shape, channel_axis) for part in parts]
    sources = list(dict.fromkeys(source for some in seen for source in some))
    found = []
    for part, some in zip(parts, seen, strict=True):
        planes = [sources.index(source) for source in some]
        if isinstance(part, (Patch, Haar, Pair, Kernel, Variance)):
            found.append(boxes(part, shape, channel_axis, planes, len(sources)))
        elif isinstance(part, (Graph, Neighbours, Similarity)):
            found.append(related(part, shape, channel_axis, planes, len(sources)))
        else:
            alone = component(part, shape)
            found.append(alone if len(sources) == 1 else OnOnePlane(alone, *planes, len(sources)))
    weights = dictionary.weights if mixed else [1.0]
    return oracle_atoms.Dictionary(found, weights), sources
