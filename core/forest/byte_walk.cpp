// The only walks that wider registers make faster: their steps are instructions on vectors.
#include "forest/forest.hpp"
#include "forest/tree_walk.hpp"

namespace morf {

void Forest::walk_bytes([[maybe_unused]] const std::uint8_t* const* cells, [[maybe_unused]] std::size_t size,
                        [[maybe_unused]] NodeRange ahead, [[maybe_unused]] std::int32_t* leaf) const {
#if MORFOREST_BYTE_PATCHES
  const std::size_t width = static_cast<std::size_t>(layout_.shape.back());
  const auto run = [&](const auto& steps) {
    walk(steps, cells, size, leaf, Ahead(steps.nodes + ahead.begin, steps.nodes + ahead.end, size));
  };
  if (tall_) run(ByteSteps<2>{byte_nodes_.data(), width});
  else run(ByteSteps<1>{byte_nodes_.data(), width});
#endif
}

}  // namespace morf
