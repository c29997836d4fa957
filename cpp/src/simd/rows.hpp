// Loops over one row of labels, in packs with a masked rest: the inner loops of ScaledSum and
// MaxPlus. Rows are short (the number of labels), so that the rest of a row matters as much as its
// full packs. Every row may be read up to one pack past its end, and a row called `to` is stored in
// whole packs that leave what follows it unchanged: workspace pieces and lifted tables have slack.
#pragma once

#include <cstring>
#include <limits>
#include <utility>

#include "simd/pack.hpp"

namespace crfx::CRFX_ISA {

// All bits set in the first `rest` lanes: a window into ones followed by zeros.
template <class S>
CRFX_INLINE Bits<S> first_lanes(int64_t rest) {
  constexpr int count = Lanes<S>::count;
  using Int = typename Lanes<S>::Int;
  static constexpr struct Ramp {
    Int bits[2 * count];
    constexpr Ramp() : bits{} {
      for (int l = 0; l < count; ++l) bits[l] = -1;
    }
  } ramp;
  Bits<S> mask;
  std::memcpy(&mask, ramp.bits + count - rest, sizeof(mask));
  return mask;
}

// Folds the upper half of the lanes onto the lower, until one is left. Shuffles need constants.
template <class S, int width, int... lane, class Combine>
CRFX_INLINE S fold(Pack<S> x, std::integer_sequence<int, lane...> lanes, Combine&& combine) {
  if constexpr (width == 0) {
    return x[0];
  } else {
    const Pack<S> turned = __builtin_shufflevector(x, x, ((lane + width) % Lanes<S>::count)...);
    return fold<S, width / 2>(combine(x, turned), lanes, combine);
  }
}
template <class S, class Combine>
CRFX_INLINE S fold(Pack<S> x, Combine&& combine) {
  constexpr int count = Lanes<S>::count;
  return fold<S, count / 2>(x, std::make_integer_sequence<int, count>{}, combine);
}

// Runs body(k, lanes in use) over a row: all lanes for full packs, then the rest.
template <class S, class Body>
CRFX_INLINE void over_row(int64_t n, Body&& body) {
  constexpr int count = Lanes<S>::count;
  int64_t k = 0;
  for (; k + count <= n; k += count) body(k, ~Bits<S>{});
  if (k < n) body(k, first_lanes<S>(n - k));
}

template <class S>
CRFX_INLINE S row_total(const S* x, int64_t n) {
  Pack<S> sum{};
  over_row<S>(n, [&](int64_t k, Bits<S> used) { sum += used ? load(x + k) : Pack<S>{}; });
  return fold<S>(sum, [](Pack<S> a, Pack<S> b) { return a + b; });
}

template <class S>
CRFX_INLINE S row_product(const S* x, const S* y, int64_t n) {
  Pack<S> sum{};
  over_row<S>(
      n, [&](int64_t k, Bits<S> used) { sum += used ? load(x + k) * load(y + k) : Pack<S>{}; });
  return fold<S>(sum, [](Pack<S> a, Pack<S> b) { return a + b; });
}

// A table seen as `count` rows that are combined into one: row i starts at first + i * step, and
// weights of the rows are `weight_step` apart.
template <class S>
struct RowSet {
  const S* first;
  int64_t step, count, weight_step;
};

// Combines some packs of all rows in registers: acc = combine(acc, i, pack of row i).
template <class S, int packs, class Combine>
CRFX_INLINE void mix_packs(const RowSet<S>& rows, Pack<S> start, S* to, int64_t n,
                           Combine&& combine) {
  constexpr int64_t count = Lanes<S>::count;
  Pack<S> acc[packs];
  for (int q = 0; q < packs; ++q) acc[q] = start;
  for (int64_t i = 0; i < rows.count; ++i)
    for (int q = 0; q < packs; ++q)
      acc[q] = combine(acc[q], i, load(rows.first + i * rows.step + q * count));
  for (int q = 0; q + 1 < packs; ++q) store<S>(to + q * count, acc[q]);
  // The last pack may hold less than a pack of this row: what follows it stays as it was.
  S* last = to + (packs - 1) * count;
  const int64_t rest = n - (packs - 1) * count;
  store<S>(last,
           rest >= count ? acc[packs - 1] : (first_lanes<S>(rest) ? acc[packs - 1] : load(last)));
}

// The same over rows of n labels.
template <class S, class Combine>
CRFX_INLINE void mix_rows(RowSet<S> rows, Pack<S> start, S* to, int64_t n, Combine&& combine) {
  constexpr int64_t count = Lanes<S>::count;
  for (; n > 3 * count; n -= 4 * count, rows.first += 4 * count, to += 4 * count)
    mix_packs<S, 4>(rows, start, to, n, combine);
  if (n > 2 * count)
    mix_packs<S, 3>(rows, start, to, n, combine);
  else if (n > count)
    mix_packs<S, 2>(rows, start, to, n, combine);
  else if (n > 0)
    mix_packs<S, 1>(rows, start, to, n, combine);
}

// to = sum_i weight[i] row[i]
template <class S>
CRFX_INLINE void rows_sum(const RowSet<S>& rows, const S* weight, S* to, int64_t n) {
  mix_rows<S>(rows, Pack<S>{}, to, n, [&](Pack<S> acc, int64_t i, Pack<S> x) {
    return acc + weight[i * rows.weight_step] * x;
  });
}

// to = min_i max(weight[i] row[i], floor[i]), no more than `limit`
template <class S>
CRFX_INLINE void rows_least(const RowSet<S>& rows, const S* weight, const S* floor, S limit, S* to,
                            int64_t n) {
  mix_rows<S>(rows, splat(limit), to, n, [&](Pack<S> acc, int64_t i, Pack<S> x) {
    const int64_t k = i * rows.weight_step;
    return smaller<Pack<S>>(larger<Pack<S>>(weight[k] * x, splat(floor[k])), acc);
  });
}

// to += weight x y; `to` may overlap no other row's packs.
template <class S>
CRFX_INLINE void row_add_product(S weight, const S* x, const S* y, S* to, int64_t n) {
  for (int64_t k = 0; k < n; k += Lanes<S>::count)
    store<S>(to + k, load(to + k) + weight * load(x + k) * load(y + k));
}

// max (x + y)
template <class S>
CRFX_INLINE S row_best(const S* x, const S* y, int64_t n) {
  const Pack<S> none = splat(-std::numeric_limits<S>::infinity());
  Pack<S> best = none;
  over_row<S>(n, [&](int64_t k, Bits<S> used) {
    best = larger<Pack<S>>(used ? load(x + k) + load(y + k) : none, best);
  });
  return fold<S>(best, [](Pack<S> a, Pack<S> b) { return larger<Pack<S>>(a, b); });
}

// min max(weight x, floor), no more than `limit`
template <class S>
CRFX_INLINE S row_least(const S* weight, const S* x, const S* floor, S limit, int64_t n) {
  Pack<S> least = splat(limit);
  over_row<S>(n, [&](int64_t k, Bits<S> used) {
    const Pack<S> product = larger<Pack<S>>(load(weight + k) * load(x + k), load(floor + k));
    least = smaller<Pack<S>>(used ? product : least, least);
  });
  return fold<S>(least, [](Pack<S> a, Pack<S> b) { return smaller<Pack<S>>(a, b); });
}

}  // namespace crfx::CRFX_ISA
