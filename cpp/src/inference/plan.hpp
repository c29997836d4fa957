// How a batch is cut into units (bundles of chains, or single instances) and units into chunks. The
// plan depends on the batch alone, never on threads: equal plans give equal bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "simd/kernels.hpp"

namespace crfx {

struct Plan {
  std::vector<int64_t> instances;  // in order of work
  std::vector<Unit> units;
  std::vector<int64_t> chunks;  // first unit of each chunk, and the end

  int64_t n_chunks() const { return static_cast<int64_t>(chunks.size()) - 1; }
};

namespace detail {

// Below this share of busy lanes the chains of a bundle run faster alone.
constexpr double kLeastFill = 0.3;
constexpr int64_t kMostChunks = 64;
constexpr int64_t kRowsPerChunk = 256;

// Longest first, equal lengths in their order. A counting sort if lengths are short, as they
// mostly are: sorting must not cost more than inference.
template <class S>
void order_by_length(const Problem<S>& p, std::vector<int64_t>& instances) {
  int64_t longest = 0;
  for (int64_t i = 0; i < p.n_instances; ++i) longest = std::max(longest, p.length(i));
  if (longest > 4 * p.n_instances + 1024) {
    std::stable_sort(instances.begin(), instances.end(),
                     [&p](int64_t a, int64_t b) { return p.length(a) > p.length(b); });
    return;
  }
  std::vector<int64_t> next(static_cast<size_t>(longest) + 2, 0);
  for (int64_t i = 0; i < p.n_instances; ++i)
    ++next[static_cast<size_t>(longest - p.length(i)) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (int64_t i = 0; i < p.n_instances; ++i)
    instances[static_cast<size_t>(next[static_cast<size_t>(longest - p.length(i))]++)] = i;
}

template <class S>
void add_units(const Problem<S>& p, int lanes, Plan& plan) {
  const auto n = static_cast<int64_t>(plan.instances.size());
  for (int64_t begin = 0; begin < n;) {
    const int64_t count = std::min<int64_t>(lanes, n - begin);
    int64_t rows = 0;
    for (int64_t k = begin; k < begin + count; ++k) rows += p.length(plan.instances[k]);
    const int64_t longest = p.length(plan.instances[begin]);
    if (static_cast<double>(rows) >= kLeastFill * static_cast<double>(lanes * longest) &&
        longest > 0) {
      plan.units.push_back({begin, static_cast<int32_t>(count), true});
      begin += count;
    } else {
      plan.units.push_back({begin++, 1, false});
    }
  }
}

template <class S>
void cut_chunks(const Problem<S>& p, int64_t most_chunks, Plan& plan) {
  const int64_t wanted = std::clamp<int64_t>(p.n_rows() / kRowsPerChunk, 1, most_chunks);
  const int64_t rows_each = std::max<int64_t>(1, (p.n_rows() + wanted - 1) / wanted);
  int64_t rows = 0;
  plan.chunks.push_back(0);
  for (size_t u = 0; u < plan.units.size(); ++u) {
    if (rows >= rows_each) {
      plan.chunks.push_back(static_cast<int64_t>(u));
      rows = 0;
    }
    const Unit& unit = plan.units[u];
    for (int64_t k = unit.begin; k < unit.begin + unit.count; ++k)
      rows += p.length(plan.instances[k]);
  }
  plan.chunks.push_back(static_cast<int64_t>(plan.units.size()));
}

}  // namespace detail

// Plans work; `lanes` > 1 allows bundles. `sum_bytes` is what each chunk holds of running sums.
template <class S>
Plan make_plan(const Problem<S>& p, int lanes, int64_t sum_bytes) {
  Plan plan;
  plan.instances.resize(static_cast<size_t>(p.n_instances));
  std::iota(plan.instances.begin(), plan.instances.end(), 0);
  if (lanes > 1) {
    detail::order_by_length(p, plan.instances);
    detail::add_units(p, lanes, plan);
  } else {
    for (int64_t i = 0; i < p.n_instances; ++i) plan.units.push_back({i, 1, false});
  }
  constexpr int64_t kMostSumBytes = int64_t(1) << 28;
  const int64_t affordable =
      sum_bytes > 0 ? std::max<int64_t>(8, kMostSumBytes / sum_bytes) : detail::kMostChunks;
  detail::cut_chunks(p, std::min(affordable, detail::kMostChunks), plan);
  return plan;
}

}  // namespace crfx
