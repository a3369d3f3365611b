#include "forest/tree_walk.hpp"
#include "forest/forest.hpp"

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
#if MORFOREST_BYTE_PATCHES
  if constexpr (std::is_same_v<Cell, std::uint8_t>) {
    if (type == CellType::bytes) {
      const std::size_t width = static_cast<std::size_t>(layout_.shape.back());
      return tall_ ? run(ByteSteps<2>{byte_nodes_.data(), width}) : run(ByteSteps<1>{byte_nodes_.data(), width});
    }
  }
#endif
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

template void Forest::walk_rows(CellType, const std::uint8_t* const*, std::size_t, int, NodeRange, std::int32_t*) const;
template void Forest::walk_rows(CellType, const std::uint16_t* const*, std::size_t, int, NodeRange, std::int32_t*) const;
template void Forest::walk_rows(CellType, const std::int16_t* const*, std::size_t, int, NodeRange, std::int32_t*) const;
template void Forest::walk_rows(CellType, const std::int32_t* const*, std::size_t, int, NodeRange, std::int32_t*) const;
template void Forest::walk_rows(CellType, const std::int64_t* const*, std::size_t, int, NodeRange, std::int32_t*) const;
template void Forest::walk_rows(CellType, const double* const*, std::size_t, int, NodeRange, std::int32_t*) const;

}  // namespace morf
