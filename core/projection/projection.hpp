// Projection: rows x atoms -> values. This header has what all projections share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "atoms/atom_list.hpp"
#include "data/table.hpp"

namespace morf {

// Sums wrap in the unsigned type; the cast back to the cell's type undoes it, because atom values fit the cell's type.
template <class Cell>
using SumOf = std::conditional_t<std::is_floating_point_v<Cell>, double,
                                 std::conditional_t<sizeof(Cell) == 8, std::uint64_t, std::uint32_t>>;

template <class Cell>
ValueOf<Cell> value_of_sum(SumOf<Cell> sum) {
  return static_cast<ValueOf<Cell>>(static_cast<Cell>(sum));
}

// The sum of weighted cells of a row, in the order of the terms.
template <class Cell>
ValueOf<Cell> sum_terms(const Cell* row, const std::uint32_t* cell, const double* weight, std::size_t begin, std::size_t end) {
  using Sum = SumOf<Cell>;
  Sum sum = 0;
  for (std::size_t t = begin; t < end; ++t) {
    if constexpr (std::is_floating_point_v<Cell>) sum += weight[t] * row[cell[t]];
    else sum += static_cast<Sum>(static_cast<std::int64_t>(weight[t])) * static_cast<Sum>(row[cell[t]]);
  }
  return value_of_sum<Cell>(sum);
}

// Most atoms are at most two cells added and two subtracted. They are padded to one such pattern, one *slot* per cell, with
// the row's zero cell, so that the kernel has no inner loop.
struct Slots {
  std::uint32_t plus[2], minus[2];
};

// Fills `slots` and returns true if the atom fits the pattern.
inline bool to_slots(const std::uint32_t* cell, const double* weight, std::size_t terms, std::uint32_t zero_cell, Slots& slots) {
  slots = {{zero_cell, zero_cell}, {zero_cell, zero_cell}};
  if (terms == 4 && weight[0] == 1.0 && weight[1] == -1.0 && weight[2] == -1.0 && weight[3] == 1.0) {  // most patches
    slots = {{cell[0], cell[3]}, {cell[1], cell[2]}};
    return true;
  }
  std::size_t plus = 0, minus = 0;
  for (std::size_t t = 0; t < terms; ++t) {
    if (weight[t] == 1.0 && plus < 2) slots.plus[plus++] = cell[t];
    else if (weight[t] == -1.0 && minus < 2) slots.minus[minus++] = cell[t];
    else return false;
  }
  return true;
}

// The same for pairs of boxes: at most four cells added and four subtracted, where a weight of two counts twice.
struct Octet {
  std::uint32_t plus[4], minus[4];
};

inline bool to_octet(const std::uint32_t* cell, const double* weight, std::size_t terms, std::uint32_t zero_cell, Octet& octet) {
  if (terms > 8) return false;
  octet = {{zero_cell, zero_cell, zero_cell, zero_cell}, {zero_cell, zero_cell, zero_cell, zero_cell}};
  std::size_t plus = 0, minus = 0;
  for (std::size_t t = 0; t < terms; ++t) {
    const double size = std::abs(weight[t]);
    if (size != 1.0 && size != 2.0) return false;
    std::uint32_t* const side = weight[t] > 0.0 ? octet.plus : octet.minus;
    std::size_t& count = weight[t] > 0.0 ? plus : minus;
    for (double k = 0.0; k < size; k += 1.0) {
      if (count == 4) return false;
      side[count++] = cell[t];
    }
  }
  return true;
}

// The lowest and the highest value of an atom.
template <class Value>
struct Range {
  Value min, max;
};

// Rows of a node lie far apart, and atoms read them in no order that hardware foresees. Asking for whole rows two blocks
// ahead, a few lines between one atom and the next, hides most of the wait. Worth it where most lines of a row are read and
// the node's rows do not fit the nearest caches anyway.
class Prefetch {
 public:
  // `reads`: how many cells or runs of cells the atoms read of each row.
  template <class Byte>
  Prefetch(const std::uint32_t* rows, std::size_t row_count, std::size_t reads, std::size_t row_bytes, std::size_t atom_count,
           const Byte* base, std::size_t stride)
      : rows_(rows), row_count_(row_count), base_(reinterpret_cast<const char*>(base)), stride_(stride),
        lines_((row_bytes + 63) / 64), lines_per_step_(lines_ / std::max<std::size_t>(atom_count, 1) + 1) {
    if (lines_ > reads || row_count * row_bytes <= near_bytes) lines_ = 0;
  }

  void begin_block(std::size_t first) {
    line_ = lines_;
    if (lines_ == 0 || first + ahead >= row_count_) return;
    line_ = 0;
    for (std::size_t b = 0; b < block; ++b) next_[b] = base_ + rows_[std::min(first + ahead + b, row_count_ - 1)] * stride_;
  }

  // Before each atom.
  void step() {
    if (line_ >= lines_) return;
    for (std::size_t k = 0; k < lines_per_step_; ++k, ++line_)
      for (std::size_t b = 0; b < block; ++b) {
#if defined(__GNUC__)
        __builtin_prefetch(next_[b] + line_ * 64);  // past the end of a row it does no harm
#endif
      }
  }

 private:
  static constexpr std::size_t block = 8, ahead = 2 * block, near_bytes = std::size_t{1} << 19;
  const std::uint32_t* rows_;
  std::size_t row_count_;
  const char* base_;
  std::size_t stride_, lines_, lines_per_step_;
  std::size_t line_ = 0;
  const char* next_[block] = {};
};

// Rows are projected in blocks of this size, and the values of an atom fill whole blocks.
inline constexpr std::size_t row_block = 8;
constexpr std::size_t whole_blocks(std::size_t rows) { return (rows + row_block - 1) / row_block * row_block; }

class GapReader;  // see gap_projection.hpp

// The rest of the engine sees values and not cells.
template <class Value>
class Projection {
 public:
  virtual ~Projection() = default;
  // values[j * values_stride + i] = atom first + j applied to row rows[i]; ranges[j] is their range. The stride is at least
  // whole_blocks(row_count), and what stands behind the values, up to there, may be overwritten.
  virtual void operator()(const std::uint32_t* rows, std::size_t row_count, const AtomList& atoms, std::size_t first,
                          std::size_t atom_count, Value* values, std::size_t values_stride, Range<Value>* ranges) = 0;
  // Returns another one, with scratch memory of its own, for another thread.
  virtual std::unique_ptr<Projection> copy() const = 0;
  // Gives the operations from `first` on the biases that they need, from the rows of a node; see pooling.hpp.
  virtual void set_biases(const std::uint32_t*, const std::uint32_t*, std::size_t, AtomList&, std::size_t) {}
  // Says which rows have missing values; null: none has.
  virtual const GapReader* gaps() const { return nullptr; }
};

}  // namespace morf
