// Short vectors, with one candidate per lane. Plain loops over eight lanes would do, but compilers unroll such loops and then
// vectorise the wrong way round; the vector types of GCC and Clang say what is meant, on any instruction set.
#pragma once

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

}  // namespace morf
