// The losses of boosting that need an exponential, with only IEEE basic operations, because C libraries differ in the last bit.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace morf {

// Relative error about 1e-16; arguments are cut to -708 .. 709, where the result is a normal number. Without branches, so that
// loops of it vectorise.
inline double exact_exp(double x) {
  constexpr double magic = 0x1.8p52;  // adding it rounds to a whole number, which then stands in the low bits
  x = x > -708.0 ? x : -708.0;
  x = x < 709.0 ? x : 709.0;
  const double shifted = x * 1.4426950408889634 + magic, n = shifted - magic;
  // ln 2 in two parts, the first of few bits, so that its product is exact.
  const double r = (x - n * 0x1.62e42fee00000p-1) - n * 0x1.a39ef35793c76p-33;
  double sum = 1.0 / 6227020800.0;
  constexpr double coefficients[] = {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
                                     1.0 / 720,       1.0 / 120,      1.0 / 24,      1.0 / 6,      0.5,         1.0, 1.0};
  for (const double c : coefficients) sum = sum * r + c;
  return sum * std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) + 1023) << 52);
}

// Probabilities of a row's outputs.
inline void softmax(const double* scores, std::size_t outputs, double* probability) {
  double largest = scores[0], sum = 0.0;
  for (std::size_t k = 1; k < outputs; ++k) largest = scores[k] > largest ? scores[k] : largest;
  for (std::size_t k = 0; k < outputs; ++k) sum += probability[k] = exact_exp(scores[k] - largest);
  for (std::size_t k = 0; k < outputs; ++k) probability[k] /= sum;
}

inline double logistic(double score) {
  const double e = exact_exp(score < 0.0 ? score : -score);
  return (score < 0.0 ? e : 1.0) / (1.0 + e);
}

}  // namespace morf
