// View, Plane and RowLayout.
#include "data/row_layout.hpp"
#include "python/glue.hpp"

namespace {

const Names<View::Kind> kinds{{"raw", View::Kind::raw},
                              {"difference", View::Kind::difference},
                              {"square", View::Kind::square},
                              {"magnitude", View::Kind::magnitude},
                              {"orientation", View::Kind::orientation},
                              {"squared_difference", View::Kind::squared_difference},
                              {"filter", View::Kind::filter},
                              {"squared_filter", View::Kind::squared_filter},
                              {"product", View::Kind::product}};

std::uint32_t to_mask(const std::vector<std::uint32_t>& axes) {
  std::uint32_t mask = 0;
  for (const std::uint32_t axis : axes) {
    require(axis < max_rank && (mask >> axis & 1u) == 0, "axes");
    mask |= 1u << axis;
  }
  return mask;
}

std::vector<std::uint32_t> to_axes(std::uint32_t mask) {
  std::vector<std::uint32_t> axes;
  for (std::uint32_t axis = 0; axis < max_rank; ++axis)
    if (mask >> axis & 1u) axes.push_back(axis);
  return axes;
}

}  // namespace

void bind_layout(nb::module_& m) {
  nb::class_<View>(m, "View", "A version of a sample that atoms may look at.")
      .def(
          "__init__",
          [](View* self, const std::string& kind, std::uint32_t axis, std::uint32_t other_axis, double cosine, double sine,
             std::vector<std::int64_t> filters, std::uint32_t lag, std::uint32_t width) {
            require(std::abs(cosine) <= 1.0 && std::abs(sine) <= 1.0, "no such orientation");
            new (self) View{parse(kind, kinds), axis, other_axis, cosine, sine, std::move(filters), lag, width};
          },
          "kind"_a = "raw", "axis"_a = 0, "other_axis"_a = 0, "cosine"_a = 1.0, "sine"_a = 0.0,
          "filters"_a = std::vector<std::int64_t>{}, "lag"_a = 0, "width"_a = 0)
      .def_prop_ro("kind", [](const View& self) { return name_of(self.kind, kinds); })
      .def_ro("axis", &View::axis)
      .def_ro("other_axis", &View::other_axis)
      .def_ro("cosine", &View::cosine)
      .def_ro("sine", &View::sine)
      .def_prop_ro("filters", [](const View& self) { return self.filters; })
      .def_ro("lag", &View::lag)
      .def_ro("width", &View::width);

  nb::class_<Plane>(m, "Plane", "One view of the sample in a row, summed cumulatively along some axes.")
      .def(
          "__init__",
          [](Plane* self, const View& view, const std::vector<std::uint32_t>& prefixed_axes,
             const std::vector<std::uint32_t>& circular_axes,
             bool pooled) { new (self) Plane{view, to_mask(prefixed_axes), to_mask(circular_axes), pooled}; },
          "view"_a, "prefixed_axes"_a, "circular_axes"_a, "pooled"_a)
      .def_ro("view", &Plane::view)
      .def_prop_ro("prefixed_axes", [](const Plane& self) { return to_axes(self.prefixed_axes); })
      .def_prop_ro("circular_axes", [](const Plane& self) { return to_axes(self.circular_axes); })
      .def_ro("pooled", &Plane::pooled);

  nb::class_<RowLayout>(m, "RowLayout", "What stands in a row of a table: planes, and one last cell that is always zero.")
      .def(
          "__init__",
          [](RowLayout* self, std::vector<std::int64_t> shape, std::vector<Plane> planes,
             const std::vector<std::uint32_t>& ordered_axes, std::vector<double> mean, std::vector<double> correlation) {
            new (self)
                RowLayout(std::move(shape), std::move(planes), to_mask(ordered_axes), {std::move(mean), std::move(correlation)});
          },
          "shape"_a, "planes"_a, "ordered_axes"_a, "mean"_a, "correlation"_a)
      .def_prop_ro("shape", [](const RowLayout& self) { return self.shape; })
      .def_prop_ro("planes", [](const RowLayout& self) { return self.planes; })
      .def_prop_ro("ordered_axes", [](const RowLayout& self) { return to_axes(self.ordered_axes); })
      .def_prop_ro("mean", [](const RowLayout& self) { return self.course.mean; })
      .def_prop_ro("correlation", [](const RowLayout& self) { return self.course.correlation; })
      .def_prop_ro("cells", &RowLayout::cells);
}
