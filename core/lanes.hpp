// Short vectors: one candidate a lane. Plain loops over eight lanes would do, but compilers unroll such loops and then
// vectorise the wrong way round; the vector types of GCC and Clang say what is meant, on any instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace morf {

inline constexpr std::size_t bin_lanes = 8;  // candidates whose histograms are scanned together

#if defined(__GNUC__)

template <class T>
struct LaneVectorOf {
  typedef T type __attribute__((vector_size(bin_lanes * sizeof(T))));
};
template <class T>
using LaneVector = typename LaneVectorOf<T>::type;

template <class To, class From>
LaneVector<To> convert_lanes(const LaneVector<From>& from) {
  return __builtin_convertvector(from, LaneVector<To>);
}

#else

template <class T>
struct LaneVector {
  T lane[bin_lanes];
  T& operator[](std::size_t i) { return lane[i]; }
  T operator[](std::size_t i) const { return lane[i]; }
  friend LaneVector operator+(LaneVector a, const LaneVector& b) {
    for (std::size_t i = 0; i < bin_lanes; ++i) a.lane[i] += b.lane[i];
    return a;
  }
  friend LaneVector operator-(LaneVector a, const LaneVector& b) {
    for (std::size_t i = 0; i < bin_lanes; ++i) a.lane[i] -= b.lane[i];
    return a;
  }
  friend LaneVector operator*(LaneVector a, const LaneVector& b) {
    for (std::size_t i = 0; i < bin_lanes; ++i) a.lane[i] *= b.lane[i];
    return a;
  }
  friend LaneVector operator/(LaneVector a, const LaneVector& b) {
    for (std::size_t i = 0; i < bin_lanes; ++i) a.lane[i] /= b.lane[i];
    return a;
  }
};

template <class To, class From>
LaneVector<To> convert_lanes(const LaneVector<From>& from) {
  LaneVector<To> to;
  for (std::size_t i = 0; i < bin_lanes; ++i) to[i] = static_cast<To>(from[i]);
  return to;
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
  for (std::size_t i = 0; i < bin_lanes; ++i) v[i] = value;
  return v;
#endif
}

}  // namespace morf
