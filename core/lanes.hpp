// Short vectors: one candidate a lane. Plain loops over eight lanes would do, but compilers unroll such loops and then
// vectorise the wrong way round; the vector types of GCC and Clang say what is meant, on any instruction set.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace morf {

inline constexpr std::size_t lanes = 8;  // candidates searched side by side

#if defined(__GNUC__)

template <class T>
struct LaneVectorOf {
  typedef T type __attribute__((vector_size(lanes * sizeof(T))));
};
template <class T>
using LaneVector = typename LaneVectorOf<T>::type;

template <class To, class From>
LaneVector<To> convert_lanes(const LaneVector<From>& from) {
  return __builtin_convertvector(from, LaneVector<To>);
}

template <class T>
LaneVector<T> lower_lanes(const LaneVector<T>& a, const LaneVector<T>& b) {
  return a < b ? a : b;
}

// Where one is not a number, that of b.
template <class T>
LaneVector<T> higher_lanes(const LaneVector<T>& a, const LaneVector<T>& b) {
  return a > b ? a : b;
}

#else

template <class T>
struct LaneVector {
  T lane[lanes];
  T& operator[](std::size_t i) { return lane[i]; }
  T operator[](std::size_t i) const { return lane[i]; }
  friend LaneVector operator+(LaneVector a, const LaneVector& b) {
    for (std::size_t i = 0; i < lanes; ++i) a.lane[i] += b.lane[i];
    return a;
  }
  friend LaneVector operator-(LaneVector a, const LaneVector& b) {
    for (std::size_t i = 0; i < lanes; ++i) a.lane[i] -= b.lane[i];
    return a;
  }
  friend LaneVector operator*(LaneVector a, const LaneVector& b) {
    for (std::size_t i = 0; i < lanes; ++i) a.lane[i] *= b.lane[i];
    return a;
  }
  friend LaneVector operator/(LaneVector a, const LaneVector& b) {
    for (std::size_t i = 0; i < lanes; ++i) a.lane[i] /= b.lane[i];
    return a;
  }
};

template <class To, class From>
LaneVector<To> convert_lanes(const LaneVector<From>& from) {
  LaneVector<To> to;
  for (std::size_t i = 0; i < lanes; ++i) to[i] = static_cast<To>(from[i]);
  return to;
}

template <class T>
LaneVector<T> lower_lanes(LaneVector<T> a, const LaneVector<T>& b) {
  for (std::size_t i = 0; i < lanes; ++i) a[i] = a[i] < b[i] ? a[i] : b[i];
  return a;
}

template <class T>
LaneVector<T> higher_lanes(LaneVector<T> a, const LaneVector<T>& b) {
  for (std::size_t i = 0; i < lanes; ++i) a[i] = a[i] > b[i] ? a[i] : b[i];
  return a;
}

#endif

template <class T>
LaneVector<T> load_lanes(const T* from) {
  LaneVector<T> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <class T>
void store_lanes(const LaneVector<T>& v, T* to) {
  std::memcpy(to, &v, sizeof v);
}

template <class T>
LaneVector<T> all_lanes(T value) {
#if defined(__GNUC__)
  return value - LaneVector<T>{};
#else
  LaneVector<T> v;
  for (std::size_t i = 0; i < lanes; ++i) v[i] = value;
  return v;
#endif
}

// Two 16-bit numbers a lane.
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
  for (std::size_t lane = 0; lane < lanes; ++lane)
    sums[lane] = a[2 * lane] * b[2 * lane] + a[2 * lane + 1] * b[2 * lane + 1];
#endif
  return sums;
}

}  // namespace morf
