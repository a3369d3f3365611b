// What trees are to predict.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "splitting/gradients.hpp"

namespace morf {

// Classes, values or gradients, with an entry per row of the table.
struct Targets {
  std::vector<std::uint32_t> classes{};
  std::size_t class_count = 0;         // 0: there are no classes
  std::vector<std::int64_t> values{};  // in fixed point: round(y * 2^bits)
  int bits = 0;
  const Gradients* gradients = nullptr;  // of boosting; they must outlive the targets
  LeafRule leaf{};                       // of boosting

  std::size_t rows() const { return gradients != nullptr ? gradients->rows() : class_count > 0 ? classes.size() : values.size(); }
};

}  // namespace morf
