// The three arithmetics in which the recursions of messages.hpp run. They have the same functions,
// so that sum-product, its repetition in log space and max-product share one recursion.
//
//   ScaledSum<S>  weights exp(score), rescaled by powers of two (exact), sums   fast
//   LogSum        scores in float64, log-sum-exp                                 never underflows
//   MaxPlus<S>    scores, maxima                                                 decoding
//
// An edge is a table over (a, r, c): `a` the label that leaves the window, `r` the labels that
// stay, `c` the new label; sizes A x R x C. A null table (at the first positions of a chain
// of order > 1) adds no score, and no label leaves: A = 1.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "crfx/isa.hpp"
#include "simd/rows.hpp"

namespace crfx::CRFX_ISA {

struct EdgeShape {
  int64_t A, R, C;
};

template <class V>
CRFX_INLINE V maximum(const V* x, int64_t n) {
  V best = -std::numeric_limits<V>::infinity();
#pragma omp simd reduction(max : best)
  for (int64_t k = 0; k < n; ++k) best = x[k] > best ? x[k] : best;
  return best;
}

template <class S_>
struct ScaledSum {
  using S = S_;
  using Value = S_;
  static constexpr Value one = 1, zero = 0;
  static constexpr bool exact_range = false, is_max = false, may_hold = true;

  // Larger than any reciprocal of a message: marks states left out of a minimum.
  static constexpr Value excluded = std::numeric_limits<Value>::max() / 4;

  static Value times(Value x, Value y) { return x * y; }
  static Value inverse(Value x) { return 1 / x; }
  static Value linear(Value x) { return x; }
  // A probability: the product of three factors over their total. The first factor is divided, so
  // that small products do not vanish: in a loop, let it be the one that stays the same.
  static Value ratio(Value x, Value y, Value z, Value total) { return x / total * y * z; }
  static bool vanished(Value total) { return !(total > 0); }
  static bool is_zero(Value x) { return !(x > 0); }
  // Whether a weight may stand for a smaller one, see Lanes::floor.
  static bool is_held(Value x) { return x > 0 && x <= 2 * Lanes<S>::floor; }
  static Value hold(Value x) { return x > 0 && x < Lanes<S>::floor ? Lanes<S>::floor : x; }
  static double log_of(Value x) { return std::log(static_cast<double>(x)); }

  // Turns scores into weights in place; returns the score that was factored out.
  static double lift(Value* x, int64_t n) {
    const Value top = maximum(x, n);
    const Value shift = top > -std::numeric_limits<Value>::infinity() ? top : Value(0);
    exp_shifted(x, shift, x, n);
    return shift;
  }
  // Rescales so that the largest is in [1, 2) and the least possible one at the floor or above;
  // marks the latter as held. Returns the log of the factor taken out.
  static double normalise(Value* x, int64_t n, bool& ok, uint8_t* held) {
    const Value top = maximum(x, n);
    if (vanished(top)) {
      ok = false;
      return 0;
    }
    int exponent;
    std::frexp(top, &exponent);
    const Value factor = std::ldexp(Value(1), 1 - exponent);
    if (held)
      for (int64_t k = 0; k < n; ++k) held[k] |= is_held(x[k] * factor);
    CRFX_SIMD
    for (int64_t k = 0; k < n; ++k) x[k] = hold(x[k] * factor);
    return (exponent - 1) * 0.693147180559945309417;
  }
  static Value total(const Value* x, const Value* y, int64_t n) { return row_product(x, y, n); }
  // m[a,r] = sum_c table[a,r,c] b[r,c]
  static void up(const Value* table, const Value* b, Value* m, EdgeShape s) {
    for (int64_t ar = 0, r = 0; ar < s.A * s.R; ++ar, r = r + 1 == s.R ? 0 : r + 1)
      m[ar] = hold(table ? row_product(table + ar * s.C, b + r * s.C, s.C)
                         : row_total(b + r * s.C, s.C));
  }
  // d[r,c] = sum_a above[a,r] table[a,r,c]
  static void down(const Value* table, const Value* above, Value* d, EdgeShape s) {
    if (table)
      for (int64_t r = 0; r < s.R; ++r)
        rows_sum<S>({table + r * s.C, s.R * s.C, s.A, s.R}, above + r, d + r * s.C, s.C);
    else
      for (int64_t k = 0; k < s.R * s.C; ++k) d[k] = above[k / s.C];
    CRFX_SIMD
    for (int64_t k = 0; k < s.R * s.C; ++k) d[k] = hold(d[k]);
  }
  // to[r,c] = min_a max(weight[a,r] table[a,r,c], floor[a,r])
  static void least_down(const Value* table, const Value* weight, const Value* floor, Value* to,
                         EdgeShape s) {
    for (int64_t r = 0; r < s.R; ++r)
      rows_least<S>({table + r * s.C, s.R * s.C, s.A, s.R}, weight + r, floor + r, excluded,
                    to + r * s.C, s.C);
  }
  // to[a,r] = min_c max(weight[r,c] table[a,r,c], floor[r,c])
  static void least_up(const Value* table, const Value* weight, const Value* floor, Value* to,
                       EdgeShape s) {
    for (int64_t ar = 0, r = 0; ar < s.A * s.R; ++ar, r = r + 1 == s.R ? 0 : r + 1)
      to[ar] = row_least(weight + r * s.C, table + ar * s.C, floor + r * s.C, excluded, s.C);
  }
};

// Log-space. Slow (an exponential per table entry) and safe at any range of scores.
struct LogSum {
  using Value = double;
  static constexpr Value one = 0;
  static constexpr Value zero = -std::numeric_limits<double>::infinity();
  static constexpr bool exact_range = true, is_max = false, may_hold = false;

  static constexpr Value excluded = 1e30;

  static Value times(Value x, Value y) { return x + y; }
  static Value inverse(Value x) { return -x; }
  static Value linear(Value x) { return x >= -745.0 ? std::exp(x) : 0.0; }
  static Value ratio(Value x, Value y, Value z, Value total) {
    return linear(x + y + z - total);  // 0 also where that is NaN: -inf - -inf
  }
  static bool vanished(Value total) { return !(total > zero); }
  static bool is_zero(Value x) { return !(x > zero); }
  static double log_of(Value x) { return x; }
  static double lift(Value*, int64_t) { return 0; }
  static double normalise(Value* x, int64_t n, bool& ok, uint8_t*) {
    const double top = maximum(x, n);
    if (vanished(top)) {
      ok = false;  // no labelling is allowed
      return 0;
    }
    for (int64_t k = 0; k < n; ++k) x[k] -= top;
    return top;
  }
  // log sum_k exp(x[k] + y[k]) with strides; y may be null.
  static Value log_sum(const Value* x, int64_t x_step, const Value* y, int64_t y_step, int64_t n) {
    double top = zero;
    for (int64_t k = 0; k < n; ++k) {
      const double v = x[k * x_step] + (y ? y[k * y_step] : 0.0);
      top = v > top ? v : top;
    }
    if (!(top > zero)) return zero;
    double sum = 0;
    for (int64_t k = 0; k < n; ++k)
      sum += std::exp(x[k * x_step] + (y ? y[k * y_step] : 0.0) - top);
    return top + std::log(sum);
  }
  static Value total(const Value* x, const Value* y, int64_t n) { return log_sum(x, 1, y, 1, n); }
  static void up(const Value* table, const Value* b, Value* m, EdgeShape s) {
    for (int64_t a = 0; a < s.A; ++a)
      for (int64_t r = 0; r < s.R; ++r)
        m[a * s.R + r] =
            log_sum(b + r * s.C, 1, table ? table + (a * s.R + r) * s.C : nullptr, 1, s.C);
  }
  static Value lifted(Value weight, Value score, Value floor) {
    return weight + score > floor ? weight + score : floor;
  }
  static void least_down(const Value* table, const Value* weight, const Value* floor, Value* to,
                         EdgeShape s) {
    for (int64_t k = 0; k < s.R * s.C; ++k) to[k] = excluded;
    for (int64_t ar = 0; ar < s.A * s.R; ++ar)
      for (int64_t c = 0; c < s.C; ++c) {
        const Value x = lifted(weight[ar], table[ar * s.C + c], floor[ar]);
        Value& least = to[(ar % s.R) * s.C + c];
        least = x < least ? x : least;
      }
  }
  static void least_up(const Value* table, const Value* weight, const Value* floor, Value* to,
                       EdgeShape s) {
    for (int64_t ar = 0; ar < s.A * s.R; ++ar) {
      to[ar] = excluded;
      for (int64_t c = 0; c < s.C; ++c) {
        const int64_t rc = (ar % s.R) * s.C + c;
        const Value x = lifted(weight[rc], table[ar * s.C + c], floor[rc]);
        to[ar] = x < to[ar] ? x : to[ar];
      }
    }
  }
  static void down(const Value* table, const Value* above, Value* d, EdgeShape s) {
    for (int64_t r = 0; r < s.R; ++r)
      for (int64_t c = 0; c < s.C; ++c)
        d[r * s.C + c] =
            log_sum(above + r, s.R, table ? table + r * s.C + c : nullptr, s.R * s.C, s.A);
  }
};

template <class S_>
struct MaxPlus {
  using S = S_;
  using Value = S_;
  static constexpr Value one = 0;
  static constexpr Value zero = -std::numeric_limits<S_>::infinity();
  static constexpr bool exact_range = true, is_max = true, may_hold = false;

  static Value times(Value x, Value y) { return x + y; }
  static double lift(Value*, int64_t) { return 0; }
  // Keeps messages near zero, so that long chains lose no precision.
  static double normalise(Value* x, int64_t n, bool& ok, uint8_t*) {
    const Value top = maximum(x, n);
    if (!(top > zero && top <= std::numeric_limits<Value>::max())) {  // impossible, or overflow
      ok = false;
      return 0;
    }
    CRFX_SIMD
    for (int64_t k = 0; k < n; ++k) x[k] -= top;
    return top;
  }
  static void up(const Value* table, const Value* b, Value* m, EdgeShape s) {
    for (int64_t ar = 0, r = 0; ar < s.A * s.R; ++ar, r = r + 1 == s.R ? 0 : r + 1)
      m[ar] = table ? row_best(table + ar * s.C, b + r * s.C, s.C) : maximum(b + r * s.C, s.C);
  }
};

}  // namespace crfx::CRFX_ISA
