// Criteria of regression that need sums of targets alone: squared error and Poisson deviance.
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
#include "splitting/criterion.hpp"

namespace morf {

struct SquaredError {
  static double side(std::int64_t sum, std::uint64_t w) {
    const double s = static_cast<double>(sum);
    return s * s * reciprocal(w);
  }
  static bool allowed(std::int64_t) { return true; }
  static double unit(int bits) { return std::ldexp(1.0, -2 * bits); }
};

struct Poisson {
  static double side(std::int64_t sum, std::uint64_t w) {
    const double s = static_cast<double>(sum);
    return s * (portable_log2(s) - portable_log2(static_cast<double>(w)));
  }
  static bool allowed(std::int64_t sum) { return sum > 0; }
  static double unit(int bits) { return std::ldexp(0.6931471805599453, -bits); }
};

// Criteria that need the two sides' sums of targets and nothing else.
template <class Loss>
class SumCriterion {
 public:
  static constexpr bool has_bins = true;
  static constexpr bool has_codes = false;
  static constexpr bool has_narrow_bins = false;
  static constexpr bool has_counts = false;

  SumCriterion(const std::int64_t* target_of_row, int bits) : target_of_row_(target_of_row), bits_(bits) {}

  [[gnu::noinline]] void begin_node(const NodeRows& node) {
    weight_ = node.weight;
    total_weight_ = node.total_weight;
    reserve_at_least(weighted_, node.size);
    total_sum_ = 0;
    pure_ = true;
    const std::int64_t first = target_of_row_[node.rows[0]];
    for (std::size_t i = 0; i < node.size; ++i) {
      const std::int64_t y = target_of_row_[node.rows[i]];
      pure_ &= y == first;
      weighted_[i] = y * static_cast<std::int64_t>(node.weight[i]);
      total_sum_ += weighted_[i];
    }
  }

  bool pure() const { return pure_; }
  double leaf_value() const { return static_cast<double>(total_sum_) / static_cast<double>(total_weight_); }

  [[gnu::noinline]] std::size_t append_leaf(Leaves& leaves) const {
    leaves.value.push_back(leaf_value());
    return leaves.value.size() - 1;
  }

  double parent() const { return Loss::side(total_sum_, total_weight_); }
  double gain_of(double difference, double tree_weight) const { return difference / tree_weight * Loss::unit(bits_); }
  double gain(double score, double tree_weight) const { return gain_of(score - parent(), tree_weight); }

  double ceiling() const { return infinity; }

  void begin_scan() { left_sum_ = 0, left_weight_ = 0; }

  void move(std::size_t i) {
    left_sum_ += weighted_[i];
    left_weight_ += weight_[i];
  }

  double score() const {
    const std::int64_t right_sum = total_sum_ - left_sum_;
    if (!Loss::allowed(left_sum_) || !Loss::allowed(right_sum)) return minus_infinity;
    return Loss::side(left_sum_, left_weight_) + Loss::side(right_sum, total_weight_ - left_weight_);
  }

  std::uint64_t left_weight() const { return left_weight_; }

  std::size_t bin_width() const { return 2; }

  void begin_bins() {
    bin_sum_.assign(bin_count * lanes, 0);
    bin_weight_.assign(bin_count * lanes, 0);
  }

  [[gnu::noinline]] void add_to_bins(const BinChunk& chunk) {
    for (std::size_t i = 0; i < chunk.size; ++i) {
      const std::int64_t sum = weighted_[chunk.first + i];
      const std::uint32_t w = weight_[chunk.first + i];
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const std::size_t at = chunk.place[lane][i] + lane;
        bin_sum_[at] += sum;
        bin_weight_[at] += w;
      }
    }
  }

  void begin_bin_scan() {
    std::fill_n(lane_sum_, lanes, 0);
    std::fill_n(lane_weight_, lanes, 0u);
  }

  void move_bin(std::size_t b, std::uint32_t* moved) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      lane_sum_[lane] += bin_sum_[b * lanes + lane];
      lane_weight_[lane] += bin_weight_[b * lanes + lane];
      moved[lane] = bin_weight_[b * lanes + lane];
    }
  }

  void bin_scores(double* scores) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      left_sum_ = lane_sum_[lane];
      left_weight_ = lane_weight_[lane];
      const bool empty_side = left_weight_ == 0 || left_weight_ == total_weight_;
      scores[lane] = empty_side ? std::numeric_limits<double>::quiet_NaN() : score();
    }
  }

  std::uint64_t bin_left_weight(std::size_t lane) const { return lane_weight_[lane]; }

 private:
  const std::int64_t* target_of_row_;
  int bits_;
  const std::uint32_t* weight_ = nullptr;
  std::vector<std::int64_t> weighted_, bin_sum_;
  std::vector<std::uint32_t> bin_weight_;
  std::int64_t lane_sum_[lanes] = {};
  std::uint32_t lane_weight_[lanes] = {};
  bool pure_ = false;
  std::uint64_t total_weight_ = 0, left_weight_ = 0;
  std::int64_t total_sum_ = 0, left_sum_ = 0;
};

}  // namespace morf
