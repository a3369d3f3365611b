// Built twice: with 128-bit integers, and, without __SIZEOF_INT128__, with the portable multiply_high.
#include "base/random.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "check.hpp"
#include "data.hpp"

using namespace morf;

// The schoolbook product of 16-bit digits.
static std::uint64_t high_half_by_digits(std::uint64_t a, std::uint64_t b) {
  std::uint64_t digit[9] = {};
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      std::uint64_t carry = (a >> 16 * i & 0xFFFF) * (b >> 16 * j & 0xFFFF);
      for (int k = i + j; carry != 0; ++k) {
        carry += digit[k];
        digit[k] = carry & 0xFFFF;
        carry >>= 16;
      }
    }
  return digit[4] | digit[5] << 16 | digit[6] << 32 | digit[7] << 48;
}

static std::vector<std::uint64_t> awkward_numbers() {
  std::vector<std::uint64_t> numbers;
  for (const int shift : {0, 1, 16, 31, 32, 33, 48, 63})
    for (const int more : {-1, 0, 1}) numbers.push_back((std::uint64_t{1} << shift) + static_cast<std::uint64_t>(more));
  numbers.push_back(0xFFFFFFFF00000000ULL);
  numbers.push_back(0xFFFFFFFEFFFFFFFFULL);
  Random random(1);
  for (int i = 0; i < 200; ++i) numbers.push_back(random.bits() >> random.index(64));
  return numbers;
}

TEST(high_half_of_a_product) {
  for (const std::uint64_t a : awkward_numbers())
    for (const std::uint64_t b : awkward_numbers()) {
      CHECK_EQUAL(multiply_high(a, b), high_half_by_digits(a, b), a, b);
      __extension__ using Wide = unsigned __int128;
      CHECK_EQUAL(multiply_high(a, b), static_cast<std::uint64_t>((static_cast<Wide>(a) * b) >> 64), a, b);
    }
}

TEST(stream_is_splitmix64) {
  Stream zero(0);  // the published first outputs for seed 0
  CHECK_EQUAL(zero.next(), 0xE220A8397B1DCDAFULL);
  CHECK_EQUAL(zero.next(), 0x6E789E6AA1B965F4ULL);
  CHECK_EQUAL(zero.next(), 0x06C45D188009454FULL);
  for (const std::uint64_t key : awkward_numbers()) {
    Stream stream(key);
    for (std::uint64_t i = 1; i <= 5; ++i) CHECK_EQUAL(stream.next(), mix(key + i * golden), key, i);
  }
}

TEST(below_stays_below) {
  for (const std::uint64_t n : awkward_numbers()) {
    if (n == 0) continue;
    Stream stream(n), copy(n);
    for (int i = 0; i < 50; ++i) {
      const std::uint64_t x = stream.below(n);
      CHECK(x < n, x, n);
      CHECK_EQUAL(x, n == 1 ? 0 : high_half_by_digits(copy.next(), n));
    }
  }
}

TEST(one_possibility_consumes_nothing) {
  Stream stream(5), copy(5);
  for (int i = 0; i < 3; ++i) CHECK_EQUAL(stream.below(1), 0u);
  CHECK_EQUAL(stream.next(), copy.next());
}

TEST(below_is_uniform) {
  for (const std::size_t n : {2, 3, 7, 10, 64}) {
    Stream stream(n);
    std::vector<double> seen(n, 0.0);
    const double draws = 2000.0 * static_cast<double>(n);
    for (int i = 0; i < static_cast<int>(draws); ++i) ++seen[stream.below(n)];
    double distance = 0.0;  // chi-square with n - 1 degrees of freedom
    for (const double count : seen) distance += (count - 2000.0) * (count - 2000.0) / 2000.0;
    const double freedom = static_cast<double>(n - 1);
    CHECK(distance < freedom + 5.0 * std::sqrt(2.0 * freedom) + 10.0, distance, n);
  }
}

TEST(coin_is_the_top_bit_and_unit_the_top_53) {
  Stream coins(9), units(9), plain(9);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t x = plain.next();
    CHECK_EQUAL(coins.coin(), x >= 0x8000000000000000ULL);
    const double u = units.unit();
    CHECK(u >= 0.0 && u < 1.0, u);
    CHECK_EQUAL(std::ldexp(u, 53), static_cast<double>(x / 2048));
  }
}

TEST(derived_keys_differ) {
  std::set<std::uint64_t> keys;
  std::size_t made = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (std::uint64_t tree = 0; tree < 200; ++tree) {
      const std::uint64_t key = tree_key(seed, tree);
      CHECK_EQUAL(key, mix(mix(seed) ^ mix(tree + golden)));
      keys.insert(key);
      for (const Purpose purpose : {Purpose::bag, Purpose::root, Purpose::left, Purpose::right, Purpose::combination})
        keys.insert(derive(key, purpose));
      made += 6;
    }
  CHECK_EQUAL(keys.size(), made);
  CHECK_EQUAL(derive(7, Purpose::bag), derive(7, 1));
  CHECK_EQUAL(derive(7, Purpose::combination), derive(7, 9));
}

TEST(streams_are_no_shifted_copies) {
  std::set<std::uint64_t> numbers;
  for (std::uint64_t tree = 0; tree < 500; ++tree) {
    Stream stream(derive(tree_key(0, tree), Purpose::root));
    for (int i = 0; i < 64; ++i) numbers.insert(stream.next());
  }
  CHECK_EQUAL(numbers.size(), 500u * 64u);
}
