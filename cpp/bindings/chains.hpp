// What all sweeps over chains take from Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>

#include "crfx/chain_slopes.hpp"

template <class T>
using Vector1 = nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>, nanobind::c_contig>;
template <class T>
using MaybeVector1 = std::optional<Vector1<T>>;

template <class T>
T* data_of(const MaybeVector1<T>& array) {
  return array ? array->data() : nullptr;
}

// Chains with known labels. Holds on to the arrays it views.
struct BoundChains {
  BoundChains(Vector1<const int64_t> offsets, MaybeVector1<const int32_t> edge_types,
              Vector1<const int32_t> labels, MaybeVector1<const double> weights, int n_labels,
              int order, int64_t n_types, bool has_edge, bool has_start, bool has_end,
              MaybeVector1<const float> node_mask, MaybeVector1<const float> edge_mask,
              MaybeVector1<const float> start_mask, MaybeVector1<const float> end_mask)
      : offsets(offsets),
        edge_types(edge_types),
        labels(labels),
        weights(weights),
        node_mask(node_mask),
        edge_mask(edge_mask),
        start_mask(start_mask),
        end_mask(end_mask),
        view{offsets.data(),
             data_of(edge_types),
             labels.data(),
             data_of(weights),
             n_types,
             n_labels,
             order,
             has_edge,
             has_start,
             has_end,
             data_of(node_mask),
             data_of(edge_mask),
             data_of(start_mask),
             data_of(end_mask)} {}

  Vector1<const int64_t> offsets;
  MaybeVector1<const int32_t> edge_types;
  Vector1<const int32_t> labels;
  MaybeVector1<const double> weights;
  MaybeVector1<const float> node_mask, edge_mask, start_mask, end_mask;
  crfx::ChainData view;
};

// Steps over instances, in the order given.
struct BoundSteps {
  BoundSteps(Vector1<const int64_t> order, int64_t batch_size, int64_t first, double step,
             double period, double penalty, double smallest_shrinkage, bool counts, bool perceptron,
             float margin)
      : order(order),
        view{order.data(), static_cast<int64_t>(order.shape(0)),
             batch_size,   first,
             step,         period,
             penalty,      smallest_shrinkage,
             counts,       perceptron ? crfx::SweepLoss::perceptron : crfx::SweepLoss::likelihood,
             margin} {}

  Vector1<const int64_t> order;
  crfx::SweepSteps view;
};
