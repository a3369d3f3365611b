#include "growth/grow.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <stdexcept>
#include <tuple>

#include "atoms/sampler.hpp"
#include "check.hpp"
#include "data.hpp"
#include "projection/byte_patches.hpp"
#include "projection/projector.hpp"
#include "splitting/criterion_search.hpp"

using namespace morf;

static constexpr std::uint64_t certain = ~std::uint64_t{0};
static constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

static bool is_classification(CriterionKind kind) { return kind == CriterionKind::gini || kind == CriterionKind::entropy; }

static constexpr CellType all_types[] = {CellType::u8, CellType::i32, CellType::i64, CellType::f64};

static std::vector<CriterionKind> all_criteria() {
  return {CriterionKind::gini, CriterionKind::entropy, CriterionKind::squared_error, CriterionKind::poisson,
          CriterionKind::absolute_error};
}

static constexpr Splitter all_splitters[] = {Splitter::exact, Splitter::histogram};

// Samples, a table of them, targets and a bag.
struct Data {
  Dictionary dictionary;
  CellType type;
  std::vector<std::vector<std::uint32_t>> of_cell;
  std::size_t rows, p;
  std::vector<double> x;
  std::vector<std::uint32_t> classes, count, weight;
  std::size_t class_count = 4;
  std::vector<std::int64_t> targets;
  int bits = 3;
  std::unique_ptr<Table> table;

  Data(Dictionary d, CellType t, std::size_t n)
      : dictionary(std::move(d)), type(t), of_cell(features_of_cells(dictionary.layout())), rows(n),
        p(static_cast<std::size_t>(dictionary.features())), x(n * p), classes(n), count(n), weight(n), targets(n) {}

  void make_table() { table = std::make_unique<Table>(::make_table(x.data(), rows, dictionary, type, Quantiser(0, 0x1.0p61))); }

  Trees grow(const GrowthRule& rule, std::uint64_t key, const Poll& given = {}, const Bag* leaf_bag = nullptr) const {
    const Poll poll = given ? given : [](std::size_t) {};
    Trees grown;
    with_cell_type(type, [&](auto cell) {
      Projector<decltype(cell)> projection(*table);
      grow_tree<ValueOf<decltype(cell)>>(projection, dictionary, key, bag(), all_targets(rule.criterion), rule, poll, grown,
                                         leaf_bag);
    });
    return grown;
  }

  Targets all_targets(CriterionKind criterion) const {
    if (is_classification(criterion)) return {.classes = classes, .class_count = class_count};
    return {.values = targets, .bits = bits};
  }
  Bag bag() const { return {count.data(), weight.data(), rows}; }

  // Whether a row goes right at a node, from the samples and not from the table.
  bool goes_right(const Trees& tree, std::size_t node, std::size_t row) const {
    const AtomList& atoms = tree.atoms;
    if (type == CellType::f64) {
      double sum = 0.0;
      for (std::size_t t = atoms.begin[node]; t < atoms.begin[node + 1]; ++t)
        sum += atoms.weight[t] * (atoms.cell[t] < p ? x[row * p + atoms.cell[t]] : 0.0);
      return sum > tree.real_threshold[node];
    }
    std::int64_t sum = 0;
    for (std::size_t t = atoms.begin[node]; t < atoms.begin[node + 1]; ++t)
      for (const std::uint32_t feature : of_cell.at(atoms.cell[t]))
        sum += static_cast<std::int64_t>(atoms.weight[t]) * static_cast<std::int64_t>(x[row * p + feature]);
    return 2 * sum > tree.threshold[node];
  }
};

static Dictionary random_dictionary(Random& random, CellType type) {
  const bool unsigned_cells = type == CellType::u8 || type == CellType::u16;
  const bool direct = type == CellType::f64;
  Dictionary dictionary(random_shape(random, 1 + random.index(3)), direct || random.chance(0.2));
  const auto sparse = [&] {
    if (unsigned_cells || dictionary.features() < 3) dictionary.add_axis();
    else dictionary.add_sparse({certain / 3, certain / 3 * 2, certain});
  };
  switch (random.index(5)) {
    case 0: dictionary.add_axis(); break;
    case 1: sparse(); break;
    case 2: add_random_patch(random, dictionary, 3); break;
    case 3: {
      AtomList atoms;
      for (std::uint32_t i = 0; i < 5; ++i) {
        atoms.add_term(static_cast<std::uint32_t>(random.index(dictionary.features())), unsigned_cells ? 1.0 : -2.0);
        atoms.add_term(static_cast<std::uint32_t>(random.index(dictionary.features())), direct ? 0.3 : 1.0);
        atoms.close_atom();
      }
      dictionary.add_finite(atoms, {});
      break;
    }
    default:
      dictionary.add_axis();
      add_random_patch(random, dictionary, 3);
      sparse();
      dictionary.set_cumulative({certain / 3, certain / 3 * 2, certain});
  }
  return dictionary;
}

static Data random_data(Random& random, CellType type, std::size_t rows) {
  Data data(random_dictionary(random, type), type, rows);
  // An atom above adds at most 27 values: these sums fit the type, and prefix sums of the narrow types wrap.
  static constexpr std::int64_t largest[] = {9, 2000, 1000, 1 << 25, std::int64_t{1} << 45, 1000};
  const std::int64_t high = random.chance(0.3) ? 3 : largest[static_cast<int>(type)];
  const bool unsigned_cells = type == CellType::u8 || type == CellType::u16;
  for (auto& value : data.x) {
    value = static_cast<double>(random.between(unsigned_cells ? 0 : -high, high));
    if (type == CellType::f64) value = value / 7.0;
  }
  const bool weighted = random.chance(0.3), bootstrap = random.chance(0.5);
  for (std::size_t i = 0; i < rows; ++i) {
    data.classes[i] = static_cast<std::uint32_t>(random.chance(0.7) ? data.x[i * data.p] > 1.0 : random.index(4));
    data.targets[i] = random.between(0, 20) + (data.x[i * data.p] > 1.0 ? 30 : 0);
    data.count[i] = bootstrap ? static_cast<std::uint32_t>(random.index(4)) : 1;
    data.weight[i] = weighted ? static_cast<std::uint32_t>(random.between(1, 1000)) : data.count[i];
  }
  data.count[0] = std::max(data.count[0], 1u);
  data.weight[0] = std::max(data.weight[0], 1u);
  data.make_table();
  return data;
}

static GrowthRule random_rule(Random& random, CriterionKind criterion, Splitter splitter) {
  GrowthRule rule;
  rule.criterion = criterion;
  rule.splitter = splitter;
  rule.candidates = 1 + random.index(12);
  if (random.chance(0.3)) rule.max_depth = random.index(6);
  if (random.chance(0.3)) rule.min_samples_split = 2 + random.index(20);
  if (random.chance(0.3)) rule.min_samples_leaf = 1 + random.index(10);
  if (random.chance(0.2)) rule.min_weight_fraction_leaf = 0.1 * random.unit();
  if (random.chance(0.2)) rule.min_impurity_decrease = 0.01 * random.unit();
  if (random.chance(0.3)) rule.max_leaf_nodes = 2 + random.index(20);
  return rule;
}

// What a criterion measures, summed over a node's weight: the gain is the decrease of this.
static double impurity(const Data& data, CriterionKind kind, const std::vector<std::uint32_t>& rows) {
  double w = 0.0, sum = 0.0;
  std::map<std::uint32_t, double> of_class;
  for (const std::uint32_t row : rows) {
    w += data.weight[row];
    sum += static_cast<double>(data.targets[row]) * data.weight[row];
    of_class[data.classes[row]] += data.weight[row];
  }
  const double unit = std::ldexp(1.0, -data.bits);
  double total = 0.0;
  switch (kind) {
    case CriterionKind::gini:
      for (const auto& [c, v] : of_class) total += v * (1.0 - v / w);
      return total;
    case CriterionKind::entropy:
      for (const auto& [c, v] : of_class) total -= v * std::log2(v / w);
      return total;
    case CriterionKind::squared_error:
      for (const std::uint32_t row : rows)
        total += data.weight[row] * std::pow((static_cast<double>(data.targets[row]) - sum / w) * unit, 2);
      return total;
    case CriterionKind::poisson:  // up to a sum that a split does not change
      return -sum * unit * std::log(sum / w);
    case CriterionKind::absolute_error:
    case CriterionKind::gradient: break;
  }
  double least = std::numeric_limits<double>::infinity();
  for (const std::uint32_t centre : rows) {
    double distance = 0.0;
    for (const std::uint32_t row : rows)
      distance += data.weight[row] * std::abs(static_cast<double>(data.targets[row] - data.targets[centre])) * unit;
    least = std::min(least, distance);
  }
  return least;
}

// Walks all rows of the bag down the tree and checks everything that a tree promises.
class TreeCheck {
 public:
  TreeCheck(const Trees& tree, const Data& data, const GrowthRule& rule) : tree_(tree), data_(data), rule_(rule) {
    const std::size_t nodes = tree.next.size();
    CHECK(nodes % 2 == 1 && nodes > 0, nodes);
    CHECK_EQUAL((data.type == CellType::f64 ? tree.real_threshold.size() : tree.threshold.size()), nodes);
    CHECK_EQUAL((data.type == CellType::f64 ? tree.threshold.size() : tree.real_threshold.size()), 0u);
    CHECK(tree.weight.size() == nodes && tree.gain.size() == nodes && tree.atoms.size() == nodes);
    tree.atoms.check(data.dictionary.layout(), data.type == CellType::f64);

    std::vector<std::uint32_t> rows;
    for (std::uint32_t row = 0; row < data.rows; ++row)
      if (data.count[row] > 0) rows.push_back(row), tree_weight_ += data.weight[row];
    min_weight_ = std::ceil(rule.min_weight_fraction_leaf * tree_weight_);
    visit(0, 0, rows);
    CHECK_EQUAL(visited_, nodes, "every node has one parent");
    CHECK_EQUAL(leaves_, (nodes + 1) / 2);
    CHECK(rule.max_leaf_nodes == unlimited || leaves_ <= rule.max_leaf_nodes, leaves_);
    if (is_classification(rule.criterion)) {
      CHECK_EQUAL(tree.leaves.distribution_size.size(), payloads_.size());
      CHECK_EQUAL(tree.leaves.value.size(), 0u);
    } else {
      CHECK_EQUAL(tree.leaves.value.size(), payloads_.size());
    }
  }

 private:
  void visit(std::size_t node, std::uint64_t depth, const std::vector<std::uint32_t>& rows) {
    ++visited_;
    double w = 0.0;
    std::uint64_t count = 0;
    for (const std::uint32_t row : rows) w += data_.weight[row], count += data_.count[row];
    CHECK(!rows.empty());
    CHECK_EQUAL(static_cast<double>(tree_.weight[node]), w, "node", node);
    CHECK(depth <= rule_.max_depth);
    if (node != 0) {
      CHECK(count >= rule_.min_samples_leaf, count);
      CHECK(w >= min_weight_, w);
    }
    if (tree_.next[node] < 0) return visit_leaf(node, rows);

    const auto child = static_cast<std::size_t>(tree_.next[node]);
    if (child <= node || child + 1 >= tree_.next.size()) throw std::runtime_error("child index");
    CHECK(count >= rule_.min_samples_split, count);
    CHECK(depth < rule_.max_depth);
    std::vector<std::uint32_t> side[2];
    for (const std::uint32_t row : rows) side[data_.goes_right(tree_, node, row)].push_back(row);
    if (!side[0].empty() && !side[1].empty()) {
      const double decrease = impurity(data_, rule_.criterion, rows) - impurity(data_, rule_.criterion, side[0]) -
                              impurity(data_, rule_.criterion, side[1]);
      const double gain = tree_.gain[node], expected = decrease / tree_weight_;
      CHECK(std::abs(gain - expected) <= 1e-6 * std::abs(expected) + 1e-9, gain, expected, "criterion",
            static_cast<int>(rule_.criterion));
      if (rule_.min_impurity_decrease > 0.0) CHECK(gain >= rule_.min_impurity_decrease * (1.0 - 1e-6), gain);
    }
    visit(child, depth + 1, side[0]);
    visit(child + 1, depth + 1, side[1]);
  }

  void visit_leaf(std::size_t node, const std::vector<std::uint32_t>& rows) {
    ++leaves_;
    CHECK_EQUAL(tree_.atoms.terms(node), 0u);
    const auto payload = static_cast<std::size_t>(-1 - static_cast<std::int64_t>(tree_.next[node]));
    std::map<std::uint32_t, std::uint64_t> of_class;
    for (const std::uint32_t row : rows) of_class[data_.classes[row]] += data_.weight[row];
    if (!is_classification(rule_.criterion)) {
      CHECK(payloads_.insert(payload).second && payload < tree_.leaves.value.size());
      CHECK_EQUAL(tree_.leaves.value[payload], leaf_value(rows), "node", node);
    } else if (of_class.size() == 1) {
      CHECK_EQUAL(payload, of_class.begin()->first);
    } else {
      if (payload < data_.class_count || payload - data_.class_count >= tree_.leaves.distribution_size.size())
        throw std::runtime_error("leaf payload");
      const std::size_t d = payload - data_.class_count;
      CHECK(payloads_.insert(payload).second);
      std::size_t begin = 0;
      for (std::size_t i = 0; i < d; ++i) begin += tree_.leaves.distribution_size[i];
      CHECK_EQUAL(tree_.leaves.distribution_size[d], of_class.size());
      auto expected = of_class.begin();  // in the order of the classes
      for (std::size_t i = begin; i < begin + tree_.leaves.distribution_size[d] && expected != of_class.end(); ++i, ++expected) {
        CHECK_EQUAL(tree_.leaves.distribution_class[i], expected->first);
        CHECK_EQUAL(tree_.leaves.distribution_weight[i], expected->second);
      }
    }
  }

  double leaf_value(const std::vector<std::uint32_t>& rows) const {
    std::vector<std::int64_t> targets;  // one for each unit of weight
    double sum = 0.0, w = 0.0;
    for (const std::uint32_t row : rows) {
      sum += static_cast<double>(data_.targets[row]) * data_.weight[row];
      w += data_.weight[row];
      targets.insert(targets.end(), data_.weight[row], data_.targets[row]);
    }
    if (rule_.criterion != CriterionKind::absolute_error) return sum / w;
    std::sort(targets.begin(), targets.end());
    return (static_cast<double>(targets[(targets.size() - 1) / 2]) + static_cast<double>(targets[targets.size() / 2])) / 2;
  }

  const Trees& tree_;
  const Data& data_;
  const GrowthRule& rule_;
  double tree_weight_ = 0.0, min_weight_ = 0.0;
  std::size_t visited_ = 0, leaves_ = 0;
  std::set<std::size_t> payloads_;
};

TEST(trees_keep_their_promises) {
  Random random(1);
  std::uint64_t key = 0;
  for (int round = 0; round < 4; ++round)
    for (const CellType type : all_types)
      for (const CriterionKind criterion : all_criteria())
        for (const Splitter splitter : all_splitters) {
          const Data data = random_data(random, type, 1 + random.index(random.chance(0.3) ? 300 : 60));
          const GrowthRule rule = random_rule(random, criterion, splitter);
          TreeCheck(data.grow(rule, ++key), data, rule);
        }
}

static auto parts_of(const Trees& t) {
  return std::tie(t.tree_size, t.next, t.threshold, t.real_threshold, t.weight, t.gain, t.atoms.begin, t.atoms.cell,
                  t.atoms.weight, t.leaves.distribution_size, t.leaves.distribution_class, t.leaves.distribution_weight,
                  t.leaves.value);
}

TEST(an_honest_tree_of_one_bag_is_a_plain_tree) {
  Random random(21);
  for (const CellType type : all_types)
    for (const CriterionKind criterion : all_criteria())
      for (const EmptyLeaf rule_for_empty : {EmptyLeaf::prune, EmptyLeaf::ignore, EmptyLeaf::empirical}) {
        const Data data = random_data(random, type, 1 + random.index(80));
        GrowthRule rule = random_rule(random, criterion, Splitter::exact);
        rule.empty_leaf = rule_for_empty;
        const Bag bag = data.bag();
        CHECK(parts_of(data.grow(rule, 5, {}, &bag)) == parts_of(data.grow(rule, 5)));
      }
}

TEST(pruned_trees_have_leaf_rows_in_all_leaves) {
  Random random(22);
  std::size_t pruned = 0;
  for (int round = 0; round < 20; ++round)
    for (const CellType type : all_types) {
      const Data data = random_data(random, type, 40 + random.index(60));
      GrowthRule rule;
      rule.candidates = 2;
      std::vector<std::uint32_t> count(data.rows, 0);
      for (int i = 0; i < 5; ++i) count[random.index(data.rows)] = 1;
      const Bag leaf_bag{count.data(), count.data(), data.rows};
      rule.empty_leaf = EmptyLeaf::ignore;
      const Trees whole = data.grow(rule, 6, {}, &leaf_bag);
      rule.empty_leaf = EmptyLeaf::prune;
      const Trees tree = data.grow(rule, 6, {}, &leaf_bag);
      pruned += tree.next.size() < whole.next.size();
      std::vector<int> reached(tree.next.size(), 0);
      for (std::size_t row = 0; row < data.rows; ++row) {
        if (count[row] == 0) continue;
        std::size_t node = 0;
        while (tree.next[node] >= 0) node = static_cast<std::size_t>(tree.next[node]) + data.goes_right(tree, node, row);
        ++reached[node];
      }
      for (std::size_t node = 0; node < tree.next.size(); ++node) {
        CHECK((tree.next[node] < 0) == (reached[node] > 0));
        if (tree.next[node] >= 0) {
          const auto left = static_cast<std::size_t>(tree.next[node]);
          CHECK_EQUAL(tree.weight[node], tree.weight[left] + tree.weight[left + 1]);
        }
      }
    }
  CHECK(pruned > 40, pruned);
}

TEST(children_have_their_share_of_the_weight) {
  Random random(23);
  for (const CellType type : all_types)
    for (const Splitter splitter : {Splitter::exact, Splitter::histogram}) {
      const Data data = random_data(random, type, 400);
      GrowthRule rule;
      rule.splitter = splitter;
      rule.candidates = 3;
      rule.min_child_fraction = 0.25;
      const Trees tree = data.grow(rule, 7);
      for (std::size_t node = 0; node < tree.next.size(); ++node)
        if (tree.next[node] >= 0)
          for (std::size_t side = 0; side < 2; ++side)
            CHECK(4 * tree.weight[static_cast<std::size_t>(tree.next[node]) + side] >= tree.weight[node]);
    }
}

TEST(one_row_and_one_class_make_a_leaf) {
  Random random(2);
  for (const CellType type : all_types)
    for (const CriterionKind criterion : all_criteria()) {
      Data data = random_data(random, type, 20);
      GrowthRule rule;
      rule.criterion = criterion;
      std::fill(data.classes.begin(), data.classes.end(), 2u);
      std::fill(data.targets.begin(), data.targets.end(), 5);
      CHECK_EQUAL(data.grow(rule, 1).next.size(), 1u);
      const Data one = random_data(random, type, 1);
      CHECK_EQUAL(one.grow(rule, 1).next.size(), 1u);
      TreeCheck(one.grow(rule, 1), one, rule);
    }
}

// With nothing but axes and no limits, a leaf is pure or all its rows are the same.
TEST(full_trees_end_where_rows_are_the_same) {
  Random random(3);
  for (const CellType type : all_types)
    for (const CriterionKind criterion : all_criteria())
      for (const Splitter splitter : all_splitters) {
        if (criterion == CriterionKind::absolute_error || criterion == CriterionKind::poisson) continue;  // may refuse to split
        Dictionary dictionary({3}, true);
        dictionary.add_axis();
        Data data(std::move(dictionary), type, 200);
        std::map<std::vector<double>, std::uint32_t> class_of;
        for (std::size_t i = 0; i < data.rows; ++i) {
          std::vector<double> row(3);
          for (std::size_t j = 0; j < 3; ++j) row[j] = data.x[3 * i + j] = static_cast<double>(random.between(0, 5));
          class_of.emplace(row, random.index(4));  // a function of the features, so that all leaves can be pure
          data.classes[i] = class_of[row];
          data.targets[i] = class_of[row];
          data.count[i] = data.weight[i] = 1;
        }
        data.make_table();
        GrowthRule rule;
        rule.criterion = criterion;
        rule.splitter = splitter;
        rule.candidates = 1;
        const Trees tree = data.grow(rule, 5);
        TreeCheck(tree, data, rule);
        CHECK_EQUAL(tree.leaves.distribution_size.size(), 0u, "no leaf is mixed");
        for (const double value : tree.leaves.value) CHECK_EQUAL(value, std::floor(value));
      }
}

// A node's path from the root and what happens there.
struct Step {
  std::int64_t threshold;
  std::vector<std::uint32_t> cell;
  float gain;
  std::uint32_t weight;
  std::map<std::uint32_t, std::uint32_t> leaf;  // class weights
  bool operator==(const Step&) const = default;
};

static std::map<std::string, Step> by_path(const Trees& tree, std::size_t class_count) {
  std::vector<std::string> path(tree.next.size());
  std::map<std::string, Step> steps;
  for (std::size_t node = 0; node < tree.next.size(); ++node) {
    Step step{tree.threshold[node], {}, tree.gain[node], tree.weight[node], {}};
    step.cell.assign(tree.atoms.cell.begin() + static_cast<std::ptrdiff_t>(tree.atoms.begin[node]),
                     tree.atoms.cell.begin() + static_cast<std::ptrdiff_t>(tree.atoms.begin[node + 1]));
    if (tree.next[node] >= 0) {
      path[tree.next[node]] = path[node] + "l";
      path[tree.next[node] + 1] = path[node] + "r";
    } else {
      const auto payload = static_cast<std::size_t>(-1 - static_cast<std::int64_t>(tree.next[node]));
      if (payload < class_count) {
        step.leaf[static_cast<std::uint32_t>(payload)] = tree.weight[node];
      } else {
        std::size_t begin = 0, d = payload - class_count;
        for (std::size_t i = 0; i < d; ++i) begin += tree.leaves.distribution_size[i];
        for (std::size_t i = begin; i < begin + tree.leaves.distribution_size[d]; ++i)
          step.leaf[tree.leaves.distribution_class[i]] = tree.leaves.distribution_weight[i];
      }
    }
    steps.emplace(path[node], std::move(step));
  }
  return steps;
}

TEST(best_first_takes_the_best_splits_of_the_full_tree) {
  Random random(4);
  for (int round = 0; round < 30; ++round) {
    const Data data = random_data(random, CellType::i32, 20 + random.index(200));
    GrowthRule rule = random_rule(random, CriterionKind::gini, all_splitters[round % 2]);
    rule.max_leaf_nodes = unlimited;
    const auto full = by_path(data.grow(rule, round), data.class_count);
    const std::size_t full_leaves = (full.size() + 1) / 2;

    rule.max_leaf_nodes = unlimited - 1;
    CHECK(by_path(data.grow(rule, round), data.class_count) == full, "the order of growth does not matter", round);

    for (const std::size_t limit : {1, 2, 3, 5, 17}) {
      rule.max_leaf_nodes = limit;
      const Trees tree = data.grow(rule, round);
      TreeCheck(tree, data, rule);
      CHECK_EQUAL((tree.next.size() + 1) / 2, std::min(limit, full_leaves));
      float worst_made = std::numeric_limits<float>::infinity(), best_left = 0.0f;
      for (const auto& [path, step] : by_path(tree, data.class_count)) {
        const Step& same = full.at(path);
        CHECK_EQUAL(step.weight, same.weight);
        if (!step.cell.empty()) {
          CHECK(step == same, path, round);
          worst_made = std::min(worst_made, step.gain);
        } else if (!same.cell.empty()) {
          best_left = std::max(best_left, same.gain);
        }
      }
      // The last split made was the best that could be made then; what is left was open then, or is its child.
      if (limit == 2 && full_leaves > 2) CHECK_EQUAL(tree.next[0], 1);
      if (limit == 3 && tree.next.size() == 5) {
        const auto l = full.find("l"), r = full.find("r");
        const bool left_split = tree.next[1] >= 0;
        CHECK((left_split ? l : r)->second.gain >= (left_split ? r : l)->second.gain);
      }
    }
  }
}

TEST(of_equal_gains_the_lower_index_is_split_first) {
  Dictionary dictionary({2}, false);
  dictionary.add_axis();
  Data data(std::move(dictionary), CellType::i32, 4);
  data.x = {0, 0, 0, 1, 1, 0, 1, 1};
  data.classes = {0, 1, 2, 3};
  data.count = data.weight = {1, 1, 1, 1};
  data.make_table();
  GrowthRule rule;
  rule.candidates = 2;
  rule.max_leaf_nodes = 3;
  for (std::uint64_t key = 0; key < 5; ++key) {
    const Trees tree = data.grow(rule, key);
    CHECK_EQUAL(tree.next.size(), 5u);
    CHECK(tree.next[1] == 3 && tree.next[2] < 0);
  }
}

TEST(order_of_rows_does_not_matter) {
  Random random(5);
  for (int round = 0; round < 30; ++round) {
    const Data data = random_data(random, CellType::i32, 20 + random.index(200));
    std::vector<std::size_t> order(data.rows);
    for (std::size_t i = 0; i < data.rows; ++i) order[i] = i;
    random.shuffle(order);
    Data moved(data.dictionary, data.type, data.rows);
    for (std::size_t i = 0; i < data.rows; ++i) {
      std::copy_n(&data.x[order[i] * data.p], data.p, &moved.x[i * data.p]);
      moved.classes[i] = data.classes[order[i]];
      moved.targets[i] = data.targets[order[i]];
      moved.count[i] = data.count[order[i]];
      moved.weight[i] = data.weight[order[i]];
    }
    moved.make_table();
    const GrowthRule rule = random_rule(random, round % 2 ? CriterionKind::gini : CriterionKind::entropy,
                                        all_splitters[round / 2 % 2]);
    CHECK(by_path(data.grow(rule, round), 4) == by_path(moved.grow(rule, round), 4), "round", round);
  }
}

TEST(a_count_of_two_is_the_row_twice) {
  Random random(6);
  for (int round = 0; round < 30; ++round) {
    Data once = random_data(random, CellType::i32, 20 + random.index(150));
    Data twice(once.dictionary, once.type, 2 * once.rows);
    for (std::size_t i = 0; i < once.rows; ++i) {
      once.count[i] = once.weight[i] = static_cast<std::uint32_t>(random.between(1, 3));
      for (const std::size_t copy : {i, i + once.rows}) {
        std::copy_n(&once.x[i * once.p], once.p, &twice.x[copy * once.p]);
        twice.classes[copy] = once.classes[i];
        twice.targets[copy] = once.targets[i];
      }
      twice.count[i] = twice.weight[i] = 1;
      twice.count[i + once.rows] = twice.weight[i + once.rows] = once.count[i] - 1;
    }
    once.make_table();
    twice.make_table();
    const Splitter splitter = all_splitters[round % 2];
    const GrowthRule rule = random_rule(random, CriterionKind::gini, splitter);
    CHECK(by_path(once.grow(rule, round), 4) == by_path(twice.grow(rule, round), 4), "round", round, "splitter",
          static_cast<int>(splitter));
  }
}

#if MORFOREST_BYTE_PATCHES
TEST(tables_of_bytes_grow_the_same_trees) {
  Random random(10);
  for (int round = 0; round < 10; ++round) {
    Dictionary dictionary({2, 6, 7}, false);
    dictionary.add_patch({{1, 1, 1}, {1, 3, 4}}, {Boundary::zero, Boundary::zero, Boundary::inside}, {true, true, true});
    Data data(std::move(dictionary), CellType::i32, 150);
    for (auto& value : data.x) value = static_cast<double>(random.between(0, 255));
    for (std::size_t i = 0; i < data.rows; ++i) {
      data.classes[i] = (data.x[i * data.p] > 100) + 2 * (data.x[i * data.p + 50] > 200);
      data.count[i] = data.weight[i] = static_cast<std::uint32_t>(random.between(0, 2));
    }
    data.make_table();
    const GrowthRule rule = random_rule(random, CriterionKind::gini, all_splitters[round % 2]);
    const auto expected = by_path(data.grow(rule, round), 4);
    const Table bytes = make_table(data.x.data(), data.rows, data.dictionary, CellType::bytes, Quantiser(0, 255.0));
    Trees tree;
    grow_tree(
        *make_byte_patch_projection(bytes, data.dictionary), data.dictionary, static_cast<std::uint64_t>(round), data.bag(),
        data.all_targets(rule.criterion), rule, [](std::size_t) {}, tree);
    CHECK(by_path(tree, 4) == expected, "round", round);
  }
}
#endif

// Thresholds between the smallest of doubles part the rows as growth did.
TEST(thresholds_near_the_smallest_double) {
  Random random(7);
  for (const Splitter splitter : all_splitters)
    for (int round = 0; round < 20; ++round) {
      Dictionary dictionary({2}, true);
      dictionary.add_axis();
      Data data(std::move(dictionary), CellType::f64, 30);
      for (auto& value : data.x) value = static_cast<double>(random.between(-6, 6)) * std::numeric_limits<double>::denorm_min();
      for (std::size_t i = 0; i < data.rows; ++i) {
        data.classes[i] = static_cast<std::uint32_t>(random.index(4));
        data.count[i] = data.weight[i] = 1;
      }
      data.make_table();
      GrowthRule rule;
      rule.splitter = splitter;
      rule.candidates = 2;
      TreeCheck(data.grow(rule, round), data, rule);
    }
}

// Trees behind one another are those grown alone; only payloads go on counting.
TEST(several_trees_at_once) {
  Random random(9);
  for (const CriterionKind criterion : {CriterionKind::gini, CriterionKind::squared_error}) {
    const Data data = random_data(random, CellType::i32, 100);
    GrowthRule rule;
    rule.criterion = criterion;
    rule.max_depth = 3;  // leaves of several classes
    std::vector<std::uint32_t> count, weight, order(data.rows);
    for (int tree = 0; tree < 3; ++tree) {
      count.insert(count.end(), data.count.begin(), data.count.end());
      weight.insert(weight.end(), data.weight.begin(), data.weight.end());
    }
    std::iota(order.begin(), order.end(), 0u);
    for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = std::max(weight[i], 1u);
    Trees all;
    grow_trees(
        *data.table, data.dictionary, {1, 2, 3}, Bags(count, weight, order), nullptr, data.all_targets(criterion), rule,
        [](std::size_t) {}, all);
    const auto parts = [](auto& t) {
      return std::tie(t.tree_size, t.next, t.threshold, t.real_threshold, t.weight, t.gain, t.atoms.cell, t.atoms.weight,
                      t.leaves.distribution_size, t.leaves.distribution_class, t.leaves.distribution_weight, t.leaves.value);
    };
    Trees joined;
    for (std::uint64_t key = 1; key <= 3; ++key) {
      Trees one = data.grow(rule, key);
      const bool classes = criterion == CriterionKind::gini;
      const auto first = static_cast<std::int32_t>(classes ? data.class_count : 0);
      const auto payloads = static_cast<std::int32_t>(classes ? joined.leaves.distribution_size.size()
                                                              : joined.leaves.value.size());
      for (std::int32_t& next : one.next) next -= next < -first ? payloads : 0;
      for (std::size_t node = 0; node < one.next.size(); ++node)
        joined.atoms.begin.push_back(joined.atoms.begin.back() + one.atoms.terms(node));
      std::apply(
          [&](auto&... to) {
            std::apply([&](const auto&... from) { (to.insert(to.end(), from.begin(), from.end()), ...); }, parts(one));
          },
          parts(joined));
    }
    CHECK_EQUAL(all.atoms.begin, joined.atoms.begin);
    CHECK_EQUAL(all.tree_size.size(), 3u);
    CHECK(parts(all) == parts(joined), "criterion", static_cast<int>(criterion));
  }
}

// When a root with this key draws an axis.
static std::size_t position_of_feature(const Dictionary& dictionary, std::uint64_t key, std::uint32_t feature) {
  AtomList atoms;
  Sampler sampler(dictionary);
  Stream stream(key);
  for (std::int64_t i = 0; i < dictionary.features(); ++i) sampler.draw(stream, 1, atoms);
  return static_cast<std::size_t>(std::find(atoms.cell.begin(), atoms.cell.end(), feature) - atoms.cell.begin());
}

TEST(groups_of_candidates_do_not_matter) {
  // So many rows and candidates that they pass in several groups.
  Random random(8);
  Dictionary dictionary({40}, true);
  dictionary.add_axis();
  Data data(std::move(dictionary), CellType::u8, 70000);
  for (auto& value : data.x) value = static_cast<double>(random.between(0, 1));
  for (std::size_t i = 0; i < data.rows; ++i) {
    data.classes[i] = static_cast<std::uint32_t>(data.x[i * 40 + 37]);
    data.count[i] = data.weight[i] = 1;
  }
  data.make_table();
  GrowthRule rule;
  rule.candidates = 40;
  std::uint64_t key = 0;
  for (bool late = false; !late; late = position_of_feature(data.dictionary, key, 37) > values_at_once / data.rows) ++key;
  const Trees tree = data.grow(rule, key);
  CHECK_EQUAL(tree.next, (std::vector<std::int32_t>{1, -1, -2}));
  CHECK_EQUAL(tree.atoms.cell, std::vector<std::uint32_t>{37});
  CHECK_EQUAL(tree.threshold[0], 1);
}

TEST(growth_can_be_stopped) {
  Random random(9);
  const Data data = random_data(random, CellType::i32, 200);
  GrowthRule rule;
  int polls = 0;
  const std::size_t nodes = data.grow(rule, 1, [&](std::size_t) { ++polls; }).next.size();
  CHECK(polls >= static_cast<int>(nodes), polls, nodes);
  struct Enough {};
  CHECK_THROWS(Enough, data.grow(rule, 1, [&](std::size_t) {
    if (--polls < 3) throw Enough();
  }));
}
