// The inner loops of linear.hpp, for a range of rows or of features.
#pragma once

#include "crfx/isa.hpp"
#include "crfx/linear.hpp"
#include "crfx/workspace.hpp"

namespace crfx::CRFX_ISA {

constexpr int64_t kAhead = 8;  // what lies scattered is fetched so many entries before its use
constexpr int64_t kRowsPerSum = 32;  // added in S, then in float64

template <class S>
CRFX_INLINE S value_at(const Sparse<S>& X, int64_t k) {
  return X.values ? X.values[k] : S(1);
}

// The row of slopes that an entry of `columns` needs.
template <class S>
CRFX_INLINE const S* row_of(const Sparse<S>& columns, const S* slope, int64_t n, int64_t k) {
  return slope + int64_t(columns.indices[k]) * n;
}

template <class S>
void linear_scores(const Sparse<S>& X, const WeightPattern& pattern, const S* weights, S* scores,
                   int64_t begin, int64_t end) {
  const int64_t n = pattern.n_outputs, last = X.starts[end];
  for (int64_t row = begin; row < end; ++row) {
    S* out = scores + row * n;
    for (int64_t k = X.starts[row]; k < X.starts[row + 1]; ++k) {
      if (k + kAhead < last) __builtin_prefetch(weights + pattern.starts[X.indices[k + kAhead]]);
      const int64_t first = pattern.starts[X.indices[k]];
      const int64_t count = pattern.starts[X.indices[k] + 1] - first;
      const S value = value_at(X, k), *own = weights + first;
      if (count == n) {
        CRFX_SIMD
        for (int64_t o = 0; o < n; ++o) out[o] += value * own[o];
      } else {
        const int32_t* outputs = pattern.outputs + first;
        for (int64_t j = 0; j < count; ++j) out[outputs[j]] += value * own[j];
      }
    }
  }
}

// The gradient of a feature that has weights for all outputs.
template <class S>
void full_gradient(const Sparse<S>& columns, int64_t feature, const S* slope, int64_t n, S* sum,
                   double* gradient) {
  for (int64_t o = 0; o < n; ++o) gradient[o] = 0;
  const int64_t last = columns.starts[feature + 1];
  for (int64_t k = columns.starts[feature]; k < last; k += kRowsPerSum) {
    const int64_t stop = last - k < kRowsPerSum ? last : k + kRowsPerSum;
    for (int64_t o = 0; o < n; ++o) sum[o] = 0;
    for (int64_t i = k; i < stop; ++i) {
      if (i + kAhead < last) __builtin_prefetch(row_of(columns, slope, n, i + kAhead));
      const S* own = row_of(columns, slope, n, i);
      const S value = value_at(columns, i);
      CRFX_SIMD
      for (int64_t o = 0; o < n; ++o) sum[o] += value * own[o];
    }
    CRFX_SIMD
    for (int64_t o = 0; o < n; ++o) gradient[o] += static_cast<double>(sum[o]);
  }
}

template <class S>
void linear_gradient(const Sparse<S>& columns, const WeightPattern& pattern, const S* slope,
                     double* gradient, int64_t begin, int64_t end, Workspace& work) {
  const int64_t n = pattern.n_outputs;
  const int64_t last = columns.starts[end];
  S* sum = work.take<S>(n);
  for (int64_t feature = begin; feature < end; ++feature) {
    const int64_t first = pattern.starts[feature];
    const int64_t count = pattern.starts[feature + 1] - first;
    if (count == n) {
      full_gradient(columns, feature, slope, n, sum, gradient + first);
      continue;
    }
    const int32_t* outputs = pattern.outputs + first;
    for (int64_t j = 0; j < count; ++j) gradient[first + j] = 0;
    for (int64_t k = columns.starts[feature]; k < columns.starts[feature + 1]; ++k) {
      if (k + kAhead < last) __builtin_prefetch(row_of(columns, slope, n, k + kAhead));
      const S* own = row_of(columns, slope, n, k);
      const S value = value_at(columns, k);
      for (int64_t j = 0; j < count; ++j)
        gradient[first + j] += static_cast<double>(value * own[outputs[j]]);
    }
  }
}

}  // namespace crfx::CRFX_ISA
