// Channels: what can be derived from a sample before atoms look at it.
//
// A *source* is a channel of the sample's own shape, one number a feature: the raw values, or one of the below. Sources are
// made from fixed-point integers, by integer arithmetic or by the basic operations of float64 and a rounding, so that they are
// the same on every machine.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace morf {

struct Source {
  enum class Kind : std::uint8_t { raw, difference, square, magnitude, orientation, squared_difference };
  Kind kind = Kind::raw;
  std::uint32_t axis = 0, other_axis = 0;  // (squared) difference: along `axis`; gradients: rows and columns
  double cosine = 1.0, sine = 0.0;         // orientation: of the direction from dark to bright

  bool operator==(const Source&) const = default;
};

// Derives sources of one sample after another. Holds scratch memory only; one a thread.
class Deriver {
 public:
  explicit Deriver(const std::vector<std::int64_t>& shape) : axes_(shape.size()) {
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      axes_[axis] = {shape[axis], static_cast<std::int64_t>(features_)};
      features_ *= static_cast<std::size_t>(shape[axis]);
    }
  }

  void check(const Source& source) const {
    const bool gradient = source.kind == Source::Kind::magnitude || source.kind == Source::Kind::orientation;
    const bool difference = source.kind == Source::Kind::difference || source.kind == Source::Kind::squared_difference;
    if ((gradient || difference) && source.axis >= axes_.size())
      throw std::invalid_argument("a source names an axis that does not exist");
    if (gradient && (source.other_axis >= axes_.size() || source.other_axis == source.axis))
      throw std::invalid_argument("a gradient needs two axes");
  }

  // From now on of this sample, one value a feature.
  void begin(const std::int64_t* raw) {
    raw_ = raw;
    gradient_axes_[0] = gradient_axes_[1] = 0;
  }

  // The values of a source, until the next call.
  const std::int64_t* operator()(const Source& source) {
    if (source.kind == Source::Kind::raw) return raw_;
    derived_.resize(features_);
    switch (source.kind) {
      case Source::Kind::difference: differences(axes_[source.axis], 1, 0, derived_.data()); break;
      case Source::Kind::square:
        for (std::size_t j = 0; j < features_; ++j) derived_[j] = raw_[j] * raw_[j];
        break;
      case Source::Kind::squared_difference:
        differences(axes_[source.axis], 1, 0, derived_.data());
        for (std::int64_t& d : derived_) d *= d;
        break;
      case Source::Kind::magnitude:
        find_gradients(source);
        for (std::size_t j = 0; j < features_; ++j) derived_[j] = rounded(length_[j]);
        break;
      default:
        find_gradients(source);
        orient(source.cosine, source.sine);
        break;
    }
    return derived_.data();
  }

 private:
  struct Axis {
    std::int64_t length, stride;
  };

  // out[i] = x[i + ahead] - x[i - behind] along an axis, with the border repeated.
  void differences(Axis axis, std::int64_t ahead, std::int64_t behind, std::int64_t* out) const {
    for (std::int64_t block = 0; block < static_cast<std::int64_t>(features_); block += axis.length * axis.stride)
      for (std::int64_t i = 0; i < axis.length; ++i) {
        const std::int64_t* high = raw_ + block + std::min(i + ahead, axis.length - 1) * axis.stride;
        const std::int64_t* low = raw_ + block + std::max<std::int64_t>(i - behind, 0) * axis.stride;
        std::int64_t* to = out + block + i * axis.stride;
        for (std::int64_t k = 0; k < axis.stride; ++k) to[k] = high[k] - low[k];
      }
  }

  // Central differences: their length, and their direction as a unit vector; once for all sources that share them.
  void find_gradients(const Source& source) {
    if (gradient_axes_[0] == source.axis + 1 && gradient_axes_[1] == source.other_axis + 1) return;
    gradient_axes_[0] = source.axis + 1;
    gradient_axes_[1] = source.other_axis + 1;
    for (auto* values : {&down_, &right_, &length_}) values->resize(features_);
    differences(axes_[source.axis], 1, 1, derived_.data());
    for (std::size_t j = 0; j < features_; ++j) down_[j] = static_cast<double>(derived_[j]);
    differences(axes_[source.other_axis], 1, 1, derived_.data());
    for (std::size_t j = 0; j < features_; ++j) right_[j] = static_cast<double>(derived_[j]);
    for (std::size_t j = 0; j < features_; ++j) {
      length_[j] = std::sqrt(down_[j] * down_[j] + right_[j] * right_[j]);
      const double divisor = length_[j] > 0.0 ? length_[j] : 1.0;
      down_[j] /= divisor;
      right_[j] /= divisor;
    }
  }

  // The length times the ninth power of the cosine of the angle between gradient and orientation, where that is positive.
  void orient(double to_right, double to_below) {
    const double *__restrict const right = right_.data(), *__restrict const down = down_.data(), *__restrict const length = length_.data();
    std::int64_t* __restrict const out = derived_.data();
    for (std::size_t j = 0, end = features_; j < end; ++j) {
      const double along = right[j] * to_right + down[j] * to_below;
      const double cosine = along > 0.0 ? along : 0.0;
      const double square = cosine * cosine, fourth = square * square;
      out[j] = rounded(length[j] * (fourth * fourth * cosine));
    }
  }

  // Half to even, for sizes below 2^51: in a float64 between 2^52 and 2^53 the last bit is the unit.
  static std::int64_t rounded(double x) {
    constexpr double unit = 0x1.8p52;
    return std::bit_cast<std::int64_t>(x + unit) - std::bit_cast<std::int64_t>(unit);
  }

  std::vector<Axis> axes_;
  std::size_t features_ = 1;
  const std::int64_t* raw_ = nullptr;
  std::uint32_t gradient_axes_[2] = {0, 0};  // of the gradients at hand, counted from 1
  std::vector<std::int64_t> derived_;
  std::vector<double> down_, right_, length_;
};

}  // namespace morf
