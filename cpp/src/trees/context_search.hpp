// The best split of a node, from its sums.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trees/context_leaf.hpp"

namespace crfx {

class SplitSearch {
 public:
  SplitSearch(const Bins& bins, const ContextShape& shape, double l2)
      : bins_(bins), shape_(shape), l2_(l2) {}

  // No side of a split has less, nor so small a share of the tree's weight that it is rounding.
  void set_least_weight(double asked, double of_tree);
  // Sets leaf.best, among the columns that the leaf searches.
  void find(ContextLeaf& leaf) const;
  // The regularised sum of curvatures.
  double weight(const Bins::Cell& sum) const { return std::max(sum.h + l2_, 1e-300); }

 private:
  struct Entry {  // a label or a bin
    int64_t entry;
    Bins::Cell sum;
  };
  double worth(const Bins::Cell& sum) const { return sum.g * sum.g / weight(sum); }
  bool improves(const ContextLeaf& leaf, const Bins::Cell& left, double* gain) const;
  void search_labels(ContextLeaf& leaf, int place) const;
  void search_categories(ContextLeaf& leaf, int64_t feature) const;
  void search_numbers(ContextLeaf& leaf, int64_t feature) const;
  template <class Take>
  void search_sets(const ContextLeaf& leaf, std::vector<Entry>& entries, Take&& take_first) const;

  const Bins& bins_;
  const ContextShape& shape_;
  double l2_, least_weight_ = 0;
};

}  // namespace crfx
