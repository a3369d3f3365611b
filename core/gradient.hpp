// The criterion of boosted trees: vectors of gradients, one number an output, and leaves that hold a vector.
//
// Gradients are fixed point, so that sums are exact and trees do not depend on the order in which they are taken. With G the
// sums of the gradients at a node and H that of the row's curvatures, a side is worth sum(G^2) / (H + l2).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "criterion.hpp"
#include "lanes.hpp"

namespace morf {

// What a round of boosting knows of each row: `stride` numbers, a multiple of `lanes`: the negative gradient of each output, then
// the mean of the curvatures, then zeros. `curvature` has one number an output, for the leaves.
struct Gradients {
  const std::int16_t* gradient = nullptr;
  const std::int16_t* curvature = nullptr;
  std::size_t outputs = 0, stride = 0;
  double gradient_unit = 1.0, curvature_unit = 1.0;
  double l2 = 1.0, largest_leaf = std::numeric_limits<double>::infinity();

  static constexpr std::size_t stride_of(std::size_t outputs) { return (outputs + 1 + lanes - 1) / lanes * lanes; }
};

class GradientCriterion {
 public:
  static constexpr bool has_bins = true;
  static constexpr bool has_codes = false;
  static constexpr bool has_narrow_bins = false;
  static constexpr bool has_counts = false;

  explicit GradientCriterion(const Gradients& rows)
      : rows_(rows), l2_(rows.l2 / rows.curvature_unit), total_(rows.stride), left_(rows.stride), lane_left_(rows.stride * lanes) {}

  void begin_node(const NodeRows& node) {
    const std::size_t stride = rows_.stride;
    node_ = &node_copy_;
    node_copy_ = node;
    reserve_at_least(vectors_, node.size * stride);
    std::fill(total_.begin(), total_.end(), 0);
    for (std::size_t i = 0; i < node.size; ++i) {
      const std::int16_t* from = rows_.gradient + node.rows[i] * stride;
      std::int16_t* to = &vectors_[i * stride];
      for (std::size_t k = 0; k < stride; ++k) {
        to[k] = from[k];
        total_[k] += from[k];
      }
    }
    parent_ = side(total_.data());
  }

  bool pure() const { return false; }
  double ceiling() const { return infinity; }
  double gain(double score, double tree_weight) const {
    return (score - parent_) * rows_.gradient_unit * rows_.gradient_unit / rows_.curvature_unit / tree_weight;
  }

  void append_leaf(std::vector<double>& leaf_values) const {
    std::vector<std::int64_t> curvature(rows_.outputs, 0);
    for (std::size_t i = 0; i < node_->size; ++i)
      for (std::size_t k = 0; k < rows_.outputs; ++k) curvature[k] += rows_.curvature[node_->rows[i] * rows_.outputs + k];
    for (std::size_t k = 0; k < rows_.outputs; ++k) {
      const double value = static_cast<double>(total_[k]) * rows_.gradient_unit /
                           (static_cast<double>(curvature[k]) * rows_.curvature_unit + rows_.l2);
      leaf_values.push_back(std::clamp(value, -rows_.largest_leaf, rows_.largest_leaf));
    }
  }

  void begin_scan() {
    std::fill(left_.begin(), left_.end(), 0);
    left_weight_ = 0;
  }

  void move(std::size_t i) {
    const std::int16_t* from = &vectors_[i * rows_.stride];
    for (std::size_t k = 0; k < rows_.stride; ++k) left_[k] += from[k];
    left_weight_ += node_->weight[i];
  }

  double score() const { return both(left_.data()); }
  std::uint64_t left_weight() const { return left_weight_; }

  std::size_t bin_width() const { return rows_.stride; }

  // Bins are laid out [lane][bin][number].
  void begin_bins() {
    bins_.assign(lanes * bin_count * rows_.stride, 0);
    bin_weight_.assign(lanes * bin_count, 0);
  }

  void add_to_bins(const BinChunk& chunk) {
    const auto add = [&](auto stride) {
      for (std::size_t i = 0; i < chunk.size; ++i) {
        const std::int16_t* from = &vectors_[(chunk.first + i) * stride];
        const std::uint32_t w = node_->weight[chunk.first + i];
        for (std::size_t lane = 0; lane < chunk.used; ++lane) {
          const std::size_t at = lane * bin_count + chunk.place[lane][i] / lanes;
          std::int32_t* to = &bins_[at * stride];
          for (std::size_t k = 0; k < stride; ++k) to[k] += from[k];
          bin_weight_[at] += w;
        }
      }
    };
    if (rows_.stride == lanes) add(std::integral_constant<std::size_t, lanes>{});
    else if (rows_.stride == 2 * lanes) add(std::integral_constant<std::size_t, 2 * lanes>{});
    else add(rows_.stride);
  }

  void begin_bin_scan() {
    std::fill(lane_left_.begin(), lane_left_.end(), 0);
    std::fill_n(lane_weight_, lanes, 0u);
  }

  void move_bin(std::size_t b, std::uint32_t* moved) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const std::int32_t* from = &bins_[(lane * bin_count + b) * rows_.stride];
      for (std::size_t k = 0; k < rows_.stride; ++k) lane_left_[lane * rows_.stride + k] += from[k];
      moved[lane] = bin_weight_[lane * bin_count + b];
      lane_weight_[lane] += moved[lane];
    }
  }

  // NaN where a side is empty.
  void bin_scores(double* scores) const {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const bool empty = lane_weight_[lane] == 0 || lane_weight_[lane] == node_->total_weight;
      scores[lane] = empty ? std::numeric_limits<double>::quiet_NaN() : both(&lane_left_[lane * rows_.stride]);
    }
  }

  std::uint64_t bin_left_weight(std::size_t lane) const { return lane_weight_[lane]; }

 private:
  // In four sums, whose order is part of the definition.
  template <class At>
  double squares(At at) const {
    double sum[4] = {};
    for (std::size_t k = 0; k < rows_.outputs; ++k) {
      const auto g = static_cast<double>(at(k));
      sum[k % 4] += g * g;
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }

  double side(const std::int64_t* sums) const {
    return squares([&](std::size_t k) { return sums[k]; }) / (static_cast<double>(sums[rows_.outputs]) + l2_);
  }

  double both(const std::int64_t* left) const {
    const double right = squares([&](std::size_t k) { return total_[k] - left[k]; });
    return side(left) + right / (static_cast<double>(total_[rows_.outputs] - left[rows_.outputs]) + l2_);
  }

  const Gradients& rows_;
  double l2_;  // in units of the curvatures
  NodeRows node_copy_{};
  const NodeRows* node_ = nullptr;
  std::vector<std::int16_t> vectors_;
  std::vector<std::int64_t> total_, left_, lane_left_;
  std::vector<std::int32_t> bins_;
  std::vector<std::uint32_t> bin_weight_;
  std::uint32_t lane_weight_[lanes] = {};
  std::uint64_t left_weight_ = 0;
  double parent_ = 0.0;
};

}  // namespace morf
