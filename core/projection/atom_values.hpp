// The values of many atoms for each sample, one column per atom.
//
// Atoms that differ in their place, window, operation and bias alone have the same terms, but for a shift. Their responses are
// computed once for all of them: a *group* holds such atoms, and *spans* of cells that their windows cover.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "atoms/atom_list.hpp"
#include "data/table.hpp"
#include "projection/projection.hpp"

namespace morf {

class AtomValues {
 public:
  // A column is the value of its atom times `scale`. Throws std::invalid_argument if the atoms make no sense over such rows, or a
  // scale is not finite. With `real` atoms are over float64 cells, and may have any weights.
  AtomValues(RowLayout layout, AtomList atoms, std::vector<double> scale, bool real);

  std::size_t size() const { return atoms_.size(); }
  std::int64_t features() const { return layout_.features; }

  // Writes out[rows][size()], NaN for atoms that touch absent values.
  void transform(const Samples& x, CellType type, const Quantiser& quantiser, float* out) const;
  void transform(const Samples& x, CellType type, const Quantiser& quantiser, double* out) const;

 private:
  // Cells from begin to end, as first cells of an atom.
  struct Span {
    std::uint64_t begin, end;
    std::size_t member_begin, member_end;  // in members_
  };

  bool grouped(std::size_t atom) const;
  void make_groups();
  std::uint32_t first_cell(std::size_t atom) const { return atoms_.cell[atoms_.begin[atom]]; }
  template <class Out>
  void transform_into(const Samples& x, CellType type, const Quantiser& quantiser, Out* out) const;
  template <class Cell, class Out>
  void correct(const Cell* row, const RowMask& mask, Out* out) const;
  template <class Cell, class Out>
  void apply(const Cell* row, Cell* responses, Out* out) const;

  RowLayout layout_;
  AtomList atoms_;
  std::vector<double> scale_;
  bool real_;
  std::vector<std::uint32_t> single_, members_;
  std::vector<Span> spans_;
  std::size_t longest_span_ = 0;
};

}  // namespace morf
