// Boosted trees that split on features only, laid out for fast walks. Their sum is formed as
// XGBoost forms it, tree by tree in float: the same bits.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "crfx/bins.hpp"

namespace crfx {

class FeatureSlots;   // which features the trees read
class FeatureBlocks;  // memory for the values of some rows

// Trees as XGBoost stores them, one after the other; nodes are counted from the first of a tree.
struct BoostedTreesView {
  const int64_t* starts;  // trees + 1
  int64_t n_trees;
  const int32_t* outputs;       // trees: the score that a tree is added to
  const int32_t *left, *right;  // nodes; -1 at leaves
  const int32_t* features;      // nodes
  const float* values;          // nodes: numbers below go left; at leaves the score
  const uint8_t* missing_left;  // nodes
  const int32_t* sets;          // nodes: the set that decides instead, or -1
  const int64_t* set_starts;    // sets + 1
  int64_t n_sets;
  const int32_t* categories;  // of all sets: those that go right
};

class BoostedTrees {
 public:
  // Throws InputError unless every walk ends and stays within the tree.
  BoostedTrees(const BoostedTreesView& trees, int64_t n_features, int64_t n_outputs);
  ~BoostedTrees();

  int64_t n_trees() const { return static_cast<int64_t>(trees_.size()); }
  int64_t n_features() const;
  int64_t n_outputs() const { return n_outputs_; }
  // Bytes of the sets of categories.
  int64_t set_bytes() const;

  // scores (rows x outputs) = sum of the first trees. Many threads may call it at the same time,
  // and each call may use many: sums of rows do not depend on each other. O(rows x trees x depth).
  void score(const FeatureRows& rows, int64_t n_trees, float* scores, int n_threads) const;

 private:
  // The children of a node are adjacent. A leaf reads slot 0, which is below all thresholds,
  // and is its own child: all walks through a tree take equally many steps, without a branch.
  struct Node {
    int32_t value;  // the key of a threshold, the bits of a score, or 2 set + missing_left
    int32_t slot;   // times the lanes; -1 - that where a set decides
    int32_t left;   // counted from the first of the tree
  };
  struct Tree {
    int64_t first;
    int32_t depth, output;
    bool has_sets;
  };
  struct Set {
    int64_t first;  // in words_ or listed_
    int32_t size;   // words or categories
    bool is_list;
  };

  void lay_out(const BoostedTreesView& trees, int64_t tree);
  Node asking(const BoostedTreesView& trees, int64_t from);
  void read_sets(const BoostedTreesView& trees);
  void add_list(const int32_t* begin, const int32_t* end);
  void add_bits(const int32_t* begin, const int32_t* end, int64_t n_words);
  bool goes_right(const Node& node, int32_t category) const;
  template <bool has_sets>
  void add(const Tree& tree, const int32_t* x, float* sums) const;
  void score_rows(const FeatureRows& rows, int64_t begin, int64_t end, int64_t n_trees,
                  float* scores) const;

  int64_t n_outputs_;
  std::unique_ptr<FeatureSlots> slots_;
  std::vector<Tree> trees_;
  std::vector<Node> nodes_;
  std::vector<Set> sets_;
  std::vector<uint64_t> words_;  // categories that go right, 64 to a word
  std::vector<int32_t> listed_;  // or in order, if they are few and far apart
  std::unique_ptr<FeatureBlocks> blocks_;
};

}  // namespace crfx
