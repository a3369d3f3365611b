// Projection of byte images onto narrow patches, without prefix sums.
//
// A prefix-sum row of 28 x 28 bytes takes 1,570 bytes, the image itself 784. Growing streams whole rows through the
// caches, so half the bytes are worth a few more additions, and one instruction adds eight neighbouring bytes. This is
// a faster twin of Projector for one common case; both give the same values.
#pragma once

#if defined(__SSE2__)
#define MORFOREST_BYTE_PATCHES 1
#include <emmintrin.h>
#else
#define MORFOREST_BYTE_PATCHES 0
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "project.hpp"
#include "table.hpp"

namespace morf {

// Patches of at most this many rows of at most eight bytes.
inline constexpr std::int64_t byte_patch_height = 4, byte_patch_width = 8;

// Whether all atoms of a dictionary are such patches: contiguous on the last axis or the last two, one wide on others.
inline bool suits_byte_patches(const Dictionary& dictionary) {
  if (!MORFOREST_BYTE_PATCHES || dictionary.components().size() != 1) return false;
  const Component& component = dictionary.components()[0];
  if (component.kind != Component::Kind::patch || component.axes.empty()) return false;
  std::int64_t runs = 1;
  for (std::size_t axis = 0; axis + 1 < component.axes.size(); ++axis) {
    const PatchAxis& a = component.axes[axis];
    if (!a.contiguous || a.boundary == Boundary::wrap || (a.max_size > 1 && axis + 2 != component.axes.size())) return false;
    runs *= a.max_size;
  }
  const PatchAxis& last = component.axes.back();
  return last.prefixed && last.boundary != Boundary::wrap && last.max_size <= byte_patch_width && runs <= byte_patch_height;
}

#if MORFOREST_BYTE_PATCHES

class BytePatchProjector final : public Projection<std::int32_t> {
 public:
  // The table's type is CellType::bytes.
  BytePatchProjector(const Table& table, const Dictionary& dictionary)
      : base_(reinterpret_cast<const std::uint8_t*>(table.buffer().row(0))), stride_(table.buffer().stride()),
        width_(static_cast<std::uint32_t>(dictionary.shape().back())), plane_rows_(rows_of_plane(dictionary)) {}

  void operator()(const std::uint32_t* rows, std::size_t row_count, const AtomList& atoms, std::size_t first,
                  std::size_t atom_count, std::int32_t* values, std::size_t values_stride) override {
    patches_.resize(atom_count);
    std::uint32_t height = 1;
    for (std::size_t j = 0; j < atom_count; ++j) {
      patches_[j] = patch_of(atoms, first + j);
      height = std::max(height, patches_[j].height);
    }
    if (height <= 2) run<1>(rows, row_count, values, values_stride);
    else run<2>(rows, row_count, values, values_stride);
  }

 private:
  struct Patch {
    std::uint32_t start;  // its first byte
    std::uint32_t height;
    __m128i mask[2];      // of two rows of eight bytes each
  };

  // How many rows a patch may span before it would enter another plane; 1 where patches are one row high.
  static std::uint32_t rows_of_plane(const Dictionary& dictionary) {
    const auto& axes = dictionary.components()[0].axes;
    return axes.size() > 1 && axes[axes.size() - 2].prefixed ? static_cast<std::uint32_t>(axes[axes.size() - 2].length) : 1;
  }

  // Reads the rectangle off the atom's corners: the largest cell is its last byte; a smaller cell in the same row is the
  // byte before its first; a cell in an earlier row lies in the row before its first.
  Patch patch_of(const AtomList& atoms, std::size_t j) const {
    const std::uint32_t* begin = &atoms.cell[atoms.begin[j]];
    const std::uint32_t* end = &atoms.cell[0] + atoms.begin[j + 1];
    const std::uint32_t last = *std::max_element(begin, end), low = *std::min_element(begin, end);
    const std::uint32_t last_row = last / width_, low_row = low / width_;
    std::uint32_t height = last_row != low_row ? last_row - low_row : last_row % plane_rows_ + 1;
    std::uint32_t width = last % width_ + 1;
    for (const std::uint32_t* cell = begin; cell != end; ++cell)
      if (*cell / width_ == last / width_ && *cell != last) width = last - *cell;
    Patch patch;
    patch.height = height;
    patch.start = last - (height - 1) * width_ - (width - 1);
    const std::uint64_t bytes = width == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * width)) - 1;
    for (std::uint32_t pair = 0; pair < 2; ++pair)
      patch.mask[pair] = _mm_set_epi64x(static_cast<long long>(2 * pair + 1 < height ? bytes : 0),
                                        static_cast<long long>(2 * pair < height ? bytes : 0));
    return patch;
  }

  template <int pairs>
  void run(const std::uint32_t* rows, std::size_t row_count, std::int32_t* values, std::size_t values_stride) const {
    constexpr std::size_t block = 8;
    for (std::size_t i = 0; i < row_count; i += block) {
      const std::size_t size = std::min(block, row_count - i);
      const std::uint8_t* bytes[block];
      for (std::size_t b = 0; b < size; ++b) bytes[b] = base_ + rows[i + b] * stride_;
      for (std::size_t j = 0; j < patches_.size(); ++j) {
        const Patch patch = patches_[j];
        std::int32_t* out = values + j * values_stride + i;
        for (std::size_t b = 0; b < size; ++b) out[b] = sum<pairs>(bytes[b] + patch.start, patch);
      }
    }
  }

  template <int pairs>
  std::int32_t sum(const std::uint8_t* at, const Patch& patch) const {
    const __m128i zero = _mm_setzero_si128();
    __m128i total = zero;
    for (int pair = 0; pair < pairs; ++pair, at += 2 * width_) {
      const __m128i low = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
      const __m128i both = _mm_castpd_si128(_mm_loadh_pd(_mm_castsi128_pd(low), reinterpret_cast<const double*>(at + width_)));
      total = _mm_add_epi64(total, _mm_sad_epu8(_mm_and_si128(both, patch.mask[pair]), zero));
    }
    return _mm_cvtsi128_si32(_mm_add_epi64(total, _mm_unpackhi_epi64(total, total)));
  }

  const std::uint8_t* base_;
  std::size_t stride_;
  std::uint32_t width_, plane_rows_;
  std::vector<Patch> patches_;
};

#endif

}  // namespace morf
