// Numbers names in the order of their arrival: a hash table with all names in one buffer.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace crfx {

// A name in up to two pieces, key and value, which are joined by ':'.
struct Name {
  std::string_view key, value;
  bool joined = false;

  size_t size() const { return key.size() + (joined ? 1 + value.size() : 0); }
  // FNV-1a, mixed at the end: its low bits alone are poor. Files of hashed models rely on it.
  uint64_t hash() const {
    uint64_t state = 0xcbf29ce484222325u;
    const auto take = [&state](std::string_view piece) {
      for (const char letter : piece) {
        state ^= static_cast<unsigned char>(letter);
        state *= 0x100000001b3u;
      }
    };
    take(key);
    if (joined) {
      take(":");
      take(value);
    }
    return state ^ (state >> 29);
  }
};

class NameTable {
 public:
  static constexpr int32_t kUnknown = -1;

  NameTable() : slots_(kFirstSlots, kUnknown) {}

  int64_t size() const { return static_cast<int64_t>(starts_.size()) - 1; }
  std::string_view name(int64_t number) const {
    const auto at = static_cast<size_t>(number);
    return {letters_.data() + starts_[at], starts_[at + 1] - starts_[at]};
  }
  int32_t find(const Name& name) const { return slots_[slot_of(name, name.hash())]; }
  int32_t find_or_add(const Name& name) {
    const uint64_t own = name.hash();
    const size_t slot = slot_of(name, own);
    if (slots_[slot] != kUnknown) return slots_[slot];
    return add(name, own, slot);
  }

 private:
  static constexpr size_t kFirstSlots = 1024;  // a power of two, as ever after

  bool is(int32_t number, const Name& name) const {
    const std::string_view own = this->name(number);
    if (own.size() != name.size() || std::memcmp(own.data(), name.key.data(), name.key.size()) != 0)
      return false;
    if (!name.joined) return true;
    const char* rest = own.data() + name.key.size();
    return rest[0] == ':' && std::memcmp(rest + 1, name.value.data(), name.value.size()) == 0;
  }

  size_t slot_of(const Name& name, uint64_t own) const {
    const size_t mask = slots_.size() - 1;
    size_t slot = own & mask;
    while (slots_[slot] != kUnknown &&
           (hashes_[static_cast<size_t>(slots_[slot])] != own || !is(slots_[slot], name)))
      slot = (slot + 1) & mask;
    return slot;
  }

  int32_t add(const Name& name, uint64_t own, size_t slot) {
    const auto number = static_cast<int32_t>(size());
    letters_.insert(letters_.end(), name.key.begin(), name.key.end());
    if (name.joined) {
      letters_.push_back(':');
      letters_.insert(letters_.end(), name.value.begin(), name.value.end());
    }
    starts_.push_back(letters_.size());
    hashes_.push_back(own);
    slots_[slot] = number;
    if (2 * hashes_.size() > slots_.size()) grow();
    return number;
  }

  void grow() {
    slots_.assign(2 * slots_.size(), kUnknown);
    const size_t mask = slots_.size() - 1;
    for (size_t number = 0; number < hashes_.size(); ++number) {
      size_t slot = hashes_[number] & mask;
      while (slots_[slot] != kUnknown) slot = (slot + 1) & mask;
      slots_[slot] = static_cast<int32_t>(number);
    }
  }

  std::vector<char> letters_;
  std::vector<size_t> starts_{0};
  std::vector<uint64_t> hashes_;
  std::vector<int32_t> slots_;
};

}  // namespace crfx
