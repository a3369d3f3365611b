// The only part of attributions that wider vectors make faster.
#include "data/prefix_sums.hpp"
#include "forest/attribution.hpp"

namespace morf {

void Shares::sum_up(std::uint64_t* grid, std::size_t outputs) const {
  const auto inner = static_cast<std::int64_t>(outputs);
  for (std::size_t axis = 0; axis < rank_; ++axis)
    for (int pass = 0; pass < passes_[axis]; ++pass)
      accumulate_along(grid, layout_.features * inner, layout_.shape[axis], blocks_.stride(axis) * inner);
}

}  // namespace morf
