#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "crfx/context_trees.hpp"
#include "crfx/parallel.hpp"

namespace crfx {
namespace {

constexpr int64_t kLabelsAtOnce = 16;  // labels of a cache line
constexpr double kLeastGain = 1e-9, kLeastShare = 1e-10;
constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

using Cell = Bins::Cell;

Cell operator+(const Cell& a, const Cell& b) { return {a.g + b.g, a.h + b.h}; }
Cell operator-(const Cell& a, const Cell& b) { return {a.g - b.g, a.h - b.h}; }

// Where a node splits: at a bin of a feature, at a set of its bins, or at a set of labels.
struct Split {
  double gain = 0;
  int32_t feature = ContextTrees::kLeaf;
  int64_t last_left = 0;      // numbers: the last bin that goes left
  std::vector<uint64_t> set;  // categories or labels that go left
  bool missing_left = false;

  bool found() const { return feature != ContextTrees::kLeaf; }
  bool has(int64_t entry) const {
    return entry / 64 < static_cast<int64_t>(set.size()) &&
           (set[static_cast<size_t>(entry / 64)] >> (entry % 64) & 1);
  }
  void insert(int64_t entry) {
    if (static_cast<size_t>(entry / 64) >= set.size())
      set.resize(static_cast<size_t>(entry / 64) + 1);
    set[static_cast<size_t>(entry / 64)] |= uint64_t(1) << (entry % 64);
  }
  void erase(int64_t entry) {
    if (has(entry)) set[static_cast<size_t>(entry / 64)] &= ~(uint64_t(1) << (entry % 64));
  }
};

// The slopes of one label: gradient (and curvature) by row and context.
struct LabelSlopes {
  const float *edge, *edge_curvature;  // rows x contexts
  int64_t label;
};

// A node that may still split: rows, with the sums over the contexts that reach it.
struct Leaf {
  int64_t node = 0;
  std::vector<int32_t> rows;
  std::vector<float> g, h;
  std::vector<int32_t> contexts;  // that reach it, "none" aside
  bool has_none = true;
  Cell total;
  std::vector<Cell> histogram;
  std::vector<Cell> by_context;  // contexts; the last is "none"
  Split best;
};

class TreeGrowth {
 public:
  TreeGrowth(const Bins& bins, const FeatureRows& features, const ContextShape& shape,
             const ContextSlopes& slopes, const ContextGrowth& growth)
      : bins_(bins),
        features_(features),
        shape_(shape),
        slopes_(slopes),
        growth_(growth),
        n_contexts_(shape.n_contexts()) {}

  ContextTrees grow(const LabelSlopes& label, const int32_t* chosen, int64_t n_chosen) {
    label_ = label;
    tree_ = {};
    std::seed_seq seeds{static_cast<uint32_t>(growth_.seed),
                        static_cast<uint32_t>(growth_.seed >> 32),
                        static_cast<uint32_t>(label.label)};
    random_.seed(seeds);
    Leaf root;
    root.contexts.resize(static_cast<size_t>(n_contexts_));
    std::iota(root.contexts.begin(), root.contexts.end(), 0);
    root.rows.assign(chosen, chosen + n_chosen);
    sum_rows(root);
    const std::vector<int32_t> trimmed = trim(root);
    least_weight_ = std::max(growth_.min_child_weight, kLeastShare * root.total.h);
    build(root);
    root.node = add_node(root.total);
    grow_from(std::move(root));
    if (!trimmed.empty()) count_trimmed(trimmed);
    for (size_t node = 0; node < tree_.features.size(); ++node)
      if (tree_.features[node] == ContextTrees::kLeaf)
        tree_.values[node] = static_cast<float>(-totals_[node].g / weight(totals_[node]));
    tree_.starts.push_back(static_cast<int64_t>(tree_.features.size()));
    return std::move(tree_);
  }

 private:
  double weight(const Cell& sum) const { return std::max(sum.h + growth_.l2, 1e-300); }
  double worth(const Cell& sum) const { return sum.g * sum.g / weight(sum); }

  int64_t add_node(const Cell& total) {
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
    totals_.resize(tree_.features.size());
    totals_.back() = total;
    return static_cast<int64_t>(tree_.features.size()) - 1;
  }

  void grow_from(Leaf&& root) {
    const auto worse = [](const Leaf& a, const Leaf& b) {
      return a.best.gain != b.best.gain ? a.best.gain < b.best.gain : a.node > b.node;
    };
    std::vector<Leaf> open;
    const auto offer = [&](Leaf&& leaf) {
      if (!leaf.best.found()) return;
      open.push_back(std::move(leaf));
      std::push_heap(open.begin(), open.end(), worse);
    };
    offer(std::move(root));
    for (int n_leaves = 1; n_leaves < growth_.max_leaves && !open.empty(); ++n_leaves) {
      std::pop_heap(open.begin(), open.end(), worse);
      Leaf parent = std::move(open.back());
      open.pop_back();
      Leaf sides[2];
      const bool last = n_leaves + 1 == growth_.max_leaves;
      divide(parent, sides, last);
      if (last) break;
      for (Leaf& side : sides) offer(std::move(side));
    }
  }

  // Sums over the contexts that reach a leaf, for its rows; rows that have none of them go.
  void sum_rows(Leaf& leaf) const {
    leaf.g.resize(leaf.rows.size());
    leaf.h.resize(leaf.rows.size());
    size_t kept = 0;
    for (const int32_t row : leaf.rows) {
      if (slopes_.has_context[row] ? leaf.contexts.empty() : !leaf.has_none) continue;
      const Cell sum = sum_row(leaf, row);
      leaf.rows[kept] = row;
      leaf.g[kept] = static_cast<float>(sum.g);
      leaf.h[kept] = static_cast<float>(sum.h);
      ++kept;
    }
    leaf.rows.resize(kept);
    leaf.g.resize(kept);
    leaf.h.resize(kept);
    sum_up(leaf);
  }
  static void sum_up(Leaf& leaf) {
    leaf.total = {};
    for (size_t p = 0; p < leaf.rows.size(); ++p)
      leaf.total =
          leaf.total + Cell{static_cast<double>(leaf.g[p]), static_cast<double>(leaf.h[p])};
  }
  double weight_of(int32_t row) const {
    return slopes_.weights ? static_cast<double>(slopes_.weights[row]) : 1.0;
  }
  Cell at_none(int32_t row) const {
    const int64_t at = row * shape_.n_labels + label_.label;
    const double h =
        slopes_.node_curvature ? static_cast<double>(slopes_.node_curvature[at]) : weight_of(row);
    return {static_cast<double>(slopes_.node[at]), h};
  }
  Cell sum_row(const Leaf& leaf, int32_t row) const {
    if (!slopes_.has_context[row]) return at_none(row);
    const float* g = label_.edge + row * n_contexts_;
    double sum_g = 0, sum_h = 0;
    if (static_cast<int64_t>(leaf.contexts.size()) == n_contexts_)
      for (int64_t c = 0; c < n_contexts_; ++c) sum_g += static_cast<double>(g[c]);
    else
      for (const int32_t c : leaf.contexts) sum_g += static_cast<double>(g[c]);
    if (!label_.edge_curvature)
      return {sum_g, weight_of(row) * static_cast<double>(leaf.contexts.size())};
    const float* h = label_.edge_curvature + row * n_contexts_;
    for (const int32_t c : leaf.contexts) sum_h += static_cast<double>(h[c]);
    return {sum_g, sum_h};
  }

  // Takes rows out that together have at most a share of the absolute gradient and of the
  // curvature, those with the smallest gradients first; returns them.
  std::vector<int32_t> trim(Leaf& root) const {
    if (growth_.trimming <= 0) return {};
    std::vector<double> influence(root.rows.size());
    for (size_t p = 0; p < root.rows.size(); ++p) influence[p] = influence_of(root.rows[p]);
    std::vector<size_t> order(root.rows.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return influence[a] < influence[b]; });
    double allowed = growth_.trimming * std::accumulate(influence.begin(), influence.end(), 0.0);
    double allowed_weight = growth_.trimming * root.total.h;
    std::vector<uint8_t> goes(root.rows.size(), 0);
    for (const size_t p : order) {
      allowed -= influence[p];
      allowed_weight -= static_cast<double>(root.h[p]);
      if (allowed < 0 || allowed_weight < 0) break;
      goes[p] = 1;
    }
    std::vector<int32_t> trimmed;
    size_t kept = 0;
    for (size_t p = 0; p < root.rows.size(); ++p) {
      if (goes[p]) {
        trimmed.push_back(root.rows[p]);
        continue;
      }
      root.rows[kept] = root.rows[p];
      root.g[kept] = root.g[p];
      root.h[kept++] = root.h[p];
    }
    root.rows.resize(kept);
    root.g.resize(kept);
    root.h.resize(kept);
    sum_up(root);
    return trimmed;
  }
  double influence_of(int32_t row) const {
    if (!slopes_.has_context[row]) return std::fabs(at_none(row).g);
    double sum = 0;
    for (int64_t c = 0; c < n_contexts_; ++c)
      sum += std::fabs(static_cast<double>(label_.edge[row * n_contexts_ + c]));
    return sum;
  }
  // Leaves are worth what all rows say, also those that were left out of the search.
  void count_trimmed(const std::vector<int32_t>& trimmed) {
    const ContextTreesView view = ContextTreesView::of(tree_);
    RowReader reader(features_);
    std::vector<std::pair<int64_t, std::vector<int32_t>>> waiting;
    std::vector<int32_t> all(static_cast<size_t>(n_contexts_));
    std::iota(all.begin(), all.end(), 0);
    for (const int32_t row : trimmed) {
      const float* x = reader.read(row);
      waiting.assign(1, {0, all});
      while (!waiting.empty()) {
        auto [node, reach] = std::move(waiting.back());
        waiting.pop_back();
        const int32_t feature = tree_.features[static_cast<size_t>(node)];
        if (feature == ContextTrees::kLeaf) {
          Leaf part;
          part.contexts = std::move(reach);
          totals_[static_cast<size_t>(node)] =
              totals_[static_cast<size_t>(node)] + sum_row(part, row);
        } else if (feature >= 0) {
          const bool left = view.goes_left(node, x[feature]);
          waiting.push_back({(left ? view.left : view.right)[node], std::move(reach)});
        } else if (!slopes_.has_context[row]) {
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
  }

  void build(Leaf& leaf) {
    draw_columns();
    leaf.histogram.assign(static_cast<size_t>(bins_.n_bins()), {});
    const auto n = static_cast<int64_t>(leaf.rows.size());
    if (is_narrow())
      bins_.add_some(leaf.rows.data(), leaf.g.data(), leaf.h.data(), n, drawn_features_,
                     leaf.histogram.data());
    else
      bins_.add(leaf.rows.data(), leaf.g.data(), leaf.h.data(), n, leaf.histogram.data());
    search(leaf);
    if (is_narrow()) leaf.histogram = {};  // of no use to its children
  }

  // The columns that the next node looks at: labels come first, then features.
  void draw_columns() {
    const int64_t n_columns = shape_.order + bins_.n_features(), n_seen = count_seen();
    columns_.resize(static_cast<size_t>(n_columns));
    std::iota(columns_.begin(), columns_.end(), 0);
    for (int64_t k = 0; k < n_seen && n_seen < n_columns; ++k) {  // the first of a shuffle
      const auto left = static_cast<uint64_t>(n_columns - k);
      std::swap(columns_[static_cast<size_t>(k)],
                columns_[static_cast<size_t>(k) + static_cast<size_t>(random_() % left)]);
    }
    columns_.resize(static_cast<size_t>(n_seen));
    drawn_features_.clear();
    for (const int64_t column : columns_)
      if (column >= shape_.order) drawn_features_.push_back(column - shape_.order);
  }
  int64_t count_seen() const {
    const auto n_columns = static_cast<double>(shape_.order + bins_.n_features());
    return std::max<int64_t>(1, std::llround(growth_.column_share * n_columns));
  }
  // Whether nodes look at so few columns that sums over these alone cost less than the difference
  // of the sums over all.
  bool is_narrow() const {
    return !bins_.is_sparse() && 2 * count_seen() < shape_.order + bins_.n_features();
  }

  void sum_contexts(Leaf& leaf) const {
    leaf.by_context.assign(static_cast<size_t>(n_contexts_) + 1, {});
    std::vector<double> g(static_cast<size_t>(n_contexts_)), h;
    if (label_.edge_curvature) h.resize(g.size());
    double rows_weight = 0;
    for (const int32_t row : leaf.rows) {
      if (!slopes_.has_context[row]) {
        leaf.by_context.back() = leaf.by_context.back() + at_none(row);
        continue;
      }
      const float* own = label_.edge + row * n_contexts_;
      for (int64_t c = 0; c < n_contexts_; ++c) g[static_cast<size_t>(c)] += own[c];
      if (h.empty()) {
        rows_weight += weight_of(row);
      } else {
        const float* curved = label_.edge_curvature + row * n_contexts_;
        for (int64_t c = 0; c < n_contexts_; ++c) h[static_cast<size_t>(c)] += curved[c];
      }
    }
    for (const int32_t c : leaf.contexts)
      leaf.by_context[static_cast<size_t>(c)] = {
          g[static_cast<size_t>(c)], h.empty() ? rows_weight : h[static_cast<size_t>(c)]};
  }

  void search(Leaf& leaf) {
    leaf.best = {};
    leaf.best.gain = kLeastGain;
    if (drawn_features_.size() < columns_.size()) sum_contexts(leaf);
    for (const int64_t column : columns_) search_column(leaf, column);
  }
  void search_column(Leaf& leaf, int64_t column) const {
    const int64_t feature = column - shape_.order;
    if (feature < 0)
      search_labels(leaf, static_cast<int>(column));
    else if (bins_.is_category(feature))
      search_categories(leaf, feature);
    else
      search_numbers(leaf, feature);
  }

  // Whether to split so is better than what was found so far.
  bool improves(const Leaf& leaf, const Cell& left, double* gain) const {
    const Cell right = leaf.total - left;
    if (left.h < least_weight_ || right.h < least_weight_) return false;
    *gain = 0.5 * (worth(left) + worth(right) - worth(leaf.total));
    return *gain > leaf.best.gain;
  }

  void search_numbers(Leaf& leaf, int64_t feature) const {
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
  static void take(Leaf& leaf, double gain, int64_t feature, int64_t bin, bool missing_left) {
    leaf.best = {gain, static_cast<int32_t>(feature), bin, {}, missing_left};
  }

  // Sorted by slope, the best set is a first part of them (Fisher 1958); l2 changes nothing in
  // that.
  struct Entry {
    int64_t entry;
    Cell sum;
  };
  template <class Take>
  void search_sets(const Leaf& leaf, std::vector<Entry>& entries, Take&& take_first) const {
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

  void search_categories(Leaf& leaf, int64_t feature) const {
    const Cell* cells = leaf.histogram.data() + bins_.offset(feature);
    const int64_t n = bins_.offset(feature + 1) - bins_.offset(feature);
    std::vector<Entry> entries;
    for (int64_t bin = 0; bin < n; ++bin)
      if (cells[bin].h > 0) entries.push_back({bin, cells[bin]});
    search_sets(leaf, entries, [&](double gain, size_t n_left) {
      Split split{gain, static_cast<int32_t>(feature), 0, {0}, false};
      for (size_t k = 0; k < n_left; ++k) {
        if (entries[k].entry == 0)
          split.missing_left = true;
        else
          split.insert(entries[k].entry - 1);
      }
      leaf.best = std::move(split);
    });
  }

  void search_labels(Leaf& leaf, int place) const {
    std::vector<Entry> sums(static_cast<size_t>(shape_.n_labels) + 1);
    for (size_t k = 0; k < sums.size(); ++k) sums[k].entry = static_cast<int64_t>(k);
    for (const int32_t c : leaf.contexts) {
      Entry& own = sums[static_cast<size_t>(shape_.label_at(c, place))];
      own.sum = own.sum + leaf.by_context[static_cast<size_t>(c)];
    }
    if (leaf.has_none) sums.back().sum = leaf.by_context.back();
    std::erase_if(sums, [](const Entry& each) { return !(each.sum.h > 0); });
    search_sets(leaf, sums, [&](double gain, size_t n_left) {
      Split split{gain, static_cast<int32_t>(-2 - place), 0, {}, false};
      double left_weight = 0;
      for (size_t k = 0; k < n_left; ++k) left_weight += sums[k].sum.h;
      // What does not occur here, as "none" often does not, goes with the greater part.
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

  // Splits a leaf; the sides are searched unless they are the last.
  void divide(Leaf& parent, Leaf* sides, bool last) {
    const Split& split = parent.best;
    if (split.feature >= 0)
      divide_rows(parent, sides);
    else
      divide_contexts(parent, sides);
    const auto node = static_cast<size_t>(parent.node);
    for (int side = 0; side < 2; ++side) sides[side].node = add_node(sides[side].total);
    tree_.features[node] = split.feature;
    tree_.left[node] = static_cast<int32_t>(sides[0].node);
    tree_.right[node] = static_cast<int32_t>(sides[1].node);
    tree_.gains[node] = static_cast<float>(split.gain);
    tree_.missing_left[node] = split.missing_left;
    if (split.set.empty()) {
      tree_.thresholds[node] = bins_.upper_limit(split.feature, split.last_left);
    } else {
      tree_.sets[node] = static_cast<int64_t>(tree_.words.size());
      tree_.set_sizes[node] = static_cast<int32_t>(split.set.size());
      tree_.words.insert(tree_.words.end(), split.set.begin(), split.set.end());
    }
    if (!last) sum_sides(parent, sides);
  }
  void divide_rows(Leaf& parent, Leaf* sides) const {
    Split& split = parent.best;
    std::array<bool, Bins::kMostBins + 1> occurs{};
    for (int side = 0; side < 2; ++side) {
      sides[side].contexts = parent.contexts;
      sides[side].has_none = parent.has_none;
    }
    for (size_t p = 0; p < parent.rows.size(); ++p) {
      const int64_t bin = bins_.bin_of(parent.rows[p], split.feature);
      const bool left = bin == 0            ? split.missing_left
                        : split.set.empty() ? bin <= split.last_left
                                            : split.has(bin - 1);
      occurs[static_cast<size_t>(bin)] |= parent.h[p] > 0;
      Leaf& side = sides[left ? 0 : 1];
      side.rows.push_back(parent.rows[p]);
      side.g.push_back(parent.g[p]);
      side.h.push_back(parent.h[p]);
    }
    sum_up(sides[0]);
    sum_up(sides[1]);
    // What does not occur here, missing values and categories, goes with the greater part.  Sums do
    // not tell: differences of histograms leave crumbs.
    const bool others_left = sides[0].total.h > sides[1].total.h;
    if (!occurs[0]) split.missing_left = others_left;
    for (int64_t bin = 1; bin <= Bins::kMostBins && !split.set.empty(); ++bin) {
      if (occurs[static_cast<size_t>(bin)]) continue;
      if (others_left)
        split.insert(bin - 1);
      else
        split.erase(bin - 1);
    }
  }
  void divide_contexts(const Leaf& parent, Leaf* sides) const {
    const Split& split = parent.best;
    const int place = -2 - split.feature;
    for (const int32_t c : parent.contexts)
      sides[split.has(shape_.label_at(c, place)) ? 0 : 1].contexts.push_back(c);
    const bool none_left = split.has(shape_.n_labels);
    for (int side = 0; side < 2; ++side) {
      sides[side].has_none = parent.has_none && none_left == (side == 0);
      sides[side].rows = parent.rows;
      sum_rows(sides[side]);
    }
  }
  // The larger side has the histogram of the parent less that of the smaller.
  void sum_sides(Leaf& parent, Leaf* sides) {
    const int small = sides[0].rows.size() <= sides[1].rows.size() ? 0 : 1;
    build(sides[small]);
    Leaf& large = sides[1 - small];
    if (is_narrow()) {
      build(large);
      return;
    }
    large.histogram = std::move(parent.histogram);
    for (size_t k = 0; k < large.histogram.size(); ++k)
      large.histogram[k] = large.histogram[k] - sides[small].histogram[k];
    draw_columns();
    search(large);
  }

  const Bins& bins_;
  const FeatureRows& features_;
  const ContextShape& shape_;
  const ContextSlopes& slopes_;
  const ContextGrowth& growth_;
  int64_t n_contexts_;
  LabelSlopes label_{};
  double least_weight_ = 0;
  ContextTrees tree_;
  std::vector<Cell> totals_;  // by node
  std::mt19937_64 random_;
  std::vector<int64_t> columns_, drawn_features_;  // that the node at hand looks at
};

// Some labels of rows x contexts x labels as labels x rows x contexts, a block of rows at a time.
void gather_labels(const float* from, int64_t n_rows, int64_t n_contexts, int64_t n_labels,
                   int64_t begin, int64_t end, float* to, int n_threads) {
  constexpr int64_t kRows = 64;
  for_chunks((n_rows + kRows - 1) / kRows, n_threads, [&](int64_t chunk, Workspace&) {
    for (int64_t row = chunk * kRows; row < std::min(n_rows, (chunk + 1) * kRows); ++row)
      for (int64_t k = begin; k < end; ++k) {
        const float* source = from + row * n_contexts * n_labels + k;
        float* target = to + ((k - begin) * n_rows + row) * n_contexts;
        for (int64_t c = 0; c < n_contexts; ++c) target[c] = source[c * n_labels];
      }
  });
}

}  // namespace

ContextTrees grow_context_trees(const Bins& bins, const FeatureRows& rows,
                                const ContextShape& shape, const ContextSlopes& slopes,
                                const int32_t* chosen, int64_t n_chosen,
                                const ContextGrowth& growth, int n_threads) {
  const int64_t K = shape.n_labels, C = shape.n_contexts(), n = rows.n_rows;
  ContextTrees trees;
  for (int64_t begin = 0; begin < K; begin += kLabelsAtOnce) {
    const int64_t end = std::min(K, begin + kLabelsAtOnce);
    std::vector<float> edge(static_cast<size_t>((end - begin) * n * C)), curvature;
    gather_labels(slopes.edge, n, C, K, begin, end, edge.data(), n_threads);
    if (slopes.edge_curvature) {
      curvature.resize(edge.size());
      gather_labels(slopes.edge_curvature, n, C, K, begin, end, curvature.data(), n_threads);
    }
    std::vector<ContextTrees> grown(static_cast<size_t>(end - begin));
    for_chunks(end - begin, n_threads, [&](int64_t k, Workspace&) {
      TreeGrowth tree(bins, rows, shape, slopes, growth);
      const LabelSlopes label{edge.data() + k * n * C,
                              curvature.empty() ? nullptr : curvature.data() + k * n * C,
                              begin + k};
      grown[static_cast<size_t>(k)] = tree.grow(label, chosen, n_chosen);
    });
    for (const ContextTrees& each : grown) trees.append(each);
  }
  return trees;
}

}  // namespace crfx
