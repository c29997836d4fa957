// A few rows of features at a time, side by side in lanes, with the features alone that trees ask
// for.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "crfx/bins.hpp"

namespace crfx {

// Which features are asked for. Each has a slot; slot 0 is missing in every row.
struct FeatureSlots {
  std::vector<int32_t> slot_of;     // features: their slot, or 0 if none asks for them
  std::vector<int32_t> columns{0};  // slots: the feature; that of slot 0 is not read

  explicit FeatureSlots(int64_t n_features) : slot_of(static_cast<size_t>(n_features), 0) {}
  int32_t of(int32_t feature);  // gives it a slot where it has none
  int64_t count() const { return static_cast<int64_t>(columns.size()); }
};

// Room for some groups of kLanes rows.
class FeatureBlock {
 public:
  static constexpr int64_t kLanes = 8;

  explicit FeatureBlock(int64_t n_slots) : n_slots_(n_slots) {}
  // Reads rows [begin, end). What a group has beyond them is undefined.
  void read(const FeatureRows& rows, const FeatureSlots& slots, int64_t begin, int64_t end);
  // slots x lanes
  const float* group(int64_t g) const { return values_.data() + g * n_slots_ * kLanes; }

 private:
  void make_room(int64_t n_groups);
  void read_dense(const FeatureRows& rows, const FeatureSlots& slots, int64_t begin, int64_t end);
  void read_sparse(const FeatureRows& rows, const FeatureSlots& slots, int64_t begin, int64_t end);

  int64_t n_slots_;
  std::vector<float> values_;    // groups x slots x lanes
  std::vector<size_t> written_;  // by sparse rows, which alone are taken back
  bool is_empty_ = true;         // all missing, but for what was written
};

// Blocks that wait for the next caller: clearing one takes longer than reading a short sentence.
class FeatureBlocks {
 public:
  void set_slots(int64_t n_slots) { n_slots_ = n_slots; }

  class Lease {
   public:
    explicit Lease(FeatureBlocks& from) : from_(from), block_(from.take()) {}
    ~Lease() { from_.put(std::move(block_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    FeatureBlock* operator->() { return block_.get(); }

   private:
    FeatureBlocks& from_;
    std::unique_ptr<FeatureBlock> block_;
  };

 private:
  std::unique_ptr<FeatureBlock> take();
  void put(std::unique_ptr<FeatureBlock> block);

  int64_t n_slots_ = 0;
  std::mutex mutex_;
  std::vector<std::unique_ptr<FeatureBlock>> waiting_;
};

}  // namespace crfx
