// Rows of features for trees, as Python passes them.
#pragma once

#include "chains.hpp"
#include "crfx/bins.hpp"
#include "crfx/errors.hpp"

// Keeps the arrays it views alive.
struct BoundRows {
  BoundRows(Vector1<const float> values, Vector1<const int64_t> first, int64_t n_features,
            int64_t n_base)
      : values(values), places(first) {
    view.n_rows = static_cast<int64_t>(first.shape(0));
    view.n_features = n_features;
    view.values = values.data();
    view.first = first.data();
    view.n_values = static_cast<int64_t>(values.shape(0));
    view.n_base = n_base;
    for (int64_t row = 0; row < view.n_rows; ++row)
      if (first.data()[row] < 0 || first.data()[row] + n_features > view.n_values)
        throw crfx::InputError("a row is outside of the values");
  }
  BoundRows(Vector1<const int64_t> starts, Vector1<const int32_t> indices,
            Vector1<const float> values, int64_t n_features)
      : values(values), places(starts), indices(indices) {
    view.n_rows = static_cast<int64_t>(starts.shape(0)) - 1;
    view.n_features = n_features;
    view.values = values.data();
    view.starts = starts.data();
    view.indices = this->indices->data();
    view.n_values = static_cast<int64_t>(values.shape(0));
  }

  Vector1<const float> values;
  Vector1<const int64_t> places;
  MaybeVector1<const int32_t> indices;
  crfx::FeatureRows view;
};
