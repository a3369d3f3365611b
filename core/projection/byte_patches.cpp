#include "projection/byte_patches.hpp"

#if MORFOREST_BYTE_PATCHES
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <vector>

namespace morf {

bool suits_byte_patches(const Dictionary& dictionary) {
  if (!MORFOREST_BYTE_PATCHES || dictionary.components().size() != 1 || !dictionary.layout().raw()) return false;
  const Component& component = dictionary.components()[0];
  if (component.kind != Component::Kind::patch || component.pooled() || component.axes.empty() || component.weights.any())
    return false;
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

namespace {

class BytePatchProjector final : public Projection<std::uint16_t> {
 public:
  // The table's type is CellType::bytes.
  BytePatchProjector(const Table& table, const Dictionary& dictionary)
      : base_(reinterpret_cast<const std::uint8_t*>(table.buffer().row(0))), stride_(table.buffer().stride()),
        row_bytes_(table.cells()), width_(static_cast<std::uint32_t>(dictionary.shape().back())),
        plane_rows_(rows_of_plane(dictionary)) {
    for (std::uint32_t width = 0; width <= byte_patch_width; ++width) {
      const auto bytes = static_cast<long long>(width == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * width)) - 1);
      masks_[width] = _mm_set1_epi64x(bytes);
    }
  }

  void operator()(const std::uint32_t* rows, std::size_t row_count, const AtomList& atoms, std::size_t first,
                  std::size_t atom_count, std::uint16_t* values, std::size_t values_stride,
                  Range<std::uint16_t>* ranges) override {
    patches_.resize(atom_count);
    std::uint32_t height = 1;
    for (std::size_t j = 0; j < atom_count; ++j) {
      patches_[j] = patch_of(atoms, first + j);
      height = std::max(height, patches_[j].height);
    }
    if (height <= 2) run<1>(rows, row_count, values, values_stride);
    else run<2>(rows, row_count, values, values_stride);
    for (std::size_t j = 0; j < atom_count; ++j) {
      __m128i low = patches_[j].low, high = patches_[j].high;  // folded in half three times
      low = _mm_min_epi16(low, _mm_shuffle_epi32(low, _MM_SHUFFLE(1, 0, 3, 2)));
      high = _mm_max_epi16(high, _mm_shuffle_epi32(high, _MM_SHUFFLE(1, 0, 3, 2)));
      low = _mm_min_epi16(low, _mm_srli_epi64(low, 32));
      high = _mm_max_epi16(high, _mm_srli_epi64(high, 32));
      low = _mm_min_epi16(low, _mm_srli_epi64(low, 16));
      high = _mm_max_epi16(high, _mm_srli_epi64(high, 16));
      ranges[j] = {static_cast<std::uint16_t>(_mm_cvtsi128_si32(low)), static_cast<std::uint16_t>(_mm_cvtsi128_si32(high))};
    }
  }

  std::unique_ptr<Projection<std::uint16_t>> copy() const override { return std::make_unique<BytePatchProjector>(*this); }

 private:
  static constexpr std::size_t block = row_block;  // a vector of values

  struct Box {
    __m128i mask[4];       // of each row, twice
    std::size_t start[4];  // the first byte of each row
  };

  struct Patch {
    Box box;
    __m128i low, high;  // the range of the values so far, by place in the block
    std::uint32_t height;
  };

  // How many rows a patch may span before it would enter another plane; 1 where patches are one row high.
  static std::uint32_t rows_of_plane(const Dictionary& dictionary) {
    const auto& axes = dictionary.components()[0].axes;
    return axes.size() > 1 && axes[axes.size() - 2].prefixed ? static_cast<std::uint32_t>(axes[axes.size() - 2].length) : 1;
  }

  // Reads the box off the atom's corners: the last cell is its last byte; the one before lies left of the
  // box, or above it where its first column is 0; the first cell lies in the row above.
  Patch patch_of(const AtomList& atoms, std::size_t j) const {
    const std::uint32_t* const cell = &atoms.cell[atoms.begin[j]];
    const auto count = static_cast<std::uint32_t>(atoms.terms(j));
    const std::uint32_t last = cell[count - 1];
    std::uint32_t height, width;
    if (count == 4) {
      width = last - cell[2];
      height = 1;
      for (std::uint32_t up = last - cell[1]; up > width_; up -= width_) ++height;
    } else {
      const bool left = count == 2 && last / width_ == cell[0] / width_, above = count == 2 && !left;
      width = left ? last - cell[0] : last % width_ + 1;
      height = above ? (last - cell[0]) / width_ : last / width_ % plane_rows_ + 1;
    }
    Patch patch;
    patch.height = height;
    const std::size_t start = last - (height - 1) * width_ - (width - 1);
    for (std::uint32_t row = 0; row < 4; ++row) patch.box.start[row] = start + row * width_;
    for (std::uint32_t row = 0; row < 4; ++row) patch.box.mask[row] = masks_[row < height ? width : 0];
    patch.low = _mm_set1_epi16(std::numeric_limits<std::int16_t>::max());
    patch.high = _mm_setzero_si128();
    return patch;
  }

  template <int pairs>
  void run(const std::uint32_t* rows, std::size_t row_count, std::uint16_t* values, std::size_t values_stride) {
    constexpr std::size_t group = 8;  // patches between two steps of the prefetch
    const std::size_t patch_count = patches_.size();
    Prefetch prefetch(rows, row_count, patch_count * pairs, row_bytes_, (patch_count + group - 1) / group, base_, stride_);
    for (std::size_t i = 0; i < row_count; i += block) {
      const std::size_t size = std::min(block, row_count - i);
      const std::uint8_t* bytes[block];
      for (std::size_t b = 0; b < block; ++b) bytes[b] = base_ + rows[std::min(i + b, row_count - 1)] * stride_;
      prefetch.begin_block(i);
      for (std::size_t j = 0; j < patch_count; j += group) {
        prefetch.step();
        const std::size_t patches = std::min(group, patch_count - j);
        std::uint16_t* out = values + j * values_stride + i;
        if (size <= block / 2) project_block<pairs, true>(bytes, &patches_[j], patches, out, values_stride);
        else project_block<pairs, false>(bytes, &patches_[j], patches, out, values_stride);
      }
    }
  }

  // The values of eight rows, each below 2^15, for each patch; half: of the first four, twice. The rows' addresses stay in
  // registers.
  template <int pairs, bool half>
  static void project_block(const std::uint8_t* const* bytes, Patch* patch, std::size_t patches, std::uint16_t* out,
                            std::size_t out_stride) {
    const std::uint8_t *const r0 = bytes[0], *const r1 = bytes[1], *const r2 = bytes[2], *const r3 = bytes[3],
                              *const r4 = bytes[4], *const r5 = bytes[5], *const r6 = bytes[6], *const r7 = bytes[7];
    for (Patch* const end = patch + patches; patch != end; ++patch, out += out_stride) {
      const Box at = patch->box;
      const __m128i first = _mm_packs_epi32(two<pairs>(r0, r1, at), two<pairs>(r2, r3, at));
      const __m128i second = half ? first : _mm_packs_epi32(two<pairs>(r4, r5, at), two<pairs>(r6, r7, at));
      const __m128i sums = _mm_packs_epi32(first, second);
      patch->low = _mm_min_epi16(patch->low, sums);
      patch->high = _mm_max_epi16(patch->high, sums);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out), sums);
    }
  }

  // The patch's values in two rows, in 64 bits each.
  template <int pairs>
  static __m128i two(const std::uint8_t* a, const std::uint8_t* b, const Box& at) {
    __m128i total = _mm_setzero_si128();
    for (int k = 0; k < 2 * pairs; ++k) {
      const __m128i low = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(a + at.start[k]));
      const __m128i both = _mm_castpd_si128(
          _mm_loadh_pd(_mm_castsi128_pd(low), reinterpret_cast<const double*>(b + at.start[k])));
      total = _mm_add_epi32(total, _mm_sad_epu8(_mm_and_si128(both, at.mask[k]), _mm_setzero_si128()));
    }
    return total;
  }

  const std::uint8_t* base_;
  std::size_t stride_, row_bytes_;
  std::uint32_t width_, plane_rows_;
  __m128i masks_[byte_patch_width + 1];  // of eight bytes, twice, by width
  std::vector<Patch> patches_;
};

}  // namespace

std::unique_ptr<Projection<std::uint16_t>> make_byte_patch_projection(const Table& table, const Dictionary& dictionary) {
  if (!suits_byte_patches(dictionary)) throw std::invalid_argument("tables of bytes need a dictionary of narrow patches");
  return std::make_unique<BytePatchProjector>(table, dictionary);
}

#else

std::unique_ptr<Projection<std::uint16_t>> make_byte_patch_projection(const Table&, const Dictionary&) {
  throw std::invalid_argument("this processor has no patches of bytes");
}

#endif

}  // namespace morf
