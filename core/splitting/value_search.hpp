// The parts of the search for thresholds that see values alone, whatever the criterion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "splitting/binner.hpp"
#include "splitting/node_rows.hpp"
#include "splitting/split.hpp"

namespace morf {

template <class Value>
class ValueSearch {
 public:
  void set_limits(SideLimits limits) { limits_ = limits; }

 protected:
  ValueSearch(Splitter splitter, SideLimits limits) : splitter_(splitter), limits_(limits) {}

  // Lists the candidates that have more than one value.
  void list_varying(std::size_t candidates) {
    varying_.resize(candidates);
    std::size_t count = 0;
    for (std::size_t j = 0; j < candidates; ++j) {
      varying_[count] = j;
      count += ranges_[j].min != ranges_[j].max;
    }
    varying_.resize(count);
  }

  static std::uint64_t width(Range<Value> range) {
    if constexpr (std::is_integral_v<Value>) return static_cast<std::uint64_t>(range.max) - static_cast<std::uint64_t>(range.min);
    else return ~std::uint64_t{0};
  }

  // Every row has a count and a weight of at least one.
  bool limited() const { return limits_.min_count > 1 || limits_.min_weight > 1; }

  bool sides_allowed(std::uint64_t left_count, std::uint64_t left_weight) const {
    return limits_.allow(*node_, left_count, left_weight);
  }

  void offer(double score, std::size_t candidate, Value below, Value above) {
    if (score > best_->score) *best_ = {score, candidate, below, above};
  }

  // Offers a split behind bin b. Its neighbouring values are found later, see find_neighbours.
  void offer_bin(double score, std::size_t first, std::size_t j, const Binner<Value>& binner, std::uint32_t b) {
    offer(score, first + j, ranges_[j].min, ranges_[j].max);  // for now: see find_neighbours
    best_binner_ = binner;
    best_bin_ = b;
  }

  // Finds the values on the two sides of the best split, once it is known between which bins that lies.
  void find_neighbours(const Value* values, Range<Value> range);

  // Whether a heavy bin holds much besides its lowest or its highest value: the mark of heavy tails, where one far value
  // squeezes all others into a bin. A heavy bin of one repeated value (the background of an image) is harmless.
  bool crowded(const Value* values, const Binner<Value>& binner, std::uint32_t b, std::uint64_t bin_weight,
               Range<Value> range) const;

  Splitter splitter_;
  SideLimits limits_;
  const NodeRows* node_ = nullptr;
  Split<Value>* best_ = nullptr;
  const Range<Value>* ranges_ = nullptr;
  std::vector<std::size_t> varying_;
  std::optional<Binner<Value>> best_binner_;  // of the best split, where that lies between bins
  std::uint32_t best_bin_ = 0;

 private:
  std::uint64_t weight_at(const Value* values, Value value) const;
};

extern template class ValueSearch<std::uint16_t>;
extern template class ValueSearch<std::int32_t>;
extern template class ValueSearch<std::int64_t>;
extern template class ValueSearch<double>;

}  // namespace morf
