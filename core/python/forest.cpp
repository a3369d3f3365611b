// Forest.
#include "forest/forest.hpp"

#include "python/glue.hpp"

namespace {

template <class Threshold>
void make_forest(Forest* self, const RowLayout& layout, const AtomList& atoms, const Vector<std::int64_t>& tree_begin,
                 const Vector<std::int32_t>& next, const Vector<Threshold>& threshold, const Leaves& leaves,
                 const Vector<std::uint8_t>& side) {
  ForestNodes nodes{to_vector(tree_begin), to_vector(next), {}, {}, to_sides(side)};
  if constexpr (std::is_floating_point_v<Threshold>) nodes.real_threshold = to_vector(threshold);
  else nodes.threshold = to_vector(threshold);
  new (self) Forest(layout, atoms, std::move(nodes), leaves);
}

using Amounts = nb::ndarray<double, nb::numpy, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

void attribute(const Forest& self, const Matrix<std::int32_t>& leaf, const Vector<std::uint32_t>& weight,
               const Vector<double>& baseline, int bits, bool mean, const Amounts& out) {
  require(weight.size() == self.nodes(), "weights need one entry per node");
  require(baseline.size() == self.outputs(), "the baseline needs one entry per output");
  require(leaf.shape(1) == self.trees() && out.shape(0) == leaf.shape(0) &&
              static_cast<std::int64_t>(out.shape(1)) == self.features() && out.shape(2) == self.outputs(),
          "wrong shape of leaves or output");
  for (std::size_t i = 0; i < leaf.size(); ++i)
    require(leaf.data()[i] >= 0 && static_cast<std::size_t>(leaf.data()[i]) < self.tree_size(i % self.trees()), "no such leaf");
  nb::gil_scoped_release release;
  self.attribute(leaf.data(), leaf.shape(0), weight.data(), baseline.data(), bits, mean, out.data());
}

}  // namespace

void bind_forest(nb::module_& m) {
  m.def(
      "depth_first_next",
      [](const Vector<std::int64_t>& tree_begin, const Vector<std::uint8_t>& split, const Vector<std::uint32_t>& leaf_kind,
         std::size_t class_count) {
        return to_numpy(depth_first_next(to_vector(tree_begin), to_vector(split), to_vector(leaf_kind), class_count));
      },
      "tree_begin"_a, "split"_a, "leaf_kind"_a, "class_count"_a, "Return the children and payloads of depth-first trees.");
  m.def(
      "node_weights",
      [](const Vector<std::int64_t>& tree_begin, const Vector<std::int32_t>& next, const Vector<std::uint32_t>& leaf_weight) {
        return to_numpy(node_weights(to_vector(tree_begin), to_vector(next), to_vector(leaf_weight)));
      },
      "tree_begin"_a, "next"_a, "leaf_weight"_a, "Return the weights of all nodes, from those of the leaves.");

  nb::class_<Forest>(m, "Forest", "The fitted forest. It checks itself whole when it is made.")
      .def("__init__", &make_forest<std::int64_t>, "layout"_a, "atoms"_a, "tree_begin"_a, "next"_a,
           nb::arg("threshold").noconvert(), "leaves"_a, "side"_a)
      .def("__init__", &make_forest<double>, "layout"_a, "atoms"_a, "tree_begin"_a, "next"_a, nb::arg("threshold").noconvert(),
           "leaves"_a, "side"_a)
      .def_prop_ro("has_silent_leaves", &Forest::has_silent_leaves, "Whether trees do not vote on some samples.")
      .def_prop_ro("takes_bytes", &Forest::takes_bytes, "Whether samples of bytes may be passed as cells of type bytes.")
      .def(
          "predict",
          [](const Forest& self, const SampleArray& x, const std::string& cell_type, int shift, double limit, int extra_bits,
             bool gaps, bool mean, const OutMatrix<double>& out) {
            require_features(x, self.features());
            require_shape(out, x.shape(0), self.outputs(), "wrong output shape");
            const CellType type = parse_cell_type(cell_type);
            const Samples samples = to_samples(x, gaps);
            nb::gil_scoped_release release;
            self.predict(samples, type, Quantiser(shift, limit), extra_bits, out.data(), mean);
          },
          "x"_a, "cell_type"_a, "shift"_a, "limit"_a, "extra_bits"_a, "gaps"_a, "mean"_a, nb::arg("out").noconvert(),
          "Add the sums or means of the trees' predictions to `out`.")
      .def(
          "apply",
          [](const Forest& self, const SampleArray& x, const std::string& cell_type, int shift, double limit, int extra_bits,
             bool gaps, const OutMatrix<std::int32_t>& out) {
            require_features(x, self.features());
            require_shape(out, x.shape(0), self.trees(), "wrong output shape");
            const CellType type = parse_cell_type(cell_type);
            const Samples samples = to_samples(x, gaps);
            nb::gil_scoped_release release;
            self.apply(samples, type, Quantiser(shift, limit), extra_bits, out.data());
          },
          "x"_a, "cell_type"_a, "shift"_a, "limit"_a, "extra_bits"_a, "gaps"_a, nb::arg("out").noconvert(),
          "Write the leaf of each sample in each tree.")
      .def(
          "find_leaves",
          [](const Forest& self, std::size_t tree, const Table& table) {
            require(tree < self.trees(), "no such tree");
            std::vector<std::int32_t> leaf(table.rows());
            {
              nb::gil_scoped_release release;
              self.find_leaves(tree, table, leaf.data());
            }
            return to_numpy(std::move(leaf));
          },
          "tree"_a, "table"_a, "Return the leaf of each row of a table, within the tree.")
      .def(
          "add_tree",
          [](const Forest& self, std::size_t tree, const Table& table, const Vector<std::uint32_t>& rows,
             const OutMatrix<double>& out, const OutVector<std::uint32_t>& votes) {
            require(tree < self.trees(), "no such tree");
            require_shape(out, table.rows(), self.outputs(), "wrong output shape");
            require(votes.size() == table.rows(), "votes need one entry per row");
            for (std::size_t i = 0; i < rows.size(); ++i) require(rows.data()[i] < table.rows(), "no such row");
            nb::gil_scoped_release release;
            self.add_tree(tree, table, rows.data(), rows.size(), out.data(), votes.data());
          },
          "tree"_a, "table"_a, "rows"_a, nb::arg("out").noconvert(), nb::arg("votes").noconvert(),
          "Add a tree's predictions for some rows of a table, and count its votes.")
      .def(
          "add_trees",
          [](const Forest& self, const Table& table, std::size_t first, const OutMatrix<double>& out) {
            require(first <= table.rows() && out.shape(0) <= table.rows() - first, "no such rows");
            require(out.shape(1) == self.outputs(), "wrong output shape");
            nb::gil_scoped_release release;
            self.add_trees(table, first, out.shape(0), out.data());
          },
          "table"_a, "first"_a, nb::arg("out").noconvert(),
          "Add the trees one after another for rows of a table from `first` on.")
      .def(
          "importances",
          [](const Forest& self, const Vector<double>& amount) {
            require(amount.size() == self.nodes(), "amounts need one entry per node");
            std::vector<double> shared(static_cast<std::size_t>(self.features())), used(shared.size());
            {
              nb::gil_scoped_release release;
              self.add_importances(amount.data(), shared.data(), used.data());
            }
            return std::pair(to_numpy(std::move(shared)), to_numpy(std::move(used)));
          },
          "amount"_a, "Return each node's amount, shared out among its atom's features, and how many atoms use each feature.")
      .def(
          "expect_roots",
          [](const Forest& self, const Vector<std::uint32_t>& weight, bool mean) {
            require(weight.size() == self.nodes(), "weights need one entry per node");
            Forest::Expectation found;
            {
              nb::gil_scoped_release release;
              found = self.expect_roots(weight.data(), mean);
            }
            return std::pair(to_numpy(std::move(found.baseline)), found.largest);
          },
          "weight"_a, "mean"_a, "Return what the roots expect, and the largest sum of changes on a path.")
      .def("attribute", &attribute, "leaf"_a, "weight"_a, "baseline"_a, "bits"_a, "mean"_a, nb::arg("out").noconvert(),
           "Write what each feature contributes to each output.");
}
