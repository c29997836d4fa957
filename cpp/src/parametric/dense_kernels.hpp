// Products of small dense matrices, in registers: for steps of a few rows, where calling BLAS
// costs more than the product. Rows of W lie n apart, which need not be whole packs.
#pragma once

#include "crfx/isa.hpp"
#include "crfx/workspace.hpp"
#include "simd/pack.hpp"

namespace crfx::CRFX_ISA {

constexpr int kProductRows = 4, kProductPacks = 4;

// A tile: `rows` x `packs` of out = X W; w has rows `w_stride` apart.
template <class S, int rows, int packs>
CRFX_INLINE void multiply_tile(const S* X, int64_t m, const S* w, int64_t w_stride, S* out,
                               int64_t stride) {
  constexpr int count = Lanes<S>::count;
  Pack<S> sum[rows][packs] = {};
  for (int64_t d = 0; d < m; ++d) {
    Pack<S> own[packs];
    for (int q = 0; q < packs; ++q) own[q] = load(w + d * w_stride + q * count);
    for (int j = 0; j < rows; ++j)
      for (int q = 0; q < packs; ++q) sum[j][q] += X[j * m + d] * own[q];
  }
  for (int j = 0; j < rows; ++j)
    for (int q = 0; q < packs; ++q) store<S>(out + j * stride + q * count, sum[j][q]);
}

template <class S, int packs>
void multiply_columns(const S* X, int64_t m, const S* w, int64_t w_stride, S* out, int64_t stride,
                      int64_t n_rows) {
  int64_t row = 0;
  for (; row + kProductRows <= n_rows; row += kProductRows)
    multiply_tile<S, kProductRows, packs>(X + row * m, m, w, w_stride, out + row * stride, stride);
  for (; row < n_rows; ++row)
    multiply_tile<S, 1, packs>(X + row * m, m, w, w_stride, out + row * stride, stride);
}

// out (rows x n) = X W; rows of out lie `stride` apart, with room for whole packs.
template <class S>
void multiply(const S* X, int64_t m, const S* W, int64_t n, S* out, int64_t stride, int64_t n_rows,
              Workspace& work) {
  constexpr int count = Lanes<S>::count, wide = kProductPacks * count;
  int64_t c = 0;
  for (; c + wide <= n; c += wide)
    multiply_columns<S, kProductPacks>(X, m, W + c, n, out + c, stride, n_rows);
  for (; c + count <= n; c += count)
    multiply_columns<S, 1>(X, m, W + c, n, out + c, stride, n_rows);
  if (c == n) return;
  if (n >= count)  // the last pack overlaps the one before
    return multiply_columns<S, 1>(X, m, W + n - count, n, out + n - count, stride, n_rows);
  S* rest = work.take<S>(m * count);  // the last columns, as whole packs
  for (int64_t d = 0; d < m; ++d)
    for (int64_t l = 0; l < count; ++l) rest[d * count + l] = c + l < n ? W[d * n + c + l] : S(0);
  multiply_columns<S, 1>(X, m, rest, count, out + c, stride, n_rows);
}

// W (m x n) += factor X^T out.
template <class S, int packs>
CRFX_INLINE void add_tile(const S* X, int64_t m, const S* out, int64_t stride, S factor, S* W,
                          int64_t n, int64_t left, int features, int64_t n_rows) {
  constexpr int count = Lanes<S>::count;
  Pack<S> sum[kProductRows][packs] = {};
  for (int64_t row = 0; row < n_rows; ++row) {
    Pack<S> own[packs];
    for (int q = 0; q < packs; ++q) own[q] = load(out + row * stride + q * count);
    for (int j = 0; j < kProductRows; ++j) {
      const S x = X[row * m + (j < features ? j : 0)];
      for (int q = 0; q < packs; ++q) sum[j][q] += x * own[q];
    }
  }
  for (int j = 0; j < features; ++j) {
    S* to = W + j * n;
    if (left >= packs * count) {
      for (int q = 0; q < packs; ++q)
        store<S>(to + q * count, load(to + q * count) + factor * sum[j][q]);
    } else {
      S values[count];
      store<S>(values, sum[j][0]);
      for (int64_t l = 0; l < left; ++l) to[l] += factor * values[l];
    }
  }
}

template <class S>
void add_outer(const S* X, int64_t m, const S* out, int64_t stride, S factor, S* W, int64_t n,
               int64_t n_rows) {
  constexpr int count = Lanes<S>::count, wide = kProductPacks * count;
  for (int64_t d = 0; d < m; d += kProductRows) {
    const int features = m - d < kProductRows ? static_cast<int>(m - d) : kProductRows;
    int64_t c = 0;
    for (; c + wide <= n; c += wide)
      add_tile<S, kProductPacks>(X + d, m, out + c, stride, factor, W + d * n + c, n, n - c,
                                 features, n_rows);
    for (; c < n; c += count)
      add_tile<S, 1>(X + d, m, out + c, stride, factor, W + d * n + c, n, n - c, features, n_rows);
  }
}

}  // namespace crfx::CRFX_ISA
