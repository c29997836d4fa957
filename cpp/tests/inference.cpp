// The core against enumeration: chains of order 1 to 3 and forests, every way of sharing tables.
#include "crfx/inference.hpp"

#include <array>
#include <set>

#include "check.hpp"
#include "crfx/errors.hpp"
#include "enumeration.hpp"

using namespace check;
using crfx::Curvature;
using crfx::EdgeOutput;
using crfx::Sharing;

namespace {

template <class S>
constexpr double kTolerance = sizeof(S) == 4 ? 2e-5 : 1e-11;

template <class S>
struct Found {
  std::vector<double> log_z, edge_sum;
  std::vector<S> node, edge, node_gamma, edge_gamma;

  Found(const crfx::Problem<S>& p, Curvature curvature, EdgeOutput edges, int threads = 1) {
    const int64_t rows = p.n_rows(), size = p.table_size();
    const int64_t wide = curvature == Curvature::exact;
    log_z.resize(p.n_instances);
    node.resize(rows * p.n_labels);
    edge.resize(rows * size);
    edge_sum.resize(size * (p.sharing == Sharing::typed ? p.n_tables : 1));
    node_gamma.resize(rows * (wide ? p.n_labels : 1));
    edge_gamma.resize(rows * (wide ? size : 1));
    crfx::SumOutputs<S> out;
    out.log_z = log_z.data();
    out.node = node.data();
    out.edge = edges == EdgeOutput::each ? edge.data() : nullptr;
    out.edge_sum = edges == EdgeOutput::sum ? edge_sum.data() : nullptr;
    out.node_gamma = node_gamma.data();
    out.edge_gamma = edge_gamma.data();
    out.curvature = curvature;
    out.edge_output = edges;
    crfx::sum_product(p, out, threads);
  }
};

template <class S>
void check_sums(const crfx::Problem<S>& p) {
  const double tolerance = kTolerance<S>;
  const Found<S> each(p, Curvature::none, EdgeOutput::each),
      sum(p, Curvature::mixing, EdgeOutput::sum);
  std::vector<double> total(sum.edge_sum.size(), 0);
  for (int64_t i = 0; i < p.n_instances; ++i) {
    double log_z;
    const auto all = enumerate(p, i, &log_z);
    CHECK_CLOSE(each.log_z[i], log_z, tolerance);
    CHECK_CLOSE(sum.log_z[i], log_z, tolerance);
    for (int64_t t = 0; t < p.length(i); ++t) {
      const int64_t row = p.offsets[i] + t, size = p.table_size();
      std::vector<double> node(p.n_labels, 0), edge(size, 0);
      for (const Labelling& l : all) {
        node[l.y[t]] += l.probability;
        const int64_t entry = entry_of(p, i, t, l.y);
        if (entry >= 0) edge[entry] += l.probability;
      }
      for (int k = 0; k < p.n_labels; ++k) {
        CHECK_CLOSE(each.node[row * p.n_labels + k], node[k], tolerance);
        CHECK_CLOSE(sum.node[row * p.n_labels + k], node[k], tolerance);
      }
      const int64_t type = p.sharing == Sharing::typed ? p.edge_types[row] : 0;
      for (int64_t k = 0; k < size; ++k) {
        CHECK_CLOSE(each.edge[row * size + k], edge[k], tolerance);
        total[type * size + k] += edge[k];
      }
    }
  }
  for (size_t k = 0; k < total.size(); ++k) CHECK_CLOSE(sum.edge_sum[k], total[k], tolerance);
}

template <class S>
void check_best(const crfx::Problem<S>& p) {
  std::vector<int32_t> labels(p.n_rows());
  std::vector<double> scores(p.n_instances);
  crfx::max_product(p, labels.data(), scores.data(), 1);
  const crfx::KBest ranked = crfx::k_best(p, 7, 1);
  size_t next = 0, row = 0;
  for (int64_t i = 0; i < p.n_instances; ++i) {
    double log_z;
    const auto all = enumerate(p, i, &log_z);
    CHECK_CLOSE(scores[i], all[0].score, kTolerance<S>);
    const std::vector<int> y(labels.begin() + p.offsets[i], labels.begin() + p.offsets[i + 1]);
    CHECK_CLOSE(score_of(p, i, y), all[0].score, kTolerance<S>);
    CHECK(ranked.counts[i] == static_cast<int64_t>(std::min<size_t>(7, all.size())));
    std::set<std::vector<int>> seen;
    for (int64_t k = 0; k < ranked.counts[i]; ++k, ++next, row += p.length(i)) {
      const std::vector<int> z(ranked.labels.begin() + row,
                               ranked.labels.begin() + row + p.length(i));
      CHECK(seen.insert(z).second);
      CHECK_CLOSE(ranked.scores[next], all[k].score, kTolerance<S>);
      CHECK_CLOSE(score_of(p, i, z), all[k].score, kTolerance<S>);
    }
  }
}

// Sums over edges, for which chains may run side by side, against one table per edge.
template <class S>
void check_summed_expectation(const crfx::Problem<S>& p, const std::vector<S>& cost,
                              const crfx::ExpectationOutputs<S>& each) {
  const int64_t size = p.table_size();
  const int64_t n_tables = p.sharing == crfx::Sharing::typed ? p.n_tables : 1;
  std::vector<double> value(p.n_instances), sum(n_tables * size), expected(sum.size());
  std::vector<S> node(cost.size());
  crfx::ExpectationOutputs<S> out;
  out.value = value.data();
  out.node = node.data();
  out.edge_sum = sum.data();
  out.edge_output = EdgeOutput::sum;
  crfx::expectation(p, cost.data(), out, 2);
  for (int64_t row = 0; row < p.n_rows(); ++row)
    for (int64_t k = 0; k < size; ++k)
      expected[(n_tables > 1 ? p.edge_types[row] : 0) * size + k] += each.edge[row * size + k];
  for (int64_t i = 0; i < p.n_instances; ++i) CHECK_CLOSE(value[i], each.value[i], kTolerance<S>);
  for (size_t k = 0; k < node.size(); ++k) CHECK_CLOSE(node[k], each.node[k], kTolerance<S>);
  for (size_t k = 0; k < sum.size(); ++k) CHECK_CLOSE(sum[k], expected[k], 10 * kTolerance<S>);
}

template <class S>
void check_expectation(const crfx::Problem<S>& p) {
  std::mt19937 random(1);
  std::vector<S> cost(p.n_rows() * p.n_labels), node(cost.size()),
      edge(p.n_rows() * p.table_size());
  for (S& c : cost) c = static_cast<S>(random() % 5);
  std::vector<double> value(p.n_instances);
  crfx::ExpectationOutputs<S> out;
  out.value = value.data();
  out.node = node.data();
  out.edge = edge.data();
  out.edge_output = EdgeOutput::each;
  crfx::expectation(p, cost.data(), out, 1);
  check_summed_expectation(p, cost, out);
  for (int64_t i = 0; i < p.n_instances; ++i) {
    double log_z;
    auto all = enumerate(p, i, &log_z);
    double mean = 0;
    for (Labelling& l : all) {
      double c = 0;
      for (size_t t = 0; t < l.y.size(); ++t) c += cost[(p.offsets[i] + t) * p.n_labels + l.y[t]];
      mean += l.probability * (l.score = c);  // the score now holds the cost
    }
    CHECK_CLOSE(value[i], mean, kTolerance<S>);
    for (int64_t t = 0; t < p.length(i); ++t) {
      std::vector<double> g(p.n_labels, 0), h(p.table_size(), 0);
      for (const Labelling& l : all) {
        g[l.y[t]] += l.probability * (l.score - mean);
        const int64_t entry = entry_of(p, i, t, l.y);
        if (entry >= 0) h[entry] += l.probability * (l.score - mean);
      }
      const int64_t row = p.offsets[i] + t;
      for (int k = 0; k < p.n_labels; ++k)
        CHECK_CLOSE(node[row * p.n_labels + k], g[k], kTolerance<S>);
      for (int64_t k = 0; k < p.table_size(); ++k)
        CHECK_CLOSE(edge[row * p.table_size() + k], h[k], kTolerance<S>);
    }
  }
}

// exact = row sums of |H| / H_ii by enumeration; exact <= dobrushin <= mixing <= length.
void check_gamma(const crfx::Problem<double>& p) {
  constexpr double slack = 1e-9, negligible = 1e-6;
  const std::array<Curvature, 4> kinds = {Curvature::exact, Curvature::dobrushin, Curvature::mixing,
                                          Curvature::length};
  std::vector<Found<double>> found;
  for (Curvature kind : kinds) found.emplace_back(p, kind, EdgeOutput::sum);
  const int64_t K = p.n_labels, size = p.table_size();
  for (int64_t i = 0; i < p.n_instances; ++i) {
    double log_z;
    const auto all = enumerate(p, i, &log_z);
    const int64_t n = p.length(i);
    // Node events (width K), then edge events (width table size).
    for (int part = 0; part < 2; ++part) {
      const int64_t width = part ? size : K;
      const auto event = [&](const Labelling& l, int64_t t) {
        return part ? entry_of(p, i, t, l.y) : l.y[t];
      };
      std::vector<double> mean(n * width, 0), joint(n * width * n * width, 0);
      for (const Labelling& l : all)
        for (int64_t t = 0; t < n; ++t) {
          if (event(l, t) < 0) continue;
          mean[t * width + event(l, t)] += l.probability;
          for (int64_t s = 0; s < n; ++s)
            if (event(l, s) >= 0)
              joint[(t * width + event(l, t)) * n * width + s * width + event(l, s)] +=
                  l.probability;
        }
      for (int64_t a = 0; a < n * width; ++a) {
        const double h = mean[a] * (1 - mean[a]);
        if (h < negligible) continue;
        double sum = 0;
        for (int64_t b = 0; b < n * width; ++b)
          sum += std::fabs(joint[a * n * width + b] - mean[a] * mean[b]);
        const int64_t row = p.offsets[i] + a / width, event_at = row * width + a % width;
        const auto gamma = [&](int kind, int64_t at) {
          return part ? found[kind].edge_gamma[at] : found[kind].node_gamma[at];
        };
        CHECK_CLOSE(gamma(0, event_at), sum / h, 1e-7);
        CHECK(gamma(0, event_at) <= gamma(1, row) + slack * gamma(1, row));
        CHECK(gamma(1, row) <= gamma(2, row) + slack);
        CHECK(gamma(2, row) <= gamma(3, row) + slack);
      }
    }
  }
}

// Calls body(spec) for structures of every kind.
void for_specs(double scale, double forbid, const std::function<void(const Spec&)>& body) {
  unsigned seed = 0;
  for (Sharing sharing : {Sharing::shared, Sharing::typed, Sharing::each})
    for (int kind = 0; kind < 4; ++kind)
      for (bool ends : {false, true}) {
        Spec spec;
        spec.lengths = {4, 0, 1, 5, 3, 2};
        spec.order = kind == 3 ? 1 : kind + 1;
        spec.forest = kind == 3;
        spec.n_labels = 2 + static_cast<int>(seed % 2);
        spec.sharing = sharing;
        spec.ends = ends;
        spec.scale = scale;
        spec.forbid = forbid;
        spec.seed = ++seed;
        body(spec);
      }
}

template <class S>
void check_all(double scale, double forbid) {
  for_specs(scale, forbid, [](const Spec& spec) {
    const Owned<S> p = make<S>(spec);
    check_sums(p.view);
    check_best(p.view);
    check_expectation(p.view);
  });
}

}  // namespace

TEST(sums_and_maxima_float64) { check_all<double>(1, 0); }
TEST(sums_and_maxima_float32) { check_all<float>(1, 0); }
TEST(forbidden_labels) {
  check_all<double>(1, 0.3);
  check_all<float>(1, 0.3);
}
TEST(wide_scores_redone_in_log_space) {
  check_all<double>(1000, 0.2);
  check_all<float>(60, 0);
}
TEST(gamma_dominates_row_sums) {
  for (double scale : {0.3, 1.0, 3.0})
    for_specs(scale, 0, [](const Spec& spec) { check_gamma(make<double>(spec).view); });
}

TEST(bundles_of_many_lengths) {
  Spec spec;
  std::mt19937 random(3);
  for (int k = 0; k < 90; ++k) spec.lengths.push_back(random() % 6);
  for (int labels : {1, 2, 5}) {
    spec.n_labels = labels;
    check_sums(make<float>(spec).view);
    check_sums(make<double>(spec).view);
    check_best(make<float>(spec).view);
    check_expectation(make<float>(spec).view);
    check_expectation(make<double>(spec).view);
  }
}

TEST(chain_as_forest) {
  Spec spec;
  spec.lengths = {6, 1, 9};
  spec.ends = false;
  Owned<double> chain = make<double>(spec), forest = make<double>(spec);
  for (int64_t n : spec.lengths)
    for (int64_t t = 0; t < n; ++t) forest.parents.push_back(t - 1);
  forest.visit = crfx::visit_order(forest.view.offsets, forest.parents.data(), 3);
  forest.view.parents = forest.parents.data();
  forest.view.visit = forest.visit.data();
  forest.view.node = chain.view.node;
  const Found<double> a(chain.view, Curvature::mixing, EdgeOutput::sum);
  const Found<double> b(forest.view, Curvature::mixing, EdgeOutput::sum);
  for (size_t k = 0; k < a.node.size(); ++k) CHECK_CLOSE(b.node[k], a.node[k], 1e-12);
  for (size_t k = 0; k < a.node_gamma.size(); ++k)
    CHECK_CLOSE(b.node_gamma[k], a.node_gamma[k], 1e-10);
  for (size_t k = 0; k < a.edge_gamma.size(); ++k)
    CHECK_CLOSE(b.edge_gamma[k], a.edge_gamma[k], 1e-10);
}

TEST(samples_follow_the_model) {
  Spec spec;
  spec.lengths = {3};
  spec.n_labels = 2;
  for (int order : {1, 2}) {
    spec.order = order;
    const Owned<double> p = make<double>(spec);
    double log_z;
    const auto all = enumerate(p.view, 0, &log_z);
    constexpr int64_t n = 20000;
    std::vector<int32_t> labels(n * 3);
    crfx::sample(p.view, n, 7, labels.data(), 1);
    for (const Labelling& l : all) {
      double count = 0;
      for (int64_t k = 0; k < n; ++k)
        count += std::equal(l.y.begin(), l.y.end(), labels.begin() + k * 3);
      const double deviation = std::sqrt(l.probability * (1 - l.probability) / n);
      CHECK(std::fabs(count / n - l.probability) < 5 * deviation);
    }
  }
}

TEST(same_bits_for_any_number_of_threads) {
  Spec spec;
  std::mt19937 random(5);
  for (int k = 0; k < 700; ++k) spec.lengths.push_back(random() % 12);
  for (bool forest : {false, true}) {
    spec.forest = forest;
    const Owned<float> p = make<float>(spec);
    const Found<float> one(p.view, Curvature::mixing, EdgeOutput::sum, 1);
    const Found<float> three(p.view, Curvature::mixing, EdgeOutput::sum, 3);
    CHECK(one.log_z == three.log_z);
    CHECK(one.node == three.node);
    CHECK(one.edge_sum == three.edge_sum);
    CHECK(one.node_gamma == three.node_gamma);
  }
}

TEST(bad_input_is_refused_with_its_place) {
  const auto message = [](Owned<float>& p) -> std::string {
    try {
      Found<float>(p.view, Curvature::none, EdgeOutput::sum);
    } catch (const crfx::InputError& error) {
      return error.what();
    }
    return "";
  };
  Spec spec;
  spec.lengths = {2, 3};
  Owned<float> p = make<float>(spec);
  p.node[3 * 3 + 1] = std::nanf("");
  CHECK(message(p).find("instance 1, position 1") == 0);
  p = make<float>(spec);
  p.view.node = p.node.data();
  for (int k = 0; k < 3; ++k) p.node[4 * 3 + k] = -std::numeric_limits<float>::infinity();
  CHECK(message(p).find("instance 1: ") == 0);
  const std::vector<int64_t> offsets = {0, 1, 4}, cycle = {-1, 1, 2, 1}, beyond = {-1, -1, 3, 0};
  for (const auto* parents : {&cycle, &beyond}) {
    std::string what;
    try {
      crfx::visit_order(offsets.data(), parents->data(), 2);
    } catch (const crfx::InputError& error) {
      what = error.what();
    }
    CHECK(what.find("instance 1, position 1") == 0);
  }
}

TEST(the_oracle_can_fail) {
  // A wrong table must be noticed: the same check, on a problem whose answers were changed.
  Spec spec;
  spec.lengths = {3};
  Owned<double> p = make<double>(spec);
  const Found<double> before(p.view, Curvature::none, EdgeOutput::each);
  p.edge[1] += 0.1;
  double log_z;
  enumerate(p.view, 0, &log_z);
  CHECK(!close(before.log_z[0], log_z, kTolerance<double>));
}
