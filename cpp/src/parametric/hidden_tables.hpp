// Memory for the tables of hidden units, filled by the kernels.
#pragma once

#include <vector>

#include "crfx/hidden.hpp"
#include "simd/kernels.hpp"

namespace crfx {

template <class S>
class OwnedHiddenTables {
 public:
  void fill(const HiddenUnits<S>& units) {
    by_unit_.resize(static_cast<size_t>(units.n_hidden * padded(units.n_labels)));
    by_label_.resize(static_cast<size_t>(units.n_labels * padded(units.n_hidden)));
    view_ = {by_unit_.data(), by_label_.data(), 0};
    kernels<S>().hidden_tables(units, view_);
  }
  const HiddenTables<S>& view() const { return view_; }

  static int64_t padded(int64_t n) {
    const int64_t lanes = kernels<S>().lanes;
    return (n + lanes - 1) / lanes * lanes;
  }

 private:
  std::vector<S> by_unit_, by_label_;
  HiddenTables<S> view_{};
};

}  // namespace crfx
