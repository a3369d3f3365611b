// Criteria of classification: Gini impurity and entropy.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/simd.hpp"
#include "base/simd_pairs.hpp"
#include "splitting/criterion.hpp"
#include "splitting/packed_keys.hpp"

namespace morf {

struct Gini {
  // The additive part of the impurity of one class.
  static std::int64_t term(std::uint64_t w) { return static_cast<std::int64_t>(w * w); }
  // term(w + more) - term(w)
  static std::int64_t increase(std::uint32_t w, std::uint32_t more) {
    return static_cast<std::int64_t>(std::uint64_t{more} * (2 * w + more));
  }
  static constexpr bool squares = true;
  static double side(std::int64_t sum, std::uint64_t w) { return static_cast<double>(sum) * reciprocal(w); }
  static double score(std::int64_t left, std::uint64_t left_weight, std::int64_t right, std::uint64_t right_weight) {
    return side(left, left_weight) + side(right, right_weight);
  }
  static constexpr double unit = 1.0;
};

struct Entropy {
  // w log2 w in fixed point, so that sums are exact and do not depend on their order.
  static std::int64_t term(std::uint64_t w) {
    static const auto table = [] {
      std::array<std::int64_t, 4096> t{};
      for (std::size_t i = 0; i < t.size(); ++i) t[i] = compute(i);
      return t;
    }();
    return w < table.size() ? table[w] : compute(w);
  }
  static std::int64_t increase(std::uint32_t w, std::uint32_t more) { return more == 0 ? 0 : term(w + more) - term(w); }
  static constexpr bool squares = false;
  static double side(std::int64_t sum, std::uint64_t w) { return static_cast<double>(sum - term(w)); }
  static double score(std::int64_t left, std::uint64_t left_weight, std::int64_t right, std::uint64_t right_weight) {
    return static_cast<double>((left - term(left_weight)) + (right - term(right_weight)));
  }
  static constexpr double unit = 0x1.0p-24;

 private:
  static std::int64_t compute(std::uint64_t w) {
    if (w == 0) return 0;
    const double x = static_cast<double>(w);
    return std::llrint(x * portable_log2(x) * 0x1.0p24);
  }
};

// Without `narrow_bins` all bins are wide.
template <class Impurity, bool narrow_bins = Impurity::squares>
class ClassCriterion {
 public:
  static constexpr bool has_bins = true;
  static constexpr bool has_codes = MORFOREST_PACKED_KEYS && Impurity::squares;
  static constexpr bool has_narrow_bins = narrow_bins;
  static constexpr bool has_counts = true;

  ClassCriterion(const std::uint32_t* class_of_row, std::size_t classes)
      : class_of_row_(class_of_row), local_of_class_(classes, 0), seen_(classes, 0) {}

  // Classes are renumbered among those present, so that the cost of a node follows what it holds.
  [[gnu::noinline]] void begin_node(const NodeRows& node) {
    weight_ = node.weight;
    total_weight_ = node.total_weight;
    present_.clear();
    total_.clear();
    reserve_at_least(class_, node.size);
    if (node.size == 1) {  // half of all leaves
      present_.push_back(class_of_row_[node.rows[0]]);
      total_.push_back(node.weight[0]);
      class_[0] = 0;
    } else if (local_of_class_.size() <= few_classes) read_few_classes(node);
    else read_many_classes(node);
    total_sum_ = 0;
    for (const std::uint32_t w : total_) total_sum_ += Impurity::term(w);
    left_.resize(total_.size());
    right_.resize(total_.size());
    rows_ = node.size;
    coded_ = false;
  }

  bool pure() const { return present_.size() == 1; }
  const std::vector<std::uint32_t>& present() const { return present_; }       // classes at this node
  const std::vector<std::uint32_t>& class_weights() const { return total_; }  // and their weights

  [[gnu::noinline]] std::size_t append_leaf(Leaves& leaves) const {
    if (present_.size() == 1) return present_[0];
    const std::size_t payload = leaves.class_count + leaves.distribution_size.size();
    leaves.distribution_size.push_back(static_cast<std::uint32_t>(present_.size()));
    append_distribution(leaves, 0);
    return payload;
  }

  // Writes the weights of the classes, which are numbered from `first_class` on.
  void append_distribution(Leaves& leaves, std::uint32_t first_class) const {
    // In the order of the classes: that of the rows must not show.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> entries;
    for (std::size_t c = 0; c < present_.size(); ++c) entries.emplace_back(present_[c], total_[c]);
    std::sort(entries.begin(), entries.end());
    for (const auto& [label, weight] : entries) {
      leaves.distribution_class.push_back(first_class + label);
      leaves.distribution_weight.push_back(weight);
    }
  }

  double parent() const { return Impurity::side(total_sum_, total_weight_); }
  double gain_of(double difference, double tree_weight) const { return difference * Impurity::unit / tree_weight; }
  double gain(double score, double tree_weight) const { return gain_of(score - parent(), tree_weight); }

  // A score that no split can exceed; infinity where that is not known. Scores are convex in the classes' weights on one
  // side, so the best conceivable split keeps each class whole. Sums of few rows keep all others clearly below it.
  double ceiling() const {
    const std::size_t classes = total_.size();
    if (classes > 3 || total_weight_ > 2 * bin_count) return infinity;
    double highest = minus_infinity;
    for (std::size_t c = 0; c < (classes == 2 ? 1 : classes); ++c) {
      const std::int64_t alone = Impurity::term(total_[c]);
      highest = std::max(highest, Impurity::score(alone, total_[c], total_sum_ - alone, total_weight_ - total_[c]));
    }
    return highest;
  }

  void begin_scan() {
    std::fill(left_.begin(), left_.end(), 0u);
    std::copy(total_.begin(), total_.end(), right_.begin());
    left_sum_ = 0;
    right_sum_ = total_sum_;
    left_weight_ = 0;
  }

  void move(std::size_t i) { move_class(class_[i], weight_[i]); }

  void move_class(std::size_t c, std::uint32_t w) {
    left_sum_ += Impurity::increase(left_[c], w);
    left_[c] += w;
    right_[c] -= w;
    right_sum_ -= Impurity::increase(right_[c], w);
    left_weight_ += w;
  }

  double score() const { return Impurity::score(left_sum_, left_weight_, right_sum_, total_weight_ - left_weight_); }

  std::uint64_t left_weight() const { return left_weight_; }

  // The weights of each class at each value: counts[(value - low) * bin_width() + class].
  template <class Value>
  void add_to_counts(const Value* values, Value low, std::uint32_t* counts) const {
    const std::size_t classes = total_.size();
    for (std::size_t i = 0; i < rows_; ++i) counts[static_cast<std::size_t>(values[i] - low) * classes + class_[i]] += weight_[i];
  }

  // The codes of the node's rows (see packed_keys.hpp). False if they do not fit.
  bool make_codes() {
    if (coded_) return true;
    if (total_.size() > Codes::max_classes || total_weight_ > Codes::max_total) return false;
    reserve_at_least(codes_, rows_ + lanes);  // read in whole blocks
    std::uint32_t heaviest = 0;
    for (std::size_t i = 0; i < rows_; ++i) {
      codes_[i] = Codes::make(class_[i], weight_[i], total_[class_[i]]);
      heaviest = std::max(heaviest, weight_[i]);
    }
    return coded_ = heaviest <= Codes::max_weight;
  }
  const std::uint32_t* codes() const { return codes_.data(); }
  using Code = Codes;
  // The keys of a block of rows, see packed_keys.hpp.
  static void make_keys(const std::uint16_t* const* from, std::size_t i, const std::uint32_t* code, std::uint32_t* keys) {
    make_coded_keys(from, i, code, keys);
  }
  void highest_scores(const std::uint32_t* keys, std::size_t size, float* highest) const {
    highest_coded_scores(keys, size, totals(), highest);
  }
  GiniTotals totals() const {
    return {static_cast<std::uint32_t>(total_sum_), static_cast<std::uint32_t>(total_weight_),
            static_cast<std::uint32_t>(total_.size())};
  }

  // The best split of a lane of sorted keys, if better than `score`; else one after no rows.
  CodedSplit best_coded_split(const std::uint32_t* keys, std::size_t size, double score) const {
    CodedSplit best{score, 0};
    const std::uint32_t total_sum = static_cast<std::uint32_t>(total_sum_);
    std::uint32_t left[Codes::max_classes] = {}, left_sum = 0, products = 0, left_weight = 0;
    for (std::size_t i = 0; i + 1 < size; ++i) {
      const std::uint32_t key = keys[i * lanes], weight = Codes::weight(key);
      std::uint32_t& in_class = left[Codes::label(key)];
      left_sum += weight * (2 * in_class + weight);
      in_class += weight;
      products += weight * Codes::class_total(key);
      left_weight += weight;
      if (Codes::value(key) == Codes::value(keys[(i + 1) * lanes])) continue;
      const double here = Impurity::score(left_sum, left_weight, total_sum - 2 * products + left_sum,
                                          total_weight_ - left_weight);
      if (here > best.score) best = {here, i + 1};
    }
    return best;
  }

  std::size_t bin_width() const { return total_.size(); }

  // Sums of squares of weights below 2^15 take 31 bits, and the weights 15: narrow bins are faster to fill and to scan.
  bool narrow() const { return has_narrow_bins && total_weight_ < (1u << 15); }

  // Bins are laid out [class][bin][lane], narrow ones [pair of classes][bin][lane][class of the pair].
  void begin_bins() {
    if (narrow()) reserve_at_least(narrow_bins_, (total_.size() + 1) / 2 * pair_stride);
    else bins_.assign(total_.size() * bin_count * lanes, 0);
  }

  // Row by row, so that one load of a row's class and weight serves all lanes, and no addition waits for the one before.
  [[gnu::noinline]] void add_to_bins(const BinChunk& chunk) {
    const auto add = [&](auto* bins, auto offset, auto step, auto used) {
      for (std::size_t i = 0; i < chunk.size; ++i) {
        auto* const of_class = bins + offset(class_[chunk.first + i]);
        const std::uint32_t w = weight_[chunk.first + i];
        for (std::size_t lane = 0; lane < used; ++lane) {
          auto& bin = of_class[(chunk.place[lane][i] + lane) * step];
          bin = static_cast<std::remove_reference_t<decltype(bin)>>(bin + w);
        }
      }
    };
    const auto add_lanes = [&](auto used) {
      if (narrow())
        add(
            narrow_bins_.data(), [](std::size_t c) { return c / 2 * pair_stride + c % 2; },
            std::integral_constant<std::size_t, 2>{}, used);
      else
        add(bins_.data(), [](std::size_t c) { return c * (bin_count * lanes); }, std::integral_constant<std::size_t, 1>{}, used);
    };
    if (chunk.used > lanes / 2) add_lanes(std::integral_constant<std::size_t, lanes>{});
    else add_lanes(std::integral_constant<std::size_t, lanes / 2>{});
  }

  // Clears the bins on the way.
  [[gnu::noinline]] void scan_bins(BinScan& scan) {
    const std::size_t pairs = (total_.size() + 1) / 2;
    total_pairs_.resize(pairs);
    for (std::size_t p = 0; p < pairs; ++p)
      total_pairs_[p] = all_pairs(static_cast<std::int16_t>(total_[2 * p]),
                                  static_cast<std::int16_t>(2 * p + 1 < total_.size() ? total_[2 * p + 1] : 0));
    switch (pairs) {
      case 1: return scan_pairs<1>(scan);
      case 2: return scan_pairs<2>(scan);
      case 3: return scan_pairs<3>(scan);
      case 4: return scan_pairs<4>(scan);
      case 5: return scan_pairs<5>(scan);
      default: return scan_pairs<0>(scan);
    }
  }

  double exact_score(const BinScan& scan, std::size_t b, std::size_t lane) const {
    const auto left = static_cast<std::uint64_t>(scan.left_weight[b][lane]);
    return Impurity::score(scan.left_sum[b][lane], left, scan.right_sum[b][lane], total_weight_ - left);
  }

  void begin_bin_scan() {
    lane_left_.assign(total_.size() * lanes, 0u);
    std::fill_n(lane_left_sum_, lanes, 0);
    std::fill_n(lane_right_sum_, lanes, total_sum_);
    std::fill_n(lane_left_weight_, lanes, 0u);
  }

  void move_bin(std::size_t b, std::uint32_t* moved) {
    if constexpr (Impurity::squares) {
      move_bin_of_squares(bins_.data() + b * lanes, moved);
    } else {
      std::fill_n(moved, lanes, 0u);
      for (std::size_t c = 0; c < total_.size(); ++c)
        for (std::size_t lane = 0; lane < lanes; ++lane) {
          const std::size_t at = c * lanes + lane;
          const std::uint32_t w = bins_[(c * bin_count + b) * lanes + lane];
          lane_left_sum_[lane] += Impurity::increase(lane_left_[at], w);
          lane_left_[at] += w;
          lane_right_sum_[lane] -= Impurity::increase(total_[c] - lane_left_[at], w);
          moved[lane] += w;
        }
      for (std::size_t lane = 0; lane < lanes; ++lane) lane_left_weight_[lane] += moved[lane];
    }
  }

  // NaN where a side is empty.
  void bin_scores(double* scores) const {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const std::uint64_t left = lane_left_weight_[lane], right = total_weight_ - left;
      const double score = Impurity::score(lane_left_sum_[lane], left, lane_right_sum_[lane], right);
      scores[lane] = left == 0 || right == 0 ? std::numeric_limits<double>::quiet_NaN() : score;
    }
  }

  std::uint64_t bin_left_weight(std::size_t lane) const { return lane_left_weight_[lane]; }

 private:
  static constexpr std::size_t few_classes = 32;

  // In large nodes, four rows add to sums of their own: most rows are of one class, and each addition to one sum would wait
  // for the one before.
  void read_few_classes(const NodeRows& node) {
    const std::size_t classes = local_of_class_.size();
    std::uint32_t sums[4][few_classes];
    const std::size_t used = node.size < 64 ? 1 : 4;
    for (std::size_t k = 0; k < used; ++k) std::fill_n(sums[k], classes, 0u);
    std::uint32_t seen = 0;
    for (std::size_t i = 0; i < node.size; ++i) {
      const std::uint32_t c = class_of_row_[node.rows[i]];
      class_[i] = c;
      seen |= 1u << c;
      sums[i & (used - 1)][c] += node.weight[i];
    }
    std::uint32_t local[few_classes];
    for (; seen != 0; seen &= seen - 1) {
      const auto c = static_cast<std::uint32_t>(std::countr_zero(seen));
      local[c] = static_cast<std::uint32_t>(present_.size());
      present_.push_back(c);
      total_.push_back(used == 1 ? sums[0][c] : sums[0][c] + sums[1][c] + sums[2][c] + sums[3][c]);
    }
    if (present_.size() == classes) return;
    for (std::size_t i = 0; i < node.size; ++i) class_[i] = local[class_[i]];
  }

  void read_many_classes(const NodeRows& node) {
    ++epoch_;
    for (std::size_t i = 0; i < node.size; ++i) {
      const std::uint32_t c = class_of_row_[node.rows[i]];
      if (seen_[c] != epoch_) {
        seen_[c] = epoch_;
        local_of_class_[c] = static_cast<std::uint32_t>(present_.size());
        present_.push_back(c);
        total_.push_back(0);
      }
      class_[i] = local_of_class_[c];
      total_[class_[i]] += node.weight[i];
    }
  }

  static constexpr std::size_t pair_stride = bin_count * lanes * 2;

  // With l the left and t the total weight of a class, the sums of squares of the two sides are sum(l^2) and
  // sum((t - l)^2) = sum(t^2) - 2 sum(t l) + sum(l^2).
  template <class Lane>
  static Lane right_squares(Lane all, Lane products, Lane left) {
    return all - products - products + left;
  }

  // For so many pairs of classes, which stay in registers; 0: any number.
  template <std::size_t fixed>
  void scan_pairs(BinScan& scan) {
    const std::size_t pairs = fixed != 0 ? fixed : total_pairs_.size();
    PairVector kept[fixed != 0 ? fixed : 1] = {};
    if (fixed == 0) left_pairs_.assign(pairs, PairVector{});
    PairVector* const left = fixed != 0 ? kept : left_pairs_.data();
    const PairVector one = all_pairs(1, 1);
    const auto all_squares = all_lanes(static_cast<std::int32_t>(total_sum_)),
               all_weight = all_lanes(static_cast<std::int32_t>(total_weight_));
    auto heaviest = all_lanes<std::int32_t>(0), before = heaviest;
    auto highest = all_lanes(0.0f);
    for (std::size_t b = 0; b < bin_count; ++b) {
      std::uint16_t* bin = narrow_bins_.data() + b * lanes * 2;
      auto squares = all_lanes<std::int32_t>(0), products = squares, weight = squares;
      for (std::size_t p = 0; p < pairs; ++p, bin += pair_stride) {
        left[p] = left[p] + load_pairs(bin);
        store_pairs(PairVector{}, bin);
        squares = squares + multiply_pairs(left[p], left[p]);
        products = products + multiply_pairs(left[p], total_pairs_[p]);
        weight = weight + multiply_pairs(left[p], one);
      }
      const auto right = right_squares<LaneVector<std::int32_t>>(all_squares, products, squares);
      const auto left_weight = convert_lanes<float, std::int32_t>(weight),
                 right_weight = convert_lanes<float, std::int32_t>(all_weight - weight);
      const auto score = (convert_lanes<float, std::int32_t>(squares) * right_weight +
                          convert_lanes<float, std::int32_t>(right) * left_weight) /
                         (left_weight * right_weight);
      store_lanes<std::int32_t>(squares, scan.left_sum[b]);
      store_lanes<std::int32_t>(right, scan.right_sum[b]);
      store_lanes<std::int32_t>(weight, scan.left_weight[b]);
      store_lanes<float>(score, scan.score[b]);
      highest = higher_lanes<float>(score, highest);
      heaviest = higher_lanes<std::int32_t>(
          (weight - before) * all_lanes<std::int32_t>(bin_count) + all_lanes(static_cast<std::int32_t>(bin_count - 1 - b)),
          heaviest);
      before = weight;
    }
    store_lanes<float>(highest, scan.highest);
    store_lanes<std::int32_t>(heaviest, scan.heaviest);
  }

  void move_bin_of_squares(const std::uint32_t* bin, std::uint32_t* moved) {
    auto squares = all_lanes<std::int64_t>(0), products = squares;
    auto weight = all_lanes<std::uint32_t>(0);
    for (std::size_t c = 0; c < total_.size(); ++c) {
      const auto w = load_lanes(bin + c * bin_count * lanes);
      const auto left = load_lanes(&lane_left_[c * lanes]) + w;
      const auto wide = convert_lanes<std::int64_t, std::uint32_t>(left);
      squares = squares + wide * wide;
      products = products + wide * all_lanes(static_cast<std::int64_t>(total_[c]));
      weight = weight + w;
      store_lanes<std::uint32_t>(left, &lane_left_[c * lanes]);
    }
    store_lanes<std::int64_t>(squares, lane_left_sum_);
    store_lanes<std::int64_t>(right_squares<LaneVector<std::int64_t>>(all_lanes(total_sum_), products, squares), lane_right_sum_);
    store_lanes<std::uint32_t>(load_lanes(lane_left_weight_) + weight, lane_left_weight_);
    store_lanes<std::uint32_t>(weight, moved);
  }

  const std::uint32_t* class_of_row_;
  std::vector<std::uint32_t> local_of_class_;
  std::vector<std::uint64_t> seen_;
  std::uint64_t epoch_ = 0;
  std::size_t rows_ = 0;
  bool coded_ = false;
  std::vector<std::uint32_t> present_, total_, class_, codes_, left_, right_, bins_, lane_left_;
  std::vector<std::uint16_t> narrow_bins_;
  std::vector<PairVector> total_pairs_, left_pairs_;
  std::int64_t lane_left_sum_[lanes] = {}, lane_right_sum_[lanes] = {};
  std::uint32_t lane_left_weight_[lanes] = {};
  const std::uint32_t* weight_ = nullptr;
  std::uint64_t total_weight_ = 0, left_weight_ = 0;
  std::int64_t total_sum_ = 0, left_sum_ = 0, right_sum_ = 0;
};

}  // namespace morf
