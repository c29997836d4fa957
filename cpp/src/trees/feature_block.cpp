#include "trees/feature_block.hpp"

#include <bit>
#include <utility>

#include "crfx/errors.hpp"

namespace crfx {
namespace {

constexpr float kMostCategories = 1 << 24;  // float counts no further

// The value of a slot for a number.
int32_t entry(float x, SlotKind kind, int32_t missing) {
  if (x != x) return missing;
  if (kind != SlotKind::category) return key_of(x);
  return x >= 0 && x < kMostCategories ? static_cast<int32_t>(x) : kUnknownCategory;
}

int32_t missing_of(SlotKind kind) {
  if (kind == SlotKind::category) return kNoCategory;
  return kind == SlotKind::missing_left ? kBelowAll : kAboveAll;
}

}  // namespace

int32_t key_of(float x) {
  const int32_t bits = std::bit_cast<int32_t>(x + 0.0f);  // -0 is 0
  return bits ^ (bits >> 31 & std::numeric_limits<int32_t>::max());
}

int32_t FeatureSlots::of(int32_t feature, SlotKind kind) {
  int32_t& slot = slot_of_[static_cast<size_t>(feature)].slots[static_cast<int>(kind)];
  if (slot == 0) {
    if (count() >= most_) throw InputError("the trees use too many features");
    slot = static_cast<int32_t>(slots_.size());
    slots_.push_back({feature, kind, missing_of(kind)});
  }
  return slot;
}

void FeatureBlock::read(const FeatureRows& rows, const FeatureSlots& slots, int64_t begin,
                        int64_t end) {
  n_slots_ = slots.count();
  const int64_t n_groups = (end - begin + kLanes - 1) / kLanes;
  const size_t size = static_cast<size_t>(n_groups * n_slots_ * kLanes);
  if (keys_.size() < size || (rows.is_sparse() && !is_empty_)) clear(slots, n_groups);
  if (rows.is_sparse())
    read_sparse(rows, slots, begin, end);
  else
    read_dense(rows, slots, begin, end);
}

void FeatureBlock::clear(const FeatureSlots& slots, int64_t n_groups) {
  const size_t group = static_cast<size_t>(n_slots_ * kLanes);
  const size_t size = static_cast<size_t>(n_groups) * group;
  if (keys_.size() < size) keys_.resize(size);
  for (size_t at = 0; at < keys_.size(); ++at)
    keys_[at] = slots.slots_[at % group / static_cast<size_t>(kLanes)].missing;
  written_.clear();
  is_empty_ = true;
}

void FeatureBlock::read_dense(const FeatureRows& rows, const FeatureSlots& slots, int64_t begin,
                              int64_t end) {
  is_empty_ = false;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t g = (row - begin) / kLanes, lane = (row - begin) % kLanes;
    const float* from = rows.values + rows.first[row];
    int32_t* to = keys_.data() + g * n_slots_ * kLanes + lane;
    for (int64_t slot = 1; slot < n_slots_; ++slot) {
      const FeatureSlots::Slot& own = slots.slots_[static_cast<size_t>(slot)];
      to[slot * kLanes] = entry(from[own.feature], own.kind, own.missing);
    }
  }
}

void FeatureBlock::read_sparse(const FeatureRows& rows, const FeatureSlots& slots, int64_t begin,
                               int64_t end) {
  for (const Written& own : written_) keys_[own.at] = own.missing;
  written_.clear();
  for (int64_t row = begin; row < end; ++row) {
    const int64_t g = (row - begin) / kLanes, lane = (row - begin) % kLanes;
    for (int64_t k = rows.starts[row]; k < rows.starts[row + 1]; ++k) {
      for (const int32_t slot : slots.slot_of_[static_cast<size_t>(rows.indices[k])].slots) {
        if (slot == 0) continue;
        const FeatureSlots::Slot& own = slots.slots_[static_cast<size_t>(slot)];
        const size_t at = static_cast<size_t>((g * n_slots_ + slot) * kLanes + lane);
        written_.push_back({at, own.missing});
        keys_[at] = entry(rows.values[k], own.kind, own.missing);
      }
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
  return std::make_unique<FeatureBlock>();
}

void FeatureBlocks::put(std::unique_ptr<FeatureBlock> block) {
  const std::lock_guard<std::mutex> lock(mutex_);
  waiting_.push_back(std::move(block));
}

}  // namespace crfx
