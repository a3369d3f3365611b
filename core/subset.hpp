// A few atoms of a dictionary, drawn once for many nodes, and their values: a column an atom.
//
// A node then reads one number an atom and row, however many cells the atom has and however far apart they lie. It reads a column
// for its rows, and another for the next candidate, so that columns, not rows, stay near. Integers that span less than 2^16 are
// kept as what they exceed the column's lowest by, in 16 bits: a quarter to half the memory, and splits are found among narrow values
// as fast as among those of bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "bytes.hpp"
#include "dictionary.hpp"
#include "pool.hpp"
#include "project.hpp"
#include "sampler.hpp"
#include "table.hpp"

namespace morf {

// Calls `use` with what projects the rows of a table onto the atoms of its dictionary.
template <class Use>
void with_projection(const Table& table, const Dictionary& dictionary, Use use) {
  if (table.tiled()) throw std::invalid_argument("tables of tiles are for the atoms of a subset");
#if MORFOREST_BYTE_PATCHES
  if (table.type() == CellType::bytes) {
    BytePatchProjector projection(table, dictionary);
    return use(static_cast<Projection<std::uint16_t>&>(projection));
  }
#endif
  with_cell_type(table.type(), [&](auto cell) {
    using Values = Projection<ValueOf<decltype(cell)>>;
    if (dictionary.has_forms()) {
      PooledProjector<decltype(cell)> projection(table);
      return use(static_cast<Values&>(projection));
    }
    Projector<decltype(cell)> projection(table);
    use(static_cast<Values&>(projection));
  });
}

// The values of an atom in whole tiles of a table.
template <class Cell>
class TileProjector {
 public:
  using Value = ValueOf<Cell>;

  explicit TileProjector(const Table& table) : table_(table), zero_cell_(static_cast<std::uint32_t>(table.cells() - 1)) {}

  void operator()(const AtomList& atoms, std::size_t j, Value* out) const {
    const std::size_t begin = atoms.begin[j], terms = atoms.begin[j + 1] - begin;
    const std::uint32_t* const cell = &atoms.cell[begin];
    const double* const weight = &atoms.weight[begin];
    if constexpr (std::is_integral_v<Cell>) {  // sums of floats are defined in the order of the terms
      Slots slots;
      Octet octet;
      if (to_slots(cell, weight, terms, zero_cell_, slots)) return add_and_subtract<2>(slots.plus, slots.minus, out);
      if (to_octet(cell, weight, terms, zero_cell_, octet)) return add_and_subtract<4>(octet.plus, octet.minus, out);
    }
    for (std::size_t t = 0; t < table_.tiles(); ++t, out += tile_rows) {
      Sum sum[tile_rows] = {};
      for (std::size_t k = 0; k < terms; ++k) {
        const Cell* const from = tile(t) + std::size_t{cell[k]} * tile_rows;
        const Sum w = std::is_integral_v<Cell> ? static_cast<Sum>(static_cast<std::int64_t>(weight[k])) : static_cast<Sum>(weight[k]);
        for (std::size_t r = 0; r < tile_rows; ++r) sum[r] += w * static_cast<Sum>(from[r]);
      }
      for (std::size_t r = 0; r < tile_rows; ++r) out[r] = value_of_sum<Cell>(sum[r]);
    }
  }

 private:
  using Sum = SumOf<Cell>;

  template <std::size_t pairs>
  void add_and_subtract(const std::uint32_t* plus, const std::uint32_t* minus, Value* out) const {
    for (std::size_t t = 0; t < table_.tiles(); ++t, out += tile_rows) {
      const Cell *from[pairs], *less[pairs];
      for (std::size_t k = 0; k < pairs; ++k) {
        from[k] = tile(t) + std::size_t{plus[k]} * tile_rows;
        less[k] = tile(t) + std::size_t{minus[k]} * tile_rows;
      }
      for (std::size_t r = 0; r < tile_rows; ++r) {
        Sum sum = 0;
        for (std::size_t k = 0; k < pairs; ++k) sum += static_cast<Sum>(from[k][r]) - static_cast<Sum>(less[k][r]);
        out[r] = value_of_sum<Cell>(sum);
      }
    }
  }

  const Cell* tile(std::size_t t) const { return reinterpret_cast<const Cell*>(table_.buffer().row(t)); }

  const Table& table_;
  std::uint32_t zero_cell_;
};

class Subset {
 public:
  Subset(const Table& from, const Dictionary& of) : from_(from), of_(of), sampler_(of) {}

  // Draws `subset()` atoms of the dictionary, or all of a finite one. Biases come from the rows that count, in the given order.
  void draw(std::uint64_t key, const std::uint32_t* count, const std::uint32_t* order) {
    atoms_.clear();
    sampler_.begin_node();
    Stream stream(key);
    sampler_.draw(stream, of_.subset(), atoms_);
    if (of_.has_biases()) {
      std::vector<std::uint32_t> rows, counts;
      for (std::size_t i = 0; i < from_.rows(); ++i) {
        const std::size_t row = order == nullptr ? i : order[i];
        if (count[row] == 0) continue;
        rows.push_back(static_cast<std::uint32_t>(row));
        counts.push_back(count[row]);
      }
      with_projection(from_, of_, [&](auto& project) { project.set_biases(rows.data(), counts.data(), rows.size(), atoms_, 0); });
    }
    for (Column& column : columns_) column.filled = false;
    if (columns_.size() == atoms_.size()) return;
    dictionary_.emplace(std::vector<std::int64_t>{static_cast<std::int64_t>(atoms_.size())}, true);
    dictionary_->add_axis();
    columns_.resize(atoms_.size());
    if (from_.type() != CellType::f64) narrow_.emplace(atoms_.size(), from_.rows() * sizeof(std::uint16_t));
  }

  // Computes some atoms for the given rows, or more. Different atoms may be computed by different threads at once. `poll` as in
  // grow.hpp.
  template <class Poll>
  void fill(std::size_t first, std::size_t count, const std::uint32_t* rows, std::size_t row_count, const Poll& poll) {
    if (from_.tiled()) {
      with_cell_type(from_.type(), [&](auto cell) {
        const TileProjector<decltype(cell)> project(from_);
        std::vector<ValueOf<decltype(cell)>> values(from_.tiles() * tile_rows);
        for (std::size_t j = first; j < first + count; ++j) {
          poll(from_.rows());
          project(atoms_, j, values.data());
          write(j, values.data(), from_.rows(), nullptr);
        }
      });
      return;
    }
    with_projection(from_, of_, [&]<class Value>(Projection<Value>& project) {
      const std::size_t stride = whole_blocks(row_count);
      std::vector<Value> values(some_atoms * stride);
      Range<Value> ranges[some_atoms];
      for (std::size_t j = first; j < first + count; j += some_atoms) {
        poll(row_count);
        const std::size_t size = std::min(some_atoms, first + count - j);
        project(rows, row_count, atoms_, j, size, values.data(), stride, ranges);
        for (std::size_t k = 0; k < size; ++k) write(j + k, &values[k * stride], row_count, rows);
      }
    });
  }

  // The values of an atom, by row: use(column, offset) with numbers of 16 bits, to which the offset is added, or with values.
  template <class Value, class Use>
  void read(std::size_t j, Use use) const {
    if (columns_[j].narrow) use(reinterpret_cast<const std::uint16_t*>(narrow_->row(j)), static_cast<Value>(columns_[j].offset));
    else use(reinterpret_cast<const Value*>(columns_[j].wide.data()), Value{0});
  }

  // The leaf of each row in a tree, as an index: `next` and thresholds as in Trees (grow.hpp), a picked atom a split, in the order of
  // the nodes.
  template <class Threshold>
  void find_leaves(const std::int32_t* next, const Threshold* threshold, std::size_t nodes, const std::uint32_t* picked,
                   std::size_t splits, std::int32_t* leaf) const {
    if (std::is_floating_point_v<Threshold> != (from_.type() == CellType::f64)) throw std::invalid_argument("thresholds of another type");
    with_cell_type(from_.type(), [&](auto cell) {
      using Value = ValueOf<decltype(cell)>;
      using Limit = std::conditional_t<std::is_floating_point_v<Value>, double, std::int64_t>;
      struct Step {
        std::int32_t next;
        bool narrow;
        const void* column;
        Limit limit;  // values above go right
      };
      std::vector<Step> steps;
      std::size_t split = 0;
      for (std::size_t node = 0; node < nodes; ++node) {
        Step step{next[node], false, nullptr, Limit{}};
        if (next[node] >= 0) {
          if (next[node] <= static_cast<std::int64_t>(node) || next[node] + std::size_t{1} >= nodes || split == splits || picked[split] >= columns_.size())
            throw std::invalid_argument("damaged tree");
          const Column& column = columns_[picked[split++]];
          step.narrow = column.narrow;
          if constexpr (std::is_floating_point_v<Value>) step.limit = static_cast<Limit>(threshold[node]);
          else step.limit = (static_cast<Limit>(threshold[node]) >> 1) - column.offset;  // v <= floor(t / 2) is 2 v <= t
          step.column = column.narrow ? static_cast<const void*>(narrow_->row(picked[split - 1])) : column.wide.data();
        }
        steps.push_back(step);
      }
      for (std::size_t row = 0; row < from_.rows(); ++row) {
        std::int32_t at = 0;
        for (const Step* step = steps.data(); step->next >= 0; step = &steps[static_cast<std::size_t>(at)]) {
          const bool right = step->narrow ? static_cast<const std::uint16_t*>(step->column)[row] > step->limit
                                          : static_cast<Limit>(static_cast<const Value*>(step->column)[row]) > step->limit;
          at = step->next + right;
        }
        leaf[row] = at;
      }
    });
  }

  // Whether values less their offsets may stand for values: all are narrow, and bins are the same for both.
  bool narrow() const {
    return from_.type() != CellType::i64 && std::all_of(columns_.begin(), columns_.end(), [](const Column& column) { return column.narrow; });
  }
  bool filled() const {
    return std::all_of(columns_.begin(), columns_.end(), [](const Column& column) { return column.filled; });
  }
  std::int64_t offset(std::size_t j) const { return columns_[j].offset; }

  const AtomList& atoms() const { return atoms_; }
  const Dictionary& dictionary() const { return *dictionary_; }  // whose atoms are the columns
  std::size_t rows() const { return from_.rows(); }
  CellType type() const { return from_.type(); }
  bool has_forms() const { return of_.has_forms(); }

 private:
  static constexpr std::size_t some_atoms = 16;

  struct Column {
    bool filled = false, narrow = false;
    std::int64_t offset = 0;
    std::vector<std::byte> wide{};  // values too far apart for 16 bits
  };

  // Writes the column of an atom; null: of all rows.
  template <class Value>
  void write(std::size_t j, const Value* values, std::size_t count, const std::uint32_t* rows) {
    Column& column = columns_[j];
    const auto put = [&](auto* to, Value offset) {
      using To = std::remove_pointer_t<decltype(to)>;
      if (rows == nullptr)
        for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<To>(values[i] - offset);
      else
        for (std::size_t i = 0; i < count; ++i) to[rows[i]] = static_cast<To>(values[i] - offset);
    };
    column.filled = true;
    column.narrow = false;
    column.offset = 0;
    if constexpr (std::is_integral_v<Value>) {
      Value low = count == 0 ? Value{0} : values[0], high = low;
      for (std::size_t i = 0; i < count; ++i) {
        low = values[i] < low ? values[i] : low;
        high = values[i] > high ? values[i] : high;
      }
      column.narrow = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) <= std::numeric_limits<std::uint16_t>::max();
      if (column.narrow) {
        column.offset = static_cast<std::int64_t>(low);
        return put(reinterpret_cast<std::uint16_t*>(narrow_->row(j)), low);
      }
    }
    column.wide.resize(from_.rows() * sizeof(Value));
    put(reinterpret_cast<Value*>(column.wide.data()), Value{0});
  }

  const Table& from_;
  const Dictionary& of_;
  Sampler sampler_;
  AtomList atoms_;
  std::optional<Dictionary> dictionary_;
  std::vector<Column> columns_;
  std::optional<RowBuffer> narrow_;  // a column a row
};

// Projection onto the columns of a subset: its atoms are single features, one a column. Numbers of 16 bits stand without offset
// where all columns are narrow.
template <class Value>
class ColumnProjector final : public Projection<Value> {
 public:
  ColumnProjector(const Subset& subset, bool offsets) : subset_(subset), offsets_(offsets) {}

  void operator()(const std::uint32_t* rows, std::size_t row_count, const AtomList& atoms, std::size_t first, std::size_t atom_count,
                  Value* values, std::size_t values_stride, Range<Value>* ranges) override {
    for (std::size_t j = 0; j < atom_count; ++j) {
      Value* const out = values + j * values_stride;
      subset_.read<Value>(atoms.cell[atoms.begin[first + j]], [&](const auto* column, Value offset) {
        const Value added = offsets_ ? offset : Value{0};
        for (std::size_t i = 0; i < row_count; ++i) out[i] = static_cast<Value>(static_cast<Value>(column[rows[i]]) + added);
      });
      std::fill(out + row_count, out + whole_blocks(row_count), Value{0});  // whole blocks hold numbers
      Value low = out[0], high = out[0];
      for (std::size_t i = 0; i < row_count; ++i) {
        low = out[i] < low ? out[i] : low;
        high = out[i] > high ? out[i] : high;
      }
      ranges[j] = {low, high};
    }
  }

  std::unique_ptr<Projection<Value>> copy() const override { return std::make_unique<ColumnProjector>(*this); }

 private:
  const Subset& subset_;
  bool offsets_;
};

}  // namespace morf
