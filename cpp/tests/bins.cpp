// Bins of features; cuts of columns whose rows several workers have, against those of one who has
// all.
#include "crfx/bins.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <random>

#include "check.hpp"
#include "crfx/errors.hpp"
#include "team.hpp"

using namespace check;

namespace {

using Columns = std::vector<std::vector<float>>;

constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();
constexpr float kTiny = std::numeric_limits<float>::denorm_min();

// Columns of all kinds: few values, many, many that are often the same, both, almost equal ones.
Columns make_columns(size_t n_rows, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Columns found(8);
  for (size_t row = 0; row < n_rows; ++row) {
    const float x = normal(random);
    const auto number = static_cast<float>(random() % 1000);
    found[0].push_back(static_cast<float>(random() % 5));
    found[1].push_back(x);
    found[2].push_back(number);
    found[3].push_back(random() % 2 ? 0.0f : random() % 2 ? -0.0f : x);
    found[4].push_back(random() % 3 ? x * 1e30f : -kInfinite);
    found[5].push_back(std::bit_cast<float>(0x3f800000u + static_cast<uint32_t>(random() % 700)));
    if (random() % 40 == 0) found[6].push_back(number * kTiny);
    if (row % 300 == 0) found[7].push_back(x);
  }
  return found;
}

// Of each column those values that a worker has: the last has the rest, the first may have none.
std::vector<float> part(const std::vector<float>& column, const crfx::Workers& workers) {
  const auto n = static_cast<int64_t>(column.size()), size = static_cast<int64_t>(workers.size);
  const auto at = [&](int64_t rank) { return column.begin() + n * rank * rank / (size * size); };
  return {at(workers.rank), at(workers.rank + 1)};
}

// One feature; row r has the value values[r].
crfx::FeatureRows column_of(const std::vector<float>& values, const std::vector<int64_t>& first) {
  crfx::FeatureRows rows;
  rows.n_rows = rows.n_values = static_cast<int64_t>(values.size());
  rows.n_features = rows.n_base = 1;
  rows.values = values.data();
  rows.first = first.data();
  return rows;
}

}  // namespace

TEST(bins_reject_too_many_categories) {
  for (const auto& [code, fits] : {std::pair{254.0f, true}, {255.0f, false}}) {
    const std::vector<float> values{code, 0.0f, kMissing};
    const std::vector<int64_t> first{0, 1, 2};
    const uint8_t is_category = 1;
    bool rejected = false;
    try {
      const crfx::Bins bins(column_of(values, first), &is_category, 2);
      CHECK(bins.n_bins() == 256);
    } catch (const crfx::InputError&) {
      rejected = true;
    }
    CHECK(rejected != fits);
  }
}

TEST(limits_of_bins_lie_between_values) {
  const std::vector<float> values{-kInfinite, -3e38f, 3e38f, 1.0f, std::nextafter(1.0f, 2.0f),
                                  kMissing};
  const std::vector<int64_t> first{0, 1, 2, 3, 4, 5};
  const uint8_t is_category = 0;
  const crfx::Bins bins(column_of(values, first), &is_category, 1);
  CHECK(bins.n_bins() == 6);
  const int64_t expected[] = {1, 2, 5, 3, 4, 0};
  for (int64_t row = 0; row < 6; ++row) {
    const int64_t bin = bins.bin_of(row, 0);
    CHECK(bin == expected[row]);
    for (int64_t limit = 1; limit < 5 && bin > 0; ++limit)
      CHECK((values[static_cast<size_t>(row)] < bins.upper_limit(0, limit)) == (bin <= limit));
  }
  CHECK(std::isinf(bins.upper_limit(0, 5)));
}

TEST(shared_cuts_are_those_of_one_who_has_all_rows) {
  for (const size_t n_rows : {0, 3, 300, 20000}) {
    const Columns columns = make_columns(n_rows, 1);
    for (const int size : {1, 2, 3}) {
      Team team(size);
      team.run([&](const crfx::Workers& workers) {
        crfx::FlushDenormals flush;
        crfx::SharedColumns own;
        for (const std::vector<float>& column : columns)
          own.sizes.push_back(static_cast<double>(part(column, workers).size()));
        own.read = [&](int64_t k) { return part(columns[static_cast<size_t>(k)], workers); };
        const std::vector<crfx::SharedCuts> found = crfx::find_shared_cuts(own, workers, 1);
        for (size_t k = 0; k < columns.size(); ++k)
          CHECK(found[k].cuts == crfx::find_cuts(columns[k]));
        const float most = n_rows ? *std::max_element(columns[0].begin(), columns[0].end()) : -1;
        CHECK(found[0].greatest == most);
      });
      // 5 of the columns have many values.
      CHECK(team.n_messages < 60);
      CHECK(team.n_numbers * 8 < 5 * 500'000);
    }
  }
}

TEST(bins_count_what_lies_between_the_rows_of_two_workers_once) {
  // Instances of n rows, a row for the outside around each: fewer than a bin holds, if just so.
  const int64_t gap = 1, n = 400;
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(gap), -kInfinite);
  for (int64_t row = 0; row < 3 * (n + gap); ++row)
    values.push_back(row % (n + gap) < n ? normal(random) : -kInfinite);
  const std::vector<int64_t> first{0};
  const uint8_t number = 0;
  const auto bins_of = [&](int64_t begin, int64_t n_instances, const crfx::Workers& workers) {
    crfx::FeatureRows rows;
    rows.n_rows = rows.n_features = rows.n_base = 1;
    rows.values = values.data() + begin * (n + gap);
    rows.n_values = gap + n_instances * (n + gap);
    rows.first = first.data();
    return crfx::Bins(rows, &number, 1, workers, gap);
  };
  const crfx::Bins whole = bins_of(0, 3, {});
  Team team(2);
  team.run([&](const crfx::Workers& workers) {
    const crfx::Bins bins = bins_of(workers.rank, 1 + workers.rank, workers);
    CHECK(bins.n_bins() == whole.n_bins());
    for (int64_t bin = 1; bin < std::min(bins.n_bins(), whole.n_bins()); ++bin)
      CHECK(bins.upper_limit(0, bin) == whole.upper_limit(0, bin));
  });
}

TEST(workers_with_other_columns_are_refused) {
  const crfx::Workers silent{0, 2, [](double*, int64_t) {}};  // the other has no column
  bool refused = false;
  try {
    crfx::find_shared_cuts({{1}, [](int64_t) { return std::vector<float>{1}; }}, silent, 1);
  } catch (const crfx::InputError&) {
    refused = true;
  }
  CHECK(refused);
}
