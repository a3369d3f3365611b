// Which side of a split samples go to whose missing values its atom touches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random.hpp"
#include "projection/gap_projection.hpp"

namespace morf {

inline constexpr std::uint64_t gap_share = 4;  // of the candidates, one in so many sends rows with gaps to one side

// Offers atoms from `first` on once for each side, where rows touch the missing values that the atom minds: absent ones, or for some
// atoms, which are drawn, gaps too. Others stay as they are.
class SideOffer {
 public:
  void operator()(const GapReader& gaps, const std::uint32_t* rows, std::size_t row_count, Stream& stream, AtomList& atoms,
                  std::size_t first) {
    drawn_.clear();
    for (std::size_t j = first; j < atoms.size(); ++j) drawn_.append(atoms, j);
    atoms.truncate(first);
    atoms.side.resize(first, Side::none);
    for (std::size_t j = 0; j < drawn_.size(); ++j) {
      const bool pooled = gaps.operation_of(drawn_, j).pooled();
      const Mark mark = !pooled && stream.next() / (~std::uint64_t{0} / gap_share + 1) == 0 ? Mark::gap : Mark::absent;
      bool touched = false;
      for (std::size_t i = 0; !touched && i < row_count; ++i) touched = gaps.touches(drawn_, j, rows[i], mark);
      atoms.append(drawn_, j);
      if (!touched) {
        atoms.side.push_back(Side::none);
        continue;
      }
      atoms.append(drawn_, j);
      atoms.side.push_back(mark == Mark::gap ? Side::gap_left : Side::absent_left);
      atoms.side.push_back(mark == Mark::gap ? Side::gap_right : Side::absent_right);
    }
  }

 private:
  AtomList drawn_;
};

}  // namespace morf
