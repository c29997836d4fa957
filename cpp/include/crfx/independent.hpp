// Positions that depend on no other: the softmax of every row.
#pragma once

#include <cstdint>

namespace crfx {

// p[c] = exp(x[c]) / sum exp(x) and log_z = log sum exp(x), row by row (rows x K). A row without a
// finite largest score gives a log_z that is not finite, and no sensible p.
// Rounds as XGBoost's softmax does: trees that differ by one rounding may split elsewhere.
template <class S>
void softmax(const S* x, int64_t rows, int64_t n_labels, S* p, double* log_z, int n_threads);

// to[r] = x[r] + factor[r] table[which[r]], row by row (rows x K); `factor` null: 1. A negative
// `which` adds nothing.
template <class S>
void add_table_rows(const S* x, const S* table, const int32_t* which, const S* factor, int64_t rows,
                    int64_t n_labels, S* to, int n_threads);

// The sum of weight x score in float64; what has no weight may be -inf. Chunks do not depend on
// threads.
template <class S>
double weighted_total(const S* weight, const S* score, int64_t n, int n_threads);

}  // namespace crfx
