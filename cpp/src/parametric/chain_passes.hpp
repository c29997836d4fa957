// A few chains (or forests) at a time: their scores, and passes of inference over them that add to
// the slopes of a loss. The building blocks of chain_losses.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "crfx/sweeps.hpp"

namespace crfx {

// The scores of tables in a step: those of parameters and of a base model.
class TableScores {
 public:
  explicit TableScores(const ChainData& data) : data_(data) {}

  // From parameters: edges, start and end, one after the other.
  template <class T>
  void set(const T* values) {
    begin();
    const auto take = [&values](int64_t n, std::vector<float>& scores) {
      for (int64_t k = 0; k < n; ++k) scores[at(k)] = static_cast<float>(values[k]);
      values += n;
    };
    take(data_.n_edge(), edge_);
    take(data_.n_start(), start_);
    take(data_.n_end(), end_);
    add_base();
  }
  // 0 for allowed entries.
  void set_mask();

  bool has_edges() const { return data_.has_edge || data_.base_edge; }
  const float* edge() const { return edge_.data(); }
  const float* start() const { return start_.empty() ? nullptr : start_.data(); }
  const float* end() const { return end_.empty() ? nullptr : end_.data(); }
  // The sum of tables for the edge that ends at a row of the data, with Sharing::each.
  void edge_of_row(int64_t row, float* scores) const;

 private:
  static std::size_t at(int64_t k) { return static_cast<std::size_t>(k); }
  void begin();
  void add_base();
  float below(float score) const;

  const ChainData& data_;
  std::vector<float> edge_, start_, end_;
  bool is_mask_ = false;
};

// Some instances of the data, the rows of one after those of another.
struct FewChains {
  const int64_t* instances;
  int64_t n_instances;
  float* node;     // rows x labels: scores without those of a base model; changed by passes
  float* slopes;   // rows x labels
  double* tables;  // as many as there are parameters of tables
};

// Buffers are kept from one use to the next: one object per thread.
class ChainPasses {
 public:
  explicit ChainPasses(const ChainData& data);

  // Takes chains; their slopes begin at 0.
  void begin(const FewChains& chains, const TableScores& tables);

  // Chains, and their rows, are counted from 0.
  int64_t n_chains() const { return chains_.n_instances; }
  int64_t n_rows() const { return offsets_.back(); }
  int64_t first_row(int64_t chain) const { return offsets_[at(chain)]; }
  int64_t end_row(int64_t chain) const { return offsets_[at(chain) + 1]; }
  int64_t length(int64_t chain) const { return end_row(chain) - first_row(chain); }
  int32_t label(int64_t row) const { return labels_[at(row)]; }
  bool is_known(int64_t row) const { return labels_[at(row)] >= 0; }
  double weight(int64_t chain) const { return weights_[at(chain)]; }
  // Of a known label.
  double class_weight(int64_t row) const {
    return data_.loss.class_weights ? data_.loss.class_weights[label(row)] : 1.0;
  }
  // The costs of labels (or additions) if the label of a row is known.
  const float* costs(int64_t row) const {
    return data_.loss.table + static_cast<int64_t>(label(row)) * data_.n_labels;
  }
  // The factor of these costs.
  float share(int64_t chain) const {
    return data_.loss.by_length ? static_cast<float>(1.0 / static_cast<double>(length(chain)))
                                : 1.0f;
  }
  float* node(int64_t row) { return chains_.node + row * data_.n_labels; }
  float* slopes(int64_t row) { return chains_.slopes + row * data_.n_labels; }

  // Rows that an edge joins, oldest first, its own last; null where none ends. As the structure has
  // it, whether or not edges have scores.
  const int64_t* window(int64_t chain, int64_t row);
  bool has_edges() const { return tables_->has_edges(); }
  // The parameters and the scores of the table of the edge that ends at a row.
  double* edge_slopes(int64_t row);
  const float* edge_scores(int64_t row);
  // Adds (labels,) slopes of the label at a row to start and end where it is first or last.
  template <class T>
  void add_ends(int64_t chain, int64_t row, const T* slopes, double weight);
  // Adds the scores of start and end to (labels,) scores where the row is first or last.
  void add_end_scores(int64_t chain, int64_t row, double* scores) const;
  // The constraints on neighbours in a chain too short for an edge, or null.
  const float* pairs(int64_t chain) const { return is_short(chain) ? data_.base_pairs : nullptr; }

  // Terms are chains that a pass is taken over, each with a weight; of the labels at rows for which
  // `given` holds only the true one is allowed. They have the scores that nodes have when they are
  // added.
  void clear_terms();
  template <class Given>
  void add_term(int64_t chain, double weight, Given&& given);
  void add_term(int64_t chain, double weight) {
    add_term(chain, weight, [](int64_t) { return false; });
  }
  int64_t n_term_rows() const { return long_.n_rows() + short_.n_rows(); }
  bool has_terms() const { return !long_.weights.empty() || !short_.weights.empty(); }

  // Passes over all terms. Each adds its slopes, times the weights.
  void add_expected(const TableScores& tables);  // by the expected use of scores
  void add_expected() { add_expected(*tables_); }
  void add_best();                             // by the best labelling
  void add_expected_cost(const float* cost);   // of rows x labels; weights aside
  void add_loss_scaled(const int32_t* units);  // rows x labels
  void find_marginals(float* marginals);       // rows x labels, into which these are written
  // By the true labels of a chain, which are all known.
  void count_truth(int64_t chain, double weight);

  const ChainData& data() const { return data_; }

 private:
  // Terms as one problem.
  struct Stack {
    explicit Stack(bool is_short) : is_short(is_short) {}
    bool is_short;  // chains too short for an edge, bound by pairs
    std::vector<int64_t> chains, offsets{0}, rows, parents, visit;
    std::vector<int32_t> types;
    std::vector<float> node, edge;
    std::vector<double> weights;

    int64_t n_rows() const { return offsets.back(); }
  };

  static std::size_t at(int64_t k) { return static_cast<std::size_t>(k); }
  bool is_short(int64_t chain) const {
    return data_.base_pairs && length(chain) > 1 && length(chain) <= data_.order;
  }
  bool is_root(int64_t chain, int64_t row) const {
    return data_.parents ? data_.parents[data_rows_[at(row)]] < 0 : row == first_row(chain);
  }
  template <class Body>
  void for_stacks(Body&& body) {
    if (!long_.weights.empty()) body(long_);
    if (!short_.weights.empty()) body(short_);
  }
  void add_rows(Stack& stack, int64_t chain, double weight);
  Problem<float> problem(Stack& stack, const TableScores& tables) const;
  EdgeOutput edge_output(const Stack& stack) const;
  void add_node_slopes(const Stack& stack, const float* values, bool weighed);
  // Adds the features of a labelling of a stack's term, or of a chain.
  void count(int64_t chain, const int32_t* labels, double weight);

  const ChainData& data_;
  const int64_t table_size_, n_edge_;
  FewChains chains_{};
  const TableScores* tables_ = nullptr;
  std::vector<int64_t> offsets_, data_rows_, window_;
  std::vector<int32_t> labels_;
  std::vector<double> weights_;
  Stack long_{false}, short_{true};
  std::vector<float> found_, costs_, row_edge_;
  std::vector<double> totals_;
  std::vector<int32_t> best_, units_, truth_;
};

template <class Given>
void ChainPasses::add_term(int64_t chain, double weight, Given&& given) {
  Stack& stack = is_short(chain) ? short_ : long_;
  const int64_t K = data_.n_labels, to = stack.n_rows();
  add_rows(stack, chain, weight);
  for (int64_t row = first_row(chain); row < end_row(chain); ++row) {
    if (!given(row)) continue;
    float* scores = stack.node.data() + (to + row - first_row(chain)) * K;
    for (int64_t c = 0; c < K; ++c)
      if (c != label(row)) scores[c] = -__builtin_inff();
  }
}

template <class T>
void ChainPasses::add_ends(int64_t chain, int64_t row, const T* slopes, double weight) {
  const int64_t K = data_.n_labels;
  const bool starts = is_root(chain, row);
  double* to = chains_.tables + n_edge_;
  for (int64_t c = 0; data_.has_start && starts && c < K; ++c)
    to[c] += weight * static_cast<double>(slopes[c]);
  to += data_.n_start();
  for (int64_t c = 0; data_.has_end && row + 1 == end_row(chain) && c < K; ++c)
    to[c] += weight * static_cast<double>(slopes[c]);
}

}  // namespace crfx
