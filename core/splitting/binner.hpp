// Bins of values, for histograms.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "projection/projection.hpp"
#include "splitting/criterion.hpp"

namespace morf {

// bin_count equal bins between the ends of a range.
template <class Value>
class Binner {
 public:
  Binner() = default;
  explicit Binner(Range<Value> range) : min_(range.min) {
    if constexpr (narrow) {
      const std::uint64_t distinct = std::uint64_t{static_cast<std::uint32_t>(range.max) -
                                                   static_cast<std::uint32_t>(range.min)} +
                                     1;
      one_value_per_bin_ = distinct <= bin_count;
      factor_ = one_value_per_bin_ ? std::uint64_t{1} << 32 : (std::uint64_t{bin_count} << 32) / distinct;
    } else {
      span_ = distance(range.min, range.max);
      real_factor_ = bin_count / span_;
      tiny_ = !(real_factor_ < std::numeric_limits<double>::max());
    }
  }

  bool one_value_per_bin() const { return one_value_per_bin_; }

  std::uint32_t operator()(Value value) const {
    if constexpr (narrow) {
      const std::uint32_t offset = static_cast<std::uint32_t>(value) - static_cast<std::uint32_t>(min_);
      return static_cast<std::uint32_t>(offset * factor_ >> 32);
    } else {
      const double d = distance(min_, value);
      const auto b = static_cast<std::int32_t>(tiny_ ? d / span_ * bin_count : d * real_factor_);
      return static_cast<std::uint32_t>(std::min(b, static_cast<std::int32_t>(bin_count) - 1));
    }
  }

  // up_to(value, last(b)) says whether the value lies in one of the bins 0..b, without finding out in which.
  auto last(std::uint32_t b) const {
    if constexpr (narrow) {
      const std::uint64_t end = ((std::uint64_t{b} + 1) << 32) / factor_ + (((std::uint64_t{b} + 1) << 32) % factor_ != 0);
      return static_cast<Offset>(std::min<std::uint64_t>(end - 1, std::numeric_limits<Offset>::max()));
    } else {
      return b;
    }
  }
  template <class Last>
  bool up_to(Value value, Last last) const {
    if constexpr (narrow) return static_cast<Offset>(static_cast<Offset>(value) - static_cast<Offset>(min_)) <= last;
    else return (*this)(value) <= last;
  }

  // The bins of `size` values, times lanes. `place` does not overlap them.
  void fill(const Value* __restrict values, std::size_t size, std::uint16_t* __restrict place) const;

 private:
  static constexpr bool narrow = std::is_integral_v<Value> && sizeof(Value) <= 4;
  using Offset = std::conditional_t<sizeof(Value) == 2, std::uint16_t, std::uint32_t>;

  // Integers are subtracted before they become doubles, which do not hold them all.
  static double distance(Value from, Value to) {
    if constexpr (std::is_integral_v<Value>)
      return static_cast<double>(static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from));
    else return to - from;
  }

  Value min_{};
  bool one_value_per_bin_ = false, tiny_ = false;  // tiny: a range near the smallest double
  std::uint64_t factor_ = 0;
  double span_ = 0.0, real_factor_ = 0.0;
};

extern template class Binner<std::uint16_t>;
extern template class Binner<std::int32_t>;
extern template class Binner<std::int64_t>;
extern template class Binner<double>;

}  // namespace morf
