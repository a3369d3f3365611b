// Missing values: what stands in for them, and how atoms find out that they touch some.
//
// A missing value is a *gap* if its neighbours along an ordered axis say what it may be, and is filled in from them and from the usual
// course of samples, if that is known; else it is *absent*.
// Both leave a *mark*. Atoms are then computed from values that are all there. Whether an atom touches a mark is asked of
// the same weights, applied to a *mask*: a row whose marked cells hold random numbers of 64 bits and whose other cells are zero, summed up
// as the cells of the sample are. The sum of an atom over it is zero if it touches none, and otherwise only by a chance of 2^-64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "data/row_layout.hpp"
#include "data/samples.hpp"

namespace morf {

enum class Mark : std::uint8_t { observed, gap, absent };

// The masks of one row: of all marks, and of absent values alone.
class RowMask {
 public:
  // Whether a linear atom touches values that are marked as `mark`, or more.
  bool touches(const std::uint32_t* cell, const double* weight, std::size_t terms, Mark mark, std::size_t moved = 0) const {
    const std::vector<std::int64_t>& cells = mark == Mark::gap ? any_ : absent_;
    if (cells.empty()) return false;
    std::uint64_t sum = 0;
    for (std::size_t t = 0; t < terms; ++t) {
      const auto number = static_cast<std::uint64_t>(cells[cell[t] + moved]);
      if (!real_) sum += static_cast<std::uint64_t>(static_cast<std::int64_t>(weight[t])) * number;
      else if (weight[t] != 0.0) sum |= number;  // no sums over sums, and weights that are no integers
    }
    return sum != 0;
  }
  bool has_absent() const { return !absent_.empty(); }

 private:
  friend class MaskMaker;
  std::vector<std::int64_t> any_, absent_;
  bool real_ = false;
};

// Fills in the missing values of one sample after another. It holds scratch memory, and each thread has its own.
class GapFiller {
 public:
  // What has no neighbours deviates from the mean by `rest`.
  explicit GapFiller(const RowLayout& layout, double rest = 0.0);

  // Reads a sample, and says whether it has missing values. If so, filled() and marks() are those of this sample until the next call.
  bool read(const Samples& x, std::size_t sample);
  Samples filled() const { return Samples(values_.data(), 1, values_.size()); }
  const std::vector<std::uint8_t>& marks() const { return marks_; }

 private:
  struct Axis {
    std::size_t length, stride;
    bool ordered;
    std::vector<double> correlation;  // of deviations so many places apart; none: they lie on straight lines
  };

  void fill_along(const Axis& axis);
  void fill_line(std::size_t first, const Axis& axis);
  static double between(const Axis& axis, double a, double b, std::size_t from_a, std::size_t to_b);
  static double beyond(const Axis& axis, double end, std::size_t away);
  void add_mean(const Samples& x, std::size_t sample);
  void mark_ends(const Axis& axis);

  std::vector<Axis> axes_;
  std::vector<double> mean_;
  double rest_;
  std::size_t ordered_ = 0;  // how many axes are
  std::vector<double> values_;
  std::vector<std::uint8_t> marks_, observed_;  // observed_: the marks before anything was filled in
};

// Makes the masks of one sample after another.
class MaskMaker {
 public:
  MaskMaker(const RowLayout& layout, bool real) : layout_(layout), real_(real) {}

  std::unique_ptr<RowMask> operator()(const std::vector<std::uint8_t>& marks);
  // What the marks of a sample add to the hash of its values.
  static std::uint64_t hash(const std::vector<std::uint8_t>& marks);

 private:
  void view_marks(const View& view, const std::vector<std::uint8_t>& marks);
  void spread(const std::vector<std::uint8_t>& marks, std::size_t axis, bool behind);
  void reach(std::size_t axis, std::size_t width);
  void share(const std::vector<std::uint8_t>& marks, std::size_t axis);
  std::vector<std::int64_t> cells(const std::vector<std::uint8_t>& marks, Mark least);

  const RowLayout& layout_;
  bool real_;
  std::vector<std::uint8_t> of_view_;
  std::vector<std::int64_t> numbers_;
};

}  // namespace morf
