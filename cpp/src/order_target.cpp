#include "crfx/order_target.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "crfx/order_potentials.hpp"
#include "crfx/uniform.hpp"

namespace crfx {

void GainLevels::set(const double* gains, int m) {
  order.resize(static_cast<size_t>(m));
  sort_falling(gains, m, order.data());
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
OrderTarget truth_target(const GainLevels& levels, const double* alpha, int64_t cut) {
  const int m = levels.m(), end = cut > 0 && cut < m ? static_cast<int>(cut) : m;
  OrderTarget target;
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

// Sums over orders by counts: a state says how many documents of each level have their rank.
class CountSums {
 public:
  CountSums(const GainLevels& levels, const double* alpha, const double* discount)
      : levels_(levels), alpha_(alpha), discount_(discount), stride_(at(levels.count()) + 1, 1) {
    for (int g = 0; g < levels.count(); ++g)
      stride_[at(g) + 1] = stride_[at(g)] * (levels.size(g) + 1);
  }
  // entry (levels x m): weight of a document at a rank. Adds Z times the mean sums of alpha and of
  // discount over the documents of each level; returns Z.
  double run(const std::vector<double>& entry, std::vector<double>& alpha_sum,
             std::vector<double>& discount_sum) const {
    const int64_t n = stride_.back();
    std::vector<double> forward(static_cast<size_t>(n), 0.0), backward(forward);
    forward[0] = backward.back() = 1;
    for (int64_t state = 0; state < n; ++state)
      for_next(state, entry, [&](int, int, double weight, int64_t next) {
        forward[static_cast<size_t>(next)] += weight * forward[static_cast<size_t>(state)];
      });
    for (int64_t state = n; state-- > 0;)
      for_next(state, entry, [&](int g, int r, double weight, int64_t next) {
        const double rest = weight * backward[static_cast<size_t>(next)];
        backward[static_cast<size_t>(state)] += rest;
        alpha_sum[at(g)] += forward[static_cast<size_t>(state)] * rest * alpha_[r];
        discount_sum[at(g)] += forward[static_cast<size_t>(state)] * rest * discount_[r];
      });
    return forward.back();
  }

 private:
  static size_t at(int k) { return static_cast<size_t>(k); }
  // body(level, rank, weight of giving the rank to one of the level's documents left, next state)
  template <class Body>
  void for_next(int64_t state, const std::vector<double>& entry, Body&& body) const {
    int rank = 0;
    for (int g = 0; g < levels_.count(); ++g) rank += placed(state, g);
    for (int g = 0; g < levels_.count(); ++g) {
      const int left = levels_.size(g) - placed(state, g);
      if (left) body(g, rank, left * entry[at(g * levels_.m() + rank)], state + stride_[at(g)]);
    }
  }
  int placed(int64_t state, int g) const {
    return static_cast<int>(state % stride_[at(g) + 1] / stride_[at(g)]);
  }

  const GainLevels& levels_;
  const double *alpha_, *discount_;
  std::vector<int64_t> stride_;
};

}  // namespace

OrderTarget tempered_target(const GainLevels& levels, const double* score, const double* alpha,
                            const double* discount) {
  const int m = levels.m();
  const auto size = static_cast<size_t>(m), n_levels = static_cast<size_t>(levels.count());
  std::vector<double> document(size), rank(size), entry;
  product_potentials(score, discount, levels.order.data(), m, document.data(), rank.data());
  for (int g = 0; g < levels.count(); ++g) {
    const int i = levels.document(levels.begin(g));
    for (size_t r = 0; r < size; ++r)
      entry.push_back(
          std::exp(discount[r] * score[i] - document[static_cast<size_t>(i)] - rank[r]));
  }
  std::vector<double> alpha_sum(n_levels, 0.0), discount_sum(n_levels, 0.0);
  const double z = CountSums(levels, alpha, discount).run(entry, alpha_sum, discount_sum);
  OrderTarget target;
  target.constant = -std::log(z);
  for (int k = 0; k < m; ++k)  // by level: the same for any order of the documents
    target.constant -=
        document[static_cast<size_t>(levels.document(k))] + rank[static_cast<size_t>(k)];
  for (int g = 0; g < levels.count(); ++g) {
    const auto at = static_cast<size_t>(g);
    target.alpha.push_back(alpha_sum[at] / (z * levels.size(g)));
    target.constant += score[levels.document(levels.begin(g))] * discount_sum[at] / z;
  }
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
