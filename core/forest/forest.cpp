#include "forest/forest.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "projection/projection.hpp"

namespace morf {

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

}  // namespace morf
