// Sum-product and max-product along one chain of any order or one forest: messages from the leaves
// to the roots, and back.
//
// The state of position v is (r, c): its own label c, and the labels r that stay in the window
// (none at order 1). The edge to v is a table over (a, r, c), where a is the label that leaves the
// window; see arithmetic.hpp. With p the parent of v (on a chain the position before):
//   own[v]      exp(node score) of v's own label, with start and end scores where they belong
//   below[v]    own[v] x up[all children of v]
//   up[v]       message from v to p, over (a, r):   sum_c table x below[v]
//   beside[v]   over (a, r):                        own[p] x down[p] x up[siblings of v]
//   down[v]     message from p to v, over (r, c):   sum_a beside[v] x table
//   norm[v]     sum down[v] x below[v]
//
// Their names in the field, up to factors from rescaling. D is Dietterich et al. 2004, section 3;
// L is Lafferty et al. 2001, section 4, with M_t = table x own[t]; H is van der Maaten et al. 2011,
// section 2. None of the three numbers these equations.
//   chains, order 1
//     own[t] x down[t]       alpha_t           forward vector: D, L (alpha_{t-1} M_t), H
//     up[t + 1], or 1        beta_t            backward vector: D, L (M_{t+1} beta_{t+1}), H
//     below[t]               own[t] x beta_t
//     beside[t]              alpha_{t-1}
//     norm[t]                Z                 D: sum_k alpha(k, t) beta(k, t), at any t
//     down x below / norm    gamma_t           H; D, section 4: alpha_t beta_t / Z
//     beside x table x below / norm            edge marginal: D, Table 2; H: xi_{t-1}
//   trees
//     below[v]               inside            sum over the labels of v's subtree
//     down[v]                outside           sum over the labels of the rest of v's tree
//     up[v], down[v]         m_{v->p}, m_{p->v}, the messages of belief propagation
// The marginals are the p_i of Chen et al. 2015, Eq. 5. What that paper calls alpha and beta are
// mixing rates and their messages (Eqs. 16 and 17), see curvature/mixing_forest.hpp.
// With maxima in place of sums, below is Viterbi's table, filled from the last position.
//
// Products over siblings are formed from both sides and never divided out, so zeros are safe.
//
// In scaled arithmetic small values are held up at a floor (docs/decisions/0003): every total is an
// upper bound, off by at most the mass that runs through held values. pass_down adds that mass up,
// exactly where a node's own scores or a product over children were held, and by its bound
// floor x (sum of all other factors) / norm for tables and messages, and reports where it matters.
// Cost: labels^(order+1) per position; memory: a few times labels^order per position.
#pragma once

#include <cstdint>

#include "inference/instance.hpp"

namespace crfx::CRFX_ISA {

template <class P, class S>
class Messages {
 public:
  using Arithmetic = P;
  using V = typename P::Value;
  using Score = S;

  Messages(const Instance<S>& inst, const LiftedTables<S>& lifted, Workspace& work)
      : inst(inst), tables(inst, lifted, work), work_(work), width_(inst.problem->n_states()) {
    own_ = work.take<V>(inst.n * inst.problem->n_labels);
    below_ = work.take<V>(inst.n * width_);
    up_ = work.take<V>(inst.n * width_);
    has_child_ = work.take<uint8_t>(inst.n);
    if constexpr (P::may_hold) {
      held_ = work.take<uint8_t>(inst.n * width_);
      for (int64_t k = 0; k < inst.n * width_; ++k) held_[k] = 0;
    }
    if (inst.branching) beside_ = work.take<V>(inst.n * width_);
  }

  V* own(int64_t v) const { return own_ + v * inst.problem->n_labels; }
  V* below(int64_t v) const { return below_ + v * width_; }
  V* up(int64_t v) const { return up_ + v * width_; }
  V* down(int64_t v) const { return down_ + v * width_; }
  V norm(int64_t v) const { return norm_[v]; }
  const V* beside(int64_t v) const {
    return inst.branching ? beside_ + v * width_ : rest(inst.parent(v));
  }

  // Leaves to roots. Sets log_z (sums; for maxima the best score); false if nothing is possible
  // (or, for maxima, a score overflows).
  bool pass_up() {
    for (int64_t v = 0; v < inst.n; ++v) has_child_[v] = 0;
    bool ok = true;
    log_z = 0;
    for (int64_t k = inst.n - 1; k >= 0 && ok; --k) {
      const int64_t v = inst.at(k);
      gather(v, ok);
      if (inst.parent(v) >= 0)
        send_up(v, ok);
      else
        log_z += root_total(v);
    }
    return ok;
  }

  // Roots to leaves, after pass_up; false if held values matter and the results are not reliable.
  bool pass_down() {
    down_ = work_.take<V>(inst.n * width_);
    rest_ = work_.take<V>(inst.n * width_);
    norm_ = work_.take<V>(inst.n);
    bool ok = true;
    for (int64_t k = 0; k < inst.n && ok; ++k) {
      const int64_t v = inst.at(k), states = inst.n_states(v);
      if (inst.parent(v) >= 0)
        receive_down(v, ok);
      else
        for (int64_t s = 0; s < states; ++s) down(v)[s] = P::one;
      norm_[v] = P::total(down(v), below(v), states);
      ok = ok && !P::vanished(norm_[v]) && !doubtful(v);
      weigh(v, down(v), rest(v));
      P::normalise(rest(v), states, ok, inst.branching ? held(v) : nullptr);
    }
    return ok;
  }

  Instance<S> inst;
  Tables<P, S> tables;
  double log_z = 0;

 private:
  // own x down x messages of the children seen so far on the way down.
  V* rest(int64_t v) const { return rest_ + v * width_; }

  uint8_t* held(int64_t v) const { return P::may_hold ? held_ + v * width_ : nullptr; }

  // Whether held values have a significant part in the total at v (or at the edge above it).
  bool doubtful(int64_t v) const {
    if constexpr (P::may_hold) {
      const int64_t p = inst.parent(v), states = inst.n_states(v);
      const V inner = row_total(below(v), states);
      V bound = inner + row_total(down(v), states),
        exact = held_mass(held(v), down(v), below(v), states);
      if (p >= 0) {
        const V outer = row_total(beside(v), inst.n_states(p));
        bound += outer * inner + outer + row_total(up(v), inst.n_states(p));
        if (inst.branching) exact += held_mass(held(p), beside(v), up(v), inst.n_states(p));
      }
      return !(bound * Lanes<V>::floor + exact <= Lanes<V>::doubt * norm_[v]);
    }
    return false;
  }
  static V held_mass(const uint8_t* held, const V* x, const V* y, int64_t n) {
    V mass = 0;
    for (int64_t s = 0; s < n; ++s) mass += held[s] ? x[s] * y[s] : V(0);
    return mass;
  }

  // to[r, c] = own[c] x from[r, c]
  void weigh(int64_t v, const V* from, V* to) {
    const int64_t K = inst.problem->n_labels, R = inst.n_states(v) / K;
    const V* weight = own(v);
    for (int64_t r = 0; r < R; ++r) {
      CRFX_SIMD
      for (int64_t c = 0; c < K; ++c) to[r * K + c] = P::times(weight[c], from[r * K + c]);
    }
  }

  void gather(int64_t v, bool& ok) {
    const Problem<S>& p = *inst.problem;
    const int64_t K = p.n_labels, states = inst.n_states(v);
    const bool first = inst.parent(v) < 0, last = !inst.parents && v == inst.n - 1;
    const S* node = inst.node(v);
    for (int64_t c = 0; c < K; ++c) {
      V score = static_cast<V>(node[c]);
      if (first && p.start) score += static_cast<V>(p.start[c]);
      if (last && p.end) score += static_cast<V>(p.end[c]);
      own(v)[c] = score;
    }
    log_z += P::lift(own(v), K);
    if constexpr (P::may_hold)
      for (int64_t s = 0; s < states; ++s) held(v)[s] |= P::is_held(own(v)[s % K]);
    if (!has_child_[v])
      for (int64_t s = 0; s < states; ++s) below(v)[s] = P::one;
    weigh(v, below(v), below(v));
    log_z += P::normalise(below(v), states, ok, nullptr);
  }

  void send_up(int64_t v, bool& ok) {
    double shift;
    const V* table = tables.get(v, &shift);
    P::up(table, below(v), up(v), inst.shape(v));
    log_z += shift;
    const int64_t p = inst.parent(v), states = inst.n_states(p);
    V *to = below(p), *before = inst.branching ? beside_ + v * width_ : nullptr;
    for (int64_t s = 0; s < states; ++s) {
      const V product = has_child_[p] ? to[s] : P::one;
      if (before) before[s] = product;  // the siblings visited so far
      to[s] = has_child_[p] ? P::times(product, up(v)[s]) : up(v)[s];
    }
    if (has_child_[p]) log_z += P::normalise(to, states, ok, held(p));
    has_child_[p] = 1;
  }

  double root_total(int64_t v) {
    if constexpr (P::is_max) {
      return 0;  // normalise has taken the maximum out
    } else {
      const int64_t states = inst.n_states(v);
      V* ones = up(v);  // a root sends nothing up: its memory is free
      for (int64_t s = 0; s < states; ++s) ones[s] = P::one;
      return P::log_of(P::total(below(v), ones, states));
    }
  }

  void receive_down(int64_t v, bool& ok) {
    const int64_t p = inst.parent(v);
    if (inst.branching) {
      const int64_t states = inst.n_states(p);
      V* around = beside_ + v * width_;
      for (int64_t s = 0; s < states; ++s) around[s] = P::times(around[s], rest(p)[s]);
      P::normalise(around, states, ok, nullptr);
      for (int64_t s = 0; s < states; ++s) rest(p)[s] = P::times(rest(p)[s], up(v)[s]);
      bool rest_ok = true;  // may vanish after the last child, when it is no longer needed
      P::normalise(rest(p), states, rest_ok, held(p));
    }
    double shift;
    const V* table = tables.get(v, &shift);
    P::down(table, beside(v), down(v), inst.shape(v));
  }

  Workspace& work_;
  int64_t width_;
  V *own_ = nullptr, *below_ = nullptr, *up_ = nullptr, *beside_ = nullptr;
  V *down_ = nullptr, *rest_ = nullptr, *norm_ = nullptr;
  uint8_t *has_child_ = nullptr, *held_ = nullptr;
};

}  // namespace crfx::CRFX_ISA
