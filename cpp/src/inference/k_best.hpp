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
#include <cstdint>
#include <limits>

#include "inference/decode.hpp"
#include "simd/kernels.hpp"

namespace crfx::CRFX_ISA {

// An array that grows; its numbers are in a workspace.
template <class T>
class Growing {
 public:
  explicit Growing(Workspace& work) : work_(work) {}
  void push(const T& x) {
    if (size == room_) {
      room_ = room_ ? 2 * room_ : 64;
      T* wider = work_.take<T>(room_);
      for (int64_t k = 0; k < size; ++k) wider[k] = data[k];
      data = wider;
    }
    data[size++] = x;
  }
  T* data = nullptr;
  int64_t size = 0;

 private:
  Workspace& work_;
  int64_t room_ = 0;
};

struct Candidate {
  double regret;
  int64_t base, step;  // agrees with labelling `base` before visit step `step`
  int32_t label;       // and takes this label there
};

// Ties are broken by the place of the deviation.
struct IsWorse {
  bool operator()(const Candidate& a, const Candidate& b) const {
    if (a.regret != b.regret) return a.regret > b.regret;
    if (a.base != b.base) return a.base > b.base;
    if (a.step != b.step) return a.step > b.step;
    return a.label > b.label;
  }
};

// Candidates in a heap, of which at most the `needed` best are taken.
class Candidates {
 public:
  explicit Candidates(Workspace& work) : heap_(work) {}
  bool empty() const { return heap_.size == 0; }
  // Only candidates of less regret can be among the best. Those of equal regret cannot: they come
  // in the order in which ties are broken.
  double limit() const { return limit_; }
  void push(const Candidate& c, int64_t needed) {
    constexpr int64_t kSpare = 32;
    heap_.push(c);
    std::push_heap(heap_.data, heap_.data + heap_.size, IsWorse());
    if (heap_.size - needed >= needed + kSpare) keep(needed);
  }
  Candidate pop() {
    std::pop_heap(heap_.data, heap_.data + heap_.size, IsWorse());
    return heap_.data[--heap_.size];
  }

 private:
  void keep(int64_t n) {
    const auto is_better = [](const Candidate& a, const Candidate& b) { return IsWorse()(b, a); };
    std::nth_element(heap_.data, heap_.data + n - 1, heap_.data + heap_.size, is_better);
    limit_ = heap_.data[n - 1].regret;
    heap_.size = n;
    std::make_heap(heap_.data, heap_.data + n, IsWorse());
  }

  Growing<Candidate> heap_;
  double limit_ = std::numeric_limits<double>::infinity();
};

template <class S>
class KBestSearch {
  struct Labelling {
    double score;
    int32_t* labels;
  };

 public:
  KBestSearch(Messages<MaxPlus<double>, S>& messages, int64_t k, Workspace& work)
      : m_(messages),
        work_(work),
        K_(messages.inst.problem->n_labels),
        k_(k),
        row_(work.take<double>(K_)),
        states_(work.take<int64_t>(messages.inst.n)),
        best_(work),
        candidates_(work) {}

  void run(LabellingSink& to) {
    complete({0, -1, -1, -1});
    while (best_.size < k_ && !candidates_.empty()) complete(candidates_.pop());
    // By their scores, which differ from the regrets by rounding: they are almost sorted.
    for (int64_t k = 0; k < best_.size; ++k) {
      Labelling own = best_.data[k];
      own.score = labelling_score(m_.inst, own.labels, states_);
      int64_t at = k;
      for (; at > 0 && best_.data[at - 1].score < own.score; --at)
        best_.data[at] = best_.data[at - 1];
      best_.data[at] = own;
    }
    for (int64_t k = 0; k < best_.size; ++k)
      to.take(m_.inst.index, best_.data[k].score, best_.data[k].labels);
  }

 private:
  // Writes out a candidate's labelling and offers the deviations that follow its own.
  void complete(const Candidate& from) {
    const auto& inst = m_.inst;
    auto* labels = work_.take<int32_t>(inst.n);
    const int64_t needed = k_ - best_.size - 1;  // after this labelling
    for (int64_t step = 0; step < inst.n; ++step) {
      const int64_t v = inst.at(step), p = inst.parent(v), above = p < 0 ? 0 : states_[p];
      if (step < from.step) {
        labels[v] = best_.data[from.base].labels[v];
      } else if (step == from.step) {
        labels[v] = from.label;
      } else {
        label_row(m_, v, above, row_);
        labels[v] = static_cast<int32_t>(first_largest(row_, K_));
        if (needed > 0) offer({from.regret, best_.size, step, labels[v]}, needed);
      }
      states_[v] = p < 0 ? labels[v] : next_state(inst, v, above, labels[v]);
    }
    best_.push({0, labels});
  }
  // Offers all labels at a step but the best one there, which `from` has.
  void offer(const Candidate& from, int64_t needed) {
    const double top = row_[from.label];
    over_row<double>(K_, [&](int64_t k, Bits<double> used) {
      const Pack<double> regret = from.regret + (top - load(row_ + k));
      const Bits<double> is_less = regret < candidates_.limit();
      for (unsigned set = lanes_set<double>(used & is_less); set; set &= set - 1) {
        const int lane = __builtin_ctz(set);
        const auto label = static_cast<int32_t>(k + lane);
        if (label == from.label || !(regret[lane] < candidates_.limit())) continue;
        candidates_.push({regret[lane], from.base, from.step, label}, needed);
      }
    });
  }

  Messages<MaxPlus<double>, S>& m_;
  Workspace& work_;
  int64_t K_, k_;
  double* row_;
  int64_t* states_;
  Growing<Labelling> best_;
  Candidates candidates_;
};

template <class S>
inline void best_labellings(const Instance<S>& inst, const LiftedTables<S>& lifted, int64_t k,
                            LabellingSink& to, Workspace& work) {
  if (inst.n == 0) {
    to.take(inst.index, 0.0, nullptr);
    return;
  }
  Messages<MaxPlus<double>, S> messages(inst, lifted, work);
  if (!messages.pass_up()) fail_no_labelling(inst.index);
  KBestSearch<S>(messages, k, work).run(to);
}

}  // namespace crfx::CRFX_ISA
