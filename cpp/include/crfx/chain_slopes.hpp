// A few chains at a time: from node scores and tables to the gradient of the loss in them. What
// the trainers that sweep over instances share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "crfx/views.hpp"

namespace crfx {

enum class SweepLoss { likelihood, perceptron };

// Chains with known labels, and the tables that score their edges and ends; all views.
struct ChainData {
  const int64_t* offsets = nullptr;
  const int32_t* edge_types = nullptr;  // rows; null: one table
  const int32_t* labels = nullptr;      // rows
  const double* weights = nullptr;      // instances; null: 1
  int64_t n_types = 1;
  int n_labels = 0;
  int order = 1;
  bool has_edge = false, has_start = false, has_end = false;
  // Constraints, 0 or -inf, null where there are none: rows x labels, one table for all edges,
  // and labels that may be first and last. They are no parameters.
  const float *node_mask = nullptr, *edge_mask = nullptr;
  const float *start_mask = nullptr, *end_mask = nullptr;

  int64_t table_size() const;
  // Parameters of the tables lie one after the other: edges, start, end.
  int64_t n_edge() const { return has_edge ? n_types * table_size() : 0; }
  int64_t n_start() const { return has_start ? n_labels : 0; }
  int64_t n_end() const { return has_end ? n_labels : 0; }
};

// Step t (first, first + 1, ...) has size step / (1 + t / period); period 0: step throughout.
struct SweepSteps {
  const int64_t* order;  // instances, as they come
  int64_t n_instances;
  int64_t batch_size;
  int64_t first;
  double step, period;
  double penalty;             // 2 l2 per instance
  double smallest_shrinkage;  // below it the count of shrinkages begins anew
  bool counts;                // whether these steps are averaged over
  SweepLoss loss;
  float margin;  // of the perceptron

  double size(int64_t number) const {
    return period > 0 ? step / (1 + static_cast<double>(number) / period) : step;
  }
  // Of all parameters in a step. Implicit: 1 / (1 + x), near 1 - x, stays above 0 for any step.
  double shrinkage(double size, std::size_t n_instances) const {
    return 1 / (1 + penalty * size * static_cast<double>(n_instances));
  }
};

// Buffers are kept between mini-batches.
class ChainSlopes {
 public:
  explicit ChainSlopes(const ChainData& data) : data_(data) {}

  // Takes the next instances; node scores are 0 until they are filled in.
  void begin(const int64_t* instances, int64_t n_instances);
  std::size_t n_instances() const { return instances_.size(); }
  int64_t n_rows() const { return offsets_.back(); }
  float* node() { return node_.data(); }

  // Calls body(first row of the data, past the last, first row of the mini-batch) per instance.
  template <class Body>
  void for_instances(Body&& body) const {
    for (std::size_t k = 0; k < instances_.size(); ++k)
      body(data_.offsets[instances_[k]], data_.offsets[instances_[k] + 1], offsets_[k]);
  }

  // The tables, one after the other as parameters.
  template <class T>
  void set_tables(const T* values) {
    edge_scores_.assign(static_cast<std::size_t>(data_.n_types * data_.table_size()), 0.0f);
    for (int64_t e = 0; e < data_.n_edge(); ++e)
      edge_scores_[static_cast<std::size_t>(e)] = static_cast<float>(values[e]);
    const int64_t size = data_.table_size();
    for (int64_t e = 0; data_.edge_mask && e < data_.n_types * size; ++e)
      edge_scores_[static_cast<std::size_t>(e)] += data_.edge_mask[e % size];
    values += data_.n_edge();
    set_end(data_.has_start ? values : nullptr, data_.start_mask, start_);
    set_end(data_.has_end ? values + data_.n_start() : nullptr, data_.end_mask, end_);
  }

  // The slopes of the loss at these scores.
  void find(SweepLoss loss, float margin);

  const float* node_slopes(int64_t row) const { return node_slopes_.data() + row * data_.n_labels; }
  bool moves(int64_t row) const;  // whether a slope of the row is not 0
  // Calls body(number of a table's parameter, slope) where that is not 0.
  template <class Body>
  void for_table_slopes(Body&& body) const {
    for (std::size_t k = 0; k < edge_slopes_.size(); ++k)
      if (edge_slopes_[k] != 0) body(static_cast<int64_t>(k), edge_slopes_[k]);
    for (std::size_t k = 0; k < end_slopes_.size(); ++k)
      if (end_slopes_[k] != 0) body(static_cast<int64_t>(edge_slopes_.size() + k), end_slopes_[k]);
  }

 private:
  // The scores of first or last labels; empty where there are none.
  template <class T>
  void set_end(const T* values, const float* mask, std::vector<float>& found) const {
    found.assign(values || mask ? static_cast<std::size_t>(data_.n_labels) : 0, 0.0f);
    for (std::size_t c = 0; c < found.size(); ++c)
      found[c] = (values ? static_cast<float>(values[c]) : 0.0f) + (mask ? mask[c] : 0.0f);
  }
  Problem<float> problem() const;
  void add_node_mask();
  void add_margin(float margin);
  void expect();
  void decode();
  void count(const std::vector<int32_t>& labels, double sign);
  int64_t cell(const std::vector<int32_t>& labels, int64_t row) const;
  double weight(std::size_t k) const { return data_.weights ? data_.weights[instances_[k]] : 1.0; }

  const ChainData& data_;
  std::vector<int64_t> instances_, offsets_;
  std::vector<float> node_, node_slopes_, edge_scores_, start_, end_;
  std::vector<double> edge_slopes_, end_slopes_, totals_, weights_;
  std::vector<int32_t> labels_, best_, types_;
};

}  // namespace crfx
