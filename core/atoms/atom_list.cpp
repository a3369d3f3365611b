#include "atoms/atom_list.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

namespace morf {
namespace {

constexpr double weight_limit = 0x1.0p62;
constexpr std::int64_t bias_limit = std::int64_t{1} << 62;

void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(std::string("damaged atoms: ") + message);
}

// Checks the atoms of a list with operations, one after another. It holds scratch memory.
class OperationCheck {
 public:
  OperationCheck(const RowLayout& layout, const AtomList& atoms) : layout_(layout), atoms_(atoms) {}

  void check(std::size_t atom) {
    const Operation& operation = atoms_.operation[atom];
    const std::size_t begin = atoms_.begin[atom], end = atoms_.begin[atom + 1];
    require(operation.op <= Op::win, "operation");
    require(operation.window[0].count > 0 && operation.window[1].count > 0, "a window has no positions");
    if (operation.op == Op::win) {
      const auto rivals = static_cast<std::uint64_t>(operation.bias);
      require(operation.bias > 0 && rivals < end - begin && (end - begin) % (rivals + 1) == 0, "rivals do not share the terms");
    } else if (operation.op == Op::proportion) {
      require(operation.bias > -bias_limit && operation.bias < bias_limit, "bias");
    } else {
      require(operation.bias == 0, "only proportions and winners have a bias");
    }
    if (operation.pooled()) return check_pooled(operation, begin, end);
    require(operation.positions() == 1, "only pooled atoms have windows");
    if (operation.op == Op::variance) check_variance(begin, end);
  }

 private:
  // The box of the first half of the terms, and the same box in the plane of the squares, times its area.
  void check_variance(std::size_t begin, std::size_t end) const {
    constexpr const char* message = "a variance has the sum of a box and of its squares";
    const std::size_t half = (end - begin) / 2, middle = begin + half;
    require(half > 0 && 2 * half == end - begin, message);
    const std::size_t values = layout_.plane_of(atoms_.cell[begin]), squares = layout_.plane_of(atoms_.cell[middle]);
    const View &of = layout_.planes[values].view, &squared = layout_.planes[squares].view;
    require(
        (of.kind == View::Kind::raw && squared.kind == View::Kind::square) ||
            (of.kind == View::Kind::difference && squared.kind == View::Kind::squared_difference && of.axis == squared.axis) ||
            (of.kind == View::Kind::filter && squared.kind == View::Kind::squared_filter && of.axis == squared.axis &&
             of.filters == squared.filters),
        message);
    require(layout_.planes[values].prefixed_axes == layout_.planes[squares].prefixed_axes, message);
    const double area = atoms_.weight[end - 1];
    require(atoms_.weight[middle - 1] == 1.0 && area >= 1.0 && area <= static_cast<double>(layout_.features), message);
    for (std::size_t t = begin; t < middle; ++t) {
      require(layout_.plane_of(atoms_.cell[t]) == values, message);
      require(atoms_.cell[t + half] - layout_.places[squares].begin == atoms_.cell[t] - layout_.places[values].begin, message);
      require(atoms_.weight[t + half] == area * atoms_.weight[t], message);
    }
  }

  void check_pooled(const Operation& operation, std::size_t begin, std::size_t end) {
    require(atoms_.cell[begin] >= layout_.plain_cells(), "a pooled atom stands in a plain plane");
    const std::size_t first = layout_.plane_of(atoms_.cell[begin]);
    std::size_t other = first;
    for (std::size_t t = begin; t < end; ++t) {
      require(atoms_.cell[t] >= layout_.plain_cells(), "a pooled atom stands in a plain plane");
      const std::size_t plane = layout_.plane_of(atoms_.cell[t]);
      if (other == first) other = plane;
      require(plane == first || plane == other, "a pooled atom stands in more than two planes");
    }
    check_plane(operation, first, begin, end);
    if (other != first) check_plane(operation, other, begin, end);
  }

  // Checks the terms of an atom that stand in one pooled plane.
  void check_plane(const Operation& operation, std::size_t plane, std::size_t begin, std::size_t end) {
    const PlanePlace& place = layout_.places[plane];
    for (const Window& window : operation.window)
      require(window.count == 1 || fits_axis(window, place), "a window does not fit an axis");
    require(operation.window[0].count == 1 || operation.window[1].count == 1 ||
                operation.window[0].stride != operation.window[1].stride,
            "both windows lie along one axis");
    double total = 0.0;
    std::uint32_t low = ~std::uint32_t{0}, high = 0;
    for (std::size_t t = begin; t < end; ++t) {
      if (!place.holds(atoms_.cell[t])) continue;
      require(place.holds(atoms_.cell[t] + operation.reach()), "a window leaves its plane");
      total += std::abs(atoms_.weight[t]);
      low = std::min(low, atoms_.cell[t]);
      high = std::max(high, atoms_.cell[t]);
    }
    // What attributions add up stays a 64-bit integer.
    const bool summed = layout_.planes[plane].prefixed_axes != 0;
    require(total * (summed ? static_cast<double>(high - low) + 1.0 : 1.0) * static_cast<double>(operation.positions()) <
                weight_limit,
            "weights");
    const std::size_t own = operation.own(end - begin);
    for (std::size_t t = begin; summed && t < end; t += own) require_cancelled(plane, t, t + own);
  }

  bool fits_axis(const Window& window, const PlanePlace& place) const {
    for (std::size_t axis = 0; axis < layout_.shape.size(); ++axis)  // axes of length one have the stride of the axis behind them
      if (layout_.shape[axis] > 1 && place.stride[axis] == window.stride) return window.count <= layout_.shape[axis];
    return false;
  }

  // A cell of a pooled plane is the sum of all values at and before it by whole strides along its prefixed axes. With w(c) the
  // weights of the terms, that is the polynomial P(z) = sum of w(c) z^c divided by (1 - z^-s) for each such stride s, and the atom
  // ends somewhere if the division leaves no rest. Each stride divides the next larger one, so that a root of unity of the
  // smallest order is a root of all factors, and of the largest order a root of one. The rest is nothing if, with the
  // strides s0 >= s1 >= ..., the sums of c^k w(c) over the cells c of each residue modulo sk vanish, for all k. Lowest cells then
  // only take part in differences, and values begin a whole lead behind them: inside the plane, as the cells are.
  void require_cancelled(std::size_t plane, std::size_t begin, std::size_t end) {
    const PlanePlace& place = layout_.places[plane];
    std::uint32_t power = 0;
    for (std::size_t axis = 0; axis < layout_.shape.size(); ++axis) {  // strides fall from axis to axis
      if (!(layout_.planes[plane].prefixed_axes >> axis & 1u)) continue;
      moments_.clear();
      for (std::size_t t = begin; t < end; ++t) {
        if (!place.holds(atoms_.cell[t])) continue;
        const std::uint64_t cell = atoms_.cell[t] - place.begin;
        auto moment = static_cast<std::uint64_t>(static_cast<std::int64_t>(atoms_.weight[t]));
        for (std::uint32_t k = 0; k < power; ++k) moment *= cell;
        moments_.emplace_back(cell % static_cast<std::uint64_t>(place.stride[axis]), moment);
      }
      if (place.stride[axis] > 1) std::sort(moments_.begin(), moments_.end());
      for (std::size_t i = 0; i < moments_.size();) {
        const std::uint64_t residue = moments_[i].first;
        std::uint64_t sum = 0;
        for (; i < moments_.size() && moments_[i].first == residue; ++i) sum += moments_[i].second;
        require(sum == 0, "weights over prefix sums do not cancel");
      }
      ++power;
    }
  }

  const RowLayout& layout_;
  const AtomList& atoms_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> moments_;
};

}  // namespace

void AtomList::drop_rivals() {
  if (operation.empty()) return;
  std::size_t kept = 0, from = 0;
  for (std::size_t atom = 0; atom < size(); ++atom) {
    const std::size_t end = begin[atom + 1], own = operation[atom].own(end - from);
    for (std::size_t t = from; t < from + own; ++t)
      if (weight[t] != 0.0) cell[kept] = cell[t], weight[kept++] = weight[t];
    begin[atom + 1] = kept;
    from = end;
  }
  cell.resize(kept);
  weight.resize(kept);
}

void AtomList::check(const RowLayout& layout, bool real) const {
  require(!begin.empty() && begin.front() == 0 && begin.back() == cell.size() && std::is_sorted(begin.begin(), begin.end()),
          "terms do not fit the atoms");
  require(cell.size() == weight.size(), "cells and weights differ in number");
  require(operation.empty() || operation.size() == size(), "operations do not fit the atoms");
  require(!real || (operation.empty() && layout.raw()), "float64 cells are raw values, and atoms over them are linear");
  const std::uint32_t zero_cell = layout.zero_cell();
  for (std::size_t t = 0; t < cell.size(); ++t) {
    require(cell[t] < zero_cell, "no such cell");
    require(std::abs(weight[t]) < weight_limit && (real || weight[t] == std::floor(weight[t])), "weights");  // NaN fails too
  }
  OperationCheck operations(layout, *this);
  for (std::size_t atom = 0; atom < size(); ++atom) {
    const bool pooled = !operation.empty() && operation[atom].pooled();
    if (terms(atom) == 0) {
      require(operation.empty() || operation[atom].op == Op::none, "an operation without terms");
    } else if (!pooled) {
      for (std::size_t t = begin[atom]; t < begin[atom + 1]; ++t)
        require(cell[t] < layout.plain_cells(), "a linear atom stands in a pooled plane");
    }
    if (!operation.empty() && operation[atom].op != Op::none) operations.check(atom);
    else if (!operation.empty())
      require(operation[atom].bias == 0 && operation[atom].positions() == 1, "only pooled atoms have windows");
  }
}

}  // namespace morf
