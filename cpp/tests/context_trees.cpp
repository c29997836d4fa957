// Trees over features and labels before, against walks and searches by plain loops.
// Arrays are of the exact size, so that the sanitizers see what is read beyond them.
#include "crfx/context_trees.hpp"

#include <algorithm>
#include <limits>
#include <random>

#include "check.hpp"
#include "team.hpp"

using namespace check;

namespace {

constexpr double kTolerance = 2e-5;  // of sums of float over contexts
constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();
constexpr float kOutside = -std::numeric_limits<float>::infinity();

enum class Kind { dense, window, categories, sparse };

// Rows of two features, seen through a window of one row before where there is one; slopes.
struct Case {
  crfx::ContextShape shape;
  Kind kind;
  int64_t n_rows, n_features = 2;
  std::vector<float> values;
  std::vector<int64_t> first, starts;
  std::vector<int32_t> indices, chosen;
  std::vector<uint8_t> is_category{0, 0}, has_context;
  std::vector<float> edge, edge_curvature, node, node_curvature, weights;

  Case(Kind kind, int64_t n_labels, int order, int64_t n_rows, bool curved, unsigned seed)
      : shape{n_labels, order}, kind(kind), n_rows(n_rows) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> number(-2, 3);
    std::bernoulli_distribution absent(0.25);
    const auto draw = [&] {
      return absent(random) ? kMissing : static_cast<float>(number(random));
    };
    if (kind == Kind::sparse) {
      starts.push_back(0);
      for (int64_t row = 0; row < n_rows; ++row) {
        for (int32_t f = 0; f < 2; ++f)
          if (!absent(random)) {
            indices.push_back(f);
            values.push_back(draw());  // some are there and missing all the same
          }
        starts.push_back(static_cast<int64_t>(indices.size()));
      }
    } else {
      if (kind == Kind::window) {
        values.assign(2, kOutside);
        n_features = 4;
      }
      for (int64_t row = 0; row < n_rows; ++row) {
        first.push_back(row * 2);
        for (int f = 0; f < 2; ++f) values.push_back(draw());
      }
      if (kind == Kind::categories) {
        is_category = {1, 0};
        for (size_t e = 0; e < values.size(); e += 2)
          if (values[e] < 0) values[e] += 7;
      }
    }
    std::normal_distribution<float> normal(0, 1);
    std::uniform_real_distribution<float> positive(0.1f, 2);
    const auto C = static_cast<size_t>(shape.n_contexts()), K = static_cast<size_t>(n_labels),
               n = static_cast<size_t>(n_rows);
    const auto fill = [&](std::vector<float>& array, size_t size, auto& with) {
      array.resize(size);
      for (float& x : array) x = with(random);
    };
    fill(edge, n * C * K, normal);
    fill(node, n * K, normal);
    if (curved) {
      fill(edge_curvature, n * C * K, positive);
      fill(node_curvature, n * K, positive);
    } else {
      fill(weights, n, positive);
    }
    for (size_t row = 0; row < n; ++row) {
      has_context.push_back(row % 4 != 0);
      if (row % 5 != 2) chosen.push_back(static_cast<int32_t>(row));
    }
    values.shrink_to_fit();
    indices.shrink_to_fit();
    chosen.shrink_to_fit();
  }

  crfx::FeatureRows rows() const {
    crfx::FeatureRows found;
    found.n_rows = n_rows;
    found.n_features = n_features;
    found.values = values.data();
    found.n_values = static_cast<int64_t>(values.size());
    if (kind == Kind::sparse) {
      found.starts = starts.data();
      found.indices = indices.data();
    } else {
      found.first = first.data();
      found.n_base = 2;
    }
    return found;
  }
  crfx::ContextSlopes slopes() const {
    const auto maybe = [](const std::vector<float>& array) {
      return array.empty() ? nullptr : array.data();
    };
    return {has_context.data(), edge.data(),           maybe(edge_curvature),
            node.data(),        maybe(node_curvature), maybe(weights)};
  }
  crfx::ContextTrees grow(const crfx::ContextGrowth& growth, int n_threads = 1,
                          const crfx::Workers& workers = {}) const {
    const crfx::FeatureRows seen = rows();
    const crfx::Bins bins(seen, kind == Kind::sparse ? nullptr : is_category.data(), n_threads,
                          workers, kind == Kind::window ? 1 : 0);
    return crfx::grow_context_trees(bins, seen, shape, slopes(), chosen.data(),
                                    static_cast<int64_t>(chosen.size()), growth, n_threads,
                                    workers);
  }
  // Rounds slopes so that their sums are the same in any order.
  void make_exact() {
    for (std::vector<float>* array : {&edge, &edge_curvature, &node, &node_curvature, &weights})
      for (float& x : *array) x = std::round(4 * x) / 4;
  }
  // Rows [begin, end), as one of several workers has them.
  Case part(int64_t begin, int64_t end) const {
    const auto slice = [](const auto& from, int64_t a, int64_t b) {
      return std::remove_cvref_t<decltype(from)>(
          from.begin() + std::min<int64_t>(a, std::ssize(from)),
          from.begin() + std::min<int64_t>(b, std::ssize(from)));
    };
    Case own = *this;
    const int64_t C = shape.n_contexts(), K = shape.n_labels;
    own.n_rows = end - begin;
    own.first.resize(kind == Kind::sparse ? 0 : static_cast<size_t>(own.n_rows));
    own.values = slice(values, 2 * begin, 2 * (end + (kind == Kind::window)));
    if (kind == Kind::sparse) {
      own.starts = slice(starts, begin, end + 1);
      own.indices = slice(indices, own.starts.front(), own.starts.back());
      own.values = slice(values, own.starts.front(), own.starts.back());
      for (int64_t& start : own.starts) start -= starts[static_cast<size_t>(begin)];
    }
    own.has_context = slice(has_context, begin, end);
    own.weights = slice(weights, begin, end);
    own.edge = slice(edge, begin * C * K, end * C * K);
    own.edge_curvature = slice(edge_curvature, begin * C * K, end * C * K);
    own.node = slice(node, begin * K, end * K);
    own.node_curvature = slice(node_curvature, begin * K, end * K);
    own.chosen.clear();
    for (const int32_t row : chosen)
      if (row >= begin && row < end) own.chosen.push_back(row - static_cast<int32_t>(begin));
    return own;
  }
  float value(int64_t row, int64_t feature) const {
    if (kind != Kind::sparse)
      return values[static_cast<size_t>(first[static_cast<size_t>(row)] + feature)];
    for (int64_t e = starts[static_cast<size_t>(row)]; e < starts[static_cast<size_t>(row) + 1];
         ++e)
      if (indices[static_cast<size_t>(e)] == feature) return values[static_cast<size_t>(e)];
    return kMissing;
  }
};

// A row with one of its contexts; n_contexts stands for none.
struct Example {
  int64_t row, context;
  double g, h;
};

std::vector<Example> examples(const Case& own, int64_t label) {
  std::vector<Example> found;
  const int64_t C = own.shape.n_contexts(), K = own.shape.n_labels;
  for (const int32_t row : own.chosen) {
    const bool any = own.has_context[static_cast<size_t>(row)] != 0;
    const double weight =
        own.weights.empty() ? 1 : static_cast<double>(own.weights[static_cast<size_t>(row)]);
    for (int64_t c = any ? 0 : C; c < (any ? C : C + 1); ++c) {
      const auto at = static_cast<size_t>(any ? (row * C + c) * K + label : row * K + label);
      const std::vector<float>&g = any ? own.edge : own.node,
            &h = any ? own.edge_curvature : own.node_curvature;
      found.push_back(
          {row, c, static_cast<double>(g[at]), h.empty() ? weight : static_cast<double>(h[at])});
    }
  }
  return found;
}

// What a node asks an example for: a label, or a feature.
double asked(const Case& own, int32_t feature, int64_t row, int64_t context) {
  if (feature >= 0) return static_cast<double>(own.value(row, feature));
  return static_cast<double>(own.shape.label_at(context, -2 - feature));
}

bool goes_left(const crfx::ContextTrees& trees, int64_t node, double x) {
  const auto at = static_cast<size_t>(node);
  if (std::isnan(x)) return trees.missing_left[at] != 0;
  if (trees.sets[at] < 0) return x < static_cast<double>(trees.thresholds[at]);
  const auto entry = static_cast<int64_t>(x);
  if (entry / 64 >= trees.set_sizes[at]) return false;
  return trees.words[static_cast<size_t>(trees.sets[at] + entry / 64)] >> (entry % 64) & 1;
}

int64_t leaf_of(const Case& own, const crfx::ContextTrees& trees, int64_t tree, int64_t row,
                int64_t context) {
  const int64_t first = trees.starts[static_cast<size_t>(tree)];
  int64_t node = first;
  while (trees.features[static_cast<size_t>(node)] != crfx::ContextTrees::kLeaf) {
    const double x = asked(own, trees.features[static_cast<size_t>(node)], row, context);
    node =
        first + (goes_left(trees, node, x) ? trees.left : trees.right)[static_cast<size_t>(node)];
  }
  return node;
}

struct Sum {
  double g = 0, h = 0;
  void add(const Example& each) {
    g += each.g;
    h += each.h;
  }
  double worth(double l2) const { return h + l2 > 0 ? g * g / (h + l2) : 0; }
};

// The best gain of all ways to divide examples; labels and categories by all sets.
double best_gain(const Case& own, const std::vector<Example>& members, double l2, double least) {
  double best = 0;
  Sum total;
  for (const Example& each : members) total.add(each);
  const auto offer = [&](auto&& left) {
    Sum sides[2];
    for (const Example& each : members) sides[left(each) ? 0 : 1].add(each);
    if (sides[0].h < least || sides[1].h < least) return;
    best = std::max(best, 0.5 * (sides[0].worth(l2) + sides[1].worth(l2) - total.worth(l2)));
  };
  for (int32_t feature = -1 - own.shape.order; feature < own.n_features; ++feature) {
    if (feature == crfx::ContextTrees::kLeaf) continue;
    const auto x = [&](const Example& each) { return asked(own, feature, each.row, each.context); };
    const bool named = feature < 0 || own.is_category[static_cast<size_t>(feature % 2)];
    if (named) {
      for (int set = 0; set < 1 << 8; ++set)  // bit 7: missing
        offer([&](const Example& each) {
          return set >> (std::isnan(x(each)) ? 7 : static_cast<int>(x(each))) & 1;
        });
      continue;
    }
    for (const double limit : {-9.0, -1.0, 0.0, 1.0, 2.0, 3.0, 9.0})
      for (const bool missing_left : {false, true})
        offer([&](const Example& each) {
          return std::isnan(x(each)) ? missing_left : x(each) < limit;
        });
  }
  return best;
}

// Every split is the best of its node, nodes are split in the order of what that gains, and leaves
// are worth what their examples say.
void check_growth(const Case& own, const crfx::ContextGrowth& growth) {
  const crfx::ContextTrees trees = own.grow(growth);
  CHECK(trees.n_trees() == own.shape.n_labels);
  for (int64_t label = 0; label < own.shape.n_labels; ++label) {
    const std::vector<Example> all = examples(own, label);
    Sum total;
    for (const Example& each : all) total.add(each);
    const double least = std::max(growth.min_child_weight, 1e-10 * total.h);
    const int64_t first = trees.starts[static_cast<size_t>(label)],
                  end = trees.starts[static_cast<size_t>(label) + 1];
    std::vector<std::vector<Example>> members(static_cast<size_t>(end - first));
    members[0] = all;
    std::vector<int64_t> open{0};
    int64_t n_nodes = 1;
    while (true) {
      std::vector<double> gains;
      for (const int64_t node : open)
        gains.push_back(best_gain(own, members[static_cast<size_t>(node)], growth.l2, least));
      const auto split = std::find_if(open.begin(), open.end(), [&](int64_t node) {
        return trees.left[static_cast<size_t>(first + node)] == n_nodes;
      });
      const double best = *std::max_element(gains.begin(), gains.end());
      if (split == open.end()) {
        CHECK(static_cast<int>(open.size()) == growth.max_leaves || best < 1e-6);
        break;
      }
      const int64_t node = *split;
      CHECK_CLOSE(gains[static_cast<size_t>(split - open.begin())], best, kTolerance);
      CHECK_CLOSE(static_cast<double>(trees.gains[static_cast<size_t>(first + node)]), best,
                  kTolerance);
      for (const Example& each : members[static_cast<size_t>(node)]) {
        const int32_t feature = trees.features[static_cast<size_t>(first + node)];
        const bool left =
            goes_left(trees, first + node, asked(own, feature, each.row, each.context));
        members[static_cast<size_t>(left ? n_nodes : n_nodes + 1)].push_back(each);
      }
      open.erase(split);
      open.push_back(n_nodes);
      open.push_back(n_nodes + 1);
      n_nodes += 2;
    }
    CHECK(n_nodes == end - first);
    for (const int64_t node : open) {
      Sum sum;
      for (const Example& each : members[static_cast<size_t>(node)]) sum.add(each);
      CHECK_CLOSE(static_cast<double>(trees.values[static_cast<size_t>(first + node)]),
                  -sum.g / (sum.h + growth.l2), kTolerance);
    }
  }
}

bool are_same(const crfx::ContextTrees& one, const crfx::ContextTrees& other) {
  const auto limits = [](const crfx::ContextTrees& trees) {  // NaN is not equal to itself
    std::vector<float> found = trees.thresholds;
    for (float& x : found)
      if (std::isnan(x)) x = 1e9f;
    return found;
  };
  return one.starts == other.starts && one.features == other.features && one.left == other.left &&
         one.right == other.right && limits(one) == limits(other) &&
         one.missing_left == other.missing_left && one.sets == other.sets &&
         one.words == other.words && one.set_sizes == other.set_sizes &&
         one.values == other.values && one.gains == other.gains && one.weights == other.weights;
}

constexpr Kind kKinds[] = {Kind::dense, Kind::window, Kind::categories, Kind::sparse};

}  // namespace

TEST(context_trees_grow_by_the_best_of_all_splits) {
  for (const Kind kind : kKinds)
    for (const bool curved : {false, true})
      for (const unsigned seed : {0u, 1u, 2u}) {
        check_growth(Case(kind, 3, 1, 14, curved, seed), {6, curved ? 8.0 : 0.0, 0, 0});
        check_growth(Case(kind, 2, 2, 14, curved, seed), {5, 0, 0, 0});
      }
}

TEST(context_trees_of_few_rows_and_labels) {
  for (const Kind kind : kKinds)
    for (const int64_t n_rows : {1, 2, 5}) {
      check_growth(Case(kind, 1, 1, n_rows, true, 3), {30, 0.5, 0, 0});
      check_growth(Case(kind, 3, 1, n_rows, false, 3), {1, 0, 0, 0});
    }
}

TEST(context_trees_score_as_walks_do) {
  for (const Kind kind : kKinds)
    for (const auto& [n_labels, order] : {std::pair<int64_t, int>{3, 1}, {2, 2}, {70, 1}, {1, 1}}) {
      const Case own(kind, n_labels, order, 130, false, 5);
      const crfx::ContextTrees trees = own.grow({12, 0, 0, 0.05}, 2);
      const int64_t C = own.shape.n_contexts(), K = n_labels;
      std::vector<float> edge(static_cast<size_t>(own.n_rows * C * K)),
          node(static_cast<size_t>(own.n_rows * K));
      const crfx::FeatureRows rows = own.rows();
      const crfx::ContextTreesView view = crfx::ContextTreesView::of(trees);
      const crfx::LeafContexts leaves(view, own.shape);
      crfx::add_context_scores(view, leaves, rows, own.shape, own.has_context.data(), 0.5f,
                               edge.data(), nullptr, 2);
      CHECK(std::all_of(node.begin(), node.end(), [](float x) { return x == 0; }));
      crfx::add_context_scores(view, leaves, rows, own.shape, own.has_context.data(), 0.5f, nullptr,
                               node.data(), 1);
      for (int64_t row = 0; row < own.n_rows; ++row)
        for (int64_t k = 0; k < K; ++k) {
          const bool any = own.has_context[static_cast<size_t>(row)] != 0;
          const auto told = [&](int64_t c) {
            return 0.5f * trees.values[static_cast<size_t>(leaf_of(own, trees, k, row, c))];
          };
          for (int64_t c = 0; c < C; ++c)
            CHECK(edge[static_cast<size_t>((row * C + c) * K + k)] == (any ? told(c) : 0));
          CHECK(node[static_cast<size_t>(row * K + k)] == (any ? 0 : told(C)));
        }
    }
}

TEST(context_trees_are_the_same_on_any_number_of_threads) {
  const Case own(Kind::window, 5, 2, 200, true, 6);
  CHECK(are_same(own.grow({20, 1, 0, 0.1}, 1), own.grow({20, 1, 0, 0.1}, 3)));
}

TEST(context_trees_of_several_workers_are_those_of_one) {
  const crfx::ContextGrowth growths[] = {
      {12, 0, 1, 0}, {12, 0, 0, 0.1}, {8, 1, 0, 0, 0.3, 7}, {8, 1, 0, 0.3, 0.6, 7}, {1, 0, 0, 0.1}};
  for (const Kind kind : kKinds)
    for (const bool curved : {false, true})
      for (const auto& [n_labels, order] : {std::pair<int64_t, int>{3, 1}, {2, 2}, {18, 1}}) {
        Case whole(kind, n_labels, order, 300, curved, 8);
        whole.make_exact();
        for (const crfx::ContextGrowth& growth : growths) {
          const crfx::ContextTrees expected = whole.grow(growth);
          for (const std::vector<int64_t>& ends :
               {std::vector<int64_t>{300}, {131, 300}, {7, 7, 300}}) {
            Team team(static_cast<int>(ends.size()));
            team.run([&](const crfx::Workers& workers) {
              const auto rank = static_cast<size_t>(workers.rank);
              const Case own = whole.part(rank ? ends[rank - 1] : 0, ends[rank]);
              CHECK(are_same(own.grow(growth, 1, workers), expected));
            });
          }
        }
      }
}

TEST(context_trees_tell_two_messages_per_leaf) {
  Case whole(Kind::dense, 5, 1, 300, false, 8);
  whole.make_exact();
  const int64_t n_bins = 14, n_leaves = 6;
  Team team(2), of_bins(2);
  of_bins.run(
      [&](const crfx::Workers& workers) { whole.part(0, 150).grow({1, 0, 0, 0}, 1, workers); });
  team.run([&](const crfx::Workers& workers) {
    whole.part(150 * workers.rank, 150 + 150 * workers.rank)
        .grow({static_cast<int>(n_leaves), 0, 0, 0}, 1, workers);
  });
  CHECK(team.n_messages - of_bins.n_messages == 2 * (n_leaves - 1));
  const int64_t told = 8 * (team.n_numbers - of_bins.n_numbers);
  CHECK(told <= 5 * (n_leaves - 1) * (16 * (n_bins + 2 * 6) + 56));
  CHECK(told >= 5 * (n_leaves - 1) * 16 * n_bins);
}

TEST(context_trees_of_no_rows_are_leaves_of_nothing) {
  Case own(Kind::dense, 3, 1, 10, false, 0);
  own.chosen.clear();
  const crfx::ContextTrees trees = own.grow({8, 0, 0, 0.2});
  CHECK(trees.n_trees() == 3);
  CHECK(trees.features == std::vector<int32_t>(3, crfx::ContextTrees::kLeaf));
  for (const float value : trees.values) CHECK(value == 0);
}
