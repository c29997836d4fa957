#include "crfx/parallel.hpp"

#include <pthread.h>

#include <mutex>

namespace crfx {
namespace {

std::atomic<bool> used{false}, lost{false};

}  // namespace

bool threads_are_lost() { return lost; }

void note_threads() {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { lost = used.load(); }); });
  used = true;
}

}  // namespace crfx
