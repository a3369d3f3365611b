// What the bindings are made of: arrays of NumPy as those of the core and back, names, and the watch for Ctrl-C.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "atoms/atom_list.hpp"
#include "data/table.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace morf;

// Arrays that the core reads, and those that it writes.
template <class T>
using Vector = nb::ndarray<const T, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using OutMatrix = nb::ndarray<T, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using OutVector = nb::ndarray<T, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
// Samples of any type that the core takes.
using SampleArray = nb::ndarray<nb::ro, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
std::vector<T> to_vector(const Vector<T>& array) {
  return std::vector<T>(array.data(), array.data() + array.size());
}

// Hands a vector's memory to NumPy without a copy.
template <class T>
auto to_numpy(std::vector<T> values) {
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {owned->size()}, owner);
}

// The same as rows of `columns` numbers.
template <class T>
auto to_numpy(std::vector<T> values, std::size_t columns) {
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<2>>(owned->data(), {columns == 0 ? 0 : owned->size() / columns, columns}, owner);
}

// Numbers of some type, which follows from them.
using AnyVector = nb::ndarray<nb::numpy, nb::ndim<1>>;

// Integers in the narrowest type that holds them: all trees of a forest wait in memory for the last one.
template <class T>
AnyVector to_narrow_numpy(const std::vector<T>& values) {
  const auto to = [&]<class Narrow>(Narrow) { return AnyVector(to_numpy(std::vector<Narrow>(values.begin(), values.end()))); };
  if (values.empty()) return to(T{});
  if constexpr (std::is_floating_point_v<T>)
    for (const T v : values)
      if (v != std::floor(v) || std::abs(v) >= 128) return to(T{});
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const auto fits = [&]<class Narrow>(Narrow) {
    if constexpr (std::is_floating_point_v<T>)
      return *low >= std::numeric_limits<Narrow>::min() && *high <= std::numeric_limits<Narrow>::max();
    else return std::in_range<Narrow>(*low) && std::in_range<Narrow>(*high);
  };
  if (fits(std::uint8_t{})) return to(std::uint8_t{});
  if (fits(std::int8_t{})) return to(std::int8_t{});
  if (fits(std::uint16_t{})) return to(std::uint16_t{});
  if (fits(std::int16_t{})) return to(std::int16_t{});
  if (fits(std::uint32_t{})) return to(std::uint32_t{});
  if (fits(std::int32_t{})) return to(std::int32_t{});
  return to(T{});
}

template <class Enum>
using Names = std::vector<std::pair<const char*, Enum>>;

template <class Enum>
Enum parse(const std::string& name, const Names<Enum>& names) {
  for (const auto& [known, value] : names)
    if (name == known) return value;
  throw std::invalid_argument("unknown name: " + name);
}

template <class Enum>
std::string name_of(Enum value, const Names<Enum>& names) {
  for (const auto& [known, named] : names)
    if (named == value) return known;
  throw std::invalid_argument("a value without a name");
}

inline CellType parse_cell_type(const std::string& name) {
  return parse<CellType>(name, {{"uint8", CellType::u8},
                                {"uint16", CellType::u16},
                                {"int16", CellType::i16},
                                {"int32", CellType::i32},
                                {"int64", CellType::i64},
                                {"float64", CellType::f64},
                                {"bytes", CellType::bytes}});
}

inline Samples to_samples(const SampleArray& x, bool gaps = false) {
  const nb::dlpack::dtype t = x.dtype();
  const std::size_t rows = x.shape(0), features = x.shape(1);
  if (t == nb::dtype<std::uint8_t>()) return {static_cast<const std::uint8_t*>(x.data()), rows, features, gaps};
  if (t == nb::dtype<std::int64_t>()) return {static_cast<const std::int64_t*>(x.data()), rows, features, gaps};
  if (t == nb::dtype<float>()) return {static_cast<const float*>(x.data()), rows, features, gaps};
  if (t == nb::dtype<double>()) return {static_cast<const double*>(x.data()), rows, features, gaps};
  throw std::invalid_argument("samples must be uint8, int64, float32 or float64");
}

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

// Where splits send missing values.
inline std::vector<Side> to_sides(const Vector<std::uint8_t>& array) {
  std::vector<Side> sides;
  for (std::size_t i = 0; i < array.size(); ++i) {
    require(array.data()[i] <= last_side, "damaged forest: sides of missing values");
    sides.push_back(static_cast<Side>(array.data()[i]));
  }
  return sides;
}

template <class Array>
void require_shape(const Array& array, std::size_t rows, std::size_t columns, const char* message) {
  require(array.shape(0) == rows && array.shape(1) == columns, message);
}

inline void require_features(const SampleArray& x, std::int64_t features) {
  require(static_cast<std::int64_t>(x.shape(1)) == features, "wrong number of features");
}

// Asks other threads to give up.
struct StopFlag {
  std::atomic<bool> set{false};
};

struct Stopped : std::runtime_error {
  Stopped() : std::runtime_error("work was stopped") {}
};

// Looks for Ctrl-C some twenty times per second: the interpreter cannot while the core holds the main thread. Small nodes do
// not each look at the clock.
class Watch {
 public:
  explicit Watch(const StopFlag& flag) : flag_(flag), next_(Clock::now() + interval) {}
  void operator()(std::size_t rows) {
    if (flag_.set.load(std::memory_order_relaxed)) throw Stopped();
    if ((rows_ += rows + 1) < enough_rows) return;
    rows_ = 0;
    const auto now = Clock::now();
    if (now < next_) return;
    next_ = now + interval;
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds interval{50};
  static constexpr std::size_t enough_rows = 1024;
  const StopFlag& flag_;
  std::size_t rows_ = 0;
  Clock::time_point next_;
};

// One function per source file, which adds its nouns to the module.
void bind_atoms(nb::module_& m);
void bind_bags(nb::module_& m);
void bind_dictionary(nb::module_& m);
void bind_forest(nb::module_& m);
void bind_functions(nb::module_& m);
void bind_layout(nb::module_& m);
void bind_leaf_samples(nb::module_& m);
void bind_table(nb::module_& m);
void bind_training(nb::module_& m);
void bind_trees(nb::module_& m);
