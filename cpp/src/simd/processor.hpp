// What an x86-64 processor can do, asked of itself: the compilers' builtin for that needs a
// run-time library that is not linked on Windows.
#pragma once

#include <cpuid.h>

#include <cstdint>

namespace crfx {

struct Processor {
  bool avx2 = false;    // with fma and bmi2
  bool avx512 = false;  // f, bw, dq, vl and cd, and all of the above

  Processor() {
    unsigned eax, ebx, ecx, edx;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return;
    const bool fma = bit(ecx, 12), asks_system = bit(ecx, 27);
    if (!asks_system || !__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return;
    const uint64_t kept = kept_by_system();
    avx2 = (kept & 0x06) == 0x06 && fma && bit(ebx, 5) && bit(ebx, 8);
    avx512 = avx2 && (kept & 0xe6) == 0xe6 && bit(ebx, 16) && bit(ebx, 30) && bit(ebx, 17) &&
             bit(ebx, 31) && bit(ebx, 28);
  }

 private:
  static bool bit(unsigned word, int place) { return word >> place & 1; }

  // Which registers the operating system saves when it switches threads (XCR0).
  static uint64_t kept_by_system() {
    uint32_t low, high;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return uint64_t(high) << 32 | low;
  }
};

}  // namespace crfx
