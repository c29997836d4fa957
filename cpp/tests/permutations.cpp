// The ranking objectives against sums over all permutations.
#include "crfx/permutations.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "check.hpp"
#include "permutations/potentials.hpp"

namespace {

using crfx::RankingLoss;
using Numbers = std::vector<double>;
constexpr double kTolerance = 1e-10;

struct Found {
  Numbers value, gradient, curvature, effective;
};

Found evaluate(const Numbers& scores, const Numbers& gains, const std::vector<int64_t>& offsets,
               const crfx::RankingOptions& options, int n_threads = 1) {
  const size_t n = offsets.size() - 1;
  Found found{Numbers(n), Numbers(scores.size()), Numbers(scores.size()), Numbers(n)};
  crfx::ranking_objective(
      {scores.data(), gains.data(), offsets.data(), static_cast<int64_t>(n)}, options,
      {found.value.data(), found.gradient.data(), found.curvature.data(), found.effective.data()},
      n_threads);
  return found;
}

double alpha(int rank) { return std::log(2.0) / std::log(rank + 2.0); }

// Log weights and losses of all permutations of one query.
struct Permutations {
  Permutations(const Numbers& scores, const Numbers& gains, int64_t cut) {
    const auto m = static_cast<int>(scores.size());
    const auto discount = [&](int r) { return cut && r >= cut ? 0.0 : alpha(r); };
    Numbers sorted = gains;
    std::sort(sorted.rbegin(), sorted.rend());
    double ideal = 0;
    for (int r = 0; r < m; ++r) ideal += sorted[static_cast<size_t>(r)] * discount(r);
    std::vector<int> rank(scores.size());
    std::iota(rank.begin(), rank.end(), 0);
    do {
      double s = 0, g = 0;
      for (size_t i = 0; i < scores.size(); ++i) {
        s += scores[i] * alpha(rank[i]);
        g += gains[i] * discount(rank[i]);
      }
      score.push_back(s);
      loss.push_back(ideal > 0 ? 1 - g / ideal : 0);
    } while (std::next_permutation(rank.begin(), rank.end()));
  }
  double mean_truth() const {
    double sum = 0, n = 0;
    for (size_t k = 0; k < loss.size(); ++k)
      if (std::fabs(loss[k]) < 1e-12) sum += score[k], n += 1;
    return sum / n;
  }
  template <class Log>
  double log_sum(Log&& log) const {
    double top = -1e300, sum = 0;
    for (size_t k = 0; k < loss.size(); ++k) top = std::max(top, log(score[k], loss[k]));
    for (size_t k = 0; k < loss.size(); ++k) sum += std::exp(log(score[k], loss[k]) - top);
    return top + std::log(sum);
  }
  template <class Log, class Of>
  double mean(Log&& log, Of&& of) const {
    const double total = log_sum(log);
    double sum = 0;
    for (size_t k = 0; k < loss.size(); ++k)
      sum += std::exp(log(score[k], loss[k]) - total) * of(score[k], loss[k]);
    return sum;
  }
  Numbers score, loss;
};

double by_listing(const Permutations& all, const crfx::RankingOptions& o) {
  const double truth = all.mean_truth();
  const auto model = [](double s, double) { return s; };
  switch (o.loss) {
    case RankingLoss::likelihood:
      return all.log_sum(model) - truth;
    case RankingLoss::loss_augmented:
      return all.log_sum([&](double s, double l) { return s + o.loss_weight * l; }) - truth;
    case RankingLoss::loss_scaled:
      return all.log_sum([&](double s, double l) { return l * (1 + s - truth); });
    case RankingLoss::expected_loss:
      return all.mean(model, [](double, double l) { return l; });
    case RankingLoss::kl: {
      const auto target = [&](double, double l) { return -l / o.temperature; };
      const double log_q = all.log_sum(target);
      return all.mean(target, [&](double s, double l) { return target(s, l) - log_q - s; }) +
             all.log_sum(model);
    }
  }
  return 0;
}

constexpr RankingLoss kLosses[] = {RankingLoss::likelihood, RankingLoss::loss_augmented,
                                   RankingLoss::loss_scaled, RankingLoss::expected_loss,
                                   RankingLoss::kl};

struct Query {
  Query(size_t m, unsigned seed, double scale) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    for (size_t i = 0; i < m; ++i) {
      scores.push_back(scale * normal(random));
      gains.push_back(static_cast<double>(random() % 3));
    }
  }
  Numbers scores, gains;
};

}  // namespace

TEST(ranking_objectives_are_sums_over_permutations) {
  for (const RankingLoss loss : kLosses)
    for (const int64_t cut : {0, 1, 3})
      for (size_t m = 1; m <= 7; ++m)
        for (const double scale : {1.0, 1e3}) {
          const Query query(m, static_cast<unsigned>(m), scale);
          const crfx::RankingOptions options{loss, 0.2, 2.5, false, cut, 0, false, 0};
          const auto end = static_cast<int64_t>(m);
          const Found found = evaluate(query.scores, query.gains, {0, end}, options);
          const Permutations all(query.scores, query.gains, cut);
          CHECK_CLOSE(found.value[0], by_listing(all, options), kTolerance);
        }
}

TEST(ranking_gradients_are_differences) {
  const double step = 1e-5;
  for (const RankingLoss loss : kLosses) {
    const Query query(6, 1, 1.0);
    const crfx::RankingOptions options{loss, 0.2, 2.5, false, 4, 0, false, 0};
    const Found found = evaluate(query.scores, query.gains, {0, 6}, options);
    for (size_t i = 0; i < 6; ++i) {
      Numbers above = query.scores, below = query.scores;
      above[i] += step;
      below[i] -= step;
      const double rise = evaluate(above, query.gains, {0, 6}, options).value[0] -
                          evaluate(below, query.gains, {0, 6}, options).value[0];
      CHECK_CLOSE(found.gradient[i], rise / (2 * step), 1e-7);
    }
  }
}

TEST(ranking_does_not_depend_on_threads_or_neighbours) {
  Numbers scores, gains;
  std::vector<int64_t> offsets{0};
  for (unsigned q = 0; q < 200; ++q) {
    const Query query(q % 9, q, 1.0);
    scores.insert(scores.end(), query.scores.begin(), query.scores.end());
    gains.insert(gains.end(), query.gains.begin(), query.gains.end());
    offsets.push_back(static_cast<int64_t>(scores.size()));
  }
  for (const RankingLoss loss : kLosses) {
    const crfx::RankingOptions options{loss, 0.2, 2.5, true, 4, 50, false, 0};
    const Found one = evaluate(scores, gains, offsets, options),
                two = evaluate(scores, gains, offsets, options, 3);
    CHECK(one.value == two.value);
    CHECK(one.gradient == two.gradient);
    CHECK(one.curvature == two.curvature);
    const Query query(6, 51, 1.0);
    const Found alone = evaluate(query.scores, query.gains, {0, 6}, options);
    CHECK(alone.value[0] == one.value[51]);
  }
}

TEST(large_queries_are_sampled) {
  const Query query(40, 3, 1.0);
  for (const RankingLoss loss : kLosses) {
    const crfx::RankingOptions options{loss, 0.2, 2.5, false, 5, 200, false, 7};
    const Found found = evaluate(query.scores, query.gains, {0, 40}, options);
    CHECK(std::isfinite(found.value[0]));
    CHECK(found.effective[0] > 1 && found.effective[0] <= 200);
    CHECK_CLOSE(std::accumulate(found.gradient.begin(), found.gradient.end(), 0.0), 0.0, 1e-9);
  }
}

TEST(potentials_are_tight_along_the_best_permutation) {
  std::mt19937 random(0);
  std::normal_distribution<double> normal;
  for (int m = 1; m <= 9; ++m) {
    const auto size = static_cast<size_t>(m);
    Numbers logs(size * size), u(size), v(size);
    for (double& x : logs) x = 10 * normal(random);
    crfx::best_potentials(logs.data(), m, u.data(), v.data());
    int tight = 0;
    for (size_t i = 0; i < size; ++i)
      for (size_t r = 0; r < size; ++r) {
        const double rest = logs[i * size + r] - u[i] - v[r];
        CHECK(rest < 1e-9);
        tight += rest > -1e-9;
      }
    CHECK(tight >= m);
    Numbers score(size), discount(size);
    std::vector<int> sorted(size);
    for (int i = 0; i < m; ++i) {
      score[static_cast<size_t>(i)] = normal(random);
      discount[static_cast<size_t>(i)] = i < 4 ? alpha(i) : 0;
      sorted[static_cast<size_t>(i)] = i;
    }
    const auto at = [&](int i) { return score[static_cast<size_t>(i)]; };
    std::sort(sorted.begin(), sorted.end(), [&](int a, int b) { return at(a) > at(b); });
    crfx::product_potentials(score.data(), discount.data(), sorted.data(), m, u.data(), v.data());
    for (size_t r = 0; r < size; ++r) {
      const auto own = static_cast<size_t>(sorted[r]);
      CHECK_CLOSE(score[own] * discount[r], u[own] + v[r], 1e-12);
      for (size_t i = 0; i < size; ++i) CHECK(score[i] * discount[r] - u[i] - v[r] < 1e-12);
    }
  }
}
