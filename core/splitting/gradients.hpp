// Boosted trees: vectors of gradients, with one number per output, and leaves that hold a vector.
//
// Gradients are fixed point, so that sums are exact and trees do not depend on the order in which they are taken: coarse ones of
// 16 bits find the splits, fine ones of 32 bits make the leaves. With G the sums of the gradients at a node and H that of the
// mean curvatures, a side is worth sum(G^2) / (H + l2).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "base/portable_math.hpp"
#include "base/simd.hpp"

namespace morf {

// What a round of boosting knows of each row.
class Gradients {
 public:
  static constexpr int coarse_bits = 14, fine_bits = 30;

  Gradients(std::size_t rows, std::size_t outputs) : rows_(rows), outputs_(outputs) {
    if (outputs == 0) throw std::invalid_argument("gradients need an output");
    // Small strides are powers of two, which vectorise; others whole vectors.
    stride_ = outputs < lanes ? std::bit_ceil(outputs + 1) : (outputs + 1 + lanes - 1) / lanes * lanes;
    coarse_.assign(rows * stride_, 0);
    gradient_.resize(rows * outputs);
    curvature_.resize(rows * outputs);
  }

  // The negative gradient and the curvature of each row's loss for each output. Their units are powers of two.
  void set(const double* gradient, const double* curvature) {
    const std::size_t size = rows_ * outputs_;
    gradient_exponent_ = exponent(gradient, size);
    curvature_exponent_ = exponent(curvature, size);
    const double fine_gradient = std::ldexp(1.0, fine_bits - gradient_exponent_),
                 fine_curvature = std::ldexp(1.0, fine_bits - curvature_exponent_);
    for (std::size_t i = 0; i < size; ++i) gradient_[i] = static_cast<std::int32_t>(std::rint(gradient[i] * fine_gradient));
    for (std::size_t i = 0; i < size; ++i) curvature_[i] = static_cast<std::int32_t>(std::rint(curvature[i] * fine_curvature));
    const std::int32_t half = std::int32_t{1} << (fine_bits - coarse_bits - 1);
    for (std::size_t row = 0; row < rows_; ++row) {
      std::int16_t* const to = &coarse_[row * stride_];
      std::int64_t sum = 0;
      for (std::size_t k = 0; k < outputs_; ++k) {
        to[k] = static_cast<std::int16_t>((gradient_[row * outputs_ + k] + half) >> (fine_bits - coarse_bits));
        sum += curvature_[row * outputs_ + k];
      }
      const auto mean = static_cast<std::int32_t>(sum / static_cast<std::int64_t>(outputs_));
      to[outputs_] = static_cast<std::int16_t>((mean + half) >> (fine_bits - coarse_bits));
    }
  }

  std::size_t rows() const { return rows_; }
  std::size_t outputs() const { return outputs_; }
  std::size_t stride() const { return stride_; }
  // Of a row: the coarse gradients, then the mean of the curvatures, then zeros.
  const std::int16_t* coarse(std::size_t row) const { return &coarse_[row * stride_]; }
  const std::int32_t* gradient(std::size_t row) const { return &gradient_[row * outputs_]; }
  const std::int32_t* curvature(std::size_t row) const { return &curvature_[row * outputs_]; }
  double gradient_unit(int bits) const { return std::ldexp(1.0, gradient_exponent_ - bits); }
  double curvature_unit(int bits) const { return std::ldexp(1.0, curvature_exponent_ - bits); }

 private:
  // The power of two that all values stay below.
  static int exponent(const double* values, std::size_t size) {
    double largest = 0.0;
    for (std::size_t i = 0; i < size; ++i) {
      const double a = std::abs(values[i]);
      largest = a > largest ? a : largest;
    }
    if (!(largest < 0x1.0p1000)) throw std::invalid_argument("gradients are not finite");
    int found = 0;
    std::frexp(largest, &found);
    return std::max(found, -900);
  }

  std::size_t rows_, outputs_, stride_;
  int gradient_exponent_ = 0, curvature_exponent_ = 0;
  std::vector<std::int16_t> coarse_;
  std::vector<std::int32_t> gradient_, curvature_;
};

// How the values of leaves follow from sums.
struct LeafRule {
  double l2 = 1.0, learning_rate = 0.1, largest = infinity;
};

}  // namespace morf
