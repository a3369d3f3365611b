// The fitted forest: its invariants, checked once, and prediction.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "attribution.hpp"
#include "dictionary.hpp"
#include "importance.hpp"
#include "pool.hpp"
#include "project.hpp"
#include "table.hpp"
#include "walk.hpp"

namespace morf {

// All trees' nodes in one sequence of parallel arrays; see Trees in grow.hpp. Child indices are relative to the tree,
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
  std::size_t values = 1;  // of a leaf, where there are no classes
  std::vector<std::uint8_t> form_op{};  // see Trees
  std::vector<std::int64_t> form_bias{};
  std::vector<std::uint32_t> form_window{};
};

// What follows from the shape of depth-first trees: `next` of each node, from whether it is split, and for each leaf,
// in the order of the nodes, its class if it is pure, else class_count: other payloads count up, in the order of growth.
inline std::vector<std::int32_t> depth_first_next(const std::vector<std::int64_t>& tree_begin,
                                                  const std::vector<std::uint8_t>& split,
                                                  const std::vector<std::uint32_t>& leaf_kind, std::size_t class_count) {
  const auto require = [](bool condition) {
    if (!condition) throw std::invalid_argument("damaged forest: splits do not fit the trees");
  };
  std::vector<std::int32_t> next(split.size());
  require(split.size() < static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()) && !tree_begin.empty() &&
          tree_begin.front() == 0 && static_cast<std::size_t>(tree_begin.back()) == split.size());
  std::vector<std::uint32_t> kind(split.size());
  std::size_t leaves = 0, payload = class_count;
  for (std::size_t node = 0; node < split.size(); ++node) {
    if (split[node]) continue;
    require(leaves < leaf_kind.size() && leaf_kind[leaves] <= class_count);
    kind[node] = leaf_kind[leaves++];
  }
  require(leaves == leaf_kind.size());
  std::vector<std::int64_t> open;
  for (std::size_t tree = 0; tree + 1 < tree_begin.size(); ++tree) {
    const std::int64_t begin = tree_begin[tree], size = tree_begin[tree + 1] - begin;
    require(size > 0 && begin >= 0 && size <= static_cast<std::int64_t>(split.size()) - begin);
    std::int64_t made = 1;
    for (open.assign(1, 0); !open.empty();) {
      const std::int64_t node = begin + open.back();
      open.pop_back();
      if (split[node]) {
        require(made + 2 <= size);
        next[node] = static_cast<std::int32_t>(made);
        open.push_back(made + 1);
        open.push_back(made);
        made += 2;
      } else {
        const std::size_t points_to = kind[node] < class_count ? kind[node] : payload++;
        next[node] = static_cast<std::int32_t>(-1 - static_cast<std::int64_t>(points_to));
      }
    }
    require(made == size);
  }
  return next;
}

// The weight of each node, from those of the leaves in the order of the nodes.
inline std::vector<std::uint32_t> node_weights(const std::vector<std::int64_t>& tree_begin, const std::vector<std::int32_t>& next,
                                               const std::vector<std::uint32_t>& leaf_weight) {
  const auto require = [](bool condition) {
    if (!condition) throw std::invalid_argument("damaged forest: weights do not fit the nodes");
  };
  require(!tree_begin.empty() && tree_begin.front() == 0 && static_cast<std::size_t>(tree_begin.back()) == next.size());
  std::vector<std::uint32_t> weight(next.size());
  std::size_t leaf = leaf_weight.size();
  for (std::size_t tree = tree_begin.size() - 1; tree-- > 0;) {
    const std::int64_t begin = tree_begin[tree], end = tree_begin[tree + 1];
    require(begin >= 0 && begin < end && static_cast<std::size_t>(end) <= next.size());
    for (std::int64_t node = end; node-- > begin;) {  // children come after their parent
      if (next[node] < 0) {
        require(leaf > 0);
        weight[node] = leaf_weight[--leaf];
      } else {
        require(next[node] > node - begin && std::int64_t{next[node]} + 1 < end - begin);
        const std::uint64_t sum = std::uint64_t{weight[begin + next[node]]} + weight[begin + next[node] + 1];
        require(sum <= std::numeric_limits<std::uint32_t>::max());
        weight[node] = static_cast<std::uint32_t>(sum);
      }
    }
  }
  require(leaf == 0);
  return weight;
}

class Forest {
 public:
  Forest(RowLayout layout, ForestArrays arrays)
      : layout_(std::move(layout)), real_(!arrays.real_threshold.empty()), arrays_(std::move(arrays)) {
    check();
    index_terms_and_distributions();
    read_forms();
  }

  std::size_t trees() const { return arrays_.tree_begin.size() - 1; }
  std::size_t outputs() const { return arrays_.class_count > 0 ? arrays_.class_count : arrays_.values; }
  std::int64_t features() const { return layout_.features; }
  std::size_t nodes() const { return arrays_.next.size(); }
  // Whether all atoms are narrow patches, so that samples of bytes may be passed as CellType::bytes.
  bool takes_bytes() const {
    std::call_once(bytes_compiled_, [this] { compile_bytes(); });
    return !byte_nodes_.empty();
  }

  // Adds the trees' posteriors (regression: values) for `rows` samples to out[rows][outputs()], in tree order, and for their
  // mean divides by their number. `extra_bits`: the samples are quantised that much finer than the thresholds.
  template <class In>
  void predict(const In* x, std::size_t rows, CellType type, const Quantiser& quantiser, int extra_bits,
               double* out, bool mean = true) const {
    const double trees_inverse = 1.0 / static_cast<double>(trees());
    each_block(x, rows, type, quantiser, extra_bits, [&](std::size_t first, std::size_t size, std::size_t tree, const std::int32_t* leaf) {
      for (std::size_t i = 0; i < size; ++i) add_leaf(leaf[i], out + (first + i) * outputs());
      if (mean && tree + 1 == trees())
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

  // The leaf of each row of a training table in one tree, as an index within the tree.
  void find_leaves(std::size_t tree, const Table& table, std::int32_t* out) const {
    each_table_block(table, nullptr, table.rows(), [&](CellType type, const auto* const* cells, std::size_t first, std::size_t size) {
      std::fill_n(out + first, size, root(tree));
      find_leaves(type, cells, size, 0, {}, out + first);
      for (std::size_t i = first; i < first + size; ++i) out[i] -= root(tree);
    });
  }

  // Adds all trees' values, in their order, for `count` rows of a training table to out[count][outputs()]. Each block of rows passes
  // through all trees while it is near.
  void add_trees(const Table& table, std::size_t begin, std::size_t count, double* out) const {
    each_table_block(table, nullptr, count, [&](CellType type, const auto* const* cells, std::size_t first, std::size_t size) {
      std::int32_t leaf[block_rows];
      for (std::size_t tree = 0; tree < trees(); ++tree) {
        std::fill_n(leaf, size, root(tree));
        find_leaves(type, cells, size, 0, {}, leaf);
        for (std::size_t i = 0; i < size; ++i) add_leaf(leaf[i], out + (first + i) * outputs());
      }
    }, begin);
  }

  // Shares out amount[node] among the features of each split's atom, see Importance: adds to shared[features], used[features].
  void add_importances(const double* amount, double* shared, double* used) const {
    Importance importance(layout_);
    for (std::size_t node = 0; node < arrays_.next.size(); ++node) {
      const std::size_t begin = term_begin_[node], terms = term_begin_[node + 1] - begin;
      if (terms > 0) importance.add(&arrays_.term_cell[begin], &arrays_.term_weight[begin], terms, amount[node], shared, used);
    }
  }

  // The expected prediction of a tree's nodes, out[nodes][outputs()]: of splits the mean of both sides by the nodes' weights.
  void expect(std::size_t tree, const std::uint32_t* weight, std::vector<double>& out) const {
    const std::size_t k = outputs(), begin = static_cast<std::size_t>(root(tree)), end = begin + tree_size(tree);
    out.assign((end - begin) * k, 0.0);
    for (std::size_t node = end; node-- > begin;) {  // children come after their parent
      double* value = &out[(node - begin) * k];
      if (arrays_.next[node] < 0) {
        add_leaf(static_cast<std::int32_t>(node), value);
        continue;
      }
      const auto left = static_cast<std::size_t>(arrays_.next[node]);
      const double both = static_cast<double>(weight[begin + left]) + static_cast<double>(weight[begin + left + 1]);
      const double right_share = both > 0.0 ? static_cast<double>(weight[begin + left + 1]) / both : 0.5;
      const double *a = &out[left * k], *b = a + k;
      for (std::size_t j = 0; j < k; ++j) value[j] = a[j] + (b[j] - a[j]) * right_share;
    }
  }

  // Adds the expectations of all roots to sum[outputs()]. Returns the largest sum of changes, whatever their signs, on a path.
  double expect_roots(const std::uint32_t* weight, double* sum) const {
    const std::size_t k = outputs();
    double largest = 0.0;
    std::vector<double> value, change;
    for (std::size_t tree = 0; tree < trees(); ++tree) {
      expect(tree, weight, value);
      for (std::size_t j = 0; j < k; ++j) sum[j] += value[j];
      change.assign(value.size(), 0.0);
      for (std::size_t node = 0; node < tree_size(tree); ++node) {
        const std::int32_t left = arrays_.next[root(tree) + node];
        for (std::size_t i = 0; left >= 0 && i < 2 * k; ++i) {
          const std::size_t from = node * k + i % k, to = static_cast<std::size_t>(left) * k + i;
          change[to] = change[from] + std::abs(value[to] - value[from]);
          largest = std::max(largest, change[to]);
        }
      }
    }
    return largest;
  }

  // Shares out what each split of a sample's path changes of the expectation among its atom's features: the bits of doubles
  // out[rows][features()][outputs()], zeros before; sums over the trees, divided by `divisor`. `leaf` is what apply() found.
  // Amounts are rounded to multiples of 2^-bits.
  void attribute(const std::int32_t* leaf, std::size_t rows, const std::uint32_t* weight, int bits, double divisor,
                 std::uint64_t* out) const {
    const std::size_t k = outputs(), row_size = static_cast<std::size_t>(features()) * k;
    Shares shares(layout_, forms_);
    const bool direct = shares.direct();
    const double scale = std::ldexp(1.0, bits), unit = std::ldexp(1.0, -bits);
    std::vector<double> value;
    std::vector<std::int64_t> step(k);
    std::vector<std::int32_t> parent;
    std::vector<Shares::Part> parts;
    struct Atom {
      std::size_t begin = 0, end = 0;
      double mass = -1.0;
    };
    std::vector<Atom> atoms;
    for (std::size_t tree = 0; tree < trees(); ++tree) {
      expect(tree, weight, value);
      const std::size_t begin = static_cast<std::size_t>(root(tree)), size = tree_size(tree);
      parent.assign(size, -1);
      for (std::size_t node = 0; node < size; ++node)
        if (const std::int32_t left = arrays_.next[begin + node]; left >= 0)
          parent[left] = parent[left + 1] = static_cast<std::int32_t>(node);
      parts.clear();
      atoms.assign(size, {});  // found when a sample first passes
      for (std::size_t row = 0; row < rows; ++row) {
        std::uint64_t* grid = out + row * row_size;
        for (std::int32_t node = leaf[row * trees() + tree]; parent[node] >= 0; node = parent[node]) {
          const std::int32_t split = parent[node];
          Atom& atom = atoms[split];
          if (atom.mass < 0.0) {
            const std::size_t first = term_begin_[begin + split];
            const Form form = forms_.empty() ? Form{} : forms_[begin + split];
            atom.begin = parts.size();
            atom.mass = shares.add(&arrays_.term_cell[first], &arrays_.term_weight[first], form.own(arrays_.term_count[begin + split]),
                                   form, parts);
            atom.end = parts.size();
          }
          const double *after = &value[node * k], *before = &value[split * k];
          if (direct) {
            for (std::size_t i = atom.begin; i < atom.end; ++i)
              for (std::size_t j = 0; j < k; ++j)
                grid[parts[i].cell * k + j] += static_cast<std::uint64_t>(std::llrint((after[j] - before[j]) * parts[i].size * scale));
          } else {
            for (std::size_t j = 0; j < k; ++j) step[j] = std::llrint((after[j] - before[j]) / atom.mass * scale);
            for (std::size_t i = atom.begin; i < atom.end; ++i) {
              const auto times = static_cast<std::uint64_t>(static_cast<std::int64_t>(parts[i].size));
              for (std::size_t j = 0; j < k; ++j) grid[parts[i].cell * k + j] += times * static_cast<std::uint64_t>(step[j]);
            }
          }
        }
      }
    }
    for (std::size_t row = 0; row < rows; ++row) {
      shares.sum_up(out + row * row_size, k);
      for (std::size_t i = row * row_size; i < (row + 1) * row_size; ++i)
        out[i] = std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<std::int64_t>(out[i])) * unit / divisor);
    }
  }

  std::size_t tree_size(std::size_t tree) const {
    return static_cast<std::size_t>(arrays_.tree_begin[tree + 1] - arrays_.tree_begin[tree]);
  }

  // Adds one tree's posterior for the given rows of a training table to out[table row][outputs()].
  void add_tree(std::size_t tree, const Table& table, const std::uint32_t* rows, std::size_t row_count, double* out) const {
    each_table_block(table, rows, row_count, [&](CellType type, const auto* const* cells, std::size_t first, std::size_t size) {
      std::int32_t leaf[block_rows];
      std::fill_n(leaf, size, root(tree));
      find_leaves(type, cells, size, 0, {}, leaf);
      for (std::size_t i = 0; i < size; ++i) add_leaf(leaf[i], out + rows[first + i] * outputs());
    });
  }

 private:
  static constexpr std::size_t block_rows = 256;  // of a table
  static constexpr std::size_t tiled_rows = 4 * tile_rows;
  static constexpr std::int64_t threshold_limit = std::int64_t{1} << 62;  // sums of two values below 2^61

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
    require(a.values > 0 && a.leaf_value.size() % a.values == 0, "leaf values");
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
          require(payload < (a.class_count > 0 ? a.class_count + a.distribution_size.size() : a.leaf_value.size() / a.values),
                  "leaf payload");
        }
        if (real_) require(std::isfinite(a.real_threshold[node]), "threshold");
        else require(a.threshold[node] > -threshold_limit && a.threshold[node] < threshold_limit, "threshold");
      }
    }
    require(terms == a.term_cell.size(), "terms do not fit the nodes");
    for (std::size_t t = 0; t < a.term_cell.size(); ++t)
      require(a.term_cell[t] < layout_.cells() - 1 && std::isfinite(a.term_weight[t]) && std::abs(a.term_weight[t]) < 0x1.0p62 &&
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

  // Also checks that windows stay within a row.
  void read_forms() {
    const ForestArrays& a = arrays_;
    const auto require = [](bool condition) {
      if (!condition) throw std::invalid_argument("damaged forest: forms");
    };
    const std::size_t nodes = a.next.size(), forms = a.form_op.size();
    require(!real_ || layout_.plain());  // float64 cells are the raw values
    require(a.form_bias.size() == forms && a.form_window.size() == 4 * forms && (forms == 0 || (forms == nodes && !real_)));
    for (std::size_t node = 0; node < forms; ++node) {
      const std::uint32_t* w = &a.form_window[4 * node];
      require(a.form_op[node] <= last_op);
      Form form{.op = static_cast<Op>(a.form_op[node]), .window = {{w[0], w[1]}, {w[2], w[3]}}, .bias = a.form_bias[node]};
      const bool pooled = form.op != Op::none && form.op != Op::variance;
      if (form.op == Op::none) {
        require(std::all_of(w, w + 4, [](std::uint32_t x) { return x == 0; }));
        form.window[0] = form.window[1] = {};
      } else {
        require(a.next[node] >= 0 && w[0] > 0 && w[2] > 0 && (pooled || (form.positions() == 1 && a.term_count[node] % 2 == 0)));
      }
      if (form.op == Op::win) require(form.splits(a.term_count[node]));
      else require(form.op == Op::ppv ? form.bias > -threshold_limit && form.bias < threshold_limit : form.bias == 0);
      const std::uint64_t cells = layout_.cells();
      std::uint64_t reach = 0;  // cells from the first position to the last
      for (const Window& window : form.window) {
        require(window.count <= cells && (window.count == 1 || window.stride <= cells));
        reach += std::uint64_t{window.count - 1} * window.stride;
      }
      for (std::size_t t = term_begin_[node]; t < term_begin_[node + 1]; ++t) require(a.term_cell[t] + reach < cells);
      forms_.push_back(form);
    }
  }

  TermLists terms() const { return {arrays_.term_cell.data(), arrays_.term_weight.data(), term_begin_.data()}; }

  // Calls `put(node, atom's cells, weights, number)` for each split until it returns false.
  template <class Put>
  bool each_split(Put put) const {
    for (std::size_t node = 0; node < arrays_.next.size(); ++node)
      if (arrays_.next[node] >= 0 && !put(node, arrays_.term_cell.data() + term_begin_[node],
                                          arrays_.term_weight.data() + term_begin_[node], arrays_.term_count[node]))
        return false;
    return true;
  }

  // Nodes for samples of bytes, made when it is first asked whether there are any.
  void compile_bytes() const {
    const PatchReader reader(layout_);
    if (real_ || !forms_.empty() || !reader.suits() || arrays_.next.size() > ByteNode::most_nodes) return;
    byte_nodes_.reserve(arrays_.next.size());
    for (std::size_t node = 0; node < arrays_.next.size(); ++node) byte_nodes_.push_back(ByteNode::leaf(node));
    const bool all = each_split([&](std::size_t node, const std::uint32_t* cell, const double* weight, std::size_t count) {
      ByteNode& n = byte_nodes_[node];
      if (!reader.read(cell, weight, count, arrays_.threshold[node], n)) return false;
      tall_ |= n.link >= 2 * byte_patch_width;
      n.link |= static_cast<std::uint32_t>(root_of_[node] + arrays_.next[node]) << ByteNode::size_bits;
      return true;
    });
    if (!all) byte_nodes_ = {};
  }

  // Nodes for tables with prefix sums, made when the first batch needs them.
  void compile_slots() const {
    const auto zero = static_cast<std::uint32_t>(layout_.cells() - 1);
    bool single = true;
    const bool all = each_split([&](std::size_t node, const std::uint32_t*, const double* weight, std::size_t count) {
      single &= count == 1 && weight[0] == 1.0;
      return half_threshold(node) == static_cast<std::int32_t>(half_threshold(node));
    });
    if (!all) return;
    if (single) compile_single();
    else if (zero <= std::numeric_limits<std::uint16_t>::max()) compile_into(narrow_slots_, zero);
    else compile_into(wide_slots_, zero);
  }

  std::int64_t half_threshold(std::size_t node) const { return arrays_.threshold[node] >> 1; }  // v <= floor(t / 2) is 2 v <= t

  static constexpr std::int32_t above_all = std::numeric_limits<std::int32_t>::max();

  void compile_single() const {
    for (std::size_t node = 0; node < arrays_.next.size(); ++node) single_.push_back({above_all, static_cast<std::int32_t>(node), 0});
    each_split([&](std::size_t node, const std::uint32_t* cell, const double*, std::size_t) {
      single_[node] = {static_cast<std::int32_t>(half_threshold(node)), root_of_[node] + arrays_.next[node], *cell};
      return true;
    });
  }

  template <class Index>
  void compile_into(std::vector<SlotNode<Index>>& nodes, std::uint32_t zero) const {
    const auto none = static_cast<Index>(zero);
    for (std::size_t node = 0; node < arrays_.next.size(); ++node)
      nodes.push_back({above_all, static_cast<std::int32_t>(node), Index{0}, none, none, none});
    each_split([&](std::size_t node, const std::uint32_t* cell, const double* weight, std::size_t count) {
      Slots s;
      if (!to_slots(cell, weight, count, zero, s)) s = {{zero, zero}, {zero, zero}};
      nodes[node] = {static_cast<std::int32_t>(half_threshold(node)), root_of_[node] + arrays_.next[node],
                     static_cast<Index>(s.plus[0]), static_cast<Index>(s.minus[0]), static_cast<Index>(s.minus[1]),
                     static_cast<Index>(s.plus[1])};
      return true;
    });
  }

  // Calls use(type, cells of rows, first, size) for blocks of the given rows of a table; null: of those from `begin` on.
  template <class Use>
  void each_table_block(const Table& table, const std::uint32_t* rows, std::size_t row_count, Use use, std::size_t begin = 0) const {
    if (real_ != (table.type() == CellType::f64) || !table.suits(layout_))
      throw std::invalid_argument("the table does not fit the forest");
    const auto number = [&](std::size_t i) { return rows == nullptr ? begin + i : rows[i]; };
    const auto row = [&](std::size_t i) { return table.buffer().row(number(i)); };
    if (table.type() == CellType::bytes && !takes_bytes()) {
      // Images too large for nodes of bytes: prefix sums are made a block at a time. Narrow patches sum to less than 2^16.
      const RowBuffer buffer(block_rows, layout_.cells() * sizeof(std::uint16_t));
      const std::uint16_t* cells[block_rows];
      for (std::size_t first = 0; first < row_count; first += block_rows) {
        const std::size_t size = std::min(block_rows, row_count - first);
        for (std::size_t i = 0; i < size; ++i) {
          auto* summed = reinterpret_cast<std::uint16_t*>(buffer.row(i));
          fill_row<false>(reinterpret_cast<const std::uint8_t*>(row(first + i)), layout_, Quantiser(0, 255.0), summed);
          cells[i] = summed;
        }
        use(CellType::u16, cells, first, size);
      }
      return;
    }
    with_cell_type(table.type(), [&](auto cell) {
      using Cell = decltype(cell);
      const Cell* cells[block_rows];
      // Rows of tiles are put together a few at a time.
      const std::size_t block = table.tiled() ? tiled_rows : block_rows;
      const RowBuffer together(table.tiled() ? tiled_rows : 0, layout_.cells() * sizeof(Cell));
      for (std::size_t first = 0; first < row_count; first += block) {
        const std::size_t size = std::min(block, row_count - first);
        for (std::size_t i = 0; i < size; ++i) cells[i] = reinterpret_cast<const Cell*>(table.tiled() ? together.row(i) : row(first + i));
        for (std::size_t i = 0, some = 0; table.tiled() && i < size; i += some) {
          const std::size_t at = number(first + i);
          some = rows == nullptr ? std::min(tile_rows - at % tile_rows, size - i) : 1;
          table.read_tile<Cell>(at, some, together, i);
        }
        use(table.type(), cells, first, size);
      }
    });
  }

  void add_leaf(std::int32_t node, double* out) const {
    const std::size_t payload = static_cast<std::size_t>(-1 - static_cast<std::int64_t>(arrays_.next[node]));
    if (arrays_.class_count == 0) {
      const double* values = &arrays_.leaf_value[payload * arrays_.values];
      for (std::size_t k = 0; k < arrays_.values; ++k) out[k] += values[k];
    } else if (payload < arrays_.class_count) {
      out[payload] += 1.0;
    } else {
      const std::size_t d = payload - arrays_.class_count;
      const std::size_t begin = distribution_begin_[d];
      for (std::size_t i = begin; i < begin + arrays_.distribution_size[d]; ++i)
        out[arrays_.distribution_class[i]] += arrays_.distribution_weight[i] * distribution_scale_[d];
    }
  }

  std::int32_t root(std::size_t tree) const { return static_cast<std::int32_t>(arrays_.tree_begin[tree]); }

  // Passes blocks of rows through all trees, and calls use(first row, rows, tree, leaves) in the order of the trees. Of
  // small blocks several trees are walked at once.
  template <class In, class Use>
  void each_block(const In* x, std::size_t rows, CellType type, const Quantiser& quantiser, int extra_bits, Use use) const {
    const bool bytes = type == CellType::bytes;
    if (real_ != (type == CellType::f64) || (bytes && !takes_bytes())) throw std::invalid_argument("cell type does not fit the forest");
    with_cell_type(type, [&](auto cell) {
      using Cell = decltype(cell);
      const RowLayout layout = bytes ? layout_.unsummed() : layout_;
      const std::size_t row_bytes = layout.cells() * sizeof(Cell);
      const std::size_t block = rows_at_once(row_bytes);
      const RowBuffer buffer(std::min(block, rows), row_bytes, bytes ? byte_margin(layout) : 0);
      RowFiller<Cell> fill(layout, quantiser);
      std::int32_t leaf[walks_at_once];
      const Cell* cells[walks_at_once];
      for (std::size_t first = 0; first < rows; first += block) {
        const std::size_t size = std::min(block, rows - first), trees_at_once = std::clamp<std::size_t>(block / size, 1, trees());
        for (std::size_t i = 0; i < size; ++i) {
          Cell* row = reinterpret_cast<Cell*>(buffer.row(i));
          fill.template operator()<false>(x + (first + i) * layout.features, row);
          for (std::size_t t = 0; t < trees_at_once; ++t) cells[t * size + i] = row;
        }
        for (std::size_t tree = 0; tree < trees(); tree += trees_at_once) {
          const std::size_t end = std::min(tree + trees_at_once, trees());
          for (std::size_t t = tree; t < end; ++t) std::fill_n(leaf + (t - tree) * size, size, root(t));
          const NodeRange ahead = trees_at_once == 1 && end < trees() ? NodeRange{root(end), root(end + 1)} : NodeRange{};
          find_leaves<Cell>(type, cells, (end - tree) * size, extra_bits, ahead, leaf);
          for (std::size_t t = tree; t < end; ++t) use(first, size, t, leaf + (t - tree) * size);
        }
      }
    });
  }

  struct NodeRange {
    std::int32_t begin = 0, end = 0;
  };

  // leaf[i] is the index within the forest of a root; it becomes that of the leaf that row i falls into.
  template <class Cell>
  void find_leaves(CellType type, const Cell* const* cells, std::size_t size, int extra_bits, NodeRange ahead,
                   std::int32_t* leaf) const {
    if (!forms_.empty()) {
      const auto half = [&](std::int32_t node) { return scaled_half(arrays_.threshold[node], extra_bits); };
      return walk(FormSteps<Cell, decltype(half)>{arrays_.next.data(), root_of_.data(), terms(), forms_.data(), half}, cells, size, leaf, Ahead());
    }
    const auto run = [&](const auto& steps) {
      walk(steps, cells, size, leaf, Ahead(steps.nodes + ahead.begin, steps.nodes + ahead.end, size));
    };
#if MORFOREST_BYTE_PATCHES
    if constexpr (std::is_same_v<Cell, std::uint8_t>) {
      if (type == CellType::bytes) {
        const std::size_t width = static_cast<std::size_t>(layout_.shape.back());
        return tall_ ? run(ByteSteps<2>{byte_nodes_.data(), width}) : run(ByteSteps<1>{byte_nodes_.data(), width});
      }
    }
#endif
    if constexpr (sizeof(Cell) <= 4) {
      if (extra_bits == 0) {
        std::call_once(slots_compiled_, [this] { compile_slots(); });
        if (!single_.empty()) return run(SingleSteps<Cell>{single_.data()});
        if (!narrow_slots_.empty()) return run(SlotSteps<std::uint16_t, Cell>{narrow_slots_.data(), terms()});
        if (!wide_slots_.empty()) return run(SlotSteps<std::uint32_t, Cell>{wide_slots_.data(), terms()});
      }
    }
    const auto half = [&](std::int32_t node) {
      if constexpr (std::is_floating_point_v<Cell>) return arrays_.real_threshold[node];
      else return scaled_half(arrays_.threshold[node], extra_bits);
    };
    walk(PlainSteps<Cell, decltype(half)>{arrays_.next.data(), root_of_.data(), terms(), half}, cells, size, leaf, Ahead());
  }

  // floor(t * 2^extra_bits / 2); callers choose extra_bits so that it fits.
  static std::int64_t scaled_half(std::int64_t t, int extra_bits) {
    return extra_bits == 0 ? t >> 1 : static_cast<std::int64_t>(static_cast<std::uint64_t>(t) << (extra_bits - 1));
  }

  RowLayout layout_;
  bool real_;  // float64 cells
  ForestArrays arrays_;
  std::vector<std::size_t> term_begin_, distribution_begin_;
  std::vector<double> distribution_scale_;
  std::vector<std::int32_t> root_of_;
  std::vector<Form> forms_;  // of the nodes, if there are any
  mutable std::once_flag bytes_compiled_, slots_compiled_;
  mutable std::vector<ByteNode> byte_nodes_;
  mutable bool tall_ = false;  // patches of bytes of more than two rows
  mutable std::vector<SingleNode> single_;
  mutable std::vector<SlotNode<std::uint16_t>> narrow_slots_;
  mutable std::vector<SlotNode<std::uint32_t>> wide_slots_;
};

}  // namespace morf
