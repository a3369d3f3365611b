// The table: samples as rows of cells in their narrowest exact type, with the planes that a dictionary looks at.
//
// A cell of an integer table is the fixed-point value round(x * 2^shift), or a wrapping prefix sum of such values: sums
// may overflow the cell type, differences that fit it are exact all the same. Float64 tables hold x * 2^shift unrounded
// and have no prefix sums.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "data/gaps.hpp"
#include "data/row_layout.hpp"
#include "data/samples.hpp"

namespace morf {

// `bytes` are raw 8-bit values for narrow patches, which are summed without prefix sums; see byte_patches.hpp.
enum class CellType : std::uint8_t { u8, u16, i16, i32, i64, f64, bytes };

// The type of an atom's value. Values of bytes and of unsigned 16-bit cells stay below 2^16; half the width is half the
// traffic between projection and split search, and twice the lanes per instruction.
template <class Cell>
using ValueOf = std::conditional_t<std::is_floating_point_v<Cell>, double,
                                   std::conditional_t<sizeof(Cell) == 8, std::int64_t,
                                                      std::conditional_t<std::is_unsigned_v<Cell>, std::uint16_t, std::int32_t>>>;

// Calls `use` with a value of the cell's C++ type.
template <class Use>
decltype(auto) with_cell_type(CellType type, Use use) {
  switch (type) {
    case CellType::u8:
    case CellType::bytes: return use(std::uint8_t{});
    case CellType::u16: return use(std::uint16_t{});
    case CellType::i16: return use(std::int16_t{});
    case CellType::i32: return use(std::int32_t{});
    case CellType::i64: return use(std::int64_t{});
    case CellType::f64: break;
  }
  return use(double{});
}

// How the value of a feature becomes a cell.
class Quantiser {
 public:
  // Integers are clamped to +-limit, so that no atom's sum can overflow int64.
  Quantiser(int shift, double limit) : shift_(shift), scale_(std::ldexp(1.0, shift)), limit_(limit) {}

  // Whether small integers are cells as they are.
  bool exact() const { return shift_ == 0; }

  template <class In>
  std::int64_t integer(In x) const {
    if constexpr (std::is_integral_v<In>) {
      if (shift_ == 0) {
        if constexpr (sizeof(In) < 8) return static_cast<std::int64_t>(x);
        const auto bound = static_cast<std::int64_t>(limit_);
        return std::min<std::int64_t>(std::max<std::int64_t>(x, -bound), bound);
      }
    }
    return std::llrint(std::min(std::max(static_cast<double>(x) * scale_, -limit_), limit_));
  }

  // The same for values that round to less than 2^31 in size, without a call: in a float64 between 2^52 and 2^53 the last bit
  // is the unit, and the addition rounds half to even.
  template <class In>
  std::int32_t small_integer(In x) const {
    const double shifted = static_cast<double>(x) * scale_ + 0x1.8p52;
    std::uint64_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(bits));
  }

  template <class In>
  double real(In x) const {
    return static_cast<double>(x) * scale_ + 0.0;  // + 0.0 turns -0.0 into 0.0, so that equal rows hash equally
  }

 private:
  int shift_;
  double scale_;
  double limit_;
};

// Rows start at multiples of 64 bytes: a row touches as few cache lines as it can. Large buffers ask for huge pages, because
// nodes visit rows far apart and would otherwise miss in the page tables at each of them.
class RowBuffer {
 public:
  // `margin` bytes behind the last row may be read.
  RowBuffer(std::size_t rows, std::size_t row_bytes, std::size_t margin = 0)
      : stride_((row_bytes + 63) / 64 * 64), bytes_(nullptr, Release{rows * stride_ >= huge_buffer}) {
    if (rows != 0 && stride_ > std::numeric_limits<std::size_t>::max() / 2 / rows) throw std::bad_alloc();
    const std::size_t bytes = std::max<std::size_t>(rows * stride_ + margin, 64);
    bytes_.reset(static_cast<std::byte*>(::operator new(bytes, bytes_.get_deleter().alignment())));
#if defined(__linux__)
    if (bytes_.get_deleter().huge) madvise(bytes_.get(), bytes, MADV_HUGEPAGE);
#endif
  }
  std::byte* row(std::size_t i) const { return bytes_.get() + i * stride_; }
  std::size_t stride() const { return stride_; }

 private:
  static constexpr std::size_t huge_page = std::size_t{1} << 21, huge_buffer = std::size_t{1} << 25;
  struct Release {
    bool huge;
    std::align_val_t alignment() const { return std::align_val_t{huge ? huge_page : 64}; }
    void operator()(std::byte* p) const { ::operator delete(p, alignment()); }
  };
  std::size_t stride_;
  std::unique_ptr<std::byte, Release> bytes_;
};

// Bytes are read eight at a time, in up to three lines below a patch's first, into the next sample or the margin behind the last.
// What is not needed is masked.
inline std::size_t byte_margin(const RowLayout& layout) { return 8 + 3 * static_cast<std::size_t>(layout.shape.back()); }

// How the cells of a table lie: row after row, or in *tiles*, where the same cell of some rows stands together. Nodes that draw
// atoms of their own read many cells of few rows. An atom that is applied to all rows reads few cells of each, a vector at a time.
enum class Arrangement : std::uint8_t { rows, tiles };
inline constexpr std::size_t tile_rows = 16;

class Table {
 public:
  // The rows have no values yet: `fill` must write each of them. Tables in tiles have no pooled planes, tables of bytes and of
  // float64 only the raw values, the latter without prefix sums.
  // Samples may have missing values if there is room for `gaps`; cells are then signed.
  Table(std::size_t rows, RowLayout layout, CellType type, Arrangement arrangement = Arrangement::rows, bool gaps = false);

  Table(const Samples& x, RowLayout layout, CellType type, const Quantiser& quantiser)
      : Table(x.rows(), std::move(layout), type) {
    fill(x, 0, quantiser);
  }

  // Writes samples to the rows from `first` on. Different threads may fill different rows at once.
  void fill(const Samples& x, std::size_t first, const Quantiser& quantiser);

  // Copies rows from `first` on, no more than are left in its tile, to the rows of a buffer from `to` on.
  template <class Cell>
  void read_tile(std::size_t first, std::size_t count, const RowBuffer& rows, std::size_t to) const {
    copy_tile<Cell>(first, count, rows, to, [](Cell& in_tile, Cell& in_row) { in_row = in_tile; });
  }

  // Whether atoms over such rows may be applied to this table.
  bool suits(const RowLayout& layout) const {
    return type_ == CellType::bytes ? layout_.shape == layout.shape && layout.raw() : layout_ == layout;
  }

  CellType type() const { return type_; }
  std::size_t rows() const { return rows_; }
  std::int64_t features() const { return layout_.features; }
  std::size_t cells() const { return layout_.cells(); }
  bool tiled() const { return tiled_; }
  std::size_t tiles() const { return (rows_ + tile_rows - 1) / tile_rows; }
  const RowBuffer& buffer() const { return buffer_; }  // of rows; or of tiles: cell after cell, and the rows of each
  const std::vector<std::uint64_t>& hash() const { return hash_; }  // of each row's values, and of what is missing there
  bool has_gaps() const { return !masks_.empty(); }
  const RowMask* mask(std::size_t row) const { return masks_.empty() ? nullptr : masks_[row].get(); }  // null: nothing is missing

 private:
  // Calls copy(cell in the tile, cell in the row) for all cells of some rows of a tile and of a buffer.
  template <class Cell, class Copy>
  void copy_tile(std::size_t first, std::size_t count, const RowBuffer& rows, std::size_t to, Copy copy) const {
    constexpr std::size_t some_cells = 16;  // of one row after another, so that their lines stay near
    Cell* const cells = reinterpret_cast<Cell*>(buffer_.row(first / tile_rows)) + first % tile_rows;
    for (std::size_t begin = 0; begin < layout_.cells(); begin += some_cells) {
      const std::size_t end = std::min(begin + some_cells, layout_.cells());
      for (std::size_t r = 0; r < count; ++r) {
        Cell* const row = reinterpret_cast<Cell*>(rows.row(to + r));
        for (std::size_t c = begin; c < end; ++c) copy(cells[c * tile_rows + r], row[c]);
      }
    }
  }

  std::size_t row_bytes() const {
    return layout_.cells() * with_cell_type(type_, [](auto cell) { return sizeof(cell); });
  }

  CellType type_;
  bool tiled_;
  std::size_t rows_;
  RowLayout layout_;
  RowBuffer buffer_;
  std::vector<std::uint64_t> hash_;
  std::vector<std::unique_ptr<RowMask>> masks_;  // of the rows, if some may have missing values
};

}  // namespace morf
