#include "crfx/parallel.hpp"

#ifndef _WIN32
#include <pthread.h>
#endif

#include <mutex>

namespace crfx {
namespace {

std::atomic<bool> used{false}, lost{false};

}  // namespace

bool threads_are_lost() { return lost; }

void note_threads() {
#ifndef _WIN32  // which does not fork
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { lost = used.load(); }); });
#endif
  used = true;
}

}  // namespace crfx
