// The search of a node by one criterion. Each criterion has a source file that compiles it for all types of values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "splitting/node_search.hpp"
#include "splitting/split_search.hpp"

namespace morf {

inline constexpr std::size_t values_at_once = std::size_t{1} << 21;  // candidates pass in groups below this size

template <class Value, class Criterion>
class CriterionSearch final : public NodeSearch<Value> {
 public:
  CriterionSearch(Projection<Value>& projection, Criterion criterion, Splitter splitter)
      : NodeSearch<Value>(projection), criterion_(std::move(criterion)), search_(splitter) {}

  std::unique_ptr<NodeSearch<Value>> copy(Projection<Value>& projection) const override {
    if constexpr (shared) {
      auto other = std::make_unique<CriterionSearch>(*this);
      other->projection_ = &projection;
      return other;
    } else {
      static_cast<void>(projection);
      throw std::logic_error("only boosting shares a node among threads");
    }
  }

  void set_limits(SideLimits limits) override { search_.set_limits(limits); }
  bool begin_node(const NodeRows& node) override {
    criterion_.begin_node(node);
    return criterion_.pure();
  }
  double ceiling() const override { return criterion_.ceiling(); }
  double floor() const override {
    if constexpr (shared) return criterion_.floor();
    else return minus_infinity;
  }
  double gain(double score, double tree_weight) const override { return criterion_.gain(score, tree_weight); }
  std::size_t append_leaf(Leaves& leaves) override { return criterion_.append_leaf(leaves); }

  void look(const NodeRows& node, const AtomList& atoms, std::size_t first, std::size_t end, const Poll& poll) override {
    auto& best = this->best;
    const std::size_t stride = whole_blocks(node.size);
    const std::size_t group = std::clamp<std::size_t>(values_at_once / stride, 1, end - first);
    for (; first < end; first += group) {
      const std::size_t candidates = std::min(group, end - first);
      reserve_at_least(values_, candidates * stride);
      reserve_at_least(ranges_, candidates);
      (*this->projection_)(node.rows, node.size, atoms, first, candidates, values_.data(), stride, ranges_.data());
      const double before = best.score;
      search_(node, criterion_, values_.data(), stride, ranges_.data(), first, candidates, best);
      if (best.score > before) {
        reserve_at_least(this->best_values, node.size);
        std::copy_n(&values_[(best.candidate - first) * stride], node.size, this->best_values.begin());
      }
      if (first + group < end) poll(node.size);
    }
  }

 private:
  static constexpr bool shared = requires(const Criterion& criterion) { criterion.floor(); };  // of boosting

  Criterion criterion_;
  SplitSearch<Value, Criterion> search_;
  std::vector<Value> values_;
  std::vector<Range<Value>> ranges_;
};

// One for each criterion, and one for several outputs; see the source files named after them.
template <class Value>
std::unique_ptr<NodeSearch<Value>> search_by_gini(Splitter splitter, const Targets& targets, Projection<Value>& projection);
template <class Value>
std::unique_ptr<NodeSearch<Value>> search_by_entropy(Splitter splitter, const Targets& targets, Projection<Value>& projection);
template <class Value>
std::unique_ptr<NodeSearch<Value>> search_by_squared_error(Splitter splitter, const Targets& targets,
                                                           Projection<Value>& projection);
template <class Value>
std::unique_ptr<NodeSearch<Value>> search_by_poisson(Splitter splitter, const Targets& targets, Projection<Value>& projection);
template <class Value>
std::unique_ptr<NodeSearch<Value>> search_by_absolute_error(Splitter splitter, const Targets& targets,
                                                            Projection<Value>& projection);
template <class Value>
std::unique_ptr<NodeSearch<Value>> search_by_gradient(Splitter splitter, const Targets& targets, Projection<Value>& projection);
template <class Value>
std::unique_ptr<NodeSearch<Value>> search_by_several(CriterionKind criterion, Splitter splitter, const Targets& targets,
                                                     Projection<Value>& projection);

}  // namespace morf

// Defines and compiles search_by_NAME. CRITERION is an expression of `targets`.
#define MORFOREST_SEARCH_BY(NAME, CRITERION)                                                                                  \
  namespace morf {                                                                                                            \
  template <class Value>                                                                                                      \
  std::unique_ptr<NodeSearch<Value>> search_by_##NAME(Splitter splitter, const Targets& targets,                              \
                                                      Projection<Value>& projection) {                                        \
    auto criterion = CRITERION;                                                                                               \
    return std::make_unique<CriterionSearch<Value, decltype(criterion)>>(projection, std::move(criterion), splitter);         \
  }                                                                                                                           \
  template std::unique_ptr<NodeSearch<std::uint16_t>> search_by_##NAME(Splitter, const Targets&, Projection<std::uint16_t>&); \
  template std::unique_ptr<NodeSearch<std::int32_t>> search_by_##NAME(Splitter, const Targets&, Projection<std::int32_t>&);   \
  template std::unique_ptr<NodeSearch<std::int64_t>> search_by_##NAME(Splitter, const Targets&, Projection<std::int64_t>&);   \
  template std::unique_ptr<NodeSearch<double>> search_by_##NAME(Splitter, const Targets&, Projection<double>&);               \
  }
