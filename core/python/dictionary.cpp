// Dictionary, and what describes its components.
#include "atoms/dictionary.hpp"

#include "atoms/sampler.hpp"
#include "projection/byte_patches.hpp"
#include "python/glue.hpp"

namespace {

const Names<Op> ops{{"max", Op::max}, {"min", Op::min},  {"mean", Op::mean}, {"proportion", Op::proportion},
                    {"win", Op::win}, {"lose", Op::lose}};
const Names<Boundary> boundaries{{"zero", Boundary::zero}, {"inside", Boundary::inside}, {"wrap", Boundary::wrap}};
const Names<Relation::Method> methods{
    {"grow", Relation::Method::grow}, {"walk", Relation::Method::walk}, {"hops", Relation::Method::hops}};
const Names<Lobes> lobe_kinds{{"two", Lobes::two}, {"three", Lobes::three}};

template <class Enum>
std::vector<Enum> parse_all(const std::vector<std::string>& names, const Names<Enum>& known) {
  std::vector<Enum> values;
  for (const std::string& name : names) values.push_back(parse(name, known));
  return values;
}

}  // namespace

void bind_dictionary(nb::module_& m) {
  using Extent = Dictionary::Extent;
  nb::class_<Extent>(m, "Extent", "Sizes of boxes along each axis.")
      .def(
          "__init__",
          [](Extent* self, std::vector<std::int64_t> min_size, std::vector<std::int64_t> max_size,
             std::vector<std::vector<std::uint64_t>> sizes) {
            new (self) Extent{std::move(min_size), std::move(max_size), std::move(sizes)};
          },
          "min_size"_a, "max_size"_a, "sizes"_a,
          "`sizes` are cumulative probabilities along each axis; empty if all are equally likely.");

  nb::class_<Kernel>(m, "Kernel", "A weighted box, whose cells may lie a dilation apart.")
      .def(
          "__init__",
          [](Kernel* self, std::vector<std::int64_t> extent, const std::vector<std::uint32_t>& cell,
             const std::vector<std::int32_t>& weight, std::vector<std::uint64_t> dilations, std::int64_t dilation) {
            require(cell.size() == weight.size(), "a kernel needs one weight per cell");
            Kernel kernel{std::move(extent), {}, std::move(dilations), dilation};
            for (std::size_t t = 0; t < cell.size(); ++t) kernel.taps.push_back({cell[t], weight[t]});
            new (self) Kernel(std::move(kernel));
          },
          "extent"_a, "cell"_a, "weight"_a, "dilations"_a, "dilation"_a,
          "`dilations` are cumulative probabilities of 1, 2, ...; empty if it is always `dilation`.");

  nb::class_<Weights>(m, "Weights", "What the features of a patch weigh.")
      .def(
          "__init__",
          [](Weights* self, const Vector<std::int32_t>& drawn, const Vector<std::uint64_t>& cumulative,
             const Vector<std::uint32_t>& arrays, const Vector<std::int32_t>& listed) {
            new (self) Weights{to_vector(drawn), to_vector(cumulative), to_vector(arrays), to_vector(listed), {}};
          },
          "drawn"_a, "cumulative"_a, "arrays"_a, "listed"_a,
          "Numbers that features draw, with their cumulative probabilities (empty if all are equally likely); or arrays, so many "
          "for each combination of sizes.");

  nb::class_<Relation>(m, "Relation", "Which indices an atom may hold together, and how sets of them are drawn.")
      .def(
          "__init__",
          [](Relation* self, const std::string& method, const Vector<std::uint64_t>& begin,
             const Vector<std::uint32_t>& neighbour, const Vector<std::uint64_t>& cumulative, std::uint64_t min_hops,
             std::uint64_t max_hops) {
            new (self) Relation(parse(method, methods), to_vector(begin), to_vector(neighbour), to_vector(cumulative), min_hops,
                                max_hops);
          },
          "method"_a, "begin"_a, "neighbour"_a, "cumulative"_a, "min_hops"_a, "max_hops"_a,
          "The neighbours of each index begin at `begin`; `cumulative` are their weights, summed up (empty if they are equal).");

  nb::class_<Dictionary>(m, "Dictionary", "A dictionary, resolved for the shape of a sample.")
      .def(nb::init<std::vector<std::int64_t>, bool, std::vector<View>>(), "shape"_a, "direct"_a, "views"_a)
      .def("set_views", &Dictionary::set_views, "numbers"_a, "Say which views the components added from now on look at.")
      .def(
          "set_pool",
          [](Dictionary& self, const std::vector<std::string>& names, std::vector<std::int64_t> windows,
             const Vector<std::uint64_t>& sizes) {
            self.set_pool({parse_all(names, ops), std::move(windows), to_vector(sizes)});
          },
          "ops"_a, "windows"_a, "sizes"_a, "Say how the atoms of components added from now on are pooled.")
      .def("add_axis", &Dictionary::add_axis)
      .def(
          "add_finite",
          [](Dictionary& self, const AtomList& atoms, const Vector<std::uint64_t>& cumulative) {
            self.add_finite(atoms, to_vector(cumulative));
          },
          "atoms"_a, "cumulative"_a)
      .def(
          "add_sparse", [](Dictionary& self, const Vector<std::uint64_t>& cumulative) { self.add_sparse(to_vector(cumulative)); },
          "cumulative"_a)
      .def(
          "guide", [](Dictionary& self, const Vector<std::uint64_t>& features) { self.guide(to_vector(features)); }, "features"_a,
          "Let sparse sums draw features with these cumulative probabilities.")
      .def(
          "add_patch",
          [](Dictionary& self, const Extent& extent, const std::vector<std::string>& boundary,
             const std::vector<bool>& contiguous, const Weights& weights,
             const std::vector<std::pair<std::size_t, Relation>>& along) {
            self.add_patch(extent, parse_all(boundary, boundaries), contiguous, weights, along);
          },
          "extent"_a, "boundary"_a, "contiguous"_a, "weights"_a, "along"_a)
      .def(
          "add_related",
          [](Dictionary& self, const Relation& relation, std::int64_t min_size, std::int64_t max_size,
             const Vector<std::uint64_t>& sizes,
             const Weights& weights) { self.add_related(relation, min_size, max_size, to_vector(sizes), weights); },
          "relation"_a, "min_size"_a, "max_size"_a, "sizes"_a, "weights"_a)
      .def(
          "add_haar",
          [](Dictionary& self, const Extent& extent, const std::vector<bool>& lobed, const std::vector<std::string>& lobes) {
            self.add_haar(extent, lobed, parse_all(lobes, lobe_kinds));
          },
          "extent"_a, "lobed"_a, "lobes"_a)
      .def("add_pair", &Dictionary::add_pair, "extent"_a, "reach"_a)
      .def("add_kernels", &Dictionary::add_kernels, "kernels"_a, "random_signs"_a, "rivals"_a)
      .def("add_variance", &Dictionary::add_variance, "extent"_a)
      .def(
          "set_cumulative",
          [](Dictionary& self, const Vector<std::uint64_t>& cumulative) { self.set_cumulative(to_vector(cumulative)); },
          "cumulative"_a, "Set the cumulative probabilities of the components.")
      .def("set_channel_axis", &Dictionary::set_channel_axis, "axis"_a, "Say that the order along an axis means nothing.")
      .def("set_subset", &Dictionary::set_subset, "atoms"_a, "Say how many atoms each tree draws for all of its nodes.")
      .def(
          "set_course",
          [](Dictionary& self, std::vector<double> mean, std::vector<double> correlation) {
            self.set_course({std::move(mean), std::move(correlation)});
          },
          "mean"_a, "correlation"_a, "Say from what missing values are filled in.")
      .def_prop_ro("layout", &Dictionary::layout, "What stands in a row for these atoms.")
      .def_prop_ro("has_operations", &Dictionary::has_operations, "Whether some atoms are not linear.")
      .def_prop_ro("narrow_patches", &suits_byte_patches, "Whether a table of type bytes serves this dictionary.")
      .def("sample", &sample_atoms, "key"_a, "count"_a, "one_node"_a = true,
           "Draw atoms as one node would, or independently of each other, without their rivals.");
}
