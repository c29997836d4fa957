// Features as small numbers, by which trees look for splits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "crfx/cuts.hpp"
#include "crfx/peers.hpp"

namespace crfx {

// What trees ask of: rows of features, dense or sparse; NaN and absent entries are missing.
//
// Dense: the features of row r are the `n_features` numbers from values[first[r]] on. Rows may
// overlap: a window over neighbours is then no more than a longer row (see crfx.features.windows).
struct FeatureRows {
  int64_t n_rows = 0, n_features = 0;
  const float* values = nullptr;
  const int64_t* first = nullptr;    // dense: rows
  const int64_t* starts = nullptr;   // sparse: rows + 1
  const int32_t* indices = nullptr;  // sparse
  int64_t n_values = 0, n_base = 0;  // dense: numbers in all, and features before any window

  bool is_sparse() const { return starts != nullptr; }
};

// A row at a time as dense numbers; sparse rows are spread out, and taken back after use.
class RowReader {
 public:
  explicit RowReader(const FeatureRows& rows);
  const float* read(int64_t row);

 private:
  const FeatureRows& rows_;
  std::vector<float> spread_;
  int64_t shown_ = -1;
};

// Every feature has bin 0 for missing values and 1, 2, ... for the others: for categories one each,
// for numbers intervals; see cuts.hpp.
class Bins {
 public:
  // is_category: one per feature before any window; not read where rows are sparse: all numbers.
  // Bins are of the rows of all peers; the first `overlap` rows of dense values are also the last
  // ones of the peer before.
  Bins(const FeatureRows& rows, const uint8_t* is_category, int n_threads, const Peers& peers = {},
       int64_t overlap = 0);

  int64_t n_features() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  int64_t n_bins() const { return offsets_.back(); }
  bool is_sparse() const { return rows_.is_sparse(); }
  bool is_category(int64_t feature) const { return categories_[base(feature)] != 0; }
  // Bins of a feature are offset(feature) to offset(feature + 1).
  int64_t offset(int64_t feature) const { return offsets_[static_cast<size_t>(feature)]; }
  // Values of bins up to `bin` are below it, those of later bins are not; infinite for the last.
  float upper_limit(int64_t feature, int64_t bin) const;
  int64_t bytes() const;

  struct alignas(16) Cell {  // sums of gradient and curvature of a bin
    double g = 0, h = 0;
  };
  // histogram (n_bins) += g and h of `n` rows. Sparse rows leave out bin 0.
  void add(const int32_t* rows, const float* g, const float* h, int64_t n, Cell* histogram) const;
  // The same for some features, of dense rows.
  void add_some(const int32_t* rows, const float* g, const float* h, int64_t n,
                const std::vector<int64_t>& features, Cell* histogram) const;

  // The bin of a feature of a row, within the feature.
  int64_t bin_of(int64_t row, int64_t feature) const;

 private:
  size_t base(int64_t feature) const {
    return static_cast<size_t>(rows_.is_sparse() ? feature : feature % rows_.n_base);
  }
  void find_dense(int n_threads, const Peers& peers, int64_t overlap);
  void find_sparse(int n_threads, const Peers& peers);

  FeatureRows rows_;
  std::vector<uint8_t> categories_;
  std::vector<std::vector<float>> cuts_;  // per feature before any window, rising
  std::vector<int64_t> offsets_;          // features + 1
  std::vector<uint8_t> codes_;            // dense: one per number
  std::vector<uint32_t> cells_;           // sparse: the bin of every entry, among all
};

}  // namespace crfx
