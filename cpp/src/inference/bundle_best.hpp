// Viterbi over one bundle: messages in lanes, then each lane walks its own labels.
#pragma once

#include "inference/bundle.hpp"
#include "simd/rows.hpp"

namespace crfx::CRFX_ISA {

// best[o] = max_i (coefficient[i, o] + x[i])
template <class S, int block>
CRFX_INLINE void best_block(const S* coefficient, const Pack<S>* x, Pack<S>* out, int64_t n) {
  Pack<S> best[block];
  for (int q = 0; q < block; ++q) best[q] = splat(-std::numeric_limits<S>::infinity());
  for (int64_t i = 0; i < n; ++i)
    for (int q = 0; q < block; ++q)
      best[q] = larger<Pack<S>>(coefficient[i * n + q] + x[i], best[q]);
  for (int q = 0; q < block; ++q) out[q] = best[q];
}

// Index of the first of the largest x[k] + y[k].
template <class S>
CRFX_INLINE int64_t first_best(const S* x, const S* y, int64_t n) {
  constexpr int64_t count = Lanes<S>::count;
  const S top = row_best(x, y, n);
  for (int64_t k = 0;; k += count) {
    const unsigned equal = lanes_set<S>((load(x + k) + load(y + k) == top) &
                                        (n - k >= count ? ~Bits<S>{} : first_lanes<S>(n - k)));
    if (equal) return k + __builtin_ctz(equal);
    if (k + count >= n) return 0;  // only NaN: the lane is redone
  }
}

// From the first position on, every lane takes the best label given the previous one. Messages are
// turned into rows of labels, a block of positions at a time.
template <class S>
inline void walk_labels(const S* table, const Pack<S>* below, const Bundle<S>& bundle, int64_t K,
                        int32_t* labels, Workspace& work) {
  constexpr int lanes = Bundle<S>::lanes;
  const int64_t stride = block_positions(K) * K + lanes;
  S* rows = work.take<S>(lanes * stride);
  S* none = work.take<S>(K);
  for (int64_t k = 0; k < K; ++k) none[k] = 0;
  const S* before[lanes];  // scores of the edge from the label before
  for (int l = 0; l < lanes; ++l) before[l] = none;
  for_blocks(bundle.longest, K, [&](int64_t begin, int64_t end) {
    turn_rows(below + begin * K, (end - begin) * K, rows, stride);
    for (int64_t t = begin; t < end; ++t)
      for (int l = 0; l < lanes; ++l) {
        if (t >= bundle.length[l]) continue;
        const int64_t best = first_best(rows + l * stride + (t - begin) * K, before[l], K);
        before[l] = table + best * K;
        labels[bundle.first[l] + t] = static_cast<int32_t>(best);
      }
  });
}

// Returns the valid lanes; the others have scores that overflow.
template <class S>
inline Bits<S> bundle_best(const Problem<S>& p, const LiftedTables<S>& lifted,
                           const Bundle<S>& bundle, int32_t* labels, Workspace& work) {
  const int64_t K = p.n_labels, T = bundle.longest;
  Pack<S>*below = work.take<Pack<S>>(T * K), *up = work.take<Pack<S>>(K);
  Bits<S> ok = ~Bits<S>{};
  gather_scores(p, bundle, 0, T, below);
  for (int64_t t = T - 1; t >= 0; --t) {
    Pack<S>* here = below + t * K;
    if (t + 1 < T) {
      const Bits<S> inner = bundle.alive(t + 1);
      for (int64_t k = 0; k < K; ++k) here[k] += inner ? up[k] : Pack<S>{};
    }
    Pack<S> top = largest_of<S>(here, K);
    ok &= top <= std::numeric_limits<S>::max();
    top = top > -std::numeric_limits<S>::infinity() ? top : Pack<S>{};
    for (int64_t k = 0; k < K; ++k) here[k] -= top;
    if (t > 0)
      in_blocks(K, [&]<int width>(int64_t k) {
        best_block<S, width>(lifted.transposed + k, here, up + k, K);
      });
  }
  walk_labels(lifted.tables, below, bundle, K, labels, work);
  return ok;
}

}  // namespace crfx::CRFX_ISA
