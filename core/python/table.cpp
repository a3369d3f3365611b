// Table.
#include "data/table.hpp"

#include "data/row_filler.hpp"
#include "python/glue.hpp"

void bind_table(nb::module_& m) {
  nb::class_<Table>(m, "Table", "Samples as rows of cells.")
      .def(
          "__init__",
          [](Table* self, std::size_t rows, const RowLayout& layout, const std::string& cell_type, bool tiles, bool gaps) {
            require(rows < (std::size_t{1} << 31), "more than 2^31 rows");
            new (self) Table(rows, layout, parse_cell_type(cell_type), tiles ? Arrangement::tiles : Arrangement::rows, gaps);
          },
          "rows"_a, "layout"_a, "cell_type"_a, "tiles"_a = false, "gaps"_a = false)
      .def(
          "fill",
          [](Table& self, const SampleArray& x, std::size_t first, int shift, double limit) {
            require_features(x, self.features());
            require(first <= self.rows() && x.shape(0) <= self.rows() - first, "no such rows");
            const Samples samples = to_samples(x, self.has_gaps());
            nb::gil_scoped_release release;
            self.fill(samples, first, Quantiser(shift, limit));
          },
          "x"_a, "first"_a, "shift"_a, "limit"_a, "Write samples to the rows from `first` on.")
      .def_prop_ro("has_gaps", &Table::has_gaps, "Whether some values may be missing.")
      .def_prop_ro("rows", &Table::rows)
      .def_prop_ro("features", &Table::features)
      .def_prop_ro(
          "hash",
          [](const Table& self) {
            return nb::ndarray<nb::numpy, const std::uint64_t, nb::ndim<1>>(self.hash().data(), {self.rows()});
          },
          nb::rv_policy::reference_internal, "A hash of each row's values; an array that keeps the table alive.");
  m.def(
      "fill_gaps",
      [](const Matrix<double>& x, const std::vector<std::int64_t>& shape, const std::vector<std::uint32_t>& ordered_axes,
         std::vector<double> mean, std::vector<double> correlation, double rest) {
        std::uint32_t ordered = 0;
        for (const std::uint32_t axis : ordered_axes) {
          require(axis < shape.size(), "no such axis");
          ordered |= 1u << axis;
        }
        const RowLayout layout(shape, {Plane{}}, ordered, {std::move(mean), std::move(correlation)});
        require(static_cast<std::int64_t>(x.shape(1)) == layout.features, "wrong number of features");
        std::vector<double> filled(x.data(), x.data() + x.size());
        {
          nb::gil_scoped_release release;
          const Samples samples(x.data(), x.shape(0), x.shape(1));
          GapFiller fill(layout, rest);
          for (std::size_t i = 0; i < x.shape(0); ++i)
            if (fill.read(samples, i))
              fill.filled().with_row(0, [&](const auto* values) {
                std::copy(values, values + x.shape(1), filled.begin() + static_cast<std::ptrdiff_t>(i * x.shape(1)));
              });
        }
        return to_numpy(std::move(filled), x.shape(1));
      },
      "x"_a, "shape"_a, "ordered_axes"_a, "mean"_a, "correlation"_a, "rest"_a,
      "Return samples whose missing values are filled in; those without neighbours deviate from the mean by `rest`.");
  m.def(
      "hash_rows",
      [](const SampleArray& x) {
        const Samples samples = to_samples(x);
        std::vector<std::uint64_t> hash;
        {
          nb::gil_scoped_release release;
          hash = hash_rows(samples);
        }
        return to_numpy(std::move(hash));
      },
      "x"_a, "Return a hash of each row's values.");
}
