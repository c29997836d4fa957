// Features as small numbers (bins), in which trees search for splits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "crfx/parallel.hpp"

namespace crfx {

// The input of trees: rows of features, dense or sparse; NaN and absent entries are missing.
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

// One row at a time as dense numbers; sparse rows are spread out, and cleared after use.
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
// for numbers intervals between cuts.
class Bins {
 public:
  // is_category: one per feature before any window; not read where rows are sparse: all numbers.
  // Bins are made from the rows of all workers. The first `overlap` rows of dense values are also
  // the last ones of the previous worker.
  Bins(const FeatureRows& rows, const uint8_t* is_category, int n_threads,
       const Workers& workers = {}, int64_t overlap = 0);

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
  void find_dense(int n_threads, const Workers& workers, int64_t overlap);
  void find_sparse(int n_threads, const Workers& workers);

  FeatureRows rows_;
  std::vector<uint8_t> categories_;
  std::vector<std::vector<float>> cuts_;  // per feature before any window, rising
  std::vector<int64_t> offsets_;          // features + 1
  std::vector<uint8_t> codes_;            // dense: one per number
  std::vector<uint32_t> cells_;           // sparse: the bin of every entry, among all
};

// Cuts the numbers of a column into bins, which hold equally many rows, or one value each if there
// are few values.

constexpr int kMostBins = 255;  // of values, so that a number fits into a byte

// Takes the values of a column one after the other, rising.
class Cutting {
 public:
  Cutting(double n_rows, bool few) : rows_left_(n_rows), few_(few) {}
  void add(float value, double n_rows) {
    if (filled_ > 0 && is_due()) cut(between(last_, value));
    last_ = value;
    filled_ += n_rows;
  }
  std::vector<float> cuts;

  // The following is for values of which only the number of rows is known.

  // Whether their values matter: some of them begin a bin, or end one.
  bool asks(double n_rows) const { return bins_left() > 1 && filled_ + n_rows >= share(); }
  void pass(double n_rows) { filled_ += n_rows; }
  // As if no two rows had the same value.
  void guess(double n_rows);

 private:
  static float between(float a, float b);
  double bins_left() const {
    return static_cast<double>(kMostBins) - static_cast<double>(cuts.size());
  }
  // The remaining rows are divided among the remaining bins: a frequent value does not take space
  // of others.
  double share() const { return rows_left_ / bins_left(); }
  bool is_due() const { return few_ || (bins_left() > 1 && filled_ >= share()); }
  void cut(float at) {
    cuts.push_back(at);
    rows_left_ -= filled_;
    filled_ = 0;
  }

  double filled_ = 0;  // rows in the bin that is being filled
  double rows_left_;   // of this and later bins
  bool few_;
  float last_ = 0;
};

// At most kMostBins - 1 cuts, of values without NaN.
std::vector<float> find_cuts(std::vector<float> values);

// The columns of a matrix whose rows several workers have.
struct SharedColumns {
  std::vector<double> sizes;  // entries of each on this worker, NaN among them
  // Returns the values of a column on this worker, without NaN; is called on several threads.
  std::function<std::vector<float>(int64_t)> read;
};
struct SharedCuts {
  std::vector<float> cuts;
  float greatest = -1;  // value on any worker; -1 if there are none, or many
};
// The cuts of one worker with all rows, however rows are distributed. Workers exchange
// 8 bytes per column, 16 per value and worker where no worker has more than kMostBins values of a
// column, and 0.2 to 2 MB for each other column, most where frequent values are many.
std::vector<SharedCuts> find_shared_cuts(const SharedColumns& columns, const Workers& workers,
                                         int n_threads);

}  // namespace crfx
