// Trees, and growing them.
#include "growth/trees.hpp"

#include <functional>
#include <numeric>

#include "base/random.hpp"
#include "growth/grow.hpp"
#include "growth/subset.hpp"
#include "python/glue.hpp"

namespace {

std::vector<std::uint64_t> root_keys(const Vector<std::uint64_t>& tree_keys) {
  std::vector<std::uint64_t> keys;
  for (std::size_t i = 0; i < tree_keys.size(); ++i) keys.push_back(derive(tree_keys.data()[i], Purpose::root));
  return keys;
}

template <class Threshold>
auto find_leaves(const Subset& self, const Vector<std::int32_t>& next, const Vector<Threshold>& threshold,
                 const Vector<std::uint32_t>& picked, const Vector<std::uint8_t>& side) {
  require(self.filled(), "the subset has no values yet");
  require(threshold.size() == next.size(), "thresholds need one entry per node");
  require(side.size() == 0 || side.size() == next.size(), "sides need one entry per node");
  const std::vector<Side> sides = to_sides(side);
  std::vector<std::int32_t> leaf(self.rows());
  {
    nb::gil_scoped_release release;
    self.find_leaves(next.data(), threshold.data(), sides.empty() ? nullptr : sides.data(), next.size(), picked.data(),
                     picked.size(), leaf.data());
  }
  return to_numpy(std::move(leaf));
}

}  // namespace

void bind_trees(nb::module_& m) {
  nb::class_<Leaves>(m, "Leaves", "What leaves say: distributions over classes, or values.")
      .def_static(
          "of_classes",
          [](std::size_t class_count, const Vector<std::uint32_t>& distribution_size,
             const Vector<std::uint32_t>& distribution_class, const Vector<std::uint32_t>& distribution_weight,
             const std::vector<std::uint32_t>& classes_of) {
            require(class_count > 0, "damaged forest: there are no classes");
            return Leaves{.class_count = class_count,
                          .classes_of = classes_of,
                          .distribution_size = to_vector(distribution_size),
                          .distribution_class = to_vector(distribution_class),
                          .distribution_weight = to_vector(distribution_weight)};
          },
          "class_count"_a, "distribution_size"_a, "distribution_class"_a, "distribution_weight"_a,
          "classes_of"_a = std::vector<std::uint32_t>{}, "Classes of several outputs stand one output after the other.")
      .def_static(
          "of_values",
          [](const Vector<double>& value, std::size_t width) { return Leaves{.value = to_vector(value), .width = width}; },
          "value"_a, "width"_a, "`width` numbers for each leaf, one leaf after the other.")
      .def_prop_ro(
          "distribution_size", [](const Leaves& self) { return to_narrow_numpy(self.distribution_size); },
          nb::rv_policy::automatic)
      .def_prop_ro(
          "distribution_class", [](const Leaves& self) { return to_narrow_numpy(self.distribution_class); },
          nb::rv_policy::automatic)
      .def_prop_ro(
          "distribution_weight", [](const Leaves& self) { return to_narrow_numpy(self.distribution_weight); },
          nb::rv_policy::automatic)
      .def_prop_ro(
          "value", [](const Leaves& self) { return to_numpy(std::vector<double>(self.value)); }, nb::rv_policy::automatic);

  nb::class_<Trees>(m, "Trees",
                    "The nodes of trees, one tree after the other. Arrays are read in the narrowest type that holds them.")
      .def_prop_ro(
          "tree_size", [](const Trees& self) { return to_numpy(std::vector<std::uint32_t>(self.tree_size)); },
          nb::rv_policy::automatic)
      .def_prop_ro(
          "next", [](const Trees& self) { return to_narrow_numpy(self.next); }, nb::rv_policy::automatic)
      .def_prop_ro(
          "threshold",
          [](const Trees& self) {
            return self.real_threshold.empty() ? to_narrow_numpy(self.threshold) : to_narrow_numpy(self.real_threshold);
          },
          nb::rv_policy::automatic)
      .def_prop_ro(
          "weight", [](const Trees& self) { return to_narrow_numpy(self.weight); }, nb::rv_policy::automatic)
      .def_prop_ro(
          "gain", [](const Trees& self) { return to_numpy(std::vector<float>(self.gain)); }, nb::rv_policy::automatic)
      .def_prop_ro(
          "side",
          [](const Trees& self) {
            std::vector<std::uint8_t> side;
            for (const Side s : self.side) side.push_back(static_cast<std::uint8_t>(s));
            return to_numpy(std::move(side));
          },
          nb::rv_policy::automatic, "Where each split sends missing values; empty if none are missing.")
      .def_ro("atoms", &Trees::atoms, "One atom per node; those of leaves have no terms.")
      .def_ro("leaves", &Trees::leaves)
      .def_prop_ro(
          "picked", [](const Trees& self) { return to_numpy(std::vector<std::uint32_t>(self.picked)); }, nb::rv_policy::automatic,
          "The atom of its subset that each split has; empty for other trees.");

  nb::class_<Subset>(m, "Subset", "A few atoms of a dictionary, drawn for many nodes, and their values for the rows of a table.")
      .def(
          "__init__",
          [](Subset* self, const Table& table, const Dictionary& dictionary) {
            require(table.suits(dictionary.layout()), "the table was made for another dictionary");
            require(dictionary.subset() > 0, "the dictionary has no subsets");
            new (self) Subset(table, dictionary);
          },
          "table"_a, "dictionary"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
      .def(
          "draw",
          [](Subset& self, std::uint64_t key, const Vector<std::uint32_t>& count, const Vector<std::uint32_t>& order) {
            const std::size_t rows = self.rows();
            require(count.size() == rows && order.size() == rows, "counts and order need one entry per row");
            for (std::size_t i = 0; i < rows; ++i) require(order.data()[i] < rows, "no such row");
            check_bag({count.data(), count.data(), rows});
            self.draw(key, count.data(), order.data());
            return self.atoms().size();
          },
          "key"_a, "count"_a, "order"_a, "Draw atoms, whose values must then be computed, and return their number.")
      .def(
          "fill",
          [](Subset& self, std::size_t first, std::size_t count) {
            require(first <= self.atoms().size() && count <= self.atoms().size() - first, "no such atoms");
            nb::gil_scoped_release release;
            std::vector<std::uint32_t> rows(self.rows());
            std::iota(rows.begin(), rows.end(), 0u);
            self.fill(first, count, rows.data(), rows.size(), [](std::size_t) {});
          },
          "first"_a, "count"_a, "Compute some atoms for all rows. Threads may fill different atoms.")
      .def("find_leaves", &find_leaves<std::int64_t>, "next"_a, nb::arg("threshold").noconvert(), "picked"_a, "side"_a)
      .def("find_leaves", &find_leaves<double>, "next"_a, nb::arg("threshold").noconvert(), "picked"_a, "side"_a,
           "Return the leaf of each row in a tree, whose splits have each picked an atom.");

  m.def(
      "grow_trees",
      [](const Table& table, const Dictionary& dictionary, const Vector<std::uint64_t>& tree_keys, const Bags& bags,
         const Bags* leaf_bags, const Targets& targets, const GrowthRule& rule, const StopFlag& stop) {
        const std::vector<std::uint64_t> keys = root_keys(tree_keys);
        nb::gil_scoped_release release;
        Trees grown;
        Watch watch(stop);
        grow_trees(table, dictionary, keys, bags, leaf_bags, targets, rule, std::ref(watch), grown);
        return grown;
      },
      "table"_a, "dictionary"_a, "tree_keys"_a, "bags"_a, nb::arg("leaf_bags").none(), "targets"_a, "rule"_a, "stop"_a,
      "Grow one tree for each key and bag; honest ones have bags of their own for their leaves. Children count within a tree, "
      "payloads of leaves within the call.");
  m.def(
      "grow_on_subset",
      [](const Subset& subset, const Vector<std::uint64_t>& tree_keys, const Bags& bags, const Targets& targets,
         const GrowthRule& rule, const StopFlag& stop) {
        const std::vector<std::uint64_t> keys = root_keys(tree_keys);
        nb::gil_scoped_release release;
        Trees grown;
        Watch watch(stop);
        grow_on_subset(subset, keys, bags, targets, rule, std::ref(watch), grown);
        return grown;
      },
      "subset"_a, "tree_keys"_a, "bags"_a, "targets"_a, "rule"_a, "stop"_a,
      "The same where nodes choose among the atoms of a subset.");
}
