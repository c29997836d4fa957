// Sums over all permutations of a few documents, eight queries beside each other. This table
// selects the code of an instruction set, which is in subset_sums.hpp and listing.hpp.
#pragma once

#include <cstdint>

#include "crfx/workspace.hpp"

namespace crfx {

// Queries beside each other: arrays of (m x lanes) hold eight numbers per document on every
// instruction set, whatever its vectors hold.
constexpr int kQueryLanes = 8;

// Queries of the same size m. Arrays of (m x lanes) are document by document.
//
// A permutation y (y_i is the rank of document i, from 0) has score S = sum_i alpha[y_i] score_i
// and value G = sum_i discount[y_i] worth_i; its loss is base - G. A lane without a query has
// zeros.
struct QueryBundle {
  int m;
  const double* alpha;     // (m)
  const double* discount;  // (m)
  const double* score;     // (m x lanes)
  const double* worth;     // (m x lanes)
  const double* base;      // (lanes)
  const double* document;  // (m x lanes), u and
  const double* rank;      // (m x lanes), v: see PermutationMoments
  const double* truth;     // (m x lanes), the mean of alpha[y_i] over the truths
  double loss_factor;      // kappa
};

// Of the model exp(S - kappa G): entries exp(alpha_r f_i - kappa discount_r worth_i - u_i - v_r)
// are at most 1, and 1 along the best permutation, so that sums of products neither overflow nor
// vanish.
struct PermutationMoments {
  double* z;             // (lanes): exp(sum u + sum v) times this is the sum over all permutations
  double* mean;          // (m x lanes): E alpha[y_i]
  double* mean_worth;    // (lanes): E G, or null
  double* square_worth;  // (lanes): E G^2, or null
  double* cross;         // (m x lanes): E G alpha[y_i]; null if mean_worth is
  double* spread;        // (m x lanes): sum_j |Cov(alpha[y_i], alpha[y_j])|, or null
};

// Of permutations weighted by exp(loss (1 + S - mean S of the truths)), with
// d_i = alpha[y_i] - truth_i.
struct ScaledMoments {
  double* log_z;   // (lanes)
  double* mean;    // (m x lanes): E loss d_i
  double* spread;  // (m x lanes): sum_j |Cov(loss d_i, loss d_j)|, or null
};

struct PermutationKernels {
  const char* name;
  // By sums over subsets: O(2^m m), with `spread` O(2^m m^2).
  void (*moments)(const QueryBundle&, const PermutationMoments&, Workspace&);
  // By listing: O(m!).
  void (*scaled)(const QueryBundle&, const ScaledMoments&, Workspace&);
};

const PermutationKernels& permutation_kernels();

}  // namespace crfx
