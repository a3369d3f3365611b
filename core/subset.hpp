// A few atoms of a dictionary, drawn once for many nodes, and their values: a table whose features are the atoms.
//
// A node then reads one number an atom, however many cells the atom has and however far apart they lie.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
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
    if (table_ && static_cast<std::size_t>(table_->features()) == atoms_.size()) return;
    dictionary_.emplace(std::vector<std::int64_t>{static_cast<std::int64_t>(atoms_.size())}, true);
    dictionary_->add_axis();
    // The values of atoms fit the cells they are summed from.
    table_.emplace(from_.rows(), *dictionary_, from_.type() == CellType::bytes ? CellType::u16 : from_.type());
  }

  // Writes the values of some rows. Different rows may be filled by different threads at once. `poll` as in grow.hpp.
  template <class Poll>
  void fill(const std::uint32_t* rows, std::size_t row_count, const Poll& poll) {
    with_projection(from_, of_, [&]<class Value>(Projection<Value>& project) {
      const std::size_t count = atoms_.size();
      std::vector<Value> values(count * some_rows);
      std::vector<Range<Value>> ranges(count);
      for (std::size_t i = 0; i < row_count; i += some_rows) {
        poll(count);
        const std::size_t size = std::min(some_rows, row_count - i);
        project(rows + i, size, atoms_, 0, count, values.data(), some_rows, ranges.data());
        with_cell_type(table_->type(), [&](auto cell) { write<decltype(cell)>(rows + i, size, values.data()); });
      }
    });
  }

  const AtomList& atoms() const { return atoms_; }
  const Table& table() const { return *table_; }
  const Dictionary& dictionary() const { return *dictionary_; }  // whose atoms are the columns of the table
  bool has_forms() const { return of_.has_forms(); }

 private:
  static constexpr std::size_t some_rows = 64, some_atoms = 16;

  template <class Cell, class Value>
  void write(const std::uint32_t* rows, std::size_t row_count, const Value* values) {
    const std::size_t count = atoms_.size();
    for (std::size_t first = 0; first < count; first += some_atoms) {
      const std::size_t end = std::min(first + some_atoms, count);
      for (std::size_t b = 0; b < row_count; ++b) {
        Cell* const row = reinterpret_cast<Cell*>(table_->buffer().row(rows[b]));
        for (std::size_t j = first; j < end; ++j) row[j] = static_cast<Cell>(values[j * some_rows + b]);
        row[count] = 0;
      }
    }
  }

  const Table& from_;
  const Dictionary& of_;
  Sampler sampler_;
  AtomList atoms_;
  std::optional<Dictionary> dictionary_;
  std::optional<Table> table_;
};

}  // namespace morf
