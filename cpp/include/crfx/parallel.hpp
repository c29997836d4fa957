// The one place for threads. Work is cut into chunks that depend on the batch alone; results of
// chunks are combined in order, so that any number of threads gives the same bits.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <utility>

#include "crfx/workspace.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

namespace crfx {

inline int available_threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

// Numbers too small to matter become zero while this lives: on some processors they cost a hundred
// cycles each. Undone on leaving, since the setting belongs to the calling thread.
class FlushDenormals {
 public:
#ifdef __SSE2__
  FlushDenormals() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040); }
  ~FlushDenormals() { _mm_setcsr(saved_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  unsigned saved_;
#endif
};

// Calls body(chunk, workspace) for every chunk, on up to `n_threads` threads (<= 0: all).
// The error of the lowest failing chunk is thrown again here; chunks above it may be skipped.
template <class Body>
void for_chunks(int64_t n_chunks, int n_threads, Body&& body) {
  if (n_threads <= 0) n_threads = available_threads();
  if (n_threads > n_chunks) n_threads = static_cast<int>(n_chunks);
  if (n_threads <= 1) {
    Workspace workspace;
    FlushDenormals flush;
    for (int64_t chunk = 0; chunk < n_chunks; ++chunk) body(chunk, workspace);
    return;
  }
  std::atomic<int64_t> first_failed{n_chunks};
  std::exception_ptr error;
#pragma omp parallel num_threads(n_threads)
  {
    Workspace workspace;
    FlushDenormals flush;
#pragma omp for schedule(dynamic, 1)
    for (int64_t chunk = 0; chunk < n_chunks; ++chunk) {
      if (chunk > first_failed.load(std::memory_order_relaxed)) continue;
      try {
        body(chunk, workspace);
      } catch (...) {
#pragma omp critical(crfx_first_error)
        if (chunk < first_failed.load(std::memory_order_relaxed)) {
          first_failed.store(chunk, std::memory_order_relaxed);
          error = std::current_exception();
        }
      }
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace crfx
