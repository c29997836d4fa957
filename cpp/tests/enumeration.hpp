// The slow and certain witness: every labelling of a tiny problem, scored on its own.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "crfx/inference.hpp"
#include "crfx/views.hpp"

namespace check {

// A random problem that owns its arrays.
template <class S>
struct Owned {
  std::vector<S> node, edge, start, end;
  std::vector<int64_t> offsets, parents, visit;
  std::vector<int32_t> types;
  crfx::Problem<S> view;
};

struct Spec {
  std::vector<int64_t> lengths;
  int n_labels = 3, order = 1;
  crfx::Sharing sharing = crfx::Sharing::shared;
  bool forest = false, ends = true;
  double scale = 1, forbid = 0;
  unsigned seed = 0;
};

template <class S>
Owned<S> make(const Spec& spec) {
  Owned<S> p;
  std::mt19937 random(spec.seed);
  std::normal_distribution<double> normal(0, spec.scale);
  std::uniform_real_distribution<double> uniform;
  const auto fill = [&](std::vector<S>& x, int64_t n, double forbid) {
    for (int64_t k = 0; k < n; ++k)
      x.push_back(uniform(random) < forbid ? -std::numeric_limits<S>::infinity()
                                           : S(normal(random)));
  };
  p.offsets = {0};
  for (int64_t n : spec.lengths) p.offsets.push_back(p.offsets.back() + n);
  crfx::Problem<S>& v = p.view;
  v.n_instances = static_cast<int64_t>(spec.lengths.size());
  v.n_labels = spec.n_labels;
  v.order = spec.order;
  v.sharing = spec.sharing;
  v.offsets = p.offsets.data();
  const int64_t rows = v.n_rows();
  v.n_tables = spec.sharing == crfx::Sharing::shared  ? 1
               : spec.sharing == crfx::Sharing::typed ? 3
                                                      : rows;
  fill(p.node, rows * spec.n_labels, spec.forbid);
  fill(p.edge, v.n_tables * v.table_size(), 0);
  if (spec.ends) fill(p.start, spec.n_labels, 0);
  if (spec.ends && !spec.forest) fill(p.end, spec.n_labels, 0);
  for (int64_t r = 0; r < rows; ++r) {
    p.types.push_back(static_cast<int32_t>(random() % 3));
    // Label 0 stays allowed, so that some labelling is.
    if (p.node[r * spec.n_labels] < -1e30) p.node[r * spec.n_labels] = 0;
  }
  v.node = p.node.data();
  v.edge = p.edge.data();
  v.start = p.start.empty() ? nullptr : p.start.data();
  v.end = p.end.empty() ? nullptr : p.end.data();
  v.edge_types = p.types.data();
  if (!spec.forest) return p;
  for (int64_t n : spec.lengths) {
    // A random forest with shuffled names: node order[k] hangs under an earlier one, or is a root.
    std::vector<int64_t> order(n), parent(n);
    for (int64_t k = 0; k < n; ++k) order[k] = k;
    std::shuffle(order.begin(), order.end(), random);
    for (int64_t k = 0; k < n; ++k) {
      const int64_t pick = static_cast<int64_t>(random() % (k + 1)) - (random() % 6 == 0);
      parent[order[k]] = k == 0 || pick < 0 ? -1 : order[pick % k];
    }
    p.parents.insert(p.parents.end(), parent.begin(), parent.end());
  }
  p.visit = crfx::visit_order(v.offsets, p.parents.data(), v.n_instances);
  v.parents = p.parents.data();
  v.visit = p.visit.data();
  return p;
}

// Index of the table entry that row t of an instance uses under a labelling, or -1 without an edge.
template <class S>
int64_t entry_of(const crfx::Problem<S>& p, int64_t i, int64_t t, const std::vector<int>& y) {
  const int64_t first = p.offsets[i];
  int64_t entry = 0;
  if (p.parents) {
    if (p.parents[first + t] < 0) return -1;
    entry = y[p.parents[first + t]];
  } else {
    if (t < p.order) return -1;
    for (int64_t s = t - p.order; s < t; ++s) entry = entry * p.n_labels + y[s];
  }
  return entry * p.n_labels + y[t];
}

template <class S>
int64_t table_of(const crfx::Problem<S>& p, int64_t row) {
  return p.sharing == crfx::Sharing::shared  ? 0
         : p.sharing == crfx::Sharing::typed ? p.edge_types[row]
                                             : row;
}

template <class S>
double score_of(const crfx::Problem<S>& p, int64_t i, const std::vector<int>& y) {
  const int64_t first = p.offsets[i], n = p.length(i);
  double score = 0;
  for (int64_t t = 0; t < n; ++t) {
    score += p.node[(first + t) * p.n_labels + y[t]];
    const bool root = p.parents ? p.parents[first + t] < 0 : t == 0;
    if (root && p.start) score += p.start[y[t]];
    if (t == n - 1 && p.end) score += p.end[y[t]];
    const int64_t entry = entry_of(p, i, t, y);
    if (entry >= 0) score += p.edge[table_of(p, first + t) * p.table_size() + entry];
  }
  return score;
}

struct Labelling {
  std::vector<int> y;
  double score, probability;
};

// All allowed labellings of instance i, best first, and log Z.
template <class S>
std::vector<Labelling> enumerate(const crfx::Problem<S>& p, int64_t i, double* log_z) {
  std::vector<Labelling> all;
  std::vector<int> y(p.length(i), 0);
  for (;;) {
    const double score = score_of(p, i, y);
    if (score > -1e300) all.push_back({y, score, 0});
    size_t k = 0;
    while (k < y.size() && ++y[k] == p.n_labels) y[k++] = 0;
    if (k == y.size()) break;
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.score > b.score; });
  double sum = 0;
  for (const Labelling& l : all) sum += std::exp(l.score - all[0].score);
  *log_z = all[0].score + std::log(sum);
  for (Labelling& l : all) l.probability = std::exp(l.score - *log_z);
  return all;
}

}  // namespace check
