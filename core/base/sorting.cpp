#include "base/sorting.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace morf {
namespace {

// Batcher's merge-exchange network: compares the same pairs whatever the data, so one instruction serves many lanes.
// Calls exchange(i, j, count): order the pairs (i, j), (i + 1, j + 1), ... of which there are `count`. Starts from sorted blocks
// of `sorted` keys, a power of two.
template <class Exchange>
constexpr void merge_exchange(std::size_t size, std::size_t sorted, Exchange exchange) {
  for (std::size_t p = sorted; p < size; p *= 2)
    for (std::size_t k = p; k >= 1; k /= 2)
      for (std::size_t j = k % p; j + k < size; j += 2 * k)
        if ((j ^ (j + k)) < 2 * p) exchange(j, j + k, std::min(k, size - k - j));  // both in one block of 2 p
}

template <std::size_t size>
struct Network {
  static constexpr std::size_t count = [] {
    std::size_t n = 0;
    merge_exchange(size, 1, [&](std::size_t, std::size_t, std::size_t pairs) { n += pairs; });
    return n;
  }();
  static constexpr std::array<std::pair<std::uint8_t, std::uint8_t>, count> pairs = [] {
    std::array<std::pair<std::uint8_t, std::uint8_t>, count> list{};
    std::size_t n = 0;
    merge_exchange(size, 1, [&](std::size_t i, std::size_t j, std::size_t pairs) {
      for (std::size_t k = 0; k < pairs; ++k) list[n++] = {static_cast<std::uint8_t>(i + k), static_cast<std::uint8_t>(j + k)};
    });
    return list;
  }();
};

template <class Key>
void exchange_lanes(LaneVector<Key>& a, LaneVector<Key>& b) {
  const LaneVector<Key> low = lower_lanes<Key>(a, b);
  b = higher_lanes<Key>(a, b);
  a = low;
}

// In registers, as far as there are enough of them.
template <std::size_t size, class Key>
void sort_lanes_of(Key* keys) {
  LaneVector<Key> row[size];
  for (std::size_t i = 0; i < size; ++i) row[i] = load_lanes(keys + i * lanes);
  [&]<std::size_t... n>(std::index_sequence<n...>) {
    (exchange_lanes<Key>(row[Network<size>::pairs[n].first], row[Network<size>::pairs[n].second]), ...);
  }(std::make_index_sequence<Network<size>::count>{});
  for (std::size_t i = 0; i < size; ++i) store_lanes<Key>(row[i], keys + i * lanes);
}

template <class Key>
void sort_all_lanes(Key* keys, std::size_t size) {
  for (std::size_t block = 0; block < size; block += sort_block) {
    const std::size_t used = std::min(sort_block, size - block), rows = used <= 4 ? 4 : used <= 8 ? 8 : sort_block;
    Key* const of_block = keys + block * lanes;
    std::fill(of_block + used * lanes, of_block + rows * lanes, std::numeric_limits<Key>::max());
    if (rows == 4) sort_lanes_of<4>(of_block);
    else if (rows == 8) sort_lanes_of<8>(of_block);
    else sort_lanes_of<sort_block>(of_block);
  }
  merge_exchange(size, sort_block, [keys](std::size_t i, std::size_t j, std::size_t pairs) {
    for (std::size_t k = 0; k < pairs * lanes; k += lanes) {
      auto low = load_lanes(keys + i * lanes + k), high = load_lanes(keys + j * lanes + k);
      exchange_lanes<Key>(low, high);
      store_lanes<Key>(low, keys + i * lanes + k);
      store_lanes<Key>(high, keys + j * lanes + k);
    }
  });
}

template <class Value>
void sort_by_value(std::vector<Keyed<Value>>& keys) {
  std::sort(keys.begin(), keys.end(), [](const Keyed<Value>& a, const Keyed<Value>& b) {
    return a.value < b.value || (a.value == b.value && a.position < b.position);
  });
}

}  // namespace

void sort_lanes(std::uint32_t* keys, std::size_t size) { sort_all_lanes(keys, size); }
void sort_lanes(std::int64_t* keys, std::size_t size) { sort_all_lanes(keys, size); }

void sort_packed(std::vector<std::uint64_t>& keys, std::vector<std::uint64_t>& scratch, int value_bits) {
  if (keys.size() < 32) {
    std::sort(keys.begin(), keys.end());
    return;
  }
  constexpr int most_bits = 11;
  const int digit_bits = keys.size() < 512 ? 8 : most_bits;
  scratch.resize(keys.size());
  const int digits = std::max(1, (value_bits + digit_bits - 1) / digit_bits), bits = (value_bits + digits - 1) / digits;
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  for (int digit = 0; digit < digits; ++digit) {
    const int shift = 32 + digit * bits;
    std::uint32_t begin[(1 << most_bits) + 1];
    std::fill_n(begin, mask + 2, 0u);
    for (const std::uint64_t key : keys) ++begin[(key >> shift & mask) + 1];
    for (std::size_t d = 1; d <= mask; ++d) begin[d] += begin[d - 1];
    for (const std::uint64_t key : keys) scratch[begin[key >> shift & mask]++] = key;
    std::swap(keys, scratch);
  }
}

void sort_keyed(std::vector<Keyed<std::int64_t>>& keys) { sort_by_value(keys); }
void sort_keyed(std::vector<Keyed<double>>& keys) { sort_by_value(keys); }

}  // namespace morf
