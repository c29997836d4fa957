#include <algorithm>
#include <vector>

#include "crfx/context_trees.hpp"
#include "crfx/parallel.hpp"
#include "trees/growing_tree.hpp"

namespace crfx {
namespace {

constexpr int64_t kLabelsAtOnce = 16;               // labels of a cache line
constexpr int64_t kCellsAtOnce = int64_t(1) << 26;  // of trees that grow in step: 1 GiB

// Trees that grow in step, so that their messages to other workers are sent together.
class GrowthInStep {
 public:
  GrowthInStep(const Workers& workers, int n_threads) : workers_(workers), n_threads_(n_threads) {}
  std::vector<GrowingTree> trees;

  void run(const int32_t* chosen, int64_t n_chosen, double trimming) {
    each([&](GrowingTree& tree) { tree.begin(chosen, n_chosen); });
    share([](GrowingTree& tree, Message& message) { tree.tell_sums(message); });
    if (trimming > 0) trim();
    const auto is_growing = [](const GrowingTree& tree) { return tree.is_growing(); };
    while (std::any_of(trees.begin(), trees.end(), is_growing)) {
      each([](GrowingTree& tree) {
        tree.settle();
        tree.build();
      });
      share([](GrowingTree& tree, Message& message) { tree.tell_histograms(message); });
      each([](GrowingTree& tree) {
        tree.search();
        tree.divide();
      });
      share([](GrowingTree& tree, Message& message) { tree.tell_sums(message); });
    }
    if (trimming > 0) {
      each([&](GrowingTree& tree) { tree.count_trimmed(workers_.rank == 0); });
      share([](GrowingTree& tree, Message& message) { tree.tell_totals(message); });
    }
  }

 private:
  void trim() {
    each([](GrowingTree& tree) { tree.begin_trimming(); });
    share([](GrowingTree& tree, Message& message) { tree.trimming->tell_total(message); });
    each([](GrowingTree& tree) { tree.allow_trimming(); });
    if (workers_.several()) {
      for (int step = 0; step < Trimming::kSteps; ++step) {
        share([](GrowingTree& tree, Message& message) { tree.trimming->tell(message); });
        each([](GrowingTree& tree) { tree.trimming->narrow(); });
      }
      share([&](GrowingTree& tree, Message& message) {
        tree.trimming->tell_equal(message, workers_);
      });
      each([&](GrowingTree& tree) { tree.trimming->begin_after_others(workers_); });
    }
    each([](GrowingTree& tree) { tree.trim(); });
    share([](GrowingTree& tree, Message& message) { tree.tell_sums(message); });
  }
  template <class Step>
  void each(Step&& step) {
    for_chunks(static_cast<int64_t>(trees.size()), n_threads_,
               [&](int64_t k, Workspace&) { step(trees[static_cast<size_t>(k)]); });
  }
  template <class Tell>
  void share(Tell&& tell) {
    if (!workers_.several()) return;
    Message message;
    for (GrowingTree& tree : trees) tell(tree, message);
    message.sum(workers_);
  }

  const Workers& workers_;
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
                                const ContextGrowth& growth, int n_threads,
                                const Workers& workers) {
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
      GrowthInStep growing(workers, threads);
      for (int64_t k = first; k < last; ++k)
        growing.trees.emplace_back(
            bins, rows, growth,
            LabelSlopes{shape, slopes, begin + k, edge.data() + k * n * C,
                        curvature.empty() ? nullptr : curvature.data() + k * n * C});
      growing.run(chosen, n_chosen, growth.trimming);
      for_chunks(last - first, threads, [&](int64_t k, Workspace&) {
        grown[static_cast<size_t>(first + k)] = growing.trees[static_cast<size_t>(k)].finish();
      });
    };
    if (workers.several()) {
      const int64_t cells = std::max<int64_t>(1, bins.n_bins()) * growth.max_leaves;
      const int64_t at_once = std::max<int64_t>(1, kCellsAtOnce / cells);
      for (int64_t k = 0; k < end - begin; k += at_once)
        grow(k, std::min(k + at_once, end - begin), n_threads);
    } else {  // no tree waits for another
      for_chunks(end - begin, n_threads, [&](int64_t k, Workspace&) { grow(k, k + 1, 1); });
    }
    for (const ContextTrees& each : grown) trees.append(each);
  }
  return trees;
}

}  // namespace crfx
