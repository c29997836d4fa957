#include "crfx/context_trees.hpp"

namespace crfx {

void ContextTrees::append(const ContextTrees& others) {
  const int64_t n_nodes = starts.back(), n_words = static_cast<int64_t>(words.size());
  for (size_t k = 1; k < others.starts.size(); ++k) starts.push_back(n_nodes + others.starts[k]);
  const auto join = [](auto& own, const auto& more) {
    own.insert(own.end(), more.begin(), more.end());
  };
  join(features, others.features);
  join(left, others.left);
  join(right, others.right);
  join(thresholds, others.thresholds);
  join(missing_left, others.missing_left);
  for (const int64_t set : others.sets) sets.push_back(set < 0 ? set : set + n_words);
  join(words, others.words);
  join(set_sizes, others.set_sizes);
  join(values, others.values);
  join(gains, others.gains);
  join(weights, others.weights);
}

ContextTreesView ContextTreesView::of(const ContextTrees& trees) {
  return {trees.starts.data(),       trees.n_trees(),    trees.features.data(),
          trees.left.data(),         trees.right.data(), trees.thresholds.data(),
          trees.missing_left.data(), trees.sets.data(),  trees.words.data(),
          trees.set_sizes.data(),    trees.values.data()};
}

}  // namespace crfx
