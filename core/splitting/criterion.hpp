// What all criteria share. A criterion says what a split is worth: it keeps exact integer sums of the two sides while rows move
// from right to left, and turns them into a float64 score whose expression docs/design.md fixes. Higher is better.
//
// A criterion offers
//   begin_node(node)      reads the targets of the node's rows; then pure(), parent terms and leaf values are known
//   ceiling()             a score that no split exceeds, or infinity
//   begin_scan()          puts all rows on the right
//   move(i)               row i of the node goes left
//   score()               of the present sides, -infinity where they are not allowed
//   begin_bins, add_to_bins, begin_bin_scan, move_bin, bin_scores   the same by whole bins, for candidates side by side
//                         (if has_bins)
//   narrow(), scan_bins(scan)   all bins of all lanes at once, with approximate scores, where narrow (if has_narrow_bins)
//   add_to_counts, move_class   all rows of one value at once (if has_counts)
//   make_codes, codes, totals, best_coded_split   small nodes by packed keys, see packed_keys.hpp (if has_codes)
//   score_order(node, limits, order, best_score)   all rows in an order, at once; see scan_order (if it is there)
//   parent(), gain_of(difference, tree_weight)   the score of the node whole, and the gain that a difference to it means (of
//                         criteria that several outputs are made of, see several_outputs.hpp)
//   append_leaf(leaves)   writes what the node says as a leaf, and returns its payload
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/portable_math.hpp"
#include "base/simd.hpp"
#include "splitting/leaves.hpp"
#include "splitting/node_rows.hpp"

namespace morf {

inline constexpr std::size_t bin_count = 64;

// The bins of a chunk of a node's rows, for lanes candidates side by side.
struct BinChunk {
  static constexpr std::size_t capacity = 256;
  std::size_t first, size, used;  // rows, and lanes with a candidate
  std::uint16_t place[lanes][capacity];  // bin times lanes, where the counters of a bin start
};

// What a scan over narrow bins finds, by lane: sums of the two sides after each bin, and their score within a few units in the
// last place of single precision (not a number where a side is empty); the highest of the scores, 0 if there is none; the
// heaviest bin, as its weight times bin_count plus the number of bins behind it.
struct BinScan {
  std::int32_t left_sum[bin_count][lanes], right_sum[bin_count][lanes], left_weight[bin_count][lanes];
  float score[bin_count][lanes];
  float highest[lanes];
  std::int32_t heaviest[lanes];
};

// 1 / w, from a table for the small weights of small nodes.
inline double reciprocal(std::uint64_t w) {
  static const auto table = [] {
    std::array<double, 1024> t{};
    for (std::size_t i = 1; i < t.size(); ++i) t[i] = 1.0 / static_cast<double>(i);
    return t;
  }();
  return w < table.size() ? table[w] : 1.0 / static_cast<double>(w);
}

}  // namespace morf
