#include "crfx/linear.hpp"

#include <algorithm>
#include <vector>

#include "crfx/kernels.hpp"
#include "crfx/parallel.hpp"

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

}  // namespace

template <class S>
void linear_scores(const Sparse<S>& X, const WeightPattern& pattern, Span<S> weights, S* scores,
                   int n_threads) {
  for_ranges(X.starts, X.n_rows, n_threads, [&](int64_t begin, int64_t end, Workspace& work) {
    kernels<S>().linear_scores(X, pattern, weights, scores, begin, end, work);
  });
}

template <class S>
void linear_gradient(const Sparse<S>& columns, const WeightPattern& pattern, Span<S> slope,
                     double* gradient, int n_threads) {
  for_ranges(columns.starts, columns.n_rows, n_threads,
             [&](int64_t begin, int64_t end, Workspace& work) {
               kernels<S>().linear_gradient(columns, pattern, slope, gradient, begin, end, work);
             });
}

template void linear_scores(const Sparse<float>&, const WeightPattern&, Span<float>, float*, int);
template void linear_scores(const Sparse<double>&, const WeightPattern&, Span<double>, double*,
                            int);
template void linear_gradient(const Sparse<float>&, const WeightPattern&, Span<float>, double*,
                              int);
template void linear_gradient(const Sparse<double>&, const WeightPattern&, Span<double>, double*,
                              int);

}  // namespace crfx
