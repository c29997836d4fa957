// The k best labellings of one instance, exact, distinct and sorted.
//
// After an upward max-product pass the regret of giving v label c, its parent being in some state,
// is how much the best completion loses by it; a labelling scores best - sum of its regrets. Fixing
// labels in visit order, every labelling but the best deviates for a last time somewhere and is
// greedy afterwards. So: pop the candidate of least total regret, complete it greedily, and offer
// every deviation after its own last one. Each labelling arises exactly once (Lawler 1972).
// Cost: one max-product pass, then positions x labels per labelling.
#pragma once

#include <algorithm>
#include <queue>
#include <vector>

#include "inference/decode.hpp"

namespace crfx {

struct Ranked {
  double score;
  std::vector<int32_t> labels;
};

}  // namespace crfx

namespace crfx::CRFX_ISA {

template <class S>
class Ranking {
  struct Candidate {
    double regret;
    int64_t base, step;  // agrees with labelling `base` before visit step `step`
    int32_t label;       // and takes this label there
    // Worse first, for the heap; ties by where the deviation lies.
    bool operator<(const Candidate& other) const {
      if (regret != other.regret) return regret > other.regret;
      if (base != other.base) return base > other.base;
      if (step != other.step) return step > other.step;
      return label > other.label;
    }
  };

 public:
  Ranking(Messages<MaxPlus<double>, S>& messages, int64_t k)
      : m_(messages),
        K_(messages.inst.problem->n_labels),
        k_(static_cast<size_t>(k)),
        row_(static_cast<size_t>(K_)),
        states_(static_cast<size_t>(messages.inst.n)) {}

  std::vector<Ranked> run() {
    complete({0, -1, -1, -1});
    while (found_.size() < k_ && !heap_.empty()) {
      const Candidate next = heap_.top();
      heap_.pop();
      complete(next);
    }
    for (Ranked& r : found_) r.score = labelling_score(m_.inst, r.labels.data(), states_.data());
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Ranked& a, const Ranked& b) { return a.score > b.score; });
    return std::move(found_);
  }

 private:
  // Writes out a candidate's labelling and offers the deviations that follow its own.
  void complete(const Candidate& from) {
    const auto& inst = m_.inst;
    const auto base = static_cast<int64_t>(found_.size());
    std::vector<int32_t> labels(static_cast<size_t>(inst.n));
    std::vector<Candidate> offers;
    for (int64_t step = 0; step < inst.n; ++step) {
      const auto v = static_cast<size_t>(inst.at(step));
      const int64_t p = inst.parent(static_cast<int64_t>(v));
      const int64_t above = p < 0 ? 0 : states_[static_cast<size_t>(p)];
      if (step < from.step) {
        labels[v] = found_[static_cast<size_t>(from.base)].labels[v];
      } else {
        label_row(m_, static_cast<int64_t>(v), above, row_.data());
        const auto best = static_cast<int32_t>(first_largest(row_.data(), K_));
        labels[v] = step == from.step ? from.label : best;
        if (step > from.step) offer(from.regret, base, step, best, offers);
      }
      states_[v] = p < 0 ? labels[v] : next_state(inst, static_cast<int64_t>(v), above, labels[v]);
    }
    found_.push_back({0, std::move(labels)});
    keep_best(offers);
    for (const Candidate& c : offers) heap_.push(c);
  }
  void offer(double regret, int64_t base, int64_t step, int32_t best,
             std::vector<Candidate>& offers) {
    for (int32_t c = 0; c < K_; ++c) {
      const double loss = row_[static_cast<size_t>(best)] - row_[static_cast<size_t>(c)];
      if (c != best && loss < std::numeric_limits<double>::infinity())
        offers.push_back({regret + loss, base, step, c});
    }
    if (offers.size() > 4 * (k_ + 256)) keep_best(offers);
  }
  // No more than k offers of one labelling can ever be taken.
  void keep_best(std::vector<Candidate>& offers) const {
    if (offers.size() <= k_) return;
    std::nth_element(offers.begin(), offers.begin() + static_cast<std::ptrdiff_t>(k_), offers.end(),
                     [](const Candidate& a, const Candidate& b) { return b < a; });
    offers.resize(k_);
  }

  Messages<MaxPlus<double>, S>& m_;
  int64_t K_;
  size_t k_;
  std::vector<double> row_;
  std::vector<int64_t> states_;
  std::vector<Ranked> found_;
  std::priority_queue<Candidate> heap_;
};

template <class S>
inline std::vector<Ranked> best_labellings(const Instance<S>& inst, const LiftedTables<S>& lifted,
                                           int64_t k, Workspace& work) {
  check_scores(inst);
  if (inst.n == 0) return {{0.0, {}}};
  Messages<MaxPlus<double>, S> messages(inst, lifted, work);
  if (!messages.pass_up()) fail_no_labelling(inst.index);
  return Ranking<S>(messages, k).run();
}

}  // namespace crfx::CRFX_ISA
