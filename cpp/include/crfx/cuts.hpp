// Where the numbers of a column are cut into bins, which hold equally many rows, or one value each
// where these are few.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "crfx/peers.hpp"

namespace crfx {

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

  // What follows is for values of which no more is known than how many rows have them.

  // Whether it matters which these are: some of them begin a bin, or end one.
  bool asks(double n_rows) const { return bins_left() > 1 && filled_ + n_rows >= share(); }
  void pass(double n_rows) { filled_ += n_rows; }
  // As if no two rows had the same value.
  void guess(double n_rows);

 private:
  static float between(float a, float b);
  double bins_left() const {
    return static_cast<double>(kMostBins) - static_cast<double>(cuts.size());
  }
  // What is left is shared out among the bins that are left: a frequent value takes no other's.
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

// At most kMostBins - 1, of values none of which is NaN.
std::vector<float> find_cuts(std::vector<float> values);

// The columns of a matrix whose rows several workers have.
struct SharedColumns {
  std::vector<double> sizes;  // own entries of each, NaN among them
  // The values of a column, without NaN; is called on several threads.
  std::function<std::vector<float>(int64_t)> read;
};
struct SharedCuts {
  std::vector<float> cuts;
  float greatest = -1;  // value of all workers; -1 where there are none, or many
};
// The cuts that one worker with all rows would find, whoever has which of them. Tells 8 bytes per
// column, 16 per value and worker where no worker has more than kMostBins values of a column, and
// 0.2 to 2 MB for each other column, most where frequent values are many.
std::vector<SharedCuts> find_shared_cuts(const SharedColumns& columns, const Peers& peers,
                                         int n_threads);

}  // namespace crfx
