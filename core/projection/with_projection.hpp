// The choice among projections.
#pragma once

#include <memory>

#include "atoms/dictionary.hpp"
#include "data/table.hpp"
#include "projection/projection.hpp"

namespace morf {

// What projects the rows of a table onto the atoms of its dictionary. `Value` must be that of the table's cells.
template <class Value>
std::unique_ptr<Projection<Value>> make_projection(const Table& table, const Dictionary& dictionary);

// Calls `use` with what projects the rows of a table onto the atoms of its dictionary. It is compiled per type of values, not per type
// of cells and projection.
template <class Use>
void with_projection(const Table& table, const Dictionary& dictionary, Use use) {
  with_cell_type(table.type(), [&](auto cell) { use(*make_projection<ValueOf<decltype(cell)>>(table, dictionary)); });
}

}  // namespace morf
