// Training by epochs over chains (or forests) in small steps: stochastic gradient descent, and the
// perceptrons. Node scores are linear in the features or come from hidden units, edge scores are
// tables. `n_threads` <= 0: all cores; parameters do not depend on it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "crfx/hidden.hpp"
#include "crfx/linear.hpp"
#include "crfx/views.hpp"

namespace crfx {

// The loss that steps minimise; crfx.objectives has the formulas.
enum class SweepLoss {
  likelihood,
  perceptron,
  expected_loss,
  pseudo_likelihood,
  labelwise_likelihood,
  loss_scaled,  // of instances in which every labelling costs a few units
  kl
};

struct ChainLoss {
  SweepLoss kind = SweepLoss::likelihood;
  // Labels: the weight of a position by its true label; null: 1 (docs/decisions/0017).
  const double* class_weights = nullptr;
  // Labels x labels, by the true label first; rows whose label is unknown have none. Likelihood and
  // perceptron: added to the scores of nodes (null: nothing); expected_loss: costs of labels;
  // loss_scaled: costs in whole units; kl: logarithms of the unnormalised target.
  const float* table = nullptr;
  bool by_length = false;  // the table is divided by the length of the instance
  double unit = 1;         // of loss_scaled: the cost of one unit
};

// Chains (with `parents`: forests), their labels, and the tables that score their edges and ends;
// all views.
struct ChainData {
  const int64_t* offsets = nullptr;
  const int64_t* parents = nullptr;     // rows; null: chains
  const int64_t* visit = nullptr;       // rows, see Problem
  const int32_t* edge_types = nullptr;  // rows; with Sharing::typed
  const int32_t* labels = nullptr;      // rows; negative: unknown
  const double* weights = nullptr;      // instances; null: 1
  int64_t n_types = 1;
  int n_labels = 0;
  int order = 1;
  Sharing sharing = Sharing::shared;  // each: of base_edge, the table of parameters is shared
  bool has_edge = false, has_start = false, has_end = false;
  // Scores that are added to those of the parameters: of a base model, and -inf for forbidden
  // labels. Null if there are none. Nodes: rows x labels; edges: as `sharing` says; pairs:
  // labels x labels, of neighbours in chains too short for an edge (2 to `order` positions).
  const float *base_node = nullptr, *base_edge = nullptr;
  const float *base_start = nullptr, *base_end = nullptr, *base_pairs = nullptr;
  ChainLoss loss;

  int64_t table_size() const;
  // Parameters of the tables lie one after the other: edges, start, end.
  int64_t n_edge() const { return has_edge ? n_types * table_size() : 0; }
  int64_t n_start() const { return has_start ? n_labels : 0; }
  int64_t n_end() const { return has_end ? n_labels : 0; }
  int64_t n_tables() const { return n_edge() + n_start() + n_end(); }
};

// Step t (first, first + 1, ...) has size step / (1 + t / period); period 0: step throughout.
struct SweepSteps {
  const int64_t* order;  // instances, in the order of steps
  int64_t n_instances;
  int64_t batch_size;
  int64_t first;
  double step, period;
  double penalty;             // 2 l2 per instance
  double smallest_shrinkage;  // below it the count of shrinkages begins anew
  bool counts;                // whether these steps are averaged over
  int n_threads = 1;

  double size(int64_t number) const {
    return period > 0 ? step / (1 + static_cast<double>(number) / period) : step;
  }
  // Of all parameters in a step. Implicit: 1 / (1 + x), near 1 - x, stays above 0 for any step.
  double shrinkage(double size, std::size_t n_instances) const {
    return 1 / (1 + penalty * size * static_cast<double>(n_instances));
  }
};

// Linear functions of the features ----------------------------------------------------------------

// Training data; all views.
struct SweepData {
  ChainData chains;
  const float* dense = nullptr;  // rows x features, where every feature has all outputs; or sparse:
  Sparse<float> X{};
  WeightPattern pattern{};     // outputs null: every feature has all
  const bool* free = nullptr;  // parameters that may move; null: all
  int64_t n_features = 0;

  int64_t n_node() const { return pattern.starts[n_features]; }
};

// Parameters with a lazy shrinkage and average: node weights, edge tables, start, end. An entry
// lags behind `product` and `steps` until it is read (crfx.trainers.sgd has the algebra).
struct SweepParameters {
  double *values, *sum, *product_then, *steps_then;
  int64_t size;
  double product, steps;
  int64_t n_counted;
};

void sweep(const SweepData& data, const SweepSteps& steps, SweepParameters& parameters);

// Hidden units ------------------------------------------------------------------------------------

// What is learned from; all views. Parameters lie one after the other: weights from features to
// units (features x H), biases of units, weights from units to labels (H x K), constants of
// labels, weights from features to labels (features x K, where there is a skip connection), tables.
struct HiddenSweepData {
  ChainData chains;
  const float* dense = nullptr;  // rows x features; null: sparse
  Sparse<float> sparse{};
  int64_t n_features = 0;
  int64_t n_hidden = 0;
  Activation activation = Activation::softplus;
  bool has_skip = false;

  int64_t bias() const { return n_features * n_hidden; }
  int64_t to_label() const { return bias() + n_hidden; }
  int64_t constant() const { return to_label() + n_hidden * chains.n_labels; }
  int64_t skip() const { return constant() + chains.n_labels; }
  int64_t tables() const { return skip() + (has_skip ? n_features * chains.n_labels : 0); }
  int64_t size() const { return tables() + chains.n_tables(); }
};

// Steps of a block of parameters, as multiples of the step.
struct HiddenRates {
  double weights, bias, to_label, constant, skip, edge, ends;
};

// Parameters with a lazy shrinkage and average, as above, but updated by feature:
// `product_then` and `steps_then` have an entry per feature and one for all other parameters.
struct HiddenParameters {
  float* values;
  double *sum, *product_then, *steps_then;
  double product, steps;
  int64_t n_counted;
};

// Every feature of every row is left out of a step with probability `share`, the others are larger
// to make up for it. What is left out depends on the seed and the number of the step alone.
struct Dropout {
  double share = 0;
  uint64_t seed = 0;
};

// If the steps count, only the last one does: parameters are averaged over epochs.
void hidden_sweep(const HiddenSweepData& data, const SweepSteps& steps, const HiddenRates& rates,
                  const Dropout& dropout, HiddenParameters& parameters);

// Updates all parameters to the last step.
void hidden_catch_up(const HiddenSweepData& data, HiddenParameters& parameters);

}  // namespace crfx
