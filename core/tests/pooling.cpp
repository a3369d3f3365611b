// Nonlinear atoms: values over windows against atoms that are moved by hand, in all cell types.
#include "projection/pooling.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "atoms/sampler.hpp"
#include "check.hpp"
#include "data.hpp"

using namespace morf;

namespace {

using Shape = std::vector<std::int64_t>;

// A pooled component, the same for a direct dictionary and another.
struct Recipe {
  Shape low, high, windows;
  std::vector<Boundary> boundary;
  std::vector<bool> contiguous;
  bool haar;
  std::vector<Op> ops;

  Recipe(Random& random, const Shape& shape) : haar(random.chance(0.5)) {
    std::size_t moved = 0;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      high.insert(high.begin(), random.between(1, shape[axis]));
      low.insert(low.begin(), haar ? 1 : random.between(1, high.front()));
      boundary.insert(boundary.begin(), static_cast<Boundary>(random.index(3)));
      const bool moves = moved < 2 && (axis + 1 == shape.size() || random.chance(0.7));
      moved += moves;
      contiguous.insert(contiguous.begin(), moves || haar || random.chance(0.6));
      windows.insert(windows.begin(), !moves ? -1 : random.chance(0.5) ? 0 : random.between(1, shape[axis]));
    }
    for (std::size_t i = random.index(3) + 1; i > 0; --i) ops.push_back(static_cast<Op>(1 + random.index(4)));
    if (haar && *std::max_element(shape.begin(), shape.end()) < 2) haar = false;
  }

  Dictionary dictionary(const Shape& shape, bool direct) const {
    Dictionary made(shape, direct);
    std::vector<std::uint64_t> sizes;
    for (std::uint64_t k = 2; k <= 64; ++k) sizes.push_back((sizes.empty() ? 0 : sizes.back()) + 1000 / k);
    made.set_pool({ops, windows, sizes});
    std::vector<bool> lobed;
    for (const std::int64_t length : shape) lobed.push_back(length >= 2);
    if (haar) made.add_haar({low, high}, lobed, {Lobes::two});
    else made.add_patch({low, high}, boundary, contiguous);
    return made;
  }
};

template <class Cell>
void check_values(Random& random, CellType type) {
  const Shape shape = random_shape(random, 1 + random.index(3));
  const Recipe recipe(random, shape);
  const Dictionary dictionary = recipe.dictionary(shape, false), direct = recipe.dictionary(shape, true);
  const auto features = static_cast<std::size_t>(dictionary.features());
  constexpr std::size_t rows = 5, count = 12;
  std::vector<std::int64_t> x(rows * features);
  for (auto& value : x) value = random.between(-3, 3);
  const Table table = make_table(x.data(), rows, dictionary, type, Quantiser(0, 1e9));
  PooledProjector<Cell> project(table);
  AtomList atoms, plain;
  const std::uint64_t key = random.bits();
  Stream one(key), other(key);
  Sampler(dictionary).draw(one, count, atoms);
  Sampler(direct).draw(other, count, plain);
  CHECK_EQUAL(atoms.operation.size(), count);

  std::vector<std::uint32_t> number(rows), times(rows);
  for (std::size_t i = 0; i < rows; ++i) {
    number[i] = static_cast<std::uint32_t>(i);
    times[i] = static_cast<std::uint32_t>(random.between(1, 3));
  }
  project.set_biases(number.data(), times.data(), rows, atoms, 0);
  std::vector<ValueOf<Cell>> values(count * whole_blocks(rows));
  std::vector<Range<ValueOf<Cell>>> ranges(count);
  project(number.data(), rows, atoms, 0, count, values.data(), whole_blocks(rows), ranges.data());

  for (std::size_t a = 0; a < count; ++a) {
    const Operation &operation = atoms.operation[a], &by_hand = plain.operation[a];
    CHECK_EQUAL(operation.positions(), by_hand.positions());
    std::vector<std::vector<std::int64_t>> responses(rows);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t i = 0; i < by_hand.window[0].count; ++i)
        for (std::size_t j = 0; j < by_hand.window[1].count; ++j) {
          std::int64_t sum = 0;
          for (std::size_t t = plain.begin[a]; t < plain.begin[a + 1]; ++t)
            sum += static_cast<std::int64_t>(plain.weight[t]) * x[row * features + moved(shape, plain.cell[t], by_hand, i, j)];
          responses[row].push_back(sum);
        }
    if (operation.op == Op::proportion) {  // the row by counting, one after the other
      std::uint64_t total = 0, left;
      for (const std::uint32_t c : times) total += c;
      left = multiply_high(by_hand.draw, total);
      std::size_t row = 0;
      while (left >= times[row]) left -= times[row++];
      CHECK_EQUAL(operation.bias, responses[row][by_hand.position]);
    }
    for (std::size_t row = 0; row < rows; ++row) {
      const auto& r = responses[row];
      std::int64_t expected = 0;
      switch (operation.op) {
        case Op::max: expected = *std::max_element(r.begin(), r.end()); break;
        case Op::min: expected = *std::min_element(r.begin(), r.end()); break;
        case Op::mean:
          for (const std::int64_t v : r) expected += v;
          break;
        default: expected = std::count_if(r.begin(), r.end(), [&](std::int64_t v) { return v > operation.bias; });
      }
      const auto found = static_cast<std::int64_t>(values[a * whole_blocks(rows) + row]);
      CHECK_EQUAL(found, expected, "op", static_cast<int>(operation.op));
      CHECK(found >= static_cast<std::int64_t>(ranges[a].min) && found <= static_cast<std::int64_t>(ranges[a].max));
    }
  }
}

}  // namespace

TEST(values_are_those_of_moved_atoms) {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    check_values<std::int32_t>(random, CellType::i32);
    check_values<std::int64_t>(random, CellType::i64);
  }
}

TEST(long_windows_are_taken_in_pieces) {
  Dictionary dictionary({1000}, false);
  dictionary.set_pool({{Op::mean}, {1000}, {}});
  dictionary.add_patch({{1}, {1}}, {Boundary::inside}, {true});
  std::vector<std::int64_t> x(1000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::int64_t>(i);
  const Table table = make_table(x.data(), 1, dictionary, CellType::i32, Quantiser(0, 1e9));
  AtomList atoms;
  Stream stream(0);
  Sampler(dictionary).draw(stream, 1, atoms);
  const auto* row = reinterpret_cast<const std::int32_t*>(table.buffer().row(0));
  CHECK_EQUAL(atom_value(row, atoms.cell.data(), atoms.weight.data(), atoms.cell.size(), atoms.operation[0]), 999 * 1000 / 2);
}

TEST(a_kernel_wins_where_it_responds_more_than_each_rival) {
  const auto kernel = [](std::int32_t a, std::int32_t b) { return Kernel{{2}, {{0, a}, {1, b}}}; };
  for (const Op op : {Op::win, Op::lose}) {
    Dictionary dictionary({300}, false);
    dictionary.set_pool({{op}, {300}, {}});
    dictionary.add_kernels({kernel(1, 0), kernel(0, 1), kernel(2, -1)}, false, 2);
    Random random(3);
    std::vector<std::int64_t> x(300);
    for (auto& value : x) value = random.between(0, 3);
    const Table table = make_table(x.data(), 1, dictionary, CellType::i32, Quantiser(0, 1e9));
    AtomList atoms;
    Stream stream(1);
    Sampler(dictionary).draw(stream, 20, atoms);
    const auto* row = reinterpret_cast<const std::int32_t*>(table.buffer().row(0));
    std::int64_t all = 0;
    for (std::size_t atom = 0; atom < atoms.size(); ++atom) {
      const std::size_t begin = atoms.begin[atom];
      const double* w = &atoms.weight[begin];
      CHECK_EQUAL(atoms.begin[atom + 1] - begin, 6u);
      std::int64_t wins = 0;
      for (std::size_t i = 0; i + 1 < x.size(); ++i) {
        std::int64_t response[3];
        for (std::size_t k = 0; k < 3; ++k)
          response[k] = static_cast<std::int64_t>(w[2 * k]) * x[i] + static_cast<std::int64_t>(w[2 * k + 1]) * x[i + 1];
        wins += response[0] > response[1] && response[0] > response[2];
      }
      all += wins;
      CHECK((w[0] + w[1] > 0) == (op == Op::win));
      CHECK_EQUAL(atom_value(row, &atoms.cell[begin], w, 6, atoms.operation[atom]), wins);
    }
    CHECK(all > 1000);
    std::vector<double> own;  // weights, without those that are zero
    for (std::size_t atom = 0; atom < atoms.size(); ++atom)
      for (std::size_t t = atoms.begin[atom]; t < atoms.begin[atom] + 2; ++t)
        if (atoms.weight[t] != 0.0) own.push_back(atoms.weight[t]);
    atoms.drop_rivals();
    CHECK(own.size() < 40 && atoms.weight == own);
    CHECK_EQUAL(atoms.cell.size(), own.size());
    CHECK_EQUAL(atoms.begin.back(), own.size());
  }
}

TEST(kernels_that_cannot_compete_are_refused) {
  const auto add = [](std::vector<Kernel> kernels, std::size_t rivals) {
    Dictionary dictionary({9}, false);
    dictionary.set_pool({{Op::win}, {9}, {}});
    dictionary.add_kernels(std::move(kernels), false, rivals);
  };
  const Kernel one{{2}, {{0, 1}, {1, 1}}}, longer{{3}, {{0, 1}, {1, 1}}}, fewer{{2}, {{0, 1}}};
  add({one, one}, 1);
  CHECK_THROWS(std::invalid_argument, add({one, one}, 0));
  CHECK_THROWS(std::invalid_argument, add({one, one}, 2));
  CHECK_THROWS(std::invalid_argument, add({one, longer}, 1));
  CHECK_THROWS(std::invalid_argument, add({one, fewer}, 1));
  Dictionary boxes({9}, false);
  boxes.set_pool({{Op::lose}, {9}, {}});
  CHECK_THROWS(std::invalid_argument, boxes.add_patch({{1}, {2}}, {Boundary::inside}, {true}));
}

TEST(biases_beyond_the_type_are_above_or_below_all) {
  const std::int16_t responses[] = {-32767, 0, 32767};
  for (const std::int64_t bias : {std::int64_t{-1} << 40, std::int64_t{-1}, std::int64_t{1} << 40}) {
    Reducer<std::int16_t> reducer(Op::proportion, bias);
    reducer.take(responses, 3);
    CHECK_EQUAL(reducer.value(), bias < -32768 ? 3 : bias < 0 ? 2 : 0);
  }
}

TEST(impossible_pools_are_refused) {
  const auto add = [](Pool pool) {
    Dictionary dictionary({4, 5}, false);
    dictionary.set_pool(std::move(pool));
    dictionary.add_patch({{1, 1}, {2, 2}}, {Boundary::wrap, Boundary::zero}, {false, true});
  };
  add({{Op::max}, {-1, 3}, {}});
  CHECK_THROWS(std::invalid_argument, add({{Op::max}, {-1, 6}, {}}));
  CHECK_THROWS(std::invalid_argument, add({{Op::max}, {-1, -2}, {}}));
  CHECK_THROWS(std::invalid_argument, add({{Op::max}, {-1, -1}, {}}));
  CHECK_THROWS(std::invalid_argument, add({{Op::max}, {3}, {}}));
  CHECK_THROWS(std::invalid_argument, add({{Op::max}, {-1, 0}, {5}}));
  CHECK_THROWS(std::invalid_argument, add({{Op::variance}, {-1, 3}, {}}));
  CHECK_THROWS(std::invalid_argument, add({{Op::max}, {3, 3}, {}}));  // the first axis has no order
}
