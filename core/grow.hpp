// One tree: depth-first growth, or best-first where the number of leaves is limited (the paper's Algorithm 1).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <queue>
#include <type_traits>
#include <vector>

#include "crew.hpp"
#include "criterion.hpp"
#include "dictionary.hpp"
#include "gradient.hpp"
#include "project.hpp"
#include "ridge.hpp"
#include "sampler.hpp"
#include "split.hpp"
#include "subset.hpp"
#include "table.hpp"

namespace morf {

enum class CriterionKind : std::uint8_t { gini, entropy, squared_error, poisson, absolute_error, gradient };

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
  std::size_t threads = 1;  // that search a node; boosting only, as forests have trees for them
  std::vector<double> penalties{};  // of the combination that each node learns and is offered too, see ridge.hpp; empty: none
};

struct Targets {
  const std::uint32_t* classes = nullptr;  // classification: class of each row
  std::size_t class_count = 0;
  const std::int64_t* values = nullptr;  // regression: fixed-point target of each row
  int bits = 0;
  const Gradients* gradients = nullptr;  // boosting
  LeafRule leaf{};
};

// The samples a tree sees: counts of zero are left out. Weights equal counts unless classes or rows are weighted.
struct Bag {
  const std::uint32_t* count;
  const std::uint32_t* weight;
  std::size_t rows;
  const std::uint32_t* order = nullptr;  // of the rows: the canonical one, where biases or combinations come from them
};

// The nodes of one tree after another, as parallel arrays. `next` of a split is its left child, counted within its tree, and
// the right one follows; of a leaf it is -1 - payload. Payloads below the number of classes say that the leaf is pure;
// class_count + i points to distribution i. In regression payload i points to leaf_value[i], in boosting to the i-th vector there.
struct Trees {
  std::vector<std::uint32_t> tree_size;
  std::vector<std::int32_t> next;
  std::vector<std::int64_t> threshold;  // integer tables: sum of the two neighbouring values
  std::vector<double> real_threshold;   // float64 tables
  std::vector<std::uint32_t> weight;
  std::vector<float> gain;
  std::vector<std::uint32_t> term_count;
  std::vector<std::uint32_t> term_cell;
  std::vector<double> term_weight;
  std::vector<std::uint8_t> form_op;  // forms of the nodes, zeros for leaves and linear atoms; empty if there are no others
  std::vector<std::int64_t> form_bias;
  std::vector<std::uint32_t> form_window;  // count and stride of two windows each
  std::vector<std::uint32_t> distribution_size;
  std::vector<std::uint32_t> distribution_class;
  std::vector<std::uint32_t> distribution_weight;
  std::vector<double> leaf_value;
  std::vector<std::uint32_t> picked;  // trees on a given subset: which of its atoms each split has

  void append_form(const Form& form) {
    form_op.push_back(static_cast<std::uint8_t>(form.op));
    form_bias.push_back(form.bias);
    for (const Window& window : form.window) {
      form_window.push_back(form.op == Op::none ? 0 : window.count);
      form_window.push_back(form.op == Op::none ? 0 : window.stride);
    }
  }
};

inline constexpr int max_rounds = 16;                             // of redrawing when no candidate splits
inline constexpr std::size_t values_at_once = std::size_t{1} << 21;  // candidates pass in groups below this size

// Called at each node and between groups of candidates with the number of rows to come; may throw to give up.
using Poll = std::function<void(std::size_t rows)>;

// What a thread needs to look for the best of some candidates.
template <class Value, class Criterion>
struct Searcher {
  Projection<Value>* project;
  Criterion criterion;
  SplitSearch<Value, Criterion> search;
  Split<Value> best{};
  std::vector<Value> values{}, best_values{};
  std::vector<Range<Value>> ranges{};

  // Improves `best` with the atoms first .. end - 1. If it is one of them, best_values are its values.
  void look(const NodeRows& node, const AtomList& atoms, std::size_t first, std::size_t end, Stream& thresholds, const Poll& poll) {
    const std::size_t stride = whole_blocks(node.size);
    const std::size_t group = std::clamp<std::size_t>(values_at_once / stride, 1, end - first);
    for (; first < end; first += group) {
      const std::size_t candidates = std::min(group, end - first);
      reserve_at_least(values, candidates * stride);
      reserve_at_least(ranges, candidates);
      (*project)(node.rows, node.size, atoms, first, candidates, values.data(), stride, ranges.data());
      const double before = best.score;
      search(node, criterion, values.data(), stride, ranges.data(), first, candidates, thresholds, best);
      if (best.score > before) {
        reserve_at_least(best_values, node.size);
        std::copy_n(&values[(best.candidate - first) * stride], node.size, best_values.begin());
      }
      if (first + group < end) poll(node.size);
    }
  }
};

// Grows one tree after another; keeps its scratch memory.
template <class Value, class Criterion>
class Grower {
 public:
  Grower(Projection<Value>& projection, const Dictionary& dictionary, const Targets& targets, const GrowthRule& rule,
         Criterion criterion, const Poll& poll)
      : rule_(rule), poll_(poll), class_count_(targets.class_count),
        own_{&projection, std::move(criterion), SplitSearch<Value, Criterion>(rule.splitter)}, sampler_(dictionary),
        has_forms_(dictionary.has_forms()), has_biases_(dictionary.has_biases()), in_order_(has_biases_ || !rule.penalties.empty()), crew_(boosted ? std::min(rule.threads, (rule.candidates + lanes - 1) / lanes) : 1) {
    if (!rule.penalties.empty()) {
      if (!learns) throw std::invalid_argument("directions need values of 32 bits, and no gradients");
      direction_.emplace(rule.penalties, targets.class_count > 0 ? targets.classes : nullptr, targets.values);
    }
    for (std::size_t i = 1; i < crew_.size(); ++i) {
      projections_.push_back(projection.copy());
      others_.push_back({projections_.back().get(), own_.criterion, own_.search});
    }
  }

  // Appends a tree.
  void grow(const Bag& bag, std::uint64_t root_key, Trees& out) {
    bag_ = bag;
    out_ = &out;
    read_bag();
    nodes_.assign(1, Node{});
    terms_.clear();
    forms_.clear();
    const Open root{0, 0, rows_.size(), 0, root_key};
    if (rule_.max_leaf_nodes == std::numeric_limits<std::uint64_t>::max()) grow_depth_first(root);
    else grow_best_first(root);
    write_nodes(out);
  }

 private:
  static constexpr bool boosted = std::is_same_v<Criterion, GradientCriterion>;
  static constexpr bool learns = !boosted && std::is_same_v<Value, std::int32_t>;  // directions
  static constexpr std::size_t worth_sharing = std::size_t{1} << 13;  // values of a node: else threads wait longer than they work
  inline static const Poll silent = [](std::size_t) {};  // only the calling thread may talk to the interpreter

  // A node that may yet be split: the range of its rows and the key of its random numbers.
  struct Open {
    std::size_t index, begin, end;
    std::uint64_t depth, key;
  };

  // A node of the tree, and where its atom's terms stand in terms_.
  struct Node {
    std::size_t term_begin = 0;
    std::conditional_t<std::is_integral_v<Value>, std::int64_t, double> threshold = 0;
    std::int32_t next = 0;
    std::uint32_t weight = 0, term_count = 0;
    float gain = 0.0f;
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
    for (std::size_t i = 0; i < bag_.rows; ++i) {
      const std::size_t row = in_order_ && bag_.order != nullptr ? bag_.order[i] : i;
      const bool drawn = bag_.count[row] != 0;
      rows_[size] = static_cast<std::uint32_t>(row);
      size += drawn;
      tree_weight_ += drawn ? bag_.weight[row] : 0;
    }
    rows_.resize(size);
    reserve_at_least(scratch_, size);
    limits_ = {std::max<std::uint64_t>(rule_.min_samples_leaf, 1),
               static_cast<std::uint64_t>(std::ceil(rule_.min_weight_fraction_leaf * static_cast<double>(tree_weight_)))};
    own_.search.set_limits(limits_);
    for (auto& other : others_) other.search.set_limits(limits_);
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
      const std::size_t size = found.node.end - found.node.begin, stride = whole_blocks(size);
      reserve_at_least(own_.best_values, stride);
      reserve_at_least(own_.ranges, 1);
      (*own_.project)(&rows_[found.node.begin], size, found.atom, 0, 1, own_.best_values.data(), stride, own_.ranges.data());
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
    nodes_[open.index].weight = static_cast<std::uint32_t>(node.total_weight);
    own_.criterion.begin_node(node);
    return node;
  }

  // On success `found` holds the split and own_.best_values its atom's values; else the node is made a leaf.
  bool find_split(const Open& open, Found& found) {
    poll_(open.end - open.begin);
    const NodeRows node = read_node(open);
    if (search_node(open, node, found)) return true;
    make_leaf(open.index);
    return false;
  }

  bool search_node(const Open& open, const NodeRows& node, Found& found) {
    if (own_.criterion.pure() || node.total_count < rule_.min_samples_split ||
        node.total_count < 2 * rule_.min_samples_leaf || node.total_weight < 2 * limits_.min_weight ||
        open.depth >= rule_.max_depth)
      return false;

    found.node = open;
    Split<Value>& best = own_.best;
    best = {};
    if constexpr (boosted) best.score = own_.criterion.floor();
    sampler_.begin_node();
    Stream stream(open.key), thresholds(derive(open.key, Purpose::threshold)), directions(derive(open.key, Purpose::direction));
    // Two rows part in one way only, if at all.
    const double ceiling = node.size == 2 ? minus_infinity : own_.criterion.ceiling();
    const std::size_t batch = node.size == 2 ? 4 : ceiling < infinity ? lanes : rule_.candidates;
    for (int round = 0; !best.found() && (round < max_rounds || sampler_.enumerable()); ++round) {
      if (boosted && round > 0) break;  // candidates that split may all be worthless
      atoms_.clear();
      // A few at a time where a split may turn out that no other can beat: most nodes of a tree are that small.
      for (std::size_t drawn = 0; drawn < rule_.candidates && !(best.found() && best.score >= ceiling);) {
        const std::size_t first = atoms_.size(), count = std::min(batch, rule_.candidates - drawn);
        sampler_.draw(stream, count, atoms_);
        drawn += count;
        if (has_biases_) own_.project->set_biases(node.rows, node.count, node.size, atoms_, first);
        if (atoms_.size() > first) search_candidates(node, first, thresholds);
        else if (sampler_.enumerable()) break;  // every atom was seen
      }
      if constexpr (learns) {
        const std::size_t drawn = atoms_.size();
        if (direction_ && !(best.found() && best.score >= ceiling) && direction_->learn(*own_.project, node.rows, node.size, directions, atoms_))
          search_candidates(node, drawn, thresholds);
      }
      if (atoms_.size() == 0 && sampler_.enumerable()) break;  // else a mixture may draw another part next time
    }
    if (!best.found()) return false;
    found.split = best;
    found.gain = own_.criterion.gain(found.split.score, static_cast<double>(tree_weight_));
    if (rule_.min_impurity_decrease > 0.0 && found.gain < rule_.min_impurity_decrease) return false;
    const std::uint32_t begin = atoms_.begin[found.split.candidate], end = atoms_.begin[found.split.candidate + 1];
    found.atom.begin.assign({0, end - begin});
    found.atom.cell.assign(atoms_.cell.begin() + begin, atoms_.cell.begin() + end);
    found.atom.weight.assign(atoms_.weight.begin() + begin, atoms_.weight.begin() + end);
    if (!atoms_.form.empty()) found.atom.form.assign(1, atoms_.form[found.split.candidate]);
    return true;
  }

  // Improves the best split with the atoms from `first` on.
  void search_candidates(const NodeRows& node, std::size_t first, Stream& thresholds) {
    const std::size_t count = atoms_.size() - first, groups = (count + lanes - 1) / lanes;
    const std::size_t parts = rule_.splitter == Splitter::random || node.size * count < worth_sharing ? 1 : std::min(crew_.size(), groups);
    if (parts == 1) return own_.look(node, atoms_, first, atoms_.size(), thresholds, poll_);
    // Each thread takes some of the candidates. Among equals the earliest wins, as if one after the other had been searched.
    const double floor = own_.best.score;
    crew_.run(parts, [&](std::size_t part) {
      Searcher<Value, Criterion>& searcher = part == 0 ? own_ : others_[part - 1];
      Stream unused(0);
      if (part != 0) {
        searcher.criterion.begin_node(node);
        searcher.best = {};
        searcher.best.score = floor;
      }
      const std::size_t begin = first + groups * part / parts * lanes, end = first + std::min(groups * (part + 1) / parts * lanes, count);
      searcher.look(node, atoms_, begin, end, unused, part == 0 ? poll_ : silent);
    });
    for (std::size_t part = 1; part < parts; ++part)
      if (others_[part - 1].best.score > own_.best.score) {
        own_.best = others_[part - 1].best;
        own_.best_values.swap(others_[part - 1].best_values);
      }
  }

  // Parts the rows, keeping their order on both sides, and appends the two children.
  std::pair<Open, Open> make_split(const Found& found) {
    const Open& node = found.node;
    std::uint32_t* rows = &rows_[node.begin];
    const std::size_t size = node.end - node.begin;
    std::size_t left = 0, right = 0;
    for (std::size_t i = 0; i < size; ++i) {  // no branch: which way a row goes cannot be foreseen
      const std::uint32_t row = rows[i];
      const bool goes_left = own_.best_values[i] <= found.split.below;
      rows[left] = row;
      scratch_[right] = row;
      left += goes_left;
      right += !goes_left;
    }
    std::copy(scratch_.begin(), scratch_.begin() + right, rows + left);

    const std::size_t child = nodes_.size();
    if (child + 2 > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
      throw std::length_error("a tree has more than 2^31 nodes");
    Node& made = nodes_[node.index];
    made.next = static_cast<std::int32_t>(child);
    if constexpr (std::is_integral_v<Value>) {
      made.threshold = static_cast<std::int64_t>(found.split.below) + found.split.above;
    } else {
      const double middle = found.split.below / 2 + found.split.above / 2;
      const bool between = middle >= found.split.below && middle < found.split.above;
      made.threshold = between ? middle : found.split.below;
    }
    made.gain = static_cast<float>(found.gain);
    made.term_begin = terms_.cell.size();
    made.term_count = static_cast<std::uint32_t>(found.atom.cell.size());
    terms_.cell.insert(terms_.cell.end(), found.atom.cell.begin(), found.atom.cell.end());
    terms_.weight.insert(terms_.weight.end(), found.atom.weight.begin(), found.atom.weight.end());
    nodes_.resize(child + 2);
    if (!found.atom.form.empty()) {
      forms_.resize(child + 2);
      forms_[node.index] = found.atom.form[0];
    }
    const std::size_t middle = node.begin + left;
    return {{child, node.begin, middle, node.depth + 1, derive(node.key, Purpose::left)},
            {child + 1, middle, node.end, node.depth + 1, derive(node.key, Purpose::right)}};
  }

  void make_leaf(std::size_t index) {
    std::size_t payload;
    if constexpr (std::is_same_v<Criterion, ClassCriterion<Gini>> || std::is_same_v<Criterion, ClassCriterion<Entropy>>) {
      const auto& classes = own_.criterion.present();
      if (classes.size() == 1) {
        payload = classes[0];
      } else {
        payload = class_count_ + out_->distribution_size.size();
        out_->distribution_size.push_back(static_cast<std::uint32_t>(classes.size()));
        // In the order of the classes: that of the rows must not show.
        std::vector<std::pair<std::uint32_t, std::uint32_t>> entries;
        for (std::size_t c = 0; c < classes.size(); ++c) entries.emplace_back(classes[c], own_.criterion.class_weights()[c]);
        std::sort(entries.begin(), entries.end());
        for (const auto& [label, weight] : entries) {
          out_->distribution_class.push_back(label);
          out_->distribution_weight.push_back(weight);
        }
      }
    } else if constexpr (boosted) {
      payload = out_->leaf_value.size();
      own_.criterion.append_leaf(out_->leaf_value);
      payload /= out_->leaf_value.size() - payload;
    } else {
      payload = out_->leaf_value.size();
      out_->leaf_value.push_back(own_.criterion.leaf_value());
    }
    if (payload >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
      throw std::length_error("trees have more than 2^31 leaves");
    nodes_[index].next = -1 - static_cast<std::int32_t>(payload);
  }

  // Terms were appended in the order of growth; the model keeps them in the order of the nodes.
  void write_nodes(Trees& out) const {
    std::size_t node = out.next.size(), term = out.term_cell.size();
    const std::size_t nodes = node + nodes_.size(), terms = term + terms_.cell.size();
    out.tree_size.push_back(static_cast<std::uint32_t>(nodes_.size()));
    out.next.resize(nodes);
    thresholds(out).resize(nodes);
    out.weight.resize(nodes);
    out.term_count.resize(nodes);
    out.gain.resize(nodes);
    out.term_cell.resize(terms);
    out.term_weight.resize(terms);
    for (const Node& made : nodes_) {
      out.next[node] = made.next;
      thresholds(out)[node] = made.threshold;
      out.weight[node] = made.weight;
      out.gain[node] = made.gain;
      out.term_count[node++] = made.term_count;
      for (std::size_t t = made.term_begin; t < made.term_begin + made.term_count; ++t, ++term) {
        out.term_cell[term] = terms_.cell[t];
        out.term_weight[term] = terms_.weight[t];
      }
    }
    if (has_forms_)
      for (std::size_t i = 0; i < nodes_.size(); ++i) out.append_form(i < forms_.size() ? forms_[i] : Form{});
  }

  static auto& thresholds(Trees& trees) {
    if constexpr (std::is_integral_v<Value>) return trees.threshold;
    else return trees.real_threshold;
  }

  GrowthRule rule_;
  const Poll& poll_;
  std::size_t class_count_;
  Bag bag_{};
  Searcher<Value, Criterion> own_;
  Sampler sampler_;
  std::uint64_t tree_weight_ = 0;
  SideLimits limits_{};
  std::vector<std::uint32_t> rows_, scratch_, count_, weight_;
  Trees* out_ = nullptr;
  std::vector<Node> nodes_;
  AtomList atoms_, terms_;
  std::vector<Form> forms_;       // of the nodes so far, where there are any
  bool has_forms_, has_biases_;   // of the dictionary
  bool in_order_;                 // rows are in canonical order
  std::optional<Direction> direction_;
  Crew crew_;
  std::vector<std::unique_ptr<Projection<Value>>> projections_;  // of the others
  std::vector<Searcher<Value, Criterion>> others_;
};

// A tree to be grown.
struct Seedling {
  Bag bag;
  std::uint64_t root_key;
};

// Appends one tree after another.
template <class Value>
void grow_trees(Projection<Value>& projection, const Dictionary& dictionary, const Targets& targets,
                const std::vector<Seedling>& seedlings, const GrowthRule& rule, const Poll& poll, Trees& out) {
  const auto grow = [&](auto criterion) {
    Grower<Value, decltype(criterion)> grower(projection, dictionary, targets, rule, std::move(criterion), poll);
    for (const Seedling& seedling : seedlings) grower.grow(seedling.bag, seedling.root_key, out);
  };
  switch (rule.criterion) {
    case CriterionKind::gini: return grow(ClassCriterion<Gini>(targets.classes, targets.class_count));
    case CriterionKind::entropy: return grow(ClassCriterion<Entropy>(targets.classes, targets.class_count));
    case CriterionKind::squared_error: return grow(SumCriterion<SquaredError>(targets.values, targets.bits));
    case CriterionKind::poisson: return grow(SumCriterion<Poisson>(targets.values, targets.bits));
    case CriterionKind::absolute_error: return grow(AbsoluteError(targets.values, targets.bits));
    case CriterionKind::gradient: return grow(GradientCriterion(*targets.gradients, targets.leaf));
  }
}

// Trees whose nodes choose among the atoms of a subset, whose columns hold the rows of their bags.
inline void grow_on_subset(const Subset& subset, const Targets& targets, const std::vector<Seedling>& seedlings,
                           const GrowthRule& rule, const Poll& poll, Trees& out) {
  std::size_t node = out.next.size();
  const std::size_t term = out.term_cell.size();
  const auto grow = [&]<class Value>(Value) {
    ColumnProjector<Value> projection(subset, !subset.narrow());
    grow_trees(static_cast<Projection<Value>&>(projection), subset.dictionary(), targets, seedlings, rule, poll, out);
  };
  if (subset.narrow()) grow(std::uint16_t{});
  else with_cell_type(subset.type(), [&](auto cell) { grow(ValueOf<decltype(cell)>{}); });
  // A column becomes the atom that it stands for, and its threshold one of the atom's values.
  const AtomList& atoms = subset.atoms();
  const std::vector<std::uint32_t> columns(out.term_cell.begin() + term, out.term_cell.end());
  out.term_cell.resize(term);
  out.term_weight.resize(term);
  for (std::size_t split = 0; node < out.next.size(); ++node) {
    Form form;
    if (out.next[node] >= 0) {
      const std::uint32_t atom = columns[split++], begin = atoms.begin[atom], end = atoms.begin[atom + 1];
      if (subset.narrow()) out.threshold[node] += 2 * subset.offset(atom);
      out.term_count[node] = end - begin;
      out.term_cell.insert(out.term_cell.end(), atoms.cell.begin() + begin, atoms.cell.begin() + end);
      out.term_weight.insert(out.term_weight.end(), atoms.weight.begin() + begin, atoms.weight.begin() + end);
      if (!atoms.form.empty()) form = atoms.form[atom];
    }
    if (subset.has_forms()) out.append_form(form);
  }
  out.picked.insert(out.picked.end(), columns.begin(), columns.end());
}

inline void grow_trees(const Table& table, const Dictionary& dictionary, const Targets& targets,
                       const std::vector<Seedling>& seedlings, const GrowthRule& rule, const Poll& poll, Trees& out) {
  if (dictionary.subset() == 0)
    return with_projection(table, dictionary, [&](auto& projection) {
      grow_trees(projection, dictionary, targets, seedlings, rule, poll, out);
    });
  Subset subset(table, dictionary);
  for (const Seedling& seedling : seedlings) {
    const Bag& bag = seedling.bag;
    subset.draw(derive(seedling.root_key, Purpose::subset), bag.count, bag.order);
    std::vector<std::uint32_t> rows;
    for (std::size_t i = 0; i < bag.rows; ++i)
      if (bag.count[i] != 0) rows.push_back(static_cast<std::uint32_t>(i));
    subset.fill(0, subset.atoms().size(), rows.data(), rows.size(), poll);
    grow_on_subset(subset, targets, {seedling}, rule, poll, out);
  }
  out.picked.clear();
}

// `From` is a table or a projection.
template <class From>
Trees grow_tree(From& from, const Dictionary& dictionary, const Targets& targets, const Bag& bag, const GrowthRule& rule,
               std::uint64_t root_key, const Poll& poll) {
  Trees grown;
  grow_trees(from, dictionary, targets, {{bag, root_key}}, rule, poll, grown);
  return grown;
}

}  // namespace morf
