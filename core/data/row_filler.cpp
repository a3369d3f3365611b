#include "data/row_filler.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "base/random.hpp"

namespace morf {
namespace {

// Writes the cells of one sample, in plain planes of its raw values. Returns a hash of the values that does not depend on their
// input type; unless `hashed`, the result means nothing.
template <bool hashed = true, class In, class Cell>
std::uint64_t fill_row(const In* x, const RowLayout& layout, const Quantiser& quantiser, Cell* row) {
  const std::int64_t p = layout.features;
  const auto put = [&](std::int64_t j) {  // writes a cell and returns what to hash
    std::uint64_t bits;
    if constexpr (std::is_floating_point_v<Cell>) {
      row[j] = quantiser.real(x[j]);
      std::memcpy(&bits, &row[j], sizeof bits);
    } else {
      const std::int64_t q = quantiser.integer(x[j]);
      row[j] = static_cast<Cell>(q);
      bits = static_cast<std::uint64_t>(q);
    }
    return bits;
  };
  const auto step = [](std::uint64_t h, std::uint64_t bits) { return (h ^ (h >> 29) ^ bits) * 0xBF58476D1CE4E5B9ULL; };
  std::uint64_t h0 = 1, h1 = 2, h2 = 3, h3 = 4;  // four independent chains hide the multiplier's latency
  std::int64_t j = 0;
  if constexpr (!hashed) {
    if constexpr (std::is_same_v<In, std::uint8_t> && std::is_integral_v<Cell>)  // a loop that compilers turn into vectors
      if (quantiser.exact())
        for (; j < p; ++j) row[j] = static_cast<Cell>(x[j]);
    if constexpr (std::is_floating_point_v<In> && std::is_integral_v<Cell> && sizeof(Cell) <= 4)
      for (; j < p; ++j) row[j] = static_cast<Cell>(quantiser.small_integer(x[j]));
    for (; j < p; ++j) put(j);
  }
  for (; j + 4 <= p; j += 4) {
    h0 = step(h0, put(j));
    h1 = step(h1, put(j + 1));
    h2 = step(h2, put(j + 2));
    h3 = step(h3, put(j + 3));
  }
  if (j < p) h0 = step(h0, put(j++));
  if (j < p) h1 = step(h1, put(j++));
  if (j < p) h2 = step(h2, put(j++));
  for (std::size_t k = 1; k < layout.plain_planes; ++k) std::memcpy(row + k * p, row, p * sizeof(Cell));
  if constexpr (std::is_integral_v<Cell>)
    for (std::size_t k = 0; k < layout.plain_planes; ++k) accumulate(row + k * p, layout, layout.planes[k].prefixed_axes);
  row[layout.cells() - 1] = 0;
  return mix(mix(mix(mix(h0) ^ h1) ^ h2) ^ h3);
}

}  // namespace

template <class Cell>
RowFiller<Cell>::RowFiller(const RowLayout& layout, const Quantiser& quantiser)
    : layout_(layout), unsummed_(layout.unsummed()), quantiser_(quantiser), raw_only_(layout.raw()), derive_(layout.shape) {
  if (!raw_only_ && !std::is_integral_v<Cell>)
    throw std::invalid_argument("float64 tables have no derived views and no pooled planes");
}

template <class Cell>
void RowFiller<Cell>::fill(const Samples& x, std::size_t sample, Cell* row) {
  run<false>(x, sample, row);
}

template <class Cell>
std::uint64_t RowFiller<Cell>::fill_and_hash(const Samples& x, std::size_t sample, Cell* row) {
  return run<true>(x, sample, row);
}

template <class Cell>
template <bool hashed>
std::uint64_t RowFiller<Cell>::run(const Samples& x, std::size_t sample, Cell* row) {
  if (raw_only_)
    return x.with_row(sample, [&](const auto* values) { return fill_row<hashed>(values, layout_, quantiser_, row); });
  std::uint64_t hash = 0;
  if constexpr (std::is_integral_v<Cell>) {
    const auto p = static_cast<std::size_t>(layout_.features);
    raw_.resize(p + 1);
    hash = x.with_row(sample, [&](const auto* values) { return fill_row<hashed>(values, unsummed_, quantiser_, raw_.data()); });
    derive_.begin(raw_.data());
    for (std::size_t k = 0; k < layout_.planes.size(); ++k) {
      const Plane& plane = layout_.planes[k];
      const PlanePlace& place = layout_.places[k];
      const std::int64_t* const values = derive_(plane.view);
      Cell* const cells = row + place.begin;
      if (plane.pooled) {
        std::fill_n(cells, place.lead, Cell{0});
        fill_pooled(values, layout_.shape, place, cells + place.lead);
        accumulate_on(cells, place.cells(), place, plane.prefixed_axes);
      } else {
        for (std::size_t j = 0; j < p; ++j) cells[j] = static_cast<Cell>(values[j]);
        accumulate(cells, layout_, plane.prefixed_axes);
      }
    }
    row[layout_.cells() - 1] = 0;
  }
  return hash;
}

template class RowFiller<std::uint8_t>;
template class RowFiller<std::uint16_t>;
template class RowFiller<std::int16_t>;
template class RowFiller<std::int32_t>;
template class RowFiller<std::int64_t>;
template class RowFiller<double>;

std::vector<std::uint64_t> hash_rows(const Samples& x) {
  const RowLayout layout({static_cast<std::int64_t>(x.features())}, {Plane{}});
  RowFiller<double> fill(layout, Quantiser(0, 0.0));
  std::vector<double> row(layout.cells());
  std::vector<std::uint64_t> hash(x.rows());
  for (std::size_t i = 0; i < hash.size(); ++i) hash[i] = fill.fill_and_hash(x, i, row.data());
  return hash;
}

}  // namespace morf
