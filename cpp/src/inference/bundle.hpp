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
      lengths_[l] = static_cast<typename Lanes<S>::Int>(length[l]);
      if (length[l] > longest) longest = length[l];
    }
    shortest = longest;
    for (int l = 0; l < lanes; ++l)
      if (length[l] < shortest) shortest = length[l];
  }
  // All bits set in lanes that have a position t.
  CRFX_INLINE Bits<S> alive(int64_t t) const {
    return lengths_ > static_cast<typename Lanes<S>::Int>(t);
  }
  // How many of the numbers of positions begin .. end - 1, K each, lane l has.
  CRFX_INLINE int64_t filled(int l, int64_t begin, int64_t end, int64_t K) const {
    const int64_t last = length[l] < end ? length[l] : end;
    return last > begin ? (last - begin) * K : 0;
  }

 private:
  Bits<S> lengths_;
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

// Positions are moved between rows of an array and lanes in blocks of about so many packs.
constexpr int64_t kBlockPacks = 128;

CRFX_INLINE int64_t block_positions(int64_t K) { return K < kBlockPacks ? kBlockPacks / K : 1; }

// Calls body(begin, end) for blocks of the positions 0 .. T - 1, from the first to the last.
template <class Body>
CRFX_INLINE void for_blocks(int64_t T, int64_t K, Body&& body) {
  const int64_t size = block_positions(K);
  for (int64_t begin = 0; begin < T; begin += size)
    body(begin, begin + size < T ? begin + size : T);
}

// Calls body(e, packs) for tiles of the n numbers of a lane that a square of packs can hold. The
// last tile reaches back over the one before, so that only a range shorter than a pack is
// incomplete.
template <class S, class Body>
CRFX_INLINE void for_tiles(int64_t n, Body&& body) {
  constexpr int lanes = Lanes<S>::count;
  int64_t e = 0;
  for (; e + lanes <= n; e += lanes) body(e, lanes);
  if (e == n) return;
  if (n >= lanes)
    body(n - lanes, lanes);
  else
    body(0, static_cast<int>(n));
}

// to (positions x K packs) = rows begin .. end - 1 of every lane's instance, 0 past its end.
template <class S>
inline void gather_rows(const S* array, const Bundle<S>& bundle, int64_t begin, int64_t end,
                        int64_t K, Pack<S>* to) {
  constexpr int lanes = Bundle<S>::lanes;
  const S* from[lanes];
  int64_t filled[lanes];
  for (int l = 0; l < lanes; ++l) {
    filled[l] = bundle.filled(l, begin, end, K);
    from[l] = filled[l] > 0 ? array + (bundle.first[l] + begin) * K : array;
  }
  const int64_t all = bundle.shortest > begin ? (bundle.shortest - begin) * K : 0;
  for_tiles<S>((end - begin) * K, [&](int64_t e, int packs) {
    Pack<S> tile[lanes];
    if (e + lanes <= all) {
      for (int l = 0; l < lanes; ++l) tile[l] = load(from[l] + e);
    } else {
      for (int l = 0; l < lanes; ++l)
        tile[l] = e + lanes <= filled[l] ? load(from[l] + e)
                  : e < filled[l]        ? load_first(from[l] + e, filled[l] - e)
                                         : Pack<S>{};
    }
    transpose<S>(tile);
    for (int k = 0; k < packs; ++k) to[e + k] = tile[k];
  });
}

// rows (lanes, `stride` apart) = n packs, turned: rows have room for a whole pack at their end.
template <class S>
inline void turn_rows(const Pack<S>* from, int64_t n, S* rows, int64_t stride) {
  constexpr int lanes = Lanes<S>::count;
  for_tiles<S>(n, [&](int64_t e, int packs) {
    Pack<S> tile[lanes];
    for (int k = 0; k < lanes; ++k) tile[k] = k < packs ? from[e + k] : Pack<S>{};
    transpose<S>(tile);
    for (int l = 0; l < lanes; ++l) store<S>(rows + l * stride + e, tile[l]);
  });
}

// The way back: positions past the end of a lane's instance are left out.
template <class S>
inline void scatter_rows(const Pack<S>* from, const Bundle<S>& bundle, int64_t begin, int64_t end,
                         int64_t K, S* array) {
  constexpr int lanes = Bundle<S>::lanes;
  for_tiles<S>((end - begin) * K, [&](int64_t e, int packs) {
    Pack<S> tile[lanes];
    for (int k = 0; k < lanes; ++k) tile[k] = k < packs ? from[e + k] : Pack<S>{};
    transpose<S>(tile);
    for (int l = 0; l < lanes; ++l) {
      const int64_t filled = bundle.filled(l, begin, end, K) - e;
      if (filled <= 0) continue;
      S* to = array + (bundle.first[l] + begin) * K + e;
      if (filled >= lanes)
        store<S>(to, tile[l]);
      else
        store_first(to, tile[l], filled);
    }
  });
}

// Node scores of positions begin .. end - 1, with start and end scores where they belong.
template <class S>
CRFX_INLINE void gather_scores(const Problem<S>& p, const Bundle<S>& bundle, int64_t begin,
                               int64_t end, Pack<S>* x) {
  const int64_t K = p.n_labels;
  gather_rows(p.node, bundle, begin, end, K, x);
  if (p.start && begin == 0)
    for (int64_t k = 0; k < K; ++k) x[k] += p.start[k];
  if (!p.end) return;
  const int64_t earliest = bundle.shortest > begin + 1 ? bundle.shortest - 1 : begin;
  for (int64_t t = earliest; t < end; ++t) {
    const Bits<S> last = bundle.alive(t) & ~bundle.alive(t + 1);
    for (int64_t k = 0; k < K; ++k) x[(t - begin) * K + k] += last ? splat(p.end[k]) : Pack<S>{};
  }
}

// Combines f(0) .. f(n - 1), four at a time: a single chain would wait for its own last step.
template <class S, class Term, class Combine>
CRFX_INLINE Pack<S> reduce(int64_t n, Pack<S> start, Term&& f, Combine&& combine) {
  Pack<S> part[4] = {start, start, start, start};
  int64_t k = 0;
  for (; k + 4 <= n; k += 4)
    for (int q = 0; q < 4; ++q) part[q] = combine(f(k + q), part[q]);
  for (; k < n; ++k) part[0] = combine(f(k), part[0]);
  return combine(combine(part[0], part[1]), combine(part[2], part[3]));
}
template <class S, class Term>
CRFX_INLINE Pack<S> sum_over(int64_t n, Term&& f) {
  return reduce<S>(n, Pack<S>{}, f, [](Pack<S> a, Pack<S> b) { return a + b; });
}
template <class S>
CRFX_INLINE Pack<S> largest_of(const Pack<S>* x, int64_t n) {
  return reduce<S>(
      n, splat(-std::numeric_limits<S>::infinity()), [&](int64_t k) { return x[k]; },
      [](Pack<S> a, Pack<S> b) { return larger<Pack<S>>(a, b); });
}

}  // namespace crfx::CRFX_ISA
