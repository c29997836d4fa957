// Objectives over permutations of documents, for Python. Arrays are viewed, not copied.
#include "crfx/permutations.hpp"

#include <nanobind/stl/string.h>

#include <string>

#include "chains.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

crfx::RankingLoss loss_of(const std::string& name) {
  if (name == "likelihood") return crfx::RankingLoss::likelihood;
  if (name == "loss_augmented") return crfx::RankingLoss::loss_augmented;
  if (name == "loss_scaled") return crfx::RankingLoss::loss_scaled;
  if (name == "expected_loss") return crfx::RankingLoss::expected_loss;
  if (name == "kl") return crfx::RankingLoss::kl;
  throw nb::value_error(("unknown objective: " + name).c_str());
}

void ranking_objective(Vector1<const double> scores, Vector1<const double> gains,
                       Vector1<const int64_t> offsets, const std::string& objective,
                       double temperature, double loss_weight, bool sum_over_truths, int64_t cut,
                       int64_t n_samples, bool sample_all, uint64_t seed, Vector1<double> value,
                       Vector1<double> gradient, MaybeVector1<double> curvature,
                       Vector1<double> effective, int n_threads) {
  const crfx::RankingData data{scores.data(), gains.data(), offsets.data(),
                               static_cast<int64_t>(value.shape(0))};
  const crfx::RankingOptions options{loss_of(objective), temperature, loss_weight,
                                     sum_over_truths,    cut,         n_samples,
                                     sample_all,         seed};
  const crfx::RankingOutputs out{value.data(), gradient.data(), data_of(curvature),
                                 effective.data()};
  nb::gil_scoped_release released;
  crfx::ranking_objective(data, options, out, n_threads);
}

}  // namespace

void bind_permutations(nb::module_& m) {
  m.def("ranking_objective", &ranking_objective, "scores"_a.noconvert(), "gains"_a.noconvert(),
        "offsets"_a.noconvert(), nb::kw_only(), "objective"_a, "temperature"_a, "loss_weight"_a,
        "sum_over_truths"_a, "cut"_a, "n_samples"_a, "sample_all"_a, "seed"_a,
        "value"_a.noconvert(), "gradient"_a.noconvert(), "curvature"_a.noconvert().none(),
        "effective"_a.noconvert(), "n_threads"_a,
        "Fills value and effective samples per query, gradient and curvature per document.");
  m.attr("MOST_SUMMED") = crfx::kMostSummed;
  m.attr("MOST_LISTED") = crfx::kMostListed;
  m.attr("MOST_DOCUMENTS") = crfx::kMostDocuments;
}
