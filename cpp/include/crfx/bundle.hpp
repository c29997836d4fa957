// First-order chains with one shared table, many at a time: vector lanes run over sequences of
// similar length, so that few labels fill a vector as well as many do and no sum runs across lanes.
// The recursion is that of messages.hpp with p = t - 1; arrays are [position][label][lane].
//
// A lane shorter than the bundle idles past its end (weights 1, masked out of every result); a lane
// whose scale vanishes is reported and redone alone in log space.
#pragma once

#include "crfx/decode.hpp"
#include "crfx/instance.hpp"
#include "crfx/mixing_forest.hpp"

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

// out[o] = sum_i coefficient[i, o] x[i], all lanes; n x n coefficients, blocks kept in registers.
template <class S, int block>
CRFX_INLINE void combine_block(const S* coefficient, const Pack<S>* x, Pack<S>* out, int64_t n) {
  Pack<S> sum[block] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int q = 0; q < block; ++q) sum[q] += coefficient[i * n + q] * x[i];
  for (int q = 0; q < block; ++q) out[q] = sum[q];
}

// Sum over o of weight[o] min_i (coefficient[i, o] x[i] + penalty[i]): the mass that all states i
// share, with x the reciprocal totals and a penalty on impossible states.
template <class S, int block>
CRFX_INLINE Pack<S> shared_block(const S* coefficient, const Pack<S>* x, const Pack<S>* penalty,
                                 const Pack<S>* weight, int64_t n) {
  Pack<S> least[block];
  for (int q = 0; q < block; ++q) least[q] = splat(std::numeric_limits<S>::max());
  for (int64_t i = 0; i < n; ++i)
    for (int q = 0; q < block; ++q)
      least[q] = smaller<Pack<S>>(coefficient[i * n + q] * x[i] + penalty[i], least[q]);
  Pack<S> sum{};
  for (int q = 0; q < block; ++q) sum += weight[q] * least[q];
  return sum;
}

// best[o] = max_i (coefficient[i, o] + x[i])
template <class S, int block>
CRFX_INLINE void best_block(const S* coefficient, const Pack<S>* x, Pack<S>* out, int64_t n) {
  Pack<S> best[block];
  for (int q = 0; q < block; ++q) best[q] = splat(-std::numeric_limits<S>::infinity());
  for (int64_t i = 0; i < n; ++i)
    for (int q = 0; q < block; ++q) best[q] = larger<Pack<S>>(coefficient[i * n + q] + x[i], best[q]);
  for (int q = 0; q < block; ++q) out[q] = best[q];
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
CRFX_INLINE void gather_scores(const Problem<S>& p, const Bundle<S>& bundle, int64_t t, Pack<S>* x) {
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

// Edge sums of many bundles: lanes apart, in S, emptied into float64 before they grow long.
template <class S>
class EdgeSum {
 public:
  EdgeSum(int64_t K, const S* weights, double* total, Workspace& work)
      : K_(K), weights_(weights), total_(total), sum_(work.take<Pack<S>>(K * K)) {
    for (int64_t k = 0; k < K * K; ++k) sum_[k] = Pack<S>{};
  }
  // Adds sum over t of left[t] x right[t]^T for `count` positions.
  void add(const Pack<S>* left, const Pack<S>* right, int64_t count) {
    for (int64_t t = 0; t < count; t += kBlock) {
      const int64_t some = count - t < kBlock ? count - t : kBlock;
      pending_ += some;
      if (pending_ > kBlock) {
        flush();
        pending_ = some;
      }
      for (int64_t i = 0; i < K_; i += 4)
        K_ - i >= 4 ? add_rows<4>(left + t * K_, right + t * K_, some, i)
                    : add_rest(left + t * K_, right + t * K_, some, i);
    }
  }
  void flush() {
    for (int64_t k = 0; k < K_ * K_; ++k) {
      double sum = 0;
      for (int l = 0; l < Bundle<S>::lanes; ++l) sum += static_cast<double>(sum_[k][l]);
      total_[k] += sum * static_cast<double>(weights_[k]);
      sum_[k] = Pack<S>{};
    }
    pending_ = 0;
  }

 private:
  static constexpr int64_t kBlock = 256;  // positions per lane before emptying

  void add_rest(const Pack<S>* left, const Pack<S>* right, int64_t count, int64_t i) {
    for (; i < K_; ++i) add_rows<1>(left, right, count, i);
  }
  template <int rows>
  CRFX_INLINE void add_rows(const Pack<S>* left, const Pack<S>* right, int64_t count, int64_t i) {
    int64_t j = 0;
    for (; j + 4 <= K_; j += 4) add_tile<rows, 4>(left, right, count, i, j);
    for (; j < K_; ++j) add_tile<rows, 1>(left, right, count, i, j);
  }
  template <int rows, int columns>
  CRFX_INLINE void add_tile(const Pack<S>* left, const Pack<S>* right, int64_t count, int64_t i,
                            int64_t j) {
    Pack<S> tile[rows][columns];
    for (int a = 0; a < rows; ++a)
      for (int b = 0; b < columns; ++b) tile[a][b] = sum_[(i + a) * K_ + j + b];
    for (int64_t t = 0; t < count; ++t)
      for (int a = 0; a < rows; ++a)
        for (int b = 0; b < columns; ++b) tile[a][b] += left[t * K_ + i + a] * right[t * K_ + j + b];
    for (int a = 0; a < rows; ++a)
      for (int b = 0; b < columns; ++b) sum_[(i + a) * K_ + j + b] = tile[a][b];
  }

  int64_t K_;
  const S* weights_;
  double* total_;
  Pack<S>* sum_;
  int64_t pending_ = 0;
};

// Sum-product over one bundle.
template <class S>
class BundleSum {
 public:
  BundleSum(const Problem<S>& p, const LiftedTables<S>& lifted, const Bundle<S>& bundle,
            Workspace& work)
      : p_(p), lifted_(lifted), bundle_(bundle), K_(p.n_labels), T_(bundle.longest) {
    ahead_ = work.take<Pack<S>>(T_ * K_);
    below_ = work.take<Pack<S>>(T_ * K_);
    up_ = work.take<Pack<S>>(T_ * K_);
    down_ = work.take<Pack<S>>(K_);
    scratch_ = work.take<Pack<S>>(3 * K_);
    away_ = work.take<Pack<S>>(T_);
    back_ = work.take<Pack<S>>(T_);
    ok_ = bundle.alive(0);
    exponents_ = Bits<S>{};
    for (int l = 0; l < lanes; ++l) shift_[l] = 0;
  }

  void run(const SumOutputs<S>& out, EdgeSum<S>* edges) {
    const bool rates = out.curvature == Curvature::mixing;
    for (int64_t t = T_ - 1; t >= 0; --t) step_back(t);
    finish_log_z(out.log_z);
    for (int64_t t = 0; t < T_; ++t) step_ahead(t, rates, out.node);
    if (edges && T_ > 1) add_edges(*edges);
    if (rates) write_gamma(out);
  }
  // Whether the lane's results stand; a lane without an instance does not count.
  bool ok(int l) const { return ok_[l] != 0; }

 private:
  static constexpr int lanes = Bundle<S>::lanes;

  void step_back(int64_t t) {
    Pack<S>*own = ahead_ + t * K_, *below = below_ + t * K_;
    const Bits<S> alive = bundle_.alive(t);
    gather_scores(p_, bundle_, t, own);
    Pack<S> top = largest_of<S>(own, K_);
    top = top > -std::numeric_limits<S>::infinity() ? top : Pack<S>{};
    for (int64_t k = 0; k < K_; ++k) own[k] = exp_of_negative<S>(own[k] - top);
    for (int l = 0; l < lanes; ++l) shift_[l] += static_cast<double>(top[l]);  // 0 past the end
    if (t + 1 == T_) {
      for (int64_t k = 0; k < K_; ++k) below[k] = own[k];
    } else {
      const Pack<S>* message = up_ + (t + 1) * K_;
      const Bits<S> inner = bundle_.alive(t + 1);
      for (int64_t k = 0; k < K_; ++k) below[k] = inner ? own[k] * message[k] : own[k];
    }
    exponents_ += normalise(below, alive) & alive;
    if (t > 0) in_blocks(K_, [&]<int width>(int64_t k) {
        combine_block<S, width>(lifted_.transposed + k, below, up_ + t * K_ + k, K_);
      });
  }

  // Rescales by a power of two per lane; lanes whose scale vanishes are marked.
  CRFX_INLINE Bits<S> normalise(Pack<S>* x, Bits<S> alive) {
    const Pack<S> top = largest_of<S>(x, K_);
    ok_ &= (top >= Lanes<S>::tiny) | ~alive;
    Bits<S> exponent;
    const Pack<S> factor = inverse_power<S>(top, &exponent);
    for (int64_t k = 0; k < K_; ++k) x[k] *= factor;
    return exponent;
  }

  void finish_log_z(double* log_z) {
    Pack<S> total{};
    for (int64_t k = 0; k < K_; ++k) total += below_[k];
    for (int l = 0; l < lanes; ++l)
      if (bundle_.length[l] > 0)
        log_z[bundle_.index[l]] = shift_[l] + static_cast<double>(exponents_[l]) * 0.693147180559945309417 +
                                  static_cast<double>(bundle_.length[l] - 1) * lifted_.shift[0] +
                                  std::log(static_cast<double>(total[l]));
  }

  void step_ahead(int64_t t, bool rates, S* node) {
    Pack<S>*own = ahead_ + t * K_, *below = below_ + t * K_;
    const Bits<S> alive = bundle_.alive(t);
    if (t == 0)
      for (int64_t k = 0; k < K_; ++k) down_[k] = splat(S(1));
    else
      in_blocks(K_, [&]<int width>(int64_t k) {
        combine_block<S, width>(lifted_.tables + k, own - K_, down_ + k, K_);
      });
    Pack<S> norm{};
    for (int64_t k = 0; k < K_; ++k) norm += down_[k] * below[k];
    ok_ &= (norm >= Lanes<S>::tiny) | ~alive;
    const Pack<S> inverse = alive ? S(1) / norm : Pack<S>{};
    if (rates && t > 0) step_rates(t, inverse);
    Pack<S>* marginal = scratch_;
    for (int64_t k = 0; k < K_; ++k) {
      below[k] *= inverse;
      marginal[k] = down_[k] * below[k];
      own[k] *= down_[k];
    }
    if (node) scatter_rows(marginal, bundle_, t, K_, node);
    normalise(own, alive);
  }

  // Both mixing rates of the edge (t - 1, t), before below[t] is divided by the norm.
  void step_rates(int64_t t, Pack<S> inverse) {
    const Pack<S>*left = ahead_ + (t - 1) * K_, *up = up_ + t * K_, *below = below_ + t * K_;
    away_[t] = rate(lifted_.tables, left, up, below, inverse);
    back_[t] = rate(lifted_.transposed, below, down_, left, inverse);
  }
  // 1 - sum_o weight[o] min_i coefficient[i, o] / total[i] over the possible i, those whose
  // probability evidence[i] total[i] inverse is not negligible.
  CRFX_INLINE Pack<S> rate(const S* coefficient, const Pack<S>* evidence, const Pack<S>* total,
                           const Pack<S>* weight, Pack<S> inverse) {
    Pack<S>*x = scratch_ + K_, *penalty = scratch_ + 2 * K_;
    for (int64_t i = 0; i < K_; ++i) {
      const Bits<S> possible = (evidence[i] * inverse * total[i] > S(kImpossible)) &
                               (total[i] >= std::numeric_limits<S>::min());
      x[i] = possible ? S(1) / total[i] : Pack<S>{};
      penalty[i] = possible ? Pack<S>{} : splat(ScaledSum<S>::excluded);
    }
    Pack<S> shared{};
    in_blocks(K_, [&]<int width>(int64_t k) {
      shared += shared_block<S, width>(coefficient + k, x, penalty, weight + k, K_);
    });
    const Pack<S> alpha = S(1) - shared;
    return smaller<Pack<S>>(larger<Pack<S>>(alpha, Pack<S>{}), splat(S(1)));
  }

  void add_edges(EdgeSum<S>& edges) {
    if (any<S>(bundle_.alive(0) & ~ok_))
      for (int64_t k = 0; k < T_ * K_; ++k) {
        below_[k] = ok_ ? below_[k] : Pack<S>{};
        ahead_[k] = ok_ ? ahead_[k] : Pack<S>{};
      }
    edges.add(ahead_, below_ + K_, T_ - 1);
  }

  // spread_rates of mixing_forest.hpp on a chain, in lanes.
  void write_gamma(const SumOutputs<S>& out) {
    Pack<S> beta_ahead{}, eps_ahead{}, beta_back{}, eps_back{};
    Pack<S>*node = up_, *edge = below_;  // room of T packs each, no longer needed
    for (int64_t t = T_ - 1; t >= 0; --t) {
      const Bits<S> inner = bundle_.alive(t + 1);
      if (t + 1 < T_) {
        beta_ahead = inner ? away_[t + 1] * (S(1) + beta_ahead) : Pack<S>{};
        eps_ahead = inner ? S(1) + away_[t + 1] * eps_ahead : Pack<S>{};
      }
      node[t] = beta_ahead;
      edge[t] = eps_ahead;
    }
    for (int64_t t = 0; t < T_; ++t) {
      if (t > 0) {
        if (t > 1) eps_back = S(1) + back_[t - 1] * eps_back;
        beta_back = back_[t] * (S(1) + beta_back);
        edge[t] = S(2) * (S(1) + edge[t] + eps_back);
        scatter_rows(edge + t, bundle_, t, 1, out.edge_gamma);
      }
      node[t] = S(2) * (S(1) + node[t] + beta_back);
      scatter_rows(node + t, bundle_, t, 1, out.node_gamma);
    }
  }

  const Problem<S>& p_;
  const LiftedTables<S>& lifted_;
  const Bundle<S>& bundle_;
  int64_t K_, T_;
  Pack<S>*ahead_, *below_, *up_, *down_, *scratch_, *away_, *back_;
  Bits<S> ok_, exponents_;
  double shift_[lanes];
};

// Viterbi over one bundle: messages in lanes, then each lane walks its own labels.
template <class S>
inline void bundle_best(const Problem<S>& p, const LiftedTables<S>& lifted, const Bundle<S>& bundle,
                        int32_t* labels, Workspace& work) {
  const int64_t K = p.n_labels, T = bundle.longest;
  constexpr int lanes = Bundle<S>::lanes;
  Pack<S>*below = work.take<Pack<S>>(T * K), *up = work.take<Pack<S>>(K);
  for (int64_t t = T - 1; t >= 0; --t) {
    Pack<S>* here = below + t * K;
    gather_scores(p, bundle, t, here);
    if (t + 1 < T) {
      const Bits<S> inner = bundle.alive(t + 1);
      for (int64_t k = 0; k < K; ++k) here[k] += inner ? up[k] : Pack<S>{};
    }
    Pack<S> top = largest_of<S>(here, K);
    top = top > -std::numeric_limits<S>::infinity() ? top : Pack<S>{};
    for (int64_t k = 0; k < K; ++k) here[k] -= top;
    if (t > 0) in_blocks(K, [&]<int width>(int64_t k) {
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
}

}  // namespace crfx::CRFX_ISA
