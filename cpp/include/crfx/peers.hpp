// Others that do the same work on rows of their own, and what is told to them: sums.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "crfx/parallel.hpp"

namespace crfx {

// Every one must come to every sum, on the thread that began the work; all get the same bits, and
// so take the same decisions. By default there are no others.
struct Peers {
  int rank = 0, size = 1;
  std::function<void(double*, int64_t)> add;  // makes numbers the sums over all

  bool any() const { return size > 1; }
  void sum(std::vector<double>& numbers) const {
    if (numbers.empty()) return;
    KeepDenormals keep;  // what is called is not ours
    add(numbers.data(), static_cast<int64_t>(numbers.size()));
  }
  // The numbers of each, which may be more or fewer.
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
    std::vector<std::vector<double>> found;
    auto at = all.begin();
    for (const double n : sizes) {
      found.emplace_back(at, at + static_cast<int64_t>(n));
      at += static_cast<int64_t>(n);
    }
    return found;
  }
};

// Numbers that lie here and there, summed at once where they are.
class Message {
 public:
  void add(double* numbers, size_t n) { parts_.emplace_back(numbers, n); }
  void sum(const Peers& peers) const {
    std::vector<double> all;
    for (const auto& [numbers, n] : parts_) all.insert(all.end(), numbers, numbers + n);
    peers.sum(all);
    auto at = all.begin();
    for (const auto& [numbers, n] : parts_) {
      std::copy_n(at, n, numbers);
      at += static_cast<int64_t>(n);
    }
  }

 private:
  std::vector<std::pair<double*, size_t>> parts_;
};

}  // namespace crfx
