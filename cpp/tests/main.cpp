#include <cstdio>

#include "check.hpp"
#include "crfx/inference.hpp"

int main() {
  int broken = 0;
  for (const check::Test& test : check::tests()) {
    const int before = check::failures;
    test.body();
    const bool ok = check::failures == before;
    broken += !ok;
    std::printf("%s %s\n", ok ? "ok  " : "FAIL", test.name.c_str());
  }
  std::printf("instruction set: %s\n", crfx::instruction_set());
  std::printf("%zu passed, %d failed\n", check::tests().size() - static_cast<size_t>(broken),
              broken);
  return broken != 0;
}
