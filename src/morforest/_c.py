"""Writes a portable forest as one C99 header, without allocation and without other libraries.

The text is made of pieces in which `model` stands for the prefix of names, and `MODEL` for
that of macros.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from morforest._portable import PortableForest, along, narrow
from morforest.dictionary._views import View

LINE = 96  # characters of a line of numbers
# What names of the header must not be.
PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
LONGEST_PREFIX = 32
LABELS = "@labels@"  # where labels will stand, which may look like anything

HEAD = """\
/* {name} of morforest, for samples of shape ({shape}): {features} numbers in C order.
 *
 *   int model_predict(const double *sample, model_scratch *scratch, double *result);
 *
{does}
 *     The function returns {returns} -1 if a number of the sample is
 *     missing or infinite; then the result is not touched. The scratch memory is the caller's,
 *     {scratch} bytes, and may be used again: give each thread its own. Nothing is allocated, and
 *     nothing is kept between calls.
 *
 *   MODEL_FEATURES, MODEL_RESULTS   numbers of a sample and of a result{labels}
 *
 * Example:
 *
 *   static model_scratch scratch;
 *   double result[MODEL_RESULTS];
 *   int found = model_predict(sample, &scratch, result);
 *{needs}
 * The program must be compiled without options that reorder arithmetic, such as -ffast-math.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdint.h>
{include}
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

#define MODEL_FEATURES {features}
#define MODEL_RESULTS {results}

typedef struct {{
  {cell} sample[{features}];
  {cell} cell[{cells}];
}} model_scratch;
"""

CLASSES = """\
 *     The result holds the probabilities of the classes, in the order of model_labels."""
NUMBERS = """\
 *     The result holds the predicted numbers."""

ROUND = """
/* The nearest whole number, the even one of two. */
static inline double model_round(double x) {
  volatile double shifted;
  if (x >= 4503599627370496.0 || x <= -4503599627370496.0) return x;
  shifted = x < 0.0 ? x - 4503599627370496.0 : x + 4503599627370496.0;
  return x < 0.0 ? shifted + 4503599627370496.0 : shifted - 4503599627370496.0;
}
"""

TIMES = """
/* A product that is rounded before something is added to it. */
static inline double model_times(double a, double b) {
  volatile double product = a * b;
  return product;
}
"""

QUANTISE = """
static inline int64_t model_cell(double x) {{
  const double limit = {limit};
  x *= {scale};
  if (x > limit) x = limit;
  if (x < -limit) x = -limit;
  return (int64_t)model_round(x);
}}
"""

REAL = """
static inline double model_cell(double x) {{ return x * {scale}; }}
"""

ACCUMULATE = """
/* Replaces each of some numbers by the sum up to it along an axis. */
static inline void model_accumulate(int64_t *cell, long length, long stride) {{
  long begin, i;
  for (begin = 0; begin < {features}; begin += length * stride)
    for (i = begin + stride; i < begin + length * stride; ++i)
      cell[i] = (int64_t)((uint64_t)cell[i] + (uint64_t)cell[i - stride]);
}}
"""

DIFFERENCE = """
/* The value ahead of each place along an axis, less that of the place or of the one behind it. */
static inline int64_t model_difference(const int64_t *x, long i, long length, long stride,
                                       int behind) {
  const long at = i / stride % length;
  const int64_t ahead = x[at + 1 < length ? i + stride : i];
  return ahead - x[behind && at > 0 ? i - stride : i];
}
"""

GRADIENT = """
/* The length of the gradient, or with `oriented` its part in a direction. */
static inline int64_t model_gradient(const int64_t *x, long i, long rows, long row_stride,
                                     long columns, long column_stride, int oriented,
                                     double to_right, double to_below) {
  const double down = (double)model_difference(x, i, rows, row_stride, 1);
  const double right = (double)model_difference(x, i, columns, column_stride, 1);
  const double length = sqrt(model_times(down, down) + model_times(right, right));
  const double divisor = length > 0.0 ? length : 1.0;
  double cosine, square, fourth;
  if (!oriented) return (int64_t)model_round(length);
  cosine = model_times(right / divisor, to_right) + model_times(down / divisor, to_below);
  if (cosine <= 0.0) return 0;
  square = model_times(cosine, cosine);
  fourth = model_times(square, square);
  cosine = model_times(model_times(fourth, fourth), cosine);
  return (int64_t)model_round(model_times(length, cosine));
}
"""

FILL = """
/* Makes the cells that trees look at from the numbers of a sample. */
static inline void model_fill(model_scratch *scratch) {{
  const {cell} *const x = scratch->sample;
  {cell} *cell = scratch->cell;
  long i;
{planes}\
  *cell = 0;
}}
"""

PLANE = """\
  for (i = 0; i < {features}; ++i) cell[i] = {value};
{sums}\
  cell += {features};
"""

WALK = """
/* The leaf of a tree: its number. */
static inline long model_leaf(const {cell} *cell, long place) {{
  while (place >= 0) {{
    const long end = (long)model_begin[place + 1];
    {sum} sum = 0;
    long t;
    for (t = (long)model_begin[place]; t < end; ++t)
      sum += {term};
    place = ({cell})sum > model_threshold[place] ? model_right[place] : model_left[place];
  }}
  return -1 - place;
}}
"""

LEAF_OF_CLASSES = """
    if (leaf < {classes}) {{
      result[leaf] += 1.0;
    }}{mixed}"""

MIXED = """ else {{
      const long d = leaf - {classes}, end = (long)model_mix_begin[d + 1];
      uint32_t total = 0;
      long i;
      double scale;
      for (i = (long)model_mix_begin[d]; i < end; ++i) total += (uint32_t)model_mix_weight[i];
      scale = 1.0 / (double)total;
      for (i = (long)model_mix_begin[d]; i < end; ++i)
        result[model_mix_class[i]] += model_times((double)model_mix_weight[i], scale);
    }}"""

LEAF_OF_VALUES = """
    {{
      int k;
      for (k = 0; k < {outputs}; ++k) result[k] += model_value[leaf * {outputs} + k];
    }}"""

PREDICT = """
static inline int model_predict(const double *sample, model_scratch *scratch, double *result) {{
  long i;
  int k, best = 0;
  for (i = 0; i < MODEL_FEATURES; ++i) {{
    if (!(sample[i] - sample[i] == 0.0)) return -1;
    scratch->sample[i] = model_cell(sample[i]);
  }}
  model_fill(scratch);
  for (k = 0; k < {outputs}; ++k) result[k] = 0.0;
  for (i = 0; i < {trees}; ++i) {{
    const long leaf = model_leaf(scratch->cell, model_root[i]);{leaf}
  }}
{link}
  return best;
}}

#endif
"""

BEST = """\
  for (k = 1; k < {outputs}; ++k)
    if (result[k] > result[best]) best = k;"""

LINKS = {
    "mean": """\
  for (k = 0; k < {outputs}; ++k) result[k] *= {share};""",
    "identity": """\
  for (k = 0; k < {outputs}; ++k) result[k] = (model_baseline[k] + result[k]) * {unit};""",
    "exponential": """\
  for (k = 0; k < {outputs}; ++k) result[k] = exp(model_baseline[k] + result[k]);""",
    "logistic": """\
  result[0] += model_baseline[0];
  best = result[0] > 0.0;
  k = 1 - best;
  result[k] = exp(best ? -result[0] : result[0]);
  result[best] = 1.0 / (1.0 + result[k]);
  result[k] *= result[best];""",
    "softmax": """\
  for (k = 0; k < {outputs}; ++k) result[k] += model_baseline[k];""",
}

SOFTMAX = """
  {{
    const double highest = result[best];
    double total = 0.0;
    for (k = 0; k < {outputs}; ++k) total += result[k] = exp(result[k] - highest);
    for (k = 0; k < {outputs}; ++k) result[k] /= total;
  }}"""


def c_header(forest: PortableForest, prefix: str) -> bytes:
    """Return the text of the header, whose names begin with a prefix."""
    needs_math = forest.head.link in ("exponential", "logistic", "softmax") or _has_gradients(
        forest
    )
    number = "double" if forest.real else "int64_t"
    pieces = [_head(forest, number, needs_math), *_arrays(forest), TIMES]
    if forest.real:
        pieces.append(REAL.format(scale=repr(forest.scale)))
    else:
        pieces.append(ROUND)
        pieces.append(QUANTISE.format(scale=repr(forest.scale), limit=repr(forest.limit)))
    pieces += _filling(forest, number)
    term = "model_times(model_weight[t], cell[model_at[t]])"
    if not forest.real:
        term = "(uint64_t)model_weight[t] * (uint64_t)cell[model_at[t]]"
    total = "double" if forest.real else "uint64_t"
    pieces += [WALK.format(cell=number, sum=total, term=term), _predict(forest)]
    text = re.sub(r"\bmodel_", f"{prefix}_", "".join(pieces))
    text = re.sub(r"\bMODEL_", f"{prefix.upper()}_", text)
    return text.replace(LABELS, _labels(forest)).encode("ascii")


def _has_gradients(forest: PortableForest) -> bool:
    return any(view.kind in ("magnitude", "orientation") for view in forest.layout.views)


def _head(forest: PortableForest, number: str, needs_math: bool) -> str:
    """Return what stands before the arrays: how the header is used, and its types."""
    classes = forest.labels is not None
    cells = forest.layout.cells
    return HEAD.format(
        name=forest.name,
        shape=", ".join(map(str, forest.layout.shape)),
        features=forest.features,
        results=forest.results,
        does=CLASSES if classes else NUMBERS,
        returns="the number of the most probable class, or" if classes else "0, or",
        scratch=8 * (forest.features + cells),
        labels="\n *   model_labels                    labels of the classes, as text"
        if classes
        else "",
        needs=" It calls the mathematical functions of C: link with -lm.\n *" if needs_math else "",
        include="#include <math.h>\n" if needs_math else "",
        cell=number,
        cells=cells,
    )


def _arrays(forest: PortableForest) -> Iterable[str]:
    yield _array("root", forest.root)
    yield _array("left", forest.left)
    yield _array("right", forest.right)
    yield _array("begin", forest.begin)
    yield _array("at", forest.cell)
    yield _array("weight", forest.weight)
    yield _array("threshold", forest.threshold)
    if forest.head.link != "mean":
        yield _array("baseline", forest.head.baseline)
    if not forest.class_count:
        yield _array("value", forest.value.ravel())
    elif len(forest.distribution_class):
        yield _array("mix_begin", forest.distribution_begin)
        yield _array("mix_class", forest.distribution_class)
        yield _array("mix_weight", forest.distribution_weight)
    if forest.labels is not None:
        yield f"\nstatic const char *const model_labels[{forest.results}] = {{\n{LABELS}}};\n"


def _array(name: str, values: np.ndarray) -> str:
    """Return the definition of a constant array; C knows none without elements."""
    small = narrow(values)
    kind = "double" if small.dtype.kind == "f" else f"{small.dtype.name}_t"
    words = [repr(value) for value in small.tolist()] or ["0"]
    lines = [""]
    for word in words:
        if len(lines[-1]) + len(word) + 2 > LINE:
            lines.append("")
        lines[-1] += f"{word}, "
    text = "\n".join(f"  {line.rstrip()}" for line in lines)
    return f"\nstatic const {kind} model_{name}[{len(words)}] = {{\n{text}\n}};\n"


def _labels(forest: PortableForest) -> str:
    if forest.labels is None:
        return ""
    return "".join(f'  "{_escaped(str(label))}",\n' for label in forest.labels.tolist())


def _escaped(label: str) -> str:
    """Return what stands between quotes for the bytes of a label in UTF-8."""
    plain = set(range(32, 127)) - set(b'"\\?')
    return "".join(chr(b) if b in plain else f"\\{b:03o}" for b in label.encode())


def _filling(forest: PortableForest, number: str) -> Iterable[str]:
    """Return the functions that make cells: those that the views need."""
    layout = forest.layout
    kinds = {view.kind for view in layout.views}
    if not forest.real and any(plane.prefixed_axes for plane in layout.planes):
        yield ACCUMULATE.format(features=forest.features)
    if kinds - {"raw", "square"}:
        yield DIFFERENCE
    if _has_gradients(forest):
        yield GRADIENT
    planes = []
    for plane in layout.planes:
        axes = () if forest.real else plane.prefixed_axes
        sums = "".join(f"  model_accumulate(cell, {along(axis, layout.shape)});\n" for axis in axes)
        value = _value(plane.view, layout.shape)
        planes.append(PLANE.format(features=forest.features, value=value, sums=sums))
    yield FILL.format(cell=number, planes="".join(planes))


def _value(view: View, shape: tuple[int, ...]) -> str:
    """Return the expression of a view's value at place `i` of a sample `x`."""
    if view.kind == "raw":
        return "x[i]"
    if view.kind == "square":
        return "x[i] * x[i]"
    if view.kind in ("difference", "squared_difference"):
        found = f"model_difference(x, i, {along(view.axis, shape)}, 0)"
        return found if view.kind == "difference" else f"{found} *\n      {found}"
    axes = f"{along(view.axis, shape)}, {along(view.other_axis, shape)}"
    oriented = int(view.kind == "orientation")
    return f"model_gradient(x, i, {axes}, {oriented}, {view.cosine!r}, {view.sine!r})"


def _predict(forest: PortableForest) -> str:
    """Return the function that predicts."""
    head, outputs = forest.head, forest.outputs
    if forest.class_count:
        mixed = MIXED.format(classes=outputs) if len(forest.distribution_class) else ""
        leaf = LEAF_OF_CLASSES.format(classes=outputs, mixed=mixed)
    else:
        leaf = LEAF_OF_VALUES.format(outputs=outputs)
    link = LINKS[head.link]
    if forest.labels is not None and head.link != "logistic":
        link += "\n" + BEST
    if head.link == "softmax":
        link += SOFTMAX
    share, unit = repr(1.0 / forest.trees), repr(head.unit)
    link = link.format(outputs=outputs, share=share, unit=unit)
    return PREDICT.format(outputs=outputs, trees=forest.trees, leaf=leaf, link=link)
