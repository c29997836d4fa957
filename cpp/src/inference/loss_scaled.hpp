// The loss-scaled sum over labellings (Volkovs et al. 2011, Eq. 5), exactly, for whole costs.
//
//   value = log sum_y exp(l(y) (1 + score(y) - score(truth))),   l(y) = unit x (sum of costs)
//
// does not factorise. But among the labellings of one total cost the scores are all scaled alike:
// one run of counting messages for each total that occurs.
//
// Curvature: with d_i = 1 where the labelling uses part i and the truth does not, or the reverse,
// and n the number of such parts, the Hessian is at most diag(E[n l^2 d_i]) (Cauchy-Schwarz). At
// most 2 parts differ per wrong position, and 2 per edge that touches one.
//
// Cost: cubic in the length for a Hamming loss.
#pragma once

#include "inference/counting_messages.hpp"

namespace crfx::CRFX_ISA {

// Total costs of a smaller share of the sum than this have no part in the gradient.
constexpr double kNegligible = 1e-18;

template <class S>
class LossScaled {
 public:
  LossScaled(const Instance<S>& inst, const WholeCosts& costs, Workspace& work)
      : inst_(inst),
        K_(inst.problem->n_labels),
        cost_(costs.cost + inst.first * K_),
        truth_(costs.truth + inst.first),
        unit_(costs.unit[inst.index]),
        most_(largest_total()),
        messages_(inst, cost_, most_, work) {
    shares_ = work.take<double>(most_ + 1);
    node_ = work.take<double>(K_);
    edge_ = work.take<double>(inst.problem->table_size());
    touched_ = work.take<int64_t>(inst.n);
    count_parts();
  }

  // The value; shares of the total costs are kept for the slopes.
  double value() {
    const double own = truth_score();
    if (own == kNever) fail_truth_forbidden(inst_.index);
    for (int64_t m = 0; m <= most_; ++m)
      shares_[m] = messages_.pass_up(m, loss(m)) + loss(m) * (1 - own);
    const double total = log_sum(shares_, most_ + 1);
    for (int64_t m = 0; m <= most_; ++m) shares_[m] = std::exp(shares_[m] - total);
    return total;
  }

  // Adds to gradients and curvatures, null where not wanted; after value().
  void add_slopes(const LossScaledOutputs<S>& out, double* edge_sum, double* curvature_sum) {
    const Problem<S>& p = *inst_.problem;
    const int64_t size = p.table_size();
    const double weight = out.weight ? out.weight[inst_.index] : 1;
    for (int64_t m = 1; m <= most_; ++m) {
      if (!(shares_[m] > kNegligible)) continue;
      messages_.pass_up(m, loss(m));
      messages_.pass_down();
      const double slope = shares_[m] * loss(m), square = slope * loss(m);
      for (int64_t v = 0; v < inst_.n; ++v) {
        const int64_t row = inst_.first + v;
        messages_.node_marginal(v, node_);
        node_[truth_[v]] -= 1;
        add(node_, K_, slope, out.node ? out.node + row * K_ : nullptr);
        add_size(node_, K_, 2 * wrong(m) * square,
                 out.node_curvature ? out.node_curvature + row * K_ : nullptr);
        if (!inst_.has_table(v) || out.edge_output == EdgeOutput::none) continue;
        messages_.edge_marginal(v, edge_);
        edge_[true_entry(v)] -= 1;
        const double curved = 2 * differing_edges(m) * square;
        if (out.edge_output == EdgeOutput::each) {
          add(edge_, size, slope, out.edge + row * size);
          add_size(edge_, size, curved,
                   out.edge_curvature ? out.edge_curvature + row * size : nullptr);
        } else {
          const int64_t type = p.sharing == Sharing::typed ? p.edge_types[row] : 0;
          add(edge_, size, weight * slope, edge_sum + type * size);
          add_size(edge_, size, weight * curved,
                   curvature_sum ? curvature_sum + type * size : nullptr);
        }
      }
    }
  }

 private:
  double loss(int64_t m) const { return static_cast<double>(m) * unit_; }

  template <class T>
  static void add(const double* x, int64_t n, double factor, T* to) {
    for (int64_t k = 0; to && k < n; ++k) to[k] += static_cast<T>(factor * x[k]);
  }
  template <class T>
  static void add_size(const double* x, int64_t n, double factor, T* to) {
    for (int64_t k = 0; to && k < n; ++k) to[k] += static_cast<T>(factor * std::fabs(x[k]));
  }

  int64_t largest_total() const {
    int64_t total = 0;
    for (int64_t v = 0; v < inst_.n; ++v) {
      int64_t most = 0;
      for (int64_t c = 0; c < K_; ++c) most = cost_[v * K_ + c] > most ? cost_[v * K_ + c] : most;
      total += most;
    }
    return total;
  }

  // The entry of the table of the edge above v that the truth uses.
  int64_t true_entry(int64_t v) const {
    if (inst_.parents) return truth_[inst_.parents[v]] * K_ + truth_[v];
    int64_t entry = 0;
    for (int64_t u = v - inst_.problem->order; u <= v; ++u) entry = entry * K_ + truth_[u];
    return entry;
  }

  double truth_score() const {
    const Problem<S>& p = *inst_.problem;
    double score = 0;
    for (int64_t v = 0; v < inst_.n; ++v) {
      score += static_cast<double>(inst_.node(v)[truth_[v]]);
      if (inst_.parent(v) < 0 && p.start) score += static_cast<double>(p.start[truth_[v]]);
      if (inst_.has_table(v)) score += static_cast<double>(inst_.raw_table(v)[true_entry(v)]);
    }
    if (!inst_.parents && p.end) score += static_cast<double>(p.end[truth_[inst_.n - 1]]);
    return score;
  }

  void count_parts() {
    least_ = most_ + 1, n_edges_ = 0, touching_ = 0;
    for (int64_t v = 0; v < inst_.n; ++v) touched_[v] = 0;
    for (int64_t v = 0; v < inst_.n; ++v) {
      for (int64_t c = 0; c < K_; ++c)
        if (c != truth_[v] && cost_[v * K_ + c] < least_) least_ = cost_[v * K_ + c];
      if (!inst_.has_table(v)) continue;
      ++n_edges_;
      if (inst_.parents)
        ++touched_[v], ++touched_[inst_.parents[v]];
      else
        for (int64_t u = v - inst_.problem->order; u <= v; ++u) ++touched_[u];
    }
    for (int64_t v = 0; v < inst_.n; ++v)
      touching_ = touched_[v] > touching_ ? touched_[v] : touching_;
  }
  // At most so many positions are wrong where the total cost is m; and so many edges differ.
  double wrong(int64_t m) const {
    const int64_t count = least_ > 0 ? m / least_ : inst_.n;
    return static_cast<double>(count < inst_.n ? count : inst_.n);
  }
  double differing_edges(int64_t m) const {
    const double count = wrong(m) * static_cast<double>(touching_);
    return count < static_cast<double>(n_edges_) ? count : static_cast<double>(n_edges_);
  }

  const Instance<S>& inst_;
  int64_t K_;
  const int32_t *cost_, *truth_;
  double unit_;
  int64_t most_;
  CountingMessages<S> messages_;
  double *shares_, *node_, *edge_;
  int64_t *touched_, least_ = 0, n_edges_ = 0, touching_ = 0;
};

}  // namespace crfx::CRFX_ISA
