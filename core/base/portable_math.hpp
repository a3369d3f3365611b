// Elementary functions made of IEEE basic operations alone, because C libraries differ in the last bit: results are the same on
// every platform.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace morf {

inline constexpr double infinity = std::numeric_limits<double>::infinity(), minus_infinity = -infinity;

// The relative error is about 1e-16. Arguments are cut to -708 .. 709, where the result is a normal number. There are no
// branches, so that compilers vectorise loops over it.
inline double portable_exp(double x) {
  constexpr double magic = 0x1.8p52;  // adding it rounds to a whole number, which then stands in the low bits
  x = x > -708.0 ? x : -708.0;
  x = x < 709.0 ? x : 709.0;
  const double shifted = x * 1.4426950408889634 + magic, n = shifted - magic;
  // ln 2 is split in two parts. The first has few bits, so that its product is exact.
  const double r = (x - n * 0x1.62e42fee00000p-1) - n * 0x1.a39ef35793c76p-33;
  double sum = 1.0 / 6227020800.0;
  constexpr double coefficients[] = {
      1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
      1.0 / 120,       1.0 / 24,       1.0 / 6,       0.5,          1.0,         1.0};
  for (const double c : coefficients) sum = sum * r + c;
  return sum * std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) + 1023) << 52);
}

// Of a positive number. The relative error is about 1e-16.
inline double portable_log2(double x) {
  int exponent;
  double m = std::frexp(x, &exponent);
  if (m < 0.7071067811865476) {
    m *= 2.0;
    --exponent;
  }
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  double sum = 0.0;
  for (int k = 21; k >= 1; k -= 2) sum = sum * z + 1.0 / k;
  return exponent + (2.0 * s * sum) * 1.4426950408889634;
}

inline double portable_log(double x) { return portable_log2(x) * 0.6931471805599453; }

// Sine and cosine of an angle of at most pi in size. Errors are about 1e-12.
inline double portable_sine(double x) {
  constexpr double pi = 3.141592653589793;
  // Beyond a right angle the sine falls again.
  x = x > pi / 2 ? pi - x : x < -pi / 2 ? -pi - x : x;
  const double square = x * x;
  double sum = 0.0;
  for (int k = 19; k >= 3; k -= 2) sum = (sum + 1.0) * (-square / (k * (k - 1)));
  return x * (1.0 + sum);
}
inline double portable_cosine(double x) { return portable_sine(1.5707963267948966 - std::abs(x)); }

// Turns the scores of one row's outputs into probabilities.
inline void softmax(const double* scores, std::size_t outputs, double* probability) {
  double largest = scores[0], sum = 0.0;
  for (std::size_t k = 1; k < outputs; ++k) largest = scores[k] > largest ? scores[k] : largest;
  for (std::size_t k = 0; k < outputs; ++k) sum += probability[k] = portable_exp(scores[k] - largest);
  for (std::size_t k = 0; k < outputs; ++k) probability[k] /= sum;
}

inline double logistic(double score) {
  const double e = portable_exp(score < 0.0 ? score : -score);
  return (score < 0.0 ? e : 1.0) / (1.0 + e);
}

}  // namespace morf
