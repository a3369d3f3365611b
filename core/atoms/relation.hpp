// Which indices an atom may hold together: a graph, and how connected sets are drawn from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.hpp"

namespace morf {

struct Relation {
  enum class Method : std::uint8_t { grow, walk, hops };

  // Neighbours of index i stand in neighbour[begin[i]] .. neighbour[begin[i + 1] - 1], in ascending order. `cumulative` has their
  // weights, summed from the first one of each index on; empty: all weigh the same. Throws std::invalid_argument.
  Relation(Method method, const std::vector<std::uint64_t>& begin, std::vector<std::uint32_t> neighbour,
           std::vector<std::uint64_t> cumulative, std::uint64_t min_hops, std::uint64_t max_hops);

  std::size_t size() const { return begin.size() - 1; }
  // Where an index stands among the features: those of one channel may come in runs.
  std::uint32_t place(std::uint32_t index) const { return skip == 0 ? index : index + index / run * skip; }
  std::size_t degree(std::uint32_t index) const { return begin[index + 1] - begin[index]; }

  Method method;
  std::vector<std::uint32_t> begin;
  std::vector<std::uint32_t> neighbour;
  std::vector<std::uint64_t> cumulative;
  std::uint64_t min_hops, max_hops;
  std::vector<std::uint32_t> reach;  // how many indices each one is connected with, itself included; empty: with all
  std::uint32_t run = 1, skip = 0;
};

// Draws connected sets, in time that follows their size.
class RelatedSets {
 public:
  void reserve(std::size_t indices);

  // Returns a set of at most `most` indices in the order in which they joined, which is valid until the next draw.
  const std::vector<std::uint32_t>& draw(const Relation& relation, std::size_t most, Stream& stream);

 private:
  static constexpr std::size_t most_vain_ = 64;  // draws in a row, for each member
  static constexpr std::size_t few_ = 32;  // members are looked up one by one, which reads no other memory

  bool holds(std::uint32_t index) const;
  bool join(std::uint32_t index);
  void grow(const Relation& relation, std::size_t size, Stream& stream);
  void join_some(const std::uint32_t* neighbour, std::size_t degree, std::size_t room, Stream& stream);
  void spread(const Relation& relation, std::size_t most, std::uint64_t hops, Stream& stream);

  std::vector<std::uint32_t> members_, new_;
  std::vector<std::uint64_t> taken_;
  std::uint64_t epoch_ = 0;
  bool marks_ = false;  // taken_ says which indices are members
};

}  // namespace morf
