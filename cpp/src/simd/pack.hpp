// Vectors as wide as the registers of the instruction set, and the exponential over them. Wider
// ones would be split by the compiler, which turns their comparisons and selections into scalar
// code.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "crfx/isa.hpp"

namespace crfx::CRFX_ISA {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64, kRegisters = 32;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32, kRegisters = 16;
#elif defined(__aarch64__)
constexpr int kVectorBytes = 16, kRegisters = 32;
#else
constexpr int kVectorBytes = 16, kRegisters = 16;
#endif

template <class S>
struct Lanes;

template <>
struct Lanes<float> {
  typedef float Pack __attribute__((vector_size(kVectorBytes)));
  typedef int32_t Bits __attribute__((vector_size(kVectorBytes)));
  typedef uint32_t Word __attribute__((vector_size(kVectorBytes)));
  using Int = int32_t;
  static constexpr int count = kVectorBytes / 4, mantissa = 23, bias = 127;
  static constexpr float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  static constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
  // Weights and messages that are not zero are held above `floor`, 2^-60, relative to the largest:
  // the product of two is then a normal number, and zero means impossible. `lowest_exponent` is
  // its logarithm; `doubt` the mass that held-up values may have before log space is called.
  static constexpr float floor = 0x1p-60f, lowest_exponent = -41.5f, doubt = 0x1p-20f;
};

template <>
struct Lanes<double> {
  typedef double Pack __attribute__((vector_size(kVectorBytes)));
  typedef int64_t Bits __attribute__((vector_size(kVectorBytes)));
  typedef uint64_t Word __attribute__((vector_size(kVectorBytes)));
  using Int = int64_t;
  static constexpr int count = kVectorBytes / 8, mantissa = 52, bias = 1023;
  static constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr double ln2_high = 0x1.62e42fefa3800p-1, ln2_low = 0x1.ef35793c76730p-45;
  static constexpr double floor = 0x1p-500, lowest_exponent = -346.5, doubt = 0x1p-44;
};

template <class S>
using Pack = typename Lanes<S>::Pack;
template <class S>
using Bits = typename Lanes<S>::Bits;

template <class S>
CRFX_INLINE Pack<S> splat(S x) {
  return x - Pack<S>{};
}
template <class S>
CRFX_INLINE Pack<S> load(const S* from) {
  Pack<S> x;
  std::memcpy(&x, from, sizeof(x));
  return x;
}
template <class S>
CRFX_INLINE void store(S* to, Pack<S> x) {
  std::memcpy(to, &x, sizeof(x));
}
// The first n numbers and zeros, n below the number of lanes; nothing past them is read.
template <class S>
CRFX_INLINE Pack<S> load_first(const S* from, int64_t n) {
  S room[Lanes<S>::count] = {};
  for (int64_t k = 0; k < n; ++k) room[k] = from[k];
  return load(room);
}
// Stores the first n numbers and nothing past them.
template <class S>
CRFX_INLINE void store_first(S* to, Pack<S> x, int64_t n) {
  S room[Lanes<S>::count];
  store<S>(room, x);
  for (int64_t k = 0; k < n; ++k) to[k] = room[k];
}
template <class P>
CRFX_INLINE P larger(P a, P b) {
  return a > b ? a : b;
}
template <class P>
CRFX_INLINE P smaller(P a, P b) {
  return a < b ? a : b;
}
// Lifts to the floor what is not zero.
template <class S>
CRFX_INLINE Pack<S> held(Pack<S> x) {
  return x > 0 ? larger<Pack<S>>(x, splat(Lanes<S>::floor)) : Pack<S>{};
}

// A bit for every lane of a mask.
template <class S>
CRFX_INLINE unsigned lanes_set(Bits<S> mask) {
#if defined(__AVX512F__)  // built with DQ, which has these instructions, see CMakeLists.txt
  if constexpr (sizeof(S) == 4) return _mm512_movepi32_mask((__m512i)mask);
  return _mm512_movepi64_mask((__m512i)mask);
#elif defined(__AVX2__)
  if constexpr (sizeof(S) == 4) return static_cast<unsigned>(_mm256_movemask_ps((__m256)mask));
  return static_cast<unsigned>(_mm256_movemask_pd((__m256d)mask));
#elif defined(__SSE2__)
  if constexpr (sizeof(S) == 4) return static_cast<unsigned>(_mm_movemask_ps((__m128)mask));
  return static_cast<unsigned>(_mm_movemask_pd((__m128d)mask));
#else
  unsigned set = 0;
  for (int l = 0; l < Lanes<S>::count; ++l) set |= mask[l] ? 1u << l : 0;
  return set;
#endif
}

// Whether the set can spread numbers that lie side by side over the lanes of a mask quickly.
#if defined(__AVX2__)
constexpr bool kExpands = true;
#else
constexpr bool kExpands = false;
#endif

#if defined(__AVX2__) && !defined(__AVX512F__)
// For every mask of 8 lanes: the number of the set lane below each lane, or one of a zero.
struct ExpansionTable {
  alignas(32) int32_t lanes[256][8];
  constexpr ExpansionTable() : lanes() {
    for (int mask = 0; mask < 256; ++mask)
      for (int lane = 0, next = 0; lane < 8; ++lane)
        lanes[mask][lane] = mask >> lane & 1 ? next++ : -1;
  }
};
inline constexpr ExpansionTable kExpansion;
#endif

// The numbers at `from`, the first in the lowest lane that `mask` has, and so on; 0 in the others.
// Reads a whole pack.
CRFX_INLINE Pack<float> expanded(uint32_t mask, const float* from) {
#if defined(__AVX512F__)
  return (Pack<float>)_mm512_maskz_expand_ps(static_cast<__mmask16>(mask),
                                             (__m512)load<float>(from));
#elif defined(__AVX2__)
  // Lanes of -1 take any number and then lose it: their sign selects the zero.
  const __m256i lanes = _mm256_load_si256((const __m256i*)kExpansion.lanes[mask & 255]);
  const __m256 spread = _mm256_permutevar8x32_ps((__m256)load<float>(from), lanes);
  return (Pack<float>)_mm256_blendv_ps(spread, _mm256_setzero_ps(), (__m256)lanes);
#else
  Pack<float> x{};
  for (int l = 0; l < Lanes<float>::count; ++l)
    if (mask >> l & 1) x[l] = *from++;
  return x;
#endif
}

// Polynomial for exp(r), |r| <= ln2/2.
CRFX_INLINE Pack<float> exp_reduced(Pack<float> r) {  // Cephes' expf, about 1 ulp
  Pack<float> p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return (p * r) * r + r + 1.0f;
}
CRFX_INLINE Pack<double> exp_reduced(Pack<double> r) {  // Taylor to r^13: below 1e-17
  constexpr double inverse_factorial[] = {1.0 / 6227020800,
                                          1.0 / 479001600,
                                          1.0 / 39916800,
                                          1.0 / 3628800,
                                          1.0 / 362880,
                                          1.0 / 40320,
                                          1.0 / 5040,
                                          1.0 / 720,
                                          1.0 / 120,
                                          1.0 / 24,
                                          1.0 / 6,
                                          0.5,
                                          1.0,
                                          1.0};
  Pack<double> p = splat(inverse_factorial[0]);
  for (int k = 1; k < 14; ++k) p = p * r + inverse_factorial[k];
  return p;
}

// exp(x) for x <= 0, held at lowest_exponent; exactly 0 at -inf, and there alone.
template <class S>
CRFX_INLINE Pack<S> exp_of_negative(Pack<S> x) {
  using L = Lanes<S>;
  const Pack<S> lowest = splat(L::lowest_exponent);
  const Pack<S> clamped = larger<Pack<S>>(x, lowest);
  const Pack<S> rounded = clamped * S(1.44269504088896340736) + L::magic;
  const Pack<S> n = rounded - L::magic;
  const Pack<S> r = (clamped - n * L::ln2_high) - n * L::ln2_low;
  // The low bits of `rounded` hold n: shift it into the exponent.
  const Bits<S> power = ((Bits<S>)rounded + L::bias) << L::mantissa;
  const Pack<S> y = exp_reduced(r) * (Pack<S>)power;
  return x > -std::numeric_limits<S>::infinity() ? y : Pack<S>{};
}

// For positive x: the power of two 2^-e with x * 2^-e in [1, 2), and e itself.
template <class S>
CRFX_INLINE Pack<S> inverse_power(Pack<S> x, Bits<S>* exponent) {
  using L = Lanes<S>;
  // Shifted as words without sign: not every set shifts signed integers of 64 bits.
  const Bits<S> e = (Bits<S>)((typename L::Word)x >> L::mantissa) - L::bias;
  *exponent = e;
  return (Pack<S>)((L::bias - e) << L::mantissa);
}
// Small integers as numbers; a conversion of 64 bits would run lane by lane on most sets.
template <class S>
CRFX_INLINE Pack<S> as_numbers(Bits<S> x) {
  const Pack<S> magic = splat(Lanes<S>::magic);
  return (Pack<S>)((Bits<S>)magic + x) - magic;
}

// 1 / x, to about 2 ulp; x of ordinary size. On x86 a guess of 12 or 14 bits and a step of Newton's
// method, which takes a third of the time of a division.
CRFX_INLINE Pack<float> reciprocal(Pack<float> x) {
#if defined(__AVX512F__)
  const auto guess = (Pack<float>)_mm512_maskz_rcp14_ps(0xffff, (__m512)x);
  return guess * (2.0f - x * guess);
#elif defined(__AVX2__)
  const auto guess = (Pack<float>)_mm256_rcp_ps((__m256)x);
  return guess * (2.0f - x * guess);
#elif defined(__SSE2__)
  const auto guess = (Pack<float>)_mm_rcp_ps((__m128)x);
  return guess * (2.0f - x * guess);
#else
  return 1.0f / x;
#endif
}
CRFX_INLINE Pack<double> reciprocal(Pack<double> x) { return 1.0 / x; }

// log(x) for x in [1, 2).
CRFX_INLINE Pack<float> log_of_mantissa(Pack<float> x) {  // Cephes' logf, about 1 ulp
  const Bits<float> high = x > 1.41421356f;
  const Pack<float> y = (high ? x * 0.5f : x) - 1.0f, z = y * y;
  Pack<float> p = splat(7.0376836292e-2f);
  p = p * y - 1.1514610310e-1f;
  p = p * y + 1.1676998740e-1f;
  p = p * y - 1.2420140846e-1f;
  p = p * y + 1.4249322787e-1f;
  p = p * y - 1.6668057665e-1f;
  p = p * y + 2.0000714765e-1f;
  p = p * y - 2.4999993993e-1f;
  p = p * y + 3.3333331174e-1f;
  const Pack<float> log = y + (p * y * z - 0.5f * z);
  return high ? log + 0.693147181f : log;
}
CRFX_INLINE Pack<double> log_of_mantissa(Pack<double> x) {
  Pack<double> y;
  for (int l = 0; l < Lanes<double>::count; ++l) y[l] = __builtin_log(x[l]);
  return y;
}

// Exchanges blocks of `width` lanes between packs a and b: the off-diagonal blocks of every square.
template <class S, int width, int... lane>
CRFX_INLINE void exchange(Pack<S>& a, Pack<S>& b, std::integer_sequence<int, lane...>) {
  constexpr int count = Lanes<S>::count;
  const Pack<S> low =
      __builtin_shufflevector(a, b, (lane & width ? lane - width + count : lane)...);
  b = __builtin_shufflevector(a, b, (lane & width ? lane + count : lane + width)...);
  a = low;
}
template <class S, int width = Lanes<S>::count / 2>
CRFX_INLINE void transpose(Pack<S>* x) {
  constexpr int count = Lanes<S>::count;
  if constexpr (width > 0) {
    for (int k = 0; k < count; ++k)
      if (!(k & width))
        exchange<S, width>(x[k], x[k + width], std::make_integer_sequence<int, count>{});
    transpose<S, width / 2>(x);
  }
}

// out = exp(x - shift) over an array; x may equal out.
template <class S>
inline void exp_shifted(const S* x, S shift, S* out, int64_t n) {
  constexpr int count = Lanes<S>::count;
  int64_t k = 0;
  for (; k + count <= n; k += count) store(out + k, exp_of_negative<S>(load(x + k) - shift));
  if (k == n) return;
  Pack<S> rest{};
  std::memcpy(&rest, x + k, static_cast<size_t>(n - k) * sizeof(S));
  rest = exp_of_negative<S>(rest - shift);
  std::memcpy(out + k, &rest, static_cast<size_t>(n - k) * sizeof(S));
}

}  // namespace crfx::CRFX_ISA
