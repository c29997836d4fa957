// A few rows of features at a time, side by side in lanes, as whole numbers that trees compare;
// only the features that the trees use.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "crfx/bins.hpp"

namespace crfx {

// The slot of a missing feature holds a key below or above all others: the comparison then sends it
// to the correct side without a test for missing values.
enum class SlotKind { missing_left, missing_right, category };

constexpr int32_t kBelowAll = std::numeric_limits<int32_t>::min();
constexpr int32_t kAboveAll = std::numeric_limits<int32_t>::max();
constexpr int32_t kNoCategory = -1, kUnknownCategory = -2;

// A whole number that orders as the number does: key_of(a) < key_of(b) exactly if a < b. Not for
// NaN.
int32_t key_of(float x);

// The features in use, and how missing values go. Each pair has a slot; slot 0 is kBelowAll in
// every row.
class FeatureSlots {
 public:
  // So many that a slot times the lanes is still a number of 32 bits.
  static constexpr int64_t kMost = int64_t{1} << 27;

  explicit FeatureSlots(int64_t n_features, int64_t most = kMost)
      : most_(most), slot_of_(static_cast<size_t>(n_features)) {}
  // Gives the pair a slot if it has none. Throws InputError if there are `most` already.
  int32_t of(int32_t feature, SlotKind kind);
  int64_t n_features() const { return static_cast<int64_t>(slot_of_.size()); }
  int64_t count() const { return static_cast<int64_t>(slots_.size()); }

 private:
  friend class FeatureBlock;
  struct Slot {
    int32_t feature = 0;
    SlotKind kind = SlotKind::missing_left;
    int32_t missing = kBelowAll;
  };
  struct Own {
    int32_t slots[3] = {0, 0, 0};  // by kind; 0: none
  };

  int64_t most_;
  std::vector<Own> slot_of_;  // features
  std::vector<Slot> slots_{Slot{}};
};

// Memory for some groups of kLanes rows.
class FeatureBlock {
 public:
  static constexpr int64_t kLanes = 8;

  // Reads rows [begin, end). Rows of a group beyond them are undefined, except for slot 0.
  void read(const FeatureRows& rows, const FeatureSlots& slots, int64_t begin, int64_t end);
  // slots x lanes
  const int32_t* group(int64_t g) const { return keys_.data() + g * n_slots_ * kLanes; }

 private:
  void clear(const FeatureSlots& slots, int64_t n_groups);
  void read_dense(const FeatureRows& rows, const FeatureSlots& slots, int64_t begin, int64_t end);
  void read_sparse(const FeatureRows& rows, const FeatureSlots& slots, int64_t begin, int64_t end);

  int64_t n_slots_ = 0;
  std::vector<int32_t> keys_;  // groups x slots x lanes
  struct Written {
    size_t at;
    int32_t missing;
  };
  std::vector<Written> written_;  // by sparse rows; only these are cleared
  bool is_empty_ = true;          // all missing, but for what was written
};

// Blocks kept for the next caller: clearing one takes longer than reading a short sentence.
class FeatureBlocks {
 public:
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

  std::mutex mutex_;
  std::vector<std::unique_ptr<FeatureBlock>> waiting_;
};

}  // namespace crfx
