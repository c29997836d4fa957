#include "permutations/potentials.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

namespace crfx {

// By counting where they are few: nothing is guessed wrong, and no memory is asked for.
void sort_falling(const double* numbers, int m, int* sorted) {
  constexpr int kFew = 24;
  if (m > kFew) {
    std::iota(sorted, sorted + m, 0);
    std::stable_sort(sorted, sorted + m, [&](int a, int b) { return numbers[a] > numbers[b]; });
    return;
  }
  for (int i = 0; i < m; ++i) {
    int before = 0;
    for (int j = 0; j < i; ++j) before += numbers[j] >= numbers[i];
    for (int j = i + 1; j < m; ++j) before += numbers[j] > numbers[i];
    sorted[before] = i;
  }
}

// With v_r - v_{r+1} = (d_r - d_{r+1}) t_r and t_r between the r-th best score and the next, no
// entry exceeds its document's own rank, (d_r - d_i) f_i <= v_r - v_i, term by term.
void product_potentials(const double* score, const double* discount, const int* sorted, int m,
                        double* document, double* rank) {
  rank[0] = 0;
  for (int r = 0; r < m; ++r) {
    const double own = score[sorted[r]];
    document[sorted[r]] = discount[r] * own - rank[r];
    if (r + 1 == m) break;
    const double between = own + 0.5 * (score[sorted[r + 1]] - own);
    rank[r + 1] = rank[r] - (discount[r] - discount[r + 1]) * between;
  }
}

// Documents are assigned one by one along shortest paths of reduced costs (costs are minus logs).
void best_potentials(const double* logs, int m, double* document, double* rank) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  const auto size = static_cast<size_t>(m) + 1;  // 0: a rank that is none, where a path begins
  std::vector<double> u(size, 0), v(size, 0), least(size);
  std::vector<int> holder(size, 0), from(size);
  std::vector<char> seen(size);
  for (int i = 1; i <= m; ++i) {
    holder[0] = i;
    least.assign(size, kFar);
    seen.assign(size, 0);
    size_t at = 0;
    do {
      seen[at] = 1;
      const auto own = static_cast<size_t>(holder[at]);
      double step = kFar;
      size_t next = 0;
      for (size_t r = 1; r < size; ++r) {
        if (seen[r]) continue;
        const double cost = -logs[(own - 1) * static_cast<size_t>(m) + r - 1] - u[own] - v[r];
        if (cost < least[r]) least[r] = cost, from[r] = static_cast<int>(at);
        if (least[r] < step) step = least[r], next = r;
      }
      for (size_t r = 0; r < size; ++r) {
        if (seen[r])
          u[static_cast<size_t>(holder[r])] += step, v[r] -= step;
        else
          least[r] -= step;
      }
      at = next;
    } while (holder[at]);
    for (; at; at = static_cast<size_t>(from[at]))
      holder[at] = holder[static_cast<size_t>(from[at])];
  }
  for (size_t k = 1; k < size; ++k) {
    document[k - 1] = -u[k];
    rank[k - 1] = -v[k];
  }
}

}  // namespace crfx
