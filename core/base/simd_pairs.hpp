// Short vectors of pairs: two 16-bit numbers per lane.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/simd.hpp"

namespace morf {

#if defined(__GNUC__)
typedef std::int16_t PairVector __attribute__((vector_size(2 * lanes * sizeof(std::int16_t))));
#else
struct PairVector {
  std::int16_t number[2 * lanes];
  std::int16_t& operator[](std::size_t i) { return number[i]; }
  std::int16_t operator[](std::size_t i) const { return number[i]; }
  friend PairVector operator+(PairVector a, const PairVector& b) {
    for (std::size_t i = 0; i < 2 * lanes; ++i) a[i] = static_cast<std::int16_t>(a[i] + b[i]);
    return a;
  }
};
#endif

inline PairVector load_pairs(const std::uint16_t* from) {
  PairVector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

inline void store_pairs(const PairVector& v, std::uint16_t* to) { std::memcpy(to, &v, sizeof v); }

// The same pair in all lanes.
inline PairVector all_pairs(std::int16_t first, std::int16_t second) {
  PairVector v;
  for (std::size_t i = 0; i < 2 * lanes; ++i) v[i] = i % 2 == 0 ? first : second;
  return v;
}

// The sum of the two products of each lane.
inline LaneVector<std::int32_t> multiply_pairs(const PairVector& a, const PairVector& b) {
  LaneVector<std::int32_t> sums;
#if defined(__AVX2__)
  const __m256i products = _mm256_madd_epi16(reinterpret_cast<const __m256i&>(a), reinterpret_cast<const __m256i&>(b));
  std::memcpy(&sums, &products, sizeof sums);
#else
  for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] = a[2 * lane] * b[2 * lane] + a[2 * lane + 1] * b[2 * lane + 1];
#endif
  return sums;
}

}  // namespace morf
