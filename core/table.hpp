// The table: samples as rows of cells in their narrowest exact type, with the views a dictionary looks at.
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
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "dictionary.hpp"
#include "random.hpp"

namespace morf {

// `bytes` is raw 8-bit values for the patches of bytes.hpp, which are summed without prefix sums.
enum class CellType : std::uint8_t { u8, u16, i16, i32, i64, f64, bytes };

// The type of an atom's value. Values of bytes and of unsigned 16-bit cells stay below 2^16; half the width is half the
// traffic between projection and split search, and twice the lanes an instruction.
template <class Cell>
using ValueOf = std::conditional_t<
    std::is_floating_point_v<Cell>, double,
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

// How a feature value becomes a cell.
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

// What the cells of a row are: views of the sample one after the other, each of a source and with prefix sums along a mask of axes.
struct RowLayout {
  std::vector<std::int64_t> shape;
  std::vector<std::uint32_t> views;
  std::vector<Source> sources;           // of the views
  std::vector<PooledView> pooled_views;  // behind the others
  std::int64_t features = 1;

  RowLayout(std::vector<std::int64_t> sample_shape, std::vector<std::uint32_t> view_masks)
      : RowLayout(std::move(sample_shape), view_masks, std::vector<Source>(view_masks.size())) {}
  RowLayout(std::vector<std::int64_t> sample_shape, std::vector<std::uint32_t> view_masks, std::vector<Source> view_sources,
            std::vector<PooledView> views_to_pool = {})
      : shape(std::move(sample_shape)), views(std::move(view_masks)), sources(std::move(view_sources)),
        pooled_views(std::move(views_to_pool)) {
    if (shape.size() > max_rank) throw std::invalid_argument("more than 32 axes");
    for (const std::int64_t length : shape) {
      if (length < 1 || length > (std::int64_t{1} << 29)) throw std::invalid_argument("impossible sample shape");
      features *= length;
      if (features > (std::int64_t{1} << 29)) throw std::invalid_argument("more than 2^29 features");
    }
    const auto check = [](bool right) {
      if (!right) throw std::invalid_argument("impossible number of views");
    };
    check(views.size() + pooled_views.size() > 0 && sources.size() == views.size() && cells() <= (std::size_t{1} << 31));
    const Deriver deriver(shape);
    for (const Source& source : sources) deriver.check(source);
    for (const PooledView& view : pooled_views) {
      deriver.check(view.source);
      pooled_cells_ += PooledLayout(shape, view).cells();
      check(cells() <= (std::size_t{1} << 31));
    }
  }
  explicit RowLayout(const Dictionary& dictionary)
      : RowLayout(dictionary.shape(), dictionary.views(), dictionary.view_sources(), dictionary.pooled_views()) {}

  // The raw values alone, which is what tables of bytes hold.
  RowLayout unsummed() const { return RowLayout(shape, {0}); }

  std::size_t cells() const { return views.size() * static_cast<std::size_t>(features) + pooled_cells_ + 1; }
  // Whether some cells are sums of others.
  bool summed() const {
    return !pooled_views.empty() || std::any_of(views.begin(), views.end(), [](std::uint32_t axes) { return axes != 0; });
  }
  // Whether there are views of the raw values alone, and none for pooling.
  bool plain() const {
    return pooled_views.empty() &&
           std::all_of(sources.begin(), sources.end(), [](const Source& source) { return source.kind == Source::Kind::raw; });
  }

 private:
  std::size_t pooled_cells_ = 0;
};

// Replaces each cell of a view by the sum of the cells up to it along one axis.
template <class Cell>
void accumulate_along(Cell* view, std::int64_t features, std::int64_t length, std::int64_t stride) {
  using Wrapping = std::make_unsigned_t<std::conditional_t<std::is_integral_v<Cell>, Cell, std::int64_t>>;
  if (stride == 1) {  // the running sum stays in a register
    for (std::int64_t block = 0; block < features; block += length) {
      Wrapping sum = 0;
      for (std::int64_t i = block; i < block + length; ++i)
        view[i] = static_cast<Cell>(sum = static_cast<Wrapping>(sum + static_cast<Wrapping>(view[i])));
    }
    return;
  }
  for (std::int64_t block = 0; block < features; block += length * stride)
    for (std::int64_t i = block + stride; i < block + length * stride; ++i)
      view[i] = static_cast<Cell>(static_cast<Wrapping>(static_cast<Wrapping>(view[i]) + static_cast<Wrapping>(view[i - stride])));
}

// Bytes are read eight at a time, in up to three rows below a patch's first, into the next sample or the margin behind the last;
// what is not needed is masked.
inline std::size_t byte_margin(const RowLayout& layout) { return 8 + 3 * static_cast<std::size_t>(layout.shape.back()); }

// Replaces the values of a view by prefix sums.
template <class Cell>
void accumulate(Cell* view, const RowLayout& layout, std::uint32_t prefixed_axes) {
  std::int64_t stride = 1;
  for (std::size_t axis = layout.shape.size(); axis-- > 0;) {
    if (prefixed_axes >> axis & 1u) accumulate_along(view, layout.features, layout.shape[axis], stride);
    stride *= layout.shape[axis];
  }
}

// Writes the cells of one sample. Returns a hash of its values that does not depend on their input type.
template <bool hashed = true, class In, class Cell>
std::uint64_t fill_row(const In* x, const RowLayout& layout, const Quantiser& quantiser, Cell* row) {
  const std::int64_t p = layout.features;
  const auto put = [&](std::int64_t j) {  // writes a cell and returns what to hash
    std::uint64_t bits;
    if constexpr (std::is_floating_point_v<Cell>) {
      row[j] = quantiser.real(x[j]);
      std::memcpy(&bits, &row[j], sizeof bits);
    } else {
      const std::int64_t q = quantiser.integer(x[j]);
      row[j] = static_cast<Cell>(q);
      bits = static_cast<std::uint64_t>(q);
    }
    return bits;
  };
  const auto step = [](std::uint64_t h, std::uint64_t bits) { return (h ^ (h >> 29) ^ bits) * 0xBF58476D1CE4E5B9ULL; };
  std::uint64_t h0 = 1, h1 = 2, h2 = 3, h3 = 4;  // four independent chains hide the multiplier's latency
  std::int64_t j = 0;
  if constexpr (!hashed) {
    if constexpr (std::is_same_v<In, std::uint8_t> && std::is_integral_v<Cell>)  // a loop that compilers turn into vectors
      if (quantiser.exact())
        for (; j < p; ++j) row[j] = static_cast<Cell>(x[j]);
    if constexpr (std::is_floating_point_v<In> && std::is_integral_v<Cell> && sizeof(Cell) <= 4)
      for (; j < p; ++j) row[j] = static_cast<Cell>(quantiser.small_integer(x[j]));
    for (; j < p; ++j) put(j);
  }
  for (; j + 4 <= p; j += 4) {
    h0 = step(h0, put(j));
    h1 = step(h1, put(j + 1));
    h2 = step(h2, put(j + 2));
    h3 = step(h3, put(j + 3));
  }
  if (j < p) h0 = step(h0, put(j++));
  if (j < p) h1 = step(h1, put(j++));
  if (j < p) h2 = step(h2, put(j++));
  for (std::size_t v = 1; v < layout.views.size(); ++v) std::memcpy(row + v * p, row, p * sizeof(Cell));
  if constexpr (std::is_integral_v<Cell>)
    for (std::size_t v = 0; v < layout.views.size(); ++v) accumulate(row + v * p, layout, layout.views[v]);
  row[layout.cells() - 1] = 0;
  return mix(mix(mix(mix(h0) ^ h1) ^ h2) ^ h3);
}

// Writes the cells of one sample after another, whatever their sources. Holds scratch memory; one a thread.
template <class Cell>
class RowFiller {
 public:
  RowFiller(const RowLayout& layout, const Quantiser& quantiser)
      : layout_(layout), unsummed_(layout.unsummed()), quantiser_(quantiser), plain_(layout.plain()), derive_(layout.shape) {
    if (!plain_ && !std::is_integral_v<Cell>) throw std::invalid_argument("float64 tables have no derived channels and no pooled views");
    for (const PooledView& view : layout.pooled_views) pooled_.emplace_back(layout.shape, view);
  }

  template <bool hashed = true, class In>
  std::uint64_t operator()(const In* x, Cell* row) {
    if (plain_) return fill_row<hashed>(x, layout_, quantiser_, row);
    std::uint64_t hash = 0;
    if constexpr (std::is_integral_v<Cell>) {
      const auto p = static_cast<std::size_t>(layout_.features);
      raw_.resize(p + 1);
      hash = fill_row<hashed>(x, unsummed_, quantiser_, raw_.data());
      derive_.begin(raw_.data());
      for (std::size_t v = 0; v < layout_.views.size(); ++v) {
        const std::int64_t* const values = derive_(layout_.sources[v]);
        Cell* const view = row + v * p;
        for (std::size_t j = 0; j < p; ++j) view[j] = static_cast<Cell>(values[j]);
        accumulate(view, layout_, layout_.views[v]);
      }
      Cell* view = row + layout_.views.size() * p;
      for (std::size_t v = 0; v < pooled_.size(); ++v) {
        std::fill_n(view, pooled_[v].lead, Cell{0});
        fill_plane(derive_(layout_.pooled_views[v].source), layout_.shape, pooled_[v], view + pooled_[v].lead);
        accumulate_on(view, pooled_[v].cells(), pooled_[v], layout_.pooled_views[v].prefixed);
        view += pooled_[v].cells();
      }
      row[layout_.cells() - 1] = 0;
    }
    return hash;
  }

 private:
  const RowLayout& layout_;
  RowLayout unsummed_;
  Quantiser quantiser_;
  bool plain_;
  Deriver derive_;
  std::vector<std::int64_t> raw_;
  std::vector<PooledLayout> pooled_;
};

class Table {
 public:
  // Rows without values yet: `fill` must write each of them.
  Table(std::size_t rows, const Dictionary& dictionary, CellType type)
      : type_(type), rows_(rows),
        layout_(type == CellType::bytes ? RowLayout(dictionary).unsummed() : RowLayout(dictionary)),
        buffer_(rows, row_bytes(), type == CellType::bytes ? byte_margin(layout_) : 0), hash_(rows) {
    if (type == CellType::bytes && !RowLayout(dictionary).plain())
      throw std::invalid_argument("tables of bytes have no derived channels");
    if (type == CellType::f64 && !dictionary.direct())
      throw std::invalid_argument("float64 tables have no prefix sums: the dictionary must be direct");
  }

  template <class In>
  Table(const In* x, std::size_t rows, const Dictionary& dictionary, CellType type, const Quantiser& quantiser)
      : Table(rows, dictionary, type) {
    fill(x, 0, rows, quantiser);
  }

  // Writes `count` samples to the rows from `first` on. Different rows may be filled by different threads at once.
  template <class In>
  void fill(const In* x, std::size_t first, std::size_t count, const Quantiser& quantiser) {
    with_cell_type(type_, [&](auto cell) {
      using Cell = decltype(cell);
      RowFiller<Cell> fill(layout_, quantiser);
      for (std::size_t i = 0; i < count; ++i)
        hash_[first + i] = fill(x + i * layout_.features, reinterpret_cast<Cell*>(buffer_.row(first + i)));
    });
  }

  // Whether atoms over such rows may be applied to this table.
  bool suits(const RowLayout& layout) const {
    if (type_ == CellType::bytes) return layout_.shape == layout.shape && layout.plain();
    return layout_.shape == layout.shape && layout_.views == layout.views && layout_.sources == layout.sources &&
           layout_.pooled_views == layout.pooled_views;
  }
  bool suits(const Dictionary& dictionary) const { return suits(RowLayout(dictionary)); }

  CellType type() const { return type_; }
  std::size_t rows() const { return rows_; }
  std::int64_t features() const { return layout_.features; }
  std::size_t cells() const { return layout_.cells(); }
  bool summed() const { return layout_.summed(); }
  const RowBuffer& buffer() const { return buffer_; }
  const std::vector<std::uint64_t>& hash() const { return hash_; }

 private:
  std::size_t row_bytes() const {
    return layout_.cells() * with_cell_type(type_, [](auto cell) { return sizeof(cell); });
  }

  CellType type_;
  std::size_t rows_;
  RowLayout layout_;
  RowBuffer buffer_;
  std::vector<std::uint64_t> hash_;
};

}  // namespace morf
