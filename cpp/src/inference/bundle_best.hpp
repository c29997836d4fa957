// Viterbi over one bundle: messages in lanes, then each lane walks its own labels.
#pragma once

#include "inference/bundle.hpp"

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

// Returns the lanes that stand; the others have scores that overflow.
template <class S>
inline Bits<S> bundle_best(const Problem<S>& p, const LiftedTables<S>& lifted,
                           const Bundle<S>& bundle, int32_t* labels, Workspace& work) {
  const int64_t K = p.n_labels, T = bundle.longest;
  constexpr int lanes = Bundle<S>::lanes;
  Pack<S>*below = work.take<Pack<S>>(T * K), *up = work.take<Pack<S>>(K);
  Bits<S> ok = ~Bits<S>{};
  for (int64_t t = T - 1; t >= 0; --t) {
    Pack<S>* here = below + t * K;
    gather_scores(p, bundle, t, here);
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
  const S* flat = reinterpret_cast<const S*>(below);
  for (int l = 0; l < lanes; ++l) {
    int64_t best = 0;
    for (int64_t t = 0; t < bundle.length[l]; ++t) {
      const S *column = flat + t * K * lanes + l, *row = lifted.tables + best * K;
      int64_t next = 0;
      S top = -std::numeric_limits<S>::infinity();
      for (int64_t k = 0; k < K; ++k) {
        const S score = column[k * lanes] + (t > 0 ? row[k] : S(0));
        if (score > top) top = score, next = k;
      }
      labels[bundle.first[l] + t] = static_cast<int32_t>(best = next);
    }
  }
  return ok;
}

}  // namespace crfx::CRFX_ISA
