// Scratch memory of one thread: allocated in aligned pieces, released all at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "crfx/isa.hpp"

namespace crfx {

class Workspace {
 public:
  static constexpr size_t kAlign = 64;
  static constexpr size_t kSlack = 64;  // readable and writable past the end of every piece
  static constexpr size_t kFirstBlock = size_t(1) << 16;

  Workspace();  // out of line, like all that uses the library's templates: see isa.hpp
  ~Workspace();

  // Uninitialised room for `count` values; valid until the next reset().
  template <class T>
  CRFX_INLINE T* take(int64_t count) {
    return static_cast<T*>(take_bytes(static_cast<size_t>(count) * sizeof(T)));
  }
  // Releases everything. Memory is kept for the next instance, as one block.
  void reset();

 private:
  struct Free {
    void operator()(void* p) const;
  };
  struct Block {
    std::unique_ptr<void, Free> memory;
    size_t size;
  };
  void* take_bytes(size_t bytes);

  std::vector<Block> blocks_;
  size_t used_ = 0;  // of the last block
};

}  // namespace crfx
