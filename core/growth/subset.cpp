#include "growth/subset.hpp"

#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include "projection/gap_projection.hpp"
#include "projection/with_projection.hpp"

namespace morf {
namespace {

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
        const Sum w = std::is_integral_v<Cell> ? static_cast<Sum>(static_cast<std::int64_t>(weight[k]))
                                               : static_cast<Sum>(weight[k]);
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

}  // namespace

Subset::Subset(const Table& from, const Dictionary& of) : from_(from), of_(of), sampler_(of) {
  if (from.tiled() && of.has_operations())
    throw std::invalid_argument("atoms with operations are computed from rows, not from tiles");
}

void Subset::draw(std::uint64_t key, const std::uint32_t* count, const std::uint32_t* order) {
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

void Subset::fill(std::size_t first, std::size_t count, const std::uint32_t* rows, std::size_t row_count, const Poll& poll) {
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

void Subset::find_leaves(const std::int32_t* next, const std::int64_t* threshold, const Side* side, std::size_t nodes,
                         const std::uint32_t* picked, std::size_t splits, std::int32_t* leaf) const {
  find_leaves_of(next, threshold, side, nodes, picked, splits, leaf);
}
void Subset::find_leaves(const std::int32_t* next, const double* threshold, const Side* side, std::size_t nodes,
                         const std::uint32_t* picked, std::size_t splits, std::int32_t* leaf) const {
  find_leaves_of(next, threshold, side, nodes, picked, splits, leaf);
}

template <class Threshold>
void Subset::find_leaves_of(const std::int32_t* next, const Threshold* threshold, const Side* side, std::size_t nodes,
                            const std::uint32_t* picked, std::size_t splits, std::int32_t* leaf) const {
  if (from_.has_gaps() && side == nullptr) throw std::invalid_argument("sides of missing values are lacking");
  const GapReader gaps(from_);
  if (std::is_floating_point_v<Threshold> != (from_.type() == CellType::f64))
    throw std::invalid_argument("thresholds of another type");
  with_cell_type(from_.type(), [&](auto cell) {
    using Value = ValueOf<decltype(cell)>;
    using Limit = std::conditional_t<std::is_floating_point_v<Value>, double, std::int64_t>;
    struct Step {
      std::int32_t next;
      bool narrow;
      const void* column;
      Limit limit;  // values above go right
      std::uint32_t atom;
    };
    std::vector<Step> steps;
    std::size_t split = 0;
    for (std::size_t node = 0; node < nodes; ++node) {
      Step step{next[node], false, nullptr, Limit{}, 0};
      if (next[node] >= 0) {
        if (next[node] <= static_cast<std::int64_t>(node) || next[node] + std::size_t{1} >= nodes || split == splits ||
            picked[split] >= columns_.size())
          throw std::invalid_argument("damaged tree");
        step.atom = picked[split];
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
        const Side of_missing = side == nullptr ? Side::none : side[at];
        const bool missing = of_missing != Side::none &&
                             gaps.touches(atoms_, step->atom, static_cast<std::uint32_t>(row), mark_of(of_missing));
        const bool right = missing        ? !goes_left(of_missing)
                           : step->narrow ? static_cast<const std::uint16_t*>(step->column)[row] > step->limit
                                          : static_cast<Limit>(static_cast<const Value*>(step->column)[row]) > step->limit;
        at = step->next + right;
      }
      leaf[row] = at;
    }
  });
}

// Writes the column of an atom; without `rows`, of all rows.
template <class Value>
void Subset::write(std::size_t j, const Value* values, std::size_t count, const std::uint32_t* rows) {
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
    column.narrow = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) <=
                    std::numeric_limits<std::uint16_t>::max();
    if (column.narrow) {
      column.offset = static_cast<std::int64_t>(low);
      return put(reinterpret_cast<std::uint16_t*>(narrow_->row(j)), low);
    }
  }
  column.wide.resize(from_.rows() * sizeof(Value));
  put(reinterpret_cast<Value*>(column.wide.data()), Value{0});
}

template class ColumnProjector<std::uint16_t>;
template class ColumnProjector<std::int32_t>;
template class ColumnProjector<std::int64_t>;
template class ColumnProjector<double>;

AtomList draw_atoms(const Table& table, const Dictionary& dictionary, const std::vector<std::uint32_t>& rows, std::uint64_t key,
                    std::size_t count, bool one_node) {
  if (!table.suits(dictionary.layout())) throw std::invalid_argument("the table was made for another dictionary");
  for (const std::uint32_t row : rows)
    if (row >= table.rows()) throw std::invalid_argument("no such row");
  AtomList atoms;
  Sampler sampler(dictionary);
  Stream stream(key);
  sampler.begin_node();
  for (std::size_t i = 0; i < count; ++i) {
    if (!one_node) sampler.begin_node();
    sampler.draw(stream, 1, atoms);
  }
  if (!dictionary.has_biases()) return atoms;
  if (rows.empty()) throw std::invalid_argument("biases need rows");
  const std::vector<std::uint32_t> once(rows.size(), 1);
  with_projection(table, dictionary, [&](auto& project) { project.set_biases(rows.data(), once.data(), rows.size(), atoms, 0); });
  return atoms;
}

}  // namespace morf
