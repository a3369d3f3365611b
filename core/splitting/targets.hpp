// What trees are to predict.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "splitting/gradients.hpp"

namespace morf {

// Classes, values or gradients, with an entry per row of the table. Several outputs stand behind one another, each with an entry
// per row: what they have of their own is in the vectors `classes_of` and `bits_of`, which are empty for one output.
struct Targets {
  std::vector<std::uint32_t> classes{};
  std::size_t class_count = 0;  // of all outputs; 0: there are no classes
  std::vector<std::uint32_t> classes_of{};  // the number of classes of each output
  std::vector<std::int64_t> values{};  // in fixed point: round(y * 2^bits)
  int bits = 0;
  std::vector<int> bits_of{};
  const Gradients* gradients = nullptr;  // of boosting; they must outlive the targets
  LeafRule leaf{};                       // of boosting

  std::size_t outputs() const {
    return class_count > 0 ? std::max<std::size_t>(classes_of.size(), 1) : std::max<std::size_t>(bits_of.size(), 1);
  }
  std::size_t rows() const {
    return gradients != nullptr ? gradients->rows() : (class_count > 0 ? classes.size() : values.size()) / outputs();
  }
};

}  // namespace morf
