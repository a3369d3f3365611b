// Samples of leaves, against sums over all rows.
#include "forest/leaf_samples.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "data.hpp"

using namespace morf;

namespace {

// Trees whose nodes are all leaves, and rows that fell into some of them.
struct Grown {
  std::size_t trees, rows;
  std::vector<std::int64_t> tree_begin{0};
  std::vector<std::vector<std::int32_t>> leaf;          // of each tree's rows
  std::vector<std::vector<std::uint32_t>> row_weight;  // 0 for rows that a tree has not drawn
  std::vector<std::uint32_t> begin, narrow;
  std::vector<std::uint64_t> wide;
  std::vector<std::uint8_t> silent;  // trees that do not vote from empty leaves; none: all vote

  Grown(Random& random, bool empty_leaves) : trees(1 + random.index(5)), rows(1 + random.index(30)) {
    for (std::size_t tree = 0; tree < trees; ++tree) {
      const std::size_t nodes = 1 + random.index(6), used = empty_leaves && nodes > 1 ? nodes - 1 : nodes;
      leaf.emplace_back();
      row_weight.emplace_back();
      std::vector<std::int32_t> of_drawn;
      std::vector<std::uint32_t> drawn, drawn_weight;
      for (std::uint32_t r = 0; r < rows; ++r) {
        leaf[tree].push_back(static_cast<std::int32_t>(random.index(used)));
        row_weight[tree].push_back(r == 0 ? 1 : static_cast<std::uint32_t>(random.index(4)));
        if (row_weight[tree][r] == 0) continue;
        of_drawn.push_back(leaf[tree][r]);
        drawn.push_back(r);
        drawn_weight.push_back(row_weight[tree][r]);
      }
      const NodeLists lists = group_by_leaf(of_drawn, drawn, drawn_weight, nodes);
      begin.insert(begin.end(), lists.begin.begin(), lists.begin.end());
      for (std::size_t i = 0; i < lists.row.size(); ++i) {
        narrow.push_back(lists.row[i] | lists.weight[i] << row_bits<std::uint32_t>);
        wide.push_back(lists.row[i] | std::uint64_t{lists.weight[i]} << row_bits<std::uint64_t>);
      }
      tree_begin.push_back(tree_begin.back() + static_cast<std::int64_t>(nodes));
    }
    if (empty_leaves && random.chance(0.7))
      for (std::size_t tree = 0; tree < trees; ++tree) silent.push_back(random.chance(0.8));
  }

  template <class Entry>
  LeafSamples samples(const std::vector<Entry>& entries) const {
    return LeafSamples(tree_begin, begin, std::span<const Entry>(entries), rows);
  }

  std::vector<std::int32_t> leaves_of_a_sample(Random& random) const {
    std::vector<std::int32_t> found;
    for (std::size_t tree = 0; tree < trees; ++tree)
      found.push_back(static_cast<std::int32_t>(random.index(static_cast<std::size_t>(tree_begin[tree + 1] - tree_begin[tree]))));
    return found;
  }

  // The weights of the rows in a leaf of a tree; of all rows where it has none.
  std::vector<std::uint32_t> in_leaf(std::size_t tree, std::int32_t of) const {
    std::vector<std::uint32_t> found(rows);
    for (std::size_t r = 0; r < rows; ++r)
      if (leaf[tree][r] == of) found[r] = row_weight[tree][r];
    if (std::all_of(found.begin(), found.end(), [](std::uint32_t w) { return w == 0; })) found = row_weight[tree];
    return found;
  }

  std::set<std::int32_t> filled_leaves(std::size_t tree) const {
    std::set<std::int32_t> found;
    for (std::size_t r = 0; r < rows; ++r)
      if (row_weight[tree][r] > 0) found.insert(leaf[tree][r]);
    return found;
  }

  // The mean of the lists of a sample; if no tree votes, of all that are not empty.
  std::vector<double> weights_of(const std::vector<std::int32_t>& sample) const {
    std::vector<std::pair<std::size_t, std::int32_t>> lists, everything;
    for (std::size_t tree = 0; tree < trees; ++tree) {
      const auto filled = filled_leaves(tree);
      if (silent.empty() || silent[tree] == 0 || filled.count(sample[tree]) > 0) lists.emplace_back(tree, sample[tree]);
      for (const std::int32_t node : filled) everything.emplace_back(tree, node);
    }
    if (lists.empty()) lists = everything;
    std::vector<double> sum(rows);
    for (const auto& [tree, node] : lists) {
      const auto members = in_leaf(tree, node);
      const double scale = 1.0 / std::accumulate(members.begin(), members.end(), 0.0);
      for (std::size_t r = 0; r < rows; ++r) sum[r] += members[r] * scale;
    }
    for (double& s : sum) s *= 1.0 / static_cast<double>(lists.size());
    return sum;
  }
};

}  // namespace

TEST(rows_are_grouped_by_leaf_and_added_up) {
  const std::vector<std::int32_t> leaf{3, 1, 3, 3, 1, 0};
  const std::vector<std::uint32_t> row{0, 1, 2, 2, 4, 4}, weight{5, 1, 2, 3, 7, 1};
  const NodeLists found = group_by_leaf(leaf, row, weight, 5);
  CHECK(found.begin == (std::vector<std::uint32_t>{0, 1, 3, 3, 5, 5}));
  CHECK(found.row == (std::vector<std::uint32_t>{4, 1, 4, 0, 2}));
  CHECK(found.weight == (std::vector<std::uint32_t>{1, 1, 7, 5, 5}));
  CHECK_THROWS(std::invalid_argument, group_by_leaf(leaf, row, weight, 3));
  CHECK_THROWS(std::invalid_argument, group_by_leaf(leaf, row, std::span(weight).first(3), 5));
}

TEST(weights_and_neighbours_equal_sums_over_all_rows) {
  Random random(1);
  for (int problem = 0; problem < 200; ++problem) {
    const Grown grown(random, problem % 3 == 0);
    const LeafSamples wide = grown.samples(grown.wide), narrow = grown.samples(grown.narrow);
    const auto sample = grown.leaves_of_a_sample(random);
    const auto expected = grown.weights_of(sample);
    for (const LeafSamples* samples : {&wide, &narrow}) {
      SparseRows found;
      CHECK_EQUAL(samples->count(sample.data(), 1, grown.silent),
                  std::count_if(expected.begin(), expected.end(), [](double w) { return w > 0; }), "problem", problem);
      samples->weigh(sample.data(), 1, grown.silent, found);
      CHECK_EQUAL(found.size.at(0), static_cast<std::int64_t>(found.column.size()), "problem", problem);
      std::vector<double> dense(grown.rows);
      for (std::size_t i = 0; i < found.column.size(); ++i) dense.at(found.column[i]) = found.value[i];
      CHECK(dense == expected, "problem", problem);
      CHECK(std::is_sorted(found.column.begin(), found.column.end()), "problem", problem);

      const std::size_t k = 1 + random.index(grown.rows);
      std::vector<std::int64_t> row(k);
      std::vector<double> weight(k);
      samples->nearest(sample.data(), 1, grown.silent, k, row.data(), weight.data());
      std::vector<std::int64_t> order(grown.rows);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return expected[a] > expected[b]; });
      for (std::size_t i = 0; i < k; ++i) {
        CHECK_EQUAL(weight[i], expected[order[i]], "problem", problem);
        CHECK_EQUAL(row[i], expected[order[i]] > 0 ? order[i] : std::int64_t{-1}, "problem", problem);
      }
    }
  }
}

TEST(quantiles_equal_sums_over_sorted_targets) {
  Random random(2);
  for (int problem = 0; problem < 200; ++problem) {
    const Grown grown(random, problem % 3 == 0);
    const auto sample = grown.leaves_of_a_sample(random);
    // More distinct targets than a block has, so that some blocks are empty.
    std::vector<double> value(1 + random.index(1000));
    for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<double>(i) - 3.5;
    std::vector<std::uint32_t> rank(grown.rows);
    for (std::uint32_t& r : rank) r = static_cast<std::uint32_t>(random.index(value.size()));
    const std::vector<double> level{0.0, 0.1, 0.5, 0.5, 0.75, 1.0};
    std::vector<double> found(level.size());
    (problem % 2 ? grown.samples(grown.wide) : grown.samples(grown.narrow))
        .quantiles(sample.data(), 1, grown.silent, {value, rank}, level, found.data());

    std::map<std::uint32_t, double> of_rank;
    const auto weights = grown.weights_of(sample);
    for (std::size_t r = 0; r < grown.rows; ++r)
      if (weights[r] > 0) of_rank[rank[r]] += weights[r];
    for (std::size_t i = 0; i < level.size(); ++i) {
      double up_to = 0.0;
      std::uint32_t at = 0;
      for (const auto& [r, w] : of_rank) {
        at = r;
        up_to += w;
        if (up_to >= level[i] - 1e-11) break;
      }
      CHECK_EQUAL(found[i], value[at], "problem", problem, "level", level[i]);
    }
  }
}

TEST(shared_leaves_are_counted) {
  Random random(3);
  for (int problem = 0; problem < 100; ++problem) {
    const std::size_t trees = 1 + random.index(6), samples = 1 + random.index(9), others = 1 + random.index(9);
    std::vector<std::int32_t> leaf(samples * trees), other(others * trees);
    for (auto& l : leaf) l = static_cast<std::int32_t>(random.index(5));
    for (auto& l : other) l = static_cast<std::int32_t>(random.index(4));
    std::vector<double> found(samples * others, 7.0);
    share_leaves(leaf.data(), samples, other.data(), others, trees, found.data());
    for (std::size_t i = 0; i < samples; ++i)
      for (std::size_t j = 0; j < others; ++j) {
        int same = 0;
        for (std::size_t tree = 0; tree < trees; ++tree) same += leaf[i * trees + tree] == other[j * trees + tree];
        CHECK_EQUAL(found[i * others + j], same / static_cast<double>(trees), "problem", problem);
      }
  }
}

TEST(samples_that_do_not_fit_are_refused) {
  const std::vector<std::int64_t> trees{0, 3, 4};
  const std::vector<std::uint32_t> begin{0, 0, 2, 3, 0, 1}, row{0, 2, 1, 3}, weight{1, 1, 2, 1};
  const auto make = [&](auto change) {
    auto t = trees;
    auto b = begin, r = row, w = weight;
    change(t, b, r, w);
    std::vector<std::uint64_t> entries;
    for (std::size_t i = 0; i < r.size(); ++i) entries.push_back(r[i] | std::uint64_t{w[i]} << row_bits<std::uint64_t>);
    LeafSamples(t, b, std::span<const std::uint64_t>(entries), 4);
  };
  make([](auto&...) {});
  using Numbers = std::vector<std::uint32_t>;
  using Trees = std::vector<std::int64_t>;
  const auto refused = [&](auto change) { CHECK_THROWS(std::invalid_argument, make(change)); };
  refused([](Trees& t, Numbers&, Numbers&, Numbers&) { t = {0}; });
  refused([](Trees& t, Numbers&, Numbers&, Numbers&) { t[0] = 1; });
  refused([](Trees& t, Numbers&, Numbers&, Numbers&) { t[1] = 4; });
  refused([](Trees& t, Numbers&, Numbers&, Numbers&) { t[2] = 5; });
  refused([](Trees&, Numbers& b, Numbers&, Numbers&) { b[0] = 1; });
  refused([](Trees&, Numbers& b, Numbers&, Numbers&) { b[1] = 3; });
  refused([](Trees&, Numbers& b, Numbers&, Numbers&) { b[3] = 4; });
  refused([](Trees&, Numbers& b, Numbers&, Numbers&) { b.pop_back(); });
  refused([](Trees&, Numbers& b, Numbers& r, Numbers&) {  // a tree without samples
    b[5] = 0;
    r.pop_back();
  });
  refused([](Trees&, Numbers&, Numbers& r, Numbers&) { r[3] = 4; });
  refused([](Trees&, Numbers&, Numbers& r, Numbers&) { r[1] = 0; });
  refused([](Trees&, Numbers&, Numbers& r, Numbers& w) {
    r.push_back(0);
    w.push_back(1);
  });
  refused([](Trees&, Numbers&, Numbers&, Numbers& w) { w[2] = 0; });
  refused([](Trees&, Numbers&, Numbers&, Numbers& w) { w[0] = w[1] = 1u << 31; });
}
