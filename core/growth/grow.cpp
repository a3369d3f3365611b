#include "growth/grow.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <queue>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "atoms/sampler.hpp"
#include "base/random.hpp"
#include "base/simd.hpp"
#include "base/thread_crew.hpp"
#include "growth/combination.hpp"
#include "growth/sides.hpp"
#include "projection/with_projection.hpp"
#include "splitting/node_search.hpp"

namespace morf {
namespace {

constexpr int max_rounds = 16;  // of redrawing when no candidate splits

// Grows one tree after another; keeps its scratch memory.
template <class Value>
class Grower {
 public:
  // All of these must outlive the grower.
  Grower(Projection<Value>& projection, const Dictionary& dictionary, const Targets& targets, const GrowthRule& rule,
         const Poll& poll)
      : rule_(rule), poll_(poll), boosted_(rule.criterion == CriterionKind::gradient),
        own_(make_node_search(rule.criterion, rule.splitter, targets, projection)), sampler_(dictionary),
        gaps_(projection.gaps()), has_operations_(dictionary.has_operations()), has_biases_(dictionary.has_biases()),
        in_order_(has_biases_ || !rule.penalties.empty()),
        crew_(boosted_ ? std::min(rule.threads, (rule.candidates + lanes - 1) / lanes) : 1) {
    if (!rule.penalties.empty()) {
      if (!learns || boosted_) throw std::invalid_argument("combinations need values of 32 bits, and no gradients");
      combination_.emplace(rule.penalties, targets);
    }
    for (std::size_t i = 1; i < crew_.size(); ++i) {
      projections_.push_back(projection.copy());
      others_.push_back(own_->copy(*projections_.back()));
    }
  }

  // Appends a tree. An honest one has a bag of its own for its leaves.
  void grow(const Bag& bag, const Bag* leaf_bag, std::uint64_t root_key, Trees& out) {
    bag_ = bag;
    leaf_bag_ = leaf_bag;
    out_ = &out;
    read_bag();
    nodes_.assign(1, Node{});
    atoms_of_splits_.clear();
    const Open root{0, {0, rows_.size()}, {0, leaf_rows_.size()}, 0, root_key};
    if (rule_.max_leaf_nodes == std::numeric_limits<std::uint64_t>::max()) grow_depth_first(root);
    else grow_best_first(root);
    if (leaf_bag_ != nullptr && rule_.empty_leaf == EmptyLeaf::prune) prune();
    write_nodes(out);
  }

 private:
  static constexpr bool learns = std::is_same_v<Value, std::int32_t>;  // combinations
  static constexpr std::size_t worth_sharing = std::size_t{1} << 13;  // values of a node: else threads wait longer than they work
  inline static const Poll silent = [](std::size_t) {};  // only the calling thread may talk to the interpreter

  struct RowRange {
    std::size_t begin, end;
    std::size_t size() const { return end - begin; }
  };

  // A node that may yet be split: the ranges of its rows and, in honest trees, of its leaf rows, and the key of its random numbers.
  struct Open {
    std::size_t index;
    RowRange rows, leaf_rows;
    std::uint64_t depth, key;
  };

  static constexpr std::int32_t empty = std::numeric_limits<std::int32_t>::min();  // in place of a payload: to be pruned

  // A node of the tree, and of a split the number of its atom in atoms_of_splits_.
  struct Node {
    std::conditional_t<std::is_integral_v<Value>, std::int64_t, double> threshold = 0;
    std::size_t atom = 0;
    std::int32_t next = 0;
    std::uint32_t weight = 0;
    float gain = 0.0f;
    Side side = Side::none;
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
    tree_weight_ = list_rows(bag_, rows_);
    leaf_rows_.clear();
    if (leaf_bag_ != nullptr) list_rows(*leaf_bag_, leaf_rows_);
    reserve_at_least(scratch_, std::max(rows_.size(), leaf_rows_.size()));
    limits_ = {std::max<std::uint64_t>(rule_.min_samples_leaf, 1),
               static_cast<std::uint64_t>(std::ceil(rule_.min_weight_fraction_leaf * static_cast<double>(tree_weight_)))};
    own_->set_limits(limits_);
    for (auto& other : others_) other->set_limits(limits_);
  }

  // Lists the rows of a bag, and returns their weight.
  std::uint64_t list_rows(const Bag& bag, std::vector<std::uint32_t>& rows) const {
    rows.resize(bag.rows);
    std::uint64_t weight = 0;
    std::size_t size = 0;
    for (std::size_t i = 0; i < bag.rows; ++i) {
      const std::size_t row = in_order_ && bag.order != nullptr ? bag.order[i] : i;
      const bool drawn = bag.count[row] != 0;
      rows[size] = static_cast<std::uint32_t>(row);
      size += drawn;
      weight += drawn ? bag.weight[row] : 0;
    }
    rows.resize(size);
    return weight;
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
      project_rows(&rows_[found.node.rows.begin], found.node.rows.size(), found.atom, own_->best_values);
      const auto [left, right] = make_split(found);
      offer(left);
      offer(right);
    }
    for (; !queue.empty(); queue.pop()) {
      read_node(queue.top().node);
      make_leaf(queue.top().node);
    }
  }

  // Writes the values of an atom for some rows.
  void project_rows(const std::uint32_t* rows, std::size_t size, const AtomList& atom, std::vector<Value>& values) {
    const std::size_t stride = whole_blocks(size);
    Range<Value> range;
    reserve_at_least(values, stride);
    own_->projection()(rows, size, atom, 0, 1, values.data(), stride, &range);
  }

  NodeRows read_node(const Open& open) {
    const NodeRows node = read_rows(bag_, &rows_[open.rows.begin], open.rows.size());
    nodes_[open.index].weight = static_cast<std::uint32_t>(node.total_weight);
    return node;
  }

  NodeRows read_rows(const Bag& bag, const std::uint32_t* rows, std::size_t size) {
    const auto gather = [&](const std::uint32_t* of_row, std::vector<std::uint32_t>& to) {
      reserve_at_least(to, size);
      std::uint64_t total = 0;
      for (std::size_t i = 0; i < size; ++i) total += to[i] = of_row[rows[i]];
      return total;
    };
    NodeRows node{rows, size, nullptr, nullptr, 0, 0};
    node.total_count = gather(bag.count, count_);
    node.total_weight = bag.weight == bag.count ? node.total_count : gather(bag.weight, weight_);
    node.count = count_.data();
    node.weight = bag.weight == bag.count ? node.count : weight_.data();
    pure_ = own_->begin_node(node);
    return node;
  }

  // On success `found` holds the split and own_.best_values its atom's values; else the node is made a leaf.
  bool find_split(const Open& open, Found& found) {
    poll_(open.rows.size());
    const NodeRows node = read_node(open);
    if (search_node(open, node, found)) return true;
    make_leaf(open);
    return false;
  }

  bool search_node(const Open& open, const NodeRows& node, Found& found) {
    SideLimits limits = limits_;
    if (rule_.min_child_fraction > 0.0) {
      const double share = std::ceil(rule_.min_child_fraction * static_cast<double>(node.total_weight));
      limits.min_weight = std::max(limits.min_weight, static_cast<std::uint64_t>(share));
      own_->set_limits(limits);
    }
    if (pure_ || node.total_count < rule_.min_samples_split || node.total_count < 2 * rule_.min_samples_leaf ||
        node.total_weight < 2 * limits.min_weight || open.depth >= rule_.max_depth)
      return false;
    if (leaf_bag_ != nullptr && open.leaf_rows.size() == 0) return false;  // no child would have a leaf row either

    found.node = open;
    Split<Value>& best = own_->best;
    best = {};
    best.score = own_->floor();
    sampler_.begin_node();
    Stream stream(open.key), combinations(derive(open.key, Purpose::combination)), sides(derive(open.key, Purpose::sides));
    // Two rows part in one way only, if at all.
    const double ceiling = node.size == 2 ? minus_infinity : own_->ceiling();
    const std::size_t candidates = splits_at_random(open.key) ? 1 : rule_.candidates;
    const std::size_t batch = node.size == 2 ? 4 : ceiling < infinity ? lanes : candidates;
    for (int round = 0; !best.found() && (round < max_rounds || sampler_.enumerable()); ++round) {
      if (boosted_ && round > 0) break;  // candidates that split may all be worthless
      atoms_.clear();
      // A few at a time where a split may turn out that no other can beat: most nodes of a tree are that small.
      for (std::size_t drawn = 0; drawn < candidates && !(best.found() && best.score >= ceiling);) {
        const std::size_t first = atoms_.size(), count = std::min(batch, candidates - drawn);
        sampler_.draw(stream, count, atoms_);
        drawn += count;
        if (has_biases_) own_->projection().set_biases(node.rows, node.count, node.size, atoms_, first);
        if (gaps_ != nullptr) offer_sides_(*gaps_, node.rows, node.size, sides, atoms_, first);
        if (atoms_.size() > first) search_candidates(node, first);
        else if (sampler_.enumerable()) break;  // every atom was seen
      }
      if constexpr (learns) {
        const std::size_t drawn = atoms_.size();
        if (combination_ && !(best.found() && best.score >= ceiling) &&
            combination_->learn(own_->projection(), node.rows, node.size, combinations, atoms_))
          search_candidates(node, drawn);
      }
      if (atoms_.size() == 0 && sampler_.enumerable()) break;  // else a mixture may draw another part next time
    }
    if (!best.found()) return false;
    found.split = best;
    found.gain = own_->gain(found.split.score, static_cast<double>(tree_weight_));
    if (rule_.min_impurity_decrease > 0.0 && found.gain < rule_.min_impurity_decrease) return false;
    found.atom.clear();
    found.atom.append(atoms_, found.split.candidate);
    if (gaps_ != nullptr) found.atom.side.push_back(atoms_.side[found.split.candidate]);
    return true;
  }

  bool splits_at_random(std::uint64_t key) const {
    return rule_.random_split_rate > 0.0 && Stream(derive(key, Purpose::random_split)).unit() < rule_.random_split_rate;
  }

  // Improves the best split with the atoms from `first` on.
  void search_candidates(const NodeRows& node, std::size_t first) {
    const std::size_t count = atoms_.size() - first, groups = (count + lanes - 1) / lanes;
    const std::size_t parts = node.size * count < worth_sharing ? 1 : std::min(crew_.size(), groups);
    if (parts == 1) return own_->look(node, atoms_, first, atoms_.size(), poll_);
    // Each thread takes some of the candidates. Among equals the earliest wins, as if one after the other had been searched.
    const double floor = own_->best.score;
    crew_.run(parts, [&](std::size_t part) {
      NodeSearch<Value>& searcher = part == 0 ? *own_ : *others_[part - 1];
      if (part != 0) {
        searcher.begin_node(node);
        searcher.best = {};
        searcher.best.score = floor;
      }
      const std::size_t begin = first + groups * part / parts * lanes,
                        end = first + std::min(groups * (part + 1) / parts * lanes, count);
      searcher.look(node, atoms_, begin, end, part == 0 ? poll_ : silent);
    });
    for (std::size_t part = 1; part < parts; ++part)
      if (others_[part - 1]->best.score > own_->best.score) {
        own_->best = others_[part - 1]->best;
        own_->best_values.swap(others_[part - 1]->best_values);
      }
  }

  // Parts the rows, keeping their order on both sides, and appends the two children.
  std::pair<Open, Open> make_split(const Found& found) {
    const Open& node = found.node;
    const Value* const best_values = own_->best_values.data();
    if (gaps_ != nullptr) nodes_[node.index].side = side_of(found);
    const std::size_t split_at = node.rows.begin + part_rows(&rows_[node.rows.begin], node.rows.size(),
                                                             [best_values, below = found.split.below](std::size_t i) {
                                                               return best_values[i] <= below;
                                                             });

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
    made.atom = atoms_of_splits_.size();
    atoms_of_splits_.append_terms(found.atom, 0);
    if (has_operations_) atoms_of_splits_.operation.push_back(found.atom.operation_of(0));
    const auto threshold = made.threshold;
    const Side side = made.side;
    nodes_.resize(child + 2);
    std::size_t leaf_split_at = node.leaf_rows.begin;
    if (leaf_bag_ != nullptr && node.leaf_rows.size() > 0) {
      // These rows had no part in the split, and may lie between the neighbours that the threshold parts.
      std::uint32_t* const rows = &leaf_rows_[node.leaf_rows.begin];
      project_rows(rows, node.leaf_rows.size(), found.atom, leaf_values_);
      leaf_split_at += part_rows(rows, node.leaf_rows.size(), [&](std::size_t i) {
        if (gaps_ != nullptr && gaps_->touches(found.atom, 0, rows[i], mark_of(side))) return goes_left(side);
        if constexpr (std::is_integral_v<Value>) return 2 * static_cast<std::int64_t>(leaf_values_[i]) <= threshold;
        else return leaf_values_[i] <= threshold;
      });
    }
    return {{child,
             {node.rows.begin, split_at},
             {node.leaf_rows.begin, leaf_split_at},
             node.depth + 1,
             derive(node.key, Purpose::left)},
            {child + 1,
             {split_at, node.rows.end},
             {leaf_split_at, node.leaf_rows.end},
             node.depth + 1,
             derive(node.key, Purpose::right)}};
  }

  // Where the split sends rows whose missing values its atom touches: if none does so far, to the side of more weight.
  Side side_of(const Found& found) const {
    if (found.atom.side[0] != Side::none) return found.atom.side[0];
    const Open& node = found.node;
    std::uint64_t left = 0, all = 0;
    for (std::size_t i = 0; i < node.rows.size(); ++i) {
      const std::uint32_t weight = bag_.weight[rows_[node.rows.begin + i]];
      all += weight;
      left += own_->best_values[i] <= found.split.below ? weight : 0;
    }
    return all - left > left ? Side::absent_right : Side::absent_left;
  }

  // Puts the rows that go left first, keeping the order on both sides, and returns their number.
  template <class GoesLeft>
  std::size_t part_rows(std::uint32_t* rows, std::size_t size, GoesLeft goes_left) {
    std::uint32_t* const right = scratch_.data();
    std::size_t left = 0;
    for (std::size_t i = 0; i < size; ++i) {  // no branch: which way a row goes cannot be foreseen
      const std::uint32_t row = rows[i];
      const bool goes = goes_left(i);
      rows[left] = row;
      right[i - left] = row;
      left += goes;
    }
    std::copy_n(right, size - left, rows + left);
    return left;
  }

  void make_leaf(const Open& open) {
    if (leaf_bag_ != nullptr && open.leaf_rows.size() == 0 && rule_.empty_leaf == EmptyLeaf::prune) {
      nodes_[open.index].next = empty;
      return;
    }
    const std::size_t payload = leaf_bag_ == nullptr ? own_->append_leaf(out_->leaves) : append_honest_leaf(open.leaf_rows);
    if (payload >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
      throw std::length_error("trees have more than 2^31 leaves");
    nodes_[open.index].next = -1 - static_cast<std::int32_t>(payload);
  }

  std::size_t append_honest_leaf(RowRange range) {
    if (range.size() == 0) {
      if (rule_.empty_leaf == EmptyLeaf::ignore) return out_->leaves.append_silent();
      if (rule_.empty_leaf == EmptyLeaf::uniform) return out_->leaves.append_uniform();
      range = {0, leaf_rows_.size()};
    }
    read_rows(*leaf_bag_, &leaf_rows_[range.begin], range.size());
    return own_->append_leaf(out_->leaves);
  }

  // Removes the splits that have a side without leaf rows: the other side takes their place. Nodes are numbered as depth-first growth
  // would have numbered them, and weights are those of the leaves that stay.
  void prune() {
    const auto stays = [&](std::size_t node) {
      while (nodes_[node].next >= 0) {
        const auto left = static_cast<std::size_t>(nodes_[node].next);
        if (nodes_[left].next == empty) node = left + 1;
        else if (nodes_[left + 1].next == empty) node = left;
        else break;
      }
      return node;
    };
    std::vector<Node> kept{Node{}};
    std::vector<std::pair<std::size_t, std::size_t>> open{{0, 0}};  // places among those kept and before
    while (!open.empty()) {
      const auto [place, before] = open.back();
      open.pop_back();
      const Node node = kept[place] = nodes_[stays(before)];
      if (node.next < 0) continue;
      const std::size_t child = kept.size();
      kept[place].next = static_cast<std::int32_t>(child);
      kept.resize(child + 2);
      open.emplace_back(child + 1, static_cast<std::size_t>(node.next) + 1);
      open.emplace_back(child, static_cast<std::size_t>(node.next));
    }
    for (std::size_t node = kept.size(); node-- > 0;)
      if (kept[node].next >= 0) {
        const auto left = static_cast<std::size_t>(kept[node].next);
        kept[node].weight = kept[left].weight + kept[left + 1].weight;
      }
    nodes_ = std::move(kept);
  }

  // Atoms were appended in the order of growth; the model keeps them in the order of the nodes, and has empty ones for leaves.
  void write_nodes(Trees& out) const {
    std::size_t node = out.next.size(), term = out.atoms.cell.size();
    std::size_t terms = term;
    for (const Node& made : nodes_)
      if (made.next >= 0) terms += atoms_of_splits_.terms(made.atom);
    const std::size_t nodes = node + nodes_.size();
    out.tree_size.push_back(static_cast<std::uint32_t>(nodes_.size()));
    out.next.resize(nodes);
    thresholds(out).resize(nodes);
    out.weight.resize(nodes);
    out.gain.resize(nodes);
    if (gaps_ != nullptr) out.side.resize(nodes);
    out.atoms.begin.resize(nodes + 1);
    out.atoms.cell.resize(terms);
    out.atoms.weight.resize(terms);
    if (has_operations_) out.atoms.operation.resize(nodes);
    for (const Node& made : nodes_) {
      out.next[node] = made.next;
      thresholds(out)[node] = made.threshold;
      out.weight[node] = made.weight;
      out.gain[node] = made.gain;
      if (gaps_ != nullptr) out.side[node] = made.side;
      if (made.next >= 0) {
        if (has_operations_) out.atoms.operation[node] = atoms_of_splits_.operation[made.atom];
        for (std::size_t t = atoms_of_splits_.begin[made.atom]; t < atoms_of_splits_.begin[made.atom + 1]; ++t, ++term) {
          out.atoms.cell[term] = atoms_of_splits_.cell[t];
          out.atoms.weight[term] = atoms_of_splits_.weight[t];
        }
      }
      out.atoms.begin[++node] = term;
    }
  }

  static auto& thresholds(Trees& trees) {
    if constexpr (std::is_integral_v<Value>) return trees.threshold;
    else return trees.real_threshold;
  }

  GrowthRule rule_;
  const Poll& poll_;
  bool boosted_;
  Bag bag_{};
  const Bag* leaf_bag_ = nullptr;  // of an honest tree
  std::unique_ptr<NodeSearch<Value>> own_;
  Sampler sampler_;
  std::uint64_t tree_weight_ = 0;
  SideLimits limits_{};
  std::vector<std::uint32_t> rows_, leaf_rows_, scratch_, count_, weight_;
  std::vector<Value> leaf_values_;
  Trees* out_ = nullptr;
  std::vector<Node> nodes_;
  AtomList atoms_, atoms_of_splits_;
  const GapReader* gaps_;  // null: no values are missing
  SideOffer offer_sides_;
  bool has_operations_, has_biases_;  // of the dictionary
  bool in_order_;  // rows are in canonical order
  bool pure_ = false;  // the node that was read last
  std::optional<CombinationLearner> combination_;
  ThreadCrew crew_;
  std::vector<std::unique_ptr<Projection<Value>>> projections_;  // of the others
  std::vector<std::unique_ptr<NodeSearch<Value>>> others_;
};

void require_fit(const Table& table, const std::vector<std::uint64_t>& root_keys, const Bags& bags, const Targets& targets,
                 const GrowthRule& rule) {
  const auto require = [](bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
  };
  const bool classes = rule.criterion == CriterionKind::gini || rule.criterion == CriterionKind::entropy;
  const bool gradients = rule.criterion == CriterionKind::gradient;
  require(classes == (targets.class_count > 0) && gradients == (targets.gradients != nullptr),
          "targets do not fit the criterion");
  require(targets.rows() == table.rows() && bags.rows() == table.rows(), "targets and bags need one entry per row");
  require(classes ? targets.classes.size() == table.rows() * targets.outputs()
                  : gradients || targets.values.size() == table.rows() * targets.outputs(),
          "targets need one entry per row and output");
  require(root_keys.size() == bags.trees(), "keys need one entry per tree");
  for (std::size_t k = 0; k < targets.outputs() && classes; ++k) {
    const std::size_t count = targets.classes_of.empty() ? targets.class_count : targets.classes_of[k];
    for (std::size_t i = 0; i < table.rows(); ++i) require(targets.classes[k * table.rows() + i] < count, "class out of range");
  }
  for (const double penalty : rule.penalties) require(penalty > 0.0 && penalty < infinity, "penalties must be positive");
}

Leaves begin_leaves(const Targets& targets) {
  return Leaves{.class_count = targets.class_count,
                .classes_of = targets.classes_of,
                .width = targets.gradients != nullptr ? targets.gradients->outputs()
                         : targets.class_count > 0    ? 1
                                                      : targets.outputs()};
}

// Replaces columns of a subset, from `node` on, by the atoms that they stand for, and thresholds by those of the atoms' values.
void put_atoms(const Subset& subset, const AtomList& columns, std::size_t node, Trees& out) {
  const AtomList& atoms = subset.atoms();
  for (std::size_t split = 0; node < out.next.size(); ++node) {
    Operation operation;
    if (out.next[node] >= 0) {
      const std::uint32_t atom = columns.cell[split++];
      if (subset.narrow()) out.threshold[node] += 2 * subset.offset(atom);
      out.atoms.append_terms(atoms, atom);
      operation = atoms.operation_of(atom);
      out.picked.push_back(atom);
    } else {
      out.atoms.close_atom();
    }
    if (subset.has_operations()) out.atoms.operation.push_back(operation);
  }
}

}  // namespace

template <class Value>
void grow_tree(Projection<Value>& projection, const Dictionary& dictionary, std::uint64_t root_key, const Bag& bag,
               const Targets& targets, const GrowthRule& rule, const Poll& poll, Trees& out, const Bag* leaf_bag) {
  if (out.next.empty()) out.leaves = begin_leaves(targets);
  Grower<Value>(projection, dictionary, targets, rule, poll).grow(bag, leaf_bag, root_key, out);
}

template void grow_tree(Projection<std::uint16_t>&, const Dictionary&, std::uint64_t, const Bag&, const Targets&,
                        const GrowthRule&, const Poll&, Trees&, const Bag*);
template void grow_tree(Projection<std::int32_t>&, const Dictionary&, std::uint64_t, const Bag&, const Targets&,
                        const GrowthRule&, const Poll&, Trees&, const Bag*);
template void grow_tree(Projection<std::int64_t>&, const Dictionary&, std::uint64_t, const Bag&, const Targets&,
                        const GrowthRule&, const Poll&, Trees&, const Bag*);
template void grow_tree(Projection<double>&, const Dictionary&, std::uint64_t, const Bag&, const Targets&, const GrowthRule&,
                        const Poll&, Trees&, const Bag*);

namespace {

template <class Value>
void grow_all(Projection<Value>& projection, const Dictionary& dictionary, const std::vector<std::uint64_t>& root_keys,
              const Bags& bags, const Bags* leaf_bags, const Targets& targets, const GrowthRule& rule, const Poll& poll,
              Trees& out) {
  Grower<Value> grower(projection, dictionary, targets, rule, poll);
  for (std::size_t tree = 0; tree < root_keys.size(); ++tree) {
    const Bag leaf_bag = leaf_bags != nullptr ? (*leaf_bags)[tree] : Bag{};
    grower.grow(bags[tree], leaf_bags != nullptr ? &leaf_bag : nullptr, root_keys[tree], out);
  }
}

struct TreeOnColumns {
  std::uint64_t key;
  Bag bag;
  const Bag* leaf_bag;
};

void grow_on_columns(const Subset& subset, const std::vector<TreeOnColumns>& trees, const Targets& targets,
                     const GrowthRule& rule, const Poll& poll, Trees& out) {
  const std::size_t node = out.next.size();
  AtomList columns;
  std::swap(columns, out.atoms);
  const auto grow = [&]<class Value>(Value) {
    std::unique_ptr<Projection<Value>> projection = std::make_unique<ColumnProjector<Value>>(subset, !subset.narrow());
    if constexpr (std::is_signed_v<Value>)
      if (subset.table().has_gaps())
        projection = std::make_unique<GapProjection<Value>>(std::move(projection), GapReader(subset.table(), &subset.atoms()));
    Grower<Value> grower(*projection, subset.dictionary(), targets, rule, poll);
    for (const TreeOnColumns& tree : trees) grower.grow(tree.bag, tree.leaf_bag, tree.key, out);
  };
  if (subset.narrow()) grow(std::uint16_t{});
  else with_cell_type(subset.type(), [&](auto cell) { grow(ValueOf<decltype(cell)>{}); });
  std::swap(columns, out.atoms);
  put_atoms(subset, columns, node, out);
}

}  // namespace

void grow_on_subset(const Subset& subset, const std::vector<std::uint64_t>& root_keys, const Bags& bags, const Targets& targets,
                    const GrowthRule& rule, const Poll& poll, Trees& out) {
  require_fit(subset.table(), root_keys, bags, targets, rule);
  if (!subset.filled()) throw std::invalid_argument("the subset has no values yet");
  if (!rule.penalties.empty()) throw std::invalid_argument("combinations need plain columns");
  if (out.next.empty()) out.leaves = begin_leaves(targets);
  std::vector<TreeOnColumns> trees;
  for (std::size_t tree = 0; tree < root_keys.size(); ++tree) trees.push_back({root_keys[tree], bags[tree], nullptr});
  grow_on_columns(subset, trees, targets, rule, poll, out);
}

void grow_trees(const Table& table, const Dictionary& dictionary, const std::vector<std::uint64_t>& root_keys, const Bags& bags,
                const Bags* leaf_bags, const Targets& targets, const GrowthRule& rule, const Poll& poll, Trees& out) {
  require_fit(table, root_keys, bags, targets, rule);
  if (leaf_bags != nullptr) {
    require_fit(table, root_keys, *leaf_bags, targets, rule);
    if (targets.gradients != nullptr) throw std::invalid_argument("boosted trees are not honest");
    if (targets.class_count == 0 && rule.empty_leaf == EmptyLeaf::uniform)
      throw std::invalid_argument("numbers have no uniform distribution");
  }
  if (!table.suits(dictionary.layout())) throw std::invalid_argument("the table was made for another dictionary");
  if (out.next.empty()) out.leaves = begin_leaves(targets);
  if (dictionary.subset() == 0)
    return with_projection(table, dictionary, [&](auto& projection) {
      grow_all(projection, dictionary, root_keys, bags, leaf_bags, targets, rule, poll, out);
    });
  if (!rule.penalties.empty()) throw std::invalid_argument("combinations need plain columns");
  Subset subset(table, dictionary);
  for (std::size_t tree = 0; tree < root_keys.size(); ++tree) {
    const Bag bag = bags[tree], leaf_bag = leaf_bags != nullptr ? (*leaf_bags)[tree] : bag;
    subset.draw(derive(root_keys[tree], Purpose::subset), bag.count, bag.order);
    std::vector<std::uint32_t> rows;
    for (std::size_t i = 0; i < bag.rows; ++i)
      if (bag.count[i] != 0 || leaf_bag.count[i] != 0) rows.push_back(static_cast<std::uint32_t>(i));
    subset.fill(0, subset.atoms().size(), rows.data(), rows.size(), poll);
    grow_on_columns(subset, {{root_keys[tree], bag, leaf_bags != nullptr ? &leaf_bag : nullptr}}, targets, rule, poll, out);
  }
  out.picked.clear();
}

}  // namespace morf
