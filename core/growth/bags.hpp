// Bags: which rows each tree sees, and what they count for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/poll.hpp"
#include "splitting/targets.hpp"

namespace morf {

// The rows that one tree sees. Rows with a count of zero are left out. Weights equal counts unless classes or rows are weighted; then
// `weight` may be `count`.
struct Bag {
  const std::uint32_t* count = nullptr;
  const std::uint32_t* weight = nullptr;
  std::size_t rows = 0;
  const std::uint32_t* order = nullptr;  // of the rows: the canonical one, where biases or combinations come from them
};

// The bags of several trees.
class Bags {
 public:
  // Counts and weights have rows of rows, one per tree; empty weights are equal to the counts. `order` is a permutation of the rows.
  // Throws std::invalid_argument if sizes do not fit, or a bag is empty, has weights of zero, or sums of 2^31 or more.
  Bags(std::vector<std::uint32_t> count, std::vector<std::uint32_t> weight, std::vector<std::uint32_t> order);

  std::size_t trees() const { return count_.size() / order_.size(); }
  std::size_t rows() const { return order_.size(); }
  Bag operator[](std::size_t tree) const {
    const std::uint32_t* const count = count_.data() + tree * rows();
    return {count, weight_.empty() ? count : weight_.data() + tree * rows(), rows(), order_.data()};
  }

 private:
  std::vector<std::uint32_t> count_, weight_, order_;
};

// Throws std::invalid_argument unless the bag may be trained on.
void check_bag(const Bag& bag);

// Draws `draws` rows with replacement for each tree, and returns how often each row was drawn, for one tree after another. `order` is
// the canonical order of the rows, and `cumulative` the cumulated weights in that order; empty: all rows weigh the same. A draw costs
// the logarithm of the number of rows. `poll` is asked as draws go by.
std::vector<std::uint32_t> draw_bags(const std::vector<std::uint64_t>& tree_keys, std::uint64_t draws,
                                     const std::vector<std::uint32_t>& order, const std::vector<std::uint64_t>& cumulative,
                                     const Poll& poll);

// Parts the rows that each tree has drawn in two, of which the second fills the leaves of an honest tree: returns a one for its rows, a
// zero for others, for one tree after another. `count` is what draw_bags() returns. Rows of a group stay together: `group` numbers them
// in canonical order and rises by one or zero from row to row. `share` of the groups drawn of each class are taken, rounded so that
// each class with two groups is in both parts, and that the share of all is right. A tree with one group has no second part.
std::vector<std::uint8_t> choose_leaf_rows(const std::vector<std::uint64_t>& tree_keys, double share,
                                           const std::vector<std::uint32_t>& order, const std::vector<std::uint32_t>& group,
                                           const std::vector<std::uint32_t>& classes, const std::vector<std::uint32_t>& count);

// Draws without replacement, from the rows in canonical order, each as often as its count says, and returns how often each was drawn.
std::vector<std::uint32_t> draw_rows(std::uint64_t tree_key, std::uint64_t draws, const std::vector<std::uint32_t>& order,
                                     const std::vector<std::uint32_t>& count, const Poll& poll);

// What one tree draws of rows that are too many to hold: their numbers, which rise, and how often each was drawn.
struct DrawnRows {
  std::vector<std::uint64_t> row;
  std::vector<std::uint32_t> count;
};

// Draws from rows 0..population-1, with or without replacement, at a cost in time and memory that depends on the draws alone.
DrawnRows draw_few_rows(std::uint64_t tree_key, std::uint64_t draws, std::uint64_t population, bool replace, const Poll& poll);

}  // namespace morf
