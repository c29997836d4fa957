// Boosted trees against a walk by a plain loop: the same bits.
// Arrays are of the exact size, so that the sanitizers see what is read beyond them.
#include "crfx/boosted_trees.hpp"

#include <cstring>
#include <limits>
#include <random>

#include "check.hpp"
#include "crfx/errors.hpp"
#include "trees/feature_block.hpp"

using namespace check;

namespace {

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kFeatures = 5, kOutputs = 3;
constexpr int32_t kFar = 1 << 20;

// Random trees; feature 0 holds categories, and the last is never asked for.
struct Forest {
  std::vector<int64_t> starts{0}, set_starts{0};
  std::vector<int32_t> outputs, left, right, features, sets, categories;
  std::vector<float> values;
  std::vector<uint8_t> missing_left;

  Forest(int64_t n_trees, int most_splits, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> number(-3, 3);
    for (int64_t tree = 0; tree < n_trees; ++tree) {
      outputs.push_back(static_cast<int32_t>(random() % kOutputs));
      add_leaf(number(random) * 0.1f);
      const int n_splits = static_cast<int>(random() % static_cast<unsigned>(most_splits + 1));
      for (int split = 0; split < n_splits; ++split) split_one(random);
      starts.push_back(static_cast<int64_t>(left.size()));
    }
  }
  void add_leaf(float value) {
    left.push_back(-1);
    right.push_back(-1);
    features.push_back(0);
    sets.push_back(-1);
    values.push_back(value);
    missing_left.push_back(0);
  }
  void split_one(std::mt19937& random) {
    const size_t first = static_cast<size_t>(starts.back());
    size_t node = first + random() % (left.size() - first);
    while (left[node] >= 0) node = first + static_cast<size_t>(right[node]);
    const int32_t size = static_cast<int32_t>(left.size() - first);
    left[node] = size + static_cast<int32_t>(random() % 2);  // either may come first
    right[node] = 2 * size + 1 - left[node];
    features[node] = static_cast<int32_t>(random() % (kFeatures - 1));
    missing_left[node] = random() % 2;
    values[node] = static_cast<float>(random() % 7) - 3;
    if (features[node] == 0) {
      sets[node] = static_cast<int32_t>(set_starts.size()) - 1;
      // Side by side, or so far apart that they are listed: the larger first.
      const bool is_far = random() % 2;
      if (is_far) categories.push_back(kFar + static_cast<int32_t>(random() % 3));
      const unsigned gap = is_far ? 90 : 9;
      for (int32_t category = 0; category < 130;
           category += 1 + static_cast<int32_t>(random() % gap))
        categories.push_back(category);
      set_starts.push_back(static_cast<int64_t>(categories.size()));
    }
    add_leaf(static_cast<float>(random() % 100) * 0.37f);
    add_leaf(static_cast<float>(random() % 100) * -0.73f);
  }
  crfx::BoostedTreesView view() const {
    return {starts.data(),
            static_cast<int64_t>(outputs.size()),
            outputs.data(),
            left.data(),
            right.data(),
            features.data(),
            values.data(),
            missing_left.data(),
            sets.data(),
            set_starts.data(),
            static_cast<int64_t>(set_starts.size()) - 1,
            categories.data()};
  }
  float walk(size_t tree, const float* x) const {
    const size_t first = static_cast<size_t>(starts[tree]);
    size_t node = first;
    while (left[node] >= 0) {
      const float value = x[features[node]];
      bool goes_left = value < values[node];
      if (sets[node] >= 0) {
        goes_left = true;
        const size_t set = static_cast<size_t>(sets[node]);
        for (int64_t k = set_starts[set]; k < set_starts[set + 1]; ++k)
          if (static_cast<float>(categories[static_cast<size_t>(k)]) == value) goes_left = false;
      }
      if (value != value) goes_left = missing_left[node];
      node = first + static_cast<size_t>((goes_left ? left : right)[node]);
    }
    return values[node];
  }
};

// Rows told densely and sparsely.
struct Table {
  std::vector<float> values, entries;
  std::vector<int64_t> first, starts{0};
  std::vector<int32_t> indices;

  Table(int64_t n_rows, unsigned seed) {
    std::mt19937 random(seed);
    for (int64_t row = 0; row < n_rows; ++row) {
      first.push_back(row * kFeatures);
      for (int32_t f = 0; f < kFeatures; ++f) {
        float x = static_cast<float>(random() % 7) - 3;
        if (f == 0) x = static_cast<float>(random() % 140);  // some that no set has
        if (f == 0 && random() % 4 == 0) x = static_cast<float>(kFar - 1 + random() % 5);
        if (f == 0 && random() % 20 == 0) x = -1;  // no category
        if (random() % 4 == 0) x = kMissing;
        values.push_back(x);
        if (x != x) continue;
        indices.push_back(f);
        entries.push_back(x);
      }
      starts.push_back(static_cast<int64_t>(indices.size()));
    }
  }
  crfx::FeatureRows rows(bool sparse) const {
    crfx::FeatureRows found;
    found.n_rows = static_cast<int64_t>(first.size());
    found.n_features = kFeatures;
    found.values = sparse ? entries.data() : values.data();
    (sparse ? found.starts : found.first) = sparse ? starts.data() : first.data();
    if (sparse) found.indices = indices.data();
    return found;
  }
};

bool is_refused(const Forest& forest) {
  try {
    crfx::BoostedTrees(forest.view(), kFeatures, kOutputs);
  } catch (const crfx::InputError&) {
    return true;
  }
  return false;
}

}  // namespace

TEST(boosted_trees_score_as_a_plain_walk) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    const Forest forest(20, seed % 2 ? 40 : 3, seed);
    const crfx::BoostedTrees trees(forest.view(), kFeatures, kOutputs);
    for (const int64_t n_rows : {0, 1, 8, 13, 300}) {
      const Table table(n_rows, seed);
      for (const int64_t n_trees : {0, 7, 20}) {
        std::vector<float> expected(static_cast<size_t>(n_rows * kOutputs), 0.0f);
        for (int64_t row = 0; row < n_rows; ++row)
          for (size_t tree = 0; tree < static_cast<size_t>(n_trees); ++tree)
            expected[static_cast<size_t>(row * kOutputs + forest.outputs[tree])] +=
                forest.walk(tree, table.values.data() + row * kFeatures);
        for (const bool sparse : {false, true})
          for (const int n_threads : {1, 3}) {
            std::vector<float> found(expected.size(), kMissing);
            trees.score(table.rows(sparse), n_trees, found.data(), n_threads);
            CHECK(found.empty() ||
                  !std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)));
          }
      }
    }
  }
}

TEST(boosted_trees_that_lead_outside_are_refused) {
  const Forest sound(3, 5, 1);
  CHECK(!is_refused(sound));
  size_t inner = 0;
  while (sound.left[inner] < 0) ++inner;
  const auto changed = [&](auto change) {
    Forest broken = sound;
    change(broken);
    return is_refused(broken);
  };
  CHECK(changed([&](Forest& own) { own.left[inner] = 0; }));
  CHECK(changed([&](Forest& own) { own.right[inner] = own.left[inner]; }));
  CHECK(changed([&](Forest& own) { own.right[inner] = 1000; }));
  CHECK(changed([&](Forest& own) { own.features[inner] = kFeatures; }));
  CHECK(changed([&](Forest& own) { own.features[inner] = -1; }));
  CHECK(changed([&](Forest& own) { own.sets[inner] = 1000; }));
  CHECK(changed([&](Forest& own) { own.outputs[0] = kOutputs; }));
}

TEST(sets_of_categories_take_no_more_than_is_told) {
  // The largest category that can exist, in many sets: as bits, 2 MiB each.
  Forest forest(1, 0, 1);
  constexpr size_t kSets = 400;
  for (size_t set = 0; set < kSets; ++set) {
    forest.categories.push_back((1 << 24) - 1);
    forest.categories.push_back(0);
    forest.set_starts.push_back(static_cast<int64_t>(forest.categories.size()));
  }
  const crfx::BoostedTrees trees(forest.view(), kFeatures, kOutputs);
  CHECK(trees.set_bytes() >= static_cast<int64_t>(kSets * 2 * sizeof(int32_t)));
  CHECK(trees.set_bytes() <= static_cast<int64_t>(kSets * 64));
}

TEST(boosted_trees_of_too_many_sets_are_refused_before_they_are_read) {
  const Forest sound(3, 5, 1);
  crfx::BoostedTreesView view = sound.view();
  view.n_sets = (int64_t{1} << 29) + 1;  // far more than there are
  bool refused = false;
  try {
    crfx::BoostedTrees(view, kFeatures, kOutputs);
  } catch (const crfx::InputError&) {
    refused = true;
  }
  CHECK(refused);
}

TEST(slots_end_where_they_would_no_longer_be_numbers_of_32_bits) {
  static_assert(crfx::FeatureSlots::kMost * crfx::FeatureBlock::kLanes <= int64_t{1} << 30);
  crfx::FeatureSlots slots(4, 3);  // slot 0 is one of them
  CHECK(slots.of(0, crfx::SlotKind::category) == 1);
  CHECK(slots.of(3, crfx::SlotKind::missing_left) == 2);
  bool refused = false;
  try {
    slots.of(2, crfx::SlotKind::missing_left);
  } catch (const crfx::InputError&) {
    refused = true;
  }
  CHECK(refused);
  CHECK(slots.count() == 3);
  CHECK(slots.of(3, crfx::SlotKind::missing_left) == 2);  // which has one
}
