#include "splitting/value_search.hpp"

#include <algorithm>

namespace morf {

template <class Value>
void Binner<Value>::fill(const Value* __restrict values, std::size_t size, std::uint16_t* __restrict place) const {
  if constexpr (std::is_same_v<Value, std::uint16_t>) {
    if (one_value_per_bin_) {
      for (std::size_t i = 0; i < size; ++i) place[i] = static_cast<std::uint16_t>((values[i] - min_) * lanes);
    } else {
      // The same product in halves of 16 bits, which vectors multiply best.
      const auto high = static_cast<std::uint16_t>(factor_ >> 16), low = static_cast<std::uint16_t>(factor_);
      for (std::size_t i = 0; i < size; ++i) {
        const auto offset = static_cast<std::uint16_t>(values[i] - min_);
        const auto carried = static_cast<std::uint16_t>(std::uint32_t{offset} * low >> 16);
        const auto part = static_cast<std::uint16_t>(offset * high);
        const auto whole = static_cast<std::uint16_t>(std::uint32_t{offset} * high >> 16);
        place[i] = static_cast<std::uint16_t>((whole + (static_cast<std::uint16_t>(part + carried) < part)) * lanes);
      }
    }
  } else {
    const Binner self = *this;
    for (std::size_t i = 0; i < size; ++i) place[i] = static_cast<std::uint16_t>(self(values[i]) * lanes);
  }
}

template <class Value>
void ValueSearch<Value>::find_neighbours(const Value* values, Range<Value> range) {
  const Binner<Value> binner = *best_binner_;
  const auto last = binner.last(best_bin_);
  Value below = range.min, above = range.max;
  for (std::size_t i = 0; i < node_->size; ++i) {
    const bool left = binner.up_to(values[i], last);
    const Value if_left = left ? values[i] : range.min, if_right = left ? range.max : values[i];
    below = if_left > below ? if_left : below;
    above = if_right < above ? if_right : above;
  }
  best_->below = below;
  best_->above = above;
}

template <class Value>
bool ValueSearch<Value>::crowded(const Value* values, const Binner<Value>& binner, std::uint32_t b, std::uint64_t bin_weight,
                                 Range<Value> range) const {
  const std::uint64_t tolerated = node_->total_weight / 4;
  if (bin_weight <= tolerated) return false;
  // The first bin often holds a background of the lowest value.
  if (b == 0 && bin_weight - weight_at(values, range.min) <= tolerated) return false;
  Value low = range.max, high = range.min;
  for (std::size_t i = 0; i < node_->size; ++i) {
    const bool inside = binner(values[i]) == b;
    low = inside && values[i] < low ? values[i] : low;
    high = inside && values[i] > high ? values[i] : high;
  }
  return bin_weight - std::max(weight_at(values, low), weight_at(values, high)) > tolerated;
}

template <class Value>
std::uint64_t ValueSearch<Value>::weight_at(const Value* values, Value value) const {
  const std::uint32_t* weight = node_->weight;
  std::uint32_t total = 0;
  for (std::size_t i = 0; i < node_->size; ++i) total += values[i] == value ? weight[i] : 0;
  return total;
}

template class Binner<std::uint16_t>;
template class ValueSearch<std::uint16_t>;
template class Binner<std::int32_t>;
template class ValueSearch<std::int32_t>;
template class Binner<std::int64_t>;
template class ValueSearch<std::int64_t>;
template class Binner<double>;
template class ValueSearch<double>;

}  // namespace morf
