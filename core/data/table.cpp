#include "data/table.hpp"

#include <cstring>
#include <memory>
#include <utility>

#include "data/sample_reader.hpp"

namespace morf {

Table::Table(std::size_t rows, RowLayout layout, CellType type, Arrangement arrangement, bool gaps)
    : type_(type), tiled_(arrangement == Arrangement::tiles), rows_(rows),
      layout_(type == CellType::bytes ? layout.unsummed() : layout),
      buffer_(tiled_ ? tiles() : rows, row_bytes() * (tiled_ ? tile_rows : 1),
              type == CellType::bytes ? byte_margin(layout_) : 0),
      hash_(rows), masks_(gaps ? rows : 0) {
  if (gaps && (type == CellType::u8 || type == CellType::u16 || type == CellType::bytes))
    throw std::invalid_argument("tables with gaps have signed cells");
  if (tiled_ && (type == CellType::bytes || layout.plain_planes != layout.planes.size()))
    throw std::invalid_argument("tables of bytes or with pooled planes have no tiles");
  if (tiled_ && rows % tile_rows != 0) std::memset(buffer_.row(tiles() - 1), 0, row_bytes() * tile_rows);
  if (type == CellType::bytes && !layout.raw()) throw std::invalid_argument("tables of bytes have no derived views");
  if (type == CellType::f64 &&
      std::any_of(layout.planes.begin(), layout.planes.end(), [](const Plane& plane) { return plane.prefixed_axes != 0; }))
    throw std::invalid_argument("float64 tables have no prefix sums: the dictionary must be direct");
}

void Table::fill(const Samples& x, std::size_t first, const Quantiser& quantiser) {
  if (x.gaps() && !has_gaps() && rows_ > 0) throw std::invalid_argument("the table has no room for missing values");
  with_cell_type(type_, [&](auto cell) {
    using Cell = decltype(cell);
    SampleReader<Cell> reader(layout_, quantiser, x.gaps());
    const auto put = [&](std::size_t i, std::size_t to, Cell* row) {
      std::unique_ptr<RowMask> mask = reader.read_and_hash(x, i, row, hash_[to]);
      if (has_gaps()) masks_[to] = std::move(mask);
    };
    if (!tiled_) {
      for (std::size_t i = 0; i < x.rows(); ++i) put(i, first + i, reinterpret_cast<Cell*>(buffer_.row(first + i)));
      return;
    }
    const RowBuffer some(tile_rows, row_bytes());
    for (std::size_t i = 0; i < x.rows();) {
      const std::size_t at = (first + i) % tile_rows, size = std::min(tile_rows - at, x.rows() - i);
      for (std::size_t r = 0; r < size; ++r) put(i + r, first + i + r, reinterpret_cast<Cell*>(some.row(r)));
      copy_tile<Cell>(first + i, size, some, 0, [](Cell& in_tile, Cell& in_row) { in_tile = in_row; });
      i += size;
    }
  });
}

}  // namespace morf
