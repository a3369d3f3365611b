// What the leaves of trees say. Criteria write it, and forests read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace morf {

// A leaf has a *payload*. With classes, a payload below their number says that the leaf holds that class alone, and
// class_count + i points to distribution i. Otherwise payload i points to the i-th vector of `width` numbers in `value`.
struct Leaves {
  std::size_t class_count = 0;  // 0: leaves hold values
  std::vector<std::uint32_t> distribution_size{};  // how many classes each distribution has
  std::vector<std::uint32_t> distribution_class{}, distribution_weight{};
  std::vector<double> value{};
  std::size_t width = 1;

  std::size_t outputs() const { return class_count > 0 ? class_count : width; }
  std::size_t payloads() const { return class_count > 0 ? class_count + distribution_size.size() : value.size() / width; }
};

}  // namespace morf
