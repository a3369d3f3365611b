// Built twice: with the compiler's vector types, and, with PORTABLE_LANES, with the plain ones of other compilers.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <type_traits>
#include <vector>

#if defined(PORTABLE_LANES)
#pragma push_macro("__GNUC__")
#undef __GNUC__
#include "base/simd.hpp"
#include "base/simd_pairs.hpp"
#pragma pop_macro("__GNUC__")
static_assert(std::is_class_v<morf::LaneVector<double>>);
#endif

#include "splitting/absolute_error.hpp"
#include "splitting/class_criterion.hpp"
#include "splitting/sum_criterion.hpp"

#include "check.hpp"
#include "data.hpp"

using namespace morf;

// A node of random rows out of a larger table.
struct Sample {
  std::vector<std::uint32_t> rows, count, weight, classes;
  std::vector<std::int64_t> targets;
  std::size_t class_count;
  NodeRows node;

  // Weights up to `heaviest`; targets of size up to `largest`, of which some repeat.
  Sample(Random& random, std::size_t size, std::int64_t classes_in_all, std::int64_t heaviest, std::int64_t lowest,
         std::int64_t largest)
      : rows(size), count(size), weight(size), classes(3 * size), targets(3 * size),
        class_count(static_cast<std::size_t>(classes_in_all)), node{} {
    for (auto& c : classes) c = static_cast<std::uint32_t>(random.between(0, classes_in_all - 1));
    const bool few = random.chance(0.5);
    for (auto& y : targets)
      y = few ? std::clamp<std::int64_t>(random.between(lowest, lowest + 5), lowest, largest) : random.between(lowest, largest);
    for (std::size_t i = 0; i < size; ++i) {
      rows[i] = static_cast<std::uint32_t>(random.index(3 * size));
      weight[i] = static_cast<std::uint32_t>(random.between(1, heaviest));
      count[i] = static_cast<std::uint32_t>(random.between(1, 3));
      node.total_count += count[i];
      node.total_weight += weight[i];
    }
    node.rows = rows.data();
    node.size = size;
    node.count = count.data();
    node.weight = weight.data();
  }
  std::int64_t target(std::size_t i) const { return targets[rows[i]]; }
  std::uint32_t class_of(std::size_t i) const { return classes[rows[i]]; }
};

// The scores of docs/design.md, from the rows of one side.
static double gini_side(const Sample& s, const std::vector<std::size_t>& side) {
  std::vector<std::uint64_t> total(s.class_count, 0);
  std::uint64_t w = 0, sum = 0;
  for (const std::size_t i : side) total[s.class_of(i)] += s.weight[i], w += s.weight[i];
  for (const std::uint64_t c : total) sum += c * c;
  return static_cast<double>(sum) * (1.0 / static_cast<double>(w));
}

static std::int64_t entropy_term(std::uint64_t c) {
  return c == 0 ? 0 : std::llrint(static_cast<double>(c) * portable_log2(static_cast<double>(c)) * 0x1.0p24);
}

static std::int64_t entropy_side(const Sample& s, const std::vector<std::size_t>& side) {
  std::vector<std::uint64_t> total(s.class_count, 0);
  std::uint64_t w = 0;
  std::int64_t sum = 0;
  for (const std::size_t i : side) total[s.class_of(i)] += s.weight[i], w += s.weight[i];
  for (const std::uint64_t c : total) sum += entropy_term(c);
  return sum - entropy_term(w);
}

static std::int64_t sum_of(const Sample& s, const std::vector<std::size_t>& side, std::uint64_t& w) {
  std::int64_t sum = 0;
  w = 0;
  for (const std::size_t i : side) sum += s.target(i) * s.weight[i], w += s.weight[i];
  return sum;
}

static double squared_side(const Sample& s, const std::vector<std::size_t>& side) {
  std::uint64_t w;
  const auto sum = static_cast<double>(sum_of(s, side, w));
  return sum * sum * (1.0 / static_cast<double>(w));
}

static double poisson_side(const Sample& s, const std::vector<std::size_t>& side) {
  std::uint64_t w;
  const auto sum = static_cast<double>(sum_of(s, side, w));
  return sum > 0 ? sum * (portable_log2(sum) - portable_log2(static_cast<double>(w))) : minus_infinity;
}

// The least over all targets of the weighted sum of distances to it.
static std::int64_t absolute_side(const Sample& s, const std::vector<std::size_t>& side) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const std::size_t centre : side) {
    std::int64_t sum = 0;
    for (const std::size_t i : side) sum += std::abs(s.target(i) - s.target(centre)) * s.weight[i];
    least = std::min(least, sum);
  }
  return side.empty() ? 0 : least;
}

struct GiniCase {
  using Criterion = ClassCriterion<Gini>;
  static constexpr const char* name = "gini";
  static Criterion make(const Sample& s) { return Criterion(s.classes.data(), s.class_count); }
  static double score(const Sample& s, const std::vector<std::size_t>& left, const std::vector<std::size_t>& right) {
    return gini_side(s, left) + gini_side(s, right);
  }
  static double gain(const Sample& s, const std::vector<std::size_t>& all, double score, double W) {
    return (score - gini_side(s, all)) / W;
  }
};

struct EntropyCase {
  using Criterion = ClassCriterion<Entropy>;
  static constexpr const char* name = "entropy";
  static Criterion make(const Sample& s) { return Criterion(s.classes.data(), s.class_count); }
  static double score(const Sample& s, const std::vector<std::size_t>& left, const std::vector<std::size_t>& right) {
    return static_cast<double>(entropy_side(s, left) + entropy_side(s, right));
  }
  static double gain(const Sample& s, const std::vector<std::size_t>& all, double score, double W) {
    return (score - static_cast<double>(entropy_side(s, all))) / 0x1.0p24 / W;
  }
};

static constexpr int bits = 7;

struct SquaredCase {
  using Criterion = SumCriterion<SquaredError>;
  static constexpr const char* name = "squared_error";
  static Criterion make(const Sample& s) { return Criterion(s.targets.data(), bits); }
  static double score(const Sample& s, const std::vector<std::size_t>& left, const std::vector<std::size_t>& right) {
    return squared_side(s, left) + squared_side(s, right);
  }
  static double gain(const Sample& s, const std::vector<std::size_t>& all, double score, double W) {
    return (score - squared_side(s, all)) / W / 0x1.0p14;
  }
};

struct PoissonCase {
  using Criterion = SumCriterion<Poisson>;
  static constexpr const char* name = "poisson";
  static Criterion make(const Sample& s) { return Criterion(s.targets.data(), bits); }
  static double score(const Sample& s, const std::vector<std::size_t>& left, const std::vector<std::size_t>& right) {
    return poisson_side(s, left) + poisson_side(s, right);
  }
  static double gain(const Sample& s, const std::vector<std::size_t>& all, double score, double W) {
    return (score - poisson_side(s, all)) * 0.6931471805599453 / W / 0x1.0p7;
  }
};

struct AbsoluteCase {
  using Criterion = AbsoluteError;
  static constexpr const char* name = "absolute_error";
  static Criterion make(const Sample& s) { return Criterion(s.targets.data(), bits); }
  static double score(const Sample& s, const std::vector<std::size_t>& left, const std::vector<std::size_t>& right) {
    return -static_cast<double>(absolute_side(s, left) + absolute_side(s, right));
  }
  static double gain(const Sample& s, const std::vector<std::size_t>& all, double score, double W) {
    return (score + static_cast<double>(absolute_side(s, all))) / W / 0x1.0p7;
  }
};

static bool close(double a, double b) { return a == b || std::abs(a - b) <= 1e-14 * std::max(std::abs(a), std::abs(b)); }

static Sample random_sample(Random& random, std::size_t largest_node, std::int64_t lowest) {
  const std::size_t size = 1 + random.index(largest_node);
  const auto n = static_cast<std::int64_t>(size);
  static constexpr std::int64_t classes[] = {1, 2, 3, 10, 32, 33, 1000};  // up to 32 are counted another way
  // Weights of one, of few values, up to the border of 32-bit squares, and as heavy as a tree may be.
  const std::int64_t heaviest[] = {1, 3, std::max<std::int64_t>(2 * 32767 / n, 1), ((std::int64_t{1} << 31) - 1) / n};
  const std::int64_t weight = heaviest[random.index(4)];
  const std::int64_t target = random.chance(0.3) ? ((std::int64_t{1} << 62) - 1) / (n * weight) : 1000;
  return Sample(random, size, classes[random.index(std::size(classes))], weight, std::max(lowest, -target), target);
}

// Moves rows in random order and holds every score against the definition.
template <class Case>
static void check_incremental(std::uint64_t seed, std::int64_t lowest) {
  Random random(seed);
  for (int round = 0; round < 60; ++round) {
    const Sample s = random_sample(random, 40, lowest);
    auto criterion = Case::make(s);
    criterion.begin_node(s.node);
    std::vector<std::size_t> left, right(s.node.size), all;
    for (std::size_t i = 0; i < s.node.size; ++i) right[i] = i;
    all = right;
    random.shuffle(right);
    for (int scan = 0; scan < 2; ++scan) {
      criterion.begin_scan();
      CHECK_EQUAL(criterion.left_weight(), 0u);
      std::uint64_t left_weight = 0;
      for (std::size_t moved = 0; moved + 1 < s.node.size; ++moved) {
        const std::size_t i = right.back();
        right.pop_back();
        left.push_back(i);
        left_weight += s.weight[i];
        criterion.move(i);
        CHECK_EQUAL(criterion.left_weight(), left_weight);
        const double score = Case::score(s, left, right);
        CHECK_EQUAL(criterion.score(), score, Case::name, "round", round, "moved", moved);
        if (score > minus_infinity) {
          const double W = 2.0 * static_cast<double>(s.node.total_weight);
          const double gain = criterion.gain(score, W), expected = Case::gain(s, all, score, W);
          CHECK(close(gain, expected), Case::name, gain, expected);
        }
      }
      right.insert(right.end(), left.begin(), left.end());
      left.clear();
    }
  }
}

TEST(gini_follows_moves) { check_incremental<GiniCase>(1, 0); }
TEST(entropy_follows_moves) { check_incremental<EntropyCase>(2, 0); }
TEST(squared_error_follows_moves) { check_incremental<SquaredCase>(3, std::numeric_limits<std::int64_t>::min()); }
TEST(poisson_follows_moves) { check_incremental<PoissonCase>(4, 0); }
TEST(absolute_error_follows_moves) { check_incremental<AbsoluteCase>(5, std::numeric_limits<std::int64_t>::min()); }

// Puts row i of candidate `lane` into bin[lane][i], a chunk at a time.
template <class Criterion>
static void fill_bins(Criterion& criterion, const std::vector<std::vector<std::uint8_t>>& bin, std::size_t size) {
  BinChunk chunk{};
  chunk.used = bin.size();
  criterion.begin_bins();
  for (chunk.first = 0; chunk.first < size; chunk.first += chunk.size) {
    chunk.size = std::min(BinChunk::capacity, size - chunk.first);
    for (std::size_t lane = 0; lane < bin.size(); ++lane)
      for (std::size_t i = 0; i < chunk.size; ++i)
        chunk.place[lane][i] = static_cast<std::uint16_t>(bin[lane][chunk.first + i] * lanes);
    criterion.add_to_bins(chunk);
  }
}

// Reads what scan_bins found, and checks that scores in single precision are near the exact ones, the highest is one of them,
// and the heaviest bin is the first of its weight.
template <class Criterion>
static void scan_narrow_bins(Criterion& criterion, std::uint64_t total_weight, std::uint32_t (&moved)[bin_count][lanes],
                             std::uint64_t (&left)[bin_count][lanes], double (&scores)[bin_count][lanes]) {
  BinScan scan;
  criterion.scan_bins(scan);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    float highest = 0.0f;
    std::size_t heaviest = 0;
    for (std::size_t b = 0; b < bin_count; ++b) {
      left[b][lane] = static_cast<std::uint64_t>(scan.left_weight[b][lane]);
      moved[b][lane] = static_cast<std::uint32_t>(left[b][lane] - (b > 0 ? left[b - 1][lane] : 0));
      const bool split = left[b][lane] > 0 && left[b][lane] < total_weight;
      scores[b][lane] = split ? criterion.exact_score(scan, b, lane) : std::numeric_limits<double>::quiet_NaN();
      CHECK_EQUAL(std::isnan(scan.score[b][lane]), !split, "bin", b, "lane", lane);
      if (split) {
        CHECK(std::abs(scan.score[b][lane] / scores[b][lane] - 1.0) < 0x1.0p-20, scan.score[b][lane], scores[b][lane]);
        highest = std::max(highest, scan.score[b][lane]);
      }
      if (moved[b][lane] > moved[heaviest][lane]) heaviest = b;
    }
    CHECK_EQUAL(scan.highest[lane], highest, "lane", lane);
    CHECK_EQUAL(static_cast<std::uint32_t>(scan.heaviest[lane]), moved[heaviest][lane] * bin_count + bin_count - 1 - heaviest,
                "lane", lane);
  }
}

// Bins of eight candidates side by side give the scores of a plain scan, bit by bit.
template <class Case>
static void check_bins_of(Random& random, const Sample& s, int round) {
  auto criterion = Case::make(s), plain = Case::make(s);
  plain.begin_node(s.node);
  criterion.begin_node(s.node);
  for (int scan = 0; scan < 2; ++scan) {
    const std::size_t bins = 1 + random.index(bin_count), used = 1 + random.index(lanes);
    std::vector<std::vector<std::uint8_t>> bin(used, std::vector<std::uint8_t>(s.node.size));
    for (auto& of_lane : bin)
      for (auto& b : of_lane) b = static_cast<std::uint8_t>(random.chance(0.05) ? bins - 1 : random.index(bins));
    fill_bins(criterion, bin, s.node.size);

    std::uint32_t moved[bin_count][lanes];
    std::uint64_t left[bin_count][lanes];
    double scores[bin_count][lanes];
    bool narrow = false;
    if constexpr (decltype(criterion)::has_narrow_bins) narrow = criterion.narrow();
    if (narrow) {
      if constexpr (decltype(criterion)::has_narrow_bins) scan_narrow_bins(criterion, s.node.total_weight, moved, left, scores);
    } else {
      criterion.begin_bin_scan();
      for (std::size_t b = 0; b < bin_count; ++b) {
        criterion.move_bin(b, moved[b]);
        criterion.bin_scores(scores[b]);
        for (std::size_t lane = 0; lane < lanes; ++lane) left[b][lane] = criterion.bin_left_weight(lane);
      }
    }
    for (std::size_t lane = 0; lane < used; ++lane) {
      std::vector<std::vector<std::size_t>> rows_of_bin(bin_count);
      for (std::size_t i = 0; i < s.node.size; ++i) rows_of_bin[bin[lane][i]].push_back(i);
      plain.begin_scan();
      for (std::size_t b = 0; b < bin_count; ++b) {
        const std::uint64_t before = plain.left_weight();
        for (const std::size_t i : rows_of_bin[b]) plain.move(i);
        CHECK_EQUAL(moved[b][lane], plain.left_weight() - before, Case::name, "round", round, "bin", b);
        CHECK_EQUAL(left[b][lane], plain.left_weight(), Case::name, "round", round, "bin", b);
        if (plain.left_weight() == 0 || plain.left_weight() == s.node.total_weight)
          CHECK(!(scores[b][lane] > minus_infinity), Case::name, "an empty side is no split", scores[b][lane]);
        else CHECK_EQUAL(scores[b][lane], plain.score(), Case::name, "round", round, "weight", s.node.total_weight);
      }
    }
  }
}

template <class Case>
static void check_bins(std::uint64_t seed, std::int64_t lowest) {
  Random random(seed);
  for (int round = 0; round < 40; ++round) check_bins_of<Case>(random, random_sample(random, 150, lowest), round);
}

TEST(gini_of_bins) { check_bins<GiniCase>(11, 0); }
TEST(entropy_of_bins) { check_bins<EntropyCase>(12, 0); }
TEST(squared_error_of_bins) { check_bins<SquaredCase>(13, std::numeric_limits<std::int64_t>::min()); }
TEST(poisson_of_bins) { check_bins<PoissonCase>(14, 0); }

// Around the size of a chunk, with the last total weight whose bins are narrow and the first whose bins are wide.
TEST(bins_at_the_edges_of_chunks_and_of_narrow_weights) {
  Random random(15);
  int round = 0;
  for (const std::size_t size : {255, 256, 257, 511, 513})
    for (const std::uint64_t total : {32767, 32768})
      for (const std::int64_t classes : {2, 31, 32, 33}) {
        Sample s(random, size, classes, 80, 0, 1000);
        CHECK(s.node.total_weight < total);
        s.weight[random.chance(0.5) ? 0 : size - 1] += static_cast<std::uint32_t>(total - s.node.total_weight);
        s.node.total_weight = total;
        check_bins_of<GiniCase>(random, s, round);
        check_bins_of<EntropyCase>(random, s, round);
        if (classes == 2) {
          check_bins_of<SquaredCase>(random, s, round);
          check_bins_of<PoissonCase>(random, s, round);
        }
        ++round;
      }
}

TEST(squares_at_the_border_of_32_bits) {
  for (const std::uint32_t total : {32766u, 32767u, 32768u, 46341u, 65535u, 65536u, 2147483647u}) {
    const std::uint32_t rows[] = {0, 1, 2}, count[] = {1, 1, 1}, classes[] = {0, 0, 1}, weight[] = {total - 2, 1, 1};
    const NodeRows node{rows, 3, count, weight, 3, total};
    ClassCriterion<Gini> criterion(classes, 2);
    criterion.begin_node(node);
    fill_bins(criterion, std::vector<std::vector<std::uint8_t>>(6, {0, 1, 2}), 3);
    CHECK_EQUAL(criterion.narrow(), total < 32768u, total);
    BinScan scan;
    if (criterion.narrow()) criterion.scan_bins(scan);
    criterion.begin_bin_scan();
    criterion.begin_scan();
    for (std::size_t b = 0; b < 2; ++b) {
      std::uint32_t moved[lanes];
      double scores[lanes];
      if (criterion.narrow()) {
        scores[5] = criterion.exact_score(scan, b, 5);
      } else {
        criterion.move_bin(b, moved);
        criterion.bin_scores(scores);
      }
      criterion.move(b);
      CHECK_EQUAL(scores[5], criterion.score(), total, b);
    }
  }
}

TEST(pure_nodes) {
  Random random(6);
  for (int round = 0; round < 300; ++round) {
    const Sample s = random_sample(random, 6, -1000);
    bool one_class = true, one_target = true;
    for (std::size_t i = 1; i < s.node.size; ++i) {
      one_class &= s.class_of(i) == s.class_of(0);
      one_target &= s.target(i) == s.target(0);
    }
    auto gini = GiniCase::make(s);
    auto squared = SquaredCase::make(s);
    auto absolute = AbsoluteCase::make(s);
    gini.begin_node(s.node);
    squared.begin_node(s.node);
    absolute.begin_node(s.node);
    CHECK_EQUAL(gini.pure(), one_class);
    CHECK_EQUAL(squared.pure(), one_target);
    CHECK_EQUAL(absolute.pure(), one_target);
  }
}

TEST(leaves) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    const Sample s = random_sample(random, 30, -1000);
    auto gini = GiniCase::make(s);
    auto squared = SquaredCase::make(s);
    auto absolute = AbsoluteCase::make(s);
    gini.begin_node(s.node);
    squared.begin_node(s.node);
    absolute.begin_node(s.node);

    std::vector<std::uint64_t> of_class(2000, 0);
    std::vector<std::pair<std::int64_t, std::uint64_t>> sorted;
    std::int64_t sum = 0;
    std::size_t present = 0;
    for (std::size_t i = 0; i < s.node.size; ++i) {
      present += of_class[s.class_of(i)] == 0;
      of_class[s.class_of(i)] += s.weight[i];
      sorted.emplace_back(s.target(i), s.weight[i]);
      sum += s.target(i) * s.weight[i];
    }
    CHECK_EQUAL(gini.present().size(), present);
    CHECK_EQUAL(gini.class_weights().size(), present);
    for (std::size_t c = 0; c < present; ++c) CHECK_EQUAL(gini.class_weights()[c], of_class[gini.present()[c]]);
    CHECK_EQUAL(squared.leaf_value(), static_cast<double>(sum) / static_cast<double>(s.node.total_weight));

    // The median: targets with at most half of the weight on either side; the middle of them if there are two.
    std::sort(sorted.begin(), sorted.end());
    std::int64_t low = 0, high = 0;
    std::uint64_t up_to = 0;
    bool low_found = false;
    for (const auto& [target, weight] : sorted) {
      if (2 * up_to <= s.node.total_weight) high = target;
      up_to += weight;
      if (!low_found && 2 * up_to >= s.node.total_weight) low = target, low_found = true;
    }
    CHECK_EQUAL(absolute.leaf_value(), 0.5 * static_cast<double>(low) + 0.5 * static_cast<double>(high), "round", round);
  }
}

// One criterion serves node after node; what an earlier one left behind must not show.
TEST(criteria_forget_earlier_nodes) {
  Random random(8);
  std::vector<std::uint32_t> classes(300);
  std::vector<std::int64_t> targets(300);
  for (auto& c : classes) c = static_cast<std::uint32_t>(random.index(20));
  for (auto& y : targets) y = random.between(-50, 50);
  ClassCriterion<Gini> gini(classes.data(), 20);
  SumCriterion<SquaredError> squared(targets.data(), 0);
  AbsoluteError absolute(targets.data(), 0);
  for (int round = 0; round < 100; ++round) {
    const std::size_t size = 2 + random.index(100);
    std::vector<std::uint32_t> rows(size), ones(size, 1);
    for (auto& row : rows) row = static_cast<std::uint32_t>(random.index(300));
    const NodeRows node{rows.data(), size, ones.data(), ones.data(), size, size};
    const std::size_t moves = 1 + random.index(size - 1);
    const auto score = [&](auto& criterion) {
      criterion.begin_node(node);
      criterion.begin_scan();
      for (std::size_t i = 0; i < moves; ++i) criterion.move(i);
      return criterion.score();
    };
    ClassCriterion<Gini> new_gini(classes.data(), 20);
    SumCriterion<SquaredError> new_squared(targets.data(), 0);
    AbsoluteError new_absolute(targets.data(), 0);
    CHECK_EQUAL(score(gini), score(new_gini));
    CHECK_EQUAL(score(squared), score(new_squared));
    CHECK_EQUAL(score(absolute), score(new_absolute));
    CHECK_EQUAL(absolute.leaf_value(), new_absolute.leaf_value());
    CHECK_EQUAL(gini.present(), new_gini.present());
  }
}

TEST(logarithm) {
  for (int exponent = -1000; exponent <= 1000; ++exponent) CHECK_EQUAL(portable_log2(std::ldexp(1.0, exponent)), exponent);
  const auto check_at = [](double x) {
    const double expected = std::log2(x);
    CHECK(std::abs(portable_log2(x) - expected) <= 1e-15 * std::abs(expected), x, portable_log2(x), expected);
  };
  for (int i = 1; i < 20000; ++i) check_at(i);
  Random random(9);
  for (int i = 0; i < 20000; ++i) {
    check_at(static_cast<double>(random.bits() >> random.index(63)) + 1.0);
    check_at(0.5 + random.unit());                                                         // around one
    check_at(1.0 + std::ldexp(random.unit() - 0.5, -static_cast<int>(random.index(50))));  // and close to it
  }
}

TEST(reciprocals_and_terms) {
  for (std::uint64_t w : {1ULL, 2ULL, 3ULL, 1023ULL, 1024ULL, 1025ULL, 2147483647ULL})
    CHECK_EQUAL(reciprocal(w), 1.0 / static_cast<double>(w));
  for (std::uint64_t w : {0ULL, 1ULL, 2ULL, 7ULL, 4095ULL, 4096ULL, 4097ULL, 1000003ULL, 2147483647ULL}) {
    CHECK_EQUAL(Entropy::term(w), entropy_term(w));
    const double expected = w == 0 ? 0.0 : static_cast<double>(w) * std::log2(static_cast<double>(w)) * 0x1.0p24;
    CHECK(std::abs(static_cast<double>(Entropy::term(w)) - expected) <= 0.5 + 1e-14 * expected, w);
    for (const std::uint32_t more : {0u, 1u, 5u, 100u}) {
      if (w + more > 2147483647ULL) continue;
      const auto start = static_cast<std::uint32_t>(w);
      CHECK_EQUAL(Entropy::increase(start, more), Entropy::term(w + more) - Entropy::term(w));
      CHECK_EQUAL(Gini::increase(start, more), Gini::term(w + more) - Gini::term(w));
    }
  }
}
