#include "trees/context_leaf.hpp"

#include <cmath>

namespace crfx {

using Cell = Bins::Cell;

Cell LabelSlopes::at_none(int32_t row) const {
  const int64_t at = row * shape.n_labels + label;
  const double h =
      all.node_curvature ? static_cast<double>(all.node_curvature[at]) : weight_of(row);
  return {static_cast<double>(all.node[at]), h};
}

Cell LabelSlopes::sum_row(const std::vector<int32_t>& contexts, int32_t row) const {
  if (!all.has_context[row]) return at_none(row);
  const float* g = edge + row * n_contexts;
  double sum_g = 0, sum_h = 0;
  if (static_cast<int64_t>(contexts.size()) == n_contexts)
    for (int64_t c = 0; c < n_contexts; ++c) sum_g += static_cast<double>(g[c]);
  else
    for (const int32_t c : contexts) sum_g += static_cast<double>(g[c]);
  if (!edge_curvature) return {sum_g, weight_of(row) * static_cast<double>(contexts.size())};
  const float* h = edge_curvature + row * n_contexts;
  for (const int32_t c : contexts) sum_h += static_cast<double>(h[c]);
  return {sum_g, sum_h};
}

double LabelSlopes::influence(int32_t row) const {
  if (!all.has_context[row]) return std::fabs(at_none(row).g);
  double sum = 0;
  for (int64_t c = 0; c < n_contexts; ++c)
    sum += std::fabs(static_cast<double>(edge[row * n_contexts + c]));
  return sum;
}

void LabelSlopes::sum_rows(ContextLeaf& leaf) const {
  leaf.g.resize(leaf.rows.size());
  leaf.h.resize(leaf.rows.size());
  size_t kept = 0;
  for (const int32_t row : leaf.rows) {
    if (all.has_context[row] ? leaf.contexts.empty() : !leaf.has_none) continue;
    const Cell sum = sum_row(leaf.contexts, row);
    leaf.rows[kept] = row;
    leaf.g[kept] = static_cast<float>(sum.g);
    leaf.h[kept] = static_cast<float>(sum.h);
    ++kept;
  }
  leaf.rows.resize(kept);
  leaf.g.resize(kept);
  leaf.h.resize(kept);
  leaf.sum_up();
}

void LabelSlopes::sum_contexts(ContextLeaf& leaf) const {
  leaf.by_context.assign(static_cast<size_t>(n_contexts) + 1, {});
  std::vector<double> g(static_cast<size_t>(n_contexts)), h;
  if (edge_curvature) h.resize(g.size());
  double rows_weight = 0;
  for (const int32_t row : leaf.rows) {
    if (!all.has_context[row]) {
      leaf.by_context.back() = leaf.by_context.back() + at_none(row);
      continue;
    }
    const float* own = edge + row * n_contexts;
    for (int64_t c = 0; c < n_contexts; ++c) g[static_cast<size_t>(c)] += own[c];
    if (h.empty()) {
      rows_weight += weight_of(row);
    } else {
      const float* curved = edge_curvature + row * n_contexts;
      for (int64_t c = 0; c < n_contexts; ++c) h[static_cast<size_t>(c)] += curved[c];
    }
  }
  for (const int32_t c : leaf.contexts)
    leaf.by_context[static_cast<size_t>(c)] = {g[static_cast<size_t>(c)],
                                               h.empty() ? rows_weight : h[static_cast<size_t>(c)]};
}

}  // namespace crfx
