// The training samples in the leaves of a forest.
#include "forest/leaf_samples.hpp"

#include <variant>

#include "python/glue.hpp"

namespace {

// Holds the arrays whose memory the samples of leaves look at.
struct HeldLeafSamples {
  Vector<std::int64_t> tree_begin;
  Vector<std::uint32_t> begin;
  std::variant<Vector<std::uint32_t>, Vector<std::uint64_t>> entries;
  LeafSamples samples;
};

template <class T>
std::span<const T> to_span(const Vector<T>& array) {
  return {array.data(), array.size()};
}

template <class Entry>
void make(HeldLeafSamples* self, const Vector<std::int64_t>& tree_begin, const Vector<std::uint32_t>& begin,
          const Vector<Entry>& entries, std::size_t rows) {
  LeafSamples samples(to_span(tree_begin), to_span(begin), to_span(entries), rows);
  new (self) HeldLeafSamples{tree_begin, begin, entries, std::move(samples)};
}

const LeafSamples& checked(const HeldLeafSamples& self, const Matrix<std::int32_t>& leaf, const Vector<std::uint8_t>& silent) {
  const LeafSamples& samples = self.samples;
  require(leaf.shape(1) == samples.trees(), "leaves need one column per tree");
  require(silent.size() == 0 || silent.size() == samples.trees(), "marks of silence need one entry per tree, or none");
  const std::int32_t* of = leaf.data();
  for (std::size_t sample = 0; sample < leaf.shape(0); ++sample)
    for (std::size_t tree = 0; tree < samples.trees(); ++tree, ++of)
      require(*of >= 0 && static_cast<std::size_t>(*of) < samples.tree_size(tree), "no such leaf");
  return samples;
}

std::int64_t count(const HeldLeafSamples& self, const Matrix<std::int32_t>& leaf, const Vector<std::uint8_t>& silent) {
  const LeafSamples& samples = checked(self, leaf, silent);
  nb::gil_scoped_release release;
  return samples.count(leaf.data(), leaf.shape(0), to_span(silent));
}

auto weigh(const HeldLeafSamples& self, const Matrix<std::int32_t>& leaf, const Vector<std::uint8_t>& silent) {
  const LeafSamples& samples = checked(self, leaf, silent);
  SparseRows found;
  {
    nb::gil_scoped_release release;
    samples.weigh(leaf.data(), leaf.shape(0), to_span(silent), found);
  }
  return std::tuple(to_numpy(std::move(found.size)), to_numpy(std::move(found.column)), to_numpy(std::move(found.value)));
}

void nearest(const HeldLeafSamples& self, const Matrix<std::int32_t>& leaf, const Vector<std::uint8_t>& silent,
             const OutMatrix<std::int64_t>& row, const OutMatrix<double>& weight) {
  const LeafSamples& samples = checked(self, leaf, silent);
  require(row.shape(0) == leaf.shape(0), "wrong output shape");
  require_shape(weight, row.shape(0), row.shape(1), "wrong output shape");
  nb::gil_scoped_release release;
  samples.nearest(leaf.data(), leaf.shape(0), to_span(silent), row.shape(1), row.data(), weight.data());
}

void quantiles(const HeldLeafSamples& self, const Matrix<std::int32_t>& leaf, const Vector<std::uint8_t>& silent,
               const Vector<double>& value, const Vector<std::uint32_t>& rank, const Vector<double>& level,
               const OutMatrix<double>& out) {
  const LeafSamples& samples = checked(self, leaf, silent);
  require_shape(out, leaf.shape(0), level.size(), "wrong output shape");
  require(rank.size() == samples.rows(), "ranks need one entry per row");
  for (std::size_t i = 0; i < rank.size(); ++i) require(rank.data()[i] < value.size(), "no such target");
  for (std::size_t i = 0; i < level.size(); ++i)
    require(level.data()[i] >= (i == 0 ? 0.0 : level.data()[i - 1]) && level.data()[i] <= 1.0,
            "levels must increase from 0 to 1");
  nb::gil_scoped_release release;
  samples.quantiles(leaf.data(), leaf.shape(0), to_span(silent), {to_span(value), to_span(rank)}, to_span(level), out.data());
}

}  // namespace

void bind_leaf_samples(nb::module_& m) {
  m.def(
      "group_by_leaf",
      [](const Vector<std::int32_t>& leaf, const Vector<std::uint32_t>& row, const Vector<std::uint32_t>& weight,
         std::size_t nodes) {
        NodeLists lists = group_by_leaf(to_span(leaf), to_span(row), to_span(weight), nodes);
        return std::tuple(to_numpy(std::move(lists.begin)), to_numpy(std::move(lists.row)), to_narrow_numpy(lists.weight));
      },
      "leaf"_a, "row"_a, "weight"_a, "nodes"_a,
      "Return where the list of each node begins, and the rows and weights of the lists.");
  m.def(
      "share_leaves",
      [](const Matrix<std::int32_t>& leaf, const Matrix<std::int32_t>& other_leaf, const OutMatrix<double>& out) {
        require(leaf.shape(1) == other_leaf.shape(1) && leaf.shape(1) > 0, "leaves need one column per tree");
        require_shape(out, leaf.shape(0), other_leaf.shape(0), "wrong output shape");
        for (std::size_t i = 0; i < leaf.size(); ++i) require(leaf.data()[i] >= 0, "no such leaf");
        for (std::size_t i = 0; i < other_leaf.size(); ++i) require(other_leaf.data()[i] >= 0, "no such leaf");
        nb::gil_scoped_release release;
        share_leaves(leaf.data(), leaf.shape(0), other_leaf.data(), other_leaf.shape(0), leaf.shape(1), out.data());
      },
      "leaf"_a, "other_leaf"_a, nb::arg("out").noconvert(), "Write the share of trees in which two samples have the same leaf.");

  nb::class_<HeldLeafSamples>(m, "LeafSamples", "Training samples in the leaves of a forest. It checks itself when it is made.")
      .def("__init__", &make<std::uint32_t>, "tree_begin"_a, "begin"_a, nb::arg("entries").noconvert(), "rows"_a)
      .def("__init__", &make<std::uint64_t>, "tree_begin"_a, "begin"_a, nb::arg("entries").noconvert(), "rows"_a)
      .def("count", &count, "leaf"_a, "silent"_a, "Return the number of weights that are not zero.")
      .def("weigh", &weigh, "leaf"_a, "silent"_a,
           "Return the sizes, columns and values of the rows of a sparse matrix of weights.")
      .def("nearest", &nearest, "leaf"_a, "silent"_a, nb::arg("row").noconvert(), nb::arg("weight").noconvert(),
           "Write the rows of the largest weights, and these.")
      .def("quantiles", &quantiles, "leaf"_a, "silent"_a, "value"_a, "rank"_a, "level"_a, nb::arg("out").noconvert(),
           "Write weighted quantiles of the targets.");
}
