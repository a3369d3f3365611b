// Attributions: each split of a sample's path changes the expected prediction, and its atom's features share that change.
//
// Amounts are whole numbers: fixed point, so that their sums are exact in any order and features that no atom uses get exactly
// nothing. That allows shares to be added as *differences*: an atom adds the corners of its boxes to a grid of the sample's shape,
// and one pass of sums along the axes, when all atoms of a sample are added, turns corners into boxes. Boxes that move over a
// window are ramps along it, which take a second pass.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "atoms/atom_list.hpp"
#include "forest/importance.hpp"

namespace morf {

// How the features of atoms share an amount: in proportion to the absolute weights, of all positions of a window alike.
class Shares {
 public:
  // What an atom adds to a cell of the grid for an amount of one in all its mass; whole unless `direct`.
  struct Part {
    std::uint32_t cell;
    double size;
  };

  // `operations` are those of all atoms; empty: all are linear.
  Shares(const RowLayout& layout, const std::vector<Operation>& operations)
      : layout_(layout), rank_(layout.shape.size()), blocks_(layout), passes_(rank_, 0), axes_(rank_), at_(rank_) {
    std::uint32_t prefixed = 0;
    for (std::size_t k = 0; k < layout.planes.size(); ++k) {
      prefixed |= layout.planes[k].prefixed_axes;
      if (layout.planes[k].pooled) pooled_.push_back({layout.places[k], layout.planes[k].prefixed_axes});
    }
    for (std::size_t axis = 0; axis < rank_; ++axis) {
      if (layout.shape[axis] == 1) continue;
      const bool moves = std::any_of(operations.begin(), operations.end(), [&](const Operation& operation) {
        return std::any_of(pooled_.begin(), pooled_.end(),
                           [&](const Pooled& plane) { return plane.window(operation, axis) > 1; });
      });
      passes_[axis] = static_cast<int>(prefixed >> axis & 1u) + (moves ? 1 : 0);
    }
  }

  // Whether all parts are features and their sizes shares that add up to one; else sizes are whole, and amounts to be divided by
  // the mass.
  bool direct() const {
    return std::all_of(passes_.begin(), passes_.end(), [](int passes) { return passes == 0; });
  }

  // Appends the parts of an atom with terms, which has passed AtomList::check, and returns the mass. An atom without mass has no parts.
  double add(const std::uint32_t* cell, const double* weight, std::size_t terms, const Operation& operation,
             std::vector<Part>& parts) {
    const auto p = static_cast<std::size_t>(layout_.features);
    double mass = 0.0;
    if (cell[0] >= layout_.plain_cells()) {
      const std::size_t first = parts.size();
      for (const Pooled& plane : pooled_) mass += add_pooled(plane, cell, weight, terms, operation, parts);
      for (std::size_t i = first; direct() && i < parts.size(); ++i) parts[i].size /= mass;
    } else if (std::all_of(cell, cell + terms, [&](std::uint32_t c) { return layout_.planes[c / p].prefixed_axes == 0; })) {
      for (std::size_t t = 0; t < terms; ++t) mass += std::abs(weight[t]);
      if (!(mass > 0.0)) return mass;
      const bool shares = direct();
      for (std::size_t t = 0; t < terms; ++t) {
        const auto feature = static_cast<std::int64_t>(cell[t] % p);
        for (std::size_t axis = 0; axis < rank_; ++axis) {
          const std::int64_t index = feature / blocks_.stride(axis) % layout_.shape[axis];
          find_differences(axis, {index, index + 1});
        }
        add_product(0, 0, shares ? std::abs(weight[t]) / mass : std::abs(weight[t]), parts);
      }
    } else {
      blocks_.find(cell, weight, terms);
      mass = blocks_.mass();
      for (std::size_t b = 0; b < blocks_.count(); ++b) {
        for (std::size_t axis = 0; axis < rank_; ++axis) find_differences(axis, blocks_.bounds(b)[axis]);
        add_product(0, 0, blocks_.size(b), parts);
      }
    }
    return mass;
  }

  // Turns the differences of one sample, grid[features][outputs], into amounts.
  void sum_up(std::uint64_t* grid, std::size_t outputs) const;

 private:
  struct Pooled {
    PlanePlace place;
    std::uint32_t prefixed_axes;

    // Positions along an axis longer than one. (Those of length one have the stride of the axis behind them.)
    std::int64_t window(const Operation& operation, std::size_t axis) const {
      for (const Window& window : operation.window)
        if (window.count > 1 && window.stride == place.stride[axis]) return window.count;
      return 1;
    }
  };
  struct Difference {
    std::int64_t index;
    double sign;
  };
  // A stretch of an axis that holds all positions of an atom.
  struct Stretch {
    std::int64_t begin = 0, length = 0, stride = 0;  // stride: in the patch of cells that holds the atom
    std::int64_t window = 1;
    bool round = false;  // the whole axis, and its end is followed by its beginning
  };

  // The differences along an axis of the indicator of an interval.
  void find_differences(std::size_t axis, Blocks::Interval along) {
    auto& found = axes_[axis];
    found.clear();
    if (passes_[axis] == 0) {
      for (std::int64_t i = along.begin; i < along.end; ++i) found.push_back({i, 1.0});
      return;
    }
    const auto put = [&](std::int64_t index, double sign) {
      if (index < layout_.shape[axis]) found.push_back({index, sign});
    };
    put(along.begin, 1.0);
    put(along.end, -1.0);
    if (passes_[axis] == 2) {
      put(along.begin + 1, -1.0);
      put(along.end + 1, 1.0);
    }
  }

  void add_product(std::size_t axis, std::int64_t first, double size, std::vector<Part>& parts) const {
    if (axis == rank_) {
      parts.push_back({static_cast<std::uint32_t>(first), size});
      return;
    }
    for (const Difference& d : axes_[axis]) add_product(axis + 1, first + d.index * blocks_.stride(axis), size * d.sign, parts);
  }

  // The same for the terms of an atom in a pooled plane: the sizes of its weights, summed over the window, and their differences.
  double add_pooled(const Pooled& pooled, const std::uint32_t* cell, const double* weight, std::size_t terms,
                    const Operation& operation, std::vector<Part>& parts) {
    const auto here = [&](std::uint32_t c) { return pooled.place.holds(c); };
    std::uint32_t low = ~std::uint32_t{0}, high = 0;
    for (std::size_t t = 0; t < terms; ++t)
      if (here(cell[t])) low = std::min(low, cell[t]), high = std::max(high, cell[t]);
    if (low > high) return 0.0;
    // A sum adds all cells at and before it by whole strides, so a cell gets the weights at and after it.
    weights_.assign(high - low + 1, 0);
    for (std::size_t t = 0; t < terms; ++t)
      if (here(cell[t])) weights_[cell[t] - low] += static_cast<std::int64_t>(weight[t]);
    for (std::size_t axis = 0; axis < rank_; ++axis) {
      const auto stride = static_cast<std::size_t>(pooled.place.stride[axis]);
      if (pooled.prefixed_axes >> axis & 1u)
        for (std::size_t i = weights_.size(); i-- > stride;) weights_[i - stride] += weights_[i];
    }
    if (std::all_of(weights_.begin(), weights_.end(), [](std::int64_t w) { return w == 0; })) return 0.0;
    const std::int64_t first = std::int64_t{low} - static_cast<std::int64_t>(pooled.place.begin + pooled.place.lead);
    find_stretches(pooled, first, operation);
    std::int64_t cells = 1;
    for (std::size_t axis = rank_; axis-- > 0; cells *= stretch_[axis].length) stretch_[axis].stride = cells;
    sizes_.assign(static_cast<std::size_t>(cells), 0);
    each_weight(pooled, first, [&](std::int64_t size) {
      std::int64_t at = 0;
      for (std::size_t axis = 0; axis < rank_; ++axis) {
        const std::int64_t index = at_[axis] % layout_.shape[axis];
        at += (index - stretch_[axis].begin) * stretch_[axis].stride;
      }
      sizes_[static_cast<std::size_t>(at)] += size;
    });
    for (std::size_t axis = 0; axis < rank_; ++axis) sum_window(stretch_[axis]);
    double mass = 0.0;
    for (const std::int64_t size : sizes_) mass += static_cast<double>(size);
    for (std::size_t axis = 0; axis < rank_; ++axis)
      for (int pass = 0; pass < passes_[axis]; ++pass) take_differences(stretch_[axis]);
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      if (sizes_[i] == 0) continue;
      std::int64_t to = 0;
      for (std::size_t axis = 0; axis < rank_; ++axis) {
        const Stretch& s = stretch_[axis];
        to += (s.begin + static_cast<std::int64_t>(i) / s.stride % s.length) * blocks_.stride(axis);
      }
      parts.push_back({static_cast<std::uint32_t>(to), static_cast<double>(sizes_[i])});
    }
    return mass;
  }

  // Calls use(absolute weight) for each cell of the atom, whose place in the plane is in at_.
  template <class Use>
  void each_weight(const Pooled& pooled, std::int64_t first, Use use) {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      if (weights_[i] == 0) continue;
      const std::int64_t place = first + static_cast<std::int64_t>(i);
      if (place < 0)
        throw std::invalid_argument("damaged atoms: weights over prefix sums do not cancel");  // AtomList::check sees to that
      for (std::size_t axis = 0; axis < rank_; ++axis)
        at_[axis] = place / pooled.place.stride[axis] % (layout_.shape[axis] * pooled.place.repeats[axis]);
      use(std::abs(weights_[i]));
    }
  }

  // Where the atom's positions lie along each axis, with room for what is behind the last: differences end there.
  void find_stretches(const Pooled& pooled, std::int64_t first, const Operation& operation) {
    stretch_.assign(rank_, {});
    span_.assign(rank_, {layout_.features * PlanePlace::turns, 0});
    each_weight(pooled, first, [&](std::int64_t) {
      for (std::size_t axis = 0; axis < rank_; ++axis)
        span_[axis] = {std::min(span_[axis].begin, at_[axis]), std::max(span_[axis].end, at_[axis] + 1)};
    });
    for (std::size_t axis = 0; axis < rank_; ++axis) {
      Stretch& s = stretch_[axis];
      const std::int64_t length = layout_.shape[axis];
      if (length > 1) s.window = pooled.window(operation, axis);
      const std::int64_t begin = span_[axis].begin % length, end = begin + span_[axis].end - span_[axis].begin + s.window - 1;
      s.round = end > length;
      s.begin = s.round ? 0 : begin;
      s.length = s.round ? length : std::min(end + passes_[axis], length) - begin;
    }
  }

  // Replaces each size by the sum of those of the window that ends there.
  void sum_window(const Stretch& s) {
    if (s.window == 1) return;
    each_line(s, [&](std::int64_t* size) {
      line_.clear();
      for (std::int64_t i = 0; i < s.length; ++i) line_.push_back(size[i * s.stride]);
      const auto old = [&](std::int64_t i) { return i >= 0 ? line_[i] : s.round ? line_[i + s.length] : 0; };
      std::int64_t sum = 0;
      for (std::int64_t i = 1 - s.window; i < 0; ++i) sum += old(i);
      for (std::int64_t i = 0; i < s.length; ++i) {
        size[i * s.stride] = sum += line_[i];
        sum -= old(i - s.window + 1);
      }
    });
  }

  void take_differences(const Stretch& s) {
    each_line(s, [&](std::int64_t* size) {
      for (std::int64_t i = s.length - 1; i > 0; --i) size[i * s.stride] -= size[(i - 1) * s.stride];
    });
  }

  template <class Use>
  void each_line(const Stretch& s, Use use) {
    const auto cells = static_cast<std::int64_t>(sizes_.size());
    for (std::int64_t block = 0; block < cells; block += s.length * s.stride)
      for (std::int64_t i = block; i < block + s.stride; ++i) use(&sizes_[i]);
  }

  const RowLayout& layout_;
  std::size_t rank_;
  Blocks blocks_;
  std::vector<Pooled> pooled_;
  std::vector<int> passes_;  // of sums along each axis that turn differences into amounts
  std::vector<std::vector<Difference>> axes_;
  std::vector<std::int64_t> at_, weights_, sizes_, line_;
  std::vector<Stretch> stretch_;
  std::vector<Blocks::Interval> span_;
};

}  // namespace morf
