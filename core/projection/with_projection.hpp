// The choice among projections.
#pragma once

#include <stdexcept>
#include <type_traits>

#include "projection/byte_patches.hpp"
#include "projection/gap_projection.hpp"
#include "projection/pooling.hpp"
#include "projection/projector.hpp"

namespace morf {

// Calls `use` with what projects the rows of a table onto the atoms of its dictionary.
template <class Use>
void with_projection(const Table& table, const Dictionary& dictionary, Use use) {
  if (table.tiled()) throw std::invalid_argument("tables of tiles are for the atoms of a subset");
  if (table.type() == CellType::bytes) return use(*make_byte_patch_projection(table, dictionary));
  with_cell_type(table.type(), [&](auto cell) {
    using Values = Projection<ValueOf<decltype(cell)>>;
    const auto pass = [&](Values& filled) {
      if constexpr (std::is_signed_v<decltype(cell)>) {  // as cells are where values are missing
        if (table.has_gaps()) {
          GapProjection<ValueOf<decltype(cell)>> gapped(filled, GapReader(table));
          return use(static_cast<Values&>(gapped));
        }
      }
      use(filled);
    };
    if (dictionary.has_operations()) {
      PooledProjector<decltype(cell)> projection(table);
      return pass(projection);
    }
    Projector<decltype(cell)> projection(table);
    pass(projection);
  });
}

}  // namespace morf
