// Sums, maxima and samples over all labellings of a batch: whole batches in, arrays of the caller
// out. `n_threads` <= 0: all cores; results do not depend on it.
//
// The functions of a Problem check the scores they read, and throw InputError with the place of the
// first bad one.
#pragma once

#include <cstdint>
#include <vector>

#include "crfx/views.hpp"

namespace crfx {

template <class S>
void sum_product(const Problem<S>& problem, const SumOutputs<S>& out, int n_threads);

// cost: rows x labels.
template <class S>
void expectation(const Problem<S>& problem, const S* cost, const ExpectationOutputs<S>& out,
                 int n_threads);

// Exact for whole costs; see loss_scaled.hpp. The sums are shaped like the tables, or null.
template <class S>
void loss_scaled(const Problem<S>& problem, const WholeCosts& costs,
                 const LossScaledOutputs<S>& out, double* edge_sum, double* edge_curvature_sum,
                 int n_threads);

// Best labelling (rows) and its score (instances). Ties go to the smaller label, first positions
// (roots) first.
template <class S>
void max_product(const Problem<S>& problem, int32_t* labels, double* scores, int n_threads);

// Up to k best labellings of each instance, best first.
struct KBest {
  std::vector<int64_t> counts;  // per instance
  std::vector<double> scores;   // all, instance by instance
  std::vector<int32_t> labels;  // all, each the length of its instance
};
template <class S>
KBest k_best(const Problem<S>& problem, int64_t k, int n_threads);

// labels: n_samples x rows. A draw depends on (seed, sample, row) and the model alone.
template <class S>
void sample(const Problem<S>& problem, int64_t n_samples, uint64_t seed, int32_t* labels,
            int n_threads);

// Forests are given by parent indices, and visited with parents before their children.
//
// The visit order of every instance (indices within the instance, parents first, roots and
// siblings by index), concatenated. Throws InputError naming instance and position for a parent
// out of range or a cycle. Cost: linear in rows.
std::vector<int64_t> visit_order(const int64_t* offsets, const int64_t* parents,
                                 int64_t n_instances);

// Positions that do not depend on each other.
//
// p[c] = exp(x[c]) / sum exp(x) and log_z = log sum exp(x), row by row (rows x K). A row without a
// finite largest score gives a log_z that is not finite, and no sensible p.
// Rounds as XGBoost's softmax does: trees that differ by one rounding may split elsewhere.
template <class S>
void softmax(const S* x, int64_t rows, int64_t n_labels, S* p, double* log_z, int n_threads);

// to[r] = x[r] + factor[r] table[which[r]], row by row (rows x K); `factor` null: 1. A negative
// `which` adds nothing.
template <class S>
void add_table_rows(const S* x, const S* table, const int32_t* which, const S* factor, int64_t rows,
                    int64_t n_labels, S* to, int n_threads);

// The sum of weight x score in float64; what has no weight may be -inf. Chunks do not depend on
// threads.
template <class S>
double weighted_total(const S* weight, const S* score, int64_t n, int n_threads);

// Second derivatives of single events, for boosting.
//
// out = max(factor * gamma * p * (1 - p), least), (rows x events) each.
// gamma has one entry per row, or one per event where `gamma_per_event`; null: 1.
// Rounding may have left a sure event's p above 1: it becomes 1.
template <class S>
void event_curvature(S* p, const S* gamma, bool gamma_per_event, int64_t rows, int64_t events,
                     S factor, S least, S* out, int n_threads);

// Name of the instruction set in use.
const char* instruction_set();

}  // namespace crfx
