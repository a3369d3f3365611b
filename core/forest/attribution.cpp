#include "forest/attribution.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "forest/forest.hpp"
#include "forest/importance.hpp"

namespace morf {
namespace {

// Whether no leaf below a node says something; all its expected outputs are NaN then.
bool expects_nothing(const double* expectation) { return expectation[0] != expectation[0]; }

}  // namespace

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

}  // namespace morf
