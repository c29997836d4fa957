// Sweeps over instances in small steps: stochastic gradient descent, and the perceptrons, for
// chains whose node scores are linear in sparse features and whose edge scores are tables.
#pragma once

#include <cstdint>

#include "crfx/linear.hpp"

namespace crfx {

enum class SweepLoss { likelihood, perceptron };

// What is learned from; all views. Labels are all known.
struct SweepData {
  Sparse<float> X;
  WeightPattern pattern;       // outputs null: every feature has all
  const bool* free = nullptr;  // parameters that may move; null: all
  const int64_t* offsets = nullptr;
  const int32_t* edge_types = nullptr;  // rows; null: one table
  const int32_t* labels = nullptr;      // rows
  const double* weights = nullptr;      // instances; null: 1
  int64_t n_features = 0;
  int64_t n_types = 1;
  int n_labels = 0;
  int order = 1;
  bool has_edge = false, has_start = false, has_end = false;

  int64_t table_size() const;
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

// Step t (first, first + 1, ...) has size step / (1 + t / period); period 0: step throughout.
struct SweepSteps {
  const int64_t* order;  // instances, as they come
  int64_t n_instances;
  int64_t batch_size;
  int64_t first;
  double step, period;
  double penalty;             // 2 l2 per instance
  double smallest_shrinkage;  // below it the count of shrinkages begins anew
  bool counts;                // whether these steps are averaged over
  SweepLoss loss;
  float margin;  // of the perceptron
};

void sweep(const SweepData& data, const SweepSteps& steps, SweepParameters& parameters);

}  // namespace crfx
