// Linear functions of sparse features: scores from weights, and the gradient of the weights.
#pragma once

#include <cstdint>
#include <vector>

namespace crfx {

// A sparse matrix by rows, or by columns read as rows of its transpose. `values` null: all 1.
template <class S>
struct Sparse {
  const int64_t* starts;  // rows + 1
  const int32_t* indices;
  const S* values;
  int64_t n_rows;
};

// The columns of some rows of X, those that have entries: `entries` by columns (its indices are
// rows), and the feature of each column, rising.
template <class S>
struct Columns {
  Sparse<S> entries;
  const int32_t* features;
};

// An array, which kernels may read in whole packs up to its end.
template <class S>
struct Span {
  const S *begin, *end;
};

// The weights of a feature in one word: their start, and a bit for every output that has one.
struct PackedFeature {
  uint32_t first, outputs;
};

// Which outputs a feature has weights for: outputs[starts[f]] to outputs[starts[f + 1]], rising.
// A feature with all of them is the fast case.
struct WeightPattern {
  const int64_t* starts;  // features + 1
  const int32_t* outputs;
  int64_t n_outputs;
  int64_t n_features = 0;                 // 0: unknown
  const PackedFeature* packed = nullptr;  // of all features, where that is made (`linear_scores`)
};

// scores (rows x outputs) += X W.
template <class S>
void linear_scores(const Sparse<S>& X, const WeightPattern& pattern, Span<S> weights, S* scores,
                   int n_threads);

// gradient (one per weight) += X^T slope at the pattern; slope is rows x outputs. Sums are formed
// in float64, in an order that does not depend on the threads.
template <class S>
void linear_gradient(const Columns<S>& columns, const WeightPattern& pattern, Span<S> slope,
                     double* gradient, int n_threads);

// The pairs (feature, output) that occur: X by rows, `codes` the output of each row, negative where
// it has none. Outputs of a feature are rising. O(entries of X) in time and memory.
struct Pairs {
  std::vector<int64_t> starts;  // features + 1
  std::vector<int32_t> outputs;
};
Pairs observed_pairs(const int64_t* starts, const int32_t* indices, int64_t n_rows,
                     const int32_t* codes, int64_t n_features);

}  // namespace crfx
