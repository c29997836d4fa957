// The instances of one step, and how its phases are cut into chunks. Chunks depend on the
// mini-batch alone, never on threads: equal chunks, combined in order, give equal bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "crfx/parallel.hpp"
#include "parametric/chain_losses.hpp"
#include "simd/kernels.hpp"

namespace crfx {

// As many threads as a step of so many multiplications keeps busy: about one for every 40
// microseconds. The barriers between phases cost a thread five to ten microseconds of a step, and
// far more if other programs need its processor.
inline int threads_worth(int n_threads, double operations) {
  constexpr double kOperationsPerThread = 1 << 21;
  if (n_threads <= 0) n_threads = available_threads();
  const double busy = std::clamp(operations / kOperationsPerThread, 1.0, 4096.0);
  return std::min(n_threads, static_cast<int>(busy));
}

// The part of a feature, among a number of parts. Neighbours stay together, since their parameters
// share lines of the cache; blocks of them are spread.
inline int64_t part_of(int32_t feature, int64_t n_parts) {
  const uint32_t mixed = (static_cast<uint32_t>(feature) >> 3) * 0x9e3779b1u;
  return static_cast<int64_t>((static_cast<uint64_t>(mixed) * static_cast<uint64_t>(n_parts)) >>
                              32);
}

// Ranges of about equal size.
struct Ranges {
  Ranges() = default;
  Ranges(int64_t n, int64_t size) : n(n), size(size) {}
  int64_t count() const { return (n + size - 1) / size; }
  int64_t begin(int64_t k) const { return k * size; }
  int64_t end(int64_t k) const { return std::min(n, (k + 1) * size); }

  int64_t n = 0, size = 1;
};

// Buffers are kept from one mini-batch to the next.
class MiniBatch {
 public:
  // The number of sums of every chunk of rows.
  explicit MiniBatch(const ChainData& data, int64_t n_sums = 0)
      : data_(data),
        constants_(data),
        n_tables_(data.n_tables()),
        most_row_chunks_(most_chunks(n_sums)) {}

  // Takes the next instances; the longest come first, so that those beside each other in lanes are
  // of similar length.
  void begin(const int64_t* instances, int64_t n_instances) {
    instances_.assign(instances, instances + n_instances);
    if (n_instances > 1)
      std::stable_sort(instances_.begin(), instances_.end(),
                       [this](int64_t a, int64_t b) { return length(a) > length(b); });
    offsets_.assign(1, 0);
    data_rows_.clear();
    for (const int64_t i : instances_) {
      offsets_.push_back(offsets_.back() + length(i));
      for (int64_t row = data_.offsets[i]; row < data_.offsets[i + 1]; ++row)
        data_rows_.push_back(row);
    }
    cut_rows();
    cut_chains();
    const auto size = static_cast<size_t>(n_rows() * data_.n_labels);
    node_.resize(size);
    slopes_.resize(size + kSlack);
    moves_.resize(static_cast<size_t>(n_rows()));
    table_slopes_.resize(static_cast<size_t>(n_chain_chunks() * n_tables_));
  }

  std::size_t n_instances() const { return instances_.size(); }
  int64_t n_rows() const { return offsets_.back(); }
  int64_t data_row(int64_t row) const { return data_rows_[static_cast<size_t>(row)]; }
  const Ranges& rows() const { return rows_; }  // chunks of rows, each with sums of its own
  // For work on single rows: the chunks do not change the result.
  Ranges rows_for(const Team& team) const {
    const int64_t n_chunks = team.size() == 1 ? 1 : 4 * team.size();
    return {n_rows(), in_tiles(std::max<int64_t>(1, (n_rows() + n_chunks - 1) / n_chunks))};
  }
  // Scores of nodes, to be filled in; slopes may be read in whole packs.
  float* node(int64_t row) { return node_.data() + row * data_.n_labels; }
  const float* slopes(int64_t row) const { return slopes_.data() + row * data_.n_labels; }
  bool moves(int64_t row) const { return moves_[static_cast<size_t>(row)]; }

  // The slopes of the loss in a chunk of chains.
  int64_t n_chain_chunks() const { return static_cast<int64_t>(chains_.size()) - 1; }
  void find_slopes(int64_t chunk, const TableScores& tables, ChainPasses& passes) {
    const int64_t first = chains_[static_cast<size_t>(chunk)];
    const int64_t last = chains_[static_cast<size_t>(chunk) + 1];
    const int64_t begin = offsets_[static_cast<size_t>(first)];
    const int64_t end = offsets_[static_cast<size_t>(last)], K = data_.n_labels;
    crfx::find_slopes({instances_.data() + first, last - first, node(begin),
                       slopes_.data() + begin * K, table_slopes_.data() + chunk * n_tables_},
                      tables, constants_, passes);
    for (int64_t row = begin; row < end; ++row)
      moves_[static_cast<size_t>(row)] =
          std::any_of(slopes(row), slopes(row) + K, [](float slope) { return slope != 0; });
  }
  // Of some parameters of the tables, over all chunks.
  const double* table_slopes(int64_t begin, int64_t end, Workspace& work) const {
    if (n_chain_chunks() == 1) return table_slopes_.data() + begin;
    double* sums = work.take<double>(end - begin);
    std::fill_n(sums, end - begin, 0.0);
    for (int64_t chunk = 0; chunk < n_chain_chunks(); ++chunk) {
      const double* own = table_slopes_.data() + chunk * n_tables_ + begin;
      for (int64_t k = 0; k < end - begin; ++k) sums[k] += own[k];
    }
    return sums;
  }

 private:
  static constexpr int64_t kRowsPerChunk = 64, kMostChunks = 64;
  static constexpr size_t kSlack = 64;                    // a pack of any instruction set
  static constexpr int64_t kMostSums = int64_t(1) << 24;  // over all chunks

  static int64_t most_chunks(int64_t n_sums) {
    return std::clamp(kMostSums / std::max<int64_t>(1, n_sums), int64_t(1), kMostChunks);
  }
  // Kernels take four rows at a time.
  static int64_t in_tiles(int64_t n_rows) { return (n_rows + 3) / 4 * 4; }
  int64_t length(int64_t i) const { return data_.offsets[i + 1] - data_.offsets[i]; }

  // Four chunks or a multiple of them, where there are more than two: for two threads or four.
  void cut_rows() {
    const int64_t wanted = n_rows() < 8 * kRowsPerChunk ? kRowsPerChunk : 2 * kRowsPerChunk;
    int64_t n_chunks = (n_rows() + wanted - 1) / wanted;
    if (n_chunks > 2) n_chunks = (n_chunks + 3) / 4 * 4;
    n_chunks = std::clamp<int64_t>(n_chunks, 1, most_row_chunks_);
    rows_ = {n_rows(), in_tiles(std::max<int64_t>(1, (n_rows() + n_chunks - 1) / n_chunks))};
  }

  // Whole bundles, where chains run side by side; and enough rows to pay for the tables that every
  // chunk prepares and the sums that it empties.
  void cut_chains() {
    const bool bundles = data_.order == 1 && data_.sharing == Sharing::shared && !data_.parents;
    const auto lanes = static_cast<size_t>(bundles ? kernels<float>().lanes : 1);
    const int64_t most = most_chunks(n_tables_);
    const int64_t least = std::max({std::clamp<int64_t>(n_rows() / 4, 16, 256), 8 * data_.n_types,
                                    (n_rows() + most - 1) / most});
    chains_.assign(1, 0);
    for (size_t k = lanes; k < instances_.size(); k += lanes)
      if (offsets_[k] - offsets_[static_cast<size_t>(chains_.back())] >= least)
        chains_.push_back(static_cast<int64_t>(k));
    chains_.push_back(static_cast<int64_t>(instances_.size()));
  }

  const ChainData& data_;
  LossTables constants_;
  const int64_t n_tables_, most_row_chunks_;
  std::vector<int64_t> instances_, offsets_{0}, data_rows_, chains_{0};
  Ranges rows_;
  std::vector<float> node_, slopes_;
  std::vector<char> moves_;
  std::vector<double> table_slopes_;
};

}  // namespace crfx
