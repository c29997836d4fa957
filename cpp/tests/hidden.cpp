// Hidden units against plain loops in float64, and sweeps over chains whose scores they give.
// Arrays are of the exact size, so that the sanitizers see what is read beyond them.
#include "crfx/hidden.hpp"

#include <algorithm>
#include <random>

#include "check.hpp"
#include "crfx/sweeps.hpp"
#include "simd/kernels.hpp"

using namespace check;
using crfx::Activation;

namespace {

constexpr Activation kActivations[] = {Activation::softplus, Activation::relu, Activation::tanh,
                                       Activation::sigmoid};

template <class S>
constexpr double kTolerance = sizeof(S) == 4 ? 2e-5 : 1e-12;
constexpr double kRounding = 1e-5;  // of steps in float, in sums of another order

template <class S>
std::vector<S> normal(int64_t n, double scale, std::mt19937& random) {
  std::normal_distribution<double> draw(0, scale);
  std::vector<S> found(static_cast<size_t>(n));
  for (S& x : found) x = static_cast<S>(draw(random));
  return found;
}

// Units with weights of their own, and rows that they see.
template <class S>
struct Units {
  int64_t H, K, rows;
  std::vector<S> bias, to_label, constant, inputs, slopes;

  Units(int64_t H, int64_t K, int64_t rows, double far_labels = 1, double far_inputs = 1)
      : H(H), K(K), rows(rows) {
    std::mt19937 random(static_cast<unsigned>(H + 100 * K + rows));
    bias = normal<S>(H, 1, random);
    to_label = normal<S>(H * K, far_labels, random);
    constant = normal<S>(K, 1, random);
    inputs = normal<S>(rows * H, far_inputs, random);
    slopes = normal<S>(rows * K, 1, random);
    for (size_t k = 0; k < slopes.size(); k += 3) slopes[k] = 0;  // rows and labels that rest
  }
  crfx::HiddenUnits<S> view(Activation activation) const {
    return {bias.data(), to_label.data(), constant.data(), H, K, activation};
  }
  double input(int64_t row, int64_t h) const {
    return static_cast<double>(inputs[static_cast<size_t>(row * H + h)]) +
           static_cast<double>(bias[static_cast<size_t>(h)]);
  }
  double weight(int64_t h, int64_t k) const {
    return static_cast<double>(to_label[static_cast<size_t>(h * K + k)]);
  }
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// What a unit adds to a score, and its slopes in the input and in V.
struct Added {
  double value, in_input, in_weight;
};

Added added(Activation activation, double a, double v) {
  const double x = a + v;
  switch (activation) {
    case Activation::softplus:
      return {std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))), sigmoid(x), sigmoid(x)};
    case Activation::relu:
      return {std::max(x, 0.0), x > 0 ? 1.0 : 0.0, x > 0 ? 1.0 : 0.0};
    case Activation::tanh:
      return {v * std::tanh(a), v * (1 - std::tanh(a) * std::tanh(a)), std::tanh(a)};
    case Activation::sigmoid:
      return {v * sigmoid(a), v * sigmoid(a) * sigmoid(-a), sigmoid(a)};
  }
  return {};
}

template <class S>
void check_units(const Units<S>& units, Activation activation) {
  const int64_t H = units.H, K = units.K, rows = units.rows;
  std::vector<S> scores(static_cast<size_t>(rows * K)), in_inputs(static_cast<size_t>(rows * H));
  std::vector<double> in_bias(static_cast<size_t>(H), 7), in_weights(static_cast<size_t>(H * K), 7),
      in_constant(static_cast<size_t>(K), 7);
  crfx::hidden_scores(units.view(activation), units.inputs.data(), scores.data(), rows, 2);
  crfx::hidden_gradient(units.view(activation), units.inputs.data(), units.slopes.data(),
                        in_inputs.data(), {in_bias.data(), in_weights.data(), in_constant.data()},
                        rows, 2);
  std::vector<double> bias(static_cast<size_t>(H), 0), weights(static_cast<size_t>(H * K), 0),
      constant(static_cast<size_t>(K), 0);
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<double> inputs(static_cast<size_t>(H), 0);
    for (int64_t k = 0; k < K; ++k) {
      const auto slope = static_cast<double>(units.slopes[static_cast<size_t>(row * K + k)]);
      double score = static_cast<double>(units.constant[static_cast<size_t>(k)]);
      constant[static_cast<size_t>(k)] += slope;
      for (int64_t h = 0; h < H; ++h) {
        const Added one = added(activation, units.input(row, h), units.weight(h, k));
        score += one.value;
        inputs[static_cast<size_t>(h)] += slope * one.in_input;
        weights[static_cast<size_t>(h * K + k)] += slope * one.in_weight;
      }
      CHECK_CLOSE(static_cast<double>(scores[static_cast<size_t>(row * K + k)]), score,
                  kTolerance<S>);
    }
    for (int64_t h = 0; h < H; ++h) {
      CHECK_CLOSE(static_cast<double>(in_inputs[static_cast<size_t>(row * H + h)]),
                  inputs[static_cast<size_t>(h)], kTolerance<S>);
      bias[static_cast<size_t>(h)] += inputs[static_cast<size_t>(h)];
    }
  }
  for (size_t h = 0; h < bias.size(); ++h) CHECK_CLOSE(in_bias[h], bias[h], kTolerance<S>);
  for (size_t e = 0; e < weights.size(); ++e) CHECK_CLOSE(in_weights[e], weights[e], kTolerance<S>);
  for (size_t k = 0; k < constant.size(); ++k)
    CHECK_CLOSE(in_constant[k], constant[k], kTolerance<S>);
}

template <class S>
void check_sizes() {
  for (const Activation activation : kActivations)
    for (const int64_t H : {0, 1, 16, 17})
      for (const int64_t K : {1, 2, 16, 17, 33})
        for (const int64_t rows : {1, 2, 3, 4, 5, 9}) check_units(Units<S>(H, K, rows), activation);
}

// Weights on both sides of where powers of e may be formed, and inputs that saturate every unit.
template <class S>
void check_far() {
  for (const Activation activation : {Activation::softplus, Activation::relu}) {
    for (const double far : {5.0, 30.0, 100.0, 1e4})
      check_units(Units<S>(70, 3, 5, far), activation);
    check_units(Units<S>(17, 3, 5, 1, 1e4), activation);
    check_units(Units<S>(17, 3, 5, 1e4, 1e4), activation);
  }
  for (const Activation activation : {Activation::tanh, Activation::sigmoid})
    check_units(Units<S>(17, 3, 5, 1, 1e4), activation);
}

}  // namespace

TEST(hidden_units_of_any_number_in_float) { check_sizes<float>(); }
TEST(hidden_units_of_any_number_in_double) { check_sizes<double>(); }
TEST(hidden_units_far_from_0_in_float) { check_far<float>(); }
TEST(hidden_units_far_from_0_in_double) { check_far<double>(); }

TEST(hidden_units_at_the_largest_power) {
  // All weights at the border where powers of e are given up, all of one sign, or in turn: products
  // of many factors would overflow, or vanish, were they not normalised in time.
  for (const double far : {-20.0, 20.0, 20.01})
    for (const bool turns : {false, true}) {
      Units<float> units(100, 2, 4);
      for (size_t e = 0; e < units.to_label.size(); ++e)
        units.to_label[e] = static_cast<float>(turns && e % 2 ? -far : far);
      for (const float input : {-1e4f, -30.0f, 0.0f, 30.0f, 1e4f}) {
        std::fill(units.inputs.begin(), units.inputs.end(), input);
        check_units(units, Activation::softplus);
      }
    }
}

TEST(hidden_gradients_do_not_depend_on_threads) {
  const Units<float> units(5, 3, 2000);
  std::vector<std::vector<double>> found;
  for (const int n_threads : {1, 2}) {
    std::vector<float> in_inputs(units.inputs.size());
    std::vector<double> sums(static_cast<size_t>(5 + 15 + 3));
    crfx::hidden_gradient(units.view(Activation::softplus), units.inputs.data(),
                          units.slopes.data(), in_inputs.data(),
                          {sums.data(), sums.data() + 5, sums.data() + 20}, units.rows, n_threads);
    sums.insert(sums.end(), in_inputs.begin(), in_inputs.end());
    found.push_back(sums);
  }
  CHECK(found[0] == found[1]);
}

TEST(small_products_of_dense_matrices) {
  std::mt19937 random(0);
  const auto& kernels = crfx::kernels<float>();
  crfx::Workspace work;
  for (const int64_t m : {1, 3, 4, 7})
    for (const int64_t n : {1, 2, 15, 16, 17, 33, 64, 81})
      for (const int64_t rows : {1, 3, 4, 9}) {
        work.reset();
        const int64_t stride = (n + kernels.lanes - 1) / kernels.lanes * kernels.lanes;
        const auto X = normal<float>(rows * m, 1, random);
        auto W = normal<float>(m * n, 1, random);
        auto out = normal<float>(rows * stride, 1, random);
        kernels.multiply(X.data(), m, W.data(), n, out.data(), stride, rows, work);
        for (int64_t row = 0; row < rows; ++row)
          for (int64_t c = 0; c < n; ++c) {
            double expected = 0;
            for (int64_t d = 0; d < m; ++d)
              expected += static_cast<double>(X[static_cast<size_t>(row * m + d)]) *
                          static_cast<double>(W[static_cast<size_t>(d * n + c)]);
            CHECK_CLOSE(static_cast<double>(out[static_cast<size_t>(row * stride + c)]), expected,
                        kTolerance<float>);
          }
        const auto before = W;
        kernels.add_outer(X.data(), m, out.data(), stride, -0.5f, W.data(), n, rows);
        for (int64_t d = 0; d < m; ++d)
          for (int64_t c = 0; c < n; ++c) {
            double expected = static_cast<double>(before[static_cast<size_t>(d * n + c)]);
            for (int64_t row = 0; row < rows; ++row)
              expected -= 0.5 * static_cast<double>(X[static_cast<size_t>(row * m + d)]) *
                          static_cast<double>(out[static_cast<size_t>(row * stride + c)]);
            CHECK_CLOSE(static_cast<double>(W[static_cast<size_t>(d * n + c)]), expected,
                        kTolerance<float>);
          }
      }
}

// Sweeps ------------------------------------------------------------------------------------------

namespace {

constexpr int64_t kFeatures = 7, kUnits = 5;
constexpr int kLabels = 3;
constexpr int64_t kNowhere = 2;  // a feature that does not occur

// Four chains, one of them empty, with features both ways.
struct Chains {
  std::vector<int64_t> offsets{0, 3, 3, 8, 9}, starts{0}, order{2, 0, 1, 3};
  std::vector<int32_t> indices, labels;
  std::vector<float> values, dense;

  Chains() {
    std::mt19937 random(1);
    for (int64_t row = 0; row < offsets.back(); ++row) {
      for (int32_t f = 0; f < kFeatures; ++f) {
        const bool here = f != kNowhere && random() % 2 == 0;
        dense.push_back(here ? static_cast<float>(random() % 5 + 1) / 4 : 0.0f);
        if (!here) continue;
        indices.push_back(f);
        values.push_back(dense.back());
      }
      starts.push_back(static_cast<int64_t>(indices.size()));
      labels.push_back(static_cast<int32_t>(random() % kLabels));
    }
  }
  crfx::HiddenSweepData data(bool sparse) const {
    crfx::HiddenSweepData found;
    found.chains.offsets = offsets.data();
    found.chains.labels = labels.data();
    found.chains.n_labels = kLabels;
    found.chains.has_edge = found.chains.has_start = found.chains.has_end = true;
    if (!sparse) found.dense = dense.data();
    if (sparse) found.sparse = {starts.data(), indices.data(), values.data(), offsets.back()};
    found.n_features = kFeatures;
    found.n_hidden = kUnits;
    found.has_skip = true;
    return found;
  }
};

struct Asked {
  bool sparse = false;
  crfx::SweepLoss loss = crfx::SweepLoss::likelihood;
  double penalty = 0, dropout = 0;
  uint64_t seed = 0;
  int64_t batch_size = 1, first = 0;
  int sweeps = 3;
};

struct Found {
  std::vector<float> values;
  std::vector<double> sum;
  int64_t n_counted;
};

constexpr int64_t kStepsPerSweep = 4;

// Parameters after a few sweeps, the first of which does not count.
Found swept(const Asked& asked) {
  const Chains chains;
  crfx::HiddenSweepData data = chains.data(asked.sparse);
  std::vector<float> margin(kLabels * kLabels, 0.5f);
  for (size_t k = 0; k < kLabels; ++k) margin[k * (kLabels + 1)] = 0;
  data.chains.loss.kind = asked.loss;
  if (asked.loss == crfx::SweepLoss::perceptron) data.chains.loss.table = margin.data();
  std::mt19937 random(2);
  Found found{normal<float>(data.size(), 0.5, random), {}, 0};
  found.sum.assign(static_cast<size_t>(data.size()), 0.0);
  std::vector<double> product_then(kFeatures + 1, 1.0), steps_then(kFeatures + 1, 0.0);
  crfx::HiddenParameters at{
      found.values.data(), found.sum.data(), product_then.data(), steps_then.data(), 1.0, 0.0, 0};
  for (int sweep = 0; sweep < asked.sweeps; ++sweep) {
    const crfx::SweepSteps steps{chains.order.data(),
                                 static_cast<int64_t>(chains.order.size()),
                                 asked.batch_size,
                                 asked.first + sweep * kStepsPerSweep,
                                 0.2,
                                 10.0,
                                 asked.penalty,
                                 1e-3,
                                 sweep > 0};
    crfx::hidden_sweep(data, steps, {1, 2, 0.5, 1, 0.7, 1.5, 3}, {asked.dropout, asked.seed}, at);
  }
  crfx::hidden_catch_up(data, at);
  found.n_counted = at.n_counted;
  return found;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double found = 0;
  for (size_t k = 0; k < a.size(); ++k)
    found = std::max(found, std::fabs(static_cast<double>(a[k]) - static_cast<double>(b[k])));
  return found;
}

}  // namespace

TEST(a_hidden_step_is_that_of_the_gradient) {
  // The last chain has one row: the gradient of its loss is that of a softmax. Parameters shrink.
  const Chains chains;
  for (const bool sparse : {false, true}) {
    const crfx::HiddenSweepData data = chains.data(sparse);
    std::mt19937 random(3);
    auto values = normal<float>(data.size(), 0.5, random);
    const std::vector<double> w(values.begin(), values.end());
    std::vector<double> sum(w.size(), 0.0), product_then(kFeatures + 1, 1.0),
        steps_then(kFeatures + 1, 0.0);
    crfx::HiddenParameters at{
        values.data(), sum.data(), product_then.data(), steps_then.data(), 1.0, 0.0, 0};
    const int64_t last = 3, row = 8;
    const crfx::SweepSteps steps{&last, 1, 1, 5, 0.2, 10.0, 0.7, 1e-3, false};
    const crfx::HiddenRates rates{1, 2, 0.5, 1.2, 0.7, 1.5, 3};
    crfx::hidden_sweep(data, steps, rates, {}, at);
    crfx::hidden_catch_up(data, at);

    const double size = 0.2 / 1.5, shrinkage = 1 / (1 + 0.7 * size);
    const auto x = [&](int64_t f) {
      return static_cast<double>(chains.dense[static_cast<size_t>(row * kFeatures + f)]);
    };
    const auto own = [&](int64_t place) { return w[static_cast<size_t>(place)]; };
    const int64_t ends = data.tables() + data.chains.n_edge();
    std::vector<double> input(kUnits), score(kLabels), slope(kLabels);
    for (int64_t h = 0; h < kUnits; ++h) {
      input[static_cast<size_t>(h)] = own(data.bias() + h);
      for (int64_t f = 0; f < kFeatures; ++f)
        input[static_cast<size_t>(h)] += x(f) * own(f * kUnits + h);
    }
    const auto unit = [&](int64_t h, int64_t k) {
      return added(Activation::softplus, input[static_cast<size_t>(h)],
                   own(data.to_label() + h * kLabels + k));
    };
    double total = 0;
    for (int64_t k = 0; k < kLabels; ++k) {
      double& to = score[static_cast<size_t>(k)];
      to = own(data.constant() + k) + own(ends + k) + own(ends + kLabels + k);
      for (int64_t h = 0; h < kUnits; ++h) to += unit(h, k).value;
      for (int64_t f = 0; f < kFeatures; ++f) to += x(f) * own(data.skip() + f * kLabels + k);
      total += std::exp(to);
    }
    for (int64_t k = 0; k < kLabels; ++k)
      slope[static_cast<size_t>(k)] =
          std::exp(score[static_cast<size_t>(k)]) / total - (chains.labels[row] == k);
    const auto check = [&](int64_t place, double rate, double gradient) {
      CHECK_CLOSE(static_cast<double>(values[static_cast<size_t>(place)]),
                  own(place) * shrinkage - size * rate * gradient, kRounding);
    };
    for (int64_t h = 0; h < kUnits; ++h) {
      double in_input = 0;
      for (int64_t k = 0; k < kLabels; ++k) {
        in_input += slope[static_cast<size_t>(k)] * unit(h, k).in_input;
        check(data.to_label() + h * kLabels + k, rates.to_label,
              slope[static_cast<size_t>(k)] * unit(h, k).in_weight);
      }
      check(data.bias() + h, rates.bias, in_input);
      for (int64_t f = 0; f < kFeatures; ++f) check(f * kUnits + h, rates.weights, x(f) * in_input);
    }
    for (int64_t k = 0; k < kLabels; ++k) {
      check(data.constant() + k, rates.constant, slope[static_cast<size_t>(k)]);
      check(ends + k, rates.ends, slope[static_cast<size_t>(k)]);
      check(ends + kLabels + k, rates.ends, slope[static_cast<size_t>(k)]);
      for (int64_t f = 0; f < kFeatures; ++f)
        check(data.skip() + f * kLabels + k, rates.skip, x(f) * slope[static_cast<size_t>(k)]);
    }
    for (int64_t e = 0; e < data.chains.n_edge(); ++e) check(data.tables() + e, rates.edge, 0);
  }
}

TEST(hidden_sweeps_over_dense_and_sparse_rows_agree) {
  for (const auto loss : {crfx::SweepLoss::likelihood, crfx::SweepLoss::perceptron})
    for (const int64_t batch_size : {1, 3})
      for (const double penalty : {0.0, 0.1, 30.0}) {  // the last: shrinkage begins anew
        Asked asked{false, loss, penalty};
        asked.batch_size = batch_size;
        const Found dense = swept(asked);
        asked.sparse = true;
        const Found sparse = swept(asked);
        CHECK(distance(dense.values, sparse.values) < kRounding);
        for (size_t k = 0; k < dense.sum.size(); ++k)
          CHECK_CLOSE(dense.sum[k], sparse.sum[k], kRounding);
        CHECK(dense.n_counted == 2);  // the ends of the sweeps that count
        asked.sweeps = 0;
        CHECK(distance(dense.values, swept(asked).values) > 0.01);
      }
}

TEST(hidden_sweeps_sum_the_ends_of_sweeps) {
  for (const bool sparse : {false, true})
    for (const double penalty : {0.0, 0.1, 30.0}) {
      Asked asked{sparse, crfx::SweepLoss::likelihood, penalty};
      const Found whole = swept(asked);
      asked.sweeps = 2;
      const Found before = swept(asked);
      for (size_t k = 0; k < whole.sum.size(); ++k)
        CHECK_CLOSE(whole.sum[k],
                    static_cast<double>(before.values[k]) + static_cast<double>(whole.values[k]),
                    kRounding);
    }
}

TEST(hidden_weights_of_features_that_do_not_occur_stay) {
  Asked asked{true};
  asked.sweeps = 0;
  const Found first = swept(asked);
  asked.sweeps = 3;
  const Found last = swept(asked);
  const crfx::HiddenSweepData data = Chains().data(true);
  for (int64_t f = 0; f < kFeatures; ++f) {
    double moved = 0;
    const auto see = [&](int64_t begin, int64_t n) {
      for (int64_t k = begin; k < begin + n; ++k)
        moved += std::fabs(static_cast<double>(last.values[static_cast<size_t>(k)]) -
                           static_cast<double>(first.values[static_cast<size_t>(k)]));
    };
    see(f * kUnits, kUnits);
    see(data.skip() + f * kLabels, kLabels);
    CHECK((moved == 0) == (f == kNowhere));
  }
}

TEST(hidden_dropout_depends_on_seed_and_number_of_the_step) {
  for (const bool sparse : {false, true}) {
    Asked asked{sparse};
    asked.sweeps = 1;
    const Found whole = swept(asked);
    asked.dropout = 0.4;
    const Found one = swept(asked);
    CHECK(one.values == swept(asked).values);
    CHECK(distance(one.values, whole.values) > 1e-3);
    asked.seed = 1;
    CHECK(distance(one.values, swept(asked).values) > 1e-3);
    // Steps later, but of nearly the same size.
    asked.seed = 0;
    asked.first = 1;
    const Found later = swept(asked);
    asked.dropout = 0;
    const double by_size = distance(whole.values, swept(asked).values);
    CHECK(distance(one.values, later.values) > 2 * by_size);
  }
}

TEST(a_hidden_perceptron_rests_where_it_is_right) {
  Asked asked{false, crfx::SweepLoss::perceptron};
  asked.sweeps = 300;
  const Found learned = swept(asked);
  asked.sweeps = 301;
  CHECK(swept(asked).values == learned.values);
}
