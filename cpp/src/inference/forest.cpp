#include <string>

#include "crfx/errors.hpp"
#include "crfx/inference.hpp"

namespace crfx {
namespace {

// Follows parents from v for as many steps as there are nodes: that ends on the cycle.
int64_t on_cycle(const int64_t* parents, int64_t n, int64_t v) {
  for (int64_t k = 0; k < n; ++k) v = parents[v];
  return v;
}

void visit_instance(const int64_t* parents, int64_t n, int64_t instance,
                    std::vector<int64_t>& start, std::vector<int64_t>& children, int64_t* visit) {
  // Children of v are children[start[v] .. start[v + 1]), by index; a counting sort.
  start.assign(static_cast<size_t>(n) + 2, 0);
  children.resize(static_cast<size_t>(n));
  int64_t tail = 0;
  for (int64_t v = 0; v < n; ++v) {
    if (parents[v] < -1 || parents[v] >= n)
      fail_parent(instance, v,
                  "parent " + std::to_string(parents[v]) +
                      " is out of range; expected -1 at a root, else 0 to " +
                      std::to_string(n - 1));
    if (parents[v] < 0)
      visit[tail++] = v;
    else
      ++start[static_cast<size_t>(parents[v]) + 2];
  }
  for (int64_t v = 0; v < n; ++v)
    start[static_cast<size_t>(v) + 2] += start[static_cast<size_t>(v) + 1];
  for (int64_t v = 0; v < n; ++v)
    if (parents[v] >= 0)
      children[static_cast<size_t>(start[static_cast<size_t>(parents[v]) + 1]++)] = v;
  std::vector<bool> seen(static_cast<size_t>(n), false);
  for (int64_t head = 0; head < tail; ++head) {
    const auto v = static_cast<size_t>(visit[head]);
    seen[v] = true;
    for (int64_t k = start[v]; k < start[v + 1]; ++k)
      visit[tail++] = children[static_cast<size_t>(k)];
  }
  if (tail == n) return;
  for (int64_t v = 0; v < n; ++v)
    if (!seen[static_cast<size_t>(v)])
      fail_parent(instance, on_cycle(parents, n, v),
                  "parents form a cycle; every node must lead to a root (parent -1)");
}

}  // namespace

std::vector<int64_t> visit_order(const int64_t* offsets, const int64_t* parents,
                                 int64_t n_instances) {
  std::vector<int64_t> visit(static_cast<size_t>(offsets[n_instances])), start, children;
  for (int64_t i = 0; i < n_instances; ++i)
    visit_instance(parents + offsets[i], offsets[i + 1] - offsets[i], i, start, children,
                   visit.data() + offsets[i]);
  return visit;
}

}  // namespace crfx
