// The best labelling of one instance, and the walk of a labelling through the states.
#pragma once

#include "inference/messages.hpp"

namespace crfx::CRFX_ISA {

// The state of v when its parent is in `state` and v gets label c.
template <class S>
CRFX_INLINE int64_t next_state(const Instance<S>& inst, int64_t v, int64_t state, int64_t c) {
  const EdgeShape s = inst.shape(v);
  return (state % s.R) * s.C + c;
}

// Scores (or weights) of v's labels given the parent's state: table x below, K values.
template <class M>
inline void label_row(M& messages, int64_t v, int64_t parent_state, typename M::V* out) {
  using P = typename M::Arithmetic;
  const auto& inst = messages.inst;
  const int64_t K = inst.problem->n_labels;
  if (inst.parent(v) < 0) {
    for (int64_t c = 0; c < K; ++c) out[c] = messages.below(v)[c];
    return;
  }
  double shift;
  const auto* table = messages.tables.get(v, &shift);
  const auto* below = messages.below(v) + next_state(inst, v, parent_state, 0);
  for (int64_t c = 0; c < K; ++c)
    out[c] = table ? P::times(table[parent_state * K + c], below[c]) : below[c];
}

// First label of the largest value: ties go to the smallest label.
template <class V>
CRFX_INLINE int64_t first_largest(const V* x, int64_t n) {
  int64_t best = 0;
  for (int64_t k = 1; k < n; ++k)
    if (x[k] > x[best]) best = k;
  return best;
}

// Of a first-order chain with one table, without the walk through states.
template <class S>
CRFX_INLINE double chain_score(const Instance<S>& inst, const int32_t* labels) {
  const Problem<S>& p = *inst.problem;
  const int64_t K = p.n_labels;
  double nodes = 0, edges = 0;
  for (int64_t v = 0; v < inst.n; ++v) nodes += static_cast<double>(inst.node(v)[labels[v]]);
  for (int64_t v = 1; v < inst.n; ++v)
    edges += static_cast<double>(p.edge[labels[v - 1] * K + labels[v]]);
  if (p.start) nodes += static_cast<double>(p.start[labels[0]]);
  if (p.end) nodes += static_cast<double>(p.end[labels[inst.n - 1]]);
  return nodes + edges;
}

// Total score of a labelling, in float64.
template <class S>
inline double labelling_score(const Instance<S>& inst, const int32_t* labels, int64_t* states) {
  const Problem<S>& p = *inst.problem;
  if (inst.n > 0 && !inst.parents && p.order == 1 && p.sharing == Sharing::shared)
    return chain_score(inst, labels);
  double score = 0;
  for (int64_t k = 0; k < inst.n; ++k) {
    const int64_t v = inst.at(k), from = inst.parent(v), c = labels[v];
    score += static_cast<double>(inst.node(v)[c]);
    if (from < 0) {
      states[v] = c;
      if (p.start) score += static_cast<double>(p.start[c]);
    } else {
      if (inst.has_table(v))
        score += static_cast<double>(inst.raw_table(v)[states[from] * p.n_labels + c]);
      states[v] = next_state(inst, v, states[from], c);
    }
    if (p.end && !inst.parents && v == inst.n - 1) score += static_cast<double>(p.end[c]);
  }
  return score;
}

// Best labelling after an upward max-product pass.
template <class M>
inline void best_labelling(M& messages, int32_t* labels, Workspace& work) {
  const auto& inst = messages.inst;
  const int64_t K = inst.problem->n_labels;
  auto* row = work.take<typename M::V>(K);
  int64_t* states = work.take<int64_t>(inst.n);
  for (int64_t k = 0; k < inst.n; ++k) {
    const int64_t v = inst.at(k), p = inst.parent(v);
    label_row(messages, v, p < 0 ? 0 : states[p], row);
    labels[v] = static_cast<int32_t>(first_largest(row, K));
    states[v] = p < 0 ? labels[v] : next_state(inst, v, states[p], labels[v]);
  }
}

}  // namespace crfx::CRFX_ISA
