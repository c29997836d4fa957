#include "crfx/sweep.hpp"

#include <algorithm>

namespace crfx {
namespace {

// One mini-batch after the other.
class Sweeper {
 public:
  Sweeper(const SweepData& data, const SweepSteps& steps, SweepParameters& parameters)
      : data_(data), steps_(steps), at_(parameters), tables_(data.n_node()), chains_(data.chains) {}

  void run() {
    for (int64_t k = 0; k < steps_.n_instances; k += steps_.batch_size) {
      const int64_t last = std::min(steps_.n_instances, k + steps_.batch_size);
      chains_.begin(steps_.order + k, last - k);
      step(steps_.first + k / steps_.batch_size);
    }
  }

 private:
  void step(int64_t number) {
    read();
    const double size = steps_.size(number);
    const double shrinkage = steps_.shrinkage(size, chains_.n_instances());
    score();
    chains_.find(steps_.loss, steps_.margin);
    move(-size / shrinkage);
    end_step(shrinkage);
  }

  // Parameters ---------------------------------------------------------------------------------

  void catch_up(int64_t k) {
    if (at_.product_then[k] == at_.product && at_.steps_then[k] == at_.steps) return;
    const double own = at_.values[k], then = at_.product_then[k];
    at_.sum[k] += own * ((at_.steps - at_.steps_then[k]) / then);
    at_.values[k] = own * (at_.product / then);
    at_.product_then[k] = at_.product;
    at_.steps_then[k] = at_.steps;
  }

  void catch_up(int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) catch_up(k);
  }

  void end_step(double shrinkage) {
    at_.product *= shrinkage;
    if (steps_.counts) {
      at_.steps += at_.product;
      ++at_.n_counted;
    }
    if (at_.product >= steps_.smallest_shrinkage) return;
    catch_up(0, at_.size);
    at_.product = 1;
    at_.steps = 0;
    std::fill(at_.product_then, at_.product_then + at_.size, 1.0);
    std::fill(at_.steps_then, at_.steps_then + at_.size, 0.0);
  }

  void add(int64_t k, double change) {
    if (!data_.free || data_.free[k]) at_.values[k] += change;
  }

  // Rows of the mini-batch ----------------------------------------------------------------------

  // Calls body(row of the data, row of the mini-batch) for all rows.
  template <class Body>
  void for_rows(Body&& body) const {
    chains_.for_instances([&](int64_t begin, int64_t end, int64_t own) {
      for (int64_t row = begin; row < end; ++row) body(row, own + row - begin);
    });
  }

  // Calls body(feature's first weight, past its last, value) for the features of a row.
  template <class Body>
  void for_features(int64_t row, Body&& body) const {
    for (int64_t e = data_.X.starts[row]; e < data_.X.starts[row + 1]; ++e) {
      const int32_t feature = data_.X.indices[e];
      body(data_.pattern.starts[feature], data_.pattern.starts[feature + 1],
           data_.X.values ? data_.X.values[e] : 1.0f);
    }
  }

  int64_t output(int64_t weight, int64_t first) const {
    return data_.pattern.outputs ? data_.pattern.outputs[weight] : weight - first;
  }

  void read() {
    for_rows([&](int64_t row, int64_t) {
      for_features(row, [&](int64_t begin, int64_t end, float) { catch_up(begin, end); });
    });
    catch_up(tables_, at_.size);
  }

  // Scores, in single precision as elsewhere in training.
  void score() {
    for_rows([&](int64_t row, int64_t own) {
      float* scores = chains_.node() + own * data_.chains.n_labels;
      for_features(row, [&](int64_t begin, int64_t end, float value) {
        for (int64_t k = begin; k < end; ++k)
          scores[output(k, begin)] += value * static_cast<float>(at_.values[k]);
      });
    });
    chains_.set_tables(at_.values + tables_);
  }

  void move(double factor) {
    for_rows([&](int64_t row, int64_t own) {
      if (!chains_.moves(own)) return;
      const float* slopes = chains_.node_slopes(own);
      for_features(row, [&](int64_t begin, int64_t end, float value) {
        for (int64_t k = begin; k < end; ++k)
          add(k, factor * static_cast<double>(value * slopes[output(k, begin)]));
      });
    });
    chains_.for_table_slopes([&](int64_t k, double slope) { add(tables_ + k, factor * slope); });
  }

  const SweepData& data_;
  const SweepSteps& steps_;
  SweepParameters& at_;
  int64_t tables_;  // where their parameters begin
  ChainSlopes chains_;
};

}  // namespace

void sweep(const SweepData& data, const SweepSteps& steps, SweepParameters& parameters) {
  Sweeper(data, steps, parameters).run();
}

}  // namespace crfx
