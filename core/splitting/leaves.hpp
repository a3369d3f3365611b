// What the leaves of trees say. Criteria write it, and forests read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace morf {

// A leaf has a *payload*. With classes, a payload below their number says that the leaf holds that class alone, and
// class_count + i points to distribution i. Otherwise payload i points to the i-th vector of `width` numbers in `value`. An empty
// distribution, or NaN, says nothing.
struct Leaves {
  std::size_t class_count = 0;  // 0: leaves hold values
  std::vector<std::uint32_t> distribution_size{};  // how many classes each distribution has
  std::vector<std::uint32_t> distribution_class{}, distribution_weight{};
  std::vector<double> value{};
  std::size_t width = 1;

  // A payload that says nothing: its tree does not vote.
  bool silent(std::size_t payload) const {
    if (class_count == 0) return value[payload * width] != value[payload * width];
    return payload >= class_count && distribution_size[payload - class_count] == 0;
  }
  std::size_t append_silent() {
    if (class_count > 0) distribution_size.push_back(0);
    else value.insert(value.end(), width, std::numeric_limits<double>::quiet_NaN());
    return payloads() - 1;
  }
  std::size_t append_uniform() {
    if (class_count == 1) return 0;
    distribution_size.push_back(static_cast<std::uint32_t>(class_count));
    for (std::uint32_t label = 0; label < class_count; ++label) distribution_class.push_back(label);
    distribution_weight.insert(distribution_weight.end(), class_count, 1);
    return payloads() - 1;
  }

  std::size_t outputs() const { return class_count > 0 ? class_count : width; }
  std::size_t payloads() const { return class_count > 0 ? class_count + distribution_size.size() : value.size() / width; }
};

}  // namespace morf
