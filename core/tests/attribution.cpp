// How the features of atoms share an amount: against atoms without prefix sums, moved over their windows by hand.
#include "forest/attribution.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "atoms/sampler.hpp"
#include "check.hpp"
#include "data.hpp"

using namespace morf;

namespace {

using Shape = std::vector<std::int64_t>;

constexpr std::uint64_t certain = ~std::uint64_t{0};

// Two views, and components of some of the kinds; the same for a direct dictionary and another.
struct Recipe {
  enum Kind { patch, haar, pair, sparse };
  struct Part {
    Kind kind;
    bool pooled;
    Shape low, high, windows, reach;
    std::vector<Boundary> boundary;
    std::vector<bool> contiguous;
  };
  std::vector<Part> parts;

  Recipe(Random& random, const Shape& shape) {
    const bool pools = random.chance(0.6);
    for (std::size_t count = 1 + random.index(3); count > 0; --count) {
      Part part{static_cast<Kind>(random.index(4)), false, {}, {}, {}, {}, {}, {}};
      if (part.kind == haar && *std::max_element(shape.begin(), shape.end()) < 2) part.kind = patch;
      part.pooled = pools && part.kind != sparse && random.chance(0.8);
      std::size_t moved = 0;
      for (std::size_t axis = shape.size(); axis-- > 0;) {
        part.high.insert(part.high.begin(), random.between(1, shape[axis]));
        part.low.insert(part.low.begin(), part.kind == haar ? 1 : random.between(1, part.high.front()));
        part.reach.insert(part.reach.begin(), random.between(0, shape[axis] - 1));
        part.boundary.insert(part.boundary.begin(), static_cast<Boundary>(random.index(3)));
        const bool moves = moved < 2 && (axis + 1 == shape.size() || random.chance(0.7));
        moved += moves;
        part.contiguous.insert(part.contiguous.begin(), moves || random.chance(0.6));
        part.windows.insert(part.windows.begin(), !moves ? -1 : random.chance(0.5) ? 0 : random.between(1, shape[axis]));
      }
      parts.push_back(part);
    }
  }

  Dictionary dictionary(const Shape& shape, bool direct) const {
    Dictionary made(shape, direct, {View{}, View{.kind = View::Kind::square}});
    std::vector<std::uint64_t> sizes, cumulative, nonzeros;
    for (std::uint64_t k = 2; k <= 64; ++k) sizes.push_back((sizes.empty() ? 0 : sizes.back()) + 1000 / k);
    std::vector<bool> lobed;
    for (const std::int64_t length : shape) lobed.push_back(length >= 2);
    for (const auto& part : parts) {
      made.set_pool(part.pooled ? Pool{{Op::max, Op::proportion}, part.windows, sizes} : Pool{});
      made.set_views(part.kind == sparse ? std::vector<std::uint32_t>{0} : std::vector<std::uint32_t>{0, 1});
      switch (part.kind) {
        case patch: made.add_patch({part.low, part.high}, part.boundary, part.contiguous); break;
        case haar: made.add_haar({part.low, part.high}, lobed, {Lobes::two}); break;
        case pair: made.add_pair({part.low, part.high}, part.reach); break;
        case sparse: made.add_sparse({certain}); break;
      }
      cumulative.push_back(certain / parts.size() * (cumulative.size() + 1));
    }
    cumulative.back() = certain;
    made.set_cumulative(cumulative);
    return made;
  }
};

// The sizes of an atom's weights on the features, over views and positions.
std::vector<double> sizes_by_hand(const Shape& shape, std::size_t features, const AtomList& atoms, std::size_t a) {
  std::vector<double> weights(2 * features, 0.0), sizes(features, 0.0);
  for (std::size_t t = atoms.begin[a]; t < atoms.begin[a + 1]; ++t) weights.at(atoms.cell[t]) += atoms.weight[t];
  const Operation operation = atoms.operation.empty() ? Operation{} : atoms.operation[a];
  for (std::size_t i = 0; i < operation.window[0].count; ++i)
    for (std::size_t j = 0; j < operation.window[1].count; ++j)
      for (std::size_t cell = 0; cell < 2 * features; ++cell)
        if (weights[cell] != 0.0) sizes[moved(shape, cell % features, operation, i, j)] += std::abs(weights[cell]);
  return sizes;
}

struct Seen {
  int direct = 0, differences = 0, pooled = 0;
};

void check_shares(Random& random, Seen& seen) {
  const Shape shape = random_shape(random, 1 + random.index(3));
  const Recipe recipe(random, shape);
  const Dictionary dictionary = recipe.dictionary(shape, false), direct = recipe.dictionary(shape, true);
  const auto features = static_cast<std::size_t>(dictionary.features());
  constexpr std::size_t count = 20, outputs = 2;
  AtomList atoms, plain;
  const std::uint64_t key = random.bits();
  Stream one(key), other(key);
  Sampler(dictionary).draw(one, count, atoms);
  Sampler(direct).draw(other, count, plain);
  CHECK_EQUAL(atoms.size(), plain.size());

  const RowLayout layout = dictionary.layout();
  atoms.check(layout, false);  // what the sampler draws passes
  Shares shares(layout, atoms.operation);
  (shares.direct() ? seen.direct : seen.differences) += 1;
  // All atoms at once, with an amount of each output: sums come last.
  std::vector<std::uint64_t> grid(features * outputs, 0);
  std::vector<std::int64_t> expected(features * outputs, 0);
  for (std::size_t a = 0; a < atoms.size(); ++a) {
    const Operation operation = atoms.operation.empty() ? Operation{} : atoms.operation[a];
    seen.pooled += operation.positions() > 1;
    std::vector<Shares::Part> parts;
    const double mass = shares.add(&atoms.cell[atoms.begin[a]], &atoms.weight[atoms.begin[a]],
                                   atoms.begin[a + 1] - atoms.begin[a], operation, parts);
    const std::vector<double> sizes = sizes_by_hand(shape, features, plain, a);
    double total = 0.0;
    for (const double size : sizes) total += size;
    CHECK_EQUAL(mass, total, "atom", a);
    const std::int64_t amount[outputs] = {random.between(-1000, 1000), random.between(-1000, 1000)};
    for (const auto& part : parts) {
      CHECK(part.cell < features);
      const double size = shares.direct() ? std::rint(part.size * mass) : part.size;
      CHECK_EQUAL(size, std::rint(size));
      for (std::size_t k = 0; k < outputs; ++k)
        grid[part.cell * outputs + k] += static_cast<std::uint64_t>(static_cast<std::int64_t>(size) * amount[k]);
    }
    for (std::size_t feature = 0; feature < features; ++feature)
      for (std::size_t k = 0; k < outputs; ++k)
        expected[feature * outputs + k] += static_cast<std::int64_t>(sizes[feature]) * amount[k];
  }
  shares.sum_up(grid.data(), outputs);
  for (std::size_t i = 0; i < grid.size(); ++i)
    CHECK_EQUAL(static_cast<std::int64_t>(grid[i]), expected[i], "of", i, "shape", shape);
}

}  // namespace

TEST(shares_are_those_of_moved_atoms) {
  Random random(1);
  Seen seen;
  for (int round = 0; round < 600; ++round) check_shares(random, seen);
  CHECK(seen.direct > 20 && seen.differences > 200 && seen.pooled > 1000, seen.direct, seen.differences, seen.pooled);
}
