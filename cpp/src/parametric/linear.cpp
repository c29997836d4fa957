#include "crfx/linear.hpp"

#include <algorithm>
#include <vector>

#include "crfx/parallel.hpp"
#include "simd/kernels.hpp"

namespace crfx {
namespace {

constexpr int64_t kEntriesPerChunk = int64_t(1) << 14;

// Borders of chunks of rows with about equally many entries each; a long row is its own chunk.
std::vector<int64_t> chunk_borders(const int64_t* starts, int64_t n_rows) {
  std::vector<int64_t> borders{0};
  while (borders.back() < n_rows) {
    const int64_t goal = starts[borders.back()] + kEntriesPerChunk;
    const int64_t* next = std::upper_bound(starts + borders.back() + 1, starts + n_rows, goal);
    borders.push_back(next - starts);
  }
  return borders;
}

template <class Body>
void for_ranges(const int64_t* starts, int64_t n_rows, int n_threads, Body&& body) {
  const std::vector<int64_t> borders = chunk_borders(starts, n_rows);
  for_chunks(static_cast<int64_t>(borders.size()) - 1, n_threads,
             [&](int64_t chunk, Workspace& work) {
               work.reset();
               const auto at = static_cast<size_t>(chunk);
               body(borders[at], borders[at + 1], work);
             });
}

constexpr int64_t kEntriesPerFeature = 2;  // with fewer, features are not packed

// Empty where the kernels would not use it: outputs do not fit into a word, every feature has all
// of them, or X is too small to be worth a pass over all features.
template <class S>
std::vector<PackedFeature> packed(const Sparse<S>& X, const WeightPattern& pattern) {
  const int64_t n_features = pattern.n_features, n_weights = pattern.starts[n_features];
  if (sizeof(S) != 4 || n_features == 0 || pattern.n_outputs > 32 ||
      n_weights >= int64_t(1) << 32 || n_weights == n_features * pattern.n_outputs ||
      X.starts[X.n_rows] < kEntriesPerFeature * n_features)
    return {};
  std::vector<PackedFeature> features(static_cast<size_t>(n_features));
  for (int64_t f = 0; f < n_features; ++f) {
    uint32_t outputs = 0;
    for (int64_t w = pattern.starts[f]; w < pattern.starts[f + 1]; ++w)
      outputs |= uint32_t(1) << pattern.outputs[w];
    features[static_cast<size_t>(f)] = {static_cast<uint32_t>(pattern.starts[f]), outputs};
  }
  return features;
}

}  // namespace

template <class S>
void linear_scores(const Sparse<S>& X, const WeightPattern& given, Span<S> weights, S* scores,
                   int n_threads) {
  const std::vector<PackedFeature> features = packed(X, given);
  WeightPattern pattern = given;
  if (!features.empty()) pattern.packed = features.data();
  for_ranges(X.starts, X.n_rows, n_threads, [&](int64_t begin, int64_t end, Workspace& work) {
    kernels<S>().linear_scores(X, pattern, weights, scores, begin, end, work);
  });
}

template <class S>
void linear_gradient(const Columns<S>& columns, const WeightPattern& pattern, Span<S> slope,
                     double* gradient, int n_threads) {
  for_ranges(columns.entries.starts, columns.entries.n_rows, n_threads,
             [&](int64_t begin, int64_t end, Workspace& work) {
               kernels<S>().linear_gradient(columns, pattern, slope, gradient, begin, end, work);
             });
}

namespace {

// With the narrowest type that holds all codes: there is one for every entry of X.
template <class Code>
Pairs pairs_of(const int64_t* starts, const int32_t* indices, int64_t n_rows, const int32_t* codes,
               int64_t n_features) {
  std::vector<int64_t> next(static_cast<size_t>(n_features) + 1, 0);
  const auto for_entries = [&](auto&& body) {
    for (int64_t row = 0; row < n_rows; ++row)
      if (codes[row] >= 0)
        for (int64_t k = starts[row]; k < starts[row + 1]; ++k)
          body(static_cast<size_t>(indices[k]), static_cast<Code>(codes[row]));
  };
  for_entries([&](size_t feature, Code) { ++next[feature + 1]; });
  for (size_t f = 0; f + 1 < next.size(); ++f) next[f + 1] += next[f];
  std::vector<Code> outputs(static_cast<size_t>(next.back()));
  for_entries(
      [&](size_t feature, Code code) { outputs[static_cast<size_t>(next[feature]++)] = code; });
  // next[f] is now where feature f ends.
  Pairs found;
  found.starts.reserve(next.size());
  found.starts.push_back(0);
  auto first = outputs.begin(), kept = first;
  for (int64_t f = 0; f < n_features; ++f) {
    const auto last = outputs.begin() + next[static_cast<size_t>(f)];
    std::sort(first, last);
    kept = std::copy(first, std::unique(first, last), kept);
    found.starts.push_back(kept - outputs.begin());
    first = last;
  }
  found.outputs.assign(outputs.begin(), kept);
  return found;
}

}  // namespace

Pairs observed_pairs(const int64_t* starts, const int32_t* indices, int64_t n_rows,
                     const int32_t* codes, int64_t n_features) {
  const int32_t largest = n_rows ? *std::max_element(codes, codes + n_rows) : 0;
  if (largest < 1 << 8) return pairs_of<uint8_t>(starts, indices, n_rows, codes, n_features);
  if (largest < 1 << 16) return pairs_of<uint16_t>(starts, indices, n_rows, codes, n_features);
  return pairs_of<int32_t>(starts, indices, n_rows, codes, n_features);
}

template void linear_scores(const Sparse<float>&, const WeightPattern&, Span<float>, float*, int);
template void linear_scores(const Sparse<double>&, const WeightPattern&, Span<double>, double*,
                            int);
template void linear_gradient(const Columns<float>&, const WeightPattern&, Span<float>, double*,
                              int);
template void linear_gradient(const Columns<double>&, const WeightPattern&, Span<double>, double*,
                              int);

}  // namespace crfx
