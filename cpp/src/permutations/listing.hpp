// Sums that do not factorise: all m! permutations are listed, rank by rank, with running sums.
#pragma once

#include "permutations/subset_sums.hpp"

namespace crfx::CRFX_ISA {

// Permutations of the last n <= 3 documents.
template <int n>
struct LastPermutations {
  static constexpr int count = n == 3 ? 6 : n;
  // at[k][p]: which of them stands at place p.
  static constexpr int8_t at[6][3] = {
      {0, 1, 2}, {n == 2 ? 1 : 0, n == 2 ? 0 : 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
};

// exp of n numbers of at most 700, those below -700 counted as that, to about 2 ulp; step by step
// beside each other, since each alone would wait for its own last step. The polynomial interpolates
// exp at the Chebyshev nodes of [-log 2 / 2, log 2 / 2]; it is off by 3e-16 at most.
template <int n>
CRFX_INLINE void exp_together(Wide* x) {
  using L = Lanes<double>;
  constexpr double coefficient[] = {
      0x1.28a2c0a7209fbp-22, 0x1.72faf024b693bp-19, 0x1.a019a66a75dd4p-16, 0x1.a01978c6baf81p-13,
      0x1.6c16c17f43a58p-10, 0x1.1111112dd67c5p-7,  0x1.55555555520afp-5,  0x1.555555554b757p-3,
      0x1.0000000000005p-1,  0x1.000000000001ep+0,  0x1.0000000000000p+0};
  Bits<double> power[n];
  Wide p[n];
  for (int k = 0; k < n; ++k) {
    const Wide clamped = larger<Wide>(x[k], splat(-700.0));
    const Wide rounded = clamped * 1.44269504088896340736 + L::magic, whole = rounded - L::magic;
    x[k] = (clamped - whole * L::ln2_high) - whole * L::ln2_low;
    power[k] = ((Bits<double>)rounded + L::bias) << L::mantissa;
    p[k] = splat(coefficient[0]);
  }
  for (int step = 1; step < 11; ++step)
    for (int k = 0; k < n; ++k) p[k] = p[k] * x[k] + coefficient[step];
  for (int k = 0; k < n; ++k) x[k] = p[k] * (Wide)power[k];
}

// Sums over the listed permutations, with x the loss of a permutation times its weight.
template <bool spread>
class PermutationListing {
 public:
  PermutationListing(const QueryBundle& bundle, Workspace& work) : b_(bundle), m_(bundle.m) {
    gain_ = work.take<Wide>(m_ * m_);
    lost_ = work.take<Wide>(m_ * m_);
    first_ = work.take<Wide>(m_);
    second_ = work.take<Wide>(m_);
    pairs_ = work.take<Wide>(m_ * m_);
    for (int r = 0; r < m_; ++r)
      for (int i = 0; i < m_; ++i) {
        gain_[r * m_ + i] = wide(b_.score, i) * b_.alpha[r];
        lost_[r * m_ + i] = wide(b_.worth, i) * b_.discount[r];
        pairs_[r * m_ + i] = Wide{};
      }
    for (int i = 0; i < m_; ++i) first_[i] = second_[i] = Wide{};
    // Log weights are loss * ahead: how far a permutation's score is ahead of the truths', and 1.
    ahead_ = splat(1.0);
    for (int i = 0; i < m_; ++i) ahead_ -= wide(b_.truth, i) * wide(b_.score, i);
  }

  void run(const ScaledMoments& out) {
    top_ = z_ = Wide{};  // 0 is the log weight of a truth
    if (reaches_far()) find_top(everyone(), m_, ahead_, wide(b_.base, 0));
    const Sums all = walk(everyone(), m_, ahead_, wide(b_.base, 0));
    for (int l = 0; l < kWideLanes; ++l) out.log_z[l] = top_[l] + __builtin_log(z_[l]);
    centre(first_, all.first);
    for (int i = 0; i < m_; ++i) store(out.mean + i * kQueryLanes, first_[i]);
    if constexpr (spread) {
      centre(second_, all.second);
      write_spreads(all.second / z_, out.spread);
    }
  }

 private:
  static constexpr int kMost = 16;
  static constexpr double kFar = 600;  // below the largest exponent of float64
  // The documents that have no rank yet.
  struct Left {
    int8_t document[kMost];
  };
  // Of weight * loss, and of weight * loss^2.
  struct Sums {
    Wide first, second;
  };
  Left everyone() const {
    Left all;
    for (int i = 0; i < m_; ++i) all.document[i] = static_cast<int8_t>(i);
    return all;
  }
  CRFX_INLINE static Left without(const Left& left, int n, int k) {
    Left rest;
    for (int j = 0; j + 1 < n; ++j) rest.document[j] = left.document[j + (j >= k)];
    return rest;
  }

  // Whether a weight may be too large for float64: losses are at most 1, scores at most 0.
  bool reaches_far() const {
    for (int l = 0; l < kWideLanes; ++l)
      if (ahead_[l] > kFar) return true;
    return false;
  }
  void find_top(const Left& left, int n, Wide ahead, Wide loss) {
    if (n == 0) top_ = larger<Wide>(top_, loss * ahead);
    const int64_t row = (m_ - n) * m_;
    for (int k = 0; k < n; ++k) {
      const int i = left.document[k];
      find_top(without(left, n, k), n - 1, ahead + gain_[row + i], loss - lost_[row + i]);
    }
  }

  // Sums over the permutations of the documents left; those ranked so far are in path_.
  Sums walk(const Left& left, int n, Wide ahead, Wide loss) {
    if (n == 3) return walk_last<3>(left, ahead, loss);
    if (n == 2) return walk_last<2>(left, ahead, loss);
    if (n == 1) return walk_last<1>(left, ahead, loss);
    const int r = m_ - n;
    Sums sum{};
    for (int k = 0; k < n; ++k) {
      const int i = left.document[k];
      path_[r] = i;
      const Sums own =
          walk(without(left, n, k), n - 1, ahead + gain_[r * m_ + i], loss - lost_[r * m_ + i]);
      sum.first += own.first;
      first_[i] += own.first * b_.alpha[r];
      if constexpr (spread) {
        sum.second += own.second;
        second_[i] += own.second * b_.alpha[r];
        for (int j = 0; j <= r; ++j)
          pairs_[path_[j] * m_ + i] += own.second * (b_.alpha[j] * b_.alpha[r]);
      }
    }
    return sum;
  }

  // The last ranks at once: most of the work is here.
  template <int n>
  CRFX_INLINE Sums walk_last(const Left& left, Wide ahead, Wide loss) {
    using Last = LastPermutations<n>;
    const int r = m_ - n;
    Wide lost[Last::count], x[Last::count];
    for (int k = 0; k < Last::count; ++k) {
      Wide own = ahead;
      lost[k] = loss;
      for (int p = 0; p < n; ++p) {
        const int64_t at = (r + p) * m_ + left.document[Last::at[k][p]];
        own += gain_[at];
        lost[k] -= lost_[at];
      }
      x[k] = lost[k] * own - top_;
    }
    exp_together<Last::count>(x);
    Sums sum{};
    for (int k = 0; k < Last::count; ++k) {
      z_ += x[k];
      x[k] *= lost[k];
      sum.first += x[k];
    }
    add_means<n>(left, x, first_);
    if constexpr (spread) {
      for (int k = 0; k < Last::count; ++k) {
        x[k] *= lost[k];
        sum.second += x[k];
      }
      add_pairs<n>(left, x);
    }
    return sum;
  }
  // Adds alpha of the ranks of the documents left, x-weighted.
  template <int n>
  CRFX_INLINE void add_means(const Left& left, const Wide* x, Wide* mean) {
    using Last = LastPermutations<n>;
    Wide own[3] = {};
    for (int k = 0; k < Last::count; ++k)
      for (int p = 0; p < n; ++p) own[Last::at[k][p]] += x[k] * b_.alpha[m_ - n + p];
    for (int p = 0; p < n; ++p) mean[left.document[p]] += own[p];
  }
  // To second_ and to pairs_ of documents left, and of these with those ranked before.
  template <int n>
  CRFX_INLINE void add_pairs(const Left& left, const Wide* x) {
    using Last = LastPermutations<n>;
    const double* alpha = b_.alpha + m_ - n;
    Wide own[3] = {};
    for (int k = 0; k < Last::count; ++k)
      for (int p = 0; p < n; ++p) own[Last::at[k][p]] += x[k] * alpha[p];
    for (int p = 0; p < n; ++p) {
      const int i = left.document[p];
      second_[i] += own[p];
      for (int j = 0; j < m_ - n; ++j) pairs_[path_[j] * m_ + i] += own[p] * b_.alpha[j];
    }
    for (int k = 0; k < Last::count; ++k)
      for (int p = 0; p < n; ++p)
        for (int q = p; q < n; ++q)
          pairs_[left.document[Last::at[k][p]] * m_ + left.document[Last::at[k][q]]] +=
              x[k] * (alpha[p] * alpha[q]);
  }

  // Sums of x alpha[y_i] to E x (alpha[y_i] - truth_i).
  void centre(Wide* sums, Wide total) const {
    for (int i = 0; i < m_; ++i) sums[i] = (sums[i] - wide(b_.truth, i) * total) / z_;
  }
  // total: E loss^2.
  void write_spreads(Wide total, double* out) const {
    for (int i = 0; i < m_; ++i) {
      Wide sum{};
      for (int j = 0; j < m_; ++j) {
        const Wide t = wide(b_.truth, i), u = wide(b_.truth, j);
        Wide both = pairs_[i * m_ + j] / z_;
        if (j != i) both += pairs_[j * m_ + i] / z_;
        // With d = alpha - truth: E x d_i d_j from E x alpha_i alpha_j, E x d and E x.
        both -= u * second_[i] + t * second_[j] + t * u * total;
        sum += magnitude(both - first_[i] * first_[j]);
      }
      store(out + i * kQueryLanes, sum);
    }
  }

  const QueryBundle& b_;
  int m_;
  int path_[kMost];
  // (m x m) of rank and document: what it adds to the score, and takes off the loss.
  Wide *gain_, *lost_;
  // Sums over permutations: loss alpha[y_i], loss^2 alpha[y_i], and loss^2 alpha[y_j] alpha[y_i]
  // with j not after i.
  Wide *first_, *second_, *pairs_;
  Wide ahead_, top_, z_;
};

inline void scaled_moments(const QueryBundle& bundle, const ScaledMoments& out, Workspace& work) {
  for (int lane = 0; lane < kQueryLanes; lane += kWideLanes) {
    const QueryBundle own = from_lane(bundle, lane);
    if (out.spread)
      PermutationListing<true>(own, work).run(from_lane(out, lane));
    else
      PermutationListing<false>(own, work).run(from_lane(out, lane));
  }
}

}  // namespace crfx::CRFX_ISA
