#include "atoms/dictionary.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "atoms/sampler.hpp"
#include "check.hpp"
#include "data.hpp"

using namespace morf;

static constexpr std::uint64_t certain = ~std::uint64_t{0};

static std::vector<std::uint64_t> equal_parts(std::size_t n) {
  std::vector<std::uint64_t> cumulative(n);
  for (std::size_t i = 0; i < n; ++i) cumulative[i] = i + 1 == n ? certain : certain / n * (i + 1);
  return cumulative;
}

static std::vector<std::uint32_t> cells_of(const AtomList& atoms, std::size_t i) {
  return {atoms.cell.begin() + atoms.begin[i], atoms.cell.begin() + atoms.begin[i + 1]};
}

static AtomList draw(const Dictionary& dictionary, std::uint64_t key, std::size_t n) {
  Sampler sampler(dictionary);
  Stream stream(key);
  AtomList atoms;
  sampler.begin_node();
  for (std::size_t i = 0; i < n; ++i) sampler.draw(stream, 1, atoms);
  return atoms;
}

TEST(axis_draws_each_feature_once) {
  for (const std::int64_t p : {1, 2, 3, 17, 100}) {
    Dictionary dictionary({p}, false);
    dictionary.add_axis();
    Sampler sampler(dictionary);
    CHECK(sampler.enumerable());
    Stream stream(3);
    AtomList atoms;
    for (std::int64_t i = 0; i < p; ++i) sampler.draw(stream, 1, atoms);
    CHECK_EQUAL(atoms.size(), p);
    CHECK_EQUAL(std::set<std::uint32_t>(atoms.cell.begin(), atoms.cell.end()).size(), p);
    CHECK(*std::max_element(atoms.cell.begin(), atoms.cell.end()) < p);
    for (const double weight : atoms.weight) CHECK_EQUAL(weight, 1.0);
    Stream before = stream;
    for (int i = 0; i < 3; ++i) sampler.draw(stream, 1, atoms);
    CHECK_EQUAL(atoms.size(), p, "an exhausted axis gives no atom");
    CHECK_EQUAL(stream.next(), before.next(), "and consumes nothing");
  }
}

TEST(permutation_starts_at_the_identity_at_each_node) {
  Dictionary dictionary({6, 5}, false);
  dictionary.add_axis();
  Sampler sampler(dictionary);
  Random random(2);
  for (std::uint64_t node = 0; node < 200; ++node) {
    const auto draws = static_cast<std::size_t>(random.between(0, 35));
    sampler.begin_node();
    AtomList atoms;
    Stream stream(node);
    for (std::size_t i = 0; i < draws; ++i) sampler.draw(stream, 1, atoms);

    std::vector<std::uint32_t> order(30);  // the definition
    for (std::uint32_t i = 0; i < 30; ++i) order[i] = i;
    Stream again(node);
    for (std::size_t i = 0; i < std::min<std::size_t>(draws, 30); ++i) {
      std::swap(order[i], order[i + again.below(30 - i)]);
      CHECK_EQUAL(atoms.cell[i], order[i], "node", node, "draw", i);
    }
    CHECK_EQUAL(atoms.size(), std::min<std::size_t>(draws, 30));
  }
}

static AtomList three_atoms() {
  AtomList atoms;
  atoms.add_term(1, 2.0);
  atoms.close_atom();
  atoms.add_term(0, -1.0);
  atoms.add_term(3, 0.5);
  atoms.close_atom();
  atoms.add_term(2, 1.0);
  atoms.close_atom();
  return atoms;
}

TEST(finite_uniform_draws_each_atom_once) {
  Dictionary dictionary({4}, false);
  dictionary.add_finite(three_atoms(), {});
  const AtomList atoms = draw(dictionary, 1, 10);
  CHECK_EQUAL(atoms.size(), 3u);
  std::multiset<std::vector<std::uint32_t>> seen;
  for (std::size_t i = 0; i < atoms.size(); ++i) seen.insert(cells_of(atoms, i));
  CHECK(seen == (std::multiset<std::vector<std::uint32_t>>{{1}, {0, 3}, {2}}));
}

TEST(finite_weighted_follows_its_probabilities) {
  Dictionary dictionary({4}, false);
  const std::uint64_t half = std::uint64_t{1} << 63;
  dictionary.add_finite(three_atoms(), {half, half, certain});  // the middle atom has no probability
  CHECK(!Sampler(dictionary).enumerable());
  const AtomList atoms = draw(dictionary, 1, 4000);
  CHECK_EQUAL(atoms.size(), 4000u);
  Stream stream(1);
  int first = 0;
  for (std::size_t i = 0; i < atoms.size(); ++i) {
    const bool is_first = stream.next() <= half;
    first += is_first;
    CHECK(cells_of(atoms, i) == std::vector<std::uint32_t>{is_first ? 1u : 2u});
  }
  CHECK(std::abs(first - 2000) < 200, first);
}

TEST(guided_sums_follow_their_probabilities) {
  Dictionary dictionary({4}, false);
  dictionary.add_axis();
  dictionary.add_sparse({certain / 2, certain});  // one feature or two
  dictionary.set_cumulative({certain / 2, certain});
  dictionary.guide({certain / 2, certain / 8 * 7, certain / 16 * 15, certain});
  const AtomList atoms = draw(dictionary, 5, 20000);
  std::vector<int> alone(4);
  for (std::size_t i = 4; i < atoms.size(); ++i) {
    const std::vector<std::uint32_t> cells = cells_of(atoms, i);
    CHECK(cells.size() == 1 || (cells.size() == 2 && cells[0] < cells[1] && cells[1] < 4), "features are distinct");
    if (cells.size() == 1) ++alone[cells[0]];
  }
  const double total = alone[0] + alone[1] + alone[2] + alone[3];
  const double expected[] = {1.0 / 2, 3.0 / 8, 1.0 / 16, 1.0 / 16};
  for (std::size_t k = 0; k < 4; ++k) CHECK(std::abs(alone[k] / total - expected[k]) < 0.03, k, alone[k], total);
  const std::vector<std::vector<std::uint64_t>> wrong{
      {}, {certain}, {1, 2, 3, 4}, {0, 1, 2, certain}, {1, 1, 2, certain}, {1, 3, 2, certain}, {1, 2, certain, certain}};
  for (const auto& features : wrong) {
    bool refused = false;
    try {
      dictionary.guide(features);
    } catch (const std::invalid_argument&) {
      refused = true;
    }
    CHECK(refused, features.size());
  }
}

TEST(sparse_follows_floyd) {
  Dictionary dictionary({3, 7}, false);
  dictionary.add_sparse(equal_parts(21));
  const AtomList atoms = draw(dictionary, 4, 2000);
  Stream stream(4);
  std::vector<int> used(21, 0), sizes(22, 0);
  int negative = 0;
  for (std::size_t i = 0; i < atoms.size(); ++i) {
    const std::uint64_t x = stream.next();
    std::uint64_t nonzeros = 1;
    while (x > equal_parts(21)[nonzeros - 1]) ++nonzeros;
    std::map<std::uint64_t, double> expected;
    for (std::uint64_t j = 21 - nonzeros; j < 21; ++j) {
      const std::uint64_t t = stream.below(j + 1), taken = expected.count(t) ? j : t;
      expected[taken] = stream.next() >> 63 ? -1.0 : 1.0;
    }
    std::vector<std::uint32_t> cells;
    std::vector<double> weights;
    for (const auto& [cell, weight] : expected) {
      cells.push_back(static_cast<std::uint32_t>(cell));
      weights.push_back(weight);
      ++used[cell];
      negative += weight < 0;
    }
    ++sizes[nonzeros];
    CHECK_EQUAL(cells.size(), nonzeros, "features are distinct");
    CHECK_EQUAL(cells_of(atoms, i), cells, "atom", i);
    CHECK((std::vector<double>(atoms.weight.begin() + atoms.begin[i], atoms.weight.begin() + atoms.begin[i + 1]) == weights));
  }
  const double mean = 2000.0 * 11.0 / 21.0;
  for (const int count : used) CHECK(std::abs(count - mean) < 150, count, mean);
  for (std::size_t size = 1; size <= 21; ++size) CHECK(sizes[size] > 40, size, sizes[size]);
  CHECK(std::abs(negative - 11000) < 600, negative);
}

// Axis by axis, in order: the size, then the index set.
static std::vector<std::vector<std::int64_t>> patch_by_definition(const Component& patch, Stream& stream) {
  std::vector<std::vector<std::int64_t>> sets;
  for (const PatchAxis& axis : patch.axes) {
    const std::int64_t W = axis.length;
    const std::int64_t w = axis.min_size + static_cast<std::int64_t>(stream.below(axis.max_size - axis.min_size + 1));
    std::set<std::int64_t> set;
    if (!axis.contiguous) {
      for (std::int64_t j = W - w; j < W; ++j) {
        const auto t = static_cast<std::int64_t>(stream.below(j + 1));
        set.insert(set.count(t) ? j : t);
      }
    } else {
      std::int64_t start = 0;
      if (axis.boundary == Boundary::zero) start = static_cast<std::int64_t>(stream.below(W + w - 1)) - (w - 1);
      if (axis.boundary == Boundary::inside) start = static_cast<std::int64_t>(stream.below(W - w + 1));
      if (axis.boundary == Boundary::wrap) start = static_cast<std::int64_t>(stream.below(W));
      for (std::int64_t i = start; i < start + w; ++i) {
        if (axis.boundary == Boundary::wrap) set.insert(i % W);
        else if (i >= 0 && i < W) set.insert(i);
        else CHECK(axis.boundary == Boundary::zero, "outside the axis");
      }
    }
    sets.emplace_back(set.begin(), set.end());
  }
  return sets;
}

TEST(patches_are_products_of_index_sets) {
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    const std::vector<std::int64_t> shape = random_shape(random, 1 + random.index(5));
    for (const bool direct : {false, true}) {
      Dictionary dictionary(shape, direct);
      if (random.chance(0.5)) dictionary.add_axis();  // moves the patch's plane
      add_random_patch(random, dictionary, 60);
      if (dictionary.components().size() > 1) dictionary.set_cumulative({0, certain});
      const Component& patch = dictionary.components().back();
      const auto of_cell = features_of_cells(dictionary.layout());
      const auto p = static_cast<std::size_t>(dictionary.features());
      const AtomList atoms = draw(dictionary, round, 10);
      CHECK_EQUAL(atoms.size(), 10u);
      Stream stream(round);
      for (std::size_t i = 0; i < atoms.size(); ++i) {
        if (dictionary.components().size() > 1) stream.next();
        const auto sets = patch_by_definition(patch, stream);
        std::vector<double> expected(p, 0.0);
        for (std::size_t feature = 0; feature < p; ++feature) {
          std::int64_t rest = static_cast<std::int64_t>(feature);
          bool inside = true;
          for (std::size_t axis = shape.size(); axis-- > 0;) {
            inside &= std::count(sets[axis].begin(), sets[axis].end(), rest % shape[axis]) == 1;
            rest /= shape[axis];
          }
          expected[feature] = inside;
        }
        CHECK_EQUAL(weights_on_features(atoms, i, of_cell, p), expected, "shape", shape, "round", round, "atom", i);
        const auto cells = cells_of(atoms, i);
        for (const std::uint32_t cell : cells) CHECK(cell < dictionary.layout().zero_cell());
        if (direct) {
          CHECK(std::is_sorted(cells.begin(), cells.end()), "terms of a direct patch are in feature order");
          CHECK_EQUAL(dictionary.layout().planes.size(), 1u);
        }
      }
    }
  }
}

// Draws from a dictionary and from its twin whose boxes are drawn as other patches are; both take the same numbers.
static void check_box(const Dictionary& dictionary, std::uint64_t key) {
  const AtomList atoms = draw(dictionary, key, 30);
  Dictionary general = dictionary;
  for (const Component& component : general.components()) const_cast<Component&>(component).box_corners = 0;
  const AtomList expected = draw(general, key, 30);
  CHECK_EQUAL(atoms.begin, expected.begin, "shape", dictionary.shape(), "key", key);
  CHECK_EQUAL(atoms.cell, expected.cell, "shape", dictionary.shape(), "key", key);
  CHECK_EQUAL(atoms.weight, expected.weight, "shape", dictionary.shape(), "key", key);
  Sampler fast(dictionary), slow(general);
  Stream fast_stream(key), slow_stream(key);
  AtomList scratch;
  for (int i = 0; i < 5; ++i) {
    fast.draw(fast_stream, 1, scratch);
    slow.draw(slow_stream, 1, scratch);
    Stream after = fast_stream, expected_after = slow_stream;
    CHECK_EQUAL(after.next(), expected_after.next(), "numbers consumed", "shape", dictionary.shape());
  }
}

TEST(boxes_are_drawn_as_other_patches_are) {
  Random random(5);
  int boxes = 0;
  for (std::uint64_t round = 0; round < 600; ++round) {
    Dictionary dictionary(random_shape(random, random.index(6)), random.chance(0.1));
    if (random.chance(0.3)) dictionary.add_axis();  // moves the patch's plane
    std::vector<std::int64_t> low, high;
    std::vector<Boundary> boundary;
    std::vector<bool> contiguous;
    bool box = true;
    std::size_t corners = 1;
    for (const std::int64_t length : dictionary.shape()) {
      high.push_back(random.chance(0.3) ? 1 : random.chance(0.2) ? length : random.between(1, length));
      low.push_back(random.chance(0.3) ? high.back() : random.between(1, high.back()));
      // Sets of one index are boxes whatever the rest.
      const bool odd = high.back() == 1 || random.chance(0.03);
      boundary.push_back(static_cast<Boundary>(random.index(odd ? 3 : 2)));
      contiguous.push_back(!odd || random.chance(0.5));
      if (high.back() == 1) continue;
      box &= contiguous.back() && boundary.back() != Boundary::wrap && !dictionary.direct();
      corners *= 2;
    }
    dictionary.add_patch({low, high}, boundary, contiguous);
    if (dictionary.components().size() > 1) dictionary.set_cumulative({0, certain});
    CHECK_EQUAL(dictionary.components().back().box_corners > 0, box && corners <= max_box_corners, "round", round);
    if (dictionary.components().back().box_corners == 0) continue;
    ++boxes;
    check_box(dictionary, round);
  }
  CHECK(boxes > 300, boxes);
}

TEST(boxes_have_at_most_four_wide_axes) {
  for (const std::size_t wide : {0, 1, 3, 4, 5})
    for (const Boundary boundary : {Boundary::zero, Boundary::inside}) {
      Dictionary dictionary({3, 4, 2, 3, 5}, false);
      std::vector<std::int64_t> low(5, 1), high(5, 1);
      for (std::size_t axis = 0; axis < wide; ++axis) high[axis] = 2;
      low[1] = high[1];
      dictionary.add_patch({low, high}, std::vector<Boundary>(5, boundary), std::vector<bool>(5, true));
      CHECK_EQUAL(dictionary.components()[0].box_corners > 0, wide <= 4, wide);
      for (std::uint64_t key = 0; key < 20; ++key) check_box(dictionary, key);
    }
}

TEST(every_index_is_covered_equally_at_a_zero_boundary) {
  Dictionary dictionary({10}, false);
  dictionary.add_patch({{4}, {4}}, {Boundary::zero}, {true});
  const auto of_cell = features_of_cells(dictionary.layout());
  const AtomList atoms = draw(dictionary, 8, 13000);
  std::vector<double> covered(10, 0.0);
  for (std::size_t i = 0; i < atoms.size(); ++i) {
    const auto weights = weights_on_features(atoms, i, of_cell, 10);
    CHECK(std::count(weights.begin(), weights.end(), 1.0) >= 1);
    for (std::size_t f = 0; f < 10; ++f) covered[f] += weights[f];
  }
  for (const double count : covered) CHECK(std::abs(count - 4000.0) < 300.0, count);
}

TEST(components_of_a_mixture_follow_their_probabilities) {
  Dictionary dictionary({5}, false);
  dictionary.add_axis();
  dictionary.add_patch({{2}, {3}}, {Boundary::inside}, {true});
  CHECK_THROWS(std::invalid_argument, Sampler(dictionary));
  dictionary.set_cumulative({certain / 4, certain});
  Sampler sampler(dictionary);
  CHECK(!sampler.enumerable());
  Stream stream(1);
  AtomList atoms;
  for (int i = 0; i < 400; ++i) sampler.draw(stream, 1, atoms);
  std::size_t raw = 0;
  for (const std::uint32_t cell : atoms.cell) raw += cell < 5;
  CHECK_EQUAL(raw, 5u, "the axis is exhausted");
  CHECK(atoms.size() > 250 && atoms.size() < 350, atoms.size());
  sampler.begin_node();
  atoms.clear();
  for (int i = 0; i < 40; ++i) sampler.draw(stream, 1, atoms);
  raw = 0;
  for (const std::uint32_t cell : atoms.cell) raw += cell < 5;
  CHECK_EQUAL(raw, 5u, "and fresh at the next node");
}

static std::vector<std::uint32_t> prefixed_axes(const Dictionary& dictionary) {
  std::vector<std::uint32_t> axes;
  for (const Plane& plane : dictionary.layout().planes) axes.push_back(plane.prefixed_axes);
  return axes;
}

TEST(planes_are_shared) {
  Dictionary dictionary({4, 6}, false);
  dictionary.add_axis();
  dictionary.add_patch({{1, 1}, {2, 3}}, {Boundary::zero, Boundary::zero}, {true, true});
  dictionary.add_patch({{2, 2}, {4, 4}}, {Boundary::wrap, Boundary::inside}, {true, true});
  dictionary.add_patch({{1, 1}, {1, 3}}, {Boundary::zero, Boundary::zero}, {true, true});  // one wide along the first axis
  dictionary.add_patch({{1, 1}, {2, 3}}, {Boundary::zero, Boundary::zero}, {false, true});
  dictionary.add_patch({{1, 1}, {2, 3}}, {Boundary::zero, Boundary::zero}, {false, false});
  CHECK_EQUAL(prefixed_axes(dictionary), (std::vector<std::uint32_t>{0, 3, 2}));
  CHECK_EQUAL(dictionary.layout().cells(), 3u * 24u + 1u);
  CHECK_EQUAL(dictionary.components()[4].first_cells[0], 48u);
  CHECK_EQUAL(dictionary.components()[5].first_cells[0], 0u);
}

TEST(impossible_dictionaries_are_refused) {
  using Shape = std::vector<std::int64_t>;
  for (const Shape& shape : {Shape{0}, Shape{-1}, Shape{3, 0}, Shape{1 << 15, 1 << 15}, Shape{std::int64_t{1} << 62}})
    CHECK_THROWS(std::invalid_argument, Dictionary(shape, false), "shape", shape);
  CHECK_EQUAL(Dictionary({1 << 29}, false).features(), 1 << 29);
  Dictionary dictionary({4}, false);
  CHECK_THROWS(std::invalid_argument, Sampler(dictionary));
  CHECK_THROWS(std::invalid_argument, dictionary.add_finite(AtomList(), {}));
  CHECK_THROWS(std::invalid_argument, dictionary.add_finite(three_atoms(), {certain}));
  CHECK_THROWS(std::invalid_argument, dictionary.add_finite(three_atoms(), {1, 2, 3}));
  AtomList outside;
  outside.add_term(4, 1.0);
  outside.close_atom();
  CHECK_THROWS(std::invalid_argument, dictionary.add_finite(outside, {}));
  CHECK_THROWS(std::invalid_argument, dictionary.add_sparse({}));
  CHECK_THROWS(std::invalid_argument, dictionary.add_sparse({certain - 1}));
  CHECK_THROWS(std::invalid_argument, dictionary.add_sparse(equal_parts(5)));
  const auto patch = [&](std::vector<std::int64_t> low, std::vector<std::int64_t> high) {
    dictionary.add_patch({low, high}, std::vector<Boundary>(low.size()), std::vector<bool>(low.size()));
  };
  CHECK_THROWS(std::invalid_argument, patch({0}, {1}));
  CHECK_THROWS(std::invalid_argument, patch({3}, {2}));
  CHECK_THROWS(std::invalid_argument, patch({1}, {5}));
  CHECK_THROWS(std::invalid_argument, patch({1, 1}, {2, 2}));
  CHECK_EQUAL(dictionary.components().size(), 0u);
  dictionary.add_axis();
  CHECK_THROWS(std::invalid_argument, dictionary.set_cumulative({1}));
  CHECK_THROWS(std::invalid_argument, dictionary.set_cumulative({1, certain}));
}

TEST(a_shape_whose_size_overflows_is_refused) {
  CHECK_THROWS(std::invalid_argument, Dictionary({8, std::int64_t{1} << 62}, false));
}

TEST(no_probabilities_for_no_components_are_refused) {
  Dictionary dictionary({4}, false);
  CHECK_THROWS(std::invalid_argument, dictionary.set_cumulative({}));
}

// A view is a mask of 32 axes.
TEST(more_axes_than_a_view_has_bits_are_refused) {
  const auto patches_along_the_last_of = [](std::size_t rank) {
    std::vector<std::int64_t> shape(rank, 1), size(rank, 1);
    shape.back() = 5;
    size.back() = 3;
    Dictionary dictionary(shape, false);
    dictionary.add_patch({size, size}, std::vector<Boundary>(rank, Boundary::inside), std::vector<bool>(rank, true));
    return dictionary;
  };
  const Dictionary dictionary = patches_along_the_last_of(32);
  CHECK_EQUAL(prefixed_axes(dictionary), std::vector<std::uint32_t>{1u << 31});
  CHECK_EQUAL(draw(dictionary, 1, 10).size(), 10u);
  CHECK_THROWS(std::invalid_argument, patches_along_the_last_of(33));
}

static Weights numbered(std::vector<std::uint32_t> arrays, std::size_t cells) {
  Weights weights;
  weights.arrays = std::move(arrays);
  for (std::size_t i = 0; i < cells; ++i) weights.listed.push_back(static_cast<std::int32_t>(i + 1));
  return weights;
}

TEST(listed_weights_lie_where_the_box_lies) {
  Dictionary dictionary({5}, false);
  dictionary.add_patch({{2}, {3}}, {Boundary::wrap}, {true}, numbered({2, 1}, 7));  // 1 2 | 3 4 || 5 6 7
  CHECK_EQUAL(dictionary.layout().planes[0].prefixed_axes, 0u, "prefix sums do not serve weights");
  const AtomList atoms = draw(dictionary, 3, 300);
  std::set<double> firsts;
  for (std::size_t i = 0; i < atoms.size(); ++i) {
    const std::vector<std::uint32_t> cells = cells_of(atoms, i);
    CHECK(std::is_sorted(cells.begin(), cells.end()));
    const double* weight = &atoms.weight[atoms.begin[i]];
    const double least = *std::min_element(weight, weight + cells.size());
    firsts.insert(least);
    for (std::size_t t = 0; t < cells.size(); ++t) {
      const std::size_t start = std::min_element(weight, weight + cells.size()) - weight;
      CHECK_EQUAL((cells[start] + static_cast<std::uint32_t>(weight[t] - least)) % 5, cells[t]);
    }
  }
  CHECK(firsts == (std::set<double>{1.0, 3.0, 5.0}));
}

TEST(weights_that_do_not_fit_are_refused) {
  const auto add = [](const Weights& weights) {
    Dictionary dictionary({4, 4}, false);
    dictionary.add_patch({{1, 2}, {2, 3}}, {Boundary::zero, Boundary::zero}, {true, true}, weights);
  };
  add(numbered({1, 1, 1, 1}, 15));  // 1 x 2, 1 x 3, 2 x 2, 2 x 3
  CHECK_THROWS(std::invalid_argument, add(numbered({1, 1, 1}, 9)));
  CHECK_THROWS(std::invalid_argument, add(numbered({1, 1, 1, 1, 1}, 17)));
  CHECK_THROWS(std::invalid_argument, add(numbered({1, 0, 1, 1}, 12)));
  CHECK_THROWS(std::invalid_argument, add(numbered({1, 1, 1, 1}, 14)));
  CHECK_THROWS(std::invalid_argument, add(numbered({1, 1, 1, 1}, 16)));
  Weights both = numbered({1, 1, 1, 1}, 15);
  both.drawn = {1, -1};
  CHECK_THROWS(std::invalid_argument, add(both));
  Weights improbable;
  improbable.drawn = {1, 2};
  improbable.cumulative = {5};
  CHECK_THROWS(std::invalid_argument, add(improbable));
}
