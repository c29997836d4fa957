// Sweeps over instances in small steps, for chains whose node scores come from hidden units.
#pragma once

#include <cstdint>

#include "crfx/chain_slopes.hpp"
#include "crfx/hidden.hpp"
#include "crfx/linear.hpp"

namespace crfx {

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
  int64_t size() const { return tables() + chains.n_edge() + chains.n_start() + chains.n_end(); }
};

// Steps of a block of parameters, as multiples of the step.
struct HiddenRates {
  double weights, bias, to_label, constant, skip, edge, ends;
};

// Parameters with a lazy shrinkage and average, as in sweep.hpp, but caught up with by feature:
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

// Where the steps count, the last one does: parameters are averaged over sweeps.
void hidden_sweep(const HiddenSweepData& data, const SweepSteps& steps, const HiddenRates& rates,
                  const Dropout& dropout, HiddenParameters& parameters);

// Brings all parameters to the last step.
void hidden_catch_up(const HiddenSweepData& data, HiddenParameters& parameters);

}  // namespace crfx
