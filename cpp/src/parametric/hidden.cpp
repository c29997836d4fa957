#include "crfx/hidden.hpp"

#include <algorithm>
#include <vector>

#include "crfx/parallel.hpp"
#include "parametric/hidden_tables.hpp"
#include "simd/kernels.hpp"

namespace crfx {
namespace {

constexpr int64_t kRowsPerChunk = 512, kMostChunks = 64;  // each has sums of its own

struct Chunks {
  explicit Chunks(int64_t n_rows)
      : n_rows(n_rows), size(std::max(kRowsPerChunk, (n_rows + kMostChunks - 1) / kMostChunks)) {}
  int64_t count() const { return (n_rows + size - 1) / size; }
  int64_t begin(int64_t chunk) const { return chunk * size; }
  int64_t rows(int64_t chunk) const { return std::min(size, n_rows - begin(chunk)); }

  int64_t n_rows, size;
};

}  // namespace

template <class S>
void hidden_scores(const HiddenUnits<S>& units, const S* inputs, S* scores, int64_t n_rows,
                   int n_threads) {
  OwnedHiddenTables<S> tables;
  tables.fill(units);
  const Chunks chunks(n_rows);
  for_chunks(chunks.count(), n_threads, [&](int64_t chunk, Workspace& work) {
    work.reset();
    const int64_t begin = chunks.begin(chunk);
    kernels<S>().hidden_scores(units, tables.view(), inputs + begin * units.n_hidden,
                               units.n_hidden, scores + begin * units.n_labels, chunks.rows(chunk),
                               work);
  });
}

template <class S>
void hidden_gradient(const HiddenUnits<S>& units, const S* inputs, const S* slopes,
                     S* input_gradient, const HiddenGradient& gradient, int64_t n_rows,
                     int n_threads) {
  const int64_t H = units.n_hidden, K = units.n_labels, size = H + H * K + K;
  OwnedHiddenTables<S> tables;
  tables.fill(units);
  const Chunks chunks(n_rows);
  std::vector<double> sums(static_cast<size_t>(chunks.count() * size), 0.0);
  const auto part = [&](int64_t chunk) {
    double* own = sums.data() + chunk * size;
    return HiddenGradient{own, own + H, own + H + H * K};
  };
  for_chunks(chunks.count(), n_threads, [&](int64_t chunk, Workspace& work) {
    work.reset();
    const int64_t begin = chunks.begin(chunk);
    kernels<S>().hidden_gradient(units, tables.view(), inputs + begin * H, H, slopes + begin * K,
                                 input_gradient + begin * H, H, part(chunk), chunks.rows(chunk),
                                 work);
  });
  std::fill(gradient.bias, gradient.bias + H, 0.0);
  std::fill(gradient.to_label, gradient.to_label + H * K, 0.0);
  std::fill(gradient.constant, gradient.constant + K, 0.0);
  for (int64_t chunk = 0; chunk < chunks.count(); ++chunk) {
    const HiddenGradient own = part(chunk);
    for (int64_t h = 0; h < H; ++h) gradient.bias[h] += own.bias[h];
    for (int64_t e = 0; e < H * K; ++e) gradient.to_label[e] += own.to_label[e];
    for (int64_t k = 0; k < K; ++k) gradient.constant[k] += own.constant[k];
  }
}

template void hidden_scores(const HiddenUnits<float>&, const float*, float*, int64_t, int);
template void hidden_scores(const HiddenUnits<double>&, const double*, double*, int64_t, int);
template void hidden_gradient(const HiddenUnits<float>&, const float*, const float*, float*,
                              const HiddenGradient&, int64_t, int);
template void hidden_gradient(const HiddenUnits<double>&, const double*, const double*, double*,
                              const HiddenGradient&, int64_t, int);

}  // namespace crfx
