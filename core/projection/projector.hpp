// The engine's one kernel: sums of a few weighted cells of a row, for many rows and atoms.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "projection/projection.hpp"

namespace morf {

template <class Cell>
class Projector final : public Projection<ValueOf<Cell>> {
 public:
  using Value = ValueOf<Cell>;

  explicit Projector(const Table& table)
      : base_(table.buffer().row(0)), stride_(table.buffer().stride()), row_bytes_(table.cells() * sizeof(Cell)),
        zero_cell_(static_cast<std::uint32_t>(table.cells() - 1)) {}

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
    const std::uint64_t base = atoms.begin[first];
    cell_ = atoms.cell.data() + base;
    weight_.resize(atoms.begin[first + atom_count] - base);
    for (std::size_t t = 0; t < weight_.size(); ++t) {
      if constexpr (std::is_floating_point_v<Cell>) weight_[t] = atoms.weight[base + t];
      else weight_[t] = static_cast<Sum>(static_cast<std::int64_t>(atoms.weight[base + t]));
    }
    atoms_.resize(atom_count);
    for (std::size_t j = 0; j < atom_count; ++j) {
      Arranged& atom = atoms_[j];
      atom.begin = static_cast<std::uint32_t>(atoms.begin[first + j] - base);
      atom.end = static_cast<std::uint32_t>(atoms.begin[first + j + 1] - base);
      const double* const weight = atoms.weight.data() + base + atom.begin;
      const std::size_t terms = atom.end - atom.begin;
      const bool fits = to_slots(cell_ + atom.begin, weight, terms, zero_cell_, atom.slots);
      const bool corners = atom.slots.plus[1] != zero_cell_ || atom.slots.minus[1] != zero_cell_;
      const bool single = !corners && atom.slots.minus[0] == zero_cell_;
      // Floating point sums are defined in the order of the terms, which slots do not keep.
      if (std::is_floating_point_v<Cell> && !(fits && single)) atom.pattern = Pattern::general;
      else if (!fits)
        atom.pattern = to_octet(cell_ + atom.begin, weight, terms, zero_cell_, atom.octet) ? Pattern::octet : Pattern::general;
      else atom.pattern = corners ? Pattern::corners : single ? Pattern::single : Pattern::difference;
    }
  }

  const Cell* row(std::uint32_t i) const { return reinterpret_cast<const Cell*>(base_ + i * stride_); }

  // Fetches ahead among `rows_left` rows, of which it takes `row_count`.
  void run(const std::uint32_t* rows, std::size_t row_count, std::size_t rows_left, Value* values,
           std::size_t values_stride) const {
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
          out[b] = value_of_sum<Cell>(at(rows[b], s.plus[0]) - at(rows[b], s.minus[0]) - at(rows[b], s.minus[1]) +
                                      at(rows[b], s.plus[1]));
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
        for (std::size_t b = 0; b < count; ++b) out[b] = value_of_sum<Cell>(sums[b]);
        break;
      }
    }
  }

  const std::byte* base_;
  std::size_t stride_, row_bytes_;
  std::uint32_t zero_cell_;
  std::vector<Arranged> atoms_;
  const std::uint32_t* cell_ = nullptr;  // of the terms
  std::vector<Sum> weight_;
};

extern template class Projector<std::uint8_t>;
extern template class Projector<std::uint16_t>;
extern template class Projector<std::int16_t>;
extern template class Projector<std::int32_t>;
extern template class Projector<std::int64_t>;
extern template class Projector<double>;

}  // namespace morf
