// Arguments from Python that all epochs over chains share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "crfx/inference.hpp"
#include "crfx/sweeps.hpp"

template <class T>
using Vector1 = nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>, nanobind::c_contig>;
template <class T>
using MaybeVector1 = std::optional<Vector1<T>>;

template <class T>
T* data_of(const MaybeVector1<T>& array) {
  return array ? array->data() : nullptr;
}

inline crfx::SweepLoss sweep_loss_of(const std::string& name) {
  if (name == "likelihood") return crfx::SweepLoss::likelihood;
  if (name == "perceptron") return crfx::SweepLoss::perceptron;
  if (name == "expected_loss") return crfx::SweepLoss::expected_loss;
  if (name == "pseudo_likelihood") return crfx::SweepLoss::pseudo_likelihood;
  if (name == "labelwise_likelihood") return crfx::SweepLoss::labelwise_likelihood;
  if (name == "loss_scaled") return crfx::SweepLoss::loss_scaled;
  if (name == "kl") return crfx::SweepLoss::kl;
  throw nanobind::value_error(("unknown loss: " + name).c_str());
}

// A loss; keeps the arrays it views alive.
struct BoundLoss {
  BoundLoss(const std::string& kind, MaybeVector1<const double> class_weights,
            MaybeVector1<const float> table, bool by_length, double unit)
      : class_weights(class_weights),
        table(table),
        view{sweep_loss_of(kind), data_of(class_weights), data_of(table), by_length, unit} {}

  MaybeVector1<const double> class_weights;
  MaybeVector1<const float> table;
  crfx::ChainLoss view;
};

// Chains (or forests) with their labels. Keeps the arrays it views alive.
struct BoundChains {
  BoundChains(Vector1<const int64_t> offsets, MaybeVector1<const int64_t> parents,
              MaybeVector1<const int32_t> edge_types, Vector1<const int32_t> labels,
              MaybeVector1<const double> weights, const BoundLoss& loss, int n_labels, int order,
              int64_t n_types, const std::string& sharing, bool has_edge, bool has_start,
              bool has_end, MaybeVector1<const float> base_node,
              MaybeVector1<const float> base_edge, MaybeVector1<const float> base_start,
              MaybeVector1<const float> base_end, MaybeVector1<const float> base_pairs)
      : offsets(offsets),
        parents(parents),
        edge_types(edge_types),
        labels(labels),
        weights(weights),
        base_node(base_node),
        base_edge(base_edge),
        base_start(base_start),
        base_end(base_end),
        base_pairs(base_pairs),
        loss(loss) {
    const auto n_instances = static_cast<int64_t>(offsets.shape(0)) - 1;
    if (parents)
      visit = std::make_shared<const std::vector<int64_t>>(
          crfx::visit_order(offsets.data(), parents->data(), n_instances));
    view.offsets = offsets.data();
    view.parents = data_of(parents);
    view.visit = visit ? visit->data() : nullptr;
    view.edge_types = data_of(edge_types);
    view.labels = labels.data();
    view.weights = data_of(weights);
    view.n_types = n_types;
    view.n_labels = n_labels;
    view.order = order;
    view.sharing = sharing == "typed"  ? crfx::Sharing::typed
                   : sharing == "each" ? crfx::Sharing::each
                                       : crfx::Sharing::shared;
    view.has_edge = has_edge;
    view.has_start = has_start;
    view.has_end = has_end;
    view.base_node = data_of(base_node);
    view.base_edge = data_of(base_edge);
    view.base_start = data_of(base_start);
    view.base_end = data_of(base_end);
    view.base_pairs = data_of(base_pairs);
    view.loss = loss.view;
  }

  Vector1<const int64_t> offsets;
  MaybeVector1<const int64_t> parents;
  MaybeVector1<const int32_t> edge_types;
  Vector1<const int32_t> labels;
  MaybeVector1<const double> weights;
  MaybeVector1<const float> base_node, base_edge, base_start, base_end, base_pairs;
  BoundLoss loss;
  std::shared_ptr<const std::vector<int64_t>> visit;
  crfx::ChainData view;
};

// Steps over instances, in the given order.
struct BoundSteps {
  BoundSteps(Vector1<const int64_t> order, int64_t batch_size, int64_t first, double step,
             double period, double penalty, double smallest_shrinkage, bool counts, int n_threads)
      : order(order), view{order.data(), static_cast<int64_t>(order.shape(0)),
                           batch_size,   first,
                           step,         period,
                           penalty,      smallest_shrinkage,
                           counts,       n_threads} {}

  Vector1<const int64_t> order;
  crfx::SweepSteps view;
};
