// Sum-product over one bundle: the recursion of messages.hpp with p = t - 1, in lanes. A lane in
// which held values matter (docs/decisions/0003) is reported and redone alone in log space.
//
// Arrays by position, and the symbols of the table in messages.hpp. Messages are rescaled.
//   ahead[t]    own scores, until the forward pass makes it alpha_t = own x down[t]
//   below[t]    own x beta_t; the forward pass divides it by norm[t]
//   up[t]       beta_t-1 = sum_c table x below[t], before that division
//   down[t]     sum_a alpha_t-1 x table
//   P(y_t) = down[t] x below[t];   P(y_t-1, y_t) = ahead[t-1] x table x below[t]
//   away[t], back[t]   mixing rates alpha_{t-1,t} and alpha_{t,t-1} of Chen et al. 2015, Eq. 17,
//                      whose messages are beta_ahead and beta_back
#pragma once

#include <cmath>

#include "inference/bundle_edges.hpp"

namespace crfx::CRFX_ISA {

// out[o] = sum_i coefficient[i, o] x[i], held, all lanes; n x n coefficients, blocks in registers.
template <class S, int block>
CRFX_INLINE void combine_block(const S* coefficient, const Pack<S>* x, Pack<S>* out, int64_t n) {
  Pack<S> sum[block] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int q = 0; q < block; ++q) sum[q] += coefficient[i * n + q] * x[i];
  for (int q = 0; q < block; ++q) out[q] = held<S>(sum[q]);
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

template <class S>
class BundleSum {
 public:
  // `keeps`: messages of all positions can be read after pass().
  BundleSum(const Problem<S>& p, const LiftedTables<S>& lifted, const Bundle<S>& bundle,
            Workspace& work, bool keeps = false)
      : p_(p), lifted_(lifted), bundle_(bundle), K_(p.n_labels), T_(bundle.longest), keeps_(keeps) {
    ahead_ = work.take<Pack<S>>(T_ * K_);
    below_ = work.take<Pack<S>>(T_ * K_);
    up_ = work.take<Pack<S>>(T_ * K_);
    down_ = work.take<Pack<S>>(keeps ? T_ * K_ : K_);
    inverse_ = work.take<Pack<S>>(keeps ? T_ : 1);
    marginals_ = work.take<Pack<S>>(block_positions(K_) * K_);
    scratch_ = work.take<Pack<S>>(2 * K_);
    away_ = work.take<Pack<S>>(T_);
    back_ = work.take<Pack<S>>(T_);
    edge_gamma_ = work.take<Pack<S>>(T_);
    ok_ = bundle.alive(0);
    exponents_ = Bits<S>{};
    for (int l = 0; l < lanes; ++l) shift_[l] = 0;
  }

  void run(const SumOutputs<S>& out, EdgeMarginalSum<S>* marginals,
           EdgeCurvatureSum<S>* curvature) {
    const bool rates = out.curvature == Curvature::mixing;
    pass_back();
    finish_log_z(out.log_z);
    for_blocks(T_, K_, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) step_ahead(t, rates, marginals_ + (t - begin) * K_);
      if (out.node) scatter_rows(marginals_, bundle_, begin, end, K_, out.node);
    });
    if (rates) write_gamma(out);
    if (T_ < 2) return;
    if (any<S>(bundle_.alive(0) & ~ok_)) leave_out_failed();
    if (curvature) add_curvature(out, *curvature);
    if (marginals) add_marginals(out, *marginals);
  }
  // Whether the lane's results are valid; a lane without an instance does not count.
  bool ok(int l) const { return ok_[l] != 0; }

  // The messages alone. Then the marginal of a label at t is down x below; with those of t - 1 it
  // is ahead x table x below; up over inverse(t) is what below comes from.
  void pass() {
    pass_back();
    for (int64_t t = 0; t < T_; ++t) step_ahead(t, false, marginals_);
  }
  const Pack<S>* ahead(int64_t t) const { return ahead_ + t * K_; }
  const Pack<S>* below(int64_t t) const { return below_ + t * K_; }
  const Pack<S>* up(int64_t t) const { return up_ + t * K_; }
  const Pack<S>* down(int64_t t) const { return down_ + (keeps_ ? t * K_ : 0); }
  Pack<S> inverse(int64_t t) const { return inverse_[keeps_ ? t : 0]; }
  Bits<S> all_ok() const { return ok_; }
  void leave_out_failed() {
    for (int64_t k = 0; k < T_ * K_; ++k) {
      below_[k] = ok_ ? below_[k] : Pack<S>{};
      ahead_[k] = ok_ ? ahead_[k] : Pack<S>{};
    }
  }

 private:
  static constexpr int lanes = Bundle<S>::lanes;

  void pass_back() {
    for (int64_t end = T_; end > 0;) {
      const int64_t begin = end > block_positions(K_) ? end - block_positions(K_) : 0;
      gather_scores(p_, bundle_, begin, end, ahead_ + begin * K_);
      for (int64_t t = end - 1; t >= begin; --t) step_back(t);
      end = begin;
    }
  }

  void step_back(int64_t t) {
    Pack<S>*own = ahead_ + t * K_, *below = below_ + t * K_;
    const Bits<S> alive = bundle_.alive(t);
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
    if (t > 0)
      in_blocks(K_, [&]<int width>(int64_t k) {
        combine_block<S, width>(lifted_.transposed + k, below, up_ + t * K_ + k, K_);
      });
  }

  // Rescales by a power of two per lane; lanes in which nothing is possible are marked.
  CRFX_INLINE Bits<S> normalise(Pack<S>* x, Bits<S> alive) {
    const Pack<S> top = largest_of<S>(x, K_);
    ok_ &= (top > 0) | ~alive;
    Bits<S> exponent;
    const Pack<S> factor = inverse_power<S>(top, &exponent);
    for (int64_t k = 0; k < K_; ++k) x[k] = held<S>(x[k] * factor);
    return exponent;
  }

  void finish_log_z(double* log_z) {
    const Pack<S> total = sum_over<S>(K_, [&](int64_t k) { return below_[k]; });
    for (int l = 0; l < lanes; ++l)
      if (bundle_.length[l] > 0)
        log_z[bundle_.index[l]] = shift_[l] +
                                  static_cast<double>(exponents_[l]) * 0.693147180559945309417 +
                                  static_cast<double>(bundle_.length[l] - 1) * lifted_.shift[0] +
                                  std::log(static_cast<double>(total[l]));
  }

  void step_ahead(int64_t t, bool rates, Pack<S>* marginal) {
    Pack<S>*own = ahead_ + t * K_, *below = below_ + t * K_;
    Pack<S>* down = down_ + (keeps_ ? t * K_ : 0);
    const Bits<S> alive = bundle_.alive(t);
    if (t == 0)
      for (int64_t k = 0; k < K_; ++k) down[k] = splat(S(1));
    else
      in_blocks(K_, [&]<int width>(int64_t k) {
        combine_block<S, width>(lifted_.tables + k, own - K_, down + k, K_);
      });
    const Pack<S> norm = sum_over<S>(K_, [&](int64_t k) { return down[k] * below[k]; });
    ok_ &= (held_mass(t, down) <= Lanes<S>::doubt * norm) | ~alive;
    // Divided, so that what is certain has probability 1.
    const Pack<S> inverse = alive ? S(1) / norm : Pack<S>{};
    inverse_[keeps_ ? t : 0] = inverse;
    if (rates && t > 0) step_rates(t, inverse);
    for (int64_t k = 0; k < K_; ++k) {
      below[k] *= inverse;
      marginal[k] = down[k] * below[k];
      own[k] *= down[k];
    }
    normalise(own, alive);
  }

  // As in Messages::doubtful: exactly where own scores were held, by a bound everywhere else.
  CRFX_INLINE Pack<S> held_mass(int64_t t, const Pack<S>* down) const {
    const Pack<S>*own = ahead_ + t * K_, *below = below_ + t * K_;
    const Pack<S>*left = own - K_, *up = up_ + t * K_;  // there for t > 0
    Pack<S> exact{}, inner{}, outer{}, messages{};
    for (int64_t k = 0; k < K_; ++k) {
      exact += own[k] <= 2 * Lanes<S>::floor ? down[k] * below[k] : Pack<S>{};
      inner += below[k];
      messages += down[k];
    }
    for (int64_t k = 0; t > 0 && k < K_; ++k) {
      outer += left[k];
      messages += up[k];
    }
    return exact + Lanes<S>::floor * (inner + outer + inner * outer + messages);
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
    Pack<S>*x = scratch_, *penalty = scratch_ + K_;
    for (int64_t i = 0; i < K_; ++i) {
      const Bits<S> possible = evidence[i] * inverse * total[i] > S(kImpossible<S>);
      x[i] = possible ? reciprocal(total[i]) : Pack<S>{};
      penalty[i] = possible ? Pack<S>{} : splat(ScaledSum<S>::excluded);
    }
    Pack<S> shared{};
    in_blocks(K_, [&]<int width>(int64_t k) {
      shared += shared_block<S, width>(coefficient + k, x, penalty, weight + k, K_);
    });
    const Pack<S> alpha = S(1) - shared;
    return smaller<Pack<S>>(larger<Pack<S>>(alpha, Pack<S>{}), splat(S(1)));
  }

  Pack<S> weights(const SumOutputs<S>& out) const {
    Pack<S> w;
    for (int l = 0; l < lanes; ++l)
      w[l] =
          out.weight && bundle_.index[l] >= 0 ? static_cast<S>(out.weight[bundle_.index[l]]) : S(1);
    return w;
  }
  // Sums of weight x gamma x p (1 - p); gamma is 1 where none was asked for.
  void add_curvature(const SumOutputs<S>& out, EdgeCurvatureSum<S>& sum) {
    const Pack<S> weight = weights(out);
    for (int64_t t = 1; t < T_; ++t)
      edge_gamma_[t] = out.curvature == Curvature::mixing ? weight * edge_gamma_[t] : weight;
    sum.add({ahead_, below_ + K_, edge_gamma_ + 1}, T_ - 1);
  }
  void add_marginals(const SumOutputs<S>& out, EdgeMarginalSum<S>& sum) {
    if (out.weight) {
      const Pack<S> weight = weights(out);
      for (int64_t k = 0; k < T_ * K_; ++k) ahead_[k] *= weight;
    }
    sum.add({ahead_, below_ + K_}, T_ - 1);
  }

  // spread_rates of mixing_forest.hpp on a chain, in lanes.
  void write_gamma(const SumOutputs<S>& out) {
    Pack<S> beta_ahead{}, eps_ahead{}, beta_back{}, eps_back{};
    Pack<S>*node = up_, *edge = edge_gamma_;  // up is no longer needed: room of T packs
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
      }
      node[t] = S(2) * (S(1) + node[t] + beta_back);
    }
    scatter_rows(edge + 1, bundle_, 1, T_, 1, out.edge_gamma);
    scatter_rows(node, bundle_, 0, T_, 1, out.node_gamma);
  }

  const Problem<S>& p_;
  const LiftedTables<S>& lifted_;
  const Bundle<S>& bundle_;
  int64_t K_, T_;
  bool keeps_;
  Pack<S>*ahead_, *below_, *up_, *down_, *inverse_, *marginals_, *scratch_, *away_, *back_,
      *edge_gamma_;
  Bits<S> ok_, exponents_;
  double shift_[lanes];
};

}  // namespace crfx::CRFX_ISA
