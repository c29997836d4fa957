#include "crfx/workspace.hpp"

#include <new>

namespace crfx {

void Workspace::Free::operator()(void* p) const { ::operator delete(p, std::align_val_t(kAlign)); }

Workspace::Workspace() = default;
Workspace::~Workspace() = default;

void* Workspace::take_bytes(size_t bytes) {
  bytes += kSlack;
#ifdef __SANITIZE_ADDRESS__
  used_ = blocks_.empty() ? 0 : blocks_.back().size;  // a block each, so that overruns are seen
  const size_t first_block = 0;
#else
  bytes = (bytes + kAlign - 1) / kAlign * kAlign;
  const size_t first_block = kFirstBlock;
#endif
  if (blocks_.empty() || blocks_.back().size - used_ < bytes) {
    const size_t size = bytes > first_block ? bytes : first_block;
    blocks_.push_back(
        {std::unique_ptr<void, Free>(::operator new(size, std::align_val_t(kAlign))), size});
    used_ = 0;
  }
  void* piece = static_cast<char*>(blocks_.back().memory.get()) + used_;
  used_ += bytes;
  return piece;
}

void Workspace::reset() {
  used_ = 0;
#ifdef __SANITIZE_ADDRESS__
  blocks_.clear();
#endif
  if (blocks_.size() < 2) return;
  size_t size = 0;
  for (const Block& block : blocks_) size += block.size;
  blocks_.clear();
  blocks_.push_back(
      {std::unique_ptr<void, Free>(::operator new(size, std::align_val_t(kAlign))), size});
}

}  // namespace crfx
