#include "atoms/relation.hpp"

#include <algorithm>
#include <set>

#include "atoms/dictionary.hpp"
#include "atoms/sampler.hpp"
#include "check.hpp"

using namespace morf;

using Method = Relation::Method;

// 0 - 1 - 2 - ... - (n - 1), and n alone.
static Relation path(std::uint32_t n, Method method, std::uint64_t hops = 0) {
  std::vector<std::uint64_t> begin{0};
  std::vector<std::uint32_t> neighbour;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (i > 0) neighbour.push_back(i - 1);
    if (i + 1 < n) neighbour.push_back(i + 1);
    begin.push_back(neighbour.size());
  }
  begin.push_back(neighbour.size());
  return Relation(method, begin, neighbour, {}, hops, hops);
}

TEST(a_relation_knows_its_parts) {
  const Relation relation = path(5, Method::grow);
  CHECK_EQUAL(relation.size(), 6u);
  for (std::uint32_t i = 0; i < 5; ++i) CHECK_EQUAL(relation.reach[i], 5u);
  CHECK_EQUAL(relation.reach[5], 1u);
  CHECK(Relation(Method::grow, {0, 1, 2}, {1, 0}, {}, 0, 0).reach.empty(), "of one part");
}

TEST(sets_on_a_path_are_intervals) {
  for (const Method method : {Method::grow, Method::walk, Method::hops}) {
    const Relation relation = path(9, method, 2);
    RelatedSets sets;
    sets.reserve(relation.size());
    Stream stream(1);
    for (int repeat = 0; repeat < 2000; ++repeat) {
      const std::vector<std::uint32_t> members = sets.draw(relation, 4, stream);
      const auto [low, high] = std::minmax_element(members.begin(), members.end());
      CHECK_EQUAL(std::set<std::uint32_t>(members.begin(), members.end()).size(), members.size());
      CHECK_EQUAL(*high - *low + 1, members.size());
      const std::size_t shortest = method == Method::hops ? 3 : 4;
      CHECK(members.size() >= (members[0] == 9 ? 1 : shortest) && members.size() <= 4);
      CHECK((*high == 9) == (members.size() == 1), "the node without neighbours is alone");
    }
  }
}

TEST(large_sets_are_drawn_as_small_ones) {
  // More members than are looked up one by one.
  for (const Method method : {Method::grow, Method::walk, Method::hops}) {
    const Relation relation = path(200, method, 60);
    RelatedSets sets;
    sets.reserve(relation.size());
    Stream stream(2);
    std::size_t longest = 0;
    for (int repeat = 0; repeat < 300; ++repeat) {
      const std::vector<std::uint32_t> members = sets.draw(relation, 50, stream);
      const auto [low, high] = std::minmax_element(members.begin(), members.end());
      CHECK_EQUAL(*high - *low + 1, members.size());
      if (method != Method::walk) CHECK_EQUAL(members.size(), members[0] == 200 ? 1u : 50u);
      longest = std::max(longest, members.size());
    }
    CHECK_EQUAL(longest, 50u);
  }
}

TEST(a_node_without_neighbours_consumes_one_number) {
  const Relation relation(Method::walk, {0, 0, 0}, {}, {}, 0, 0);
  RelatedSets sets;
  sets.reserve(2);
  Stream stream(3), other(3);
  sets.draw(relation, 2, stream);
  other.below(2);
  CHECK_EQUAL(stream.next(), other.next());
}

TEST(damaged_relations_are_refused) {
  const auto make = [](std::vector<std::uint64_t> begin, std::vector<std::uint32_t> neighbour,
                       std::vector<std::uint64_t> cumulative = {}, Method method = Method::grow) {
    Relation(method, std::move(begin), std::move(neighbour), std::move(cumulative), 0, 1);
  };
  make({0, 1, 2}, {1, 0});
  make({0, 1, 2}, {1, 0}, {3, 5});
  CHECK_THROWS(std::invalid_argument, make({0}, {}));
  CHECK_THROWS(std::invalid_argument, make({1, 2, 2}, {1, 0}));
  CHECK_THROWS(std::invalid_argument, make({0, 2, 1}, {1}));
  CHECK_THROWS(std::invalid_argument, make({0, 1, 3}, {1, 0}));
  CHECK_THROWS(std::invalid_argument, make({0, 1, 2}, {2, 0}));
  CHECK_THROWS(std::invalid_argument, make({0, 1, 2}, {0, 0}));
  CHECK_THROWS(std::invalid_argument, make({0, 2, 3, 4}, {2, 1, 0, 0}));
  CHECK_THROWS(std::invalid_argument, make({0, 2, 3, 4}, {1, 1, 0, 0}));
  CHECK_THROWS(std::invalid_argument, make({0, 1, 1}, {1}));
  CHECK_THROWS(std::invalid_argument, make({0, 1, 2}, {1, 0}, {3}));
  CHECK_THROWS(std::invalid_argument, make({0, 1, 2}, {1, 0}, {3, 0}));
  CHECK_THROWS(std::invalid_argument, make({0, 1, 2}, {1, 0}, {3, 5}, Method::hops));
  CHECK_THROWS(std::invalid_argument, Relation(Method::hops, {0, 0}, {}, {}, 2, 1));
}

TEST(sets_lie_in_one_channel) {
  Dictionary dictionary({2, 3, 5}, false);  // 10 positions
  dictionary.set_channel_axis(1);
  dictionary.add_related(path(9, Method::grow), 2, 3, {});
  Sampler sampler(dictionary);
  Stream stream(5);
  AtomList atoms;
  sampler.draw(stream, 3000, atoms);
  std::set<std::uint32_t> cells;
  for (std::size_t i = 0; i < atoms.size(); ++i) {
    std::vector<std::uint32_t> positions;
    const std::uint32_t channel = atoms.cell[atoms.begin[i]] / 5 % 3;
    for (std::size_t t = atoms.begin[i]; t < atoms.begin[i + 1]; ++t) {
      const std::uint32_t cell = atoms.cell[t];
      cells.insert(cell);
      CHECK_EQUAL(cell / 5 % 3, channel);
      positions.push_back(cell / 15 * 5 + cell % 5);
    }
    CHECK_EQUAL(positions.back() - positions.front() + 1, positions.size());
  }
  CHECK_EQUAL(cells.size(), 30u);
}

TEST(components_of_sets_that_do_not_fit_are_refused) {
  const auto add = [](std::int64_t features, std::int64_t low, std::int64_t high, std::vector<std::uint64_t> sizes = {}) {
    Dictionary dictionary({features}, false);
    dictionary.add_related(path(4, Method::grow), low, high, std::move(sizes));
  };
  add(5, 1, 5);
  CHECK_THROWS(std::invalid_argument, add(4, 1, 3));
  CHECK_THROWS(std::invalid_argument, add(5, 0, 3));
  CHECK_THROWS(std::invalid_argument, add(5, 3, 2));
  CHECK_THROWS(std::invalid_argument, add(5, 1, 6));
  CHECK_THROWS(std::invalid_argument, add(5, 1, 3, {1, ~std::uint64_t{0}}));
  Dictionary pooled({5}, false);
  pooled.set_pool({{Op::max}, {5}, {}});
  CHECK_THROWS(std::invalid_argument, pooled.add_related(path(4, Method::grow), 1, 2, {}));
}

TEST(sets_along_an_axis_are_part_of_boxes) {
  for (const bool direct : {false, true}) {
    Dictionary dictionary({6, 7}, direct);
    const std::vector<Boundary> rules{Boundary::zero, Boundary::inside};
    dictionary.add_patch({{2, 1}, {2, 3}}, rules, {false, true}, {}, {{0, path(5, Method::grow)}});
    CHECK_EQUAL(dictionary.layout().ordered_axes, 2u, "gaps are filled along the other axis");
    Sampler sampler(dictionary);
    Stream stream(7);
    AtomList atoms;
    sampler.draw(stream, 2000, atoms);
    for (std::size_t i = 0; i < atoms.size(); ++i) {
      std::set<std::uint32_t> rows;
      for (std::size_t t = atoms.begin[i]; t < atoms.begin[i + 1]; ++t) rows.insert(atoms.cell[t] / 7);
      CHECK_EQUAL(rows.size(), *rows.begin() == 5 ? 1u : 2u);
      CHECK_EQUAL(*rows.rbegin() - *rows.begin() + 1, rows.size());
    }
  }
}

TEST(relations_that_do_not_fit_their_axis_are_refused) {
  const auto add = [](std::size_t axis, std::uint32_t nodes, bool contiguous) {
    Dictionary dictionary({6, 7}, false);
    const std::vector<Boundary> rules(2, Boundary::zero);
    dictionary.add_patch({{1, 1}, {2, 2}}, rules, {contiguous, true}, {}, {{axis, path(nodes - 1, Method::walk)}});
  };
  add(0, 6, false);
  CHECK_THROWS(std::invalid_argument, add(0, 6, true));
  CHECK_THROWS(std::invalid_argument, add(0, 7, false));
  CHECK_THROWS(std::invalid_argument, add(2, 6, false));
}
