// Edge statistics of many bundles, summed: a term for every label pair at every position, added up
// in tiles that stay in registers.
#pragma once

#include "inference/bundle.hpp"

namespace crfx::CRFX_ISA {

// Calls body.operator()<size>(start) over [0, n) in tiles of `most`, and of less at the end.
template <int most, class Body>
CRFX_INLINE void in_tiles(int64_t n, Body&& body) {
  int64_t k = 0;
  for (; k + most <= n; k += most) body.template operator()<most>(k);
  if constexpr (most > 1) {
    if (k < n)
      in_tiles<most - 1>(n - k,
                         [&]<int size>(int64_t i) { body.template operator()<size>(k + i); });
  }
}

// Terms at positions t of a bundle. With left = beside and right = below / norm, the marginal of an
// edge is left x table x right.
template <class S>
struct EdgeMarginalTerm {  // without the table, which is multiplied in at the end
  static constexpr bool table_at_end = true;
  const Pack<S>*left, *right;
  CRFX_INLINE Pack<S> at(int64_t t, int64_t i, int64_t j, int64_t K, const S*) const {
    return left[t * K + i] * right[t * K + j];
  }
};

template <class S>
struct EdgeCurvatureTerm {  // factor x p (1 - p)
  static constexpr bool table_at_end = false;
  const Pack<S>*left, *right, *factor;
  CRFX_INLINE Pack<S> at(int64_t t, int64_t i, int64_t j, int64_t K, const S* table) const {
    const Pack<S> p = left[t * K + i] * right[t * K + j] * table[i * K + j];
    return factor[t] * larger<Pack<S>>(p - p * p, Pack<S>{});
  }
};

// Sums over many bundles: lanes apart, in S, emptied into float64 before they grow long.
template <class S, class Term>
class EdgeSum {
 public:
  EdgeSum(int64_t K, const S* table, double* total, Workspace& work)
      : K_(K), table_(table), total_(total), sum_(work.take<Pack<S>>(K * K)) {
    for (int64_t k = 0; k < K * K; ++k) sum_[k] = Pack<S>{};
  }
  // Adds the terms of positions 0 .. count - 1.
  void add(const Term& term, int64_t count) {
    for (int64_t t = 0; t < count; t += kBlock) {
      const int64_t end = count - t < kBlock ? count : t + kBlock;
      pending_ += end - t;
      if (pending_ > kBlock) {
        flush();
        pending_ = end - t;
      }
      in_tiles<kTileRows>(K_, [&]<int rows>(int64_t i) {
        in_tiles<kTileColumns>(
            K_, [&]<int columns>(int64_t j) { add_tile<rows, columns>(term, t, end, i, j); });
      });
    }
  }
  void flush() {
    for (int64_t k = 0; k < K_ * K_; ++k) {
      double sum = 0;
      for (int l = 0; l < Bundle<S>::lanes; ++l) sum += static_cast<double>(sum_[k][l]);
      total_[k] += Term::table_at_end ? sum * static_cast<double>(table_[k]) : sum;
      sum_[k] = Pack<S>{};
    }
    pending_ = 0;
  }

 private:
  static constexpr int64_t kBlock = 256;  // positions per lane before emptying
  // Sums of a tile and the factors of a step stay in registers.
  static constexpr int kTileRows = kRegisters == 32 ? 4 : 3, kTileColumns = 4;

  template <int rows, int columns>
  CRFX_INLINE void add_tile(const Term& term, int64_t begin, int64_t end, int64_t i, int64_t j) {
    Pack<S> tile[rows][columns];
    for (int a = 0; a < rows; ++a)
      for (int b = 0; b < columns; ++b) tile[a][b] = sum_[(i + a) * K_ + j + b];
    for (int64_t t = begin; t < end; ++t)
      for (int a = 0; a < rows; ++a)
        for (int b = 0; b < columns; ++b) tile[a][b] += term.at(t, i + a, j + b, K_, table_);
    for (int a = 0; a < rows; ++a)
      for (int b = 0; b < columns; ++b) sum_[(i + a) * K_ + j + b] = tile[a][b];
  }

  int64_t K_;
  const S* table_;
  double* total_;
  Pack<S>* sum_;
  int64_t pending_ = 0;
};

template <class S>
using EdgeMarginalSum = EdgeSum<S, EdgeMarginalTerm<S>>;
template <class S>
using EdgeCurvatureSum = EdgeSum<S, EdgeCurvatureTerm<S>>;

}  // namespace crfx::CRFX_ISA
