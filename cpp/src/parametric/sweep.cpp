// Epochs over instances whose nodes are scored by linear functions.
#include <algorithm>
#include <vector>

#include "crfx/sweeps.hpp"
#include "parametric/mini_batch.hpp"

namespace crfx {
namespace {

// One mini-batch after the other. All threads of a team go through the phases of a step together:
// the thread of a feature brings its parameters up to date and updates them; the rows in between
// are divided among threads. So every sum has a fixed order.
class Sweeper {
 public:
  Sweeper(const SweepData& data, const SweepSteps& steps, SweepParameters& parameters)
      : data_(data),
        steps_(steps),
        at_(parameters),
        K_(data.chains.n_labels),
        first_table_(data.n_node()),
        batch_(data.chains),
        tables_(data.chains) {
    if (data.dense) weights_.resize(static_cast<size_t>(first_table_));
  }

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
        const double size = steps_.size(steps_.first + k / steps_.batch_size);
        const double shrinkage = steps_.shrinkage(size, static_cast<size_t>(last - k));
        team.once([&] {
          if (k > 0) end_step(before);
          batch_.begin(steps_.order + k, last - k);
        });
        catch_up(team);
        const Ranges rows = batch_.rows_for(team);
        team.each(rows.count(),
                  [&](int64_t chunk) { score(rows.begin(chunk), rows.end(chunk), work); });
        team.each(batch_.n_chain_chunks(),
                  [&](int64_t chunk) { batch_.find_slopes(chunk, tables_, passes); });
        move(team, -size / shrinkage, work);
        before = shrinkage;
      }
      if (steps_.n_instances > 0) team.once([&] { end_step(before); });
    });
  }

 private:
  static constexpr int64_t kFeaturesPerChunk = 16, kTablesPerChunk = 4096;

  // Multiplications of a step, about.
  double operations() const {
    double rows = 0, entries = 0;
    const ChainData& chains = data_.chains;
    for (int64_t k = 0; k < steps_.n_instances; ++k) {
      const int64_t first = chains.offsets[steps_.order[k]];
      const int64_t last = chains.offsets[steps_.order[k] + 1];
      rows += static_cast<double>(last - first);
      if (!data_.dense)
        entries += static_cast<double>(data_.X.starts[last] - data_.X.starts[first]);
    }
    if (data_.dense) entries = rows * static_cast<double>(data_.n_features);
    const double share = static_cast<double>(steps_.batch_size) /
                         static_cast<double>(std::max<int64_t>(1, steps_.n_instances));
    const double per_feature = static_cast<double>(first_table_) /
                               static_cast<double>(std::max<int64_t>(1, data_.n_features));
    // An entry of a sparse row costs one or two cache misses.
    const double per_entry = data_.dense ? 2 * per_feature : 8 * per_feature + 32;
    return share * (entries * per_entry + 16 * rows * static_cast<double>(chains.table_size()));
  }

  // Parameters ---------------------------------------------------------------------------------

  // Parameters that are always read together: those of a feature, or of the tables. They lag behind
  // equally.
  void catch_up(int64_t begin, int64_t end) {
    if (begin == end) return;
    const double then = at_.product_then[begin], steps_then = at_.steps_then[begin];
    if (then == at_.product && steps_then == at_.steps) return;
    const double passed = (at_.steps - steps_then) / then, factor = at_.product / then;
    for (int64_t k = begin; k < end; ++k) {
      at_.sum[k] += at_.values[k] * passed;
      at_.values[k] *= factor;
      at_.product_then[k] = at_.product;
      at_.steps_then[k] = at_.steps;
    }
  }

  void catch_up_all() {
    for (int64_t f = 0; f < data_.n_features; ++f)
      catch_up(data_.pattern.starts[f], data_.pattern.starts[f + 1]);
    catch_up(first_table_, at_.size);
  }

  void end_step(double shrinkage) {
    at_.product *= shrinkage;
    if (steps_.counts) {
      at_.steps += at_.product;
      ++at_.n_counted;
    }
    if (at_.product >= steps_.smallest_shrinkage) return;
    catch_up_all();
    at_.product = 1;
    at_.steps = 0;
    std::fill(at_.product_then, at_.product_then + at_.size, 1.0);
    std::fill(at_.steps_then, at_.steps_then + at_.size, 0.0);
  }

  void add(int64_t k, double change) {
    if (!data_.free || data_.free[k]) at_.values[k] += change;
  }

  // Phases ---------------------------------------------------------------------------------------

  // The features of dense rows, in chunks; of sparse ones, in a part for each thread. The
  // distribution of features over threads does not change the result.
  int64_t n_parts(const Team& team) const {
    return data_.dense ? Ranges(data_.n_features, kFeaturesPerChunk).count() : team.size();
  }

  void catch_up(Team& team) {
    const int64_t n = n_parts(team);
    team.each(n + 1, [&](int64_t part) {
      if (part == n) {
        catch_up(first_table_, at_.size);
        return tables_.set(at_.values + first_table_);
      }
      if (data_.dense) return catch_up_dense(Ranges(data_.n_features, kFeaturesPerChunk), part);
      for (int64_t row = 0; row < batch_.n_rows(); ++row)
        for_features(row, part, n, [&](int64_t first, int64_t n_weights, float) {
          catch_up(first, first + n_weights);
        });
    });
  }

  void catch_up_dense(const Ranges& features, int64_t chunk) {
    for (int64_t f = features.begin(chunk); f < features.end(chunk); ++f) {
      catch_up(f * K_, (f + 1) * K_);
      for (int64_t k = f * K_; k < (f + 1) * K_; ++k)
        weights_[static_cast<size_t>(k)] = static_cast<float>(at_.values[k]);
    }
  }

  // Scores, in single precision as elsewhere in training.
  void score(int64_t begin, int64_t end, Workspace& work) {
    if (data_.dense) return score_dense(begin, end, work);
    std::fill(batch_.node(begin), batch_.node(end), 0.0f);
    for (int64_t row = begin; row < end; ++row) {
      float* scores = batch_.node(row);
      for_features(row, 0, 1, [&](int64_t first, int64_t n, float value) {
        const double* weights = at_.values + first;
        if (const int32_t* outputs = outputs_of(first))
          for (int64_t k = 0; k < n; ++k)
            scores[outputs[k]] += value * static_cast<float>(weights[k]);
        else
          for (int64_t k = 0; k < n; ++k) scores[k] += value * static_cast<float>(weights[k]);
      });
    }
  }

  void score_dense(int64_t begin, int64_t end, Workspace& work) {
    work.reset();
    const int64_t D = data_.n_features, lanes = kernels<float>().lanes;
    const int64_t wide = (K_ + lanes - 1) / lanes * lanes;
    const float* rows = dense_rows(begin, end, work);
    float* scores = work.take<float>((end - begin) * wide);
    kernels<float>().multiply(rows, D, weights_.data(), K_, scores, wide, end - begin, work);
    for (int64_t row = begin; row < end; ++row)
      std::copy_n(scores + (row - begin) * wide, K_, batch_.node(row));
  }

  // Dense rows of the mini-batch, one after the other.
  const float* dense_rows(int64_t begin, int64_t end, Workspace& work) {
    const int64_t D = data_.n_features;
    if (batch_.n_instances() == 1) return data_.dense + batch_.data_row(begin) * D;
    float* rows = work.take<float>((end - begin) * D);
    for (int64_t row = begin; row < end; ++row)
      std::copy_n(data_.dense + batch_.data_row(row) * D, D, rows + (row - begin) * D);
    return rows;
  }

  void move(Team& team, double factor, Workspace& work) {
    const int64_t n = n_parts(team), n_tables = data_.chains.n_tables();
    const Ranges features(data_.n_features, kFeaturesPerChunk), tables(n_tables, kTablesPerChunk);
    team.each(n + tables.count(), [&](int64_t part) {
      if (part >= n) {
        move_tables(factor, tables.begin(part - n), tables.end(part - n), work);
      } else if (data_.dense) {
        move_dense(factor, features.begin(part), features.end(part), work);
      } else {
        move_sparse(factor, part, n);
      }
    });
  }

  void move_tables(double factor, int64_t begin, int64_t end, Workspace& work) {
    work.reset();
    const double* slopes = batch_.table_slopes(begin, end, work);
    for (int64_t k = begin; k < end; ++k)
      if (slopes[k - begin] != 0) add(first_table_ + k, factor * slopes[k - begin]);
  }

  void move_sparse(double factor, int64_t part, int64_t n_parts) {
    for (int64_t row = 0; row < batch_.n_rows(); ++row) {
      if (!batch_.moves(row)) continue;
      const float* slopes = batch_.slopes(row);
      for_features(row, part, n_parts, [&](int64_t first, int64_t n, float value) {
        double* weights = at_.values + first;
        const int32_t* outputs = outputs_of(first);
        if (data_.free || outputs)
          for (int64_t k = 0; k < n; ++k)
            add(first + k, factor * static_cast<double>(value * slopes[outputs ? outputs[k] : k]));
        else
          for (int64_t k = 0; k < n; ++k)
            weights[k] += factor * static_cast<double>(value * slopes[k]);
      });
    }
  }

  void move_dense(double factor, int64_t begin, int64_t end, Workspace& work) {
    work.reset();
    const int64_t D = data_.n_features, n = end - begin;
    const Ranges& rows = batch_.rows();
    float* sums = work.take<float>(n * K_);
    std::fill_n(sums, n * K_, 0.0f);
    float* block = work.take<float>(rows.size * n);
    for (int64_t chunk = 0; chunk < rows.count(); ++chunk) {
      int64_t n_moved = 0;
      for (int64_t row = rows.begin(chunk); row < rows.end(chunk); ++row)
        n_moved += batch_.moves(row);
      if (n_moved == 0) continue;
      for (int64_t row = rows.begin(chunk); row < rows.end(chunk); ++row)
        std::copy_n(data_.dense + batch_.data_row(row) * D + begin, n,
                    block + (row - rows.begin(chunk)) * n);
      kernels<float>().add_outer(block, n, batch_.slopes(rows.begin(chunk)), K_, 1.0f, sums, K_,
                                 rows.end(chunk) - rows.begin(chunk));
    }
    for (int64_t k = 0; k < n * K_; ++k)
      if (sums[k] != 0) add(begin * K_ + k, factor * static_cast<double>(sums[k]));
  }

  // Calls body(feature's first weight, how many it has, value) for the features of a row that
  // belong to a part.
  template <class Body>
  void for_features(int64_t row, int64_t part, int64_t n_parts, Body&& body) const {
    const int64_t from = batch_.data_row(row);
    for (int64_t e = data_.X.starts[from]; e < data_.X.starts[from + 1]; ++e) {
      const int32_t feature = data_.X.indices[e];
      if (n_parts > 1 && part_of(feature, n_parts) != part) continue;
      const int64_t first = data_.pattern.starts[feature];
      body(first, data_.pattern.starts[feature + 1] - first,
           data_.X.values ? data_.X.values[e] : 1.0f);
    }
  }

  // The outputs of weights; null where a feature has all of them.
  const int32_t* outputs_of(int64_t weight) const {
    return data_.pattern.outputs ? data_.pattern.outputs + weight : nullptr;
  }

  const SweepData& data_;
  const SweepSteps& steps_;
  SweepParameters& at_;
  const int64_t K_, first_table_;  // where the parameters of tables begin
  MiniBatch batch_;
  TableScores tables_;
  std::vector<float> weights_;  // in single precision, where rows are dense
};

}  // namespace

void sweep(const SweepData& data, const SweepSteps& steps, SweepParameters& parameters) {
  Sweeper(data, steps, parameters).run();
}

}  // namespace crfx
