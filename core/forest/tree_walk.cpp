#include "forest/tree_walk.hpp"

#include <optional>
#include <stdexcept>
#include <type_traits>

#include "forest/forest.hpp"
#include "projection/gap_projection.hpp"

namespace morf {
namespace {

// floor(t * 2^extra_bits / 2); callers choose extra_bits so that it fits.
std::int64_t scaled_half(std::int64_t t, int extra_bits) {
  return extra_bits == 0 ? t >> 1 : static_cast<std::int64_t>(static_cast<std::uint64_t>(t) << (extra_bits - 1));
}

}  // namespace

template <class Cell>
void Forest::walk_rows(CellType type, const Cell* const* cells, std::size_t size, int extra_bits, NodeRange ahead,
                       std::int32_t* leaf) const {
  const TermLists terms{atoms_.cell.data(), atoms_.weight.data(), atoms_.begin.data()};
  if (!atoms_.operation.empty()) {
    const auto half = [&](std::int32_t node) { return scaled_half(nodes_.threshold[node], extra_bits); };
    return walk(OperationSteps<Cell, decltype(half)>{nodes_.next.data(), root_of_.data(), terms, atoms_.operation.data(), half},
                cells, size, leaf, Ahead());
  }
  const auto run = [&](const auto& steps) {
    walk(steps, cells, size, leaf, Ahead(steps.nodes + ahead.begin, steps.nodes + ahead.end, size));
  };
  if constexpr (std::is_same_v<Cell, std::uint8_t>)
    if (type == CellType::bytes) return walk_bytes(cells, size, ahead, leaf);
  if constexpr (sizeof(Cell) <= 4) {
    if (extra_bits == 0) {
      std::call_once(slots_compiled_, [this] { compile_slots(); });
      if (!single_.empty()) return run(SingleSteps<Cell>{single_.data()});
      if (!narrow_slots_.empty()) return run(SlotSteps<std::uint16_t, Cell>{narrow_slots_.data(), terms});
      if (!wide_slots_.empty()) return run(SlotSteps<std::uint32_t, Cell>{wide_slots_.data(), terms});
    }
  }
  const auto half = [&](std::int32_t node) {
    if constexpr (std::is_floating_point_v<Cell>) return nodes_.real_threshold[node];
    else return scaled_half(nodes_.threshold[node], extra_bits);
  };
  walk(PlainSteps<Cell, decltype(half)>{nodes_.next.data(), root_of_.data(), terms, half}, cells, size, leaf, Ahead());
}

template <class Cell>
void Forest::walk_masked(CellType type, const Cell* const* cells, const RowMask* const* masks, std::size_t size, int extra_bits,
                         NodeRange ahead, std::int32_t* leaf) const {
  if (masks == nullptr) return walk_rows(type, cells, size, extra_bits, ahead, leaf);
  if (nodes_.side.empty()) throw std::invalid_argument("a forest without sides cannot judge missing values");
  if constexpr (std::is_unsigned_v<Cell>) {
    throw std::invalid_argument("samples with missing values have signed cells");
  } else {
    const Cell* whole[walks_at_once];
    std::int32_t at[walks_at_once];
    std::size_t count = 0;
    for (std::size_t i = 0; i < size; ++i) {
      if (masks[i] != nullptr) {
        leaf[i] = leaf_of_masked(cells[i], *masks[i], extra_bits, leaf[i]);
        continue;
      }
      whole[count] = cells[i];
      at[count++] = leaf[i];
    }
    walk_rows(type, whole, count, extra_bits, ahead, at);
    for (std::size_t i = size; i-- > 0;)
      if (masks[i] == nullptr) leaf[i] = at[--count];
  }
}

// The leaf of one sample with missing values.
template <class Cell>
std::int32_t Forest::leaf_of_masked(const Cell* row, const RowMask& mask, int extra_bits, std::int32_t at) const {
  while (nodes_.next[at] >= 0) {
    const std::size_t begin = atoms_.begin[at], terms = atoms_.terms(at);
    const std::uint32_t* const cell = &atoms_.cell[begin];
    const double* const weight = &atoms_.weight[begin];
    const Operation operation = atoms_.operation_of(at);
    const Side side = nodes_.side[at];
    std::optional<ValueOf<Cell>> value;
    if (operation.pooled()) {
      if (mask.has_absent()) value = value_of_existing(row, mask, cell, weight, terms, operation);
      else value = atom_value(row, cell, weight, terms, operation);
    } else if (!mask.touches(cell, weight, terms, mark_of(side))) {
      value = atom_value(row, cell, weight, terms, operation);
    }
    bool right = !goes_left(side);
    if constexpr (std::is_floating_point_v<Cell>) {
      if (value) right = *value > nodes_.real_threshold[at];
    } else {
      if (value) right = *value > scaled_half(nodes_.threshold[at], extra_bits);
    }
    at = root_of_[at] + nodes_.next[at] + static_cast<std::int32_t>(right);
  }
  return at;
}

template void Forest::walk_rows(CellType, const std::uint8_t* const*, std::size_t, int, NodeRange, std::int32_t*) const;
template void Forest::walk_rows(CellType, const std::uint16_t* const*, std::size_t, int, NodeRange, std::int32_t*) const;
template void Forest::walk_rows(CellType, const std::int16_t* const*, std::size_t, int, NodeRange, std::int32_t*) const;
template void Forest::walk_rows(CellType, const std::int32_t* const*, std::size_t, int, NodeRange, std::int32_t*) const;
template void Forest::walk_rows(CellType, const std::int64_t* const*, std::size_t, int, NodeRange, std::int32_t*) const;
template void Forest::walk_rows(CellType, const double* const*, std::size_t, int, NodeRange, std::int32_t*) const;
template void Forest::walk_masked(CellType, const std::uint8_t* const*, const RowMask* const*, std::size_t, int, NodeRange,
                                  std::int32_t*) const;
template void Forest::walk_masked(CellType, const std::uint16_t* const*, const RowMask* const*, std::size_t, int, NodeRange,
                                  std::int32_t*) const;
template void Forest::walk_masked(CellType, const std::int16_t* const*, const RowMask* const*, std::size_t, int, NodeRange,
                                  std::int32_t*) const;
template void Forest::walk_masked(CellType, const std::int32_t* const*, const RowMask* const*, std::size_t, int, NodeRange,
                                  std::int32_t*) const;
template void Forest::walk_masked(CellType, const std::int64_t* const*, const RowMask* const*, std::size_t, int, NodeRange,
                                  std::int32_t*) const;
template void Forest::walk_masked(CellType, const double* const*, const RowMask* const*, std::size_t, int, NodeRange,
                                  std::int32_t*) const;

}  // namespace morf
