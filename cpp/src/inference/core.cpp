#include <cstring>

#include "crfx/errors.hpp"
#include "crfx/inference.hpp"
#include "crfx/parallel.hpp"
#include "inference/instance.hpp"
#include "inference/plan.hpp"
#include "simd/kernels.hpp"

namespace crfx {
namespace {

// Checks scores that belong to no instance: n_tables tables of n_axes axes.
template <class S>
void check_array(const char* name, const S* x, int64_t n_tables, int n_axes, const Problem<S>& p) {
  int64_t size = 1;
  for (int axis = 0; axis < n_axes; ++axis) size *= p.n_labels;
  const int64_t bad = x ? baseline::first_bad(x, n_tables * size) : -1;
  if (bad < 0) return;
  const bool typed = n_axes > 1 && p.sharing == Sharing::typed;
  fail_shared_score(name, typed ? bad / size : -1, bad % size, n_axes, p.n_labels,
                    static_cast<double>(x[bad]));
}

template <class S>
void check_shared(const Problem<S>& p) {
  check_array("start", p.start, 1, 1, p);
  check_array("end", p.end, 1, 1, p);
  if (p.sharing != Sharing::each) check_array("edge", p.edge, p.n_tables, p.order + 1, p);
}

// Runs body over the chunks of a plan. Chunks process instances in an order of their own: if one of
// them rejects its scores, the error names the first bad place of the whole batch.
template <class S, class Body>
void run(const Problem<S>& p, const Plan& plan, int n_threads, Body&& body) {
  try {
    for_chunks(plan.n_chunks(), n_threads, body);
  } catch (const InputError&) {
    for (int64_t i = 0; i < p.n_instances; ++i) baseline::check_scores(baseline::Instance<S>(p, i));
    throw;
  }
}

template <class S>
bool can_bundle(const Problem<S>& p) {
  return !p.parents && p.order == 1 && p.sharing == Sharing::shared;
}

// Shared and typed tables in the form the kernels want, owned for the length of a call.
template <class S>
struct Lifted {
  std::vector<S> tables, transposed;
  std::vector<double> shift;
  LiftedTables<S> view;

  Lifted(const Problem<S>& p, const Kernels<S>& kernel, bool for_sums) {
    if (p.sharing == Sharing::each) return;
    const auto size = static_cast<size_t>(p.n_tables * p.table_size());
    tables.resize(size + static_cast<size_t>(kernel.lanes));
    shift.resize(static_cast<size_t>(p.n_tables));
    if (can_bundle(p)) transposed.resize(size);
    S* turned = can_bundle(p) ? transposed.data() : nullptr;
    kernel.lift_tables(p, for_sums, tables.data(), turned, shift.data());
    view = {tables.data(), turned, shift.data()};
  }
};

template <class S>
Share<S> share_of(const Problem<S>& p, const Lifted<S>& lifted, const Plan& plan, int64_t chunk) {
  return {&p, &lifted.view, plan.instances.data(),
          plan.units.data() + plan.chunks[static_cast<size_t>(chunk)],
          plan.units.data() + plan.chunks[static_cast<size_t>(chunk) + 1]};
}

// One running sum per chunk, added up in order at the end.
class ChunkSums {
 public:
  ChunkSums(int64_t n_chunks, int64_t size)
      : size_(size), sums_(static_cast<size_t>(n_chunks * size), 0.0) {}
  double* of(int64_t chunk) { return size_ ? sums_.data() + chunk * size_ : nullptr; }
  void add_to(double* total) const {
    for (size_t k = 0; k < sums_.size(); ++k) total[k % static_cast<size_t>(size_)] += sums_[k];
  }

 private:
  int64_t size_;
  std::vector<double> sums_;
};

template <class S>
int64_t sum_size(const Problem<S>& p, EdgeOutput output) {
  if (output != EdgeOutput::sum) return 0;
  return p.table_size() * (p.sharing == Sharing::typed ? p.n_tables : 1);
}

}  // namespace

template <class S>
void sum_product(const Problem<S>& p, const SumOutputs<S>& out, int n_threads) {
  check_shared(p);
  const Kernels<S>& kernel = kernels<S>();
  const bool bundles = can_bundle(p) && out.edge_output != EdgeOutput::each &&
                       (out.curvature == Curvature::none || out.curvature == Curvature::mixing);
  const Lifted<S> lifted(p, kernel, true);
  const int64_t size = sum_size(p, out.edge_output), curved = out.edge_curvature ? size : 0;
  const Plan plan = make_plan(p, bundles ? kernel.lanes : 1, (size + curved) * 8);
  ChunkSums sums(plan.n_chunks(), size), curvatures(plan.n_chunks(), curved);
  run(p, plan, n_threads, [&](int64_t chunk, Workspace& work) {
    kernel.sum(share_of(p, lifted, plan, chunk), out, sums.of(chunk), curvatures.of(chunk), work);
  });
  sums.add_to(out.edge_sum);
  curvatures.add_to(out.edge_curvature);
}

template <class S>
void expectation(const Problem<S>& p, const S* cost, const ExpectationOutputs<S>& out,
                 int n_threads) {
  check_shared(p);
  const Kernels<S>& kernel = kernels<S>();
  const Lifted<S> lifted(p, kernel, true);
  const int64_t size = sum_size(p, out.edge_output);
  const bool bundles = can_bundle(p) && out.edge_output != EdgeOutput::each;
  const Plan plan = make_plan(p, bundles ? kernel.lanes : 1, size * 8);
  ChunkSums sums(plan.n_chunks(), size);
  run(p, plan, n_threads, [&](int64_t chunk, Workspace& work) {
    kernel.expectation(share_of(p, lifted, plan, chunk), cost, out, sums.of(chunk), work);
  });
  sums.add_to(out.edge_sum);
}

template <class S>
void loss_scaled(const Problem<S>& p, const WholeCosts& costs, const LossScaledOutputs<S>& out,
                 double* edge_sum, double* edge_curvature_sum, int n_threads) {
  check_shared(p);
  const Kernels<S>& kernel = kernels<S>();
  const Lifted<S> lifted(p, kernel, false);
  const int64_t size = sum_size(p, out.edge_output), curved = edge_curvature_sum ? size : 0;
  const Plan plan = make_plan(p, 1, (size + curved) * 8);
  ChunkSums sums(plan.n_chunks(), size), curvatures(plan.n_chunks(), curved);
  run(p, plan, n_threads, [&](int64_t chunk, Workspace& work) {
    kernel.loss_scaled(share_of(p, lifted, plan, chunk), costs, out, sums.of(chunk),
                       curvatures.of(chunk), work);
  });
  sums.add_to(edge_sum);
  curvatures.add_to(edge_curvature_sum);
}

template <class S>
void max_product(const Problem<S>& p, int32_t* labels, double* scores, int n_threads) {
  check_shared(p);
  const Kernels<S>& kernel = kernels<S>();
  const Lifted<S> lifted(p, kernel, false);
  const Plan plan = make_plan(p, can_bundle(p) ? kernel.lanes : 1, 0);
  run(p, plan, n_threads, [&](int64_t chunk, Workspace& work) {
    kernel.best(share_of(p, lifted, plan, chunk), labels, scores, work);
  });
}

namespace {

// Stores the labellings by instance, because threads compute them in any order.
class KBestLists : public LabellingSink {
 public:
  KBestLists(const int64_t* offsets, int64_t n_instances)
      : offsets_(offsets), lists_(static_cast<size_t>(n_instances)) {}
  void take(int64_t instance, double score, const int32_t* labels) override {
    List& list = lists_[static_cast<size_t>(instance)];
    list.scores.push_back(score);
    list.labels.insert(list.labels.end(), labels,
                       labels + (offsets_[instance + 1] - offsets_[instance]));
  }
  KBest joined() const {
    KBest all;
    for (const List& list : lists_) {
      all.counts.push_back(static_cast<int64_t>(list.scores.size()));
      all.scores.insert(all.scores.end(), list.scores.begin(), list.scores.end());
      all.labels.insert(all.labels.end(), list.labels.begin(), list.labels.end());
    }
    return all;
  }

 private:
  struct List {
    std::vector<double> scores;
    std::vector<int32_t> labels;
  };
  const int64_t* offsets_;
  std::vector<List> lists_;
};

}  // namespace

template <class S>
KBest k_best(const Problem<S>& p, int64_t k, int n_threads) {
  check_shared(p);
  const Kernels<S>& kernel = kernels<S>();
  const Lifted<S> lifted(p, kernel, false);
  KBestLists lists(p.offsets, p.n_instances);
  const Plan plan = make_plan(p, 1, 0);
  run(p, plan, n_threads, [&](int64_t chunk, Workspace& work) {
    kernel.k_best(share_of(p, lifted, plan, chunk), k, lists, work);
  });
  return lists.joined();
}

template <class S>
void sample(const Problem<S>& p, int64_t n_samples, uint64_t seed, int32_t* labels, int n_threads) {
  check_shared(p);
  const Kernels<S>& kernel = kernels<S>();
  const Lifted<S> lifted(p, kernel, true);
  const Plan plan = make_plan(p, 1, 0);
  run(p, plan, n_threads, [&](int64_t chunk, Workspace& work) {
    kernel.sample(share_of(p, lifted, plan, chunk), n_samples, seed, labels, work);
  });
}

const char* instruction_set() { return kernels<float>().name; }

#define CRFX_INSTANTIATE(S)                                                                       \
  template void sum_product<S>(const Problem<S>&, const SumOutputs<S>&, int);                     \
  template void expectation<S>(const Problem<S>&, const S*, const ExpectationOutputs<S>&, int);   \
  template void loss_scaled<S>(const Problem<S>&, const WholeCosts&, const LossScaledOutputs<S>&, \
                               double*, double*, int);                                            \
  template void max_product<S>(const Problem<S>&, int32_t*, double*, int);                        \
  template KBest k_best<S>(const Problem<S>&, int64_t, int);                                      \
  template void sample<S>(const Problem<S>&, int64_t, uint64_t, int32_t*, int);
CRFX_INSTANTIATE(float)
CRFX_INSTANTIATE(double)

}  // namespace crfx
