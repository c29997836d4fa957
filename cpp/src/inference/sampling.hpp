// Labellings drawn from the model: roots first, each label given its parent's state.
#pragma once

#include "inference/decode.hpp"
#include "support/uniform.hpp"

namespace crfx::CRFX_ISA {

// Turns one row of weights (or log weights) into a label.
template <class P, class V>
inline int32_t draw(V* row, int64_t K, double u) {
  double total = 0;
  const V top = maximum(row, K);
  for (int64_t c = 0; c < K; ++c) {
    row[c] = P::ratio(row[c], P::one, P::one, top);
    total += static_cast<double>(row[c]);
  }
  double left = u * total;
  int32_t last = 0;  // the last label that can be drawn: rounding must not reach an impossible one
  for (int64_t c = 0; c < K; ++c) {
    if (!(row[c] > 0)) continue;
    last = static_cast<int32_t>(c);
    left -= static_cast<double>(row[c]);
    if (left < 0) break;
  }
  return last;
}

// Draws sample number `sample` after an upward sum pass; labels of this instance's rows.
template <class M>
inline void draw_labelling(M& messages, uint64_t seed, int64_t sample, int32_t* labels,
                           typename M::V* row, int64_t* states) {
  using P = typename M::Arithmetic;
  const auto& inst = messages.inst;
  for (int64_t k = 0; k < inst.n; ++k) {
    const int64_t v = inst.at(k), p = inst.parent(v);
    label_row(messages, v, p < 0 ? 0 : states[p], row);
    const double u =
        uniform(seed, static_cast<uint64_t>(sample), static_cast<uint64_t>(inst.first + v));
    labels[v] = draw<P>(row, inst.problem->n_labels, u);
    states[v] = p < 0 ? labels[v] : next_state(inst, v, states[p], labels[v]);
  }
}

}  // namespace crfx::CRFX_ISA
