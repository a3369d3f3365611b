#include "growth/bags.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "base/random.hpp"
#include "check.hpp"
#include "data.hpp"

using namespace morf;

using Counts = std::vector<std::uint32_t>;

static const Poll silent = [](std::size_t) {};

static Counts shuffled(Random& random, std::size_t rows) {
  Counts order(rows);
  std::iota(order.begin(), order.end(), 0u);
  random.shuffle(order);
  return order;
}

TEST(few_rows_of_many_are_those_of_the_stream) {
  Random random(5);
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t population = 1 + random.index(round % 2 ? 12 : 1000), draws = random.index(population + 1),
                        key = random.bits();
    for (const bool replace : {false, true}) {
      const DrawnRows found = draw_few_rows(key, draws, population, replace, silent);
      Counts expected(population, 0), counts(population, 0);
      Stream stream(derive(key, Purpose::bag));
      for (std::uint64_t i = 0; i < draws; ++i) {
        const std::uint64_t last = population - draws + i, row = stream.below(replace ? population : last + 1);
        ++expected[!replace && expected[row] ? last : row];
      }
      for (std::size_t i = 0; i < found.row.size(); ++i) {
        CHECK(i == 0 || found.row[i - 1] < found.row[i]);
        counts[found.row[i]] = found.count[i];
      }
      CHECK_EQUAL(counts, expected, "round", round);
    }
  }
  CHECK(draw_few_rows(1, 3, std::uint64_t{1} << 40, false, silent).row.size() == 3);  // costs nothing by the rows
  CHECK_THROWS(std::invalid_argument, draw_few_rows(1, 5, 4, false, silent));
  CHECK_THROWS(std::invalid_argument, draw_few_rows(1, 1, 0, true, silent));
}

TEST(draws_with_replacement_are_those_of_the_stream) {
  Random random(1);
  for (int round = 0; round < 50; ++round) {
    const std::size_t rows = 1 + random.index(40);
    const Counts order = shuffled(random, rows);
    std::vector<std::uint64_t> cumulative;
    if (round % 2)
      for (std::size_t i = 0; i < rows; ++i)
        cumulative.push_back((i ? cumulative.back() : 0) + static_cast<std::uint64_t>(random.between(i ? 0 : 1, 5)));
    const std::uint64_t draws = random.index(100), total = cumulative.empty() ? rows : cumulative.back();
    const std::vector<std::uint64_t> keys{random.bits(), random.bits()};
    const Counts count = draw_bags(keys, draws, order, cumulative, silent);
    Counts expected(2 * rows, 0);
    for (std::size_t tree = 0; tree < 2; ++tree) {
      Stream stream(derive(keys[tree], Purpose::bag));
      for (std::uint64_t i = 0; i < draws; ++i) {
        const std::uint64_t x = stream.below(total);
        std::size_t place = 0;
        while (x >= (cumulative.empty() ? place + 1 : cumulative[place])) ++place;
        ++expected[tree * rows + order[place]];
      }
    }
    CHECK_EQUAL(count, expected, "round", round);
  }
}

TEST(a_weight_of_two_is_the_row_twice) {
  const std::vector<std::uint64_t> keys{5, 6, 7};
  const Counts weighted = draw_bags(keys, 1000, {2, 0, 1}, {2, 3, 5}, silent);  // rows 2 and 1 twice
  const Counts repeated = draw_bags(keys, 1000, {2, 3, 0, 1, 4}, {}, silent);   // rows 3 and 4 are copies of 2 and 1
  for (std::size_t tree = 0; tree < 3; ++tree) {
    CHECK_EQUAL(weighted[3 * tree], repeated[5 * tree]);
    CHECK_EQUAL(weighted[3 * tree + 1], repeated[5 * tree + 1] + repeated[5 * tree + 4]);
    CHECK_EQUAL(weighted[3 * tree + 2], repeated[5 * tree + 2] + repeated[5 * tree + 3]);
  }
}

TEST(draws_without_replacement) {
  Random random(2);
  for (int round = 0; round < 200; ++round) {
    const std::size_t rows = 1 + random.index(30);
    const Counts order = shuffled(random, rows);
    Counts count(rows);
    for (auto& times : count) times = static_cast<std::uint32_t>(random.index(4));
    const auto total = std::accumulate(count.begin(), count.end(), std::uint64_t{0});
    const std::uint64_t draws = random.index(total + 1);
    const Counts drawn = draw_rows(static_cast<std::uint64_t>(round), draws, order, count, silent);
    CHECK_EQUAL(std::accumulate(drawn.begin(), drawn.end(), std::uint64_t{0}), draws);
    for (std::size_t i = 0; i < rows; ++i) CHECK(drawn[i] <= count[i]);
    CHECK_THROWS(std::invalid_argument, draw_rows(1, total + 1, order, count, silent));
  }
  // Each sample is drawn equally often.
  Counts often(10, 0);
  for (std::uint64_t key = 0; key < 20000; ++key) {
    const Counts drawn = draw_rows(key, 3, {4, 1, 0, 2, 3, 9, 8, 7, 6, 5}, Counts(10, 1), silent);
    for (std::size_t i = 0; i < 10; ++i) often[i] += drawn[i];
  }
  for (const std::uint32_t times : often)
    CHECK(std::abs(static_cast<double>(times) - 6000.0) < 6 * std::sqrt(20000 * 0.3 * 0.7), times);
}

TEST(drawing_can_be_stopped) {
  struct Enough {};
  std::size_t polls = 0;
  const Poll poll = [&](std::size_t) {
    if (++polls == 3) throw Enough();
  };
  CHECK_THROWS(Enough, draw_bags({1}, std::uint64_t{1} << 40, {0, 1}, {}, poll));
  polls = 0;
  CHECK_THROWS(Enough, draw_rows(1, 10, {0, 1}, {4000000000u, 4000000000u}, poll));
}

TEST(impossible_bags_are_refused) {
  const Counts order{1, 0, 2};
  Bags({1, 0, 2}, {}, order);
  Bags({1, 0, 2, 0, 1, 0}, {5, 0, 1, 0, 1, 9}, order);
  CHECK_THROWS(std::invalid_argument, Bags({}, {}, order), "no trees");
  CHECK_THROWS(std::invalid_argument, Bags({1, 1}, {}, order), "too few");
  CHECK_THROWS(std::invalid_argument, Bags({1, 1, 1}, {1, 1}, order), "too few weights");
  CHECK_THROWS(std::invalid_argument, Bags({0, 0, 0}, {}, order), "empty");
  CHECK_THROWS(std::invalid_argument, Bags({1, 1, 1}, {1, 0, 1}, order), "no weight");
  CHECK_THROWS(std::invalid_argument, Bags({1, 1, 1}, {}, {0, 1, 1}), "no order");
  CHECK_THROWS(std::invalid_argument, Bags({1, 1, 1}, {}, {0, 1, 3}), "no such row");
  CHECK_THROWS(std::invalid_argument, Bags({0x7FFFFFFFu, 1, 1}, {1, 1, 1}, order), "too many");
  CHECK_THROWS(std::invalid_argument, Bags({1, 1, 1}, {0xFFFFFFFFu, 1, 1}, order), "too heavy");
  CHECK_THROWS(std::invalid_argument, draw_bags({1}, 3, order, {1, 2}, silent));
  CHECK_THROWS(std::invalid_argument, draw_bags({1}, 3, order, {2, 1, 3}, silent));
  CHECK_THROWS(std::invalid_argument, draw_bags({1}, 3, order, {0, 0, 0}, silent));
  CHECK_THROWS(std::invalid_argument, draw_bags({1}, 3, {}, {}, silent));
  CHECK_THROWS(std::invalid_argument, draw_rows(1, 1, order, {1, 1}, silent));
}

TEST(groups_stay_together_and_each_class_is_in_both_parts) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    const std::size_t rows = 1 + random.index(40);
    const Counts order = shuffled(random, rows);
    Counts group(rows, 0), classes(rows, 0), count(2 * rows);
    const std::size_t class_count = 1 + random.index(3);
    for (std::size_t i = 0; i < rows; ++i) {
      if (i > 0) group[i] = group[i - 1] + static_cast<std::uint32_t>(random.index(2));
      const bool begins = i == 0 || group[i] != group[i - 1];
      classes[order[i]] = begins ? static_cast<std::uint32_t>(random.index(class_count)) : classes[order[i - 1]];
    }
    for (auto& times : count) times = static_cast<std::uint32_t>(random.index(3));
    const double share = 0.1 + 0.8 * static_cast<double>(random.index(100)) / 100.0;
    const auto chosen = choose_leaf_rows({7, 8}, share, order, group, round % 2 ? classes : Counts{}, count);
    for (std::size_t tree = 0; tree < 2; ++tree) {
      std::vector<std::vector<int>> part(class_count, {0, 0});  // groups of each class: for splits, for leaves
      for (std::size_t i = 0; i < rows;) {
        int drawn = 0, leaves = 0;
        std::size_t end = i;
        for (; end < rows && group[end] == group[i]; ++end) {
          const std::size_t at = tree * rows + order[end];
          CHECK(chosen[at] <= (count[at] != 0));
          drawn += count[at] != 0;
          leaves += chosen[at];
        }
        CHECK(leaves == 0 || leaves == drawn);
        if (drawn > 0) ++part[round % 2 ? classes[order[i]] : 0][leaves > 0];
        i = end;
      }
      double all = 0.0, wanted = 0.0;
      for (const auto& of_class : part) {
        const int groups = of_class[0] + of_class[1];
        if (groups > 1) CHECK(of_class[0] > 0 && of_class[1] > 0);
        CHECK(std::abs(of_class[1] - share * groups) <= static_cast<double>(class_count));
        all += of_class[1];
        wanted += share * groups;
      }
      CHECK(std::abs(all - wanted) <= static_cast<double>(class_count));
    }
  }
  CHECK_THROWS(std::invalid_argument, choose_leaf_rows({1}, 1.0, {0, 1}, {0, 1}, {}, {1, 1}));
  CHECK_THROWS(std::invalid_argument, choose_leaf_rows({1}, 0.5, {0, 1}, {0, 2}, {}, {1, 1}));
  CHECK_THROWS(std::invalid_argument, choose_leaf_rows({1}, 0.5, {0, 1}, {1, 1}, {}, {1, 1}));
  CHECK_THROWS(std::invalid_argument, choose_leaf_rows({1}, 0.5, {0, 1}, {0, 1}, {0}, {1, 1}));
  CHECK_THROWS(std::invalid_argument, choose_leaf_rows({1}, 0.5, {0, 1}, {0, 1}, {}, {1, 1, 1}));
}
