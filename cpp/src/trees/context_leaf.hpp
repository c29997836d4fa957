// A node of a growing tree over previous labels and features: its rows, and the sums over them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "crfx/bins.hpp"
#include "crfx/context_trees.hpp"

namespace crfx {

inline Bins::Cell operator+(const Bins::Cell& a, const Bins::Cell& b) {
  return {a.g + b.g, a.h + b.h};
}
inline Bins::Cell operator-(const Bins::Cell& a, const Bins::Cell& b) {
  return {a.g - b.g, a.h - b.h};
}

inline void tell(Message& message, Bins::Cell* cells, size_t n) {
  static_assert(sizeof(Bins::Cell) == 2 * sizeof(double));
  if (n) message.add(&cells->g, 2 * n);
}

// Where a node splits: at a bin of a feature, at a set of its bins, or at a set of labels.
struct ContextSplit {
  double gain = 0;
  int32_t feature = ContextTrees::kLeaf;
  int64_t last_left = 0;      // numbers: the last bin that goes left
  std::vector<uint64_t> set;  // categories or labels that go left
  bool missing_left = false;

  bool found() const { return feature != ContextTrees::kLeaf; }
  bool has(int64_t entry) const {
    return entry / 64 < static_cast<int64_t>(set.size()) &&
           (set[static_cast<size_t>(entry / 64)] >> (entry % 64) & 1);
  }
  void insert(int64_t entry) {
    if (static_cast<size_t>(entry / 64) >= set.size())
      set.resize(static_cast<size_t>(entry / 64) + 1);
    set[static_cast<size_t>(entry / 64)] |= uint64_t(1) << (entry % 64);
  }
  void erase(int64_t entry) {
    if (has(entry)) set[static_cast<size_t>(entry / 64)] &= ~(uint64_t(1) << (entry % 64));
  }
};

// A node that may still split. Rows are this worker's; sums are those of all workers after the
// exchange.
struct ContextLeaf {
  int64_t node = 0;
  std::vector<int32_t> rows;
  std::vector<float> g, h;        // of the rows, over the contexts that reach it
  std::vector<int32_t> contexts;  // that reach it, "none" aside
  bool has_none = true;
  Bins::Cell total;
  double n_rows = 0;
  std::vector<int64_t> columns, features;  // that it searches: labels come first; features alone
  std::vector<Bins::Cell> histogram;
  std::vector<Bins::Cell> by_context;  // contexts; the last is "none"
  ContextSplit best;

  bool looks_at_labels() const { return features.size() < columns.size(); }
  void sum_up() {
    total = {};
    n_rows = static_cast<double>(rows.size());
    for (size_t p = 0; p < rows.size(); ++p)
      total = total + Bins::Cell{static_cast<double>(g[p]), static_cast<double>(h[p])};
  }
};

// Gradient and curvature of one label, by row and context.
struct LabelSlopes {
  const ContextShape& shape;
  const ContextSlopes& all;
  int64_t label;
  const float *edge, *edge_curvature;  // rows x contexts; curvature may be null
  int64_t n_contexts = shape.n_contexts();

  // The sum over the contexts that a row has: `contexts`, or "none".
  Bins::Cell sum_row(const std::vector<int32_t>& contexts, int32_t row) const;
  // The sum of absolute gradients over all contexts of a row.
  double influence(int32_t row) const;
  // Sums of a leaf, for its rows; rows without any of its contexts are removed.
  void sum_rows(ContextLeaf& leaf) const;
  // Sums of a leaf over its rows, for its contexts.
  void sum_contexts(ContextLeaf& leaf) const;

 private:
  Bins::Cell at_none(int32_t row) const;
  double weight_of(int32_t row) const {
    return all.weights ? static_cast<double>(all.weights[row]) : 1.0;
  }
};

}  // namespace crfx
