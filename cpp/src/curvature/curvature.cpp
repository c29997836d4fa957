#include <algorithm>

#include "crfx/inference.hpp"
#include "crfx/parallel.hpp"

namespace crfx {
namespace {

constexpr int64_t kEntriesPerChunk = int64_t(1) << 15;  // what a first cache holds

}  // namespace

template <class S>
void event_curvature(S* p, const S* gamma, bool gamma_per_event, int64_t rows, int64_t events,
                     S factor, S least, S* out, int n_threads) {
  const int64_t step = std::max<int64_t>(1, kEntriesPerChunk / std::max<int64_t>(1, events));
  for_chunks((rows + step - 1) / step, n_threads, [&](int64_t chunk, Workspace&) {
    const int64_t end = std::min(rows, (chunk + 1) * step);
    for (int64_t row = chunk * step; row < end; ++row) {
      S* x = p + row * events;
      const S* g = gamma_per_event ? gamma + row * events : nullptr;
      const S row_factor = gamma && !gamma_per_event ? factor * gamma[row] : factor;
      S* y = out + row * events;
      for (int64_t event = 0; event < events; ++event) {
        x[event] = std::min(x[event], S(1));
        const S curved = (S(1) - x[event]) * x[event] * (g ? row_factor * g[event] : row_factor);
        y[event] = std::max(curved, least);
      }
    }
  });
}

template void event_curvature(float*, const float*, bool, int64_t, int64_t, float, float, float*,
                              int);
template void event_curvature(double*, const double*, bool, int64_t, int64_t, double, double,
                              double*, int);

}  // namespace crfx
