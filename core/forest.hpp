// The fitted forest: its invariants, checked once, and prediction.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "dictionary.hpp"
#include "project.hpp"
#include "table.hpp"

namespace morf {

// All trees' nodes in one sequence of parallel arrays; see Tree in grow.hpp. Child indices are relative to the tree,
// payloads are relative to the forest.
struct ForestArrays {
  std::vector<std::int64_t> tree_begin;  // n_trees + 1
  std::vector<std::int32_t> next;
  std::vector<std::int64_t> threshold;
  std::vector<double> real_threshold;
  std::vector<std::uint32_t> term_count;
  std::vector<std::uint32_t> term_cell;
  std::vector<double> term_weight;
  std::size_t class_count = 0;  // 0: regression
  std::vector<std::uint32_t> distribution_size;
  std::vector<std::uint32_t> distribution_class;
  std::vector<std::uint32_t> distribution_weight;
  std::vector<double> leaf_value;
};

class Forest {
 public:
  Forest(RowLayout layout, ForestArrays arrays)
      : layout_(std::move(layout)), real_(!arrays.real_threshold.empty()), arrays_(std::move(arrays)) {
    check();
    index_terms_and_distributions();
    if (!real_) compile_slots();
  }

  std::size_t trees() const { return arrays_.tree_begin.size() - 1; }
  std::size_t outputs() const { return std::max<std::size_t>(arrays_.class_count, 1); }
  std::int64_t features() const { return layout_.features; }

  // Adds the trees' posteriors (regression: values) for `rows` samples to out[rows][outputs()], in tree order, and divides
  // by their number. `extra_bits`: the samples are quantised that much finer than the thresholds.
  template <class In>
  void predict(const In* x, std::size_t rows, CellType type, const Quantiser& quantiser, int extra_bits,
               double* out) const {
    const double trees_inverse = 1.0 / static_cast<double>(trees());
    each_block(x, rows, type, quantiser, extra_bits, [&](std::size_t first, std::size_t size, std::size_t tree, const std::int32_t* leaf) {
      for (std::size_t i = 0; i < size; ++i) add_leaf(leaf[i], out + (first + i) * outputs());
      if (tree + 1 == trees())
        for (std::size_t v = first * outputs(); v < (first + size) * outputs(); ++v) out[v] *= trees_inverse;
    });
  }

  // The leaf of each sample in each tree, as an index within the tree: out[rows][trees()].
  template <class In>
  void apply(const In* x, std::size_t rows, CellType type, const Quantiser& quantiser, int extra_bits,
             std::int32_t* out) const {
    each_block(x, rows, type, quantiser, extra_bits, [&](std::size_t first, std::size_t size, std::size_t tree, const std::int32_t* leaf) {
      for (std::size_t i = 0; i < size; ++i)
        out[(first + i) * trees() + tree] = leaf[i] - static_cast<std::int32_t>(arrays_.tree_begin[tree]);
    });
  }

  // Adds one tree's posterior for the given rows of a training table to out[table row][outputs()].
  void add_tree(std::size_t tree, const Table& table, const std::uint32_t* rows, std::size_t row_count, double* out) const {
    if (real_ != (table.type() == CellType::f64) || !table.suits(layout_))
      throw std::invalid_argument("the table does not fit the forest");
    if (table.type() == CellType::bytes) {
      add_tree_to_bytes(tree, table, rows, row_count, out);
      return;
    }
    with_cell_type(table.type(), [&](auto cell) {
      using Cell = decltype(cell);
      const Cell* cells[block_rows];
      for (std::size_t first = 0; first < row_count; first += block_rows) {
        const std::size_t size = std::min(block_rows, row_count - first);
        for (std::size_t i = 0; i < size; ++i) cells[i] = reinterpret_cast<const Cell*>(table.buffer().row(rows[first + i]));
        add_block(tree, cells, rows + first, size, out);
      }
    });
  }

 private:
  static constexpr std::size_t block_rows = 256;  // their cells stay in the second-level cache while all trees pass
  static constexpr std::int64_t threshold_limit = std::int64_t{1} << 62;  // sums of two values below 2^61
  static constexpr std::size_t in_flight = 8;     // walks whose cache misses overlap

  // A split whose atom fits Slots, in 16 or 24 bytes. Leaves point to themselves and send everything left, so that walks
  // need no branch.
  template <class Index>
  struct SlotNode {
    std::int32_t threshold;
    std::int32_t next;
    Index plus0, minus0, minus1, plus1;
  };

  void check() const {
    const auto require = [](bool condition, const char* message) {
      if (!condition) throw std::invalid_argument(std::string("damaged forest: ") + message);
    };
    const ForestArrays& a = arrays_;
    const std::size_t nodes = a.next.size();
    require(a.tree_begin.size() >= 2 && a.tree_begin.front() == 0, "tree offsets");
    require(nodes < static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()), "too many nodes");
    require(static_cast<std::size_t>(a.tree_begin.back()) == nodes, "tree offsets do not span the nodes");
    require((real_ ? a.real_threshold.size() : a.threshold.size()) == nodes && a.term_count.size() == nodes,
            "node arrays differ in length");
    require(a.term_cell.size() == a.term_weight.size(), "term arrays differ in length");
    require(a.distribution_class.size() == a.distribution_weight.size(), "distribution arrays differ in length");
    std::uint64_t terms = 0, entries = 0;
    for (std::size_t tree = 0; tree + 1 < a.tree_begin.size(); ++tree) {
      const std::int64_t begin = a.tree_begin[tree], end = a.tree_begin[tree + 1];
      require(begin < end && static_cast<std::size_t>(end) <= nodes, "tree offsets");
      for (std::int64_t node = begin; node < end; ++node) {
        terms += a.term_count[node];
        if (a.next[node] >= 0) {
          // Children come after their parent, so walks end.
          require(a.next[node] > node - begin && std::int64_t{a.next[node]} + 1 < end - begin, "child index");
        } else {
          const std::uint64_t payload = static_cast<std::uint64_t>(-1 - static_cast<std::int64_t>(a.next[node]));
          require(payload < (a.class_count > 0 ? a.class_count + a.distribution_size.size() : a.leaf_value.size()),
                  "leaf payload");
        }
        if (real_) require(std::isfinite(a.real_threshold[node]), "threshold");
        else require(a.threshold[node] > -threshold_limit && a.threshold[node] < threshold_limit, "threshold");
      }
    }
    require(terms == a.term_cell.size(), "terms do not fit the nodes");
    for (std::size_t t = 0; t < a.term_cell.size(); ++t)
      require(a.term_cell[t] < layout_.cells() && std::isfinite(a.term_weight[t]) && std::abs(a.term_weight[t]) < 0x1.0p62 &&
                  (real_ || a.term_weight[t] == std::floor(a.term_weight[t])), "term");
    for (const std::uint32_t size : a.distribution_size) {
      require(size > 0, "empty distribution");
      entries += size;
    }
    require(entries == a.distribution_class.size(), "distributions do not fit the leaves");
    for (std::size_t i = 0; i < a.distribution_class.size(); ++i)
      require(a.distribution_class[i] < a.class_count && a.distribution_weight[i] > 0, "distribution");
    for (const double value : a.leaf_value) require(std::isfinite(value), "leaf value");
  }

  void index_terms_and_distributions() {
    term_begin_.reserve(arrays_.next.size() + 1);
    term_begin_.push_back(0);
    for (const std::uint32_t count : arrays_.term_count) term_begin_.push_back(term_begin_.back() + count);
    std::size_t begin = 0;
    for (const std::uint32_t size : arrays_.distribution_size) {
      double total = 0.0;
      for (std::size_t i = begin; i < begin + size; ++i) total += arrays_.distribution_weight[i];
      distribution_begin_.push_back(begin);
      distribution_scale_.push_back(1.0 / total);
      begin += size;
    }
    root_of_.reserve(arrays_.next.size());
    for (std::size_t tree = 0; tree < trees(); ++tree)
      root_of_.insert(root_of_.end(), arrays_.tree_begin[tree + 1] - arrays_.tree_begin[tree],
                      static_cast<std::int32_t>(arrays_.tree_begin[tree]));
  }

  void compile_slots() {
    const auto zero = static_cast<std::uint32_t>(layout_.cells() - 1);
    std::vector<SlotNode<std::uint32_t>> nodes(arrays_.next.size());
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      Slots s;
      if (!to_slots(arrays_.term_cell.data() + term_begin_[node], arrays_.term_weight.data() + term_begin_[node],
                    arrays_.term_count[node], zero, s))
        return;
      const std::int64_t half = arrays_.threshold[node] >> 1;  // v <= floor(t / 2) is 2 v <= t
      if (half != static_cast<std::int32_t>(half)) return;
      const bool leaf = arrays_.next[node] < 0;
      nodes[node] = {leaf ? std::numeric_limits<std::int32_t>::max() : static_cast<std::int32_t>(half),
                     leaf ? static_cast<std::int32_t>(node) : root_of_[node] + arrays_.next[node],
                     s.plus[0], s.minus[0], s.minus[1], s.plus[1]};
    }
    if (zero > std::numeric_limits<std::uint16_t>::max()) {
      wide_slots_ = std::move(nodes);
      return;
    }
    narrow_slots_.reserve(nodes.size());
    for (const auto& n : nodes)
      narrow_slots_.push_back({n.threshold, n.next, static_cast<std::uint16_t>(n.plus0), static_cast<std::uint16_t>(n.minus0),
                               static_cast<std::uint16_t>(n.minus1), static_cast<std::uint16_t>(n.plus1)});
  }

  // Tables of bytes have no prefix sums; make them a block at a time. Their patches sum to less than 2^16.
  void add_tree_to_bytes(std::size_t tree, const Table& table, const std::uint32_t* rows, std::size_t row_count,
                         double* out) const {
    const RowBuffer buffer(block_rows, layout_.cells() * sizeof(std::uint16_t));
    const std::uint16_t* cells[block_rows];
    for (std::size_t first = 0; first < row_count; first += block_rows) {
      const std::size_t size = std::min(block_rows, row_count - first);
      for (std::size_t i = 0; i < size; ++i) {
        auto* row = reinterpret_cast<std::uint16_t*>(buffer.row(i));
        fill_row(reinterpret_cast<const std::uint8_t*>(table.buffer().row(rows[first + i])), layout_, Quantiser(0, 255.0), row);
        cells[i] = row;
      }
      add_block(tree, cells, rows + first, size, out);
    }
  }

  template <class Cell>
  void add_block(std::size_t tree, const Cell* const* cells, const std::uint32_t* rows, std::size_t size, double* out) const {
    std::int32_t leaf[block_rows];
    find_leaves<Cell>(cells, size, tree, 0, leaf);
    for (std::size_t i = 0; i < size; ++i) add_leaf(leaf[i], out + rows[i] * outputs());
  }

  void add_leaf(std::int32_t node, double* out) const {
    const std::size_t payload = static_cast<std::size_t>(-1 - static_cast<std::int64_t>(arrays_.next[node]));
    if (arrays_.class_count == 0) {
      out[0] += arrays_.leaf_value[payload];
    } else if (payload < arrays_.class_count) {
      out[payload] += 1.0;
    } else {
      const std::size_t d = payload - arrays_.class_count;
      const std::size_t begin = distribution_begin_[d];
      for (std::size_t i = begin; i < begin + arrays_.distribution_size[d]; ++i)
        out[arrays_.distribution_class[i]] += arrays_.distribution_weight[i] * distribution_scale_[d];
    }
  }

  template <class In, class Use>
  void each_block(const In* x, std::size_t rows, CellType type, const Quantiser& quantiser, int extra_bits, Use use) const {
    if (real_ != (type == CellType::f64) || type == CellType::bytes) throw std::invalid_argument("cell type does not fit the forest");
    with_cell_type(type, [&](auto cell) {
      using Cell = decltype(cell);
      const RowBuffer buffer(std::min(block_rows, rows), layout_.cells() * sizeof(Cell));
      std::int32_t leaf[block_rows];
      const Cell* cells[block_rows];
      for (std::size_t first = 0; first < rows; first += block_rows) {
        const std::size_t size = std::min(block_rows, rows - first);
        for (std::size_t i = 0; i < size; ++i) {
          Cell* row = reinterpret_cast<Cell*>(buffer.row(i));
          fill_row(x + (first + i) * layout_.features, layout_, quantiser, row);
          cells[i] = row;
        }
        for (std::size_t tree = 0; tree < trees(); ++tree) {
          find_leaves<Cell>(cells, size, tree, extra_bits, leaf);
          use(first, size, tree, leaf);
        }
      }
    });
  }

  // leaf[i] becomes the index within the forest of the leaf that row i falls into.
  template <class Cell>
  void find_leaves(const Cell* const* cells, std::size_t size, std::size_t tree, int extra_bits, std::int32_t* leaf) const {
    const auto root = static_cast<std::int32_t>(arrays_.tree_begin[tree]);
    if constexpr (sizeof(Cell) <= 4) {
      if (extra_bits == 0 && !narrow_slots_.empty()) return walk_slots(narrow_slots_.data(), cells, size, root, leaf);
      if (extra_bits == 0 && !wide_slots_.empty()) return walk_slots(wide_slots_.data(), cells, size, root, leaf);
    }
    for (std::size_t i = 0; i < size; ++i) {
      std::int32_t node = root;
      while (arrays_.next[node] >= 0) {
        const ValueOf<Cell> value = Projector<Cell>::sum_terms(cells[i], arrays_.term_cell.data(), arrays_.term_weight.data(),
                                                               term_begin_[node], term_begin_[node + 1]);
        bool right;
        if constexpr (std::is_floating_point_v<Cell>) right = value > arrays_.real_threshold[node];
        else right = static_cast<std::int64_t>(value) > scaled_half(arrays_.threshold[node], extra_bits);
        node = root + arrays_.next[node] + right;
      }
      leaf[i] = node;
    }
  }

  // floor(t * 2^extra_bits / 2); callers choose extra_bits so that it fits.
  static std::int64_t scaled_half(std::int64_t t, int extra_bits) {
    return extra_bits == 0 ? t >> 1 : static_cast<std::int64_t>(static_cast<std::uint64_t>(t) << (extra_bits - 1));
  }

  template <class Node, class Cell>
  static void walk_slots(const Node* nodes, const Cell* const* cells, std::size_t size, std::int32_t root, std::int32_t* leaf) {
    const auto step = [nodes](const Cell* row, std::int32_t at) {
      using Sum = SumOf<Cell>;
      const Node& n = nodes[at];
      const auto value = value_of_sum<Cell>(static_cast<Sum>(row[n.plus0]) - static_cast<Sum>(row[n.minus0]) -
                                            static_cast<Sum>(row[n.minus1]) + static_cast<Sum>(row[n.plus1]));
      return n.next + static_cast<std::int32_t>(value > n.threshold);
    };
    std::size_t i = 0;
    for (; i + in_flight <= size; i += in_flight) {
      std::int32_t at[in_flight];
      std::fill(at, at + in_flight, root);
      for (std::int32_t moved = 1; moved != 0;) {
        moved = 0;
        for (std::size_t b = 0; b < in_flight; ++b) {
          const std::int32_t to = step(cells[i + b], at[b]);
          moved |= to ^ at[b];
          at[b] = to;
        }
      }
      std::copy(at, at + in_flight, leaf + i);
    }
    for (; i < size; ++i) {
      std::int32_t at = root;
      for (std::int32_t to = step(cells[i], at); to != at; to = step(cells[i], at)) at = to;
      leaf[i] = at;
    }
  }

  RowLayout layout_;
  bool real_;  // float64 cells
  ForestArrays arrays_;
  std::vector<std::size_t> term_begin_, distribution_begin_;
  std::vector<double> distribution_scale_;
  std::vector<std::int32_t> root_of_;
  std::vector<SlotNode<std::uint16_t>> narrow_slots_;
  std::vector<SlotNode<std::uint32_t>> wide_slots_;
};

}  // namespace morf
