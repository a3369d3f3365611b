#include "bytes.hpp"

#include <algorithm>

#include "check.hpp"
#include "data.hpp"

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
  dictionary.add_patch(low, high, boundary, contiguous);
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
  dictionary.add_patch({}, {}, {}, {});
  CHECK(!suits_byte_patches(dictionary));
}

#if MORFOREST_BYTE_PATCHES

TEST(sums_of_bytes_are_those_of_prefix_sums) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Axis> axes;
    const std::size_t rank = 1 + random.index(4);
    for (std::size_t axis = 0; axis < rank; ++axis) {
      const bool last = axis + 1 == rank, row = axis + 2 == rank;
      const std::int64_t length = random.between(last ? 2 : 1, last ? 30 : rank > 2 ? 5 : 12);
      const std::int64_t high = std::min<std::int64_t>(length, last  ? random.between(2, 8)
                                                               : row ? random.between(1, 4)
                                                                     : 1);
      axes.push_back({length, random.between(1, high), high, random.chance(0.5) ? Boundary::zero : Boundary::inside});
    }
    const Dictionary dictionary = patches(axes);
    CHECK(suits_byte_patches(dictionary));
    const auto p = static_cast<std::size_t>(dictionary.features());
    const std::size_t n = 1 + random.index(20);
    std::vector<std::uint8_t> x(n * p);
    for (auto& value : x) value = static_cast<std::uint8_t>(random.chance(0.3) ? 255 : random.bits());
    const Table bytes(x.data(), n, dictionary, CellType::bytes, Quantiser(0, 255.0));
    const Table plain(x.data(), n, dictionary, CellType::u16, Quantiser(0, 255.0));
    CHECK_EQUAL(bytes.hash(), plain.hash());
    CHECK(bytes.suits(dictionary) && plain.suits(dictionary));

    AtomList atoms;
    Sampler sampler(dictionary);
    Stream stream(round);
    for (int i = 0; i < 40; ++i) sampler.draw(stream, atoms);
    std::vector<std::uint32_t> rows(1 + random.index(30));
    for (auto& row : rows) row = static_cast<std::uint32_t>(random.chance(0.2) ? n - 1 : random.index(n));
    const std::size_t first = random.index(20), count = 1 + random.index(20), stride = rows.size() + random.index(3);
    std::vector<std::int32_t> values(count * stride, -1), expected(count * stride, -1);
    BytePatchProjector project(bytes, dictionary);
    Projector<std::uint16_t> project_plain(plain);
    project(rows.data(), rows.size(), atoms, first, count, values.data(), stride);
    project_plain(rows.data(), rows.size(), atoms, first, count, expected.data(), stride);
    CHECK_EQUAL(values, expected, "shape", dictionary.shape(), "round", round);
  }
}

#endif
