// The core's face: whole batches in, caller-owned arrays out. Every function checks the scores it
// reads and throws InputError with the place of the first bad one. `n_threads` <= 0: all cores;
// results do not depend on it.
#pragma once

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

// Name of the instruction set in use.
const char* instruction_set();

}  // namespace crfx
