// Slopes of the losses that sweeps lower, against differences of sums over all labellings; and the
// threads that take the steps.
#include "crfx/sweeps.hpp"

#include <atomic>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "crfx/parallel.hpp"
#include "enumeration.hpp"
#include "parametric/chain_losses.hpp"

namespace {

using crfx::SweepLoss;

constexpr double kSlopes = 2e-4;  // differences against slopes in single precision
constexpr double kChange = 1e-4;
constexpr int kLabels = 3;

// Chains with labels, and what a loss makes of them.
struct Case {
  SweepLoss kind = SweepLoss::likelihood;
  bool has_table = false, by_length = false, weighs_classes = false, knows_all = false;
  check::Spec spec;
};

struct Labelled {
  explicit Labelled(const Case& asked)
      : scores(check::make<double>(asked.spec)), kind(asked.kind), by_length(asked.by_length) {
    std::mt19937 random(7);
    const int64_t rows = scores.view.n_rows();
    for (int64_t row = 0; row < rows; ++row)
      labels.push_back(asked.knows_all || random() % 3 ? static_cast<int32_t>(random() % kLabels)
                                                       : -1);
    for (int64_t k = 0; k < scores.view.n_instances; ++k)
      weights.push_back(0.5 + static_cast<double>(random() % 4) / 2);
    if (asked.weighs_classes) class_weights = {0.5, 2.0, 1.25};
    for (int k = 0; asked.has_table && k < kLabels * kLabels; ++k)
      table.push_back(k % (kLabels + 1) == 0 ? 0.0f : static_cast<float>(1 + random() % 3));
    if (kind == SweepLoss::kl)
      for (float& cost : table) cost /= -0.7f;
  }

  double share(int64_t i) const { return by_length ? 1.0 / scores.view.length(i) : 1.0; }
  double class_weight(int32_t label) const {
    return class_weights.empty() ? 1.0 : class_weights[static_cast<size_t>(label)];
  }
  int32_t label(int64_t i, size_t t) const {
    return labels[static_cast<size_t>(scores.view.offsets[i]) + t];
  }
  double cost(int64_t i, const std::vector<int>& y, bool weighs) const {
    double sum = 0;
    for (size_t t = 0; t < y.size(); ++t)
      if (const int32_t own = label(i, t); own >= 0 && !table.empty())
        sum += share(i) * static_cast<double>(table[static_cast<size_t>(own * kLabels + y[t])]) *
               (weighs ? class_weight(own) : 1.0);
    return sum;
  }

  double value() const {
    double sum = 0;
    for (int64_t i = 0; i < scores.view.n_instances; ++i)
      sum += weights[static_cast<size_t>(i)] * value(i);
    return sum;
  }

  double value(int64_t i) const {
    double log_z;
    const auto all = check::enumerate(scores.view, i, &log_z);
    switch (kind) {
      case SweepLoss::likelihood:
      case SweepLoss::perceptron:
        return by_levels(i, all);
      case SweepLoss::expected_loss: {
        double sum = 0;
        for (const auto& l : all) sum += l.probability * cost(i, l.y, true);
        return sum;
      }
      case SweepLoss::labelwise_likelihood:
      case SweepLoss::pseudo_likelihood:
        return by_position(i, all);
      case SweepLoss::loss_scaled: {
        double truth = 0, sum = 0;
        for (const auto& l : all)
          if (agrees(i, l.y, [](int32_t) { return true; })) truth = l.score;
        for (const auto& l : all) sum += std::exp(cost(i, l.y, false) * (1 + l.score - truth));
        return std::log(sum);
      }
      case SweepLoss::kl: {
        double total = 0, expected = 0;
        for (const auto& l : all) total += std::exp(cost(i, l.y, false));
        for (const auto& l : all) expected += std::exp(cost(i, l.y, false)) / total * l.score;
        return log_z - expected;
      }
    }
    return 0;
  }

  // Whether a labelling has those known labels for which `given` holds.
  template <class Given>
  bool agrees(int64_t i, const std::vector<int>& y, Given&& given) const {
    for (size_t t = 0; t < y.size(); ++t)
      if (const int32_t own = label(i, t); own >= 0 && given(own) && y[t] != own) return false;
    return true;
  }

  // The log of the sum over some labellings, or their largest score.
  template <class Chosen>
  double over(int64_t i, const std::vector<check::Labelling>& all, bool augmented,
              Chosen&& chosen) const {
    double sum = 0, top = -std::numeric_limits<double>::infinity();
    for (const auto& l : all) {
      if (!chosen(l.y)) continue;
      const double score = l.score + (augmented ? cost(i, l.y, false) : 0.0);
      sum += std::exp(score);
      top = std::max(top, score);
    }
    return kind == SweepLoss::perceptron ? top : std::log(sum);
  }

  double by_levels(int64_t i, const std::vector<check::Labelling>& all) const {
    std::vector<double> levels{1.0};
    if (!class_weights.empty()) levels = class_weights;
    std::sort(levels.begin(), levels.end());
    double before = 0, sum = 0;
    for (const double level : levels) {
      bool has = class_weights.empty();
      for (size_t t = 0; t < static_cast<size_t>(scores.view.length(i)); ++t)
        has = has || (label(i, t) >= 0 && class_weight(label(i, t)) >= level);
      const auto lighter = [&](int32_t own) { return class_weight(own) < level; };
      if (has)
        sum += (level - before) *
               (over(i, all, true, [&](const auto& y) { return agrees(i, y, lighter); }) -
                over(i, all, false,
                     [&](const auto& y) { return agrees(i, y, [](int32_t) { return true; }); }));
      before = level;
    }
    return sum;
  }

  double by_position(int64_t i, const std::vector<check::Labelling>& all) const {
    const auto n = static_cast<size_t>(scores.view.length(i));
    double sum = 0;
    for (size_t t = 0; t < n; ++t) {
      const int32_t own = label(i, t);
      if (own < 0 || (kind == SweepLoss::pseudo_likelihood && !neighbours_known(i, t))) continue;
      double agreeing = 0, total = 0;
      for (const auto& l : all) {
        bool counts = true;
        for (size_t s = 0; kind == SweepLoss::pseudo_likelihood && s < n; ++s)
          counts = counts && (s == t || l.y[s] == std::max(label(i, s), 0));
        if (!counts) continue;
        total += l.probability;
        if (l.y[t] == own) agreeing += l.probability;
      }
      sum -= class_weight(own) * std::log(agreeing / total);
    }
    return sum;
  }

  bool neighbours_known(int64_t i, size_t t) const {
    const crfx::Problem<double>& p = scores.view;
    const auto first = static_cast<size_t>(p.offsets[i]), n = static_cast<size_t>(p.length(i));
    for (size_t s = 0; s < n; ++s) {
      if (p.parents) {
        const auto parent = p.parents[first + s];
        if (parent < 0 || (s != t && parent != static_cast<int64_t>(t))) continue;
        if (label(i, s) < 0 || label(i, static_cast<size_t>(parent)) < 0) return false;
      } else {
        const auto order = static_cast<size_t>(p.order);
        if (s < order || t > s || t + order < s) continue;
        for (size_t r = s - order; r <= s; ++r)
          if (label(i, r) < 0) return false;
      }
    }
    return true;
  }

  check::Owned<double> scores;
  SweepLoss kind;
  bool by_length;
  std::vector<int32_t> labels;
  std::vector<double> weights, class_weights;
  std::vector<float> table;
};

// The slope of every score by differences, against those of the core.
void check_slopes(const Case& asked) {
  Labelled own(asked);
  crfx::Problem<double>& p = own.scores.view;
  crfx::ChainData data;
  data.offsets = p.offsets;
  data.parents = p.parents;
  data.visit = p.visit;
  data.edge_types = p.edge_types;
  data.labels = own.labels.data();
  data.weights = own.weights.data();
  data.n_types = p.n_tables;
  data.n_labels = kLabels;
  data.order = p.order;
  data.sharing = p.sharing;
  data.has_edge = true;
  data.has_start = p.start;
  data.has_end = p.end;
  data.loss.kind = asked.kind;
  data.loss.by_length = asked.by_length;
  if (asked.has_table) data.loss.table = own.table.data();
  if (asked.weighs_classes) data.loss.class_weights = own.class_weights.data();

  std::vector<double> parameters(own.scores.edge);
  parameters.insert(parameters.end(), own.scores.start.begin(), own.scores.start.end());
  parameters.insert(parameters.end(), own.scores.end.begin(), own.scores.end.end());
  crfx::TableScores tables(data);
  tables.set(parameters.data());
  std::vector<float> node(own.scores.node.begin(), own.scores.node.end()), slopes(node.size());
  std::vector<double> table_slopes(parameters.size());
  std::vector<int64_t> instances;
  for (int64_t i = 0; i < p.n_instances; ++i) instances.push_back(i);
  crfx::ChainPasses passes(data);
  const crfx::LossTables constants(data);
  crfx::find_slopes(
      {instances.data(), p.n_instances, node.data(), slopes.data(), table_slopes.data()}, tables,
      constants, passes);

  const auto check_score = [&](double& score, double found) {
    const double before = score;
    score = before + kChange;
    const double above = own.value();
    score = before - kChange;
    const double below = own.value();
    score = before;
    CHECK_CLOSE(found, (above - below) / (2 * kChange), kSlopes);
  };
  for (size_t k = 0; k < slopes.size(); ++k)
    check_score(own.scores.node[k], static_cast<double>(slopes[k]));
  size_t at = 0;
  for (auto* scores : {&own.scores.edge, &own.scores.start, &own.scores.end})
    for (double& score : *scores) check_score(score, table_slopes[at++]);
}

std::vector<check::Spec> shapes() {
  check::Spec chain{{4, 1, 0, 3, 2}, kLabels}, second = chain, typed = chain, forest = chain;
  second.order = 2;
  typed.sharing = crfx::Sharing::typed;
  forest.forest = true;
  return {chain, second, typed, forest};
}

}  // namespace

TEST(sweeps_find_the_slopes_of_every_loss) {
  for (const check::Spec& spec : shapes()) {
    for (const bool weighs : {false, true}) {
      for (const auto kind : {SweepLoss::likelihood, SweepLoss::perceptron})
        for (const bool augments : {false, true})
          check_slopes({kind, augments, augments, weighs, false, spec});
      for (const bool by_length : {false, true})
        check_slopes({SweepLoss::expected_loss, true, by_length, weighs, false, spec});
      check_slopes({SweepLoss::pseudo_likelihood, false, false, weighs, false, spec});
      check_slopes({SweepLoss::labelwise_likelihood, false, false, weighs, false, spec});
    }
    check_slopes({SweepLoss::loss_scaled, true, false, false, true, spec});
    for (const bool by_length : {false, true})
      check_slopes({SweepLoss::kl, true, by_length, false, true, spec});
  }
}

TEST(a_team_runs_every_chunk_once_and_phase_after_phase) {
  for (const int n_threads : {1, 2, 3, 8}) {
    std::vector<std::atomic<int>> seen(100);
    std::atomic<int> n_done{0}, n_late{0};
    crfx::with_team(n_threads, [&](crfx::Team& team) {
      for (int phase = 0; phase < 50; ++phase) {
        team.each(phase % 4 * 33, [&](int64_t chunk) {
          if (n_done != phase) ++n_late;
          ++seen[static_cast<size_t>(chunk)];
        });
        team.once([&] { ++n_done; });
      }
    });
    CHECK(n_done == 50);
    CHECK(n_late == 0);
    for (int k = 0; k < 100; ++k)
      CHECK(seen[static_cast<size_t>(k)] == (k < 33 ? 37 : k < 66 ? 24 : k < 99 ? 12 : 0));
  }
}

TEST(a_team_stops_after_a_phase_that_fails) {
  for (const int n_threads : {1, 2, 3, 8}) {
    std::atomic<int> n_after{0};
    std::string what;
    try {
      crfx::with_team(n_threads, [&](crfx::Team& team) {
        team.each(20, [](int64_t) {});
        team.each(20, [](int64_t chunk) {
          if (chunk >= 7) throw std::runtime_error(std::to_string(chunk));
        });
        team.once([&] { ++n_after; });
      });
    } catch (const std::runtime_error& error) {
      what = error.what();
    }
    CHECK(what == "7");  // the lowest
    CHECK(n_after == 0);
  }
}
