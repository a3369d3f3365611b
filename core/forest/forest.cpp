#include "forest/forest.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "data/row_filler.hpp"
#include "forest/attribution.hpp"
#include "forest/importance.hpp"
#include "forest/tree_walk.hpp"

namespace morf {

namespace {

// Whether no leaf below a node says something; all its expected outputs are NaN then.
bool expects_nothing(const double* expectation) { return expectation[0] != expectation[0]; }

}  // namespace

std::vector<std::int32_t> depth_first_next(const std::vector<std::int64_t>& tree_begin, const std::vector<std::uint8_t>& split,
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

std::vector<std::uint32_t> node_weights(const std::vector<std::int64_t>& tree_begin, const std::vector<std::int32_t>& next,
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

Forest::Forest(RowLayout layout, AtomList atoms, ForestNodes nodes, Leaves leaves)
    : layout_(std::move(layout)), real_(!nodes.real_threshold.empty()), atoms_(std::move(atoms)), nodes_(std::move(nodes)),
      leaves_(std::move(leaves)) {
  check();
  index_nodes();
}

bool Forest::takes_bytes() const {
  std::call_once(bytes_compiled_, [this] { compile_bytes(); });
  return !byte_nodes_.empty();
}

void Forest::predict(const Samples& x, CellType type, const Quantiser& quantiser, int extra_bits, double* out, bool mean) const {
  const double trees_inverse = 1.0 / static_cast<double>(trees());
  std::vector<std::uint32_t> votes(has_silent_leaves() ? x.rows() : 0);
  each_block(x, type, quantiser, extra_bits,
             [&](std::size_t first, std::size_t size, std::size_t tree, const std::int32_t* leaf) {
               if (votes.empty()) {
                 for (std::size_t i = 0; i < size; ++i) add_leaf(leaf[i], out + (first + i) * outputs());
                 if (mean && tree + 1 == trees())
                   for (std::size_t v = first * outputs(); v < (first + size) * outputs(); ++v) out[v] *= trees_inverse;
                 return;
               }
               for (std::size_t i = first; i < first + size; ++i) {
                 double* const of_row = out + i * outputs();
                 votes[i] += add_vote(leaf[i - first], of_row);
                 if (!mean || tree + 1 < trees()) continue;
                 if (votes[i] == 0) std::copy(prior_.begin(), prior_.end(), of_row);
                 else
                   for (std::size_t k = 0; k < outputs(); ++k) of_row[k] /= votes[i];
               }
             });
}

void Forest::apply(const Samples& x, CellType type, const Quantiser& quantiser, int extra_bits, std::int32_t* out) const {
  each_block(x, type, quantiser, extra_bits,
             [&](std::size_t first, std::size_t size, std::size_t tree, const std::int32_t* leaf) {
               for (std::size_t i = 0; i < size; ++i) out[(first + i) * trees() + tree] = leaf[i] - root(tree);
             });
}

void Forest::find_leaves(std::size_t tree, const Table& table, std::int32_t* out) const {
  each_table_block(
      table, nullptr, table.rows(),
      [&](CellType type, const auto* const* cells, const RowMask* const* masks, std::size_t first, std::size_t size) {
        std::fill_n(out + first, size, root(tree));
        walk_masked(type, cells, masks, size, 0, {}, out + first);
        for (std::size_t i = first; i < first + size; ++i) out[i] -= root(tree);
      });
}

void Forest::add_tree(std::size_t tree, const Table& table, const std::uint32_t* rows, std::size_t row_count, double* out,
                      std::uint32_t* votes) const {
  each_table_block(
      table, rows, row_count,
      [&](CellType type, const auto* const* cells, const RowMask* const* masks, std::size_t first, std::size_t size) {
        std::int32_t leaf[block_rows];
        std::fill_n(leaf, size, root(tree));
        walk_masked(type, cells, masks, size, 0, {}, leaf);
        for (std::size_t i = 0; i < size; ++i) {
          const bool vote = add_vote(leaf[i], out + rows[first + i] * outputs());
          if (votes != nullptr) votes[rows[first + i]] += vote;
        }
      });
}

void Forest::add_trees(const Table& table, std::size_t begin, std::size_t count, double* out) const {
  each_table_block(
      table, nullptr, count,
      [&](CellType type, const auto* const* cells, const RowMask* const* masks, std::size_t first, std::size_t size) {
        std::int32_t leaf[block_rows];
        for (std::size_t tree = 0; tree < trees(); ++tree) {
          std::fill_n(leaf, size, root(tree));
          walk_masked(type, cells, masks, size, 0, {}, leaf);
          for (std::size_t i = 0; i < size; ++i) add_leaf(leaf[i], out + (first + i) * outputs());
        }
      },
      begin);
}

void Forest::add_importances(const double* amount, double* shared, double* used) const {
  if (!atoms_.operation.empty()) throw std::invalid_argument("importances are shared out among linear atoms only");
  Importance importance(layout_);
  for (std::size_t node = 0; node < nodes(); ++node) {
    const std::size_t begin = atoms_.begin[node], terms = atoms_.terms(node);
    if (terms > 0) importance.add(&atoms_.cell[begin], &atoms_.weight[begin], terms, amount[node], shared, used);
  }
}

// Finds the expected prediction of a tree's nodes, out[nodes][outputs()]: the mean of the leaves below that say something, by weight;
// NaN where there are none.
void Forest::expect(std::size_t tree, const std::uint32_t* weight, std::vector<double>& out) const {
  const std::size_t k = outputs(), begin = static_cast<std::size_t>(root(tree)), end = begin + tree_size(tree);
  const bool some_silent = has_silent_leaves();
  std::vector<double> heard(some_silent ? end - begin : 0);  // weight of the leaves that say something
  const auto weight_of = [&](std::size_t node) { return some_silent ? heard[node] : static_cast<double>(weight[begin + node]); };
  out.assign((end - begin) * k, 0.0);
  for (std::size_t node = end - begin; node-- > 0;) {  // children come after their parent
    double* value = &out[node * k];
    if (nodes_.next[begin + node] < 0) {
      const bool vote = add_vote(static_cast<std::int32_t>(begin + node), value);
      if (!vote) std::fill_n(value, k, std::numeric_limits<double>::quiet_NaN());
      if (some_silent) heard[node] = vote ? static_cast<double>(weight[begin + node]) : 0.0;
      continue;
    }
    const auto left = static_cast<std::size_t>(nodes_.next[begin + node]);
    const double *a = &out[left * k], *b = a + k;
    if (some_silent) heard[node] = heard[left] + heard[left + 1];
    if (expects_nothing(a) || expects_nothing(b)) {
      std::copy_n(expects_nothing(a) ? b : a, k, value);
      continue;
    }
    const double both = weight_of(left) + weight_of(left + 1);
    const double right_share = both > 0.0 ? weight_of(left + 1) / both : 0.5;
    for (std::size_t j = 0; j < k; ++j) value[j] = a[j] + (b[j] - a[j]) * right_share;
  }
}

Forest::Expectation Forest::expect_roots(const std::uint32_t* weight, bool mean) const {
  const std::size_t k = outputs();
  Expectation found{std::vector<double>(k), 0.0};
  double voices = 0.0;
  std::vector<double> value, change, roots;
  for (std::size_t tree = 0; tree < trees(); ++tree) {
    expect(tree, weight, value);
    if (expects_nothing(value.data())) continue;
    ++voices;
    for (std::size_t j = 0; j < k; ++j) found.baseline[j] += value[j];
    if (has_silent_leaves()) roots.insert(roots.end(), value.begin(), value.begin() + static_cast<std::ptrdiff_t>(k));
    change.assign(value.size(), 0.0);
    for (std::size_t node = 0; node < tree_size(tree); ++node) {
      const std::int32_t left = nodes_.next[root(tree) + node];
      for (std::size_t i = 0; left >= 0 && i < 2 * k; ++i) {
        const std::size_t from = node * k + i % k, to = static_cast<std::size_t>(left) * k + i;
        change[to] = change[from] + std::abs(value[to] - value[from]);
        if (change[to] > found.largest) found.largest = change[to];  // not where the child expects nothing
      }
    }
  }
  if (mean)
    for (double& value : found.baseline) value /= voices;
  // Trees that fall silent change from what their root expects.
  for (std::size_t i = 0; i < roots.size(); ++i)
    for (const double to : {found.baseline[i % k], prior_[i % k]})
      found.largest = std::max(found.largest, std::abs(to - roots[i]));
  return found;
}

// Counts the trees that vote on each sample.
std::vector<std::uint32_t> Forest::count_votes(const std::int32_t* leaf, std::size_t rows) const {
  std::vector<std::uint32_t> votes(rows, static_cast<std::uint32_t>(trees()));
  if (has_silent_leaves())
    for (std::size_t i = 0; i < rows * trees(); ++i) {
      const std::int32_t node = root(i % trees()) + leaf[i];
      votes[i / trees()] -= nodes_.next[node] < 0 && leaves_.silent(payload(node));
    }
  return votes;
}

// `grid` are amounts of rows x features x outputs in fixed point, at first zeros. Their sums wrap, and are exact.
void Forest::attribute_rows(const std::int32_t* leaf, std::size_t rows, const std::uint32_t* weight, const double* baseline,
                            int bits, bool mean, std::vector<std::uint64_t>& grid, double* out) const {
  const std::size_t k = outputs(), row_size = static_cast<std::size_t>(features()) * k;
  Shares shares(layout_, atoms_.operation);
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
  const std::vector<std::uint32_t> votes = count_votes(leaf, rows);
  std::uint32_t voices = 0;  // trees that say something of some samples
  for (std::size_t tree = 0; tree < trees(); ++tree) {
    expect(tree, weight, value);
    if (expects_nothing(value.data())) continue;
    ++voices;
    const std::size_t begin = static_cast<std::size_t>(root(tree)), size = tree_size(tree);
    parent.assign(size, -1);
    for (std::size_t node = 0; node < size; ++node)
      if (const std::int32_t left = nodes_.next[begin + node]; left >= 0)
        parent[left] = parent[left + 1] = static_cast<std::int32_t>(node);
    parts.clear();
    atoms.assign(size, {});  // found when a sample first passes
    // Shares out the change from one expectation to another among the features of a split.
    const auto share_out = [&](std::uint64_t* amounts, std::int32_t split, const double* before, const double* after) {
      Atom& atom = atoms[split];
      if (atom.mass < 0.0) {
        const std::size_t first = atoms_.begin[begin + split];
        const Operation operation = atoms_.operation_of(begin + split);
        atom.begin = parts.size();
        atom.mass = shares.add(&atoms_.cell[first], &atoms_.weight[first], operation.own(atoms_.terms(begin + split)), operation,
                               parts);
        atom.end = parts.size();
      }
      if (!(atom.mass > 0.0)) return;  // an atom that weighs nothing has nobody to share with
      if (direct) {
        for (std::size_t i = atom.begin; i < atom.end; ++i)
          for (std::size_t j = 0; j < k; ++j)
            amounts[parts[i].cell * k + j] += static_cast<std::uint64_t>(
                std::llrint((after[j] - before[j]) * parts[i].size * scale));
      } else {
        for (std::size_t j = 0; j < k; ++j) step[j] = std::llrint((after[j] - before[j]) / atom.mass * scale);
        for (std::size_t i = atom.begin; i < atom.end; ++i) {
          const auto times = static_cast<std::uint64_t>(static_cast<std::int64_t>(parts[i].size));
          for (std::size_t j = 0; j < k; ++j) amounts[parts[i].cell * k + j] += times * static_cast<std::uint64_t>(step[j]);
        }
      }
    };
    for (std::size_t row = 0; row < rows; ++row) {
      std::uint64_t* const amounts = grid.data() + row * row_size;
      std::int32_t node = leaf[row * trees() + tree];
      if (!expects_nothing(&value[node * k])) {
        for (; parent[node] >= 0; node = parent[node])
          share_out(amounts, parent[node], &value[parent[node] * k], &value[node * k]);
      } else if (mean) {
        while (expects_nothing(&value[parent[node] * k])) node = parent[node];
        share_out(amounts, parent[node], value.data(), votes[row] > 0 ? baseline : prior_.data());
      }
    }
  }
  for (std::size_t row = 0; row < rows; ++row) {
    std::uint64_t* const amounts = grid.data() + row * row_size;
    const double divisor = !mean ? 1.0 : static_cast<double>(votes[row] > 0 ? votes[row] : voices);
    shares.sum_up(amounts, k);
    for (std::size_t i = 0; i < row_size; ++i)
      out[row * row_size + i] = static_cast<double>(static_cast<std::int64_t>(amounts[i])) * unit / divisor;
  }
}

void Forest::attribute(const std::int32_t* leaf, std::size_t rows, const std::uint32_t* weight, const double* baseline, int bits,
                       bool mean, double* out) const {
  constexpr std::size_t most_amounts = std::size_t{1} << 23;  // held beside the result
  const std::size_t row_size = static_cast<std::size_t>(features()) * outputs();
  const std::size_t block = std::clamp<std::size_t>(most_amounts / row_size, 1, std::max<std::size_t>(rows, 1));
  std::vector<std::uint64_t> grid;
  for (std::size_t first = 0; first < rows; first += block) {
    const std::size_t size = std::min(block, rows - first);
    grid.assign(size * row_size, 0);
    attribute_rows(leaf + first * trees(), size, weight, baseline, bits, mean, grid, out + first * row_size);
  }
}

void Forest::check() const {
  const auto require = [](bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(std::string("damaged forest: ") + message);
  };
  constexpr std::int64_t threshold_limit = std::int64_t{1} << 62;  // sums of two values below 2^61
  const std::vector<std::int64_t>& tree_begin = nodes_.tree_begin;
  const std::vector<std::int32_t>& next = nodes_.next;
  const std::size_t nodes = next.size();
  require(tree_begin.size() >= 2 && tree_begin.front() == 0, "tree offsets");
  require(nodes < static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()), "too many nodes");
  require(static_cast<std::size_t>(tree_begin.back()) == nodes, "tree offsets do not span the nodes");
  require((real_ ? nodes_.real_threshold.size() : nodes_.threshold.size()) == nodes && atoms_.size() == nodes,
          "node arrays differ in length");
  require(nodes_.side.empty() || nodes_.side.size() == nodes, "sides do not fit the nodes");
  require(leaves_.width > 0 && leaves_.value.size() % leaves_.width == 0, "leaf values");
  require(leaves_.distribution_class.size() == leaves_.distribution_weight.size(), "distribution arrays differ in length");
  atoms_.check(layout_, real_);
  for (std::size_t tree = 0; tree + 1 < tree_begin.size(); ++tree) {
    const std::int64_t begin = tree_begin[tree], end = tree_begin[tree + 1];
    require(begin < end && static_cast<std::size_t>(end) <= nodes, "tree offsets");
    for (std::int64_t node = begin; node < end; ++node) {
      if (next[node] >= 0) {
        // Children come after their parent, so walks end.
        require(next[node] > node - begin && std::int64_t{next[node]} + 1 < end - begin, "child index");
        require(atoms_.terms(static_cast<std::size_t>(node)) > 0, "a split without an atom");
        require(nodes_.side.empty() || (nodes_.side[node] != Side::none && nodes_.side[node] <= Side::absent_right),
                "sides of missing values");
      } else {
        const auto points_to = static_cast<std::uint64_t>(-1 - static_cast<std::int64_t>(next[node]));
        require(points_to < leaves_.payloads(), "leaf payload");
        require(leaves_.classes_of.empty() || points_to >= leaves_.class_count, "a leaf of one class, but of several outputs");
        require(atoms_.terms(static_cast<std::size_t>(node)) == 0, "a leaf has an atom");
        require(nodes_.side.empty() || nodes_.side[node] == Side::none, "a leaf has a side");
      }
      if (real_) require(std::isfinite(nodes_.real_threshold[node]), "threshold");
      else require(nodes_.threshold[node] > -threshold_limit && nodes_.threshold[node] < threshold_limit, "threshold");
    }
  }
  std::uint64_t entries = 0;
  for (const std::uint32_t size : leaves_.distribution_size) entries += size;
  require(entries == leaves_.distribution_class.size(), "distributions do not fit the leaves");
  for (std::size_t i = 0; i < leaves_.distribution_class.size(); ++i)
    require(leaves_.distribution_class[i] < leaves_.class_count && leaves_.distribution_weight[i] > 0, "distribution");
  require(leaves_.outputs_agree(), "distributions do not fit the outputs");
  for (std::size_t i = 0; i < leaves_.value.size(); ++i) {
    const std::size_t first = i / leaves_.width * leaves_.width;  // of the leaf, whose numbers are all there or all missing
    require(std::isfinite(leaves_.value[i]) || (std::isnan(leaves_.value[i]) && std::isnan(leaves_.value[first])), "leaf value");
    require(std::isnan(leaves_.value[i]) == std::isnan(leaves_.value[first]), "leaf value");
  }
}

void Forest::index_nodes() {
  std::size_t begin = 0;
  for (const std::uint32_t size : leaves_.distribution_size) {
    double total = 0.0;
    for (std::size_t i = begin; i < begin + size; ++i) total += leaves_.distribution_weight[i];
    distribution_begin_.push_back(begin);
    distribution_scale_.push_back(static_cast<double>(leaves_.sums()) / total);
    begin += size;
  }
  for (std::size_t payload = leaves_.class_count; payload < leaves_.payloads(); ++payload)
    if (leaves_.silent(payload)) {
      prior_ = mean_of_leaves();
      break;
    }
  root_of_.reserve(nodes());
  for (std::size_t tree = 0; tree < trees(); ++tree) root_of_.insert(root_of_.end(), tree_size(tree), root(tree));
}

// Calls `put(node, atom's cells, weights, number)` for each split until it returns false.
template <class Put>
bool Forest::each_split(Put put) const {
  for (std::size_t node = 0; node < nodes(); ++node)
    if (nodes_.next[node] >= 0 &&
        !put(node, atoms_.cell.data() + atoms_.begin[node], atoms_.weight.data() + atoms_.begin[node], atoms_.terms(node)))
      return false;
  return true;
}

// Nodes for samples of bytes, made when it is first asked whether there are any.
void Forest::compile_bytes() const {
  const PatchReader reader(layout_);
  if (real_ || !atoms_.operation.empty() || !reader.suits() || nodes_.next.size() > ByteNode::most_nodes) return;
  byte_nodes_.reserve(nodes_.next.size());
  for (std::size_t node = 0; node < nodes_.next.size(); ++node) byte_nodes_.push_back(ByteNode::leaf(node));
  const bool all = each_split([&](std::size_t node, const std::uint32_t* cell, const double* weight, std::size_t count) {
    ByteNode& n = byte_nodes_[node];
    if (!reader.read(cell, weight, count, nodes_.threshold[node], n)) return false;
    tall_ |= n.link >= 2 * byte_patch_width;
    n.link |= static_cast<std::uint32_t>(root_of_[node] + nodes_.next[node]) << ByteNode::size_bits;
    return true;
  });
  if (!all) byte_nodes_ = {};
}

// Nodes for tables with prefix sums, made when the first batch needs them.
void Forest::compile_slots() const {
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

std::int64_t Forest::half_threshold(std::size_t node) const {
  return nodes_.threshold[node] >> 1;
}  // v <= floor(t / 2) is 2 v <= t

static constexpr std::int32_t above_all = std::numeric_limits<std::int32_t>::max();

void Forest::compile_single() const {
  for (std::size_t node = 0; node < nodes_.next.size(); ++node)
    single_.push_back({above_all, static_cast<std::int32_t>(node), 0});
  each_split([&](std::size_t node, const std::uint32_t* cell, const double*, std::size_t) {
    single_[node] = {static_cast<std::int32_t>(half_threshold(node)), root_of_[node] + nodes_.next[node], *cell};
    return true;
  });
}

template <class Index>
void Forest::compile_into(std::vector<SlotNode<Index>>& nodes, std::uint32_t zero) const {
  const auto none = static_cast<Index>(zero);
  for (std::size_t node = 0; node < nodes_.next.size(); ++node)
    nodes.push_back({above_all, static_cast<std::int32_t>(node), Index{0}, none, none, none});
  each_split([&](std::size_t node, const std::uint32_t* cell, const double* weight, std::size_t count) {
    Slots s;
    if (!to_slots(cell, weight, count, zero, s)) s = {{zero, zero}, {zero, zero}};
    nodes[node] = {static_cast<std::int32_t>(half_threshold(node)),
                   root_of_[node] + nodes_.next[node],
                   static_cast<Index>(s.plus[0]),
                   static_cast<Index>(s.minus[0]),
                   static_cast<Index>(s.minus[1]),
                   static_cast<Index>(s.plus[1])};
    return true;
  });
}

// Calls use(type, cells of rows, their masks, first, size) for blocks of the given rows of a table; null: of those from `begin` on.
template <class Use>
void Forest::each_table_block(const Table& table, const std::uint32_t* rows, std::size_t row_count, Use use,
                              std::size_t begin) const {
  if (real_ != (table.type() == CellType::f64) || !table.suits(layout_))
    throw std::invalid_argument("the table does not fit the forest");
  const auto number = [&](std::size_t i) { return rows == nullptr ? begin + i : rows[i]; };
  const auto row = [&](std::size_t i) { return table.buffer().row(number(i)); };
  if (table.type() == CellType::bytes && !takes_bytes()) {
    // Images too large for nodes of bytes: prefix sums are made a block at a time. Narrow patches sum to less than 2^16.
    const RowBuffer buffer(block_rows, layout_.cells() * sizeof(std::uint16_t));
    const std::uint16_t* cells[block_rows];
    RowFiller<std::uint16_t> fill(layout_, Quantiser(0, 255.0));
    for (std::size_t first = 0; first < row_count; first += block_rows) {
      const std::size_t size = std::min(block_rows, row_count - first);
      for (std::size_t i = 0; i < size; ++i) {
        auto* summed = reinterpret_cast<std::uint16_t*>(buffer.row(i));
        fill.fill({reinterpret_cast<const std::uint8_t*>(row(first + i)), 1, static_cast<std::size_t>(layout_.features)}, 0,
                  summed);
        cells[i] = summed;
      }
      use(CellType::u16, cells, static_cast<const RowMask* const*>(nullptr), first, size);
    }
    return;
  }
  with_cell_type(table.type(), [&](auto cell) {
    using Cell = decltype(cell);
    const Cell* cells[block_rows];
    const RowMask* masks[block_rows];
    // Rows of tiles are put together a few at a time.
    const std::size_t block = table.tiled() ? tiled_rows : block_rows;
    const RowBuffer together(table.tiled() ? tiled_rows : 0, layout_.cells() * sizeof(Cell));
    for (std::size_t first = 0; first < row_count; first += block) {
      const std::size_t size = std::min(block, row_count - first);
      for (std::size_t i = 0; i < size; ++i)
        cells[i] = reinterpret_cast<const Cell*>(table.tiled() ? together.row(i) : row(first + i));
      for (std::size_t i = 0, some = 0; table.tiled() && i < size; i += some) {
        const std::size_t at = number(first + i);
        some = rows == nullptr ? std::min(tile_rows - at % tile_rows, size - i) : 1;
        table.read_tile<Cell>(at, some, together, i);
      }
      for (std::size_t i = 0; table.has_gaps() && i < size; ++i) masks[i] = table.mask(number(first + i));
      use(table.type(), cells, table.has_gaps() ? masks : nullptr, first, size);
    }
  });
}

// The mean of what all leaves say that are not silent.
std::vector<double> Forest::mean_of_leaves() const {
  std::vector<double> mean(outputs(), 0.0);
  double votes = 0.0;
  for (std::size_t node = 0; node < nodes(); ++node)
    if (nodes_.next[node] < 0) votes += add_vote(static_cast<std::int32_t>(node), mean.data());
  if (votes == 0.0) throw std::invalid_argument("damaged forest: no leaf says anything");
  for (double& value : mean) value /= votes;
  return mean;
}

// Adds what a leaf says unless it is silent, and returns whether it is not.
bool Forest::add_vote(std::int32_t node, double* out) const {
  if (leaves_.silent(payload(node))) return false;
  add_leaf(node, out);
  return true;
}

void Forest::add_leaf(std::int32_t node, double* out) const {
  const std::size_t payload = this->payload(node);
  if (leaves_.class_count == 0) {
    const double* values = &leaves_.value[payload * leaves_.width];
    for (std::size_t k = 0; k < leaves_.width; ++k) out[k] += values[k];
  } else if (payload < leaves_.class_count) {
    out[payload] += 1.0;
  } else {
    const std::size_t d = payload - leaves_.class_count;
    const std::size_t begin = distribution_begin_[d];
    for (std::size_t i = begin; i < begin + leaves_.distribution_size[d]; ++i)
      out[leaves_.distribution_class[i]] += leaves_.distribution_weight[i] * distribution_scale_[d];
  }
}

// Passes blocks of rows through all trees, and calls use(first row, rows, tree, leaves) in the order of the trees. Of
// small blocks several trees are walked at once.
template <class Use>
void Forest::each_block(const Samples& x, CellType type, const Quantiser& quantiser, int extra_bits, Use use) const {
  const bool bytes = type == CellType::bytes, gaps = x.gaps();
  const std::size_t rows = x.rows();
  if (real_ != (type == CellType::f64) || (bytes && !takes_bytes()))
    throw std::invalid_argument("cell type does not fit the forest");
  with_cell_type(type, [&](auto cell) {
    using Cell = decltype(cell);
    const RowLayout layout = bytes ? layout_.unsummed() : layout_;
    const std::size_t row_bytes = layout.cells() * sizeof(Cell);
    const std::size_t block = rows_at_once(row_bytes);
    const RowBuffer buffer(std::min(block, rows), row_bytes, bytes ? byte_margin(layout) : 0);
    RowFiller<Cell> fill(layout, quantiser);
    std::optional<GapFiller> filler;
    if (gaps) filler.emplace(layout);
    MaskMaker make_mask(layout, real_);
    std::vector<std::unique_ptr<RowMask>> masks_of_rows(gaps ? std::min(block, rows) : 0);
    std::int32_t leaf[walks_at_once];
    const Cell* cells[walks_at_once];
    const RowMask* masks[walks_at_once];
    for (std::size_t first = 0; first < rows; first += block) {
      const std::size_t size = std::min(block, rows - first), trees_at_once = std::clamp<std::size_t>(block / size, 1, trees());
      for (std::size_t i = 0; i < size; ++i) {
        Cell* row = reinterpret_cast<Cell*>(buffer.row(i));
        const bool missing = gaps && filler->read(x, first + i);
        if (missing) fill.fill(filler->filled(), 0, row);
        else fill.fill(x, first + i, row);
        if (gaps) masks_of_rows[i] = missing ? make_mask(filler->marks()) : nullptr;
        for (std::size_t t = 0; t < trees_at_once; ++t) {
          cells[t * size + i] = row;
          if (gaps) masks[t * size + i] = masks_of_rows[i].get();
        }
      }
      for (std::size_t tree = 0; tree < trees(); tree += trees_at_once) {
        const std::size_t end = std::min(tree + trees_at_once, trees());
        for (std::size_t t = tree; t < end; ++t) std::fill_n(leaf + (t - tree) * size, size, root(t));
        const NodeRange ahead = trees_at_once == 1 && end < trees() ? NodeRange{root(end), root(end + 1)} : NodeRange{};
        walk_masked<Cell>(type, cells, gaps ? masks : nullptr, (end - tree) * size, extra_bits, ahead, leaf);
        for (std::size_t t = tree; t < end; ++t) use(first, size, t, leaf + (t - tree) * size);
      }
    }
  });
}

}  // namespace morf
