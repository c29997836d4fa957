#include <algorithm>
#include <bit>
#include <limits>

#include "crfx/bins.hpp"
#include "crfx/errors.hpp"
#include "crfx/parallel.hpp"

namespace crfx {
namespace {

constexpr double kValuesAtOnce = 1 << 26;  // of all workers, sorted columns of which are held
constexpr uint64_t kPieces = 16;           // of an interval that is looked into

// Keys are whole numbers in the order of the values.
uint32_t key_of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value == 0 ? 0.0f : value);  // -0 is 0
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
float value_of(uint64_t key) {
  const auto bits = static_cast<uint32_t>(key);
  return std::bit_cast<float>(bits >> 31 ? bits ^ 0x80000000u : ~bits);
}

struct Run {
  float value;
  double n_rows;
};

// The values of a column in order, equal ones together; none if there are too many to be told.
std::vector<Run> runs_of(const std::vector<uint32_t>& keys) {
  std::vector<Run> runs;
  for (size_t k = 0; k < keys.size(); ++k) {
    if (k && keys[k] == keys[k - 1]) {
      ++runs.back().n_rows;
      continue;
    }
    if (runs.size() == kMostBins) return {};
    runs.push_back({value_of(keys[k]), 1});
  }
  return runs;
}

// A column of which some worker has too many values: how many rows of all lie below some keys.
class Narrowing {
 public:
  Narrowing(const std::vector<uint32_t>& own, double n_rows)
      : own_(&own),
        keys_{key_of(-kInfinite), uint64_t(key_of(kInfinite)) + 1},
        below_{0, n_rows},
        n_rows_(n_rows) {}

  // Cuts, if enough is known; else intervals are noted into which to look. Where cuts come after
  // these is guessed, so that most are looked into at once.
  bool find(std::vector<float>& cuts) {
    Cutting cutting(n_rows_, false);
    asked_.clear();
    for (size_t k = 0; k + 1 < keys_.size(); ++k) {
      const double n = below_[k + 1] - below_[k];
      if (n == 0) continue;
      if (keys_[k + 1] == keys_[k] + 1) {
        cutting.add(value_of(keys_[k]), n);
      } else if (!cutting.asks(n)) {
        cutting.pass(n);
      } else {
        cutting.guess(n);
        ask_within(keys_[k], keys_[k + 1]);
      }
    }
    if (!asked_.empty()) return false;
    cuts = std::move(cutting.cuts);
    return true;
  }
  // Own rows below the keys that are asked for; then those of all.
  void tell(Message& message) {
    counts_.clear();
    for (const uint64_t key : asked_)
      counts_.push_back(
          static_cast<double>(std::lower_bound(own_->begin(), own_->end(), key) - own_->begin()));
    message.add(counts_.data(), counts_.size());
  }
  void learn() {
    std::vector<uint64_t> keys;
    std::vector<double> below;
    for (size_t k = 0, a = 0; k < keys_.size() || a < asked_.size();) {
      const bool known = a == asked_.size() || (k < keys_.size() && keys_[k] < asked_[a]);
      keys.push_back(known ? keys_[k] : asked_[a]);
      below.push_back(known ? below_[k++] : counts_[a++]);
    }
    keys_ = std::move(keys);
    below_ = std::move(below);
  }

 private:
  static constexpr float kInfinite = std::numeric_limits<float>::infinity();

  void ask_within(uint64_t begin, uint64_t end) {
    const uint64_t step = (end - begin + kPieces - 1) / kPieces;
    for (uint64_t key = begin + step; key < end; key += step) asked_.push_back(key);
  }

  const std::vector<uint32_t>* own_;
  std::vector<uint64_t> keys_, asked_;
  std::vector<double> below_, counts_;
  double n_rows_;
};

// The cuts of columns [begin, end), which are held sorted.
class Block {
 public:
  Block(const SharedColumns& columns, int64_t begin, int64_t end, const Workers& workers,
        int n_threads)
      : workers_(workers), own_(static_cast<size_t>(end - begin)) {
    for_chunks(end - begin, n_threads, [&](int64_t k, Workspace&) {
      std::vector<uint32_t>& keys = own_[static_cast<size_t>(k)];
      for (const float value : columns.read(begin + k)) keys.push_back(key_of(value));
      std::sort(keys.begin(), keys.end());
    });
  }

  void find(SharedCuts* found) {
    merge(found);
    while (!open_.empty()) {
      Message message;
      for (auto& [_, column] : open_) column.tell(message);
      message.sum(workers_);
      for (auto& [_, column] : open_) column.learn();
      leave_found(found);
    }
  }

 private:
  // Columns of few values are told as they are: their rows, then values and how many have each.
  std::vector<double> told() const {
    std::vector<double> numbers;
    for (const std::vector<uint32_t>& keys : own_) {
      const std::vector<Run> runs = runs_of(keys);
      numbers.push_back(static_cast<double>(keys.size()));
      numbers.push_back(static_cast<double>(runs.size()));
      for (const Run& run : runs) {
        numbers.push_back(static_cast<double>(run.value));
        numbers.push_back(run.n_rows);
      }
    }
    return numbers;
  }
  void merge(SharedCuts* found) {
    const std::vector<std::vector<double>> all = workers_.gather(told());
    std::vector<size_t> at(all.size(), 0);
    for (size_t k = 0; k < own_.size(); ++k) {
      std::vector<Run> runs;
      double n_rows = 0;
      bool many = false;
      for (size_t worker = 0; worker < all.size(); ++worker) {
        if (at[worker] == all[worker].size()) throw InputError("another worker has fewer columns");
        const double* numbers = all[worker].data() + at[worker];
        const auto n_runs = static_cast<size_t>(numbers[1]);
        n_rows += numbers[0];
        many |= numbers[0] > 0 && n_runs == 0;
        for (size_t r = 0; r < n_runs; ++r)
          runs.push_back({static_cast<float>(numbers[2 + 2 * r]), numbers[3 + 2 * r]});
        at[worker] += 2 + 2 * n_runs;
      }
      if (many)
        open_.emplace_back(k, Narrowing(own_[k], n_rows));
      else
        found[k] = cuts_of(runs, n_rows);
    }
    leave_found(found);
  }
  static SharedCuts cuts_of(std::vector<Run>& runs, double n_rows) {
    std::sort(runs.begin(), runs.end(),
              [](const Run& a, const Run& b) { return a.value < b.value; });
    size_t n = 0;
    for (const Run& run : runs) {
      if (n && runs[n - 1].value == run.value)
        runs[n - 1].n_rows += run.n_rows;
      else
        runs[n++] = run;
    }
    runs.resize(n);
    Cutting cutting(n_rows, n <= kMostBins);
    for (const Run& run : runs) cutting.add(run.value, run.n_rows);
    return {std::move(cutting.cuts), n ? runs.back().value : -1};
  }
  void leave_found(SharedCuts* found) {
    std::erase_if(open_, [&](auto& each) { return each.second.find(found[each.first].cuts); });
  }

  const Workers& workers_;
  std::vector<std::vector<uint32_t>> own_;  // keys by column, sorted
  std::vector<std::pair<size_t, Narrowing>> open_;
};

}  // namespace

std::vector<SharedCuts> find_shared_cuts(const SharedColumns& columns, const Workers& workers,
                                         int n_threads) {
  std::vector<double> sizes = columns.sizes;
  workers.sum(sizes);
  std::vector<SharedCuts> found(sizes.size());
  for (size_t begin = 0, end = 0; begin < sizes.size(); begin = end) {
    double held = sizes[end++];
    while (end < sizes.size() && held + sizes[end] <= kValuesAtOnce) held += sizes[end++];
    Block block(columns, static_cast<int64_t>(begin), static_cast<int64_t>(end), workers,
                n_threads);
    block.find(found.data() + begin);
  }
  return found;
}

}  // namespace crfx
