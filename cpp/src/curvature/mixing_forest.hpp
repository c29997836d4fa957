// Curvature multipliers of first-order chains and forests from mixing rates (GBCRF, section 4).
//
// alpha_{s,v} says how much of a difference at s survives the step to its neighbour v:
//   mixing     1 - sum_j min_i P(y_v = j | y_s = i)                    Theorem 3.1, O(K^2) an edge
//   dobrushin  max_{i,i'} TV(P(y_v | y_s = i), P(y_v | y_s = i'))      tighter, O(K^3) an edge
// Messages (Eq. 17; the edge form corrected, Theorem 4.2 as printed fails on branching trees):
//   beta_{s->t} = alpha_{t,s} (1 + sum_{h~s, h!=t} beta_{h->s}),  gamma_t  = 2 (1 + sum
//   beta_{s->t}) eps_{s->t}  = 1 + alpha_{t,s} sum_{h~s, h!=t} eps_{h->s}, gamma_{tt'} = 2 (1 +
//   sum_{s~t, s!=t'} eps_{s->t} + sum_{s~t', s!=t} eps_{s->t'})
#pragma once

#include "inference/marginals.hpp"

namespace crfx::CRFX_ISA {

CRFX_INLINE double clip01(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

// Marks the states at both ends of the edge above v that are not impossible.
template <class M>
inline void mark_possible(const M& messages, int64_t v, uint8_t* parent, uint8_t* child) {
  using P = typename M::Arithmetic;
  using V = typename M::V;
  const auto possible = [norm = messages.norm(v)](V evidence, V total) {
    return P::ratio(evidence, total, P::one, norm) > V(kImpossible<typename M::Score>);
  };
  for (int64_t k = 0; k < messages.inst.problem->n_labels; ++k) {
    parent[k] = possible(messages.beside(v)[k], messages.up(v)[k]);
    child[k] = possible(messages.below(v)[k], messages.down(v)[k]);
  }
}

// Room for what the rates of one edge need.
template <class V>
struct RateRoom {
  V *weight, *floor, *least, *matrix;
  uint8_t *parent, *child;
  RateRoom(int64_t K, Workspace& work)
      : weight(work.take<V>(K)),
        floor(work.take<V>(K)),
        least(work.take<V>(K)),
        matrix(work.take<V>(K * K)),
        parent(work.take<uint8_t>(K)),
        child(work.take<uint8_t>(K)) {}
};

// weight[k] = 1 / total[k] for possible k; the others are lifted out of the minimum by floor[k].
template <class P, class V>
inline void weigh_possible(const V* total, const uint8_t* possible, int64_t K, RateRoom<V>& room) {
  for (int64_t k = 0; k < K; ++k) {
    room.weight[k] = possible[k] ? P::inverse(total[k]) : P::zero;
    room.floor[k] = possible[k] ? P::zero : P::excluded;
  }
}

template <class P, class V>
inline double shared_mass(const V* evidence, const V* least, int64_t K) {
  double shared = 0;
  for (int64_t k = 0; k < K; ++k)
    shared += static_cast<double>(P::linear(P::times(evidence[k], least[k])));
  return shared;
}

// Both rates of the edge above v: to the child 1 - sum_j below[j] min_i table[i, j] / up[i], to the
// parent 1 - sum_i beside[i] min_j table[i, j] / down[j].
template <class M>
inline void mixing_rates(const M& messages, int64_t v, const typename M::V* table,
                         RateRoom<typename M::V>& room, double* away, double* back) {
  using P = typename M::Arithmetic;
  const int64_t K = messages.inst.problem->n_labels;
  const EdgeShape shape = {K, 1, K};
  weigh_possible<P>(messages.up(v), room.parent, K, room);
  P::least_down(table, room.weight, room.floor, room.least, shape);
  *away = clip01(1 - shared_mass<P>(messages.below(v), room.least, K));
  weigh_possible<P>(messages.down(v), room.child, K, room);
  P::least_up(table, room.weight, room.floor, room.least, shape);
  *back = clip01(1 - shared_mass<P>(messages.beside(v), room.least, K));
}

template <class V>
inline double dobrushin(const V* matrix, const uint8_t* possible, int64_t n_rows,
                        int64_t n_columns) {
  V worst = 0;
  for (int64_t i = 0; i < n_rows; ++i)
    for (int64_t k = i + 1; k < n_rows; ++k) {
      if (!possible[i] || !possible[k]) continue;
      const V *x = matrix + i * n_columns, *y = matrix + k * n_columns;
      V apart = 0;
#pragma omp simd reduction(+ : apart)
      for (int64_t j = 0; j < n_columns; ++j) apart += x[j] > y[j] ? x[j] - y[j] : V(0);
      worst = apart > worst ? apart : worst;
    }
  return clip01(static_cast<double>(worst));
}

// Dobrushin's coefficients of the edge above v, walking to the child and to the parent.
template <class M>
inline void dobrushin_rates(const M& messages, int64_t v, const typename M::V* table,
                            RateRoom<typename M::V>& room, double* away, double* back) {
  using P = typename M::Arithmetic;
  const int64_t K = messages.inst.problem->n_labels;
  for (int64_t i = 0; i < K; ++i)
    for (int64_t j = 0; j < K && room.parent[i]; ++j)
      room.matrix[i * K + j] =
          P::ratio(P::one, table[i * K + j], messages.below(v)[j], messages.up(v)[i]);
  *away = dobrushin(room.matrix, room.parent, K, K);
  for (int64_t j = 0; j < K; ++j)
    for (int64_t i = 0; i < K && room.child[j]; ++i)
      room.matrix[j * K + i] =
          P::ratio(P::one, table[i * K + j], messages.beside(v)[i], messages.down(v)[j]);
  *back = dobrushin(room.matrix, room.child, K, K);
}

// Rates of every edge: away[v] = alpha_{p,v} (walking from the parent to v), back[v] = alpha_{v,p}.
template <class M>
inline void edge_rates(M& messages, bool use_dobrushin, double* away, double* back,
                       Workspace& work) {
  RateRoom<typename M::V> room(messages.inst.problem->n_labels, work);
  for (int64_t v = 0; v < messages.inst.n; ++v) {
    away[v] = back[v] = 0;
    if (messages.inst.parent(v) < 0) continue;
    double shift;
    const auto* table = messages.tables.get(v, &shift);
    mark_possible(messages, v, room.parent, room.child);
    if (use_dobrushin)
      dobrushin_rates(messages, v, table, room, away + v, back + v);
    else
      mixing_rates(messages, v, table, room, away + v, back + v);
  }
}

// Passes beta and eps along the tree, given the rates; gammas of the instance's rows.
template <class S>
inline void spread_rates(const Instance<S>& inst, const double* away, const double* back,
                         S* node_gamma, S* edge_gamma, Workspace& work) {
  const int64_t n = inst.n;
  // From children: sums over the children of v. From the parent: the one message.
  double *beta = work.take<double>(n), *eps = work.take<double>(n);
  double *beta_parent = work.take<double>(n), *eps_parent = work.take<double>(n);
  for (int64_t v = 0; v < n; ++v) beta[v] = eps[v] = 0;
  for (int64_t k = n - 1; k >= 0; --k) {
    const int64_t v = inst.at(k), p = inst.parent(v);
    if (p < 0) continue;
    beta[p] += away[v] * (1 + beta[v]);
    eps[p] += 1 + away[v] * eps[v];
  }
  for (int64_t k = 0; k < n; ++k) {
    const int64_t v = inst.at(k), p = inst.parent(v);
    beta_parent[v] = eps_parent[v] = 0;
    if (p >= 0) {
      const double others = beta[p] - away[v] * (1 + beta[v]) + beta_parent[p];
      const double other_edges = eps[p] - (1 + away[v] * eps[v]) + eps_parent[p];
      beta_parent[v] = back[v] * (1 + others);
      eps_parent[v] = 1 + back[v] * other_edges;
      edge_gamma[v] = static_cast<S>(2 * (1 + eps[v] + other_edges));
    }
    node_gamma[v] = static_cast<S>(2 * (1 + beta[v] + beta_parent[v]));
  }
}

template <class M, class S>
inline void forest_gamma(M& messages, bool use_dobrushin, S* node_gamma, S* edge_gamma,
                         Workspace& work) {
  double *away = work.take<double>(messages.inst.n), *back = work.take<double>(messages.inst.n);
  edge_rates(messages, use_dobrushin, away, back, work);
  spread_rates(messages.inst, away, back, node_gamma, edge_gamma, work);
}

}  // namespace crfx::CRFX_ISA
