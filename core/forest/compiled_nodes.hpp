// Compiled nodes: all that a step down a tree needs, in 8 to 24 bytes.
//
// A *compiled* node holds the atom, the threshold and the left child; the right child follows it. Leaves point to themselves and
// send every value left, so that a step needs no branch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "data/row_layout.hpp"
#include "projection/byte_patches.hpp"

namespace morf {

// A split on one cell.
struct SingleNode {
  std::int32_t threshold, next;
  std::uint32_t cell;
};

// A split whose atom fits Slots. Other atoms are marked by a first plus that is the first minus, and read from the lists.
template <class Index>
struct SlotNode {
  std::int32_t threshold, next;
  Index plus0, minus0, minus1, plus1;
};

// Narrow patches of byte images, see byte_patches.hpp: half the memory of prefix sums, and nodes of eight bytes. The patch begins
// at byte `start`; the lowest six bits of `link` are its size, the others the left child. The empty size marks leaves.
struct ByteNode {
  std::uint16_t start;
  std::uint16_t threshold;  // twice the midpoint
  std::uint32_t link;

  static constexpr std::uint32_t size_bits = 6, leaf_size = byte_patch_height * byte_patch_width;
  static constexpr std::size_t most_nodes = std::size_t{1} << (32 - size_bits);

  static ByteNode leaf(std::size_t at) { return {0, 0, static_cast<std::uint32_t>(at << size_bits) | leaf_size}; }
  std::int32_t next() const { return static_cast<std::int32_t>(link >> size_bits); }
};

// Turns atoms of one plane with prefix sums along the last axis or the last two back into patches.
class PatchReader {
 public:
  explicit PatchReader(const RowLayout& layout);

  bool suits() const { return suits_; }

  // Fills all but the children. Returns false if the atom is not a narrow patch, or the threshold not one of its values.
  bool read(const std::uint32_t* cell, const double* weight, std::size_t terms, std::int64_t threshold, ByteNode& node) const;

 private:
  bool suits_ = false;
  std::int64_t width_ = 1, plane_rows_ = 1;
};

}  // namespace morf
