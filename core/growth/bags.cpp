#include "growth/bags.hpp"

#include <algorithm>
#include <stdexcept>
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

}  // namespace morf
