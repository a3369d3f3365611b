// Writes the cells of samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/prefix_sums.hpp"
#include "data/table.hpp"

namespace morf {

// Writes the cells of one sample after another, whatever their views. It holds scratch memory, and each thread has its own.
template <class Cell>
class RowFiller {
 public:
  // The layout must outlive the filler.
  RowFiller(const RowLayout& layout, const Quantiser& quantiser);

  void fill(const Samples& x, std::size_t sample, Cell* row);
  // The same; returns a hash of the values that does not depend on their input type.
  std::uint64_t fill_and_hash(const Samples& x, std::size_t sample, Cell* row);

 private:
  template <bool hashed>
  std::uint64_t run(const Samples& x, std::size_t sample, Cell* row);

  const RowLayout& layout_;
  RowLayout unsummed_;
  Quantiser quantiser_;
  bool raw_only_;
  ViewDeriver derive_;
  std::vector<std::int64_t> raw_;
};

extern template class RowFiller<std::uint8_t>;
extern template class RowFiller<std::uint16_t>;
extern template class RowFiller<std::int16_t>;
extern template class RowFiller<std::int32_t>;
extern template class RowFiller<std::int64_t>;
extern template class RowFiller<double>;

// A hash of the values of each sample, whatever their type and whatever cells they would make.
std::vector<std::uint64_t> hash_rows(const Samples& x);

}  // namespace morf
