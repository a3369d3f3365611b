// Forms: what a nonlinear atom makes of its linear responses, and the views in which atoms can be moved.
//
// A *pooled* atom is a linear atom that moves over a *window* of positions along one or two axes. Its value is the highest, the
// lowest or the sum of the responses there, or the number of those above a *bias* (PPV: the proportion of positive values).
// Or it has *rivals*, linear atoms of as many terms behind its own, and its value is the number of positions at which it
// responds more than each of them. Variance is a form too: of one box, from the sum of its values and that of their squares.
//
// Prefix sums of other views begin anew at each end of an axis, so that a box at the border has fewer corners than its
// neighbour, and moving an atom is more than adding to its cells. Those of a *pooled view* go on: each cell is added to the one
// a stride before it, whatever axis that belongs to, and zeros lead the view. The difference of two such sums is the
// sum between them all the same. Circular axes stand there three times, because a window of all positions may begin anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "channels.hpp"

namespace morf {

enum class Op : std::uint8_t { none, max, min, mean, ppv, variance, win, lose };  // lose: drawn only, of negated weights it is win
inline constexpr auto last_op = static_cast<std::uint8_t>(Op::win);

struct Window {
  std::uint32_t count = 1, stride = 0;  // positions, and cells between neighbours
};

struct Form {
  Op op = Op::none;
  Window window[2]{};      // along an earlier and a later axis
  std::int64_t bias = 0;   // ppv; win: the number of rivals
  std::uint64_t draw = 0;  // ppv: the row whose response becomes the bias, as a 64-bit fraction of the node's count
  std::uint64_t position = 0;  // and its position

  std::uint64_t positions() const { return std::uint64_t{window[0].count} * window[1].count; }
  // Whether so many terms can be shared out among an atom and its rivals.
  bool splits(std::size_t terms) const {
    return op != Op::win || (bias > 0 && static_cast<std::uint64_t>(bias) < terms && terms % (static_cast<std::size_t>(bias) + 1) == 0);
  }
  // Of an atom's terms, without those of its rivals.
  std::size_t own(std::size_t terms) const { return op == Op::win ? terms / (static_cast<std::size_t>(bias) + 1) : terms; }
};

// How the atoms of a component move.
struct Pool {
  std::vector<Op> ops{};                // drawn equally often; empty: they do not
  std::vector<std::int64_t> windows{};  // an axis: positions of a window, 0: drawn, -1: none, atoms stay
  std::vector<std::uint64_t> sizes{};   // cumulated weights of drawn windows of 2, 3, ... positions

  bool drawn() const {
    for (const std::int64_t window : windows)
      if (window == 0) return true;
    return false;
  }
};

// Of a source; bit masks of axes.
struct PooledView {
  std::uint32_t prefixed = 0, circular = 0;
  Source source{};
  bool operator==(const PooledView&) const = default;
};

// Where the cells of a pooled view stand.
struct PooledLayout {
  static constexpr std::int64_t turns = 3;  // of a circular axis

  std::vector<std::int64_t> stride, repeats;  // an axis
  std::size_t lead = 0, plane = 0;            // zeros ahead, and cells behind them

  PooledLayout(const std::vector<std::int64_t>& shape, const PooledView& view) : stride(shape.size()), repeats(shape.size()) {
    std::int64_t cells = 1, zeros = 0;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      stride[axis] = cells;
      repeats[axis] = view.circular >> axis & 1u ? turns : 1;
      if (view.prefixed >> axis & 1u) zeros += cells;
      cells *= shape[axis] * repeats[axis];
      if (cells >= std::int64_t{1} << 31) throw std::invalid_argument("too many cells: fewer features or circular axes");
    }
    lead = static_cast<std::size_t>(zeros);
    plane = static_cast<std::size_t>(cells);
  }

  std::size_t cells() const { return lead + plane; }
};

// Writes the values of one source, which has the sample's shape, to a plane.
template <class Cell>
void fill_plane(const std::int64_t* values, const std::vector<std::int64_t>& shape, const PooledLayout& layout, Cell* plane) {
  const std::size_t rank = shape.size();
  const std::int64_t width = shape[rank - 1], runs = static_cast<std::int64_t>(layout.plane) / (width * layout.repeats[rank - 1]);
  for (std::int64_t run = 0; run < runs; ++run) {
    std::int64_t rest = run, from = 0, step = width;  // from: of the run's values in the sample
    for (std::size_t axis = rank - 1; axis-- > 0;) {
      from += rest % (shape[axis] * layout.repeats[axis]) % shape[axis] * step;
      rest /= shape[axis] * layout.repeats[axis];
      step *= shape[axis];
    }
    for (std::int64_t turn = 0; turn < layout.repeats[rank - 1]; ++turn)
      for (std::int64_t i = 0; i < width; ++i) *plane++ = static_cast<Cell>(values[from + i]);
  }
}

// Adds to each cell of a view, its lead included, the one a stride before it, axis by axis.
template <class Cell>
void accumulate_on(Cell* view, std::size_t cells, const PooledLayout& layout, std::uint32_t prefixed) {
  for (std::size_t axis = layout.stride.size(); axis-- > 0;) {
    const auto stride = static_cast<std::size_t>(layout.stride[axis]);
    if (!(prefixed >> axis & 1u)) continue;
    for (std::size_t i = stride; i < cells; ++i)
      view[i] = static_cast<Cell>(static_cast<std::uint64_t>(view[i]) + static_cast<std::uint64_t>(view[i - stride]));
  }
}

}  // namespace morf
