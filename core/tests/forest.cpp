#include "forest/forest.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "atoms/sampler.hpp"
#include "check.hpp"
#include "data.hpp"
#include "projection/byte_patches.hpp"

using namespace morf;

static constexpr std::uint64_t certain = ~std::uint64_t{0};
static constexpr CellType all_types[] = {CellType::u8, CellType::u16, CellType::i16, CellType::i32, CellType::i64, CellType::f64};

static bool is_unsigned(CellType type) { return type == CellType::u8 || type == CellType::u16; }

// What a forest is made of.
struct Arrays : ForestNodes {
  AtomList atoms{};
  Leaves leaves{};
};

// A forest of random trees, and samples for it whose atom values fit the cell type.
struct Model {
  RowLayout layout;
  Arrays arrays;
  bool real;
  std::size_t p, rows;
  std::vector<double> x;

  Forest forest() const { return Forest(layout, arrays.atoms, arrays, arrays.leaves); }
  Samples samples() const { return {x.data(), rows, p}; }
};

// Atoms of the dictionary and values of that size; trees of random form with thresholds among the values.
static Model make_model(Random& random, const Dictionary& dictionary, CellType type, std::int64_t largest, std::size_t rows,
                        std::size_t trees, bool regression) {
  Model m{dictionary.layout(), {}, type == CellType::f64, static_cast<std::size_t>(dictionary.features()), rows, {}};
  m.x.resize(rows * m.p);
  for (auto& value : m.x)
    value = static_cast<double>(random.between(is_unsigned(type) ? 0 : -largest, largest)) / (m.real ? 7.0 : 1.0);

  Sampler sampler(dictionary);
  Stream stream(random.bits());
  Arrays& a = m.arrays;
  a.leaves.class_count = regression ? 0 : 3;
  a.tree_begin.push_back(0);
  for (std::size_t tree = 0; tree < trees; ++tree) {
    const std::size_t splits = tree == 0 ? 0 : random.index(40), begin = a.next.size();
    std::vector<std::size_t> open{0};
    a.next.push_back(0);
    for (std::size_t split = 0; split < splits; ++split) {
      const std::size_t chosen = random.index(open.size()), node = open[chosen];
      const std::size_t child = a.next.size() - begin;
      a.next[begin + node] = static_cast<std::int32_t>(child);
      open[chosen] = child;
      open.push_back(child + 1);
      a.next.insert(a.next.end(), 2, 0);
    }
    for (const std::size_t node : open) {
      std::size_t payload;
      if (regression) {
        payload = a.leaves.value.size();
        a.leaves.value.push_back(random.unit());
      } else if (random.chance(0.5)) {
        payload = random.index(3);
      } else {
        payload = 3 + a.leaves.distribution_size.size();
        a.leaves.distribution_size.push_back(static_cast<std::uint32_t>(random.between(1, 3)));
        for (std::uint32_t c = 0; c < a.leaves.distribution_size.back(); ++c) {
          a.leaves.distribution_class.push_back(c);
          a.leaves.distribution_weight.push_back(static_cast<std::uint32_t>(random.between(1, 100)));
        }
      }
      a.next[begin + node] = static_cast<std::int32_t>(-1 - static_cast<std::int64_t>(payload));
    }
    a.tree_begin.push_back(static_cast<std::int64_t>(a.next.size()));
  }
  for (const std::int32_t next : a.next) {
    const double t = static_cast<double>(random.between(is_unsigned(type) ? 0 : -2 * largest, 3 * largest));
    if (m.real) a.real_threshold.push_back(t / 7.0);
    else a.threshold.push_back(static_cast<std::int64_t>(t) * 2 + random.between(0, 1));
    AtomList atom;
    if (next >= 0)
      for (sampler.begin_node(); atom.size() == 0;) sampler.draw(stream, 1, atom);
    if (next >= 0) a.atoms.append_terms(atom, 0);
    else a.atoms.close_atom();
    if (dictionary.has_operations()) a.atoms.operation.push_back(next >= 0 ? atom.operation[0] : Operation{});
  }
  return m;
}

// The leaf of one sample, from its features: `cells` holds the prefix sums of them, by definition.
static std::size_t naive_leaf(const Model& m, const std::vector<std::vector<std::uint32_t>>& of_cell, std::size_t tree,
                              std::size_t row, int extra_bits) {
  const Arrays& a = m.arrays;
  const auto begin = static_cast<std::size_t>(a.tree_begin[tree]);
  std::size_t node = begin;
  while (a.next[node] >= 0) {
    double value = 0.0;  // of integers it is exact
    for (std::size_t t = a.atoms.begin[node]; t < a.atoms.begin[node + 1]; ++t) {
      if (m.real) {
        value += a.atoms.weight[t] * (a.atoms.cell[t] < m.p ? m.x[row * m.p + a.atoms.cell[t]] : 0.0);
      } else {
        for (const std::uint32_t feature : of_cell[a.atoms.cell[t]])
          value += a.atoms.weight[t] * std::rint(std::ldexp(m.x[row * m.p + feature], extra_bits));
      }
    }
    const bool right = m.real ? value > a.real_threshold[node]
                              : 2.0 * value > std::ldexp(static_cast<double>(a.threshold[node]), extra_bits);
    node = begin + static_cast<std::size_t>(a.next[node]) + right;
  }
  return node;
}

static std::vector<double> naive_leaf_output(const Model& m, std::size_t node) {
  const Arrays& a = m.arrays;
  const auto payload = static_cast<std::size_t>(-1 - static_cast<std::int64_t>(a.next[node]));
  if (a.leaves.class_count == 0) return {a.leaves.value[payload]};
  std::vector<double> posterior(a.leaves.class_count, 0.0);
  if (payload < a.leaves.class_count) {
    posterior[payload] = 1.0;
    return posterior;
  }
  std::size_t begin = 0, d = payload - a.leaves.class_count;
  for (std::size_t i = 0; i < d; ++i) begin += a.leaves.distribution_size[i];
  double total = 0.0;
  for (std::size_t i = begin; i < begin + a.leaves.distribution_size[d]; ++i) total += a.leaves.distribution_weight[i];
  for (std::size_t i = begin; i < begin + a.leaves.distribution_size[d]; ++i)
    posterior[a.leaves.distribution_class[i]] += a.leaves.distribution_weight[i] / total;
  return posterior;
}

static void check_prediction(const Model& m, CellType type, int extra_bits, const Table* table) {
  const Forest forest = m.forest();
  const Arrays& a = m.arrays;
  const auto of_cell = features_of_cells(m.layout);
  const Quantiser quantiser(extra_bits, 0x1.0p61);
  const std::size_t trees = forest.trees(), outputs = forest.outputs();
  CHECK_EQUAL(trees, a.tree_begin.size() - 1);
  std::vector<std::int32_t> leaf(m.rows * trees, -1);
  std::vector<double> out(m.rows * outputs, 0.0);
  forest.apply(m.samples(), type, quantiser, extra_bits, leaf.data());
  forest.predict(m.samples(), type, quantiser, extra_bits, out.data());
  std::vector<double> of_table(m.rows * outputs, 0.0);
  std::vector<std::uint32_t> rows(m.rows);
  for (std::uint32_t i = 0; i < m.rows; ++i) rows[i] = i;
  if (table)
    for (std::size_t tree = 0; tree < trees; ++tree) forest.add_tree(tree, *table, rows.data(), m.rows, of_table.data());
  for (std::size_t i = 0; i < m.rows; ++i) {
    std::vector<double> sum(outputs, 0.0);
    for (std::size_t tree = 0; tree < trees; ++tree) {
      const std::size_t node = naive_leaf(m, of_cell, tree, i, extra_bits);
      CHECK_EQUAL(leaf[i * trees + tree], node - static_cast<std::size_t>(a.tree_begin[tree]), "row", i, "tree", tree, "type",
                  static_cast<int>(type));
      const auto posterior = naive_leaf_output(m, node);
      for (std::size_t c = 0; c < outputs; ++c) sum[c] += posterior[c];
    }
    for (std::size_t c = 0; c < outputs; ++c) {
      const double mean = sum[c] / static_cast<double>(trees);
      CHECK(std::abs(out[i * outputs + c] - mean) < 1e-12, "row", i, out[i * outputs + c], mean);
      if (table) CHECK(std::abs(of_table[i * outputs + c] - sum[c]) < 1e-11, "row", i);
    }
  }
}

// Axes have nodes of their own, slots hold most patches, and the third kind mixes slots with atoms that do not fit them.
enum class Kind { axis, patch, general };

static Dictionary make_dictionary(Random& random, Kind kind, CellType type, const std::vector<std::int64_t>& shape) {
  Dictionary dictionary(shape, type == CellType::f64);
  switch (kind) {
    case Kind::axis: dictionary.add_axis(); break;
    case Kind::patch: {
      std::vector<std::int64_t> low(shape.size(), 1), high;
      for (const std::int64_t length : shape) high.push_back(std::min<std::int64_t>(length, 3));
      dictionary.add_axis();
      dictionary.add_patch({low, high}, std::vector<Boundary>(shape.size(), Boundary::zero),
                           std::vector<bool>(shape.size(), true));
      dictionary.set_cumulative({certain / 2, certain});
      break;
    }
    case Kind::general: {
      dictionary.add_axis();
      add_random_patch(random, dictionary, 3);
      AtomList atoms;
      for (int i = 0; i < 4; ++i) {
        for (int t = 0; t < 5; ++t)
          atoms.add_term(static_cast<std::uint32_t>(random.index(dictionary.features())),
                         is_unsigned(type) ? 2.0 : static_cast<double>(random.between(-3, 3)));
        atoms.close_atom();
      }
      dictionary.add_finite(atoms, {});
      dictionary.set_cumulative({certain / 3, certain / 3 * 2, certain});
    }
  }
  return dictionary;
}

// Atoms above add up to 27 features: the largest value that fits 27 times.
static std::int64_t largest_value(CellType type) {
  static constexpr std::int64_t largest[] = {9, 2400, 1200, 39000000, std::int64_t{1} << 46, 1000};
  return largest[static_cast<int>(type)];
}

TEST(prediction_is_a_walk) {
  Random random(1);
  static constexpr std::size_t row_counts[] = {1, 7, 8, 9, 40, 255, 256, 257, 1100};
  int round = 0;
  for (const CellType type : all_types)
    for (const Kind kind : {Kind::axis, Kind::patch, Kind::general})
      for (std::size_t rank = 1; rank <= 3; ++rank, ++round) {
        const Dictionary dictionary = make_dictionary(random, kind, type, random_shape(random, rank));
        const Model m = make_model(random, dictionary, type, largest_value(type), row_counts[round % 9], 5, round % 2);
        const Table table = make_table(m.x.data(), m.rows, dictionary, type, Quantiser(0, 0x1.0p61));
        check_prediction(m, type, 0, &table);
        // A wider type gives the same.
        if (is_unsigned(type)) check_prediction(m, CellType::i32, 0, nullptr);
        if (!m.real) check_prediction(m, CellType::i64, 0, nullptr);
      }
}

TEST(silent_leaves_do_not_vote) {
  Random random(11);
  for (const bool regression : {false, true})
    for (const CellType type : {CellType::u8, CellType::i32, CellType::f64}) {
      const Dictionary dictionary = make_dictionary(random, Kind::axis, type, {4});
      Model m = make_model(random, dictionary, type, largest_value(type), 60, 6, regression);
      Arrays& a = m.arrays;
      const auto of_cell = features_of_cells(m.layout);
      const std::size_t silent = a.leaves.append_silent();
      std::vector<std::size_t> leaves;
      for (std::size_t node = 0; node < a.next.size(); ++node)
        if (a.next[node] < 0) leaves.push_back(node);
      for (const std::size_t node : leaves)
        if (random.chance(0.6)) a.next[node] = -1 - static_cast<std::int32_t>(silent);
      a.next[leaves.back()] = -1;  // of the first class, or value
      const auto says = [&](std::size_t node) { return a.next[node] != -1 - static_cast<std::int32_t>(silent); };
      const Forest forest = m.forest();
      CHECK(forest.has_silent_leaves());
      std::vector<double> out(m.rows * forest.outputs(), 0.0), prior(forest.outputs(), 0.0);
      forest.predict(m.samples(), type, Quantiser(0, 0x1.0p61), 0, out.data());
      const auto add = [](std::vector<double>& sum, const std::vector<double>& more) {
        for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += more[k];
      };
      double speaking = 0.0;
      for (const std::size_t node : leaves)
        if (says(node)) add(prior, naive_leaf_output(m, node)), ++speaking;
      std::vector<std::uint32_t> votes(m.rows, 0), rows(m.rows), expected_votes(m.rows, 0);
      for (std::uint32_t i = 0; i < m.rows; ++i) rows[i] = i;
      const Table table = make_table(m.x.data(), m.rows, dictionary, type, Quantiser(0, 0x1.0p61));
      std::vector<double> sums(out.size(), 0.0);
      for (std::size_t tree = 0; tree < forest.trees(); ++tree)
        forest.add_tree(tree, table, rows.data(), m.rows, sums.data(), votes.data());
      for (std::size_t i = 0; i < m.rows; ++i) {
        std::vector<double> sum(forest.outputs(), 0.0);
        for (std::size_t tree = 0; tree < forest.trees(); ++tree) {
          const std::size_t node = naive_leaf(m, of_cell, tree, i, 0);
          if (says(node)) add(sum, naive_leaf_output(m, node)), ++expected_votes[i];
        }
        for (std::size_t k = 0; k < sum.size(); ++k) {
          CHECK(std::abs(sums[i * sum.size() + k] - sum[k]) <= 1e-12 * (1.0 + std::abs(sum[k])), k);
          const double mean = expected_votes[i] > 0 ? sum[k] / expected_votes[i] : prior[k] / speaking;
          CHECK(std::abs(out[i * sum.size() + k] - mean) <= 1e-12 * (1.0 + std::abs(mean)), k);
        }
      }
      CHECK_EQUAL(votes, expected_votes);
    }
}

TEST(fractions_at_a_forest_of_integers) {
  Random random(2);
  for (const Kind kind : {Kind::axis, Kind::patch, Kind::general})
    for (const int extra_bits : {1, 2, 7, 20}) {
      const Dictionary dictionary = make_dictionary(random, kind, CellType::i32, {9, 4});
      Model m = make_model(random, dictionary, CellType::i32, 12, 50, 5, false);
      for (auto& value : m.x) value += static_cast<double>(random.between(0, 8)) / 8.0;
      check_prediction(m, CellType::i64, extra_bits, nullptr);
    }
}

// Half a unit above a threshold between 3 and 4 goes right, half a unit below goes left, at whatever resolution.
TEST(thresholds_are_midpoints) {
  Arrays a;
  a.tree_begin = {0, 3};
  a.next = {1, -1, -2};
  a.threshold = {7, 0, 0};
  a.atoms = {.begin = {0, 1, 1, 1}, .cell = {0}, .weight = {1.0}, .operation = {}};
  a.leaves.class_count = 2;
  const Forest forest(RowLayout({1}, {Plane{}}), a.atoms, a, a.leaves);
  const double x[] = {3.0, 3.4999, 3.5, 3.5001, 4.0};
  for (const int extra_bits : {1, 20}) {
    std::int32_t leaf[5];
    forest.apply({x, 5, 1}, CellType::i64, Quantiser(extra_bits, 0x1.0p61), extra_bits, leaf);
    if (extra_bits == 20) CHECK_EQUAL(std::vector<std::int32_t>(leaf, leaf + 5), (std::vector<std::int32_t>{1, 1, 1, 2, 2}));
    CHECK(leaf[0] == 1 && leaf[4] == 2);
  }
  a.threshold[0] = -7;
  const Forest negative(RowLayout({1}, {Plane{}}), a.atoms, a, a.leaves);
  const std::int64_t whole[] = {-5, -4, -3, 0};
  std::int32_t leaf[4];
  for (const CellType type : {CellType::i16, CellType::i32, CellType::i64}) {
    negative.apply({whole, 4, 1}, type, Quantiser(0, 0x1.0p61), 0, leaf);
    CHECK_EQUAL(std::vector<std::int32_t>(leaf, leaf + 4), (std::vector<std::int32_t>{1, 1, 2, 2}));
  }
  for (const std::int64_t far : {(std::int64_t{1} << 40) + 1, -(std::int64_t{1} << 40)}) {  // beyond all values of 32 bits
    a.threshold[0] = far;
    Forest(RowLayout({1}, {Plane{}}), a.atoms, a, a.leaves).apply({whole, 4, 1}, CellType::i32, Quantiser(0, 0x1.0p61), 0, leaf);
    CHECK_EQUAL(std::vector<std::int32_t>(leaf, leaf + 4), std::vector<std::int32_t>(4, far > 0 ? 1 : 2));
  }
}

TEST(more_cells_than_16_bits) {
  Random random(3);
  for (const std::int64_t features : {65534, 65535, 65536, 70000}) {  // the zero cell follows the features
    Dictionary dictionary({features}, true);
    AtomList atoms;
    for (const std::int64_t cell : {std::int64_t{0}, features - 1, features - 2, features / 2}) {
      atoms.add_term(static_cast<std::uint32_t>(cell), 1.0);
      if (cell > 0) atoms.add_term(static_cast<std::uint32_t>(cell - 1), -1.0);
      atoms.close_atom();
    }
    dictionary.add_finite(atoms, {});
    const Model m = make_model(random, dictionary, CellType::i16, 1000, 10, 6, false);
    const Forest forest = m.forest();
    const Arrays& a = m.arrays;
    std::vector<std::int32_t> leaf(m.rows * forest.trees());
    forest.apply(m.samples(), CellType::i16, Quantiser(0, 0x1.0p61), 0, leaf.data());
    for (std::size_t i = 0; i < m.rows; ++i)
      for (std::size_t tree = 0; tree < forest.trees(); ++tree) {
        const auto begin = static_cast<std::size_t>(a.tree_begin[tree]);
        std::size_t node = begin;
        while (a.next[node] >= 0) {
          double value = 0.0;
          for (std::size_t t = a.atoms.begin[node]; t < a.atoms.begin[node + 1]; ++t)
            value += a.atoms.weight[t] * m.x[i * m.p + a.atoms.cell[t]];
          node = begin + static_cast<std::size_t>(a.next[node]) + (2.0 * value > static_cast<double>(a.threshold[node]));
        }
        CHECK_EQUAL(leaf[i * forest.trees() + tree], node - begin, "features", features);
      }
  }
}

TEST(no_rows) {
  Random random(4);
  const Model m = make_model(random, make_dictionary(random, Kind::patch, CellType::u8, {5, 5}), CellType::u8, 9, 1, 3, false);
  m.forest().predict({m.x.data(), 0, m.p}, CellType::u8, Quantiser(0, 1.0), 0, static_cast<double*>(nullptr));
}

TEST(cell_types_must_fit_the_forest) {
  Random random(5);
  double out[30] = {};
  const Dictionary integers = make_dictionary(random, Kind::axis, CellType::i32, {3}),
                   reals = make_dictionary(random, Kind::axis, CellType::f64, {3});
  const Model integer = make_model(random, integers, CellType::i32, 9, 10, 3, false);
  const Model real = make_model(random, reals, CellType::f64, 9, 10, 3, false);
  const Quantiser quantiser(0, 0x1.0p61);
  CHECK_THROWS(std::invalid_argument, integer.forest().predict(integer.samples(), CellType::f64, quantiser, 0, out));
  CHECK_THROWS(std::invalid_argument, real.forest().predict(real.samples(), CellType::i64, quantiser, 0, out));
}

// Bytes and prefix sums come to the same leaves, in samples and in tables. The last shape has more bytes than nodes of bytes
// reach; tables of such are read all the same.
TEST(bytes_and_prefix_sums) {
  Random random(9);
  struct Case {
    std::vector<std::int64_t> shape, low, high;
  };
  int round = 0;
  for (const Case& c :
       {Case{{6, 7}, {1, 1}, {3, 4}}, Case{{6, 9}, {1, 2}, {2, 8}}, Case{{9, 12}, {1, 1}, {4, 8}}, Case{{30}, {1}, {8}},
        Case{{3, 5, 6}, {1, 1, 1}, {1, 4, 4}}, Case{{4, 9}, {1, 2}, {1, 5}}, Case{{2, 33000}, {1, 1}, {2, 3}}})
    for (const Boundary boundary : {Boundary::zero, Boundary::inside}) {
      Dictionary dictionary(c.shape, false);
      dictionary.add_patch({c.low, c.high}, std::vector<Boundary>(c.shape.size(), boundary),
                           std::vector<bool>(c.shape.size(), true));
      CHECK(suits_byte_patches(dictionary) == (MORFOREST_BYTE_PATCHES != 0));
      const std::size_t sizes[] = {300, 1, 50, 129, 256, 3};
      const Model m = make_model(random, dictionary, CellType::u16, 255, sizes[round % 6], 4, round % 3 == 0);
      ++round;
      const Forest forest = m.forest();
      const Quantiser quantiser(0, 255.0);
      CHECK_EQUAL(forest.takes_bytes(), MORFOREST_BYTE_PATCHES && m.p < 65536, "round", round);
      std::vector<std::int32_t> leaf(m.rows * forest.trees(), -1), plain_leaf(leaf);
      std::vector<double> out(m.rows * forest.outputs(), 0.0), plain_out(out);
      forest.apply(m.samples(), CellType::u16, quantiser, 0, plain_leaf.data());
      forest.predict(m.samples(), CellType::u16, quantiser, 0, plain_out.data());
      if (forest.takes_bytes()) {
        const std::vector<std::uint8_t> x(m.x.begin(), m.x.end());
        forest.apply({x.data(), m.rows, m.p}, CellType::bytes, quantiser, 0, leaf.data());
        CHECK_EQUAL(leaf, plain_leaf);
        forest.predict(m.samples(), CellType::bytes, quantiser, 0, out.data());
        CHECK_EQUAL(out, plain_out);
      } else {
        CHECK_THROWS(std::invalid_argument, forest.predict(m.samples(), CellType::bytes, quantiser, 0, out.data()));
      }
      if (!suits_byte_patches(dictionary)) continue;
      const Table bytes = make_table(m.x.data(), m.rows, dictionary, CellType::bytes, quantiser);
      const Table plain = make_table(m.x.data(), m.rows, dictionary, CellType::u16, quantiser);
      std::vector<double> of_bytes(out.size(), 0.0), of_plain(of_bytes);
      std::vector<std::uint32_t> rows;
      for (std::uint32_t i = 0; i < m.rows; ++i)
        if (m.rows < 20 || i % 20) rows.push_back(static_cast<std::uint32_t>(m.rows) - 1 - i);
      for (std::size_t tree = 0; tree < forest.trees(); ++tree) {
        forest.add_tree(tree, bytes, rows.data(), rows.size(), of_bytes.data());
        forest.add_tree(tree, plain, rows.data(), rows.size(), of_plain.data());
      }
      CHECK_EQUAL(of_bytes, of_plain);
      CHECK(std::count(of_bytes.begin(), of_bytes.end(), 0.0) < static_cast<std::ptrdiff_t>(of_bytes.size()));
    }
}

// One atom or threshold that is no narrow patch's, and samples of bytes need prefix sums.
TEST(only_narrow_patches_take_bytes) {
  Random random(10);
  Dictionary dictionary({6, 7}, false);
  dictionary.add_patch({{2, 2}, {3, 4}}, {Boundary::inside, Boundary::inside}, {true, true});
  const Model m = make_model(random, dictionary, CellType::u16, 255, 1, 4, false);
  if (!m.forest().takes_bytes()) return;
  const auto refuse = [&](const char* what, auto change) {
    Model other = m;
    change(other.arrays);
    CHECK(!other.forest().takes_bytes(), what);
  };
  const std::size_t split = static_cast<std::size_t>(
      std::find_if(m.arrays.next.begin(), m.arrays.next.end(), [](std::int32_t n) { return n >= 0; }) - m.arrays.next.begin());
  refuse("negative threshold", [&](auto& a) { a.threshold[split] = -1; });
  refuse("large threshold", [&](auto& a) { a.threshold[split] = 65536; });
  for (std::size_t t = 0; t < std::min<std::size_t>(m.arrays.atoms.cell.size(), 40); ++t) {
    refuse("weight", [&](auto& a) { a.atoms.weight[t] = 2.0; });
    refuse("sign", [&](auto& a) { a.atoms.weight[t] = -a.atoms.weight[t]; });
    if (m.arrays.atoms.terms(split) == 4) refuse("cell", [&](auto& a) { a.atoms.cell[t] = 42; });  // the zero cell
  }
}

TEST(tables_must_fit_the_forest) {
  Random random(6);
  double out[30] = {};
  const std::uint32_t rows[] = {0, 5, 9};
  const Dictionary integers = make_dictionary(random, Kind::axis, CellType::i32, {3}),
                   reals = make_dictionary(random, Kind::axis, CellType::f64, {3}),
                   narrow = make_dictionary(random, Kind::axis, CellType::i32, {1});
  const Model integer = make_model(random, integers, CellType::i32, 9, 10, 3, false);
  const Model real = make_model(random, reals, CellType::f64, 9, 10, 3, false);
  const Quantiser quantiser(0, 0x1.0p61);
  const Table integer_table = make_table(integer.x.data(), 10, integers, CellType::i32, quantiser),
              real_table = make_table(real.x.data(), 10, reals, CellType::f64, quantiser),
              narrow_table = make_table(integer.x.data(), 10, narrow, CellType::i32, quantiser),
              bytes_table = make_table(real.x.data(), 10, reals, CellType::bytes, quantiser);
  integer.forest().add_tree(1, integer_table, rows, 3, out);
  real.forest().add_tree(1, real_table, rows, 3, out);
  CHECK_THROWS(std::invalid_argument, integer.forest().add_tree(1, real_table, rows, 3, out));
  CHECK_THROWS(std::invalid_argument, real.forest().add_tree(1, integer_table, rows, 3, out));
  CHECK_THROWS(std::invalid_argument, real.forest().add_tree(1, bytes_table, rows, 3, out));
  CHECK_THROWS(std::invalid_argument, integer.forest().add_tree(1, narrow_table, rows, 3, out));
}

// Three trees: a leaf; a split of two; a split whose left child is split.
TEST(what_follows_from_depth_first_trees) {
  using Next = std::vector<std::int32_t>;
  const std::vector<std::int64_t> begin{0, 1, 4, 9};
  const std::vector<std::uint8_t> split{0, 1, 0, 0, 1, 1, 1, 0, 0};
  // Within the last tree node 1 is split first, into 3 and 4, then node 2 would be; 2 is given no room for children.
  CHECK_THROWS(std::invalid_argument, depth_first_next(begin, split, {2, 0, 2, 1, 2}, 2));
  const std::vector<std::uint8_t> fits{0, 1, 0, 0, 1, 1, 0, 0, 0};
  // Payloads count up in the order of growth: in the last tree nodes 3 and 4 come before node 2.
  CHECK_EQUAL(depth_first_next(begin, fits, {2, 0, 2, 2, 1, 2}, 2), (Next{-3, 1, -1, -4, 1, 3, -6, -2, -5}));
  CHECK_EQUAL(depth_first_next(begin, fits, std::vector<std::uint32_t>(6, 0), 0), (Next{-1, 1, -2, -3, 1, 3, -6, -4, -5}));
  const std::vector<std::uint32_t> leaf_weight{9, 4, 5, 1, 2, 6};
  CHECK_EQUAL(node_weights(begin, {-3, 1, -1, -4, 1, 3, -6, -2, -5}, leaf_weight),
              (std::vector<std::uint32_t>{9, 9, 4, 5, 9, 8, 1, 2, 6}));

  const auto refuse = [&](const char* what, auto change) {
    auto b = begin;
    auto s = fits;
    std::vector<std::uint32_t> kind{2, 0, 2, 2, 1, 2}, weight = leaf_weight;
    Next next = depth_first_next(b, s, kind, 2);
    change(b, s, kind, next, weight);
    int refused = 0;
    try {
      depth_first_next(b, s, kind, 2);
    } catch (const std::invalid_argument&) {
      ++refused;
    }
    try {
      node_weights(b, next, weight);
    } catch (const std::invalid_argument&) {
      ++refused;
    }
    CHECK(refused > 0, what);
  };
  refuse("no trees", [](auto& b, auto&...) { b.clear(); });
  refuse("first offset", [](auto& b, auto&...) { b[0] = 1; });
  refuse("offset", [](auto& b, auto&...) { b[1] = -1; });
  refuse("offset", [](auto& b, auto&...) { b[1] = std::int64_t{1} << 40; });
  refuse("offset", [](auto& b, auto&...) { b[2] = b[1]; });
  refuse("last offset", [](auto& b, auto&...) { ++b.back(); });
  refuse("splits", [](auto&, auto& s, auto&...) { s[0] = 1; });
  refuse("splits", [](auto&, auto& s, auto&...) { s[1] = 0; });
  refuse("kinds", [](auto&, auto&, auto& kind, auto&...) { kind.pop_back(); });
  refuse("kinds", [](auto&, auto&, auto& kind, auto&...) { kind.push_back(0); });
  refuse("kind", [](auto&, auto&, auto& kind, auto&...) { kind[1] = 3; });
  refuse("child", [](auto&, auto&, auto&, auto& next, auto&) { next[5] = 1; });
  refuse("child", [](auto&, auto&, auto&, auto& next, auto&) { next[5] = 4; });
  refuse("weights", [](auto&, auto&, auto&, auto&, auto& weight) { weight.pop_back(); });
  refuse("weights", [](auto&, auto&, auto&, auto&, auto& weight) { weight.push_back(1); });
  refuse("sum", [](auto&, auto&, auto&, auto&, auto& weight) { weight[1] = 0xFFFFFFFFu; });
}

TEST(damage_of_every_kind_is_refused) {
  Random random(7);
  using Damage = std::function<void(Arrays&)>;
  const auto refuse = [](const Model& m, const char* what, const Damage& damage) {
    Model damaged = m;
    damage(damaged.arrays);
    CHECK_THROWS(std::invalid_argument, damaged.forest(), what);
  };
  const auto split = [](const Arrays& a) {  // one with a parent
    for (std::size_t node = a.next.size(); node-- > 0;)
      if (a.next[node] >= 0) return node;
    return std::size_t{0};
  };
  const auto leaf = [](const Arrays& a) {
    for (std::size_t node = a.next.size(); node-- > 0;)
      if (a.next[node] < 0) return node;
    return std::size_t{0};
  };
  for (const bool regression : {false, true})
    for (const bool real : {false, true}) {
      const CellType type = real ? CellType::f64 : CellType::i32;
      const Model m = make_model(random, make_dictionary(random, Kind::general, type, {4, 3}), type, 9, 4, 6, regression);
      m.forest();
      refuse(m, "no trees", [](auto& a) { a.tree_begin = {0}; });
      refuse(m, "no offsets", [](auto& a) { a.tree_begin.clear(); });
      refuse(m, "first offset", [](auto& a) { a.tree_begin[0] = 1; });
      refuse(m, "negative offset", [](auto& a) { a.tree_begin[1] = -1; });
      refuse(m, "empty tree", [](auto& a) { a.tree_begin[2] = a.tree_begin[1]; });
      refuse(m, "offsets run back", [](auto& a) { std::swap(a.tree_begin[2], a.tree_begin[3]); });
      refuse(m, "offset beyond the nodes", [](auto& a) { a.tree_begin[2] = std::int64_t{1} << 40; });
      refuse(m, "last offset", [](auto& a) { ++a.tree_begin.back(); });
      refuse(m, "last offset", [](auto& a) { --a.tree_begin.back(); });
      refuse(m, "one offset more", [](auto& a) { a.tree_begin.push_back(a.tree_begin.back()); });
      refuse(m, "a node too many", [](auto& a) { a.next.push_back(-1); });
      refuse(m, "a node too few", [](auto& a) { a.next.pop_back(); });
      refuse(m, "own child", [&](auto& a) {
        const std::size_t node = split(a);
        const auto tree = std::upper_bound(a.tree_begin.begin(), a.tree_begin.end(), static_cast<std::int64_t>(node)) - 1;
        a.next[node] = static_cast<std::int32_t>(static_cast<std::int64_t>(node) - *tree);
      });
      refuse(m, "parent as child", [&](auto& a) { a.next[split(a)] = 0; });
      refuse(m, "child beyond the tree", [&](auto& a) { a.next[split(a)] = 1000; });
      refuse(m, "right child beyond the tree", [&](auto& a) {
        const std::size_t node = split(a);
        const auto tree = std::upper_bound(a.tree_begin.begin(), a.tree_begin.end(), static_cast<std::int64_t>(node)) - 1;
        a.next[node] = static_cast<std::int32_t>(tree[1] - tree[0] - 1);
      });
      refuse(m, "largest child", [&](auto& a) { a.next[split(a)] = std::numeric_limits<std::int32_t>::max(); });
      refuse(m, "largest child but one", [&](auto& a) { a.next[split(a)] = std::numeric_limits<std::int32_t>::max() - 1; });
      refuse(m, "largest payload", [&](auto& a) { a.next[leaf(a)] = std::numeric_limits<std::int32_t>::min(); });
      refuse(m, "payload", [&](auto& a) {
        const std::size_t payloads = regression ? a.leaves.value.size()
                                                : a.leaves.class_count + a.leaves.distribution_size.size();
        a.next[leaf(a)] = static_cast<std::int32_t>(-1 - static_cast<std::int64_t>(payloads));
      });
      refuse(m, "term count", [&](auto& a) { ++a.atoms.begin[split(a) + 1]; });
      refuse(m, "term count", [&](auto& a) { --a.atoms.begin[split(a) + 1]; });
      refuse(m, "term count", [&](auto& a) { a.atoms.begin[leaf(a) + 1] = 0xFFFFFFFFu; });
      refuse(m, "term counts", [](auto& a) { a.atoms.begin.pop_back(); });
      refuse(m, "terms", [](auto& a) { a.atoms.cell.pop_back(); });
      refuse(m, "term weights", [](auto& a) { a.atoms.weight.push_back(1.0); });
      refuse(m, "terms", [](auto& a) { a.atoms.cell.pop_back(), a.atoms.weight.pop_back(); });
      refuse(m, "cell", [&](auto& a) { a.atoms.cell.back() = static_cast<std::uint32_t>(m.layout.cells()); });
      refuse(m, "cell", [](auto& a) { a.atoms.cell.front() = 0xFFFFFFFFu; });
      for (const double weight : {std::nan(""), std::numeric_limits<double>::infinity(), -0x1.0p62, 0x1.0p63, 1e300})
        refuse(m, "term weight", [&](auto& a) { a.atoms.weight.back() = weight; });
      if (real) {
        for (const double t : {std::nan(""), std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()})
          refuse(m, "threshold", [&](auto& a) { a.real_threshold.back() = t; });
        refuse(m, "thresholds", [](auto& a) { a.real_threshold.pop_back(); });
      } else {
        for (const std::int64_t t : {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::min() + 1,
                                     std::numeric_limits<std::int64_t>::max()})
          refuse(m, "threshold", [&](auto& a) { a.threshold.back() = t; });
        refuse(m, "thresholds", [](auto& a) { a.threshold.pop_back(); });
        refuse(m, "fraction of a cell", [](auto& a) { a.atoms.weight.back() = 0.5; });
        refuse(m, "thresholds of two kinds", [](auto& a) { a.real_threshold.push_back(0.0); });
      }
      if (regression) {
        refuse(m, "leaf value", [](auto& a) { a.leaves.value.back() = std::numeric_limits<double>::infinity(); });
        refuse(m, "no leaf says anything",
               [](auto& a) { std::fill(a.leaves.value.begin(), a.leaves.value.end(), std::nan("")); });
        refuse(m, "leaf values", [](auto& a) { a.leaves.value.clear(); });
        refuse(m, "classes", [](auto& a) { a.leaves.class_count = 1; });
      } else {
        refuse(m, "class", [](auto& a) { a.leaves.distribution_class.back() = 3; });
        refuse(m, "class", [](auto& a) { a.leaves.distribution_class.back() = 0xFFFFFFFFu; });
        refuse(m, "no weight", [](auto& a) { a.leaves.distribution_weight.back() = 0; });
        refuse(m, "distribution size", [](auto& a) { ++a.leaves.distribution_size.back(); });
        refuse(m, "distribution size", [](auto& a) { a.leaves.distribution_size.back() = 0xFFFFFFFFu; });
        refuse(m, "distribution sizes", [](auto& a) { a.leaves.distribution_size.push_back(1); });
        refuse(m, "distribution classes", [](auto& a) { a.leaves.distribution_class.push_back(0); });
        refuse(m, "distribution weights", [](auto& a) { a.leaves.distribution_weight.pop_back(); });
        refuse(m, "too few classes", [](auto& a) { a.leaves.class_count = 0; });
      }
    }
}

template <class T>
static void damage_values(Random& random, std::vector<T>& values) {
  if (values.empty()) return;
  T& value = values[random.index(values.size())];
  switch (random.index(8)) {
    case 0: value = std::numeric_limits<T>::max(); break;
    case 1: value = std::numeric_limits<T>::lowest(); break;
    case 2: value = value < std::numeric_limits<T>::max() ? static_cast<T>(value + 1) : T{}; break;
    case 3: value = static_cast<T>(random.between(-3, 100)); break;
    case 4: values.pop_back(); break;
    case 5: values.push_back(values[random.index(values.size())]); break;
    default: {  // a bit, of any byte
      unsigned char bytes[sizeof(T)];
      std::memcpy(bytes, &value, sizeof value);
      bytes[random.index(sizeof(T))] ^= static_cast<unsigned char>(1u << random.index(8));
      std::memcpy(&value, bytes, sizeof value);
    }
  }
}

// Importances and attributions of whatever a forest holds; the sanitizers watch.
static void ask_for_reasons(Random& random, const Forest& forest, const std::vector<std::int32_t>& leaf, std::size_t rows,
                            bool linear = true) {
  const auto features = static_cast<std::size_t>(forest.features());
  std::vector<double> amount(forest.nodes(), 1.0), shared(features), used(features);
  if (linear) forest.add_importances(amount.data(), shared.data(), used.data());
  std::vector<std::uint32_t> weight(forest.nodes());
  for (auto& value : weight) value = static_cast<std::uint32_t>(random.index(100));
  const std::vector<double> baseline = forest.expect_roots(weight.data()).baseline;
  std::vector<double> out(rows * features * forest.outputs(), std::nan(""));
  forest.attribute(leaf.data(), rows, weight.data(), baseline.data(), 30, true, out.data());
}

// Damages arrays at random. A forest that is accepted all the same must stay within its bounds, which the sanitizers
// watch, and come to a leaf.
TEST(damage_is_refused_or_harmless) {
  Random random(8);
  int refused = 0, accepted = 0;
  for (int model = 0; model < 12; ++model) {
    const bool real = model % 3 == 2;
    const CellType type = real ? CellType::f64 : model % 3 ? CellType::u8 : CellType::i32;
    const Kind kind = static_cast<Kind>(model % 4 == 3 ? 2 : model % 4 % 3);
    const Model m = make_model(random, make_dictionary(random, kind, type, {4, 3}), type, 9, 9, 4, model % 2);
    for (int round = 0; round < 700; ++round) {
      Model damaged = m;
      Arrays& a = damaged.arrays;
      for (std::size_t times = 1 + random.index(2); times > 0; --times) switch (random.index(13)) {
          case 0: damage_values(random, a.tree_begin); break;
          case 1:
          case 2: damage_values(random, a.next); break;
          case 3: damage_values(random, a.threshold); break;
          case 4: damage_values(random, a.real_threshold); break;
          case 5: damage_values(random, a.atoms.begin); break;
          case 6: damage_values(random, a.atoms.cell); break;
          case 7: damage_values(random, a.atoms.weight); break;
          case 8: damage_values(random, a.leaves.distribution_size); break;
          case 9: damage_values(random, a.leaves.distribution_class); break;
          case 10: damage_values(random, a.leaves.distribution_weight); break;
          case 11: damage_values(random, a.leaves.value); break;
          default: a.leaves.class_count = random.index(6);
        }
      try {
        const Forest forest = damaged.forest();
        ++accepted;
        const CellType now = !a.real_threshold.empty() ? CellType::f64 : random.chance(0.3) ? CellType::i64 : type;
        const int extra_bits = now == CellType::i64 ? static_cast<int>(random.index(3)) : 0;
        std::vector<double> out(m.rows * forest.outputs(), 0.0);
        std::vector<std::int32_t> leaf(m.rows * forest.trees());
        forest.predict(m.samples(), now, Quantiser(extra_bits, 0x1.0p61), extra_bits, out.data());
        forest.apply(m.samples(), now, Quantiser(extra_bits, 0x1.0p61), extra_bits, leaf.data());
        ask_for_reasons(random, forest, leaf, m.rows);
        for (std::size_t i = 0; i < leaf.size(); ++i) {
          const std::size_t tree = i % forest.trees();
          const std::int64_t node = a.tree_begin[tree] + leaf[i];
          CHECK(leaf[i] >= 0 && node < a.tree_begin[tree + 1]);
          CHECK(a.next[static_cast<std::size_t>(node)] < 0);
        }
      } catch (const std::invalid_argument&) {
        ++refused;
      }
    }
  }
  CHECK(refused > 3000 && accepted > 1000, refused, accepted);
}

// Forests of pooled atoms, variances and linear atoms over several views, damaged at random. What was flipped in a pooled atom of a
// saved model used to make attributions leave their arrays.
TEST(damage_of_operations_is_refused_or_harmless) {
  Random random(11);
  int refused = 0, accepted = 0;
  for (int model = 0; model < 12; ++model) {
    const std::vector<std::int64_t> shape = model % 2 ? std::vector<std::int64_t>{4, 5} : std::vector<std::int64_t>{11};
    const std::size_t rank = shape.size();
    Dictionary dictionary(shape, false, {View{}, View{.kind = View::Kind::square}});
    std::vector<std::int64_t> ones(rank, 1), threes(rank, 3), windows(rank, 0), reach(rank, 2), extent(rank, 1);
    std::vector<std::uint64_t> sizes, cumulative;
    for (std::uint64_t k = 1; k <= 20; ++k) sizes.push_back(k);
    const auto pooled = [&](std::vector<Op> ops) { dictionary.set_pool({std::move(ops), windows, sizes}); };
    dictionary.add_axis();
    dictionary.set_views({0, 1});
    dictionary.add_variance({ones, threes});
    pooled({Op::max, Op::min, Op::mean, Op::proportion});
    dictionary.add_patch({ones, threes}, std::vector<Boundary>(rank, model % 3 ? Boundary::wrap : Boundary::inside),
                         std::vector<bool>(rank, true));
    dictionary.add_pair({ones, threes}, reach);
    pooled({Op::win});
    extent.back() = 2;
    dictionary.add_kernels(
        {Kernel{extent, {{0, 1}, {1, -1}}}, Kernel{extent, {{0, 1}, {1, 1}}}, Kernel{extent, {{0, 2}, {1, -1}}}}, false, 2);
    for (std::uint64_t k = 1; k < dictionary.components().size(); ++k)
      cumulative.push_back(certain / dictionary.components().size() * k);
    cumulative.push_back(certain);
    dictionary.set_cumulative(cumulative);
    Model m = make_model(random, dictionary, CellType::i64, 9, 9, 4, model % 4 == 0);
    for (int round = 0; round < 700; ++round) {
      Model damaged = m;
      Arrays& a = damaged.arrays;
      const std::size_t node = random.index(a.next.size());
      Operation& operation = a.atoms.operation[node];
      std::vector<std::uint32_t> numbers{operation.window[0].count, operation.window[0].stride, operation.window[1].count,
                                         operation.window[1].stride};
      std::vector<std::int64_t> bias{operation.bias};
      switch (random.index(9)) {
        case 0: damage_values(random, a.atoms.begin); break;
        case 1: damage_values(random, a.atoms.cell); break;
        case 2: damage_values(random, a.atoms.weight); break;
        case 3: {  // the sign of a weight
          if (a.atoms.weight.empty()) break;
          double& weight = a.atoms.weight[random.index(a.atoms.weight.size())];
          weight = -weight;
          break;
        }
        case 4:
          damage_values(random, numbers);
          numbers.resize(4);
          operation.window[0] = {numbers[0], numbers[1]};
          operation.window[1] = {numbers[2], numbers[3]};
          break;
        case 5: operation.op = static_cast<Op>(random.index(9)); break;
        case 6:
          damage_values(random, bias);
          if (!bias.empty()) operation.bias = bias[0];
          break;
        case 7: {  // another plane
          std::vector<Plane> planes = m.layout.planes;
          Plane& plane = planes[random.index(planes.size())];
          (random.chance(0.5) ? plane.prefixed_axes : plane.circular_axes) ^= 1u << random.index(rank);
          try {
            damaged.layout = RowLayout(shape, planes);
          } catch (const std::invalid_argument&) {
          }
          break;
        }
        default: std::swap(a.atoms.cell[random.index(a.atoms.cell.size())], a.atoms.cell[random.index(a.atoms.cell.size())]);
      }
      try {
        const Forest forest = damaged.forest();
        ++accepted;
        std::vector<double> out(m.rows * forest.outputs(), 0.0);
        std::vector<std::int32_t> leaf(m.rows * forest.trees());
        forest.predict(m.samples(), CellType::i64, Quantiser(0, 0x1.0p61), 0, out.data());
        forest.apply(m.samples(), CellType::i64, Quantiser(0, 0x1.0p61), 0, leaf.data());
        ask_for_reasons(random, forest, leaf, m.rows, false);
      } catch (const std::invalid_argument&) {
        ++refused;
      }
    }
  }
  CHECK(refused > 2500 && accepted > 500, refused, accepted);
}
