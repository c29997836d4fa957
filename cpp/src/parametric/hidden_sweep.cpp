#include "crfx/hidden_sweep.hpp"

#include <algorithm>
#include <vector>

#include "crfx/parallel.hpp"
#include "parametric/hidden_tables.hpp"
#include "simd/kernels.hpp"

namespace crfx {
namespace {

// Tosses coins, four at a time (splitmix64).
class Chance {
 public:
  Chance(double share, uint64_t seed, int64_t number)
      : below_(std::max<uint64_t>(1, static_cast<uint64_t>(share * 65536 + 0.5))),
        state_(seed + static_cast<uint64_t>(number) * 0xd1342543de82ef95u) {}

  bool operator()() {
    if (left_ == 0) {
      state_ += 0x9e3779b97f4a7c15u;
      bits_ = (state_ ^ (state_ >> 30)) * 0xbf58476d1ce4e5b9u;
      bits_ = (bits_ ^ (bits_ >> 27)) * 0x94d049bb133111ebu;
      bits_ ^= bits_ >> 31;
      left_ = 4;
    }
    const bool found = (bits_ & 0xffff) < below_;
    bits_ >>= 16;
    --left_;
    return found;
  }

 private:
  uint64_t below_, state_, bits_ = 0;
  int left_ = 0;
};

// Parameters that lag behind until they are read.
class Lagging {
 public:
  Lagging(const HiddenSweepData& data, HiddenParameters& parameters)
      : data_(data), at_(parameters), H_(data.n_hidden), K_(data.chains.n_labels) {}

  // Of a feature, or of all that belongs to none.
  void catch_up(int64_t feature) {
    double &product = at_.product_then[feature], &steps = at_.steps_then[feature];
    if (product == at_.product && steps == at_.steps) return;
    const double passed = (at_.steps - steps) / product, factor = at_.product / product;
    if (feature < data_.n_features) {
      catch_up(feature * H_, (feature + 1) * H_, passed, factor);
      if (data_.has_skip)
        catch_up(data_.skip() + feature * K_, data_.skip() + (feature + 1) * K_, passed, factor);
    } else {
      catch_up(data_.bias(), data_.skip(), passed, factor);
      catch_up(data_.tables(), data_.size(), passed, factor);
    }
    product = at_.product;
    steps = at_.steps;
  }

  void catch_up_all() {
    for (int64_t feature = 0; feature <= data_.n_features; ++feature) catch_up(feature);
  }

 private:
  void catch_up(int64_t begin, int64_t end, double passed, double factor) {
    float* own = at_.values;
    if (passed != 0)
      for (int64_t k = begin; k < end; ++k) at_.sum[k] += static_cast<double>(own[k]) * passed;
    if (factor != 1)
      for (int64_t k = begin; k < end; ++k) own[k] *= static_cast<float>(factor);
  }

  const HiddenSweepData& data_;
  HiddenParameters& at_;
  const int64_t H_, K_;
};

struct Entry {
  int32_t feature;
  float value;
};

// One mini-batch after the other; buffers are kept between them.
class HiddenSweeper {
 public:
  HiddenSweeper(const HiddenSweepData& data, const SweepSteps& steps, const HiddenRates& rates,
                const Dropout& dropout, HiddenParameters& parameters)
      : data_(data),
        steps_(steps),
        rates_(rates),
        dropout_(dropout),
        at_(parameters),
        H_(data.n_hidden),
        K_(data.chains.n_labels),
        stride_(OwnedHiddenTables<float>::padded(data.n_hidden)),
        lagging_(data, parameters),
        chains_(data.chains) {}

  void run() {
    FlushDenormals flush;
    for (int64_t k = 0; k < steps_.n_instances; k += steps_.batch_size) {
      const int64_t last = std::min(steps_.n_instances, k + steps_.batch_size);
      chains_.begin(steps_.order + k, last - k);
      step(steps_.first + k / steps_.batch_size, steps_.counts && last == steps_.n_instances);
    }
  }

 private:
  void step(int64_t number, bool counts) {
    work_.reset();
    gather_rows(number);
    read();
    score();
    chains_.find(steps_.loss, steps_.margin);
    const double size = steps_.size(number);
    const double shrinkage = steps_.shrinkage(size, chains_.n_instances());
    move(-size / shrinkage);
    end_step(shrinkage, counts);
  }

  // Parameters ---------------------------------------------------------------------------------

  void end_step(double shrinkage, bool counts) {
    at_.product *= shrinkage;
    if (counts) {
      at_.steps += at_.product;
      ++at_.n_counted;
    }
    if (at_.product >= steps_.smallest_shrinkage) return;
    lagging_.catch_up_all();
    at_.product = 1;
    at_.steps = 0;
    std::fill(at_.product_then, at_.product_then + data_.n_features + 1, 1.0);
    std::fill(at_.steps_then, at_.steps_then + data_.n_features + 1, 0.0);
  }

  void add(int64_t k, double change) { at_.values[k] += static_cast<float>(change); }

  // Rows of the mini-batch ----------------------------------------------------------------------

  // Features of the rows, one after the other, without those that are dropped.
  void gather_rows(int64_t number) {
    const int64_t D = data_.n_features, n = chains_.n_rows();
    dense_ = nullptr;
    if (!data_.dense) return gather_sparse(number);
    if (chains_.n_instances() == 1 && dropout_.share == 0) {
      chains_.for_instances(
          [&](int64_t begin, int64_t, int64_t) { dense_ = data_.dense + begin * D; });
      return;
    }
    float* found = work_.take<float>(n * D);
    chains_.for_instances([&](int64_t begin, int64_t end, int64_t own) {
      std::copy(data_.dense + begin * D, data_.dense + end * D, found + own * D);
    });
    if (dropout_.share > 0) {
      Chance kept(1 - dropout_.share, dropout_.seed, number);
      const auto larger = static_cast<float>(1 / (1 - dropout_.share));
      for (int64_t e = 0; e < n * D; ++e) found[e] *= kept() ? larger : 0.0f;
    }
    dense_ = found;
  }

  void gather_sparse(int64_t number) {
    starts_.assign(1, 0);
    entries_.clear();
    Chance kept(1 - dropout_.share, dropout_.seed, number);
    const auto larger = static_cast<float>(1 / (1 - dropout_.share));
    const Sparse<float>& X = data_.sparse;
    chains_.for_instances([&](int64_t begin, int64_t end, int64_t) {
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t e = X.starts[row]; e < X.starts[row + 1]; ++e)
          if (dropout_.share == 0 || kept())
            entries_.push_back({X.indices[e], larger * (X.values ? X.values[e] : 1.0f)});
        starts_.push_back(entries_.size());
      }
    });
  }

  // Calls body(feature, value) for the features of a row that is sparse.
  template <class Body>
  void for_features(int64_t row, Body&& body) const {
    const auto at = static_cast<size_t>(row);
    for (size_t e = starts_[at]; e < starts_[at + 1]; ++e)
      body(entries_[e].feature, entries_[e].value);
  }

  void read() {
    if (data_.dense) return lagging_.catch_up_all();
    for (const Entry& entry : entries_) lagging_.catch_up(entry.feature);
    lagging_.catch_up(data_.n_features);
  }

  // out (rows x n, `stride` apart) = X W, with W at a place among the parameters.
  void multiply(int64_t place, int64_t n, float* out, int64_t stride) {
    const int64_t n_rows = chains_.n_rows();
    const float* W = at_.values + place;
    if (data_.dense)
      return kernels<float>().multiply(dense_, data_.n_features, W, n, out, stride, n_rows, work_);
    std::fill(out, out + n_rows * stride, 0.0f);
    for (int64_t row = 0; row < n_rows; ++row, out += stride)
      for_features(row, [&](int32_t feature, float value) {
        const float* own = W + feature * n;
        for (int64_t k = 0; k < n; ++k) out[k] += value * own[k];
      });
  }

  // W += factor X^T out, over the rows that move.
  void add_outer(int64_t place, int64_t n, const float* out, int64_t stride, double factor) {
    const auto scale = static_cast<float>(factor);
    float* W = at_.values + place;
    if (data_.dense)
      return kernels<float>().add_outer(moved_dense(), data_.n_features, out, stride, scale, W, n,
                                        static_cast<int64_t>(moved_.size()));
    for (const int64_t row : moved_) {
      for_features(row, [&](int32_t feature, float value) {
        float* own = W + feature * n;
        const float by = scale * value;
        for (int64_t k = 0; k < n; ++k) own[k] += by * out[k];
      });
      out += stride;
    }
  }

  // Dense features of the rows that move.
  const float* moved_dense() {
    const int64_t D = data_.n_features, n = static_cast<int64_t>(moved_.size());
    if (n == chains_.n_rows()) return dense_;
    float* found = work_.take<float>(n * D);
    for (int64_t k = 0; k < n; ++k)
      std::copy_n(dense_ + moved_[static_cast<size_t>(k)] * D, D, found + k * D);
    return found;
  }

  HiddenUnits<float> units() const {
    return {at_.values + data_.bias(),
            at_.values + data_.to_label(),
            at_.values + data_.constant(),
            H_,
            K_,
            data_.activation};
  }

  void score() {
    const int64_t n = chains_.n_rows();
    inputs_.resize(static_cast<size_t>(n * stride_ + stride_));
    multiply(0, H_, inputs_.data(), stride_);
    tables_.fill(units());
    kernels<float>().hidden_scores(units(), tables_.view(), inputs_.data(), stride_, chains_.node(),
                                   n, work_);
    if (data_.has_skip) {
      const int64_t wide = OwnedHiddenTables<float>::padded(K_);
      float* more = work_.take<float>(n * wide);
      multiply(data_.skip(), K_, more, wide);
      for (int64_t row = 0; row < n; ++row)
        for (int64_t k = 0; k < K_; ++k) chains_.node()[row * K_ + k] += more[row * wide + k];
    }
    chains_.set_tables(at_.values + data_.tables());
  }

  // Rows whose slopes are not all 0, and copies of their inputs and slopes.
  void gather_moved() {
    moved_.clear();
    slopes_.clear();
    moved_inputs_.clear();
    for (int64_t row = 0; row < chains_.n_rows(); ++row) {
      if (!chains_.moves(row)) continue;
      moved_.push_back(row);
      slopes_.insert(slopes_.end(), chains_.node_slopes(row), chains_.node_slopes(row) + K_);
      const float* inputs = inputs_.data() + row * stride_;
      moved_inputs_.insert(moved_inputs_.end(), inputs, inputs + stride_);
    }
  }

  void move(double factor) {
    gather_moved();
    if (!moved_.empty()) move_nodes(factor);
    const int64_t n_edge = data_.chains.n_edge();
    chains_.for_table_slopes([&](int64_t k, double slope) {
      add(data_.tables() + k, factor * (k < n_edge ? rates_.edge : rates_.ends) * slope);
    });
  }

  void move_nodes(double factor) {
    const auto n = static_cast<int64_t>(moved_.size());
    gradient_.assign(static_cast<size_t>(H_ + H_ * K_ + K_), 0.0);
    double* bias = gradient_.data();
    const HiddenGradient gradient{bias, bias + H_, bias + H_ + H_ * K_};
    float* in_inputs = work_.take<float>(n * stride_);
    kernels<float>().hidden_gradient(units(), tables_.view(), moved_inputs_.data(), stride_,
                                     slopes_.data(), in_inputs, stride_, gradient, n, work_);
    add_outer(0, H_, in_inputs, stride_, factor * rates_.weights);
    if (data_.has_skip) {
      const int64_t wide = OwnedHiddenTables<float>::padded(K_);
      float* slopes = work_.take<float>(n * wide);
      for (int64_t row = 0; row < n; ++row)
        std::copy_n(slopes_.data() + row * K_, K_, slopes + row * wide);
      add_outer(data_.skip(), K_, slopes, wide, factor * rates_.skip);
    }
    for (int64_t h = 0; h < H_; ++h) add(data_.bias() + h, factor * rates_.bias * gradient.bias[h]);
    for (int64_t e = 0; e < H_ * K_; ++e)
      add(data_.to_label() + e, factor * rates_.to_label * gradient.to_label[e]);
    for (int64_t k = 0; k < K_; ++k)
      add(data_.constant() + k, factor * rates_.constant * gradient.constant[k]);
  }

  const HiddenSweepData& data_;
  const SweepSteps& steps_;
  const HiddenRates& rates_;
  const Dropout& dropout_;
  HiddenParameters& at_;
  const int64_t H_, K_, stride_;
  Lagging lagging_;
  ChainSlopes chains_;
  OwnedHiddenTables<float> tables_;
  Workspace work_;
  const float* dense_ = nullptr;  // of the rows of the mini-batch
  std::vector<Entry> entries_;
  std::vector<size_t> starts_;
  std::vector<int64_t> moved_;
  std::vector<float> inputs_, moved_inputs_, slopes_;
  std::vector<double> gradient_;
};

}  // namespace

void hidden_sweep(const HiddenSweepData& data, const SweepSteps& steps, const HiddenRates& rates,
                  const Dropout& dropout, HiddenParameters& parameters) {
  HiddenSweeper(data, steps, rates, dropout, parameters).run();
}

void hidden_catch_up(const HiddenSweepData& data, HiddenParameters& parameters) {
  Lagging(data, parameters).catch_up_all();
}

}  // namespace crfx
