// Several outputs score, gain and say what their criteria do one by one; damaged leaves of theirs are refused.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "splitting/class_criterion.hpp"
#include "splitting/several_outputs.hpp"
#include "splitting/sum_criterion.hpp"

#include "check.hpp"
#include "data.hpp"

using namespace morf;

namespace {

struct Order {
  std::vector<std::size_t> place;
  std::vector<std::uint8_t> ends;
  std::size_t position(std::size_t i) const { return place[i]; }
  bool differs(std::size_t i) const { return ends[i] != 0; }
};

// A node of all rows, with two outputs of classes and two of numbers.
struct Node {
  std::vector<std::uint32_t> rows, count, weight;
  std::vector<std::vector<std::uint32_t>> classes;
  std::vector<std::vector<std::int64_t>> values;
  NodeRows node{};

  Node(Random& random, std::size_t size)
      : rows(size), count(size), weight(size), classes(2, std::vector<std::uint32_t>(size)),
        values(2, std::vector<std::int64_t>(size)) {
    std::iota(rows.begin(), rows.end(), 0u);
    for (std::size_t i = 0; i < size; ++i) {
      count[i] = static_cast<std::uint32_t>(random.between(1, 3));
      weight[i] = static_cast<std::uint32_t>(random.between(1, 9));
      classes[0][i] = static_cast<std::uint32_t>(random.index(2));
      classes[1][i] = static_cast<std::uint32_t>(random.index(5));
      values[0][i] = random.between(0, 99);
      values[1][i] = random.between(0, 9999);
      node.total_count += count[i];
      node.total_weight += weight[i];
    }
    node.rows = rows.data();
    node.size = size;
    node.count = count.data();
    node.weight = weight.data();
  }
};

constexpr int coarse = 3, fine = 9;

template <class Criterion>
std::unique_ptr<OutputCriterion> output(Criterion criterion) {
  return std::make_unique<OutputBy<Criterion>>(std::move(criterion));
}

SeveralOutputs of_classes(const Node& n) {
  SeveralOutputs outputs;
  outputs.add(output(ClassCriterion<Gini, false>(n.classes[0].data(), 2)), 1.0, 0);
  outputs.add(output(ClassCriterion<Gini, false>(n.classes[1].data(), 5)), 1.0, 2);
  return outputs;
}

SeveralOutputs of_values(const Node& n) {
  SeveralOutputs outputs;
  outputs.add(output(SumCriterion<SquaredError>(n.values[0].data(), fine)), std::ldexp(1.0, 2 * (coarse - fine)), 0);
  outputs.add(output(SumCriterion<SquaredError>(n.values[1].data(), coarse)), 1.0, 0);
  return outputs;
}

// The best place in an order, by two criteria that know nothing of each other.
template <class First, class Second>
std::pair<double, std::size_t> best_of(const Node& n, const Order& order, SideLimits limits, First first, Second second,
                                       double factor) {
  std::pair<double, std::size_t> best{minus_infinity, n.node.size};
  first.begin_node(n.node), second.begin_node(n.node);
  first.begin_scan(), second.begin_scan();
  std::uint64_t count = 0;
  for (std::size_t i = 0; i + 1 < n.node.size; ++i) {
    first.move(order.place[i]), second.move(order.place[i]);
    count += n.count[order.place[i]];
    if (!order.ends[i] || !limits.allow(n.node, count, first.left_weight())) continue;
    const double score = factor * first.score() + second.score();
    if (score > best.first) best = {score, i};
  }
  return best;
}

}  // namespace

TEST(orders_are_scored_by_the_sum_over_outputs) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    const Node n(random, 1 + random.index(60));
    Order order{std::vector<std::size_t>(n.node.size), std::vector<std::uint8_t>(n.node.size)};
    std::iota(order.place.begin(), order.place.end(), std::size_t{0});
    random.shuffle(order.place);
    for (auto& end : order.ends) end = random.chance(0.6);
    const SideLimits limits{1 + random.index(5), random.index(20)};
    const auto check = [&](SeveralOutputs outputs, std::pair<double, std::size_t> expected) {
      outputs.begin_node(n.node);
      double score = minus_infinity;
      CHECK_EQUAL(outputs.score_order(n.node, limits, order, score), expected.second);
      CHECK_EQUAL(score, expected.first);
      if (score > minus_infinity) CHECK_EQUAL(outputs.score_order(n.node, limits, order, score), n.node.size);
    };
    check(of_classes(n), best_of(n, order, limits, ClassCriterion<Gini>(n.classes[0].data(), 2),
                                 ClassCriterion<Gini>(n.classes[1].data(), 5), 1.0));
    check(of_values(n), best_of(n, order, limits, SumCriterion<SquaredError>(n.values[0].data(), fine),
                                SumCriterion<SquaredError>(n.values[1].data(), coarse), std::ldexp(1.0, 2 * (coarse - fine))));
  }
}

TEST(gains_are_means_in_the_largest_unit) {
  Random random(2);
  const Node n(random, 50);
  auto outputs = of_values(n);
  outputs.begin_node(n.node);
  SumCriterion<SquaredError> first(n.values[0].data(), fine), second(n.values[1].data(), coarse);
  first.begin_node(n.node), second.begin_node(n.node);
  const double gained = outputs.gain(1e9, 100.0);
  const double parent = first.parent() * std::ldexp(1.0, 2 * (coarse - fine)) + second.parent();
  CHECK_EQUAL(gained, (1e9 - parent) / 100.0 * std::ldexp(1.0, -2 * coarse) / 2.0);
}

TEST(leaves_say_what_each_output_says) {
  Random random(3);
  const Node n(random, 40);
  auto outputs = of_classes(n);
  outputs.begin_node(n.node);
  CHECK(!outputs.pure());
  Leaves leaves{.class_count = 7, .classes_of = {2, 5}};
  CHECK_EQUAL(outputs.append_leaf(leaves), std::size_t{7});
  std::vector<std::uint64_t> weight(7, 0);
  for (std::size_t i = 0; i < n.node.size; ++i) {
    weight[n.classes[0][i]] += n.weight[i];
    weight[2 + n.classes[1][i]] += n.weight[i];
  }
  for (std::size_t e = 0; e < leaves.distribution_class.size(); ++e)
    CHECK_EQUAL(leaves.distribution_weight[e], weight[leaves.distribution_class[e]]);
  CHECK(leaves.outputs_agree());
  CHECK_EQUAL(leaves.append_uniform(), std::size_t{8});
  CHECK_EQUAL(leaves.append_silent(), std::size_t{9});
  CHECK(leaves.outputs_agree());
  ++leaves.distribution_weight.back();
  CHECK(!leaves.outputs_agree());

  auto numbers = of_values(n);
  numbers.begin_node(n.node);
  Leaves values{.width = 2};
  CHECK_EQUAL(numbers.append_leaf(values), std::size_t{0});
  CHECK_EQUAL(numbers.append_leaf(values), std::size_t{1});
  SumCriterion<SquaredError> second(n.values[1].data(), coarse);
  second.begin_node(n.node);
  CHECK_EQUAL(values.value[3], second.leaf_value());
}

TEST(uniform_leaves_need_a_common_multiple) {
  Leaves leaves{.class_count = 5, .classes_of = {2, 3}};
  leaves.append_uniform();
  CHECK_EQUAL(leaves.distribution_weight, (std::vector<std::uint32_t>{3, 3, 2, 2, 2}));
  const std::vector<std::uint32_t> primes{47, 43, 41, 37, 31, 29, 23};
  Leaves many{.class_count = std::accumulate(primes.begin(), primes.end(), std::size_t{0}), .classes_of = primes};
  CHECK_THROWS(std::invalid_argument, many.append_uniform());
}
