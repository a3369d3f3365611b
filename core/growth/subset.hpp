// A few atoms of a dictionary, drawn once for many nodes, and their values: one column per atom.
//
// A node then reads one number per atom and row, however many cells the atom has and however far apart they lie. It reads a column
// for its rows, and another for the next candidate, so that columns, not rows, stay near. Integers that span less than 2^16 are
// kept as what they exceed the column's lowest by, in 16 bits: that takes a quarter to half the memory, and splits are found among
// narrow values as fast as among those of bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "atoms/dictionary.hpp"
#include "atoms/sampler.hpp"
#include "base/poll.hpp"
#include "data/table.hpp"
#include "projection/projection.hpp"

namespace morf {

class Subset {
 public:
  // Table and dictionary must outlive the subset, and fit together.
  Subset(const Table& from, const Dictionary& of);

  // Draws dictionary.subset() atoms, or all of a finite dictionary. Biases come from the rows that count, in the given order.
  void draw(std::uint64_t key, const std::uint32_t* count, const std::uint32_t* order);

  // Computes some atoms for the given rows, or for more. Different threads may compute different atoms at once.
  void fill(std::size_t first, std::size_t count, const std::uint32_t* rows, std::size_t row_count, const Poll& poll);

  // Reads the values of an atom by row: use(column, offset) gets numbers of 16 bits, to which the offset is added, or values.
  template <class Value, class Use>
  void read(std::size_t j, Use use) const {
    if (columns_[j].narrow) use(reinterpret_cast<const std::uint16_t*>(narrow_->row(j)), static_cast<Value>(columns_[j].offset));
    else use(reinterpret_cast<const Value*>(columns_[j].wide.data()), Value{0});
  }

  // Finds the leaf of each row in a tree, as an index. `next` and thresholds are those of Trees, and each split has picked an atom, in
  // the order of the nodes. Throws std::invalid_argument if the tree makes no sense.
  // `side` has one entry per node if values are missing, else null.
  void find_leaves(const std::int32_t* next, const std::int64_t* threshold, const Side* side, std::size_t nodes,
                   const std::uint32_t* picked, std::size_t splits, std::int32_t* leaf) const;
  void find_leaves(const std::int32_t* next, const double* threshold, const Side* side, std::size_t nodes,
                   const std::uint32_t* picked, std::size_t splits, std::int32_t* leaf) const;

  // Whether values less their offsets may stand for values: all are narrow, and bins are the same for both.
  bool narrow() const {
    return from_.type() != CellType::i64 && !from_.has_gaps() &&
           std::all_of(columns_.begin(), columns_.end(), [](const Column& column) { return column.narrow; });
  }
  bool filled() const {
    return std::all_of(columns_.begin(), columns_.end(), [](const Column& column) { return column.filled; });
  }
  std::int64_t offset(std::size_t j) const { return columns_[j].offset; }

  const AtomList& atoms() const { return atoms_; }
  const Dictionary& dictionary() const { return *dictionary_; }  // whose atoms are the columns
  const Table& table() const { return from_; }
  std::size_t rows() const { return from_.rows(); }
  CellType type() const { return from_.type(); }
  bool has_operations() const { return of_.has_operations(); }

 private:
  static constexpr std::size_t some_atoms = 16;

  struct Column {
    bool filled = false, narrow = false;
    std::int64_t offset = 0;
    std::vector<std::byte> wide{};  // values too far apart for 16 bits
  };

  template <class Value>
  void write(std::size_t j, const Value* values, std::size_t count, const std::uint32_t* rows);
  template <class Threshold>
  void find_leaves_of(const std::int32_t* next, const Threshold* threshold, const Side* side, std::size_t nodes,
                      const std::uint32_t* picked, std::size_t splits, std::int32_t* leaf) const;

  const Table& from_;
  const Dictionary& of_;
  Sampler sampler_;
  AtomList atoms_;
  std::optional<Dictionary> dictionary_;
  std::vector<Column> columns_;
  std::optional<RowBuffer> narrow_;  // a row per column
};

// Draws atoms that may look at a table: independently of each other, or as one node draws them. Biases come from the given rows, each as
// often as it is there. There may be fewer atoms than asked for, where one node runs out of them.
AtomList draw_atoms(const Table& table, const Dictionary& dictionary, const std::vector<std::uint32_t>& rows, std::uint64_t key,
                    std::size_t count, bool one_node);

// Projection onto the columns of a subset: its atoms are single features, one per column. Numbers of 16 bits stand without offset
// where all columns are narrow.
template <class Value>
class ColumnProjector final : public Projection<Value> {
 public:
  ColumnProjector(const Subset& subset, bool offsets) : subset_(subset), offsets_(offsets) {}

  void operator()(const std::uint32_t* rows, std::size_t row_count, const AtomList& atoms, std::size_t first,
                  std::size_t atom_count, Value* values, std::size_t values_stride, Range<Value>* ranges) override {
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

extern template class ColumnProjector<std::uint16_t>;
extern template class ColumnProjector<std::int32_t>;
extern template class ColumnProjector<std::int64_t>;
extern template class ColumnProjector<double>;

}  // namespace morf
