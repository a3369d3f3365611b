// What the glue of bindings.cpp is made of: arrays of NumPy as those of the core and back, names, and the watch for Ctrl-C.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bytes.hpp"
#include "dictionary.hpp"
#include "features.hpp"
#include "forest.hpp"
#include "grow.hpp"
#include "loss.hpp"
#include "random.hpp"
#include "sampler.hpp"
#include "subset.hpp"
#include "table.hpp"
#include "warp.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace morf;

namespace {

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Samples = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using MutableMatrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

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

template <class Enum>
Enum parse(const std::string& name, const std::vector<std::pair<const char*, Enum>>& names) {
  for (const auto& [known, value] : names)
    if (name == known) return value;
  throw std::invalid_argument("unknown name: " + name);
}

CellType parse_cell_type(const std::string& name) {
  return parse<CellType>(name, {{"uint8", CellType::u8}, {"uint16", CellType::u16}, {"int16", CellType::i16},
                                {"int32", CellType::i32}, {"int64", CellType::i64}, {"float64", CellType::f64},
                                {"bytes", CellType::bytes}});
}

// Calls `use` with a typed pointer to the samples.
template <class Use>
void with_samples(const Samples& x, Use use) {
  const nb::dlpack::dtype t = x.dtype();
  if (t == nb::dtype<std::uint8_t>()) use(static_cast<const std::uint8_t*>(x.data()));
  else if (t == nb::dtype<std::int64_t>()) use(static_cast<const std::int64_t*>(x.data()));
  else if (t == nb::dtype<float>()) use(static_cast<const float*>(x.data()));
  else if (t == nb::dtype<double>()) use(static_cast<const double*>(x.data()));
  else throw std::invalid_argument("samples must be uint8, int64, float32 or float64");
}

template <class Array>
void require_scores(const Array& scores, std::size_t rows, std::size_t outputs) {
  if (scores.shape(0) != rows || scores.shape(1) != outputs) throw std::invalid_argument("scores have another shape");
}

void require_features(const Samples& x, std::int64_t features) {
  if (static_cast<std::int64_t>(x.shape(1)) != features) throw std::invalid_argument("wrong number of features");
}

void require_rows(const Vector<std::uint32_t>& numbers, std::size_t rows) {
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (numbers.data()[i] >= rows) throw std::invalid_argument("no such row");
}

struct StopFlag {
  std::atomic<bool> set{false};
};

struct Stopped : std::runtime_error {
  Stopped() : std::runtime_error("growth was stopped") {}
};

// Looks for Ctrl-C some twenty times a second: the interpreter cannot while the core holds the main thread. Small nodes do
// not look at the clock each.
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

// Integers in the narrowest type that holds them: all trees of a forest wait in memory for the last one.
template <class T>
nb::object to_narrow_numpy(std::vector<T> values) {
  const auto as_given = [&] { return nb::cast(to_numpy(std::move(values))); };
  if (values.empty()) return as_given();
  if constexpr (std::is_floating_point_v<T>)
    for (const T v : values)
      if (v != std::floor(v) || std::abs(v) >= 128) return as_given();
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const auto to = [&]<class Narrow>(Narrow) { return nb::cast(to_numpy(std::vector<Narrow>(values.begin(), values.end()))); };
  const auto smallest = static_cast<std::int64_t>(*low), largest = static_cast<std::int64_t>(*high);
  const auto fits = [&]<class Narrow>(Narrow) {
    return smallest >= std::numeric_limits<Narrow>::min() && largest <= std::numeric_limits<Narrow>::max();
  };
  if (fits(std::uint8_t{})) return to(std::uint8_t{});
  if (fits(std::int8_t{})) return to(std::int8_t{});
  if (fits(std::uint16_t{})) return to(std::uint16_t{});
  if (fits(std::int16_t{})) return to(std::int16_t{});
  if (fits(std::int32_t{})) return to(std::int32_t{});
  return as_given();
}

// Five numbers a source: its kind, its axes, cosine and sine.
constexpr std::size_t source_columns = 5;

Source to_source(const double* n) {
  for (std::size_t k = 0; k < 3; ++k)
    if (!(n[k] >= 0.0 && n[k] < (k == 0 ? 6.0 : 32.0) && n[k] == std::floor(n[k]))) throw std::invalid_argument("no such source");
  if (!(std::abs(n[3]) <= 1.0 && std::abs(n[4]) <= 1.0)) throw std::invalid_argument("no such source");
  return {static_cast<Source::Kind>(n[0]), static_cast<std::uint32_t>(n[1]), static_cast<std::uint32_t>(n[2]), n[3], n[4]};
}

std::vector<Source> to_sources(const Vector<double>& numbers) {
  if (numbers.size() % source_columns != 0) throw std::invalid_argument("sources have five numbers each");
  std::vector<Source> sources;
  for (std::size_t i = 0; i < numbers.size(); i += source_columns) sources.push_back(to_source(numbers.data() + i));
  return sources;
}

std::vector<double> to_numbers(const std::vector<Source>& sources) {
  std::vector<double> numbers;
  for (const Source& s : sources)
    for (const double n : {static_cast<double>(s.kind), static_cast<double>(s.axis), static_cast<double>(s.other_axis), s.cosine, s.sine})
      numbers.push_back(n);
  return numbers;
}

// Seven numbers a view: its masks of axes, and those of its source.
std::vector<PooledView> to_pooled_views(const Vector<double>& numbers) {
  constexpr std::size_t columns = 7;
  if (numbers.size() % columns != 0) throw std::invalid_argument("pooled views have seven numbers each");
  std::vector<PooledView> views;
  for (std::size_t i = 0; i < numbers.size(); i += columns) {
    const double* n = numbers.data() + i;
    for (std::size_t k = 0; k < 2; ++k)
      if (!(n[k] >= 0.0 && n[k] < 4294967296.0 && n[k] == std::floor(n[k]))) throw std::invalid_argument("no such view");
    views.push_back({static_cast<std::uint32_t>(n[0]), static_cast<std::uint32_t>(n[1]), to_source(n + 2)});
  }
  return views;
}

std::vector<double> to_numbers(const std::vector<PooledView>& views) {
  std::vector<double> numbers;
  for (const PooledView& view : views) {
    numbers.insert(numbers.end(), {static_cast<double>(view.prefixed), static_cast<double>(view.circular)});
    const std::vector<double> source = to_numbers(std::vector<Source>{view.source});
    numbers.insert(numbers.end(), source.begin(), source.end());
  }
  return numbers;
}

Op parse_op(const std::string& name) {
  return parse<Op>(name, {{"max", Op::max}, {"min", Op::min}, {"mean", Op::mean}, {"ppv", Op::ppv}, {"win", Op::win}, {"lose", Op::lose}});
}

nb::dict to_dict(Trees trees) {
  nb::dict d;
  d["tree_size"] = to_numpy(std::move(trees.tree_size));
  d["next"] = to_narrow_numpy(std::move(trees.next));
  if (trees.real_threshold.empty()) d["threshold"] = to_narrow_numpy(std::move(trees.threshold));
  else d["threshold"] = to_narrow_numpy(std::move(trees.real_threshold));
  d["weight"] = to_narrow_numpy(std::move(trees.weight));
  d["gain"] = to_numpy(std::vector<float>(trees.gain));  // a copy has no room to spare
  d["term_count"] = to_narrow_numpy(std::move(trees.term_count));
  d["term_cell"] = to_narrow_numpy(std::move(trees.term_cell));
  d["term_weight"] = to_narrow_numpy(std::move(trees.term_weight));
  d["form_op"] = to_numpy(std::move(trees.form_op));
  d["form_bias"] = to_narrow_numpy(std::move(trees.form_bias));
  d["form_window"] = to_narrow_numpy(std::move(trees.form_window));
  d["distribution_size"] = to_narrow_numpy(std::move(trees.distribution_size));
  d["distribution_class"] = to_narrow_numpy(std::move(trees.distribution_class));
  d["distribution_weight"] = to_narrow_numpy(std::move(trees.distribution_weight));
  d["leaf_value"] = to_numpy(std::vector<double>(trees.leaf_value));
  return d;
}

void check_bag(const Bag& bag, const std::uint32_t* classes, std::size_t class_count) {
  std::uint64_t total_count = 0, total_weight = 0;
  for (std::size_t i = 0; i < bag.rows; ++i) {
    if (bag.count[i] == 0) continue;
    total_count += bag.count[i];
    total_weight += bag.weight[i];
    if (bag.weight[i] == 0) throw std::invalid_argument("a drawn row has no weight");
    if (classes != nullptr && classes[i] >= class_count) throw std::invalid_argument("class out of range");
  }
  if (total_count == 0) throw std::invalid_argument("the bag is empty");
  if (total_count >> 31 || total_weight >> 31) throw std::invalid_argument("counts or weights sum to 2^31 or more");
}

std::string instruction_set() {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma")) return "avx2";
#endif
  return "baseline";
}

template <class Out>
void transform_atoms(const AtomFeatures& atoms, const Samples& x, const std::string& cell_type, int shift, double limit,
                     nb::ndarray<Out, nb::ndim<2>, nb::c_contig, nb::device::cpu> out) {
  require_features(x, atoms.features());
  if (out.shape(0) != x.shape(0) || out.shape(1) != atoms.size()) throw std::invalid_argument("wrong output shape");
  const CellType type = parse_cell_type(cell_type);
  nb::gil_scoped_release release;
  with_samples(x, [&](const auto* data) { atoms.transform(data, x.shape(0), type, Quantiser(shift, limit), out.data()); });
}

}  // namespace
