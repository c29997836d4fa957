// Curvature multipliers of chains of order n >= 2 from n-step mixing rates.
//
// The window state S_t = (y_{t-n+1}, .., y_t) is an ordinary Markov chain, but one step of it never
// mixes: n - 1 labels are carried over. n steps do. With
//   alpha^(m)_t = 1 - sum_{c_1..c_m} min_a P(y_{t+1..t+m} = c | S_t = a),   m = 1..n
// a difference at S_t reaches y_{t+m} reduced by alpha^(m)_t and the whole of S_{t+n} by
// alpha^(n)_t, and TV(S_t given y_t = k, S_t) = 1 - p_k as at order 1. Hence, N positions,
//   beta_t = sum_{m <= min(n, N-1-t)} alpha^(m)_t + alpha^(n)_t beta_{t+n}     (nodes, forward)
//   eps_t  = min(n, N-1-t)                       + alpha^(n)_t eps_{t+n}       (edges, forward)
// and the same backward; docs/decisions/0004 has the proof. The minimum over a is taken label by
// label, oldest first: with M_0 = 1 on possible states, M_m[r, c] = min_a M_{m-1}[a, r] P(c | a,
// r). Cost: n labels^(n+1) a position (mixing), labels^(3n) (dobrushin).
#pragma once

#include "curvature/mixing_forest.hpp"

namespace crfx::CRFX_ISA {

// Steps the window forward or backward and measures how much of a difference survives.
template <class M>
class WindowRates {
  using P = typename M::Arithmetic;
  using V = typename M::V;

 public:
  WindowRates(M& messages, Workspace& work)
      : m_(messages),
        n_(messages.inst.problem->order),
        K_(messages.inst.problem->n_labels),
        W_(messages.inst.problem->n_states()),
        from_(work.take<V>(W_)),
        to_(work.take<V>(W_)),
        weight_(work.take<V>(W_)),
        floor_(work.take<V>(W_)),
        work_(work) {}

  // alpha[m - 1], m = 1..steps, from the window that ends (forward) or starts (backward) at t.
  void mixing(int64_t t, bool forward, int64_t steps, double* alpha) {
    start(t, forward);
    for (int64_t m = 1; m <= steps; ++m) {
      step(forward ? t + m : t + n_ - m, forward);
      V* done = from_;
      from_ = to_;
      to_ = done;
      alpha[m - 1] = clip01(1 - shared_mass(m, forward));
    }
  }

  // The same by total variation between all pairs of possible states.
  void dobrushin_rates(int64_t t, bool forward, int64_t steps, double* alpha) {
    if (!rows_) {
      rows_ = work_.take<V>(W_ * W_);
      next_ = work_.take<V>(W_ * W_);
      possible_ = work_.take<uint8_t>(W_);
    }
    start(t, forward);
    for (int64_t s = 0; s < W_; ++s) possible_[s] = from_[s] < P::excluded;
    for (int64_t s = 0; s < W_ * W_; ++s) rows_[s] = 0;
    for (int64_t s = 0; s < W_; ++s) rows_[s * W_ + s] = 1;
    for (int64_t m = 1; m <= steps; ++m) {
      push_rows(forward ? t + m : t + n_ - m, forward);
      collect_outcomes(m, forward);
      alpha[m - 1] = dobrushin(next_, possible_, W_, power(m));
    }
  }

 private:
  int64_t power(int64_t m) const {
    int64_t x = 1;
    while (m-- > 0) x *= K_;
    return x;
  }
  // The full window's position, named by its last label.
  int64_t window(int64_t t, bool forward) const { return forward ? t : t + n_ - 1; }

  void start(int64_t t, bool forward) {
    const int64_t w = window(t, forward);
    for (int64_t s = 0; s < W_; ++s) {
      const V p = P::ratio(m_.down(w)[s], m_.below(w)[s], P::one, m_.norm(w));
      from_[s] = p > V(kImpossible<typename M::Score>) ? P::one : P::excluded;
    }
  }
  // P(c | a, r) and P(a | r, c) of the edge that ends at v; zero after an impossible state.
  V next_given(int64_t v, const V* table, int64_t ar, int64_t rc) const {
    return P::is_zero(m_.up(v)[ar])
               ? V(0)
               : P::ratio(table[ar * K_ + rc % K_], m_.below(v)[rc], P::one, m_.up(v)[ar]);
  }
  V previous_given(int64_t v, const V* table, int64_t ar, int64_t rc) const {
    return P::is_zero(m_.down(v)[rc])
               ? V(0)
               : P::ratio(table[ar * K_ + rc % K_], m_.beside(v)[ar], P::one, m_.down(v)[rc]);
  }
  // Calls visit(state (a, r), state (r, c), table) for every window edge.
  template <class Visit>
  void for_edges(Visit&& visit) const {
    const int64_t R = W_ / K_;
    for (int64_t a = 0; a < K_; ++a)
      for (int64_t r = 0; r < R; ++r)
        for (int64_t c = 0; c < K_; ++c) visit(a * R + r, r * K_ + c);
  }
  // to = evidence x min over the old label of from x table / total. Forward the old label is the
  // oldest of (a, r), total = up and evidence = below; backward the newest of (r, c), down, beside.
  void step(int64_t v, bool forward) {
    double shift;
    const V* table = m_.tables.get(v, &shift);
    const V *total = forward ? m_.up(v) : m_.down(v),
            *evidence = forward ? m_.below(v) : m_.beside(v);
    for (int64_t s = 0; s < W_; ++s) {
      const bool left_out = from_[s] >= P::excluded;
      weight_[s] =
          left_out || P::is_zero(total[s]) ? P::zero : P::times(from_[s], P::inverse(total[s]));
      floor_[s] = left_out ? P::excluded : P::zero;
    }
    const EdgeShape shape = {K_, W_ / K_, K_};
    forward ? P::least_down(table, weight_, floor_, to_, shape)
            : P::least_up(table, weight_, floor_, to_, shape);
    for (int64_t s = 0; s < W_; ++s)
      to_[s] = to_[s] < P::excluded ? P::times(to_[s], evidence[s]) : P::excluded;
  }
  // sum over the m new labels of the minimum over the n - m old ones; new labels are the last of
  // the state going forward, the first going backward.
  double shared_mass(int64_t m, bool forward) const {
    const int64_t fresh = power(m), old = W_ / fresh;
    double sum = 0;
    for (int64_t c = 0; c < fresh; ++c) {
      V least = P::excluded;
      for (int64_t a = 0; a < old; ++a) {
        const V x = forward ? from_[a * fresh + c] : from_[c * old + a];
        least = x < least ? x : least;
      }
      sum += least < P::excluded ? static_cast<double>(P::linear(least)) : 0.0;
    }
    return sum;
  }
  void push_rows(int64_t v, bool forward) {
    double shift;
    const V* table = m_.tables.get(v, &shift);
    for (int64_t s = 0; s < W_ * W_; ++s) next_[s] = 0;
    for_edges([&](int64_t ar, int64_t rc) {
      const int64_t from = forward ? ar : rc, to = forward ? rc : ar;
      const V p = forward ? next_given(v, table, ar, rc) : previous_given(v, table, ar, rc);
      for (int64_t s = 0; s < W_; ++s) next_[s * W_ + to] += rows_[s * W_ + from] * p;
    });
    V* done = rows_;
    rows_ = next_;
    next_ = done;
  }
  // Distribution of the m new labels alone, for every start: next_ as states x labels^m.
  void collect_outcomes(int64_t m, bool forward) {
    const int64_t fresh = power(m), old = W_ / fresh;
    for (int64_t s = 0; s < W_ * fresh; ++s) next_[s] = 0;
    for (int64_t s = 0; s < W_; ++s)
      for (int64_t k = 0; k < W_; ++k)
        next_[s * fresh + (forward ? k % fresh : k / old)] += rows_[s * W_ + k];
  }

  M& m_;
  int64_t n_, K_, W_;
  V *from_, *to_, *weight_, *floor_;
  V *rows_ = nullptr, *next_ = nullptr;
  uint8_t* possible_ = nullptr;
  Workspace& work_;
};

// beta and eps of every position in one direction. `far(t)` counts positions beyond t.
template <class M>
inline void window_messages(M& messages, bool use_dobrushin, bool forward, double* beta,
                            double* eps, Workspace& work) {
  const int64_t N = messages.inst.n, n = messages.inst.problem->order;
  WindowRates<M> rates(messages, work);
  double* alpha = work.take<double>(n);
  for (int64_t k = N - 1; k >= 0; --k) {
    // k positions have been passed on this walk, N - 1 - k lie ahead; t mirrors k going backward.
    const int64_t t = forward ? k : N - 1 - k, ahead = N - 1 - k;
    const int64_t steps = ahead < n ? ahead : n;
    beta[t] = eps[t] = 0;
    if (k < n - 1) {  // no full window ends here: use the first one that does
      const int64_t first = n - 1 < N ? n - 1 : N - 1;
      const int64_t at = forward ? first : N - 1 - first;
      beta[t] = static_cast<double>(first - k) + (n - 1 < N ? beta[at] : 0.0);
      continue;
    }
    if (use_dobrushin)
      rates.dobrushin_rates(t, forward, steps, alpha);
    else
      rates.mixing(t, forward, steps, alpha);
    for (int64_t m = 0; m < steps; ++m) beta[t] += alpha[m];
    eps[t] = static_cast<double>(steps);
    if (ahead >= n) {
      const int64_t next = forward ? t + n : t - n;
      beta[t] += alpha[n - 1] * beta[next];
      eps[t] += alpha[n - 1] * eps[next];
    }
  }
}

template <class M, class S>
inline void chain_gamma(M& messages, bool use_dobrushin, S* node_gamma, S* edge_gamma,
                        Workspace& work) {
  const int64_t N = messages.inst.n, n = messages.inst.problem->order;
  double *beta_ahead = work.take<double>(N), *eps_ahead = work.take<double>(N);
  double *beta_back = work.take<double>(N), *eps_back = work.take<double>(N);
  window_messages(messages, use_dobrushin, true, beta_ahead, eps_ahead, work);
  window_messages(messages, use_dobrushin, false, beta_back, eps_back, work);
  for (int64_t t = 0; t < N; ++t) {
    node_gamma[t] = static_cast<S>(2 * (1 + beta_ahead[t] + beta_back[t]));
    if (t >= n) edge_gamma[t] = static_cast<S>(2 * (1 + eps_ahead[t] + eps_back[t - n]));
  }
}

}  // namespace crfx::CRFX_ISA
