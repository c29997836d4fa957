// A test harness of one page: CHECK counts failures, TEST registers a function.
#pragma once

#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace check {

struct Test {
  std::string name;
  std::function<void()> body;
};
inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}
inline int failures = 0;

struct Register {
  Register(const char* name, std::function<void()> body) {
    tests().push_back({name, std::move(body)});
  }
};

inline bool close(double found, double expected, double tolerance) {
  if (std::isinf(found) || std::isinf(expected)) return found == expected;
  return std::fabs(found - expected) <= tolerance * (1 + std::fabs(expected));
}
inline void report(bool ok, const char* file, int line, const std::string& what) {
  if (ok) return;
  if (++failures <= 20) std::printf("%s:%d: %s\n", file, line, what.c_str());
}

}  // namespace check

#define CHECK(condition) check::report((condition), __FILE__, __LINE__, #condition)
#define CHECK_CLOSE(found, expected, tolerance)                                     \
  check::report(check::close((found), (expected), (tolerance)), __FILE__, __LINE__, \
                std::string(#found " = ") + std::to_string(found) + ", expected " + \
                    std::to_string(expected))
#define TEST(name)                                            \
  static void test_##name();                                  \
  static check::Register register_##name(#name, test_##name); \
  static void test_##name()
