#include "data/row_layout.hpp"

#include <cmath>
#include <utility>

namespace morf {

PlanePlace::PlanePlace(const std::vector<std::int64_t>& shape, const Plane& plane, std::size_t first)
    : stride(shape.size()), repeats(shape.size()), begin(first) {
  std::int64_t cells = 1, zeros = 0;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    stride[axis] = cells;
    repeats[axis] = plane.pooled && (plane.circular_axes >> axis & 1u) ? turns : 1;
    if (plane.pooled && (plane.prefixed_axes >> axis & 1u)) zeros += cells;
    cells *= shape[axis] * repeats[axis];
    if (cells >= static_cast<std::int64_t>(max_cells))
      throw std::invalid_argument("too many cells: fewer features or circular axes");
  }
  lead = static_cast<std::size_t>(zeros);
  size = static_cast<std::size_t>(cells);
}

RowLayout::RowLayout(std::vector<std::int64_t> sample_shape, std::vector<Plane> sample_planes, std::uint32_t ordered,
                     Course usual)
    : shape(std::move(sample_shape)), planes(std::move(sample_planes)), ordered_axes(ordered), course(std::move(usual)) {
  if (shape.size() > max_rank) throw std::invalid_argument("more than 32 axes");
  for (const std::int64_t length : shape) {
    if (length < 1 || length > max_features) throw std::invalid_argument("impossible sample shape");
    features *= length;
    if (features > max_features) throw std::invalid_argument("more than 2^29 features");
  }
  if (planes.empty()) throw std::invalid_argument("a row needs at least one plane");
  const ViewDeriver deriver(shape);
  const std::uint32_t axes = shape.size() == max_rank ? ~0u : (1u << shape.size()) - 1u;
  if (ordered_axes & ~axes) throw std::invalid_argument("an ordered axis does not exist");
  const bool fits = course.known()
                        ? course.mean.size() == static_cast<std::size_t>(features) && course.correlation.size() == shape.size()
                        : course.correlation.empty();
  if (!fits || !std::all_of(course.mean.begin(), course.mean.end(), [](double x) { return std::isfinite(x); }) ||
      !std::all_of(course.correlation.begin(), course.correlation.end(), [](double x) { return x >= 0.0 && x <= 1.0; }))
    throw std::invalid_argument("a usual course that no samples have");
  std::size_t begin = 0;
  for (const Plane& plane : planes) {
    deriver.check(plane.view);
    if ((plane.prefixed_axes | plane.circular_axes) & ~axes)
      throw std::invalid_argument("a plane names an axis that does not exist");
    if (!plane.pooled && plane.circular_axes != 0) throw std::invalid_argument("only pooled planes have circular axes");
    if (!plane.pooled && plain_planes != places.size()) throw std::invalid_argument("pooled planes come last");
    plain_planes += !plane.pooled;
    places.emplace_back(shape, plane, begin);
    begin = places.back().end();
    if (begin >= max_cells) throw std::invalid_argument("too many cells: fewer features, views or kinds of patches");
  }
}

std::size_t RowLayout::plane_of(std::size_t cell) const {
  if (cell < plain_cells()) return cell / static_cast<std::size_t>(features);
  const auto after = std::partition_point(places.begin(), places.end(),
                                          [&](const PlanePlace& place) { return place.begin <= cell; });
  return static_cast<std::size_t>(after - places.begin()) - 1;
}

}  // namespace morf
