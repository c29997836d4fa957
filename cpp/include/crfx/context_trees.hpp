// Trees that split on the features of a position and on its previous labels (Dietterich et al.
// 2004): F^k(context, x), one ensemble per label k.
//
// A context is the tuple of the `order` labels before a position, numbered with the oldest label
// first. A position with fewer previous positions has the context "none", and no other.
#pragma once

#include <cstdint>
#include <vector>

#include "crfx/bins.hpp"
#include "crfx/parallel.hpp"

namespace crfx {

struct ContextShape {
  int64_t n_labels = 0;
  int order = 1;

  int64_t n_contexts() const {
    int64_t n = 1;
    for (int k = 0; k < order; ++k) n *= n_labels;
    return n;
  }
  // The label at a place of a context, place 0 being the oldest; n_labels in the context "none".
  int64_t label_at(int64_t context, int place) const {
    if (context == n_contexts()) return n_labels;
    for (int k = order - 1; k > place; --k) context /= n_labels;
    return context % n_labels;
  }
};

// Trees one after the other, nodes of a tree one after the other, children after their parent.
struct ContextTrees {
  static constexpr int32_t kLeaf = -1;
  // features: kLeaf; the number of a feature; or -2 - place, where a node splits on a label.
  std::vector<int64_t> starts{0};     // trees + 1
  std::vector<int32_t> features;      // nodes
  std::vector<int32_t> left, right;   // nodes, counted from the first of the tree
  std::vector<float> thresholds;      // numbers below go left; NaN where a set decides
  std::vector<uint8_t> missing_left;  // nodes
  std::vector<int64_t> sets;          // nodes: where the set begins in `words`, or -1
  std::vector<uint64_t> words;        // sets of categories or labels that go left, 64 to a word
  std::vector<int32_t> set_sizes;     // nodes: words of the set
  std::vector<float> values;          // leaves: the score; other nodes: 0
  std::vector<float> gains, weights;  // nodes: what the split gained; sum of curvatures

  int64_t n_trees() const { return static_cast<int64_t>(starts.size()) - 1; }
  void append(const ContextTrees& others);
};

// The same, viewed, with the contexts that reach every leaf.
struct ContextTreesView {
  const int64_t* starts;
  int64_t n_trees;
  const int32_t *features, *left, *right;
  const float* thresholds;
  const uint8_t* missing_left;
  const int64_t* sets;
  const uint64_t* words;
  const int32_t* set_sizes;
  const float* values;

  static ContextTreesView of(const ContextTrees& trees);

  bool asks_label(int64_t node) const { return features[node] < ContextTrees::kLeaf; }
  static int place_of(int32_t feature) { return -2 - feature; }
  bool has(int64_t node, int64_t entry) const {
    const int64_t word = entry / 64;
    return entry >= 0 && word < set_sizes[node] && (words[sets[node] + word] >> (entry % 64) & 1);
  }
  // The child for a value, at a node that splits on a feature.
  bool goes_left(int64_t node, float x) const {
    if (x != x) return missing_left[node] != 0;
    return sets[node] < 0 ? x < thresholds[node] : has(node, static_cast<int64_t>(x));
  }
};

// The contexts that reach each leaf of each tree; they do not depend on the row.
// O(leaves x contexts) of the trees that split on labels.
class LeafContexts {
 public:
  LeafContexts(const ContextTreesView& trees, const ContextShape& shape);
  // Whether a tree splits on a label at all; otherwise all contexts reach the same leaf.
  bool asks(int64_t tree) const { return asks_[static_cast<size_t>(tree)] != 0; }
  const int32_t* begin(int64_t node) const {
    return contexts_.data() + begin_[static_cast<size_t>(node)];
  }
  const int32_t* end(int64_t node) const { return begin(node) + count_[static_cast<size_t>(node)]; }
  bool any(int64_t node) const { return count_[static_cast<size_t>(node)] > 0; }

 private:
  void descend(const ContextTreesView& trees, const ContextShape& shape, int64_t first,
               const std::vector<int32_t>& all);

  std::vector<int32_t> contexts_;
  std::vector<int64_t> begin_, count_;
  std::vector<uint8_t> asks_;
};

// The target of a round: gradient and curvature of every F^k(context, x).
struct ContextSlopes {
  const uint8_t* has_context;   // rows: whether there are enough previous labels
  const float* edge;            // rows x contexts x labels: gradient if there are
  const float* edge_curvature;  // the same, or null: the weight of the row
  const float* node;            // rows x labels: gradient if there are not
  const float* node_curvature;  // the same, or null
  const float* weights;         // rows, or null: 1
};

struct ContextGrowth {
  int max_leaves = 8;
  double l2 = 0, min_child_weight = 0;
  double trimming = 0;      // share of the absolute gradient whose rows need not be searched
  double column_share = 1;  // share of the columns that each node searches, labels included
  uint64_t seed = 0;        // of the columns
};

// Grows one tree per label, best split first, to lower sum g d + (h + l2) d^2 / 2, on the rows
// given. A node is a set of rows times a set of contexts, so rows are never copied per context: a
// node costs rows x features (their entries and all bins, if sparse), and rows x contexts once.
//
// Workers have the same bins and grow the same trees, each from rows of its own. For up to 16
// labels at once they exchange, in 2 messages per leaf, 16 bytes x labels x (leaves - 1) x (bins +
// 2 contexts), and some 50 bytes per leaf, or 2 kB where categories split; where nodes search less
// than half of the columns, the bins of these, twice. Trimming takes 20 messages more, of 240 bytes
// per label.
ContextTrees grow_context_trees(const Bins& bins, const FeatureRows& rows,
                                const ContextShape& shape, const ContextSlopes& slopes,
                                const int32_t* chosen, int64_t n_chosen,
                                const ContextGrowth& growth, int n_threads,
                                const Workers& workers = {});

// Adds `step` times the scores of trees [0, n_trees), which are one per label in turn, to edge
// (rows x contexts x labels) and node (rows x labels), in the order of the trees. Either may be
// null. A tree is walked once per row, whatever the number of contexts. `leaves` are those of the
// same trees, or of more.
void add_context_scores(const ContextTreesView& trees, const LeafContexts& leaves,
                        const FeatureRows& rows, const ContextShape& shape,
                        const uint8_t* has_context, float step, float* edge, float* node,
                        int n_threads);

}  // namespace crfx
