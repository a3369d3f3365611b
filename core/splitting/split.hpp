// A split, and what is asked of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/portable_math.hpp"
#include "splitting/node_rows.hpp"

namespace morf {

enum class CriterionKind : std::uint8_t { gini, entropy, squared_error, poisson, absolute_error, gradient };

// How thresholds are found: among all values, or between the bins of large nodes.
enum class Splitter : std::uint8_t { exact, histogram };

// Sides smaller than this are not allowed.
struct SideLimits {
  std::uint64_t min_count;
  std::uint64_t min_weight;

  bool allow(const NodeRows& node, std::uint64_t left_count, std::uint64_t left_weight) const {
    return left_count >= min_count && node.total_count - left_count >= min_count && left_weight >= min_weight &&
           node.total_weight - left_weight >= min_weight;
  }
};

// A split between the neighbouring values `below` < `above` of one candidate.
template <class Value>
struct Split {
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  double score = minus_infinity;  // before a split is found, the score that it must exceed
  std::size_t candidate = none;
  Value below{}, above{};

  bool found() const { return candidate != none; }
};

}  // namespace morf
