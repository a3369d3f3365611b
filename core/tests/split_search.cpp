#include "splitting/split_search.hpp"

#include "splitting/absolute_error.hpp"
#include "splitting/class_criterion.hpp"
#include "splitting/sum_criterion.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "check.hpp"
#include "data.hpp"

using namespace morf;

template <class Key>
static void check_network(Random& random) {
  for (std::size_t size = 1; size <= small_node; ++size)
    for (int round = 0; round < 12; ++round) {
      std::vector<Key> keys(sorted_rows(size) * lanes);
      // A network that sorts all zeros and ones sorts everything; whole keys show that none gets lost.
      for (auto& key : keys)
        key = round < 8 ? static_cast<Key>(random.chance(0.125 * round)) : static_cast<Key>(random.bits() >> 2);
      std::vector<std::vector<Key>> expected(lanes);
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        for (std::size_t i = 0; i < size; ++i) expected[lane].push_back(keys[i * lanes + lane]);
        std::sort(expected[lane].begin(), expected[lane].end());
      }
      sort_lanes(keys.data(), size);
      for (std::size_t lane = 0; lane < lanes; ++lane)
        for (std::size_t i = 0; i < size; ++i) CHECK_EQUAL(keys[i * lanes + lane], expected[lane][i], "size", size);
    }
}

TEST(network_sorts_every_size) {
  Random random(1);
  check_network<std::uint32_t>(random);
  check_network<std::int64_t>(random);
}

// Equal bins of integers: an offset x from the lowest of d belongs to bin floor(64 x / d). The core multiplies by a
// factor cut to a multiple of 2^-32, so offsets within x / 2^32 of a border may stay in the bin below.
static bool is_equal_bin(std::uint32_t b, std::uint64_t offset, std::uint64_t distinct) {
  if (distinct <= bin_count) return b == offset;
  const std::uint64_t ideal = offset * bin_count / distinct;
  const std::uint64_t past_border = offset * bin_count % distinct;
  return b == ideal || (b + 1 == ideal && static_cast<double>(past_border) / static_cast<double>(distinct) <
                                              static_cast<double>(offset) * 0x1.0p-32);
}

// All values of a range of 16 bits.
static void check_binner_of(Random& random, std::uint32_t distinct) {
  const auto min = static_cast<std::uint32_t>(random.between(0, 65536 - distinct));
  std::vector<std::uint16_t> values(distinct);
  for (std::uint32_t offset = 0; offset < distinct; ++offset) values[offset] = static_cast<std::uint16_t>(min + offset);
  const Binner<std::uint16_t> binner(Range<std::uint16_t>{values.front(), values.back()});
  CHECK_EQUAL(binner.one_value_per_bin(), distinct <= bin_count, distinct);
  std::vector<std::uint16_t> place(distinct + 1, 77);
  binner.fill(values.data(), distinct, place.data());
  CHECK_EQUAL(place.back(), 77, distinct);
  std::uint32_t before = 0;
  for (std::uint32_t offset = 0; offset < distinct; ++offset) {
    const std::uint32_t b = binner(values[offset]);
    if (place[offset] == b * lanes && b >= before && b < bin_count && is_equal_bin(b, offset, distinct)) {
      before = b;
      continue;
    }
    CHECK(false, "distinct", distinct, "min", min, "offset", offset, "bin", b, "filled", place[offset], "before", before);
  }
  ++check::checks;
}

TEST(bins_of_16_bits_are_filled_as_defined) {
  Random random(18);
  for (std::uint32_t distinct = 1; distinct <= 700; ++distinct) check_binner_of(random, distinct);
  for (std::uint32_t power = 1024; power <= 65536; power *= 2)
    for (const std::uint32_t distinct : {power - 1, power, power + 1})
      if (distinct <= 65536) check_binner_of(random, distinct);
  for (std::uint32_t distinct = 701; distinct <= 65536; distinct += 1 + static_cast<std::uint32_t>(random.index(1200)))
    check_binner_of(random, distinct);
}

// Many more ranges, at the borders of their bins.
TEST(borders_of_bins_of_16_bits) {
  Random random(19);
  for (std::uint32_t distinct = 1, step; distinct <= 65536; distinct += step) {
    step = distinct <= 5000 || distinct > 65500 ? 1 : 1 + static_cast<std::uint32_t>(random.index(16));
    const auto min = static_cast<std::uint16_t>(random.between(0, 65536 - distinct));
    const auto max = static_cast<std::uint16_t>(min + (distinct - 1));
    const Binner<std::uint16_t> binner(Range<std::uint16_t>{min, max});
    for (std::uint32_t b = 0; b < bin_count; ++b) {
      const std::uint32_t last = binner.last(b), end = std::min(last, distinct - 1);
      for (const std::uint32_t offset : {end, std::min(end + 1, distinct - 1)}) {
        const auto value = static_cast<std::uint16_t>(min + offset);
        std::uint16_t filled;
        binner.fill(&value, 1, &filled);
        const std::uint32_t of_value = binner(value);
        if (filled == of_value * lanes && binner.up_to(value, binner.last(b)) == (of_value <= b)) continue;
        CHECK(false, "distinct", distinct, "min", min, "offset", offset, "bin", of_value, "filled", filled, "up to", b);
      }
    }
    ++check::checks;
  }
}

// up_to, last and fill against the bin itself, at the ends, around borders and anywhere between.
template <class Value>
static void check_borders(Random& random, Value min, Value max) {
  const Binner<Value> binner(Range<Value>{min, max});
  std::vector<Value> values{min, max};
  const auto add = [&](Value value) {
    if (value >= min && value <= max) values.push_back(value);
  };
  if constexpr (std::is_integral_v<Value>) {
    const std::uint64_t width = static_cast<std::uint64_t>(max) - static_cast<std::uint64_t>(min);
    for (std::uint64_t b = 0; b <= bin_count; ++b) {
      const std::uint64_t border = width / bin_count * b + width % bin_count * b / bin_count;
      for (std::uint64_t offset = border - 2; offset != border + 4; ++offset)
        if (offset <= width) values.push_back(static_cast<Value>(static_cast<std::uint64_t>(min) + offset));
    }
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t offset = width + 1 == 0 ? random.bits() : random.bits() % (width + 1);
      values.push_back(static_cast<Value>(static_cast<std::uint64_t>(min) + offset));
    }
  } else {
    for (std::size_t b = 0; b <= bin_count; ++b) {
      const double border = min + (max - min) * (static_cast<double>(b) / bin_count);
      add(border);
      add(std::nextafter(border, -std::numeric_limits<double>::infinity()));
      add(std::nextafter(border, std::numeric_limits<double>::infinity()));
    }
    for (int i = 0; i < 100; ++i) add(min + (max - min) * random.unit());
  }
  std::sort(values.begin(), values.end());
  std::vector<std::uint16_t> bin(values.size());
  binner.fill(values.data(), values.size(), bin.data());
  for (auto& place : bin) {
    CHECK_EQUAL(place % lanes, 0u);
    place /= lanes;
  }
  CHECK_EQUAL(bin.front(), 0);
  CHECK(std::is_sorted(bin.begin(), bin.end()), static_cast<double>(min), static_cast<double>(max));
  for (std::size_t i = 0; i < values.size(); ++i) {
    CHECK_EQUAL(bin[i], binner(values[i]), static_cast<double>(min), static_cast<double>(max), "value", values[i]);
    CHECK(bin[i] < bin_count, static_cast<double>(min), static_cast<double>(max), "value", values[i]);
    if constexpr (std::is_same_v<Value, std::int32_t>) {
      const std::uint64_t offset = static_cast<std::uint64_t>(static_cast<std::int64_t>(values[i]) - min);
      CHECK(is_equal_bin(bin[i], offset, static_cast<std::uint64_t>(static_cast<std::int64_t>(max) - min) + 1), min, max, "value",
            values[i], "bin", bin[i]);
    }
  }
  for (std::uint32_t b = 0; b < bin_count; ++b) {
    const auto last = binner.last(b);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (binner.up_to(values[i], last) == (bin[i] <= b)) continue;
      CHECK(false, static_cast<double>(min), static_cast<double>(max), "value", values[i], "bin", bin[i], "border", b);
    }
  }
  ++check::checks;
}

template <class Value>
static void check_borders_of_integers(std::uint64_t seed) {
  constexpr Value least = std::numeric_limits<Value>::min(), most = std::numeric_limits<Value>::max();
  Random random(seed);
  check_borders<Value>(random, least, most);
  check_borders<Value>(random, least, most - 1);
  check_borders<Value>(random, least + 1, most);
  check_borders<Value>(random, 0, most);
  check_borders<Value>(random, least, 0);
  check_borders<Value>(random, least, least + 1);
  check_borders<Value>(random, most - 1, most);
  for (Value width = 1; width < 200; ++width) check_borders<Value>(random, most - width, most);
  for (Value power = most / 2 + 1; power > 1; power /= 2)
    for (const Value width : {power - 1, power, power + 1}) check_borders<Value>(random, -(width / 3), width - width / 3);
  for (int round = 0; round < 100; ++round) {
    const auto a = static_cast<Value>(random.bits() >> random.index(8 * sizeof(Value)));
    const auto b = static_cast<Value>(random.bits());
    if (a != b) check_borders<Value>(random, std::min(a, b), std::max(a, b));
  }
}

TEST(borders_of_bins_of_int32) { check_borders_of_integers<std::int32_t>(51); }
TEST(borders_of_bins_of_int64) { check_borders_of_integers<std::int64_t>(52); }

TEST(borders_of_bins_of_float64) {
  Random random(53);
  constexpr double tiny = std::numeric_limits<double>::denorm_min(), most = std::numeric_limits<double>::max();
  check_borders<double>(random, 0.0, tiny);
  check_borders<double>(random, -tiny, 63 * tiny);
  check_borders<double>(random, 0.0, std::numeric_limits<double>::min());
  check_borders<double>(random, 1.0, std::nextafter(1.0, 2.0));
  check_borders<double>(random, -most / 2, most / 2);
  check_borders<double>(random, 0.0, most);
  check_borders<double>(random, -1.0, 1e300);
  for (int round = 0; round < 200; ++round) {
    const auto exponent = [&] { return static_cast<int>(random.between(-1070, 1000)); };
    const double low = std::ldexp(random.unit() - 0.5, exponent());
    const double high = low + std::abs(low) * random.unit() + std::ldexp(random.unit() + 0.5, exponent());
    if (low < high) check_borders<double>(random, low, high);
  }
}

// A node with values of some candidates, and what the definition makes of it.
template <class ValueType, class CriterionType>
struct Case {
  using Value = ValueType;
  using Criterion = CriterionType;

  std::vector<std::uint32_t> rows, count, weight, classes;
  std::vector<std::int64_t> targets;
  NodeRows node{};
  std::vector<Value> values;  // [candidate][row]
  std::size_t candidates;
  SideLimits limits{1, 0};

  Case(Random& random, std::size_t size, std::size_t candidate_count)
      : rows(size), count(size), weight(size), classes(size), targets(size), values(size * candidate_count),
        candidates(candidate_count) {
    const bool weighted = random.chance(0.5);
    for (std::size_t i = 0; i < size; ++i) {
      rows[i] = static_cast<std::uint32_t>(i);
      classes[i] = static_cast<std::uint32_t>(random.index(3));
      targets[i] = random.between(std::is_same_v<Criterion, SumCriterion<Poisson>> ? 0 : -9, 9);
      count[i] = static_cast<std::uint32_t>(random.between(1, 3));
      weight[i] = weighted ? static_cast<std::uint32_t>(random.between(1, 50)) : count[i];
      node.total_count += count[i];
      node.total_weight += weight[i];
    }
    node.rows = rows.data();
    node.size = size;
    node.count = count.data();
    node.weight = weight.data();
  }

  Value* candidate(std::size_t j) { return values.data() + j * node.size; }

  Criterion criterion() const {
    if constexpr (std::is_constructible_v<Criterion, const std::uint32_t*, std::size_t>) {
      Criterion made(classes.data(), 3);
      made.begin_node(node);
      return made;
    } else {
      Criterion made(targets.data(), 0);
      made.begin_node(node);
      return made;
    }
  }

  // The score of sending the values up to `below` left, or nothing where a side is too small.
  std::optional<double> score(Criterion& c, std::size_t j, Value below) const {
    c.begin_scan();
    std::uint64_t left_count = 0, left_weight = 0;
    for (std::size_t i = 0; i < node.size; ++i) {
      if (values[j * node.size + i] > below) continue;
      c.move(i);
      left_count += count[i];
      left_weight += weight[i];
    }
    if (left_count < std::max<std::uint64_t>(limits.min_count, 1) || left_weight < limits.min_weight ||
        node.total_count - left_count < std::max<std::uint64_t>(limits.min_count, 1) ||
        node.total_weight - left_weight < limits.min_weight)
      return {};
    return c.score();
  }

  // Every candidate, every threshold.
  Split<Value> brute_force() const {
    Split<Value> best;
    Criterion c = criterion();
    for (std::size_t j = 0; j < candidates; ++j) {
      std::vector<Value> distinct(values.begin() + j * node.size, values.begin() + (j + 1) * node.size);
      std::sort(distinct.begin(), distinct.end());
      distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
      for (std::size_t i = 0; i + 1 < distinct.size(); ++i) {
        const std::optional<double> s = score(c, j, distinct[i]);
        if (s && *s > best.score) best = {*s, j, distinct[i], distinct[i + 1]};
      }
    }
    return best;
  }

  std::vector<Range<Value>> ranges() const {
    std::vector<Range<Value>> of_candidate;
    for (std::size_t j = 0; j < candidates; ++j) {
      const Value* v = values.data() + j * node.size;
      const auto [low, high] = std::minmax_element(v, v + node.size);
      of_candidate.push_back({*low, *high});
    }
    return of_candidate;
  }

  // The values as a projection leaves them: in whole blocks, with anything behind the last row.
  std::vector<Value> in_blocks() const {
    std::vector<Value> blocks(candidates * stride(), static_cast<Value>(77));
    for (std::size_t j = 0; j < candidates; ++j)
      std::copy_n(values.begin() + j * node.size, node.size, blocks.begin() + j * stride());
    return blocks;
  }
  std::size_t stride() const { return whole_blocks(node.size); }

  Split<Value> search(Splitter splitter) const {
    Criterion c = criterion();
    SplitSearch<Value, Criterion> search(splitter, limits);
    Split<Value> best;
    search(node, c, in_blocks().data(), stride(), ranges().data(), 0, candidates, best);
    return best;
  }
};

template <class Value>
static void check_same(const Split<Value>& found, const Split<Value>& expected, const char* what, int round) {
  CHECK_EQUAL(found.found(), expected.found(), what, "round", round);
  if (!found.found() || !expected.found()) return;
  CHECK_EQUAL(found.score, expected.score, what, "round", round);
  CHECK_EQUAL(found.candidate, expected.candidate, what, "round", round);
  CHECK_EQUAL(found.below, expected.below, what, "round", round);
  CHECK_EQUAL(found.above, expected.above, what, "round", round);
}

// Values of every width that a search treats differently: few, below 2^24, below 2^32, below 2^55, more.
template <class Value>
static void fill(Random& random, Value* values, std::size_t size) {
  const std::int64_t wide = sizeof(Value) == 8 ? std::int64_t{1} << 61 : sizeof(Value) == 4 ? (std::int64_t{1} << 30) - 1 : 65535;
  const std::int64_t spans[] = {1, 5, 63, 64, 1 << 20, 1 << 26, wide >> 20, wide >> 7, wide >> 5, wide >> 4, wide};
  const std::int64_t span = std::min(spans[random.index(std::size(spans))], wide);
  const std::int64_t low = random.between(std::is_unsigned_v<Value> ? 0 : -wide, wide - span);
  for (std::size_t i = 0; i < size; ++i) {
    if constexpr (std::is_integral_v<Value>) values[i] = static_cast<Value>(random.between(low, low + span));
    else values[i] = static_cast<double>(random.between(0, span)) / 3.0 - 1.0;
  }
  if (random.chance(0.1)) std::fill(values, values + size, values[0]);
}

template <class C>
static C random_case(Random& random, std::size_t smallest, std::size_t largest) {
  C c(random, static_cast<std::size_t>(random.between(static_cast<std::int64_t>(smallest), static_cast<std::int64_t>(largest))),
      1 + random.index(20));
  for (std::size_t j = 0; j < c.candidates; ++j) fill(random, c.candidate(j), c.node.size);
  if (random.chance(0.5)) c.limits = {1 + random.index(8), random.index(60)};
  return c;
}

using GiniCase = Case<std::int32_t, ClassCriterion<Gini>>;
using ShortCase = Case<std::uint16_t, ClassCriterion<Gini>>;
using EntropyCase = Case<double, ClassCriterion<Entropy>>;
using SquaredCase = Case<std::int64_t, SumCriterion<SquaredError>>;
using PoissonCase = Case<std::int32_t, SumCriterion<Poisson>>;
using AbsoluteCase = Case<std::int64_t, AbsoluteError>;

template <class C>
static void check_exact(std::uint64_t seed) {
  Random random(seed);
  for (int round = 0; round < 40; ++round) {
    const C small = random_case<C>(random, 2, small_node);
    check_same(small.search(Splitter::exact), small.brute_force(), "small", round);
    if (small.node.total_count <= small_node)
      check_same(small.search(Splitter::histogram), small.brute_force(), "small, histogram", round);
    if (round % 5 == 0) {
      const C large = random_case<C>(random, small_node + 1, 150);
      check_same(large.search(Splitter::exact), large.brute_force(), "large", round);
    }
  }
}

TEST(exact_gini_of_int32) { check_exact<GiniCase>(2); }
TEST(exact_gini_of_uint16) { check_exact<ShortCase>(7); }
TEST(exact_entropy_of_float64) { check_exact<EntropyCase>(3); }
TEST(exact_squared_error_of_int64) { check_exact<SquaredCase>(4); }
TEST(exact_poisson_of_int32) { check_exact<PoissonCase>(5); }
TEST(exact_absolute_error_of_int64) { check_exact<AbsoluteCase>(6); }

// A histogram's split stands between neighbours, its score is its own, and it is no better than the best.
template <class C>
static void check_histogram(std::uint64_t seed) {
  Random random(seed);
  for (int round = 0; round < 25; ++round) {
    static constexpr std::size_t sizes[] = {255, 256, 257, 512, 513};  // around chunks
    const std::size_t at_edge = sizes[round % 5];
    const C c = round < 20 ? random_case<C>(random, small_node + 1, 300) : random_case<C>(random, at_edge, at_edge);
    const auto found = c.search(Splitter::histogram), best = c.search(Splitter::exact);
    CHECK(found.score <= best.score, "round", round, found.score, best.score);
    if (!found.found()) continue;
    CHECK(found.below < found.above, "round", round);
    bool below = false, above = false, between = false;
    for (std::size_t i = 0; i < c.node.size; ++i) {
      const auto v = c.values[found.candidate * c.node.size + i];
      below |= v == found.below;
      above |= v == found.above;
      between |= v > found.below && v < found.above;
    }
    CHECK(below && above && !between, "round", round);
    auto criterion = c.criterion();
    const auto score = c.score(criterion, found.candidate, found.below);
    CHECK(score.has_value(), "limits", "round", round);
    if (score) CHECK_EQUAL(found.score, *score, "round", round);

    // Candidates do not disturb one another: the best of all is the first best of each alone.
    typename std::decay_t<decltype(found)> alone;
    for (std::size_t j = 0; j < c.candidates; ++j) {
      C one = c;
      one.candidates = 1;
      one.values.assign(c.values.begin() + j * c.node.size, c.values.begin() + (j + 1) * c.node.size);
      auto split = one.search(Splitter::histogram);
      split.candidate = j;
      if (split.score > alone.score) alone = split;
    }
    check_same(found, alone, "alone", round);
  }
}

TEST(histogram_gini_of_int32) { check_histogram<GiniCase>(12); }
TEST(histogram_gini_of_uint16) { check_histogram<ShortCase>(16); }
TEST(histogram_entropy_of_float64) { check_histogram<EntropyCase>(13); }
TEST(histogram_squared_error_of_int64) { check_histogram<SquaredCase>(14); }
TEST(histogram_poisson_of_int32) { check_histogram<PoissonCase>(15); }

// Values of 16 bits are split as the same values of 32 are.
TEST(splits_of_uint16_are_those_of_int32) {
  Random random(17);
  for (const Splitter splitter : {Splitter::exact, Splitter::histogram})
    for (int round = 0; round < 40; ++round) {
      const ShortCase c = random_case<ShortCase>(random, 2, round % 2 ? small_node : 600);
      GiniCase wide(random, c.node.size, c.candidates);
      wide.classes = c.classes;
      wide.count = c.count;
      wide.weight = c.weight;
      wide.node.total_count = c.node.total_count;
      wide.node.total_weight = c.node.total_weight;
      wide.limits = c.limits;
      wide.values.assign(c.values.begin(), c.values.end());
      const auto found = c.search(splitter);
      check_same({found.score, found.candidate, found.below, found.above}, wide.search(splitter), "uint16", round);
    }
}

TEST(histogram_of_up_to_64_integers_is_exact) {
  Random random(7);
  for (int round = 0; round < 40; ++round) {
    GiniCase c(random, 65 + random.index(600), 9);
    const std::int64_t low = random.between(-1000000, 1000000), span = random.between(1, 63);
    for (auto& value : c.values) value = static_cast<std::int32_t>(random.between(low, low + span));
    // Limits that forbid many splits, of counts and of weights.
    if (round % 2) c.limits.min_count = random.index(c.node.total_count / 2);
    if (round % 3) c.limits.min_weight = random.index(c.node.total_weight / 2);
    check_same(c.search(Splitter::histogram), c.brute_force(), "round", round);
  }
}

TEST(limits_look_at_the_counts_of_every_chunk) {
  Random random(20);
  for (int round = 0; round < 20; ++round) {
    ShortCase c(random, 600, 3);
    for (auto& value : c.values) value = static_cast<std::uint16_t>(random.index(60));
    c.node.total_count = 0;
    for (std::size_t i = 0; i < c.node.size; ++i) c.node.total_count += c.count[i] = i < BinChunk::capacity ? 1 : 9;
    c.limits.min_count = random.index(c.node.total_count / 2);
    check_same(c.search(Splitter::histogram), c.brute_force(), "round", round);
  }
}

// A step in evenly spread data is found to within a bin.
template <class C>
static void check_step(std::uint64_t seed, double scale) {
  Random random(seed);
  for (int round = 0; round < 10; ++round) {
    C c(random, 1500, 1);
    const double step = 0.1 + 0.8 * random.unit();
    for (std::size_t i = 0; i < c.node.size; ++i) {
      const double x = random.unit();
      c.values[i] = static_cast<typename C::Value>(x * scale);
      c.classes[i] = x > step;
      c.targets[i] = x > step ? 5 : 1;
    }
    const auto found = c.search(Splitter::histogram);
    CHECK(std::abs(static_cast<double>(found.below) / scale - step) < 1.0 / 50, "round", round, step);
    CHECK(std::abs(static_cast<double>(found.above) / scale - step) < 1.0 / 50, "round", round, step);
  }
}

TEST(histogram_finds_a_step) {
  check_step<GiniCase>(21, 1e6);
  check_step<GiniCase>(22, 1e9);
  check_step<EntropyCase>(23, 1.0);
  check_step<EntropyCase>(24, 1e-200);
  check_step<SquaredCase>(25, 1e18);
  check_step<PoissonCase>(26, 1e3);
}

// One far value squeezes all others into a bin: search is exact then.
template <class C>
static void check_heavy_tail(std::uint64_t seed) {
  Random random(seed);
  for (int round = 0; round < 12; ++round) {
    C c(random, 65 + random.index(100), 10);
    for (std::size_t j = 0; j < c.candidates; ++j) {
      for (std::size_t i = 0; i < c.node.size; ++i) c.candidate(j)[i] = static_cast<typename C::Value>(random.between(0, 1000));
      c.candidate(j)[random.index(c.node.size)] = static_cast<typename C::Value>(random.chance(0.5) ? 1e9 : -1e9);
    }
    if (round % 2) c.limits = {4, 30};
    check_same(c.search(Splitter::histogram), c.brute_force(), "round", round);
  }
}

TEST(heavy_tails_are_searched_exactly) {
  check_heavy_tail<GiniCase>(31);
  check_heavy_tail<EntropyCase>(32);
  check_heavy_tail<SquaredCase>(33);
  check_heavy_tail<PoissonCase>(34);
}

TEST(a_background_of_one_value_is_no_heavy_tail) {
  Random random(8);
  GiniCase c(random, 500, 1);
  for (std::size_t i = 0; i < c.node.size; ++i) {
    c.values[i] = random.chance(0.8) ? 0 : static_cast<std::int32_t>(random.between(1, 1000000));
    c.classes[i] = c.values[i] > 0;
  }
  const auto found = c.search(Splitter::histogram);
  CHECK(found.found());
  CHECK(found.below < 1000000 / 64, "the first bin holds the background and few others");
}

// With more classes than bins pay for, search is exact.
TEST(many_classes_are_searched_exactly) {
  Random random(9);
  for (int round = 0; round < 10; ++round) {
    GiniCase c(random, 80, 3);
    for (auto& value : c.values) value = static_cast<std::int32_t>(random.between(0, 100000));
    for (std::size_t i = 0; i < c.node.size; ++i) {
      c.classes[i] = static_cast<std::uint32_t>(i / 2);
      c.count[i] = c.weight[i] = 1;
    }
    c.node.total_count = c.node.total_weight = c.node.size;
    ClassCriterion<Gini> criterion(c.classes.data(), 40);
    criterion.begin_node(c.node);
    Split<std::int32_t> found, exact;
    SplitSearch<std::int32_t, ClassCriterion<Gini>>(Splitter::histogram, c.limits)(c.node, criterion, c.in_blocks().data(),
                                                                                   c.stride(), c.ranges().data(), 0, 3, found);
    SplitSearch<std::int32_t, ClassCriterion<Gini>>(Splitter::exact, c.limits)(c.node, criterion, c.in_blocks().data(),
                                                                               c.stride(), c.ranges().data(), 0, 3, exact);
    check_same(found, exact, "round", round);
  }
}

// Integers beyond a double's mantissa, most of them the lowest: the one split there is must be found.
TEST(histogram_of_neighbours_beyond_the_mantissa) {
  Random random(10);
  SquaredCase c(random, 100, 1);
  for (std::size_t i = 0; i < c.node.size; ++i) {
    c.values[i] = (std::int64_t{1} << 60) + (i % 10 == 0);
    c.targets[i] = i % 10 == 0;
  }
  check_same(c.search(Splitter::histogram), c.brute_force(), "high", 0);
  for (std::size_t i = 0; i < c.node.size; ++i) c.values[i] = (std::int64_t{1} << 60) + (i % 10 != 0);
  check_same(c.search(Splitter::histogram), c.brute_force(), "low", 0);
}

TEST(histogram_of_neighbours_near_the_smallest_double) {
  Random random(11);
  EntropyCase c(random, 100, 1);
  constexpr double tiny = std::numeric_limits<double>::denorm_min();
  for (std::size_t i = 0; i < c.node.size; ++i) {
    c.values[i] = i % 10 == 0 ? tiny : 0.0;
    c.classes[i] = i % 10 == 0;
  }
  check_same(c.search(Splitter::histogram), c.brute_force(), "high", 0);
  for (std::size_t i = 0; i < c.node.size; ++i) c.values[i] = i % 10 != 0 ? tiny : 0.0;
  check_same(c.search(Splitter::histogram), c.brute_force(), "low", 0);
}

TEST(limits_that_leave_no_split) {
  Random random(13);
  for (const Splitter splitter : {Splitter::exact, Splitter::histogram})
    for (const std::size_t size : {10, 200}) {
      GiniCase c(random, size, 4);
      for (auto& value : c.values) value = static_cast<std::int32_t>(random.between(0, 1000));
      c.limits = {c.node.total_count / 2 + 1, 0};
      CHECK(!c.search(splitter).found());
      c.limits = {1, c.node.total_weight / 2 + 1};
      CHECK(!c.search(splitter).found());
      c.limits = {std::uint64_t{1} << 40, std::uint64_t{1} << 40};
      CHECK(!c.search(splitter).found());
    }
}

// A later call improves on an earlier one and on nothing else.
TEST(groups_of_candidates) {
  Random random(14);
  for (const Splitter splitter : {Splitter::exact, Splitter::histogram})
    for (int round = 0; round < 30; ++round) {
      const GiniCase c = random_case<GiniCase>(random, 2, 200);
      auto criterion = c.criterion();
      SplitSearch<std::int32_t, ClassCriterion<Gini>> search(splitter, c.limits);
      Split<std::int32_t> best;
      for (std::size_t first = 0; first < c.candidates; first += 3)
        search(c.node, criterion, c.in_blocks().data() + first * c.stride(), c.stride(), c.ranges().data() + first, first,
               std::min<std::size_t>(3, c.candidates - first), best);
      check_same(best, c.search(splitter), "groups", round);
    }
}
