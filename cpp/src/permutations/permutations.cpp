#include "crfx/permutations.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "crfx/parallel.hpp"
#include "permutations/chunk.hpp"
#include "permutations/kernels.hpp"
#include "simd/kernels.hpp"

namespace crfx {

#define CRFX_DECLARE(isa)                            \
  namespace isa {                                    \
  extern const PermutationKernels permutation_table; \
  }
CRFX_DECLARE(baseline)
#ifdef CRFX_X86
CRFX_DECLARE(avx2)
CRFX_DECLARE(avx512)
#endif

const PermutationKernels& permutation_kernels() {
#ifdef CRFX_X86
  const char* name = kernels<double>().name;
  if (!std::strcmp(name, avx512::permutation_table.name)) return avx512::permutation_table;
  if (!std::strcmp(name, avx2::permutation_table.name)) return avx2::permutation_table;
#endif
  return baseline::permutation_table;
}

namespace {

constexpr int64_t kWorkPerChunk = int64_t(1) << 15;  // sums over subsets, in bundles

// Queries by size, cut into units; `chunks` are borders between units with about as much work.
struct RankingPlan {
  RankingPlan(const RankingData& data, const RankingOptions& options) {
    const bool listed = options.loss == RankingLoss::loss_scaled;
    const int64_t most = listed ? kMostListed : kMostSummed;
    const auto size = [&](int64_t q) { return data.offsets[q + 1] - data.offsets[q]; };
    for (int64_t q = 0; q < data.n_queries; ++q) largest = std::max(largest, size(q));
    std::vector<size_t> begin(static_cast<size_t>(largest) + 2, 0);  // by size
    for (int64_t q = 0; q < data.n_queries; ++q) ++begin[static_cast<size_t>(size(q)) + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    queries.resize(static_cast<size_t>(data.n_queries));
    for (int64_t q = 0; q < data.n_queries; ++q) queries[begin[static_cast<size_t>(size(q))]++] = q;
    int64_t work = 0;
    chunks.push_back(0);
    for (size_t at = 0; at < queries.size();) {
      const int64_t m = size(queries[at]);
      const bool sampled = m > 0 && (m > most || options.sample_all);
      int count = 1;
      while (!sampled && count < kQueryLanes && at + static_cast<size_t>(count) < queries.size() &&
             size(queries[at + static_cast<size_t>(count)]) == m)
        ++count;
      units.push_back({queries.data() + at, count, static_cast<int>(m), sampled});
      at += static_cast<size_t>(count);
      work += sampled ? options.n_samples * m : m << std::min<int64_t>(m + (listed ? 2 : 0), 24);
      if (work < kWorkPerChunk && at < queries.size()) continue;
      chunks.push_back(units.size());
      work = 0;
    }
  }
  std::vector<int64_t> queries;
  std::vector<QueryUnit> units;
  std::vector<size_t> chunks;
  int64_t largest = 0;
};

}  // namespace

void ranking_objective(const RankingData& data, const RankingOptions& options,
                       const RankingOutputs& out, int n_threads) {
  const RankingPlan plan(data, options);
  const RankWeights weights(plan.largest, options.cut);
  for_chunks(static_cast<int64_t>(plan.chunks.size()) - 1, n_threads,
             [&](int64_t chunk, Workspace& work) {
               RankingChunk own(data, options, weights, out, work);
               const auto at = static_cast<size_t>(chunk);
               for (size_t u = plan.chunks[at]; u < plan.chunks[at + 1]; ++u)
                 own.run(plan.units[u]);
             });
}

}  // namespace crfx
