// Node and edge marginals of one instance, from its messages.
#pragma once

#include "inference/messages.hpp"

namespace crfx::CRFX_ISA {

// out[c] = P(y_v = c)
template <class M, class S>
inline void node_marginal(const M& messages, int64_t v, S* out) {
  using P = typename M::Arithmetic;
  const int64_t K = messages.inst.problem->n_labels, R = messages.inst.n_states(v) / K;
  const auto *down = messages.down(v), *below = messages.below(v);
  const auto norm = messages.norm(v);
  for (int64_t c = 0; c < K; ++c) out[c] = 0;
  for (int64_t r = 0; r < R; ++r) {
    CRFX_SIMD
    for (int64_t c = 0; c < K; ++c)
      out[c] += static_cast<S>(P::ratio(P::one, down[r * K + c], below[r * K + c], norm));
  }
}

// Hands out[c] = P(a, r, c) of the edge above v to sink(index of (a, r, 0), row) for every (a, r).
template <class M, class Sink>
inline void edge_marginal(M& messages, int64_t v, typename M::V* row, Sink&& sink) {
  using P = typename M::Arithmetic;
  const EdgeShape s = messages.inst.shape(v);
  double shift;
  const auto* table = messages.tables.get(v, &shift);
  const auto *beside = messages.beside(v), *below = messages.below(v);
  const auto norm = messages.norm(v);
  for (int64_t a = 0; a < s.A; ++a)
    for (int64_t r = 0; r < s.R; ++r) {
      const int64_t k = a * s.R + r;
      const auto weight = beside[k];
      const auto *scores = table + k * s.C, *under = below + r * s.C;
      CRFX_SIMD
      for (int64_t c = 0; c < s.C; ++c) row[c] = P::ratio(weight, scores[c], under[c], norm);
      sink(k * s.C, row);
    }
}

// Edge marginals summed over many instances, per table. In scaled arithmetic of type S sums run
// in S, in rows of whole packs, and are emptied into float64 before they grow long.
template <class S>
class EdgeTotals {
 public:
  EdgeTotals(const Problem<S>& p, double* total, Workspace& work)
      : K_(p.n_labels),
        stride_((K_ + kLanes - 1) / kLanes * kLanes),
        n_rows_((p.sharing == Sharing::typed ? p.n_tables : 1) * p.n_states()),
        total_(total),
        sums_(work.take<S>(n_rows_ * stride_)) {
    clear();
  }
  // Adds the edge above v, `weight` times.
  template <class M>
  void add(M& messages, int64_t v, double weight) {
    const auto& inst = messages.inst;
    const EdgeShape s = inst.shape(v);
    const int64_t type =
        inst.problem->sharing == Sharing::typed ? inst.problem->edge_types[inst.first + v] : 0;
    const int64_t first_row = type * s.A * s.R;
    double shift;
    const auto* table = messages.tables.get(v, &shift);
    const auto *beside = messages.beside(v), *below = messages.below(v);
    const auto norm = messages.norm(v);
    for (int64_t ar = 0, r = 0; ar < s.A * s.R; ++ar, r = r + 1 == s.R ? 0 : r + 1) {
      if constexpr (!__is_same(typename M::Arithmetic, ScaledSum<S>)) {
        for (int64_t c = 0; c < s.C; ++c)
          total_[(first_row + ar) * s.C + c] +=
              weight *
              M::Arithmetic::ratio(beside[ar], table[ar * s.C + c], below[r * s.C + c], norm);
      } else {
        row_add_product(static_cast<S>(weight) * beside[ar] / norm, table + ar * s.C,
                        below + r * s.C, sums_ + (first_row + ar) * stride_, s.C);
      }
    }
    if (++pending_ == kMostPending) flush();
  }
  void flush() {
    if (pending_ == 0) return;
    for (int64_t row = 0; row < n_rows_; ++row)
      for (int64_t c = 0; c < K_; ++c)
        total_[row * K_ + c] += static_cast<double>(sums_[row * stride_ + c]);
    clear();
  }

 private:
  static constexpr int64_t kLanes = Lanes<S>::count, kMostPending = 256;
  void clear() {
    for (int64_t k = 0; k < n_rows_ * stride_; ++k) sums_[k] = 0;
    pending_ = 0;
  }

  int64_t K_, stride_, n_rows_, pending_ = 0;
  double* total_;
  S* sums_;
};

// Adds weight x gamma p (1 - p) of every edge of the instance to float64 sums, per table. `gamma`
// is null (for 1), one per row, or one per row and table entry.
template <class M, class S>
inline void add_edge_curvature(M& messages, const S* gamma, bool per_entry, double weight,
                               double* total, Workspace& work) {
  const auto& inst = messages.inst;
  const Problem<S>& p = *inst.problem;
  const int64_t K = p.n_labels, size = p.table_size();
  auto* row = work.take<typename M::V>(K);
  for (int64_t v = 0; v < inst.n; ++v) {
    if (!inst.has_table(v)) continue;
    const int64_t type = p.sharing == Sharing::typed ? p.edge_types[inst.first + v] : 0;
    const S* own = gamma ? gamma + (per_entry ? (inst.first + v) * size : inst.first + v) : nullptr;
    edge_marginal(messages, v, row, [&](int64_t k, const auto* values) {
      double* to = total + type * size + k;
      for (int64_t c = 0; c < K; ++c) {
        const double x = values[c], factor = own ? own[per_entry ? k + c : 0] : 1.0;
        to[c] += x < 1 ? weight * factor * x * (1 - x) : 0.0;
      }
    });
  }
}

// Edge marginals of every row of the instance: rows x table.
template <class M, class S>
inline void write_edge_marginals(M& messages, S* each, Workspace& work) {
  const auto& inst = messages.inst;
  const int64_t K = inst.problem->n_labels, size = inst.problem->table_size();
  auto* row = work.take<typename M::V>(K);
  for (int64_t v = 0; v < inst.n; ++v) {
    if (!inst.has_table(v)) continue;
    S* own = each + (inst.first + v) * size;
    edge_marginal(messages, v, row, [&](int64_t k, const auto* values) {
      CRFX_SIMD
      for (int64_t c = 0; c < K; ++c) own[k + c] = static_cast<S>(values[c]);
    });
  }
}

}  // namespace crfx::CRFX_ISA
