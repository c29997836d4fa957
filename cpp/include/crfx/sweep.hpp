// Sweeps over instances in small steps: stochastic gradient descent, and the perceptrons, for
// chains whose node scores are linear in sparse features and whose edge scores are tables.
#pragma once

#include <cstdint>

#include "crfx/chain_slopes.hpp"
#include "crfx/linear.hpp"

namespace crfx {

// What is learned from; all views. Labels are all known.
struct SweepData {
  ChainData chains;
  Sparse<float> X;
  WeightPattern pattern;       // outputs null: every feature has all
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

}  // namespace crfx
