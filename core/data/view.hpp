// Views: versions of a sample that atoms may look at.
//
// A *view* has the sample's own shape, with one number per feature: the raw values, or something derived from them. Views are
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

struct View {
  enum class Kind : std::uint8_t {
    raw,
    difference,
    square,
    magnitude,
    orientation,
    squared_difference,
    filter,
    squared_filter,
    product
  };
  Kind kind = Kind::raw;
  std::uint32_t axis = 0, other_axis = 0;  // (squared) differences go along `axis`; gradients have rows and columns
  double cosine = 1.0, sine = 0.0;         // of an orientation, the direction from dark to bright
  // Of (squared) filters along `axis`: one row of weights per place along it, in units of 2^-filter_bits. None: the raw values.
  std::vector<std::int64_t> filters{};
  // Products are those of what two filters show, `lag` apart around `axis`; within an octave band of `width` steps along
  // `other_axis`, unless that is 0.
  std::uint32_t lag = 0, width = 0;

  bool operator==(const View&) const = default;
};

inline constexpr int filter_bits = 20;  // behind the point of a weight of a filter

// Derives the views of one sample after another. It holds scratch memory only, and each thread has its own.
class ViewDeriver {
 public:
  explicit ViewDeriver(const std::vector<std::int64_t>& shape) : axes_(shape.size()) {
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      axes_[axis] = {shape[axis], static_cast<std::int64_t>(features_)};
      features_ *= static_cast<std::size_t>(shape[axis]);
    }
  }

  void check(const View& view) const {
    const bool gradient = view.kind == View::Kind::magnitude || view.kind == View::Kind::orientation;
    const bool difference = view.kind == View::Kind::difference || view.kind == View::Kind::squared_difference;
    const bool filter = view.kind == View::Kind::filter || view.kind == View::Kind::squared_filter ||
                        view.kind == View::Kind::product;
    if ((gradient || difference || filter) && view.axis >= axes_.size())
      throw std::invalid_argument("a view names an axis that does not exist");
    if (gradient && (view.other_axis >= axes_.size() || view.other_axis == view.axis))
      throw std::invalid_argument("a gradient needs two axes");
    const auto length = filter ? static_cast<std::size_t>(axes_[view.axis].length) : 0;
    if (!view.filters.empty() && view.filters.size() != length * length)
      throw std::invalid_argument("a view has other filters than its axis needs");
    if (view.kind == View::Kind::product) check_product(view);
  }

  // Takes the raw values of the next sample, one per feature; they must live until the views are read.
  void begin(const std::int64_t* raw) {
    raw_ = raw;
    gradient_axes_[0] = gradient_axes_[1] = 0;
    shown_ = View{};
  }

  // Returns the values of a view. They hold until the next call.
  const std::int64_t* operator()(const View& view) {
    if (view.kind == View::Kind::raw) return raw_;
    derived_.resize(features_);
    switch (view.kind) {
      case View::Kind::difference: differences(axes_[view.axis], 1, 0, derived_.data()); break;
      case View::Kind::square:
        for (std::size_t j = 0; j < features_; ++j) derived_[j] = raw_[j] * raw_[j];
        break;
      case View::Kind::squared_difference:
        differences(axes_[view.axis], 1, 0, derived_.data());
        for (std::int64_t& d : derived_) d *= d;
        break;
      case View::Kind::filter: filter(axes_[view.axis], view.filters); break;
      case View::Kind::squared_filter:
        filter(axes_[view.axis], view.filters);
        for (std::int64_t& f : derived_) f *= f;
        break;
      case View::Kind::product: multiply(view); break;
      case View::Kind::magnitude:
        find_gradients(view);
        for (std::size_t j = 0; j < features_; ++j) derived_[j] = rounded(length_[j]);
        break;
      default:
        find_gradients(view);
        orient(view.cosine, view.sine);
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

  // Weighs the values along an axis, and rounds sums half up. Sums of numbers from a damaged file may wrap.
  void filter(Axis axis, const std::vector<std::int64_t>& filters) {
    if (filters.empty()) return derived_.assign(raw_, raw_ + features_);
    const auto length = static_cast<std::size_t>(axis.length), stride = static_cast<std::size_t>(axis.stride);
    sums_.resize(stride);
    for (std::size_t block = 0; block < features_; block += length * stride)
      for (std::size_t i = 0; i < length; ++i) {
        std::fill(sums_.begin(), sums_.end(), std::uint64_t{1} << (filter_bits - 1));
        for (std::size_t j = 0; j < length; ++j) {
          const auto weight = static_cast<std::uint64_t>(filters[i * length + j]);
          const std::int64_t* const from = raw_ + block + j * stride;
          for (std::size_t k = 0; k < stride; ++k) sums_[k] += weight * static_cast<std::uint64_t>(from[k]);
        }
        std::int64_t* const to = derived_.data() + block + i * stride;
        for (std::size_t k = 0; k < stride; ++k) to[k] = static_cast<std::int64_t>(sums_[k]) >> filter_bits;
      }
  }

  void check_product(const View& view) const {
    if (view.lag >= axes_[view.axis].length) throw std::invalid_argument("a product of channels that do not exist");
    if (view.width == 0) return;
    if (view.other_axis >= axes_.size() || view.other_axis == view.axis || !std::has_single_bit(view.width) ||
        2 * static_cast<std::int64_t>(view.width) > axes_[view.other_axis].length)
      throw std::invalid_argument("a product has no such band");
  }

  // Multiplies what pairs of filters show. That is found once for all products that share it.
  void multiply(const View& view) {
    View source = view;
    source.lag = 0;
    if (!(source == shown_)) {
      filter(axes_[view.axis], view.filters);
      shown_values_ = derived_;
      if (view.width != 0) band(axes_[view.other_axis], view.width);
      shown_ = std::move(source);
    }
    const auto [length, stride] = axes_[view.axis];
    for (std::int64_t block = 0; block < static_cast<std::int64_t>(features_); block += length * stride)
      for (std::int64_t i = 0; i < length; ++i) {
        const std::int64_t *const one = shown_values_.data() + block + i * stride, *const other = shown_values_.data() + block +
                                                                                                  (i + view.lag) % length *
                                                                                                      stride;
        for (std::int64_t k = 0; k < stride; ++k) derived_[static_cast<std::size_t>(block + i * stride + k)] = one[k] * other[k];
      }
  }

  // Replaces values by the means of `width` steps less those of twice as many, rounded half up, with the border repeated.
  void band(Axis axis, std::int64_t width) {
    const std::int64_t length = axis.length;
    const int bits = std::countr_zero(static_cast<std::uint64_t>(2 * width));
    line_.resize(static_cast<std::size_t>(length));
    ahead_.resize(static_cast<std::size_t>(length) + 1);
    const auto sum = [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t before = std::max<std::int64_t>(-begin, 0), behind = std::max<std::int64_t>(end - length, 0);
      const std::int64_t within = ahead_[static_cast<std::size_t>(std::min(end, length))] -
                                  ahead_[static_cast<std::size_t>(std::max<std::int64_t>(begin, 0))];
      return within + before * line_.front() + behind * line_.back();
    };
    for (std::int64_t block = 0; block < static_cast<std::int64_t>(features_); block += length * axis.stride)
      for (std::int64_t k = 0; k < axis.stride; ++k) {
        std::int64_t* const values = shown_values_.data() + block + k;
        for (std::int64_t t = 0; t < length; ++t) {
          line_[static_cast<std::size_t>(t)] = values[t * axis.stride];
          ahead_[static_cast<std::size_t>(t) + 1] = ahead_[static_cast<std::size_t>(t)] + line_[static_cast<std::size_t>(t)];
        }
        for (std::int64_t t = 0; t < length; ++t) {
          const std::int64_t first = t - width / 2;
          values[t * axis.stride] = (2 * sum(first, first + width) - sum(t - width, t + width) + width) >> bits;
        }
      }
  }

  // Finds central differences: their length, and their direction as a unit vector. This is done once for all views that share them.
  void find_gradients(const View& view) {
    if (gradient_axes_[0] == view.axis + 1 && gradient_axes_[1] == view.other_axis + 1) return;
    gradient_axes_[0] = view.axis + 1;
    gradient_axes_[1] = view.other_axis + 1;
    for (auto* values : {&down_, &right_, &length_}) values->resize(features_);
    differences(axes_[view.axis], 1, 1, derived_.data());
    for (std::size_t j = 0; j < features_; ++j) down_[j] = static_cast<double>(derived_[j]);
    differences(axes_[view.other_axis], 1, 1, derived_.data());
    for (std::size_t j = 0; j < features_; ++j) right_[j] = static_cast<double>(derived_[j]);
    for (std::size_t j = 0; j < features_; ++j) {
      length_[j] = std::sqrt(down_[j] * down_[j] + right_[j] * right_[j]);
      const double divisor = length_[j] > 0.0 ? length_[j] : 1.0;
      down_[j] /= divisor;
      right_[j] /= divisor;
    }
  }

  // Writes the length times the ninth power of the cosine of the angle between gradient and orientation, where that is positive.
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

  // Rounds half to even, for sizes below 2^51: in a float64 between 2^52 and 2^53 the last bit is the unit.
  static std::int64_t rounded(double x) {
    constexpr double unit = 0x1.8p52;
    return std::bit_cast<std::int64_t>(x + unit) - std::bit_cast<std::int64_t>(unit);
  }

  std::vector<Axis> axes_;
  std::size_t features_ = 1;
  const std::int64_t* raw_ = nullptr;
  std::uint32_t gradient_axes_[2] = {0, 0};  // of the gradients at hand, counted from 1; 0: there are none
  std::vector<std::int64_t> derived_;
  std::vector<std::uint64_t> sums_;  // of filters
  View shown_;  // whose factors are at hand
  std::vector<std::int64_t> shown_values_, line_, ahead_;
  std::vector<double> down_, right_, length_;
};

}  // namespace morf
