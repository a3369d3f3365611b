// Reads samples into rows of cells, filling in what is missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>

#include "data/gaps.hpp"
#include "data/row_filler.hpp"

namespace morf {

// Reads one sample after another. It holds scratch memory, and each thread has its own.
template <class Cell>
class SampleReader {
 public:
  // The layout must outlive the reader. Values may be missing if there are `gaps`.
  SampleReader(const RowLayout& layout, const Quantiser& quantiser, bool gaps)
      : fill_(layout, quantiser), make_mask_(layout, std::is_floating_point_v<Cell>) {
    if (gaps) gaps_.emplace(layout);
  }

  // Writes the cells of a sample, and returns the mask of what is missing there; null: nothing is.
  std::unique_ptr<RowMask> read(const Samples& x, std::size_t sample, Cell* row) {
    if (gaps_ && gaps_->read(x, sample)) {
      fill_.fill(gaps_->filled(), 0, row);
      return make_mask_(gaps_->marks());
    }
    fill_.fill(x, sample, row);
    return nullptr;
  }

  // The same; sets the hash of the values and of what is missing.
  std::unique_ptr<RowMask> read_and_hash(const Samples& x, std::size_t sample, Cell* row, std::uint64_t& hash) {
    if (gaps_ && gaps_->read(x, sample)) {
      hash = fill_.fill_and_hash(gaps_->filled(), 0, row) ^ MaskMaker::hash(gaps_->marks());
      return make_mask_(gaps_->marks());
    }
    hash = fill_.fill_and_hash(x, sample, row);
    return nullptr;
  }

 private:
  RowFiller<Cell> fill_;
  std::optional<GapFiller> gaps_;
  MaskMaker make_mask_;
};

}  // namespace morf
