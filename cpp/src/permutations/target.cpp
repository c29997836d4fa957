#include "permutations/target.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "permutations/potentials.hpp"
#include "support/uniform.hpp"

namespace crfx {

void GainLevels::set(const double* gains, int m) {
  sorted.resize(static_cast<size_t>(m));
  sort_falling(gains, m, sorted.data());
  starts.assign(1, 0);
  for (int k = 1; k < m; ++k)
    if (gains[document(k)] != gains[document(k - 1)]) starts.push_back(k);
  starts.push_back(m);
}

int64_t GainLevels::n_states() const {
  int64_t n = 1;
  for (int level = 0; level < count() && n <= kMostStates; ++level) n *= size(level) + 1;
  return std::min(n, kMostStates + 1);
}

// A level has `inside` ranks within the cut, at which its documents are equally likely; those left
// over share the ranks beyond the cut with the left-overs of other levels.
RankingTarget truth_target(const GainLevels& levels, const double* alpha, int64_t cut) {
  const int m = levels.m(), end = cut > 0 && cut < m ? static_cast<int>(cut) : m;
  RankingTarget target;
  target.n_truths = 1;
  double beyond = 0;
  for (int r = end; r < m; ++r) {
    beyond += alpha[r];
    target.n_truths *= r - end + 1;
  }
  for (int g = 0; g < levels.count(); ++g) {
    const int begin = levels.begin(g), size = levels.size(g);
    const int inside = std::clamp(end - begin, 0, size);
    double sum = std::accumulate(alpha + begin, alpha + begin + inside, 0.0);
    if (inside < size) sum += (size - inside) * beyond / (m - end);
    for (int k = 0; k < inside; ++k) target.n_truths *= size - k;
    target.alpha.push_back(sum / size);
  }
  return target;
}

namespace {

// Sums over permutations by counts: a state says how many documents of each level have their rank.
class CountSums {
 public:
  CountSums(const GainLevels& levels, const double* alpha)
      : levels_(levels),
        n_levels_(static_cast<size_t>(levels.count())),
        alpha_(alpha),
        stride_(n_levels_ + 1, 1) {
    for (size_t g = 0; g < n_levels_; ++g)
      stride_[g + 1] = stride_[g] * static_cast<size_t>(levels.size(static_cast<int>(g)) + 1);
    // Counted up like the wheels of an odometer: divisions would take most of the time.
    left_.resize(n_states() * n_levels_);
    for (size_t g = 0; g < n_levels_; ++g) left_[g] = levels.size(static_cast<int>(g));
    for (size_t state = 1; state < n_states(); ++state) {
      int* own = left_.data() + state * n_levels_;
      std::copy(own - n_levels_, own, own);
      size_t g = 0;
      for (; own[g] == 0; ++g) own[g] = levels.size(static_cast<int>(g));
      --own[g];
    }
  }
  // logs (levels x m): log weight of a document at a rank. Adds Z times the mean sums of alpha over
  // the documents of each level, and Z times the mean log weight of a permutation; returns Z.
  double run(const std::vector<double>& logs, std::vector<double>& alpha_sum,
             double& log_sum) const {
    std::vector<double> entry(logs.size());
    for (size_t k = 0; k < logs.size(); ++k) entry[k] = std::exp(logs[k]);
    std::vector<double> forward(n_states(), 0.0), backward(forward);
    forward[0] = backward.back() = 1;
    for (size_t state = 0; state < n_states(); ++state)
      for_next(state, entry, [&](size_t, size_t, double weight, size_t next) {
        forward[next] += weight * forward[state];
      });
    for (size_t state = n_states(); state-- > 0;)
      for_next(state, entry, [&](size_t g, size_t r, double weight, size_t next) {
        const double rest = weight * backward[next];
        backward[state] += rest;
        alpha_sum[g] += forward[state] * rest * alpha_[r];
        log_sum += forward[state] * rest * logs[g * static_cast<size_t>(levels_.m()) + r];
      });
    return forward.back();
  }

 private:
  size_t n_states() const { return stride_.back(); }
  // body(level, rank, weight of giving the rank to one of the level's documents left, next state)
  template <class Body>
  void for_next(size_t state, const std::vector<double>& entry, Body&& body) const {
    const auto m = static_cast<size_t>(levels_.m());
    const int* left = left_.data() + state * n_levels_;
    size_t rank = m;
    for (size_t g = 0; g < n_levels_; ++g) rank -= static_cast<size_t>(left[g]);
    for (size_t g = 0; g < n_levels_; ++g)
      if (left[g]) body(g, rank, left[g] * entry[g * m + rank], state + stride_[g]);
  }

  const GainLevels& levels_;
  size_t n_levels_;
  const double* alpha_;
  std::vector<size_t> stride_;
  std::vector<int> left_;  // (states x levels): documents without a rank
};

}  // namespace

RankingTarget tempered_target(const GainLevels& levels, const double* worth, const double* alpha,
                              const double* discount, double temperature) {
  constexpr double kRounding = 1e-13, kLowest = -1e4;  // of worths; exp of this is 0
  const int m = levels.m();
  const auto size = static_cast<size_t>(m);
  std::vector<double> document(size), rank(size), logs;
  product_potentials(worth, discount, levels.sorted.data(), m, document.data(), rank.data());
  for (int g = 0; g < levels.count(); ++g) {
    const int i = levels.document(levels.begin(g));
    for (size_t r = 0; r < size; ++r) {
      // 0 along permutations without loss, and exactly so: a low temperature would enlarge
      // rounding.
      const double lost = discount[r] * worth[i] - document[static_cast<size_t>(i)] - rank[r];
      logs.push_back(lost > -kRounding ? 0.0 : std::max(lost / temperature, kLowest));
    }
  }
  RankingTarget target;
  std::vector<double> alpha_sum(static_cast<size_t>(levels.count()), 0.0);
  double log_sum = 0;
  const double z = CountSums(levels, alpha).run(logs, alpha_sum, log_sum);
  target.constant = log_sum / z - std::log(z);
  for (int g = 0; g < levels.count(); ++g)
    target.alpha.push_back(alpha_sum[static_cast<size_t>(g)] / (z * levels.size(g)));
  return target;
}

size_t TargetMemo::find(const GainLevels& levels, const double* gains) {
  uint64_t hash = static_cast<uint64_t>(levels.m());
  for (int g = 0; g < levels.count(); ++g) {
    uint64_t bits;
    std::memcpy(&bits, gains + levels.document(levels.begin(g)), sizeof(bits));
    hash = mixed(hash ^ bits) + static_cast<uint64_t>(levels.begin(g));
  }
  const size_t at = mixed(hash) % slots_.size();
  Slot& slot = slots_[at];
  bool same = slot.holds && slot.starts == levels.starts;
  for (int g = 0; same && g < levels.count(); ++g)
    same = slot.gains[static_cast<size_t>(g)] == gains[levels.document(levels.begin(g))];
  if (same) return at;
  slot.holds = false;
  slot.starts = levels.starts;
  slot.gains.clear();
  for (int g = 0; g < levels.count(); ++g)
    slot.gains.push_back(gains[levels.document(levels.begin(g))]);
  return at;
}

}  // namespace crfx
