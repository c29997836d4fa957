// A query, prepared for sums over its permutations.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "crfx/permutations.hpp"
#include "permutations/potentials.hpp"
#include "permutations/samples.hpp"
#include "permutations/target.hpp"

namespace crfx {

constexpr double kNear = 300;  // exp(-kNear) and its square are ordinary numbers

// What all queries share.
struct RankWeights {
  RankWeights(int64_t m, int64_t cut) {
    for (int64_t r = 0; r < m; ++r) {
      alpha.push_back(std::log(2.0) / std::log(static_cast<double>(r + 2)));
      discount.push_back(cut > 0 && r >= cut ? 0.0 : alpha.back());
      sum.push_back(sum.back() + alpha.back());
    }
  }
  std::vector<double> alpha, discount, sum{0.0};  // sum[m]: of alpha over m ranks
};

// A query as sums over its permutations need it.
struct RankingQuery {
  std::vector<double> score, worth, target, logs;
  double base = 0;  // the loss is base - sum_i discount[y_i] worth_i
  double constant = 0, n_truths = 0, effective = 0;

  double pull() const {
    double sum = 0;
    for (size_t i = 0; i < score.size(); ++i) sum += score[i] * target[i];
    return sum;
  }
};

// Makes queries ready, one after the other.
class QueryReader {
 public:
  QueryReader(const RankingData& data, const RankingOptions& options, const RankWeights& weights)
      : data_(data), options_(options), ranks_(weights) {}

  // The weight of the loss in the energy.
  double kappa() const {
    return options_.loss == RankingLoss::loss_augmented ? options_.loss_weight : 0.0;
  }

  // Scores are counted from the largest: permutations do not change, and sums lose less.
  void read(RankingQuery& q, int64_t query, int m) {
    const double* scores = data_.scores + data_.offsets[query];
    const double* gains = data_.gains + data_.offsets[query];
    const auto size = static_cast<size_t>(m);
    q.score.assign(scores, scores + m);
    const double top = *std::max_element(scores, scores + m);
    for (double& x : q.score) x -= top;
    levels_.set(gains, m);
    double ideal = 0;
    for (int r = 0; r < m; ++r)
      ideal += gains[levels_.document(r)] * ranks_.discount[static_cast<size_t>(r)];
    q.base = ideal > 0 ? 1 : 0;
    q.worth.resize(size);
    const double unit = ideal > 0 ? 1 / ideal : 0;
    for (size_t i = 0; i < size; ++i) q.worth[i] = gains[i] * unit;
    q.effective = 0;
    set_target(q, query, gains);
  }

  // Log weights of the model (m x m), document by document.
  void set_logs(RankingQuery& q) const {
    const size_t m = q.score.size();
    q.logs.resize(m * m);
    for (size_t i = 0; i < m; ++i)
      for (size_t r = 0; r < m; ++r)
        q.logs[i * m + r] =
            q.score[i] * ranks_.alpha[r] - kappa() * q.worth[i] * ranks_.discount[r];
  }

  // Where scores lie close together no sum can vanish, and potentials of 0 will do.
  void set_potentials(RankingQuery& q, double* document, double* rank) {
    const auto m = static_cast<int>(q.score.size());
    const double lowest = *std::min_element(q.score.begin(), q.score.end());
    if (kappa() - lowest * ranks_.sum[q.score.size()] < kNear) {
      std::fill(document, document + m, 0.0);
      std::fill(rank, rank + m, 0.0);
      return;
    }
    if (kappa() != 0 && options_.cut > 0 && options_.cut < m) {
      set_logs(q);
      return best_potentials(q.logs.data(), m, document, rank);
    }
    score_ = q.score;
    for (size_t i = 0; i < score_.size(); ++i) score_[i] -= kappa() * q.worth[i];
    sorted_.resize(score_.size());
    sort_falling(score_.data(), m, sorted_.data());
    product_potentials(score_.data(), ranks_.alpha.data(), sorted_.data(), m, document, rank);
  }

 private:
  void set_target(RankingQuery& q, int64_t query, const double* gains) {
    if (options_.loss == RankingLoss::expected_loss) return;
    const bool too_many = options_.sample_all || levels_.n_states() > kMostStates;
    if (options_.loss == RankingLoss::kl && too_many) return sample_target(q, query);
    const RankingTarget& found = memo_.get(levels_, gains, [&] {
      if (options_.loss != RankingLoss::kl)
        return truth_target(levels_, ranks_.alpha.data(), options_.cut);
      return tempered_target(levels_, q.worth.data(), ranks_.alpha.data(), ranks_.discount.data(),
                             options_.temperature);
    });
    q.target.resize(q.score.size());
    for (int g = 0; g < levels_.count(); ++g)
      for (int k = levels_.begin(g); k < levels_.begin(g + 1); ++k)
        q.target[static_cast<size_t>(levels_.document(k))] = found.alpha[static_cast<size_t>(g)];
    q.constant = found.constant;
    q.n_truths = found.n_truths;
  }

  // KL's target where gains differ so much that its sums are too many.
  void sample_target(RankingQuery& q, int64_t query) {
    const size_t m = q.score.size();
    q.logs.resize(m * m);
    for (size_t i = 0; i < m; ++i)
      for (size_t r = 0; r < m; ++r)
        q.logs[i * m + r] = q.worth[i] * ranks_.discount[r] / options_.temperature;
    PermutationSamples samples(static_cast<int>(m), options_.n_samples, ~options_.seed, query);
    samples.draw(q.logs);
    q.constant = -samples.normalise();
    q.target.resize(m);
    samples.moments(
        ranks_.discount.data(), [](int64_t) { return 1.0; }, nullptr, q.target.data(), nullptr);
    for (size_t i = 0; i < m; ++i) q.constant += q.worth[i] * q.target[i] / options_.temperature;
    samples.moments(
        ranks_.alpha.data(), [](int64_t) { return 1.0; }, nullptr, q.target.data(), nullptr);
    q.effective = samples.effective();
  }

  const RankingData& data_;
  const RankingOptions& options_;
  const RankWeights& ranks_;
  GainLevels levels_;
  TargetMemo memo_;
  std::vector<double> score_;
  std::vector<int> sorted_;
};

}  // namespace crfx
