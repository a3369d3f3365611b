"""Writes a portable forest as an ONNX graph of standard operators.

Cells are made as the core makes them, in int64 (float64 where the core uses it). Then all trees are
walked at once by a loop: its state is the place of each sample in each tree, and a step adds up a
few terms of the atom there, the *slots*. Atoms with more terms take several steps: all but the last
carry the sum on and lead to the next. So the graph is as exact as the core, whatever the atoms are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from morforest._atoms import Plane
from morforest._portable import PortableForest, narrow
from morforest.dictionary._views import View

OPSET, IR_VERSION = 17, 8  # of 2022, so that older runtimes read the files
MOST_SLOTS = 8
STEP_COST = 3  # of a step besides its slots, in slots
LARGEST_FILE = 2**31 - 2**20  # protobuf holds no more
DTYPES = ("float32", "float64", "uint8", "int64")


def onnx_modules() -> Any:
    """Return the onnx package, or say how to get it."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError(
            "to_onnx needs the package onnx: pip install 'morforest[onnx]'"
        ) from error
    return onnx


@dataclass(frozen=True)
class Steps:
    """The walk in steps of so many terms; a place is the number of a step, or as in the forest."""

    root: np.ndarray
    left: np.ndarray
    right: np.ndarray
    threshold: np.ndarray
    cell: np.ndarray  # (slots, steps)
    weight: np.ndarray
    goes_on: np.ndarray  # whether the sum is carried on to the next step

    @property
    def longest(self) -> int:
        """Number of steps that any walk may take."""
        reached = np.unique(self.root[self.root >= 0])
        count = 0
        while len(reached):
            reached = np.concatenate([self.left[reached], self.right[reached]])
            reached = np.unique(reached[reached >= 0])
            count += 1
        return count


def steps_of(forest: PortableForest) -> Steps:
    """Cut the splits into steps of as many terms as make the walk cheapest."""
    terms = np.diff(forest.begin)
    # Sums of float64 depend on their order, which slots keep as integers do not need to.
    widths = range(1, max(1, min(MOST_SLOTS, int(terms.max(initial=1)))) + 1)
    parts = {width: np.maximum(-(-terms // width), 1) for width in widths}
    slots = min(widths, key=lambda width: int(parts[width].sum()) * (width + STEP_COST))
    count = parts[slots]
    first = np.append(0, np.cumsum(count))  # step of each split
    last = first[1:] - 1
    steps = int(first[-1])
    split = np.repeat(np.arange(len(terms)), count)
    term = forest.begin[split] + (np.arange(steps) - first[split]) * slots
    place = term + np.arange(slots)[:, np.newaxis]
    there = place < forest.begin[split + 1]
    zero = forest.layout.cells - 1
    cell = np.append(forest.cell, zero)[np.where(there, place, len(forest.cell))]
    weight = np.append(forest.weight, 0)[np.where(there, place, len(forest.weight))]
    if not forest.real:  # alike signs come into one slot
        order = np.argsort(-np.sign(weight), axis=0, kind="stable")
        cell, weight = (np.take_along_axis(terms, order, 0) for terms in (cell, weight))
    goes_on = np.ones(steps, dtype=bool)
    goes_on[last] = False
    left, right = (np.arange(steps) + 1 for _ in range(2))
    left[last], right[last] = (_steps_at(where, first) for where in (forest.left, forest.right))
    threshold = np.zeros(steps, dtype=forest.threshold.dtype)
    threshold[last] = forest.threshold
    root = _steps_at(forest.root, first)
    return Steps(root, left, right, threshold, cell, weight, goes_on)


def _steps_at(place: np.ndarray, first: np.ndarray) -> np.ndarray:
    return np.where(place >= 0, first[np.maximum(place, 0)], place)


class Graph:
    """Nodes and constants of an ONNX graph, in the order in which they were added.

    The body of a loop has nodes alone: it sees the constants of the graph around it.
    """

    def __init__(self, onnx: Any, prefix: str = "") -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._prefix = prefix
        self._count = 0

    def add(self, operator: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """Add a node, and return its output."""
        if name is None:
            self._count += 1
            name = f"{self._prefix}{operator}_{self._count}"
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [name], **attributes))
        return name

    def constant(self, values: Any, dtype: Any = None) -> str:
        """Add a constant, and return its name."""
        array = np.asarray(values, dtype=dtype)
        name = f"constant_{len(self.constants)}"
        if array.dtype.kind == "U":
            strings = [label.encode() for label in array.ravel().tolist()]
            kind = self.onnx.TensorProto.STRING
            made = self.onnx.helper.make_tensor(name, kind, array.shape, strings)
        else:
            made = self.onnx.numpy_helper.from_array(np.asarray(array, order="C"), name)
        self.constants.append(made)
        return name

    def cast(self, values: str, dtype: Any) -> str:
        """Convert to another type."""
        to = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.add("Cast", values, to=to)

    def stored(self, values: np.ndarray, dtype: Any) -> str:
        """Add a constant that takes little room in the file."""
        small = narrow(values)
        name = self.constant(small)
        return name if small.dtype == np.dtype(dtype) else self.cast(name, dtype)


def onnx_file(forest: PortableForest, dtype: str, flat: bool) -> bytes:
    """Return the content of an ONNX file for samples of a type, in flat rows or in their shape."""
    onnx = onnx_modules()
    graph = Graph(onnx)
    X = "X"
    if not flat:
        X = graph.add("Reshape", X, graph.constant([0, forest.features]))
    cells = _cells(graph, forest, X, dtype)
    leaves = _walk(graph, forest, steps_of(forest), cells)
    outputs = _predict(graph, forest, _sums(graph, forest, leaves), X, dtype)
    make, of = onnx.helper.make_tensor_value_info, onnx.helper.np_dtype_to_tensor_dtype
    shape = [forest.features] if flat else list(forest.layout.shape)
    proto = onnx.helper.make_graph(
        graph.nodes,
        "morforest",
        [make("X", of(np.dtype(dtype)), ["samples", *shape])],
        [
            make(name, onnx.TensorProto.STRING if found.kind == "U" else of(found), dims)
            for name, found, dims in outputs
        ],
        graph.constants,
        doc_string=f"{forest.name} of morforest",
    )
    model = onnx.helper.make_model(
        proto,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="morforest",
    )
    if model.ByteSize() > LARGEST_FILE:
        raise ValueError(
            f"to_onnx cannot write this {forest.name}: the file would have {model.ByteSize()} "
            "bytes, more than the 2 GiB of ONNX files. To export a model, fit fewer or smaller "
            "trees, for instance with max_leaf_nodes."
        )
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def _numbers(graph: Graph, forest: PortableForest, X: str, dtype: str) -> str:
    """Return the samples in the steps of cells."""
    if np.dtype(dtype).kind != "f" and not forest.real and not forest.shift:
        limit = int(min(forest.limit, 2.0**62))
        whole = graph.cast(X, np.int64)
        return graph.add("Clip", whole, *(graph.constant(np.int64(x)) for x in (-limit, limit)))
    values = graph.cast(X, np.float64)
    if forest.shift:
        values = graph.add("Mul", values, graph.constant(forest.scale))
    if forest.real:
        return values
    limits = [graph.constant(np.float64(size)) for size in (-forest.limit, forest.limit)]
    return graph.cast(graph.add("Round", graph.add("Clip", values, *limits)), np.int64)


def _cells(graph: Graph, forest: PortableForest, X: str, dtype: str) -> str:
    """Return the cells of all samples, (samples, cells)."""
    number = np.dtype(np.float64 if forest.real else np.int64)
    values = _numbers(graph, forest, X, dtype)
    raw = graph.add("Reshape", values, graph.constant([0, *forest.layout.shape]))
    planes = [_plane(graph, forest, raw, plane) for plane in forest.layout.planes]
    zero = graph.constant(np.zeros((), number))
    rows = planes[0] if len(planes) == 1 else graph.add("Concat", *planes, axis=1)
    return graph.add("Pad", rows, graph.constant([0, 0, 0, 1], np.int64), zero)


def _plane(graph: Graph, forest: PortableForest, raw: str, plane: Plane) -> str:
    values = _view(graph, forest, raw, plane.view)
    if not forest.real:
        for axis in plane.prefixed_axes:
            values = graph.add("CumSum", values, graph.constant(axis + 1, np.int64))
    return graph.add("Reshape", values, graph.constant([0, forest.features], np.int64))


def _view(graph: Graph, forest: PortableForest, raw: str, view: View) -> str:
    """Return the values of a view in the shape of the samples."""
    if view.kind == "raw":
        return raw
    if view.kind == "square":
        return graph.add("Mul", raw, raw)
    if view.kind in ("difference", "squared_difference"):
        found = _difference(graph, forest, raw, view.axis, behind=0)
        return found if view.kind == "difference" else graph.add("Mul", found, found)
    down, right = (
        graph.cast(_difference(graph, forest, raw, axis, behind=1), np.float64)
        for axis in (view.axis, view.other_axis)
    )
    squares = graph.add("Add", graph.add("Mul", down, down), graph.add("Mul", right, right))
    length = graph.add("Sqrt", squares)
    if view.kind == "orientation":
        nought, one = graph.constant(0.0), graph.constant(1.0)
        divisor = graph.add("Where", graph.add("Greater", length, nought), length, one)
        along = [
            graph.add("Mul", graph.add("Div", side, divisor), graph.constant(part))
            for side, part in ((right, view.cosine), (down, view.sine))
        ]
        cosine = graph.add("Max", graph.add("Add", *along), nought)
        square = graph.add("Mul", cosine, cosine)
        fourth = graph.add("Mul", square, square)
        ninth = graph.add("Mul", graph.add("Mul", fourth, fourth), cosine)
        length = graph.add("Mul", length, ninth)
    return graph.cast(graph.add("Round", length), np.int64)


def _difference(graph: Graph, forest: PortableForest, raw: str, axis: int, behind: int) -> str:
    """Return next value minus this one, or minus the one before; borders are repeated."""
    length = forest.layout.shape[axis]
    place = np.arange(length)
    ahead = graph.add(
        "Gather", raw, graph.constant(np.minimum(place + 1, length - 1)), axis=axis + 1
    )
    if behind:
        behind_it = graph.constant(np.maximum(place - 1, 0))
        return graph.add("Sub", ahead, graph.add("Gather", raw, behind_it, axis=axis + 1))
    return graph.add("Sub", ahead, raw)


def _walk(graph: Graph, forest: PortableForest, steps: Steps, cells: str) -> str:
    """Return the payloads of the leaves, (samples, trees)."""
    samples = graph.add("Shape", cells, start=0, end=1)
    shape = graph.add("Concat", samples, graph.constant([forest.trees]), axis=0)
    place = graph.add("Expand", graph.constant(steps.root, np.int32), shape)
    if len(steps.left):
        place = _loop(graph, forest, steps, cells, place, shape)
    return graph.add("Sub", graph.constant(np.int32(-1)), place)


def _loop(
    graph: Graph, forest: PortableForest, steps: Steps, cells: str, root: str, shape: str
) -> str:
    """Add the loop that walks from the roots, and return where it ends."""
    made, boolean = graph.onnx.helper, graph.onnx.TensorProto.BOOL
    number = np.dtype(np.float64 if forest.real else np.int64)
    body = _step(graph, forest, steps, cells, number)
    state = [("place", made.np_dtype_to_tensor_dtype(np.dtype(np.int32)))]
    start = [root]
    if steps.goes_on.any():
        state.append(("total", made.np_dtype_to_tensor_dtype(number)))
        start.append(graph.add("Expand", graph.constant(np.zeros(1, number)), shape))
    info = made.make_tensor_value_info
    inputs = [info("step", graph.onnx.TensorProto.INT64, []), info("before", boolean, [])]
    inputs += [info(name, kind, [None, None]) for name, kind in state]
    outputs = [info("more", boolean, [])]
    outputs += [info(f"next_{name}", kind, [None, None]) for name, kind in state]
    count = graph.constant(np.int64(steps.longest))
    graph.nodes.append(
        made.make_node(
            "Loop",
            [count, graph.constant(np.bool_(True)), *start],
            [f"last_{name}" for name, _ in state],
            body=made.make_graph(body.nodes, "step", inputs, outputs),
        )
    )
    return "last_place"


def _step(
    graph: Graph, forest: PortableForest, steps: Steps, cells: str, number: np.dtype[Any]
) -> Graph:
    """Return the body of the loop: from places, and sums that go on, to the next ones."""
    body = Graph(graph.onnx, "step_")
    left, right = (graph.stored(side, np.int32) for side in (steps.left, steps.right))
    threshold = graph.stored(steps.threshold, number)
    at = body.add("Max", "place", graph.constant(np.int32(0)))
    carries = bool(steps.goes_on.any())
    total = "total" if carries else ""
    for cell, weight in zip(steps.cell, steps.weight, strict=True):
        slot = body.add("Gather", graph.stored(cell, np.int32), at)
        value = body.add("GatherElements", cells, slot, axis=1)
        sign = 0 if forest.real else _sign(cell, weight, forest.layout.cells - 1)
        if not sign:
            value = body.add("Mul", value, body.add("Gather", graph.stored(weight, number), at))
        if total:
            total = body.add("Sub" if sign < 0 else "Add", total, value)
        else:
            total = body.add("Neg", value) if sign < 0 else value
    above = body.add("Greater", total, body.add("Gather", threshold, at))
    child = body.add("Where", above, body.add("Gather", right, at), body.add("Gather", left, at))
    ended = body.add("Less", "place", graph.constant(np.int32(0)))
    body.add("Where", ended, "place", child, name="next_place")
    if carries:
        kept = body.add("Gather", graph.constant(steps.goes_on), at)
        body.add("Where", kept, total, graph.constant(np.zeros((), number)), name="next_total")
    highest = body.add("ReduceMax", "next_place", keepdims=0)
    body.add("Greater", highest, graph.constant(np.int32(-1)), name="more")
    return body


def _sign(cell: np.ndarray, weight: np.ndarray, zero: int) -> int:
    """Return 1 or -1 if that is the weight of all terms of a slot, else 0."""
    found = np.unique(weight[cell != zero])
    return int(found[0]) if len(found) == 1 and abs(found[0]) == 1 else 0


def _sums(graph: Graph, forest: PortableForest, leaves: str) -> str:
    """Return the sums of what the leaves say, added in the order of the trees."""
    values = graph.add("Gather", _leaf_table(graph, forest), leaves)
    running = graph.add("CumSum", values, graph.constant(np.int64(1)))
    return graph.add("Gather", running, graph.constant(np.int64(forest.trees - 1)), axis=1)


def _leaf_table(graph: Graph, forest: PortableForest) -> str:
    """Return what each payload adds, (payloads, outputs)."""
    if not forest.class_count:
        return graph.constant(forest.value)
    sizes = np.diff(forest.distribution_begin)
    table = np.zeros((len(sizes), forest.class_count), dtype=np.int64)
    table[np.repeat(np.arange(len(sizes)), sizes), forest.distribution_class] = (
        forest.distribution_weight
    )
    pure = graph.stored(np.eye(forest.class_count, dtype=np.int64), np.float64)
    if not len(sizes):
        return pure
    scale = graph.constant(forest.distribution_scale[:, np.newaxis])
    mixed = graph.add("Mul", graph.stored(table, np.float64), scale)
    return graph.add("Concat", pure, mixed, axis=0)


def _predict(
    graph: Graph, forest: PortableForest, sums: str, X: str, dtype: str
) -> list[tuple[str, np.dtype[Any], list[Any]]]:
    """Turn sums into the outputs, and return these with their types and shapes."""
    head = forest.head
    if head.link == "mean":
        scores = graph.add("Mul", sums, graph.constant(1.0 / forest.trees))
    else:
        scores = graph.add("Add", graph.constant(head.baseline), sums)
    found = _linked(graph, forest, scores)
    name = "variable" if forest.labels is None else "probabilities"
    known = _known(graph, X, dtype) if np.dtype(dtype).kind == "f" else graph.constant([[0.0]])
    graph.add("Add", found, known, name=name)
    outputs: list[tuple[str, np.dtype[Any], list[Any]]] = [
        (name, np.dtype(np.float64), ["samples", forest.results])
    ]
    if forest.labels is not None:
        if head.link == "logistic":
            best = graph.cast(graph.add("Greater", scores, graph.constant(0.0)), np.int64)
            best = graph.add("Reshape", best, graph.constant([-1]))
        else:
            best = graph.add("ArgMax", scores, axis=1, keepdims=0)
        graph.add("Gather", graph.constant(forest.labels), best, name="label")
        outputs.insert(0, ("label", forest.labels.dtype, ["samples"]))
    return outputs


def _linked(graph: Graph, forest: PortableForest, scores: str) -> str:
    """Turn scores into probabilities or predicted numbers."""
    link, unit = forest.head.link, forest.head.unit
    if link == "logistic":
        nought = graph.add("Mul", scores, graph.constant(0.0))
        scores = graph.add("Concat", nought, scores, axis=1)
    if link in ("logistic", "softmax"):
        return graph.add("Softmax", scores, axis=1)
    if link == "exponential":
        return graph.add("Exp", scores)
    return graph.add("Mul", scores, graph.constant(unit)) if unit != 1.0 else scores


def _known(graph: Graph, X: str, dtype: str) -> str:
    """Return zero for samples of finite numbers, and NaN for others, which have no prediction."""
    alike = graph.cast(graph.add("Mul", X, graph.constant(0.0, dtype)), np.float64)
    return graph.add("ReduceSum", alike, graph.constant([1]), keepdims=1)
