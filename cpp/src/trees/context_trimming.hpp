// Rows with small gradients, which the search for splits may leave out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trees/context_leaf.hpp"

namespace crfx {

// Removes rows that together have at most a share of the absolute gradient and of the curvature,
// those with the smallest gradients first, in the order of rows where these are equal.
//
// Several workers exchange their totals, then search for the greatest gradient below which all rows
// may go: `tell` and `narrow`, kSteps times. Rows with exactly that gradient are counted by worker.
class Trimming {
 public:
  static constexpr int kSteps = 16;

  Trimming(const ContextLeaf& root, const LabelSlopes& slopes);
  void tell_total(Message& message) { message.add(&absolute_, 1); }
  // weight: the curvature of all rows.
  void allow(double share, double weight) { left_ = {share * absolute_, share * weight}; }

  void tell(Message& message);
  void narrow();
  void tell_equal(Message& message, const Workers& workers);
  void begin_after_others(const Workers& workers);

  // The removed rows; the leaf keeps the others.
  std::vector<int32_t> take(ContextLeaf& root);

 private:
  static constexpr int kBits = 4;  // determined in a step
  static constexpr uint64_t kPieces = uint64_t(1) << kBits;

  size_t count_below(uint64_t key) const;
  Bins::Cell sum_first(size_t n);

  std::vector<Bins::Cell> rows_;  // absolute gradient and curvature of own rows
  std::vector<size_t> order_;     // of own rows, the smallest gradient first
  size_t begin_ = 0, end_;        // of that order: those before go, those between may
  double absolute_ = 0;           // of all rows
  Bins::Cell left_;               // what may go from `begin_` on

  // Gradients are compared as the whole numbers that their bits are: those below `least_` go.
  uint64_t least_ = 0;
  int open_bits_ = 64;
  std::array<Bins::Cell, kPieces> below_{};  // sums below pieces of what is open
  std::vector<Bins::Cell> first_;            // sums of the first own rows, in order
  std::vector<Bins::Cell> equal_;            // by worker
};

}  // namespace crfx
