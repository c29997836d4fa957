// The table of functions that exist once per instruction set, and the choice between them.
#pragma once

#include "crfx/hidden.hpp"
#include "crfx/linear.hpp"
#include "crfx/views.hpp"
#include "crfx/workspace.hpp"
#include "inference/instance.hpp"

namespace crfx {

// A unit of work: `count` instances (of Plan::instances) that run in lanes beside each other, or a
// single one that runs alone.
struct Unit {
  int64_t begin;
  int32_t count;
  bool bundled;
};

// The units of one chunk, with everything that all chunks share.
template <class S>
struct Share {
  const Problem<S>* problem;
  const LiftedTables<S>* lifted;
  const int64_t* instances;
  const Unit* first;
  const Unit* last;
};

// Receives the labellings of instances, best first.
class LabellingSink {
 public:
  virtual void take(int64_t instance, double score, const int32_t* labels) = 0;

 protected:
  ~LabellingSink() = default;
};

template <class S>
struct Kernels {
  const char* name;
  int lanes;
  // Shared and typed tables as LiftedTables, for sums or maxima; `transposed` may be null.
  void (*lift_tables)(const Problem<S>&, bool for_sums, S* tables, S* transposed, double* shift);
  // edge_sum, edge_curvature: this chunk's own float64 sums, zeroed by the caller, or null.
  void (*sum)(const Share<S>&, const SumOutputs<S>&, double* edge_sum, double* edge_curvature,
              Workspace&);
  void (*expectation)(const Share<S>&, const S* cost, const ExpectationOutputs<S>&,
                      double* edge_sum, Workspace&);
  void (*loss_scaled)(const Share<S>&, const WholeCosts&, const LossScaledOutputs<S>&,
                      double* edge_sum, double* curvature_sum, Workspace&);
  void (*best)(const Share<S>&, int32_t* labels, double* scores, Workspace&);
  void (*k_best)(const Share<S>&, int64_t k, LabellingSink&, Workspace&);
  void (*sample)(const Share<S>&, int64_t n_samples, uint64_t seed, int32_t* labels, Workspace&);
  // Those of linear.hpp for a range of rows, and of features.
  void (*linear_scores)(const Sparse<S>&, const WeightPattern&, Span<S> weights, S* scores,
                        int64_t begin, int64_t end, Workspace&);
  void (*linear_gradient)(const Columns<S>&, const WeightPattern&, Span<S> slope, double* gradient,
                          int64_t begin, int64_t end, Workspace&);
  // Those of hidden.hpp: tables first, then rows. `stride` numbers lie between rows of inputs.
  void (*hidden_tables)(const HiddenUnits<S>&, HiddenTables<S>&);
  void (*hidden_scores)(const HiddenUnits<S>&, const HiddenTables<S>&, const S* inputs,
                        int64_t stride, S* scores, int64_t n_rows, Workspace&);
  void (*hidden_gradient)(const HiddenUnits<S>&, const HiddenTables<S>&, const S* inputs,
                          int64_t stride, const S* slopes, S* input_gradient,
                          int64_t gradient_stride, const HiddenGradient&, int64_t n_rows,
                          Workspace&);
  // out (rows x n, `stride` apart) = X W, X (rows x m); W (m x n) += factor X^T out.
  void (*multiply)(const S* X, int64_t m, const S* W, int64_t n, S* out, int64_t stride,
                   int64_t n_rows, Workspace&);
  void (*add_outer)(const S* X, int64_t m, const S* out, int64_t stride, S factor, S* W, int64_t n,
                    int64_t n_rows);
};

// The best set this machine can run; the environment variable CRFX_ISA (baseline, avx2, avx512)
// asks for a lesser one.
template <class S>
const Kernels<S>& kernels();

}  // namespace crfx
