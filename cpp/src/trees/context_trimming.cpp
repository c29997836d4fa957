#include "trees/context_trimming.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace crfx {

using Cell = Bins::Cell;

Trimming::Trimming(const ContextLeaf& root, const LabelSlopes& slopes)
    : rows_(root.rows.size()), order_(root.rows.size()), end_(root.rows.size()) {
  for (size_t p = 0; p < rows_.size(); ++p) {
    rows_[p] = {slopes.influence(root.rows[p]), static_cast<double>(root.h[p])};
    absolute_ += rows_[p].g;
  }
  std::iota(order_.begin(), order_.end(), size_t(0));
  std::stable_sort(order_.begin(), order_.end(),
                   [&](size_t a, size_t b) { return rows_[a].g < rows_[b].g; });
}

size_t Trimming::count_below(uint64_t key) const {
  const auto found = std::partition_point(order_.begin(), order_.end(), [&](size_t p) {
    return std::bit_cast<uint64_t>(rows_[p].g) < key;
  });
  return static_cast<size_t>(found - order_.begin());
}

Cell Trimming::sum_first(size_t n) {
  if (first_.empty()) {
    first_.resize(1);
    for (const size_t p : order_) first_.push_back(first_.back() + rows_[p]);
  }
  return first_[n];
}

void Trimming::tell(Message& message) {
  for (uint64_t piece = 1; piece < kPieces; ++piece)
    below_[piece] = sum_first(count_below(least_ + (piece << (open_bits_ - kBits))));
  crfx::tell(message, below_.data() + 1, kPieces - 1);
}

void Trimming::narrow() {
  open_bits_ -= kBits;
  uint64_t piece = 0;
  while (piece + 1 < kPieces && below_[piece + 1].g <= left_.g && below_[piece + 1].h <= left_.h)
    ++piece;
  least_ += piece << open_bits_;
  if (piece) below_[0] = below_[piece];
}

void Trimming::tell_equal(Message& message, const Workers& workers) {
  begin_ = count_below(least_);
  end_ = count_below(least_ + 1);
  equal_.assign(static_cast<size_t>(workers.size), {});
  equal_[static_cast<size_t>(workers.rank)] = sum_first(end_) - sum_first(begin_);
  crfx::tell(message, equal_.data(), equal_.size());
}

void Trimming::begin_after_others(const Workers& workers) {
  left_ = left_ - below_[0];
  for (int rank = 0; rank < workers.rank; ++rank) left_ = left_ - equal_[static_cast<size_t>(rank)];
}

std::vector<int32_t> Trimming::take(ContextLeaf& root) {
  std::vector<uint8_t> goes(root.rows.size(), 0);
  for (size_t k = 0; k < begin_; ++k) goes[order_[k]] = 1;
  for (size_t k = begin_; k < end_; ++k) {
    left_ = left_ - rows_[order_[k]];
    if (left_.g < 0 || left_.h < 0) break;
    goes[order_[k]] = 1;
  }
  std::vector<int32_t> trimmed;
  size_t kept = 0;
  for (size_t p = 0; p < root.rows.size(); ++p) {
    if (goes[p]) {
      trimmed.push_back(root.rows[p]);
      continue;
    }
    root.rows[kept] = root.rows[p];
    root.g[kept] = root.g[p];
    root.h[kept++] = root.h[p];
  }
  root.rows.resize(kept);
  root.g.resize(kept);
  root.h.resize(kept);
  root.sum_up();
  return trimmed;
}

}  // namespace crfx
