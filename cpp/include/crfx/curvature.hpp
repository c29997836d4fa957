// Second derivatives of single events, for boosting.
#pragma once

#include <cstdint>

namespace crfx {

// out = max(factor * gamma * p * (1 - p), least), (rows x events) each.
// gamma has one entry per row, or one per event where `gamma_per_event`; null: 1.
// Rounding may have left a sure event's p above 1: it becomes 1.
template <class S>
void event_curvature(S* p, const S* gamma, bool gamma_per_event, int64_t rows, int64_t events,
                     S factor, S least, S* out, int n_threads);

}  // namespace crfx
