// Hidden units between features and labels: scores of labels, and gradients.
#pragma once

#include <cstdint>

namespace crfx {

// Units that are binary and summed out (softplus) or maximised over (relu), van der Maaten et al.
// 2011: score_k = c_k + sum_h g(a_h + b_h + V_hk). Or units that are functions of their input, as
// in Peng et al. 2010: score_k = c_k + sum_h V_hk g(a_h + b_h).
enum class Activation { softplus, relu, tanh, sigmoid };

template <class S>
struct HiddenUnits {
  const S* bias;      // H: b
  const S* to_label;  // H x K: V
  const S* constant;  // K: c
  int64_t n_hidden;
  int64_t n_labels;
  Activation activation;
};

// V, or exp(V), laid out for the kernels: with whole packs of labels, and of units.
template <class S>
struct HiddenTables {
  S* by_unit;      // H x pad(K)
  S* by_label;     // K x pad(H)
  int64_t period;  // so many factors (1 + e^a e^V) are multiplied before they could overflow;
                   // 0: e^V may not be formed at all
};

// The sums of gradients: each in S over a few rows, then in float64.
struct HiddenGradient {
  double* bias;      // H
  double* to_label;  // H x K
  double* constant;  // K
};

// scores (rows x K) from inputs a (rows x H).
template <class S>
void hidden_scores(const HiddenUnits<S>& units, const S* inputs, S* scores, int64_t n_rows,
                   int n_threads);

// The gradient of sum(slopes * scores): in the inputs (rows x H) and in the parameters, which are
// set. Sums do not depend on the threads. O(rows H K) time, no array of that size.
template <class S>
void hidden_gradient(const HiddenUnits<S>& units, const S* inputs, const S* slopes,
                     S* input_gradient, const HiddenGradient& gradient, int64_t n_rows,
                     int n_threads);

}  // namespace crfx
