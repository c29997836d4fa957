#include <algorithm>
#include <utility>

#include "crfx/context_trees.hpp"
#include "crfx/parallel.hpp"

namespace crfx {
namespace {

constexpr int64_t kRowsPerChunk = 64;
constexpr int64_t kSparseRowsPerChunk = 2048;  // each chunk spreads out its own row

// Walks the trees of one row.
class Walk {
 public:
  Walk(const ContextTreesView& trees, const ContextShape& shape, const LeafContexts& leaves)
      : trees_(trees), shape_(shape), leaves_(leaves), n_contexts_(shape.n_contexts()) {}

  // scores (contexts) += step * F(., x) of one tree.
  void add_all(int64_t tree, const float* x, float step, float* scores) {
    const int64_t first = trees_.starts[tree];
    if (!leaves_.asks(tree)) {
      int64_t node = first;
      while (trees_.features[node] >= 0) node = first + next(node, x);
      const float value = step * trees_.values[node];
      for (int64_t c = 0; c < n_contexts_; ++c) scores[c] += value;
      return;
    }
    waiting_.assign(1, first);
    while (!waiting_.empty()) {
      int64_t node = waiting_.back();
      waiting_.pop_back();
      while (trees_.features[node] != ContextTrees::kLeaf) {
        if (trees_.features[node] >= 0) {
          node = first + next(node, x);
        } else {
          const int64_t right = first + trees_.right[node];
          if (leaves_.any(right)) waiting_.push_back(right);
          node = first + trees_.left[node];
        }
      }
      const float value = step * trees_.values[node];
      for (const int32_t* c = leaves_.begin(node); c != leaves_.end(node); ++c) scores[*c] += value;
    }
  }

  // F("none", x) of one tree.
  float at_none(int64_t tree, const float* x) const {
    const int64_t first = trees_.starts[tree];
    int64_t node = first;
    while (trees_.features[node] != ContextTrees::kLeaf) {
      if (trees_.features[node] >= 0)
        node = first + next(node, x);
      else
        node = first + (trees_.has(node, shape_.n_labels) ? trees_.left : trees_.right)[node];
    }
    return trees_.values[node];
  }

 private:
  int64_t next(int64_t node, const float* x) const {
    return (trees_.goes_left(node, x[trees_.features[node]]) ? trees_.left : trees_.right)[node];
  }

  const ContextTreesView& trees_;
  const ContextShape& shape_;
  const LeafContexts& leaves_;
  int64_t n_contexts_;
  std::vector<int64_t> waiting_;
};

}  // namespace

LeafContexts::LeafContexts(const ContextTreesView& trees, const ContextShape& shape) {
  const int64_t n_nodes = trees.starts[trees.n_trees];
  begin_.assign(static_cast<size_t>(n_nodes), 0);
  count_.assign(static_cast<size_t>(n_nodes), 0);
  asks_.assign(static_cast<size_t>(trees.n_trees), 0);
  std::vector<int32_t> all(static_cast<size_t>(shape.n_contexts()));
  for (size_t c = 0; c < all.size(); ++c) all[c] = static_cast<int32_t>(c);
  for (int64_t tree = 0; tree < trees.n_trees; ++tree) {
    const int64_t first = trees.starts[tree], end = trees.starts[tree + 1];
    for (int64_t node = first; node < end && !asks_[static_cast<size_t>(tree)]; ++node)
      asks_[static_cast<size_t>(tree)] = trees.asks_label(node);
    if (asks_[static_cast<size_t>(tree)]) descend(trees, shape, first, all);
  }
}

// Not by recursion: a tree may be as deep as it has leaves.
void LeafContexts::descend(const ContextTreesView& trees, const ContextShape& shape, int64_t first,
                           const std::vector<int32_t>& all) {
  std::vector<std::pair<int64_t, std::vector<int32_t>>> waiting;
  waiting.emplace_back(first, all);
  while (!waiting.empty()) {
    const auto [node, reach] = std::move(waiting.back());
    waiting.pop_back();
    const int32_t feature = trees.features[node];
    begin_[static_cast<size_t>(node)] = static_cast<int64_t>(contexts_.size());
    count_[static_cast<size_t>(node)] = static_cast<int64_t>(reach.size());
    if (feature == ContextTrees::kLeaf) {
      contexts_.insert(contexts_.end(), reach.begin(), reach.end());
      continue;
    }
    std::vector<int32_t> sides[2];
    if (feature >= 0) {
      sides[0] = sides[1] = reach;
    } else {
      for (const int32_t c : reach)
        sides[trees.has(node, shape.label_at(c, trees.place_of(feature))) ? 0 : 1].push_back(c);
    }
    waiting.emplace_back(first + trees.left[node], std::move(sides[0]));
    waiting.emplace_back(first + trees.right[node], std::move(sides[1]));
  }
}

void add_context_scores(const ContextTreesView& trees, const LeafContexts& leaves,
                        const FeatureRows& rows, const ContextShape& shape,
                        const uint8_t* has_context, float step, float* edge, float* node,
                        int n_threads) {
  const int64_t K = shape.n_labels, C = shape.n_contexts();
  const int64_t n_at_once = rows.is_sparse() ? kSparseRowsPerChunk : kRowsPerChunk;
  const int64_t n_chunks = (rows.n_rows + n_at_once - 1) / n_at_once;
  for_chunks(n_chunks, n_threads, [&](int64_t chunk, Workspace&) {
    RowReader reader(rows);
    Walk walk(trees, shape, leaves);
    std::vector<float> table(static_cast<size_t>(C * K));  // labels x contexts
    const int64_t end = std::min(rows.n_rows, (chunk + 1) * n_at_once);
    for (int64_t row = chunk * n_at_once; row < end; ++row) {
      if ((has_context[row] ? edge : node) == nullptr) continue;
      const float* x = reader.read(row);
      if (!has_context[row]) {
        std::fill_n(table.begin(), K, 0.0f);
        for (int64_t tree = 0; tree < trees.n_trees; ++tree)
          table[static_cast<size_t>(tree % K)] += step * walk.at_none(tree, x);
        for (int64_t k = 0; k < K; ++k) node[row * K + k] += table[static_cast<size_t>(k)];
        continue;
      }
      std::fill(table.begin(), table.end(), 0.0f);
      for (int64_t tree = 0; tree < trees.n_trees; ++tree)
        walk.add_all(tree, x, step, table.data() + tree % K * C);
      float* out = edge + row * C * K;
      for (int64_t c = 0; c < C; ++c)
        for (int64_t k = 0; k < K; ++k) out[c * K + k] += table[static_cast<size_t>(k * C + c)];
    }
  });
}

}  // namespace crfx
