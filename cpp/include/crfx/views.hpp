// Inputs and outputs of the core: plain views over arrays that the caller owns.
#pragma once

#include <cstdint>

#include "crfx/isa.hpp"

namespace crfx {

// How edge tables are shared: one for all edges, one per edge type, or one per row.
enum class Sharing { shared, typed, each };

// Which curvature multipliers (gamma) to compute, see mixing_*.hpp and exact.hpp.
enum class Curvature { none, mixing, dobrushin, exact, length };

// The output of edge marginals: none, summed per table, or one table per row.
enum class EdgeOutput { none, sum, each };

// An event whose probability is below this counts as impossible when curvature is computed:
// messages do not resolve it (docs/decisions/0003), and its row of the Hessian is as small.
template <class S>
constexpr double kImpossible = sizeof(S) == 4 ? 1e-16 : 1e-30;

// The largest magnitude of a finite score.
constexpr double kLargestScore = 1e100;

// A batch of scored instances. Rows are positions, stacked; nothing is padded.
template <class S>
struct Problem {
  const S* node = nullptr;           // rows x labels
  const S* edge = nullptr;           // tables x labels^(order+1), oldest label first
  const S* start = nullptr;          // labels, or null: added at roots / first positions
  const S* end = nullptr;            // labels, or null: added at the last position of a chain
  const int64_t* offsets = nullptr;  // instances + 1
  const int64_t* parents = nullptr;  // rows, index within the instance, -1 at roots; null: chains
  const int64_t* visit = nullptr;    // rows, within the instance, parents first; null: chains
  const int32_t* edge_types = nullptr;  // rows, with Sharing::typed
  int64_t n_instances = 0;
  int64_t n_tables = 1;
  int n_labels = 0;
  int order = 1;
  Sharing sharing = Sharing::shared;

  CRFX_INLINE int64_t n_rows() const { return offsets[n_instances]; }
  CRFX_INLINE int64_t length(int64_t i) const { return offsets[i + 1] - offsets[i]; }
  // Number of window states, labels^order, and of entries of one table, labels^(order+1).
  CRFX_INLINE int64_t n_states() const {
    int64_t states = 1;
    for (int k = 0; k < order; ++k) states *= n_labels;
    return states;
  }
  CRFX_INLINE int64_t table_size() const { return n_states() * n_labels; }
};

// Outputs of sum-product; null if not wanted. Arrays indexed by row start zeroed.
template <class S>
struct SumOutputs {
  double* log_z = nullptr;     // instances
  S* node = nullptr;           // rows x labels
  S* edge = nullptr;           // EdgeOutput::each: rows x table_size
  double* edge_sum = nullptr;  // EdgeOutput::sum: tables (1 unless typed) x table_size
  // Sums of gamma p (1 - p) over edges, like edge_sum; gamma is 1 where Curvature::none.
  double* edge_curvature = nullptr;
  const double* weight = nullptr;  // instances: factors of both sums, null for 1
  S* node_gamma = nullptr;         // rows; exact: rows x labels
  S* edge_gamma = nullptr;         // rows; exact: rows x table_size
  Curvature curvature = Curvature::none;
  EdgeOutput edge_output = EdgeOutput::none;
};

// Outputs of the first-order expectation pass for a cost of every (row, label).
template <class S>
struct ExpectationOutputs {
  double* value = nullptr;     // instances: E[sum of costs]
  S* node = nullptr;           // rows x labels: its gradient in the node scores
  S* edge = nullptr;           // EdgeOutput::each
  double* edge_sum = nullptr;  // EdgeOutput::sum
  EdgeOutput edge_output = EdgeOutput::none;
};

// The loss of a batch: costs of labels, and true labels.
struct WholeCosts {
  const int32_t* cost = nullptr;   // rows x labels, 0 at the truth
  const int32_t* truth = nullptr;  // rows
  const double* unit = nullptr;    // instances: the loss that a cost of 1 stands for
};

// Null if not wanted. Arrays by row start zeroed.
template <class S>
struct LossScaledOutputs {
  double* value = nullptr;         // instances
  S* node = nullptr;               // rows x labels: gradient
  S* node_curvature = nullptr;     // rows x labels
  S* edge = nullptr;               // EdgeOutput::each: rows x table_size
  S* edge_curvature = nullptr;     // EdgeOutput::each
  const double* weight = nullptr;  // instances: factors of the sums below, null for 1
  EdgeOutput edge_output = EdgeOutput::none;
};

}  // namespace crfx
