#include "growth/bags.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "base/random.hpp"

namespace morf {
namespace {

constexpr std::uint64_t draws_between_polls = std::uint64_t{1} << 16;

void require_order(const std::vector<std::uint32_t>& order) {
  std::vector<bool> seen(order.size(), false);
  for (const std::uint32_t row : order) {
    if (row >= order.size() || seen[row]) throw std::invalid_argument("the order must name each row once");
    seen[row] = true;
  }
}

}  // namespace

void check_bag(const Bag& bag) {
  std::uint64_t total_count = 0, total_weight = 0;
  for (std::size_t i = 0; i < bag.rows; ++i) {
    if (bag.count[i] == 0) continue;
    total_count += bag.count[i];
    total_weight += bag.weight[i];
    if (bag.weight[i] == 0) throw std::invalid_argument("a drawn row has no weight");
  }
  if (total_count == 0) throw std::invalid_argument("the bag is empty");
  if (total_count >> 31 || total_weight >> 31) throw std::invalid_argument("counts or weights sum to 2^31 or more");
}

Bags::Bags(std::vector<std::uint32_t> count, std::vector<std::uint32_t> weight, std::vector<std::uint32_t> order)
    : count_(std::move(count)), weight_(std::move(weight)), order_(std::move(order)) {
  if (order_.empty() || count_.empty() || count_.size() % order_.size() != 0)
    throw std::invalid_argument("counts need one entry per row and tree");
  if (!weight_.empty() && weight_.size() != count_.size()) throw std::invalid_argument("weights need one entry per row and tree");
  require_order(order_);
  for (std::size_t tree = 0; tree < trees(); ++tree) check_bag((*this)[tree]);
}

std::vector<std::uint32_t> draw_bags(const std::vector<std::uint64_t>& tree_keys, std::uint64_t draws,
                                     const std::vector<std::uint32_t>& order, const std::vector<std::uint64_t>& cumulative,
                                     const Poll& poll) {
  require_order(order);
  if (order.empty() && draws > 0) throw std::invalid_argument("there are no rows to draw");
  if (!cumulative.empty() &&
      (cumulative.size() != order.size() || cumulative.back() == 0 || !std::is_sorted(cumulative.begin(), cumulative.end())))
    throw std::invalid_argument("cumulated weights need one entry per row, and rise");
  const std::uint64_t total = cumulative.empty() ? order.size() : cumulative.back();
  std::vector<std::uint32_t> count(tree_keys.size() * order.size(), 0);
  for (std::size_t tree = 0; tree < tree_keys.size(); ++tree) {
    Stream stream(derive(tree_keys[tree], Purpose::bag));
    std::uint32_t* const of_tree = count.data() + tree * order.size();
    for (std::uint64_t left = draws; left > 0;) {
      const std::uint64_t some = std::min(left, draws_between_polls);
      poll(static_cast<std::size_t>(some));
      if (cumulative.empty())
        for (std::uint64_t i = 0; i < some; ++i) ++of_tree[order[stream.below(total)]];
      else
        for (std::uint64_t i = 0; i < some; ++i)
          ++of_tree[order[std::upper_bound(cumulative.begin(), cumulative.end(), stream.below(total)) - cumulative.begin()]];
      left -= some;
    }
  }
  return count;
}

namespace {

// How many of the groups of each class fill leaves.
std::vector<std::uint64_t> leaf_groups(const std::vector<std::uint64_t>& drawn, double share) {
  std::vector<std::uint64_t> wanted;
  double owed = 0.0;
  for (const std::uint64_t groups : drawn) {
    owed += share * static_cast<double>(groups);
    const double most = static_cast<double>(groups > 1 ? groups - 1 : groups), least = groups > 1 ? 1.0 : 0.0;
    const double some = std::clamp(std::floor(owed + 0.5), least, most);
    wanted.push_back(static_cast<std::uint64_t>(some));
    owed -= some;
  }
  return wanted;
}

}  // namespace

std::vector<std::uint8_t> choose_leaf_rows(const std::vector<std::uint64_t>& tree_keys, double share,
                                           const std::vector<std::uint32_t>& order, const std::vector<std::uint32_t>& group,
                                           const std::vector<std::uint32_t>& classes, const std::vector<std::uint32_t>& count) {
  require_order(order);
  const std::size_t rows = order.size();
  if (!(share > 0.0 && share < 1.0)) throw std::invalid_argument("the share of leaf rows must lie between 0 and 1");
  if (group.size() != rows || (!classes.empty() && classes.size() != rows) || count.size() != tree_keys.size() * rows)
    throw std::invalid_argument("groups, classes and counts need one entry per row");
  for (std::size_t i = 0; i < rows; ++i)
    if (group[i] > (i == 0 ? 0 : group[i - 1] + 1) || (i > 0 && group[i] < group[i - 1]))
      throw std::invalid_argument("groups must be numbered in canonical order");
  const std::size_t class_count = classes.empty() ? 1 : 1 + std::size_t{*std::max_element(classes.begin(), classes.end())};
  const auto class_of = [&](std::size_t place) { return classes.empty() ? 0u : classes[order[place]]; };
  std::vector<std::uint8_t> chosen(count.size(), 0);
  for (std::size_t tree = 0; tree < tree_keys.size(); ++tree) {
    const std::uint32_t* const of_tree = count.data() + tree * rows;
    // Calls use(first place, end) for each group of which a row was drawn.
    const auto each_drawn_group = [&](auto use) {
      for (std::size_t begin = 0, end = 0; begin < rows; begin = end) {
        bool drawn = false;
        for (end = begin; end < rows && group[end] == group[begin]; ++end) drawn |= of_tree[order[end]] != 0;
        if (drawn) use(begin, end);
      }
    };
    std::vector<std::uint64_t> left(class_count, 0);
    each_drawn_group([&](std::size_t begin, std::size_t) { ++left[class_of(begin)]; });
    std::vector<std::uint64_t> wanted = leaf_groups(left, share);
    Stream stream(derive(tree_keys[tree], Purpose::leaf_part));
    each_drawn_group([&](std::size_t begin, std::size_t end) {
      const std::size_t label = class_of(begin);
      if (stream.below(left[label]--) >= wanted[label]) return;
      --wanted[label];
      for (std::size_t i = begin; i < end; ++i) chosen[tree * rows + order[i]] = of_tree[order[i]] != 0;
    });
  }
  return chosen;
}

std::vector<std::uint32_t> draw_rows(std::uint64_t tree_key, std::uint64_t draws, const std::vector<std::uint32_t>& order,
                                     const std::vector<std::uint32_t>& count, const Poll& poll) {
  require_order(order);
  if (count.size() != order.size()) throw std::invalid_argument("counts need one entry per row");
  std::uint64_t left = 0, since_poll = 0;
  for (const std::uint32_t c : count) left += c;
  if (draws > left) throw std::invalid_argument("more draws than samples");
  std::vector<std::uint32_t> drawn(order.size(), 0);
  Stream stream(derive(tree_key, Purpose::bag));
  for (std::size_t i = 0; i < order.size() && draws > 0; ++i)
    for (std::uint32_t copy = 0; copy < count[order[i]] && draws > 0; ++copy) {
      if (++since_poll == draws_between_polls) {
        poll(static_cast<std::size_t>(since_poll));
        since_poll = 0;
      }
      if (stream.below(left--) < draws) {
        ++drawn[order[i]];
        --draws;
      }
    }
  return drawn;
}

DrawnRows draw_few_rows(std::uint64_t tree_key, std::uint64_t draws, std::uint64_t population, bool replace, const Poll& poll) {
  if (draws > 0 && population == 0) throw std::invalid_argument("there are no rows to draw");
  if (!replace && draws > population) throw std::invalid_argument("more draws than samples");
  Stream stream(derive(tree_key, Purpose::bag));
  std::vector<std::uint64_t> drawn;
  drawn.reserve(draws);
  std::unordered_set<std::uint64_t> taken;
  if (!replace) taken.reserve(draws);
  for (std::uint64_t i = 0; i < draws; ++i) {
    if ((i + 1) % draws_between_polls == 0) poll(static_cast<std::size_t>(draws_between_polls));
    if (replace) {
      drawn.push_back(stream.below(population));
      continue;
    }
    // Floyd's method: a row that is taken already makes way for the latest one.
    const std::uint64_t last = population - draws + i, row = stream.below(last + 1);
    const bool fresh = taken.insert(row).second;
    drawn.push_back(fresh ? row : last);
    if (!fresh) taken.insert(last);
  }
  std::sort(drawn.begin(), drawn.end());
  DrawnRows found;
  for (const std::uint64_t row : drawn) {
    if (found.row.empty() || found.row.back() != row) {
      found.row.push_back(row);
      found.count.push_back(0);
    }
    ++found.count.back();
  }
  return found;
}

}  // namespace morf
