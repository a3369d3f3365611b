// Random data for tests, and slow definitions to hold the core against.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "atoms/dictionary.hpp"
#include "data/table.hpp"

// Not the core's generator, so that a mistake in that one cannot hide.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 2 + 1) {
    for (int i = 0; i < 8; ++i) bits();
  }
  std::uint64_t bits() {  // xorshift64*
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1DULL;
  }
  // Both ends belong to the range.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    const std::uint64_t size = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) + 1;
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + (size == 0 ? bits() : (bits() >> 1) % size));
  }
  std::size_t index(std::size_t size) { return static_cast<std::size_t>(between(0, static_cast<std::int64_t>(size) - 1)); }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }
  bool chance(double probability) { return unit() < probability; }
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[index(i)]);
  }

 private:
  std::uint64_t state_;
};

inline std::vector<std::int64_t> random_shape(Random& random, std::size_t rank) {
  static constexpr std::int64_t longest[] = {1, 60, 12, 6, 4, 3};
  std::vector<std::int64_t> shape(rank);
  for (auto& length : shape) length = random.between(1, longest[rank]);
  return shape;
}

// The feature moved along the two windows, round each axis.
inline std::size_t moved(const std::vector<std::int64_t>& shape, std::size_t feature, const morf::Operation& operation,
                         std::size_t i, std::size_t j) {
  std::size_t result = 0, stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    const auto length = static_cast<std::size_t>(shape[axis]);
    std::size_t place = feature / stride % length;
    // Axes of length one share a stride with their neighbour, and nothing moves along them.
    if (length > 1 && operation.window[0].count > 1 && operation.window[0].stride == stride) place += i;
    if (length > 1 && operation.window[1].count > 1 && operation.window[1].stride == stride) place += j;
    result += place % length * stride;
    stride *= length;
  }
  return result;
}

// Patches of any sizes and boundaries, some of them not contiguous.
inline void add_random_patch(Random& random, morf::Dictionary& dictionary, std::int64_t longest) {
  std::vector<std::int64_t> low, high;
  std::vector<morf::Boundary> boundary;
  std::vector<bool> contiguous;
  for (const std::int64_t length : dictionary.shape()) {
    high.push_back(random.between(1, std::min(length, longest)));
    low.push_back(random.between(1, high.back()));
    boundary.push_back(static_cast<morf::Boundary>(random.index(3)));
    contiguous.push_back(random.chance(0.8));
  }
  dictionary.add_patch({low, high}, boundary, contiguous);
}

// The features whose sum each cell of a row of plain planes holds, by definition: in a plane with prefix sums along an axis those up to
// the cell's index along it, along any other axis the index itself. The last cell is the sum of none.
inline std::vector<std::vector<std::uint32_t>> features_of_cells(const morf::RowLayout& layout) {
  const std::vector<std::int64_t>& shape = layout.shape;
  const std::int64_t features = layout.features;
  std::vector<std::vector<std::uint32_t>> of_cell;
  for (const morf::Plane& plane : layout.planes)
    for (std::int64_t cell = 0; cell < features; ++cell) {
      of_cell.emplace_back();
      for (std::int64_t feature = 0; feature <= cell; ++feature) {
        bool inside = true;
        std::int64_t c = cell, f = feature;
        for (std::size_t axis = shape.size(); axis-- > 0;) {
          const std::int64_t at = f % shape[axis], end = c % shape[axis];
          inside &= plane.prefixed_axes >> axis & 1u ? at <= end : at == end;
          f /= shape[axis];
          c /= shape[axis];
        }
        if (inside) of_cell.back().push_back(static_cast<std::uint32_t>(feature));
      }
    }
  of_cell.emplace_back();
  return of_cell;
}

// A table of samples with the rows that a dictionary needs.
template <class In>
morf::Table make_table(const In* x, std::size_t rows, const morf::Dictionary& dictionary, morf::CellType type,
                       const morf::Quantiser& quantiser) {
  return morf::Table({x, rows, static_cast<std::size_t>(dictionary.features())}, dictionary.layout(), type, quantiser);
}

// The weights of atom `i` on the sample's features.
inline std::vector<double> weights_on_features(const morf::AtomList& atoms, std::size_t i,
                                               const std::vector<std::vector<std::uint32_t>>& of_cell, std::size_t features) {
  std::vector<double> weights(features, 0.0);
  for (std::size_t t = atoms.begin[i]; t < atoms.begin[i + 1]; ++t)
    for (const std::uint32_t feature : of_cell.at(atoms.cell[t])) weights[feature] += atoms.weight[t];
  return weights;
}
