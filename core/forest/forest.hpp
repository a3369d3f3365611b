// The fitted forest: its invariants, checked once, and prediction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "atoms/atom_list.hpp"
#include "data/row_layout.hpp"
#include "data/table.hpp"
#include "forest/compiled_nodes.hpp"
#include "splitting/leaves.hpp"

namespace morf {

// The nodes of all trees in one sequence of parallel arrays; see Trees. Child indices are relative to the tree, payloads of leaves
// are relative to the forest.
struct ForestNodes {
  std::vector<std::int64_t> tree_begin;  // the first node of each tree, and the number of all nodes
  std::vector<std::int32_t> next;
  std::vector<std::int64_t> threshold;    // of integer cells
  std::vector<double> real_threshold{};   // of float64 cells
  std::vector<Side> side{};  // of missing values, none of leaves; empty: there are no missing values
};

// What follows from the shape of depth-first trees: `next` of each node, from whether it is split, and for each leaf, in the order of
// the nodes, its class if it is pure, else class_count: other payloads count up, in the order of growth.
std::vector<std::int32_t> depth_first_next(const std::vector<std::int64_t>& tree_begin, const std::vector<std::uint8_t>& split,
                                           const std::vector<std::uint32_t>& leaf_kind, std::size_t class_count);

// The weight of each node, from those of the leaves in the order of the nodes.
std::vector<std::uint32_t> node_weights(const std::vector<std::int64_t>& tree_begin, const std::vector<std::int32_t>& next,
                                        const std::vector<std::uint32_t>& leaf_weight);

class Forest {
 public:
  // `atoms` has one atom per node, those of leaves without terms. Throws std::invalid_argument if anything does not fit.
  Forest(RowLayout layout, AtomList atoms, ForestNodes nodes, Leaves leaves);

  std::size_t trees() const { return nodes_.tree_begin.size() - 1; }
  std::size_t outputs() const { return leaves_.outputs(); }
  std::int64_t features() const { return layout_.features; }
  std::size_t nodes() const { return nodes_.next.size(); }
  std::size_t tree_size(std::size_t tree) const {
    return static_cast<std::size_t>(nodes_.tree_begin[tree + 1] - nodes_.tree_begin[tree]);
  }
  // Whether all atoms are narrow patches, so that samples of bytes may be passed as CellType::bytes.
  bool takes_bytes() const;

  // Adds the trees' posteriors (regression: values) for samples to out[rows][outputs()], in tree order, and for their
  // mean divides by their number. Silent leaves are left out of the mean; where all are silent, it is that of all leaves of
  // the forest. `extra_bits`: the samples are quantised that much finer than the thresholds.
  void predict(const Samples& x, CellType type, const Quantiser& quantiser, int extra_bits, double* out, bool mean = true) const;

  // Finds the leaf of each sample in each tree, as an index within the tree: out[rows][trees()].
  void apply(const Samples& x, CellType type, const Quantiser& quantiser, int extra_bits, std::int32_t* out) const;

  // Finds the leaf of each row of a training table in one tree, as an index within the tree.
  void find_leaves(std::size_t tree, const Table& table, std::int32_t* out) const;

  // Adds one tree's posterior for the given rows of a training table to out[table row][outputs()], and one to votes[table row], if
  // these are given, unless the leaf is silent.
  void add_tree(std::size_t tree, const Table& table, const std::uint32_t* rows, std::size_t row_count, double* out,
                std::uint32_t* votes = nullptr) const;

  // Whether some leaves are silent: their trees do not vote on the samples there.
  bool has_silent_leaves() const { return !prior_.empty(); }

  // Adds all trees' values, in their order, for `count` rows of a training table to out[count][outputs()]. Each block of rows passes
  // through all trees while it is near.
  void add_trees(const Table& table, std::size_t begin, std::size_t count, double* out) const;

  // Shares out amount[node] among the features of each split's atom, see Importance: adds to shared[features], used[features].
  // All atoms must be linear.
  void add_importances(const double* amount, double* shared, double* used) const;

  // What the roots expect: those of splits are the means of both sides by `weight`, which has an entry per node, and nodes without a
  // leaf that says something expect nothing.
  struct Expectation {
    std::vector<double> baseline;  // of all roots that expect something: the mean, or the sum
    double largest = 0.0;          // sum of changes on a path, whatever their signs
  };
  Expectation expect_roots(const std::uint32_t* weight, bool mean = true) const;

  // Shares out what each split of a sample's path changes of the expectation among its atom's features: out[rows][features()][outputs()]
  // are means or sums over the trees. A mean is over the trees that vote; the others change to the baseline, or to what predict() says
  // where none votes, at the split that silences them. `leaf` is what apply() found, `baseline` what expect_roots() did. Amounts are
  // rounded to multiples of 2^-bits.
  void attribute(const std::int32_t* leaf, std::size_t rows, const std::uint32_t* weight, const double* baseline, int bits,
                 bool mean, double* out) const;

 private:
  static constexpr std::size_t block_rows = 256;  // of a table
  static constexpr std::size_t tiled_rows = 4 * tile_rows;

  struct NodeRange {
    std::int32_t begin = 0, end = 0;
  };

  // What is done with each block of rows. These are called once per block, so that only walks are compiled for each type of cells.
  using Walk = std::function<void(std::size_t tree, std::int32_t* leaf)>;  // of the block's rows down a tree
  using UseBlock = std::function<void(std::size_t first, std::size_t size, const Walk& walk)>;
  using UseLeaves = std::function<void(std::size_t first, std::size_t size, std::size_t tree, const std::int32_t* leaf)>;

  void check() const;
  void index_nodes();
  void compile_bytes() const;
  void compile_slots() const;
  void compile_single() const;
  template <class Index>
  void compile_into(std::vector<SlotNode<Index>>& nodes, std::uint32_t zero) const;
  template <class Put>
  bool each_split(Put put) const;
  std::int64_t half_threshold(std::size_t node) const;
  std::int32_t root(std::size_t tree) const { return static_cast<std::int32_t>(nodes_.tree_begin[tree]); }
  std::size_t payload(std::int32_t leaf) const {
    return static_cast<std::size_t>(-1 - static_cast<std::int64_t>(nodes_.next[leaf]));
  }
  void add_leaf(std::int32_t node, double* out) const;
  bool add_vote(std::int32_t node, double* out) const;
  std::vector<double> mean_of_leaves() const;
  std::vector<std::uint32_t> count_votes(const std::int32_t* leaf, std::size_t rows) const;
  void expect(std::size_t tree, const std::uint32_t* weight, std::vector<double>& out) const;
  void attribute_rows(const std::int32_t* leaf, std::size_t rows, const std::uint32_t* weight, const double* baseline, int bits,
                      bool mean, std::vector<std::uint64_t>& grid, double* out) const;
  // Calls `use` for blocks of the given rows of a table; null: of those from `begin` on.
  void each_table_block(const Table& table, const std::uint32_t* rows, std::size_t begin, std::size_t row_count,
                        const UseBlock& use) const;
  // Passes blocks of samples through all trees, and calls `use` in the order of the trees.
  void each_block(const Samples& x, CellType type, const Quantiser& quantiser, int extra_bits, const UseLeaves& use) const;

  // leaf[i] is the index within the forest of a root; it becomes that of the leaf that row i falls into. `ahead` are nodes that will be
  // visited next.
  template <class Cell>
  void walk_rows(CellType type, const Cell* const* cells, std::size_t size, int extra_bits, NodeRange ahead,
                 std::int32_t* leaf) const;

  // The same for samples of CellType::bytes; the forest must take them, see takes_bytes().
  void walk_bytes(const std::uint8_t* const* cells, std::size_t size, NodeRange ahead, std::int32_t* leaf) const;

  // The same where some rows have masks; the others have null.
  template <class Cell>
  void walk_masked(CellType type, const Cell* const* cells, const RowMask* const* masks, std::size_t size, int extra_bits,
                   NodeRange ahead, std::int32_t* leaf) const;
  template <class Cell>
  std::int32_t leaf_of_masked(const Cell* row, const RowMask& mask, int extra_bits, std::int32_t at) const;

  RowLayout layout_;
  bool real_;  // float64 cells
  AtomList atoms_;
  ForestNodes nodes_;
  Leaves leaves_;
  std::vector<std::size_t> distribution_begin_;
  std::vector<double> distribution_scale_;
  std::vector<double> prior_;  // where no tree votes; empty: all leaves do
  std::vector<std::int32_t> root_of_;
  mutable std::once_flag bytes_compiled_, slots_compiled_;
  mutable std::vector<ByteNode> byte_nodes_;
  mutable bool tall_ = false;  // patches of bytes of more than two lines
  mutable std::vector<SingleNode> single_;
  mutable std::vector<SlotNode<std::uint16_t>> narrow_slots_;
  mutable std::vector<SlotNode<std::uint32_t>> wide_slots_;
};

}  // namespace morf
