// Exact curvature multipliers: row sums of |H| over its diagonal (GBCRF, Eq. 9 and 10), in the form
//   gamma(event) = sum_s || P(part s | event) - P(part s | not event) ||_1
// which equals sum_j |H_ij| / H_ii and stays accurate where the event is nearly certain. Parts are
// nodes for node events and edges for edge events. Where the event is impossible or certain the row
// of H is zero, any multiplier is valid and 2, the least possible, is given.
// For a part further away than s the distance is that of the window state at its near end.
// Cost: quadratic in positions; for study and tests, not for training.
#pragma once

#include "inference/marginals.hpp"

namespace crfx::CRFX_ISA {

// mean = the rows k' != k weighted by weight[k']; returns the sum of those weights.
inline double mean_of_others(const double* rows, const double* weight, int64_t n, int64_t width,
                             int64_t k, double* mean) {
  double mass = 0;
  for (int64_t j = 0; j < width; ++j) mean[j] = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (i == k || !(weight[i] > 0)) continue;
    mass += weight[i];
    for (int64_t j = 0; j < width; ++j) mean[j] += weight[i] * rows[i * width + j];
  }
  for (int64_t j = 0; j < width && mass > 0; ++j) mean[j] /= mass;
  return mass;
}

inline double distance(const double* x, const double* y, int64_t n) {
  double sum = 0;
  for (int64_t j = 0; j < n; ++j) sum += std::fabs(x[j] - y[j]);
  return sum;
}

inline double sum_but(const double* x, int64_t n, int64_t k) {
  double sum = 0;
  for (int64_t j = 0; j < n; ++j)
    if (j != k) sum += x[j];
  return sum;
}

// Everything that exact multipliers need of an instance: state marginals and step conditionals.
template <class S>
class StateWalk {
  using M = Messages<LogSum, S>;

 public:
  StateWalk(M& messages, Workspace& work)
      : inst(messages.inst), W(inst.problem->n_states()), K(inst.problem->n_labels) {
    belief_ = work.take<double>(inst.n * W);
    next_ = work.take<double>(inst.n * W * K);
    previous_ = work.take<double>(inst.n * W * K);
    for (int64_t v = 0; v < inst.n; ++v) fill(messages, v);
  }
  const double* belief(int64_t v) const { return belief_ + v * W; }

  // to[(r, c)] at v from a distribution over the states of its parent, and the reverse.
  void forward(int64_t v, const double* from, double* to) const {
    for (int64_t s = 0; s < W; ++s) to[s] = 0;
    each_edge(v, [&](int64_t ar, int64_t rc, int64_t k) { to[rc] += from[ar] * next_[k]; });
  }
  void backward(int64_t v, const double* from, double* to) const {
    for (int64_t s = 0; s < W; ++s) to[s] = 0;
    each_edge(v, [&](int64_t ar, int64_t rc, int64_t k) { to[ar] += from[rc] * previous_[k]; });
  }
  // P(c | a, r) of the edge above v, K values.
  const double* next_row(int64_t v, int64_t ar) const { return next_ + (v * W + ar) * K; }

  const Instance<S>& inst;
  const int64_t W, K;

 private:
  template <class Visit>
  void each_edge(int64_t v, Visit&& visit) const {
    const EdgeShape s = inst.shape(v);
    for (int64_t a = 0; a < s.A; ++a)
      for (int64_t r = 0; r < s.R; ++r)
        for (int64_t c = 0; c < s.C; ++c)
          visit(a * s.R + r, r * s.C + c, (v * W + a * s.R + r) * K + c);
  }
  void fill(M& m, int64_t v) {
    for (int64_t s = 0; s < inst.n_states(v); ++s)
      belief_[v * W + s] = LogSum::ratio(m.down(v)[s], m.below(v)[s], 0, m.norm(v));
    if (inst.parent(v) < 0) return;
    double shift;
    const double* table = m.tables.get(v, &shift);
    each_edge(v, [&](int64_t ar, int64_t rc, int64_t k) {
      const double score = table ? table[ar * K + rc % K] : 0.0;
      next_[k] =
          LogSum::is_zero(m.up(v)[ar]) ? 0 : LogSum::ratio(score, m.below(v)[rc], 0, m.up(v)[ar]);
      previous_[k] = LogSum::is_zero(m.down(v)[rc])
                         ? 0
                         : LogSum::ratio(score, m.beside(v)[ar], 0, m.down(v)[rc]);
    });
  }
  double *belief_, *next_, *previous_;
};

// Walks away from position t with one distribution per start (rows x states), calling
// see(v, came from, rows): first at t itself, then at every other position of t's tree.
template <class S>
class Spread {
 public:
  Spread(const StateWalk<S>& walk, int64_t n_starts, Workspace& work)
      : walk_(walk), starts_(n_starts), size_(n_starts * walk.W) {
    rows_ = work.take<double>(walk.inst.n * size_);
    next_child_ = work.take<int64_t>(walk.inst.n);  // sibling lists
    first_child_ = work.take<int64_t>(walk.inst.n);
    queue_ = work.take<int64_t>(2 * walk.inst.n);
    for (int64_t v = 0; v < walk.inst.n; ++v) first_child_[v] = -1;
    for (int64_t v = 0; v < walk.inst.n; ++v) {
      const int64_t p = walk.inst.parent(v);
      if (p < 0) continue;
      next_child_[v] = first_child_[p];
      first_child_[p] = v;
    }
  }
  double* rows(int64_t v) const { return rows_ + v * size_; }

  template <class See>
  void from(int64_t t, See&& see) {
    int64_t head = 0, tail = 0;
    const auto push = [&](int64_t v, int64_t source) {
      queue_[2 * tail] = v;
      queue_[2 * tail++ + 1] = source;
    };
    push(t, -1);
    while (head < tail) {
      const int64_t v = queue_[2 * head], source = queue_[2 * head + 1];
      ++head;
      see(v, source, rows(v));
      const int64_t p = walk_.inst.parent(v);
      if (p >= 0 && p != source) {
        for (int64_t k = 0; k < starts_; ++k)
          walk_.backward(v, rows(v) + k * walk_.W, rows(p) + k * walk_.W);
        push(p, v);
      }
      for (int64_t c = first_child_[v]; c >= 0; c = next_child_[c]) {
        if (c == source) continue;
        for (int64_t k = 0; k < starts_; ++k)
          walk_.forward(c, rows(v) + k * walk_.W, rows(c) + k * walk_.W);
        push(c, v);
      }
    }
  }

 private:
  const StateWalk<S>& walk_;
  int64_t starts_, size_;
  double* rows_;
  int64_t *next_child_, *first_child_, *queue_;
};

// node_gamma (n x labels): starts are the labels of t.
template <class S>
inline void exact_node_gamma(const StateWalk<S>& walk, S* node_gamma, Workspace& work) {
  const int64_t K = walk.K, W = walk.W;
  Spread<S> spread(walk, K, work);
  double *p = work.take<double>(K), *labels = work.take<double>(K * K),
         *mean = work.take<double>(K);
  double* gamma = work.take<double>(K);
  for (int64_t t = 0; t < walk.inst.n; ++t) {
    const int64_t states = walk.inst.n_states(t);
    for (int64_t k = 0; k < K; ++k) p[k] = gamma[k] = 0;
    for (int64_t s = 0; s < states; ++s) p[s % K] += walk.belief(t)[s];
    for (int64_t k = 0; k < K; ++k)
      for (int64_t s = 0; s < states; ++s)
        spread.rows(t)[k * W + s] = s % K == k && p[k] > 0 ? walk.belief(t)[s] / p[k] : 0.0;
    spread.from(t, [&](int64_t v, int64_t, const double* rows) {
      for (int64_t k = 0; k < K * K; ++k) labels[k] = 0;
      for (int64_t k = 0; k < K; ++k)
        for (int64_t s = 0; s < walk.inst.n_states(v); ++s)
          labels[k * K + s % K] += rows[k * W + s];
      for (int64_t k = 0; k < K; ++k)
        if (p[k] > kImpossible<S> && mean_of_others(labels, p, K, K, k, mean) > kImpossible<S>)
          gamma[k] += distance(labels + k * K, mean, K);
    });
    for (int64_t k = 0; k < K; ++k)
      node_gamma[t * K + k] = static_cast<S>(gamma[k] > 0 ? gamma[k] : 2);
  }
}

// For every position t and state: the distances summed over the edges of t's tree, in total and
// through each neighbour. `through_parent[t]` goes up; `through[v]` goes from parent(v) down to v.
template <class S>
inline void edge_distances(const StateWalk<S>& walk, double* total, double* through_parent,
                           double* through, Workspace& work) {
  const int64_t W = walk.W, n = walk.inst.n;
  Spread<S> spread(walk, W, work);
  double *mean = work.take<double>(W), *apart = work.take<double>(n * W);
  int64_t* branch = work.take<int64_t>(n);
  for (int64_t k = 0; k < n * W; ++k) total[k] = through_parent[k] = through[k] = 0;
  for (int64_t t = 0; t < n; ++t) {
    const int64_t states = walk.inst.n_states(t), up = walk.inst.parent(t);
    for (int64_t k = 0; k < W * W; ++k) spread.rows(t)[k] = 0;
    for (int64_t s = 0; s < states; ++s) spread.rows(t)[s * W + s] = 1;
    spread.from(t, [&](int64_t v, int64_t source, const double* rows) {
      branch[v] = source < 0 ? -1 : source == t ? v : branch[source];
      for (int64_t s = 0; s < states; ++s) {
        const bool known =
            walk.belief(t)[s] > 0 && mean_of_others(rows, walk.belief(t), states, W, s, mean) > 0;
        apart[v * W + s] = known ? distance(rows + s * W, mean, W) : 0;
      }
      if (source < 0) return;
      // The edge between source and v; its near end is source. It carries a table or scores
      // nothing.
      const int64_t lower = walk.inst.parent(v) == source ? v : source;
      if (!walk.inst.has_table(lower)) return;
      double* side = branch[v] == up ? through_parent + t * W : through + branch[v] * W;
      for (int64_t s = 0; s < states; ++s) {
        side[s] += apart[source * W + s];
        total[t * W + s] += apart[source * W + s];
      }
    });
  }
}

// edge_gamma (n x table): 2 for the edge itself, and what lies beyond either end.
template <class S>
inline void exact_edge_gamma(const StateWalk<S>& walk, S* edge_gamma, Workspace& work) {
  const int64_t W = walk.W, K = walk.K, n = walk.inst.n;
  double *total = work.take<double>(n * W), *through_parent = work.take<double>(n * W);
  double* through = work.take<double>(n * W);
  edge_distances(walk, total, through_parent, through, work);
  for (int64_t v = 0; v < n; ++v) {
    if (!walk.inst.has_table(v)) continue;
    const int64_t p = walk.inst.parent(v), R = W / K;
    for (int64_t ar = 0; ar < W; ++ar)
      for (int64_t c = 0; c < K; ++c) {
        const int64_t rc = (ar % R) * K + c;
        const double upper = walk.belief(p)[ar],
                     not_upper = sum_but(walk.belief(p), walk.inst.n_states(p), ar);
        const double event = upper * walk.next_row(v, ar)[c];
        const double not_event = not_upper + upper * sum_but(walk.next_row(v, ar), K, c);
        const double not_lower = sum_but(walk.belief(v), walk.inst.n_states(v), rc);
        double gamma = 2;
        if (event > kImpossible<S> && not_event > kImpossible<S>)
          gamma += (not_lower * (total[v * W + rc] - through_parent[v * W + rc]) +
                    not_upper * (total[p * W + ar] - through[v * W + ar])) /
                   not_event;
        edge_gamma[(v * W + ar) * K + c] = static_cast<S>(gamma);
      }
  }
}

template <class S>
inline void exact_gamma(Messages<LogSum, S>& messages, S* node_gamma, S* edge_gamma,
                        Workspace& work) {
  StateWalk<S> walk(messages, work);
  exact_node_gamma(walk, node_gamma, work);
  exact_edge_gamma(walk, edge_gamma, work);
}

}  // namespace crfx::CRFX_ISA
