// Channels: what can be derived from a sample before atoms look at it.
//
// A *source* is a channel of the sample's own shape, one number a feature: the raw values, or one of the below. Sources are
// made from fixed-point integers, by integer arithmetic or by the basic operations of float64 and a rounding, so that they are
// the same on every machine.
#pragma once

#include <algorithm>
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

// Derives one source after another from a sample. Holds scratch memory only; one a thread.
class Deriver {
 public:
  Deriver(const std::vector<std::int64_t>& shape, const std::vector<Source>& sources) : sources_(sources) {
    std::int64_t stride = 1;
    axes_.resize(shape.size());
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      axes_[axis] = {shape[axis], stride};
      stride *= shape[axis];
    }
    features_ = stride;
    for (const Source& source : sources) {
      if (source.axis >= shape.size() && source.kind != Source::Kind::raw && source.kind != Source::Kind::square)
        throw std::invalid_argument("a source names an axis that does not exist");
      if (gradient(source) && (source.other_axis >= shape.size() || source.other_axis == source.axis))
        throw std::invalid_argument("a gradient needs two axes");
    }
  }

  // Calls use(source, values) for each source in order; `raw` has one value a feature.
  template <class Use>
  void operator()(const std::int64_t* raw, Use use) {
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      const Source& source = sources_[s];
      if (source.kind == Source::Kind::raw) {
        use(s, raw);
        continue;
      }
      derived_.resize(static_cast<std::size_t>(features_));
      switch (source.kind) {
        case Source::Kind::difference: differences(raw, axes_[source.axis], 1, 0, derived_.data()); break;
        case Source::Kind::square:
          for (std::int64_t j = 0; j < features_; ++j) derived_[j] = raw[j] * raw[j];
          break;
        case Source::Kind::squared_difference:
          differences(raw, axes_[source.axis], 1, 0, derived_.data());
          for (std::int64_t& d : derived_) d *= d;
          break;
        default: gradients(raw, source, s); break;
      }
      use(s, derived_.data());
    }
  }

 private:
  struct Axis {
    std::int64_t length, stride;
  };

  static bool gradient(const Source& source) {
    return source.kind == Source::Kind::magnitude || source.kind == Source::Kind::orientation;
  }

  // out[i] = x[i + ahead] - x[i - behind] along an axis, with the border repeated.
  void differences(const std::int64_t* x, Axis axis, std::int64_t ahead, std::int64_t behind, std::int64_t* out) const {
    for (std::int64_t block = 0; block < features_; block += axis.length * axis.stride)
      for (std::int64_t i = 0; i < axis.length; ++i) {
        const std::int64_t* high = x + block + std::min(i + ahead, axis.length - 1) * axis.stride;
        const std::int64_t* low = x + block + std::max<std::int64_t>(i - behind, 0) * axis.stride;
        std::int64_t* to = out + block + i * axis.stride;
        for (std::int64_t k = 0; k < axis.stride; ++k) to[k] = high[k] - low[k];
      }
  }

  // Central differences, once for all sources that share them.
  void gradients(const std::int64_t* raw, const Source& source, std::size_t s) {
    const auto same = [&](std::size_t before) {
      return gradient(sources_[before]) && sources_[before].axis == source.axis && sources_[before].other_axis == source.other_axis;
    };
    if (s == 0 || !same(s - 1)) {
      down_.resize(static_cast<std::size_t>(features_));
      right_.resize(down_.size());
      length_.resize(down_.size());
      whole_.resize(down_.size());
      differences(raw, axes_[source.axis], 1, 1, whole_.data());
      for (std::size_t j = 0; j < down_.size(); ++j) down_[j] = static_cast<double>(whole_[j]);
      differences(raw, axes_[source.other_axis], 1, 1, whole_.data());
      for (std::size_t j = 0; j < down_.size(); ++j) right_[j] = static_cast<double>(whole_[j]);
      for (std::size_t j = 0; j < down_.size(); ++j) length_[j] = std::sqrt(down_[j] * down_[j] + right_[j] * right_[j]);
    }
    if (source.kind == Source::Kind::magnitude) {
      for (std::size_t j = 0; j < length_.size(); ++j) derived_[j] = rounded(length_[j]);
    } else {
      // The length times the ninth power of the cosine of the angle between gradient and orientation, where that is positive.
      for (std::size_t j = 0; j < length_.size(); ++j) {
        const double along = right_[j] * source.cosine + down_[j] * source.sine;
        const double cosine = along > 0.0 ? along / length_[j] : 0.0;
        const double square = cosine * cosine, fourth = square * square;
        derived_[j] = rounded(length_[j] * (fourth * fourth * cosine));
      }
    }
  }

  // Half to even, for sizes below 2^51: in a float64 between 2^52 and 2^53 the last bit is the unit.
  static std::int64_t rounded(double x) { return static_cast<std::int64_t>((x + 0x1.8p52) - 0x1.8p52); }

  const std::vector<Source>& sources_;
  std::vector<Axis> axes_;
  std::int64_t features_;
  std::vector<std::int64_t> derived_, whole_;
  std::vector<double> down_, right_, length_;
};

}  // namespace morf
