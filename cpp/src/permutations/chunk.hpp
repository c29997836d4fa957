// The objectives of a chunk of queries, unit by unit.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "crfx/permutations.hpp"
#include "permutations/kernels.hpp"
#include "permutations/query.hpp"
#include "permutations/samples.hpp"

namespace crfx {

// Queries that are worked on together: of one size, in lanes, or a single one that is sampled.
struct QueryUnit {
  const int64_t* queries;
  int count, m;
  bool sampled;
};

class RankingChunk {
 public:
  RankingChunk(const RankingData& data, const RankingOptions& options, const RankWeights& weights,
               const RankingOutputs& out, Workspace& work)
      : data_(data),
        options_(options),
        ranks_(weights),
        out_(out),
        work_(work),
        reader_(data, options, weights) {}

  void run(const QueryUnit& unit) {
    work_.reset();
    if (!unit.m) return nothing(unit);
    for (int l = 0; l < unit.count; ++l) reader_.read(lanes_[l], unit.queries[l], unit.m);
    const bool scaled = options_.loss == RankingLoss::loss_scaled;
    if (unit.sampled)
      scaled ? sample_scaled(unit) : sample(unit);
    else
      scaled ? list(unit) : sum(unit);
  }

 private:
  // A query without documents has one permutation, which is right.
  void nothing(const QueryUnit& unit) {
    for (int l = 0; l < unit.count; ++l)
      out_.value[unit.queries[l]] = out_.effective[unit.queries[l]] = 0;
  }

  double* room(int rows) {
    double* x = work_.take<double>(rows * kQueryLanes);
    std::fill(x, x + rows * kQueryLanes, 0.0);
    return x;
  }
  // Puts one number per document of every query into lanes.
  template <class Of>
  double* in_lanes(const QueryUnit& unit, Of&& of) {
    double* x = room(unit.m);
    for (int l = 0; l < unit.count; ++l) {
      const std::vector<double>& own = of(lanes_[l]);
      for (size_t i = 0; i < own.size(); ++i) x[i * kQueryLanes + static_cast<size_t>(l)] = own[i];
    }
    return x;
  }

  QueryBundle bundle(const QueryUnit& unit) {
    QueryBundle b{};
    b.m = unit.m;
    b.alpha = ranks_.alpha.data();
    b.discount = ranks_.discount.data();
    b.score = in_lanes(unit, [](RankingQuery& q) -> auto& { return q.score; });
    b.worth = in_lanes(unit, [](RankingQuery& q) -> auto& { return q.worth; });
    b.loss_factor = reader_.kappa();
    double* base = room(1);
    for (int l = 0; l < unit.count; ++l) base[l] = lanes_[l].base;
    b.base = base;
    return b;
  }

  void sum(const QueryUnit& unit) {
    QueryBundle b = bundle(unit);
    double *document = room(unit.m), *rank = room(unit.m), shift[kQueryLanes] = {};
    double u[kMostSummed], v[kMostSummed];
    for (int l = 0; l < unit.count; ++l) {
      reader_.set_potentials(lanes_[l], u, v);
      for (size_t k = 0; k < lanes_[l].score.size(); ++k) {
        document[k * kQueryLanes + static_cast<size_t>(l)] = u[k];
        rank[k * kQueryLanes + static_cast<size_t>(l)] = v[k];
        shift[l] += u[k] + v[k];
      }
    }
    b.document = document;
    b.rank = rank;
    const bool crossed = options_.loss == RankingLoss::expected_loss, bent = out_.curvature;
    const auto asked = [&](bool wanted, int rows) { return wanted ? room(rows) : nullptr; };
    const PermutationMoments found{room(1),
                                   room(unit.m),
                                   asked(crossed, 1),
                                   asked(crossed && bent, 1),
                                   asked(crossed, unit.m),
                                   asked(bent, unit.m)};
    permutation_kernels().moments(b, found, work_);
    for (int l = 0; l < unit.count; ++l) {
      const RankingQuery& q = lanes_[l];
      Moments own{std::log(found.z[l]) + shift[l] + reader_.kappa() * q.base, found.mean + l};
      own.stride = kQueryLanes;
      if (crossed) own.mean_worth = found.mean_worth[l], own.cross = found.cross + l;
      if (crossed && bent) own.square_worth = found.square_worth[l];
      if (bent) own.spread = found.spread + l;
      write(q, unit.queries[l], own);
    }
  }

  void list(const QueryUnit& unit) {
    QueryBundle b = bundle(unit);
    b.truth = in_lanes(unit, [](RankingQuery& q) -> auto& { return q.target; });
    const ScaledMoments found{room(1), room(unit.m), out_.curvature ? room(unit.m) : nullptr};
    permutation_kernels().scaled(b, found, work_);
    for (int l = 0; l < unit.count; ++l) {
      const int64_t query = unit.queries[l], first = data_.offsets[query];
      out_.value[query] = found.log_z[l];
      out_.effective[query] = 0;
      for (int i = 0; i < unit.m; ++i) {
        out_.gradient[first + i] = found.mean[i * kQueryLanes + l];
        if (out_.curvature) out_.curvature[first + i] = found.spread[i * kQueryLanes + l];
      }
    }
  }

  // Of the model, as PermutationMoments; those of document i are `stride` * i further.
  struct Moments {
    double log_z;
    const double* mean;
    const double *cross = nullptr, *spread = nullptr;
    double mean_worth = 0, square_worth = 0;
    int stride = 1;
  };

  // The objective from the moments of the model.
  void write(const RankingQuery& q, int64_t query, const Moments& x) {
    const int64_t first = data_.offsets[query];
    const auto m = static_cast<int>(q.score.size());
    double *gradient = out_.gradient + first, factor = 1, scale = 1;
    if (options_.loss == RankingLoss::expected_loss) {
      out_.value[query] = q.base - x.mean_worth;
      for (int i = 0; i < m; ++i)
        gradient[i] = x.mean_worth * x.mean[i * x.stride] - x.cross[i * x.stride];
      scale = std::sqrt(std::max(x.square_worth - x.mean_worth * x.mean_worth, 0.0));
    } else {
      if (options_.sum_over_truths) factor = scale = q.n_truths;
      out_.value[query] = factor * (q.constant + x.log_z - q.pull());
      for (int i = 0; i < m; ++i)
        gradient[i] = factor * (x.mean[i * x.stride] - q.target[static_cast<size_t>(i)]);
    }
    out_.effective[query] = q.effective;
    for (int i = 0; out_.curvature && i < m; ++i)
      out_.curvature[first + i] = scale * x.spread[i * x.stride];
  }

  void sample(const QueryUnit& unit) {
    RankingQuery& q = lanes_[0];
    const int64_t query = unit.queries[0];
    reader_.set_logs(q);
    PermutationSamples samples(unit.m, options_.n_samples, options_.seed, query);
    samples.draw(q.logs);
    const double log_z = samples.normalise() + reader_.kappa() * q.base;
    const double* alpha = ranks_.alpha.data();
    std::vector<double> mean(q.score.size()), cross(mean), spread(mean);
    samples.moments(
        alpha, [](int64_t) { return 1.0; }, nullptr, mean.data(),
        out_.curvature ? spread.data() : nullptr);
    Moments own{log_z, mean.data(), cross.data(), spread.data()};
    if (options_.loss == RankingLoss::expected_loss) {
      const auto worth = [&](int64_t k) {
        return samples.sum(k, ranks_.discount.data(), q.worth.data());
      };
      for (int64_t k = 0; k < samples.size(); ++k) {
        own.mean_worth += samples.share(k) * worth(k);
        own.square_worth += samples.share(k) * worth(k) * worth(k);
      }
      samples.moments(alpha, worth, nullptr, cross.data(), nullptr);
    }
    const double effective = samples.effective();
    q.effective = q.effective > 0 ? std::min(q.effective, effective) : effective;
    write(q, query, own);
  }

  // Permutations of high loss and score count most; those of the model, heated, are drawn.
  void sample_scaled(const QueryUnit& unit) {
    RankingQuery& q = lanes_[0];
    const int64_t query = unit.queries[0], first = data_.offsets[query];
    reader_.set_logs(q);
    PermutationSamples samples(unit.m, options_.n_samples, options_.seed, query);
    samples.draw_mixture(q.logs, {0.0, 1.0 / 3, 2.0 / 3, 1.0});
    const double* alpha = ranks_.alpha.data();
    const auto loss = [&](int64_t k) {
      return q.base - samples.sum(k, ranks_.discount.data(), q.worth.data());
    };
    const double truth = q.pull();
    samples.reweigh(
        [&](int64_t k) { return loss(k) * (1 + samples.sum(k, alpha, q.score.data()) - truth); });
    out_.value[query] = samples.normalise();
    out_.effective[query] = samples.effective();
    samples.moments(alpha, loss, q.target.data(), out_.gradient + first,
                    out_.curvature ? out_.curvature + first : nullptr);
  }

  const RankingData& data_;
  const RankingOptions& options_;
  const RankWeights& ranks_;
  const RankingOutputs& out_;
  Workspace& work_;
  QueryReader reader_;
  RankingQuery lanes_[kQueryLanes];
};

}  // namespace crfx
