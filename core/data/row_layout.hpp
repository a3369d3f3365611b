// What stands in a row of a table: planes, and one last cell that is always zero.
//
// A *plane* shows one view of the sample (see view.hpp), summed cumulatively along some axes, its *prefixed* ones. There the sum
// over an interval is the difference of two cells, so that a patch costs 2^k cells whatever its size.
//
// Prefix sums of a plain plane begin anew at each end of an axis, so that a box at the border has fewer corners than its
// neighbour, and moving an atom is more than adding to its cells. Those of a *pooled* plane go on: each cell is added to the one
// a stride before it, whatever axis that belongs to, and zeros lead the plane. The difference of two such sums is the sum between
// them all the same. Circular axes stand in a pooled plane three times, because a window of all positions may begin anywhere.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "data/view.hpp"

namespace morf {

inline constexpr std::size_t max_rank = 32;  // sets of axes are bit masks
inline constexpr std::int64_t max_features = std::int64_t{1} << 29;
inline constexpr std::size_t max_cells = std::size_t{1} << 31;

struct Plane {
  View view{};
  std::uint32_t prefixed_axes = 0;  // a bit per axis
  std::uint32_t circular_axes = 0;  // a bit per axis; pooled planes only
  bool pooled = false;

  bool operator==(const Plane&) const = default;
};

// Where the cells of a plane stand in a row.
struct PlanePlace {
  static constexpr std::int64_t turns = 3;  // of a circular axis

  std::vector<std::int64_t> stride, repeats;  // per axis
  std::size_t begin = 0;  // the first cell in the row
  std::size_t lead = 0;  // zeros ahead of the values
  std::size_t size = 0;  // cells behind the lead

  PlanePlace(const std::vector<std::int64_t>& shape, const Plane& plane, std::size_t first = 0);

  std::size_t cells() const { return lead + size; }
  std::size_t end() const { return begin + cells(); }
  bool holds(std::size_t cell) const { return cell >= begin && cell < end(); }
};

// The usual course of samples, from which missing values are taken to depart as their neighbours do, and the less the farther away
// these are. Where it is unknown, both are empty; that is as if all means were 0 and all correlations 1.
struct Course {
  std::vector<double> mean;  // of each feature
  std::vector<double> correlation;  // of the deviations of neighbours along each axis, from 0 to 1

  bool known() const { return !mean.empty(); }
  bool operator==(const Course&) const = default;
};

// Plain planes come first and have one cell per feature each, so that cell / features is the number of a plain plane.
struct RowLayout {
  std::vector<std::int64_t> shape;
  std::vector<Plane> planes;
  std::vector<PlanePlace> places;  // of the planes
  std::int64_t features = 1;
  std::size_t plain_planes = 0;  // how many planes are not pooled
  std::uint32_t ordered_axes = 0;  // a bit per axis along which neighbours say what a missing value may be, see gaps.hpp
  Course course;

  // Throws std::invalid_argument unless all of this makes sense.
  RowLayout(std::vector<std::int64_t> sample_shape, std::vector<Plane> sample_planes, std::uint32_t ordered = 0,
            Course usual = {});

  // The raw values alone, which is what tables of bytes hold.
  RowLayout unsummed() const { return RowLayout(shape, {Plane{}}, ordered_axes, course); }

  std::size_t plain_cells() const { return plain_planes * static_cast<std::size_t>(features); }
  std::size_t cells() const { return planes.empty() ? 1 : places.back().end() + 1; }
  std::uint32_t zero_cell() const { return static_cast<std::uint32_t>(cells() - 1); }
  // The number of the plane that a cell before the last one belongs to.
  std::size_t plane_of(std::size_t cell) const;
  // The prefixed axes of the plain plane that a cell stands in.
  std::uint32_t prefixed_axes(std::size_t cell) const { return planes[cell / static_cast<std::size_t>(features)].prefixed_axes; }

  // Whether there are plain planes of the raw values alone.
  bool raw() const {
    return std::all_of(planes.begin(), planes.end(),
                       [](const Plane& plane) { return !plane.pooled && plane.view.kind == View::Kind::raw; });
  }

  bool operator==(const RowLayout& other) const {
    return shape == other.shape && planes == other.planes && ordered_axes == other.ordered_axes && course == other.course;
  }
};

}  // namespace morf
