#include "crfx/feature_block.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace crfx {
namespace {

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

}  // namespace

int32_t FeatureSlots::of(int32_t feature) {
  int32_t& slot = slot_of[static_cast<size_t>(feature)];
  if (slot == 0) {
    slot = static_cast<int32_t>(columns.size());
    columns.push_back(feature);
  }
  return slot;
}

void FeatureBlock::read(const FeatureRows& rows, const FeatureSlots& slots, int64_t begin,
                        int64_t end) {
  make_room((end - begin + kLanes - 1) / kLanes);
  if (rows.is_sparse())
    read_sparse(rows, slots, begin, end);
  else
    read_dense(rows, slots, begin, end);
}

void FeatureBlock::make_room(int64_t n_groups) {
  const size_t size = static_cast<size_t>(n_groups * n_slots_ * kLanes);
  if (values_.size() < size) values_.resize(size, kMissing);
}

void FeatureBlock::read_dense(const FeatureRows& rows, const FeatureSlots& slots, int64_t begin,
                              int64_t end) {
  is_empty_ = false;
  const int32_t* columns = slots.columns.data();
  for (int64_t row = begin; row < end; ++row) {
    const int64_t g = (row - begin) / kLanes, lane = (row - begin) % kLanes;
    const float* from = rows.values + rows.first[row];
    float* to = values_.data() + g * n_slots_ * kLanes + lane;
    for (int64_t slot = 1; slot < n_slots_; ++slot) to[slot * kLanes] = from[columns[slot]];
  }
}

void FeatureBlock::read_sparse(const FeatureRows& rows, const FeatureSlots& slots, int64_t begin,
                               int64_t end) {
  if (!is_empty_) std::fill(values_.begin(), values_.end(), kMissing);
  is_empty_ = true;
  for (const size_t at : written_) values_[at] = kMissing;
  written_.clear();
  for (int64_t row = begin; row < end; ++row) {
    const int64_t g = (row - begin) / kLanes, lane = (row - begin) % kLanes;
    for (int64_t k = rows.starts[row]; k < rows.starts[row + 1]; ++k) {
      const int64_t slot = slots.slot_of[static_cast<size_t>(rows.indices[k])];
      if (slot == 0) continue;
      const size_t at = static_cast<size_t>((g * n_slots_ + slot) * kLanes + lane);
      written_.push_back(at);
      values_[at] = rows.values[k];
    }
  }
}

std::unique_ptr<FeatureBlock> FeatureBlocks::take() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!waiting_.empty()) {
      std::unique_ptr<FeatureBlock> found = std::move(waiting_.back());
      waiting_.pop_back();
      return found;
    }
  }
  return std::make_unique<FeatureBlock>(n_slots_);
}

void FeatureBlocks::put(std::unique_ptr<FeatureBlock> block) {
  const std::lock_guard<std::mutex> lock(mutex_);
  waiting_.push_back(std::move(block));
}

}  // namespace crfx
