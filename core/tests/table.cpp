#include "data/table.hpp"

#include "data/row_filler.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "check.hpp"
#include "data.hpp"

using namespace morf;

static constexpr CellType integer_types[] = {CellType::u8, CellType::u16, CellType::i16, CellType::i32, CellType::i64};

template <class Cell>
static const Cell* row_of(const Table& table, std::size_t i) {
  return reinterpret_cast<const Cell*>(table.buffer().row(i));
}

// A dictionary with views of several kinds.
static Dictionary some_views(Random& random, const std::vector<std::int64_t>& shape) {
  Dictionary dictionary(shape, false);
  if (random.chance(0.5)) dictionary.add_axis();
  for (std::size_t i = 0; i < 3; ++i) add_random_patch(random, dictionary, 60);
  return dictionary;
}

TEST(cells_are_prefix_sums_that_wrap) {
  Random random(1);
  for (int round = 0; round < 120; ++round) {
    const auto shape = random_shape(random, 1 + random.index(4));
    const Dictionary dictionary = some_views(random, shape);
    const auto of_cell = features_of_cells(dictionary.layout());
    const auto p = static_cast<std::size_t>(dictionary.features());
    CHECK_EQUAL(of_cell.size(), dictionary.layout().cells());
    for (const CellType type : integer_types) {
      with_cell_type(type, [&](auto zero) {
        using Cell = decltype(zero);
        if constexpr (std::is_integral_v<Cell>) {
          const std::size_t rows = 3;
          std::vector<std::int64_t> x(rows * p);
          for (auto& value : x)
            value = random.between(
                std::max<std::int64_t>(std::numeric_limits<Cell>::min(), -(std::int64_t{1} << 61)),
                static_cast<std::int64_t>(std::min<std::uint64_t>(std::numeric_limits<Cell>::max(), 1ULL << 61)));
          const Table table = make_table(x.data(), rows, dictionary, type, Quantiser(0, 0x1.0p61));
          for (std::size_t i = 0; i < rows; ++i)
            for (std::size_t cell = 0; cell < of_cell.size(); ++cell) {
              std::uint64_t sum = 0;
              for (const std::uint32_t feature : of_cell[cell]) sum += static_cast<std::uint64_t>(x[i * p + feature]);
              CHECK_EQUAL(row_of<Cell>(table, i)[cell], static_cast<Cell>(sum), "shape", shape, "cell", cell);
            }
        }
      });
    }
  }
}

// The sum over a box that fits the cell's type comes out exact although the prefix sums around it overflowed.
TEST(differences_of_wrapped_sums_are_exact) {
  Random random(2);
  for (std::size_t rank = 1; rank <= 4; ++rank)
    for (int round = 0; round < 10; ++round) {
      static constexpr std::int64_t length[] = {0, 40, 9, 5, 4};
      const std::vector<std::int64_t> shape(rank, length[rank]);
      Dictionary dictionary(shape, false);
      dictionary.add_patch({std::vector<std::int64_t>(rank, 1), shape}, std::vector<Boundary>(rank, Boundary::inside),
                           std::vector<bool>(rank, true));
      const auto p = static_cast<std::size_t>(dictionary.features());
      for (const CellType type : integer_types)
        with_cell_type(type, [&](auto zero) {
          using Cell = decltype(zero);
          if constexpr (std::is_integral_v<Cell>) {
            using Sum = std::make_unsigned_t<Cell>;
            const auto largest = static_cast<std::int64_t>(std::numeric_limits<Cell>::max());
            std::vector<std::int64_t> x(p);
            for (auto& value : x) value = random.between(std::is_signed_v<Cell> ? -largest / 8 : 0, largest / 8);
            const Table table = make_table(x.data(), 1, dictionary, type, Quantiser(0, 0x1.0p61));
            const Cell* cells = row_of<Cell>(table, 0);
            for (int box = 0; box < 40; ++box) {
              std::vector<std::int64_t> begin(rank), end(rank);
              for (std::size_t axis = 0; axis < rank; ++axis) {
                begin[axis] = random.between(0, shape[axis] - 1);
                end[axis] = std::min(begin[axis] + random.between(1, 3), shape[axis]);
              }
              double exact = 0.0;
              std::uint64_t naive = 0;
              for (std::size_t feature = 0; feature < p; ++feature) {
                std::int64_t rest = static_cast<std::int64_t>(feature);
                bool inside = true;
                for (std::size_t axis = rank; axis-- > 0; rest /= shape[axis])
                  inside &= rest % shape[axis] >= begin[axis] && rest % shape[axis] < end[axis];
                if (!inside) continue;
                exact += static_cast<double>(x[feature]);
                naive += static_cast<std::uint64_t>(x[feature]);
              }
              if (std::abs(exact) > 0.99 * static_cast<double>(largest)) continue;
              Sum sum = 0;
              for (std::uint32_t corner = 0; corner < 1u << rank; ++corner) {
                std::int64_t at = 0;
                bool outside = false, minus = false;
                for (std::size_t axis = 0; axis < rank; ++axis) {
                  const bool low = corner >> axis & 1u;
                  const std::int64_t index = (low ? begin[axis] : end[axis]) - 1;
                  outside |= index < 0;
                  minus ^= low;
                  at = at * shape[axis] + index;
                }
                if (outside) continue;
                const Sum cell = static_cast<Sum>(cells[at]);
                sum = static_cast<Sum>(minus ? sum - cell : sum + cell);
              }
              CHECK_EQUAL(static_cast<std::int64_t>(static_cast<Cell>(sum)), static_cast<std::int64_t>(naive), "rank", rank,
                          "bytes", sizeof(Cell));
            }
          }
        });
    }
}

TEST(quantiser_rounds_half_to_even) {
  const Quantiser units(0, 0x1.0p61), quarters(2, 0x1.0p61), dozens(-3, 0x1.0p61);
  const std::pair<double, std::int64_t> cases[] = {{0.5, 0},   {1.5, 2},  {2.5, 2},  {3.5, 4},    {-0.5, 0},     {-1.5, -2},
                                                   {-2.5, -2}, {0.75, 1}, {0.25, 0}, {-0.75, -1}, {1e6, 1000000}};
  for (const auto& [x, q] : cases) {
    CHECK_EQUAL(units.integer(x), q, x);
    CHECK_EQUAL(units.integer(static_cast<float>(x)), q, x);
    CHECK_EQUAL(quarters.integer(x / 4), q, x);
    CHECK_EQUAL(dozens.integer(x * 8), q, x);
  }
  CHECK_EQUAL(units.integer(0.49999999999999994), 0);
  CHECK_EQUAL(units.integer(4503599627370497.5), 4503599627370498);
  CHECK_EQUAL(quarters.integer(std::uint8_t{255}), 1020);
  CHECK_EQUAL(quarters.integer(std::int64_t{-7}), -28);
  CHECK_EQUAL(dozens.integer(std::int64_t{12}), 2);
  CHECK_EQUAL(dozens.integer(std::uint8_t{20}), 2);
  CHECK_EQUAL(dozens.integer(std::uint8_t{28}), 4);
}

// Prediction leaves out the hash and rounds small numbers in another way.
TEST(rows_without_a_hash_have_the_same_cells) {
  Random random(11);
  const RowLayout layout({5, 9}, {Plane{.prefixed_axes = 3}, Plane{}});
  std::vector<double> x(45);
  for (const int shift : {0, 3, -4, 17}) {
    const Quantiser quantiser(shift, 0x1.0p61);
    RowFiller<std::int32_t> filler(layout, quantiser);
    for (int round = 0; round < 200; ++round) {
      const double size = std::ldexp(round % 2 ? 1.0 : 0x1.0p20, -shift);
      for (auto& value : x) {
        value = static_cast<double>(random.between(-1000, 1000)) * size;
        if (random.chance(0.5)) value += static_cast<double>(random.between(-8, 8)) / 8.0 * std::ldexp(1.0, -shift);  // ties
      }
      const std::vector<float> y(x.begin(), x.end());
      std::vector<std::int32_t> hashed(layout.cells()), plain(layout.cells());
      filler.fill_and_hash({x.data(), 1, 45}, 0, hashed.data());
      filler.fill({x.data(), 1, 45}, 0, plain.data());
      CHECK_EQUAL(hashed, plain);
      filler.fill_and_hash({y.data(), 1, 45}, 0, hashed.data());
      filler.fill({y.data(), 1, 45}, 0, plain.data());
      CHECK_EQUAL(hashed, plain);
      std::vector<std::uint8_t> bytes(45);
      for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random.between(0, 255));
      filler.fill_and_hash({bytes.data(), 1, 45}, 0, hashed.data());
      filler.fill({bytes.data(), 1, 45}, 0, plain.data());
      CHECK_EQUAL(hashed, plain);
    }
  }
}

TEST(quantiser_clamps) {
  for (const double limit : {0x1.0p61, 0x1.0p40, 1000.0})
    for (const int shift : {0, 5, -5, 900, -900}) {
      const Quantiser quantiser(shift, limit);
      const auto bound = static_cast<std::int64_t>(limit);
      constexpr double largest = std::numeric_limits<double>::max();
      for (const double x : {1e300, largest, std::numeric_limits<double>::infinity()}) {
        CHECK_EQUAL(quantiser.integer(x), shift == -900 && x == 1e300 ? quantiser.integer(1e300) : bound, x, shift);
        CHECK_EQUAL(quantiser.integer(-x), -quantiser.integer(x), x, shift);
      }
      for (const std::int64_t x : {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
        const std::int64_t q = quantiser.integer(x);
        CHECK(q >= -bound && q <= bound, x, shift);
        if (shift >= 0) CHECK_EQUAL(q, x < 0 ? -bound : bound, x, shift);
      }
      if (shift >= 0) CHECK_EQUAL(quantiser.integer(std::numeric_limits<float>::max()), bound);
    }
  const Quantiser small(0, 100.0);
  CHECK_EQUAL(small.integer(std::int64_t{101}), 100);
  CHECK_EQUAL(small.integer(std::int64_t{-101}), -100);
  CHECK_EQUAL(small.integer(std::int64_t{100}), 100);
  CHECK_EQUAL(small.integer(100.4), 100);
  CHECK_EQUAL(small.integer(99.5), 100);
}

TEST(integers_beyond_the_mantissa_are_exact) {
  const Quantiser quantiser(0, 0x1.0p61);
  for (const std::int64_t x : {(std::int64_t{1} << 60) + 1, -(std::int64_t{1} << 60) - 1, (std::int64_t{1} << 53) + 1})
    CHECK_EQUAL(quantiser.integer(x), x);
}

TEST(real_cells_have_no_negative_zero) {
  const Quantiser quantiser(3, 0x1.0p61);
  CHECK(!std::signbit(quantiser.real(-0.0)));
  CHECK(!std::signbit(quantiser.real(-0.0f)));
  CHECK_EQUAL(quantiser.real(-1.25), -10.0);
  CHECK_EQUAL(quantiser.real(std::uint8_t{3}), 24.0);
  CHECK_EQUAL(quantiser.real(0.1), 0.1 * 8);
}

template <class In>
static std::vector<std::uint64_t> hashes(const std::vector<std::int64_t>& values, const Dictionary& dictionary, CellType type,
                                         int shift = 0) {
  std::vector<In> x(values.begin(), values.end());
  return make_table(x.data(), x.size() / dictionary.features(), dictionary, type, Quantiser(shift, 0x1.0p61)).hash();
}

TEST(hash_depends_on_values_and_not_on_their_types) {
  Random random(4);
  for (const std::int64_t p : {1, 3, 4, 5, 30}) {
    Dictionary axis({p}, true), patches({p}, false);
    axis.add_axis();
    patches.add_patch({{1}, {p}}, {Boundary::zero}, {true});
    std::vector<std::int64_t> values(20 * p);
    for (auto& value : values) value = random.between(0, 255);
    for (const int shift : {0, 2}) {
      const auto expected = hashes<std::int64_t>(values, axis, CellType::i32, shift);
      for (const CellType type : {CellType::u16, CellType::i16, CellType::i32, CellType::i64}) {
        CHECK_EQUAL(hashes<std::uint8_t>(values, patches, type, shift), expected);
        CHECK_EQUAL(hashes<std::int64_t>(values, patches, type, shift), expected);
        CHECK_EQUAL(hashes<float>(values, patches, type, shift), expected);
        CHECK_EQUAL(hashes<double>(values, patches, type, shift), expected);
      }
      const auto real = hashes<double>(values, axis, CellType::f64, shift);
      CHECK_EQUAL(hashes<std::uint8_t>(values, axis, CellType::f64, shift), real);
      CHECK_EQUAL(hashes<std::int64_t>(values, axis, CellType::f64, shift), real);
      CHECK_EQUAL(hashes<float>(values, axis, CellType::f64, shift), real);
    }
  }
}

TEST(hash_tells_rows_apart) {
  Dictionary dictionary({6}, true);
  dictionary.add_axis();
  std::vector<std::int64_t> values;
  std::set<std::vector<std::int64_t>> distinct;
  for (std::int64_t i = 0; i < 4096; ++i) {  // all rows of six digits 0..3, and so all orders of each
    for (int j = 0; j < 6; ++j) values.push_back(i >> 2 * j & 3);
  }
  for (const CellType type : {CellType::u8, CellType::f64}) {
    const auto hash = hashes<std::int64_t>(values, dictionary, type);
    CHECK_EQUAL(std::set<std::uint64_t>(hash.begin(), hash.end()).size(), 4096u);
  }
  const std::vector<double> zeros{0.0, -0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -0.0};
  for (const CellType type : {CellType::i32, CellType::f64}) {
    const Table table = make_table(zeros.data(), 2, dictionary, type, Quantiser(0, 1.0));
    CHECK_EQUAL(table.hash()[0], table.hash()[1], "-0.0 is 0.0");
  }
}

TEST(last_cell_is_zero) {
  Random random(5);
  for (const CellType type : {CellType::u8, CellType::u16, CellType::i16, CellType::i32, CellType::i64, CellType::f64}) {
    Dictionary dictionary({3, 5}, type == CellType::f64);
    dictionary.add_patch({{1, 1}, {3, 5}}, {Boundary::wrap, Boundary::zero}, {true, true});
    std::vector<double> x(15 * 10);
    for (auto& value : x) value = static_cast<double>(random.between(1, 200));
    const Table table = make_table(x.data(), 10, dictionary, type, Quantiser(0, 0x1.0p61));
    CHECK_EQUAL(table.cells(), 16u);
    CHECK_EQUAL(table.rows(), 10u);
    with_cell_type(type, [&](auto zero) {
      using Cell = decltype(zero);
      for (std::size_t i = 0; i < 10; ++i) {
        CHECK_EQUAL(row_of<Cell>(table, i)[dictionary.layout().zero_cell()], Cell{0});
        CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(table.buffer().row(i)) % 64, 0u);
      }
    });
  }
}

TEST(float_tables_hold_values_as_they_are) {
  Random random(6);
  Dictionary dictionary({2, 3}, true);
  dictionary.add_axis();
  std::vector<double> x(60);
  for (auto& value : x) value = random.unit() - 0.5;
  const Table table = make_table(x.data(), 10, dictionary, CellType::f64, Quantiser(-4, 0x1.0p61));
  for (std::size_t i = 0; i < 10; ++i)
    for (std::size_t j = 0; j < 6; ++j) CHECK_EQUAL(row_of<double>(table, i)[j], x[6 * i + j] / 16.0);
}

TEST(rows_may_be_filled_in_parts) {
  Random random(7);
  Dictionary dictionary({3, 4}, false);
  dictionary.add_patch({{1, 1}, {3, 4}}, {Boundary::zero, Boundary::zero}, {true, true});
  std::vector<double> x(12 * 10);
  for (auto& value : x) value = static_cast<double>(random.between(0, 99));
  const Quantiser quantiser(0, 0x1.0p61);
  const Table whole = make_table(x.data(), 10, dictionary, CellType::i32, quantiser);
  Table parts(10, dictionary.layout(), CellType::i32);
  for (const auto& [first, count] : {std::pair{7, 3}, {0, 4}, {4, 3}})
    parts.fill({x.data() + 12 * first, static_cast<std::size_t>(count), 12}, static_cast<std::size_t>(first), quantiser);
  CHECK_EQUAL(parts.hash(), whole.hash());
  for (std::size_t i = 0; i < 10; ++i)
    for (std::size_t cell = 0; cell < whole.cells(); ++cell)
      CHECK_EQUAL(row_of<std::int32_t>(parts, i)[cell], row_of<std::int32_t>(whole, i)[cell], "row", i, "cell", cell);
}

TEST(impossible_tables_are_refused) {
  const double x[4] = {};
  Dictionary dictionary({4}, false);
  dictionary.add_patch({{1}, {2}}, {Boundary::zero}, {true});
  CHECK_THROWS(std::invalid_argument, make_table(x, 1, dictionary, CellType::f64, Quantiser(0, 1.0)));
  CHECK_EQUAL(make_table(x, 0, dictionary, CellType::u8, Quantiser(0, 1.0)).rows(), 0u);
  using Shape = std::vector<std::int64_t>;
  for (const Shape& shape : {Shape{0}, Shape{-4}, Shape{4, 0}, Shape{1 << 15, 1 << 15}, Shape{8, std::int64_t{1} << 62}})
    CHECK_THROWS(std::invalid_argument, RowLayout(shape, {Plane{}}), "shape", shape);
  CHECK_THROWS(std::invalid_argument, RowLayout({4}, {}));
  CHECK_THROWS(std::invalid_argument, RowLayout({1 << 29}, std::vector<Plane>(4)));
  const Plane pooled{.pooled = true}, beyond{.prefixed_axes = 2}, round{.circular_axes = 1};
  RowLayout({4}, {Plane{}, pooled});
  CHECK_THROWS(std::invalid_argument, RowLayout({4}, {pooled, Plane{}}), "pooled planes come last");
  CHECK_THROWS(std::invalid_argument, RowLayout({4}, {beyond}), "no such axis");
  CHECK_THROWS(std::invalid_argument, RowLayout({4}, {round}), "plain planes are not circular");
  CHECK_THROWS(std::bad_alloc, RowBuffer(std::size_t{1} << 40, std::size_t{1} << 30));
}

// Sets of axes are masks of 32 bits.
TEST(more_axes_than_a_mask_has_bits_are_refused) {
  CHECK_EQUAL(RowLayout(std::vector<std::int64_t>(32, 1), {Plane{}}).cells(), 2u);
  CHECK_THROWS(std::invalid_argument, RowLayout(std::vector<std::int64_t>(33, 1), {Plane{}}));
}

TEST(large_buffers_are_aligned_to_huge_pages) {
  const RowBuffer large(600000, 60), small(3, 65);
  CHECK_EQUAL(large.stride(), 64u);
  CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(large.row(0)) % (1u << 21), 0u);
  *large.row(599999) = std::byte{1};
  CHECK_EQUAL(small.stride(), 128u);
  CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(small.row(0)) % 64, 0u);
}

TEST(hashes_of_samples_depend_on_values_alone) {
  const std::uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 1, 2, 3};
  const std::int64_t whole[] = {1, 2, 3, 4, 5, 6, 1, 2, 3};
  const float floats[] = {1, 2, 3, 4, 5, 6, 1, 2, 3};
  const double doubles[] = {1, 2, 3, 4, 5, 6.5, 1, 2, 3};
  const auto hash = hash_rows({bytes, 3, 3});
  CHECK_EQUAL(hash[0], hash[2]);
  CHECK(hash[0] != hash[1]);
  CHECK_EQUAL(hash_rows({whole, 3, 3}), hash);
  CHECK_EQUAL(hash_rows({floats, 3, 3}), hash);
  const auto other = hash_rows({doubles, 3, 3});
  CHECK(other[0] == hash[0] && other[1] != hash[1]);
}
