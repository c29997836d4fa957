#include <algorithm>
#include <bit>

#include "crfx/boosted_trees.hpp"
#include "crfx/errors.hpp"
#include "crfx/parallel.hpp"
#include "trees/feature_block.hpp"

namespace crfx {
namespace {

constexpr int64_t kLanes = FeatureBlock::kLanes;
constexpr int64_t kMostRows = 128;  // at a time, for which a tree stays in the cache
constexpr int32_t kBlindSteps = 10;
constexpr int64_t kMostNumbers = 65536;  // so do their features

// So many rows that all threads have some. Sums of rows are apart: bits do not depend on it.
int64_t rows_at_once(int64_t n_rows, int64_t n_slots, int n_threads) {
  if (n_threads <= 0) n_threads = available_threads();
  const int64_t share = (n_rows + n_threads - 1) / n_threads;
  const int64_t most = std::min(kMostRows, kMostNumbers / n_slots);
  return std::max<int64_t>(1, (std::min(share, most) + kLanes - 1) / kLanes) * kLanes;
}

}  // namespace

void BoostedTrees::score(const FeatureRows& rows, int64_t n_trees, float* scores,
                         int n_threads) const {
  if (rows.n_features != n_features())
    throw InputError("the rows have " + std::to_string(rows.n_features) +
                     " features, the trees were grown on " + std::to_string(n_features()));
  const int64_t n_at_once = rows_at_once(rows.n_rows, slots_->count(), n_threads);
  const int64_t n_chunks = (rows.n_rows + n_at_once - 1) / n_at_once;
  for_chunks(n_chunks, n_threads, [&](int64_t chunk, Workspace&) {
    const KeepDenormals keep;  // XGBoost does not treat them as 0
    const int64_t begin = chunk * n_at_once;
    score_rows(rows, begin, std::min(rows.n_rows, begin + n_at_once), n_trees, scores);
  });
}

void BoostedTrees::score_rows(const FeatureRows& rows, int64_t begin, int64_t end, int64_t n_trees,
                              float* scores) const {
  FeatureBlocks::Lease block(*blocks_);
  block->read(rows, *slots_, begin, end);
  const int64_t n_groups = (end - begin + kLanes - 1) / kLanes;
  std::vector<float> sums(static_cast<size_t>(n_groups * n_outputs_ * kLanes), 0.0f);
  for (int64_t t = 0; t < n_trees; ++t) {
    const Tree& tree = trees_[static_cast<size_t>(t)];
    float* own = sums.data() + tree.output * kLanes;
    for (int64_t g = 0; g < n_groups; ++g, own += n_outputs_ * kLanes) {
      if (tree.has_sets)
        add<true>(tree, block->group(g), own);
      else
        add<false>(tree, block->group(g), own);
    }
  }
  for (int64_t row = begin; row < end; ++row) {
    const int64_t g = (row - begin) / kLanes, lane = (row - begin) % kLanes;
    for (int64_t k = 0; k < n_outputs_; ++k)
      scores[row * n_outputs_ + k] =
          sums[static_cast<size_t>((g * n_outputs_ + k) * kLanes + lane)];
  }
}

// sums (lanes) += the score of one tree, for the rows of one group. Walks wait for memory most of
// the time; side by side they wait at the same time.
template <bool has_sets>
void BoostedTrees::add(const Tree& tree, const int32_t* x, float* sums) const {
  const Node* nodes = nodes_.data() + tree.first;
  int64_t at[kLanes] = {};
  const auto step = [&] {
    int64_t moved = 0;
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const Node& node = nodes[at[lane]];
      bool right;
      if (has_sets && node.slot < 0)
        right = goes_right(node, x[-1 - node.slot + lane]);
      else
        right = x[node.slot + lane] >= node.value;
      const int64_t next = node.left + static_cast<int64_t>(right);
      moved |= next ^ at[lane];
      at[lane] = next;
    }
    return moved != 0;
  };
  // Testing whether all walks have ended costs more than a few idle steps, but less than many.
  int32_t level = 0;
  for (; level < std::min(tree.depth, kBlindSteps); ++level) step();
  for (; level < tree.depth && step(); ++level) continue;
  for (int64_t lane = 0; lane < kLanes; ++lane)
    sums[lane] += std::bit_cast<float>(nodes[at[lane]].value);
}

// As in XGBoost: members of the set go right; numbers that are no category go left.
bool BoostedTrees::goes_right(const Node& node, int32_t category) const {
  if (category == kNoCategory) return node.value % 2 == 0;
  const Set& set = sets_[static_cast<size_t>(node.value / 2)];
  if (set.is_list) {
    const int32_t* first = listed_.data() + set.first;
    return std::binary_search(first, first + set.size, category);
  }
  if (category == kUnknownCategory || category / 64 >= set.size) return false;
  return words_[static_cast<size_t>(set.first + category / 64)] >> (category % 64) & 1;
}

}  // namespace crfx
