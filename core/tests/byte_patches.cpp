#include "projection/byte_patches.hpp"

#include <algorithm>
#include <set>

#include "atoms/sampler.hpp"
#include "check.hpp"
#include "data.hpp"
#include "projection/projector.hpp"

using namespace morf;

struct Axis {
  std::int64_t length, low, high;
  Boundary boundary = Boundary::zero;
  bool contiguous = true;
};

static Dictionary patches(const std::vector<Axis>& axes, bool direct = false) {
  std::vector<std::int64_t> shape, low, high;
  std::vector<Boundary> boundary;
  std::vector<bool> contiguous;
  for (const Axis& axis : axes) {
    shape.push_back(axis.length);
    low.push_back(axis.low);
    high.push_back(axis.high);
    boundary.push_back(axis.boundary);
    contiguous.push_back(axis.contiguous);
  }
  Dictionary dictionary(shape, direct);
  dictionary.add_patch({low, high}, boundary, contiguous);
  return dictionary;
}

TEST(narrow_patches_are_recognised) {
  const auto suits = [](const std::vector<Axis>& axes, bool direct = false) {
    return suits_byte_patches(patches(axes, direct)) || !MORFOREST_BYTE_PATCHES;
  };
  const auto unsuited = [](const std::vector<Axis>& axes, bool direct = false) {
    return !suits_byte_patches(patches(axes, direct));
  };
  CHECK(suits({{20, 1, 8}}));
  CHECK(suits({{20, 1, 4}, {20, 1, 8}}));
  CHECK(suits({{3, 1, 1}, {20, 1, 4}, {20, 2, 2, Boundary::inside}}));
  CHECK(suits({{20, 1, 1}, {20, 1, 8}}));
  CHECK(unsuited({{20, 1, 9}}), "too wide");
  CHECK(unsuited({{20, 1, 5}, {20, 1, 8}}), "too high");
  CHECK(unsuited({{20, 1, 1}}), "single features");
  CHECK(unsuited({{20, 1, 8, Boundary::wrap}}));
  CHECK(unsuited({{20, 1, 3, Boundary::wrap}, {20, 1, 8}}));
  CHECK(unsuited({{20, 1, 8, Boundary::zero, false}}));
  CHECK(unsuited({{20, 1, 3, Boundary::zero, false}, {20, 1, 8}}));
  CHECK(unsuited({{3, 1, 2}, {20, 1, 2}, {20, 1, 2}}), "three axes");
  CHECK(unsuited({{20, 1, 8}}, true), "direct");
  Dictionary axis({20}, false), two = patches({{20, 1, 8}});
  axis.add_axis();
  two.add_axis();
  CHECK(!suits_byte_patches(axis));
  CHECK(!suits_byte_patches(two));
}

TEST(a_single_number_is_no_patch_of_bytes) {
  Dictionary dictionary({}, false);
  dictionary.add_patch({{}, {}}, {}, {});
  CHECK(!suits_byte_patches(dictionary));
}

#if MORFOREST_BYTE_PATCHES

// The same samples as bytes and with prefix sums.
struct Tables {
  std::size_t rows;
  std::vector<std::uint8_t> x;
  Table bytes, plain;

  Tables(Random& random, const Dictionary& dictionary, std::size_t n)
      : rows(n), x(random_bytes(random, n * static_cast<std::size_t>(dictionary.features()))),
        bytes(make_table(x.data(), n, dictionary, CellType::bytes, Quantiser(0, 255.0))),
        plain(make_table(x.data(), n, dictionary, CellType::u16, Quantiser(0, 255.0))) {}

  static std::vector<std::uint8_t> random_bytes(Random& random, std::size_t size) {
    std::vector<std::uint8_t> x(size);
    for (auto& value : x) value = static_cast<std::uint8_t>(random.chance(0.3) ? 255 : random.bits());
    return x;
  }
};

// Holds values and ranges of `count` atoms from `first` on against those of the plain projector.
static void check_twins(Random& random, const Tables& tables, const Dictionary& dictionary, const AtomList& atoms,
                        std::size_t first, std::size_t count, std::size_t row_count, int round) {
  std::vector<std::uint32_t> rows(row_count);
  for (auto& row : rows) row = static_cast<std::uint32_t>(random.chance(0.2) ? tables.rows - 1 : random.index(tables.rows));
  const std::size_t stride = whole_blocks(row_count) + random.index(3);
  const std::uint16_t untouched = 54321;
  std::vector<std::uint16_t> values(count * stride + 1, untouched), expected(count * stride + 1, untouched);
  std::vector<Range<std::uint16_t>> ranges(count + 1, {untouched, untouched}), expected_ranges = ranges;
  const auto projection = make_byte_patch_projection(tables.bytes, dictionary);
  auto& project = *projection;
  Projector<std::uint16_t> project_plain(tables.plain);
  project(rows.data(), row_count, atoms, first, count, values.data(), stride, ranges.data());
  project_plain(rows.data(), row_count, atoms, first, count, expected.data(), stride, expected_ranges.data());
  for (std::size_t j = 0; j < count; ++j)
    for (std::size_t i = 0; i < stride; ++i) {
      if (i >= row_count && i < whole_blocks(row_count)) continue;
      CHECK_EQUAL(values[j * stride + i], i < row_count ? expected[j * stride + i] : untouched, "shape", dictionary.shape(),
                  "rows", row_count, "round", round);
    }
  CHECK_EQUAL(values.back(), untouched);
  for (std::size_t j = 0; j <= count; ++j) {
    CHECK_EQUAL(ranges[j].min, expected_ranges[j].min, "shape", dictionary.shape(), "rows", row_count, "atom", j);
    CHECK_EQUAL(ranges[j].max, expected_ranges[j].max, "shape", dictionary.shape(), "rows", row_count, "atom", j);
  }
}

TEST(sums_of_bytes_are_those_of_prefix_sums) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Axis> axes;
    const std::size_t rank = 1 + random.index(4);
    for (std::size_t axis = 0; axis < rank; ++axis) {
      const bool last = axis + 1 == rank, row = axis + 2 == rank;
      const std::int64_t length = random.between(last ? 2 : 1, last ? 30 : rank > 2 ? 5 : 12);
      const std::int64_t high = std::min<std::int64_t>(length, last ? random.between(2, 8) : row ? random.between(1, 4) : 1);
      axes.push_back({length, random.between(1, high), high, random.chance(0.5) ? Boundary::zero : Boundary::inside});
    }
    const Dictionary dictionary = patches(axes);
    CHECK(suits_byte_patches(dictionary));
    const Tables tables(random, dictionary, 1 + random.index(20));
    CHECK_EQUAL(tables.bytes.hash(), tables.plain.hash());
    CHECK(tables.bytes.suits(dictionary.layout()) && tables.plain.suits(dictionary.layout()));

    AtomList atoms;
    Sampler sampler(dictionary);
    Stream stream(round);
    sampler.draw(stream, 40, atoms);
    check_twins(random, tables, dictionary, atoms, random.index(20), 1 + random.index(20), 1 + random.index(30), round);
  }
}

// Every box that a dictionary can draw, cut off at each side or not: draws go on until all were seen.
TEST(sums_of_bytes_of_all_positions_and_sizes) {
  Random random(2);
  const std::vector<std::vector<Axis>> cases = {
      {{11, 1, 8}},
      {{8, 1, 8, Boundary::inside}},
      {{2, 1, 2}},
      {{6, 1, 4}, {10, 1, 8}},
      {{4, 1, 4}, {8, 1, 8}},
      {{4, 1, 4, Boundary::inside}, {8, 1, 8, Boundary::inside}},
      {{5, 1, 2}, {9, 1, 5, Boundary::inside}},
      {{7, 1, 3}, {2, 1, 2}},
      {{1, 1, 1}, {9, 1, 8}},
      {{3, 1, 1}, {9, 1, 4}},
      {{2, 1, 1}, {5, 1, 4}, {6, 1, 3}},
      {{3, 1, 1}, {4, 1, 1}, {5, 1, 4, Boundary::inside}},
      {{2, 1, 1}, {2, 1, 1}, {3, 1, 2}, {4, 1, 4}},
  };
  for (std::size_t round = 0; round < cases.size(); ++round) {
    const Dictionary dictionary = patches(cases[round]);
    CHECK(suits_byte_patches(dictionary));
    std::size_t possible = 1;
    for (const Axis& axis : cases[round]) {
      std::size_t intervals = 0;
      for (std::int64_t size = 1; size <= axis.high; ++size) intervals += static_cast<std::size_t>(axis.length - size + 1);
      possible *= intervals;
    }
    std::set<std::vector<std::uint32_t>> seen;
    AtomList atoms, drawn;
    Sampler sampler(dictionary);
    Stream stream(round);
    for (int draws = 0; draws < 200000 && seen.size() < possible; ++draws) {
      drawn.clear();
      sampler.draw(stream, 1, drawn);
      if (!seen.insert(drawn.cell).second) continue;
      for (std::size_t t = 0; t < drawn.cell.size(); ++t) atoms.add_term(drawn.cell[t], drawn.weight[t]);
      atoms.close_atom();
    }
    CHECK_EQUAL(seen.size(), possible, "shape", dictionary.shape());
    const Tables tables(random, dictionary, 9);
    check_twins(random, tables, dictionary, atoms, 0, atoms.size(), 17, static_cast<int>(round));
    // One at a time as well: the highest patch of a call decides how many rows of bytes are read.
    for (std::size_t j = 0; j < atoms.size(); ++j)
      check_twins(random, tables, dictionary, atoms, j, 1, 9, static_cast<int>(round));
  }
}

// Around blocks of eight rows, and with so many and so long rows that they are fetched ahead.
TEST(sums_of_bytes_at_the_edges_of_blocks) {
  Random random(3);
  for (const std::int64_t high : {1, 2, 3, 4}) {
    const Dictionary dictionary = patches({{16, 1, high}, {20, 1, 8}});
    const Tables tables(random, dictionary, 50);
    AtomList atoms;
    Sampler sampler(dictionary);
    Stream stream(high);
    sampler.draw(stream, 12, atoms);
    for (const std::size_t row_count : {1, 7, 8, 9, 15, 16, 17, 511, 512, 513, 1100})
      check_twins(random, tables, dictionary, atoms, 0, atoms.size(), row_count, static_cast<int>(high));
  }
}

// The greatest sum there is, and the least.
TEST(sums_of_bytes_of_white_and_black) {
  const Dictionary dictionary = patches({{4, 4, 4, Boundary::inside}, {8, 8, 8, Boundary::inside}});
  std::vector<std::uint8_t> x(64, 255);
  std::fill(x.begin() + 32, x.end(), 0);
  const Table table = make_table(x.data(), 2, dictionary, CellType::bytes, Quantiser(0, 255.0));
  AtomList atoms;
  Stream stream(1);
  Sampler(dictionary).draw(stream, 1, atoms);
  const auto projection = make_byte_patch_projection(table, dictionary);
  const std::uint32_t rows[] = {0, 1};
  std::uint16_t values[row_block];
  Range<std::uint16_t> range;
  (*projection)(rows, 2, atoms, 0, 1, values, row_block, &range);
  CHECK(values[0] == 32 * 255 && values[1] == 0, values[0], values[1]);
  CHECK(range.min == 0 && range.max == 32 * 255, range.min, range.max);
}

#endif
