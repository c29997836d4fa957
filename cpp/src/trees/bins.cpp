#include "crfx/bins.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "crfx/errors.hpp"
#include "crfx/parallel.hpp"

namespace crfx {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();

int64_t bin_of_number(const std::vector<float>& cuts, float value) {
  return 1 + (std::upper_bound(cuts.begin(), cuts.end(), value) - cuts.begin());
}

int64_t bin_of_category(float value) { return 1 + static_cast<int64_t>(value); }

}  // namespace

RowReader::RowReader(const FeatureRows& rows) : rows_(rows) {
  if (rows.is_sparse())
    spread_.assign(static_cast<size_t>(rows.n_features), std::numeric_limits<float>::quiet_NaN());
}

const float* RowReader::read(int64_t row) {
  if (!rows_.is_sparse()) return rows_.values + rows_.first[row];
  const auto fill = [&](int64_t of, bool shown) {
    for (int64_t e = rows_.starts[of]; e < rows_.starts[of + 1]; ++e)
      spread_[static_cast<size_t>(rows_.indices[e])] =
          shown ? rows_.values[e] : std::numeric_limits<float>::quiet_NaN();
  };
  if (shown_ >= 0) fill(shown_, false);
  fill(row, true);
  shown_ = row;
  return spread_.data();
}

Bins::Bins(const FeatureRows& rows, const uint8_t* is_category, int n_threads,
           const Workers& workers, int64_t overlap)
    : rows_(rows) {
  FlushDenormals flush;  // walks do so too, and must go where bins send them
  const int64_t n_base = rows.is_sparse() ? rows.n_features : rows.n_base;
  if (rows.is_sparse())
    categories_.assign(static_cast<size_t>(n_base), 0);
  else
    categories_.assign(is_category, is_category + n_base);
  cuts_.resize(static_cast<size_t>(n_base));
  if (rows.is_sparse())
    find_sparse(n_threads, workers);
  else
    find_dense(n_threads, workers, workers.rank ? overlap : 0);
}

void Bins::find_dense(int n_threads, const Workers& workers, int64_t skipped) {
  const int64_t n_base = rows_.n_base, n = rows_.n_values / std::max<int64_t>(1, n_base);
  const auto read = [&](int64_t f) {
    std::vector<float> column;
    column.reserve(static_cast<size_t>(n));
    for (int64_t k = skipped; k < n; ++k)
      if (const float x = rows_.values[k * n_base + f]; !std::isnan(x)) column.push_back(x);
    return column;
  };
  std::vector<SharedCuts> shared;
  if (workers.several()) {
    const std::vector<double> sizes(static_cast<size_t>(n_base), static_cast<double>(n));
    shared = find_shared_cuts({sizes, read}, workers, n_threads);
  }
  codes_.resize(static_cast<size_t>(rows_.n_values));
  std::vector<int64_t> counts(static_cast<size_t>(n_base));
  for_chunks(n_base, n_threads, [&](int64_t f, Workspace&) {
    std::vector<float>& cuts = cuts_[static_cast<size_t>(f)];
    const bool named = categories_[static_cast<size_t>(f)] != 0;
    int64_t most = 0;
    if (!shared.empty()) {
      SharedCuts& found = shared[static_cast<size_t>(f)];
      if (named)
        most = bin_of_category(found.greatest);
      else
        cuts = std::move(found.cuts);
    } else if (!named) {
      cuts = find_cuts(read(f));
    }
    for (int64_t k = 0; k < n; ++k) {
      const float x = rows_.values[k * n_base + f];
      int64_t bin = 0;
      if (!std::isnan(x)) bin = named ? bin_of_category(x) : bin_of_number(cuts, x);
      if (bin < 0 || bin > kMostBins) throw InputError("a column has too many categories");
      most = std::max(most, bin);
      codes_[static_cast<size_t>(k * n_base + f)] = static_cast<uint8_t>(bin);
    }
    counts[static_cast<size_t>(f)] = 1 + (named ? most : static_cast<int64_t>(cuts.size()) + 1);
  });
  offsets_.assign(1, 0);
  for (int64_t f = 0; f < rows_.n_features; ++f)
    offsets_.push_back(offsets_.back() + counts[static_cast<size_t>(f % n_base)]);
}

void Bins::find_sparse(int n_threads, const Workers& workers) {
  const int64_t n_entries = rows_.starts[rows_.n_rows];
  std::vector<int64_t> begin(static_cast<size_t>(rows_.n_features) + 1, 0);
  for (int64_t e = 0; e < n_entries; ++e) ++begin[static_cast<size_t>(rows_.indices[e]) + 1];
  for (size_t f = 1; f < begin.size(); ++f) begin[f] += begin[f - 1];
  std::vector<float> by_column(static_cast<size_t>(n_entries));
  std::vector<int64_t> at(begin.begin(), begin.end() - 1);
  for (int64_t e = 0; e < n_entries; ++e)
    by_column[static_cast<size_t>(at[static_cast<size_t>(rows_.indices[e])]++)] = rows_.values[e];
  const auto read = [&](int64_t f) {
    std::vector<float> column;
    for (int64_t e = begin[static_cast<size_t>(f)]; e < begin[static_cast<size_t>(f) + 1]; ++e)
      if (const float x = by_column[static_cast<size_t>(e)]; !std::isnan(x)) column.push_back(x);
    return column;
  };
  std::vector<SharedCuts> shared;
  if (workers.several()) {
    std::vector<double> sizes;
    for (size_t f = 1; f < begin.size(); ++f)
      sizes.push_back(static_cast<double>(begin[f] - begin[f - 1]));
    shared = find_shared_cuts({sizes, read}, workers, n_threads);
  }
  offsets_.assign(1, 0);
  for (size_t f = 0; f < cuts_.size(); ++f) {
    cuts_[f] =
        shared.empty() ? find_cuts(read(static_cast<int64_t>(f))) : std::move(shared[f].cuts);
    offsets_.push_back(offsets_.back() + 2 + static_cast<int64_t>(cuts_[f].size()));
  }
  if (offsets_.back() > std::numeric_limits<uint32_t>::max())
    throw InputError("the features have too many values in all");
  cells_.resize(static_cast<size_t>(n_entries));
  for (int64_t e = 0; e < n_entries; ++e) {
    const auto f = static_cast<size_t>(rows_.indices[e]);
    const float x = rows_.values[e];
    cells_[static_cast<size_t>(e)] =
        static_cast<uint32_t>(offsets_[f] + (std::isnan(x) ? 0 : bin_of_number(cuts_[f], x)));
  }
}

float Bins::upper_limit(int64_t feature, int64_t bin) const {
  const std::vector<float>& cuts = cuts_[base(feature)];
  return bin <= static_cast<int64_t>(cuts.size()) ? cuts[static_cast<size_t>(bin - 1)] : kInfinite;
}

int64_t Bins::bytes() const {
  return static_cast<int64_t>(codes_.size() + cells_.size() * sizeof(uint32_t) +
                              offsets_.size() * sizeof(int64_t));
}

void Bins::add(const int32_t* rows, const float* g, const float* h, int64_t n,
               Cell* histogram) const {
  // One load and one store for both sums.
  typedef double Pair __attribute__((vector_size(16), may_alias));
  auto* cells = reinterpret_cast<Pair*>(histogram);
  const int64_t* offsets = offsets_.data();
  const int64_t n_features = rows_.n_features;
  for (int64_t p = 0; p < n; ++p) {
    const Pair both = {static_cast<double>(g[p]), static_cast<double>(h[p])};
    if (rows_.is_sparse()) {
      for (int64_t e = rows_.starts[rows[p]]; e < rows_.starts[rows[p] + 1]; ++e)
        cells[cells_[static_cast<size_t>(e)]] += both;
    } else {
      const uint8_t* codes = codes_.data() + rows_.first[rows[p]];
      for (int64_t f = 0; f < n_features; ++f) cells[offsets[f] + codes[f]] += both;
    }
  }
}

void Bins::add_some(const int32_t* rows, const float* g, const float* h, int64_t n,
                    const std::vector<int64_t>& features, Cell* histogram) const {
  for (int64_t p = 0; p < n; ++p) {
    const uint8_t* codes = codes_.data() + rows_.first[rows[p]];
    for (const int64_t f : features) {
      Cell& cell = histogram[offsets_[static_cast<size_t>(f)] + codes[f]];
      cell.g += static_cast<double>(g[p]);
      cell.h += static_cast<double>(h[p]);
    }
  }
}

int64_t Bins::bin_of(int64_t row, int64_t feature) const {
  if (!rows_.is_sparse()) return codes_[static_cast<size_t>(rows_.first[row] + feature)];
  const int32_t *begin = rows_.indices + rows_.starts[row],
                *end = rows_.indices + rows_.starts[row + 1];
  const int32_t* found = std::lower_bound(begin, end, static_cast<int32_t>(feature));
  if (found == end || *found != feature) return 0;
  return static_cast<int64_t>(cells_[static_cast<size_t>(found - rows_.indices)]) - offset(feature);
}

}  // namespace crfx
