// One instance of a batch: its rows, its tree, the shape of the state at each position, and its
// edge tables in the requested arithmetic.
#pragma once

#include <cstdint>

#include "crfx/errors.hpp"
#include "crfx/isa.hpp"
#include "crfx/views.hpp"
#include "crfx/workspace.hpp"
#include "inference/arithmetic.hpp"

namespace crfx {

// Shared or typed tables, made once per call: as weights exp(score - shift) for sums, as they are
// for maxima (shift 0). With room for one pack past the end, see rows.hpp.
template <class S>
struct LiftedTables {
  const S* tables = nullptr;      // tables x labels^(order+1)
  const S* transposed = nullptr;  // order 1 and one table: labels x labels, [c, a]
  const double* shift = nullptr;  // tables
};

}  // namespace crfx

namespace crfx::CRFX_ISA {

template <class S>
struct Instance {
  const Problem<S>* problem;
  int64_t index, first, n;
  const int64_t* parents;  // null: a chain
  const int64_t* visit;
  bool branching;  // some node has two children

  Instance(const Problem<S>& p, int64_t i)
      : problem(&p),
        index(i),
        first(p.offsets[i]),
        n(p.length(i)),
        parents(p.parents ? p.parents + p.offsets[i] : nullptr),
        visit(p.visit ? p.visit + p.offsets[i] : nullptr),
        branching(false) {
    // Breadth-first order puts siblings next to each other.
    for (int64_t k = 1; parents && k < n && !branching; ++k)
      branching = parents[visit[k]] >= 0 && parents[visit[k]] == parents[visit[k - 1]];
  }
  int64_t at(int64_t k) const { return visit ? visit[k] : k; }
  int64_t parent(int64_t v) const { return parents ? parents[v] : v - 1; }
  bool has_table(int64_t v) const { return parents ? parents[v] >= 0 : v >= problem->order; }
  // States at v: the last min(v + 1, order) labels.
  int64_t n_states(int64_t v) const {
    int64_t states = problem->n_labels;
    if (!parents)
      for (int64_t k = 1; k < problem->order && k <= v; ++k) states *= problem->n_labels;
    return states;
  }
  EdgeShape shape(int64_t v) const {
    const int64_t K = problem->n_labels;
    if (has_table(v)) return {K, problem->n_states() / K, K};
    return {1, n_states(v - 1), K};
  }
  const S* node(int64_t v) const { return problem->node + (first + v) * problem->n_labels; }
  const S* raw_table(int64_t v) const {
    const Problem<S>& p = *problem;
    const int64_t which = p.sharing == Sharing::shared  ? 0
                          : p.sharing == Sharing::typed ? p.edge_types[first + v]
                                                        : first + v;
    return p.edge + which * p.table_size();
  }
};

// NaN, +inf, and finite float64 scores so large that sums of them overflow (those of float32 are
// added in float64 where they would).
CRFX_INLINE int is_bad(float x) { return !(x <= std::numeric_limits<float>::max()); }
CRFX_INLINE int is_bad(double x) {
  const bool in_range = (x <= kLargestScore) & (x >= -kLargestScore);
  return !(in_range | (x < -std::numeric_limits<double>::max()));
}

// Index of the first invalid score, or -1.
template <class S>
inline int64_t first_bad(const S* x, int64_t n) {
  int bad = 0;
#pragma omp simd reduction(| : bad)
  for (int64_t k = 0; k < n; ++k) bad |= is_bad(x[k]);
  if (!bad) return -1;
  for (int64_t k = 0; k < n; ++k)
    if (is_bad(x[k])) return k;
  return -1;
}

template <class S>
inline void check_scores(const Instance<S>& inst) {
  const Problem<S>& p = *inst.problem;
  const int64_t bad = first_bad(inst.node(0), inst.n * p.n_labels);
  if (bad >= 0)
    fail_node_score(inst.index, bad / p.n_labels, bad % p.n_labels,
                    static_cast<double>(inst.node(0)[bad]));
  if (p.sharing != Sharing::each) return;
  for (int64_t v = 0; v < inst.n; ++v) {
    if (!inst.has_table(v)) continue;
    const int64_t entry = first_bad(inst.raw_table(v), p.table_size());
    if (entry >= 0)
      fail_edge_score(inst.index, v, entry, p.order + 1, p.n_labels,
                      static_cast<double>(inst.raw_table(v)[entry]));
  }
}

// Gives the table of the edge that ends at v, in the arithmetic P. Tables that are not in that
// arithmetic yet are converted once for the whole instance where they are few or small, else anew
// at each use.
template <class P, class S>
class Tables {
  using V = typename P::Value;

 public:
  Tables(const Instance<S>& inst, const LiftedTables<S>& lifted, Workspace& work)
      : inst_(inst), lifted_(lifted), size_(inst.problem->table_size()) {
    if (uses_lifted && inst.problem->sharing != Sharing::each) return;
    const bool each = inst.problem->sharing == Sharing::each;
    const int64_t count = each ? inst.n : inst.problem->n_tables;
    keep_ = count == 1 || count * size_ <= kKeep;
    room_ = work.take<V>(keep_ ? count * size_ : size_);
    shifts_ = keep_ ? work.take<double>(count) : nullptr;
    const S* first = inst.problem->edge + (each ? inst.first * size_ : 0);
    for (int64_t k = 0; keep_ && k < count; ++k)
      if (!each || inst.has_table(k)) shifts_[k] = fill(first + k * size_, room_ + k * size_);
  }
  // The table, or null if there is none; *shift is the score factored out of it.
  const V* get(int64_t v, double* shift) {
    *shift = 0;
    if (!inst_.has_table(v)) return nullptr;
    if constexpr (uses_lifted) {
      if (!room_) {
        *shift = lifted_.shift[which(v)];
        return lifted_.tables + which(v) * size_;
      }
    }
    if (keep_) {
      *shift = shifts_[which(v)];
      return room_ + which(v) * size_;
    }
    *shift = fill(inst_.raw_table(v), room_);
    return room_;
  }

 private:
  // The tables lifted once per call are in the scores' own type.
  static constexpr bool uses_lifted = __is_same(V, S) && !__is_same(P, LogSum);
  static constexpr int64_t kKeep = int64_t(1) << 20;

  int64_t which(int64_t v) const {
    switch (inst_.problem->sharing) {
      case Sharing::shared:
        return 0;
      case Sharing::typed:
        return inst_.problem->edge_types[inst_.first + v];
      case Sharing::each:
        break;
    }
    return v;
  }
  double fill(const S* from, V* to) {
    for (int64_t k = 0; k < size_; ++k) to[k] = static_cast<V>(from[k]);
    return P::lift(to, size_);
  }

  const Instance<S>& inst_;
  const LiftedTables<S>& lifted_;
  int64_t size_;
  bool keep_ = false;
  V* room_ = nullptr;
  double* shifts_ = nullptr;
};

}  // namespace crfx::CRFX_ISA
