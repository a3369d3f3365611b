#include "projection/projector.hpp"

#include <algorithm>
#include <cmath>

#include "atoms/sampler.hpp"
#include "check.hpp"
#include "data.hpp"

using namespace morf;

// Atoms of one kernel each, and some that it must tell apart from them.
enum class Kind { single, difference, corners, general, mixed, empty };

static AtomList make_atoms(Random& random, Kind kind, std::size_t n, std::uint32_t cells) {
  AtomList atoms;
  const auto cell = [&] { return static_cast<std::uint32_t>(random.index(cells)); };
  for (std::size_t i = 0; i < n; ++i) {
    const Kind now = kind == Kind::mixed ? static_cast<Kind>(random.index(3)) : kind;
    if (now == Kind::single || now == Kind::difference) atoms.add_term(cell(), 1.0);
    if (now == Kind::difference) atoms.add_term(cell(), -1.0);
    if (now == Kind::corners) {
      std::vector<double> weights{1.0, 1.0, -1.0, -1.0};
      random.shuffle(weights);
      for (const double weight : weights)
        if (random.chance(0.9)) atoms.add_term(cell(), weight);
    }
    if (now == Kind::general) {
      const std::size_t terms = random.index(7);
      for (std::size_t t = 0; t < terms; ++t) atoms.add_term(cell(), static_cast<double>(random.between(-3, 3)));
      if (i == 0) atoms.add_term(cell(), 2.0);
    }
    atoms.close_atom();
  }
  return atoms;
}

// Sums of cells modulo the cell's type, which is what the engine's values are wherever they fit it.
template <class Cell>
static ValueOf<Cell> naive(const Cell* row, const AtomList& atoms, std::size_t i) {
  if constexpr (std::is_floating_point_v<Cell>) {
    double sum = 0.0;
    for (std::size_t t = atoms.begin[i]; t < atoms.begin[i + 1]; ++t) sum += atoms.weight[t] * row[atoms.cell[t]];
    return sum;
  } else {
    std::uint64_t sum = 0;
    for (std::size_t t = atoms.begin[i]; t < atoms.begin[i + 1]; ++t)
      sum += static_cast<std::uint64_t>(static_cast<std::int64_t>(atoms.weight[t])) *
             static_cast<std::uint64_t>(row[atoms.cell[t]]);
    return static_cast<Cell>(sum);
  }
}

template <class Cell>
static std::vector<double> random_cells(Random& random, std::size_t n) {
  std::vector<double> x(n);
  for (auto& value : x) {
    if constexpr (std::is_floating_point_v<Cell>) value = random.unit() - 0.5;
    else if constexpr (sizeof(Cell) == 8)
      value = static_cast<double>(random.between(-(std::int64_t{1} << 61), std::int64_t{1} << 61));
    else value = static_cast<double>(random.between(std::numeric_limits<Cell>::min(), std::numeric_limits<Cell>::max()));
  }
  return x;
}

// Values and ranges of `count` atoms from `first` on.
template <class Cell>
static void check_projection(Random& random, const Table& table, const AtomList& atoms, std::size_t first, std::size_t count,
                             const std::vector<std::uint32_t>& rows, int kind) {
  Projector<Cell> project(table);
  using Value = ValueOf<Cell>;
  const std::size_t stride = whole_blocks(rows.size()) + random.index(4);
  const Value untouched = static_cast<Value>(77);
  std::vector<Value> values(count * stride + 1, untouched);
  std::vector<Range<Value>> ranges(count + 1, {untouched, untouched});
  project(rows.data(), rows.size(), atoms, first, count, values.data(), stride, ranges.data());
  for (std::size_t j = 0; j < count; ++j) {
    for (std::size_t i = 0; i < stride; ++i) {
      if (i >= rows.size() && i < whole_blocks(rows.size())) continue;
      const Value expected = i < rows.size() ? naive(reinterpret_cast<const Cell*>(table.buffer().row(rows[i])), atoms, first + j)
                                             : untouched;
      CHECK_EQUAL(values[j * stride + i], expected, "kind", kind, "rows", rows.size(), "row", i, "atom", j);
    }
    if (rows.empty()) continue;
    const Value* v = values.data() + j * stride;
    CHECK_EQUAL(ranges[j].min, *std::min_element(v, v + rows.size()), "kind", kind, "rows", rows.size(), "atom", j);
    CHECK_EQUAL(ranges[j].max, *std::max_element(v, v + rows.size()), "kind", kind, "rows", rows.size(), "atom", j);
  }
  CHECK_EQUAL(values.back(), untouched);
  CHECK(ranges.back().min == untouched && ranges.back().max == untouched);
}

template <class Cell>
static void check_some_atoms(Random& random, const Table& table, const AtomList& atoms, const std::vector<std::uint32_t>& rows,
                             int kind) {
  const std::size_t first = random.index(atoms.size());
  check_projection<Cell>(random, table, atoms, first, random.index(atoms.size() - first) + 1, rows, kind);
}

TEST(every_kernel_sums_cells) {
  Random random(1);
  for (const CellType type : {CellType::u8, CellType::u16, CellType::i16, CellType::i32, CellType::i64, CellType::f64})
    with_cell_type(type, [&](auto zero) {
      using Cell = decltype(zero);
      Dictionary dictionary({4, 5}, std::is_floating_point_v<Cell>);
      dictionary.add_axis();
      dictionary.add_patch({{1, 1}, {4, 5}}, {Boundary::wrap, Boundary::zero}, {true, true});
      const std::size_t n = 50;
      const auto x = random_cells<Cell>(random, n * 20);
      const Table table = make_table(x.data(), n, dictionary, type, Quantiser(0, 0x1.0p61));
      for (int kind = 0; kind <= static_cast<int>(Kind::empty); ++kind)
        for (std::size_t row_count = 0; row_count <= 26; ++row_count) {
          std::vector<std::uint32_t> rows(row_count);
          for (auto& row : rows) row = static_cast<std::uint32_t>(random.index(n));
          const AtomList atoms = make_atoms(random, static_cast<Kind>(kind), 1 + random.index(9),
                                            static_cast<std::uint32_t>(table.cells()));
          check_some_atoms<Cell>(random, table, atoms, rows, kind);
        }
    });
}

TEST(rows_of_large_tables_are_prefetched_within_bounds) {
  Random random(2);
  Dictionary dictionary({3}, false);
  dictionary.add_axis();
  const std::size_t n = 20000;  // more than a megabyte
  std::vector<std::uint8_t> x(n * 3);
  for (auto& value : x) value = static_cast<std::uint8_t>(random.bits());
  const Table table = make_table(x.data(), n, dictionary, CellType::u8, Quantiser(0, 0x1.0p61));
  for (std::size_t row_count : {7, 8, 9, 16, 23, 1000, 40000}) {  // the last one takes more than the nearest caches
    std::vector<std::uint32_t> rows(row_count);
    for (auto& row : rows) row = static_cast<std::uint32_t>(random.chance(0.1) ? n - 1 : random.index(n));
    check_some_atoms<std::uint8_t>(random, table, make_atoms(random, Kind::mixed, 5, 4), rows, 0);
  }
}

// Around blocks of eight rows and chunks of 512, with so many atoms and so long rows that rows are fetched ahead.
TEST(every_kernel_at_the_edges_of_blocks_and_chunks) {
  Random random(4);
  for (const CellType type : {CellType::u8, CellType::u16, CellType::i16, CellType::i32, CellType::i64, CellType::f64})
    with_cell_type(type, [&](auto zero) {
      using Cell = decltype(zero);
      Dictionary dictionary({300}, std::is_floating_point_v<Cell>);
      dictionary.add_axis();
      const std::size_t n = 200, atom_count = 300 * sizeof(Cell) / 64 + 2;
      const auto x = random_cells<Cell>(random, n * 300);
      const Table table = make_table(x.data(), n, dictionary, type, Quantiser(0, 0x1.0p61));
      for (const std::size_t row_count : {1, 7, 8, 9, 511, 512, 513, 1100}) {
        std::vector<std::uint32_t> rows(row_count);
        for (auto& row : rows) row = static_cast<std::uint32_t>(random.index(n));
        for (int kind = 0; kind <= static_cast<int>(Kind::general); ++kind)
          check_projection<Cell>(
              random, table, make_atoms(random, static_cast<Kind>(kind), atom_count, static_cast<std::uint32_t>(table.cells())),
              0, atom_count, rows, kind);
      }
    });
}

// The lowest and the highest value are found wherever they stand.
TEST(ranges_of_one_far_row) {
  Dictionary dictionary({1}, false);
  dictionary.add_axis();
  const std::int64_t x[] = {0, -1000000, 1000000};
  const Table table = make_table(x, 3, dictionary, CellType::i32, Quantiser(0, 0x1.0p61));
  AtomList atoms;
  atoms.add_term(0, 1.0);
  atoms.close_atom();
  Projector<std::int32_t> project(table);
  for (const std::size_t row_count : {2, 8, 9, 512, 513, 1030})
    for (std::size_t low = 0; low < row_count; low += 1 + row_count / 50)
      for (const std::size_t high : {std::size_t{0}, row_count / 2, row_count - 1}) {
        if (low == high) continue;
        std::vector<std::uint32_t> rows(row_count, 0);
        rows[low] = 1;
        rows[high] = 2;
        std::vector<std::int32_t> values(whole_blocks(row_count));
        Range<std::int32_t> range{7, 7};
        project(rows.data(), row_count, atoms, 0, 1, values.data(), values.size(), &range);
        CHECK(range.min == -1000000 && range.max == 1000000, "rows", row_count, "at", low, high);
      }
}

TEST(sampled_atoms_sum_features) {
  Random random(3);
  const std::uint64_t certain = ~std::uint64_t{0};
  for (int round = 0; round < 60; ++round) {
    const auto shape = random_shape(random, 1 + random.index(4));
    for (const CellType type : {CellType::u8, CellType::u16, CellType::i16, CellType::i32, CellType::i64, CellType::f64})
      with_cell_type(type, [&](auto zero) {
        using Cell = decltype(zero);
        Dictionary dictionary(shape, std::is_floating_point_v<Cell>);
        dictionary.add_axis();
        add_random_patch(random, dictionary, 4);
        add_random_patch(random, dictionary, 4);
        if (std::is_signed_v<Cell>) dictionary.add_sparse({certain});
        std::vector<std::uint64_t> cumulative;
        for (std::uint64_t c = 1; c < dictionary.components().size(); ++c) cumulative.push_back(certain / 5 * c);
        cumulative.push_back(certain);
        dictionary.set_cumulative(cumulative);

        AtomList atoms;
        Sampler sampler(dictionary);
        Stream stream(round);
        for (int i = 0; i < 30; ++i) sampler.draw(stream, 1, atoms);
        const auto p = static_cast<std::size_t>(dictionary.features());
        const auto of_cell = features_of_cells(dictionary.layout());
        std::vector<std::vector<double>> weights;
        double mass = 1.0;
        for (std::size_t i = 0; i < atoms.size(); ++i) {
          weights.push_back(weights_on_features(atoms, i, of_cell, p));
          double sum = 0.0;
          for (const double weight : weights.back()) sum += std::abs(weight);
          mass = std::max(mass, sum);
        }
        double largest = 1e6;  // the greatest values whose sums fit
        if constexpr (std::is_integral_v<Cell>)
          largest = std::floor(std::min(static_cast<double>(std::numeric_limits<Cell>::max()), 0x1.0p52) / mass);
        const std::size_t n = 11;
        std::vector<double> x(n * p);
        for (auto& value : x)
          value = static_cast<double>(random.between(std::is_signed_v<Cell> ? -static_cast<std::int64_t>(largest) : 0,
                                                     static_cast<std::int64_t>(largest)));
        const Table table = make_table(x.data(), n, dictionary, type, Quantiser(0, 0x1.0p61));
        std::vector<std::uint32_t> rows(n);
        for (std::uint32_t i = 0; i < n; ++i) rows[i] = i;
        const std::size_t stride = whole_blocks(n);
        std::vector<ValueOf<Cell>> values(stride * atoms.size());
        std::vector<Range<ValueOf<Cell>>> ranges(atoms.size());
        Projector<Cell> project(table);
        project(rows.data(), n, atoms, 0, atoms.size(), values.data(), stride, ranges.data());
        for (std::size_t j = 0; j < atoms.size(); ++j)
          for (std::size_t i = 0; i < n; ++i) {
            double sum = 0.0;  // of integers below 2^53: exact
            for (std::size_t f = 0; f < p; ++f) sum += weights[j][f] * x[i * p + f];
            CHECK_EQUAL(static_cast<double>(values[j * stride + i]), sum, "shape", shape, "bytes", sizeof(Cell), "atom", j);
          }
      });
  }
}

TEST(slots_hold_two_cells_of_each_sign) {
  Slots slots;
  const std::uint32_t cell[] = {5, 6, 7, 8, 9};
  const double corners[] = {-1.0, 1.0, 1.0, -1.0, 1.0}, other[] = {1.0, 2.0};
  CHECK(to_slots(cell, corners, 0, 99, slots));
  CHECK(slots.plus[0] == 99 && slots.plus[1] == 99 && slots.minus[0] == 99 && slots.minus[1] == 99);
  CHECK(to_slots(cell, corners, 4, 99, slots));
  CHECK(slots.plus[0] == 6 && slots.plus[1] == 7 && slots.minus[0] == 5 && slots.minus[1] == 8);
  CHECK(!to_slots(cell, corners, 5, 99, slots), "three of one sign");
  CHECK(!to_slots(cell, other, 2, 99, slots), "another weight");
  CHECK(to_slots(cell, other, 1, 99, slots));
  CHECK(slots.plus[0] == 5 && slots.plus[1] == 99);
}
