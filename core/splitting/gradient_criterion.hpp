// The criterion of boosted trees; see gradients.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "splitting/criterion.hpp"
#include "splitting/gradients.hpp"

namespace morf {

class GradientCriterion {
 public:
  static constexpr bool has_bins = true;
  static constexpr bool has_codes = false;
  static constexpr bool has_narrow_bins = false;
  static constexpr bool has_counts = false;

  GradientCriterion(const Gradients& of, LeafRule leaf)
      : of_(&of), leaf_(leaf), stride_(of.stride()), outputs_(of.outputs()),
        l2_(leaf.l2 / of.curvature_unit(Gradients::coarse_bits)), total_(stride_), left_(stride_), lane_left_(stride_ * lanes) {}

  [[gnu::noinline]] void begin_node(const NodeRows& node) {
    node_ = node;
    counted_ = false;
    for (std::size_t i = 0; i < node.size; ++i) counted_ |= node.count[i] != 1;
    reserve_at_least(vectors_, node.size * stride_);
    std::fill(total_.begin(), total_.end(), 0);
    for (std::size_t i = 0; i < node.size; ++i) {
      const std::int16_t* const from = of_->coarse(node.rows[i]);
      std::int16_t* const to = &vectors_[i * stride_];
      const std::int64_t count = node.count[i];
      for (std::size_t k = 0; k < stride_; ++k) {
        to[k] = from[k];
        total_[k] += count * from[k];
      }
    }
    parent_ = side(total_.data());
  }

  bool pure() const { return false; }
  double floor() const { return parent_; }
  double ceiling() const { return infinity; }
  double gain(double score, double tree_weight) const {
    const double unit = of_->gradient_unit(Gradients::coarse_bits);
    return (score - parent_) * unit * unit / of_->curvature_unit(Gradients::coarse_bits) / tree_weight;
  }

  [[gnu::noinline]] std::size_t append_leaf(Leaves& leaves) {
    const std::size_t payload = leaves.value.size() / outputs_;
    fine_.assign(2 * outputs_, 0);
    for (std::size_t i = 0; i < node_.size; ++i) {
      const std::int64_t count = node_.count[i];
      const std::int32_t *const g = of_->gradient(node_.rows[i]), *const h = of_->curvature(node_.rows[i]);
      for (std::size_t k = 0; k < outputs_; ++k) {
        fine_[k] += count * g[k];
        fine_[outputs_ + k] += count * h[k];
      }
    }
    for (std::size_t k = 0; k < outputs_; ++k) {
      const double g = static_cast<double>(fine_[k]) * of_->gradient_unit(Gradients::fine_bits);
      const double h = static_cast<double>(fine_[outputs_ + k]) * of_->curvature_unit(Gradients::fine_bits) + leaf_.l2;
      const double value = h > 0.0 ? g / h : 0.0;
      leaves.value.push_back(leaf_.learning_rate * std::clamp(value, -leaf_.largest, leaf_.largest));
    }
    return payload;
  }

  void begin_scan() {
    std::fill(left_.begin(), left_.end(), 0);
    left_weight_ = 0;
  }

  void move(std::size_t i) {
    const std::int16_t* const from = &vectors_[i * stride_];
    const std::int64_t count = node_.count[i];
    for (std::size_t k = 0; k < stride_; ++k) left_[k] += count * from[k];
    left_weight_ += node_.weight[i];
  }

  double score() const { return both(left_.data()); }
  std::uint64_t left_weight() const { return left_weight_; }

  std::size_t bin_width() const { return stride_; }

  // Bins are laid out [lane][bin][number]. Sums of 32 bits are emptied into those of 64 before they could overflow.
  void begin_bins() {
    bins_.assign(lanes * bin_count * stride_, 0);
    wide_bins_.clear();
    bin_weight_.assign(lanes * bin_count, 0);
    in_bins_ = 0;
  }

  [[gnu::noinline]] void add_to_bins(const BinChunk& chunk) {
    std::uint64_t added = 0;
    for (std::size_t i = 0; i < chunk.size; ++i) added += node_.count[chunk.first + i];
    if (in_bins_ + added > most_in_bins) empty_bins();
    if (added > most_in_bins) return add_wide(chunk);
    in_bins_ += added;
    if (counted_) return add<true>(chunk, stride_);
    switch (stride_) {
      case 2: return add<false>(chunk, std::integral_constant<std::size_t, 2>{});
      case 4: return add<false>(chunk, std::integral_constant<std::size_t, 4>{});
      case lanes: return add<false>(chunk, std::integral_constant<std::size_t, lanes>{});
      case 2 * lanes: return add<false>(chunk, std::integral_constant<std::size_t, 2 * lanes>{});
      default: return add<false>(chunk, stride_);
    }
  }

  void begin_bin_scan() {
    std::fill(lane_left_.begin(), lane_left_.end(), 0);
    std::fill_n(lane_weight_, lanes, std::uint64_t{0});
  }

  void move_bin(std::size_t b, std::uint32_t* moved) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const std::size_t at = lane * bin_count + b;
      std::int64_t* const left = &lane_left_[lane * stride_];
      for (std::size_t k = 0; k < stride_; ++k) left[k] += bins_[at * stride_ + k];
      if (!wide_bins_.empty())
        for (std::size_t k = 0; k < stride_; ++k) left[k] += wide_bins_[at * stride_ + k];
      moved[lane] = bin_weight_[at];
      lane_weight_[lane] += moved[lane];
    }
  }

  // NaN where a side is empty.
  void bin_scores(double* scores) const {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const bool empty = lane_weight_[lane] == 0 || lane_weight_[lane] == node_.total_weight;
      scores[lane] = empty ? std::numeric_limits<double>::quiet_NaN() : both(&lane_left_[lane * stride_]);
    }
  }

  std::uint64_t bin_left_weight(std::size_t lane) const { return lane_weight_[lane]; }

 private:
  static constexpr std::uint64_t most_in_bins = std::uint64_t{1} << (31 - Gradients::coarse_bits - 1);

  template <bool counted, class Stride>
  void add(const BinChunk& chunk, Stride stride) {
    for (std::size_t i = 0; i < chunk.size; ++i) {
      const std::int16_t* const from = &vectors_[(chunk.first + i) * stride];
      const std::uint32_t weight = node_.weight[chunk.first + i];
      const auto count = static_cast<std::int32_t>(node_.count[chunk.first + i]);
      for (std::size_t lane = 0; lane < chunk.used; ++lane) {
        const std::size_t at = lane * bin_count + chunk.place[lane][i] / lanes;
        std::int32_t* const to = &bins_[at * stride];
        for (std::size_t k = 0; k < stride; ++k) to[k] += counted ? count * from[k] : from[k];
        bin_weight_[at] += weight;
      }
    }
  }

  void add_wide(const BinChunk& chunk) {
    wide_bins_.resize(bins_.size());
    for (std::size_t i = 0; i < chunk.size; ++i)
      for (std::size_t lane = 0; lane < chunk.used; ++lane) {
        const std::size_t at = lane * bin_count + chunk.place[lane][i] / lanes;
        for (std::size_t k = 0; k < stride_; ++k)
          wide_bins_[at * stride_ + k] += std::int64_t{node_.count[chunk.first + i]} * vectors_[(chunk.first + i) * stride_ + k];
        bin_weight_[at] += node_.weight[chunk.first + i];
      }
  }

  void empty_bins() {
    wide_bins_.resize(bins_.size());
    for (std::size_t i = 0; i < bins_.size(); ++i) wide_bins_[i] += bins_[i];
    std::fill(bins_.begin(), bins_.end(), 0);
    in_bins_ = 0;
  }

  // In four sums, whose order is part of the definition.
  template <class At>
  double squares(At at) const {
    double sum[4] = {};
    for (std::size_t k = 0; k < outputs_; ++k) {
      const auto g = static_cast<double>(at(k));
      sum[k % 4] += g * g;
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }

  // Rows without gradient and curvature are worth nothing.
  static double quotient(double squares, double curvature) { return curvature > 0.0 ? squares / curvature : 0.0; }

  double side(const std::int64_t* sums) const {
    return quotient(squares([&](std::size_t k) { return sums[k]; }), static_cast<double>(sums[outputs_]) + l2_);
  }

  double both(const std::int64_t* left) const {
    const double right = squares([&](std::size_t k) { return total_[k] - left[k]; });
    return side(left) + quotient(right, static_cast<double>(total_[outputs_] - left[outputs_]) + l2_);
  }

  const Gradients* of_;
  LeafRule leaf_;
  std::size_t stride_, outputs_;
  double l2_;  // in units of the coarse curvatures
  NodeRows node_{};
  bool counted_ = false;  // some row counts more than once
  std::vector<std::int16_t> vectors_;  // of the node's rows
  std::vector<std::int64_t> total_, left_, lane_left_, fine_, wide_bins_;
  std::vector<std::int32_t> bins_;
  std::vector<std::uint32_t> bin_weight_;
  std::uint64_t lane_weight_[lanes] = {}, left_weight_ = 0, in_bins_ = 0;
  double parent_ = 0.0;
};

}  // namespace morf
