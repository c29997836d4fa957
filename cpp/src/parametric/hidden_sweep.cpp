// Epochs over instances whose nodes are scored by hidden units.
#include <algorithm>
#include <vector>

#include "crfx/sweeps.hpp"
#include "parametric/hidden_tables.hpp"
#include "parametric/mini_batch.hpp"

namespace crfx {
namespace {

// Tosses coins, four at a time (splitmix64): coin after coin from any number on.
class Chance {
 public:
  Chance(double share, uint64_t seed, int64_t step, int64_t coin)
      : below_(std::max<uint64_t>(1, static_cast<uint64_t>(share * 65536 + 0.5))),
        state_(seed + static_cast<uint64_t>(step) * 0xd1342543de82ef95u +
               static_cast<uint64_t>(coin / 4) * 0x9e3779b97f4a7c15u) {
    for (int64_t k = 0; k < coin % 4; ++k) (*this)();
  }

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

  // Of a feature, or of all parameters without a feature.
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

// One mini-batch after the other, by all threads of a team, as in sweep.cpp.
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
        D_(data.n_features),
        stride_(OwnedHiddenTables<float>::padded(data.n_hidden)),
        n_inner_(H_ + H_ * K_ + K_),
        lagging_(data, parameters),
        batch_(data.chains, n_inner_),
        scores_(data.chains) {}

  void run() {
    const int n_threads = threads_worth(steps_.n_threads, operations());
    // Allocated before the threads start: they may not throw outside of a phase.
    std::vector<ChainPasses> all_passes(static_cast<size_t>(n_threads), ChainPasses(data_.chains));
    with_team(n_threads, [&](Team& team) {
      ChainPasses& passes = all_passes[static_cast<size_t>(team.rank())];
      Workspace work;
      double before = 1;  // the last step's shrinkage
      for (int64_t k = 0; k < steps_.n_instances; k += steps_.batch_size) {
        const int64_t last = std::min(steps_.n_instances, k + steps_.batch_size);
        const int64_t number = steps_.first + k / steps_.batch_size;
        const double size = steps_.size(number);
        const double shrinkage = steps_.shrinkage(size, static_cast<size_t>(last - k));
        team.once([&] {
          if (k > 0) end_step(before, false);
          begin(k, last);
        });
        catch_up(team);
        const Ranges rows = batch_.rows_for(team);
        team.each(rows.count(),
                  [&](int64_t chunk) { score(rows.begin(chunk), rows.end(chunk), number, work); });
        team.each(batch_.n_chain_chunks(),
                  [&](int64_t chunk) { batch_.find_slopes(chunk, scores_, passes); });
        team.each(batch_.rows().count(), [&](int64_t chunk) { find_gradient(chunk, work); });
        move(team, -size / shrinkage, work);
        before = shrinkage;
      }
      if (steps_.n_instances > 0) team.once([&] { end_step(before, steps_.counts); });
    });
  }

 private:
  static constexpr int64_t kFeaturesPerChunk = 16, kParametersPerChunk = 1024;

  // Multiplications of a step, about.
  double operations() const {
    double rows = 0, entries = 0;
    const ChainData& chains = data_.chains;
    for (int64_t k = 0; k < steps_.n_instances; ++k) {
      const int64_t first = chains.offsets[steps_.order[k]];
      const int64_t last = chains.offsets[steps_.order[k] + 1];
      rows += static_cast<double>(last - first);
      if (!data_.dense)
        entries += static_cast<double>(data_.sparse.starts[last] - data_.sparse.starts[first]);
    }
    if (data_.dense) entries = rows * static_cast<double>(D_);
    const double share = static_cast<double>(steps_.batch_size) /
                         static_cast<double>(std::max<int64_t>(1, steps_.n_instances));
    const auto outputs = static_cast<double>(H_ + (data_.has_skip ? K_ : 0));
    const double per_row = 8 * static_cast<double>(H_ * K_ + 2 * chains.table_size());
    return share * (2 * entries * outputs + rows * per_row);
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
    std::fill(at_.product_then, at_.product_then + D_ + 1, 1.0);
    std::fill(at_.steps_then, at_.steps_then + D_ + 1, 0.0);
  }

  void add(int64_t k, double change) { at_.values[k] += static_cast<float>(change); }

  // Phases ---------------------------------------------------------------------------------------

  void begin(int64_t first, int64_t last) {
    batch_.begin(steps_.order + first, last - first);
    const int64_t n = batch_.n_rows();
    if (data_.dense) {
      dense_.resize(static_cast<size_t>(n * D_));
    } else {
      places_.assign(1, 0);
      for (int64_t row = 0; row < n; ++row) {
        const int64_t from = batch_.data_row(row);
        places_.push_back(places_.back() + data_.sparse.starts[from + 1] -
                          data_.sparse.starts[from]);
      }
      entries_.resize(static_cast<size_t>(places_.back()));
      ends_.resize(static_cast<size_t>(n));
    }
    inputs_.resize(static_cast<size_t>(n * stride_ + stride_));
    in_inputs_.resize(inputs_.size());
    moved_.resize(static_cast<size_t>(n));
    n_moved_.resize(static_cast<size_t>(batch_.rows().count()));
    slopes_.resize(static_cast<size_t>(n * K_ + OwnedHiddenTables<float>::padded(1)));
    gradient_.resize(static_cast<size_t>(batch_.rows().count() * n_inner_));
  }

  // The features of dense rows, in chunks; of sparse ones, in a part for each thread. The
  // distribution of features over threads does not change the result.
  Ranges features(const Team& team) const {
    return {D_, team.size() == 1 ? std::max<int64_t>(1, D_) : kFeaturesPerChunk};
  }
  int64_t n_parts(const Team& team) const {
    return data_.dense ? features(team).count() : team.size();
  }

  void catch_up(Team& team) {
    const int64_t n = n_parts(team);
    const Ranges chunks = features(team);
    team.each(n + 1, [&](int64_t part) {
      if (part == 0) {
        lagging_.catch_up(D_);
        tables_.fill(units());
        return scores_.set(at_.values + data_.tables());
      }
      --part;
      if (!data_.dense) return catch_up_sparse(part, n);
      for (int64_t f = chunks.begin(part); f < chunks.end(part); ++f) lagging_.catch_up(f);
    });
  }

  void catch_up_sparse(int64_t part, int64_t n_parts) {
    for (int64_t row = 0; row < batch_.n_rows(); ++row) {
      const int64_t from = batch_.data_row(row);
      for (int64_t e = data_.sparse.starts[from]; e < data_.sparse.starts[from + 1]; ++e) {
        const int32_t feature = data_.sparse.indices[e];
        if (n_parts == 1 || part_of(feature, n_parts) == part) lagging_.catch_up(feature);
      }
    }
  }

  void score(int64_t begin, int64_t end, int64_t number, Workspace& work) {
    work.reset();
    const int64_t n = end - begin;
    if (data_.dense)
      gather_dense(begin, end, number);
    else
      gather_sparse(begin, end, number);
    float* inputs = inputs_.data() + begin * stride_;
    multiply(begin, n, 0, H_, inputs, stride_, work);
    kernels<float>().hidden_scores(units(), tables_.view(), inputs, stride_, batch_.node(begin), n,
                                   work);
    if (!data_.has_skip) return;
    const int64_t wide = OwnedHiddenTables<float>::padded(K_);
    float* more = work.take<float>(n * wide);
    multiply(begin, n, data_.skip(), K_, more, wide, work);
    for (int64_t row = 0; row < n; ++row)
      for (int64_t k = 0; k < K_; ++k) batch_.node(begin + row)[k] += more[row * wide + k];
  }

  Chance coins(int64_t number, int64_t coin) const {
    return {1 - dropout_.share, dropout_.seed, number, coin};
  }

  // Features of rows, one after the other.
  void gather_dense(int64_t begin, int64_t end, int64_t number) {
    float* to = dense_.data() + begin * D_;
    for (int64_t row = begin, next; row < end; row = next) {  // runs of rows that follow each other
      const int64_t from = batch_.data_row(row);
      for (next = row + 1; next < end && batch_.data_row(next) == from + next - row;) ++next;
      std::copy_n(data_.dense + from * D_, (next - row) * D_, dense_.data() + row * D_);
    }
    if (dropout_.share == 0) return;
    Chance kept = coins(number, begin * D_);
    const auto larger = static_cast<float>(1 / (1 - dropout_.share));
    for (int64_t e = 0; e < (end - begin) * D_; ++e) to[e] *= kept() ? larger : 0.0f;
  }

  // Without dropped features.
  void gather_sparse(int64_t begin, int64_t end, int64_t number) {
    Chance kept = coins(number, place(begin));
    const auto larger = static_cast<float>(1 / (1 - dropout_.share));
    const Sparse<float>& X = data_.sparse;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t from = batch_.data_row(row);
      Entry* to = entries_.data() + place(row);
      for (int64_t e = X.starts[from]; e < X.starts[from + 1]; ++e)
        if (dropout_.share == 0 || kept())
          *to++ = {X.indices[e], larger * (X.values ? X.values[e] : 1.0f)};
      ends_[static_cast<size_t>(row)] = to - entries_.data();
    }
  }

  int64_t place(int64_t row) const { return places_[static_cast<size_t>(row)]; }

  // Calls body(feature, value) for the features of a row that is sparse.
  template <class Body>
  void for_features(int64_t row, Body&& body) const {
    for (int64_t e = place(row); e < ends_[static_cast<size_t>(row)]; ++e)
      body(entries_[static_cast<size_t>(e)].feature, entries_[static_cast<size_t>(e)].value);
  }

  // out (rows x n, `stride` apart) = X W, with W at a place among the parameters.
  void multiply(int64_t begin, int64_t n_rows, int64_t place, int64_t n, float* out, int64_t stride,
                Workspace& work) {
    const float* W = at_.values + place;
    if (data_.dense)
      return kernels<float>().multiply(dense_.data() + begin * D_, D_, W, n, out, stride, n_rows,
                                       work);
    std::fill(out, out + n_rows * stride, 0.0f);
    for (int64_t row = begin; row < begin + n_rows; ++row, out += stride)
      for_features(row, [&](int32_t feature, float value) {
        const float* own = W + feature * n;
        for (int64_t k = 0; k < n; ++k) out[k] += value * own[k];
      });
  }

  HiddenUnits<float> units() const {
    return {at_.values + data_.bias(),
            at_.values + data_.to_label(),
            at_.values + data_.constant(),
            H_,
            K_,
            data_.activation};
  }

  // The gradient in the inputs of units, for the rows of a chunk that move: these come first, with
  // their features and slopes. And in the parameters that are no features'.
  void find_gradient(int64_t chunk, Workspace& work) {
    work.reset();
    const int64_t begin = batch_.rows().begin(chunk), end = batch_.rows().end(chunk);
    float *inputs = inputs_.data() + begin * stride_, *slopes = slopes_.data() + begin * K_;
    int64_t n = 0;
    for (int64_t row = begin; row < end; ++row) {
      if (!batch_.moves(row)) continue;
      moved_[static_cast<size_t>(begin + n)] = row;
      std::copy_n(batch_.slopes(row), K_, slopes + n * K_);
      if (begin + n < row) {
        std::copy_n(inputs_.data() + row * stride_, stride_, inputs + n * stride_);
        if (data_.dense)
          std::copy_n(dense_.data() + row * D_, D_, dense_.data() + (begin + n) * D_);
      }
      ++n;
    }
    n_moved_[static_cast<size_t>(chunk)] = n;
    if (n == 0) return;
    double* bias = gradient_.data() + chunk * n_inner_;
    std::fill_n(bias, n_inner_, 0.0);
    kernels<float>().hidden_gradient(units(), tables_.view(), inputs, stride_, slopes,
                                     in_inputs_.data() + begin * stride_, stride_,
                                     {bias, bias + H_, bias + H_ + H_ * K_}, n, work);
  }

  void move(Team& team, double factor, Workspace& work) {
    const Ranges chunks = features(team), inner(n_inner_, kParametersPerChunk);
    const Ranges tables(data_.chains.n_tables(), kParametersPerChunk);
    const int64_t n_first = n_parts(team), n_second = n_first + inner.count();
    team.each(n_second + tables.count(), [&](int64_t part) {
      if (part >= n_second)
        move_tables(factor, tables.begin(part - n_second), tables.end(part - n_second), work);
      else if (part >= n_first)
        move_inner(factor, inner.begin(part - n_first), inner.end(part - n_first), work);
      else if (data_.dense)
        move_dense(factor, chunks.begin(part), chunks.end(part), work);
      else
        move_sparse(factor, part, n_first);
    });
  }

  // Weights of features += factor X^T (gradient in the inputs, or slopes).
  void move_dense(double factor, int64_t first, int64_t last, Workspace& work) {
    work.reset();
    const int64_t n = last - first;
    float* room = n < D_ ? work.take<float>(batch_.rows().size * n) : nullptr;
    const auto by_unit = static_cast<float>(factor * rates_.weights);
    const auto by_skip = static_cast<float>(factor * rates_.skip);
    for (int64_t chunk = 0; chunk < batch_.rows().count(); ++chunk) {
      const int64_t begin = batch_.rows().begin(chunk);
      const int64_t n_rows = n_moved_[static_cast<size_t>(chunk)];
      if (n_rows == 0) continue;
      const float* block = dense_.data() + begin * D_;
      for (int64_t k = 0; room && k < n_rows; ++k)
        std::copy_n(block + k * D_ + first, n, room + k * n);
      if (room) block = room;
      kernels<float>().add_outer(block, n, in_inputs_.data() + begin * stride_, stride_, by_unit,
                                 at_.values + first * H_, H_, n_rows);
      if (data_.has_skip)
        kernels<float>().add_outer(block, n, slopes_.data() + begin * K_, K_, by_skip,
                                   at_.values + data_.skip() + first * K_, K_, n_rows);
    }
  }

  void move_sparse(double factor, int64_t part, int64_t n_parts) {
    const auto by_unit = static_cast<float>(factor * rates_.weights);
    const auto by_skip = static_cast<float>(factor * rates_.skip);
    const auto move_row = [&](float* to, const float* out, int64_t n, float by) {
      for (int64_t k = 0; k < n; ++k) to[k] += by * out[k];
    };
    for (int64_t chunk = 0; chunk < batch_.rows().count(); ++chunk) {
      const int64_t begin = batch_.rows().begin(chunk);
      for (int64_t k = begin; k < begin + n_moved_[static_cast<size_t>(chunk)]; ++k)
        for_features(moved_[static_cast<size_t>(k)], [&](int32_t feature, float value) {
          if (n_parts > 1 && part_of(feature, n_parts) != part) return;
          move_row(at_.values + feature * H_, in_inputs_.data() + k * stride_, H_, by_unit * value);
          if (data_.has_skip)
            move_row(at_.values + data_.skip() + feature * K_, slopes_.data() + k * K_, K_,
                     by_skip * value);
        });
    }
  }

  // Biases, weights to labels and constants, which lie one after the other.
  void move_inner(double factor, int64_t begin, int64_t end, Workspace& work) {
    work.reset();
    double* sums = work.take<double>(end - begin);
    std::fill_n(sums, end - begin, 0.0);
    bool moves = false;
    for (int64_t chunk = 0; chunk < batch_.rows().count(); ++chunk) {
      if (n_moved_[static_cast<size_t>(chunk)] == 0) continue;
      moves = true;
      const double* own = gradient_.data() + chunk * n_inner_ + begin;
      for (int64_t k = 0; k < end - begin; ++k) sums[k] += own[k];
    }
    if (!moves) return;
    const auto move_kind = [&](int64_t first, int64_t last, double rate) {
      for (int64_t k = std::max(first, begin); k < std::min(last, end); ++k)
        add(data_.bias() + k, factor * rate * sums[k - begin]);
    };
    move_kind(0, H_, rates_.bias);
    move_kind(H_, H_ + H_ * K_, rates_.to_label);
    move_kind(H_ + H_ * K_, n_inner_, rates_.constant);
  }

  void move_tables(double factor, int64_t begin, int64_t end, Workspace& work) {
    work.reset();
    const double* slopes = batch_.table_slopes(begin, end, work);
    const int64_t n_edge = data_.chains.n_edge();
    for (int64_t k = begin; k < end; ++k)
      if (slopes[k - begin] != 0)
        add(data_.tables() + k,
            factor * (k < n_edge ? rates_.edge : rates_.ends) * slopes[k - begin]);
  }

  const HiddenSweepData& data_;
  const SweepSteps& steps_;
  const HiddenRates& rates_;
  const Dropout& dropout_;
  HiddenParameters& at_;
  const int64_t H_, K_, D_, stride_, n_inner_;
  Lagging lagging_;
  MiniBatch batch_;
  TableScores scores_;
  OwnedHiddenTables<float> tables_;
  std::vector<float> dense_;    // features of rows; or
  std::vector<Entry> entries_;  // those of sparse rows, from their places on, to their ends
  std::vector<int64_t> places_, ends_;
  std::vector<float> inputs_, in_inputs_, slopes_;
  std::vector<int64_t> moved_, n_moved_;  // rows, by chunk; how many
  std::vector<double> gradient_;          // by chunk
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
