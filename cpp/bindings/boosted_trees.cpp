// Boosted trees of features alone, for Python.
#include "crfx/boosted_trees.hpp"

#include "chains.hpp"
#include "crfx/errors.hpp"
#include "feature_rows.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Integers = Vector1<const int32_t>;

void make(crfx::BoostedTrees* at, Vector1<const int64_t> starts, Integers outputs, Integers left,
          Integers right, Integers features, Vector1<const float> values,
          Vector1<const uint8_t> missing_left, Integers sets, Vector1<const int64_t> set_starts,
          Integers categories, int64_t n_features, int64_t n_outputs) {
  const size_t n_nodes = left.shape(0);
  const auto rises = [](const Vector1<const int64_t>& bounds, size_t end) {
    const size_t n = bounds.shape(0);
    bool fine = n > 0 && bounds.data()[0] == 0 && bounds.data()[n - 1] == static_cast<int64_t>(end);
    for (size_t k = 1; k < n; ++k) fine = fine && bounds.data()[k - 1] <= bounds.data()[k];
    return fine;
  };
  if (!rises(starts, n_nodes) || !rises(set_starts, categories.shape(0)) ||
      outputs.shape(0) + 1 != starts.shape(0) || right.shape(0) != n_nodes ||
      features.shape(0) != n_nodes || values.shape(0) != n_nodes ||
      missing_left.shape(0) != n_nodes || sets.shape(0) != n_nodes)
    throw crfx::InputError("the trees are told in arrays of unequal lengths");
  const crfx::BoostedTreesView view{starts.data(),
                                    static_cast<int64_t>(outputs.shape(0)),
                                    outputs.data(),
                                    left.data(),
                                    right.data(),
                                    features.data(),
                                    values.data(),
                                    missing_left.data(),
                                    sets.data(),
                                    set_starts.data(),
                                    static_cast<int64_t>(set_starts.shape(0)) - 1,
                                    categories.data()};
  new (at) crfx::BoostedTrees(view, n_features, n_outputs);
}

void score(const crfx::BoostedTrees& trees, const BoundRows& rows, int64_t n_trees,
           Vector1<float> scores, int n_threads) {
  if (n_trees < 0 || n_trees > trees.n_trees()) throw crfx::InputError("n_trees is out of range");
  if (static_cast<int64_t>(scores.shape(0)) != rows.view.n_rows * trees.n_outputs())
    throw crfx::InputError("pass one score per row and output");
  nb::gil_scoped_release released;
  trees.score(rows.view, n_trees, scores.data(), n_threads);
}

}  // namespace

void bind_boosted_trees(nb::module_& m) {
  nb::class_<crfx::BoostedTrees>(m, "BoostedTrees", "Trees of features alone, ready to be walked.")
      .def("__init__", &make, nb::kw_only(), "starts"_a.noconvert(), "outputs"_a.noconvert(),
           "left"_a.noconvert(), "right"_a.noconvert(), "features"_a.noconvert(),
           "values"_a.noconvert(), "missing_left"_a.noconvert(), "sets"_a.noconvert(),
           "set_starts"_a.noconvert(), "categories"_a.noconvert(), "n_features"_a, "n_outputs"_a)
      .def_prop_ro("n_trees", &crfx::BoostedTrees::n_trees)
      .def("score", &score, "rows"_a, "n_trees"_a, "scores"_a.noconvert(), "n_threads"_a,
           "Writes the sum of the first trees to scores (rows x outputs), flat.");
}
