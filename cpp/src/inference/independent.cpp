#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "crfx/inference.hpp"
#include "crfx/parallel.hpp"

namespace crfx {
namespace {

constexpr int64_t kEntriesPerChunk = int64_t(1) << 15;

template <class S>
double softmax_of_row(const S* x, int64_t n_labels, S* p) {
  const S largest = *std::max_element(x, x + n_labels);
  double sum = 0;
  for (int64_t c = 0; c < n_labels; ++c) {
    p[c] = std::exp(x[c] - largest);
    sum += static_cast<double>(p[c]);
  }
  const S total = static_cast<S>(sum);
  for (int64_t c = 0; c < n_labels; ++c) p[c] /= total;
  return static_cast<double>(largest) + std::log(sum);
}

}  // namespace

template <class S>
void softmax(const S* x, int64_t rows, int64_t n_labels, S* p, double* log_z, int n_threads) {
  const int64_t step = std::max<int64_t>(1, kEntriesPerChunk / std::max<int64_t>(1, n_labels));
  for_chunks((rows + step - 1) / step, n_threads, [&](int64_t chunk, Workspace&) {
    const int64_t end = std::min(rows, (chunk + 1) * step);
    for (int64_t row = chunk * step; row < end; ++row)
      log_z[row] = softmax_of_row(x + row * n_labels, n_labels, p + row * n_labels);
  });
}

template <class S>
void add_table_rows(const S* x, const S* table, const int32_t* which, const S* factor, int64_t rows,
                    int64_t n_labels, S* to, int n_threads) {
  const int64_t step = std::max<int64_t>(1, kEntriesPerChunk / std::max<int64_t>(1, n_labels));
  for_chunks((rows + step - 1) / step, n_threads, [&](int64_t chunk, Workspace&) {
    const int64_t end = std::min(rows, (chunk + 1) * step);
    for (int64_t row = chunk * step; row < end; ++row) {
      const S times = which[row] < 0 ? S(0) : factor ? factor[row] : S(1);
      const S* added = table + std::max<int64_t>(0, which[row]) * n_labels;
      for (int64_t c = 0; c < n_labels; ++c)
        to[row * n_labels + c] = x[row * n_labels + c] + times * added[c];
    }
  });
}

template void add_table_rows(const float*, const float*, const int32_t*, const float*, int64_t,
                             int64_t, float*, int);
template void add_table_rows(const double*, const double*, const int32_t*, const double*, int64_t,
                             int64_t, double*, int);

template <class S>
double weighted_total(const S* weight, const S* score, int64_t n, int n_threads) {
  const int64_t n_chunks = (n + kEntriesPerChunk - 1) / kEntriesPerChunk;
  std::vector<double> totals(static_cast<size_t>(n_chunks), 0.0);
  for_chunks(n_chunks, n_threads, [&](int64_t chunk, Workspace&) {
    const int64_t end = std::min(n, (chunk + 1) * kEntriesPerChunk);
    double total = 0;
    for (int64_t k = chunk * kEntriesPerChunk; k < end; ++k)
      total += weight[k] != 0 ? static_cast<double>(weight[k]) * static_cast<double>(score[k]) : 0;
    totals[static_cast<size_t>(chunk)] = total;
  });
  return std::accumulate(totals.begin(), totals.end(), 0.0);
}

template double weighted_total(const float*, const float*, int64_t, int);
template double weighted_total(const double*, const double*, int64_t, int);
template void softmax(const float*, int64_t, int64_t, float*, double*, int);
template void softmax(const double*, int64_t, int64_t, double*, double*, int);

}  // namespace crfx
