// Sums over permutations by sums over subsets: permanents of matrices with positive entries.
//
// Ranks are filled one by one. F[s] sums over the ways to give the first |s| ranks to the documents
// of the subset s, B[s] over the ways to give the others to the rest: 2^m sums of up to m products
// in place of m! permutations. All numbers are positive, so nothing cancels.
#pragma once

#include "permutations/kernels.hpp"
#include "simd/pack.hpp"

namespace crfx::CRFX_ISA {

using Wide = Pack<double>;
constexpr int kWideLanes = Lanes<double>::count;
static_assert(kQueryLanes % kWideLanes == 0);

CRFX_INLINE Wide wide(const double* rows, int64_t at) { return load(rows + at * kQueryLanes); }
// Moves arrays (null where there are none) to a lane: a vector may hold fewer queries than a
// bundle.
template <class Pointer, int n>
CRFX_INLINE void move_to_lane(int lane, Pointer* (&&arrays)[n]) {
  for (Pointer* array : arrays)
    if (*array) *array += lane;
}
inline QueryBundle from_lane(QueryBundle b, int lane) {
  move_to_lane(lane, {&b.score, &b.worth, &b.base, &b.document, &b.rank, &b.truth});
  return b;
}
inline PermutationMoments from_lane(PermutationMoments out, int lane) {
  move_to_lane(lane,
               {&out.z, &out.mean, &out.mean_worth, &out.square_worth, &out.cross, &out.spread});
  return out;
}
inline ScaledMoments from_lane(ScaledMoments out, int lane) {
  move_to_lane(lane, {&out.log_z, &out.mean, &out.spread});
  return out;
}

CRFX_INLINE Wide magnitude(Wide x) { return larger<Wide>(x, -x); }

// Calls body(i) for every document i of a subset.
template <class Body>
CRFX_INLINE void for_members(unsigned subset, Body&& body) {
  for (; subset; subset &= subset - 1) body(__builtin_ctz(subset));
}

class SubsetSums {
 public:
  SubsetSums(const QueryBundle& bundle, Workspace& work)
      : b_(bundle), m_(bundle.m), all_((1u << m_) - 1) {
    entry_ = work.take<Wide>(m_ * m_);
    worth_ = work.take<Wide>(m_ * m_);
    for (int r = 0; r < m_; ++r)
      for (int i = 0; i < m_; ++i) {
        const Wide worth = wide(b_.worth, i) * b_.discount[r];
        const Wide log = wide(b_.score, i) * b_.alpha[r] - worth * b_.loss_factor -
                         wide(b_.document, i) - wide(b_.rank, r);
        worth_[r * m_ + i] = worth;
        entry_[r * m_ + i] = exp_of_negative<double>(smaller<Wide>(log, Wide{}));
      }
    forward_ = work.take<Wide>(all_ + 1);
    backward_ = work.take<Wide>(all_ + 1);
  }

  void run(const PermutationMoments& out, Workspace& work) {
    pass_forward();
    Wide* mean = zeros(m_, work);
    Wide* square = zeros(m_, work);
    pass_backward(mean, square);
    z_ = forward_[all_];
    store(out.z, z_);
    for (int i = 0; i < m_; ++i) {
      mean[i] /= z_;
      square[i] /= z_;
      store(out.mean + i * kQueryLanes, mean[i]);
    }
    if (out.mean_worth) cross_moments(out, work);
    if (out.spread) spreads(mean, square, out.spread, work);
  }

 private:
  static Wide* zeros(int64_t n, Workspace& work) {
    Wide* x = work.take<Wide>(n);
    for (int64_t k = 0; k < n; ++k) x[k] = Wide{};
    return x;
  }
  // What rank r, counted from 0, gives to each document.
  const Wide* entries(int r) const { return entry_ + r * m_; }

  void pass_forward() {
    forward_[0] = splat(1.0);
    for (unsigned s = 1; s <= all_; ++s) {
      const Wide* entry = entries(__builtin_popcount(s) - 1);
      Wide sum{};
      for_members(s, [&](int i) { sum += entry[i] * forward_[s ^ (1u << i)]; });
      forward_[s] = sum;
    }
  }
  // Also adds Z E alpha[y_i] and Z E alpha[y_i]^2.
  void pass_backward(Wide* mean, Wide* square) {
    backward_[all_] = splat(1.0);
    for (unsigned s = all_; s-- > 0;) {
      const int r = __builtin_popcount(s);
      const Wide* entry = entries(r);
      const Wide first = forward_[s] * b_.alpha[r], second = first * b_.alpha[r];
      Wide sum{};
      for_members(all_ ^ s, [&](int i) {
        const Wide rest = entry[i] * backward_[s | (1u << i)];
        sum += rest;
        mean[i] += first * rest;
        square[i] += second * rest;
      });
      backward_[s] = sum;
    }
  }
  // E G and E G alpha[y_i]: as above, with a second number beside each sum, that of G so far.
  void cross_moments(const PermutationMoments& out, Workspace& work) {
    Wide* before = work.take<Wide>(all_ + 1);
    Wide* after = work.take<Wide>(all_ + 1);
    Wide* cross = zeros(m_, work);
    before[0] = Wide{};
    for (unsigned s = 1; s <= all_; ++s) {
      const int r = __builtin_popcount(s) - 1;
      Wide sum{};
      for_members(s, [&](int i) {
        const unsigned less = s ^ (1u << i);
        sum += entries(r)[i] * (before[less] + worth_[r * m_ + i] * forward_[less]);
      });
      before[s] = sum;
    }
    after[all_] = Wide{};
    for (unsigned s = all_; s-- > 0;) {
      const int r = __builtin_popcount(s);
      Wide sum{};
      for_members(all_ ^ s, [&](int i) {
        const unsigned more = s | (1u << i);
        const Wide entry = entries(r)[i];
        const Wide rest = entry * (after[more] + worth_[r * m_ + i] * backward_[more]);
        sum += rest;
        cross[i] += b_.alpha[r] * (before[s] * entry * backward_[more] + forward_[s] * rest);
      });
      after[s] = sum;
    }
    store(out.mean_worth, before[all_] / z_);
    if (out.square_worth) store(out.square_worth, square_of_worth(before, work) / z_);
    for (int i = 0; i < m_; ++i) store(out.cross + i * kQueryLanes, cross[i] / z_);
  }
  // Z E G^2; `before` is Z E G so far, of subsets.
  Wide square_of_worth(const Wide* before, Workspace& work) {
    Wide* square = work.take<Wide>(all_ + 1);
    square[0] = Wide{};
    for (unsigned s = 1; s <= all_; ++s) {
      const int r = __builtin_popcount(s) - 1;
      Wide sum{};
      for_members(s, [&](int i) {
        const unsigned less = s ^ (1u << i);
        const Wide own = worth_[r * m_ + i];
        sum += entries(r)[i] * (square[less] + own * (2.0 * before[less] + own * forward_[less]));
      });
      square[s] = sum;
    }
    return square[all_];
  }
  // Row sums of |Cov|. together[j * m + i] is Z E alpha[y_j] alpha[y_i] over permutations with j
  // before i.
  void spreads(const Wide* mean, const Wide* square, double* out, Workspace& work) {
    Wide* with = work.take<Wide>(all_ + 1);
    Wide* together = zeros(m_ * m_, work);
    for (int j = 0; j < m_; ++j) pairs_with(j, with, together + j * m_);
    for (int i = 0; i < m_; ++i) {
      Wide sum = magnitude(square[i] - mean[i] * mean[i]);
      for (int j = 0; j < m_; ++j) {
        if (j == i) continue;
        const Wide both = (together[j * m_ + i] + together[i * m_ + j]) / z_;
        sum += magnitude(both - mean[i] * mean[j]);
      }
      store(out + i * kQueryLanes, sum);
    }
  }
  // with[s], for subsets with j: F[s] with every way counted alpha[y_j] times.
  void pairs_with(int j, Wide* with, Wide* together) {
    for (unsigned s = 1; s <= all_; ++s) {
      if (!(s >> j & 1)) continue;
      const int r = __builtin_popcount(s) - 1;
      const Wide* entry = entries(r);
      Wide sum = entry[j] * b_.alpha[r] * forward_[s ^ (1u << j)];
      for_members(s ^ (1u << j), [&](int i) { sum += entry[i] * with[s ^ (1u << i)]; });
      with[s] = sum;
      if (s == all_) break;
      const Wide* next = entries(r + 1);
      const Wide weighted = sum * b_.alpha[r + 1];
      for_members(all_ ^ s,
                  [&](int i) { together[i] += weighted * next[i] * backward_[s | (1u << i)]; });
    }
  }

  const QueryBundle& b_;
  int m_;
  unsigned all_;
  Wide *entry_, *worth_;  // (m x m) of rank and document
  Wide *forward_, *backward_;
  Wide z_;
};

inline void permutation_moments(const QueryBundle& bundle, const PermutationMoments& out,
                                Workspace& work) {
  for (int lane = 0; lane < kQueryLanes; lane += kWideLanes) {
    const QueryBundle own = from_lane(bundle, lane);
    SubsetSums(own, work).run(from_lane(out, lane), work);
  }
}

}  // namespace crfx::CRFX_ISA
