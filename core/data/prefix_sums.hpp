// Prefix sums of planes: what stands in the cells of a row, from the values of a view.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "data/row_layout.hpp"

namespace morf {

// Replaces each cell of a plane by the sum of the cells up to it along one axis.
template <class Cell>
void accumulate_along(Cell* plane, std::int64_t features, std::int64_t length, std::int64_t stride) {
  using Wrapping = std::make_unsigned_t<std::conditional_t<std::is_integral_v<Cell>, Cell, std::int64_t>>;
  if (stride == 1) {  // the running sum stays in a register
    for (std::int64_t block = 0; block < features; block += length) {
      Wrapping sum = 0;
      for (std::int64_t i = block; i < block + length; ++i)
        plane[i] = static_cast<Cell>(sum = static_cast<Wrapping>(sum + static_cast<Wrapping>(plane[i])));
    }
    return;
  }
  for (std::int64_t block = 0; block < features; block += length * stride)
    for (std::int64_t i = block + stride; i < block + length * stride; ++i)
      plane[i] = static_cast<Cell>(
          static_cast<Wrapping>(static_cast<Wrapping>(plane[i]) + static_cast<Wrapping>(plane[i - stride])));
}

// Replaces the values of a plain plane by prefix sums.
template <class Cell>
void accumulate(Cell* plane, const RowLayout& layout, std::uint32_t prefixed_axes) {
  std::int64_t stride = 1;
  for (std::size_t axis = layout.shape.size(); axis-- > 0;) {
    if (prefixed_axes >> axis & 1u) accumulate_along(plane, layout.features, layout.shape[axis], stride);
    stride *= layout.shape[axis];
  }
}

// Writes the values of a view, which has the sample's shape, to the cells of a pooled plane behind its lead.
template <class Cell>
void fill_pooled(const std::int64_t* values, const std::vector<std::int64_t>& shape, const PlanePlace& place, Cell* cells) {
  const std::size_t rank = shape.size();
  const std::int64_t width = shape[rank - 1], runs = static_cast<std::int64_t>(place.size) / (width * place.repeats[rank - 1]);
  for (std::int64_t run = 0; run < runs; ++run) {
    std::int64_t rest = run, from = 0, step = width;  // from: of the run's values in the sample
    for (std::size_t axis = rank - 1; axis-- > 0;) {
      from += rest % (shape[axis] * place.repeats[axis]) % shape[axis] * step;
      rest /= shape[axis] * place.repeats[axis];
      step *= shape[axis];
    }
    for (std::int64_t turn = 0; turn < place.repeats[rank - 1]; ++turn)
      for (std::int64_t i = 0; i < width; ++i) *cells++ = static_cast<Cell>(values[from + i]);
  }
}

// Adds to each cell of a pooled plane, its lead included, the one a stride before it, axis by axis.
template <class Cell>
void accumulate_on(Cell* plane, std::size_t cells, const PlanePlace& place, std::uint32_t prefixed_axes) {
  for (std::size_t axis = place.stride.size(); axis-- > 0;) {
    const auto stride = static_cast<std::size_t>(place.stride[axis]);
    if (!(prefixed_axes >> axis & 1u)) continue;
    for (std::size_t i = stride; i < cells; ++i)
      plane[i] = static_cast<Cell>(static_cast<std::uint64_t>(plane[i]) + static_cast<std::uint64_t>(plane[i - stride]));
  }
}

}  // namespace morf
