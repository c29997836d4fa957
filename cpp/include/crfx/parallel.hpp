// Threads, and the messages of workers (processes that train together); no other file has either.
// Work is cut into chunks that depend on the batch alone; results of chunks are combined in order,
// so that any number of threads gives the same bits.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <utility>
#include <vector>

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

// While this lives, numbers too small to matter become zero (or are kept): on some processors they
// cost a hundred cycles each. The destructor restores the setting, which belongs to the thread.
template <bool flush>
class Denormals {
 public:
  Denormals() : saved_(control()) { set_control(flush ? saved_ | kFlush : saved_ & ~kFlush); }
  ~Denormals() { set_control(saved_); }
  Denormals(const Denormals&) = delete;
  Denormals& operator=(const Denormals&) = delete;

 private:
#if defined(__SSE2__)
  static constexpr uint64_t kFlush = 0x8040;  // MXCSR: flush to zero, denormals are zero
  static uint64_t control() { return _mm_getcsr(); }
  static void set_control(uint64_t x) { _mm_setcsr(static_cast<unsigned>(x)); }
#elif defined(__aarch64__)
  static constexpr uint64_t kFlush = uint64_t(1) << 24;  // FPCR.FZ
  static uint64_t control() {
    uint64_t x;
    asm volatile("mrs %0, fpcr" : "=r"(x));
    return x;
  }
  static void set_control(uint64_t x) { asm volatile("msr fpcr, %0" : : "r"(x)); }
#else  // slower where they occur, but correct
  static constexpr uint64_t kFlush = 0;
  static uint64_t control() { return 0; }
  static void set_control(uint64_t) {}
#endif
  uint64_t saved_;
};
using FlushDenormals = Denormals<true>;
using KeepDenormals = Denormals<false>;

// Whether this process was forked from one that had started threads. They do not exist here, and
// OpenMP would wait for them forever; see parallel.cpp.
bool threads_are_lost();
void note_threads();

// Calls body(chunk, workspace) for every chunk, on up to `n_threads` threads (<= 0: all; a forked
// child of a process that used threads: one).
// The error of the lowest failing chunk is rethrown here; chunks above it may be skipped.
template <class Body>
void for_chunks(int64_t n_chunks, int n_threads, Body&& body) {
  if (n_threads <= 0) n_threads = available_threads();
  if (n_threads > n_chunks) n_threads = static_cast<int>(n_chunks);
  if (threads_are_lost()) n_threads = 1;
  if (n_threads <= 1) {
    Workspace workspace;
    FlushDenormals flush;
    for (int64_t chunk = 0; chunk < n_chunks; ++chunk) body(chunk, workspace);
    return;
  }
  note_threads();
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

// Processes that do the same work on rows of their own, and exchange sums. Every worker must take
// part in every sum, on the thread that began the work. All get the same bits, and so take the same
// decisions. By default there is one worker.
struct Workers {
  int rank = 0, size = 1;
  std::function<void(double*, int64_t)> add;  // replaces the numbers by their sums over workers

  bool several() const { return size > 1; }
  void sum(std::vector<double>& numbers) const {
    if (numbers.empty()) return;
    KeepDenormals keep;  // foreign code runs with its own setting
    add(numbers.data(), static_cast<int64_t>(numbers.size()));
  }
  // The numbers of every worker, by rank; workers may have different numbers of them.
  std::vector<std::vector<double>> gather(const std::vector<double>& own) const {
    std::vector<double> sizes(static_cast<size_t>(size), 0);
    sizes[static_cast<size_t>(rank)] = static_cast<double>(own.size());
    sum(sizes);
    std::vector<double> all;
    for (int k = 0; k < size; ++k) {
      if (k == rank)
        all.insert(all.end(), own.begin(), own.end());
      else
        all.resize(all.size() + static_cast<size_t>(sizes[static_cast<size_t>(k)]), 0);
    }
    sum(all);
    std::vector<std::vector<double>> parts;
    auto at = all.begin();
    for (const double n : sizes) {
      parts.emplace_back(at, at + static_cast<int64_t>(n));
      at += static_cast<int64_t>(n);
    }
    return parts;
  }
};

// Arrays that are summed over workers in one message, each in its place.
class Message {
 public:
  void add(double* numbers, size_t n) { parts_.emplace_back(numbers, n); }
  void sum(const Workers& workers) const {
    std::vector<double> all;
    for (const auto& [numbers, n] : parts_) all.insert(all.end(), numbers, numbers + n);
    workers.sum(all);
    auto at = all.begin();
    for (const auto& [numbers, n] : parts_) {
      std::copy_n(at, n, numbers);
      at += static_cast<int64_t>(n);
    }
  }

 private:
  std::vector<std::pair<double*, size_t>> parts_;
};

// Threads that go through the same phases together: every thread runs the same code, calls `each`
// with the same numbers of chunks, and keeps its own count of the phases. Between two calls of
// `each` nothing may throw.
class Team {
 public:
  // The shared state of the threads of a team.
  struct Shared {
    std::atomic<int64_t> next{0};  // chunk, counted over all phases
    std::atomic<int64_t> first_failed{INT64_MAX};
    std::exception_ptr error;
  };
  struct Stopped {};  // thrown on every thread after a phase that failed

  Team(Shared& shared, int rank, int size) : shared_(shared), rank_(rank), size_(size) {}

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Calls body(chunk) for every chunk, on any of the threads; returns once all are done.
  template <class Body>
  void each(int64_t n_chunks, Body&& body) {
    if (size_ == 1) {
      for (int64_t chunk = 0; chunk < n_chunks; ++chunk) body(chunk);
      return;
    }
    const int64_t end = begin_ + n_chunks;
    for (int64_t k; (k = shared_.next.fetch_add(1, std::memory_order_relaxed)) < end;) {
      if (k > shared_.first_failed.load(std::memory_order_relaxed)) continue;
      try {
        body(k - begin_);
      } catch (...) {
#pragma omp critical(crfx_first_error)
        if (k < shared_.first_failed.load(std::memory_order_relaxed)) {
          shared_.first_failed.store(k, std::memory_order_relaxed);
          shared_.error = std::current_exception();
        }
      }
    }
    begin_ = end + size_;  // every thread has asked once without getting a chunk
#pragma omp barrier
    // Others may have failed in the next phase already; this phase still completes.
    if (shared_.first_failed.load(std::memory_order_relaxed) < end) throw Stopped{};
  }

  // Calls body() on one of the threads.
  template <class Body>
  void once(Body&& body) {
    each(1, [&](int64_t) { body(); });
  }

 private:
  Shared& shared_;
  int rank_, size_;
  int64_t begin_ = 0;
};

// Calls body(team) on every thread of a team of at most `n_threads` (as in for_chunks), and throws
// the error of the lowest chunk of the first phase that failed.
template <class Body>
void with_team(int n_threads, Body&& body) {
  if (n_threads <= 0) n_threads = available_threads();
  if (threads_are_lost()) n_threads = 1;
  Team::Shared shared;
#ifdef _OPENMP
  if (n_threads > 1) {
    note_threads();
#pragma omp parallel num_threads(n_threads)
    {
      FlushDenormals flush;
      Team team(shared, omp_get_thread_num(), omp_get_num_threads());
      try {
        body(team);
      } catch (const Team::Stopped&) {
      } catch (...) {
        if (team.size() > 1) throw;  // the others would wait forever: ends the process
        shared.error = std::current_exception();
      }
    }
    if (shared.error) std::rethrow_exception(shared.error);
    return;
  }
#endif
  FlushDenormals flush;
  Team alone(shared, 0, 1);
  body(alone);
}

}  // namespace crfx
