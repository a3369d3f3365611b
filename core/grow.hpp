// One tree: depth-first growth, or best-first where the number of leaves is limited (the paper's Algorithm 1).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <type_traits>
#include <vector>

#include "bytes.hpp"
#include "criterion.hpp"
#include "dictionary.hpp"
#include "project.hpp"
#include "split.hpp"
#include "table.hpp"

namespace morf {

enum class CriterionKind : std::uint8_t { gini, entropy, squared_error, poisson, absolute_error };

struct GrowthRule {
  CriterionKind criterion = CriterionKind::gini;
  Splitter splitter = Splitter::histogram;
  std::size_t candidates = 1;  // atoms drawn a node
  std::uint64_t max_depth = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t min_samples_split = 2;
  std::uint64_t min_samples_leaf = 1;
  double min_weight_fraction_leaf = 0.0;
  double min_impurity_decrease = 0.0;
  std::uint64_t max_leaf_nodes = std::numeric_limits<std::uint64_t>::max();
};

struct Targets {
  const std::uint32_t* classes = nullptr;  // classification: class of each row
  std::size_t class_count = 0;
  const std::int64_t* values = nullptr;  // regression: fixed-point target of each row
  int bits = 0;
};

// The samples a tree sees: counts of zero are left out. Weights equal counts unless classes or rows are weighted.
struct Bag {
  const std::uint32_t* count;
  const std::uint32_t* weight;
  std::size_t rows;
};

// Nodes as parallel arrays. `next` of a split is its left child, the right one follows; of a leaf it is -1 - payload.
// Payloads below the number of classes say that the leaf is pure; class_count + i points to distribution i. In
// regression payload i points to leaf_value[i].
struct Tree {
  std::vector<std::int32_t> next;
  std::vector<std::int64_t> threshold;  // integer tables: sum of the two neighbouring values
  std::vector<double> real_threshold;   // float64 tables
  std::vector<std::uint32_t> weight;
  std::vector<float> gain;
  std::vector<std::uint32_t> term_count;
  std::vector<std::uint32_t> term_cell;
  std::vector<double> term_weight;
  std::vector<std::uint32_t> distribution_size;
  std::vector<std::uint32_t> distribution_class;
  std::vector<std::uint32_t> distribution_weight;
  std::vector<double> leaf_value;
};

// Puts a tree behind others. Children count within their tree, payloads go on counting. class_count: 0 in regression.
inline void append_tree(Tree& to, const Tree& tree, std::size_t class_count) {
  const auto payloads = static_cast<std::int64_t>(class_count > 0 ? to.distribution_size.size() : to.leaf_value.size());
  const auto first = static_cast<std::int32_t>(-1 - static_cast<std::int64_t>(class_count));
  if (payloads + static_cast<std::int64_t>(tree.next.size() + class_count) > std::numeric_limits<std::int32_t>::max())
    throw std::length_error("trees have more than 2^31 leaves");
  for (const std::int32_t next : tree.next) to.next.push_back(next > first ? next : static_cast<std::int32_t>(next - payloads));
  const auto append = [](auto& values, const auto& more) { values.insert(values.end(), more.begin(), more.end()); };
  append(to.threshold, tree.threshold);
  append(to.real_threshold, tree.real_threshold);
  append(to.weight, tree.weight);
  append(to.gain, tree.gain);
  append(to.term_count, tree.term_count);
  append(to.term_cell, tree.term_cell);
  append(to.term_weight, tree.term_weight);
  append(to.distribution_size, tree.distribution_size);
  append(to.distribution_class, tree.distribution_class);
  append(to.distribution_weight, tree.distribution_weight);
  append(to.leaf_value, tree.leaf_value);
}

inline constexpr int max_rounds = 16;                             // of redrawing when no candidate splits
inline constexpr std::size_t values_at_once = std::size_t{1} << 21;  // candidates pass in groups below this size

// Called at each node and between groups of candidates with the number of rows to come; may throw to give up.
using Poll = std::function<void(std::size_t rows)>;

// Grows one tree after another; keeps its scratch memory.
template <class Value, class Criterion>
class Grower {
 public:
  Grower(Projection<Value>& projection, const Dictionary& dictionary, const Targets& targets, const GrowthRule& rule,
         Criterion criterion, const Poll& poll)
      : rule_(rule), poll_(poll), class_count_(targets.class_count), criterion_(std::move(criterion)),
        sampler_(dictionary), project_(projection), search_(rule.splitter) {}

  Tree grow(const Bag& bag, std::uint64_t root_key) {
    bag_ = bag;
    read_bag();
    tree_ = {};
    term_begin_.clear();
    reserve_nodes(std::min<std::size_t>(rows_.size(), 256));
    add_node();
    const Open root{0, 0, rows_.size(), 0, root_key};
    if (rule_.max_leaf_nodes == std::numeric_limits<std::uint64_t>::max()) grow_depth_first(root);
    else grow_best_first(root);
    order_terms();
    return std::move(tree_);
  }

 private:
  // A node that may yet be split: the range of its rows and the key of its random numbers.
  struct Open {
    std::size_t index, begin, end;
    std::uint64_t depth, key;
  };

  // A split found but not yet made.
  struct Found {
    Open node;
    double gain;
    Split<Value> split;
    AtomList atom;
    bool operator<(const Found& other) const {  // for the queue: highest gain, then lowest index first
      return gain < other.gain || (gain == other.gain && node.index > other.node.index);
    }
  };

  void read_bag() {
    rows_.resize(bag_.rows);
    tree_weight_ = 0;
    std::size_t size = 0;
    for (std::size_t row = 0; row < bag_.rows; ++row) {
      const bool drawn = bag_.count[row] != 0;
      rows_[size] = static_cast<std::uint32_t>(row);
      size += drawn;
      tree_weight_ += drawn ? bag_.weight[row] : 0;
    }
    rows_.resize(size);
    reserve_at_least(scratch_, size);
    limits_ = {std::max<std::uint64_t>(rule_.min_samples_leaf, 1),
               static_cast<std::uint64_t>(std::ceil(rule_.min_weight_fraction_leaf * static_cast<double>(tree_weight_)))};
    search_.set_limits(limits_);
  }

  void grow_depth_first(const Open& root) {
    std::vector<Open> stack{root};
    Found found;
    while (!stack.empty()) {
      const Open node = stack.back();
      stack.pop_back();
      if (!find_split(node, found)) continue;
      const auto [left, right] = make_split(found);
      stack.push_back(right);
      stack.push_back(left);
    }
  }

  void grow_best_first(const Open& root) {
    std::priority_queue<Found> queue;
    const auto offer = [&](const Open& node) {
      Found found;
      if (find_split(node, found)) queue.push(std::move(found));
    };
    offer(root);
    for (std::uint64_t leaves = 1; leaves < rule_.max_leaf_nodes && !queue.empty(); ++leaves) {
      Found found = queue.top();
      queue.pop();
      best_values_.resize(found.node.end - found.node.begin);
      reserve_at_least(ranges_, 1);
      project_(&rows_[found.node.begin], best_values_.size(), found.atom, 0, 1, best_values_.data(), best_values_.size(), ranges_.data());
      const auto [left, right] = make_split(found);
      offer(left);
      offer(right);
    }
    for (; !queue.empty(); queue.pop()) {
      read_node(queue.top().node);
      make_leaf(queue.top().node.index);
    }
  }

  NodeRows read_node(const Open& open) {
    const std::size_t size = open.end - open.begin;
    const auto gather = [&](const std::uint32_t* of_row, std::vector<std::uint32_t>& to) {
      reserve_at_least(to, size);
      const std::uint32_t* rows = &rows_[open.begin];
      std::uint64_t total = 0;
      for (std::size_t i = 0; i < size; ++i) total += to[i] = of_row[rows[i]];
      return total;
    };
    NodeRows node{&rows_[open.begin], size, nullptr, nullptr, 0, 0};
    node.total_count = gather(bag_.count, count_);
    node.total_weight = bag_.weight == bag_.count ? node.total_count : gather(bag_.weight, weight_);
    node.count = count_.data();
    node.weight = bag_.weight == bag_.count ? node.count : weight_.data();
    tree_.weight[open.index] = static_cast<std::uint32_t>(node.total_weight);
    criterion_.begin_node(node);
    return node;
  }

  // On success `found` holds the split and best_values_ its atom's values; else the node is made a leaf.
  bool find_split(const Open& open, Found& found) {
    poll_(open.end - open.begin);
    const NodeRows node = read_node(open);
    if (search_node(open, node, found)) return true;
    make_leaf(open.index);
    return false;
  }

  bool search_node(const Open& open, const NodeRows& node, Found& found) {
    if (criterion_.pure() || node.total_count < rule_.min_samples_split ||
        node.total_count < 2 * rule_.min_samples_leaf || node.total_weight < 2 * limits_.min_weight ||
        open.depth >= rule_.max_depth)
      return false;

    found.node = open;
    found.split = {};
    sampler_.begin_node();
    Stream stream(open.key), thresholds(derive(open.key, Purpose::threshold));
    // Two rows part in one way only, if at all.
    const double ceiling = node.size == 2 ? minus_infinity : criterion_.ceiling();
    const std::size_t batch = node.size == 2 ? 4 : ceiling < infinity ? lanes : rule_.candidates;
    for (int round = 0; !found.split.found() && (round < max_rounds || sampler_.enumerable()); ++round) {
      atoms_.clear();
      // A few at a time where a split may turn out that no other can beat: most nodes of a tree are that small.
      for (std::size_t drawn = 0; drawn < rule_.candidates && !(found.split.found() && found.split.score >= ceiling);) {
        const std::size_t first = atoms_.size(), count = std::min(batch, rule_.candidates - drawn);
        sampler_.draw(stream, count, atoms_);
        drawn += count;
        if (atoms_.size() > first) search_candidates(node, first, thresholds, found.split);
        else if (sampler_.enumerable()) break;  // every atom was seen
      }
      if (atoms_.size() == 0 && sampler_.enumerable()) break;  // else a mixture may draw another part next time
    }
    if (!found.split.found()) return false;
    found.gain = criterion_.gain(found.split.score, static_cast<double>(tree_weight_));
    if (rule_.min_impurity_decrease > 0.0 && found.gain < rule_.min_impurity_decrease) return false;
    const std::uint32_t begin = atoms_.begin[found.split.candidate], end = atoms_.begin[found.split.candidate + 1];
    found.atom.begin.assign({0, end - begin});
    found.atom.cell.assign(atoms_.cell.begin() + begin, atoms_.cell.begin() + end);
    found.atom.weight.assign(atoms_.weight.begin() + begin, atoms_.weight.begin() + end);
    return true;
  }

  // Improves `best` with the atoms from `first` on.
  void search_candidates(const NodeRows& node, std::size_t first, Stream& thresholds, Split<Value>& best) {
    const std::size_t group = std::clamp<std::size_t>(values_at_once / node.size, 1, atoms_.size() - first);
    for (; first < atoms_.size(); first += group) {
      const std::size_t candidates = std::min(group, atoms_.size() - first);
      reserve_at_least(values_, candidates * node.size);
      reserve_at_least(ranges_, candidates);
      project_(node.rows, node.size, atoms_, first, candidates, values_.data(), node.size, ranges_.data());
      const double before = best.score;
      search_(node, criterion_, values_.data(), node.size, ranges_.data(), first, candidates, thresholds, best);
      if (best.score > before) {
        const Value* values = values_.data() + (best.candidate - first) * node.size;
        best_values_.assign(values, values + node.size);
      }
      if (first + group < atoms_.size()) poll_(node.size);
    }
  }

  // Parts the rows, keeping their order on both sides, and appends the two children.
  std::pair<Open, Open> make_split(const Found& found) {
    const Open& node = found.node;
    std::uint32_t* rows = &rows_[node.begin];
    const std::size_t size = node.end - node.begin;
    std::size_t left = 0, right = 0;
    for (std::size_t i = 0; i < size; ++i) {
      if (best_values_[i] <= found.split.below) rows[left++] = rows[i];
      else scratch_[right++] = rows[i];
    }
    std::copy(scratch_.begin(), scratch_.begin() + right, rows + left);

    const std::size_t child = tree_.next.size();
    if (child + 2 > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
      throw std::length_error("a tree has more than 2^31 nodes");
    tree_.next[node.index] = static_cast<std::int32_t>(child);
    if constexpr (std::is_integral_v<Value>) {
      tree_.threshold[node.index] = static_cast<std::int64_t>(found.split.below) + found.split.above;
    } else {
      const double middle = found.split.below / 2 + found.split.above / 2;
      const bool between = middle >= found.split.below && middle < found.split.above;
      tree_.real_threshold[node.index] = between ? middle : found.split.below;
    }
    tree_.gain[node.index] = static_cast<float>(found.gain);
    term_begin_[node.index] = tree_.term_cell.size();
    tree_.term_count[node.index] = static_cast<std::uint32_t>(found.atom.cell.size());
    tree_.term_cell.insert(tree_.term_cell.end(), found.atom.cell.begin(), found.atom.cell.end());
    tree_.term_weight.insert(tree_.term_weight.end(), found.atom.weight.begin(), found.atom.weight.end());
    add_node();
    add_node();
    const std::size_t middle = node.begin + left;
    return {{child, node.begin, middle, node.depth + 1, derive(node.key, Purpose::left)},
            {child + 1, middle, node.end, node.depth + 1, derive(node.key, Purpose::right)}};
  }

  // So many nodes are added without moving the others: small trees are grown by the thousand.
  void reserve_nodes(std::size_t nodes) {
    tree_.next.reserve(nodes);
    tree_.threshold.reserve(std::is_integral_v<Value> ? nodes : 0);
    tree_.weight.reserve(nodes);
    tree_.gain.reserve(nodes);
    tree_.term_count.reserve(nodes);
    term_begin_.reserve(nodes);
  }

  void add_node() {
    tree_.next.push_back(0);
    if constexpr (std::is_integral_v<Value>) tree_.threshold.push_back(0);
    else tree_.real_threshold.push_back(0.0);
    tree_.weight.push_back(0);
    tree_.gain.push_back(0.0f);
    tree_.term_count.push_back(0);
    term_begin_.push_back(0);
  }

  void make_leaf(std::size_t index) {
    std::size_t payload;
    if constexpr (std::is_same_v<Criterion, ClassCriterion<Gini>> || std::is_same_v<Criterion, ClassCriterion<Entropy>>) {
      const auto& classes = criterion_.present();
      if (classes.size() == 1) {
        payload = classes[0];
      } else {
        payload = class_count_ + tree_.distribution_size.size();
        tree_.distribution_size.push_back(static_cast<std::uint32_t>(classes.size()));
        // In the order of the classes: that of the rows must not show.
        std::vector<std::pair<std::uint32_t, std::uint32_t>> entries;
        for (std::size_t c = 0; c < classes.size(); ++c) entries.emplace_back(classes[c], criterion_.class_weights()[c]);
        std::sort(entries.begin(), entries.end());
        for (const auto& [label, weight] : entries) {
          tree_.distribution_class.push_back(label);
          tree_.distribution_weight.push_back(weight);
        }
      }
    } else {
      payload = tree_.leaf_value.size();
      tree_.leaf_value.push_back(criterion_.leaf_value());
    }
    tree_.next[index] = -1 - static_cast<std::int32_t>(payload);
  }

  // Terms were appended in the order of growth; the model keeps them in the order of the nodes.
  void order_terms() {
    std::vector<std::uint32_t> cell;
    std::vector<double> weight;
    cell.reserve(tree_.term_cell.size());
    weight.reserve(tree_.term_weight.size());
    for (std::size_t node = 0; node < tree_.next.size(); ++node)
      for (std::size_t t = term_begin_[node]; t < term_begin_[node] + tree_.term_count[node]; ++t) {
        cell.push_back(tree_.term_cell[t]);
        weight.push_back(tree_.term_weight[t]);
      }
    tree_.term_cell = std::move(cell);
    tree_.term_weight = std::move(weight);
  }

  GrowthRule rule_;
  const Poll& poll_;
  std::size_t class_count_;
  Bag bag_{};
  Criterion criterion_;
  Sampler sampler_;
  Projection<Value>& project_;
  SplitSearch<Value, Criterion> search_;
  std::uint64_t tree_weight_ = 0;
  SideLimits limits_{};
  std::vector<std::uint32_t> rows_, scratch_, count_, weight_;
  Tree tree_;
  std::vector<std::size_t> term_begin_;
  AtomList atoms_;
  std::vector<Value> values_, best_values_;
  std::vector<Range<Value>> ranges_;
};

// A tree to be grown.
struct Seedling {
  Bag bag;
  std::uint64_t root_key;
};

// Calls use(tree) with one tree after another.
template <class Value, class Use>
void grow_trees(Projection<Value>& projection, const Dictionary& dictionary, const Targets& targets,
                const std::vector<Seedling>& seedlings, const GrowthRule& rule, const Poll& poll, Use use) {
  const auto grow = [&](auto criterion) {
    Grower<Value, decltype(criterion)> grower(projection, dictionary, targets, rule, std::move(criterion), poll);
    for (const Seedling& seedling : seedlings) use(grower.grow(seedling.bag, seedling.root_key));
  };
  switch (rule.criterion) {
    case CriterionKind::gini: return grow(ClassCriterion<Gini>(targets.classes, targets.class_count));
    case CriterionKind::entropy: return grow(ClassCriterion<Entropy>(targets.classes, targets.class_count));
    case CriterionKind::squared_error: return grow(SumCriterion<SquaredError>(targets.values, targets.bits));
    case CriterionKind::poisson: return grow(SumCriterion<Poisson>(targets.values, targets.bits));
    case CriterionKind::absolute_error: return grow(AbsoluteError(targets.values, targets.bits));
  }
}

template <class Use>
void grow_trees(const Table& table, const Dictionary& dictionary, const Targets& targets, const std::vector<Seedling>& seedlings,
                const GrowthRule& rule, const Poll& poll, Use use) {
#if MORFOREST_BYTE_PATCHES
  if (table.type() == CellType::bytes) {
    BytePatchProjector projection(table, dictionary);
    return grow_trees<std::uint16_t>(projection, dictionary, targets, seedlings, rule, poll, use);
  }
#endif
  with_cell_type(table.type(), [&](auto cell) {
    Projector<decltype(cell)> projection(table);
    grow_trees<ValueOf<decltype(cell)>>(projection, dictionary, targets, seedlings, rule, poll, use);
  });
}

// `From` is a table or a projection.
template <class From>
Tree grow_tree(From& from, const Dictionary& dictionary, const Targets& targets, const Bag& bag, const GrowthRule& rule,
               std::uint64_t root_key, const Poll& poll) {
  Tree grown;
  grow_trees(from, dictionary, targets, {{bag, root_key}}, rule, poll, [&](Tree tree) { grown = std::move(tree); });
  return grown;
}

}  // namespace morf
