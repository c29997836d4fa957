#include "permutations/samples.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "support/uniform.hpp"

namespace crfx {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();
constexpr double kSmall = 1e-250;  // smaller sums are formed again, from remaining documents alone
class Proposal {
 public:
  Proposal(const std::vector<double>& logs, double factor, int m) : m_(static_cast<size_t>(m)) {
    logs_.resize(m_ * m_);
    entry_.resize(m_ * m_);
    for (size_t i = 0; i < m_; ++i) {
      double after = 0;
      for (size_t r = m_; r-- > 0;) {
        const double own = factor * logs[i * m_ + r];
        const size_t n_after = m_ - 1 - r;
        logs_[r * m_ + i] = n_after ? own - after / static_cast<double>(n_after) : own;
        after += own;
      }
    }
    for (size_t r = 0; r < m_; ++r) {
      const double* own = logs_.data() + r * m_;
      const double top = *std::max_element(own, own + m_);
      for (size_t i = 0; i < m_; ++i) entry_[r * m_ + i] = std::exp(own[i] - top);
    }
  }
  // Computes the weights of the remaining documents; returns their sum.
  double weights(size_t r, const std::vector<int>& left, std::vector<double>& weight) const {
    double total = 0;
    for (size_t k = 0; k < left.size(); ++k)
      total += weight[k] = entry_[r * m_ + static_cast<size_t>(left[k])];
    if (total > kSmall) return total;
    const double* own = logs_.data() + r * m_;
    double top = kNothing;
    for (const int i : left) top = std::max(top, own[i]);
    total = 0;
    for (size_t k = 0; k < left.size(); ++k) total += weight[k] = std::exp(own[left[k]] - top);
    return total;
  }
  // Log of the probability of choosing left[k]; weights are scratch.
  double log_probability(size_t r, const std::vector<int>& left, size_t k,
                         std::vector<double>& weight) const {
    const double total = weights(r, left, weight);
    // From logs where the weight vanished beside others.
    if (weight[k] > kSmall) return std::log(weight[k] / total);
    double top = kNothing;
    for (const int i : left) top = std::max(top, logs_[r * m_ + static_cast<size_t>(i)]);
    return logs_[r * m_ + static_cast<size_t>(left[k])] - top - std::log(std::max(total, 1.0));
  }

 private:
  size_t m_;
  std::vector<double> logs_, entry_;  // (m x m), rank by rank
};

size_t drawn(const std::vector<double>& weight, size_t n, double total, double u) {
  double rest = u * total;
  size_t last = 0;  // rounding must not reach a document that cannot be drawn
  for (size_t k = 0; k < n; ++k) {
    if (!(weight[k] > 0)) continue;
    last = k;
    rest -= weight[k];
    if (rest < 0) break;
  }
  return last;
}

}  // namespace

void PermutationSamples::draw(const std::vector<double>& logs) {
  draw_mixture(logs, {1.0});
  const auto m = static_cast<size_t>(m_);
  reweigh([&](int64_t k) {
    double log = 0;
    for (int i = 0; i < m_; ++i)
      log += logs[static_cast<size_t>(i) * m + static_cast<size_t>(rank(k, i))];
    return log;
  });
}

void PermutationSamples::draw_mixture(const std::vector<double>& logs,
                                      const std::vector<double>& factors) {
  const auto m = static_cast<size_t>(m_), n_parts = factors.size();
  std::vector<Proposal> proposals;
  for (const double factor : factors) proposals.emplace_back(logs, factor, m_);
  weight_.assign(static_cast<size_t>(n_), 0.0);
  rank_.assign(static_cast<size_t>(n_) * m, 0);
  std::vector<int> left;
  std::vector<double> weight(m), log(n_parts);
  for (int64_t k = 0; k < n_; ++k) {
    const size_t own = static_cast<size_t>(k) % n_parts;
    left.resize(m);
    std::iota(left.begin(), left.end(), 0);
    std::fill(log.begin(), log.end(), 0.0);
    for (size_t r = 0; r < m; ++r) {
      const double total = proposals[own].weights(r, left, weight);
      const auto counter = static_cast<uint64_t>(k) * m + r;
      const size_t chosen = drawn(weight, left.size(), total, uniform(seed_, query_, counter));
      for (size_t part = 0; part < n_parts; ++part)
        log[part] += proposals[part].log_probability(r, left, chosen, weight);
      rank_[static_cast<size_t>(k) * m + static_cast<size_t>(left[chosen])] = static_cast<int>(r);
      left[chosen] = left.back();
      left.pop_back();
    }
    const double top = *std::max_element(log.begin(), log.end());
    double density = 0;
    for (const double part : log) density += std::exp(part - top) / static_cast<double>(n_parts);
    weight_[static_cast<size_t>(k)] = -top - std::log(density);
  }
}

double PermutationSamples::normalise() {
  const double top = *std::max_element(weight_.begin(), weight_.end());
  double total = 0;
  for (double& x : weight_) total += x = std::exp(x - top);
  for (double& x : weight_) x /= total;
  return top + std::log(total / static_cast<double>(n_));
}

double PermutationSamples::effective() const {
  double squares = 0;
  for (const double x : weight_) squares += x * x;
  return std::min(1 / squares, static_cast<double>(n_));  // without rounding, it is never more
}

}  // namespace crfx
