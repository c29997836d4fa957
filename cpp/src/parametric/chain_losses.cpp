#include "parametric/chain_losses.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace crfx {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

void add_all_as_terms(ChainPasses& p) {
  p.clear_terms();
  for (int64_t chain = 0; chain < p.n_chains(); ++chain) p.add_term(chain, p.weight(chain));
}

bool all_known(const ChainPasses& p, int64_t chain) {
  for (int64_t row = p.first_row(chain); row < p.end_row(chain); ++row)
    if (!p.is_known(row)) return false;
  return true;
}

// Adds the table of the loss to the scores of nodes whose label is known.
void augment(ChainPasses& p) {
  const int K = p.data().n_labels;
  for (int64_t chain = 0; chain < p.n_chains(); ++chain) {
    const float share = p.share(chain);
    for (int64_t row = p.first_row(chain); row < p.end_row(chain); ++row) {
      if (!p.is_known(row)) continue;
      const float* costs = p.costs(row);
      for (int c = 0; c < K; ++c) p.node(row)[c] += share * costs[c];
    }
  }
}

// Likelihood and perceptron -----------------------------------------------------------------------
//
// (features of all labellings, or the best one) - (features of those that agree with known labels).
// If labels have weights v_1 < v_2 < ..., the first term becomes sum_l (v_l - v_{l-1}) of the same
// at level l, where the labels of smaller weight are given (crfx.objectives.by_parts). The
// second is the same at all levels. Costs are 0 at true labels: it is not changed by them.

// The weights of the known labels of a chain, rising, each once.
void find_levels(const ChainPasses& p, int64_t chain, std::vector<double>& levels) {
  levels.clear();
  if (!p.data().loss.class_weights) return levels.push_back(1.0);
  for (int64_t row = p.first_row(chain); row < p.end_row(chain); ++row)
    if (p.is_known(row) && p.class_weight(row) > 0) levels.push_back(p.class_weight(row));
  std::sort(levels.begin(), levels.end());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
}

void likelihood_or_perceptron(ChainPasses& p) {
  if (p.data().loss.table) augment(p);
  std::vector<double> levels;
  for (int64_t chain = 0; chain < p.n_chains(); ++chain) {
    find_levels(p, chain, levels);
    double before = 0;
    for (const double level : levels) {
      p.add_term(chain, p.weight(chain) * (level - before),
                 [&](int64_t row) { return p.is_known(row) && p.class_weight(row) < level; });
      before = level;
    }
    if (levels.empty()) continue;
    const double whole = -p.weight(chain) * levels.back();
    if (all_known(p, chain))
      p.count_truth(chain, whole);
    else
      p.add_term(chain, whole, [&](int64_t row) { return p.is_known(row); });
  }
  if (p.data().loss.kind == SweepLoss::likelihood)
    p.add_expected();
  else
    p.add_best();
}

// Expected loss -----------------------------------------------------------------------------------

void expected_loss(ChainPasses& p) {
  const int K = p.data().n_labels;
  std::vector<float> cost(static_cast<size_t>(p.n_rows() * K), 0.0f);
  for (int64_t chain = 0; chain < p.n_chains(); ++chain)
    for (int64_t row = p.first_row(chain); row < p.end_row(chain); ++row) {
      if (!p.is_known(row)) continue;
      const auto factor = static_cast<float>(p.weight(chain) * p.class_weight(row));
      const float *costs = p.costs(row), share = p.share(chain);
      for (int c = 0; c < K; ++c)
        cost[static_cast<size_t>(row * K + c)] = costs[c] * share * factor;
    }
  add_all_as_terms(p);
  p.add_expected_cost(cost.data());
}

// Label-wise likelihood ---------------------------------------------------------------------------
//
// -sum_t w_t log p(y_t | x): the gradient of an expected cost of -w_t / p(y_t) at true labels.
// Where these are so improbable that messages do not resolve them, it is the likelihood of a chain
// of which no other label is known.

constexpr float kResolved = 1e-8f;
constexpr int64_t kMostTermRows = int64_t(1) << 16;  // such a position copies its whole chain

void labelwise_likelihood(ChainPasses& p) {
  const int K = p.data().n_labels;
  std::vector<float> marginals(static_cast<size_t>(p.n_rows() * K));
  add_all_as_terms(p);
  p.find_marginals(marginals.data());
  std::vector<float> cost(marginals.size(), 0.0f);
  const auto is_resolved = [&](int64_t row) {
    return marginals[static_cast<size_t>(row * K + p.label(row))] > kResolved;
  };
  for (int64_t chain = 0; chain < p.n_chains(); ++chain)
    for (int64_t row = p.first_row(chain); row < p.end_row(chain); ++row) {
      if (!p.is_known(row) || !is_resolved(row)) continue;
      const auto cell = static_cast<size_t>(row * K + p.label(row));
      cost[cell] = static_cast<float>(-p.weight(chain) * p.class_weight(row) /
                                      static_cast<double>(marginals[cell]));
    }
  p.add_expected_cost(cost.data());
  p.clear_terms();
  for (int64_t chain = 0; chain < p.n_chains(); ++chain)
    for (int64_t row = p.first_row(chain); row < p.end_row(chain); ++row) {
      if (!p.is_known(row) || is_resolved(row)) continue;
      const double weight = p.weight(chain) * p.class_weight(row);
      p.add_term(chain, weight);
      p.add_term(chain, -weight, [row](int64_t other) { return other == row; });
      if (p.n_term_rows() < kMostTermRows) continue;
      p.add_expected();
      p.clear_terms();
    }
  p.add_expected();
}

// Pseudo-likelihood -------------------------------------------------------------------------------
//
// -sum_t w_t log p(y_t | all other labels, x), over the positions whose own label and whose
// neighbours' labels are known.

class PseudoLikelihood {
 public:
  explicit PseudoLikelihood(ChainPasses& p) : p_(p), K_(p.data().n_labels) {}

  void add() {
    scores_.resize(static_cast<size_t>(p_.n_rows() * K_));
    counts_.resize(static_cast<size_t>(p_.n_rows()));
    for (int64_t chain = 0; chain < p_.n_chains(); ++chain) {
      find_scores(chain);
      for (int64_t row = p_.first_row(chain); row < p_.end_row(chain); ++row) {
        to_slopes(chain, row);
        p_.add_ends(chain, row, at(row), 1.0);
        for (int64_t c = 0; c < K_; ++c) p_.slopes(row)[c] = static_cast<float>(at(row)[c]);
      }
      if (p_.data().has_edge)
        for_edges(chain, [&](int64_t row, int64_t entry, int64_t step, int64_t joined) {
          double* to = p_.edge_slopes(row) + entry;
          for (int64_t c = 0; c < K_; ++c) to[c * step] += at(joined)[c];
        });
    }
  }

 private:
  double* at(int64_t row) { return scores_.data() + row * K_; }

  // Calls body(row where the edge ends, first entry of its table, entries between labels, row whose
  // label changes) for every row that an edge of known labels joins.
  template <class Body>
  void for_edges(int64_t chain, Body&& body) {
    const int order = p_.data().order;
    for (int64_t row = p_.first_row(chain); row < p_.end_row(chain); ++row) {
      const int64_t* rows = p_.window(chain, row);
      if (!rows) continue;
      bool known = true;
      int64_t entry = 0;
      for (int k = 0; k <= order; ++k) {
        known = known && p_.is_known(rows[k]);
        entry = entry * K_ + p_.label(rows[k]);
      }
      if (!known) {
        for (int k = 0; k <= order; ++k) counts_[static_cast<size_t>(rows[k])] = false;
        continue;
      }
      int64_t step = 1;
      for (int k = order; k >= 0; --k, step *= K_)
        body(row, entry - p_.label(rows[k]) * step, step, rows[k]);
    }
  }

  // The score of every label given the true ones around it.
  void find_scores(int64_t chain) {
    const int64_t first = p_.first_row(chain), last = p_.end_row(chain);
    for (int64_t row = first; row < last; ++row) {
      counts_[static_cast<size_t>(row)] = p_.is_known(row);
      for (int64_t c = 0; c < K_; ++c) at(row)[c] = static_cast<double>(p_.node(row)[c]);
      p_.add_end_scores(chain, row, at(row));
    }
    for_edges(chain, [&](int64_t row, int64_t entry, int64_t step, int64_t joined) {
      if (!p_.has_edges()) return;
      const float* from = p_.edge_scores(row) + entry;
      for (int64_t c = 0; c < K_; ++c) at(joined)[c] += static_cast<double>(from[c * step]);
    });
    const float* pairs = p_.pairs(chain);
    for (int64_t row = first + 1; pairs && row < last; ++row) {
      if (!p_.is_known(row - 1) || !p_.is_known(row)) continue;
      for (int64_t c = 0; c < K_; ++c) {
        at(row)[c] += static_cast<double>(pairs[p_.label(row - 1) * K_ + c]);
        at(row - 1)[c] += static_cast<double>(pairs[c * K_ + p_.label(row)]);
      }
    }
  }

  void to_slopes(int64_t chain, int64_t row) {
    double* x = at(row);
    if (!counts_[static_cast<size_t>(row)]) {
      std::fill_n(x, K_, 0.0);
      return;
    }
    const double top = *std::max_element(x, x + K_);
    double total = 0;
    for (int64_t c = 0; c < K_; ++c) total += x[c] = std::exp(x[c] - top);
    const double weight = p_.weight(chain) * p_.class_weight(row);
    for (int64_t c = 0; c < K_; ++c) x[c] *= weight / total;
    x[p_.label(row)] -= weight;
  }

  ChainPasses& p_;
  const int64_t K_;
  std::vector<double> scores_;
  std::vector<char> counts_;
};

// Loss-scaled -------------------------------------------------------------------------------------

void loss_scaled(ChainPasses& p) {
  const int K = p.data().n_labels;
  std::vector<int32_t> units;
  for (int64_t row = 0; row < p.n_rows(); ++row)
    for (int c = 0; c < K; ++c) units.push_back(static_cast<int32_t>(std::lround(p.costs(row)[c])));
  add_all_as_terms(p);
  p.add_loss_scaled(units.data());
}

// Divergence from a target that follows the costs of labels
// -----------------------------------------
//
// (expectation of the model) - (expectation of the target). The target is a model itself: the
// scores of nodes are the table of the loss, and tables only forbid pairs.

void kl(ChainPasses& p, const LossTables& constants) {
  const int K = p.data().n_labels;
  add_all_as_terms(p);
  p.add_expected();
  p.clear_terms();
  for (int64_t chain = 0; chain < p.n_chains(); ++chain) {
    for (int64_t row = p.first_row(chain); row < p.end_row(chain); ++row)
      for (int c = 0; c < K; ++c)
        p.node(row)[c] = p.node(row)[c] == kNever ? kNever : p.share(chain) * p.costs(row)[c];
    p.add_term(chain, -p.weight(chain));
  }
  p.add_expected(constants.mask);
}

}  // namespace

LossTables::LossTables(const ChainData& data) : mask(data) {
  if (data.loss.kind == SweepLoss::kl) mask.set_mask();
}

void find_slopes(const FewChains& chains, const TableScores& tables, const LossTables& constants,
                 ChainPasses& passes) {
  passes.begin(chains, tables);
  switch (passes.data().loss.kind) {
    case SweepLoss::likelihood:
    case SweepLoss::perceptron:
      return likelihood_or_perceptron(passes);
    case SweepLoss::expected_loss:
      return expected_loss(passes);
    case SweepLoss::pseudo_likelihood:
      return PseudoLikelihood(passes).add();
    case SweepLoss::labelwise_likelihood:
      return labelwise_likelihood(passes);
    case SweepLoss::loss_scaled:
      return loss_scaled(passes);
    case SweepLoss::kl:
      return kl(passes, constants);
  }
}

}  // namespace crfx
