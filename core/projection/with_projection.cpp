#include "projection/with_projection.hpp"

#include <stdexcept>
#include <type_traits>
#include <utility>

#include "projection/byte_patches.hpp"
#include "projection/gap_projection.hpp"
#include "projection/pooling.hpp"
#include "projection/projector.hpp"

namespace morf {

template <class Value>
std::unique_ptr<Projection<Value>> make_projection(const Table& table, const Dictionary& dictionary) {
  if (table.tiled()) throw std::invalid_argument("tables of tiles are for the atoms of a subset");
  if constexpr (std::is_same_v<Value, std::uint16_t>)
    if (table.type() == CellType::bytes) return make_byte_patch_projection(table, dictionary);
  auto projection = with_cell_type(table.type(), [&](auto cell) -> std::unique_ptr<Projection<Value>> {
    if constexpr (!std::is_same_v<ValueOf<decltype(cell)>, Value>) throw std::logic_error("the table has values of another type");
    else if (dictionary.has_operations()) return std::make_unique<PooledProjector<decltype(cell)>>(table);
    else return std::make_unique<Projector<decltype(cell)>>(table);
  });
  if constexpr (std::is_signed_v<Value>)  // as cells are where values are missing
    if (table.has_gaps()) return std::make_unique<GapProjection<Value>>(std::move(projection), GapReader(table));
  return projection;
}

template std::unique_ptr<Projection<std::uint16_t>> make_projection(const Table&, const Dictionary&);
template std::unique_ptr<Projection<std::int32_t>> make_projection(const Table&, const Dictionary&);
template std::unique_ptr<Projection<std::int64_t>> make_projection(const Table&, const Dictionary&);
template std::unique_ptr<Projection<double>> make_projection(const Table&, const Dictionary&);

}  // namespace morf
