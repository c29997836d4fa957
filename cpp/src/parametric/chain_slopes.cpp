#include "crfx/chain_slopes.hpp"

#include <algorithm>

#include "crfx/inference.hpp"

namespace crfx {

int64_t ChainData::table_size() const {
  int64_t size = n_labels;
  for (int k = 0; k < order; ++k) size *= n_labels;
  return size;
}

void ChainSlopes::begin(const int64_t* instances, int64_t n_instances) {
  instances_.assign(instances, instances + n_instances);
  offsets_.assign(1, 0);
  labels_.clear();
  types_.clear();
  for (const int64_t i : instances_) {
    const int64_t first = data_.offsets[i], last = data_.offsets[i + 1];
    offsets_.push_back(offsets_.back() + last - first);
    labels_.insert(labels_.end(), data_.labels + first, data_.labels + last);
    if (data_.edge_types)
      types_.insert(types_.end(), data_.edge_types + first, data_.edge_types + last);
  }
  node_.assign(static_cast<size_t>(n_rows() * data_.n_labels), 0.0f);
}

void ChainSlopes::find(SweepLoss loss, float margin) {
  edge_slopes_.assign(static_cast<size_t>(data_.n_edge()), 0.0);
  end_slopes_.assign(static_cast<size_t>(data_.n_start() + data_.n_end()), 0.0);
  node_slopes_.assign(node_.size(), 0.0f);
  totals_.resize(instances_.size());
  if (data_.node_mask) add_node_mask();
  if (loss == SweepLoss::likelihood) {
    expect();
  } else {
    if (margin > 0) add_margin(margin);
    decode();
  }
  count(labels_, -1);
}

void ChainSlopes::add_node_mask() {
  const int64_t K = data_.n_labels;
  for_instances([&](int64_t begin, int64_t end, int64_t own) {
    for (int64_t e = 0; e < (end - begin) * K; ++e)
      node_[static_cast<size_t>(own * K + e)] += data_.node_mask[begin * K + e];
  });
}

// To all labels but the true ones.
void ChainSlopes::add_margin(float margin) {
  float* scores = node_.data();
  for (const int32_t label : labels_) {
    for (int c = 0; c < data_.n_labels; ++c)
      if (c != label) scores[c] += margin;
    scores += data_.n_labels;
  }
}

bool ChainSlopes::moves(int64_t row) const {
  const float* slopes = node_slopes(row);
  return std::any_of(slopes, slopes + data_.n_labels, [](float slope) { return slope != 0; });
}

Problem<float> ChainSlopes::problem() const {
  Problem<float> p;
  p.node = node_.data();
  p.edge = edge_scores_.data();
  p.start = start_.empty() ? nullptr : start_.data();
  p.end = end_.empty() ? nullptr : end_.data();
  p.offsets = offsets_.data();
  p.edge_types = data_.edge_types ? types_.data() : nullptr;
  p.n_instances = static_cast<int64_t>(instances_.size());
  p.n_tables = data_.n_types;
  p.n_labels = data_.n_labels;
  p.order = data_.order;
  p.sharing = data_.edge_types ? Sharing::typed : Sharing::shared;
  return p;
}

// What the model expects: marginals.
void ChainSlopes::expect() {
  const auto n = instances_.size();
  weights_.resize(n);
  for (size_t k = 0; k < n; ++k) weights_[k] = weight(k);
  SumOutputs<float> out;
  out.log_z = totals_.data();
  out.node = node_slopes_.data();
  out.weight = weights_.data();
  out.edge_sum = data_.has_edge ? edge_slopes_.data() : nullptr;
  out.edge_output = data_.has_edge ? EdgeOutput::sum : EdgeOutput::none;
  sum_product(problem(), out, 1);
  const int K = data_.n_labels;
  for (size_t k = 0; k < n; ++k) {
    const int64_t begin = offsets_[k], end = offsets_[k + 1];
    float* slopes = node_slopes_.data();
    for (int c = 0; c < K && end > begin; ++c) {
      if (data_.has_start) end_slopes_[static_cast<size_t>(c)] += weight(k) * slopes[begin * K + c];
      if (data_.has_end)
        end_slopes_[static_cast<size_t>(data_.n_start() + c)] +=
            weight(k) * slopes[(end - 1) * K + c];
    }
    for (int64_t e = begin * K; e < end * K; ++e) slopes[e] *= static_cast<float>(weight(k));
  }
}

// What the model holds best.
void ChainSlopes::decode() {
  best_.resize(labels_.size());
  max_product(problem(), best_.data(), totals_.data(), 1);
  count(best_, 1);
}

// Of the edge that ends at a row.
int64_t ChainSlopes::cell(const std::vector<int32_t>& labels, int64_t row) const {
  int64_t found = data_.edge_types ? types_[static_cast<size_t>(row)] : 0;
  for (int64_t before = row - data_.order; before <= row; ++before)
    found = found * data_.n_labels + labels[static_cast<size_t>(before)];
  return found;
}

// Adds `sign` wherever a labelling uses a score.
void ChainSlopes::count(const std::vector<int32_t>& labels, double sign) {
  const int K = data_.n_labels;
  for (size_t k = 0; k < instances_.size(); ++k) {
    const int64_t begin = offsets_[k], end = offsets_[k + 1];
    const double own = sign * weight(k);
    for (int64_t row = begin; row < end; ++row) {
      const auto label = labels[static_cast<size_t>(row)];
      node_slopes_[static_cast<size_t>(row * K + label)] += static_cast<float>(own);
      if (data_.has_edge && row - begin >= data_.order)
        edge_slopes_[static_cast<size_t>(cell(labels, row))] += own;
    }
    if (end == begin) continue;
    if (data_.has_start)
      end_slopes_[static_cast<size_t>(labels[static_cast<size_t>(begin)])] += own;
    if (data_.has_end)
      end_slopes_[static_cast<size_t>(data_.n_start() + labels[static_cast<size_t>(end - 1)])] +=
          own;
  }
}

}  // namespace crfx
