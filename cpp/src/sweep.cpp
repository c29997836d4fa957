#include "crfx/sweep.hpp"

#include <algorithm>
#include <vector>

#include "crfx/core.hpp"

namespace crfx {

int64_t SweepData::table_size() const {
  int64_t size = n_labels;
  for (int k = 0; k < order; ++k) size *= n_labels;
  return size;
}

namespace {

// One mini-batch after the other; buffers are kept between them.
class Sweeper {
 public:
  Sweeper(const SweepData& data, const SweepSteps& steps, SweepParameters& parameters)
      : data_(data),
        steps_(steps),
        at_(parameters),
        edge_(data.n_node()),
        start_(edge_ + (data.has_edge ? data.n_types * data.table_size() : 0)),
        end_(start_ + (data.has_start ? data.n_labels : 0)) {}

  void run() {
    for (int64_t k = 0; k < steps_.n_instances; k += steps_.batch_size) {
      const int64_t last = std::min(steps_.n_instances, k + steps_.batch_size);
      instances_.assign(steps_.order + k, steps_.order + last);
      step(steps_.first + k / steps_.batch_size);
    }
  }

 private:
  void step(int64_t number) {
    read();
    const double size = steps_.period > 0
                            ? steps_.step / (1 + static_cast<double>(number) / steps_.period)
                            : steps_.step;
    // Implicit: 1 / (1 + x), near 1 - x, stays above 0 for any step.
    const double shrinkage =
        1 / (1 + steps_.penalty * size * static_cast<double>(instances_.size()));
    score();
    find_slopes();
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
    int64_t own = 0;
    for (const int64_t i : instances_)
      for (int64_t row = data_.offsets[i]; row < data_.offsets[i + 1]; ++row) body(row, own++);
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
    catch_up(edge_, at_.size);
  }

  // Scores, in single precision as elsewhere in training.
  void score() {
    const int K = data_.n_labels;
    offsets_.assign(1, 0);
    for (const int64_t i : instances_)
      offsets_.push_back(offsets_.back() + data_.offsets[i + 1] - data_.offsets[i]);
    node_.assign(static_cast<size_t>(offsets_.back() * K), 0.0f);
    labels_.resize(static_cast<size_t>(offsets_.back()));
    types_.resize(data_.edge_types ? labels_.size() : 0);
    const float margin = steps_.loss == SweepLoss::perceptron ? steps_.margin : 0.0f;
    for_rows([&](int64_t row, int64_t own) {
      float* scores = node_.data() + own * K;
      for_features(row, [&](int64_t begin, int64_t end, float value) {
        for (int64_t k = begin; k < end; ++k)
          scores[output(k, begin)] += value * static_cast<float>(at_.values[k]);
      });
      labels_[static_cast<size_t>(own)] = data_.labels[row];
      if (data_.edge_types) types_[static_cast<size_t>(own)] = data_.edge_types[row];
      if (margin > 0)
        for (int c = 0; c < K; ++c)
          if (c != data_.labels[row]) scores[c] += margin;
    });
    edge_scores_.assign(static_cast<size_t>(data_.n_types * data_.table_size()), 0.0f);
    if (data_.has_edge) std::copy(at_.values + edge_, at_.values + start_, edge_scores_.begin());
    ends_.assign(at_.values + start_, at_.values + at_.size);
  }

  Problem<float> problem() const {
    Problem<float> p;
    p.node = node_.data();
    p.edge = edge_scores_.data();
    p.start = data_.has_start ? ends_.data() : nullptr;
    p.end = data_.has_end ? ends_.data() + (end_ - start_) : nullptr;
    p.offsets = offsets_.data();
    p.edge_types = data_.edge_types ? types_.data() : nullptr;
    p.n_instances = static_cast<int64_t>(instances_.size());
    p.n_tables = data_.n_types;
    p.n_labels = data_.n_labels;
    p.order = data_.order;
    p.sharing = data_.edge_types ? Sharing::typed : Sharing::shared;
    return p;
  }

  // Gradients in the scores: node_slopes_, edge_slopes_, end_slopes_.
  void find_slopes() {
    edge_slopes_.assign(data_.has_edge ? edge_scores_.size() : 0, 0.0);
    end_slopes_.assign(ends_.size(), 0.0);
    if (steps_.loss == SweepLoss::likelihood)
      expect();
    else
      decode();
    count(labels_, -1);
  }

  // What the model expects: marginals.
  void expect() {
    const auto n = instances_.size();
    log_z_.resize(n);
    node_slopes_.assign(node_.size(), 0.0f);
    weights_.resize(n);
    for (size_t k = 0; k < n; ++k) weights_[k] = weight(k);
    SumOutputs<float> out;
    out.log_z = log_z_.data();
    out.node = node_slopes_.data();
    out.weight = weights_.data();
    out.edge_sum = data_.has_edge ? edge_slopes_.data() : nullptr;
    out.edge_output = data_.has_edge ? EdgeOutput::sum : EdgeOutput::none;
    sum_product(problem(), out, 1);
    for_instances([&](size_t k, int64_t begin, int64_t end) {
      float* slopes = node_slopes_.data();
      const int K = data_.n_labels;
      for (int c = 0; c < K && end > begin; ++c) {
        if (data_.has_start)
          end_slopes_[static_cast<size_t>(c)] += weight(k) * slopes[begin * K + c];
        if (data_.has_end)
          end_slopes_[static_cast<size_t>(end_ - start_ + c)] +=
              weight(k) * slopes[(end - 1) * K + c];
      }
      for (int64_t e = begin * K; e < end * K; ++e) slopes[e] *= static_cast<float>(weight(k));
    });
  }

  // What the model holds best.
  void decode() {
    node_slopes_.assign(node_.size(), 0.0f);
    best_.resize(labels_.size());
    log_z_.resize(instances_.size());
    max_product(problem(), best_.data(), log_z_.data(), 1);
    count(best_, 1);
  }

  // Adds `sign` wherever a labelling uses a score.
  void count(const std::vector<int32_t>& labels, double sign) {
    const int K = data_.n_labels;
    for_instances([&](size_t k, int64_t begin, int64_t end) {
      const double own = sign * weight(k);
      for (int64_t row = begin; row < end; ++row) {
        const auto label = labels[static_cast<size_t>(row)];
        node_slopes_[static_cast<size_t>(row * K + label)] += static_cast<float>(own);
        if (!data_.has_edge || row - begin < data_.order) continue;
        int64_t cell = data_.edge_types ? types_[static_cast<size_t>(row)] : 0;
        for (int64_t before = row - data_.order; before <= row; ++before)
          cell = cell * K + labels[static_cast<size_t>(before)];
        edge_slopes_[static_cast<size_t>(cell)] += own;
      }
      if (end == begin) return;
      if (data_.has_start)
        end_slopes_[static_cast<size_t>(labels[static_cast<size_t>(begin)])] += own;
      if (data_.has_end)
        end_slopes_[static_cast<size_t>(end_ - start_ + labels[static_cast<size_t>(end - 1)])] +=
            own;
    });
  }

  // Calls body(place in the mini-batch, first row, past the last).
  template <class Body>
  void for_instances(Body&& body) const {
    for (size_t k = 0; k < instances_.size(); ++k) body(k, offsets_[k], offsets_[k + 1]);
  }

  double weight(size_t k) const { return data_.weights ? data_.weights[instances_[k]] : 1.0; }

  void move(double factor) {
    const int K = data_.n_labels;
    for_rows([&](int64_t row, int64_t own) {
      const float* slopes = node_slopes_.data() + own * K;
      if (std::all_of(slopes, slopes + K, [](float slope) { return slope == 0; })) return;
      for_features(row, [&](int64_t begin, int64_t end, float value) {
        for (int64_t k = begin; k < end; ++k)
          add(k, factor * static_cast<double>(value * slopes[output(k, begin)]));
      });
    });
    for (size_t k = 0; k < edge_slopes_.size(); ++k)
      if (edge_slopes_[k] != 0) add(edge_ + static_cast<int64_t>(k), factor * edge_slopes_[k]);
    for (size_t k = 0; k < end_slopes_.size(); ++k)
      if (end_slopes_[k] != 0) add(start_ + static_cast<int64_t>(k), factor * end_slopes_[k]);
  }

  const SweepData& data_;
  const SweepSteps& steps_;
  SweepParameters& at_;
  int64_t edge_, start_, end_;  // where these parameters begin
  std::vector<int64_t> instances_, offsets_;
  std::vector<float> node_, node_slopes_, edge_scores_, ends_;
  std::vector<double> edge_slopes_, end_slopes_, log_z_, weights_;
  std::vector<int32_t> labels_, best_, types_;
};

}  // namespace

void sweep(const SweepData& data, const SweepSteps& steps, SweepParameters& parameters) {
  Sweeper(data, steps, parameters).run();
}

}  // namespace crfx
