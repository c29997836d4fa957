#if defined(__x86_64__) && defined(__linux__)  // where the builtin has its library
#include "simd/processor.hpp"

#include "check.hpp"

TEST(the_processor_says_what_the_compiler_says) {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi2");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512cd");
  const crfx::Processor found;
  CHECK(found.avx2 == avx2);
  CHECK(found.avx512 == (avx2 && avx512));
}
#endif
