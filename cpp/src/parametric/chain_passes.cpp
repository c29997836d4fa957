#include "parametric/chain_passes.hpp"

#include <algorithm>
#include <limits>

#include "crfx/inference.hpp"

namespace crfx {

int64_t ChainData::table_size() const {
  int64_t size = n_labels;
  for (int k = 0; k < order; ++k) size *= n_labels;
  return size;
}

// Scores of tables --------------------------------------------------------------------------------

void TableScores::begin() {
  const auto K = at(data_.n_labels);
  edge_.assign(has_edges() ? at(data_.n_types * data_.table_size()) : K * K, 0.0f);
  start_.assign(data_.has_start || data_.base_start ? K : 0, 0.0f);
  end_.assign(data_.has_end || data_.base_end ? K : 0, 0.0f);
}

float TableScores::below(float score) const {
  constexpr float never = -std::numeric_limits<float>::infinity();
  return is_mask_ && score != never ? 0.0f : score;
}

void TableScores::add_base() {
  const auto add = [this](const float* base, std::vector<float>& scores) {
    for (size_t k = 0; base && k < scores.size(); ++k) scores[k] += below(base[k]);
  };
  if (data_.sharing != Sharing::each) add(data_.base_edge, edge_);
  add(data_.base_start, start_);
  add(data_.base_end, end_);
}

void TableScores::set_mask() {
  is_mask_ = true;
  begin();
  add_base();
}

void TableScores::edge_of_row(int64_t row, float* scores) const {
  const int64_t size = data_.table_size();
  for (int64_t k = 0; k < size; ++k)
    scores[k] = edge_[at(k)] + below(data_.base_edge[row * size + k]);
}

// Chains ------------------------------------------------------------------------------------------

ChainPasses::ChainPasses(const ChainData& data)
    : data_(data), table_size_(data.table_size()), n_edge_(data.n_edge()) {
  window_.resize(at(data.order) + 1);
  if (data.sharing == Sharing::each) row_edge_.resize(at(table_size_));
}

void ChainPasses::begin(const FewChains& chains, const TableScores& tables) {
  chains_ = chains;
  tables_ = &tables;
  offsets_.assign(1, 0);
  labels_.clear();
  data_rows_.clear();
  weights_.clear();
  for (int64_t k = 0; k < chains.n_instances; ++k) {
    const int64_t i = chains.instances[k], first = data_.offsets[i], last = data_.offsets[i + 1];
    offsets_.push_back(offsets_.back() + last - first);
    labels_.insert(labels_.end(), data_.labels + first, data_.labels + last);
    for (int64_t row = first; row < last; ++row) data_rows_.push_back(row);
    weights_.push_back(data_.weights ? data_.weights[i] : 1.0);
  }
  const int64_t K = data_.n_labels;
  for (int64_t row = 0; data_.base_node && row < n_rows(); ++row) {
    const float* base = data_.base_node + data_rows_[at(row)] * K;
    for (int64_t c = 0; c < K; ++c) node(row)[c] += base[c];
  }
  std::fill_n(chains_.slopes, n_rows() * K, 0.0f);
  std::fill_n(chains_.tables, data_.n_tables(), 0.0);
  clear_terms();
}

const int64_t* ChainPasses::window(int64_t chain, int64_t row) {
  const int64_t first = first_row(chain), before = row - first;
  if (data_.parents) {
    const int64_t parent = data_.parents[data_rows_[at(row)]];
    if (parent < 0) return nullptr;
    window_[0] = first + parent;
    window_[1] = row;
    return window_.data();
  }
  if (before < data_.order) return nullptr;
  for (int k = 0; k <= data_.order; ++k) window_[at(k)] = row - data_.order + k;
  return window_.data();
}

double* ChainPasses::edge_slopes(int64_t row) {
  const bool typed = data_.sharing == Sharing::typed;
  const int64_t type = typed ? data_.edge_types[data_rows_[at(row)]] : 0;
  return chains_.tables + type * table_size_;
}

const float* ChainPasses::edge_scores(int64_t row) {
  if (data_.sharing == Sharing::each) {
    tables_->edge_of_row(data_rows_[at(row)], row_edge_.data());
    return row_edge_.data();
  }
  const bool typed = data_.sharing == Sharing::typed;
  const int64_t type = typed ? data_.edge_types[data_rows_[at(row)]] : 0;
  return tables_->edge() + type * table_size_;
}

void ChainPasses::add_end_scores(int64_t chain, int64_t row, double* scores) const {
  const bool ends = !data_.parents && row + 1 == end_row(chain);
  const float* start = is_root(chain, row) ? tables_->start() : nullptr;
  const float* end = ends ? tables_->end() : nullptr;
  for (int c = 0; c < data_.n_labels; ++c)
    scores[c] += static_cast<double>((start ? start[c] : 0.0f) + (end ? end[c] : 0.0f));
}

// Terms -------------------------------------------------------------------------------------------

void ChainPasses::clear_terms() {
  for (Stack* stack : {&long_, &short_}) {
    stack->chains.clear();
    stack->offsets.assign(1, 0);
    stack->rows.clear();
    stack->node.clear();
    stack->weights.clear();
  }
}

void ChainPasses::add_rows(Stack& stack, int64_t chain, double weight) {
  const int64_t first = first_row(chain), last = end_row(chain);
  stack.chains.push_back(chain);
  stack.weights.push_back(weight);
  stack.offsets.push_back(stack.n_rows() + last - first);
  for (int64_t row = first; row < last; ++row) stack.rows.push_back(row);
  stack.node.insert(stack.node.end(), node(first), node(last));
}

Problem<float> ChainPasses::problem(Stack& stack, const TableScores& tables) const {
  Problem<float> p;
  p.node = stack.node.data();
  p.start = tables.start();
  p.end = tables.end();
  p.offsets = stack.offsets.data();
  p.n_instances = static_cast<int64_t>(stack.chains.size());
  p.n_labels = data_.n_labels;
  p.edge = tables.edge();
  if (stack.is_short) {
    p.edge = data_.base_pairs;
    return p;
  }
  const auto by_row = [&](auto& to, const auto* from) {
    to.clear();
    for (const int64_t row : stack.rows) to.push_back(from[data_rows_[at(row)]]);
    return to.data();
  };
  if (data_.parents) p.parents = by_row(stack.parents, data_.parents);
  if (data_.parents) p.visit = by_row(stack.visit, data_.visit);
  if (!tables.has_edges()) return p;  // zeros, of order 1
  p.order = data_.order;
  p.n_tables = data_.n_types;
  p.sharing = data_.sharing;
  if (data_.sharing == Sharing::typed) p.edge_types = by_row(stack.types, data_.edge_types);
  if (data_.sharing == Sharing::each) {
    const int64_t size = table_size_;
    stack.edge.resize(stack.rows.size() * at(size));
    for (size_t k = 0; k < stack.rows.size(); ++k)
      tables.edge_of_row(data_rows_[at(stack.rows[k])], stack.edge.data() + at(size) * k);
    p.edge = stack.edge.data();
  }
  return p;
}

EdgeOutput ChainPasses::edge_output(const Stack& stack) const {
  return data_.has_edge && !stack.is_short ? EdgeOutput::sum : EdgeOutput::none;
}

void ChainPasses::add_node_slopes(const Stack& stack, const float* values, bool weighed) {
  const int64_t K = data_.n_labels;
  for (size_t term = 0; term < stack.chains.size(); ++term) {
    const double weight = weighed ? stack.weights[term] : 1.0;
    const auto factor = static_cast<float>(weight);
    const int64_t first = stack.offsets[term], last = stack.offsets[term + 1];
    for (int64_t r = first; r < last; ++r) {
      const float* own = values + r * K;
      float* to = slopes(stack.rows[at(r)]);
      for (int64_t c = 0; c < K; ++c) to[c] += factor * own[c];
      if (data_.parents || r == first || r + 1 == last)
        add_ends(stack.chains[term], stack.rows[at(r)], own, weight);
    }
  }
}

// Passes ------------------------------------------------------------------------------------------

void ChainPasses::add_expected(const TableScores& tables) {
  for_stacks([&](Stack& stack) {
    totals_.resize(stack.chains.size());
    found_.resize(stack.node.size());
    SumOutputs<float> out;
    out.log_z = totals_.data();
    out.node = found_.data();
    out.weight = stack.weights.data();
    out.edge_output = edge_output(stack);
    out.edge_sum = out.edge_output == EdgeOutput::sum ? chains_.tables : nullptr;
    sum_product(problem(stack, tables), out, 1);
    add_node_slopes(stack, found_.data(), true);
  });
}

void ChainPasses::find_marginals(float* marginals) {
  for_stacks([&](Stack& stack) {
    totals_.resize(stack.chains.size());
    found_.resize(stack.node.size());
    SumOutputs<float> out;
    out.log_z = totals_.data();
    out.node = found_.data();
    sum_product(problem(stack, *tables_), out, 1);
    const auto K = at(data_.n_labels);
    for (size_t r = 0; r < stack.rows.size(); ++r)
      std::copy_n(found_.data() + r * K, K, marginals + at(stack.rows[r]) * K);
  });
}

void ChainPasses::add_best() {
  for_stacks([&](Stack& stack) {
    totals_.resize(stack.chains.size());
    best_.resize(stack.rows.size());
    max_product(problem(stack, *tables_), best_.data(), totals_.data(), 1);
    for (size_t term = 0; term < stack.chains.size(); ++term)
      count(stack.chains[term], best_.data() + stack.offsets[term], stack.weights[term]);
  });
}

void ChainPasses::add_expected_cost(const float* cost) {
  const auto K = at(data_.n_labels);
  for_stacks([&](Stack& stack) {
    totals_.resize(stack.chains.size());
    found_.resize(stack.node.size());
    costs_.resize(stack.node.size());
    for (size_t r = 0; r < stack.rows.size(); ++r)
      std::copy_n(cost + at(stack.rows[r]) * K, K, costs_.data() + r * K);
    ExpectationOutputs<float> out;
    out.value = totals_.data();
    out.node = found_.data();
    out.edge_output = edge_output(stack);
    out.edge_sum = out.edge_output == EdgeOutput::sum ? chains_.tables : nullptr;
    expectation(problem(stack, *tables_), costs_.data(), out, 1);
    add_node_slopes(stack, found_.data(), false);
  });
}

void ChainPasses::add_loss_scaled(const int32_t* units) {
  const auto K = at(data_.n_labels);
  for_stacks([&](Stack& stack) {
    const size_t n = stack.chains.size();
    found_.assign(stack.node.size(), 0.0f);
    totals_.resize(2 * n);
    truth_.clear();
    units_.resize(stack.node.size());
    for (size_t r = 0; r < stack.rows.size(); ++r) {
      truth_.push_back(label(stack.rows[r]));
      std::copy_n(units + at(stack.rows[r]) * K, K, units_.data() + r * K);
    }
    for (size_t term = 0; term < n; ++term) {
      const auto length =
          static_cast<double>(std::max<int64_t>(1, this->length(stack.chains[term])));
      totals_[n + term] = data_.loss.by_length ? data_.loss.unit / length : data_.loss.unit;
    }
    LossScaledOutputs<float> out;
    out.value = totals_.data();
    out.node = found_.data();
    out.weight = stack.weights.data();
    out.edge_output = edge_output(stack);
    double* edges = out.edge_output == EdgeOutput::sum ? chains_.tables : nullptr;
    loss_scaled(problem(stack, *tables_), {units_.data(), truth_.data(), totals_.data() + n}, out,
                edges, nullptr, 1);
    add_node_slopes(stack, found_.data(), true);
  });
}

void ChainPasses::count_truth(int64_t chain, double weight) {
  count(chain, labels_.data() + first_row(chain), weight);
}

void ChainPasses::count(int64_t chain, const int32_t* labels, double weight) {
  const int64_t first = first_row(chain), last = end_row(chain);
  double* ends = chains_.tables + n_edge_;
  for (int64_t row = first; row < last; ++row) {
    const int32_t own = labels[row - first];
    slopes(row)[own] += static_cast<float>(weight);
    if (data_.has_start && is_root(chain, row)) ends[own] += weight;
    if (!data_.has_edge) continue;
    const int64_t* rows = window(chain, row);
    if (!rows) continue;
    int64_t cell = 0;
    for (int k = 0; k <= data_.order; ++k) cell = cell * data_.n_labels + labels[rows[k] - first];
    edge_slopes(row)[cell] += weight;
  }
  if (data_.has_end && last > first) ends[data_.n_start() + labels[last - 1 - first]] += weight;
}

}  // namespace crfx
