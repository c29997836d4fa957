#include "crfx/boosted_trees.hpp"

#include <bit>

#include "crfx/errors.hpp"

namespace crfx {
namespace {

constexpr int64_t kMostCategories = int64_t{1} << 24;  // float counts no further
constexpr int64_t kMostNodes = int64_t{1} << 30;       // of a tree

}  // namespace

BoostedTrees::BoostedTrees(const BoostedTreesView& trees, int64_t n_features, int64_t n_outputs)
    : n_outputs_(n_outputs), slots_(n_features) {
  nodes_.reserve(static_cast<size_t>(trees.starts[trees.n_trees]));
  trees_.reserve(static_cast<size_t>(trees.n_trees));
  read_sets(trees);
  for (int64_t tree = 0; tree < trees.n_trees; ++tree) lay_out(trees, tree);
  if (slots_.count() > static_cast<int64_t>(kSlot))
    throw InputError("the trees ask for too many features");
  blocks_.set_slots(slots_.count());
}

void BoostedTrees::read_sets(const BoostedTreesView& trees) {
  for (int64_t set = 0; set < trees.n_sets; ++set) {
    const int64_t first = static_cast<int64_t>(words_.size());
    for (int64_t k = trees.set_starts[set]; k < trees.set_starts[set + 1]; ++k) {
      const int64_t category = trees.categories[k];
      if (category < 0 || category >= kMostCategories)
        throw InputError("the trees have a category that cannot exist");
      const size_t word = static_cast<size_t>(first + category / 64);
      if (words_.size() <= word) words_.resize(word + 1, 0);
      words_[word] |= uint64_t{1} << (category % 64);
    }
    sets_.push_back({first, static_cast<int64_t>(words_.size()) - first});
  }
}

// Level by level, so that the nodes all walks meet stand together.
void BoostedTrees::lay_out(const BoostedTreesView& trees, int64_t tree) {
  const int64_t first = trees.starts[tree], size = trees.starts[tree + 1] - first;
  const int32_t output = trees.outputs[tree];
  if (size < 1 || size > kMostNodes) throw InputError("a tree has no nodes, or too many");
  if (output < 0 || output >= n_outputs_) throw InputError("a tree belongs to no output");
  Tree placed{static_cast<int64_t>(nodes_.size()), 0, output, false};
  std::vector<int32_t> order{0};  // nodes as the view counts them, in the order they are placed
  size_t level_end = 1;
  for (size_t at = 0; at < order.size(); ++at) {
    if (at == level_end) {
      level_end = order.size();
      ++placed.depth;
    }
    const int32_t own = order[at];
    const int64_t from = first + own;
    const int32_t left = trees.left[from], right = trees.right[from];
    if (left < 0) {
      nodes_.push_back({trees.values[from], kMissingLeft, static_cast<int32_t>(at)});
      continue;
    }
    if (left <= own || right <= own || left == right || left >= size || right >= size ||
        static_cast<int64_t>(order.size()) + 2 > size)
      throw InputError("a node of a tree has children that are not below it");
    if (trees.features[from] < 0 || trees.features[from] >= n_features())
      throw InputError("a tree asks for a feature that there is not");
    Node node{trees.values[from], static_cast<uint32_t>(slots_.of(trees.features[from])),
              static_cast<int32_t>(order.size())};
    if (trees.missing_left[from]) node.asks |= kMissingLeft;
    if (const int32_t set = trees.sets[from]; set >= 0) {
      if (set >= trees.n_sets) throw InputError("a tree asks for a set that there is not");
      node.asks |= kIsSet;
      node.value = std::bit_cast<float>(set);
      placed.has_sets = true;
    }
    nodes_.push_back(node);
    order.push_back(left);
    order.push_back(right);
  }
  trees_.push_back(placed);
}

}  // namespace crfx
