#include "trees/context_search.hpp"

#include <algorithm>

namespace crfx {
namespace {

constexpr double kLeastGain = 1e-9, kLeastShare = 1e-10;

void take(ContextLeaf& leaf, double gain, int64_t feature, int64_t bin, bool missing_left) {
  leaf.best = {gain, static_cast<int32_t>(feature), bin, {}, missing_left};
}

}  // namespace

using Cell = Bins::Cell;

void SplitSearch::set_least_weight(double asked, double of_tree) {
  least_weight_ = std::max(asked, kLeastShare * of_tree);
}

void SplitSearch::find(ContextLeaf& leaf) const {
  leaf.best = {};
  leaf.best.gain = kLeastGain;
  for (const int64_t column : leaf.columns) {
    const int64_t feature = column - shape_.order;
    if (feature < 0)
      search_labels(leaf, static_cast<int>(column));
    else if (bins_.is_category(feature))
      search_categories(leaf, feature);
    else
      search_numbers(leaf, feature);
  }
}

// Whether this split is better than the best so far.
bool SplitSearch::improves(const ContextLeaf& leaf, const Cell& left, double* gain) const {
  const Cell right = leaf.total - left;
  if (left.h < least_weight_ || right.h < least_weight_) return false;
  *gain = 0.5 * (worth(left) + worth(right) - worth(leaf.total));
  return *gain > leaf.best.gain;
}

void SplitSearch::search_numbers(ContextLeaf& leaf, int64_t feature) const {
  const Cell* cells = leaf.histogram.data() + bins_.offset(feature);
  const int64_t n = bins_.offset(feature + 1) - bins_.offset(feature);
  Cell missing = cells[0];
  if (bins_.is_sparse()) {
    missing = leaf.total;
    for (int64_t bin = 1; bin < n; ++bin) missing = missing - cells[bin];
  }
  const bool any_missing = missing.h > kLeastShare * leaf.total.h;
  Cell left;
  double gain;
  for (int64_t bin = 1; bin < n; ++bin) {
    left = left + cells[bin];
    if (improves(leaf, left, &gain)) take(leaf, gain, feature, bin, false);
    if (any_missing && bin + 1 < n && improves(leaf, left + missing, &gain))
      take(leaf, gain, feature, bin, true);
  }
}

// Sorted by slope, the best set is a prefix of them (Fisher 1958), for any l2.
template <class Take>
void SplitSearch::search_sets(const ContextLeaf& leaf, std::vector<Entry>& entries,
                              Take&& take_first) const {
  std::sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
    const double x = a.sum.g / a.sum.h, y = b.sum.g / b.sum.h;
    return x != y ? x < y : a.entry < b.entry;
  });
  Cell left;
  double gain;
  for (size_t k = 0; k + 1 < entries.size(); ++k) {
    left = left + entries[k].sum;
    if (improves(leaf, left, &gain)) take_first(gain, k + 1);
  }
}

void SplitSearch::search_categories(ContextLeaf& leaf, int64_t feature) const {
  const Cell* cells = leaf.histogram.data() + bins_.offset(feature);
  const int64_t n = bins_.offset(feature + 1) - bins_.offset(feature);
  std::vector<Entry> entries;
  for (int64_t bin = 0; bin < n; ++bin)
    if (cells[bin].h > 0) entries.push_back({bin, cells[bin]});
  search_sets(leaf, entries, [&](double gain, size_t n_left) {
    ContextSplit split{gain, static_cast<int32_t>(feature), 0, {0}, false};
    for (size_t k = 0; k < n_left; ++k) {
      if (entries[k].entry == 0)
        split.missing_left = true;
      else
        split.insert(entries[k].entry - 1);
    }
    leaf.best = std::move(split);
  });
}

void SplitSearch::search_labels(ContextLeaf& leaf, int place) const {
  std::vector<Entry> sums(static_cast<size_t>(shape_.n_labels) + 1);
  for (size_t k = 0; k < sums.size(); ++k) sums[k].entry = static_cast<int64_t>(k);
  for (const int32_t c : leaf.contexts) {
    Entry& own = sums[static_cast<size_t>(shape_.label_at(c, place))];
    own.sum = own.sum + leaf.by_context[static_cast<size_t>(c)];
  }
  if (leaf.has_none) sums.back().sum = leaf.by_context.back();
  std::erase_if(sums, [](const Entry& each) { return !(each.sum.h > 0); });
  search_sets(leaf, sums, [&](double gain, size_t n_left) {
    ContextSplit split{gain, static_cast<int32_t>(-2 - place), 0, {}, false};
    double left_weight = 0;
    for (size_t k = 0; k < n_left; ++k) left_weight += sums[k].sum.h;
    // What does not occur here, such as "none", goes to the side with more weight.
    if (left_weight * 2 > leaf.total.h)
      for (int64_t label = 0; label <= shape_.n_labels; ++label) split.insert(label);
    for (size_t k = 0; k < sums.size(); ++k) {
      if (k < n_left)
        split.insert(sums[k].entry);
      else
        split.erase(sums[k].entry);
    }
    leaf.best = std::move(split);
  });
}

}  // namespace crfx
