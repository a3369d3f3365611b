// One learned linear combination of the candidates of a node, by ridge regression on the node's own rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "atoms/atom_list.hpp"
#include "base/random.hpp"
#include "projection/projection.hpp"
#include "splitting/targets.hpp"

namespace morf {

inline constexpr std::int32_t combination_largest = 8191;                     // size of a column's values
inline constexpr int combination_bits = 17;  // of the sum of sizes of weights: values stay below 2^30
inline constexpr std::size_t combination_rows = 1000;  // more of a node are sampled
inline constexpr std::size_t combination_least_rows = 4;
inline constexpr std::size_t combination_columns = std::size_t{1} << 14;  // beyond, sums of products might overflow

// Weights as whole numbers: times the largest power of two for which the sum of their sizes stays below 2^combination_bits,
// and half of that while rounding takes it beyond.
std::vector<std::int32_t> whole_weights(const double* weights, std::size_t count);

// Learns the combination that a node is offered beside its candidates. It holds scratch memory.
class CombinationLearner {
 public:
  // Of several outputs, each node learns one. The targets must outlive the learner.
  CombinationLearner(std::vector<double> penalties, const Targets& targets);
  ~CombinationLearner();

  // Appends the combination of all atoms, which are single columns, to them; false if there is none. Rows are in canonical
  // order.
  bool learn(Projection<std::int32_t>& project, const std::uint32_t* rows, std::size_t row_count, Stream& stream,
             AtomList& atoms);

 private:
  class Learning;
  std::unique_ptr<Learning> learning_;
};

}  // namespace morf
