#include "growth/combination.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "growth/ridge.hpp"

namespace morf {

std::vector<std::int32_t> whole_weights(const double* weights, std::size_t count) {
  double total = 0.0;
  for (std::size_t j = 0; j < count; ++j) total += std::abs(weights[j]);
  std::vector<std::int32_t> whole(count, 0);
  if (!(total > 0.0) || !std::isfinite(total)) return whole;
  int exponent;
  std::frexp(total, &exponent);
  for (int shift = combination_bits - exponent;; --shift) {
    std::int64_t mass = 0;
    for (std::size_t j = 0; j < count; ++j) {
      whole[j] = static_cast<std::int32_t>(std::rint(std::ldexp(weights[j], shift)));
      mass += std::abs(whole[j]);
    }
    if (mass <= std::int64_t{1} << combination_bits) return whole;
  }
}

class CombinationLearner::Learning {
 public:
  Learning(std::vector<double> penalties, const Targets& targets)
      : ridge_(std::move(penalties)), targets_(targets), rows_(targets.rows()), outputs_(targets.outputs()) {}

  bool learn(Projection<std::int32_t>& project, const std::uint32_t* rows, std::size_t row_count, Stream& stream,
             AtomList& atoms) {
    const std::size_t columns = atoms.size();
    if (row_count < combination_least_rows || columns < 2) return false;
    if (columns != atoms.cell.size() || columns > combination_columns)
      throw std::invalid_argument("combinations are of single columns, 2^14 at most");
    const std::size_t stride = read_distinct(project, rows, row_count, stream, atoms);
    if (chosen_.size() < combination_least_rows || !set_target(stream)) return false;
    for (std::size_t j = 0; j < columns; ++j)
      if (ranges_[j].min < -combination_largest || ranges_[j].max > combination_largest)
        throw std::invalid_argument("combinations need values from -8191 to 8191");
    if (!ridge_.learn(columns_.data(), stride, chosen_.size(), columns, target_.data())) return false;
    return append(whole_weights(ridge_.weights(), columns), atoms);
  }

 private:
  // Chooses rows and reads their columns, and returns the distance between these. Rows that are equal stand next to each
  // other in canonical order and count once, however often they were given.
  std::size_t read_distinct(Projection<std::int32_t>& project, const std::uint32_t* rows, std::size_t row_count, Stream& stream,
                            const AtomList& atoms) {
    const std::size_t stride = whole_blocks(std::min(row_count, combination_rows));
    reserve_at_least(columns_, atoms.size() * stride);
    reserve_at_least(ranges_, atoms.size());
    const auto read = [&](const std::uint32_t* some, std::size_t count) {
      project(some, count, atoms, 0, atoms.size(), columns_.data(), stride, ranges_.data());
    };
    chosen_.clear();
    for (std::size_t first = 0; first + 1 < row_count; first += combination_rows - 1) {  // one row twice, to compare
      const std::size_t count = std::min(combination_rows, row_count - first);
      read(rows + first, count);
      if (first == 0) chosen_.push_back(rows[0]);
      for (std::size_t i = 1; i < count; ++i)
        if (!same(rows[first + i - 1], rows[first + i], i, stride, atoms.size())) chosen_.push_back(rows[first + i]);
    }
    const bool all = chosen_.size() == row_count && row_count <= combination_rows;
    if (chosen_.size() > combination_rows) sample(stream);
    if (!all) read(chosen_.data(), chosen_.size());
    return stride;
  }

  bool same(std::uint32_t row, std::uint32_t other, std::size_t i, std::size_t stride, std::size_t columns) const {
    for (std::size_t k = 0; k < outputs_; ++k)
      if (target_of(row, k) != target_of(other, k)) return false;
    for (std::size_t j = 0; j < columns; ++j)
      if (columns_[j * stride + i - 1] != columns_[j * stride + i]) return false;
    return true;
  }

  // Each of the rows left is taken with the probability that makes their number right.
  void sample(Stream& stream) {
    std::size_t taken = 0;
    for (std::size_t i = 0; taken < combination_rows; ++i)
      if (stream.below(chosen_.size() - i) < combination_rows - taken) chosen_[taken++] = chosen_[i];
    chosen_.resize(combination_rows);
  }

  std::int64_t target_of(std::uint32_t row, std::size_t output) const {
    const std::size_t at = output * rows_ + row;
    return targets_.class_count > 0 ? std::int64_t{targets_.classes[at]} : targets_.values[at];
  }

  // Of several outputs, one of those that vary: the number of outputs if there is none.
  std::size_t choose_output(Stream& stream) const {
    if (outputs_ == 1) return 0;
    std::vector<std::size_t> varying;
    for (std::size_t k = 0; k < outputs_; ++k)
      if (std::any_of(chosen_.begin(), chosen_.end(),
                      [&](std::uint32_t row) { return target_of(row, k) != target_of(chosen_[0], k); }))
        varying.push_back(k);
    return varying.empty() ? outputs_ : varying[stream.below(varying.size())];
  }

  // Classes become two groups: the lowest is in the first, the others by coins, thrown again while the second has none.
  bool set_target(Stream& stream) {
    const std::size_t output = choose_output(stream);
    if (output == outputs_) return false;
    target_.clear();
    for (const std::uint32_t row : chosen_) target_.push_back(target_of(row, output));
    if (targets_.class_count == 0) return true;
    present_ = target_;
    std::sort(present_.begin(), present_.end());
    present_.erase(std::unique(present_.begin(), present_.end()), present_.end());
    if (present_.size() < 2) return false;
    group_.assign(present_.size(), 1);
    if (present_.size() == 2) group_[1] = -1;
    while (std::find(group_.begin(), group_.end(), -1) == group_.end())
      for (std::size_t c = 1; c < group_.size(); ++c) group_[c] = stream.coin() ? -1 : 1;
    for (std::int64_t& target : target_)
      target = group_[std::lower_bound(present_.begin(), present_.end(), target) - present_.begin()];
    return true;
  }

  // By cell, so that prediction reads a row forwards.
  bool append(const std::vector<std::int32_t>& weights, AtomList& atoms) {
    terms_.clear();
    for (std::size_t j = 0; j < weights.size(); ++j)
      if (weights[j] != 0) terms_.emplace_back(atoms.cell[j], weights[j]);
    if (terms_.size() < 2) return false;  // a candidate already
    std::sort(terms_.begin(), terms_.end());
    for (const auto& [cell, weight] : terms_) atoms.add_term(cell, weight);
    atoms.close_atom();
    return true;
  }

  Ridge ridge_;
  const Targets& targets_;
  std::size_t rows_, outputs_;
  std::vector<std::uint32_t> chosen_;
  std::vector<std::int32_t> columns_;
  std::vector<Range<std::int32_t>> ranges_;
  std::vector<std::int64_t> target_, present_, group_;
  std::vector<std::pair<std::uint32_t, std::int32_t>> terms_;
};

CombinationLearner::CombinationLearner(std::vector<double> penalties, const Targets& targets)
    : learning_(std::make_unique<Learning>(std::move(penalties), targets)) {}
CombinationLearner::~CombinationLearner() = default;

bool CombinationLearner::learn(Projection<std::int32_t>& project, const std::uint32_t* rows, std::size_t row_count,
                               Stream& stream, AtomList& atoms) {
  return learning_->learn(project, rows, row_count, stream, atoms);
}

}  // namespace morf
