// The loss-scaled sum against listing all labellings: value, slopes, curvature.
#include "check.hpp"
#include "crfx/inference.hpp"
#include "enumeration.hpp"

using check::entry_of;
using check::enumerate;
using check::Labelling;
using check::make;
using check::Owned;
using check::Spec;
using check::table_of;
using crfx::EdgeOutput;
using crfx::Sharing;

namespace {

template <class S>
constexpr double kTolerance = sizeof(S) == 4 ? 2e-4 : 1e-9;

// What a labelling costs, and how many of its positions and edges are wrong.
struct Mistakes {
  int64_t cost = 0, positions = 0;
};

template <class S>
class Checked {
 public:
  explicit Checked(const crfx::Problem<S>& p)
      : p_(p), cost_(p.n_rows() * p.n_labels), truth_(p.n_rows()), unit_(p.n_instances) {
    std::mt19937 random(5);
    for (int64_t row = 0; row < p.n_rows(); ++row) {
      truth_[row] = p.n_labels > 1 ? static_cast<int32_t>(random() % 2) : 0;
      if (!(p.node[row * p.n_labels + truth_[row]] > -1e30)) truth_[row] = 0;
      for (int c = 0; c < p.n_labels; ++c)
        cost_[row * p.n_labels + c] = c == truth_[row] ? 0 : static_cast<int32_t>(1 + random() % 2);
    }
    for (double& unit : unit_) unit = 0.5;
    node_.assign(cost_.size(), 0), curved_ = node_;
    edge_.assign(p.n_rows() * p.table_size(), 0), edge_curved_ = edge_;
    value_.assign(p.n_instances, 0);
  }

  void run() {
    crfx::LossScaledOutputs<S> out;
    out.value = value_.data();
    out.node = node_.data();
    out.node_curvature = curved_.data();
    out.edge = edge_.data();
    out.edge_curvature = edge_curved_.data();
    out.edge_output = EdgeOutput::each;
    const crfx::WholeCosts costs{cost_.data(), truth_.data(), unit_.data()};
    crfx::loss_scaled(p_, costs, out, nullptr, nullptr, 1);
    for (int64_t i = 0; i < p_.n_instances; ++i) compare(i);
    compare_sums(costs);
  }

 private:
  Mistakes mistakes(int64_t i, const std::vector<int>& y) const {
    Mistakes found;
    for (size_t t = 0; t < y.size(); ++t) {
      const int64_t row = p_.offsets[i] + static_cast<int64_t>(t);
      found.cost += cost_[row * p_.n_labels + y[t]];
      found.positions += y[t] != truth_[row];
    }
    return found;
  }

  void compare(int64_t i) {
    double log_z, total = 0, top = 0;
    auto all = enumerate(p_, i, &log_z);
    const int64_t first = p_.offsets[i], n = p_.length(i);
    const std::vector<int> true_labels(truth_.begin() + first, truth_.begin() + first + n);
    const double own = check::score_of(p_, i, true_labels);
    for (Labelling& l : all) {
      const double loss = unit_[i] * static_cast<double>(mistakes(i, l.y).cost);
      l.probability = loss * (1 + l.score - own);  // logs first
      l.score = loss;                              // now holds the loss
      top = std::max(top, l.probability);
    }
    for (Labelling& l : all) total += l.probability = std::exp(l.probability - top);
    CHECK_CLOSE(value_[i], top + std::log(total), kTolerance<S>);
    for (Labelling& l : all) l.probability /= total;
    for (int64_t t = 0; t < n; ++t) compare_position(i, t, all, true_labels);
  }

  void compare_position(int64_t i, int64_t t, const std::vector<Labelling>& all,
                        const std::vector<int>& truth) {
    const int64_t K = p_.n_labels, size = p_.table_size(), row = p_.offsets[i] + t;
    std::vector<double> g(K, 0), h(size, 0), bound(K, 0);
    const int64_t own = entry_of(p_, i, t, truth);
    for (const Labelling& l : all) {
      const double pull = l.probability * l.score;
      g[l.y[t]] += pull, g[truth[t]] -= pull;
      const double square = 2 * pull * l.score * static_cast<double>(mistakes(i, l.y).positions);
      if (l.y[t] != truth[t]) bound[l.y[t]] += square, bound[truth[t]] += square;
      if (own >= 0) h[entry_of(p_, i, t, l.y)] += pull, h[own] -= pull;
    }
    for (int64_t k = 0; k < K; ++k) {
      CHECK_CLOSE(node_[row * K + k], g[k], kTolerance<S>);
      // It counts wrong positions by the cost, which is larger where a mistake costs 2.
      CHECK(curved_[row * K + k] >= bound[k] * (1 - kTolerance<S>)-kTolerance<S>);
    }
    for (int64_t k = 0; k < size; ++k) {
      CHECK_CLOSE(edge_[row * size + k], h[k], kTolerance<S>);
      CHECK(edge_curved_[row * size + k] >= 0);
    }
  }

  void compare_sums(const crfx::WholeCosts& costs) {
    const int64_t size = p_.table_size();
    const int64_t n_tables = p_.sharing == Sharing::typed ? p_.n_tables : 1;
    std::vector<double> sum(n_tables * size, 0), curved(sum), expected(sum), bound(sum);
    std::vector<S> node(node_.size(), 0), again(node);
    crfx::LossScaledOutputs<S> out;
    out.value = value_.data();
    out.node = node.data();
    out.node_curvature = again.data();
    out.edge_output = EdgeOutput::sum;
    crfx::loss_scaled(p_, costs, out, sum.data(), curved.data(), 2);
    for (int64_t row = 0; row < p_.n_rows(); ++row)
      for (int64_t k = 0; k < size; ++k) {
        const int64_t to = (n_tables > 1 ? p_.edge_types[row] : 0) * size + k;
        expected[to] += edge_[row * size + k], bound[to] += edge_curved_[row * size + k];
      }
    for (size_t k = 0; k < sum.size(); ++k) {
      CHECK_CLOSE(sum[k], expected[k], 10 * kTolerance<S>);
      CHECK_CLOSE(curved[k], bound[k], 10 * kTolerance<S>);
    }
    for (size_t k = 0; k < node.size(); ++k) CHECK(node[k] == node_[k]);
  }

  const crfx::Problem<S>& p_;
  std::vector<int32_t> cost_, truth_;
  std::vector<double> unit_, value_;
  std::vector<S> node_, curved_, edge_, edge_curved_;
};

template <class S>
void check_all(double scale, double forbid) {
  for (Sharing sharing : {Sharing::shared, Sharing::typed, Sharing::each})
    for (int order : {1, 2, 3})
      for (bool forest : {false, true}) {
        if (forest && order > 1) continue;
        Spec spec;
        spec.lengths = {4, 1, 0, 5};
        spec.n_labels = order == 3 ? 2 : 3;
        spec.order = order, spec.sharing = sharing, spec.forest = forest;
        spec.scale = scale, spec.forbid = forbid;
        const Owned<S> p = make<S>(spec);
        Checked<S>(p.view).run();
      }
}

}  // namespace

TEST(loss_scaled_float64) { check_all<double>(1, 0); }
TEST(loss_scaled_float32) { check_all<float>(1, 0); }
TEST(loss_scaled_with_forbidden_labels) { check_all<double>(1, 0.3); }
TEST(loss_scaled_of_wide_scores) { check_all<double>(300, 0.2); }
