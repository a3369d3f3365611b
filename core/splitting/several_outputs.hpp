// The criteria of several outputs: a score is the sum of those of the outputs, each by a criterion of its own.
//
// Criteria of single outputs stand behind virtual calls, one for many rows, so that the search is compiled once for all of them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "splitting/criterion.hpp"
#include "splitting/split.hpp"

namespace morf {

// Rows in an order, and after which of them a split may stand.
struct RowOrder {
  std::vector<std::uint32_t> position;
  std::vector<std::uint8_t> ends_here;
};

class OutputCriterion {
 public:
  virtual ~OutputCriterion() = default;
  virtual void begin_node(const NodeRows& node) = 0;
  virtual bool pure() const = 0;
  virtual double parent() const = 0;
  virtual double ceiling() const = 0;
  virtual double gain_of(double difference, double tree_weight) const = 0;
  // Writes what the node says of this output; its classes are numbered from `first_class` on.
  virtual void append(Leaves& leaves, std::uint32_t first_class) const = 0;
  // Adds the score after each row of an order where a split may stand, times a factor.
  virtual void add_scores(const RowOrder& order, std::size_t size, double factor, double* scores) = 0;

  virtual std::size_t bin_width() const = 0;
  virtual void begin_bins() = 0;
  virtual void add_to_bins(const BinChunk& chunk) = 0;
  virtual void begin_bin_scan() = 0;
  virtual void move_bin(std::size_t b, std::uint32_t* moved) = 0;
  virtual void bin_scores(double* scores) = 0;
  virtual std::uint64_t bin_left_weight(std::size_t lane) const = 0;
};

template <class Criterion>
class OutputBy final : public OutputCriterion {
 public:
  explicit OutputBy(Criterion criterion) : criterion_(std::move(criterion)) {}

  void begin_node(const NodeRows& node) override { criterion_.begin_node(node); }
  bool pure() const override { return criterion_.pure(); }
  double parent() const override { return criterion_.parent(); }
  double ceiling() const override { return criterion_.ceiling(); }
  double gain_of(double difference, double tree_weight) const override { return criterion_.gain_of(difference, tree_weight); }
  void append(Leaves& leaves, std::uint32_t first_class) const override {
    if constexpr (requires { criterion_.leaf_value(); }) leaves.value.push_back(criterion_.leaf_value());
    else criterion_.append_distribution(leaves, first_class);
  }

  void add_scores(const RowOrder& order, std::size_t size, double factor, double* scores) override {
    criterion_.begin_scan();
    for (std::size_t i = 0; i + 1 < size; ++i) {
      criterion_.move(order.position[i]);
      if (order.ends_here[i]) scores[i] += factor * criterion_.score();
    }
  }

  std::size_t bin_width() const override {
    if constexpr (Criterion::has_bins) return criterion_.bin_width();
    else return 0;
  }
  void begin_bins() override {
    if constexpr (Criterion::has_bins) criterion_.begin_bins();
  }
  void add_to_bins(const BinChunk& chunk) override {
    if constexpr (Criterion::has_bins) criterion_.add_to_bins(chunk);
  }
  void begin_bin_scan() override {
    if constexpr (Criterion::has_bins) criterion_.begin_bin_scan();
    else throw std::logic_error("a criterion without bins");
  }
  void move_bin(std::size_t b, std::uint32_t* moved) override {
    if constexpr (Criterion::has_bins) criterion_.move_bin(b, moved);
  }
  void bin_scores(double* scores) override {
    if constexpr (Criterion::has_bins) criterion_.bin_scores(scores);
  }
  std::uint64_t bin_left_weight(std::size_t lane) const override {
    if constexpr (Criterion::has_bins) return criterion_.bin_left_weight(lane);
    else return 0;
  }

 private:
  Criterion criterion_;
};

class SeveralOutputs {
 public:
  static constexpr bool has_bins = true;
  static constexpr bool has_codes = false;
  static constexpr bool has_narrow_bins = false;
  static constexpr bool has_counts = false;

  // Adds an output whose scores count times a factor; its classes are numbered from `first_class` on. Gains are in the units of
  // the output whose factor is one.
  void add(std::unique_ptr<OutputCriterion> criterion, double factor, std::uint32_t first_class) {
    if (factor == 1.0) unit_ = outputs_.size();
    outputs_.push_back({std::move(criterion), factor, first_class});
  }

  void begin_node(const NodeRows& node) {
    for (auto& output : outputs_) output.criterion->begin_node(node);
  }
  bool pure() const {
    for (const auto& output : outputs_)
      if (!output.criterion->pure()) return false;
    return true;
  }
  double ceiling() const {
    return sum([](const OutputCriterion& criterion) { return criterion.ceiling(); });
  }
  // The mean over outputs.
  double gain(double score, double tree_weight) const {
    const double parent = sum([](const OutputCriterion& criterion) { return criterion.parent(); });
    return outputs_[unit_].criterion->gain_of(score - parent, tree_weight) / static_cast<double>(outputs_.size());
  }

  std::size_t append_leaf(Leaves& leaves) const {
    const std::size_t entries = leaves.distribution_class.size();
    for (const auto& output : outputs_) output.criterion->append(leaves, output.first_class);
    if (leaves.class_count > 0)
      leaves.distribution_size.push_back(static_cast<std::uint32_t>(leaves.distribution_class.size() - entries));
    return leaves.payloads() - 1;
  }

  // The same as scan_order, see split_search.hpp.
  template <class Order>
  std::size_t score_order(const NodeRows& node, SideLimits limits, const Order& order, double& best_score) {
    reserve_at_least(order_.position, node.size);
    reserve_at_least(order_.ends_here, node.size);
    scores_.assign(node.size, 0.0);
    std::uint64_t left_count = 0, left_weight = 0;
    for (std::size_t i = 0; i + 1 < node.size; ++i) {
      const auto row = static_cast<std::uint32_t>(order.position(i));
      order_.position[i] = row;
      left_count += node.count[row];
      left_weight += node.weight[row];
      order_.ends_here[i] = order.differs(i) && limits.allow(node, left_count, left_weight);
    }
    for (auto& output : outputs_) output.criterion->add_scores(order_, node.size, output.factor, scores_.data());
    std::size_t best_at = node.size;
    for (std::size_t i = 0; i + 1 < node.size; ++i)
      if (order_.ends_here[i] && scores_[i] > best_score) {
        best_score = scores_[i];
        best_at = i;
      }
    return best_at;
  }

  // A bin holds the numbers of all outputs.
  std::size_t bin_width() const {
    std::size_t width = 0;
    for (const auto& output : outputs_) width += output.criterion->bin_width();
    return width;
  }
  void begin_bins() {
    for (auto& output : outputs_) output.criterion->begin_bins();
  }
  void add_to_bins(const BinChunk& chunk) {
    for (auto& output : outputs_) output.criterion->add_to_bins(chunk);
  }
  void begin_bin_scan() {
    for (auto& output : outputs_) output.criterion->begin_bin_scan();
  }
  void move_bin(std::size_t b, std::uint32_t* moved) {
    for (auto& output : outputs_) output.criterion->move_bin(b, moved);  // the same rows for each
  }
  void bin_scores(double* scores) {
    double of_output[lanes];
    for (std::size_t lane = 0; lane < lanes; ++lane) scores[lane] = 0.0;
    for (auto& output : outputs_) {
      output.criterion->bin_scores(of_output);
      for (std::size_t lane = 0; lane < lanes; ++lane) scores[lane] += output.factor * of_output[lane];
    }
  }
  std::uint64_t bin_left_weight(std::size_t lane) const { return outputs_.front().criterion->bin_left_weight(lane); }

 private:
  struct Output {
    std::unique_ptr<OutputCriterion> criterion;
    double factor;
    std::uint32_t first_class;
  };

  template <class Of>
  double sum(Of of) const {
    double total = 0.0;
    for (const auto& output : outputs_) total += output.factor * of(*output.criterion);
    return total;
  }

  std::vector<Output> outputs_;
  std::size_t unit_ = 0;
  RowOrder order_;
  std::vector<double> scores_;
};

}  // namespace morf
