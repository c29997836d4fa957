#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <random>

#include "crfx/context_search.hpp"
#include "crfx/context_trees.hpp"
#include "crfx/context_trimming.hpp"
#include "crfx/parallel.hpp"

namespace crfx {
namespace {

constexpr int64_t kLabelsAtOnce = 16;               // labels of a cache line
constexpr int64_t kCellsAtOnce = int64_t(1) << 27;  // of trees that grow in step: 2 GiB
constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

using Cell = Bins::Cell;

// A tree of one label, best split first. Every step ends in sums over rows; what comes next depends
// on the sums of all workers alone, and on draws that are the same for all.
class TreeGrowth {
 public:
  TreeGrowth(const Bins& bins, const FeatureRows& features, const ContextGrowth& growth,
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

  void begin(const int32_t* chosen, int64_t n_chosen) {
    ContextLeaf root;
    root.contexts.resize(static_cast<size_t>(slopes_.n_contexts));
    std::iota(root.contexts.begin(), root.contexts.end(), 0);
    root.rows.assign(chosen, chosen + n_chosen);
    slopes_.sum_rows(root);
    fresh_.push_back(std::move(root));
  }
  void begin_trimming() { trimming.emplace(fresh_[0], slopes_); }
  void allow_trimming() { trimming->allow(growth_.trimming, fresh_[0].total.h); }
  void trim() {
    trimmed_ = trimming->take(fresh_[0]);
    trimming.reset();
  }
  std::optional<Trimming> trimming;

  // Whether there are leaves of which not all is known.
  bool is_growing() const { return !fresh_.empty(); }
  void tell_sums(Message& message) {
    for (ContextLeaf& leaf : fresh_) {
      tell(message, &leaf.total, 1);
      message.add(&leaf.n_rows, 1);
    }
    message.add(occurs_.data(), occurs_.size());
  }
  // Makes nodes of the leaves whose sums are known.
  void settle() {
    if (fresh_.size() == 1)
      search_.set_least_weight(growth_.min_child_weight, fresh_[0].total.h);
    else if (fresh_.size() == 2)
      send_others();
    for (ContextLeaf& leaf : fresh_) leaf.node = add_node(leaf.total);
    if (fresh_.size() == 2) write_split();
    if (n_leaves_ == growth_.max_leaves) fresh_.clear();
  }
  // Sums by bin and by context. The larger side has the histogram of the parent less that of the
  // smaller.
  void build() {
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
  void tell_histograms(Message& message) {
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
  // Finds the best splits of the leaves whose histograms are known.
  void search() {
    if (fresh_.size() == 2 && !is_narrow()) {
      std::vector<Cell>&large = fresh_[1 - small_].histogram, &small = fresh_[small_].histogram;
      for (size_t k = 0; k < large.size(); ++k) large[k] = large[k] - small[k];
    }
    for (ContextLeaf& leaf : fresh_) {
      search_.find(leaf);
      if (is_narrow()) leaf.histogram = {};  // of no use to its children
      if (!leaf.best.found()) continue;
      open_.push_back(std::move(leaf));
      std::push_heap(open_.begin(), open_.end(), worse);
    }
    fresh_.clear();
  }
  // Splits the leaf that gains most.
  void divide() {
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

  // Leaves are worth what all rows say, also those that were left out of the search. Of several
  // workers the first counts the others as well.
  void count_trimmed(bool is_first) {
    if (!is_first) totals_.assign(totals_.size(), {});
    add_trimmed();
  }
  void tell_totals(Message& message) { tell(message, totals_.data(), totals_.size()); }
  ContextTrees finish() {
    for (size_t node = 0; node < tree_.features.size(); ++node)
      if (tree_.features[node] == ContextTrees::kLeaf)
        tree_.values[node] = static_cast<float>(-totals_[node].g / search_.weight(totals_[node]));
    tree_.starts.push_back(static_cast<int64_t>(tree_.features.size()));
    return std::move(tree_);
  }

 private:
  static bool worse(const ContextLeaf& a, const ContextLeaf& b) {
    return a.best.gain != b.best.gain ? a.best.gain < b.best.gain : a.node > b.node;
  }

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
    totals_.push_back(total);
    return static_cast<int64_t>(tree_.features.size()) - 1;
  }
  void write_split() {
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

  void build_leaf(ContextLeaf& leaf) {
    look_at_columns(leaf);
    leaf.histogram.assign(static_cast<size_t>(bins_.n_bins()), {});
    const auto n = static_cast<int64_t>(leaf.rows.size());
    if (is_narrow())
      bins_.add_some(leaf.rows.data(), leaf.g.data(), leaf.h.data(), n, leaf.features,
                     leaf.histogram.data());
    else
      bins_.add(leaf.rows.data(), leaf.g.data(), leaf.h.data(), n, leaf.histogram.data());
  }
  void look_at_columns(ContextLeaf& leaf) {
    draw_columns(leaf);
    if (leaf.looks_at_labels()) slopes_.sum_contexts(leaf);
  }
  // The columns that a node looks at: labels come first, then features.
  void draw_columns(ContextLeaf& leaf) {
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
  int64_t count_seen() const {
    const auto n_columns = static_cast<double>(shape_.order + bins_.n_features());
    return std::max<int64_t>(1, std::llround(growth_.column_share * n_columns));
  }
  // Whether nodes look at so few columns that sums over these alone cost less than the difference
  // of the sums over all.
  bool is_narrow() const {
    return !bins_.is_sparse() && 2 * count_seen() < shape_.order + bins_.n_features();
  }

  void divide_rows() {
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
  // What does not occur here, missing values and categories, goes with the greater part.  Sums do
  // not tell: differences of histograms leave crumbs.
  void send_others() {
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
  void divide_contexts() {
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

  void add_trimmed() {
    const ContextTreesView view = ContextTreesView::of(tree_);
    RowReader reader(features_);
    std::vector<std::pair<int64_t, std::vector<int32_t>>> waiting;
    std::vector<int32_t> all(static_cast<size_t>(slopes_.n_contexts));
    std::iota(all.begin(), all.end(), 0);
    for (const int32_t row : trimmed_) {
      const float* x = reader.read(row);
      waiting.assign(1, {0, all});
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
  }

  const Bins& bins_;
  const FeatureRows& features_;
  const ContextGrowth& growth_;
  LabelSlopes slopes_;
  const ContextShape& shape_;
  SplitSearch search_;
  ContextTrees tree_;
  std::vector<Cell> totals_;      // by node
  std::vector<int32_t> trimmed_;  // rows
  std::mt19937_64 random_;
  int n_leaves_ = 1;
  std::vector<ContextLeaf> open_;   // a heap of leaves that may split
  ContextLeaf parent_;              // that was split last
  std::vector<ContextLeaf> fresh_;  // its sides, or the root
  size_t small_ = 0;                // of these, the one with fewer rows
  std::vector<double> occurs_;      // bins of the feature by which it was split
};

// Trees that grow in step, so that what each of them tells is told at once.
class GrowthInStep {
 public:
  GrowthInStep(const Peers& peers, int n_threads) : peers_(peers), n_threads_(n_threads) {}
  std::vector<TreeGrowth> trees;

  void run(const int32_t* chosen, int64_t n_chosen, double trimming) {
    each([&](TreeGrowth& tree) { tree.begin(chosen, n_chosen); });
    share([](TreeGrowth& tree, Message& message) { tree.tell_sums(message); });
    if (trimming > 0) trim();
    while (std::any_of(trees.begin(), trees.end(), [](auto& tree) { return tree.is_growing(); })) {
      each([](TreeGrowth& tree) {
        tree.settle();
        tree.build();
      });
      share([](TreeGrowth& tree, Message& message) { tree.tell_histograms(message); });
      each([](TreeGrowth& tree) {
        tree.search();
        tree.divide();
      });
      share([](TreeGrowth& tree, Message& message) {
        if (tree.is_growing()) tree.tell_sums(message);
      });
    }
    if (trimming > 0) {
      each([&](TreeGrowth& tree) { tree.count_trimmed(peers_.rank == 0); });
      share([](TreeGrowth& tree, Message& message) { tree.tell_totals(message); });
    }
  }

 private:
  void trim() {
    each([](TreeGrowth& tree) { tree.begin_trimming(); });
    share([](TreeGrowth& tree, Message& message) { tree.trimming->tell_total(message); });
    each([](TreeGrowth& tree) { tree.allow_trimming(); });
    if (peers_.any()) {
      for (int step = 0; step < Trimming::kSteps; ++step) {
        share([](TreeGrowth& tree, Message& message) { tree.trimming->tell(message); });
        each([](TreeGrowth& tree) { tree.trimming->narrow(); });
      }
      share(
          [&](TreeGrowth& tree, Message& message) { tree.trimming->tell_equal(message, peers_); });
      each([&](TreeGrowth& tree) { tree.trimming->begin_after_others(peers_); });
    }
    each([](TreeGrowth& tree) { tree.trim(); });
    share([](TreeGrowth& tree, Message& message) { tree.tell_sums(message); });
  }
  template <class Step>
  void each(Step&& step) {
    for_chunks(static_cast<int64_t>(trees.size()), n_threads_,
               [&](int64_t k, Workspace&) { step(trees[static_cast<size_t>(k)]); });
  }
  template <class Tell>
  void share(Tell&& tell) {
    if (!peers_.any()) return;
    Message message;
    for (TreeGrowth& tree : trees) tell(tree, message);
    message.sum(peers_);
  }

  const Peers& peers_;
  int n_threads_;
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
                                const ContextGrowth& growth, int n_threads, const Peers& peers) {
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
    // Labels from `first` to `last`, counted from `begin`.
    const auto grow = [&](int64_t first, int64_t last, int threads) {
      GrowthInStep growing(peers, threads);
      for (int64_t k = first; k < last; ++k)
        growing.trees.emplace_back(
            bins, rows, growth,
            LabelSlopes{shape, slopes, begin + k, edge.data() + k * n * C,
                        curvature.empty() ? nullptr : curvature.data() + k * n * C});
      growing.run(chosen, n_chosen, growth.trimming);
      for (int64_t k = first; k < last; ++k)
        grown[static_cast<size_t>(k)] = growing.trees[static_cast<size_t>(k - first)].finish();
    };
    if (peers.any()) {
      const int64_t cells = std::max<int64_t>(1, bins.n_bins()) * growth.max_leaves;
      const int64_t at_once = std::max<int64_t>(1, kCellsAtOnce / cells);
      for (int64_t k = 0; k < end - begin; k += at_once)
        grow(k, std::min(k + at_once, end - begin), n_threads);
    } else {  // nobody waits for another tree
      for_chunks(end - begin, n_threads, [&](int64_t k, Workspace&) { grow(k, k + 1, 1); });
    }
    for (const ContextTrees& each : grown) trees.append(each);
  }
  return trees;
}

}  // namespace crfx
