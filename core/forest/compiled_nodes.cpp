#include "forest/compiled_nodes.hpp"

#include <algorithm>
#include <limits>

namespace morf {

PatchReader::PatchReader(const RowLayout& layout) {
  const std::size_t rank = layout.shape.size();
  if (!MORFOREST_BYTE_PATCHES || rank == 0 || layout.planes.size() != 1 || !layout.raw()) return;
  const std::uint32_t prefixed = layout.planes[0].prefixed_axes, last = 1u << (rank - 1), before = last >> 1;
  if (prefixed != last && (rank == 1 || prefixed != (last | before))) return;
  width_ = layout.shape[rank - 1];
  plane_rows_ = prefixed == last ? 1 : layout.shape[rank - 2];
  suits_ = layout.features <= std::numeric_limits<std::uint16_t>::max();
}

bool PatchReader::read(const std::uint32_t* cell, const double* weight, std::size_t terms, std::int64_t threshold,
                       ByteNode& node) const {
  if (terms == 0 || terms > 4 || threshold < 0 || threshold > std::numeric_limits<std::uint16_t>::max()) return false;
  const std::int64_t last = *std::max_element(cell, cell + terms), low = *std::min_element(cell, cell + terms);
  const std::int64_t row = last / width_ % plane_rows_, column = last % width_;
  const std::int64_t height = last / width_ != low / width_ ? last / width_ - low / width_ : row + 1;
  std::int64_t width = column + 1;
  for (std::size_t t = 0; t < terms; ++t)
    if (cell[t] / width_ == last / width_ && cell[t] != last) width = last - cell[t];
  if (height > std::min<std::int64_t>(row + 1, byte_patch_height) || width > byte_patch_width) return false;
  // The patch is right if its corners are the atom's terms.
  const bool above = height <= row, beside = width <= column;
  if (terms != (above ? 2u : 1u) * (beside ? 2u : 1u)) return false;
  const auto has = [&](std::int64_t corner, double sign) {
    for (std::size_t t = 0; t < terms; ++t)
      if (cell[t] == corner && weight[t] == sign) return true;
    return false;
  };
  if (!has(last, 1.0) || (beside && !has(last - width, -1.0)) || (above && !has(last - height * width_, -1.0)) ||
      (above && beside && !has(last - height * width_ - width, 1.0)))
    return false;
  node.start = static_cast<std::uint16_t>(last - (height - 1) * width_ - (width - 1));
  node.threshold = static_cast<std::uint16_t>(threshold);
  node.link = static_cast<std::uint32_t>((height - 1) * byte_patch_width + width - 1);
  return true;
}

}  // namespace morf
