// The smallest test framework that does: named tests, checks that say what they saw, an exit code.
//
//   TEST(sums_are_exact) {
//     CHECK(a < b, "row", i);            // notes are printed when the check fails
//     CHECK_EQUAL(left, right, "row", i);
//     CHECK_THROWS(std::invalid_argument, expression);
//   }
//
// A failed check does not end its test, but the tenth does. Arguments of the program select tests by name.
#pragma once

#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace check {

struct Test {
  const char* name;
  void (*run)();
};

inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

struct Register {
  Register(const char* name, void (*run)()) { tests().push_back({name, run}); }
};

struct GiveUp {};

inline unsigned long checks = 0;
inline unsigned failures = 0;  // of the present test

inline std::string show(const std::string& text) { return text; }
inline std::string show(const char* text) { return text; }
inline std::string show(bool value) { return value ? "true" : "false"; }
inline std::string show(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.17g (%a)", value, value);
  return text;
}
template <class T>
  requires std::is_integral_v<T>
std::string show(T value) {
  return std::to_string(value);
}
template <class T>
std::string show(const std::vector<T>& values) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size() && i < 32; ++i) text += (i ? ", " : "") + show(values[i]);
  return text + (values.size() > 32 ? ", ...]" : "]");
}

template <class A, class B>
bool equal(const A& a, const B& b) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B> && !std::is_same_v<A, B>) return std::cmp_equal(a, b);
  else return a == b;
}

struct Place {
  const char* file;
  int line;
  const char* text;
};

// Out of line, as is all that runs for failures only: thousands of checks would fill the compiler's day.
[[gnu::noinline, gnu::cold]] inline void report(const Place& place, const std::string& what, const std::string& notes) {
  const char* slash = std::strrchr(place.file, '/');
  std::printf("    %s:%d: %s%s%s%s\n", slash ? slash + 1 : place.file, place.line, place.text, what.c_str(),
              notes.empty() ? "" : "  --", notes.c_str());
  if (++failures >= 10) throw GiveUp{};
}

template <class... Notes>
[[gnu::noinline, gnu::cold]] void fail(const Place& place, const Notes&... notes) {
  std::string text;
  ((text += " " + show(notes)), ...);
  report(place, "", text);
}

template <class A, class B, class... Notes>
[[gnu::noinline, gnu::cold]] void fail_equal(const Place& place, const A& a, const B& b, const Notes&... notes) {
  std::string text;
  ((text += " " + show(notes)), ...);
  report(place, " are " + show(a) + " and " + show(b), text);
}

template <class A, class B, class... Notes>
inline void check_equal(const Place& place, const A& a, const B& b, const Notes&... notes) {
  ++checks;
  if (!equal(a, b)) fail_equal(place, a, b, notes...);
}

// Runs the tests whose names are among the arguments; all without arguments.
inline int run(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what was printed before a crash is seen
  unsigned failed = 0, ran = 0;
  for (const Test& test : tests()) {
    bool wanted = argc < 2;
    for (int i = 1; i < argc; ++i) wanted |= std::strcmp(argv[i], test.name) == 0;
    if (!wanted) continue;
    ++ran;
    failures = 0;
    std::printf("%s\n", test.name);
    try {
      test.run();
    } catch (const GiveUp&) {
      std::printf("    more may be wrong\n");
    } catch (const std::exception& error) {
      ++failures;
      std::printf("    unexpected exception: %s\n", error.what());
    }
    if (failures) std::printf("    FAILED\n");
    failed += failures != 0;
  }
  std::printf("%u tests, %lu checks, %u failed\n", ran, checks, failed);
  if (ran == 0) std::printf("no such test\n");
  return failed != 0 || ran == 0;
}

}  // namespace check

#define TEST(name)                                           \
  static void name();                                        \
  static const check::Register register_##name(#name, name); \
  static void name()

#define CHECK(condition, ...)                                                                   \
  do {                                                                                          \
    ++check::checks;                                                                            \
    if (!(condition)) check::fail({__FILE__, __LINE__, #condition} __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)

#define CHECK_EQUAL(left, right, ...) \
  check::check_equal({__FILE__, __LINE__, #left ", " #right}, left, right __VA_OPT__(, ) __VA_ARGS__)

#define CHECK_THROWS(Exception, expression, ...)                                                                               \
  do {                                                                                                                         \
    bool check_thrown = false;                                                                                                 \
    try {                                                                                                                      \
      static_cast<void>(expression);                                                                                           \
    } catch (const Exception&) {                                                                                               \
      check_thrown = true;                                                                                                     \
    }                                                                                                                          \
    ++check::checks;                                                                                                           \
    if (!check_thrown) check::fail({__FILE__, __LINE__, #expression " did not throw " #Exception} __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)

int main(int argc, char** argv) { return check::run(argc, argv); }
