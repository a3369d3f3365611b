// The best threshold of each candidate of a node (the paper's Algorithm 2), exactly or by histogram.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/sorting.hpp"
#include "projection/projection.hpp"
#include "splitting/binner.hpp"
#include "splitting/criterion.hpp"
#include "splitting/split.hpp"
#include "splitting/value_search.hpp"

namespace morf {

inline constexpr std::size_t small_node = 64;  // counts, and rows: up to here sorting is cheaper than a histogram

// Orders of the rows of a node by the values of a candidate: position(i) is the place in the node of the i-th row, and differs(i) says
// whether its value differs from that of row i + 1. Here keys of lanes, with positions in their low eight bits.
template <class Key>
struct LaneOrder {
  const Key* key;
  std::size_t position(std::size_t i) const { return static_cast<std::size_t>(key[i * lanes] & 0xFF); }
  bool differs(std::size_t i) const { return (key[i * lanes] >> 8) != (key[(i + 1) * lanes] >> 8); }
};

// Values above positions.
struct PackedOrder {
  const std::uint64_t* key;
  std::size_t position(std::size_t i) const { return static_cast<std::size_t>(key[i] & 0xFFFFFFFFu); }
  bool differs(std::size_t i) const { return key[i] >> 32 != key[i + 1] >> 32; }
};

template <class Value>
struct KeyedOrder {
  const Keyed<Value>* key;
  std::size_t position(std::size_t i) const { return key[i].position; }
  bool differs(std::size_t i) const { return key[i].value != key[i + 1].value; }
};

// Moves the rows of a node from right to left in an order, and returns the last row on the left of the best split, whose score is
// written to `best_score` if it is higher than what stands there; else the number of rows.
template <bool limited, class Criterion, class Order>
[[gnu::noinline]] std::size_t scan_order(Criterion& criterion, const NodeRows& node, SideLimits limits, const Order order,
                                         double& best_score) {
  criterion.begin_scan();
  std::uint64_t left_count = 0;
  double best = best_score;
  std::size_t best_at = node.size;
  for (std::size_t i = 0; i + 1 < node.size; ++i) {
    const std::size_t row = order.position(i);
    criterion.move(row);
    if constexpr (limited) left_count += node.count[row];
    if (!order.differs(i)) continue;
    if constexpr (limited)
      if (!limits.allow(node, left_count, criterion.left_weight())) continue;
    const double score = criterion.score();
    if (score > best) {
      best = score;
      best_at = i;
    }
  }
  best_score = best;
  return best_at;
}

// What a scan over bins finds in each lane: the best score and its bin, and the heaviest bin.
struct BinBests {
  double score[lanes];
  std::uint32_t bin[lanes] = {}, heaviest[lanes] = {}, heaviest_bin[lanes] = {};
};

// `bin_rows` are the counts of the bins, where sides are limited; else null.
template <class Criterion>
[[gnu::noinline]] void scan_wide_bins(Criterion& criterion, const NodeRows& node, SideLimits limits,
                                      const std::uint64_t* bin_rows, std::size_t used, BinBests& found) {
  double score[lanes];
  std::uint64_t left_count[lanes] = {};
  std::uint32_t bin_weight[lanes];
  std::fill_n(found.score, lanes, minus_infinity);
  criterion.begin_bin_scan();
  for (std::uint32_t b = 0; b < bin_count; ++b) {
    criterion.move_bin(b, bin_weight);
    criterion.bin_scores(score);
    if (bin_rows != nullptr)
      for (std::size_t lane = 0; lane < used; ++lane) {
        left_count[lane] += bin_rows[b * lanes + lane];
        if (!limits.allow(node, left_count[lane], criterion.bin_left_weight(lane))) score[lane] = minus_infinity;
      }
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const bool better = score[lane] > found.score[lane];
      found.score[lane] = better ? score[lane] : found.score[lane];
      found.bin[lane] = better ? b : found.bin[lane];
    }
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const bool heavier = bin_weight[lane] > found.heaviest[lane];
      found.heaviest[lane] = heavier ? bin_weight[lane] : found.heaviest[lane];
      found.heaviest_bin[lane] = heavier ? b : found.heaviest_bin[lane];
    }
  }
}

template <class Value, class Criterion>
class SplitSearch : public ValueSearch<Value> {
 public:
  explicit SplitSearch(Splitter splitter, SideLimits limits = {1, 0}) : ValueSearch<Value>(splitter, limits) {}

  // Improves `best` with the candidates first .. first + candidates - 1, whose values are values[j * stride + i] within
  // ranges[j]. The stride is at least whole_blocks(node.size).
  void operator()(const NodeRows& node, Criterion& criterion, const Value* values, std::size_t stride, const Range<Value>* ranges,
                  std::size_t first, std::size_t candidates, Split<Value>& best) {
    node_ = &node;
    criterion_ = &criterion;
    best_ = &best;
    ranges_ = ranges;
    if (use_bins()) {
      if constexpr (Criterion::has_bins) search_bins(values, stride, first, candidates);
      return;
    }
    if constexpr (std::is_integral_v<Value>)
      if (node.size <= small_node) return search_small(values, stride, first, candidates);
    for (std::size_t j = 0; j < candidates; ++j)
      if (ranges_[j].min != ranges_[j].max) search_sorted(values + j * stride, first + j, ranges_[j]);
  }

 private:
  using Base = ValueSearch<Value>;
  using Base::best_, Base::best_binner_, Base::limits_, Base::node_, Base::ranges_, Base::splitter_, Base::varying_;
  using Base::crowded, Base::find_neighbours, Base::limited, Base::list_varying, Base::offer, Base::offer_bin,
      Base::sides_allowed, Base::width;

  // Decided by counts and not by rows, so that a row of count two is the same as the row twice.
  bool use_bins() const {
    if constexpr (!Criterion::has_bins) return false;
    else
      return splitter_ == Splitter::histogram && node_->total_count > small_node &&
             bin_count * criterion_->bin_width() <= 16 * node_->total_count;
  }

  // Offers the best split of a candidate whose rows stand in an order.
  template <class Order>
  void scan(const Value* values, std::size_t candidate, const Order& order) {
    const std::size_t size = node_->size;
    double score = best_->score;
    std::size_t at;
    if constexpr (requires { criterion_->score_order(*node_, limits_, order, score); })
      at = criterion_->score_order(*node_, limits_, order, score);
    else
      at = limited() ? scan_order<true>(*criterion_, *node_, limits_, order, score)
                     : scan_order<false>(*criterion_, *node_, limits_, order, score);
    if (at < size) offer(score, candidate, values[order.position(at)], values[order.position(at + 1)]);
  }

  // Small nodes of integers: lanes of keys, value above position, through the sorting network.
  void search_small(const Value* values, std::size_t stride, std::size_t first, std::size_t candidates) {
    std::uint64_t widest = 0;
    for (std::size_t j = 0; j < candidates; ++j) widest = std::max(widest, width(ranges_[j]));
    list_varying(candidates);
    if constexpr (Criterion::has_codes) {
      if (widest < (std::uint64_t{1} << 55) && !limited() && criterion_->make_codes())
        return search_coded(values, stride, first, widest);
    }
    if (sizeof(Value) <= 2 || widest < (1u << 24)) return search_lanes<std::uint32_t>(keys32_, values, stride, first);
    if constexpr (sizeof(Value) > 2)
      if (sizeof(Value) <= 4 || widest < (std::uint64_t{1} << 55))
        return search_lanes<std::int64_t>(keys64_, values, stride, first);  // signed: AVX2 compares no other
    if constexpr (sizeof(Value) > 4)
      for (const std::size_t j : varying_) search_sorted(values + j * stride, first + j, ranges_[j]);
  }

  // keys[i * lanes + lane]: the value less the candidate's lowest, shifted, and low(i) in the bits below; candidates from
  // varying_[group] on, a lane each.
  template <class Key, class Low>
  void fill_keys(Key* keys, const Value* values, std::size_t stride, std::size_t group, int shift, Low low) const {
    const std::size_t used = std::min(lanes, varying_.size() - group), size = node_->size;
    for (std::size_t lane = 0; lane < used; ++lane) {
      const std::size_t j = varying_[group + lane];
      const Value* const v = values + j * stride;
      const Value lowest = ranges_[j].min;  // here, and `size` above: for all that compilers know, a key may overwrite them
      for (std::size_t i = 0; i < size; ++i)
        keys[i * lanes + lane] = static_cast<Key>(static_cast<Key>(v[i] - lowest) << shift | static_cast<Key>(low(i)));
    }
  }

  template <class Key>
  void search_lanes(std::vector<Key>& keys, const Value* values, std::size_t stride, std::size_t first) {
    static_assert(small_node <= 256, "positions take eight bits of a key");
    reserve_at_least(keys, sorted_rows(node_->size) * lanes);
    for (std::size_t group = 0; group < varying_.size(); group += lanes) {
      fill_keys(keys.data(), values, stride, group, 8, [](std::size_t i) { return i; });
      sort_lanes(keys.data(), node_->size);
      for (std::size_t lane = 0; lane < std::min(lanes, varying_.size() - group); ++lane) {
        const std::size_t j = varying_[group + lane];
        scan(values + j * stride, first + j, LaneOrder<Key>{keys.data() + lane});
      }
    }
  }

  // Blocks of rows of eight candidates at a time, where values fit a key as they are.
  void fill_coded(std::uint32_t* keys, const Value* values, std::size_t stride, std::size_t group) const {
    using Code = typename Criterion::Code;
    const std::uint32_t* codes = criterion_->codes();
    if constexpr (sizeof(Value) == 2) {
      const std::uint16_t* from[lanes];
      for (std::size_t lane = 0; lane < lanes; ++lane)
        from[lane] = values + varying_[std::min(group + lane, varying_.size() - 1)] * stride;
      for (std::size_t i = 0; i < node_->size; i += row_block) Criterion::make_keys(from, i, codes + i, keys + i * lanes);
    } else {
      fill_keys(keys, values, stride, group, Code::bits, [codes](std::size_t i) { return codes[i]; });
    }
  }

  // The same with codes in place of positions: see packed_keys.hpp. Ranks stand for values too wide for a key.
  void search_coded(const Value* values, std::size_t stride, std::size_t first, std::uint64_t widest) {
    using Code = typename Criterion::Code;
    const std::size_t size = node_->size, rows = sorted_rows(size);
    const std::uint32_t* codes = criterion_->codes();
    const bool ranked = sizeof(Value) > 2 && widest >> (32 - Code::bits) != 0;
    reserve_at_least(keys32_, (varying_.size() + lanes) * rows);
    if (ranked) reserve_at_least(keys64_, (varying_.size() + lanes) * rows);
    reserve_at_least(highest_, varying_.size() + lanes);
    for (std::size_t group = 0; group < varying_.size(); group += lanes) {
      std::uint32_t* keys = &keys32_[group * rows];
      if (ranked) {
        std::int64_t* wide = &keys64_[group * rows];
        fill_keys(wide, values, stride, group, 8, [](std::size_t i) { return i; });
        sort_lanes(wide, size);
        for (std::size_t lane = 0; lane < std::min(lanes, varying_.size() - group); ++lane) {
          std::uint32_t rank = 0;
          std::int64_t before = wide[lane] >> 8;
          for (std::size_t at = lane; at < size * lanes; at += lanes) {
            const std::int64_t value = wide[at] >> 8;
            rank += value != before;
            before = value;
            keys[at] = rank << Code::bits | codes[wide[at] & 0xFF];
          }
        }
      } else {
        fill_coded(keys, values, stride, group);
        sort_lanes(keys, size);
      }
      criterion_->highest_scores(keys, size, &highest_[group]);
    }

    float bar = static_cast<float>(best_->score);
    for (std::size_t k = 0; k < varying_.size(); ++k) bar = std::max(bar, highest_[k]);
    bar *= 1.0f - 0x1.0p-20f;
    for (std::size_t k = 0; k < varying_.size(); ++k) {
      if (highest_[k] < bar) continue;
      const std::size_t lane = k / lanes * lanes * rows + k % lanes;
      const auto found = criterion_->best_coded_split(&keys32_[lane], size, best_->score);
      if (found.rows == 0) continue;
      const auto value = [&](std::size_t i) {
        const std::size_t at = lane + i * lanes;
        if constexpr (sizeof(Value) == 2) return static_cast<Value>(Code::value(keys32_[at]));
        else
          return static_cast<Value>(ranges_[varying_[k]].min +
                                    static_cast<Value>(ranked ? keys64_[at] >> 8 : Code::value(keys32_[at])));
      };
      offer(found.score, first + varying_[k], value(found.rows - 1), value(found.rows));
    }
  }

  // Every threshold of a candidate.
  void search_sorted(const Value* values, std::size_t candidate, Range<Value> range) {
    const std::size_t size = node_->size;
    if constexpr (Criterion::has_counts && std::is_integral_v<Value>) {
      if (!limited() && width(range) < 8 * size / criterion_->bin_width()) return search_counted(values, candidate, range);
    }
    if constexpr (std::is_integral_v<Value>)
      if (sizeof(Value) <= 4 || width(range) < (std::uint64_t{1} << 32)) {
        packed_.resize(size);
        for (std::size_t i = 0; i < size; ++i) packed_[i] = static_cast<std::uint64_t>(values[i] - range.min) << 32 | i;
        sort_packed(packed_, scratch_, static_cast<int>(std::bit_width(width(range))));
        return scan(values, candidate, PackedOrder{packed_.data()});
      }
    if constexpr (sizeof(Value) > 4) {  // narrower ones are packed
      keyed_.resize(size);
      for (std::size_t i = 0; i < size; ++i) keyed_[i] = {values[i], static_cast<std::uint32_t>(i)};
      sort_keyed(keyed_);
      scan(values, candidate, KeyedOrder<Value>{keyed_.data()});
    }
  }

  // The same without sorting, where rows are many and distinct values few.
  void search_counted(const Value* values, std::size_t candidate, Range<Value> range) {
    const std::size_t distinct = static_cast<std::size_t>(width(range)) + 1, classes = criterion_->bin_width();
    counts_.assign(distinct * classes, 0);
    criterion_->add_to_counts(values, range.min, counts_.data());
    criterion_->begin_scan();
    Split<Value> found = *best_;
    std::size_t below = 0;
    for (std::size_t v = 0; v < distinct; ++v) {
      const std::uint32_t* const weights = &counts_[v * classes];
      if (std::all_of(weights, weights + classes, [](std::uint32_t w) { return w == 0; })) continue;
      const double score = v == 0 ? minus_infinity : criterion_->score();
      if (score > found.score)
        found = {score, candidate, static_cast<Value>(range.min + static_cast<Value>(below)),
                 static_cast<Value>(range.min + static_cast<Value>(v))};
      for (std::size_t c = 0; c < classes; ++c)
        if (weights[c] != 0) criterion_->move_class(c, weights[c]);
      below = v;
    }
    *best_ = found;
  }

  // Histograms of lanes candidates side by side: one pass over the bins serves all of them.
  void search_bins(const Value* values, std::size_t stride, std::size_t first, std::size_t candidates) {
    list_varying(candidates);
    const double before = best_->score;
    best_binner_.reset();
    for (std::size_t group = 0; group < varying_.size(); group += lanes)
      search_bin_lanes(values, stride, first, &varying_[group], std::min(lanes, varying_.size() - group));
    if (best_->score > before && best_binner_)
      find_neighbours(values + (best_->candidate - first) * stride, ranges_[best_->candidate - first]);
  }

  void search_bin_lanes(const Value* values, std::size_t stride, std::size_t first, const std::size_t* candidate,
                        std::size_t used) {
    const std::size_t size = node_->size;
    const bool limited = this->limited();
    Binner<Value> binner[lanes];
    for (std::size_t lane = 0; lane < used; ++lane) binner[lane] = Binner<Value>(ranges_[candidate[lane]]);
    for (std::size_t lane = used; lane < lanes; ++lane) std::fill_n(chunk_.place[lane], BinChunk::capacity, std::uint16_t{0});
    chunk_.used = used;
    criterion_->begin_bins();
    if (limited) bin_rows_.assign(bin_count * lanes, 0);
    for (chunk_.first = 0; chunk_.first < size; chunk_.first += BinChunk::capacity) {
      chunk_.size = std::min(BinChunk::capacity, size - chunk_.first);
      for (std::size_t lane = 0; lane < used; ++lane)
        binner[lane].fill(values + candidate[lane] * stride + chunk_.first, chunk_.size, chunk_.place[lane]);
      criterion_->add_to_bins(chunk_);
      if (limited)
        for (std::size_t lane = 0; lane < used; ++lane)
          for (std::size_t i = 0; i < chunk_.size; ++i) bin_rows_[chunk_.place[lane][i] + lane] += node_->count[chunk_.first + i];
    }

    if constexpr (Criterion::has_narrow_bins) {
      if (criterion_->narrow()) return scan_narrow_bins(values, stride, first, candidate, used, binner);
    }
    BinBests bests;
    scan_wide_bins(*criterion_, *node_, limits_, limited ? bin_rows_.data() : nullptr, used, bests);
    for (std::size_t lane = 0; lane < used; ++lane)
      if (!searched_crowded(values, stride, first, candidate[lane], binner[lane], bests.heaviest_bin[lane],
                            bests.heaviest[lane]) &&
          bests.score[lane] > best_->score)
        offer_bin(bests.score[lane], first, candidate[lane], binner[lane], bests.bin[lane]);
  }

  // The same from scores in single precision: only those that may be the highest are worth the exact expression.
  void scan_narrow_bins(const Value* values, std::size_t stride, std::size_t first, const std::size_t* candidate,
                        std::size_t used, const Binner<Value>* binner) {
    BinScan& scan = bin_scan_;
    criterion_->scan_bins(scan);
    if (limited()) {
      std::uint64_t left_count[lanes] = {};
      std::fill_n(scan.highest, lanes, 0.0f);
      for (std::size_t b = 0; b < bin_count; ++b)
        for (std::size_t lane = 0; lane < used; ++lane) {
          left_count[lane] += bin_rows_[b * lanes + lane];
          if (!sides_allowed(left_count[lane], static_cast<std::uint64_t>(scan.left_weight[b][lane]))) scan.score[b][lane] = 0.0f;
          if (scan.score[b][lane] > scan.highest[lane]) scan.highest[lane] = scan.score[b][lane];
        }
    }
    for (std::size_t lane = 0; lane < used; ++lane) {
      const auto heavy = static_cast<std::uint32_t>(scan.heaviest[lane]);
      if (searched_crowded(values, stride, first, candidate[lane], binner[lane], bin_count - 1 - heavy % bin_count,
                           heavy / bin_count))
        continue;
      const float bar = std::max(static_cast<float>(best_->score), scan.highest[lane]) * (1.0f - 0x1.0p-19f);
      if (!(scan.highest[lane] > 0.0f && scan.highest[lane] >= bar)) continue;
      double best_score = best_->score;
      std::uint32_t best_bin = bin_count;
      for (std::uint32_t b = 0; b < bin_count; ++b) {
        if (!(scan.score[b][lane] >= bar)) continue;
        const double score = criterion_->exact_score(scan, b, lane);
        if (score <= best_score) continue;
        best_score = score;
        best_bin = b;
      }
      if (best_bin < bin_count) offer_bin(best_score, first, candidate[lane], binner[lane], best_bin);
    }
  }

  // Where the heaviest bin is crowded, the candidate is searched by sorting.
  bool searched_crowded(const Value* values, std::size_t stride, std::size_t first, std::size_t j, const Binner<Value>& binner,
                        std::uint32_t heaviest_bin, std::uint32_t heaviest) {
    if (binner.one_value_per_bin() || !crowded(values + j * stride, binner, heaviest_bin, heaviest, ranges_[j])) return false;
    const double before = best_->score;
    search_sorted(values + j * stride, first + j, ranges_[j]);
    if (best_->score > before) best_binner_.reset();
    return true;
  }

  Criterion* criterion_ = nullptr;
  std::vector<std::uint32_t> keys32_;
  std::vector<std::int64_t> keys64_;
  std::vector<float> highest_;  // approximate scores of candidates
  std::vector<std::uint64_t> packed_, scratch_;
  std::vector<Keyed<Value>> keyed_;
  BinChunk chunk_;
  BinScan bin_scan_;
  std::vector<std::uint64_t> bin_rows_;
  std::vector<std::uint32_t> counts_;
};

}  // namespace morf
