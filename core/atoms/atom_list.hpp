// The record of atoms: what a split looks at.
//
// An atom is a short list of weighted cells of a row, its *terms* (see row_layout.hpp for what stands in a row). A linear atom's
// value is the sum of its terms. Other atoms have an *operation*.
//
// A *pooled* atom is a linear atom that moves over a *window* of positions along one or two axes. Its value is the highest, the
// lowest or the sum of the responses there, or the number of those above a *bias*. Or it has *rivals*, linear atoms of as many
// terms behind its own, and its value is the number of positions at which it responds more than each of them. A variance is that
// of one box, from the sum of its values and the sum of their squares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/gaps.hpp"
#include "data/row_layout.hpp"

namespace morf {

// The numbers are part of saved models. `lose` is drawn only: it is `win` with negated weights.
enum class Op : std::uint8_t { none, max, min, mean, proportion, variance, win, lose };
inline constexpr auto last_op = static_cast<std::uint8_t>(Op::win);

struct Window {
  std::uint32_t count = 1, stride = 0;  // positions, and cells between neighbours
};

// What an atom makes of its linear responses.
struct Operation {
  Op op = Op::none;
  Window window[2]{};      // along an earlier and a later axis
  std::int64_t bias = 0;   // proportion: what responses are compared with; win: the number of rivals
  std::uint64_t draw = 0;  // proportion: the row whose response becomes the bias, as a 64-bit fraction of the node's count
  std::uint64_t position = 0;  // and its position

  bool pooled() const { return op != Op::none && op != Op::variance; }
  std::uint64_t positions() const { return std::uint64_t{window[0].count} * window[1].count; }
  // Cells from the first position to the last.
  std::uint64_t reach() const {
    return std::uint64_t{window[0].count - 1} * window[0].stride + std::uint64_t{window[1].count - 1} * window[1].stride;
  }
  // How many of an atom's terms are its own, and not those of its rivals.
  std::size_t own(std::size_t terms) const { return op == Op::win ? terms / (static_cast<std::size_t>(bias) + 1) : terms; }
};

// A cell with a small weight.
struct Corner {
  std::uint32_t cell;
  std::int32_t weight;
};

// Where a split sends samples whose missing values its atom touches: gaps too, or absent values alone (see gaps.hpp). `none`: absent
// values go to the child of more weight. The numbers are part of saved models.
enum class Side : std::uint8_t { none, gap_left, gap_right, absent_left, absent_right };
inline constexpr auto last_side = static_cast<std::uint8_t>(Side::absent_right);

inline Mark mark_of(Side side) { return side == Side::gap_left || side == Side::gap_right ? Mark::gap : Mark::absent; }
inline bool goes_left(Side side) { return side == Side::gap_left || side == Side::absent_left; }

struct AtomList {
  std::vector<std::uint64_t> begin{0};  // atom i owns terms begin[i] .. begin[i + 1] - 1
  std::vector<std::uint32_t> cell;
  std::vector<double> weight;
  std::vector<Operation> operation;  // one per atom; empty where all are linear
  std::vector<Side> side{};  // one per atom; only for candidates of a node where values are missing

  std::size_t size() const { return begin.size() - 1; }
  std::size_t terms(std::size_t atom) const { return begin[atom + 1] - begin[atom]; }
  Operation operation_of(std::size_t atom) const { return operation.empty() ? Operation{} : operation[atom]; }

  void clear() {
    begin.resize(1);
    cell.clear();
    weight.clear();
    operation.clear();
    side.clear();
  }
  void add_term(std::uint32_t c, double w) {
    cell.push_back(c);
    weight.push_back(w);
  }
  void add_corners(const Corner* corners, std::size_t count) {
    for (std::size_t t = 0; t < count; ++t) add_term(corners[t].cell, corners[t].weight);
  }
  void close_atom() { begin.push_back(cell.size()); }

  // Appends an atom of another list, but not its operation.
  void append_terms(const AtomList& from, std::size_t atom) {
    cell.insert(cell.end(), from.cell.begin() + from.begin[atom], from.cell.begin() + from.begin[atom + 1]);
    weight.insert(weight.end(), from.weight.begin() + from.begin[atom], from.weight.begin() + from.begin[atom + 1]);
    close_atom();
  }

  // Appends an atom of another list with its operation.
  void append(const AtomList& from, std::size_t atom) {
    append_terms(from, atom);
    if (!from.operation.empty()) operation.push_back(from.operation[atom]);
  }
  // Keeps the first atoms.
  void truncate(std::size_t count) {
    begin.resize(count + 1);
    cell.resize(begin[count]);
    weight.resize(begin[count]);
    if (!operation.empty()) operation.resize(count);
    if (!side.empty()) side.resize(count);
  }

  // Keeps of each atom the terms that are its own and have weight: rivals may need more.
  void drop_rivals();

  // Throws std::invalid_argument unless the whole list makes sense over such rows, so that nothing that reads it afterwards,
  // prediction, importances or attributions, leaves a row or a sample:
  //  - sizes fit, `begin` rises, cells exist, weights are finite and, unless cells are `real`, whole numbers;
  //  - linear atoms and variances stand in plain planes, pooled ones in at most two pooled planes and stay inside these at all
  //    positions of their windows, which lie along axes of the planes and are not longer than these;
  //  - over prefix sums of a pooled plane, which go on, weights cancel: else the atom would reach back to the plane's beginning;
  //  - rivals share the terms; a variance has the sum of a box and, times its area, the same of the squares.
  // Atoms without terms, which leaves have, are linear. The cost is linear in the terms, but for a sort of each pooled atom's.
  void check(const RowLayout& layout, bool real) const;
};

}  // namespace morf
