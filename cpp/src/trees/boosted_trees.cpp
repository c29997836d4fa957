#include "crfx/boosted_trees.hpp"

#include <algorithm>
#include <bit>

#include "crfx/errors.hpp"
#include "trees/feature_block.hpp"

namespace crfx {
namespace {

constexpr int64_t kMostCategories = int64_t{1} << 24;  // float counts no further
constexpr int64_t kMostNodes = int64_t{1} << 30;       // of a tree
constexpr int64_t kMostSets = int64_t{1} << 29;        // a node holds twice the number of its set
constexpr int64_t kWordsPerCategory = 8;  // a set whose bits would take more is a list instead

}  // namespace

BoostedTrees::BoostedTrees(const BoostedTreesView& trees, int64_t n_features, int64_t n_outputs)
    : n_outputs_(n_outputs),
      slots_(std::make_unique<FeatureSlots>(n_features)),
      blocks_(std::make_unique<FeatureBlocks>()) {
  if (trees.n_sets > kMostSets) throw InputError("the trees have too many sets of categories");
  nodes_.reserve(static_cast<size_t>(trees.starts[trees.n_trees]));
  trees_.reserve(static_cast<size_t>(trees.n_trees));
  read_sets(trees);
  for (int64_t tree = 0; tree < trees.n_trees; ++tree) lay_out(trees, tree);
}

BoostedTrees::~BoostedTrees() = default;

int64_t BoostedTrees::n_features() const { return slots_->n_features(); }

int64_t BoostedTrees::set_bytes() const {
  return static_cast<int64_t>(sets_.capacity() * sizeof(Set) +
                              words_.capacity() * sizeof(uint64_t) +
                              listed_.capacity() * sizeof(int32_t));
}

// Memory is bounded by the number of listed categories, however large the categories are.
void BoostedTrees::read_sets(const BoostedTreesView& trees) {
  sets_.reserve(static_cast<size_t>(trees.n_sets));
  for (int64_t set = 0; set < trees.n_sets; ++set) {
    const int32_t* begin = trees.categories + trees.set_starts[set];
    const int32_t* end = trees.categories + trees.set_starts[set + 1];
    int64_t n_words = 0;
    for (const int32_t* category = begin; category < end; ++category) {
      if (*category < 0 || *category >= kMostCategories)
        throw InputError("the trees have a category that cannot exist");
      n_words = std::max<int64_t>(n_words, *category / 64 + 1);
    }
    if (n_words > kWordsPerCategory * (end - begin))
      add_list(begin, end);
    else
      add_bits(begin, end, n_words);
  }
}

void BoostedTrees::add_list(const int32_t* begin, const int32_t* end) {
  const size_t first = listed_.size();
  listed_.insert(listed_.end(), begin, end);
  std::sort(listed_.begin() + static_cast<int64_t>(first), listed_.end());
  sets_.push_back({static_cast<int64_t>(first), static_cast<int32_t>(end - begin), true});
}

void BoostedTrees::add_bits(const int32_t* begin, const int32_t* end, int64_t n_words) {
  const size_t first = words_.size();
  words_.resize(first + static_cast<size_t>(n_words), 0);
  for (const int32_t* category = begin; category < end; ++category)
    words_[first + static_cast<size_t>(*category / 64)] |= uint64_t{1} << (*category % 64);
  sets_.push_back({static_cast<int64_t>(first), static_cast<int32_t>(n_words), false});
}

// Level by level, so that the nodes that all walks visit are close together.
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
      // Not -0, whose bits are those of kBelowAll: added to a sum that began with 0 it is the same.
      const int32_t score = std::bit_cast<int32_t>(trees.values[from] + 0.0f);
      nodes_.push_back({score, 0, static_cast<int32_t>(at)});
      continue;
    }
    if (left <= own || right <= own || left == right || left >= size || right >= size ||
        static_cast<int64_t>(order.size()) + 2 > size)
      throw InputError("a node of a tree has children that are not below it");
    Node node = asking(trees, from);
    node.left = static_cast<int32_t>(order.size());
    placed.has_sets = placed.has_sets || node.slot < 0;
    nodes_.push_back(node);
    order.push_back(left);
    order.push_back(right);
  }
  trees_.push_back(placed);
}

// An inner node without its children.
BoostedTrees::Node BoostedTrees::asking(const BoostedTreesView& trees, int64_t from) {
  const int32_t feature = trees.features[from], set = trees.sets[from];
  const bool missing_left = trees.missing_left[from] != 0;
  if (feature < 0 || feature >= n_features())
    throw InputError("a tree uses a feature that does not exist");
  if (set >= trees.n_sets) throw InputError("a tree uses a set that does not exist");
  const auto slot = [&](SlotKind kind) {
    return slots_->of(feature, kind) * static_cast<int32_t>(FeatureBlock::kLanes);
  };
  if (set >= 0) return {2 * set + missing_left, -1 - slot(SlotKind::category), 0};
  const float threshold = trees.values[from];
  // Nothing is below NaN; missing values may still go left.
  const int32_t key = threshold == threshold ? key_of(threshold) : kBelowAll + 1;
  return {key, slot(missing_left ? SlotKind::missing_left : SlotKind::missing_right), 0};
}

}  // namespace crfx
