// Projection of rows with missing values.
//
// Missing values were filled in, so that every atom has a value (see gaps.hpp). In place of this value, a candidate may send all rows
// whose missing values it touches to one side: there they get a value beyond those of the other rows, and the search for thresholds need
// not know.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "projection/pooling.hpp"
#include "projection/projection.hpp"

namespace morf {

// Whether no position of a pooled atom exists, and else what the atom makes of those that do.
template <class Cell>
std::optional<ValueOf<Cell>> value_of_existing(const Cell* row, const RowMask& mask, const std::uint32_t* cell,
                                               const double* weight, std::size_t terms, const Operation& operation);

// Asks whether atoms touch missing values of the rows of a table. Atoms of a subset stand for others, `columns`.
class GapReader {
 public:
  explicit GapReader(const Table& table, const AtomList* columns = nullptr) : table_(table), columns_(columns) {}

  const RowMask* mask(std::uint32_t row) const { return table_.mask(row); }
  Operation operation_of(const AtomList& atoms, std::size_t atom) const {
    return columns_ == nullptr ? atoms.operation_of(atom) : columns_->operation_of(atoms.cell[atoms.begin[atom]]);
  }
  // Whether a row has values as missing as `mark` says, so that a pooled atom has no value, or that another atom touches.
  bool touches(const AtomList& atoms, std::size_t atom, std::uint32_t row, Mark mark) const;
  // The value of a pooled atom, unless it has none.
  template <class Value>
  std::optional<Value> pooled_value(const AtomList& atoms, std::size_t atom, std::uint32_t row) const;

 private:
  std::pair<const AtomList*, std::size_t> resolve(const AtomList& atoms, std::size_t atom) const {
    if (columns_ == nullptr) return {&atoms, atom};
    return {columns_, atoms.cell[atoms.begin[atom]]};
  }

  const Table& table_;
  const AtomList* columns_;
};

template <class Value>
class GapProjection final : public Projection<Value> {
 public:
  GapProjection(std::unique_ptr<Projection<Value>> filled, GapReader reader) : filled_(std::move(filled)), reader_(reader) {}

  void operator()(const std::uint32_t* rows, std::size_t row_count, const AtomList& atoms, std::size_t first,
                  std::size_t atom_count, Value* values, std::size_t values_stride, Range<Value>* ranges) override {
    (*filled_)(rows, row_count, atoms, first, atom_count, values, values_stride, ranges);
    for (std::size_t j = 0; j < atom_count; ++j)
      put_sides(rows, row_count, atoms, first + j, values + j * values_stride, ranges[j]);
  }

  std::unique_ptr<Projection<Value>> copy() const override { return std::make_unique<GapProjection>(filled_->copy(), reader_); }

  void set_biases(const std::uint32_t* rows, const std::uint32_t* count, std::size_t row_count, AtomList& atoms,
                  std::size_t first) override {
    filled_->set_biases(rows, count, row_count, atoms, first);
  }

  const GapReader* gaps() const override { return &reader_; }

 private:
  // Replaces the values of an atom where it touches missing values, and finds their range anew.
  void put_sides(const std::uint32_t* rows, std::size_t row_count, const AtomList& atoms, std::size_t atom, Value* values,
                 Range<Value>& range) {
    const Side side = atoms.side.empty() ? Side::none : atoms.side[atom];
    const bool pooled = reader_.operation_of(atoms, atom).pooled();
    if (side == Side::none && !pooled) return;  // no row touches any
    touching_.assign(row_count, 0);
    bool any = false, changed = false;
    for (std::size_t i = 0; i < row_count; ++i) {
      const RowMask* const mask = reader_.mask(rows[i]);
      if (mask == nullptr || (pooled && !mask->has_absent())) continue;
      if (pooled) {
        const auto value = reader_.pooled_value<Value>(atoms, atom, rows[i]);
        if (value) values[i] = *value;
        touching_[i] = !value;
        changed = true;
      } else {
        touching_[i] = reader_.touches(atoms, atom, rows[i], mark_of(side));
      }
      any |= touching_[i] != 0;
    }
    if (!any && !changed) return;
    bool found = false;
    for (std::size_t i = 0; i < row_count; ++i) {
      if (touching_[i]) continue;
      range = found ? Range<Value>{std::min(range.min, values[i]), std::max(range.max, values[i])}
                    : Range<Value>{values[i], values[i]};
      found = true;
    }
    if (!any) return;
    if (!found) range = {0, 0};
    const Value beyond = !found ? Value{0} : goes_left(side) ? below(range) : above(range);
    for (std::size_t i = 0; i < row_count; ++i)
      if (touching_[i]) values[i] = beyond;
    range = {std::min(range.min, beyond), std::max(range.max, beyond)};
  }

  // Far enough from the other values for a bin of its own.
  static constexpr int steps = 128;
  static Value below(Range<Value> range) {
    if constexpr (std::is_floating_point_v<Value>) {
      const Value step = step_of(range), beyond = range.min - step;
      return beyond < range.min ? beyond : std::nextafter(range.min, -std::numeric_limits<Value>::infinity());
    } else {
      return static_cast<Value>(std::max<std::int64_t>(std::int64_t{range.min} - step_of(range), -limit));
    }
  }
  static Value above(Range<Value> range) {
    if constexpr (std::is_floating_point_v<Value>) {
      const Value step = step_of(range), beyond = range.max + step;
      return beyond > range.max ? beyond : std::nextafter(range.max, std::numeric_limits<Value>::infinity());
    } else {
      return static_cast<Value>(std::min<std::int64_t>(std::int64_t{range.max} + step_of(range), limit));
    }
  }
  static auto step_of(Range<Value> range) {
    if constexpr (std::is_floating_point_v<Value>) {
      const Value step = range.max / steps - range.min / steps;
      return step > 0 ? step : Value{1};
    } else {
      return (std::int64_t{range.max} - std::int64_t{range.min}) / steps + 1;
    }
  }
  static constexpr std::int64_t limit = std::int64_t{1} << 61;  // values are smaller

  std::unique_ptr<Projection<Value>> filled_;  // of values that were filled in
  GapReader reader_;
  std::vector<std::uint8_t> touching_;
};

extern template class GapProjection<std::int32_t>;
extern template class GapProjection<std::int64_t>;
extern template class GapProjection<double>;

}  // namespace morf
