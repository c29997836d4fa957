// The target of the model: the mean of alpha[y_i] over the truths, or over KL's target.
// Both depend on the gains alone and treat documents of equal gain alike: sums run over how many
// documents of each gain (a level) have their rank, not over the documents themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace crfx {

constexpr int64_t kMostStates = int64_t(1) << 16;  // of counts, as many as subsets of 16 documents

// Documents by falling gain, and where documents of equal gain begin and end among them.
class GainLevels {
 public:
  void set(const double* gains, int m);
  int m() const { return static_cast<int>(sorted.size()); }
  int count() const { return static_cast<int>(starts.size()) - 1; }
  int begin(int level) const { return starts[static_cast<size_t>(level)]; }
  int size(int level) const { return begin(level + 1) - begin(level); }
  // The k-th document.
  int document(int k) const { return sorted[static_cast<size_t>(k)]; }
  int64_t n_states() const;  // ways to have placed some of each, at most kMostStates + 1

  std::vector<int> sorted, starts;
};

// The target in terms of levels.
struct RankingTarget {
  std::vector<double> alpha;  // per level: the mean of alpha[y_i] for each of its documents
  double constant = 0;        // KL: the mean of log q under q
  double n_truths = 0;        // truths: how many there are
};

// Over the permutations of loss 0: gains fall along the ranks within the cut (0: no cut).
RankingTarget truth_target(const GainLevels& levels, const double* alpha, int64_t cut);

// Over q, proportional to exp(sum_i discount[y_i] worth_i / temperature). As the temperature falls
// to 0 it becomes the truths.
RankingTarget tempered_target(const GainLevels& levels, const double* worth, const double* alpha,
                              const double* discount, double temperature);

// Keeps targets of queries with the same gains: of six documents on three levels there are few.
class TargetMemo {
 public:
  // The stored target of these gains, or the result of make().
  template <class Make>
  const RankingTarget& get(const GainLevels& levels, const double* gains, Make&& make) {
    Slot& slot = slots_[find(levels, gains)];
    if (!slot.holds) {
      slot.target = make();
      slot.holds = true;
    }
    return slot.target;
  }

 private:
  struct Slot {
    std::vector<int> starts;
    std::vector<double> gains;
    RankingTarget target;
    bool holds = false;
  };
  // The slot of these gains, emptied if it held others.
  size_t find(const GainLevels& levels, const double* gains);

  std::vector<Slot> slots_ = std::vector<Slot>(256);
};

}  // namespace crfx
