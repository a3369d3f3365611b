#include "atoms/relation.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace morf {
namespace {

void demand(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument(what);
}

// The number of indices that each one is connected with.
std::vector<std::uint32_t> sizes_of_parts(const Relation& relation) {
  std::vector<std::uint32_t> parent(relation.size()), size(relation.size(), 1);
  std::iota(parent.begin(), parent.end(), 0u);
  const auto root = [&](std::uint32_t index) {
    while (parent[index] != index) index = parent[index] = parent[parent[index]];
    return index;
  };
  for (std::uint32_t index = 0; index < relation.size(); ++index)
    for (std::uint32_t edge = relation.begin[index]; edge < relation.begin[index + 1]; ++edge) {
      std::uint32_t a = root(index), b = root(relation.neighbour[edge]);
      if (a == b) continue;
      if (size[a] < size[b]) std::swap(a, b);
      parent[b] = a;
      size[a] += size[b];
    }
  std::vector<std::uint32_t> found(relation.size());
  for (std::uint32_t index = 0; index < relation.size(); ++index) found[index] = size[root(index)];
  return found;
}

}  // namespace

Relation::Relation(Method m, const std::vector<std::uint64_t>& b, std::vector<std::uint32_t> n, std::vector<std::uint64_t> c,
                   std::uint64_t least, std::uint64_t most)
    : method(m), begin(b.begin(), b.end()), neighbour(std::move(n)), cumulative(std::move(c)), min_hops(least), max_hops(most) {
  demand(begin.size() > 1 && begin.size() <= (std::size_t{1} << 29) + 1, "a relation needs between 1 and 2^29 indices");
  demand(neighbour.size() < (std::size_t{1} << 32), "a relation has less than 2^32 neighbours");
  demand(begin.front() == 0 && begin.back() == neighbour.size() && std::is_sorted(begin.begin(), begin.end()),
         "a relation does not say where neighbours begin");
  demand(cumulative.empty() || cumulative.size() == neighbour.size(), "a relation needs one weight per neighbour");
  demand(cumulative.empty() || method != Method::hops, "neighbourhoods have no weights");
  demand(min_hops <= max_hops && max_hops < (std::uint64_t{1} << 32), "neighbourhoods need a number of hops");
  for (std::uint32_t index = 0; index < size(); ++index)
    for (std::uint32_t edge = begin[index]; edge < begin[index + 1]; ++edge) {
      const bool first = edge == begin[index];
      demand(neighbour[edge] < size() && neighbour[edge] != index && (first || neighbour[edge - 1] < neighbour[edge]),
             "neighbours are others, in ascending order");
      demand(degree(neighbour[edge]) > 0, "a neighbour has none itself");
      demand(cumulative.empty() || cumulative[edge] > (first ? 0 : cumulative[edge - 1]), "weights of neighbours are positive");
    }
  reach = sizes_of_parts(*this);
  if (reach[0] == reach.size()) reach = {};
}

void RelatedSets::reserve(std::size_t indices) {
  if (taken_.size() < indices) taken_.resize(indices, 0);
}

const std::vector<std::uint32_t>& RelatedSets::draw(const Relation& relation, std::size_t most, Stream& stream) {
  ++epoch_;
  members_.clear();
  marks_ = most > few_;
  const bool by_hops = relation.method == Relation::Method::hops;
  const std::uint64_t hops = by_hops ? relation.min_hops + stream.below(relation.max_hops - relation.min_hops + 1) : 0;
  join(static_cast<std::uint32_t>(stream.below(relation.size())));
  if (by_hops) spread(relation, most, hops, stream);
  else grow(relation, relation.reach.empty() ? most : std::min<std::size_t>(most, relation.reach[members_[0]]), stream);
  return members_;
}

bool RelatedSets::holds(std::uint32_t index) const {
  return marks_ ? taken_[index] == epoch_ : std::find(members_.begin(), members_.end(), index) != members_.end();
}

bool RelatedSets::join(std::uint32_t index) {
  if (holds(index)) return false;
  if (marks_) taken_[index] = epoch_;
  members_.push_back(index);
  return true;
}

void RelatedSets::grow(const Relation& relation, std::size_t size, Stream& stream) {
  std::uint32_t from = members_[0];
  for (std::size_t vain = 0; members_.size() < size && vain < most_vain_ * members_.size();) {
    if (relation.method == Relation::Method::grow) from = members_[stream.below(members_.size())];
    const std::uint64_t first = relation.begin[from], last = relation.begin[from + 1];
    std::uint64_t edge;
    if (relation.cumulative.empty()) {
      edge = first + stream.below(last - first);
    } else {
      const std::uint64_t* weights = relation.cumulative.data();
      edge = static_cast<std::uint64_t>(std::upper_bound(weights + first, weights + last, stream.below(weights[last - 1])) -
                                        weights);
    }
    vain = join(relation.neighbour[edge]) ? 0 : vain + 1;
    if (relation.method == Relation::Method::walk) from = relation.neighbour[edge];
  }
}

// All within so many hops, one member after the other. Where there is no room for all new neighbours of a member, some are drawn.
void RelatedSets::spread(const Relation& relation, std::size_t most, std::uint64_t hops, Stream& stream) {
  std::size_t shell = 1;  // members before the end of the present shell
  for (std::size_t member = 0; member < members_.size() && hops > 0 && members_.size() < most; ++member) {
    const std::uint32_t from = members_[member];
    const std::uint32_t* neighbour = relation.neighbour.data() + relation.begin[from];
    const std::size_t degree = relation.degree(from);
    if (degree > 2 * most) {  // most of them are new, and a hub is not read to its end
      while (members_.size() < most) join(neighbour[stream.below(degree)]);
    } else {
      join_some(neighbour, degree, most - members_.size(), stream);
    }
    if (member + 1 == shell) {
      shell = members_.size();
      --hops;
    }
  }
}

// Those that are new, or as many of them as there is room for, by Floyd's method.
void RelatedSets::join_some(const std::uint32_t* neighbour, std::size_t degree, std::size_t room, Stream& stream) {
  new_.clear();
  std::copy_if(neighbour, neighbour + degree, std::back_inserter(new_), [&](std::uint32_t i) { return !holds(i); });
  if (new_.size() <= room) {
    for (const std::uint32_t index : new_) join(index);
    return;
  }
  for (std::size_t j = new_.size() - room; j < new_.size(); ++j)
    if (!join(new_[stream.below(j + 1)])) join(new_[j]);
}

}  // namespace morf
