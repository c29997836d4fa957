// Sums over orders that do not factorise: all m! are listed, rank by rank, with running sums.
#pragma once

#include "crfx/order_sums.hpp"

namespace crfx::CRFX_ISA {

class OrderList {
 public:
  OrderList(const OrderBundle& bundle, Workspace& work) : b_(bundle), m_(bundle.m) {
    for (int k = 2; k <= m_; ++k) n_orders_ *= k;
    logs_ = work.take<Wide>(n_orders_);
    loss_ = work.take<Wide>(n_orders_);
    gain_ = work.take<Wide>(m_ * m_);
    lost_ = work.take<Wide>(m_ * m_);
    truth_ = Wide{};
    for (int i = 0; i < m_; ++i) truth_ += wide(b_.truth, i) * wide(b_.score, i);
    for (int r = 0; r < m_; ++r)
      for (int i = 0; i < m_; ++i) {
        gain_[r * m_ + i] = wide(b_.score, i) * b_.alpha[r];
        lost_[r * m_ + i] = wide(b_.worth, i) * b_.discount[r];
      }
  }

  void run(const ScaledMoments& out, Workspace& work) {
    top_ = splat(-std::numeric_limits<double>::infinity());
    at_ = 0;
    const Left all = everyone();
    list(all, m_, 1.0 - truth_, wide(b_.base, 0));
    z_ = Wide{};
    for (int64_t k = 0; k < n_orders_; ++k) {
      const Wide weight = exp_of_negative<double>(logs_[k] - top_);
      z_ += weight;
      logs_[k] = weight * loss_[k];
    }
    for (int l = 0; l < kOrderLanes; ++l) out.log_z[l] = top_[l] + __builtin_log(z_[l]);
    Wide* mean = centred(nullptr, work);
    for (int i = 0; i < m_; ++i) store(out.mean + i * kOrderLanes, mean[i]);
    if (out.spread) spreads(mean, out.spread, work);
  }

 private:
  static constexpr int kMost = 16;
  // The documents that have no rank yet.
  struct Left {
    int8_t document[kMost];
  };
  Left everyone() const {
    Left all;
    for (int i = 0; i < m_; ++i) all.document[i] = static_cast<int8_t>(i);
    return all;
  }
  CRFX_INLINE static Left without(const Left& left, int n, int k) {
    Left rest;
    for (int j = 0; j + 1 < n; ++j) rest.document[j] = left.document[j + (j >= k)];
    return rest;
  }

  // Losses and log weights of all orders, those with the same first documents beside each other.
  // The last three ranks are unrolled: most of the work is there.
  void list(const Left& left, int n, Wide score, Wide loss) {
    if (n == 3) return list_last<3>(left, score, loss);
    if (n == 2) return list_last<2>(left, score, loss);
    if (n == 1) return list_last<1>(left, score, loss);
    const int64_t row = (m_ - n) * m_;
    for (int k = 0; k < n; ++k) {
      const int i = left.document[k];
      list(without(left, n, k), n - 1, score + gain_[row + i], loss - lost_[row + i]);
    }
  }
  template <int n>
  CRFX_INLINE void list_last(const Left& left, Wide score, Wide loss) {
    if constexpr (n == 0) {
      loss_[at_] = loss;
      logs_[at_] = loss * score;
      top_ = larger<Wide>(top_, logs_[at_]);
      ++at_;
    } else {
      const int64_t row = (m_ - n) * m_;
      for (int k = 0; k < n; ++k) {
        const int i = left.document[k];
        list_last<n - 1>(without(left, n, k), score + gain_[row + i], loss - lost_[row + i]);
      }
    }
  }

  // E x (alpha[y_i] - truth_i), with the numbers x, times their weights, in logs_; with `pairs`
  // (m x m) also adds z E x alpha[y_j] alpha[y_i] over orders with j before i, or i = j.
  Wide* centred(Wide* pairs, Workspace& work) {
    Wide* mean = work.take<Wide>(m_);
    for (int i = 0; i < m_; ++i) mean[i] = Wide{};
    at_ = 0;
    total_ = gather(everyone(), m_, mean, pairs) / z_;
    for (int i = 0; i < m_; ++i) mean[i] = mean[i] / z_ - wide(b_.truth, i) * total_;
    return mean;
  }
  Wide gather(const Left& left, int n, Wide* mean, Wide* pairs) {
    if (n == 3 && !pairs) return gather_last<3>(left, mean);
    if (n == 0) return logs_[at_++];
    const int r = m_ - n;
    Wide sum{};
    for (int k = 0; k < n; ++k) {
      const int i = left.document[k];
      path_[r] = i;
      const Wide own = gather(without(left, n, k), n - 1, mean, pairs);
      sum += own;
      mean[i] += own * b_.alpha[r];
      for (int j = 0; pairs && j <= r; ++j)
        pairs[path_[j] * m_ + i] += own * (b_.alpha[j] * b_.alpha[r]);
    }
    return sum;
  }
  template <int n>
  CRFX_INLINE Wide gather_last(const Left& left, Wide* mean) {
    if constexpr (n == 0) {
      return logs_[at_++];
    } else {
      Wide sum{};
      for (int k = 0; k < n; ++k) {
        const Wide own = gather_last<n - 1>(without(left, n, k), mean);
        sum += own;
        mean[left.document[k]] += own * b_.alpha[m_ - n];
      }
      return sum;
    }
  }
  void spreads(const Wide* mean, double* out, Workspace& work) {
    for (int64_t k = 0; k < n_orders_; ++k) logs_[k] *= loss_[k];
    Wide* pairs = work.take<Wide>(m_ * m_);
    for (int k = 0; k < m_ * m_; ++k) pairs[k] = Wide{};
    const Wide* second = centred(pairs, work);
    for (int i = 0; i < m_; ++i) {
      Wide sum{};
      for (int j = 0; j < m_; ++j) {
        const Wide t = wide(b_.truth, i), u = wide(b_.truth, j);
        Wide both = pairs[i * m_ + j] / z_;
        if (j != i) both += pairs[j * m_ + i] / z_;
        // With d = alpha - truth: E x d_i d_j from E x alpha_i alpha_j, E x d and E x.
        both -= u * second[i] + t * second[j] + t * u * total_;
        sum += magnitude(both - mean[i] * mean[j]);
      }
      store(out + i * kOrderLanes, sum);
    }
  }

  const OrderBundle& b_;
  int m_;
  int64_t n_orders_ = 1, at_ = 0;
  int path_[kMost];
  Wide *logs_, *loss_;  // (m!)
  Wide *gain_,
      *lost_;  // (m x m) of rank and document: what it adds to the score, takes off the loss
  Wide truth_, top_, z_, total_;
};

inline void scaled_moments(const OrderBundle& bundle, const ScaledMoments& out, Workspace& work) {
  OrderList(bundle, work).run(out, work);
}

}  // namespace crfx::CRFX_ISA
