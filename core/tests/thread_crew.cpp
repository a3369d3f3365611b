#include "base/thread_crew.hpp"

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"

using namespace morf;

TEST(every_part_is_done_once) {
  for (const std::size_t threads : {1u, 2u, 3u, 8u}) {
    ThreadCrew crew(threads);
    CHECK_EQUAL(crew.size(), threads);
    for (std::size_t round = 0; round < 200; ++round) {
      const std::size_t parts = 1 + round % threads;
      std::vector<int> done(parts, 0);
      crew.run(parts, [&](std::size_t part) { ++done[part]; });
      for (const int times : done) CHECK_EQUAL(times, 1);
    }
  }
}

TEST(what_was_written_is_seen) {
  ThreadCrew crew(4);
  std::vector<long> sums(4);
  for (long round = 1; round <= 100; ++round) {
    crew.run(4, [&](std::size_t part) { sums[part] += round; });
    CHECK_EQUAL(std::accumulate(sums.begin(), sums.end(), 0L), 4 * round * (round + 1) / 2);
  }
}

TEST(errors_come_back_and_the_crew_goes_on) {
  ThreadCrew crew(3);
  std::atomic<int> done{0};
  const auto fails = [&](std::size_t bad) {
    try {
      crew.run(3, [&](std::size_t part) {
        ++done;
        if (part >= bad) throw std::runtime_error(std::to_string(part));
      });
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_EQUAL(fails(1), std::string("1"));
  CHECK_EQUAL(fails(0), std::string("0"));
  CHECK(fails(3).empty());
  CHECK_EQUAL(done.load(), 9);
}
