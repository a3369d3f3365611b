// The training samples in the leaves of a forest, and what they say about other samples: weights, neighbours, quantiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

namespace morf {

// The lists of a tree's nodes, one behind the other: begin[nodes + 1], and rows with their weights.
struct NodeLists {
  std::vector<std::uint32_t> begin, row, weight;
};

// An entry of a list: the row in its lower bits, and the weight above them. Most forests need no more than 32 bits.
template <class Entry>
inline constexpr int row_bits = sizeof(Entry) == 4 ? 24 : 32;
template <class Entry>
std::uint32_t row_of(Entry entry) {
  return static_cast<std::uint32_t>(entry & ((Entry{1} << row_bits<Entry>)-1));
}
template <class Entry>
std::uint32_t weight_of(Entry entry) {
  return static_cast<std::uint32_t>(entry >> row_bits<Entry>);
}

// Groups entries by leaf. Rows must come in increasing order; where a leaf has one several times, as with copies, its weights are
// added.
NodeLists group_by_leaf(std::span<const std::int32_t> leaf, std::span<const std::uint32_t> row,
                        std::span<const std::uint32_t> weight, std::size_t nodes);

// Rows of a sparse matrix, one behind the other.
struct SparseRows {
  std::vector<std::int64_t> size;  // of each row
  std::vector<std::int32_t> column;
  std::vector<double> value;
};

// What quantiles are taken of: the distinct targets in increasing order, and the place of each row's target among them.
struct RankedTargets {
  std::span<const double> value;
  std::span<const std::uint32_t> rank;
};

// The samples of all leaves of a forest. The arrays stay those of their owner.
class LeafSamples {
 public:
  using Entries = std::variant<std::span<const std::uint32_t>, std::span<const std::uint64_t>>;

  // `begin` has, for each tree, one entry per node and one for the end, which count from the first entry of the tree. Throws
  // std::invalid_argument if anything does not fit.
  LeafSamples(std::span<const std::int64_t> tree_begin, std::span<const std::uint32_t> begin, Entries entries, std::size_t rows);

  std::size_t trees() const { return tree_begin_.size() - 1; }
  std::size_t rows() const { return rows_; }
  std::size_t tree_size(std::size_t tree) const { return static_cast<std::size_t>(tree_begin_[tree + 1] - tree_begin_[tree]); }

  // In all that follows, leaf[samples][trees()] are the leaves of samples, as Forest::apply finds them. An empty list of a leaf stands
  // for all samples of its tree; if `silent` marks the tree, that tree does not vote. Where no tree votes, all leaves that are not
  // empty count the same. `silent` has an entry per tree, or none if all trees vote.

  // Counts the weights that are not zero.
  std::int64_t count(const std::int32_t* leaf, std::size_t samples, std::span<const std::uint8_t> silent) const;

  // Appends the weights of training rows for each sample: the mean over the trees that vote of a row's share of the weight of the sample's leaf.
  void weigh(const std::int32_t* leaf, std::size_t samples, std::span<const std::uint8_t> silent, SparseRows& out) const;

  // Writes the k rows of the largest weights: the largest first, among equals the row with the lower number. Where fewer have a
  // weight, the rest is -1 and 0.
  void nearest(const std::int32_t* leaf, std::size_t samples, std::span<const std::uint8_t> silent, std::size_t k,
               std::int64_t* row, double* weight) const;

  // Writes out[samples][quantiles]: the smallest target at which the weights of the targets up to it sum to the level. `level` must
  // increase. Shares are whole numbers, so that the order of rows does not matter; see docs/design.md.
  void quantiles(const std::int32_t* leaf, std::size_t samples, std::span<const std::uint8_t> silent,
                 const RankedTargets& targets, std::span<const double> level, double* out) const;

 private:
  template <class Entry>
  void check(std::span<const Entry> entries) const;
  const std::uint32_t* list_of(std::size_t tree, std::int32_t node) const {
    return begin_.data() + tree_begin_[tree] + tree + node;
  }
  std::size_t voices(const std::int32_t* leaf, std::span<const std::uint8_t> silent) const;
  template <class Entry, class Use>
  void each_voice(std::span<const Entry> entries, const std::int32_t* leaf, std::span<const std::uint8_t> silent, Use use) const;
  template <class Entry, class Use>
  void each_list(std::span<const Entry> entries, Use use) const;
  template <class Sums>
  double add_up(const std::int32_t* leaf, std::span<const std::uint8_t> silent, Sums& sums) const;
  template <class Entry>
  void quantiles_of(std::span<const Entry> entries, const std::int32_t* leaf, std::size_t samples,
                    std::span<const std::uint8_t> silent, const RankedTargets& targets, std::span<const double> level,
                    double* out) const;

  std::span<const std::int64_t> tree_begin_;
  std::span<const std::uint32_t> begin_;
  Entries entries_;
  std::size_t rows_;
  std::vector<std::size_t> first_;  // entry of each tree, and the number of all
  std::size_t filled_ = 0;          // lists that are not empty
};

// Writes the share of trees in which two samples have the same leaf: out[samples][others].
void share_leaves(const std::int32_t* leaf, std::size_t samples, const std::int32_t* other_leaf, std::size_t others,
                  std::size_t trees, double* out);

}  // namespace morf
