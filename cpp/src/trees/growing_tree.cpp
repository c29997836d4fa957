#include "trees/growing_tree.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace crfx {
namespace {

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

bool worse(const ContextLeaf& a, const ContextLeaf& b) {
  return a.best.gain != b.best.gain ? a.best.gain < b.best.gain : a.node > b.node;
}

}  // namespace

using Cell = Bins::Cell;

GrowingTree::GrowingTree(const Bins& bins, const FeatureRows& features, const ContextGrowth& growth,
                         const LabelSlopes& slopes)
    : bins_(bins),
      features_(features),
      growth_(growth),
      slopes_(slopes),
      shape_(slopes.shape),
      search_(bins, slopes.shape, growth.l2) {
  std::seed_seq seeds{static_cast<uint32_t>(growth_.seed),
                      static_cast<uint32_t>(growth_.seed >> 32),
                      static_cast<uint32_t>(slopes.label)};
  random_.seed(seeds);
}

void GrowingTree::begin(const int32_t* chosen, int64_t n_chosen) {
  ContextLeaf root;
  root.contexts.resize(static_cast<size_t>(slopes_.n_contexts));
  std::iota(root.contexts.begin(), root.contexts.end(), 0);
  root.rows.assign(chosen, chosen + n_chosen);
  slopes_.sum_rows(root);
  fresh_.push_back(std::move(root));
}

void GrowingTree::trim() {
  trimmed_ = trimming->take(fresh_[0]);
  trimming.reset();
}

void GrowingTree::tell_sums(Message& message) {
  if (fresh_.empty()) return;
  for (ContextLeaf& leaf : fresh_) {
    tell(message, &leaf.total, 1);
    message.add(&leaf.n_rows, 1);
  }
  message.add(occurs_.data(), occurs_.size());
}

void GrowingTree::settle() {
  if (fresh_.size() == 1)
    search_.set_least_weight(growth_.min_child_weight, fresh_[0].total.h);
  else if (fresh_.size() == 2)
    send_others();
  for (ContextLeaf& leaf : fresh_) leaf.node = add_node(leaf.total);
  if (fresh_.size() == 2) write_split();
  if (n_leaves_ == growth_.max_leaves) fresh_.clear();
}

int64_t GrowingTree::add_node(const Cell& total) {
  tree_.features.push_back(ContextTrees::kLeaf);
  tree_.left.push_back(0);
  tree_.right.push_back(0);
  tree_.thresholds.push_back(kNotANumber);
  tree_.missing_left.push_back(0);
  tree_.sets.push_back(-1);
  tree_.set_sizes.push_back(0);
  tree_.values.push_back(0);
  tree_.gains.push_back(0);
  tree_.weights.push_back(static_cast<float>(total.h));
  totals_.push_back(total);
  return static_cast<int64_t>(tree_.features.size()) - 1;
}

void GrowingTree::write_split() {
  const ContextSplit& split = parent_.best;
  const auto node = static_cast<size_t>(parent_.node);
  tree_.features[node] = split.feature;
  tree_.left[node] = static_cast<int32_t>(fresh_[0].node);
  tree_.right[node] = static_cast<int32_t>(fresh_[1].node);
  tree_.gains[node] = static_cast<float>(split.gain);
  tree_.missing_left[node] = split.missing_left;
  if (split.set.empty()) {
    tree_.thresholds[node] = bins_.upper_limit(split.feature, split.last_left);
  } else {
    tree_.sets[node] = static_cast<int64_t>(tree_.words.size());
    tree_.set_sizes[node] = static_cast<int32_t>(split.set.size());
    tree_.words.insert(tree_.words.end(), split.set.begin(), split.set.end());
  }
}

void GrowingTree::build() {
  if (fresh_.empty()) return;
  small_ = fresh_.size() == 2 && fresh_[1].n_rows < fresh_[0].n_rows ? 1 : 0;
  build_leaf(fresh_[small_]);
  if (fresh_.size() == 1) return;
  ContextLeaf& large = fresh_[1 - small_];
  if (is_narrow()) {
    build_leaf(large);
  } else {
    large.histogram = std::move(parent_.histogram);
    look_at_columns(large);
  }
}

void GrowingTree::build_leaf(ContextLeaf& leaf) {
  look_at_columns(leaf);
  leaf.histogram.assign(static_cast<size_t>(bins_.n_bins()), {});
  const auto n = static_cast<int64_t>(leaf.rows.size());
  if (is_narrow())
    bins_.add_some(leaf.rows.data(), leaf.g.data(), leaf.h.data(), n, leaf.features,
                   leaf.histogram.data());
  else
    bins_.add(leaf.rows.data(), leaf.g.data(), leaf.h.data(), n, leaf.histogram.data());
}

void GrowingTree::look_at_columns(ContextLeaf& leaf) {
  draw_columns(leaf);
  if (leaf.looks_at_labels()) slopes_.sum_contexts(leaf);
}

// The columns that a node searches: labels come first, then features.
void GrowingTree::draw_columns(ContextLeaf& leaf) {
  const int64_t n_columns = shape_.order + bins_.n_features(), n_seen = count_seen();
  std::vector<int64_t>& columns = leaf.columns;
  columns.resize(static_cast<size_t>(n_columns));
  std::iota(columns.begin(), columns.end(), 0);
  for (int64_t k = 0; k < n_seen && n_seen < n_columns; ++k) {  // the first of a shuffle
    const auto left = static_cast<uint64_t>(n_columns - k);
    std::swap(columns[static_cast<size_t>(k)],
              columns[static_cast<size_t>(k) + static_cast<size_t>(random_() % left)]);
  }
  columns.resize(static_cast<size_t>(n_seen));
  for (const int64_t column : columns)
    if (column >= shape_.order) leaf.features.push_back(column - shape_.order);
}

int64_t GrowingTree::count_seen() const {
  const auto n_columns = static_cast<double>(shape_.order + bins_.n_features());
  return std::max<int64_t>(1, std::llround(growth_.column_share * n_columns));
}

// Whether nodes search so few columns that sums over these alone cost less than the difference of
// the sums over all.
bool GrowingTree::is_narrow() const {
  return !bins_.is_sparse() && 2 * count_seen() < shape_.order + bins_.n_features();
}

void GrowingTree::tell_histograms(Message& message) {
  for (size_t k = 0; k < fresh_.size(); ++k) {
    ContextLeaf& leaf = fresh_[k];
    tell(message, leaf.by_context.data(), leaf.by_context.size());
    if (is_narrow())
      for (const int64_t f : leaf.features)
        tell(message, leaf.histogram.data() + bins_.offset(f),
             static_cast<size_t>(bins_.offset(f + 1) - bins_.offset(f)));
    else if (k == small_)
      tell(message, leaf.histogram.data(), leaf.histogram.size());
  }
}

void GrowingTree::search() {
  if (fresh_.size() == 2 && !is_narrow()) {
    std::vector<Cell>&large = fresh_[1 - small_].histogram, &small = fresh_[small_].histogram;
    for (size_t k = 0; k < large.size(); ++k) large[k] = large[k] - small[k];
  }
  for (ContextLeaf& leaf : fresh_) {
    search_.find(leaf);
    if (is_narrow()) leaf.histogram = {};  // its children cannot use it
    if (!leaf.best.found()) continue;
    open_.push_back(std::move(leaf));
    std::push_heap(open_.begin(), open_.end(), worse);
  }
  fresh_.clear();
}

void GrowingTree::divide() {
  if (open_.empty() || n_leaves_ >= growth_.max_leaves) return;
  std::pop_heap(open_.begin(), open_.end(), worse);
  parent_ = std::move(open_.back());
  open_.pop_back();
  fresh_.resize(2);
  if (parent_.best.feature >= 0)
    divide_rows();
  else
    divide_contexts();
  ++n_leaves_;
}

void GrowingTree::divide_rows() {
  const ContextSplit& split = parent_.best;
  for (ContextLeaf& side : fresh_) {
    side.contexts = parent_.contexts;
    side.has_none = parent_.has_none;
  }
  occurs_.assign(split.set.empty() ? 1 : kMostBins + 1, 0);
  for (size_t p = 0; p < parent_.rows.size(); ++p) {
    const int64_t bin = bins_.bin_of(parent_.rows[p], split.feature);
    const bool left = bin == 0            ? split.missing_left
                      : split.set.empty() ? bin <= split.last_left
                                          : split.has(bin - 1);
    if (static_cast<size_t>(bin) < occurs_.size() && parent_.h[p] > 0)
      occurs_[static_cast<size_t>(bin)] = 1;
    ContextLeaf& side = fresh_[left ? 0 : 1];
    side.rows.push_back(parent_.rows[p]);
    side.g.push_back(parent_.g[p]);
    side.h.push_back(parent_.h[p]);
  }
  for (ContextLeaf& side : fresh_) side.sum_up();
}

// Missing values and categories that do not occur here go to the side with more weight. Sums do not
// show what occurs: differences of histograms leave rounding errors.
void GrowingTree::send_others() {
  ContextSplit& split = parent_.best;
  if (split.feature < 0) return;
  const bool others_left = fresh_[0].total.h > fresh_[1].total.h;
  if (occurs_[0] == 0) split.missing_left = others_left;
  for (size_t bin = 1; bin < occurs_.size(); ++bin) {
    if (occurs_[bin] > 0) continue;
    if (others_left)
      split.insert(static_cast<int64_t>(bin) - 1);
    else
      split.erase(static_cast<int64_t>(bin) - 1);
  }
}

void GrowingTree::divide_contexts() {
  const ContextSplit& split = parent_.best;
  const int place = ContextTreesView::place_of(split.feature);
  occurs_.clear();
  for (const int32_t c : parent_.contexts)
    fresh_[split.has(shape_.label_at(c, place)) ? 0 : 1].contexts.push_back(c);
  const bool none_left = split.has(shape_.n_labels);
  for (size_t side = 0; side < 2; ++side) {
    fresh_[side].has_none = parent_.has_none && none_left == (side == 0);
    fresh_[side].rows = parent_.rows;
    slopes_.sum_rows(fresh_[side]);
  }
}

void GrowingTree::count_trimmed(bool is_first) {
  if (!is_first) totals_.assign(totals_.size(), {});
  RowReader reader(features_);
  for (const int32_t row : trimmed_) add_trimmed(row, reader.read(row));
}

void GrowingTree::add_trimmed(int32_t row, const float* x) {
  const ContextTreesView view = ContextTreesView::of(tree_);
  std::vector<int32_t> all(static_cast<size_t>(slopes_.n_contexts));
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::pair<int64_t, std::vector<int32_t>>> waiting;
  waiting.emplace_back(0, std::move(all));
  while (!waiting.empty()) {
    auto [node, reach] = std::move(waiting.back());
    waiting.pop_back();
    const int32_t feature = tree_.features[static_cast<size_t>(node)];
    if (feature == ContextTrees::kLeaf) {
      Cell& total = totals_[static_cast<size_t>(node)];
      total = total + slopes_.sum_row(reach, row);
    } else if (feature >= 0) {
      const bool left = view.goes_left(node, x[feature]);
      waiting.push_back({(left ? view.left : view.right)[node], std::move(reach)});
    } else if (!slopes_.all.has_context[row]) {
      const bool left = view.has(node, shape_.n_labels);
      waiting.push_back({(left ? view.left : view.right)[node], std::move(reach)});
    } else {
      std::vector<int32_t> sides[2];
      for (const int32_t c : reach)
        sides[view.has(node, shape_.label_at(c, view.place_of(feature))) ? 0 : 1].push_back(c);
      if (!sides[0].empty()) waiting.push_back({view.left[node], std::move(sides[0])});
      if (!sides[1].empty()) waiting.push_back({view.right[node], std::move(sides[1])});
    }
  }
}

ContextTrees GrowingTree::finish() {
  for (size_t node = 0; node < tree_.features.size(); ++node)
    if (tree_.features[node] == ContextTrees::kLeaf)
      tree_.values[node] = static_cast<float>(-totals_[node].g / search_.weight(totals_[node]));
  tree_.starts.push_back(static_cast<int64_t>(tree_.features.size()));
  return std::move(tree_);
}

}  // namespace crfx
