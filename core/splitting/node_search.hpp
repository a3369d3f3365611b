// The search for the best split of a node. The growth of a tree sees this interface alone; each criterion is compiled on its own.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "atoms/atom_list.hpp"
#include "base/poll.hpp"
#include "projection/projection.hpp"
#include "splitting/leaves.hpp"
#include "splitting/node_rows.hpp"
#include "splitting/split.hpp"
#include "splitting/targets.hpp"

namespace morf {

template <class Value>
class NodeSearch {
 public:
  virtual ~NodeSearch() = default;
  // Returns another one for another thread, with a projection of its own.
  virtual std::unique_ptr<NodeSearch> copy(Projection<Value>& projection) const = 0;

  virtual void set_limits(SideLimits limits) = 0;
  // Reads the targets of a node, and says whether they are all the same.
  virtual bool begin_node(const NodeRows& node) = 0;
  // A score that no split of the node exceeds, or infinity.
  virtual double ceiling() const = 0;
  // The score that a split must exceed.
  virtual double floor() const = 0;
  // The decrease in impurity that a score means, times the node's share of the tree's weight.
  virtual double gain(double score, double tree_weight) const = 0;
  // Writes what the node says as a leaf, and returns its payload.
  virtual std::size_t append_leaf(Leaves& leaves) = 0;

  // Improves `best` with the atoms first .. end - 1. If it is one of them, best_values are its values.
  virtual void look(const NodeRows& node, const AtomList& atoms, std::size_t first, std::size_t end, const Poll& poll) = 0;

  Projection<Value>& projection() { return *projection_; }

  Split<Value> best{};
  std::vector<Value> best_values{};

 protected:
  explicit NodeSearch(Projection<Value>& projection) : projection_(&projection) {}

  Projection<Value>* projection_;
};

// The projection must outlive the search, and so must the targets.
template <class Value>
std::unique_ptr<NodeSearch<Value>> make_node_search(CriterionKind criterion, Splitter splitter, const Targets& targets,
                                                    Projection<Value>& projection);

}  // namespace morf
