// Objectives of the ranking CRF (Volkovs, Larochelle and Zemel 2011, section 6) for many queries.
//
// A permutation y of m documents has energy -sum_i alpha_{y_i} f_i, alpha_r = log 2 / log(1 + r),
// and loss 1 - NDCG@cut. Score and loss are sums over (document, rank), so the sum of exp(score) or
// exp(weight * loss) over all permutations is a permanent: O(2^m m) by sums over subsets of
// documents. The loss-scaled objective does not factorise: its m! permutations are listed. Larger
// queries are sampled.
#pragma once

#include <cstdint>

namespace crfx {

constexpr int64_t kMostSummed = 16;      // documents whose permutations are summed over subsets
constexpr int64_t kMostListed = 8;       // documents whose permutations are listed
constexpr int64_t kMostDocuments = 160;  // of one query: m! is then a number of float64

enum class RankingLoss { likelihood, loss_augmented, loss_scaled, expected_loss, kl };

struct RankingOptions {
  RankingLoss loss = RankingLoss::kl;
  double temperature = 1;        // of KL's target
  double loss_weight = 1;        // of loss_augmented
  bool sum_over_truths = false;  // likelihood and loss_augmented; else their mean
  int64_t cut = 0;               // of NDCG; 0: none
  int64_t n_samples = 0;         // for queries that are too large
  bool sample_all = false;       // even if they are small
  uint64_t seed = 0;
};

// Queries one after the other; finite scores, gains of 0 or more.
struct RankingData {
  const double* scores;    // (documents)
  const double* gains;     // (documents)
  const int64_t* offsets;  // (queries + 1)
  int64_t n_queries;
};

struct RankingOutputs {
  double* value;      // (queries)
  double* gradient;   // (documents)
  double* curvature;  // (documents), or null: row sums of |covariance|; of expected_loss that of
                      // the model times the standard deviation of its loss, no bound but a scale
  double* effective;  // (queries): effective number of samples; 0 if nothing was sampled
};

void ranking_objective(const RankingData& data, const RankingOptions& options,
                       const RankingOutputs& out, int n_threads);

}  // namespace crfx
