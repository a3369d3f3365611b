// The checks of the atom record.
#include "atoms/atom_list.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>

#include "atoms/sampler.hpp"
#include "check.hpp"
#include "data.hpp"

using namespace morf;

static constexpr std::uint64_t certain = ~std::uint64_t{0};

static void refuse(const RowLayout& layout, const AtomList& atoms, const char* what, const std::function<void(AtomList&)>& damage,
                   bool real = false) {
  AtomList damaged = atoms;
  atoms.check(layout, real);
  damage(damaged);
  CHECK_THROWS(std::invalid_argument, damaged.check(layout, real), what);
}

TEST(sizes_cells_and_weights) {
  const RowLayout layout({5}, {Plane{}});
  const AtomList atoms{.begin = {0, 2, 2, 3}, .cell = {0, 4, 2}, .weight = {1.0, -3.0, 2.0}, .operation = {}};
  refuse(layout, atoms, "no offsets", [](auto& a) { a.begin.clear(); });
  refuse(layout, atoms, "first offset", [](auto& a) { a.begin[0] = 1; });
  refuse(layout, atoms, "offsets fall", [](auto& a) { a.begin[1] = 3, a.begin[2] = 2; });
  refuse(layout, atoms, "last offset", [](auto& a) { ++a.begin.back(); });
  refuse(layout, atoms, "a term too few", [](auto& a) { a.cell.pop_back(); });
  refuse(layout, atoms, "a weight too many", [](auto& a) { a.weight.push_back(1.0); });
  refuse(layout, atoms, "the zero cell", [](auto& a) { a.cell[0] = 5; });
  refuse(layout, atoms, "no such cell", [](auto& a) { a.cell[0] = 0xFFFFFFFFu; });
  for (const double weight : {0.5, 0x1.0p62, -0x1.0p62, std::nan(""), std::numeric_limits<double>::infinity()})
    refuse(layout, atoms, "weight", [&](auto& a) { a.weight[1] = weight; });
  for (const double weight : {0x1.0p62, std::nan(""), std::numeric_limits<double>::infinity()})
    refuse(layout, atoms, "real weight", [&](auto& a) { a.weight[1] = weight; }, true);
  refuse(layout, atoms, "too few operations", [](auto& a) { a.operation.resize(2); });
  refuse(layout, atoms, "operations of reals", [](auto& a) { a.operation.resize(3); }, true);
  refuse(layout, atoms, "an operation without terms", [](auto& a) { a.operation.resize(3), a.operation[1].op = Op::max; });
  refuse(layout, atoms, "a pooled atom in a plain plane", [](auto& a) { a.operation.resize(3), a.operation[0].op = Op::max; });
  refuse(layout, atoms, "a linear atom with a window",
         [](auto& a) { a.operation.resize(3), a.operation[0].window[1].count = 2; });
  refuse(layout, atoms, "a linear atom with a bias", [](auto& a) { a.operation.resize(3), a.operation[0].bias = 1; });
  const RowLayout summed({5}, {Plane{.prefixed_axes = 1}, Plane{.view = {.kind = View::Kind::square}}});
  CHECK_THROWS(std::invalid_argument, atoms.check(summed, true), "reals have no derived views");
}

// A box of two by three in a pooled plane of four by five, moved over two by two positions.
TEST(pooled_atoms_stay_inside_and_cancel) {
  const RowLayout layout({4, 5}, {Plane{}, Plane{.prefixed_axes = 3, .pooled = true},
                                  Plane{.view = {.kind = View::Kind::square}, .prefixed_axes = 3, .pooled = true}});
  const PlanePlace& place = layout.places[1];
  CHECK_EQUAL(place.lead, 6u);
  const auto cell = [&](std::int64_t row, std::int64_t column) {
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(place.begin + place.lead) + 5 * row + column);
  };
  const AtomList atoms{.begin = {0, 4},
                       .cell = {cell(0, -1), cell(0, 2), cell(2, -1), cell(2, 2)},
                       .weight = {1.0, -1.0, -1.0, 1.0},
                       .operation = {{.op = Op::max, .window = {{2, 5}, {2, 1}}}}};
  for (std::size_t t = 0; t < 4; ++t) {
    refuse(layout, atoms, "sign", [&](auto& a) { a.weight[t] = -a.weight[t]; });
    refuse(layout, atoms, "weight", [&](auto& a) { a.weight[t] *= 2; });
    refuse(layout, atoms, "cell", [&](auto& a) { ++a.cell[t]; });
    refuse(layout, atoms, "cell of another line", [&](auto& a) { a.cell[t] -= 5; });
    refuse(layout, atoms, "cell of another plane", [&](auto& a) { a.cell[t] += static_cast<std::uint32_t>(place.cells()); });
    refuse(layout, atoms, "plain cell", [&](auto& a) { a.cell[t] = 3; });
  }
  refuse(layout, atoms, "no positions", [](auto& a) { a.operation[0].window[0].count = 0; });
  refuse(layout, atoms, "a window beyond the axis", [](auto& a) { a.operation[0].window[1].count = 6; });
  refuse(layout, atoms, "a window beyond the plane", [](auto& a) { a.operation[0].window[0].count = 3; });
  refuse(layout, atoms, "a window of no axis", [](auto& a) { a.operation[0].window[0].stride = 2; });
  refuse(layout, atoms, "windows of one axis", [](auto& a) { a.operation[0].window[0] = {2, 1}; });
  refuse(layout, atoms, "a bias", [](auto& a) { a.operation[0].bias = 1; });
  refuse(layout, atoms, "bias", [](auto& a) { a.operation[0] = {.op = Op::proportion, .bias = std::int64_t{1} << 62}; });
  refuse(layout, atoms, "linear", [](auto& a) { a.operation[0] = {}; });
  refuse(layout, atoms, "no such operation", [](auto& a) { a.operation[0].op = Op::lose; });
  refuse(layout, atoms, "rivals", [](auto& a) { a.operation[0] = {.op = Op::win, .bias = 1}; });
  for (const std::int64_t rivals : {0, -1, 2, 4, 1 << 30})
    refuse(layout, atoms, "rivals", [&](auto& a) { a.operation[0] = {.op = Op::win, .bias = rivals}; });
  // In each of two planes weights cancel, but not across them.
  AtomList pair = atoms;
  for (std::size_t t = 0; t < 4; ++t) pair.add_term(atoms.cell[t] + static_cast<std::uint32_t>(place.cells()), -atoms.weight[t]);
  pair.begin = {0, 8};
  pair.check(layout, false);
  refuse(layout, pair, "across planes", [](auto& a) { a.weight[0] = a.weight[4] = 0.0; });
}

TEST(variances_are_sums_and_squares) {
  const RowLayout layout({6},
                         {Plane{.prefixed_axes = 1}, Plane{.view = {.kind = View::Kind::square}, .prefixed_axes = 1}, Plane{}});
  const AtomList atoms{
      .begin = {0, 4}, .cell = {1, 4, 7, 10}, .weight = {-1.0, 1.0, -3.0, 3.0}, .operation = {{.op = Op::variance}}};
  for (std::size_t t = 0; t < 4; ++t) {
    refuse(layout, atoms, "weight", [&](auto& a) { a.weight[t] *= 2; });
    refuse(layout, atoms, "sign", [&](auto& a) { a.weight[t] = -a.weight[t]; });
    refuse(layout, atoms, "cell", [&](auto& a) { ++a.cell[t]; });
  }
  refuse(layout, atoms, "area", [](auto& a) { a.weight[2] = a.weight[3] = 0.0; });
  refuse(layout, atoms, "odd", [](auto& a) { a.begin = {0, 3}, a.cell.pop_back(), a.weight.pop_back(); });
  refuse(layout, atoms, "no squares", [](auto& a) { a.cell[2] = 13, a.cell[3] = 16; });
  refuse(layout, atoms, "window", [](auto& a) { a.operation[0].window[0] = {2, 1}; });
}

// The conditions for sums that go on are those of a division without rest: against the division itself.
TEST(weights_cancel_if_the_sums_end) {
  Random random(1);
  int cancelled = 0, others = 0;
  for (int round = 0; round < 3000; ++round) {
    const auto shape = random_shape(random, 1 + random.index(3));
    const auto axes = static_cast<std::uint32_t>(random.index(std::size_t{1} << shape.size()));
    const RowLayout layout(shape, {Plane{.prefixed_axes = axes, .circular_axes = random.chance(0.3) ? 1u : 0u, .pooled = true}});
    const PlanePlace& place = layout.places[0];
    // Differences along the prefixed axes of a few cells, one of them perhaps changed.
    std::vector<std::int64_t> weights(place.cells(), 0);
    for (std::size_t t = 1 + random.index(3); t > 0; --t) weights[place.lead + random.index(place.size)] += random.between(-2, 2);
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      if (axes >> axis & 1u)
        for (std::size_t i = 0; i + static_cast<std::size_t>(place.stride[axis]) < weights.size(); ++i)
          weights[i] -= weights[i + static_cast<std::size_t>(place.stride[axis])];
    if (random.chance(0.5)) weights[random.index(weights.size())] += random.between(-1, 1);
    AtomList atoms;
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (weights[i] != 0) atoms.add_term(static_cast<std::uint32_t>(i), static_cast<double>(weights[i]));
    if (atoms.cell.empty()) continue;
    atoms.close_atom();
    atoms.operation.push_back({.op = Op::max});
    // Sums up to the plane's beginning: what reaches the lead would go on.
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      if (axes >> axis & 1u)
        for (std::size_t i = weights.size(); i-- > static_cast<std::size_t>(place.stride[axis]);)
          weights[i - static_cast<std::size_t>(place.stride[axis])] += weights[i];
    const bool ends = std::all_of(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(place.lead),
                                  [](std::int64_t w) { return w == 0; });
    bool passes = true;
    try {
      atoms.check(layout, false);
    } catch (const std::invalid_argument&) {
      passes = false;
    }
    CHECK_EQUAL(passes, ends, "round", round, "shape", shape, "axes", axes);
    (ends ? cancelled : others) += 1;
  }
  CHECK(cancelled > 800 && others > 400, cancelled, others);
}

TEST(what_is_drawn_passes) {
  Random random(2);
  for (int round = 0; round < 300; ++round) {
    const auto shape = random_shape(random, 1 + random.index(3));
    Dictionary dictionary(shape, false, {View{}, View{.kind = View::Kind::square}});
    std::vector<std::uint64_t> sizes;
    for (std::uint64_t k = 2; k <= 64; ++k) sizes.push_back((sizes.empty() ? 0 : sizes.back()) + 1000 / k);
    std::vector<std::int64_t> low(shape.size(), 1), reach(shape.size(), 0), windows(shape.size(), -1);
    windows.back() = 0;
    dictionary.set_views({0, 1});
    dictionary.add_variance({low, shape});
    dictionary.set_pool({{Op::max, Op::min, Op::mean, Op::proportion}, windows, sizes});
    dictionary.add_pair({low, shape}, reach);
    std::vector<Boundary> boundary(shape.size(), static_cast<Boundary>(random.index(3)));
    dictionary.add_patch({low, shape}, boundary, std::vector<bool>(shape.size(), true));
    dictionary.set_cumulative({certain / 3, certain / 3 * 2, certain});
    AtomList atoms;
    Stream stream(random.bits());
    Sampler(dictionary).draw(stream, 30, atoms);
    atoms.check(dictionary.layout(), false);
    ++check::checks;
  }
}
