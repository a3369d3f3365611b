"""Writes a portable forest as a JavaScript module for browsers and Node, without other modules.

Cells are float64 where all sums of a sample stay below 2^53, which is exact, and else BigInt.
"""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np

from morforest._portable import PortableForest, along, narrow
from morforest.dictionary._views import View

EXACT = 2.0**53  # float64 holds all whole numbers up to this one
ROOM = 2.0**6  # by how much samples may at least exceed those of training
SAFE = 2**53 - 1  # the largest whole number of JSON
TYPES = {
    "uint8": "Uint8Array",
    "int8": "Int8Array",
    "uint16": "Uint16Array",
    "int16": "Int16Array",
    "int32": "Int32Array",
    "int64": "Float64Array",
    "float64": "Float64Array",
}

MODULE = """\
// {name} of morforest, for samples of shape ({shape}): {features} numbers in C order, flat or
// nested.
//
//   import {{ predict, {also} }} from "./model.js";
//
//   predict(sample)        {predicts}
{explains}//   shape                  the shape of a sample
//
// A sample of more or fewer numbers, or with missing, infinite or far too large ones, throws a
// RangeError. Nothing is kept between calls.

export const shape = {shape_list};
{labels}
const features = {features};

function unpack(text, type) {{
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new type(bytes.buffer);
}}

{arrays}
const share = {share};
const scale = {scale};
const limit = {limit};

// The nearest whole number, the even one of two.
function round(x) {{
  const shift = 4503599627370496;
  if (Math.abs(x) >= shift) return x;
  return x < 0 ? x - shift + shift : x + shift - shift;
}}

function read(sample) {{
  const flat = ArrayBuffer.isView(sample) ? sample : [sample].flat(Infinity);
  if (flat.length !== features)
    throw new RangeError(`a sample has ${{features}} numbers, got ${{flat.length}}`);
  const cells = new {cell}(features);
  for (let i = 0; i < features; ++i) {{
    const x = Number(flat[i]);
    if (typeof flat[i] === "string" || flat[i] === null || !Number.isFinite(x))
      throw new RangeError(`a sample has finite numbers, got ${{flat[i]}}`);
{quantised}
  }}
  return cells;
}}

{helpers}function fill(x) {{
  const cells = new {cell}({cells});
{planes}  return cells;
}}

function findLeaf(cells, root) {{
  let place = root;
  while (place >= 0) {{
    let sum = {zero};
    for (let t = begin[place]; t < begin[place + 1]; ++t) sum += weight[t] * cells[at[t]];
    place = {sum} > threshold[place] ? right[place] : left[place];
  }}
  return -1 - place;
}}

function addLeaf(leaf, sums) {{
{adds}}}

function sumTrees(sample) {{
  const cells = fill(read(sample));
  const sums = new Array({outputs}).fill(0);
  for (const place of root) addLeaf(findLeaf(cells, place), sums);
  return sums;
}}

{predict}"""

ACCUMULATE = """\
// Replaces each number of a plane by the sum up to it along an axis.
function accumulate(cells, begin, length, stride) {
  for (let block = begin; block < begin + features; block += length * stride)
    for (let i = block + stride; i < block + length * stride; ++i) cells[i] += cells[i - stride];
}

"""

DIFFERENCE = """\
// The value ahead of each place along an axis, less that of the place or of the one behind it.
function difference(x, i, length, stride, behind) {
  const at = Math.floor(i / stride) % length;
  const ahead = x[at + 1 < length ? i + stride : i];
  return ahead - x[behind && at > 0 ? i - stride : i];
}

"""

GRADIENT = """\
// The length of the gradient, or its part in the direction of a cosine and a sine.
function gradient(x, i, rows, columns, toRight, toBelow) {
  const down = Number(difference(x, i, ...rows, true));
  const right = Number(difference(x, i, ...columns, true));
  const length = Math.sqrt(down * down + right * right);
  if (toRight === undefined) return whole(length);
  const divisor = length > 0 ? length : 1;
  const cosine = Math.max((right / divisor) * toRight + (down / divisor) * toBelow, 0);
  const square = cosine * cosine;
  const fourth = square * square;
  return whole(length * (fourth * fourth * cosine));
}

"""

TOO_LARGE = """\
    if (Math.abs(x) * scale > limit)
      throw new RangeError(`a sample has numbers of up to ${limit / scale} in size, got ${x}`);
    cells[i] = round(x * scale);"""

CLASSES = """\
function scores(sample) {{
  return sumTrees(sample).map((sum, k) => {score});
}}

export function probabilities(sample) {{
  {link}
}}

export function predict(sample) {{
  const found = scores(sample);
  {best}
}}
"""

NUMBERS = """\
export function predict(sample) {{
  const found = sumTrees(sample).map((sum, k) => {score});
  return {result};
}}
"""

LINKS = {
    "mean": "return scores(sample);",
    "softmax": """\
const found = scores(sample);
  const highest = Math.max(...found);
  const powers = found.map((score) => Math.exp(score - highest));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);""",
    "logistic": """\
const [score] = scores(sample);
  const odds = Math.exp(-Math.abs(score));
  const likely = 1 / (1 + odds);
  return score > 0 ? [odds * likely, likely] : [likely, odds * likely];""",
}

ADDS_CLASSES = """\
  if (leaf < {outputs}) {{
    sums[leaf] += 1;
    return;
  }}
  const first = mixBegin[leaf - {outputs}];
  const end = mixBegin[leaf - {outputs} + 1];
  let total = 0;
  for (let i = first; i < end; ++i) total += mixWeight[i];
  for (let i = first; i < end; ++i) sums[mixClass[i]] += mixWeight[i] * (1 / total);
"""
ADDS_VALUES = """\
  for (let k = 0; k < {outputs}; ++k) sums[k] += value[leaf * {outputs} + k];
"""


def js_module(forest: PortableForest) -> bytes:
    """Return the text of the module."""
    head = forest.head
    classes = forest.labels is not None
    big = _needs_big(forest)
    score = {"mean": "sum * share", "identity": f"(baseline[k] + sum) * {head.unit!r}"}
    form = score.get(head.link, "baseline[k] + sum")
    if head.link == "exponential":
        form = f"Math.exp({form})"
    labels = f"export const labels = {_labels(forest)};\n" if classes else ""
    limit = forest.limit if big or forest.real else _exact_limit(forest)
    shape = forest.layout.shape
    adds = ADDS_CLASSES if forest.class_count else ADDS_VALUES
    return MODULE.format(
        name=forest.name,
        shape=", ".join(map(str, shape)),
        shape_list=json.dumps(list(shape)),
        features=forest.features,
        also="probabilities, labels" if classes else "shape",
        predicts="the most probable label" if classes else _what_is_predicted(forest),
        explains=EXPLAINS if classes else "",
        labels=labels,
        arrays="".join(_arrays(forest, big)),
        share=repr(1.0 / forest.trees),
        scale=repr(forest.scale),
        limit=repr(limit),
        cell="BigInt64Array" if big else "Float64Array",
        helpers="".join(_helpers(forest, big)),
        quantised=_quantised(forest, big),
        cells=forest.layout.cells,
        planes="".join(_planes(forest)),
        zero="0n" if big else "0",
        sum="BigInt.asIntN(64, sum)" if big else "sum",
        adds=adds.format(outputs=forest.outputs),
        outputs=forest.outputs,
        predict=_predict(forest, form),
    ).encode()


EXPLAINS = """\
//   probabilities(sample)  those of all classes, in the order of labels
"""


def _what_is_predicted(forest: PortableForest) -> str:
    return "a number" if forest.results == 1 else f"an array of {forest.results} numbers"


def _exact_limit(forest: PortableForest) -> float:
    """Return how large cells may be if all sums are to be exact in float64."""
    return math.floor(EXACT / forest.largest_sum())


def _needs_big(forest: PortableForest) -> bool:
    """Whether sums of samples like those of training, or of larger ones, may reach 2^53."""
    if forest.real:
        return False
    squares = any(view.squares for view in forest.layout.views)
    return squares or ROOM * forest.largest > _exact_limit(forest)


def _quantised(forest: PortableForest, big: bool) -> str:
    if forest.real:
        return "    cells[i] = x * scale;"
    if big:
        return "    cells[i] = BigInt(round(Math.min(Math.max(x * scale, -limit), limit)));"
    return TOO_LARGE


def _labels(forest: PortableForest) -> str:
    """Return the labels as JavaScript writes them; integers beyond 2^53 are BigInt."""
    assert forest.labels is not None
    words = [
        f"{label}n" if type(label) is int and abs(label) > SAFE else json.dumps(label)
        for label in forest.labels.tolist()
    ]
    return f"[{', '.join(words)}]"


def _arrays(forest: PortableForest, big: bool) -> Any:
    """Yield the definitions of the arrays, in the names of the functions that read them."""
    for name, values in (("root", forest.root), ("left", forest.left), ("right", forest.right)):
        yield _packed(name, values)
    yield _packed("begin", forest.begin)
    yield _packed("at", forest.cell)
    yield _packed("weight", forest.weight, big)
    yield _packed("threshold", forest.threshold, big)
    if forest.head.link != "mean":
        yield _packed("baseline", forest.head.baseline)
    if forest.class_count:
        yield _packed("mixBegin", forest.distribution_begin)
        yield _packed("mixClass", forest.distribution_class)
        yield _packed("mixWeight", forest.distribution_weight)
    else:
        yield _packed("value", forest.value.ravel())


def _packed(name: str, values: np.ndarray, big: bool = False) -> str:
    small = values.astype(np.int64) if big else narrow(values)
    kind = "BigInt64Array" if big else TYPES[small.dtype.name]
    if kind == "Float64Array":
        small = small.astype(np.float64)
    content = base64.b64encode(small.astype(small.dtype.newbyteorder("<")).tobytes()).decode()
    return f'const {name} = unpack("{content}", {kind});\n'


def _helpers(forest: PortableForest, big: bool) -> Any:
    """Yield the functions that some planes need."""
    kinds = {view.kind for view in forest.layout.views}
    if not forest.real and any(plane.prefixed_axes for plane in forest.layout.planes):
        yield ACCUMULATE
    if kinds - {"raw", "square"}:
        yield DIFFERENCE
    if kinds & {"magnitude", "orientation"}:
        yield f"const whole = {'(x) => BigInt(round(x))' if big else 'round'};\n\n"
        yield GRADIENT


def _planes(forest: PortableForest) -> Any:
    """Yield what fills each plane of cells."""
    layout = forest.layout
    for number, plane in enumerate(layout.planes):
        begin = number * forest.features
        value = _value(plane.view, layout.shape)
        yield f"  for (let i = 0; i < features; ++i) cells[{begin} + i] = {value};\n"
        for axis in () if forest.real else plane.prefixed_axes:
            yield f"  accumulate(cells, {begin}, {along(axis, layout.shape)});\n"


def _value(view: View, shape: tuple[int, ...]) -> str:
    """Return the expression of a view's value at place `i` of a sample `x`."""
    if view.kind == "raw":
        return "x[i]"
    if view.kind == "square":
        return "x[i] * x[i]"
    if view.kind in ("difference", "squared_difference"):
        found = f"difference(x, i, {along(view.axis, shape)}, false)"
        return found if view.kind == "difference" else f"{found} ** 2n"
    axes = f"[{along(view.axis, shape)}], [{along(view.other_axis, shape)}]"
    direction = f", {view.cosine!r}, {view.sine!r}" if view.kind == "orientation" else ""
    return f"gradient(x, i, {axes}{direction})"


def _predict(forest: PortableForest, score: str) -> str:
    """Return the functions that turn sums into predictions."""
    if forest.labels is None:
        result = "found[0]" if forest.results == 1 else "found"
        return NUMBERS.format(score=score, result=result)
    best = "return labels[found.indexOf(Math.max(...found))];"
    if forest.head.link == "logistic":
        best = "return labels[found[0] > 0 ? 1 : 0];"
    return CLASSES.format(score=score, link=LINKS[forest.head.link], best=best)
