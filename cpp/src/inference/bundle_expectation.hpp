// The first-order expectation pass over one bundle: ExpectedCost of expectation.hpp with p = t - 1,
// in lanes.
//
// With costs centred at every position, so that their expectation is 0,
//   inside[t]  = E[cost of t and later | label at t]
//   behind[t]  = E[cost of t and earlier | label at t]
// follow from one product of the table with (messages x costs) each. The gradient at a node is
// p x (inside + behind - cost), at an edge p x (behind[t - 1] + inside[t]): two outer products.
#pragma once

#include "inference/bundle_sum.hpp"

namespace crfx::CRFX_ISA {

// behind and inside, each times its message, and the messages; see EdgeMarginalTerm.
template <class S>
struct EdgeGradientTerm {
  static constexpr bool table_at_end = true;
  const Pack<S>*left, *right, *left_cost, *right_cost;
  CRFX_INLINE Pack<S> at(int64_t t, int64_t i, int64_t j, int64_t K, const S*) const {
    return left[t * K + i] * right_cost[t * K + j] + left_cost[t * K + i] * right[t * K + j];
  }
};
template <class S>
using EdgeGradientSum = EdgeSum<S, EdgeGradientTerm<S>>;

// out[o] = sum_i coefficient[i, o] x[i], of either sign.
template <class S, int block>
CRFX_INLINE void signed_block(const S* coefficient, const Pack<S>* x, Pack<S>* out, int64_t n) {
  Pack<S> sum[block] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int q = 0; q < block; ++q) sum[q] += coefficient[i * n + q] * x[i];
  for (int q = 0; q < block; ++q) out[q] = sum[q];
}

template <class S>
class BundleExpectation {
 public:
  BundleExpectation(const Problem<S>& p, const LiftedTables<S>& lifted, const Bundle<S>& bundle,
                    Workspace& work)
      : lifted_(lifted),
        bundle_(bundle),
        K_(p.n_labels),
        T_(bundle.longest),
        sums_(p, lifted, bundle, work, true) {
    inside_ = work.take<Pack<S>>(T_ * K_);
    behind_ = work.take<Pack<S>>(T_ * K_);
    left_ = work.take<Pack<S>>(T_ * K_);
    right_ = work.take<Pack<S>>(T_ * K_);
    scratch_ = work.take<Pack<S>>(K_);
    gradient_ = work.take<Pack<S>>(block_positions(K_) * K_);
    for (int l = 0; l < lanes; ++l) value_[l] = 0;
  }

  void run(const S* cost, const ExpectationOutputs<S>& out, EdgeGradientSum<S>* edges) {
    sums_.pass();
    gather_rows(cost, bundle_, 0, T_, K_, inside_);
    for (int64_t t = 0; t < T_; ++t) centre(t);
    for (int64_t t = T_ - 1; t > 0; --t) step_back(t);
    for_blocks(T_, K_, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) step_ahead(t, gradient_ + (t - begin) * K_);
      scatter_rows(gradient_, bundle_, begin, end, K_, out.node);
    });
    for (int l = 0; l < lanes; ++l)
      if (bundle_.length[l] > 0) out.value[bundle_.index[l]] = value_[l];
    if (!edges || T_ < 2) return;
    leave_out_failed();
    edges->add({sums_.ahead(0), sums_.below(1), left_, right_ + K_}, T_ - 1);
  }
  bool ok(int l) const { return sums_.ok(l); }

 private:
  static constexpr int lanes = Bundle<S>::lanes;

  void centre(int64_t t) {
    Pack<S>* c = inside_ + t * K_;
    const Pack<S>*down = sums_.down(t), *below = sums_.below(t);
    Pack<S> sum{}, total{};
    for (int64_t k = 0; k < K_; ++k) {
      const Pack<S> p = down[k] * below[k];
      sum += p * c[k];
      total += p;
    }
    const Pack<S> mean = (bundle_.alive(t) & (total > 0)) ? sum / total : Pack<S>{};
    for (int l = 0; l < lanes; ++l) value_[l] += static_cast<double>(mean[l]);
    Pack<S>* behind = behind_ + t * K_;
    for (int64_t k = 0; k < K_; ++k) behind[k] = c[k] = c[k] - mean;
  }

  // Adds what comes after t - 1 to its costs.
  void step_back(int64_t t) {
    const Pack<S>*below = sums_.below(t), *up = sums_.up(t);
    Pack<S>*weighed = right_ + t * K_, *to = inside_ + (t - 1) * K_;
    for (int64_t k = 0; k < K_; ++k) weighed[k] = below[k] * inside_[t * K_ + k];
    in_blocks(K_, [&]<int width>(int64_t k) {
      signed_block<S, width>(lifted_.transposed + k, weighed, scratch_ + k, K_);
    });
    const Pack<S> inverse = sums_.inverse(t);
    const Bits<S> inner = bundle_.alive(t);
    for (int64_t k = 0; k < K_; ++k) {
      const Pack<S> total = up[k] * inverse;
      to[k] += (inner & (total > 0)) ? scratch_[k] * reciprocal(total) : Pack<S>{};
    }
  }

  // Adds what comes before t to its costs; the gradient of its node scores.
  void step_ahead(int64_t t, Pack<S>* gradient) {
    Pack<S>*behind = behind_ + t * K_, *inside = inside_ + t * K_;
    const Pack<S>*down = sums_.down(t), *below = sums_.below(t), *ahead = sums_.ahead(t);
    for (int64_t k = 0; k < K_; ++k) scratch_[k] = Pack<S>{};
    if (t > 0)
      in_blocks(K_, [&]<int width>(int64_t k) {
        signed_block<S, width>(lifted_.tables + k, left_ + (t - 1) * K_, scratch_ + k, K_);
      });
    for (int64_t k = 0; k < K_; ++k) {
      const Pack<S> before = down[k] > 0 ? scratch_[k] * reciprocal(down[k]) : Pack<S>{};
      behind[k] += before;
      gradient[k] = down[k] * below[k] * (before + inside[k]);
      left_[t * K_ + k] = ahead[k] * behind[k];
    }
  }

  void leave_out_failed() {
    sums_.leave_out_failed();
    for (int64_t k = 0; k < T_ * K_; ++k) {
      left_[k] = sums_.all_ok() ? left_[k] : Pack<S>{};
      right_[k] = sums_.all_ok() ? right_[k] : Pack<S>{};
    }
  }

  const LiftedTables<S>& lifted_;
  const Bundle<S>& bundle_;
  int64_t K_, T_;
  BundleSum<S> sums_;
  Pack<S>*inside_, *behind_, *left_, *right_, *scratch_, *gradient_;
  double value_[lanes];
};

}  // namespace crfx::CRFX_ISA
