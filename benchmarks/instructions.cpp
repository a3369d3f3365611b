// Grows trees on generated data, for instructions.py to count what that executes.
//
//     instructions WORK
//
// The data depend on nothing but this file, so a count changes only with the core and the compiler.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <vector>

#include "growth/grow.hpp"
#include "projection/byte_patches.hpp"
#include "projection/with_projection.hpp"

using namespace morf;

namespace {

struct Work {
  Dictionary dictionary;
  std::vector<float> x;
  CellType type;
  int shift;  // cells are round(x * 2^shift)
  GrowthRule rule;
  std::vector<std::uint32_t> classes;
  std::size_t class_count = 0;
  std::vector<std::int64_t> values{};
  int bits = 0;
  std::uint64_t trees = 4;

  std::size_t rows() const { return x.size() / static_cast<std::size_t>(dictionary.features()); }
};

double uniform(Stream& stream) { return static_cast<double>(stream.next() >> 11) * 0x1.0p-53; }

// Images of bytes with a bright blob; the class is the row of the image in which it lies, with some noise.
Work byte_patches() {
  constexpr int side = 28, rows = 2000;
  Work work{Dictionary({side, side}, false),
            std::vector<float>(rows * side * side),
            MORFOREST_BYTE_PATCHES ? CellType::bytes : CellType::u16,
            0,
            {.candidates = 28},
            {},
            10};
  work.dictionary.add_patch({{2, 2}, {2, 5}}, {Boundary::zero, Boundary::zero}, {true, true});
  Stream stream(1);
  for (int row = 0; row < rows; ++row) {
    const int top = static_cast<int>(stream.below(20)), left = static_cast<int>(stream.below(20));
    float* image = &work.x[static_cast<std::size_t>(row * side * side)];
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < 8; ++j) image[(top + i) * side + left + j] = static_cast<float>(stream.below(256));
    work.classes.push_back(static_cast<std::uint32_t>((top + static_cast<int>(stream.below(3))) % 20 / 2));
  }
  return work;
}

// A table of floats; the class is the side of an oblique plane, with some noise.
Work float_sporf() {
  constexpr int features = 50, rows = 4000;
  Work work{Dictionary({features}, false), std::vector<float>(rows * features), CellType::i32, 20, {.candidates = 7}, {}, 2};
  const auto fraction = [](double p) { return static_cast<std::uint64_t>(p * 0x1.0p64); };
  work.dictionary.add_sparse({fraction(0.313), fraction(0.626), fraction(0.835), fraction(0.939), ~std::uint64_t{0}});
  Stream stream(2);
  for (auto& x : work.x) x = static_cast<float>(uniform(stream));
  for (int row = 0; row < rows; ++row) {
    const float* x = &work.x[static_cast<std::size_t>(row * features)];
    work.classes.push_back(x[0] + x[1] - x[2] + 0.2 * uniform(stream) > 0.6);
  }
  return work;
}

// A table of floats; the target is a smooth function of three features, with some noise.
Work regression() {
  constexpr int features = 50, rows = 4000;
  Work work{Dictionary({features}, false),
            std::vector<float>(rows * features),
            CellType::i32,
            20,
            {.criterion = CriterionKind::squared_error, .candidates = 17},
            {}};
  work.dictionary.add_axis();
  work.bits = 40;
  Stream stream(3);
  for (auto& x : work.x) x = static_cast<float>(uniform(stream));
  for (int row = 0; row < rows; ++row) {
    const float* x = &work.x[static_cast<std::size_t>(row * features)];
    work.values.push_back(std::llrint((x[0] * x[1] + x[2] + 0.2 * uniform(stream)) * 0x1.0p40));
  }
  return work;
}

}  // namespace

// Callgrind counts inside this function alone, so its name must survive the compiler.
extern "C" __attribute__((noinline)) std::size_t measured(const Work& work, const Bag& bag) {
  const auto features = static_cast<std::size_t>(work.dictionary.features());
  const Table table({work.x.data(), work.rows(), features}, work.dictionary.layout(), work.type, Quantiser(work.shift, 0x1.0p61));
  Targets targets{.bits = work.bits};
  if (work.class_count > 0) targets.classes = work.classes, targets.class_count = work.class_count;
  else targets.values = work.values;
  std::size_t nodes = 0;
  for (std::uint64_t tree = 0; tree < work.trees; ++tree)
    with_projection(table, work.dictionary, [&]<class Value>(Projection<Value>& projection) {
      Trees grown;
      grow_tree(projection, work.dictionary, tree + 1, bag, targets, work.rule, [](std::size_t) {}, grown);
      nodes += grown.next.size();
    });
  return nodes;
}

int main(int argc, char** argv) {
  const std::string_view name = argc == 2 ? argv[1] : "";
  if (name != "byte-patches" && name != "float-sporf" && name != "regression") {
    std::fprintf(stderr, "usage: instructions byte-patches|float-sporf|regression\n");
    return 2;
  }
  const Work work = name == "byte-patches" ? byte_patches() : name == "float-sporf" ? float_sporf() : regression();
  std::vector<std::uint32_t> count(work.rows(), 0);
  Stream stream(4);
  for (std::size_t i = 0; i < count.size(); ++i) ++count[stream.below(count.size())];
  std::printf("%zu nodes\n", measured(work, {count.data(), count.data(), count.size()}));
}
