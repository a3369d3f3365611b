#include "growth/subset.hpp"

#include <algorithm>
#include <numeric>

#include "check.hpp"
#include "data.hpp"
#include "forest/forest.hpp"
#include "growth/grow.hpp"
#include "projection/with_projection.hpp"

using namespace morf;

static const Poll silent = [](std::size_t) {};

// Patches, or sums of signed features: f64 tables have no prefix sums, and values of u16 ones are not negative.
static Dictionary make_dictionary(Random& random, CellType type, std::size_t subset) {
  Dictionary dictionary({random.between(2, 12), random.between(2, 12)}, type == CellType::f64);
  if (type == CellType::u16 || (type != CellType::f64 && random.chance(0.5))) add_random_patch(random, dictionary, 6);
  else dictionary.add_sparse({std::uint64_t{1} << 62, std::uint64_t{1} << 63, ~std::uint64_t{0}});
  dictionary.set_subset(subset);
  return dictionary;
}

static std::vector<double> make_samples(Random& random, const Dictionary& dictionary, std::size_t rows, CellType type,
                                        std::int64_t largest) {
  std::vector<double> x(rows * static_cast<std::size_t>(dictionary.features()));
  for (double& value : x) {
    value = static_cast<double>(random.between(type == CellType::u16 ? 0 : -largest, largest));
    if (type == CellType::f64) value += random.unit();
  }
  return x;
}

static constexpr CellType types[] = {CellType::u16, CellType::i16, CellType::i32, CellType::i64, CellType::f64};
static const Quantiser quantiser(0, 0x1.0p61);

TEST(tiles_hold_the_cells_of_rows) {
  Random random(1);
  for (const CellType type : types) {
    const Dictionary dictionary = make_dictionary(random, type, 5);
    const std::size_t rows = 1 + random.index(70), p = static_cast<std::size_t>(dictionary.features());
    const auto x = make_samples(random, dictionary, rows, type, 100);
    const Table whole = make_table(x.data(), rows, dictionary, type, quantiser);
    Table tiled(rows, dictionary.layout(), type, Arrangement::tiles);
    for (std::size_t first = 0; first < rows;) {  // in pieces that end anywhere
      const std::size_t count = std::min(rows - first, 1 + random.index(30));
      tiled.fill({x.data() + first * p, count, p}, first, quantiser);
      first += count;
    }
    CHECK(tiled.hash() == whole.hash());
    with_cell_type(type, [&](auto cell) {
      using Cell = decltype(cell);
      const RowBuffer one(2, whole.cells() * sizeof(Cell));
      for (std::size_t row = 0; row < rows; ++row) {
        tiled.read_tile<Cell>(row, 1, one, 1);
        const Cell* expected = reinterpret_cast<const Cell*>(whole.buffer().row(row));
        CHECK(std::equal(expected, expected + whole.cells(), reinterpret_cast<const Cell*>(one.row(1))), "row", row);
      }
    });
  }
}

TEST(bytes_and_tiles_do_not_mix) {
  Dictionary dictionary({4, 4}, false);
  dictionary.add_patch({{1, 1}, {2, 2}}, {Boundary::zero, Boundary::zero}, {true, true});
  dictionary.set_subset(3);
  CHECK_THROWS(std::invalid_argument, Table(5, dictionary.layout(), CellType::bytes, Arrangement::tiles));
  const Table tiled(5, dictionary.layout(), CellType::u16, Arrangement::tiles);
  CHECK_THROWS(std::invalid_argument, with_projection(tiled, dictionary, [](auto&) {}));
}

// A subset of the rows of a table and one of its tiles have the same columns.
TEST(columns_of_tiles_are_those_of_rows) {
  Random random(2);
  bool any_narrow = false, any_wide = false;
  for (int repeat = 0; repeat < 12; ++repeat)
    for (const CellType type : types) {
      const Dictionary dictionary = make_dictionary(random, type, 20);
      const std::size_t rows = 1 + random.index(70);
      const bool far = repeat % 2 == 1 && (type == CellType::i32 || type == CellType::i64);
      const auto x = make_samples(random, dictionary, rows, type, far ? 1000000 : 200);
      const Table by_row = make_table(x.data(), rows, dictionary, type, quantiser);
      Table tiled(rows, dictionary.layout(), type, Arrangement::tiles);
      tiled.fill({x.data(), rows, static_cast<std::size_t>(dictionary.features())}, 0, quantiser);
      const std::vector<std::uint32_t> once(rows, 1);
      std::vector<std::uint32_t> all(rows);
      std::iota(all.begin(), all.end(), 0u);
      Subset plain(by_row, dictionary), fast(tiled, dictionary);
      for (Subset* subset : {&plain, &fast}) {
        subset->draw(7, once.data(), nullptr);
        CHECK(!subset->filled());
        const std::size_t atoms = subset->atoms().size();
        subset->fill(0, atoms / 2, all.data(), rows, silent);
        subset->fill(atoms / 2, atoms - atoms / 2, all.data(), rows, silent);
        CHECK(subset->filled());
      }
      CHECK_EQUAL(plain.narrow(), fast.narrow());
      with_cell_type(type, [&](auto cell) {
        using Value = ValueOf<decltype(cell)>;
        std::vector<Value> values(whole_blocks(rows));
        Range<Value> range;
        for (std::size_t j = 0; j < plain.atoms().size(); ++j) {
          with_projection(by_row, dictionary, [&]<class Out>(Projection<Out>& project) {
            if constexpr (std::is_same_v<Out, Value>)
              project(all.data(), rows, plain.atoms(), j, 1, values.data(), values.size(), &range);
          });
          for (const Subset* subset : {&plain, &fast})
            subset->read<Value>(j, [&](const auto* column, Value offset) {
              (sizeof *column == 2 ? any_narrow : any_wide) = true;
              for (std::size_t i = 0; i < rows; ++i)
                CHECK_EQUAL(static_cast<Value>(static_cast<Value>(column[i]) + offset), values[i], "atom", j, "row", i);
            });
        }
      });
    }
  CHECK(any_narrow && any_wide);
}

// Values of 16 bits without their offsets, which grow_on_subset takes where it can, and whole values grow the same tree; a Forest finds the
// leaves that the subset finds, in tables of rows and of tiles.
TEST(narrow_columns_grow_the_same_trees) {
  Random random(3);
  for (const Splitter splitter : {Splitter::exact, Splitter::histogram})
    for (const std::size_t rows : {30u, 300u}) {
      Dictionary dictionary({6, 7}, false);
      dictionary.add_patch({{1, 1}, {4, 4}}, {Boundary::zero, Boundary::zero}, {true, true});
      dictionary.set_subset(25);
      const auto x = make_samples(random, dictionary, rows, CellType::i32, 900);
      const Table by_row = make_table(x.data(), rows, dictionary, CellType::i32, quantiser);
      Table tiled(rows, dictionary.layout(), CellType::i32, Arrangement::tiles);
      tiled.fill({x.data(), rows, static_cast<std::size_t>(dictionary.features())}, 0, quantiser);
      std::vector<std::uint32_t> classes(rows), count(rows), all(rows);
      for (auto& label : classes) label = static_cast<std::uint32_t>(random.index(3));
      for (auto& times : count) times = static_cast<std::uint32_t>(1 + random.index(2));
      std::iota(all.begin(), all.end(), 0u);
      const Targets targets{.classes = classes, .class_count = 3};
      const GrowthRule rule{.splitter = splitter, .candidates = 6};
      const Bags bags(count, {}, all);
      Subset subset(tiled, dictionary);
      subset.draw(5, count.data(), nullptr);
      subset.fill(0, subset.atoms().size(), all.data(), rows, silent);
      CHECK(subset.narrow());
      Trees fast, slow;
      grow_on_subset(subset, {11}, bags, targets, rule, silent, fast);
      ColumnProjector<std::int32_t> whole(subset, true);
      grow_tree<std::int32_t>(whole, subset.dictionary(), 11, bags[0], targets, rule, silent, slow);
      CHECK(fast.next == slow.next);
      CHECK(fast.threshold == slow.threshold);
      CHECK(fast.picked == slow.atoms.cell);
      CHECK(fast.gain == slow.gain);

      const Forest forest(dictionary.layout(), fast.atoms,
                          {{0, static_cast<std::int64_t>(fast.next.size())}, fast.next, fast.threshold}, fast.leaves);
      std::vector<std::int32_t> in_subset(rows), in_rows(rows), in_tiles(rows);
      subset.find_leaves(fast.next.data(), fast.threshold.data(), nullptr, fast.next.size(), fast.picked.data(),
                         fast.picked.size(), in_subset.data());
      forest.find_leaves(0, by_row, in_rows.data());
      forest.find_leaves(0, tiled, in_tiles.data());
      CHECK(in_subset == in_rows);
      CHECK(in_tiles == in_rows);
      CHECK_THROWS(std::invalid_argument, subset.find_leaves(fast.next.data(), fast.threshold.data(), nullptr, fast.next.size(),
                                                             fast.picked.data(), fast.picked.size() - 1, in_subset.data()));

      // All trees at once, from some row on, as one after the other.
      const std::size_t begin = random.index(rows);
      std::vector<std::uint32_t> later(all.begin() + static_cast<std::ptrdiff_t>(begin), all.end());
      std::vector<double> one(rows * 3), of_rows((rows - begin) * 3), of_tiles((rows - begin) * 3);
      forest.add_tree(0, tiled, later.data(), later.size(), one.data());
      forest.add_trees(by_row, begin, rows - begin, of_rows.data());
      forest.add_trees(tiled, begin, rows - begin, of_tiles.data());
      CHECK(std::equal(of_rows.begin(), of_rows.end(), one.begin() + static_cast<std::ptrdiff_t>(begin * 3)));
      CHECK(of_tiles == of_rows);
    }
}
