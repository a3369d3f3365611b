// Projection of byte images onto narrow patches, without prefix sums.
//
// A prefix-sum row of 28 x 28 bytes takes 1,570 bytes, the image itself 784. Growing streams whole rows through the
// caches, so half the bytes are worth a few more additions, and one instruction adds eight neighbouring bytes. This is
// a faster twin of Projector for one common case; both give the same values.
#pragma once

#if defined(__SSE2__)
#define MORFOREST_BYTE_PATCHES 1
#else
#define MORFOREST_BYTE_PATCHES 0
#endif

#include <cstdint>
#include <memory>

#include "atoms/dictionary.hpp"
#include "projection/projection.hpp"

namespace morf {

// Patches have at most this many lines of at most eight bytes.
inline constexpr std::int64_t byte_patch_height = 4, byte_patch_width = 8;

// Whether all atoms of a dictionary are such patches: contiguous along the last axis or the last two, one wide along others.
bool suits_byte_patches(const Dictionary& dictionary);

// The projection of a table whose type is CellType::bytes. Throws std::invalid_argument unless the dictionary suits.
std::unique_ptr<Projection<std::uint16_t>> make_byte_patch_projection(const Table& table, const Dictionary& dictionary);

}  // namespace morf
