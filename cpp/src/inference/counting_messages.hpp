// Messages along one chain of any order or one forest that distinguish labellings by their total
// cost, a sum over positions of whole numbers.
//
// As in messages.hpp, with one axis more: e, the cost so far. Scores are scaled by a factor that
// may differ from total to total. Products over branches are convolutions over e.
//
// Entries are logs in float64. A message is a product of a matrix of weights with a row of weights,
// both relative to their largest; where that underflows it is formed again from logs.
//
// Cost for a total of m: (m + 1) labels^(order+1) per position, (m + 1)^2 labels per branch.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "inference/instance.hpp"

namespace crfx::CRFX_ISA {

constexpr double kNever = -std::numeric_limits<double>::infinity();
// Weights are held at exp(-346) and above (pack.hpp). In sums above this, and times factors below
// its inverse, what is held has no part.
constexpr double kSafe = 1e-126;
constexpr double kLargestFactor = 290;  // -log kSafe

inline double log_sum(const double* x, int64_t n, int64_t step = 1) {
  double top = kNever;
  for (int64_t k = 0; k < n; ++k) top = x[k * step] > top ? x[k * step] : top;
  if (top == kNever) return kNever;
  double sum = 0;
  for (int64_t k = 0; k < n; ++k) sum += std::exp(x[k * step] - top);
  return top + std::log(sum);
}

// Messages for one total cost at a time.
template <class S>
class CountingMessages {
 public:
  // cost: labels of the instance's rows; `most` is the largest total to be asked for.
  CountingMessages(const Instance<S>& inst, const int32_t* cost, int64_t most, Workspace& work)
      : inst_(inst),
        K_(inst.problem->n_labels),
        W_(inst.problem->n_states()),
        size_(inst.problem->table_size()),
        cost_(cost) {
    const int64_t rows = (most + 1) * W_, all = inst.n * rows;
    below_ = work.take<double>(all);
    up_ = work.take<double>(all);
    before_ = work.take<double>(inst.branching ? all : 0);
    down_ = work.take<double>(all);
    rest_ = work.take<double>(all);
    product_ = work.take<double>(rows);
    weights_ = work.take<double>(W_);
    others_ = work.take<double>(W_);
    roots_ = work.take<double>((inst.n + 1) * (most + 1));
    outside_ = work.take<double>(most + 1);
    table_ = work.take<double>(size_);
    has_child_ = work.take<uint8_t>(inst.n);
  }

  // Log of the sum of exp(scale x score) over the labellings of total cost m.
  double pass_up(int64_t m, double scale) {
    m_ = m, L_ = m + 1, scale_ = scale, ready_ = nullptr;
    for (int64_t v = 0; v < inst_.n; ++v) has_child_[v] = 0;
    n_roots_ = 0;
    fill_one(root_total(0), 1);
    for (int64_t k = inst_.n - 1; k >= 0; --k) {
      const int64_t v = inst_.at(k);
      if (!has_child_[v]) fill_one(below(v), W_);
      weigh(v, below(v), below(v));
      if (inst_.parent(v) >= 0)
        send_up(v);
      else
        add_root(v);
    }
    return log_z_ = root_total(n_roots_)[m_];
  }

  // After pass_up.
  void pass_down() {
    fill_one(outside_, 1);
    for (int64_t k = 0; k < inst_.n; ++k) {
      const int64_t v = inst_.at(k);
      if (inst_.parent(v) >= 0)
        receive_down(v);
      else
        leave_out_root(v);
      weigh(v, down(v), rest(v));
    }
  }

  // P(label | total cost), K of them.
  void node_marginal(int64_t v, double* out) const {
    for (int64_t c = 0; c < K_; ++c) out[c] = 0;
    const int64_t states = inst_.n_states(v);
    for (int64_t e = 0; e < L_; ++e)
      for (int64_t s = 0; s < states; ++s) {
        const double x = below(v)[e * W_ + s] + down(v)[(m_ - e) * W_ + s];
        if (x > kNever) out[s % K_] += std::exp(x - log_z_);
      }
  }

  // P(labels of the edge above v | total cost), a table.
  void edge_marginal(int64_t v, double* out) {
    for (int64_t k = 0; k < size_; ++k) out[k] = 0;
    const EdgeShape s = inst_.shape(v);
    double shift;
    const double* table = weights_of_table(v, &shift);
    for (int64_t e = 0; e < L_; ++e) add_edge(v, e, s, shift, out);
    for (int64_t k = 0; k < size_; ++k) out[k] *= table[k];
    for (int64_t e = 0; e < L_; ++e) add_doubtful_edge(v, e, s, shift, out);
  }

 private:
  double* below(int64_t v) const { return below_ + v * L_ * W_; }
  double* up(int64_t v) const { return up_ + v * L_ * W_; }
  double* before(int64_t v) const { return before_ + v * L_ * W_; }
  double* down(int64_t v) const { return down_ + v * L_ * W_; }
  double* rest(int64_t v) const { return rest_ + v * L_ * W_; }
  double* root_total(int64_t k) const { return roots_ + k * L_; }
  // Everything but v's subtree, over the parent's states.
  const double* beside(int64_t v) const {
    return inst_.branching ? before(v) : rest(inst_.parent(v));
  }

  double scaled(double score) const { return score == kNever ? kNever : score * scale_; }

  // The constant 1: cost 0 for every state.
  void fill_one(double* x, int64_t width) const {
    for (int64_t k = 0; k < width; ++k) x[k] = 0;
    for (int64_t k = width; k < L_ * width; ++k) x[k] = kNever;
  }

  // to[e + cost, (r, c)] = from[e, (r, c)] + own score of c; from and to may be the same.
  void weigh(int64_t v, const double* from, double* to) const {
    const Problem<S>& p = *inst_.problem;
    const int64_t states = inst_.n_states(v);
    const bool first = inst_.parent(v) < 0, last = !inst_.parents && v == inst_.n - 1;
    for (int64_t c = 0; c < K_; ++c) {
      double own = static_cast<double>(inst_.node(v)[c]);
      if (first && p.start) own += static_cast<double>(p.start[c]);
      if (last && p.end) own += static_cast<double>(p.end[c]);
      own = scaled(own);
      const int64_t cost = cost_[v * K_ + c];
      for (int64_t e = L_ - 1; e >= 0; --e)
        for (int64_t s = c; s < states; s += K_)
          to[e * W_ + s] = e < cost ? kNever : from[(e - cost) * W_ + s] + own;
    }
  }

  // The scaled table of the edge above v as weights relative to exp(*shift); ones where none is.
  const double* weights_of_table(int64_t v, double* shift) {
    const S* raw = inst_.has_table(v) ? inst_.raw_table(v) : nullptr;
    if (raw && raw == ready_) return *shift = shift_, table_;
    ready_ = raw, shift_ = 0;
    if (!raw) {
      for (int64_t k = 0; k < size_; ++k) table_[k] = 1;
      return *shift = 0, table_;
    }
    for (int64_t k = 0; k < size_; ++k) table_[k] = scaled(static_cast<double>(raw[k]));
    const double top = maximum(table_, size_);
    shift_ = top > kNever ? top : 0;
    exp_shifted(table_, shift_, table_, size_);
    return *shift = shift_, table_;
  }
  double table_score(int64_t v, int64_t k) const {
    return inst_.has_table(v) ? scaled(static_cast<double>(inst_.raw_table(v)[k])) : 0;
  }

  // weights_ = x relative to its largest, which is returned.
  double weights_of_row(const double* x, int64_t n) {
    const double top = maximum(x, n);
    if (top > kNever) exp_shifted(x, top, weights_, n);
    return top;
  }

  void send_up(int64_t v) {
    const EdgeShape s = inst_.shape(v);
    const int64_t p = inst_.parent(v);
    double shift;
    const double* table = weights_of_table(v, &shift);
    for (int64_t e = 0; e < L_; ++e) {
      const double top = weights_of_row(below(v) + e * W_, s.R * s.C);
      double* to = up(v) + e * W_;
      for (int64_t ar = 0; ar < s.A * s.R; ++ar) {
        if (top == kNever) {
          to[ar] = kNever;
          continue;
        }
        const double sum = row_dot(table + ar * s.C, weights_ + (ar % s.R) * s.C, s.C);
        if (sum > kSafe) {
          to[ar] = std::log(sum) + top + shift;
          continue;
        }
        for (int64_t c = 0; c < s.C; ++c)
          others_[c] = table_score(v, ar * s.C + c) + below(v)[e * W_ + (ar % s.R) * s.C + c];
        to[ar] = log_sum(others_, s.C);
      }
    }
    multiply_into_parent(v, p);
  }
  static double row_dot(const double* x, const double* y, int64_t n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t k = 0; k < n; ++k) sum += x[k] * y[k];
    return sum;
  }

  void multiply_into_parent(int64_t v, int64_t p) {
    const int64_t states = inst_.n_states(p);
    if (!has_child_[p]) {
      if (inst_.branching) fill_one(before(v), W_);
      copy(up(v), below(p));
    } else {
      copy(below(p), before(v));
      convolve(before(v), up(v), below(p), states, W_);
    }
    has_child_[p] = 1;
  }

  // Roots in the order of the upward pass: totals of the first, of two, ...
  void add_root(int64_t v) {
    double* own = up(v);  // a root sends nothing up: its memory is free
    for (int64_t e = 0; e < L_; ++e) own[e] = log_sum(below(v) + e * W_, inst_.n_states(v));
    convolve(root_total(n_roots_), own, root_total(n_roots_ + 1), 1, 1);
    ++n_roots_;
  }
  // The same backwards: everything but v's tree.
  void leave_out_root(int64_t v) {
    --n_roots_;
    convolve(root_total(n_roots_), outside_, product_, 1, 1);
    for (int64_t e = 0; e < L_; ++e)
      for (int64_t s = 0; s < inst_.n_states(v); ++s) down(v)[e * W_ + s] = product_[e];
    convolve(outside_, up(v), product_, 1, 1);
    for (int64_t e = 0; e < L_; ++e) outside_[e] = product_[e];
  }

  void receive_down(int64_t v) {
    const int64_t p = inst_.parent(v);
    if (inst_.branching) {
      const int64_t states = inst_.n_states(p);
      convolve(before(v), rest(p), product_, states, W_);
      copy(product_, before(v));
      convolve(rest(p), up(v), product_, states, W_);
      copy(product_, rest(p));
    }
    const EdgeShape s = inst_.shape(v);
    double shift;
    const double* table = weights_of_table(v, &shift);
    for (int64_t e = 0; e < L_; ++e) {
      const double* from = beside(v) + e * W_;
      double* to = down(v) + e * W_;
      const double top = weights_of_row(from, s.A * s.R);
      for (int64_t rc = 0; rc < s.R * s.C; ++rc) to[rc] = 0;
      for (int64_t a = 0; a < s.A && top > kNever; ++a)
        for (int64_t r = 0; r < s.R; ++r) {
          const double weight = weights_[a * s.R + r];
          const double* row = table + (a * s.R + r) * s.C;
          CRFX_SIMD
          for (int64_t c = 0; c < s.C; ++c) to[r * s.C + c] += weight * row[c];
        }
      for (int64_t rc = 0; rc < s.R * s.C; ++rc) {
        if (to[rc] > kSafe) {
          to[rc] = std::log(to[rc]) + top + shift;
          continue;
        }
        for (int64_t a = 0; a < s.A; ++a)
          others_[a] = table_score(v, a * s.R * s.C + rc) + from[a * s.R + rc / s.C];
        to[rc] = log_sum(others_, s.A);
      }
    }
  }

  // out[e] = log sum_i exp(x[i] + y[e - i]), for every state; out is neither.
  void convolve(const double* x, const double* y, double* out, int64_t states, int64_t width) {
    for (int64_t e = 0; e < L_; ++e)
      for (int64_t s = 0; s < states; ++s) {
        double top = kNever, sum = 0;
        for (int64_t i = 0; i <= e; ++i) {
          const double z = x[i * width + s] + y[(e - i) * width + s];
          top = z > top ? z : top;
        }
        for (int64_t i = 0; i <= e && top > kNever; ++i)
          sum += std::exp(x[i * width + s] + y[(e - i) * width + s] - top);
        out[e * width + s] = top > kNever ? top + std::log(sum) : kNever;
      }
  }
  void copy(const double* from, double* to) const {
    for (int64_t k = 0; k < L_ * W_; ++k) to[k] = from[k];
  }

  // The log of what weights of the edge above v, cost e below it, are relative to.
  double edge_factor(int64_t v, int64_t e, const EdgeShape& s, double shift) const {
    const double above = maximum(beside(v) + (m_ - e) * W_, s.A * s.R),
                 inner = maximum(below(v) + e * W_, s.R * s.C);
    if (above == kNever || inner == kNever) return kNever;
    return above + inner + shift - log_z_;
  }
  // Adds all but the table's own weight.
  void add_edge(int64_t v, int64_t e, const EdgeShape& s, double shift, double* out) {
    const double factor = edge_factor(v, e, s, shift);
    if (factor == kNever || factor >= kLargestFactor) return;
    const double *from = beside(v) + (m_ - e) * W_, *inner = below(v) + e * W_;
    weights_of_row(inner, s.R * s.C);
    const double top = maximum(from, s.A * s.R);
    for (int64_t ar = 0; ar < s.A * s.R; ++ar) {
      const double weight = std::exp(from[ar] - top + factor);
      const double* row = weights_ + (ar % s.R) * s.C;
      double* to = out + ar * s.C;
      CRFX_SIMD
      for (int64_t c = 0; c < s.C; ++c) to[c] += weight * row[c];
    }
  }
  void add_doubtful_edge(int64_t v, int64_t e, const EdgeShape& s, double shift, double* out) {
    if (!(edge_factor(v, e, s, shift) >= kLargestFactor)) return;
    const double *from = beside(v) + (m_ - e) * W_, *inner = below(v) + e * W_;
    for (int64_t ar = 0; ar < s.A * s.R; ++ar)
      for (int64_t c = 0; c < s.C; ++c) {
        const double x = from[ar] + inner[(ar % s.R) * s.C + c] + table_score(v, ar * s.C + c);
        if (x > kNever) out[ar * s.C + c] += std::exp(x - log_z_);
      }
  }

  const Instance<S>& inst_;
  int64_t K_, W_, size_, m_ = 0, L_ = 1, n_roots_ = 0;
  double scale_ = 0, shift_ = 0, log_z_ = 0;
  const int32_t* cost_;
  const S* ready_ = nullptr;
  double *below_, *up_, *before_, *down_, *rest_, *product_, *weights_, *others_, *roots_,
      *outside_, *table_;
  uint8_t* has_child_;
};

}  // namespace crfx::CRFX_ISA
