// Permutations of queries that are too large for sums over all, by sequential importance sampling.
//
// Ranks are filled one by one. Rank r goes to a remaining document i with probability
// proportional to exp(log weight of (i, r) - its mean log weight over the ranks after r): what
// choosing i now gives, less what later ranks lose, to first order. A permutation
// counts with its weight over the probability of having been drawn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace crfx {

class PermutationSamples {
 public:
  // log weights (m x m), document by document; draws depend on (seed, query) alone.
  PermutationSamples(int m, int64_t n_samples, uint64_t seed, int64_t query)
      : m_(m), n_(n_samples), seed_(seed), query_(static_cast<uint64_t>(query)) {}

  // From one model.
  void draw(const std::vector<double>& logs);
  // In equal parts from models with log weights factor * logs, each counted as drawn from their
  // mixture. Permutations then have no weights but the inverse of that density.
  void draw_mixture(const std::vector<double>& logs, const std::vector<double>& factors);
  // Multiplies the weight of sample k by exp(log(k)).
  template <class Log>
  void reweigh(Log&& log) {
    for (int64_t k = 0; k < n_; ++k) weight_[static_cast<size_t>(k)] += log(k);
  }
  // Turns log weights into shares that add up to 1; returns the log of the sum over all
  // permutations.
  double normalise();

  int64_t size() const { return n_; }
  double share(int64_t k) const { return weight_[static_cast<size_t>(k)]; }
  double effective() const;
  // The rank of document i in sample k.
  int rank(int64_t k, int i) const { return rank_[static_cast<size_t>(k * m_ + i)]; }
  // Sum over i of table[rank of i] * number[i].
  double sum(int64_t k, const double* table, const double* number) const {
    double total = 0;
    for (int i = 0; i < m_; ++i) total += table[rank(k, i)] * number[i];
    return total;
  }
  // Means over samples x (m) of factor(k) table[rank of i], and with `spread` the row sums of
  // |covariance| of factor(k) (table[rank of i] - centre[i]).
  template <class Factor>
  void moments(const double* table, Factor&& factor, const double* centre, double* mean,
               double* spread) const {
    const auto m = static_cast<size_t>(m_);
    std::vector<double> x(m), both(spread ? m * m : 0, 0.0);
    for (size_t i = 0; i < m; ++i) mean[i] = 0;
    for (int64_t k = 0; k < n_; ++k) {
      const double f = factor(k);
      for (int i = 0; i < m_; ++i)
        x[static_cast<size_t>(i)] = f * (table[rank(k, i)] - (centre ? centre[i] : 0.0));
      for (size_t i = 0; i < m; ++i) {
        mean[i] += share(k) * x[i];
        for (size_t j = 0; spread && j < m; ++j) both[i * m + j] += share(k) * x[i] * x[j];
      }
    }
    for (size_t i = 0; spread && i < m; ++i) {
      spread[i] = 0;
      for (size_t j = 0; j < m; ++j) {
        const double covariance = both[i * m + j] - mean[i] * mean[j];
        spread[i] += covariance < 0 ? -covariance : covariance;
      }
    }
  }

 private:
  int m_;
  int64_t n_;
  uint64_t seed_, query_;
  std::vector<double> weight_;
  std::vector<int> rank_;
};

}  // namespace crfx
