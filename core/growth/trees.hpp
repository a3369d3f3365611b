// Trees as they are grown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "atoms/atom_list.hpp"
#include "splitting/leaves.hpp"
#include "splitting/split.hpp"

namespace morf {

// What an honest tree does about leaves that no row fills: it removes the split, so that the other side takes its place; does not vote;
// gives each class the same probability; or says what all of its leaf rows say together.
enum class EmptyLeaf : std::uint8_t { prune, ignore, uniform, empirical };

struct GrowthRule {
  CriterionKind criterion = CriterionKind::gini;
  Splitter splitter = Splitter::histogram;
  std::size_t candidates = 1;  // atoms drawn per node
  std::uint64_t max_depth = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t min_samples_split = 2;
  std::uint64_t min_samples_leaf = 1;
  double min_weight_fraction_leaf = 0.0;
  double min_impurity_decrease = 0.0;
  double min_child_fraction = 0.0;  // of the weight of a node, which each of its children has
  double random_split_rate = 0.0;   // of the nodes that have one candidate only
  std::uint64_t max_leaf_nodes = std::numeric_limits<std::uint64_t>::max();
  std::size_t threads = 1;  // that search a node; boosting only, because forests have trees for them
  std::vector<double>
      penalties{};  // of the combination that each node learns and is offered too, see combination.hpp; empty: none
  EmptyLeaf empty_leaf = EmptyLeaf::prune;  // honest trees only
};

// The nodes of one tree after another, as parallel arrays. `next` of a split is its left child, counted within its tree, and
// the right one follows. Of a leaf it is -1 - payload, see leaves.hpp.
struct Trees {
  std::vector<std::uint32_t> tree_size;
  std::vector<std::int32_t> next;
  std::vector<std::int64_t> threshold;  // integer tables: the sum of the two neighbouring values
  std::vector<double> real_threshold;   // float64 tables
  std::vector<std::uint32_t> weight;
  std::vector<float> gain;
  std::vector<Side> side;  // of missing values; empty if none are
  AtomList atoms;  // one per node; those of leaves have no terms
  Leaves leaves;
  std::vector<std::uint32_t> picked;  // trees on a given subset: which of its atoms each split has
};

}  // namespace morf
