// The inner loops of linear.hpp, for a range of rows or of features.
#pragma once

#include <cstring>

#include "crfx/isa.hpp"
#include "crfx/linear.hpp"
#include "crfx/workspace.hpp"
#include "simd/pack.hpp"

namespace crfx::CRFX_ISA {

constexpr int64_t kAhead = 8;        // scattered data are prefetched so many entries before use
constexpr int64_t kRowsPerSum = 32;  // added in S, then in float64
constexpr int64_t kFewEntries = 3;   // of a feature: fewer are summed one output at a time

template <class S>
CRFX_INLINE S value_at(const Sparse<S>& X, int64_t k) {
  return X.values ? X.values[k] : S(1);
}

// A row of n numbers that is a sum of weighted rows: in registers where it fits into `packs` packs
// (0: in memory). Rows are read in whole packs unless that would go beyond the end of their array.
template <class S, int packs>
class RowSum {
 public:
  static constexpr int count = Lanes<S>::count;

  RowSum(int64_t n, const S* end, S* room) : n_(n), end_(end), room_(room) { clear(); }
  CRFX_INLINE void clear() {
    for (int q = 0; q < packs; ++q) sum_[q] = Pack<S>{};
    for (int64_t o = 0; o < n_; ++o) room_[o] = 0;
  }
  CRFX_INLINE void add(S weight, const S* row) {
    if (packs > 0 && row + packs * count <= end_) {
      for (int q = 0; q < packs; ++q) sum_[q] += weight * load(row + q * count);
    } else {
      CRFX_SIMD
      for (int64_t o = 0; o < n_; ++o) room_[o] += weight * row[o];
    }
  }
  CRFX_INLINE void add_one(int64_t o, S value) { room_[o] += value; }
  // to[o] += sum[o]
  template <class T>
  CRFX_INLINE void add_to(T* to) {
    for (int q = 0; q < packs; ++q) store<S>(room_ + q * count, load(room_ + q * count) + sum_[q]);
    CRFX_SIMD
    for (int64_t o = 0; o < n_; ++o) to[o] += static_cast<T>(room_[o]);
  }

 private:
  int64_t n_;
  const S* end_;
  S* room_;  // n, and slack to whole packs
  Pack<S> sum_[packs > 0 ? packs : 1];
};

template <class S, int packs>
void scores_of_rows(const Sparse<S>& X, const WeightPattern& pattern, Span<S> weights, S* scores,
                    int64_t begin, int64_t end, Workspace& work) {
  const int64_t n = pattern.n_outputs, last = X.starts[end];
  RowSum<S, packs> sum(n, weights.end, work.take<S>(n));
  for (int64_t row = begin; row < end; ++row) {
    sum.clear();
    for (int64_t k = X.starts[row]; k < X.starts[row + 1]; ++k) {
      if (k + 2 * kAhead < last) {
        __builtin_prefetch(pattern.starts + X.indices[k + 2 * kAhead]);
        const int64_t soon = pattern.starts[X.indices[k + kAhead]];
        __builtin_prefetch(weights.begin + soon);
        __builtin_prefetch(pattern.outputs + soon);
      }
      const int64_t first = pattern.starts[X.indices[k]];
      const int64_t size = pattern.starts[X.indices[k] + 1] - first;
      const S value = value_at(X, k), *own = weights.begin + first;
      if (size == n) {
        sum.add(value, own);
      } else {
        const int32_t* outputs = pattern.outputs + first;
        for (int64_t j = 0; j < size; ++j) sum.add_one(outputs[j], value * own[j]);
      }
    }
    sum.add_to(scores + row * n);
  }
}

// As `scores_of_rows`, by features in one word each (`PackedFeature`): no loop over outputs, whose
// number differs from entry to entry and which no processor predicts.
template <int packs>
void scores_by_masks(const Sparse<float>& X, const WeightPattern& pattern, Span<float> weights,
                     float* scores, int64_t begin, int64_t end) {
  const PackedFeature* features = pattern.packed;
  const int64_t n = pattern.n_outputs;
  constexpr int count = Lanes<float>::count;
  constexpr uint32_t lanes = count == 16 ? 0xffff : 0xff;
  const int64_t last = X.starts[end];
  for (int64_t row = begin; row < end; ++row) {
    Pack<float> sum[packs] = {};
    for (int64_t k = X.starts[row]; k < X.starts[row + 1]; ++k) {
      if (k + 2 * kAhead < last) {
        __builtin_prefetch(features + X.indices[k + 2 * kAhead]);
        __builtin_prefetch(weights.begin + features[X.indices[k + kAhead]].first);
      }
      const PackedFeature feature = features[X.indices[k]];
      const float value = value_at(X, k), *own = weights.begin + feature.first;
      float room[packs * count];
      if (own + packs * count > weights.end) {
        std::memset(room, 0, sizeof(room));
        std::memcpy(room, own, sizeof(float) * static_cast<size_t>(weights.end - own));
        own = room;
      }
      for (int q = 0; q < packs; ++q) {
        const uint32_t mask = feature.outputs >> (q * count) & lanes;
        sum[q] += value * expanded(mask, own);
        own += __builtin_popcount(mask);
      }
    }
    for (int q = 0; q < packs; ++q) {
      float* to = scores + row * n + q * count;
      const int64_t width = n - q * count;
      if (width >= count) {
        store<float>(to, load(to) + sum[q]);
      } else {
        store_first<float>(to, load_first(to, width) + sum[q], width);
      }
    }
  }
}

// gradient (one per output) = the slopes of the rows of a column, times its values. Fetches ahead
// up to entry `end`, so that the next columns are there in time: most have few entries.
template <class S, int packs>
CRFX_INLINE void full_gradient(const Sparse<S>& columns, int64_t column, int64_t end, Span<S> slope,
                               int64_t n, RowSum<S, packs>& sum, double* gradient) {
  for (int64_t o = 0; o < n; ++o) gradient[o] = 0;
  const int64_t last = columns.starts[column + 1];
  for (int64_t k = columns.starts[column]; k < last; k += kRowsPerSum) {
    const int64_t stop = last - k < kRowsPerSum ? last : k + kRowsPerSum;
    sum.clear();
    for (int64_t i = k; i < stop; ++i) {
      if (i + kAhead < end) {
        const S* soon = slope.begin + int64_t(columns.indices[i + kAhead]) * n;
        __builtin_prefetch(soon);
        __builtin_prefetch(soon + n - 1);
      }
      sum.add(value_at(columns, i), slope.begin + int64_t(columns.indices[i]) * n);
    }
    sum.add_to(gradient);
  }
}

template <class S, int packs>
void gradient_of_features(const Columns<S>& X, const WeightPattern& pattern, Span<S> slope,
                          double* gradient, int64_t begin, int64_t end, Workspace& work) {
  const Sparse<S>& columns = X.entries;
  const int64_t n = pattern.n_outputs, last = columns.starts[end];
  RowSum<S, packs> sum(n, slope.end, work.take<S>(n));
  double* all = work.take<double>(n);
  for (int64_t column = begin; column < end; ++column) {
    const int32_t feature = X.features[column];
    const int64_t first = pattern.starts[feature];
    const int64_t size = pattern.starts[feature + 1] - first;
    if (size == n) {
      full_gradient(columns, column, last, slope, n, sum, all);
      CRFX_SIMD
      for (int64_t o = 0; o < n; ++o) gradient[first + o] += all[o];
      continue;
    }
    const int32_t* outputs = pattern.outputs + first;
    // In registers sums over all outputs cost less than a choice among them, entry by entry.
    if (packs > 0 && columns.starts[column + 1] - columns.starts[column] >= kFewEntries) {
      full_gradient(columns, column, last, slope, n, sum, all);
      for (int64_t j = 0; j < size; ++j) gradient[first + j] += all[outputs[j]];
      continue;
    }
    for (int64_t k = columns.starts[column]; k < columns.starts[column + 1]; ++k) {
      if (k + kAhead < last)
        __builtin_prefetch(slope.begin + int64_t(columns.indices[k + kAhead]) * n);
      const S* own = slope.begin + int64_t(columns.indices[k]) * n;
      const S value = value_at(columns, k);
      for (int64_t j = 0; j < size; ++j)
        gradient[first + j] += static_cast<double>(value * own[outputs[j]]);
    }
  }
}

// Calls body with the number of packs that a row of n numbers needs, 0 where that is too many.
template <class S, class Body>
CRFX_INLINE void with_packs(int64_t n, Body&& body) {
  switch ((n + Lanes<S>::count - 1) / Lanes<S>::count) {
    case 1:
      return body.template operator()<1>();
    case 2:
      return body.template operator()<2>();
    case 3:
      return body.template operator()<3>();
    case 4:
      return body.template operator()<4>();
    default:
      return body.template operator()<0>();
  }
}

template <class S>
void linear_scores(const Sparse<S>& X, const WeightPattern& pattern, Span<S> weights, S* scores,
                   int64_t begin, int64_t end, Workspace& work) {
  with_packs<S>(pattern.n_outputs, [&]<int packs>() {
    if constexpr (kExpands && packs > 0 && sizeof(S) == 4)
      if (pattern.packed) return scores_by_masks<packs>(X, pattern, weights, scores, begin, end);
    scores_of_rows<S, packs>(X, pattern, weights, scores, begin, end, work);
  });
}

template <class S>
void linear_gradient(const Columns<S>& columns, const WeightPattern& pattern, Span<S> slope,
                     double* gradient, int64_t begin, int64_t end, Workspace& work) {
  with_packs<S>(pattern.n_outputs, [&]<int packs>() {
    gradient_of_features<S, packs>(columns, pattern, slope, gradient, begin, end, work);
  });
}

}  // namespace crfx::CRFX_ISA
