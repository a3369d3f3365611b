// Counter-based random numbers: every draw is a hash of where it is used (seed, tree, path to the node, position in the
// node's stream), so results do not depend on threads, platforms or the order of growth. See docs/design.md.
#pragma once

#include <cstdint>

namespace morf {

inline constexpr std::uint64_t golden = 0x9E3779B97F4A7C15ULL;

// The finaliser of SplitMix64: a bijection whose every output bit depends on every input bit.
inline std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

inline std::uint64_t derive(std::uint64_t key, std::uint64_t index) { return mix(key ^ mix(index + golden)); }

// What random numbers are for: all numbered streams of the library. The first group hangs below the key of a tree or of a node.
// The others stand in place of a tree's number, below the seed; no tree and no round of boosting has such a number.
enum class Purpose : std::uint64_t {
  bag = 1,
  root = 2,
  left = 3,
  right = 4,
  copy = 7,  // 5 and 6 are free: another number would change the forests of a seed
  subset = 8,
  combination = 9,
  leaf_part = 10,     // of the rows of an honest tree: those that fill its leaves
  random_split = 11,  // whether a node has one candidate only
  sides = 12,         // which candidates of a node mind gaps
  held_out_rows = std::uint64_t{1} << 63,  // rows of boosting that judge when to stop
  round_copies,                            // copies of samples that a generation of boosting's rounds learns from
  round_subsets,                           // atoms that some rounds of boosting share
  shared_atoms,                            // atoms that all trees share
  sample_of_blocks,                        // rows that represent samples in blocks
};

inline std::uint64_t derive(std::uint64_t key, Purpose purpose) { return derive(key, static_cast<std::uint64_t>(purpose)); }

inline std::uint64_t tree_key(std::uint64_t seed, std::uint64_t tree) { return derive(mix(seed), tree); }
inline std::uint64_t tree_key(std::uint64_t seed, Purpose purpose) { return tree_key(seed, static_cast<std::uint64_t>(purpose)); }

inline std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
#if defined(__SIZEOF_INT128__)
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
#else
  const std::uint64_t a_low = a & 0xFFFFFFFFULL, a_high = a >> 32, b_low = b & 0xFFFFFFFFULL, b_high = b >> 32;
  const std::uint64_t middle = a_high * b_low + ((a_low * b_low) >> 32);
  const std::uint64_t other = a_low * b_high + (middle & 0xFFFFFFFFULL);
  return a_high * b_high + (middle >> 32) + (other >> 32);
#endif
}

class Stream {
 public:
  explicit Stream(std::uint64_t key) : state_(key) {}

  std::uint64_t next() { return mix(state_ += golden); }

  // Uniform on 0..n-1, n > 0. The bias is below n / 2^64. One possibility consumes no number.
  std::uint64_t below(std::uint64_t n) { return n == 1 ? 0 : multiply_high(next(), n); }

  bool coin() { return (next() >> 63) != 0; }

  // Uniform on [0, 1), a multiple of 2^-53.
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace morf
