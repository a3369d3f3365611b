// The rows of a node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace morf {

// Scratch memory only ever grows: shrinking and growing again would clear it each time.
template <class T>
void reserve_at_least(std::vector<T>& scratch, std::size_t size) {
  if (scratch.size() < size) scratch.resize(size);
}

// The rows of a node, in node order. Counts say how often a row was drawn, weights what it counts for.
struct NodeRows {
  const std::uint32_t* rows;
  std::size_t size;
  const std::uint32_t* count;
  const std::uint32_t* weight;
  std::uint64_t total_count;
  std::uint64_t total_weight;
};

}  // namespace morf
