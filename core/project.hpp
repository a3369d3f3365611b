// Projection: rows x atoms -> values, the engine's one kernel: sums of a few weighted cells of a row.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "table.hpp"

namespace morf {

// Sums wrap in the unsigned type; the cast back to the cell's type undoes it, because atom values fit the cell's type.
template <class Cell>
using SumOf = std::conditional_t<std::is_floating_point_v<Cell>, double,
                                 std::conditional_t<sizeof(Cell) == 8, std::uint64_t, std::uint32_t>>;

template <class Cell>
ValueOf<Cell> value_of_sum(SumOf<Cell> sum) {
  return static_cast<ValueOf<Cell>>(static_cast<Cell>(sum));
}

// Most atoms are at most two cells added and two subtracted. They are padded to one such pattern, a *slot* a cell, with
// the row's zero cell, so that the kernel has no inner loop.
struct Slots {
  std::uint32_t plus[2], minus[2];
};

// Fills `slots` and returns true if the atom fits the pattern.
inline bool to_slots(const std::uint32_t* cell, const double* weight, std::size_t terms, std::uint32_t zero_cell,
                     Slots& slots) {
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

// The same for pairs of rectangles: at most four cells added and four subtracted, where a weight of two counts twice.
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
        lines_((row_bytes + 63) / 64), lines_a_step_(lines_ / std::max<std::size_t>(atom_count, 1) + 1) {
    if (lines_ > reads || row_count * row_bytes <= near_bytes) lines_ = 0;
  }

  void begin_block(std::size_t first) {
    line_ = lines_;
    if (first + ahead >= row_count_) return;
    line_ = 0;
    for (std::size_t b = 0; b < block; ++b)
      next_[b] = base_ + rows_[std::min(first + ahead + b, row_count_ - 1)] * stride_;
  }

  // Before each atom.
  void step() {
    if (line_ >= lines_) return;
    for (std::size_t k = 0; k < lines_a_step_; ++k, ++line_)
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
  std::size_t stride_, lines_, lines_a_step_;
  std::size_t line_ = 0;
  const char* next_[block] = {};
};

// Rows are projected in blocks of this size, and the values of an atom fill whole blocks.
inline constexpr std::size_t row_block = 8;
constexpr std::size_t whole_blocks(std::size_t rows) { return (rows + row_block - 1) / row_block * row_block; }

// The rest of the engine sees values and not cells.
template <class Value>
class Projection {
 public:
  virtual ~Projection() = default;
  // values[j * values_stride + i] = atom first + j applied to row rows[i]; ranges[j] is their range. The stride is at least
  // whole_blocks(row_count), and what stands behind the values, up to there, may be overwritten.
  virtual void operator()(const std::uint32_t* rows, std::size_t row_count, const AtomList& atoms, std::size_t first,
                          std::size_t atom_count, Value* values, std::size_t values_stride, Range<Value>* ranges) = 0;
  // For another thread: it has scratch memory of its own.
  virtual std::unique_ptr<Projection> copy() const = 0;
  // Gives forms from `first` on the biases they need, from the rows of a node; see pool.hpp.
  virtual void set_biases(const std::uint32_t*, const std::uint32_t*, std::size_t, AtomList&, std::size_t) {}
};

template <class Cell>
class Projector final : public Projection<ValueOf<Cell>> {
 public:
  using Value = ValueOf<Cell>;

  explicit Projector(const Table& table)
      : base_(table.buffer().row(0)), stride_(table.buffer().stride()), row_bytes_(table.cells() * sizeof(Cell)),
        zero_cell_(static_cast<std::uint32_t>(table.cells() - 1)), wide_(!table.summed()) {}

  void operator()(const std::uint32_t* rows, std::size_t row_count, const AtomList& atoms, std::size_t first,
                  std::size_t atom_count, Value* values, std::size_t values_stride, Range<Value>* ranges) override {
    arrange(atoms, first, atom_count);
    // A chunk of rows at a time, so that the values are still near when their range is taken.
    for (std::size_t i = 0; i < row_count; i += chunk) {
      const std::size_t size = std::min(chunk, row_count - i);
      run(rows + i, size, row_count - i, values + i, values_stride);
      for (std::size_t j = 0; j < atom_count; ++j) {
        const Value* v = values + j * values_stride + i;
        Value low = i == 0 ? v[0] : ranges[j].min, high = i == 0 ? v[0] : ranges[j].max;
        for (std::size_t k = 0; k < size; ++k) {
          low = v[k] < low ? v[k] : low;
          high = v[k] > high ? v[k] : high;
        }
        ranges[j] = {low, high};
      }
    }
  }

  std::unique_ptr<Projection<Value>> copy() const override { return std::make_unique<Projector>(*this); }

  static Value sum_terms(const Cell* row, const std::uint32_t* cell, const double* weight, std::size_t begin,
                         std::size_t end) {
    using Sum = SumOf<Cell>;
    Sum sum = 0;
    for (std::size_t t = begin; t < end; ++t) {
      if constexpr (std::is_floating_point_v<Cell>)
        sum += weight[t] * row[cell[t]];
      else
        sum += static_cast<Sum>(static_cast<std::int64_t>(weight[t])) * static_cast<Sum>(row[cell[t]]);
    }
    return value_of_sum<Cell>(sum);
  }

 private:
  using Sum = SumOf<Cell>;
  enum class Pattern : std::uint8_t { single, difference, corners, octet, general };

  static constexpr std::size_t block = row_block;  // whose cells stay in the first-level cache while all atoms pass
  static constexpr std::size_t chunk = 512;

  // What the kernel needs to know of an atom.
  struct Arranged {
    Pattern pattern;
    union {
      Slots slots;
      Octet octet;
    };
    std::uint32_t begin, end;  // of its terms, counted from the first atom's
  };

  // The cheapest pattern that each atom fits.
  void arrange(const AtomList& atoms, std::size_t first, std::size_t atom_count) {
    const std::uint32_t base = atoms.begin[first];
    cell_ = atoms.cell.data() + base;
    weight_.resize(atoms.begin[first + atom_count] - base);
    for (std::size_t t = 0; t < weight_.size(); ++t) {
      if constexpr (std::is_floating_point_v<Cell>) weight_[t] = atoms.weight[base + t];
      else weight_[t] = static_cast<Sum>(static_cast<std::int64_t>(atoms.weight[base + t]));
    }
    atoms_.resize(atom_count);
    for (std::size_t j = 0; j < atom_count; ++j) {
      Arranged& atom = atoms_[j];
      atom.begin = atoms.begin[first + j] - base;
      atom.end = atoms.begin[first + j + 1] - base;
      const double* const weight = atoms.weight.data() + base + atom.begin;
      const std::size_t terms = atom.end - atom.begin;
      const bool fits = to_slots(cell_ + atom.begin, weight, terms, zero_cell_, atom.slots);
      const bool corners = atom.slots.plus[1] != zero_cell_ || atom.slots.minus[1] != zero_cell_;
      const bool single = !corners && atom.slots.minus[0] == zero_cell_;
      // Floating point sums are defined in the order of the terms, which slots do not keep.
      if (std::is_floating_point_v<Cell> && !(fits && single)) atom.pattern = Pattern::general;
      else if (!fits) atom.pattern = to_octet(cell_ + atom.begin, weight, terms, zero_cell_, atom.octet) ? Pattern::octet : Pattern::general;
      else atom.pattern = corners ? Pattern::corners : single ? Pattern::single : Pattern::difference;
    }
  }

  const Cell* row(std::uint32_t i) const { return reinterpret_cast<const Cell*>(base_ + i * stride_); }

  // Fetches ahead among `rows_left` rows, of which it takes `row_count`.
  void run(const std::uint32_t* rows, std::size_t row_count, std::size_t rows_left, Value* values, std::size_t values_stride) const {
    // Corners are neighbours by twos.
    Prefetch prefetch(rows, rows_left, std::min(weight_.size(), 2 * atoms_.size()), row_bytes_, atoms_.size(), base_, stride_);
    for (std::size_t i = 0; i < row_count; i += block) {
      const Cell* cells[block];
      for (std::size_t b = 0; b < block; ++b) cells[b] = row(rows[std::min(i + b, row_count - 1)]);
      if (row_count - i <= block / 2) {
        for (std::size_t j = 0; j < atoms_.size(); ++j) project<block / 2>(cells, atoms_[j], values + j * values_stride + i);
        break;
      }
      prefetch.begin_block(i);
      Value* out = values + i;
      for (const Arranged& atom : atoms_) {
        prefetch.step();
        project<block>(cells, atom, out);
        out += values_stride;
      }
    }
  }

  // One atom applied to a few rows; its cells are read once for all of them.
  template <std::size_t count>
  void project(const Cell* const* rows, const Arranged& atom, Value* out) const {
    const Slots& s = atom.slots;
    const auto at = [](const Cell* row, std::uint32_t cell) { return static_cast<Sum>(row[cell]); };
    switch (atom.pattern) {
      case Pattern::single:
        for (std::size_t b = 0; b < count; ++b) out[b] = static_cast<Value>(rows[b][s.plus[0]]);
        break;
      case Pattern::difference:
        for (std::size_t b = 0; b < count; ++b) out[b] = value_of_sum<Cell>(at(rows[b], s.plus[0]) - at(rows[b], s.minus[0]));
        break;
      case Pattern::corners:
        for (std::size_t b = 0; b < count; ++b)
          out[b] = value_of_sum<Cell>(at(rows[b], s.plus[0]) - at(rows[b], s.minus[0]) - at(rows[b], s.minus[1]) + at(rows[b], s.plus[1]));
        break;
      case Pattern::octet: {
        const Octet o = atom.octet;
        for (std::size_t b = 0; b < count; ++b) {
          const Cell* const row = rows[b];
          const Sum first = at(row, o.plus[0]) + at(row, o.plus[1]) - at(row, o.minus[0]) - at(row, o.minus[1]);
          const Sum second = at(row, o.plus[2]) + at(row, o.plus[3]) - at(row, o.minus[2]) - at(row, o.minus[3]);
          out[b] = value_of_sum<Cell>(first + second);
        }
        break;
      }
      case Pattern::general: {
        Sum sums[count] = {};
        for (std::uint32_t t = atom.begin; t < atom.end; ++t) {
          const std::uint32_t cell = cell_[t];
          const Sum weight = weight_[t];
          for (std::size_t b = 0; b < count; ++b) sums[b] += weight * at(rows[b], cell);
        }
        // Sums of cells that are no prefix sums do not wrap: they may be wider than a cell.
        if (std::is_same_v<Cell, std::int16_t> && wide_)
          for (std::size_t b = 0; b < count; ++b) out[b] = static_cast<Value>(sums[b]);
        else
          for (std::size_t b = 0; b < count; ++b) out[b] = value_of_sum<Cell>(sums[b]);
        break;
      }
    }
  }

  const std::byte* base_;
  std::size_t stride_, row_bytes_;
  std::uint32_t zero_cell_;
  bool wide_;
  std::vector<Arranged> atoms_;
  const std::uint32_t* cell_ = nullptr;  // of the terms
  std::vector<Sum> weight_;
};

}  // namespace morf
