// The criterion of regression by absolute errors.
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

#include "splitting/criterion.hpp"

namespace morf {

// Sums of distances to the median. Both sides are Fenwick trees over the node's sorted distinct targets, so a move and a
// score cost log n.
class AbsoluteError {
 public:
  static constexpr bool has_bins = false;
  static constexpr bool has_codes = false;
  static constexpr bool has_narrow_bins = false;
  static constexpr bool has_counts = false;

  AbsoluteError(const std::int64_t* target_of_row, int bits) : target_of_row_(target_of_row), bits_(bits) {}

  [[gnu::noinline]] void begin_node(const NodeRows& node) {
    weight_ = node.weight;
    total_weight_ = node.total_weight;
    targets_.resize(node.size);
    for (std::size_t i = 0; i < node.size; ++i) targets_[i] = target_of_row_[node.rows[i]];
    distinct_ = targets_;
    std::sort(distinct_.begin(), distinct_.end());
    distinct_.erase(std::unique(distinct_.begin(), distinct_.end()), distinct_.end());
    rank_.resize(node.size);
    for (std::size_t i = 0; i < node.size; ++i)
      rank_[i] = static_cast<std::uint32_t>(std::lower_bound(distinct_.begin(), distinct_.end(), targets_[i]) -
                                            distinct_.begin());
    all_.reset(distinct_.size());
    for (std::size_t i = 0; i < node.size; ++i) all_.add(rank_[i], weight_[i], targets_[i]);
  }

  bool pure() const { return distinct_.size() == 1; }

  double leaf_value() const {
    const std::size_t lower = all_.median_rank();
    // Where the lower half weighs exactly half, the median is the middle of the two targets at the border.
    if (2 * all_.weight_up_to(lower) == total_weight_ && lower + 1 < distinct_.size())
      return 0.5 * static_cast<double>(distinct_[lower]) + 0.5 * static_cast<double>(distinct_[lower + 1]);
    return static_cast<double>(distinct_[lower]);
  }

  [[gnu::noinline]] std::size_t append_leaf(Leaves& leaves) const {
    leaves.value.push_back(leaf_value());
    return leaves.value.size() - 1;
  }

  double parent() const { return -static_cast<double>(all_.deviation(distinct_)); }
  double gain_of(double difference, double tree_weight) const { return difference / tree_weight * std::ldexp(1.0, -bits_); }
  double gain(double score, double tree_weight) const { return gain_of(score - parent(), tree_weight); }

  double ceiling() const { return infinity; }

  void begin_scan() {
    left_.reset(distinct_.size());
    right_ = all_;
  }

  void move(std::size_t i) {
    left_.add(rank_[i], weight_[i], targets_[i]);
    right_.add(rank_[i], -static_cast<std::int64_t>(weight_[i]), targets_[i]);
  }

  double score() const { return -static_cast<double>(left_.deviation(distinct_) + right_.deviation(distinct_)); }

  std::uint64_t left_weight() const { return left_.total_weight(); }

 private:
  class Side {
   public:
    void reset(std::size_t ranks) {
      weight_.assign(ranks + 1, 0);
      sum_.assign(ranks + 1, 0);
      total_weight_ = total_sum_ = 0;
      top_ = 1;
      while (2 * top_ <= ranks) top_ *= 2;
    }
    void add(std::size_t rank, std::int64_t weight, std::int64_t target) {
      for (std::size_t i = rank + 1; i < weight_.size(); i += i & (~i + 1)) {
        weight_[i] += weight;
        sum_[i] += weight * target;
      }
      total_weight_ += weight;
      total_sum_ += weight * target;
    }
    // The smallest rank up to which at least half of the weight lies, found by descent.
    std::size_t median_rank() const {
      std::int64_t weight, sum;
      return descend(weight, sum);
    }
    std::uint64_t weight_up_to(std::size_t rank) const {
      std::int64_t weight = 0;
      for (std::size_t i = rank + 1; i > 0; i -= i & (~i + 1)) weight += weight_[i];
      return static_cast<std::uint64_t>(weight);
    }
    // Sum of weight times distance to the median.
    std::int64_t deviation(const std::vector<std::int64_t>& distinct) const {
      std::int64_t weight, sum;
      const std::int64_t median = distinct[std::min(descend(weight, sum), distinct.size() - 1)];
      return median * weight - sum + (total_sum_ - sum) - median * (total_weight_ - weight);
    }
    std::uint64_t total_weight() const { return static_cast<std::uint64_t>(total_weight_); }

   private:
    // Returns the median's rank; weight and sum are those of the ranks strictly below it.
    std::size_t descend(std::int64_t& weight, std::int64_t& sum) const {
      std::size_t position = 0;
      weight = sum = 0;
      for (std::size_t step = top_; step > 0; step /= 2) {
        const std::size_t next = position + step;
        if (next < weight_.size() && 2 * (weight + weight_[next]) < total_weight_) {
          position = next;
          weight += weight_[next];
          sum += sum_[next];
        }
      }
      return position;
    }
    std::vector<std::int64_t> weight_, sum_;
    std::int64_t total_weight_ = 0, total_sum_ = 0;
    std::size_t top_ = 1;
  };

  const std::int64_t* target_of_row_;
  int bits_;
  const std::uint32_t* weight_ = nullptr;
  std::uint64_t total_weight_ = 0;
  std::vector<std::int64_t> targets_, distinct_;
  std::vector<std::uint32_t> rank_;
  Side all_, left_, right_;
};

}  // namespace morf
