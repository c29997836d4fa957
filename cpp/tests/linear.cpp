// Linear functions of sparse features, sweeps over them, softmax and names, against plain loops.
// Arrays are of the exact size, so that the sanitizers see what is read beyond them.
#include "crfx/linear.hpp"

#include <algorithm>
#include <random>
#include <string>

#include "check.hpp"
#include "crfx/inference.hpp"
#include "crfx/names.hpp"
#include "crfx/sweeps.hpp"

using namespace check;

namespace {

constexpr int64_t kRows = 23, kFeatures = 9;
constexpr double kTolerance = 1e-5;

// Features of kRows rows, some of which have none, with weights for the pairs that occur.
struct Random {
  std::vector<int64_t> starts{0};
  std::vector<int32_t> indices, codes;
  std::vector<float> values;
  crfx::Pairs pairs;

  explicit Random(int n_outputs) {
    std::mt19937 random(static_cast<unsigned>(n_outputs));
    for (int64_t row = 0; row < kRows; ++row) {
      for (int32_t f = 0; f < kFeatures; ++f)
        if (random() % 3 == 0) {
          indices.push_back(f);
          values.push_back(static_cast<float>(random() % 7) - 3);
        }
      starts.push_back(static_cast<int64_t>(indices.size()));
      codes.push_back(static_cast<int32_t>(random() % static_cast<unsigned>(n_outputs)));
    }
    pairs = crfx::observed_pairs(starts.data(), indices.data(), kRows, codes.data(), kFeatures);
  }
  crfx::Sparse<float> X() const { return {starts.data(), indices.data(), values.data(), kRows}; }
};

bool has(const crfx::Pairs& pairs, int64_t feature, int32_t output) {
  const auto begin = pairs.outputs.begin();
  return std::binary_search(begin + pairs.starts[static_cast<size_t>(feature)],
                            begin + pairs.starts[static_cast<size_t>(feature) + 1], output);
}

void check_scores(const Random& data, const crfx::WeightPattern& pattern, int64_t n_weights) {
  const int64_t K = pattern.n_outputs;
  std::vector<float> weights(static_cast<size_t>(n_weights));
  for (size_t k = 0; k < weights.size(); ++k) weights[k] = static_cast<float>(k % 11) - 5;
  std::vector<float> scores(static_cast<size_t>(kRows * K), 0.5f);
  crfx::linear_scores<float>(data.X(), pattern, {weights.data(), weights.data() + n_weights},
                             scores.data(), 2);
  for (int64_t row = 0; row < kRows; ++row) {
    std::vector<double> expected(static_cast<size_t>(K), 0.5);
    for (int64_t e = data.starts[static_cast<size_t>(row)];
         e < data.starts[static_cast<size_t>(row) + 1]; ++e) {
      const auto f = data.indices[static_cast<size_t>(e)];
      for (int64_t w = pattern.starts[f]; w < pattern.starts[f + 1]; ++w) {
        const int64_t o = pattern.outputs ? pattern.outputs[w] : w - pattern.starts[f];
        expected[static_cast<size_t>(o)] +=
            static_cast<double>(data.values[static_cast<size_t>(e)]) *
            static_cast<double>(weights[static_cast<size_t>(w)]);
      }
    }
    for (int64_t o = 0; o < K; ++o)
      CHECK_CLOSE(static_cast<double>(scores[static_cast<size_t>(row * K + o)]),
                  expected[static_cast<size_t>(o)], kTolerance);
  }
}

}  // namespace

TEST(observed_pairs_are_those_that_occur) {
  for (const int K : {1, 3, 300, 70'000}) {
    const Random data(K);
    std::vector<std::pair<int32_t, int32_t>> seen;
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t e = data.starts[static_cast<size_t>(row)];
           e < data.starts[static_cast<size_t>(row) + 1]; ++e)
        seen.emplace_back(data.indices[static_cast<size_t>(e)],
                          data.codes[static_cast<size_t>(row)]);
    std::sort(seen.begin(), seen.end());
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    CHECK(seen.size() == data.pairs.outputs.size());
    for (const auto& [feature, output] : seen) CHECK(has(data.pairs, feature, output));
  }
}

TEST(sparse_scores_of_any_width) {
  for (const int K : {1, 3, 8, 15, 16, 17, 22, 31, 32, 33, 64, 65}) {
    const Random data(K);
    std::vector<int64_t> starts;
    for (int64_t f = 0; f <= kFeatures; ++f) starts.push_back(f * K);
    check_scores(data, {starts.data(), nullptr, K}, kFeatures * K);
    const auto n_weights = static_cast<int64_t>(data.pairs.outputs.size());
    for (const int64_t n_features : {int64_t(0), kFeatures})  // unknown, or packed in words
      check_scores(data, {data.pairs.starts.data(), data.pairs.outputs.data(), K, n_features},
                   n_weights);
  }
}

TEST(softmax_of_every_row) {
  const std::vector<float> x{0, 1, 2, -100, 100, 0, 3, 3, 3};
  std::vector<float> p(x.size());
  std::vector<double> log_z(3);
  crfx::softmax(x.data(), 3, 3, p.data(), log_z.data(), 1);
  CHECK_CLOSE(log_z[0], std::log(1 + std::exp(1.0) + std::exp(2.0)), kTolerance);
  CHECK_CLOSE(static_cast<double>(p[4]), 1.0, kTolerance);
  CHECK_CLOSE(static_cast<double>(p[7]), 1.0 / 3, kTolerance);
}

TEST(names_are_numbered_once) {
  crfx::NameTable table;
  for (int k = 0; k < 3000; ++k)
    CHECK(table.find_or_add({"w:" + std::to_string(k), {}, false}) == k);
  for (int k = 0; k < 3000; ++k) {
    const std::string value = std::to_string(k);
    CHECK(table.find({"w", value, true}) == k);
    CHECK(table.name(k) == "w:" + value);
  }
  CHECK(table.find({"w:3000", {}, false}) == crfx::NameTable::kUnknown);
}

TEST(a_perceptron_learns_what_can_be_learned) {
  // Two chains, of lengths 3 and 1, and an empty one; feature k tells label k.
  const std::vector<int64_t> starts{0, 1, 2, 3, 4}, offsets{0, 3, 3, 4}, order{0, 1, 2};
  const std::vector<int32_t> indices{0, 1, 0, 1}, labels{0, 1, 0, 1};
  const std::vector<int64_t> weight_starts{0, 2, 4};
  for (const auto loss : {crfx::SweepLoss::perceptron, crfx::SweepLoss::likelihood}) {
    crfx::SweepData data;
    data.X = {starts.data(), indices.data(), nullptr, 4};
    data.pattern = {weight_starts.data(), nullptr, 2};
    data.n_features = 2;
    data.chains.offsets = offsets.data();
    data.chains.labels = labels.data();
    data.chains.n_labels = 2;
    data.chains.has_edge = data.chains.has_start = data.chains.has_end = true;
    const std::vector<float> margin{0, 0.5f, 0.5f, 0};
    data.chains.loss.kind = loss;
    if (loss == crfx::SweepLoss::perceptron) data.chains.loss.table = margin.data();
    const size_t size = 4 + 4 + 2 + 2;
    std::vector<double> values(size, 0), sum(size, 0), product(size, 1), steps(size, 0);
    crfx::SweepParameters at{
        values.data(), sum.data(), product.data(), steps.data(), size, 1, 0, 0};
    for (int64_t sweep = 0; sweep < 20; ++sweep) {
      const crfx::SweepSteps asked{order.data(), 3, 2, 2 * sweep, 1.0, 0.0, 1e-3, 1e-3, true};
      crfx::sweep(data, asked, at);
    }
    CHECK(at.n_counted == 40);
    CHECK(values[0] > values[1]);
    CHECK(values[3] > values[2]);
  }
}
