#include "forest/leaf_samples.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

namespace morf {

namespace {

constexpr std::size_t lists_ahead = 8, entries_ahead = 4;  // trees whose lists are fetched while others are read

void require(bool condition) {
  if (!condition) throw std::invalid_argument("damaged forest: the samples of leaves do not fit the trees");
}

void fetch([[maybe_unused]] const void* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address);
#endif
}

// A sum for each row. Rows that have one are marked, so that they are found again in order without sorting.
class RowSums {
 public:
  explicit RowSums(std::size_t rows) : sum_(rows), marked_(rows / 64 + 1) {}
  void add(std::uint32_t row, double amount) {
    sum_[row] += amount;
    marked_[row / 64] |= std::uint64_t{1} << (row % 64);
  }
  // Calls use(row, sum) with each row that has a sum, in increasing order, and begins anew.
  template <class Use>
  void take(Use use) {
    for (std::size_t word = 0; word < marked_.size(); ++word)
      for (std::uint64_t bits = std::exchange(marked_[word], 0); bits != 0; bits &= bits - 1) {
        const std::size_t row = 64 * word + static_cast<std::size_t>(std::countr_zero(bits));
        use(static_cast<std::uint32_t>(row), std::exchange(sum_[row], 0.0));
      }
  }

 private:
  std::vector<double> sum_;
  std::vector<std::uint64_t> marked_;
};

// The weights of a tree have a sum below 2^32, once that is checked.
template <class Sum = std::uint32_t, class Entry>
Sum sum_weights(std::span<const Entry> list) {
  Sum sum = 0;
  for (const Entry entry : list) sum += weight_of(entry);
  return sum;
}

}  // namespace

NodeLists group_by_leaf(std::span<const std::int32_t> leaf, std::span<const std::uint32_t> row,
                        std::span<const std::uint32_t> weight, std::size_t nodes) {
  if (leaf.size() != row.size() || row.size() != weight.size() || row.size() > std::numeric_limits<std::uint32_t>::max())
    throw std::invalid_argument("leaves, rows and weights need one entry each");
  std::vector<std::uint32_t> end(nodes + 1);
  for (const std::int32_t node : leaf) {
    if (node < 0 || static_cast<std::size_t>(node) >= nodes) throw std::invalid_argument("no such leaf");
    ++end[node + 1];
  }
  for (std::size_t node = 0; node < nodes; ++node) end[node + 1] += end[node];
  NodeLists sorted{end, std::vector<std::uint32_t>(row.size()), std::vector<std::uint32_t>(row.size())};
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::uint32_t place = end[leaf[i]]++;
    sorted.row[place] = row[i];
    sorted.weight[place] = weight[i];
  }
  std::size_t made = 0, read = 0;
  for (std::size_t node = 0; node < nodes; ++node) {
    const std::size_t first = made, last = sorted.begin[node + 1];
    sorted.begin[node] = static_cast<std::uint32_t>(first);
    for (; read < last; ++read) {
      if (made > first && sorted.row[made - 1] == sorted.row[read]) {
        sorted.weight[made - 1] += sorted.weight[read];
        continue;
      }
      sorted.row[made] = sorted.row[read];
      sorted.weight[made++] = sorted.weight[read];
    }
  }
  sorted.begin[nodes] = static_cast<std::uint32_t>(made);
  sorted.row.resize(made);
  sorted.weight.resize(made);
  return sorted;
}

LeafSamples::LeafSamples(std::span<const std::int64_t> tree_begin, std::span<const std::uint32_t> begin, Entries entries,
                         std::size_t rows)
    : tree_begin_(tree_begin), begin_(begin), entries_(entries), rows_(rows) {
  require(tree_begin_.size() > 1 && tree_begin_.front() == 0);
  first_.assign(1, 0);
  for (std::size_t tree = 0; tree < trees(); ++tree) {
    require(tree_begin_[tree] < tree_begin_[tree + 1]);
    const std::size_t end = static_cast<std::size_t>(tree_begin_[tree + 1]) + tree;
    require(end < begin_.size());
    first_.push_back(first_.back() + begin_[end]);
  }
  require(begin_.size() == static_cast<std::size_t>(tree_begin_.back()) + trees());
  std::visit([&](auto of_trees) { check(of_trees); }, entries_);
  for (std::size_t tree = 0; tree < trees(); ++tree)
    for (std::size_t node = 0; node < tree_size(tree); ++node) {
      const std::uint32_t* begin = list_of(tree, static_cast<std::int32_t>(node));
      filled_ += begin[0] < begin[1];
    }
}

template <class Entry>
void LeafSamples::check(std::span<const Entry> entries) const {
  require(first_.back() == entries.size());
  for (std::size_t tree = 0; tree < trees(); ++tree) {
    const std::uint32_t* begin = begin_.data() + tree_begin_[tree] + tree;
    const auto of_tree = entries.subspan(first_[tree], first_[tree + 1] - first_[tree]);
    // A tree whose leaves are all empty would say nothing.
    require(begin[0] == 0 && !of_tree.empty() && sum_weights<std::uint64_t>(of_tree) < std::uint64_t{1} << 32);
    for (std::size_t node = 0; node < tree_size(tree); ++node) {
      require(begin[node] <= begin[node + 1] && begin[node + 1] <= of_tree.size());
      // Each row of a list comes once, in increasing order.
      for (std::size_t i = begin[node]; i < begin[node + 1]; ++i)
        require(row_of(of_tree[i]) < rows_ && weight_of(of_tree[i]) > 0 &&
                (i == begin[node] || row_of(of_tree[i - 1]) < row_of(of_tree[i])));
    }
  }
}

// The number of lists that a sample's prediction is the mean of: one for each tree that votes, or all.
std::size_t LeafSamples::voices(const std::int32_t* leaf, std::span<const std::uint8_t> silent) const {
  if (silent.empty()) return trees();
  std::size_t votes = 0;
  for (std::size_t tree = 0; tree < trees(); ++tree) {
    const std::uint32_t* begin = list_of(tree, leaf[tree]);
    votes += begin[0] < begin[1] || !silent[tree];
  }
  return votes > 0 ? votes : filled_;
}

// Calls use(list) with the entries of each of these lists.
template <class Entry, class Use>
void LeafSamples::each_voice(std::span<const Entry> entries, const std::int32_t* leaf, std::span<const std::uint8_t> silent,
                             Use use) const {
  bool none = true;
  for (std::size_t tree = 0; tree < trees(); ++tree) {
    if (tree + lists_ahead < trees()) {
      fetch(list_of(tree + lists_ahead, leaf[tree + lists_ahead]));
      fetch(entries.data() + first_[tree + entries_ahead] + *list_of(tree + entries_ahead, leaf[tree + entries_ahead]));
    }
    const std::uint32_t* begin = list_of(tree, leaf[tree]);
    if (begin[0] < begin[1]) use(entries.subspan(first_[tree] + begin[0], begin[1] - begin[0]));
    else if (silent.empty() || !silent[tree]) use(entries.subspan(first_[tree], first_[tree + 1] - first_[tree]));
    else continue;
    none = false;
  }
  if (none) each_list(entries, use);
}

// The same with all lists that are not empty.
template <class Entry, class Use>
void LeafSamples::each_list(std::span<const Entry> entries, Use use) const {
  for (std::size_t tree = 0; tree < trees(); ++tree)
    for (std::size_t node = 0; node < tree_size(tree); ++node) {
      const std::uint32_t* begin = list_of(tree, static_cast<std::int32_t>(node));
      if (begin[0] < begin[1]) use(entries.subspan(first_[tree] + begin[0], begin[1] - begin[0]));
    }
}

// Adds the shares in each list to the sums of their rows. Returns what makes them a mean.
template <class Sums>
double LeafSamples::add_up(const std::int32_t* leaf, std::span<const std::uint8_t> silent, Sums& sums) const {
  std::visit(
      [&](auto entries) {
        each_voice(entries, leaf, silent, [&](auto list) {
          const double scale = 1.0 / static_cast<double>(sum_weights(list));
          for (const auto entry : list) sums.add(row_of(entry), static_cast<double>(weight_of(entry)) * scale);
        });
      },
      entries_);
  return 1.0 / static_cast<double>(voices(leaf, silent));
}

std::int64_t LeafSamples::count(const std::int32_t* leaf, std::size_t samples, std::span<const std::uint8_t> silent) const {
  std::int64_t found = 0;
  std::vector<std::uint64_t> marked(rows_ / 64 + 1);
  for (std::size_t sample = 0; sample < samples; ++sample) {
    std::visit(
        [&](auto entries) {
          each_voice(entries, leaf + sample * trees(), silent, [&](auto list) {
            for (const auto entry : list) marked[row_of(entry) / 64] |= std::uint64_t{1} << (row_of(entry) % 64);
          });
        },
        entries_);
    for (std::uint64_t& bits : marked) found += std::popcount(std::exchange(bits, 0));
  }
  return found;
}

void LeafSamples::weigh(const std::int32_t* leaf, std::size_t samples, std::span<const std::uint8_t> silent,
                        SparseRows& out) const {
  RowSums sums(rows_);
  for (std::size_t sample = 0; sample < samples; ++sample) {
    const double share = add_up(leaf + sample * trees(), silent, sums);
    const std::size_t before = out.column.size();
    sums.take([&](std::uint32_t row, double sum) {
      out.column.push_back(static_cast<std::int32_t>(row));
      out.value.push_back(sum * share);
    });
    out.size.push_back(static_cast<std::int64_t>(out.column.size() - before));
  }
}

void LeafSamples::nearest(const std::int32_t* leaf, std::size_t samples, std::span<const std::uint8_t> silent, std::size_t k,
                          std::int64_t* row, double* weight) const {
  RowSums sums(rows_);
  std::vector<std::pair<double, std::uint32_t>> found;  // sums are negated, so that the largest come first
  for (std::size_t sample = 0; sample < samples; ++sample) {
    const double share = add_up(leaf + sample * trees(), silent, sums);
    found.clear();
    sums.take([&](std::uint32_t of, double sum) { found.emplace_back(-sum, of); });
    const std::size_t count = std::min(k, found.size());
    std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count), found.end());
    for (std::size_t i = 0; i < k; ++i) {
      row[sample * k + i] = i < count ? static_cast<std::int64_t>(found[i].second) : -1;
      weight[sample * k + i] = i < count ? -found[i].first * share : 0.0;
    }
  }
}

void LeafSamples::quantiles(const std::int32_t* leaf, std::size_t samples, std::span<const std::uint8_t> silent,
                            const RankedTargets& targets, std::span<const double> level, double* out) const {
  std::visit([&](auto entries) { quantiles_of(entries, leaf, samples, silent, targets, level, out); }, entries_);
}

// Shares are listed as they come and added up by block of targets only. What lies in the few blocks that a level falls into is
// sorted then.
template <class Entry>
void LeafSamples::quantiles_of(std::span<const Entry> entries, const std::int32_t* leaf, std::size_t samples,
                               std::span<const std::uint8_t> silent, const RankedTargets& targets, std::span<const double> level,
                               double* out) const {
  const double tolerance = std::ldexp(1.0, -36);
  // Blocks are many enough for neighbouring targets not to wait for each other's sums, and few beside the shares of a sample. Where
  // there are few targets, each has a block, and nothing is left to sort.
  const int width = std::bit_width(targets.value.size()), blocks = static_cast<int>(std::bit_width(trees())) + 3;
  const int shift = width <= std::min(blocks + 2, 10) ? 0 : std::max(width - std::min(blocks, 10), 0);
  std::vector<std::uint64_t> of_block((targets.value.size() >> shift) + 1), before(level.size());
  std::vector<std::uint8_t> wanted(of_block.size());
  std::vector<std::size_t> block(level.size());
  std::vector<double> needed(level.size());
  using Share = std::pair<std::uint32_t, std::uint64_t>;  // the place of a target, and its weight
  std::vector<Share> shares, picked;
  for (std::size_t sample = 0; sample < samples; ++sample) {
    std::size_t count = 0;
    std::uint64_t total = 0;
    const std::int32_t* const leaves = leaf + sample * trees();
    // Shares of a leaf are whole numbers that sum to about 2^bits, and those of all trees, or of all leaves, to less than 2^64.
    const double one = std::ldexp(1.0, 63 - static_cast<int>(std::bit_width(std::max(trees(), voices(leaves, silent)))));
    each_voice(entries, leaves, silent, [&](std::span<const Entry> list) {
      if (shift > 0 && shares.size() < count + list.size()) shares.resize(2 * (count + list.size()));
      const double scale = one / static_cast<double>(sum_weights(list));
      // Locals, because the compiler must take the others for places that are written to here.
      Share* to = shares.data() + count;
      std::uint64_t sum = 0;
      for (const Entry entry : list) {
        // Below 2^63, so that the conversion is one instruction.
        const auto share = static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<double>(weight_of(entry)) * scale));
        const std::uint32_t rank = targets.rank[row_of(entry)];
        if (shift > 0) *to++ = {rank, share};
        of_block[rank >> shift] += share;
        sum += share;
      }
      count += list.size();
      total += sum;
    });
    // What shares must sum to for each level. Sums are below 2^63, so that conversions are one instruction.
    const double all = static_cast<double>(static_cast<std::int64_t>(total));
    for (std::size_t i = 0; i < level.size(); ++i) needed[i] = level[i] < 1.0 ? (level[i] - tolerance) * all : all;
    const auto reached = [](std::uint64_t up_to, double sum) {
      return up_to > 0 && static_cast<double>(static_cast<std::int64_t>(up_to)) >= sum;
    };
    std::uint64_t up_to = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < level.size(); ++i) {
      while (!reached(up_to + of_block[at], needed[i])) up_to += of_block[at++];
      block[i] = at;
      before[i] = up_to;
      wanted[at] = 1;
    }
    if (shift == 0) {
      for (std::size_t i = 0; i < level.size(); ++i) out[sample * level.size() + i] = targets.value[block[i]];
      std::fill(of_block.begin(), of_block.end(), 0);
      continue;
    }
    picked.clear();
    for (const Share& share : std::span(shares).first(count))
      if (wanted[share.first >> shift]) picked.push_back(share);
    std::sort(picked.begin(), picked.end());
    const Share* next = picked.data();
    std::uint32_t rank = 0;
    for (std::size_t i = 0; i < level.size(); ++i) {
      if (i == 0 || block[i] != block[i - 1]) {
        while (next->first >> shift < block[i]) ++next;
        up_to = before[i];
      }
      for (bool behind = i == 0 || block[i] != block[i - 1]; behind || !reached(up_to, needed[i]); behind = false) {
        rank = next->first;
        for (; next != picked.data() + picked.size() && next->first == rank; ++next) up_to += next->second;
      }
      out[sample * level.size() + i] = targets.value[rank];
    }
    for (const std::size_t of : block) wanted[of] = 0;
    std::fill(of_block.begin(), of_block.end(), 0);
  }
}

void share_leaves(const std::int32_t* leaf, std::size_t samples, const std::int32_t* other_leaf, std::size_t others,
                  std::size_t trees, double* out) {
  std::fill_n(out, samples * others, 0.0);
  std::vector<std::uint32_t> end, listed(others);
  for (std::size_t tree = 0; tree < trees; ++tree) {
    std::int32_t last = 0;
    for (std::size_t j = 0; j < others; ++j) last = std::max(last, other_leaf[j * trees + tree]);
    // The others by leaf: those of leaf l stand from end[l - 1] to end[l] once all are listed.
    end.assign(static_cast<std::size_t>(last) + 2, 0);
    for (std::size_t j = 0; j < others; ++j) ++end[other_leaf[j * trees + tree] + 1];
    for (std::size_t l = 0; l <= static_cast<std::size_t>(last); ++l) end[l + 1] += end[l];
    for (std::size_t j = 0; j < others; ++j) listed[end[other_leaf[j * trees + tree]]++] = static_cast<std::uint32_t>(j);
    for (std::size_t i = 0; i < samples; ++i) {
      const std::int32_t own = leaf[i * trees + tree];
      if (own > last) continue;
      double* const shared = out + i * others;
      for (std::uint32_t j = own > 0 ? end[own - 1] : 0; j < end[own]; ++j) shared[listed[j]] += 1.0;
    }
  }
  for (std::size_t i = 0; i < samples * others; ++i) out[i] /= static_cast<double>(trees);
}

}  // namespace morf
