// Trees: depth-first growth, or best-first where the number of leaves is limited (the paper's Algorithm 1).
#pragma once

#include <cstdint>
#include <vector>

#include "atoms/dictionary.hpp"
#include "base/poll.hpp"
#include "data/table.hpp"
#include "growth/bags.hpp"
#include "growth/subset.hpp"
#include "growth/trees.hpp"
#include "projection/projection.hpp"
#include "splitting/targets.hpp"

namespace morf {

// Appends one tree after another to `out`, which must be of the same rule and targets: one for each bag, with the keys of their
// roots. Nodes draw their own atoms, or choose among those drawn for their tree, if the dictionary says so. Honest trees choose splits by
// the rows of `bags` and fill their leaves with those of `leaf_bags`; null: all trees do both with the same rows.
void grow_trees(const Table& table, const Dictionary& dictionary, const std::vector<std::uint64_t>& root_keys, const Bags& bags,
                const Bags* leaf_bags, const Targets& targets, const GrowthRule& rule, const Poll& poll, Trees& out);

// The same where nodes choose among the atoms of a subset, whose columns hold the rows of the bags.
void grow_on_subset(const Subset& subset, const std::vector<std::uint64_t>& root_keys, const Bags& bags, const Targets& targets,
                    const GrowthRule& rule, const Poll& poll, Trees& out);

// Appends one tree, with any projection.
template <class Value>
void grow_tree(Projection<Value>& projection, const Dictionary& dictionary, std::uint64_t root_key, const Bag& bag,
               const Targets& targets, const GrowthRule& rule, const Poll& poll, Trees& out, const Bag* leaf_bag = nullptr);

}  // namespace morf
