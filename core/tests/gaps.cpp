#include "data/gaps.hpp"

#include <cmath>
#include <limits>
#include <numeric>

#include "atoms/sampler.hpp"
#include "check.hpp"
#include "data.hpp"
#include "forest/forest.hpp"
#include "growth/grow.hpp"
#include "projection/gap_projection.hpp"

using namespace morf;

static constexpr double missing = std::numeric_limits<double>::quiet_NaN();
static constexpr std::uint64_t certain = ~std::uint64_t{0};
static const Poll silent = [](std::size_t) {};
static const Quantiser quantiser(4, 0x1.0p61);
static constexpr CellType types[] = {CellType::i16, CellType::i32, CellType::i64, CellType::f64};

struct Filled {
  std::vector<double> values;
  std::vector<std::uint8_t> marks;
};

static Filled fill(const std::vector<std::int64_t>& shape, std::uint32_t ordered, const std::vector<double>& x) {
  const RowLayout layout(shape, {Plane{}}, ordered);
  GapFiller filler(layout);
  CHECK(filler.read({x.data(), 1, x.size(), true}, 0));
  Filled found{{}, filler.marks()};
  filler.filled().with_row(0, [&](const auto* values) { found.values.assign(values, values + x.size()); });
  return found;
}

TEST(gaps_lie_on_straight_lines) {
  const Filled found = fill({6}, 1, {1.0, missing, missing, 4.0, missing, 2.0});
  CHECK_EQUAL(found.values, (std::vector<double>{1, 2, 3, 4, 3, 2}));
  CHECK_EQUAL(found.marks, (std::vector<std::uint8_t>{0, 1, 1, 0, 1, 0}));
}

TEST(series_end_where_nothing_more_is_observed) {
  const Filled found = fill({2, 4}, 2, {missing, 5.0, missing, missing, missing, missing, 7.0, missing});
  CHECK_EQUAL(found.values, (std::vector<double>{5, 5, 5, 5, 7, 7, 7, 7}));
  CHECK_EQUAL(found.marks, (std::vector<std::uint8_t>{2, 0, 1, 2, 2, 1, 0, 2}));
}

TEST(later_axes_fill_first) {
  const Filled found = fill({3, 3}, 3, {1.0, missing, 3.0, missing, missing, missing, 5.0, missing, missing});
  CHECK_EQUAL(found.values, (std::vector<double>{1, 2, 3, 3, 3.5, 4, 5, 5, 5}));
  CHECK_EQUAL(found.marks, (std::vector<std::uint8_t>{0, 1, 0, 1, 1, 1, 0, 1, 1}));
}

TEST(without_order_values_are_absent) {
  const Filled found = fill({3}, 0, {missing, 2.0, missing});
  CHECK_EQUAL(found.values, (std::vector<double>{0, 2, 0}));
  CHECK_EQUAL(found.marks, (std::vector<std::uint8_t>{2, 0, 2}));
  const Filled nothing = fill({2}, 1, {missing, missing});
  CHECK_EQUAL(nothing.marks, (std::vector<std::uint8_t>{2, 2}));
}

TEST(deviations_from_the_usual_course_fade) {
  const RowLayout layout({6}, {Plane{}}, 1, {{10, 20, 30, 40, 50, 60}, {0.5}});
  GapFiller filler(layout);
  const std::vector<double> x{missing, 24.0, missing, 44.0, missing, missing};
  CHECK(filler.read({x.data(), 1, x.size(), true}, 0));
  std::vector<double> values;
  filler.filled().with_row(0, [&](const auto* from) { values.assign(from, from + 6); });
  // Between two equal deviations the weights are (0.5 - 0.25 * 0.5) / (1 - 0.25 * 0.25) each.
  CHECK_EQUAL(values, (std::vector<double>{12, 24, 30 + 3.2, 44, 52, 61}));
  CHECK_EQUAL(filler.marks(), (std::vector<std::uint8_t>{1, 0, 1, 0, 1, 1}));  // such samples do not end
  const std::vector<double> nothing(6, missing);
  CHECK(filler.read({nothing.data(), 1, 6, true}, 0));
  filler.filled().with_row(0, [&](const auto* from) { values.assign(from, from + 6); });
  CHECK_EQUAL(values, layout.course.mean);
  CHECK_EQUAL(filler.marks(), (std::vector<std::uint8_t>(6, 2)));
}

TEST(courses_fit_their_samples) {
  const std::vector<double> mean{1, 2};
  for (const Course& course : {Course{{1}, {1}}, Course{mean, {}}, Course{mean, {1, 1}}, Course{{}, {1}},
                               Course{{1, missing}, {1}}, Course{mean, {1.5}}, Course{mean, {-0.5}}, Course{mean, {missing}}})
    CHECK_THROWS(std::invalid_argument, RowLayout({2}, {Plane{}}, 1, course));
  CHECK(!(RowLayout({2}, {Plane{}}, 1, {mean, {1}}) == RowLayout({2}, {Plane{}}, 1)));
}

// Samples of which some values, lines and whole samples are missing.
static std::vector<double> make_samples(Random& random, std::size_t rows, std::size_t features) {
  std::vector<double> x(rows * features);
  for (std::size_t row = 0; row < rows; ++row) {
    const double share = random.chance(0.3) ? 0.0 : random.chance(0.1) ? 1.0 : 0.6 * random.unit();
    for (std::size_t j = 0; j < features; ++j)
      x[row * features + j] = random.chance(share) ? missing : static_cast<double>(random.between(-60, 60)) / 8.0;
  }
  return x;
}

static Dictionary make_dictionary(Random& random, CellType type) {
  Dictionary dictionary(random_shape(random, 1 + random.index(3)), type == CellType::f64);
  dictionary.add_axis();
  add_random_patch(random, dictionary, 4);
  dictionary.set_cumulative({certain / 3, certain});
  return dictionary;
}

static Table make_gap_table(const std::vector<double>& x, std::size_t rows, const Dictionary& dictionary, CellType type,
                            Arrangement arrangement = Arrangement::rows) {
  Table table(rows, dictionary.layout(), type, arrangement, true);
  table.fill({x.data(), rows, static_cast<std::size_t>(dictionary.features()), true}, 0, quantiser);
  return table;
}

TEST(atoms_touch_what_their_weights_say) {
  Random random(1);
  std::size_t touched = 0, untouched = 0;
  for (int round = 0; round < 60; ++round)
    for (const CellType type : types) {
      const Dictionary dictionary = make_dictionary(random, type);
      const auto p = static_cast<std::size_t>(dictionary.features());
      const std::vector<double> x = make_samples(random, 8, p);
      const Table table = make_gap_table(x, 8, dictionary, type);
      const auto of_cell = features_of_cells(dictionary.layout());
      AtomList atoms;
      Sampler sampler(dictionary);
      sampler.begin_node();
      Stream stream(random.bits());
      sampler.draw(stream, 20, atoms);
      GapFiller filler(dictionary.layout());
      for (std::uint32_t row = 0; row < 8; ++row) {
        const bool some = filler.read({x.data(), 8, p, true}, row);
        CHECK_EQUAL(table.mask(row) != nullptr, some);
        for (std::size_t j = 0; j < atoms.size(); ++j) {
          const std::vector<double> weight = weights_on_features(atoms, j, of_cell, p);
          for (const Mark mark : {Mark::gap, Mark::absent}) {
            bool expected = false;
            for (std::size_t f = 0; some && f < p; ++f)
              expected |= weight[f] != 0.0 && filler.marks()[f] >= static_cast<std::uint8_t>(mark);
            CHECK_EQUAL(GapReader(table).touches(atoms, j, row, mark), expected, "atom", j, "row", row);
            (expected ? touched : untouched) += 1;
          }
        }
      }
    }
  CHECK(touched > 1000 && untouched > 1000);
}

// Growth parts rows as walks do: leaves weigh what the rows weigh that fall into them.
TEST(walks_follow_growth) {
  Random random(2);
  std::size_t sides[5] = {};
  for (int round = 0; round < 40; ++round)
    for (const CellType type : types)
      for (const std::size_t subset : {0, 15}) {
        Dictionary dictionary = make_dictionary(random, type);
        dictionary.set_subset(subset);
        const std::size_t rows = 20 + random.index(200), p = static_cast<std::size_t>(dictionary.features());
        const std::vector<double> x = make_samples(random, rows, p);
        const bool tiles = subset > 0 && random.chance(0.5);
        const Table table = make_gap_table(x, rows, dictionary, type, tiles ? Arrangement::tiles : Arrangement::rows);
        std::vector<std::uint32_t> classes(rows), count(rows), order(rows);
        std::iota(order.begin(), order.end(), 0u);
        for (std::size_t i = 0; i < rows; ++i) {
          classes[i] = static_cast<std::uint32_t>(std::isnan(x[i * p]) ? random.index(3) : x[i * p] > 1.0);
          count[i] = 1 + static_cast<std::uint32_t>(random.index(2));
        }
        GrowthRule rule;
        rule.candidates = 1 + random.index(10);
        if (random.chance(0.3)) rule.max_leaf_nodes = 2 + random.index(20);
        Trees trees;
        const Bags bags(count, count, order);
        grow_trees(table, dictionary, {random.bits()}, bags, nullptr, {.classes = classes, .class_count = 3}, rule, silent,
                   trees);
        CHECK_EQUAL(trees.side.size(), trees.next.size());
        for (std::size_t node = 0; node < trees.next.size(); ++node) {
          CHECK_EQUAL(trees.side[node] != Side::none, trees.next[node] >= 0);
          ++sides[static_cast<int>(trees.side[node])];
        }
        ForestNodes nodes{
            {0, static_cast<std::int64_t>(trees.next.size())}, trees.next, trees.threshold, trees.real_threshold, trees.side};
        const Forest forest(dictionary.layout(), trees.atoms, nodes, trees.leaves);
        std::vector<std::int32_t> leaf(rows), applied(rows);
        forest.find_leaves(0, table, leaf.data());
        forest.apply({x.data(), rows, p, true}, type, quantiser, 0, applied.data());
        CHECK_EQUAL(leaf, applied);
        std::vector<std::uint32_t> weight(trees.next.size());
        for (std::size_t i = 0; i < rows; ++i) weight[static_cast<std::size_t>(leaf[i])] += count[i];
        for (std::size_t node = 0; node < weight.size(); ++node)
          if (trees.next[node] < 0) CHECK_EQUAL(weight[node], trees.weight[node], "node", node);
      }
  for (int side = 1; side < 5; ++side) CHECK(sides[side] > 100, "side", side);
}

TEST(forests_without_sides_refuse_missing_values) {
  Random random(3);
  Dictionary dictionary({3}, false);
  dictionary.add_axis();
  Leaves leaves{.class_count = 1};
  AtomList atoms;
  atoms.close_atom();
  const Forest forest(dictionary.layout(), atoms, {{0, 1}, {-1}, {0}}, leaves);
  const std::vector<double> x{1.0, missing, 2.0};
  std::int32_t leaf = 0;
  CHECK_THROWS(std::invalid_argument, forest.apply({x.data(), 1, 3, true}, CellType::i32, quantiser, 0, &leaf));
  CHECK_THROWS(std::invalid_argument, Table(1, dictionary.layout(), CellType::u8, Arrangement::rows, true));
}
