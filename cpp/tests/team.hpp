// Threads as workers that sum numbers, and how much they sent.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "crfx/parallel.hpp"

namespace check {

class Team {
 public:
  explicit Team(int size) : size_(size), parts_(static_cast<size_t>(size)) {}
  int64_t n_messages = 0, n_numbers = 0;

  void run(const std::function<void(const crfx::Workers&)>& work) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size_; ++rank)
      threads.emplace_back([this, rank, &work] {
        work({rank, size_, [this, rank](double* own, int64_t n) { add(rank, own, n); }});
      });
    for (std::thread& thread : threads) thread.join();
  }

 private:
  void add(int rank, double* own, int64_t n) {
    std::unique_lock lock(mutex_);
    parts_[static_cast<size_t>(rank)].assign(own, own + n);
    if (++n_here_ == size_) {
      sums_.assign(static_cast<size_t>(n), 0);
      for (const std::vector<double>& part : parts_)
        for (size_t k = 0; k < sums_.size(); ++k) sums_[k] += part.at(k);
      ++n_messages;
      n_numbers += n;
      n_here_ = 0;
      ++turn_;
      all_here_.notify_all();
    } else {
      all_here_.wait(lock, [&, turn = turn_] { return turn_ != turn; });
    }
    std::copy_n(sums_.begin(), n, own);
  }

  const int size_;
  std::mutex mutex_;
  std::condition_variable all_here_;
  std::vector<std::vector<double>> parts_;
  std::vector<double> sums_;
  int n_here_ = 0;
  int64_t turn_ = 0;
};

}  // namespace check
