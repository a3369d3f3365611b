// What the leaves of trees say. Criteria write it, and forests read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace morf {

// A leaf has a *payload*. With classes, a payload below their number says that the leaf holds that class alone, and
// class_count + i points to distribution i. Otherwise payload i points to the i-th vector of `width` numbers in `value`. An empty
// distribution, or NaN, says nothing. The classes of several outputs are numbered one output after the other; then all leaves have
// distributions, in which the classes of each output weigh the same together.
struct Leaves {
  std::size_t class_count = 0;  // 0: leaves hold values
  std::vector<std::uint32_t> classes_of{};  // the number of classes of each output; empty: there is one output
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
    if (classes_of.empty()) distribution_weight.insert(distribution_weight.end(), class_count, 1);
    std::uint64_t common = 1;  // a multiple of each number of classes
    for (const std::uint32_t classes : classes_of)
      if (common <= std::numeric_limits<std::uint32_t>::max()) common = std::lcm(common, std::uint64_t{classes});
    if (common > std::numeric_limits<std::uint32_t>::max())
      throw std::invalid_argument("the outputs have too many different numbers of classes for uniform leaves");
    for (const std::uint32_t classes : classes_of)
      distribution_weight.insert(distribution_weight.end(), classes, static_cast<std::uint32_t>(common / classes));
    return payloads() - 1;
  }

  // Whether each distribution has entries of its output's classes of the same total weight, and none is left out.
  bool outputs_agree() const {
    if (classes_of.empty()) return true;
    std::vector<std::size_t> output_of;
    for (std::size_t output = 0; output < classes_of.size(); ++output)
      output_of.insert(output_of.end(), classes_of[output], output);
    if (output_of.size() != class_count) return false;
    std::vector<std::uint64_t> total;
    std::size_t entry = 0;
    for (const std::uint32_t size : distribution_size) {
      total.assign(classes_of.size(), 0);
      for (const std::size_t end = entry + size; entry < end; ++entry)
        total[output_of[distribution_class[entry]]] += distribution_weight[entry];
      for (const std::uint64_t weight : total)
        if (weight != total[0]) return false;
    }
    return true;
  }

  // How many sums over classes a distribution makes.
  std::size_t sums() const { return classes_of.empty() ? 1 : classes_of.size(); }
  std::size_t outputs() const { return class_count > 0 ? class_count : width; }
  std::size_t payloads() const { return class_count > 0 ? class_count + distribution_size.size() : value.size() / width; }
};

}  // namespace morf
