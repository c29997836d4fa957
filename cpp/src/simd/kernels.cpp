// Everything hot, compiled once per instruction set: CRFX_ISA names the namespace, and the compiler
// flags of each copy say which instructions it may use.
#include "simd/kernels.hpp"

#include "curvature/exact.hpp"
#include "curvature/length.hpp"
#include "curvature/mixing_chain.hpp"
#include "inference/bundle_best.hpp"
#include "inference/bundle_expectation.hpp"
#include "inference/bundle_sum.hpp"
#include "inference/expectation.hpp"
#include "inference/k_best.hpp"
#include "inference/loss_scaled.hpp"
#include "inference/sampling.hpp"
#include "parametric/dense_kernels.hpp"
#include "parametric/hidden_kernels.hpp"
#include "parametric/linear_kernels.hpp"

namespace crfx::CRFX_ISA {

template <class S>
void lift_tables(const Problem<S>& p, bool for_sums, S* tables, S* transposed, double* shift) {
  const int64_t size = p.table_size(), K = p.n_labels;
  for (int64_t table = 0; table < p.n_tables; ++table) {
    for (int64_t k = 0; k < size; ++k) tables[table * size + k] = p.edge[table * size + k];
    shift[table] = for_sums ? ScaledSum<S>::lift(tables + table * size, size) : 0;
  }
  for (int64_t k = 0; transposed && k < K * K; ++k) transposed[(k % K) * K + k / K] = tables[k];
}

// std::optional without the library's template, see isa.hpp.
template <class T>
class Maybe {
 public:
  template <class... Arguments>
  void make(Arguments&&... arguments) {
    object_ = new (room_) T(arguments...);
  }
  T* get() { return object_; }

 private:
  alignas(T) unsigned char room_[sizeof(T)];
  T* object_ = nullptr;
};

// Calls body(arithmetic) in scaled arithmetic, then in that of float64, then in log space, until it
// returns that the result is reliable. If log space fails too, no labelling is allowed. `narrow`:
// whether to try the scores' own type first.
template <class S, class Body>
void with_fallback(int64_t instance, bool narrow, Workspace& work, Body&& body) {
  if constexpr (!__is_same(S, double)) {
    work.reset();
    if (narrow && body(ScaledSum<S>{})) return;
  }
  work.reset();
  if (body(ScaledSum<double>{})) return;
  work.reset();
  if (!body(LogSum{})) fail_no_labelling(instance);
}

template <class M, class S>
void write_gamma(M& messages, const SumOutputs<S>& out, Workspace& work) {
  const auto& inst = messages.inst;
  const int64_t K = inst.problem->n_labels, size = inst.problem->table_size();
  switch (out.curvature) {
    case Curvature::none:
      break;
    case Curvature::length:
      length_gamma(inst, out.node_gamma + inst.first, out.edge_gamma + inst.first, work);
      break;
    case Curvature::exact:
      if constexpr (M::Arithmetic::exact_range)
        exact_gamma(messages, out.node_gamma + inst.first * K, out.edge_gamma + inst.first * size,
                    work);
      break;
    case Curvature::mixing:
    case Curvature::dobrushin: {
      const bool tighter = out.curvature == Curvature::dobrushin;
      S *node = out.node_gamma + inst.first, *edge = out.edge_gamma + inst.first;
      inst.problem->order > 1 ? chain_gamma(messages, tighter, node, edge, work)
                              : forest_gamma(messages, tighter, node, edge, work);
    }
  }
}

// The sums over edges, in lanes and alone. Members are null if not wanted.
template <class S>
struct EdgeSums {
  EdgeMarginalSum<S>* marginals = nullptr;
  EdgeCurvatureSum<S>* curvatures = nullptr;
  EdgeTotals<S>* totals = nullptr;
  double* curvature = nullptr;
};

template <class P, class S>
bool sum_alone(const Instance<S>& inst, const Share<S>& share, const SumOutputs<S>& out,
               const EdgeSums<S>& sums, Workspace& work) {
  Messages<P, S> messages(inst, *share.lifted, work);
  if (!messages.pass_up() || !messages.pass_down()) return false;
  out.log_z[inst.index] = messages.log_z;
  const int64_t K = inst.problem->n_labels;
  const double weight = out.weight ? out.weight[inst.index] : 1.0;
  for (int64_t v = 0; out.node && v < inst.n; ++v)
    node_marginal(messages, v, out.node + (inst.first + v) * K);
  for (int64_t v = 0; sums.totals && v < inst.n; ++v)
    if (inst.has_table(v)) sums.totals->add(messages, v, weight);
  if (out.edge) write_edge_marginals(messages, out.edge, work);
  write_gamma(messages, out, work);
  if (sums.curvature) {
    const S* gamma = out.curvature == Curvature::none ? nullptr : out.edge_gamma;
    const bool per_entry = out.curvature == Curvature::exact;
    add_edge_curvature(messages, gamma, per_entry, weight, sums.curvature, work);
  }
  return true;
}

template <class S>
void sum_instance(const Share<S>& share, int64_t index, bool narrow, const SumOutputs<S>& out,
                  const EdgeSums<S>& sums, Workspace& work) {
  const Instance<S> inst(*share.problem, index);
  out.log_z[index] = 0;
  if (inst.n == 0) return;
  with_fallback<S>(index, narrow, work, [&]<class P>(P) {
    // The exact multipliers divide by small probabilities: float64 log space from the start.
    if (!P::exact_range && out.curvature == Curvature::exact) return false;
    return sum_alone<P>(inst, share, out, sums, work);
  });
}

template <class S>
void check_unit(const Share<S>& share, const Unit& unit) {
  for (int64_t k = unit.begin; k < unit.begin + unit.count; ++k)
    check_scores(Instance<S>(*share.problem, share.instances[k]));
}

// Prefetches the node scores of the next unit: units are sorted by length, so its instances are
// scattered. Of long instances only the beginning; the processor prefetches the rest.
template <class S>
void prefetch_next(const Share<S>& share, const Unit& unit) {
  constexpr int64_t kLine = 64, kMostBytes = 2048;
  if (&unit + 1 == share.last) return;
  const Problem<S>& p = *share.problem;
  const Unit& next = (&unit)[1];
  for (int64_t k = next.begin; k < next.begin + next.count; ++k) {
    const int64_t i = share.instances[k];
    const int64_t bytes = p.length(i) * p.n_labels * static_cast<int64_t>(sizeof(S));
    const char* from = reinterpret_cast<const char*>(p.node + p.offsets[i] * p.n_labels);
    for (int64_t b = 0; b < bytes && b < kMostBytes; b += kLine) __builtin_prefetch(from + b);
  }
}

// Chains side by side; those in which held values matter are computed again alone.
template <class S>
void sum_bundle(const Share<S>& share, const Unit& unit, const SumOutputs<S>& out,
                const EdgeSums<S>& sums, Workspace& work) {
  const Bundle<S> bundle(*share.problem, share.instances + unit.begin, unit.count);
  BundleSum<S> lanes(*share.problem, *share.lifted, bundle, work);
  lanes.run(out, sums.marginals, sums.curvatures);
  for (int l = 0; l < unit.count; ++l)
    if (!lanes.ok(l)) sum_instance(share, bundle.index[l], false, out, sums, work);
}

template <class S>
void sum(const Share<S>& share, const SumOutputs<S>& out, double* edge_sum, double* edge_curvature,
         Workspace& work) {
  const Problem<S>& p = *share.problem;
  Workspace kept;  // the sums outlive the units
  bool bundles = false;
  for (const Unit* unit = share.first; unit != share.last; ++unit) bundles |= unit->bundled;
  Maybe<EdgeMarginalSum<S>> marginals;
  Maybe<EdgeCurvatureSum<S>> curvatures;
  Maybe<EdgeTotals<S>> totals;
  const S* table = share.lifted->tables;
  if (edge_sum) totals.make(p, edge_sum, kept);
  if (edge_sum && bundles) marginals.make(p.n_labels, table, edge_sum, kept);
  if (edge_curvature && bundles) curvatures.make(p.n_labels, table, edge_curvature, kept);
  const EdgeSums<S> sums = {marginals.get(), curvatures.get(), totals.get(), edge_curvature};
  for (const Unit* unit = share.first; unit != share.last; ++unit) {
    prefetch_next(share, *unit);
    check_unit(share, *unit);
    work.reset();
    if (unit->bundled)
      sum_bundle(share, *unit, out, sums, work);
    else
      sum_instance(share, share.instances[unit->begin], true, out, sums, work);
  }
  if (marginals.get()) marginals.get()->flush();
  if (curvatures.get()) curvatures.get()->flush();
  if (totals.get()) totals.get()->flush();
}

template <class P, class S>
bool expectation_alone(const Instance<S>& inst, const Share<S>& share, const S* cost,
                       const ExpectationOutputs<S>& out, double* edge_sum, Workspace& work) {
  const Problem<S>& p = *inst.problem;
  const int64_t K = p.n_labels, size = p.table_size();
  Messages<P, S> messages(inst, *share.lifted, work);
  if (!messages.pass_up() || !messages.pass_down()) return false;
  ExpectedCost<Messages<P, S>, S> expected(messages, cost + inst.first * K, work);
  out.value[inst.index] = expected.value();
  for (int64_t v = 0; v < inst.n; ++v) {
    expected.node_gradient(v, out.node + (inst.first + v) * K);
    if (!inst.has_table(v) || out.edge_output == EdgeOutput::none) continue;
    const int64_t type = p.sharing == Sharing::typed ? p.edge_types[inst.first + v] : 0;
    expected.edge_gradient(v, out.edge ? out.edge + (inst.first + v) * size : nullptr,
                           edge_sum ? edge_sum + type * size : nullptr);
  }
  return true;
}

template <class S>
void expectation_instance(const Share<S>& share, int64_t index, bool narrow, const S* cost,
                          const ExpectationOutputs<S>& out, double* edge_sum, Workspace& work) {
  const Instance<S> inst(*share.problem, index);
  out.value[index] = 0;
  if (inst.n == 0) return;
  with_fallback<S>(index, narrow, work, [&]<class P>(P) {
    return expectation_alone<P>(inst, share, cost, out, edge_sum, work);
  });
}

template <class S>
void expectation(const Share<S>& share, const S* cost, const ExpectationOutputs<S>& out,
                 double* edge_sum, Workspace& work) {
  Workspace kept;  // the sums outlive the units
  Maybe<EdgeGradientSum<S>> edges;
  for (const Unit* unit = share.first; unit != share.last; ++unit) {
    prefetch_next(share, *unit);
    check_unit(share, *unit);
    if (!unit->bundled) {
      expectation_instance(share, share.instances[unit->begin], true, cost, out, edge_sum, work);
      continue;
    }
    if (edge_sum && !edges.get())
      edges.make(share.problem->n_labels, share.lifted->tables, edge_sum, kept);
    work.reset();
    const Bundle<S> bundle(*share.problem, share.instances + unit->begin, unit->count);
    BundleExpectation<S> lanes(*share.problem, *share.lifted, bundle, work);
    lanes.run(cost, out, edges.get());
    for (int l = 0; l < unit->count; ++l)
      if (!lanes.ok(l))
        expectation_instance(share, bundle.index[l], false, cost, out, edge_sum, work);
  }
  if (edges.get()) edges.get()->flush();
}

template <class S>
void loss_scaled(const Share<S>& share, const WholeCosts& costs, const LossScaledOutputs<S>& out,
                 double* edge_sum, double* curvature_sum, Workspace& work) {
  for (const Unit* unit = share.first; unit != share.last; ++unit) {
    prefetch_next(share, *unit);
    check_unit(share, *unit);
    const Instance<S> inst(*share.problem, share.instances[unit->begin]);
    out.value[inst.index] = 0;
    if (inst.n == 0) continue;
    work.reset();
    LossScaled<S> sums(inst, costs, work);
    out.value[inst.index] = sums.value();
    if (out.node) sums.add_slopes(out, edge_sum, curvature_sum);
  }
}

template <class V, class S>
bool best_in(const Share<S>& share, const Instance<S>& inst, int32_t* labels, Workspace& work) {
  work.reset();
  Messages<MaxPlus<V>, S> messages(inst, *share.lifted, work);
  if (!messages.pass_up()) return false;
  best_labelling(messages, labels + inst.first, work);
  return true;
}

// Sums of scores that overflow float32 are formed again in float64.
template <class S>
void best_alone(const Share<S>& share, const Instance<S>& inst, int32_t* labels, Workspace& work) {
  if (inst.n == 0 || best_in<S>(share, inst, labels, work)) return;
  if (!best_in<double>(share, inst, labels, work)) fail_no_labelling(inst.index);
}

template <class S>
void best_bundle(const Share<S>& share, const Unit& unit, int32_t* labels, Workspace& work) {
  const Problem<S>& p = *share.problem;
  const Bundle<S> bundle(p, share.instances + unit.begin, unit.count);
  const Bits<S> ok = bundle_best(p, *share.lifted, bundle, labels, work);
  for (int l = 0; l < unit.count; ++l)
    if (!ok[l]) best_alone(share, Instance<S>(p, bundle.index[l]), labels, work);
}

template <class S>
void best(const Share<S>& share, int32_t* labels, double* scores, Workspace& work) {
  for (const Unit* unit = share.first; unit != share.last; ++unit) {
    prefetch_next(share, *unit);
    check_unit(share, *unit);
    work.reset();
    const int64_t* instances = share.instances + unit->begin;
    if (unit->bundled)
      best_bundle(share, *unit, labels, work);
    else
      best_alone(share, Instance<S>(*share.problem, instances[0]), labels, work);
    for (int32_t k = 0; k < unit->count; ++k) {
      const Instance<S> inst(*share.problem, instances[k]);
      scores[inst.index] = labelling_score(inst, labels + inst.first, work.take<int64_t>(inst.n));
      if (!(scores[inst.index] > -std::numeric_limits<double>::infinity()))
        fail_no_labelling(inst.index);
    }
  }
}

template <class S>
void k_best(const Share<S>& share, int64_t k, LabellingSink& to, Workspace& work) {
  for (const Unit* unit = share.first; unit != share.last; ++unit) {
    prefetch_next(share, *unit);
    check_unit(share, *unit);
    work.reset();
    const Instance<S> inst(*share.problem, share.instances[unit->begin]);
    best_labellings(inst, *share.lifted, k, to, work);
  }
}

template <class P, class S>
bool sample_alone(const Instance<S>& inst, const Share<S>& share, int64_t n_samples, uint64_t seed,
                  int32_t* labels, Workspace& work) {
  Messages<P, S> messages(inst, *share.lifted, work);
  if (!messages.pass_up() || !messages.pass_down()) return false;  // down: is up reliable?
  auto* row = work.take<typename P::Value>(inst.problem->n_labels);
  int64_t* states = work.take<int64_t>(inst.n);
  for (int64_t k = 0; k < n_samples; ++k)
    draw_labelling(messages, seed, k, labels + k * inst.problem->n_rows() + inst.first, row,
                   states);
  return true;
}

template <class S>
void sample(const Share<S>& share, int64_t n_samples, uint64_t seed, int32_t* labels,
            Workspace& work) {
  for (const Unit* unit = share.first; unit != share.last; ++unit) {
    prefetch_next(share, *unit);
    check_unit(share, *unit);
    const Instance<S> inst(*share.problem, share.instances[unit->begin]);
    if (inst.n == 0) continue;
    with_fallback<S>(inst.index, true, work, [&]<class P>(P) {
      return sample_alone<P>(inst, share, n_samples, seed, labels, work);
    });
  }
}

#define CRFX_STRING_OF(x) #x
#define CRFX_STRING(x) CRFX_STRING_OF(x)

template <class S>
extern const Kernels<S> table = {CRFX_STRING(CRFX_ISA),
                                 Lanes<S>::count,
                                 lift_tables<S>,
                                 sum<S>,
                                 expectation<S>,
                                 loss_scaled<S>,
                                 best<S>,
                                 k_best<S>,
                                 sample<S>,
                                 linear_scores<S>,
                                 linear_gradient<S>,
                                 hidden_tables<S>,
                                 hidden_scores<S>,
                                 hidden_gradient<S>,
                                 multiply<S>,
                                 add_outer<S>};
template const Kernels<float> table<float>;
template const Kernels<double> table<double>;

}  // namespace crfx::CRFX_ISA
