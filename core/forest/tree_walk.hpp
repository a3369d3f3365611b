// Walks of samples down trees: one loop that carries many of them at once, and the steps that it takes.
#pragma once

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "forest/compiled_nodes.hpp"
#include "projection/pooling.hpp"
#include "projection/projection.hpp"

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
  const std::uint64_t* begin;
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
    else value = sum_terms(row, terms.cell, terms.weight, terms.begin[at], terms.begin[at + 1]);
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
    const auto value = sum_terms(row, terms.cell, terms.weight, terms.begin[at], terms.begin[at + 1]);
    return root_of[at] + stored_next[at] + static_cast<std::int32_t>(value > half(at));
  }
  bool ended(std::int32_t at) const { return stored_next[at] < 0; }
};

// A split whose atom may have an operation, as it is stored.
template <class Cell, class Half>
struct OperationSteps {
  const std::int32_t *stored_next, *root_of;
  TermLists terms;
  const Operation* operations;
  Half half;

  std::int32_t next(const Cell* row, std::int32_t at) const {
    if (stored_next[at] < 0) return at;
    const std::size_t begin = terms.begin[at];
    const auto value = atom_value(row, terms.cell + begin, terms.weight + begin, terms.begin[at + 1] - begin, operations[at]);
    return root_of[at] + stored_next[at] + static_cast<std::int32_t>(value > half(at));
  }
  bool ended(std::int32_t at) const { return stored_next[at] < 0; }
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
