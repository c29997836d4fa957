// First-order expectation pass: for a cost of every (position, label), the expected total cost and
// its gradient in every score. With L the total cost of a tree and mu an event in it,
//   d E[L] / d score = Cov(L, mu) = P(mu) (E[L | mu] - E[L]).
// Conditional expectations follow the messages. Given the state of v,
//   inside[v]   is the cost of v and its subtree, outside[v] that of the rest of its tree;
//   sent[v]     is inside[v] given the state of v's parent.
// Costs are centred first, cost - E[cost] at every position: covariances stay what they are, and
// the expectations stay as small as the mixing time instead of growing with the length, which would
// cost the gradient its digits. Cost: two more table passes than sum-product.
#pragma once

#include "inference/marginals.hpp"

namespace crfx::CRFX_ISA {

template <class M, class S>
class ExpectedCost {
  using P = typename M::Arithmetic;
  using V = typename M::V;

 public:
  // cost: n x labels, of this instance.
  ExpectedCost(M& messages, const S* cost, Workspace& work)
      : m_(messages), K_(messages.inst.problem->n_labels), W_(messages.inst.problem->n_states()) {
    const int64_t n = messages.inst.n;
    inside_ = work.take<double>(n * W_);
    outside_ = work.take<double>(n * W_);
    sent_ = work.take<double>(n * W_);
    mean_ = work.take<double>(n);
    around_ = work.take<double>(W_);
    row_ = work.take<V>(K_);
    for (int64_t v = 0; v < n; ++v) centre(v, cost + v * K_);
    for (int64_t k = n - 1; k >= 0; --k)
      if (m_.inst.parent(m_.inst.at(k)) >= 0) send_up(m_.inst.at(k));
    for (int64_t k = 0; k < n; ++k) receive_down(m_.inst.at(k));
  }

  // Expected cost of the whole instance.
  double value() const { return value_; }

  void node_gradient(int64_t v, S* out) const {
    for (int64_t c = 0; c < K_; ++c) out[c] = 0;
    for (int64_t s = 0; s < m_.inst.n_states(v); ++s)
      out[s % K_] += static_cast<S>(probability(v, s) * (inside(v)[s] + outside(v)[s] - mean_[v]));
  }

  // Gradient in the table of the edge above v: written to `each`, or added to `sum`.
  void edge_gradient(int64_t v, S* each, double* sum) {
    const double* around = cost_around(v);
    edge_marginal(m_, v, row_, [&](int64_t k, const V* p) {
      const int64_t ar = k / K_, r = ar % (W_ / K_);
      for (int64_t c = 0; c < K_; ++c) {
        const double g = p[c] * (around[ar] + inside(v)[r * K_ + c] - mean_[v]);
        if (sum)
          sum[k + c] += g;
        else
          each[k + c] = static_cast<S>(g);
      }
    });
  }

 private:
  void centre(int64_t v, const S* cost) {
    double sum = 0, total = 0;
    for (int64_t s = 0; s < m_.inst.n_states(v); ++s) {
      sum += probability(v, s) * static_cast<double>(cost[s % K_]);
      total += probability(v, s);
    }
    value_ += sum / total;
    for (int64_t s = 0; s < m_.inst.n_states(v); ++s)
      inside(v)[s] = static_cast<double>(cost[s % K_]) - sum / total;
  }
  double* inside(int64_t v) const { return inside_ + v * W_; }
  double* outside(int64_t v) const { return outside_ + v * W_; }
  double* sent(int64_t v) const { return sent_ + v * W_; }
  double probability(int64_t v, int64_t s) const {
    return P::ratio(m_.down(v)[s], m_.below(v)[s], P::one, m_.norm(v));
  }
  // Given the parent's state: the cost of everything outside v's subtree.
  const double* cost_around(int64_t v) const {
    const int64_t p = m_.inst.parent(v);
    for (int64_t s = 0; s < m_.inst.n_states(p); ++s)
      around_[s] = inside(p)[s] + outside(p)[s] - sent(v)[s];
    return around_;
  }
  void send_up(int64_t v) {
    const EdgeShape s = m_.inst.shape(v);
    double shift;
    const V* table = m_.tables.get(v, &shift);
    for (int64_t ar = 0; ar < s.A * s.R; ++ar) {
      const int64_t r = ar % s.R;
      const V total = m_.up(v)[ar];
      double sum = 0;
      for (int64_t c = 0; c < s.C && !P::is_zero(total); ++c)
        sum += P::ratio(table ? table[ar * s.C + c] : P::one, m_.below(v)[r * s.C + c], P::one,
                        total) *
               inside(v)[r * s.C + c];
      sent(v)[ar] = sum;
      inside(m_.inst.parent(v))[ar] += sum;
    }
  }
  void receive_down(int64_t v) {
    const int64_t states = m_.inst.n_states(v), p = m_.inst.parent(v);
    for (int64_t s = 0; s < states; ++s) outside(v)[s] = 0;
    if (p < 0) {
      mean_[v] = 0;
      for (int64_t s = 0; s < states; ++s) mean_[v] += probability(v, s) * inside(v)[s];
      return;
    }
    mean_[v] = mean_[p];
    const EdgeShape e = m_.inst.shape(v);
    const double* around = cost_around(v);
    double shift;
    const V* table = m_.tables.get(v, &shift);
    for (int64_t ar = 0; ar < e.A * e.R; ++ar)
      for (int64_t c = 0; c < e.C; ++c) {
        const int64_t rc = (ar % e.R) * e.C + c;
        if (P::is_zero(m_.down(v)[rc])) continue;
        outside(v)[rc] += around[ar] * P::ratio(table ? table[ar * e.C + c] : P::one,
                                                m_.beside(v)[ar], P::one, m_.down(v)[rc]);
      }
  }

  M& m_;
  int64_t K_, W_;
  double value_ = 0;
  double *inside_, *outside_, *sent_, *mean_, *around_;
  V* row_;
};

}  // namespace crfx::CRFX_ISA
