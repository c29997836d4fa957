// Many first-order chains with one shared table side by side: vector lanes run over sequences of
// similar length, so that few labels fill a vector as well as many do and no sum runs across lanes.
// Arrays are [position][label][lane]. A lane shorter than the bundle idles past its end.
#pragma once

#include "inference/instance.hpp"

namespace crfx::CRFX_ISA {

template <class S>
struct Bundle {
  static constexpr int lanes = Lanes<S>::count;
  int64_t first[lanes];   // first row of each lane's instance
  int64_t length[lanes];  // 0 for an unused lane
  int64_t index[lanes];   // instance
  int64_t longest = 0, shortest = 0;

  Bundle(const Problem<S>& p, const int64_t* instances, int count) {
    for (int l = 0; l < lanes; ++l) {
      index[l] = l < count ? instances[l] : -1;
      first[l] = l < count ? p.offsets[index[l]] : 0;
      length[l] = l < count ? p.length(index[l]) : 0;
      if (length[l] > longest) longest = length[l];
    }
    shortest = longest;
    for (int l = 0; l < lanes; ++l)
      if (length[l] < shortest) shortest = length[l];
  }
  // All bits set in lanes that have a position t.
  Bits<S> alive(int64_t t) const {
    Bits<S> mask;
    for (int l = 0; l < lanes; ++l) mask[l] = t < length[l] ? -1 : 0;
    return mask;
  }
};

template <class S>
CRFX_INLINE bool any(Bits<S> mask) {
  typename Lanes<S>::Int seen = 0;
  for (int l = 0; l < Lanes<S>::count; ++l) seen |= mask[l];
  return seen != 0;
}

// Runs body.template operator()<width>(start) over [0, n) in blocks of 8, 4, 2, 1.
template <class Body>
CRFX_INLINE void in_blocks(int64_t n, Body&& body) {
  int64_t k = 0;
  for (; k + 8 <= n; k += 8) body.template operator()<8>(k);
  if (k + 4 <= n) body.template operator()<4>(k), k += 4;
  if (k + 2 <= n) body.template operator()<2>(k), k += 2;
  if (k < n) body.template operator()<1>(k);
}

// The transposition between rows of an array and lanes.
template <class S>
CRFX_INLINE void gather_rows(const S* array, const Bundle<S>& bundle, int64_t t, int64_t K,
                             Pack<S>* to) {
  constexpr int lanes = Bundle<S>::lanes;
  S* flat = reinterpret_cast<S*>(to);
  for (int l = 0; l < lanes; ++l) {
    if (t < bundle.length[l]) {
      const S* row = array + (bundle.first[l] + t) * K;
      for (int64_t k = 0; k < K; ++k) flat[k * lanes + l] = row[k];
    } else {
      for (int64_t k = 0; k < K; ++k) flat[k * lanes + l] = 0;
    }
  }
}

template <class S>
CRFX_INLINE void scatter_rows(const Pack<S>* from, const Bundle<S>& bundle, int64_t t, int64_t K,
                              S* array) {
  constexpr int lanes = Bundle<S>::lanes;
  const S* flat = reinterpret_cast<const S*>(from);
  for (int l = 0; l < lanes; ++l) {
    if (t >= bundle.length[l]) continue;
    S* row = array + (bundle.first[l] + t) * K;
    for (int64_t k = 0; k < K; ++k) row[k] = flat[k * lanes + l];
  }
}

// Node scores of position t, with start and end scores where they belong.
template <class S>
CRFX_INLINE void gather_scores(const Problem<S>& p, const Bundle<S>& bundle, int64_t t,
                               Pack<S>* x) {
  const int64_t K = p.n_labels;
  gather_rows(p.node, bundle, t, K, x);
  if (p.start && t == 0)
    for (int64_t k = 0; k < K; ++k) x[k] += p.start[k];
  if (p.end && t + 1 >= bundle.shortest) {
    const Bits<S> last = bundle.alive(t) & ~bundle.alive(t + 1);
    for (int64_t k = 0; k < K; ++k) x[k] += last ? splat(p.end[k]) : Pack<S>{};
  }
}

template <class S>
CRFX_INLINE Pack<S> largest_of(const Pack<S>* x, int64_t n) {
  Pack<S> top = x[0];
  for (int64_t k = 1; k < n; ++k) top = larger<Pack<S>>(x[k], top);
  return top;
}

}  // namespace crfx::CRFX_ISA
