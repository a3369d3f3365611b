// Gini scores of the sorted rows of small nodes, eight candidates side by side.
//
// A key is a row's value above its *code*: class, weight, and the weight of its class at the node. Sorted keys thus carry all
// that a scan from left to right needs, and its steps are a few instructions for all lanes. Scores are taken in single
// precision first, to find the candidates that may be best; only those are worth the exact expression.
#pragma once

#if defined(__AVX2__)
#define MORFOREST_PACKED_KEYS 1
#include <immintrin.h>
#else
#define MORFOREST_PACKED_KEYS 0
#endif

#include <cstddef>
#include <cstdint>

#include "base/simd.hpp"

namespace morf {

struct Codes {
  static constexpr int bits = 15;
  static constexpr std::uint32_t max_classes = 16, max_weight = 15, max_total = 127;

  static std::uint32_t make(std::uint32_t label, std::uint32_t weight, std::uint32_t class_total) {
    return label | weight << 4 | class_total << 8;
  }
  static std::uint32_t label(std::uint32_t key) { return key & 15; }
  static std::uint32_t weight(std::uint32_t key) { return key >> 4 & 15; }
  static std::uint32_t class_total(std::uint32_t key) { return key >> 8 & 127; }
  static std::uint32_t value(std::uint32_t key) { return key >> bits; }
};

// Of a node: the sum of squares of its class weights, its weight, and its number of classes.
struct GiniTotals {
  std::uint32_t squares, weight, classes;
};

// A split of one lane, after so many of its rows.
struct CodedSplit {
  double score;
  std::size_t rows;
};

#if MORFOREST_PACKED_KEYS

// keys[k * lanes + lane] = from[lane][i + k] above code[k], for a square of rows and lanes.
inline void make_coded_keys(const std::uint16_t* const* from, std::size_t i, const std::uint32_t* code, std::uint32_t* keys) {
  __m128i lane[lanes], twos[lanes], fours[lanes];
  for (std::size_t k = 0; k < lanes; ++k) lane[k] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from[k] + i));
  for (std::size_t k = 0; k < 4; ++k) {  // twos[k], twos[k + 4]: rows 0-3 and 4-7 of lanes k and k + 4
    twos[k] = _mm_unpacklo_epi16(lane[k], lane[k + 4]);
    twos[k + 4] = _mm_unpackhi_epi16(lane[k], lane[k + 4]);
  }
  for (std::size_t k = 0; k < 2; ++k) {
    fours[2 * k] = _mm_unpacklo_epi16(twos[4 * k], twos[4 * k + 2]);
    fours[2 * k + 1] = _mm_unpackhi_epi16(twos[4 * k], twos[4 * k + 2]);
    fours[2 * k + 4] = _mm_unpacklo_epi16(twos[4 * k + 1], twos[4 * k + 3]);
    fours[2 * k + 5] = _mm_unpackhi_epi16(twos[4 * k + 1], twos[4 * k + 3]);
  }
  for (std::size_t k = 0; k < lanes; ++k) {
    const __m128i even = fours[k / 2], odd = fours[k / 2 + 4];
    const __m128i row = k % 2 == 0 ? _mm_unpacklo_epi16(even, odd) : _mm_unpackhi_epi16(even, odd);
    const __m256i key = _mm256_or_si256(_mm256_slli_epi32(_mm256_cvtepu16_epi32(row), Codes::bits),
                                        _mm256_set1_epi32(static_cast<int>(code[k])));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(keys + k * lanes), key);
  }
}

// highest[lane]: the highest score of a split of that lane within a few units in the last place, 0 where there is no split.
// Left weights by class are bytes, four to a word; shifts by 32 and more, or by less than nothing, give zero.
template <int words>
void highest_coded_scores(const std::uint32_t* keys, std::size_t size, const GiniTotals& total, float* highest) {
  const auto load = [&](std::size_t i) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(keys + i * lanes)); };
  const __m256i all_squares = _mm256_set1_epi32(static_cast<int>(total.squares));
  const __m256 all_weight = _mm256_set1_ps(static_cast<float>(total.weight));
  __m256i left[words], left_sum = _mm256_setzero_si256(), products = left_sum, left_weight = left_sum;
  for (int word = 0; word < words; ++word) left[word] = _mm256_setzero_si256();
  __m256 best = _mm256_setzero_ps();
  __m256i key = load(0);
  for (std::size_t i = 0; i + 1 < size; ++i) {
    const __m256i next = load(i + 1);
    const __m256i weight = _mm256_and_si256(_mm256_srli_epi32(key, 4), _mm256_set1_epi32(15));
    const __m256i class_total = _mm256_and_si256(_mm256_srli_epi32(key, 8), _mm256_set1_epi32(127));
    __m256i shift = _mm256_slli_epi32(_mm256_and_si256(key, _mm256_set1_epi32(15)), 3);
    __m256i in_class = _mm256_setzero_si256();
    for (int word = 0; word < words; ++word) {
      in_class = _mm256_or_si256(in_class, _mm256_srlv_epi32(left[word], shift));
      left[word] = _mm256_add_epi32(left[word], _mm256_sllv_epi32(weight, shift));
      shift = _mm256_sub_epi32(shift, _mm256_set1_epi32(32));
    }
    in_class = _mm256_and_si256(in_class, _mm256_set1_epi32(255));
    const __m256i twice_and_more = _mm256_add_epi32(_mm256_add_epi32(in_class, in_class), weight);
    left_sum = _mm256_add_epi32(left_sum, _mm256_madd_epi16(weight, twice_and_more));
    products = _mm256_add_epi32(products, _mm256_madd_epi16(weight, class_total));
    left_weight = _mm256_add_epi32(left_weight, weight);
    const __m256i right_sum = _mm256_add_epi32(_mm256_sub_epi32(all_squares, _mm256_add_epi32(products, products)), left_sum);
    const __m256 lw = _mm256_cvtepi32_ps(left_weight), rw = _mm256_sub_ps(all_weight, lw);
    const __m256 score = _mm256_div_ps(
        _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(left_sum), rw), _mm256_mul_ps(_mm256_cvtepi32_ps(right_sum), lw)),
        _mm256_mul_ps(lw, rw));
    const __m256i same = _mm256_cmpeq_epi32(_mm256_srli_epi32(key, Codes::bits), _mm256_srli_epi32(next, Codes::bits));
    best = _mm256_max_ps(_mm256_andnot_ps(_mm256_castsi256_ps(same), score), best);
    key = next;
  }
  _mm256_storeu_ps(highest, best);
}

inline void highest_coded_scores(const std::uint32_t* keys, std::size_t size, const GiniTotals& total, float* highest) {
  if (total.classes <= 4) highest_coded_scores<1>(keys, size, total, highest);
  else if (total.classes <= 8) highest_coded_scores<2>(keys, size, total, highest);
  else if (total.classes <= 12) highest_coded_scores<3>(keys, size, total, highest);
  else highest_coded_scores<4>(keys, size, total, highest);
}

#else

// Without AVX2 no criterion has codes, and nobody calls these.
void make_coded_keys(const std::uint16_t* const* from, std::size_t i, const std::uint32_t* code, std::uint32_t* keys);
void highest_coded_scores(const std::uint32_t* keys, std::size_t size, const GiniTotals& total, float* highest);

#endif

}  // namespace morf
