// Walks of samples down trees: compiled nodes, and one loop that carries many walks at once.
//
// A *compiled* node holds all that a step needs in 8 to 24 bytes: the atom, the threshold and the left child; the right
// child follows it. Leaves point to themselves and send every value left, so that a step needs no branch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "bytes.hpp"
#include "project.hpp"
#include "table.hpp"

namespace morf {

inline constexpr std::size_t walks_at_once = 1024;
inline constexpr std::size_t walks_in_flight = 8;  // whose cache misses overlap
inline constexpr int steps_at_once = 4;            // before walks that have ended are set aside

// How many rows to pass through the trees together: many, so that nodes are used while they are near, but no more than
// a small second-level cache holds.
inline std::size_t rows_at_once(std::size_t row_bytes) {
  return std::clamp<std::size_t>((std::size_t{3} << 16) / std::max<std::size_t>(row_bytes, 1), 64, walks_at_once);
}

// The nodes of the next tree, fetched a little at a time while others are walked, if `size` walks will visit most of them.
class Ahead {
 public:
  Ahead() = default;
  Ahead(const void* begin, const void* end, std::size_t size)
      : at_(static_cast<const char*>(begin)), end_(static_cast<const char*>(end)) {
    const auto bytes = static_cast<std::size_t>(end_ - at_);
    if (bytes / 64 > 16 * size) end_ = at_;
    share_ = bytes / (size / walks_in_flight + 1) + 64;
  }
  void fetch() {
    if (at_ == end_) return;
    const char* stop = at_ + std::min(share_, static_cast<std::size_t>(end_ - at_));
#if defined(__GNUC__)
    for (const char* line = at_; line < stop; line += 64) __builtin_prefetch(line, 0, 2);
#endif
    at_ = stop;
  }

 private:
  const char *at_ = nullptr, *end_ = nullptr;
  std::size_t share_ = 0;
};

// Carries up to `walks_at_once` walks, of a row each, from the nodes `at` to their leaves. steps.next(row, node) is the node
// after `node`, itself for leaves. Trees are uneven: if finished walks were not set aside, the deepest of a few would hold up the rest.
template <class Steps, class Cell>
void walk(const Steps& steps, const Cell* const* rows, std::size_t size, std::int32_t* at, Ahead ahead) {
  std::uint32_t open[walks_at_once];
  for (std::size_t i = 0; i < size; ++i) open[i] = static_cast<std::uint32_t>(i);
  const auto advance = [&](const std::uint32_t* walks, auto count, std::size_t& kept) {
    std::int32_t node[walks_in_flight];
    const Cell* row[walks_in_flight];
    for (std::size_t b = 0; b < count; ++b) {
      node[b] = at[walks[b]];
      row[b] = rows[walks[b]];
    }
    for (int s = 0; s < steps_at_once; ++s)
      for (std::size_t b = 0; b < count; ++b) node[b] = steps.next(row[b], node[b]);
    for (std::size_t b = 0; b < count; ++b) {
      const std::uint32_t i = walks[b];
      at[i] = node[b];
      open[kept] = i;
      kept += !steps.ended(node[b]);
    }
  };
  while (size > 0) {
    std::size_t kept = 0, i = 0;
    for (; i + walks_in_flight <= size; i += walks_in_flight) {
      ahead.fetch();
      advance(open + i, std::integral_constant<std::size_t, walks_in_flight>{}, kept);
    }
    if (i < size) advance(open + i, size - i, kept);
    size = kept;
  }
}

// A split on one cell.
struct SingleNode {
  std::int32_t threshold, next;
  std::uint32_t cell;
};

template <class Cell>
struct SingleSteps {
  const SingleNode* nodes;

  std::int32_t next(const Cell* row, std::int32_t at) const {
    const SingleNode& n = nodes[at];
    return n.next + static_cast<std::int32_t>(static_cast<std::int32_t>(row[n.cell]) > n.threshold);
  }
  bool ended(std::int32_t at) const { return nodes[at].next == at; }
};

// Terms of all atoms, one after the other; those of node i end where those of the next begin.
struct TermLists {
  const std::uint32_t* cell;
  const double* weight;
  const std::size_t* begin;
};

// A split whose atom fits Slots. Other atoms are marked by a first plus that is the first minus, and read from the lists.
template <class Index>
struct SlotNode {
  std::int32_t threshold, next;
  Index plus0, minus0, minus1, plus1;
};

template <class Index, class Cell>
struct SlotSteps {
  const SlotNode<Index>* nodes;
  TermLists terms;

  std::int32_t next(const Cell* row, std::int32_t at) const {
    using Sum = SumOf<Cell>;
    const SlotNode<Index>& n = nodes[at];
    ValueOf<Cell> value;
    if (n.plus0 != n.minus0)
      value = value_of_sum<Cell>(static_cast<Sum>(row[n.plus0]) - static_cast<Sum>(row[n.minus0]) -
                                 static_cast<Sum>(row[n.minus1]) + static_cast<Sum>(row[n.plus1]));
    else
      value = Projector<Cell>::sum_terms(row, terms.cell, terms.weight, terms.begin[at], terms.begin[at + 1]);
    return n.next + static_cast<std::int32_t>(value > n.threshold);
  }
  bool ended(std::int32_t at) const { return nodes[at].next == at; }
};

// Any split, as it is stored. `Half` gives floor(threshold / 2) in the units of the cells, or the threshold of reals.
template <class Cell, class Half>
struct PlainSteps {
  const std::int32_t *stored_next, *root_of;
  TermLists terms;
  Half half;

  std::int32_t next(const Cell* row, std::int32_t at) const {
    if (stored_next[at] < 0) return at;
    const auto value = Projector<Cell>::sum_terms(row, terms.cell, terms.weight, terms.begin[at], terms.begin[at + 1]);
    return root_of[at] + stored_next[at] + static_cast<std::int32_t>(value > half(at));
  }
  bool ended(std::int32_t at) const { return stored_next[at] < 0; }
};

// Narrow patches of byte images, see bytes.hpp: half the memory of prefix sums, and nodes of eight bytes. The patch begins
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

// Turns atoms of one view with prefix sums along the last axis or the last two back into patches.
class PatchReader {
 public:
  explicit PatchReader(const RowLayout& layout) {
    const std::size_t rank = layout.shape.size();
    if (!MORFOREST_BYTE_PATCHES || rank == 0 || layout.views.size() != 1 || !layout.plain()) return;
    const std::uint32_t last = 1u << (rank - 1), before = last >> 1;
    if (layout.views[0] != last && (rank == 1 || layout.views[0] != (last | before))) return;
    width_ = layout.shape[rank - 1];
    plane_rows_ = layout.views[0] == last ? 1 : layout.shape[rank - 2];
    suits_ = layout.features <= std::numeric_limits<std::uint16_t>::max();
  }
  bool suits() const { return suits_; }
  std::size_t width() const { return static_cast<std::size_t>(width_); }

  // Fills all but the children. False if the atom is not a narrow patch, or the threshold not one of its values.
  bool read(const std::uint32_t* cell, const double* weight, std::size_t terms, std::int64_t threshold, ByteNode& node) const {
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

 private:
  bool suits_ = false;
  std::int64_t width_ = 1, plane_rows_ = 1;
};

#if MORFOREST_BYTE_PATCHES

// Which bytes belong to a patch of each size: eight of each of its rows; none for leaves.
struct ByteMasks {
  alignas(16) std::uint64_t row[ByteNode::leaf_size + 1][byte_patch_height] = {};
  constexpr ByteMasks() {
    for (std::int64_t size = 0; size < byte_patch_height * byte_patch_width; ++size)
      for (std::int64_t r = 0; r <= size / byte_patch_width; ++r)
        row[size][r] = ~std::uint64_t{0} >> (8 * (byte_patch_width - 1 - size % byte_patch_width));
  }
};
inline constexpr ByteMasks byte_masks;

template <int pairs>  // of rows
struct ByteSteps {
  const ByteNode* nodes;
  std::size_t width;

  std::int32_t next(const std::uint8_t* row, std::int32_t at) const {
    const ByteNode n = nodes[at];
    const std::uint8_t* bytes = row + n.start;
    const auto* mask = reinterpret_cast<const __m128i*>(byte_masks.row[n.link & ((1u << ByteNode::size_bits) - 1)]);
    __m128i total = _mm_setzero_si128();
    for (int pair = 0; pair < pairs; ++pair, bytes += 2 * width) {
      const __m128i low = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes));
      const __m128i both = _mm_castpd_si128(_mm_loadh_pd(_mm_castsi128_pd(low), reinterpret_cast<const double*>(bytes + width)));
      total = _mm_add_epi64(total, _mm_sad_epu8(_mm_and_si128(both, _mm_load_si128(mask + pair)), _mm_setzero_si128()));
    }
    const std::int32_t value = _mm_cvtsi128_si32(total) + _mm_extract_epi16(total, 4);
    return n.next() + static_cast<std::int32_t>(2 * value > static_cast<std::int32_t>(n.threshold));
  }
  bool ended(std::int32_t at) const { return nodes[at].next() == at; }
};

#endif

}  // namespace morf
