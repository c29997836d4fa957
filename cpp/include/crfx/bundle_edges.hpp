// Edge marginals of many bundles, summed: an outer product per position, kept in tiles.
#pragma once

#include "crfx/bundle.hpp"

namespace crfx::CRFX_ISA {

// Edge sums of many bundles: lanes apart, in S, emptied into float64 before they grow long.
template <class S>
class EdgeSum {
 public:
  EdgeSum(int64_t K, const S* weights, double* total, Workspace& work)
      : K_(K), weights_(weights), total_(total), sum_(work.take<Pack<S>>(K * K)) {
    for (int64_t k = 0; k < K * K; ++k) sum_[k] = Pack<S>{};
  }
  // Adds sum over t of left[t] x right[t]^T for `count` positions.
  void add(const Pack<S>* left, const Pack<S>* right, int64_t count) {
    for (int64_t t = 0; t < count; t += kBlock) {
      const int64_t some = count - t < kBlock ? count - t : kBlock;
      pending_ += some;
      if (pending_ > kBlock) {
        flush();
        pending_ = some;
      }
      for (int64_t i = 0; i < K_; i += 4)
        K_ - i >= 4 ? add_rows<4>(left + t * K_, right + t * K_, some, i)
                    : add_rest(left + t * K_, right + t * K_, some, i);
    }
  }
  void flush() {
    for (int64_t k = 0; k < K_ * K_; ++k) {
      double sum = 0;
      for (int l = 0; l < Bundle<S>::lanes; ++l) sum += static_cast<double>(sum_[k][l]);
      total_[k] += sum * static_cast<double>(weights_[k]);
      sum_[k] = Pack<S>{};
    }
    pending_ = 0;
  }

 private:
  static constexpr int64_t kBlock = 256;  // positions per lane before emptying

  void add_rest(const Pack<S>* left, const Pack<S>* right, int64_t count, int64_t i) {
    for (; i < K_; ++i) add_rows<1>(left, right, count, i);
  }
  template <int rows>
  CRFX_INLINE void add_rows(const Pack<S>* left, const Pack<S>* right, int64_t count, int64_t i) {
    int64_t j = 0;
    for (; j + 4 <= K_; j += 4) add_tile<rows, 4>(left, right, count, i, j);
    for (; j < K_; ++j) add_tile<rows, 1>(left, right, count, i, j);
  }
  template <int rows, int columns>
  CRFX_INLINE void add_tile(const Pack<S>* left, const Pack<S>* right, int64_t count, int64_t i,
                            int64_t j) {
    Pack<S> tile[rows][columns];
    for (int a = 0; a < rows; ++a)
      for (int b = 0; b < columns; ++b) tile[a][b] = sum_[(i + a) * K_ + j + b];
    for (int64_t t = 0; t < count; ++t)
      for (int a = 0; a < rows; ++a)
        for (int b = 0; b < columns; ++b)
          tile[a][b] += left[t * K_ + i + a] * right[t * K_ + j + b];
    for (int a = 0; a < rows; ++a)
      for (int b = 0; b < columns; ++b) sum_[(i + a) * K_ + j + b] = tile[a][b];
  }

  int64_t K_;
  const S* weights_;
  double* total_;
  Pack<S>* sum_;
  int64_t pending_ = 0;
};

}  // namespace crfx::CRFX_ISA
