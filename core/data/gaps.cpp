#include "data/gaps.hpp"

#include <algorithm>
#include <cmath>

#include "base/random.hpp"
#include "data/prefix_sums.hpp"

namespace morf {

namespace {

// The correlation of deviations 0, 1, 2, ... places apart, where it is the same from each place to the next.
std::vector<double> correlations(double of_neighbours, std::size_t length) {
  std::vector<double> found(length, 1.0);
  for (std::size_t i = 1; i < length; ++i) found[i] = found[i - 1] * of_neighbours;
  return found;
}

}  // namespace

GapFiller::GapFiller(const RowLayout& layout, double rest) : axes_(layout.shape.size()), mean_(layout.course.mean), rest_(rest) {
  std::size_t stride = 1;
  for (std::size_t axis = axes_.size(); axis-- > 0;) {
    const bool ordered = (layout.ordered_axes >> axis & 1u) != 0;
    const auto length = static_cast<std::size_t>(layout.shape[axis]);
    axes_[axis] = {length, stride, ordered, {}};
    if (ordered && layout.course.known() && layout.course.correlation[axis] < 1.0)
      axes_[axis].correlation = correlations(layout.course.correlation[axis], length);
    ordered_ += ordered;
    stride *= length;
  }
  values_.resize(stride);
  marks_.resize(stride);
}

bool GapFiller::read(const Samples& x, std::size_t sample) {
  bool missing = false;
  x.with_row(sample, [&](const auto* from) {
    for (std::size_t j = 0; j < values_.size(); ++j) {
      values_[j] = static_cast<double>(from[j]);
      const bool here = std::isnan(values_[j]);
      marks_[j] = static_cast<std::uint8_t>(here ? Mark::absent : Mark::observed);
      missing |= here;
    }
  });
  if (!missing) return false;
  observed_ = marks_;
  for (std::size_t j = 0; j < mean_.size(); ++j) values_[j] -= mean_[j];
  for (std::size_t axis = axes_.size(); axis-- > 0;)
    if (axes_[axis].ordered) fill_along(axes_[axis]);
  for (double& value : values_)
    if (std::isnan(value)) value = rest_;
  if (!mean_.empty()) add_mean(x, sample);
  else if (ordered_ == 1) mark_ends(*std::find_if(axes_.begin(), axes_.end(), [](const Axis& axis) { return axis.ordered; }));
  return true;
}

// Turns deviations into values; those that were observed stay what they were.
void GapFiller::add_mean(const Samples& x, std::size_t sample) {
  x.with_row(sample, [&](const auto* from) {
    for (std::size_t j = 0; j < values_.size(); ++j) {
      const bool observed = observed_[j] == static_cast<std::uint8_t>(Mark::observed);
      values_[j] = observed ? static_cast<double>(from[j]) : values_[j] + mean_[j];
    }
  });
}

void GapFiller::fill_along(const Axis& axis) {
  for (std::size_t block = 0; block < values_.size(); block += axis.length * axis.stride)
    for (std::size_t first = block; first < block + axis.stride; ++first) fill_line(first, axis);
}

// Fills the unknown values of a line from the nearest known ones.
void GapFiller::fill_line(std::size_t first, const Axis& axis) {
  const auto at = [&](std::size_t i) { return first + i * axis.stride; };
  std::size_t before = axis.length;  // the last known one
  for (std::size_t i = 0; i <= axis.length; ++i) {
    if (i < axis.length && std::isnan(values_[at(i)])) continue;
    const std::size_t begin = before == axis.length ? 0 : before + 1;
    if (i == axis.length && before == axis.length) return;  // nothing is known here
    for (std::size_t t = begin; t < i; ++t) {
      double& value = values_[at(t)];
      if (before == axis.length) value = beyond(axis, values_[at(i)], i - t);
      else if (i == axis.length) value = beyond(axis, values_[at(before)], t - before);
      else value = between(axis, values_[at(before)], values_[at(i)], t - before, i - t);
      marks_[at(t)] = static_cast<std::uint8_t>(Mark::gap);
    }
    before = i;
  }
}

// What is expected between two known deviations. Where neighbours are alike throughout, that is a straight line.
double GapFiller::between(const Axis& axis, double a, double b, std::size_t from_a, std::size_t to_b) {
  if (axis.correlation.empty()) return a + (b - a) * (static_cast<double>(from_a) / static_cast<double>(from_a + to_b));
  const double r = axis.correlation[from_a], s = axis.correlation[to_b], all = axis.correlation[from_a + to_b];
  return (a * (r - all * s) + b * (s - all * r)) / (1.0 - all * all);
}

double GapFiller::beyond(const Axis& axis, double end, std::size_t away) {
  return axis.correlation.empty() ? end : end * axis.correlation[away];
}

// Before the first and behind the last place along the axis where something was observed the sample has ended.
void GapFiller::mark_ends(const Axis& axis) {
  const auto seen = [&](std::size_t i) {
    for (std::size_t block = i * axis.stride; block < marks_.size(); block += axis.length * axis.stride)
      for (std::size_t j = block; j < block + axis.stride; ++j)
        if (observed_[j] == static_cast<std::uint8_t>(Mark::observed)) return true;
    return false;
  };
  std::size_t begin = 0, end = axis.length;
  while (begin < end && !seen(begin)) ++begin;
  while (end > begin && !seen(end - 1)) --end;
  for (std::size_t i = 0; i < axis.length; ++i) {
    if (i >= begin && i < end) continue;
    for (std::size_t block = i * axis.stride; block < marks_.size(); block += axis.length * axis.stride)
      std::fill_n(&marks_[block], axis.stride, static_cast<std::uint8_t>(Mark::absent));
  }
}

std::unique_ptr<RowMask> MaskMaker::operator()(const std::vector<std::uint8_t>& marks) {
  auto mask = std::make_unique<RowMask>();
  mask->real_ = real_;
  mask->any_ = cells(marks, Mark::gap);
  if (std::find(marks.begin(), marks.end(), static_cast<std::uint8_t>(Mark::absent)) != marks.end())
    mask->absent_ = cells(marks, Mark::absent);
  return mask;
}

std::uint64_t MaskMaker::hash(const std::vector<std::uint8_t>& marks) {
  std::uint64_t hash = 0;
  for (std::size_t j = 0; j < marks.size(); ++j)
    if (marks[j] != 0) hash += mix(3 * j + marks[j]);
  return mix(hash);
}

// Makes each mark at least that of the neighbour ahead along an axis, or of the one behind; the border is its own neighbour.
void MaskMaker::spread(const std::vector<std::uint8_t>& marks, std::size_t axis, bool behind) {
  const PlanePlace place(layout_.shape, Plane{});
  const auto stride = static_cast<std::size_t>(place.stride[axis]), length = static_cast<std::size_t>(layout_.shape[axis]);
  for (std::size_t j = 0; j < marks.size(); ++j) {
    const std::size_t i = j / stride % length;
    const std::size_t neighbour = behind ? (i == 0 ? j : j - stride) : (i + 1 == length ? j : j + stride);
    of_view_[j] = std::max(of_view_[j], marks[neighbour]);
  }
}

// Makes all marks along an axis the largest of them.
void MaskMaker::share(const std::vector<std::uint8_t>& marks, std::size_t axis) {
  const PlanePlace place(layout_.shape, Plane{});
  const auto stride = static_cast<std::size_t>(place.stride[axis]), length = static_cast<std::size_t>(layout_.shape[axis]);
  of_view_ = marks;
  for (std::size_t block = 0; block < marks.size(); block += length * stride)
    for (std::size_t k = block; k < block + stride; ++k) {
      std::uint8_t largest = 0;
      for (std::size_t i = 0; i < length; ++i) largest = std::max(largest, marks[k + i * stride]);
      for (std::size_t i = 0; i < length; ++i) of_view_[k + i * stride] = largest;
    }
}

// Makes each mark the largest of those from `width` steps behind it to width - 1 ahead.
void MaskMaker::reach(std::size_t axis, std::size_t width) {
  const std::vector<std::uint8_t> marks = of_view_;
  const PlanePlace place(layout_.shape, Plane{});
  const auto stride = static_cast<std::size_t>(place.stride[axis]), length = static_cast<std::size_t>(layout_.shape[axis]);
  for (std::size_t j = 0; j < marks.size(); ++j) {
    const std::size_t i = j / stride % length;
    const std::size_t behind = std::min(i, width), ahead = std::min(length - 1 - i, width - 1);
    for (std::size_t k = j - behind * stride; k <= j + ahead * stride; k += stride) of_view_[j] = std::max(of_view_[j], marks[k]);
  }
}

void MaskMaker::view_marks(const View& view, const std::vector<std::uint8_t>& marks) {
  switch (view.kind) {
    case View::Kind::raw:
    case View::Kind::square: of_view_ = marks; break;
    case View::Kind::difference:
    case View::Kind::squared_difference:
      of_view_ = marks;
      spread(marks, view.axis, false);
      break;
    case View::Kind::filter:
    case View::Kind::squared_filter: share(marks, view.axis); break;
    case View::Kind::product:
      share(marks, view.axis);
      if (view.width != 0) reach(view.other_axis, view.width);
      break;
    default:
      of_view_.assign(marks.size(), 0);
      for (const std::size_t axis : {view.axis, view.other_axis})
        for (const bool behind : {false, true}) spread(marks, axis, behind);
  }
}

std::vector<std::int64_t> MaskMaker::cells(const std::vector<std::uint8_t>& marks, Mark least) {
  std::vector<std::int64_t> cells(layout_.cells(), 0);
  numbers_.resize(marks.size());
  for (std::size_t k = 0; k < layout_.planes.size(); ++k) {
    const Plane& plane = layout_.planes[k];
    const PlanePlace& place = layout_.places[k];
    view_marks(plane.view, marks);
    for (std::size_t j = 0; j < marks.size(); ++j) {
      const bool marked = of_view_[j] >= static_cast<std::uint8_t>(least);
      numbers_[j] = marked ? static_cast<std::int64_t>(mix(k * marks.size() + j + 1)) : 0;
    }
    std::int64_t* const to = &cells[place.begin];
    if (plane.pooled) {
      fill_pooled(numbers_.data(), layout_.shape, place, to + place.lead);
      accumulate_on(to, place.cells(), place, plane.prefixed_axes);
    } else {
      std::copy(numbers_.begin(), numbers_.end(), to);
      accumulate(to, layout_, plane.prefixed_axes);
    }
  }
  return cells;
}

}  // namespace morf
