#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

#include "data/row_filler.hpp"
#include "data/sample_reader.hpp"
#include "forest/forest.hpp"
#include "forest/tree_walk.hpp"

namespace morf {

void Forest::predict(const Samples& x, CellType type, const Quantiser& quantiser, int extra_bits, double* out, bool mean) const {
  const double trees_inverse = 1.0 / static_cast<double>(trees());
  std::vector<std::uint32_t> votes(has_silent_leaves() ? x.rows() : 0);
  each_block(x, type, quantiser, extra_bits,
             [&](std::size_t first, std::size_t size, std::size_t tree, const std::int32_t* leaf) {
               if (votes.empty()) {
                 for (std::size_t i = 0; i < size; ++i) add_leaf(leaf[i], out + (first + i) * outputs());
                 if (mean && tree + 1 == trees())
                   for (std::size_t v = first * outputs(); v < (first + size) * outputs(); ++v) out[v] *= trees_inverse;
                 return;
               }
               for (std::size_t i = first; i < first + size; ++i) {
                 double* const of_row = out + i * outputs();
                 votes[i] += add_vote(leaf[i - first], of_row);
                 if (!mean || tree + 1 < trees()) continue;
                 if (votes[i] == 0) std::copy(prior_.begin(), prior_.end(), of_row);
                 else
                   for (std::size_t k = 0; k < outputs(); ++k) of_row[k] /= votes[i];
               }
             });
}

void Forest::apply(const Samples& x, CellType type, const Quantiser& quantiser, int extra_bits, std::int32_t* out) const {
  each_block(x, type, quantiser, extra_bits,
             [&](std::size_t first, std::size_t size, std::size_t tree, const std::int32_t* leaf) {
               for (std::size_t i = 0; i < size; ++i) out[(first + i) * trees() + tree] = leaf[i] - root(tree);
             });
}

void Forest::find_leaves(std::size_t tree, const Table& table, std::int32_t* out) const {
  each_table_block(table, nullptr, 0, table.rows(), [&](std::size_t first, std::size_t size, const Walk& walk) {
    walk(tree, out + first);
    for (std::size_t i = first; i < first + size; ++i) out[i] -= root(tree);
  });
}

void Forest::add_tree(std::size_t tree, const Table& table, const std::uint32_t* rows, std::size_t row_count, double* out,
                      std::uint32_t* votes) const {
  each_table_block(table, rows, 0, row_count, [&](std::size_t first, std::size_t size, const Walk& walk) {
    std::int32_t leaf[block_rows];
    walk(tree, leaf);
    for (std::size_t i = 0; i < size; ++i) {
      const bool vote = add_vote(leaf[i], out + rows[first + i] * outputs());
      if (votes != nullptr) votes[rows[first + i]] += vote;
    }
  });
}

void Forest::add_trees(const Table& table, std::size_t begin, std::size_t count, double* out) const {
  each_table_block(table, nullptr, begin, count, [&](std::size_t first, std::size_t size, const Walk& walk) {
    std::int32_t leaf[block_rows];
    for (std::size_t tree = 0; tree < trees(); ++tree) {
      walk(tree, leaf);
      for (std::size_t i = 0; i < size; ++i) add_leaf(leaf[i], out + (first + i) * outputs());
    }
  });
}

void Forest::each_table_block(const Table& table, const std::uint32_t* rows, std::size_t begin, std::size_t row_count,
                              const UseBlock& use) const {
  if (real_ != (table.type() == CellType::f64) || !table.suits(layout_))
    throw std::invalid_argument("the table does not fit the forest");
  const auto number = [&](std::size_t i) { return rows == nullptr ? begin + i : rows[i]; };
  const auto row = [&](std::size_t i) { return table.buffer().row(number(i)); };
  const auto use_cells = [&](CellType type, const auto* const* cells, const RowMask* const* masks, std::size_t first,
                             std::size_t size) {
    use(first, size, [&](std::size_t tree, std::int32_t* leaf) {
      std::fill_n(leaf, size, root(tree));
      walk_masked(type, cells, masks, size, 0, {}, leaf);
    });
  };
  if (table.type() == CellType::bytes && !takes_bytes()) {
    // Images too large for nodes of bytes: prefix sums are made a block at a time. Narrow patches sum to less than 2^16.
    const RowBuffer buffer(block_rows, layout_.cells() * sizeof(std::uint16_t));
    const std::uint16_t* cells[block_rows];
    RowFiller<std::uint16_t> fill(layout_, Quantiser(0, 255.0));
    for (std::size_t first = 0; first < row_count; first += block_rows) {
      const std::size_t size = std::min(block_rows, row_count - first);
      for (std::size_t i = 0; i < size; ++i) {
        auto* summed = reinterpret_cast<std::uint16_t*>(buffer.row(i));
        fill.fill({reinterpret_cast<const std::uint8_t*>(row(first + i)), 1, static_cast<std::size_t>(layout_.features)}, 0,
                  summed);
        cells[i] = summed;
      }
      use_cells(CellType::u16, cells, nullptr, first, size);
    }
    return;
  }
  with_cell_type(table.type(), [&](auto cell) {
    using Cell = decltype(cell);
    const Cell* cells[block_rows];
    const RowMask* masks[block_rows];
    // Rows of tiles are put together a few at a time.
    const std::size_t block = table.tiled() ? tiled_rows : block_rows;
    const RowBuffer together(table.tiled() ? tiled_rows : 0, layout_.cells() * sizeof(Cell));
    for (std::size_t first = 0; first < row_count; first += block) {
      const std::size_t size = std::min(block, row_count - first);
      for (std::size_t i = 0; i < size; ++i)
        cells[i] = reinterpret_cast<const Cell*>(table.tiled() ? together.row(i) : row(first + i));
      for (std::size_t i = 0, some = 0; table.tiled() && i < size; i += some) {
        const std::size_t at = number(first + i);
        some = rows == nullptr ? std::min(tile_rows - at % tile_rows, size - i) : 1;
        table.read_tile<Cell>(at, some, together, i);
      }
      for (std::size_t i = 0; table.has_gaps() && i < size; ++i) masks[i] = table.mask(number(first + i));
      use_cells(table.type(), cells, table.has_gaps() ? masks : nullptr, first, size);
    }
  });
}

// Adds what a leaf says unless it is silent, and returns whether it is not.
bool Forest::add_vote(std::int32_t node, double* out) const {
  if (leaves_.silent(payload(node))) return false;
  add_leaf(node, out);
  return true;
}

void Forest::add_leaf(std::int32_t node, double* out) const {
  const std::size_t payload = this->payload(node);
  if (leaves_.class_count == 0) {
    const double* values = &leaves_.value[payload * leaves_.width];
    for (std::size_t k = 0; k < leaves_.width; ++k) out[k] += values[k];
  } else if (payload < leaves_.class_count) {
    out[payload] += 1.0;
  } else {
    const std::size_t d = payload - leaves_.class_count;
    const std::size_t begin = distribution_begin_[d];
    for (std::size_t i = begin; i < begin + leaves_.distribution_size[d]; ++i)
      out[leaves_.distribution_class[i]] += leaves_.distribution_weight[i] * distribution_scale_[d];
  }
}

// Of small blocks several trees are walked at once.
void Forest::each_block(const Samples& x, CellType type, const Quantiser& quantiser, int extra_bits, const UseLeaves& use) const {
  const bool bytes = type == CellType::bytes, gaps = x.gaps();
  const std::size_t rows = x.rows();
  if (real_ != (type == CellType::f64) || (bytes && !takes_bytes()))
    throw std::invalid_argument("cell type does not fit the forest");
  with_cell_type(type, [&](auto cell) {
    using Cell = decltype(cell);
    const RowLayout layout = bytes ? layout_.unsummed() : layout_;
    const std::size_t row_bytes = layout.cells() * sizeof(Cell);
    const std::size_t block = rows_at_once(row_bytes);
    const RowBuffer buffer(std::min(block, rows), row_bytes, bytes ? byte_margin(layout) : 0);
    SampleReader<Cell> reader(layout, quantiser, gaps);
    std::vector<std::unique_ptr<RowMask>> masks_of_rows(gaps ? std::min(block, rows) : 0);
    std::int32_t leaf[walks_at_once];
    const Cell* cells[walks_at_once];
    const RowMask* masks[walks_at_once];
    for (std::size_t first = 0; first < rows; first += block) {
      const std::size_t size = std::min(block, rows - first), trees_at_once = std::clamp<std::size_t>(block / size, 1, trees());
      for (std::size_t i = 0; i < size; ++i) {
        Cell* row = reinterpret_cast<Cell*>(buffer.row(i));
        std::unique_ptr<RowMask> mask = reader.read(x, first + i, row);
        if (gaps) masks_of_rows[i] = std::move(mask);
        for (std::size_t t = 0; t < trees_at_once; ++t) {
          cells[t * size + i] = row;
          if (gaps) masks[t * size + i] = masks_of_rows[i].get();
        }
      }
      for (std::size_t tree = 0; tree < trees(); tree += trees_at_once) {
        const std::size_t end = std::min(tree + trees_at_once, trees());
        for (std::size_t t = tree; t < end; ++t) std::fill_n(leaf + (t - tree) * size, size, root(t));
        const NodeRange ahead = trees_at_once == 1 && end < trees() ? NodeRange{root(end), root(end + 1)} : NodeRange{};
        walk_masked<Cell>(type, cells, gaps ? masks : nullptr, (end - tree) * size, extra_bits, ahead, leaf);
        for (std::size_t t = tree; t < end; ++t) use(first, size, t, leaf + (t - tree) * size);
      }
    }
  });
}

}  // namespace morf
