// Sorting: of a few keys in many lanes at once, and of many keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/simd.hpp"

namespace morf {

inline constexpr std::size_t sort_block = 16;  // rows of keys that are sorted in registers

// The rows that sort_lanes needs room for.
constexpr std::size_t sorted_rows(std::size_t size) { return (size + sort_block - 1) / sort_block * sort_block; }

// Sorts each lane of keys[i * lanes + lane], i < size. There must be room for sorted_rows(size) rows, and all of it is written.
void sort_lanes(std::uint32_t* keys, std::size_t size);
void sort_lanes(std::int64_t* keys, std::size_t size);  // signed: AVX2 compares no other keys of 64 bits

// Sorts value << 32 | position, with values of so many bits and positions in ascending order: by digits of the value,
// the lowest first, which beats comparisons unless keys are few.
void sort_packed(std::vector<std::uint64_t>& keys, std::vector<std::uint64_t>& scratch, int value_bits);

// A value and its place. Equal values are sorted by their places.
template <class Value>
struct Keyed {
  Value value;
  std::uint32_t position;
};
void sort_keyed(std::vector<Keyed<std::int64_t>>& keys);
void sort_keyed(std::vector<Keyed<double>>& keys);

}  // namespace morf
