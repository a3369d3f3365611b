// The best threshold of each candidate of a node (the paper's Algorithm 2), exactly, by histogram or at random.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "criterion.hpp"
#include "project.hpp"
#include "random.hpp"
#include "sort.hpp"

namespace morf {

enum class Splitter : std::uint8_t { exact, histogram, random };

// Sides smaller than this are not allowed.
struct SideLimits {
  std::uint64_t min_count;
  std::uint64_t min_weight;
};

// A split between the neighbouring values `below` < `above` of one candidate. Random thresholds t are stored as
// (t, t + 1) for integers, whose midpoint sends the same rows left, and as (t, t) for float64.
template <class Value>
struct Split {
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  double score = minus_infinity;  // at first, of what a split must be better than
  std::size_t candidate = none;
  Value below{}, above{};

  bool found() const { return candidate != none; }
};

inline constexpr std::size_t small_node = 64;  // counts, and rows: up to here sorting is cheaper than a histogram

// bin_count equal bins between the ends of a range.
template <class Value>
class Binner {
 public:
  Binner() = default;
  explicit Binner(Range<Value> range) : min_(range.min) {
    if constexpr (narrow) {
      const std::uint64_t distinct = std::uint64_t{static_cast<std::uint32_t>(range.max) - static_cast<std::uint32_t>(range.min)} + 1;
      one_value_a_bin_ = distinct <= bin_count;
      factor_ = one_value_a_bin_ ? std::uint64_t{1} << 32 : (std::uint64_t{bin_count} << 32) / distinct;
    } else {
      span_ = distance(range.min, range.max);
      real_factor_ = bin_count / span_;
      tiny_ = !(real_factor_ < std::numeric_limits<double>::max());
    }
  }

  bool one_value_a_bin() const { return one_value_a_bin_; }

  std::uint32_t operator()(Value value) const {
    if constexpr (narrow) {
      const std::uint32_t offset = static_cast<std::uint32_t>(value) - static_cast<std::uint32_t>(min_);
      return static_cast<std::uint32_t>(offset * factor_ >> 32);
    } else {
      const double d = distance(min_, value);
      const auto b = static_cast<std::int32_t>(tiny_ ? d / span_ * bin_count : d * real_factor_);
      return static_cast<std::uint32_t>(std::min(b, static_cast<std::int32_t>(bin_count) - 1));
    }
  }

  // up_to(value, last(b)) says whether the value lies in one of the bins 0..b, without finding out in which.
  auto last(std::uint32_t b) const {
    if constexpr (narrow) {
      const std::uint64_t end = ((std::uint64_t{b} + 1) << 32) / factor_ + (((std::uint64_t{b} + 1) << 32) % factor_ != 0);
      return static_cast<Offset>(std::min<std::uint64_t>(end - 1, std::numeric_limits<Offset>::max()));
    } else {
      return b;
    }
  }
  template <class Last>
  bool up_to(Value value, Last last) const {
    if constexpr (narrow) return static_cast<Offset>(static_cast<Offset>(value) - static_cast<Offset>(min_)) <= last;
    else return (*this)(value) <= last;
  }

  // The bins of `size` values, times lanes; `place` does not overlap them.
  void fill(const Value* __restrict values, std::size_t size, std::uint16_t* __restrict place) const {
    if constexpr (std::is_same_v<Value, std::uint16_t>) {
      if (one_value_a_bin_) {
        for (std::size_t i = 0; i < size; ++i) place[i] = static_cast<std::uint16_t>((values[i] - min_) * lanes);
      } else {
        // The same product in halves of 16 bits, which vectors multiply best.
        const auto high = static_cast<std::uint16_t>(factor_ >> 16), low = static_cast<std::uint16_t>(factor_);
        for (std::size_t i = 0; i < size; ++i) {
          const auto offset = static_cast<std::uint16_t>(values[i] - min_);
          const auto carried = static_cast<std::uint16_t>(std::uint32_t{offset} * low >> 16);
          const auto part = static_cast<std::uint16_t>(offset * high);
          const auto whole = static_cast<std::uint16_t>(std::uint32_t{offset} * high >> 16);
          place[i] = static_cast<std::uint16_t>((whole + (static_cast<std::uint16_t>(part + carried) < part)) * lanes);
        }
      }
    } else {
      const Binner self = *this;
      for (std::size_t i = 0; i < size; ++i) place[i] = static_cast<std::uint16_t>(self(values[i]) * lanes);
    }
  }

 private:
  static constexpr bool narrow = std::is_integral_v<Value> && sizeof(Value) <= 4;
  using Offset = std::conditional_t<sizeof(Value) == 2, std::uint16_t, std::uint32_t>;

  // Integers are subtracted before they become doubles, which do not hold them all.
  static double distance(Value from, Value to) {
    if constexpr (std::is_integral_v<Value>)
      return static_cast<double>(static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from));
    else
      return to - from;
  }

  Value min_{};
  bool one_value_a_bin_ = false, tiny_ = false;  // tiny: a range near the smallest double
  std::uint64_t factor_ = 0;
  double span_ = 0.0, real_factor_ = 0.0;
};

template <class Value, class Criterion>
class SplitSearch {
 public:
  explicit SplitSearch(Splitter splitter, SideLimits limits = {1, 0}) : splitter_(splitter), limits_(limits) {}

  void set_limits(SideLimits limits) { limits_ = limits; }

  // Improves `best` with the candidates first .. first + candidates - 1, whose values are values[j * stride + i] within
  // ranges[j]. The stride is at least whole_blocks(node.size).
  void operator()(const NodeRows& node, Criterion& criterion, const Value* values, std::size_t stride,
                  const Range<Value>* ranges, std::size_t first, std::size_t candidates, Stream& thresholds,
                  Split<Value>& best) {
    node_ = &node;
    criterion_ = &criterion;
    best_ = &best;
    ranges_ = ranges;
    if (splitter_ == Splitter::random) {
      for (std::size_t j = 0; j < candidates; ++j) search_random(values + j * stride, first + j, ranges_[j], thresholds);
    } else if (use_bins()) {
      if constexpr (Criterion::has_bins) search_bins(values, stride, first, candidates);
    } else if (node.size <= small_node && std::is_integral_v<Value>) {
      search_small(values, stride, first, candidates);
    } else {
      for (std::size_t j = 0; j < candidates; ++j)
        if (ranges_[j].min != ranges_[j].max) search_sorted(values + j * stride, first + j, ranges_[j]);
    }
  }

 private:
  struct Keyed {
    Value value;
    std::uint32_t position;
  };

  // Decided by counts and not by rows, so that a row of count two is the same as the row twice.
  bool use_bins() const {
    if constexpr (!Criterion::has_bins) return false;
    else return splitter_ == Splitter::histogram && node_->total_count > small_node &&
                bin_count * criterion_->bin_width() <= 16 * node_->total_count;
  }

  void list_varying(std::size_t candidates) {
    varying_.resize(candidates);
    std::size_t count = 0;
    for (std::size_t j = 0; j < candidates; ++j) {
      varying_[count] = j;
      count += ranges_[j].min != ranges_[j].max;
    }
    varying_.resize(count);
  }

  static std::uint64_t width(Range<Value> range) {
    if constexpr (std::is_integral_v<Value>)
      return static_cast<std::uint64_t>(range.max) - static_cast<std::uint64_t>(range.min);
    else
      return ~std::uint64_t{0};
  }

  // Every row has a count and a weight of at least one.
  bool limited() const { return limits_.min_count > 1 || limits_.min_weight > 1; }

  bool sides_allowed(std::uint64_t left_count, std::uint64_t left_weight) const {
    return left_count >= limits_.min_count && node_->total_count - left_count >= limits_.min_count &&
           left_weight >= limits_.min_weight && node_->total_weight - left_weight >= limits_.min_weight;
  }

  void offer(double score, std::size_t candidate, Value below, Value above) {
    if (score > best_->score) *best_ = {score, candidate, below, above};
  }

  // Walks the rows in sorted order. position(i) is the i-th row's place in the node; differs(i) says whether its value
  // differs from that of row i + 1.
  template <class Position, class Differs>
  void scan(const Value* values, std::size_t candidate, Position position, Differs differs) {
    if (limited()) scan<true>(values, candidate, position, differs);
    else scan<false>(values, candidate, position, differs);
  }

  template <bool limited, class Position, class Differs>
  void scan(const Value* values, std::size_t candidate, Position position, Differs differs) {
    criterion_->begin_scan();
    std::uint64_t left_count = 0;
    double best_score = best_->score;
    std::size_t best_at = node_->size;
    for (std::size_t i = 0; i + 1 < node_->size; ++i) {
      const std::size_t row = position(i);
      criterion_->move(row);
      if constexpr (limited) left_count += node_->count[row];
      if (!differs(i)) continue;
      if constexpr (limited)
        if (!sides_allowed(left_count, criterion_->left_weight())) continue;
      const double score = criterion_->score();
      if (score > best_score) {
        best_score = score;
        best_at = i;
      }
    }
    if (best_at < node_->size)
      offer(best_score, candidate, values[position(best_at)], values[position(best_at + 1)]);
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
    if (widest < (1u << 24))
      search_lanes<std::uint32_t>(keys32_, values, stride, first);
    else if (widest < (std::uint64_t{1} << 55))
      search_lanes<std::int64_t>(keys64_, values, stride, first);  // signed: AVX2 compares no other
    else
      for (const std::size_t j : varying_) search_sorted(values + j * stride, first + j, ranges_[j]);
  }

  // keys[i * lanes + lane]: the value less the candidate's lowest, shifted, and low(i) in the bits below; candidates from
  // varying_[group] on, a lane each.
  template <class Key, class Low>
  void fill_keys(Key* keys, const Value* values, std::size_t stride, std::size_t group, int shift, Low low) const {
    const std::size_t used = std::min(lanes, varying_.size() - group);
    for (std::size_t lane = 0; lane < used; ++lane) {
      const std::size_t j = varying_[group + lane];
      const Value* v = values + j * stride;
      for (std::size_t i = 0; i < node_->size; ++i)
        keys[i * lanes + lane] = static_cast<Key>(static_cast<Key>(v[i] - ranges_[j].min) << shift | static_cast<Key>(low(i)));
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
        const Key* key = keys.data() + lane;
        scan(
            values + j * stride, first + j, [key](std::size_t i) { return static_cast<std::size_t>(key[i * lanes] & 0xFF); },
            [key](std::size_t i) { return (key[i * lanes] >> 8) != (key[(i + 1) * lanes] >> 8); });
      }
    }
  }

  // Blocks of rows of eight candidates at a time, where values fit a key as they are.
  void fill_coded(std::uint32_t* keys, const Value* values, std::size_t stride, std::size_t group) const {
    const std::uint32_t* codes = criterion_->codes();
    if constexpr (sizeof(Value) == 2) {
      const std::uint16_t* from[lanes];
      for (std::size_t lane = 0; lane < lanes; ++lane) from[lane] = values + varying_[std::min(group + lane, varying_.size() - 1)] * stride;
      for (std::size_t i = 0; i < node_->size; i += row_block) make_coded_keys(from, i, codes + i, keys + i * lanes);
    } else {
      fill_keys(keys, values, stride, group, Codes::bits, [codes](std::size_t i) { return codes[i]; });
    }
  }

  // The same with codes in place of positions: see codes.hpp. Ranks stand for values too wide for a key.
  void search_coded(const Value* values, std::size_t stride, std::size_t first, std::uint64_t widest) {
    const std::size_t size = node_->size, rows = sorted_rows(size);
    const std::uint32_t* codes = criterion_->codes();
    const bool ranked = widest >> (32 - Codes::bits) != 0;  // never values of 16 bits
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
          for (std::size_t at = lane; at < size * lanes; at += lanes) {
            if (at >= lanes) rank += wide[at] >> 8 != wide[at - lanes] >> 8;
            keys[at] = rank << Codes::bits | codes[wide[at] & 0xFF];
          }
        }
      } else {
        fill_coded(keys, values, stride, group);
        sort_lanes(keys, size);
      }
      highest_coded_scores(keys, size, criterion_->totals(), &highest_[group]);
    }

    float bar = static_cast<float>(best_->score);
    for (std::size_t k = 0; k < varying_.size(); ++k) bar = std::max(bar, highest_[k]);
    bar *= 1.0f - 0x1.0p-20f;
    for (std::size_t k = 0; k < varying_.size(); ++k) {
      if (highest_[k] < bar) continue;
      const std::size_t lane = k / lanes * lanes * rows + k % lanes;
      const CodedSplit found = criterion_->best_coded_split(&keys32_[lane], size, best_->score);
      if (found.rows == 0) continue;
      const auto value = [&](std::size_t i) {
        const std::size_t at = lane + i * lanes;
        if constexpr (sizeof(Value) == 2) return static_cast<Value>(Codes::value(keys32_[at]));
        else return static_cast<Value>(ranges_[varying_[k]].min + static_cast<Value>(ranked ? keys64_[at] >> 8 : Codes::value(keys32_[at])));
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
    if (width(range) < (std::uint64_t{1} << 32)) {
      if constexpr (std::is_integral_v<Value>) {
        packed_.resize(size);
        for (std::size_t i = 0; i < size; ++i)
          packed_[i] = static_cast<std::uint64_t>(values[i] - range.min) << 32 | i;
        sort_packed(packed_, scratch_, static_cast<int>(std::bit_width(width(range))));
        scan(
            values, candidate, [this](std::size_t i) { return static_cast<std::size_t>(packed_[i] & 0xFFFFFFFFu); },
            [this](std::size_t i) { return packed_[i] >> 32 != packed_[i + 1] >> 32; });
      }
      return;
    }
    keyed_.resize(size);
    for (std::size_t i = 0; i < size; ++i) keyed_[i] = {values[i], static_cast<std::uint32_t>(i)};
    std::sort(keyed_.begin(), keyed_.end(), [](const Keyed& a, const Keyed& b) {
      return a.value < b.value || (a.value == b.value && a.position < b.position);
    });
    scan(
        values, candidate, [this](std::size_t i) { return static_cast<std::size_t>(keyed_[i].position); },
        [this](std::size_t i) { return keyed_[i].value != keyed_[i + 1].value; });
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
        found = {score, candidate, static_cast<Value>(range.min + static_cast<Value>(below)), static_cast<Value>(range.min + static_cast<Value>(v))};
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
    if (best_->score > before && best_binner_) find_neighbours(values + (best_->candidate - first) * stride, ranges_[best_->candidate - first]);
  }

  // The values on the two sides of the best split, once it is known between which bins that lies.
  void find_neighbours(const Value* values, Range<Value> range) {
    const Binner<Value> binner = *best_binner_;
    const auto last = binner.last(best_bin_);
    Value below = range.min, above = range.max;
    for (std::size_t i = 0; i < node_->size; ++i) {
      const bool left = binner.up_to(values[i], last);
      const Value if_left = left ? values[i] : range.min, if_right = left ? range.max : values[i];
      below = if_left > below ? if_left : below;
      above = if_right < above ? if_right : above;
    }
    best_->below = below;
    best_->above = above;
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
          for (std::size_t i = 0; i < chunk_.size; ++i)
            bin_rows_[chunk_.place[lane][i] + lane] += node_->count[chunk_.first + i];
    }

    if constexpr (Criterion::has_narrow_bins) {
      if (criterion_->narrow()) return scan_narrow_bins(values, stride, first, candidate, used, binner);
    }
    double best_score[lanes], score[lanes];
    std::uint64_t left_count[lanes] = {};
    std::uint32_t best_bin[lanes] = {}, heaviest[lanes] = {}, heaviest_bin[lanes] = {}, bin_weight[lanes];
    std::fill(best_score, best_score + lanes, minus_infinity);
    criterion_->begin_bin_scan();
    for (std::uint32_t b = 0; b < bin_count; ++b) {
      criterion_->move_bin(b, bin_weight);
      criterion_->bin_scores(score);
      if (limited)
        for (std::size_t lane = 0; lane < used; ++lane) {
          left_count[lane] += bin_rows_[b * lanes + lane];
          if (!sides_allowed(left_count[lane], criterion_->bin_left_weight(lane))) score[lane] = minus_infinity;
        }
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const bool better = score[lane] > best_score[lane];
        best_score[lane] = better ? score[lane] : best_score[lane];
        best_bin[lane] = better ? b : best_bin[lane];
      }
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const bool heavier = bin_weight[lane] > heaviest[lane];
        heaviest[lane] = heavier ? bin_weight[lane] : heaviest[lane];
        heaviest_bin[lane] = heavier ? b : heaviest_bin[lane];
      }
    }
    for (std::size_t lane = 0; lane < used; ++lane)
      if (!searched_crowded(values, stride, first, candidate[lane], binner[lane], heaviest_bin[lane], heaviest[lane]) && best_score[lane] > best_->score)
        offer_bin(best_score[lane], first, candidate[lane], binner[lane], best_bin[lane]);
  }

  // The same from scores in single precision: only those that may be the highest are worth the exact expression.
  void scan_narrow_bins(const Value* values, std::size_t stride, std::size_t first, const std::size_t* candidate, std::size_t used,
                        const Binner<Value>* binner) {
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
      if (searched_crowded(values, stride, first, candidate[lane], binner[lane], bin_count - 1 - heavy % bin_count, heavy / bin_count)) continue;
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
    if (binner.one_value_a_bin() || !crowded(values + j * stride, binner, heaviest_bin, heaviest, ranges_[j])) return false;
    const double before = best_->score;
    search_sorted(values + j * stride, first + j, ranges_[j]);
    if (best_->score > before) best_binner_.reset();
    return true;
  }

  void offer_bin(double score, std::size_t first, std::size_t j, const Binner<Value>& binner, std::uint32_t b) {
    offer(score, first + j, ranges_[j].min, ranges_[j].max);  // for now: see find_neighbours
    best_binner_ = binner;
    best_bin_ = b;
  }

  // Whether a heavy bin holds much besides its lowest or its highest value: the mark of heavy tails, where one far value
  // squeezes all others into a bin. A heavy bin of one repeated value (the background of an image) is harmless.
  bool crowded(const Value* values, const Binner<Value>& binner, std::uint32_t b, std::uint64_t bin_weight,
               Range<Value> range) const {
    const std::uint64_t tolerated = node_->total_weight / 4;
    if (bin_weight <= tolerated) return false;
    // The first bin often holds a background of the lowest value.
    if (b == 0 && bin_weight - weight_at(values, range.min) <= tolerated) return false;
    Value low = range.max, high = range.min;
    for (std::size_t i = 0; i < node_->size; ++i) {
      const bool inside = binner(values[i]) == b;
      low = inside && values[i] < low ? values[i] : low;
      high = inside && values[i] > high ? values[i] : high;
    }
    return bin_weight - std::max(weight_at(values, low), weight_at(values, high)) > tolerated;
  }

  std::uint64_t weight_at(const Value* values, Value value) const {
    const std::uint32_t* weight = node_->weight;
    std::uint32_t total = 0;
    for (std::size_t i = 0; i < node_->size; ++i) total += values[i] == value ? weight[i] : 0;
    return total;
  }

  void search_random(const Value* values, std::size_t candidate, Range<Value> range, Stream& thresholds) {
    if (range.min == range.max) return;
    Value below, above;
    if constexpr (std::is_integral_v<Value>) {
      below = static_cast<Value>(static_cast<std::uint64_t>(range.min) + thresholds.below(width(range)));
      above = below + 1;
    } else {
      below = range.min + thresholds.unit() * (range.max - range.min);
      if (!(below < range.max)) below = range.min;
      above = below;
    }
    criterion_->begin_scan();
    std::uint64_t left_count = 0;
    for (std::size_t i = 0; i < node_->size; ++i) {
      if (values[i] > below) continue;
      criterion_->move(i);
      left_count += node_->count[i];
    }
    if (sides_allowed(left_count, criterion_->left_weight())) offer(criterion_->score(), candidate, below, above);
  }

  Splitter splitter_;
  SideLimits limits_;
  const NodeRows* node_ = nullptr;
  Criterion* criterion_ = nullptr;
  Split<Value>* best_ = nullptr;
  const Range<Value>* ranges_ = nullptr;
  std::vector<std::size_t> varying_;
  std::vector<std::uint32_t> keys32_;
  std::vector<std::int64_t> keys64_;
  std::vector<float> highest_;  // scores of candidates, nearly
  std::vector<std::uint64_t> packed_, scratch_;
  std::vector<Keyed> keyed_;
  BinChunk chunk_;
  BinScan bin_scan_;
  std::optional<Binner<Value>> best_binner_;  // of the best split, where that lies between bins
  std::uint32_t best_bin_ = 0;
  std::vector<std::uint64_t> bin_rows_;
  std::vector<std::uint32_t> counts_;
};

}  // namespace morf
