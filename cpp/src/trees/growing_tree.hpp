// A growing tree over previous labels and features, best split first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "crfx/context_trees.hpp"
#include "trees/context_leaf.hpp"
#include "trees/context_search.hpp"
#include "trees/context_trimming.hpp"

namespace crfx {

// After the beginning, it is settled, built, searched and divided as long as it grows. Every step
// ends in sums over the worker's rows, which can be exchanged before the next step. The next step
// depends only on the sums of all workers, and on random draws that are the same for all.
class GrowingTree {
 public:
  GrowingTree(const Bins& bins, const FeatureRows& features, const ContextGrowth& growth,
              const LabelSlopes& slopes);

  void begin(const int32_t* chosen, int64_t n_chosen);
  void begin_trimming() { trimming.emplace(fresh_[0], slopes_); }
  void allow_trimming() { trimming->allow(growth_.trimming, fresh_[0].total.h); }
  void trim();
  std::optional<Trimming> trimming;

  // Whether there are leaves with unknown sums or splits.
  bool is_growing() const { return !fresh_.empty(); }
  void tell_sums(Message& message);
  // Makes nodes of the leaves whose sums are known.
  void settle();
  // Sums by bin and by context. The larger side has the histogram of the parent less that of the
  // smaller.
  void build();
  void tell_histograms(Message& message);
  // Finds the best splits of the leaves whose histograms are known.
  void search();
  // Splits the leaf that gains most.
  void divide();

  // The values of leaves are fitted to all rows, also those left out of the search. Of several
  // workers the first one adds the sums of the others.
  void count_trimmed(bool is_first);
  void tell_totals(Message& message) { tell(message, totals_.data(), totals_.size()); }
  ContextTrees finish();

 private:
  int64_t add_node(const Bins::Cell& total);
  void write_split();
  void send_others();
  void build_leaf(ContextLeaf& leaf);
  void look_at_columns(ContextLeaf& leaf);
  void draw_columns(ContextLeaf& leaf);
  int64_t count_seen() const;
  bool is_narrow() const;
  void divide_rows();
  void divide_contexts();
  void add_trimmed(int32_t row, const float* x);

  const Bins& bins_;
  const FeatureRows& features_;
  const ContextGrowth& growth_;
  LabelSlopes slopes_;
  const ContextShape& shape_;
  SplitSearch search_;
  ContextTrees tree_;
  std::vector<Bins::Cell> totals_;  // by node
  std::vector<int32_t> trimmed_;    // rows
  std::mt19937_64 random_;
  int n_leaves_ = 1;
  std::vector<ContextLeaf> open_;   // a heap of leaves that may split
  ContextLeaf parent_;              // that was split last
  std::vector<ContextLeaf> fresh_;  // its sides, or the root
  size_t small_ = 0;                // of these, the one with fewer rows
  std::vector<double> occurs_;      // bins of the feature by which it was split
};

}  // namespace crfx
